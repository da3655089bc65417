"""A study: many runs of one model, on the threads of this process or on a cluster."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import as_array, count, finite, number, numbers, unknown
from ..errors import ArgumentError
from ..model import Model
from ..model.load import model_of, tell_ignored
from ..model.urdf import UrdfOptions
from ..simulator import Simulator
from ..worlds import Worlds
from .columns import check_values, resolve, row_shapes
from .dataset import Dataset, Ranges, arrow, complement, table_of
from .designs import Design, as_design, digest, joined
from .engine import Engine
from .job import Job, function_digest
from .metrics import Metric, as_metrics
from .progress import RowBar
from .result import StudyResult
from .work import versions

__all__ = ["Study"]

Array = NDArray[Any]
FLUSH_SECONDS, FLUSH_SHARE, FLUSH_ROWS = (
    2.0,
    0.002,
    200_000,
)  # finished rows are written after this time, at this fraction of all time so far, and after this many rows
_RESERVED = ("row", "status", "unsolved", "unstable")


class Study:
    """A table of simulation runs of equal duration.

    Args:
        model: anything that a :class:`~delassus.Simulator` takes.
        parameters: the table: :func:`~delassus.studies.grid`, :func:`~delassus.studies.random` or :func:`~delassus.studies.latin_hypercube`, or columns of equal length as a mapping, a
            DataFrame or a pyarrow Table. A column is a parameter, see :attr:`Worlds.parameters` (``friction`` for all shapes, ``gravity`` (rows, 3), ``body_mass`` (rows, nbody), …), one number of it by
            name or index (``body_mass[torso]``, ``geom_friction[floor,0]``), a factor on the model's (``mass_scale``, ``gravity_scale``, ``damping_scale``, ``stiffness_scale``,
            ``armature_scale``, ``friction_loss_scale``, ``gain_scale``), or a part of the initial state or controls: ``q``, ``v``, ``control``, ``q[2]``, ``v[hip]``, ``control[knee]``.
        initial: initial states: a keyframe, (nq,) or (rows, nq) configurations, a mapping of ``q`` and ``v``, each (n,) or (rows, n), or a function of a
            :class:`~delassus.studies.RowStart` that returns q or (q, v). Default: the model's neutral configuration, at rest. Columns of the table override.
        controls: actuator commands: (nu,), (steps, nu), the name of a keyframe, or a function of (time, q, v), called before every step, which is slow. Default: zero. Columns of the table override of (nu,).
        metrics: values recorded per run: names of built-in ones (``height``, ``distance``, ``energy``, ``max_speed``, ``max_penetration``, ``max_contact_force``, ``q``, ``v``), or a mapping of
            names to functions of a :class:`~delassus.studies.Run` that return a number. They are null if a run fails.
        seconds: simulated time [s].
        every: number of steps between the frames passed to metrics.
        rows: number of rows, if the table does not determine it.
        seed: seed of the random numbers that ``initial`` may draw.
        **options: passed to :class:`~delassus.Simulator`, except ``threads``: each world has one.

    Examples:
        >>> import delassus as dl
        >>> study = dl.Study(dl.scenes.box_stack(2), parameters={"friction": [0.2, 0.8]}, metrics=["height"], seconds=0.02)
        >>> study.rows, study.names
        (2, ('friction',))
    """

    def __init__(
        self,
        model: Any,
        *,
        parameters: Any = None,
        initial: str | ArrayLike | Mapping[str, ArrayLike] | Callable[[Any], Any] | None = None,
        controls: str | ArrayLike | Callable[[float, Array, Array], Any] | None = None,
        metrics: str | Iterable[str] | Mapping[str, str | Metric] = (),
        seconds: float,
        every: int = 1,
        rows: int | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        if "threads" in options:
            raise ArgumentError("threads: each world of a study has one. The executor determines how many worlds run in parallel.")
        sim = Simulator(model_of(model, UrdfOptions(), options.pop("loops", None), "model"), **options)
        if not isinstance(model, Model):
            tell_ignored(sim.model)
        self.model, self.seed, self.options = sim.model, count(seed, "seed", 0), dict(options)
        self.seconds, self.steps = number(seconds, "seconds", minimum=0.0), round(number(seconds, "seconds") / sim.timestep)
        self.every = count(every, "every")
        n = None if rows is None else count(rows, "rows")
        table = as_design({} if parameters is None else parameters, "parameters", n if isinstance(parameters, Mapping | None) else None)
        start, more = _initial(sim, initial)
        if more:
            if parameters is None and n is None:
                n = len(next(iter(more.values())))
                table = as_design({}, "parameters", n)
            table = joined(table, as_design(more, "initial", table.rows))
        if n is not None and table.rows != n:
            raise ArgumentError(f"rows: the table has {table.rows}, got {n}. Leave it out.")
        self.design: Design = table
        shapes = row_shapes(Worlds(sim, 1))
        targets = {name: resolve(sim.model, name, shapes) for name in table.names}
        check_values(sim.model, table, targets, shapes)
        steer = _controls(sim.model, controls, self.steps)
        steered = callable(steer) or (steer is not None and steer.ndim == 2)
        if steered and any(t.array == "control" for t in targets.values()):
            raise ArgumentError("controls: a column of the table sets controls, so expected (nu,) here, got controls for each step.")
        made = as_metrics(metrics, (*_RESERVED, *table.names))
        key = initial if isinstance(initial, str) else None
        self._job = Job(sim.model, targets, made, key, start, steer, self.steps, self.every, self.options, self.seed)

    @property
    def rows(self) -> int:
        """Number of runs."""
        return self.design.rows

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the table's columns."""
        return self.design.names

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return tuple(self._job.metrics)

    def __repr__(self) -> str:
        return f"<Study of {self.model.name!r}: {self.rows} rows of {self.seconds:g} s, {', '.join(self.names) or 'nothing varied'} → {', '.join(self.metrics) or 'no metrics'}>"

    def columns(self, first: int = 0, last: int | None = None) -> dict[str, Array]:
        """Return values of the table: name → (last − first, …).

        Args:
            first: number of the first row; last: one beyond the last; default: the number of rows.
        """
        last = self.rows if last is None else last
        if not 0 <= first <= last <= self.rows:
            raise ArgumentError(f"first, last: expected rows from 0 to {self.rows}, got {first} and {last}.")
        return self.design.columns(first, last)

    @property
    def identity(self) -> dict[str, str]:
        """Digests of everything that the results depend on. A folder of results stores them, and refuses rows of another study."""
        job = self._job
        start = function_digest(job.initial) if callable(job.initial) else " ".join(map(digest, job.initial))
        steer = function_digest(job.controls) if callable(job.controls) else "none" if job.controls is None else digest(job.controls)
        content = {
            "version": versions(), "model": self.model._hash, "parameters": [self.rows, self.design.content()], "initial": [job.keyframe, start, self.seed], "controls": steer,
            "metrics": {name: function_digest(metric) for name, metric in job.metrics.items()}, "seconds": [self.seconds, self.steps, self.every],
            "options": {name: repr(value) for name, value in sorted(self.options.items())},
        }  # fmt: skip
        return {name: hashlib.sha256(json.dumps(part).encode()).hexdigest()[:32] for name, part in content.items()}

    def run(
        self,
        executor: Executor | None = None,
        path: str | os.PathLike[str] | None = "study.parquet",
        resume: bool = True,
        progress: bool = True,
        *,
        chunk: int | None = None,
    ) -> StudyResult:
        """Run all rows that are not finished yet. The table is the same, bit for bit, for every executor, number of workers and chunk.

        Finished rows are written every two seconds, less often in long runs, and after an error or Ctrl-C; the same call continues with the missing rows. A chunk whose worker is lost is run again.

        Args:
            executor: anything with the interface of ``concurrent.futures.Executor``: pools, ``dask.distributed.Client(…).get_executor()``, ``mpi4py.futures.MPIPoolExecutor``,
                :class:`~delassus.studies.RayExecutor`. Default: native threads of this process, one per core.
            path: folder of Parquet files for the results; None: keep them in memory.
            resume: keep the rows already in the folder; if False, it must have none.
            progress: show a bar in a terminal.
            chunk: number of rows sent to a worker in one message. Default: as many as take a second.

        Raises:
            DatasetError: the folder belongs to another study.
            WorkerError: workers were lost too often, or lack this version of the package.
            FunctionError: one of your functions failed in a row.
            BusyError: another process runs this study.
            WriteError: results cannot be written.
        """
        arrow()
        if chunk is not None:
            chunk = count(chunk, "chunk")
        identity = self.identity
        dataset = None if path is None else Dataset(path, identity, self.rows)
        with nullcontext() if dataset is None else dataset.opened(resume=resume):
            finished: Ranges = [] if dataset is None else dataset.finished()
            writer = _Writer(self, dataset)
            with RowBar(progress, self.model.name, self.rows, sum(b - a for a, b in finished)) as advance:

                def take(first: int, last: int, columns: dict[str, Array]) -> None:
                    writer.take(first, last, columns)
                    advance(last - first)

                key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
                engine = Engine(executor, self._job, key, self.design, complement(finished, self.rows), chunk, take, writer.beat)
                try:
                    engine.run()
                except BaseException:
                    with suppress(Exception):  # report the first error
                        writer.flush()
                    raise
                writer.flush()
        return StudyResult(self, dataset, writer.tables)

    def _table(self, first: int, last: int, found: Mapping[str, Array]) -> Any:
        """Finished rows as a pyarrow Table: index, values, metrics, status."""
        ends = {name: np.asarray(found[name], dtype=np.int64) for name in ("unsolved", "unstable")}
        metrics = {name: np.asarray(found[name], dtype=np.float64) for name in self.metrics}
        return table_of(
            {"row": np.arange(first, last), **self.design.columns(first, last), **metrics, "status": np.asarray(found["status"]), **ends}
        )


class _Writer:
    """Takes finished chunks, and writes them periodically; without a folder it keeps them."""

    def __init__(self, study: Study, dataset: Dataset | None) -> None:
        self.study, self.dataset = study, dataset
        self.tables: list[Any] = []
        self.waiting: list[tuple[tuple[int, int], Any]] = []
        self.rows, self.began = 0, time.monotonic()
        self.last = self.began

    def take(self, first: int, last: int, found: dict[str, Array]) -> None:
        """Take a chunk."""
        self.waiting.append(((first, last), self.study._table(first, last, found)))
        self.rows += last - first
        self.beat()

    def beat(self) -> None:
        """Write, if it is time."""
        now = time.monotonic()
        if self.waiting and (self.rows >= FLUSH_ROWS or now > self.last + FLUSH_SECONDS + FLUSH_SHARE * (now - self.began)):
            self.flush()

    def flush(self) -> None:
        """Write the pending chunks."""
        if self.waiting and self.dataset is not None:
            self.dataset.write(self.waiting)
        elif self.waiting:
            self.tables += [table for _, table in self.waiting]
        self.waiting, self.rows, self.last = [], 0, time.monotonic()


def _initial(sim: Simulator, given: Any) -> tuple[tuple[Array, Array] | Callable[[Any], Any], dict[str, Any]]:
    """Return the common initial state or a function of a row, and columns of states."""
    model, rest = sim.model, (sim.model.neutral(), np.zeros(sim.model.nv))
    if given is None:
        return rest, {}
    if callable(given):
        return given, {}
    if isinstance(given, str):
        if given not in model.keyframes:
            raise unknown("keyframe", given, model.keyframes)
        return (np.array(model.keyframes[given]), np.array(model.keyframe_velocities.get(given, rest[1]))), {}
    parts = given if isinstance(given, Mapping) else {"q": given}
    state, columns = dict(zip(("q", "v"), rest, strict=True)), {}
    for name, value in parts.items():
        if name in state and np.ndim(value) < 2:
            state[name] = np.array(numbers(value, name, state[name].shape))
        else:
            columns[name] = value
    return (state["q"], state["v"]), columns


def _controls(model: Model, given: Any, steps: int) -> Any:
    """Return controls as a checked array, or a function."""
    if given is None or callable(given):
        return given
    if isinstance(given, str):
        if given not in model.keyframe_controls:
            raise unknown("keyframe", given, model.keyframe_controls)
        return model.keyframe_controls[given]
    array = np.array(finite(as_array(given, "controls"), "controls"), dtype=float)
    if array.shape not in ((model.nu,), (steps, model.nu)):
        raise ArgumentError(
            f"controls: expected shape {(model.nu,)} or {(steps, model.nu)}, or a function of (time, q, v), got {array.shape}."
        )
    return array
