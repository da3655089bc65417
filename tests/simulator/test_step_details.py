"""Identities of one step: the centre of mass of a free body, the length of a correction of positions."""

import numpy as np
import pytest

import delassus as dl


def rotation(q):
    w, *u = q / np.linalg.norm(q)
    U = np.array([[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]])
    return np.eye(3) + 2 * w * U + 2 * U @ U


@pytest.mark.parametrize("timestep", [1e-2, 1e-3])
def test_a_spinning_body_without_forces_keeps_the_velocity_of_its_centre_of_mass_in_a_step(timestep):
    """v + R (ω × c), with c where its mass is, away from the origin; the centre goes straight on, and angular momentum about it and energy stay."""
    c = np.array([0.3, -0.2, 0.1])
    sim = dl.Simulator(
        '<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody><body pos="0 0 1" euler="20 30 40"><freejoint/>'
        '<inertial pos="0.3 -0.2 0.1" mass="2" diaginertia="0.01 0.03 0.035"/></body></worldbody></mujoco>',
        timestep=timestep,
    )
    v = np.array([0.1, 0.2, -0.3, 5.0, -7.0, 4.0])
    sim.reset(v=v)
    start, R, w = sim.q[:3], rotation(sim.q[3:7]), v[3:]
    after = sim.step().v
    end, turned = sim.q[:3], rotation(sim.q[3:7])
    velocity = v[:3] + R @ np.cross(w, c)
    assert np.allclose(after[:3] + turned @ np.cross(after[3:], c), velocity, rtol=0, atol=1e-13)
    assert np.allclose(end + turned @ c, start + R @ c + timestep * velocity, rtol=0, atol=1e-14)
    inertia = np.array([0.01, 0.03, 0.035])
    assert np.allclose(turned @ (inertia * after[3:]), R @ (inertia * w), rtol=0, atol=1e-14)
    assert inertia @ after[3:] ** 2 == pytest.approx(inertia @ w**2, rel=1e-13)


@pytest.mark.parametrize("bend", [1e-2, 1e-3, 1e-4])
def test_a_small_error_near_a_dead_centre_is_not_corrected_by_a_long_way(bend):
    """Two links, almost stretched, held at the stretched end: the error is bend², and straight on to where it is none are bend, which is 1 / bend times as far. No more than a hundred times."""
    link = '<joint type="hinge" axis="0 0 1"/><geom type="capsule" size="0.02" fromto="0 0 0 1 0 0" contype="0" conaffinity="0"/>'
    sim = dl.Simulator(
        f'<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody><body name="a">{link}<body name="b" pos="1 0 0">{link}</body></body></worldbody>'
        '<equality><connect body1="b" anchor="1 0 0"/></equality></mujoco>'
    )
    sim.reset([bend, -2 * bend])
    step = sim.step()
    assert step.loop_error == pytest.approx(bend**2, rel=1e-2)
    assert 0 < np.abs(step.q - [bend, -2 * bend]).max() <= 101 * step.loop_error


def test_joints_of_other_trees_have_their_own_dry_friction():
    """Three arms that nothing ties together, with losses of 0.1, 5 and 1 N m, pushed by 2 N m: the second holds, the others slip with what is left."""
    arm = '<body pos="0 0 {}"><joint type="hinge" axis="0 0 1" frictionloss="{}" armature="1"/><geom type="sphere" size="0.01" contype="0" conaffinity="0"/></body>'
    losses = np.array([0.1, 5.0, 1.0])
    sim = dl.Simulator(
        "<mujoco><option timestep='.001'/><worldbody>" + "".join(arm.format(k, x) for k, x in enumerate(losses)) + "</worldbody></mujoco>"
    )
    inertia = np.diag(dl.mass_matrix(sim.model, sim.q))
    step = sim.step(np.full(3, 2.0))
    assert step.islands == 3
    assert np.allclose(step.v, 1e-3 * np.maximum(2.0 - losses, 0) / inertia, rtol=1e-4, atol=2e-6)  # the tolerance is 1e-6 m/s


@pytest.mark.parametrize(("speed", "bounces"), [(0.03, False), (0.04, False), (0.06, True), (0.5, True)])
def test_only_what_strikes_faster_than_the_bounce_speed_bounces(speed, bounces):
    """A ball strikes the ground without gravity: it leaves with e times its speed, or stays."""
    sim = dl.Simulator(
        '<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.1001"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>',
        restitution=0.5,
        bounce_speed=0.05,
    )
    sim.reset(v=[0, 0, -speed, 0, 0, 0])
    for _ in range(20):
        after = sim.step().v[2]
    assert after == pytest.approx(0.5 * speed if bounces else 0.0, abs=1e-6)
