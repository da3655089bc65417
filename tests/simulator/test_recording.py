"""What a run writes: whole files, also of a run that ends before its time."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import delassus as dl
from delassus.errors import WriteError

ENDLESS = """
import delassus as dl
from delassus.simulator import simulator
simulator._Keeper.seconds = 0.05
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
from delassus.errors import WriteError
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
