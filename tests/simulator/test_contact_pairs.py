"""Old points of pairs are found by comparing each pair with a few others, however many there are: counted, not timed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which(os.environ.get("CXX", "g++"))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")
    made = tmp_path_factory.mktemp("pairs") / "contact_pairs"
    sources = [Path(__file__).with_name("contact_pairs.cpp"), ROOT / "core" / "simulator" / "contact_pairs.cpp"]
    subprocess.run([COMPILER, "-std=c++20", "-O1", "-Wno-psabi", f"-I{ROOT / 'core'}", *sources, "-o", made], check=True)
    return made


@pytest.mark.parametrize("order", ["same", "shuffled"])
def test_pairs_that_come_and_go_are_found_in_linear_time(program, order):
    few, many = 500, 5000
    counts = []
    for n in (few, many):
        compared, right = subprocess.run([program, str(n), order], capture_output=True, text=True, check=True).stdout.split()
        assert right == "1"
        counts.append(int(compared))
    assert counts[0] < 40 * few  # some 2.3 contacts a pair, a few comparisons for each
    assert counts[1] < 1.5 * many / few * counts[0]
