"""Trajectories: arrays that fit together, files that are whole, pictures that show them."""

import dataclasses
import subprocess
import sys
import zipfile

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, LoadError, NotFiniteError, WriteError
from delassus.simulator import Trajectory
from oracles.motions import dropped

ARRAYS = [field.name for field in dataclasses.fields(Trajectory) if field.name != "model"]


@pytest.fixture(scope="module")
def motion():
    model = dl.scenes.on_floor("go2")
    return dropped(model, dl.load("go2").keyframes["home"], seconds=0.4)


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ARRAYS)


def test_motion_touches_the_floor_later_than_it_starts(motion):
    counts = np.diff(motion.contact_start)
    assert counts[0] == 0
    assert counts[-1] >= 4
    assert len(motion) == len(motion.times) == 41


def test_contacts_of_a_frame_are_those_between_its_starts(motion):
    last = motion.contacts(-1)
    assert len(last) == motion.contact_start[-1] - motion.contact_start[-2]
    assert np.array_equal(last.force, motion.contact_force[motion.contact_start[-2] :])
    assert np.allclose(last.normal, (0, 0, 1))
    assert (last.force[:, 2] >= 0).all()
    assert (last.bodies[:, 1] == 0).all()
    assert len(motion.contacts(0)) == 0


@pytest.mark.parametrize("which", [slice(10, 40, 5), slice(None), slice(-3, None), slice(20, 20), slice(39, 41)])
def test_slice_has_the_frames_and_their_contacts(motion, which):
    part = motion[which]
    frames = range(len(motion))[which]
    assert len(part) == len(frames)
    for k, frame in enumerate(frames):
        assert part.times[k] == motion.times[frame]
        assert np.array_equal(part.q[k], motion.q[frame])
        assert np.array_equal(part.contacts(k).position, motion.contacts(frame).position)
        assert np.array_equal(part.contacts(k).bodies, motion.contacts(frame).bodies)
    assert part.contact_start[-1] == len(part.contact_position)


def test_slice_refuses_an_index_and_a_backward_step(motion):
    with pytest.raises(ArgumentTypeError, match="slice"):
        motion[3]
    with pytest.raises(ArgumentError, match="increasing"):
        motion[::-1]
    with pytest.raises(ArgumentError, match="frame"):
        motion.contacts(41)


def test_arrays_are_copies_and_read_only(motion):
    q = motion.q.copy()
    other = dataclasses.replace(motion, q=q)
    q[:] = 0
    assert np.array_equal(other.q, motion.q)
    with pytest.raises(ValueError, match="read-only"):
        other.q[0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        other.q = q


def test_saved_file_gives_the_same_numbers_and_an_equivalent_model(motion, tmp_path):
    path = motion.save(tmp_path / "fall")
    assert path == tmp_path / "fall.npz"
    back = Trajectory.load(path)
    assert same(motion, back)
    assert back.model.joint_names == motion.model.joint_names
    assert back.model.body_names == motion.model.body_names
    X, Y = (dl.body_placements(m, motion.q[-1]) for m in (motion.model, back.model))
    assert np.allclose(X, Y, atol=1e-12)
    assert [p.name for p in tmp_path.iterdir()] == ["fall.npz"]


def test_saved_file_replaces_the_one_before_only_when_whole(motion, tmp_path, monkeypatch):
    path = motion[:3].save(tmp_path / "fall.npz")

    def full(file, **arrays):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(WriteError, match=r"trajectory of 41 frames: .* is as it was before: No space left"):
        motion.save(path)
    assert len(Trajectory.load(path)) == 3
    with pytest.raises(WriteError, match="was not written"):
        motion.save(tmp_path / "other.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["fall.npz"]


def test_missing_folder_is_told(motion, tmp_path):
    with pytest.raises(WriteError, match=r"no_such.* was not written: No such file"):
        motion.save(tmp_path / "no_such" / "fall.npz")


def _bad_files(motion, folder):
    good = motion.save(folder / "good.npz")
    whole = good.read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.npz").write_bytes(b"")
    (folder / "text.npz").write_text("no archive")
    np.save(folder / "array.npy", np.zeros(3))
    np.savez(folder / "other.npz", x=np.zeros(3))
    with np.load(good) as file:
        parts = dict(file)
    np.savez(folder / "newer.npz", **parts | {"format": np.int64(2)})
    np.savez(folder / "short.npz", **parts | {"q": parts["q"][:-1]})
    np.savez(folder / "model.npz", **parts | {"mjcf": np.str_("<mujoco>")})
    np.savez(folder / "objects.npz", **parts | {"status": np.array([{}] * len(motion), dtype=object)})
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    (folder / "flipped.npz").write_bytes(flipped)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.npz", "does not exist"), ("cut.npz", "cannot be read"), ("empty.npz", "cannot be read"), ("text.npz", r"cannot be read as a trajectory: it is no \.npz file, or not one of plain arrays\.$"),
        ("array.npy", "one array"), ("other.npz", "lacks contact_bodies"), ("newer.npz", "has format 2; this version reads 1"),
        ("short.npz", r"damaged: q: expected shape \(41, 19\), got \(40, 19\)"), ("model.npz", "damaged: source: the text is incomplete"),
        ("objects.npz", "cannot be read"), ("flipped.npz", "cannot be read"),
    ],
)  # fmt: skip
def test_bad_file_says_what_is_wrong(motion, tmp_path, name, said):
    _bad_files(motion, tmp_path)
    with pytest.raises(LoadError, match=said):
        Trajectory.load(tmp_path / name)


def test_every_array_has_its_own_name_in_the_file(motion, tmp_path):
    with zipfile.ZipFile(motion.save(tmp_path / "fall.npz")) as file:
        assert {name.removesuffix(".npy") for name in file.namelist()} == {*ARRAYS, "format", "mjcf"}


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"model": "go2"}, ArgumentTypeError, "model"),
        ({"q": np.zeros((41, 3))}, ArgumentError, r"q: expected shape \(41, 19\)"),
        ({"times": np.zeros(41)}, ArgumentError, "increasing"),
        ({"residual": np.full(41, np.nan)}, NotFiniteError, "residual"),
        ({"iterations": np.zeros(41)}, ArgumentTypeError, "iterations: expected whole numbers"),
        ({"status": np.zeros(41)}, ArgumentTypeError, "status: expected strings"),
        ({"contact_start": np.zeros(42, int)}, ArgumentError, "contact_start"),
        ({"contact_friction": np.zeros(1)}, ArgumentError, "contact_friction"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(motion, change, error, said):
    with pytest.raises(error, match=said):
        dataclasses.replace(motion, **change)


def test_bodies_that_do_not_exist_are_refused(motion):
    with pytest.raises(ArgumentError, match="contact_bodies: expected indices from 0 to 13"):
        dataclasses.replace(motion, contact_bodies=motion.contact_bodies + 14)


def test_mujoco_gets_the_motion_in_its_coordinates(motion):
    m, qpos, qvel = motion.to_mujoco()
    assert (m.nq, m.nv) == (qpos.shape[1], qvel.shape[1])
    d = mujoco.MjData(m)
    d.qpos[:] = qpos[-1]
    mujoco.mj_kinematics(m, d)
    X = dl.body_placements(motion.model, motion.q[-1])
    assert np.allclose(d.xpos, X[:, :3, 3], atol=1e-12)
    qpos[:] = 0
    assert motion.q[0, 3] != 0


def test_plot_shows_the_curves_and_writes_a_picture(motion, tmp_path):
    figure = motion.plot(tmp_path / "fall.png")
    # every frame is drawn: where nothing penetrates, at the lower edge
    (line,) = figure.axes[2].get_lines()
    low, high = figure.axes[2].get_ylim()
    assert (line.get_ydata() >= low).all()
    assert np.all(line.get_ydata()[motion.penetration == 0] == low)
    assert line.get_ydata().max() < high
    curves = {line.get_label(): line.get_ydata() for ax in figure.axes for line in ax.lines}
    assert np.array_equal(curves["kinetic"], motion.kinetic_energy)
    assert np.array_equal(curves["sum"], motion.kinetic_energy + motion.potential_energy)
    assert np.array_equal(curves["contacts"], np.diff(motion.contact_start))
    assert (tmp_path / "fall.png").stat().st_size > 20_000
    assert (tmp_path / "fall.png").read_bytes().startswith(b"\x89PNG")
    status = motion.status.astype("U20")
    status[5] = "max-iterations"
    figure = dataclasses.replace(motion, status=status).plot()
    assert "1 not solved" in [text.get_text() for ax in figure.axes if ax.get_legend() for text in ax.get_legend().get_texts()]
    with pytest.raises(ArgumentError, match="picture"):
        motion.plot(tmp_path / "fall.xyz")


def test_empty_trajectory_can_be_sliced_saved_and_plotted(motion, tmp_path):
    none = motion[:0]
    assert len(none) == 0
    assert "no time" in repr(none)
    assert same(none, Trajectory.load(none.save(tmp_path / "none.npz")))
    none.plot()


def test_plots_are_in_the_backend_of_the_caller():
    """With pyplot in use a figure is one of pyplot's, which plt.show() shows; without it nothing of pyplot is loaded."""
    code = (
        "import sys, matplotlib, delassus as dl; tr = dl.Simulator('go2').run(0.004, progress=False); tr.plot(); assert 'matplotlib.pyplot' not in sys.modules\n"
        "matplotlib.use('svg'); import matplotlib.pyplot as plt; f = tr.plot(); assert plt.get_backend() == 'svg' and plt.get_fignums() == [f.number]"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
