"""Inverse dynamics with constraints: it undoes a dense forward solve, and chooses what it says where there is a choice."""

import numpy as np
import pytest

import delassus as dl
from oracles import cases, closed
from oracles.compare import agree

CUT = 1e-10


def seen(name, kinds, seed=0):
    case = cases.case(name, kinds, seed)
    return closed.Closed(case.oracle, case.made, case.rng)


def forward(case, tau):
    """ν̇ and λ of M ν̇ + c = τ + Jᵀ λ, J ν̇ + γ = 0, by singular values."""
    free = np.linalg.solve(case.M, tau - case.oracle.bias_forces)
    drift = dl.constraint_drift(case.model, case.q, case.oracle.v, case.constraints)
    forces = -case.G_inverse @ (case.J @ free + drift)
    return free + np.linalg.solve(case.M, case.J.T @ forces), forces


def scale(case, tau):
    """Size of the accelerations that forward sums."""
    return np.abs(np.linalg.solve(case.M, tau)).max() + np.abs(np.linalg.solve(case.M, case.oracle.bias_forces)).max()


def moving(case):
    """The case with a velocity that its constraints allow."""
    return case.at(case.projector @ case.rng.standard_normal(case.model.nv))


def chosen(nv, unactuated):
    return [k for k in range(nv) if k not in unactuated]


def undone(case, unactuated):
    """Forward with random torques, then inverse; returns the case's numbers and the result."""
    tau = 10 * case.rng.standard_normal(case.model.nv)
    tau[list(unactuated)] = 0.0
    acceleration, _ = forward(case, tau)
    done = dl.constrained_inverse_dynamics(
        case.model, case.q, case.oracle.v, acceleration, case.constraints, actuated=chosen(case.model.nv, unactuated)
    )
    return tau, acceleration, done


def rank(case, columns):
    """Rank of the chosen columns of J, velocities scaled by their mass."""
    return np.linalg.matrix_rank(case.J[:, columns] / np.sqrt(case.M.diagonal()[columns]), tol=1e-7 * max(1.0, np.abs(case.J).max()))


# ---- forward, then inverse ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", ["none", "contacts", "redundant"])
@pytest.mark.parametrize("name", [*cases.MODELS, *cases.RANDOM])
def test_torques_found_make_the_motion(name, kinds):
    """What is chosen among many torques must give back the acceleration; a free base, or the first velocity, is not actuated."""
    case = moving(seen(name, kinds))
    free = case.model.nv > 6 and case.model.joint_type[0] == "free"
    _, acceleration, done = undone(case, range(6 if free else 1))
    assert done.status == "solved", done
    again, _ = forward(case, done.torques)
    agree(again, acceleration, 1e-8, scale(case, done.torques))
    # equation of motion, row by row
    h = case.M @ acceleration + case.oracle.bias_forces
    agree(done.torques + case.J.T @ done.forces, h, 1e-9, max(np.abs(x).max() for x in (h, done.torques, case.oracle.bias_forces)))


@pytest.mark.parametrize(
    ("name", "motors"),
    [("four_bar", ["crank_hinge"]), ("n_four_bar", ["rod0_hinge"]), ("n_four_bar", ["coupler2_hinge"]), ("cassie", None)],
)
def test_torques_of_a_loop_come_back(name, motors):
    """Where the motors are as many as they must be, forward then inverse returns the torques."""
    for seed in range(5):
        case = moving(closed.named(name, seed))
        model = case.model
        motors_here = [a.joint for a in model.actuators] if motors is None else motors
        driven = [int(model.joint_vadr[model.joint_index(j)]) for j in motors_here]
        tau = np.zeros(model.nv)
        tau[driven] = 10 * case.rng.standard_normal(len(driven))
        acceleration, forces = forward(case, tau)
        done = dl.constrained_inverse_dynamics(model, case.q, case.oracle.v, acceleration, model.loops, actuated=motors_here)
        assert done.status == "solved"
        agree(done.torques, tau, 1e-8)
        # the plane's normal force of a pin is what no joint feels: least norm leaves it out, as the pseudo-inverse does
        agree(case.J.T @ done.forces, case.J.T @ forces, 1e-8)
        assert sum(map(len, done.constraint_forces)) == len(done.forces)


@pytest.mark.parametrize("block", range(4))
def test_torques_of_random_loops_come_back(block):
    unique = 0
    for seed in range(50 * block, 50 * block + 50):
        case = moving(closed.random_loop(seed))
        nv = case.model.nv
        unactuated = sorted(case.rng.choice(nv, max(1, nv // 2), replace=False).tolist())
        tau, acceleration, done = undone(case, unactuated)
        assert done.status == "solved", (seed, done)
        again, _ = forward(case, done.torques)
        agree(again, acceleration, 1e-8, scale(case, done.torques))
        if rank(case, unactuated) == rank(case, range(nv)):
            agree(done.torques, tau, 1e-6, max(np.abs(tau).max(), np.abs(case.J.T @ done.forces).max()))
            unique += 1
    assert unique >= 5


@pytest.mark.parametrize("turn", [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-3])
def test_flat_rods_are_held_still(turn):
    """At the singular position and beside it: the torque of one motor that holds n rods against gravity, at rest."""
    model = dl.scenes.n_four_bar(3)
    case = closed.of(model, closed.rods(model, turn))
    tau = np.zeros(model.nv)
    for minimize in ("forces", "torques"):
        done = dl.constrained_inverse_dynamics(model, case.q, tau, tau, model.loops, minimize=minimize)
        assert done.status == "solved"
        again, _ = forward(case, done.torques)
        agree(again, np.zeros(model.nv), 1e-8, 1.0)


# ---- what is chosen -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", ["contacts", "redundant"])
@pytest.mark.parametrize("name", ["go2", "cassie", "g1", "talos", "iiwa", "boxes", "mixed", "two trees", "four-bar", "one link"])
def test_choice_is_the_least(name, kinds):
    case = seen(name, kinds)
    nv = case.model.nv
    unactuated = list(range(nv // 2))
    driven = chosen(nv, unactuated)
    a = case.rng.standard_normal(nv)
    h = case.M @ a + case.oracle.bias_forces
    A, B = case.J.T[unactuated], case.J.T[driven]
    forces, torques = (
        dl.constrained_inverse_dynamics(case.model, case.q, case.oracle.v, a, case.constraints, actuated=driven, minimize=m)
        for m in ("forces", "torques")
    )
    # least ‖λ‖ among least squares
    agree(forces.forces, np.linalg.lstsq(A, h[unactuated], rcond=CUT)[0] if unactuated else 0 * forces.forces, 1e-8)
    # least ‖τ‖ among the same
    _, s, vt = np.linalg.svd(A)
    r = int((s > CUT * s.max(initial=0.0)).sum())
    Z = vt[r:].T
    best = h[driven] - B @ forces.forces
    best = best - B @ Z @ np.linalg.pinv(B @ Z, rcond=CUT) @ best
    agree(torques.torques[driven], best, 1e-7, np.abs(h).max())
    assert np.linalg.norm(torques.torques) <= np.linalg.norm(forces.torques) * (1 + 1e-9)
    # and of those the least ‖λ‖: nothing left of what neither side feels
    both = np.linalg.svd(case.J)[0][:, np.linalg.matrix_rank(case.J, tol=1e-8) :]
    assert np.linalg.norm(both.T @ torques.forces) <= 1e-8 * max(np.linalg.norm(torques.forces), 1.0)
    for done in (forces, torques):
        assert done.rank == r
        agree(done.condition, s[0] / s[r - 1] if r else 1.0, 1e-6)
        assert (done.torques[unactuated] == 0).all()
        agree(done.residuals.unactuated, np.abs(h - case.J.T @ done.forces)[unactuated].max(initial=0.0), 1e-6, np.abs(h).max())
        drift = dl.constraint_drift(case.model, case.q, case.oracle.v, case.constraints)
        agree(done.residuals.primal, np.abs(case.J @ a + drift).max(), 1e-9)


def test_standing_box_shares_its_weight():
    """Four corners carry a quarter each; the box needs no motor."""
    model = dl.scenes.box_stack(1)
    corners = [dl.PointContact(model, 1, point=(x, y, -0.1)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    zero = np.zeros(6)
    done = dl.constrained_inverse_dynamics(model, model.neutral(), zero, zero, corners)
    assert done.status == "solved"
    assert np.array_equal(done.torques, zero)
    weight = -model.gravity[2] * model.mass
    agree(np.array(done.constraint_forces), np.tile([weight / 4, 0, 0], (4, 1)), 1e-9, weight)


def test_external_forces_are_carried():
    model = dl.scenes.box_stack(1)
    bottom = dl.Weld(model, 1)
    push = np.zeros((model.nbody, 6))
    push[1] = [3.0, -2.0, 5.0, 0.1, 0.2, -0.3]
    done = dl.constrained_inverse_dynamics(model, model.neutral(), np.zeros(6), np.zeros(6), [bottom], external_forces=push)
    agree(done.forces, -push[1] - [0, 0, model.mass * model.gravity[2], 0, 0, 0], 1e-9)


def test_default_actuates_all_but_the_free_base():
    case = moving(seen("go2", "contacts"))
    model = case.model
    a = np.zeros(model.nv)
    default = dl.constrained_inverse_dynamics(model, case.q, case.oracle.v, a, case.constraints)
    named = dl.constrained_inverse_dynamics(model, case.q, case.oracle.v, a, case.constraints, actuated=model.joint_names[1:])
    indexed = dl.constrained_inverse_dynamics(model, case.q, case.oracle.v, a, case.constraints, actuated=np.arange(6, model.nv))
    assert np.array_equal(default.torques, named.torques)
    assert np.array_equal(default.torques, indexed.torques)
    assert (default.torques[:6] == 0).all()
    assert (default.torques[6:] != 0).all()


# ---- what cannot be -------------------------------------------------------------------------------------------------------------


def test_motion_without_enough_motors_is_told():
    model = dl.load("go2")
    q, v = model.neutral(), model.zero_velocity()
    done = dl.constrained_inverse_dynamics(model, q, v, v, [])
    assert done.status == "underactuated"
    # in the air its weight is missing
    assert np.isclose(done.residuals.unactuated, model.mass * -model.gravity[2], rtol=1e-9)
    assert "actuate" in done.advice
    falling = np.zeros(model.nv)
    falling[:3] = model.gravity
    assert dl.constrained_inverse_dynamics(model, q, v, falling, []).status == "solved"


def test_acceleration_that_breaks_constraints_is_told_and_can_be_repaired():
    case = moving(closed.named("cassie"))
    model, v = case.model, case.oracle.v
    a = case.rng.standard_normal(model.nv)
    done = dl.constrained_inverse_dynamics(model, case.q, v, a, model.loops, actuated=range(model.nv))
    assert done.status == "violates_constraints"
    G = dl.DelassusOperator(model, model.loops, damping=1e-9)
    G.update(case.q)
    repaired = a - dl.OperationalSpace(G, iterations=3).pseudo_inverse @ (
        G.jacobian @ a + dl.constraint_bias(model, case.q, v, model.loops)
    )
    done = dl.constrained_inverse_dynamics(model, case.q, v, repaired, G, actuated=range(model.nv))
    assert done.status == "solved"
    assert done.residuals.primal < 1e-8


def test_baumgarte_gains_are_part_of_what_is_wanted():
    model = dl.scenes.box_stack(1)
    pin = dl.Connect(model, 1, other_point=(0, 0, 0), baumgarte=(100.0, 20.0))
    q, v = model.neutral(), np.array([0.3, 0, 0, 0, 0, 0])
    error = dl.point_position(model, q, 1)
    a = np.zeros(6)
    a[:3] = -20 * v[:3] - 100 * error
    assert dl.constrained_inverse_dynamics(model, q, v, a, [pin]).status == "solved"
    assert dl.constrained_inverse_dynamics(model, q, v, 0 * a, [pin]).status == "violates_constraints"


def test_no_constraints_and_one_body_are_the_tree():
    model = dl.scenes.chain(1)
    done = dl.constrained_inverse_dynamics(model, [0.4], [1.0], [2.0], [])
    agree(done.torques, dl.inverse_dynamics(model, np.array([0.4]), np.array([1.0]), np.array([2.0])), 1e-15)
    assert (done.status, done.forces.shape, done.constraint_forces, done.rank) == ("solved", (0,), (), 0)
    none = dl.constrained_inverse_dynamics(model, [0.4], [1.0], [2.0], [], actuated=[])
    assert none.status == "underactuated"
    held = dl.constrained_inverse_dynamics(
        model, [0.4], [0.0], [0.0], [dl.Connect(model, 1, point=(0, 0, -0.2))], actuated=[], minimize="torques"
    )
    assert held.status == "solved"
