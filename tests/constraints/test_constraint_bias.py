"""Position errors, velocities and drifts of rows are what their definitions say, and Baumgarte's bias lets errors die."""

import copy
import pickle
from functools import lru_cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.constraints import (
    CenterOfMass,
    Connect,
    ConstraintRows,
    Distance,
    Hinge,
    JointCoupling,
    JointFriction,
    JointLimit,
    LinkConstraint,
    PointContact,
    Weld,
    from_loop,
)
from oracles import errors
from oracles.compare import agree
from oracles.dense import Mechanism, hat

# sums of numbers of one size round at 1e-14; log of a rotation near half a turn loses some of that
CLOSE = 1e-12
# central differences of sixth order, h = 2e-3: h⁶ times a seventh derivative, and 1e-16 / h
STEP, CLOSE_DIFFERENCE = 2e-3, 1e-11
WEIGHTS = {3: 1 / 60, 2: -3 / 20, 1: 3 / 4, -1: -3 / 4, -2: 3 / 20, -3: -1 / 60}


def derivative(f):
    """Of f(t) at t = 0."""
    return sum(weight * np.asarray(f(k * STEP)) for k, weight in WEIGHTS.items()) / STEP


# ---- cases -----------------------------------------------------------------------------------------------------------------


def assembly():
    """Every joint, a body fused to the ground, one fused to a link, deep and apart."""
    b = dl.ModelBuilder("assembly", gravity=(0.0, 0.0, -9.81))
    rng = np.random.default_rng(5)
    plan = [
        ("base", "world", "free"), ("arm", "base", "hinge"), ("hand", "arm", "ball"), ("tool", "hand", None), ("tip", "hand", "slide"),
        ("post", "world", None), ("door", "post", "hinge"), ("cart", "world", "slide"), ("pole", "cart", "hinge"), ("ball", "world", "ball"),
    ]  # fmt: skip
    for name, parent, kind in plan:
        turned = rng.standard_normal(4)
        b.add_body(name, parent, position=rng.uniform(-0.5, 0.5, 3), quaternion=turned / np.linalg.norm(turned), mass=1.0 + rng.random(),
                   com=rng.uniform(-0.2, 0.2, 3), inertia=(0.1, 0.12, 0.15))  # fmt: skip
        if kind:
            line = {"axis": rng.standard_normal(3), "reference": rng.uniform(-1, 1)} if kind in ("hinge", "slide") else {}
            b.add_joint(name, kind, name=name, **line)
    return b.build()


MODELS = {name: lambda name=name: dl.load(name) for name in ("cassie", "g1", "iiwa", "hand")} | {
    "assembly": assembly, "swimmer": lambda: dl.scenes.swimmer(6), "four_bar": lambda: dl.scenes.four_bar(), "box_stack": lambda: dl.scenes.box_stack(3),
}  # fmt: skip
PAIRS = {
    "two limbs": ("tip", "door"), "other tree": ("pole", "arm"), "ancestor": ("tip", "base"), "descendant": ("base", "tip"), "fused": ("tool", "door"),
    "fused to its link": ("tool", "hand"), "fixed post": ("hand", "post"), "the world": ("tip", None), "from the world": ("world", "tip"), "itself": ("arm", "arm"),
    "nothing moves": ("post", None), "ball and cart": ("ball", "cart"),
}  # fmt: skip


@lru_cache(maxsize=8)
def standing(name):
    model = MODELS[name]()
    return Mechanism(model, model.random(3), np.random.default_rng(4).standard_normal(model.nv))


def cases():
    for kind in errors.BETWEEN:
        for where, pair in PAIRS.items():
            # a body's own points and axes never turn into each other
            if where not in ("itself", "nothing moves", "fused to its link") or kind != "distance":
                yield pytest.param("assembly", kind, pair, id=f"assembly-{kind}-{where}")
    for kind in errors.OF_MODEL:
        yield pytest.param("assembly", kind, None, id=f"assembly-{kind}")
    for name in MODELS:
        if name == "assembly":
            continue
        model = MODELS[name]()
        for kind in errors.possible(model):
            yield pytest.param(name, kind, (model.nbody - 1, 1 + model.nbody // 2), id=f"{name}-{kind}")


CASES = list(cases())


def made(name, kind, pair, closed=False):
    o = standing(name)
    return o, errors.aimed(np.random.default_rng(len(kind)), o.model, kind, pair, o if closed else None)


def along(o, t):
    """The mechanism a time t later, its velocity constant."""
    return Mechanism(o.model, dl.integrate(o.model, o.q, o.v, t), o.v)


# ---- definitions -----------------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "kind", "pair"), CASES)
def test_error_is_its_definition(name, kind, pair):
    o, c = made(name, kind, pair)
    agree(dl.constraint_error(o.model, o.q, [c.constraint]), c.error(o), CLOSE, 1.0)


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "kind", "pair"), CASES)
def test_velocity_is_the_dense_jacobian_times_v(name, kind, pair):
    o, c = made(name, kind, pair)
    agree(dl.constraint_velocity(o.model, o.q, o.v, [c.constraint]), c.velocity(o, o.v), CLOSE, c.size(o, o.v))


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "kind", "pair"), CASES)
def test_drift_is_the_rate_of_the_dense_velocity_at_constant_v(name, kind, pair):
    o, c = made(name, kind, pair)
    want = derivative(lambda t: c.velocity(along(o, t), o.v))
    agree(dl.constraint_drift(o.model, o.q, o.v, [c.constraint]), want, CLOSE_DIFFERENCE, c.size(o, o.v) ** 2)


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "kind", "pair"), [case for case in CASES if case.values[1] not in ("links", "friction")])
def test_where_a_constraint_holds_the_rate_of_its_error_is_its_velocity(name, kind, pair):
    o, c = made(name, kind, pair, closed=True)
    rows = ConstraintRows(o.model, [c.constraint])
    agree(rows.error(o.q), np.zeros(c.constraint.rows), CLOSE, 1.0)
    got = derivative(lambda t: rows.error(dl.integrate(o.model, o.q, o.v, t)))
    want = rows.velocity(o.q, o.v)
    if kind == "contact":
        # tangents may slide: they have no error
        assert not got[1:].any()
        want[1:] = 0.0
    agree(got, want, CLOSE_DIFFERENCE, c.size(o, o.v) ** 2)


@pytest.mark.parametrize(
    "kind", ["contact", "connect", "universal", "prismatic", "cylindrical", "planar", "distance", "coupling", "holding", "limit", "center"]
)
def test_rows_in_axes_of_their_own_have_that_rate_everywhere(kind):
    """So have those of points that slide: they are seen from the body whose axes they are in."""
    o, c = made("assembly", kind, ("tip", "door"))
    rows = ConstraintRows(o.model, [c.constraint])
    k = {"contact": 1, "prismatic": 2, "cylindrical": 2, "planar": 1}.get(kind, c.constraint.rows)
    got = derivative(lambda t: rows.error(dl.integrate(o.model, o.q, o.v, t)))
    agree(got[:k], rows.velocity(o.q, o.v)[:k], CLOSE_DIFFERENCE, c.size(o, o.v) ** 2)


def test_carried_axes_turn_the_error_they_measure():
    """Off its manifold a hinge's point error has the rate J v + (ω × n)·d."""
    o, axis = standing("assembly"), (1.0, -2.0, 0.5)
    rows = ConstraintRows(o.model, [Hinge(o.model, "tip", "door", axis=axis)])
    d = errors.position(o, "tip", np.zeros(3)) - errors.position(o, "door", np.zeros(3))
    ω = dl.frame_velocity(o.model, o.q, o.v, "tip")[3:]
    turning = [np.cross(ω, n) @ d for n in errors.axes(axis) @ errors.turn(o, "tip").T]
    assert np.abs(turning).min() > 0.01
    got = derivative(lambda t: rows.error(dl.integrate(o.model, o.q, o.v, t)))[:3]
    agree(got, rows.velocity(o.q, o.v)[:3] + turning, CLOSE_DIFFERENCE, 10.0)


def test_rotation_error_of_a_weld_has_the_rate_of_the_logarithm():
    """Off its manifold: D⁻¹(e) (ω − exp(e) ω_other), D the derivative of exp on the left."""
    o = standing("assembly")
    rows = ConstraintRows(o.model, [Weld(o.model, "tip", "door")])
    e = rows.error(o.q)[3:]
    θ, E = np.linalg.norm(e), hat(e)
    D_inverse = np.eye(3) - E / 2 + (1 / θ**2 - (1 + np.cos(θ)) / (2 * θ * np.sin(θ))) * E @ E
    ω, ω_other = (dl.frame_velocity(o.model, o.q, o.v, body)[3:] for body in ("tip", "door"))
    got = derivative(lambda t: rows.error(dl.integrate(o.model, o.q, o.v, t)))[3:]
    want = D_inverse @ (ω - Rotation.from_rotvec(e).as_matrix() @ ω_other)
    agree(got, want, CLOSE_DIFFERENCE, 10.0)
    assert np.abs(want - rows.velocity(o.q, o.v)[3:]).max() > 0.1


# ---- closed forms ----------------------------------------------------------------------------------------------------------


def bead():
    b = dl.ModelBuilder("bead")
    b.add_body("bead", "world", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.add_joint("bead", "hinge", axis=(0.0, 0.0, 1.0))
    return b.build()


def test_point_on_a_circle_falls_to_its_center():
    model, r, ω = bead(), 0.7, 3.0
    x = np.array([np.cos(0.4), np.sin(0.4), 0.0])
    at = {"point": (r, 0.0, 0.0), "other_point": (5.0, 0.0, 0.0)}
    d = r * x - [5.0, 0.0, 0.0]
    length = np.linalg.norm(d)
    lists = [PointContact(model, 1, normal=x, **at), Connect(model, 1, **at), Distance(model, 1, length=2.0, **at), Weld(model, 1, **at)]
    drift = dl.constraint_drift(model, [0.4], [ω], lists)
    # a = −ω² r
    agree(drift[0], -(ω**2) * r, 1e-14)
    agree(drift[3:6], -(ω**2) * r * x, 1e-14)
    speed = ω * r * np.array([-x[1], x[0], 0.0])
    agree(drift[6], (-(ω**2) * r * x @ d + speed @ speed) / length - (speed @ d) ** 2 / length**3, 1e-14)
    agree(drift[7:], np.concatenate([-(ω**2) * r * x, np.zeros(3)]), 1e-14)
    error = dl.constraint_error(model, [0.4], lists)
    agree(error[:3], [x @ d, 0.0, 0.0], 1e-14)
    agree(error[6], length - 2.0, 1e-14)


def test_hinge_error_is_the_angle_between_the_axes():
    model = dl.scenes.box_stack(1)
    q = model.neutral()
    for angle in (0.0, 1e-9, 0.3, 2.0, np.pi - 1e-6, np.pi):
        tilted = (np.sin(angle), 0.0, np.cos(angle))
        e = dl.constraint_error(model, q, [Hinge(model, 1, axis=(0.0, 0.0, 1.0), other_axis=tilted)])
        agree(e[:3], np.zeros(3), 1e-15, 1.0)
        agree(np.linalg.norm(e[3:]), angle, 1e-12, 1.0)


@pytest.mark.parametrize("axis", np.vstack([np.eye(3), -np.eye(3), np.random.default_rng(2).standard_normal((4, 3))]))
def test_weld_error_is_the_rotation_vector_up_to_half_a_turn(axis):
    model, n = dl.scenes.box_stack(1), axis / np.linalg.norm(axis)
    for angle in (0.0, 1e-9, 0.3, 2.0, 3.0, np.pi - 1e-9, np.pi):
        q = model.neutral()
        q[3:] = np.cos(angle / 2), *(np.sin(angle / 2) * n)
        e = dl.constraint_error(model, q, [Weld(model, 1, other_quaternion=(1.0, 0.0, 0.0, 0.0))])[3:]
        # at half a turn either sign is the shortest
        agree(e if angle < 3.1 or e @ n > 0 else -e, angle * n, 1e-12, 1.0)


def test_limit_is_as_far_as_the_range_says():
    model = dl.load("iiwa")
    q = model.random(1)
    low, high = model.joint_range[2]
    assert np.isfinite([low, high]).all()
    agree(dl.constraint_error(model, q, [JointLimit(model, 2), JointLimit(model, 2, "upper")]), [q[2] - low, high - q[2]], 1e-15)


def test_pairs_that_slide_let_go_what_they_should():
    """The null space of two free boxes' rows: along the axis, about it, across it."""
    model = dl.scenes.box_stack(2)
    rng = np.random.default_rng(3)
    q, axis = model.random(rng), rng.standard_normal(3)
    o = Mechanism(model, q)
    n = errors.axes(axis)[0]
    pairs = {dl.Prismatic: (n, []), dl.Cylindrical: (n, [n]), dl.Planar: (errors.axes(axis)[1:], [n])}
    for make, (slides, turns) in pairs.items():
        x = rng.uniform(-1, 1, 3)
        rows = ConstraintRows(model, [make(model, 1, 2, axis=axis, point=rng.uniform(-1, 1, 3), other_point=x)])
        R = errors.turn(o, 1)
        # where the other's point is, seen from the first box
        at = R.T @ (errors.position(o, 2, x) - o.placement[1, :3, 3])
        motions = [np.concatenate([R @ d, np.zeros(3)]) for d in np.atleast_2d(slides)]
        motions += [np.concatenate([-R @ np.cross(d, at), d]) for d in turns]
        for motion in motions:
            agree(rows.velocity(q, np.concatenate([motion, np.zeros(6)])), np.zeros(rows._constraints[0].rows), 1e-14, 1.0)
        J = np.array([rows.velocity(q, e) for e in np.eye(12)]).T
        assert np.linalg.matrix_rank(J[:, :6]) == 6 - len(motions)


# ---- what is not said is as it is ------------------------------------------------------------------------------------------


def test_without_a_target_there_is_no_error():
    model = assembly()
    K = np.ones((2, 6))
    free = [
        PointContact(model, "tip"), Connect(model, "tip"), Weld(model, "tip"), Hinge(model, "tip"), Hinge(model, "tip", "world"), Distance(model, "tip", "door"),
        Distance(model, "tip", other_point=(1.0, 2.0, 3.0)), CenterOfMass(model), JointFriction(model, "ball"), LinkConstraint(model, [("tip", K)]),
    ]  # fmt: skip
    e = dl.constraint_error(model, model.random(0), free)
    assert e.shape == (sum(c.rows for c in free),)
    assert not e.any()


def test_parts_of_a_target_are_independent():
    model = assembly()
    q = model.random(0)
    e = dl.constraint_error(model, q, [Weld(model, "tip", other_point=(1, 2, 3)), Weld(model, "tip", other_quaternion=(1, 0, 0, 0))])
    agree(e[:3], dl.point_position(model, q, "tip") - [1, 2, 3], CLOSE)
    assert not e[3:9].any()
    assert e[9:].all()
    h = dl.constraint_error(model, q, [Hinge(model, "tip", other_point=(1, 2, 3)), Hinge(model, "tip", other_axis=(1, 0, 0))])
    assert h[:3].all()
    assert not h[3:8].any()
    assert h[8:].all()


def test_between_bodies_the_default_is_frame_on_frame():
    model = assembly()
    q = model.random(0)
    said = {"point": np.zeros(3), "other_point": np.zeros(3)}
    facing = {"quaternion": (1, 0, 0, 0), "other_quaternion": (1, 0, 0, 0)}
    axis = (1.0, -2.0, 0.5)
    short = [
        PointContact(model, "tip", other="door"),
        Connect(model, "tip", "door"),
        Weld(model, "tip", "door"),
        Hinge(model, "tip", "door", axis=axis),
        dl.Universal(model, "tip", "door"),
        dl.Prismatic(model, "tip", "door", axis=axis),
        dl.Cylindrical(model, "tip", "door", axis=axis),
        dl.Planar(model, "tip", "door", axis=axis),
    ]
    full = [
        PointContact(model, "tip", other="door", **said), Connect(model, "tip", "door", **said), Weld(model, "tip", "door", **said, **facing),
        Hinge(model, "tip", "door", axis=axis, other_axis=axis, **said), dl.Universal(model, "tip", "door", axis=(1, 0, 0), other_axis=(0, 1, 0), **said),
        dl.Prismatic(model, "tip", "door", axis=axis, **said, **facing), dl.Cylindrical(model, "tip", "door", axis=axis, other_axis=axis, **said),
        dl.Planar(model, "tip", "door", axis=axis, other_axis=axis, **said),
    ]  # fmt: skip
    e = dl.constraint_error(model, q, short)
    assert (e == dl.constraint_error(model, q, full)).all()
    assert np.flatnonzero(e == 0).tolist() == [1, 2]


# ---- bias ------------------------------------------------------------------------------------------------------------------


def all_kinds(o):
    """A constraint of every kind."""
    rng = np.random.default_rng(9)
    return [errors.aimed(rng, o.model, kind, ("tip", "door")).constraint for kind in errors.KINDS]


def test_bias_adds_each_constraints_gains():
    model = assembly()
    q, v = model.random(1), np.random.default_rng(1).standard_normal(model.nv)
    make = [
        lambda g: PointContact(model, "tip", other="door", baumgarte=g), lambda g: Weld(model, "hand", "cart", baumgarte=g),
        lambda g: Hinge(model, "arm", "ball", baumgarte=g), lambda g: Distance(model, "tip", "pole", length=0.5, baumgarte=g),
        lambda g: JointCoupling(model, "arm", "pole", polynomial=(1, 2, 3, 4, 5), baumgarte=g), lambda g: JointCoupling(model, "tip", baumgarte=g),
        lambda g: JointLimit(model, "door", bound=0.2, baumgarte=g), lambda g: CenterOfMass(model, target=(1, 2, 3), baumgarte=g),
        lambda g: Connect(model, "tip", "base", baumgarte=g), lambda g: JointFriction(model, "ball", baumgarte=(0.0, g[1])),
        lambda g: LinkConstraint(model, [("tip", np.ones((2, 6)))], baumgarte=(0.0, g[1])),
    ]  # fmt: skip
    gains = [(100.0 + k, 10.0 + k) for k in range(len(make))]
    listed = [m(g) for m, g in zip(make, gains, strict=True)]
    assert listed[1].baumgarte == (101.0, 11.0)
    assert Connect(model, "tip").baumgarte == (0.0, 0.0)
    kp, kd = (np.repeat([c.baumgarte[i] for c in listed], [c.rows for c in listed]) for i in (0, 1))
    e, u, a = dl.constraint_error(model, q, listed), dl.constraint_velocity(model, q, v, listed), dl.constraint_drift(model, q, v, listed)
    agree(dl.constraint_bias(model, q, v, listed), a + kd * u + kp * e, 1e-14, 1 + np.abs(kp * e) + np.abs(kd * u) + np.abs(a))


def test_gains_change_nothing_else():
    model = assembly()
    q, v = model.random(1), np.random.default_rng(1).standard_normal(model.nv)
    pair = [[Weld(model, "tip", "door", baumgarte=g)] for g in ((0, 0), (50, 5))]
    for f in (dl.constraint_velocity, dl.constraint_drift):
        assert (f(model, q, v, pair[0]) == f(model, q, v, pair[1])).all()
    assert (dl.constraint_bias(model, q, v, pair[0]) == dl.constraint_drift(model, q, v, pair[0])).all()


def corrected(model, constraints, q, seconds, h=0.01):
    """Move from rest with some v̇ for which J v̇ + γ = 0, by the fourth-order Runge–Kutta method on the manifold."""
    rows, G = ConstraintRows(model, constraints), dl.DelassusOperator(model, constraints)

    def acceleration(q, v):
        G.update(q)
        return np.linalg.lstsq(G.jacobian @ np.eye(model.nv), -rows.bias(q, v), rcond=None)[0]

    v = model.zero_velocity()
    for _ in range(round(seconds / h)):
        q1, v1 = q, v
        a1 = acceleration(q1, v1)
        q2, v2 = dl.integrate(model, q, v1, h / 2), v + a1 * h / 2
        a2 = acceleration(q2, v2)
        q3, v3 = dl.integrate(model, q, v2, h / 2), v + a2 * h / 2
        a3 = acceleration(q3, v3)
        q4, v4 = dl.integrate(model, q, v3, h), v + a3 * h
        a4 = acceleration(q4, v4)
        q = dl.integrate(model, q, (v1 + 2 * v2 + 2 * v3 + v4) / 6, h)
        v = v + (a1 + 2 * a2 + 2 * a3 + a4) * h / 6
    return rows.error(q)


GAINS = (25.0, 10.0)
DYING = {
    "connect": lambda m: Connect(m, "tip", "door", baumgarte=GAINS),
    "world": lambda m: Connect(m, "tip", other_point=(0.3, 0.2, 0.1), baumgarte=GAINS),
    "distance": lambda m: Distance(m, "tip", "pole", length=0.4, baumgarte=GAINS),
    "coupling": lambda m: JointCoupling(m, "arm", "pole", polynomial=(0.1, 0.5, 0.2, 0.0, 0.0), baumgarte=GAINS),
    "limit": lambda m: JointLimit(m, "arm", "upper", bound=-0.5, baumgarte=GAINS),
    "center": lambda m: CenterOfMass(m, target=(0.1, 0.2, 0.3), baumgarte=GAINS),
}


@pytest.mark.parametrize("kind", DYING)
def test_error_dies_as_the_gains_say(kind):
    model = assembly()
    q, constraint = model.random(2), DYING[kind](model)
    e, ω, t = dl.constraint_error(model, q, [constraint]), 5.0, 0.6
    # ë + 2 ω ė + ω² e = 0 from rest; the integrator is of fourth order
    agree(corrected(model, [constraint], q, t), e * (1 + ω * t) * np.exp(-ω * t), 1e-4, np.abs(e).max())


@pytest.mark.parametrize("make", [Weld, Hinge], ids=["weld", "hinge"])
def test_rotation_errors_die_too(make):
    model = assembly()
    q, constraint = model.random(2), make(model, "tip", "door", baumgarte=GAINS)
    e = dl.constraint_error(model, q, [constraint])
    assert np.abs(e[3:]).max() > 0.5
    assert np.abs(corrected(model, [constraint], q, 4.0)).max() < 1e-6


# ---- loops, precision, places ----------------------------------------------------------------------------------------------


def test_loops_stand_in_lists_and_those_switched_off_do_not():
    model = dl.load("cassie")
    q, v = model.random(0), np.random.default_rng(0).standard_normal(model.nv)
    made = [from_loop(model, loop, baumgarte=(4.0, 2.0)) for loop in model.loops]
    assert (dl.constraint_error(model, q, model.loops) == dl.constraint_error(model, q, made)).all()
    agree(
        dl.constraint_bias(model, q, v, made) - dl.constraint_bias(model, q, v, model.loops),
        2 * dl.constraint_velocity(model, q, v, made) + 4 * dl.constraint_error(model, q, made),
        1e-12,
    )
    agree(dl.constraint_error(model, model.keyframes["home"], model.loops), np.zeros(12), 1e-9, 1.0)


FUNCTIONS = {
    "error": lambda m, q, v, c: dl.constraint_error(m, q, c), "velocity": dl.constraint_velocity, "drift": dl.constraint_drift, "bias": dl.constraint_bias,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision_is_near_double(name):
    o = standing("assembly")
    constraints = all_kinds(o)
    q, v = o.q.astype(np.float32), o.v.astype(np.float32)
    single = FUNCTIONS[name](o.model, q, v, constraints)
    wide = FUNCTIONS[name](o.model, dl.normalize(o.model, q.astype(float)), v.astype(float), constraints)
    assert single.dtype == np.float32
    assert wide.dtype == np.float64
    agree(single, wide, 3e-6, 1 + np.abs(wide).max())
    assert FUNCTIONS[name](o.model, q.astype(float), v, constraints).dtype == np.float64


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_constraints_are_no_rows(name):
    model = dl.load("go2")
    assert FUNCTIONS[name](model, model.neutral(), model.zero_velocity(), []).shape == (0,)
    rigid = dl.ModelBuilder("rigid")
    rigid.add_body("a", mass=1.0)
    model = rigid.build()
    assert FUNCTIONS[name](model, [], [], [Connect(model, "a", other_point=(1, 2, 3))]).shape == (3,)


@pytest.mark.parametrize("offset", [np.array([1e3, -700.0, 300.0]), np.array([1e5, -7e4, 3e4])], ids=["1 km", "100 km"])
def test_far_from_the_origin_no_digit_is_lost(offset):
    model = dl.load("go2")
    # numbers that 100 km away still have all their digits
    q = model.random(2)
    q[:3] = np.round(q[:3] * 2**20) / 2**20
    v = np.random.default_rng(3).standard_normal(model.nv)

    def listed(at):
        ground, feet = np.array([0.25, 0.5, 0.125]) + at, model.nbody - 1
        return [
            PointContact(model, feet, normal=(1, 2, 3), other_point=ground), Connect(model, feet, other_point=ground), Weld(model, feet, 3),
            Hinge(model, feet, other_point=ground, other_axis=(1, 0, 0)), Distance(model, feet, other_point=ground, length=0.5),
            Distance(model, feet, 4, length=0.5), CenterOfMass(model, target=ground),
        ]  # fmt: skip

    far = q.copy()
    far[:3] += offset
    for name in FUNCTIONS:
        want, got = (FUNCTIONS[name](model, x, v, listed(at)) for x, at in ((q, np.zeros(3)), (far, offset)))
        agree(got, want, 1e-14, 1 + np.abs(want).max())


# ---- the object ------------------------------------------------------------------------------------------------------------


def test_rows_fill_out_even_if_it_is_an_argument():
    model = dl.scenes.box_stack(2)
    q, v = model.random(0), np.random.default_rng(0).standard_normal(model.nv)
    rows = ConstraintRows(model, 2 * [Weld(model, 1, 2)])
    assert model.nv == 12
    for method in (rows.velocity, rows.drift, rows.bias):
        want, mine = method(q, v), v.copy()
        assert method(q, mine, out=mine) is mine
        assert (mine == want).all()
    rows = ConstraintRows(model, [*2 * [Weld(model, 1, 2)], *2 * [Distance(model, 1, 2, length=1.0)]])
    want, mine = rows.error(q), q.copy()
    assert rows.error(mine, out=mine) is mine
    assert (mine == want).all()


def test_rows_can_be_copied_and_pickled():
    model = dl.load("cassie")
    rows = ConstraintRows(model, model.loops, np.float32)
    q = model.random(0).astype(np.float32)
    for other in (copy.copy(rows), copy.deepcopy(rows), pickle.loads(pickle.dumps(rows))):
        assert other is not rows
        assert other._native is not rows._native
        assert (other.error(q) == rows.error(q)).all()
        assert other.dtype == np.float32
        assert other.model == model
        assert len(other.constraints) == len(rows.constraints)
    assert "12 rows" in repr(rows)
