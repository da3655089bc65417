"""Rays find shapes where closed forms have them, triangles cover the pixels they should, films last as long as the motion, and the figure of a simulation is one."""

import importlib

import mujoco
import numpy as np
import pytest
from PIL import Image

import delassus as dl
from delassus import bench, figures
from delassus.errors import MissingExtraError
from delassus.viewers import render, solids, video


def rays(n=400):
    """Origins around, directions to points near the origin."""
    rng = np.random.default_rng(0)
    o = rng.standard_normal((n, 3))
    o *= 3 / np.linalg.norm(o, axis=1, keepdims=True)
    d = 0.5 * rng.standard_normal((n, 3)) - o
    return o, d / np.linalg.norm(d, axis=1, keepdims=True)


INSIDE = {
    "sphere": ((0.4,), lambda x: np.linalg.norm(x, axis=-1) - 0.4),
    "ellipsoid": ((0.5, 0.3, 0.2), lambda x: np.linalg.norm(x / [0.5, 0.3, 0.2], axis=-1) - 1),
    "box": ((0.5, 0.3, 0.2), lambda x: np.max(np.abs(x) - [0.5, 0.3, 0.2], axis=-1)),
    "capsule": (
        (0.2, 0.4),
        lambda x: np.linalg.norm(x - np.clip(x[..., 2:], -0.4, 0.4) * [0, 0, 1], axis=-1) - 0.2,
    ),
    "cylinder": ((0.3, 0.4), lambda x: np.maximum(np.hypot(x[..., 0], x[..., 1]) - 0.3, np.abs(x[..., 2]) - 0.4)),
}


@pytest.mark.parametrize("kind", INSIDE)
def test_ray_meets_a_shape_where_marching_along_it_does(kind):
    size, outside = INSIDE[kind]
    o, d = rays()
    t = render._meet(kind, size, o, d)
    steps = np.linspace(0, 6, 6001)
    marched = outside(o[:, None] + steps[:, None] * d[:, None])
    hits = (marched < 0).any(axis=1)
    clear = np.abs(marched.min(axis=1)) > 1e-3  # grazing rays may go either way
    np.testing.assert_array_equal(np.isfinite(t)[clear], hits[clear])
    first = steps[np.argmax(marched < 0, axis=1)]
    both = clear & hits
    assert both.sum() > 50
    np.testing.assert_allclose(t[both], first[both], atol=2e-3)
    # on the surface, and the normal is its gradient
    x = o[both] + t[both, None] * d[both]
    np.testing.assert_allclose(outside(x), 0, atol=1e-9)
    n = render._outward(kind, size, x)
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    assert (outside(x + 1e-5 * n) > 0).all()
    assert (np.einsum("ij,ij->i", n, d[both]) < 0).all()


def test_ball_is_drawn_where_the_camera_sees_it():
    b = dl.ModelBuilder("ball")
    b.add_body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_joint("ball", "free")
    b.add_shape("ball", "sphere", (0.2,), rgba=(1.0, 0.0, 0.0, 1.0))
    model = b.build()
    q = model.neutral()
    q[:3] = 0.3, -0.2, 0.5
    camera = render.Camera((0.0, 0.0, 0.3), 3.0, width=160, height=120)
    image = render.picture(model, q, camera)
    assert image.shape == (120, 160, 3)
    red = np.argwhere((image[..., 0] > 0.3) & (image[..., 1] < 0.1))
    (column, row), (edge, _) = camera.pixels([q[:3], q[:3] + 0.2 * camera.axes[0]])
    np.testing.assert_allclose(red.mean(axis=0) + 0.5, [row, column], atol=0.7)
    np.testing.assert_allclose(np.ptp(red[:, 1]) + 1, 2 * (edge - column), atol=2)


def test_figure_of_a_simulation_is_written_whole(tmp_path):
    sim = dl.Simulator(dl.scenes.box_stack(2))
    motion = bench.run(sim, 0.02, every=5)
    path = tmp_path / "figure.png"
    figures.simulation_figure(path, motion, None, None)
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert path.stat().st_size > 20_000
    with pytest.raises(dl.errors.WriteError):
        figures.simulation_figure(tmp_path / "no" / "figure.png", motion, None, None)


def test_camera_sees_what_falls_towards_it_and_wastes_no_room():
    model = dl.scenes.box_stack(3)
    start = model.neutral()
    path = np.array([start, start])
    right, _, back = render.Camera((0.0, 0.0, 0.0), 1.0).axes
    path[1, :2] += 8 * (0.7 * back + 0.7 * right)[:2]
    studio = render.Studio(model, path)
    size = np.array([studio.camera.width, studio.camera.height])
    points = render.outline(model, studio.solids, path)
    at = studio.camera.pixels(points) / size
    assert at.min() > 0.03
    assert at.max() < 0.97
    # the nearest one that does: as near the border as the margin says, on both sides of one direction
    spare = np.minimum(at.min(axis=0), 1 - at.max(axis=0))
    assert spare.min() == pytest.approx((1 - 1 / 1.12) / 2, abs=0.01)


MESH = """<mujoco><asset><mesh name="block" vertex="-.2 -.3 -.1 .2 -.3 -.1 -.2 .3 -.1 .2 .3 -.1 -.2 -.3 .1 .2 -.3 .1 -.2 .3 .1 .2 .3 .1"/></asset>
<worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 {height}" euler="20 30 40"><freejoint/><geom type="{kind}" {shape} rgba=".8 .2 .1 1"/></body></worldbody></mujoco>"""


def test_mesh_is_drawn_as_the_box_that_it_is():
    """Two paths to one picture: rays on a box, triangles of a mesh of the same size, with its shadow."""
    pictures = []
    for kind, shape in (("box", 'size=".2 .3 .1"'), ("mesh", 'mesh="block"')):
        m = mujoco.MjModel.from_xml_string(MESH.format(height=0.5, kind=kind, shape=shape))
        model = dl.load(m)
        camera = render.Camera((0.0, 0.0, 0.4), 2.5, width=200, height=160)
        pictures.append(render.Studio(model, model.neutral(), solids=solids.of_mujoco(m, model), camera=camera).picture(model.neutral()))
    difference = np.abs(pictures[0] - pictures[1]).max(axis=-1)
    assert (pictures[0][..., 0] > pictures[0][..., 1] + 0.2).sum() > 1500
    assert (difference > 0.05).mean() < 0.01  # edges only


def test_triangles_cover_what_areas_say():
    rng = np.random.default_rng(0)
    corners = 300 * rng.random((40, 3, 2))
    rows, columns, which, depth = render._fill(corners, np.ones((40, 3)), (300, 300))
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    areas = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2
    lengths = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=-1).sum(axis=1)
    assert (np.abs(np.bincount(which, minlength=40) - areas) < lengths).all()
    assert np.allclose(depth, 1)
    assert rows.max() < 300
    assert columns.max() < 300


def test_arrows_of_a_picture_are_where_forces_act():
    sim = dl.Simulator(dl.scenes.box_stack(1))
    for _ in range(20):
        step = sim.step()
    studio = render.Studio(sim.model, sim.q, newton=0.5 / (9.81 * sim.model.mass), size=(240, 200))
    before, after = studio.picture(sim.q), studio.picture(sim.q, step.contacts)
    changed = np.argwhere(np.abs(before - after).max(axis=-1) > 0.1)[:, ::-1]
    tips = studio.camera.pixels(step.contacts.position + step.contacts.force * studio.newton)
    tails = studio.camera.pixels(step.contacts.position)
    assert len(changed) > 30
    # every pixel that changed is near one of the arrows
    ways = tips - tails
    share = np.clip(np.einsum("pki,ki->pk", changed[:, None] - tails, ways) / (ways**2).sum(axis=1), 0, 1)
    assert np.linalg.norm(changed[:, None] - tails - share[..., None] * ways, axis=-1).min(axis=1).max() < 8


@pytest.fixture(scope="module")
def fall():
    sim = dl.Simulator(dl.scenes.box_stack(2))
    q = sim.q.copy()
    q[[2, 9]] += 0.3
    sim.reset(q)
    return sim.run(0.3, every=20, progress=False)


@pytest.mark.parametrize("kind", [".gif", ".webp"])
@pytest.mark.parametrize("look", ["light", "dark"])
def test_film_lasts_as_long_as_the_motion(fall, tmp_path, kind, look):
    done = []
    path = dl.record(fall, tmp_path / f"fall{kind}", fps=10, size=(160, 120), look=look, progress=done.append)
    with Image.open(path) as film:
        frames, lasts = [], []
        for k in range(film.n_frames):
            film.seek(k)
            frames.append(np.asarray(film.convert("RGB"), dtype=int))
            lasts.append(film.info["duration"])
    assert film.size == (160, 120)
    assert len(frames) == len(done) == 4
    assert done[-1] == 1.0
    assert sum(lasts[:-1]) == pytest.approx(1000 * (fall.times[-1] - fall.times[0]), abs=10)
    assert (np.abs(frames[0] - frames[-1]).max(axis=-1) > 40).sum() > 200
    assert (frames[0][5, -5].mean() < 80) == (look == "dark")


def test_mp4_is_written_or_the_extra_is_named(fall, tmp_path, monkeypatch):
    def gone(name, *_):
        if name == "imageio_ffmpeg":
            raise ImportError(name)
        return plain(name)

    plain = importlib.import_module
    with monkeypatch.context() as patch:
        patch.setattr(video.importlib, "import_module", gone)
        with pytest.raises(MissingExtraError, match=r'pip install "delassus\[video\]"'):
            dl.record(fall, tmp_path / "fall.mp4")
    assert list(tmp_path.iterdir()) == []
    pytest.importorskip("imageio_ffmpeg", reason="the extra video is not installed")
    imageio = pytest.importorskip("imageio.v2")
    path = dl.record(fall, tmp_path / "fall.mp4", fps=20, size=(160, 120))
    with imageio.get_reader(path) as film:
        assert film.get_meta_data()["size"] == (160, 120)
        assert film.get_meta_data()["fps"] == 20
        assert sum(1 for _ in film) == len({0, *np.searchsorted(fall.times, np.arange(1, 7) / 20 + 1e-9, side="right") - 1})


def test_triangles_cover_the_pixels_whose_middles_are_in_them():
    """Also slivers, triangles partly or wholly outside, with level edges, and with corners in the middles of pixels."""
    rng = np.random.default_rng(4)
    shape = (30, 40)
    corners = rng.uniform(-10, 50, (200, 3, 2))
    corners[50:100, 2] = corners[50:100, 0] + rng.uniform(0.9, 1.1, (50, 1)) * (corners[50:100, 1] - corners[50:100, 0])
    corners[100:150] = np.round(corners[100:150]) + 0.5
    corners[150:170, 1, 1] = corners[150:170, 0, 1]
    corners[170:180] = corners[170:180, :1]
    depths = rng.uniform(1, 2, (200, 3))
    row, column, triangle, depth = render._fill(corners, depths, shape)
    found = np.zeros((200, *shape), dtype=bool)
    found[triangle, row, column] = True
    assert found.sum() == len(row)  # each once
    y, x = np.mgrid[: shape[0], : shape[1]] + 0.5
    for k, (a, b, c) in enumerate(corners):
        T = np.array([b - a, c - a]).T
        if abs(np.linalg.det(T)) < 1e-9:
            assert not found[k].any()
            continue
        v, u = np.moveaxis(np.linalg.solve(T, np.stack([x.ravel() - a[0], y.ravel() - a[1]])).reshape(2, *shape), 0, 0)
        margin = np.minimum(np.minimum(u, v), 1 - u - v)
        clear = np.abs(margin) > 1e-9  # what is on an edge may be either
        np.testing.assert_array_equal(found[k][clear], (margin > 0)[clear])
        here = triangle == k
        i, j = row[here], column[here]
        np.testing.assert_allclose(
            depth[here], depths[k, 0] + v[i, j] * (depths[k, 1] - depths[k, 0]) + u[i, j] * (depths[k, 2] - depths[k, 0]), atol=1e-6
        )
