"""Motions that another engine made: MuJoCo steps its own model, softly, and tells contacts and energies."""

import mujoco
import numpy as np

from delassus.simulator import Trajectory


def mujoco_motion(model, q, *, seconds=1.0, timestep=2e-3, every=5, push=None):
    """Let a model go from q (and velocity ``push``), and keep each ``every``-th state, from the first on."""
    m = mujoco.MjModel.from_xml_string(model.to_mjcf())
    m.opt.timestep = timestep
    m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    d = mujoco.MjData(m)
    d.qpos[:] = q
    d.qvel[:] = 0.0 if push is None else push
    frames, contacts, starts = [], [], [0]
    for k in range(round(seconds / timestep) + 1):
        mujoco.mj_forward(m, d)
        if k % every == 0:
            gaps = [0.0]
            for c in range(d.ncon):
                contact, force = d.contact[c], np.empty(6)
                mujoco.mj_contactForce(m, d, c, force)
                axes = contact.frame.reshape(3, 3)
                # MuJoCo's normal points from the first geom to the second: ours is its second body's
                bodies = [m.geom_bodyid[contact.geom[1]], m.geom_bodyid[contact.geom[0]]]
                contacts.append((contact.pos.copy(), axes[0].copy(), axes.T @ force[:3], contact.friction[0], bodies))
                gaps.append(-contact.dist)
            starts.append(len(contacts))
            loops = [np.abs(d.efc_pos[r]) for r in range(d.nefc) if d.efc_type[r] == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
            frames.append((d.time, d.qpos.copy(), d.qvel.copy(), int(d.solver_niter.max()), *d.energy, max(loops, default=0.0), max(gaps)))
        mujoco.mj_step(m, d)
    times, qs, vs, iterations, potential, kinetic, loops, depths = (np.array(x) for x in zip(*frames, strict=True))
    fields = zip(*contacts, strict=True) if contacts else (np.empty((0, *s)) for s in ((3,), (3,), (3,), ()))
    position, normal, force, friction, *bodies = (np.array(x) for x in fields)
    return Trajectory(
        model, times, qs, vs, np.array(starts), position, normal, force, friction, bodies[0] if bodies else np.empty((0, 2), int),
        np.full(len(times), "solved"), iterations, 1e-6 * np.exp(-times), kinetic, potential, loops, depths,
    )  # fmt: skip


def dropped(model, q, height=0.15, **options):
    """Let a free robot fall on its floor from ``height`` above q."""
    q = np.array(q)
    q[2] += height
    return mujoco_motion(model, q, **options)
