"""Processor times of calls on one thread."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["Timing", "best", "in_turn", "one_thread"]


def best(call: Callable[[], object], budget: float) -> float:
    """Best processor time of a call [µs], over as many samples as fit in a budget [s] and at least five, after a warm-up call."""
    start = time.perf_counter()
    call()
    inner = max(1, round(3e-4 / max(time.perf_counter() - start, 1e-9)))
    best, end, samples = np.inf, time.perf_counter() + budget, 0
    while samples < 5 or time.perf_counter() < end:
        start = time.thread_time()  # other processes on the machine do not count
        for _ in range(inner):
            call()
        best = min(best, (time.thread_time() - start) / inner)
        samples += 1
    return best * 1e6


class Timing(NamedTuple):
    """Best and median time of a call [µs]."""

    best: float
    median: float


def in_turn(calls: Sequence[Callable[[], object]], budget: float, progress: Callable[[float], object]) -> list[Timing]:
    """Time calls, one sample of each in turn, so that other load affects all of them equally.

    Args:
        calls: the calls, each called at least once before.
        budget: time for each of them [s]; slower calls get three samples.
        progress: called with the fraction done.
    """
    inner, spent = [0] * len(calls), [0.0] * len(calls)
    samples: list[list[float]] = [[] for _ in calls]
    while going := [k for k, times in enumerate(samples) if spent[k] < budget or len(times) < 3]:
        for k in going:
            begin, start = time.perf_counter(), time.thread_time()
            for _ in range(inner[k] or 1):
                calls[k]()
            took = (time.thread_time() - start) / (inner[k] or 1)
            spent[k] += time.perf_counter() - begin
            if inner[k]:
                samples[k] += [took] if took > 0 else []  # discard samples in which the clock did not advance
            else:  # the first sample determines the number of calls per sample
                inner[k] = max(1, round(3e-4 / max(took, 1e-9)))
        progress(sum(min(1.0, s / budget) for s in spent) / len(calls))
    return [Timing(1e6 * min(times), 1e6 * float(np.median(times))) for times in samples]


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep OpenBLAS, if NumPy and SciPy use it, on one thread, like the operator: several threads on a busy machine would measure the load."""
    before = []
    maps = Path("/proc/self/maps")
    files = {line.split()[-1] for line in maps.read_text().splitlines() if "openblas" in line} if maps.exists() else set()
    for library in map(ctypes.CDLL, sorted(files)):
        for name in (
            "scipy_openblas_{}_num_threads64_",
            "scipy_openblas_{}_num_threads",
            "openblas_{}_num_threads64_",
            "openblas_{}_num_threads",
        ):
            if hasattr(library, name.format("set")):
                put = getattr(library, name.format("set"))
                before.append((put, getattr(library, name.format("get"))()))
                put(1)
                break
    try:
        yield
    finally:
        for put, threads in before:
            put(threads)
