"""Statuses of constrained dynamics on random mechanisms of ten families, light parts and any units, against both equations in extended precision."""

import numpy as np
import pytest

import delassus as dl
from oracles.mechanisms import FAMILIES, random_case

EXACT = ["auto", "lcaba", "kkt", "prox-ltl", "caba", "prox-ltls", "prox-pv", "pv-early"]
STATUSES = ("solved", "redundant", "infeasible_least_squares", "iteration_limit", "stalled")


def check(seed):
    """No method says solved of equations that do not hold to 1e-9; returns the family and the status of "auto"."""
    case = random_case(seed)
    exact, found = case.exact(), {}
    for method in EXACT:
        try:
            result = dl.constrained_dynamics(case.model, case.q, case.v, case.tau, case.constraints, method=method)
        except dl.errors.ArgumentError:
            continue  # rows between bodies are not for this method
        found[method] = result.status
        assert result.status in STATUSES
        if result.status == "solved":
            assert max(exact.residuals(result.acceleration, result.forces)) <= 1e-9, method
        else:
            assert result.advice
    assert len(found) >= 4
    return case.family, found["auto"]


@pytest.mark.parametrize("seed", range(120))
def test_nobody_says_solved_of_equations_that_do_not_hold(seed):
    check(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(0, 5000, 100))
def test_nobody_says_solved_of_equations_that_do_not_hold_in_many_mechanisms(start):
    for seed in range(start, start + 100):
        check(seed)


@pytest.mark.exhaustive
def test_auto_solves_nearly_every_regular_mechanism():
    """At singular positions rows may contradict each other; elsewhere "auto" ends solved or redundant in 99 of 100."""
    ends = [check(seed) for seed in range(10_000, 11_000)]
    regular = [status for family, status in ends if family != "singular"]
    assert sum(status in ("solved", "redundant") for status in regular) >= 0.99 * len(regular)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f != "singular"])
def test_auto_solves_mechanisms_of_usual_parts(family):
    for seed in range(FAMILIES.index(family), 80, len(FAMILIES)):
        case = random_case(seed, units=(1.0, 1.0, 1.0), light=0.1)
        result = dl.constrained_dynamics(case.model, case.q, case.v, case.tau, case.constraints)
        assert case.family == family
        assert result.status == "solved"
        assert max(case.exact().residuals(result.acceleration, result.forces)) <= 1e-11


@pytest.mark.parametrize("seed", [0, 1, 2, 6, 15, 25])
def test_the_measure_sees_a_wrong_acceleration_of_the_lightest_part(seed):
    case = random_case(seed, light=1e-9)
    exact = case.exact()
    result = dl.constrained_dynamics(case.model, case.q, case.v, case.tau, case.constraints, method="kkt")
    assert result.status == "solved"
    assert max(exact.residuals(result.acceleration, result.forces)) <= 1e-11
    for k in range(case.model.nv):
        wrong = result.acceleration.copy()
        size = abs(wrong[k]) + float(exact.free_size[k])
        wrong[k] += 1e-3 * size
        if size > 0:
            assert max(exact.residuals(wrong, result.forces)) > 1e-9


@pytest.mark.parametrize("seed", range(5, 60, 10))
def test_delta_robots_with_light_rods_are_solved(seed):
    """Along a rod of inertia 1e-12 nothing but the platform and an arm give way, across it the rod alone does."""
    case = random_case(seed, light=1e-12)
    result = dl.constrained_dynamics(case.model, case.q, case.v, case.tau, case.constraints)
    assert case.family == "delta"
    assert result.status in ("solved", "redundant")
    if result.status == "solved":
        assert max(case.exact().residuals(result.acceleration, result.forces)) <= 1e-9


@pytest.mark.parametrize("seed", [2, 5, 7, 17, 25, 47])
def test_states_of_a_batch_end_as_they_do_alone(seed):
    case = random_case(seed)
    rng = np.random.default_rng(seed)
    tau = case.tau * rng.uniform(0.5, 2.0, (9, 1))
    many = dl.BatchConstrainedDynamics(case.model, case.constraints, 9).solve(np.tile(case.q, (9, 1)), np.tile(case.v, (9, 1)), tau)
    for k in range(9):
        one = dl.constrained_dynamics(case.model, case.q, case.v, tau[k], case.constraints)
        assert (many.status[k] == "solved") == (one.status == "solved")
        if many.status[k] == "solved":
            exact = case.with_torques(tau[k]).exact()
            assert max(exact.residuals(many.acceleration[k], many.forces[k])) <= 1e-9


@pytest.mark.parametrize("units", [(1.0, 1.0, 1.0), (1e9, 1.0, 1.0), (1e-9, 1.0, 1.0), (1.0, 1e3, 1.0), (1.0, 1.0, 1e-3)])
@pytest.mark.parametrize("seed", range(0, 40, 3))
def test_single_precision_says_solved_only_of_what_holds(seed, units):
    """256 roundings of float32 are 3e-5: what converges is right to a few times that."""
    case = random_case(seed, units=units, light=0.1)
    dynamics = dl.ConstrainedDynamics(case.model, case.constraints, dtype=np.float32)
    result = dynamics.solve(case.q.astype(np.float32), case.v.astype(np.float32), case.tau.astype(np.float32))
    assert np.isfinite(result.acceleration).all()
    if result.status == "solved":
        assert max(case.exact().residuals(result.acceleration, result.forces)) <= 3e-4
