"""Operations and memory of an elimination, counted from its plan.

Multiply-adds; a lone addition or multiplication counts as one; sines, divisions and checks are left out, zeros are not. A link has nv velocities, N neighbours and
P = N (N − 1) / 2 pairs of them when it is eliminated; links that no constraint reaches are eliminated with M, once per configuration.

    kinematics    per link: R 27, its rotation 12, p 9, S 6; inertia in world axes 63.  Point: 9 per link.  Row with terms: 6 per term
    elimination   per velocity: H S 36, D 6, downdate 27; per neighbour W 36, downdates 27 + 36; per pair 36.  Merging link: 21 + 36 N
                  free link: L D Lᵀ 50; per neighbour W 90, W D⁻¹ 36, downdate 126; per pair 216
    stiffness     point: 13 per link, 9 between two; added up once for all points of two links: 21 per link, 36 between two
                  row with terms: 27 per term, 42 per pair of terms.  Joint row: 1
    sweeps        per velocity: 26, per neighbour 12.  Merging link: 6.  Free link: 36, rotated into its axes if joints have rows 18;
                  with neighbours 6, per neighbour 72
    rows          in each direction. Point: 9, and 6 per link.  Row with terms: 6 per term.  Joint row: 1
    product       sweeps of the factor of M + rows + compliance, 1 per row
    solve         sweeps of the damped factor + rows + stiffness, 2 per row; in refinement a residual is a product, a correction a solve

Bytes are those of the numbers that a phase touches, each counted once; values passed from link to link in registers are left out.

    kinematics    q; per link: placement 12 and inertia 10, given and in world axes; S, 6 per velocity; point: 3 + 3 per link; K, 6 per term of a row
    factors       inertias; per velocity: S 6, U 6, D⁻¹ 1, W 6 per neighbour; free link: L 15, D⁻¹ 6, W 36 per neighbour; with damping also the
                  couplings, 36 each, points, K and stiffness
    product       the factor of what constraints reach; forces 6 per link, 1 per velocity; point: axes 9, position 3 per link; K; x, y and compliance
    solve         the same with the damped factor, stiffness in place of compliance
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraints import Constraint
from ..model import Model

__all__ = ["Explanation", "Phase"]


@dataclass(frozen=True)
class Phase:
    """Arithmetic and memory of one phase, for one state and one column."""

    multiply_adds: int
    bytes: int


@dataclass(frozen=True)
class Explanation:
    """Elimination of an operator and its cost for one state and one column; ``print`` gives a report.

    Attributes:
        model: name of the mechanism.
        dtype: name of the scalar type.
        velocities, constraints, rows: number of each.
        order: joints in elimination order.
        idle: number of joints that no constraint reaches; they come first in ``order``.
        widest: maximum number of neighbours of a link when it is eliminated.
        given: couplings between links due to constraints.
        arising: couplings added by the elimination (fill-in).
        kinematics: placements, inertias and rows at a configuration.
        mass_factor: factor of M.
        product: G x.
        damped_factor: work for a new damping.
        solve: (G + damping)⁻¹ y without refinement; a residual is one more product, a correction one more solve.
    """

    model: str
    dtype: str
    velocities: int
    constraints: int
    rows: int
    order: tuple[str, ...]
    idle: int
    widest: int
    given: int
    arising: int
    kinematics: Phase
    mass_factor: Phase
    product: Phase
    damped_factor: Phase
    solve: Phase

    @property
    def forming(self) -> int:
        """Multiply-adds to form the matrix G: one product per row."""
        return self.rows * self.product.multiply_adds

    @property
    def break_even(self) -> int | None:
        """Smallest number of products k for which forming G and multiplying by it, forming + k m², is cheaper than k matrix-free products; None if there is none."""
        saved = self.product.multiply_adds - self.rows**2
        return self.forming // saved + 1 if saved > 0 else None

    def _repr_html_(self) -> str:
        """Return the report for notebooks."""
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        reached = self.order[self.idle :]
        phases = {
            "kinematics": self.kinematics,
            "factor of M": self.mass_factor,
            "product G x": self.product,
            "factor with damping": self.damped_factor,
            "solve, unrefined": self.solve,
        }
        if self.rows == 0:
            advice = "no rows: G is empty"
        elif self.break_even is None:
            advice = f"forming G never pays off: {self.rows**2:,} per product"
        else:
            advice = (
                f"forming G pays off from {self.break_even:,} products on: {self.forming:,} to form it, then {self.rows**2:,} per product"
            )
        return "\n".join(
            [
                f"{self.model}: {len(self.order)} joints, {self.velocities} velocities, {self.constraints} constraints, {self.rows} rows, {self.dtype}",
                f"{'order':12}{self.idle} joints that no constraint reaches"
                + (f", then {len(reached)}: {reached[0]} … {reached[-1]}" if reached else ""),
                f"{'neighbours':12}at most {self.widest} when a link is eliminated",
                f"{'couplings':12}{self.given} from constraints, {self.arising} from fill-in",
                "",
                f"{'phase':21}{'multiply-adds':>15}{'bytes':>14}",
                *(f"{name:21}{phase.multiply_adds:15,}{phase.bytes:14,}" for name, phase in phases.items()),
                "",
                advice,
            ]
        )


@dataclass(frozen=True)
class _Steps:
    """Steps of an elimination, as arrays with one number per step."""

    nv: NDArray[np.int64]
    free: NDArray[np.bool_]
    merges: NDArray[np.bool_]
    neighbours: NDArray[np.int64]
    pairs: NDArray[np.int64]

    def __getitem__(self, which: slice) -> _Steps:
        return _Steps(self.nv[which], self.free[which], self.merges[which], self.neighbours[which], self.pairs[which])

    @property
    def uncoupled(self) -> _Steps:
        none = np.zeros_like(self.nv)
        return _Steps(self.nv, self.free, self.merges, none, none)

    @property
    def elimination(self) -> int:
        N, P = self.neighbours, self.pairs
        link = self.nv * (36 + 6 + 27 + (36 + 27 + 36) * N + 36 * P) + self.merges * (21 + 36 * N)
        return int(np.where(self.free, 50 + (90 + 36 + 126) * N + 216 * P, link).sum())

    def sweeps(self, joint_rows: int) -> int:
        N = self.neighbours
        link = self.nv * (26 + 12 * N) + 6 * self.merges
        return int(np.where(self.free, 36 + 18 * (joint_rows > 0) + 6 * (N > 0) + 72 * N, link).sum())

    @property
    def factor_numbers(self) -> int:
        """S, U and D⁻¹ per velocity, L and D⁻¹ of a free link, and W."""
        return int((np.where(self.free, 21, 13 * self.nv) + 6 * self.nv * self.neighbours).sum())


def explained(model: Model, constraints: Sequence[Constraint], dtype: np.dtype[Any], native: Any) -> Explanation:
    """Count the operations in the plan of a native operator."""
    plan, m = native.plan, sum(c.rows for c in constraints)
    columns = np.array(plan["steps"], dtype=np.int64).reshape(-1, 6).T
    steps = _Steps(columns[2], columns[3] > 0, columns[1] >= 0, columns[4], columns[5])
    idle, joint_rows = plan["idle"], plan["joint_rows"]
    reached, links = steps[idle:], len(steps.nv)

    # points, and the number of links they touch; rows with terms, and the number of terms
    points = [(count, 1 + (other >= 0)) for _, other, count in plan["points"]]
    placed = sum(count * on for count, on in points)
    terms = [(rows, len(of)) for rows, of in plan["terms"]]
    term_rows = sum(rows * of for rows, of in terms)
    pairs = [(link, other) for link, other, _ in plan["points"] if other >= 0]
    pairs += [pair for _, of in plan["terms"] for pair in combinations(of, 2)]
    given = len({frozenset(pair) for pair in pairs})

    rows = 2 * (sum(count * (9 + 6 * on) for count, on in points) + 6 * term_rows + joint_rows)
    stiffness = sum(count * (13 * on + 9 * (on > 1)) + 21 * on + 36 * (on > 1) for count, on in points)
    stiffness += sum(27 * r * of + 42 * r * of * (of - 1) // 2 for r, of in terms) + joint_rows
    row_numbers = sum(count * (9 + 3 * on) for count, on in points) + 6 * term_rows + joint_rows
    passage = 6 * len(reached.nv) + int(reached.nv.sum()) + row_numbers + 3 * m

    def phase(multiply_adds: int, numbers: int) -> Phase:
        return Phase(multiply_adds, numbers * dtype.itemsize)

    return Explanation(
        model=model.name,
        dtype=dtype.name,
        velocities=model.nv,
        constraints=len(constraints),
        rows=m,
        order=tuple(model.joint_names[i] for i in columns[0]),
        idle=idle,
        widest=native.widest,
        given=given,
        arising=len(native.couplings) - given,
        kinematics=phase(
            (27 + 12 + 9 + 6 + 63) * links + 9 * placed + 6 * term_rows, model.nq + 44 * links + 6 * model.nv + 6 * placed + 6 * term_rows
        ),
        mass_factor=phase(steps.uncoupled.elimination, 10 * links + steps.uncoupled.factor_numbers),
        product=phase(reached.uncoupled.sweeps(joint_rows) + rows + m, reached.uncoupled.factor_numbers + passage),
        damped_factor=phase(
            stiffness + reached.elimination,
            10 * len(reached.nv) + reached.factor_numbers + 36 * len(native.couplings) + 3 * placed + 6 * term_rows + m,
        ),
        solve=phase(reached.sweeps(joint_rows) + rows + 2 * m, reached.factor_numbers + passage),
    )
