"""Contact forces: λ in its set with σ = G λ + g, for friction cones, limits, dry friction and loops together.

    K ∋ λ ⊥ σ + Γ(σ) ∈ K*,   σ = G λ + g,   Γ(σ) = µ ‖σ_T‖ n on every contact

Γ is de Saxcé's term: with it friction is exactly Coulomb's, and sliding contacts do not open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import as_array, conform, count, finite, number, numbers, unknown
from .._html import result_table
from ..constraints import Constraint, JointFriction, PointContact, collect
from ..errors import ArgumentError, ArgumentTypeError, StaleError
from ..model import Loop
from ..operators import DelassusOperator
from ..types import ContactMethod, ContactStatus

__all__ = ["ContactResiduals", "ContactResult", "ContactSolver", "solve_contacts"]

Array = NDArray[Any]
_STATUS: tuple[ContactStatus, ...] = ("solved", "iteration_limit", "stalled", "infeasible", "approximate")  # by the core's numbers
_ADVICE: dict[ContactStatus, str] = {
    "solved": "",
    "approximate": "Forces are in their cones, but violate Coulomb's law by the residuals: 'lcp' and 'apgd' solve another problem, 'auto' ran out of iterations, time "
    "or methods. Use method 'auto' with more max_iterations, or more directions for 'lcp'.",
    "iteration_limit": "Not within the tolerance yet: raise max_iterations, warm-start with this result, or try method 'interior'.",
    "stalled": "The residual no longer decreases; see residuals for its size. Loosen the tolerance, add compliance to G, or try method 'interior', which forms the matrix.",
    "infeasible": "No forces meet these constraints: some require a velocity that the others forbid, and forces grow without bound. Look at g of redundant loops.",
}


class _Method(NamedTuple):
    """Default maximum of iterations, whether the matrix itself is needed, whether (G + damping)⁻¹ is."""

    max_iterations: int
    needs_matrix: bool
    needs_inverse: bool


# The core's table of methods.
_METHODS: dict[str, _Method] = {m.name: _Method(m.max_iterations, m.needs_matrix, m.needs_inverse) for m in _core.contact_methods()}
assert set(_METHODS) == set(get_args(ContactMethod))
_SYMMETRY = 1e-8  # relative to the largest entry: above it a matrix is not symmetric
_ROUNDED = 1e-2  # likewise: above it symmetrize does not accept it as rounded


@dataclass(frozen=True)
class ContactResiduals:
    """Residuals of Coulomb's contact problem, each a maximum over all constraints, and each a velocity [unit of g, m/s], σ̃ = σ + Γ(σ).

    d is the inverse effective mass of a constraint, the mean diagonal of G over its rows; it makes them independent of the unit of mass.

    Attributes:
        primal: d times the distance of a force to its set.
        dual: violation of σ̃ ∈ K*: velocity into a contact or a limit, any velocity of a loop.
        complementarity: |λ · σ̃| / max(‖λ‖, ‖σ̃‖ / d); for dry friction and limits the smaller of |σ| and d times the distance of the force to its bound. At most three times ``natural``.
        natural: d ‖λ − P(λ − σ̃ / d)‖ with the projection P onto the set: combines all of the above; at least 2e-16 d ‖λ‖, its rounding error.
    """

    primal: float
    dual: float
    complementarity: float
    natural: float


@dataclass(frozen=True, eq=False)
class ContactResult:
    """Forces and velocities, see :func:`solve_contacts`.

    Attributes:
        forces: (m,) λ [N s if g is a velocity, N if it is an acceleration], axes of the rows.
        velocities: (m,) σ = G λ + g.
        status: "solved": Coulomb's residuals are within ``tolerance``; "approximate": the method solved another problem within it, see ``own_residual``; "iteration_limit"; "stalled":
            its residual no longer decreases; "infeasible": no forces satisfy the constraints.
        iterations: number of iterations of the method; for ``newton`` of products with its Jacobian, for ``lcp`` of pivots.
        factorizations: number of factorizations of (G + damping).
        residuals: ``primal``, ``dual``, ``complementarity``, ``natural`` of Coulomb's problem, recomputed from these forces, for every method.
        own_residual: natural residual of the problem that the method solves [unit of g]: with polygons for cones (``lcp``), without Γ (``apgd``), else Coulomb's.
        tolerance: tolerance used for ``primal`` and ``dual``; that of ``natural`` is ten times as large [unit of g].
        history: (iterations,) estimated natural residual after each iteration; empty for ``lcp``.
        constraint_forces: the forces, an array per constraint.
        advice: what to do about the status, or empty.
    """

    forces: Array
    velocities: Array
    status: ContactStatus
    iterations: int
    factorizations: int
    residuals: ContactResiduals
    own_residual: float
    tolerance: float
    history: Array
    constraint_forces: tuple[Array, ...]
    advice: str
    _rho: float = field(default=0.0, repr=False)

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


class _Foreign:
    """Adapter for the core of any operator with ``@``, and ``damping`` and ``solve`` where an inverse is needed."""

    def __init__(self, G: Any, inverse: bool, method: str) -> None:
        self.G, self.rows, self.inverse = G, G.shape[0], inverse
        if inverse and not (hasattr(G, "solve") and hasattr(G, "damping")):
            raise ArgumentTypeError(
                f"G: method {method!r} needs (G + damping)⁻¹, and {type(G).__name__} has no 'solve' with a 'damping' that can be set. "
                "Give a delassus operator or a matrix, or use method='apgd'."
            )
        self.known: Array | None = None
        self.before: Any = None

    def begin(self) -> None:
        """Note that G may have changed since the last solve, and remember its damping."""
        self.known = None
        if self.inverse:
            self.before = self.G.damping

    def end(self) -> None:
        """Restore the damping."""
        if self.inverse and self.before is not None:
            self.G.damping = self.before

    def apply(self, x: Array) -> Array:
        return np.asarray(self.G @ x, dtype=float)

    def diagonal(self) -> Array:
        # one product per row, so it is computed once
        if self.known is None:
            self.known = np.array([self.G @ e for e in np.eye(self.rows)]).reshape(self.rows, self.rows).diagonal().astype(float)
        return self.known

    def set_damping(self, damping: Array) -> None:
        self.G.damping = damping

    def solve(self, y: Array) -> Array:
        return np.asarray(self.G.solve(y), dtype=float)


def _matrix(G: ArrayLike, symmetrize: bool) -> Array:
    """Return a finite symmetric matrix, on request the symmetric part of a rounded one."""
    A = as_array(G, "G", "a matrix or an operator")
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ArgumentError(f"G: expected a square matrix, got shape {A.shape}.")
    A = finite(np.ascontiguousarray(A, dtype=float), "G") if A.size < 10_000 else _finite_large(A)
    off, largest = np.abs(A - A.T).max(initial=0.0), np.abs(A).max(initial=0.0)
    if off > (_ROUNDED if symmetrize else _SYMMETRY) * largest:
        way = (
            "That is more than rounding: use (G + G.T) / 2 if it is meant."
            if symmetrize or off > _ROUNDED * largest
            else "symmetrize=True takes (G + G.T) / 2 of a rounded matrix."
        )
        raise ArgumentError(f"G: expected a symmetric matrix, got entries that differ by {off:g} from the transpose. {way}")
    A = (A + A.T) / 2 if symmetrize else A
    if A.size and A.diagonal().min() < 0:
        raise ArgumentError(f"G: expected a positive semidefinite matrix, got {A.diagonal().min():g} on its diagonal.")
    return A


def _finite_large(A: Array) -> Array:
    if not np.isfinite(A).all():
        finite(A[~np.isfinite(A)][:3], "G")
    return np.ascontiguousarray(A, dtype=float)


def _sets(rows: int, constraints: Sequence[Constraint | Loop] | ArrayLike, model: Any, timestep: float) -> tuple[Array, Array, list[int]]:
    """Cones (row, friction), intervals (row, lower, upper; NaN: unbounded) and the number of rows of each constraint."""
    cones: list[tuple[float, float, float]] = []
    intervals: list[tuple[float, float, float]] = []
    sizes: list[int] = []
    given = list(constraints) if isinstance(constraints, Sequence) else None
    if given is not None and all(isinstance(c, (Constraint, Loop)) for c in given) and (given or rows == 0):
        first = 0
        for c in collect(model or _model_of(given), given) if given else ():
            if isinstance(c, PointContact):
                cones.append((first, c.friction, c.rows))
            elif isinstance(c, JointFriction):
                bound = c.friction * timestep
                intervals += [(first + k, -bound, bound) for k in range(c.rows)]
            else:
                intervals += [(first + k, 0.0 if c.force_set == "half-line" else np.nan, np.nan) for k in range(c.rows)]
            sizes.append(c.rows)
            first += c.rows
        if first != rows:
            raise ArgumentError(f"constraints: they have {first} rows, but G has {rows}.")
    else:
        friction = as_array(constraints, "constraints", "constraints, or the friction of contacts with three rows each")
        friction = (
            numbers(friction, "constraints", (rows // 3,)) if rows % 3 == 0 else conform(friction, "constraints", (rows // 3,), "float64")
        )
        if rows % 3:
            raise ArgumentError(f"constraints: friction stands for contacts with three rows each, but G has {rows}. Give constraints.")
        if (friction < 0).any():
            raise ArgumentError(f"constraints: friction must not be negative, got {friction.min():g}.")
        cones = [(3.0 * k, float(mu), 3.0) for k, mu in enumerate(friction)]
        sizes = [3] * len(cones)
    return np.array(cones, dtype=float).reshape(-1, 3), np.array(intervals, dtype=float).reshape(-1, 3), sizes


def _model_of(constraints: list[Any]) -> Any:
    for c in constraints:
        if isinstance(c, Constraint):
            return c.model
    raise ArgumentError("constraints: the model of the loops is not known. Give G as a DelassusOperator, or constraints made of them.")


class ContactSolver:
    """Contact solver that keeps its memory, for many right-hand sides or many configurations of one operator.

    Results are bitwise those of :func:`solve_contacts`.

    Args:
        G: (m, m) a :class:`~delassus.DelassusOperator`, read at every solve, or a symmetric positive semidefinite matrix, read once, or any
            SciPy ``LinearOperator`` with ``damping`` and ``solve`` as in :class:`~delassus.DelassusOperator`. An operator is unchanged afterwards.
        constraints: see :func:`solve_contacts`.
        method: see :func:`solve_contacts`.
        timestep: see :func:`solve_contacts` [s].
        directions: see :func:`solve_contacts`.
        symmetrize: see :func:`solve_contacts`.

    Raises:
        UnknownNameError: there is no such method.
        ArgumentError: sizes do not match, friction is negative, or the matrix is not symmetric.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> solver = dl.ContactSolver(np.eye(3) / 2.0, [0.5])
        >>> [solver.solve([-1.0, push, 0.0]).forces.round(6).tolist() for push in (0.4, 0.8)]
        [[2.0, -0.8, 0.0], [2.0, -1.0, 0.0]]
    """

    def __init__(
        self,
        G: Any,
        constraints: Sequence[Constraint | Loop] | ArrayLike | None = None,
        *,
        method: ContactMethod = "auto",
        timestep: float = 1.0,
        directions: int = 8,
        symmetrize: bool = False,
    ) -> None:
        if method not in _METHODS:
            raise unknown("method", method, _METHODS)
        self._method, self._traits = method, _METHODS[method]
        timestep = number(timestep, "timestep", minimum=0.0)
        self._directions = count(directions, "directions", minimum=4)
        if self._directions % 2:
            raise ArgumentError(f"directions: expected an even number, so that every direction has its opposite, got {directions}.")

        own = isinstance(G, DelassusOperator)
        if constraints is None:
            if not own:
                raise ArgumentTypeError("constraints: only a DelassusOperator has its own. Give constraints, or the friction of contacts.")
            constraints = G.constraints
        self._operator: Any = G
        self._symmetrize = symmetrize
        self._foreign: _Foreign | None = None
        self._matrix: Array | None = None
        if own or hasattr(G, "matvec") or (hasattr(G, "__matmul__") and hasattr(G, "solve")):
            if len(G.shape) != 2 or G.shape[0] != G.shape[1]:
                raise ArgumentError(f"G: expected a square operator, got shape {G.shape}.")
            if not own and not self._traits.needs_matrix:
                self._foreign = _Foreign(G, self._traits.needs_inverse, method)
        else:
            self._matrix = _matrix(G.toarray() if hasattr(G, "toarray") else G, symmetrize)
        self._rows = int(G.shape[0] if self._matrix is None else self._matrix.shape[0])
        cones, intervals, self._sizes = _sets(self._rows, constraints, G.model if own else None, timestep)
        self._native = _core.ContactSolver(method, self._rows, cones, intervals)

    @property
    def method(self) -> ContactMethod:
        """Its name."""
        return self._method

    def _numbers(self) -> Any:
        """G in the form that the core takes: an operator with the numbers of its last update."""
        if self._matrix is not None:
            return self._matrix
        G = self._operator
        own = isinstance(G, DelassusOperator)
        if own and not G._fresh:
            raise StaleError("G: the operator has no numbers yet: call update(q) first.")
        if own and self._traits.needs_matrix:
            return np.ascontiguousarray(G.to_matrix(), dtype=float)
        if self._traits.needs_matrix:
            return _matrix(np.array([G @ e for e in np.eye(self._rows)]), self._symmetrize)
        return G._native if self._foreign is None else self._foreign

    def solve(
        self,
        g: ArrayLike,
        *,
        tolerance: float = 1e-6,
        max_iterations: int | None = None,
        time_limit: float | None = None,
        warm_start: ContactResult | ArrayLike | None = None,
    ) -> ContactResult:
        """Find constraint forces for velocities g.

        Args:
            g: (m,) velocity of the rows without constraint forces [m/s or rad/s].
            tolerance: see :func:`solve_contacts`.
            max_iterations: see :func:`solve_contacts`.
            time_limit: see :func:`solve_contacts` [s].
            warm_start: a result of a similar problem, or its forces, (m,).

        Returns:
            A :class:`ContactResult` with its own arrays.

        Raises:
            StaleError: the operator was not updated.
        """
        native = self._numbers()
        rho: float = 0.0
        start: ArrayLike | None = None
        if isinstance(warm_start, ContactResult):
            rho, start = warm_start._rho, warm_start.forces
        elif warm_start is not None:
            start = warm_start
        options = _core.ContactOptions(
            tolerance=number(tolerance, "tolerance", minimum=0.0),
            max_iterations=self._traits.max_iterations if max_iterations is None else count(max_iterations, "max_iterations"),
            rho=rho,
            directions=self._directions,
            seconds=math.inf if time_limit is None else number(time_limit, "time_limit", minimum=0.0),
        )
        velocity = numbers(g, "g", (self._rows,))
        before = None if start is None else numbers(start, "warm_start", (self._rows,))
        if self._foreign is None:
            return _result(self._native.solve(native, velocity, options, before), self._sizes)
        self._foreign.begin()
        try:
            return _result(self._native.solve(native, velocity, options, before), self._sizes)
        finally:
            self._foreign.end()


def solve_contacts(
    G: Any,
    g: ArrayLike,
    constraints: Sequence[Constraint | Loop] | ArrayLike | None = None,
    *,
    method: ContactMethod = "auto",
    tolerance: float = 1e-6,
    max_iterations: int | None = None,
    time_limit: float | None = None,
    warm_start: ContactResult | ArrayLike | None = None,
    timestep: float = 1.0,
    directions: int = 8,
    symmetrize: bool = False,
) -> ContactResult:
    """Find constraint forces in their sets: λ with σ = G λ + g, by Signorini's and Coulomb's laws.

    ============ ============================================================================================== =============================
    method       what it does                                                                                   needs
    ============ ============================================================================================== =============================
    ``auto``     semismooth Newton, where that fails a smooth path, then ADMM; where all fail a convex problem   the same; blocks of damping
    ``admm``     alternating directions, extrapolated; penalties balanced with few factorizations               ``@``, ``solve``, ``damping``
    ``newton``   ADMM, then Newton's method on its fixed point: high accuracy                                   the same
    ``interior`` Newton's method on a smooth path to the solution: few iterations, also with sliding            the matrix
    ``pgs``      one constraint after another, each solved exactly                                              the matrix
    ``lcp``      Lemke's pivoting with polygons for cones: "approximate" if a contact slides between corners    the matrix
    ``apgd``     accelerated projected gradients, Γ = 0: sliding contacts also open, which is "approximate"     ``@``
    ============ ============================================================================================== =============================

    Args:
        G: (m, m) a :class:`~delassus.DelassusOperator` after ``update``, a symmetric positive semidefinite matrix, or any SciPy ``LinearOperator`` that has
            ``damping`` and ``solve``. It is unchanged afterwards. Delassus operators keep memory for a second factorization
            from then on; for others the damping is restored.
        g: (m,) velocity of the rows without constraint forces [m/s or rad/s].
        constraints: constraints in the order of the rows: contacts are cones, limits half-lines, dry friction boxes, all others free. Default: those of G. Or friction, (m / 3,),
            of contacts with three rows each, normal first.
        method: see above.
        tolerance: tolerance for the primal and dual residuals, ten times as large for the natural one, all of them velocities [unit of g, m/s]. If all of g is small it is
            1e-4 of the largest |g| (otherwise zero forces might count as a solution), down to 1e-6 of the given value. It is never below 1e-11 of the largest |g|.
            ``ContactResult.tolerance`` is the value used.
        max_iterations: default 1,000; for ``auto`` 2,000 factorizations, for ``interior`` 120 iterations, for ``pgs`` 5,000 sweeps, for ``apgd`` 10,000, for ``lcp`` 100,000 pivots.
        time_limit: time limit of ``auto`` [s]; after that the status is "approximate". Default: none.
        warm_start: a result of a similar problem, or its forces, (m,).
        directions: number of corners of the polygons of ``lcp``, even.
        symmetrize: use (G + Gᵀ) / 2 for a matrix whose entries differ from their mirror images by up to 1 % of the largest, for example after rounding in a file.
        timestep: duration over which λ are impulses [s]: bounds of dry friction, which are forces, are multiplied by it. 1 if g is an acceleration.

    Returns:
        A :class:`ContactResult`; ``status`` is "solved" only if Coulomb's residuals, recomputed from the forces with G, are within the tolerance.

    Raises:
        ArgumentError: sizes do not match, friction is negative, or the matrix is not symmetric.
        StaleError: the operator was not updated.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> # a 2 kg point pressed on the ground and pushed sideways with less force than friction can resist
        >>> r = dl.solve_contacts(np.eye(3) / 2.0, [-1.0, 0.4, 0.0], [0.5])
        >>> r.status, r.forces.round(6).tolist()
        ('solved', [2.0, -0.8, 0.0])
    """
    solver = ContactSolver(G, constraints, method=method, timestep=timestep, directions=directions, symmetrize=symmetrize)
    return solver.solve(g, tolerance=tolerance, max_iterations=max_iterations, time_limit=time_limit, warm_start=warm_start)


def solve_sets(
    native: Any,
    g: Array,
    cones: Array,
    intervals: Array,
    sizes: Sequence[int],
    method: str,
    tolerance: float,
    max_iterations: int,
    start: Array | None,
    rho: float = 0.0,
    directions: int = 8,
) -> ContactResult:
    """Solve a checked problem: cones (row, friction, rows) and intervals (row, lower, upper; NaN: unbounded) instead of constraints, which have ``sizes`` rows each."""
    solver = _core.ContactSolver(method, len(g), cones, intervals)
    options = _core.ContactOptions(tolerance=tolerance, max_iterations=max_iterations, rho=rho, directions=directions)
    return _result(solver.solve(native, g, options, start), sizes)


def _result(s: _core.ContactSolution, sizes: Sequence[int]) -> ContactResult:
    """Return the core's solution as a public result; sizes: number of rows of each constraint."""
    status, r = _STATUS[s.outcome], s.residuals
    return ContactResult(
        forces=s.forces,
        velocities=s.velocities,
        status=status,
        iterations=s.iterations,
        factorizations=s.factorizations,
        residuals=ContactResiduals(r.primal, r.dual, r.complementarity, r.natural),
        own_residual=s.own_residual,
        tolerance=s.tolerance,
        history=s.history,
        constraint_forces=tuple(np.split(s.forces, np.cumsum(sizes)[:-1])) if sizes else (),
        advice=_ADVICE[status],
        _rho=s.rho,
    )
