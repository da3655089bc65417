"""Derivatives of the centre of mass and of energies, and the regressor of joint forces for inertial parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import as_array
from .._html import result_table
from ..dynamics import Workspace
from ..errors import ArgumentError, ArgumentTypeError
from ..model import Model
from ..model.model import as_model
from ..state import difference, normalize
from .native import model_of, run_single

__all__ = [
    "BodyGradient",
    "CenterOfMassDerivatives",
    "EnergyDerivatives",
    "body_gradient",
    "center_of_mass_derivatives",
    "energy_derivatives",
    "inertial_parameters",
    "torque_regressor",
]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class CenterOfMassDerivatives:
    """Motion of the centre of mass and its derivatives, see :func:`center_of_mass_derivatives`.

    Attributes:
        velocity: (3,) [m/s]; acceleration: (3,) [m/s²].
        jacobian: (3, nv) ∂position/∂q = ∂velocity/∂v = ∂acceleration/∂ν̇.
        velocity_q: (3, nv) ∂velocity/∂q, column k for a change of q along v[k].
        acceleration_q, acceleration_v: (3, nv) ∂acceleration/∂q and ∂acceleration/∂v.
    """

    velocity: Array
    acceleration: Array
    jacobian: Array
    velocity_q: Array
    acceleration_q: Array
    acceleration_v: Array

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


@dataclass(frozen=True, eq=False)
class EnergyDerivatives:
    """Derivatives of energies, see :func:`energy_derivatives`.

    Attributes:
        kinetic_q: (nv,) ∂T/∂q, entry k for a change of q along v[k].
        kinetic_v: (nv,) ∂T/∂v = M v.
        potential_q: (nv,) ∂V/∂q, from gravity and joint springs.
    """

    kinetic_q: Array
    kinetic_v: Array
    potential_q: Array

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


class BodyGradient(NamedTuple):
    """Derivatives of a scalar with respect to ``mass`` (nbody,), ``com`` (nbody, 3) and ``inertia`` (nbody, 3, 3) of bodies, see :func:`body_gradient`; (…, k) for k scalars."""

    mass: Array
    com: Array
    inertia: Array


def center_of_mass_derivatives(
    model: Model | Workspace, q: ArrayLike, v: ArrayLike, acceleration: ArrayLike | None = None
) -> CenterOfMassDerivatives:
    """Velocity and acceleration of the centre of mass of all moving bodies, and their derivatives. O(n).

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        acceleration: (nv,) ν̇, the rate of v; None is zero.

    Returns:
        the motion in world axes, and its derivatives with respect to q (in the tangent space, coordinates of v), v and ν̇.

    Raises:
        SingularError: no moving body has mass.
    """
    return CenterOfMassDerivatives(*run_single(model, "center_of_mass_derivatives", q, v, acceleration))


def energy_derivatives(model: Model | Workspace, q: ArrayLike, v: ArrayLike) -> EnergyDerivatives:
    """Differentiate :func:`~delassus.kinetic_energy` T and :func:`~delassus.potential_energy` V with respect to q and v. O(n).

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.

    Returns:
        the derivatives; those with respect to q in its tangent space, coordinates of v.
    """
    kinetic_q, kinetic_v, potential_q = run_single(model, "energy_derivatives", q, v)
    robot = model_of(model)
    if robot.dof_stiffness.any():
        potential_q += _spring_gradient(robot, q)
    return EnergyDerivatives(kinetic_q, kinetic_v, potential_q)


def _spring_gradient(model: Model, q: ArrayLike) -> NDArray[np.float64]:
    """Gradient (nv,) of the energy ½ Σ k (q ⊖ q_spring)² of joint springs, for a checked configuration.

    For a joint that rotates about a point, q ⊖ q_spring = r is a rotation vector and k r is also the gradient in body axes: a rotation perpendicular to r keeps its length.
    """
    stretch = difference(model, model.spring_reference, normalize(model, np.asarray(q, dtype=np.float64)))
    return np.asarray(model.dof_stiffness * stretch)


def torque_regressor(model: Model | Workspace, q: ArrayLike, v: ArrayLike, acceleration: ArrayLike, *, out: Array | None = None) -> Array:
    """Regressor Y of joint forces for inertial parameters: τ = Y θ + armature ν̇, without external forces. O(n d) for depth d.

    θ has ten numbers per body, those of the world (zero columns) first: mass m, first moment m c (x, y, z), and the inertia about the body's *origin*
    (xx, xy, yy, xz, yz, zz), both in body axes. :func:`inertial_parameters` gives the model's own. The order is Pinocchio's.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        acceleration: (nv,) ν̇, the rate of v.
        out: array (nv, 10 nbody) to fill.

    Returns:
        (nv, 10 nbody) Y = ∂τ/∂θ.
    """
    if acceleration is None:
        raise ArgumentTypeError("acceleration: expected an array, got None. For zero acceleration give zeros.")
    return run_single(model, "torque_regressor", q, v, acceleration, out)  # type: ignore[no-any-return]


def inertial_parameters(model: Model) -> NDArray[np.float64]:
    """Inertial parameters θ of a model's bodies, in the order of :func:`torque_regressor`.

    Args:
        model: the mechanism.

    Returns:
        (10 nbody,) per body: m [kg], m c [kg m], inertia about the body's origin (xx, xy, yy, xz, yz, zz) [kg m²], body axes.
    """
    m, c = as_model(model).body_mass, model.body_com
    # Steiner: I + m (c·c 1 − c cᵀ)
    about_origin = model.body_inertia + m[:, None, None] * (
        np.einsum("bi,bi->b", c, c)[:, None, None] * np.eye(3) - np.einsum("bi,bj->bij", c, c)
    )
    entries = about_origin[:, [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    return np.column_stack([m, m[:, None] * c, entries]).ravel()


def body_gradient(model: Model, inertial: ArrayLike) -> BodyGradient:
    """Convert derivatives with respect to :func:`inertial_parameters` θ into those with respect to mass, centre of mass, and inertia about it.

    θ has the inertia about the body's origin, I + m (c·c 1 − c cᵀ), so its first entry is not the derivative with respect to the mass alone. Here one of ``model.body_mass``, ``model.body_com``
    and ``model.body_inertia`` changes and the others stay, as in ``Worlds.parameters``.

    Args:
        model: the mechanism.
        inertial: (10 nbody,) derivatives of a scalar with respect to θ, such as ``inertial`` of ``parameter_vjp``; or (10 nbody, k) for k scalars.

    Returns:
        derivatives with respect to mass [1/kg], c [1/m], and I as a symmetric matrix W: the scalar changes by Σ W_ij dI_ij.
    """
    m, c = as_model(model).body_mass, model.body_com
    given = as_array(inertial, "inertial")
    if given.ndim not in (1, 2) or given.shape[0] != 10 * len(m):
        raise ArgumentError(f"inertial: expected shape (10 nbody,) = ({10 * len(m)},) or ({10 * len(m)}, k), got {given.shape}.")
    g = given.reshape(len(m), 10, -1)
    W = np.empty((len(m), 3, 3, g.shape[2]))
    for at, (i, j) in zip(range(4, 10), ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)), strict=True):
        W[:, i, j] = W[:, j, i] = g[:, at] * (1.0 if i == j else 0.5)
    # W : (c·c 1 − c cᵀ) and its derivative with respect to c
    trace, turned = np.einsum("biik->bk", W), np.einsum("bijk,bj->bik", W, c)
    mass = (
        g[:, 0] + np.einsum("bi,bik->bk", c, g[:, 1:4]) + np.einsum("bi,bi->b", c, c)[:, None] * trace - np.einsum("bi,bik->bk", c, turned)
    )
    com = m[:, None, None] * (g[:, 1:4] + 2 * (c[:, :, None] * trace[:, None] - turned))
    return BodyGradient(mass, com, W) if given.ndim == 2 else BodyGradient(mass[..., 0], com[..., 0], W[..., 0])
