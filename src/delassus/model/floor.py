"""A floor for a robot that has none, and the height at which the robot stands on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from .._door import warn
from ..spatial import rotation_matrix
from .builder import ModelBuilder
from .geometry import geom_kind, hull, touching
from .mjcf import with_geometry_of
from .model import Model

__all__ = ["with_floor"]

FRICTION = 0.8


def with_floor(model: Model) -> Model:
    """Return a model on a floor at z = 0; one that already has a horizontal plane is returned unchanged.

    A floating robot without keyframes whose shapes reach below the floor is lifted until the lowest of them is on it: URDF puts the base at the origin, and so its feet below. Where
    a robot that is fixed to the world reaches below z = 0, the floor is as deep as its lowest shape. Keyframes stay.
    """
    if any(s.kind == "plane" and s.body == "world" and s.contype | s.conaffinity and _upright(s.quaternion) for s in model.shapes):
        return model
    low = _lowest(model)
    if not low and model.nv:
        warn(
            f"{model.name}: nothing that moves has a collision shape, so it does not touch the floor. Give its links <collision> elements."
        )
    free = {j.body for j in model.joints if j.type == "free"}
    height = min(0.0, *(z for root, z in low.items() if root not in free), 0.0)
    b = ModelBuilder(f"{model.name}_on_floor", gravity=model.gravity)
    b.add_shape(
        "world",
        "plane",
        (0.0, 0.0, 0.05),
        name=_free_name(model),
        position=(0.0, 0.0, height),
        friction=FRICTION,
        rgba=(0.8, 0.8, 0.8, 1.0),
    )
    b.add_model(model, prefix="")
    if not model.keyframes:
        for k, body in enumerate(b._bodies):
            if body.name in free and low.get(body.name, height) < height:
                x, y, z = body.position
                b._bodies[k] = replace(body, position=(x, y, z + height - low[body.name]))
    for name, q in model.keyframes.items():
        b.add_keyframe(name, q)
    return with_geometry_of(b.build(), model)


def _upright(quaternion: Any) -> bool:
    return bool(rotation_matrix(quaternion)[2, 2] > 0.999)


def _free_name(model: Model) -> str:
    name, taken = "floor", {shape.name for shape in model.shapes}
    while name in taken:
        name += "_"
    return name


def _lowest(model: Model) -> dict[str, float]:
    """Height [m] of the lowest point of all moving shapes of each tree at the neutral configuration, by the name of the body at its root."""
    m = model._in_mujoco()
    d = mujoco.MjData(m)
    d.qpos[:] = model.neutral()
    mujoco.mj_kinematics(m, d)
    low: dict[str, float] = {}
    for g in touching(m):
        body = int(m.geom_bodyid[g])
        if not model.body_moves[body] or geom_kind(m, g) in ("plane", "hfield"):
            continue
        while m.body_parentid[body] != 0:
            body = int(m.body_parentid[body])
        root = model.body_names[body]
        low[root] = min(low.get(root, np.inf), _bottom(m, d, g))
    return low


def _bottom(m: Any, d: Any, g: int) -> float:
    """Height of the lowest point of a shape, −h(−z) with h its support function [m]."""
    z, down = float(d.geom_xpos[g, 2]), d.geom_xmat[g].reshape(3, 3)[2]  # the world's z axis in the shape's frame
    kind, size = geom_kind(m, g), m.geom_size[g]
    if kind == "mesh":
        return z + float((hull(m, int(m.geom_dataid[g])) @ down).min())
    if kind == "sphere":
        return z - float(size[0])
    if kind == "capsule":
        return z - float(size[0] + size[1] * abs(down[2]))
    if kind == "cylinder":
        return z - float(size[0] * np.hypot(down[0], down[1]) + size[1] * abs(down[2]))
    if kind == "ellipsoid":
        return z - float(np.linalg.norm(size * down))
    return z - float(np.abs(down) @ (size if kind == "box" else np.full(3, m.geom_rbound[g])))
