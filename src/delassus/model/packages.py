"""Locating the files that a robot description names: package://, model://, file://, relative and absolute paths."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from ..errors import ArgumentError, ArgumentTypeError, MeshError

__all__ = ["Finder", "folders"]

# environment variables that list package folders, and the path between such a folder and a package
_VARIABLES = {"ROS_PACKAGE_PATH": "", "AMENT_PREFIX_PATH": "share", "GAZEBO_MODEL_PATH": "", "GZ_SIM_RESOURCE_PATH": ""}

_DEPTH, _MOST_FOLDERS = 4, 20_000  # search limits in a workspace


def folders(package_dirs: object) -> tuple[Path, ...]:
    """Check the argument ``package_dirs``: one folder or several, which must exist."""
    if package_dirs is None:
        return ()
    listed: Sequence[object]
    if isinstance(package_dirs, str | os.PathLike):
        listed = (package_dirs,)
    elif isinstance(package_dirs, Sequence):
        listed = package_dirs
    else:
        raise ArgumentTypeError(f"package_dirs: expected a list of folders, got {type(package_dirs).__name__}.")
    found = []
    for entry in listed:
        if not isinstance(entry, str | os.PathLike):
            raise ArgumentTypeError(f"package_dirs: expected a list of folders, got {type(entry).__name__} in it.")
        path = Path(os.fspath(entry)).expanduser()
        if not path.is_dir():
            raise ArgumentError(f"package_dirs: the folder {str(path)!r} does not exist. Give the folder that holds the packages.")
        found.append(path)
    return tuple(found)


class Finder:
    """Finds the files of one description.

    A package is looked for in ``package_dirs``, then in the folders of ``ROS_PACKAGE_PATH``, ``AMENT_PREFIX_PATH`` (their ``share``), ``GAZEBO_MODEL_PATH`` and
    ``GZ_SIM_RESOURCE_PATH``, then in every folder above the description. A folder is package NAME if it has this name, or if its ``package.xml`` says so. If there is none,
    workspaces (``package_dirs`` and ``ROS_PACKAGE_PATH``) are searched four folders deep, as ROS does.

    Where the description is a symbolic link, files are looked for beside the link first, then beside what it points to.

    Args:
        path: path of the description; None if it was given as text.
        package_dirs: folders that hold packages, or are packages.
    """

    def __init__(self, path: Path | None, package_dirs: Sequence[Path] = ()) -> None:
        self.folders = () if path is None else tuple(dict.fromkeys((path.parent.resolve(), path.resolve().parent)))
        self.package_dirs = tuple(package_dirs)
        self.packages: dict[str, Path | None] = {}
        self._candidates_of: dict[str, tuple[Path, ...]] = {}

    def find(self, uri: str) -> Path:
        """Return the file for a URI in the description.

        Raises:
            MeshError: there is no such file.
        """
        uri = uri.strip()
        scheme, mark, rest = uri.partition(":/")
        scheme = scheme.lower()
        if not uri:
            raise MeshError("no file is named")
        if scheme == "file" and mark:  # file:/PATH, file:///PATH, file://localhost/PATH
            return _existing([Path("/" + rest.lstrip("/").removeprefix("localhost/"))], "the file does not exist")
        if mark and rest.startswith("/"):
            if scheme in ("package", "model"):
                return self._in_package(rest)
            raise MeshError(f"{scheme}:// is not fetched; download the files and name them by a path")
        path = Path(uri)
        if path.is_absolute():
            return _existing([path], "the file does not exist")
        if not self.folders:
            raise MeshError("a text has no folder for relative paths; load the file")
        # also with the separators of Windows
        return _existing(
            [folder / name for name in dict.fromkeys((uri, uri.replace("\\", "/"))) for folder in self.folders],
            "the file does not exist beside the description",
        )

    def _in_package(self, rest: str) -> Path:
        """File of package://NAME/PATH; further slashes, which some tools write, are accepted."""
        name, _, inside = rest.replace("\\", "/").lstrip("/").partition("/")
        inside = inside.lstrip("/")
        if name not in self._candidates_of:
            self._candidates_of[name] = tuple(self._candidates(name))
        candidates = self._candidates_of[name]
        found = candidates[0] if candidates else None
        for package in candidates:
            for path in (package / inside, package / unquote(inside)):
                if path.is_file():
                    self.packages[name] = package
                    return path
        self.packages.setdefault(name, found)
        if found is None:
            raise MeshError(f"package {name!r} is not found; give its parent folder in package_dirs, or set ROS_PACKAGE_PATH")
        raise MeshError(f"package {name!r} is in {str(found)!r}, but has no such file{_other_case([found / inside])}")

    def _candidates(self, name: str) -> Iterator[Path]:
        """Folders that may be the package, best first."""
        roots, found = list(self.package_dirs), False
        for variable, between in _VARIABLES.items():
            roots += [Path(entry) / between for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
        for folder in self.folders:
            roots += [folder, *folder.parents]
        for root in roots:
            for path in (root / name, root / "share" / name):
                if path.is_dir():
                    found = True
                    yield path
            if root.name == name or _package_name(root) == name:
                found = True
                yield root
        if not found:
            workspaces = (Path(entry) for entry in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if entry)
            for root in (*self.package_dirs, *workspaces):
                yield from (package for package in _packages_below(root) if name in (package.name, _package_name(package)))


def _existing(paths: Sequence[Path], otherwise: str) -> Path:
    """Return the first path that is a file, as it is written or with its %20 read as blanks."""
    for path in paths:
        for candidate in (path, Path(unquote(str(path)))):
            try:
                if candidate.is_file():
                    return candidate
            except (OSError, ValueError):
                break
    raise MeshError(otherwise + _other_case(paths))


def _other_case(paths: Sequence[Path]) -> str:
    """Say which file is there whose name differs in capitals only: files that were made on Windows or macOS often are."""
    for path in paths:
        for wanted in (path, Path(unquote(str(path)))):
            try:
                found = next(
                    (entry for entry in sorted(wanted.parent.iterdir()) if entry.name.lower() == wanted.name.lower() and entry.is_file()),
                    None,
                )
            except (OSError, ValueError):
                continue
            if found is not None:
                return f" (capitals count: there is {found.name!r})"
    return ""


def _packages_below(root: Path) -> Iterator[Path]:
    """Folders with a package.xml below a folder, breadth first; packages are not nested."""
    level, visited = [root], 0
    for _ in range(_DEPTH):
        below: list[Path] = []
        for folder in level:
            try:
                inside = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
            except OSError:
                continue
            visited += len(inside)
            for path in inside:
                if (path / "package.xml").is_file():
                    yield path
                elif not any((path / mark).exists() for mark in ("CATKIN_IGNORE", "COLCON_IGNORE", "AMENT_IGNORE")):
                    below.append(path)
            if visited > _MOST_FOLDERS:
                return
        level = below


def _package_name(folder: Path) -> str | None:
    """Name in a folder's package.xml."""
    try:
        name = ElementTree.parse(folder / "package.xml").getroot().findtext("name")
    except (OSError, ElementTree.ParseError, ValueError):
        return None
    return name and name.strip()
