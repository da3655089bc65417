"""The arithmetic of the algorithms: matrices with two axes, of NumPy numbers or of CasADi expressions.

A vector is a matrix of one column. The algorithms use ``@ + - * .T``, slices and the few functions of :class:`Arithmetic`, and never ask which of
the two it is. No branch depends on a number, except the stopping test of an algorithm with a tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import MissingExtraError

__all__ = ["Arithmetic", "Numbers", "Symbols"]

# A matrix with two axes: numpy.ndarray or casadi.SX.
Matrix = Any
Scalar = Any


class Arithmetic:
    """Functions that differ between NumPy and CasADi."""

    symbolic: bool = False

    def matrix(self, rows: Any) -> Matrix:
        """Matrix of numbers, or of rows of scalars."""
        raise NotImplementedError

    def zeros(self, rows: int, columns: int) -> Matrix:
        """Matrix of zeros."""
        raise NotImplementedError

    def stack(self, blocks: Sequence[Matrix]) -> Matrix:
        """Blocks below each other."""
        raise NotImplementedError

    def beside(self, blocks: Sequence[Matrix]) -> Matrix:
        """Blocks beside each other."""
        raise NotImplementedError

    def symmetric(self, A: Matrix) -> Matrix:
        """Matrix of the upper triangle of A and its mirror image: only half of a symmetric matrix is computed."""
        raise NotImplementedError

    def sine_cosine(self, angle: Scalar) -> tuple[Scalar, Scalar]:
        """Sine and cosine of a scalar."""
        raise NotImplementedError

    def root(self, x: Scalar) -> Scalar:
        """Square root of a scalar."""
        raise NotImplementedError

    def sign(self, x: Scalar) -> Scalar:
        """One with the sign of a scalar; one for zero."""
        raise NotImplementedError

    def vanishes(self, x: Scalar, bound: float) -> bool:
        """Whether a scalar is zero: by structure if it is symbolic, at most ``bound`` if it is a number."""
        raise NotImplementedError

    # ---- derived from these------------------------------------------------------------------------------------------------

    def identity(self, n: int) -> Matrix:
        """Return the identity matrix."""
        return self.matrix(np.eye(n))

    def diagonal(self, entries: Sequence[Scalar]) -> Matrix:
        """Diagonal matrix."""
        A = self.zeros(len(entries), len(entries))
        for k, x in enumerate(entries):
            A[k, k] = x
        return A

    def entries(self, A: Matrix) -> list[list[Scalar]]:
        """Scalars of a matrix, a list per row."""
        rows, columns = A.shape
        return [[A[i, j] for j in range(columns)] for i in range(rows)]

    def block_diagonal(self, A: Matrix, B: Matrix) -> Matrix:
        """Block-diagonal matrix of two matrices."""
        return self.stack([self.beside([A, self.zeros(A.shape[0], B.shape[1])]), self.beside([self.zeros(B.shape[0], A.shape[1]), B])])

    def take(self, A: Matrix, order: Sequence[int]) -> Matrix:
        """Rows and columns of a square matrix in another order."""
        raise NotImplementedError

    def assemble(self, sizes: Sequence[int], blocks: dict[tuple[int, int], Matrix]) -> Matrix:
        """Symmetric matrix from its upper blocks (i, j), i ≤ j; missing ones are zero."""
        n = len(sizes)

        def block(i: int, j: int) -> Matrix:
            if (i, j) in blocks:
                return blocks[i, j]
            return blocks[j, i].T if (j, i) in blocks else self.zeros(sizes[i], sizes[j])

        return self.stack([self.beside([block(i, j) for j in range(n)]) for i in range(n)]) if n else self.zeros(0, 0)

    def inverse_of_any(self, A: Matrix) -> Matrix:
        """Inverse of a small matrix that need not be symmetric, by Gauss–Jordan elimination; pivots are taken in order, since their choice must not depend on numbers."""
        a = self.entries(A)
        n = len(a)
        for k in range(n):
            pivot, a[k][k] = 1.0 / a[k][k], 1.0
            a[k] = [x * pivot for x in a[k]]
            for i in range(n):
                if i != k:
                    factor, a[i][k] = a[i][k], 0.0
                    a[i] = [x - factor * y for x, y in zip(a[i], a[k], strict=True)]
        return self.matrix(a)

    def inverse(self, A: Matrix) -> Matrix:
        """Inverse of a small symmetric positive matrix: A = L D Lᵀ, A⁻¹ = L⁻ᵀ D⁻¹ L⁻¹, symmetric; one division per row."""
        n = A.shape[0]
        L, d = self._factor(A)
        W = [[0.0] * n for _ in range(n)]  # L⁻¹
        for i in range(n):
            W[i][i] = 1.0
            for j in range(i):
                W[i][j] = -L[i][j]
                for k in range(j + 1, i):
                    W[i][j] = W[i][j] - L[i][k] * W[k][j]
        e = [1.0 / x for x in d]
        out = [[0.0] * n for _ in range(n)]
        for i in range(n):
            for j in range(i, n):
                total = W[j][i] * e[j]
                for k in range(j + 1, n):
                    total = total + W[k][i] * (e[k] * W[k][j])
                out[i][j] = out[j][i] = total
        return self.matrix(out) if n else self.zeros(0, 0)

    def _factor(self, A: Matrix) -> tuple[list[list[Scalar]], list[Scalar]]:
        """Factor A = L D Lᵀ: unit lower L, and D."""
        n = A.shape[0]
        a = self.entries(A)
        L: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        d: list[Scalar] = []
        for j in range(n):
            d.append(a[j][j])
            for k in range(j):
                d[j] = d[j] - L[j][k] * (L[j][k] * d[k])
            scale = 1.0 / d[j] if j + 1 < n else None
            for i in range(j + 1, n):
                x = a[i][j]
                for k in range(j):
                    x = x - L[i][k] * (L[j][k] * d[k])
                L[i][j] = x * scale
        return L, d

    def cholesky(self, A: Matrix) -> list[list[Scalar]]:
        """Lower-triangular C of A = C Cᵀ, a list per row; its diagonal is stored as reciprocals."""
        n = A.shape[0]
        a = self.entries(A)
        C: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        for j in range(n):
            x = a[j][j]
            for k in range(j):
                x = x - C[j][k] * C[j][k]
            C[j][j] = 1.0 / self.root(x)
            for i in range(j + 1, n):
                x = a[i][j]
                for k in range(j):
                    x = x - C[i][k] * C[j][k]
                C[i][j] = x * C[j][j]
        return C

    def cholesky_solve(self, C: list[list[Scalar]], B: Matrix) -> Matrix:
        """A⁻¹ B with the factor of :meth:`cholesky`."""
        n, columns = B.shape
        x = self.entries(B)
        for c in range(columns):
            for i in range(n):
                for k in range(i):
                    x[i][c] = x[i][c] - C[i][k] * x[k][c]
                x[i][c] = x[i][c] * C[i][i]
            for i in reversed(range(n)):
                for k in range(i + 1, n):
                    x[i][c] = x[i][c] - C[k][i] * x[k][c]
                x[i][c] = x[i][c] * C[i][i]
        return self.matrix(x) if n and columns else self.zeros(n, columns)


class Numbers(Arithmetic):
    """NumPy arrays: of floats, or of any objects that add and multiply.

    Args:
        dtype: dtype of the arrays; ``object`` for other scalar types, which need methods ``sin``, ``cos`` and ``sqrt`` if the algorithm uses these functions.
    """

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype = np.dtype(dtype)

    def matrix(self, rows: Any) -> Matrix:
        """Matrix of numbers, or of rows of scalars."""
        return np.array(rows, dtype=self.dtype)

    def zeros(self, rows: int, columns: int) -> Matrix:
        """Matrix of zeros."""
        return np.zeros((rows, columns), dtype=self.dtype)

    def stack(self, blocks: Sequence[Matrix]) -> Matrix:
        """Blocks below each other."""
        return np.vstack(blocks)

    def beside(self, blocks: Sequence[Matrix]) -> Matrix:
        """Blocks beside each other."""
        return np.hstack(blocks)

    def symmetric(self, A: Matrix) -> Matrix:
        """Matrix of the upper triangle of A and its mirror image."""
        return np.triu(A) + np.triu(A, 1).T

    def take(self, A: Matrix, order: Sequence[int]) -> Matrix:
        """Rows and columns of a square matrix in another order."""
        return A[np.ix_(order, order)]

    def sine_cosine(self, angle: Scalar) -> tuple[Scalar, Scalar]:
        """Sine and cosine of a scalar."""
        return np.sin(angle), np.cos(angle)

    def root(self, x: Scalar) -> Scalar:
        """Square root of a scalar."""
        return np.sqrt(x)

    def sign(self, x: Scalar) -> Scalar:
        """One with the sign of a scalar."""
        return -1.0 if x < 0 else 1.0

    def vanishes(self, x: Scalar, bound: float) -> bool:
        """Whether a scalar is at most ``bound``."""
        return bool(abs(x) <= bound)


class Symbols(Arithmetic):
    """CasADi ``SX``: sparse, zeros and ones fold as expressions are built.

    Raises:
        MissingExtraError: CasADi is not installed.
    """

    symbolic = True

    def __init__(self) -> None:
        self.casadi = casadi()

    def matrix(self, rows: Any) -> Matrix:
        """Matrix of numbers, or of rows of scalars."""
        ca = self.casadi
        if isinstance(rows, np.ndarray) and rows.dtype != object:
            return ca.SX(ca.sparsify(ca.DM(np.atleast_2d(rows))))
        return ca.sparsify(ca.vertcat(*(ca.horzcat(*row) for row in rows)))

    def zeros(self, rows: int, columns: int) -> Matrix:
        """Matrix of structural zeros."""
        return self.casadi.SX(rows, columns)

    def stack(self, blocks: Sequence[Matrix]) -> Matrix:
        """Blocks below each other."""
        return self.casadi.vertcat(*blocks)

    def beside(self, blocks: Sequence[Matrix]) -> Matrix:
        """Blocks beside each other."""
        return self.casadi.horzcat(*blocks)

    def symmetric(self, A: Matrix) -> Matrix:
        """Matrix of the upper triangle of A and its mirror image."""
        return self.casadi.triu(A) + self.casadi.triu(A, False).T

    def take(self, A: Matrix, order: Sequence[int]) -> Matrix:
        """Rows and columns of a square matrix in another order."""
        return A[list(order), list(order)]

    def sine_cosine(self, angle: Scalar) -> tuple[Scalar, Scalar]:
        """Sine and cosine of a scalar."""
        return self.casadi.sin(angle), self.casadi.cos(angle)

    def root(self, x: Scalar) -> Scalar:
        """Square root of a scalar."""
        return self.casadi.sqrt(x)

    def sign(self, x: Scalar) -> Scalar:
        """One with the sign of a scalar."""
        return self.casadi.if_else(x < 0, -1.0, 1.0)

    def vanishes(self, x: Scalar, bound: float) -> bool:
        """Whether a scalar is zero by structure."""
        return bool(self.casadi.SX(x).is_zero())


def casadi() -> Any:
    """Import CasADi, or raise an error that names the extra to install."""
    try:
        import casadi
    except ImportError:
        raise MissingExtraError("CasADi is not installed, and symbolic work needs it: pip install 'delassus[symbolic]'.") from None
    return casadi


def arithmetic_of(*values: Any) -> Arithmetic:
    """Arithmetic that fits some values: symbolic if any is a CasADi expression, of objects if any is an object array, else float64."""
    for x in values:
        if type(x).__module__.partition(".")[0] == "casadi":
            return Symbols()
    return Numbers(object if any(getattr(x, "dtype", None) == np.dtype(object) for x in values) else np.float64)
