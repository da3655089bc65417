"""Derivatives of inverse and forward dynamics of the tree, in link frames.

A change dq of coordinates is in the tangent space, q ⊕ dq, in the coordinates of v. It moves everything beyond joint j along S_j; what carries the joint
stays: its parent and, for a free joint, whose linear axes are the world's, its own linear motion.
"""

from __future__ import annotations

from dataclasses import dataclass

from .arithmetic import Arithmetic, Matrix
from .robot import Pose, force_cross, hat, motion_cross
from .tree import aba, mass_matrix_inverse

__all__ = ["ForwardDerivatives", "InverseDerivatives", "aba_derivatives", "rnea_derivatives"]


@dataclass
class InverseDerivatives:
    """Joint forces (nv, 1) and their derivatives (nv, nv) with respect to q, v and ν̇."""

    tau: Matrix
    tau_q: Matrix
    tau_v: Matrix
    tau_a: Matrix


@dataclass
class ForwardDerivatives:
    """Accelerations (nv, 1) and their derivatives (nv, nv) with respect to q, v and τ."""

    acceleration: Matrix
    acceleration_q: Matrix
    acceleration_v: Matrix
    acceleration_tau: Matrix


def rnea_derivatives(pose: Pose, v: Matrix, acceleration: Matrix) -> InverseDerivatives:
    """Differentiate τ = M ν̇ + c. O(n d).

        Ψ = v̂ × S,   Χ = â × S + v̂ × Ψ,   Φ = Ψ + Ṡ       v̂, â: motion of what carries the joint
        B m = H (m × v) + m ×* H v + v ×* H m               H, B, f: summed over the subtree
        i beyond j:   ∂τ_i/∂q_j = (H S_i)ᵀ Χ_j + (Bᵀ S_i)ᵀ Ψ_j,              ∂τ_i/∂ν_j = (H S_i)ᵀ Φ_j + (Bᵀ S_i)ᵀ S_j
                      ∂τ_j/∂q_i = S_jᵀ (S_i ×* f + H Χ_i + B Ψ_i),           ∂τ_j/∂ν_i = S_jᵀ (H Φ_i + B S_i)

    Source: Carpentier, Mansard (2018); Singh, Russell, Wensing (2022).

    Args:
        pose: robot pose.
        v, acceleration: (nv, 1) velocities and accelerations ν̇.

    Returns:
        τ, ∂τ/∂q, ∂τ/∂v and ∂τ/∂ν̇ = M.
    """
    pose.check(pose.nv, v=v, acceleration=acceleration)
    ops, parent, nv = pose.ops, pose.parent, pose.nv
    n = len(parent)
    vel: list[Matrix] = []
    a: list[Matrix] = []
    f: list[Matrix] = []
    B: list[Matrix] = []
    Psi: list[Matrix] = []
    Chi: list[Matrix] = []
    Phi: list[Matrix] = []
    # forward: motions, their rates, and the forces they need
    for i in range(n):
        p, S, nu, nudot = parent[i], pose.S[i], pose.velocities(i, v), pose.velocities(i, acceleration)
        carrier_v = ops.zeros(6, 1) if p < 0 else pose.X[i] @ vel[p]
        carrier_a = pose.X[i] @ (pose.a0 if p < 0 else a[p])
        vel.append(carrier_v + S @ nu)
        a.append(carrier_a + S @ nudot + pose.bias(i, vel[i], nu))
        fixed = _fixed_axes(pose, i)
        carrier_v = carrier_v + S[:, :fixed] @ nu[:fixed, :]
        carrier_a = carrier_a + S[:, :fixed] @ nudot[:fixed, :]
        turning, still = S[:, fixed:], ops.zeros(6, fixed)
        rate = _columns(ops, carrier_v, turning)
        Psi.append(ops.beside([still, rate]))
        Chi.append(ops.beside([still, _columns(ops, carrier_a, turning) + _columns(ops, carrier_v, rate)]))
        Phi.append(ops.beside([still, rate + _columns(ops, vel[i], turning)]))
        momentum = pose.H[i] @ vel[i]
        f.append(pose.H[i] @ a[i] + force_cross(ops, vel[i], momentum))
        across = _cross_matrix(ops, vel[i])
        B.append(-across.T @ pose.H[i] - pose.H[i] @ across + _force_matrix(ops, momentum))
    # backward: subtrees, and every pair on a path
    H = list(pose.H)
    out = InverseDerivatives(ops.zeros(nv, 1), ops.zeros(nv, nv), ops.zeros(nv, nv), ops.zeros(nv, nv))
    for i in reversed(range(n)):
        S, at = pose.S[i], _dofs(pose, i)
        out.tau[at, :] = S.T @ f[i] + pose.Ic[i] @ pose.velocities(i, acceleration)
        U, W = H[i] @ S, B[i].T @ S
        by_q = _force_matrix(ops, f[i]) @ S + H[i] @ Chi[i] + B[i] @ Psi[i]
        by_v = H[i] @ Phi[i] + B[i] @ S
        out.tau_q[at, at] = U.T @ Chi[i] + W.T @ Psi[i]
        out.tau_v[at, at] = U.T @ Phi[i] + W.T @ S
        out.tau_a[at, at] = ops.symmetric(U.T @ S) + pose.Ic[i]
        if fixed := _fixed_axes(pose, i):
            # the world's axes do not rotate with the joint
            rows, columns = slice(at.start, at.start + fixed), slice(at.start + fixed, at.stop)
            out.tau_q[rows, columns] = out.tau_q[rows, columns] + S[:, :fixed].T @ (_force_matrix(ops, f[i]) @ S[:, fixed:])
        j = i
        while parent[j] >= 0:
            by_q, by_v, U, W = (pose.X[j].T @ F for F in (by_q, by_v, U, W))
            j = parent[j]
            above = _dofs(pose, j)
            out.tau_q[above, at], out.tau_v[above, at] = pose.S[j].T @ by_q, pose.S[j].T @ by_v
            out.tau_q[at, above], out.tau_v[at, above] = U.T @ Chi[j] + W.T @ Psi[j], U.T @ Phi[j] + W.T @ pose.S[j]
            out.tau_a[at, above] = U.T @ pose.S[j]
            out.tau_a[above, at] = pose.S[j].T @ U
        if parent[i] >= 0:
            p, X = parent[i], pose.X[i]
            H[p], B[p], f[p] = H[p] + ops.symmetric(X.T @ H[i] @ X), B[p] + X.T @ B[i] @ X, f[p] + X.T @ f[i]
    return out


def aba_derivatives(pose: Pose, v: Matrix, tau: Matrix) -> ForwardDerivatives:
    """Differentiate ν̇ = M⁻¹ (τ − c). O(n³) for the products, which are dense.

        ∂ν̇/∂τ = M⁻¹,   ∂ν̇/∂q = −M⁻¹ ∂τ/∂q,   ∂ν̇/∂ν = −M⁻¹ ∂τ/∂ν      at ν̇

    Source: Carpentier, Mansard (2018), section III-D.

    Args:
        pose: robot pose.
        v, tau: (nv, 1) velocities and joint forces.

    Returns:
        ν̇, ∂ν̇/∂q, ∂ν̇/∂v and ∂ν̇/∂τ = M⁻¹.
    """
    acceleration = aba(pose, v, tau)
    of_tau, Minv = rnea_derivatives(pose, v, acceleration), mass_matrix_inverse(pose)
    return ForwardDerivatives(acceleration, -(Minv @ of_tau.tau_q), -(Minv @ of_tau.tau_v), Minv)


def _dofs(pose: Pose, i: int) -> slice:
    link = pose.robot.links[i]
    return slice(link.v, link.v + link.nv)


def _fixed_axes(pose: Pose, i: int) -> int:
    """Return the number of a joint's first axes that are the world's: the linear ones of a free joint."""
    return 3 if pose.robot.links[i].type == "free" and pose.floating == "world" else 0


def _columns(ops: Arithmetic, v: Matrix, S: Matrix) -> Matrix:
    """Cross products v × s of every column s."""
    return ops.beside([motion_cross(ops, v, S[:, k : k + 1]) for k in range(S.shape[1])]) if S.shape[1] else ops.zeros(6, 0)


def _cross_matrix(ops: Arithmetic, v: Matrix) -> Matrix:
    """Matrix (6, 6) of m ↦ v × m; minus its transpose is that of f ↦ v ×* f."""
    turn = hat(ops, v[3:6, :])
    return ops.stack([ops.beside([turn, hat(ops, v[0:3, :])]), ops.beside([ops.zeros(3, 3), turn])])


def _force_matrix(ops: Arithmetic, f: Matrix) -> Matrix:
    """Matrix (6, 6) of m ↦ m ×* f."""
    push = -hat(ops, f[0:3, :])
    return ops.stack([ops.beside([ops.zeros(3, 3), push]), ops.beside([push, -hat(ops, f[3:6, :])])])
