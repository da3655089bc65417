"""Explicit matrices through loops: the item is made for real of small mechanisms, and what is published is whole."""

from pathlib import Path

import pytest

from delassus.reproduce import find, loops, make, read
from delassus.reproduce.loops import FAMILIES, Family

RECORDS = Path(__file__).parents[2] / "docs" / "reproduced"
NAME = "loops/explicit-loops"
SMALL = {"ladder": (2, 3, 4), "box stack": (1, 2, 3), "Stewart platforms": (1, 2), "ring": (4, 6, 8)}


@pytest.fixture
def small(monkeypatch):
    pytest.importorskip("casadi")
    families = {k: Family(FAMILIES[k].make, (*sizes, 5), tuple(2 * s for s in sizes), FAMILIES[k].grows, 6) for k, sizes in SMALL.items()}
    monkeypatch.setattr(loops, "FAMILIES", families)
    return families


def test_small_mechanisms_are_counted_timed_checked_and_drawn(small, tmp_path):
    """Of free bodies nothing is counted for G, whose curves are then missing in the figure."""
    record = make(find(NAME)[0], tmp_path, quick=True).record
    assert (tmp_path / f"{NAME}.png").stat().st_size > 10_000
    columns = {name: k for k, name in enumerate(record["columns"])}
    rows = {(r[0], r[1], r[2]): r for r in record["rows"]}
    assert len(rows) == 4 * (len(small) + 1)
    for (mechanism, matrix, algorithm), row in rows.items():
        if mechanism == "cassie":
            assert row[columns["operations"]] > 0
            continue
        counted = mechanism != "box stack" or matrix != "G"
        assert (row[columns["operations"]] > 0) == counted
        assert (row[columns["exponent of operations"]] is not None) == counted
        assert row[columns["time [µs]"]] > 0
        assert row[columns["off by"]] < (1e-9 if "LTL" not in algorithm else 1e-7)
    # LTL is timed up to the size that a family says
    ring = record["data"]["ring"]["times"]
    assert len(ring["G ltl"]) == 2 < len(ring["G pv-osimr"])


def test_a_wrong_matrix_is_told(monkeypatch):
    right, inverse = loops.ExplicitDelassus.matrix, loops.ExplicitDelassus.inverse
    monkeypatch.setattr(loops.ExplicitDelassus, "matrix", lambda self, *a, **k: 1.001 * right(self, *a, **k))
    monkeypatch.setattr(loops.ExplicitDelassus, "inverse", lambda self, *a, **k: 1.001 * inverse(self, *a, **k))
    times, off = loops._time(FAMILIES["ladder"].make(2), 0.01, sparse=True)
    assert set(times) == set(off)
    assert all(error > 1e-9 for error in off.values())


def test_the_published_record_is_whole_and_not_quick():
    record = read(RECORDS / f"{NAME}.json")
    assert record is not None
    assert record["stamp"]["quick"] is False
    assert all(len(row) == len(record["columns"]) for row in record["rows"])
    assert (RECORDS / f"{NAME}.png").stat().st_size > 10_000
    exponents = next(c for c in record["claims"] if c["sentence"].startswith("Operations of PV-OSIMr"))
    assert exponents["holds"]
    assert all(p <= (1.1 if key.startswith("ring") else 2.1) for key, p in exponents["numbers"].items())
