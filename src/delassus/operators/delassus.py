"""The Delassus operator G = J M⁻¹ Jᵀ and its damped inverse, without a matrix, in O(n + m).

The types of ``@`` are repeated in each class: SciPy has none, and type checkers read overloads from the class itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse.linalg import LinearOperator

from .. import _core
from .._door import as_array, count, diagonal, number, refuse_large
from .._html import table
from ..constraints import Constraint, OnConstraints
from ..errors import ArgumentError, StaleError
from ..model import Loop, Model
from . import blocks
from .explanation import Explanation, explained

__all__ = ["BatchDelassusOperator", "DelassusOperator", "LinearMap"]

Array = NDArray[Any]
_NATIVE: dict[np.dtype[Any], Any] = {np.dtype(np.float64): _core.Delassus64, np.dtype(np.float32): _core.Delassus32}
_NATIVE_BATCH: dict[np.dtype[Any], Any] = {np.dtype(np.float64): _core.BatchDelassus64, np.dtype(np.float32): _core.BatchDelassus32}
# Normwise backward errors: what `solve` aims at, and what it guarantees if that exceeds this many roundings per velocity; number of refinements before it takes the slower way.
_GOAL = {np.dtype(np.float64): 2e-13, np.dtype(np.float32): 1e-5}
_LIMIT = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 5e-4}
_ROUNDINGS = 4
_REFINEMENTS = 8


class _Damped(OnConstraints):
    """What one state and a batch share: the constraints, damping and compliance, and whether ``update`` was called."""

    _native: Any
    dtype: np.dtype[Any]
    _rows: tuple[int, ...]  # shape of one number per row
    _takes_blocks: ClassVar[bool] = True

    def _begin(self, damping: ArrayLike | Sequence[ArrayLike] | None, compliance: ArrayLike) -> None:
        """Set what the native operator keeps: compliance, damping, and the accuracy that ``solve`` guarantees by default."""
        self._limit = max(_LIMIT[self.dtype], _ROUNDINGS * self._model.nv * float(np.finfo(self.dtype).eps))
        self._native.set_accuracy(_REFINEMENTS, _GOAL[self.dtype], self._limit)
        self._native.set_compliance(diagonal(compliance, "compliance", self._rows, self.dtype))
        if damping is not None:
            self._damp(damping)

    def _damp(self, value: ArrayLike | Sequence[ArrayLike]) -> None:
        """Set damping given in any of its forms."""
        if not blocks.are_blocks(value):
            self._native.set_damping(diagonal(value, "damping", self._rows, self.dtype))
            return
        if not self._takes_blocks:
            raise ArgumentError(
                f"damping: {type(self).__name__} takes a scalar or shape {self._rows}, got blocks. Use DelassusOperator, which takes a square block per constraint."
            )
        states = self._rows[0] if len(self._rows) > 1 else None
        self._native.set_block_damping(blocks.pack(value, [c.rows for c in self._constraints], states, self.dtype))

    def update(self, q: ArrayLike) -> None:
        """Do the numeric work at q, (nq,) or for a batch (batch_size, nq): kinematics, rows, factors. The only call that reads q."""
        self._native.update(q)
        self._native.factor()

    @property
    def _fresh(self) -> bool:
        return self._native.fresh  # type: ignore[no-any-return]

    @property
    def damping(self) -> Array | tuple[Array, ...] | None:
        """Damping D, added to G for the inverse; setting it refactors what depends on it. Reading returns a copy, or None if it was not set.

        Set a scalar or (m,), a number ε ≥ 0 per row, for a batch also (batch_size, m): reading gives an array with one number per row. Or set blocks, a square one
        per constraint, symmetric or not: a sequence of arrays (r, r) for constraints of r rows each, or one array (k, r, r) if all have r; for a batch
        the arrays may have a leading axis of states, (batch_size, r, r) or (batch_size, k, r, r). Reading gives a tuple of one array per constraint.
        A block with compliance on its diagonal must be invertible. Rows that act on joints only (such as ``JointFriction`` of a ball joint) need a diagonal block.
        """
        numbers: Array | None = self._native.block_damping
        if numbers is not None:
            return blocks.unpack(numbers, [c.rows for c in self._constraints])
        return self._native.damping  # type: ignore[no-any-return]

    @damping.setter
    def damping(self, value: ArrayLike | Sequence[ArrayLike]) -> None:
        self._damp(value)

    @property
    def compliance(self) -> Array:
        """C, one number per row (a copy), part of G itself; set a scalar or an array. Setting it refactors what depends on it."""
        return self._native.compliance  # type: ignore[no-any-return]

    @compliance.setter
    def compliance(self, value: ArrayLike) -> None:
        self._native.set_compliance(diagonal(value, "compliance", self._rows, self.dtype))

    def _columns_of(self, x: ArrayLike, name: str) -> tuple[int, bool]:
        """Columns of an argument, and whether it is a vector, without an axis for them."""
        if not self._fresh:
            raise StaleError("the operator has no numbers yet: call update(q) first.")
        shape = x.shape if isinstance(x, np.ndarray) else as_array(x, name).shape
        extra = len(shape) - len(self._rows)
        if extra not in (0, 1):
            raise ArgumentError(f"{name}: expected shape {self._rows} or {(*self._rows, 'k')}, got {shape}.")
        return (shape[-1], False) if extra else (1, True)

    def _run(self, method: str, x: ArrayLike, out: Array | None) -> Array:
        columns, vector = self._columns_of(x, "x")
        return getattr(self._native, method)(x, columns, vector, out)  # type: ignore[no-any-return]

    def _product(self, x: ArrayLike, out: Array | None = None) -> Array:
        """G x; the usual case takes the fast path, None sends every other case through the careful one."""
        if out is None:
            y: Array | None = self._native.product(x)
            if y is not None:
                return y
        return self._run("apply", x, out)

    def solve(self, y: ArrayLike, *, refine: bool = True, tolerance: float | None = None, out: Array | None = None) -> Array:
        """(G + damping)⁻¹ y, direct.

        Args:
            y: (m,) or (m, k), with a leading batch axis for a batch.
            refine: correct x until its normwise backward error ‖(G + ε) x − y‖ / (‖G + ε‖ ‖x‖ + ‖y‖) is at most the tolerance, for every column and state; with blocks D,
                ‖G + D‖ is the larger of ‖G‖ and ‖C + D‖. The matrix inversion lemma alone loses digits when ε is small; they are recovered by refinement with
                G itself, then by Krylov iterations preconditioned with larger damping, and finally, up to 1,024 rows, by a dense factorization.
                False: the unrefined solution; check it with :meth:`backward_error`.
            tolerance: guaranteed backward error. Default: 1e-12 (float32: 5e-4), and at least 4 roundings per velocity of the mechanism.
            out: array of the shape of y to fill.

        Returns:
            x of the shape of y.

        Raises:
            StaleError: before :meth:`update`.
            ArgumentError: damping plus compliance is not positive in every row, so there is no inverse.
            InaccurateError: no method reached that backward error; the message states the one reached.
        """
        if refine is True and tolerance is None and out is None:
            x: Array | None = self._native.solution(y)
            if x is not None:
                return x
        return self._solve(y, False, refine, tolerance, out)

    def solve_transposed(self, y: ArrayLike, *, refine: bool = True, tolerance: float | None = None, out: Array | None = None) -> Array:
        """(G + damping)⁻ᵀ y, with the arguments and guarantee of :meth:`solve`. It differs from it only for unsymmetric blocks of damping."""
        return self._solve(y, True, refine, tolerance, out)

    def _solve(self, y: ArrayLike, transposed: bool, refine: bool, tolerance: float | None, out: Array | None) -> Array:
        columns, vector = self._columns_of(y, "y")
        self._need_inverse()
        limit = self._limit if tolerance is None else number(tolerance, "tolerance", minimum=0.0)
        refinements = _REFINEMENTS if refine else 0
        return self._native.solve(y, columns, vector, transposed, refinements, _GOAL[self.dtype], limit, out)  # type: ignore[no-any-return]

    def backward_error(self, x: ArrayLike, y: ArrayLike, *, transposed: bool = False) -> Array:
        """Normwise backward error ‖(G + ε) x − y‖ / (‖G + ε‖ ‖x‖ + ‖y‖) of any x as a solution of (G + damping) x = y.

        ‖G‖ is estimated from below, so the error is overestimated rather than underestimated. 1e-15 is rounding; 1 means that x is no solution at all. With blocks D
        of damping, ‖G + D‖ is the larger of ‖G‖ and ‖C + D‖.

        Args:
            x: (m,) or (m, k), with a leading batch axis for a batch.
            y: right-hand side, of the shape of x.
            transposed: test x as a solution of (G + damping)ᵀ x = y.

        Returns:
            One number per column and state: a scalar array for x (m,), else of the shape of x without its axis of rows.
        """
        columns, vector = self._columns_of(x, "x")
        self._need_inverse()
        errors = self._native.backward_error(x, y, columns, vector, bool(transposed))
        return errors[..., 0] if vector else errors  # type: ignore[no-any-return]

    def _need_inverse(self) -> None:
        if not self._native.factored:
            raise ArgumentError(
                "damping: an inverse needs damping or compliance that is positive in every row. Set G.damping, for instance to 1e-6."
            )

    @property
    def nbytes(self) -> int:
        """Memory of factors and rows [B]."""
        return int(self._native.nbytes)


class LinearMap(LinearOperator):  # type: ignore[misc]
    """A SciPy operator made of two functions, forward and adjoint, that check their argument (a vector or columns)."""

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype[Any], forward: Callable[[ArrayLike], Array], adjoint: Callable[[ArrayLike], Array]
    ) -> None:
        LinearOperator.__init__(self, dtype, shape)
        self._forward, self._backward = forward, adjoint

    def matvec(self, x: ArrayLike) -> Array:
        """Product with a vector."""
        return self._forward(x)

    def matmat(self, X: ArrayLike) -> Array:
        """Product with columns."""
        return self._forward(X)

    def rmatvec(self, x: ArrayLike) -> Array:
        """Product of the adjoint with a vector."""
        return self._backward(x)

    def rmatmat(self, X: ArrayLike) -> Array:
        """Product of the adjoint with columns."""
        return self._backward(X)

    _matvec, _matmat, _rmatvec, _rmatmat = matvec, matmat, rmatvec, rmatmat

    def _adjoint(self) -> LinearMap:
        return LinearMap(self.shape[::-1], self.dtype, self._backward, self._forward)

    @overload
    def __matmul__(self, x: DelassusOperator | LinearMap) -> LinearOperator: ...
    @overload
    def __matmul__(self, x: NDArray[Any] | Sequence[float] | Sequence[Sequence[float]]) -> Array: ...
    @overload
    def __matmul__(self, x: LinearOperator) -> LinearOperator: ...

    def __matmul__(self, x: Any) -> Any:
        return self._forward(x) if isinstance(x, (np.ndarray, list, tuple)) else super().__matmul__(x)


class DelassusOperator(_Damped, LinearOperator):  # type: ignore[misc]
    """G = J M⁻¹ Jᵀ + compliance as an operator, and (G + damping)⁻¹, never formed.

    Construction does the symbolic work: order of elimination, fill, memory. :meth:`update` does the numeric work at a configuration; a new
    ``damping`` or ``compliance`` refactors what depends on it. Using it before :meth:`update` raises an error. It is a SciPy ``LinearOperator``; so are
    :attr:`inverse`, :attr:`jacobian` and :attr:`mass_inverse`.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops; their rows in order are the rows of G. May be empty.
        damping: ε added to G for the inverse: scalar, (m,), or a square block per constraint, see :attr:`damping`.
        compliance: C, physical compliance on the diagonal of G itself, scalar or (m,).
        dtype: float64 or float32.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> model = dl.load("cassie")
        >>> G = dl.DelassusOperator(model, model.loops, damping=1e-6)
        >>> G.update(model.keyframes["home"])
        >>> x = np.ones(G.shape[0])
        >>> bool(np.allclose(G.solve(G @ x + 1e-6 * x), x))
        True
    """

    _natives: ClassVar[dict[np.dtype[Any], Any]] = _NATIVE
    _matrices: ClassVar[int] = 0  # number of m × m matrices that it stores

    def __init__(
        self,
        model: Model,
        constraints: Sequence[Constraint | Loop],
        *,
        damping: ArrayLike | Sequence[ArrayLike] | None = None,
        compliance: ArrayLike = 0.0,
        dtype: DTypeLike = np.float64,
    ) -> None:
        precision, native = self._prepare(model, constraints, dtype, self._natives)
        m = sum(c.rows for c in self._constraints)
        refuse_large(m, precision, self._matrices, "DelassusOperator needs no matrix.")
        LinearOperator.__init__(self, precision, (m, m))
        self._rows = (m,)
        self._native = native(model._native, [c._native() for c in self._constraints])
        self._begin(damping, compliance)

    # ---- products -------------------------------------------------------------------------------------------------------

    def matvec(self, x: ArrayLike, out: Array | None = None) -> Array:
        """G x for x (m,), O(n + m). Fills ``out`` if given."""
        return self._product(x, out)

    def matmat(self, X: ArrayLike, out: Array | None = None) -> Array:
        """G X for X (m, k), several columns side by side. Fills ``out`` if given."""
        return self._run("apply", X, out)

    def _matvec(self, x: Array) -> Array:
        return self.matvec(x)

    def _matmat(self, X: Array) -> Array:
        return self.matmat(X)

    def _adjoint(self) -> DelassusOperator:
        return self

    @overload
    def __matmul__(self, x: DelassusOperator | LinearMap) -> LinearOperator: ...
    @overload
    def __matmul__(self, x: NDArray[Any] | Sequence[float] | Sequence[Sequence[float]]) -> Array: ...
    @overload
    def __matmul__(self, x: LinearOperator) -> LinearOperator: ...

    def __matmul__(self, x: Any) -> Any:
        y = self._native.product(x)
        if y is not None:
            return y
        return self._run("apply", x, None) if isinstance(x, (np.ndarray, list, tuple)) else super().__matmul__(x)

    # ---- other operators ------------------------------------------------------------------------------------------------

    @property
    def inverse(self) -> LinearMap:
        """(G + damping)⁻¹ as a SciPy operator, with its adjoint."""
        return LinearMap(self.shape, self.dtype, self.solve, self.solve_transposed)

    @property
    def jacobian(self) -> LinearMap:
        """J (m, nv) as a SciPy operator with its adjoint, O(n + m)."""
        return LinearMap((self.shape[0], self._model.nv), self.dtype, self._verb("jacobian"), self._verb("jacobian_transpose"))

    @property
    def mass_inverse(self) -> LinearMap:
        """M⁻¹ (nv, nv) as a SciPy operator, O(n)."""
        run = self._verb("mass_inverse")
        return LinearMap((self._model.nv, self._model.nv), self.dtype, run, run)

    def _verb(self, name: str) -> Callable[[ArrayLike], Array]:
        """Return a method of the native operator that takes a vector or columns."""
        native = getattr(self._native, name)

        def run(x: ArrayLike) -> Array:
            columns, vector = self._columns_of(x, "x")
            return native(x, columns, vector, None)  # type: ignore[no-any-return]

        return run

    def to_matrix(self) -> Array:
        """G as a dense array (m, m): one product with the identity.

        Raises:
            MatrixSizeError: it would not fit into memory.
        """
        refuse_large(self.shape[0], self.dtype, 2, "Products G @ x and G.solve(y) need no matrix.")
        return self._run("apply", np.eye(self.shape[0], dtype=self.dtype), None)

    # ---- inspection -----------------------------------------------------------------------------------------------------

    @property
    def order(self) -> tuple[str, ...]:
        """Joints in elimination order."""
        return tuple(self._model.joint_names[i] for i in self._native.order)

    @property
    def fill(self) -> int:
        """Number of couplings between links that the elimination stores: those of the constraints and fill-in."""
        return len(self._native.couplings)

    def explain(self) -> Explanation:
        """Report the elimination and its cost: order, neighbours, fill-in, operations and memory of every phase; ``print`` it. Needs no ``update``."""
        return explained(self._model, self._constraints, self.dtype, self._native)

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        state = "damped inverse ready" if self._native.factored else "updated" if self._fresh else "no numbers yet: call update(q)"
        kinds = Counter(type(c).__name__ for c in self._constraints)
        rows: list[tuple[str, Any]] = [
            ("model", self._model.name), ("rows", self.shape[0]), ("constraints", ", ".join(f"{n} {kind}" for kind, n in kinds.items()) or "none"), ("couplings", self.fill),
            ("memory", f"{self.nbytes / 1e3:.4g} kB, a matrix {8e-3 * self.shape[0] ** 2:.4g} kB"), ("precision", self.dtype), ("state", state),
        ]  # fmt: skip
        return table(type(self).__name__, rows)

    def __repr__(self) -> str:
        state = "damped inverse ready" if self._native.factored else "updated" if self._fresh else "no numbers yet"
        m = self.shape[0]
        return f"<{type(self).__name__} of {self._model.name!r}: {m} × {m}, {len(self._constraints)} constraints, {self.fill} couplings, {self.dtype}, {state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._model, self._constraints, self.damping, self.compliance, self.dtype)


def _rebuild(
    kind: type[DelassusOperator],
    model: Model,
    constraints: tuple[Constraint, ...],
    damping: Any,
    compliance: Array,
    dtype: np.dtype[Any],
) -> DelassusOperator:
    """Rebuild an unpickled or copied operator; it has no numbers until ``update``."""
    return kind(model, constraints, damping=damping, compliance=compliance, dtype=dtype)


class BatchDelassusOperator(_Damped):
    """The operators G of many states of one mechanism, processed as many at a time as a vector register holds.

    It has the methods of :class:`DelassusOperator`; arrays have a leading batch axis. Results equal those of single states to rounding.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops, the same for all states. May be empty.
        batch_size: number of states.
        damping: ε, scalar, (m,) or (batch_size, m), or a square block per constraint, see :attr:`damping`.
        compliance: C, scalar, (m,) or (batch_size, m).
        dtype: float64 or float32.
        threads: number of threads, including the caller.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> model = dl.load("cassie")
        >>> B = dl.BatchDelassusOperator(model, model.loops, 10, damping=1e-6)
        >>> B.update(np.stack([model.random(k) for k in range(10)]))
        >>> B.solve(np.ones((10, 12))).shape
        (10, 12)
    """

    def __init__(
        self,
        model: Model,
        constraints: Sequence[Constraint | Loop],
        batch_size: int,
        *,
        damping: ArrayLike | Sequence[ArrayLike] | None = None,
        compliance: ArrayLike = 0.0,
        dtype: DTypeLike = np.float64,
        threads: int = 1,
    ) -> None:
        self.dtype, native = self._prepare(model, constraints, dtype, _NATIVE_BATCH)
        self.batch_size = count(batch_size, "batch_size")
        self._threads = count(threads, "threads")
        m = sum(c.rows for c in self._constraints)
        self._rows = (self.batch_size, m)
        self._native = native(model._native, [c._native() for c in self._constraints], self.batch_size, self._threads)
        self._begin(damping, compliance)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(batch_size, m, m)."""
        return (*self._rows, self._rows[1])  # type: ignore[return-value]

    def matvec(self, x: ArrayLike, out: Array | None = None) -> Array:
        """G x of every state for x (batch_size, m) or (batch_size, m, k). Fills ``out`` if given."""
        return self._product(x, out)

    def __matmul__(self, x: ArrayLike) -> Array:
        return self._product(x)

    def to_matrix(self) -> Array:
        """G of every state as a dense array (batch_size, m, m)."""
        m = self._rows[1]
        refuse_large(m, self.dtype, 2 * self.batch_size, "Products G @ x and G.solve(y) need no matrix.")
        return self._run("apply", np.ascontiguousarray(np.broadcast_to(np.eye(m, dtype=self.dtype), self.shape)), None)

    def explain(self) -> Explanation:
        """Report the elimination of one state and its cost, see :meth:`DelassusOperator.explain`."""
        return DelassusOperator(self._model, self._constraints, dtype=self.dtype).explain()

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        state = "damped inverse ready" if self._native.factored else "updated" if self._fresh else "no numbers yet: call update(q)"
        rows: list[tuple[str, Any]] = [
            ("model", self._model.name), ("states", self.batch_size), ("rows", self._rows[1]), ("constraints", len(self._constraints)), ("precision", self.dtype), ("state", state),
        ]  # fmt: skip
        return table(type(self).__name__, rows)

    def __repr__(self) -> str:
        state = "damped inverse ready" if self._native.factored else "updated" if self._fresh else "no numbers yet"
        m = self._rows[1]
        return f"<BatchDelassusOperator of {self._model.name!r}: {self.batch_size} states, {m} × {m}, {self.dtype}, {state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        made = (self._model, self._constraints, self.batch_size, self.damping, self.compliance, self.dtype, self._threads)
        return _rebuild_batch, made


def _rebuild_batch(
    model: Model, constraints: Any, batch_size: int, damping: Any, compliance: Any, dtype: Any, threads: int
) -> BatchDelassusOperator:
    """Rebuild an unpickled or copied operator; it has no numbers until ``update``."""
    return BatchDelassusOperator(model, constraints, batch_size, damping=damping, compliance=compliance, dtype=dtype, threads=threads)
