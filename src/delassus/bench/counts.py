"""Scalar operations of methods: of the textbook's on CasADi symbols, of the operator from its plan."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ..errors import ArgumentError, MissingExtraError
from ..operators import DelassusOperator
from ..textbook import count
from .methods import MATRIX_FREE, Problem
from .motion import Progress, quiet
from .trial import Measurement, Section

__all__ = ["with_operations"]

# Names in the textbook where they differ; methods that it lacks are not counted.
_TEXTBOOK = {
    "matrix": {"oscm": "", "columns": ""},
    "inverse": {"ltl": "ltl-inverse", "lcaba": ""},
    "dynamics": {"soft-gauss": "lcaba", "kkt": ""},
}
# Expected operations: for these methods about this number times m³; for the others m² or, matrix-free, a multiple of n + m.
_CUBIC = {"ltl-inverse": 2.0, "pv-osimf": 1.5, "prox-ltl": 0.6, "prox-pv": 0.6, "pv": 0.6, "pv-early": 0.6}
_LINEAR = ("caba", "lcaba", "pv-soft", "prox-ltls")
_A_SECOND = 3e4  # operations that CasADi processes per second


def with_operations(problem: Problem, sections: Sequence[Section], limit: float, progress: Progress = quiet) -> tuple[list[Section], str]:
    """Add operation counts to measurements that have a time, the cheap ones first.

    Args:
        problem: the measured problem.
        sections: the measurements.
        limit: time limit for all counting [s].
        progress: called with the fraction done.

    Returns:
        The sections, and a sentence on what was not counted and why; empty if everything was.
    """
    wanted = []
    for s in sections:
        for m in s.measurements:
            if m.kind in ("explicit", "approximate") and m.microseconds is not None and s.name in _TEXTBOOK:
                name = _TEXTBOOK[s.name].get(m.method, m.method)
                if name:
                    wanted.append((_expected(name, problem, m.iterations or 1), s.name, name, m))
    found: dict[tuple[str, str], int] = {}
    late: list[str] = []
    end, missing = time.perf_counter() + limit, ""
    for k, (expected, section, name, m) in enumerate(sorted(wanted, key=lambda w: w[0])):
        progress(k / len(wanted))
        if expected > end - time.perf_counter():
            late.append(m.method if section != "inverse" else f"{m.method} of the inverse")
            continue
        try:
            found[section, m.method] = count(name, problem.model, problem.constraints, iterations=m.iterations or 1).total
        except MissingExtraError:
            missing = 'operations are counted by CasADi: pip install "delassus[symbolic]"'
            break
        except ArgumentError:
            continue  # the textbook takes fewer kinds of rows than the core
    progress(1.0)
    plan = _planned(problem)

    def counted(section: Section, m: Measurement) -> Measurement:
        known = found.get((section.name, m.method)) if m.kind != "matrix-free" else plan.get(m.method)
        return replace(m, operations=known if m.microseconds is not None else None)

    if late and not missing:
        missing = f"not counted within {limit:g} s: {', '.join(dict.fromkeys(late))} (--counting SECONDS)"
    return [replace(s, measurements=tuple(counted(s, m) for m in s.measurements)) for s in sections], missing


def _expected(name: str, p: Problem, iterations: int) -> float:
    """Estimate the duration of counting [s]."""
    n, m = p.model.nv, p.rows
    once, again = (0, 60 * (n + m)) if name in _LINEAR else (12 * m**2, 2 * m**2)
    return (250 * n + 100 * m + once + iterations * again + _CUBIC.get(name, 0.0) * m**3) / _A_SECOND


def _planned(p: Problem) -> dict[str, int]:
    """Operations of the operator, a multiply-add counting as two."""
    if p.rows == 0:
        return {}
    e = DelassusOperator(p.model, p.constraints).explain()
    numbers = e.kinematics.multiply_adds + e.mass_factor.multiply_adds
    damped = numbers + e.damped_factor.multiply_adds
    totals = (numbers, numbers + e.product.multiply_adds, e.product.multiply_adds, damped + e.solve.multiply_adds, e.solve.multiply_adds)
    return {name: 2 * total for name, total in zip(MATRIX_FREE, totals, strict=True)}
