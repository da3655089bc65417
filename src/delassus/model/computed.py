"""Parts of a MuJoCo model that our records cannot hold but that still take part in simulation: the simulator has MuJoCo compute them, at our state."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from .geometry import counted, set_flags
from .native import actuator_count, column, motors, native_dampers

__all__ = ["computed"]

# joint forces beyond a linear spring and one damping coefficient, by the arrays that define them
_JOINTS = {
    "non-linear joint stiffness": ("jnt_stiffnesspoly", "njnt"),
    "non-linear joint damping": ("dof_dampingpoly", "nv"),
    "joint spring yield": ("jnt_springyield", "njnt"),
    "gravity compensation": ("body_gravcomp", "nbody"),
}
# prefixes of all arrays of tendons and actuators
_TENDONS = ("tendon_", "wrap_")
_ACTUATORS = ("actuator_",)
# flags that disable parts of the model
_DISABLED = {"constraint", "equality", "frictionloss", "limit", "passive", "spring", "damper", "actuation", "clampctrl"}
_DRAWN = ("_rgba", "_matid", "_width", "_user", "_group")


def _content(m: mujoco.MjModel, prefixes: tuple[str, ...]) -> list[Any]:
    """All arrays of the model with these prefixes, except those that are only drawn."""
    names = [name for name in dir(m) if name.startswith(prefixes) and not name.endswith(_DRAWN)]
    return [np.asarray(getattr(m, name)) for name in names if isinstance(getattr(m, name), np.ndarray)]


def computed(m: mujoco.MjModel) -> dict[str, list[Any]]:
    """Return everything that only MuJoCo's functions compute in a simulation: one line per kind, and its content."""
    found: dict[str, list[Any]] = {}
    if m.ntendon:
        found[counted(m.ntendon, "tendon")] = _content(m, _TENDONS)
    others = int(np.count_nonzero(~motors(m))) if actuator_count(m) else 0
    if others:
        found[f"{counted(others, 'actuator')} that {'is' if others == 1 else 'are'} not a motor or servo on one hinge or slide"] = _content(
            m, _ACTUATORS
        )
    limited = np.flatnonzero(m.jnt_actfrclimited)
    if len(limited) and actuator_count(m):
        found[counted(len(limited), "joint actuator force limit")] = [limited, m.jnt_actfrcrange[limited]]
    for what, (name, rows) in _JOINTS.items():
        values = column(m, name, getattr(m, rows))
        if n := int(np.count_nonzero(values.any(axis=1))):
            found[counted(n, what)] = [values]
    uneven = int(np.count_nonzero(~native_dampers(m))) if "damper" not in set_flags(m) else 0
    if uneven:
        found[f"damping that differs between velocities of {counted(uneven, 'joint')}"] = [m.dof_damping]
    if m.opt.density or m.opt.viscosity:
        found["fluid forces (density or viscosity)"] = [np.array([m.opt.density, m.opt.viscosity]), m.opt.wind, m.geom_fluid]
    if m.nsensor:
        found[counted(m.nsensor, "sensor")] = _content(m, ("sensor_",))
    if m.nmocap:
        found[f"mocap of {counted(m.nmocap, 'body', 'bodies')}"] = [m.body_mocapid]
    off = sorted(set_flags(m).keys() & _DISABLED)
    if off:
        found[f"flags that disable {', '.join(off)}"] = [np.frombuffer(" ".join(off).encode(), dtype=np.uint8)]
    shapes = {int(p) for p in m.geom_plugin if p >= 0}
    if m.nplugin > len(shapes):
        found[counted(m.nplugin - len(shapes), "plugin")] = [m.plugin, m.plugin_attr, m.body_plugin]
    return found
