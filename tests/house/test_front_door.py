"""One front door: public names exist, are documented and typed, and what ships is whole."""

import ast
import inspect
import re
import subprocess
import sys
import types
from importlib.metadata import version
from pathlib import Path

import pytest

import delassus as dl

ROOT = Path(__file__).parents[2]
PACKAGE = Path(dl.__file__).parent
SOURCES = sorted((ROOT / "src" / "delassus").rglob("*.py"))


def public():
    """Every public function and class, and the public methods of the classes, by name."""
    rooms = [dl, *(getattr(dl, name) for name in dl.__all__ if isinstance(getattr(dl, name, None), types.ModuleType))]
    for room in rooms:
        for name in room.__all__:
            thing = getattr(room, name)
            if not inspect.isclass(thing) and not inspect.isroutine(thing):
                continue
            yield f"{room.__name__}.{name}", thing
            if inspect.isclass(thing) and thing.__module__.startswith("delassus"):
                for key, member in vars(thing).items():
                    if not key.startswith("_") and isinstance(member, (types.FunctionType, property, staticmethod, classmethod)):
                        yield f"{room.__name__}.{name}.{key}", member


PUBLIC = dict(public())


def test_all_is_sorted_and_every_name_in_it_exists():
    assert dl.__all__ == sorted(dl.__all__)
    assert len(set(dl.__all__)) == len(dl.__all__)
    assert [name for name in dl.__all__ if not hasattr(dl, name)] == []


def test_no_public_name_is_missing_from_all():
    found = {
        k
        for k, v in vars(dl).items()
        if not k.startswith("_") and not isinstance(v, types.ModuleType) and getattr(v, "__module__", "").startswith("delassus")
    }
    assert found <= set(dl.__all__)


# ---- names are imported when they are first used ------------------------------------------------------------------------------

HEAVY = {"numpy", "scipy", "mujoco", "matplotlib", "rich", "typer", "viser"}


def in_new_process(code):
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr
    return said.stdout.split()


def loaded_by(code):
    """Packages that some code imports."""
    return set(in_new_process(f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"))


def test_import_alone_loads_no_other_package():
    assert "delassus" in loaded_by("import delassus")
    assert loaded_by("import delassus; dir(delassus); delassus.__version__; delassus.errors.ArgumentError") & HEAVY == set()


def test_work_loads_neither_plots_nor_commands_nor_the_viewer():
    used = loaded_by("import delassus as dl\nG = dl.DelassusOperator(dl.load('iiwa'), [])\ndl.Simulator('go2').step()")
    assert used & HEAVY == {"numpy", "scipy", "mujoco"}


def test_help_of_the_command_loads_nothing_that_computes():
    code = "import delassus.cli\ntry:\n    delassus.cli.app(['--help'])\nexcept SystemExit:\n    pass"
    assert loaded_by(code) & {"numpy", "scipy", "mujoco", "matplotlib", "viser"} == set()


def test_checkers_and_the_program_see_the_same_names():
    """What stands under TYPE_CHECKING, the table of modules and ``__all__`` name the same."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (block,) = [n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    shown = {a.name: n.module for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert sorted([*shown, "__version__"]) == dl.__all__
    assert {k: (v or k).split(".")[0] for k, v in shown.items()} == dl._HOME_OF | {
        k: k for k in dl.__all__ if isinstance(getattr(dl, k), types.ModuleType) and k != "complementarity"
    }
    assert set(dl.__all__) <= set(dir(dl))


def test_every_way_to_ask_for_a_name_works():
    code = """
from delassus import DelassusOperator, scenes, errors, __version__
from delassus import *
import delassus, delassus.simulator, delassus.operators.delassus
assert delassus.DelassusOperator is DelassusOperator is delassus.operators.delassus.DelassusOperator
assert delassus.scenes is scenes and delassus.viewers.View is View
import pickle
assert pickle.loads(pickle.dumps(delassus.PointContact)) is PointContact
assert pickle.loads(pickle.dumps(errors.ArgumentError)) is errors.ArgumentError
for name in ("nothing", "DelassusOperato", "__path_"):
    try:
        getattr(delassus, name)
    except AttributeError as error:
        assert name in str(error)
    else:
        raise SystemExit(f"{name} exists")
print("done")
"""
    assert in_new_process(code) == ["done"]


def test_threads_may_ask_for_names_at_once():
    code = """
import sys, threading
sys.setswitchinterval(1e-6)
import delassus as dl
names, found, gate = [name for name in dl.__all__ if name != "__version__"], [], threading.Barrier(8)
def ask(k):
    gate.wait()
    found.append({name: id(getattr(dl, name)) for name in names[k::2] + names[1 - k::2]})
threads = [threading.Thread(target=ask, args=(k % 2,)) for k in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert len(found) == 8 and all(f == found[0] for f in found)
print(len(found[0]))
"""
    assert in_new_process(code) == [str(len(dl.__all__) - 1)]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_says_what_it_is(name):
    doc = inspect.getdoc(PUBLIC[name])
    assert doc
    assert doc.splitlines()[0].rstrip().endswith((".", ":", "?"))
    assert not doc.startswith(("Initialize self", "str(object"))


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_fully_annotated(name):
    thing = PUBLIC[name]
    if isinstance(thing, property):
        thing = thing.fget
    if inspect.isclass(thing):
        thing = thing.__dict__.get("__init__")
    if not isinstance(thing, types.FunctionType):
        return
    signature = inspect.signature(thing)
    assert signature.return_annotation is not inspect.Signature.empty
    assert [p.name for p in signature.parameters.values() if p.name != "self" and p.annotation is inspect.Parameter.empty] == []


@pytest.mark.parametrize("name", [n for n, f in PUBLIC.items() if isinstance(f, types.FunctionType)])
def test_docstring_names_only_arguments_that_exist(name):
    doc = inspect.getdoc(PUBLIC[name]) or ""
    block = re.search(r"^Args:\n((?: +.*\n?|\n)*)", doc, re.MULTILINE)
    if block is None:
        return
    told = {word.strip(" *") for line in re.findall(r"^ {4}(\S[^:]*):", block[1], re.MULTILINE) for word in line.split(",")}
    assert told <= set(inspect.signature(PUBLIC[name]).parameters)


def test_errors_share_one_base_and_are_all_listed():
    classes = {k: v for k, v in vars(dl.errors).items() if inspect.isclass(v)}
    assert sorted(classes) == sorted(dl.errors.__all__)
    assert all(issubclass(v, dl.errors.DelassusError) for v in classes.values())


def test_version_is_the_installed_one():
    assert dl.__version__ == version("delassus")
    assert f'version = "{dl.__version__}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("name", ["py.typed", "_core.pyi", "assets/go2.xml", "assets/README.md", "assets/scenes/go2-standing.json"])
def test_package_ships(name):
    assert (PACKAGE / name).is_file()


# ---- what no file does ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src")))
def test_source_prints_nothing_and_swallows_nothing(path):
    tree = ast.parse(path.read_text())
    calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    assert not calls & ({"exec", "eval", "breakpoint", "input"} | (set() if path.name == "cli.py" else {"print"}))
    assert not [n.lineno for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.type is None]
    assert not [n.lineno for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and any(a.name == "*" for a in n.names)]
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src")))
def test_source_raises_typed_errors_only(path):
    allowed = {*dl.errors.__all__, "AttributeError", "NotImplementedError"}
    raised = [n.exc for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Raise) and n.exc is not None]
    names = {getattr(e.func, "id", getattr(e.func, "attr", "")) if isinstance(e, ast.Call) else getattr(e, "id", "") for e in raised}
    # a lower-case name is a function that makes the error
    assert not {n for n in names - allowed if n[:1].isupper() and path.name != "cli.py"}


@pytest.mark.parametrize("folder", ["core", "bindings", "src", "tests"])
def test_nothing_is_left_for_later(folder):
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
    names = [p for p in (ROOT / folder).rglob("*") if p.suffix in (".h", ".cpp", ".py", ".pyi")]
    assert names
    assert [str(p) for p in names if marks.search(p.read_text())] == []
    assert [str(p) for p in names if re.search(r"(^|_)(utils?|helpers?|old|misc)(_|$)", p.stem)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "core").rglob("*.*")), ids=lambda p: p.name)
def test_core_neither_prints_nor_throws_but_by_its_errors(path):
    """Interrupts, and errors found in the middle of a step, leave by core/errors."""
    throw = "" if path.parent.name == "errors" else "|throw"
    assert not re.search(rf"\b(std::cout|std::cerr|printf{throw})\b", path.read_text())


def test_readme_begins_with_the_two_commands():
    first, second = re.findall(r"^```\w*\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[:2]
    assert "pip install . && delassus demo" in first
    assert 'pip install ".[test]" && pytest' in second
