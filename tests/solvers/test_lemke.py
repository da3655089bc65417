"""Lemke's method: its solutions are those of the enumeration of all bases, and it says so only when they are."""

import numpy as np
import pytest

import delassus as dl
from delassus import _core
from oracles.allocation import requests
from oracles.compare import agree
from oracles.pairs import left, solutions

TOLERANCE = 1e-9


def masked(rng, n, mixed):
    return rng.random(n) < 0.4 if mixed else np.zeros(n, dtype=bool)


def judged(M, q, free):
    """Result, after what it says of itself was recomputed."""
    r = dl.solve_lcp(M, q, free=free)
    assert np.isfinite(r.solution).all()
    assert (r.solution[~free] >= 0).all()
    rounding = 1e-14 * (np.abs(M) @ np.abs(r.solution) + np.abs(q)).max(initial=0.0)
    assert np.abs(r.slack - M @ r.solution - q).max(initial=0.0) <= rounding
    assert (r.status == "solved") == (r.residual <= TOLERANCE * np.abs(q).max(initial=0.0))
    # z ≥ 0 holds, so that no violation is larger than the residual
    assert left(M, q, r.solution, free) <= r.residual + rounding
    assert (r.advice == "") == (r.status == "solved")
    return r


def positive(rng, n):
    """P-matrix: positive definite plus antisymmetric, all principal minors positive."""
    A, B = rng.standard_normal((2, n, n))
    return A @ A.T + 0.1 * np.eye(n) + B - B.T


@pytest.mark.parametrize("mixed", [False, True])
def test_problem_with_a_unique_solution_gets_it(mixed):
    rng = np.random.default_rng(1)
    for _ in range(200):
        n = int(rng.integers(1, 7))
        M, q, free = positive(rng, n), rng.standard_normal(n), masked(rng, n, mixed)
        r = judged(M, q, free)
        found = solutions(M, q, free)
        assert len(found) == 1
        assert (r.status, r.attempts) == ("solved", 1) or not r.pivots
        agree(r.solution, found[0], 1e-8, 1 + np.abs(found[0]).max())


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("kind", ["low rank", "antisymmetric", "copositive"])
def test_copositive_problem_is_solved_where_it_can_be(kind, mixed):
    rng = np.random.default_rng(2)
    counts = {True: 0, False: 0}
    for _ in range(150):
        n = int(rng.integers(1, 7))
        A = rng.standard_normal((n, n))
        M = {"low rank": A[:, : n // 2 + 1] @ A[:, : n // 2 + 1].T, "antisymmetric": A - A.T, "copositive": np.abs(A)}[kind]
        q, free = rng.standard_normal(n), masked(rng, n, mixed and kind != "copositive")
        possible = bool(solutions(M, q, free))
        assert (judged(M, q, free).status == "solved") == possible
        counts[possible] += 1
    assert counts[True] > 20
    assert counts[False] > 10 or kind == "copositive"


@pytest.mark.parametrize(
    ("M", "q"),
    [([[0.0]], [-1.0]), ([[-1.0]], [-1.0]), ([[0.0, 1.0], [-1.0, 0.0]], [1.0, -1.0]), ([[1.0, -1.0], [-1.0, 1.0]], [-1.0, -1.0])],
)
def test_unsolvable_problem_ends_on_a_ray(M, q):
    M, q = np.array(M), np.array(q)
    assert solutions(M, q) == []
    r = judged(M, q, np.zeros(len(q), dtype=bool))
    assert r.status == "ray"
    assert r.residual > 0.1
    assert "copositive" in r.advice


def test_equations_that_contradict_each_other_are_not_solved():
    M, q = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([-1.0, -2.0, -1.0])
    assert judged(M, q, np.array([True, True, False])).status == "inaccurate"
    assert judged(M, np.array([-1.0, -1.0, -1.0]), np.array([True, True, False])).status == "solved"


@pytest.mark.parametrize("block", range(4))
def test_degenerate_problems_end_and_never_claim_too_much(block):
    rng = np.random.default_rng(3 + block)
    statuses = []
    for _ in range(400):
        n = int(rng.integers(1, 13))
        M = rng.integers(-1, 2, (n, n)).astype(float)
        if rng.random() < 0.3:
            M = M @ M.T
        if rng.random() < 0.5:
            M[rng.integers(n)] = M[rng.integers(n)]
            M[:, rng.integers(n)] = M[:, rng.integers(n)]
        q, free = rng.integers(-2, 3, n).astype(float), masked(rng, n, rng.random() < 0.5)
        r = judged(M, q, free)
        statuses.append(r.status)
        assert r.pivots <= 5 * (100 + 10 * n)
        if n <= 5 and r.status == "solved":
            assert left(M, q, r.solution, free) <= 1e-9 * (1 + np.abs(q).max())
            assert solutions(M, q, free)
    assert 100 < statuses.count("solved") < 400


def test_ties_do_not_cycle():
    # Kostreva's example, on which pivots without protection can turn in a circle
    M = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
    agree(judged(M, -np.ones(3), np.zeros(3, dtype=bool)).solution, np.full(3, 1 / 3), 1e-12)
    # on these, pivots that break ties by the larger pivot turn in a circle
    for M, q in (
        ([[0, 1, 3, -1], [-1, 0, -3, 1], [-3, 3, 1, -4], [1, -1, 4, 0]], [-1, -1, 0, -1]),
        ([[0, 1, -2, 3], [-1, 0, 1, 4], [2, -1, 0, 4], [-3, -4, -4, 0]], [-1, -1, -1, 0]),
    ):
        r = judged(np.array(M, dtype=float), np.array(q, dtype=float), np.zeros(4, dtype=bool))
        assert (r.status, r.attempts) == ("solved", 1)
        assert r.pivots < 10
    # Murty's: 2ⁿ − 1 pivots for some coverings, few for this one; all q are tied
    for n in (3, 6, 9):
        M = np.tril(np.full((n, n), 2.0), -1) + np.eye(n)
        r = judged(M, -np.ones(n), np.zeros(n, dtype=bool))
        assert r.status == "solved"
        agree(r.solution, np.eye(n)[0], 1e-12)


def test_programs_are_solved_though_the_block_of_their_equations_is_zero():
    # min ½ xᵀ B x + cᵀ x, A x = b, x ≥ 0: free multipliers have nothing on their diagonal
    rng = np.random.default_rng(5)
    for definite in (True, False) * 30:
        n, m = 5, 2
        A, C = rng.standard_normal((m, n)), rng.standard_normal((n, n))
        B = C @ C.T if definite else np.zeros((n, n))
        b, c = A @ rng.random(n), rng.random(n)
        M, q = np.block([[np.zeros((m, m)), A], [-A.T, B]]), np.concatenate([-b, c])
        free = np.arange(m + n) < m
        r = judged(M, q, free)
        assert r.status == "solved"
        x = r.solution[m:]
        agree(A @ x, b, 1e-9, 1.0)
        # strong duality: xᵀ B x + cᵀ x = bᵀ y with y the multipliers
        agree(x @ B @ x + c @ x, b @ r.solution[:m], 1e-8, 1.0)


def test_scales_of_rows_and_columns_do_not_matter():
    rng = np.random.default_rng(6)
    for _ in range(50):
        n = 6
        M, q, free = positive(rng, n), rng.standard_normal(n), masked(rng, n, True)
        rows, columns = 10.0 ** rng.integers(-6, 7, n), 10.0 ** rng.integers(-6, 7, n)
        plain = judged(M, q, free)
        scaled = dl.solve_lcp(rows[:, None] * M * columns, rows * q, free=free)
        agree(columns * scaled.solution, plain.solution, 1e-9, 1 + np.abs(plain.solution).max())


def test_problems_of_contacts_always_have_a_solution_and_get_it():
    # D, Ê and Ē of the complementarity page; G of any rank, contacts that repeat, masses from 1 to 1e6
    rng = np.random.default_rng(9)
    normal = np.array([[1.0, 0, 0, 0, 0], [0, 1, 0, -1, 0], [0, 0, 1, 0, -1]])
    for k in range(500):
        contacts = int(rng.integers(1, 7))
        J = rng.standard_normal((3 * contacts, int(rng.integers(1, 3 * contacts + 3))))
        J *= 10.0 ** rng.uniform(-1.5, 1.5, J.shape[1])
        if k % 3 == 0:
            J[-3:] = J[:3]
        D, friction = np.kron(np.eye(contacts), normal), rng.uniform(0, 2, contacts) * (rng.random(contacts) < 0.9)
        E = np.kron(np.eye(contacts), [[0.0], [1], [1], [1], [1]])
        limit = np.kron(np.diag(friction), [[1.0, 0, 0, 0, 0]]) - E.T
        M = np.block([[D.T @ J @ J.T @ D, E], [limit, np.zeros((contacts, contacts))]])
        q = np.concatenate([D.T @ J @ rng.standard_normal(J.shape[1]), np.zeros(contacts)])
        assert judged(M, q, np.zeros(len(q), dtype=bool)).status == "solved", k


def test_large_problem_is_solved_to_rounding():
    rng = np.random.default_rng(7)
    n = 200
    A = rng.standard_normal((n, n // 2))
    M, q = A @ A.T, A @ rng.standard_normal(n // 2) + rng.random(n) * 0.1
    r = judged(M, q, np.zeros(n, dtype=bool))
    assert r.status == "solved"
    assert r.residual < 1e-10 * np.abs(q).max()


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_huge_and_tiny_numbers_give_finite_answers(size):
    rng = np.random.default_rng(8)
    for _ in range(20):
        M, q = positive(rng, 4), rng.standard_normal(4)
        free = masked(rng, 4, True)
        for scaled in (dl.solve_lcp(size * M, q, free=free), dl.solve_lcp(M, size * q, free=free)):
            assert np.isfinite(scaled.solution).all()
        agree(dl.solve_lcp(M, size * q, free=free).solution / size, dl.solve_lcp(M, q, free=free).solution, 1e-12, 10.0)


def test_limit_of_pivots_is_kept_and_said():
    r = dl.solve_lcp(np.eye(3), -np.ones(3), max_pivots=1)
    assert (r.status, r.pivots) == ("pivot_limit", 5)
    assert dl.solve_lcp(np.eye(3), np.ones(3), max_pivots=0).status == "solved"
    assert dl.solve_lcp(np.zeros((0, 0)), np.zeros(0)).status == "solved"
    assert dl.solve_lcp(np.eye(2), [-1.0, 2.0], free=[True, True]).solution.tolist() == [1.0, -2.0]


@pytest.mark.parametrize(
    ("arguments", "kind", "word"),
    [
        ({"M": np.ones((2, 3)), "q": np.ones(2)}, dl.errors.ArgumentError, "M"),
        ({"M": np.ones(3), "q": np.ones(3)}, dl.errors.ArgumentError, "square"),
        ({"M": None, "q": np.ones(3)}, dl.errors.ArgumentTypeError, "M"),
        ({"M": np.eye(2), "q": np.ones(3)}, dl.errors.ArgumentError, "q"),
        ({"M": np.eye(2), "q": [1.0, np.nan]}, dl.errors.NotFiniteError, "q"),
        ({"M": [[np.inf, 0.0], [0.0, 1.0]], "q": np.ones(2)}, dl.errors.NotFiniteError, "M"),
        ({"M": np.eye(2), "q": np.ones(2), "free": [True]}, dl.errors.ArgumentError, "free"),
        ({"M": np.eye(2), "q": np.ones(2), "free": [0, 1]}, dl.errors.ArgumentTypeError, "free"),
        ({"M": np.eye(2), "q": np.ones(2), "tolerance": -1.0}, dl.errors.ArgumentError, "tolerance"),
        ({"M": np.eye(2), "q": np.ones(2), "max_pivots": -1}, dl.errors.ArgumentError, "max_pivots"),
    ],
)
def test_mistakes_are_named(arguments, kind, word):
    with pytest.raises(kind, match=word):
        dl.solve_lcp(arguments.pop("M"), arguments.pop("q"), **arguments)


def test_memory_larger_than_the_problem_serves_and_smaller_is_refused():
    memory = _core.Lemke(8)
    for n in (8, 3, 5):
        assert memory.solve(np.eye(n), -np.ones(n), np.zeros(n, dtype=bool), 1e-9, 100, None).solution.tolist() == [1.0] * n
    q = -np.ones(3)
    with pytest.raises(dl.errors.ArgumentError, match="solution"):
        memory.solve(np.eye(3), q, np.zeros(3, dtype=bool), 1e-9, 100, q)
    with pytest.raises(dl.errors.ArgumentError, match="capacity"):
        memory.solve(np.eye(9), np.ones(9), np.zeros(9, dtype=bool), 1e-9, 100, None)


SCRIPT = """
rng = np.random.default_rng(0)
n = 100
A = rng.standard_normal((n, n))
M, q, free, z = A @ A.T, rng.standard_normal(n), np.arange(n) < 40, np.empty(n)
bad = -np.abs(M)
memory = dl._core.Lemke(n)
report("solve", np.float64, lambda: memory.solve(M, q, free, 1e-9, 1000, z), 20)
report("ray", np.float64, lambda: memory.solve(bad, q, free, 1e-9, 1000, z), 20)
"""


def test_solving_allocates_nothing(tmp_path):
    assert requests(tmp_path, SCRIPT) == {("solve", "float64"): 0, ("ray", "float64"): 0}
