"""Results on disk: nothing finished is lost by kills, interrupts and errors, no row is there twice, and folders of others are left alone."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, BusyError, DatasetError, FunctionError, MissingExtraError, UnknownNameError, WriteError
from delassus.studies import study as module
from delassus.studies.dataset import Dataset, complement, union

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

BOX = """<mujoco model="box"><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="box" pos="0 0 0.12"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="2"/></body></worldbody></mujoco>"""


def study(rows=60, **given):
    options = {"metrics": ["height", "q"], "seconds": 0.02} | given
    return dl.Study(BOX, parameters=dl.studies.random(rows, {"v[0]": (-1.0, 1.0), "v[4]": (-5.0, 5.0)}), **options)


def part_rows(path):
    """Rows of every part, in the order of their names."""
    return [parquet.read_table(part).column("row").to_pylist() for part in sorted(path.glob("part-*.parquet"))]


def all_rows(path):
    return [row for rows in part_rows(path) for row in rows]


def test_the_folder_is_a_parquet_dataset_that_others_read(tmp_path):
    result = study().run(path=tmp_path / "s.parquet", progress=False)
    table = parquet.read_table(tmp_path / "s.parquet").sort_by("row")
    assert table.column_names == ["row", "v[0]", "v[4]", "height", "q", "status", "unsolved", "unstable"]
    assert table.cast(result.table.schema).combine_chunks().equals(result.table)
    assert result.path == tmp_path / "s.parquet"
    assert result.table.equals(study().run(path=None, progress=False).table)
    for name, column in study().columns(10, 20).items():
        np.testing.assert_array_equal(result.column(name)[10:20], column)
    assert len(result) == 60 == result.table.num_rows
    with pytest.raises(UnknownNameError, match="Did you mean 'height'"):
        result.column("heigh")


def test_pandas_is_asked_for_only_where_it_is_used(tmp_path, monkeypatch):
    result = study(2).run(path=None, progress=False)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        result.to_pandas()


def test_a_finished_study_is_read_and_not_run_again(tmp_path):
    first = study().run(path=tmp_path / "s", progress=False)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "s").glob("part-*")}
    again = study().run(path=tmp_path / "s", progress=False)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "s").glob("part-*")} == before
    assert again.table.equals(first.table)
    with pytest.raises(DatasetError, match="has rows already"):
        study().run(path=tmp_path / "s", progress=False, resume=False)


@pytest.mark.parametrize("change", ["rows", "model", "metrics", "function", "seconds", "options", "initial", "seed", "controls", "version"])
def test_a_folder_of_another_study_is_refused_and_the_difference_named(tmp_path, change, monkeypatch):
    def made(k):
        model = BOX.replace('mass="2"', f'mass="{2 + k}"') if change == "model" else BOX
        given = {"metrics": {"h": "height", "f": lambda run: 1.0}, "seconds": 0.02}
        ranges = {"v[0]": (-1.0, 1.0)}
        if not k:
            return dl.Study(model, parameters=dl.studies.random(6, ranges), **given)
        if change == "rows":
            return dl.Study(model, parameters=dl.studies.random(7, ranges), **given)
        if change == "metrics":
            given["metrics"] = {"g": "height", "f": given["metrics"]["f"]}
        given |= {
            "function": {"metrics": {"h": "height", "f": lambda run: 2.0}}, "seconds": {"seconds": 0.04}, "options": {"solver": "admm"},
            "initial": {"initial": [0, 0, 1, 1, 0, 0, 0]}, "seed": {"seed": 5}, "controls": {"controls": np.zeros((10, 0))},
        }.get(change, {})  # fmt: skip
        return dl.Study(model, parameters=dl.studies.random(6, ranges), **given)

    first = made(0).run(path=tmp_path / "s", progress=False).table
    if change == "version":
        monkeypatch.setattr(module, "versions", lambda: {"delassus": "0.0.1"})
    named = {"rows": "parameters", "function": "metrics", "seed": "initial"}.get(change, change)
    with pytest.raises(DatasetError, match=f"belongs to another study: its {named} differs"):
        made(1).run(path=tmp_path / "s", progress=False)
    monkeypatch.undo()
    assert made(0).run(path=tmp_path / "s", progress=False).table.equals(first)


def test_folders_of_others_are_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    with pytest.raises(DatasetError, match=r"is not a study: it has notes\.txt"):
        study().run(path=tmp_path / "mine", progress=False)
    (tmp_path / "file").write_text("x")
    with pytest.raises(WriteError, match="cannot be written to"):
        study().run(path=tmp_path / "file", progress=False)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "precious"


def test_damaged_parts_and_rows_that_are_there_twice_are_named(tmp_path):
    study().run(path=tmp_path / "s", progress=False)
    (part,) = (tmp_path / "s").glob("part-*.parquet")
    copied = part.with_name("part-999999999999-copied.parquet")
    copied.write_bytes(part.read_bytes())
    with pytest.raises(DatasetError, match=r"row 0 is in .* and in .*copied"):
        study().run(path=tmp_path / "s", progress=False)
    copied.write_bytes(part.read_bytes()[:100])
    with pytest.raises(DatasetError, match=r"copied\.parquet' cannot be read"):
        study().run(path=tmp_path / "s", progress=False)
    copied.unlink()
    other = study(30)
    other.run(path=tmp_path / "t", progress=False)
    (foreign,) = (tmp_path / "t").glob("part-*.parquet")
    (tmp_path / "s" / "part-000000000099-foreign.parquet").write_bytes(foreign.read_bytes())
    with pytest.raises(DatasetError, match=r"foreign\.parquet' belongs to another study"):
        study().run(path=tmp_path / "s", progress=False)
    (tmp_path / "s" / "_study.json").write_text("{")
    with pytest.raises(DatasetError, match=r"_study\.json' cannot be read"):
        study().run(path=tmp_path / "s", progress=False)


def test_two_processes_do_not_write_to_one_folder(tmp_path):
    made = study()
    with Dataset(tmp_path / "s", made.identity, made.rows).opened(resume=True), pytest.raises(BusyError, match="another process writes"):
        made.run(path=tmp_path / "s", progress=False)
    made.run(path=tmp_path / "s", progress=False)


def test_what_is_missing_is_run_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.0)
    whole = study().run(path=tmp_path / "s", progress=False, chunk=7).table
    parts = sorted((tmp_path / "s").glob("part-*.parquet"))
    assert len(parts) == 9
    kept = [p for k, p in enumerate(parts) if k not in (0, 3, 4, 8)]
    for p in set(parts) - set(kept):
        p.unlink()
    before = {p: p.read_bytes() for p in kept}
    again = study().run(path=tmp_path / "s", progress=False, chunk=5)
    assert again.table.equals(whole)
    assert all(p.read_bytes() == content for p, content in before.items())
    assert sorted(all_rows(tmp_path / "s")) == list(range(60))


def test_ranges():
    assert union([(5, 9), (0, 2), (2, 4), (8, 12), (3, 3)]) == [(0, 4), (5, 12)]
    assert complement([(0, 4), (5, 12)], 20) == [(4, 5), (12, 20)]
    assert complement([], 3) == [(0, 3)]
    assert complement([(0, 3)], 3) == []
    rng = np.random.default_rng(0)
    for _ in range(50):
        ranges = [tuple(sorted(pair)) for pair in rng.integers(0, 40, (6, 2)).tolist()]
        inside = set().union(*(range(a, b) for a, b in ranges))
        assert set().union(*(range(a, b) for a, b in union(ranges))) == inside
        assert set().union(*(range(a, b) for a, b in complement(union(ranges), 40)), set()) == set(range(40)) - inside


# ---- ends in the middle ---------------------------------------------------------------------------------------------------------

CLIENT = """
import sys, time
import delassus as dl
from delassus.studies import study as module
module.FLUSH_SECONDS = 0.0

def slow(run):
    time.sleep(0.01)
    return run.q[-1, 0]

study = dl.Study({box!r}, parameters=dl.studies.random({rows}, {{"v[0]": (-1.0, 1.0)}}), metrics={{"height": "height", "slow": slow}}, seconds=0.02)
if __name__ == "__main__":
    print("ready", flush=True)
    study.run(path={path!r}, progress=False, chunk=3)
"""


def client(tmp_path, rows):
    script = tmp_path / "client.py"
    script.write_text(CLIENT.format(box=BOX, rows=rows, path=str(tmp_path / "s")))
    return script


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_client_that_is_killed_loses_nothing_that_was_written(tmp_path, end):
    rows = 150
    script = client(tmp_path, rows)
    # what a shell started in the background ignores, this process does not
    begin = "import signal, runpy, sys; signal.signal(signal.SIGINT, signal.default_int_handler); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    running = subprocess.Popen([sys.executable, "-c", begin, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "s").glob("part-*.parquet"))) < 5:
        assert time.monotonic() < deadline
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.01)
    running.send_signal(end)
    said = running.communicate(timeout=30)[1]
    assert running.returncode != 0
    assert end == signal.SIGKILL or b"KeyboardInterrupt" in said
    before = {p: p.read_bytes() for p in (tmp_path / "s").glob("part-*.parquet")}
    finished = all_rows(tmp_path / "s")
    assert 15 <= len(finished) < rows
    assert len(set(finished)) == len(finished)

    again = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    assert all(p.read_bytes() == content for p, content in before.items())
    assert sorted(all_rows(tmp_path / "s")) == list(range(rows))
    whole = dl.Study(BOX, parameters=dl.studies.random(rows, {"v[0]": (-1.0, 1.0)}), metrics=["height"], seconds=0.02).run(
        path=None, progress=False
    )
    table = parquet.read_table(tmp_path / "s").sort_by("row")
    assert np.asarray(table.column("height")).tobytes() == whole.column("height").tobytes()


CALLS = []


def test_an_error_in_the_middle_keeps_what_is_finished(tmp_path):
    mended = str(tmp_path / "mended")

    def breaks(run):
        CALLS.append(run.row)
        if run.row == 40 and not os.path.exists(mended):
            raise RuntimeError("enough")
        return 0.0

    made = study(metrics={"f": breaks})
    with pytest.raises(FunctionError, match="'f' failed in row 40: RuntimeError: enough"):
        made.run(path=tmp_path / "s", progress=False, chunk=5)
    finished = all_rows(tmp_path / "s")
    assert 5 <= len(finished) < 60
    assert 40 not in finished
    CALLS.clear()
    open(mended, "w").close()
    made.run(path=tmp_path / "s", progress=False, chunk=5)
    assert sorted(CALLS) == sorted(set(range(60)) - set(finished))


def test_a_full_disk_is_told_and_what_was_written_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.0)
    real, written = Dataset.write, []

    def full(self, chunks):
        if len(written) == 3:
            raise WriteError("rows: no space left on device")
        written.append(len(chunks))
        real(self, chunks)

    monkeypatch.setattr(Dataset, "write", full)
    with pytest.raises(WriteError, match="no space left"):
        study().run(path=tmp_path / "s", progress=False, chunk=4)
    assert len(part_rows(tmp_path / "s")) == 3
    monkeypatch.setattr(Dataset, "write", real)
    assert study().run(path=tmp_path / "s", progress=False).table.equals(study().run(path=None, progress=False).table)


def test_bad_arguments_of_run(tmp_path):
    with pytest.raises(ArgumentError, match="chunk: expected at least 1"):
        study().run(path=tmp_path / "s", chunk=0)
    with pytest.raises(ArgumentError, match="cannot be the name of a file"):
        study().run(path="a\0b")
    with pytest.raises(ArgumentError, match="expected rows from 0 to 60"):
        study().columns(5, 61)
    assert not (tmp_path / "s").exists() or not os.listdir(tmp_path / "s")
    assert json.loads(json.dumps(study().identity)) == study().identity
