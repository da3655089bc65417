"""Inverse dynamics with constraints: M ν̇ + c = τ + Jᵀ λ + Σ Jᵀ f, where τ is zero in what is not actuated.

With h = M ν̇ + c − Σ Jᵀ f of the tree (Newton–Euler) and U the velocities that are not actuated,

    (Jᵀ)_U λ = h_U        small, dense, by its singular values: λ of least norm, least squares where it has no solution
    τ = h − Jᵀ λ          in the actuated velocities
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import number, numbers
from ..constraints import Constraint, ConstraintRows
from ..dynamics import bias_forces, inverse_dynamics
from ..errors import ArgumentError, ArgumentTypeError
from ..model import Loop, Model
from ..operators import DelassusOperator
from ..state import kinetic_energy
from ..types import InverseDynamicsStatus
from .proximal import largest, norm_of, operator_of, split

__all__ = ["InverseDynamicsResult", "constrained_inverse_dynamics"]

Array = NDArray[Any]
# How many times the forces of the motion torques may be before the mechanism counts as singular.
_AMPLIFIED = 1e5


@dataclass(frozen=True)
class InverseDynamicsResiduals:
    """How far torques and forces are from a motion, and the motion from the constraints.

    Attributes:
        primal: largest |J ν̇ + γ| [m/s² or rad/s²], how far the acceleration breaks the constraints.
        unactuated: largest |h − Jᵀ λ| in what is not actuated [N m or N], forces that would be missing there.
    """

    primal: float
    unactuated: float


@dataclass(frozen=True, eq=False)
class InverseDynamicsResult:
    """What a motion takes, see :func:`constrained_inverse_dynamics`.

    Attributes:
        torques: (nv,) τ [N m or N], zero in what is not actuated.
        forces: (m,) λ [N or N m], axes of the rows.
        status: "solved"; "singular": a singular position lets the actuated joints push on the others only with torques beyond 1e5 times the forces of the motion, or
            not at all: bounded ones are given, see ``residuals.unactuated``; "underactuated": no torques and forces make this motion, these come nearest;
            "violates_constraints": they make it, but the acceleration breaks the constraints.
        residuals: ``primal`` and ``unactuated``.
        constraint_forces: the forces, an array a constraint.
        rank: of (Jᵀ)_U, how many rows of it the forces could choose.
        condition: largest over least singular value that counts; large where joints push through a nearly straight linkage.
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

    Where they are not unique, the least are chosen: ``minimize="forces"`` takes the least ‖λ‖₂ over all rows, as they are (newtons and newton metres alike), and τ
    follows; "torques" takes the least ‖τ‖₂, and of what then remains the least ‖λ‖₂. Where what is not actuated cannot be balanced, its residual is least in the
    2-norm. Forces are not kept in cones or boxes: contacts may pull.

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        v: (nv,) velocity.
        acceleration: (nv,) ν̇ wanted, the rate of v.
        constraints: constraints of this model, or its loops; or an operator of them to reuse, which is updated at q.
        actuated: joint names (all their velocities) or velocity indices; default all but those of free joints. A model's motors:
            ``[a.joint for a in model.actuators]``.
        minimize: "forces" or "torques".
        external_forces: (nbody, 6) ``[force; torque]`` [N, N m], world axes, at each body's centre of mass.
        tolerance: relative to the largest numbers of the equations; above it a residual is a status.
        rank_tolerance: singular values of (Jᵀ)_U below this part of the largest count as zero: a position that was found to 1e-14 is singular to 1e-7.

    Returns:
        torques, forces, status and residuals.

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
    h = np.asarray(inverse_dynamics(model, q, v, wanted, external_forces=external_forces), dtype=np.float64)
    bias = ConstraintRows(model, G.constraints).bias(q, v)
    G.update(q)
    J = G.jacobian

    # (Jᵀ)_U λ = h_U: J on unit velocities, its singular values
    free = np.flatnonzero(~driven)
    units = np.zeros((model.nv, len(free)))
    units[free, np.arange(len(free))] = 1.0
    A = (J @ units).T
    left, size, right = np.linalg.svd(A, full_matrices=minimize == "torques")
    rank = int((size > cut * size.max(initial=0.0)).sum())
    # torques that would grow beyond all bounds are left out
    loads = np.abs(left[:, : len(size)].T @ h[free])
    bound = _AMPLIFIED * largest(h)
    while rank > 1 and loads[rank - 1] * size[0] > bound * size[rank - 1] and size[rank - 1] < 1e-4 * size[0]:
        rank -= 1
    stuck = size[rank:] > 1e-13 * size.max(initial=0.0)
    forces = right[:rank].T @ ((left[:, :rank].T @ h[free]) / size[:rank])
    if minimize == "torques" and rank < len(right):
        # among all λ + (what the unactuated do not feel) z
        loose = right[rank:].T
        felt = (J.H @ loose)[driven]
        missing = (h - J.H @ forces)[driven]
        forces = forces + loose @ np.linalg.lstsq(felt, missing, rcond=cut)[0]

    passed = J.H @ forces
    rest = h - passed
    torques = np.where(driven, rest, 0.0)
    moved = J @ wanted
    primal, unactuated = largest(moved + bias), largest(rest[free])
    # what the equations are summed of, also where it cancels: a joint force f moves rows by √(‖G‖ fᵀ M⁻¹ f) at most, a velocity x by √(‖G‖ xᵀ M x)
    v = np.asarray(v, dtype=np.float64)
    c = bias_forces(model, q, v, external_forces=external_forces)
    pushed = np.sqrt(float(c @ (G.mass_inverse @ c)))
    moving = np.sqrt(2 * kinetic_energy(model, q, wanted)) + np.sqrt(2 * kinetic_energy(model, q, v)) * largest(v)
    rounding = 1e-13 * (largest(wanted) + largest(v) ** 2 + largest(model.gravity))
    breaks = primal > max(tolerance * max(largest(bias), np.sqrt(norm_of(G)) * (pushed + moving)), rounding)
    lacks = unactuated > tolerance * max(largest(h), largest(passed), largest(c))
    singular = lacks and bool(stuck.any())
    advice = []
    if singular:
        advice.append(
            f"The mechanism is singular here, or nearly: {unactuated:.3g} N m or N in velocities that are not actuated take torques beyond {_AMPLIFIED:g} times the "
            "forces of the motion. Move away from this position, actuate another joint, or ask for another motion."
        )
    elif lacks:
        advice.append(
            f"{unactuated:.3g} N m or N are missing in velocities that are not actuated: actuate more, constrain more, or ask for another motion."
        )
    if breaks:
        advice.append(
            f"The acceleration breaks the constraints by {primal:.3g}: take a − J̄ (J a + γ) with OperationalSpace.pseudo_inverse and constraint_bias."
        )
    return InverseDynamicsResult(
        torques=torques,
        forces=forces,
        status="singular" if singular else "underactuated" if lacks else "violates_constraints" if breaks else "solved",
        residuals=InverseDynamicsResiduals(primal, unactuated),
        constraint_forces=split(G.constraints, forces),
        rank=rank,
        condition=float(size[0] / size[rank - 1]) if rank else 1.0,
        advice=" ".join(advice),
    )
