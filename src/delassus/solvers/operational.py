"""Operational space on the operator: Λ = (G + ε)⁻¹, J̄ = M⁻¹ Jᵀ Λ and N = 1 − J̄ J, never formed."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from .._door import count
from ..errors import ArgumentTypeError
from ..operators import DelassusOperator

__all__ = ["OperationalSpace"]

Array = NDArray[Any]


class OperationalSpace:
    """Inertia, dynamically consistent pseudo-inverse and null space of the rows of an operator, as SciPy operators, O(n + m) a column.

    They read the operator when they are used: after ``G.update`` and after a new ``G.damping`` they are the new ones, and what is stale raises.

    Damping bounds them at singularities: with σ an eigenvalue of G, a direction is taken by σ / (σ + ε) and left by ε / (σ + ε). More proximal
    iterations sharpen this to 1 − (ε / (σ + ε))^iterations without more damping: what moves is taken, what does not stays bounded by iterations / ε.

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

    @property
    def operator(self) -> DelassusOperator:
        """The operator G it stands on."""
        return self._G

    def _forces(self, y: Array) -> Array:
        """Λ y: λ ← λ + (G + ε)⁻¹ (y − G λ)."""
        G = self._G
        x = G.solve(y)
        for _ in range(self._iterations - 1):
            x = x + G.solve(y - G @ x)
        return x

    @property
    def inertia(self) -> LinearOperator:
        """Λ (m, m), symmetric: forces on the rows for accelerations of the rows."""
        run = self._forces
        return LinearOperator(self._G.shape, matvec=run, rmatvec=run, matmat=run, rmatmat=run, dtype=self._G.dtype)

    @property
    def pseudo_inverse(self) -> LinearOperator:
        """J̄ = M⁻¹ Jᵀ Λ (nv, m): velocities of least kinetic energy for velocities of the rows; adjoint: forces on the rows for joint forces."""
        J, Minv, run = self._G.jacobian, self._G.mass_inverse, self._forces

        def forward(y: Array) -> Array:
            return Minv @ (J.H @ run(y))  # type: ignore[no-any-return]

        def adjoint(tau: Array) -> Array:
            return run(J @ (Minv @ tau))

        shape = (J.shape[1], J.shape[0])
        return LinearOperator(shape, matvec=forward, matmat=forward, rmatvec=adjoint, rmatmat=adjoint, dtype=self._G.dtype)

    @property
    def null_space(self) -> LinearOperator:
        """N = 1 − J̄ J (nv, nv): the part of a velocity that the rows do not feel; adjoint Nᵀ: the part of joint forces that does not accelerate them."""
        J, Minv, run = self._G.jacobian, self._G.mass_inverse, self._forces

        def forward(v: Array) -> Array:
            return v - Minv @ (J.H @ run(J @ v))  # type: ignore[no-any-return]

        def adjoint(tau: Array) -> Array:
            return tau - J.H @ run(J @ (Minv @ tau))  # type: ignore[no-any-return]

        n = J.shape[1]
        return LinearOperator((n, n), matvec=forward, matmat=forward, rmatvec=adjoint, rmatmat=adjoint, dtype=self._G.dtype)

    def __repr__(self) -> str:
        return f"<OperationalSpace of {self._G.model.name!r}: {self._G.shape[0]} rows, {self._iterations} iterations>"
