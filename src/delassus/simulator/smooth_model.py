"""The MuJoCo model from which the core reads smooth forces: everything that our own code computes is disabled in it, so that nothing is counted twice."""

from __future__ import annotations

import copy
from typing import Any

import mujoco
import numpy as np

from .. import _core
from ..errors import ModelError
from ..model import Model
from ..model.geometry import flags
from ..model.native import actuator_count, column, controls
from ..model.spans import tendon_equalities
from .mujoco_library import library

__all__ = ["control_places", "hidden_state", "keyframe_state", "mirror_source", "mocap_state"]

# parts of MuJoCo's state besides q and v, in the order of its bits; versions differ
_KEPT = ("mjSTATE_ACT", "mjSTATE_HISTORY", "mjSTATE_PLUGIN", "mjSTATE_PLASTIC")
# arrays in which any nonzero number means a force
_ACTING = ("dof_damping", "dof_dampingpoly", "jnt_stiffness", "jnt_stiffnesspoly", "tendon_stiffness", "tendon_stiffnesspoly", "tendon_damping", "tendon_dampingpoly", "body_gravcomp")  # fmt: skip


def _signature() -> int:
    return sum(int(getattr(mujoco.mjtState, name)) for name in _KEPT if hasattr(mujoco.mjtState, name))


def hidden_state(m: mujoco.MjModel) -> tuple[int, Any]:
    """Return the parts of MuJoCo's state besides q and v, as mjtState bits, and their initial values."""
    signature = _signature()
    start = np.zeros(mujoco.mj_stateSize(m, signature))
    if len(start):
        mujoco.mj_getState(m, mujoco.MjData(m), start, signature)
    return signature, start


def keyframe_state(m: mujoco.MjModel, key: int) -> Any:
    """Return the same numbers for a keyframe."""
    signature, state = hidden_state(m)
    if len(state):
        d = mujoco.MjData(m)
        mujoco.mj_resetDataKeyframe(m, d, key)
        mujoco.mj_getState(m, d, state, signature)
    return state


def mocap_state(m: mujoco.MjModel) -> tuple[int, Any]:
    """Return the mjtState bits of the poses of mocap bodies, zero if there are none, and their initial values: all positions, then all quaternions."""
    signature = int(mujoco.mjtState.mjSTATE_MOCAP_POS) | int(mujoco.mjtState.mjSTATE_MOCAP_QUAT)
    bodies = [int(np.flatnonzero(m.body_mocapid == k)[0]) for k in range(m.nmocap)]
    poses = [np.asarray(m.body_pos)[bodies].ravel(), np.asarray(m.body_quat)[bodies].ravel()]
    return (signature, np.concatenate(poses)) if bodies else (0, np.zeros(0))


def _check_types(m: mujoco.MjModel) -> None:
    """Refuse actuators whose law is defined by a callback."""
    for a in range(actuator_count(m)):
        kinds = {"dyntype": m.actuator_dyntype[a] == mujoco.mjtDyn.mjDYN_USER, "gaintype": m.actuator_gaintype[a] == mujoco.mjtGain.mjGAIN_USER,
                 "biastype": m.actuator_biastype[a] == mujoco.mjtBias.mjBIAS_USER}  # fmt: skip
        if any(kinds.values()):
            name = mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_ACTUATOR, a) or f"actuator_{a}"
            raise ModelError(
                f"actuator {name!r}: {' and '.join(k for k, user in kinds.items() if user)} user is a law defined by a MuJoCo callback, and callbacks are not supported. "
                "Use a general actuator, or apply its force with tau."
            )


def _silenced(model: Model, m: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy without the forces that our own code computes."""
    c = copy.copy(m)
    column(c, "dof_damping", c.nv)[np.asarray(model.dof_damping) != 0, 0] = 0.0
    column(c, "jnt_stiffness", c.njnt)[[joint.stiffness != 0 and joint.type in ("hinge", "slide") for joint in model.joints], 0] = 0.0
    for a, record in enumerate(model.actuators):
        if record.joint is not None:
            c.actuator_gainprm[a] = c.actuator_biasprm[a] = 0.0
            c.actuator_forcelimited[a] = 0
            c.jnt_actfrclimited[model.joint_index(record.joint)] = 0
    c.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE  # earlier versions then have ten_J as a table
    # a step of activations only; contacts, where they are detected, are those of the model
    for name in ("eulerdamp", "island", "sleep", "autoreset"):
        if name in flags():
            field, bit = flags()[name]
            on_by_default = field == "disableflags"
            setattr(c.opt, field, getattr(c.opt, field) | bit if on_by_default else getattr(c.opt, field) & ~bit)
    return c


def _acts(model: Model, c: mujoco.MjModel) -> bool:
    """Whether any force remains in it, or anything that rows of tendons need."""
    moving = any(np.any(np.asarray(getattr(c, name, 0.0))) for name in _ACTING)
    shapes = {int(p) for p in c.geom_plugin if p >= 0}
    held = c.ntendon and (c.tendon_limited.any() or c.tendon_frictionloss.any() or c.tendon_armature.any() or len(tendon_equalities(c)))
    return bool(
        moving or held or c.opt.density or c.opt.viscosity or c.nplugin > len(shapes) or any(a.joint is None for a in model.actuators)
    )


def mirror_source(model: Model, m: mujoco.MjModel, timestep: float) -> _core.MirrorSource:
    """Return what the core needs to get smooth forces from MuJoCo; without a model if there are none.

    Raises:
        ModelError: an actuator needs a callback.
    """
    _check_types(m)
    signature, start = hidden_state(m)
    mocap_signature, mocap = mocap_state(m)
    c = _silenced(model, m)
    c.opt.timestep = timestep
    acts, adhesive = _acts(model, c) or len(start) > 0, bool(np.any(c.actuator_trntype == mujoco.mjtTrn.mjTRN_BODY))
    return _core.MirrorSource(
        library(), c if acts else None, address=int(c._address) if acts else 0, nq=c.nq, nv=c.nv, nu=c.nu, bodies=c.nbody, signature=signature, start=start.tolist(),
        mocap_signature=mocap_signature, mocap=mocap.tolist(), needs_contacts=adhesive, advances=len(start) > 0, tendon_inertia=bool(c.tendon_armature.any()),
    )  # fmt: skip


def control_places(m: mujoco.MjModel) -> list[int]:
    """Return the index of each actuator's first control."""
    return [int(start) for start, _ in controls(m)]
