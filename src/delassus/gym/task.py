"""Tasks of environments: initial states, observations, rewards and termination, for batches of worlds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..model import Model
from .rotations import from_rotation_vectors, rotate_back, tilt_cosine
from .servos import actuated

__all__ = ["Batch", "LeggedTask", "Start", "Task"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Batch:
    """States of n worlds, after an action or a reset.

    The result for a row must not depend on the others: a single world must give the same bits. So sum along rows of arrays in C order (``q.take(columns, axis=1)`` is,
    ``q[:, columns]`` is not), and use no matrix products.

    Attributes:
        q: (n, nq) configurations; v: (n, nv) velocities.
        time: (n,) time since the episode began [s].
        contact_forces: (n, nbody, 3) total contact force on each body, in world axes [N], in the last step.
        action: (n, nu) the last action, from −1 to 1; previous_action: (n, nu) the one before. Zero after a reset.
        goal: (n, goals) goals of the episodes, from :class:`Start`.
    """

    q: Array
    v: Array
    time: Array
    contact_forces: Array
    action: Array
    previous_action: Array
    goal: Array

    def action_cost(self) -> Array:
        """(n,) mean square of the last action and of its change."""
        change = self.action - self.previous_action
        return np.asarray((self.action**2).mean(axis=1) + (change**2).mean(axis=1))


@dataclass(frozen=True, eq=False)
class Start:
    """Initial states of k episodes.

    Attributes:
        q: (k, nq); v: (k, nv).
        goal: (k, goals) goals that the task keeps for the episode.
    """

    q: Array
    v: Array
    goal: Array


class Task(ABC):
    """A task: a model with observations and rewards, for batches.

    Actions are (n, nu) from −1 to 1; controls are ``nominal + reach · action``: targets of the servos.

    Attributes:
        model: the mechanism. nominal: (nu,) controls of action zero. reach: (nu,) or a number, added by an action of 1.
        observations: number of observations; goals: number of goals of a :class:`Start`; draws: number of random numbers per start.
        timestep: simulation time step [s]; frame_skip: number of simulation steps per action; max_episode_steps: number of actions until an episode is truncated.
    """

    model: Model
    nominal: Array
    reach: Array | float
    observations: int
    goals: int = 0
    draws: int
    timestep: ClassVar[float] = 4e-3
    frame_skip: ClassVar[int] = 5
    max_episode_steps: ClassVar[int] = 250

    @abstractmethod
    def start(self, draws: Array) -> Start:
        """Return the initial states of episodes, as a function of uniform random numbers (k, draws) from −1 to 1."""

    @abstractmethod
    def observe(self, batch: Batch) -> Array:
        """Return observations (n, observations), of magnitude about one."""

    @abstractmethod
    def reward(self, batch: Batch) -> Array:
        """Return (n,) the reward of the last action."""

    def terminated(self, batch: Batch) -> Array:
        """Return (n,) whether the episode failed, or is done; default: never."""
        return np.zeros(len(batch.q), dtype=bool)

    def control(self, action: Array) -> Array:
        """Return controls (n, nu) for actions."""
        return np.asarray(self.nominal + self.reach * action)


class LeggedTask(Task):
    """A robot with a free base whose motors are servos.

    Observations are the base's height, the vertical in its axes (3), its linear and angular velocity in its axes (3 + 3), motor angles minus nominal ones, their velocities
    and the last action (nu each).

    Args:
        model: model with servos.
        home: (nq,) nominal initial configuration, with the base unrotated.
        nominal: (nu,) targets for action zero.
        reach: change of target by an action of 1 [rad].
    """

    def __init__(self, model: Model, home: Array, nominal: Array, reach: float) -> None:
        self.model, self.home, self.nominal, self.reach = model, home, nominal, reach
        self.at, self.rate = actuated(model)
        self.observations = 10 + 3 * len(self.at)
        self.draws = 9 + len(self.at)

    def around_home(
        self, draws: Array, *, lift: float = 0.01, turn: ArrayLike = 0.0, joints: float = 0.0, velocity: ArrayLike = 0.0
    ) -> Start:
        """Return starts around home.

        Args:
            draws: (k, 9 + nu) random numbers from −1 to 1.
            lift: height added to the base, so that rotated feet are above the floor [m].
            turn: largest rotation vector of the base (3,), or one number for each of its coordinates [rad].
            joints: largest change of a motor's angle [rad].
            velocity: largest velocity of the base (6,), linear in world axes, then angular [m/s, rad/s].
        """
        q = np.tile(self.home, (len(draws), 1))
        q[:, 2] += lift
        q[:, 3:7] = from_rotation_vectors(np.asarray(turn) * draws[:, :3])
        q[:, self.at] += joints * draws[:, 9:]
        v = np.zeros((len(draws), self.model.nv))
        v[:, :6] = np.asarray(velocity) * draws[:, 3:9]
        return Start(q, v, np.zeros((len(draws), 0)))

    def observe(self, batch: Batch) -> Array:
        """Return the observations listed above, with velocities scaled to about one."""
        q, v = batch.q, batch.v
        turn = q[:, 3:7]
        down = rotate_back(turn, np.broadcast_to([0.0, 0.0, -1.0], (len(q), 3)))
        return np.concatenate(
            [
                q[:, 2:3],
                down,
                rotate_back(turn, v[:, :3]),
                0.25 * v[:, 3:6],
                q.take(self.at, axis=1) - self.nominal,
                0.1 * v.take(self.rate, axis=1),
                batch.action,
            ],
            axis=1,
        )

    @staticmethod
    def upright(batch: Batch) -> Array:
        """(n,) cosine of the base's tilt."""
        return tilt_cosine(batch.q[:, 3:7])
