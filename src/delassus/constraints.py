"""Constraints between bodies, bodies and the world, and on joints: what moves together, what touches, what rubs.

A constraint says its rows (velocity of the rows = J v) and the set its force lives in. Points are in body coordinates; ``other=None`` is the
world, whose body coordinates are world coordinates. Rows between two bodies are the velocity of ``point`` on ``body`` minus that of
``other_point`` on ``other``, each at its own place. A positive force pushes ``body`` away from ``other``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._door import as_array, number, numbers
from .errors import ArgumentError, ArgumentTypeError
from .model import ConnectLoop, JointLoop, Loop, Model, WeldLoop

__all__ = [
    "CenterOfMass",
    "Connect",
    "Constraint",
    "Distance",
    "Hinge",
    "JointCoupling",
    "JointFriction",
    "JointLimit",
    "LinkConstraint",
    "PointContact",
    "Weld",
    "from_loop",
]

ForceSet = Literal["free", "cone", "half-line", "box"]
Body = str | int
_FRAME, _DISTANCE, _JOINT, _COUPLING, _CENTER, _LINKS = range(6)


class Constraint:
    """A block of rows. Made by its subclasses; never changes.

    Attributes:
        model: whose bodies it ties.
        rows: how many.
        force_set: where its force lives: "free", "cone" (normal first), "half-line" (non-negative) or "box".
    """

    force_set: ClassVar[ForceSet] = "free"
    model: Model
    rows: int

    def _finish(self, model: Model, kind: int, rows: int, **data: Any) -> None:
        self.model, self.rows = model, rows
        blank: dict[str, Any] = {"bodies": [], "points": [], "matrix": [], "axes_on": -1, "joints": [], "numbers": []}
        self._recipe = (kind, rows, blank | data)

    def _native(self) -> _core.Constraint:
        kind, rows, data = self._recipe
        return _core.Constraint(kind, rows, **data)

    def __repr__(self) -> str:
        _, rows, data = self._recipe
        names = [self.model.body_names[b] for b in data["bodies"]]
        return f"<{type(self).__name__}: {rows} row{'s' if rows != 1 else ''}{' on ' + ' and '.join(names) if names else ''}>"


def _model(model: Any) -> Model:
    if not isinstance(model, Model):
        raise ArgumentTypeError(f"model: expected a delassus.Model, got {type(model).__name__}. Use delassus.load.")
    return model


def _place(model: Model, body: Body, other: Body | None, point: ArrayLike, other_point: ArrayLike) -> dict[str, Any]:
    bodies = [model.body_index(body), 0 if other is None else model.body_index(other)]
    return {"bodies": bodies, "points": [*numbers(point, "point", (3,)).tolist(), *numbers(other_point, "other_point", (3,)).tolist()]}


def _axes(direction: ArrayLike, name: str) -> NDArray[np.float64]:
    """Rows: the unit direction, then two unit tangents."""
    n = numbers(direction, name, (3,))
    length = np.linalg.norm(n)
    if not length > 0:
        raise ArgumentError(f"{name}: expected a direction other than zero, got {n.tolist()}.")
    n = n / length
    helper = np.eye(3)[np.argmin(np.abs(n))]
    t = np.cross(helper, n)
    t /= np.linalg.norm(t)
    return np.array([n, t, np.cross(n, t)])


class PointContact(Constraint):
    """A point of a body touches another body or the world: 3 rows, normal first, force in a friction cone.

    Args:
        model: whose body it is.
        body: name or index.
        point: (3,) on the body [m].
        other: body touched; None is the world.
        other_point: (3,) on the other body [m].
        normal: (3,) n from other to body, world axes. The tangents are e × n, scaled, and n × that, with e the coordinate axis n leans to least.
        friction: sliding coefficient.
    """

    force_set = "cone"

    def __init__(
        self,
        model: Model,
        body: Body,
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        other: Body | None = None,
        other_point: ArrayLike = (0.0, 0.0, 0.0),
        normal: ArrayLike = (0.0, 0.0, 1.0),
        friction: float = 0.8,
    ) -> None:
        self.friction = number(friction, "friction", minimum=0.0)
        axes = _axes(normal, "normal")
        self._finish(_model(model), _FRAME, 3, matrix=axes.ravel().tolist(), **_place(model, body, other, point, other_point))


class _BetweenPoints(Constraint):
    """Ties a point of one body to a point of another.

    Args:
        model: whose bodies they are.
        body, other: names or indices; other=None is the world.
        point, other_point: (3,) on each [m].
    """

    _kind: ClassVar[int]
    _count: ClassVar[int]

    def __init__(
        self,
        model: Model,
        body: Body,
        other: Body | None = None,
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        other_point: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        self._finish(
            _model(model), self._kind, self._count, matrix=np.eye(3).ravel().tolist(), **_place(model, body, other, point, other_point)
        )


class Connect(_BetweenPoints):
    """Two points stay together: 3 rows, world axes. Arguments: model, body, other=None (the world), point and other_point (3,) [m] on each."""

    _kind, _count = _FRAME, 3


class Weld(_BetweenPoints):
    """Two frames stay together: 3 rows of the points, 3 of the rotation, world axes. Arguments as of :class:`Connect`."""

    _kind, _count = _FRAME, 6


class Distance(_BetweenPoints):
    """Two points keep their distance: 1 row along the line between them; they must not coincide. Arguments as of :class:`Connect`."""

    _kind, _count = _DISTANCE, 1


class Hinge(Constraint):
    """Two bodies turn about a common axis: 3 rows of the points, 2 of the rotation across the axis.

    Args:
        model: whose bodies they are.
        body, other: names or indices; other=None is the world.
        axis: (3,) n on the body. Rows are along n, e × n (scaled) and n × that, then about the last two, all carried by the body; e is the
            body's coordinate axis that n leans to least.
        point, other_point: (3,) on each [m].
    """

    def __init__(
        self,
        model: Model,
        body: Body,
        other: Body | None = None,
        *,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        point: ArrayLike = (0.0, 0.0, 0.0),
        other_point: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        axes = _axes(axis, "axis")
        self._finish(_model(model), _FRAME, 5, matrix=axes.ravel().tolist(), axes_on=0, **_place(model, body, other, point, other_point))


def _one_axis(model: Model, joint: str | int, what: str) -> int:
    j = model.joint_index(joint)
    if model.joint_type[j] not in ("hinge", "slide"):
        raise ArgumentError(f"{what}: expected a hinge or slide, got joint {model.joint_names[j]!r} of type {model.joint_type[j]}.")
    return j


class JointCoupling(Constraint):
    """One hinge or slide follows another: 1 row, v − p'(q_other) v_other, for q − ref = p(q_other − ref_other).

    Args:
        model: whose joints they are.
        joint: name or index of the follower.
        other: name or index of the leader; None holds the follower still.
        polynomial: (5,) coefficients of p, lowest first.
    """

    def __init__(
        self, model: Model, joint: str | int, other: str | int | None = None, *, polynomial: ArrayLike = (0.0, 1.0, 0.0, 0.0, 0.0)
    ) -> None:
        joints = [_one_axis(_model(model), joint, "joint")]
        coefficients = numbers(polynomial, "polynomial", (5,)).tolist()
        if other is None:
            self._finish(model, _JOINT, 1, joints=[int(model.joint_vadr[joints[0]])], numbers=[1.0])
            return
        joints.append(_one_axis(model, other, "other"))
        # links are numbered like joints
        self._finish(model, _COUPLING, 1, joints=joints, numbers=coefficients)


class JointFriction(Constraint):
    """Dry friction in a joint: a row a velocity of it, force in a box.

    Args:
        model: whose joint it is.
        joint: name or index.
        friction: largest force [N m or N]; default the model's friction loss.
    """

    force_set = "box"

    def __init__(self, model: Model, joint: str | int, friction: float | None = None) -> None:
        j = _model(model).joint_index(joint)
        rows = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}[model.joint_type[j]]
        first = int(model.joint_vadr[j])
        self.friction = float(model.dof_friction_loss[first]) if friction is None else number(friction, "friction", minimum=0.0)
        self._finish(model, _JOINT, rows, joints=list(range(first, first + rows)), numbers=[1.0] * rows)


class JointLimit(Constraint):
    """An end of a hinge's or slide's range: 1 row, force on a half-line, positive away from the end.

    Args:
        model: whose joint it is.
        joint: name or index.
        side: "lower" or "upper".
    """

    force_set = "half-line"

    def __init__(self, model: Model, joint: str | int, side: Literal["lower", "upper"] = "lower") -> None:
        j = _one_axis(_model(model), joint, "joint")
        if side not in ("lower", "upper"):
            raise ArgumentError(f"side: expected 'lower' or 'upper', got {side!r}.")
        self._finish(model, _JOINT, 1, joints=[int(model.joint_vadr[j])], numbers=[1.0 if side == "lower" else -1.0])


class CenterOfMass(Constraint):
    """The centre of mass of everything that moves: 3 rows, world axes. It touches every link that has mass."""

    def __init__(self, model: Model) -> None:
        moving = float(_model(model).body_mass[model.body_moves].sum())
        if not moving > 0:
            raise ArgumentError("model: nothing that moves has mass, so there is no centre of mass.")
        self._finish(model, _CENTER, 3, numbers=[1.0 / moving])


class LinkConstraint(Constraint):
    """Any rows on any bodies: Σ K_b [velocity of the body's origin; angular velocity], world axes.

    Args:
        model: whose bodies they are.
        terms: pairs (body, K) with K (rows, 6), the same number of rows in each.
    """

    def __init__(self, model: Model, terms: Iterable[tuple[Body, ArrayLike]]) -> None:
        listed = list(terms) if isinstance(terms, Iterable) and not isinstance(terms, str) else None
        if listed is None or not all(isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2 for pair in listed):
            raise ArgumentTypeError(f"terms: expected a list of pairs (body, K), got {terms!r}.")
        if not listed:
            raise ArgumentError("terms: expected at least one pair (body, K), got none.")
        pairs = [(_model(model).body_index(body), as_array(K, "K")) for body, K in listed]
        rows = pairs[0][1].shape[0] if pairs[0][1].ndim == 2 else 0
        matrices = [numbers(K, "K", (max(rows, 1), 6)) for _, K in pairs]
        bodies = [b for b, _ in pairs]
        self._finish(
            model,
            _LINKS,
            rows,
            bodies=bodies,
            points=[0.0] * (3 * len(bodies)),
            matrix=np.concatenate([K.ravel() for K in matrices]).tolist(),
        )


def from_loop(model: Model, loop: Loop) -> Constraint:
    """Make the constraint of a loop that the model's file declared, also of one that it switched off."""
    if isinstance(loop, ConnectLoop):
        return Connect(model, loop.body, loop.other, point=loop.point, other_point=loop.other_point)
    if isinstance(loop, WeldLoop):
        return Weld(model, loop.body, loop.other, point=loop.point, other_point=loop.other_point)
    if isinstance(loop, JointLoop):
        return JointCoupling(model, loop.joint, loop.other, polynomial=loop.polynomial)
    raise ArgumentTypeError(f"loop: expected ConnectLoop, WeldLoop or JointLoop, got {type(loop).__name__}.")


def collect(model: Model, constraints: Sequence[Constraint | Loop]) -> list[Constraint]:
    """Check a list of constraints and loops of one model; loops become constraints, those the file switched off are left out."""
    if isinstance(constraints, Constraint | str) or not isinstance(constraints, Iterable):
        raise ArgumentTypeError(f"constraints: expected a list of constraints, got {type(constraints).__name__}. Put it in a list.")
    out = []
    for k, c in enumerate(constraints):
        if not isinstance(c, Constraint | ConnectLoop | WeldLoop | JointLoop):
            raise ArgumentTypeError(f"constraints[{k}]: expected a constraint or one of model.loops, got {c!r}.")
        if not isinstance(c, Constraint) and not c.active:
            continue
        made = c if isinstance(c, Constraint) else from_loop(model, c)
        if made.model is not model and made.model != model:
            raise ArgumentError(
                f"constraints[{k}]: expected a constraint of model {model.name!r}, got one of {made.model.name!r}. Make it anew with this model."
            )
        out.append(made)
    return out
