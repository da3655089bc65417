"""What columns of a study are of: parameters of the model, coordinates, velocities and controls to start with; all of an array, or one number of it."""

from __future__ import annotations

import re
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from .._door import unknown
from ..errors import ArgumentError
from ..model import Model
from .designs import Design, bad_rows
from .job import Target

__all__ = ["check_values", "resolve", "shapes_of"]

Array = NDArray[Any]
_FORM = re.compile(r"(?P<array>\w+)(?:\[(?P<index>[^\]]+)\])?")

# Parameters of MuJoCo's model that a row may have its own values of.
ARRAYS = (
    "body_mass", "body_inertia", "body_ipos", "geom_friction", "geom_size", "gravity", "dof_damping", "dof_armature", "dof_frictionloss", "jnt_stiffness", "actuator_gainprm", "actuator_biasprm",
)  # fmt: skip
SCALARS = ("friction", "mass_scale")
STATES = ("q", "v", "control")


def shapes_of(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shape in one row of everything that a column may be of; one number has ()."""
    m = model._in_mujoco()
    arrays = {name: (3,) if name == "gravity" else tuple(getattr(m, name).shape) for name in ARRAYS}
    return {**arrays, **dict.fromkeys(SCALARS, ()), "q": (model.nq,), "v": (model.nv,), "control": (model.nu,)}


def resolve(model: Model, column: str, shapes: dict[str, tuple[int, ...]]) -> Target:
    """Return what a column is of: ``body_mass`` all of an array, ``body_mass[torso]`` one number, by name or number of its body, joint, shape or actuator.

    Raises:
        UnknownNameError: there is no such array, or nothing in it has the name.
        ArgumentError: an index is out of range, or does not say which number.
    """
    found = _FORM.fullmatch(column)
    if found is None or found["array"] not in shapes:
        raise unknown("parameter", column, shapes)
    array, shape = found["array"], shapes[found["array"]]
    if found["index"] is None:
        return Target(array, ())
    words = [word.strip() for word in found["index"].split(",")]
    if len(words) != len(shape):
        raise ArgumentError(f"{column}: {array} has the shape {shape} in a row, so expected {len(shape)} indices, got {len(words)}.")
    index = [_index(model, array, words[0], shape[0]), *(_whole(word, column) for word in words[1:])]
    for k, (i, n) in enumerate(zip(index, shape, strict=True)):
        if not 0 <= i < n:
            raise ArgumentError(f"{column}: expected index {k} from 0 to {n - 1}, got {i}.")
    return Target(array, tuple(index))


def _whole(word: str, column: str) -> int:
    if not word.isdecimal():
        raise ArgumentError(f"{column}: expected a whole number as an index, got {word!r}.")
    return int(word)


def _index(model: Model, array: str, word: str, length: int) -> int:
    """Number of a row of an array, by number or by name."""
    if word.isdecimal():
        return int(word)
    names = _names(model, array)
    if word not in names:
        raise unknown(f"{array}: element", word, names)
    return names[word]


def _names(model: Model, array: str) -> dict[str, int]:
    """Names of elements of an array, where each has one."""
    m, kind = model._in_mujoco(), mujoco.mjtObj
    kinds = {"body": (kind.mjOBJ_BODY, m.nbody), "geom": (kind.mjOBJ_GEOM, m.ngeom), "jnt": (kind.mjOBJ_JOINT, m.njnt), "actuator": (kind.mjOBJ_ACTUATOR, m.nu)}
    prefix = "actuator" if array == "control" else array.split("_")[0]
    if prefix in kinds:
        what, n = kinds[prefix]
        return {name: i for i in range(n) if (name := mujoco.mj_id2name(m, what, i))}
    places = {"q": model.joint_qadr, "v": model.joint_vadr, "dof": model.joint_vadr}.get(prefix)
    if places is None:
        return {}
    return {name: int(at) for name, at, kind in zip(model.joint_names, places, model.joint_type, strict=True) if kind in ("hinge", "slide")}


def check_values(model: Model, design: Design, targets: dict[str, Target], shapes: dict[str, tuple[int, ...]]) -> None:
    """Check shapes and signs of all values of a design.

    Raises:
        ArgumentError: and names the column and the rows.
    """
    masses = np.asarray(model._in_mujoco().body_mass)
    for name, values in design.extremes().items():
        target = targets[name]
        shape = shapes[target.array] if not target.index else ()
        if values.shape[1:] != shape:
            raise ArgumentError(f"{name}: expected shape {('rows', *shape)}, got {values.shape}.".replace("'rows'", "rows"))
        wrong = np.zeros(values.shape, dtype=bool)
        if target.array == "body_mass":
            # the world and bodies without mass stay without
            wrong = (values <= 0) & (masses[target.index or ...] > 0) | (values < 0)
        elif target.array == "mass_scale":
            wrong = values <= 0
        elif target.array.startswith(("geom_friction", "friction", "dof_", "jnt_stiffness", "body_inertia")):
            wrong = values < 0
        if wrong.any():
            sign = "positive numbers" if "mass" in target.array else "numbers that are not negative"
            raise ArgumentError(f"{name}: expected {sign}, got {float(values[wrong].min()):g} in {bad_rows(wrong) if len(values) == design.rows else 'its range'}.")

