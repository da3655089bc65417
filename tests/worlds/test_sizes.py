"""Worlds with shapes of their own sizes: against closed forms, models compiled with these sizes, and simulators, bit for bit."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, NotFiniteError

SHAPES = {
    "sphere": ("0.1", "0.13"), "capsule": ("0.06 0.1", "0.08 0.05"), "ellipsoid": ("0.1 0.12 0.08", "0.05 0.1 0.13"), "cylinder": ("0.1 0.05", "0.07 0.11"),
    "box": ("0.1 0.08 0.06", "0.05 0.11 0.09"),
}  # fmt: skip


def scene(sizes):
    """Two bodies of two shapes each that fall onto the floor and each other; masses do not follow from sizes."""
    bodies = "".join(
        f'<body name="body{k}" pos="{0.05 * k} 0 {0.25 + 0.45 * k}"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="0.01 0.012 0.009"/>'
        f'<geom name="one{k}" type="{kind}" size="{size}" pos="0.05 0 0.02"/><geom name="two{k}" type="box" size="0.05 0.05 0.05" pos="-0.1 0.02 0" euler="20 10 0"/></body>'
        for k, (kind, size) in enumerate(sizes)
    )
    return f"""<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/><geom name="wall" type="box" size="0.1 1 0.4" pos="0.6 0 0.3"/>{bodies}</worldbody></mujoco>"""


@pytest.mark.parametrize("kind", SHAPES)
def test_a_world_is_a_simulator_of_a_model_with_its_sizes(kind):
    """Compiled by MuJoCo, which makes bounds and trees of boxes by itself."""
    before, after = SHAPES[kind]
    model = dl.load(scene([(kind, before), ("sphere", "0.1")]))
    other = mujoco.MjModel.from_xml_string(scene([(kind, after), ("sphere", "0.16")]))
    worlds = dl.Worlds(model, 3, threads=2)
    worlds.parameters["geom_size"][1] = other.geom_size
    worlds.reset(v=np.tile([1.5, 0, 0, 0, 2, 0], 2))
    sims = [dl.Simulator(model), dl.Simulator(other), dl.Simulator(model)]
    for sim in sims:
        sim.reset(v=worlds.v[0])
    for turn in range(15):
        worlds.step(10)
        if turn == 3:
            alone = worlds.simulator(1)
        for k, sim in enumerate(sims):
            for _ in range(10):
                step = sim.step()
            assert np.array_equal(sim.q, worlds.q[k])
            assert np.array_equal(sim.v, worlds.v[k])
            assert step.status == worlds.statuses[k]
        if turn > 3:
            for _ in range(10):
                alone.step()
            assert np.array_equal(alone.q, worlds.q[1])
    assert worlds.contact_counts.all()
    assert np.abs(worlds.q[1] - worlds.q[0]).max() > 0.01
    assert np.array_equal(worlds.q[2], worlds.q[0])
    assert [s.size for s in alone.model.shapes if s.name == "one1"] == [(0.16,)]


@pytest.mark.parametrize("kind", SHAPES)
def test_bounds_are_those_of_mujocos_compiler(kind):
    before, after = SHAPES[kind]
    text = scene([(kind, before), (kind, before)])
    worlds, other = dl.Worlds(text, 2), mujoco.MjModel.from_xml_string(scene([(kind, after), (kind, before)]))
    worlds.parameters["geom_size"][1] = other.geom_size
    m = worlds.simulator(1).mujoco_model
    assert np.array_equal(m.geom_size, other.geom_size)
    np.testing.assert_allclose(m.geom_rbound, other.geom_rbound, rtol=1e-15)
    assert np.array_equal(m.geom_aabb, other.geom_aabb)


def test_balls_roll_at_the_height_of_their_radius():
    text = '<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 0.1"><freejoint/><geom size="0.1" mass="1"/></body></worldbody></mujoco>'
    worlds = dl.Worlds(text, 5)
    radii = np.linspace(0.02, 0.3, 5)
    worlds.parameters["geom_size"][:, 1, 0] = radii
    worlds.q[:, 2] = radii + 0.05
    worlds.step(400)
    np.testing.assert_allclose(worlds.q[:, 2], radii, atol=2e-5)
    # and back: what a world was does not stay
    worlds.parameters["geom_size"][:] = worlds.parameters["geom_size"][0]
    worlds.reset()
    worlds.step(400)
    np.testing.assert_allclose(worlds.q[:, 2], 0.02, atol=2e-5)


def test_a_small_ball_that_is_fast_is_found_to_go_through_a_wall():
    """Half of its width is what a shape may move unseen: that of its world counts."""
    text = """<mujoco><option timestep="0.005" gravity="0 0 0"/><worldbody><geom type="box" size="0.02 1 1" pos="0.3 0 0"/>
    <body><freejoint/><geom size="0.2" mass="1"/></body></worldbody></mujoco>"""
    worlds = dl.Worlds(text, 2)
    worlds.parameters["geom_size"][1, 1, 0] = 0.01
    worlds.q[1, 0], worlds.v[:, 0] = 0.2, 36  # 0.18 m a step
    sim = worlds.simulator(1)
    worlds.step()
    assert [status == "tunnelling" for status in worlds.statuses] == [False, True]
    assert sim.step().status == "tunnelling"


def test_tendons_go_around_shapes_of_their_world():
    text = """<mujoco><option timestep="0.002"/><worldbody><site name="a" pos="-0.5 0 1"/><geom name="drum" type="cylinder" size="0.1 0.2" pos="0 0 1.2" euler="90 0 0" contype="0" conaffinity="0"/>
    <body pos="0.5 0 1"><joint type="slide" axis="0 0 1"/><geom size="0.05" mass="1"/><site name="b"/></body></worldbody>
    <tendon><spatial stiffness="50" springlength="1"><site site="a"/><geom geom="drum"/><site site="b"/></spatial></tendon><sensor><tendonpos tendon="tendon_0"/></sensor></mujoco>"""
    text = text.replace("<spatial ", '<spatial name="tendon_0" ')
    worlds = dl.Worlds(text, 2)
    worlds.parameters["geom_size"][1, 0, 0] = 0.3
    m = mujoco.MjModel.from_xml_string(text)
    m.geom_size[0, 0] = 0.3
    sim = dl.Simulator(m)
    worlds.step(50)
    for _ in range(50):
        step = sim.step()
    assert np.array_equal(worlds.q[1], sim.q)
    assert np.array_equal(worlds.sensors[1], step.sensors.data)
    assert worlds.sensors[1, 0] > worlds.sensors[0, 0] + 0.01


def test_size_scale_draws_sizes_of_shapes_that_have_some():
    worlds = dl.Worlds(scene([("capsule", "0.06 0.1"), ("box", "0.1 0.1 0.1")]), 6)
    own = worlds.parameters["geom_size"][0].copy()
    worlds.randomize(3, size_scale=(0.8, 1.2))
    sizes = worlds.parameters["geom_size"]
    assert np.array_equal(sizes[:, 0], np.tile(own[0], (6, 1)))  # the floor
    scale = sizes[:, 1:, 0] / own[1:, 0]
    assert ((scale > 0.8) & (scale < 1.2)).all()
    assert len(np.unique(scale)) == scale.size
    np.testing.assert_allclose(sizes[:, 1:], own[1:] * scale[..., None], rtol=1e-14)
    worlds.step(5)
    assert set(worlds.statuses) == {"solved"}


def test_rollouts_take_sizes():
    text = '<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 0.3"><freejoint/><geom size="0.1" mass="1"/></body></worldbody></mujoco>'
    q = np.tile([0, 0, 0.3, 1, 0, 0, 0], (2, 1))
    sizes = np.array([[[5, 5, 1], [0.1, 0, 0]], [[5, 5, 1], [0.2, 0, 0]]])
    motions = dl.rollout(text, q, steps=300, parameters={"geom_size": sizes})
    np.testing.assert_allclose(motions.q[:, -1, 2], [0.1, 0.2], atol=2e-5)


MESH = """<mujoco><asset><mesh name="m" vertex="0 0 0 0.1 0 0 0 0.1 0 0 0 0.1"/></asset><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body pos="0 0 1"><freejoint/><geom name="hull" type="mesh" mesh="m"/><geom name="ball" size="0.1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("place", "value", "error", "message"),
    [
        ((1, 0, 0), 1.0, ArgumentError, r"geom_size.*geom 'floor', a plane, .* got 1\. in world 1"),
        ((2, 1, 1), 1.0, ArgumentError, r"geom_size.*geom 'hull', a mesh, .* in world 2"),
        ((0, 2, 1), 1.0, ArgumentError, r"geom_size.*geom 'ball', a sphere, has no such size"),
        ((1, 2, 0), 0.0, ArgumentError, r"geom_size.*positive numbers, got 0\. in world 1"),
        ((1, 2, 0), -0.1, ArgumentError, r"geom_size.*positive numbers"),
        ((1, 2, 0), np.nan, NotFiniteError, r"geom_size.*finite numbers"),
    ],
)
def test_sizes_that_cannot_be_are_refused(place, value, error, message):
    worlds = dl.Worlds(MESH, 3)
    before = worlds.q.copy()
    worlds.parameters["geom_size"][place] = value
    with pytest.raises(error, match=message):
        worlds.step()
    assert np.array_equal(worlds.q, before)


def test_sizes_in_a_fluid_are_refused():
    worlds = dl.Worlds(MESH.replace("<asset>", '<option density="1000"/><asset>'), 2)
    worlds.parameters["geom_size"][1, 2, 0] = 0.2
    with pytest.raises(ArgumentError, match="fluid"):
        worlds.step()
