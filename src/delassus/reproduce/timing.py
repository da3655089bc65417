"""Times of calls: the best of several samples, with contenders taking turns, since other load can only add time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np

from ..bench.clock import one_thread

__all__ = ["best", "best_native", "in_turns", "one_thread", "slope"]

Call = Callable[[], object]
Name = TypeVar("Name", bound=Hashable)


def best(calls: Mapping[str, Call], repeats: int = 60, inner: int = 100) -> dict[str, float]:
    """Best time of each call, measured in Python [µs], the calls taking turns, ``inner`` calls per sample."""
    times = dict.fromkeys(calls, math.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(inner):
                call()
            times[name] = min(times[name], (time.perf_counter() - start) / inner * 1e6)
    return times


def in_turns(calls: dict[Name, Call], turns: int) -> dict[Name, float]:
    """Best processor time of each call on one thread [s], the calls taking turns."""
    times = dict.fromkeys(calls, math.inf)
    with one_thread():
        for _ in range(turns):
            for name, call in calls.items():
                start = time.thread_time()  # other processes on the machine do not count
                call()
                times[name] = min(times[name], time.thread_time() - start)
    return times


def best_native(calls: Mapping[str, tuple[Any, Call]], budget: float, sample: float = 2e-4) -> dict[str, float]:
    """Best time of native work [µs], without Python, the calls taking turns.

    Args:
        calls: name → a native object with a stopwatch, and a function that calls one of its methods once; the core repeats the method.
        budget: time for all of them together [s], with at least three samples each.
        sample: duration of a sample [s], with at least two repeats.
    """
    number: dict[str, int] = {}
    times: dict[str, float] = {}

    def measure(name: str, repeats: int) -> float:
        owner, call = calls[name]
        call()  # untimed, to bring its memory into the caches
        owner.repeats = repeats
        try:
            call()
        finally:
            owner.repeats = 1
        return float(owner.seconds)

    for name in calls:
        times[name] = measure(name, 2)
        number[name] = min(max(round(sample / max(times[name], 1e-9)), 2), 100_000)
    start, turns = time.perf_counter(), 0
    while turns < 3 or time.perf_counter() - start < budget:
        for name in calls:
            times[name] = min(times[name], measure(name, number[name]))
        turns += 1
    return {name: 1e6 * seconds for name, seconds in times.items()}


def slope(sizes: Any, values: Any) -> float:
    """Exponent p of the best-fitting power law value ∝ sizeᵖ."""
    return float(np.polyfit(np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(values, dtype=float)), 1)[0])
