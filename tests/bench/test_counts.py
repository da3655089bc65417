"""Counted instructions: the comparison with those kept sees growth, and refuses what cannot be compared."""

import copy
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def module(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / "native" / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


instructions, driver = module("instructions"), module("driver")


@pytest.fixture
def kept():
    return instructions.kept()


def changed(kept, factor, scene="go2-standing", task="apply"):
    measured = copy.deepcopy(kept)
    measured["counts"][scene][task] = round(measured["counts"][scene][task] * factor)
    return measured


def test_counts_as_kept_are_well(kept):
    lines, well = instructions.compare(copy.deepcopy(kept), kept)
    assert well
    assert lines == ["No count grew by more than 3%."]


def test_a_larger_count_is_a_warning_that_names_it(kept):
    lines, well = instructions.compare(changed(kept, 1.04), kept)
    assert not well
    assert len(lines) == 1
    assert lines[0].startswith("WARNING  go2-standing, apply: ")
    assert lines[0].endswith("+4.0%")


def test_growth_up_to_the_bound_is_not_a_warning(kept):
    assert instructions.compare(changed(kept, 1.029), kept)[1]


def test_a_smaller_count_is_said_and_is_well(kept):
    lines, well = instructions.compare(changed(kept, 0.9), kept)
    assert well
    assert lines[0].startswith("better   go2-standing, apply: ")


def test_a_verb_no_longer_counted_is_not_well_and_a_new_one_is(kept):
    fewer = copy.deepcopy(kept)
    del fewer["counts"]["go2-standing"]["apply"]
    lines, well = instructions.compare(fewer, kept)
    assert not well
    assert lines == ["MISSING  go2-standing, apply: no longer counted"]
    lines, well = instructions.compare(kept, fewer)
    assert well
    assert lines[0].startswith("new      go2-standing, apply: ")


@pytest.mark.parametrize("key", ["machine", "compiler", "flags", "libc"])
def test_counts_of_another_build_are_not_compared(kept, key):
    other = changed(kept, 2.0)
    other[key] = "another"
    lines, well = instructions.compare(other, kept)
    assert not well
    assert lines[0] == "The counts cannot be compared with those kept."
    assert lines[1].startswith(f"{key}: 'another' here, ")
    assert len(lines) == 2


def test_what_the_program_says_meets_the_totals_of_callgrind(monkeypatch):
    monkeypatch.setattr(instructions, "valgrind_version", lambda: "1.2")
    assert instructions.instructions_of("events: Ir\nsummary: 7\nfn=(1) totals: 3\n\ntotals: 1203\n") == 1203
    with pytest.raises(ValueError, match="no totals"):
        instructions.instructions_of("events: Ir\n")
    said = "fact\tcompiler\tc\ncount\ta\tapply\t4\ncount\ta\tsolve\t4\ncount\tb\tapply\t2\n"
    made = instructions.read(said, [403, 80, 10])
    assert made["counts"] == {"a": {"apply": 100, "solve": 20}, "b": {"apply": 5}}
    assert made["compiler"] == "c"
    assert "| apply | 100 | 5 |" in instructions.table(made)
    assert "| solve | 20 |  |" in instructions.table(made)


def test_kept_counts_are_of_an_instruction_set_that_valgrind_knows(kept):
    assert f"-march={instructions.ARCHITECTURE}" in kept["flags"]
    assert all(isinstance(n, int) and n > 100 for scene in kept["counts"].values() for n in scene.values())


@pytest.mark.parametrize(("strict", "factor", "code"), [(False, 1.5, 0), (True, 1.5, 1), (True, 1.0, 0)])
def test_only_a_strict_check_fails(monkeypatch, tmp_path, capsys, kept, strict, factor, code):
    monkeypatch.setitem(sys.modules, "instructions", instructions)
    monkeypatch.setattr(instructions, "measure", lambda program, scenes: changed(kept, factor))
    monkeypatch.setattr(driver, "build", lambda folder, target, **settings: folder / target)
    monkeypatch.setattr(driver, "export", lambda kind, folder: [folder / kind])
    monkeypatch.setattr(sys, "argv", ["run", "--check", *(["--strict"] if strict else []), "--json", str(tmp_path / "counts.json")])
    assert driver.main() == code
    assert ("WARNING  go2-standing, apply" in capsys.readouterr().out) == (factor > 1)
    written = json.loads((tmp_path / "counts.json").read_text())
    assert written["counts"] == changed(kept, factor)["counts"]


def test_ratios_are_of_the_fastest_of_each_side():
    def row(name, side, way, best, spread=0.0):
        return {
            "name": name,
            "task": "t",
            "side": side,
            "way": way,
            "best": best,
            "median": 2 * best,
            "p10": best,
            "p90": best * (1 + 2 * spread),
        }

    rows = [
        row("a", "delassus", "x", 4.0),
        row("a", "delassus", "y", 2.0, 0.1),
        row("a", "Pinocchio", "z", 6.0),
        row("a", "Pinocchio", "w", 9.0),
    ]
    rows += [row("b", "delassus", "x", 1.0, 0.3), row("b", "Pinocchio", "z", 12.0), row("c", "delassus", "x", 1.0)]
    assert driver.ratios(rows) == {"t": [(3.0, 3.0, pytest.approx(0.1), 0.0), (12.0, 12.0, pytest.approx(0.3), 0.0)]}
    assert "| t | 2 | 6.00 | 3.00 | 6.00 | 3.00 | 20% | 0% |" in driver.summary(rows)


def test_the_command_explains_itself_and_refuses_what_makes_no_sense():
    command = [sys.executable, str(BENCHMARKS / "native" / "driver.py")]
    assert "benchmarks/counts.json" in subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    done = subprocess.run([*command, "--strict"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--strict goes with --check" in done.stderr
