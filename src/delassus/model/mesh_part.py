"""Triangles of one colour, which every reader of mesh files returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshError

__all__ = ["Part", "Rgba", "joined_polygons", "welded"]

Rgba = tuple[float, float, float, float]


class Part(NamedTuple):
    """Vertices (V, 3) [m], triangles (F, 3), counter-clockwise seen from outside, and their colour if the file has one."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]
    rgba: Rgba | None = None


def joined_polygons(corners: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut polygons into fans of triangles (F, 3).

    Args:
        corners: corners of all polygons, one after the other.
        sizes: number of corners of each polygon; those with fewer than three are lines, and are dropped.
    """
    if sizes.sum() > len(corners):
        raise MeshError(f"polygons have {int(sizes.sum())} corners, of which {len(corners)} are listed")
    starts = np.cumsum(sizes) - sizes
    triangles = np.maximum(sizes - 2, 0)
    first = np.repeat(starts, triangles)
    # k-th triangle of a polygon: its first corner, and corners k + 1 and k + 2
    k = np.arange(len(first)) - np.repeat(np.cumsum(triangles) - triangles, triangles)
    return np.asarray(corners[np.stack([first, first + k + 1, first + k + 2], axis=1)])


def welded(vertices: NDArray[np.float64], faces: NDArray[np.int32]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return the used vertices in single precision, without duplicates, and the triangles with three distinct corners."""
    used = np.ascontiguousarray(vertices[faces.ravel()], dtype=np.float32) + np.float32(0)  # −0 is 0
    # one number per vertex to sort by: its bits, mixed by odd factors; if two vertices share one, nothing is welded
    bits = used.view(np.uint32).astype(np.uint64)
    keys = (bits[:, 0] * np.uint64(0x9E3779B97F4A7C15)) ^ (
        bits[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F) + (bits[:, 2] * np.uint64(0x165667B19E3779F9))
    )
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    inverse = inverse.ravel()
    if not np.array_equal(used[first][inverse], used):
        first = inverse = np.arange(len(used))
    corners = inverse.reshape(-1, 3).astype(np.int32)
    a, b, c = corners.T
    return used[first], corners[(a != b) & (b != c) & (c != a)]
