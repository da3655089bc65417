"""Runs rows of a study in batches of worlds. The result of a row depends only on its values and index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._door import numbers
from ..errors import ArgumentError, FunctionError, MujocoError, QuaternionError
from ..model import Model
from ..worlds import Worlds
from .columns import SCALES, STATES, write_column
from .designs import bad_rows
from .job import Job
from .metrics import Run, measured, metric_shape

__all__ = ["RowStart", "Runner"]

Array = NDArray[Any]
BATCH = 32  # number of worlds stepped together
FRAME_BYTES = 2**26  # memory limit for the frames of a batch
_ENDED = Worlds.STATUSES.index("unstable")  # the first status of worlds that have stopped


@dataclass(frozen=True, eq=False)
class RowStart:
    """Row passed to a function that returns initial states.

    Attributes:
        number: row number.
        parameters: name → its value in this row, a number or an array.
        model: model of the study.
        seed: seed of the study.
    """

    number: int
    parameters: Mapping[str, Any]
    model: Model
    seed: int

    @cached_property
    def rng(self) -> np.random.Generator:
        """Random generator that depends only on the seed of the study and the row number."""
        return np.random.default_rng([self.seed, self.number])


@dataclass
class _Motion:
    """Frames of a batch of n rows: T of each, starting with the initial state."""

    time: Array
    q: Array
    v: Array
    penetration: Array
    contact_force: Array

    @classmethod
    def empty(cls, n: int, frames: int, model: Model) -> _Motion:
        return cls(*(np.zeros((n, frames, *shape)) for shape in ((), (model.nq,), (model.nv,), (), ())))

    def take(self, frame: int, worlds: Worlds) -> None:
        """Keep the states of all rows."""
        n = len(self.time)
        for kept, live in ((self.time, worlds.time), (self.q, worlds.q), (self.v, worlds.v)):
            kept[:, frame] = live[:n]

    def see(self, frame: int, worlds: Worlds) -> None:
        """Update a frame's maxima with the last step."""
        n = len(self.time)
        forces = worlds.contact_forces[:n]
        squares = np.square(forces)
        largest = np.sqrt((squares[..., 0] + squares[..., 1] + squares[..., 2]).max(axis=1))
        for kept, value in ((self.contact_force[:, frame], largest), (self.penetration[:, frame], worlds.penetration[:n])):
            np.maximum(kept, value, out=kept)


class Runner:
    """Runs rows in one thread, and keeps its worlds for further rows.

    Args:
        job: the study.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.frames = 1 + -(-job.steps // job.every)
        per_row = 8 * self.frames * (job.model.nq + job.model.nv + 3)
        self.batch = max(1, min(BATCH, FRAME_BYTES // per_row))
        # factors first, then arrays, then single numbers of them
        parameters = [(name, target) for name, target in job.targets.items() if target.array not in STATES]
        self._parameters = sorted(parameters, key=lambda pair: (pair[1].array not in SCALES, len(pair[1].index)))
        self._worlds: Worlds | None = None
        self._places = [
            int(at) + (3 if kind == "free" else 0)
            for at, kind in zip(job.model.joint_qadr, job.model.joint_type, strict=True)
            if kind in ("free", "ball")
        ]

    def run(self, first: int, last: int, columns: Mapping[str, Array], stop: Callable[[], bool]) -> dict[str, Array] | None:
        """Run rows.

        Args:
            first: number of the first row; last: one beyond the last.
            columns: name → their values.
            stop: returns True to give up.

        Returns:
            Metrics of all rows, NaN where a run ended early; ``status``, ``unsolved`` and ``unstable``. None if ``stop`` returned True.

        Raises:
            FunctionError: a user function failed.
            QuaternionError: initial states have invalid quaternions.
            ArgumentError: parameters are invalid.
        """
        parts = []
        for start in range(first, last, self.batch):
            end = min(start + self.batch, last)
            part = {name: column[start - first : end - first] for name, column in columns.items()}
            found = self._run_batch(start, part, end - start, stop)
            if found is None:
                return None
            parts.append(found)
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _run_batch(self, first: int, columns: Mapping[str, Array], n: int, stop: Callable[[], bool]) -> dict[str, Array] | None:
        """Run at most as many rows as there are worlds: start them, step those still running, and evaluate metrics."""
        job, worlds = self.job, self._ready(first, columns)
        values = [{name: column[k] if column.ndim > 1 else float(column[k]) for name, column in columns.items()} for k in range(n)]
        self._start(worlds, first, columns, values)
        steer = self._steering(worlds, columns, n)

        alive, unstable = np.ones(n, dtype=bool), np.full(n, -1)
        status = np.full(n, "solved", dtype="U8")
        motion = _Motion.empty(n, self.frames, job.model)
        motion.take(0, worlds)
        for k in range(job.steps):
            if stop():
                return None
            steer(k, alive)
            _step(worlds, alive)
            frame = 1 + k // job.every
            motion.see(frame, worlds)
            # those that end early keep the status of that step, and stop
            codes = worlds.status[:n]
            if codes.max() >= _ENDED:
                ended = alive & (codes >= _ENDED)
                status[ended], unstable[ended] = [Worlds.STATUSES[code] for code in codes[ended]], k
                alive &= ~ended
            if (k + 1) % job.every == 0 or k + 1 == job.steps:
                motion.take(frame, worlds)
            if not alive.any():
                break
        unsolved = np.array(worlds.unsolved[:n], dtype=np.int64)
        status[alive & (unsolved > 0)] = "unsolved"
        return self._measured(first, values, motion, alive) | {"status": status, "unsolved": unsolved, "unstable": unstable}

    # ---- parts of a batch -------------------------------------------------------------------------------------------------------

    def _ready(self, first: int, columns: Mapping[str, Array]) -> Worlds:
        """Return worlds with the parameters of these rows: the model's, with factors, then overridden by columns."""
        if self._worlds is None:
            self._worlds = Worlds(self.job.model, self.batch, **self.job.options)
        worlds = self._worlds
        worlds.parameters.clear()
        for name, target in self._parameters:
            write_column(target, columns[name], worlds.parameters)
        try:
            worlds.parameters.accept()
        except ArgumentError as error:
            raise type(error)(f"{error} World k is row {first} + k.") from None
        return worlds

    def _start(self, worlds: Worlds, first: int, columns: Mapping[str, Array], values: list[dict[str, Any]]) -> None:
        """Set initial states: the common one, or that of a function, then overridden by columns."""
        job, n = self.job, len(values)
        model = job.model
        worlds.reset(slice(0, n), q=job.keyframe)
        if callable(job.initial):
            for k, row in enumerate(values):
                worlds.q[k], worlds.v[k] = self._initial(job.initial, RowStart(first + k, row, model, job.seed))
        else:
            worlds.q[:n], worlds.v[:n] = job.initial
        self._put("q", worlds.q, columns)
        self._put("v", worlds.v, columns)
        for at in self._places:
            lengths = np.linalg.norm(worlds.q[:n, at : at + 4], axis=1)
            if (wrong := np.abs(lengths - 1) > 1e-6).any():
                worst = lengths[np.abs(lengths - 1).argmax()]
                raise QuaternionError(
                    f"q: quaternions at q[{at}:{at + 4}] must have length 1, got {worst:g} in {bad_rows(wrong, first)}. Use delassus.normalize."
                )

    def _initial(self, function: Callable[[RowStart], Any], row: RowStart) -> tuple[Array, Array]:
        model = row.model
        try:
            given = function(row)
            q, v = given if isinstance(given, tuple) else (given, np.zeros(model.nv))
            return numbers(q, "q", (model.nq,)), numbers(v, "v", (model.nv,))
        except Exception as error:
            raise FunctionError(f"initial: the function failed in row {row.number}: {type(error).__name__}: {error}") from error

    def _put(self, array: str, live: Array, columns: Mapping[str, Array]) -> None:
        """Write the columns whose target is this array of the initial state."""
        for name, target in self.job.targets.items():
            if target.array == array:
                write_column(target, columns[name], {array: live})

    def _steering(self, worlds: Worlds, columns: Mapping[str, Array], n: int) -> Callable[[int, Array], None]:
        """Return a function that sets the controls of a step for the rows that still run."""
        controls = self.job.controls
        if callable(controls):

            def by_function(k: int, alive: Array) -> None:
                for world in np.flatnonzero(alive).tolist():
                    try:
                        given = controls(float(worlds.time[world]), worlds.q[world].copy(), worlds.v[world].copy())
                        worlds.control[world] = numbers(given, "control", worlds.control[world].shape)
                    except Exception as error:
                        raise FunctionError(f"controls: the function failed at step {k}: {type(error).__name__}: {error}") from error

            return by_function
        worlds.control[:n] = 0.0 if controls is None or controls.ndim == 2 else controls
        self._put("control", worlds.control, columns)
        if controls is None or controls.ndim == 1:
            return lambda k, alive: None

        def by_step(k: int, alive: Array) -> None:
            worlds.control[:n] = controls[k]

        return by_step

    def _measured(self, first: int, values: list[dict[str, Any]], motion: _Motion, alive: Array) -> dict[str, Array]:
        """Metrics of all rows of a batch; NaN where a run ended early."""
        job = self.job
        found = {name: np.full((len(alive), *metric_shape(metric, job.model)), np.nan) for name, metric in job.metrics.items()}
        for k in np.flatnonzero(alive).tolist():
            run = Run(
                job.model, first + k, values[k], motion.time[k], motion.q[k], motion.v[k], motion.penetration[k], motion.contact_force[k]
            )
            for name, metric in job.metrics.items():
                found[name][k] = measured(name, metric, run)
        return found


def _step(worlds: Worlds, alive: Array) -> None:
    """Step the worlds still running; those where MuJoCo fails report it in their status."""
    try:
        worlds.step(1, None if len(alive) == len(worlds) and alive.all() else np.flatnonzero(alive))
    except MujocoError:
        if Worlds.STATUSES.index("failed") not in worlds.status[: len(alive)][alive]:
            raise
