"""Random numbers for many worlds together: each is a hash of (seed, episode, column), so none depends on other worlds or on the order of calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["uniform"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio, odd: its multiples visit all numbers


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bijective 64-bit hash: the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def uniform(seeds: NDArray[Any], episodes: NDArray[Any], columns: int) -> NDArray[np.float64]:
    """Return uniform numbers from −1 to 1.

    Args:
        seeds: (k,) whole numbers from 0 to 2⁶⁴ − 1.
        episodes: (k,) integers, index of the episode for that seed.
        columns: numbers per row.

    Returns:
        (k, columns).
    """
    key = _mix(_mix(seeds.astype(np.uint64) + _GOLDEN) + episodes.astype(np.uint64))
    bits = _mix(key[:, None] + np.arange(1, columns + 1, dtype=np.uint64) * _GOLDEN)
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0)
