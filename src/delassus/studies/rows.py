"""Runs rows of a study, each as a world of its own. What a row gives depends on its values and its number only, not on the rows beside it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._door import finite, numbers
from ..errors import ArgumentError, CapacityError, DelassusError, FunctionError, MujocoError, SingularError, UnstableError
from ..simulator import Simulator
from .job import Job
from .metrics import Run, measured

__all__ = ["RowStart", "Runner", "Stopped"]

Array = NDArray[Any]
BLOCK = 100  # steps between two looks at whether to stop


class Stopped(BaseException):
    """The study was interrupted."""


@dataclass(frozen=True, eq=False)
class RowStart:
    """What a function that gives initial states is told of a row.

    Attributes:
        number: of the row.
        parameters: name → its value in this row.
        seed: of the study.
    """

    number: int
    parameters: Mapping[str, Any]
    seed: int

    @cached_property
    def rng(self) -> np.random.Generator:
        """Random numbers that depend on the seed of the study and the number of the row only."""
        return np.random.default_rng([self.seed, self.number])


def values_of(columns: Mapping[str, Array], k: int) -> dict[str, Any]:
    """Return the values of one row."""
    return {name: column[k] if column.ndim > 1 else float(column[k]) for name, column in columns.items()}


class Runner:
    """Runs rows one after the other, in one thread.

    Args:
        job: the study.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self._sim: Simulator | None = None

    def run(self, first: int, last: int, columns: Mapping[str, Array], stop: Callable[[], bool]) -> dict[str, Array]:
        """Run rows.

        Args:
            first: number of the first one; last: one beyond the last.
            columns: name → their values.
            stop: says whether to give up.

        Returns:
            Metrics of all rows, NaN where a run failed; ``status``, ``unsolved`` and ``unstable``.

        Raises:
            FunctionError: a function of the user's failed.
            Stopped: ``stop`` said so.
        """
        rows = [self._row(first + k, values_of(columns, k), stop) for k in range(last - first)]
        found = {name: np.array([row[name] for row in rows]) for name in (*self.job.metrics, "unsolved", "unstable")}
        return found | {"status": np.array([row["status"] for row in rows])}

    def _row(self, number: int, values: dict[str, Any], stop: Callable[[], bool]) -> dict[str, Any]:
        job = self.job
        q, v = initial_state(job, number, values)
        control = control_of(job, values)
        sim = self._simulator(values)
        sim.reset(q, v)
        frames = [(0.0, q, v, 0.0, 0.0)]
        unsolved, status, unstable = 0, "solved", -1
        for done in range(0, job.steps, job.every):
            if stop():
                raise Stopped
            deepest = largest = 0.0
            try:
                for k in range(done, min(done + job.every, job.steps)):
                    unstable = k
                    step = sim.step(control=control(k, sim.time, sim.q, sim.v))
                    unsolved += step.status != "solved"
                    deepest = max(deepest, step.penetration)
                    largest = max(largest, float(np.linalg.norm(step.body_forces(job.model.nbody), axis=1).max()))
            except (UnstableError, SingularError, CapacityError, MujocoError) as error:
                status = {UnstableError: "unstable", SingularError: "singular"}.get(type(error), "failed")
                break
            frames.append((step.time, step.q, step.v, deepest, largest))
        else:
            unstable = -1
            status = "unsolved" if unsolved else "solved"
        row = {"unsolved": unsolved, "unstable": unstable, "status": status}
        if unstable >= 0:
            sizes = {"q": job.model.nq, "v": job.model.nv}
            return row | {name: np.full(sizes[name], np.nan) if name in sizes else np.nan for name in job.metrics}
        run = Run(job.model, number, values, sim.timestep, *(np.array(part) for part in zip(*frames, strict=True)))
        return row | {name: measured(name, metric, run) for name, metric in job.metrics.items()}

    def _simulator(self, values: Mapping[str, Any]) -> Simulator:
        job = self.job
        changed = {t: values[name] for name, t in job.targets.items() if t.array not in ("q", "v", "control")}
        if self._sim is not None and not changed:
            return self._sim
        m = job.model.to_mujoco()
        for target, value in changed.items():
            if target.array == "friction":
                m.geom_friction[:, 0] = value
            elif target.array == "mass_scale":
                m.body_mass[:] *= value
                m.body_inertia[:] *= value
            else:
                (m.opt.gravity if target.array == "gravity" else getattr(m, target.array))[target.index or ...] = value
        self._sim = Simulator(m if changed else job.model, **job.options)
        return self._sim


def initial_state(job: Job, number: int, values: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return (q, v) that a row starts from."""
    model = job.model
    if callable(job.initial):
        try:
            given = job.initial(RowStart(number, values, job.seed))
            q, v = given if isinstance(given, tuple) else (given, np.zeros(model.nv))
            q, v = np.array(numbers(q, "q", (model.nq,))), np.array(numbers(v, "v", (model.nv,)))
        except Exception as error:
            raise FunctionError(f"initial: the function failed in row {number}: {type(error).__name__}: {error}") from error
    else:
        q, v = (np.array(part) for part in job.initial)
    put(job, "q", q, values)
    put(job, "v", v, values)
    return q, v


def put(job: Job, array: str, into: Array, values: Mapping[str, Any]) -> None:
    """Write the columns of a row that are of this array."""
    for name, target in job.targets.items():
        if target.array == array:
            into[target.index or ...] = values[name]


def control_of(job: Job, values: Mapping[str, Any]) -> Callable[[int, float, Array, Array], Array]:
    """Return the controls of a row as a function of step, time, q and v."""
    if callable(job.controls):
        steer = job.controls
        return lambda k, time, q, v: np.asarray(steer(time, q, v), dtype=float)
    every = np.zeros(job.model.nu) if job.controls is None else np.array(job.controls)
    if every.ndim == 1:
        put(job, "control", every, values)
        return lambda k, time, q, v: every
    return lambda k, time, q, v: every[k]
