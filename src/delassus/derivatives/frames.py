"""Derivatives of points and frames fixed to bodies: of their motion, of J w and of Jᵀ f. World axes.

Every docstring lists all arguments, so that each can be read on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import as_array
from .._html import result_table
from ..dynamics import Workspace
from ..errors import ArgumentTypeError
from ..model import Frame, Model
from ..state import on_body
from .native import model_of, run_single

__all__ = [
    "FrameDerivatives",
    "frame_derivatives",
    "jacobian_product_derivative",
    "jacobian_transpose_product_derivative",
    "point_derivatives",
]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class FrameDerivatives:
    """Motion of a frame and its derivatives, see :func:`frame_derivatives`; for a point, the first three rows of each.

    Attributes:
        velocity: (6,) ``[velocity of the point; angular velocity]`` [m/s, rad/s].
        acceleration: (6,) ``[acceleration of the point; angular acceleration]`` [m/s², rad/s²].
        jacobian: (6, nv) ∂velocity/∂v = ∂acceleration/∂ν̇; its first three rows are also ∂position/∂q.
        velocity_q: (6, nv) ∂velocity/∂q, column k for a change of q along v[k].
        acceleration_q: (6, nv) ∂acceleration/∂q.
        acceleration_v: (6, nv) ∂acceleration/∂v.
    """

    velocity: Array
    acceleration: Array
    jacobian: Array
    velocity_q: Array
    acceleration_q: Array
    acceleration_v: Array

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


def _point(q: ArrayLike, point: ArrayLike | None) -> Any:
    """Point as an array; the default, and anything that is not yet an array, in the precision of q."""
    if isinstance(point, np.ndarray):
        return point
    single = getattr(q, "dtype", None) == np.float32
    return as_array((0.0, 0.0, 0.0) if point is None else point, "point").astype(np.float32 if single else np.float64)


def _spot(where: Model | Workspace, q: ArrayLike, body: str | int | Frame, point: ArrayLike | None) -> tuple[int, Any]:
    """Index of a body and a point in its coordinates."""
    model = model_of(where)
    if model._names_body(body):
        return model.body_index(body), _point(q, point)  # type: ignore[arg-type]
    frame = model.frame(body)
    return model.body_index(frame.body), on_body(frame, _point(q, point))


def frame_derivatives(
    model: Model | Workspace,
    q: ArrayLike,
    v: ArrayLike,
    acceleration: ArrayLike | None,
    body: str | int | Frame,
    point: ArrayLike | None = None,
) -> FrameDerivatives:
    """Velocity and acceleration of a frame fixed to a body, and their derivatives. O(d) for depth d.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        acceleration: (nv,) ν̇, the rate of v; None is zero.
        body: name or index of a body, or a joint or frame on it (name or :class:`~delassus.Frame`).
        point: (3,) in coordinates of the body, or of the frame [m]; default: its origin.

    Returns:
        the motion in world axes, and its derivatives with respect to q (in the tangent space, coordinates of v), v and ν̇.
    """
    return FrameDerivatives(*run_single(model, "frame_derivatives", q, v, acceleration, *_spot(model, q, body, point)))


def point_derivatives(
    model: Model | Workspace,
    q: ArrayLike,
    v: ArrayLike,
    acceleration: ArrayLike | None,
    body: str | int | Frame,
    point: ArrayLike | None = None,
) -> FrameDerivatives:
    """Velocity and acceleration of a point of a body, and their derivatives: the first three rows of :func:`frame_derivatives`.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        acceleration: (nv,) ν̇, the rate of v; None is zero.
        body: name or index of a body, or a joint or frame on it (name or :class:`~delassus.Frame`).
        point: (3,) in coordinates of the body, or of the frame [m]; default: its origin.

    Returns:
        the same with (3,) and (3, nv) in place of (6,) and (6, nv).
    """
    whole = frame_derivatives(model, q, v, acceleration, body, point)
    return FrameDerivatives(*(part[:3].copy() for part in vars(whole).values()))


def jacobian_product_derivative(
    model: Model | Workspace, q: ArrayLike, w: ArrayLike, body: str | int | Frame, point: ArrayLike | None = None
) -> Array:
    """Return ∂(J(q) w)/∂q for constant w, J being :func:`~delassus.frame_jacobian`.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        w: (nv,) vector.
        body: name or index of a body, or a joint or frame on it (name or :class:`~delassus.Frame`).
        point: (3,) in coordinates of the body, or of the frame [m]; default: its origin.

    Returns:
        (6, nv), column k for a change of q along v[k].
    """
    return frame_derivatives(model, q, w, None, body, point).velocity_q


def jacobian_transpose_product_derivative(
    model: Model | Workspace, q: ArrayLike, force: ArrayLike, body: str | int | Frame, point: ArrayLike | None = None
) -> Array:
    """Return ∂(J(q)ᵀ f)/∂q for a wrench f that keeps its direction in the world, J being :func:`~delassus.frame_jacobian`.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        force: (6,) ``[force; torque]`` [N, N m], world axes, at the point.
        body: name or index of a body, or a joint or frame on it (name or :class:`~delassus.Frame`).
        point: (3,) in coordinates of the body, or of the frame [m]; default: its origin.

    Returns:
        (nv, nv), column k for a change of q along v[k]. Not symmetric in general.
    """
    if force is None:
        raise ArgumentTypeError("force: expected an array of shape (6,), got None.")
    return run_single(model, "frame_force_derivatives", q, force, *_spot(model, q, body, point))[1]  # type: ignore[no-any-return]
