"""Checks that a description is of a possible mechanism. Each check names what it refuses and a remedy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._door import are_floats, text, unknown
from ..errors import ArgumentTypeError, ModelError, NotFiniteError, QuaternionError
from ..spatial import rotation_matrix
from .records import (
    COORDINATES,
    JOINT_TYPES,
    QUATERNION_SLACK,
    SHAPE_SIZES,
    Actuator,
    AxisLoop,
    Body,
    DistanceLoop,
    Joint,
    JointLoop,
    Loop,
    PrismaticLoop,
    Shape,
    WeldLoop,
)

if TYPE_CHECKING:
    from .model import Model

# Published inertias are rounded to a few digits: principal moments may break the triangle inequality by this much, relatively.
TRIANGLE_SLACK = 1e-3


def check_everything(model: Model) -> None:
    """Raise an error for the first invalid record of a model."""
    for body in model.bodies:
        _check_body(body)
    for joint in model.joints:
        _check_joint(joint)
    names = {"world", *(b.name for b in model.bodies)}
    joints = {j.name: j for j in model.joints}
    _check_names(model)
    for shape in model.shapes:
        _check_shape(shape, names)
    for loop in model.loops:
        _check_loop(loop, names, joints)
    for actuator in model.actuators:
        _check_actuator(actuator, joints)
    for pair in model.collision_excludes:
        for body_name in pair:
            if body_name not in names:
                raise unknown("collision_excludes: body", body_name, sorted(names))
    _check_tree(model)


def _check_loop(loop: Loop, names: set[str], joints: dict[str, Joint]) -> None:
    what = f"loop {loop.name!r}"
    if isinstance(loop, JointLoop):
        for joint_name in (loop.joint, loop.other):
            if joint_name is not None and joint_name not in joints:
                raise unknown(f"{what}: joint", joint_name, joints)
            if joint_name is not None and joints[joint_name].type not in ("hinge", "slide"):
                raise ModelError(f"{what}: joint {joint_name!r} is a {joints[joint_name].type}; only hinges and slides can be coupled.")
        _numbers(f"{what}: polynomial", loop.polynomial, 5)
        return
    for body_name in (loop.body, loop.other):
        if body_name not in names:
            raise unknown(f"{what}: body", body_name, sorted(names))
    _numbers(f"{what}: point", loop.point, 3)
    _numbers(f"{what}: other_point", loop.other_point, 3)
    if isinstance(loop, AxisLoop | PrismaticLoop):
        for name in ("axis", "other_axis") if isinstance(loop, AxisLoop) else ("axis",):
            axis = getattr(loop, name)
            _numbers(f"{what}: {name}", axis, 3)
            if not any(axis):
                raise ModelError(f"{what}: {name}: expected a length other than zero, got {axis}.")
    if isinstance(loop, WeldLoop | PrismaticLoop):
        _quaternion(f"{what}: quaternion", loop.quaternion)
        _quaternion(f"{what}: other_quaternion", loop.other_quaternion)
    if isinstance(loop, DistanceLoop):
        _numbers(f"{what}: length", (loop.length,), 1)
        if not loop.length > 0:
            raise ModelError(
                f"{what}: length: expected a positive length, got {loop.length:g} m. Use a connect loop for points that coincide."
            )


def _check_names(model: Model) -> None:
    for kind in ("loops", "shapes", "actuators"):
        seen: set[str] = set()
        for record in getattr(model, kind):
            if text(record.name, f"name of one of the {kind}") in seen:
                raise ModelError(f"{kind[:-1]} {record.name!r}: two {kind} have this name; names must differ.")
            seen.add(record.name)


def _numbers(what: str, values: Any, n: int) -> None:
    if are_floats(values, n):
        return
    if not (isinstance(values, tuple) and len(values) == n and all(isinstance(x, (int, float)) for x in values)):
        raise ArgumentTypeError(f"{what}: expected a tuple of {n} numbers, got {values!r}.")
    if not all(map(math.isfinite, values)):
        raise NotFiniteError(f"{what}: every number must be finite, got {values}.")


def _range(what: str, bounds: Any) -> None:
    if not (isinstance(bounds, tuple) and len(bounds) == 2 and bounds[0] <= bounds[1] and bounds[0] < math.inf and bounds[1] > -math.inf):
        raise ModelError(f"{what} must be (low, high) with low ≤ high, got {bounds}.")


def _quaternion(what: str, quaternion: Any) -> None:
    _numbers(what, quaternion, 4)
    length = math.hypot(*quaternion)
    if not abs(length - 1) <= QUATERNION_SLACK:
        raise QuaternionError(f"{what}: (w, x, y, z) must have length 1, got {quaternion} of length {length:g}. Divide it by its length.")


def _check_body(body: Body) -> None:
    what = f"body {body.name!r}"
    _numbers(f"{what}: position", body.position, 3)
    _quaternion(f"{what}: quaternion", body.quaternion)
    _numbers(f"{what}: com", body.com, 3)
    _numbers(f"{what}: mass", (body.mass,), 1)
    _numbers(f"{what}: inertia", body.inertia, 6)
    if body.mass < 0:
        raise ModelError(f"{what}: mass must not be negative, got {body.mass:g} kg.")
    xx, yy, zz, xy, xz, yz = body.inertia
    if body.mass == 0 and any(body.inertia):
        raise ModelError(
            f"{what}: inertia without mass is not physical, got mass 0 and inertia {body.inertia}. Give it a mass, or use armature."
        )
    a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) if xy or xz or yz else sorted((xx, yy, zz))
    if not is_physical(body.mass, a, b, c):
        raise ModelError(
            f"{what}: inertia is not physical: its principal moments ({a:.6g}, {b:.6g}, {c:.6g}) kg m² must be non-negative and no one "
            "larger than the sum of the others. Check that it is about the centre of mass, in body axes."
        )


def is_physical(mass: float, a: float, b: float, c: float) -> bool:
    """Whether some distribution of this mass has the principal moments a ≤ b ≤ c, up to rounding."""
    rounding = 1e-15 * mass
    return (mass > 0 or a == b == c == 0) and a >= -1e-9 * c - rounding and a + b >= c * (1 - TRIANGLE_SLACK) - rounding


def _check_joint(joint: Joint) -> None:
    what = f"joint {joint.name!r}"
    if joint.type not in JOINT_TYPES:
        raise ModelError(f"{what}: type must be one of {', '.join(JOINT_TYPES)}, got {joint.type!r}.")
    _numbers(f"{what}: axis", joint.axis, 3)
    if not any(joint.axis):
        raise ModelError(f"{what}: axis: expected a length other than zero, got {joint.axis}.")
    _numbers(f"{what}: position", joint.position, 3)
    _numbers(f"{what}: reference", (joint.reference,), 1)
    if joint.spring_reference:
        _numbers(f"{what}: spring_reference", joint.spring_reference, COORDINATES[joint.type])
        if joint.type in ("ball", "free"):
            _quaternion(f"{what}: spring_reference", joint.spring_reference[-4:])
    for name in ("armature", "damping", "stiffness", "friction_loss"):
        value = getattr(joint, name)
        _numbers(f"{what}: {name}", (value,), 1)
        if value < 0:
            raise ModelError(f"{what}: {name} must not be negative, got {value:g}.")
    _range(f"{what}: range", joint.range)


def _check_actuator(actuator: Actuator, joints: dict[str, Joint]) -> None:
    what = f"actuator {actuator.name!r}"
    if actuator.joint is None:
        return
    if actuator.joint not in joints:
        raise unknown(f"{what}: joint", actuator.joint, joints)
    if joints[actuator.joint].type not in ("hinge", "slide"):
        raise ModelError(f"{what}: joint {actuator.joint!r} is a {joints[actuator.joint].type}; only hinges and slides can be driven.")
    _numbers(f"{what}: gear and gain", (actuator.gear, actuator.gain), 2)
    _numbers(f"{what}: bias", actuator.bias, 3)
    _range(f"{what}: control_range", actuator.control_range)
    _range(f"{what}: force_range", actuator.force_range)


def _check_shape(shape: Shape, names: set[str]) -> None:
    what = f"shape {shape.name!r}"
    if shape.body not in names:
        raise unknown(f"{what}: body", shape.body, sorted(names))
    if shape.kind not in SHAPE_SIZES:
        raise ModelError(f"{what}: kind must be one of {', '.join(SHAPE_SIZES)}, got {shape.kind!r}.")
    if len(shape.size) != SHAPE_SIZES[shape.kind]:
        raise ModelError(f"{what}: a {shape.kind} has {SHAPE_SIZES[shape.kind]} sizes, got {len(shape.size)}.")
    _numbers(f"{what}: size", shape.size, len(shape.size))
    _numbers(f"{what}: position", shape.position, 3)
    _quaternion(f"{what}: quaternion", shape.quaternion)
    _numbers(f"{what}: friction", shape.friction, 3)
    if min(shape.friction) < 0:
        raise ModelError(f"{what}: friction must not be negative, got {shape.friction}.")
    if shape.kind != "plane" and min(shape.size) <= 0:
        raise ModelError(f"{what}: sizes must be positive, got {shape.size}.")


def _check_tree(model: Model) -> None:
    """Check that free joints are alone at the root, and that every joint moves some inertia."""
    bodies = {b.name: b for b in model.bodies}
    of_body: dict[str, list[Joint]] = {name: [] for name in bodies}
    for joint in model.joints:
        of_body[joint.body].append(joint)
    for name, own in of_body.items():
        if any(j.type == "free" for j in own):
            if bodies[name].parent != "world":
                raise ModelError(
                    f"body {name!r}: a free joint needs the world as parent, got {bodies[name].parent!r}. Move the body to the top, or use slides and a ball."
                )
            if len(own) > 1:
                raise ModelError(f"body {name!r}: a free joint must be the body's only joint, got {len(own)}.")

    # inertia that moves rigidly with each body: its own and that of the jointless bodies fixed to it
    carrier: dict[str, str] = {"world": "world"}
    leaf: dict[str, bool] = {}
    parts: dict[str, list[tuple[Any, Any, Body]]] = {}
    placement: dict[str, tuple[Any, Any]] = {}
    own_frame = np.eye(3), np.zeros(3)
    for body in model.bodies:
        if of_body[body.name]:
            carrier[body.name] = body.name
            leaf[body.name] = True
            parts[body.name] = []
            placement[body.name] = own_frame
            above = carrier[body.parent]
            if above != "world":
                leaf[above] = False
        else:
            carrier[body.name] = carrier[body.parent]
            if carrier[body.name] == "world":
                continue
            R, p = placement[body.parent]
            placement[body.name] = (R @ rotation_matrix(body.quaternion), p + R @ np.asarray(body.position))
        if carrier[body.name] != "world" and body.mass > 0:
            parts[carrier[body.name]].append((*placement[body.name], body))

    for name, is_leaf in leaf.items():
        joint = of_body[name][-1]
        if not is_leaf or joint.armature > 0:
            continue
        if not _moves_inertia(joint, parts[name]):
            raise ModelError(
                f"joint {joint.name!r}: its acceleration is not defined, because body {name!r} at its end has no inertia in the direction that it moves. "
                "Give the body mass and inertia, or the joint an armature."
            )


def _moves_inertia(joint: Joint, parts: list[tuple[Any, Any, Body]]) -> bool:
    mass = sum(body.mass for _, _, body in parts)
    if joint.type == "slide":
        return mass > 0
    total, size = np.zeros((3, 3)), 0.0
    anchor = np.zeros(3) if joint.type == "free" else np.asarray(joint.position)
    center = sum((b.mass * (p + R @ np.asarray(b.com)) for R, p, b in parts), np.zeros(3)) / (mass or 1.0)
    for R, p, body in parts:
        xx, yy, zz, xy, xz, yz = body.inertia
        c = p + R @ np.asarray(body.com) - (center if joint.type == "free" else anchor)
        total += R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
        size += body.mass * float(c @ c) + xx + yy + zz
    if joint.type == "hinge":
        axis = np.asarray(joint.axis) / math.hypot(*joint.axis)
        return bool(axis @ total @ axis > 1e-14 * size)
    return bool(np.linalg.eigvalsh(total)[0] > 1e-14 * size)
