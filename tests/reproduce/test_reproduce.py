"""Tables and figures are found by name, written whole, kept, and say what their numbers say; the published ones are whole."""

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import delassus as dl
from delassus import cli
from delassus.reproduce import Claim, Item, Output, constrained, find, items, make, matrix_free, outputs, read, timing, write_index

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "reproduced"


# ---- a paper of our own -----------------------------------------------------------------------------------------------------


def draw(figure):
    ax = figure.add_subplot()
    ax.plot([1, 2], [3.0, 4.0])
    ax.set_xlabel("links")


def output(quick=False):
    rows = (("a", 2.0, np.float64(3.0), 1.5), ("b | c", None, 7, None))
    return Output("quick" if quick else "full", ("what", "paper [µs]", "ours [µs]", "ratio"), rows, "A note.", (Claim("It grows", True, {"slope": 1.0}),), {"x": np.arange(3)}, draw)  # fmt: skip


@pytest.fixture
def papers(monkeypatch):
    """Two papers, ``one`` and ``two``, whose items count how often they were made."""
    made = []

    def item(name, needs=()):
        def work(quick, progress):
            made.append(name)
            progress(0.5)
            return output(quick)

        return Item(name, "Somebody: Something", f"title of {name}", work, needs)

    for paper, names in {"one": ("fig-1", "fig-2"), "two": ("fig-1", "table-9")}.items():
        module = types.ModuleType(f"delassus.reproduce.fake_{paper}")
        module.ITEMS = tuple(item(f"{paper}/{n}", ("symbolic",) if n == "table-9" else ()) for n in names)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    nicknames = {"one": "fake_one", "two": "fake_two"}
    monkeypatch.setattr(items, "PAPERS", nicknames)
    monkeypatch.setattr("delassus.reproduce.PAPERS", nicknames)
    return made


def names(found):
    return [item.name for item in found]


def test_names_stand_for_items_and_papers(papers):
    assert names(find("one")) == ["one/fig-1", "one/fig-2"]
    assert names(find("two/fig-1")) == names(find("two-fig-1")) == ["two/fig-1"]
    assert names(find("fig-2")) == ["one/fig-2"]
    assert names(items.all_items()) == ["one/fig-1", "one/fig-2", "two/fig-1", "two/table-9"]


def test_unknown_and_ambiguous_names_are_refused_with_what_there_is(papers):
    with pytest.raises(dl.errors.ArgumentError, match="one/fig-1, two/fig-1"):
        find("fig-1")
    with pytest.raises(dl.errors.UnknownNameError, match="one/fig-2"):
        find("one/fig-7")
    with pytest.raises(dl.errors.UnknownNameError, match="two/table-9"):
        find("figure")


def test_real_papers_have_the_items_of_the_command():
    assert names(find("matrix-free")) == ["matrix-free/table-1", "matrix-free/fig-2"]
    kinds = ("fig-1", "fig-5-counts", "table-2", "fig-2-bars", "fig-3-scaling", "fig-4", "table-3")
    assert names(find("constrained")) == [f"constrained/{k}" for k in kinds]
    assert names(find("matrix-free-table-1")) == names(find("table-1")) == ["matrix-free/table-1"]
    assert names(find("table-2")) == ["constrained/table-2"]
    assert names(find("lcp-table-2")) == ["lcp/table-2"]
    with pytest.raises(dl.errors.ArgumentError, match="osim/fig-5, lcp/fig-5"):
        find("fig-5")


# ---- files ------------------------------------------------------------------------------------------------------------------


def test_files_hold_what_the_output_holds(papers, tmp_path):
    made = make(find("one/fig-1")[0], tmp_path)
    assert not made.before
    assert {f.suffix for f in made.files} == {".csv", ".json", ".md", ".png", ".svg"}
    assert all(f.parent == tmp_path / "one" and f.stat().st_size > 0 for f in made.files)
    record = json.loads((tmp_path / "one" / "fig-1.json").read_text())
    assert record == made.record == read(tmp_path / "one" / "fig-1.json")
    assert record["rows"] == [["a", 2.0, 3.0, 1.5], ["b | c", None, 7, None]]
    assert record["data"] == {"x": [0, 1, 2]}
    assert record["claims"] == [{"sentence": "It grows", "holds": True, "numbers": {"slope": 1.0}}]
    assert {"machine", "cores", "compiler", "flags", "versions", "date", "quick"} == set(record["stamp"])
    assert record["stamp"]["flags"] == dl._core.flags
    lines = (tmp_path / "one" / "fig-1.csv").read_text().splitlines()
    assert list(csv.reader(line for line in lines if not line.startswith("#"))) == [
        ["what", "paper [µs]", "ours [µs]", "ratio"],
        ["a", "2.0", "3.0", "1.5"],
        ["b | c", "", "7", ""],
    ]
    text = (tmp_path / "one" / "fig-1.md").read_text()
    assert "| a | 2 | 3 | 1.5 |" in text
    assert "b \\| c | – | 7 | – |" in text
    assert "- holds: It grows (slope 1)" in text
    assert "](fig-1.png)" in text
    for kind in ("csv", "md", "svg"):
        assert dl._core.compiler in (tmp_path / "one" / f"fig-1.{kind}").read_text()


def test_index_shows_all_that_is_there(papers, tmp_path):
    for name in ("one/fig-2", "two/fig-1"):
        make(find(name)[0], tmp_path)
    (tmp_path / "two" / "broken.json").write_text("{")
    text = write_index(tmp_path, items.PAPERS).read_text()
    assert text.startswith("# Reproduced: 2 tables and figures, 2 of 2 claims hold")
    assert text.count("![full](") == 2
    assert "](one/fig-2.png)" in text
    assert "](two/fig-1.md)" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ("x", "x"),
        (1234567, "1,234,567"),
        (0.0, "0"),
        (0.12345, "0.123"),
        (12345.6, "12,346"),
        (1.2e-5, "1.2e-05"),
        (3.4e9, "3.4e+09"),
    ],
)
def test_cells_are_short(value, text):
    assert outputs.cell(value) == text


def test_a_second_run_finds_the_first(papers, tmp_path, monkeypatch):
    item = find("one/fig-1")[0]
    make(item, tmp_path)
    again = make(item, tmp_path)
    assert again.before
    assert len(again.files) == 5
    assert papers == ["one/fig-1"]
    # another quickness, force, or another machine: made anew
    assert make(item, tmp_path, quick=True).record["title"] == "quick"
    assert not make(item, tmp_path, quick=True, force=True).before
    monkeypatch.setattr(outputs, "_processor", lambda: "another")
    assert not make(item, tmp_path, quick=True).before
    assert len(papers) == 4


def test_a_folder_that_cannot_be_is_an_error_that_names_it(papers, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(dl.errors.WriteError, match="file"):
        make(find("one/fig-1")[0], tmp_path / "file")


def test_an_item_that_fails_leaves_what_was_there(papers, tmp_path):
    make(find("one/fig-1")[0], tmp_path)

    def fail(quick, progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make(Item("one/fig-1", "p", "t", fail), tmp_path, force=True)
    assert read(tmp_path / "one" / "fig-1.json")["title"] == "full"


# ---- the command ------------------------------------------------------------------------------------------------------------


def command(*arguments):
    return CliRunner().invoke(cli.app, ["reproduce", *arguments])


def test_command_lists_makes_and_sums_up(papers, tmp_path):
    listed = command("--list")
    assert listed.exit_code == 0
    assert "two/table-9" in listed.output
    assert "extra symbolic" in listed.output
    done = command("one", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert "one/fig-2.{csv,json,md,png,svg}" in done.output
    assert "1/1" in done.output
    assert (tmp_path / "out" / "README.md").exists()
    assert "kept" in command("fig-2", "--out", str(tmp_path / "out")).output


@pytest.mark.parametrize("arguments", [(), ("one", "--all")])
def test_command_wants_a_name_or_all(papers, arguments):
    error = command(*arguments).exception
    assert isinstance(error, dl.errors.ArgumentError)
    assert "--all" in str(error)


def test_missing_extra_is_named_and_with_all_left_out(papers, tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "casadi" else real(name, *a))
    alone = command("two/table-9", "--out", str(tmp_path))
    assert isinstance(alone.exception, dl.errors.MissingExtraError)
    assert "delassus[symbolic]" in str(alone.exception)
    together = command("--all", "--out", str(tmp_path))
    assert together.exit_code == 1
    assert "skipped two/table-9" in together.output
    assert papers == ["one/fig-1", "one/fig-2", "two/fig-1"]


SLEEPER = """
import sys, time, types
from delassus import cli
from delassus.reproduce import Item, Output, items
def work(quick, progress):
    return Output("t", ("a",), ((1,),), "n")
def sleep(quick, progress):
    time.sleep(60)
module = types.ModuleType("delassus.reproduce.fake")
module.ITEMS = (Item("one/first", "p", "t", work), Item("one/second", "p", "t", sleep), Item("one/third", "p", "t", work))
sys.modules[module.__name__] = module
items.PAPERS.clear()
items.PAPERS["one"] = "fake"
cli.main()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_what_it_finished(tmp_path, how):
    run = subprocess.Popen(
        [sys.executable, "-c", SLEEPER, "reproduce", "--all", "--out", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what a shell started in the background ignores, it does not
    )  # fmt: skip
    start = time.monotonic()
    while not (tmp_path / "one" / "first.json").exists() and time.monotonic() - start < 60:
        time.sleep(0.05)
    time.sleep(0.3)  # it is asleep in the second
    run.send_signal(how)
    told, _ = run.communicate(timeout=60)
    assert read(tmp_path / "one" / "first.json")["rows"] == [[1]]
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == ["first.csv", "first.json", "first.md"]
    if how == signal.SIGINT:
        assert run.returncode == 130, told
        assert "stopped before one/second, one/third" in told
        assert (tmp_path / "README.md").exists()


# ---- the stopwatch ----------------------------------------------------------------------------------------------------------


def test_stopwatch_repeats_native_work_and_changes_nothing():
    scene = dl.scenes.load("go2-standing")
    G = dl.DelassusOperator(scene.model, scene.constraints, damping=1e-3)
    G.update(scene.q)
    x = np.arange(1.0, 13.0)
    want, inverse = G @ x, G.solve(x)
    G._native.repeats = 50
    np.testing.assert_array_equal(G @ x, want)
    assert G._native.seconds > 0
    G.update(scene.q)
    np.testing.assert_array_equal(G.solve(x), inverse)
    G._native.repeats = 1
    before = G._native.seconds
    G @ x
    assert G._native.seconds == before  # a single call is not timed
    # outside of Valgrind, what it looks at is done all the same
    G._native.traced = True
    for request in (4, 5, 0):
        dl._core.callgrind(request)
    np.testing.assert_array_equal(G @ x, want)


def test_stopwatch_of_solvers_starts_from_the_same_forces_every_time():
    model, q, constraints = dl.scenes.contact_set("talos-F6x2")
    solver = dl.ConstrainedDynamics(model, constraints, tolerance=0.0, max_iterations=1)
    v = np.linspace(-1, 1, model.nv)
    want = solver.solve(q, v)
    solver._native.repeats = 5
    got = solver.solve(q, v)
    np.testing.assert_array_equal(got.acceleration, want.acceleration)
    np.testing.assert_array_equal(got.forces, want.forces)


def test_best_native_times_every_call_and_leaves_no_repeats():
    small, large = (dl.scenes.load(n) for n in ("go2-standing", "box-stack"))
    natives = []
    for scene in (small, large):
        G = dl.DelassusOperator(scene.model, scene.constraints, damping=1e-3)
        G.update(scene.q)
        natives.append((G._native, np.ones(G.shape[0]), np.empty(G.shape[0])))
    calls = {str(k): (n, lambda n=n, x=x, y=y: n.apply(x, 1, True, y)) for k, (n, x, y) in enumerate(natives)}
    times = timing.best_native(calls, 0.02)
    assert set(times) == set(calls)
    assert all(np.isfinite(t) and t > 0 for t in times.values())
    assert all(n.repeats == 1 for n, _, _ in natives)


def test_slope_is_the_exponent():
    assert timing.slope([2, 4, 8], [3 * 2**1.5, 3 * 4**1.5, 3 * 8**1.5]) == pytest.approx(1.5)


# ---- the two papers, where it is cheap --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["go2-standing", "cassie-standing-friction", "box-stack"])
def test_matrix_free_measurement_is_checked_and_whole(name):
    found = matrix_free.measure(dl.scenes.load(name), 0.02)
    assert set(found["times"]) == set(matrix_free.OPERATIONS) == set(list(matrix_free.printed(name))[:5])
    assert all(t > 0 for pair in found["times"].values() for t in pair)
    assert max(found["errors"].values()) < 1e-9
    assert found["memory"][1] > 8 * found["rows"] ** 2
    assert found["rows"] == matrix_free.TABLE_1[name][1]


def test_printed_table_has_the_sizes_of_our_scenes():
    assert list(matrix_free.TABLE_1) == list(dl.scenes.names)
    assert {name: dl.scenes.load(name).rows for name in dl.scenes.names} == {
        name: numbers[1] for name, numbers in matrix_free.TABLE_1.items()
    }
    pyramid = matrix_free.printed("box-pyramid")
    assert pyramid["first application"] == (14.88, 5925)
    assert pyramid["first inverse"] == (65.20, 23092)
    assert pyramid["new damping"] == (64.7, 16822.4)
    assert pyramid["memory, inverse [kB]"] == (826, 15530)


def test_cache_lines_are_first_touches_of_callgrind(tmp_path, monkeypatch):
    (tmp_path / "dump").write_text(
        "version: 1\nevents: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\nsummary: 0\nfn=(1)\n3 1\ntotals: 900 400 300 7 1200 34 1 2 3\n"
    )
    assert matrix_free._missed(tmp_path / "dump") == pytest.approx(1.234)
    monkeypatch.setattr(matrix_free.shutil, "which", lambda name: None)
    assert matrix_free.cache_lines(["go2-standing"], 10) == ({}, "valgrind is not installed")


def test_blocks_of_operations_add_up_to_the_counts():
    pytest.importorskip("casadi")
    model, _, constraints = dl.scenes.contact_set("solo-F3x2")
    blocks = constrained._dynamics_blocks(model, constraints)
    for method, parts in blocks.items():
        assert parts["total"] == dl.textbook.count(method, model, constraints, iterations=3).total
        assert parts["total"] == sum(n for part, n in parts.items() if part != "total")
        assert parts["inertias"] > 0
        assert parts["rest"] > 0
        assert (parts["matrix of rows"] > 0) == (method in ("prox-pv", "prox-ltl"))
        # iterations cost the same each
        assert parts["three iterations"] == 3 * (dl.textbook.count(method, model, constraints, iterations=5).total - dl.textbook.count(method, model, constraints, iterations=4).total)  # fmt: skip
    # the matrix by PV or LTL and its factor, but for entries that either does without
    factor = sum(3 + 2 * j + (5 - j) * (2 * j + 1) for j in range(6))
    for method, alone in (("prox-pv", "pv-osim"), ("prox-ltl", "ltl")):
        whole = dl.textbook.count(alone, model, constraints).total + factor
        assert abs(blocks[method]["inertias"] + blocks[method]["matrix of rows"] - whole) < 0.1 * whole
    assert blocks["prox-ltl"]["inertias"] < dl.textbook.count("ltl", model, constraints).total
    inverse = constrained._inverse_blocks(model, constraints)
    for method in ("caba-osim", "caba-osimf", "pv-osimf"):
        assert inverse[method]["total"] == dl.textbook.count(method, model, constraints).total
        assert (inverse[method]["factor"] > 0) == (method == "pv-osimf")
    assert inverse["ltl"]["rows"] + inverse["ltl"]["inertias"] == dl.textbook.count("ltl", model, constraints).total
    # entries of G above the diagonal that the factor does not need are not counted
    needed = inverse["pv-osimr"]["rows"] + inverse["pv-osimr"]["inertias"]
    assert 0 <= dl.textbook.count("pv-osimr", model, constraints).total - needed < 50
    # of 6 columns j: a shift, a root, a reciprocal, j squares taken off; below it 5 − j entries, each j products taken off and one more product
    assert inverse["ltl"]["factor"] == inverse["pv-osimr"]["factor"] == factor


def test_dynamics_that_are_timed_are_right():
    model, _, constraints = dl.scenes.contact_set("solo-F3x4")
    found = constrained.dynamics_times(model, constraints, 0.02)
    assert set(found["times"]) == set(constrained.METHODS)
    for method in constrained.METHODS:
        assert found["errors"][method]["3"] < 1e-9 < found["errors"][method]["1"]
        assert found["times"][method]["1"] > 0


def test_convergence_of_talos_is_made_for_real(tmp_path):
    record = make(find("constrained/fig-4")[0], tmp_path, quick=True).record
    assert record["data"]["rank"] == 23
    assert_three_iterations_suffice(record)


# ---- published records ------------------------------------------------------------------------------------------------------


def published(name):
    record = read(RECORDS / f"{name}.json")
    assert record is not None, f"docs/reproduced/{name}.json is missing"
    return record


def assert_three_iterations_suffice(record):
    boxes = {(row[0], row[1]): row[4] for row in record["rows"]}
    for method in constrained.METHODS.values():
        medians = [boxes[method, n] for n in range(1, 11)]
        assert medians[0] > 1e-6
        assert medians[2] < 1e-10
        assert medians[2] < 1e-6 * medians[0]


ALL = [f"matrix-free/{n}" for n in ("table-1", "fig-2")] + [
    f"constrained/{n}" for n in ("fig-1", "fig-5-counts", "table-2", "fig-2-bars", "fig-3-scaling", "fig-4", "table-3")
]


@pytest.mark.parametrize("name", ALL)
def test_published_records_are_whole_and_not_quick(name):
    record = published(name)
    assert record["stamp"]["quick"] is False
    assert record["name"] == name
    assert all(len(row) == len(record["columns"]) for row in record["rows"])
    assert record["figure"]
    assert (RECORDS / f"{name}.png").stat().st_size > 10_000
    for row in record["rows"]:
        for k, words in enumerate(record["columns"]):
            if words.split(", ")[-1] == "ratio" and row[k] is not None:
                assert row[k] == pytest.approx(row[k - 1] / row[k - 2], rel=1e-12)


def test_published_records_are_small():
    assert sum(p.stat().st_size for paper in ("matrix-free", "constrained") for p in (RECORDS / paper).iterdir()) < 3e6


@pytest.mark.exhaustive
def test_constrained_aba_counts_fewest_operations_on_humanoids(tmp_path):
    record = make(find("constrained/fig-1")[0], tmp_path, quick=True).record
    total = {(row[0], row[1]): row[-1] for row in record["rows"]}
    for robot in {row[0] for row in record["rows"]} - {"go2-F3x4"}:
        assert total[robot, "constrainedABA"] == min(total[robot, label] for label in constrained.METHODS.values())
    assert 0.15 < 1 - total["go2-F3x4", "constrainedABA"] / total["go2-F3x4", "proxLTL"] < 0.25
