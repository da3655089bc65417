"""Differentiable functions for PyTorch: backward and forward mode, ``torch.func``, float32 and float64, tensors on the CPU. Needs the extra ``torch``.

    import delassus as dl, delassus.torch as dt, torch
    model = dl.load("go2")
    dt.forward_dynamics(model, q, v, tau).sum().backward()

Every argument may have leading batch axes, the same for all that have them; ``torch.func.vmap`` makes such a batch too. It uses the native batch if there is one.
Derivatives of first order are analytic and matrix-free where the library is; second derivatives are not supported. A configuration's quaternions are normalized first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from .errors import ArgumentError, ArgumentTypeError, MissingExtraError
from .model import Loop, Model
from .simulator import Simulator

try:
    import torch
except ImportError as error:
    raise MissingExtraError("delassus.torch: PyTorch is not installed. Use pip install 'delassus[torch]'.") from error

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


def _on_arrays(work: Callable[[list[np.ndarray]], tuple[np.ndarray, ...]], arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Call ``work`` on float64 arrays that share the tensors' memory where they can."""
    found = work([x.detach().to(torch.float64).numpy() for x in arguments])
    return tuple(torch.from_numpy(np.ascontiguousarray(y)).to(arguments[0].dtype) for y in found)


def _in_front(arguments: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
    """Move the mapped axis to the front, with equal numbers of axes: unmapped arguments broadcast."""
    moved = [x[None] if axis is None else x.movedim(axis, 0) for x, axis in zip(arguments, axes, strict=True)]
    deepest = max(x.ndim for x in moved)
    return [x.reshape(x.shape[0], *(1,) * (deepest - x.ndim), *x.shape[1:]) for x in moved]


def _product(f: Function, transposed: bool) -> Any:
    """Products with the Jacobian of a function, or with its transpose, as a function of arguments and directions."""
    count = len(f.inputs)

    class Product(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(*arguments: Any) -> tuple[Any, ...]:
            return _on_arrays(lambda given: multiply(f, given[:count], given[count:], transposed), arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *_: Any) -> Any:
            raise NotImplementedError("delassus.torch: second derivatives are not offered.")

        jvp = backward

        @staticmethod
        def vmap(info: Any, axes: tuple[int | None, ...], *arguments: Any) -> tuple[Any, Any]:
            found = Product.apply(*_in_front(arguments, axes))
            return found, (0,) * len(found)

    return Product.apply


@lru_cache(maxsize=256)
def _differentiable(f: Function) -> Any:
    """Wrap a function with its derivatives for PyTorch."""
    tangents, adjoints = _product(f, False), _product(f, True)

    class Differentiable(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(*x: Any) -> tuple[Any, ...]:
            return _on_arrays(lambda given: evaluate(f, given), x)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *y_bar: Any) -> Any:
            return adjoints(*ctx.saved_tensors, *y_bar)

        @staticmethod
        def jvp(ctx: Any, *dx: Any) -> Any:
            x = ctx.saved_tensors
            return tangents(*x, *(torch.zeros_like(a) if d is None else d for a, d in zip(x, dx, strict=True)))

        @staticmethod
        def vmap(info: Any, axes: tuple[int | None, ...], *x: Any) -> tuple[Any, Any]:
            moved = _in_front(x, axes)
            batch = torch.broadcast_shapes(*(a.shape[:-1] for a in moved))
            found = Differentiable.apply(*(a.expand(*batch, a.shape[-1]) for a in moved))
            return found, (0,) * len(found)

    return Differentiable.apply


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


def _called(f: Function, names: str, given: Sequence[Any]) -> Any:
    """Results of a function for arguments with these names."""
    return _differentiable(f)(*_arguments(f, names, given))


def inverse_dynamics(model: Model, q: Any, v: Any, acceleration: Any, *, threads: int = 1) -> Any:
    """Joint forces τ (…, nv) of :func:`delassus.inverse_dynamics`, differentiable with respect to q (…, nq), v (…, nv) and ν̇ (…, nv).

    Args:
        model: the mechanism.
        q, v, acceleration: configuration (…, nq), velocity (…, nv) and its rate (…, nv).
        threads: number of threads for a batch.
    """
    f = made(TreeFunction, model, True, threads)
    return _called(f, "q v acceleration", (q, v, acceleration))[0]


def forward_dynamics(model: Model, q: Any, v: Any, tau: Any, *, threads: int = 1) -> Any:
    """Accelerations ν̇ (…, nv) of :func:`delassus.forward_dynamics`, differentiable with respect to q (…, nq), v (…, nv) and τ (…, nv).

    Args:
        model: the mechanism.
        q, v, tau: configuration (…, nq), velocity (…, nv) and joint forces (…, nv).
        threads: number of threads for a batch.
    """
    f = made(TreeFunction, model, False, threads)
    return _called(f, "q v tau", (q, v, tau))[0]


def constrained_dynamics(
    model: Model, q: Any, v: Any, tau: Any, constraints: Sequence[Constraint | Loop], *, threads: int = 1
) -> tuple[Any, Any]:
    """Accelerations ν̇ (…, nv) and forces λ (…, m) of :func:`delassus.constrained_dynamics`, differentiable with respect to q, v and τ.

    Args:
        model: the mechanism.
        q, v, tau: configuration (…, nq), velocity (…, nv) and joint forces (…, nv).
        constraints: constraints of this model, or its loops.
        threads: number of threads for a batch.

    Raises:
        InaccurateError: the equations have no solution.
    """
    f = made_with_rows(ConstrainedFunction, model, constraints, threads)
    acceleration, forces = _called(f, "q v tau", (q, v, tau))
    return acceleration, forces


def delassus_apply(model: Model, q: Any, x: Any, constraints: Sequence[Constraint | Loop], *, threads: int = 1) -> Any:
    """G(q) x (…, m), differentiable with respect to q (…, nq) and x (…, m); ``threads`` share a batch."""
    f = made_with_rows(OperatorFunction, model, constraints, threads)
    return _called(f, "q x", (q, x))[0]


def delassus_solve(model: Model, q: Any, y: Any, damping: Any, constraints: Sequence[Constraint | Loop], *, threads: int = 1) -> Any:
    """(G(q) + ε)⁻¹ y (…, m), differentiable with respect to q (…, nq), y (…, m) and the damping ε, a scalar or (…, m); ``threads`` share a batch."""
    f = made_with_rows(InverseOperatorFunction, model, constraints, threads)
    damping = torch.as_tensor(damping)
    damping = damping.expand(f.inputs[1]) if damping.ndim == 0 else damping
    return _called(f, "q y damping", (q, y, damping))[0]


def solve_contacts(G: Any, g: Any, friction: Any, *, tolerance: float = 1e-11) -> Any:
    """Contact forces λ (…, m) of :func:`delassus.solve_contacts`, differentiable with respect to G (…, m, m), g (…, m) and friction (…, m / 3).

    Only the symmetric part of G is used, and its adjoint is symmetric. If a contact is about to change its mode the derivative is one-sided, see
    :class:`delassus.ContactDerivatives`.

    Args:
        G: (…, m, m) Delassus matrix, three rows per contact, normal first.
        g: (…, m) velocities without forces.
        friction: (…, m / 3) coefficients µ.
        tolerance: tolerance of the solution, which limits the accuracy of derivatives.

    Raises:
        InaccurateError: the problem was not solved to that tolerance.
    """
    G, friction = torch.as_tensor(G), torch.as_tensor(friction)
    if friction.ndim == 0:
        raise ArgumentError("friction: expected shape (…, contacts), got a number.")
    m = 3 * friction.shape[-1]
    if G.ndim < 2 or G.shape[-2:] != (m, m):
        raise ArgumentError(f"G: expected shape (…, {m}, {m}), three rows per friction coefficient, got {tuple(G.shape)}.")
    f = made(ContactFunction, friction.shape[-1], float(tolerance))
    return _called(f, "G g friction", (G.flatten(-2), g, friction))[0]


def step(sim: Simulator, q: Any, v: Any, control: Any = None, tau: Any = None) -> tuple[Any, Any]:
    """State (q⁺, v⁺) after a step of a simulator from (q, v), differentiable with respect to q (…, nq), v (…, nv), control (…, nu) and τ (…, nv).

    The simulator is not changed, and starts without contact memory. One thread at a time may use it. Derivatives are those of :meth:`delassus.Simulator.linearize`; give it a small
    ``tolerance``, such as 1e-10, which limits their accuracy.

    Args:
        sim: the simulator; its current time, activations and mocap poses are used.
        q, v: configuration (…, nq) and velocity (…, nv).
        control: (…, nu) actuator commands; default: zero.
        tau: (…, nv) joint forces; default: zero.
    """
    f = made(StepFunction, sim)
    q = torch.as_tensor(q)
    control, tau = (q.new_zeros(n) if x is None else x for x, n in ((control, f.inputs[2]), (tau, f.inputs[3])))
    after, velocity = _called(f, "q v control tau", (q, v, control, tau))
    return after, velocity


def rollout(sim: Simulator, q: Any, v: Any, controls: Any) -> tuple[Any, Any]:
    """States after every step of a simulator that starts from (q, v): (…, steps, nq) and (…, steps, nv), differentiable with respect to q (…, nq), v (…, nv) and the controls (…, steps, nu).

    As :func:`step`, but with warm starts from step to step. Backward mode keeps the start of every step (of every √steps-th if there are more than 256), and takes the steps again, last first.
    """
    model, controls = sim.model, torch.as_tensor(controls)
    if controls.ndim < 2 or controls.shape[-1] != model.nu:
        raise ArgumentError(f"controls: expected shape (…, steps, {model.nu}), got {tuple(controls.shape)}.")
    f = made(RolloutFunction, sim, controls.shape[-2])
    after, velocities = _called(f, "q v controls", (q, v, controls.flatten(-2)))
    return after.unflatten(-1, (-1, model.nq)), velocities.unflatten(-1, (-1, model.nv))
