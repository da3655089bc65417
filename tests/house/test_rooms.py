"""A room uses only rooms to its left or beneath: includes and imports are walked."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = [
    "spatial",
    "dense",
    "model",
    "dynamics",
    "state",
    "collision",
    "constraints",
    "operators",
    "solvers",
    "derivatives",
    "simulator",
    "worlds",
    "studies",
    "viewers",
]
# Beneath the rooms: used by all, uses none of them. Above: may use every room; no room may use it.
GROUND = {"errors", "types", "_door", "_html", "_core", "_builds", "_cpu"}
ABOVE = {
    "__init__",
    "scenes",
    "check",
    "figures",
    "cli",
    "textbook",
    "reproduce",
    "bench",
    "gym",
    "casadi",
    "cpp",
    "jax",
    "torch",
    "demo",
    "doctor",
    "_terminal",
    "__main__",
}
# What the bindings share, and the room each header belongs to; rooms.h only declares. A room's further files are called room_part.cpp.
SHARED_BINDINGS = {
    "rooms.h": "errors",
    "door.h": "spatial",
    "held.h": "model",
    "held_operator.h": "operators",
    "damped.h": "operators",
    "operators_blocks.h": "operators",
    "solvers_sets.h": "solvers",
    "workspace.h": "dynamics",
    "stopwatch.h": "errors",
    "simulator_plan.h": "simulator",
    "simulator_records.h": "simulator",
    "unlocked.h": "errors",
}


def room_of(name):
    """Room of a folder or module; private modules `_room` belong to it."""
    return name if name in (*ROOMS, *GROUND, *ABOVE) else name.lstrip("_")


def looks_right(user, used):
    """Whether ``user`` may not use ``used``."""
    if used in GROUND or user == used or user in ABOVE:
        return False
    if user in GROUND or used in ABOVE:
        return True
    return ROOMS.index(used) > ROOMS.index(user)


def included(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE)


def imported(path, package):
    """Names of the package's modules that a file imports, at its top or deep inside."""
    depth = len(path.relative_to(package).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            words = (node.module or "").split(".") if node.module else []
            if node.level == 0:
                if words[:1] != [package.name]:
                    continue
                inside = words[1:]
            elif node.level <= depth:
                continue  # within the room's own folder
            else:
                inside = words
            here = [a.name if any((package / f"{a.name}{end}").exists() for end in ("", ".py", ".pyi")) else "__init__" for a in node.names]
            yield from inside[:1] or here
        elif isinstance(node, ast.Import):
            for alias in node.names:
                words = alias.name.split(".")
                if words[0] == package.name:
                    yield words[1] if len(words) > 1 else "__init__"


def violations(root):
    """Every use that looks to the right, as text; also files in no room, and C++ in Python's place."""
    found = []

    def judge(path, user, used):
        known = {*ROOMS, *GROUND, *ABOVE}
        for room in (user, used):
            if room not in known:
                found.append(f"{path.relative_to(root)}: {room!r} is no room")
                return
        if looks_right(user, used):
            found.append(f"{path.relative_to(root)}: {user} uses {used}")

    core, bindings, package = root / "core", root / "bindings", root / "src" / "delassus"
    for path in sorted(p for p in core.rglob("*") if p.suffix in (".h", ".hpp", ".cpp")):
        user = path.relative_to(core).parts[0]
        for name in included(path):
            judge(path, user, name.split("/")[0])
        if re.search(r"#\s*include\s*<(Python\.h|nanobind|pybind11)", path.read_text()):
            found.append(f"{path.relative_to(root)}: Python in the core")
    for path in sorted(p for p in bindings.glob("*") if p.suffix in (".h", ".cpp")):
        if path.name in ("module.cpp", "cpu.cpp", "features.cpp"):  # the last two: which build of the core runs
            continue
        for name in included(path):
            judge(path, SHARED_BINDINGS.get(path.name, path.stem.split("_")[0]), SHARED_BINDINGS.get(name, name.split("/")[0]))
    for path in sorted(package.rglob("*.py")):
        first = path.relative_to(package).parts[0]
        for name in imported(path, package):
            judge(path, room_of(first.removesuffix(".py")), room_of(name))
    return found


def test_no_room_looks_to_the_right():
    assert violations(ROOT) == []


def test_every_room_has_one_name_on_every_floor():
    cores = {p.name for p in (ROOT / "core").iterdir() if p.is_dir()} - GROUND
    assert cores <= set(ROOMS)
    for room in cores:
        package = ROOT / "src" / "delassus"
        assert (package / f"{room}.py").exists() or (package / room).is_dir()
        assert (ROOT / "bindings" / f"{room}.cpp").exists()
        assert (ROOT / "tests" / room).is_dir()
        assert (ROOT / "docs" / f"{room}.md").exists()


FILES = {
    "core/model/a.h": "", "core/state/a.h": '#include "model/a.h"\n#include <vector>\n', "bindings/state.cpp": '#include "rooms.h"\n#include "state/a.h"\n',
    "bindings/rooms.h": "", "bindings/workspace.h": '#include "dynamics/a.h"\n#include "door.h"\n', "src/delassus/__init__.py": "from .state import x\nfrom . import scenes\n",
    "src/delassus/state.py": "from ._door import y\nfrom .model import Model\nimport numpy\n", "src/delassus/model/a.py": "from .b import c\nfrom ..spatial import d\n",
    "src/delassus/scenes.py": "from .state import x\nfrom . import __version__\n", "src/delassus/spatial.py": "from . import _core\n", "src/delassus/_core.pyi": "",
}  # fmt: skip

WRONG = {
    "core/model/b.h": ('#include "state/a.h"', "model uses state"),
    "core/spatial/b.h": (' # include "model/a.h"', "spatial uses model"),
    "core/dynamics/b.cpp": ('#include <x>\n#include "state/a.h"', "dynamics uses state"),
    "core/dynamics/c.h": ("#include <nanobind/nanobind.h>", "Python in the core"),
    "core/utils/b.h": ('#include "model/a.h"', "'utils' is no room"),
    "core/model/c.h": ('#include "helpers/a.h"', "'helpers' is no room"),
    "bindings/model.cpp": ('#include "rooms.h"\n#include "dynamics/a.h"', "model uses dynamics"),
    "src/delassus/dynamics.py": ("from .state import x", "dynamics uses state"),
    "src/delassus/spatial.py": ("def f():\n    from .model import Model\n", "spatial uses model"),
    "src/delassus/model/b.py": ("from ..state import x", "model uses state"),
    "src/delassus/model/c.py": ("from .. import scenes", "model uses scenes"),
    "src/delassus/model/d.py": ("import delassus.dynamics as d", "model uses dynamics"),
    "src/delassus/model/e.py": ("import delassus", "model uses __init__"),
    "src/delassus/model/f.py": ("from delassus.state import x", "model uses state"),
    "src/delassus/constraints.py": ("from .cli import app", "constraints uses cli"),
    "src/delassus/_door.py": ("from .model import Model", "_door uses model"),
    "src/delassus/errors.py": ("from . import spatial", "errors uses spatial"),
    "src/delassus/utils.py": ("from .model import Model", "'utils' is no room"),
}


def make(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_walker_finds_nothing_where_nothing_is_wrong(tmp_path):
    make(tmp_path, FILES)
    assert violations(tmp_path) == []


@pytest.mark.parametrize("name", WRONG)
def test_walker_finds_each_wrong_use(tmp_path, name):
    text, want = WRONG[name]
    make(tmp_path, FILES)
    make(tmp_path, {name: text})
    assert violations(tmp_path) == [f"{name}: {want}"]


def test_files_that_the_map_of_modules_names_are_there():
    rows = re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [module for module, _ in rows] == [room for room in ROOMS if room != "collision"]
    named = [(module, name) for module, where in rows for name in re.findall(r"`([\w/]+\.(?:h|cpp|py))`", where)]
    assert len(named) > 40
    folders = {module: (ROOT / "core" / module, ROOT / "src" / "delassus" / module, ROOT) for module, _ in rows}
    assert [name for module, name in named if not any((folder / name).exists() for folder in folders[module])] == []
