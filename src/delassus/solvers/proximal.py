"""Proximal iterations on the operator: G λ = b where rows may repeat or contradict each other.

    λ ← λ + (G + ε)⁻¹ (b − G λ),   λ = 0 at first

An eigenvector of G with eigenvalue σ loses the factor ε / (σ + ε) of its residual in each iteration, so a few are enough whatever ε is. If b is in the range of
G, λ tends to the solution of least norm, G⁺ b. If it is not, the part of b across the range stays as residual: the least-squares answer ("Constrained
Articulated Body Dynamics Algorithms", section II-C and eq. 14), and λ is found anew without it, G⁺ b again. Where ε differs from row to row, the norm is
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
# ε / ‖G‖ where none is given, and how little it may become: three iterations solve rows with σ > 1e-4 ‖G‖, and rounding of b, 1e-16, costs redundant rows 1e-8 of their forces.
_DAMPING = 1e-8
_LEAST_DAMPING = 1e-13
_EPS = float(np.finfo(np.float64).eps)
# A residual that an iteration changes by less than this fraction no longer decreases.
_STALLED = 1e-9
# Rows that nearly depend on each other, J to √rounding, do so in G to rounding: a residual below this part of b is theirs and contradicts nothing.
_CONSISTENT = 1e-7


def operator_of(model: Model, constraints: Sequence[Constraint | Loop] | DelassusOperator) -> DelassusOperator:
    """Make the operator of some constraints, or check one that is given in their place."""
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
    """‖G‖ from below, some per cent exact: power iterations from numbers that are the same each time."""
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
    """See that an updated operator has an inverse: with the damping given, its own, or one that suits it. Returns ‖G‖, and whether nobody chose the damping."""
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
    """λ (m,), what came of it, and the largest residual before each iteration and after the last."""

    forces: Array
    status: ProximalStatus
    history: Array

    @property
    def iterations(self) -> int:
        """How many, those that find λ anew included."""
        return len(self.history) - 1


def proximal(
    G: DelassusOperator, b: Array, norm: float, tolerance: float, max_iterations: int, *, rounding: float = 0.0, adapt: bool = True
) -> Proximal:
    """Solve G λ = b by proximal iterations.

    Args:
        G: updated, with damping.
        b: (m,).
        norm: ‖G‖, roughly.
        tolerance: of the largest residual, relative to the largest number of b; 1e-7 where rows nearly depend on each other.
        max_iterations: maximum number of proximal iterations.
        rounding: of the numbers of b; what is less counts as zero.
        adapt: lessen the damping while iterations are slow, as they are where rows are nearly dependent or of very different size.
    """
    first = damping = G.damping if isinstance(G.damping, np.ndarray) else np.zeros_like(b)
    forces, residual = np.zeros_like(b), b.copy()
    history, last = [largest(b)], np.inf
    goal, given = max(tolerance * largest(b), rounding), b
    status: ProximalStatus = "iteration_limit"
    outcome: ProximalStatus = "solved"
    while True:
        # what rounding leaves of G λ
        noise = 4 * _EPS * norm * float(np.linalg.norm(forces))
        if history[-1] <= max(goal, noise):
            status = outcome
            break
        if len(history) > max_iterations:
            break
        step = forces + G.solve(residual)
        new_residual = b - G @ step
        noise = 4 * _EPS * norm * float(np.linalg.norm(step))
        # what the iteration took away: of the range of G, whatever stands across it
        gone = float(np.linalg.norm(residual - new_residual))
        if gone <= max(_STALLED * float(np.linalg.norm(residual)), noise):
            if b is not given:
                # it was found anew as far as it can be
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
    """Largest size of some numbers; zero of none."""
    return float(np.abs(x).max(initial=0.0))
