"""Sends chunks of rows to an executor until all are done: a few at a time, and again if a worker was lost."""

from __future__ import annotations

import os
import pickle
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentTypeError, WorkerError
from .dataset import Ranges
from .designs import Design
from .job import Job, packed
from .work import keep, local, message, run_chunk

__all__ = ["Engine", "Threads", "worker_count"]

CHUNK_SECONDS = 1.0  # duration of a chunk: scheduling that takes a millisecond is then a thousandth of it
MAX_CHUNK = 10_000  # rows
ATTEMPTS = 4  # at a chunk whose worker is lost
HEARTBEAT = 0.25  # [s] without an answer after which the caller is polled


class Threads(ThreadPoolExecutor):
    """Threads of this process. Their work is native and runs without the interpreter's lock; they can stop within a chunk.

    Args:
        workers: number of threads; default: one per core available to this process.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.stopped = threading.Event()
        n = workers or len(os.sched_getaffinity(0))
        super().__init__(n, "delassus-study", initializer=lambda: setattr(local, "stop", self.stopped.is_set))


def worker_count(executor: Any) -> int:
    """Return the number of workers of an executor; if unknown, the number of cores of this machine."""
    for name in ("workers", "_max_workers", "num_workers"):
        n = getattr(executor, name, None)
        if isinstance(n, int) and n > 0:
            return n
    client: Any = getattr(executor, "_client", None)
    if hasattr(client, "ncores"):
        return max(1, int(sum(client.ncores().values())))
    return os.cpu_count() or 1


@dataclass
class _Chunk:
    """Rows from ``first`` to ``last`` − 1; ``lost``: number of lost workers; ``sends``: number of times they were sent."""

    first: int
    last: int
    lost: int = 0
    sends: int = 0
    with_job: bool = False


class Engine:
    """Runs rows on an executor.

    Args:
        executor: executor with the interface of ``concurrent.futures.Executor``; None for threads of this process.
        job: the study; key: its identifier.
        design: values of the rows.
        ranges: rows to run.
        chunk: number of rows per message; None: as many as take a second.
        take: called with (first, last, columns) of every finished chunk.
        beat: called several times a second.
    """

    def __init__(
        self,
        executor: Executor | None,
        job: Job,
        key: str,
        design: Design,
        ranges: Ranges,
        chunk: int | None,
        take: Callable[[int, int, dict[str, Any]], None],
        beat: Callable[[], None],
    ) -> None:
        if executor is not None and not callable(getattr(executor, "submit", None)):
            raise ArgumentTypeError(f"executor: expected the interface of concurrent.futures.Executor, got {type(executor).__name__}.")
        self.own = executor is None  # whether we shut it down
        self.executor: Any = Threads() if executor is None else executor
        self.workers = worker_count(self.executor)
        self.job, self.key, self.design, self.chunk, self.take, self.beat = job, key, design, chunk, take, beat
        self.blob = None if executor is None else packed(job)
        self.fresh = deque(ranges)
        self.again: deque[_Chunk] = deque()  # to be sent again
        self.suspects: deque[_Chunk] = deque()  # lost more than once: sent one at a time, at the end
        self.flying: dict[Future[bytes], _Chunk] = {}
        self.arrived: queue.SimpleQueue[Future[bytes]] = queue.SimpleQueue()
        self.alone = False
        self.row_seconds: float | None = None

    def run(self) -> None:
        """Run all rows.

        Raises:
            WorkerError: workers were lost too often, or cannot be used.
            FunctionError: a user function failed.
        """
        try:
            while self._send() or self.flying:
                self.beat()
                try:
                    self._receive(self.arrived.get(timeout=HEARTBEAT))
                except queue.Empty:
                    continue
        except BaseException:
            self._collect()
            raise
        finally:
            if self.own:
                self._shut_down()

    # ---- sending ----------------------------------------------------------------------------------------------------------------

    def _send(self) -> bool:
        """Send chunks, two per worker; returns whether any remain to be sent."""
        while len(self.flying) < 2 * self.workers and not self.alone:
            if self.again:
                chunk = self.again.popleft()
            elif self.fresh:
                chunk = self._cut()
            elif self.suspects and not self.flying:
                chunk = self.suspects.popleft()
                self.alone = True
            else:
                break
            self._submit(chunk)
        return bool(self.again or self.fresh or self.suspects)

    def _cut(self) -> _Chunk:
        """Take the next rows: as many as requested, or as many as take a second, but few enough that every worker gets some."""
        first, stop = self.fresh.popleft()
        rows = self.chunk
        if rows is None:
            left = stop - first + sum(b - a for a, b in self.fresh)
            fair = -(-left // (4 * self.workers))
            rows = 8 if self.row_seconds is None else int(CHUNK_SECONDS / max(self.row_seconds, 1e-9))
            rows = max(1, min(rows, fair, MAX_CHUNK))
        last = min(first + rows, stop)
        if last < stop:
            self.fresh.appendleft((last, stop))
        return _Chunk(first, last)

    def _submit(self, chunk: _Chunk) -> None:
        columns = self.design.columns(chunk.first, chunk.last)
        chunk.sends += 1
        blob = self.blob if chunk.with_job else None
        sent = message(self.key, blob, chunk.first, chunk.last, columns, chunk.sends)
        try:
            future = self.executor.submit(run_chunk, sent)
        except Exception as error:
            self._replace(error, chunk)
            future = self.executor.submit(run_chunk, sent)
        self.flying[future] = chunk
        future.add_done_callback(self.arrived.put)

    def _replace(self, error: Exception, chunk: _Chunk) -> None:
        """Replace a broken pool of processes by a new one; other executors that accept no more work are an error."""
        old = self.executor
        if not isinstance(old, ProcessPoolExecutor) or not getattr(old, "_broken", False):
            raise WorkerError(
                f"rows {chunk.first} to {chunk.last - 1}: the executor takes no more work: {type(error).__name__}: {error}. The same call with another executor continues from here."
            ) from error
        self.executor = ProcessPoolExecutor(
            self.workers, mp_context=getattr(old, "_mp_context", None), initializer=getattr(old, "_initializer", None), initargs=getattr(old, "_initargs", ())
        )  # fmt: skip
        if self.own:
            old.shutdown(wait=False)
        self.own = True

    # ---- receiving --------------------------------------------------------------------------------------------------------------

    def _receive(self, future: Future[bytes]) -> None:
        """Process the answer to a chunk, or send the chunk again."""
        chunk = self.flying.pop(future)
        self.alone = False
        error = CancelledError("it was called off") if future.cancelled() else future.exception()
        if error is not None:
            self._lost(chunk, error)
            return
        answer = pickle.loads(future.result())
        if "missing" in answer:
            if self.blob is None:
                keep(self.key, self.job)
            chunk.with_job = True
            self.again.appendleft(chunk)
        elif "error" in answer:
            raise answer["error"]
        elif "columns" in answer:
            per_row = answer["seconds"] / (chunk.last - chunk.first)
            self.row_seconds = per_row if self.row_seconds is None else 0.7 * self.row_seconds + 0.3 * per_row
            self.take(chunk.first, chunk.last, answer["columns"])

    def _lost(self, chunk: _Chunk, error: BaseException) -> None:
        """Send a chunk again whose worker was lost. A chunk lost twice waits until no other is running, so that the next loss is its own."""
        why = f"{type(error).__name__}: {error}"
        if "No module named 'delassus" in _chain(error):
            raise WorkerError(
                f"rows {chunk.first} to {chunk.last - 1}: a worker does not have this version of delassus: {why}. Install it on every worker."
            ) from error
        chunk.lost += 1
        chunk.with_job = False
        if chunk.lost >= ATTEMPTS:
            raise WorkerError(
                f"rows {chunk.first} to {chunk.last - 1}: their worker was lost {chunk.lost} times, the last time by {why}. "
                "All other rows are finished or can continue; check the memory of workers, and run these rows with chunk=1 to find the one at fault."
            ) from error
        (self.again if chunk.lost < 2 else self.suspects).append(chunk)

    # ---- ending -----------------------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        """After an error or an interrupt: take finished chunks, and cancel those that have not begun."""
        if isinstance(self.executor, Threads):
            self.executor.stopped.set()
        for future in list(self.flying):
            if future.done() and not future.cancelled() and future.exception() is None:
                answer = pickle.loads(future.result())
                if "columns" in answer:
                    chunk = self.flying[future]
                    self.take(chunk.first, chunk.last, answer["columns"])
            else:
                future.cancel()

    def _shut_down(self) -> None:
        self.executor.shutdown(wait=isinstance(self.executor, Threads), cancel_futures=True)


def _chain(error: BaseException | None) -> str:
    """Texts of an error and of all its causes."""
    texts = []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    return " ".join(texts)
