"""Shapes that go through each other within a step are told, and nothing else is."""

from collections import Counter

import mujoco
import numpy as np
import pytest

import delassus as dl

WALL = '<geom name="wall" type="box" size=".002 .5 .5"/>'
BALL = 'type="sphere" size=".02" mass=".1"'


def world(bodies, more=""):
    return f'<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody>{bodies}</worldbody>{more}</mujoco>'


def flying(shape, x=-0.5, y=0.0):
    return f'<body pos="{x} {y} 0"><freejoint/><geom {shape}/></body>'


def shot(text, speed, seconds, spin=0.0):
    sim = dl.Simulator(text)
    sim.reset(v=[speed, 0, 0, 0, 0, spin])
    steps = [sim.step() for _ in range(round(seconds / sim.timestep))]
    return steps, Counter(s.status for s in steps)


@pytest.mark.parametrize(
    "shape", [BALL, 'type="box" size=".01 .05 .05" mass=".1"', 'type="capsule" size=".01 .05" mass=".1"'], ids=["ball", "plate", "capsule"]
)
@pytest.mark.parametrize("speed", np.random.default_rng(0).uniform(1, 400, 12).round(2))
def test_a_shape_is_stopped_by_a_thin_wall_or_said_to_have_tunnelled(shape, speed):
    steps, told = shot(world(WALL + flying(shape)), speed, 1.0 / speed + 0.003)
    passed = any(s.q[0] > 0.01 for s in steps)
    assert passed == (told["tunnelling"] > 0)
    assert told["tunnelling"] <= 1
    assert sum(s.tunnelled for s in steps) == told["tunnelling"]
    assert told["solved"] + told["tunnelling"] == len(steps)


def test_some_speeds_tunnel_and_some_do_not():
    passed = [shot(world(WALL + flying(BALL)), speed, 0.6 / speed + 0.003)[0][-1].q[0] > 0 for speed in (5, 15, 25, 200)]
    assert passed == [False, False, True, True]


def test_a_fast_flight_past_things_is_no_tunnelling():
    """Beside a wall, along a floor, and far from everything."""
    for text in (
        world(WALL + flying(BALL, y=0.6)),
        world('<geom type="plane" size="9 9 1" pos="0 0 -.03"/>' + flying(BALL)),
        world(WALL + flying(BALL, x=5)),
    ):
        _, told = shot(text, 200.0, 0.02)
        assert set(told) == {"solved"}


def test_a_spinning_rod_that_passes_a_post_is_told():
    post = '<geom type="box" size=".001 .001 .2" pos=".4 0 0"/>'
    text = world(post + '<body><joint axis="0 0 1"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".004" mass=".1"/></body>')
    for start in (-1.0, -1.03, -1.06):
        sim = dl.Simulator(text)
        sim.reset([start], [100.0])  # 40 mm of the rod's way a step at the post
        steps = [sim.step() for _ in range(20)]
        assert steps[-1].q[0] > 0.5
        assert sum(s.tunnelled for s in steps) == 1
        # slowly it is stopped
        sim.reset([-0.05], [2.0])
        slow = [sim.step() for _ in range(100)]
        assert slow[-1].q[0] < 0
        assert all(s.status == "solved" for s in slow)


def test_two_shots_that_pass_each_other_are_told_and_those_that_miss_are_not():
    for offset, tunnelled in ((0.0, 1), (0.03, 0)):
        sim = dl.Simulator(
            world(flying('type="sphere" size=".01" mass=".1"') + flying('type="sphere" size=".01" mass=".1"', 0.507, offset))
        )
        sim.reset(v=[40, 0, 0, 0, 0, 0, -40, 0, 0, 0, 0, 0])
        steps = [sim.step() for _ in range(20)]
        assert sum(s.tunnelled for s in steps) == tunnelled


def test_shapes_that_are_not_to_touch_do_not_tunnel():
    exclude = '<contact><exclude body1="a" body2="b"/></contact>'
    bodies = '<body name="a" pos="-.5 0 0"><freejoint/><geom size=".01"/></body><body name="b" pos=".5 0 0"><freejoint/><geom size=".01"/></body>'
    sim = dl.Simulator(world(bodies, exclude))
    sim.reset(v=[47, 0, 0, 0, 0, 0, -47, 0, 0, 0, 0, 0])
    assert all(sim.step().status == "solved" for _ in range(20))


def test_rollouts_count_steps_that_tunnel():
    sim = dl.Simulator(world(WALL + flying(BALL)))
    starts = np.tile(sim.q, (2, 1))
    speeds = np.zeros((2, 6))
    speeds[:, 0] = 5.0, 200.0
    assert dl.rollout(sim, starts, speeds, steps=10).unsolved.tolist() == [0, 1]


def test_a_step_whose_way_mujoco_cannot_look_at_leaves_the_state_as_it_was():
    """MuJoCo asks a filter about two moving bodies only where they are near each other: here on the way through, and neither before nor after. The filter fails."""
    moving_wall = '<body><freejoint/><geom type="box" size=".002 .5 .5" mass="1e3"/></body>'
    sim = dl.Simulator(world(moving_wall + flying(BALL, x=-0.1)))
    sim.reset(v=[0.0] * 6 + [200.0, 0, 0, 0, 0, 0])
    before = sim.save()

    def refuse(*_):
        raise ValueError("no")

    mujoco.set_mjcb_contactfilter(refuse)
    try:
        with pytest.raises(dl.errors.MujocoError):
            sim.step()
    finally:
        mujoco.set_mjcb_contactfilter(None)
    assert np.array_equal(sim.save(), before)
    assert sim.step().status == "tunnelling"
    assert sim.time == sim.timestep
