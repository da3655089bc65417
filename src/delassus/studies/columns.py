"""Targets of the columns of a study: parameters of worlds, initial coordinates and velocities, controls; a whole array, one number of it, or a factor on it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from .._door import unknown
from ..errors import ArgumentError
from ..model import Model
from ..model.from_mujoco import geom_names
from ..worlds import Worlds
from .designs import Design, bad_rows
from .job import Target

__all__ = ["SCALES", "STATES", "check_values", "resolve", "row_shapes", "write_column"]

Array = NDArray[Any]
Shapes = dict[str, tuple[int, ...]]
_FORM = re.compile(r"(?P<array>\w+)(?:\[(?P<index>[^\]]+)\])?")

STATES = ("q", "v", "control")
# factors on the model's numbers: name → the arrays that it multiplies
SCALES = {
    "mass_scale": ("body_mass", "body_inertia"), "gravity_scale": ("gravity",), "damping_scale": ("joint_damping",), "stiffness_scale": ("joint_stiffness",),
    "armature_scale": ("joint_armature",), "friction_loss_scale": ("joint_friction_loss",), "gain_scale": ("actuator_gain", "actuator_bias"),
}  # fmt: skip
_ALIKE = ("friction", "restitution")  # one number per row may stand for all shapes
_SIGNED = (
    *STATES,
    "gravity",
    "gravity_scale",
    "body_com",
    "body_inertia",
    "actuator_gain",
    "actuator_bias",
)  # numbers that may be negative


def row_shapes(worlds: Worlds) -> Shapes:
    """Return the shape per row of every possible target of a column; () for one number."""
    model = worlds.model
    arrays = {name: worlds.parameters[name].shape[1:] for name in worlds.parameters}
    return {**arrays, **dict.fromkeys(SCALES, ()), "q": (model.nq,), "v": (model.nv,), "control": (model.nu,)}


def resolve(model: Model, column: str, shapes: Shapes) -> Target:
    """Return the target of a column: ``body_mass`` a whole array, ``body_mass[torso]`` one entry, by name or index of its body, joint, shape or actuator.

    Raises:
        UnknownNameError: there is no such array, or nothing in it has the name.
        ArgumentError: an index is out of range or ambiguous.
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
    index = [_index(model, array, words[0]), *(_whole(word, column) for word in words[1:])]
    for k, (i, n) in enumerate(zip(index, shape, strict=True)):
        if not 0 <= i < n:
            raise ArgumentError(f"{column}: expected index {k} from 0 to {n - 1}, got {i}.")
    return Target(array, tuple(index))


def _whole(word: str, column: str) -> int:
    if not word.isdecimal():
        raise ArgumentError(f"{column}: expected a whole number as an index, got {word!r}.")
    return int(word)


def _index(model: Model, array: str, word: str) -> int:
    """Return the row of an array for an index or a name."""
    if word.isdecimal():
        return int(word)
    names = _names(model, array)
    if word not in names:
        raise unknown(f"{array}: element", word, names)
    return names[word]


def _names(model: Model, array: str) -> dict[str, int]:
    """Names of elements of an array, if each has one."""
    if array in ("q", "v"):
        places = model.joint_qadr if array == "q" else model.joint_vadr
        return {
            name: int(at) for name, at, kind in zip(model.joint_names, places, model.joint_type, strict=True) if kind in ("hinge", "slide")
        }
    prefix = {"control": "actuator", "friction": "geom", "restitution": "geom"}.get(array, array.split("_")[0])
    names: dict[str, Any] = {
        "body": lambda: model.body_names, "joint": lambda: model.joint_names, "geom": lambda: geom_names(model._in_mujoco()), "actuator": lambda: [a.name for a in model.actuators],
    }  # fmt: skip
    return {name: k for k, name in enumerate(names[prefix]())} if prefix in names else {}


def check_values(model: Model, design: Design, targets: Mapping[str, Target], shapes: Shapes) -> None:
    """Check shapes and signs of all values of a design; worlds check the rest when values are set.

    Raises:
        ArgumentError: a value is invalid; the message names the column and the rows.
    """
    for name, values in design.extremes().items():
        target = targets[name]
        shape = () if target.index else shapes[target.array]
        if values.shape[1:] != shape and not (target.array in _ALIKE and values.ndim == 1):
            raise ArgumentError(f"{name}: expected shape ({', '.join(map(str, ('rows', *shape)))}), got {values.shape}.")
        if target.array in _SIGNED:
            continue
        wrong = values < 0
        if target.array == "mass_scale":
            wrong = values <= 0
        elif target.array == "body_mass":
            # the world and massless bodies stay massless
            wrong = (values <= 0) & ((model.body_mass[target.index] if target.index else model.body_mass) > 0) | (values < 0)
        if wrong.any():
            sign = "positive numbers" if "mass" in target.array else "numbers that are not negative"
            where = bad_rows(wrong) if len(values) == design.rows else "its range"
            raise ArgumentError(f"{name}: expected {sign}, got {float(values[wrong].min()):g} in {where}.")


def write_column(target: Target, column: Array, live: Mapping[str, Array]) -> None:
    """Write the values of some rows into the live arrays of the first worlds.

    Args:
        target: target of the column.
        column: (n,) or (n, …) values.
        live: name → (count, …); holds the model's values if the column scales them.
    """
    first: Any = slice(0, len(column))
    for name in SCALES.get(target.array, ()):
        live[name][first] *= column.reshape(-1, *[1] * (live[name].ndim - 1))
    if target.array not in SCALES:
        array = live[target.array]
        spread = column.ndim == 1 and not target.index and array.ndim == 2
        array[(first, *target.index)] = column[:, None] if spread else column
