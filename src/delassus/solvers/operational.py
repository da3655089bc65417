"""Operational space on the operator: Λ = (G + ε)⁻¹, J̄ = M⁻¹ Jᵀ Λ and N = 1 − J̄ J, formed only where that is cheaper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import count
from .._html import table
from ..errors import ArgumentTypeError
from ..operators import DelassusOperator
from ..operators.delassus import LinearMap

__all__ = ["OperationalSpace"]

Array = NDArray[Any]
_NATIVE: dict[np.dtype[Any], Any] = {np.dtype(np.float64): _core.OperationalSpace64, np.dtype(np.float32): _core.OperationalSpace32}


class OperationalSpace:
    """Inertia, dynamically consistent pseudo-inverse and null space of the rows of an operator, as SciPy operators, O(n + m) per column.

    They read the operator when they are used, so ``G.update`` and a new ``G.damping`` take effect immediately. Where a matrix is small and used for many columns at one
    configuration, it is formed.

    Damping bounds them at singularities: an eigenvector of G with eigenvalue σ is controlled by the fraction σ / (σ + ε). More proximal
    iterations raise this to 1 − (ε / (σ + ε))^iterations; Λ stays bounded by iterations / ε.

    Args:
        G: operator of the task or constraint rows, damped.
        iterations: proximal iterations; 1 is plain damping, Λ = ``G.inverse``.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> model = dl.load("iiwa")
        >>> G = dl.DelassusOperator(model, [dl.Weld(model, model.nbody - 1)], damping=1e-9)
        >>> G.update(model.random(1))
        >>> space = dl.OperationalSpace(G, iterations=3)
        >>> posture = space.null_space @ np.ones(model.nv)
        >>> bool(np.abs(G.jacobian @ posture).max() < 1e-9)
        True
    """

    def __init__(self, G: DelassusOperator, *, iterations: int = 1) -> None:
        if not isinstance(G, DelassusOperator):
            raise ArgumentTypeError(f"G: expected a delassus.DelassusOperator, got {type(G).__name__}. Make one of the model and its rows.")
        self._G = G
        self._iterations = count(iterations, "iterations")
        native = _NATIVE[G.dtype](G._native, self._iterations)
        m, n = G.shape[0], G.model.nv
        inertia = self._checked(native.inertia)
        self._inertia = LinearMap((m, m), G.dtype, inertia, inertia)
        bar = self._checked(native.pseudo_inverse), self._checked(native.pseudo_inverse_transpose)
        self._pseudo_inverse = LinearMap((n, m), G.dtype, *bar)
        null = self._checked(native.null_space), self._checked(native.null_space_transpose)
        self._null_space = LinearMap((n, n), G.dtype, *null)

    def _checked(self, native: Any) -> Any:
        """Make a native map take a vector or columns; without an inverse it returns None."""
        G = self._G

        def run(x: ArrayLike) -> Array:
            columns, vector = (1, True) if type(x) is np.ndarray and x.ndim == 1 else G._columns_of(x, "x")
            y: Array | None = native(x, columns, vector)
            if y is None:
                G._columns_of(x, "x")
                G._need_inverse()
            return y  # type: ignore[return-value]

        return run

    @property
    def operator(self) -> DelassusOperator:
        """The underlying operator G."""
        return self._G

    @property
    def inertia(self) -> LinearMap:
        """Λ (m, m), symmetric: maps accelerations of the rows to forces on them."""
        return self._inertia

    @property
    def pseudo_inverse(self) -> LinearMap:
        """J̄ = M⁻¹ Jᵀ Λ (nv, m): minimum-energy joint velocities for given velocities of the rows; the adjoint maps joint forces to forces on the rows."""
        return self._pseudo_inverse

    @property
    def null_space(self) -> LinearMap:
        """N = 1 − J̄ J (nv, nv): the part of a velocity that does not move the rows; the adjoint Nᵀ keeps the part of joint forces that does not accelerate them."""
        return self._null_space

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._G, self._iterations)

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return table(
            f"OperationalSpace of {self._G.model.name}",
            [("rows", self._G.shape[0]), ("nv", self._G.model.nv), ("iterations", self._iterations)],
        )

    def __repr__(self) -> str:
        return f"<OperationalSpace of {self._G.model.name!r}: {self._G.shape[0]} rows, {self._iterations} iterations>"


def _rebuild(G: DelassusOperator, iterations: int) -> OperationalSpace:
    return OperationalSpace(G, iterations=iterations)
