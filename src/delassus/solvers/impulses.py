"""Impacts: velocities jump by impulses of the constraints, M (v⁺ − v⁻) = Jᵀ p with J v⁺ = −e J v⁻."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import as_array, count, finite, number, numbers
from .._html import result_table
from ..constraints import Constraint, JointLimit, PointContact
from ..errors import ArgumentError
from ..model import Loop, Model
from ..operators import DelassusOperator
from ..state import kinetic_energy
from .proximal import ProximalStatus, largest, operator_of, prepare, proximal, split

__all__ = ["ImpactResult", "impact"]

Array = NDArray[Any]


@dataclass(frozen=True)
class ImpactResiduals:
    """Residuals of an impact.

    Attributes:
        primal: largest |J v⁺ + C p + e J v⁻| [m/s or rad/s].
        least_squares: largest |G (J v⁺ + C p + e J v⁻)|, zero where the primal one is minimal.
    """

    primal: float
    least_squares: float


@dataclass(frozen=True, eq=False)
class ImpactResult:
    """Result of an impact, see :func:`impact`.

    Attributes:
        velocity: (nv,) v⁺ after the impact.
        impulses: (m,) p [N s or N m s], axes of the rows; minimum norm where rows are redundant.
        status: "solved"; "infeasible_least_squares": rows contradict each other, J v⁺ is the least-squares solution; "iteration_limit".
        iterations: number of proximal iterations.
        residuals: ``primal`` and ``least_squares``.
        energy_change: ½ v⁺ᵀ M v⁺ − ½ v⁻ᵀ M v⁻ [J].
        constraint_impulses: the impulses, an array per constraint.
        history: (iterations + 1,) largest residual before each iteration and after the last.
        advice: what to do about a status that is not "solved", or about a gain of energy; else empty.
    """

    velocity: Array
    impulses: Array
    status: ProximalStatus
    iterations: int
    residuals: ImpactResiduals
    energy_change: float
    constraint_impulses: tuple[Array, ...]
    history: Array
    advice: str

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


_ADVICE = {
    "solved": "",
    "infeasible_least_squares": "No motion has the requested velocities of the rows; see residuals. Look for repeated rows with different restitution.",
    "iteration_limit": "Not solved; see residuals. Give less damping or more max_iterations.",
}


def _restitution(constraints: Sequence[Constraint], restitution: ArrayLike) -> Array:
    """Coefficient of restitution of each row."""
    if np.ndim(restitution) == 0:
        e = number(restitution, "restitution", minimum=0.0)
        each = [e * isinstance(c, PointContact | JointLimit) for c in constraints]
    else:
        array = finite(as_array(restitution, "restitution"), "restitution")
        if array.shape != (len(constraints),):
            raise ArgumentError(f"restitution: expected a number or one per constraint, ({len(constraints)},), got shape {array.shape}.")
        each = array.tolist()
    for e in each:
        if not 0 <= e <= 1:
            raise ArgumentError(f"restitution: expected numbers from 0 to 1, got {e:g}.")
    rows = [[e] + [0.0] * (c.rows - 1) if isinstance(c, PointContact) else [e] * c.rows for c, e in zip(constraints, each, strict=True)]
    return np.concatenate([np.zeros(0), *rows])


def impact(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    constraints: Sequence[Constraint | Loop] | DelassusOperator,
    *,
    restitution: ArrayLike = 0.0,
    damping: ArrayLike | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 30,
) -> ImpactResult:
    """Velocity after a simultaneous impact on all constraints: v⁺ = v + M⁻¹ Jᵀ p with J v⁺ = −e J v (Newton's law), by proximal iterations on G = J M⁻¹ Jᵀ.

    Bilateral: impulses may pull. For contacts that may open or slide use a contact solver. Redundant rows are allowed. With one e for all rows the kinetic energy
    cannot grow; with several it can, a known property of Newton's law, and ``advice`` says so.

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        v: (nv,) velocity before the impact.
        constraints: constraints of this model, or its loops; or an operator of them to reuse: it is updated at q, and its damping is kept unless it has none or
            ``damping`` is given. Its compliance softens the rows: J v⁺ + C p = −e J v.
        restitution: e from 0 to 1. A number applies to contact normals and joint limits; all other rows, including loops, have e = 0. An array has one
            value per constraint, for the normal of a contact and for all rows of any other constraint.
        damping: ε of the iterations, scalar or (m,); default: 1e-8 ‖G‖, reduced where they converge slowly. The velocity does not depend on it.
        tolerance: tolerance for the residual, relative to the largest velocity jump; 1e-7 where rows are nearly dependent.
        max_iterations: maximum number of proximal iterations.

    Returns:
        velocity after the impact, impulses, status and residuals.

    Examples:
        >>> import delassus as dl
        >>> model = dl.scenes.box_stack(1)
        >>> q, v = model.neutral(), [0, 0, -1, 0, 0, 0]
        >>> corners = [dl.PointContact(model, 1, point=(x, y, -0.1)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
        >>> float(dl.impact(model, q, v, corners, restitution=0.5).velocity[2].round(9))
        0.5
    """
    G = operator_of(model, constraints)
    before = numbers(v, "v", (model.nv,))
    e = _restitution(G.constraints, restitution)
    tolerance, limit = number(tolerance, "tolerance", minimum=0.0), count(max_iterations, "max_iterations")
    G.update(q)
    norm, adapt = prepare(G, damping)

    # J v⁺ + C p = −e J v  ⇔  G p = −(1 + e) J v
    rows = G.jacobian @ before
    solved = proximal(G, -(1 + e) * rows, norm, tolerance, limit, rounding=1e-14 * largest(before), adapt=adapt)
    p = solved.forces
    jump = G.jacobian.H @ p
    after = before + G.mass_inverse @ jump
    missed = G.jacobian @ after + G.compliance * p + e * rows
    # ½ (v⁺ + v⁻)ᵀ Jᵀ p
    energy = 0.5 * float((before + after) @ jump)
    advice = _ADVICE[solved.status]
    if energy > 1e-8 * kinetic_energy(model, q, before) and solved.status == "solved":
        advice = "Kinetic energy grew: coupled rows have different restitution. Use one restitution for all rows that are coupled."
    return ImpactResult(
        velocity=after,
        impulses=p,
        status=solved.status,
        iterations=solved.iterations,
        residuals=ImpactResiduals(largest(missed), largest(G @ missed)),
        energy_change=energy,
        constraint_impulses=split(G.constraints, p),
        history=solved.history,
        advice=advice,
    )
