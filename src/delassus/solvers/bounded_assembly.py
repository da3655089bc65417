"""Assembly within joint ranges and with soft targets: a bounded nonlinear least-squares problem.

    minimise  ½ Σ w ‖e_t(q)‖² + ½ ρ dᵀ M₀ d    subject to  e(q) = 0,  lower ≤ q ≤ upper,      d = q ⊖ q₀

e are the position errors of the constraints, e_t those of the soft targets, in units of the mechanism's size. Gauss–Newton steps along the constraints alternate with
steps that close them again:

    minimise over δ   1/µ ‖J δ‖² + w ‖e_t + J_t δ‖² + ρ ‖d + D⁻¹ δ‖²_M₀ + ε ‖δ‖²    within the bounds
    restore           ‖e + J δ‖² + ε ‖δ‖²_M₀                                        within the bounds, until e = 0

Each step is a linear least-squares problem with bounds (SciPy's ``lsq_linear``); ε follows Levenberg's rule, and a step counts if the objective falls after restoring.
Dense, O(nv³) per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from ..constraints import Constraint, ConstraintRows
from ..dynamics import Workspace, mass_matrix
from ..model import Loop, Model
from ..state import difference, integrate
from .proximal import largest

__all__ = ["Bounded", "BoundedAssembly", "inverse_derivative", "joint_bounds", "outside"]

Array = NDArray[Any]
# penalty µ of leaving the constraints, relative; weight ρ of the distance to the start, relative to targets of weight one
_PENALTY, _NEARNESS = 1e-10, 1e-6
# it stops after this many steps in a row that reduce the objective by less than this fraction
_IDLE, _LITTLE = 3, 1e-6


def inverse_derivative(x: Array) -> Array:
    """D⁻¹(x) of exp(x) under rotations on the right: 1 + [x]× / 2 + k [x]×², k = (1 − θ/2 cot θ/2) / θ²."""
    angle = float(np.linalg.norm(x))
    k = 1 / 12 + angle**2 / 720 if angle < 1e-2 else (1 - angle / 2 / np.tan(angle / 2)) / angle**2
    X = np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])
    return np.asarray(np.eye(3) + X / 2 + k * X @ X)


def joint_bounds(model: Model) -> tuple[Array, Array, Array]:
    """Collect the ranges of hinges and slides: indices into v (k,), indices into q (k,), and bounds (k, 2); unbounded joints are left out."""
    kept = [
        (int(at_v), int(at_q), low, high)
        for kind, at_v, at_q, (low, high) in zip(model.joint_type, model.joint_vadr, model.joint_qadr, model.joint_range, strict=True)
        if kind in ("hinge", "slide") and (np.isfinite(low) or np.isfinite(high))
    ]
    return (
        np.array([k[0] for k in kept], dtype=int),
        np.array([k[1] for k in kept], dtype=int),
        np.array([k[2:] for k in kept], dtype=float).reshape(-1, 2),
    )


def outside(model: Model, q: Array) -> float:
    """Largest violation of a joint's range [rad or m]; zero within all ranges."""
    _, at, bounds = joint_bounds(model)
    return float(np.maximum(bounds[:, 0] - q[at], q[at] - bounds[:, 1]).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Bounded:
    """Result of a bounded assembly: q, errors of constraints and targets, relative length of the last step, objective, and errors after each step."""

    q: Array
    errors: Array
    target_errors: Array
    slope: float
    objective: float
    iterations: int
    history: list[float]


class BoundedAssembly:
    """One problem: hard rows, soft rows, bounds, and the start."""

    iterations: int
    history: list[float]

    def __init__(
        self,
        model: Model,
        start: Array,
        constraints: Sequence[Constraint | Loop],
        unit: Array,
        targets: Sequence[Constraint],
        weights: Array,
        target_unit: Array,
        limits: bool,
    ) -> None:
        self.model, self.work, self.start = model, Workspace(model), start
        self.hard, self.soft = (ConstraintRows(model, c) if c else None for c in (constraints, targets))
        self.unit, self.scale = unit, np.sqrt(weights) / target_unit
        at_v, at_q, bounds = joint_bounds(model)
        self.at_v, self.at_q, self.bounds = (at_v, at_q, bounds) if limits else (at_v[:0], at_q[:0], bounds[:0])
        M = mass_matrix(self.work, start)
        self.rho = _NEARNESS / float(np.trace(M) / max(model.nv, 1))
        self.metric = np.linalg.cholesky(M).T
        self.turns = [
            int(at) + 3 * (kind == "free") for at, kind in zip(model.joint_vadr, model.joint_type, strict=True) if kind in ("ball", "free")
        ]

    def jacobian(self, rows: ConstraintRows, q: Array) -> Array:
        """Form J (m, nv), column by column."""
        return np.array([rows.velocity(q, e) for e in np.eye(self.model.nv)]).T

    def errors(self, q: Array) -> tuple[Array, Array, Array]:
        """Evaluate e / unit, √w e_t / unit and √ρ M₀^½ d."""
        hard = self.hard.error(q) / self.unit if self.hard else np.zeros(0)
        soft = self.soft.error(q) * self.scale if self.soft else np.zeros(0)
        return hard, soft, np.sqrt(self.rho) * self.metric @ difference(self.work, self.start, q)

    def rows(self, q: Array) -> tuple[Array, Array, Array]:
        """Differentiate :meth:`errors` with respect to a motion δ of q."""
        n = self.model.nv
        hard = self.jacobian(self.hard, q) / self.unit[:, None] if self.hard else np.zeros((0, n))
        soft = self.jacobian(self.soft, q) * self.scale[:, None] if self.soft else np.zeros((0, n))
        d, turn = difference(self.work, self.start, q), np.eye(n)
        for at in self.turns:
            turn[at : at + 3, at : at + 3] = inverse_derivative(d[at : at + 3])
        return hard, soft, np.sqrt(self.rho) * self.metric @ turn

    def inside(self, q: Array) -> Array:
        """Move joints that are beyond their ranges to the nearest bound."""
        q = q.copy()
        q[self.at_q] = np.clip(q[self.at_q], self.bounds[:, 0], self.bounds[:, 1])
        return q

    def step_bounds(self, q: Array) -> tuple[Array, Array]:
        """Bounds of a step from q (nv,), with an interior, as ``lsq_linear`` needs."""
        low, high = np.full(self.model.nv, -np.inf), np.full(self.model.nv, np.inf)
        low[self.at_v], high[self.at_v] = self.bounds[:, 0] - q[self.at_q], self.bounds[:, 1] - q[self.at_q]
        return np.minimum(low, 0.0) - 1e-15, np.maximum(high, 0.0) + 1e-15

    def restore(self, q: Array, tolerance: float, limit: int) -> tuple[Array, float]:
        """Reduce the errors of the constraints alone from q, by Levenberg's method within the bounds; returns q and its largest error."""
        if self.hard is None:
            return q, 0.0
        e, damping = self.hard.error(q) / self.unit, 1e-8
        while largest(e) > 0.1 * tolerance and limit > 0 and damping < 1e8:
            limit -= 1
            self.iterations += 1
            J = self.jacobian(self.hard, q) / self.unit[:, None]
            A = np.vstack([J, np.sqrt(damping) * np.linalg.norm(J) * self.metric / np.linalg.norm(self.metric)])
            b = np.concatenate([-e, np.zeros(self.model.nv)])
            step = lsq_linear(A, b, self.step_bounds(q), method="bvls", tol=1e-14).x
            trial = self.inside(integrate(self.work, q, step))
            there = self.hard.error(trial) / self.unit
            left = e + J @ step
            promised, fell = float(e @ e - left @ left), float(e @ e - there @ there)
            if promised <= 1e-12 * float(e @ e):
                break
            if fell > 1e-4 * promised:
                q, e = trial, there
                self.history.append(largest(e * self.unit))
            damping = max(damping * (0.1 if fell > 0.5 * promised else 10.0), 1e-16)
        return q, largest(e)

    def solve(self, q: Array, tolerance: float, limit: int) -> Bounded:
        """Minimise from q within the bounds; at most ``limit`` steps."""
        n, slope, damping, idle = self.model.nv, 1.0, 1e-4, 0
        self.iterations, self.history = 0, []
        q, error = self.restore(self.inside(q), tolerance, limit)
        _, s, d = self.errors(q)
        while error <= tolerance and self.iterations < limit and damping < 1e8 and idle < _IDLE:
            J, S, D = self.rows(q)
            F, f = np.vstack([S, D]), np.concatenate([s, d])
            bounds, damp = self.step_bounds(q), np.sqrt(damping) * np.linalg.norm(F) * np.eye(n)
            # a step that keeps the constraints to first order: their rows weigh most
            weight = np.linalg.norm(F) / np.sqrt(_PENALTY) / max(float(np.linalg.norm(J)), 1e-300) if len(J) else 1.0
            A, b = np.vstack([weight * J, F, damp]), np.concatenate([np.zeros(len(J)), -f, np.zeros(n)])
            step = lsq_linear(A, b, bounds, method="bvls", tol=1e-14).x
            slope = (
                float(np.linalg.norm(self.metric @ step) / max(np.linalg.norm(d) / np.sqrt(self.rho), 1e-300)) if damping <= 1.0 else slope
            )
            left = f + F @ step
            promised = float(f @ f - left @ left)
            if promised <= 1e-13 * float(f @ f):
                break
            self.iterations += 1
            known = len(self.history)
            trial, missed = self.restore(self.inside(integrate(self.work, q, step)), tolerance, 20)
            _, s_there, d_there = self.errors(trial)
            fell = float(f @ f - s_there @ s_there - d_there @ d_there)
            if missed <= tolerance and fell > 1e-4 * promised:
                # near the solution steps zigzag along the curved constraints: the last digits are not worth hundreds of them
                idle = idle + 1 if damping <= 1.0 and fell < _LITTLE * float(f @ f) else 0
                q, error, s, d = trial, missed, s_there, d_there
            else:
                del self.history[known:]
            damping = max(damping * (0.1 if missed <= tolerance and fell > 0.5 * promised else 10.0), 1e-16)
        e = self.hard.error(q) if self.hard else np.zeros(0)
        soft = self.soft.error(q) if self.soft else np.zeros(0)
        return Bounded(q, e, soft, slope, 0.5 * float(s @ s + d @ d), self.iterations, self.history)
