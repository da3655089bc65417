"""Differentiable functions for CasADi: the native library inside ``MX`` expressions, for optimal control. Needs the extra ``symbolic``.

    import casadi, delassus as dl, delassus.casadi as dc
    model = dl.load("iiwa")
    opti = casadi.Opti()
    q, v, tau = opti.variable(7), opti.variable(7), opti.variable(7)
    opti.subject_to(dc.forward_dynamics(model, q, v, tau) == 0)

Jacobians, forward and reverse derivatives of first order are analytic; Jacobians of inverse dynamics have the sparsity of the tree's branches. Second derivatives are not supported: give IPOPT
``{"ipopt.hessian_approximation": "limited-memory"}``. A configuration's quaternions are normalized first. Arguments with k columns are k states, one after the other. For expressions in ``SX``
use :mod:`delassus.textbook`.

CasADi keeps no references to Python objects, so a function made for a model and its constraints is kept until the process ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .constraints import Constraint
from .derivatives.functions import (
    ConstrainedFunction,
    ContactFunction,
    Function,
    InverseOperatorFunction,
    OperatorFunction,
    StepFunction,
    TreeFunction,
    made,
    made_with_rows,
)
from .errors import ArgumentError, ArgumentTypeError, MissingExtraError
from .model import Loop, Model
from .simulator import Simulator

try:
    import casadi
except ImportError as error:
    raise MissingExtraError("delassus.casadi: CasADi is not installed. Use pip install 'delassus[symbolic]'.") from error

__all__ = ["constrained_dynamics", "delassus_apply", "delassus_solve", "forward_dynamics", "inverse_dynamics", "solve_contacts", "step"]


class _Call(casadi.Callback):  # type: ignore[misc]
    """A function of dense columns, computed in Python.

    Args:
        name: name in CasADi's graphs.
        inputs, outputs: names and sparsities of arguments and results.
    """

    def __init__(self, name: str, inputs: Sequence[tuple[str, Any]], outputs: Sequence[tuple[str, Any]]) -> None:
        casadi.Callback.__init__(self)
        self._inputs, self._outputs = list(inputs), list(outputs)
        self._derived: list[_Call] = []
        self.construct(name, {})

    def get_n_in(self) -> int:
        """Count the arguments."""
        return len(self._inputs)

    def get_n_out(self) -> int:
        """Count the results."""
        return len(self._outputs)

    def get_name_in(self, i: int) -> str:
        """Name of an argument."""
        return self._inputs[i][0]

    def get_name_out(self, i: int) -> str:
        """Name of a result."""
        return self._outputs[i][0]

    def get_sparsity_in(self, i: int) -> Any:
        """Shape of an argument."""
        return self._inputs[i][1]

    def get_sparsity_out(self, i: int) -> Any:
        """Shape and non-zero entries of a result."""
        return self._outputs[i][1]

    def has_eval_buffer(self) -> bool:
        """Tell CasADi to pass arguments as memory, without a copy."""
        return True

    def eval_buffer(self, arguments: Sequence[Any], results: Sequence[Any]) -> int:
        """Fill the results; None means zero for an argument and not needed for a result."""
        given = [
            np.zeros(s.nnz()) if a is None else np.frombuffer(a, dtype=np.float64)
            for a, (_, s) in zip(arguments, self._inputs, strict=True)
        ]
        for found, memory in zip(self._compute(given), results, strict=True):
            if memory is not None:
                np.frombuffer(memory, dtype=np.float64)[:] = found
        return 0

    def _compute(self, given: list[NDArray[np.float64]]) -> Sequence[NDArray[np.float64]]:
        """Nonzeros of the results, column by column."""
        raise NotImplementedError


def _columns(names: Sequence[str], lengths: Sequence[int], width: int = 1) -> list[tuple[str, Any]]:
    return [(name, casadi.Sparsity.dense(n, width)) for name, n in zip(names, lengths, strict=True)]


class _Value(_Call):
    """A function itself."""

    def __init__(self, name: str, f: Function, arguments: Sequence[str], results: Sequence[str]) -> None:
        self._f = f
        self._sparsities = [_sparsity(mask) for mask in f.patterns()]
        super().__init__(name, _columns(arguments, f.inputs), _columns(results, f.outputs))

    def _compute(self, given: list[NDArray[np.float64]]) -> Sequence[NDArray[np.float64]]:
        return [y[0] for y in self._f.value([x[None] for x in given])]

    def _with_results(self) -> list[tuple[str, Any]]:
        """List the inputs of a derivative: the arguments and results at which it is taken."""
        return [*self._inputs, *((f"out_{name}", sparsity) for name, sparsity in self._outputs)]

    def has_jacobian(self) -> bool:
        """Tell CasADi that Jacobians are available."""
        return not isinstance(self._f, ContactFunction)  # with respect to G it would have m² columns

    def get_jacobian(self, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any) -> Any:
        """Matrices of the first result with respect to every argument, then of the next."""
        self._derived.append(_Jacobian(name, self._f, self._with_results(), list(zip(onames, self._sparsities, strict=True))))
        return self._derived[-1]

    def has_jac_sparsity(self, oind: int, iind: int) -> bool:
        """Tell CasADi that the sparsity pattern is known."""
        return True

    def get_jac_sparsity(self, oind: int, iind: int, symmetric: bool) -> Any:
        """Sparsity pattern of a Jacobian."""
        return self._sparsities[oind * len(self._inputs) + iind]

    def has_forward(self, nfwd: int) -> bool:
        """Products with derivatives."""
        return True

    def get_forward(self, nfwd: int, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any) -> Any:
        """Products with derivatives, for ``nfwd`` directions."""
        return self._product(name, nfwd, inames, onames, False)

    def has_reverse(self, nadj: int) -> bool:
        """Tell CasADi that products with transposed derivatives are available."""
        return True

    def get_reverse(self, nadj: int, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any) -> Any:
        """Products with transposed derivatives, for ``nadj`` weights."""
        return self._product(name, nadj, inames, onames, True)

    def _product(self, name: str, width: int, inames: Sequence[str], onames: Sequence[str], transposed: bool) -> Any:
        f, at = self._f, self._with_results()
        along, results = (f.outputs, f.inputs) if transposed else (f.inputs, f.outputs)
        directions = _columns(inames[len(at) :], along, width)
        self._derived.append(_Product(name, f, [*at, *directions], _columns(onames, results, width), width, transposed))
        return self._derived[-1]


class _Jacobian(_Call):
    """Derivatives of a function as sparse matrices."""

    def __init__(self, name: str, f: Function, inputs: Sequence[tuple[str, Any]], outputs: Sequence[tuple[str, Any]]) -> None:
        self._f = f
        # rows and columns of the entries, column by column
        self._entries = [(np.array(s.row(), dtype=int), np.array(s.get_col(), dtype=int)) for _, s in outputs]
        super().__init__(name, inputs, outputs)

    def _compute(self, given: list[NDArray[np.float64]]) -> Sequence[NDArray[np.float64]]:
        matrices = self._f.jacobian([x[None] for x in given[: len(self._f.inputs)]])
        return [m[0][at] for m, at in zip(matrices, self._entries, strict=True)]


class _Product(_Call):
    """Products with derivatives, or with their transposes."""

    def __init__(
        self, name: str, f: Function, inputs: Sequence[tuple[str, Any]], outputs: Sequence[tuple[str, Any]], width: int, transposed: bool
    ) -> None:
        self._f, self._width, self._multiply = f, width, f.vjp if transposed else f.jvp
        super().__init__(name, inputs, outputs)

    def _compute(self, given: list[NDArray[np.float64]]) -> Sequence[NDArray[np.float64]]:
        f = self._f
        directions = given[len(f.inputs) + len(f.outputs) :]
        # column-major memory: a row of the array per direction
        found = self._multiply([x[None] for x in given[: len(f.inputs)]], [d.reshape(1, self._width, -1) for d in directions])
        return [y.ravel() for y in found]


def _sparsity(mask: NDArray[np.bool_]) -> Any:
    """CasADi's sparsity pattern of a matrix."""
    rows, columns = np.nonzero(mask)
    return casadi.Sparsity.triplet(mask.shape[0], mask.shape[1], rows.tolist(), columns.tolist())


# Names of arguments and of results.
_NAMES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "inverse_dynamics": (("q", "v", "acceleration"), ("tau",)),
    "forward_dynamics": (("q", "v", "tau"), ("acceleration",)),
    "constrained_dynamics": (("q", "v", "tau"), ("acceleration", "forces")),
    "delassus_apply": (("q", "x"), ("y",)),
    "delassus_solve": (("q", "y", "damping"), ("x",)),
    "solve_contacts": (("G", "g", "friction"), ("forces",)),
    "step": (("q", "v", "control", "tau"), ("q_after", "v_after")),
}


# Kept forever: CasADi's expressions do not keep these alive.
@cache
def _value(name: str, f: Function) -> _Value:
    return _Value(name, f, *_NAMES[name])


def _matrix(x: Any, name: str) -> Any:
    """Return an ``MX`` or ``DM``."""
    if isinstance(x, casadi.SX):
        raise ArgumentTypeError(
            f"{name}: expected MX, DM or numbers, got SX, which cannot contain native functions. Use MX, or delassus.textbook for SX."
        )
    return x if isinstance(x, (casadi.MX, casadi.DM)) else casadi.DM(np.asarray(x, dtype=np.float64))


def _called(name: str, f: Function, *given: Any) -> list[Any]:
    """Call a function on columns of the right lengths; several columns are several states."""
    names, _ = _NAMES[name]
    arrays = [_matrix(x, argument) for argument, x in zip(names, given, strict=True)]
    width = max(x.shape[1] for x in arrays)
    for argument, x, n in zip(names, arrays, f.inputs, strict=True):
        if x.shape[0] != n or x.shape[1] not in (1, width):
            wanted = f"({n}, 1)" if width == 1 else f"({n}, 1) or ({n}, {width})"
            raise ArgumentError(f"{argument}: expected shape {wanted}, got {tuple(x.shape)}.")
    return list(_value(name, f).call([x if x.shape[1] == width else casadi.repmat(x, 1, width) for x in arrays]))


def inverse_dynamics(model: Model, q: Any, v: Any, acceleration: Any) -> Any:
    """Joint forces τ (nv, 1) of :func:`delassus.inverse_dynamics`, differentiable with respect to q (nq, 1), v (nv, 1) and ν̇ (nv, 1)."""
    return _called("inverse_dynamics", made(TreeFunction, model, True), q, v, acceleration)[0]


def forward_dynamics(model: Model, q: Any, v: Any, tau: Any) -> Any:
    """Accelerations ν̇ (nv, 1) of :func:`delassus.forward_dynamics`, differentiable with respect to q (nq, 1), v (nv, 1) and τ (nv, 1)."""
    return _called("forward_dynamics", made(TreeFunction, model, False), q, v, tau)[0]


def constrained_dynamics(model: Model, q: Any, v: Any, tau: Any, constraints: Sequence[Constraint | Loop]) -> tuple[Any, Any]:
    """Accelerations ν̇ (nv, 1) and forces λ (m, 1) of :func:`delassus.constrained_dynamics`, differentiable with respect to q, v and τ.

    The evaluation fails if the equations have no solution.
    """
    acceleration, forces = _called("constrained_dynamics", made_with_rows(ConstrainedFunction, model, constraints), q, v, tau)
    return acceleration, forces


def delassus_apply(model: Model, q: Any, x: Any, constraints: Sequence[Constraint | Loop]) -> Any:
    """G(q) x (m, 1), differentiable with respect to q (nq, 1) and x (m, 1)."""
    return _called("delassus_apply", made_with_rows(OperatorFunction, model, constraints), q, x)[0]


def delassus_solve(model: Model, q: Any, y: Any, damping: Any, constraints: Sequence[Constraint | Loop]) -> Any:
    """(G(q) + ε)⁻¹ y (m, 1), differentiable with respect to q (nq, 1), y (m, 1) and the damping ε, a scalar or (m, 1)."""
    f = made_with_rows(InverseOperatorFunction, model, constraints)
    damping = _matrix(damping, "damping")
    damping = casadi.repmat(damping, f.inputs[1], 1) if damping.shape[0] == 1 else damping
    return _called("delassus_solve", f, q, y, damping)[0]


def solve_contacts(G: Any, g: Any, friction: Any, *, tolerance: float = 1e-11) -> Any:
    """Contact forces λ (m, 1) of :func:`delassus.solve_contacts`, differentiable with respect to G (m, m), g (m, 1) and friction (m / 3, 1).

    Only the symmetric part of G is used, and its adjoint is symmetric. If a contact is about to change its mode the derivative is one-sided, see
    :class:`delassus.ContactDerivatives`. The evaluation fails if the problem is not solved to ``tolerance``.
    """
    G, friction = _matrix(G, "G"), _matrix(friction, "friction")
    m = 3 * friction.shape[0]
    if G.shape != (m, m):
        raise ArgumentError(f"G: expected shape ({m}, {m}), three rows per friction coefficient, got {tuple(G.shape)}.")
    return _called("solve_contacts", made(ContactFunction, friction.shape[0], float(tolerance)), casadi.vec(G), g, friction)[0]


def step(sim: Simulator, q: Any, v: Any, control: Any = None, tau: Any = None) -> tuple[Any, Any]:
    """State (q⁺, v⁺) after a step of a simulator from (q, v), differentiable with respect to q (nq, 1), v (nv, 1), control (nu, 1) and τ (nv, 1); the last two default to zero.

    The simulator is not changed, and starts without contact memory. Derivatives are those of :meth:`delassus.Simulator.linearize`; give it a small ``tolerance``, such as 1e-10, which
    limits their accuracy.
    """
    f = made(StepFunction, sim)
    given = (casadi.DM.zeros(n, 1) if x is None else x for x, n in zip((control, tau), f.inputs[2:], strict=True))
    after, velocity = _called("step", f, q, v, *given)
    return after, velocity
