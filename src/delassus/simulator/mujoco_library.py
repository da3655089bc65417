"""Where MuJoCo's shared library keeps what the core calls and reads: found by looking, checked against what its Python module says."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from ..errors import LoadError

__all__ = ["Addresses", "addresses"]

_FUNCTIONS = ("mj_makeData", "mj_deleteData", "mj_kinematics", "mj_collision")
_REACH = 1 << 22  # bytes of an mjData that are looked through at most
Addresses = tuple[tuple[int, ...], tuple[int, ...]]


def _scene(balls: int) -> tuple[Any, Any]:
    """Return a model with boxes and balls on a plane, in contact, and its data."""
    bodies = "".join(
        f'<body pos="{k} 0 .09"><freejoint/><geom type="{"sphere" if k % 2 else "box"}" size=".1 .1 .1" friction="{0.3 + 0.1 * k} .01 .01"/></body>'
        for k in range(balls)
    )
    m = mujoco.MjModel.from_xml_string(f'<mujoco><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>')
    d = mujoco.MjData(m)
    mujoco.mj_kinematics(m, d)
    mujoco.mj_collision(m, d)
    return m, d


def _words(address: int, size: int, kind: str) -> NDArray[Any]:
    """Memory as whole numbers."""
    return np.frombuffer(memoryview((ctypes.c_char * size).from_address(address)).cast("B"), dtype=kind)


def _pointer(d: Any, value: int) -> int:
    """Offset in an mjData of a pointer with this value."""
    page = 4096
    for start in range(0, _REACH, page):
        found = np.flatnonzero(_words(d._address + start, page, "uint64") == value)
        if len(found):
            return start + 8 * int(found[0])
    raise LoadError(f"MuJoCo {mujoco.__version__}: its data does not show where its arrays are. Use a version between 3.3 and 4.")


@lru_cache(maxsize=1)
def addresses() -> Addresses:
    """Return the addresses of four functions, and twelve offsets: in mjData of qpos, xpos, xmat, contact and ncon; of mjContact its size, dist, pos, frame, friction, geom, dim."""
    folder = Path(mujoco.__file__).parent
    files = sorted(folder.glob("libmujoco*.so*"))
    if not files:
        raise LoadError(f"MuJoCo {mujoco.__version__}: there is no libmujoco beside its Python module.")
    library = ctypes.CDLL(str(files[0]))
    functions = tuple(int(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0) for name in _FUNCTIONS)

    _, d = _scene(3)
    first, second = d.contact[0], d.contact[1]
    base = int(first.pos.ctypes.data) - 8  # dist comes before pos
    size = int(second.pos.ctypes.data) - int(first.pos.ctypes.data)
    inside = [int(x.ctypes.data) - base for x in (first.pos, first.frame, first.friction, first.geom)]
    arrays = [_pointer(d, int(x.ctypes.data)) for x in (d.qpos, d.xpos, d.xmat)]
    contacts = _pointer(d, base)
    scenes = [_scene(balls)[1] for balls in (0, 1, 2, 3, 5)]
    counts = np.flatnonzero(np.all([_words(other._address, contacts, "int32") == other.ncon for other in scenes], axis=0))
    raw = _words(base, size, "int32")
    # dim is the only 3 among the whole numbers around the geoms: geom1 and geom2 stand between
    dims = [4 * k for k in range(len(raw)) if raw[k] == first.dim and 4 * k in range(inside[3] - 16, inside[3])]
    if len(counts) != 1 or len(dims) != 1 or ctypes.c_double.from_address(base).value != first.dist:
        raise LoadError(f"MuJoCo {mujoco.__version__}: its contacts are not where they used to be. Use a version between 3.3 and 4.")
    return functions, (*arrays, contacts, 4 * int(counts[0]), size, 0, inside[0], inside[1], inside[2], inside[3], dims[0])
