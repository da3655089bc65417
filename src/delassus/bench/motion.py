"""Our simulation of a model and MuJoCo's, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..constraints import Constraint, PointContact, from_loop
from ..errors import ArgumentError
from ..model import Model
from ..simulator import Contacts, Simulator, Trajectory
from ..state import body_placements, kinetic_energy, potential_energy

__all__ = ["Motion", "PeerMotion", "constraints_of", "run", "run_mujoco"]

Array = NDArray[Any]
Progress = Callable[[float], object]
_RESETS = tuple(getattr(mujoco.mjtWarning, f"mjWARN_BADQ{what}") for what in ("POS", "VEL", "ACC"))  # MuJoCo resets itself after these


def quiet(_: float) -> None:
    """Show nothing."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Our simulation of T steps.

    Attributes:
        trajectory: kept frames.
        seconds: (T,) duration of each step, measured in Python [s].
        stages: mean time per step of each stage [s].
        status: (T,) status of the contact solver.
        contacts: (T,) number of contacts with a force; iterations: (T,).
        residual: (T,) natural residual [m/s]; penetration, loop_error: (T,) [m].
    """

    trajectory: Trajectory
    seconds: Array
    stages: dict[str, float]
    status: Array
    contacts: Array
    iterations: Array
    residual: Array
    penetration: Array
    loop_error: Array

    @property
    def unsolved(self) -> int:
        """Number of steps that did not end "solved"."""
        return int((self.status != "solved").sum())


@dataclass(frozen=True, eq=False)
class PeerMotion:
    """MuJoCo's simulation of the same model, T steps.

    Attributes:
        seconds: (T,) duration of each step [s]; contacts: (T,) number of contacts found.
        penetration: (T,) maximum penetration before the step [m].
        finite: True if all numbers stayed finite, and nothing was reset.
    """

    seconds: Array
    contacts: Array
    penetration: Array
    finite: bool


def run(sim: Simulator, seconds: float, *, control: ArrayLike | None = None, every: int = 1, progress: Progress = quiet) -> Motion:
    """Simulate step by step and record the results.

    Args:
        sim: the simulator, from its current state.
        seconds: simulated time [s].
        control: actuator commands.
        every: number of steps between recorded frames.
        progress: called with the fraction done.
    """
    model, steps = sim.model, round(seconds / sim.timestep)
    if steps < 1:
        raise ArgumentError(f"seconds: expected at least one timestep of {sim.timestep:g} s, got {seconds:g} s.")
    times, q, v = [sim.time], [sim.q], [sim.v]
    touching: list[Contacts | None] = [None]
    kept = [-1]
    rows, took, status = [], np.empty(steps), []
    stages: dict[str, float] = {}
    for k in range(steps):
        start = time.perf_counter()
        step = sim.step(control=control)
        took[k] = time.perf_counter() - start
        for name, part in step.timings.items():
            stages[name] = stages.get(name, 0.0) + part / steps
        status.append(step.status)
        rows.append((np.count_nonzero(step.contacts.force.any(axis=1)), step.iterations, step.residual, step.penetration, step.loop_error))
        if (k + 1) % every == 0 or k + 1 == steps:
            times.append(step.time)
            q.append(step.q)
            v.append(step.v)
            touching.append(step.contacts)
            kept.append(k)
        if k % 20 == 0:
            progress((k + 1) / steps)
    progress(1.0)
    told = np.array(rows, dtype=float)
    frames = np.vstack([np.zeros(5), told[kept[1:]]])
    present = [c for c in touching if c is not None]
    words = np.array(status)
    trajectory = Trajectory(
        model=model, times=np.array(times), q=np.array(q), v=np.array(v),
        contact_start=np.concatenate([[0], np.cumsum([0 if c is None else len(c) for c in touching])]).astype(np.int64),
        contact_position=np.concatenate([c.position for c in present]), contact_normal=np.concatenate([c.normal for c in present]),
        contact_force=np.concatenate([c.force for c in present]), contact_friction=np.concatenate([c.friction for c in present]),
        contact_bodies=np.concatenate([c.bodies for c in present]), status=np.array(["solved", *words[kept[1:]]]),
        iterations=frames[:, 1].astype(np.int64), residual=frames[:, 2],
        kinetic_energy=np.array([kinetic_energy(model, a, b) for a, b in zip(q, v, strict=True)]),
        potential_energy=np.array([potential_energy(model, a) for a in q]), loop_error=frames[:, 4], penetration=frames[:, 3],
    )  # fmt: skip
    return Motion(trajectory, took, stages, words, told[:, 0].astype(int), told[:, 1].astype(int), told[:, 2], told[:, 3], told[:, 4])


def run_mujoco(
    m: Any, q: ArrayLike, v: ArrayLike, timestep: float, seconds: float, *, control: ArrayLike | None = None, progress: Progress = quiet
) -> PeerMotion:
    """Simulate the same with MuJoCo, with the model's settings except for the time step.

    Args:
        m: a ``mujoco.MjModel``; unchanged afterwards.
        q, v: initial state.
        timestep: time step [s].
        seconds: simulated time [s].
        control: actuator commands.
        progress: called with the fraction done.
    """
    before, steps = m.opt.timestep, max(1, round(seconds / timestep))
    took, contacts, depth = np.empty(steps), np.empty(steps, dtype=int), np.zeros(steps)
    m.opt.timestep, sound = timestep, True
    said = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _: None)  # it would print, and write a file; its resets are counted
    try:
        d = mujoco.MjData(m)
        d.qpos[:], d.qvel[:] = q, v
        if control is not None:
            d.ctrl[:] = control
        for k in range(steps):
            start = time.perf_counter()
            mujoco.mj_step(m, d)
            took[k] = time.perf_counter() - start
            sound = sound and not any(d.warning[kind].number for kind in _RESETS)
            contacts[k] = d.ncon
            depth[k] = max(0.0, -d.contact.dist.min(initial=0.0))
            if k % 20 == 0:
                progress((k + 1) / steps)
        progress(1.0)
        steady = sound and bool(np.isfinite(d.qpos).all())
    finally:
        m.opt.timestep = before
        mujoco.set_mju_user_warning(said)
    return PeerMotion(took, contacts, depth, steady)


def constraints_of(model: Model, q: ArrayLike, contacts: Contacts) -> list[Constraint]:
    """Make constraints for the loops of a model and for contacts at q."""
    placements = body_placements(model, q)

    def inside(body: int, x: Array) -> Array:
        return np.asarray(placements[body, :3, :3].T @ (x - placements[body, :3, 3]))

    made: list[Constraint] = [from_loop(model, loop) for loop in model.loops if loop.active]
    for x, normal, friction, (first, second) in zip(contacts.position, contacts.normal, contacts.friction, contacts.bodies, strict=True):
        body, other, sign = (first, second, 1.0) if first else (second, first, -1.0)
        made.append(
            PointContact(
                model,
                int(body),
                point=inside(body, x),
                other=int(other) or None,
                other_point=inside(other, x),
                normal=sign * normal,
                friction=friction,
            )
        )
    return made
