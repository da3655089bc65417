"""``delassus view`` writes recordings of robots, scenes, files and trajectories, and tells mistakes in one line."""

import subprocess
import sys

import pytest

import delassus as dl
from oracles.motions import dropped

pytest.importorskip("viser", reason="the extra viewer is not installed")
COMMAND = [sys.executable, "-c", "from delassus.cli import main; main()", "view"]


def run(*words, folder):
    return subprocess.run([*COMMAND, *words], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("source", ["hand", "g1-fallen", "own.xml", "fall.npz"])
def test_view_records_every_kind_of_source(source, tmp_path):
    model = dl.scenes.on_floor("solo")
    (tmp_path / "own.xml").write_text(model.to_mjcf())
    dropped(model, dl.load("solo").keyframes["home"], seconds=0.1).save(tmp_path / "fall.npz")
    done = run(source, "--record", "out.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wrote out.html" in done.stdout
    text = (tmp_path / "out.html").read_text()
    assert text.lstrip().lower().startswith("<!doctype html")
    assert "__VISER_EMBED_DATA__=" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody"], "UnknownNameError"),
        (["nowhere.npz"], "LoadError"),
        (["nowhere.xml"], "LoadError"),
        (["go2", "--record", "x.avi"], "ArgumentError"),
        (["go2", "--record", "no/such/folder.html"], "WriteError"),
    ],
)
def test_mistakes_are_one_line(words, said, tmp_path):
    done = run(*words, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
