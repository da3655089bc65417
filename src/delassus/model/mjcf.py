"""A model written as MJCF, so that MuJoCo and other tools can read models built here."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import mujoco
import numpy as np

from ..spatial import rotation_matrix
from .computed import computed
from .from_mujoco import LOOP_SITE, LOOPS_TEXT, body_names, geom_names
from .geometry import COLLISION_FLAGS, counted, field_data, geom_kind, hull, set_flags, touching
from .loops import entry_of
from .records import IDENTITY, SHAPE_SIZES, ZERO, Body, ConnectLoop, HingeLoop, Joint, JointLoop, Loop, Shape, WeldLoop

if TYPE_CHECKING:
    from .model import Model


# by default MuJoCo reserves memory for dense matrices, 14 GB for 3,000 free bodies and more than it can get for 5,000: this is enough to step that many
_MANY, _MEMORY = 12_000, "2G"
_ARM = 0.1  # [m] between the two points that stand for a hinge


def _numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(x)) for x in values)


def _element(tag: str, close: bool = True, /, **attributes: object) -> str:
    text = "".join(f" {k}={quoteattr(v if isinstance(v, str) else str(v))}" for k, v in attributes.items() if v is not None)
    return f"<{tag}{text}{'/' if close else ''}>"


def _frame(position: tuple[float, ...], quaternion: tuple[float, ...]) -> dict[str, str]:
    frame = {}
    if position != ZERO:
        frame["pos"] = _numbers(position)
    if quaternion != IDENTITY:
        frame["quat"] = _numbers(quaternion)
    return frame


def _key(model: Model, name: str) -> str:
    v = model.keyframe_velocities.get(name)
    return _element("key", name=name, qpos=_numbers(model.keyframes[name]), qvel=None if v is None else _numbers(v))


def _range(bounds: tuple[float, float], name: str) -> dict[str, str]:
    # MuJoCo has no one-sided ranges, and takes an empty one as none
    large = 1e10
    if bounds == (-math.inf, math.inf):
        return {}
    low, high = max(bounds[0], -large), min(bounds[1], large)
    # the next number above; above zero the smallest that is not subnormal, which MuJoCo 3.3 would refuse
    above = math.nextafter(low, math.inf) if low else sys.float_info.min
    return {name: _numbers((low, max(high, above)))}


def _joint(joint: Joint) -> str:
    one_axis = joint.type in ("hinge", "slide")
    extra: dict[str, object] = {}
    for key, value in (
        ("armature", joint.armature),
        ("damping", joint.damping),
        ("stiffness", joint.stiffness),
        ("frictionloss", joint.friction_loss),
    ):
        if value:
            extra[key] = repr(value)
    if one_axis:
        extra["axis"] = _numbers(joint.axis)
        if joint.reference:
            extra["ref"] = repr(joint.reference)
        if joint.spring_reference:
            extra["springref"] = repr(joint.spring_reference[0])
    if joint.type != "free":
        extra |= {"pos": _numbers(joint.position)} if joint.position != ZERO else {}
        extra |= _range(joint.range, "range")
    return _element("joint", name=joint.name, type=joint.type, **extra)


def _inertial(body: Body, moves: bool) -> str:
    """Principal moments and axes, which MuJoCo keeps unchanged; it requires positive ones on a moving body, and the triangle inequality to the last digit."""
    least = 1e-14 if moves else 0.0
    if not (body.mass > 0 or moves):
        return ""
    xx, yy, zz, xy, xz, yz = body.inertia
    axes = None
    moments = np.array([xx, yy, zz])
    if xy or xz or yz:
        moments, R = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        axes = _numbers((*R[:, 0], *R[:, 1]))
    moments = np.maximum(moments, least)
    largest = moments.argmax()
    a, b = np.delete(moments, largest)
    moments[largest] = min(moments[largest], a + b)
    return _element("inertial", pos=_numbers(body.com), mass=repr(max(body.mass, least)), diaginertia=_numbers(moments), xyaxes=axes)


def _geom(shape: Shape, extra: dict[str, object]) -> str:
    size = shape.size
    return _element(
        "geom", **extra, name=shape.name, type=shape.kind, size=_numbers(size), friction=_numbers(shape.friction), contype=shape.contype,
        conaffinity=shape.conaffinity, condim=shape.condim, margin=repr(shape.margin) if shape.margin else None, rgba=_numbers(shape.rgba),
        **_frame(shape.position, shape.quaternion),
    )  # fmt: skip


class _Unshaped:
    """Parts of MuJoCo's model that no Shape can hold, as XML elements.

    Attributes:
        assets: meshes and height fields.
        geoms: (body, element) of the shapes made of them.
        extra: name of a geom → attributes that a Shape lacks.
        pairs: explicit contact pairs.
        flags, options: attributes of the option element.
        unwritten: number of shapes that cannot be written.
    """

    def __init__(self, m: Any) -> None:
        self.assets: list[str] = []
        self.geoms: list[tuple[str, str]] = []
        self.extra: dict[str, dict[str, object]] = {}
        self.pairs: list[str] = []
        self.flags: dict[str, str] = {}
        self.options: dict[str, object] = {}
        self.unwritten = 0
        if m is None:
            return
        names, bodies = geom_names(m), body_names(m)
        written = {names[g] for g in range(m.ngeom) if geom_kind(m, g) in SHAPE_SIZES}
        for g in touching(m):
            said = {"priority": int(m.geom_priority[g]), "group": int(m.geom_group[g])}
            self.extra[names[g]] = {key: value for key, value in said.items() if value}
            if names[g] not in written:
                self._add(m, g, names[g], bodies[m.geom_bodyid[g]])
                written.add(names[g])
        for p in range(m.npair):
            one, two = names[m.pair_geom1[p]], names[m.pair_geom2[p]]
            if one in written and two in written:
                self.pairs.append(_element("pair", geom1=one, geom2=two, condim=m.pair_dim[p], friction=_numbers(m.pair_friction[p])))
        self.flags = {name: way for name, way in set_flags(m).items() if name in COLLISION_FLAGS}
        if "override" in self.flags:
            self.options["o_friction"] = _numbers(m.opt.o_friction)

    def _add(self, m: Any, g: int, name: str, body: str) -> None:
        kind, data, asset = geom_kind(m, g), int(m.geom_dataid[g]), f"_surface_{g}"
        position = np.array(m.geom_pos[g])
        if kind == "mesh":
            # without faces MuJoCo takes the convex hull
            self.assets.append(_element("mesh", name=asset, inertia="shell", vertex=_numbers(hull(m, data).ravel())))
        elif kind == "hfield":
            # MuJoCo scales heights to 0 … 1: the lowest becomes a shift, the highest a size
            heights, (x, y, top, base) = field_data(m, data), m.hfield_size[data]
            low, high = float(heights.min()), float(heights.max())
            span = high - low or 1.0
            position += rotation_matrix(m.geom_quat[g])[:, 2] * low * top
            rows, columns = heights.shape
            elevation = _numbers(((heights - low) / span)[::-1].ravel())
            self.assets.append(
                _element("hfield", name=asset, nrow=rows, ncol=columns, size=_numbers((x, y, top * span, base)), elevation=elevation)
            )
        else:
            self.unwritten += 1
            return
        self.geoms.append((body, _element(
            "geom", **self.extra[name], **{kind: asset}, name=name, type=kind, friction=_numbers(m.geom_friction[g]), contype=m.geom_contype[g],
            conaffinity=m.geom_conaffinity[g], condim=m.geom_condim[g], rgba=_numbers(m.geom_rgba[g]), **_frame(tuple(position), tuple(m.geom_quat[g])),
        )))  # fmt: skip


# loops for which MJCF has an element
_ELEMENTS = (ConnectLoop, WeldLoop, JointLoop)


def _equalities(loop: Loop, inside: dict[str, list[str]]) -> list[str]:
    """Elements of a loop, if MJCF has any. They refer to sites in the bodies, because only sites define a point on both bodies."""
    active = None if loop.active else "false"
    if isinstance(loop, JointLoop):
        return [_element("joint", name=loop.name, joint1=loop.joint, joint2=loop.other, polycoef=_numbers(loop.polynomial), active=active)]

    def tied(tag: str, name: str, point: Any, other_point: Any, turns: Any = (IDENTITY, IDENTITY)) -> str:
        sites = (f"{LOOP_SITE}{name}_a", f"{LOOP_SITE}{name}_b")
        for site, body, place, turn in zip(sites, (loop.body, loop.other), (point, other_point), turns, strict=True):
            inside[body].append(_element("site", name=site, **_frame(place, turn)))
        return _element(tag, name=name, site1=sites[0], site2=sites[1], active=active)

    if isinstance(loop, ConnectLoop):
        return [tied("connect", loop.name, loop.point, loop.other_point)]
    if isinstance(loop, WeldLoop):
        return [tied("weld", loop.name, loop.point, loop.other_point, (loop.quaternion, loop.other_quaternion))]
    if isinstance(loop, HingeLoop):
        # a second point, at the distance of _ARM along the axis
        ends = [_along(loop.point, loop.axis), _along(loop.other_point, loop.other_axis)]
        places = [(loop.point, loop.other_point), ends]
        return [tied("connect", name, *place) for name, place in zip(_written_as(loop), places, strict=True)]
    return []


def _along(point: Any, axis: Any) -> tuple[float, ...]:
    return tuple((np.array(point) + _ARM * np.array(axis) / np.linalg.norm(axis)).tolist())


def _written_as(loop: Loop) -> list[str]:
    """Names of the elements that stand for a loop."""
    if isinstance(loop, HingeLoop):
        return [loop.name, f"{loop.name} axis"]
    return [loop.name] if isinstance(loop, _ELEMENTS) else []


def warn_of_loops(model: Model, *, stacklevel: int, compiled: Any = None) -> None:
    """Warn about loops that MuJoCo will not hold closed."""
    lost = [loop.name for loop in model.loops if not isinstance(loop, (*_ELEMENTS, HingeLoop))]
    if compiled is not None:
        known = {mujoco.mj_id2name(compiled, mujoco.mjtObj.mjOBJ_EQUALITY, e) or f"equality_{e}" for e in range(compiled.neq)}
        lost = [loop.name for loop in model.loops if loop.name not in known]
    if lost:
        warnings.warn(
            f"{model.name}: MuJoCo has no element for, or was not given, the loops {', '.join(lost)}: it moves without them.",
            stacklevel=stacklevel,
        )


def to_mjcf(model: Model, source: Any = None) -> str:
    """Write a model as MJCF text. MuJoCo refuses moving bodies without mass or inertia: they get 1e-14.

    Args:
        model: model to write.
        source: MuJoCo model that provides what no Shape can hold; default: the one that the model was loaded from.
    """
    odd = _Unshaped(model._compiled if source is None else source)
    inside: dict[str, list[str]] = {name: [] for name in model.body_names}
    moving = {joint.body for joint in model.joints}
    for body in model.bodies:
        if text := _inertial(body, body.name in moving):
            inside[body.name].append(text)
    for joint in model.joints:
        inside[joint.body].append(_joint(joint))
    for shape in model.shapes:
        inside[shape.body].append(_geom(shape, odd.extra.get(shape.name, {})))
    for body_name, text in odd.geoms:
        inside[body_name].append(text)

    for frame in model.frames.values():
        inside[frame.body].append(_element("site", name=frame.name, group="5", **_frame(frame.position, frame.quaternion)))
    equality = [element for loop in model.loops for element in _equalities(loop, inside)]
    told = [] if all(isinstance(loop, _ELEMENTS) for loop in model.loops) else model.loops
    said = [entry_of(loop) | {"written_as": _written_as(loop)} for loop in told]
    lines = [
        _element("mujoco", False, model=model.name),
        _element("compiler", angle="radian", autolimits="true", inertiafromgeom="false"),
        _element("option", not odd.flags, timestep=repr(model.timestep), gravity=_numbers(model.gravity), **odd.options),
        *([_element("flag", **odd.flags), "</option>"] if odd.flags else []),
        *([_element("size", memory=_MEMORY)] if model.nv > _MANY else []),
        *(["<asset>", *odd.assets, "</asset>"] if odd.assets else []),
        "<worldbody>",
        *inside["world"],
    ]
    # bodies are depth first: close every body that is not an ancestor of the next one
    open_bodies = ["world"]
    for body in model.bodies:
        while open_bodies[-1] != body.parent:
            open_bodies.pop()
            lines.append("</body>")
        lines.append(_element("body", False, name=body.name, **_frame(body.position, body.quaternion)))
        lines.extend(inside[body.name])
        open_bodies.append(body.name)
    lines.extend("</body>" for _ in open_bodies[1:])
    lines.append("</worldbody>")

    contact = [*odd.pairs, *(_element("exclude", body1=a, body2=b) for a, b in model.collision_excludes)]
    if contact:
        lines += ["<contact>", *contact, "</contact>"]
    if equality:
        lines += ["<equality>", *equality, "</equality>"]
    if said:
        lines += ["<custom>", _element("text", name=LOOPS_TEXT, data=json.dumps(said)), "</custom>"]
    if model.actuators:
        lines.append("<actuator>")
        for a in model.actuators:
            if a.joint is None:  # MuJoCo's own kinds stay in the file they came from
                continue
            lines.append(_element(
                "general", name=a.name, joint=a.joint, gear=repr(a.gear), gaintype="fixed", gainprm=repr(a.gain), biastype="affine",
                biasprm=_numbers(a.bias), **_range(a.control_range, "ctrlrange"), **_range(a.force_range, "forcerange"),
            ))  # fmt: skip
        lines.append("</actuator>")
    if model.keyframes:
        lines += ["<keyframe>", *(_key(model, k) for k in model.keyframes), "</keyframe>"]
    lines.append("</mujoco>")
    return "\n".join(lines) + "\n"


def with_geometry_of(model: Model, source: Model) -> Model:
    """Return a model that contains all bodies of ``source``, with geometry that its shapes cannot hold: meshes, height fields, pairs, priorities, and what is only drawn."""
    m = source._compiled
    drawn = [] if m is None else _only_drawn(m, {shape.name for shape in model.shapes})
    if not source._unshaped and not drawn:
        return model
    odd = _Unshaped(m)
    ignored = [f"{source.name}: {line}" for line in (*source.ignored, *computed(m))]
    if odd.unwritten:
        ignored.append(f"{source.name}: {counted(odd.unwritten, 'collision shape')} given by a signed distance")
    spec = mujoco.MjSpec.from_string(to_mjcf(model, m))
    _draw(spec, m, drawn)
    return model._compiled_as(spec.compile(), ignored)


def _only_drawn(m: Any, kept: set[str]) -> list[int]:
    """Geoms that collide with nothing and are not shapes of the model: meshes and primitives that are only drawn."""
    names, touch = geom_names(m), set(touching(m))
    return [g for g in range(m.ngeom) if g not in touch and names[g] not in kept and geom_kind(m, g) in (*SHAPE_SIZES, "mesh")]


def _draw(spec: Any, m: Any, geoms: list[int]) -> None:
    """Add geoms of a compiled model to a specification with the same bodies, to be drawn."""
    names, bodies = geom_names(m), body_names(m)
    meshes: dict[int, str] = {}
    for g in geoms:
        body = spec.worldbody if m.geom_bodyid[g] == 0 else spec.body(bodies[m.geom_bodyid[g]])
        rgba = m.mat_rgba[m.geom_matid[g]] if m.geom_matid[g] >= 0 else m.geom_rgba[g]
        what: dict[str, Any] = {"size": m.geom_size[g]}
        if geom_kind(m, g) == "mesh":
            k = int(m.geom_dataid[g])
            if k not in meshes:
                meshes[k] = f"_drawn_{k}"
                v, f = int(m.mesh_vertadr[k]), int(m.mesh_faceadr[k])
                vertices, faces = m.mesh_vert[v : v + int(m.mesh_vertnum[k])], m.mesh_face[f : f + int(m.mesh_facenum[k])]
                mesh = spec.add_mesh(name=meshes[k], uservert=np.array(vertices).ravel(), userface=np.array(faces).ravel())
                mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
            what = {"meshname": meshes[k]}
        body.add_geom(
            name=names[g], type=mujoco.mjtGeom(int(m.geom_type[g])), pos=m.geom_pos[g], quat=m.geom_quat[g], rgba=rgba, group=int(m.geom_group[g]),
            contype=0, conaffinity=0, mass=0.0, **what,
        )  # fmt: skip
