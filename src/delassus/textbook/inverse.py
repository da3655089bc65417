"""The damped inverse Λ = (G + ε)⁻¹ of the Delassus matrix, for rows that touch one link each.

By the matrix inversion lemma, with R = ε⁻¹,

    (G + ε)⁻¹ = R − R J (M + Jᵀ R J)⁻¹ Jᵀ R

so any algorithm for G, run on links whose inertia has K_iᵀ R K_i added, gives the inverse without a factorisation.

Source of all: "Constrained articulated body dynamics algorithms" (Sathya, Carpentier), the constrained-dynamics paper, section VI.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .arithmetic import Matrix, Scalar
from .osim import between_branches, gather, gram, jacobian, ltl, rows_of_y
from .robot import Pose
from .rows import End, Rows
from .tree import articulated, crba

__all__ = ["BranchedInverse", "caba_osim", "caba_osimf", "ltl_inverse", "pv_osimf"]

ANY_ROWS = "ltl_inverse or lcaba_osim"


def per_row(rows: Rows, value: Any, name: str = "damping") -> list[Scalar]:
    """One scalar per row of a scalar, a sequence, or a column."""
    shape = value.shape if hasattr(value, "shape") else np.shape(value)
    if shape in ((), (1, 1)):
        return [value[0, 0] if shape else value] * rows.m
    if shape[0] != rows.m:
        raise ArgumentError(f"{name}: expected a scalar or {rows.m} numbers, got shape {tuple(shape)}.")
    return [value[k] if len(shape) == 1 else value[k, 0] for k in range(rows.m)]


def augmented(pose: Pose, rows: Rows, ends: list[End], R: list[Scalar]) -> list[Matrix]:
    """H_i + K_iᵀ R K_i: lines 1 to 4 of algorithm 5, eq. 29."""
    ops = pose.ops
    H = list(pose.H)
    for i, K, block in ends:
        at = rows.blocks[block].at
        alike = all(x is R[at.start] for x in R[at])
        H[i] = H[i] + ops.symmetric((K.T @ K) * R[at.start] if alike else K.T @ ops.diagonal(R[at]) @ K)
    return H


def scaled(pose: Pose, rows: Rows, ends: list[End], R: list[Scalar]) -> list[End]:
    """End-effectors with K^A = R K."""
    return [End(i, pose.ops.diagonal(R[rows.blocks[block].at]) @ K, block) for i, K, block in ends]


def caba_osim(pose: Pose, rows: Rows, damping: Any) -> Matrix:
    """(G + ε)⁻¹ by PV-OSIMr on augmented inertias: no factorisation of rows. O(n + m²).

        H_i ← H_i + K_iᵀ R K_i,   K_i ← R K_i,   Λ = R − L₀

    Source: constrained-dynamics paper, algorithm 5.

    Args:
        pose: robot pose.
        rows: constraint rows, each touching one link.
        damping: ε, a scalar or one per row.

    Returns:
        (m, m) Λ.

    Raises:
        ArgumentError: some rows touch several links or a joint.
    """
    ops = pose.ops
    ends = rows.single("caba_osim", ANY_ROWS)
    R = [1.0 / x for x in per_row(rows, damping)]
    art = articulated(pose, augmented(pose, rows, ends, R))  # 1 to 9
    L, _ = between_branches(pose, scaled(pose, rows, ends, R), art)  # 10 to 20
    return ops.diagonal(R) - ops.assemble(rows.sizes, L)  # 21


@dataclass
class BranchedInverse:
    """B − Σ W T Wᵀ: the separate contributions of the branches of a floating base, and their coupling by the base, never multiplied out.

    Attributes:
        B: (m, m) block diagonal, one block per branch.
        base: (W (m, n₁), T (n₁, n₁)) per root.
        pose: pose that provides the arithmetic.
    """

    pose: Pose
    B: Matrix
    base: list[tuple[Matrix, Matrix]]

    def __matmul__(self, x: Matrix) -> Matrix:
        """Λ x for columns (m, k). O(m) with rows spread evenly over branches."""
        y = self.B @ x
        for W, T in self.base:
            y = y - W @ (T @ (W.T @ x))
        return y

    def matrix(self) -> Matrix:
        """(m, m) Λ, multiplied out."""
        y = self.B
        for W, T in self.base:
            y = y - W @ T @ W.T
        return self.pose.ops.symmetric(y)


def caba_osimf(pose: Pose, rows: Rows, damping: Any) -> BranchedInverse:
    """(G + ε)⁻¹ for trees that branch at the base: L₁ has one block per branch, and the base is kept separate. O(n + m²), O(n) with few rows per branch.

        Λ = R − L₁ − K₁ S D⁻¹ Sᵀ K₁ᵀ        (S = 1 and D = H₁ for a floating base)

    Source: constrained-dynamics paper, section VI-B, eq. 41.

    Args:
        pose: robot pose.
        rows: constraint rows, each touching one link.
        damping: ε, a scalar or one per row.

    Returns:
        Λ as :class:`BranchedInverse`.

    Raises:
        ArgumentError: some rows touch several links or a joint.
    """
    ops = pose.ops
    ends = rows.single("caba_osimf", ANY_ROWS)
    R = [1.0 / x for x in per_row(rows, damping)]
    art = articulated(pose, augmented(pose, rows, ends, R))
    L, at_root = between_branches(pose, scaled(pose, rows, ends, R), art, stop=True)
    base = []
    for root in dict.fromkeys(i for i, _ in at_root):
        K = {e.block: T for e, (i, T) in zip(ends, at_root, strict=True) if i == root}
        K1 = ops.stack([K.get(b, ops.zeros(block.rows, 6)) for b, block in enumerate(rows.blocks)])
        base.append((K1 @ pose.S[root], art.Dinv[root]))
    return BranchedInverse(pose, ops.diagonal(R) - ops.assemble(rows.sizes, L), base)


def pv_osimf(pose: Pose, rows: Rows, damping: Any) -> BranchedInverse:
    """(G + ε)⁻¹ by PV-OSIM for trees that branch at the base: one Cholesky factor per branch, then the base. O(n + Σ m_b² d + Σ m_b³) over branches b.

        B = L₁ + ε,   Λ = B⁻¹ − B⁻¹ V (D + Vᵀ B⁻¹ V)⁻¹ Vᵀ B⁻¹,   V = K₁ S

    Source: Sathya et al. (2024), as used in figure 5 of the constrained-dynamics paper.

    Args:
        pose: robot pose.
        rows: constraint rows, each touching one link.
        damping: ε, a scalar or one per row.

    Returns:
        Λ as :class:`BranchedInverse`.

    Raises:
        ArgumentError: some rows touch several links or a joint.
    """
    ops = pose.ops
    ends = rows.single("pv_osimf", ANY_ROWS)
    eps = per_row(rows, damping)
    art = articulated(pose)
    got = gather(pose, rows, ends, art, stop=True)
    roots = got.roots(pose)
    order = [row for i in roots for row in got.order[i]]
    ground = sorted(set(range(rows.m)) - set(order))
    B = ops.zeros(0, 0)
    bases: list[tuple[Matrix, Matrix]] = []
    for i in roots:
        V, W, start = got.K[i] @ pose.S[i], [], 0
        for size in got.parts[i]:
            at = slice(start, start + size)
            C = ops.cholesky(got.L[i][at, at] + ops.diagonal([eps[row] for row in got.order[i][at]]))
            B = ops.block_diagonal(B, ops.symmetric(ops.cholesky_solve(C, ops.identity(size))))
            W.append(ops.cholesky_solve(C, V[at, :]))
            start += size
        D = ops.symmetric(pose.S[i].T @ art.U[i]) + pose.Ic[i]
        bases.append((ops.stack(W), ops.inverse(D + ops.symmetric(V.T @ ops.stack(W)))))
    B = ops.block_diagonal(B, ops.diagonal([1.0 / eps[row] for row in ground]))
    # rows in the order of the constraints
    place = {row: k for k, row in enumerate([*order, *ground])}
    turn = [place[row] for row in range(rows.m)]
    base, start = [], 0
    for (W, T), i in zip(bases, roots, strict=True):
        mine = len(got.order[i])
        full = ops.stack([ops.zeros(start, T.shape[0]), W, ops.zeros(rows.m - start - mine, T.shape[0])])
        base.append((full[turn, :], T))
        start += mine
    return BranchedInverse(pose, ops.take(B, turn), base)


def ltl_inverse(pose: Pose, rows: Rows, damping: Any) -> Matrix:
    """(G + ε)⁻¹ by LTL-OSIM, a dense Cholesky factor and its inverse; any rows. O(n d² + m d² + m² d + m³).

    Source: constrained-dynamics paper, section VIII-C, "LTL-inv".

    Args:
        pose: robot pose.
        rows: constraint rows.
        damping: ε, a scalar or one per row.

    Returns:
        (m, m) Λ.
    """
    ops = pose.ops
    J, support = jacobian(pose, rows)
    G = gram(pose, rows_of_y(rows, ltl(pose, crba(pose)), J, support))
    C = ops.cholesky(G + ops.diagonal(per_row(rows, damping)))
    return ops.symmetric(ops.cholesky_solve(C, ops.identity(rows.m)))
