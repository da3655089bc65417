"""Differentiable functions for JAX: derivatives in both modes, ``jit``, ``vmap``, float32 and float64. Needs the extra ``jax``.

    import delassus as dl, delassus.jax as dj, jax
    model = dl.load("go2")
    gradient = jax.grad(lambda tau: dj.forward_dynamics(model, q, v, tau).sum())(tau)

Functions are computed by the native library through a callback. Under ``vmap`` a callback gets all states together and uses the native batch if there is one. Derivatives
of first order are analytic, and products with them matrix-free where the library is, in both modes; several directions of one state, as in ``jax.jacrev``, share its factor.
Second derivatives are not supported. A configuration's quaternions are normalized first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .constraints import Constraint
from .derivatives.functions import (
    ConstrainedFunction,
    ContactFunction,
    Function,
    InverseOperatorFunction,
    OperatorFunction,
    RolloutFunction,
    StepFunction,
    TreeFunction,
    evaluate,
    made,
    made_with_rows,
    multiply,
)
from .errors import ArgumentError, MissingExtraError
from .model import Loop, Model
from .simulator import Simulator

try:
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ImportError as error:
    raise MissingExtraError("delassus.jax: JAX is not installed, or too old. Use pip install 'delassus[jax]'.") from error

__all__ = [
    "constrained_dynamics",
    "delassus_apply",
    "delassus_solve",
    "forward_dynamics",
    "inverse_dynamics",
    "rollout",
    "solve_contacts",
    "step",
]


@dataclass(frozen=True)
class _OnHost:
    """The computation of a callback, on float64 arrays with any leading axes; equal ones share compiled code.

    Attributes:
        f: the function.
        dtypes: dtypes of the results.
        transposed: None for the function itself, False for products with its Jacobian, True for products with the transpose.
    """

    f: Function
    dtypes: tuple[Any, ...]
    transposed: bool | None

    def __call__(self, *given: Any) -> tuple[np.ndarray, ...]:
        arrays, many = [np.asarray(x, np.float64) for x in given], len(self.f.inputs)
        found = evaluate(self.f, arrays) if self.transposed is None else multiply(self.f, arrays[:many], arrays[many:], self.transposed)
        return tuple(np.ascontiguousarray(y, dtype) for y, dtype in zip(found, self.dtypes, strict=True))


def _callback(f: Function, shapes: Sequence[tuple[int, ...]], arguments: Sequence[Any], transposed: bool | None = None) -> tuple[Any, ...]:
    """Call a function from traced code; mapping may add leading axes to arrays."""
    results = tuple(jax.ShapeDtypeStruct(shape, arguments[0].dtype) for shape in shapes)
    host = _OnHost(f, tuple(r.dtype for r in results), transposed)
    return tuple(jax.pure_callback(host, results, *arguments, vmap_method="expand_dims"))


# ---- products with derivatives: linear in the last arguments, transposed into each other ------------------------------------------
# JAX cannot define a linear function with its transpose that also supports vmap (``linear_call`` has no rule for it), so this is a primitive.

_product = Primitive("delassus_product")
_product.multiple_results = True


def _lengths(of: Function, transposed: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lengths of the directions, and of the results."""
    return (of.outputs, of.inputs) if transposed else (of.inputs, of.outputs)


def _shapes(*arguments: Any, of: Function, transposed: bool) -> list[Any]:
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in arguments))
    return [jax.core.ShapedArray((*batch, n), arguments[0].dtype) for n in _lengths(of, transposed)[1]]


def _product_callback(*arguments: Any, of: Function, transposed: bool) -> tuple[Any, ...]:
    return _callback(of, [a.shape for a in _shapes(*arguments, of=of, transposed=transposed)], arguments, transposed)


def _product_mapped(arguments: Sequence[Any], axes: Sequence[Any], of: Function, transposed: bool) -> tuple[list[Any], list[int]]:
    """Move the mapped axis to the front; unmapped arguments broadcast, so that one state is distinguished from many."""
    deepest = max(jnp.ndim(a) - (k is not None) for a, k in zip(arguments, axes, strict=True))

    def in_front(a: Any, axis: Any) -> Any:
        a = a[None] if axis is None else jnp.moveaxis(a, axis, 0)
        return a.reshape(a.shape[0], *(1,) * (deepest + 1 - a.ndim), *a.shape[1:])

    found = _product.bind(*(in_front(a, k) for a, k in zip(arguments, axes, strict=True)), of=of, transposed=transposed)
    return found, [0] * len(found)


def _product_transposed(y_bar: Sequence[Any], *arguments: Any, of: Function, transposed: bool) -> list[Any]:
    many = len(of.inputs)
    x, directions = arguments[:many], arguments[many:]
    found = _product.bind(*x, *(ad.instantiate_zeros(b) for b in y_bar), of=of, transposed=not transposed)
    # cotangents of directions shared by several states are summed
    wanted = [d.aval.shape if ad.is_undefined_primal(d) else None for d in directions]
    return [None] * many + [None if shape is None else _summed(b, shape) for b, shape in zip(found, wanted, strict=True)]


def _summed(x: Any, shape: tuple[int, ...]) -> Any:
    return x.sum([k for k, n in enumerate(shape) if n < x.shape[k]], keepdims=True)


def _product_differentiated(
    arguments: Sequence[Any], changes: Sequence[Any], of: Function, transposed: bool
) -> tuple[list[Any], list[Any]]:
    many = len(of.inputs)
    if not all(isinstance(d, ad.Zero) for d in changes[:many]):
        raise NotImplementedError("delassus.jax: second derivatives are not offered.")
    along = [ad.instantiate_zeros(d) for d in changes[many:]]
    return (
        _product.bind(*arguments, of=of, transposed=transposed),
        _product.bind(*arguments[:many], *along, of=of, transposed=transposed),
    )


_compiled = jax.jit(_product_callback, static_argnames=("of", "transposed"))
_product.def_impl(lambda *arguments, **options: list(_compiled(*arguments, **options)))
_product.def_abstract_eval(_shapes)
mlir.register_lowering(_product, mlir.lower_fun(_product_callback, multiple_results=True))
batching.primitive_batchers[_product] = _product_mapped
ad.primitive_transposes[_product] = _product_transposed
ad.primitive_jvps[_product] = _product_differentiated


@lru_cache(maxsize=256)
def _differentiable(f: Function) -> Any:
    """Wrap a function with its derivatives for JAX."""

    @jax.custom_jvp
    def function(*x: Any) -> tuple[Any, ...]:
        return _callback(f, [(n,) for n in f.outputs], x)

    @function.defjvp
    def _(x: tuple[Any, ...], dx: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return function(*x), tuple(_product.bind(*x, *dx, of=f, transposed=False))

    return function


def _typed(given: Sequence[Any]) -> list[Any]:
    """Arrays of one floating type."""
    arrays = [jnp.asarray(x) for x in given]
    dtype = jnp.result_type(*arrays)
    if not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.result_type(float)
    return [x.astype(dtype) for x in arrays]


def _arguments(f: Function, names: str, given: Sequence[Any]) -> list[Any]:
    """Arguments as arrays of one floating type and of the right lengths."""
    arrays = _typed(given)
    for name, x, n in zip(names.split(), arrays, f.inputs, strict=True):
        if x.shape != (n,):
            raise ArgumentError(f"{name}: expected shape ({n},), got {x.shape}. For many states use jax.vmap.")
    return arrays


def _called(f: Function, names: str, given: Sequence[Any]) -> Any:
    """Results of a function for arguments with these names."""
    return _differentiable(f)(*_arguments(f, names, given))


def inverse_dynamics(model: Model, q: Any, v: Any, acceleration: Any, *, threads: int = 1) -> Any:
    """Joint forces τ (nv,) of :func:`delassus.inverse_dynamics`, differentiable with respect to q (nq,), v (nv,) and ν̇ (nv,).

    Args:
        model: the mechanism.
        q, v, acceleration: configuration (nq,), velocity (nv,) and its rate (nv,).
        threads: number of threads for the states of a ``vmap``.
    """
    f = made(TreeFunction, model, True, threads)
    return _called(f, "q v acceleration", (q, v, acceleration))[0]


def forward_dynamics(model: Model, q: Any, v: Any, tau: Any, *, threads: int = 1) -> Any:
    """Accelerations ν̇ (nv,) of :func:`delassus.forward_dynamics`, differentiable with respect to q (nq,), v (nv,) and τ (nv,).

    Args:
        model: the mechanism.
        q, v, tau: configuration (nq,), velocity (nv,) and joint forces (nv,).
        threads: number of threads for the states of a ``vmap``.
    """
    f = made(TreeFunction, model, False, threads)
    return _called(f, "q v tau", (q, v, tau))[0]


def constrained_dynamics(
    model: Model, q: Any, v: Any, tau: Any, constraints: Sequence[Constraint | Loop], *, threads: int = 1
) -> tuple[Any, Any]:
    """Accelerations ν̇ (nv,) and forces λ (m,) of :func:`delassus.constrained_dynamics`, differentiable with respect to q, v and τ.

    Args:
        model: the mechanism.
        q, v, tau: configuration (nq,), velocity (nv,) and joint forces (nv,).
        constraints: constraints of this model, or its loops.
        threads: number of threads for the states of a ``vmap``.

    Raises:
        InaccurateError: raised in the callback if the equations have no solution.
    """
    f = made_with_rows(ConstrainedFunction, model, constraints, threads)
    acceleration, forces = _called(f, "q v tau", (q, v, tau))
    return acceleration, forces


def delassus_apply(model: Model, q: Any, x: Any, constraints: Sequence[Constraint | Loop], *, threads: int = 1) -> Any:
    """G(q) x (m,), differentiable with respect to q (nq,) and x (m,); ``threads`` share the states of a ``vmap``."""
    f = made_with_rows(OperatorFunction, model, constraints, threads)
    return _called(f, "q x", (q, x))[0]


def delassus_solve(model: Model, q: Any, y: Any, damping: Any, constraints: Sequence[Constraint | Loop], *, threads: int = 1) -> Any:
    """(G(q) + ε)⁻¹ y (m,), differentiable with respect to q (nq,), y (m,) and the damping ε, a scalar or (m,); ``threads`` share the states of a ``vmap``."""
    f = made_with_rows(InverseOperatorFunction, model, constraints, threads)
    damping = jnp.broadcast_to(jnp.asarray(damping), (f.inputs[1],)) if jnp.ndim(damping) == 0 else damping
    return _called(f, "q y damping", (q, y, damping))[0]


def solve_contacts(G: Any, g: Any, friction: Any, *, tolerance: float = 1e-11) -> Any:
    """Contact forces λ (m,) of :func:`delassus.solve_contacts`, differentiable with respect to G (m, m), g (m,) and friction (m / 3,).

    Only the symmetric part of G is used, and its adjoint is symmetric. If a contact is about to change its mode the derivative is one-sided, see
    :class:`delassus.ContactDerivatives`.

    Args:
        G: (m, m) Delassus matrix, three rows per contact, normal first.
        g: (m,) velocities without forces.
        friction: (m / 3,) coefficients µ.
        tolerance: tolerance of the solution, which limits the accuracy of derivatives.

    Raises:
        InaccurateError: raised in the callback if the problem was not solved to that tolerance.
    """
    G, g, friction = _typed((G, g, friction))
    contacts = friction.shape[0] if friction.ndim == 1 else -1
    if contacts < 0:
        raise ArgumentError(f"friction: expected shape (contacts,), got {friction.shape}. For many problems use jax.vmap.")
    if G.shape != (3 * contacts, 3 * contacts):
        raise ArgumentError(f"G: expected shape ({3 * contacts}, {3 * contacts}), three rows per friction coefficient, got {G.shape}.")
    f = made(ContactFunction, contacts, float(tolerance))
    return _called(f, "G g friction", (G.reshape(-1), g, friction))[0]


def step(sim: Simulator, q: Any, v: Any, control: Any = None, tau: Any = None) -> tuple[Any, Any]:
    """State (q⁺, v⁺) after a step of a simulator from (q, v), differentiable with respect to q (nq,), v (nv,), control (nu,) and τ (nv,).

    The simulator is not changed, and starts without contact memory. One thread at a time may use it. Derivatives are those of :meth:`delassus.Simulator.linearize`; give it a small
    ``tolerance``, such as 1e-10, which limits their accuracy.

    Args:
        sim: the simulator; its current time, activations and mocap poses are used.
        q, v: configuration (nq,) and velocity (nv,).
        control: (nu,) actuator commands; default: zero.
        tau: (nv,) joint forces; default: zero.
    """
    f = made(StepFunction, sim)
    control, tau = jnp.zeros(f.inputs[2]) if control is None else control, jnp.zeros(f.inputs[3]) if tau is None else tau
    after, velocity = _called(f, "q v control tau", (q, v, control, tau))
    return after, velocity


def rollout(sim: Simulator, q: Any, v: Any, controls: Any) -> tuple[Any, Any]:
    """States after every step of a simulator that starts from (q, v): (steps, nq) and (steps, nv), differentiable with respect to q (nq,), v (nv,) and the controls (steps, nu).

    As :func:`step`, but with warm starts from step to step. Reverse mode keeps the start of every step (of every √steps-th if there are more than 256), and takes the steps again, last first.
    """
    model, (controls, q, v) = sim.model, _typed((controls, q, v))
    if controls.ndim != 2 or controls.shape[1] != model.nu:
        raise ArgumentError(f"controls: expected shape (steps, {model.nu}), got {controls.shape}. For many trajectories use jax.vmap.")
    f = made(RolloutFunction, sim, controls.shape[0])
    after, velocities = _called(f, "q v controls", (q, v, controls.reshape(-1)))
    return after.reshape(-1, model.nq), velocities.reshape(-1, model.nv)
