"""The Delassus matrix G = J M⁻¹ Jᵀ, also called the inverse operational-space inertia matrix.

All take any rows. To the recursive ones, :func:`kjr`, :func:`efpa`, :func:`pv_osim` and :func:`pv_osimr`, a row that touches several links counts as several end-effectors:
G_ef = Σ_i Σ_j K_eⁱ Ω_ij K_fʲᵀ. In link frames the propagator of accelerations from π(i) to i, the papers' ^π(i)P_iᵀ, comes with the change of frame:

    (1 − S_i D_i⁻¹ U_iᵀ) X_i,   U_i = H^A_i S_i,   D_i = S_iᵀ U_i

Source of all: "PV-OSIMr: a lowest order complexity algorithm for computing the Delassus matrix" (Sathya, Decré, Swevers), the PV-OSIMr paper.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .arithmetic import Arithmetic, Matrix, Scalar
from .robot import Pose
from .rows import End, Rows
from .tree import Articulated, _dofs, articulated, crba

__all__ = ["efpa", "kjr", "ltl_osim", "pv_osim", "pv_osimr"]


# ---- joint space -----------------------------------------------------------------------------------------------------------


def jacobian(pose: Pose, rows: Rows) -> tuple[Matrix, list[set[int]]]:
    """J (m, nv) by propagating every K to the ground, and the velocities on which each block depends."""
    J = pose.ops.zeros(rows.m, pose.nv)
    support: list[set[int]] = []
    for block in rows.blocks:
        touched = {v for _, v, _ in block.joints}
        for r, v, c in block.joints:
            J[block.first + r, v] = c
        for i, K in block.K.items():
            for j in pose.ancestors(i):
                at = _dofs(pose, j)
                J[block.at, at] = J[block.at, at] + K @ pose.S[j]
                K = K @ pose.X[j]
                touched |= set(range(at.start, at.stop))
        support.append(touched)
    return J, support


@dataclass
class SparseFactor:
    """L of LᵀL = M. Row i has entries only for the velocities above i, like M (branch-induced sparsity).

    Attributes:
        L: {j: L_ij} per row; the diagonal is stored as reciprocals.
        above: velocities above each velocity, nearest first.
    """

    L: list[dict[int, Scalar]]
    above: list[list[int]]


def ltl(pose: Pose, M: Matrix, above: list[list[int]] | None = None) -> SparseFactor:
    """Factor LᵀL = M from the leaves, without fill. O(n d²).

    Source: Featherstone (2005); PV-OSIMr paper, eq. 4.
    """
    root = pose.ops.root
    above = dofs_above(pose) if above is None else above
    L: list[dict[int, Scalar]] = [{i: M[i, i]} | {j: M[i, j] for j in above[i]} for i in range(pose.nv)]
    for k in reversed(range(pose.nv)):
        L[k][k] = 1.0 / root(L[k][k])
        for i in above[k]:
            L[k][i] = L[k][i] * L[k][k]
        for i in above[k]:
            for j in [i, *above[i]]:
                L[i][j] = L[i][j] - L[k][i] * L[k][j]
    return SparseFactor(L, above)


def dofs_above(pose: Pose) -> list[list[int]]:
    """Velocities that carry each velocity, nearest first."""
    out: list[list[int]] = [[] for _ in range(pose.nv)]
    for i, link in enumerate(pose.robot.links):
        path = [v for j in pose.ancestors(i)[1:] for v in reversed(range(_dofs(pose, j).start, _dofs(pose, j).stop))]
        for v in range(link.v, link.v + link.nv):
            out[v] = [*reversed(range(link.v, v)), *path]
    return out


def half_solve(pose: Pose, factor: SparseFactor, b: Matrix) -> list[Scalar]:
    """L⁻ᵀ b of a column, from the leaves."""
    x = [b[i, 0] for i in range(pose.nv)]
    for i in reversed(range(pose.nv)):
        x[i] = x[i] * factor.L[i][i]
        for j in factor.above[i]:
            x[j] = x[j] - factor.L[i][j] * x[i]
    return x


def other_half(pose: Pose, factor: SparseFactor, x: list[Scalar]) -> Matrix:
    """L⁻¹ x of a column, from the roots."""
    for i in range(pose.nv):
        for j in factor.above[i]:
            x[i] = x[i] - factor.L[i][j] * x[j]
        x[i] = x[i] * factor.L[i][i]
    return pose.ops.matrix([[y] for y in x])


def rows_times_inverse(factor: SparseFactor, y: dict[int, Scalar]) -> dict[int, Scalar]:
    """Row times L⁻¹, in place; its pattern is preserved if it is closed upwards."""
    for i in sorted(y, reverse=True):
        y[i] = y[i] * factor.L[i][i]
        for j in factor.above[i]:
            y[j] = y[j] - factor.L[i][j] * y[i]
    return y


def ltl_osim(pose: Pose, rows: Rows) -> Matrix:
    """G by the sparse factor of the mass matrix; any rows. O(n d² + m d² + m² d).

        LᵀL = M,   Y = J L⁻¹,   G = Y Yᵀ

    Source: PV-OSIMr paper, eqs. 4 to 6; Featherstone (2010); with loops Carpentier, Budhiraja, Mansard (2021).

    Args:
        pose: robot pose.
        rows: constraint rows.

    Returns:
        (m, m) G.
    """
    J, support = jacobian(pose, rows)
    factor = ltl(pose, crba(pose))  # 4
    return gram(pose, rows_of_y(rows, factor, J, support))


def rows_of_y(rows: Rows, factor: SparseFactor, J: Matrix, support: list[set[int]]) -> list[dict[int, Scalar]]:
    """Y = J L⁻¹ as sparse rows: eq. 5."""
    return [
        rows_times_inverse(factor, {v: J[k, v] for v in pattern.union(*(factor.above[v] for v in pattern))})
        for block, pattern in zip(rows.blocks, support, strict=True)
        for k in range(block.first, block.first + block.rows)
    ]


def gram(pose: Pose, Y: list[dict[int, Scalar]]) -> Matrix:
    """Y Yᵀ of sparse rows: eq. 6."""
    m = len(Y)
    G: list[list[Scalar]] = [[0.0] * m for _ in range(m)]
    for i in range(m):
        for j in range(i, m):
            for v in sorted(Y[i].keys() & Y[j].keys()):
                G[i][j] = G[i][j] + Y[i][v] * Y[j][v]
            G[j][i] = G[i][j]
    return pose.ops.matrix(G) if m else pose.ops.zeros(0, 0)


# ---- recursive -------------------------------------------------------------------------------------------------------------


def pass_up(pose: Pose, art: Articulated, i: int, K: Matrix) -> Matrix:
    """K ^π(i)P_iᵀ: rows on link i become rows on its parent, with joint i free. One column of S: a rank-one correction."""
    return (K - (K @ pose.S[i]) @ (art.Dinv[i] @ art.U[i].T)) @ pose.X[i]


def pass_down(pose: Pose, art: Articulated, i: int, a: Matrix) -> Matrix:
    """^π(i)P_iᵀ a: accelerations of the parent become accelerations of link i."""
    a = pose.X[i] @ a
    return a - pose.S[i] @ (art.Dinv[i] @ (art.U[i].T @ a))


def kjr(pose: Pose, rows: Rows) -> Matrix:
    """G by the Kreutz–Jain–Rodriguez recursion: Ω of every link, then every pair along its path. O(n + m² d).

        Ω_i = P_iᵀ Ω_π P_i + S D⁻¹ Sᵀ,   Ω_ij = P_iᵀ Ω_π(i)j,   G_ij = K_i Ω_ij K_jᵀ

    Source: Kreutz-Delgado, Jain, Rodriguez (1992), in the notation of the PV-OSIMr paper, eqs. 11 and 13.

    Args:
        pose: robot pose.
        rows: constraint rows.

    Returns:
        (m, m) G.
    """
    ops, parent = pose.ops, pose.parent
    ends = rows.ends()
    art = articulated(pose)
    supports = {j for end in ends for j in pose.ancestors(end.link)}
    Omega: dict[int, Matrix] = {}
    for i in sorted(supports):  # spatial inverse inertia of every link that supports an end-effector
        own = pose.S[i] @ art.Dinv[i] @ pose.S[i].T
        if parent[i] < 0:
            Omega[i] = own
        else:
            half = pass_down(pose, art, i, Omega[parent[i]])
            Omega[i] = ops.symmetric(pass_down(pose, art, i, half.T) + own)
    G = {}
    for n, (i, Ki, _) in enumerate(ends):
        for k, (j, Kj, _) in enumerate(ends[n:]):
            c = cca(pose, i, j)
            if c is None:
                continue
            T = Kj  # K_j back to the common ancestor
            for link in between(pose, c, j):
                T = pass_up(pose, art, link, T)
            T = Omega[c] @ T.T
            for link in reversed(between(pose, c, i)):  # and its acceleration down to link i
                T = pass_down(pose, art, link, T)
            G[n, n + k] = ops.symmetric(Ki @ T) if k == 0 else Ki @ T
    return ops.assemble(rows.sizes, sum_ends(ends, G))


def sum_ends(ends: list[End], found: dict[tuple[int, int], Matrix]) -> dict[tuple[int, int], Matrix]:
    """Upper blocks of G from those of all pairs of end-effectors, i ≤ j: constraints that touch several links have several end-effectors."""
    G: dict[tuple[int, int], Matrix] = {}
    for (i, j), block in found.items():
        a, b = ends[i].block, ends[j].block
        if a > b:
            a, b, block = b, a, block.T
        elif a == b and i != j:
            block = block + block.T
        G[a, b] = G[a, b] + block if (a, b) in G else block
    return G


def cca(pose: Pose, i: int, j: int) -> int | None:
    """Closest common ancestor of two links; None if they are in different trees."""
    other = set(pose.ancestors(j))
    return next((k for k in pose.ancestors(i) if k in other), None)


def between(pose: Pose, c: int, i: int) -> list[int]:
    """Links from i up to c, excluding c."""
    path = pose.ancestors(i)
    return path[: path.index(c)]


def efpa(pose: Pose, rows: Rows) -> Matrix:
    """G by extended force propagators: every end-effector's force is propagated to every link above it. O(n + m d + m²).

        ^πK_j = ^iK_j ^πP_iᵀ,   (⁰Ω_i ^iK_jᵀ) = ^πP_iᵀ (⁰Ω_π ^πK_jᵀ) + ^πΩ_i ^iK_jᵀ,   G_ij = ^ccaK_i (⁰Ω_cca ^ccaK_jᵀ)

    Source: PV-OSIMr paper, algorithm 2; Wensing, Featherstone, Orin (2012).

    Args:
        pose: robot pose.
        rows: constraint rows.

    Returns:
        (m, m) G.
    """
    ops, parent = pose.ops, pose.parent
    ends = rows.ends()
    art = articulated(pose)  # 1, 2, 5 to 9
    K: list[dict[int, Matrix]] = [{} for _ in parent]  # ^iK_j
    for j, (i, Kj, _) in enumerate(ends):  # 3
        K[i][j] = Kj  # 4
    for i in reversed(range(len(parent))):  # 5
        if parent[i] >= 0:  # 7
            for j, Kj in K[i].items():  # 10
                K[parent[i]][j] = pass_up(pose, art, i, Kj)  # 11
    Omega_K: list[dict[int, Matrix]] = [{} for _ in parent]
    for i in range(len(parent)):  # 12
        for j, Kj in K[i].items():  # 13
            own = pose.S[i] @ (art.Dinv[i] @ (Kj @ pose.S[i]).T)
            if parent[i] >= 0:  # 14
                Omega_K[i][j] = pass_down(pose, art, i, Omega_K[parent[i]][j]) + own  # 15
            else:
                Omega_K[i][j] = own  # 17
    G = {}
    for a, (i, _, _) in enumerate(ends):  # 18
        for b in range(a, len(ends)):
            c = cca(pose, i, ends[b].link)
            if c is not None:
                block = K[c][a] @ Omega_K[c][b]  # 19
                G[a, b] = ops.symmetric(block) if a == b else block
    return ops.assemble(rows.sizes, sum_ends(ends, G))


def pv_osim(pose: Pose, rows: Rows) -> Matrix:
    """G by the backward sweep of Popov and Vereshchagin: all rows of a subtree are propagated together. O(n + m² d).

        K^A_π ← [K^A_π; K^A_i ^πP_iᵀ],   L^A_π ← diag(L^A_π, L^A_i + K^A_i S D⁻¹ Sᵀ K^A_iᵀ),   G = L^A_0

    Source: PV-OSIMr paper, algorithm 1; Sathya et al. (2024).

    Args:
        pose: robot pose.
        rows: constraint rows.

    Returns:
        (m, m) G.
    """
    ends = rows.ends()
    art = articulated(pose)  # 2, 7 to 10
    return gather(pose, rows, ends, art).matrix(pose, rows)  # 15


@dataclass
class Gathered:
    """Rows of subtrees, gathered backward.

    Attributes:
        K: K^A of every link; order: the indices of its rows; L, bias: L^A and l^A above the joint of every link.
        parts: at every link, the number of rows from each of its own blocks and each of its children.
    """

    K: list[Matrix]
    L: list[Matrix]
    bias: list[Matrix]
    order: list[list[int]]
    parts: list[list[int]]

    def roots(self, pose: Pose) -> list[int]:
        """Roots that support rows."""
        return [i for i, p in enumerate(pose.parent) if p < 0 and self.order[i]]

    def matrix(self, pose: Pose, rows: Rows) -> Matrix:
        """L^A_0 of all rows, summed for rows on several trees; zero for rows on the ground."""
        ops = pose.ops
        L = ops.zeros(0, 0)
        order: list[int] = []
        for i in self.roots(pose):
            if set(order).isdisjoint(self.order[i]):
                L, order = ops.block_diagonal(L, self.L[i]), order + self.order[i]
            else:
                order, L = _merge(ops, order, L, self.order[i], self.L[i])
        ground = sorted(set(range(rows.m)) - set(order))
        place = {row: k for k, row in enumerate([*order, *ground])}
        return ops.take(ops.block_diagonal(L, ops.zeros(len(ground), len(ground))), [place[row] for row in range(rows.m)])


def gather(
    pose: Pose,
    rows: Rows,
    ends: list[End],
    art: Articulated,
    *,
    stop: bool = False,
    affine: tuple[list[Matrix], list[Matrix], Matrix] | None = None,
) -> Gathered:
    """Backward sweep of PV over the rows: lines 3 to 14 of algorithm 1 of the PV-OSIMr paper.

    Args:
        pose, rows, ends, art: the robot, the rows, the end-effectors, the articulated inertias.
        stop: lock the root joints.
        affine: (c, u, k) of a motion, for l^A: lines 4 and 11 of algorithm 4 of the constrained-dynamics paper.
    """
    ops, parent = pose.ops, pose.parent
    n = len(parent)
    out = Gathered(
        K=[ops.zeros(0, 6) for _ in range(n)],
        L=[ops.zeros(0, 0) for _ in range(n)],
        bias=[ops.zeros(0, 1) for _ in range(n)],
        order=[[] for _ in range(n)],
        parts=[[] for _ in range(n)],
    )
    for i, K, block in reversed(ends):  # 3
        at = rows.blocks[block].at
        out.K[i] = ops.stack([out.K[i], K])  # 4
        out.L[i] = ops.block_diagonal(out.L[i], ops.zeros(K.shape[0], K.shape[0]))  # 5
        out.order[i] += range(at.start, at.stop)
        out.parts[i].append(K.shape[0])
        if affine:
            out.bias[i] = ops.stack([out.bias[i], -affine[2][at, :]])
    for i in reversed(range(n)):  # 6
        if not out.order[i]:  # 11
            continue
        p = parent[i]
        if p >= 0 or not stop:
            KS = out.K[i] @ pose.S[i]
            out.L[i] = ops.symmetric(out.L[i] + KS @ art.Dinv[i] @ KS.T)  # 14
            if affine:
                c, u, _ = affine
                out.bias[i] = out.bias[i] + out.K[i] @ (c[i] + pose.S[i] @ (art.Dinv[i] @ u[i]))
        if p >= 0:  # 12
            moved = pass_up(pose, art, i, out.K[i])
            out.bias[p] = ops.stack([out.bias[p], out.bias[i]])
            out.parts[p].append(len(out.order[i]))
            if out.order[p] and not set(out.order[p]).isdisjoint(out.order[i]):
                both, out.L[p] = _merge(ops, out.order[p], out.L[p], out.order[i], out.L[i])
                out.K[p] = ops.stack([out.K[p], ops.zeros(len(both) - len(out.order[p]), 6)])
                for k, row in enumerate(out.order[i]):
                    here = both.index(row)
                    out.K[p][here : here + 1, :] = out.K[p][here : here + 1, :] + moved[k : k + 1, :]
                out.order[p] = both
                continue
            out.K[p] = ops.stack([out.K[p], moved])  # 13
            out.L[p] = ops.block_diagonal(out.L[p], out.L[i])
            out.order[p] += out.order[i]
    return out


def _merge(ops: Arithmetic, order: list[int], L: Matrix, others: list[int], more: Matrix) -> tuple[list[int], Matrix]:
    """Merge the rows of two lists and their L^A, summed for rows in both."""
    both = [*order, *(row for row in others if row not in order)]
    place = {row: k for k, row in enumerate(both)}
    missing = len(both) - len(order)
    out = ops.block_diagonal(L, ops.zeros(missing, missing))
    for a, x in enumerate(others):
        for b, y in enumerate(others):
            out[place[x], place[y]] = out[place[x], place[y]] + more[a, b]
    return both, out


# ---- branching links -------------------------------------------------------------------------------------------------------


@dataclass
class Branching:
    """The links where branches with rows meet: 𝓝 of the PV-OSIMr paper, section I-C, without the ground. End-effectors are numbered n_b, n_b + 1, ….

    Attributes:
        nodes: branching links and end-effectors, ancestors first.
        descendant: 𝓓(i) of every link that supports rows.
        above: 𝓐(i) of every node, −1 for the ground.
    """

    nodes: list[int] = field(default_factory=list)
    descendant: dict[int, int] = field(default_factory=dict)
    above: dict[int, int] = field(default_factory=dict)


def branching(pose: Pose, ends: list[End]) -> Branching:
    """Find the branching links: those with at least two children or end-effectors that support rows."""
    n = len(pose.parent)
    out = Branching()
    hang: list[list[int]] = [[] for _ in range(n)]  # nodes that descend from a link, with no node in between
    for e, end in enumerate(ends):
        hang[end.link].append(n + e)
    for i in reversed(range(n)):
        if not hang[i]:
            continue
        out.descendant[i] = hang[i][0] if len(hang[i]) == 1 else i
        if len(hang[i]) > 1:
            out.nodes.append(i)
            out.above |= dict.fromkeys(hang[i], i)
        if pose.parent[i] >= 0:
            hang[pose.parent[i]].append(out.descendant[i])
        else:
            out.above[out.descendant[i]] = -1
    out.nodes = [*reversed(out.nodes), *range(n, n + len(ends))]
    return out


def pv_osimr(pose: Pose, rows: Rows, *, inertia: list[Matrix] | None = None) -> Matrix:
    """G by propagators between branching links only. O(n + m²), the lowest possible order.

        ^πP_𝓓 = ^πP_i ^iP_𝓓,   ^πΩ_𝓓 = ^iΩ_𝓓 + ^iP_𝓓ᵀ S D⁻¹ Sᵀ ^iP_𝓓        all links, backward
        ⁰Ω_i = ^𝓐Ω_i + ^𝓐P_iᵀ ⁰Ω_𝓐 ^𝓐P_i                                    branching links, forward
        ^𝓐K_e = ^iK_e ^𝓐P_iᵀ                                                branching links, backward
        G_ij = ^ccaK_i ⁰Ω_cca ^ccaK_jᵀ

    Source: PV-OSIMr paper, algorithm 3.

    Args:
        pose: robot pose.
        rows: constraint rows.
        inertia: inertias of the links; default: their own.

    Returns:
        (m, m) G.
    """
    ends = rows.ends()
    return pose.ops.assemble(rows.sizes, between_branches(pose, ends, articulated(pose, inertia))[0])


def between_branches(
    pose: Pose, ends: list[End], art: Articulated, *, stop: bool = False
) -> tuple[dict[tuple[int, int], Matrix], list[tuple[int, Matrix]]]:
    """Algorithm 3 of the PV-OSIMr paper: the upper blocks of G, and for every end-effector its root and ^rootK_e.

    With ``stop`` the root joints are locked, which leaves out their coupling.
    """
    ops, parent = pose.ops, pose.parent
    n = len(parent)
    tree = branching(pose, ends)
    PT: dict[int, Matrix] = {}  # ^iP_𝓓ᵀ of the node below the current link, finally ^𝓐P_iᵀ
    Omega: dict[int, Matrix] = {}
    for e, end in enumerate(ends):  # 3
        PT[n + e], Omega[n + e] = end.K, ops.zeros(end.K.shape[0], end.K.shape[0])  # 4
    for i in reversed(range(n)):  # 5
        if i not in tree.descendant:  # 13
            continue
        d = tree.descendant[i]
        if d == i:  # 6
            PT[i], Omega[i] = ops.identity(6), ops.zeros(6, 6)  # 7
        if parent[i] >= 0 or not stop:
            PS = PT[d] @ pose.S[i]
            Omega[d] = ops.symmetric(Omega[d] + PS @ art.Dinv[i] @ PS.T)  # 15
        if parent[i] >= 0:  # 9
            PT[d] = pass_up(pose, art, i, PT[d])  # 14
    sent: dict[tuple[int, int], Matrix] = {}  # ^cK_i ⁰Ω_c, for line 17 and for all j of line 25
    for i in tree.nodes:  # 16
        a = tree.above[i]
        if a >= 0:
            sent[i, a] = PT[i] @ Omega[a]
            Omega[i] = ops.symmetric(Omega[i] + sent[i, a] @ PT[i].T)  # 17
    K: list[dict[int, Matrix]] = []  # ^jK_e
    at_root: list[tuple[int, Matrix]] = []
    for e, end in enumerate(ends):  # 18
        node, T = n + e, PT[n + e]  # 20
        path: dict[int, Matrix] = {}
        while tree.above[node] >= 0:  # 21
            node = tree.above[node]
            path[node] = T
            T = T @ PT[node]  # 22
        K.append(path)
        at_root.append((pose.ancestors(end.link)[-1], T))
    G = {}
    for i in range(len(ends)):  # 23
        G[i, i] = Omega[n + i]  # 28
        for j in range(i + 1, len(ends)):  # 24
            c = next((k for k in K[i] if k in K[j]), None)
            if c is None or (stop and parent[c] < 0):
                continue
            if (n + i, c) not in sent:
                sent[n + i, c] = K[i][c] @ Omega[c]
            G[i, j] = sent[n + i, c] @ K[j][c].T  # 25, 26
    return sum_ends(ends, G), at_root
