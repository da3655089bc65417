"""Constraints with targets, along with their position errors by definition, from the dense placements.

Every maker returns what ``rows`` returns, and the error. With ``at``, a mechanism in a state, the constraint is made to hold in that state; without, its target
is anything.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial.transform import Rotation

from delassus import constraints as dc

from . import rows
from .dense import rotation
from .rows import axes, index, position, stacked


@dataclass(frozen=True)
class Aimed:
    """A constraint, the terms (rows, nv) that its rows are the sum of, and its error (rows,)."""

    constraint: dc.Constraint
    terms: Callable
    error: Callable

    def velocity(self, oracle, v):
        return sum(self.terms(oracle)) @ v

    def size(self, oracle, v):
        """How large the numbers are that a velocity is summed of."""
        return 1.0 + max(np.abs(t).sum(axis=1).max(initial=0.0) for t in self.terms(oracle)) * np.abs(v).max(initial=0.0)


def turn(oracle, body):
    return oracle.placement[index(oracle.model.body_names, body), :3, :3]


def quaternion(R):
    return np.roll(Rotation.from_matrix(R).as_quat(), 1)


def points(rng, body, other, at):
    point = rng.uniform(-0.5, 0.5, 3)
    if at is None:
        return {"point": point, "other_point": rng.uniform(-0.5, 0.5, 3)}
    X = at.placement[index(at.model.body_names, other)]
    return {"point": point, "other_point": X[:3, :3].T @ (position(at, body, point) - X[:3, 3])}


def apart(body, other, point, other_point):
    return lambda o: position(o, body, point) - position(o, other, other_point)


def contact(rng, model, body, other, at=None):
    places, normal = points(rng, body, other, at), rng.standard_normal(3)
    d, n = apart(body, other, **places), normal / np.linalg.norm(normal)
    made = rows.point_contact(model, body, other, normal=normal, **places)
    return Aimed(made.constraint, made.terms, lambda o: np.array([n @ d(o), 0.0, 0.0]))


def connect(rng, model, body, other, at=None):
    places = points(rng, body, other, at)
    made = rows.connect(model, body, other, **places)
    return Aimed(made.constraint, made.terms, apart(body, other, **places))


def weld(rng, model, body, other, at=None):
    places, facing, other_facing = points(rng, body, other, at), *(x / np.linalg.norm(x) for x in rng.standard_normal((2, 4)))
    if at is not None:
        other_facing = quaternion(turn(at, other).T @ turn(at, body) @ rotation(facing))
    d = apart(body, other, **places)

    def error(o):
        F, F_other = turn(o, body) @ rotation(facing), turn(o, other) @ rotation(other_facing)
        return np.concatenate([d(o), Rotation.from_matrix(F @ F_other.T).as_rotvec()])

    constraint = dc.Weld(model, body, other, quaternion=facing, other_quaternion=other_facing, **places)
    return Aimed(constraint, rows.relative(lambda o: np.eye(6), body, other, **places), error)


def hinge(rng, model, body, other, at=None):
    places, axis, other_axis = points(rng, body, other, at), *rng.standard_normal((2, 3))
    if at is not None:
        other_axis = 2 * turn(at, other).T @ turn(at, body) @ axis
    d = apart(body, other, **places)

    def carried(o):
        return axes(axis) @ turn(o, body).T

    def error(o):
        A, n = carried(o), turn(o, other) @ other_axis / np.linalg.norm(other_axis)
        across = np.cross(n, A[0])
        angle = np.arctan2(np.linalg.norm(across), n @ A[0])
        return np.concatenate([A @ d(o), A[1:] @ across * (angle / np.sin(angle) if angle else 1.0)])

    def select(o):
        return stacked(carried(o), carried(o)[1:])

    constraint = dc.Hinge(model, body, other, axis=axis, other_axis=other_axis, **places)
    return Aimed(constraint, rows.relative(select, body, other, **places), error)


def universal(rng, model, body, other, at=None):
    places, axis, other_axis = points(rng, body, other, at), *rng.standard_normal((2, 3))
    if at is not None:
        other_axis = np.cross(turn(at, other).T @ turn(at, body) @ axis, other_axis)
    d = apart(body, other, **places)
    made = rows.universal(model, body, other, axis=axis, other_axis=other_axis, **places)
    return Aimed(made.constraint, made.terms, lambda o: [*d(o), rows.turned(o, body, axis) @ rows.turned(o, other, other_axis)])


def sliding(kind, rng, model, body, other, at=None):
    """The other's point is on the line or in the plane of the body, far from its point."""
    places, axis, other_axis = points(rng, body, other, None), *rng.standard_normal((2, 3))
    facing, other_facing = (x / np.linalg.norm(x) for x in rng.standard_normal((2, 4)))
    if at is not None:
        n, t, b = axes(axis)
        along = {"prismatic": 1.5 * n, "cylindrical": -0.8 * n, "planar": 0.7 * t - 1.1 * b}[kind]
        places["other_point"] = rows.there(at, other, position(at, body, places["point"] + along))
        other_axis = 2 * turn(at, other).T @ turn(at, body) @ axis
        other_facing = quaternion(turn(at, other).T @ turn(at, body) @ rotation(facing))
    more = {"quaternion": facing, "other_quaternion": other_facing} if kind == "prismatic" else {"other_axis": other_axis}
    made = rows.sliding(kind, model, body, other, axis=axis, **places, **more)
    d = apart(body, other, **places)

    def error(o):
        A = axes(axis) @ turn(o, body).T
        pushes, turns = rows.SLIDING[kind]
        if kind == "prismatic":
            F, F_other = turn(o, body) @ rotation(facing), turn(o, other) @ rotation(other_facing)
            angle = Rotation.from_matrix(F @ F_other.T).as_rotvec()
        else:
            n = rows.turned(o, other, other_axis)
            across = np.cross(n, A[0])
            theta = np.arctan2(np.linalg.norm(across), n @ A[0])
            angle = across * (theta / np.sin(theta) if theta else 1.0)
        return np.concatenate([A[pushes] @ d(o), A[turns] @ angle])

    return Aimed(made.constraint, made.terms, error)


def distance(rng, model, body, other, at=None):
    places = points(rng, body, other, None)
    d = apart(body, other, **places)
    length = rng.uniform(0, 2) if at is None else np.linalg.norm(d(at))
    made = rows.distance(model, body, other, **places)
    return Aimed(dc.Distance(model, body, other, length=length, **places), made.terms, lambda o: [np.linalg.norm(d(o)) - length])


def links(rng, model, body, other, at=None):
    made = rows.link_constraint(model, [(b, rng.standard_normal((2, 6))) for b in (body, other) if b is not None])
    return Aimed(made.constraint, made.terms, lambda o: np.zeros(2))


BETWEEN = {
    "contact": contact, "connect": connect, "weld": weld, "hinge": hinge, "universal": universal, **{kind: partial(sliding, kind) for kind in rows.SLIDING},
    "distance": distance, "links": links,
}  # fmt: skip


# ---- on joints, on everything ----------------------------------------------------------------------------------------------


def moved(model, joint):
    """Displacement of a hinge or slide from its reference."""
    return lambda o: o.q[model.joint_qadr[joint]] - model.joint_reference[joint]


def coupling(rng, model, at=None):
    j, k = rng.choice(rows.lines(model), 2)
    c = rng.standard_normal(5)
    follower, leader = moved(model, j), moved(model, k)
    if at is not None:
        c[0] += follower(at) - np.polyval(c[::-1], leader(at))
    made = rows.joint_coupling(model, int(j), int(k), polynomial=c)
    return Aimed(made.constraint, made.terms, lambda o: [follower(o) - np.polyval(c[::-1], leader(o))])


def holding(rng, model, at=None):
    j = rng.choice(rows.lines(model))
    c = rng.standard_normal(5)
    if at is not None:
        c[0] = moved(model, j)(at)
    made = rows.joint_coupling(model, int(j), polynomial=c)
    return Aimed(made.constraint, made.terms, lambda o: [moved(model, j)(o) - c[0]])


def limit(rng, model, at=None):
    j, side = int(rng.choice(rows.lines(model))), str(rng.choice(["lower", "upper"]))
    sign, at_q = {"lower": 1.0, "upper": -1.0}[side], model.joint_qadr[j]
    bound = rng.standard_normal() if at is None else at.q[at_q]
    made = rows.joint_limit(model, j, side)
    return Aimed(dc.JointLimit(model, j, side, bound=bound), made.terms, lambda o: [sign * (o.q[at_q] - bound)])


def friction(rng, model, at=None):
    made = rows.joint_friction(model, int(rng.integers(model.njoint)))
    return Aimed(made.constraint, made.terms, lambda o: np.zeros(made.constraint.rows))


def center(rng, model, at=None):
    target = rng.standard_normal(3) if at is None else at.center_of_mass
    made = rows.center_of_mass(model)
    return Aimed(dc.CenterOfMass(model, target=target), made.terms, lambda o: o.center_of_mass - target)


OF_MODEL = {"coupling": coupling, "holding": holding, "limit": limit, "friction": friction, "center": center}
KINDS = (*BETWEEN, *OF_MODEL)


def aimed(rng, model, kind, pair, at=None):
    """Make a constraint of a kind, between a pair of bodies where it is between two."""
    return OF_MODEL[kind](rng, model, at) if kind in OF_MODEL else BETWEEN[kind](rng, model, *pair, at)


def possible(model):
    """Kinds that a model can have."""
    return [k for k in KINDS if k in BETWEEN or k in rows.possible(model)]
