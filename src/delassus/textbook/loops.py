"""The damped inverse Λ = (G + ε)⁻¹ through loops, from all blocks of the inverse of M + Jᵀ R J; any rows.

Derived from the elimination of text 000, algorithm 4. What it leaves of link i is its acceleration by those of its boundary (the parent and the links it was coupled
with) and by the force u_i on its own joint,

    a_i = X a_π + S ν,   ν = D⁻¹ (u_i − Σ_j W_jᵀ a_j)        so        a_i = Σ_k A_ik a_k + S D⁻¹ u_i,   A_ij = −S D⁻¹ W_jᵀ (+ X for the parent)

The u_i of different joints are coordinates in which the inverse is diagonal, with D⁻¹ on its diagonal, and links that were eliminated after i do not depend on u_i.
So the blocks Ω_ij, the acceleration of link i by a force on link j, follow root first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arithmetic import Matrix
from .inverse import per_row, scaled
from .matrix_free import LoopFactor, loop_factor
from .robot import Pose
from .rows import End, Rows

__all__ = ["lcaba_osim"]


@dataclass
class Node:
    """A link that matters: touched by rows, or led to by several others.

    Attributes:
        A: coefficients of the nodes that its acceleration is made of.
        Q: (6, 6) its acceleration by forces that these do not feel.
    """

    A: dict[int, Matrix]
    Q: Matrix


def find_nodes(pose: Pose, factor: LoopFactor, touched: set[int]) -> dict[int, Node]:
    """Links that matter, those eliminated last first; a link that no row touches and one other alone leads to is passed, as in PV-OSIMr."""
    ops, parent = pose.ops, pose.parent
    needed, leading = set(touched), dict.fromkeys(range(len(parent)), 0)
    for i in factor.order:
        if i in needed:
            needed |= factor.W[i].keys()
            for j in factor.W[i]:
                leading[j] += 1
    nodes: dict[int, Node] = {}
    for i in reversed(factor.order):
        if i not in needed or (i not in touched and leading[i] == 1):
            continue
        A, Q, waiting = {i: ops.identity(6)}, ops.zeros(6, 6), [i]
        while waiting:
            k = waiting.pop()
            C = A.pop(k)
            CS = C @ pose.S[k]
            CSD = CS @ factor.Dinv[k]
            Q = Q + ops.symmetric(CSD @ CS.T)
            for j, W in factor.W[k].items():
                change = -(CSD @ W.T) if j != parent[k] else C @ pose.X[k] - CSD @ W.T
                if j in A:
                    A[j] = A[j] + change
                    continue
                A[j] = change
                if j not in touched and leading[j] == 1:
                    waiting.append(j)
        nodes[i] = Node(A, Q)
    return nodes


def find_blocks(pose: Pose, nodes: dict[int, Node]) -> dict[int, dict[int, Matrix]]:
    """Ω_ij of all nodes, root first; nothing where nothing goes from one to the other.

        Ω_ij = Σ_k A_ik Ω_kj  for j eliminated after i,      Ω_ii = Q_i + Σ_k A_ik Ω_ki
    """
    ops = pose.ops
    Omega: dict[int, dict[int, Matrix]] = {}
    for i, node in nodes.items():
        row: dict[int, Matrix] = {}
        for k, A in node.A.items():
            for j, block in Omega[k].items():
                row[j] = row[j] + A @ block if j in row else A @ block
        own = node.Q
        for k, A in node.A.items():
            own = own + A @ row[k].T
        for j, block in row.items():
            Omega[j][i] = block.T
        row[i] = ops.symmetric(own)
        Omega[i] = row
    return Omega


def lcaba_osim(pose: Pose, rows: Rows, damping: Any) -> Matrix:
    """(G + ε)⁻¹ through loops, no factorisation of rows; any rows. O(n w + t² w + m²) with t links that matter and fronts of w links.

        Λ = R − R K Ω Kᵀ R,   R = ε⁻¹,   Ω of M + Jᵀ R J

    Without loops it does what :func:`caba_osim` does.

    Source: derived here, see the top of the file.

    Args:
        pose: of the robot.
        rows: of the constraints.
        damping: ε, a scalar or one per row.

    Returns:
        (m, m) Λ.
    """
    ops = pose.ops
    R = [1.0 / x for x in per_row(rows, damping)]
    ends = rows.ends()
    nodes = find_nodes(pose, loop_factor(pose, rows, R), {end.link for end in ends})
    Omega = find_blocks(pose, nodes)
    ends_of: list[list[End]] = [[] for _ in rows.blocks]
    for end in scaled(pose, rows, ends, R):
        ends_of[end.block].append(end)
    L: dict[tuple[int, int], Matrix] = {}
    for a, first in enumerate(ends_of):
        # R K Ω of a constraint, at links that it or a later one touches
        response: dict[int, Matrix] = {}
        for j in {end.link for later in ends_of[a:] for end in later}:
            for end in first:
                if j in Omega[end.link]:
                    part = end.K @ Omega[end.link][j]
                    response[j] = response[j] + part if j in response else part
        for b in range(a, len(ends_of)):
            for end in ends_of[b]:
                if end.link in response:
                    part = response[end.link] @ end.K.T
                    L[a, b] = L[a, b] + part if (a, b) in L else part
        if (a, a) in L:
            L[a, a] = ops.symmetric(L[a, a])
    return ops.diagonal(R) - ops.assemble(rows.sizes, L)
