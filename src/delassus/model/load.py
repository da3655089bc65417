"""One way in for every kind of robot: names, files, texts, models of other libraries."""

from __future__ import annotations

import os
import warnings
import xml.etree.ElementTree as ElementTree
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

from .._door import unknown
from ..errors import ArgumentError, ArgumentTypeError, LoadError
from .checks import is_physical
from .from_mujoco import from_mujoco
from .from_pinocchio import from_pinocchio
from .model import Model

__all__ = ["embedded_names", "load"]


def embedded_names() -> tuple[str, ...]:
    """Return the names of the robots that come with the package."""
    folder = resources.files("delassus") / "assets"
    return tuple(sorted(entry.name[:-4] for entry in folder.iterdir() if entry.name.endswith(".xml")))


def load(source: str | os.PathLike[str] | Any, *, floating_base: bool = False) -> Model:
    """Load a model.

    Args:
        source: the name of an embedded robot ("go2", "g1", …), a path to an MJCF or URDF file, MJCF or URDF text, a
            ``mujoco.MjModel``, a ``pinocchio.Model`` or a :class:`Model`.
        floating_base: let the root of a URDF float (URDF cannot say so itself).

    Returns:
        The model. Its ``ignored`` lists what it could not represent; a warning says the same once.

    Raises:
        LoadError: a file is missing, or cannot be read as a model.
        ArgumentError: ``floating_base`` with something other than a URDF.
        UnknownNameError: neither a file nor an embedded robot has this name.
        ArgumentTypeError: an object of a class that is not supported.
        ModelError: the description is not of a mechanism that can exist.
    """
    model = _load(source, floating_base)
    if model.ignored and not isinstance(source, Model):
        warnings.warn(f"{model.name}: not represented and left out: {'; '.join(model.ignored)}. See model.ignored.", stacklevel=2)
    return model


def _load(source: Any, floating_base: bool) -> Model:
    if isinstance(source, str | os.PathLike):
        compiled = compile_source(source, floating_base=floating_base)
        return from_mujoco(compiled.model, compiled.name, compiled.left)
    kind = type(source)
    _only_urdf(floating_base, kind.__name__)
    if isinstance(source, Model):
        return source
    if isinstance(source, mujoco.MjModel):
        return from_mujoco(source)
    if any(k.__module__.split(".")[0] == "pinocchio" and k.__name__ == "Model" for k in kind.__mro__):
        return from_pinocchio(source)
    raise ArgumentTypeError(
        f"source: expected a name, a path, XML text, mujoco.MjModel, pinocchio.Model or delassus.Model, got {kind.__module__}.{kind.__qualname__}."
    )


def _only_urdf(floating_base: bool, what: str) -> None:
    if floating_base:
        raise ArgumentError(f"floating_base: only a URDF can be told to float, got {what}. Give its base a free joint instead.")


class Compiled(NamedTuple):
    """What MuJoCo made of a source: its model, the name to use, and what was left out on the way."""

    model: mujoco.MjModel
    name: str | None = None
    left: tuple[str, ...] = ()


def compile_source(source: str | os.PathLike[str], *, floating_base: bool = False) -> Compiled:
    """Compile a name, path or text with MuJoCo, as :func:`load` does."""
    if isinstance(source, os.PathLike):
        return _from_path(Path(source), floating_base)
    if source.lstrip().startswith("<"):
        return _from_xml(source, "the text", floating_base, None)
    if source in embedded_names():
        with resources.as_file(resources.files("delassus") / "assets") as folder:
            return _from_path(Path(folder) / f"{source}.xml", floating_base)
    if source and (os.sep in source or Path(source).suffix or os.path.exists(source)):
        return _from_path(Path(source), floating_base)
    raise unknown("robot", source, embedded_names())


def _from_path(path: Path, floating_base: bool) -> Compiled:
    if not os.path.isfile(path):
        what = "is a folder" if os.path.isdir(path) else "does not exist"
        raise LoadError(
            f"source: the file {str(path)!r} {what}. Give an MJCF or URDF file, or one of the robots {', '.join(embedded_names())}."
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LoadError(f"source: the file {str(path)!r} cannot be read: {error}.") from None
    return _from_xml(content, repr(str(path)), floating_base, path)


def _from_xml(text: str | bytes, where: str, floating_base: bool, path: Path | None) -> Compiled:
    root = _parse(text, where)
    if root.tag == "robot":
        return _from_urdf(root, floating_base, path and path.parent, where)
    _only_urdf(floating_base, "MJCF")
    model, left = _compile(lambda: mujoco.MjModel.from_xml_path(str(path)) if path else mujoco.MjModel.from_xml_string(text), where)
    return Compiled(model, None, left)


def _parse(text: str | bytes, where: str) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise LoadError(f"source: {where} is not well-formed XML: {error}.") from None
    if root.tag not in ("mujoco", "robot"):
        raise LoadError(f"source: {where} has the root element <{root.tag}>; expected <mujoco> (MJCF) or <robot> (URDF).")
    return root


def _compile(make: Any, where: str) -> tuple[mujoco.MjModel, tuple[str, ...]]:
    """Return MuJoCo's model and its warnings, which it would print."""
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)
    try:
        return make(), tuple(f"as MuJoCo says: {line.strip()}" for line in said)
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise LoadError(f"source: MuJoCo cannot compile {where}: {str(error).strip()}") from None
    finally:
        mujoco.set_mju_user_warning(before)


def _from_urdf(root: ElementTree.Element, floating_base: bool, folder: Path | None, where: str) -> Compiled:
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
    compiled, left = _compile(lambda: mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode")), where)
    if missing:
        left += (f"{missing} collision mesh{'' if missing == 1 else 'es'} not there, or not STL, OBJ or MSH",)

    # of links fixed to others only the sum counts, and many carry made-up numbers: these are lowered to what a mass can have
    fixed = {
        end.get("link")
        for joint in root.findall("joint")
        if joint.get("type") == "fixed"
        for end in (*joint.iter("parent"), *joint.iter("child"))
    }
    for name, (mass, center, axes, moments) in inertials.items():
        if name in fixed and mass >= 0 and not is_physical(mass, *moments):
            left += (f"inertia of link {name!r} beyond what is physical",)
            a, b, c = np.maximum(moments, 0.0) if mass > 0 else np.zeros(3)
            moments = (a, b, min(c, a + b))
        body = mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_BODY, name or "")
        if body > 0:
            compiled.body_mass[body], compiled.body_ipos[body] = mass, center
            compiled.body_iquat[body], compiled.body_inertia[body] = axes, moments
    if inertials:
        _compile(lambda: mujoco.mj_setConst(compiled, mujoco.MjData(compiled)), where)
    return Compiled(compiled, root.get("name"), left)


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
