"""What a run writes: whole files, also of a run that ends before its time."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, MissingExtraError, WriteError

ENDLESS = """
import delassus as dl
from delassus.simulator import recording
recording.Keeper.seconds = 0.05
dl.Simulator(dl.scenes.box_stack(3)).run(1e5, every=10, record={record!r}, progress=False)
"""


def test_a_killed_run_leaves_what_it_had(tmp_path):
    path = tmp_path / "run.npz"
    process = subprocess.Popen([sys.executable, "-c", ENDLESS.format(record=str(path))])
    try:
        until = time.monotonic() + 60
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.3)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    motion = dl.Trajectory.load(path)
    assert len(motion) > 10
    assert np.allclose(np.diff(motion.times), 0.01)
    assert (motion.status == "solved").all()


def test_a_full_disk_is_told_and_what_was_there_stays(tmp_path):
    """A limit on the size of files stands for the disk."""
    path = tmp_path / "run.npz"
    dl.Simulator(dl.scenes.box_stack(1)).run(0.01, record=path, progress=False)
    before = path.read_bytes()
    script = f"""
import resource, signal
import delassus as dl
from delassus.errors import ArgumentError, WriteError
sim = dl.Simulator(dl.scenes.box_stack(3))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    sim.run(0.2, record={str(path)!r}, progress=False)
except WriteError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "trajectory of 201 frames" in said
    assert "is as it was before" in said
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(WriteError, match="was not written"):
        dl.Simulator(dl.scenes.box_stack(1)).run(0.01, record=tmp_path / "no" / "run.npz", progress=False)


PAGE = """
import delassus as dl
from delassus.simulator import recording
recording.Keeper.seconds = 0.05
dl.Simulator(dl.scenes.box_stack(3)).run({seconds}, every=10, record={record!r}, progress=False)
"""


def test_recording_a_page_leaves_numbers_of_that_name_alone(tmp_path):
    """The run is long enough for frames to be saved on the way."""
    mine = tmp_path / "fall.npz"
    mine.write_bytes(b"a motion of mine")
    subprocess.run([sys.executable, "-c", PAGE.format(seconds=20.0, record=str(tmp_path / "fall.html"))], check=True)
    assert mine.read_bytes() == b"a motion of mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fall.html", "fall.npz"]


def test_frames_of_a_page_that_was_killed_are_beside_it_under_a_name_of_their_own(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", PAGE.format(seconds=1e5, record=str(tmp_path / "fall.html"))])
    try:
        until = time.monotonic() + 60
        while not any(p.stat().st_size for p in tmp_path.glob(".fall.html.????????.npz")) and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    (kept,) = tmp_path.glob(".fall.html.????????.npz")
    assert len(dl.Trajectory.load(kept)) > 10


def test_a_run_that_fails_says_where_its_frames_are(tmp_path, monkeypatch):
    monkeypatch.setattr("delassus.simulator.recording.Keeper.seconds", -1.0)
    sim = dl.Simulator(dl.scenes.box_stack(1))

    def control(t, q, v):
        if t > 0.02:
            raise RuntimeError("mine")
        return np.zeros(0)

    with (
        pytest.raises(RuntimeError, match="mine"),
        pytest.warns(UserWarning, match=r"fall\.html' was not written; frames of the run until then are in"),
    ):
        sim.run(0.1, control=control, record=tmp_path / "fall.html", progress=False)
    (kept,) = tmp_path.iterdir()
    assert len(dl.Trajectory.load(kept)) >= 2


def test_an_ending_that_is_no_recording_is_told_before_the_run(tmp_path):
    sim = dl.Simulator(dl.scenes.box_stack(1))
    with pytest.raises(ArgumentError, match=r"record: expected a file that ends in \.html, \.viser, \.npz"):
        sim.run(0.1, record=tmp_path / "fall.avi", progress=False)
    with pytest.raises(ArgumentError, match=r"For a picture use the trajectory's plot"):
        sim.run(0.1, record=tmp_path / "fall.png", progress=False)
    assert sim.time == 0


@pytest.mark.parametrize(
    ("missing", "wanted"), [("viser", {"record": "fall.html"}), ("viser", {"view": True}), ("imageio_ffmpeg", {"record": "fall.mp4"})]
)
def test_a_missing_extra_is_told_before_the_run(tmp_path, monkeypatch, missing, wanted):
    monkeypatch.setitem(sys.modules, missing, None)  # importing it fails
    monkeypatch.chdir(tmp_path)
    sim = dl.Simulator(dl.scenes.box_stack(1))
    with pytest.raises(MissingExtraError, match="pip install"):
        sim.run(0.1, progress=False, **wanted)
    assert sim.time == 0
    assert list(tmp_path.iterdir()) == []


def test_two_that_write_one_file_at_once_do_not_meet(tmp_path):
    """Each writes under a name of its own first: the file is one of the two, whole, and nothing else is left."""
    motions = [dl.Simulator(dl.scenes.box_stack(n)).run(0.05, progress=False) for n in (1, 2)]
    threads = [threading.Thread(target=lambda m=m: [m.save(tmp_path / "fall.npz") for _ in range(20)]) for m in motions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [p.name for p in tmp_path.iterdir()] == ["fall.npz"]
    assert dl.Trajectory.load(tmp_path / "fall.npz").model.nbody in (2, 3)
