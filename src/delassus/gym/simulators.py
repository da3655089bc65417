"""Environments of one simulator each, for any model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from .. import scenes
from .._door import count, number
from ..errors import ArgumentError, UnstableError
from ..model import Model
from ..simulator import Simulator, StepResult
from ..state import integrate
from .drawing import check_mode, drawn

__all__ = ["Go2Env", "Moment", "SimulatorEnv"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Moment:
    """One step of an environment, passed to reward functions.

    Attributes:
        model: the mechanism.
        before: (nq,) configuration before the action; step: the last of its simulation steps, with ``q``, ``v``, ``contacts``.
        action: (nu,) as given.
        seconds: simulated duration of the action [s].
    """

    model: Model
    before: Array
    step: StepResult
    action: Array
    seconds: float


class SimulatorEnv(gymnasium.Env[Array, Array]):
    """A :class:`~delassus.Simulator` as an environment.

    Actions from −1 to 1 are mapped to the ranges of the actuators; those without a range use them directly. Observations are the configuration without the
    horizontal position of a first free joint, then the velocity.

    Args:
        model: anything that a :class:`~delassus.Simulator` takes.
        reward: function of a :class:`Moment`; default: zero.
        terminated: function of a :class:`Moment` that returns whether the episode failed; default: never. Velocities that are no longer finite also end it.
        start: (nq,) configuration of a reset; default: the keyframe ``home``, or neutral.
        noise: standard deviation of the initial coordinates, tangent to the manifold [m, rad].
        frame_skip: number of simulation steps per action.
        max_steps: number of actions after which an episode is truncated; None for no limit.
        control: function of (action, q, v) that returns the actuators' controls, evaluated before every simulation step; default: the map above.
        render_mode: "rgb_array": :meth:`render` returns pictures, drawn slowly, without a graphics card; None: no pictures.
        **options: passed to :class:`~delassus.Simulator`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        model: Any,
        *,
        reward: Callable[[Moment], float] | None = None,
        terminated: Callable[[Moment], bool] | None = None,
        start: Any = None,
        noise: float = 0.0,
        frame_skip: int = 10,
        max_steps: int | None = 1000,
        control: Callable[[Array, Array, Array], Array] | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.render_mode = check_mode(render_mode)
        self.simulator = sim = Simulator(model, **options)
        if not sim.model.actuators:
            raise ArgumentError(f"model: expected actuators for the actions to drive, got none in {sim.model.name!r}.")
        self.frame_skip = count(frame_skip, "frame_skip")
        self.metadata = self.metadata | {"render_fps": max(1, round(1 / (self.frame_skip * sim.timestep)))}
        self.max_steps = None if max_steps is None else count(max_steps, "max_steps")
        self.noise = number(noise, "noise", minimum=0.0)
        self._reward, self._terminated, self._control = reward, terminated, control
        keys = sim.model.keyframes
        sim.reset(keys.get("home") if start is None else start)
        self._start, self._steps = sim.q, 0
        first = sim.model.joints[0].type if sim.model.joints else ""
        self._hidden = 2 if first == "free" else 0
        ranges = np.array([a.control_range for a in sim.model.actuators], dtype=float)
        bounded = np.isfinite(ranges).all(axis=1)
        self._middle = np.where(bounded, ranges.sum(axis=1) / 2, 0.0) if bounded.any() else np.zeros(len(ranges))
        self._half = np.where(bounded, np.ptp(np.where(bounded[:, None], ranges, 0.0), axis=1) / 2, 1.0)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (len(ranges),), np.float64)
        size = sim.model.nq - self._hidden + sim.model.nv
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)

    def _observation(self) -> Array:
        return np.concatenate([self.simulator.q[self._hidden :], self.simulator.v])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seed of the noise.
            options: ``{"q": …, "v": …}`` to start from a given state.

        Returns:
            the observation, and ``{"time": 0}``.
        """
        super().reset(seed=seed)
        sim, given = self.simulator, options or {}
        q = given.get("q", self._start)
        if self.noise and "q" not in given:
            q = integrate(sim.model, self._start, self.np_random.standard_normal(sim.model.nv), self.noise)
        sim.reset(q, given.get("v"))
        self._steps = 0
        return self._observation(), {"time": sim.time}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Apply an action for ``frame_skip`` steps.

        Args:
            action: (nu,) from −1 to 1; larger values are clipped.

        Returns:
            observation, reward, whether the episode failed, whether the time limit was reached, and a dict with ``time``, ``contacts``, ``status``, ``residual`` and ``penetration``.
        """
        sim = self.simulator
        wanted = np.clip(np.asarray(action, dtype=float), -1.0, 1.0)
        before, saved = sim.q, sim.save()
        self._steps += 1
        try:
            for _ in range(self.frame_skip):
                control = self._middle + self._half * wanted if self._control is None else self._control(wanted, sim.q, sim.v)
                last = sim.step(control=control)
        except UnstableError:
            sim.restore(saved)
            return self._observation(), 0.0, True, False, {"time": sim.time, "status": "unstable"}
        moment = Moment(sim.model, before, last, wanted, self.frame_skip * sim.timestep)
        reward = 0.0 if self._reward is None else float(self._reward(moment))
        failed = self._terminated is not None and bool(self._terminated(moment))
        late = self.max_steps is not None and self._steps >= self.max_steps
        facts = {
            "time": last.time, "contacts": len(last.contacts), "status": last.status, "residual": last.residual, "penetration": last.penetration,
        }  # fmt: skip
        return self._observation(), reward, failed, late, facts

    def render(self) -> Any:
        """Draw the mechanism: (240, 320, 3) numbers from 0 to 255; None without a ``render_mode``."""
        return None if self.render_mode is None else drawn(self.simulator.model, self.simulator.q)


class Go2Env(SimulatorEnv):
    """The quadruped Go2 on a floor. Actions move the joint targets by up to 0.5 rad from standing; motors track them as springs and dampers.

    The reward is the forward velocity, at most ``speed``, minus a cost of torques and tilt; task "stand" rewards height instead, starting from lying on the floor. An episode ends when it
    falls over.

    Args:
        task: "walk" or "stand".
        speed: desired forward speed [m/s].
        **options: passed to :class:`SimulatorEnv`.
    """

    stiffness, damping, reach = 40.0, 1.0, 0.5  # N m/rad, N m s/rad, rad

    def __init__(self, task: str = "walk", *, speed: float = 0.5, **options: Any) -> None:
        if task not in ("walk", "stand"):
            raise ArgumentError(f"task: expected 'walk' or 'stand', got {task!r}.")
        self.speed = number(speed, "speed", minimum=0.0)
        model = scenes.on_floor("go2")
        self._stand = np.array(model.keyframes["home"])
        joints = [model.joint_index(a.joint) for a in model.actuators if a.joint is not None]
        self._at, self._rate = model.joint_qadr[joints], model.joint_vadr[joints]
        start = self._stand.copy()
        if task == "stand":  # folded legs, belly just above the floor
            start[self._at] = np.tile([0.0, 1.4, -2.6], 4)
            start[2] = 0.12
        defaults: dict[str, Any] = {"noise": 0.01, "frame_skip": 10, "timestep": 2e-3, "max_steps": 500, "start": start}
        super().__init__(
            model,
            reward=self._walking if task == "walk" else self._rising,
            terminated=_fallen,
            control=self._follow,
            **(defaults | options),
        )

    def _follow(self, action: Array, q: Array, v: Array) -> Array:
        target = self._stand[self._at] + self.reach * action
        return np.asarray(self.stiffness * (target - q[self._at]) - self.damping * v[self._rate])

    def _walking(self, m: Moment) -> float:
        forwards = (m.step.q[0] - m.before[0]) / m.seconds
        return float(min(forwards, self.speed) - 0.05 * np.square(m.action).mean() - 0.2 * (1 - _upright(m.step.q)))

    def _rising(self, m: Moment) -> float:
        return float(min(m.step.q[2] / self._stand[2], 1.0) - 0.05 * np.square(m.action).mean() - 0.2 * (1 - _upright(m.step.q)))


def _upright(q: Array) -> float:
    """Cosine of the tilt of a free body."""
    return float(1 - 2 * (q[4] ** 2 + q[5] ** 2))


def _fallen(m: Moment) -> bool:
    return _upright(m.step.q) < 0.3
