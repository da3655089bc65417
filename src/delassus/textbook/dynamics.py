"""Constrained dynamics: M ν̇ + c = τ + Jᵀ λ with J ν̇ + γ = 0, eight ways.

The papers write the rows on links, K_i a_i = k_i, where a_i is the spatial acceleration of link i with the ground accelerating by −g; :func:`wanted` computes k from γ.
They also write −Jᵀ λ; λ inside the sweeps has their sign, the returned forces have the library's.

The proximal ones iterate λ⁺ = (G + 1/μ)⁻¹ (b + λ/μ), each in its own way; after the same number of iterations they agree.

Source of all: "Constrained articulated body dynamics algorithms" (Sathya, Carpentier), the constrained-dynamics paper; LCABA: the matrix-free paper, section III-B.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._door import count
from .arithmetic import Matrix, Scalar
from .inverse import augmented, per_row
from .matrix_free import _joint_forces, _link_forces, _row_accelerations, loop_factor, loop_solve
from .osim import gather, gram, half_solve, jacobian, ltl, other_half, pass_down, rows_of_y
from .robot import Pose, force_cross
from .rows import End, Rows
from .tree import Articulated, _dofs, articulated, crba

__all__ = ["Motion", "constrained_aba", "lcaba", "prox_ltl", "prox_ltls", "prox_pv", "pv", "pv_early", "pv_soft", "wanted"]

ANY_ROWS = "prox_ltl or lcaba"


class Motion(NamedTuple):
    """Result of constrained dynamics.

    Attributes:
        acceleration: (nv, 1) ν̇.
        forces: (m, 1) λ of M ν̇ + c = τ + Jᵀ λ.
        iterations: number of iterations done.
    """

    acceleration: Matrix
    forces: Matrix
    iterations: int


def _velocities(pose: Pose, v: Matrix) -> tuple[list[Matrix], list[Matrix], list[Matrix]]:
    """First forward sweep: velocities, bias accelerations a_b and forces −v ×* H v of the links."""
    vel: list[Matrix] = []
    c, f = [], []
    for i, p in enumerate(pose.parent):
        nu = pose.velocities(i, v)
        own = pose.S[i] @ nu
        vel.append(own if p < 0 else pose.X[i] @ vel[p] + own)
        c.append(pose.bias(i, vel[i], nu))
        f.append(-force_cross(pose.ops, vel[i], pose.H[i] @ vel[i]))
    return vel, c, f


def _free(pose: Pose, rows: Rows, v: Matrix, k: Matrix) -> tuple[Matrix, Matrix]:
    """Bias forces c (nv, 1) by Newton and Euler at ν̇ = 0, and γ = K ā − k (m, 1): J ν̇ + γ = 0."""
    ops = pose.ops
    _, c, f = _velocities(pose, v)
    still = _at_rest(pose, c)
    f = [H @ a - fi for H, a, fi in zip(pose.H, still, f, strict=True)]
    bias = ops.zeros(pose.nv, 1)
    for i in reversed(range(len(f))):
        bias[_dofs(pose, i), :] = pose.S[i].T @ f[i]
        if pose.parent[i] >= 0:
            f[pose.parent[i]] = f[pose.parent[i]] + pose.X[i].T @ f[i]
    return bias, _row_accelerations(pose, rows, still, ops.zeros(pose.nv, 1)) - k


def _at_rest(pose: Pose, c: list[Matrix]) -> list[Matrix]:
    """Accelerations of the links at ν̇ = 0."""
    a: list[Matrix] = []
    for i, p in enumerate(pose.parent):
        a.append(pose.X[i] @ (pose.a0 if p < 0 else a[p]) + c[i])
    return a


def wanted(pose: Pose, rows: Rows, v: Matrix, bias: Matrix) -> Matrix:
    """Compute k of K a = k from the bias γ of J ν̇ + γ = 0: k = K ā − γ with ā the accelerations of the links at ν̇ = 0.

    Args:
        pose: robot pose.
        rows: constraint rows.
        v: (nv, 1) velocities.
        bias: (m, 1) γ, see :func:`delassus.constraint_bias`.

    Returns:
        (m, 1) k.
    """
    pose.check(pose.nv, v=v)
    pose.check(rows.m, bias=bias)
    a = _at_rest(pose, _velocities(pose, v)[1])
    return _row_accelerations(pose, rows, a, pose.ops.zeros(pose.nv, 1)) - bias


def _door(pose: Pose, rows: Rows, v: Matrix, tau: Matrix, k: Matrix) -> None:
    pose.check(pose.nv, v=v, tau=tau)
    pose.check(rows.m, k=k)


def _size(x: Matrix) -> float:
    return float(np.abs(np.asarray(x, dtype=np.float64)).max(initial=0.0))


# ---- joint space -----------------------------------------------------------------------------------------------------------


def prox_ltl(
    pose: Pose, rows: Rows, v: Matrix, tau: Matrix, k: Matrix, *, mu: Any = 1e6, iterations: int = 3, tolerance: float | None = None
) -> Motion:
    """Proximal point iterations on the dual, with the sparse factor of M and G = Y Yᵀ; any rows. O(n d² + m d² + m² d + m³).

        λ ← (G + 1/μ)⁻¹ (J ν̇_free + γ − … + λ/μ),   ν̇ = M⁻¹ (τ − c − Jᵀ λ)

    Source: constrained-dynamics paper, section II-D1, eqs. 10 and 13; stopping rule eq. 14.

    Args:
        pose: robot pose.
        rows: constraint rows.
        v, tau: (nv, 1) velocities and joint forces.
        k: (m, 1) wanted accelerations, see :func:`wanted`.
        mu: step μ; a scalar or one per row.
        iterations: maximum number of proximal iterations.
        tolerance: stop when the least-squares residual G (G λ − b) is below this; only for numbers.
    """
    _door(pose, rows, v, tau, k)
    c, gamma = _free(pose, rows, v, k)
    J, support = jacobian(pose, rows)
    factor = ltl(pose, crba(pose))
    Y = rows_of_y(rows, factor, J, support)
    G = gram(pose, Y)
    free = half_solve(pose, factor, tau - c)  # L ν̇_free
    b = _column(pose, [_dot(y, free) for y in Y]) + gamma
    forces, done = _proximal(pose, rows, G, b, mu, iterations, tolerance)
    for r, y in enumerate(Y):
        for i in sorted(y):
            free[i] = free[i] - y[i] * forces[r, 0]
    return Motion(other_half(pose, factor, free), -forces, done)


def _dot(y: dict[int, Scalar], x: list[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for i in sorted(y):
        total = total + y[i] * x[i]
    return total


def _column(pose: Pose, x: list[Scalar]) -> Matrix:
    return pose.ops.matrix([[y] for y in x]) if x else pose.ops.zeros(0, 1)


def _proximal(pose: Pose, rows: Rows, G: Matrix, b: Matrix, mu: Any, iterations: int, tolerance: float | None) -> tuple[Matrix, int]:
    """λ ← (G + 1/μ)⁻¹ (b + λ/μ) from zero, with a single Cholesky factor: lines 12 to 16 of algorithm 4."""
    ops = pose.ops
    eps = ops.diagonal([1.0 / x for x in per_row(rows, mu, "mu")])
    C = ops.cholesky(G + eps)
    forces = ops.cholesky_solve(C, b)
    for done in range(1, count(iterations, "iterations")):
        if tolerance is not None and _size(G @ (G @ forces - b)) < tolerance:  # 14
            return forces, done
        forces = ops.cholesky_solve(C, b + eps @ forces)  # 13
    return forces, iterations


def prox_ltls(
    pose: Pose, rows: Rows, v: Matrix, tau: Matrix, k: Matrix, *, mu: Any = 1e6, iterations: int = 3, tolerance: float | None = None
) -> Motion:
    """Augmented Lagrangian iterations with the sparse factor of M + μ JᵀJ; G is never formed. O(n d² + m d).

        ν̇ = (M + μ JᵀJ)⁻¹ (τ − c − Jᵀ (λ + μ γ)),   λ ← λ + μ (J ν̇ + γ)

    Source: constrained-dynamics paper, section II-D2, eq. 16; M + μ JᵀJ by composite bodies with augmented inertias, eq. 24.

    Args:
        pose: robot pose.
        rows: constraint rows, each touching one link: others would fill the factor.
        v, tau: (nv, 1) velocities and joint forces.
        k: (m, 1) wanted accelerations, see :func:`wanted`.
        mu: step μ; a scalar or one per row.
        iterations: maximum number of proximal iterations.
        tolerance: stop when the residual of every row is below this; only for numbers.

    Raises:
        ArgumentError: some rows touch several links or a joint.
    """
    _door(pose, rows, v, tau, k)
    ops = pose.ops
    ends = rows.single("prox_ltls", ANY_ROWS)
    R = per_row(rows, mu, "mu")
    weight = ops.diagonal(R)
    c, gamma = _free(pose, rows, v, k)
    J, _ = jacobian(pose, rows)
    factor = ltl(pose, crba(pose, augmented(pose, rows, ends, R)))  # 24
    forces, given, done = ops.zeros(rows.m, 1), tau - c, 0
    while done < count(iterations, "iterations"):
        done += 1
        nudot = other_half(pose, factor, half_solve(pose, factor, given - J.T @ (forces + weight @ gamma)))  # 16a
        residual = J @ nudot + gamma
        forces = forces + weight @ residual  # 16b
        if tolerance is not None and _size(residual) < tolerance:
            break
    return Motion(nudot, -forces, done)


# ---- Popov and Vereshchagin ------------------------------------------------------------------------------------------------


def _forces_backward(pose: Pose, art: Articulated, f: list[Matrix], c: list[Matrix], tau: Matrix) -> list[Matrix]:
    """Backward sweep of forces; u_i = τ_i + S_iᵀ f^A_i − U_iᵀ a_b,i, in which the papers' T_i τ_i has cancelled.

    Line 8 of algorithm 1: f_π += P (f − H a_b), P T τ − T τ = −U D⁻¹ τ.
    """
    u: list[Matrix] = [None] * len(f)
    for i in reversed(range(len(f))):
        u[i] = pose.velocities(i, tau) + pose.S[i].T @ f[i] - art.U[i].T @ c[i]
        if pose.parent[i] >= 0:
            p = pose.parent[i]
            f[p] = f[p] + pose.X[i].T @ (f[i] - art.H[i] @ c[i] - art.U[i] @ (art.Dinv[i] @ u[i]))
    return u


def _roll_out(pose: Pose, art: Articulated, c: list[Matrix], u: list[Matrix], links: list[int], a: list[Matrix], nudot: Matrix) -> None:
    """Forward sweep: ν̇ = D⁻¹ (u − Uᵀ X a_π), a = X a_π + S ν̇ + a_b."""
    for i in links:
        above = pose.X[i] @ (pose.a0 if pose.parent[i] < 0 else a[pose.parent[i]])
        step = art.Dinv[i] @ (u[i] - art.U[i].T @ above)
        nudot[_dofs(pose, i), :] = step
        a[i] = above + pose.S[i] @ step + c[i]


def _popov_vereshchagin(pose: Pose, rows: Rows, ends: list[End], v: Matrix, tau: Matrix, k: Matrix, solve: Any) -> Motion:
    """Algorithm 4 of the constrained-dynamics paper; ``solve`` finds the multipliers of G and b."""
    ops = pose.ops
    art = articulated(pose)  # 6, 8
    _, c, f = _velocities(pose, v)  # 1 to 4
    u = _forces_backward(pose, art, f, c, tau)  # 7
    got = gather(pose, rows, ends, art, affine=(c, u, k))  # 9 to 11
    # K₀ a₀ + l₀, through each root's joint; rows on the ground have −k
    affine = [-k[row, 0] for row in range(rows.m)]
    for i in got.roots(pose):
        at_root = got.K[i] @ pass_down(pose, art, i, pose.a0) + got.bias[i]
        for n, row in enumerate(got.order[i]):
            affine[row] = at_root[n, 0]
    forces, done = solve(got.matrix(pose, rows), _column(pose, affine))  # 12 to 16
    for i, rows_of in enumerate(got.order):  # 18: K^Aᵀ λ^A
        if rows_of:
            lam = _column(pose, [forces[row, 0] for row in rows_of])
            u[i] = u[i] - (got.K[i] @ pose.S[i]).T @ lam
    a: list[Matrix] = [None] * len(pose.parent)
    nudot = ops.zeros(pose.nv, 1)
    _roll_out(pose, art, c, u, list(range(len(pose.parent))), a, nudot)  # 17 to 19
    return Motion(nudot, -forces, done)


def prox_pv(
    pose: Pose, rows: Rows, v: Matrix, tau: Matrix, k: Matrix, *, mu: Any = 1e6, iterations: int = 3, tolerance: float | None = None
) -> Motion:
    """Popov and Vereshchagin's solver with proximal point iterations on its dual. O(n + m² d + m³).

        backward: H^A, f^A, K^A, L^A, l^A,   λ ← (L₀ + 1/μ)⁻¹ (K₀ a₀ + l₀ + λ/μ),   forward: ν̇

    Source: constrained-dynamics paper, algorithm 4.

    Args:
        pose: robot pose.
        rows: constraint rows, each touching one link.
        v, tau: (nv, 1) velocities and joint forces.
        k: (m, 1) wanted accelerations, see :func:`wanted`.
        mu: step μ; a scalar or one per row.
        iterations: maximum number of proximal iterations.
        tolerance: stop when the least-squares residual L₀ (L₀ λ − b) is below this; only for numbers.

    Raises:
        ArgumentError: some rows touch several links or a joint.
    """
    _door(pose, rows, v, tau, k)
    ends = rows.single("prox_pv", ANY_ROWS)
    return _popov_vereshchagin(pose, rows, ends, v, tau, k, lambda G, b: _proximal(pose, rows, G, b, mu, iterations, tolerance))


def pv(pose: Pose, rows: Rows, v: Matrix, tau: Matrix, k: Matrix) -> Motion:
    """Popov and Vereshchagin's solver: rows must be independent. O(n + m² d + m³).

        L₀ λ = K₀ a₀ + l₀

    Source: constrained-dynamics paper, section II-G, and algorithm 4 with 1/μ = 0; Popov, Vereshchagin, Zenkevich (1978).

    Args:
        pose: robot pose.
        rows: constraint rows, each touching one link.
        v, tau: (nv, 1) velocities and joint forces.
        k: (m, 1) wanted accelerations, see :func:`wanted`.

    Raises:
        ArgumentError: some rows touch several links or a joint.
    """
    _door(pose, rows, v, tau, k)
    ops = pose.ops
    ends = rows.single("pv", ANY_ROWS)
    return _popov_vereshchagin(pose, rows, ends, v, tau, k, lambda G, b: (ops.cholesky_solve(ops.cholesky(G), b), 1))


# ---- constrained articulated bodies ----------------------------------------------------------------------------------------


def constrained_aba(
    pose: Pose, rows: Rows, v: Matrix, tau: Matrix, k: Matrix, *, mu: Any = 1e6, iterations: int = 3, tolerance: float | None = None
) -> Motion:
    """Articulated bodies with augmented inertias, then two reduced sweeps per iteration. O(n + m) per iteration.

        H_i ← H_i + μ K_iᵀ K_i,   f_i ← f_i + K_iᵀ (μ k_i − λ_i),   λ_i ← λ_i + μ (K_i a_i − k_i)

    Source: constrained-dynamics paper, algorithms 1 (three sweeps, the first iteration), 2 (two sweeps, each further one) and 3 (both). Algorithm 2 as printed sets Δf
    to zero without keeping it; here it is kept in u.

    Args:
        pose: robot pose.
        rows: constraint rows, each touching one link.
        v, tau: (nv, 1) velocities and joint forces.
        k: (m, 1) wanted accelerations, see :func:`wanted`.
        mu: step μ; a scalar or one per row.
        iterations: maximum number of proximal iterations.
        tolerance: stop when the residual of every row is below this; only for numbers.

    Raises:
        ArgumentError: some rows touch several links or a joint.
    """
    _door(pose, rows, v, tau, k)
    ops = pose.ops
    ends = rows.single("constrained_aba", ANY_ROWS)
    R = per_row(rows, mu, "mu")
    weight = ops.diagonal(R)
    supports = sorted({j for end in ends for j in pose.ancestors(end.link)})  # 𝓢_𝓔
    rest = [i for i in range(len(pose.parent)) if i not in set(supports)]
    # algorithm 1: three sweeps
    art = articulated(pose, augmented(pose, rows, ends, R))  # 5, 7, 9
    _, c, f = _velocities(pose, v)  # 1 to 4
    for i, K, block in ends:
        at = rows.blocks[block].at
        f[i] = f[i] + K.T @ (weight[at, at] @ k[at, :])  # 5
    u = _forces_backward(pose, art, f, c, tau)  # 6, 8
    a: list[Matrix] = [None] * len(pose.parent)
    nudot = ops.zeros(pose.nv, 1)
    _roll_out(pose, art, c, u, supports, a, nudot)  # 10 to 12
    push = _push(pose, rows, weight, a, k)
    forces, done = push, 1
    while done < count(iterations, "iterations"):  # algorithm 3
        if tolerance is not None and _size(push / np.asarray(R, dtype=np.float64)[:, None]) < tolerance:  # 6
            break
        _two_reduced_sweeps(pose, rows, art, c, u, ends, push, supports, a, nudot)  # 8
        push = _push(pose, rows, weight, a, k)
        forces = forces + push
        done += 1
    _roll_out(pose, art, c, u, rest, a, nudot)  # 9 to 11
    return Motion(nudot, forces, done)


def _push(pose: Pose, rows: Rows, weight: Matrix, a: list[Matrix], k: Matrix) -> Matrix:
    """μ (k − K a) of all rows."""
    return weight @ (k - _row_accelerations(pose, rows, a, pose.ops.zeros(pose.nv, 1)))


def _two_reduced_sweeps(
    pose: Pose, rows: Rows, art: Articulated, c: list[Matrix], u: list[Matrix], ends: list[End], push: Matrix, supports: list[int],
    a: list[Matrix], nudot: Matrix,
) -> None:  # fmt: skip
    """Algorithm 2 of the constrained-dynamics paper: the change of forces backward, accelerations forward, over links that support rows."""
    df = {i: pose.ops.zeros(6, 1) for i in supports}
    for i, K, block in ends:
        df[i] = df[i] + K.T @ push[rows.blocks[block].at, :]  # 2
    for i in reversed(supports):  # 1
        Sf = pose.S[i].T @ df[i]
        u[i] = u[i] + Sf
        if pose.parent[i] >= 0:
            df[pose.parent[i]] = df[pose.parent[i]] + pose.X[i].T @ (df[i] - art.U[i] @ (art.Dinv[i] @ Sf))  # 3
    _roll_out(pose, art, c, u, supports, a, nudot)  # 4 to 6


def pv_soft(pose: Pose, rows: Rows, v: Matrix, tau: Matrix, k: Matrix, *, mu: Any = 1e6) -> Motion:
    """Rows as springs of stiffness μ: the first iteration of :func:`constrained_aba` only. O(n + m).

        minimise Σ ½ aᵀH a − fᵀa + ½ μ |K a − k|²

    Source: constrained-dynamics paper, section VII-A; Sathya et al. (2024).

    Args:
        pose: robot pose.
        rows: constraint rows, each touching one link.
        v, tau: (nv, 1) velocities and joint forces.
        k: (m, 1) wanted accelerations, see :func:`wanted`.
        mu: stiffness; a scalar or one per row.

    Raises:
        ArgumentError: some rows touch several links or a joint.
    """
    rows.single("pv_soft", ANY_ROWS)
    return constrained_aba(pose, rows, v, tau, k, mu=mu, iterations=1)


def pv_early(pose: Pose, rows: Rows, v: Matrix, tau: Matrix, k: Matrix) -> Motion:
    """Multipliers eliminated as early as possible: exact, and only a few rows are passed on. O(n + m).

    Where rows K a + l = 0 pass a joint with motion s, minimising over its acceleration leaves −½ λᵀ L λ with L = K s D⁻¹ sᵀ Kᵀ, of rank one. The part of λ along
    q = K s / |K s| is now strictly concave and is maximised immediately; the rest, N ⊥ q, is passed on:

        σ = |K s|² / D,   H ← H + K'ᵀ q σ⁻¹ qᵀ K',   f ← f − K'ᵀ q σ⁻¹ qᵀ l',   K ← Nᵀ K',   l ← Nᵀ l'

    N comes from a reflection, so no singular value decomposition is needed; a joint with several velocities is processed one velocity at a time. Rows that no joint
    can move remain to the end and get no force: they are redundant.

    Source: constrained-dynamics paper, sections I-A and VII-B; Sathya et al. (2024).

    Args:
        pose: robot pose.
        rows: constraint rows, each touching one link.
        v, tau: (nv, 1) velocities and joint forces.
        k: (m, 1) wanted accelerations, see :func:`wanted`.

    Raises:
        ArgumentError: some rows touch several links or a joint.
    """
    _door(pose, rows, v, tau, k)
    ops, parent = pose.ops, pose.parent
    n = len(parent)
    ends = rows.single("pv_early", ANY_ROWS)
    _, c, f = _velocities(pose, v)
    H = list(pose.H)
    K: list[Matrix] = [ops.zeros(0, 6) for _ in range(n)]
    l: list[Matrix] = [ops.zeros(0, 1) for _ in range(n)]  # noqa: E741
    sources: list[list[tuple[int, int]]] = [[] for _ in range(n)]  # (link or −1 − block, rows): origins of the rows of a link
    for i, Ki, block in ends:
        K[i], l[i] = ops.stack([K[i], Ki]), ops.stack([l[i], -k[rows.blocks[block].at, :]])
        sources[i].append((-1 - block, Ki.shape[0]))
    # |K s|² below this is rounding
    bound = 0.0 if ops.symbolic else 1e-20 * max((float((end.K * end.K).sum()) for end in ends), default=0.0)
    steps: list[list[_Step]] = [[] for _ in range(n)]
    for i in reversed(range(n)):
        # a_i = (a_π + s₁ ν̇₁ + …) + a_b: the bias first
        f[i], l[i] = f[i] - H[i] @ c[i], l[i] + K[i] @ c[i]
        Hi, fi, Ki, li = H[i], f[i], K[i], l[i]
        for j in reversed(range(pose.robot.links[i].nv)):
            s = pose.S[i][:, j : j + 1]
            step, Hi, fi, Ki, li = _pass_joint(pose, s, pose.Ic[i][j, j], pose.velocities(i, tau)[j, 0], Hi, fi, Ki, li, bound)
            steps[i].append(step)
        if parent[i] >= 0:
            p, X = parent[i], pose.X[i]
            H[p], f[p] = H[p] + ops.symmetric(X.T @ Hi @ X), f[p] + X.T @ fi
            if Ki.shape[0]:
                K[p], l[p] = ops.stack([K[p], Ki @ X]), ops.stack([l[p], li])
                sources[p].append((i, Ki.shape[0]))
    a: list[Matrix] = [None] * n
    nudot, forces = ops.zeros(pose.nv, 1), ops.zeros(rows.m, 1)
    lam: list[Matrix] = [None] * n  # multipliers of the rows passed on by each link
    for i in range(n):
        if parent[i] < 0 or lam[i] is None:
            last = steps[i][-1]
            lam[i] = ops.zeros(last.remaining, 1)
        now = pose.X[i] @ (pose.a0 if parent[i] < 0 else a[parent[i]])
        x = lam[i]
        for j, step in enumerate(reversed(steps[i])):
            # λ = q σ⁻¹ qᵀ (K' a + l') + N λ_rest, then ν̇ = D⁻¹ sᵀ (f − H a − Kᵀ λ)
            x = step.expand(pose, x, now)
            nu = step.Dinv * (step.u - (step.U.T @ now)[0, 0] - ((step.Ks.T @ x)[0, 0] if x.shape[0] else 0.0))
            nudot[pose.robot.links[i].v + j, 0] = nu
            now = now + pose.S[i][:, j : j + 1] * nu
        a[i] = now + c[i]
        start = 0
        for source, size in sources[i]:
            part = x[start : start + size, :]
            start += size
            if source >= 0:
                lam[source] = part
            else:
                forces[rows.blocks[-1 - source].at, :] = part
    return Motion(nudot, -forces, 1)


class _Step(NamedTuple):
    """Data of one velocity for the forward sweep of PV-early."""

    U: Matrix
    Dinv: Scalar
    u: Scalar
    Ks: Matrix
    remaining: int  # number of rows passed on
    w: Matrix | None  # reflection 1 − 2 w wᵀ whose first column is ±q; None: nothing was eliminated
    row: Matrix | None  # ±qᵀ K' and ±qᵀ l'
    value: Scalar
    inverse: Scalar  # σ⁻¹

    def expand(self, pose: Pose, rest: Matrix, a: Matrix) -> Matrix:
        """Multipliers before the velocity, from those after it and the acceleration above."""
        if self.w is None:
            return rest
        first = self.inverse * ((self.row @ a)[0, 0] + self.value)
        y = pose.ops.stack([pose.ops.matrix([[first]]), rest])
        return y - self.w * (2.0 * (self.w.T @ y)[0, 0])


def _pass_joint(
    pose: Pose,
    s: Matrix,
    armature: Scalar,
    tau: Scalar,
    H: Matrix,
    f: Matrix,
    K: Matrix,
    l: Matrix,  # noqa: E741
    bound: float,
) -> tuple[_Step, Matrix, Matrix, Matrix, Matrix]:
    """Eliminate one velocity, and the one multiplier that can then be eliminated."""
    ops = pose.ops
    U = H @ s
    Dinv = 1.0 / ((s.T @ U)[0, 0] + armature)
    u = tau + (s.T @ f)[0, 0]
    m = K.shape[0]
    Ks = K @ s
    squared = (Ks.T @ Ks)[0, 0] if m else 0.0
    H = ops.symmetric(H - U @ (U.T * Dinv))
    f = f - U * (Dinv * u)
    if m == 0:
        return _Step(U, Dinv, u, Ks, 0, None, None, 0.0, 0.0), H, f, K, l
    l = l + Ks * (Dinv * u)  # noqa: E741
    K = K - Ks @ (U.T * Dinv)
    if ops.vanishes(squared, bound):
        return _Step(U, Dinv, u, Ks, m, None, None, 0.0, 0.0), H, f, K, l
    # reflection that maps q to −sign(q₁) e₁: w ∝ q + sign(q₁) e₁
    q = Ks * (1.0 / ops.root(squared))
    sign = ops.sign(q[0, 0])
    w = q + ops.matrix([[sign]] + [[0.0]] * (m - 1))
    w = w * (1.0 / ops.root(2.0 + 2.0 * sign * q[0, 0]))
    K, l = K - w @ ((w.T @ K) * 2.0), l - w * (2.0 * (w.T @ l)[0, 0])  # noqa: E741
    row, value = K[0:1, :], l[0, 0]
    inverse = 1.0 / (squared * Dinv)
    H = ops.symmetric(H + row.T @ (row * inverse))
    f = f - row.T * (inverse * value)
    return _Step(U, Dinv, u, Ks, m - 1, w, row, value, inverse), H, f, K[1:m, :], l[1:m, :]


# ---- loops -----------------------------------------------------------------------------------------------------------------


def lcaba(
    pose: Pose, rows: Rows, v: Matrix, tau: Matrix, k: Matrix, *, mu: Any = 1e6, iterations: int = 3, tolerance: float | None = None
) -> Motion:
    """Loop-constrained articulated bodies: augmented Lagrangian iterations by elimination along tree and loops; any rows. O(n + m) with loops that share no joints.

        (M + Jᵀ μ J) ν̇ = τ − c − Jᵀ (λ + μ γ),   λ ← λ + μ (J ν̇ + γ)

    Source: matrix-free paper, section III-B and algorithm 4; Sathya, Carpentier (2026).

    Args:
        pose: robot pose.
        rows: constraint rows.
        v, tau: (nv, 1) velocities and joint forces.
        k: (m, 1) wanted accelerations, see :func:`wanted`.
        mu: step μ; a scalar or one per row.
        iterations: maximum number of proximal iterations.
        tolerance: stop when the residual of every row is below this; only for numbers.
    """
    _door(pose, rows, v, tau, k)
    ops = pose.ops
    R = per_row(rows, mu, "mu")
    weight = ops.diagonal(R)
    factor = loop_factor(pose, rows, R)
    _, c, f = _velocities(pose, v)
    still = _at_rest(pose, c)
    gamma = _row_accelerations(pose, rows, still, ops.zeros(pose.nv, 1)) - k
    f = [fi - H @ a for fi, H, a in zip(f, pose.H, still, strict=True)]
    forces, done = ops.zeros(rows.m, 1), 0
    while done < count(iterations, "iterations"):
        done += 1
        given = -(forces + weight @ gamma)
        pulled = [x + y for x, y in zip(f, _link_forces(pose, rows, given), strict=True)]
        nudot, a = loop_solve(pose, factor, pulled, tau + _joint_forces(pose, rows, given))
        residual = _row_accelerations(pose, rows, a, nudot) + gamma
        forces = forces + weight @ residual
        if tolerance is not None and _size(residual) < tolerance:
            break
    return Motion(nudot, -forces, done)
