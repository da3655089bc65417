"""The quadruped Go2 walks, and stands up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import scenes
from .._door import number
from .rotations import rotate_back
from .servos import actuated, with_servos
from .task import Batch, LeggedTask, Start

__all__ = ["Go2StandUp", "Go2Walk"]

Array = NDArray[Any]

_STIFFNESS, _DAMPING = 40.0, 1.0  # N m/rad, N m s/rad


class Go2Walk(LeggedTask):
    """Go2 walks forwards on a floor.

    - Action (12): joint targets, up to 0.4 rad from standing.
    - Observation (46): see :class:`LeggedTask`.
    - Reward: exp(−8 (forward velocity − speed)²) + 0.3 · cosine of the tilt − 0.2 (sideways velocity² + yaw rate²) − 0.02 · action cost; velocities in the base's axes.
    - Start: standing, joints and base slightly perturbed. Terminated: tilt above 72° or base lower than 12 cm. Truncated after 500 actions of 20 ms.

    Args:
        speed: desired speed [m/s].
    """

    max_episode_steps = 500

    def __init__(self, *, speed: float = 0.5) -> None:
        self.speed = number(speed, "speed")
        model = with_servos(scenes.on_floor("go2"), _STIFFNESS, _DAMPING)
        home = np.array(model.keyframes["home"])
        super().__init__(model, home, home[actuated(model)[0]], 0.4)

    def start(self, draws: Array) -> Start:
        """Return standing robots, slightly perturbed."""
        return self.around_home(draws, turn=0.05, joints=0.05, velocity=0.1)

    def reward(self, batch: Batch) -> Array:
        """Return the reward above."""
        along = rotate_back(batch.q[:, 3:7], batch.v[:, :3])
        off = along[:, 1] ** 2 + batch.v[:, 5] ** 2
        return np.asarray(
            np.exp(-8.0 * (along[:, 0] - self.speed) ** 2) + 0.3 * self.upright(batch) - 0.2 * off - 0.02 * batch.action_cost()
        )

    def terminated(self, batch: Batch) -> Array:
        """Return which robots have fallen."""
        return np.asarray((self.upright(batch) < 0.3) | (batch.q[:, 2] < 0.12))


class Go2StandUp(LeggedTask):
    """Go2 lies on the floor with folded legs and learns to stand.

    - Action (12): joint targets, up to 1.2 rad from the folded pose, so that with action zero it stays down.
    - Observation (46): see :class:`LeggedTask`.
    - Reward: h · u · (1 + p)/2 − 0.02 · action cost − 0.002 · mean square of joint velocities, with h = 1 − |1 − height/standing height|, the cosine u of the tilt (both not below zero) and
      p = exp(−4 · mean square of joint angles minus standing ones). Standing still earns about 0.95 per action, lying about 0.25.
    - Start: folded, joints up to 0.2 rad and the base up to ``tilt`` off. Never terminated. Truncated after 150 actions of 20 ms.

    Args:
        tilt: largest initial roll and pitch [rad].
    """

    max_episode_steps = 150

    def __init__(self, *, tilt: float = 0.3) -> None:
        self.tilt = number(tilt, "tilt", minimum=0.0)
        model = with_servos(scenes.on_floor("go2"), _STIFFNESS, _DAMPING)
        self.standing = np.array(model.keyframes["home"])
        folded, at = self.standing.copy(), actuated(model)[0]
        folded[at] = np.tile([0.0, 1.4, -2.6], 4)
        folded[2] = 0.12
        super().__init__(model, folded, folded[at], 1.2)

    def start(self, draws: Array) -> Start:
        """Return robots lying in random poses."""
        return self.around_home(draws, lift=0.1 * self.tilt, turn=[self.tilt, self.tilt, 0.0], joints=0.2)

    def reward(self, batch: Batch) -> Array:
        """Return the reward above."""
        height = np.maximum(1.0 - np.abs(1.0 - batch.q[:, 2] / self.standing[2]), 0.0)
        pose = ((batch.q.take(self.at, axis=1) - self.standing[self.at]) ** 2).mean(axis=1)
        haste = (batch.v.take(self.rate, axis=1) ** 2).mean(axis=1)
        stands = height * np.maximum(self.upright(batch), 0.0) * (0.5 + 0.5 * np.exp(-4.0 * pose))
        return np.asarray(stands - 0.02 * batch.action_cost() - 0.002 * haste)
