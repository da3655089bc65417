"""The biped Cassie hops; its legs are closed by four loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import scenes
from .servos import actuated, with_servos
from .task import Batch, LeggedTask, Start

__all__ = ["CassieHop"]

Array = NDArray[Any]

_STANDING = np.array(
    [0.04, 0.0, 0.0, -0.03, -0.08, -0.04, 0.0, 0.0, -0.03, -0.08]
)  # targets that hold it upright, minus those of the keyframe [rad]


class CassieHop(LeggedTask):
    """Cassie hops in place: rods and leaf springs of its legs are loops, kept rigidly.

    - Action (10): motor targets, up to 0.5 rad from standing.
    - Observation (42): see :class:`LeggedTask`, and the vertical force on each foot divided by the robot's weight (2).
    - Reward: cosine of the tilt (not below zero) · (0.2 + 2 if nothing touches the floor, the base is higher than 1 m (3 cm above standing) and 0.2 s have passed) − 0.1 · horizontal speed² − 0.02 · action cost.
    - Start: standing, slightly perturbed. Terminated: tilt above 60° or base lower than 60 cm. Truncated after 250 actions of 20 ms.
    """

    def __init__(self) -> None:
        model = with_servos(scenes.on_floor("cassie"), 1000.0, 30.0)
        home = np.array(model.keyframes["home"])
        super().__init__(model, home, home[actuated(model)[0]] + _STANDING, 0.5)
        self.feet = [model.body_index(f"{side}-foot") for side in ("left", "right")]
        self.weight = 9.81 * model.mass
        self.observations += 2

    def start(self, draws: Array) -> Start:
        """Return standing robots, slightly perturbed; loops stay closed."""
        return self.around_home(draws, turn=0.02, velocity=0.05)

    def observe(self, batch: Batch) -> Array:
        """Return the observations listed above."""
        return np.concatenate([super().observe(batch), batch.contact_forces[:, self.feet, 2] / self.weight], axis=1)

    def reward(self, batch: Batch) -> Array:
        """Return the reward above."""
        flies = (np.abs(batch.contact_forces).sum(axis=(1, 2)) == 0.0) & (batch.q[:, 2] > 1.0) & (batch.time > 0.2)
        drift = batch.v[:, 0] ** 2 + batch.v[:, 1] ** 2
        return np.asarray(np.maximum(self.upright(batch), 0.0) * (0.2 + 2.0 * flies) - 0.1 * drift - 0.02 * batch.action_cost())

    def terminated(self, batch: Batch) -> Array:
        """Return which robots have fallen."""
        return np.asarray((self.upright(batch) < 0.5) | (batch.q[:, 2] < 0.6))
