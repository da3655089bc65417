"""Surfaces that move by themselves: belts and turntables. Oracles: Coulomb's closed forms, and the velocities that MuJoCo's rows have."""

import mujoco
import numpy as np
import pytest

import delassus as dl

pytestmark = pytest.mark.skipif(not hasattr(mujoco.MjModel, "geom_surfacevel"), reason="this MuJoCo has no surface velocities")

MU, DT = 0.4, 0.001

BELT = """<mujoco><option timestep=".001"/><worldbody>{floor}<body name="box" pos="0 0 .1"><freejoint/><geom name="box" type="box" size=".2 .2 .1" mass="2" friction=".4" {box}/></body>{more}</worldbody></mujoco>"""


@pytest.mark.parametrize("turn", [0, 40])
def test_a_box_on_a_belt_is_dragged_until_it_moves_with_it(turn):
    """v = µ g t up to the speed of the belt, which is that of its own axes."""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    sim = dl.Simulator(
        BELT.format(
            floor=f'<geom type="plane" size="9 9 1" friction=".4" euler="0 0 {turn}" surfacevel="1.2 0 .7 0 0 0"/>', box="", more=""
        )
    )
    assert sim.model.ignored == ()
    for k in range(1, 501):
        step = sim.step()
        assert step.status == "solved"
        speed = min(MU * 9.81 * DT * k, 1.2)
        assert step.v[:3] == pytest.approx([c * speed, s * speed, 0], abs=2e-5)
        assert np.abs(step.v[3:]).max() < 1e-4
    assert step.contacts.force.sum(axis=0) == pytest.approx([0, 0, 2 * 9.81], abs=1e-4)


def test_a_box_with_a_belt_of_its_own_drives():
    """The surface of the box runs backwards: it accelerates forwards, as a tracked vehicle does."""
    sim = dl.Simulator(BELT.format(floor='<geom type="plane" size="9 9 1" friction=".4"/>', box='surfacevel="-.8 0 0 0 0 0"', more=""))
    for _ in range(400):
        step = sim.step()
    assert step.v == pytest.approx([0.8, 0, 0, 0, 0, 0], abs=1e-5)


def test_surfaces_that_move_alike_do_nothing_to_each_other():
    sim = dl.Simulator(
        BELT.format(
            floor='<geom type="plane" size="9 9 1" friction=".4" surfacevel=".5 .2 0 0 0 0"/>', box='surfacevel=".5 .2 0 0 0 0"', more=""
        )
    )
    for _ in range(100):
        step = sim.step()
    assert np.abs(step.v).max() < 1e-6


def test_a_ball_on_a_turntable_takes_up_its_spin():
    """With torsional friction a ball over the centre turns with the table in the end, and does not leave."""
    sim = dl.Simulator(
        '<mujoco><option timestep=".001" cone="elliptic"/><worldbody><geom type="cylinder" size="1 .1" pos="0 0 -.1" condim="4" friction=".8 .01" surfacevel="0 0 0 0 0 2"/>'
        '<body pos="0 0 .1"><freejoint/><geom size=".1" mass="1" condim="4" friction=".8 .01"/></body></worldbody></mujoco>'
    )
    for k in range(1, 101):
        step = sim.step()
        # torque µ_t m g over the inertia 2/5 m r²
        assert step.v[5] == pytest.approx(min(0.01 * 9.81 / (0.4 * 0.01) * DT * k, 2), rel=1e-3)
    assert step.v[5] == pytest.approx(2, abs=1e-5)
    assert np.abs(step.v[:2]).max() < 1e-6


def test_rows_have_the_velocities_of_mujocos():
    """At rest g of tangents is what surfaces do: beside efc_vel, for shapes that are turned, on bodies that are turned."""
    text = """<mujoco><option cone="elliptic" gravity="0 0 0"/><worldbody><geom name="g" type="box" size="5 5 .5" pos=".3 .2 -.5" euler="0 0 30" surfacevel="1 2 .5 .1 .2 3" condim="4"/>
    <body pos=".6 0 .0999" euler="20 -40 70"><freejoint/><geom size=".1" condim="4" euler="10 20 30" surfacevel=".3 .1 -.2 .4 .5 .6"/></body></worldbody></mujoco>"""
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    contact = d.contact[0]
    theirs = d.efc_vel[contact.efc_address : contact.efc_address + 4]
    problem = dl.Simulator(m).contact_problem()
    frame, axes = problem.frames[0], contact.frame.reshape(3, 3)
    side = np.sign(frame[0] @ axes[0])  # of the other body against the first, or the other way round
    assert problem.g[1:3] @ frame[1:3] == pytest.approx(side * (theirs[1:3] @ axes[1:3]), abs=1e-12)
    scale = m.geom_friction[0, 1] / m.geom_friction[0, 0]
    assert problem.g[3] / scale == pytest.approx(theirs[3], abs=1e-12)
    assert problem.g[0] == pytest.approx(0, abs=1e-12)
