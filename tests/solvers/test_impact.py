"""Impacts: the velocity jump is that of the dense definition; energy does what mechanics says."""

import numpy as np
import pytest

import delassus as dl
from oracles import cases, closed
from oracles.compare import agree


def dense(case, v, e):
    """v⁺ and p of least norm, by singular values."""
    p = -case.G_inverse @ ((1 + e) * (case.J @ v))
    return v + np.linalg.solve(case.M, case.J.T @ p), p


def seen(name, kinds, seed=0):
    case = cases.case(name, kinds, seed)
    return closed.Closed(case.oracle, case.made, case.rng)


def size(case):
    """Size of the velocities before."""
    return max(1.0, np.abs(case.oracle.v).max(initial=0.0))


@pytest.mark.parametrize("kinds", ["none", "contacts", "redundant"])
@pytest.mark.parametrize("name", [*cases.MODELS, *cases.RANDOM])
def test_plastic_impact_is_the_projection(name, kinds):
    case = seen(name, kinds)
    v = case.oracle.v
    done = dl.impact(case.model, case.q, v, case.constraints)
    after, _ = dense(case, v, 0.0)
    assert done.status == "solved"
    assert done.iterations <= 10
    agree(done.velocity, after, 1e-6, size(case))
    assert np.abs(case.J @ done.velocity).max(initial=0.0) <= 1e-8 * max(1.0, np.abs(case.J @ v).max(initial=0.0))
    # least norm: no part of p that Jᵀ does not feel
    loose = done.impulses - case.G @ (case.G_inverse @ done.impulses)
    assert np.linalg.norm(loose) <= 1e-6 * max(np.linalg.norm(done.impulses), 1e-12)
    # Carnot: what is lost is the energy of the lost velocity
    lost = done.velocity - v
    before = 0.5 * v @ case.M @ v
    assert done.energy_change <= 1e-12 * before
    agree(done.energy_change, -0.5 * lost @ case.M @ lost, 1e-7, before)
    agree(done.energy_change, 0.5 * done.velocity @ case.M @ done.velocity - before, 1e-7, before)
    assert done.advice == ""


@pytest.mark.parametrize("name", closed.NAMED)
def test_loops_take_the_velocity_they_allow(name):
    for seed in range(5):
        case = closed.named(name, seed)
        v = case.rng.standard_normal(case.model.nv)
        done = dl.impact(case.model, case.q, v, case.model.loops, restitution=0.9)
        assert done.status == "solved"
        agree(done.velocity, case.projector @ v, 1e-9)
        # again: nothing is left to jump
        again = dl.impact(case.model, case.q, done.velocity, case.model.loops)
        agree(again.velocity, done.velocity, 1e-9)


@pytest.mark.parametrize("block", range(4))
def test_random_loops_take_the_velocity_they_allow(block):
    for seed in range(50 * block, 50 * block + 50):
        case = closed.random_loop(seed)
        v = case.rng.standard_normal(case.model.nv)
        done = dl.impact(case.model, case.q, v, case.constraints)
        assert done.status == "solved", seed
        agree(done.velocity, case.projector @ v, 1e-7, np.abs(v).max())
        agree(done.impulses, dense(case, v, 0.0)[1], 1e-5)


@pytest.mark.parametrize("e", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["go2", "cassie", "boxes", "mixed", "one link"])
def test_one_restitution_for_all_rows_never_makes_energy(name, e):
    for seed in range(4):
        case = seen(name, "contacts", seed)
        # one number a constraint reaches all rows but the tangents of contacts: leave the contact out
        case = closed.Closed(case.oracle, case.made[1:], case.rng)
        v = case.rng.standard_normal(case.model.nv)
        done = dl.impact(case.model, case.q, v, case.constraints, restitution=[e] * len(case.made))
        after, _ = dense(case, v, e)
        agree(done.velocity, after, 1e-6, np.abs(v).max())
        agree(case.J @ done.velocity, -e * case.J @ v, 1e-8, np.abs(case.J @ v).max())
        before = 0.5 * v @ case.M @ v
        assert done.energy_change <= 1e-8 * before
        if e == 1.0:
            agree(done.energy_change, 0.0, 1e-8, before)
        assert done.advice == ""


@pytest.mark.parametrize("e", [0.0, 0.25, 1.0])
def test_ball_bounces(e):
    """A box that falls flat on its corners leaves with −e times its speed; impulses add up to (1 + e) m v."""
    model = dl.scenes.box_stack(1)
    corners = [dl.PointContact(model, 1, point=(x, y, -0.1)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    done = dl.impact(model, model.neutral(), [0, 0, -2.0, 0, 0, 0], corners, restitution=e)
    agree(done.velocity, [0, 0, 2 * e, 0, 0, 0], 1e-9, 1.0)
    agree(done.impulses.reshape(4, 3), np.tile([(1 + e) * 0.5, 0, 0], (4, 1)), 1e-6)
    assert [p.shape for p in done.constraint_impulses] == [(3,)] * 4
    assert np.isclose(done.energy_change, 0.5 * 4 * (e**2 - 1), atol=1e-9)


def test_rod_struck_at_its_tip_turns_as_the_closed_form():
    """A free rod struck at a distance h from its centre: p = (1 + e) / (1/m + h²/I); its centre changes by p / m, its turning by h p / I."""
    b = dl.ModelBuilder("rod")
    m, h, inertia = 2.0, 0.5, 0.3
    b.add_body("rod", mass=m, inertia=(0.01, inertia, inertia))
    b.add_joint("rod", "free")
    model = b.build()
    tip = dl.PointContact(model, "rod", point=(h, 0, 0))
    done = dl.impact(model, model.neutral(), [0, 0, -1.0, 0, 0, 0], [tip], restitution=0.5)
    p = 1.5 / (1 / m + h * h / inertia)
    agree(done.impulses, [p, 0, 0], 1e-9)
    agree(done.velocity, [0, 0, -1 + p / m, 0, -h * p / inertia, 0], 1e-9)


def test_scalar_restitution_is_for_contacts_and_limits_only():
    model = dl.load("go2")
    q, v = model.random(3), np.random.default_rng(5).standard_normal(model.nv)
    rows = [
        dl.PointContact(model, model.nbody - 1),
        dl.JointLimit(model, model.joint_names[1]),
        dl.Connect(model, 3),
        dl.JointFriction(model, model.joint_names[2]),
    ]
    before = dl.constraint_velocity(model, q, v, rows)
    done = dl.impact(model, q, v, rows, restitution=0.6)
    after = dl.constraint_velocity(model, q, done.velocity, rows)
    agree(after, -np.array([0.6, 0, 0, 0.6, 0, 0, 0, 0]) * before, 1e-8, np.abs(before).max())
    each = dl.impact(model, q, v, rows, restitution=[0.6, 0.6, 0, 0])
    assert np.array_equal(each.velocity, done.velocity)


def test_rows_of_different_restitution_can_make_energy_and_that_is_told():
    """A rod that slides while it strikes: Newton's law with e = 1 on the normal and 0 on the tangents."""
    b = dl.ModelBuilder("rod")
    b.add_body("rod", mass=1.0, com=(0.3, 0, 0.4), inertia=(0.01, 0.01, 0.01))
    b.add_joint("rod", "free")
    model = b.build()
    tip = [dl.PointContact(model, "rod")]
    grew = 0
    for slip in np.linspace(-3, 3, 13):
        v = np.array([slip, 0, -1.0, 0, 0, 0])
        done = dl.impact(model, model.neutral(), v, tip, restitution=1.0)
        energy = [dl.kinetic_energy(model, model.neutral(), x) for x in (v, done.velocity)]
        assert np.isclose(done.energy_change, energy[1] - energy[0], atol=1e-9)
        assert bool(done.advice) == (done.energy_change > 1e-8)
        grew += bool(done.advice)
    assert 0 < grew < 13


def test_contradicting_rows_give_the_least_squares_velocity():
    """The same contact twice, once plastic and once elastic: the normal leaves with half its speed."""
    model = dl.scenes.box_stack(1)
    bottom = dl.PointContact(model, 1, point=(0, 0, -0.1))
    done = dl.impact(model, model.neutral(), [0, 0, -1.0, 0, 0, 0], [bottom, bottom], restitution=[0.0, 1.0])
    assert done.status == "infeasible_least_squares"
    agree(done.velocity, [0, 0, 0.5, 0, 0, 0], 1e-7, 1.0)
    agree(done.impulses, [0.75, 0, 0] * 2, 1e-6)
    assert np.isclose(done.residuals.primal, 0.5, atol=1e-7)
    assert done.residuals.least_squares < 1e-7
    assert "residuals" in done.advice


def test_contradictions_on_robots_are_least_squares():
    for name in ("go2", "cassie", "g1", "talos", "atlas", "solo", "iiwa", "one link", "boxes", "mixed"):
        case = seen(name, "redundant")
        v = case.oracle.v
        e = case.rng.uniform(0, 1, len(case.made))
        per_row = np.concatenate(
            [[x, 0, 0] if isinstance(c, dl.PointContact) else [x] * c.rows for x, c in zip(e, case.constraints, strict=True)]
        )
        done = dl.impact(case.model, case.q, v, case.constraints, restitution=e)
        after, p = dense(case, v, per_row)
        assert done.status == "infeasible_least_squares"
        agree(done.velocity, after, 1e-8, np.abs(after).max())
        agree(done.impulses, p, 2e-8)
        agree(done.residuals.primal, np.abs(case.J @ after + per_row * (case.J @ v)).max(), 1e-6)


def test_velocity_does_not_depend_on_damping_and_an_operator_is_reused():
    case = seen("g1", "redundant")
    v = case.oracle.v
    want = dl.impact(case.model, case.q, v, case.constraints)
    for damping in (1e-3, 1e-6, 1e-9, np.geomspace(1e-9, 1e-5, len(case.J))):
        agree(dl.impact(case.model, case.q, v, case.constraints, damping=damping, max_iterations=2000).velocity, want.velocity, 1e-6)
    G = dl.DelassusOperator(case.model, case.constraints, damping=1e-7)
    done = dl.impact(case.model, case.q, v, G)
    agree(done.velocity, want.velocity, 1e-7)
    assert np.array_equal(G.damping, np.full(G.shape[0], 1e-7))
    assert dl.impact(case.model, case.q, v, G, damping=1e-2, max_iterations=1).status == "iteration_limit"


def test_compliance_softens_the_rows():
    case = seen("go2", "contacts")
    v = case.oracle.v
    G = dl.DelassusOperator(case.model, case.constraints, compliance=0.1)
    done = dl.impact(case.model, case.q, v, G)
    agree(done.impulses, -np.linalg.solve(case.G + 0.1 * np.eye(len(case.G)), case.J @ v), 1e-9)
    agree(case.J @ done.velocity, -0.1 * done.impulses, 1e-8, np.abs(case.J @ v).max())
    assert done.residuals.primal < 1e-8


@pytest.mark.parametrize("name", [name for name in dl.scenes.names if "pyramid" not in name])
def test_stored_scenes_stop_where_they_touch(name):
    """Also Cassie's, whose soles make four rows depend on the others to 1e-9: not a contradiction."""
    model, q, constraints = dl.scenes.load(name)
    v = np.random.default_rng(2).standard_normal(model.nv)
    done = dl.impact(model, q, v, constraints)
    assert done.status == "solved"
    assert np.abs(dl.constraint_velocity(model, q, done.velocity, constraints)).max() < 1e-7
    assert done.energy_change < 0
    lost = dl.kinetic_energy(model, q, done.velocity - v)
    agree(-done.energy_change, lost, 1e-6)


def test_history_falls_to_the_tolerance():
    case = seen("talos", "redundant")
    done = dl.impact(case.model, case.q, case.oracle.v, case.constraints, damping=1e-3, max_iterations=1000)
    assert done.status == "solved"
    assert len(done.history) == done.iterations + 1
    assert done.history[0] == pytest.approx(np.abs(case.J @ case.oracle.v).max(), rel=1e-9)
    assert done.history[-1] <= 1e-10 * done.history[0]
