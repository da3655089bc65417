"""Constraints along with their rows by definition: every maker returns a constraint and what its dense rows are summed of.

Only the arguments of the constraint, the public arrays of the model and the dense kinematics are used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from delassus import constraints as dc

from .dense import hat, moving


@dataclass(frozen=True)
class Made:
    """A constraint, and the terms (rows, nv) that its rows are the sum of."""

    constraint: dc.Constraint
    terms: Callable


@lru_cache(maxsize=16)
def _origins(oracle):
    return oracle.frames(np.zeros((oracle.model.nbody, 3)))[0]


def index(names, who):
    return list(names).index(who) if isinstance(who, str) else 0 if who is None else int(who)


def velocity(oracle, body, point):
    """Jacobian (6, nv) of a point of a body and of its rotation: v + ω × r, ω."""
    b = index(oracle.model.body_names, body)
    J, R = _origins(oracle)[b], oracle.placement[b, :3, :3]
    return np.vstack([J[:3] - hat(R @ point) @ J[3:], J[3:]])


def position(oracle, body, point):
    X = oracle.placement[index(oracle.model.body_names, body)]
    return X[:3, :3] @ point + X[:3, 3]


def axes(direction):
    """The unit direction and two tangents: the first across the coordinate axis that the direction is least along."""
    n = np.asarray(direction) / np.linalg.norm(direction)
    t = np.cross(np.eye(3)[np.argmin(np.abs(n))], n)
    return np.array([n, t / np.linalg.norm(t), np.cross(n, t) / np.linalg.norm(t)])


def relative(select, body, other, point, other_point):
    """Terms of select(oracle) (rows, 6) on the motion of ``body`` minus that of ``other``."""
    return lambda o: [select(o) @ velocity(o, body, point), -select(o) @ velocity(o, other, other_point)]


def stacked(point_axes, turn_axes):
    """Rows (., 6): velocities along some axes, rotations about others."""
    A, B = np.atleast_2d(point_axes), np.reshape(turn_axes, (-1, 3))
    return np.block([[A, np.zeros_like(A)], [np.zeros_like(B), B]])


def point_contact(model, body, other=None, *, normal, point, other_point, **options):
    select = stacked(axes(normal), [])
    return Made(
        dc.PointContact(model, body, other=other, normal=normal, point=point, other_point=other_point, **options),
        relative(lambda o: select, body, other, point, other_point),
    )


def connect(model, body, other=None, **points):
    return Made(dc.Connect(model, body, other, **points), relative(lambda o: np.eye(6)[:3], body, other, **points))


def weld(model, body, other=None, **points):
    return Made(dc.Weld(model, body, other, **points), relative(lambda o: np.eye(6), body, other, **points))


def hinge(model, body, other=None, *, axis, **points):
    def select(o):
        carried = axes(axis) @ o.placement[index(model.body_names, body), :3, :3].T
        return stacked(carried, carried[1:])

    return Made(dc.Hinge(model, body, other, axis=axis, **points), relative(select, body, other, **points))


def turned(oracle, body, axis):
    """A unit axis of a body, in the world."""
    return oracle.placement[index(oracle.model.body_names, body), :3, :3] @ axis / np.linalg.norm(axis)


def universal(model, body, other=None, *, axis, other_axis, **places):
    def select(o):
        return stacked(np.eye(3), np.cross(turned(o, body, axis), turned(o, other, other_axis)))

    return Made(dc.Universal(model, body, other, axis=axis, other_axis=other_axis, **places), relative(select, body, other, **places))


def there(oracle, body, x):
    """A place of the world, in body coordinates."""
    X = oracle.placement[index(oracle.model.body_names, body)]
    return X[:3, :3].T @ (x - X[:3, 3])


# rows of the point and of the rotation of pairs that slide, of an axis and its two tangents
SLIDING = {"prismatic": ([1, 2], [0, 1, 2]), "cylindrical": ([1, 2], [1, 2]), "planar": ([0], [1, 2])}


def sliding(kind, model, body, other=None, *, axis, point, other_point, **more):
    """Both bodies where the other's point is, in axes of the body."""

    def terms(o):
        carried = axes(axis) @ o.placement[index(model.body_names, body), :3, :3].T
        select = stacked(*(carried[rows] for rows in SLIDING[kind]))
        return [
            select @ velocity(o, body, there(o, body, position(o, other, other_point))),
            -select @ velocity(o, other, other_point),
        ]

    make = {"prismatic": dc.Prismatic, "cylindrical": dc.Cylindrical, "planar": dc.Planar}[kind]
    return Made(make(model, body, other, axis=axis, point=point, other_point=other_point, **more), terms)


def distance(model, body, other=None, *, point, other_point):
    def select(o):
        line = position(o, body, point) - position(o, other, other_point)
        return stacked(line / np.linalg.norm(line), [])

    return Made(dc.Distance(model, body, other, point=point, other_point=other_point), relative(select, body, other, point, other_point))


def selection(model, columns, values):
    """One row each: a number in a column."""
    J = np.zeros((len(columns), model.nv))
    J[np.arange(len(columns)), columns] = values
    return J


def joint_coupling(model, joint, other=None, *, polynomial):
    j, k = (None if x is None else index(model.joint_names, x) for x in (joint, other))

    def terms(o):
        follower = selection(model, [model.joint_vadr[j]], [1.0])
        if k is None:
            return [follower]
        slope = np.polynomial.Polynomial(polynomial).deriv()(o.q[model.joint_qadr[k]] - model.joint_reference[k])
        return [follower, selection(model, [model.joint_vadr[k]], [-slope])]

    return Made(dc.JointCoupling(model, joint, other, polynomial=polynomial), terms)


def joint_friction(model, joint, friction=None):
    j = index(model.joint_names, joint)
    columns = model.joint_vadr[j] + np.arange({"hinge": 1, "slide": 1, "ball": 3, "free": 6}[model.joint_type[j]])
    return Made(dc.JointFriction(model, joint, friction), lambda o: [selection(model, columns, 1.0)])


def joint_limit(model, joint, side):
    column = model.joint_vadr[index(model.joint_names, joint)]
    return Made(dc.JointLimit(model, joint, side), lambda o: [selection(model, [column], [{"lower": 1.0, "upper": -1.0}[side]])])


def center_of_mass(model):
    mass = model.body_mass * moving(model)
    return Made(
        dc.CenterOfMass(model),
        lambda o: [m / mass.sum() * velocity(o, b, model.body_com[b])[:3] for b, m in enumerate(mass) if m > 0],
    )


def link_constraint(model, terms):
    return Made(dc.LinkConstraint(model, terms), lambda o: [K @ velocity(o, body, np.zeros(3)) for body, K in terms])


# ---- at random -----------------------------------------------------------------------------------------------------------


def name_or_index(rng, names, k):
    return None if k is None else names[k] if rng.random() < 0.5 else int(k)


def lines(model):
    """Hinges and slides."""
    return [j for j, kind in enumerate(model.joint_type) if kind in ("hinge", "slide")]


def points(rng):
    return {"point": rng.uniform(-0.5, 0.5, 3), "other_point": rng.uniform(-0.5, 0.5, 3)}


def _joint(rng, model, among):
    return name_or_index(rng, model.joint_names, rng.choice(among))


# makers of a random constraint between two bodies (the second may be None) of a model
BETWEEN = {
    "contact": lambda rng, model, body, other: point_contact(model, body, other, normal=3 * rng.standard_normal(3), **points(rng)),
    "connect": lambda rng, model, body, other: connect(model, body, other, **points(rng)),
    "weld": lambda rng, model, body, other: weld(model, body, other, **points(rng)),
    "hinge": lambda rng, model, body, other: hinge(model, body, other, axis=rng.standard_normal(3), **points(rng)),
    "universal": lambda rng, model, body, other: universal(
        model, body, other, axis=rng.standard_normal(3), other_axis=rng.standard_normal(3), **points(rng)
    ),
    **{
        kind: lambda rng, model, body, other, kind=kind: sliding(kind, model, body, other, axis=rng.standard_normal(3), **points(rng))
        for kind in SLIDING
    },
    "distance": lambda rng, model, body, other: distance(model, body, other, **points(rng)),
    "links": lambda rng, model, body, other: link_constraint(model, _pair(rng, *(b for b in (body, other) if b is not None))),
}


def _pair(rng, *bodies):
    rows = 1 + int(rng.integers(4))
    return [(b, rng.standard_normal((rows, 6))) for b in bodies]


# makers of a random constraint on joints or on many bodies
OF_MODEL = {
    "coupling": lambda rng, model: joint_coupling(
        model, _joint(rng, model, lines(model)), _joint(rng, model, lines(model)), polynomial=rng.standard_normal(5)
    ),
    "holding": lambda rng, model: joint_coupling(model, _joint(rng, model, lines(model)), polynomial=rng.standard_normal(5)),
    "friction": lambda rng, model: joint_friction(model, _joint(rng, model, range(model.njoint))),
    "limit": lambda rng, model: joint_limit(model, _joint(rng, model, lines(model)), rng.choice(["lower", "upper"])),
    "center": lambda rng, model: center_of_mass(model),
    "many": lambda rng, model: link_constraint(
        model, _pair(rng, *(name_or_index(rng, model.body_names, b) for b in rng.integers(model.nbody, size=5)))
    ),
}


def possible(model):
    """Kinds that a model can have."""
    rules = {
        "coupling": lines,
        "holding": lines,
        "limit": lines,
        "friction": lambda m: m.njoint,
        "center": lambda m: moving(m) @ m.body_mass,
    }
    return [kind for kind in (*BETWEEN, *OF_MODEL) if kind not in rules or rules[kind](model)]


def random_constraint(rng, model, kind, pair=None):
    """Make a constraint of a kind, between a pair of bodies where it is between two; the default is any two bodies or a body and the world."""
    if kind in OF_MODEL:
        return OF_MODEL[kind](rng, model)
    if pair is None:
        pair = rng.integers(model.nbody), rng.choice([None, int(rng.integers(model.nbody))])
    return BETWEEN[kind](rng, model, *(name_or_index(rng, model.body_names, b) for b in pair))
