"""`solved` is a certificate: of Coulomb's law, by every method, in a measure that knows neither the unit of mass nor that of speed."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError
from oracles.contacts import project_cone as project
from oracles.contacts import random_problem, residuals, sets_of

COULOMB = ["admm", "newton", "pgs", "interior"]
METHODS = [*COULOMB, "apgd", "lcp"]


def natural(r):
    return r.residuals.natural


def test_a_point_that_slides_between_two_corners_is_approximate():
    """With four corners friction of a point that slides at 22.5° acts along one axis alone: by hand λ = m (1, −µ, 0), and the law asks for −µ along the way it slides."""
    mass, mu, angle = 2.0, 0.3, np.pi / 8
    u = np.array([np.cos(angle), np.sin(angle)])
    r = dl.solve_contacts(np.eye(3) / mass, [-1.0, *(5.0 * u)], [mu], method="lcp", directions=4)
    assert np.allclose(r.forces, mass * np.array([1.0, -mu, 0.0]), atol=1e-9)
    assert r.status == "approximate"
    assert "Coulomb" in r.advice
    assert r.own_residual < 1e-12
    # the same by the definition, in one contact
    assert natural(r) == pytest.approx(residuals(np.eye(3) / mass, np.array([-1.0, *(5.0 * u)]), ((0, mu),), (), r.forces)[3], rel=1e-12)
    assert natural(r) > 0.05
    exact = dl.solve_contacts(np.eye(3) / mass, [-1.0, *(5.0 * u)], [mu])
    assert np.allclose(exact.forces, mass * np.array([1.0, *(-mu * u)]), atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_solved_is_said_of_coulombs_law_alone_and_the_residuals_are_its(method):
    said = set()
    for seed in range(60):
        p, _, _ = random_problem(np.random.default_rng(seed))
        r = dl.solve_contacts(p.G, p.g, p.friction, method=method)
        found = residuals(p.G, p.g, p.cones, (), r.forces)
        # products in another order: rounding of G λ
        assert np.allclose(found, [r.residuals.primal, r.residuals.dual, r.residuals.complementarity, natural(r)], rtol=1e-6, atol=1e-12)
        assert (r.status == "solved") == (max(*found[:2], found[3] / 10) <= r.tolerance)
        said.add(r.status)
    assert said == ({"solved"} if method in COULOMB else {"solved", "approximate"})


def cassie(seed=0):
    s = dl.scenes.load("cassie-standing-friction")
    hinge = next(j.name for j in s.model.joints if j.type == "hinge")
    constraints = [*s.constraints, dl.JointLimit(s.model, hinge, "lower")]
    G = dl.DelassusOperator(s.model, constraints)
    G.update(s.q)
    v = 0.1 * np.random.default_rng(seed).standard_normal(s.model.nv)
    return G.to_matrix(), G.jacobian @ v, constraints


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("heavier", [1e-12, 1e-6, 1e6, 1e12])
def test_the_unit_of_mass_changes_nothing_but_the_forces(method, heavier):
    """σ = (G / h) (h λ) + g: the same velocities, forces h times as large, the same status."""
    for seed in range(15):
        p, _, _ = random_problem(np.random.default_rng(seed))
        one = dl.solve_contacts(p.G, p.g, p.friction, method=method)
        other = dl.solve_contacts(p.G / heavier, p.g, p.friction, method=method)
        assert other.status == one.status
        # rounding may end an iteration earlier or later: both within the tolerance, which the spread of G's eigenvalues carries over
        w = np.linalg.eigvalsh(p.G)
        assert np.abs(other.velocities - one.velocities).max() <= 100 * one.tolerance * w[-1] / w[0]
        assert np.abs(other.forces / heavier - one.forces).max() <= 100 * one.tolerance * w[-1] / w[0] ** 2


@pytest.mark.parametrize("method", ["admm", "newton", "interior"])
@pytest.mark.parametrize("heavier", [1e-9, 1.0, 1e9])
def test_the_unit_of_mass_changes_nothing_where_loops_limits_and_dry_friction_are(method, heavier):
    G, g, constraints = cassie()
    r = dl.solve_contacts(G / heavier, g, constraints, method=method, timestep=1e-3 * heavier, max_iterations=3000)
    assert r.status == "solved"
    found = residuals(G / heavier, g, *sets_of(constraints, 1e-3 * heavier), r.forces)
    assert max(*found[:2], found[3] / 10) <= 1.01 * r.tolerance
    assert np.allclose(found[3], natural(r), rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("method", COULOMB)
def test_forces_of_a_million_are_solved(method):
    """|λ · σ| of 1 N s at the tolerance is 1e-6 J, of 1e6 N s it is 1 J: the law is met as well."""
    mass, mu = 3e6, 0.5
    r = dl.solve_contacts(np.eye(3) / mass, [-1.0, 2.0, 1.0], [mu], method=method)
    u = np.array([2.0, 1.0]) / np.sqrt(5.0)
    assert r.status == "solved"
    assert np.allclose(r.forces / mass, [1.0, *(-mu * u)], atol=2e-5)
    rng = np.random.default_rng(4)
    for _ in range(10):
        p, forces, sigma = random_problem(rng, contacts=5)
        assert np.abs(forces).max() > 0.1  # times 1e7
        r = dl.solve_contacts(1e-7 * p.G, p.g, p.friction, method=method)
        assert r.status == "solved"
        w = np.linalg.eigvalsh(p.G)
        assert np.abs(r.velocities - sigma).max() <= 100 * r.tolerance * w[-1] / w[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("speed", [1e-6, 1e-8, 1e6, 1e9])
def test_the_unit_of_speed_makes_solved_neither_trivial_nor_impossible(method, speed):
    solved = 0
    for seed in range(20):
        p, _, sigma = random_problem(np.random.default_rng(seed))
        r = dl.solve_contacts(p.G, speed * p.g, p.friction, method=method)
        top = speed * np.abs(p.g).max()
        assert 1e-11 * top <= r.tolerance <= max(1.001e-4 * top, 1e-11 * top)
        w = np.linalg.eigvalsh(p.G)
        if r.status == "solved":
            solved += 1
            assert np.abs(r.velocities - speed * sigma).max() <= 100 * r.tolerance * w[-1] / w[0]
    # an interior point comes within some 1e-10 of |g|, no nearer, and says so
    assert solved >= {"lcp": 1, "apgd": 1, "interior": 12}.get(method, 20)


def test_velocities_of_rounding_are_not_pursued():
    """A millionth of the tolerance and less: loops whose rows contradict each other by rounding are not taken for contradictory ones."""
    r = dl.solve_contacts(np.ones((3, 3)), [1e-16, 1e-16, -1e-16], [0.5])
    assert (r.status, r.iterations) == ("solved", 0)
    assert r.tolerance == pytest.approx(1e-12)


def test_nothing_moves_and_nothing_is_asked():
    for method in METHODS:
        r = dl.solve_contacts(np.eye(3), np.zeros(3), [0.5], method=method)
        assert r.status == "solved"
        assert not r.forces.any()


def test_a_matrix_that_a_file_rounded_is_symmetrized_on_request():
    p, _, _ = random_problem(np.random.default_rng(11), contacts=4)
    rng = np.random.default_rng(0)
    rounded = p.G + 1e-5 * np.abs(p.G).max() * rng.uniform(-1, 1, p.G.shape)
    for method in METHODS:
        with pytest.raises(ArgumentError, match="symmetrize=True"):
            dl.solve_contacts(rounded, p.g, p.friction, method=method)
        r = dl.solve_contacts(rounded, p.g, p.friction, method=method, symmetrize=True)
        half = dl.solve_contacts((rounded + rounded.T) / 2, p.g, p.friction, method=method)
        assert np.array_equal(r.forces, half.forces)
        assert r.status == half.status
    # more than rounding is a mistake, also on request
    lopsided = p.G.copy()
    lopsided[0, 1] += 0.5 * np.abs(p.G).max()
    for symmetrize in (False, True):
        with pytest.raises(ArgumentError, match=r"more than rounding"):
            dl.solve_contacts(lopsided, p.g, p.friction, symmetrize=symmetrize)


def test_the_certificate_costs_a_foreign_operator_one_product_more():
    """Its diagonal takes a product a row and is found once, not again for the certificate."""
    p, _, _ = random_problem(np.random.default_rng(3), contacts=6)
    products = []

    class Counted:
        shape, damping = p.G.shape, 0.0

        def __matmul__(self, x):
            products.append(1)
            return p.G @ x

        def solve(self, y):
            return np.linalg.solve(p.G + np.diag(np.broadcast_to(self.damping, len(y))), y)

    r = dl.solve_contacts(Counted(), p.g, p.friction)
    assert r.status == "solved"
    assert len(products) <= len(p.g) + 8  # ADMM itself judges what it starts from and each candidate near the tolerance


def test_forces_so_large_that_rounding_hides_the_velocities_are_not_certified():
    """A body between two walls that it leaves with 0.1 m/s: forces of 1e16 N s from both cancel, λ − σ / d is λ to the last digit, and yet nothing may push what opens."""
    G = np.zeros((6, 6))
    G[::3, ::3] = [[1.0, -1.0], [-1.0, 1.0]]
    G += np.diag([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    g = np.array([0.1, 0, 0, 0.1, 0, 0])
    for method in METHODS:
        r = dl.solve_contacts(G, g, [0.0, 0.0], method=method, warm_start=[1e16, 0, 0, 1e16, 0, 0])
        assert r.status != "solved" or np.abs(r.forces).max() < 1e-5, method
    rng = np.random.default_rng(7)
    for _ in range(300):
        # walls that come nearer to each other: no forces can do it, and those found are as large as they like
        g[::3] = -rng.uniform(1e-4, 1e-1, 2)
        for method in ("interior", "pgs", "admm"):
            assert dl.solve_contacts(G, g, [0.0, 0.0], method=method, max_iterations=60).status != "solved"


def test_infeasible_is_said_of_nothing_that_another_method_solves():
    """Singular problems with friction, where forces may run far before the tangential velocities catch them."""
    rng = np.random.default_rng(7)
    said = 0
    for _ in range(700):
        n = int(rng.integers(1, 5))
        A = rng.standard_normal((3 * n, int(rng.integers(1, 3 * n + 1))))
        A[3:] = A[:3][rng.integers(0, 3, 3 * n - 3)]
        G, g = A @ A.T, rng.standard_normal(3 * n)
        mu = rng.choice([0.0, 0.1, 1.0, 50.0], n)
        if dl.solve_contacts(G, g, mu, method="admm", max_iterations=400).status == "infeasible":
            said += 1
            assert all(dl.solve_contacts(G, g, mu, method=m).status != "solved" for m in ("pgs", "interior"))
    assert said > 0


@pytest.mark.parametrize("most", [1, 3, 10])
def test_iterations_that_end_early_leave_nothing_worse_than_the_start(most):
    """The best forces on the way count, the first among them."""

    def worst(r):
        return max(r.residuals.primal, r.residuals.dual, natural(r) / 10)

    for seed in range(30):
        p, forces, _ = random_problem(np.random.default_rng(seed), contacts=6)
        start = forces + 1e-7 * np.random.default_rng(seed).standard_normal(len(forces)) * np.abs(forces).max()
        at = residuals(p.G, p.g, p.cones, (), np.concatenate([project(start[r : r + 3], mu) for r, mu in p.cones]))
        for method in ("admm", "newton"):
            r = dl.solve_contacts(p.G, p.g, p.friction, method=method, warm_start=start, max_iterations=most, tolerance=1e-14)
            assert worst(r) <= 1.0001 * max(at[0], at[1], at[3] / 10) + 1e-13


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("start", [None, [-1.0, 0.0, 0.0]])
def test_a_contact_without_friction_never_pulls(method, start):
    """It opens straight away with 1 m/s: a force of −1 N s would stop it, and its tangential part is zero to the bit."""
    r = dl.solve_contacts(np.eye(3), [1.0, 0.0, 0.0], [0.0], method=method, warm_start=start)
    assert r.status == "solved"
    assert not r.forces.any()
    pulled = residuals(np.eye(3), np.array([1.0, 0.0, 0.0]), ((0, 0.0),), (), np.array([-1.0, 0.0, 0.0]))
    assert pulled[0] == 1.0


def test_newton_needs_few_iterations_for_many_digits():
    """With the exact derivative of the projection, 1e-10 takes some 80 products a problem of 24 rows; with a wrong one, hundreds."""
    problems = [random_problem(np.random.default_rng(seed), contacts=8)[0] for seed in range(20)]
    results = [dl.solve_contacts(p.G, p.g, p.friction, method="newton", tolerance=1e-10) for p in problems]
    assert {r.status for r in results} == {"solved"}
    assert np.mean([r.iterations for r in results]) < 130
