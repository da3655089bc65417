"""The sweeps are templates: on a pack of states they give, lane by lane, what they give on single states."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_every_sweep_runs_on_packs_of_states(tmp_path):
    program = tmp_path / "packs"
    sources = [ROOT / "tests/dynamics/packs.cpp", ROOT / "core/model/model.cpp"]
    subprocess.run([COMPILER, "-std=c++20", "-O0", "-Wno-psabi", f"-I{ROOT / 'core'}", *sources, "-o", program], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    double4, double8, float8 = map(float, printed.split())
    # the same operations in another order of instructions: rounding, times the condition of M
    assert double4 < 1e-12
    assert double8 < 1e-12
    assert float8 < 1e-3
