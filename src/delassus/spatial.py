"""Rotations and spatial inertia, as the core computes them.

Quaternions are (w, x, y, z); spatial vectors are ``[linear; angular]``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._door import finite, number, numbers
from .errors import QuaternionError

__all__ = ["compose", "exponential", "logarithm", "rotation_matrix", "spatial_inertia"]


def rotation_matrix(quaternion: ArrayLike) -> NDArray[np.float64]:
    """Rotation of a quaternion.

    Args:
        quaternion: (4,) as (w, x, y, z); its length is divided out and must not be zero.

    Returns:
        (3, 3) matrix R: a vector with coordinates c in the rotated frame has coordinates R c in the fixed one.
    """
    return _core.rotation_matrix(_scaled(quaternion))


def compose(first: ArrayLike, second: ArrayLike) -> tuple[float, float, float, float]:
    """Quaternion of two successive rotations: R(first) R(second).

    Args:
        first, second: (4,) as (w, x, y, z).

    Returns:
        (w, x, y, z), of unit length if both are.
    """
    a, b, c, d = numbers(first, "first", (4,)).tolist()
    w, x, y, z = numbers(second, "second", (4,)).tolist()
    product = (a * w - b * x - c * y - d * z, a * x + b * w + c * z - d * y, a * y - b * z + c * w + d * x, a * z + b * y - c * x + d * w)
    finite(np.array(product), "the product of the quaternions")
    return product


def exponential(rotation_vector: ArrayLike) -> NDArray[np.float64]:
    """Quaternion of a rotation vector.

    Args:
        rotation_vector: (3,) axis times angle [rad].

    Returns:
        (4,) unit quaternion (cos θ/2, sin θ/2 · axis).
    """
    return _core.exponential(rotation_vector)


def logarithm(quaternion: ArrayLike) -> NDArray[np.float64]:
    """Shortest rotation vector of a quaternion, inverse of :func:`exponential`.

    Args:
        quaternion: (4,) as (w, x, y, z); its length is divided out and must not be zero.

    Returns:
        (3,) axis times angle, angle in [0, π] rad.
    """
    return _core.logarithm(_scaled(quaternion))


def spatial_inertia(mass: float, com: ArrayLike, inertia: ArrayLike) -> NDArray[np.float64]:
    """Spatial inertia about a frame's origin, ``[[m 1, −m[c]×], [m[c]×, I_c − m[c]×[c]×]]``.

    Args:
        mass: kg.
        com: (3,) centre of mass in the frame [m].
        inertia: (3, 3) about the centre of mass, axes of the frame [kg m²].

    Returns:
        (6, 6) symmetric, maps ``[linear; angular]`` motion to ``[force; moment]``.
    """
    m = number(mass, "mass", minimum=0.0)
    c = numbers(com, "com", (3,))
    I = numbers(inertia, "inertia", (3, 3))  # noqa: E741
    cx = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    with np.errstate(over="ignore", invalid="ignore"):
        return finite(np.block([[m * np.eye(3), -m * cx], [m * cx, I - m * cx @ cx]]), "the spatial inertia")


def _scaled(quaternion: ArrayLike) -> NDArray[np.float64]:
    """Quaternion with its largest number ±1, so that no square overflows."""
    q = numbers(quaternion, "quaternion", (4,))
    largest = np.abs(q).max()
    if largest == 0:
        raise QuaternionError("quaternion: expected a length other than zero, got (0, 0, 0, 0).")
    return q / largest  # type: ignore[no-any-return]
