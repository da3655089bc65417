"""Mechanics of a Model by definition: 4×4 placements as power series in time, sums of Jᵀ(…)J over bodies.

Along q ⊕ v t with v constant, the placement of each body is X(t) = X₀ + X₁ t + X₂ t² + …; Jacobians read X₁, J̇v reads 2 X₂.
Only the public arrays of the model are used, MuJoCo's conventions throughout, O(n²) and worse.
"""

from functools import cached_property

import numpy as np

UNIT = np.eye(3)


def hat(a):
    """Matrix of the cross product, [a]× b = a × b."""
    x, y, z = a
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def vee(A):
    """Vector of the antisymmetric part of A (…, 3, 3)."""
    return np.stack([A[..., 2, 1] - A[..., 1, 2], A[..., 0, 2] - A[..., 2, 0], A[..., 1, 0] - A[..., 0, 1]], axis=-1) / 2


def rotation(quaternion):
    """Rotation matrix of (w, x, y, z): (w² − u·u) 1 + 2 u uᵀ + 2 w [u]×."""
    quaternion = np.asarray(quaternion, dtype=np.float64)
    w, u = quaternion[0], quaternion[1:]
    return ((w * w - u @ u) * UNIT + 2 * np.outer(u, u) + 2 * w * hat(u)) / (quaternion @ quaternion)


def rigid(R=UNIT, p=(0.0, 0.0, 0.0)):
    """4×4 matrix of x ↦ R x + p."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R, p
    return X


def about(point, R):
    """Rotation that leaves ``point`` in place."""
    return rigid(R, point - R @ point)


def generator(linear=(0.0, 0.0, 0.0), angular=(0.0, 0.0, 0.0), anchor=(0.0, 0.0, 0.0)):
    """4×4 rate of a screw motion in its own frame."""
    ξ = np.zeros((4, 4))
    ξ[:3, :3] = hat(angular)
    ξ[:3, 3] = linear - ξ[:3, :3] @ anchor
    return ξ


def series_product(A, B):
    """Product of two power series (…, 3, 4, 4), cut after t²."""
    A0, A1, A2, B0, B1, B2 = *np.moveaxis(A, -3, 0), *np.moveaxis(B, -3, 0)
    return np.stack([A0 @ B0, A0 @ B1 + A1 @ B0, A0 @ B2 + A1 @ B1 + A2 @ B0], axis=-3)


def motion(generators, rates):
    """Series of exp(t Σ rate · generator) for each row of ``rates``: (rows, 3, 4, 4)."""
    ξ = np.tensordot(rates, generators, axes=1)
    return np.stack([np.broadcast_to(np.eye(4), ξ.shape), ξ, ξ @ ξ / 2], axis=1)


def joint_series(model, j, q, rates, X):
    """Series of a body's placement after its joint j moved; X is the series before it."""
    kind, anchor, axis = model.joint_type[j], model.joint_position[j], model.joint_axis[j]
    at = model.joint_qadr[j]
    if kind == "free":
        start = np.zeros_like(X)
        start[:, 0] = rigid(p=q[at : at + 3])
        start[:, 1, :3, 3] = rates[:, :3]
        turn = rigid(rotation(q[at + 3 : at + 7])) @ motion([generator(angular=e) for e in UNIT], rates[:, 3:6])
        return series_product(start, turn)
    if kind == "ball":
        return series_product(
            X @ about(anchor, rotation(q[at : at + 4])), motion([generator(angular=e, anchor=anchor) for e in UNIT], rates[:, :3])
        )
    moved = q[at] - model.joint_reference[j]
    if kind == "slide":
        return series_product(X @ rigid(p=axis * moved), motion([generator(linear=axis)], rates[:, :1]))
    turned = about(anchor, rotation([np.cos(moved / 2), *(np.sin(moved / 2) * axis)]))
    return series_product(X @ turned, motion([generator(angular=axis, anchor=anchor)], rates[:, :1]))


def placements(model, q, velocities):
    """Placement series of every body along every row of ``velocities`` (rows, nv): (nbody, rows, 3, 4, 4)."""
    X = np.zeros((model.nbody, len(velocities), 3, 4, 4))
    X[0, :, 0] = np.eye(4)
    for b in range(1, model.nbody):
        X[b] = X[model.body_parent[b]] @ rigid(rotation(model.body_quaternion[b]), model.body_position[b])
        for j in np.flatnonzero(model.joint_body == b):
            X[b] = joint_series(model, j, q, velocities[:, model.joint_vadr[j] :], X[b])
    return X


def moving(model):
    """Which bodies have a joint between them and the world: (nbody,) bool."""
    out = np.zeros(model.nbody, dtype=bool)
    for b in range(1, model.nbody):
        out[b] = out[model.body_parent[b]] or b in model.joint_body
    return out


class Mechanism:
    """A model in one state."""

    def __init__(self, model, q, v=None):
        self.model, self.q = model, np.asarray(q, dtype=np.float64)
        self.v = np.zeros(model.nv) if v is None else np.asarray(v, dtype=np.float64)
        self.series = placements(model, self.q, np.vstack([np.eye(model.nv), self.v]))
        self.placement = self.series[:, -1, 0]

    def _at(self, point, power):
        """t^power of a point (nbody, 3) of every body, along every velocity: (nbody, rows, 3)."""
        X = self.series[:, :, power, :3]
        return np.einsum("brij,bj->bri", X[..., :3], point) + X[..., 3]

    def frames(self, points):
        """Jacobians (nbody, 6, nv) and J̇v (nbody, 6) of a frame on every body, its origin at a row of ``points``."""
        R, R1, R2 = (self.series[:, :, k, :3, :3] for k in range(3))
        Rt = R.swapaxes(-1, -2)
        rate = np.concatenate([self._at(points, 1), vee(R1 @ Rt)], axis=-1)
        # d/dt (Ṙ Rᵀ) = R̈ Rᵀ + Ṙ Ṙᵀ, the last of which is symmetric
        bias = np.concatenate([2 * self._at(points, 2)[:, -1], vee(2 * R2[:, -1] @ Rt[:, -1])], axis=-1)
        return rate[:, :-1].swapaxes(-1, -2), bias

    def positions(self, points):
        """World coordinates of a point (nbody, 3) of every body."""
        return self._at(points, 0)[:, -1]

    @cached_property
    def _at_com(self):
        return self.frames(self.model.body_com)

    @cached_property
    def _inertia(self):
        R = self.placement[:, :3, :3]
        return R @ self.model.body_inertia @ R.swapaxes(-1, -2)

    @cached_property
    def mass_matrix(self):
        """Σ m Jᵥᵀ Jᵥ + J_ωᵀ I J_ω + armature."""
        J = self._at_com[0]
        I_J = np.concatenate([self.model.body_mass[:, None, None] * J[:, :3], self._inertia @ J[:, 3:]], axis=1)
        return np.tensordot(J, I_J, axes=((0, 1), (0, 1))) + np.diag(self.model.dof_armature)

    @cached_property
    def _wrench(self):
        """Newton and Euler for every body at v̇ = 0, gravity included: (nbody, 6) at the centre of mass."""
        J, bias = self._at_com
        ω, α = J[:, 3:] @ self.v, bias[:, 3:]
        force = self.model.body_mass[:, None] * (bias[:, :3] - self.model.gravity)
        Iω, Iα = ((self._inertia @ x[..., None])[..., 0] for x in (ω, α))
        return np.concatenate([force, Iα + np.cross(ω, Iω)], axis=1)

    @cached_property
    def bias_forces(self):
        """C(q, v): Σ Jᵀ (m (J̇v − g), I α + ω × I ω)."""
        return self.joint_forces(self._wrench)

    @cached_property
    def bias_scale(self):
        """Size of the numbers that bias_forces sums, against which its rounding is judged."""
        J = self._at_com[0]
        return float(np.einsum("bik,bi->k", np.abs(J), np.abs(self._wrench)).max(initial=0.0))

    def joint_forces(self, wrenches):
        """Σ Jᵀ f of wrenches (nbody, 6) in world axes at the centres of mass."""
        return np.einsum("bik,bi->k", self._at_com[0], wrenches)

    @cached_property
    def center_of_mass(self):
        """Σ m c / Σ m over the moving bodies."""
        mass = self.model.body_mass * moving(self.model)
        return mass @ self.positions(self.model.body_com) / mass.sum()

    @cached_property
    def kinetic_energy(self):
        """½ Σ m |ċ|² + ωᵀ I ω + ½ armature v²."""
        twist = self._at_com[0] @ self.v
        Iω = np.einsum("bij,bj->bi", self._inertia, twist[:, 3:])
        return 0.5 * (
            self.model.body_mass @ (twist[:, :3] ** 2).sum(axis=1) + (twist[:, 3:] * Iω).sum() + self.model.dof_armature @ self.v**2
        )

    @cached_property
    def gravitational_energy(self):
        """Return −Σ m gᵀc over the moving bodies."""
        return -(self.model.body_mass * moving(self.model)) @ self.positions(self.model.body_com) @ self.model.gravity
