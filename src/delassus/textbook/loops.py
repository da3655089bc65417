"""The damped inverse Λ = (G + ε)⁻¹ through loops, from all blocks of the inverse of M + Jᵀ R J; any rows.

Derived from the elimination of the matrix-free paper, algorithm 4. It leaves the acceleration of link i as a function of those of its boundary (the parent and the links it was coupled
with) and of the force u_i on its own joint,

    a_i = X a_π + S ν,   ν = D⁻¹ (u_i − Σ_j W_jᵀ a_j)        so        a_i = Σ_k A_ik a_k + S D⁻¹ u_i,   A_ij = −S D⁻¹ W_jᵀ (+ X for the parent)

The u_i of different joints are coordinates in which the inverse is diagonal, with D⁻¹ on its diagonal, and links eliminated after i do not depend on u_i.
So the blocks Ω_ij, the acceleration of link i due to a force on link j, follow from the root on.
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
    """A relevant link: touched by rows, or in the boundary of several others.

    Attributes:
        A: coefficients of the nodes on which its acceleration depends.
        Q: (6, 6) its acceleration due to forces that do not act on these nodes.
    """

    A: dict[int, Matrix]
    Q: Matrix


def find_nodes(pose: Pose, factor: LoopFactor, touched: set[int]) -> dict[int, Node]:
    """Relevant links, those eliminated last first; a link that no row touches and that is in the boundary of only one other is skipped, as in PV-OSIMr."""
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


def depth_first(nodes: dict[int, Node]) -> list[int]:
    """Nodes from the roots of the elimination tree on, depth first: everything a node depends on lies on its path to the root."""
    place = {i: k for k, i in enumerate(nodes)}
    children: dict[int, list[int]] = {i: [] for i in nodes}
    waiting = []
    for i, node in nodes.items():
        if node.A:
            children[max(node.A, key=place.__getitem__)].append(i)
        else:
            waiting.append(i)
    order = []
    while waiting:
        order.append(waiting.pop())
        waiting += children[order[-1]]
    return order


def lcaba_osim(pose: Pose, rows: Rows, damping: Any) -> Matrix:
    """(G + ε)⁻¹ through loops, no factorisation of rows; any rows. O(n w² + t w m + m²) with t relevant links and fronts of w links.

        Λ = R − R K Ω Kᵀ R,   R = ε⁻¹,   Ω of M + Jᵀ R J

        Ω_ij = Σ_k A_ik Ω_kj  for j of the front,      Ω_ii = Q_i + Σ_k A_ik Ω_ki
        V_ie = Σ_k A_ik V_ke  for rows e that were complete before,      V_ke = Σ_j Ω_kj K_eʲᵀ  for rows completed at i

    The front consists of the earlier links on which this one or a later one depends: nothing else of Ω and V = Ω Kᵀ is kept. Without loops the result is that of :func:`caba_osim`.

    Source: derived here, see the top of the file.

    Args:
        pose: robot pose.
        rows: constraint rows.
        damping: ε, a scalar or one per row.

    Returns:
        (m, m) Λ.
    """
    ops = pose.ops
    R = [1.0 / x for x in per_row(rows, damping)]
    ends = scaled(pose, rows, rows.ends(), R)
    nodes = find_nodes(pose, loop_factor(pose, rows, R), {end.link for end in ends})
    order = depth_first(nodes)
    place = {i: k for k, i in enumerate(order)}
    last = dict(place)  # the last node that depends on each node
    ends_of: list[list[End]] = [[] for _ in rows.blocks]
    completed: dict[int, list[int]] = {i: [] for i in order}
    for i in order:
        last |= dict.fromkeys(nodes[i].A, place[i])
    for end in ends:
        ends_of[end.block].append(end)
    for e, touching in enumerate(ends_of):
        if touching:
            completed[max((end.link for end in touching), key=place.__getitem__)].append(e)

    Omega: dict[int, dict[int, Matrix]] = {}
    V: dict[int, dict[int, Matrix]] = {}
    L: dict[tuple[int, int], Matrix] = {}
    for t, i in enumerate(order):
        A = nodes[i].A
        # Ω with the front, and V of all rows so far
        Omega[i], V[i] = _lead(A, Omega), _lead(A, V)
        own = nodes[i].Q
        for k, A_k in A.items():
            own = own + A_k @ Omega[i][k].T
        for k, block in Omega[i].items():
            Omega[k][i] = block.T
        Omega[i][i] = ops.symmetric(own)
        for e in completed[i]:
            for k in Omega:
                parts = [Omega[k][end.link] @ end.K.T for end in ends_of[e] if end.link in Omega[k]]
                if parts:
                    V[k][e] = sum(parts[1:], parts[0])
            for f in V[i]:
                parts = [end.K @ V[end.link][f] for end in ends_of[e] if f in V[end.link]]
                block = sum(parts[1:], parts[0])
                if f == e:
                    L[e, e] = ops.symmetric(block)
                else:
                    L[min(e, f), max(e, f)] = block if e < f else block.T
        for k in [k for k in Omega if last[k] <= t]:
            del Omega[k], V[k]
            for row in Omega.values():
                row.pop(k, None)
    return ops.diagonal(R) - ops.assemble(rows.sizes, L)


def _lead(A: dict[int, Matrix], of: dict[int, dict[int, Matrix]]) -> dict[int, Matrix]:
    """Σ_k A_k of_k, entry by entry."""
    out: dict[int, Matrix] = {}
    for k, A_k in A.items():
        for j, block in of[k].items():
            out[j] = out[j] + A_k @ block if j in out else A_k @ block
    return out
