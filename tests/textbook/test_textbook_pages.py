"""Every algorithm of the textbook is on the room's page."""

import re
from pathlib import Path

import pytest

from delassus import textbook as tb

ROOM = (Path(__file__).parents[2] / "docs" / "textbook.md").read_text()


@pytest.mark.parametrize("name", tb.ALGORITHMS)
def test_algorithm_is_on_the_rooms_page(name):
    run = tb.ALGORITHMS[name].run
    function = getattr(run, "func", run).__name__
    assert re.search(rf"^\| .*`{name}`.* \| `{function}` \|", ROOM, re.MULTILINE)
