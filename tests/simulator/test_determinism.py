"""Same input, same bits: again, from a snapshot, on several threads, in one go or step by step."""

import numpy as np
import pytest

import delassus as dl
from oracles.drops import drop

STACK = dl.scenes.box_stack(4)


def scene(name):
    """A simulator at a start from which contacts come and go, and a control of it."""
    if name == "drop":
        return dl.Simulator(drop(146)), None
    if name == "bounce":
        return dl.Simulator(drop(3), restitution=0.6), None
    if name == "stack":
        sim = dl.Simulator(STACK)
        sim.reset(v=np.random.default_rng(0).standard_normal(STACK.nv))
        return sim, None
    if name == "newton":
        return dl.Simulator(drop(67), solver="newton"), None
    sim = dl.Simulator(dl.scenes.on_floor(name))
    q = np.array(sim.model.keyframes["home"])
    q[2] += 0.03
    sim.reset(q)
    return sim, np.linspace(-3, 3, len(sim.model.actuators))


SCENES = ["drop", "bounce", "stack", "newton", "go2", "cassie"]


def same(a, b):
    np.testing.assert_allclose(a.times, b.times, rtol=0, atol=1e-12)
    for name in ("q", "v", "contact_start", "contact_force", "contact_position", "iterations", "residual", "penetration", "loop_error"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert (a.status == b.status).all()


@pytest.mark.parametrize("name", SCENES)
def test_second_simulator_does_the_same(name):
    (a, u), (b, _) = scene(name), scene(name)
    first, second = a.run(0.6, control=u, progress=False), b.run(0.6, control=u, progress=False)
    assert len(first.contact_force) > 0
    same(first, second)


@pytest.mark.parametrize("name", SCENES)
def test_reset_forgets_everything(name):
    sim, u = scene(name)
    q, v = sim.q.copy(), sim.v.copy()
    first = sim.run(0.4, control=u, progress=False)
    sim.reset(q, v)
    same(first, sim.run(0.4, control=u, progress=False))


@pytest.mark.parametrize("name", SCENES)
def test_steps_are_a_run(name):
    (a, u), (b, _) = scene(name), scene(name)
    motion = a.run(0.4, control=u, progress=False)
    for k in range(1, len(motion)):
        step = b.step(control=u)
        np.testing.assert_array_equal(step.q, motion.q[k])
        np.testing.assert_array_equal(step.v, motion.v[k])
        np.testing.assert_array_equal(step.contacts.force, motion.contacts(k).force)
        assert (step.status, step.iterations, step.residual) == (motion.status[k], motion.iterations[k], motion.residual[k])
        assert step.time == pytest.approx(motion.times[k], abs=1e-12)


@pytest.mark.parametrize("name", SCENES)
def test_function_that_always_says_the_same_is_a_constant(name):
    (a, u), (b, _) = scene(name), scene(name)
    tau = 0.1 * np.ones(a.model.nv)
    one = a.run(0.2, tau=tau, control=u, progress=False)
    other = b.run(0.2, tau=lambda t, q, v: tau, control=None if u is None else lambda t, q, v: u, progress=False)
    same(one, other)


@pytest.mark.parametrize("name", SCENES)
def test_kept_frames_are_those_of_the_whole_run(name):
    (a, u), (b, _) = scene(name), scene(name)
    np.testing.assert_array_equal(
        a.run(0.3, control=u, progress=False).q[::7], b.run(0.3, control=u, every=7, progress=False).q[: 1 + 300 // 7]
    )


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("at", [0.05, 0.3, 0.45])
def test_snapshot_goes_back_bit_for_bit(name, at):
    """Before, amid and after contacts change; into the same simulator and into a new one."""
    (sim, u), (fresh, _) = scene(name), scene(name)
    sim.run(at, control=u, progress=False)
    snapshot = sim.save()
    then = sim.run(0.3, control=u, progress=False)
    sim.restore(snapshot)
    np.testing.assert_array_equal(sim.save(), snapshot)
    same(then, sim.run(0.3, control=u, progress=False))
    fresh.restore(snapshot)
    same(then, fresh.run(0.3, control=u, progress=False))


def test_snapshot_knows_more_than_the_state():
    """Otherwise the test above would not show that memory is restored."""
    sim, _ = scene("stack")
    sim.run(0.3, progress=False)
    snapshot, q, v = sim.save(), sim.q, sim.v
    first = sim.step()
    sim.reset(q, v)
    assert sim.step().iterations != first.iterations
    sim.restore(snapshot)
    assert sim.step().iterations == first.iterations


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["drop", "bounce", "stack", "go2"])
def test_rollout_is_single_runs(name, threads):
    sim, _ = scene(name)
    rng = np.random.default_rng(2)
    worlds, steps = 5, 250
    q0, nu = sim.q, len(sim.model.actuators)
    q = np.array([dl.integrate(sim.model, q0, 0.02 * rng.standard_normal(sim.model.nv), 1.0) for _ in range(worlds)])
    v = 0.5 * rng.standard_normal((worlds, sim.model.nv))
    control = rng.uniform(-3, 3, (worlds, steps, nu)) if nu else None
    tau = 0.1 * rng.standard_normal((worlds, steps, sim.model.nv))
    many = dl.rollout(sim, q, v, control=control, tau=tau, threads=threads)
    assert many.q.shape == (worlds, steps, sim.model.nq)
    touched = 0
    for k in range(worlds):
        sim.reset(q[k], v[k])
        unsolved = 0
        for s in range(steps):
            step = sim.step(tau[k, s], control=None if control is None else control[k, s])
            np.testing.assert_array_equal(step.q, many.q[k, s])
            np.testing.assert_array_equal(step.v, many.v[k, s])
            unsolved += step.status != "solved"
            touched += len(step.contacts)
        assert unsolved == many.unsolved[k]
    assert touched > 0
