"""Health of the installed build: the cost of its operations here, compared with a good build.

Instructions are compared with those recorded for this kind of processor. If they cannot be counted, times are compared, as multiples of the time of an
addition that depends on the previous one: a processor clock that no compiler flag changes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from .. import _builds, _cpu
from .._terminal import console
from .clock import best, one_thread
from .instructions import count_by_counter, count_by_steps
from .motion import Progress, quiet
from .verbs import Verb, verbs

__all__ = ["Finding", "Health", "count", "diagnose", "level_of_processor", "measure", "show"]

# Ratios to the record within which a build is healthy. Instructions: other compilers differ by up to about a third per verb. Times: processors
# differ in the number of instructions per addition.
_BANDS = {"instructions": (0.6, 1.6, 1.3), "times": (0.2, 4.0, 2.5)}  # per verb: minimum, maximum; mean of all: maximum
_LEVELS = {
    "x86-64-v2": {"sse3", "ssse3", "sse4_1", "sse4_2", "popcnt"},
    "x86-64-v3": {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
_INSTRUMENTS = {
    "counter": "instructions, by the processor's counter",
    "steps": "instructions, by single steps",
    "clock": "times, in additions of a running sum",
}


@dataclass(frozen=True)
class Finding:
    """One verb: its measurement, the recorded one, their ratio, and "healthy", "slow" or "not comparable" (so much lower that the measurement must be wrong)."""

    verb: str
    found: float
    recorded: float
    ratio: float
    verdict: str


@dataclass(frozen=True)
class Health:
    """Diagnosis of a build.

    Attributes:
        instrument: "counter", "steps" or "clock".
        why: reasons why better instruments were not used.
        level: instruction-set level of this processor, as named by compilers: "x86-64-v3", "aarch64".
        record: the recorded build used for comparison.
        findings: one per verb.
        mean: geometric mean of ratios.
        resembles: the recorded build with the closest counts; None for times.
        wrong: verbs whose result was wrong.
    """

    instrument: str
    why: tuple[str, ...]
    level: str
    record: str
    findings: tuple[Finding, ...]
    mean: float
    resembles: str | None
    wrong: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether all results are right, every verb is healthy and the mean is within its bound."""
        bound = _BANDS[_unit(self.instrument)][2]
        return not self.wrong and all(f.verdict == "healthy" for f in self.findings) and self.mean <= bound

    def as_data(self) -> dict[str, Any]:
        """All fields, as plain data."""
        return asdict(self) | {"healthy": self.healthy, "findings": [asdict(f) for f in self.findings]}


def _unit(instrument: str) -> str:
    return "times" if instrument == "clock" else "instructions"


def level_of_processor(features: Collection[str], kind: str = "x86-64") -> str:
    """Name of the highest x86-64 level whose features a processor has; other kinds of processors have one level, their name.

    Args:
        features: extensions of the instruction set, as ``delassus info --build`` names them.
        kind: kind of processor.
    """
    level, needed = kind, set[str]()
    for name, more in _LEVELS.items() if kind == "x86-64" else ():
        needed |= more
        if needed <= set(features):
            level = name
    return level


def load_record() -> dict[str, Any]:
    """Return the record included in the package."""
    return json.loads(resources.files(__package__).joinpath("healthy.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def count(known: Sequence[Verb], progress: Progress = quiet) -> tuple[str, dict[str, float], tuple[str, ...]]:
    """Measure with the best available instrument.

    Returns:
        its name, a number per verb, and the reasons why better ones were not used.
    """
    why = []
    try:
        return "counter", count_by_counter(known), ()
    except NotImplementedError as error:
        why.append(str(error))
    try:
        return "steps", count_by_steps(known, progress), tuple(why)
    except NotImplementedError as error:
        why.append(str(error))
    return "clock", times(known, progress), tuple(why)


def times(known: Sequence[Verb], progress: Progress = quiet, budget: float = 0.15) -> dict[str, float]:
    """Time of each verb over that of one addition in a running sum; the best of as many samples as fit in its budget [s], in turn with the sum."""
    numbers, sums = np.full(2048, 1e-3), np.empty(2048)
    found = {}
    with one_thread():
        for k, verb in enumerate(known):
            verb.repeated(2)
            repeats = max(2, round(2e-4 / max(verb.native.seconds, 1e-8)))
            least, addition = math.inf, math.inf
            for _ in range(5):
                addition = min(addition, best(lambda: np.cumsum(numbers, out=sums), budget / 10) * 1e-6 / len(numbers))
                for _ in range(max(3, round(budget / 10 / 2e-4))):
                    verb.repeated(repeats)
                    least = min(least, verb.native.seconds)
            found[verb.name] = least / addition
            progress((k + 1) / len(known))
    return found


def diagnose(
    instrument: str, found: dict[str, float], record: dict[str, Any], level: str, why: Sequence[str] = (), wrong: Sequence[str] = ()
) -> Health:
    """Compare measurements with the record.

    Args:
        instrument: see :class:`Health`.
        found: instructions, or times in additions, of each verb.
        record: see :func:`load_record`.
        level: level of the processor; if nothing was recorded for it, times of the highest level are compared.
        why, wrong: see :class:`Health`.
    """
    unit = _unit(instrument)
    least, most, _ = _BANDS[unit]
    known: dict[str, dict[str, float]] = record[unit]
    name = level if level in known else max(known)
    recorded = known[name]
    findings = []
    for verb, number in found.items():
        ratio = number / recorded[verb]
        verdict = "healthy" if least <= ratio <= most else "slow" if ratio > most else "not comparable"
        findings.append(Finding(verb, number, recorded[verb], ratio, verdict))
    nearest = min(known, key=lambda k: abs(math.log(_mean(found, known[k])))) if unit == "instructions" else None
    return Health(instrument, tuple(why), level, name, tuple(findings), _mean(found, recorded), nearest, tuple(wrong))


def _mean(found: dict[str, float], recorded: dict[str, float]) -> float:
    return math.exp(sum(math.log(number / recorded[verb]) for verb, number in found.items()) / len(found))


def measure(progress: Progress = quiet) -> Health:
    """Check the results of all verbs, measure them, and compare with the record."""
    known, record, level = verbs(), load_record(), level_of_processor(_builds.cpu_features(), _cpu.kind)
    wrong = tuple(verb.name for verb in known if not verb.right)
    if level in record["instructions"] and not wrong:
        instrument, found, why = count(known, progress)
    else:
        reason = "results are wrong" if wrong else f"no instructions are on record for {level}"
        instrument, found, why = "clock", times(known, progress), (reason,)
    return diagnose(instrument, found, record, level, why, wrong)


def advice(health: Health) -> list[str]:
    """Give advice, one sentence each; none for a healthy build."""
    if health.healthy:
        return []
    said = []
    if health.wrong:
        said.append(
            f"Wrong results: {', '.join(health.wrong)}. Do not use this build: reinstall, and report it with the lines above if it stays."
        )
    if any(f.verdict == "not comparable" for f in health.findings):
        said.append(
            "Some verbs took far less than any build can: the measurement is wrong, or the record is of other verbs. Please report it."
        )
    if any(f.verdict == "slow" for f in health.findings) or health.mean > _BANDS[_unit(health.instrument)][2]:
        if health.resembles and health.resembles != health.record:
            said.append(
                f"It counts like a build for {health.resembles}; this processor can do {health.record}. Install a wheel that chooses at import, or build on "
                "this machine: pip install --no-binary delassus delassus (DELASSUS_ARCH=native is the default of a source build)."
            )
        else:
            said.append(
                "Compiled without optimization, with sanitizers, for an older instruction set (delassus info --build), or by a compiler that does badly: look at "
                "CXXFLAGS, DELASSUS_ARCH and CMAKE_BUILD_TYPE (Release), try GCC 12 or later, and reinstall: pip install --force-reinstall --no-deps."
            )
        if health.instrument == "clock":
            said.append("Times depend on what else runs: close other programs, plug in the laptop, and try again.")
    return said


def show(health: Health) -> None:
    """Print the table, the verdict and the advice."""
    unit = _unit(health.instrument)
    table = Table(title=escape(f"{_INSTRUMENTS[health.instrument]}; record: {health.record}"), box=SIMPLE_HEAD, title_justify="left")
    table.add_column("verb", no_wrap=True)
    for column in ("counted" if unit == "instructions" else "measured", "recorded", "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for f in health.findings:
        table.add_row(escape(f.verb), f"{f.found:,.0f}", f"{f.recorded:,.0f}", f"{f.ratio:.2f}", f.verdict)
    console.print(table)
    for reason in health.why:
        console.print(f"not used: {reason}", highlight=False, markup=False)
    console.print(f"geometric mean {health.mean:.2f}: {'healthy' if health.healthy else 'UNHEALTHY'}", highlight=False)
    for sentence in advice(health):
        console.print(sentence, highlight=False, markup=False)
