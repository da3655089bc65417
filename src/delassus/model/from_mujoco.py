"""Conversion of compiled MuJoCo models to our records."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np

from ..errors import LoadError
from ..spatial import rotation_matrix
from .compiled import Compiled
from .geometry import counted, geom_kind
from .loops import record_of
from .model import Model
from .native import actuator_armature, actuator_count, controls, motors, native_dampers, native_springs, outputs
from .omitted import omitted
from .records import (
    COORDINATES,
    IDENTITY,
    SHAPE_SIZES,
    UNBOUNDED,
    VELOCITIES,
    ZERO,
    Actuator,
    Body,
    ConnectLoop,
    Frame,
    Joint,
    JointLoop,
    Loop,
    Shape,
    WeldLoop,
)

JOINTS = {
    mujoco.mjtJoint.mjJNT_FREE: "free",
    mujoco.mjtJoint.mjJNT_BALL: "ball",
    mujoco.mjtJoint.mjJNT_SLIDE: "slide",
    mujoco.mjtJoint.mjJNT_HINGE: "hinge",
}
LARGE = 1e10  # MuJoCo's largest number
LOOPS_TEXT = "delassus_loops"  # name of a <custom> text
LOOP_SITE = "_loop_"  # prefix of the names of sites that stand for ends of loops


def _names(m: mujoco.MjModel, kind: Any, n: int, default: str) -> list[str]:
    """Names of all objects of a kind; unnamed ones get a unique name."""
    names = [mujoco.mj_id2name(m, kind, k) or "" for k in range(n)]
    taken = set(names)
    for k, name in enumerate(names):
        if not name:
            new = f"{default}_{k}"
            while new in taken:
                new += "_"
            names[k] = new
            taken.add(new)
    return names


def body_names(m: mujoco.MjModel) -> list[str]:
    """Names of its bodies, as in a model made from it."""
    return _names(m, mujoco.mjtObj.mjOBJ_BODY, m.nbody, "body")


def geom_names(m: mujoco.MjModel) -> list[str]:
    """Names of its geoms, as for the shapes of a model made from it."""
    return _names(m, mujoco.mjtObj.mjOBJ_GEOM, m.ngeom, "geom")


def _row(array: Any) -> Any:
    return tuple(float(x) for x in array)


def finite_or_open(low: float, high: float) -> tuple[float, float]:
    """Bounds; numbers too large to bound anything become infinite."""
    return (-math.inf if low <= -LARGE else float(low), math.inf if high >= LARGE else float(high))


def one_value(values: Any, what: str, ignored: list[str]) -> float:
    """Return the value that all degrees of freedom of a joint share; if they differ, it is left out."""
    if not np.isfinite(values).all():
        return math.nan
    if np.all(values == values[0]):
        return float(values[0])
    ignored.append(f"{what} that differs between degrees of freedom")
    return 0.0


def from_mujoco(m: mujoco.MjModel) -> Model:
    """Take bodies, joints, loops, shapes, actuators, keyframes and sites from a compiled MuJoCo model, and keep a copy of it; list what is ignored."""
    return from_compiled(Compiled(m))


def from_compiled(made: Compiled) -> Model:
    """Make a model from a source compiled by MuJoCo."""
    m, name = made.model, made.name
    try:
        bytes(m.names).decode()
    except UnicodeDecodeError as error:
        raise LoadError(f"source: MuJoCo's model has names that are not UTF-8: {error}. Save the file it came from as UTF-8.") from None
    obj = mujoco.mjtObj
    names = body_names(m)
    bodies = []
    for b in range(1, m.nbody):
        R = rotation_matrix(m.body_iquat[b])
        I = R @ np.diag(m.body_inertia[b]) @ R.T  # noqa: E741
        six = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        bodies.append(Body(
            names[b], names[m.body_parentid[b]], _row(m.body_pos[b]), _row(m.body_quat[b]), float(m.body_mass[b]), _row(m.body_ipos[b]), _row(six),
        ))  # fmt: skip
    ignored = list(made.omitted)
    joint_names, keys = _names(m, obj.mjOBJ_JOINT, m.njnt, "joint"), _names(m, obj.mjOBJ_KEY, m.nkey, "key")
    added, elsewhere = actuator_armature(m)
    if elsewhere:
        ignored.append(
            f"armature of {counted(elsewhere, 'actuator')} that {'does' if elsewhere == 1 else 'do'} not act on one hinge or slide"
        )
    smooth = _Smooth(native_dampers(m), native_springs(m), m.dof_armature + added)
    joints = [_joint(m, j, joint_names[j], names, smooth, ignored) for j in range(m.njnt)]
    model = Model(
        name or _model_name(m),
        bodies,
        joints,
        gravity=m.opt.gravity if not m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY else np.zeros(3),
        loops=_loops(m, names, joint_names, ignored),
        shapes=_shapes(m, names, made.drawn),
        actuators=_actuators(m, joint_names),
        keyframes=dict(zip(keys, m.key_qpos, strict=True)),
        keyframe_velocities=dict(zip(keys, m.key_qvel, strict=True)),
        collision_excludes=[(names[s >> 16], names[s & 0xFFFF]) for s in m.exclude_signature],
        frames=_frames(m, names, {joint: body for joint, body in made.frames.items() if joint not in joint_names}),
        ignored=ignored + omitted(m),
        compiled=copy.copy(m),
    )
    if not (
        np.array_equal(model.joint_qadr, m.jnt_qposadr)
        and np.array_equal(model.joint_vadr, m.jnt_dofadr)
        and model.joint_names == tuple(joint_names)
    ):
        raise LoadError("the MuJoCo model's bodies are not in depth-first order, so its coordinates cannot be kept. Recompile it from XML.")
    return model


def _model_name(m: mujoco.MjModel) -> str:
    return bytes(m.names[: m.names.index(b"\0")]).decode() or "model"


def _damping(values: Any, native: bool) -> float:
    """Damping that our own code computes; a value that is not finite is kept, to be refused."""
    return float(values[0]) if native else 0.0 if np.isfinite(values).all() else math.nan


class _Smooth(NamedTuple):
    """Joint forces that our own code computes: (njnt,) dampers, (njnt,) springs; and (nv,) armatures."""

    dampers: Any
    springs: Any
    armature: Any


def _joint(m: mujoco.MjModel, j: int, name: str, names: list[str], smooth: _Smooth, ignored: list[str]) -> Joint:
    kind = JOINTS[mujoco.mjtJoint(int(m.jnt_type[j]))]
    q, v = m.jnt_qposadr[j], m.jnt_dofadr[j]
    stiffness = float(m.jnt_stiffness.reshape(m.njnt, -1)[j, 0]) if smooth.springs[j] else 0.0
    spring = _row(m.qpos_spring[q : q + COORDINATES[kind]]) if stiffness else ()
    one_axis = kind in ("hinge", "slide")
    dofs = slice(v, v + VELOCITIES[kind])
    return Joint(
        name,
        kind,  # type: ignore[arg-type]
        names[m.jnt_bodyid[j]],
        axis=_row(m.jnt_axis[j]) if one_axis else (0.0, 0.0, 1.0),
        position=_row(m.jnt_pos[j]) if kind != "free" else ZERO,
        reference=float(m.qpos0[q]) if one_axis else 0.0,
        range=finite_or_open(*m.jnt_range[j]) if m.jnt_limited[j] else UNBOUNDED,
        armature=one_value(smooth.armature[dofs], f"armature of joint {name!r}", ignored),
        damping=_damping(m.dof_damping.reshape(m.nv, -1)[dofs, 0], bool(smooth.dampers[j])),
        stiffness=stiffness,
        spring_reference=spring,
        friction_loss=one_value(m.dof_frictionloss[dofs], f"friction loss of joint {name!r}", ignored),
    )


def _loops(m: mujoco.MjModel, names: list[str], joint_names: list[str], ignored: list[str]) -> list[Loop]:
    eq, obj = mujoco.mjtEq, mujoco.mjtObj
    own, stand_ins = _own_loops(m)
    loops: list[Loop] = []
    for e, name in enumerate(_names(m, obj.mjOBJ_EQUALITY, m.neq, "equality")):
        if name in stand_ins:
            continue
        kind, one, two, data = eq(int(m.eq_type[e])), m.eq_obj1id[e], m.eq_obj2id[e], m.eq_data[e]
        active = bool(m.eq_active0[e])
        if kind == eq.mjEQ_JOINT:
            loops.append(JointLoop(name, joint_names[one], joint_names[two] if two >= 0 else None, _row(data[:5]), active))
        elif kind in (eq.mjEQ_CONNECT, eq.mjEQ_WELD):
            if obj(int(m.eq_objtype[e])) == obj.mjOBJ_SITE:
                body, other = (names[m.site_bodyid[s]] for s in (one, two))
                points = [_row(m.site_pos[s]) for s in (one, two)]
                turns = [_row(m.site_quat[s]) for s in (one, two)]
            elif kind == eq.mjEQ_CONNECT:
                body, other, points, turns = names[one], names[two], [_row(data[:3]), _row(data[3:6])], [IDENTITY, IDENTITY]
            else:
                # MuJoCo keeps the anchor on the second body first, then the pose on the first
                body, other, points, turns = names[one], names[two], [_row(data[3:6]), _row(data[:3])], [_row(data[6:10]), IDENTITY]
            # the torque scale of a weld sets the softness of its rotation: here it is rigid, but zero leaves it free
            if kind == eq.mjEQ_CONNECT or data[10] == 0:
                loops.append(ConnectLoop(name, body, other, points[0], points[1], active))
            else:
                loops.append(WeldLoop(name, body, other, points[0], turns[0], points[1], turns[1], active))
        elif kind != eq.mjEQ_TENDON:
            ignored.append(f"equality {name!r} of type {kind.name[5:].lower()}")
    return [*loops, *own]


def _own_loops(m: mujoco.MjModel) -> tuple[list[Loop], set[str]]:
    """Loops that ``to_mjcf`` writes as a text, if MJCF lacks an element for some of them, and names of the elements that stand for the others."""
    t = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_TEXT, LOOPS_TEXT)
    if t < 0:
        return [], set()
    start = int(m.text_adr[t])
    try:
        entries = json.loads(bytes(m.text_data[start : start + int(m.text_size[t])]).rstrip(b"\0"))
    except (ValueError, RecursionError) as error:
        raise LoadError(f"source: its text {LOOPS_TEXT!r} holds no loops: {error}. Write it with Model.to_mjcf.") from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) and isinstance(entry.get("written_as"), list) for entry in entries):
        raise LoadError(f"source: its text {LOOPS_TEXT!r} holds no list of loops. Write it with Model.to_mjcf.")
    written = {str(name) for entry in entries for name in entry.pop("written_as")}
    return [record_of(entry) for entry in entries], written


def _frames(m: mujoco.MjModel, names: list[str], carried: Mapping[str, str]) -> list[Frame]:
    """Frames of named sites, except those that ``to_mjcf`` writes for loops, and of joints that MuJoCo does not name."""
    sites = [(mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_SITE, s) or "", s) for s in range(m.nsite)]
    frames = [
        Frame(name, names[m.site_bodyid[s]], _row(m.site_pos[s]), _row(m.site_quat[s]))
        for name, s in sites
        if name and not name.startswith(LOOP_SITE)
    ]
    taken = {frame.name for frame in frames}
    return frames + [Frame(name, body) for name, body in carried.items() if name not in taken]


def _shapes(m: mujoco.MjModel, names: list[str], drawn: Collection[int]) -> list[Shape]:
    shapes = []
    for g, name in enumerate(geom_names(m)):
        kind = geom_kind(m, g)
        if kind not in SHAPE_SIZES or g in drawn:
            continue
        shapes.append(Shape(
            name, names[m.geom_bodyid[g]], kind, _row(m.geom_size[g][: SHAPE_SIZES[kind]]), _row(m.geom_pos[g]),
            _row(m.geom_quat[g]), _row(m.geom_friction[g]), int(m.geom_contype[g]), int(m.geom_conaffinity[g]), int(m.geom_condim[g]),
            float(m.geom_margin[g]), _row(m.geom_rgba[g]),
        ))  # fmt: skip
    return shapes


def _actuators(m: mujoco.MjModel, joint_names: list[str]) -> list[Actuator]:
    actuators, ours, places = [], motors(m), controls(m)
    for a, name in enumerate(_names(m, mujoco.mjtObj.mjOBJ_ACTUATOR, actuator_count(m), "actuator")):
        u, count = (int(x) for x in places[a])
        bounded = count > 0 and m.actuator_ctrllimited[u]
        control_range = finite_or_open(*m.actuator_ctrlrange[u]) if bounded else UNBOUNDED
        if not ours[a]:
            actuators.append(Actuator(name, None, control_range=control_range, controls=count))
            continue
        affine = m.actuator_biastype[a] == mujoco.mjtBias.mjBIAS_AFFINE
        actuators.append(Actuator(
            name, joint_names[m.actuator_trnid[a, 0]], float(m.actuator_gear[outputs(m)[a], 0]),
            float(m.actuator_gainprm[a, 0]), _row(m.actuator_biasprm[a, :3]) if affine else ZERO,
            control_range, finite_or_open(*m.actuator_forcerange[a]) if m.actuator_forcelimited[a] else UNBOUNDED,
        ))  # fmt: skip
    return actuators
