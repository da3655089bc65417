"""``delassus bench --self``: instructions counted by two instruments, compared with a record that is right, wrong or of another processor."""

import json
import mmap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from delassus import _builds, _cpu
from delassus.bench import health, instructions
from delassus.bench.verbs import Verb, verbs
from delassus.cli import app

ROOT = Path(__file__).resolve().parents[2]
FEW = ("go2: rnea", "go2: apply")


@pytest.fixture(scope="module")
def few():
    return [verb for verb in verbs() if verb.name in FEW]


@pytest.fixture(scope="module")
def counted(few):
    try:
        return instructions.count_by_steps(few)
    except NotImplementedError as reason:
        pytest.skip(str(reason))


def level():
    return health.level_of_processor(_builds.cpu_features(), _cpu.kind)


def command(tmp_path, code):
    """Run the command; what it prints, and what it writes of the build."""
    file = tmp_path / "health.json"
    done = CliRunner().invoke(app, ["bench", "--self", "--json", str(file)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return " ".join(done.output.split()), json.loads(file.read_text())["health"]


def with_record(monkeypatch, few, counts):
    record = {"instructions": {level(): counts}, "times": {level(): counts}}
    monkeypatch.setattr(health, "verbs", lambda: few)
    monkeypatch.setattr(health, "load_record", lambda: record)


# ---- instruments ------------------------------------------------------------------------------------------------------------


def test_counter_counts_an_event_whose_number_is_known():
    """Page faults: a software event, which virtual machines have too; as many as new pages that are touched."""
    pages, size = 500, mmap.PAGESIZE
    with mmap.mmap(-1, pages * size) as memory:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        try:
            counter = instructions.EventCounter(kind=1, event=2)
        except NotImplementedError as reason:
            pytest.skip(str(reason))
        try:
            faults = counter.count(lambda: [memory.__setitem__(k * size, 1) for k in range(pages)])
            again = counter.count(lambda: [memory.__setitem__(k * size, 1) for k in range(pages)])
        finally:
            counter.close()
    assert pages <= faults < pages + 50
    assert again < 50


def test_steps_repeat_to_a_thousandth(few, counted):
    again = instructions.count_by_steps(few)
    assert list(again) == list(FEW)
    assert again == pytest.approx(counted, rel=1e-3)


def test_steps_agree_with_the_counter_of_the_processor(few, counted):
    try:
        other = instructions.count_by_counter(few)
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    assert other == pytest.approx(counted, rel=0.02)


def test_an_event_that_does_not_exist_is_said():
    with pytest.raises(NotImplementedError, match="not available"):
        instructions.EventCounter(kind=77, event=77)


def test_counts_on_record_agree_with_those_of_callgrind():
    """benchmarks/counts.json was made by another program and another instrument, at four states near ours."""
    record = health.load_record()["instructions"].get("x86-64-v3")
    if record is None:
        pytest.skip("x86-64-v3 is not on record")
    kept = json.loads((ROOT / "benchmarks" / "counts.json").read_text())["counts"]
    pairs = {
        "go2-standing": {"go2: rnea": "rnea", "go2: apply": "apply", "go2: solve": "solve"},
        "cassie-standing": {"cassie: apply": "apply", "cassie: solve": "solve"},
    }
    for scene, names in pairs.items():
        for ours, theirs in names.items():
            assert record[ours] == pytest.approx(kept[scene][theirs], rel=0.05), ours
    # here forward dynamics also judges whether M is regular, and the compiler inlines less
    for ours in ("aba", "crba"):
        assert kept["go2-standing"][ours] * 0.95 <= record[f"go2: {ours}"] <= kept["go2-standing"][ours] * 1.4, ours
    both = record["go2: update"] + record["go2: apply"]
    assert both == pytest.approx(kept["go2-standing"]["update and apply"], rel=0.05)


def test_times_grow_with_the_work(few):
    found = health.times(few, budget=0.02)
    assert found["go2: rnea"] > 1.5 * found["go2: apply"] > 0  # it has four times the instructions


# ---- verbs ------------------------------------------------------------------------------------------------------------------


def test_every_verb_is_right_and_on_record():
    known = verbs()
    assert len({verb.name for verb in known}) == len(known) > 12
    assert [verb.name for verb in known if not verb.right] == []
    record = health.load_record()
    for unit in ("instructions", "times"):
        for name, counts in record[unit].items():
            assert sorted(counts) == sorted(verb.name for verb in known), name
    assert "x86-64-v4" in record["instructions"]
    assert set(record["instructions"]) == set(record["times"]) == set(record["builds"])


def test_a_verb_whose_result_is_wrong_is_named(tmp_path, monkeypatch, few, counted):
    broken = [Verb(verb.name, verb.native, verb.call, (lambda: 1e-3) if verb is few[0] else verb.error) for verb in few]
    with_record(monkeypatch, broken, counted)
    said, found = command(tmp_path, 1)
    assert found["wrong"] == [FEW[0]]
    assert f"Wrong results: {FEW[0]}" in said


# ---- the verdict ------------------------------------------------------------------------------------------------------------


def test_a_build_is_healthy_beside_its_own_counts(tmp_path, monkeypatch, few, counted):
    with_record(monkeypatch, few, counted)
    said, found = command(tmp_path, 0)
    assert found["healthy"]
    assert [f["verdict"] for f in found["findings"]] == ["healthy", "healthy"]
    assert found["mean"] == pytest.approx(1, abs=0.02)
    assert "mean 1.00: healthy" in said


@pytest.mark.parametrize(("factor", "verdict"), [(0.5, "slow"), (10.0, "not comparable")])
def test_a_wrong_record_is_seen(tmp_path, monkeypatch, few, counted, factor, verdict):
    with_record(monkeypatch, few, {name: factor * n for name, n in counted.items()})
    said, found = command(tmp_path, 1)
    assert not found["healthy"]
    assert {f["verdict"] for f in found["findings"]} == {verdict}
    assert "UNHEALTHY" in said
    assert ("without optimization" in said) == (verdict == "slow")


def test_one_slow_verb_is_enough(tmp_path, monkeypatch, few, counted):
    with_record(monkeypatch, few, counted | {FEW[1]: counted[FEW[1]] / 2})
    _, found = command(tmp_path, 1)
    assert [f["verdict"] for f in found["findings"]] == ["healthy", "slow"]


def test_a_build_for_a_lesser_processor_is_recognized():
    good = {"go2: rnea": 5000.0, "go2: apply": 1600.0}
    poor = {"go2: rnea": 9000.0, "go2: apply": 2200.0}
    record = {"instructions": {"x86-64-v2": poor, "x86-64-v4": good}}
    found = health.diagnose("steps", {verb: 1.03 * n for verb, n in poor.items()}, record, "x86-64-v4")
    assert not found.healthy
    assert found.resembles == "x86-64-v2"
    assert "It counts like a build for x86-64-v2; this processor can do x86-64-v4" in " ".join(health.advice(found))


def test_times_are_taken_where_nothing_can_be_counted(tmp_path, monkeypatch, few, counted):
    def refuse(*_):
        raise NotImplementedError("not in this test")

    with_record(monkeypatch, few, counted)
    times = health.times(few, budget=0.02)
    with_record(monkeypatch, few, times)
    monkeypatch.setattr(health, "load_record", lambda: {"instructions": {level(): counted}, "times": {level(): times}})
    monkeypatch.setattr(health, "count_by_counter", refuse)
    monkeypatch.setattr(health, "count_by_steps", refuse)
    said, found = command(tmp_path, 0)
    assert found["instrument"] == "clock"
    assert found["why"] == ["not in this test"] * 2
    assert "not used: not in this test" in said


@pytest.mark.parametrize(
    ("features", "name"),
    [
        ("", "x86-64"),
        ("sse3 ssse3 sse4_1 sse4_2 popcnt", "x86-64-v2"),
        ("sse3 ssse3 sse4_1 sse4_2 popcnt avx avx2 bmi bmi2 f16c fma lzcnt movbe", "x86-64-v3"),
        ("sse3 ssse3 sse4_1 sse4_2 popcnt avx avx2 bmi bmi2 f16c fma lzcnt", "x86-64-v2"),
        ("avx512f avx512bw avx512cd avx512dq avx512vl", "x86-64"),
        ("sse3 ssse3 sse4_1 sse4_2 popcnt avx avx2 bmi bmi2 f16c fma lzcnt movbe avx512f avx512bw avx512cd avx512dq avx512vl", "x86-64-v4"),
    ],
)
def test_levels_are_those_of_the_abi(features, name):
    assert health.level_of_processor(features.split()) == name
    assert health.level_of_processor(features.split(), "aarch64") == "aarch64"


def test_a_robot_or_self_and_not_both():
    for words in (["bench"], ["bench", "go2", "--self"]):
        done = CliRunner().invoke(app, words)
        assert "expected a robot, a scene or --self" in str(done.exception)
