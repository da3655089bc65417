"""Coriolis forces of mechanisms that touch something: none where nothing moves, and energy neither made nor lost by them.

The free acceleration of a leg that the floor holds is that of a leg driven through the floor. If it entered the velocity at which Coriolis forces are
taken, a robot at rest would weigh 2 % more at 5 ms, and would push itself along ice.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_linearized_step import check, simulator

import delassus as dl

PASSES = 'contype="0" conaffinity="0"'
LEG = f"""<mujoco><worldbody><geom type="plane" size="5 5 1" friction="1"/>
<body name="base" pos="0 0 .515"><joint type="slide" axis="0 0 1"/><geom type="box" size=".1 .1 .05" mass="30" {PASSES}/>
<body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass="1" {PASSES}/>
<body pos="0 0 -.3"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".3" {PASSES}/>
<geom pos="0 0 -.3" size=".02" mass=".05"/></body></body></body></worldbody></mujoco>"""
BENT = np.array([0.6, -1.2])
# a chain on a turntable's axis, held by a stop
STOPPED = """<mujoco><worldbody><body><joint axis="0 0 1"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/>
<body pos=".3 0 0"><joint axis="0 1 0" limited="true" range="-90 20"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".02" mass="1"/>
<body pos=".4 0 0"><joint axis="0 1 0" limited="true" range="-90 30"/><geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass=".2"/></body></body></body></worldbody></mujoco>"""
# a whip on a floor: fast hinges while its tip slides
WHIP = f"""<mujoco><worldbody><geom type="plane" size="9 9 1" friction=".4" condim="1"/>
<body pos="0 0 .3"><joint axis="0 1 0" damping=".05"/><joint axis="1 0 0" damping=".05"/><geom type="capsule" fromto="0 0 0 .3 0 -.1" size=".02" mass="1" {PASSES}/>
<body pos=".3 0 -.1"><joint axis="0 1 0" damping=".02"/><joint axis="0 0 1" damping=".02"/><geom type="capsule" fromto="0 0 0 .2 0 -.18" size=".01" mass=".3" {PASSES}/><geom pos=".2 0 -.18" size=".02" mass=".1" {{cone}}/></body></body>
</worldbody></mujoco>"""


def held(sim, q, gains=(900.0, 30.0)):
    """Torques that hold the hinges of a model whose first joint is the base's."""
    n = len(q)
    return np.r_[np.zeros(sim.model.nv - n), gains[0] * (q - sim.q[-n:]) - gains[1] * sim.v[-n:]]


@pytest.mark.parametrize("timestep", [1e-3, 2e-3, 5e-3])
def test_a_standing_leg_bears_its_weight(timestep):
    sim = dl.Simulator(LEG, timestep=timestep, tolerance=1e-12)
    sim.reset([0, *BENT])
    for _ in range(int(4 / timestep)):
        step = sim.step(tau=held(sim, BENT))
    assert step.status == "solved"
    assert np.abs(sim.v).max() < 1e-10
    assert step.contacts.force[:, 2].sum() == pytest.approx(9.81 * sim.model.mass, rel=1e-10)


def test_a_robot_that_rests_from_the_first_step_on_is_not_moved():
    sim = dl.Simulator(LEG, timestep=5e-3, tolerance=1e-12)
    sim.reset([0, *BENT])
    for _ in range(800):
        sim.step(tau=held(sim, BENT))
    q = sim.q.copy()
    sim.reset(q)
    for _ in range(3):
        step = sim.step(tau=held(sim, BENT))
        assert step.contacts.force[:, 2].sum() == pytest.approx(9.81 * sim.model.mass, rel=1e-8)


def test_a_quadruped_on_ice_keeps_its_horizontal_momentum():
    ice = dl.scenes.on_floor("go2").to_mujoco()
    ice.geom_friction[:, 0] = 0.0
    sim = dl.Simulator(ice, timestep=2e-3, tolerance=1e-11)
    sim.reset("home")
    home = sim.q[7:].copy()
    for _ in range(1000):
        step = sim.step(control=300 * (home - sim.q[7:]) - 6 * sim.v[6:])
    assert step.status == "solved"
    assert len(step.contacts) >= 4
    momentum = dl.mass_matrix(sim.model, sim.q) @ sim.v
    assert np.abs(momentum[:2]).max() < 1e-9  # 0.02 kg m/s


def test_dry_friction_holds_without_coriolis_forces():
    xml = LEG.replace('<joint axis="0 1 0"/>', '<joint axis="0 1 0" frictionloss="500"/>')
    sim = dl.Simulator(xml, timestep=5e-3, tolerance=1e-12)
    sim.reset([0, *BENT])
    for _ in range(400):
        step = sim.step()
    assert step.contacts.force[:, 2].sum() == pytest.approx(9.81 * sim.model.mass, rel=1e-8)


@pytest.mark.parametrize("timestep", [1e-3, 2e-3])
def test_what_whirls_against_a_stop_gains_no_energy(timestep):
    """Coriolis forces at the velocity of the start gain energy. Stops only take energy away."""
    drift = {}
    for integrator in ("midpoint", "euler"):
        sim = dl.Simulator(STOPPED, timestep=timestep, tolerance=1e-10, integrator=integrator)
        sim.reset([0, 0.3, 0.5], [12.0, 0, 0])
        for _ in range(int(0.3 / timestep)):
            sim.step()  # it comes to rest against its stops
        energy = [dl.kinetic_energy(sim.model, sim.q, sim.v) + dl.potential_energy(sim.model, sim.q)]
        for _ in range(int(3 / timestep)):
            assert sim.step().status == "solved"
            energy.append(dl.kinetic_energy(sim.model, sim.q, sim.v) + dl.potential_energy(sim.model, sim.q))
        drift[integrator] = (max(energy) - energy[0]) / energy[0]
    assert drift["midpoint"] < 2e-3  # what first-order trees fluctuate by
    assert drift["midpoint"] < 0.1 * drift["euler"]


@pytest.mark.parametrize(
    "cone", ['condim="1"', 'condim="3"', 'condim="4" friction=".4 .02 .01"', 'condim="6" friction=".4 .02 .01"'], ids=["1", "3", "4", "6"]
)
def test_a_step_in_contact_is_differentiated(cone):
    sim = simulator(WHIP.format(cone=cone), timestep=0.005)
    sim.reset([0.05, 0.1, 0.02, 0.3])
    checked = 0
    for k in range(400):
        step = sim.step(tau=[2.0, 0.5 * np.sin(k / 7), 0.5, 0.3 * np.cos(k / 11)])
        if k % 10 == 9 and len(step.contacts) and step.contacts.force.any():
            S = sim.linearize()
            if S.kinks.any() or S.row_kinks or S.correction_kink or set(S.modes) <= {"open"}:
                continue
            check(sim, h=3e-6, directions=2)
            checked += 1
    assert checked > 3
