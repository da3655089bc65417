"""URDF made ready for MuJoCo, its dynamics kept as written."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from ..errors import LoadError
from .checks import is_physical
from .compiled import Compiled, compiled
from .geometry import counted


def from_urdf(root: ElementTree.Element, floating_base: bool, folder: Path | None, where: str) -> Compiled:
    """Ready a URDF for MuJoCo: what is only drawn goes, so do meshes that cannot be read; fixed links stay bodies, inertias as they are."""
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
    model, omitted = compiled(lambda: mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode")), where)
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
    return Compiled(model, root.get("name"), omitted)


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
