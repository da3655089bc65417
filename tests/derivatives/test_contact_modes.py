"""The native equations of contacts in their modes, and on the central path: against dense NumPy, against each other, against differences."""

import numpy as np
import pytest

import delassus as dl
from delassus import _core
from delassus.solvers.contacts import _sets
from oracles.contact_modes import inverse_masses, tangents

ALWAYS_DENSE = 10**6


def random_problem(seed):
    """Cones of three, four and six rows, limits, dry friction and equalities, of more degrees of freedom than rows; solved."""
    rng = np.random.default_rng([seed, 5])
    cones, intervals, m = [], [], 0
    for _ in range(int(rng.integers(1, 7))):
        if rng.random() < 0.65:
            rows = int(rng.choice([3, 3, 4, 6]))
            cones.append((m, float(rng.choice([0.0, 0.2, 0.5, 1.0])), rows))
            m += rows
        else:
            kinds = [(0.0, np.nan), (-0.3, 0.3), (np.nan, np.nan), (np.nan, 0.5), (-0.2, 0.2)]
            intervals.append((m, *kinds[rng.integers(len(kinds))]))
            m += 1
    J = rng.standard_normal((m, m + 4))
    G, g = J @ J.T / m, rng.standard_normal(m)
    cones, intervals = np.array(cones, float).reshape(-1, 3), np.array(intervals, float).reshape(-1, 3)
    options = _core.ContactOptions(tolerance=1e-12, max_iterations=2000)
    r = _core.ContactSolver("auto", m, cones, intervals).solve(G, g, options, None)
    return (rng, G, g, cones, intervals, r) if r.outcome == 0 else None


def adjoint_error(rng, found, adjoints, directions):
    a, b = rng.standard_normal((2, found[0].size))
    bars = adjoints(a, b)
    sums = [(a * found[0]), (b * found[1]), *(-x * y for x, y in zip(bars, directions, strict=True))]
    return abs(sum(s.sum() for s in sums)) / max(sum(np.abs(s).sum() for s in sums), 1.0)


def test_modes_against_one_dense_system_of_forces_and_velocities():
    seen = set()
    for seed in range(120):
        problem = random_problem(seed)
        if problem is None:
            continue
        rng, G, _, cones, intervals, r = problem
        m = len(G)
        modes = _core.ContactModes64(m, cones, intervals)
        modes.find(G, r.forces, r.velocities)
        assert np.allclose(modes.inverse_masses, inverse_masses(G, cones, intervals))
        if any(modes.kinks):
            continue
        seen |= set(modes.modes)
        directions = rng.standard_normal(m), rng.standard_normal(len(cones)), rng.standard_normal(len(intervals))
        found = modes.tangents(*directions, 1, True)
        wanted = tangents(G, cones, intervals, r.forces, r.velocities, *directions)
        for x, y in zip(found, wanted, strict=True):
            assert np.abs(x - y).max() <= 1e-8 * max(np.abs(y).max(), 1.0), (seed, modes.modes)
        assert adjoint_error(rng, found, lambda a, b, modes=modes: modes.adjoints(a, b, 1, True), directions) <= 1e-13
    assert seen == {0, 1, 2, 3, 4}


def scene(name, push, tolerance=1e-10):
    """A stored scene under gravity, each velocity pushed at random: operator, sets, solution."""
    s = dl.scenes.load(name)
    rng = np.random.default_rng(1)
    G = dl.DelassusOperator(s.model, s.constraints)
    G.update(s.q)
    fall = dl.forward_dynamics(s.model, s.q, s.model.zero_velocity(), None)
    g = G.jacobian @ (0.01 * fall + push * rng.standard_normal(s.model.nv))
    r = dl.solve_contacts(G, g, timestep=0.01, tolerance=tolerance)
    assert r.status == "solved"
    return rng, s, G, g, r, _sets(len(g), s.constraints, s.model, 0.01)[:2]


@pytest.mark.parametrize(
    ("name", "push", "redundant", "tolerance"),
    [
        ("go2-standing", 0.3, False, 1e-12),
        ("go2-fallen-friction", 0.3, False, 1e-12),
        ("g1-standing", 0.3, True, 1e-11),
        ("g1-fallen", 0.3, True, 1e-11),
        ("box-stack", 0.3, True, 1e-8),  # thirty boxes: a condition of 1e6 besides what is singular
        ("box-pyramid", 0.0, True, 1e-9),  # 864 rows
    ],
)
def test_the_factor_of_an_operator_against_the_dense_one(name, push, redundant, tolerance):
    rng, s, G, g, r, sets = scene(name, push)
    m = len(g)
    dense, blocks = (_core.ContactModes64(m, *sets) for _ in range(2))
    dense.find(G.to_matrix(), r.forces, r.velocities)
    blocks.find(G._native, r.forces, r.velocities, 0, dense.inverse_masses)
    assert dense.dense
    assert not blocks.dense
    assert dense.redundant == blocks.redundant == redundant
    assert dense.modes == blocks.modes
    direction = G.jacobian @ rng.standard_normal(s.model.nv), rng.standard_normal(len(sets[0])), rng.standard_normal(len(sets[1]))
    a, b = rng.standard_normal((2, m))  # weights that no motion of joints has, as well
    for x, y in zip(
        dense.tangents(*direction, 1, True) + dense.adjoints(a, b, 1, True),
        blocks.tangents(*direction, 1, True) + blocks.adjoints(a, b, 1, True),
        strict=True,
    ):
        assert np.abs(x - y).max(initial=0.0) <= tolerance * max(np.abs(x).max(initial=0.0), 1.0)
    found = blocks.tangents(*direction, 1, True)
    assert adjoint_error(rng, found, lambda a, b: blocks.adjoints(a, b, 1, True), direction) <= 1e-11
    assert not blocks.dense  # no solution was so bad that it was given up


@pytest.mark.parametrize("push", [0.0, 0.3])
def test_a_factor_that_leaves_no_digits_is_not_used(push):
    """Stiff loops of Cassie: the equation is solved densely though it could be solved by blocks."""
    rng, s, G, g, r, sets = scene("cassie-standing", push)
    modes, dense = (_core.ContactModes64(len(g), *sets) for _ in range(2))
    modes.find(G._native, r.forces, r.velocities, 0)
    dense.find(G.to_matrix(), r.forces, r.velocities, 0, modes.inverse_masses)
    direction = G.jacobian @ rng.standard_normal(s.model.nv)
    for x, y in zip(modes.tangents(direction, None, None, 1, True), dense.tangents(direction, None, None, 1, True), strict=True):
        assert np.abs(x - y).max() <= 1e-11
    assert modes.dense


def test_inconsistent_directions_are_met_by_least_squares():
    """Two contacts at one place whose floors move apart: half of the difference each, as a pseudo-inverse has it."""
    G = np.block([[np.eye(3), np.eye(3)], [np.eye(3), np.eye(3)]])
    r = dl.solve_contacts(G, [-1.0, 0.1, 0.0] * 2, [1.0, 1.0], tolerance=1e-11)
    d = dl.ContactDerivatives(G, r, [1.0, 1.0])
    assert d.redundant
    assert d.modes == ("sticking", "sticking")
    found = d.jvp(dg=[-1.0, 0, 0, 0, 0, 0])
    assert np.allclose(found.forces, [0.25, 0, 0, 0.25, 0, 0])
    assert np.allclose(found.velocities, [-0.5, 0, 0, 0.5, 0, 0])


# ---- on the central path


def smoothed(G, g, cones, intervals, kappa, start, d=None, max_dense=ALWAYS_DENSE):
    s = _core.SmoothedContacts64(len(g), cones, intervals)
    assert s.find(G, g, kappa, start, max_dense, d)
    return s


@pytest.mark.parametrize("kappa", [1e-1, 1e-3, 1e-6])
def test_forces_on_the_central_path_obey_its_law(kappa):
    for seed in range(40):
        problem = random_problem(seed)
        if problem is None:
            continue
        _, G, g, cones, intervals, r = problem
        s = smoothed(G, g, cones, intervals, kappa, r.forces)
        d = s.inverse_masses
        assert np.allclose(s.velocities, G @ s.forces + g, atol=1e-12)
        for row, mu, n in cones:
            rows = slice(int(row), int(row + n))
            force, velocity = s.forces[rows], s.velocities[rows].copy()
            if mu == 0:
                assert force[0] * velocity[0] == pytest.approx(kappa, rel=1e-6)
                assert (force[1:] == 0).all()
                continue
            rounding = 0.3 * np.sqrt(kappa * d[int(row)])
            velocity[0] += mu * (np.sqrt(velocity[1:] @ velocity[1:] + rounding**2) - rounding)
            assert force @ velocity == pytest.approx(kappa, rel=1e-6)
            assert np.abs(mu**2 * force[0] * velocity[1:] + velocity[0] * force[1:]).max() <= 1e-6 * kappa
            assert np.linalg.norm(force[1:]) < mu * force[0]
        for row, lower, upper in intervals:
            force, velocity = s.forces[int(row)], s.velocities[int(row)]
            if np.isnan(lower) and np.isnan(upper):
                assert abs(velocity) <= 1e-10
            elif np.isnan(upper):
                assert (force - lower) * velocity == pytest.approx(kappa, rel=1e-6)
            elif np.isnan(lower):
                assert (upper - force) * velocity == pytest.approx(-kappa, rel=1e-6)


def compare_with_differences(kappa, rng, G, g, cones, intervals, r):
    m = len(g)
    s = smoothed(G, g, cones, intervals, kappa, r.forces)
    A = rng.standard_normal((m, m))
    dG, dg = 0.1 * (A + A.T), rng.standard_normal(m)
    dfriction = 0.1 * rng.standard_normal(len(cones)) * (cones[:, 1] > 0)
    lower, upper = 0.1 * rng.standard_normal((2, len(intervals)))
    directions = dG @ s.forces + dg, dfriction, lower, upper
    found = s.tangents(*directions, 1, True)
    assert adjoint_error(rng, found, lambda a, b: s.adjoints(a, b, 1, True), directions) <= 1e-13

    def moved(t):
        changed = cones + t * np.outer(dfriction, [0, 1, 0]), intervals + t * np.column_stack([0 * lower, lower, upper])
        x = smoothed(G + t * dG, g + t * dg, *changed, kappa, r.forces, s.inverse_masses)
        return x.forces, x.velocities

    h = 1e-5 * min(1.0, 30 * np.sqrt(kappa))
    for x, plus, minus in zip(found, moved(h), moved(-h), strict=True):
        wanted = (plus - minus) / (2 * h)
        assert np.abs(x - wanted).max() <= 1e-6 * max(np.abs(wanted).max(), 1.0)


@pytest.mark.parametrize("kappa", [1e-1, 1e-2, 1e-4, 1e-6])
def test_derivatives_on_the_central_path_against_differences(kappa):
    problems = [p for p in map(random_problem, range(30)) if p is not None]
    assert len(problems) >= 25
    for problem in problems:
        compare_with_differences(kappa, *problem)


def test_the_central_path_leads_to_the_modes():
    """Of derivatives too, in proportion to √κ or better."""
    compared = 0
    for seed in range(40):
        problem = random_problem(seed)
        if problem is None:
            continue
        rng, G, g, cones, intervals, r = problem
        modes = _core.ContactModes64(len(g), cones, intervals)
        modes.find(G, r.forces, r.velocities)
        if any(modes.kinks):
            continue
        dg = rng.standard_normal(len(g))
        wanted = modes.tangents(dg, None, None, 1, True)[0]
        errors = []
        for kappa in (1e-8, 1e-10):
            s = smoothed(G, g, cones, intervals, kappa, r.forces)
            errors.append(np.abs(s.tangents(dg, None, None, None, 1, True)[0] - wanted).max() / max(np.abs(wanted).max(), 1.0))
        assert errors[1] <= max(0.15 * errors[0], 1e-8), (seed, errors)
        assert errors[1] <= 1e-3
        compared += 1
    assert compared >= 30


@pytest.mark.parametrize("name", ["g1-standing-friction", "box-stack"])
def test_the_central_path_by_the_factor_of_an_operator(name):
    rng, s, G, g, r, sets = scene(name, 0.0)
    kappa, m = 1e-4, len(g)
    d = _core.ContactModes64(m, *sets)
    d.find(G.to_matrix(), r.forces, r.velocities)
    dense = smoothed(G.to_matrix(), g, *sets, kappa, r.forces, d.inverse_masses)
    blocks = smoothed(G._native, g, *sets, kappa, r.forces, d.inverse_masses, max_dense=0)
    assert dense.dense
    assert not blocks.dense
    direction = G.jacobian @ rng.standard_normal(s.model.nv)
    for x, y in zip(
        (dense.forces, *dense.tangents(direction, None, None, None, 1, True)),
        (blocks.forces, *blocks.tangents(direction, None, None, None, 1, True)),
        strict=True,
    ):
        assert np.abs(x - y).max() <= 1e-9 * np.abs(x).max()
