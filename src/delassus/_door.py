"""Argument checks: convert arguments to arrays of the expected shape and dtype, or raise a typed error."""

from __future__ import annotations

import difflib
import math
import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, ArgumentTypeError, MatrixSizeError, NotFiniteError, UnknownNameError

# Characters that XML 1.0 cannot hold: lone surrogates, control characters, two noncharacters.
_NOT_TEXT = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_array(value: Any, name: str, wanted: str = "an array") -> NDArray[Any]:
    """Return ``value`` as an array of real numbers of any shape, or raise an error that names it."""
    if value is None:
        raise ArgumentTypeError(f"{name}: expected {wanted}, got None.")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ArgumentTypeError(f"{name}: expected {wanted}, got {type(value).__name__} that is no array: {error}.") from None
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise ArgumentTypeError(
            f"{name}: expected real numbers (float64, float32 or integers), got dtype {array.dtype}. Convert it with astype(float)."
        )
    return array


def conform(value: Any, name: str, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Return ``value`` as an aligned C-contiguous array of this shape and dtype, or raise an error that names it."""
    array = as_array(value, name, f"an array of shape {shape}")
    if array.shape != shape:
        raise ArgumentError(f"{name}: expected shape {shape}, got {array.shape}.")
    array = np.asarray(array, dtype=dtype, order="C")
    return array if array.flags.aligned else array.copy()


def refuse_out(out: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Raise the error for an unsuitable ``out``."""
    want = f"a writeable C-contiguous NumPy array of shape {shape} and dtype {dtype}"
    if not isinstance(out, np.ndarray):
        raise ArgumentTypeError(f"out: expected {want}, got {type(out).__name__}.")
    if out.dtype != np.dtype(dtype):
        raise ArgumentTypeError(f"out: expected {want}, got dtype {out.dtype}.")
    state = f"shape {out.shape}, {'C-contiguous' if out.flags.c_contiguous else 'not C-contiguous'}, {'writeable' if out.flags.writeable else 'read-only'}"
    raise ArgumentError(f"out: expected {want}, got {state}. Allocate it with numpy.empty({shape}, '{dtype}').")


def numbers(value: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return finite float64 numbers of this shape."""
    return finite(conform(value, name, shape, "float64"), name)


def finite(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the array if all its numbers are finite."""
    if not np.isfinite(array).all():
        wrong = np.argwhere(~np.isfinite(array))
        first = f"{array[tuple(wrong[0])]} at {name}[{', '.join(map(str, wrong[0]))}], the first of {len(wrong)}"
        got = array.tolist() if array.size <= 24 else first
        raise NotFiniteError(f"{name}: every number must be finite, got {got}.")
    return array


_FLOAT = {float}


def are_floats(value: Any, n: int) -> bool:
    """Whether a value is a tuple of n finite floats."""
    return type(value) is tuple and len(value) == n and set(map(type, value)) == _FLOAT and all(map(math.isfinite, value))


def vector(value: Any, name: str, n: int) -> tuple[float, ...]:
    """Return n finite numbers as a tuple: a tuple of floats, the usual case, is returned as it is, without conversion to an array."""
    if are_floats(value, n):
        return value  # type: ignore[no-any-return]
    return tuple(numbers(value, name, (n,)).tolist())


def number(value: Any, name: str, *, minimum: float | None = None) -> float:
    """Return one finite number, at least ``minimum`` if given."""
    x = value if type(value) is float and math.isfinite(value) else float(numbers(value, name, ()))
    if minimum is not None and x < minimum:
        raise ArgumentError(f"{name}: expected at least {minimum:g}, got {x:g}.")
    return x


def text(value: Any, name: str) -> str:
    """Return a valid name: a nonempty string of printable characters."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name}: expected a string, got {type(value).__name__}.")
    if not value:
        raise ArgumentError(f"{name}: expected a name, got an empty string.")
    if strange := _NOT_TEXT.search(value):
        raise ArgumentError(f"{name}: expected text that XML can hold, got {value!r} with the character {strange.group()!r}.")
    return value


def count(value: Any, name: str, minimum: int = 1) -> int:
    """Return an integer, at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(f"{name}: expected a whole number, got {type(value).__name__}.")
    if value < minimum:
        raise ArgumentError(f"{name}: expected at least {minimum}, got {value}.")
    return int(value)


def diagonal(value: Any, name: str, rows: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return nonnegative numbers, one per row, from a scalar or one number per row; for a batch also the same for all states."""
    array = finite(as_array(value, name), name)
    fits = [rows[k:] for k in range(len(rows) + 1)]
    if array.shape not in fits:
        raise ArgumentError(f"{name}: expected a scalar or shape {' or '.join(map(str, fits[:-1]))}, got {array.shape}.")
    if (array < 0).any():
        raise ArgumentError(f"{name}: expected numbers that are not negative, got {float(array.min()):g}.")
    return np.array(np.broadcast_to(array, rows), dtype=dtype)


def native_class(dtype: Any, natives: Mapping[np.dtype[Any], Any]) -> tuple[np.dtype[Any], Any]:
    """Return a precision as a dtype, and the native class for it."""
    try:
        precision: np.dtype[Any] = np.dtype(dtype)
        return precision, natives[precision]
    except (TypeError, KeyError):
        raise ArgumentTypeError(f"dtype: expected float64 or float32, got {dtype!r}.") from None


def physical_memory() -> float:
    """Memory of this machine [B]; infinite if the system does not report it."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def refuse_large(rows: int, dtype: Any, matrices: int, instead: str) -> None:
    """Refuse to make matrices of ``rows`` × ``rows`` that exceed the machine's memory: the system would kill the process instead of raising an error.

    Raises:
        MatrixSizeError: they do; ``instead`` names an alternative without matrices.
    """
    needed = float(rows) ** 2 * np.dtype(dtype).itemsize * matrices
    if needed > physical_memory():
        raise MatrixSizeError(
            f"constraints: {rows:,} rows; as a dense matrix they take {needed / 1e9:,.1f} GB, and this machine has {physical_memory() / 1e9:,.1f} GB. {instead}"
        )


def unknown(kind: str, name: Any, known: Iterable[str]) -> UnknownNameError:
    """Make the error for a name that does not exist; it suggests similar ones and lists all."""
    names: Sequence[str] = list(known)
    # first names that differ only in case: FL_calf for fl_calf, before RL_calf
    plain = {n.lower(): n for n in names}
    similar = [plain[n] for n in difflib.get_close_matches(str(name).lower(), plain, n=3, cutoff=0.5)]
    hint = f" Did you mean {' or '.join(repr(n) for n in similar)}?" if similar else ""
    shown = ", ".join(names[:60]) + (f", … ({len(names)} in all)" if len(names) > 60 else "")
    none = "There are none: give q itself." if kind == "keyframe" else "There are none."
    return UnknownNameError(f"{kind} {name!r} does not exist.{hint} {f'Available: {shown}.' if names else none}")


def warn(message: str) -> None:
    """Issue a warning at the caller's line outside this package."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith("delassus."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def sealed(owner: Any, name: str, fixed: frozenset[str], way_out: str) -> None:
    """Raise an error if a public attribute would be set that nothing reads. Subclasses may add names, and methods may be replaced."""
    library = next(kind for kind in type(owner).__mro__ if kind.__module__.startswith("delassus."))
    known = getattr(library, name, None)
    there = name in fixed or known is not None
    settable = callable(known) or (isinstance(known, property) and known.fset is not None)
    if not settable and (there or type(owner) is library):
        raise AttributeError(f"{type(owner).__name__}.{name} {'cannot be assigned' if there else 'does not exist'}. {way_out}")


def columns_of(arrays: dict[str, tuple[Any, int]], batch: tuple[int, ...] = ()) -> tuple[int, bool]:
    """Return the number of columns of the given arrays, and whether they are vectors.

    Args:
        arrays: name → an array or None, and its number of rows.
        batch: leading axes, before the rows.
    """
    shapes = {name: as_array(x, name).shape for name, (x, _) in arrays.items() if x is not None}
    if not shapes:
        raise ArgumentError(f"{', '.join(arrays)}: expected at least one of them, got none.")
    first, shape = next(iter(shapes.items()))
    vector = (*batch, arrays[first][1])
    if len(shape) not in (len(vector), len(vector) + 1) or shape[: len(vector)] != vector:
        before = "".join(f"{n}, " for n in batch)
        raise ArgumentError(f"{first}: expected shape {vector} or ({before}{vector[-1]}, k), got {shape}.")
    more = shape[len(vector) :]
    for name, other in shapes.items():
        wanted = (*batch, arrays[name][1], *more)
        if other != wanted:
            raise ArgumentError(f"{name}: expected shape {wanted}, as {first} has {shape}, got {other}.")
    return (int(more[0]), False) if more else (1, True)
