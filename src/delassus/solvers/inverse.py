"""Inverse dynamics with constraints: M ν̇ + c = τ + Jᵀ λ + Σ Jᵀ f, where τ is zero for unactuated velocities.

With h = M ν̇ + c − Σ Jᵀ f of the tree (Newton–Euler) and U the unactuated velocities,

    (Jᵀ)_U λ = h_U        small and dense, by singular values: minimum-norm λ, or least squares where there is no solution
    τ = h − Jᵀ λ          in the actuated velocities
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import number, numbers
from .._html import result_table
from ..constraints import Constraint, ConstraintRows
from ..dynamics import bias_forces, inverse_dynamics
from ..errors import ArgumentError, ArgumentTypeError
from ..model import Loop, Model
from ..operators import DelassusOperator
from ..operators.delassus import LinearMap
from ..state import kinetic_energy
from ..types import InverseDynamicsStatus
from .proximal import largest, norm_of, operator_of, split

__all__ = ["InverseDynamicsResult", "constrained_inverse_dynamics"]

Array = NDArray[Any]
# Ratio of torques to the forces of the motion above which the mechanism counts as singular.
_AMPLIFIED = 1e5


@dataclass(frozen=True)
class InverseDynamicsResiduals:
    """Residuals of inverse dynamics.

    Attributes:
        primal: largest |J ν̇ + γ| [m/s² or rad/s²], violation of the constraints by the acceleration.
        unactuated: largest |h − Jᵀ λ| over unactuated velocities [N m or N], the generalized force missing there.
    """

    primal: float
    unactuated: float


@dataclass(frozen=True, eq=False)
class InverseDynamicsResult:
    """Torques and forces of a motion, see :func:`constrained_inverse_dynamics`.

    Attributes:
        torques: (nv,) τ [N m or N], zero for unactuated velocities.
        forces: (m,) λ [N or N m], axes of the rows.
        status: "solved"; "singular": near a singular position the motion needs torques beyond 1e5 times its forces, or none
            suffice; bounded ones are returned, see ``residuals.unactuated``; "underactuated": no torques and forces produce this motion; these come closest;
            "violates_constraints": they produce it, but the acceleration violates the constraints.
        residuals: ``primal`` and ``unactuated``.
        constraint_forces: the forces, an array per constraint.
        rank: rank of (Jᵀ)_U.
        condition: ratio of the largest to the smallest nonzero singular value; large where joints act through a nearly straight linkage.
        advice: what to do about a status that is not "solved"; else empty.
    """

    torques: Array
    forces: Array
    status: InverseDynamicsStatus
    residuals: InverseDynamicsResiduals
    constraint_forces: tuple[Array, ...]
    rank: int
    condition: float
    advice: str

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


_WIDTH = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}


def _actuated(model: Model, actuated: Iterable[str | int] | None) -> NDArray[np.bool_]:
    """Which velocities are actuated, (nv,)."""
    out = np.zeros(model.nv, dtype=bool)
    if actuated is None:
        chosen: list[str | int] = [name for name, kind in zip(model.joint_names, model.joint_type, strict=True) if kind != "free"]
    elif isinstance(actuated, str) or not isinstance(actuated, Iterable):
        raise ArgumentTypeError(f"actuated: expected a list of joint names or velocity indices, got {type(actuated).__name__}.")
    else:
        chosen = list(actuated)
    for k, one in enumerate(chosen):
        if isinstance(one, str):
            j = model.joint_index(one)
            first = int(model.joint_vadr[j])
            out[first : first + _WIDTH[model.joint_type[j]]] = True
        elif isinstance(one, bool | np.bool_) or not isinstance(one, int | np.integer):
            raise ArgumentTypeError(f"actuated[{k}]: expected a joint name or a velocity index, got {type(one).__name__}.")
        elif not 0 <= one < model.nv:
            raise ArgumentError(f"actuated[{k}]: expected a velocity index from 0 to {model.nv - 1}, got {one}.")
        else:
            out[one] = True
    return out


@dataclass(frozen=True, eq=False)
class _Balance:
    """Forces λ that balance the unactuated velocities, and rank and condition of (Jᵀ)_U λ = h_U."""

    forces: Array
    rank: int
    condition: float
    stuck: bool  # some singular values that were cut off are nonzero: torques there would be unbounded


def _balance(J: LinearMap, h: Array, driven: NDArray[np.bool_], minimize: str, rank_tolerance: float) -> _Balance:
    """Solve (Jᵀ)_U λ = h_U by singular values, and choose among its solutions."""
    # J on unit velocities, its singular values
    free = np.flatnonzero(~driven)
    units = np.zeros((len(h), len(free)))
    units[free, np.arange(len(free))] = 1.0
    A = (J @ units).T
    U, sigma, Vt = np.linalg.svd(A, full_matrices=minimize == "torques")
    rank = int((sigma > rank_tolerance * sigma.max(initial=0.0)).sum())

    # directions that would take unbounded torques are cut off
    loads = np.abs(U[:, : len(sigma)].T @ h[free])
    bound = _AMPLIFIED * largest(h)
    while rank > 1 and loads[rank - 1] * sigma[0] > bound * sigma[rank - 1] and sigma[rank - 1] < 1e-4 * sigma[0]:
        rank -= 1
    stuck = bool((sigma[rank:] > 1e-13 * sigma.max(initial=0.0)).any())

    # λ of minimum norm; or, among all λ + Z z with Z the null space of the unactuated rows, that of minimum torques
    forces = Vt[:rank].T @ ((U[:, :rank].T @ h[free]) / sigma[:rank])
    if minimize == "torques" and rank < len(Vt):
        Z = Vt[rank:].T
        felt = (J.H @ Z)[driven]
        missing = (h - J.H @ forces)[driven]
        forces = forces + Z @ np.linalg.lstsq(felt, missing, rcond=rank_tolerance)[0]
    return _Balance(forces, rank, float(sigma[0] / sigma[rank - 1]) if rank else 1.0, stuck)


def _row_scale(model: Model, G: DelassusOperator, q: ArrayLike, v: Array, acceleration: Array, c: Array) -> float:
    """Bound on the terms of J ν̇ + γ, which may cancel: a joint force f moves rows by at most √(‖G‖ fᵀ M⁻¹ f), a velocity x by √(‖G‖ xᵀ M x)."""
    pushed = np.sqrt(float(c @ (G.mass_inverse @ c)))
    moving = np.sqrt(2 * kinetic_energy(model, q, acceleration)) + np.sqrt(2 * kinetic_energy(model, q, v)) * largest(v)
    return float(np.sqrt(norm_of(G)) * (pushed + moving))


def _advice(singular: bool, lacks: bool, breaks: bool, residuals: InverseDynamicsResiduals) -> str:
    """Give advice on missing torques, and on an acceleration that violates the constraints."""
    advice = []
    if singular:
        advice.append(
            f"The mechanism is singular here, or nearly: {residuals.unactuated:.3g} N m or N in unactuated velocities take torques beyond {_AMPLIFIED:g} times the "
            "forces of the motion. Move away from this position, actuate another joint, or ask for another motion."
        )
    elif lacks:
        advice.append(
            f"{residuals.unactuated:.3g} N m or N are missing in unactuated velocities: actuate more, constrain more, or ask for another motion."
        )
    if breaks:
        advice.append(
            f"The acceleration violates the constraints by {residuals.primal:.3g}: take a − J̄ (J a + γ) with OperationalSpace.pseudo_inverse and constraint_bias."
        )
    return " ".join(advice)


def constrained_inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    acceleration: ArrayLike,
    constraints: Sequence[Constraint | Loop] | DelassusOperator,
    *,
    actuated: Iterable[str | int] | None = None,
    minimize: Literal["forces", "torques"] = "forces",
    external_forces: ArrayLike | None = None,
    tolerance: float = 1e-8,
    rank_tolerance: float = 1e-7,
) -> InverseDynamicsResult:
    """Joint torques and constraint forces for a motion, M ν̇ + c = τ + Jᵀ λ + Σ Jᵀ f, with loops, contacts and underactuation.

    Where they are not unique, ``minimize="forces"`` chooses the minimum ‖λ‖₂ over all rows (N and N m alike), and τ follows; "torques" chooses the minimum ‖τ‖₂, then the
    minimum ‖λ‖₂. Where unactuated velocities cannot be balanced, the 2-norm of their residual is minimal. Forces are not restricted to cones or boxes: contacts
    may pull.

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        v: (nv,) velocity.
        acceleration: (nv,) desired ν̇, the rate of v.
        constraints: constraints of this model, or its loops; or an operator of them to reuse, which is updated at q.
        actuated: joint names (all their velocities) or velocity indices; default: all except those of free joints. A model's motors:
            ``[a.joint for a in model.actuators]``.
        minimize: "forces" or "torques".
        external_forces: (nbody, 6) ``[force; torque]`` [N, N m], world axes, at each body's centre of mass.
        tolerance: tolerance for the residuals, relative to the largest terms of the equations; a larger residual sets the status.
        rank_tolerance: singular values of (Jᵀ)_U below this fraction of the largest count as zero: a singular position known to 1e-14 is singular to 1e-7.

    Returns:
        torques, constraint forces, status and residuals.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> model = dl.scenes.four_bar()
        >>> q, v = model.neutral(), model.zero_velocity()
        >>> still = dl.constrained_inverse_dynamics(model, q, v, np.zeros(3), model.loops, actuated=["crank_hinge"])
        >>> still.status, still.torques.shape, still.forces.shape
        ('solved', (3,), (3,))
    """
    G = operator_of(model, constraints)
    wanted = numbers(acceleration, "acceleration", (model.nv,))
    if minimize not in ("forces", "torques"):
        raise ArgumentError(f"minimize: expected 'forces' or 'torques', got {minimize!r}.")
    tolerance, cut = number(tolerance, "tolerance", minimum=0.0), number(rank_tolerance, "rank_tolerance", minimum=0.0)
    driven = _actuated(model, actuated)

    # h, γ and J at this state; λ from the unactuated velocities, τ from the others
    h = np.asarray(inverse_dynamics(model, q, v, wanted, external_forces=external_forces), dtype=np.float64)
    bias = ConstraintRows(model, G.constraints).bias(q, v)
    G.update(q)
    J = G.jacobian
    found = _balance(J, h, driven, minimize, cut)
    passed = J.H @ found.forces
    rest = h - passed

    # residuals relative to the size of the terms that they sum
    residuals = InverseDynamicsResiduals(primal=largest(J @ wanted + bias), unactuated=largest(rest[~driven]))
    v = np.asarray(v, dtype=np.float64)
    c = bias_forces(model, q, v, external_forces=external_forces)
    rounding = 1e-13 * (largest(wanted) + largest(v) ** 2 + largest(model.gravity))
    breaks = residuals.primal > max(tolerance * max(largest(bias), _row_scale(model, G, q, v, wanted, c)), rounding)
    lacks = residuals.unactuated > tolerance * max(largest(h), largest(passed), largest(c))
    singular = lacks and found.stuck
    return InverseDynamicsResult(
        torques=np.where(driven, rest, 0.0),
        forces=found.forces,
        status="singular" if singular else "underactuated" if lacks else "violates_constraints" if breaks else "solved",
        residuals=residuals,
        constraint_forces=split(G.constraints, found.forces),
        rank=found.rank,
        condition=found.condition,
        advice=_advice(singular, lacks, breaks, residuals),
    )
