"""Piles that nobody should build: every step ends in a status, within its iterations, and nothing becomes infinite."""

from typing import get_args

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import CapacityError
from delassus.types import StepStatus

STATUSES = get_args(StepStatus)


def world(bodies, more=""):
    return f'<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="20 20 1"/>{bodies}</worldbody>{more}</mujoco>'


def box(x, y, z, half=0.1, attributes=""):
    return f'<body pos="{x} {y} {z}"><freejoint/><geom type="box" size="{half} {half} {half}" {attributes}/></body>'


def steps(sim, n):
    """Step on, check every step, and return what they were called."""
    ends = []
    for k in range(n):
        step = sim.step()
        assert step.status in STATUSES, k
        assert step.iterations <= sim.max_iterations, k
        for numbers in (step.q, step.v, step.contacts.force, step.residual):
            assert np.isfinite(numbers).all(), k
        ends.append(step.status)
    return ends


@pytest.mark.parametrize("friction", [0.0, 1e6])
def test_friction_of_nothing_and_of_a_million(friction):
    sim = dl.Simulator(dl.scenes.box_bin(16, layers=4, seed=2, friction=(friction, friction)))
    steps(sim, 300)
    # inside of the bin still, and no faster than a fall from its top
    assert np.abs(sim.q.reshape(-1, 7)[:, :3]).max() < 1.0
    assert np.abs(sim.v.reshape(-1, 6)[:, :3]).max() < 5.0


def test_boxes_without_friction_are_solved():
    sim = dl.Simulator(dl.scenes.box_bin(16, layers=4, seed=2, friction=(0.0, 0.0)))
    assert set(steps(sim, 300)) == {"solved"}


@pytest.mark.parametrize(("lower", "upper"), [(1e6, 1e-6), (1e-6, 1e6), (1.0, 1e6)])
def test_masses_up_to_twelve_orders_apart_rest_on_each_other(lower, upper):
    sim = dl.Simulator(world(box(0, 0, 0.1, attributes=f'mass="{lower}"') + box(0, 0, 0.3, attributes=f'mass="{upper}"')))
    steps(sim, 500)
    if lower < 1e-9 * upper:
        return  # forces that bear the heavy one move the light one by 1e10 m/s, of which 1e-6 is rounding
    # neither sinks into the other
    assert np.abs(sim.q.reshape(-1, 7)[:, 2] - [0.1, 0.3]).max() < 1e-4
    contacts = sim.step().contacts
    floor = contacts.force[contacts.bodies[:, 1] == 0, 2].sum()
    # a velocity of the tolerance, 1e-6 m/s, taken from all the mass in a step is 1e-4 of the weight
    assert floor == pytest.approx((lower + upper) * 9.81, rel=1e-3)


def test_heavy_and_light_boxes_in_turn():
    masses = [1e6, 1e-6, 1e3, 1e-3, 1.0, 1e6]
    text = world("".join(box(0, 0, 0.1 + 0.2 * k, attributes=f'mass="{m}"') for k, m in enumerate(masses)))
    steps(dl.Simulator(text), 300)


def squeezed(share):
    """24 boxes of a bin, all their places multiplied by a share."""
    sim = dl.Simulator(dl.scenes.box_bin(24, seed=5))
    q = sim.q.copy().reshape(-1, 7)
    q[:, :3] *= share
    q[:, 2] += 0.1
    sim.reset(q.ravel())
    return sim


@pytest.mark.parametrize("share", [0.8, 0.5])
def test_boxes_that_start_inside_each_other_come_apart(share):
    sim = squeezed(share)
    assert sim.step().penetration > 5e-3
    steps(sim, 500)
    # the deepest were a few centimetres inside, and come out at 1 m/s
    assert sim.step().penetration < 1e-3
    assert np.abs(sim.v.reshape(-1, 6)[:, :3]).max() < 5.0


def test_boxes_that_start_all_inside_each_other_end_every_step():
    sim = squeezed(0.1)
    steps(sim, 30)
    assert np.abs(sim.v.reshape(-1, 6)[:, :3]).max() < 5.0


@pytest.mark.parametrize("shape", ['type="sphere" size=".1"', 'type="box" size=".1 .08 .06"'])
def test_bodies_at_one_point(shape):
    n = 100 if "sphere" in shape else 40
    body = f'<body pos="0 0 .3"><freejoint/><geom {shape}/></body>'
    steps(dl.Simulator(world(n * body)), 2)


@pytest.mark.exhaustive
def test_a_thousand_bodies_near_one_point():
    """So many touch that the step is refused, or ends: never anything else."""
    text = world(1000 * '<body pos="0 0 .3"><freejoint/><geom size=".1"/></body>')
    sim = dl.Simulator(text)
    q = sim.q.copy().reshape(-1, 7)
    for spread in (0.0, 0.5, 1.0):
        q[:, :3] = [0, 0, 2.0] + spread * np.random.default_rng(0).uniform(-1, 1, (1000, 3))
        sim.reset(q.ravel())
        try:
            steps(sim, 1)
        except CapacityError:
            assert sim.time == 0


@pytest.mark.parametrize("apart", [0.01, 1.0])
def test_loops_that_contradict_each_other_under_a_pile(apart):
    """A box on the floor is held at two points of the ground at once, with two boxes on top: the status says that it cannot be."""
    boxes = "".join(box(0, 0, 0.1 + 0.2 * k) for k in range(3)).replace("<body ", '<body name="held" ', 1)
    held = '<connect body1="held" anchor="0 0 0"/>'
    m = mujoco.MjModel.from_xml_string(world(boxes, f"<equality>{held}{held}</equality>"))
    m.eq_data[1, 3] += apart  # where the second is held
    assert "solved" not in steps(dl.Simulator(m), 200)


def test_boxes_wedged_between_walls_that_are_too_near():
    """Three boxes in a shaft that is a centimetre too narrow: pushed from both sides for ever."""
    walls = "".join(f'<geom type="box" size=".1 1 1" pos="{x} 0 1"/>' for x in (-0.195, 0.195))
    sim = dl.Simulator(world(walls + "".join(box(0, 0, 0.1 + 0.2 * k) for k in range(3))))
    ends = steps(sim, 300)
    assert np.abs(sim.v).max() < 5.0
    assert ends.count("solved") < len(ends) or sim.step().penetration > 1e-3
