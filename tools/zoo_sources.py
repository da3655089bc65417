"""Where the models of tools/zoo come from: MJCF files of a folder or an installed package, and models that a package composes in Python.

    python tools/zoo_sources.py PACKAGE FILE    write the names of the models that PACKAGE composes into FILE, one a line

A package is not imported to find its files. To compose a model it is, and the model is the last one that it compiled on the way: what a package does with it afterwards may
need another version of MuJoCo, and does not matter.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import posixpath
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import mujoco
import numpy as np

__all__ = ["COMPOSED", "Source", "composed_models", "files_of", "home_of", "model_of", "skipped"]

_TESTS = {"test", "tests", "testing", "testdata", "test_assets"}  # folders of a package that hold no model of a user


class Source(NamedTuple):
    """A model: the package or folder it is of, its name there, and its file; None where the package composes it."""

    package: str
    name: str
    file: str | None

    @property
    def key(self) -> str:
        """What no other model has."""
        return f"{self.package}:{self.name}"


# ---- files ------------------------------------------------------------------------------------------------------------------


def home_of(word: str) -> tuple[str, Path]:
    """Return the name and the folder of what a user named: a folder, a file or an installed package."""
    path = Path(word).resolve()
    if path.exists():
        return path.name, path
    spec = importlib.util.find_spec(word)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{word}: neither a folder or file nor an installed package.")
    return word, Path(next(iter(spec.submodule_search_locations)))


def files_of(word: str) -> list[Source]:
    """Return every XML file of a folder or package, whatever is in it."""
    name, home = home_of(word)
    if home.is_file():
        return [Source(name, home.name, str(home))]
    files = [p for p in sorted(home.rglob("*.xml")) if Path(word).exists() or not _TESTS & set(p.relative_to(home).parts)]
    covered = COMPOSED[name].instead_of if name in COMPOSED else ()
    return [Source(name, p.relative_to(home).as_posix(), str(p)) for p in files if not any(p.relative_to(home).match(c) for c in covered)]


@functools.lru_cache(maxsize=1024)
def _included(folder: Path) -> frozenset[str]:
    """Return the names that files of a folder, and of those around it, include."""
    names = set()
    for around in (folder, *list(folder.parents)[:2]):
        for path in (*around.glob("*.xml"), *around.glob("*/*.xml")):
            with contextlib.suppress(ElementTree.ParseError, OSError):
                names |= {posixpath.basename(e.get("file", "")) for e in ElementTree.parse(path).iter("include")}
    return frozenset(names)


def skipped(source: Source) -> str:
    """Return why a file is no model, by its text alone; empty where it may be one."""
    if source.file is None:
        return ""
    try:
        root = ElementTree.parse(source.file).getroot()
    except ElementTree.ParseError:
        return "fragment: not an XML document"
    if root.tag != "mujoco":
        return "fragment: mujocoinclude" if root.tag == "mujocoinclude" else f"not MJCF: <{root.tag}>"
    return ""


# ---- models that packages compose -------------------------------------------------------------------------------------------


class Composer(NamedTuple):
    """What a package makes in Python: functions by name, and the files (patterns) that these models stand for."""

    functions: Callable[[], dict[str, Callable[[], Any]]]
    instead_of: tuple[str, ...] = ()


def _dm_control() -> dict[str, Callable[[], Any]]:
    from dm_control import manipulation, suite
    from dm_control.locomotion.examples import basic_cmu_2019, basic_rodent_2020

    found: dict[str, Callable[[], Any]] = {}
    for domain, task in suite.ALL_TASKS:
        found[f"suite/{domain}-{task}"] = functools.partial(suite.load, domain, task, task_kwargs={"random": 0})
    for name in manipulation.ALL:
        found[f"manipulation/{name}"] = functools.partial(manipulation.load, name, seed=0)
    for module, start in ((basic_cmu_2019, "cmu_humanoid_"), (basic_rodent_2020, "rodent_")):
        for name in (n for n in dir(module) if n.startswith(start)):
            found[f"locomotion/{name}"] = functools.partial(getattr(module, name), random_state=0)
    return found


def _gymnasium_robotics() -> dict[str, Callable[[], Any]]:
    import gymnasium
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    return {f"maze/{name}": functools.partial(gymnasium.make, name) for name in sorted(gymnasium.registry) if "Maze" in name}


def _robosuite() -> dict[str, Callable[[], Any]]:
    import robosuite
    from robosuite.environments.base import REGISTERED_ENVS

    blind = {"has_renderer": False, "has_offscreen_renderer": False, "use_camera_obs": False, "seed": 0}
    robots = {name: ["Panda"] * (2 if name.startswith("TwoArm") else 1) for name in REGISTERED_ENVS}
    found = {f"environments/{e}-Panda": functools.partial(robosuite.make, e, robots=r, **blind) for e, r in robots.items()}
    return found | {f"environments/Lift-{r}": functools.partial(robosuite.make, "Lift", robots=r, **blind) for r in robosuite.ALL_ROBOTS}


COMPOSED = {
    "dm_control": Composer(_dm_control, instead_of=("suite/*.xml",)),
    "gymnasium_robotics": Composer(_gymnasium_robotics),
    "robosuite": Composer(_robosuite),
}


@contextlib.contextmanager
def _recorded() -> Iterator[list[mujoco.MjModel]]:
    """List every model that is compiled meanwhile."""
    models: list[mujoco.MjModel] = []
    own = {name: getattr(mujoco.MjModel, name) for name in ("from_xml_string", "from_xml_path")}

    def recorder(compiler: Callable[..., mujoco.MjModel]) -> Callable[..., mujoco.MjModel]:
        def record(*words: Any, **options: Any) -> mujoco.MjModel:
            models.append(compiler(*words, **options))
            return models[-1]

        return record

    for name, compiler in own.items():
        setattr(mujoco.MjModel, name, staticmethod(recorder(compiler)))
    try:
        yield models
    finally:
        for name, compiler in own.items():
            setattr(mujoco.MjModel, name, staticmethod(compiler))


def _composed(function: Callable[[], Any]) -> mujoco.MjModel:
    """Return the last model that a function compiles; its error only where there is none."""
    with _recorded() as models:
        try:
            function()
        except Exception:
            if not models:
                raise
    return models[-1]


def composed_models(package: str) -> Iterator[str]:
    """Names of the models that a package composes; of equal ones the first. Those that it cannot make are named, too, so that they are counted."""
    seen = set()
    for name, function in COMPOSED[package].functions().items():
        try:
            m = _composed(function)
        except Exception:
            yield name
            continue
        buffer = np.empty(mujoco.mj_sizeModel(m), np.uint8)
        mujoco.mj_saveModel(m, None, buffer)
        digest = hashlib.sha256(buffer.tobytes()).digest()
        if digest not in seen:
            seen.add(digest)
            yield name


def model_of(source: Source) -> mujoco.MjModel:
    """Compile a model.

    Raises:
        ValueError: MuJoCo cannot compile it; begins with "fragment" where another file of its folder includes it.
    """
    if source.file is None:
        return _composed(COMPOSED[source.package].functions()[source.name])
    try:
        return mujoco.MjModel.from_xml_path(source.file)
    except ValueError as error:
        fragment = Path(source.file).name in _included(Path(source.file).parent)
        raise ValueError(f"{'fragment' if fragment else 'does not compile'}: {' '.join(str(error).split())}") from None


def main() -> None:
    """Write the names of the models that a package composes."""
    os.environ.setdefault("MUJOCO_GL", "disable")
    package, file = sys.argv[1:]
    with Path(file).open("w", encoding="utf-8") as out:
        for name in composed_models(package):
            print(name, file=out, flush=True)


if __name__ == "__main__":
    main()
