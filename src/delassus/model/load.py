"""One way in for every kind of robot: names, files, texts, models of other libraries."""

from __future__ import annotations

import os
import warnings
import xml.etree.ElementTree as ElementTree
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import mujoco

from .._door import unknown
from ..errors import ArgumentTypeError, LoadError
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
        UnknownNameError: neither a file nor an embedded robot has this name.
        ArgumentTypeError: an object of a class that is not supported.
        ModelError: the description is not of a mechanism that can exist.
    """
    model = _load(source, floating_base)
    if model.ignored and not isinstance(source, Model):
        warnings.warn(f"{model.name}: not represented and left out: {'; '.join(model.ignored)}. See model.ignored.", stacklevel=2)
    return model


def _load(source: Any, floating_base: bool) -> Model:
    if isinstance(source, Model):
        return source
    if isinstance(source, mujoco.MjModel):
        return from_mujoco(source)
    kind = type(source)
    if kind.__module__.split(".")[0] == "pinocchio" and kind.__name__ == "Model":
        return from_pinocchio(source)
    if isinstance(source, str | os.PathLike):
        compiled = compile_source(source, floating_base=floating_base)
        return from_mujoco(compiled.model, compiled.name, compiled.left)
    raise ArgumentTypeError(
        f"source: expected a name, a path, XML text, mujoco.MjModel, pinocchio.Model or delassus.Model, got {kind.__module__}.{kind.__qualname__}."
    )


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
            return _from_path(Path(folder) / f"{source}.xml", False)
    if os.sep in source or Path(source).suffix or Path(source).exists():
        return _from_path(Path(source), floating_base)
    raise unknown("robot", source, embedded_names())


def _from_path(path: Path, floating_base: bool) -> Compiled:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise LoadError(
            f"source: the file {str(path)!r} {what}. Give an MJCF or URDF file, or one of the robots {', '.join(embedded_names())}."
        )
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"source: the file {str(path)!r} cannot be read as text: {error}.") from None
    return _from_xml(text, repr(str(path)), floating_base, path)


def _from_xml(text: str, where: str, floating_base: bool, path: Path | None) -> Compiled:
    root = _parse(text, where)
    if root.tag == "robot":
        return _from_urdf(root, floating_base, path and path.parent, where)
    return Compiled(_compile(lambda: mujoco.MjModel.from_xml_path(str(path)) if path else mujoco.MjModel.from_xml_string(text), where))


def _parse(text: str, where: str) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise LoadError(f"source: {where} is not well-formed XML: {error}.") from None
    if root.tag not in ("mujoco", "robot"):
        raise LoadError(f"source: {where} has the root element <{root.tag}>; expected <mujoco> (MJCF) or <robot> (URDF).")
    return root


def _compile(make: Any, where: str) -> mujoco.MjModel:
    try:
        return make()
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise LoadError(f"source: MuJoCo cannot compile {where}: {str(error).strip()}") from None


def _from_urdf(root: ElementTree.Element, floating_base: bool, folder: Path | None, where: str) -> Compiled:
    """Ready a URDF for MuJoCo: what is only drawn goes, so do meshes that are not there; fixed links stay bodies."""
    links = root.findall("link")
    missing = 0
    for link in links:
        for visual in link.findall("visual"):
            link.remove(visual)
        for collision in link.findall("collision"):
            mesh = collision.find("geometry/mesh")
            if mesh is not None and not _mesh_exists(mesh.get("filename", ""), folder):
                link.remove(collision)
                missing += 1
            elif mesh is not None and folder is not None:
                mesh.set("filename", str((folder / mesh.get("filename", "")).resolve()))
    if floating_base:
        children = {joint.find("child").get("link") for joint in root.findall("joint")}  # type: ignore[union-attr]
        base = [link.get("name") for link in links if link.get("name") not in children]
        if len(base) != 1:
            raise LoadError(f"floating_base: expected one link that is no joint's child, got {base}.")
        ElementTree.SubElement(root, "link", {"name": "world"})
        joint = ElementTree.SubElement(root, "joint", {"name": "root", "type": "floating"})
        ElementTree.SubElement(joint, "parent", {"link": "world"})
        ElementTree.SubElement(joint, "child", {"link": base[0] or ""})
    extension = root.find("mujoco")
    if extension is None:
        extension = ElementTree.SubElement(root, "mujoco")
    compiler = extension.find("compiler")
    if compiler is None:
        compiler = ElementTree.SubElement(extension, "compiler")
    for key, value in {"fusestatic": "false", "strippath": "false", "discardvisual": "false"}.items():
        compiler.set(key, value)
    compiled = _compile(lambda: mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode")), where)
    return Compiled(compiled, root.get("name"), (f"{missing} collision mesh(es) whose files are not there",) if missing else ())


def _mesh_exists(filename: str, folder: Path | None) -> bool:
    return folder is not None and "://" not in filename and (folder / filename).is_file()
