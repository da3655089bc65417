"""Selection of worlds by masks, indices and slices."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ArgumentError, ArgumentTypeError

__all__ = ["Where", "chosen"]

Where: TypeAlias = ArrayLike | slice | None


def chosen(where: Any, count: int, name: str = "where") -> NDArray[np.int64]:
    """Return the indices of the worlds selected by a mask (count,), indices, a slice, or None for all; in their order, each once.

    Raises:
        ArgumentError: a mask of another length, an index out of range, or a repeated index.
        ArgumentTypeError: something else.
    """
    if where is None or isinstance(where, slice):
        return np.arange(count)[where if isinstance(where, slice) else slice(None)]
    given = np.asarray(where)
    if given.dtype == bool:
        if given.shape != (count,):
            raise ArgumentError(f"{name}: expected a mask of shape ({count},), got {given.shape}.")
        return np.flatnonzero(given)
    if given.size == 0 and given.ndim == 1:
        return np.zeros(0, dtype=np.int64)
    if given.dtype.kind not in "iu" or given.ndim > 1:
        raise ArgumentTypeError(
            f"{name}: expected a mask, whole numbers in one dimension, a slice or None, got {type(where).__name__} of dtype {given.dtype} and shape {given.shape}."
        )
    indices = np.atleast_1d(given).astype(np.int64)
    if ((indices < -count) | (indices >= count)).any():
        raise ArgumentError(f"{name}: expected numbers of {count} worlds, from 0 to {count - 1}, got {given.tolist()}.")
    indices = indices % count
    if len(np.unique(indices)) != len(indices):
        raise ArgumentError(f"{name}: expected every world once, got {given.tolist()}.")
    return indices
