"""COLLADA (.dae): triangles and diffuse colours of a scene, in metres, in the axes of the file.

Node transforms and the unit of length are applied, polygons are cut into triangles. The declared ``up_axis`` is ignored: URDF viewers and collision libraries
read the coordinates as written, so robots look and collide the same here as there.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshError
from .mesh_part import Part, Rgba, joined_polygons

__all__ = ["read_collada"]

Floats = NDArray[np.float64]
_DEEP = 64  # limit of nested nodes, also for instances that refer to themselves
_PRIMITIVES = ("triangles", "polylist", "polygons", "tristrips", "trifans")


def read_collada(content: bytes) -> list[Part]:
    """Return the parts of a file, one per primitive element of every instance of a geometry.

    Raises:
        MeshError: the file is not a COLLADA file, or damaged.
    """
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise MeshError(f"is not well-formed XML: {error}") from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    if root.tag != "COLLADA":
        raise MeshError(f"has the root element <{root.tag}>, not <COLLADA>")
    try:
        return _Document(root).parts()
    except MeshError:
        raise
    except (ValueError, IndexError, KeyError, AttributeError, StopIteration) as error:
        raise MeshError(f"is damaged COLLADA: {error}") from None


class _Document:
    """One file: elements by their id."""

    def __init__(self, root: ElementTree.Element) -> None:
        self.root = root
        self.by_id = {element.get("id"): element for element in root.iter() if element.get("id")}
        self.colours: dict[str, Rgba | None] = {}
        self.geometries: dict[str, list[tuple[Floats, NDArray[np.int32], str]]] = {}

    def parts(self) -> list[Part]:
        unit = self.root.find("asset/unit")
        meter = float(unit.get("meter", "1")) if unit is not None else 1.0
        scene = self.root.find("scene/instance_visual_scene")
        start = self._at(scene.get("url")) if scene is not None else self.root.find("library_visual_scenes/visual_scene")
        found: list[Part] = []
        if start is None:
            # a file without a scene shows all its geometries
            for geometry in self.root.findall("library_geometries/geometry"):
                found += self._placed(geometry, np.eye(4), {})
        else:
            for node in start.findall("node"):
                found += self._node(node, np.eye(4), 0)
        return [Part(meter * part.vertices, part.faces, part.rgba) for part in found]

    def _at(self, url: str | None) -> ElementTree.Element:
        key = (url or "").removeprefix("#")
        if key not in self.by_id:
            raise MeshError(f"nothing has the id {key!r}")
        return self.by_id[key]

    def _node(self, node: ElementTree.Element, above: Floats, depth: int) -> Iterator[Part]:
        """Parts of a node and all below it: X = X_above · (product of its transforms, in file order)."""
        if depth > _DEEP:
            raise MeshError(f"nodes are nested more than {_DEEP} deep")
        X = above
        for element in node:
            if element.tag in _TRANSFORMS:
                X = X @ _TRANSFORMS[element.tag](_numbers(element))
        for element in node:
            if element.tag == "node":
                yield from self._node(element, X, depth + 1)
            elif element.tag == "instance_node":
                yield from self._node(self._at(element.get("url")), X, depth + 1)
            elif element.tag in ("instance_geometry", "instance_controller"):
                source = self._at(element.get("url"))
                if element.tag == "instance_controller":
                    # a skin at rest
                    skin = source.find("skin")
                    source = self._at(None if skin is None else skin.get("source"))
                bound = {b.get("symbol", ""): b.get("target", "") for b in element.iter("instance_material")}
                yield from self._placed(source, X, bound)

    def _placed(self, geometry: ElementTree.Element, X: Floats, bound: dict[str, str]) -> Iterator[Part]:
        flip = np.linalg.det(X[:3, :3]) < 0
        for vertices, faces, symbol in self._geometry(geometry):
            moved = vertices @ X[:3, :3].T + X[:3, 3]
            yield Part(moved, faces[:, ::-1] if flip else faces, self._colour(bound.get(symbol, symbol)))

    def _geometry(self, geometry: ElementTree.Element) -> list[tuple[Floats, NDArray[np.int32], str]]:
        """Vertices, triangles and the symbol of a material, of each primitive of a geometry."""
        key = geometry.get("id") or str(id(geometry))
        if key not in self.geometries:
            mesh = geometry.find("mesh")
            elements = [] if mesh is None else [e for e in mesh if e.tag in _PRIMITIVES]
            made = [(*self._primitive(e), e.get("material", "")) for e in elements]
            self.geometries[key] = [part for part in made if len(part[1])]
        return self.geometries[key]

    def _primitive(self, element: ElementTree.Element) -> tuple[Floats, NDArray[np.int32]]:
        inputs = element.findall("input")
        stride = 1 + max((int(i.get("offset", "0")) for i in inputs), default=0)
        vertex = next((i for i in inputs if i.get("semantic") == "VERTEX"), None)
        if vertex is None:
            raise MeshError(f"<{element.tag}> has no input VERTEX")
        vertices = self._positions(self._at(vertex.get("source")))
        lists = [_indices(p)[int(vertex.get("offset", "0")) :: stride] for p in element.iter("p")]
        kind = element.tag
        if kind == "triangles":
            corners = np.concatenate(lists) if lists else np.zeros(0, dtype=np.int64)
            faces = corners[: len(corners) // 3 * 3].reshape(-1, 3)
        elif kind == "polylist":
            count = element.find("vcount")
            sizes = _indices(count) if count is not None else np.zeros(0, dtype=np.int64)
            faces = joined_polygons(np.concatenate(lists) if lists else np.zeros(0, dtype=np.int64), sizes)
        elif kind == "tristrips":
            faces = _stacked([np.array([s[k : k + 3][:: -1 if k % 2 else 1] for k in range(len(s) - 2)]) for s in lists if len(s) > 2])
        else:
            faces = _stacked([joined_polygons(s, np.array([len(s)])) for s in lists])
        if len(faces) and not (faces.min() >= 0 and faces.max() < len(vertices)):
            raise MeshError(f"a face names vertex {int(faces.max())} of {len(vertices)}")
        return vertices, faces.astype(np.int32)

    def _positions(self, element: ElementTree.Element) -> Floats:
        """Coordinates (V, 3) of a source, or of the <vertices> that name it."""
        if element.tag == "vertices":
            named = next(i for i in element.findall("input") if i.get("semantic") == "POSITION")
            element = self._at(named.get("source"))
        accessor = element.find("technique_common/accessor")
        array = element.find("float_array")
        if accessor is not None and accessor.get("source"):
            array = self._at(accessor.get("source"))
        values = _numbers(array)
        stride = int(accessor.get("stride", "3")) if accessor is not None else 3
        offset = int(accessor.get("offset", "0")) if accessor is not None else 0
        values = values[offset:]
        if stride < 3:
            raise MeshError(f"positions have {stride} coordinates")
        return values[: len(values) // stride * stride].reshape(-1, stride)[:, :3]

    def _colour(self, target: str) -> Rgba | None:
        """Diffuse colour of a material; None if it is a texture or missing."""
        if target not in self.colours:
            material = self.by_id.get(target.removeprefix("#"))
            instance = material.find("instance_effect") if material is not None else None
            effect = self.by_id.get((instance.get("url") or "").removeprefix("#")) if instance is not None else None
            diffuse = next(effect.iter("diffuse"), None) if effect is not None else None
            colour = diffuse.find("color") if diffuse is not None else None
            values = _numbers(colour) if colour is not None else np.zeros(0)
            # few writers follow the rules for the fourth number: opaque, unless it is strictly between 0 and 1
            solid = len(values) < 4 or not 0.05 < values[3] < 1
            rgb = np.clip(values[:3], 0, 1)
            self.colours[target] = (*rgb.tolist(), 1.0 if solid else float(values[3])) if len(rgb) == 3 else None
        return self.colours[target]


def _numbers(element: ElementTree.Element | None) -> Floats:
    return np.array((element.text or "").split() if element is not None else [], dtype=np.float64)


def _indices(element: ElementTree.Element) -> NDArray[np.int64]:
    return np.array((element.text or "").split(), dtype=np.int64)


def _stacked(faces: list[Any]) -> NDArray[np.int64]:
    return np.concatenate(faces) if faces else np.zeros((0, 3), dtype=np.int64)


def _matrix(x: Floats) -> Floats:
    return x.reshape(4, 4)


def _translate(x: Floats) -> Floats:
    X = np.eye(4)
    X[:3, 3] = x
    return X


def _scale(x: Floats) -> Floats:
    return np.diag([*x.reshape(3).tolist(), 1.0])


def _rotate(x: Floats) -> Floats:
    """Rotation about an axis by an angle in degrees, (x, y, z, angle)."""
    length = np.linalg.norm(x[:3])
    X = np.eye(4)
    if length > 0:
        n, angle = x[:3] / length, np.deg2rad(x[3])
        K = np.array([[0, -n[2], n[1]], [n[2], 0, -n[0]], [-n[1], n[0], 0]])
        X[:3, :3] += np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    return X


_TRANSFORMS = {"matrix": _matrix, "translate": _translate, "scale": _scale, "rotate": _rotate}
