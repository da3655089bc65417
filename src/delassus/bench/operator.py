"""The matrix-free operator compared with a dense one, in one pose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from ..constraints import Constraint, PointContact
from ..dynamics import forward_dynamics
from ..model import Model
from ..operators import DelassusOperator, ExplicitDelassus
from ..solvers import solve_contacts
from .clock import best, one_thread
from .definition import contact_residual, relative

__all__ = ["Costs", "operator_costs"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Costs:
    """The matrix-free operator compared with a dense G, by the most suitable explicit algorithm, with LAPACK's Cholesky factor; in one pose, on one thread.

    Attributes:
        rows: number of rows of all constraints; contacts: number of contacts among them.
        update, product, solve: times (matrix-free, explicit) [µs]: new numbers and factors at q; G x; (G + ρ)⁻¹ y.
        nbytes: memory of the two [B].
        method: method that computes the explicit matrix.
        product_error, solve_error: largest difference of the two, relative to the largest number.
        problem: time of a whole contact problem, matrix-free [µs].
        iterations, status: iterations and status of that problem.
        residual: its natural residual, recomputed from the dense matrix [m/s].
    """

    rows: int
    contacts: int
    update: tuple[float, float]
    product: tuple[float, float]
    solve: tuple[float, float]
    nbytes: tuple[int, int]
    method: str
    product_error: float
    solve_error: float
    problem: float
    iterations: int
    status: str
    residual: float

    @property
    def agree(self) -> bool:
        """Whether both give the same numbers, up to rounding."""
        return self.product_error < 1e-9 and self.solve_error < 1e-6


def operator_costs(
    model: Model, q: ArrayLike, v: ArrayLike, constraints: list[Constraint], timestep: float, *, budget: float = 0.2
) -> Costs:
    """Time the matrix-free operator and a dense one, and check them against each other.

    Args:
        model: the mechanism.
        q, v: its state.
        constraints: its constraints, at least one.
        timestep: time step dt of the contact problem, whose rows have velocities J (v + dt M⁻¹ (τ − h)) [s].
        budget: time for each measurement [s].
    """
    G, explicit = DelassusOperator(model, constraints), ExplicitDelassus(model, constraints)
    rows = G.shape[0]
    G.update(q)
    A = explicit.matrix(q)
    G.damping = rho = 1e-3 * float(A.diagonal().mean())
    damped, x = A.copy(), np.random.default_rng(0).standard_normal(rows)

    def factor() -> Any:
        explicit.matrix(q, out=A)
        damped[:] = A
        damped[np.diag_indices(rows)] += rho
        return cho_factor(damped, lower=True, check_finite=False)

    L = factor()
    with one_thread():
        update = best(lambda: G.update(q), budget), best(factor, budget)
        product = best(lambda: G @ x, budget), best(lambda: A @ x, budget)
        solve = best(lambda: G.solve(x), budget), best(lambda: cho_solve(L, x, check_finite=False), budget)
    free = np.asarray(v, dtype=float) + timestep * forward_dynamics(model, q, v, np.zeros(model.nv))
    g = G.jacobian @ free
    problem = best(lambda: solve_contacts(G, g, timestep=timestep), budget)
    result = solve_contacts(G, g, timestep=timestep)
    return Costs(
        rows, sum(isinstance(c, PointContact) for c in constraints), update, product, solve, (G.nbytes, A.nbytes + L[0].nbytes),
        explicit.explain().matrix_choice, relative(G @ x, A @ x), relative(G.solve(x), cho_solve(L, x)), problem, result.iterations, result.status,
        contact_residual(A, g, result.forces, constraints, timestep),
    )  # fmt: skip
