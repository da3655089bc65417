"""Proximal iterations on the operator: G λ = b with rows that may repeat or contradict each other.

    λ ← λ + (G + ε)⁻¹ (b − G λ),   λ = 0 at first

An eigenvector of G with eigenvalue σ loses the factor ε / (σ + ε) of its residual in each iteration, so a few are enough for any ε. If b is in the range of
G, λ tends to the minimum-norm solution, G⁺ b. If it is not, the part of b orthogonal to the range remains as the residual: the least-squares solution ("Constrained
Articulated Body Dynamics Algorithms", section II-C and eq. 14), and λ is recomputed without it, G⁺ b again. Where ε differs from row to row, the norm is
√(Σ ε λ²).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..constraints import Constraint
from ..errors import ArgumentError, ArgumentTypeError
from ..model import Loop, Model
from ..model.model import as_model
from ..operators import DelassusOperator

__all__ = ["Proximal", "ProximalStatus", "default_damping", "largest", "norm_of", "operator_of", "prepare", "proximal", "split"]

Array = NDArray[Any]
ProximalStatus = Literal["solved", "infeasible_least_squares", "iteration_limit"]
# default ε / ‖G‖, and its minimum: three iterations solve rows with σ > 1e-4 ‖G‖, and rounding of b, 1e-16, costs redundant rows 1e-8 of their forces.
_DAMPING = 1e-8
_LEAST_DAMPING = 1e-13
_EPS = float(np.finfo(np.float64).eps)
# A residual that an iteration changes by less than this fraction no longer decreases.
_STALLED = 1e-9
# Rows that are nearly dependent, in J to √rounding, are so in G to rounding: a residual below this fraction of b is due to them, not to a contradiction.
_CONSISTENT = 1e-7


def operator_of(model: Model, constraints: Sequence[Constraint | Loop] | DelassusOperator) -> DelassusOperator:
    """Make the operator of some constraints, or check one given instead."""
    if not isinstance(constraints, DelassusOperator):
        return DelassusOperator(model, constraints)
    if constraints.model is not as_model(model) and constraints.model != model:
        raise ArgumentError(
            f"constraints: expected an operator of model {model.name!r}, got one of {constraints.model.name!r}. Make a new one with this model."
        )
    if constraints.dtype != np.float64:
        raise ArgumentTypeError(f"constraints: expected an operator in float64, got {constraints.dtype}. Make it with dtype=float.")
    return constraints


def norm_of(G: DelassusOperator) -> float:
    """Lower bound of ‖G‖, accurate to a few per cent: power iterations from the same start each time."""
    x = np.random.default_rng(0).standard_normal(G.shape[0])
    size = 0.0
    for _ in range(6):
        length = np.linalg.norm(x)
        if length == 0:
            return 0.0
        x = G @ (x / length)
        size = max(size, float(np.linalg.norm(x)))
    return size


def default_damping(norm: float) -> float:
    """ε that suits an operator of this norm."""
    return _DAMPING * norm if norm > 0 else 1.0


def prepare(G: DelassusOperator, damping: ArrayLike | None) -> tuple[float, bool]:
    """Make sure that an updated operator has an inverse: with the given damping, its own, or a suitable one. Returns ‖G‖, and whether the damping is a default."""
    norm = norm_of(G)
    if damping is not None:
        G.damping = damping
    elif isinstance(G.damping, tuple):
        raise ArgumentError(
            "G: expected an operator with damping of a number per row, got one with blocks. Give damping, or set G.damping to a number."
        )
    elif G.damping is None or bool((G.damping + G.compliance <= 0).any()):
        G.damping = default_damping(norm)
        return norm, True
    return norm, False


@dataclass(frozen=True, eq=False)
class Proximal:
    """λ (m,), the status, and the largest residual before each iteration and after the last."""

    forces: Array
    status: ProximalStatus
    history: Array

    @property
    def iterations(self) -> int:
        """Number of iterations, including those that recompute λ."""
        return len(self.history) - 1


def proximal(
    G: DelassusOperator, b: Array, norm: float, tolerance: float, max_iterations: int, *, rounding: float = 0.0, adapt: bool = True
) -> Proximal:
    """Solve G λ = b by proximal iterations.

    Args:
        G: operator, updated and with damping.
        b: (m,) right-hand side.
        norm: ‖G‖, roughly.
        tolerance: tolerance for the largest residual, relative to the largest |b|; 1e-7 where rows are nearly dependent.
        max_iterations: maximum number of proximal iterations.
        rounding: rounding error of the numbers of b; anything below counts as zero.
        adapt: reduce the damping while iterations are slow, as happens for nearly dependent rows or rows of very different scale.
    """
    first = damping = G.damping if isinstance(G.damping, np.ndarray) else np.zeros_like(b)
    forces, residual = np.zeros_like(b), b.copy()
    history, last = [largest(b)], np.inf
    goal, given = max(tolerance * largest(b), rounding), b
    status: ProximalStatus = "iteration_limit"
    outcome: ProximalStatus = "solved"
    while True:
        # rounding error of G λ
        noise = 4 * _EPS * norm * float(np.linalg.norm(forces))
        if history[-1] <= max(goal, noise):
            status = outcome
            break
        if len(history) > max_iterations:
            break
        step = forces + G.solve(residual)
        new_residual = b - G @ step
        noise = 4 * _EPS * norm * float(np.linalg.norm(step))
        # what the iteration removed: a part within the range of G, whatever is orthogonal to it
        gone = float(np.linalg.norm(residual - new_residual))
        if gone <= max(_STALLED * float(np.linalg.norm(residual)), noise):
            if b is not given:
                # recomputed as accurately as possible
                status = outcome
                break
            # the residual is orthogonal to the range of G: without it there is a solution
            if largest(new_residual) > _CONSISTENT * largest(b):
                outcome = "infeasible_least_squares"
            b, forces = b - new_residual, np.zeros_like(b)
            residual, last, damping = b.copy(), np.inf, first
            G.damping = damping
            history.append(largest(residual))
            continue
        forces, residual = step, new_residual
        history.append(largest(new_residual))
        if adapt and gone > 0.1 * last and gone > 100 * noise and float(damping.min()) > _LEAST_DAMPING * norm:
            damping = damping / 100
            G.damping = damping
            gone = np.inf
        last = gone
    if damping is not first:
        G.damping = first
    return Proximal(forces, status, np.array(history))


def split(constraints: Sequence[Constraint], rows: Array) -> tuple[Array, ...]:
    """Split values of all rows into one array per constraint."""
    ends = np.cumsum([c.rows for c in constraints])[:-1]
    return tuple(np.split(rows, ends)) if constraints else ()


def largest(x: Array) -> float:
    """Largest magnitude; zero for an empty array."""
    return float(np.abs(x).max(initial=0.0))
