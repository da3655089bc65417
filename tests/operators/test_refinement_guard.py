"""Refinement of (G + damping)⁻¹ y by its residual: a correction that does not help is taken back, state by state."""

import numpy as np
import pytest

import delassus as dl


def arm(short, links=6):
    """Links of 1 m, the last two `short`, 1 kg each: the factor of G + damping loses digits there, those of G are all there."""
    b = dl.ModelBuilder("arm")
    before = 0.0
    for k in range(links):
        length = short if k >= links - 2 else 1.0
        below = {"parent": f"link{k - 1}", "position": (before, 0.0, 0.0)} if k else {}
        b.add_body(f"link{k}", mass=1.0, com=(length / 2, 0, 0), inertia=(length**2 / 120, length**2 / 12, length**2 / 12), **below)
        b.add_joint(f"link{k}", "hinge", axis=np.eye(3)[(2, 1, 0)[k % 3]])
        before = length
    return b.build()


def backward_error(K, x, y):
    return np.linalg.norm(K @ x - y) / (np.linalg.norm(K, 2) * np.linalg.norm(x) + np.linalg.norm(y))


def solved(G, y, **options):
    """The solution, or None where the operator says that it has none."""
    try:
        return G.solve(y, **options)
    except dl.errors.DelassusError:
        return None


@pytest.mark.parametrize("short", [0.1, 0.03, 0.01])
def test_refinement_never_makes_a_solution_worse(short):
    model = arm(short)
    rng = np.random.default_rng(1)
    G = dl.DelassusOperator(model, [dl.Connect(model, "link5", point=(short, 0, 0))])
    lost = 0
    for _ in range(12):
        G.update(model.random(rng))
        A = G.to_matrix()
        for share in (1e-16, 1e-14, 1e-12, 1e-10):
            K = A + share * np.linalg.norm(A, 2) * np.eye(3)
            G.damping = share * np.linalg.norm(A, 2)
            y = rng.standard_normal(3)
            plain, refined = solved(G, y, refine=False), solved(G, y)
            if refined is None:
                continue
            # 1e-13: where both are at rounding, neither is better
            assert backward_error(K, refined, y) <= 1.01 * backward_error(K, plain, y) + 1e-13
            lost += backward_error(K, plain, y) > 1e-2
    assert lost > 0  # else this asks nothing


def test_states_of_a_batch_are_refined_each_by_itself():
    """Easy and hard states side by side: what helps one is not forced on another."""
    model = arm(0.03)
    rng = np.random.default_rng(2)
    constraints = [dl.Connect(model, "link5", point=(0.03, 0, 0))]
    n = 8
    q = np.array([model.random(rng) for _ in range(n)])
    B, G = dl.BatchDelassusOperator(model, constraints, n), dl.DelassusOperator(model, constraints)
    B.update(q)
    scale = []
    for state in q:
        G.update(state)
        scale.append(np.linalg.norm(G.to_matrix(), 2))
    shares = 10.0 ** rng.uniform(-15, -6, n)
    damping = np.array(scale) * shares
    B.damping = np.repeat(damping[:, None], 3, axis=1)
    Y = rng.standard_normal((n, 3))
    plain, refined = solved(B, Y, refine=False), solved(B, Y)
    if refined is None:
        return
    for k in range(n):
        G.update(q[k])
        K = G.to_matrix() + damping[k] * np.eye(3)
        assert backward_error(K, refined[k], Y[k]) <= 1.01 * backward_error(K, plain[k], Y[k]) + 1e-13
