"""Explicit matrices through loops: every method that takes any rows gives the dense definition, and inverses are backward stable at any damping."""

from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest
from test_explicit import ANY_INVERSE, MATRIX, some
from test_operator import CLOSE, Case, loops, plan, standing, stored

import delassus as dl
from oracles import rows, trees
from oracles.compare import agree
from oracles.dense import Mechanism
from oracles.exact import REAL, Exact, Rows

DAMPING = [1e-8, 1e-6, 1e-4, 1e-2, 1.0, 1e3]
# ‖(G + ε) X − 1‖, the largest of the columns, over ‖G + ε‖ ‖X‖ + 1
BACKWARD = 1e-12
# where rungs and the right side of a ladder are pinned: the ends of their rods
PIN = (0.2, 0.0, 0.0)


def backward(case, X, damping):
    A = case.G + np.diag(np.broadcast_to(damping, case.m))
    residual = np.linalg.norm(A @ X - np.eye(case.m), axis=0).max(initial=0.0)
    return residual / (np.linalg.norm(A, 2) * np.linalg.norm(X, 2) + 1) if case.m else 0.0


# ---- cases ---------------------------------------------------------------------------------------------------------------


def random_loops(seed):
    """A random tree of any joints with some loops, n-ary rows, rows of joints and of the centre of mass; some are repeated."""
    rng = np.random.default_rng([seed, 31])
    oracle = trees.mechanism(plan(rng, 2 + int(rng.integers(14)), rng.random()), [seed, 32])
    kinds = [*rows.BETWEEN, *(kind for kind in rows.OF_MODEL if rng.random() < 0.3)]
    made = []
    for kind in rng.choice(kinds, 1 + int(rng.integers(7))):
        try:
            made.append(rows.random_constraint(rng, oracle.model, str(kind)))
        except (ValueError, IndexError):  # the tree has no joint of the kind
            continue
    made += [made[k] for k in rng.integers(len(made), size=int(rng.integers(3)))] if made else []
    return Case(oracle, made)


def declared(name):
    oracle = standing(name)
    made = [*loops(oracle.model), *some(np.random.default_rng(5), oracle.model, ["contact", "weld"], 3)]
    return Case(oracle, [*made, rows.random_constraint(np.random.default_rng(6), oracle.model, "center")])


WITH_LOOPS = [name for name in dl.embedded_names() if dl.load(name).loops]
SCENES = {name: lambda n=name: Case(standing(n), stored(n)) for name in dl.scenes.names}
ROBOTS = {f"{name} loops": lambda n=name: declared(n) for name in (*WITH_LOOPS, "four_bar", "n_four_bar")}
RANDOM = {f"random-{seed}": lambda s=seed: random_loops(s) for seed in range(500)}


@lru_cache(maxsize=4)
def made(name):
    return {**SCENES, **ROBOTS, **RANDOM}[name]()


def check_matrices(case):
    explicit = dl.ExplicitDelassus(case.model, case.constraints)
    for method in MATRIX:
        G = explicit.matrix(case.q, method=method)
        agree(G, case.G, CLOSE, case.scale)
        assert np.array_equal(G, G.T)


def check_inverses(case, methods):
    explicit = dl.ExplicitDelassus(case.model, case.constraints)
    for method in methods:
        for damping in DAMPING:
            X = explicit.inverse(case.q, damping, method=method)
            assert np.array_equal(X, X.T)
            error = backward(case, X, damping)
            assert error <= BACKWARD, f"{method}: backward error {error:.2g} at damping {damping:g}"


@pytest.mark.parametrize("name", [*SCENES, *ROBOTS])
def test_robots_and_scenes_have_their_dense_matrix(name):
    check_matrices(made(name))


@pytest.mark.parametrize("name", [*SCENES, *ROBOTS])
def test_inverses_of_robots_and_scenes_are_backward_stable(name):
    check_inverses(made(name), ["lcaba-osim"])


@pytest.mark.sampled
@pytest.mark.parametrize("name", RANDOM)
def test_random_loops_have_their_dense_matrix(name):
    check_matrices(made(name))


@pytest.mark.sampled
@pytest.mark.parametrize("name", RANDOM)
def test_inverses_of_random_loops_are_backward_stable(name):
    check_inverses(made(name), ["lcaba-osim"])


# ---- families ------------------------------------------------------------------------------------------------------------

FAMILIES = {
    "ring": lambda k: dl.scenes.ring(k), "ladder": lambda k: dl.scenes.ladder(k), "stewart_platforms": lambda k: dl.scenes.stewart_platforms(k),
    "n_four_bar": lambda k: dl.scenes.n_four_bar(k),
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 5, 12])
@pytest.mark.parametrize("family", FAMILIES)
def test_families_of_loops(family, size):
    model = FAMILIES[family](size + 2 if family == "ring" else size)
    case = Case(Mechanism(model, model.random(1)), list(loops(model)))
    assert case.m > 0
    check_matrices(case)
    check_inverses(case, ANY_INVERSE)


@pytest.mark.parametrize("family", FAMILIES)
def test_families_of_loops_are_closed_at_neutral(family):
    model = FAMILIES[family](4)
    errors = np.concatenate([dl.constraint_error(model, model.neutral(), [loop]) for loop in model.loops])
    assert np.abs(errors).max() < 1e-12


def test_a_long_ladder_in_extended_precision():
    """M of a ladder is ill-conditioned (2e7 here): who is off is told by the definition in more digits, not by the sparse factor."""
    model = dl.scenes.ladder(40)
    q = model.neutral()
    exact = Exact(model, q, np.zeros(model.nv), None, [])
    pins = [Rows("point", model.body_names.index(f"rung{k}"), model.body_names.index(f"right{k}"), PIN, PIN) for k in range(40)]
    J = np.concatenate([exact._rows(pin, np.zeros(model.nv, REAL))[0] for pin in pins])
    # M with a unit diagonal is L Lᵀ, G = Yᵀ Y
    scale = 1 / np.sqrt(exact.M.diagonal())
    A, L, Y = exact.M * scale * scale[:, None], np.zeros_like(exact.M), (J * scale).T.copy()
    for k in range(model.nv):
        L[k, k] = np.sqrt(A[k, k] - L[k, :k] @ L[k, :k])
        L[k + 1 :, k] = (A[k + 1 :, k] - L[k + 1 :, :k] @ L[k, :k]) / L[k, k]
        Y[k] = (Y[k] - L[k, :k] @ Y[:k]) / L[k, k]
    G = Y.T @ Y
    explicit = dl.ExplicitDelassus(model, model.loops)
    off = {method: float(np.abs(explicit.matrix(q, method=method) - G).max() / np.abs(G).max()) for method in MATRIX}
    assert max(off.values()) < 1e-10
    assert all(off[method] < 1e-11 for method in ("kjr", "efpa", "pv-osim", "columns"))
    for damping in DAMPING:
        A = G + REAL(damping) * np.eye(len(G))
        for method in (*ANY_INVERSE, "auto"):
            X = explicit.inverse(q, damping, method=method)
            residual = np.sqrt(((A @ X - np.eye(len(G))) ** 2).sum(axis=0)).max()
            assert residual <= BACKWARD * (np.linalg.norm(A.astype(float), 2) * np.linalg.norm(X, 2) + 1)


@pytest.mark.parametrize("seed", [179, *range(20)])
def test_rows_that_are_repeated_hide_no_error_from_the_probe(seed):
    """Where rows are repeated, an error may be a difference of two of them, which vectors of random signs see half of the time (179: none of four)."""
    rng = np.random.default_rng(seed)
    b, links = dl.ModelBuilder("small"), 3 + int(rng.integers(4))
    for k in range(links):
        b.add_body(
            f"b{k}", f"b{int(rng.integers(k))}" if k else "world", position=rng.uniform(-0.5, 0.5, 3), mass=rng.uniform(0.5, 2), com=rng.uniform(-0.2, 0.2, 3), inertia=rng.uniform(0.02, 0.03, 3)
        )  # fmt: skip
        b.add_joint(f"b{k}", "hinge", axis=rng.standard_normal(3))
    model = b.build()

    def row():
        i, j = rng.choice(links, 2, replace=False)
        return dl.LinkConstraint(model, [(f"b{i}", rng.standard_normal((1, 6))), (f"b{j}", rng.standard_normal((1, 6)))])

    constraints = [dl.Weld(model, f"b{links - 1}", point=rng.uniform(-0.3, 0.3, 3)), *(row() for _ in range(3))]
    q = rng.uniform(-3, 3, links)
    explicit = dl.ExplicitDelassus(model, [*constraints, *(constraints[k] for k in rng.integers(1, 4, 3))])
    G = explicit.matrix(q, method="efpa")
    for damping in DAMPING:
        assert backward(SimpleNamespace(G=G, m=len(G)), explicit.inverse(q, damping, method="lcaba-osim"), damping) <= BACKWARD


@pytest.mark.parametrize("compliance", [0.0, 1e-3])
def test_inverses_where_light_links_carry_heavy_ones(compliance):
    """Pivots of M are up to 1e7 times smaller than its diagonal. Articulated inertias lose no digits by that, so that G by EFPA is right."""
    rng = np.random.default_rng(4)
    b, links = dl.ModelBuilder("boom"), 24
    for k in range(links):
        mass = 1e2 if k == links - 1 else 10 ** rng.uniform(-3, -1)
        b.add_body(
            f"b{k}",
            f"b{k - 1}" if k else "world",
            position=(0, 0, -0.5),
            mass=mass,
            com=rng.uniform(-0.1, 0.1, 3),
            inertia=0.01 * mass * np.ones(3),
        )
        b.add_joint(f"b{k}", "hinge", axis=rng.standard_normal(3))
    model = b.build()
    q = rng.standard_normal(model.nq)
    constraints = [
        dl.Connect(model, f"b{k}", f"b{k - 7}", point=rng.uniform(-0.3, 0.3, 3), other_point=rng.uniform(-0.3, 0.3, 3)) for k in (9, 14, 23)
    ]
    explicit = dl.ExplicitDelassus(model, constraints, compliance=compliance)
    G = explicit.matrix(q, method="efpa")
    agree(explicit.matrix(q, method="columns"), G, 1e-12, np.abs(G).max())
    case = SimpleNamespace(G=G, m=len(G))
    for method in (*ANY_INVERSE, "auto"):
        for damping in DAMPING:
            error = backward(case, explicit.inverse(q, damping, method=method), damping)
            assert error <= BACKWARD, f"{method}: backward error {error:.2g} at damping {damping:g}"


# ---- structure -----------------------------------------------------------------------------------------------------------


def test_mechanisms_apart_have_zeros_between_them():
    model = dl.scenes.stewart_platforms(3)
    q, each = model.random(2), len(model.loops) // 3
    explicit = dl.ExplicitDelassus(model, model.loops)
    m = explicit.shape[0] // 3
    for A in (explicit.matrix(q, method="pv-osimr"), explicit.inverse(q, 1e-3, method="lcaba-osim")):
        for a in range(3):
            for b in range(3):
                block = A[a * m : (a + 1) * m, b * m : (b + 1) * m]
                assert np.all(block == 0) if a != b else np.abs(block).max() > 0
    assert each * 3 == len(model.loops)


def test_rows_that_touch_nothing_have_only_their_damping():
    model = dl.scenes.four_bar()
    ground = dl.Weld(model, 0, point=np.ones(3), other_point=np.zeros(3))
    X = dl.damped_delassus_inverse(model, model.neutral(), [ground, *model.loops], 0.25, method="lcaba-osim")
    assert np.array_equal(X[:6], np.hstack([4 * np.eye(6), np.zeros((6, X.shape[0] - 6))]))


def check_unrefined(case):
    """What the recursion finds is right by itself, where the lemma does not cancel: nothing was refined, and no other method took over.

    Both would hide an error of the recursion. They show in the memory that they take when they are first needed. Returns whether the case can tell.
    """
    norm = case.norm
    moved = np.diag(case.G) > 1e-12 * norm  # planar loops have rows across their plane, which nothing moves
    singular = np.linalg.svd(case.G[np.ix_(moved, moved)], compute_uv=False)
    if not moved.any() or singular[-1] <= 1e-3 * singular[0]:  # which damping asks for a refinement is not known
        return False
    explicit, small = dl.ExplicitDelassus(case.model, case.constraints), np.where(moved, 1e-7 * norm, norm)
    taken = []
    for damping, method in ((norm, "lcaba-osim"), (norm, "ltl"), (norm, "lcaba"), (norm, "lcaba-osim"), (small, "lcaba-osim")):
        X = explicit.inverse(case.q, damping, method=method)
        assert backward(case, X, damping) <= BACKWARD
        taken.append(explicit.nbytes)
    assert taken[0] < taken[1] < taken[2], "another method took over"
    assert taken[2] == taken[3] < taken[4], "refined where the lemma does not cancel, or not where it does"
    return True


@pytest.mark.parametrize("family", ["ring", "ladder", "stewart_platforms"])
def test_families_of_loops_need_no_refinement_where_the_lemma_does_not_cancel(family):
    model = FAMILIES[family](5)
    assert check_unrefined(Case(Mechanism(model, model.random(1)), list(loops(model))))


def test_free_bodies_in_a_row_need_no_refinement_where_the_lemma_does_not_cancel():
    # each has neighbours when its turn comes, and no parent
    model = dl.scenes.box_stack(5)
    bands = [rows.connect(model, k + 1, k, point=np.array([0.1, 0.0, -0.1]), other_point=np.array([0.1, 0.0, 0.1])) for k in range(1, 5)]
    assert check_unrefined(Case(Mechanism(model, model.random(1)), bands))


def test_random_loops_need_no_refinement_where_the_lemma_does_not_cancel():
    told = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 41])
        oracle = trees.mechanism(plan(rng, 16, rng.random()), [seed, 42])
        # few rows, so that most are independent
        told += check_unrefined(
            Case(oracle, [rows.random_constraint(rng, oracle.model, str(kind)) for kind in rng.choice([*rows.BETWEEN], 2)])
        )
    assert told >= 8


def test_compliance_and_a_damping_per_row():
    case = made("cassie-standing")
    rng = np.random.default_rng(3)
    damping, compliance = 10 ** rng.uniform(-3, 0, (2, case.m))
    explicit = dl.ExplicitDelassus(case.model, case.constraints, compliance=compliance)
    want = np.linalg.inv(case.G + np.diag(damping + compliance))
    agree(explicit.inverse(case.q, damping, method="lcaba-osim"), want, CLOSE, np.abs(want).max())


def test_auto_knows_which_methods_take_loops_and_that_the_sparse_factor_grows_faster():
    def costs(k):
        model = dl.scenes.ladder(k)
        return dl.ExplicitDelassus(model, model.loops).explain()

    few, many = costs(3), costs(160)
    for found in (few, many):
        assert (set(found.matrix), set(found.inverse)) == (set(MATRIX), set(ANY_INVERSE))
    assert few.inverse_choice == "ltl"
    assert many.inverse_choice == "lcaba-osim"
    assert many.matrix_choice != "ltl"
