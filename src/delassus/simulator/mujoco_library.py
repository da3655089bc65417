"""Addresses and memory layout of MuJoCo's shared library, for the core.

Offsets follow from its own list of fields, ``mujoco.introspect.structs``, by C's alignment rules, and are checked against its Python module: every array of an mjData, and the
fields of contacts, must be at the computed address.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco.introspect import ast_nodes, enums, structs

from .. import _core
from ..errors import LoadError

__all__ = ["layout", "library"]

_FUNCTIONS = (
    "mj_makeData", "mj_deleteData", "mj_kinematics", "mj_collision", "mj_comPos", "mj_tendon", "mj_transmission", "mj_fwdPosition", "mj_fwdVelocity", "mj_fwdActuation",
    "mj_Euler", "mj_getState", "mj_setState", "mj_tendonBias", "mj_camlight", "mj_flex", "mj_factorM", "mj_solveM", "mj_addContact", "mj_makeConstraint", "mj_energyPos", "mj_energyVel",
    "mj_subtreeVel", "mj_fwdAcceleration", "mj_rnePostConstraint", "mj_sensorPos", "mj_sensorVel", "mj_sensorAcc",
)  # fmt: skip
# a thread's error handlers: later versions have one for all messages, earlier ones four functions
_HANDLERS = (
    ("_mjPRIVATE_setTlsLogHandler",),
    ("_mjPRIVATE__get_tls_error_fn", "_mjPRIVATE__set_tls_error_fn", "_mjPRIVATE__get_tls_warning_fn", "_mjPRIVATE__set_tls_warning_fn"),
)
_FIELDS = {
    "mjData": (
        "qpos", "xpos", "xmat", "xipos", "contact", "ncon", "qvel", "qacc", "ctrl", "time", "qfrc_passive", "qfrc_actuator", "qfrc_applied", "xfrc_applied", "qfrc_smooth",
        "qfrc_constraint", "ten_J", "ten_length", "nefc", "efc_type", "efc_id", "efc_force", "sensordata", "geom_xpos", "geom_xmat",
    ),
    "mjContact": (
        "dist", "pos", "frame", "friction", "geom", "dim", "includemargin", "geom1", "geom2", "flex", "elem", "vert", "solref", "solimp", "efc_address"
    ),
    "mjModel": ("narena", "geom_friction", "geom_solref", "geom_solimp", "geom_size", "geom_rbound", "geom_aabb", "body_mass", "body_subtreemass", "body_ipos", "body_sameframe"),
    "mjLogMessage": ("level", "subject"),
}  # fmt: skip
_READ = {"narena": 8, "ncon": 4, "nefc": 4}  # bytes, as the core takes them
# sizes of C types, which are also their alignments
_SIZES = {
    "char": 1, "bool": 1, "mjtByte": 1, "mjtBool": 1, "unsigned char": 1, "int": 4, "unsigned int": 4, "float": 4, "int32_t": 4, "uint32_t": 4,
    "double": 8, "mjtNum": 8, "mjtSize": 8, "size_t": 8, "uintptr_t": 8, "int64_t": 8, "uint64_t": 8,
}  # fmt: skip


def _unsupported(why: str) -> LoadError:
    return LoadError(f"MuJoCo {mujoco.mj_versionString()}: {why}. Use a version from 3.3.6 to 4.")


def _measure(kind: Any) -> tuple[int, int]:
    """Size and alignment of a C type, in bytes."""
    if isinstance(kind, ast_nodes.PointerType):
        return 8, 8
    if isinstance(kind, ast_nodes.ArrayType):
        size, alignment = _measure(kind.inner_type)
        for n in kind.extents:
            size *= n
        return size, alignment
    if isinstance(kind, ast_nodes.AnonymousStructDecl | ast_nodes.AnonymousUnionDecl):
        return _lay_out(kind)[1:]
    name = kind.name.removeprefix("struct ")
    if name in structs.STRUCTS:
        return layout(name)[1:]
    if name in enums.ENUMS:
        return 4, 4
    if name not in _SIZES:
        raise _unsupported(f"the size of its type {name!r} is not known")
    return _SIZES[name], _SIZES[name]


def _lay_out(declaration: Any) -> tuple[dict[str, int], int, int]:
    offsets, end, widest, union = {}, 0, 1, isinstance(declaration, ast_nodes.AnonymousUnionDecl)
    for field in declaration.fields:
        size, alignment = _measure(field.type)
        start = 0 if union else -(-end // alignment) * alignment
        offsets[field.name] = start
        end, widest = max(end, start + size), max(widest, alignment)
    return offsets, -(-end // widest) * widest, widest


@lru_cache
def layout(name: str) -> tuple[dict[str, int], int, int]:
    """Offsets of the fields of one of MuJoCo's structures, its size and its alignment, in bytes."""
    return _lay_out(structs.STRUCTS[name])


def _size(struct: str, name: str) -> int:
    return next(_measure(field.type)[0] for field in structs.STRUCTS[struct].fields if field.name == name)


def _pointer(address: int) -> int:
    return int(ctypes.c_uint64.from_address(address).value)


def _check() -> None:
    """Compare the layout with what the Python module shows for a model in contact."""
    m = mujoco.MjModel.from_xml_string(
        "<mujoco><option><flag energy='enable'/></option><worldbody><geom type='plane' size='9 9 1' condim='1' friction='.3 .01 .01'/><body pos='0 0 .09'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
        "<body pos='1 0 .09'><freejoint/><geom size='.1' condim='1'/></body></worldbody></mujoco>"
    )
    d = mujoco.MjData(m)
    mujoco.mj_kinematics(m, d)
    mujoco.mj_collision(m, d)
    contact = layout("mjContact")
    for struct, value in (("mjData", d), ("mjModel", m)):
        for field in structs.STRUCTS[struct].fields:
            shown = getattr(value, field.name, None)
            if not isinstance(field.type, ast_nodes.PointerType) or not isinstance(shown, np.ndarray) or not shown.size:
                continue
            found = _pointer(value._address + layout(struct)[0][field.name])
            # arrays of MuJoCo's own solver are not there yet
            if found != shown.ctypes.data and (found or field.name in _FIELDS[struct]):
                raise _unsupported(f"{struct}.{field.name} is not at the documented offset")
    for struct, value, field in (("mjData", d, "ncon"), ("mjData", d, "nefc"), ("mjModel", m, "narena"), ("mjModel", m, "ngeom")):
        size = _size(struct, field)
        kind = ctypes.c_int64 if size == 8 else ctypes.c_int32
        if size != _READ.get(field, size) or kind.from_address(value._address + layout(struct)[0][field]).value != getattr(value, field):
            raise _unsupported(f"{struct}.{field} differs from its documented layout")
    if (sleep := _sleep()) and (
        ctypes.c_int32.from_address(d._address + sleep["mjData.nbody_awake"]).value != d.nbody_awake
        or ctypes.c_int32.from_address(m._address + sleep["mjModel.enableflags"]).value != m.opt.enableflags
    ):
        raise _unsupported("its sleeping bodies are not at the documented offsets")
    first = _pointer(d._address + layout("mjData")[0]["contact"])
    for k in range(d.ncon):
        at, shown = first + k * contact[1], d.contact[k]
        same = all(at + contact[0][field] == getattr(shown, field).ctypes.data for field in ("pos", "frame", "friction", "geom"))
        same &= ctypes.c_double.from_address(at + contact[0]["dist"]).value == shown.dist
        if not (same and ctypes.c_int.from_address(at + contact[0]["dim"]).value == shown.dim):
            raise _unsupported("its contacts differ from their documented layout")
    if {c.dim for c in d.contact} != {1, 3}:
        raise _unsupported("it does not find the contacts of a box and a ball on a plane")


def _sleep() -> dict[str, int]:
    """Return what the core needs to skip pairs of sleeping bodies in collision detection; empty for versions without sleep."""
    bit = enums.ENUMS["mjtEnableBit"].values.get("mjENBL_SLEEP")
    offsets = layout("mjData")[0]
    if bit is None or not {"body_awake", "nbody_awake"} <= offsets.keys():
        return {}
    states = enums.ENUMS["mjtSleepState"].values
    return {
        "mjENBL_SLEEP": bit, "mjS_ASLEEP": states["mjS_ASLEEP"], "mjS_AWAKE": states["mjS_AWAKE"], "mjData.body_awake": offsets["body_awake"],
        "mjData.nbody_awake": offsets["nbody_awake"], "mjModel.enableflags": layout("mjModel")[0]["opt"] + layout("mjOption")[0]["enableflags"],
    }  # fmt: skip


def _address(shared: ctypes.CDLL, name: str) -> int:
    return int(ctypes.cast(getattr(shared, name), ctypes.c_void_p).value or 0)


@lru_cache(maxsize=1)
def library() -> _core.MujocoLibrary:
    """Return the addresses of the functions called, and offsets and sizes of the fields read.

    Raises:
        LoadError: this version of MuJoCo does not expose them, or not as described.
    """
    folder = Path(mujoco.__file__).parent
    files = sorted(folder.glob("libmujoco*.so*"))
    if not files:
        raise _unsupported("there is no libmujoco beside its Python module")
    shared = ctypes.CDLL(str(files[0]))
    handlers = next((names for names in _HANDLERS if all(hasattr(shared, name) for name in names)), None)
    if handlers is None:
        raise _unsupported("its library has no per-thread error handler")
    places = {name: _address(shared, name) for name in (*_FUNCTIONS, *handlers)}
    places["mj_makeM"] = _address(shared, "mj_makeM" if hasattr(shared, "mj_makeM") else "mj_crb")
    _check()
    for struct, fields in _FIELDS.items():
        if struct in structs.STRUCTS:
            offsets, places[struct], _ = layout(struct)
            places |= {f"{struct}.{field}": offsets[field] for field in fields}
    stat, warnings = layout("mjWarningStat"), mujoco.mjtWarning
    for name, full in (("dropped", warnings.mjWARN_CONTACTFULL), ("rows_dropped", warnings.mjWARN_CNSTRFULL)):
        places[f"mjData.{name}"] = layout("mjData")[0]["warning"] + int(full) * stat[1] + stat[0]["number"]
    for name in ("gravity", "disableflags"):
        places[f"mjModel.{name}"] = layout("mjModel")[0]["opt"] + layout("mjOption")[0][name]
    places["mjDSBL_MIDPHASE"] = int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    places |= _sleep()
    if "mjLogMessage" in structs.STRUCTS:
        places["mjLOG_ERROR"] = enums.ENUMS["mjtLogLevel"].values["mjLOG_ERROR"]
    return _core.MujocoLibrary(places)
