"""Mixed linear complementarity problems by Lemke's method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import as_array, count, number, numbers
from ..errors import ArgumentError, ArgumentTypeError
from ..types import LcpStatus

__all__ = ["LcpResult", "solve_lcp"]

Array = NDArray[Any]
_STATUS: tuple[LcpStatus, ...] = ("solved", "inaccurate", "ray", "pivot_limit")
_ADVICE: dict[LcpStatus, str] = {
    "solved": "",
    "inaccurate": "Complementary, but the residual is above the tolerance: contradictory equations, or rounding errors. Look at the equations, or loosen the tolerance.",
    "ray": "The pivots ended on a ray: if M is copositive plus there is no solution, else there may be one. See residual.",
    "pivot_limit": "Give more max_pivots.",
}


@dataclass(frozen=True, eq=False)
class LcpResult:
    """Result of :func:`solve_lcp`.

    Attributes:
        solution: (n,) z, finite, non-negative where it is not free; if there is no solution, the best point found.
        slack: (n,) w = M z + q.
        status: "solved"; "inaccurate": complementary, but the residual is above the tolerance, because of rounding or contradictory equations; "ray": no solution was found, and if M is copositive plus there
            is none; "pivot_limit".
        pivots: number of pivots in all attempts.
        attempts: number of attempts: 1, or more if the first found no solution.
        residual: largest |w_i| of equations and of z_i > 0, and of −w_i otherwise.
        advice: what to do about the status, or empty.
    """

    solution: Array
    slack: Array
    status: LcpStatus
    pivots: int
    attempts: int
    residual: float
    advice: str


def restated(result: LcpResult, status: LcpStatus) -> LcpResult:
    """Give a result another status, and its advice."""
    return replace(result, status=status, advice=_ADVICE[status])


def run_lemke(native: _core.Lemke, M: Array, q: Array, free: NDArray[np.bool_], tolerance: float, max_pivots: int | None) -> LcpResult:
    """Solve a checked problem in preallocated memory."""
    s = native.solve(M, q, free, tolerance, -1 if max_pivots is None else max_pivots, None)
    z, status = s.solution, _STATUS[s.outcome]
    return LcpResult(z, M @ z + q, status, s.pivots, s.attempts, s.residual, _ADVICE[status])


def solve_lcp(
    M: ArrayLike, q: ArrayLike, *, free: ArrayLike | None = None, tolerance: float = 1e-9, max_pivots: int | None = None
) -> LcpResult:
    """Solve w = M z + q, w ≥ 0, z ≥ 0, wᵀ z = 0; where ``free``, w = 0 and z has any sign: by Lemke's method, O(n³).

    Free variables are eliminated first, even if their own block of M is singular; rows and columns are scaled; ties are broken lexicographically, so that pivots do not cycle. If
    they end on a ray, the method is repeated with another covering vector and with slight damping.

    Args:
        M: (n, n) any matrix.
        q: (n,).
        free: (n,) bool, True for equations; default: none.
        tolerance: tolerance for the residual, relative to the largest |q|.
        max_pivots: maximum number of pivots per attempt; default: 100 + 10 per pair.

    Returns:
        solution, slack, status and residual.

    Examples:
        >>> import delassus as dl
        >>> r = dl.solve_lcp([[2.0, 1.0], [1.0, 2.0]], [-5.0, -6.0])
        >>> r.status, r.solution.round(12).tolist()
        ('solved', [1.333333333333, 2.333333333333])
    """
    shape = as_array(M, "M").shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ArgumentError(f"M: expected a square matrix, got shape {shape}.")
    n = shape[0]
    matrix, vector = numbers(M, "M", (n, n)), numbers(q, "q", (n,))
    mask = np.zeros(n, dtype=bool) if free is None else np.asarray(free)
    if mask.dtype != bool:
        raise ArgumentTypeError(f"free: expected bool, got dtype {mask.dtype}.")
    if mask.shape != (n,):
        raise ArgumentError(f"free: expected shape {(n,)}, got {mask.shape}.")
    limit = None if max_pivots is None else count(max_pivots, "max_pivots", 0)
    return run_lemke(_core.Lemke(n), matrix, vector, np.ascontiguousarray(mask), number(tolerance, "tolerance", minimum=0.0), limit)
