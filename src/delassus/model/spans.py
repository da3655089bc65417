"""Joints that change the lengths of a MuJoCo model's tendons, and equalities between these."""

from __future__ import annotations

import mujoco
import numpy as np

__all__ = ["tendon_equalities", "tendon_velocities"]


def tendon_velocities(m: mujoco.MjModel, tendon: int) -> tuple[list[int], list[int]]:
    """Return the velocities that change a tendon's length, and the places of their numbers in mjData.ten_J.

    Later versions of MuJoCo list them; in earlier ones, with ``opt.jacobian`` dense, ten_J is a table with a column for each velocity.
    """
    if hasattr(m, "ten_J_rownnz"):
        start, count = int(m.ten_J_rowadr[tendon]), int(m.ten_J_rownnz[tendon])
        return np.asarray(m.ten_J_colind)[start : start + count].tolist(), list(range(start, start + count))
    bodies = _touched_bodies(m, tendon)
    velocities = [v for v in range(m.nv) if int(m.dof_bodyid[v]) in bodies]
    return velocities, [tendon * m.nv + v for v in velocities]


def _touched_bodies(m: mujoco.MjModel, tendon: int) -> set[int]:
    """Bodies on a tendon's path, and all their ancestors."""
    bodies: set[int] = set()
    for w in range(m.tendon_adr[tendon], m.tendon_adr[tendon] + m.tendon_num[tendon]):
        kind, what = m.wrap_type[w], int(m.wrap_objid[w])
        if kind == mujoco.mjtWrap.mjWRAP_JOINT:
            bodies.add(int(m.jnt_bodyid[what]))
            continue
        if kind == mujoco.mjtWrap.mjWRAP_PULLEY:
            continue
        body = int(m.site_bodyid[what] if kind == mujoco.mjtWrap.mjWRAP_SITE else m.geom_bodyid[what])
        while body:
            bodies.add(body)
            body = int(m.body_parentid[body])
    return bodies


def tendon_equalities(m: mujoco.MjModel) -> list[int]:
    """Return the equality constraints between tendons."""
    return np.flatnonzero(m.eq_type == mujoco.mjtEq.mjEQ_TENDON).tolist()
