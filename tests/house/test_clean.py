"""The linter, the formatter and the type checker have nothing to say."""

import os
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
