"""Assembly: loops close to 1e-10 from anywhere they can, at dead centres too; the answer is the nearest; what cannot close says so."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.solvers.assembly import _quasi_newton
from delassus.solvers.bounded_assembly import inverse_derivative as _inverse_derivative
from oracles import closed
from oracles.dense import Mechanism, rotation

CLOSED = 1e-10


def error(case, q):
    """Largest position error by definition."""
    oracle = Mechanism(case.model, q)
    return max(float(np.abs(m.error(oracle)).max()) for m in case.made)


def steepness(case, start, q):
    """‖N M⁻¹ ∂(½ dᵀ M₀ d)‖ / ‖d‖ in the metric of M, N by singular values, the gradient by central differences."""
    M0, model = Mechanism(case.model, start).mass_matrix, case.model

    def half_square(v):
        d = dl.difference(model, start, dl.integrate(model, q, v))
        return 0.5 * d @ M0 @ d

    h = 1e-5
    gradient = np.array([half_square(h * e) - half_square(-h * e) for e in np.eye(model.nv)]) / (2 * h)
    here = closed.Closed(Mechanism(model, q), case.made, case.rng)
    t = here.projector @ np.linalg.solve(here.M, gradient)
    return np.sqrt(t @ here.M @ t / max(2 * half_square(np.zeros(model.nv)), 1e-300))


def pushed(case, size):
    return dl.integrate(case.model, case.q, size * case.rng.standard_normal(case.model.nv))


# ---- it closes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.01, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("name", closed.NAMED)
def test_named_mechanism_closes(name, size):
    for seed in range(4):
        case = closed.named(name, seed)
        start = pushed(case, size)
        done = dl.close_loops(case.model, start)
        assert done.status == "solved", done
        assert done.residual <= CLOSED
        assert error(case, done.configuration) <= CLOSED
        assert np.allclose(done.errors, np.concatenate([m.error(Mechanism(case.model, done.configuration)) for m in case.made]), atol=1e-13)
        d = dl.difference(case.model, start, done.configuration)
        assert np.isclose(done.distance, np.sqrt(d @ Mechanism(case.model, start).mass_matrix @ d), rtol=1e-6, atol=1e-12)
        assert done.history[0] == pytest.approx(error(case, start), rel=1e-9)
        assert done.history[-1] <= CLOSED


@pytest.mark.parametrize("block", range(8))
def test_random_loops_close(block):
    """200 in all: connects, welds, hinges and distances on random trees; all but a few of them also reach the nearest configuration."""
    reached = []
    for seed in range(25 * block, 25 * block + 25):
        case = closed.random_loop(seed)
        start = pushed(case, 0.1)
        done = dl.close_loops(case.model, start, case.constraints)
        assert done.status == "solved", (seed, done)
        assert error(case, done.configuration) <= CLOSED, seed
        reached.append(done.slope < 1e-6)
        if reached[-1] and done.distance > 1e-6:
            assert steepness(case, start, done.configuration) < 1e-4, seed
    assert sum(reached) >= 24


def test_cassie_closes_from_any_pose():
    model = dl.load("cassie")
    for seed in range(60):
        done = dl.close_loops(model, model.random(seed))
        assert done.status == "solved"
        assert done.residual <= CLOSED
        assert np.abs(dl.constraint_error(model, done.configuration, model.loops)).max() <= CLOSED


@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.parametrize("turn", [np.pi / 2, -np.pi / 2])
def test_rods_that_lie_flat_are_closed_and_stay(n, turn):
    model = dl.scenes.n_four_bar(n)
    q = closed.rods(model, turn)
    done = dl.close_loops(model, q)
    assert done.status == "solved"
    assert done.iterations == 0
    assert np.array_equal(done.configuration, q)
    rng = np.random.default_rng(n)
    for size in (1e-8, 1e-4, 1e-2, 0.2):
        done = dl.close_loops(model, q + size * rng.standard_normal(model.nv))
        assert done.status == "solved", (size, done)
        assert done.residual <= CLOSED


# ---- it is the nearest -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_four_bar_goes_to_the_nearest_point_of_its_curve(seed):
    """The curve by circles that meet, both branches, a point every 0.1 mrad."""
    model, rng = dl.scenes.four_bar(), np.random.default_rng(seed)
    start = closed.four_bar_pose(model, rng.uniform(-3, 3)) + 0.05 * rng.standard_normal(3)
    done = dl.close_loops(model, start)
    M0 = Mechanism(model, start).mass_matrix
    curve = [closed.four_bar_pose(model, c, up=up) for c in start[0] + np.linspace(-0.3, 0.3, 6001) for up in (1.0, -1.0)]
    gaps = (np.array(curve) - start + np.pi) % (2 * np.pi) - np.pi
    best = np.sqrt(np.einsum("ki,ij,kj->k", gaps, M0, gaps).min())
    assert done.slope < 1e-6
    # the grid misses the best by half a step at most, square of distance
    assert abs(done.distance - best) <= 1e-6


@pytest.mark.parametrize("name", ["four_bar", "n_four_bar", "cassie"])
def test_nothing_along_the_loops_is_nearer(name):
    for seed in range(3):
        case = closed.named(name, seed)
        start = pushed(case, 0.1)
        done = dl.close_loops(case.model, start)
        assert done.slope < 1e-6
        assert steepness(case, start, done.configuration) < 1e-4
        rough = dl.close_loops(case.model, start, nearest=False)
        assert (rough.status, rough.slope) == ("solved", 1.0)
        assert done.distance <= rough.distance * (1 + 1e-9)


def test_free_body_pinned_at_a_point_moves_as_closed_form():
    """A box pulled by its centre only translates."""
    model = dl.scenes.box_stack(1)
    q = model.random(4)
    target = q[:3] + np.array([0.3, -0.2, 0.5])
    done = dl.close_loops(model, q, [dl.Connect(model, 1, other_point=target)])
    assert np.allclose(done.configuration, [*target, *q[3:]], atol=1e-10)
    assert np.isclose(done.distance, np.sqrt(0.09 + 0.04 + 0.25), rtol=1e-9)


def test_memory_of_steps_knows_the_last_one():
    """What t lost on the last step leads to that step, the secant condition; in the end to all of them where the bend is constant."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((5, 5, 2))
    M, bend = (a @ a.T + np.eye(5) for a in np.moveaxis(A, -1, 0))
    steps = rng.standard_normal((4, 5))
    memory = [(s, np.linalg.solve(M, bend @ s)) for s in steps]
    assert np.allclose(_quasi_newton(memory, M, memory[-1][1]), steps[-1], atol=1e-12)
    # conjugate steps: all of them
    L = np.linalg.inv(np.linalg.cholesky(bend)).T
    memory = [(s, np.linalg.solve(M, bend @ s)) for s in L.T]
    for s, y in memory:
        assert np.allclose(_quasi_newton(memory, M, y), s, atol=1e-10)
    t = rng.standard_normal(5)
    assert np.array_equal(_quasi_newton([], M, t), t)
    # steps on which t grew are left out
    assert np.array_equal(_quasi_newton([(t, -t)], M, t), t)


def test_derivative_of_rotation_vectors():
    rng = np.random.default_rng(0)

    def log(R):
        return Rotation.from_matrix(R).as_rotvec()

    def turn(x):
        angle = np.linalg.norm(x)
        return rotation([np.cos(angle / 2), *(np.sin(angle / 2) * x / angle)]) if angle else np.eye(3)

    for size in (1e-4, 0.5, 2.5):
        x = size * rng.standard_normal(3) / np.sqrt(3)
        h = 1e-6
        columns = [(log(turn(x) @ turn(h * e)) - log(turn(x) @ turn(-h * e))) / (2 * h) for e in np.eye(3)]
        assert np.allclose(_inverse_derivative(x), np.transpose(columns), atol=1e-8)
    assert np.array_equal(_inverse_derivative(np.zeros(3)), np.eye(3))
    # both formulas where they meet
    for size in (0.00999, 0.01001):
        x = size * np.array([0.6, 0.0, 0.8])
        X = np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
        # D D⁻¹ = 1 with D = 1 − (1 − cos θ)/θ² X + (θ − sin θ)/θ³ X²
        D = np.eye(3) - (1 - np.cos(size)) / size**2 * X + (size - np.sin(size)) / size**3 * X @ X
        assert np.allclose(D @ _inverse_derivative(x), np.eye(3), atol=1e-12)


# ---- dead centres, and what cannot close ---------------------------------------------------------------------------------------


def arm():
    """Two bars of 1 m hanging straight down."""
    b = dl.ModelBuilder("arm")
    for k, parent in enumerate(("world", "upper")):
        name = ("upper", "lower")[k]
        b.add_body(name, parent, position=(0, 0, -float(k)), mass=1, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
        b.add_joint(name, "hinge", axis=(0, 1, 0))
    return b.build()


@pytest.mark.parametrize("height", [-1.0, -1.9, -1.999999, 0.5])
def test_straight_arm_buckles(height):
    """The hand must go along the arm, where no motion takes it to first order."""
    model = arm()
    hand = dl.Connect(model, "lower", point=(0, 0, -1), other_point=(0, 0, height))
    done = dl.close_loops(model, [0.0, 0.0], [hand])
    assert done.status == "solved"
    assert np.allclose(dl.point_position(model, done.configuration, "lower", (0, 0, -1)), [0, 0, height], atol=CLOSED)
    # law of cosines: 2 + 2 cos of the elbow
    assert np.isclose(2 + 2 * np.cos(done.configuration[1]), height**2, atol=1e-9)


def test_straight_arm_reaches_exactly_its_length():
    model = arm()
    done = dl.close_loops(model, [0.4, -0.7], [dl.Connect(model, "lower", point=(0, 0, -1), other_point=(0, 0, -2))])
    assert done.status == "solved"
    assert np.abs(done.configuration).max() < 1e-4


@pytest.mark.parametrize("start", [(0.0, 0.0), (0.4, -0.7), (2.0, 1.0)])
def test_arm_too_short_stretches_towards_its_goal(start):
    """The least error is what is missing of the length."""
    model = arm()
    done = dl.close_loops(model, start, [dl.Connect(model, "lower", point=(0, 0, -1), other_point=(1.5, 0, -2.0))])
    assert done.status == "not_closable"
    assert np.isclose(np.sqrt(2 * done.least_squares), 0.5, atol=1e-9)
    assert np.isclose(np.linalg.norm(done.errors), 0.5, atol=1e-9)
    assert np.allclose(np.sin(done.configuration), [-0.6, 0.0], atol=1e-5)
    assert np.allclose(np.cos(done.configuration), [0.8, 1.0], atol=1e-5)
    assert done.stationarity < 1e-6
    assert done.history[-1] == done.residual
    assert done.advice


def test_contradiction_ends_half_way():
    model = dl.scenes.box_stack(1)
    ends = [dl.Connect(model, 1, other_point=(x, 0, 1)) for x in (-1.0, 3.0)]
    done = dl.close_loops(model, model.neutral(), ends)
    assert done.status == "not_closable"
    assert np.isclose(done.residual, 2.0, atol=1e-9)
    assert np.allclose(done.configuration[:3], [1, 0, 1], atol=1e-6)


def test_error_that_nothing_moves_is_told():
    model = dl.scenes.chain(1)
    fixed = dl.Connect(model, 0, other_point=(1.0, 0, 0))
    done = dl.close_loops(model, [0.3], [fixed])
    assert (done.status, done.residual) == ("not_closable", 1.0)
    assert done.configuration[0] == 0.3


def test_too_few_steps_are_told():
    case = closed.named("cassie")
    done = dl.close_loops(case.model, pushed(case, 0.1), max_iterations=2)
    assert done.status == "iteration_limit"
    assert done.iterations == 2
    assert done.residual > CLOSED
    assert done.residual < done.history[0]
    assert "max_iterations" in done.advice


# ---- how it is called -----------------------------------------------------------------------------------------------------------


def test_without_loops_nothing_moves():
    model = dl.load("iiwa")
    q = model.random(1)
    done = dl.close_loops(model, q)
    assert (done.status, done.residual, done.distance, done.errors.shape) == ("solved", 0.0, 0.0, (0,))
    assert np.array_equal(done.configuration, q)


def test_repeated_loops_change_nothing():
    case = closed.named("n_four_bar", 1)
    start = pushed(case, 0.2)
    once, twice = (dl.close_loops(case.model, start, [*case.model.loops] * k) for k in (1, 2))
    assert twice.status == "solved"
    assert np.allclose(once.configuration, twice.configuration, atol=1e-6)


def test_joint_can_be_held_and_a_foot_put_on_the_ground():
    model = dl.scenes.four_bar()
    crank = dl.JointCoupling(model, "crank_hinge", polynomial=(0.7, 0, 0, 0, 0))
    done = dl.close_loops(model, model.neutral(), [*model.loops, crank])
    assert done.status == "solved"
    assert np.allclose(done.configuration, closed.four_bar_pose(model, 0.7), atol=1e-9)
    box = dl.scenes.box_stack(1)
    q = np.array([0.3, 0.2, 1.0, 1, 0, 0, 0])
    corners = [dl.PointContact(box, 1, point=(x, y, -0.1), other_point=(0, 0, 0)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    assert np.allclose(dl.close_loops(box, q, corners).configuration, [0.3, 0.2, 0.1, 1, 0, 0, 0], atol=1e-10)


def test_an_operator_is_reused_and_keeps_its_damping():
    case = closed.named("cassie")
    start = pushed(case, 0.1)
    G = dl.DelassusOperator(case.model, case.model.loops, damping=1e-3)
    done = dl.close_loops(case.model, start, G)
    assert np.array_equal(done.configuration, dl.close_loops(case.model, start).configuration)
    assert np.array_equal(G.damping, np.full(12, 1e-3))
    fresh = dl.DelassusOperator(case.model, case.model.loops)
    fresh.update(done.configuration)
    x = np.ones(12)
    assert np.allclose(G @ x, fresh @ x, rtol=1e-12)


def test_same_call_gives_the_same_bits():
    case = closed.named("cassie")
    start = pushed(case, 0.5)
    assert np.array_equal(*(dl.close_loops(case.model, start).configuration for _ in range(2)))


def test_far_from_the_origin_it_closes_too():
    model = dl.load("cassie")
    q = dl.integrate(model, model.keyframes["home"], 0.1 * np.random.default_rng(3).standard_normal(model.nv))
    q[:2] += 1000.0
    done = dl.close_loops(model, q)
    assert done.status == "solved"
    assert done.residual <= CLOSED
