"""Snapshots of a simulator, with identification and checksum.

    [mark, format, model (2 numbers), options, checksum | 1 or 0 for each loop: whether it is active | state and memory, as the core writes them]

Identities and the checksum are parts of SHA-256 digests, 48 bits per number, so that they are exact in float64. Another model or other options are refused: the next step
would not be the one that was saved. The core checks sizes, indices and numbers itself.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import as_array, finite
from ..errors import ArgumentError
from ..model import Model

__all__ = ["identity", "seal", "unseal"]

Floats = NDArray[np.float64]
MARK, FORMAT = 81_220_071.0, 5.0
HEADER = 6
# the parts of MuJoCo's model that collisions depend on
GEOMETRY = (
    "body_parentid", "body_weldid", "geom_type", "geom_bodyid", "geom_contype", "geom_conaffinity", "geom_condim", "geom_priority", "geom_size", "geom_pos",
    "geom_quat", "geom_friction", "geom_margin", "geom_gap", "geom_dataid", "mesh_vert", "mesh_face", "hfield_size", "hfield_data", "pair_geom1", "pair_geom2",
    "pair_friction", "pair_margin", "pair_gap", "pair_dim", "exclude_signature",
)  # fmt: skip


def _digest(*parts: bytes) -> Floats:
    """Return a SHA-256 digest as five exact numbers of 48 bits."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    digest = hashed.digest()
    return np.array([int.from_bytes(digest[6 * k : 6 * k + 6], "little") for k in range(5)], dtype=float)


def identity(model: Model, mujoco_model: Any, options: _core.StepOptions, restitution: Floats) -> Floats:
    """Return three numbers that identify a model, its collision shapes and the options of a simulator."""
    settings = np.array(
        [
            options.timestep, options.restitution, options.bounce_speed, options.tolerance, options.max_iterations, options.solver, options.time_limit, options.slop,
            options.midpoint, options.sleep_steps, options.sleep_speed,
        ],
        dtype=float,
    )  # fmt: skip
    shapes = [np.ascontiguousarray(getattr(mujoco_model, name)).tobytes() for name in GEOMETRY if hasattr(mujoco_model, name)]
    return np.append(_digest(f"{hash(model)}".encode(), *shapes)[:2], _digest(settings.tobytes(), restitution.tobytes())[0])


def seal(own: Floats, state: Floats) -> Floats:
    """Return a snapshot of a state, with identification and checksum."""
    return np.concatenate([[MARK, FORMAT], own, _digest(state.tobytes())[:1], state])


def unseal(own: Floats, snapshot: ArrayLike) -> Floats:
    """Return the state in a snapshot, if it belongs to this model and options and is unmodified.

    Raises:
        ArgumentError: it does not.
        NotFiniteError: it holds NaN or infinity.
    """
    numbers = as_array(snapshot, "snapshot", "an array that save() returned").astype(float).ravel()
    if len(numbers) < HEADER or numbers[0] != MARK:
        raise ArgumentError(f"snapshot: expected an array that save() returned, got {len(numbers)} numbers that begin differently.")
    if numbers[1] != FORMAT:
        raise ArgumentError(f"snapshot: it has format {numbers[1]:g}; this version reads {FORMAT:g}. Use reset(q, v) with its state.")
    if (numbers[2:4] != own[:2]).any():
        raise ArgumentError("snapshot: it belongs to another model. Use it with the model it was saved from, or reset(q, v).")
    if numbers[4] != own[2]:
        raise ArgumentError("snapshot: it was saved with another timestep, solver or other options. Use the same, or reset(q, v, time).")
    state = finite(numbers[HEADER:], "snapshot")
    if numbers[5] != _digest(state.tobytes())[0]:
        raise ArgumentError("snapshot: its numbers are not what save() returned: some were changed or cut off. Give it unchanged.")
    return state
