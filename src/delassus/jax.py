"""Differentiable functions for JAX: derivatives in both modes, ``jit``, ``vmap``, float32 and float64. Needs the extra ``jax``.

    import delassus as dl, delassus.jax as dj, jax
    model = dl.load("go2")
    gradient = jax.grad(lambda tau: dj.forward_dynamics(model, q, v, tau).sum())(tau)

Functions are computed by the native library through a callback of JAX's. Derivatives of first order are analytic; their matrices are formed, since JAX cannot map a linear
function that is given with its transpose. Second derivatives are not offered. Under ``vmap`` states are computed one after the other. A configuration's quaternions are
normalized first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .constraints import Constraint, collect
from .derivatives.functions import ConstrainedFunction, Function, InverseOperatorFunction, OperatorFunction, TreeFunction
from .errors import ArgumentError, MissingExtraError
from .model import Loop, Model

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise MissingExtraError("delassus.jax: JAX is not installed. Use pip install 'delassus[jax]'.") from error

__all__ = ["constrained_dynamics", "delassus_apply", "delassus_solve", "forward_dynamics", "inverse_dynamics"]


def _call(work: Any, shapes: Sequence[tuple[int, ...]], dtype: Any, *arguments: Any) -> tuple[Any, ...]:
    """Call ``work`` on float64 arrays of one state, from traced code; results in ``dtype``."""

    def on_host(*given: Any) -> tuple[np.ndarray, ...]:
        return tuple(np.asarray(y, dtype) for y in work(*(np.asarray(x, np.float64) for x in given)))

    results = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape in shapes)  # type: ignore[no-untyped-call]
    return tuple(jax.pure_callback(on_host, results, *arguments, vmap_method="sequential"))


def _differentiable(f: Function) -> Any:
    """Wrap a function with its derivatives for JAX: by products with their matrices, which JAX maps and transposes as it likes."""
    outputs = [(n,) for n in f.outputs]
    matrices = [(m, n) for m in f.outputs for n in f.inputs]

    @jax.custom_jvp
    def function(*x: Any) -> tuple[Any, ...]:
        return _call(f.value, outputs, x[0].dtype, *x)

    @function.defjvp
    def _(x: tuple[Any, ...], dx: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        found = iter(_call(lambda *given: f.jacobian(given), matrices, x[0].dtype, *x))
        return function(*x), tuple(sum(next(found) @ d for d in dx) for _ in f.outputs)

    return function


# A function is made once for a model and its constraints, so that compiled code finds it again; both are compared by identity.
@lru_cache(maxsize=64)
def _tree(model: Model, inverse: bool) -> tuple[Function, Any]:
    f = TreeFunction(model, inverse)
    return f, _differentiable(f)


@lru_cache(maxsize=64)
def _constrained(kind: type, model: Model, constraints: tuple[Constraint, ...]) -> tuple[Function, Any]:
    f = kind(model, constraints)
    return f, _differentiable(f)


def _arguments(f: Function, names: str, given: Sequence[Any]) -> list[Any]:
    """Arguments as arrays of one floating type and of the right lengths."""
    arrays = [jnp.asarray(x) for x in given]
    dtype = jnp.result_type(*arrays)
    if not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.result_type(float)
    for name, x, n in zip(names.split(), arrays, f.inputs, strict=True):
        if x.shape != (n,):
            raise ArgumentError(f"{name}: expected shape ({n},), got {x.shape}. For many states use jax.vmap.")
    return [x.astype(dtype) for x in arrays]


def inverse_dynamics(model: Model, q: Any, v: Any, acceleration: Any) -> Any:
    """Joint forces τ (nv,) of :func:`delassus.inverse_dynamics`, differentiable by q (nq,), v (nv,) and ν̇ (nv,)."""
    f, function = _tree(model, True)
    return function(*_arguments(f, "q v acceleration", (q, v, acceleration)))[0]


def forward_dynamics(model: Model, q: Any, v: Any, tau: Any) -> Any:
    """Accelerations ν̇ (nv,) of :func:`delassus.forward_dynamics`, differentiable by q (nq,), v (nv,) and τ (nv,)."""
    f, function = _tree(model, False)
    return function(*_arguments(f, "q v tau", (q, v, tau)))[0]


def constrained_dynamics(model: Model, q: Any, v: Any, tau: Any, constraints: Sequence[Constraint | Loop]) -> tuple[Any, Any]:
    """Accelerations ν̇ (nv,) and forces λ (m,) of :func:`delassus.constrained_dynamics`, differentiable by q, v and τ.

    Raises:
        InaccurateError: from the callback, where the equations have no solution.
    """
    f, function = _constrained(ConstrainedFunction, model, _kept(model, constraints))
    acceleration, forces = function(*_arguments(f, "q v tau", (q, v, tau)))
    return acceleration, forces


def delassus_apply(model: Model, q: Any, x: Any, constraints: Sequence[Constraint | Loop]) -> Any:
    """G(q) x (m,), differentiable by q (nq,) and x (m,)."""
    f, function = _constrained(OperatorFunction, model, _kept(model, constraints))
    return function(*_arguments(f, "q x", (q, x)))[0]


def delassus_solve(model: Model, q: Any, y: Any, damping: Any, constraints: Sequence[Constraint | Loop]) -> Any:
    """(G(q) + ε)⁻¹ y (m,), differentiable by q (nq,), y (m,) and the damping ε, a scalar or (m,)."""
    f, function = _constrained(InverseOperatorFunction, model, _kept(model, constraints))
    damping = jnp.broadcast_to(jnp.asarray(damping), (f.inputs[1],)) if jnp.ndim(damping) == 0 else damping
    return function(*_arguments(f, "q y damping", (q, y, damping)))[0]


def _kept(model: Model, constraints: Sequence[Constraint | Loop]) -> tuple[Constraint, ...]:
    return _collected(model, tuple(constraints))


@lru_cache(maxsize=64)
def _collected(model: Model, constraints: tuple[Any, ...]) -> tuple[Constraint, ...]:
    return tuple(collect(model, constraints))
