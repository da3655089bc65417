"""Dense factorizations of the core, as used by its operators and contact solvers; for bitwise equal results, and for tests.

Row-major matrices in float64 or float32, one thread, results that do not depend on memory alignment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._door import as_array
from .errors import ArgumentError, SingularError

__all__ = ["Cholesky", "Lu", "Orthogonal"]

Array = NDArray[Any]


def _square(A: ArrayLike) -> Array:
    """Return a copy of a square matrix; float32 stays float32."""
    given = as_array(A, "A", "a square matrix")
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ArgumentError(f"A: expected a square matrix, got shape {given.shape}.")
    return np.array(given, dtype=np.float32 if given.dtype == np.float32 else np.float64, order="C")


def _right_hand_sides(y: ArrayLike, like: Array) -> Array:
    given = as_array(y, "y", "one right-hand side or several")
    if given.ndim not in (1, 2) or given.shape[0] != like.shape[0]:
        raise ArgumentError(f"y: expected shape {(like.shape[0],)} or {(like.shape[0], 'k')}, got {given.shape}.")
    return np.array(given, dtype=like.dtype, order="C")


class Cholesky:
    """A = Uᵀ U of a symmetric positive definite matrix, O(n³ / 3).

    Args:
        A: (n, n) matrix; only the upper triangle is read.

    Raises:
        SingularError: the matrix is not positive definite, or has numbers that are not finite.

    Examples:
        >>> import numpy as np, delassus.dense
        >>> delassus.dense.Cholesky([[4.0, 2.0], [2.0, 3.0]]).solve([2.0, 3.0]).round(12).tolist()
        [0.0, 1.0]
    """

    def __init__(self, A: ArrayLike) -> None:
        self._factor = _square(A)
        row = _core.factor_cholesky(self._factor, None)
        if row < len(self._factor):
            raise SingularError(f"A: it is not positive definite: the pivot of row {row} is not a positive number.")

    def solve(self, y: ArrayLike) -> Array:
        """A⁻¹ y for y (n,) or (n, k), O(2 n²) per column."""
        x = _right_hand_sides(y, self._factor)
        _core.solve_cholesky(self._factor, x.reshape(len(x), -1) if x.size else x.reshape(len(x), 0))
        return x

    def inverse(self) -> Array:
        """A⁻¹ (n, n), O(2 n³ / 3)."""
        X = np.zeros_like(self._factor)
        _core.add_inverse_cholesky(self._factor, np.empty_like(X), X)
        return np.triu(X) + np.triu(X, 1).T

    @property
    def upper(self) -> Array:
        """U (n, n)."""
        U = np.triu(self._factor)
        np.fill_diagonal(U, 1 / U.diagonal())
        return U


class Lu:
    """P A = L U of a square matrix, rows exchanged for the largest pivot, O(2 n³ / 3).

    Args:
        A: (n, n).

    Raises:
        SingularError: a column has no pivot, or the matrix has numbers that are not finite.

    Examples:
        >>> import numpy as np, delassus.dense
        >>> delassus.dense.Lu([[0.0, 2.0], [1.0, 1.0]]).solve([2.0, 3.0]).round(12).tolist()
        [2.0, 1.0]
    """

    def __init__(self, A: ArrayLike) -> None:
        self._factor = _square(A)
        self._pivots = np.arange(len(self._factor), dtype=np.int32)
        column = _core.factor_lu(self._factor, self._pivots, 0.0)
        if column < len(self._factor):
            raise SingularError(f"A: it is singular: column {column} has no pivot that is a number other than zero.")

    def solve(self, y: ArrayLike) -> Array:
        """A⁻¹ y for y (n,) or (n, k), O(2 n²) per column."""
        x = _right_hand_sides(y, self._factor)
        _core.solve_lu(self._factor, self._pivots, x.reshape(len(x), -1) if x.size else x.reshape(len(x), 0))
        return x

    @property
    def permutation(self) -> NDArray[np.int64]:
        """Rows of A in the order of P A, (n,)."""
        order = list(range(len(self._pivots)))
        for k, p in enumerate(self._pivots.tolist()):
            order[k], order[p] = order[p], order[k]
        return np.array(order, dtype=np.int64)

    @property
    def lower(self) -> Array:
        """L (n, n), ones on its diagonal."""
        L: Array = np.tril(self._factor, -1)
        np.fill_diagonal(L, 1)
        return L

    @property
    def upper(self) -> Array:
        """U (n, n)."""
        U = np.triu(self._factor)
        np.fill_diagonal(U, 1 / U.diagonal())
        return U


class Orthogonal:
    """The complete orthogonal factors of a square matrix that may be singular, and its pseudo-inverse A⁺ with them: Householder reflections from both sides, O(4 n³ / 3).

    Args:
        A: (n, n), in float64.
        threshold: columns are dependent if their remainder is at most this fraction of the longest.

    Raises:
        NotFiniteError: the matrix has numbers that are not finite.

    Examples:
        >>> import numpy as np, delassus.dense
        >>> factor = delassus.dense.Orthogonal([[1.0, 1.0], [1.0, 1.0]])
        >>> factor.rank, factor.solve([2.0, 2.0]).round(12).tolist()
        (1, [1.0, 1.0])
    """

    def __init__(self, A: ArrayLike, *, threshold: float = 1e-12) -> None:
        self._native = _core.OrthogonalFactor(_square(A).astype(np.float64), float(threshold))

    @property
    def rank(self) -> int:
        """Number of independent columns."""
        return int(self._native.rank)

    def solve(self, y: ArrayLike) -> Array:
        """Return A⁺ y for y (n,), the minimum-norm x that minimises ‖A x − y‖."""
        return np.asarray(self._native.solve(y, False))

    def solve_transposed(self, y: ArrayLike) -> Array:
        """A⁺ᵀ y for y (n,)."""
        return np.asarray(self._native.solve(y, True))
