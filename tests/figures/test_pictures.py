"""Rays find shapes where closed forms have them, and the figure of a simulation is one."""

import numpy as np
import pytest

import delassus as dl
from delassus import bench, figures
from delassus.model.records import Shape


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
    t = figures._meet(Shape("s", "world", kind, size), o, d)
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
    n = figures._outward(Shape("s", "world", kind, size), x)
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
    camera = figures.Camera((0.0, 0.0, 0.3), 3.0, width=160, height=120)
    image = figures.picture(model, q, camera)
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


def test_camera_sees_what_falls_towards_it():
    model = dl.scenes.box_stack(3)
    start = model.neutral()
    path = np.array([start, start])
    right, _, back = figures.Camera((0.0, 0.0, 0.0), 1.0).axes
    path[1, :2] += 8 * (0.7 * back + 0.7 * right)[:2]
    camera = figures.frame_of(model, path)
    size = np.array([camera.width, camera.height])
    for q in path:
        at = camera.pixels(dl.body_placements(model, q)[1:, :3, 3]) / size
        assert (at > 0.09).all()
        assert (at < 0.91).all()
