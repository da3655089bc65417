"""Loops that start far open, and loops that limits or contacts keep open.

Oracles: closed forms of the motion and of the remaining error, SciPy's bounded least squares, MuJoCo's kinematics.
"""

import mujoco
import numpy as np
import pytest
from scipy.optimize import least_squares

import delassus as dl

DT = 0.001

FREE = """<mujoco><option timestep=".001" gravity="0 0 {gravity}"/><worldbody><body name="goal" mocap="true" pos="{x} 0 1"/>
<body name="box" pos="0 0 1"><freejoint/><geom type="box" size=".1 .05 .02" mass="2"/></body></worldbody>
<equality><weld body1="box" body2="goal" relpose="0 0 0 1 0 0 0"/></equality></mujoco>"""


def steps_until_closed(sim, most):
    steps = []
    for _ in range(most):
        steps.append(sim.step())
        if steps[-1].status == "solved":
            return steps
    raise AssertionError(f"still {steps[-1].status} after {most} steps")


@pytest.mark.parametrize("gravity", [0, -9.81])
def test_a_weld_that_is_half_a_metre_open_closes_at_a_metre_a_second(gravity):
    sim = dl.Simulator(FREE.format(x=0.5, gravity=gravity))
    steps = steps_until_closed(sim, 520)
    ways = 0.5 - np.array([s.loop_error_after for s in steps])
    k = np.arange(1, len(steps) + 1)
    # softness of a thousandth keeps as much back of every step
    agree = np.abs(ways[:-1] - DT * k[:-1] / 1.001)
    assert agree.max() < 1e-9
    assert {s.status for s in steps[:-1]} == {"open_loops"}
    assert 500 <= len(steps) <= 503
    # positions alone move: there is no velocity to get rid of afterwards
    assert max(np.abs(s.v).max() for s in steps) < 1e-9
    for _ in range(50):
        step = sim.step()
        assert step.status == "solved"
    assert step.loop_error_after < 1e-9
    assert np.abs(step.loop_forces[next(iter(step.loop_forces))]).max() == pytest.approx(2 * abs(gravity), abs=1e-9)


def test_a_weld_that_is_turned_closes_at_three_radians_a_second():
    sim = dl.Simulator(FREE.format(x=0, gravity=0))
    sim.set_mocap("goal", quaternion=[np.cos(1), 0, np.sin(1), 0], at_once=True)
    steps = steps_until_closed(sim, 700)
    assert steps[0].loop_error == pytest.approx(2, abs=1e-12)
    # softness is a thousandth of the largest inverse inertia, that about x
    about_x, about_y = 0.05**2 + 0.02**2, 0.1**2 + 0.02**2
    assert steps[99].loop_error_after == pytest.approx(2 - 3 * DT * 100 / (1 + 1e-3 * about_y / about_x), abs=1e-4)
    assert 666 <= len(steps) <= 670
    assert max(np.abs(s.v).max() for s in steps) < 1e-9


def test_a_joint_equality_that_is_far_open_closes_at_a_radian_a_second():
    text = """<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody><body><joint name="a" axis="0 1 0"/><geom size=".1" pos=".3 0 0" mass="1"/></body>
    <body pos="0 1 0"><joint name="b" axis="0 1 0"/><geom size=".1" pos=".3 0 0" mass="1"/></body></worldbody><equality><joint joint1="a" joint2="b" polycoef="0 2 0 0 0"/></equality></mujoco>"""
    sim = dl.Simulator(text)
    sim.reset([0.3, 0])
    first = sim.step()
    assert first.status == "open_loops"
    assert first.loop_error_after == pytest.approx(0.3 - DT / 1.001, abs=1e-9)
    # both move, by what the row does to them: one by −1 share, the other by 2
    assert first.q[1] / (0.3 - first.q[0]) == pytest.approx(2, rel=1e-9)
    steps = steps_until_closed(sim, 310)
    assert np.abs(steps[-1].v).max() < 1e-9


ARM = """<mujoco><option timestep=".002" gravity="0 0 {gravity}"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
<body name="goal" mocap="true" pos="{x} 0 {z}"/><body name="upper"><joint name="shoulder" axis="0 1 0" limited="true" range="-60 20"/><geom type="capsule" fromto="0 0 0 .6 0 0" size=".03"/>
<body name="lower" pos=".6 0 0"><joint name="elbow" axis="0 1 0" limited="true" range="-100 -10"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".03"/><site name="tip" pos=".5 0 0"/></body></body>
<site name="base"/></worldbody><equality><connect body1="lower" body2="goal" anchor=".5 0 0"/></equality></mujoco>"""


def tip(q):
    """Where the arm's tip is, by hand: hinges about y turn x towards −z."""
    a, b = q[0], q[0] + q[1]
    return np.array([0.6 * np.cos(a) + 0.5 * np.cos(b), -0.6 * np.sin(a) - 0.5 * np.sin(b)])


def arm_to(x, z, gravity=-9.81):
    """The arm with its elbow bent, tied to a mocap body at (x, z); the anchor is the body's own origin."""
    model = mujoco.MjModel.from_xml_string(ARM.format(x=x, z=z, gravity=gravity))
    model.eq_data[0, 3:6] = 0  # of the connect, the anchor in the mocap body
    sim = dl.Simulator(model)
    sim.reset(np.radians([-10, -50]))
    return sim


@pytest.mark.parametrize("goal", [(0.7, 0.4), (0.9, -0.55), (-0.5, 0.6), (1.4, 0.2)])
def test_an_open_loop_comes_as_near_as_limits_allow(goal):
    sim = arm_to(*goal)
    low, high = np.radians([-60, -100]), np.radians([20, -10])
    assert np.allclose(tip(sim.q) - goal, -(np.array(goal) - tip(sim.q)))
    best = least_squares(lambda q: tip(q) - goal, sim.q, bounds=(low, high), xtol=1e-15, ftol=1e-15, gtol=1e-15)
    before, energy = np.inf, []
    for _ in range(1000):
        step = sim.step()
        apart = np.linalg.norm(tip(step.q) - goal)
        assert step.status in ("open_loops", "solved")
        assert step.limit_error <= 2e-5 + 1e-9
        assert apart <= before + 1e-6
        before = apart
        energy.append(np.abs(step.v).max())
    least = np.sqrt(2 * best.cost)
    assert apart == pytest.approx(least, abs=1e-4)
    if least > 1e-3:
        assert step.status == "open_loops"
        assert step.q == pytest.approx(best.x, abs=2e-3)
    else:
        assert step.status == "solved"
    assert max(energy[-100:]) < 0.05  # at rest but for a step's fall at a dead centre


def test_a_closed_weld_follows_its_mocap_body_and_stays_open_only_while_a_limit_is_in_its_way():
    """A slider with a range of a metre, led to and fro over 1.3 m."""
    sim = dl.Simulator(
        '<mujoco><option timestep=".001"/><worldbody><body name="goal" mocap="true" pos="0 0 0"/><body name="slider"><joint name="x" type="slide" axis="1 0 0" range="-.5 .5" limited="true" damping="1"/>'
        '<geom size=".05" mass="3"/></body></worldbody><equality><weld body1="slider" body2="goal"/></equality></mujoco>'
    )
    for k in range(1, 2001):
        goal = 0.8 * np.sin(np.pi * k * DT)
        sim.set_mocap("goal", [goal, 0, 0])
        step = sim.step()
        at = min(max(goal, -0.5), 0.5)
        assert step.q[0] == pytest.approx(at, abs=3e-5)
        assert step.limit_error <= 3e-5
        free = abs(goal) < 0.49 and k > 20
        if free:
            assert step.status == "solved", (k, step.loop_error_after)
            assert step.q[0] == pytest.approx(goal, abs=1e-8)
            assert step.v[0] == pytest.approx(
                (goal - 0.8 * np.sin(np.pi * (k - 1) * DT)) / DT, abs=8e-3
            )  # as much as it changes within a step
        elif abs(goal) > 0.51:
            assert step.status == "open_loops"
            assert step.loop_error_after == pytest.approx(abs(goal) - 0.5, abs=3e-5)
            assert abs(step.v[0]) < 1e-6


def test_a_weld_that_leads_where_no_joint_goes_is_followed_along_those_that_there_are():
    sim = dl.Simulator(
        '<mujoco><option timestep=".001"/><worldbody><body name="goal" mocap="true"/><body name="slider"><joint type="slide" axis="1 0 0"/><geom size=".05" mass="3"/></body></worldbody>'
        '<equality><weld body1="slider" body2="goal"/></equality></mujoco>'
    )
    for k in range(1, 301):
        sim.set_mocap("goal", [0.3 * DT * k, 0.2 * DT * k, 0])
        step = sim.step()
        assert step.residual < 1e-6
        assert step.loop_error_after == pytest.approx(0.2 * DT * k, abs=2e-4)
    # being far open it lags behind; it arrives as near as it can be
    for _ in range(600):
        step = sim.step()
        assert step.residual < 1e-6
    assert step.status == "open_loops"
    assert step.q[0] == pytest.approx(0.09, abs=1e-5)
    assert step.loop_error_after == pytest.approx(0.06, abs=1e-9)
    assert np.abs(step.v).max() < 1e-9


def test_a_weld_that_leads_into_the_floor_stays_open_and_does_not_penetrate():
    sim = dl.Simulator(
        '<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="1 1 1"/><body name="goal" mocap="true" pos="0 0 .3"/><body name="ball" pos="0 0 .3"><freejoint/><geom size=".1" mass="1" friction="0"/></body>'
        '</worldbody><equality><weld body1="ball" body2="goal"/></equality></mujoco>'
    )
    for k in range(1, 601):
        height = 0.3 - 0.5 * DT * k  # ends at the floor's level
        sim.set_mocap("goal", [0, 0, height])
        step = sim.step()
        assert step.penetration_after < 3e-5
        assert step.q[2] == pytest.approx(max(height, 0.1), abs=3e-5)
    assert step.status == "open_loops"
    assert step.loop_error_after == pytest.approx(0.1, abs=3e-5)
    assert np.abs(step.v).max() < 1e-6


FINGERS = """<mujoco><option timestep=".002" gravity="0 0 0"/><worldbody><body pos="-.1 0 0"><joint name="a" type="slide" axis="1 0 0" limited="true" range="-.2 {end}"/><geom name="a" type="box" size=".02 .02 .02" mass=".1"/></body>
<body pos=".1 0 0"><joint name="b" type="slide" axis="-1 0 0" limited="true" range="-.2 .2"/><geom name="b" type="box" size=".02 .02 .02" mass=".3"/></body></worldbody>
<tendon><fixed name="sum"><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed></tendon><equality><tendon tendon1="sum" polycoef="{kept} 0 0 0 0"/></equality></mujoco>"""


def test_a_value_of_a_tendon_is_approached_at_a_metre_a_second_without_velocity():
    sim = dl.Simulator(FINGERS.format(kept=0.1, end=0.2))
    for k in range(1, 50):
        step = sim.step()
        assert step.status == "open_loops"
        assert step.q.sum() == pytest.approx(0.002 * k / 1.001, abs=1e-9)
        assert step.loop_error_after == pytest.approx(0.1 - step.q.sum(), abs=1e-9)
        assert not step.v.any()
    for _ in range(5):
        step = sim.step()
    assert step.status == "solved"
    assert step.q.sum() == pytest.approx(0.1, abs=1e-8)
    assert step.q[0] / step.q[1] == pytest.approx(3, rel=1e-6)  # as their inverse masses


@pytest.mark.parametrize(("kept", "end", "q"), [(0.3, 0.05, [0.05, 0.11]), (0.1, 0.01, [0.01, 0.09]), (0.3, 0.2, None)])
def test_fingers_that_block_each_other_or_a_limit_come_as_near_to_the_value_of_their_tendon_as_they_can(kept, end, q):
    """Boxes of 4 cm, 20 cm apart: they touch at a + b = 0.16."""
    sim = dl.Simulator(FINGERS.format(kept=kept, end=end))
    for _ in range(300):
        step = sim.step()
        assert step.status in ("open_loops", "solved")
        assert step.limit_error <= 3e-5
        assert step.penetration_after <= 3e-5
        assert np.abs(step.v).max() < 1e-9
    reached = min(kept, 0.16)
    assert step.q.sum() == pytest.approx(reached, abs=3e-5)
    assert step.status == ("solved" if reached == kept else "open_loops")
    if q is not None:
        assert step.q == pytest.approx(q, abs=3e-5)


def test_fingers_that_start_in_each_other_stay_where_their_tendon_keeps_them():
    """As shapes do that a loop ties: what cannot come apart gets no deeper, and no velocity comes of it."""
    sim = dl.Simulator(FINGERS.format(kept=0.17, end=0.2))
    sim.reset([0.085, 0.085])  # the value is kept, a centimetre inside of each other
    for _ in range(100):
        step = sim.step()
        assert step.status == "solved"
        assert np.abs(step.v).max() < 1e-9
    assert step.penetration_after == pytest.approx(0.01, abs=1e-8)
    assert step.q == pytest.approx([0.085, 0.085], abs=1e-8)


def test_limits_and_contacts_that_contradict_each_other_without_any_loop_do_no_harm():
    """A slider that starts beyond its end, with a wall in the way back: nothing ties it, and neither wins."""
    sim = dl.Simulator(
        '<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody><geom type="box" size=".05 .2 .2" pos="-.14 0 0"/><body><joint type="slide" axis="1 0 0" limited="true" range="-.2 0"/>'
        '<geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>'
    )
    sim.reset([0.005])
    for _ in range(50):
        step = sim.step()
        assert np.abs(step.v).max() < 1e-6
    assert -0.001 < step.q[0] < 0.0101
    assert step.status in ("limit_violated", "solved")


def test_fingers_that_start_in_each_other_and_beyond_their_value_return_to_it():
    sim = dl.Simulator(FINGERS.format(kept=0.165, end=0.2))
    sim.reset([0.085, 0.085])
    for _ in range(50):
        step = sim.step()
        assert step.penetration_after <= 0.01 + 1e-9
        assert np.abs(step.v).max() < 1e-9
    assert step.status == "solved"
    assert step.q.sum() == pytest.approx(0.165, abs=1e-7)
