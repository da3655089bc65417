"""The reference for every method: M, J and derived quantities as dense matrices, by LAPACK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..constraints import Constraint, ConstraintRows, JointFriction, PointContact
from ..dynamics import bias_forces, inverse_dynamics
from ..errors import SingularError
from ..model import Model

__all__ = ["Definition", "contact_residual", "polygon_residual", "relative"]

Array = NDArray[Any]
_ROUNDING = 100 * np.finfo(float).eps
_LEAST_ALLOWED, _MOST_ALLOWED = 1e-9, 1e-4
_KEPT = 1e-7  # relative to the largest singular value of J M^-½: smaller ones are combinations of rows that no joint moves


def relative(a: Array, b: Array) -> float:
    """Largest difference, relative to the largest number of b."""
    return float(np.abs(a - b).max(initial=0.0) / max(np.abs(b).max(initial=0.0), 1e-300))


def _over(difference: Array, *sizes: Array) -> float:
    return float(np.abs(difference).max(initial=0.0) / max(1.0, *(np.abs(size).max(initial=0.0) for size in sizes)))


class Definition:
    """A mechanism with constraints in one state, by definition: M by Newton–Euler and J, one velocity at a time, G = J M⁻¹ Jᵀ by the Cholesky factor of M.

    Args:
        model: the mechanism.
        q, v: its state; joint forces are zero.
        constraints: its constraints.

    Attributes:
        M: (n, n); h: (n,) bias forces.
        J: (m, n); gamma: (m,) bias of the rows.
        G: (m, m).
        damping: ε of the damped inverse, a thousandth of the mean diagonal of G.
        inverse: (m, m) inverse of G + ε.
        matrix_allowed, inverse_allowed: errors of a matrix attributable to rounding, given the conditioning of M and G + ε; from 1e-9 to 1e-4.

    Raises:
        SingularError: M is singular in this pose, or so close to it that nothing could be checked.
    """

    def __init__(self, model: Model, q: ArrayLike, v: ArrayLike, constraints: Sequence[Constraint]) -> None:
        self.h = bias_forces(model, q, v)
        still, unit = np.zeros(model.nv), 1e6 * np.eye(model.nv)  # so large that gravity causes no rounding error
        rest = inverse_dynamics(model, q, still, still)
        M = np.array([inverse_dynamics(model, q, still, e) - rest for e in unit]).reshape(model.nv, model.nv) / 1e6
        self.M = (M + M.T) / 2
        rows = ConstraintRows(model, constraints)
        self.J = np.array([rows.velocity(q, e) for e in np.eye(model.nv)]).reshape(model.nv, -1).T
        self.gamma = rows.bias(q, v)
        # M scaled to unit diagonal, so that units of joints do not matter
        d = np.sqrt(self.M.diagonal())
        scaled = self.M / np.outer(d, d)
        worst = float(np.linalg.cond(scaled)) if model.nv else 1.0
        if not _ROUNDING * worst < _MOST_ALLOWED:
            raise SingularError(
                f"{model.name}: the mass matrix is all but singular in this pose (condition {worst:.0e}): no result can be checked."
            )
        half = np.linalg.inv(np.linalg.cholesky(scaled)) / d
        self.Y = self.J @ half.T
        self.G = self.Y @ self.Y.T
        self.free = -half.T @ (half @ self.h)
        m = len(self.G)
        self.damping = 1e-3 * float(self.G.diagonal().mean()) if m else 0.0
        stiffest = float(np.linalg.norm(self.Y, 2)) ** 2 if m else 0.0
        self.matrix_allowed = float(np.clip(_ROUNDING * worst, _LEAST_ALLOWED, _MOST_ALLOWED))
        self.inverse = np.linalg.inv(self.G + self.damping * np.eye(m)) if self.damping > 0 else np.zeros((m, m))
        conditioned = worst * (1 + stiffest / self.damping) if self.damping > 0 else 1.0
        self.inverse_allowed = float(np.clip(_ROUNDING * conditioned, _LEAST_ALLOWED, _MOST_ALLOWED))
        self._half, (u, s, vt) = half, np.linalg.svd(self.Y, full_matrices=False)
        kept = s > _KEPT * s.max(initial=0.0)
        self._moved, self._singular = u[:, kept], (s[kept], vt[kept])

    def acceleration_error(self, acceleration: Array) -> float:
        """Difference from ν̇ by Gauss's principle: among those that satisfy the rows best, the closest to the free one in the metric of M. Relative to the largest of both, or 1."""
        s, vt = self._singular
        want = self.free - self._half.T @ (vt.T @ ((self._moved.T @ (self.gamma + self.J @ self.free)) / s))
        return _over(acceleration - want, want, self.free)

    def free_error(self, acceleration: Array, tau: Array) -> float:
        """Difference from ν̇ = M⁻¹ (τ − h) of the mechanism without constraints, relative to its largest or 1."""
        want = self.free + self._half.T @ (self._half @ tau)
        return _over(acceleration - want, want)

    def dynamics_error(self, acceleration: Array, forces: Array, softness: Array | None = None) -> float:
        """Return the residuals of M ν̇ + h = Jᵀ λ and of the rows, each relative to its largest term; for the rows at least 1.

        Rows are rigid, J ν̇ + γ = 0, without the part that no joint moves, so that least-squares solutions pass if rows contradict each other. Or they are
        springs, J ν̇ + γ + softness λ = 0.
        """
        dynamics = self.M @ acceleration + self.h - self.J.T @ forces
        size = np.abs(self.M) @ np.abs(acceleration) + np.abs(self.h) + np.abs(self.J.T) @ np.abs(forces)
        left = self.J @ acceleration + self.gamma
        left = self._moved.T @ left if softness is None else left + softness * forces
        scale = max(1.0, np.abs(self.gamma).max(initial=0.0), np.abs(self.J @ self.free).max(initial=0.0))
        return float(
            np.max([np.abs(dynamics).max(initial=0.0) / max(size.max(initial=0.0), 1e-300), np.abs(left).max(initial=0.0) / scale])
        )


def contact_residual(
    A: Array, g: Array, forces: Array, constraints: Sequence[Constraint], timestep: float, *, relaxed: bool = False
) -> float:
    """Natural residual of contact forces: the largest d ‖λ − P(λ − σ̃ / d)‖, σ̃ = A λ + g + Γ [m/s].

    d is the mean diagonal over the rows of a contact, and for any other row its own diagonal entry.

    Args:
        A: (m, m) G.
        g: (m,) velocities without forces.
        forces: (m,) λ.
        constraints: constraints that define their sets.
        timestep: time step for the bounds of dry friction [s].
        relaxed: leave out Γ.
    """
    sigma, left = A @ forces + g, [0.0]
    for c, at in _blocks(constraints):
        s, y = sigma[at].copy(), forces[at]
        if c.force_set == "free":
            left.append(np.abs(s).max())  # loops do not move
            continue
        if not isinstance(c, PointContact):  # each row is a separate set
            own = np.array([_felt(A, slice(r, r + 1)) for r in range(at.start, at.stop)])
            left.append(np.abs(own * (y - _into_set(y - s / own, c, timestep))).max())
            continue
        if not relaxed:
            s[0] += c.friction * np.linalg.norm(s[1:])
        d = _felt(A, at)
        left.append(d * float(np.linalg.norm(y - _into_set(y - s / d, c, timestep))))
    return float(np.max(left))


def polygon_residual(A: Array, g: Array, forces: Array, constraints: Sequence[Constraint], timestep: float, directions: int = 8) -> float:
    """Residual of contact forces with polygons for friction cones, one corner at the first tangent [m/s]; for other rows the natural residual.

    For a contact it is the largest of: the natural residual of its normal; d times the distance of its friction from the polygon; and, if its normal force is positive, the power
    that the best friction in the polygon would dissipate beyond this one, divided by µ λ_n.
    """
    sigma, left = A @ forces + g, [0.0]
    angles = 2 * np.pi * np.arange(directions) / directions
    corners = np.stack([np.cos(angles), np.sin(angles)])
    sides = np.stack([np.cos(angles + angles[1] / 2), np.sin(angles + angles[1] / 2)]) / np.cos(angles[1] / 2)
    for c, at in _blocks(constraints):
        s, y, d = sigma[at], forces[at], _felt(A, at)
        if not isinstance(c, PointContact):
            left.append(contact_residual(A[at, at], s - A[at, at] @ y, y, [c], timestep))
            continue
        reach = c.friction * y[0]
        left += [d * np.abs(y[0] - np.maximum(0.0, y[0] - s[0] / d)), d * (np.max(sides.T @ y[1:]) - reach)]
        if d * reach > 1e-9:
            left.append((s[1:] @ y[1:] + reach * np.max(-(corners.T @ s[1:]))) / reach)
    return float(np.max(left))


def _felt(A: Array, at: slice) -> float:
    """Effective inverse mass of rows, the mean diagonal over them; 1 if no joint moves them."""
    return float(A.diagonal()[at].mean()) or 1.0


def _blocks(constraints: Sequence[Constraint]) -> list[tuple[Constraint, slice]]:
    ends = np.cumsum([c.rows for c in constraints])
    return [(c, slice(int(end) - c.rows, int(end))) for c, end in zip(constraints, ends, strict=True)]


def _into_set(z: Array, c: Constraint, timestep: float) -> Array:
    if isinstance(c, PointContact):
        return _into_cone(z, c.friction)
    if isinstance(c, JointFriction):
        return np.clip(z, -c.friction * timestep, c.friction * timestep)
    return np.maximum(z, 0.0)


def _into_cone(z: Array, friction: float) -> Array:
    """Closest point of the cone ‖z_T‖ ≤ µ z_n."""
    n, t = float(z[0]), float(np.linalg.norm(z[1:]))
    if t <= friction * n:
        return z
    if friction * t <= -n:
        return np.zeros(len(z))
    height = (n + friction * t) / (1 + friction**2)
    return np.array([height, *(friction * height / t * z[1:])])
