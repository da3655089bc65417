"""Lines about everything in a MuJoCo model that affects or reports MuJoCo's motion, but is not used in ours.

Omissions of elements that are converted one by one (loops, actuators, joints) are listed in ``from_mujoco``; the others here. ``tests/model/test_every_attribute.py`` has the verdict on every
attribute of MJCF.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mujoco
import numpy as np

from .geometry import counted, set_flags, touching

__all__ = ["omitted"]

# settings of MuJoCo's solver and integrator: options with their enumerations, and flags
_METHOD = {
    "integrator": "mjtIntegrator", "cone": "mjtCone", "impratio": None, "solver": "mjtSolver", "jacobian": "mjtJacobian", "iterations": None,
    "tolerance": None, "ls_iterations": None, "ls_tolerance": None, "noslip_iterations": None, "noslip_tolerance": None, "apirate": None,
}  # fmt: skip
_METHOD_FLAGS = ("eulerdamp", "refsafe", "sleep", "diagexact", "ipc", "speculative")


@lru_cache(maxsize=1)
def _default() -> mujoco.MjModel:
    """Return a model with MuJoCo's default for every attribute."""
    return mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom name='a' size='1'/></body><geom name='b' size='1'/></worldbody><contact><pair geom1='a' geom2='b'/></contact></mujoco>"
    )


def _rows(m: mujoco.MjModel, name: str, where: Any = slice(None)) -> int:
    """Return the number of rows of an array with a nonzero number; zero if this version lacks the array."""
    array = np.asarray(getattr(m, name, np.zeros(0)))
    array = array[where] if len(array) else array
    return int(np.count_nonzero(array.any(axis=tuple(range(1, array.ndim))) if array.ndim > 1 else array))


def _method(m: mujoco.MjModel) -> list[str]:
    """Return the settings of MuJoCo's own solver and integrator that are not its defaults."""
    found, opt, default = [], m.opt, _default().opt
    for name, enumeration in _METHOD.items():
        value = getattr(opt, name, None)
        if value == getattr(default, name, None):
            continue
        shown = getattr(mujoco, enumeration)(value).name.split("_", 1)[1].lower() if enumeration else f"{value:g}"
        found.append(f"{name} {shown}")
    found += [f"{name} {way}d" for name, way in set_flags(m).items() if name in _METHOD_FLAGS]
    return [f"settings of MuJoCo's solver and integrator ({', '.join(found)})"] if found else []


def _soft(m: mujoco.MjModel) -> list[str]:
    """Report softness parameters of anything that takes part: constraints are rigid here."""
    default, geoms = _default(), touching(m)
    rows = [
        (m.geom_solref[geoms], default.geom_solref[0]), (m.geom_solimp[geoms], default.geom_solimp[0]),
        (m.pair_solref, default.pair_solref[0]), (m.pair_solimp, default.pair_solimp[0]), (m.pair_solreffriction, default.pair_solreffriction[0]),
        (m.jnt_solref, default.jnt_solref[0]), (m.jnt_solimp, default.jnt_solimp[0]), (m.dof_solref, default.dof_solref[0]), (m.dof_solimp, default.dof_solimp[0]),
        (m.tendon_solref_lim, default.geom_solref[0]), (m.tendon_solimp_lim, default.geom_solimp[0]), (m.tendon_solref_fri, default.geom_solref[0]), (m.tendon_solimp_fri, default.geom_solimp[0]),
        (m.eq_solref, default.geom_solref[0]), (m.eq_solimp, default.geom_solimp[0]),
    ]  # fmt: skip
    if "override" in set_flags(m):
        rows += [(m.opt.o_solref[None], default.opt.o_solref), (m.opt.o_solimp[None], default.opt.o_solimp)]
    soft = any(len(values) and np.any(values != usual) for values, usual in rows)
    return ["softness of constraints (solref, solimp): they are rigid here"] if soft else []


def _contacts(m: mujoco.MjModel) -> list[str]:
    # later MuJoCo versions only
    n = _rows(m, "geom_adhesion") + _rows(m, "pair_adhesion")
    return [f"adhesion of {counted(n, 'shape')}"] if n else []


def _below_mocap(m: mujoco.MjModel) -> int:
    """Return the number of joints below mocap bodies: their tree would move with the body."""
    carried = np.zeros(m.nbody, dtype=bool)
    for b in range(1, m.nbody):
        carried[b] = m.body_mocapid[b] >= 0 or carried[m.body_parentid[b]]
    return int(np.count_nonzero(carried[m.jnt_bodyid])) if m.njnt else 0


def omitted(m: mujoco.MjModel) -> list[str]:
    """Return the elements that affect or report MuJoCo's motion but not ours, one line each."""
    counts = [(m.nflex, "flex", "flexes"), (_below_mocap(m), "joint below a mocap body", "joints below mocap bodies")]
    lines = [counted(n, what, plural) for n, what, plural in counts if n]
    lines += _contacts(m)
    return lines + _soft(m) + _method(m)
