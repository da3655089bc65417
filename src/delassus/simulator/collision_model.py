"""The MuJoCo model used for collision detection, and the read-only copy for users."""

from __future__ import annotations

import copy
import ctypes
from functools import lru_cache
from typing import Any

import mujoco
import numpy as np

from ..errors import StaleError
from ..model.geometry import flags, set_flags
from .mujoco_library import layout

__all__ = ["REACH", "ShownModel", "collision_model", "margin_shift"]

REACH = 1e-3  # [m] on each of two shapes
_FEW = 8  # shapes of a body; a tree of boxes around them costs more than spheres
# arrays that are only drawn: they may be written
_DRAWN = ("cam_", "light_", "mat_", "skin_", "tex_", "text", "vis", "names", "site_rgba", "geom_rgba", "tendon_rgba", "geom_group", "geom_matid")  # fmt: skip


# arrays that grow with the vertices of what is drawn, and that nobody writes: trees of boxes, meshes, skins, textures
_BULKY = ("bvh_", "oct_", "mesh_", "skin_", "tex_")


@lru_cache(maxsize=1)
def _gap_extends() -> bool:
    """Whether contacts are detected up to margin + gap and active up to the margin, as in later versions of MuJoCo; else they are detected up to the margin and active up to margin − gap."""
    m = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1' margin='.02' gap='.02'/><body pos='0 0 .15'><freejoint/><geom size='.1' margin='.02' gap='.02'/></body></worldbody></mujoco>"
    )
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    return bool(d.ncon)


def margin_shift(m: mujoco.MjModel) -> float:
    """Return by how much the contact margins of a :func:`collision_model` are too large [m], where options override those of shapes."""
    return REACH if "override" in set_flags(m) else 0.0


def collision_model(m: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy of MuJoCo's model that finds exactly the contacts the simulator needs."""
    c = copy.copy(m)
    # shapes about to touch are contacts already: within the step they may approach up to the margin, and no closer
    for gap in (c.geom_gap, c.pair_gap):
        gap[:] += REACH
    if not _gap_extends():
        for margin in (c.geom_margin, c.pair_margin):
            margin[:] += REACH
    c.body_margin[:] += REACH
    c.opt.o_margin += REACH
    # flexible bodies are left out, and nothing falls asleep
    for name in ("flex_contype", "flex_conaffinity", "flex_internal", "flex_selfcollide"):
        if hasattr(c, name):
            getattr(c, name)[:] = 0
    for field, bit in (place for name, place in flags().items() if name in ("sleep", "speculative")):
        setattr(c.opt, field, getattr(c.opt, field) & ~bit)
    if m.body_geomnum.max(initial=0) <= _FEW:
        c.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE
    return c


class ShownModel:
    """A copy of MuJoCo's model for reading. Writing to it would not affect the motion, so it is refused.

    Only its appearance (colours, materials, cameras, lights) may be changed.
    """

    def __init__(self, m: mujoco.MjModel) -> None:
        self.model, self._before = copy.copy(m), m
        self._spans = self._watched()
        self._seen = self._memory()

    def _watched(self) -> list[tuple[int, int]]:
        """Address and length of the options, and of all arrays but the bulky ones. They are looked at in every step."""
        m, (offsets, _, _) = self.model, layout("mjModel")
        arrays = sorted((offset, name) for name, offset in offsets.items() if offset > offsets["buffer"] and name != "signature")
        starts = [ctypes.c_uint64.from_address(m._address + offset).value for offset, _ in arrays]
        ends = [*starts[1:], ctypes.c_uint64.from_address(m._address + offsets["buffer"]).value + m.nbuffer]
        spans = [(m._address + offsets["opt"], m._address + offsets["buffer"])]
        for (_, name), start, end in zip(arrays, starts, ends, strict=True):
            if name.startswith(_BULKY):
                continue
            if spans[-1][1] == start:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
        return [(start, end - start) for start, end in spans]

    def _memory(self) -> tuple[bytes, ...]:
        return tuple(ctypes.string_at(start, length) for start, length in self._spans)

    def check(self) -> None:
        """Raise an error if the model was written to.

        Raises:
            StaleError: the model was written to; the message names the field.
        """
        now = self._memory()
        if now == self._seen:
            return
        changed = _differences(self.model, self._before)
        if changed:
            raise StaleError(
                f"mujoco_model: {', '.join(changed)} {'was' if len(changed) == 1 else 'were'} written, but this simulator was built from the model before that and does not read it. "
                "Change your own mujoco.MjModel and make a Simulator from it."
            )
        self._seen = now


def _differences(one: Any, other: Any, prefix: str = "") -> list[str]:
    """Names of fields that affect the motion and differ."""
    changed = []
    for name in dir(one):
        if name.startswith(("_", *_DRAWN)):
            continue
        a, b = getattr(one, name), getattr(other, name)
        if callable(a):
            continue
        if isinstance(a, mujoco.MjOption):
            changed += _differences(a, b, "opt.")
        elif isinstance(a, np.ndarray | int | float) and not np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f"):
            changed.append(prefix + name)
    return changed
