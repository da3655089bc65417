"""Studies in files: a JSON or TOML table with the arguments of :class:`~delassus.Study`.

model = "go2"                       # a name, or a file beside this one
design = "latin_hypercube"          # or random, grid; with the table of [parameters]
rows = 1000
seconds = 1.0
metrics = ["height", "max_contact_force"]

[parameters]
friction = [0.4, 1.0]               # low, high; of a grid: the values, or {low = 0.4, high = 1.0, count = 7}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .._door import unknown
from ..errors import ArgumentError, LoadError, MissingExtraError
from ..model.loops import parsed
from .dataset import arrow
from .designs import grid, latin_hypercube, random
from .ray import RayExecutor
from .result import StudyResult
from .study import Study

__all__ = ["executor_of", "read_study", "summary"]

_KEYS = ("model", "design", "rows", "seed", "parameters", "table", "initial", "controls", "metrics", "seconds", "every", "options")
_SAMPLED: dict[str, Callable[..., Any]] = {"random": random, "latin_hypercube": latin_hypercube}
_DESIGNS = (*_SAMPLED, "grid")


def read_study(path: Path, rows: int | None = None) -> Study:
    """Return the study that a file describes.

    Args:
        path: path of the JSON or TOML file.
        rows: number of rows, instead of that in the file.

    Raises:
        LoadError: the file is missing or damaged, or lacks the model or the time.
        UnknownNameError: a key that does not exist.
    """
    found = parsed(path, "study")
    if not isinstance(found, dict) or (missing := [key for key in ("model", "seconds") if key not in found]):
        raise LoadError(
            f"study: {str(path)!r}: expected a table with 'model' and 'seconds'"
            + (f", got none of {', '.join(missing)}." if isinstance(found, dict) else ".")
        )
    for key in found:
        if key not in _KEYS:
            raise unknown("study: key", key, _KEYS)
    given = {key: found[key] for key in ("initial", "controls", "metrics", "seconds", "every", "seed") if key in found}
    beside = path.parent / str(found["model"])
    model = beside if beside.is_file() else found["model"]
    return Study(model, parameters=_table(found, path, rows), **given, **_as_table(found.get("options", {}), "options"))


def _as_table(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise LoadError(f"study: {name}: expected a table, got {type(value).__name__}.")
    return value


def _table(found: Mapping[str, Any], path: Path, rows: int | None) -> Any:
    """Return the design that a file describes."""
    parameters, kind = _as_table(found.get("parameters", {}), "parameters"), found.get("design", "grid")
    if kind not in _DESIGNS:
        raise unknown("study: design", kind, _DESIGNS)
    if "table" in found:
        if parameters or rows is not None:
            raise ArgumentError(
                "study: expected a table or parameters, got both." if parameters else "--rows: the study has a table of its own."
            )
        return _read_table(path.parent / str(found["table"]))
    n = found.get("rows") if rows is None else rows
    if kind == "grid":
        if n is not None:
            raise ArgumentError("rows: a grid has as many rows as it has combinations. Leave it out, or choose another design.")
        return grid({name: _values(name, values) for name, values in parameters.items()})
    if n is None:
        raise LoadError(f"study: {str(path)!r}: expected 'rows' with the design {kind!r}.")
    return _SAMPLED[kind](
        n, {name: tuple(ends) if isinstance(ends, list) else ends for name, ends in parameters.items()}, seed=found.get("seed", 0)
    )


def _values(name: str, given: Any) -> Any:
    """Return values of a grid: listed ones, or equally spaced ones."""
    if not isinstance(given, Mapping):
        return given
    if set(given) != {"low", "high", "count"}:
        raise LoadError(f"study: {name}: expected values, or low, high and count, got {', '.join(given)}.")
    return np.linspace(given["low"], given["high"], given["count"])


def _read_table(path: Path) -> Any:
    pa, parquet = arrow()
    readers: dict[str, Any] = {".parquet": parquet.read_table}
    if path.suffix == ".csv":
        from pyarrow import csv

        readers[".csv"] = csv.read_csv
    if path.suffix not in readers:
        raise LoadError(f"study: table: expected a file that ends in .csv or .parquet, got {str(path)!r}.")
    try:
        return readers[path.suffix](path)
    except (pa.ArrowException, OSError) as error:
        raise LoadError(f"study: table: {str(path)!r} cannot be read: {error}.") from None


@contextmanager
def executor_of(place: str) -> Iterator[Executor | None]:
    """Return the executor that a text names; it is shut down at the end, as is a cluster that was started for it.

    Args:
        place: ``threads``, ``processes`` or ``processes:N``, ``dask`` or ``dask://host:port``, ``ray`` or ``ray://host:port``; without a host a cluster on this machine is started.
    """
    kind, _, rest = place.partition(":")
    if place == "threads":
        yield None
    elif kind == "processes" and (not rest or (rest.isdecimal() and int(rest) > 0)):
        with ProcessPoolExecutor(int(rest) if rest else None) as pool:
            yield pool
    elif place == "dask" or place.startswith("dask://"):
        with _dask_client(rest and f"tcp:{rest}") as client:
            yield client.get_executor()
    elif place == "ray" or place.startswith("ray://"):
        yield RayExecutor(place if rest else None)
    else:
        raise ArgumentError(f"--on: expected threads, processes:N, dask, dask://host:port, ray or ray://host:port, got {place!r}.")


def _dask_client(address: str) -> Any:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise MissingExtraError('dask is not installed: pip install "delassus[dask]".') from None
    try:
        return distributed.Client(address or None, timeout=20)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"--on: no Dask scheduler answers at {address}: {error}.") from None


def summary(result: StudyResult) -> dict[str, Any]:
    """Return the number of runs per status, and minimum, median and maximum of every column with one number per row, as JSON data."""
    columns = {}
    for name in (*result.study.names, *result.study.metrics):
        values = result.column(name)
        values = values[np.isfinite(values)] if values.ndim == 1 else values[:0]
        if values.size:
            columns[name] = [float(f(values)) for f in (np.min, np.median, np.max)]
    return {"rows": len(result), "statuses": result.counts(), "columns": columns}
