"""Lines about all that a MuJoCo model has, that changes MuJoCo's motion or reports it, and that has no part in ours.

What is read one by one on the way (loops, actuators, joints) lists its own omissions in ``from_mujoco``; the rest is here. ``tests/model/test_every_attribute.py`` holds the verdict on every
attribute of MJCF.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mujoco
import numpy as np

from .geometry import counted, set_flags, touching

__all__ = ["omitted"]

# flags that take a part of the model out of the motion; gravity becomes zero, contact and filterparent hold for our contacts too
_DISABLED = ("constraint", "equality", "frictionloss", "limit", "passive", "spring", "damper", "actuation", "clampctrl")
# how MuJoCo solves and integrates: options with their enumerations, and flags
_METHOD = {
    "timestep": None, "integrator": "mjtIntegrator", "cone": "mjtCone", "impratio": None, "solver": "mjtSolver", "jacobian": "mjtJacobian", "iterations": None,
    "tolerance": None, "ls_iterations": None, "ls_tolerance": None, "noslip_iterations": None, "noslip_tolerance": None, "apirate": None,
}  # fmt: skip
_METHOD_FLAGS = ("eulerdamp", "refsafe", "sleep", "diagexact", "ipc", "speculative")
_TIMESTEP = 1e-3  # the simulator's own, unless told otherwise


@lru_cache(maxsize=1)
def _default() -> mujoco.MjModel:
    """Return a model in which everything that can be said is as MuJoCo has it by default."""
    return mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom name='a' size='1'/></body><geom name='b' size='1'/></worldbody><contact><pair geom1='a' geom2='b'/></contact></mujoco>"
    )


def _rows(m: mujoco.MjModel, name: str, where: Any = slice(None)) -> int:
    """Return how many rows of an array hold a number other than zero; none where this version has no such array."""
    array = np.asarray(getattr(m, name, np.zeros(0)))
    array = array[where] if len(array) else array
    return int(np.count_nonzero(array.any(axis=tuple(range(1, array.ndim))) if array.ndim > 1 else array))


def _method(m: mujoco.MjModel) -> list[str]:
    """Return the settings of MuJoCo's own solver and integrator that are not its defaults."""
    found, opt, default = [], m.opt, _default().opt
    for name, enumeration in _METHOD.items():
        value = getattr(opt, name, None)
        if value == getattr(default, name, None) or (name == "timestep" and value == _TIMESTEP):
            continue
        shown = getattr(mujoco, enumeration)(value).name.split("_", 1)[1].lower() if enumeration else f"{value:g}"
        found.append(f"{name} {shown}")
    found += [f"{name} {way}d" for name, way in set_flags(m).items() if name in _METHOD_FLAGS]
    return [f"settings of MuJoCo's solver and integrator ({', '.join(found)})"] if found else []


def _soft(m: mujoco.MjModel) -> list[str]:
    """Whether anything that takes part has parameters of softness: constraints are rigid here."""
    default, geoms = _default(), touching(m)
    rows = [
        (m.geom_solref[geoms], default.geom_solref[0]), (m.geom_solimp[geoms], default.geom_solimp[0]),
        (m.pair_solref, default.pair_solref[0]), (m.pair_solimp, default.pair_solimp[0]), (m.pair_solreffriction, default.pair_solreffriction[0]),
        (m.jnt_solref, default.jnt_solref[0]), (m.jnt_solimp, default.jnt_solimp[0]), (m.dof_solref, default.dof_solref[0]), (m.dof_solimp, default.dof_solimp[0]),
        (m.eq_solref, default.geom_solref[0]), (m.eq_solimp, default.geom_solimp[0]),
    ]  # fmt: skip
    if "override" in set_flags(m):
        rows += [(m.opt.o_solref[None], default.opt.o_solref), (m.opt.o_solimp[None], default.opt.o_solimp)]
    soft = any(len(values) and np.any(values != usual) for values, usual in rows)
    return ["softness of constraints (solref, solimp): they are rigid here"] if soft else []


def _contacts(m: mujoco.MjModel) -> list[str]:
    geoms = touching(m)
    spun = int(np.count_nonzero(m.geom_condim[geoms] > 3)) + int(np.count_nonzero(m.pair_dim > 3))
    distant = sum(bool(m.geom_margin[g] or m.geom_gap[g]) for g in geoms) + sum(bool(x) for x in np.add(m.pair_margin, m.pair_gap))
    uneven = int(np.count_nonzero((m.pair_friction[:, 0] != m.pair_friction[:, 1]) & (m.pair_dim > 1)))
    override = "override" in set_flags(m)
    distant += bool(override and m.opt.o_margin)
    uneven += bool(override and m.opt.o_friction[0] != m.opt.o_friction[1])
    lines = [
        (spun, "torsional or rolling friction of {} (condim 4 or 6)", "contact shape"),
        (distant, "margin or gap of {}", "contact shape"),
        (uneven, "friction that differs between two directions of {}", "contact pair"),
        # later MuJoCo versions only
        (_rows(m, "geom_surfacevel"), "surface velocity of {}", "shape"),
        (_rows(m, "geom_adhesion") + _rows(m, "pair_adhesion"), "adhesion of {}", "shape"),
    ]
    return [text.format(counted(n, what)) for n, text, what in lines if n]


def _joints(m: mujoco.MjModel) -> list[str]:
    driven = m.actuator_trnid[np.isin(m.actuator_trntype, [mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT]), 0].tolist()
    turning = np.isin(m.jnt_type, [mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE])
    counts = [
        (_rows(m, "jnt_limited", turning), "limit of a ball joint", "limits of ball joints"),
        (_rows(m, "jnt_stiffness", turning), "spring of a ball or free joint", "springs of ball or free joints"),
        (_rows(m, "jnt_margin", m.jnt_limited.astype(bool)), "margin of a joint limit", "margins of joint limits"),
        (len({j for j in driven if m.jnt_actfrclimited[j]}), "joint actuator force limit", None),
    ]
    # later MuJoCo versions only
    for attribute, what in (
        ("jnt_stiffnesspoly", "non-linear joint stiffness"),
        ("dof_dampingpoly", "non-linear joint damping"),
        ("jnt_springyield", "joint spring yield"),
        ("actuator_armature", "actuator armature"),
        ("actuator_damping", "actuator damping"),
        ("actuator_dampingpoly", "non-linear actuator damping"),
        ("actuator_delay", "actuator delay"),
    ):
        counts.append((_rows(m, attribute), what, None))
    return [counted(n, what, plural) for n, what, plural in counts if n]


def _keyframes(m: mujoco.MjModel) -> list[str]:
    moved = np.zeros(m.nkey, dtype=bool)
    for b in range(m.nbody):
        k = int(m.body_mocapid[b])
        if k >= 0:
            moved |= (m.key_mpos[:, 3 * k : 3 * k + 3] != m.body_pos[b]).any(axis=1)
            moved |= (m.key_mquat[:, 4 * k : 4 * k + 4] != m.body_quat[b]).any(axis=1)
    counts = [
        (_rows(m, "key_ctrl"), "keyframe control", None),
        (_rows(m, "key_act"), "keyframe activation", None),
        (_rows(m, "key_time"), "keyframe time", None),
        (int(np.count_nonzero(moved)), "keyframe pose of mocap bodies", "keyframe poses of mocap bodies"),
        (_rows(m, "key_plastic"), "keyframe plastic state", None),
    ]
    return [counted(n, what, plural) for n, what, plural in counts if n]


def omitted(m: mujoco.MjModel) -> list[str]:
    """Return what bears on MuJoCo's motion, or reports it, and has no part in ours, one line each."""
    touches = {int(p) for p in m.geom_plugin if p >= 0}
    groups = [g for g in range(31) if m.opt.disableactuator & (1 << g)]
    counts = [
        (m.ntendon, "tendon", None),
        (m.nflex, "flex", "flexes"),
        (m.nsensor, "sensor", None),
        (m.nplugin - len(touches), "plugin", None),
        (m.nmocap, "mocap body flag", None),
        (_rows(m, "body_gravcomp"), "gravity compensation", None),
        (
            int(np.count_nonzero(np.isin(m.actuator_group, groups))),
            "actuator that its group disables",
            "actuators that their groups disable",
        ),
    ]
    lines = [counted(n, what, plural) for n, what, plural in counts if n]
    lines += _keyframes(m) + _joints(m) + _contacts(m)
    off = set_flags(m)
    lines += [f"flag that disables {name}" for name in _DISABLED if name in off]
    if m.opt.density or m.opt.viscosity:
        lines.append("fluid forces (density or viscosity)")
    if np.any(m.opt.wind):
        lines.append("wind")
    if np.any(m.opt.magnetic != _default().opt.magnetic):
        lines.append("magnetic field")
    return lines + _soft(m) + _method(m)
