"""Recording of a run: frames, periodic saving and progress."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import ArgumentError, WriteError
from ..model import Model
from ..state import kinetic_energy, potential_energy
from .files import named_path, private_file
from .loop_rows import LoopRows
from .trajectory import Trajectory

__all__ = ["RECORDINGS", "Bar", "Frames", "Keeper"]

Array = NDArray[Any]
RECORDINGS = (".html", ".viser", ".npz", ".gif", ".webp", ".mp4")


class _Moving(Protocol):
    """The part of a simulator that frames need."""

    model: Model
    timestep: float

    @property
    def _loop_rows(self) -> LoopRows: ...
    @property
    def q(self) -> Array: ...
    @property
    def v(self) -> Array: ...
    @property
    def time(self) -> float: ...


class Frames:
    """Frames of a run; the first is its initial state."""

    def __init__(self, sim: _Moving) -> None:
        self.model, self.timestep, self.loops = sim.model, sim.timestep, sim._loop_rows
        self.start_q, self.start_v, self.start_time = sim.q[None], sim.v[None], sim.time
        self.records: list[_core.RunRecord] = []
        self.times = [np.array([sim.time])]
        self.steps = 0

    def take(self, record: _core.RunRecord, every: int) -> None:
        """Keep every n-th frame of a record."""
        n = len(record.status)
        self.records.append(record)
        self.times.append(self.start_time + self.timestep * (self.steps + every * np.arange(1, n + 1)))
        self.steps += every * n

    def _column(self, name: str, first: Array) -> Array:
        """Return a column: the value of the first frame, then those of all records."""
        return np.concatenate([first, *(getattr(record, name) for record in self.records)])

    def trajectory(self) -> Trajectory:
        """Return the frames so far."""
        q, v = self._column("q", self.start_q), self._column("v", self.start_v)
        none, no_vectors = np.zeros(1), np.zeros((0, 3))
        counts = self._column("contact_counts", np.zeros(1, dtype=np.int64))
        return Trajectory(
            model=self.model, times=np.concatenate(self.times), q=q, v=v,
            contact_start=np.concatenate([[0], np.cumsum(counts)]),
            contact_position=self._column("contact_position", no_vectors), contact_normal=self._column("contact_normal", no_vectors),
            contact_force=self._column("contact_force", no_vectors), contact_friction=self._column("contact_friction", np.zeros(0)),
            contact_bodies=self._column("contact_bodies", np.zeros((0, 2), dtype=np.int64)), contact_distance=self._column("contact_distance", np.zeros(0)),
            contact_geoms=self._column("contact_geoms", np.zeros((0, 2), dtype=np.int64)),
            loop_forces=np.concatenate([np.zeros((1, self.loops.count)), *(self.loops.spread(record.loop_forces) for record in self.records)]),
            status=np.array(["solved", *(status for record in self.records for status in record.status)]),
            iterations=self._column("iterations", np.zeros(1, dtype=np.int64)), sleeping=self._column("sleeping", np.zeros(1, dtype=np.int64)), residual=self._column("residual", none),
            kinetic_energy=np.array([kinetic_energy(self.model, a, b) for a, b in zip(q, v, strict=True)]),
            potential_energy=np.array([potential_energy(self.model, a) for a in q]), loop_error=self._column("loop_error", none),
            penetration=self._column("penetration", none),
        )  # fmt: skip


class Keeper:
    """Saves the frames of a run periodically: in the recording itself if it is an ``.npz`` file, else in a new hidden file beside it."""

    seconds = 3.0

    def __init__(self, record: str | os.PathLike[str] | None) -> None:
        self.target = None if record is None else named_path(record, "record")
        if self.target is not None and self.target.suffix not in RECORDINGS:
            picture = " For a picture use the trajectory's plot(path)." if self.target.suffix in (".png", ".svg", ".pdf") else ""
            raise ArgumentError(f"record: expected a file that ends in {', '.join(RECORDINGS)}, got {str(self.target)!r}.{picture}")
        self.path = self.target if self.target is not None and self.target.suffix == ".npz" else None
        self.last = time.monotonic()

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None and self.path is not None and self.path != self.target:
            warnings.warn(f"{str(self.target)!r} was not written; frames of the run until then are in {str(self.path)!r}.", stacklevel=3)

    def keep(self, frames: Frames) -> None:
        """Save the frames so far, if it is time to."""
        if self.target is None or time.monotonic() < self.last + self.seconds:
            return
        # an error now will recur at the end, and is reported then
        with suppress(WriteError, OSError):
            self.path = self.path or private_file(self.target, "npz")
            frames.trajectory().save(self.path)
        # long motions take long to save: spend at most a tenth of the time on it
        self.last = time.monotonic() + 9 * (time.monotonic() - self.last - self.seconds)

    def clear(self) -> None:
        """Remove the frames that were saved beside a recording."""
        if self.path is not None and self.path != self.target:
            self.path.unlink(missing_ok=True)


class Bar:
    """A progress bar, or nothing."""

    def __init__(self, shown: bool, title: str) -> None:
        self.shown, self.title = shown, title

    def __enter__(self) -> Callable[[float], None]:
        if not self.shown:
            return lambda _: None
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.progress = Progress(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), transient=True)
        self.progress.start()
        task = self.progress.add_task(self.title, total=1.0)
        return lambda share: self.progress.update(task, completed=share)

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.progress.stop()
