"""What is measured is what happens: motions are the simulator's and MuJoCo's, and a wrong operator is not timed in silence."""

import ctypes
from pathlib import Path

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus import bench
from delassus.bench.clock import one_thread
from delassus.bench.definition import contact_residual


def test_run_is_what_the_simulator_does_and_keeps_every_step():
    model = dl.scenes.box_stack(3)
    sim, other = dl.Simulator(model), dl.Simulator(model)
    shares = []
    motion = bench.run(sim, 0.05, every=10, progress=shares.append)
    reference = other.run(0.05, every=10, progress=False)
    np.testing.assert_array_equal(motion.trajectory.q, reference.q)
    np.testing.assert_array_equal(motion.trajectory.contact_force, reference.contact_force)
    np.testing.assert_array_equal(motion.trajectory.contact_start, reference.contact_start)
    np.testing.assert_allclose(motion.trajectory.times, reference.times, atol=1e-12)
    assert len(motion.seconds) == len(motion.status) == 50
    assert motion.contacts.max() == 12
    assert motion.unsolved == (motion.status != "solved").sum()
    assert 0 < motion.stages["solve"] < motion.stages["step"] < motion.seconds.mean()
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_run_without_a_step_is_refused():
    with pytest.raises(dl.errors.ArgumentError, match="at least one timestep"):
        bench.run(dl.Simulator(dl.scenes.box_stack(1)), 1e-4)


def test_mujoco_runs_as_it_does_and_its_model_is_left_alone():
    m = mujoco.MjModel.from_xml_string(dl.scenes.box_stack(2).to_mjcf())
    before = m.opt.timestep
    d = mujoco.MjData(m)
    start = d.qpos.copy()
    peer = bench.run_mujoco(m, start, np.zeros(m.nv), 4e-3, 0.2)
    assert m.opt.timestep == before
    m.opt.timestep = 4e-3
    for _ in range(50):
        mujoco.mj_step(m, d)
    assert peer.finite
    assert peer.contacts[-1] == d.ncon == 8
    np.testing.assert_allclose(peer.penetration[-1], -d.contact.dist.min(), rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_mujoco_that_resets_itself_is_not_sound():
    m = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep=".001"/><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    assert not bench.run_mujoco(m, [0, 0, 0, 1, 0, 0, 0], [1e12, 0, 0, 0, 0, 0], 1.0, 3.0).finite


@pytest.mark.parametrize("name", ["g1-fallen", "cassie-standing"])
def test_contacts_of_a_step_become_the_constraints_they_were(name):
    model, q, constraints = dl.scenes.load(name)
    X = dl.body_placements(model, q)
    contacts = [c for c in constraints if isinstance(c, dl.PointContact)]
    sim = dl.Simulator(model)
    sim.reset(q)
    step = sim.step()
    made = bench.constraints_of(model, q, step.contacts)
    assert sum(isinstance(c, dl.PointContact) for c in made) == len(step.contacts) >= len(contacts) > 0
    # every point is on both bodies at once, and pushing along its row parts them
    H = dl.DelassusOperator(model, made)
    H.update(q)
    v = np.random.default_rng(0).standard_normal(model.nv)
    first = len(made) - len(step.contacts)
    assert np.abs(dl.constraint_error(model, q, made[first:])).max() < 1e-12
    rows = (H.jacobian @ v)[sum(c.rows for c in made[:first]) :].reshape(-1, 3)
    for k, (x, n, (one, two)) in enumerate(zip(step.contacts.position, step.contacts.normal, step.contacts.bodies, strict=True)):
        speeds = [dl.point_velocity(model, q, v, b, X[b, :3, :3].T @ (x - X[b, :3, 3])) if b else np.zeros(3) for b in (int(one), int(two))]
        np.testing.assert_allclose(rows[k, 0], n @ (speeds[0] - speeds[1]), atol=1e-9)


def test_costs_agree_and_find_what_the_solver_says():
    model, q, constraints = dl.scenes.load("g1-fallen")
    costs = bench.operator_costs(model, q, model.zero_velocity(), list(constraints), 1e-3, budget=0.01)
    assert costs.agree
    assert (costs.rows, costs.contacts) == (69, 23)
    assert min(*costs.update, *costs.product, *costs.solve, costs.problem) > 0
    G = dl.DelassusOperator(model, constraints)
    G.update(q)
    g = G.jacobian @ (1e-3 * dl.forward_dynamics(model, q, model.zero_velocity(), np.zeros(model.nv)))
    r = dl.solve_contacts(G, g, timestep=1e-3)
    assert (costs.status, costs.iterations) == (r.status, r.iterations)
    # the natural residual by its definition and by the core, whose d leaves out what passes between two links of one tree
    assert 0.2 * r.residuals.natural < costs.residual < 5 * r.residuals.natural


def test_residual_sees_a_wrong_force():
    contact = dl.PointContact(dl.scenes.box_stack(1), "box0", friction=0.5)
    A, g = np.eye(3) / 2.0, np.array([-1.0, 0.4, 0.0])
    right = np.array([2.0, -0.8, 0.0])
    assert contact_residual(A, g, right, [contact], 1e-3) < 1e-12
    assert contact_residual(A, g, right + np.array([0.0, 0.1, 0.0]), [contact], 1e-3) > 0.04
    assert contact_residual(A, g, np.zeros(3), [contact], 1e-3) > 0.5


def test_blas_has_one_thread_while_it_is_timed_and_its_own_number_after():
    def numbers():
        """Threads that OpenBLAS says it uses, a library each."""
        files = sorted({line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "openblas" in line})
        getters = [getattr(ctypes.CDLL(f), "scipy_openblas_get_num_threads64_", None) for f in files]
        return [get() for get in getters if get]

    before = numbers()
    if not before:
        pytest.skip("NumPy uses another BLAS here")
    with one_thread():
        assert set(numbers()) == {1}
    assert numbers() == before
