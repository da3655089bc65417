"""Restitution of contacts: one number for all, or one per shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from .._door import number, unknown
from ..errors import ArgumentError, LoadError
from ..model.from_mujoco import geom_names

__all__ = ["geom_restitution"]

_TUPLE = "restitution"  # of the file: <custom><tuple name="restitution"><element objtype="geom" objname="ball" prm="0.8"/></tuple></custom>


def _checked(value: Any, name: str) -> float:
    e = number(value, name, minimum=0.0)
    if e > 1:
        raise ArgumentError(f"{name}: expected a number from 0 to 1, got {value}.")
    return e


def _of_file(m: mujoco.MjModel) -> dict[int, float]:
    """Return the restitution of geoms given in the file."""
    t = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_TUPLE, _TUPLE)
    if t < 0:
        return {}
    rows = range(int(m.tuple_adr[t]), int(m.tuple_adr[t] + m.tuple_size[t]))
    if any(m.tuple_objtype[r] != mujoco.mjtObj.mjOBJ_GEOM for r in rows):
        raise LoadError(
            f"source: its tuple {_TUPLE!r} names something other than geoms. Give elements of objtype geom, with prm from 0 to 1."
        )
    return {int(m.tuple_objid[r]): _checked(float(m.tuple_objprm[r]), f"tuple {_TUPLE!r}") for r in rows}


def geom_restitution(m: mujoco.MjModel, given: float | Mapping[str, float] | None) -> NDArray[np.float64]:
    """(ngeom,) e of every geom: a common number, values by name (zero for the others), or those of the file."""
    e = np.zeros(m.ngeom)
    if given is None:
        for geom, value in _of_file(m).items():
            e[geom] = value
    elif isinstance(given, Mapping):
        names = geom_names(m)
        for name, value in given.items():
            if name not in names:
                raise unknown("restitution: shape", str(name), names)
            e[names.index(name)] = _checked(value, f"restitution[{name!r}]")
    else:
        e[:] = _checked(given, "restitution")
    return e
