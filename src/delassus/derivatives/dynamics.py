"""Derivatives of inverse and forward dynamics of the tree.

The docstrings of both functions list all arguments, so that each can be read on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import as_array, count
from .._html import result_table
from ..dynamics import Workspace, run
from ..errors import ArgumentError, ArgumentTypeError
from ..model import Model
from .native import BATCH, SINGLE

__all__ = ["ForwardDynamicsDerivatives", "InverseDynamicsDerivatives", "forward_dynamics_derivatives", "inverse_dynamics_derivatives"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class InverseDynamicsDerivatives:
    """Derivatives of τ(q, v, ν̇), see :func:`inverse_dynamics_derivatives`. For a batch, every array has a leading batch axis.

    Attributes:
        tau: (nv,) joint forces τ [N m or N].
        tau_q: (nv, nv) ∂τ/∂q, column k for a change of q along v[k].
        tau_v: (nv, nv) ∂τ/∂v.
        tau_a: (nv, nv) ∂τ/∂ν̇, the mass matrix M.
    """

    tau: Array
    tau_q: Array
    tau_v: Array
    tau_a: Array

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


@dataclass(frozen=True, eq=False)
class ForwardDynamicsDerivatives:
    """Derivatives of ν̇(q, v, τ), see :func:`forward_dynamics_derivatives`. For a batch, every array has a leading batch axis.

    Attributes:
        acceleration: (nv,) ν̇, the rate of v.
        acceleration_q: (nv, nv) ∂ν̇/∂q, column k for a change of q along v[k].
        acceleration_v: (nv, nv) ∂ν̇/∂v.
        acceleration_tau: (nv, nv) ∂ν̇/∂τ, the inverse of the mass matrix.
    """

    acceleration: Array
    acceleration_q: Array
    acceleration_v: Array
    acceleration_tau: Array

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


def _run(where: Model | Workspace, method: str, q: ArrayLike, arguments: tuple[Any, ...], threads: int, out: Any, result: type) -> Any:
    """Call the native function of one state, or of a batch if q has one."""
    if out is None:
        arrays: tuple[Any, ...] = (None, None, None, None)
    elif isinstance(out, result):
        arrays = tuple(vars(out).values())
    else:
        raise ArgumentTypeError(f"out: expected a {result.__name__}, as an earlier call returned it, got {type(out).__name__}.")
    shape = np.shape(q) if isinstance(q, np.ndarray) else as_array(q, "q").shape
    if len(shape) == 2:
        if shape[0] == 0:
            raise ArgumentError(f"q: expected at least one state, got shape {shape}.")
        options = (count(threads, "threads"),)
        return result(*run(where, method, q, *arguments, arrays, shape[0], natives=BATCH, options=options))
    return result(*run(where, method, q, *arguments, arrays, natives=SINGLE))


def inverse_dynamics_derivatives(
    model: Model | Workspace,
    q: ArrayLike,
    v: ArrayLike,
    acceleration: ArrayLike,
    *,
    external_forces: ArrayLike | None = None,
    threads: int = 1,
    out: InverseDynamicsDerivatives | None = None,
) -> InverseDynamicsDerivatives:
    """Differentiate :func:`~delassus.inverse_dynamics`, τ = M ν̇ + c(q, v) − Σ Jᵀ f, by analytic recursion, O(n d) for depth d.

    All arguments may have a leading batch axis: q (batch, nq), v (batch, nv) and so on.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        acceleration: (nv,) ν̇, the rate of v.
        external_forces: (nbody, 6) ``[force; torque]`` on each body [N, N m], world axes, at its centre of mass; they keep their direction as q changes.
        threads: number of threads for a batch, including the caller.
        out: an earlier result to fill.

    Returns:
        τ and its derivatives with respect to q (in the tangent space, coordinates of v), v and ν̇.
    """
    if acceleration is None:
        raise ArgumentTypeError("acceleration: expected an array, got None. For zero acceleration give zeros.")
    arguments = (v, acceleration, external_forces)
    return _run(model, "inverse_dynamics_derivatives", q, arguments, threads, out, InverseDynamicsDerivatives)  # type: ignore[no-any-return]


def forward_dynamics_derivatives(
    model: Model | Workspace,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    external_forces: ArrayLike | None = None,
    threads: int = 1,
    out: ForwardDynamicsDerivatives | None = None,
) -> ForwardDynamicsDerivatives:
    """Differentiate :func:`~delassus.forward_dynamics`, ν̇ = M⁻¹ (τ − c(q, v) + Σ Jᵀ f): −M⁻¹ ∂τ/∂q and −M⁻¹ ∂τ/∂v at ν̇.

    All arguments may have a leading batch axis: q (batch, nq), v (batch, nv) and so on.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        tau: (nv,) joint forces [N m or N]; None is zero.
        external_forces: (nbody, 6) as in :func:`inverse_dynamics_derivatives`.
        threads: number of threads for a batch, including the caller.
        out: an earlier result to fill.

    Returns:
        ν̇ and its derivatives with respect to q (in the tangent space, coordinates of v), v and τ.

    Raises:
        SingularError: the mass matrix is singular to working precision.
    """
    return _run(model, "forward_dynamics_derivatives", q, (v, tau, external_forces), threads, out, ForwardDynamicsDerivatives)  # type: ignore[no-any-return]
