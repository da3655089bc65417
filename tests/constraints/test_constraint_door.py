"""A constraint that cannot be is refused by a typed error that names the argument."""

import numpy as np
import pytest

import delassus as dl
from delassus.constraints import (
    CenterOfMass,
    Connect,
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
from delassus.errors import ArgumentError, ArgumentTypeError, NotFiniteError, UnknownNameError


def build():
    b = dl.ModelBuilder("mixed")
    for name, kind in (("base", "free"), ("ball", "ball"), ("hinge", "hinge"), ("slide", "slide")):
        b.add_body(name, "world" if kind == "free" else "base", mass=1.0, inertia=(1.0, 1.0, 1.0))
        b.add_joint(name, kind, name=name)
    b.add_body("fixed", "world", mass=1.0)
    return b.build()


MODEL = build()
TWO_BODIES = {"connect": Connect, "weld": Weld, "hinge": Hinge, "distance": Distance}
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
        ("here", ArgumentTypeError), (None, ArgumentTypeError), ([1j, 0, 0], ArgumentTypeError),
    ],
)  # fmt: skip
def test_bad_point_is_refused(kind, argument, bad, error):
    refused(error, f"{argument}:", lambda: WITH_POINTS[kind](MODEL, "base", other="ball", **{argument: bad}))


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
    refused(error, "axis:", lambda: Hinge(MODEL, "base", axis=bad))


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


@pytest.mark.parametrize("loop", [None, "pin", 0])
def test_what_is_no_loop_is_refused(loop):
    refused(ArgumentTypeError, "loop:", lambda: from_loop(MODEL, loop))
