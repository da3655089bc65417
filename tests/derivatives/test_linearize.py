"""Constrained dynamics and the operator to first order: against extrapolated central differences of the functions themselves, tangents against adjoints, and what bad input gets."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, InaccurateError, NotFiniteError, StaleError
from oracles.compare import agree
from oracles.row_kinds import GAINS, KINDS, tree
from oracles.trees import grow


def slope(f, h=2e-3):
    """f'(0) of a function of one number, by central differences at h, h/2, h/4 and extrapolation: the error is O(h⁶) and rounding over h."""
    first, second, third = ([(x - y) / (2 * s) for x, y in zip(f(s), f(-s), strict=True)] for s in (h, h / 2, h / 4))
    better = [(4 * b - a) / 3 for a, b in zip(first, second, strict=True)], [(4 * b - a) / 3 for a, b in zip(second, third, strict=True)]
    return [(16 * b - a) / 15 for a, b in zip(*better, strict=True)]


def compared(model, constraints, q, v, seed, *, still=False, tolerance=2e-8, forces=True, compliance=0.0):
    """Tangents along a random direction against differences, and against adjoints. ``still``: along q and τ alone, from v = 0."""
    rng = np.random.default_rng([seed, 11])
    tau, dq, dv, dtau = rng.standard_normal((4, model.nv))
    dv = 0 * dv if still else dv
    external = rng.standard_normal((model.nbody, 6)) if forces else None
    dynamics = dl.ConstrainedDynamics(model, constraints, compliance=compliance)
    L = dl.LinearizedDynamics(model, constraints, compliance=compliance)
    r = L.update(q, v, tau, external_forces=external)
    found = L.jvp(dq, dv, dtau)

    def moved(s):
        x = dynamics.solve(dl.integrate(model, q, s * dq), v + s * dv, tau + s * dtau, external_forces=external)
        assert x.status in ("solved", "redundant")
        return x.acceleration, x.forces

    wanted = slope(moved)
    agree(found.acceleration, wanted[0], tolerance, max(np.abs(wanted[0]).max(), np.abs(r.acceleration).max()))
    agree(found.forces, wanted[1], tolerance, max(np.abs(wanted[1]).max(initial=0), np.abs(r.forces).max(initial=0)))
    weights = rng.standard_normal(model.nv), rng.standard_normal(r.forces.size)
    back = L.vjp(*weights)
    # redundant rows: rounding over the damping that tells them apart, 1e-6 of G, and the projection takes it off four times
    terms = np.concatenate([weights[0] * found.acceleration, weights[1] * found.forces])
    assert abs(back.q @ dq + back.v @ dv + back.tau @ dtau - terms.sum()) <= 1e-12 * max(np.abs(terms).sum(), np.abs(back.q * dq).sum()) * (
        100 if L.redundant else 1
    )
    return L


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_row(kind):
    model = tree()
    rng = np.random.default_rng(1)
    compared(model, [KINDS[kind](model)], model.random(rng), rng.standard_normal(model.nv), 1)


def test_many_kinds_at_once_with_compliance():
    model = tree()
    rng = np.random.default_rng(2)
    rows = [KINDS[k](model) for k in ("contact on the world", "universal", "coupling", "distance")]
    compared(model, rows, model.random(rng), rng.standard_normal(model.nv), 2, compliance=0.01)


@pytest.mark.parametrize("robot", ["go2", "g1", "cassie", "talos", "atlas", "atlas_hands", "iiwa", "solo", "hand"])
def test_robots_with_loops_and_contacts(robot):
    model = dl.load(robot)
    rng = np.random.default_rng(3)
    q, v = model.random(rng), rng.standard_normal(model.nv)
    compared(model, [], q, v, 3)
    leaves = [b for b in range(1, model.nbody) if b not in set(model.body_parent)][-2:]
    compared(model, [*model.loops, *(dl.PointContact(model, b) for b in leaves[: 2 if model.nv > 12 else 1])], q, v, 4, tolerance=2e-7)


@pytest.mark.parametrize("robot", ["go2", "g1"])
def test_redundant_contacts_keep_the_least_forces(robot):
    """Four points of one sole, and one of them twice: λ is not determined by the equations, its derivative is that of the choice."""
    model = dl.load(robot)
    q = model.random(np.random.default_rng(5))
    corners = [(0.1, 0.05, 0), (0.1, -0.05, 0), (-0.1, 0.05, 0), (-0.1, -0.05, 0), (0.1, 0.05, 0)]
    body = model.nbody - 1
    L = compared(model, [dl.PointContact(model, body, point=p) for p in corners], q, model.zero_velocity(), 6, still=True, tolerance=1e-7)
    assert L.redundant


def test_matrices_are_those_of_trees_where_there_are_no_rows():
    model = dl.load("g1")
    rng = np.random.default_rng(7)
    q, v, tau = model.random(rng), *rng.standard_normal((2, model.nv))
    d, tree = dl.constrained_dynamics_derivatives(model, q, v, tau, []), dl.forward_dynamics_derivatives(model, q, v, tau)
    for name in ("acceleration", "acceleration_q", "acceleration_v", "acceleration_tau"):
        agree(getattr(d, name), getattr(tree, name), 1e-10)
    assert d.forces_q.shape == (0, model.nv)


def test_matrices_products_and_columns_agree():
    model = dl.load("cassie")
    rng = np.random.default_rng(8)
    L = dl.linearize(model, model.random(rng), rng.standard_normal(model.nv), None, model.loops)
    d = L.derivatives()
    m = d.forces.size
    x, a, f = rng.standard_normal((model.nv, 7)), rng.standard_normal((model.nv, 7)), rng.standard_normal((m, 7))
    many = L.jvp(dq=x)
    agree(many.acceleration, d.acceleration_q @ x, 1e-12)
    agree(many.forces, d.forces_q @ x, 1e-12)
    back = L.vjp(a, f)
    for found, by_a, by_f in (
        (back.q, d.acceleration_q, d.forces_q),
        (back.v, d.acceleration_v, d.forces_v),
        (back.tau, d.acceleration_tau, d.forces_tau),
    ):
        agree(found, by_a.T @ a + by_f.T @ f, 1e-11)
    agree(L.vjp(acceleration_bar=a[:, 2]).q, L.vjp(acceleration_bar=a).q[:, 2], 1e-13)


def test_nothing_is_lost_far_from_the_origin():
    model = dl.load("go2")
    rng = np.random.default_rng(9)
    q, v = model.random(rng), rng.standard_normal(model.nv)
    feet = [dl.PointContact(model, b) for b in (4, 7)]
    near = dl.constrained_dynamics_derivatives(model, q, v, None, feet)
    q[:3] += (1000.0, -2000.0, 500.0)
    far = dl.constrained_dynamics_derivatives(model, q, v, None, feet)
    agree(far.acceleration_q, near.acceleration_q, 1e-11)
    agree(far.forces_q, near.forces_q, 1e-11)


# ---- the operator -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("robot", ["cassie", "g1"])
def test_operator_and_its_inverse(robot):
    model = dl.load(robot)
    rng = np.random.default_rng(10)
    q, dq = model.random(rng), rng.standard_normal(model.nv)
    rows = [*model.loops, dl.PointContact(model, model.nbody - 1), dl.Weld(model, 3, other_point=(0.1, 0.2, 0.3), baumgarte=GAINS)]
    G = dl.DelassusOperator(model, rows)
    m = G.shape[0]
    x, y, dx, dy, de, bar = rng.standard_normal((6, m))
    damping = rng.uniform(0.1, 1.0, m)
    D = dl.OperatorDerivatives(model, rows)
    D.update(q, damping)

    def matrix(s):
        G.update(dl.integrate(model, q, s * dq))
        return (G.to_matrix(),)

    (dG,) = slope(matrix)
    G0 = matrix(0)[0]
    scale = np.abs(dG).max() * 10
    agree(D.apply_jvp(x, dq, dx), dG @ x + G0 @ dx, 1e-8, scale)
    by_q, by_x = D.apply_vjp(x, bar)
    assert by_q @ dq == pytest.approx(bar @ dG @ x, abs=1e-8 * scale)
    agree(by_x, G0 @ bar, 1e-12)
    assert D.quadratic_gradient(x) @ dq == pytest.approx(x @ dG @ x, abs=1e-8 * scale)
    inverse = np.linalg.inv(G0 + np.diag(damping))
    wanted = inverse @ (dy - dG @ inverse @ y - de * (inverse @ y))
    agree(D.solve_jvp(y, dq, dy, de), wanted, 1e-7)
    by_q, by_y, by_e = D.solve_vjp(y, bar)
    total = by_q @ dq + by_y @ dy + by_e @ de
    assert total == pytest.approx(bar @ D.solve_jvp(y, dq, dy, de), rel=1e-10)
    many = D.solve_jvp(y, dq=np.stack([dq, 2 * dq], axis=1))
    agree(many[:, 1], 2 * many[:, 0], 1e-12)


# ---- bad input ----------------------------------------------------------------------------------------------------------------


def test_bad_input():
    model = dl.load("cassie")
    L = dl.LinearizedDynamics(model, model.loops)
    with pytest.raises(StaleError, match="update"):
        L.jvp(dq=np.zeros(model.nv))
    with pytest.raises(StaleError, match="update"):
        L.vjp(np.zeros(model.nv))
    q, v = model.keyframes["home"], model.zero_velocity()
    L.update(q, v)
    with pytest.raises(ArgumentError, match="dq, dv, dtau"):
        L.jvp()
    with pytest.raises(ArgumentError, match="dq"):
        L.jvp(np.zeros(3))
    with pytest.raises(ArgumentError, match="dv"):
        L.jvp(np.zeros(model.nv), np.zeros((model.nv, 2)))
    with pytest.raises(NotFiniteError, match="dq"):
        L.jvp(np.full(model.nv, np.nan))
    with pytest.raises(NotFiniteError, match="v"):
        L.update(q, np.full(model.nv, np.inf))
    with pytest.raises(StaleError):  # what failed left no state behind
        L.vjp(np.zeros(model.nv))


def test_rows_that_contradict_each_other_have_no_derivative():
    model = dl.load("iiwa")
    body = model.nbody - 1
    rows = [dl.Weld(model, body), dl.Weld(model, body, point=(0.3, 0, 0))]
    with pytest.raises(InaccurateError, match="infeasible"):
        dl.linearize(model, model.random(0), np.ones(model.nv), None, rows)


def test_operator_needs_a_state_and_damping():
    model = dl.load("go2")
    D = dl.OperatorDerivatives(model, [dl.PointContact(model, 4)])
    with pytest.raises(StaleError, match="update"):
        D.apply_vjp(np.zeros(3), np.zeros(3))
    D.update(model.neutral())
    with pytest.raises(StaleError, match="damping"):
        D.solve_vjp(np.zeros(3), np.zeros(3))
    with pytest.raises(ArgumentError, match="damping"):
        D.update(model.neutral(), damping=0.0)


# ---- random mechanisms --------------------------------------------------------------------------------------------------------


def random_mechanism(seed):
    """A random tree, of which some bodies are tied to others or to the world."""
    rng = np.random.default_rng([seed, 17])
    bodies = int(rng.integers(6, 14))
    joints = [("free",), ("hinge",), ("hinge",), ("slide",), ("ball",), ("hinge", "hinge")]
    parents = [int(rng.integers(0, k)) if k > 1 else -1 for k in range(bodies)]
    plan = [(p, joints[rng.integers(p >= 0, len(joints))], False) for p in parents]
    model = grow(plan, (seed, 5), every_armature=True)
    rows = []
    for _ in range(int(rng.integers(1, 3))):
        body, other = (int(b) for b in rng.choice(np.arange(1, model.nbody), 2, replace=False))
        kind = [dl.Connect, dl.PointContact, dl.Distance, dl.Hinge, dl.Universal, dl.Cylindrical][rng.integers(6)]
        more = {"length": 0.7} if kind is dl.Distance else {}
        here, there = rng.uniform(-0.5, 0.5, (2, 3))
        rows.append(kind(model, body, other=other, point=here, other_point=there, baumgarte=GAINS, **more))
    return model, rows, rng


def random_agrees(seed):
    """Compare, where the equations have a solution; returns whether they had."""
    model, rows, rng = random_mechanism(seed)
    q, v = model.random(rng), 0.3 * rng.standard_normal(model.nv)
    try:
        compared(model, rows, q, v, seed, tolerance=2e-6)
    except InaccurateError:
        return False
    return True


@pytest.mark.parametrize("group", range(4))
def test_random_mechanisms_with_ties(group):
    agreed = [random_agrees(seed) for seed in range(group, 40, 4)]
    assert sum(agreed) >= 3


@pytest.mark.exhaustive
@pytest.mark.parametrize("group", range(4))
def test_many_random_mechanisms_with_ties(group):
    agreed = [random_agrees(seed) for seed in range(1000 + group, 1200, 4)]
    assert sum(agreed) >= 25


@pytest.mark.parametrize("which", ["mass", "inertia", "armature"])
def test_by_parameters_against_changed_models(which):
    """A double pendulum whose end runs along a line: accelerations and forces of models with a little more mass, inertia or armature."""

    def made(x=0.0):
        mass, inertia, armature = (
            1.0 + x if which == "mass" else 1.0,
            0.02 + x if which == "inertia" else 0.02,
            0.1 + x if which == "armature" else 0.1,
        )
        return dl.load(
            f"""<mujoco><worldbody><body><joint axis="0 1 0" armature="{armature!r}"/><geom type="capsule" size=".02" fromto="0 0 0 .5 0 0" mass="1"/>
            <body pos=".5 0 0"><joint axis="0 1 0"/><inertial pos="0 0 0" mass="{mass!r}" diaginertia=".02 {inertia!r} .02"/></body></body></worldbody></mujoco>"""
        )

    q, v, tau, a_bar, f_bar, h = (
        np.array([0.3, -0.8]),
        np.array([1.0, 2.0]),
        np.array([0.5, -1.0]),
        np.array([0.7, -0.4]),
        np.array([1.3]),
        1e-5,
    )
    value, found = [], None
    for x in (h, -h, 0.0):
        model = made(x)
        L = dl.linearize(model, q, v, tau, [dl.LinkConstraint(model, [(2, [[0, 0, 1.0, 0, 0.3, 0]])])])
        value.append(a_bar @ L.result.acceleration + f_bar @ L.result.forces)
        found = L.parameter_vjp(a_bar, f_bar)
    place = {"mass": found.inertial[20], "inertia": found.inertial[26], "armature": found.armature[0]}[which]
    assert place == pytest.approx((value[0] - value[1]) / (2 * h), rel=1e-7)


def test_forces_that_share_a_load_have_no_derivative_by_parameters():
    model = dl.load("go2")
    twice = [dl.PointContact(model, "FL_calf"), dl.PointContact(model, "FL_calf")]
    L = dl.linearize(model, model.neutral(), model.zero_velocity(), None, twice)
    assert L.redundant
    assert L.parameter_vjp(acceleration_bar=np.ones(model.nv)).inertial.shape == (10 * model.nbody,)
    with pytest.raises(InaccurateError, match="forces_bar"):
        L.parameter_vjp(forces_bar=np.ones(6))
