"""Trial of one method: run, checked, and only then timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import DelassusError
from .clock import in_turn, one_thread
from .motion import Progress

__all__ = ["Measurement", "Section", "Trial", "measured", "nothing"]


def nothing(_: Any) -> str:
    """Return no remark on a result."""
    return ""


@dataclass(frozen=True)
class Trial:
    """A method that is ready to run: memory is allocated, symbolic work is done.

    Attributes:
        run: the call to time.
        judge: function that returns the error of a result.
        allowed: largest acceptable error.
        nbytes: its memory [B], evaluated after the first call.
        unsolved: reason why a result is not a solution; empty if it is one.
        note: further remark on a result.
        iterations: number of iterations of a result.
    """

    run: Callable[[], Any]
    judge: Callable[[Any], float]
    allowed: float
    nbytes: Callable[[], int] | None = None
    unsolved: Callable[[Any], str] = nothing
    note: Callable[[Any], str] = nothing
    iterations: Callable[[Any], int] | None = None


@dataclass(frozen=True)
class Measurement:
    """Measurements of a method. If its result was wrong there is no time, and ``reason`` says why.

    Attributes:
        method: method name.
        kind: "explicit": ``auto`` may take it; "approximate": it solves an approximation of the problem, with springs or with polygons for cones; "matrix-free"; "peer".
        microseconds, median: best and median time of a call, measured in Python [µs].
        nbytes: its memory [B].
        error: error of its result, see :class:`Definition`; allowed: largest acceptable error.
        operations: scalar operations.
        iterations: number of iterations.
        note: a remark.
        reason: reason why there is no time.
        wrong: True if the reason is a wrong result.
    """

    method: str
    kind: str = "explicit"
    microseconds: float | None = None
    median: float | None = None
    nbytes: int | None = None
    error: float | None = None
    allowed: float | None = None
    operations: int | None = None
    iterations: int | None = None
    note: str = ""
    reason: str = ""
    wrong: bool = False


@dataclass(frozen=True)
class Section:
    """Methods that compute the same.

    Attributes:
        name: "matrix", "inverse", "dynamics", "contacts" or "tree".
        title: what they compute.
        measurements: measurements of all methods.
        choice: default method; empty if there is none.
        reason: reason why there are no measurements.
    """

    name: str
    title: str
    measurements: tuple[Measurement, ...] = ()
    choice: str = ""
    reason: str = ""

    @property
    def fastest(self) -> Measurement | None:
        """The fastest timed method that computes the same as the choice."""
        timed = [m for m in self.measurements if m.microseconds is not None and m.kind == "explicit"]
        return min(timed, key=lambda m: m.microseconds or 0.0, default=None)

    @property
    def chosen(self) -> Measurement | None:
        """The choice, if it was timed."""
        return next((m for m in self.measurements if m.method == self.choice and m.microseconds is not None), None)


def _judged(name: str, kind: str, make: Callable[[], Trial]) -> tuple[Measurement, Trial | None]:
    """Run a method once. If it refuses the problem or its result is wrong, this is reported and the method is not timed."""
    try:
        trial = make()
        result = trial.run()
    except (DelassusError, RuntimeError, ValueError) as refusal:
        if kind != "peer" and not isinstance(refusal, DelassusError):
            raise
        sentence = str(refusal).split(". ")[0].rstrip(".")
        return Measurement(name, kind, reason=sentence.removeprefix("method: ").removeprefix(f"{name!r} ")), None
    iterations = trial.iterations(result) if trial.iterations else None
    unsolved, error = trial.unsolved(result), trial.judge(result)
    found = Measurement(
        name, kind, nbytes=trial.nbytes() if trial.nbytes else None, error=error, allowed=trial.allowed, iterations=iterations, note=trial.note(result)
    )  # fmt: skip
    if unsolved:
        return replace(found, reason=unsolved), None
    return (found, trial) if error <= trial.allowed else (_refuted(found, error), None)


def _refuted(found: Measurement, error: float) -> Measurement:
    """Replace the time by the error."""
    return replace(
        found, microseconds=None, median=None, error=error, wrong=True, reason=f"its result is off by {error:.0e}, allowed {found.allowed:.0e}"
    )  # fmt: skip


def measured(methods: Sequence[tuple[str, str, Callable[[], Trial]]], budget: float, progress: Progress) -> tuple[Measurement, ...]:
    """Check methods, time the correct ones in turn, and check them again.

    Args:
        methods: name, kind and function that makes the trial; a :class:`DelassusError` that it raises is the reason why there is none.
        budget: time for each [s].
        progress: called with the fraction done.
    """
    judged = [_judged(*method) for method in methods]
    right = [k for k, (_, trial) in enumerate(judged) if trial is not None]
    trials = [trial for _, trial in judged if trial is not None]
    with one_thread():
        timings = in_turn([trial.run for trial in trials], budget, progress)
    out = [found for found, _ in judged]
    for k, trial, timing in zip(right, trials, timings, strict=True):
        error = trial.judge(trial.run())
        out[k] = replace(out[k], microseconds=timing.best, median=timing.median, error=max(error, out[k].error or 0.0))
        if not error <= trial.allowed:
            out[k] = _refuted(out[k], error)
    return tuple(out)
