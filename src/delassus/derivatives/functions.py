"""Functions with their derivatives, on plain arrays and in the coordinates of q: what the packages for JAX and PyTorch stand on.

Every function takes float64 arrays and knows ``value(*x)``, ``jvp(x, dx)``, ``vjp(x, y_bar)`` and ``jacobian(x)``. Arguments that are configurations have nq numbers, and so do their
directions and adjoints: a quaternion is normalized first, so a function does not change along its length.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraints import Constraint, collect
from ..dynamics import forward_dynamics, inverse_dynamics
from ..errors import ArgumentError
from ..model import Loop, Model
from ..model.model import as_model
from ..operators import DelassusOperator
from ..state import normalize
from .dynamics import forward_dynamics_derivatives, inverse_dynamics_derivatives
from .linearized import LinearizedDynamics, OperatorDerivatives

__all__ = ["ConstrainedFunction", "Function", "InverseOperatorFunction", "OperatorFunction", "TreeFunction"]

Array = NDArray[np.float64]


class _Coordinates:
    """From rates of q (nq,) to velocities (nv,), and back for adjoints: ω = 2 Im(q̄ ∘ q̇) / ‖q‖² of quaternions, the numbers themselves of all else."""

    def __init__(self, model: Model) -> None:
        plain, turned = [], []
        for kind, at, first in zip(model.joint_type, model.joint_qadr, model.joint_vadr, strict=True):
            same = {"hinge": 1, "slide": 1, "free": 3, "ball": 0}[kind]
            plain += [(at + k, first + k) for k in range(same)]
            if kind in ("free", "ball"):
                turned.append((at + same, first + same))
        self._nq, self._nv = model.nq, model.nv
        self._from, self._to = np.array(plain, dtype=int).reshape(-1, 2).T
        self._turned = turned

    @staticmethod
    def _imaginary(c: Array) -> Array:
        """(3, 4) matrix that takes the rate of a quaternion to its angular velocity, body axes."""
        w, x, y, z = c
        return np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]]) * (2 / (c @ c))

    def velocity(self, q: Array, dq: Array) -> Array:
        v = np.zeros(self._nv)
        v[self._to] = dq[self._from]
        for at, to in self._turned:
            v[to : to + 3] = self._imaginary(q[at : at + 4]) @ dq[at : at + 4]
        return v

    def adjoint(self, q: Array, v_bar: Array) -> Array:
        q_bar = np.zeros(self._nq)
        q_bar[self._from] = v_bar[self._to]
        for at, to in self._turned:
            q_bar[at : at + 4] = self._imaginary(q[at : at + 4]).T @ v_bar[to : to + 3]
        return q_bar

    def matrix(self, q: Array) -> Array:
        """(nv, nq), the map of ``velocity``."""
        T = np.zeros((self._nv, self._nq))
        T[self._to, self._from] = 1.0
        for at, to in self._turned:
            T[to : to + 3, at : at + 4] = self._imaginary(q[at : at + 4])
        return T


class Function:
    """A function of a configuration and of more arrays. Several threads may call it at once."""

    def __init__(self, model: Model, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self.model = as_model(model)
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)  # lengths of arguments and of results
        self._coordinates = _Coordinates(self.model)
        self._of_thread = threading.local()

    def _mine(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what this thread works with."""
        if not hasattr(self._of_thread, name):
            setattr(self._of_thread, name, make())
        return getattr(self._of_thread, name)

    def _placed(self, q: Array) -> Array:
        return normalize(self.model, q)

    def value(self, *x: Array) -> tuple[Array, ...]:
        """Results, in order."""
        raise NotImplementedError

    def jvp(self, x: Sequence[Array], dx: Sequence[Array]) -> tuple[Array, ...]:
        """Change of the results along a direction of the arguments."""
        raise NotImplementedError

    def vjp(self, x: Sequence[Array], y_bar: Sequence[Array]) -> tuple[Array, ...]:
        """Differentiate Σ y_bar · y by the arguments."""
        raise NotImplementedError

    def jacobian(self, x: Sequence[Array]) -> tuple[Array, ...]:
        """Return derivatives as matrices: of the first result by every argument, then of the next."""
        raise NotImplementedError


class TreeFunction(Function):
    """Inverse or forward dynamics of the tree: (q, v, ν̇) → τ or (q, v, τ) → ν̇."""

    def __init__(self, model: Model, inverse: bool) -> None:
        n = as_model(model).nv
        super().__init__(model, (model.nq, n, n), (n,))
        self._inverse = inverse

    def value(self, *x: Array) -> tuple[Array, ...]:
        """τ or ν̇."""
        q, v, given = x
        return ((inverse_dynamics if self._inverse else forward_dynamics)(self.model, self._placed(q), v, given),)

    def _matrices(self, x: Sequence[Array]) -> tuple[Array, Array, Array]:
        q, v, given = x
        if self._inverse:
            d = inverse_dynamics_derivatives(self.model, self._placed(q), v, given)
            return d.tau_q, d.tau_v, d.tau_a
        f = forward_dynamics_derivatives(self.model, self._placed(q), v, given)
        return f.acceleration_q, f.acceleration_v, f.acceleration_tau

    def jvp(self, x: Sequence[Array], dx: Sequence[Array]) -> tuple[Array, ...]:
        """Products with the matrices of derivatives."""
        by_q, by_v, by_given = self._matrices(x)
        return (by_q @ self._coordinates.velocity(x[0], dx[0]) + by_v @ dx[1] + by_given @ dx[2],)

    def vjp(self, x: Sequence[Array], y_bar: Sequence[Array]) -> tuple[Array, ...]:
        """Products with their transposes."""
        by_q, by_v, by_given = (m.T @ y_bar[0] for m in self._matrices(x))
        return self._coordinates.adjoint(x[0], by_q), by_v, by_given

    def jacobian(self, x: Sequence[Array]) -> tuple[Array, ...]:
        """By q, v and what is given."""
        by_q, by_v, by_given = self._matrices(x)
        return by_q @ self._coordinates.matrix(x[0]), by_v, by_given


class ConstrainedFunction(Function):
    """Constrained dynamics: (q, v, τ) → (ν̇, λ)."""

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop]) -> None:
        n = as_model(model).nv
        self._constraints = tuple(collect(model, constraints))
        super().__init__(model, (model.nq, n, n), (n, sum(c.rows for c in self._constraints)))

    def _at(self, x: Sequence[Array]) -> LinearizedDynamics:
        linearized: LinearizedDynamics = self._mine("linearized", lambda: LinearizedDynamics(self.model, self._constraints))
        linearized.update(self._placed(x[0]), x[1], x[2])
        return linearized

    def value(self, *x: Array) -> tuple[Array, ...]:
        """Accelerations and forces."""
        r = self._at(x).result
        return r.acceleration, r.forces

    def jvp(self, x: Sequence[Array], dx: Sequence[Array]) -> tuple[Array, ...]:
        """One sweep and one solution."""
        return tuple(self._at(x).jvp(self._coordinates.velocity(x[0], dx[0]), dx[1], dx[2]))

    def vjp(self, x: Sequence[Array], y_bar: Sequence[Array]) -> tuple[Array, ...]:
        """Go the same way backwards."""
        by = self._at(x).vjp(*y_bar)
        return self._coordinates.adjoint(x[0], by.q), by.v, by.tau

    def jacobian(self, x: Sequence[Array]) -> tuple[Array, ...]:
        """Of accelerations by q, v and τ, and of forces."""
        d, T = self._at(x).derivatives(), self._coordinates.matrix(x[0])
        return d.acceleration_q @ T, d.acceleration_v, d.acceleration_tau, d.forces_q @ T, d.forces_v, d.forces_tau


class _OfOperator(Function):
    """What products with G and with its inverse share."""

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop], more: int) -> None:
        self._constraints = tuple(collect(model, constraints))
        m = sum(c.rows for c in self._constraints)
        super().__init__(model, (model.nq, *(m,) * more), (m,))

    def _derivatives(self, q: Array, damping: Array | None) -> OperatorDerivatives:
        d: OperatorDerivatives = self._mine("derivatives", lambda: OperatorDerivatives(self.model, self._constraints))
        d.update(self._placed(q), damping)
        return d

    def _operator(self, q: Array) -> DelassusOperator:
        G: DelassusOperator = self._mine("operator", lambda: DelassusOperator(self.model, self._constraints))
        G.update(self._placed(q))
        return G


class OperatorFunction(_OfOperator):
    """(q, x) → G(q) x."""

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop]) -> None:
        super().__init__(model, constraints, 1)

    def value(self, *x: Array) -> tuple[Array, ...]:
        """G x."""
        return (self._operator(x[0]) @ x[1],)

    def jvp(self, x: Sequence[Array], dx: Sequence[Array]) -> tuple[Array, ...]:
        """d(G) x + G dx."""
        return (self._derivatives(x[0], None).apply_jvp(x[1], self._coordinates.velocity(x[0], dx[0]), dx[1]),)

    def vjp(self, x: Sequence[Array], y_bar: Sequence[Array]) -> tuple[Array, ...]:
        """By q and x."""
        by_q, by_x = self._derivatives(x[0], None).apply_vjp(x[1], y_bar[0])
        return self._coordinates.adjoint(x[0], by_q), by_x

    def jacobian(self, x: Sequence[Array]) -> tuple[Array, ...]:
        """d(G) x by q, and G."""
        d = self._derivatives(x[0], None)
        return d.apply_jvp(x[1], dq=self._coordinates.matrix(x[0])), d.apply_jvp(x[1], dx=np.eye(x[1].size))


class InverseOperatorFunction(_OfOperator):
    """(q, y, ε) → (G(q) + ε)⁻¹ y, ε a number per row."""

    def __init__(self, model: Model, constraints: Sequence[Constraint | Loop]) -> None:
        super().__init__(model, constraints, 2)

    def value(self, *x: Array) -> tuple[Array, ...]:
        """(G + ε)⁻¹ y."""
        if not (x[2] > 0).all():
            raise ArgumentError(f"damping: expected positive numbers, got {float(x[2].min(initial=np.inf)):g}.")
        G = self._operator(x[0])
        G.damping = x[2]
        return (G.solve(x[1]),)

    def jvp(self, x: Sequence[Array], dx: Sequence[Array]) -> tuple[Array, ...]:
        """Along q, y and ε."""
        return (self._derivatives(x[0], x[2]).solve_jvp(x[1], self._coordinates.velocity(x[0], dx[0]), dx[1], dx[2]),)

    def vjp(self, x: Sequence[Array], y_bar: Sequence[Array]) -> tuple[Array, ...]:
        """By q, y and ε."""
        by_q, by_y, by_damping = self._derivatives(x[0], x[2]).solve_vjp(x[1], y_bar[0])
        return self._coordinates.adjoint(x[0], by_q), by_y, by_damping

    def jacobian(self, x: Sequence[Array]) -> tuple[Array, ...]:
        """By q, y and ε."""
        d, one = self._derivatives(x[0], x[2]), np.eye(x[1].size)
        return tuple(d.solve_jvp(x[1], **{k: a}) for k, a in (("dq", self._coordinates.matrix(x[0])), ("dy", one), ("ddamping", one)))
