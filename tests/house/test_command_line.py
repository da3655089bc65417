"""The command as users meet it: any terminal, any words, any folder; a mistake is one line and exit code 2, and files of others stay."""

import os
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-c", "from delassus.cli import main; main()"]
COMMANDS = ["demo", "info", "check", "count", "simulate", "bench", "reproduce", "view"]


def run(*words, cwd=None, **environment):
    return subprocess.run([*COMMAND, *words], capture_output=True, cwd=cwd, env=os.environ | environment, timeout=120)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_takes(command):
    said = run(command, "--help", COLUMNS="200")
    assert said.returncode == 0, said.stderr.decode()
    assert b"Usage" in said.stdout


def test_options_of_every_kind_are_taken(tmp_path):
    """Paths, lists, numbers, flags: what a version of typer must know."""
    words = [
        "simulate",
        "go2",
        "--seconds",
        "0.01",
        "--timestep",
        "0.002",
        "--control",
        ",".join(["0"] * 12),
        "--json",
        str(tmp_path / "a.json"),
    ]
    assert run(*words, "--record", str(tmp_path / "a.npz")).returncode == 0
    assert run("count", "efpa", "iiwa", "--weld", "link7").returncode in (0, 2)  # 2 where CasADi is not installed
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "a.npz"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_cannot_show_every_character_is_served(encoding):
    said = run("info", "iiwa", PYTHONIOENCODING=encoding)
    assert (said.returncode, said.stderr) == (0, b"")
    assert b"link7" in said.stdout


@pytest.mark.parametrize(
    "words",
    [["info", b"\xff\xfe"], ["info", b"/tmp/\xff.xml"], ["view", b"/tmp/\xff.npz"], ["simulate", "iiwa", "--record", b"/no/\xff.npz"]],
)
def test_words_that_are_no_text_are_one_line(words):
    said = run(*words)
    assert said.returncode == 2
    assert b"Traceback" not in said.stderr
    assert len(said.stderr.splitlines()) == 1


def test_files_whose_names_are_no_text_are_written(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.json"
    said = run("info", "iiwa", "--json", path)
    assert said.returncode == 0, said.stderr.decode()
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff.json"]


def test_reproducing_into_a_folder_of_somebody_else_leaves_its_readme(tmp_path):
    (tmp_path / "README.md").write_text("# Mine\n")
    said = run("reproduce", "--all", "--quick", "--out", str(tmp_path))
    assert said.returncode == 2
    assert b"is not one of ours" in said.stderr.replace(b"\n", b" ")
    assert [p.name for p in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "# Mine\n"


def test_commands_write_nothing_that_was_not_asked_for(tmp_path):
    for words in (["info", "go2"], ["check", "iiwa", "--states", "2"], ["simulate", "go2", "--seconds", "0.02"]):
        assert run(*words, cwd=tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []
