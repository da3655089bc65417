"""Constrained dynamics: proximal iterates against the dense recursion, exact ones against the KKT system."""

import numpy as np
import pytest

import delassus as dl
from delassus import textbook as tb
from oracles import rows
from oracles.cases import MODELS, RANDOM, Case, case
from oracles.compare import agree

NAMES = [*MODELS, *RANDOM]
PROXIMAL = {"prox-ltl": tb.prox_ltl, "lcaba": tb.lcaba, "prox-ltls": tb.prox_ltls, "prox-pv": tb.prox_pv, "caba": tb.constrained_aba}
ANY = ("prox-ltl", "lcaba")


class Problem:
    """Rows J ν̇ + γ = 0 on M ν̇ + c = τ + Jᵀ λ."""

    def __init__(self, c, bias=None):
        self.c, v = c, c.oracle.v
        self.tau = c.numbers(c.model.nv)
        self.pose = tb.Robot(c.model).at(c.oracle.q)
        self.rows = tb.Rows(self.pose, c.constraints)
        self.bias = dl.constraint_bias(c.model, c.oracle.q, v, c.constraints) if bias is None else bias
        k = tb.wanted(self.pose, self.rows, v[:, None], self.bias[:, None])
        self.given = (self.pose, self.rows, v[:, None], self.tau[:, None], k)
        self.free = np.linalg.solve(c.oracle.mass_matrix, self.tau - c.oracle.bias_forces)
        self.b = -(c.J @ self.free + self.bias)

    def moved(self, forces):
        return self.free + np.linalg.solve(self.c.oracle.mass_matrix, self.c.J.T @ forces)

    def proximal(self, mu, iterations):
        """λ⁺ = (G + 1/μ)⁻¹ (b + λ/μ) from zero."""
        eps = np.diag(np.broadcast_to(1 / np.asarray(mu), self.c.m))
        forces = np.zeros(self.c.m)
        for _ in range(iterations):
            forces = np.linalg.solve(self.c.G + eps, self.b + eps @ forces)
        return forces


def matches(motion, problem, forces, tolerance=1e-10):
    agree(motion.forces[:, 0], forces, tolerance)
    agree(motion.acceleration[:, 0], problem.moved(forces), tolerance)


@pytest.mark.parametrize("kinds", ["none", "contacts", "redundant", "loops"])
@pytest.mark.parametrize("name", NAMES)
def test_every_proximal_algorithm_does_the_same_iterations(name, kinds):
    problem = Problem(case(name, kinds))
    m = problem.c.m
    scale = 1 / np.abs(problem.c.G).max(initial=1e-3)
    for mu, iterations in ((2 * scale, 1), (scale, 3), (scale * problem.c.rng.uniform(0.5, 2, m), 2)):
        want = problem.proximal(mu, iterations)
        for key, method in PROXIMAL.items():
            if kinds != "loops" or key in ANY:
                motion = method(*problem.given, mu=mu, iterations=iterations)
                matches(motion, problem, want)
                assert motion.iterations == iterations
        if kinds != "loops" and iterations == 1:
            matches(tb.pv_soft(*problem.given, mu=mu), problem, want)


EXACT = ["go2", "atlas", "talos", "g1", "stem", "atlas_hands", "solo"]


def standing(name):
    """Rows that are independent: a weld and two points on three limbs, in the first state where they are."""
    for seed in range(20):
        c = case(name, "none", seed)
        leaves = [b for b in range(1, c.model.nbody) if b not in c.model.body_parent]
        made = (rows.weld(c.model, leaves[0], **rows.points(c.rng)), *(rows.connect(c.model, b, **rows.points(c.rng)) for b in leaves[-2:]))
        c = Case(c.oracle, made, c.rng)
        if np.linalg.cond(c.G) < 1e6:
            return c
    raise AssertionError("rows are dependent in every state")


@pytest.mark.parametrize("name", EXACT)
def test_exact_algorithms_solve_the_kkt_system(name):
    problem = Problem(standing(name))
    nv, m = problem.c.model.nv, problem.c.m
    KKT = np.block([[problem.c.oracle.mass_matrix, -problem.c.J.T], [problem.c.J, np.zeros((m, m))]])
    want = np.linalg.solve(KKT, np.concatenate([problem.tau - problem.c.oracle.bias_forces, -problem.bias]))
    for method in (tb.pv, tb.pv_early):
        motion = method(*problem.given)
        agree(motion.acceleration[:, 0], want[:nv], 1e-8)
        agree(motion.forces[:, 0], want[nv:], 1e-8)


@pytest.mark.parametrize("name", ["go2", "iiwa", "stem", "one box", "mixed"])
def test_early_elimination_leaves_out_rows_that_say_nothing_new(name):
    """Each row twice, and what they ask for is possible: the acceleration is that of each row once."""
    c = case(name, "none")
    made = rows.connect(c.model, c.model.nbody - 1, **rows.points(c.rng))
    twice, once = Case(c.oracle, (made, made), c.rng), Problem(Case(c.oracle, (made,), c.rng))
    problem = Problem(twice)
    problem.given = (*problem.given[:3], once.tau[:, None], problem.given[4])
    forces = np.linalg.lstsq(once.c.G, once.b, rcond=None)[0]
    motion = tb.pv_early(*problem.given)
    agree(motion.acceleration[:, 0], once.moved(forces), 1e-8)
    agree(motion.forces[:3, 0] + motion.forces[3:, 0], forces, 1e-8)


@pytest.mark.parametrize("key", PROXIMAL)
def test_iterations_end_when_the_rows_hold(key):
    c = case("solo", "none")
    made = rows.connect(c.model, "FL_LOWER_LEG", **rows.points(c.rng))
    problem = Problem(Case(c.oracle, (made, made), c.rng))
    motion = PROXIMAL[key](*problem.given, mu=1e4, iterations=50, tolerance=1e-9)
    assert 1 < motion.iterations < 20
    assert np.abs(problem.c.J @ motion.acceleration[:, 0] + problem.bias).max() < 1e-7


def test_without_rows_all_fall_freely():
    problem = Problem(case("talos", "none"))
    for method in (*PROXIMAL.values(), tb.pv, tb.pv_early, tb.pv_soft):
        agree(method(*problem.given).acceleration[:, 0], problem.free, 1e-10)
