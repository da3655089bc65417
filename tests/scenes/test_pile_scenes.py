"""Piles are what their docstrings say: nothing touches where it should not, seeds repeat, and MuJoCo reads them."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError


def touching(model):
    """Pairs of bodies that MuJoCo finds in contact at the start, those of one robot left out."""
    m = mujoco.MjModel.from_xml_string(model.to_mjcf())
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    pairs = [[m.body(m.geom_bodyid[g]) for g in c.geom] for c in d.contact]
    return [(a.name, b.name) for a, b in pairs if a.rootid[0] != b.rootid[0]]


def boxes(model):
    shapes = [s for s in model.shapes if s.body != "world"]
    return np.array([s.size for s in shapes]), np.array([s.friction[0] for s in shapes]), np.array([b.mass for b in model.bodies])


@pytest.mark.parametrize(("n", "layers"), [(1, None), (7, 1), (100, None), (200, 3), (60, 30)])
def test_boxes_of_a_bin_touch_nothing_and_are_all_different(n, layers):
    model = dl.scenes.box_bin(n, layers, seed=3, friction=(0.2, 0.7))
    assert (model.nv, len(model.bodies)) == (6 * n, n)
    assert touching(model) == []
    sizes, friction, mass = boxes(model)
    assert len(np.unique(sizes)) == 3 * n
    assert ((sizes >= 0.03) & (sizes <= 0.05)).all()
    assert ((friction >= 0.2) & (friction <= 0.7)).all()
    density = mass / (8 * sizes.prod(axis=1))
    assert ((density >= 200) & (density <= 1000)).all()
    # inside of walls that are as high as the boxes stand
    walls = [s for s in model.shapes if s.name.startswith("wall")]
    inside = min(abs(s.position[0]) - s.size[0] for s in walls if s.position[0])
    q = model.neutral().reshape(-1, 7)
    assert np.abs(q[:, :2]).max() + sizes.min() < inside
    assert q[:, 2].max() < 2 * walls[0].size[2]


@pytest.mark.parametrize(("n", "layers", "robots"), [(20, 2, 3), (400, 3, 1), (200, None, 2)])
def test_robots_stand_among_the_boxes_of_a_bin_and_touch_nothing(n, layers, robots):
    one = dl.load("go2")
    model = dl.scenes.box_bin(n, layers, robots=robots, seed=3)
    assert (model.nv, len(model.bodies)) == (6 * n + robots * one.nv, n + robots * len(one.bodies))
    assert touching(model) == []
    assert model != dl.scenes.box_bin(n, layers, robots=robots, seed=4)
    walls = [s for s in model.shapes if s.name.startswith("wall")]
    inside = min(abs(s.position[0]) - s.size[0] for s in walls if s.position[0])
    # boxes are above robots and beside them, all between the walls
    places = dl.body_placements(model, model.neutral())[1:, :3, 3]
    box = np.array([name.startswith("box") for name in model.body_names[1:]])
    assert np.abs(places[:, :2]).max() < inside
    assert places[box, 2].max() > places[~box, 2].max()
    if n == 400:
        assert places[box, 2].min() < places[~box, 2].max()


def test_few_layers_make_a_wide_bin_and_many_a_deep_one():
    spans = {layers: np.ptp(dl.scenes.box_bin(240, layers).neutral().reshape(-1, 7)[:, :3], axis=0) for layers in (2, 15, 60)}
    assert spans[2][0] > 5 * spans[2][2]
    assert spans[60][2] > 5 * spans[60][0]
    assert spans[2][0] > spans[15][0] > spans[60][0]


def test_a_box_rubs_with_its_own_friction_against_floor_and_walls():
    model = dl.scenes.box_bin(12, seed=1, friction=(0.3, 0.8))
    sim = dl.Simulator(model)
    _, friction, _ = boxes(model)
    for _ in range(150):
        step = sim.step()
    ground = step.contacts.bodies[:, 1] == 0
    assert ground.any()
    assert np.array_equal(step.contacts.friction[ground], friction[step.contacts.bodies[ground, 0] - 1])


@pytest.mark.parametrize("make", [dl.scenes.box_bin, lambda n, seed: dl.scenes.robot_heap(1, n, seed=seed)])
def test_the_same_seed_makes_the_same_pile_and_another_another(make):
    assert make(9, seed=4) == make(9, seed=4)
    assert make(9, seed=4) != make(9, seed=5)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 1), (8, 6), (5, 3)])
def test_a_wall_is_in_running_bond_with_straight_ends_and_a_ball_in_front(rows, columns):
    model = dl.scenes.brick_wall(rows, columns)
    assert model.nv == 6 * (rows * columns + rows // 2 + 1)
    assert model.body_names[-1] == "ball"
    q = model.neutral().reshape(-1, 7)[:-1]
    half = np.array([s.size for s in model.shapes if s.kind == "box"])
    ends = []
    for row in range(rows):
        k = np.flatnonzero(np.isclose(q[:, 2], 0.1 * (row + 0.5)))
        left, right = q[k, 1] - half[k, 1], q[k, 1] + half[k, 1]
        order = np.argsort(left)
        assert np.allclose(left[order][1:] - right[order][:-1], 0.004, atol=1e-12)
        ends.append((left.min(), right.max()))
    assert np.ptp(ends, axis=0).max() < 1e-12
    # a brick rests on those below it, and none touches its neighbours in a row; the ball touches nothing
    rows_of = [{name.split("_")[0] for name in pair} for pair in touching(model)]
    assert all(len(pair) == 2 for pair in rows_of)
    assert not any("ball" in pair for pair in rows_of)


def test_a_wall_stands_and_the_ball_knocks_it_down():
    model = dl.scenes.brick_wall(4, 3)
    for speed, moved in ((0.0, False), (8.0, True)):
        sim = dl.Simulator(model)
        v = sim.v.copy()
        v[-6] = speed
        sim.reset(v=v)
        start = sim.q.copy().reshape(-1, 7)[:-1, :3]
        sim.run(0.3, progress=False)
        assert (np.abs(sim.q.reshape(-1, 7)[:-1, :3] - start).max() > 0.05) == moved


@pytest.mark.parametrize(("robots", "n", "robot"), [(3, 0, "g1"), (2, 30, "g1"), (4, 0, "go2"), (0, 5, "g1")])
def test_robots_of_a_heap_touch_neither_each_other_nor_boxes(robots, n, robot):
    model = dl.scenes.robot_heap(robots, n, robot=robot, seed=1)
    assert model.nv == robots * dl.load(robot).nv + 6 * n
    assert touching(model) == []
    roots = [b.quaternion for b in model.bodies if b.parent == "world" and b.name.startswith("robot")]
    assert len(set(roots)) == robots


def test_a_heap_falls():
    sim = dl.Simulator(dl.scenes.robot_heap(1, 6, robot="go2", seed=2))
    sim.run(0.6, progress=False)
    assert len(sim.step().contacts) > 6
    assert np.isfinite(sim.q).all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: dl.scenes.box_bin(0), ArgumentError, "n: expected"),
        (lambda: dl.scenes.box_bin(5, 0), ArgumentError, "layers: expected"),
        (lambda: dl.scenes.box_bin(5, robots=-1), ArgumentError, "robots: expected"),
        (lambda: dl.scenes.box_bin(5, friction=(0.8, 0.3)), ArgumentError, "friction: expected .minimum, maximum."),
        (lambda: dl.scenes.box_bin(5, friction=0.3), ArgumentError, "friction: expected shape"),
        (lambda: dl.scenes.box_bin(5, seed=-1), ArgumentError, "seed: expected"),
        (lambda: dl.scenes.box_bin(2.5), ArgumentTypeError, "n: expected"),
        (lambda: dl.scenes.brick_wall(0), ArgumentError, "rows: expected"),
        (lambda: dl.scenes.robot_heap(1, -1), ArgumentError, "boxes: expected"),
    ],
)
def test_bad_arguments_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_ten_thousand_boxes_are_made():
    model = dl.scenes.box_bin(10_000, layers=3)
    assert (model.nbody, model.nv) == (10_001, 60_000)


def test_mujoco_takes_no_more_memory_for_thousands_than_it_is_told():
    text = dl.scenes.box_bin(2001, layers=3).to_mjcf()
    assert '<size memory="2G"/>' in text
    assert "<size" not in dl.scenes.box_bin(100).to_mjcf()
