"""The linter, the formatter and the type checker have nothing to say."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "src", "tests", "examples", "benchmarks"], ["mypy"]],
    ids=["ruff check", "ruff format", "mypy"],
)
def test_tool_is_content(command, tmp_path):
    cache = {"ruff": ["--no-cache"], "mypy": ["--cache-dir", str(tmp_path)]}[command[0]]
    done = subprocess.run([sys.executable, "-m", *command, *cache], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_core_and_bindings_are_formatted():
    files = [
        str(path)
        for folder in ("core", "bindings", "benchmarks", "cpp", "examples", "tests")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".h", ".hpp", ".hxx", ".cpp")
    ]
    assert len(files) > 100
    program = shutil.which("clang-format", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert program, "clang-format is part of the extra 'test'"
    done = subprocess.run([program, "--dry-run", "--Werror", *files], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


CODE = re.compile(
    r"\b(?:texts?|paper|source:?|of|source=\") ?00[0-9]\b|\b00[0-9], (?:algorithms?|eqs?\.|sections?|figs?\.|table|line)", re.IGNORECASE
)


def test_papers_have_names_not_numbers():
    """A number and "algorithm 4" tell a reader nothing; "constrained-dynamics paper, algorithm 4" does."""
    folders = ("src", "docs", "core", "bindings", "benchmarks", "examples")
    files = [p for folder in folders for p in (ROOT / folder).rglob("*") if p.suffix in (".py", ".md", ".h", ".cpp")]
    assert len(files) > 400
    assert CODE.search("Source: 003, algorithm 4.")
    found = [
        f"{path.relative_to(ROOT)}: {line}" for path in files for line in path.read_text(encoding="utf-8").splitlines() if CODE.search(line)
    ]
    assert found == []
