"""Block damping, one square block per constraint: conversion between the user's arrays and the core's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._door import as_array, finite
from ..errors import ArgumentError

__all__ = ["are_blocks", "pack", "unpack"]

Array = NDArray[Any]


def are_blocks(value: Any) -> bool:
    """Whether a damping is given as blocks: an array with three or more axes, or a sequence that contains a matrix."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.ndim >= 3
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str) and any(_axes(block) >= 2 for block in value)


def _axes(value: Any) -> int:
    """Axes of a nested sequence or an array, counted along its first entries."""
    if isinstance(value, np.ndarray):
        return value.ndim
    return 1 + (_axes(value[0]) if len(value) else 0) if isinstance(value, (list, tuple)) else 0


def pack(value: Any, rows: Sequence[int], states: int | None, dtype: np.dtype[Any]) -> Array:
    """Return blocks one after the other, each row-major.

    Args:
        value: one (r, r) per constraint of r rows, for a batch also (states, r, r); or one array of all, (k, r, r), for a batch also (states, k, r, r).
        rows: number of rows of each constraint.
        states: number of states of a batch; None for a single state.
        dtype: dtype of the result.

    Returns:
        (numbers of all blocks,), for a batch with a leading axis of states.
    """
    before = () if states is None else (states,)
    if isinstance(value, np.ndarray) and len(set(rows)) == 1 and value.shape == (*before, len(rows), rows[0], rows[0]):
        # one array of all blocks, in the core's layout
        return finite(np.ascontiguousarray(as_array(value, "damping"), dtype).reshape(*before, -1), "damping")
    if isinstance(value, np.ndarray) and value.ndim == 3 + len(before):
        # the axis of states comes first in one array of all blocks, and in each block
        blocks: Sequence[Any] = np.moveaxis(value, len(before), 0)  # type: ignore[assignment]
    else:
        blocks = value
    if len(blocks) != len(rows):
        raise ArgumentError(f"damping: expected {len(rows)} blocks, one per constraint, got {len(blocks)}.")
    flat = []
    for k, (given, r) in enumerate(zip(blocks, rows, strict=True)):
        block = as_array(given, f"damping[{k}]")
        if block.shape != (r, r) and block.shape != (*before, r, r):
            fits = " or ".join(map(str, dict.fromkeys([(r, r), (*before, r, r)])))
            raise ArgumentError(
                f"damping[{k}]: expected shape {fits}, a square block for the {r} rows of its constraint, got {block.shape}."
            )
        if before and block.ndim == 2:
            block = np.broadcast_to(block, (*before, r, r))
        flat.append(block.reshape(*before, r * r))
    numbers: Array = np.concatenate(flat, axis=-1, dtype=dtype) if flat else np.zeros((*before, 0), dtype)
    if not np.isfinite(numbers).all():
        for k, block in enumerate(flat):
            finite(block.astype(dtype), f"damping[{k}]")
    return numbers


def unpack(numbers: Array, rows: Sequence[int]) -> tuple[Array, ...]:
    """Return the block of each constraint, (r, r), for a batch (states, r, r)."""
    ends = np.cumsum([r * r for r in rows])
    return tuple(numbers[..., end - r * r : end].reshape(*numbers.shape[:-1], r, r).copy() for r, end in zip(rows, ends, strict=True))
