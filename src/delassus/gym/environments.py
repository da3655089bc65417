"""Gymnasium environments of a task: many worlds together, or one."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from .._door import conform, count, finite, number, unknown
from ..errors import ArgumentError, ArgumentTypeError, MujocoError
from ..worlds import Worlds
from .arm import ArmPush
from .cassie import CassieHop
from .drawing import check_mode, drawn
from .draws import uniform
from .g1 import G1Balance
from .go2 import Go2StandUp, Go2Walk
from .gripper import GripperLift
from .task import Batch, Task

__all__ = ["TASKS", "WorldEnv", "WorldsEnv"]

Array = NDArray[Any]

TASKS: dict[str, type[Task]] = {task.__name__: task for task in (Go2Walk, Go2StandUp, G1Balance, CassieHop, ArmPush, GripperLift)}
"""Tasks by name."""

_STOPPED = [Worlds.STATUSES.index(name) for name in ("unstable", "singular", "failed")]


class WorldsEnv(gymnasium.vector.VectorEnv[Array, Array, Array]):
    """Many worlds of one task, stepped together in native threads: a vector environment on :class:`~delassus.Worlds`.

    Actions and observations are float32. Observations and rewards are computed for all worlds together.

    With a seed s, world k starts its episodes as a :class:`WorldEnv` with seed s + k does, bit for bit: a start depends only on the world's seed and the number of its episode.
    A world whose step fails (see ``infos["status"]``) is terminated with reward 0.

    Args:
        task: a name of ``TASKS``, with or without Gymnasium's "delassus/" and "-v0", or a :class:`Task` of your own.
        num_envs: number of worlds.
        autoreset_mode: what happens to a world whose episode ended. "NextStep": the next call of :meth:`step` ignores its action, resets it and returns its first observation with reward 0.
            "SameStep": it is reset immediately; ``infos["final_obs"]`` has the last observation. "Disabled": it continues until you reset it, by ``reset(options={"reset_mask": mask})``.
        max_episode_steps: number of actions after which an episode is truncated; default: the task's; None: never.
        frame_skip: number of simulation steps per action; timestep: simulation time step [s]. Default: the task's.
        threads: number of threads; default: number of processors available to this process.
        render_mode: "rgb_array": :meth:`render` returns a picture of every world.
        **options: options of the task, if it is given by name.

    Attributes:
        worlds: the :class:`~delassus.Worlds`, for inspection; task: the :class:`Task`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50, "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        task: str | Task,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | str | None = "task's",
        frame_skip: int | None = None,
        timestep: float | None = None,
        threads: int | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.render_mode = check_mode(render_mode)
        self.task = task = _task(task, options)
        self.num_envs = n = count(num_envs, "num_envs")
        try:
            self._mode = AutoresetMode(autoreset_mode)
        except ValueError:
            raise ArgumentError(f"autoreset_mode: expected one of {[m.value for m in AutoresetMode]}, got {autoreset_mode!r}.") from None
        limit = task.max_episode_steps if max_episode_steps == "task's" else max_episode_steps
        self.max_episode_steps = None if limit is None else count(limit, "max_episode_steps")
        self.frame_skip = count(task.frame_skip if frame_skip is None else frame_skip, "frame_skip")
        step = task.timestep if timestep is None else number(timestep, "timestep")
        cores = min(n, len(os.sched_getaffinity(0))) if threads is None else threads
        self.worlds = Worlds(task.model, n, threads=cores, timestep=step)
        self.metadata = self.metadata | {"autoreset_mode": self._mode, "render_fps": max(1, round(1 / (self.frame_skip * step)))}

        nu = len(task.nominal)
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (nu,), np.float32)
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (task.observations,), np.float32)
        self.action_space = batch_space(self.single_action_space, n)
        self.observation_space = batch_space(self.single_observation_space, n)

        # next start of each world, and progress of its episode
        self._seeds: NDArray[np.uint64] | None = None
        self._episodes, self._steps = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self._resting = np.zeros(n, dtype=bool)  # worlds whose episode ended, to be reset by the next step
        w = self.worlds
        self._batch = Batch(w.q, w.v, w.time, w.contact_forces, np.zeros((n, nu)), np.zeros((n, nu)), np.zeros((n, task.goals)))

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start episodes.

        Args:
            seed: s: world k gets the seed s + k; a list: one for each, None for those that continue. None: the next episode of the current seeds; initially, random ones.
            options: ``{"reset_mask": mask}``, (num_envs,), to reset some worlds; ``{"q": …, "v": …}``, one row for all or one for each that is reset, to start from given states; ``{"stagger": True}``
                to truncate the first episode of world k after (k + 1)/num_envs of the limit, so that episodes do not all end at the same time.

        Returns:
            observations (num_envs, observations), and infos.
        """
        given = dict(options or {})
        mask = np.ones(self.num_envs, dtype=bool)
        if (wanted := given.pop("reset_mask", None)) is not None:
            mask = np.asarray(wanted)
            if mask.dtype != bool or mask.shape != (self.num_envs,):
                raise ArgumentError(f"reset_mask: expected booleans of shape ({self.num_envs},), got {mask.dtype} of shape {mask.shape}.")
        self._seed(seed, mask)
        self._start(mask, given)
        if given.get("stagger") and self.max_episode_steps:
            self._steps[mask] = (self.max_episode_steps * np.arange(self.num_envs)[::-1] // self.num_envs)[mask]
        return self._observation(), self._infos()

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Apply actions for ``frame_skip`` simulation steps.

        Args:
            actions: (num_envs, nu) from −1 to 1; larger values are clipped.

        Returns:
            observations (num_envs, observations), rewards, whether each episode failed or is done, whether its time limit was reached (num_envs,), and infos: arrays ``time`` [s], ``status`` (see
            :attr:`Worlds.status <delassus.Worlds.status>`), with autoreset in the same step ``final_obs`` where ``_final_obs`` is true.
        """
        if self._seeds is None:
            raise ArgumentError("step: no episode has started. Call reset first.")
        batch, resting = self._batch, self._resting
        wanted = finite(conform(actions, "actions", batch.action.shape, "float64"), "actions")
        moving = ~resting
        batch.previous_action[:] = batch.action
        np.clip(wanted, -1.0, 1.0, out=batch.action)
        self.worlds.control[:] = self.task.control(batch.action)
        with suppress(MujocoError):  # reported in the status of that world; all others were stepped
            self.worlds.step(self.frame_skip, moving if resting.any() else None)
        self._steps += 1

        stopped = moving & np.isin(self.worlds.status, _STOPPED)
        rewards = np.where(stopped | resting, 0.0, self.task.reward(batch))
        terminated = moving & (self.task.terminated(batch) | stopped)
        truncated = moving & (self._steps >= self.max_episode_steps) if self.max_episode_steps else np.zeros(self.num_envs, dtype=bool)
        ended = terminated | truncated

        # autoreset
        if resting.any():
            self._next_episode(resting)
        if self._mode == AutoresetMode.NEXT_STEP:
            self._resting = ended
        observations, infos = self._observation(), self._infos()
        if self._mode == AutoresetMode.SAME_STEP and ended.any():
            last = {"final_obs": observations, "_final_obs": ended, "final_info": infos, "_final_info": ended}
            self._next_episode(ended)
            observations, infos = self._observation(), self._infos() | last
        return observations, rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """Draw every world: (240, 320, 3) numbers from 0 to 255 each; None without a ``render_mode``."""
        return None if self.render_mode is None else tuple(drawn(self.task.model, q) for q in self.worlds.q)

    def _seed(self, seed: int | list[int | None] | None, mask: Array) -> None:
        """Set seeds for the worlds that are reset, or advance to their next episodes."""
        n = self.num_envs
        if isinstance(seed, (list, tuple, np.ndarray)):
            seeds = [None if own is None else count(own, "seed", 0) for own in seed]
            if len(seeds) != n:
                raise ArgumentError(f"seed: expected one number, or {n} of them, got {len(seeds)}.")
        else:
            seeds = [None if seed is None else count(seed, "seed", 0) + k for k in range(n)]
        super().reset(seed=seeds[0])
        if self._seeds is None:
            self._seeds = self.np_random.integers(2**63, size=n, dtype=np.uint64)
        fresh = mask & np.array([own is not None for own in seeds])
        self._seeds[fresh] = np.array([(own or 0) % 2**64 for own in seeds], dtype=np.uint64)[fresh]
        self._episodes[mask] += 1
        self._episodes[fresh] = 0

    def _next_episode(self, mask: Array) -> None:
        self._episodes[mask] += 1
        self._start(mask, {})

    def _start(self, mask: Array, given: dict[str, Any]) -> None:
        """Reset some worlds to the starts for their seeds and episodes, or to given states."""
        assert self._seeds is not None
        start, batch = self.task.start(uniform(self._seeds[mask], self._episodes[mask], self.task.draws)), self._batch
        self.worlds.reset(mask, given.get("q", start.q), given.get("v", start.v))
        batch.goal[mask] = start.goal
        batch.action[mask] = batch.previous_action[mask] = batch.contact_forces[mask] = 0.0
        self._steps[mask] = 0
        self._resting[mask] = False

    def _observation(self) -> Array:
        return self.task.observe(self._batch).astype(np.float32)

    def _infos(self) -> dict[str, Any]:
        """Return the infos of all worlds, with masks that say that all have them."""
        there = np.ones(self.num_envs, dtype=bool)
        return {"time": self.worlds.time.copy(), "_time": there, "status": self.worlds.status.copy(), "_status": there}


class WorldEnv(gymnasium.Env[Array, Array]):
    """One world of a task: the same code as :class:`WorldsEnv`, with a batch of one.

    ``gymnasium.make`` truncates its episodes by a ``TimeLimit``; if constructed directly, it never truncates them.

    Args:
        task: a name of ``TASKS``, or a :class:`Task` of your own.
        frame_skip, timestep, render_mode, **options: see :class:`WorldsEnv`.

    Attributes:
        worlds: the :class:`~delassus.Worlds`, with one world; task: the :class:`Task`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        task: str | Task,
        *,
        frame_skip: int | None = None,
        timestep: float | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self._many = many = WorldsEnv(
            task,
            autoreset_mode=AutoresetMode.DISABLED,
            max_episode_steps=None,
            frame_skip=frame_skip,
            timestep=timestep,
            render_mode=render_mode,
            **options,
        )
        self.render_mode, self.task, self.worlds, self.frame_skip = many.render_mode, many.task, many.worlds, many.frame_skip
        self.metadata = self.metadata | {"render_fps": many.metadata["render_fps"]}
        self.action_space, self.observation_space = many.single_action_space, many.single_observation_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seed of this episode and the following ones. None: the next episode of the current seed; initially, a random one.
            options: ``{"q": …, "v": …}`` to start from a given state.

        Returns:
            the observation, and ``{"time": 0, "status": "not_stepped"}``.
        """
        super().reset(seed=seed)
        observations, _ = self._many.reset(seed=seed, options=options)
        return observations[0], self._info()

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Apply an action for ``frame_skip`` simulation steps.

        Args:
            action: (nu,) from −1 to 1; larger values are clipped.

        Returns:
            observation, reward, whether the episode failed or is done, False, and a dict with ``time`` and ``status``.
        """
        one = finite(conform(action, "action", self.task.nominal.shape, "float64"), "action")
        observations, rewards, terminated, _, _ = self._many.step(one[None])
        return observations[0], float(rewards[0]), bool(terminated[0]), False, self._info()

    def render(self) -> Any:
        """Draw the mechanism: (240, 320, 3) numbers from 0 to 255; None without a ``render_mode``."""
        pictures = self._many.render()
        return None if pictures is None else pictures[0]

    def _info(self) -> dict[str, Any]:
        return {"time": float(self.worlds.time[0]), "status": self.worlds.statuses[0]}


def _task(task: str | Task, options: dict[str, Any]) -> Task:
    if isinstance(task, Task):
        if options:
            raise ArgumentError(f"{', '.join(options)}: the task that was given has its own options. Give its name instead.")
        return task
    if not isinstance(task, str):
        raise ArgumentTypeError(f"task: expected a name or a Task, got {type(task).__name__}.")
    name = task.removeprefix("delassus/").removesuffix("-v0")
    if name not in TASKS:
        raise unknown("task", task, TASKS)
    return TASKS[name](**options)
