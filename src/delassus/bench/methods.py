"""Every available method on one model with its constraints: time, memory, error, and the choice of ``auto``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import unknown
from ..constraints import Constraint, PointContact
from ..errors import ArgumentError
from ..model import Model
from ..operators import DelassusOperator, ExplicitDelassus
from ..operators.explicit import INVERSE_METHODS, MATRIX_METHODS
from ..solvers import ConstrainedDynamics, ContactResult, DynamicsResult, solve_contacts
from ..types import ContactMethod, DynamicsMethod, InverseMethod, MatrixMethod
from .definition import Definition, contact_residual, polygon_residual, relative
from .motion import Progress, quiet
from .trial import Measurement, Section, Trial, measured

__all__ = ["CONTACT_ALLOWED", "CONTACT_METHODS", "DYNAMICS_METHODS", "MATRIX_FREE", "Methods", "Problem", "check_names", "measure_methods"]

Array = NDArray[Any]
DYNAMICS_METHODS: tuple[DynamicsMethod, ...] = (
    "prox-ltl",
    "prox-ltls",
    "pv",
    "pv-soft",
    "pv-early",
    "prox-pv",
    "caba",
    "lcaba",
    "kkt",
    "soft-gauss",
)
CONTACT_METHODS: tuple[ContactMethod, ...] = ("auto", "admm", "newton", "interior", "pgs", "apgd", "lcp")
MATRIX_FREE = ("update", "update, G x", "G x again", "update, solve", "solve again")

_SOFT = ("pv", "pv-soft", "soft-gauss")
_DYNAMICS_ALLOWED = 1e-8
CONTACT_ALLOWED = 5e-5  # [m/s], five times the tolerance of the solvers, whose d omits the coupling between two links
_PATIENCE = 3.0  # [s], maximum expected duration of one call
_MU, _MAX_ITERATIONS = 1e6, 100  # of proximal iterations


class Problem:
    """A model with constraints in one state, and its dense definition.

    Args:
        model: the mechanism.
        q, v: its state.
        constraints: its constraints; may be empty.
        timestep: time step of the contact problem [s].
    """

    def __init__(self, model: Model, q: ArrayLike, v: ArrayLike, constraints: Sequence[Constraint], timestep: float = 1e-3) -> None:
        self.model, self.constraints, self.timestep = model, tuple(constraints), timestep
        self.q, self.v = np.array(q, dtype=float), np.array(v, dtype=float)
        self.definition = Definition(model, self.q, self.v, self.constraints)
        self.rows = len(self.definition.G)
        self.contacts = sum(isinstance(c, PointContact) for c in self.constraints)
        self.x = np.random.default_rng(0).standard_normal(self.rows)

    def contact_velocities(self) -> Array:
        """Velocities of the rows after a timestep without constraint forces, g (m,) [m/s]."""
        D = self.definition
        return np.asarray(D.J @ (self.v + self.timestep * D.free))

    def contact_error(self, forces: Array, *, relaxed: bool = False) -> float:
        """Natural residual of contact forces, recomputed from the dense matrix [m/s]; ``relaxed`` without de Saxcé's term."""
        return contact_residual(self.definition.G, self.contact_velocities(), forces, self.constraints, self.timestep, relaxed=relaxed)


Methods = list[tuple[str, str, Callable[[], Trial]]]


def check_names(methods: Sequence[str]) -> None:
    """Refuse a name that no method has."""
    known = dict.fromkeys((*MATRIX_METHODS, *INVERSE_METHODS, *DYNAMICS_METHODS, *CONTACT_METHODS, "matrix-free"))
    for name in methods:
        if name not in known:
            raise unknown("method", name, known)


def measure_methods(
    problem: Problem,
    *,
    only: Sequence[str] = (),
    peers: Callable[[str], Methods] | None = None,
    budget: float = 0.1,
    progress: Progress = quiet,
) -> list[Section]:
    """Measure every method on a problem, grouped by what they compute.

    Args:
        problem: the model, its state and its constraints.
        only: names of methods; default: all.
        peers: function that returns the methods of other libraries for a section, by its name.
        budget: time for each measurement [s].
        progress: called with the fraction done.
    """
    check_names(only)
    sections = []
    for k, make in enumerate((_matrix, _inverse, _dynamics, _contacts)):
        section, methods = make(problem)
        methods = [m for m in methods if not only or (m[0] if m[1] != "matrix-free" else m[1]) in only]
        if methods and peers is not None:
            methods += peers(section.name)
        found: tuple[Measurement, ...] = ()
        if methods:
            found = measured(methods, budget, lambda share, k=k: progress((k + share) / 4))  # type: ignore[misc]
        sections.append(Section(section.name, section.title, found, section.choice, section.reason))
        progress((k + 1) / 4)
    return [s for s in sections if s.measurements or (s.reason and not only)]


def _matrix(p: Problem) -> tuple[Section, Methods]:
    """G by every explicit algorithm, and the operator that never forms it."""
    D, title = p.definition, "G = J M⁻¹ Jᵀ"
    if p.rows == 0:
        return Section("matrix", title, reason="no rows"), []
    explain = ExplicitDelassus(p.model, p.constraints).explain()

    def explicit(method: MatrixMethod) -> Trial:
        _patient(explain.matrix.get(method, 0.0))
        solver, out = ExplicitDelassus(p.model, p.constraints), np.empty((p.rows, p.rows))
        return Trial(
            lambda: solver.matrix(p.q, method=method, out=out), lambda A: relative(A, D.G), D.matrix_allowed, lambda: solver.nbytes
        )

    def free(update: bool, product: bool) -> Trial:
        G = DelassusOperator(p.model, p.constraints)
        G.update(p.q)
        out, want = np.empty(p.rows), D.G @ p.x

        def run() -> None:
            if update:
                G.update(p.q)
            if product:
                G.matvec(p.x, out)

        return Trial(run, lambda _: relative(G @ p.x if not product else out, want), D.matrix_allowed, lambda: G.nbytes)

    methods: Methods = [(name, "explicit", partial(explicit, name)) for name in MATRIX_METHODS]
    steps = ((True, False), (True, True), (False, True))
    methods += [(name, "matrix-free", partial(free, *what)) for name, what in zip(MATRIX_FREE, steps, strict=False)]
    return Section("matrix", title, choice=explain.matrix_choice), methods


def _inverse(p: Problem) -> tuple[Section, Methods]:
    """(G + ε)⁻¹ by every explicit algorithm, and the operator that solves without a matrix."""
    D = p.definition
    if p.rows == 0:
        return Section("inverse", "(G + ε)⁻¹", reason="no rows"), []
    if not D.damping > 0:
        return Section("inverse", "(G + ε)⁻¹", reason="nothing moves the rows: G is zero"), []
    explain = ExplicitDelassus(p.model, p.constraints).explain()
    damping = np.full(p.rows, D.damping)

    def explicit(method: InverseMethod) -> Trial:
        _patient(explain.inverse.get(method, 0.0))
        solver, out = ExplicitDelassus(p.model, p.constraints), np.empty((p.rows, p.rows))
        return Trial(
            lambda: solver.inverse(p.q, damping, method=method, out=out), lambda X: relative(X, D.inverse), D.inverse_allowed, lambda: solver.nbytes
        )  # fmt: skip

    def free(update: bool) -> Trial:
        G = DelassusOperator(p.model, p.constraints, damping=damping)
        G.update(p.q)
        out, want = np.empty(p.rows), D.inverse @ p.x

        def run() -> Array:
            if update:
                G.update(p.q)
            return G.solve(p.x, out=out)

        return Trial(run, lambda y: relative(y, want), D.inverse_allowed, lambda: G.nbytes)

    methods: Methods = [(name, "explicit", partial(explicit, name)) for name in INVERSE_METHODS]
    methods += [(name, "matrix-free", partial(free, update)) for name, update in zip(MATRIX_FREE[3:], (True, False), strict=True)]
    return Section("inverse", f"(G + ε)⁻¹, ε = {D.damping:.1e}", choice=explain.inverse_choice), methods


def _dynamics(p: Problem) -> tuple[Section, Methods]:
    """Accelerations and forces, by every method; springs for methods with soft constraints."""
    D = p.definition

    def make(method: DynamicsMethod) -> Trial:
        if method in ("prox-ltl", "pv", "prox-pv"):
            _patient(p.rows**3 / 3e3)
        soft = np.full(p.rows, D.damping or 1.0) if method == "soft-gauss" else np.full(p.rows, 1 / _MU)
        given = {"compliance": soft} if method == "soft-gauss" else {"mu": _MU}
        solver = ConstrainedDynamics(p.model, p.constraints, method=method, max_iterations=_MAX_ITERATIONS, **given)
        acceleration, forces = np.empty(p.model.nv), np.empty(p.rows)

        def judge(r: DynamicsResult) -> float:
            return D.dynamics_error(r.acceleration, r.forces, soft if method in _SOFT and p.rows else None)

        def unsolved(r: DynamicsResult) -> str:
            solved = r.status in ("solved", "infeasible_least_squares", "relaxed")
            return "" if solved else f"{r.status} after {r.iterations} iterations, residual {r.residuals.primal:.0e}"

        def note(r: DynamicsResult) -> str:
            if r.status == "relaxed":
                return f"gives way by {r.residuals.primal:.0e}"
            return "inconsistent rows" if r.status == "infeasible_least_squares" else ""

        return Trial(
            lambda: solver.solve(p.q, p.v, acceleration=acceleration, forces=forces), judge, max(_DYNAMICS_ALLOWED, D.matrix_allowed), lambda: solver.nbytes,
            unsolved, note, lambda r: r.iterations,
        )  # fmt: skip

    methods: Methods = [(name, "approximate" if name in _SOFT else "explicit", partial(make, name)) for name in DYNAMICS_METHODS]
    return Section("dynamics", "ν̇ and λ of M ν̇ + h = Jᵀ λ, J ν̇ + γ = 0", choice="lcaba"), methods


def _contacts(p: Problem) -> tuple[Section, Methods]:
    """Contact forces in their sets, over one timestep from the state; residuals are recomputed from the dense matrix."""
    D, title = p.definition, f"contact forces over {1e3 * p.timestep:g} ms"
    if all(c.force_set == "free" for c in p.constraints):
        return Section("contacts", title, reason="no contacts"), []
    g = p.contact_velocities()

    def make(method: ContactMethod) -> Trial:
        max_iterations = None
        if method == "lcp":
            _patient(6e-4 * (10 * p.contacts + p.rows) ** 3)
        if method == "interior":
            _patient(1.5e-2 * p.rows**3)
        if method == "pgs":
            max_iterations = int(np.clip(_PATIENCE / (1e-8 * p.rows**2), 10, 5000))
        G = DelassusOperator(p.model, p.constraints)
        G.update(p.q)

        def judge(r: ContactResult) -> float:
            if method == "lcp":
                return polygon_residual(D.G, g, r.forces, p.constraints, p.timestep)
            return p.contact_error(r.forces, relaxed=method == "apgd")

        def unsolved(r: ContactResult) -> str:
            # solved problems other than Coulomb's: the judge accounts for them
            return (
                ""
                if r.status in ("solved", "approximate")
                else f"{r.status} after {r.iterations} iterations, residual {r.residuals.natural:.0e} m/s"
            )

        note = {"lcp": "cones of 8 sides", "apgd": "sliding also separates", "pgs": "forms G", "interior": "forms G"}.get(method, "")
        matrix = 8 * p.rows**2 if method in ("interior", "pgs", "lcp") else 0
        return Trial(
            lambda: solve_contacts(G, g, method=cast(Any, method), timestep=p.timestep, max_iterations=max_iterations), judge, CONTACT_ALLOWED, lambda: G.nbytes + matrix,
            unsolved, lambda _: note, lambda r: r.iterations,
        )  # fmt: skip

    other = {"lcp": "approximate", "apgd": "approximate"}
    methods: Methods = [(name, other.get(name, "explicit"), partial(make, name)) for name in CONTACT_METHODS]
    return Section("contacts", title, choice="auto"), methods


def _patient(microseconds: float) -> None:
    if microseconds > 1e6 * _PATIENCE:
        raise ArgumentError(f"skipped, since a call would take about {microseconds / 1e6:.0f} s")
