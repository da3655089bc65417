"""Data that the core needs to simulate a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from .. import _core
from ..constraints import JointFriction, from_loop
from ..model import Model
from ..model.from_mujoco import body_names
from ..model.geometry import set_flags
from .collision_model import REACH, margin_shift
from .mujoco_library import library
from .smooth_model import control_places, mocap_state
from .spans import spans

__all__ = ["world_plan"]

_LARGE = 1e300  # stands for an open end of a range
_SINGLE = ("hinge", "slide")  # joints with one coordinate
# what kind of shape touches a plane, see RoundShape of core/simulator/collider.h
_ROUND_SHAPES = {
    int(mujoco.mjtGeom.mjGEOM_PLANE): 1,
    int(mujoco.mjtGeom.mjGEOM_SPHERE): 2,
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): 3,
    int(mujoco.mjtGeom.mjGEOM_BOX): 4,
    int(mujoco.mjtGeom.mjGEOM_MESH): 4,
}


def world_plan(
    model: Model, mj: Any, restitution: Any, mirror: _core.MirrorSource, options: _core.StepOptions, active: Sequence[bool]
) -> _core.WorldPlan:
    """Return everything the core needs: implicit parts of M̂, the active loops, friction, limits, motors, and access to MuJoCo's collision detection and smooth forces.

    Args:
        model: model of the world.
        mj: its :func:`~delassus.simulator.collision_model.collision_model`.
        restitution: (ngeom,) restitution of its shapes.
        mirror: source of the smooth forces.
        options: step options.
        active: which loops are active.
    """
    off = set_flags(mj)
    has_friction, has_limits = ({"constraint", name}.isdisjoint(off) for name in ("frictionloss", "limit"))
    friction = [JointFriction(model, j) for j in range(model.njoint) if has_friction and model.dof_friction_loss[model.joint_vadr[j]] > 0]
    loops = [from_loop(model, loop) for loop, on in zip(model.loops, active, strict=True) if on]
    bodies = [model.body_index(name) for name in body_names(mj)]
    parts = np.asarray(mj.geom_bodyid).tolist()

    world = _core.WorldDescription(model._native, options)
    world.loops, world.friction = [c._native() for c in loops], [c._native() for c in friction]
    world.friction_loss = [c.friction for c in friction for _ in range(c.rows)]
    world.limits = _limits(model, mj) if has_limits else []
    world.spans = spans(model, mj)
    world.mocap_bodies = _mocap_bodies(world, mj, bodies)
    _drive(world, model, mj, options.timestep)
    world.shapes, world.contact_reach = _shapes(mj, bodies), REACH
    collisions = _core.CollisionSource(
        library(),
        mj,
        address=int(mj._address),
        geom_bodies=[bodies[b] for b in parts],
        geom_parts=parts,
        restitution=restitution.tolist(),
        round_shapes=[_ROUND_SHAPES.get(int(kind), 0) for kind in mj.geom_type],
        mocap_signature=mocap_state(mj)[0],
        margin_shift=margin_shift(mj),
        surfaces=_surfaces(mj),
    )
    return _core.WorldPlan(world, collisions, mirror, int(mj.nu))


def _surfaces(mj: Any) -> list[float]:
    """Six numbers per shape: the velocity of its surface at its body's origin, and its spin, in the body's axes; empty if no surface moves."""
    fields = getattr(mj, "geom_surfacevel", None)  # later MuJoCo versions only
    if fields is None or not fields.any():
        return []
    found, R = [], np.zeros(9)
    for position, quaternion, field in zip(mj.geom_pos, mj.geom_quat, fields, strict=True):
        mujoco.mju_quat2Mat(R, quaternion)
        linear, spin = R.reshape(3, 3) @ field[:3], R.reshape(3, 3) @ field[3:]
        found += [*(linear - np.cross(spin, position)).tolist(), *spin.tolist()]
    return found


def _limits(model: Model, mj: Any) -> list[_core.JointLimit]:
    """Ranges of hinges and slides that have a bound, less their margins."""
    limits = []
    for j, joint in enumerate(model.joints):
        margin = float(mj.jnt_margin[j])
        lower, upper = np.clip(model.joint_range[j] + [margin, -margin], -_LARGE, _LARGE).tolist()
        if joint.type in _SINGLE and (lower > -_LARGE or upper < _LARGE):
            limits.append(
                _core.JointLimit(
                    coordinate=int(model.joint_qadr[j]), velocity=int(model.joint_vadr[j]), lower=lower, upper=upper, margin=margin
                )
            )
    return limits


def _drive(world: _core.WorldDescription, model: Model, mj: Any, dt: float) -> None:
    """Springs, dampers and motors, and their terms in M̂ = M + dt D + dt² K: they act at the end of the step."""
    stiffness, damping = np.array(model.dof_stiffness, dtype=float), np.array(model.dof_damping, dtype=float)
    armature = model.dof_armature + dt * damping + dt * dt * stiffness
    spring_coordinate = np.full(model.nv, -1)
    for j, joint in enumerate(model.joints):
        if joint.type in _SINGLE:
            spring_coordinate[model.joint_vadr[j]] = model.joint_qadr[j]
    motors, places = [], control_places(mj)
    ranges = np.tile([-_LARGE, _LARGE], (model.nv, 1))
    for place, a in zip(places, model.actuators, strict=True):
        if a.joint is None:
            continue
        j = model.joint_index(a.joint)
        k, i = int(model.joint_vadr[j]), int(model.joint_qadr[j]) if model.joint_type[j] in _SINGLE else -1
        armature[k] -= a.gear**2 * (dt * min(a.bias[2], 0.0) + dt * dt * min(a.bias[1], 0.0))
        if mj.jnt_actfrclimited[j]:
            ranges[k] = mj.jnt_actfrcrange[j]
        control_range, force_range = (np.clip(ends, -_LARGE, _LARGE).tolist() for ends in (a.control_range, a.force_range))
        motors.append(
            _core.Motor(
                control=place,
                coordinate=i,
                velocity=k,
                gear=a.gear,
                gain=a.gain,
                bias=a.bias,
                control_range=control_range,
                force_range=force_range,
            )
        )
    world.armature, world.motors = armature.tolist(), motors
    world.motor_ranges = ranges.tolist() if np.any(np.abs(ranges) < _LARGE) else []
    world.stiffness, world.damping = stiffness.tolist(), damping.tolist()
    world.spring_rest, world.spring_coordinate = np.asarray(model.spring_reference).tolist(), spring_coordinate.tolist()


def _mocap_bodies(world: _core.WorldDescription, mj: Any, bodies: list[int]) -> list[_core.MocapBody]:
    """Mocap bodies, and the bodies fixed to them."""
    found = []
    for b in range(1, mj.nbody):
        carrier = b
        while carrier and mj.body_mocapid[carrier] < 0 and mj.body_jntnum[carrier] == 0:
            carrier = int(mj.body_parentid[carrier])
        if mj.body_mocapid[carrier] >= 0:
            found.append(_core.MocapBody(world, body=bodies[b], mocap=int(mj.body_mocapid[carrier]), carrier=bodies[carrier]))
    return found


def _shapes(mj: Any, bodies: list[int]) -> list[_core.CollisionShape]:
    """Every shape that may touch others, except planes."""
    kind = mujoco.mjtGeom
    shapes = []
    for g in range(mj.ngeom):
        type_ = mj.geom_type[g]
        apart = mj.npair == 0 and mj.geom_contype[g] == 0 and mj.geom_conaffinity[g] == 0
        if apart or type_ == kind.mjGEOM_PLANE:
            continue
        radius = float(mj.geom_rbound[g])
        # a height field moves no other body: it is only an obstacle
        half_width = np.inf if type_ == kind.mjGEOM_HFIELD else float(mj.geom_aabb[g, 3:].min())
        lever = 0.0 if type_ == kind.mjGEOM_SPHERE else radius
        body = bodies[mj.geom_bodyid[g]]
        shapes.append(
            _core.CollisionShape(body=body, half_width=half_width, radius=radius, lever=lever, center=mj.geom_pos[g].tolist(), geom=g)
        )
    return shapes
