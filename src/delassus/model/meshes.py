"""Mesh files of robots: STL, OBJ and COLLADA, as triangles in metres."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshError
from .collada import read_collada
from .mesh_part import Part, Rgba, joined_polygons

__all__ = ["MESH_ENDINGS", "Part", "read_mesh"]

MESH_ENDINGS = (".stl", ".obj", ".dae")
_MAX_BYTES = 2_000_000_000
_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_mesh(path: Path) -> list[Part]:
    """Read the triangles of a mesh file.

    Returns:
        its parts that have faces, at least one.

    Raises:
        MeshError: the file cannot be read, is of another kind, is damaged, or holds no faces.
    """
    ending = path.suffix.lower()
    if ending not in MESH_ENDINGS:
        way = "convert it to STL, OBJ or DAE" if ending else "give its name the ending .stl, .obj or .dae, whichever it is"
        raise MeshError(f"is of a kind that is not read ({ending or 'no ending'}); {way}")
    try:
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise MeshError(f"has {size / 1e9:.1f} GB, more than {_MAX_BYTES / 1e9:g}; simplify it")
        content = path.read_bytes()
    except OSError as error:
        raise MeshError(f"cannot be read: {error.strerror or error}") from None
    if not content.strip():
        raise MeshError("is empty")
    if content.startswith(b"version https://git-lfs"):
        raise MeshError("is a Git LFS pointer, not the mesh itself; run: git lfs pull")
    readers: dict[str, Callable[[bytes], list[Part]]] = {".stl": _stl, ".obj": partial(_obj, folder=path.parent), ".dae": read_collada}
    parts = [part for part in readers[ending](content) if len(part.faces)]
    if not parts:
        raise MeshError("has no faces")
    for part in parts:
        if not np.isfinite(part.vertices).all():
            raise MeshError("has vertices that are not finite")
    return parts


def _stl(content: bytes) -> list[Part]:
    """Binary: 80 bytes, the number of facets, 50 bytes each; else the words of an ASCII file."""
    count = int.from_bytes(content[80:84], "little")
    if len(content) >= 84 and len(content) - 84 >= 50 * count and not (count == 0 and b"facet" in content[:2000]):
        corners = np.frombuffer(content, dtype=_FACET, count=count, offset=84)["corners"].reshape(-1, 3)
    elif words := _ascii_stl(content):
        at = [k for k, word in enumerate(words) if word == b"vertex"]
        try:
            corners = np.array([words[k + 1 : k + 4] for k in at], dtype=np.float64).reshape(-1, 3)
        except ValueError:
            raise MeshError("is damaged: a vertex of this ASCII STL has not three numbers") from None
    else:
        raise MeshError(f"is damaged: it says {count} facets, but has {len(content)} bytes")
    corners = corners[: len(corners) // 3 * 3].astype(np.float64)
    return [Part(corners, np.arange(len(corners), dtype=np.int32).reshape(-1, 3))]


def _ascii_stl(content: bytes) -> list[bytes]:
    """Words of an ASCII file, in small letters; none if it is no such file."""
    text = content.removeprefix(b"\xef\xbb\xbf").lstrip().lower() if content[:16].lower().find(b"solid") >= 0 else b""
    return text.split() if text.startswith(b"solid") and (b"facet" in text[:2000] or b"endsolid" in text[-400:]) else []


def _obj(content: bytes, folder: Path) -> list[Part]:
    """Vertices, and faces by material."""
    vertices: list[list[bytes]] = []
    # by material: corners of all its polygons, and the number of corners of each
    faces: dict[str, tuple[list[int], list[int]]] = {}
    current = faces.setdefault("", ([], []))
    colours: dict[str, Rgba] = {}
    try:
        for line in content.replace(b"\\\n", b" ").replace(b"\\\r\n", b" ").splitlines():
            words = line.split()
            if not words:
                continue
            if words[0] == b"v":
                vertices.append(words[1:4])
            elif words[0] == b"f":
                corners = [int(word.partition(b"/")[0]) for word in words[1:]]
                # indices from one, or negative from the last one read
                current[0].extend(k - 1 if k > 0 else len(vertices) + k for k in corners)
                current[1].append(len(corners))
            elif words[0] == b"usemtl":
                current = faces.setdefault(line.split(None, 1)[1].decode(errors="replace").strip() if len(words) > 1 else "", ([], []))
            elif words[0] == b"mtllib" and len(words) > 1:
                colours |= _mtl(folder / line.split(None, 1)[1].decode(errors="replace").strip())
        places = np.array(vertices, dtype=np.float64).reshape(-1, 3)
        parts = []
        for material, (listed, sizes) in faces.items():
            made = joined_polygons(np.array(listed, dtype=np.int64), np.array(sizes, dtype=np.int64))
            if len(made) and not (made.min() >= 0 and made.max() < len(places)):
                raise MeshError(f"a face names vertex {int(made.max()) + 1} of {len(places)}")
            parts.append(Part(places, made.astype(np.int32), colours.get(material)))
    except MeshError:
        raise
    except ValueError as error:
        raise MeshError(f"is damaged OBJ: {error}") from None
    return parts


def _mtl(path: Path) -> dict[str, Rgba]:
    """Diffuse colours by material; none if the file is missing or damaged."""
    found: dict[str, Rgba] = {}
    name, rgb, opaque = "", None, 1.0
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    for line in lines:
        words = line.split()
        try:
            if words[:1] == ["newmtl"]:
                name, rgb, opaque = line.split(None, 1)[1].strip() if len(words) > 1 else "", None, 1.0
            elif words[:1] == ["Kd"]:
                rgb = [min(max(float(x), 0.0), 1.0) for x in words[1:4]]
            elif words[:1] == ["d"]:
                opaque = min(max(float(words[1]), 0.0), 1.0)
        except (ValueError, IndexError):
            continue
        if rgb is not None and len(rgb) == 3:
            found[name] = (rgb[0], rgb[1], rgb[2], opaque)
    return found


def box_of(parts: list[Part]) -> NDArray[np.float64]:
    """Lowest and highest corners (2, 3) of the bounding box of some parts [m]."""
    points = np.concatenate([part.vertices[np.unique(part.faces)] for part in parts])
    return np.array([points.min(axis=0), points.max(axis=0)])
