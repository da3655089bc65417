"""Constrained forward dynamics: accelerations and constraint forces of a mechanism with loops and contacts.

    M ν̇ + h = τ + Jᵀ λ,   J ν̇ + C λ + γ = 0,   γ = J̇ν + k_d J ν + k_p e

by proximal iterations: exact for redundant rows, least squares where rows contradict each other. The status is computed from the two equations, for every method.

The docstrings of the single and the batched solver list all arguments, so that each can be read on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import _core
from .._door import count, diagonal, native_class, number, unknown
from .._html import result_table
from ..constraints import Constraint, collect
from ..errors import ArgumentError
from ..model import Loop, Model
from ..model.model import as_model
from ..types import DynamicsMethod, DynamicsStatus

__all__ = [
    "BatchConstrainedDynamics",
    "BatchDynamicsResult",
    "ConstrainedDynamics",
    "DynamicsResiduals",
    "DynamicsResult",
    "constrained_dynamics",
]

Array = NDArray[Any]
STATUSES: tuple[DynamicsStatus, ...] = ("solved", "infeasible_least_squares", "iteration_limit", "stalled", "redundant")
_ADVICE: dict[DynamicsStatus, str] = {
    "solved": "",
    "redundant": "Some rows depend on others up to the accuracy of the model, and hold up to that, see residuals.constraints: remove them, or close the "
    "loops with close_loops.",
    "infeasible_least_squares": "The constraints contradict each other here: their accelerations are met in the least-squares sense. Look at Baumgarte gains and at "
    "rows that fix the same motion.",
    "iteration_limit": "The equations do not hold to the tolerance yet, see residuals: raise max_iterations or mu, warm-start with these forces, or use method 'auto'.",
    "stalled": "Rounding errors keep the equations from holding to the tolerance, see residuals: use method 'auto', float64 or a looser tolerance, or look for parts that are very "
    "light and rows that nearly depend on each other.",
    "relaxed": "",
}
# Advice when the last method fails too.
_NOTHING_HELPS = (
    "No method meets the equations to the tolerance, see residuals: loosen it, use float64, or look for parts that are very light and rows that nearly depend on each "
    "other."
)
# Default damping ε of the proximal iterations as a fraction of G's own diagonal: for rows of lengths, of rotations. In float64 so small that one
# correction suffices; less costs digits of M.
_DAMPING = {8: (5e-8, 3e-9), 4: (1e-3, 1e-3)}
# Suffixes of the names of native classes.
_BITS: dict[np.dtype[Any], int] = {np.dtype(np.float64): 64, np.dtype(np.float32): 32}
# Native class, whether it takes rows on more than one link and rows of joints, whether it stops after one iteration.
_METHODS: dict[str, tuple[str, bool, bool]] = {
    "auto": ("Automatic", True, False),
    "lcaba": ("ConstrainedDynamics", True, False),
    "caba": ("ConstrainedDynamics", False, False),
    "pv-soft": ("ConstrainedDynamics", False, True),
    "soft-gauss": ("Automatic", True, True),
    "kkt": ("Kkt", True, False),
    "prox-ltl": ("ProxLtl", True, False),
    "prox-ltls": ("ProxLtls", False, False),
    "pv": ("Pv", False, True),
    "prox-pv": ("ProxPv", False, False),
    "pv-early": ("PvEarly", False, False),
}


@dataclass(frozen=True)
class DynamicsResiduals:
    """Residuals of the equations.

    Attributes:
        primal: largest |J ν̇ + C λ + γ| [m/s² or rad/s²].
        constraints: the same, each row divided by the scale of its equation: the sum of |γ|, |C λ| and the magnitudes of the joint accelerations that move its points.
        dynamics: largest |M ν̇ + h − τ − Jᵀ λ|, each joint's row divided by the scale of its equation: the sum of the magnitudes of all forces on its subtree, or of
            their moments about the joint. Neither this nor ``constraints`` has a unit.
        dual: largest change of J ν̇ in the last iteration [m/s² or rad/s²]; zero after a single one.
        least_squares: largest |G (J ν̇ + C λ + γ)|, the gradient of ½ ‖J ν̇ + C λ + γ‖² along forces, in the metric of 1 / mu.
    """

    primal: float
    constraints: float
    dynamics: float
    dual: float
    least_squares: float


@dataclass(frozen=True, eq=False)
class DynamicsResult:
    """Accelerations and forces, see :func:`constrained_dynamics`.

    Attributes:
        acceleration: (nv,) ν̇ [m/s² or rad/s²], the rate of v.
        forces: (m,) λ [N or N m], axes of the rows; a positive one pushes the first body away from the second.
        status: "solved": both equations hold; "redundant": rows depend on each other up to 1e-6 of their scale, and hold up to that;
            "infeasible_least_squares": the rows contradict each other, this is the least-squares solution; "iteration_limit"; "stalled": rounding errors keep the
            residual from decreasing; "relaxed": a soft method, whose own equations hold.
        iterations: number of proximal iterations.
        residuals: ``primal``, ``constraints``, ``dynamics``, ``dual``, ``least_squares``.
        method: method that found the solution: the one requested, or for "auto" and "soft-gauss" "lcaba" or "kkt".
        history: (iterations,) primal residual after each iteration.
        constraint_forces: the forces, an array per constraint.
        advice: what to do about the status, or empty.
    """

    acceleration: Array
    forces: Array
    status: DynamicsStatus
    iterations: int
    residuals: DynamicsResiduals
    method: str
    history: Array
    constraint_forces: tuple[Array, ...]
    advice: str

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


@dataclass(frozen=True, eq=False)
class BatchDynamicsResult:
    """Accelerations and forces of many states, see :class:`BatchConstrainedDynamics`.

    Attributes:
        acceleration: (batch_size, nv).
        forces: (batch_size, m).
        status: (batch_size,) strings, see :class:`DynamicsResult`.
        iterations: (batch_size,).
        primal, constraints, dynamics, dual, least_squares: (batch_size,) residuals, see :class:`DynamicsResiduals`.
        repaired: (batch_size,) True where "kkt" was used.
    """

    acceleration: Array
    forces: Array
    status: Array
    iterations: Array
    primal: Array
    constraints: Array
    dynamics: Array
    dual: Array
    least_squares: Array
    repaired: Array

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


class _Settings:
    """What one state and a batch share: the constraints and the iteration settings."""

    _native: Any
    _rows: tuple[int, ...]  # shape of one number per row

    def _prepare(
        self, model: Model, constraints: Sequence[Constraint | Loop], method: str, tolerance: float, max_iterations: int, dtype: DTypeLike
    ) -> str:
        """Check the settings; returns the name of the native class."""
        self.model = as_model(model)
        if method not in _METHODS:
            raise unknown("method", method, list(_METHODS))
        self.dtype, bits = native_class(dtype, _BITS)
        self.constraints = tuple(collect(model, constraints))
        self.method = method
        name, _, self._single = _METHODS[self.method]
        self.tolerance = number(tolerance, "tolerance", minimum=0.0)
        self.max_iterations = 1 if self._single else count(max_iterations, "max_iterations")
        return f"{name}{bits}"

    @property
    def nbytes(self) -> int:
        """Memory of the solver [B]."""
        return self._native.nbytes  # type: ignore[no-any-return]

    def _weigh(self, mu: ArrayLike | None, compliance: ArrayLike) -> tuple[Array, Array]:
        """ε and C, one number per row."""
        given = diagonal(compliance, "compliance", self._rows, self.dtype)
        if self.method == "soft-gauss":
            if not (given > 0).all():
                raise ArgumentError(
                    "compliance: method 'soft-gauss' needs a positive number for every row, the R of its springs; MuJoCo calls it efc_R."
                )
            return given, np.zeros_like(given)
        if mu is None:
            return np.broadcast_to(self._own_damping(), self._rows).astype(self.dtype), given
        weight = diagonal(mu, "mu", self._rows, self.dtype)
        if not (weight > 0).all():
            raise ArgumentError(f"mu: expected positive numbers, got {float(weight.min()):g}.")
        return 1 / weight, given

    def _own_damping(self) -> Array:
        """ε as a fraction of G's own diagonal: its geometric mean over some configurations, the same each time, and over the three rows of a point."""
        native = [c._native() for c in self.constraints]
        rng = np.random.default_rng(0)
        configurations = [self.model.neutral(), self.model.random(rng), self.model.random(rng)]
        own = np.stack([_core.delassus_diagonal64(self.model._native, native, q) for q in configurations])
        ends = np.cumsum([c.rows for c in self.constraints])
        lengths, rotations = _DAMPING[self.dtype.itemsize]
        part = np.full(own.shape[1], lengths)
        for first, end in zip([0, *ends], ends, strict=False):
            middle = min(first + 3, end)
            part[middle:end] = rotations
            own[:, first:middle] = own[:, first:middle].mean(axis=1, keepdims=True)
            # a rotation row that no joint moves gives no scale
            turns = own[:, middle:end]
            largest = turns.max(axis=1, initial=0.0, keepdims=True)
            own[:, middle:end] = np.where(turns > 1e-12 * largest, turns, largest)
        known = np.isfinite(own) & (own > 0)
        logs, times = np.log(np.where(known, own, 1.0)), known.sum(axis=0)
        usual = logs.sum() / max(times.sum(), 1)
        return np.asarray(part * np.exp(np.where(times > 0, logs.sum(axis=0) / np.maximum(times, 1), usual)))


class ConstrainedDynamics(_Settings):
    """Constrained forward dynamics of one mechanism with fixed constraints, for many states in turn: symbolic work and allocation are done once.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops. May be empty.
        method, mu, tolerance, max_iterations, compliance: see :func:`constrained_dynamics`.
        dtype: float64 or float32.

    Examples:
        >>> import delassus as dl
        >>> model = dl.load("cassie")
        >>> dynamics = dl.ConstrainedDynamics(model, model.loops)
        >>> dynamics.solve(model.keyframes["home"], model.zero_velocity()).status
        'solved'
    """

    def __init__(
        self,
        model: Model,
        constraints: Sequence[Constraint | Loop],
        *,
        method: DynamicsMethod = "auto",
        mu: ArrayLike | None = None,
        tolerance: float = 1e-12,
        max_iterations: int = 20,
        compliance: ArrayLike = 0.0,
        dtype: DTypeLike = np.float64,
    ) -> None:
        name = self._prepare(model, constraints, method, tolerance, max_iterations, dtype)
        self._rows = (sum(c.rows for c in self.constraints),)
        ends = np.cumsum([c.rows for c in self.constraints]).tolist()
        self._parts = [slice(first, end) for first, end in zip([0, *ends], ends, strict=False)]
        self._native = getattr(_core, name)(model._native, [c._native() for c in self.constraints])
        if not _METHODS[self.method][1] and not self._native.suits_rows:
            able = ", ".join(repr(k) for k, (_, any_rows, _) in _METHODS.items() if any_rows)
            raise ArgumentError(
                f"method: {self.method!r} takes rows that act on one body and the world; these also act between bodies or on joints. Use {able}."
            )
        self._damping, given = self._weigh(mu, compliance)
        self._native.set_compliance(given)
        self._native.give_way(self._single)
        self._history = np.zeros(self.max_iterations, dtype=self.dtype)

    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | None = None,
        *,
        external_forces: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        warm_start: ArrayLike | None = None,
        acceleration: Array | None = None,
        forces: Array | None = None,
    ) -> DynamicsResult:
        """Accelerations and forces in a state.

        Args:
            q, v, tau, external_forces, warm_start: see :func:`constrained_dynamics`.
            bias: (m,) γ to use instead of the constraints' own.
            acceleration, forces: (nv,), (m,) arrays to fill.
        """
        a, f, outcome, iterations, primal, dual, least, dynamics, rows, repaired = self._native.solve(
            q,
            v,
            tau,
            external_forces,
            bias,
            self._damping,
            self.max_iterations,
            self.tolerance,
            warm_start,
            acceleration,
            forces,
            self._history,
        )
        status: DynamicsStatus = "relaxed" if self._single and self._rows[0] and outcome == 0 else STATUSES[outcome]
        parts = tuple([f[part] for part in self._parts])
        residuals = DynamicsResiduals(primal, rows, dynamics, dual, least)
        found = "kkt" if repaired else "lcaba" if self.method in ("auto", "soft-gauss") else self.method
        advice = _NOTHING_HELPS if status in ("stalled", "iteration_limit") and found == "kkt" else _ADVICE[status]
        return DynamicsResult(a, f, status, iterations, residuals, found, self._history[:iterations].copy(), parts, advice)

    def __repr__(self) -> str:
        return f"<ConstrainedDynamics of {self.model.name!r}: {self._rows[0]} rows, method {self.method!r}, {self.dtype}>"


class BatchConstrainedDynamics(_Settings):
    """Constrained forward dynamics of many states of one mechanism, processed as many at a time as a vector register holds.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops, the same for all states.
        batch_size: number of states.
        method: "auto": "lcaba", then "kkt" for states on which it fails; "lcaba" or "soft-gauss".
        mu, compliance: scalar, (m,) or (batch_size, m); tolerance, max_iterations: see :func:`constrained_dynamics`.
        dtype: float64 or float32.
        threads: number of threads, including the caller.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> model = dl.load("cassie")
        >>> B = dl.BatchConstrainedDynamics(model, model.loops, 10)
        >>> q = np.stack([model.random(k) for k in range(10)])
        >>> B.solve(q, np.zeros((10, model.nv))).acceleration.shape
        (10, 32)
    """

    def __init__(
        self,
        model: Model,
        constraints: Sequence[Constraint | Loop],
        batch_size: int,
        *,
        method: DynamicsMethod = "auto",
        mu: ArrayLike | None = None,
        tolerance: float = 1e-12,
        max_iterations: int = 20,
        compliance: ArrayLike = 0.0,
        dtype: DTypeLike = np.float64,
        threads: int = 1,
    ) -> None:
        self._prepare(model, constraints, method, tolerance, max_iterations, dtype)
        if self.method not in ("auto", "lcaba", "soft-gauss"):
            raise ArgumentError(f"method: batches know 'auto', 'lcaba' and 'soft-gauss', got {self.method!r}.")
        self.batch_size = count(batch_size, "batch_size")
        self._rows = (self.batch_size, sum(c.rows for c in self.constraints))
        self._native = getattr(_core, f"BatchConstrainedDynamics{self.dtype.itemsize * 8}")(
            model._native, [c._native() for c in self.constraints], self.batch_size, count(threads, "threads"), self.method != "lcaba"
        )
        self._native.give_way(self._single)
        self._damping, self._compliance = self._weigh(mu, compliance)

    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | None = None,
        *,
        external_forces: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        warm_start: ArrayLike | None = None,
        acceleration: Array | None = None,
        forces: Array | None = None,
    ) -> BatchDynamicsResult:
        """Accelerations and forces of every state; arrays as in :meth:`ConstrainedDynamics.solve`, with a leading batch axis."""
        a, f, numbers = self._native.solve(
            q,
            v,
            tau,
            external_forces,
            bias,
            self._damping,
            self._compliance,
            self.max_iterations,
            self.tolerance,
            warm_start,
            acceleration,
            forces,
            None,
        )
        words = np.array(("relaxed", *STATUSES[1:]) if self._single and self._rows[1] else STATUSES)
        outcome, iterations, primal, dual, least, dynamics, rows, repaired = numbers
        return BatchDynamicsResult(
            a, f, words[outcome.astype(int)], iterations.astype(int), primal, rows, dynamics, dual, least, repaired.astype(bool)
        )

    def __repr__(self) -> str:
        return f"<BatchConstrainedDynamics of {self.model.name!r}: {self.batch_size} states, {self._rows[1]} rows, method {self.method!r}, {self.dtype}>"


def constrained_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    constraints: Sequence[Constraint | Loop],
    *,
    method: DynamicsMethod = "auto",
    external_forces: ArrayLike | None = None,
    mu: ArrayLike | None = None,
    tolerance: float = 1e-12,
    max_iterations: int = 20,
    warm_start: ArrayLike | None = None,
    compliance: ArrayLike = 0.0,
) -> DynamicsResult:
    """Accelerations ν̇ and constraint forces λ of a mechanism with loops and contacts.

        minimise ½ ‖ν̇ − M⁻¹ (τ − h)‖²_M   where   J ν̇ + C λ + γ = 0,   γ = J̇ν + k_d J ν + k_p e

    Forces are not restricted to cones or boxes: contacts also pull. Rows may be redundant; if they contradict each other the result is the least-squares solution.

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        v: (nv,) velocity.
        tau: (nv,) joint forces [N m or N], None for none.
        constraints: constraints of this model, or its loops. For repeated calls with the same ones keep a :class:`ConstrainedDynamics`.
        method: "auto": "lcaba", then "kkt" where it does not solve the equations; "lcaba": any rows, O(n + m) per iteration; "kkt": any rows, one dense factor of both
            equations, the most robust and slowest; "caba": the same for rows on one body each; "pv-soft": one iteration of it, a spring of stiffness
            ``mu`` on every row's acceleration; "soft-gauss": springs of compliance ``compliance``, as MuJoCo's equality constraints; "prox-ltl": any
            rows, by the sparse factor of M and a dense one of G; "prox-ltls": by the sparse factor of M + μ JᵀJ, rows on one body or joint each; "prox-pv": by Popov and Vereshchagin's recursion, rows on one body
            each; "pv": the same with a single solve, biased towards zero by 1 / ``mu``; "pv-early": multipliers eliminated early, exact and without
            ``mu``.
        external_forces: (nbody, 6) ``[force; torque]`` [N, N m], world axes, at each body's centre of mass.
        mu: 1 / ε of the proximal iterations, scalar or (m,): a larger value needs fewer iterations and loses more digits. None: ε is 5e-8 (rotations: 3e-9) of G's own diagonal at some configurations
            of the model (1e-3 in float32), so that units of mass, length and time do not matter.
        tolerance: tolerance for ``residuals.constraints`` and ``residuals.dynamics``; at least 256 roundings.
        max_iterations: maximum number of proximal iterations.
        warm_start: (m,) initial forces, such as those of the previous state.
        compliance: C, scalar or (m,): rows are soft, J ν̇ + C λ + γ = 0.

    Returns:
        ``acceleration``, ``forces``, ``status``, ``iterations``, ``residuals``, ``history``.

    Raises:
        ArgumentError: the method does not support these constraints; the message names those that do.

    Examples:
        >>> import delassus as dl
        >>> model = dl.scenes.four_bar()
        >>> r = dl.constrained_dynamics(model, model.neutral(), model.zero_velocity(), None, model.loops)
        >>> r.status, r.acceleration.shape, r.forces.shape
        ('solved', (3,), (3,))
    """
    dynamics = ConstrainedDynamics(
        model, constraints, method=method, mu=mu, tolerance=tolerance, max_iterations=max_iterations, compliance=compliance
    )
    return dynamics.solve(q, v, tau, external_forces=external_forces, warm_start=warm_start)
