"""The default method of contacts: Newton's method, a path, a convex problem where the budget runs out. Residuals by their definition in NumPy."""

import numpy as np
import pytest

import delassus as dl
from delassus.solvers.contacts import solve_sets
from oracles.contacts import residuals, sets_of
from oracles.piles import random_pile


def tumbling(seed, speed=0.3):
    """The pyramid of thirty boxes, 864 rows of rank 180, with random velocities: model, configuration, operator, and the velocity that it would have after a step without contact forces."""
    scene = dl.scenes.load("box-pyramid")
    G = dl.DelassusOperator(scene.model, scene.constraints)
    G.update(scene.q)
    v = speed * np.random.default_rng(seed).standard_normal(scene.model.nv)
    free = v + 1e-3 * dl.forward_dynamics(scene.model, scene.q, v, np.zeros(scene.model.nv))
    return scene.model, scene.q, G, free


def test_boxes_that_all_tumble_and_slide_are_solved():
    """Neither ADMM nor an interior point ends on most of these. Of eight, two may stay where single contacts change to and fro."""
    solved = 0
    for seed in range(8):
        _, _, G, free = tumbling(seed)
        g = G.jacobian @ free
        r = dl.solve_contacts(G, g, timestep=1e-3)
        primal, dual, _, natural = residuals(G.to_matrix(), g, sets_of(G.constraints)[0], (), r.forces)
        assert r.status in ("solved", "approximate")
        assert max(primal, dual, natural) < 1e-2
        if r.status == "solved":
            assert max(primal, dual, natural / 10) <= 1.001e-6
            solved += 1
    assert solved >= 6


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("budget", [1, 5, 20])
def test_a_budget_that_runs_out_leaves_forces_that_create_no_energy(seed, budget):
    model, q, G, free = tumbling(seed)
    g = G.jacobian @ free
    r = dl.solve_contacts(G, g, timestep=1e-3, max_iterations=budget)
    assert r.status in ("approximate", "solved")
    assert r.iterations <= budget
    assert len(r.history) == r.iterations
    # in their cones
    forces = r.forces.reshape(-1, 3)
    mu = np.array([c.friction for c in G.constraints])
    assert (np.hypot(forces[:, 1], forces[:, 2]) <= mu * forces[:, 0] * (1 + 1e-12) + 1e-15).all()
    # kinetic energy after them is at most that of the free motion; the residual is what is told
    M = dl.mass_matrix(model, q)
    after = free + G.mass_inverse @ (G.jacobian.T @ r.forces)
    assert after @ M @ after <= free @ M @ free
    natural = residuals(G.to_matrix(), g, sets_of(G.constraints)[0], (), r.forces)[3]
    assert natural == pytest.approx(r.residuals.natural, rel=1e-6)
    # nothing goes into each other faster than the residuals say, which are small where the budget was not
    speed = -(G.jacobian @ after)[::3].min()
    assert speed <= r.residuals.dual + 1e-9
    assert r.residuals.dual <= 2 * r.residuals.natural


@pytest.mark.parametrize("seed", range(3))
def test_steps_with_hardly_any_budget_neither_sink_nor_gain_energy(seed):
    """Boxes dropped into a bin with three factorizations a step: what velocities let in, the correction of positions takes out."""
    model = dl.scenes.box_bin(12, seed=seed)
    sim = dl.Simulator(model, max_iterations=3)
    energy, statuses = np.inf, set()
    for _ in range(400):
        step = sim.step()
        statuses.add(step.status)
        now = dl.kinetic_energy(model, step.q, step.v) + dl.potential_energy(model, step.q)
        assert now <= energy + 1e-5 * abs(now)
        energy = min(energy, now)
        assert step.penetration_after < 1e-3
    assert "approximate" in statuses
    assert statuses <= {"solved", "approximate"}


def test_no_time_is_a_budget_too():
    pile = random_pile(np.random.default_rng(5), 60)
    G, g = pile.operator(), pile.g
    assert dl.solve_contacts(G, g, time_limit=0.0).status == "approximate"
    assert dl.solve_contacts(G, g, time_limit=100.0).status == "solved"
    for wrong in (-1.0, np.nan, "soon"):
        with pytest.raises(dl.errors.DelassusError, match="time_limit"):
            dl.solve_contacts(G, g, time_limit=wrong)
        with pytest.raises(dl.errors.DelassusError, match="time_limit"):
            dl.Simulator(dl.scenes.box_stack(2), time_limit=wrong)


def test_the_same_problem_gives_the_same_bits_whatever_was_solved_before():
    _, _, G, free = tumbling(2)
    g = G.jacobian @ free
    solver = dl.ContactSolver(G, timestep=1e-3)
    first = solver.solve(g)
    solver.solve(0.1 * g, max_iterations=3)
    again = solver.solve(g)
    assert np.array_equal(first.forces, again.forces)
    assert np.array_equal(first.forces, dl.solve_contacts(G, g, timestep=1e-3).forces)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_units_of_mass_change_nothing(scale):
    pile = random_pile(np.random.default_rng(5), 60)
    plain = dl.solve_contacts(pile.matrix, pile.g, pile.friction)
    other = dl.solve_contacts(pile.matrix / scale, pile.g, pile.friction)
    assert plain.status == other.status == "solved"
    assert plain.iterations == other.iterations
    assert np.allclose(other.forces, scale * plain.forces, rtol=1e-6, atol=1e-9 * scale * np.abs(plain.forces).max())


def test_matrix_and_operator_agree():
    pile = random_pile(np.random.default_rng(8), 70)
    G = pile.operator()
    one, other = dl.solve_contacts(G, pile.g), dl.solve_contacts(pile.matrix, pile.g, pile.friction)
    assert one.status == other.status == "solved"
    # velocities are unique up to the tolerance here, forces of redundant contacts are not
    assert np.abs(one.velocities - other.velocities).max() < 1e-4 * np.abs(pile.g).max()


@pytest.mark.parametrize("friction", [0.0, 1e-3, 0.5, 1e3, 1e6])
def test_any_friction(friction):
    rng = np.random.default_rng(11)
    for _ in range(20):
        n = int(rng.integers(1, 12))
        A = rng.standard_normal((3 * n, int(rng.integers(2, 3 * n + 2))))
        # gravity-like: what is pressed together can be stopped
        G, g = A @ A.T + 1e-3 * np.eye(3 * n), rng.standard_normal(3 * n)
        r = dl.solve_contacts(G, g, np.full(n, friction))
        primal, dual, _, natural = residuals(G, g, [(3 * k, friction) for k in range(n)], (), r.forces)
        assert np.isfinite(r.forces).all()
        if r.status == "solved":
            assert max(primal, dual, natural / 10) <= 1.001 * r.tolerance
        if friction <= 0.5:
            assert r.status == "solved"


def test_nothing_to_solve():
    r = dl.solve_contacts(np.zeros((0, 0)), np.zeros(0), np.zeros(0))
    assert r.status == "solved"
    free = dl.solve_contacts(np.eye(3), [1.0, 0.2, 0.0], [0.5])
    assert free.status == "solved"
    assert not free.forces.any()


def test_loops_that_contradict_each_other_are_infeasible():
    """A point on a floor, and a body that two rows ask to go both ways at once."""
    G = np.zeros((5, 5))
    G[:3, :3], G[3:, 3:] = np.eye(3), 1.0
    g = np.array([-1.0, 0.1, 0.0, 0.3, -0.3])
    cones, intervals = np.array([[0.0, 0.5]]), np.array([[3.0, np.nan, np.nan], [4.0, np.nan, np.nan]])
    assert solve_sets(G, g, cones, intervals, [3, 1, 1], "auto", 1e-6, 2000, None).status == "infeasible"
    g[4] = 0.3
    assert solve_sets(G, g, cones, intervals, [3, 1, 1], "auto", 1e-6, 2000, None).status == "solved"
