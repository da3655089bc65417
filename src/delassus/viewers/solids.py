"""Drawn shapes of bodies: primitives and meshes, as values; and meshes of markers, of unit size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from ..errors import ArgumentError
from ..model import Model
from ..model.records import SHAPE_SIZES, Quaternion, Vector

__all__ = ["Mesh", "Solid", "along", "capsule", "cone", "cylinder", "lathe", "of_model", "of_mujoco", "quaternions", "sphere", "torus"]

Floats = NDArray[np.float64]
VISIBLE_GROUPS = 3  # MuJoCo shows geoms of groups 0, 1 and 2; collision shapes are by convention in 3


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles: vertices (V, 3), faces (F, 3), counter-clockwise seen from outside."""

    vertices: Floats
    faces: NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Solid:
    """One shape of a body, placed in the body's frame; ``size`` is MuJoCo's. Kind ``mesh`` has its vertices in ``mesh``."""

    name: str
    body: int
    kind: str
    size: tuple[float, ...]
    position: Vector
    quaternion: Quaternion
    rgba: tuple[float, float, float, float]
    mesh: Mesh | None = None

    @property
    def corners(self) -> Floats:
        """Corners (8, 3) of its bounding box, in its own frame [m]; for a plane only its centre."""
        if self.mesh is not None:
            low, high = self.mesh.vertices.min(axis=0), self.mesh.vertices.max(axis=0)
        else:
            r = self.size[0]
            halves = {"sphere": (r, r, r), "plane": (0.0, 0.0, 0.0)}
            if self.kind in ("capsule", "cylinder"):
                halves[self.kind] = (r, r, self.size[1] + (r if self.kind == "capsule" else 0.0))
            high = np.array(halves.get(self.kind, self.size))
            low = -high
        choice = (np.arange(8)[:, None] >> np.arange(3)) & 1
        return np.asarray(np.where(choice, high, low))


def of_model(model: Model) -> list[Solid]:
    """Return the shapes of a model: primitives."""
    return [
        Solid(s.name, model.body_index(s.body), s.kind, s.size, s.position, s.quaternion, s.rgba) for s in model.shapes if s.rgba[3] > 0
    ]


def of_mujoco(m: Any, model: Model) -> list[Solid]:
    """Return the shapes that MuJoCo shows of its model, including meshes; bodies are those of ``model``, which was loaded from it."""
    if m.nbody != model.nbody or m.nq != model.nq:
        raise ArgumentError(
            f"geometry: expected the mujoco.MjModel that {model.name!r} came from, with {model.nbody} bodies and nq = {model.nq}; "
            f"got {m.nbody} bodies and nq = {m.nq}."
        )
    shown = m.geom_group < VISIBLE_GROUPS
    planes = m.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
    if not (shown & ~planes).any():
        shown[:] = True
    solids = []
    for g in np.flatnonzero(shown | planes):
        kind = mujoco.mjtGeom(int(m.geom_type[g])).name[7:].lower()
        rgba = m.mat_rgba[m.geom_matid[g]] if m.geom_matid[g] >= 0 else m.geom_rgba[g]
        if rgba[3] == 0 or not (kind in SHAPE_SIZES or kind == "mesh"):
            continue
        mesh = None
        if kind == "mesh":
            k = m.geom_dataid[g]
            v, f = m.mesh_vertadr[k], m.mesh_faceadr[k]
            mesh = Mesh(
                np.array(m.mesh_vert[v : v + m.mesh_vertnum[k]], dtype=float),
                np.array(m.mesh_face[f : f + m.mesh_facenum[k]], dtype=np.uint32),
            )
        name = mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_GEOM, int(g)) or f"geom_{g}"
        size = tuple(m.geom_size[g][: SHAPE_SIZES.get(kind, 3)].tolist())
        place = tuple(m.geom_pos[g].tolist()), tuple(m.geom_quat[g].tolist())
        solids.append(Solid(name, int(m.geom_bodyid[g]), kind, size, *place, tuple(rgba.tolist()), mesh))
    return solids


def lathe(radii: Any, heights: Any, sides: int = 24) -> Mesh:
    """Rotate a profile, radii over heights from bottom to top, about z."""
    radii, heights = np.asarray(radii, dtype=float), np.asarray(heights, dtype=float)
    angle = np.arange(sides) * (2 * np.pi / sides)
    x, y = radii[:, None] * np.cos(angle), radii[:, None] * np.sin(angle)
    vertices = np.stack([x, y, np.broadcast_to(heights[:, None], x.shape)], axis=-1).reshape(-1, 3)
    ring, side = np.meshgrid(np.arange(len(radii) - 1), np.arange(sides), indexing="ij")
    a, b = ring * sides + side, ring * sides + (side + 1) % sides
    faces = np.concatenate([np.stack([a, b, b + sides], axis=-1), np.stack([a, b + sides, a + sides], axis=-1)]).reshape(-1, 3)
    return Mesh(vertices, faces.astype(np.uint32))


def sphere(sides: int = 20) -> Mesh:
    """Return a sphere of radius 1."""
    polar = np.linspace(0, np.pi, sides // 2 + 1)
    return lathe(np.sin(polar), -np.cos(polar), sides)


def capsule(radius: float, half: float, sides: int = 40) -> Mesh:
    """Return a capsule along z, its segment from −half to half."""
    polar = np.linspace(0, np.pi / 2, sides // 4 + 1)
    r, z = radius * np.sin(polar), radius * np.cos(polar)
    return lathe([*r, *r[::-1]], [*(-half - z), *(half + z[::-1])], sides)


def cylinder(sides: int = 16) -> Mesh:
    """Return a cylinder of radius 1 along z from 0 to 1, its ends closed."""
    return lathe([0, 1, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1], sides)


def cone(sides: int = 32, *, point_up: bool = False) -> Mesh:
    """Return a cone of radius and height 1 on z from 0 to 1: apex at the origin and open; or apex at 1 and base closed."""
    return lathe([0, 1, 1, 0], [0, 0, 0, 1], sides) if point_up else lathe([0, 1], [0, 1], sides)


def torus(thickness: float = 0.22, sides: int = 28) -> Mesh:
    """Return a ring of radius 1 around z."""
    angle = np.linspace(0, 2 * np.pi, 11)
    return lathe(1 + thickness * np.cos(angle), thickness * np.sin(angle), sides)


def along(directions: Floats) -> Floats:
    """Quaternions (N, 4) of the shortest rotations from z to unit directions (N, 3)."""
    x, y, z = directions.T
    turned = np.stack([1 + z, -y, x, np.zeros_like(x)], axis=-1)
    turned[z < -1 + 1e-12] = (0.0, 1.0, 0.0, 0.0)
    return np.asarray(turned / np.linalg.norm(turned, axis=1, keepdims=True))


def quaternions(placements: Floats) -> Floats:
    """Quaternions (N, 4) of placements (N, 4, 4)."""
    return np.asarray(Rotation.from_matrix(placements[:, :3, :3]).as_quat()[:, [3, 0, 1, 2]])
