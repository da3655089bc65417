"""Constraints between bodies, with the world, and on joints: loops, contacts, limits and friction.

A constraint defines its rows (velocity of the rows = J v), the set of its forces, and its bias: position error e, drift J̇v and
Baumgarte's gains (k_p, k_d). A body is given by name or index, or by a joint or frame that it carries (name or
:class:`~delassus.Frame`). Points, axes and orientations are in the coordinates of the body, or of that joint or frame; ``other=None`` is the world, whose body coordinates are world coordinates. Rows
between two bodies are the velocity of ``point`` on ``body`` minus that of ``other_point`` on ``other``, each at its own place. A positive force
pushes ``body`` away from ``other``.

A world position, length or target that is not given is the current one in every state: that part of the error is always zero.

Every docstring lists all arguments, so that each can be read on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _core
from ._door import as_array, native_class, number, numbers, vector
from .errors import ArgumentError, ArgumentTypeError, QuaternionError
from .model import (
    ConnectLoop,
    CylindricalLoop,
    DistanceLoop,
    Frame,
    HingeLoop,
    JointLoop,
    Loop,
    Model,
    PlanarLoop,
    PrismaticLoop,
    UniversalLoop,
    WeldLoop,
)
from .model.model import as_model
from .model.records import LOOPS, QUATERNION_SLACK
from .spatial import rotation_matrix
from .state import body_placements

__all__ = [
    "CenterOfMass",
    "Connect",
    "Constraint",
    "ConstraintRows",
    "Cylindrical",
    "Distance",
    "Hinge",
    "JointCoupling",
    "JointFriction",
    "JointLimit",
    "LinkConstraint",
    "Planar",
    "PointContact",
    "Prismatic",
    "Universal",
    "Weld",
    "constraint_bias",
    "constraint_drift",
    "constraint_error",
    "constraint_velocity",
    "constraint_wrenches",
    "from_loop",
]

ForceSet = Literal["free", "cone", "half-line", "box"]
Body = str | int | Frame
Array = NDArray[Any]
_NO_GAINS = (0.0, 0.0)
_WORLD_AXES = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
_FRAME, _DISTANCE, _JOINT, _COUPLING, _CENTER, _LINKS, _, _CONTACT = range(8)


class Constraint:
    """A block of rows. Base class; immutable.

    Attributes:
        model: the mechanism.
        rows: number of rows.
        force_set: set of its forces: "free", "cone" (normal first), "half-line" (non-negative) or "box".
        baumgarte: gains (k_p [1/s²], k_d [1/s]) of its error and velocity in the bias.
    """

    force_set: ClassVar[ForceSet] = "free"
    model: Model
    rows: int
    baumgarte: tuple[float, float]
    _aim: ClassVar[str] = ""  # argument that says where the error is measured from

    def _finish(self, model: Model, kind: int, rows: int, baumgarte: ArrayLike, **data: Any) -> None:
        self.model, self.rows = model, rows
        kp, kd = vector(baumgarte, "baumgarte", 2)
        if kp < 0 or kd < 0:
            raise ArgumentError(f"baumgarte: expected gains (k_p, k_d) that are not negative, got ({kp:g}, {kd:g}).")
        self._aimed = bool(data.get("measured") or data.get("target")) or kind == _COUPLING
        if kp > 0 and not self._aimed:
            way_out = f"Give {self._aim}, or use k_p = 0." if self._aim else "Use k_p = 0."
            raise ArgumentError(f"baumgarte: k_p = {kp:g} pulls back to a position, but this {type(self).__name__} has none. {way_out}")
        self.baumgarte = (kp, kd)
        # in the order in which the core takes them; point_rows: rows that come first and measure lengths of a point
        blank = {
            "bodies": [], "points": [], "matrix": [], "axes_on": -1, "joints": [], "numbers": [], "measured": 0, "target": [], "kp": kp, "kd": kd, "point_rows": min(rows, 3),
        }  # fmt: skip
        self._recipe: tuple[int, int, dict[str, Any]] = (kind, rows, blank | data)

    def _native(self) -> _core.Constraint:
        kind, rows, data = self._recipe
        return _core.Constraint(kind, rows, *data.values())  # by place, which takes half as long as by name

    def __repr__(self) -> str:
        _, rows, data = self._recipe
        names = [self.model.body_names[b] for b in data["bodies"]]
        return f"<{type(self).__name__}: {rows} row{'s' if rows != 1 else ''}{' on ' + ' and '.join(names) if names else ''}>"


class _End(NamedTuple):
    """One side of a constraint: a body, and the frame on it in which points and axes are given; no frame: the body's own.

    ``said``: whether its origin and axes are the defaults of points and axes: true, except for the world without a named frame.
    """

    body: int
    p: NDArray[np.float64] | None
    R: NDArray[np.float64] | None
    said: bool

    def point(self, point: ArrayLike, name: str) -> list[float]:
        """Point (3,) in body coordinates."""
        given = vector(point, name, 3)
        return [*given] if self.R is None or self.p is None else list((self.p + self.R @ np.asarray(given)).tolist())

    def directions(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows (k, 3) in body coordinates."""
        return rows if self.R is None else rows @ self.R.T

    def orientation(self, quaternion: ArrayLike, name: str) -> NDArray[np.float64]:
        """Orientation (3, 3) of a frame in body coordinates."""
        F = _rotation(quaternion, name)
        return F if self.R is None else self.R @ F


def _end(model: Model, body: Body) -> _End:
    if as_model(model)._names_body(body):
        index = model.body_index(body)  # type: ignore[arg-type]
        return _End(index, None, None, index != 0)
    frame = model.frame(body)
    return _End(model.body_index(frame.body), np.array(frame.position), rotation_matrix(frame.quaternion), True)


def _ends(model: Model, body: Body, other: Body | None) -> tuple[_End, _End]:
    return _end(model, body), _End(0, None, None, False) if other is None else _end(model, other)


def _place(one: _End, two: _End, point: ArrayLike, other_point: ArrayLike | None, measured: int = 3) -> dict[str, Any]:
    """Bodies and points, and how many rows of the points have an error: none if the world's point is not given."""
    there = two.point((0.0, 0.0, 0.0) if other_point is None else other_point, "other_point")
    given = other_point is not None or two.said
    return {"bodies": [one.body, two.body], "points": [*one.point(point, "point"), *there], "measured": measured if given else 0}


def _rotation(quaternion: ArrayLike, name: str) -> NDArray[np.float64]:
    turn = numbers(quaternion, name, (4,))
    length = np.linalg.norm(turn)
    if not abs(length - 1) <= QUATERNION_SLACK:
        raise QuaternionError(
            f"{name}: (w, x, y, z) must have length 1, got {turn.tolist()} of length {length:g}. Divide it by its length."
        )
    return rotation_matrix(turn)


def _axes(direction: ArrayLike, name: str) -> NDArray[np.float64]:
    """Rows: the unit direction, then two unit tangents; not to be written to."""
    x, y, z = vector(direction, name, 3)
    return _axes_along(x + 0.0, y + 0.0, z + 0.0, name)  # −0.0 is 0.0


@lru_cache(maxsize=64)
def _axes_along(x: float, y: float, z: float, name: str) -> NDArray[np.float64]:
    n = np.array([x, y, z])
    length = np.linalg.norm(n)
    if not length > 0:
        raise ArgumentError(f"{name}: expected a direction other than zero, got {n.tolist()}.")
    n = n / length
    helper = np.eye(3)[np.argmin(np.abs(n))]
    t = np.cross(helper, n)
    t /= np.linalg.norm(t)
    return np.array([n, t, np.cross(n, t)])


def _other_axis(two: _End, axis: ArrayLike, other_axis: ArrayLike | None) -> list[float]:
    """Axis on the other body; empty if the other body is the world and no axis is given."""
    if other_axis is not None:
        return list(two.directions(_axes(other_axis, "other_axis")[:1])[0].tolist())
    return list(two.directions(_axes(axis, "axis")[:1])[0].tolist()) if two.said else []


def _relative_turn(one: _End, two: _End, quaternion: ArrayLike, other_quaternion: ArrayLike | None) -> list[float]:
    """C = F F_otherᵀ in body coordinates, as rows; empty if the frame is on the world and not given."""
    F = one.orientation(quaternion, "quaternion")
    if other_quaternion is not None:
        return list((F @ two.orientation(other_quaternion, "other_quaternion").T).ravel().tolist())
    if not two.said:
        return []
    return list((F if two.R is None else F @ two.R.T).ravel().tolist())


def _on_world(name: str, wanted: str) -> ArgumentError:
    return ArgumentError(f"{name}: expected {wanted}, got none. Give its coordinates.")


class PointContact(Constraint):
    """A point of a body touches another body or the world: 3 rows, normal first, force in a friction cone; with torsional or rolling friction 4 or 6 rows.

    Row 4 is the rotation about the normal, rows 5 and 6 those about the tangents, each scaled by its coefficient divided by ``friction``, so that all of λ is in newtons and in one cone,
    ‖λ_T‖ ≤ µ λ_n: that is MuJoCo's elliptic cone. The torque of row k is λ_k times that scale [N m].

    Error of the normal row: the gap n·(x − x_other) [m], positive apart; of the tangents: zero, since a contact may slide.

    Args:
        model: the mechanism.
        body: name or index of a body, or a joint or frame on it.
        point: (3,) on the body [m].
        other: body touched; None is the world.
        other_point: (3,) on the other body [m]. Default: the body's origin; in the world the current position of ``point``, so that there is no gap.
        normal: (3,) n from other to body, world axes. The tangents are e × n, scaled, and n × that, with e the coordinate axis most perpendicular to n.
        friction: sliding coefficient µ.
        torsional_friction: coefficient for rotation about the normal [m]: torque over normal force.
        rolling_friction: coefficient for rotation about the tangents, likewise [m].
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    force_set = "cone"
    _aim = "other_point"

    def __init__(
        self,
        model: Model,
        body: Body,
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        other: Body | None = None,
        other_point: ArrayLike | None = None,
        normal: ArrayLike = (0.0, 0.0, 1.0),
        friction: float = 0.8,
        torsional_friction: float = 0.0,
        rolling_friction: float = 0.0,
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        self.friction = number(friction, "friction", minimum=0.0)
        self.torsional_friction = number(torsional_friction, "torsional_friction", minimum=0.0)
        self.rolling_friction = number(rolling_friction, "rolling_friction", minimum=0.0)
        turns = 3 if self.rolling_friction > 0 else 1 if self.torsional_friction > 0 else 0
        if turns and not self.friction > 0:
            raise ArgumentError(
                f"friction: a contact with torsional or rolling friction slides with friction too: expected a positive number, got {friction}."
            )
        axes = _axes(normal, "normal")
        place = _place(*_ends(as_model(model), body, other), point, other_point, measured=1)
        if turns:
            rolling = self.rolling_friction / self.friction
            place["numbers"] = [1.0, self.torsional_friction / self.friction, rolling, rolling]
        self._finish(model, _CONTACT if turns else _FRAME, 3 + turns, baumgarte, matrix=axes.ravel().tolist(), **place)


class Connect(Constraint):
    """Two points stay together: 3 rows, world axes. Error: x − x_other [m].

    Args:
        model: the mechanism.
        body, other: names or indices of bodies, or joints or frames on them; other=None is the world.
        point: (3,) on the body [m].
        other_point: (3,) on the other [m]. Default: the body's origin; in the world the current position of ``point``, so that there is no error.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    _aim = "other_point"

    def __init__(
        self,
        model: Model,
        body: Body,
        other: Body | None = None,
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        other_point: ArrayLike | None = None,
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        place = _place(*_ends(as_model(model), body, other), point, other_point)
        self._finish(model, _FRAME, 3, baumgarte, matrix=[*_WORLD_AXES], **place)


class Weld(Constraint):
    """Two frames stay together: 3 rows of the points, 3 of the rotation, world axes.

    Error: x − x_other [m], then the rotation vector log(F F_otherᵀ) [rad] from the other's frame to the body's, of angle at most π.

    Args:
        model: the mechanism.
        body, other: names or indices of bodies, or joints or frames on them; other=None is the world.
        point: (3,) origin of the frame on the body [m].
        quaternion: (4,) as (w, x, y, z), orientation of the frame on the body.
        other_point: (3,) on the other [m]. Default: the body's origin; in the world the current position of ``point``, so that there is no error.
        other_quaternion: (4,) on the other. Default: the body's axes; in the world the current orientation of the body's frame.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    _aim = "other_point or other_quaternion"

    def __init__(
        self,
        model: Model,
        body: Body,
        other: Body | None = None,
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        other_point: ArrayLike | None = None,
        other_quaternion: ArrayLike | None = None,
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        one, two = _ends(as_model(model), body, other)
        place = _place(one, two, point, other_point)
        target = _relative_turn(one, two, quaternion, other_quaternion)
        self._finish(model, _FRAME, 6, baumgarte, matrix=[*_WORLD_AXES], target=target, **place)


class Distance(Constraint):
    """Two points keep their distance: 1 row along the line between them; they must not coincide. Error: |x − x_other| − length [m].

    Args:
        model: the mechanism.
        body, other: names or indices of bodies, or joints or frames on them; other=None is the world.
        point: (3,) on the body [m].
        other_point: (3,) on the other [m]. Default: the body's origin; in the world it must be given.
        length: the distance [m]; default: the current one, so that there is no error.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    _aim = "length"

    def __init__(
        self,
        model: Model,
        body: Body,
        other: Body | None = None,
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        other_point: ArrayLike | None = None,
        length: float | None = None,
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        place = _place(*_ends(as_model(model), body, other), point, other_point)
        if not place.pop("measured"):
            raise _on_world("other_point", "a point of the world to keep a distance from")
        target = [] if length is None else [number(length, "length", minimum=0.0)]
        self._finish(model, _DISTANCE, 1, baumgarte, target=target, **place)


class Hinge(Constraint):
    """Two bodies rotate about a common axis: 3 rows of the points, 2 of the rotation across the axis.

    Error: x − x_other along the three axes below [m], then the shortest rotation vector that turns the other's axis into the body's [rad], about
    the last two.

    Args:
        model: the mechanism.
        body, other: names or indices of bodies, or joints or frames on them; other=None is the world.
        axis: (3,) n on the body. Rows are along n, e × n (scaled) and n × that, then about the last two, all carried by the body; e is the
            body's coordinate axis most perpendicular to n.
        other_axis: (3,) on the other. Default: on a body the same components as ``axis``; in the world the current direction of the body's axis.
        point: (3,) on the body [m].
        other_point: (3,) on the other [m]. Default: the body's origin; in the world the current position of ``point``, so that there is no error.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    _aim = "other_point or other_axis"

    def __init__(
        self,
        model: Model,
        body: Body,
        other: Body | None = None,
        *,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        other_axis: ArrayLike | None = None,
        point: ArrayLike = (0.0, 0.0, 0.0),
        other_point: ArrayLike | None = None,
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        one, two = _ends(as_model(model), body, other)
        axes = one.directions(_axes(axis, "axis")).ravel().tolist()
        place = _place(one, two, point, other_point)
        there = _other_axis(two, axis, other_axis)
        self._finish(model, _FRAME, 5, baumgarte, matrix=axes, axes_on=0, target=there, **place)


class Universal(Constraint):
    """Two bodies rotate about two perpendicular axes, one on each body, as in a cardan joint: 3 rows of the points, 1 of the rotation.

    Error: x − x_other, world axes [m], then a·b of the two unit axes, their deviation from a right angle [rad], if small.

    Args:
        model: the mechanism.
        body, other: names or indices of bodies, or joints or frames on them; other=None is the world.
        axis: (3,) a on the body.
        other_axis: (3,) b on the other. Default: on a body the coordinate axis most perpendicular to ``axis``, made exactly perpendicular; in the world it must be given.
        point: (3,) on the body [m].
        other_point: (3,) on the other [m]. Default: the body's origin; in the world the current position of ``point``, so that there is no error.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    def __init__(
        self,
        model: Model,
        body: Body,
        other: Body | None = None,
        *,
        axis: ArrayLike = (1.0, 0.0, 0.0),
        other_axis: ArrayLike | None = None,
        point: ArrayLike = (0.0, 0.0, 0.0),
        other_point: ArrayLike | None = None,
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        a, _, across = _axes(axis, "axis")
        one, two = _ends(as_model(model), body, other)
        place = _place(one, two, point, other_point)
        if other_axis is None and not two.said:
            raise _on_world("other_axis", "an axis of the world")
        b = across if other_axis is None else _axes(other_axis, "other_axis")[0]
        a, b = one.directions(a[None])[0], two.directions(b[None])[0]
        self._finish(model, _FRAME, 4, baumgarte, matrix=[*_WORLD_AXES], target=[*a.tolist(), *b.tolist()], **place)


class _Sliding(Constraint):
    """A point of the other body slides along a line or on a plane of the body."""

    def _slide(
        self, model: Model, ends: tuple[_End, _End], points: tuple[ArrayLike, ArrayLike | None], axis: ArrayLike, rows: tuple[int, int],
        target: list[float], baumgarte: ArrayLike,
    ) -> None:  # fmt: skip
        """Finish construction; ``rows`` are the numbers of rows of the point and of the rotation."""
        place = _place(*ends, *points, measured=rows[0])
        if not place["measured"]:
            raise _on_world("other_point", "a point of the world that slides")
        axes = ends[0].directions(_axes(axis, "axis")).ravel().tolist()
        self._finish(model, _FRAME, sum(rows), baumgarte, matrix=axes, axes_on=0, point_rows=rows[0], target=target, **place)


class Prismatic(_Sliding):
    """Two bodies slide along a line without rotating: 2 rows of the points, 3 of the rotation.

    The line is the body's, through ``point`` along ``axis``; ``other_point`` stays on it. Rows act at ``other_point`` on both bodies. Error: x − x_other along the two tangents
    below [m], then the rotation vector log(F F_otherᵀ) [rad] along all three axes.

    Args:
        model: the mechanism.
        body, other: names or indices of bodies, or joints or frames on them; other=None is the world.
        axis: (3,) n on the body. Rows are along e × n (scaled) and n × that, then about n and these two, all carried by the body; e is the body's coordinate axis most
            perpendicular to n.
        point: (3,) on the body [m].
        quaternion: (4,) as (w, x, y, z), orientation of the frame F on the body.
        other_point: (3,) on the other [m]. Default: the body's origin; in the world it must be given.
        other_quaternion: (4,) on the other. Default: the body's axes; in the world the current orientation of the body's frame.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    def __init__(
        self,
        model: Model,
        body: Body,
        other: Body | None = None,
        *,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        point: ArrayLike = (0.0, 0.0, 0.0),
        quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        other_point: ArrayLike | None = None,
        other_quaternion: ArrayLike | None = None,
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        ends = _ends(as_model(model), body, other)
        turn = _relative_turn(*ends, quaternion, other_quaternion)
        self._slide(model, ends, (point, other_point), axis, (2, 3), turn, baumgarte)


class Cylindrical(_Sliding):
    """Two bodies slide along a line and rotate about it: 2 rows of the points, 2 of the rotation.

    The line is the body's, through ``point`` along ``axis``; ``other_point`` stays on it. Rows act at ``other_point`` on both bodies. Error: x − x_other along the two tangents
    below [m], then the shortest rotation vector that turns the other's axis into the body's [rad], about them.

    Args:
        model: the mechanism.
        body, other: names or indices of bodies, or joints or frames on them; other=None is the world.
        axis: (3,) n on the body. Rows are along e × n (scaled) and n × that, then about these two, all carried by the body; e is the body's coordinate axis most perpendicular to n.
        other_axis: (3,) on the other. Default: on a body the same components as ``axis``; in the world the current direction of the body's axis.
        point: (3,) on the body [m].
        other_point: (3,) on the other [m]. Default: the body's origin; in the world it must be given.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    def __init__(
        self,
        model: Model,
        body: Body,
        other: Body | None = None,
        *,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        other_axis: ArrayLike | None = None,
        point: ArrayLike = (0.0, 0.0, 0.0),
        other_point: ArrayLike | None = None,
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        ends = _ends(as_model(model), body, other)
        self._slide(model, ends, (point, other_point), axis, (2, 2), _other_axis(ends[1], axis, other_axis), baumgarte)


class Planar(_Sliding):
    """Two bodies slide on a plane and rotate about its normal: 1 row of the points, 2 of the rotation.

    The plane is the body's, through ``point`` and perpendicular to ``axis``; ``other_point`` stays in it. Rows act at ``other_point`` on both bodies. Error: n·(x − x_other) [m], then the
    shortest rotation vector that turns the other's normal into the body's [rad], about the two tangents below.

    Args:
        model: the mechanism.
        body, other: names or indices of bodies, or joints or frames on them; other=None is the world.
        axis: (3,) normal n on the body. Rows are along n, then about e × n (scaled) and n × that, all carried by the body; e is the body's coordinate axis most perpendicular to n.
        other_axis: (3,) on the other. Default: on a body the same components as ``axis``; in the world the current direction of the body's normal.
        point: (3,) on the body [m].
        other_point: (3,) on the other [m]. Default: the body's origin; in the world it must be given.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    def __init__(
        self,
        model: Model,
        body: Body,
        other: Body | None = None,
        *,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        other_axis: ArrayLike | None = None,
        point: ArrayLike = (0.0, 0.0, 0.0),
        other_point: ArrayLike | None = None,
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        ends = _ends(as_model(model), body, other)
        self._slide(model, ends, (point, other_point), axis, (1, 2), _other_axis(ends[1], axis, other_axis), baumgarte)


def _one_axis(model: Model, joint: str | int, what: str) -> int:
    j = model.joint_index(joint)
    if model.joint_type[j] not in ("hinge", "slide"):
        raise ArgumentError(f"{what}: expected a hinge or slide, got joint {model.joint_names[j]!r} of type {model.joint_type[j]}.")
    return j


class JointCoupling(Constraint):
    """A hinge or slide follows another: 1 row, v − p'(q_other − ref_other) v_other. Error: q − ref − p(q_other − ref_other) [rad or m].

    Args:
        model: the mechanism.
        joint: name or index of the follower.
        other: name or index of the leader; None fixes the follower at ref plus the first coefficient.
        polynomial: (5,) coefficients of p, lowest first.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    def __init__(
        self,
        model: Model,
        joint: str | int,
        other: str | int | None = None,
        *,
        polynomial: ArrayLike = (0.0, 1.0, 0.0, 0.0, 0.0),
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        joints = [_one_axis(as_model(model), joint, "joint")]
        self.turns = model.joint_type[joints[0]] == "hinge"  # whether its error is an angle
        coefficients = numbers(polynomial, "polynomial", (5,)).tolist()
        if other is None:
            target = float(model.joint_reference[joints[0]]) + coefficients[0]
            self._finish(model, _JOINT, 1, baumgarte, joints=[int(model.joint_vadr[joints[0]])], numbers=[1.0], target=[target])
            return
        joints.append(_one_axis(model, other, "other"))
        # links are numbered like joints
        self._finish(model, _COUPLING, 1, baumgarte, joints=joints, numbers=coefficients)


class JointFriction(Constraint):
    """Dry friction in a joint: one row per velocity, force in a box. Its error is zero.

    Args:
        model: the mechanism.
        joint: name or index.
        friction: largest force [N m or N]; default: the model's friction loss.
        baumgarte: gains (0, k_d [1/s]): there is no position error.
    """

    force_set = "box"

    def __init__(self, model: Model, joint: str | int, friction: float | None = None, *, baumgarte: ArrayLike = _NO_GAINS) -> None:
        j = as_model(model).joint_index(joint)
        rows = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}[model.joint_type[j]]
        first = int(model.joint_vadr[j])
        self.friction = float(model.dof_friction_loss[first]) if friction is None else number(friction, "friction", minimum=0.0)
        self._finish(model, _JOINT, rows, baumgarte, joints=list(range(first, first + rows)), numbers=[1.0] * rows)


class JointLimit(Constraint):
    """A limit of a hinge or slide: 1 row, force on a half-line, positive away from the limit.

    Error: distance to the limit, q − bound (lower) or bound − q (upper) [rad or m], positive inside.

    Args:
        model: the mechanism.
        joint: name or index.
        side: "lower" or "upper".
        bound: the limit [rad or m]; default: that of the joint's range. Without one, the error is undefined.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    force_set = "half-line"
    _aim = "bound"

    def __init__(
        self,
        model: Model,
        joint: str | int,
        side: Literal["lower", "upper"] = "lower",
        *,
        bound: float | None = None,
        baumgarte: ArrayLike = _NO_GAINS,
    ) -> None:
        j = _one_axis(as_model(model), joint, "joint")
        if side not in ("lower", "upper"):
            raise ArgumentError(f"side: expected 'lower' or 'upper', got {side!r}.")
        end = float(model.joint_range[j][int(side == "upper")]) if bound is None else number(bound, "bound")
        self._end = f"{side} end of joint {model.joint_names[j]!r}"
        self._finish(
            model,
            _JOINT,
            1,
            baumgarte,
            joints=[int(model.joint_vadr[j])],
            numbers=[1.0 if side == "lower" else -1.0],
            target=[end] if np.isfinite(end) else [],
        )


class CenterOfMass(Constraint):
    """The centre of mass of all moving bodies: 3 rows, world axes. It touches every link that has mass. Error: c − target [m].

    Args:
        model: the mechanism.
        target: (3,) in the world [m]; default: the current position, so that there is no error.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).
    """

    _aim = "target"

    def __init__(self, model: Model, *, target: ArrayLike | None = None, baumgarte: ArrayLike = _NO_GAINS) -> None:
        moving = float(as_model(model).body_mass[model.body_moves].sum())
        if not moving > 0:
            raise ArgumentError("model: nothing that moves has mass, so there is no centre of mass.")
        there = [] if target is None else numbers(target, "target", (3,)).tolist()
        self._finish(model, _CENTER, 3, baumgarte, numbers=[1.0 / moving], target=there)


class LinkConstraint(Constraint):
    """Any rows on any bodies: Σ K_b [velocity of the body's, or frame's, origin; angular velocity], world axes. Its error is zero.

    Args:
        model: the mechanism.
        terms: pairs (body, K) with K (rows, 6), the same number of rows in each.
        baumgarte: gains (0, k_d [1/s]): there is no position error.
    """

    def __init__(self, model: Model, terms: Iterable[tuple[Body, ArrayLike]], *, baumgarte: ArrayLike = _NO_GAINS) -> None:
        listed = list(terms) if isinstance(terms, Iterable) and not isinstance(terms, str) else None
        if listed is None or not all(isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2 for pair in listed):
            raise ArgumentTypeError(f"terms: expected a list of pairs (body, K), got {terms!r}.")
        if not listed:
            raise ArgumentError("terms: expected at least one pair (body, K), got none.")
        pairs = [(_end(as_model(model), body), as_array(K, "K")) for body, K in listed]
        rows = pairs[0][1].shape[0] if pairs[0][1].ndim == 2 else 0
        matrices = [numbers(K, "K", (max(rows, 1), 6)) for _, K in pairs]
        bodies = [end.body for end, _ in pairs]
        self._finish(
            model,
            _LINKS,
            rows,
            baumgarte,
            bodies=bodies,
            points=[x for end, _ in pairs for x in end.point((0.0, 0.0, 0.0), "point")],
            matrix=np.concatenate([K.ravel() for K in matrices]).tolist(),
        )


def from_loop(model: Model, loop: Loop, *, baumgarte: ArrayLike = _NO_GAINS) -> Constraint:
    """Make the constraint of a loop of the model, also of an inactive one.

    Args:
        model: the mechanism.
        loop: one of ``model.loops``.
        baumgarte: gains (k_p [1/s²], k_d [1/s]).

    Returns:
        a :class:`Connect`, :class:`Weld`, :class:`Hinge`, :class:`Universal`, :class:`Prismatic`, :class:`Cylindrical`, :class:`Planar`, :class:`Distance` or
        :class:`JointCoupling`.
    """
    if not isinstance(loop, LOOPS):
        raise ArgumentTypeError(f"loop: expected one of model.loops, got {type(loop).__name__}.")
    # fields of a loop are arguments of its class
    given = {field.name: getattr(loop, field.name) for field in fields(loop) if field.name not in ("name", "active")}
    make: Callable[..., Constraint] = _OF_LOOP[type(loop)]
    return make(model, **given, baumgarte=baumgarte)


_OF_LOOP: dict[type, type[Constraint]] = {
    ConnectLoop: Connect, WeldLoop: Weld, HingeLoop: Hinge, UniversalLoop: Universal, PrismaticLoop: Prismatic, CylindricalLoop: Cylindrical, PlanarLoop: Planar,
    DistanceLoop: Distance, JointLoop: JointCoupling,
}  # fmt: skip


def collect(model: Model, constraints: Sequence[Constraint | Loop]) -> list[Constraint]:
    """Check a list of constraints and loops of one model; loops become constraints, inactive ones are left out."""
    if isinstance(constraints, Constraint | str) or not isinstance(constraints, Iterable):
        raise ArgumentTypeError(f"constraints: expected a list of constraints, got {type(constraints).__name__}. Put it in a list.")
    out = []
    for k, c in enumerate(constraints):
        if isinstance(c, Constraint):
            made = c
        elif not isinstance(c, LOOPS):
            raise ArgumentTypeError(f"constraints[{k}]: expected a constraint or one of model.loops, got {c!r}.")
        elif c.active:
            made = from_loop(model, c)
        else:
            continue
        if made.model is not model and made.model != model:
            raise ArgumentError(
                f"constraints[{k}]: expected a constraint of model {model.name!r}, got one of {made.model.name!r}. Make a new one with this model."
            )
        out.append(made)
    return out


# ---- rows in a state -------------------------------------------------------------------------------------------------------

_NATIVE: dict[np.dtype[Any], Any] = {np.dtype(np.float64): _core.ConstraintRows64, np.dtype(np.float32): _core.ConstraintRows32}


class OnConstraints:
    """Base of classes for one model, a list of its constraints, and one precision."""

    def _prepare(
        self, model: Model, constraints: Sequence[Constraint | Loop], dtype: DTypeLike, natives: Mapping[np.dtype[Any], Any]
    ) -> tuple[np.dtype[Any], Any]:
        """Check and keep the model and its constraints; returns the precision and the native class that works in it."""
        self._model = as_model(model)
        found = native_class(dtype, natives)
        self._constraints = tuple(collect(model, constraints))
        return found

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self._model

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Its constraints, in the order of the rows."""
        return self._constraints


class ConstraintRows(OnConstraints):
    """Error, velocity, drift and bias of the rows of some constraints, with preallocated memory for repeated calls.

    One thread at a time may use it, otherwise :class:`~delassus.errors.BusyError`.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops; their rows in order. May be empty.
        dtype: float64 or float32; the work is done, and results returned, in this precision.

    Examples:
        >>> import delassus as dl
        >>> model = dl.load("cassie")
        >>> rows = dl.ConstraintRows(model, model.loops)
        >>> rows.error(model.keyframes["home"]).shape
        (12,)
    """

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop], dtype: DTypeLike = np.float64) -> None:
        self._dtype, native = self._prepare(model, constraints, dtype, _NATIVE)
        self._open = [c._end for c in self._constraints if isinstance(c, JointLimit) and not c._aimed]
        self._native = native(model._native, [c._native() for c in self._constraints])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the work."""
        return self._dtype

    def error(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Position errors e(q), (m,); see :func:`constraint_error`. Fills ``out`` if given."""
        if self._open:
            raise ArgumentError(f"constraints: there is no {self._open[0]}: its range is open. Give the JointLimit a bound.")
        return self._native.error(q, out)  # type: ignore[no-any-return]

    def velocity(self, q: ArrayLike, v: ArrayLike, *, out: Array | None = None) -> Array:
        """Velocities J v, (m,); see :func:`constraint_velocity`. Fills ``out`` if given."""
        return self._native.velocity(q, v, out)  # type: ignore[no-any-return]

    def drift(self, q: ArrayLike, v: ArrayLike, *, out: Array | None = None) -> Array:
        """Drifts J̇v, (m,); see :func:`constraint_drift`. Fills ``out`` if given."""
        return self._native.drift(q, v, out)  # type: ignore[no-any-return]

    def bias(self, q: ArrayLike, v: ArrayLike, *, out: Array | None = None) -> Array:
        """Biases J̇v + k_d J v + k_p e, (m,); see :func:`constraint_bias`. Fills ``out`` if given."""
        return self._native.bias(q, v, out)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy has memory of its own
        return ConstraintRows, (self._model, self._constraints, self._dtype)

    def __repr__(self) -> str:
        return f"<ConstraintRows of {self._model.name!r}: {sum(c.rows for c in self._constraints)} rows, {self._dtype}>"


def _rows(model: Model, constraints: Sequence[Constraint | Loop], *arrays: ArrayLike) -> ConstraintRows:
    """Rows in the precision of the arrays: float32 if all are."""
    single = all(getattr(a, "dtype", None) == np.float32 for a in arrays)
    return ConstraintRows(model, constraints, np.float32 if single else np.float64)


def constraint_error(model: Model, q: ArrayLike, constraints: Sequence[Constraint | Loop]) -> Array:
    """Position errors e(q) of the rows: zero where the constraint holds, and there ė = J v.

    Each class documents its error; constraints without a target have none. For repeated calls use :class:`ConstraintRows`.

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        constraints: constraints of this model, or its loops. May be empty.

    Returns:
        (m,) e [m or rad], in the axes of the rows.

    Raises:
        ArgumentError: a :class:`JointLimit` has no bound.
    """
    return _rows(model, constraints, q).error(q)


def constraint_velocity(model: Model, q: ArrayLike, v: ArrayLike, constraints: Sequence[Constraint | Loop]) -> Array:
    """Velocities J v of the rows, J not formed, O(n + m).

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        v: (nv,) velocity.
        constraints: constraints of this model, or its loops. May be empty.

    Returns:
        (m,) J v [m/s or rad/s], in the axes of the rows.

    Raises:
        SingularError: the two points of a :class:`Distance` coincide.
    """
    return _rows(model, constraints, q, v).velocity(q, v)


def constraint_drift(model: Model, q: ArrayLike, v: ArrayLike, constraints: Sequence[Constraint | Loop]) -> Array:
    """Drifts J̇v of the rows: rates of J v at constant v, including the motion of axes fixed to a body, O(n + m).

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        v: (nv,) velocity.
        constraints: constraints of this model, or its loops. May be empty.

    Returns:
        (m,) J̇v [m/s² or rad/s²], in the axes of the rows.

    Raises:
        SingularError: the two points of a :class:`Distance` coincide.
    """
    return _rows(model, constraints, q, v).drift(q, v)


def constraint_bias(model: Model, q: ArrayLike, v: ArrayLike, constraints: Sequence[Constraint | Loop]) -> Array:
    """Biases γ = J̇v + k_d J v + k_p e of the rows, with each constraint's gains: J v̇ + γ = 0 where the constraint holds.

    The desired acceleration of the rows is −k_d J v − k_p e; k_d = 2 √k_p is critical damping. O(n + m).

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        v: (nv,) velocity.
        constraints: constraints of this model, or its loops (whose gains are zero). May be empty.

    Returns:
        (m,) γ [m/s² or rad/s²], in the axes of the rows.

    Raises:
        SingularError: the two points of a :class:`Distance` coincide.
    """
    return _rows(model, constraints, q, v).bias(q, v)


def constraint_wrenches(model: Model, q: ArrayLike, constraint: Constraint | Loop, forces: ArrayLike) -> Array:
    """Wrenches on bodies due to the forces of a constraint's rows, in the format of a simulator's ``external_forces``.

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        constraint: a constraint of this model, or one of its loops, also an inactive one.
        forces: (rows,) forces of its rows [N or N m], such as ``step.loop_forces[name]``.

    Returns:
        (nbody, 6) [force; torque] in world axes at each body's centre of mass; zero for bodies that it does not touch.

    Raises:
        ArgumentError: its rows act on joints, not on bodies.
    """
    c = constraint if isinstance(constraint, Constraint) else from_loop(model, constraint)
    kind, rows, data = c._recipe
    if kind not in (_FRAME, _DISTANCE):
        raise ArgumentError(
            f"constraint: expected rows between two bodies, got a {type(c).__name__}, which acts on joints or on many bodies."
        )
    f = numbers(forces, "forces", (rows,))
    X = body_placements(as_model(model), q)
    one, two = data["bodies"]
    x, x_other = (X[b, :3, :3] @ data["points"][3 * k : 3 * k + 3] + X[b, :3, 3] for k, b in enumerate((one, two)))
    force, torque = _along_line(x - x_other, f) if kind == _DISTANCE else _in_axes(data, X, f)
    # the force on a sliding point acts at its current position
    places = (x_other if kind == _FRAME and data["point_rows"] < 3 else x, x_other)
    wrenches = np.zeros((model.nbody, 6))
    for body, place, sign in zip((one, two), places, (1.0, -1.0), strict=True):
        center = X[body, :3, :3] @ model.body_com[body] + X[body, :3, 3]
        wrenches[body] += sign * np.concatenate([force, torque + np.cross(place - center, force)])
    return wrenches


def _along_line(d: Array, f: Array) -> tuple[Array, Array]:
    return f[0] * d / np.linalg.norm(d), np.zeros(3)


def _in_axes(data: dict[str, Any], X: Array, f: Array) -> tuple[Array, Array]:
    """Force of rows in the axes of a frame, and their torque without that of the force's lever arm; world axes."""
    carrier = data["bodies"][data["axes_on"]] if data["axes_on"] >= 0 else 0
    axes = np.reshape(data["matrix"], (3, 3)) @ X[carrier, :3, :3].T
    pushes = data["point_rows"]
    first, turns = (pushes - 1 if pushes < 3 else 0), len(f) - pushes
    about = axes[3 - turns :]
    if len(f) == 4 and pushes == 3:
        a, b = np.reshape(data["target"], (2, 3))
        about = np.cross(X[data["bodies"][0], :3, :3] @ a, X[data["bodies"][1], :3, :3] @ b)[None]
    return f[:pushes] @ axes[first : first + pushes], f[pushes:] @ about
