"""G and its damped inverse as operators, never formed; any rows, loops included.

Source of all: "Matrix-free Delassus operations" (Sathya, Montaut, de Mont-Marin, Carpentier), the matrix-free paper, algorithms 1 to 4 and sections IV-D, V-D.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arithmetic import Matrix, Scalar
from .inverse import per_row
from .robot import Pose
from .rows import Rows
from .tree import _dofs, articulated

__all__ = [
    "block_damped_inverse_apply",
    "damped_inverse_apply",
    "delassus_apply",
    "jacobian_apply",
    "jacobian_transpose_apply",
    "loop_inverse_apply",
    "mass_inverse_apply",
]


# ---- the product -----------------------------------------------------------------------------------------------------------


def _link_forces(pose: Pose, rows: Rows, x: Matrix) -> list[Matrix]:
    """K_eᵀ λ_e, summed on links: lines 1 to 4 of algorithm 1."""
    f = [pose.ops.zeros(6, x.shape[1]) for _ in pose.parent]
    for block in rows.blocks:  # 2
        for i, K in block.K.items():  # 3
            f[i] = f[i] + K.T @ x[block.at, :]  # 4
    return f


def _joint_forces(pose: Pose, rows: Rows, x: Matrix) -> Matrix:
    """𝒦ᵀ λ of rows of joints: lines 5 and 6 of algorithm 1."""
    tau = pose.ops.zeros(pose.nv, x.shape[1])
    for block in rows.blocks:  # 5
        for r, v, c in block.joints:
            row = block.first + r
            tau[v : v + 1, :] = tau[v : v + 1, :] + x[row : row + 1, :] * c  # 6
    return tau


def _row_accelerations(pose: Pose, rows: Rows, a: list[Matrix], nudot: Matrix) -> Matrix:
    """Σ K a of links and 𝒦 ν̇ of joints: lines 4 to 8 of algorithm 3."""
    ops, out = pose.ops, []
    for block in rows.blocks:  # 4
        y = ops.zeros(block.rows, nudot.shape[1])
        for i, K in block.K.items():  # 5
            y = y + K @ a[i]  # 6
        for r, v, c in block.joints:  # 7
            y[r : r + 1, :] = nudot[v : v + 1, :] * c  # 8
        out.append(y)
    return ops.stack(out) if out else ops.zeros(0, nudot.shape[1])


def jacobian_transpose_apply(pose: Pose, rows: Rows, x: Matrix) -> Matrix:
    """Jᵀ x by one backward sweep, like the forces of Newton–Euler. O(n + m).

    Source: matrix-free paper, algorithm 1.

    Args:
        pose: robot pose.
        rows: constraint rows.
        x: (m, k) forces of the rows.

    Returns:
        (nv, k) joint forces.
    """
    pose.check(rows.m, x=x)
    f, tau = _link_forces(pose, rows, x), _joint_forces(pose, rows, x)
    for i in reversed(range(len(pose.parent))):  # 7
        at, p = _dofs(pose, i), pose.parent[i]
        tau[at, :] = tau[at, :] + pose.S[i].T @ f[i]  # 8
        if p >= 0:  # 9
            f[p] = f[p] + pose.X[i].T @ f[i]  # 10
    return tau


def mass_inverse_apply(pose: Pose, tau: Matrix) -> Matrix:
    """M⁻¹ τ by articulated bodies without bias. O(n).

    Source: matrix-free paper, algorithm 2.

    Args:
        pose: robot pose.
        tau: (nv, k) joint forces.

    Returns:
        (nv, k) accelerations.
    """
    pose.check(pose.nv, tau=tau)
    zero = [pose.ops.zeros(6, tau.shape[1]) for _ in pose.parent]
    return _two_sweeps(pose, zero, tau)[0]


def _two_sweeps(pose: Pose, f: list[Matrix], tau: Matrix) -> tuple[Matrix, list[Matrix]]:
    """ν̇ and a of the free robot under forces f on links and τ on joints.

    f is the force on a link, so the signs of f in line 3, and hence in line 6, are reversed.
    """
    ops, parent = pose.ops, pose.parent
    n = len(parent)
    art = articulated(pose)  # 4, 7
    u: list[Matrix] = [None] * n
    for i in reversed(range(n)):  # 2
        u[i] = tau[_dofs(pose, i), :] + pose.S[i].T @ f[i]  # 3
        if parent[i] >= 0:  # 5
            f[parent[i]] = f[parent[i]] + pose.X[i].T @ (f[i] - art.U[i] @ (art.Dinv[i] @ u[i]))  # 6
    nudot, a = ops.zeros(pose.nv, tau.shape[1]), []
    for i in range(n):  # 8
        if parent[i] < 0:
            step = art.Dinv[i] @ u[i]
            a.append(pose.S[i] @ step)
        else:
            above = pose.X[i] @ a[parent[i]]
            step = art.Dinv[i] @ (u[i] - art.U[i].T @ above)  # 9
            a.append(above + pose.S[i] @ step)  # 10
        nudot[_dofs(pose, i), :] = step
    return nudot, a


def jacobian_apply(pose: Pose, rows: Rows, nudot: Matrix) -> Matrix:
    """J ν̇ by one forward sweep. O(n + m).

    Source: matrix-free paper, algorithm 3.

    Args:
        pose: robot pose.
        rows: constraint rows.
        nudot: (nv, k) accelerations, or velocities.

    Returns:
        (m, k) accelerations of the rows.
    """
    pose.check(pose.nv, nudot=nudot)
    a: list[Matrix] = []
    for i, p in enumerate(pose.parent):  # 2
        own = pose.S[i] @ nudot[_dofs(pose, i), :]
        a.append(own if p < 0 else pose.X[i] @ a[p] + own)  # 3
    return _row_accelerations(pose, rows, a, nudot)


def delassus_apply(pose: Pose, rows: Rows, x: Matrix) -> Matrix:
    """G x by two sweeps: algorithms 1 to 3 with their sweeps merged. O(n + m).

        K_eᵀ x on links → articulated bodies → K_e a

    Source: matrix-free paper, section IV-D.

    Args:
        pose: robot pose.
        rows: constraint rows.
        x: (m, k) forces of the rows.

    Returns:
        (m, k) G x.
    """
    pose.check(rows.m, x=x)
    nudot, a = _two_sweeps(pose, _link_forces(pose, rows, x), _joint_forces(pose, rows, x))
    return _row_accelerations(pose, rows, a, nudot)


# ---- the inverse -----------------------------------------------------------------------------------------------------------


@dataclass
class LoopFactor:
    """The factor of M + Jᵀ R J after all joints are eliminated.

    Attributes:
        order: elimination order, 𝓢^E.
        Dinv: inverse pivot of each joint.
        W: {j: W_j} of the boundary of each joint: the parent and the links that it was coupled with.
    """

    order: list[int]
    Dinv: list[Matrix]
    W: list[dict[int, Matrix]]


def loop_factor(pose: Pose, rows: Rows, R: list[Scalar]) -> LoopFactor:
    """Eliminate all joints of M + Jᵀ R J, leaves first, the link with the fewest neighbours next: the backward sweep of algorithm 4.

    Written as merge, then downdate, without a special case for a parent that is a neighbour (lines 22 to 30 of the listing):

        W_j = H_ji S,   W_π = (Xᵀ H_ii + H_πi) S
        H_ππ += Xᵀ H_ii X + Xᵀ H_iπ + H_πi X,   H_πj += Xᵀ H_ij
        H_jk −= W_j D⁻¹ W_kᵀ        for all j, k of the boundary
    """
    ops, parent = pose.ops, pose.parent
    n = len(parent)
    H: list[dict[int, Matrix]] = [{i: pose.H[i]} for i in range(n)]  # 1; H[i][j] is H_ij
    D = list(pose.Ic)
    for block in rows.blocks:  # 3
        weight = ops.diagonal(R[block.at])
        for i, K in block.K.items():
            for j, Kj in block.K.items():  # 5
                term = K.T @ weight @ Kj
                H[i][j] = H[i][j] + term if j in H[i] else term  # 4, 6 to 9
        for r, v, c in block.joints:  # 10
            i = next(k for k, link in enumerate(pose.robot.links) if link.v <= v < link.v + link.nv)
            unit = ops.zeros(pose.robot.links[i].nv, pose.robot.links[i].nv)
            unit[v - pose.robot.links[i].v, v - pose.robot.links[i].v] = R[block.first + r] * (c * c)
            D[i] = D[i] + unit  # 11
    waiting = [len(children) for children in pose.children]
    ready = {i for i in range(n) if not waiting[i]}
    factor = LoopFactor([], [None] * n, [{} for _ in range(n)])
    while ready:  # 13
        i = min(ready, key=lambda k: (len(H[k]), -k))
        ready.remove(i)
        factor.order.append(i)
        p, S, X = parent[i], pose.S[i], pose.X[i]
        others = [j for j in H[i] if j not in (i, p)]
        factor.Dinv[i] = ops.inverse(ops.symmetric(S.T @ H[i][i] @ S) + D[i])  # 15
        W = factor.W[i] = {j: H[i][j].T @ S for j in others}
        if p >= 0:
            up = X.T @ H[i][i]
            W[p] = up @ S + H[i][p].T @ S if p in H[i] else up @ S
            gain = up @ X  # merge
            if p in H[i]:
                side = X.T @ H[i][p]
                gain = gain + side + side.T
            H[p][p] = ops.symmetric(H[p][p] + gain)
            for j in others:
                moved = X.T @ H[i][j]  # 23
                H[p][j] = H[p][j] + moved if j in H[p] else moved
                H[j][p] = H[p][j].T
        for j in W:
            H[j].pop(i, None)  # 18
            WD = W[j] @ factor.Dinv[i]
            for k in W:  # 19 to 21, 25, 27
                if k >= j:
                    change = WD @ W[k].T
                    if j == k:
                        H[j][j] = ops.symmetric(H[j][j] - change)
                    else:
                        H[j][k] = H[j][k] - change if k in H[j] else -change
        for j in W:  # 28
            for k in W:
                if k > j:
                    H[k][j] = H[j][k].T
        if p >= 0:
            waiting[p] -= 1
            if not waiting[p]:
                ready.add(p)
    return factor


def loop_solve(pose: Pose, factor: LoopFactor, f: list[Matrix], tau: Matrix) -> tuple[Matrix, list[Matrix]]:
    """ν̇ and a of (M + Jᵀ R J) ν̇ = τ + Σ J_iᵀ f_i: the sweeps of algorithm 4 for a right-hand side."""
    ops, parent = pose.ops, pose.parent
    u: list[Matrix] = [None] * len(parent)
    for i in factor.order:  # 13
        u[i] = tau[_dofs(pose, i), :] + pose.S[i].T @ f[i]  # 14
        step = factor.Dinv[i] @ u[i]
        if parent[i] >= 0:
            f[parent[i]] = f[parent[i]] + pose.X[i].T @ f[i]  # 32
        for j, W in factor.W[i].items():
            f[j] = f[j] - W @ step  # 24, 32
    nudot = ops.zeros(pose.nv, tau.shape[1])
    a: list[Matrix] = [None] * len(parent)
    for i in reversed(factor.order):  # 34
        for j, W in factor.W[i].items():  # 35
            u[i] = u[i] - W.T @ a[j]  # 36
        step = factor.Dinv[i] @ u[i]  # 37
        own = pose.S[i] @ step
        a[i] = own if parent[i] < 0 else pose.X[i] @ a[parent[i]] + own  # 38
        nudot[_dofs(pose, i), :] = step
    return nudot, a


def loop_inverse_apply(pose: Pose, rows: Rows, damping: Any, tau: Matrix) -> Matrix:
    """(M + Jᵀ R J)⁻¹ τ with R = ε⁻¹, by elimination along tree and loops. O(n + m) with loops that share no joints.

    Source: matrix-free paper, algorithm 4.

    Args:
        pose: robot pose.
        rows: constraint rows.
        damping: ε, a scalar or one per row.
        tau: (nv, k) joint forces.

    Returns:
        (nv, k) accelerations.
    """
    pose.check(pose.nv, tau=tau)
    factor = loop_factor(pose, rows, [1.0 / x for x in per_row(rows, damping)])
    zero = [pose.ops.zeros(6, tau.shape[1]) for _ in pose.parent]
    return loop_solve(pose, factor, zero, tau)[0]


def damped_inverse_apply(pose: Pose, rows: Rows, damping: Any, y: Matrix) -> Matrix:
    """(G + ε)⁻¹ y by two sweeps: the four steps of section V-B, their sweeps merged with algorithm 4's. O(n + m) with loops that share no joints.

        λ_R = R y,   (M + Jᵀ R J) ν̇ = Jᵀ λ_R,   λ = λ_R − R J ν̇

    Source: matrix-free paper, sections V-B and V-D.

    Args:
        pose: robot pose.
        rows: constraint rows.
        damping: ε, a scalar or one per row.
        y: (m, k) right-hand sides.

    Returns:
        (m, k) x of (G + ε) x = y.
    """
    pose.check(rows.m, y=y)
    R = [1.0 / x for x in per_row(rows, damping)]
    weight = pose.ops.diagonal(R)
    forces = weight @ y
    nudot, a = loop_solve(pose, loop_factor(pose, rows, R), _link_forces(pose, rows, forces), _joint_forces(pose, rows, forces))
    return forces - weight @ _row_accelerations(pose, rows, a, nudot)


# ---- the inverse with blocks -------------------------------------------------------------------------------------------------


@dataclass
class BlockFactor:
    """The factor of M + Jᵀ B J, which is not symmetric if B is not: as :class:`LoopFactor`, with Z_j for accelerations where W_j is for forces."""

    order: list[int]
    Dinv: list[Matrix]
    W: list[dict[int, Matrix]]
    Z: list[dict[int, Matrix]]


def block_factor(pose: Pose, rows: Rows, B: list[Matrix]) -> BlockFactor:
    """Eliminate all joints of M + Jᵀ B J, B a square block per constraint: the rule of :func:`loop_factor` with H_ij and H_ji stored separately.

    Pivots are taken in that order, whatever their size:

        W_j = H_ji S,   Z_j = H_ijᵀ S,   W_π = (Xᵀ H_ii + H_πi) S,   Z_π = (Xᵀ H_iiᵀ + H_iπᵀ) S
        H_ππ += Xᵀ H_ii X + Xᵀ H_iπ + H_πi X,   H_πj += Xᵀ H_ij,   H_jπ += H_ji X
        H_jk −= W_j D⁻¹ Z_kᵀ        for all j, k of the boundary
    """
    ops, parent = pose.ops, pose.parent
    n = len(parent)
    H: list[dict[int, Matrix]] = [{i: pose.H[i]} for i in range(n)]
    D = list(pose.Ic)

    def add(i: int, j: int, term: Matrix) -> None:
        H[i][j] = H[i][j] + term if j in H[i] else term

    # K_iᵀ B K_j of links; a row of a joint has its diagonal entry
    for block, weight in zip(rows.blocks, B, strict=True):
        for i, K in block.K.items():
            for j, Kj in block.K.items():
                add(i, j, K.T @ weight @ Kj)
        for r, v, c in block.joints:
            i = next(k for k, link in enumerate(pose.robot.links) if link.v <= v < link.v + link.nv)
            unit = ops.zeros(pose.robot.links[i].nv, pose.robot.links[i].nv)
            unit[v - pose.robot.links[i].v, v - pose.robot.links[i].v] = weight[r, r] * (c * c)
            D[i] = D[i] + unit
    waiting = [len(children) for children in pose.children]
    ready = {i for i in range(n) if not waiting[i]}
    factor = BlockFactor([], [None] * n, [{} for _ in range(n)], [{} for _ in range(n)])
    while ready:
        i = min(ready, key=lambda k: (len(H[k]), -k))
        ready.remove(i)
        factor.order.append(i)
        p, S, X = parent[i], pose.S[i], pose.X[i]
        others = [j for j in H[i] if j not in (i, p)]
        factor.Dinv[i] = Dinv = ops.inverse_of_any(S.T @ H[i][i] @ S + D[i])
        W = factor.W[i] = {j: H[j][i] @ S for j in others}
        Z = factor.Z[i] = {j: H[i][j].T @ S for j in others}
        if p >= 0:
            W[p], Z[p] = X.T @ H[i][i] @ S, X.T @ H[i][i].T @ S
            add(p, p, X.T @ H[i][i] @ X)
            if p in H[i]:
                W[p], Z[p] = W[p] + H[p][i] @ S, Z[p] + H[i][p].T @ S
                add(p, p, X.T @ H[i][p] + H[p][i] @ X)
            for j in others:
                add(p, j, X.T @ H[i][j])
                add(j, p, H[j][i] @ X)
        for j in W:
            H[j].pop(i, None)
            for k in Z:
                add(j, k, -(W[j] @ Dinv @ Z[k].T))
        if p >= 0:
            waiting[p] -= 1
            if not waiting[p]:
                ready.add(p)
    return factor


def block_solve(pose: Pose, factor: BlockFactor, f: list[Matrix], tau: Matrix) -> tuple[Matrix, list[Matrix]]:
    """ν̇ and a of (M + Jᵀ B J) ν̇ = τ + Σ J_iᵀ f_i, as :func:`loop_solve`; exchanging W and Z, with D⁻ᵀ, would give the transposed matrix."""
    ops, parent = pose.ops, pose.parent
    u: list[Matrix] = [None] * len(parent)
    for i in factor.order:
        u[i] = tau[_dofs(pose, i), :] + pose.S[i].T @ f[i]
        if parent[i] >= 0:
            f[parent[i]] = f[parent[i]] + pose.X[i].T @ f[i]
        for j, W in factor.W[i].items():
            f[j] = f[j] - W @ (factor.Dinv[i] @ u[i])
    nudot = ops.zeros(pose.nv, tau.shape[1])
    a: list[Matrix] = [None] * len(parent)
    for i in reversed(factor.order):
        for j, Z in factor.Z[i].items():
            u[i] = u[i] - Z.T @ a[j]
        step = factor.Dinv[i] @ u[i]
        own = pose.S[i] @ step
        a[i] = own if parent[i] < 0 else pose.X[i] @ a[parent[i]] + own
        nudot[_dofs(pose, i), :] = step
    return nudot, a


def block_damped_inverse_apply(pose: Pose, rows: Rows, blocks: list[Matrix], y: Matrix) -> Matrix:
    """(G + D)⁻¹ y with a square block of D per constraint, symmetric or not, as :func:`damped_inverse_apply`. O(n + m) with loops that share no joints.

        λ_B = B y,   (M + Jᵀ B J) ν̇ = Jᵀ λ_B,   λ = λ_B − B J ν̇,   B = D⁻¹ block by block

    Pivots are taken in order, so D should not be far from positive: xᵀ D x > 0.

    Args:
        pose: robot pose.
        rows: constraint rows.
        blocks: (r, r) per constraint of r rows; diagonal for rows of joints.
        y: (m, k) right-hand sides.

    Returns:
        (m, k) x of (G + D) x = y.
    """
    pose.check(rows.m, y=y)
    ops = pose.ops
    B = [ops.inverse_of_any(D) for D in blocks]

    def weigh(x: Matrix) -> Matrix:
        return ops.stack([weight @ x[block.at, :] for block, weight in zip(rows.blocks, B, strict=True)]) if B else x

    forces = weigh(y)
    nudot, a = block_solve(pose, block_factor(pose, rows, B), _link_forces(pose, rows, forces), _joint_forces(pose, rows, forces))
    return forces - weigh(_row_accelerations(pose, rows, a, nudot))
