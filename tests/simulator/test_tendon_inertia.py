"""Armature of tendons: M becomes M + Jᵀ diag(armature) J. Oracles: MuJoCo, that matrix in NumPy, and armatures of joints, which are the same where a tendon has one joint."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import delassus as dl

# one chain: what couples its joints fits into MuJoCo's sparse mass matrix
CHAIN = """<mujoco><option timestep="0.002"/><worldbody>
<body><joint name="a" axis="0 1 0"/><geom size=".05" pos=".3 0 0" mass="1"/><site name="s1" pos=".2 0 .1"/>
 <body pos=".3 0 0"><joint name="b" axis="0 1 0" damping=".1"/><geom size=".05" pos=".2 0 0" mass=".5"/><site name="s2" pos=".1 .05 .07"/>
  <body pos=".3 0 0"><joint name="c" axis="1 0 0"/><joint name="d" axis="0 0 1"/><geom type="capsule" fromto="0 0 0 .2 .1 0" size=".03" mass=".3"/>
  <site name="s3" pos=".1 .02 .03"/></body></body></body>
<site name="w" pos="0 0 1"/></worldbody>
<tendon><fixed name="f" armature=".7"><joint joint="a" coef="1.5"/><joint joint="c" coef="-.8"/></fixed>
<spatial name="s" armature="1.3" springlength=".1" stiffness="3"><site site="w"/><site site="s1"/><site site="s2"/><pulley divisor="2"/><site site="s1"/><site site="s3"/></spatial></tendon>
<actuator><motor tendon="f"/><motor tendon="s" gear="2"/><motor joint="b"/></actuator><sensor><framelinacc objtype="site" objname="s3"/></sensor></mujoco>"""
# two trees and a branch: MuJoCo's mass matrix has no room for what couples them
BRANCHES = """<mujoco><option timestep="0.001" integrator="Euler"/><worldbody>
<body><joint axis="0 1 0"/><geom size=".05" pos=".3 0 0" mass="1"/><site name="s1" pos=".2 0 .1"/>
 <body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom size=".05" pos=".2 0 0" mass=".5"/><site name="s2" pos=".1 .05 .07"/></body>
 <body pos="0 .3 0"><joint name="c" axis="1 0 0"/><geom size=".05" pos=".2 .1 0" mass=".7"/><site name="s3" pos=".1 .05 .2"/></body></body>
<body pos="0 1 0"><joint type="slide" axis="1 1 0"/><joint name="e" axis="0 1 1"/><geom type="box" size=".1 .2 .3" mass="2"/><site name="s4" pos=".1 .2 -.1"/></body></worldbody>
<tendon><spatial armature="2"><site site="s2"/><site site="s3"/></spatial><spatial armature=".4"><site site="s4"/><site site="s3"/></spatial>
<fixed armature="1.1"><joint joint="b" coef="2"/><joint joint="e" coef="-1"/></fixed></tendon></mujoco>"""


def rates(m: mujoco.MjModel, q: np.ndarray) -> np.ndarray:
    """(ntendon, nv) dℓ/dq by central differences of MuJoCo's lengths along each velocity."""
    d, h = mujoco.MjData(m), 1e-5
    J = np.zeros((m.ntendon, m.nv))
    for k, unit in enumerate(np.eye(m.nv)):
        for sign in (1, -1):
            d.qpos[:] = q
            mujoco.mj_integratePos(m, d.qpos, unit, sign * h)
            mujoco.mj_fwdPosition(m, d)
            J[:, k] += sign * d.ten_length / (2 * h)
    return J


@pytest.mark.parametrize("seed", range(5))
def test_smooth_accelerations_are_mujocos(seed):
    rng = np.random.default_rng(seed)
    m, model = mujoco.MjModel.from_xml_string(CHAIN), dl.load(CHAIN)
    assert model.ignored == ()
    sim, d = dl.Simulator(model), mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.ctrl[:] = rng.normal(size=m.nq), rng.normal(size=m.nv), rng.normal(size=m.nu)
    mujoco.mj_forward(m, d)
    sim.reset(d.qpos, d.qvel)
    found = dl.forward_dynamics(model, d.qpos, d.qvel, sim.smooth_forces(d.ctrl))
    np.testing.assert_allclose(found, d.qacc_smooth, rtol=0, atol=1e-11 * np.abs(d.qacc_smooth).max())


@pytest.mark.parametrize("seed", range(3))
def test_a_step_is_that_of_the_whole_mass_matrix_also_between_trees(seed):
    rng = np.random.default_rng(seed)
    m, model = mujoco.MjModel.from_xml_string(BRANCHES), dl.load(BRANCHES)
    sim = dl.Simulator(model, integrator="euler")
    q, v, tau = 0.3 * rng.normal(size=m.nq), rng.normal(size=m.nv), rng.normal(size=m.nv)
    sim.reset(q, v)
    step = sim.step(tau)
    J, h = rates(m, q), 1e-5
    drift = (rates(m, q + h * v) - rates(m, q - h * v)) @ v / (2 * h)  # J̇ v
    M = dl.mass_matrix(model, q) + J.T @ np.diag(m.tendon_armature) @ J
    a = np.linalg.solve(M, tau - dl.bias_forces(model, q, v) - J.T @ (m.tendon_armature * drift))
    assert step.status == "solved"
    np.testing.assert_allclose((sim.v - v) / sim.timestep, a, rtol=0, atol=2e-5 * np.abs(a).max())
    # the accelerations of smooth forces are the same
    sim.reset(q, v)
    smooth = dl.forward_dynamics(model, q, v, sim.smooth_forces())
    a = np.linalg.solve(M, -dl.bias_forces(model, q, v) - J.T @ (m.tendon_armature * drift))
    np.testing.assert_allclose(smooth, a, rtol=0, atol=2e-5 * np.abs(a).max())


def leg(tendon: str, joint: str, more: str = "") -> str:
    """A leg with limits and dry friction that falls onto the ground beside a ball; armature either of tendons or of joints."""
    return f"""<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 .1" friction=".8"/>
<body pos="0 0 .75"><joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .05" mass="3"/>
 <body><joint name="hip" axis="0 1 0" range="-20 60" limited="true" {joint.format(0.3 * 4)}/><geom type="capsule" fromto="0 0 0 .1 0 -.3" size=".03" mass=".5"/>
  <body pos=".1 0 -.3"><joint name="knee" axis="0 1 0" range="-90 5" limited="true" frictionloss=".2" {joint.format(0.2 * 0.25)}/>
  <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03" mass=".3"/></body></body></body>
<body pos=".05 0 .2"><freejoint/><geom size=".1" mass=".4"/></body>{more}</worldbody>
<tendon><fixed {tendon.format(0.3)}><joint joint="hip" coef="2"/></fixed><fixed {tendon.format(0.2)}><joint joint="knee" coef="-.5"/></fixed></tendon></mujoco>"""


@pytest.mark.parametrize(("solver", "restitution"), [("auto", 0.0), ("auto", 0.4), ("admm", 0.0), ("newton", 0.3)])
def test_a_tendon_of_one_joint_is_an_armature_of_the_joint_among_contacts_and_limits(solver, restitution):
    options = {"solver": solver, "restitution": restitution, "tolerance": 1e-10}
    by_tendon, by_joint = (dl.Simulator(leg(*armature), **options) for armature in (('armature="{}"', ""), ("", 'armature="{}"')))
    contacts = limits = 0
    for _ in range(300):
        tau = np.r_[0, 0, 2 * np.sin(by_joint.time * 9), np.cos(by_joint.time * 7), np.zeros(6)]
        steps = [sim.step(tau) for sim in (by_tendon, by_joint)]
        assert [s.status for s in steps] == ["solved"] * 2
        contacts, limits = max(contacts, len(steps[0].contacts)), limits + bool(np.any(steps[0].limit_error > -1e-3))
        np.testing.assert_allclose(by_tendon.v, by_joint.v, rtol=0, atol=2e-8)
        # both from the same state, so that what is close stays close
        state = by_joint.q, by_joint.v, by_joint.time
        for sim in (by_tendon, by_joint):
            sim.reset(*state)
    assert contacts > 1
    assert limits > 10


def test_energy_and_momentum_of_carts_on_a_geared_wheel():
    # ½ vᵀ (M + a Jᵀ J) v; the wheel presses both carts with opposite forces
    text = """<mujoco><option timestep="0.001" gravity="0 0 0"/><worldbody><body><joint name="a" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
<body pos="1 0 0"><joint name="b" type="slide" axis="1 0 0"/><geom size=".1" mass="3"/></body></worldbody>
<tendon><fixed armature="2"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed></tendon></mujoco>"""
    sim = dl.Simulator(text, restitution=1.0, tolerance=1e-12)
    sim.reset(None, [1.5, -0.5])
    M = np.array([[3.0, -2.0], [-2.0, 5.0]])
    energy, momentum, turned = sim.v @ M @ sim.v, sim.v @ [1, 3], False
    for _ in range(800):
        assert sim.step().status == "solved"
        turned = turned or sim.v[0] < sim.v[1]
        np.testing.assert_allclose([sim.v @ M @ sim.v, sim.v @ [1, 3]], [energy, momentum], rtol=0, atol=1e-9)
    assert turned  # they collided
    sim.step([1.0, 0.0])
    v = sim.v.copy()
    sim.step([1.0, 0.0])
    np.testing.assert_allclose((sim.v - v) / 1e-3, np.linalg.solve(M, [1, 0]), atol=1e-9)


def test_armatures_among_loops():
    def four_bar(tendon, joint):
        return f"""<mujoco><option timestep="0.0005"/><worldbody>
<body><joint name="a" axis="0 1 0" {joint}/><geom type="capsule" fromto="0 0 0 0 0 .2" size=".02" mass=".3"/>
 <body pos="0 0 .2"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".02" mass=".5"/><site name="end" pos=".5 0 0"/></body></body>
<body pos=".5 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .2" size=".02" mass=".3"/><site name="top" pos="0 0 .2"/></body></worldbody>
<equality><connect site1="end" site2="top"/></equality><tendon><fixed {tendon}><joint joint="a" coef="2"/></fixed></tendon></mujoco>"""

    sims = [dl.Simulator(four_bar(*armature)) for armature in (('armature=".05"', ""), ("", 'armature=".2"'))]
    for sim in sims:
        sim.reset(None, [2.0, -2.0, 2.0])
    for _ in range(400):
        assert [sim.step().status for sim in sims] == ["solved"] * 2
    without = dl.Simulator(four_bar("", ""))
    without.reset(None, [2.0, -2.0, 2.0])
    for _ in range(400):
        without.step()
    # of first order in the step; what the armature changes is a hundred times as much
    difference = np.abs(sims[0].q - sims[1].q).max()
    assert difference < 1e-3
    assert np.abs(without.q - sims[1].q).max() > 100 * difference


def test_sensors_and_data_of_mujoco_know_the_inertia_once():
    m, sim = mujoco.MjModel.from_xml_string(CHAIN), dl.Simulator(CHAIN)
    sim.reset(0.1 * np.arange(m.nq), 0.3 * np.ones(m.nv))
    for _ in range(20):
        step = sim.step(control=[1.0, -2.0, 0.5])
    d, found = mujoco.MjData(m), sim.to_mujoco()
    d.qpos[:], d.qvel[:], d.ctrl[:] = sim.q, sim.v, [1.0, -2.0, 0.5]
    mujoco.mj_forward(m, d)
    np.testing.assert_allclose(found.qacc, d.qacc, rtol=0, atol=1e-9)
    np.testing.assert_allclose(step.sensors.data, d.sensordata, rtol=0, atol=1e-9)


def test_a_snapshot_goes_on_to_the_bit():
    sim = dl.Simulator(leg('armature="{}"', ""))
    for _ in range(200):
        sim.step()
    saved = sim.save()
    for _ in range(50):
        sim.step()
    there = sim.q.copy(), sim.v.copy()
    sim.restore(saved)
    for _ in range(50):
        sim.step()
    assert np.array_equal(sim.q, there[0])
    assert np.array_equal(sim.v, there[1])


@pytest.mark.parametrize("armature", [1e-12, 1e6])
def test_tiny_and_huge_armatures(armature):
    text = CHAIN.replace('armature=".7"', f'armature="{armature}"').replace('damping=".1"', "")
    m, sim = mujoco.MjModel.from_xml_string(text), dl.Simulator(text, integrator="euler")
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = 0.3, 0.1 * np.arange(m.nv)
    mujoco.mj_forward(m, d)
    sim.reset(d.qpos, d.qvel)
    v = sim.v.copy()
    assert sim.step().status == "solved"
    np.testing.assert_allclose((sim.v - v) / 2e-3, d.qacc, rtol=0, atol=1e-7 * np.abs(d.qacc).max())


def test_a_tendon_that_nothing_moves_has_no_part():
    text = CHAIN.replace("</tendon>", '<spatial armature="1"><site site="w"/><site site="w2"/></spatial></tendon>').replace(
        "</worldbody>", '<site name="w2"/></worldbody>'
    )
    sims = dl.Simulator(CHAIN), dl.Simulator(text)
    for sim in sims:
        for _ in range(5):
            sim.step()
    assert np.array_equal(sims[0].q, sims[1].q)
