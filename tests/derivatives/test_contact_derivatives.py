"""Contact forces to first order, against central differences of the solver at a tolerance of 1e-11, where no contact changes its mode."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, InaccurateError, NotFiniteError, StaleError

TIGHT = {"tolerance": 1e-11}


def random_problem(seed):
    """Contacts on a system with more degrees of freedom than rows: forces are unique."""
    rng = np.random.default_rng([seed, 23])
    n = int(rng.integers(1, 9))
    J = rng.standard_normal((3 * n, 3 * n + 4))
    G = J @ np.diag(rng.uniform(0.2, 2.0, 3 * n + 4)) @ J.T / n
    return rng, G, rng.standard_normal(3 * n), rng.uniform(0.1, 1.0, n)


def compared(seed):
    """Tangents against differences, adjoints against tangents; returns the modes, or None where a contact changes its own."""
    rng, G, g, friction = random_problem(seed)
    r = dl.solve_contacts(G, g, friction, **TIGHT)
    if r.status != "solved":
        return None
    d = dl.ContactDerivatives(G, r, friction)
    if d.kinks.any():
        return None
    A = rng.standard_normal(G.shape)
    dG, dg, df = 0.1 * (A + A.T), rng.standard_normal(g.size), 0.1 * rng.standard_normal(friction.size)

    def moved(s):
        x = dl.solve_contacts(G + s * dG, g + s * dg, friction + s * df, warm_start=r, **TIGHT)
        same = x.status == "solved" and dl.ContactDerivatives(G + s * dG, x, friction + s * df).modes == d.modes
        return (x.forces, x.velocities) if same else None

    h = 1e-5
    ends = moved(h), moved(-h)
    if None in ends:
        return None
    found = d.jvp(dG @ r.forces, dg, df)
    for name, plus, minus in zip(("forces", "velocities"), *ends, strict=True):
        wanted = (plus - minus) / (2 * h)
        assert np.abs(getattr(found, name) - wanted).max() <= 1e-5 * max(np.abs(wanted).max(), 1.0), (seed, name, d.modes)
    a, b = rng.standard_normal((2, g.size))
    back = d.vjp(a, b)
    total = back.g @ dg + back.friction @ df + back.g @ dG @ r.forces
    assert total == pytest.approx(a @ found.forces + b @ found.velocities, rel=1e-9, abs=1e-9)
    return d.modes


def test_random_problems():
    modes = [compared(seed) for seed in range(40)]
    seen = [m for m in modes if m is not None]
    assert len(seen) >= 30
    assert {"open", "sticking", "sliding"} <= {mode for m in seen for mode in m}


@pytest.mark.exhaustive
def test_three_hundred_random_problems():
    assert sum(compared(seed) is not None for seed in range(100, 400)) >= 240


def test_redundant_contacts_of_a_robot_that_stick():
    """Two feet with four points each, while q changes: forces change by the least that keeps them sticking, and their work on any motion is that of differences."""
    model = dl.load("g1")
    q = model.random(1)
    feet = [b for b in range(1, model.nbody) if b not in set(model.body_parent)][:2]
    corners = [(x, y, 0.0) for x in (0.08, -0.04) for y in (0.03, -0.03)]
    rows = [dl.PointContact(model, b, point=p, friction=100.0) for b in feet for p in corners]
    rng = np.random.default_rng(3)
    dq, v = rng.standard_normal(model.nv), 0.01 * rng.standard_normal(model.nv)
    G = dl.DelassusOperator(model, rows)

    def problem(s):
        G.update(dl.integrate(model, q, s * dq))
        lift = G.jacobian @ np.eye(model.nv)[2]  # the floor comes towards the feet: rows are of one rigid motion still
        return G, G.jacobian @ v - 0.5 * lift

    G, g = problem(0.0)
    assert np.linalg.matrix_rank(G.to_matrix(), tol=1e-9) < G.shape[0]
    r = dl.solve_contacts(G, g, **TIGHT)
    d = dl.ContactDerivatives(G, r)
    assert set(d.modes) == {"sticking"}
    pushed = G.jacobian.T @ r.forces
    operator = dl.OperatorDerivatives(model, rows)
    operator.update(q)
    h = 1e-5
    dg = (problem(h)[1] - problem(-h)[1]) / (2 * h)
    found = d.jvp(operator.apply_jvp(r.forces, dq=dq), dg)
    assert np.abs(found.velocities).max() <= 1e-7  # of dg by differences
    # what the forces do to the joints does not depend on how they share it: J(q + s dq)ᵀ λ by differences
    ends = []
    for s in (h, -h):
        problem(s)
        x = dl.solve_contacts(*problem(s), **TIGHT)
        ends.append(G.jacobian.T @ x.forces)
    problem(h)
    turned = G.jacobian.T @ r.forces
    problem(-h)
    turned = (turned - G.jacobian.T @ r.forces) / (2 * h)
    problem(0.0)
    wanted = (ends[0] - ends[1]) / (2 * h)
    assert np.abs(G.jacobian.T @ found.forces + turned - wanted).max() <= 1e-4 * max(np.abs(wanted).max(), np.abs(pushed).max())


def test_limits_friction_of_joints_and_equalities():
    model = dl.load("go2")
    rows = [
        dl.PointContact(model, 4),
        dl.JointLimit(model, 2, "lower"),
        dl.JointLimit(model, 3, "upper"),
        dl.JointFriction(model, 5, 0.2),
        dl.Connect(model, 7),
    ]
    G = dl.DelassusOperator(model, rows)
    G.update(model.random(2))
    m = G.shape[0]
    rng = np.random.default_rng(4)
    g, dg = rng.standard_normal((2, m))
    r = dl.solve_contacts(G, g, **TIGHT)
    d = dl.ContactDerivatives(G, r)
    assert {"free", "bound"} <= set(d.modes)
    h = 1e-6
    plus, minus = (dl.solve_contacts(G, g + s * dg, warm_start=r, **TIGHT) for s in (h, -h))
    wanted = (plus.forces - minus.forces) / (2 * h)
    assert np.abs(d.jvp(dg=dg).forces - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_a_contact_that_is_about_to_slide_is_a_kink():
    G = np.eye(3)
    r = dl.solve_contacts(G, [-1.0, 0.5, 0.0], [0.5], **TIGHT)
    assert dl.ContactDerivatives(G, r, [0.5]).kinks.tolist() == [True]


@pytest.mark.parametrize("across", [0.0, 0.3])
def test_a_contact_without_friction_slides(across):
    """Also where it does not move yet: nothing keeps it from moving."""
    G = np.array([[1.0, 0.2, 0.0], [0.2, 1.5, 0.0], [0.0, 0.0, 2.0]])
    g = np.array([-1.0, -0.2 + across, 0.0])  # the force on the normal stops it along the tangent where across is zero
    r = dl.solve_contacts(G, g, [0.0], **TIGHT)
    d = dl.ContactDerivatives(G, r, [0.0])
    assert d.modes == ("sliding",)
    moved = d.jvp(dg=[0.1, 1.0, -0.5])
    assert np.allclose(moved.forces, [-0.1, 0, 0])
    assert np.allclose(moved.velocities, [0, 1 - 0.02, -0.5])


def test_limits_and_dry_friction_have_kinks_too():
    model = dl.load("iiwa")
    rows = [dl.JointLimit(model, 1, "lower"), dl.JointFriction(model, 2, 0.5), dl.JointFriction(model, 3, 0.5), dl.Connect(model, 7)]
    G = np.eye(6)
    for g, kinks in (
        ([-1.0, 0.2, 2.0, 1.0, 0.0, 0.0], [0, 0, 0, 0, 0, 0]),
        ([0.0, 0.2, 2.0, 1.0, 0.0, 0.0], [1, 0, 0, 0, 0, 0]),  # a limit that touches and does not push
        ([-1.0, 0.5, -0.5, 1.0, 0.0, 0.0], [0, 1, 1, 0, 0, 0]),  # friction that is just used up
    ):
        r = dl.solve_contacts(G, g, rows, **TIGHT)
        assert dl.ContactDerivatives(G, r, rows).kinks.tolist() == [bool(k) for k in kinks]


def test_bounds_of_dry_friction():
    """A joint that slips is slowed by what its bound grows; one that holds is not."""
    model = dl.load("iiwa")
    rows = [dl.JointFriction(model, 2, 0.5), dl.JointFriction(model, 3, 0.5), dl.JointFriction(model, 4, 0.5)]
    G = np.diag([1.0, 2.0, 4.0])
    d = dl.ContactDerivatives(G, dl.solve_contacts(G, [2.0, -3.0, 0.1], rows, **TIGHT), rows)
    assert d.modes == ("bound", "bound", "free")
    found = d.jvp(dlower=[-1.0, -1.0, -1.0], dupper=[1.0, 1.0, 1.0])
    assert np.allclose(found.forces, [-1.0, 1.0, 0.0])
    assert np.allclose(found.velocities, [-1.0, 2.0, 0.0])
    back = d.vjp(velocities_bar=[1.0, 1.0, 1.0])
    assert np.allclose(back.lower, [1.0, 0.0, 0.0])
    assert np.allclose(back.upper, [0.0, 2.0, 0.0])


@pytest.mark.parametrize("smoothing", [None, 1e-3])
def test_columns_are_what_vectors_are(smoothing):
    rng, G, g, friction = random_problem(7)
    d = dl.ContactDerivatives(G, dl.solve_contacts(G, g, friction, **TIGHT), friction, smoothing=smoothing)
    m = g.size
    dg, df = rng.standard_normal((m, 4)), rng.standard_normal((friction.size, 4))
    a, b = rng.standard_normal((2, m, 4))
    found, back = d.jvp(dg=dg, dfriction=df), d.vjp(a, b)
    assert found.forces.shape == (m, 4)
    assert back.friction.shape == (friction.size, 4)
    for k in range(4):
        one, one_back = d.jvp(dg=dg[:, k], dfriction=df[:, k]), d.vjp(a[:, k], b[:, k])
        for many, single in zip((*found, back.g, back.friction), (*one, one_back.g, one_back.friction), strict=True):
            assert np.allclose(many[:, k], single, rtol=1e-13, atol=1e-14)


def test_smoothing_feels_a_contact_that_is_just_open_and_friction_that_holds():
    G = np.eye(3)
    for g, across in ([0.01, 0.3, 0.0], None), ([-1.0, 0.1, 0.0], 0.2):
        r = dl.solve_contacts(G, g, [0.5], **TIGHT)
        plain, smooth = (dl.ContactDerivatives(G, r, [0.5], smoothing=k) for k in (None, 1e-3))
        assert plain.modes == smooth.modes == ("open" if across is None else "sticking",)
        # towards the floor, a force; more friction, a force or none
        assert np.abs(smooth.forces - r.forces).max() > 1e-4
        if across is None:
            assert (plain.jvp(dg=[-1.0, 0, 0]).forces == 0).all()
            assert smooth.jvp(dg=[-1.0, 0, 0]).forces[0] > 0.1
        else:
            assert (plain.jvp(dfriction=[1.0]).forces == 0).all()
            assert np.abs(smooth.jvp(dfriction=[1.0]).forces).max() > 1e-4


def test_smoothed_forces_against_differences_of_themselves():
    rng, G, g, friction = random_problem(3)
    dg, df = rng.standard_normal(g.size), 0.1 * rng.standard_normal(friction.size)

    def smooth(s):
        r = dl.solve_contacts(G, g + s * dg, friction + s * df, **TIGHT)
        return dl.ContactDerivatives(G, r, friction + s * df, smoothing=1e-3)

    h = 1e-5
    plus, minus, found = smooth(h), smooth(-h), smooth(0.0).jvp(dg=dg, dfriction=df)
    for name in ("forces", "velocities"):
        wanted = (getattr(plus, name) - getattr(minus, name)) / (2 * h)
        assert np.abs(getattr(found, name) - wanted).max() <= 1e-6 * max(np.abs(wanted).max(), 1.0)


def test_a_pile_of_an_operator_is_that_of_its_matrix_until_the_operator_moves_on():
    scene = dl.scenes.load("box-stack")
    G = dl.DelassusOperator(scene.model, scene.constraints)
    G.update(scene.q)
    v = 0.01 * dl.forward_dynamics(scene.model, scene.q, scene.model.zero_velocity(), None)
    v[0::6] += 0.05 * np.random.default_rng(0).standard_normal(scene.model.nv // 6)
    r = dl.solve_contacts(G, G.jacobian @ v, tolerance=1e-10)
    d, of_matrix = dl.ContactDerivatives(G, r), dl.ContactDerivatives(G.to_matrix(), r, scene.constraints)
    assert d.modes == of_matrix.modes
    assert d.redundant
    dg = G.jacobian @ np.random.default_rng(2).standard_normal(scene.model.nv)
    wanted = of_matrix.jvp(dg=dg)
    tolerance = 1e-6 * np.abs(wanted.velocities).max()
    assert np.abs(d.jvp(dg=dg).velocities - wanted.velocities).max() <= tolerance
    # someone else uses its factor: it is made anew
    dl.solve_contacts(G, G.jacobian @ v[::-1], tolerance=1e-3)
    G.damping = 1e-3
    assert np.abs(d.jvp(dg=dg).velocities - wanted.velocities).max() <= tolerance
    assert not d._modes.dense
    G.update(scene.q)
    with pytest.raises(StaleError, match="updated"):
        d.jvp(dg=dg)
    with pytest.raises(StaleError, match="updated"):
        d.vjp(dg)
    fresh = dl.DelassusOperator(scene.model, scene.constraints)
    with pytest.raises(StaleError, match="update"):
        dl.ContactDerivatives(fresh, r)


def test_bad_input():
    G = np.eye(3)
    r = dl.solve_contacts(G, [-1.0, 0.1, 0.0], [0.5], **TIGHT)
    with pytest.raises(ArgumentTypeError, match="solution"):
        dl.ContactDerivatives(G, r.forces, [0.5])
    with pytest.raises(ArgumentError, match="constraints"):
        dl.ContactDerivatives(G, r)
    with pytest.raises(ArgumentError, match="G"):
        dl.ContactDerivatives(np.eye(6), r, [0.5])
    d = dl.ContactDerivatives(G, r, [0.5])
    with pytest.raises(ArgumentError, match="dg"):
        d.jvp(dg=np.zeros(2))
    with pytest.raises(ArgumentError, match="at least one"):
        d.jvp()
    with pytest.raises(ArgumentError, match="dfriction"):
        d.jvp(dg=np.zeros((3, 2)), dfriction=[1.0])
    with pytest.raises(NotFiniteError, match="forces_bar"):
        d.vjp([np.nan, 0, 0])
    with pytest.raises(ArgumentError, match="operator"):
        d.jvp(dq=np.zeros(3))
    for smoothing in (0.0, -1.0):
        with pytest.raises(ArgumentError, match="smoothing"):
            dl.ContactDerivatives(G, r, [0.5], smoothing=smoothing)
    with pytest.raises(NotFiniteError, match="smoothing"):
        dl.ContactDerivatives(G, r, [0.5], smoothing=np.inf)
    with pytest.raises(ArgumentTypeError, match="operator"):
        dl.ContactDerivatives(G, r, [0.5], operator=G)
    unfinished = dl.solve_contacts(np.eye(3), [-1.0, 0.7, 0.2], [0.5], method="admm", max_iterations=1)
    if unfinished.status != "solved":
        with pytest.raises(InaccurateError, match="solve_contacts"):
            dl.ContactDerivatives(G, unfinished, [0.5])
