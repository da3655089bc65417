"""Constrained dynamics and the Delassus operator to first order, matrix-free: products with their Jacobians and with the transposes, O(n + m) each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import as_array, diagonal
from ..constraints import Constraint, collect
from ..errors import ArgumentError, InaccurateError, StaleError
from ..model import Loop, Model
from ..model.model import as_model
from ..solvers import ConstrainedDynamics, DynamicsResult

__all__ = [
    "ConstrainedDynamicsDerivatives",
    "DynamicsAdjoint",
    "DynamicsTangent",
    "LinearizedDynamics",
    "OperatorDerivatives",
    "constrained_dynamics_derivatives",
    "linearize",
]

Array = NDArray[Any]
# Damping of the solutions here over that of constrained_dynamics: more leaves more digits where rows depend on each other, and takes an iteration or two more.
_MORE_DAMPING = 100.0


class DynamicsTangent(NamedTuple):
    """What a direction of the state changes: ``acceleration`` (nv,) and ``forces`` (m,), or (nv, k) and (m, k) of k directions."""

    acceleration: Array
    forces: Array


class DynamicsAdjoint(NamedTuple):
    """Derivatives of a number by ``q`` (tangent space), ``v`` and ``tau``: (nv,) each, or (nv, k) of k numbers."""

    q: Array
    v: Array
    tau: Array


@dataclass(frozen=True, eq=False)
class ConstrainedDynamicsDerivatives:
    """Derivatives of ν̇ and λ, see :func:`constrained_dynamics_derivatives`.

    Attributes:
        acceleration: (nv,) ν̇.
        forces: (m,) λ.
        acceleration_q, acceleration_v, acceleration_tau: (nv, nv) ∂ν̇, column k for a change of q along v[k], of v[k], of τ[k].
        forces_q, forces_v, forces_tau: (m, nv) ∂λ.
    """

    acceleration: Array
    forces: Array
    acceleration_q: Array
    acceleration_v: Array
    acceleration_tau: Array
    forces_q: Array
    forces_v: Array
    forces_tau: Array


def _columns(arrays: dict[str, tuple[Any, int]]) -> tuple[int, bool]:
    """How many columns the arrays that are given have, and whether they are vectors.

    Args:
        arrays: by name: an array or None, and its number of rows.
    """
    shapes = {name: as_array(x, name).shape for name, (x, _) in arrays.items() if x is not None}
    if not shapes:
        raise ArgumentError(f"{', '.join(arrays)}: expected at least one of them, got none.")
    first, shape = next(iter(shapes.items()))
    rows = arrays[first][1]
    if len(shape) not in (1, 2) or shape[0] != rows:
        raise ArgumentError(f"{first}: expected shape ({rows},) or ({rows}, k), got {shape}.")
    for name, other in shapes.items():
        if len(other) != len(shape) or other[1:] != shape[1:] or other[0] != arrays[name][1]:
            wanted = (arrays[name][1], *shape[1:])
            raise ArgumentError(f"{name}: expected shape {wanted}, as {first} has {shape}, got {other}.")
    return (1, True) if len(shape) == 1 else (int(shape[1]), False)


class LinearizedDynamics:
    """Constrained dynamics ν̇(q, v, τ), λ(q, v, τ) to first order, state after state: the symbolic work and the memory are taken once.

        M ν̇ + h = τ + Jᵀ λ,   J ν̇ + C λ + γ = 0,   γ = J̇v + k_d J v + k_p e

    :meth:`update` solves for ν̇ and λ; :meth:`jvp` and :meth:`vjp` then take O(n + m) each, by one sweep through the equations and one solution with the elimination of
    the operator. External forces keep their direction as q changes. Points and axes of constraints stay where they are on their bodies.

    Where rows depend on each other, λ is that of :func:`~delassus.constrained_dynamics`: of all that do the same, the least in the metric of its damping. Its derivative is the
    derivative of that choice. Where rows contradict each other there is no derivative: :meth:`update` raises.

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
        self._dynamics = ConstrainedDynamics(model, constraints, compliance=compliance)
        self._damping = self._dynamics._damping * _MORE_DAMPING
        self._compliance = diagonal(compliance, "compliance", self._dynamics._rows, self._dynamics.dtype)
        self._native = _core.Linearization64(as_model(model)._native, [c._native() for c in self._dynamics.constraints])
        self._result: DynamicsResult | None = None

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self._dynamics.model

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints whose rows are taken, in order."""
        return self._dynamics.constraints

    @property
    def nbytes(self) -> int:
        """Bytes of numbers that it keeps."""
        return int(self._native.nbytes) + self._dynamics.nbytes

    @property
    def result(self) -> DynamicsResult:
        """ν̇, λ and their status in the state of the last :meth:`update`."""
        if self._result is None:
            raise StaleError("LinearizedDynamics: there is no state yet. Call update(q, v, tau) first.")
        return self._result

    @property
    def redundant(self) -> bool:
        """Whether rows depend on each other in that state."""
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
            raise InaccurateError(
                f"linearize: constrained_dynamics ended with {r.status!r} here, so there is nothing to differentiate. {r.advice}"
            )
        self._native.update(q, v, r.acceleration, r.forces, external_forces, self._compliance, self._damping)
        self._result = r
        return r

    def jvp(self, dq: ArrayLike | None = None, dv: ArrayLike | None = None, dtau: ArrayLike | None = None) -> DynamicsTangent:
        """Change of ν̇ and λ along directions of the state.

        Args:
            dq: (nv,) or (nv, k) along q, in the tangent space: q ⊕ dq as :func:`~delassus.integrate` has it.
            dv, dtau: the same along v and τ. What is None does not change.
        """
        n = self.result.acceleration.size
        columns, vector = _columns({"dq": (dq, n), "dv": (dv, n), "dtau": (dtau, n)})
        return DynamicsTangent(*self._native.tangents(dq, dv, dtau, columns, vector))

    def vjp(self, acceleration_bar: ArrayLike | None = None, forces_bar: ArrayLike | None = None) -> DynamicsAdjoint:
        """Differentiate acceleration_bar · ν̇ + forces_bar · λ by q, v and τ.

        Args:
            acceleration_bar: (nv,) or (nv, k) weights of ν̇.
            forces_bar: (m,) or (m, k) weights of λ. What is None has no weight.
        """
        r = self.result
        columns, vector = _columns({"acceleration_bar": (acceleration_bar, r.acceleration.size), "forces_bar": (forces_bar, r.forces.size)})
        return DynamicsAdjoint(*self._native.adjoints(acceleration_bar, forces_bar, columns, vector))

    def derivatives(self) -> ConstrainedDynamicsDerivatives:
        """All derivatives as matrices, by their columns."""
        r = self.result
        n = r.acceleration.size
        one, zero = np.eye(n), np.zeros((n, n))
        dq, dv, dtau = np.hstack([one, zero, zero]), np.hstack([zero, one, zero]), np.hstack([zero, zero, one])
        a, f = self._native.tangents(dq, dv, dtau, 3 * n, False)
        by_acceleration, by_forces = (np.ascontiguousarray(x.reshape(-1, 3, n).swapaxes(0, 1)) for x in (a, f))
        return ConstrainedDynamicsDerivatives(r.acceleration, r.forces, *by_acceleration, *by_forces)

    def __repr__(self) -> str:
        return f"<LinearizedDynamics of {self.model.name!r}: {sum(c.rows for c in self.constraints)} rows>"


def linearize(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    constraints: Sequence[Constraint | Loop],
    *,
    external_forces: ArrayLike | None = None,
    compliance: ArrayLike = 0.0,
) -> LinearizedDynamics:
    """Constrained dynamics to first order around a state, matrix-free. For many states with the same constraints keep a :class:`LinearizedDynamics`.

    Args:
        model, q, v, tau, constraints, external_forces, compliance: see :func:`~delassus.constrained_dynamics`.

    Returns:
        an object with ``jvp(dq, dv, dtau)`` and ``vjp(acceleration_bar, forces_bar)``.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> model = dl.load("go2")
        >>> feet = [dl.PointContact(model, b) for b in ("FL_calf", "FR_calf")]
        >>> L = dl.linearize(model, model.neutral(), model.zero_velocity(), None, feet)
        >>> L.jvp(dtau=np.eye(model.nv)).forces.shape
        (6, 18)
    """
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
) -> ConstrainedDynamicsDerivatives:
    """Differentiate ν̇ and λ of :func:`~delassus.constrained_dynamics` by q, v and τ, as matrices.

    Args:
        model, q, v, tau, constraints, external_forces, compliance: see :func:`~delassus.constrained_dynamics`.

    Returns:
        ν̇, λ, and their derivatives: by q on the tangent space, coordinates of v. For products with these alone, :func:`linearize` is O(n + m).

    Raises:
        InaccurateError: the equations have no solution there, as where rows contradict each other.
    """
    return linearize(model, q, v, tau, constraints, external_forces=external_forces, compliance=compliance).derivatives()


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
        """Take a configuration, and the damping ε that products with the inverse need: scalar or (m,), positive."""
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
            raise StaleError("OperatorDerivatives: products with the inverse need damping. Call update(q, damping=1e-6), say.")

    def apply_jvp(self, x: ArrayLike, dq: ArrayLike | None = None, dx: ArrayLike | None = None) -> Array:
        """d(G x) along dq (nv,) or (nv, k) in the tangent space, and along dx (m,) or (m, k)."""
        self._fresh()
        columns, vector = _columns({"dq": (dq, self.model.nv), "dx": (dx, self._m)})
        _, dy = self._native.apply_tangents(x, dq, dx, columns, vector)
        return np.asarray(dy)

    def apply_vjp(self, x: ArrayLike, y_bar: ArrayLike) -> tuple[Array, Array]:
        """Differentiate y_bar · G x by q and by x; y_bar: (m,) or (m, k)."""
        self._fresh()
        columns, vector = _columns({"y_bar": (y_bar, self._m)})
        by_q, by_x = self._native.apply_adjoints(x, y_bar, columns, vector)
        return by_q, by_x

    def quadratic_gradient(self, x: ArrayLike) -> Array:
        """Differentiate xᵀ G(q) x by q: (nv,)."""
        return self.apply_vjp(x, x)[0]

    def solve_jvp(self, y: ArrayLike, dq: ArrayLike | None = None, dy: ArrayLike | None = None, ddamping: ArrayLike | None = None) -> Array:
        """d((G + ε)⁻¹ y) along dq (nv,) or (nv, k), and along dy and ddamping (m,) or (m, k)."""
        self._fresh(damped=True)
        columns, vector = _columns({"dq": (dq, self.model.nv), "dy": (dy, self._m), "ddamping": (ddamping, self._m)})
        _, dx = self._native.solve_tangents(y, dq, dy, ddamping, columns, vector)
        return np.asarray(dx)

    def solve_vjp(self, y: ArrayLike, x_bar: ArrayLike) -> tuple[Array, Array, Array]:
        """Differentiate x_bar · (G + ε)⁻¹ y by q, y and ε; x_bar: (m,) or (m, k)."""
        self._fresh(damped=True)
        columns, vector = _columns({"x_bar": (x_bar, self._m)})
        by_q, by_y, by_damping = self._native.solve_adjoints(y, x_bar, columns, vector)
        return by_q, by_y, by_damping

    def __repr__(self) -> str:
        return f"<OperatorDerivatives of {self.model.name!r}: {self._m} rows>"
