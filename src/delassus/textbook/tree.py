"""The tree without constraints: recursive Newton–Euler, composite and articulated bodies, the direct inverse of M.

Every function takes a :class:`~delassus.textbook.Pose` and columns (nv, 1); parents come before children, so a forward sweep runs over
``range(n)`` and a backward sweep over ``reversed(range(n))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import ArgumentError
from .arithmetic import Matrix
from .robot import Pose, force_cross, hat

__all__ = ["aba", "crba", "mass_matrix_inverse", "rnea"]


def rnea(pose: Pose, v: Matrix, acceleration: Matrix) -> Matrix:
    """Recursive Newton–Euler: τ = M ν̇ + c. O(n).

        a_i = X_i a_π(i) + S_i ν̇_i + v_i × S_i ν_i,   f_i = H_i a_i + v_i ×* H_i v_i,   τ_i = S_iᵀ Σ_desc f

    Source: Luh, Walker, Paul (1980); Featherstone (2008), table 5.1.

    Args:
        pose: robot pose.
        v, acceleration: (nv, 1) velocities and accelerations ν̇.

    Returns:
        (nv, 1) joint forces τ.
    """
    pose.check(pose.nv, v=v, acceleration=acceleration)
    ops, parent = pose.ops, pose.parent
    n = len(parent)
    vel: list[Matrix] = []
    a: list[Matrix] = []
    f: list[Matrix] = []
    # forward: motions, and the forces they need
    for i in range(n):
        p, nu = parent[i], pose.velocities(i, v)
        m = pose.S[i] @ nu
        vel.append(m if p < 0 else pose.X[i] @ vel[p] + m)
        a.append(pose.X[i] @ (pose.a0 if p < 0 else a[p]) + pose.S[i] @ pose.velocities(i, acceleration) + pose.bias(i, vel[i], nu))
        f.append(pose.H[i] @ a[i] + force_cross(ops, vel[i], pose.H[i] @ vel[i]))
    # backward: forces across joints
    tau = ops.zeros(pose.nv, 1)
    for i in reversed(range(n)):
        link = pose.robot.links[i]
        tau[link.v : link.v + link.nv, :] = pose.S[i].T @ f[i] + pose.Ic[i] @ pose.velocities(i, acceleration)
        if parent[i] >= 0:
            f[parent[i]] = f[parent[i]] + pose.X[i].T @ f[i]
    return tau


def crba(pose: Pose, inertia: list[Matrix] | None = None) -> Matrix:
    """Composite rigid bodies: the mass matrix M. O(n d).

        H^c_i = H_i + Σ_γ(i) X_jᵀ H^c_j X_j,   M_ji = S_jᵀ X… H^c_i S_i for j above i

    Source: Walker, Orin (1982); Featherstone (2008), table 6.2.

    Args:
        pose: robot pose.
        inertia: inertias of the links; default: their own. Augmented ones give M + Jᵀ R J for rows that touch one link (constrained-dynamics paper, eq. 24).

    Returns:
        (nv, nv) M.
    """
    ops, parent = pose.ops, pose.parent
    Hc = list(pose.H if inertia is None else inertia)
    M = ops.zeros(pose.nv, pose.nv)
    for i in reversed(range(len(parent))):
        if parent[i] >= 0:
            Hc[parent[i]] = Hc[parent[i]] + ops.symmetric(pose.X[i].T @ Hc[i] @ pose.X[i])
        F = Hc[i] @ pose.S[i]
        at = _dofs(pose, i)
        M[at, at] = ops.symmetric(pose.S[i].T @ F) + pose.Ic[i]
        j = i
        while parent[j] >= 0:
            F = pose.X[j].T @ F
            j = parent[j]
            block = pose.S[j].T @ F
            M[_dofs(pose, j), at] = block
            M[at, _dofs(pose, j)] = block.T
    return M


def _dofs(pose: Pose, i: int) -> slice:
    link = pose.robot.links[i]
    return slice(link.v, link.v + link.nv)


@dataclass
class Articulated:
    """Articulated bodies: the factors of the elimination of all joints.

    Attributes:
        H: articulated inertia of each link; U = H S; D⁻¹ with D = Sᵀ U + armature.
    """

    H: list[Matrix]
    U: list[Matrix]
    Dinv: list[Matrix]


def articulated(pose: Pose, inertia: list[Matrix] | None = None) -> Articulated:
    """Articulated inertias of all links, backward: H_π += Xᵀ (H − U D⁻¹ Uᵀ) X. O(n)."""
    ops, parent = pose.ops, pose.parent
    H = list(pose.H if inertia is None else inertia)
    n = len(parent)
    U: list[Matrix] = [None] * n
    Dinv: list[Matrix] = [None] * n
    for i in reversed(range(n)):
        U[i] = H[i] @ pose.S[i]
        Dinv[i] = ops.inverse(ops.symmetric(pose.S[i].T @ U[i]) + pose.Ic[i])
        if parent[i] >= 0:
            Ha = ops.symmetric(H[i] - U[i] @ Dinv[i] @ U[i].T)
            H[parent[i]] = H[parent[i]] + ops.symmetric(pose.X[i].T @ Ha @ pose.X[i])
    return Articulated(H, U, Dinv)


def aba(pose: Pose, v: Matrix, tau: Matrix) -> Matrix:
    """Articulated bodies: ν̇ = M⁻¹ (τ − c). O(n).

        u = τ − Sᵀ p,   ν̇ = D⁻¹ (u − Uᵀ a'),   a = a' + S ν̇,   a' = X a_π + c

    Source: Featherstone (1983, 2008 table 7.1); Vereshchagin (1974).

    Args:
        pose: robot pose.
        v, tau: (nv, 1) velocities and joint forces.

    Returns:
        (nv, 1) accelerations ν̇.
    """
    pose.check(pose.nv, v=v, tau=tau)
    ops, parent = pose.ops, pose.parent
    n = len(parent)
    art = articulated(pose)
    vel: list[Matrix] = []
    c: list[Matrix] = []
    p: list[Matrix] = []
    # forward: velocities and bias forces
    for i in range(n):
        nu = pose.velocities(i, v)
        m = pose.S[i] @ nu
        vel.append(m if parent[i] < 0 else pose.X[i] @ vel[parent[i]] + m)
        c.append(pose.bias(i, vel[i], nu))
        p.append(force_cross(ops, vel[i], pose.H[i] @ vel[i]))
    # backward: bias forces of subtrees
    u: list[Matrix] = [None] * n
    for i in reversed(range(n)):
        u[i] = pose.velocities(i, tau) - pose.S[i].T @ p[i]
        if parent[i] >= 0:
            Dinv_U = art.Dinv[i] @ art.U[i].T
            p[parent[i]] = p[parent[i]] + pose.X[i].T @ (p[i] + art.H[i] @ c[i] + Dinv_U.T @ (u[i] - art.U[i].T @ c[i]))
    # forward: accelerations
    out = ops.zeros(pose.nv, 1)
    a: list[Matrix] = []
    for i in range(n):
        shifted = pose.X[i] @ (pose.a0 if parent[i] < 0 else a[parent[i]]) + c[i]
        nudot = art.Dinv[i] @ (u[i] - art.U[i].T @ shifted)
        a.append(shifted + pose.S[i] @ nudot)
        out[_dofs(pose, i), :] = nudot
    return out


def mass_matrix_inverse(pose: Pose, form: Literal["replaced", "printed"] = "replaced") -> Matrix:
    """Direct inverse of the mass matrix, by articulated bodies on all columns together. O(n²).

        M⁻¹[i, :] = D⁻¹ (1 − Sᵀ F_i − Uᵀ X P_π),   F: bias force columns,   P: acceleration columns

    The printed line 14 passes only U_i M⁻¹[i, sub] to the parent. The part that link i received from its subtree must be passed on too, so there are two ways to read it:

        printed    F in one frame for all links, and one array: F_i is already in F_π, F += U_i M⁻¹[i, sub]
        replaced   F_i in link frames: F^a = F_i + U_i M⁻¹[i, sub],  F_π += Xᵀ F^a

    Source: Carpentier (2018), algorithm 1, with the note on line 14.

    Args:
        pose: robot pose.
        form: form of line 14.

    Returns:
        (nv, nv) M⁻¹, symmetric.
    """
    if form not in ("replaced", "printed"):
        raise ArgumentError(f"form: expected 'replaced' or 'printed', got {form!r}.")
    return _inverse_in_link_frames(pose) if form == "replaced" else _inverse_in_one_frame(pose)


def _inverse_in_link_frames(pose: Pose) -> Matrix:
    ops, parent, nv = pose.ops, pose.parent, pose.nv
    n = len(parent)
    art, end = articulated(pose), _subtree_ends(pose)  # 9, 10, 15, 16
    Minv = ops.zeros(nv, nv)
    F = [ops.zeros(6, nv) for _ in range(n)]
    for i in reversed(range(n)):  # 8
        at = _dofs(pose, i)
        sub, below = slice(at.start, end[i]), slice(at.stop, end[i])
        Minv[at, at] = art.Dinv[i]  # 11
        Minv[at, below] = -(art.Dinv[i] @ (pose.S[i].T @ F[i][:, below]))  # 12
        if parent[i] >= 0:  # 13
            Fa = F[i][:, sub] + art.U[i] @ Minv[at, sub]  # 14, replaced
            F[parent[i]][:, sub] = F[parent[i]][:, sub] + pose.X[i].T @ Fa
    P = [ops.zeros(6, nv) for _ in range(n)]
    for i in range(n):  # 20
        at = _dofs(pose, i)
        rest = slice(at.start, nv)
        if parent[i] >= 0:  # 21
            above = pose.X[i] @ P[parent[i]][:, rest]
            Minv[at, rest] = Minv[at, rest] - (art.Dinv[i] @ art.U[i].T) @ above  # 22
        P[i][:, rest] = pose.S[i] @ Minv[at, rest]  # 24
        if parent[i] >= 0:  # 25
            P[i][:, rest] = P[i][:, rest] + above  # 26
    return ops.symmetric(Minv)


def _inverse_in_one_frame(pose: Pose) -> Matrix:
    ops, parent, nv = pose.ops, pose.parent, pose.nv
    n = len(parent)
    art, end = articulated(pose), _subtree_ends(pose)  # 9, 10, 15, 16
    # S and U in the world's frame: motions by [[R, [p]× R], [0, R]], forces by [[R, 0], [[p]× R, R]]
    S, U = [], []
    for i, (R, p) in enumerate(pose.placements):
        pR = hat(ops, p) @ R
        S.append(ops.stack([R @ pose.S[i][0:3, :] + pR @ pose.S[i][3:6, :], R @ pose.S[i][3:6, :]]))
        U.append(ops.stack([R @ art.U[i][0:3, :], pR @ art.U[i][0:3, :] + R @ art.U[i][3:6, :]]))
    Minv, F = ops.zeros(nv, nv), ops.zeros(6, nv)
    for i in reversed(range(n)):  # 8
        at = _dofs(pose, i)
        sub, below = slice(at.start, end[i]), slice(at.stop, end[i])
        Minv[at, at] = art.Dinv[i]  # 11
        Minv[at, below] = -(art.Dinv[i] @ (S[i].T @ F[:, below]))  # 12
        if parent[i] >= 0:  # 13
            F[:, sub] = F[:, sub] + U[i] @ Minv[at, sub]  # 14, printed
    P = [ops.zeros(6, nv) for _ in range(n)]
    for i in range(n):  # 20
        at = _dofs(pose, i)
        rest = slice(at.start, nv)
        if parent[i] >= 0:  # 21
            Minv[at, rest] = Minv[at, rest] - (art.Dinv[i] @ U[i].T) @ P[parent[i]][:, rest]  # 22
        P[i][:, rest] = S[i] @ Minv[at, rest]  # 24
        if parent[i] >= 0:  # 25
            P[i][:, rest] = P[i][:, rest] + P[parent[i]][:, rest]  # 26
    return ops.symmetric(Minv)


def _subtree_ends(pose: Pose) -> list[int]:
    """One past the last velocity of each link's subtree."""
    end = [link.v + link.nv for link in pose.robot.links]
    for i in reversed(range(len(end))):
        if pose.parent[i] >= 0:
            end[pose.parent[i]] = max(end[pose.parent[i]], end[i])
    return end
