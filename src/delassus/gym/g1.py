"""The humanoid G1 keeps its balance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import scenes
from .._door import number
from .servos import actuated, with_servos
from .task import Batch, LeggedTask, Start

__all__ = ["G1Balance"]

Array = NDArray[Any]


class G1Balance(LeggedTask):
    """G1 stands on a floor, is pushed, and has to stay upright.

    - Action (29): joint targets, up to 0.3 rad from standing.
    - Observation (97): see :class:`LeggedTask`.
    - Reward: cosine of the tilt · height/standing height (at most 1) − 0.1 · horizontal speed² of the base − 0.02 · action cost.
    - Start: standing, with a random velocity of the base of up to ``push`` in each direction. Terminated: tilt above 60° or base lower than 50 cm. Truncated after 250 actions of 20 ms.

    Args:
        push: largest initial velocity of the base in each direction [m/s].
    """

    def __init__(self, *, push: float = 0.4) -> None:
        self.push = number(push, "push", minimum=0.0)
        model = with_servos(scenes.on_floor("g1"), 200.0, 5.0)
        home = np.array(model.keyframes["home"])
        super().__init__(model, home, home[actuated(model)[0]], 0.3)

    def start(self, draws: Array) -> Start:
        """Return standing robots that were pushed."""
        p = self.push
        return self.around_home(draws, turn=0.02, joints=0.02, velocity=[p, p, 0.0, p, p, p])

    def reward(self, batch: Batch) -> Array:
        """Return the reward above."""
        height = np.clip(batch.q[:, 2] / self.home[2], 0.0, 1.0)
        drift = batch.v[:, 0] ** 2 + batch.v[:, 1] ** 2
        return np.asarray(height * self.upright(batch) - 0.1 * drift - 0.02 * batch.action_cost())

    def terminated(self, batch: Batch) -> Array:
        """Return which robots have fallen."""
        return np.asarray((self.upright(batch) < 0.5) | (batch.q[:, 2] < 0.5))
