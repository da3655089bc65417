"""The pages about algorithms are the source's, and what the room's page shows runs."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from delassus import textbook as tb

ROOT = Path(__file__).parents[2]
MAKER = runpy.run_path(str(ROOT / "tools" / "make_algorithm_pages.py"))


@pytest.mark.parametrize("module", MAKER["MODULES"])
def test_page_is_what_the_source_says(module):
    assert (ROOT / "docs" / "algorithms" / f"{module}.md").read_text() == MAKER["page"](module), "run tools/make_algorithm_pages.py"


def test_every_algorithm_is_on_the_rooms_page_and_on_one_of_its_own():
    room = (ROOT / "docs" / "textbook.md").read_text()
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "algorithms").glob("*.md"))
    for name, algorithm in tb.ALGORITHMS.items():
        function = getattr(algorithm.run, "func", algorithm.run).__name__
        assert f"`{name}`" in room
        assert f"`{function}`" in room
        assert f"\n## {function}\n" in pages


def test_python_of_the_page_runs(tmp_path):
    pytest.importorskip("casadi")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "textbook.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], check=False, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "5660 operations" in done.stdout
    assert (tmp_path / "delassus_matrix.c").stat().st_size > 10_000
