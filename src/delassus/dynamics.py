"""Dynamics of the tree without constraints: M(q) ν̇ + c(q, ν) = τ + Σ Jᵀ f.

Every function takes a :class:`~delassus.Model` or, for repeated calls, a :class:`Workspace` of it; it returns a new
array, or fills ``out``. If all arrays are float32, so are computation and result; otherwise float64.

Every docstring lists all arguments, so that each can be read on its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _core
from ._door import as_array, native_class
from .errors import ArgumentError, ArgumentTypeError
from .model import Model
from .model.model import as_model

__all__ = [
    "Workspace",
    "bias_forces",
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "mass_matrix_inverse",
    "solve_mass_matrix",
]

Array = NDArray[Any]
_NATIVE: dict[np.dtype[Any], Any] = {np.dtype(np.float64): _core.Workspace64, np.dtype(np.float32): _core.Workspace32}
_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)


class Workspace:
    """Preallocated memory for one model. Pass it to the functions instead of the model to avoid allocation.

    One thread at a time may use it, otherwise :class:`~delassus.errors.BusyError`.

    Args:
        model: the mechanism.
        dtype: float64 or float32; the work is done, and results returned, in this precision.
    """

    __slots__ = ("_dtype", "_model", "_native", "_others")

    def __init__(self, model: Model, dtype: DTypeLike = np.float64) -> None:
        self._model = as_model(model)
        self._dtype, native = native_class(dtype, _NATIVE)
        self._native = native(model._native)
        self._others: dict[Any, Any] = {}  # memory of other modules, by its class and options, made when first asked for

    @property
    def model(self) -> Model:
        """The model it belongs to."""
        return self._model

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the work."""
        return self._dtype

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy has memory of its own
        return Workspace, (self._model, self._dtype)

    def __repr__(self) -> str:
        return f"<Workspace of {self._model.name!r}, {self._dtype}>"


def not_a_model(where: object) -> ArgumentTypeError:
    """Make the error for an argument that is neither a model nor a workspace."""
    return ArgumentTypeError(f"model: expected a delassus.Model or delassus.Workspace, got {type(where).__name__}. Use delassus.load.")


def run(
    where: Model | Workspace, method: str, *arguments: Any, natives: Mapping[np.dtype[Any], Any] = _NATIVE, options: tuple[Any, ...] = ()
) -> Any:
    """Call a native sweep in the given workspace, or in one borrowed from the model's pool.

    Args:
        where: a model, or a workspace of it.
        method: method name of the native class.
        arguments: arguments of that method; if all are float32, so is the computation.
        natives: the native class of each precision.
        options: further arguments of its constructor.
    """
    if isinstance(where, Workspace):
        if natives is _NATIVE:
            return getattr(where._native, method)(*arguments)
        key = (natives[where._dtype], *options)
        if key not in where._others:
            where._others[key] = key[0](where._model._native, *options)
        return getattr(where._others[key], method)(*arguments)
    if not isinstance(where, Model):
        raise not_a_model(where)
    dtype: np.dtype[Any] = _DOUBLE
    if getattr(arguments[0], "dtype", None) == _SINGLE:
        dtype = _SINGLE if all(getattr(a, "dtype", _SINGLE) == _SINGLE for a in arguments) else _DOUBLE
    native_type = natives[dtype]
    pool = where._pools[native_type, options]
    try:
        native = pool.pop()
    except IndexError:
        native = native_type(where._native, *options)
    try:
        return getattr(native, method)(*arguments)
    finally:
        pool.append(native)


def inverse_dynamics(
    model: Model | Workspace,
    q: ArrayLike,
    v: ArrayLike,
    acceleration: ArrayLike,
    *,
    external_forces: ArrayLike | None = None,
    out: Array | None = None,
) -> Array:
    """Joint forces for a motion, τ = M ν̇ + c(q, ν) − Σ Jᵀ f, by the recursive Newton–Euler algorithm, O(n).

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        acceleration: (nv,) ν̇, the rate of v.
        external_forces: (nbody, 6) ``[force; torque]`` on each body [N, N m], world axes, at its centre of mass, as in
            MuJoCo's ``xfrc_applied``.
        out: array (nv,) to fill.

    Returns:
        (nv,) τ [N m or N].
    """
    if acceleration is None:
        raise ArgumentTypeError("acceleration: expected an array, got None. For zero acceleration use bias_forces.")
    return run(model, "inverse_dynamics", q, v, acceleration, external_forces, out)  # type: ignore[no-any-return]


def bias_forces(
    model: Model | Workspace, q: ArrayLike, v: ArrayLike, *, external_forces: ArrayLike | None = None, out: Array | None = None
) -> Array:
    """Coriolis, centrifugal and gravity forces c(q, ν): the inverse dynamics at zero acceleration. MuJoCo's ``qfrc_bias``.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        external_forces: (nbody, 6) as in :func:`inverse_dynamics`; their Jᵀ f is subtracted.
        out: array (nv,) to fill.

    Returns:
        (nv,) c [N m or N].
    """
    return run(model, "inverse_dynamics", q, v, None, external_forces, out)  # type: ignore[no-any-return]


def forward_dynamics(
    model: Model | Workspace,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    external_forces: ArrayLike | None = None,
    out: Array | None = None,
) -> Array:
    """Accelerations without constraints, ν̇ = M⁻¹ (τ − c(q, ν) + Σ Jᵀ f), by articulated bodies, O(n).

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        tau: (nv,) joint forces [N m or N]; None is zero. Springs, dampers and actuators are not added.
        external_forces: (nbody, 6) as in :func:`inverse_dynamics`.
        out: array (nv,) to fill.

    Returns:
        (nv,) ν̇, the rate of v.
    """
    return run(model, "forward_dynamics", q, v, tau, external_forces, out)  # type: ignore[no-any-return]


def mass_matrix(model: Model | Workspace, q: ArrayLike, *, out: Array | None = None) -> Array:
    """Mass matrix M(q), armature included, by composite rigid bodies, O(n d) for depth d.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        out: array (nv, nv) to fill.

    Returns:
        (nv, nv) symmetric, positive definite.
    """
    return run(model, "mass_matrix", q, out)  # type: ignore[no-any-return]


def mass_matrix_inverse(model: Model | Workspace, q: ArrayLike, *, out: Array | None = None) -> Array:
    """Inverse M(q)⁻¹, computed directly without M, O(n²).

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        out: array (nv, nv) to fill.

    Returns:
        (nv, nv) symmetric, positive definite.
    """
    return run(model, "mass_matrix_inverse", q, out)  # type: ignore[no-any-return]


def solve_mass_matrix(model: Model | Workspace, q: ArrayLike, y: ArrayLike, *, out: Array | None = None) -> Array:
    """M(q)⁻¹ y without forming a matrix, O(n) per column.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        y: (nv,) or (nv, k) right-hand sides.
        out: array of the shape of y to fill; may be y itself.

    Returns:
        x of the shape of y, with M x = y.
    """
    shape = as_array(y, "y").shape
    if len(shape) not in (1, 2):
        raise ArgumentError(f"y: expected shape (nv,) or (nv, k), got {shape}.")
    return run(model, "solve_mass_matrix", q, y, shape[1] if len(shape) == 2 else 1, len(shape) == 1, out)  # type: ignore[no-any-return]
