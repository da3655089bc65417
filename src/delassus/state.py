"""Configurations and derived quantities: placements, velocities, Jacobians, centre of mass, energies.

World axes, SI units, spatial vectors ``[linear; angular]``. Every function takes a :class:`~delassus.Model` or a
:class:`~delassus.Workspace` of it; returns a new array, or fills ``out``.

Every docstring lists all arguments, so that each can be read on its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._door import as_array, conform, finite, number
from .dynamics import Workspace, not_a_model, run
from .errors import ArgumentError, QuaternionError
from .model import Frame, Model
from .spatial import rotation_matrix

__all__ = [
    "body_placement",
    "body_placements",
    "center_of_mass",
    "difference",
    "frame_bias_acceleration",
    "frame_jacobian",
    "frame_velocity",
    "integrate",
    "kinetic_energy",
    "normalize",
    "point_bias_acceleration",
    "point_jacobian",
    "point_position",
    "point_velocity",
    "potential_energy",
]

Array = NDArray[Any]
_ORIGIN = np.zeros(3)


def _model(where: Model | Workspace) -> Model:
    model = where.model if isinstance(where, Workspace) else where
    if not isinstance(model, Model):
        raise not_a_model(model)
    return model


def _spot(where: Model | Workspace, q: ArrayLike, body: str | int | Frame, point: ArrayLike | None) -> tuple[int, Any]:
    """Index of a body and a point in its coordinates: those given, or the same point on a frame that the body carries."""
    model = _model(where)
    if model._names_body(body):
        return model.body_index(body), _like(q, point)  # type: ignore[arg-type]
    frame = model.frame(body)
    return model.body_index(frame.body), on_body(frame, _like(q, point))


def on_body(frame: Frame, point: ArrayLike) -> Array:
    """Body coordinates (3,) of a point given in the coordinates of a frame on that body (3,); both in the precision of the point."""
    given = finite(as_array(point, "point"), "point")
    if given.shape != (3,):
        raise ArgumentError(f"point: expected shape (3,), got {given.shape}.")
    moved = rotation_matrix(frame.quaternion) @ given + frame.position
    return np.asarray(moved, dtype=np.float32 if given.dtype == np.float32 else np.float64)


def _like(q: ArrayLike, point: ArrayLike | None) -> Any:
    """Point as an array; the default, and anything that is not yet an array, in the precision of q."""
    if isinstance(point, np.ndarray):
        return point
    return conform(_ORIGIN if point is None else point, "point", (3,), "float32" if getattr(q, "dtype", None) == np.float32 else "float64")


def integrate(model: Model | Workspace, q: ArrayLike, v: ArrayLike, dt: float = 1.0, *, out: Array | None = None) -> Array:
    """Move along a velocity on the configuration manifold, q ⊕ v dt.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity, held constant for ``dt``.
        dt: duration [s].
        out: array (nq,) to fill; may be q.

    Returns:
        (nq,) configuration; quaternions are normalised.
    """
    step = dt if type(dt) is float and math.isfinite(dt) else number(dt, "dt")
    return run(model, "integrate", q, v, step, out)  # type: ignore[no-any-return]


def difference(model: Model | Workspace, q_from: ArrayLike, q_to: ArrayLike, *, out: Array | None = None) -> Array:
    """Shortest velocity that carries one configuration to another in unit time: integrate(q_from, v) = q_to.

    Args:
        model: the mechanism, or a workspace of it.
        q_from, q_to: (nq,) configurations.
        out: array (nv,) to fill.

    Returns:
        (nv,) velocity.
    """
    return run(model, "difference", q_from, q_to, out)  # type: ignore[no-any-return]


def normalize(model: Model | Workspace, q: ArrayLike) -> Array:
    """Scale the quaternions of a configuration to unit length.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,).

    Returns:
        (nq,) new array.

    Raises:
        QuaternionError: a quaternion is zero.
    """
    robot = _model(model)
    dtype = str(model.dtype) if isinstance(model, Workspace) else "float32" if getattr(q, "dtype", None) == np.float32 else "float64"
    out = finite(conform(q, "q", (robot.nq,), dtype), "q").copy()
    for kind, start in zip(robot.joint_type, robot.joint_qadr, strict=True):
        if kind in ("ball", "free"):
            at = start + 3 * (kind == "free")
            part = out[at : at + 4]
            largest = np.abs(part).max()
            if largest == 0:
                raise QuaternionError(f"q: the quaternion at q[{at}:{at + 4}] is zero and has no direction. Use (1, 0, 0, 0).")
            part /= largest
            part /= np.linalg.norm(part)
    return out


def body_placements(model: Model | Workspace, q: ArrayLike, *, out: Array | None = None) -> Array:
    """Placements of all bodies.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        out: array (nbody, 4, 4) to fill.

    Returns:
        (nbody, 4, 4) homogeneous matrices [[R, p], [0, 1]], body to world; body 0 is the world.
    """
    return run(model, "body_placements", q, out)  # type: ignore[no-any-return]


def body_placement(model: Model | Workspace, q: ArrayLike, body: str | int | Frame) -> Array:
    """Placement of one body, or of a frame on it.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        body: name or index of a body, or a joint or frame on it (name or :class:`~delassus.Frame`).

    Returns:
        (4, 4) homogeneous matrix [[R, p], [0, 1]], body or frame to world.
    """
    robot = _model(model)
    if robot._names_body(body):
        return body_placements(model, q)[robot.body_index(body)].copy()  # type: ignore[no-any-return, arg-type]
    frame = robot.frame(body)
    X = body_placements(model, q)[robot.body_index(frame.body)].copy()
    if not frame.is_body:
        X[:3, 3] += X[:3, :3] @ frame.position
        X[:3, :3] = X[:3, :3] @ rotation_matrix(frame.quaternion)
    return X  # type: ignore[no-any-return]


def point_position(model: Model | Workspace, q: ArrayLike, body: str | int | Frame, point: ArrayLike | None = None) -> Array:
    """Position of a point of a body.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        body: name or index of a body, or a joint or frame on it (name or :class:`~delassus.Frame`).
        point: (3,) in coordinates of the body, or of the frame [m]; default: its origin.

    Returns:
        (3,) world coordinates [m].
    """
    X = body_placement(model, q, body)
    c = finite(conform(_like(q, point), "point", (3,), str(X.dtype)), "point")
    return X[:3, :3] @ c + X[:3, 3]  # type: ignore[no-any-return]


def frame_jacobian(
    model: Model | Workspace, q: ArrayLike, body: str | int | Frame, point: ArrayLike | None = None, *, out: Array | None = None
) -> Array:
    """Jacobian of a frame fixed to a body: ``[velocity of the point; angular velocity]`` = J v.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        body: name or index of a body, or a joint or frame on it (name or :class:`~delassus.Frame`).
        point: (3,) in coordinates of the body, or of the frame [m]; default: its origin.
        out: array (6, nv) to fill.

    Returns:
        (6, nv), world axes.
    """
    return run(model, "frame_jacobian", q, *_spot(model, q, body, point), out)  # type: ignore[no-any-return]


def point_jacobian(model: Model | Workspace, q: ArrayLike, body: str | int | Frame, point: ArrayLike | None = None) -> Array:
    """Jacobian of a point of a body: velocity of the point = J v. MuJoCo's ``mj_jac``.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        body: name or index of a body, or a joint or frame on it (name or :class:`~delassus.Frame`).
        point: (3,) in coordinates of the body, or of the frame [m]; default: its origin.

    Returns:
        (3, nv), world axes.
    """
    return frame_jacobian(model, q, body, point)[:3].copy()


def frame_velocity(
    model: Model | Workspace,
    q: ArrayLike,
    v: ArrayLike,
    body: str | int | Frame,
    point: ArrayLike | None = None,
    *,
    out: Array | None = None,
) -> Array:
    """Velocity of a frame fixed to a body, without forming a Jacobian.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        body: name or index of a body, or a joint or frame on it (name or :class:`~delassus.Frame`).
        point: (3,) in coordinates of the body, or of the frame [m]; default: its origin.
        out: array (6,) to fill.

    Returns:
        (6,) ``[velocity of the point; angular velocity]`` [m/s, rad/s], world axes.
    """
    return run(model, "frame_velocity", q, v, *_spot(model, q, body, point), out)  # type: ignore[no-any-return]


def point_velocity(model: Model | Workspace, q: ArrayLike, v: ArrayLike, body: str | int | Frame, point: ArrayLike | None = None) -> Array:
    """Velocity of a point of a body: the first three numbers of :func:`frame_velocity`, (3,) [m/s], world axes."""
    return frame_velocity(model, q, v, body, point)[:3].copy()


def frame_bias_acceleration(
    model: Model | Workspace,
    q: ArrayLike,
    v: ArrayLike,
    body: str | int | Frame,
    point: ArrayLike | None = None,
    *,
    out: Array | None = None,
) -> Array:
    """J̇v of a frame fixed to a body: its acceleration when v stays constant.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
        body: name or index of a body, or a joint or frame on it (name or :class:`~delassus.Frame`).
        point: (3,) in coordinates of the body, or of the frame [m]; default: its origin.
        out: array (6,) to fill.

    Returns:
        (6,) ``[acceleration of the point; angular acceleration]`` [m/s², rad/s²], world axes.
    """
    return run(model, "frame_bias_acceleration", q, v, *_spot(model, q, body, point), out)  # type: ignore[no-any-return]


def point_bias_acceleration(
    model: Model | Workspace, q: ArrayLike, v: ArrayLike, body: str | int | Frame, point: ArrayLike | None = None
) -> Array:
    """J̇v of a point of a body: the first three numbers of :func:`frame_bias_acceleration`, (3,) [m/s²], world axes."""
    return frame_bias_acceleration(model, q, v, body, point)[:3].copy()


def center_of_mass(model: Model | Workspace, q: ArrayLike, *, out: Array | None = None) -> Array:
    """Centre of mass of all moving bodies.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        out: array (3,) to fill.

    Returns:
        (3,) world coordinates [m].
    """
    return run(model, "center_of_mass", q, out)  # type: ignore[no-any-return]


def kinetic_energy(model: Model | Workspace, q: ArrayLike, v: ArrayLike) -> float:
    """Kinetic energy ½ vᵀ M(q) v [J], armature included, M not formed.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
        v: (nv,) velocity.
    """
    return float(run(model, "kinetic_energy", q, v))


def potential_energy(model: Model | Workspace, q: ArrayLike) -> float:
    """Potential energy of gravity and joint springs [J], −Σ m gᵀc + ½ Σ k (q ⊖ q_spring)², over all moving bodies.

    Args:
        model: the mechanism, or a workspace of it.
        q: (nq,) configuration.
    """
    return float(run(model, "gravitational_energy", q)) + spring_energy(_model(model), q)


def spring_energy(model: Model, q: ArrayLike) -> float:
    """Energy of the joint springs only [J], ½ Σ k (q ⊖ q_spring)², for a checked configuration (nq,)."""
    if not model.dof_stiffness.any():
        return 0.0
    stretch = difference(model, model.spring_reference, normalize(model, np.asarray(q, dtype=np.float64)))
    return 0.5 * float(model.dof_stiffness @ stretch**2)
