"""Tables of runs. A design generates any range of its rows on demand, so that a table of 10⁹ rows takes no memory."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._door import as_array, count, number, text
from ..errors import ArgumentError, ArgumentTypeError, NotFiniteError

__all__ = ["Design", "as_design", "bad_rows", "grid", "joined", "latin_hypercube", "random"]

Array = NDArray[Any]
Range = tuple[float, float] | tuple[float, float, str]
MAX_ROWS = 2**62


@dataclass(frozen=True, eq=False)
class Design:
    """A table of runs, made by :func:`grid`, :func:`random` or :func:`latin_hypercube`.

    Attributes:
        rows: number of runs.
        names: column names.
    """

    rows: int
    names: tuple[str, ...]

    def columns(self, start: int, stop: int) -> dict[str, Array]:
        """Return the rows from ``start`` to ``stop``: name → (stop − start,) or (stop − start, k, …) float64."""
        raise NotImplementedError

    def extremes(self) -> dict[str, Array]:
        """Return values that are valid only if all values are: name → (k, …), all rows if they are listed."""
        raise NotImplementedError

    def content(self) -> dict[str, Any]:
        """Return everything the values depend on, for the identity of a study, as JSON data."""
        raise NotImplementedError


def bad_rows(wrong: Array, first: int = 0) -> str:
    """Return the indices of the invalid rows, as text.

    Args:
        wrong: (rows, …) True for invalid values.
        first: number of the first row.
    """
    found = np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1)) + first
    shown = ", ".join(map(str, found[:5].tolist()))
    return f"row{'s' if len(found) > 1 else ''} {shown}" + (f" and {len(found) - 5} more" if len(found) > 5 else "")


# ---- values that depend on (seed, name, row) only -------------------------------------------------------------------------------


def _key(*parts: object) -> int:
    """Hash of these parts, 128 bits."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:16], "little")


def _uniform(key: int, start: int, stop: int) -> Array:
    """Uniform numbers of [0, 1), one for each row: block row // 4 of the Philox stream of this key has the numbers of four rows."""
    stream = np.random.Philox(key=key)
    stream.advance(start // 4)
    skipped = start % 4
    bits = stream.random_raw(stop - start + skipped)[skipped:]
    return np.asarray(bits >> np.uint64(11)) * 2.0**-53


def _permuted(rows: Array, n: int, key: int) -> Array:
    """Return the images of these rows under a random permutation of 0 … n − 1.

    A Feistel network permutes the numbers of 2h bits, 2^2h ≥ n: (l, r) → (r, l ⊕ F(r)), F a hash with a key per round. A result beyond n − 1 is passed through it again,
    which permutes 0 … n − 1. Less than four passes on average, and no memory of the other rows.
    """
    half = np.uint64(max(1, math.ceil(math.log2(max(n, 2)) / 2)))
    mask = np.uint64((1 << int(half)) - 1)
    keys = np.random.Philox(key=key).random_raw(8).astype(np.uint64)
    x = rows.astype(np.uint64)
    outside = np.ones(len(x), dtype=bool)
    while outside.any():
        left, right = x[outside] >> half, x[outside] & mask
        for k in keys:
            mixed = (right ^ k) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            left, right = right, left ^ (mixed >> np.uint64(32)) & mask
        x[outside] = (left << half) | right
        outside = x >= np.uint64(n)
    return x.astype(np.int64)


# ---- designs --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Listed(Design):
    """A design with listed values."""

    values: dict[str, Array]

    def extremes(self) -> dict[str, Array]:
        return self.values

    def content(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "values": {name: digest(v) for name, v in self.values.items()}}


class _Grid(_Listed):
    def columns(self, start: int, stop: int) -> dict[str, Array]:
        at, found = np.arange(start, stop), {}
        for name, values in reversed(self.values.items()):
            at, which = np.divmod(at, len(values))
            found[name] = values[which]
        return {name: found[name] for name in self.values}


class _Columns(_Listed):
    def columns(self, start: int, stop: int) -> dict[str, Array]:
        return {name: values[start:stop] for name, values in self.values.items()}


@dataclass(frozen=True, eq=False)
class _Sampled(Design):
    seed: int
    ranges: dict[str, tuple[float, float, bool]]
    latin: bool

    def columns(self, start: int, stop: int) -> dict[str, Array]:
        return {name: self._column(name, start, stop) for name in self.ranges}

    def _column(self, name: str, start: int, stop: int) -> Array:
        low, high, log = self.ranges[name]
        share = _uniform(_key(self.seed, name), start, stop)
        if self.latin:
            stratum = _permuted(np.arange(start, stop), self.rows, _key(self.seed, name, "order"))
            share = (stratum + share) / self.rows
        if log:
            return np.clip(low * (high / low) ** share, low, high)
        return low * (1 - share) + high * share

    def extremes(self) -> dict[str, Array]:
        return {name: np.array(ends[:2]) for name, ends in self.ranges.items()}

    def content(self) -> dict[str, Any]:
        return {
            "kind": "latin hypercube" if self.latin else "random",
            "seed": self.seed,
            "ranges": {k: list(v) for k, v in self.ranges.items()},
        }


@dataclass(frozen=True, eq=False)
class _Joined(Design):
    parts: tuple[Design, ...]

    def columns(self, start: int, stop: int) -> dict[str, Array]:
        return {name: column for part in self.parts for name, column in part.columns(start, stop).items()}

    def extremes(self) -> dict[str, Array]:
        return {name: values for part in self.parts for name, values in part.extremes().items()}

    def content(self) -> dict[str, Any]:
        return {"kind": "joined", "parts": [part.content() for part in self.parts]}


def digest(values: Array) -> str:
    """Return a digest of an array: its shape and a hash of its bytes."""
    return f"{values.shape} {hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:32]}"


def grid(values: Mapping[str, Any]) -> Design:
    """Return every combination of these values, the last name varying fastest.

    Args:
        values: name → its values, (k,) numbers, or (k, …) arrays.

    Examples:
        >>> import delassus as dl
        >>> dl.studies.grid({"friction": [0.2, 0.8], "mass_scale": [1, 2, 3]}).rows
        6
    """
    made = {text(name, "values"): _finite_column(column, str(name)) for name, column in _mapping(values, "values").items()}
    if empty := [name for name, column in made.items() if len(column) == 0]:
        raise ArgumentError(f"values: expected at least one value of every name, got none of {', '.join(empty)}.")
    return _Grid(_check_rows(math.prod(map(len, made.values()))), tuple(made), made)


def random(rows: int, ranges: Mapping[str, Range], *, seed: int = 0) -> Design:
    """Return independent uniform values. A value depends only on the seed, its name and its row: more rows or names do not change the others.

    Args:
        rows: number of rows.
        ranges: name → (low, high), or (low, high, "log") for values whose logarithm is uniform.
        seed: random seed.
    """
    return _sampled(rows, ranges, seed, latin=False)


def latin_hypercube(rows: int, ranges: Mapping[str, Range], *, seed: int = 0) -> Design:
    """Return a Latin hypercube: each of ``rows`` equal parts of every range has exactly one value, in random order.

    Args:
        rows: number of rows.
        ranges: name → (low, high), or (low, high, "log") for equal parts of the logarithm.
        seed: random seed.
    """
    return _sampled(rows, ranges, seed, latin=True)


def _sampled(rows: int, ranges: Mapping[str, Range], seed: int, *, latin: bool) -> Design:
    made = {text(name, "ranges"): _range(given, str(name)) for name, given in _mapping(ranges, "ranges").items()}
    return _Sampled(_check_rows(count(rows, "rows")), tuple(made), count(seed, "seed", 0), made, latin)


def _range(given: Any, name: str) -> tuple[float, float, bool]:
    if not isinstance(given, list | tuple | np.ndarray) or len(given) not in (2, 3) or (len(given) == 3 and given[2] != "log"):
        raise ArgumentTypeError(f'{name}: expected (low, high) or (low, high, "log"), got {given!r}.')
    low, high, log = number(given[0], name), number(given[1], name), len(given) == 3
    if low > high or (log and low <= 0):
        raise ArgumentError(f"{name}: expected low ≤ high{', both positive' if log else ''}, got {low:g} and {high:g}.")
    return low, high, log


def _check_rows(rows: int) -> int:
    if rows > MAX_ROWS:
        raise ArgumentError(f"rows: expected at most {MAX_ROWS}, got {rows}.")
    return rows


def _mapping(given: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(f"{name}: expected a mapping of names, got {type(given).__name__}.")
    return given


def _finite_column(values: Any, name: str) -> Array:
    """Return the values of a column, (rows, …) float64, all finite."""
    array = np.array(as_array(values, name, "numbers, one or more for each row"), dtype=np.float64)
    if array.ndim == 0:
        raise ArgumentError(f"{name}: expected values of shape (rows,) or (rows, …), got one number.")
    if not np.isfinite(array).all():
        raise NotFiniteError(f"{name}: every number must be finite, got NaN or infinity in {bad_rows(~np.isfinite(array))}.")
    array.setflags(write=False)
    return array


def _column_getter(table: Any) -> tuple[Iterable[Any], Callable[[Any], Any]] | None:
    """Return the column names of a mapping, pyarrow Table or DataFrame, and a function that gets a column."""
    if isinstance(table, Mapping):
        return table, table.__getitem__
    if hasattr(table, "column_names") and hasattr(table, "column"):
        return table.column_names, lambda name: _arrow_values(table.column(name))
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        return table.columns, lambda name: np.asarray(table[name])
    return None


def _arrow_values(column: Any) -> Array:
    """Numbers of a pyarrow column: (rows,), or (rows, k) for lists of equal length."""
    kind = column.type
    if hasattr(kind, "list_size"):
        return np.asarray(column.combine_chunks().flatten().to_numpy(zero_copy_only=False)).reshape(-1, kind.list_size)
    return np.asarray(column.to_numpy())


def as_design(table: Any, name: str, rows: int | None = None) -> Design:
    """Return the design given by the user: one of ours, or a mapping, a DataFrame or a pyarrow Table of columns; in a mapping one number stands for all rows.

    Args:
        table: the design.
        name: name of the argument, for error messages.
        rows: number of rows, if known.
    """
    if isinstance(table, Design):
        return table
    getter = _column_getter(table)
    if getter is None:
        raise ArgumentTypeError(
            f"{name}: expected grid(…), random(…), latin_hypercube(…), or a mapping, DataFrame or pyarrow Table of columns, got {type(table).__name__}."
        )
    names, get = getter
    values = {text(key, name): get(key) for key in names}
    single = {key for key, value in values.items() if np.ndim(value) == 0}
    made = {key: _finite_column([value] if key in single else value, key) for key, value in values.items()}
    lengths = {key: len(column) for key, column in made.items() if key not in single}
    n = rows if rows is not None else next(iter(lengths.values()), 1)
    if wrong := {key: length for key, length in lengths.items() if length != n}:
        raise ArgumentError(f"{name}: expected {n} rows in every column, got {', '.join(f'{v} in {k!r}' for k, v in wrong.items())}.")
    spread = {key: np.broadcast_to(column, (n, *column.shape[1:])) if key in single else column for key, column in made.items()}
    return _Columns(n, tuple(spread), spread)


def joined(*parts: Design) -> Design:
    """Return a design with the columns of several designs of equal length."""
    if len(parts) == 1:
        return parts[0]
    names = [name for part in parts for name in part.names]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ArgumentError(f"{', '.join(twice)}: given twice.")
    return _Joined(parts[0].rows, tuple(names), parts)
