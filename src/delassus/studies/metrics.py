"""Metrics that a study keeps for each run: numbers computed from its motion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._door import text, unknown
from ..errors import ArgumentError, ArgumentTypeError, FunctionError
from ..model import Model
from ..state import center_of_mass, kinetic_energy, potential_energy

__all__ = ["METRICS", "Metric", "Run", "as_metrics", "measured", "metric_shape"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Run:
    """The motion of one row of a study: T frames, starting with the initial state.

    Attributes:
        model: model of the study, without the parameters of the row.
        row: number of the row.
        parameters: name → its value in this row, a number or an array.
        time: (T,) [s]; frames are ``every`` steps apart.
        q: (T, nq) configurations; v: (T, nv) velocities.
        penetration: (T,) maximum penetration in the steps since the previous frame [m].
        contact_force: (T,) largest total contact force on a body in the steps since the previous frame [N].
    """

    model: Model
    row: int
    parameters: Mapping[str, Any]
    time: Array
    q: Array
    v: Array
    penetration: Array
    contact_force: Array


Metric = Callable[[Run], Any]


def _height(run: Run) -> float:
    return float(center_of_mass(run.model, run.q[-1])[2])


def _distance(run: Run) -> float:
    moved = center_of_mass(run.model, run.q[-1]) - center_of_mass(run.model, run.q[0])
    return float(np.hypot(moved[0], moved[1]))


def _energy(run: Run) -> float:
    return float(kinetic_energy(run.model, run.q[-1], run.v[-1]) + potential_energy(run.model, run.q[-1]))


def _max_speed(run: Run) -> float:
    return float(np.abs(run.v).max(initial=0.0))


def _max_penetration(run: Run) -> float:
    return float(run.penetration.max())


def _max_contact_force(run: Run) -> float:
    return float(run.contact_force.max())


def _final_q(run: Run) -> Any:
    return run.q[-1]


def _final_v(run: Run) -> Any:
    return run.v[-1]


METRICS: dict[str, tuple[Metric, str]] = {
    "height": (_height, "height of the centre of mass at the end [m]"),
    "distance": (_distance, "horizontal distance of the centre of mass from start to end [m]"),
    "energy": (_energy, "kinetic and potential energy at the end, with the masses of the model [J]"),
    "max_speed": (_max_speed, "largest entry of v in any frame [m/s or rad/s]"),
    "max_penetration": (_max_penetration, "maximum penetration in any step [m]"),
    "max_contact_force": (_max_contact_force, "largest total contact force on a body in any step [N]"),
    "q": (_final_q, "configuration at the end, (nq,)"),
    "v": (_final_v, "velocity at the end, (nv,)"),
}


def metric_shape(metric: Metric, model: Model) -> tuple[int, ...]:
    """Return the shape of a metric's value: a number, except for final states."""
    shapes: dict[Metric, tuple[int, ...]] = {_final_q: (model.nq,), _final_v: (model.nv,)}
    return shapes.get(metric, ())


def as_metrics(given: Any, taken: Iterable[str]) -> dict[str, Metric]:
    """Return the requested metrics: name → function.

    Args:
        given: a name, an iterable of names, or a mapping of names to functions, or to names of built-in metrics.
        taken: names of existing columns.
    """
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(f"metrics: expected names or a mapping of names to functions, got {type(given).__name__}.")
    pairs = given.items() if isinstance(given, Mapping) else [(name, name) for name in given]
    found: dict[str, Metric] = {}
    for name, metric in pairs:
        if text(name, "metrics") in {*taken, *found}:
            raise ArgumentError(
                f"metrics: the table has a column {name!r} already. Give the metric another name: metrics={{'final_{name}': …}}."
            )
        if callable(metric):
            found[name] = metric
        elif metric in METRICS:
            found[name] = METRICS[metric][0]
        else:
            raise unknown("metric", metric, METRICS)
    return found


def measured(name: str, metric: Metric, run: Run) -> Any:
    """Return the value of a metric for a run.

    Raises:
        FunctionError: a user function raised an error, or returned something other than one number.
    """
    try:
        value = metric(run)
        return value if metric_shape(metric, run.model) else float(value)
    except Exception as error:
        raise FunctionError(f"metrics: {name!r} failed in row {run.row}: {type(error).__name__}: {error}") from error
