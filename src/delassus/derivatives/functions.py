"""Functions with their derivatives, on plain arrays and in the coordinates of q: the basis of the JAX, PyTorch and CasADi packages.

Every function takes float64 arrays of S states side by side, one row each, and of C directions per state:

    value(x)          x_i (S, n_i) → y_j (S, m_j)
    jvp(x, dx)        dx_i (S, C, n_i) → dy_j (S, C, m_j)
    vjp(x, y_bar)     y_bar_j (S, C, m_j) → x_bar_i (S, C, n_i)
    jacobian(x)       (S, m_j, n_i), of the first result with respect to every argument, then of the next

Arguments that are configurations have nq numbers, and so do their directions and adjoints: a quaternion is normalized first, so a function does not depend on its length.
:func:`evaluate` and :func:`multiply` take any leading axes and split them into states and directions.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .._door import count
from ..constraints import Constraint, collect
from ..dynamics import Workspace, forward_dynamics, inverse_dynamics
from ..errors import ArgumentError, InaccurateError
from ..model import Loop, Model
from ..model.model import as_model
from ..model.records import VELOCITIES
from ..operators import BatchDelassusOperator, DelassusOperator
from ..solvers import BatchConstrainedDynamics, ConstrainedDynamics, solve_contacts
from ..state import normalize
from .contacts import ContactDerivatives
from .dynamics import forward_dynamics_derivatives, inverse_dynamics_derivatives
from .linearized import LinearizedDynamics, OperatorDerivatives

__all__ = [
    "ConstrainedFunction",
    "ContactFunction",
    "Function",
    "InverseOperatorFunction",
    "OperatorFunction",
    "RolloutFunction",
    "StepFunction",
    "TreeFunction",
    "evaluate",
    "made",
    "made_with_rows",
    "multiply",
]

Array = NDArray[np.float64]
Arrays = Sequence[Array]
_SOLVED = ("solved", "redundant")


class _Coordinates:
    """Conversion between rates of q (nq) and velocities (nv): ω = 2 Im(q̄ ∘ q̇) / ‖q‖² for quaternions, the identity for all else. Arrays (S, …, nq) with q (S, nq)."""

    def __init__(self, model: Model) -> None:
        plain, turned = [], []
        for kind, at, first in zip(model.joint_type, model.joint_qadr, model.joint_vadr, strict=True):
            same = {"hinge": 1, "slide": 1, "free": 3, "ball": 0}[kind]
            plain += [(at + k, first + k) for k in range(same)]
            if kind in ("free", "ball"):
                turned.append((at + same, first + same))
        self._model = model
        self._from, self._to = np.array(plain, dtype=int).reshape(-1, 2).T
        self._turned = turned

    def unit(self, q: Array) -> Array:
        """Scale quaternions to unit length."""
        if not self._turned:
            return q
        out = q.copy()
        for at, _ in self._turned:
            c = out[:, at : at + 4]
            length = np.linalg.norm(c, axis=1, keepdims=True)
            if not (np.isfinite(length) & (length > 0)).all():
                return np.stack([normalize(self._model, one) for one in q])  # raises the error
            c /= length
        return out

    @staticmethod
    def _imaginary(c: Array) -> Array:
        """(S, 3, 4) matrices that map the rate of a quaternion to its angular velocity, body axes."""
        w, x, y, z = c.T
        rows = np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
        return np.moveaxis(rows * (2 / (c * c).sum(1)), -1, 0)

    def velocity(self, q: Array, dq: Array) -> Array:
        """Velocities (S, C, nv) of rates of q (S, C, nq)."""
        v = np.zeros((*dq.shape[:-1], self._model.nv))
        v[..., self._to] = dq[..., self._from]
        for at, to in self._turned:
            v[..., to : to + 3] = dq[..., at : at + 4] @ self._imaginary(q[:, at : at + 4]).swapaxes(1, 2)
        return v

    def adjoint(self, q: Array, v_bar: Array) -> Array:
        """Transpose of :meth:`velocity`: (S, C, nv) to (S, C, nq)."""
        q_bar = np.zeros((*v_bar.shape[:-1], self._model.nq))
        q_bar[..., self._from] = v_bar[..., self._to]
        for at, to in self._turned:
            q_bar[..., at : at + 4] = v_bar[..., to : to + 3] @ self._imaginary(q[:, at : at + 4])
        return q_bar

    def matrix(self, q: Array) -> Array:
        """(S, nv, nq), the map of :meth:`velocity`."""
        T = np.zeros((len(q), self._model.nv, self._model.nq))
        T[:, self._to, self._from] = 1.0
        for at, to in self._turned:
            T[:, to : to + 3, at : at + 4] = self._imaginary(q[:, at : at + 4])
        return T

    def rate(self, q: Array, v: Array) -> Array:
        """Rates (S, C, nq) of unit q at velocities (S, C, nv)."""
        dq = np.zeros((*v.shape[:-1], self._model.nq))
        dq[..., self._from] = v[..., self._to]
        for at, to in self._turned:
            dq[..., at : at + 4] = v[..., to : to + 3] @ self._imaginary(q[:, at : at + 4]) / 4
        return dq

    def rate_adjoint(self, q: Array, q_bar: Array) -> Array:
        """Transpose of :meth:`rate`: (S, C, nq) to (S, C, nv)."""
        v_bar = np.zeros((*q_bar.shape[:-1], self._model.nv))
        v_bar[..., self._to] = q_bar[..., self._from]
        for at, to in self._turned:
            v_bar[..., to : to + 3] = q_bar[..., at : at + 4] @ self._imaginary(q[:, at : at + 4]).swapaxes(1, 2) / 4
        return v_bar

    def pattern(self, by_v: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Sparsity pattern with respect to q, from that with respect to velocities (…, nv)."""
        by_q = np.zeros((len(by_v), self._model.nq), dtype=bool)
        by_q[:, self._from] = by_v[:, self._to]
        for at, to in self._turned:
            by_q[:, at : at + 4] = by_v[:, to : to + 3].any(1, keepdims=True)
        return by_q


class Function:
    """A function of several arrays with lengths ``inputs`` and results with lengths ``outputs``. Thread-safe."""

    def __init__(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        # Idle objects that one thread at a time may use. Not a threading.local: frameworks call from foreign threads, whose locals Python drops after every call.
        self._idle: list[tuple[Any, Any]] = []
        self._guard = threading.Lock()

    @contextmanager
    def _lent(self, make: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Lend ``make(*arguments)``, an idle one made earlier if there is one; eight are kept."""
        key, found = (make, arguments), None
        with self._guard:
            for k in reversed(range(len(self._idle))):
                if self._idle[k][0] == key:
                    _, found = self._idle.pop(k)
                    break
        found = make(*arguments) if found is None else found
        try:
            yield found
        finally:
            with self._guard:
                self._idle = [*self._idle, (key, found)][-8:]

    def value(self, x: Arrays) -> tuple[Array, ...]:
        """Results, in order."""
        raise NotImplementedError

    def jvp(self, x: Arrays, dx: Arrays) -> tuple[Array, ...]:
        """Return changes of the results along directions of the arguments."""
        raise NotImplementedError

    def vjp(self, x: Arrays, y_bar: Arrays) -> tuple[Array, ...]:
        """Differentiate Σ y_bar · y with respect to the arguments."""
        raise NotImplementedError

    def jacobian(self, x: Arrays) -> tuple[Array, ...]:
        """Return derivatives as matrices: of the first result with respect to every argument, then of the next."""
        by_result: list[Array] = []
        for i, n in enumerate(self.inputs):
            along = [np.zeros((len(x[0]), n, other)) for other in self.inputs]
            along[i] += np.eye(n)
            by_result += [np.swapaxes(dy, 1, 2) for dy in self.jvp(x, along)]
        many = len(self.outputs)
        return tuple(by_result[i * many + j] for j in range(many) for i in range(len(self.inputs)))

    def patterns(self) -> tuple[NDArray[np.bool_], ...]:
        """Sparsity patterns of the matrices of :meth:`jacobian`, in its order: dense."""
        return tuple(np.ones((m, n), dtype=bool) for m in self.outputs for n in self.inputs)


@lru_cache(maxsize=256)
def made(kind: Callable[..., Function], *arguments: Any) -> Function:
    """Return a cached function: the same model, constraints and options give the same object, so that compiled code is reused. Constraints are compared by identity."""
    return kind(*arguments)


def made_with_rows(kind: Callable[..., Function], model: Model, constraints: Sequence[Constraint | Loop], *options: Any) -> Function:
    """:func:`made`, for a list of constraints."""
    try:
        return made(kind, model, tuple(constraints), *options)
    except TypeError:
        collect(as_model(model), constraints)  # raises an error that names what is not a constraint
        raise


def evaluate(f: Function, x: Arrays) -> tuple[Array, ...]:
    """Results of a function for arguments with leading axes, which broadcast: all of them are states."""
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in x))
    if 0 in batch:
        return tuple(np.zeros((*batch, m)) for m in f.outputs)
    S = int(np.prod(batch))
    flat = [np.broadcast_to(a, (*batch, a.shape[-1])).reshape(S, a.shape[-1]) for a in x]
    return tuple(y.reshape(*batch, y.shape[-1]) for y in f.value(flat))


def multiply(f: Function, x: Arrays, d: Arrays, transposed: bool) -> tuple[Array, ...]:
    """Products with the Jacobian of a function, or with its transpose, for leading axes that broadcast.

    Axes along which no argument changes are directions of one state, which share its factorization.
    """
    states = np.broadcast_shapes(*(a.shape[:-1] for a in x))
    batch = np.broadcast_shapes(states, *(a.shape[:-1] for a in d))
    states = (1,) * (len(batch) - len(states)) + states
    if 0 in batch:
        return tuple(np.zeros((*batch, n)) for n in (f.inputs if transposed else f.outputs))
    # axes of states first, then those of directions
    order = [k for k, n in enumerate(states) if n > 1] + [k for k, n in enumerate(states) if n == 1]
    S = int(np.prod(states))
    C = int(np.prod(batch)) // S
    at = [np.broadcast_to(a, (*states, a.shape[-1])).reshape(S, a.shape[-1]) for a in x]
    along = [np.broadcast_to(a, (*batch, a.shape[-1])).transpose(*order, -1).reshape(S, C, a.shape[-1]) for a in d]
    back = np.argsort(order)
    found = (f.vjp if transposed else f.jvp)(at, along)
    return tuple(y.reshape(*(batch[k] for k in order), y.shape[-1]).transpose(*back, -1) for y in found)


def _batch_dynamics(model: Model, constraints: tuple[Constraint, ...], states: int, threads: int) -> BatchConstrainedDynamics:
    return BatchConstrainedDynamics(model, constraints, states, threads=threads)


def _batch_operator(model: Model, constraints: tuple[Constraint, ...], states: int, threads: int) -> BatchDelassusOperator:
    return BatchDelassusOperator(model, constraints, states, threads=threads)


class _OfModel(Function):
    """A function whose first argument is a configuration."""

    def __init__(self, model: Model, inputs: Sequence[int], outputs: Sequence[int], threads: int) -> None:
        super().__init__((as_model(model).nq, *inputs), outputs)
        self.model, self.threads = model, count(threads, "threads")
        self._coordinates = _Coordinates(model)


class TreeFunction(_OfModel):
    """Inverse or forward dynamics of the tree: (q, v, ν̇) → τ or (q, v, τ) → ν̇."""

    def __init__(self, model: Model, inverse: bool, threads: int = 1) -> None:
        n = as_model(model).nv
        super().__init__(model, (n, n), (n,), threads)
        self._inverse = inverse

    def value(self, x: Arrays) -> tuple[Array, ...]:
        """τ or ν̇."""
        q, S = self._coordinates.unit(x[0]), len(x[0])
        if S > 1 and not self._inverse:
            with self._lent(_batch_dynamics, self.model, (), S, self.threads) as batch:
                return (batch.solve(q, x[1], x[2]).acceleration,)
        call, out = inverse_dynamics if self._inverse else forward_dynamics, np.empty_like(x[1])
        with self._lent(Workspace, self.model) as work:
            for k in range(S):
                call(work, q[k], x[1][k], x[2][k], out=out[k])
        return (out,)

    def _matrices(self, x: Arrays) -> tuple[Array, Array, Array]:
        """Compute derivatives with respect to q (tangent space), v, and ν̇ or τ; (S, nv, nv) each."""
        q = self._coordinates.unit(x[0])
        if self._inverse:
            d = inverse_dynamics_derivatives(self.model, q, x[1], x[2], threads=self.threads)
            return d.tau_q, d.tau_v, d.tau_a
        f = forward_dynamics_derivatives(self.model, q, x[1], x[2], threads=self.threads)
        return f.acceleration_q, f.acceleration_v, f.acceleration_tau

    def jvp(self, x: Arrays, dx: Arrays) -> tuple[Array, ...]:
        """Products with the matrices of derivatives."""
        by_q, by_v, by_given = (m.swapaxes(1, 2) for m in self._matrices(x))
        return (self._coordinates.velocity(x[0], dx[0]) @ by_q + dx[1] @ by_v + dx[2] @ by_given,)

    def vjp(self, x: Arrays, y_bar: Arrays) -> tuple[Array, ...]:
        """Products with their transposes."""
        by_q, by_v, by_given = (y_bar[0] @ m for m in self._matrices(x))
        return self._coordinates.adjoint(x[0], by_q), by_v, by_given

    def jacobian(self, x: Arrays) -> tuple[Array, ...]:
        """Return derivatives with respect to q, v, and ν̇ or τ."""
        by_q, by_v, by_given = self._matrices(x)
        return by_q @ self._coordinates.matrix(x[0]), by_v, by_given

    def patterns(self) -> tuple[NDArray[np.bool_], ...]:
        """Inverse dynamics: velocities on one path to the root; forward dynamics: those of one tree."""
        model = self.model
        owner = np.repeat(model.joint_body, [VELOCITIES[kind] for kind in model.joint_type])
        above = np.eye(model.nbody, dtype=bool)  # [b, a]: a is b or an ancestor of b
        for b in range(1, model.nbody):
            above[b] |= above[model.body_parent[b]]
        above[:, 0] = False
        related = (above | above.T)[np.ix_(owner, owner)]
        if not self._inverse:
            # two branches of a moving body
            moving = np.isin(np.arange(model.nbody), owner)
            related = (above[owner][:, moving].astype(int) @ above[owner][:, moving].T) > 0
        return self._coordinates.pattern(related), related, related


class _WithRows(_OfModel):
    """A function of a configuration and constraints."""

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop], threads: int) -> None:
        self._constraints = tuple(collect(model, constraints))
        self._m = sum(c.rows for c in self._constraints)
        inputs, outputs = self._sizes(as_model(model).nv, self._m)
        super().__init__(model, inputs, outputs, threads)

    @staticmethod
    def _sizes(n: int, m: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Lengths of the arguments after q, and of the results."""
        raise NotImplementedError


class ConstrainedFunction(_WithRows):
    """Constrained dynamics: (q, v, τ) → (ν̇, λ)."""

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop], threads: int = 1) -> None:
        super().__init__(model, constraints, threads)

    @staticmethod
    def _sizes(n: int, m: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (n, n), (n, m)

    def value(self, x: Arrays) -> tuple[Array, ...]:
        """Accelerations and forces."""
        q, S = self._coordinates.unit(x[0]), len(x[0])
        if S == 1:
            with self._lent(ConstrainedDynamics, self.model, self._constraints) as dynamics:
                one = dynamics.solve(q[0], x[1][0], x[2][0])
            self._check([one.status])
            return one.acceleration[None], one.forces[None]
        with self._lent(_batch_dynamics, self.model, self._constraints, S, self.threads) as batch:
            r = batch.solve(q, x[1], x[2])
        self._check(r.status)
        return r.acceleration, r.forces

    @staticmethod
    def _check(statuses: Sequence[str]) -> None:
        for k, status in enumerate(statuses):
            if status not in _SOLVED:
                where = f"state {k}: " if len(statuses) > 1 else ""
                raise InaccurateError(
                    f"constrained_dynamics: {where}it ended with {status!r}, so there is nothing to differentiate. "
                    "Look at dl.constrained_dynamics(...).advice in this state."
                )

    def _states(self, x: Arrays) -> Iterator[tuple[int, LinearizedDynamics]]:
        """Iterate over the states, linearized."""
        q = self._coordinates.unit(x[0])
        with self._lent(LinearizedDynamics, self.model, self._constraints) as linearized:
            for k in range(len(q)):
                linearized.update(q[k], x[1][k], x[2][k])
                yield k, linearized

    def jvp(self, x: Arrays, dx: Arrays) -> tuple[Array, ...]:
        """One sweep and one solution per state, several directions at a time."""
        directions = (self._coordinates.velocity(x[0], dx[0]), dx[1], dx[2])
        out = [np.empty((*dx[0].shape[:2], m)) for m in self.outputs]
        for k, L in self._states(x):
            for y, found in zip(out, L.jvp(*(d[k].T for d in directions)), strict=True):
                y[k] = found.T
        return tuple(out)

    def vjp(self, x: Arrays, y_bar: Arrays) -> tuple[Array, ...]:
        """Apply the transposed operations in reverse order."""
        out = [np.empty((*y_bar[0].shape[:2], self.model.nv)) for _ in self.inputs]
        for k, L in self._states(x):
            for y, found in zip(out, L.vjp(*(d[k].T for d in y_bar)), strict=True):
                y[k] = found.T
        return self._coordinates.adjoint(x[0], out[0]), out[1], out[2]

    def jacobian(self, x: Arrays) -> tuple[Array, ...]:
        """Return derivatives of accelerations with respect to q, v and τ, then of forces."""
        names = ("acceleration_q", "acceleration_v", "acceleration_tau", "forces_q", "forces_v", "forces_tau")
        out = [np.empty((len(x[0]), rows, self.model.nv)) for rows in self.outputs for _ in range(3)]
        for k, L in self._states(x):
            d = L.derivatives()
            for y, name in zip(out, names, strict=True):
                y[k] = getattr(d, name)
        T = self._coordinates.matrix(x[0])
        return out[0] @ T, out[1], out[2], out[3] @ T, out[4], out[5]


class _OfOperator(_WithRows):
    """Base of products with G and with its inverse."""

    _damped: bool

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop], threads: int = 1) -> None:
        super().__init__(model, constraints, threads)

    def value(self, x: Arrays) -> tuple[Array, ...]:
        """G x, or (G + ε)⁻¹ y."""
        q, S = self._coordinates.unit(x[0]), len(x[0])
        lent = self._lent(DelassusOperator, self.model, self._constraints)
        if S == 1:
            q, x = q[0], [a[0] for a in x]
        else:
            lent = self._lent(_batch_operator, self.model, self._constraints, S, self.threads)
        with lent as G:
            G.update(q)
            if self._damped:
                G.damping = x[2]
            y = G.solve(x[1]) if self._damped else G.matvec(x[1])
        return (np.asarray(y).reshape(S, self._m),)

    def _states(self, x: Arrays) -> Iterator[tuple[int, OperatorDerivatives]]:
        """Iterate over the states, with first-order operators."""
        q = self._coordinates.unit(x[0])
        with self._lent(OperatorDerivatives, self.model, self._constraints) as d:
            for k in range(len(q)):
                d.update(q[k], x[2][k] if self._damped else None)
                yield k, d

    def jvp(self, x: Arrays, dx: Arrays) -> tuple[Array, ...]:
        """Along q and the other arguments."""
        directions, out = [self._coordinates.velocity(x[0], dx[0]), *dx[1:]], np.empty((*dx[0].shape[:2], self._m))
        for k, d in self._states(x):
            out[k] = (d.solve_jvp if self._damped else d.apply_jvp)(x[1][k], *(a[k].T for a in directions)).T
        return (out,)

    def vjp(self, x: Arrays, y_bar: Arrays) -> tuple[Array, ...]:
        """Differentiate with respect to q and the other arguments."""
        out = [np.empty((*y_bar[0].shape[:2], n)) for n in (self.model.nv, *self.inputs[1:])]
        for k, d in self._states(x):
            for y, found in zip(out, (d.solve_vjp if self._damped else d.apply_vjp)(x[1][k], y_bar[0][k].T), strict=True):
                y[k] = found.T
        return self._coordinates.adjoint(x[0], out[0]), *out[1:]


class OperatorFunction(_OfOperator):
    """(q, x) → G(q) x."""

    _damped = False

    @staticmethod
    def _sizes(n: int, m: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (m,), (m,)


class InverseOperatorFunction(_OfOperator):
    """(q, y, ε) → (G(q) + ε)⁻¹ y, ε one number per row."""

    _damped = True

    @staticmethod
    def _sizes(n: int, m: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (m, m), (m,)

    def value(self, x: Arrays) -> tuple[Array, ...]:
        """(G + ε)⁻¹ y."""
        if not (x[2] > 0).all():
            raise ArgumentError(f"damping: expected positive numbers, got {float(x[2].min(initial=np.inf)):g}.")
        return super().value(x)


class ContactFunction(Function):
    """Contact forces: (G, g, µ) → λ of ``solve_contacts``, G as m² numbers, of which the symmetric part counts; three rows per contact."""

    def __init__(self, contacts: int, tolerance: float = 1e-11) -> None:
        m = 3 * contacts
        super().__init__((m * m, m, contacts), (m,))
        self._m, self._tolerance = m, tolerance

    def _matrix(self, G: Array) -> Array:
        square = G.reshape(self._m, self._m)
        return np.asarray((square + square.T) / 2)

    def _solve(self, x: Arrays, k: int) -> tuple[Array, Any]:
        G = self._matrix(x[0][k])
        r = solve_contacts(G, x[1][k], x[2][k], tolerance=self._tolerance)
        if r.status != "solved":
            raise InaccurateError(f"solve_contacts: it ended with {r.status!r}, so there is nothing to differentiate. {r.advice}")
        return G, r

    def value(self, x: Arrays) -> tuple[Array, ...]:
        """Return λ."""
        return (np.stack([self._solve(x, k)[1].forces for k in range(len(x[1]))]),)

    def _states(self, x: Arrays) -> Iterator[tuple[int, Array, ContactDerivatives]]:
        """Iterate over the problems: forces and derivatives of each."""
        for k in range(len(x[1])):
            G, r = self._solve(x, k)
            yield k, r.forces, ContactDerivatives(G, r, x[2][k])

    def jvp(self, x: Arrays, dx: Arrays) -> tuple[Array, ...]:
        """Along G, g and friction."""
        out = np.empty((*dx[1].shape[:2], self._m))
        for k, forces, d in self._states(x):
            for c in range(out.shape[1]):
                out[k, c] = d.jvp(self._matrix(dx[0][k, c]) @ forces, dx[1][k, c], dx[2][k, c]).forces
        return (out,)

    def vjp(self, x: Arrays, y_bar: Arrays) -> tuple[Array, ...]:
        """Differentiate with respect to G, the symmetric part of g_bar λᵀ, g and friction."""
        out = [np.empty((*y_bar[0].shape[:2], n)) for n in self.inputs]
        for k, forces, d in self._states(x):
            for c in range(out[0].shape[1]):
                by = d.vjp(y_bar[0][k, c])
                out[0][k, c] = self._matrix(np.outer(by.g, forces)).ravel()
                out[1][k, c], out[2][k, c] = by.g, by.friction
        return tuple(out)


# One lock per simulator, shared by all functions that use it.
_LOCKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()


class _OfSimulator(Function):
    """A function that a simulator computes from a given state. The simulator is left as it was; one thread at a time uses it.

    Time, actuator activations and mocap poses are the simulator's own at the time of the call; there is no warm start of contacts.
    """

    def __init__(self, sim: Any, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        model = sim.model
        super().__init__((model.nq, model.nv, *inputs), outputs)
        self._sim, self._coordinates = sim, _Coordinates(model)
        with _LOCKS_LOCK:
            self._lock = _LOCKS.setdefault(sim, threading.RLock())

    @contextmanager
    def _borrowed(self) -> Iterator[Callable[[Array, Array], None]]:
        """Yield a function that sets the simulator's state; afterwards the simulator is as it was."""
        sim = self._sim
        with self._lock:
            before = sim.save()
            start, activation, poses = sim.time, sim.activation, list(zip(*sim.mocap_poses, strict=True))

            def put(q: Array, v: Array) -> None:
                sim.reset(q, v, start)
                sim.activation = activation
                for k, (position, quaternion) in enumerate(poses):
                    sim.set_mocap(k, position, quaternion, at_once=True)

            try:
                yield put
            finally:
                sim.restore(before)


class StepFunction(_OfSimulator):
    """A step of a simulator: (q, v, control, τ) → (q⁺, v⁺)."""

    def __init__(self, sim: Any) -> None:
        model = sim.model
        super().__init__(sim, (model.nu, model.nv), (model.nq, model.nv))

    def value(self, x: Arrays) -> tuple[Array, ...]:
        """State after the step."""
        sim, q = self._sim, self._coordinates.unit(x[0])
        out = np.empty((len(q), self.outputs[0])), np.empty((len(q), self.outputs[1]))
        with self._borrowed() as put:
            for k in range(len(q)):
                put(q[k], x[1][k])
                sim.step(x[3][k], control=x[2][k])
                out[0][k], out[1][k] = sim.q, sim.v
        return out

    def _states(self, x: Arrays) -> Iterator[tuple[int, Any]]:
        """Iterate over the states: the linearized step from each."""
        q = self._coordinates.unit(x[0])
        with self._borrowed() as put:
            for k in range(len(q)):
                put(q[k], x[1][k])
                yield k, self._sim.linearize(x[3][k], control=x[2][k])

    def jvp(self, x: Arrays, dx: Arrays) -> tuple[Array, ...]:
        """Along q, v, control and τ."""
        along = (self._coordinates.velocity(x[0], dx[0]), *dx[1:])
        out = [np.empty((*dx[0].shape[:2], m)) for m in self.outputs]
        for k, step in self._states(x):
            tangent = step.jvp(*(d[k].T for d in along))
            out[0][k], out[1][k] = self._coordinates.rate(step.q[None], tangent.q.T[None])[0], tangent.v.T
        return tuple(out)

    def vjp(self, x: Arrays, y_bar: Arrays) -> tuple[Array, ...]:
        """Differentiate with respect to q, v, control and τ."""
        out = [np.empty((*y_bar[0].shape[:2], n)) for n in (self.outputs[1], *self.inputs[1:])]
        for k, step in self._states(x):
            by = step.vjp(self._coordinates.rate_adjoint(step.q[None], y_bar[0][k][None])[0].T, y_bar[1][k].T)
            out[0][k], out[1][k], out[2][k], out[3][k] = by.q.T, by.v.T, by.control.T, by.tau.T
        return self._coordinates.adjoint(x[0], out[0]), *out[1:]


class RolloutFunction(_OfSimulator):
    """Several steps of a simulator: (q, v, controls of every step) → states after every step (steps × nq, steps × nv)."""

    def __init__(self, sim: Any, steps: int) -> None:
        model = sim.model
        super().__init__(sim, (steps * model.nu,), (steps * model.nq, steps * model.nv))
        self.steps = steps
        # reverse mode keeps the start of every step, in long motions of every √steps-th
        self._every = 1 if steps <= 256 else math.isqrt(steps)

    def value(self, x: Arrays) -> tuple[Array, ...]:
        """States after every step."""
        sim, q, S = self._sim, self._coordinates.unit(x[0]), len(x[0])
        out = np.empty((S, self.steps, sim.model.nq)), np.empty((S, self.steps, sim.model.nv))
        with self._borrowed() as put:
            for k, controls in enumerate(x[2].reshape(S, self.steps, sim.model.nu)):
                put(q[k], x[1][k])
                for t in range(self.steps):
                    sim.step(control=controls[t])
                    out[0][k, t], out[1][k, t] = sim.q, sim.v
        return out[0].reshape(S, -1), out[1].reshape(S, -1)

    def jvp(self, x: Arrays, dx: Arrays) -> tuple[Array, ...]:
        """Along the initial state and all controls, during the rollout."""
        sim, place = self._sim, self._coordinates
        (S, C), T, nu = dx[0].shape[:2], self.steps, self._sim.model.nu
        q, dq, dv = place.unit(x[0]), place.velocity(x[0], dx[0]), dx[1]
        along = dx[2].reshape(S, C, T, nu)
        out = np.empty((S, C, T, sim.model.nq)), np.empty((S, C, T, sim.model.nv))
        with self._borrowed() as put:
            for k, controls in enumerate(x[2].reshape(S, T, nu)):
                put(q[k], x[1][k])
                moved = dq[k].T, dv[k].T
                for t in range(T):
                    step = sim.linearize(control=controls[t], advance=True)
                    moved = step.jvp(*moved, along[k, :, t].T)
                    out[0][k, :, t], out[1][k, :, t] = place.rate(step.q[None], moved[0].T[None])[0], moved[1].T
        return out[0].reshape(S, C, -1), out[1].reshape(S, C, -1)

    def vjp(self, x: Arrays, y_bar: Arrays) -> tuple[Array, ...]:
        """Differentiate with respect to the initial state and all controls, backwards with checkpoints."""
        sim, place = self._sim, self._coordinates
        (S, C), T, model = y_bar[0].shape[:2], self.steps, self._sim.model
        q, by_controls = place.unit(x[0]), np.empty((S, C, T, model.nu))
        by_state = np.zeros((S, C, model.nv)), np.zeros((S, C, model.nv))
        q_bar, v_bar = y_bar[0].reshape(S, C, T, model.nq), y_bar[1].reshape(S, C, T, model.nv)
        with self._borrowed() as put:
            for k, controls in enumerate(x[2].reshape(S, T, model.nu)):
                put(q[k], x[1][k])
                kept = []
                for t in range(T):
                    if t % self._every == 0:
                        kept.append(sim.save())
                    sim.step(control=controls[t])
                by_q, by_v = by_state[0][k], by_state[1][k]
                for first in reversed(range(0, T, self._every)):
                    # recompute the starts of these steps
                    sim.restore(kept.pop())
                    starts = [sim.save()]
                    for t in range(first, min(first + self._every, T) - 1):
                        sim.step(control=controls[t])
                        starts.append(sim.save())
                    for t in reversed(range(first, first + len(starts))):
                        sim.restore(starts.pop())
                        step = sim.linearize(control=controls[t])
                        by_q, by_v = by_q + place.rate_adjoint(step.q[None], q_bar[k, :, t][None])[0], by_v + v_bar[k, :, t]
                        by = step.vjp(by_q.T, by_v.T)
                        by_q, by_v, by_controls[k, :, t] = by.q.T, by.v.T, by.control.T
                by_state[0][k], by_state[1][k] = by_q, by_v
        return place.adjoint(x[0], by_state[0]), by_state[1], by_controls.reshape(S, C, -1)
