"""Differentiable functions for PyTorch: backward and forward mode, float32 and float64, tensors on the CPU. Needs the extra ``torch``.

    import delassus as dl, delassus.torch as dt, torch
    model = dl.load("go2")
    dt.forward_dynamics(model, q, v, tau).sum().backward()

Every argument may have a batch of states before, the same for all that have one. Derivatives of first order are analytic and matrix-free where the library is; second ones are
not offered. A configuration's quaternions are normalized first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .constraints import Constraint, collect
from .derivatives.functions import ConstrainedFunction, Function, InverseOperatorFunction, OperatorFunction, TreeFunction
from .errors import ArgumentError, ArgumentTypeError, MissingExtraError
from .model import Loop, Model

try:
    import torch
except ImportError as error:
    raise MissingExtraError("delassus.torch: PyTorch is not installed. Use pip install 'delassus[torch]'.") from error

__all__ = ["constrained_dynamics", "delassus_apply", "delassus_solve", "forward_dynamics", "inverse_dynamics"]


def _each(work: Callable[..., tuple[Any, ...]], outputs: Sequence[int], arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Call ``work`` on float64 arrays of every state."""
    batch = torch.broadcast_shapes(*(x.shape[:-1] for x in arguments))
    dtype = arguments[0].dtype
    given = [x.detach().expand(*batch, x.shape[-1]).reshape(-1, x.shape[-1]).to(torch.float64).numpy() for x in arguments]
    results = [np.empty((given[0].shape[0], n)) for n in outputs]
    for k in range(given[0].shape[0]):
        for result, y in zip(results, work(*(x[k] for x in given)), strict=True):
            result[k] = y
    return tuple(torch.from_numpy(y).to(dtype).reshape(*batch, y.shape[-1]) for y in results)


def _differentiable(f: Function) -> Any:
    """Wrap a function with its derivatives for PyTorch."""
    count = len(f.inputs)

    class Differentiable(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(*x: Any) -> tuple[Any, ...]:
            return _each(f.value, f.outputs, x)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, *y_bar: Any) -> tuple[Any, ...]:
            x = ctx.saved_tensors
            return _each(lambda *given: f.vjp(given[:count], given[count:]), f.inputs, (*x, *y_bar))

        @staticmethod
        def jvp(ctx: Any, *dx: Any) -> tuple[Any, ...]:
            x = ctx.saved_tensors
            directions = [torch.zeros_like(a) if d is None else d for a, d in zip(x, dx, strict=True)]
            return _each(lambda *given: f.jvp(given[:count], given[count:]), f.outputs, (*x, *directions))

    return Differentiable.apply


# A function is made once for a model and its constraints; both are compared by identity.
@lru_cache(maxsize=64)
def _tree(model: Model, inverse: bool) -> tuple[Function, Any]:
    f = TreeFunction(model, inverse)
    return f, _differentiable(f)


@lru_cache(maxsize=64)
def _constrained(kind: type, model: Model, constraints: tuple[Any, ...]) -> tuple[Function, Any]:
    f = kind(model, tuple(collect(model, constraints)))
    return f, _differentiable(f)


def _arguments(f: Function, names: str, given: Sequence[Any]) -> list[Any]:
    """Tensors of one floating type, of the right lengths and one batch."""
    arrays = []
    for name, x, n in zip(names.split(), given, f.inputs, strict=True):
        tensor = torch.as_tensor(x)
        if tensor.device.type != "cpu":
            raise ArgumentTypeError(f"{name}: expected a tensor on the CPU, got one on {tensor.device}. Move it with .cpu().")
        if tensor.ndim == 0 or tensor.shape[-1] != n:
            raise ArgumentError(f"{name}: expected shape (…, {n}), got {tuple(tensor.shape)}.")
        arrays.append(tensor)
    dtype = arrays[0].dtype
    for x in arrays[1:]:
        dtype = torch.promote_types(dtype, x.dtype)
    dtype = dtype if dtype in (torch.float32, torch.float64) else torch.float64
    try:
        batch = torch.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    except RuntimeError as error:
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in zip(names.split(), arrays, strict=True))
        raise ArgumentError(f"{names.split()[0]}: expected one batch of states before all arguments, got {shapes}.") from error
    return [x.to(dtype).expand(*batch, x.shape[-1]) for x in arrays]


def inverse_dynamics(model: Model, q: Any, v: Any, acceleration: Any) -> Any:
    """Joint forces τ (…, nv) of :func:`delassus.inverse_dynamics`, differentiable by q (…, nq), v (…, nv) and ν̇ (…, nv)."""
    f, function = _tree(model, True)
    return function(*_arguments(f, "q v acceleration", (q, v, acceleration)))[0]


def forward_dynamics(model: Model, q: Any, v: Any, tau: Any) -> Any:
    """Accelerations ν̇ (…, nv) of :func:`delassus.forward_dynamics`, differentiable by q (…, nq), v (…, nv) and τ (…, nv)."""
    f, function = _tree(model, False)
    return function(*_arguments(f, "q v tau", (q, v, tau)))[0]


def constrained_dynamics(model: Model, q: Any, v: Any, tau: Any, constraints: Sequence[Constraint | Loop]) -> tuple[Any, Any]:
    """Accelerations ν̇ (…, nv) and forces λ (…, m) of :func:`delassus.constrained_dynamics`, differentiable by q, v and τ.

    Raises:
        InaccurateError: the equations have no solution.
    """
    f, function = _constrained(ConstrainedFunction, model, tuple(constraints))
    acceleration, forces = function(*_arguments(f, "q v tau", (q, v, tau)))
    return acceleration, forces


def delassus_apply(model: Model, q: Any, x: Any, constraints: Sequence[Constraint | Loop]) -> Any:
    """G(q) x (…, m), differentiable by q (…, nq) and x (…, m)."""
    f, function = _constrained(OperatorFunction, model, tuple(constraints))
    return function(*_arguments(f, "q x", (q, x)))[0]


def delassus_solve(model: Model, q: Any, y: Any, damping: Any, constraints: Sequence[Constraint | Loop]) -> Any:
    """(G(q) + ε)⁻¹ y (…, m), differentiable by q (…, nq), y (…, m) and the damping ε, a scalar or (…, m)."""
    f, function = _constrained(InverseOperatorFunction, model, tuple(constraints))
    damping = torch.as_tensor(damping)
    damping = damping.expand(f.inputs[1]) if damping.ndim == 0 else damping
    return function(*_arguments(f, "q y damping", (q, y, damping)))[0]
