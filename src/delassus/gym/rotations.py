"""Rotations of many bodies together; quaternions are (w, x, y, z) of length 1, one per row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["compose", "from_rotation_vectors", "rotate", "rotate_back", "tilt_cosine"]

Array = NDArray[Any]


def _cross(a: Array, b: Array) -> Array:
    """Cross products of rows (n, 3) or (1, 3); takes a quarter of the time of np.cross for some hundred rows."""
    out = np.empty((max(len(a), len(b)), 3))
    for k, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
        np.subtract(a[:, i] * b[:, j], a[:, j] * b[:, i], out=out[:, k])
    return out


def rotate(q: Array, x: Array) -> Array:
    """Rotate body coordinates x (n, 3) into world axes: x + 2 w (u × x) + 2 u × (u × x), u the vector part of q (n, 4)."""
    u = q[:, 1:]
    t = 2.0 * _cross(u, x)
    return np.asarray(x + q[:, :1] * t + _cross(u, t))


def rotate_back(q: Array, x: Array) -> Array:
    """Rotate world coordinates x (n, 3) into body axes."""
    return rotate(q * [1.0, -1.0, -1.0, -1.0], x)


def compose(a: Array, b: Array) -> Array:
    """Product of quaternions, row by row: first the rotation b (n, 4), then a (n, 4)."""
    u, w = a[:, 1:], b[:, 1:]
    scalar = a[:, :1] * b[:, :1] - (u * w).sum(axis=1, keepdims=True)
    return np.concatenate([scalar, a[:, :1] * w + b[:, :1] * u + _cross(u, w)], axis=1)


def tilt_cosine(q: Array) -> Array:
    """(n,) cosine of the angle between the body's z axis and the vertical."""
    return np.asarray(1.0 - 2.0 * (q[:, 1] ** 2 + q[:, 2] ** 2))


def from_rotation_vectors(r: Array) -> Array:
    """(n, 4) quaternions of rotation vectors (n, 3) [rad]."""
    half = 0.5 * np.sqrt((r * r).sum(axis=1, keepdims=True))
    return np.concatenate([np.cos(half), 0.5 * np.sinc(half / np.pi) * r], axis=1)
