"""Threads of batches and of islands do not race, and change no bit: the thread sanitizer watches a program of batches that share a model, and one of a world."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which(os.environ.get("CXX", "g++"))


def has_sanitizer(tmp_path):
    """Whether the compiler comes with the thread sanitizer and what it makes runs here."""
    source, program = tmp_path / "empty.cpp", tmp_path / "empty"
    source.write_text("int main() {}")
    made = subprocess.run([COMPILER, "-fsanitize=thread", source, "-o", program], capture_output=True)
    return made.returncode == 0 and subprocess.run([program], capture_output=True).returncode == 0


@pytest.mark.exhaustive
@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_batches_and_islands_on_threads_do_not_race(tmp_path):
    if not has_sanitizer(tmp_path):
        pytest.skip("needs the thread sanitizer")
    done = subprocess.run([ROOT / "tools" / "sanitize", "--thread"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "0\n0\n"  # numbers that differ, of each program
