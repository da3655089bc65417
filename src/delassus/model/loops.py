"""Loops given as lists: dictionaries, or files of them, that name bodies, joints or sites, and leave out what follows from the reference configuration.

    {"kind": "hinge", "body": "rod", "other": "crank", "point": [0.3, 0, 0], "axis": [0, 1, 0]}

What the list leaves out about ``other`` is taken from the described configuration (``model.neutral()``), as MuJoCo's <equality> does. If it says nothing about
either side, the two frames coincide: the origin of one body, joint or site is at that of the other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from .._door import number, numbers, text, unknown
from ..errors import ArgumentError, ArgumentTypeError, LoadError
from ..spatial import compose, rotation_matrix
from .records import (
    IDENTITY,
    LOOPS,
    QUATERNION_SLACK,
    ConnectLoop,
    CylindricalLoop,
    DistanceLoop,
    Frame,
    HingeLoop,
    JointLoop,
    Loop,
    PlanarLoop,
    PrismaticLoop,
    UniversalLoop,
    WeldLoop,
)

if TYPE_CHECKING:
    from .model import Model

__all__ = ["KINDS", "LoopList", "across", "entry_of", "loops_from", "parsed", "read_list", "record_of"]

Floats = NDArray[np.float64]
LoopList = str | os.PathLike[str] | Iterable[Loop | Mapping[str, Any]]

# names of the kinds of loops, and the other keys of an entry of each kind
KINDS: dict[str, type] = {
    "connect": ConnectLoop, "ball": ConnectLoop, "spherical": ConnectLoop, "weld": WeldLoop, "hinge": HingeLoop, "universal": UniversalLoop,
    "prismatic": PrismaticLoop, "cylindrical": CylindricalLoop, "planar": PlanarLoop, "distance": DistanceLoop, "coupling": JointLoop, "gear": JointLoop,
}  # fmt: skip
_COMMON = {"kind", "name", "active"}
_ENDS = {"body", "other", "point", "other_point"}
_AXES, _TURNS = {"axis", "other_axis"}, {"quaternion", "other_quaternion"}
_KEYS: dict[str, set[str]] = {kind: _COMMON | _ENDS for kind in ("connect", "ball", "spherical")} | {
    "weld": _COMMON | _ENDS | _TURNS, **{kind: _COMMON | _ENDS | _AXES for kind in ("hinge", "universal", "cylindrical", "planar")},
    "prismatic": _COMMON | _ENDS | _TURNS | {"axis"}, "distance": _COMMON | _ENDS | {"length"},
    "coupling": _COMMON | {"joint", "other", "polynomial"}, "gear": _COMMON | {"joint", "other", "ratio"},
}  # fmt: skip


def read_list(source: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the entries of a list of loops, and the joints to substitute: for a list none, for a JSON or TOML file its ``loops`` and ``joints``.

    Raises:
        LoadError: the file is missing, of another kind, or damaged.
        ArgumentTypeError: neither a list nor a path.
    """
    if not isinstance(source, str | os.PathLike):
        if isinstance(source, Mapping) or not isinstance(source, Iterable):
            raise ArgumentTypeError(f"loops: expected a list, or the path of a JSON or TOML file, got {type(source).__name__}.")
        return list(source), {}
    path = Path(source)
    found = parsed(path, "loops")
    loops, joints = (found.get("loops", []), found.get("joints", {})) if isinstance(found, dict) else (found, {})
    if not isinstance(loops, list) or not isinstance(joints, dict):
        raise LoadError(f"loops: {str(path)!r}: expected a list 'loops' and a table 'joints'. In TOML each loop starts with [[loops]].")
    return loops, joints


def parsed(path: Path, argument: str) -> Any:
    """Return the content of a JSON or TOML file.

    Args:
        path: path of the file.
        argument: name of the argument, for error messages.

    Raises:
        LoadError: the file is missing, of another kind, or damaged.
    """
    readers: dict[str, Callable[[str], Any]] = {".json": json.loads, ".toml": _toml}
    if path.suffix not in readers:
        raise LoadError(f"{argument}: expected a file that ends in .json or .toml, got {str(path)!r}.")
    try:
        return readers[path.suffix](path.read_text(encoding="utf-8"))
    except ImportError:
        raise LoadError(f"{argument}: TOML needs Python 3.11 or later. Use JSON.") from None
    except OSError as error:
        raise LoadError(f"{argument}: the file {str(path)!r} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{argument}: {str(path)!r} is damaged: {error}.") from None


def _toml(content: str) -> Any:
    import tomllib

    return tomllib.loads(content)


def loops_from(model: Model, source: LoopList) -> tuple[Loop, ...]:
    """Return the records of a list of loops.

    Args:
        model: model that the loops will belong to.
        source: records, dictionaries, or the path of a file of dictionaries.
    """
    places = _Places(model)
    taken = {loop.name for loop in model.loops}
    made: list[Loop] = []
    for k, entry in enumerate(read_list(source)[0]):
        if isinstance(entry, LOOPS):
            made.append(cast(Loop, entry))
        elif isinstance(entry, Mapping):
            made.append(_made(places, entry, f"loops[{k}]", taken))
        else:
            raise ArgumentTypeError(f"loops[{k}]: expected a dictionary or a loop of a model, got {type(entry).__name__}.")
        taken.add(made[-1].name)
    return tuple(made)


@dataclass(frozen=True)
class _Frame:
    """A frame on a body: that of the body itself, of a joint or of a site. R, p: in body coordinates; axis: the joint's."""

    body: str
    R: Floats
    p: Floats
    quaternion: tuple[float, float, float, float]
    axis: Floats | None = None


class _Places:
    """Frames of a model by name, and poses of bodies in the reference configuration."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.R, self.p, self.turn = [np.eye(3)], [np.zeros(3)], [IDENTITY]
        for b in range(1, model.nbody):
            above = int(model.body_parent[b])
            self.R.append(self.R[above] @ rotation_matrix(model.body_quaternion[b]))
            self.p.append(self.p[above] + self.R[above] @ model.body_position[b])
            self.turn.append(compose(self.turn[above], model.body_quaternion[b]))

    def frame(self, name: Any, what: str) -> _Frame:
        """Return the frame of a body, else of a joint, else of another frame of this name; or a frame as it is."""
        model = self.model
        if isinstance(name, Frame):
            found = model.frame(name)
            return _Frame(found.body, rotation_matrix(found.quaternion), np.array(found.position), found.quaternion)
        key = text(name, what)
        if key not in model.body_names and key not in model.joint_names and key not in model.frames:
            raise unknown(f"{what}: body, joint or site", key, [*model.body_names, *model.joint_names, *model.frames])
        found, axis = model.frame(key), None
        if key not in model.body_names and key in model.joint_names:
            j = model.joint_index(key)
            axis = model.joint_axis[j] if model.joint_type[j] in ("hinge", "slide") else None
        return _Frame(found.body, rotation_matrix(found.quaternion), np.array(found.position), found.quaternion, axis)

    def point_on(self, other: str, body: str, point: Floats) -> Floats:
        """Coordinates, on another body, of a point of a body in the reference configuration."""
        a, b = self.model.body_index(body), self.model.body_index(other)
        return self.R[b].T @ (self.p[a] + self.R[a] @ point - self.p[b])

    def axis_on(self, other: str, body: str, axis: Floats) -> Floats:
        a, b = self.model.body_index(body), self.model.body_index(other)
        return self.R[b].T @ self.R[a] @ axis

    def turn_on(self, other: str, body: str, turn: Any) -> Any:
        a, b = self.model.body_index(body), self.model.body_index(other)
        w, x, y, z = self.turn[b]
        return compose((w, -x, -y, -z), compose(self.turn[a], turn))


def _made(places: _Places, entry: Mapping[str, Any], where: str, taken: set[str]) -> Loop:
    """Return the loop record for a dictionary."""
    kind = entry.get("kind")
    if kind not in KINDS:
        raise unknown(f"{where}: kind", kind, KINDS)
    for key in entry:
        if key not in _KEYS[kind]:
            raise unknown(f"{where}: a {kind} loop has no argument", key, sorted(_KEYS[kind]))
    name = _name(entry, kind, where, taken)
    active = entry.get("active", True)
    if not isinstance(active, bool):
        raise ArgumentTypeError(f"loop {name!r}: active: expected true or false, got {active!r}.")
    what = f"loop {name!r}"
    if KINDS[kind] is JointLoop:
        return _coupling(entry, kind, name, what, active)
    return _Pair(places, entry, what).record(kind, name, active)


def _name(entry: Mapping[str, Any], kind: str, where: str, taken: set[str]) -> str:
    if "name" in entry:
        return text(entry["name"], f"{where}: name")
    k = len(taken)
    while f"{kind}_{k}" in taken:
        k += 1
    return f"{kind}_{k}"


def _coupling(entry: Mapping[str, Any], kind: str, name: str, what: str, active: bool) -> JointLoop:
    if "joint" not in entry:
        raise ArgumentError(f"{what}: joint: expected the name of the joint that follows, got none.")
    other = entry.get("other")
    if kind == "gear":
        if other is None or "ratio" not in entry:
            raise ArgumentError(f"{what}: expected the joint 'other' that leads and the 'ratio' of q to its coordinate, got {dict(entry)}.")
        polynomial = (0.0, number(entry["ratio"], f"{what}: ratio"), 0.0, 0.0, 0.0)
    else:
        polynomial = _tuple(entry.get("polynomial", (0.0, 1.0, 0.0, 0.0, 0.0)), f"{what}: polynomial", 5)
    return JointLoop(
        name, text(entry["joint"], f"{what}: joint"), None if other is None else text(other, f"{what}: other"), polynomial, active
    )


def _tuple(value: Any, name: str, n: int) -> Any:
    return tuple(numbers(value, name, (n,)).tolist())


class _Pair:
    """Two ends of a loop, and what an entry specifies of them."""

    def __init__(self, places: _Places, entry: Mapping[str, Any], what: str) -> None:
        if "body" not in entry:
            raise ArgumentError(f"{what}: body: expected the name of a body, joint or site, got none.")
        self.places, self.entry, self.what = places, entry, what
        other = entry.get("other")
        self.one, self.two = (
            places.frame(entry["body"], f"{what}: body"),
            places.frame("world" if other is None else other, f"{what}: other"),
        )
        self.to_world = self.two.body == "world" and other in (None, "world")

    def record(self, kind: str, name: str, active: bool) -> Loop:
        make = KINDS[kind]
        given: dict[str, Any] = {"name": name, "body": self.one.body, "other": self.two.body, "active": active, **self.points()}
        wanted = {field.name for field in fields(make)}
        if "other_axis" in wanted:
            given |= self.axes(kind)
        elif "axis" in wanted:
            given["axis"] = tuple(self.axis("axis", self.one, self.default_axis(self.one)).tolist())
        if "quaternion" in wanted:
            given |= self.turns()
        if "length" in wanted:
            given["length"] = self.length(given)
        return make(**given)  # type: ignore[no-any-return]

    def says(self, key: str) -> bool:
        return self.entry.get(key) is not None

    def from_reference(self, key: str) -> bool:
        """Whether the other side follows from the reference configuration."""
        return self.says(key) or self.to_world

    def points(self) -> dict[str, Any]:
        point = self.point("point", self.one)
        if self.says("other_point") or not self.from_reference("point"):
            other = self.point("other_point", self.two)
        else:
            other = self.places.point_on(self.two.body, self.one.body, point)
        return {"point": tuple(point.tolist()), "other_point": tuple(other.tolist())}

    def point(self, key: str, frame: _Frame) -> Floats:
        offset = numbers(self.entry[key], f"{self.what}: {key}", (3,)) if self.says(key) else np.zeros(3)
        return np.asarray(frame.p + frame.R @ offset)

    def default_axis(self, frame: _Frame, direction: Sequence[float] = (0.0, 0.0, 1.0)) -> Floats:
        """Axis of a joint, else a coordinate axis of the frame."""
        return frame.R @ direction if frame.axis is None else frame.axis

    def axis(self, key: str, frame: _Frame, default: Floats) -> Floats:
        if not self.says(key):
            return default
        axis = numbers(self.entry[key], f"{self.what}: {key}", (3,))
        if not axis.any():
            raise ArgumentError(f"{self.what}: {key}: expected a direction other than zero, got {axis.tolist()}.")
        return np.asarray(frame.R @ axis)

    def axes(self, kind: str) -> dict[str, Any]:
        crossed = kind == "universal"
        axis = self.axis("axis", self.one, self.default_axis(self.one, (1.0, 0.0, 0.0) if crossed else (0.0, 0.0, 1.0)))
        from_reference = self.from_reference("axis") or (self.one.axis is not None and self.two.axis is None)
        if self.says("other_axis") or not from_reference:
            other = self.axis("other_axis", self.two, self.default_axis(self.two, (0.0, 1.0, 0.0) if crossed else (0.0, 0.0, 1.0)))
        else:
            other = self.places.axis_on(self.two.body, self.one.body, across(axis) if crossed else axis)
        return {"axis": tuple(axis.tolist()), "other_axis": tuple(other.tolist())}

    def turns(self) -> dict[str, Any]:
        turn = self.turn("quaternion", self.one)
        if self.says("other_quaternion") or not self.from_reference("quaternion"):
            other = self.turn("other_quaternion", self.two)
        else:
            other = self.places.turn_on(self.two.body, self.one.body, turn)
        return {"quaternion": turn, "other_quaternion": other}

    def turn(self, key: str, frame: _Frame) -> Any:
        given = numbers(self.entry[key], f"{self.what}: {key}", (4,)) if self.says(key) else np.array(IDENTITY)
        if not abs(np.linalg.norm(given) - 1) <= QUATERNION_SLACK:
            raise ArgumentError(f"{self.what}: {key}: (w, x, y, z) must have length 1, got {given.tolist()}. Divide it by its length.")
        return compose(frame.quaternion, given)

    def length(self, given: Mapping[str, Any]) -> float:
        """Given length, else that in the reference configuration."""
        if self.says("length"):
            return number(self.entry["length"], f"{self.what}: length")
        here = self.places.point_on(self.two.body, self.one.body, np.array(given["point"]))
        return float(np.linalg.norm(here - np.array(given["other_point"])))


def across(axis: Floats) -> Floats:
    """Coordinate axis most perpendicular to an axis, made exactly perpendicular."""
    n = axis / np.linalg.norm(axis)
    e = np.eye(3)[np.argmin(np.abs(n))]
    return np.asarray(e - n * (n @ e))


# ---- records as plain data -----------------------------------------------------------------------------------------------------


def entry_of(loop: Loop) -> dict[str, Any]:
    """Return a loop as plain data, every field of it."""
    return {"kind": loop.kind} | {field.name: getattr(loop, field.name) for field in fields(loop)}


def record_of(entry: Any) -> Loop:
    """Return the loop for an entry of :func:`entry_of`, possibly after JSON. The model checks its numbers.

    Raises:
        LoadError: the entry does not have that form.
    """
    if not isinstance(entry, dict) or entry.get("kind") not in KINDS:
        raise LoadError(f"loops: expected dictionaries with a kind, got {entry!r}.")
    make = KINDS[entry["kind"]]
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items() if key != "kind"}
    if set(given) != {field.name for field in fields(make)}:
        raise LoadError(f"loops: a {entry['kind']} loop has other fields than {sorted(given)}.")
    return make(**given)  # type: ignore[no-any-return]
