"""Trajectories that somebody else wrote: odd archives are typed errors, and nothing in a file makes another one open, run or show as a page."""

import os
import struct
import threading
import zipfile

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, LoadError

CUBE = (
    b"solid" + b" " * 75 + struct.pack("<I", 4)
    + b"".join(struct.pack("<12fH", 0, 0, 0, *(x for corner in f for x in corner), 0) for f in (
        ((0, 0, 0), (0, 1, 0), (1, 0, 0)), ((0, 0, 0), (1, 0, 0), (0, 0, 1)), ((0, 0, 0), (0, 0, 1), (0, 1, 0)), ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ))
)  # fmt: skip


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The arrays of a whole file."""
    path = dl.Simulator(dl.scenes.box_stack(1)).run(0.01, progress=False).save(tmp_path_factory.mktemp("whole") / "fall.npz")
    with np.load(path) as file:
        return dict(file)


def scene(inside="", before=""):
    return f'<mujoco><option timestep=".001"/>{before}<worldbody><body name="b"><freejoint/><geom size=".1"/></body>{inside}</worldbody></mujoco>'


NAMING = {
    "a path": lambda f: f"{f}/model.xml",
    "a robot": lambda f: "go2",
    "an include": lambda f: scene(f'<include file="{f}/body.xml"/>'),
    "a mesh": lambda f: scene('<geom type="mesh" mesh="m"/>', f'<asset><mesh name="m" file="{f}/cube.stl"/></asset>'),
    "a folder of meshes": lambda f: scene(
        '<geom type="mesh" mesh="cube"/>', f'<compiler meshdir="{f}"/><asset><mesh file="cube.stl"/></asset>'
    ),
    "a texture": lambda f: scene(before=f'<asset><texture name="t" type="cube" fileright="{f}/right.png"/></asset>'),
    "a height field": lambda f: scene(
        '<geom type="hfield" hfield="h"/>', f'<asset><hfield name="h" file="{f}/h.png" size="1 1 1 1"/></asset>'
    ),
    "a model": lambda f: scene(before=f'<asset><model name="m" file="{f}/model.xml"/></asset>'),
    "a plugin": lambda f: scene(before='<extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>'),
    "a urdf": lambda f: (
        f'<robot name="r"><link name="a"><collision><geometry><mesh filename="{f}/cube.stl"/></geometry></collision></link></robot>'
    ),
    "copies without end": lambda f: scene('<replicate count="1000000000" offset="1 0 0"><geom size=".1"/></replicate>'),
}


@pytest.mark.parametrize("name", NAMING)
def test_a_model_inside_a_file_opens_no_other(parts, tmp_path, name):
    """What it names is there and would load."""
    (tmp_path / "cube.stl").write_bytes(CUBE)
    (tmp_path / "model.xml").write_text(scene())
    (tmp_path / "body.xml").write_text("<mujocoinclude><geom size='1'/></mujocoinclude>")
    np.savez(tmp_path / "odd.npz", **parts | {"mjcf": np.str_(NAMING[name](tmp_path))})
    with pytest.raises(LoadError, match="damaged"):
        dl.Trajectory.load(tmp_path / "odd.npz")


def test_a_name_inside_a_file_is_not_even_looked_at(parts, tmp_path):
    """A pipe tells whether anybody opened it."""
    pipe = tmp_path / "pipe.xml"
    os.mkfifo(pipe)
    opened = threading.Event()

    def wait():
        with open(pipe, "wb"):  # returns when somebody reads
            opened.set()

    threading.Thread(target=wait, daemon=True).start()
    for text in (f"{pipe}", scene(f'<include file="{pipe}"/>')):
        np.savez(tmp_path / "odd.npz", **parts | {"mjcf": np.str_(text)})
        with pytest.raises(LoadError):
            dl.Trajectory.load(tmp_path / "odd.npz")
    assert not opened.wait(0.2)
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))


ODD = {
    "format of three": {"format": np.array([1, 1, 1])}, "format of text": {"format": np.str_("1")}, "model of numbers": {"mjcf": np.arange(3.0)},
    "two models": {"mjcf": np.array(["<mujoco/>", "<mujoco/>"])}, "model of bytes": {"mjcf": np.bytes_(b"<mujoco/>")},
    "surrogate in the model": {"mjcf": np.str_("<mujoco model='\ud800'/>")}, "numbers of text": {"q": np.array(["x"])}, "complex numbers": {"v": np.array([1j])},
    "dates": {"times": np.array(["2026-01-01"], dtype="datetime64[D]")}, "no frames and contacts": {"contact_start": np.zeros(0, int)},
    "words that are a page": {"status": np.full(11, "<img src=x onerror=alert(1)>")}, "words that are code": {"status": np.full(11, "{alert(1)}")},
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_arrays_are_told(parts, tmp_path, name):
    np.savez(tmp_path / "odd.npz", **parts | ODD[name])
    with pytest.raises(LoadError, match=r"odd\.npz"):
        dl.Trajectory.load(tmp_path / "odd.npz")


def test_an_array_that_says_it_is_larger_than_its_file_is_not_made(parts, tmp_path):
    np.savez(tmp_path / "good.npz", **parts)
    with zipfile.ZipFile(tmp_path / "good.npz") as good, zipfile.ZipFile(tmp_path / "odd.npz", "w") as odd:
        for name in good.namelist():
            data = good.read(name)
            odd.writestr(
                name, data.replace(b"(11, 7)", b"(1" + b"0" * 12 + b", 7)").replace(b" " * 11 + b"\n", b"\n") if name == "q.npy" else data
            )
    with pytest.raises(LoadError, match=r"longer than its file|cannot be read"):
        dl.Trajectory.load(tmp_path / "odd.npz")


def test_files_with_bits_that_turned_are_read_or_told(parts, tmp_path):
    rng = np.random.default_rng(5)
    np.savez(tmp_path / "stored.npz", **parts)
    np.savez_compressed(tmp_path / "packed.npz", **parts)
    told = 0
    for k in range(400):
        data = bytearray((tmp_path / ("stored.npz", "packed.npz")[k % 2]).read_bytes())
        for at in rng.integers(len(data), size=1 + k % 4):
            data[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "odd.npz").write_bytes(data if k % 9 else data[: rng.integers(len(data))])
        try:
            dl.Trajectory.load(tmp_path / "odd.npz")
        except LoadError:
            told += 1
    assert told > 300


def test_a_locked_archive_is_told(parts, tmp_path):
    np.savez(tmp_path / "odd.npz", **parts)
    data = bytearray((tmp_path / "odd.npz").read_bytes())
    for sign, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(sign)
        while at >= 0:
            data[at + flags] |= 1  # encrypted
            at = data.find(sign, at + 4)
    (tmp_path / "odd.npz").write_bytes(data)
    with pytest.raises(LoadError, match="cannot be read"):
        dl.Trajectory.load(tmp_path / "odd.npz")


@pytest.mark.parametrize("path", ["a\ud800.npz", "a\0b.npz"])
def test_names_that_no_file_can_have_are_told(tmp_path, path):
    motion = dl.Simulator(dl.scenes.box_stack(1)).run(0.002, progress=False)
    with pytest.raises(ArgumentError, match="cannot be the name of a file"):
        motion.save(f"{tmp_path}/{path}")
    with pytest.raises(ArgumentError, match="cannot be the name of a file"):
        dl.Simulator(dl.scenes.box_stack(1)).run(0.002, record=f"{tmp_path}/{path}", progress=False)
