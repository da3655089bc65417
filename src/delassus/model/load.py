"""One entry point for every kind of robot: names, files, texts, models of other libraries."""

from __future__ import annotations

import os
import tempfile
import xml.etree.ElementTree as ElementTree
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import mujoco

from .._door import unknown, warn
from ..errors import ArgumentTypeError, LoadError
from .compiled import Compiled, compiled
from .from_mujoco import from_compiled, from_mujoco
from .from_pinocchio import from_pinocchio
from .loops import LoopList, loops_from, read_list
from .model import Model
from .urdf import UrdfOptions, from_urdf, xacro_error

__all__ = ["embedded_names", "load"]

_MAX_UNPACKED = 4_000_000_000  # bytes of a zip file
_NO_ELEMENT = 3  # expat's error code for a file that ends too early
# advice for XML files of other kinds, by their root element
_OTHER_ROOTS = {
    "sdf": " SDF is not read: export the robot as URDF or MJCF.",
    "html": " This is a web page: download the raw file.",
    "collada": " This is a mesh: name it in the <mesh> of a URDF or MJCF file, and give that file.",
    "package": " This is the manifest of a ROS package: give the URDF in it.",
    "launch": " This is a ROS launch file: give the URDF that it loads.",
    "mujocoinclude": " This is a part for <include>: give the file that includes it.",
}


def embedded_names() -> tuple[str, ...]:
    """Return the names of the robots included in the package."""
    folder = resources.files("delassus") / "assets"
    return tuple(sorted(entry.name[:-4] for entry in folder.iterdir() if entry.name.endswith(".xml")))


def load(
    source: str | os.PathLike[str] | Any,
    *,
    floating_base: bool = False,
    loops: LoopList | None = None,
    joints: Mapping[str, Any] | None = None,
    package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    exclude_overlaps: bool = True,
) -> Model:
    """Load a model.

    Args:
        source: the name of an embedded robot ("go2", "g1", …), a path to an MJCF, URDF or MJB file, to a zip file of one with its meshes, MJCF or URDF text, a
            ``mujoco.MjModel`` or ``mujoco.MjSpec``, a ``pinocchio.Model`` or a :class:`Model`.
        floating_base: URDF only: let the root float, which URDF itself cannot specify.
        loops: loops in addition to those of the source: a list of dictionaries with the arguments of :meth:`ModelBuilder.add_loop`, or the path of a JSON or TOML file with
            a list ``loops``. They may name bodies, joints (in a URDF also fixed ones) and sites.
        joints: URDF only: joints to replace by types that URDF lacks: name → "ball", "universal", or ``{"type": "universal", "axis": …, "other_axis": …}``. A file of
            loops may hold them as a table ``joints``.
        package_dirs: URDF only: folders of the packages in ``package://`` paths. Also searched are those of ``ROS_PACKAGE_PATH`` and ``AMENT_PREFIX_PATH``, and all folders
            above the file.
        exclude_overlaps: URDF only: let links that overlap in the reference configuration pass through each other, as planners do. Their collision shapes are often larger than
            the parts, and would push them apart. ``ignored`` lists the pairs.

    Returns:
        The model. Its ``ignored`` lists the elements that it could not represent; a warning says the same once.

    Raises:
        LoadError: a file is missing, or cannot be read as a model.
        ArgumentError: ``floating_base``, ``joints`` or ``package_dirs`` with something other than a URDF.
        UnknownNameError: neither a file nor an embedded robot has this name; a loop names something that does not exist.
        ArgumentTypeError: an object of a class that is not supported.
        ModelError: the description is not of a possible mechanism.
    """
    model = model_of(source, UrdfOptions(floating_base, joints or {}, package_dirs, exclude_overlaps), loops)
    if not isinstance(source, Model):
        tell_ignored(model)
    return model


def model_of(source: Any, options: UrdfOptions, loops: LoopList | None, argument: str = "source") -> Model:
    """Return the model of any source that :func:`load` takes, without warnings."""
    if loops is not None and isinstance(loops, str | os.PathLike):
        loops, joints = read_list(loops)
        options = replace(options, joints={**joints, **options.joints})
    model = _load(source, options, argument)
    return model if loops is None else model._with_loops(loops_from(model, loops))


def tell_ignored(model: Model) -> None:
    """Warn about parts of the source that the model lacks."""
    if model.ignored:
        warn(f"{model.name}: not simulated as the file has it: {'; '.join(model.ignored)}. See model.ignored.")


def _load(source: Any, options: UrdfOptions, argument: str) -> Model:
    if isinstance(source, str | os.PathLike):
        return from_compiled(_compile(source, options))
    kind = type(source)
    pinocchio = any(k.__module__.split(".")[0] == "pinocchio" and k.__name__ == "Model" for k in kind.__mro__)
    if not pinocchio and not isinstance(source, Model | mujoco.MjModel | mujoco.MjSpec):
        raise ArgumentTypeError(
            f"{argument}: expected a name, a path, XML text, mujoco.MjModel, mujoco.MjSpec, pinocchio.Model or delassus.Model, got {kind.__module__}.{kind.__qualname__}."
        )
    options.refuse(kind.__name__)
    if isinstance(source, Model):
        return source
    if isinstance(source, mujoco.MjModel):
        return from_mujoco(source)
    if isinstance(source, mujoco.MjSpec):
        model, omitted = compiled(source.compile, "the MjSpec")
        return from_compiled(Compiled(model, None, omitted))
    return from_pinocchio(source)


def compile_source(source: str | os.PathLike[str], *, floating_base: bool = False, package_dirs: Any = None) -> Compiled:
    """Compile a name, path or text with MuJoCo, as :func:`load` does."""
    return _compile(source, UrdfOptions(floating_base, package_dirs=package_dirs))


def _compile(source: str | os.PathLike[str], options: UrdfOptions) -> Compiled:
    if isinstance(source, os.PathLike):
        return _from_path(_at_home(Path(source)), options)
    if source.lstrip("\ufeff \t\r\n").startswith("<"):
        return _from_xml(source.lstrip("\ufeff \t\r\n"), "the text", options, None)
    if source in embedded_names():
        with resources.as_file(resources.files("delassus") / "assets") as folder:
            return _from_path(Path(folder) / f"{source}.xml", options)
    if source and (os.sep in source or Path(source).suffix or os.path.exists(source)):
        return _from_path(_at_home(Path(source)), options)
    raise unknown("robot", source, embedded_names())


def _at_home(path: Path) -> Path:
    """Path with ~ read as the home folder, unless there is a file of that very name."""
    try:
        return path if path.exists() else path.expanduser()
    except (OSError, RuntimeError, ValueError):
        return path


def _from_path(path: Path, options: UrdfOptions) -> Compiled:
    if not os.path.isfile(path):
        what = f"is a folder{_models_in(path)}" if os.path.isdir(path) else "does not exist"
        raise LoadError(
            f"source: the file {str(path)!r} {what}. Give an MJCF, URDF, MJB or zip file, or one of the robots {', '.join(embedded_names())}."
        )
    if path.suffix.lower() == ".mjb":
        options.refuse("MJB")
        model, omitted = compiled(lambda: mujoco.MjModel.from_binary_path(str(path)), repr(str(path)))
        return Compiled(model, None, omitted)
    if path.suffix.lower() == ".zip":
        return _from_zip(path, options)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LoadError(f"source: the file {str(path)!r} cannot be read: {error}.") from None
    return _from_xml(content, repr(str(path)), options, path)


def _models_in(folder: Path) -> str:
    """List the models in a folder, at most two levels deep."""
    found = [
        str(path.relative_to(folder))
        for pattern in ("*", "*/*", "*/*/*")
        for ending in ("urdf", "xml")
        for path in sorted(folder.glob(f"{pattern}.{ending}"))
    ]
    found = [name for name in found if Path(name).name not in ("package.xml", "CMakeLists.xml")]
    return f" with {', '.join(found[:4])}{' …' if len(found) > 4 else ''}" if found else ""


def _from_zip(path: Path, options: UrdfOptions) -> Compiled:
    """Compile the model in a zip file: the one XML or URDF file at the lowest depth, with the files around it."""
    where = repr(str(path))
    try:
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > _MAX_UNPACKED:
                raise LoadError(
                    f"source: {where} holds {size / 1e9:.1f} GB, more than {_MAX_UNPACKED / 1e9:g}. Unpack it and give the file inside."
                )
            models = [name for name in archive.namelist() if name.lower().endswith((".xml", ".urdf"))]
            top = min((name.count("/") for name in models), default=0)
            models = [name for name in models if name.count("/") == top]
            if len(models) != 1:
                raise LoadError(
                    f"source: {where}: expected one .xml or .urdf file that no folder holds, got {models}. Unpack it and give the file inside."
                )
            archive.extractall(folder)
            return _from_path(Path(folder) / models[0], options)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError) as error:
        raise LoadError(f"source: {where} cannot be unpacked: {error}.") from None


def _from_xml(text: str | bytes, where: str, options: UrdfOptions, path: Path | None) -> Compiled:
    root = parse(text, where)
    if root.tag == "robot":
        return from_urdf(root, options, path, where)
    options.refuse("MJCF")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise LoadError(f"source: MuJoCo cannot open {where}: it expects file names in UTF-8. Rename the file, or give its text.") from None
    model, omitted = compiled(lambda: mujoco.MjModel.from_xml_path(str(path)) if path else mujoco.MjModel.from_xml_string(text), where)
    return Compiled(model, None, omitted)


def parse(text: str | bytes, where: str) -> ElementTree.Element:
    """Return the root element of MJCF or URDF."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        if "unbound prefix" in str(error) and (b"<xacro:" if isinstance(text, bytes) else "<xacro:") in text:  # type: ignore[operator]
            raise xacro_error(where, "elements <xacro:…>") from None
        raise LoadError(f"source: {where} {_malformed(text, where, error)}") from None
    except (ValueError, LookupError) as error:  # unknown encodings, or text that does not match its encoding
        raise LoadError(f"source: {where} cannot be read as text: {error}. Save it as UTF-8.") from None
    _drop_default_namespace(root)
    if root.tag not in ("mujoco", "robot"):
        said = _OTHER_ROOTS.get(root.tag.rpartition("}")[2].lower(), "")
        raise LoadError(f"source: {where} has the root element <{root.tag}>; expected <mujoco> (MJCF) or <robot> (URDF).{said}")
    return root


def _malformed(text: str | bytes, where: str, error: ElementTree.ParseError) -> str:
    """Describe a file that is not XML, by its first bytes and its name."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    suffix = Path(where.strip("'\"")).suffix.lower()
    if not data.strip():
        return "is empty."
    if suffix in (".stl", ".obj", ".ply", ".glb", ".gltf", ".3mf", ".step", ".stp"):
        return "is a mesh, not a robot. Name it in the <mesh> of a URDF or MJCF file, and give that file."
    if not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0<")) and data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"<":  # the first are UTF-16
        return "is not XML: it does not start with '<'. Give a URDF or MJCF file."
    if error.code == _NO_ELEMENT:
        return f"is incomplete: it ends at line {error.position[0]}, before its last element is closed."
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as undecodable:
        line = data.count(b"\n", 0, undecodable.start) + 1
        if b"encoding" not in data[:200]:
            return f'is not UTF-8 (line {line}). Save it as UTF-8, or declare its encoding in the first line: <?xml version="1.0" encoding="ISO-8859-1"?>.'
    return f"is not well-formed XML: {error}."


def _drop_default_namespace(root: ElementTree.Element) -> None:
    """Remove the default namespace from the tags, which readers of URDF and MJCF do not know."""
    namespace, mark, name = root.tag.rpartition("}")
    if mark and name in ("mujoco", "robot"):
        for element in root.iter():
            if isinstance(element.tag, str):
                element.tag = element.tag.removeprefix(namespace + mark)
