"""Worker of a study: receives a chunk of rows as bytes and answers with bytes.

A message has the key of its job, but not the job, which may be megabytes: a worker that lacks it requests it, and keeps it from then on.
Errors in a chunk are answers too, so an exception of an executor always means that a worker was lost.
"""

from __future__ import annotations

import pickle
import threading
import time
import traceback
from collections import OrderedDict, deque
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from typing import Any

import mujoco
from numpy.typing import NDArray

from .. import _core
from ..errors import DelassusError, FunctionError, WorkerError
from .job import Job
from .rows import Runner

__all__ = ["keep", "local", "message", "run_chunk", "versions"]

Array = NDArray[Any]
KEPT = 4  # number of jobs that a worker keeps


class _Held:
    """A job and its runners, one per working thread."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.idle: deque[Runner] = deque()


_held: OrderedDict[str, _Held] = OrderedDict()
_guard = threading.Lock()
local = threading.local()  # `stop`, in threads of this process: whether the study was interrupted


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Return the versions on which results depend to the bit."""
    return {
        "delassus": metadata.version("delassus"),
        "mujoco": str(mujoco.mj_versionString()),
        "compiler": _core.compiler,
        "flags": _core.flags,
    }


def keep(key: str, job: Job) -> _Held:
    """Keep a job, and drop the least recently used one."""
    with _guard:
        held = _held.setdefault(key, _Held(job))
        _held.move_to_end(key)
        while len(_held) > KEPT:
            _held.popitem(last=False)
        return held


def message(key: str, blob: bytes | None, first: int, last: int, columns: Mapping[str, Array], attempt: int) -> bytes:
    """Return a chunk as bytes.

    Args:
        key: key of the job.
        blob: the job, if the worker needs it.
        first: number of the first row; last: one beyond the last.
        columns: name → values of the rows.
        attempt: number of the attempt, so that executors that cache calls do not return an earlier result.
    """
    return pickle.dumps(
        {"versions": versions(), "key": key, "blob": blob, "first": first, "last": last, "columns": dict(columns), "attempt": attempt}
    )


def run_chunk(sent: bytes) -> bytes:
    """Run a chunk.

    Returns:
        A pickled dictionary: ``columns`` and ``seconds``; or ``missing``, if this worker lacks the job; or ``stopped``, if the study was interrupted; or ``error``.
    """
    return pickle.dumps(_answer(pickle.loads(sent)))


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    rows = f"rows {asked['first']} to {asked['last'] - 1}"
    if (own := versions()) != asked["versions"]:
        differ = ", ".join(
            f"{name} {own.get(name, 'none')} and not {version}" for name, version in asked["versions"].items() if own.get(name) != version
        )
        return {"error": WorkerError(f"{rows}: a worker has {differ}. Install the versions of this process on every worker.")}
    try:
        held = _held.get(asked["key"])
        if held is None:
            if asked["blob"] is None:
                return {"missing": True}
            held = keep(asked["key"], _unpacked(asked["blob"]))
        runner = held.idle.pop() if held.idle else Runner(held.job)
        columns = runner.run(asked["first"], asked["last"], asked["columns"], getattr(local, "stop", _never))
        held.idle.append(runner)
        return {"stopped": True} if columns is None else {"columns": columns, "seconds": time.perf_counter() - began}
    except DelassusError as error:
        return {"error": error.with_traceback(None)}
    except Exception:
        return {"error": WorkerError(f"{rows}: a worker could not run them:\n{traceback.format_exc()}")}


def _unpacked(blob: bytes) -> Job:
    try:
        job = pickle.loads(blob)
    except Exception as error:
        raise FunctionError(
            f"metrics, initial, controls: a worker cannot import a function: {type(error).__name__}: {error}. "
            "Install its module on every worker, or install cloudpickle and define the function in your script."
        ) from None
    assert isinstance(job, Job)
    return job


def _never() -> bool:
    return False
