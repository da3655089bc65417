"""Smooth forces of a MuJoCo model that our own code computes: springs, dampers and motors on single joints, which act at the end of a step. MuJoCo computes all others (``simulator/smooth_model.py``)."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from .geometry import set_flags

__all__ = ["actuator_armature", "actuator_count", "motors", "native_dampers", "native_springs"]

_JOINT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_ONE_AXIS = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


def actuator_count(m: mujoco.MjModel) -> int:
    """Return the number of actuators; later MuJoCo versions have some with several controls."""
    return int(getattr(m, "nactuator", m.nu))


def column(m: mujoco.MjModel, name: str, rows: int, default: float = 0.0) -> Any:
    """Return an array of the model with ``rows`` rows, or its default in versions that lack it."""
    return np.asarray(getattr(m, name, np.full(rows, default))).reshape(rows, -1) if rows else np.zeros((0, 1))


def controls(m: mujoco.MjModel) -> Any:
    """(actuators, 2) index of each actuator's first control, and number of its controls."""
    n = actuator_count(m)
    return np.column_stack([column(m, "actuator_ctrladr", n)[:, 0] if hasattr(m, "actuator_ctrladr") else np.arange(n), column(m, "actuator_ctrlnum", n, 1)[:, 0]]).astype(int)  # fmt: skip


def outputs(m: mujoco.MjModel) -> Any:
    """(actuators,) index of each actuator's first force."""
    return getattr(m, "actuator_outadr", np.arange(actuator_count(m)))


def native_dampers(m: mujoco.MjModel) -> Any:
    """(njnt,) whether a joint's damping is enabled and one number for all its velocities."""
    values = column(m, "dof_damping", m.nv)[:, 0]
    off = not {"damper", "passive"}.isdisjoint(set_flags(m))
    return np.array([not off and bool(np.all(values[m.dof_jntid == j] == values[m.dof_jntid == j][0])) for j in range(m.njnt)], dtype=bool)


def native_springs(m: mujoco.MjModel) -> Any:
    """(njnt,) whether a joint's spring, if it has one, is enabled and linear."""
    off = not {"spring", "passive"}.isdisjoint(set_flags(m))
    return ~column(m, "jnt_springyield", m.njnt)[: m.njnt].any(axis=1) & (not off)


def _driven_alone(m: mujoco.MjModel) -> Any:
    """(actuators,) whether an actuator acts on one hinge or slide, by gain · control + bias of length and speed, and on nothing else."""
    n = actuator_count(m)
    groups = [g for g in range(31) if m.opt.disableactuator & (1 << g)]
    on_joint = np.isin(m.actuator_trntype, _JOINT)
    joint = np.where(on_joint, m.actuator_trnid[:, 0], 0)
    plain = (
        on_joint
        & (np.isin(m.jnt_type[joint], _ONE_AXIS) if m.njnt else False)
        & (m.actuator_plugin < 0)
        & (m.actuator_dyntype == mujoco.mjtDyn.mjDYN_NONE)
        & (m.actuator_gaintype == mujoco.mjtGain.mjGAIN_FIXED)
        & np.isin(m.actuator_biastype, [mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE])
        & ~np.isin(m.actuator_group, groups)
        & (controls(m)[:, 1] == 1)
    )
    for extra in ("actuator_damping", "actuator_dampingpoly", "actuator_delay"):
        plain &= ~column(m, extra, n).any(axis=1)
    return plain & {"actuation", "clampctrl"}.isdisjoint(set_flags(m))


def motors(m: mujoco.MjModel) -> Any:
    """(actuators,) whether our own code computes an actuator.

    If the total actuator force of a joint is limited, all its actuators are computed by one side.
    """
    plain = _driven_alone(m)
    if not len(plain) or not m.njnt:
        return plain
    joint = np.where(np.isin(m.actuator_trntype, _JOINT), m.actuator_trnid[:, 0], -1)
    elsewhere = bool(np.any(joint[~plain] < 0))
    for j in np.flatnonzero(m.jnt_actfrclimited):
        compensated = bool(m.jnt_actgravcomp[j] and m.ngravcomp)
        if elsewhere or compensated or not plain[joint == j].all():
            plain &= joint != j
    return plain


def actuator_armature(m: mujoco.MjModel) -> tuple[Any, int]:
    """(nv,) armature, times gear², that actuators on single joints add to that of the joints; and the number of actuators whose armature is not diagonal in M."""
    armature, n = np.zeros(m.nv), actuator_count(m)
    values, elsewhere = column(m, "actuator_armature", n)[:, 0], 0
    for a in np.flatnonzero(values):
        j = int(m.actuator_trnid[a, 0])
        if m.actuator_trntype[a] in _JOINT and m.jnt_type[j] in _ONE_AXIS:
            armature[m.jnt_dofadr[j]] += values[a] * m.actuator_gear[outputs(m)[a], 0] ** 2
        else:
            elsewhere += 1
    return armature, elsewhere
