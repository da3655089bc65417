"""One way in for every kind of robot: names, files, texts, models of other libraries."""

from __future__ import annotations

import os
import warnings
import xml.etree.ElementTree as ElementTree
from importlib import resources
from pathlib import Path
from typing import Any

import mujoco

from .._door import unknown
from ..errors import ArgumentError, ArgumentTypeError, LoadError
from .compiled import Compiled, compiled
from .from_mujoco import from_mujoco
from .from_pinocchio import from_pinocchio
from .model import Model
from .urdf import from_urdf

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
    if not isinstance(source, Model):
        tell_ignored(model, stacklevel=3)
    return model


def tell_ignored(model: Model, *, stacklevel: int) -> None:
    """Warn of what a source had and the model has not."""
    if model.ignored:
        warnings.warn(f"{model.name}: not represented and left out: {'; '.join(model.ignored)}. See model.ignored.", stacklevel=stacklevel)


def _load(source: Any, floating_base: bool) -> Model:
    if isinstance(source, str | os.PathLike):
        return from_mujoco(*compile_source(source, floating_base=floating_base))
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


def compile_source(source: str | os.PathLike[str], *, floating_base: bool = False) -> Compiled:
    """Compile a name, path or text with MuJoCo, as :func:`load` does."""
    if isinstance(source, os.PathLike):
        return _from_path(Path(source), floating_base)
    if source.lstrip("\ufeff \t\r\n").startswith("<"):
        return _from_xml(source.lstrip("\ufeff \t\r\n"), "the text", floating_base, None)
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
    root = parse(text, where)
    if root.tag == "robot":
        return from_urdf(root, floating_base, path and path.parent, where)
    _only_urdf(floating_base, "MJCF")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise LoadError(f"source: MuJoCo cannot open {where}: it takes names of files for UTF-8. Rename it, or give its text.") from None
    model, omitted = compiled(lambda: mujoco.MjModel.from_xml_path(str(path)) if path else mujoco.MjModel.from_xml_string(text), where)
    return Compiled(model, None, omitted)


def parse(text: str | bytes, where: str) -> ElementTree.Element:
    """Return the root element of MJCF or URDF."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise LoadError(f"source: {where} is not well-formed XML: {error}.") from None
    except (ValueError, LookupError) as error:  # encodings that do not exist, or that a text has not
        raise LoadError(f"source: {where} cannot be read as text: {error}. Save it as UTF-8.") from None
    if root.tag not in ("mujoco", "robot"):
        raise LoadError(f"source: {where} has the root element <{root.tag}>; expected <mujoco> (MJCF) or <robot> (URDF).")
    return root
