"""G = J M⁻¹ Jᵀ and (G + damping)⁻¹ as dense matrices, by every published algorithm; and operators that store them.

The docstrings of both functions and operators list all arguments, so that each can be read on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import _core
from .._door import diagonal, refuse_large, unknown
from ..constraints import Constraint, OnConstraints
from ..errors import ArgumentError
from ..model import Loop, Model
from ..types import InverseMethod, MatrixMethod
from .blocks import are_blocks
from .delassus import DelassusOperator

__all__ = ["CholeskyDelassus", "DenseDelassus", "ExplicitDelassus", "MethodCosts", "damped_delassus_inverse", "delassus_matrix"]

Array = NDArray[Any]
MATRIX_METHODS: tuple[MatrixMethod, ...] = tuple(name for name in get_args(MatrixMethod) if name != "auto")
INVERSE_METHODS: tuple[InverseMethod, ...] = tuple(name for name in get_args(InverseMethod) if name != "auto")
_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)
# below this a matrix has at most some hundred megabytes, and free memory is not checked on every call
_MANY_ROWS = 5000
_INSTEAD = "Products and solutions by DelassusOperator need no matrix."
_NATIVE: dict[np.dtype[Any], Any] = {_DOUBLE: _core.Explicit64, _SINGLE: _core.Explicit32}


@dataclass(frozen=True)
class MethodCosts:
    """Expected time of each method, and the choice of ``"auto"``; ``print`` gives a report.

    Attributes:
        model: name of the mechanism.
        rows: number of rows m.
        matrix: expected time [µs] of each method for G that supports these constraints.
        inverse: the same for (G + damping)⁻¹.
        refused: methods that do not support them.
    """

    model: str
    rows: int
    matrix: dict[str, float]
    inverse: dict[str, float]
    refused: tuple[str, ...]

    @property
    def matrix_choice(self) -> str:
        """The method that ``"auto"`` chooses for G."""
        return min(self.matrix, key=self.matrix.__getitem__)

    @property
    def inverse_choice(self) -> str:
        """The method that ``"auto"`` chooses for the damped inverse."""
        return min(self.inverse, key=self.inverse.__getitem__)

    def __str__(self) -> str:
        def listed(what: str, costs: dict[str, float], choice: str) -> list[str]:
            ranked = sorted(costs.items(), key=lambda c: c[1])
            return [f"{what:16}{'expected [µs]':>14}", *(f"  {k:14}{c:14.2f}{'  auto' if k == choice else ''}" for k, c in ranked)]

        lines = [f"{self.model}: {self.rows} rows", *listed("G", self.matrix, self.matrix_choice)]
        lines += listed("(G + damping)⁻¹", self.inverse, self.inverse_choice)
        if self.refused:
            lines.append(f"rows on several links or on joints refuse {', '.join(self.refused)}")
        return "\n".join(lines)


class ExplicitDelassus(OnConstraints):
    """Memory and symbolic work of the explicit algorithms for one model and list of constraints, set up once for repeated calls.

    One thread at a time may use it, otherwise :class:`~delassus.errors.BusyError`. Memory that only some methods need is allocated when they first run.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops; their rows in order are the rows of G. May be empty.
        compliance: C, physical compliance on the diagonal of G itself, scalar or (m,).
        dtype: float64 or float32; the work is done, and results returned, in this precision.

    Examples:
        >>> import delassus as dl
        >>> model = dl.load("go2")
        >>> feet = [dl.PointContact(model, b) for b in range(1, model.nbody) if "calf" in model.body_names[b]]
        >>> explicit = dl.ExplicitDelassus(model, feet)
        >>> explicit.matrix(model.neutral(), method="pv-osimr").shape
        (12, 12)
    """

    def __init__(
        self, model: Model, constraints: Sequence[Constraint | Loop], *, compliance: ArrayLike = 0.0, dtype: DTypeLike = np.float64
    ) -> None:
        self._dtype, native = self._prepare(model, constraints, dtype, _NATIVE)
        self._rows = sum(c.rows for c in self._constraints)
        self._native = native(model._native, [c._native() for c in self._constraints])
        self._native.set_compliance(diagonal(compliance, "compliance", (self._rows,), self._dtype))
        matrix, inverse = ({k: time for k, (time, *_) in costs} for costs in (self._native.matrix_costs, self._native.inverse_costs))
        refused = dict.fromkeys(k for k in (*MATRIX_METHODS, *INVERSE_METHODS) if k not in matrix and k not in inverse)
        self._costs = MethodCosts(model.name, self._rows, matrix, inverse, tuple(refused))
        self._large = self._rows > _MANY_ROWS

    @staticmethod
    def _method(method: str, costs: dict[str, float], choice: str, known: tuple[str, ...]) -> str:
        if method in costs:
            return method
        if method == "auto":
            return choice
        if method in known:
            raise ArgumentError(
                f"method: {method!r} takes rows that act on one link each, but some of these act on several links or on joints. "
                f"Use one of {', '.join(repr(k) for k in costs)}, or 'auto'."
            )
        raise unknown("method", method, (*known, "auto"))

    def matrix(self, q: ArrayLike, *, method: MatrixMethod = "auto", out: Array | None = None) -> Array:
        """G at q, (m, m); see :func:`delassus_matrix`. Fills ``out`` if given."""
        chosen = self._method(method, self._costs.matrix, self._costs.matrix_choice, MATRIX_METHODS)
        if self._large:
            refuse_large(self._rows, self._dtype, 2, _INSTEAD)
        return self._native.matrix(chosen, q, out)  # type: ignore[no-any-return]

    def inverse(self, q: ArrayLike, damping: ArrayLike, *, method: InverseMethod = "auto", out: Array | None = None) -> Array:
        """(G + damping)⁻¹ at q, (m, m); see :func:`damped_delassus_inverse`. Fills ``out`` if given."""
        chosen = self._method(method, self._costs.inverse, self._costs.inverse_choice, INVERSE_METHODS)
        if self._large:
            refuse_large(self._rows, self._dtype, 2, _INSTEAD)
        # an array takes the fast path: the native side checks it
        if type(damping) is not np.ndarray or damping.ndim != 1:
            if are_blocks(damping):
                raise ArgumentError(
                    f"damping: expected a scalar or shape {(self._rows,)}, got blocks. DelassusOperator takes a square block per constraint: "
                    f"set its damping, then solve for the columns of numpy.eye({self._rows})."
                )
            damping = diagonal(damping, "damping", (self._rows,), self._dtype)
        return self._native.inverse(chosen, q, damping, out)  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the work."""
        return self._dtype

    @property
    def compliance(self) -> Array:
        """C, one number per row (a copy)."""
        return self._native.compliance  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, int]:
        """(m, m)."""
        return self._rows, self._rows

    @property
    def nbytes(self) -> int:
        """Memory taken so far [B]."""
        return int(self._native.nbytes)

    def explain(self) -> MethodCosts:
        """Report the expected times of the methods and the choice of ``"auto"``; ``print`` it."""
        return self._costs

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy has memory of its own
        return _rebuild, (self._model, self._constraints, self.compliance, self._dtype)

    def __repr__(self) -> str:
        return (
            f"<ExplicitDelassus of {self._model.name!r}: {self._rows} × {self._rows}, {len(self._constraints)} constraints, {self._dtype}>"
        )


def _rebuild(model: Model, constraints: tuple[Constraint, ...], compliance: Array, dtype: np.dtype[Any]) -> ExplicitDelassus:
    return ExplicitDelassus(model, constraints, compliance=compliance, dtype=dtype)


def _dtype_of(*arrays: Any) -> np.dtype[Any]:
    """Float32 if all arrays are, otherwise float64."""
    return _SINGLE if all(getattr(a, "dtype", None) == _SINGLE for a in arrays) else _DOUBLE


def delassus_matrix(
    model: Model, q: ArrayLike, constraints: Sequence[Constraint | Loop], *, method: MatrixMethod = "auto", out: Array | None = None
) -> Array:
    """Delassus matrix G = J M⁻¹ Jᵀ.

    Args:
        model: the mechanism.
        q: (nq,) configuration; if float32, so are computation and result.
        constraints: constraints of this model, or its loops; their rows in order are the rows of G.
        method: ``"ltl"`` O(n d² + m d² + m² d), ``"columns"`` O(m (n + m)), ``"kjr"`` O(n + m² d), ``"efpa"`` O(n + m d + m²), ``"pv-osim"`` O(n + m² d),
            ``"pv-osimr"`` O(n + m²), ``"oscm"`` O(n + m d + m²); d is the depth of the tree, and in the last five a row counts once per link that it touches.
            ``"auto"`` takes the one expected to be the fastest. They agree to rounding.
        out: array (m, m) to fill.

    Returns:
        (m, m), symmetric, positive semidefinite.

    Raises:
        UnknownNameError: there is no such method; the message lists the available ones.
        ArgumentError: an array has the wrong shape, or constraints belong to another model.

    In a loop use :class:`ExplicitDelassus`, which does the symbolic work once.
    """
    return ExplicitDelassus(model, constraints, dtype=_dtype_of(q)).matrix(q, method=method, out=out)


def damped_delassus_inverse(
    model: Model,
    q: ArrayLike,
    constraints: Sequence[Constraint | Loop],
    damping: ArrayLike,
    *,
    method: InverseMethod = "auto",
    out: Array | None = None,
) -> Array:
    """Inverse (G + damping)⁻¹ of the damped Delassus matrix, G = J M⁻¹ Jᵀ.

    Args:
        model: the mechanism.
        q: (nq,) configuration; if float32, so are computation and result.
        constraints: constraints of this model, or its loops; their rows in order are the rows of G.
        damping: ε added to the diagonal, scalar or (m,), positive.
        method: for any constraints ``"ltl"`` (the matrix, its Cholesky factor and inverse) O(n d² + m d² + m² d + m³), ``"lcaba-osim"`` (blocks of the inverse of M + Jᵀ R J,
            fronts of w links) O(n w² + m² w), ``"lcaba"`` (columns) O(m (n + m)); for rows that act on one link each also ``"caba-osim"``, ``"caba-osimf"`` O(n + m²), ``"pv-osimf"`` O(n + m² d + m³). ``"auto"`` takes the one expected to be the
            fastest. They agree to rounding.
        out: array (m, m) to fill.

    Returns:
        (m, m), symmetric, positive definite.

    Raises:
        UnknownNameError: there is no such method; the message lists the available ones.
        ArgumentError: the method does not support these constraints (the message names those that do), or damping is not positive.

    In a loop use :class:`ExplicitDelassus`, which does the symbolic work once.
    """
    return ExplicitDelassus(model, constraints, dtype=_dtype_of(q)).inverse(q, damping, method=method, out=out)


class DenseDelassus(DelassusOperator):
    """G and (G + damping)⁻¹ as dense matrices with the methods of :class:`DelassusOperator`: O(m²) per product and per solve, O(m³) per new damping.

    ``update`` forms G by the explicit algorithm expected to be the fastest. For few rows and many products; see ``break_even`` of
    :meth:`DelassusOperator.explain`.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops; their rows in order are the rows of G. May be empty.
        damping: ε added to the diagonal for the inverse, scalar or (m,).
        compliance: C, physical compliance on the diagonal of G itself, scalar or (m,).
        dtype: float64 or float32.
    """

    _natives: ClassVar[dict[np.dtype[Any], Any]] = {_DOUBLE: _core.Dense64, _SINGLE: _core.Dense32}
    _matrices: ClassVar[int] = 5
    _takes_blocks: ClassVar[bool] = False


class CholeskyDelassus(DelassusOperator):
    """G as a dense matrix and the Cholesky factor of G + damping with the methods of :class:`DelassusOperator`: O(m²) per product and per solve, O(m³) per new damping.

    ``update`` forms G by the explicit algorithm expected to be the fastest. A new damping takes a third of the time of :class:`DenseDelassus`.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops; their rows in order are the rows of G. May be empty.
        damping: ε added to the diagonal for the inverse, scalar or (m,).
        compliance: C, physical compliance on the diagonal of G itself, scalar or (m,).
        dtype: float64 or float32.
    """

    _natives: ClassVar[dict[np.dtype[Any], Any]] = {_DOUBLE: _core.Cholesky64, _SINGLE: _core.Cholesky32}
    _matrices: ClassVar[int] = 3
    _takes_blocks: ClassVar[bool] = False
