"""Contact forces to first order, in NumPy: every contact keeps its mode, and its law is a linear equation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["contact_tangents"]

Array = NDArray[np.float64]


def contact_tangents(
    G: Array, friction: Sequence[float], forces: Array, velocities: Array, s: Array, dfriction: Sequence[float], tolerance: float = 1e-9
) -> tuple[Array, Array]:
    """Differentiate λ and σ = G λ + g of contacts with three rows each, normal first. O(m³).

    Each contact gives three rows of A dλ + S dσ = b, and with dσ = G dλ + s that is (A + S G) dλ = b − S s:

        open      dλ = 0
        sticking  dσ = 0
        sliding   dσ_n = 0,   dλ_T + h µ dλ_n + (µ λ_n / |σ_T|) (1 − h hᵀ) dσ_T = −h λ_n dµ,   h = σ_T / |σ_T|

    Args:
        G: (m, m) the Delassus matrix.
        friction: µ of each contact.
        forces, velocities: λ and σ, (m,), of a solution.
        s: (m,) change of σ at constant forces, d(G) λ + dg.
        dfriction: change of each µ.
        tolerance: fraction of the largest force and velocity that counts as zero.

    Returns:
        dλ and dσ, (m,). For redundant contacts, the minimum-norm dλ.
    """
    m = len(forces)
    no_force, no_velocity = tolerance * np.abs(forces).max(), tolerance * (np.abs(velocities).max() + np.abs(G @ forces).max())
    A, S, b = np.zeros((m, m)), np.zeros((m, m)), np.zeros(m)
    for k, mu in enumerate(friction):
        n, T = 3 * k, slice(3 * k + 1, 3 * k + 3)
        both = slice(n, T.stop)
        speed = np.linalg.norm(velocities[T])
        if forces[n] <= no_force:  # open
            A[both, both] = np.eye(3)
        elif mu > 0 and speed <= no_velocity:  # sticking
            S[both, both] = np.eye(3)
        else:  # sliding
            h = velocities[T] / max(speed, no_velocity)
            S[n, n] = 1
            A[T, T], A[T, n] = np.eye(2), mu * h
            S[T, T] = mu * forces[n] / max(speed, no_velocity) * (np.eye(2) - np.outer(h, h))
            b[T] = -h * forces[n] * dfriction[k]
    dforces: Array = np.linalg.lstsq(A + S @ G, b - S @ s, rcond=1e-11)[0].astype(float)
    return dforces, G @ dforces + s
