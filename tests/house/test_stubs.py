"""The stub of the compiled module is the one that the bindings give: ``tools/stubs`` writes it."""

import ast
import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

import delassus as dl

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "src" / "delassus" / "_core.pyi"


@pytest.fixture(scope="module")
def generated():
    pytest.importorskip("nanobind")
    loader = SourceFileLoader("stubs_tool", str(ROOT / "tools" / "stubs"))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("stubs_tool", loader))
    loader.exec_module(tool)
    return tool.generated()


def names(text):
    """Every function, method, property and value by its full name, with the names of its arguments in order."""
    found = {}

    def walk(body, place):
        for node in body:
            if isinstance(node, ast.ClassDef):
                walk(node.body, f"{place}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                kind = [ast.unparse(d).split(".")[-1] for d in node.decorator_list]
                found[f"{place}{node.name} {' '.join(kind)}".strip()] = [] if "setter" in kind else arguments
            elif isinstance(node, ast.AnnAssign):
                found[f"{place}{ast.unparse(node.target)}"] = []

    walk(ast.parse(text).body, "")
    return found


def test_stub_has_the_names_and_arguments_of_the_bindings(generated):
    """With any version of nanobind."""
    assert names(STUB.read_text(encoding="utf-8")) == names(generated)


def test_stub_is_the_one_that_the_tool_writes(generated):
    """With the version of nanobind that wrote it, which its first line tells; others spell types in their own way."""
    written = STUB.read_text(encoding="utf-8")
    if written.splitlines()[0] == generated.splitlines()[0]:
        assert written == generated, "run tools/stubs"


def test_stub_names_everything_that_the_module_has():
    """Without nanobind too."""
    written = names(STUB.read_text(encoding="utf-8"))
    classes = {n.name for n in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(n, ast.ClassDef)}
    assert classes | {name.split()[0] for name in written if "." not in name} == {
        name for name in vars(dl._core) if not name.startswith("_")
    }
    for name in classes:
        told = {key.split(".")[1].split()[0] for key in written if key.startswith(f"{name}.") and "._" not in key}
        assert told == {key for key in vars(getattr(dl._core, name)) if not key.startswith("_")}, name


@pytest.mark.parametrize("change", ["def update(self, q", "    def factor(self) -> None: ...\n", "class Operator32", "iterations: int"])
def test_comparison_finds_a_change(change):
    text = STUB.read_text(encoding="utf-8")
    assert change in text
    other = change.replace("update", "updates").replace("iterations", "iteration").replace("32", "16")
    assert names(text) != names(text.replace(change, other if other != change else "", 1))
