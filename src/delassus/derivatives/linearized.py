"""Derivatives of constrained dynamics and the Delassus operator: matrix-free products with their Jacobians and transposes, O(n + m) each; and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import as_array, columns_of, count, diagonal
from .._html import result_table
from ..constraints import Constraint, collect
from ..errors import ArgumentError, ArgumentTypeError, InaccurateError, StaleError
from ..model import Loop, Model
from ..model.model import as_model
from ..solvers import BatchConstrainedDynamics, BatchDynamicsResult, ConstrainedDynamics, DynamicsResult
from ..solvers.dynamics import STATUSES
from .masses import torque_regressor

__all__ = [
    "BatchLinearizedDynamics",
    "ConstrainedDynamicsDerivatives",
    "DynamicsAdjoint",
    "DynamicsParameterAdjoint",
    "DynamicsTangent",
    "LinearizedDynamics",
    "OperatorDerivatives",
    "constrained_dynamics_derivatives",
    "linearize",
]

Array = NDArray[Any]
# Ratio of the damping here to that of constrained_dynamics: a larger one keeps more digits for redundant rows, and takes an iteration or two more.
_MORE_DAMPING = 100.0


class DynamicsTangent(NamedTuple):
    """Change along a direction of the state: ``acceleration`` (nv,) and ``forces`` (m,), or (nv, k) and (m, k) for k directions."""

    acceleration: Array
    forces: Array


class DynamicsAdjoint(NamedTuple):
    """Derivatives of a scalar with respect to ``q`` (tangent space), ``v`` and ``tau``: (nv,) each, or (nv, k) for k scalars."""

    q: Array
    v: Array
    tau: Array


class DynamicsParameterAdjoint(NamedTuple):
    """Derivatives of a scalar with respect to ``inertial`` parameters (10 nbody,), in the order of :func:`~delassus.inertial_parameters`, and the ``armature`` (nv,) of joints; (…, k) for k scalars."""

    inertial: Array
    armature: Array


@dataclass(frozen=True, eq=False)
class ConstrainedDynamicsDerivatives:
    """Derivatives of ν̇ and λ, see :func:`constrained_dynamics_derivatives`. For a batch, every array has a leading batch axis.

    Attributes:
        acceleration: (nv,) ν̇.
        forces: (m,) λ.
        acceleration_q, acceleration_v, acceleration_tau: (nv, nv) ∂ν̇, column k for a change of q along v[k], of v[k] or of τ[k].
        forces_q, forces_v, forces_tau: (m, nv) ∂λ, likewise.
    """

    acceleration: Array
    forces: Array
    acceleration_q: Array
    acceleration_v: Array
    acceleration_tau: Array
    forces_q: Array
    forces_v: Array
    forces_tau: Array

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


def _unsolved(status: str, state: int | None, advice: str) -> InaccurateError:
    """Make the error that explains why there is nothing to differentiate."""
    where = "here" if state is None else f"in state {state}"
    return InaccurateError(
        f"linearize: constrained_dynamics ended with {status!r} {where}, so there is nothing to differentiate. {advice}".strip()
    )


def _to_fill(out: ConstrainedDynamicsDerivatives | None) -> tuple[Any, ...]:
    """Arrays of an earlier result: ν̇, λ and the matrices; or None for each."""
    if out is None:
        return (None,) * 8
    if not isinstance(out, ConstrainedDynamicsDerivatives):
        raise ArgumentTypeError(
            f"out: expected a ConstrainedDynamicsDerivatives, as an earlier call returned it, got {type(out).__name__}."
        )
    return tuple(vars(out).values())


def _batch_of(q: ArrayLike) -> int:
    """Batch size of q; 0 for a single state."""
    shape = np.shape(q) if isinstance(q, np.ndarray) else as_array(q, "q").shape
    if len(shape) != 2:
        return 0
    if shape[0] == 0:
        raise ArgumentError(f"q: expected at least one state, got shape {shape}.")
    return int(shape[0])


class _Linearized:
    """What one state and a batch share: the mechanism, and matrices at a solution."""

    _dynamics: ConstrainedDynamics | BatchConstrainedDynamics
    _damping: Array
    _compliance: Array
    _result: Any = None
    _state: tuple[Array, Array, Array | None] | None = None

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self._dynamics.model

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints, in the order of the rows."""
        return self._dynamics.constraints

    def _solved(self) -> Any:
        """Return ν̇ and λ of the last update, or raise an error."""
        if self._result is None:
            raise StaleError(f"{type(self).__name__}: there is no state yet. Call update(q, v, tau) first.")
        return self._result

    def _keep(self, q: ArrayLike, v: ArrayLike, external_forces: ArrayLike | None, result: Any) -> None:
        """Keep a solved state."""
        external = None if external_forces is None else np.array(external_forces, dtype=np.float64)
        self._state = np.array(q, dtype=np.float64), np.array(v, dtype=np.float64), external
        self._result = result

    def _make_matrices(self, threads: int) -> Any:
        """Create the native object that forms matrices."""
        return _core.DynamicsMatrices64(self.model._native, [c._native() for c in self.constraints], threads)

    def _differentiate(self, native: Any, out: ConstrainedDynamicsDerivatives | None, batch: int) -> ConstrainedDynamicsDerivatives:
        """Form all matrices at the kept solution."""
        r = self._solved()
        assert self._state is not None
        q, v, external = self._state
        a, f, *matrices = _to_fill(out)
        found = native.differentiate(q, v, r.acceleration, r.forces, external, self._compliance, self._damping, tuple(matrices), batch)
        if a is None:
            return ConstrainedDynamicsDerivatives(r.acceleration, r.forces, *found)
        a[...], f[...] = r.acceleration, r.forces
        return ConstrainedDynamicsDerivatives(a, f, *found)


class LinearizedDynamics(_Linearized):
    """Constrained dynamics ν̇(q, v, τ), λ(q, v, τ) linearized at many states in turn: symbolic work and allocation are done once.

        M ν̇ + h = τ + Jᵀ λ,   J ν̇ + C λ + γ = 0,   γ = J̇v + k_d J v + k_p e

    :meth:`update` solves for ν̇ and λ; :meth:`jvp` and :meth:`vjp` then take O(n + m) each, by one sweep through the equations and one solution with the elimination of
    the operator. External forces keep their direction as q changes. Points and axes of constraints are fixed in their bodies.

    Where rows depend on each other, λ is that of :func:`~delassus.constrained_dynamics`: the minimum in the metric of its damping. Its derivative is the
    derivative of that choice. Where rows contradict each other there is no derivative, and :meth:`update` raises an error.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops. May be empty.
        compliance: C, scalar or (m,).

    Examples:
        >>> import delassus as dl, numpy as np
        >>> model = dl.load("cassie")
        >>> L = dl.LinearizedDynamics(model, model.loops)
        >>> L.update(model.keyframes["home"], model.zero_velocity()).status
        'solved'
        >>> L.vjp(acceleration_bar=np.ones(model.nv)).tau.shape
        (32,)
    """

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop], *, compliance: ArrayLike = 0.0) -> None:
        self._dynamics: ConstrainedDynamics = ConstrainedDynamics(model, constraints, compliance=compliance)
        self._damping = self._dynamics._damping * _MORE_DAMPING
        self._compliance = diagonal(compliance, "compliance", self._dynamics._rows, self._dynamics.dtype)
        self._made: Any = None
        self._matrices: tuple[int, Any] = (0, None)

    @property
    def _native(self) -> Any:
        """Native object for products, created when first needed."""
        if self._made is None:
            self._made = _core.Linearization64(self.model._native, [c._native() for c in self.constraints])
        return self._made

    def _native_matrices(self, threads: int) -> Any:
        """Create the native object that forms matrices; a new one for another number of threads."""
        if self._matrices[0] != threads:
            self._matrices = threads, self._make_matrices(threads)
        return self._matrices[1]

    @property
    def nbytes(self) -> int:
        """Memory of its arrays [B]."""
        parts = (self._made, self._matrices[1])
        return self._dynamics.nbytes + sum(int(p.nbytes) for p in parts if p is not None)

    @property
    def result(self) -> DynamicsResult:
        """ν̇, λ and their status in the state of the last :meth:`update`."""
        found: DynamicsResult = self._solved()
        return found

    @property
    def redundant(self) -> bool:
        """Whether rows are redundant in that state."""
        _ = self.result  # there is a state, or this raises
        return bool(self._native.redundant)

    def update(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, external_forces: ArrayLike | None = None
    ) -> DynamicsResult:
        """Solve the equations in a state, around which the derivatives are taken.

        Args:
            q: (nq,) configuration.
            v: (nv,) velocity.
            tau: (nv,) joint forces, None for none.
            external_forces: (nbody, 6) ``[force; torque]`` [N, N m], world axes, at each body's centre of mass.

        Raises:
            InaccurateError: the equations were not solved, so they have no derivative there.
        """
        self._result = None
        r = self._dynamics.solve(q, v, tau, external_forces=external_forces)
        if r.status not in ("solved", "redundant"):
            raise _unsolved(r.status, None, r.advice)
        self._native.update(q, v, r.acceleration, r.forces, external_forces, self._compliance, self._damping)
        self._keep(q, v, external_forces, r)
        return r

    def jvp(self, dq: ArrayLike | None = None, dv: ArrayLike | None = None, dtau: ArrayLike | None = None) -> DynamicsTangent:
        """Change of ν̇ and λ along directions of the state.

        Args:
            dq: (nv,) or (nv, k) along q, in the tangent space: q ⊕ dq as in :func:`~delassus.integrate`.
            dv, dtau: (nv,) or (nv, k) along v and τ. None: no change.
        """
        n = self.result.acceleration.size
        columns, vector = columns_of({"dq": (dq, n), "dv": (dv, n), "dtau": (dtau, n)})
        return DynamicsTangent(*self._native.tangents(dq, dv, dtau, columns, vector))

    def vjp(self, acceleration_bar: ArrayLike | None = None, forces_bar: ArrayLike | None = None) -> DynamicsAdjoint:
        """Differentiate acceleration_bar · ν̇ + forces_bar · λ with respect to q, v and τ.

        Args:
            acceleration_bar: (nv,) or (nv, k) weights of ν̇.
            forces_bar: (m,) or (m, k) weights of λ. None: zero.
        """
        r = self.result
        columns, vector = columns_of(
            {"acceleration_bar": (acceleration_bar, r.acceleration.size), "forces_bar": (forces_bar, r.forces.size)}
        )
        return DynamicsAdjoint(*self._native.adjoints(acceleration_bar, forces_bar, columns, vector))

    def parameter_vjp(self, acceleration_bar: ArrayLike | None = None, forces_bar: ArrayLike | None = None) -> DynamicsParameterAdjoint:
        """Differentiate acceleration_bar · ν̇ + forces_bar · λ with respect to the inertial parameters of bodies and the armature of joints.

        Parameters act like joint forces: M ν̇ + h = Y θ + armature ν̇ with the regressor Y, so the result is −Yᵀ τ_bar; in matrices, ∂ν̇/∂θ = −∂ν̇/∂τ Y and ∂λ/∂θ = −∂λ/∂τ Y
        (:func:`~delassus.torque_regressor`). External forces act at the current centre of mass: its dependence on the parameters is neglected.

        Args:
            acceleration_bar, forces_bar: see :meth:`vjp`.

        Raises:
            InaccurateError: rows are redundant and forces have a weight: the dependence of the forces' load sharing on the parameters is not computed.
        """
        if forces_bar is not None and self.redundant:
            raise InaccurateError(
                "forces_bar: rows are redundant here, and the load sharing of their forces is not differentiated with respect to parameters. "
                "Give only acceleration_bar, or leave out redundant rows."
            )
        tau = self.vjp(acceleration_bar, forces_bar).tau
        assert self._state is not None
        (q, v, _), r = self._state, self.result
        Y = torque_regressor(self.model, q, v, r.acceleration)
        return DynamicsParameterAdjoint(-Y.T @ tau, -(r.acceleration[(slice(None), *(None,) * (tau.ndim - 1))] * tau))

    def derivatives(self, *, out: ConstrainedDynamicsDerivatives | None = None) -> ConstrainedDynamicsDerivatives:
        """All derivatives as matrices, in the state of the last :meth:`update`.

        Args:
            out: an earlier result to fill.
        """
        return self._differentiate(self._native_matrices(max(self._matrices[0], 1)), out, 0)

    def derivatives_at(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | None = None,
        *,
        external_forces: ArrayLike | None = None,
        threads: int = 1,
        out: ConstrainedDynamicsDerivatives | None = None,
    ) -> ConstrainedDynamicsDerivatives:
        """Solve for ν̇ and λ in a state, or in each of a batch, and differentiate them, as matrices. The state of :meth:`update` is kept.

        Args:
            q, v, tau, external_forces: see :meth:`update`; or with a leading batch axis: q (batch, nq), v (batch, nv) and so on.
            threads: number of threads for a batch, including the caller.
            out: an earlier result to fill.

        Raises:
            InaccurateError: the equations have no solution in some state.
        """
        batch = _batch_of(q)
        native, dynamics = self._native_matrices(count(threads, "threads")), self._dynamics
        a, f, *matrices = _to_fill(out)
        outcome, state, a, f, found = native.solve(
            q,
            v,
            tau,
            external_forces,
            self._compliance,
            self._damping,
            dynamics._damping,
            dynamics.max_iterations,
            dynamics.tolerance,
            a,
            f,
            tuple(matrices),
            batch,
        )
        if found is None:
            raise _unsolved(STATUSES[outcome], state if batch else None, "")
        return ConstrainedDynamicsDerivatives(a, f, *found)

    def __repr__(self) -> str:
        return f"<LinearizedDynamics of {self.model.name!r}: {sum(c.rows for c in self.constraints)} rows>"


class BatchLinearizedDynamics(_Linearized):
    """Constrained dynamics linearized at many states of one mechanism together, see :class:`LinearizedDynamics`; every array has a leading batch axis.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops, the same for all states. May be empty.
        batch_size: number of states.
        compliance: C, scalar or (m,), the same for all states.
        threads: number of threads, including the caller.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> model = dl.load("cassie")
        >>> L = dl.BatchLinearizedDynamics(model, model.loops, 3)
        >>> q = np.stack([model.keyframes["home"]] * 3)
        >>> L.update(q, np.zeros((3, model.nv))).status.tolist()
        ['solved', 'solved', 'solved']
        >>> L.vjp(acceleration_bar=np.ones((3, model.nv))).tau.shape
        (3, 32)
    """

    def __init__(
        self, model: Model, constraints: Sequence[Constraint | Loop], batch_size: int, *, compliance: ArrayLike = 0.0, threads: int = 1
    ) -> None:
        self._dynamics: BatchConstrainedDynamics = BatchConstrainedDynamics(
            model, constraints, batch_size, compliance=compliance, threads=threads
        )
        rows = (self._dynamics._rows[1],)
        self._damping = np.ascontiguousarray(self._dynamics._damping[0]) * _MORE_DAMPING
        self._compliance = diagonal(compliance, "compliance", rows, self._dynamics.dtype)
        self._threads = count(threads, "threads")
        native = [c._native() for c in self.constraints]
        self._native = _core.BatchLinearization64(self.model._native, native, self.batch_size, self._threads)
        self._matrices: Any = None

    @property
    def batch_size(self) -> int:
        """How many states."""
        return self._dynamics.batch_size

    @property
    def nbytes(self) -> int:
        """Memory of its arrays [B]."""
        return int(self._native.nbytes) + self._dynamics.nbytes + (0 if self._matrices is None else int(self._matrices.nbytes))

    @property
    def result(self) -> BatchDynamicsResult:
        """ν̇, λ and their status in the states of the last :meth:`update`."""
        found: BatchDynamicsResult = self._solved()
        return found

    @property
    def redundant(self) -> Array:
        """(batch_size,) bool, True where rows are redundant."""
        _ = self.result  # there are states, or this raises
        return np.array([self._native.redundant(k) for k in range(self.batch_size)])

    def update(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, external_forces: ArrayLike | None = None
    ) -> BatchDynamicsResult:
        """Solve the equations in all states, around which the derivatives are taken.

        Args:
            q: (batch_size, nq) configurations.
            v: (batch_size, nv) velocities.
            tau: (batch_size, nv) joint forces, None for none.
            external_forces: (batch_size, nbody, 6) ``[force; torque]`` [N, N m], world axes, at each body's centre of mass.

        Raises:
            InaccurateError: the equations of some state were not solved, so they have no derivative there.
        """
        self._result = None
        r = self._dynamics.solve(q, v, tau, external_forces=external_forces)
        bad = np.flatnonzero(~np.isin(r.status, ("solved", "redundant")))
        if bad.size:
            raise _unsolved(str(r.status[bad[0]]), int(bad[0]), "")
        self._native.update(q, v, r.acceleration, r.forces, external_forces, self._compliance, self._damping)
        self._keep(q, v, external_forces, r)
        return r

    def jvp(self, dq: ArrayLike | None = None, dv: ArrayLike | None = None, dtau: ArrayLike | None = None) -> DynamicsTangent:
        """Change of ν̇ and λ along directions of each state: dq, dv, dtau (batch_size, nv) or (batch_size, nv, k)."""
        n = self.result.acceleration.shape[1]
        columns, vector = columns_of({"dq": (dq, n), "dv": (dv, n), "dtau": (dtau, n)}, (self.batch_size,))
        return DynamicsTangent(*self._native.tangents(dq, dv, dtau, columns, vector))

    def vjp(self, acceleration_bar: ArrayLike | None = None, forces_bar: ArrayLike | None = None) -> DynamicsAdjoint:
        """Differentiate acceleration_bar · ν̇ + forces_bar · λ of each state with respect to its q, v and τ: weights (batch_size, nv) and (batch_size, m), or with k columns."""
        r = self.result
        sizes = {"acceleration_bar": (acceleration_bar, r.acceleration.shape[1]), "forces_bar": (forces_bar, r.forces.shape[1])}
        columns, vector = columns_of(sizes, (self.batch_size,))
        return DynamicsAdjoint(*self._native.adjoints(acceleration_bar, forces_bar, columns, vector))

    def derivatives(self, *, out: ConstrainedDynamicsDerivatives | None = None) -> ConstrainedDynamicsDerivatives:
        """All derivatives as matrices, with a leading batch axis.

        Args:
            out: an earlier result to fill.
        """
        if self._matrices is None:
            self._matrices = self._make_matrices(self._threads)
        return self._differentiate(self._matrices, out, self.batch_size)

    def __repr__(self) -> str:
        return f"<BatchLinearizedDynamics of {self.model.name!r}: {self.batch_size} states, {self._dynamics._rows[1]} rows>"


def linearize(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    constraints: Sequence[Constraint | Loop],
    *,
    external_forces: ArrayLike | None = None,
    compliance: ArrayLike = 0.0,
    threads: int = 1,
) -> LinearizedDynamics | BatchLinearizedDynamics:
    """Linearize constrained dynamics at a state or a batch of states, matrix-free. For repeated calls with the same constraints keep the result and call its ``update``.

    Args:
        model, q, v, tau, constraints, external_forces, compliance: see :func:`~delassus.constrained_dynamics`; arrays may have a leading batch axis.
        threads: number of threads for a batch, including the caller.

    Returns:
        a :class:`LinearizedDynamics` with ``jvp(dq, dv, dtau)`` and ``vjp(acceleration_bar, forces_bar)``, for a batch a :class:`BatchLinearizedDynamics`.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> model = dl.load("go2")
        >>> feet = [dl.PointContact(model, b) for b in ("FL_calf", "FR_calf")]
        >>> L = dl.linearize(model, model.neutral(), model.zero_velocity(), None, feet)
        >>> L.jvp(dtau=np.eye(model.nv)).forces.shape
        (6, 18)
    """
    batch = _batch_of(q)
    linearized: LinearizedDynamics | BatchLinearizedDynamics
    if batch:
        linearized = BatchLinearizedDynamics(model, constraints, batch, compliance=compliance, threads=threads)
    else:
        linearized = LinearizedDynamics(model, constraints, compliance=compliance)
    linearized.update(q, v, tau, external_forces=external_forces)
    return linearized


def constrained_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    constraints: Sequence[Constraint | Loop],
    *,
    external_forces: ArrayLike | None = None,
    compliance: ArrayLike = 0.0,
    threads: int = 1,
    out: ConstrainedDynamicsDerivatives | None = None,
) -> ConstrainedDynamicsDerivatives:
    """Differentiate ν̇ and λ of :func:`~delassus.constrained_dynamics` with respect to q, v and τ, as matrices. For repeated calls with the same constraints use :meth:`LinearizedDynamics.derivatives_at`.

    All arrays may have a leading batch axis: q (batch, nq), v (batch, nv) and so on.

    Args:
        model, q, v, tau, constraints, external_forces, compliance: see :func:`~delassus.constrained_dynamics`.
        threads: number of threads for a batch, including the caller.
        out: an earlier result to fill.

    Returns:
        ν̇, λ, and their derivatives; those with respect to q in its tangent space, coordinates of v. If only products with these are needed, :func:`linearize` takes O(n + m).

    Raises:
        InaccurateError: the equations have no solution there, for example because rows contradict each other.
    """
    linearized = LinearizedDynamics(model, constraints, compliance=compliance)
    return linearized.derivatives_at(q, v, tau, external_forces=external_forces, threads=threads, out=out)


class OperatorDerivatives:
    """The Delassus operator to first order: how G(q) x and (G(q) + ε)⁻¹ y change with q, x, y and ε. Matrix-free, O(n + m) per direction.

    Args:
        model: the mechanism.
        constraints: constraints of this model, or its loops.
        compliance: C, scalar or (m,), a part of G.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> model = dl.load("go2")
        >>> D = dl.OperatorDerivatives(model, [dl.PointContact(model, "FL_calf")])
        >>> D.update(model.neutral(), damping=1e-6)
        >>> x = np.array([1.0, 0.0, 0.0])
        >>> D.quadratic_gradient(x).shape  # of xᵀ G(q) x
        (18,)
    """

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop], *, compliance: ArrayLike = 0.0) -> None:
        self.model = as_model(model)
        self.constraints = tuple(collect(model, constraints))
        self._m = sum(c.rows for c in self.constraints)
        self._compliance = diagonal(compliance, "compliance", (self._m,), np.float64)
        self._native = _core.OperatorDerivatives64(self.model._native, [c._native() for c in self.constraints])
        self._placed = self._damped = False

    @property
    def shape(self) -> tuple[int, int]:
        """(m, m)."""
        return self._m, self._m

    def update(self, q: ArrayLike, damping: ArrayLike | None = None) -> None:
        """Set the configuration, and the damping ε that products with the inverse need: scalar or (m,), positive."""
        self._placed = self._damped = False
        given = None if damping is None else diagonal(damping, "damping", (self._m,), np.float64)
        if given is not None and not (given + self._compliance > 0).all():
            raise ArgumentError(f"damping: expected positive numbers, got {float(given.min()):g}.")
        self._native.update(q, self._compliance, given)
        self._placed, self._damped = True, given is not None

    def _fresh(self, damped: bool = False) -> None:
        if not self._placed:
            raise StaleError("OperatorDerivatives: there is no configuration yet. Call update(q) first.")
        if damped and not self._damped:
            raise StaleError("OperatorDerivatives: products with the inverse need damping. Call, for example, update(q, damping=1e-6).")

    def apply_jvp(self, x: ArrayLike, dq: ArrayLike | None = None, dx: ArrayLike | None = None) -> Array:
        """d(G x) along dq (nv,) or (nv, k) in the tangent space, and along dx (m,) or (m, k)."""
        self._fresh()
        columns, vector = columns_of({"dq": (dq, self.model.nv), "dx": (dx, self._m)})
        _, dy = self._native.apply_tangents(x, dq, dx, columns, vector)
        return np.asarray(dy)

    def apply_vjp(self, x: ArrayLike, y_bar: ArrayLike) -> tuple[Array, Array]:
        """Differentiate y_bar · G x with respect to q and x; y_bar: (m,) or (m, k)."""
        self._fresh()
        columns, vector = columns_of({"y_bar": (y_bar, self._m)})
        by_q, by_x = self._native.apply_adjoints(x, y_bar, columns, vector)
        return by_q, by_x

    def quadratic_gradient(self, x: ArrayLike) -> Array:
        """Differentiate xᵀ G(q) x with respect to q: (nv,)."""
        return self.apply_vjp(x, x)[0]

    def solve_jvp(self, y: ArrayLike, dq: ArrayLike | None = None, dy: ArrayLike | None = None, ddamping: ArrayLike | None = None) -> Array:
        """d((G + ε)⁻¹ y) along dq (nv,) or (nv, k), and along dy and ddamping (m,) or (m, k)."""
        self._fresh(damped=True)
        columns, vector = columns_of({"dq": (dq, self.model.nv), "dy": (dy, self._m), "ddamping": (ddamping, self._m)})
        _, dx = self._native.solve_tangents(y, dq, dy, ddamping, columns, vector)
        return np.asarray(dx)

    def solve_vjp(self, y: ArrayLike, x_bar: ArrayLike) -> tuple[Array, Array, Array]:
        """Differentiate x_bar · (G + ε)⁻¹ y with respect to q, y and ε; x_bar: (m,) or (m, k)."""
        self._fresh(damped=True)
        columns, vector = columns_of({"x_bar": (x_bar, self._m)})
        by_q, by_y, by_damping = self._native.solve_adjoints(y, x_bar, columns, vector)
        return by_q, by_y, by_damping

    def __repr__(self) -> str:
        return f"<OperatorDerivatives of {self.model.name!r}: {self._m} rows>"
