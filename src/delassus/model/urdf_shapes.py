"""Collision and visual geometry of a URDF, kept separate: shapes for contacts, and shapes that are only drawn.

Meshes make contact with their convex hulls and are drawn as they are, in the colours of the mesh file or else of the URDF. Nothing is dropped silently: every shape that cannot be read is listed
with the reason.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from ..errors import LoadError, MeshError
from .geometry import counted
from .mesh_part import Part, Rgba, welded
from .meshes import read_mesh
from .packages import Finder

__all__ = ["MOST_CORNERS", "Lost", "UrdfShapes"]

COLLISION_GROUP, VISUAL_GROUP = 3, 2  # MuJoCo shows groups 0, 1 and 2
_GREY: Rgba = (0.7, 0.7, 0.7, 1.0)
_FLAT = 1e-6  # thickness over width below which a mesh has no volume
_PLATE = 5e-4  # half the thickness given to a flat mesh [m]
_LEAST_AREA = 1e-14  # smallest surface that MuJoCo accepts [m²]
MOST_CORNERS = 10_000  # of a hull, which is then exact to 3e-4 of its size


class Lost(NamedTuple):
    """A shape that is left out, its location and the reason."""

    role: str
    link: str
    what: str
    reason: str


class _Asset(NamedTuple):
    """A mesh of MuJoCo's model, and its colour if its file has one."""

    name: str
    rgba: Rgba | None


@dataclass
class UrdfShapes:
    """Shapes of a URDF, to be added to MuJoCo's model.

    Attributes:
        finder: finder of the named files.
        folders: more folders for relative names: the ``meshdir`` of MuJoCo's extension.
        lost: shapes that are left out.
        counts: role → kind → number of shapes that are read.
        flat: names of flat collision meshes, which become plates of 1 mm.
        thinned: file of a collision mesh whose hull was reduced → number of corners of the full hull.
        drawn_names: names of geoms that are only drawn.
    """

    finder: Finder
    folders: tuple[Path, ...] = ()
    lost: list[Lost] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=lambda: {"collision": {}, "visual": {}})
    flat: list[str] = field(default_factory=list)
    thinned: dict[str, int] = field(default_factory=dict)
    drawn_names: list[str] = field(default_factory=list)
    _elements: list[tuple[str, str, ElementTree.Element]] = field(default_factory=list)
    _materials: dict[str, Rgba] = field(default_factory=dict)
    _parts: dict[Path, list[Part]] = field(default_factory=dict)
    _assets: dict[tuple[str, Path, tuple[float, ...]], list[_Asset]] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)

    def take_from(self, root: ElementTree.Element) -> None:
        """Remove all shapes from the description, so that MuJoCo's own reader gets none of them."""
        # a material with a colour may be defined anywhere, and used anywhere
        for element in root.iter("material"):
            colour = element.find("color")
            if colour is not None and element.get("name"):
                self._materials.setdefault(element.get("name", ""), _rgba(colour))
        for link in root.findall("link"):
            for role in ("collision", "visual"):
                for element in link.findall(role):
                    name = link.get("name") or ""
                    geometries = [geometry for part in element.findall("geometry") for geometry in part]
                    self.lost += [
                        Lost(role, name, _named_geometry(g), f"a <{role}> has one geometry, and this is another") for g in geometries[1:]
                    ]
                    self._elements.append((role, name, element))
                    link.remove(element)

    def add_to(self, spec: Any, where: str) -> None:
        """Add all shapes to MuJoCo's specification of the same description."""
        seen = {link for role, link, _ in self._elements if role == "visual"}
        self._names = {geom.name for geom in spec.geoms} | {mesh.name for mesh in spec.meshes}
        for role, link, element in self._elements:
            body = spec.body(link) if link != "world" else spec.worldbody
            try:
                place = _placed(element.find("origin"), f"source: {where}: {role} of link {link!r}")
                for geom in self._geoms(spec, role, element):
                    name = self._named(element.get("name") or f"{link}_{role}")
                    only_drawn = role == "visual"
                    if only_drawn:
                        self.drawn_names.append(name)
                    rgba = geom.pop("rgba", None)
                    material = element.find("material")
                    if rgba is None and material is not None:
                        colour = material.find("color")
                        rgba = _rgba(colour) if colour is not None else self._materials.get(material.get("name", ""))
                    body.add_geom(
                        name=name, **place, **geom, rgba=rgba or _GREY, contype=int(not only_drawn), conaffinity=int(not only_drawn),
                        group=VISUAL_GROUP if only_drawn else COLLISION_GROUP if link in seen else 0, **({"mass": 0.0} if only_drawn else {}),
                    )  # fmt: skip
            except MeshError as error:
                self.lost.append(Lost(role, link, _described(element), str(error)))
                continue
            kind = _kind(element)
            self.counts[role][kind] = self.counts[role].get(kind, 0) + 1

    def lines(self) -> list[str]:
        """Return the lost shapes as lines for ``ignored``, one per reason."""
        by_reason: dict[str, list[Lost]] = {}
        for lost in self.lost:
            by_reason.setdefault(lost.reason, []).append(lost)
        lines = []
        for reason, group in by_reason.items():
            numbers = {role: sum(lost.role == role for lost in group) for role in ("collision", "visual")}
            noun = "mesh" if all(lost.what.startswith("mesh") for lost in group) else "shape"
            what = " and ".join(
                counted(n, f"{role} {noun}", f"{role} {noun}{'es' if noun == 'mesh' else 's'}") for role, n in numbers.items() if n
            )
            links = list(dict.fromkeys(lost.link for lost in group))
            of = ", ".join(repr(link) for link in links[:3]) + (" …" if len(links) > 3 else "")
            example = f" (such as {group[0].what})" if len(group) > 1 and group[0].what.startswith("mesh") else ""
            lines.append(f"{what} of link{'' if len(links) == 1 else 's'} {of}: {reason}{example}")
        lines += [f"corners of the hull of {name!r} beyond the {MOST_CORNERS:,} outermost of {n:,}" for name, n in self.thinned.items()]
        return lines

    def _named(self, base: str) -> str:
        name, k = base, 1
        while name in self._names:
            k += 1
            name = f"{base}_{k}"
        self._names.add(name)
        return name

    def _geoms(self, spec: Any, role: str, element: ElementTree.Element) -> Iterable[dict[str, Any]]:
        """Arguments of MuJoCo's geoms for one shape: one, or for a visual mesh one per colour."""
        shape = _geometry(element)
        if shape is None:
            raise MeshError("it has no geometry")
        geom = mujoco.mjtGeom
        if shape.tag == "mesh":
            assets = self._mesh(spec, role, shape)
            return [{"type": geom.mjGEOM_MESH, "meshname": asset.name, "rgba": asset.rgba} for asset in assets]
        if shape.tag == "box":
            return [{"type": geom.mjGEOM_BOX, "size": [x / 2 for x in _sizes(shape, "size", 3)]}]
        if shape.tag == "sphere":
            return [{"type": geom.mjGEOM_SPHERE, "size": [*_sizes(shape, "radius", 1), 0, 0]}]
        if shape.tag in ("cylinder", "capsule"):
            # the length of a capsule is that of its straight part
            (radius,), (length,) = _sizes(shape, "radius", 1), _sizes(shape, "length", 1)
            kind = geom.mjGEOM_CYLINDER if shape.tag == "cylinder" else geom.mjGEOM_CAPSULE
            return [{"type": kind, "size": [radius, length / 2, 0]}]
        raise MeshError(f"<{shape.tag}> is no shape of URDF (box, cylinder, sphere, capsule, mesh)")

    def _find(self, name: str) -> Path:
        try:
            return self.finder.find(name)
        except MeshError:
            for folder in self.folders:
                for path in (folder / name, folder / Path(name).name):
                    if path.is_file():
                        return path
            raise

    def _mesh(self, spec: Any, role: str, shape: ElementTree.Element) -> list[_Asset]:
        """Meshes of MuJoCo for a <mesh>: its hull, or its triangles by colour. The same file with the same scale is shared."""
        path = self._find(shape.get("filename") or "")
        scale = _scale(shape)
        key = (role, path, scale)
        if key in self._assets:
            return self._assets[key]
        if path not in self._parts:
            try:
                self._parts[path] = read_mesh(path)
            except MeshError as error:
                raise MeshError(f"{path.name!r} {error}") from None
        parts = [_scaled(part, scale) for part in self._parts[path]]
        try:
            made = self._hull(spec, path, parts) if role == "collision" else self._surface(spec, path, parts)
        except MeshError as error:
            raise MeshError(f"{path.name!r} {error}") from None
        self._assets[key] = made
        return made

    def _hull(self, spec: Any, path: Path, parts: list[Part]) -> list[_Asset]:
        corners, flat = _hull_corners(np.concatenate([part.vertices[np.unique(part.faces)] for part in parts]))
        if flat:
            self.flat.append(path.name)
        if len(corners) > MOST_CORNERS:
            self.thinned[path.name] = len(corners)
            corners = _outermost(corners, MOST_CORNERS)
        # without faces MuJoCo takes the hull of the vertices
        mesh = spec.add_mesh(name=self._named(f"{path.stem}_hull"), uservert=corners.astype(np.float32).ravel())
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
        return [_Asset(mesh.name, None)]

    def _surface(self, spec: Any, path: Path, parts: list[Part]) -> list[_Asset]:
        by_colour: dict[Rgba | None, list[Part]] = {}
        for part in parts:
            by_colour.setdefault(part.rgba, []).append(part)
        made = []
        for rgba, same in by_colour.items():
            starts = np.cumsum([0, *(len(part.vertices) for part in same)])[:-1]
            vertices, faces = welded(
                np.concatenate([part.vertices for part in same]),
                np.concatenate([part.faces + start for part, start in zip(same, starts, strict=True)]),
            )
            if _degenerate(vertices, faces):
                continue
            if len(vertices) == 3:
                vertices = np.concatenate([vertices, vertices.mean(axis=0, keepdims=True)])  # MuJoCo requires four
            mesh = spec.add_mesh(name=self._named(path.stem), uservert=vertices.ravel(), userface=faces.astype(np.int32).ravel())
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
            made.append(_Asset(mesh.name, rgba))
        if not made:
            raise MeshError("has no surface: all its triangles are lines or points")
        return made


def _degenerate(vertices: NDArray[np.float32], faces: NDArray[np.int32]) -> bool:
    """Whether triangles have no area, as far as their coordinates can tell."""
    if len(faces) == 0:
        return True
    a, b, c = np.moveaxis(vertices[faces].astype(np.float64), 1, 0)
    area = float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()) / 2
    width = float(np.ptp(vertices, axis=0).max())
    return not area > max(_FLAT * width**2, _LEAST_AREA)


def _outermost(corners: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Corners of a hull that reach farthest in any of n directions, which are spread evenly (a Fibonacci lattice)."""
    k = np.arange(n) + 0.5
    z, angle = 1 - 2 * k / n, np.pi * (1 + np.sqrt(5)) * k
    r = np.sqrt(1 - z * z)
    directions = np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1).astype(np.float32)
    middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
    points = ((corners - middle) / np.ptp(corners, axis=0)).astype(np.float32).T
    kept = np.unique(np.concatenate([(directions[k : k + 256] @ points).argmax(axis=1) for k in range(0, n, 256)]))
    return np.asarray(corners[kept])


def _hull_corners(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """Corners (n, 3) of the convex hull of points, and whether the points are flat: then it is a plate of 1 mm."""
    points = np.unique(points.astype(np.float32), axis=0).astype(np.float64)  # STL repeats each vertex, and MuJoCo keeps single precision
    middle = points.mean(axis=0)
    spread, axes = np.linalg.eigh((points - middle).T @ (points - middle) / max(len(points), 1))
    widths = np.sqrt(np.maximum(spread, 0.0))
    if len(points) < 3 or not widths[1] > _FLAT * widths[2]:
        raise MeshError("has no width: all its corners are on a line")
    flat = bool(widths[0] <= _FLAT * widths[2])
    if flat:
        points = np.concatenate([points - _PLATE * axes[:, 0], points + _PLATE * axes[:, 0]])
    try:
        return points[ConvexHull(points).vertices], flat
    except (QhullError, ValueError) as error:
        raise MeshError(f"has no convex hull: {str(error).splitlines()[0]}") from None


def _scaled(part: Part, scale: tuple[float, ...]) -> Part:
    """Scale a part; if a reflection turns it inside out, the orientation of its triangles is reversed."""
    if scale == (1.0, 1.0, 1.0):
        return part
    return Part(part.vertices * scale, part.faces[:, ::-1] if np.prod(scale) < 0 else part.faces, part.rgba)


def _floats(text: str, n: int) -> list[float] | None:
    try:
        values = [float(x) for x in text.split()]
    except ValueError:
        return None
    return values if len(values) == n and np.isfinite(values).all() else None


def _scale(shape: ElementTree.Element) -> tuple[float, ...]:
    values = _floats(shape.get("scale", "1 1 1"), 3)
    if values is None:
        raise MeshError(f"scale must be three numbers, got {shape.get('scale')!r}")
    if 0.0 in values:
        raise MeshError(f"scale {shape.get('scale')!r} leaves no volume")
    return tuple(values)


def _sizes(shape: ElementTree.Element, key: str, n: int) -> list[float]:
    values = _floats(shape.get(key, ""), n)
    if values is None or not min(values) > 0:
        raise MeshError(f"{key} of <{shape.tag}> must be {counted(n, 'positive number')}, got {shape.get(key)!r}")
    return values


def _rgba(colour: ElementTree.Element) -> Rgba:
    values = _floats(colour.get("rgba", ""), 4)
    r, g, b, a = values if values is not None else _GREY
    return r, g, b, a


def _placed(origin: ElementTree.Element | None, what: str) -> dict[str, Any]:
    """Position and quaternion of an <origin>."""
    quaternion = np.array([1.0, 0.0, 0.0, 0.0])
    if origin is None:
        return {"pos": [0.0, 0.0, 0.0], "quat": quaternion}
    places = {}
    for key in ("xyz", "rpy"):
        values = _floats(origin.get(key, "0 0 0"), 3)
        if values is None:
            raise LoadError(f"{what}: <origin> expects 3 finite numbers in {key}, got {origin.get(key)!r}.")
        places[key] = values
    mujoco.mju_euler2Quat(quaternion, np.array(places["rpy"]), "XYZ")
    return {"pos": places["xyz"], "quat": quaternion}


def _geometry(element: ElementTree.Element) -> ElementTree.Element | None:
    """Return the box, mesh, … of a <collision> or <visual>: the first one."""
    return next((shape for part in element.findall("geometry") for shape in part), None)


def _kind(element: ElementTree.Element) -> str:
    shape = _geometry(element)
    return "" if shape is None else shape.tag


def _described(element: ElementTree.Element) -> str:
    shape = _geometry(element)
    return "nothing" if shape is None else _named_geometry(shape)


def _named_geometry(shape: ElementTree.Element) -> str:
    return f"mesh {shape.get('filename')!r}" if shape.tag == "mesh" else shape.tag
