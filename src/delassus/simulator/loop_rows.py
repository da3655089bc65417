"""Rows of the loops of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraints import from_loop
from ..model import Model

__all__ = ["LoopRows", "loop_slices"]

Array = NDArray[Any]


def loop_slices(model: Model) -> dict[str, slice]:
    """Return the slice of each loop's rows among those of all loops, including inactive ones."""
    ends = np.cumsum([0, *(from_loop(model, loop).rows for loop in model.loops)]).tolist()
    return {loop.name: slice(a, b) for loop, a, b in zip(model.loops, ends, ends[1:], strict=False)}


class LoopRows:
    """Rows of all loops of a model; inactive loops have zero forces.

    Attributes:
        slices: rows of each loop.
        count: total number of rows.
    """

    def __init__(self, model: Model, active: Sequence[bool]) -> None:
        self.slices = loop_slices(model)
        self.count = max((rows.stop for rows in self.slices.values()), default=0)
        held = [np.arange(rows.start, rows.stop) for rows, on in zip(self.slices.values(), active, strict=True) if on]
        self._held = np.concatenate([np.zeros(0, dtype=int), *held])

    def spread(self, forces: Array) -> Array:
        """Return the forces of all rows (…, count), given those of the active loops."""
        if len(self._held) == self.count:
            return forces
        full = np.zeros((*forces.shape[:-1], self.count))
        full[..., self._held] = forces
        return full
