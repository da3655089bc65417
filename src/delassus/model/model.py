"""The constant robot: bodies, joints, loops, shapes, checked once, never changed."""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, NoReturn

import mujoco
import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._door import numbers, text, unknown
from .._html import table
from ..errors import ArgumentError, ArgumentTypeError, LoadError, ModelError, NotFiniteError, QuaternionError, UnknownNameError
from ..spatial import compose, rotation_matrix
from .checks import check_everything
from .computed import computed
from .geometry import digest, unshaped
from .loops import LoopList, loops_from
from .order import depth_first
from .records import (
    COORDINATES,
    JOINT_TYPES,
    LOOPS,
    QUATERNION_SLACK,
    VELOCITIES,
    Actuator,
    Body,
    Frame,
    Joint,
    JointType,
    Loop,
    Shape,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
_LOOPS_AT = 4  # in a model's content


def _frozen(values: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Array over immutable bytes, which cannot be made writeable again."""
    array = np.array(values, dtype=dtype).reshape(shape)
    if array.size:
        return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(shape)
    array.setflags(write=False)
    return array


def _directions(values: Any, n: int, size: int) -> Any:
    """Vectors scaled to unit length, their largest number first, so that no square overflows."""
    v = np.array(values, dtype=np.float64).reshape(n, size)
    v /= np.abs(v).max(axis=1, keepdims=True)
    return _frozen(v / np.linalg.norm(v, axis=1, keepdims=True), np.float64, (n, size))


_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind)) for kind in (Body, Joint, Shape, Actuator, *LOOPS)
}


def _canonical(value: Any) -> Any:
    """Content in canonical form: 1, 1.0 and numpy.float64(1) are the same number, and so are 0.0 and −0.0."""
    kind = type(value)
    if kind is float:  # nearly all of it
        return value + 0.0
    if kind is str or kind is bool or value is None:
        return value
    if kind is tuple:
        return tuple([_canonical(v) for v in value])
    if names := _FIELDS.get(kind):
        return (kind.__name__, *[_canonical(getattr(value, name)) for name in names])
    if is_dataclass(value):
        return (kind.__name__, *(_canonical(getattr(value, field.name)) for field in fields(value)))
    if isinstance(value, tuple):
        return tuple(_canonical(v) for v in value)
    return value if isinstance(value, str) else float(value) + 0.0


def _records(values: Any, what: str, *kinds: type) -> tuple[Any, ...]:
    records = tuple(values)
    for record in records:
        if not isinstance(record, kinds):
            raise ArgumentTypeError(f"{what}: expected {' or '.join(k.__name__ for k in kinds)}, got {type(record).__name__}.")
    return records


class Model:
    """A mechanism: a tree of bodies and joints, loops that close it, shapes that touch.

    Made by :func:`delassus.load`, :class:`delassus.ModelBuilder` or :mod:`delassus.scenes`. It never changes; equal content
    means equal models and equal hashes; it can be pickled. Coordinates q (nq,) and velocities v (nv,) are MuJoCo's qpos and
    qvel. Arrays over bodies include the world as body 0; points and axes are in body coordinates, SI units.

    A loaded model keeps MuJoCo's compiled model, so that meshes, height fields and explicit pairs take part in
    contacts although they are not among ``shapes``. They count as content; geometry that is only drawn does not.

    Attributes:
        name: name of the model.
        nq, nv, nbody, njoint: sizes.
        gravity: (3,) [m/s²], world.
        body_names, body_parent, body_moves (whether any joint carries it), body_position (nbody, 3), body_quaternion (nbody, 4), body_mass, body_com (nbody, 3),
            body_inertia (nbody, 3, 3) about the centre of mass in body axes.
        joint_names, joint_type, joint_body, joint_position (njoint, 3), joint_axis (njoint, 3), joint_reference,
            joint_range (njoint, 2), joint_stiffness; joint_qadr, joint_vadr: index of a joint's first coordinate and velocity.
        dof_armature, dof_damping, dof_stiffness, dof_friction_loss: (nv,).
        spring_reference: (nq,) coordinates at which springs are relaxed.
        nu: number of controls of all actuators.
        loops: loop closures; shapes: primitive collision shapes; actuators; keyframes: name → q; keyframe_velocities: name → v, for those that are not at rest.
        collision_excludes: pairs of body names whose shapes do not touch.
        frames: name → :class:`Frame` fixed to a body: sites of MJCF, fixed joints of URDF, operational frames of Pinocchio. :meth:`frame` finds bodies and joints too.
        ignored: elements of the source that would affect or report its motion, but that neither the dynamics nor the simulation use.
    """

    name: str
    nq: int
    nv: int
    nbody: int
    njoint: int
    nu: int
    gravity: Floats
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...]
    shapes: tuple[Shape, ...]
    actuators: tuple[Actuator, ...]
    keyframes: Mapping[str, Floats]
    keyframe_velocities: Mapping[str, Floats]
    collision_excludes: tuple[tuple[str, str], ...]
    frames: Mapping[str, Frame]
    ignored: tuple[str, ...]
    body_names: tuple[str, ...]
    body_parent: Ints
    body_moves: NDArray[np.bool_]
    body_position: Floats
    body_quaternion: Floats
    body_mass: Floats
    body_com: Floats
    body_inertia: Floats
    joint_names: tuple[str, ...]
    joint_type: tuple[JointType, ...]
    joint_body: Ints
    joint_position: Floats
    joint_axis: Floats
    joint_reference: Floats
    joint_range: Floats
    joint_stiffness: Floats
    joint_qadr: Ints
    joint_vadr: Ints
    dof_armature: Floats
    dof_damping: Floats
    dof_stiffness: Floats
    dof_friction_loss: Floats
    spring_reference: Floats
    _native: _core.Model
    _compiled: Any
    _unshaped: str
    _computed: str
    _pools: dict[Any, deque[Any]]
    _neutral: Floats
    _joint_code: Ints
    _body_index: dict[str, int]
    _joint_index: dict[str, int]

    def __init__(
        self,
        name: str,
        bodies: Iterable[Body],
        joints: Iterable[Joint],
        *,
        gravity: Iterable[float] = (0.0, 0.0, -9.81),
        loops: Iterable[Loop] = (),
        shapes: Iterable[Shape] = (),
        actuators: Iterable[Actuator] = (),
        keyframes: Mapping[str, Iterable[float]] | None = None,
        keyframe_velocities: Mapping[str, Iterable[float]] | None = None,
        collision_excludes: Iterable[tuple[str, str]] = (),
        frames: Iterable[Frame] = (),
        ignored: Iterable[str] = (),
        compiled: Any = None,
    ) -> None:
        body_list, joint_list = depth_first(_records(bodies, "bodies", Body), _records(joints, "joints", Joint))
        put = self.__dict__.__setitem__
        put("name", text(name, "name"))
        put("bodies", body_list)
        put("joints", joint_list)
        put("loops", _records(loops, "loops", *LOOPS))
        put("shapes", _records(shapes, "shapes", Shape))
        put("actuators", _records(actuators, "actuators", Actuator))
        put("collision_excludes", tuple((text(a, "collision_excludes"), text(b, "collision_excludes")) for a, b in collision_excludes))
        put("frames", {frame.name: frame for frame in _records(frames, "frames", Frame)})
        put("ignored", tuple(text(line, "ignored") for line in ([ignored] if isinstance(ignored, str) else ignored)))
        put("gravity", _frozen(numbers(gravity, "gravity", (3,)), np.float64, (3,)))
        check_everything(self)
        self._lay_out(put)
        put("frames", MappingProxyType({name: self._below(frame, ()) for name, frame in self.frames.items()}))
        put("keyframes", MappingProxyType({text(k, "name of a keyframe"): self._keyframe(k, q) for k, q in (keyframes or {}).items()}))
        put("keyframe_velocities", MappingProxyType(self._moving_keyframes(keyframe_velocities or {})))
        put("_native", _core.build_model(
            self.body_parent, self.body_position, self.body_quaternion, self.body_mass, self.body_com, self.body_inertia,
            self._joint_code, self.joint_body, self.joint_position, self.joint_axis, self.joint_reference, self.dof_armature,
            self.gravity,
        ))  # fmt: skip
        if compiled is None and (alien := [a.name for a in self.actuators if a.joint is None]):
            raise ModelError(
                f"actuator {alien[0]!r}: joint: expected the name of a hinge or slide, got None, which only an actuator of a loaded file may have."
            )
        # MuJoCo's compiled model of the source, never written to
        put("_compiled", compiled)
        put("_unshaped", "" if compiled is None else digest(unshaped(compiled)))
        put("_computed", "" if compiled is None else digest(computed(compiled)))
        # idle workspaces, by their class and its options; if more callers need one at the same time, they make their own
        put("_pools", defaultdict(partial(deque, maxlen=8)))

    def _lay_out(self, put: Any) -> None:
        """Set all public arrays, read-only."""
        bodies, joints = self.bodies, self.joints
        nb, nj = len(bodies) + 1, len(joints)
        index = {"world": 0} | {b.name: i + 1 for i, b in enumerate(bodies)}
        world = Body("world", "world")
        all_bodies = (world, *bodies)
        put("_body_index", index)
        put("_joint_index", {j.name: i for i, j in enumerate(joints)})
        put("nu", sum(a.controls for a in self.actuators))
        put("nbody", nb)
        put("njoint", nj)
        put("body_names", tuple(b.name for b in all_bodies))
        put("body_parent", _frozen([index[b.parent] for b in all_bodies], np.int32, (nb,)))
        jointed = {j.body for j in joints}
        moves = [False] * nb
        for b, body in enumerate(bodies, 1):
            moves[b] = body.name in jointed or moves[index[body.parent]]
        put("body_moves", _frozen(moves, np.bool_, (nb,)))
        put("body_position", _frozen([b.position for b in all_bodies], np.float64, (nb, 3)))
        put("body_quaternion", _directions([b.quaternion for b in all_bodies], nb, 4))
        put("body_mass", _frozen([b.mass for b in all_bodies], np.float64, (nb,)))
        put("body_com", _frozen([b.com for b in all_bodies], np.float64, (nb, 3)))
        full = np.array([b.inertia for b in all_bodies], dtype=np.float64).reshape(nb, 6)
        put("body_inertia", _frozen(full[:, [0, 3, 4, 3, 1, 5, 4, 5, 2]], np.float64, (nb, 3, 3)))

        put("joint_names", tuple(j.name for j in joints))
        put("joint_type", tuple(j.type for j in joints))
        put("_joint_code", _frozen([JOINT_TYPES.index(j.type) for j in joints], np.int32, (nj,)))
        put("joint_body", _frozen([index[j.body] for j in joints], np.int32, (nj,)))
        put("joint_position", _frozen([j.position for j in joints], np.float64, (nj, 3)))
        put("joint_axis", _directions([j.axis for j in joints], nj, 3))
        put("joint_reference", _frozen([j.reference for j in joints], np.float64, (nj,)))
        put("joint_range", _frozen([j.range for j in joints], np.float64, (nj, 2)))
        put("joint_stiffness", _frozen([j.stiffness for j in joints], np.float64, (nj,)))
        sizes_q = [COORDINATES[j.type] for j in joints]
        sizes_v = [VELOCITIES[j.type] for j in joints]
        put("joint_qadr", _frozen(np.cumsum([0, *sizes_q])[:-1], np.int32, (nj,)))
        put("joint_vadr", _frozen(np.cumsum([0, *sizes_v])[:-1], np.int32, (nj,)))
        put("nq", int(sum(sizes_q)))
        put("nv", int(sum(sizes_v)))
        for what in ("armature", "damping", "stiffness", "friction_loss"):
            put(f"dof_{what}", _frozen(np.repeat([getattr(j, what) for j in joints], sizes_v), np.float64, (self.nv,)))

        neutral: list[float] = []
        spring: list[float] = []
        for joint in joints:
            at_rest = self._joint_neutral(joint, index)
            neutral.extend(at_rest)
            spring.extend(joint.spring_reference or at_rest)
        put("_neutral", _frozen(neutral, np.float64, (self.nq,)))
        put("spring_reference", _frozen(spring, np.float64, (self.nq,)))

    def _joint_neutral(self, joint: Joint, index: Mapping[str, int]) -> tuple[float, ...]:
        if joint.type == "free":
            b = index[joint.body]
            return (*self.body_position[b], *self.body_quaternion[b])
        return (1.0, 0.0, 0.0, 0.0) if joint.type == "ball" else (joint.reference,)

    def _keyframe(self, name: str, q: Iterable[float]) -> Floats:
        values = np.array(tuple(q), dtype=np.float64)
        if values.shape != (self.nq,):
            raise ModelError(f"keyframe {name!r}: expected {self.nq} coordinates, got shape {values.shape}.")
        if not np.isfinite(values).all():
            raise NotFiniteError(f"keyframe {name!r}: every number must be finite, got {values.tolist()}.")
        for joint, adr in zip(self.joints, self.joint_qadr, strict=True):
            length = np.linalg.norm(values[adr : adr + COORDINATES[joint.type]][-4:])
            if joint.type in ("ball", "free") and not abs(length - 1) <= QUATERNION_SLACK:
                raise QuaternionError(
                    f"keyframe {name!r}: the quaternion of joint {joint.name!r} must have length 1, got {length:g}. Use delassus.normalize."
                )
        return _frozen(values, np.float64, values.shape)  # type: ignore[no-any-return]

    # ---- states -------------------------------------------------------------------------------------------------------

    def neutral(self) -> Floats:
        """Return the configuration of the description, MuJoCo's qpos0: (nq,), a new array."""
        return self._neutral.copy()

    def zero_velocity(self) -> Floats:
        """Return the velocity at rest: (nv,) zeros, a new array."""
        return np.zeros(self.nv)

    def random(self, rng: np.random.Generator | int | None = None) -> Floats:
        """Return a random configuration: (nq,).

        Hinges and slides are uniform within their range (where unbounded: within π rad, 1 m of the reference), ball and free
        rotations uniform on all rotations (the angle of a ball with a range: uniform within it), free positions within 1 m of neutral.

        Args:
            rng: a generator, or a seed for one.
        """
        if not isinstance(rng, np.random.Generator):
            try:
                rng = np.random.default_rng(rng)
            except (TypeError, ValueError):
                raise ArgumentTypeError(f"rng: expected a numpy.random.Generator, a seed or None, got {rng!r}.") from None
        q = self.neutral()
        for joint, adr, (low, high) in zip(self.joints, self.joint_qadr, self.joint_range, strict=True):
            if joint.type in ("hinge", "slide"):
                reach = np.pi if joint.type == "hinge" else 1.0
                a = low if np.isfinite(low) else min(joint.reference, high) - reach
                b = high if np.isfinite(high) else max(joint.reference, low) + reach
                share = rng.random()
                q[adr] = a * (1 - share) + b * share
                continue
            if joint.type == "free":
                q[adr : adr + 3] += rng.uniform(-1.0, 1.0, 3)
                adr = adr + 3
            turn = rng.standard_normal(4)
            turn /= np.linalg.norm(turn)
            if joint.type == "ball" and high < np.pi:
                half = rng.uniform(max(low, 0.0), high) / 2
                turn = np.array([np.cos(half), *(np.sin(half) * turn[1:] / np.linalg.norm(turn[1:]))])
            q[adr : adr + 4] = turn
        return q

    def _moving_keyframes(self, velocities: Mapping[str, Iterable[float]]) -> dict[str, Floats]:
        """Velocities of keyframes that are not at rest."""
        found = {}
        for name, v in velocities.items():
            if name not in self.keyframes:
                raise unknown("keyframe_velocities: keyframe", name, self.keyframes)
            values = numbers(list(v), f"keyframe {name!r}: velocity", (self.nv,))
            if values.any():
                found[name] = _frozen(values, np.float64, (self.nv,))
        return found

    # ---- names --------------------------------------------------------------------------------------------------------

    def body_index(self, body: str | int) -> int:
        """Return the index of a body given by name or index; 0 is the world."""
        return self._find(body, self._body_index, self.body_names, "body")

    def frame(self, name: str | int | Frame) -> Frame:
        """Return a frame by name, placed on a body: that of a body, else of a joint, else one of ``frames``.

        The frame of a joint has the axes of its body, and its origin at the anchor. Wherever a body is expected, the name of a joint or frame, or a :class:`Frame`, also works.

        Args:
            name: name of a body, joint or frame, index of a body, or a frame on one of these.

        Raises:
            UnknownNameError: nothing has this name.
        """
        if isinstance(name, Frame):
            return self._below(name, ())
        if not isinstance(name, str) or name in self._body_index:
            body = self.body_names[self.body_index(name)]
            return Frame(body, body)
        if name in self._joint_index:
            j = self._joint_index[name]
            return Frame(name, self.body_names[self.joint_body[j]], self.joints[j].position)
        if name in self.frames:
            return self.frames[name]
        raise unknown("body, joint or frame", name, [*self.body_names, *self.joint_names, *self.frames])

    def _names_body(self, name: object) -> bool:
        """Whether a body is meant, not a joint or frame on it; :meth:`body_index` refuses anything that is neither a name nor a frame."""
        return name in self._body_index if isinstance(name, str) else not isinstance(name, Frame)

    def _below(self, frame: Frame, passed: tuple[str, ...]) -> Frame:
        """Express a frame that is on another frame as one on the body that carries both."""
        if frame.body in self._body_index:
            return frame
        if frame.name in passed:
            raise ArgumentError(f"frame {frame.name!r}: expected a body below it, got frames that carry each other: {', '.join(passed)}.")
        carrier = self.frames.get(frame.body)
        under = (
            self.frame(frame.body) if carrier is None or frame.body in self._joint_index else self._below(carrier, (*passed, frame.name))
        )
        position = np.array(under.position) + rotation_matrix(under.quaternion) @ frame.position
        return Frame(frame.name, under.body, tuple(position.tolist()), compose(under.quaternion, frame.quaternion))

    def joint_index(self, joint: str | int) -> int:
        """Return the index of a joint given by name or index."""
        return self._find(joint, self._joint_index, self.joint_names, "joint")

    def _find(self, key: str | int, index: Mapping[str, int], names: tuple[str, ...], kind: str) -> int:
        if isinstance(key, str):
            if key not in index:
                if kind == "body" and (key in self._joint_index or key in self.frames):
                    carrier = self.frame(key).body
                    raise UnknownNameError(
                        f"body: {key!r} is a {'joint' if key in self._joint_index else 'frame'} on body {carrier!r}. Use {carrier!r}, or model.frame({key!r})."
                    )
                raise unknown(kind, key, names)
            return index[key]
        if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
            raise ArgumentTypeError(f"{kind}: expected a name or an index, got {type(key).__name__}.")
        if not 0 <= key < len(names):
            raise ArgumentError(f"{kind}: expected an index from 0 to {len(names) - 1}, got {key}.")
        return int(key)

    # ---- derived ------------------------------------------------------------------------------------------------------

    @property
    def mass(self) -> float:
        """Total mass of all bodies [kg]."""
        return float(self.body_mass.sum())

    @property
    def depth(self) -> int:
        """Number of joints on the longest path to the ground."""
        return int(self._native.depth)

    @property
    def ntree(self) -> int:
        """Number of separate trees: bodies that a joint connects to the world."""
        return int(self._native.trees)

    def with_loops(self, loops: LoopList) -> Model:
        """Return this model with more loops.

        Args:
            loops: records of loops, or dictionaries of the arguments of :meth:`ModelBuilder.add_loop`, or the path of a JSON or TOML file of these. They may also name sites of the file that the
                model was loaded from.
        """
        return self._with_loops(loops_from(self, loops))

    def _with_loops(self, loops: Iterable[Loop]) -> Model:
        content = list(self._content())
        content[_LOOPS_AT] = (*self.loops, *loops)
        return _made(content, self._compiled)

    def to_mjcf(self) -> str:
        """Return the model as MJCF text, which :func:`delassus.load` and MuJoCo read back.

        Meshes are written as their convex hulls, which MuJoCo uses for contacts; shapes given by a signed distance cannot be written. A hinge loop is written as two points that
        MuJoCo connects. Loops that MJCF has no element for are in a <custom> text, which only delassus reads: a warning says so.
        """
        from .mjcf import to_mjcf, warn_of_loops

        warn_of_loops(self, stacklevel=3)
        return to_mjcf(self)

    def to_mujoco(self) -> Any:
        """Return a ``mujoco.MjModel`` of this model: a copy of the one it was loaded from, else its MJCF text compiled.

        It lacks loops that MuJoCo does not know, and those added after loading: a warning says so.
        """
        from .mjcf import to_mjcf, warn_of_loops

        warn_of_loops(self, stacklevel=3, compiled=self._compiled)
        return copy.copy(self._compiled) if self._compiled is not None else mujoco.MjModel.from_xml_string(to_mjcf(self))

    @property
    def timestep(self) -> float:
        """Simulation time step [s]: that of the file that the model was loaded from (MuJoCo's 2 ms if it has none), else 1 ms."""
        return 1e-3 if self._compiled is None else float(self._compiled.opt.timestep)

    @property
    def keyframe_controls(self) -> dict[str, Floats]:
        """Controls (nu,) of the keyframes of the file that the model was loaded from: name → u."""
        m = self._compiled
        return {} if m is None else {name: np.array(u) for name, u in zip(self.keyframes, m.key_ctrl, strict=False)}

    # ---- identity -----------------------------------------------------------------------------------------------------

    def _content(self) -> tuple[Any, ...]:
        keys = tuple((k, tuple(q.tolist())) for k, q in self.keyframes.items())
        speeds = tuple((k, tuple(v.tolist())) for k, v in self.keyframe_velocities.items())
        return (
            self.name, self.bodies, self.joints, tuple(self.gravity.tolist()), self.loops, self.shapes, self.actuators, keys, speeds,
            self.collision_excludes, tuple(self.frames.values()), self.ignored,
        )  # fmt: skip

    def _in_mujoco(self) -> Any:
        """Return MuJoCo's model for collision detection, not to be written to; it may lack the loops."""
        from .mjcf import to_mjcf

        return self._compiled if self._compiled is not None else mujoco.MjModel.from_xml_string(to_mjcf(self))

    def _compiled_as(self, compiled: Any, ignored: Iterable[str]) -> Model:
        """Return the same model with another compiled one and another list of ignored elements."""
        return _made((*self._content()[:-1], ignored), compiled)

    @cached_property
    def _hash(self) -> str:
        """Hash of all content, computed when first needed: for many bodies it takes as long as all checks."""
        return hashlib.sha256(repr((_canonical(self._content()), self._unshaped, self._computed)).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return self is other or self._hash == other._hash

    def __hash__(self) -> int:
        return int(self._hash[:15], 16)

    def __reduce__(self) -> tuple[Any, ...]:
        source = (
            None
            if self._compiled is None
            else (mujoco.mj_versionString(), pickle.dumps(self._compiled), (*unshaped(self._compiled), *computed(self._compiled)))
        )
        return _unpickle, (*self._content(), source)

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: Any) -> Model:
        return self

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a Model never changes, so {name!r} cannot be set. Build another one with delassus.ModelBuilder.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Model never changes, so {name!r} cannot be deleted.")

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        rows: list[tuple[str, Any]] = [
            ("joints", f"{self.njoint}, nq = {self.nq}, nv = {self.nv}"), ("bodies", f"{self.nbody - 1}, {self.mass:.4g} kg"), ("loops", len(self.loops)), ("actuators", len(self.actuators)),
            ("shapes", len(self.shapes)), ("keyframes", ", ".join(self.keyframes) or "none"), ("time step", f"{self.timestep:g} s"), ("ignored", "; ".join(self.ignored) or "nothing"),
        ]  # fmt: skip
        return table(f"Model {self.name}", rows)

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: nq={self.nq}, nv={self.nv}, {self.nbody - 1} bodies, {len(self.loops)} loops, {self.mass:.4g} kg>"

    def __str__(self) -> str:
        shown = self.joints[:40]
        cells = [("joint", "type", "body", "q", "v", "range")]
        for joint, q, v in zip(shown, self.joint_qadr, self.joint_vadr, strict=False):
            low, high = joint.range
            cells.append(
                (
                    joint.name,
                    joint.type,
                    joint.body,
                    str(q),
                    str(v),
                    "-" if low == -np.inf and high == np.inf else f"{low:.3g} … {high:.3g}",
                )
            )
        wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rows = [repr(self), *("  ".join(f"{cell:{w}}" for cell, w in zip(row, wide, strict=True)).rstrip() for row in cells)]
        if self.njoint > len(shown):
            rows.append(f"… and {self.njoint - len(shown)} more joints")
        if self.ignored:
            rows.append("ignored: " + "; ".join(self.ignored))
        return "\n".join(rows)


def as_model(model: Any) -> Model:
    """Return the argument if it is a model, or raise an error that explains how to get one."""
    if not isinstance(model, Model):
        raise ArgumentTypeError(f"model: expected a delassus.Model, got {type(model).__name__}. Use delassus.load.")
    return model


def _unpickle(*state: Any) -> Model:
    *content, source = state
    compiled = None
    if source is not None:
        version, model, lines = source
        if version == mujoco.mj_versionString():
            compiled = pickle.loads(model)
        elif lines:
            raise LoadError(
                f"{content[0]}: it was pickled with MuJoCo {version}, this is {mujoco.mj_versionString()}, which cannot read its {'; '.join(lines)}. "
                "Load it from its file again, or pickle its to_mjcf() instead."
            )
    return _made(content, compiled)


def _made(content: Iterable[Any], compiled: Any) -> Model:
    """Make a model from the result of ``_content`` and MuJoCo's compiled model."""
    name, bodies, joints, gravity, loops, shapes, actuators, keys, speeds, excludes, frames, ignored = content
    return Model(
        name, bodies, joints, gravity=gravity, loops=loops, shapes=shapes, actuators=actuators, keyframes=dict(keys),
        keyframe_velocities=dict(speeds), collision_excludes=excludes, frames=frames, ignored=ignored, compiled=compiled,
    )  # fmt: skip
