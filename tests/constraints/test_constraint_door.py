"""A constraint that cannot be is refused by a typed error that names the argument."""

import numpy as np
import pytest

import delassus as dl
from delassus.constraints import (
    CenterOfMass,
    Connect,
    Cylindrical,
    Distance,
    Hinge,
    JointCoupling,
    JointFriction,
    JointLimit,
    LinkConstraint,
    Planar,
    PointContact,
    Prismatic,
    Universal,
    Weld,
    from_loop,
)
from delassus.errors import ArgumentError, ArgumentTypeError, NotFiniteError, QuaternionError, SingularError, UnknownNameError


def build():
    b = dl.ModelBuilder("mixed")
    for name, kind in (("base", "free"), ("ball", "ball"), ("hinge", "hinge"), ("slide", "slide")):
        b.add_body(name, "world" if kind == "free" else "base", mass=1.0, inertia=(1.0, 1.0, 1.0))
        b.add_joint(name, kind, name=name)
    b.add_body("fixed", "world", mass=1.0)
    return b.build()


MODEL = build()
TWO_BODIES = {
    "connect": Connect, "weld": Weld, "hinge": Hinge, "universal": Universal, "prismatic": Prismatic, "cylindrical": Cylindrical, "planar": Planar, "distance": Distance,
}  # fmt: skip
WITH_POINTS = TWO_BODIES | {"contact": PointContact}
K = np.ones((2, 6))


def refused(error, argument, work):
    with pytest.raises(error) as caught:
        work()
    assert type(caught.value) is error, f"{type(caught.value).__name__}: {caught.value}"
    assert argument in str(caught.value), str(caught.value)


@pytest.mark.parametrize("kind", WITH_POINTS)
@pytest.mark.parametrize("argument", ["point", "other_point"])
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ((0.0, 0.0), ArgumentError), (1.0, ArgumentError), ((0.0, np.nan, 0.0), NotFiniteError), ((np.inf, 0.0, 0.0), NotFiniteError),
        ("here", ArgumentTypeError), ([1j, 0, 0], ArgumentTypeError),
    ],
)  # fmt: skip
def test_bad_point_is_refused(kind, argument, bad, error):
    refused(error, f"{argument}:", lambda: WITH_POINTS[kind](MODEL, "base", other="ball", **{argument: bad}))


@pytest.mark.parametrize("kind", WITH_POINTS)
def test_body_has_a_point(kind):
    refused(ArgumentTypeError, "point:", lambda: WITH_POINTS[kind](MODEL, "base", other="ball", point=None))


@pytest.mark.parametrize("kind", WITH_POINTS)
@pytest.mark.parametrize(("body", "error"), [("bse", UnknownNameError), (17, ArgumentError), (-9, ArgumentError)])
def test_unknown_body_is_refused(kind, body, error):
    refused(error, str(body), lambda: WITH_POINTS[kind](MODEL, body))
    refused(error, str(body), lambda: WITH_POINTS[kind](MODEL, "base", other=body))
    refused(error, str(body), lambda: LinkConstraint(MODEL, [("base", K), (body, K)]))


@pytest.mark.parametrize("body", [1.5, [1], None])
def test_what_is_no_body_is_refused(body):
    for work in (lambda: Connect(MODEL, body), lambda: LinkConstraint(MODEL, [(body, K)])):
        with pytest.raises(dl.errors.DelassusError):
            work()


@pytest.mark.parametrize(("joint", "error"), [("hnge", UnknownNameError), (17, ArgumentError)])
@pytest.mark.parametrize("make", [JointCoupling, JointFriction, JointLimit, lambda m, j: JointCoupling(m, "hinge", j)])
def test_unknown_joint_is_refused(make, joint, error):
    refused(error, str(joint), lambda: make(MODEL, joint))


@pytest.mark.parametrize("joint", ["ball", "base"])
def test_only_hinges_and_slides_have_limits_and_couplings(joint):
    refused(ArgumentError, "joint:", lambda: JointCoupling(MODEL, joint, "hinge"))
    refused(ArgumentError, "other:", lambda: JointCoupling(MODEL, "hinge", joint))
    refused(ArgumentError, "joint:", lambda: JointLimit(MODEL, joint))
    assert JointFriction(MODEL, joint).rows in (3, 6)


@pytest.mark.parametrize(
    ("bad", "error"),
    [((0.0, 0.0, 0.0), ArgumentError), ((0.0, 1.0), ArgumentError), ((0.0, 0.0, np.nan), NotFiniteError), ("up", ArgumentTypeError)],
)
def test_direction_that_is_none_is_refused(bad, error):
    refused(error, "normal:", lambda: PointContact(MODEL, "base", normal=bad))
    for make in (Hinge, Universal, Prismatic, Cylindrical, Planar):
        refused(error, "axis:", lambda make=make: make(MODEL, "base", "ball", axis=bad))
    for make in (Hinge, Universal, Cylindrical, Planar):
        refused(error, "other_axis:", lambda make=make: make(MODEL, "base", "ball", other_axis=bad))


@pytest.mark.parametrize("make", [Prismatic, Cylindrical, Planar, Distance])
def test_what_slides_on_the_world_needs_its_point(make):
    refused(ArgumentError, "other_point:", lambda: make(MODEL, "base"))
    refused(ArgumentError, "other_point:", lambda: make(MODEL, "base", "world"))
    assert make(MODEL, "base", other_point=(1.0, 2.0, 3.0)).rows == {Prismatic: 5, Cylindrical: 4, Planar: 3, Distance: 1}[make]


def test_a_universal_joint_with_the_world_needs_its_axis():
    refused(ArgumentError, "other_axis:", lambda: Universal(MODEL, "base"))
    assert Universal(MODEL, "base", other_axis=(0, 1, 0)).rows == 4


@pytest.mark.parametrize(("bad", "error"), [(-0.1, ArgumentError), (np.nan, NotFiniteError), ("much", ArgumentTypeError)])
def test_bad_friction_is_refused(bad, error):
    refused(error, "friction:", lambda: PointContact(MODEL, "base", friction=bad))
    refused(error, "friction:", lambda: JointFriction(MODEL, "hinge", bad))


@pytest.mark.parametrize(("bad", "error"), [((0.0, 1.0), ArgumentError), ((0, 1, 0, 0, np.inf), NotFiniteError), ("x", ArgumentTypeError)])
def test_bad_polynomial_is_refused(bad, error):
    refused(error, "polynomial:", lambda: JointCoupling(MODEL, "hinge", "slide", polynomial=bad))


@pytest.mark.parametrize("side", ["left", None, 1, ["lower"]])
def test_limit_has_two_sides(side):
    refused(ArgumentError, "side:", lambda: JointLimit(MODEL, "hinge", side))


@pytest.mark.parametrize(
    ("terms", "error", "argument"),
    [
        ([], ArgumentError, "terms:"),
        ([("base", np.ones((2, 5)))], ArgumentError, "K:"),
        ([("base", np.ones(6))], ArgumentError, "K:"),
        ([("base", 1.0)], ArgumentError, "K:"),
        ([("base", np.ones((0, 6)))], ArgumentError, "K:"),
        ([("base", K), ("ball", np.ones((3, 6)))], ArgumentError, "K:"),
        ([("base", K * np.nan)], NotFiniteError, "K:"),
        ([("base", None)], ArgumentTypeError, "K:"),
        ([("base", K + 0j)], ArgumentTypeError, "K:"),
        (None, ArgumentTypeError, "terms:"),
        (3, ArgumentTypeError, "terms:"),
        (["base"], ArgumentTypeError, "terms"),
        ([("base", K, K)], ArgumentTypeError, "terms"),
    ],
    ids=[
        "none",
        "five columns",
        "no matrix",
        "scalar",
        "no rows",
        "rows differ",
        "nan",
        "no K",
        "complex",
        "None",
        "number",
        "no pair",
        "triple",
    ],
)
def test_bad_terms_are_refused(terms, error, argument):
    refused(error, argument, lambda: LinkConstraint(MODEL, terms))


@pytest.mark.parametrize("make", [*WITH_POINTS.values(), JointCoupling, JointFriction, JointLimit])
@pytest.mark.parametrize("model", [None, "go2"])
def test_what_is_no_model_is_refused(make, model):
    refused(ArgumentTypeError, "model:", lambda: make(model, 1))
    refused(ArgumentTypeError, "model:", lambda: CenterOfMass(model))
    refused(ArgumentTypeError, "model:", lambda: LinkConstraint(model, [(1, K)]))


def test_nothing_that_moves_has_no_center_of_mass():
    b = dl.ModelBuilder("rigid")
    b.add_body("a", mass=1.0)
    model = b.build()
    refused(ArgumentError, "model:", lambda: CenterOfMass(model))


def made(**options):
    """Every constraint that can be pulled back to a position."""
    return [
        lambda: PointContact(MODEL, "base", other_point=(0, 0, 0), **options), lambda: Connect(MODEL, "base", "ball", **options),
        lambda: Weld(MODEL, "base", "ball", **options), lambda: Hinge(MODEL, "base", "ball", **options),
        lambda: Universal(MODEL, "base", "ball", **options), lambda: Prismatic(MODEL, "base", "ball", **options),
        lambda: Cylindrical(MODEL, "base", other_point=(0, 0, 0), **options), lambda: Planar(MODEL, "base", "ball", **options),
        lambda: Distance(MODEL, "base", "ball", length=1.0, **options), lambda: JointCoupling(MODEL, "hinge", "slide", **options),
        lambda: JointCoupling(MODEL, "hinge", **options), lambda: JointLimit(MODEL, "hinge", bound=0.0, **options),
        lambda: CenterOfMass(MODEL, target=(0, 0, 0), **options),
    ]  # fmt: skip


def unaimed(**options):
    """Constraints that cannot, and what they lack."""
    return [
        (lambda: PointContact(MODEL, "base", **options), "other_point"), (lambda: Connect(MODEL, "base", **options), "other_point"),
        (lambda: Weld(MODEL, "base", **options), "other_quaternion"), (lambda: Hinge(MODEL, "base", None, **options), "other_axis"),
        (lambda: Distance(MODEL, "base", "ball", **options), "length"), (lambda: JointLimit(MODEL, "hinge", **options), "bound"),
        (lambda: CenterOfMass(MODEL, **options), "target"), (lambda: JointFriction(MODEL, "hinge", **options), "has none"),
        (lambda: LinkConstraint(MODEL, [("base", K)], **options), "has none"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (1.0, ArgumentError), ((1.0,), ArgumentError), ((1.0, 2.0, 3.0), ArgumentError), ((-1.0, 1.0), ArgumentError), ((1.0, -1e-9), ArgumentError),
        ((np.nan, 0.0), NotFiniteError), ((0.0, np.inf), NotFiniteError), ("stiff", ArgumentTypeError), (None, ArgumentTypeError), ((1j, 0), ArgumentTypeError),
    ],
)  # fmt: skip
def test_bad_gains_are_refused(bad, error):
    for work in (*made(baumgarte=bad), *(work for work, _ in unaimed(baumgarte=bad))):
        refused(error, "baumgarte:", work)


def test_gain_without_a_position_is_refused_and_told_what_is_missing():
    for work, missing in unaimed(baumgarte=(1.0, 0.0)):
        refused(ArgumentError, missing, work)
        refused(ArgumentError, "baumgarte:", work)
    assert all(work().baumgarte == (0.0, 2.0) for work, _ in unaimed(baumgarte=(0.0, 2.0)))
    assert all(work().baumgarte == (1.0, 2.0) for work in made(baumgarte=[1, 2]))


@pytest.mark.parametrize("argument", ["quaternion", "other_quaternion"])
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ((1.0, 0.0, 0.0), ArgumentError), ((0.0, 0.0, 0.0, 0.0), QuaternionError), ((2.0, 0.0, 0.0, 0.0), QuaternionError),
        ((np.nan, 0.0, 0.0, 0.0), NotFiniteError), ("up", ArgumentTypeError),
    ],
)  # fmt: skip
def test_bad_orientation_is_refused(argument, bad, error):
    refused(error, f"{argument}:", lambda: Weld(MODEL, "base", "ball", **{argument: bad}))


@pytest.mark.parametrize(
    ("bad", "error"), [(-0.1, ArgumentError), (np.inf, NotFiniteError), ("long", ArgumentTypeError), ((1.0, 2.0), ArgumentError)]
)
def test_bad_length_is_refused(bad, error):
    refused(error, "length:", lambda: Distance(MODEL, "base", "ball", length=bad))


@pytest.mark.parametrize(
    ("bad", "error"), [(np.nan, NotFiniteError), (np.inf, NotFiniteError), ("far", ArgumentTypeError), ((1.0, 2.0), ArgumentError)]
)
def test_bad_bound_is_refused(bad, error):
    refused(error, "bound:", lambda: JointLimit(MODEL, "hinge", bound=bad))


@pytest.mark.parametrize(("bad", "error"), [((0.0, 0.0), ArgumentError), ((0.0, 0.0, np.nan), NotFiniteError), ("up", ArgumentTypeError)])
def test_bad_target_is_refused(bad, error):
    refused(error, "target:", lambda: CenterOfMass(MODEL, target=bad))
    refused(error, "other_axis:", lambda: Hinge(MODEL, "base", other_axis=bad))


@pytest.mark.parametrize("other", [None, "world", 0])
def test_distance_to_the_world_needs_a_point(other):
    refused(ArgumentError, "other_point:", lambda: Distance(MODEL, "base", other))


def test_open_range_has_no_distance_to_its_end():
    rows = dl.ConstraintRows(MODEL, [Connect(MODEL, "base"), JointLimit(MODEL, "hinge", "upper", baumgarte=(0.0, 1.0))])
    q, v = MODEL.neutral(), np.ones(MODEL.nv)
    refused(ArgumentError, "upper end of joint 'hinge'", lambda: rows.error(q))
    assert rows.velocity(q, v)[3] == -1.0
    assert rows.bias(q, v)[3] == -1.0


def test_coinciding_points_of_a_distance_have_no_line():
    same = [Distance(MODEL, "base", "base", length=1.0)]
    q, v = MODEL.neutral(), np.ones(MODEL.nv)
    for work in (dl.constraint_velocity, dl.constraint_drift, dl.constraint_bias):
        refused(SingularError, "Distance", lambda work=work: work(MODEL, q, v, same))
    assert dl.constraint_error(MODEL, q, same) == [-1.0]


ROWS = {
    "error": lambda m, q, v, c: dl.constraint_error(m, q, c), "velocity": dl.constraint_velocity, "drift": dl.constraint_drift, "bias": dl.constraint_bias,
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_bad_state_or_list_is_refused(name):
    f, q, v, listed = ROWS[name], MODEL.neutral(), np.ones(MODEL.nv), [Connect(MODEL, "base")]
    broken = q.copy()
    broken[3:7] *= 2
    for bad, error in (
        (q[:-1], ArgumentError),
        (q * np.nan, NotFiniteError),
        (broken, QuaternionError),
        (None, ArgumentTypeError),
        ("q", ArgumentTypeError),
    ):
        refused(error, "q:", lambda bad=bad: f(MODEL, bad, v, listed))
    if name != "error":
        for bad, error in ((v[:-1], ArgumentError), (v * np.inf, NotFiniteError), (None, ArgumentTypeError)):
            refused(error, "v:", lambda bad=bad: f(MODEL, q, bad, listed))
    for bad in (None, listed[0], "loops", 3, [None], ["pin"]):
        refused(ArgumentTypeError, "constraints", lambda bad=bad: f(MODEL, q, v, bad))
    refused(ArgumentError, "constraints[0]", lambda: f(MODEL, q, v, [Connect(dl.load("go2"), 1)]))
    for bad in (None, "go2", dl.Workspace(MODEL)):
        refused(ArgumentTypeError, "model:", lambda bad=bad: f(bad, q, v, listed))


def test_bad_out_and_dtype_are_refused():
    rows, q = dl.ConstraintRows(MODEL, [Connect(MODEL, "base")]), MODEL.neutral()
    refused(ArgumentError, "out:", lambda: rows.error(q, out=np.empty(4)))
    refused(ArgumentTypeError, "out:", lambda: rows.error(q, out=np.empty(3, np.float32)))
    long = np.concatenate([q, q])
    refused(ArgumentError, "out:", lambda: rows.error(long[: MODEL.nq], out=long[1:4]))
    for bad in ("float16", int, "x"):
        refused(ArgumentTypeError, "dtype:", lambda bad=bad: dl.ConstraintRows(MODEL, [], bad))


@pytest.mark.parametrize("loop", [None, "pin", 0])
def test_what_is_no_loop_is_refused(loop):
    refused(ArgumentTypeError, "loop:", lambda: from_loop(MODEL, loop))
