"""Assembly: the nearest configuration in which constraints hold.

Closing is Levenberg's method in the metric of M, on the operator, with e the position errors of the rows:

    δ = −M⁻¹ Jᵀ (G + ε)⁻¹ e        least ‖e + J δ‖² + ε δᵀ M δ;   q ← q ⊕ δ if ‖e‖ falls sufficiently, else larger ε

Sliding then goes along the constraints towards the start q₀, with d = q ⊖ q₀, M₀ = M(q₀) and N = 1 − M⁻¹ Jᵀ G⁺ J, closing again after each step:

    t = −N M⁻¹ ∂(½ dᵀ M₀ d) ≈ −N d;   q ← close(q ⊕ α t) if dᵀ M₀ d falls sufficiently, else smaller α;   t = 0 at the nearest configuration
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import count, number
from .._html import result_table
from ..constraints import Constraint, ConstraintRows, JointCoupling
from ..dynamics import Workspace, mass_matrix
from ..errors import ArgumentError, ArgumentTypeError
from ..model import Loop, Model
from ..operators import DelassusOperator
from ..state import body_placements, difference, integrate, kinetic_energy
from ..types import AssemblyStatus
from .bounded_assembly import Bounded, BoundedAssembly, inverse_derivative, joint_bounds, outside
from .proximal import default_damping, largest, norm_of, operator_of, proximal

__all__ = ["AssemblyResult", "close_loops"]

Array = NDArray[Any]
# √(eᵀ G e) below this fraction of √‖G‖ ‖e‖: no motion reduces the error, to first order
_STATIONARY = 1e-7
# errors below this fraction of the mechanism's size that no motion reduces are inaccuracies of the model; stop after this many steps that hardly reduce them
_DRAWN, _IDLE = 1e-6, 12
# ‖t‖ below this fraction of ‖d‖: nearest
_NEAREST = 1e-7
# maximum numbers: reductions of a sliding step, steps to close it again, steps in memory
_SHORTER, _PATIENCE, _MEMORY = 8, 12, 20
# perturbations of a stationary error: fractions of the motion x whose second-order effect is the error, |J x| |x| = |e|
_KICKS, _ROUNDS = (0.3, 1.0, 2.0), 4
_ADVICE: dict[AssemblyStatus, str] = {
    "solved": "",
    "redundant": "Closed to the accuracy of the model: some rows depend on others, and no motion reduces their remaining errors, see errors.",
    "not_closable": "The error has a minimum here that is not zero. Check lengths and targets, or start from another configuration.",
    "iteration_limit": "Not closed yet: see residual. Give more max_iterations, or start closer to a solution.",
}
_AT_LIMITS = "The error cannot be reduced further within the joint ranges (see at_limit). Check lengths and targets, start from another configuration, or give limits=False."
# tolerance of joint ranges [rad or m]
_RANGE = 1e-9
_NOT_NEAREST = "Closed, but not at the nearest configuration: see slope. Start closer to it, or give more max_iterations."


@dataclass(frozen=True, eq=False)
class AssemblyResult:
    """Configuration in which constraints hold, or nearly, see :func:`close_loops`.

    Attributes:
        configuration: (nq,) q.
        status: "solved"; "redundant": closed, except for errors below 1e-6 of the mechanism's size that no motion reduces, as in a planar loop whose hinges are not quite
            parallel; "not_closable": the error is minimal here, to first order, and not zero; "iteration_limit".
        iterations: number of steps tried, of closing and sliding.
        residual: largest error |e| of the rows [m or rad].
        least_squares: ½ ‖e‖².
        stationarity: √(eᵀ G e) / (√‖G‖ ‖e‖), zero where no motion reduces the error, or if there is none.
        distance: √(dᵀ M(q₀) d) from the start q₀, d = q ⊖ q₀ [√kg m].
        slope: ‖t‖ / ‖d‖ in the metric of the mass matrix, t the direction of steepest descent of d along the constraints; zero at the nearest configuration, one if it was not
            sought.
        errors: (m,) e of the rows.
        history: largest error at the start and after each step that led to the result.
        advice: what to do about a status that is not "solved", or if the nearest configuration was not reached; else empty.
        target_errors: (mt,) errors of the soft targets' rows [m or rad]; empty without targets.
        at_limit: names of the joints that end at a bound of their range.
    """

    configuration: Array
    status: AssemblyStatus
    iterations: int
    residual: float
    least_squares: float
    stationarity: float
    distance: float
    slope: float
    errors: Array
    history: Array
    advice: str
    target_errors: Array
    at_limit: tuple[str, ...]

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


class _Assembler:
    """Memory, counters and steps of one assembly."""

    M0: Array  # mass matrix at the start

    def __init__(self, model: Model, G: DelassusOperator, q: ArrayLike, tolerance: float, limit: int) -> None:
        self.model, self.work, self.G, self.tolerance, self.limit = model, Workspace(model), G, tolerance, limit
        self.rows = ConstraintRows(model, G.constraints)
        self.start = integrate(self.work, q, model.zero_velocity())
        self.turns = [
            int(at) + 3 * (kind == "free") for at, kind in zip(model.joint_vadr, model.joint_type, strict=True) if kind in ("ball", "free")
        ]
        self.iterations, self.history = 0, [largest(self.rows.error(self.start))]
        self.unit = _units(model, G.constraints, self.start)
        self.norm = self.relative = 0.0  # ‖G‖ at the configuration, initial ε / ‖G‖ of the next step

    @property
    def exhausted(self) -> bool:
        return self.iterations >= self.limit

    def size(self, e: Array) -> float:
        """Largest error, lengths as fractions of the mechanism's size."""
        return largest(e / self.unit)

    def at(self, q: Array) -> None:
        self.G.update(q)
        self.norm = norm_of(self.G)

    def stationarity(self, e: Array) -> float:
        """√(eᵀ G e) / (√‖G‖ ‖e‖); G without compliance."""
        pulled = self.G.jacobian.H @ e
        power = float(pulled @ (self.G.mass_inverse @ pulled))
        scale = self.norm * float(e @ e)
        return float(np.sqrt(max(power, 0.0) / scale)) if scale > 0 else 0.0

    def close(self, q: Array, rival: float = np.inf, patience: float = np.inf) -> tuple[Array, Array]:
        """Close from q until errors are within tolerance, stationary, or the steps are used up; returns q and its errors. G is left at q.

        Stops early if ‖e‖² will not fall below ``rival``, or after ``patience`` steps.
        """
        G, e, end = self.G, self.rows.error(q), self.iterations + patience
        self.at(q)
        self.relative = min(1e-3, float(np.linalg.norm(e)))
        idle, last = 0, (np.inf, np.inf)
        while self.size(e) > self.tolerance and not self.exhausted:
            square, still = float(e @ e), self.stationarity(e)
            # neither the error nor its gradient gets smaller; at singular positions the error does, slowly
            size = self.size(e)
            idle, last = idle + 1 if size <= _DRAWN and size > 0.5 * last[0] and still > 0.5 * last[1] else 0, (size, still)
            if idle == _IDLE:
                break
            if still <= _STATIONARY or (still < 1e-3 and square > 0.999 * rival) or self.iterations >= end:
                break
            taken = False
            while not taken and not self.exhausted:
                self.iterations += 1
                G.damping = self.relative * self.norm
                step = -(G.mass_inverse @ (G.jacobian.H @ G.solve(e)))
                predicted = e + G.jacobian @ step
                trial = integrate(self.work, q, step)
                there = self.rows.error(trial)
                # decrease of ‖e‖² compared with that predicted by the linearized rows
                promised, fell = square - float(predicted @ predicted), square - float(there @ there)
                taken = promised > 0 and fell > 1e-4 * promised
                gain = fell / promised if promised > 0 else 0.0
                self.relative *= 0.1 if gain > 0.75 else 1.0 if gain > 0.25 else 3.0 if taken else 10.0
                self.relative = max(self.relative, 1e-14)
                if self.relative > 1e8:
                    return q, e  # no step reduces the error
            if not taken:
                break
            q, e = trial, there
            self.history.append(largest(e))
            self.at(q)
        return q, e

    def assemble(self, q: Array) -> tuple[Array, Array]:
        """Close; where the error is stationary but not zero, perturb and close again; returns the best result."""
        q, e = self.close(q)
        rng = np.random.default_rng(0)
        for kick in _KICKS:
            if self.size(e) <= self.tolerance or self.exhausted:
                break
            push = rng.standard_normal(self.model.nv)
            moved = float(np.linalg.norm(self.G.jacobian @ push))
            if moved == 0:
                break
            known = len(self.history)
            trial, there = self.close(integrate(self.work, q, push, kick * float(np.sqrt(np.linalg.norm(e) / moved))), float(e @ e))
            # a small error is given up only for a much smaller one: otherwise it is an inaccuracy of the model
            if there @ there < (0.25 if self.size(e) <= _DRAWN else 1.0) * (e @ e):
                q, e = trial, there
            else:
                del self.history[known:]
                self.at(q)
        return q, e

    def along(self, x: Array) -> Array:
        """N x: the part of a motion (nv,) that does not move the rows. G is at q, suitably damped."""
        G = self.G
        taken = proximal(G, G.jacobian @ x, self.norm, 1e-12, 20, rounding=1e-14 * largest(x)).forces
        return x - G.mass_inverse @ (G.jacobian.H @ taken)  # type: ignore[no-any-return]

    def descent(self, d: Array) -> Array:
        """Find t = −N M⁻¹ ∂(½ dᵀ M₀ d), the direction of steepest descent of d along the constraints."""
        self.G.damping = default_damping(self.norm)
        pull = self.M0 @ d
        # rotating by δ on the right changes a rotation vector d by D⁻¹(d) δ
        for at in self.turns:
            pull[at : at + 3] = inverse_derivative(d[at : at + 3]).T @ pull[at : at + 3]
        return -self.along(self.G.mass_inverse @ pull)

    def advance(self, q: Array, way: Array, down: float, far: float) -> tuple[Array, Array, Array, float] | None:
        """Take a step in a direction in which ½ dᵀ M₀ d = ½ far falls at the rate ``down``, and close: q, its errors, d and the decrease; None if no step is good."""
        step = 1.0
        for _ in range(_SHORTER):
            if self.exhausted:
                return None
            self.iterations += 1
            known = len(self.history)
            trial, e = self.close(integrate(self.work, q, way, step), patience=_PATIENCE)
            d = difference(self.work, self.start, trial)
            fell = 0.5 * (far - float(d @ self.M0 @ d))
            if self.size(e) <= self.tolerance and fell > 1e-4 * step * down:
                return trial, e, d, fell
            del self.history[known:]
            step /= 4
        return None

    def slide(self, q: Array, e: Array) -> tuple[Array, Array, float]:
        """Move along the constraints towards the start, with curvature from the last steps (L-BFGS); returns q, its errors and ‖t‖ / ‖d‖."""
        self.M0, M, d = mass_matrix(self.work, self.start), np.empty((self.model.nv, self.model.nv)), difference(self.work, self.start, q)
        memory: list[tuple[Array, Array]] = []
        t, poor, nothing = self.descent(d), 0, float(np.trace(self.M0)) * 1e-28
        while True:
            mass_matrix(self.work, q, out=M)
            steep, far = float(t @ M @ t), float(d @ self.M0 @ d)
            slope = float(np.sqrt(steep / far)) if far > nothing else 0.0
            if slope <= _NEAREST or poor > 1:
                return q, e, slope
            way = self.along(_quasi_newton(memory, M, t))
            down = float(way @ M @ t)
            if not down > 1e-6 * float(np.sqrt(steep * (way @ M @ way))):
                way, down, memory = t, steep, []
            # no step needs to be longer than d
            cut = min(1.0, float(np.sqrt(far / (way @ M @ way))))
            way, down = cut * way, cut * down
            found = self.advance(q, way, down, far)
            if found is None:
                self.at(q)
                return q, e, slope
            # steps hardly improve: the nearest configuration is singular
            poor = poor + 1 if found[3] < min(1e-3 * steep, 1e-6 * far) else 0
            before, lost = q, t
            q, e, d, _ = found
            self.history.append(largest(e))
            t = self.descent(d)
            memory = [*memory[-_MEMORY + 1 :], (difference(self.work, before, q), lost - t)]


def _units(model: Model, constraints: Sequence[Constraint], q: Array) -> Array:
    """Find the units of the rows' errors, (m,): the size of the mechanism for lengths, one for angles."""
    places = body_placements(model, q)[1:, :3, 3]
    size = float(np.linalg.norm(places - places.mean(axis=0), axis=1).max(initial=0.0)) if len(places) else 0.0
    size = size if size > 0 else 1.0
    rows: list[Array] = [np.zeros(0)]
    for c in constraints:
        turns = isinstance(c, JointCoupling) and c.turns
        lengths = c._recipe[2]["point_rows"]
        rows.append(np.array([1.0] if turns else [size] * lengths + [1.0] * (c.rows - lengths)))
    return np.concatenate(rows)


def _quasi_newton(memory: list[tuple[Array, Array]], M: Array, t: Array) -> Array:
    """Two loops over steps s and the decreases y of t over them, in the inner product of M (Nocedal and Wright, algorithm 7.4)."""
    pairs = [(s, y, s @ M @ y) for s, y in memory]
    pairs = [(s, y, sy) for s, y, sy in pairs if sy > 1e-12 * np.sqrt((s @ M @ s) * (y @ M @ y))]
    x: Array = t.copy()
    weights: list[float] = []
    for s, y, sy in reversed(pairs):
        weights.append(s @ M @ x / sy)
        x -= weights[-1] * y
    if pairs:
        _, y, sy = pairs[-1]
        x *= sy / (y @ M @ y)
    for (s, y, sy), weight in zip(pairs, reversed(weights), strict=True):
        x += (weight - y @ M @ x / sy) * s
    return x


def close_loops(
    model: Model,
    q: ArrayLike,
    constraints: Sequence[Constraint | Loop] | DelassusOperator | None = None,
    *,
    targets: Sequence[Constraint | tuple[Constraint, float]] = (),
    limits: bool = True,
    nearest: bool = True,
    tolerance: float = 1e-11,
    max_iterations: int = 500,
) -> AssemblyResult:
    """Find the configuration nearest to q in which constraints hold, e(q) = 0, within joint ranges; also inverse kinematics with soft targets.

    Nearest means the minimum of dᵀ M(q₀) d, d = q ⊖ q₀, M(q₀) the mass matrix at the start: heavy bodies move least. The result is a local minimum: a mechanism that can be
    assembled in several ways is assembled in the way closest to the start. Singular positions and redundant constraints are allowed. At a dead centre, where the error is
    stationary but not zero, the configuration is perturbed (always in the same way) and the search repeated.

    Without targets, and where joint ranges do not matter, Levenberg's method runs on the matrix-free operator. Otherwise a bounded least-squares problem is solved,
    with dense matrices (see ``bounded_assembly.py``).

    Args:
        model: the mechanism.
        q: (nq,) initial configuration.
        constraints: constraints of this model, or its loops; default ``model.loops``; or an operator of them to reuse, which is left updated at the result and keeps its
            damping. The gap of contacts is closed. Rows without a position (tangents of contacts, ``LinkConstraint``) do not move, to first order.
        targets: soft constraints, or pairs (constraint, weight): Σ weight ‖e‖² is minimised subject to the constraints and ranges, lengths in units of the mechanism's size,
            angles in rad. The default weight is 1. The distance to the start has weight 1e-6, so reachable targets are reached.
        limits: keep hinges and slides within ``model.joint_range``.
        nearest: slide to the nearest configuration after closing; False keeps the result of closing from q, which is close to it. Ignored where targets or ranges matter.
        tolerance: tolerance for the largest error, lengths relative to the mechanism's size (the largest distance of a body from the centre of all bodies), angles in rad.
        max_iterations: maximum number of steps, of closing and sliding together.

    Returns:
        configuration, status and residuals.

    Raises:
        ArgumentError: a constraint or target is an inequality (limit, friction): it has no position to reach.

    Examples:
        >>> import delassus as dl
        >>> model = dl.scenes.four_bar()
        >>> closed = dl.close_loops(model, [0.3, 0.0, 0.0])
        >>> closed.status, closed.residual < 1e-11
        ('solved', True)
    """
    if constraints is None:
        constraints = model.loops if isinstance(model, Model) else ()
    G = operator_of(model, constraints)
    _check_positions(G.constraints, "constraints")
    wanted, weights = _targets(model, targets)
    tolerance, limit = number(tolerance, "tolerance", minimum=0.0), count(max_iterations, "max_iterations")
    work, damping = _Assembler(model, G, q, tolerance, limit), G.damping
    q, e = work.assemble(work.start)
    closed, slope = work.size(e) <= tolerance, 1.0
    # an error that no motion reduces, no larger than the accuracy of the model
    redundant = not closed and work.size(e) <= _DRAWN and work.stationarity(e) <= 1e-3
    still = work.stationarity(e) if not closed else 0.0
    # where ranges matter, the nearest configuration without them is not needed
    if nearest and not wanted and (closed or redundant) and not (limits and outside(model, q) > _RANGE):
        work.tolerance = max(tolerance, 1.5 * work.size(e))
        q, e, slope = work.slide(q, e)
        work.tolerance = tolerance
        if redundant:
            q, e = work.close(q)
    soft, bounded = np.zeros(0), bool(wanted) or (limits and outside(model, q) > _RANGE)
    if bounded:
        q, e, soft, slope = _within(work, q, wanted, weights, limits, limit)
        closed = work.size(e) <= tolerance
        redundant = not closed and work.size(e) <= _DRAWN
        work.at(q)
        still = work.stationarity(e) if not closed else 0.0
    if damping is not None:
        G.damping = damping
    status: AssemblyStatus = "solved" if closed else "redundant" if redundant else "iteration_limit" if work.exhausted else "not_closable"
    held = _at_limit(model, q) if limits else ()
    advice = _AT_LIMITS if status == "not_closable" and held else _ADVICE[status]
    return AssemblyResult(
        configuration=q,
        status=status,
        iterations=work.iterations,
        residual=largest(e),
        least_squares=0.5 * float(e @ e),
        stationarity=still,
        distance=float(np.sqrt(2 * kinetic_energy(model, work.start, difference(model, work.start, q)))),
        slope=slope,
        errors=e,
        history=np.array(work.history),
        advice=_NOT_NEAREST if closed and not bounded and nearest and slope > 1e-3 else advice,
        target_errors=soft,
        at_limit=held,
    )


def _check_positions(constraints: Sequence[Constraint], name: str) -> None:
    for k, c in enumerate(constraints):
        if c.force_set in ("half-line", "box"):
            raise ArgumentError(
                f"{name}[{k}]: expected a constraint that holds a position, got {type(c).__name__}. Leave it out, or hold the joint with JointCoupling."
            )


def _targets(model: Model, targets: Sequence[Constraint | tuple[Constraint, float]]) -> tuple[list[Constraint], Array]:
    """Check soft targets and split them: constraints, and weights of their rows (mt,)."""
    wanted, weights = [], [np.zeros(0)]
    for k, target in enumerate(targets):
        constraint, weight = target if isinstance(target, tuple) else (target, 1.0)
        if not isinstance(constraint, Constraint):
            raise ArgumentTypeError(f"targets[{k}]: expected a constraint or a pair (constraint, weight), got {type(constraint).__name__}.")
        wanted.append(constraint)
        weights.append(np.full(constraint.rows, number(weight, f"targets[{k}]", minimum=0.0)))
    _check_positions(wanted, "targets")
    return wanted, np.concatenate(weights)


def _within(
    work: _Assembler, q: Array, targets: list[Constraint], weights: Array, limits: bool, limit: int
) -> tuple[Array, Array, Array, float]:
    """Solve the bounded problem from the start and from the unbounded result q; returns the better one: q, errors, errors of targets, slope."""
    unit = _units(work.model, targets, work.start)
    problem = BoundedAssembly(work.model, work.start, work.G.constraints, work.unit, targets, weights, unit, limits)
    budget = max(limit - work.iterations, limit // 2, 20)
    tries = [problem.solve(start, work.tolerance, budget // 2) for start in (q, work.start)]

    def error(t: Bounded) -> float:
        return max(largest(t.errors / work.unit), work.tolerance)

    # prefer one that closes; of those that close, the one with the lowest objective
    best = min(tries, key=lambda t: (error(t), t.objective))
    # a minimum within the ranges that is not zero: restart from other points, the same every time
    rng = np.random.default_rng(0)
    for kick in _KICKS * _ROUNDS:
        left = budget - sum(t.iterations for t in tries)
        if error(best) <= work.tolerance or left <= 0 or not limits:
            break
        push = rng.standard_normal(work.model.nv)
        tries.append(problem.solve(integrate(work.work, work.start, push, kick), work.tolerance, left))
        best = min(best, tries[-1], key=lambda t: (error(t), t.objective))
    work.iterations += sum(t.iterations for t in tries)
    work.history += best.history
    return best.q, best.errors, best.target_errors, best.slope


def _at_limit(model: Model, q: Array) -> tuple[str, ...]:
    """List the joints that stand at a bound of their range."""
    _, at, bounds = joint_bounds(model)
    names = dict(zip((int(a) for a in model.joint_qadr), model.joint_names, strict=True))
    return tuple(names[int(a)] for a, (low, high) in zip(at, bounds, strict=True) if min(q[a] - low, high - q[a]) < _RANGE)
