"""Builds a model by hand, body by body."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._door import conform, count, number, numbers, text, vector
from ..errors import ArgumentError, ArgumentTypeError, ModelError
from ..spatial import compose, rotation_matrix
from .computed import computed
from .geometry import unshaped
from .loops import loops_from
from .model import Model
from .records import (
    COORDINATES,
    IDENTITY,
    UNBOUNDED,
    ZERO,
    Actuator,
    AxisLoop,
    Body,
    ConnectLoop,
    Frame,
    Joint,
    JointLoop,
    JointType,
    Loop,
    LoopKind,
    PrismaticLoop,
    Quaternion,
    Shape,
    Vector,
    WeldLoop,
)

__all__ = ["ModelBuilder"]


_tuple: Any = vector


def _bounds(value: ArrayLike, name: str) -> Any:
    return value if value is UNBOUNDED else tuple(conform(value, name, (2,), "float64").tolist())


def _inertia(inertia: ArrayLike, name: str) -> tuple[float, ...]:
    """(xx, yy, zz, xy, xz, yz) from any form of a body's inertia."""
    if isinstance(inertia, tuple) and len(inertia) in (3, 6) and isinstance(inertia[0], float):
        return (*vector(inertia, f"body {name!r}: inertia", len(inertia)), 0.0, 0.0, 0.0)[:6]
    I = numbers(inertia, f"body {name!r}: inertia", _shape(inertia))  # noqa: E741
    if I.shape == (3, 3):
        if abs(I - I.T).max() > 1e-9 * max(abs(I).max(), 1e-300):
            raise ModelError(f"body {name!r}: inertia must be symmetric, got {I.tolist()}.")
        return tuple(float(x) for x in (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))
    if I.shape not in ((3,), (6,)):
        raise ArgumentError(f"body {name!r}: inertia must have shape (6,), (3,) or (3, 3), got {I.shape}.")
    return (*I.tolist(), 0.0, 0.0, 0.0)[:6]


class ModelBuilder:
    """Collects bodies, joints, shapes and loops; :meth:`build` checks them and makes a :class:`Model`.

    Parents may be added after their children. Coordinates of the model are ordered depth first, as in MuJoCo.

    Examples:
        >>> b = ModelBuilder("pendulum")
        >>> b.add_body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.001, 0, 0, 0))
        'rod'
        >>> b.add_joint("rod", "hinge", axis=(0, 1, 0))
        'rod_hinge'
        >>> b.build().nv
        1
    """

    def __init__(self, name: str = "model", *, gravity: ArrayLike = (0.0, 0.0, -9.81)) -> None:
        self.name = text(name, "name")
        self.gravity = _tuple(gravity, "gravity", 3)
        self._bodies: list[Body] = []
        self._joints: list[Joint] = []
        self._joint_names: set[str] = set()
        self._shapes: list[Shape] = []
        self._loops: list[Loop | dict[str, Any]] = []
        self._actuators: list[Actuator] = []
        self._keyframes: dict[str, Any] = {}
        self._keyframe_velocities: dict[str, Any] = {}
        self._excludes: list[tuple[str, str]] = []
        self._frames: list[Frame] = []
        self._ignored: list[str] = []

    def add_body(
        self,
        name: str,
        parent: str = "world",
        *,
        position: ArrayLike = ZERO,
        quaternion: ArrayLike = IDENTITY,
        mass: float = 0.0,
        com: ArrayLike = ZERO,
        inertia: ArrayLike = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    ) -> str:
        """Add a body; returns its name.

        Args:
            name: unique name; "world" is the ground.
            parent: name of its parent body.
            position, quaternion: pose of its frame in its parent's, (3,) [m] and (4,).
            mass: mass [kg].
            com: (3,) centre of mass in the body frame [m].
            inertia: inertia about the centre of mass in body axes [kg m²]: (xx, yy, zz, xy, xz, yz), (xx, yy, zz) or (3, 3) symmetric.
        """
        self._bodies.append(Body(
            text(name, "name"), text(parent, "parent"), _tuple(position, "position", 3), _tuple(quaternion, "quaternion", 4), number(mass, "mass"),
            _tuple(com, "com", 3), _inertia(inertia, name),  # type: ignore[arg-type]
        ))  # fmt: skip
        return name

    def add_joint(
        self,
        body: str,
        type: JointType,
        *,
        name: str | None = None,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        position: ArrayLike = ZERO,
        reference: float = 0.0,
        range: tuple[float, float] = UNBOUNDED,
        armature: float = 0.0,
        damping: float = 0.0,
        stiffness: float = 0.0,
        spring_reference: ArrayLike | None = None,
        friction_loss: float = 0.0,
    ) -> str:
        """Add a joint between a body and its parent; returns its name.

        Args:
            body: name of the body it moves. Joints of one body act in the order they are added.
            type: "hinge", "slide", "ball" or "free" (only alone, on a body whose parent is the world).
            name: default: the body's name and the type.
            axis: (3,) axis of a hinge or slide, body frame.
            position: (3,) anchor, body frame [m].
            reference: coordinate at which the body has its described pose [rad or m].
            range: bounds of the coordinate.
            armature: inertia of the drive [kg m² or kg], added to each diagonal entry of M.
            damping, stiffness, friction_loss: parameters used by simulators.
            spring_reference: coordinates at which the spring is relaxed; default: the described pose.
        """
        body, kind = text(body, "body"), text(type, "type")
        if name is None:
            name = base = f"{body}_{kind}"
            k = 2
            while name in self._joint_names:
                name, k = f"{base}_{k}", k + 1
        spring: tuple[float, ...] = ()
        if spring_reference is not None:
            n = COORDINATES.get(kind, 1)
            spring = _tuple([spring_reference] if n == 1 and _shape(spring_reference) == () else spring_reference, "spring_reference", n)
        self._joints.append(Joint(
            text(name, "name"), type, body, _tuple(axis, "axis", 3), _tuple(position, "position", 3), number(reference, "reference"),
            _bounds(range, "range"), number(armature, "armature"), number(damping, "damping"), number(stiffness, "stiffness"), spring,
            number(friction_loss, "friction_loss"),
        ))  # fmt: skip
        self._joint_names.add(name)
        return name

    def add_shape(
        self,
        body: str,
        kind: str,
        size: ArrayLike,
        *,
        name: str | None = None,
        position: ArrayLike = ZERO,
        quaternion: ArrayLike = IDENTITY,
        friction: float = 1.0,
        contype: int = 1,
        conaffinity: int = 1,
        rgba: ArrayLike = (0.5, 0.5, 0.5, 1.0),
    ) -> str:
        """Add a collision shape; returns its name.

        Args:
            body: name of the body, or "world".
            kind: "plane", "sphere", "capsule", "ellipsoid", "cylinder" or "box".
            size: sizes as in MuJoCo: radius and half lengths [m].
            name: default: the body's name and a number.
            position, quaternion: pose in the body frame.
            friction: sliding coefficient.
            contype, conaffinity: MuJoCo's collision bits.
            rgba: colour.
        """
        name = f"{body}_shape_{len(self._shapes)}" if name is None else text(name, "name")
        self._shapes.append(Shape(
            name, text(body, "body"), text(kind, "kind"), _tuple(size, "size", (*_shape(size), 1)[0]), _tuple(position, "position", 3), _tuple(quaternion, "quaternion", 4),
            (number(friction, "friction", minimum=0.0), 0.005, 0.0001), count(contype, "contype", 0), count(conaffinity, "conaffinity", 0),
            rgba=_tuple(rgba, "rgba", 4),
        ))  # fmt: skip
        return name

    def add_connect(self, body: str, other: str, *, point: ArrayLike, other_point: ArrayLike, name: str | None = None) -> str:
        """Hold a point of one body on a point of another (3 rows); points in body coordinates. Returns the loop's name."""
        name = f"connect_{len(self._loops)}" if name is None else text(name, "name")
        self._loops.append(
            ConnectLoop(name, text(body, "body"), text(other, "other"), _tuple(point, "point", 3), _tuple(other_point, "other_point", 3))
        )
        return name

    def add_weld(
        self,
        body: str,
        other: str,
        *,
        point: ArrayLike = ZERO,
        quaternion: ArrayLike = IDENTITY,
        other_point: ArrayLike = ZERO,
        other_quaternion: ArrayLike = IDENTITY,
        name: str | None = None,
    ) -> str:
        """Hold a frame of one body on a frame of another (6 rows); frames in body coordinates. Returns the loop's name."""
        name = f"weld_{len(self._loops)}" if name is None else text(name, "name")
        self._loops.append(WeldLoop(
            name, text(body, "body"), text(other, "other"), _tuple(point, "point", 3), _tuple(quaternion, "quaternion", 4), _tuple(other_point, "other_point", 3),
            _tuple(other_quaternion, "other_quaternion", 4),
        ))  # fmt: skip
        return name

    def add_coupling(
        self, joint: str, other: str | None = None, *, polynomial: ArrayLike = (0.0, 1.0, 0.0, 0.0, 0.0), name: str | None = None
    ) -> str:
        """Make one coordinate follow another: q − ref = Σ c_k (q_other − ref_other)^k (1 row). Returns the loop's name."""
        name = f"coupling_{len(self._loops)}" if name is None else text(name, "name")
        follows = None if other is None else text(other, "other")
        self._loops.append(JointLoop(name, text(joint, "joint"), follows, _tuple(polynomial, "polynomial", 5)))
        return name

    def add_loop(
        self,
        kind: LoopKind,
        body: str | Frame,
        other: str | Frame | None = None,
        *,
        name: str | None = None,
        point: ArrayLike | None = None,
        other_point: ArrayLike | None = None,
        axis: ArrayLike | None = None,
        other_axis: ArrayLike | None = None,
        quaternion: ArrayLike | None = None,
        other_quaternion: ArrayLike | None = None,
        length: float | None = None,
        ratio: float | None = None,
        polynomial: ArrayLike | None = None,
        active: bool = True,
    ) -> str:
        """Close a loop by a joint or constraint of any kind; returns its name.

        A point, axis or orientation that is given for ``body`` only is placed on ``other`` so that both coincide in the reference configuration. If neither is given, the two frames shall coincide.

        Args:
            kind: "connect" (or "ball"), "weld", "hinge", "universal", "prismatic", "cylindrical", "planar", "distance", "gear" or "coupling"; the
                constraint of the same name describes its rows.
            body: name of a body, joint or frame, whose frame is used, or a :class:`Frame`. For a gear or coupling, the following joint.
            other: the same for the other side; None is the world. For a gear or coupling, the leading joint.
            name: default: the kind and a number.
            point, other_point: (3,) in the frames of body and other [m].
            axis, other_axis: (3,) axes of a hinge, universal, prismatic (``axis`` alone), cylindrical or planar loop; default: the axis of the joint, else z (universal: x and y).
            quaternion, other_quaternion: (4,) frames of a weld or prismatic loop.
            length: length of a distance loop [m].
            ratio: ratio of a gear, q − ref over q_other − ref_other.
            polynomial: (5,) coefficients of a coupling, see :meth:`add_coupling`.
            active: False to add it switched off.
        """
        loop_kind = text(kind, "kind")
        name = f"{loop_kind}_{len(self._loops)}" if name is None else text(name, "name")
        first = "joint" if loop_kind in ("gear", "coupling") else "body"
        given = {
            "point": point, "other_point": other_point, "axis": axis, "other_axis": other_axis, "quaternion": quaternion, "other_quaternion": other_quaternion,
            "length": length, "ratio": ratio, "polynomial": polynomial, "other": other,
        }  # fmt: skip
        said = {key: value for key, value in given.items() if value is not None}
        self._loops.append({"kind": loop_kind, "name": name, "active": active, first: body, **said})
        return name

    def add_actuator(
        self, joint: str, *, name: str | None = None, gear: float = 1.0, control_range: tuple[float, float] = UNBOUNDED
    ) -> str:
        """Add a motor: joint force = gear · control. Returns its name."""
        name = text(joint if name is None else name, "name")
        bounds = _bounds(control_range, "control_range")
        self._actuators.append(Actuator(name, text(joint, "joint"), number(gear, "gear"), control_range=bounds))
        return name

    def add_keyframe(self, name: str, q: ArrayLike, v: ArrayLike | None = None) -> None:
        """Store a configuration (nq,), and optionally a velocity (nv,), under a name."""
        self._keyframes[text(name, "name")] = tuple(float(x) for x in numbers(q, "q", _shape(q)))
        if v is not None:
            self._keyframe_velocities[name] = tuple(float(x) for x in numbers(v, "v", _shape(v)))

    def add_frame(self, name: str, body: str, *, position: ArrayLike = ZERO, quaternion: ArrayLike = IDENTITY) -> str:
        """Name a frame fixed to a body, or to another frame; returns its name.

        Args:
            name: name, unique among frames.
            body: name of the body, or frame, that carries it.
            position, quaternion: pose on that body or frame, (3,) [m] and (4,).
        """
        self._frames.append(Frame(name, body, _tuple(position, "position", 3), _tuple(quaternion, "quaternion", 4)))
        return name

    def exclude_collision(self, body: str, other: str) -> None:
        """Let the shapes of two bodies pass through each other."""
        self._excludes.append((text(body, "body"), text(other, "other")))

    def add_model(self, model: Model, *, prefix: str, position: ArrayLike = ZERO, quaternion: ArrayLike = IDENTITY) -> None:
        """Place a whole model on the ground, with ``prefix`` before every name; its gravity and keyframes are not copied.

        Nor are meshes, height fields, explicit pairs and priorities of a loaded model: ``ignored`` of the built model lists them.

        Args:
            model: model to add.
            prefix: prefix of all its names, so that one model can be added several times.
            position, quaternion: pose of its world in this one, (3,) [m] and (4,).
        """
        if not isinstance(model, Model) or not isinstance(prefix, str):
            got = f"{type(model).__name__} and {type(prefix).__name__}"
            raise ArgumentTypeError(f"model, prefix: expected a delassus.Model and a string, got {got}. Use delassus.load.")
        R, p = rotation_matrix(quaternion), numbers(position, "position", (3,))
        turn = _tuple(quaternion, "quaternion", 4)

        def named(name: str) -> str:
            return name if name == "world" else prefix + name

        def placed(body: str, at: Vector, facing: Quaternion) -> tuple[Any, Any]:
            if body != "world":
                return at, facing
            return tuple((R @ np.array(at) + p).tolist()), compose(turn, facing)

        def along(body: str, axis: Vector) -> Any:
            return axis if body != "world" else tuple((R @ np.array(axis)).tolist())

        for body in model.bodies:
            at, facing = placed(body.parent, body.position, body.quaternion)
            self._bodies.append(replace(body, name=named(body.name), parent=named(body.parent), position=at, quaternion=facing))
        for joint in model.joints:
            self._joint_names.add(named(joint.name))
            self._joints.append(replace(joint, name=named(joint.name), body=named(joint.body)))
        for shape in model.shapes:
            at, facing = placed(shape.body, shape.position, shape.quaternion)
            self._shapes.append(replace(shape, name=named(shape.name), body=named(shape.body), position=at, quaternion=facing))
        for loop in model.loops:
            self._loops.append(self._moved_loop(loop, named, placed, along))
        self._actuators.extend(replace(a, name=named(a.name), joint=named(a.joint)) for a in model.actuators if a.joint is not None)
        self._excludes.extend((named(a), named(b)) for a, b in model.collision_excludes)
        for frame in model.frames.values():
            at, facing = placed(frame.body, frame.position, frame.quaternion)
            self._frames.append(Frame(named(frame.name), named(frame.body), at, facing))
        lost = (*unshaped(model._compiled), *computed(model._compiled)) if model._compiled is not None else ()
        self._ignored.extend(f"{prefix}{model.name}: {what}" for what in (*model.ignored, *lost))

    @staticmethod
    def _moved_loop(loop: Loop, named: Any, placed: Any, along: Any) -> Loop:
        if isinstance(loop, JointLoop):
            return replace(loop, name=named(loop.name), joint=named(loop.joint), other=loop.other and named(loop.other))
        turn, other_turn = (loop.quaternion, loop.other_quaternion) if isinstance(loop, WeldLoop | PrismaticLoop) else (IDENTITY, IDENTITY)
        point, turn = placed(loop.body, loop.point, turn)
        other_point, other_turn = placed(loop.other, loop.other_point, other_turn)
        moved: Any = replace(
            loop, name=named(loop.name), body=named(loop.body), other=named(loop.other), point=point, other_point=other_point
        )
        if isinstance(loop, WeldLoop | PrismaticLoop):
            moved = replace(moved, quaternion=turn, other_quaternion=other_turn)
        if isinstance(loop, AxisLoop | PrismaticLoop):
            moved = replace(moved, axis=along(loop.body, loop.axis))
        if isinstance(loop, AxisLoop):
            moved = replace(moved, other_axis=along(loop.other, loop.other_axis))
        return moved  # type: ignore[no-any-return]

    def build(self) -> Model:
        """Check everything and make the model.

        Raises:
            ModelError: the description is not of a possible mechanism; the message names the body or joint and a remedy.
        """
        loops: Any = self._loops
        if any(isinstance(loop, dict) for loop in loops):
            # what a loop leaves out follows from the reference poses of the bodies
            loops = loops_from(Model(self.name, self._bodies, self._joints, frames=self._frames), self._loops)
        return Model(
            self.name, self._bodies, self._joints, gravity=self.gravity, loops=loops, shapes=self._shapes, actuators=self._actuators,
            keyframes=self._keyframes, keyframe_velocities=self._keyframe_velocities, collision_excludes=self._excludes, frames=self._frames,
            ignored=self._ignored,
        )  # fmt: skip


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:
        return ()
