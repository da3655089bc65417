"""Comparison with MuJoCo at random states of any model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from . import dynamics, state
from .model import Model

__all__ = ["Comparison", "compare_with_mujoco", "full_mass_matrix"]

TOLERANCE = 1e-10


@dataclass(frozen=True)
class Comparison:
    """Largest relative error of one quantity over all states, and its tolerance."""

    quantity: str
    error: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the error is within the tolerance."""
        return bool(self.error <= self.tolerance)


def full_mass_matrix(m: mujoco.MjModel, d: mujoco.MjData) -> np.ndarray[Any, Any]:
    """MuJoCo's mass matrix as a dense array, for any supported version."""
    M = np.zeros((m.nv, m.nv))
    if hasattr(d, "qM"):
        mujoco.mj_fullM(m, M, d.qM)
    else:
        mujoco.mj_fullM(m, d, M)
    return M


def compare_with_mujoco(model: Model, peer: mujoco.MjModel, *, states: int = 20, seed: int = 0) -> list[Comparison]:
    """Compare kinematics, dynamics and energies with MuJoCo's on random states.

    Constraints, springs, dampers and actuators are switched off on MuJoCo's side; ``peer`` is not changed.

    Args:
        model: our model.
        peer: the MuJoCo model of the same robot.
        states: number of random states.
        seed: random seed of the states.

    Returns:
        One comparison per quantity; relative errors are in the maximum norm.
    """
    off = mujoco.mjtDisableBit
    flags = (peer.opt.disableflags, peer.opt.enableflags)
    for bit in (
        off.mjDSBL_CONSTRAINT,
        getattr(off, "mjDSBL_PASSIVE", 0),
        getattr(off, "mjDSBL_SPRING", 0),
        getattr(off, "mjDSBL_DAMPER", 0),
    ):
        peer.opt.disableflags |= int(bit)
    peer.opt.disableflags |= int(off.mjDSBL_ACTUATION)
    peer.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    try:
        return _compare(model, peer, states, np.random.default_rng(seed))
    finally:
        peer.opt.disableflags, peer.opt.enableflags = flags


def _compare(model: Model, peer: mujoco.MjModel, states: int, rng: np.random.Generator) -> list[Comparison]:
    worst: dict[str, float] = {}

    def note(quantity: str, ours: Any, theirs: Any) -> None:
        theirs = np.asarray(theirs)
        scale = np.abs(theirs).max(initial=0.0) or 1.0
        worst[quantity] = max(worst.get(quantity, 0.0), float(np.abs(np.asarray(ours) - theirs).max(initial=0.0) / scale))

    d = mujoco.MjData(peer)
    fixed = ~model.body_moves
    for _ in range(states):
        q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
        push = rng.standard_normal((model.nbody, 6))
        push[0] = 0.0
        d.qpos[:], d.qvel[:], d.qfrc_applied[:], d.xfrc_applied[:] = q, v, tau, push
        mujoco.mj_forward(peer, d)
        M = full_mass_matrix(peer, d)
        placements = state.body_placements(model, q)
        note("body positions", placements[:, :3, 3], d.xpos)
        note("body orientations", placements[:, :3, :3].reshape(-1, 9), d.xmat)
        body, point = int(rng.integers(model.nbody)), rng.standard_normal(3)
        J = np.zeros((6, model.nv))
        mujoco.mj_jac(peer, d, J[:3], J[3:], state.point_position(model, q, body, point), body)
        note("point Jacobian", state.frame_jacobian(model, q, body, point), J)
        note("mass matrix", dynamics.mass_matrix(model, q), M)
        note("bias forces", dynamics.bias_forces(model, q, v), d.qfrc_bias)
        note("accelerations", dynamics.forward_dynamics(model, q, v, tau, external_forces=push), d.qacc)
        note("M⁻¹M − 1", dynamics.mass_matrix_inverse(model, q) @ M - np.eye(model.nv), np.zeros(()))
        note("kinetic energy", state.kinetic_energy(model, q, v), d.energy[1])
        # MuJoCo includes the weight of fixed bodies, and leaves out springs that are switched off
        still = -(peer.body_mass[fixed] @ d.xipos[fixed]) @ model.gravity
        note("potential energy", state.potential_energy(model, q) - state.spring_energy(model, q), d.energy[0] - still)
    loose: Callable[[str], float] = lambda quantity: 1e-9 if quantity.startswith("M⁻¹") else TOLERANCE  # noqa: E731
    return [Comparison(quantity, error, loose(quantity)) for quantity, error in worst.items()]
