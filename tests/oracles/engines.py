"""MuJoCo as a peer: the same model, the same state, its numbers."""

from importlib.resources import files

import mujoco
import numpy as np

FORCES_OF_ITS_OWN = (
    mujoco.mjtDisableBit.mjDSBL_CONSTRAINT, mujoco.mjtDisableBit.mjDSBL_CONTACT, mujoco.mjtDisableBit.mjDSBL_DAMPER, mujoco.mjtDisableBit.mjDSBL_ACTUATION,
)  # fmt: skip


class MuJoCo:
    """A MuJoCo model without constraints, dampers and motors, and its data."""

    def __init__(self, m):
        self.m, self.d = m, mujoco.MjData(m)
        for bit in FORCES_OF_ITS_OWN:
            m.opt.disableflags |= bit
        m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY

    @classmethod
    def of_asset(cls, name):
        return cls(mujoco.MjModel.from_xml_path(str(files("delassus") / "assets" / f"{name}.xml")))

    @classmethod
    def of_model(cls, model):
        return cls(mujoco.MjModel.from_xml_string(model.to_mjcf()))

    def set(self, q, v, tau=0.0, external_forces=0.0):
        """Compute everything in a state; springs are counted in the energy but push nobody."""
        d = self.d
        d.qpos[:], d.qvel[:], d.qfrc_applied[:], d.xfrc_applied[:] = q, v, tau, external_forces
        mujoco.mj_forward(self.m, d)
        self.potential = d.energy[0] - self._static_potential()
        self.kinetic = d.energy[1]
        with_springs = self.m.opt.disableflags
        self.m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SPRING
        mujoco.mj_forward(self.m, d)
        self.m.opt.disableflags = with_springs
        return d

    def _static_potential(self):
        # MuJoCo counts bodies that cannot move
        static = self.m.body_weldid == 0
        return -(self.m.body_mass * static) @ self.d.xipos @ self.m.opt.gravity

    @property
    def mass_matrix(self):
        M = np.zeros((self.m.nv, self.m.nv))
        try:
            mujoco.mj_fullM(self.m, M, self.d.qM)
        except (TypeError, AttributeError):
            # from MuJoCo 4 on
            mujoco.mj_fullM(self.m, self.d, M)
        return M

    def jacobian(self, body, point):
        """Jacobian [linear; angular] of a point given in body coordinates."""
        J, x = np.zeros((6, self.m.nv)), self.d.xpos[body] + self.d.xmat[body].reshape(3, 3) @ point
        mujoco.mj_jac(self.m, self.d, J[:3], J[3:], x, body)
        return J

    def integrate(self, q, v, dt):
        out = q.copy()
        mujoco.mj_integratePos(self.m, out, v, dt)
        return out

    def difference(self, q_from, q_to):
        out = np.zeros(self.m.nv)
        mujoco.mj_differentiatePos(self.m, out, 1.0, q_from, q_to)
        return out
