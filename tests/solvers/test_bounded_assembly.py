"""Assembly within joint ranges and with soft targets: against closed forms of a two-link arm and SciPy's SLSQP."""

import numpy as np
import pytest
from scipy.optimize import minimize

import delassus as dl


def arm(ranges=((-3.0, 3.0), (-3.0, 3.0))):
    """Two links of 1 m and 0.8 m that turn about y, from the origin along −z."""
    b = dl.ModelBuilder("arm")
    b.add_body("upper", "world", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    b.add_joint("upper", "hinge", name="shoulder", axis=(0, 1, 0), range=ranges[0])
    b.add_body("lower", "upper", position=(0, 0, -1), mass=1.0, com=(0, 0, -0.4), inertia=(0.05, 0.05, 0.01))
    b.add_joint("lower", "hinge", name="elbow", axis=(0, 1, 0), range=ranges[1])
    return b.build()


def tip(q):
    """Tip of the arm by its closed form, (x, z)."""
    return np.array([-np.sin(q[0]) - 0.8 * np.sin(q[0] + q[1]), -np.cos(q[0]) - 0.8 * np.cos(q[0] + q[1])])


def reach(model, target):
    return dl.Connect(model, "lower", point=(0, 0, -0.8), other_point=(target[0], 0, target[1]))


def test_elbow_bends_the_way_its_range_allows():
    goal = tip([0.7, -1.1])
    for low, high in ((-2.5, -0.01), (0.01, 2.5)):
        model = arm(((-3.0, 3.0), (low, high)))
        # the start leans to the other way
        done = dl.close_loops(model, [0.2, -0.3 * np.sign(low + high)], [reach(model, goal)])
        assert done.status == "solved", done
        assert np.allclose(tip(done.configuration), goal, atol=1e-10)
        assert low <= done.configuration[1] <= high
        assert done.at_limit == ()
        free = dl.close_loops(model, [0.2, -0.3 * np.sign(low + high)], [reach(model, goal)], limits=False)
        assert free.status == "solved"
        assert np.sign(free.configuration[1]) == -np.sign(low + high)


def test_answer_within_its_ranges_is_the_one_without_them_bit_for_bit():
    model = arm()
    goals = [reach(model, tip([0.7, -1.1]))]
    a, b = (dl.close_loops(model, [0.2, -0.3], goals, limits=limits) for limits in (True, False))
    assert np.array_equal(a.configuration, b.configuration)


def test_out_of_range_goal_says_so():
    model = arm(((-0.5, 0.5), (-0.2, 0.2)))
    goal = np.array([1.8, 0.0])
    done = dl.close_loops(model, [0.0, 0.1], [reach(model, goal)])
    assert done.status == "not_closable"
    assert set(done.at_limit) == {"shoulder", "elbow"}
    assert "limits=False" in done.advice
    grid = np.array([[a, b] for a in np.linspace(-0.5, 0.5, 201) for b in np.linspace(-0.2, 0.2, 81)])
    assert np.linalg.norm(done.errors) == pytest.approx(min(np.linalg.norm(tip(q) - goal) for q in grid), rel=1e-6)


def test_reachable_soft_target_is_reached():
    model = arm()
    done = dl.close_loops(model, [0.2, -0.3], (), targets=[reach(model, tip([0.7, -1.1]))])
    assert done.status == "solved"
    assert np.abs(done.target_errors).max() < 1e-4
    assert np.allclose(tip(done.configuration), tip([0.7, -1.1]), atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_soft_targets_under_a_loop_and_ranges_are_the_minimum_that_slsqp_finds(seed):
    rng = np.random.default_rng(seed)
    b = dl.ModelBuilder("chain")
    for k in range(5):
        b.add_body(
            f"link{k}",
            f"link{k - 1}" if k else "world",
            position=(0, 0, -0.4) if k else (0, 0, 0),
            mass=1.0,
            com=(0, 0, -0.2),
            inertia=(0.02, 0.02, 0.01),
        )
        b.add_joint(f"link{k}", "hinge", axis=(0, 1, 0), range=(-0.9, 0.9))
    model = b.build()
    bent = rng.uniform(-0.7, 0.7, 5)

    def place(q, body, point):
        return dl.point_position(model, np.asarray(q), body, point)

    held = place(bent, "link4", (0, 0, -0.4))  # the end of the chain is pinned
    wish = place(bent, "link2", (0, 0, 0)) + rng.uniform(-0.4, 0.4, 3) * [1, 0, 1]
    pin = dl.Connect(model, "link4", point=(0, 0, -0.4), other_point=held)
    knee = dl.Connect(model, "link2", other_point=wish)
    start = np.clip(bent + 0.1 * rng.standard_normal(5), -0.9, 0.9)
    done = dl.close_loops(model, start, [pin], targets=[(knee, 2.0)])
    assert done.status == "solved", done
    assert np.abs(done.configuration).max() <= 0.9 + 1e-9
    assert np.abs(place(done.configuration, "link4", (0, 0, -0.4)) - held).max() < 1e-9

    def objective(q):
        return np.sum((place(q, "link2", (0, 0, 0)) - wish) ** 2)

    found = [
        minimize(
            objective,
            first,
            bounds=[(-0.9, 0.9)] * 5,
            constraints={"type": "eq", "fun": lambda q: (place(q, "link4", (0, 0, -0.4)) - held)[[0, 2]]},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-14},
        )
        for first in (start, done.configuration)
    ]
    best = min(f.fun for f in found if f.success)
    assert np.sum(done.target_errors**2) <= best + 1e-4


def test_nearest_within_ranges_is_the_minimum_that_slsqp_finds():
    model = arm(((-3.0, 3.0), (-0.4, 0.4)))
    # hold the height of the tip only: one row, so that a line of answers is left
    rod = dl.Distance(model, "lower", point=(0, 0, -0.8), other_point=(0, 0, 3.0), length=4.5)
    start = np.array([0.1, 1.2])
    done = dl.close_loops(model, start, [rod])
    assert done.status == "solved"
    M = dl.mass_matrix(model, start)
    found = minimize(
        lambda q: (q - start) @ M @ (q - start),
        done.configuration,
        bounds=[(-3, 3), (-0.4, 0.4)],
        constraints={"type": "eq", "fun": lambda q: np.linalg.norm(tip(q) - [0, 3.0]) - 4.5},
        method="SLSQP",
    )
    d = done.configuration - start
    assert done.at_limit == ("elbow",)
    assert d @ M @ d == pytest.approx(found.fun, rel=1e-4)


def test_targets_that_have_no_position_are_refused():
    model = arm()
    with pytest.raises(dl.errors.ArgumentError, match=r"targets\[0\].*JointLimit"):
        dl.close_loops(model, [0, 0], (), targets=[dl.JointLimit(model, "elbow", "upper")])
    with pytest.raises(dl.errors.ArgumentTypeError, match=r"targets\[0\]"):
        dl.close_loops(model, [0, 0], (), targets=["elbow"])
