"""Conversion of Pinocchio models. The order of coordinates becomes depth first; joints keep their names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentTypeError
from .from_mujoco import finite_or_open, one_value
from .model import Model
from .records import UNBOUNDED, VELOCITIES, Body, Frame, Joint, JointType, Vector

AXES: dict[str, Vector] = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
SUPPORTED = "revolute, prismatic, spherical, spherical ZYX, planar, translation and a free flyer at the root"


def from_pinocchio(m: Any, name: str | None = None) -> Model:
    """Take joints, inertias and body frames from a ``pinocchio.Model``.

    Each Pinocchio joint becomes a body of the same name; each of its body frames another, fixed one; other frames stay frames. Planar joints become
    two slides and a hinge, translations three slides, ZYX spherical joints three hinges. Velocities of a free flyer become
    MuJoCo's: linear in world, angular in body.
    """
    names = ["world", *(str(m.names[j]) for j in range(1, m.njoints))]
    bodies: list[Body] = []
    joints: list[Joint] = []
    ignored: list[str] = []
    for j in range(m.njoints):
        mass, com, inertia = _inertial(m.inertias[j])
        if j == 0:
            if mass > 0:
                bodies.append(Body("universe", "world", mass=mass, com=com, inertia=inertia))
            continue
        placement = m.jointPlacements[j]
        bodies.append(Body(names[j], names[m.parents[j]], _row(placement.translation), _quaternion(placement.rotation), mass, com, inertia))
        joints.extend(_joints(m, j, names[j], ignored))
    taken = {"world", *(b.name for b in bodies)}
    frames: dict[str, Frame] = {}
    for frame in m.frames:
        if frame.name in taken:
            continue
        parent = int(frame.parentJoint if hasattr(frame, "parentJoint") else frame.parent)
        place = names[parent], _row(frame.placement.translation), _quaternion(frame.placement.rotation)
        if str(frame.type) == "BODY":
            taken.add(frame.name)
            bodies.append(Body(frame.name, *place))
        elif frame.name not in ("universe", *frames):
            frames[frame.name] = Frame(frame.name, *place)
    kept = [frame for frame in frames.values() if frame.name not in taken]
    return Model(name or m.name or "model", bodies, joints, gravity=_row(m.gravity.linear), frames=kept, ignored=ignored)


def _row(values: Any) -> Any:
    return tuple(float(x) for x in values)


def _inertial(Y: Any) -> tuple[float, Any, Any]:
    I = Y.inertia  # noqa: E741
    return float(Y.mass), _row(Y.lever), _row((I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))


def _quaternion(R: Any) -> Any:
    import mujoco

    q = np.empty(4)
    mujoco.mju_mat2Quat(q, np.ascontiguousarray(R, dtype=np.float64).ravel())
    return _row(q)


def _joints(m: Any, j: int, name: str, ignored: list[str]) -> list[Joint]:
    joint = m.joints[j]
    kind = str(joint.shortname()).removeprefix("JointModel")
    v = int(joint.idx_v)

    def one(label: str, type_: JointType, axis: Vector, at: int, q: int | None) -> Joint:
        bounds = finite_or_open(m.lowerPositionLimit[q], m.upperPositionLimit[q]) if q is not None else UNBOUNDED
        dofs = slice(at, at + VELOCITIES[type_])
        armature, damping, friction = (
            one_value(getattr(m, what)[dofs], f"{what} of joint {label!r}", ignored) if hasattr(m, what) else 0.0
            for what in ("armature", "damping", "friction")
        )
        return Joint(
            label,
            type_,
            name,
            axis,
            range=bounds if bounds[0] <= bounds[1] else UNBOUNDED,
            armature=armature,
            damping=damping,
            friction_loss=friction,
        )

    q = int(joint.idx_q)
    if kind == "FreeFlyer":
        if m.parents[j] != 0:
            raise ArgumentTypeError(f"model: joint {name!r} is a free flyer that does not hang on the world. Supported: {SUPPORTED}.")
        return [one(name, "free", AXES["Z"], v, None)]
    if kind in ("RX", "RY", "RZ", "PX", "PY", "PZ"):
        return [one(name, "hinge" if kind[0] == "R" else "slide", AXES[kind[1]], v, q)]
    if kind in ("RUBX", "RUBY", "RUBZ"):
        return [one(name, "hinge", AXES[kind[3]], v, None)]
    if kind in ("RevoluteUnaligned", "PrismaticUnaligned", "RevoluteUnboundedUnaligned"):
        data = joint.createData()
        joint.calc(data, np.array([0.0] if joint.nq == 1 else [1.0, 0.0]))
        axis = _row(np.ravel(data.S)[:3] if kind[0] == "P" else np.ravel(data.S)[3:])
        return [one(name, "slide" if kind[0] == "P" else "hinge", axis, v, q if joint.nq == 1 else None)]
    if kind == "Spherical":
        return [one(name, "ball", AXES["Z"], v, None)]
    several: dict[str, list[tuple[str, JointType]]] = {
        "Translation": [("X", "slide"), ("Y", "slide"), ("Z", "slide")],
        "Planar": [("X", "slide"), ("Y", "slide"), ("Z", "hinge")],
        "SphericalZYX": [("Z", "hinge"), ("Y", "hinge"), ("X", "hinge")],
    }
    if kind in several:
        # the angle of a planar joint is stored as cosine and sine, which have no range
        return [
            one(f"{name}_{axis.lower()}", type_, AXES[axis], v + k, q + k if kind != "Planar" or type_ == "slide" else None)
            for k, (axis, type_) in enumerate(several[kind])
        ]
    raise ArgumentTypeError(f"model: joint {name!r} is a Pinocchio {kind}, which is not supported. Supported: {SUPPORTED}.")
