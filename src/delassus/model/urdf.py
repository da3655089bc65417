"""URDF made ready for MuJoCo, its dynamics kept as written."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from .._door import numbers, unknown
from ..errors import ArgumentError, ArgumentTypeError, LoadError
from .checks import is_physical
from .compiled import Compiled, compiled
from .geometry import counted
from .loops import across

SUBSTITUTES = ("ball", "spherical", "universal")  # joints that can be put in place of a URDF's


@dataclass(frozen=True)
class UrdfOptions:
    """What can be told to a URDF that it cannot say itself: whether its root floats, and joints to put in place of its own, name → type."""

    floating_base: bool = False
    joints: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.joints, Mapping):
            raise ArgumentTypeError(f"joints: expected a dictionary of names and types, got {type(self.joints).__name__}.")

    def refuse(self, what: str) -> None:
        """Raise if anything is told to what is no URDF."""
        if self.floating_base:
            raise ArgumentError(f"floating_base: only a URDF can be told to float, got {what}. Give its base a free joint instead.")
        if self.joints:
            raise ArgumentError(f"joints: only those of a URDF can be substituted, got {what}. Change the joints in the file instead.")


def from_urdf(root: ElementTree.Element, options: UrdfOptions, folder: Path | None, where: str) -> Compiled:
    """Ready a URDF for MuJoCo: what is only drawn goes, so do meshes that cannot be read; fixed links stay bodies, inertias as they are."""
    floating_base = options.floating_base
    links = root.findall("link")
    missing = 0
    for link in links:
        for visual in link.findall("visual"):
            link.remove(visual)
        for collision in link.findall("collision"):
            mesh = collision.find("geometry/mesh")
            if mesh is not None and not _mesh_readable(mesh.get("filename", ""), folder):
                link.remove(collision)
                missing += 1
            elif mesh is not None and folder is not None:
                mesh.set("filename", str((folder / mesh.get("filename", "")).resolve()))
    if floating_base:
        children = {child.get("link") for child in root.findall("joint/child")}
        base = [link.get("name") or "" for link in links if link.get("name") not in children]
        if len(base) != 1 or base == ["world"]:
            raise LoadError(f"floating_base: expected one link, not named 'world', that is no joint's child, got {base} in {where}.")
        ElementTree.SubElement(root, "link", {"name": "world"})
        joint = ElementTree.SubElement(root, "joint", {"name": "root", "type": "floating"})
        ElementTree.SubElement(joint, "parent", {"link": "world"})
        ElementTree.SubElement(joint, "child", {"link": base[0]})
    extension = root.find("mujoco")
    if extension is None:
        extension = ElementTree.SubElement(root, "mujoco")
    compiler = extension.find("compiler")
    if compiler is None:
        compiler = ElementTree.SubElement(extension, "compiler")
    adjusts = any(compiler.get(key) for key in ("balanceinertia", "boundmass", "boundinertia", "inertiafromgeom", "settotalmass"))
    for key, value in {"fusestatic": "false", "strippath": "false", "discardvisual": "false"}.items():
        compiler.set(key, value)
    inertials = {} if adjusts else {link.get("name"): _take_inertial(link, where) for link in links}
    # what is put in place of a joint has no limits, and follows no other
    for joint in root.findall("joint"):
        if joint.get("name") in options.joints and joint.get("type") != "fixed":
            joint.set("type", "continuous")
            for part in (*joint.findall("limit"), *joint.findall("mimic")):
                joint.remove(part)
    carried = {joint.get("name") or "": child.get("link") or "" for joint in root.findall("joint") for child in joint.findall("child")}
    text = ElementTree.tostring(root, encoding="unicode")
    model, omitted = compiled(
        lambda: _substituted(text, options.joints, carried) if options.joints else mujoco.MjModel.from_xml_string(text), where
    )
    omitted += _unread(root, model, omitted)
    if missing:
        omitted += (f"{missing} collision mesh{'' if missing == 1 else 'es'} not there, or not STL, OBJ or MSH",)
    # older versions of MuJoCo drop such limits without a word
    for joint in root.findall("joint"):
        limit, what = joint.find("limit"), f"joint {joint.get('name')!r}"
        bounds = set() if limit is None else {limit.get("lower"), limit.get("upper")}
        if (
            len(bounds) == 1
            and None not in bounds
            and joint.get("type") in ("revolute", "prismatic")
            and not any(what in line for line in omitted)
        ):
            omitted += (f"{what} has equal lower and upper limits",)

    # of links fixed to others only the sum counts, and many carry made-up numbers: these are lowered to what a mass can have
    fixed = {
        end.get("link")
        for joint in root.findall("joint")
        if joint.get("type") == "fixed"
        for end in (*joint.iter("parent"), *joint.iter("child"))
    }
    for name, (mass, center, axes, moments) in inertials.items():
        if name in fixed and mass >= 0 and not is_physical(mass, *moments):
            omitted += (f"inertia of link {name!r} beyond what is physical",)
            a, b, c = np.maximum(moments, 0.0) if mass > 0 else np.zeros(3)
            moments = (a, b, min(c, a + b))
        body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name or "")
        if body > 0:
            model.body_mass[body], model.body_ipos[body] = mass, center
            model.body_iquat[body], model.body_inertia[body] = axes, moments
    if inertials:
        compiled(lambda: mujoco.mj_setConst(model, mujoco.MjData(model)), where)
    return Compiled(model, root.get("name"), omitted, carried)


def _substituted(text: str, joints: Mapping[str, Any], carried: Mapping[str, str]) -> mujoco.MjModel:
    """Compile a URDF with other joints in place of some of its own: balls, and universal joints, which are two hinges of one body."""
    spec = mujoco.MjSpec.from_string(text)
    for name, wanted in joints.items():
        if name not in carried:
            raise unknown("joints: joint", name, carried)
        said = wanted if isinstance(wanted, Mapping) else {"type": wanted}
        if said.get("type") not in SUBSTITUTES:
            raise unknown(f"joints[{name!r}]: type", said.get("type"), SUBSTITUTES)
        if strange := sorted(set(said) - {"type", "axis", "other_axis"}):
            raise unknown(f"joints[{name!r}]: argument", strange[0], ("type", "axis", "other_axis"))
        body = spec.body(carried[name])
        # a fixed joint of the URDF is none of MuJoCo's
        joint = spec.joint(name) or body.add_joint(name=name)
        joint.limited, joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE, mujoco.mjtLimited.mjLIMITED_FALSE
        if said["type"] != "universal":
            joint.type = mujoco.mjtJoint.mjJNT_BALL
            continue
        axes = _universal_axes(said, np.array(joint.axis), f"joints[{name!r}]")
        joint.type, joint.axis = mujoco.mjtJoint.mjJNT_HINGE, axes[0]
        second = body.add_joint(name=f"{name}_2", type=mujoco.mjtJoint.mjJNT_HINGE, axis=axes[1], pos=joint.pos)
        second.damping, second.frictionloss, second.armature = joint.damping, joint.frictionloss, joint.armature
    return spec.compile()


def _universal_axes(said: Mapping[str, Any], own: Any, what: str) -> tuple[Any, Any]:
    """Both axes of a universal joint: what is said, else that of the URDF's joint and a coordinate axis across it."""
    first = numbers(said.get("axis", own), f"{what}: axis", (3,))
    if not first.any():
        raise ArgumentError(f"{what}: axis: expected a direction other than zero, got {first.tolist()}.")
    second = numbers(said.get("other_axis", across(first)), f"{what}: other_axis", (3,))
    if not np.linalg.norm(np.cross(first, second)) > 1e-6 * np.linalg.norm(first) * np.linalg.norm(second):
        raise ArgumentError(f"{what}: other_axis: expected a direction other than that of axis {first.tolist()}, got {second.tolist()}.")
    return first, second


def _unread(root: ElementTree.Element, model: mujoco.MjModel, said: tuple[str, ...]) -> tuple[str, ...]:
    """Lines about what MuJoCo reads from later versions on, or warns of only then: mimic joints, limits that leave no room."""
    omitted: tuple[str, ...] = ()
    couplings = int(np.count_nonzero(model.eq_type == mujoco.mjtEq.mjEQ_JOINT))
    mimics = len(root.findall("joint/mimic"))
    if mimics > couplings:
        omitted += (counted(mimics - couplings, "mimic joint"),)
    for joint in root.findall("joint"):
        name, limit = joint.get("name") or "", joint.find("limit")
        id_ = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
        if limit is None or joint.get("type") not in ("revolute", "prismatic") or id_ < 0 or model.jnt_limited[id_]:
            continue
        if not any(repr(name) in line for line in said):
            omitted += (f"joint {name!r} has equal lower and upper limits, which MuJoCo takes for none",)
    return omitted


def _mesh_readable(filename: str, folder: Path | None) -> bool:
    known = filename.lower().endswith((".stl", ".obj", ".msh"))
    return known and folder is not None and "://" not in filename and (folder / filename).is_file()


def _take_inertial(link: ElementTree.Element, where: str) -> tuple[float, Any, Any, Any]:
    """Mass, centre, principal axes and moments of a link. MuJoCo gets others in their place, that it cannot refuse or find simple.

    It would refuse massless links and published numbers whose rounding breaks the triangle inequality.
    """

    def read(tag: str, keys: str, default: str, n: int) -> list[float]:
        element = inertial.find(tag) if inertial is not None else None
        text = " ".join(default if element is None else element.get(key, default) for key in keys.split())
        try:
            values = [float(x) for x in text.split()]
        except ValueError:
            values = []
        if len(values) != n or not np.isfinite(values).all():
            raise LoadError(f"source: {where}: link {link.get('name')!r}: <{tag}> expects {n} finite numbers in {keys}, got {text!r}.")
        return values

    inertial = link.find("inertial")
    xyz, rpy = read("origin", "xyz", "0 0 0", 3), read("origin", "rpy", "0 0 0", 3)
    (mass,) = read("mass", "value", "0", 1)
    xx, xy, xz, yy, yz, zz = read("inertia", "ixx ixy ixz iyy iyz izz", "0", 6)
    turn, axes = np.empty(4), np.empty(4)
    mujoco.mju_euler2Quat(turn, rpy, "XYZ")
    moments, R = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    mujoco.mju_mat2Quat(axes, (R * [1.0, 1.0, np.linalg.det(R)]).ravel())
    mujoco.mju_mulQuat(axes, turn, axes)

    if inertial is not None:
        link.remove(inertial)
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", {"xyz": "1 2 3", "rpy": "1 2 3"})
    ElementTree.SubElement(inertial, "mass", {"value": "1"})
    ElementTree.SubElement(inertial, "inertia", {"ixx": "2", "iyy": "3", "izz": "4", "ixy": "0", "ixz": "0", "iyz": "0"})
    return mass, xyz, axes, moments
