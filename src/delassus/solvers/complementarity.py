"""One step of contact dynamics, or a collision, as a mixed linear complementarity problem, in five formulations of the same problem.

    M (v⁺ − v) = (τ − c) Δt + J_bᵀ p_b + J_uᵀ D β          momentum; D: unit normal and n_f tangent directions per contact
    J_b (v⁺ − v) + γ Δt = 0                                 loops, γ their bias
    0 ≤ Dᵀ (J_u v⁺ + s) + Ê σ   ⊥   β ≥ 0                  contacts do not approach; friction opposes sliding at speed σ
    0 ≤ Ē β = µ β_n − Σ β_t     ⊥   σ ≥ 0                  friction is at its limit where they slide

``mc`` has v⁺ and p_b among its unknowns, ``os`` eliminates v⁺ by the Delassus matrix, ``rmc`` also p_b. ``nmc`` and ``nmc-os`` are ``mc`` and ``os`` in velocities of all
links, with joints among the equations. Source: Jain, "Minimal Coordinates Formulation of Contact Dynamics", sections 3 to 7; docs/complementarity.md lists differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import count, diagonal, number, numbers, unknown
from ..constraints import Constraint, ConstraintRows, PointContact, collect
from ..dynamics import bias_forces, forward_dynamics, mass_matrix, mass_matrix_inverse
from ..errors import ArgumentError, StaleError
from ..model import Loop, Model
from ..model.model import as_model
from ..operators import DelassusOperator, DenseDelassus
from ..types import LcpStatus
from .lcp import LcpResult, restated, run_lemke
from .nonminimal import Links

__all__ = ["FORMULATIONS", "CollisionResult", "ComplementarityStep", "Formulation", "Problem", "build", "collide"]

Array = NDArray[Any]
_After = Callable[[Array, Array], tuple[Array, Array]]
FORMULATIONS = ("nmc", "mc", "rmc", "os", "nmc-os")


@dataclass(frozen=True, eq=False)
class ComplementarityStep:
    """Velocity after a step, see :meth:`Problem.solve`.

    Attributes:
        velocity: (nv,) v⁺, the same in every formulation.
        impulses: (m,) impulses of all rows, in the order of the constraints, axes of the rows [N s or N m s].
        contact_impulses: (n_u, 3) those of the contacts, normal first, axes of the contacts.
        contact_velocities: (n_u, 3) J_u v⁺, axes of the contacts.
        sliding: (n_u,) σ, sliding speed of each contact, measured along the friction directions.
        solution: (size,) z of the formulation.
        status: "solved", "inaccurate", "ray" or "pivot_limit", see :func:`delassus.solve_lcp`.
        pivots: number of pivots.
        residual: residual of the complementarity problem, see :class:`delassus.LcpResult`; with "rmc" also of the eliminated equations.
        advice: what to do about the status, or empty.
    """

    velocity: Array
    impulses: Array
    contact_impulses: Array
    contact_velocities: Array
    sliding: Array
    solution: Array
    status: LcpStatus
    pivots: int
    residual: float
    advice: str


@dataclass(frozen=True, eq=False)
class CollisionResult:
    """Velocity after a collision, see :func:`collide`.

    Attributes:
        velocity: (nv,) v⁺.
        impulses: (m,) impulses of both phases together, in the order of the constraints [N s or N m s].
        contact_impulses: (n_u, 3) the same for contacts.
        compression: the first phase.
        decompression: the second phase; None without restitution, or if the first has no solution.
        status: the worse of the two phases.
    """

    velocity: Array
    impulses: Array
    contact_impulses: Array
    compression: ComplementarityStep
    decompression: ComplementarityStep | None
    status: LcpStatus


@dataclass(frozen=True, eq=False)
class Problem:
    """A step as w = M z + q, w ⊥ z ≥ 0; where ``free``, w = 0 and z has any sign. Made by :func:`build` and :meth:`Formulation.build`.

    Attributes:
        formulation: name of the formulation.
        matrix: (size, size) M.
        vector: (size,) q.
        free: (size,) bool, True for equations.
    """

    formulation: str
    matrix: Array
    vector: Array
    free: NDArray[np.bool_]
    _lemke: _core.Lemke
    _recover: Callable[[LcpResult, float], ComplementarityStep]

    @property
    def size(self) -> int:
        """Number of unknowns z."""
        return len(self.vector)

    def solve(self, *, tolerance: float = 1e-9, max_pivots: int | None = None) -> ComplementarityStep:
        """Solve by Lemke's method and recover the velocity.

        Args:
            tolerance, max_pivots: see :func:`delassus.solve_lcp`.
        """
        limit = None if max_pivots is None else count(max_pivots, "max_pivots", 0)
        tolerance = number(tolerance, "tolerance", minimum=0.0)
        return self._recover(run_lemke(self._lemke, self.matrix, self.vector, self.free, tolerance, limit), tolerance)


# ---- the same mechanism in two kinds of coordinates x ------------------------------------------------------------------------------


class _Joints:
    """x = v, velocities of joints. Rows J: loops, then contacts."""

    def __init__(self, model: Model, constraints: Sequence[Constraint], formulation: str) -> None:
        self.model, self.size, self.own_rows = model, model.nv, 0
        # Λ is formed as a matrix only on request; operators are those of the last update
        self._operator = (DenseDelassus if formulation == "os" else DelassusOperator)(model, constraints)
        self._J, self._inverse = self._operator.jacobian, self._operator.mass_inverse
        self._JT = self._J.H

    def at(self, q: Array, v: Array, tau: Array, dt: float) -> None:
        self._q, self._v, self._tau, self._dt = q, v, tau, dt
        self._operator.update(q)
        self.before = v

    def primal(self) -> tuple[Array, Array, Array]:
        """M, momentum M x + forces Δt, J."""
        M = mass_matrix(self.model, self._q)
        momentum = M @ self._v
        if self._dt:
            momentum += self._dt * (self._tau - bias_forces(self.model, self._q, self._v))
        return M, momentum, self._J.matmat(np.eye(self.size))

    def inverse(self) -> Array:
        return mass_matrix_inverse(self.model, self._q)

    def free(self) -> Array:
        """Velocity without impulses."""
        return self._v + self._dt * forward_dynamics(self.model, self._q, self._v, self._tau) if self._dt else self._v

    def compliance(self) -> Array:
        """J M⁻¹ Jᵀ, by the explicit algorithm expected to be the fastest."""
        return self._operator.to_matrix()

    def rows(self, x: Array) -> Array:
        return self._J.matvec(x)

    def push(self, p: Array) -> Array:
        """M⁻¹ Jᵀ p."""
        return self._inverse.matvec(self._JT.matvec(p))

    def rates(self, x: Array) -> Array:
        return x


class _Bodies:
    """x = V, velocities of links at q. Rows J: joints, then loops, then contacts."""

    def __init__(self, model: Model, constraints: Sequence[Constraint], formulation: str) -> None:
        self._links = Links(model, constraints)
        self.size, self.own_rows = 6 * self._links.count, self._links.joint_rows
        if formulation == "nmc-os" and not self._links.massive and not model.dof_armature.any():
            raise ArgumentError(
                "formulation: 'nmc-os' divides by the inertia of every link, and some link has none of its own. Use 'os', or 'nmc'."
            )

    def at(self, q: Array, v: Array, tau: Array, dt: float) -> None:
        self._links.at(q)
        self.before = self._links.velocities(v)
        self._impulse = dt * self._links.forces(q, v, self.before, tau) if dt else np.zeros(self.size)
        self._J = self._links.jacobian

    def primal(self) -> tuple[Array, Array, Array]:
        A = self._links.inertia
        return A, A @ self.before + self._impulse, self._J

    def free(self) -> Array:
        return self.before + self._links.solve(self._impulse)

    def compliance(self) -> Array:
        return np.asarray(self._J @ self._links.solve(np.ascontiguousarray(self._J.T)))

    def rows(self, x: Array) -> Array:
        return np.asarray(self._J @ x)

    def push(self, p: Array) -> Array:
        return self._links.solve(self._J.T @ p)

    def rates(self, x: Array) -> Array:
        return np.asarray(self._links.rates @ x)


# ---- the formulations --------------------------------------------------------------------------------------------------------------


class Formulation:
    """One formulation of the steps of a mechanism with given contacts and loops; work that does not depend on the state is done once.

    Args:
        model: the mechanism.
        constraints: contacts, and constraints that hold as equations (loops, welds …); or the model's loops.
        formulation: "nmc": velocities of links, joints and loops as equations, 6n + n_b + n_u (n_f + 2) unknowns; "mc": velocities of joints, nv + n_b + n_u (n_f + 2);
            "rmc": contacts only, n_u (n_f + 2), with the inverse mass matrix; "os": loops and contacts, n_b + n_u (n_f + 2), with the Delassus matrix by the explicit
            algorithms; "nmc-os": the same for the links. n_b includes joints' rows where joints are equations.
        directions: n_f, number of friction directions per contact, even, at least 4.

    Attributes:
        size: number of unknowns.
        constraints, contacts: all constraints, and the contacts among them, in order.
        model, formulation, directions: as given.

    Examples:
        >>> import delassus as dl
        >>> model = dl.scenes.pendulum(3)
        >>> tip = dl.PointContact(model, "ball2", point=(0, 0, -4), friction=0.5)
        >>> [dl.complementarity.Formulation(model, [tip], f).size for f in dl.complementarity.FORMULATIONS]
        [39, 9, 6, 6, 21]
    """

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop], formulation: str = "os", *, directions: int = 4) -> None:
        as_model(model)
        if formulation not in FORMULATIONS:
            raise unknown("formulation", formulation, FORMULATIONS)
        nf = count(directions, "directions", 4)
        if nf % 2:
            raise ArgumentError(f"directions: expected an even number, every direction with its opposite, got {nf}.")
        self.model, self.formulation, self.directions = model, formulation, nf
        self.constraints = tuple(collect(model, constraints))
        for k, c in enumerate(self.constraints):
            if c.force_set not in ("free", "cone"):
                raise ArgumentError(f"constraints[{k}]: expected a contact or an equation, got {type(c).__name__}. Leave it out.")
            if isinstance(c, PointContact) and c.rows > 3:
                raise ArgumentError(
                    f"constraints[{k}]: polygons stand for tangents only, but the contact has torsional or rolling friction. Use solve_contacts."
                )
        loops = [c for c in self.constraints if c.force_set == "free"]
        contacts = [c for c in self.constraints if isinstance(c, PointContact)]
        self.contacts = tuple(contacts)
        self._loops, self._contacts = ConstraintRows(model, loops), ConstraintRows(model, contacts)
        self._soft = any(any(c.baumgarte) for c in contacts)
        self._system: Any = (_Bodies if formulation.startswith("nmc") else _Joints)(model, [*loops, *contacts], formulation)

        # rows of the constraints among loops and contacts
        first = np.cumsum([0, *(c.rows for c in self.constraints)])
        where = [
            r
            for free in (True, False)
            for k, c in enumerate(self.constraints)
            if (c.force_set == "free") == free
            for r in range(first[k], first[k + 1])
        ]
        self._order = np.argsort(np.array(where, dtype=int))
        nu, self._nb = len(contacts), self._system.own_rows + sum(c.rows for c in loops)
        self._nu, self._primal = nu, formulation in ("nmc", "mc")
        angles = 2 * np.pi * np.arange(nf) / nf
        self._D = np.kron(
            np.eye(nu), np.block([[np.ones((1, 1)), np.zeros((1, nf))], [np.zeros((2, 1)), np.array([np.cos(angles), np.sin(angles)])]])
        )
        # M with the parts that do not depend on the state: Ê and Ē
        self._free = (self._system.size if self._primal else 0) + (0 if formulation == "rmc" else self._nb)
        self._contact = slice(self._free, self._free + nu * (nf + 1))
        cone = self._contact.stop
        self.size = cone + nu
        self._M = np.zeros((self.size, self.size))
        self._M[self._contact, cone:] = np.kron(np.eye(nu), np.append(0.0, np.ones(nf))[:, None])
        for k, c in enumerate(contacts):
            self._M[cone + k, self._free + k * (nf + 1) : self._free + (k + 1) * (nf + 1)] = [c.friction, *[-1.0] * nf]
        self._mask = np.arange(self.size) < self._free
        self._mask.setflags(write=False)
        self._lemke = _core.Lemke(self.size)
        self._builds = 0

    def _state(self, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
        """Copy a checked state: the problem is solved later."""
        return numbers(q, "q", (self.model.nq,)).copy(), numbers(v, "v", (self.model.nv,)).copy()

    def build(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, timestep: float = 1e-3) -> Problem:
        """Build the problem of a step from a state.

        Args:
            q: (nq,) configuration.
            v: (nv,) velocity.
            tau: (nv,) joint forces [N m or N], None for none.
            timestep: Δt [s]; zero for impulses only.
        """
        q, v = self._state(q, v)
        tau = np.zeros(self.model.nv) if tau is None else numbers(tau, "tau", (self.model.nv,))
        return self._build(q, v, tau, number(timestep, "timestep", minimum=0.0), np.zeros(3 * self._nu))

    def _build(self, q: Array, v: Array, tau: Array, dt: float, given: Array) -> Problem:
        """Problem of a step with known impulses at contacts."""
        system, nb = self._system, self._nb
        system.at(q, v, tau, dt)
        self._builds += 1
        this = self._builds
        # γ Δt of equations; s of contacts, where these have gains
        bias, shift = np.zeros(nb), np.zeros(3 * self._nu)
        if dt and nb > system.own_rows:
            bias[system.own_rows :] = dt * self._loops.bias(q, v)
        if dt and self._soft:
            shift = dt * (self._contacts.bias(q, v) - self._contacts.drift(q, v))
        M, vector = self._M.copy(), np.zeros(self.size)
        fill = self._fill_primal if self._primal else self._fill_reduced if self.formulation == "rmc" else self._fill_dual
        after = fill(M, vector, bias, shift, given)

        def recover(solved: LcpResult, tolerance: float) -> ComplementarityStep:
            if self._builds != this:
                raise StaleError("Problem: its Formulation has built another one since. Solve it before, or use a Formulation of its own.")
            z = solved.solution
            contacts = given + self._D @ z[self._contact]
            x, equations = after(z, contacts)
            velocity, missed = system.rates(x), 0.0
            if self.formulation == "rmc" and nb:
                # equations that are not rows of the problem hold in the least-squares sense
                jump = system.rows(x - v)[:nb]
                missed = float(np.abs(jump + bias).max())
                if solved.status == "solved" and missed > tolerance * max(np.abs(vector).max(), np.abs(bias).max(), np.abs(jump).max()):
                    solved = restated(solved, "inaccurate")
            return ComplementarityStep(
                velocity=velocity,
                impulses=np.concatenate([equations[system.own_rows :], contacts])[self._order],
                contact_impulses=contacts.reshape(-1, 3),
                contact_velocities=self._contacts.velocity(q, velocity).reshape(-1, 3),
                sliding=z[self._contact.stop :],
                solution=z,
                status=solved.status,
                pivots=solved.pivots,
                residual=max(solved.residual, missed),
                advice=solved.advice,
            )

        return Problem(self.formulation, M, vector, self._mask, self._lemke, recover)

    # each fills M and q, and returns how x⁺ and p_b follow from z and all impulses p_u of contacts

    def _fill_primal(self, M: Array, vector: Array, bias: Array, shift: Array, given: Array) -> _After:
        """Unknowns (x⁺, p_b, β, σ)."""
        system, D, nb, free, contact = self._system, self._D, self._nb, self._free, self._contact
        n = system.size
        A, momentum, J = system.primal()
        pulls = J[nb:].T @ D
        M[:n, :n], M[:n, n:free], M[:n, contact] = A, -J[:nb].T, -pulls
        M[n:free, :n], M[contact, :n] = J[:nb], pulls.T
        vector[:n] = -(momentum + J[nb:].T @ given)
        vector[n:free] = bias - J[:nb] @ system.before
        vector[contact] = D.T @ shift
        return lambda z, contacts: (z[:n], z[n:free])

    def _fill_reduced(self, M: Array, vector: Array, bias: Array, shift: Array, given: Array) -> _After:
        """Unknowns (β, σ): v⁺ = X + Y J_uᵀ p_u, Y = M⁻¹ − M⁻¹ J_bᵀ (J_b M⁻¹ J_bᵀ)⁺ J_b M⁻¹."""
        system, D, nb, contact = self._system, self._D, self._nb, self._contact
        _, momentum, J = system.primal()
        inverse, wanted = system.inverse(), J[:nb] @ system.before - bias
        lifted = inverse @ J[:nb].T
        held = np.linalg.pinv(J[:nb] @ lifted, rcond=1e-12, hermitian=True) if nb else np.zeros((0, 0))
        Y = inverse - lifted @ held @ lifted.T
        X = Y @ momentum + lifted @ (held @ wanted)
        pulls = J[nb:].T @ D
        M[contact, contact] = pulls.T @ Y @ pulls
        vector[contact] = pulls.T @ (X + Y @ (J[nb:].T @ given)) + D.T @ shift

        def after(z: Array, contacts: Array) -> tuple[Array, Array]:
            pushed = J[nb:].T @ contacts
            return X + Y @ pushed, held @ (wanted - lifted.T @ (momentum + pushed))

        return after

    def _fill_dual(self, M: Array, vector: Array, bias: Array, shift: Array, given: Array) -> _After:
        """Unknowns (p_b, β, σ): x⁺ = x_f + A⁻¹ Jᵀ p, Λ = J A⁻¹ Jᵀ."""
        system, D, nb, contact = self._system, self._D, self._nb, self._contact
        start, G = system.free(), system.compliance()
        rows = system.rows(start) + G[:, nb:] @ given
        M[:nb, :nb], M[:nb, contact] = G[:nb, :nb], G[:nb, nb:] @ D
        M[contact, :nb], M[contact, contact] = M[:nb, contact].T, D.T @ G[nb:, nb:] @ D
        if nb:
            vector[:nb] = rows[:nb] - system.rows(system.before)[:nb] + bias
        vector[contact] = D.T @ (rows[nb:] + shift)
        return lambda z, contacts: (start + system.push(np.concatenate([z[:nb], contacts])), z[:nb])

    def collide(self, q: ArrayLike, v: ArrayLike, restitution: ArrayLike = 0.0, *, tolerance: float = 1e-9) -> CollisionResult:
        """Collide: compression, then decompression with a fraction of the normal impulses; see :func:`collide`.

        Args:
            q: (nq,) configuration.
            v: (nv,) velocity before the collision.
            restitution: ε from 0 to 1, one number or one per contact.
            tolerance: see :func:`delassus.solve_lcp`.
        """
        q, v = self._state(q, v)
        part = diagonal(restitution, "restitution", (self._nu,), np.float64)
        if (part > 1).any():
            raise ArgumentError(f"restitution: expected numbers from 0 to 1, got {part.max():g}.")
        none = np.zeros(self.model.nv)
        first = self._build(q, v, none, 0.0, np.zeros(3 * self._nu)).solve(tolerance=tolerance)
        given = np.zeros((self._nu, 3))
        given[:, 0] = part * first.contact_impulses[:, 0]
        if first.status != "solved" or not given.any():
            return CollisionResult(first.velocity, first.impulses, first.contact_impulses, first, None, first.status)
        second = self._build(q, first.velocity, none, 0.0, given.ravel()).solve(tolerance=tolerance)
        return CollisionResult(
            velocity=second.velocity,
            impulses=first.impulses + second.impulses,
            contact_impulses=first.contact_impulses + second.contact_impulses,
            compression=first,
            decompression=second,
            status=second.status,
        )

    def __repr__(self) -> str:
        return f"<Formulation {self.formulation!r} of {self.model.name!r}: {self._nu} contacts, {self.size} unknowns>"


def build(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    timestep: float,
    constraints: Sequence[Constraint | Loop],
    *,
    formulation: str = "os",
    directions: int = 4,
) -> Problem:
    """Build the complementarity problem of one step. For repeated calls keep a :class:`Formulation`.

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        v: (nv,) velocity.
        tau: (nv,) joint forces [N m or N], None for none.
        timestep: Δt [s].
        constraints: contacts, and constraints that hold as equations; or the model's loops.
        formulation: "nmc", "mc", "rmc", "os" or "nmc-os", see :class:`Formulation`.
        directions: n_f, number of friction directions per contact, even, at least 4.

    Returns:
        the problem: size, matrix, vector, and ``solve()``.

    Examples:
        >>> import delassus as dl
        >>> model = dl.scenes.box_stack(1)
        >>> q, v = model.neutral(), model.zero_velocity()
        >>> corners = [dl.PointContact(model, 1, point=(x, y, -0.1)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
        >>> step = dl.complementarity.build(model, q, v, None, 0.01, corners).solve()
        >>> step.status, float(step.contact_impulses[:, 0].sum().round(9))
        ('solved', 0.0981)
    """
    return Formulation(model, constraints, formulation, directions=directions).build(q, v, tau, timestep)


def collide(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    constraints: Sequence[Constraint | Loop],
    *,
    restitution: ArrayLike = 0.0,
    formulation: str = "os",
    directions: int = 4,
) -> CollisionResult:
    """Velocity after a collision in two phases of no duration (Poisson's law with friction).

    Compression: impulses after which no contact approaches. Decompression: the fraction ε of each normal impulse is applied again, with further impulses where contacts would approach
    again. Loops hold throughout.

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        v: (nv,) velocity before the collision.
        constraints: contacts, and constraints that hold as equations; or the model's loops.
        restitution: ε from 0 to 1, one number or one per contact.
        formulation, directions: see :func:`build`.

    Returns:
        velocity after the collision, impulses, and both phases.

    Examples:
        >>> import delassus as dl
        >>> model = dl.scenes.box_stack(1)
        >>> corners = [dl.PointContact(model, 1, point=(x, y, -0.1)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
        >>> hit = dl.complementarity.collide(model, model.neutral(), [0, 0, -1, 0, 0, 0], corners, restitution=0.7)
        >>> float(hit.velocity[2].round(9))
        0.7
    """
    return Formulation(model, constraints, formulation, directions=directions).collide(q, v, restitution)
