"""The two loops of L-BFGS against the dense formula, in the inner product of a mass matrix."""

import numpy as np
import pytest

from delassus.solvers.assembly import _quasi_newton


@pytest.mark.parametrize("pairs", [0, 1, 3])
def test_two_loops_are_the_dense_inverse_of_bfgs(pairs):
    """H ← (1 − s yᵀM / sy) H (1 − y sᵀM / sy) + s sᵀM / sy from H = (sy / yy) 1 of the last pair (Nocedal and Wright, equation 7.19)."""
    rng = np.random.default_rng(pairs)
    n = 6
    A, B = rng.standard_normal((2, n, n))
    M, bend = A @ A.T + np.eye(n), B @ B.T + 0.1 * np.eye(n)
    memory = []
    for _ in range(pairs):
        s = rng.standard_normal(n)
        memory.append((s, np.linalg.solve(M, bend @ s)))
    t = rng.standard_normal(n)
    H = np.eye(n)
    if memory:
        s, y = memory[-1]
        H *= (s @ M @ y) / (y @ M @ y)
    for s, y in memory:
        sy = s @ M @ y
        H = (np.eye(n) - np.outer(s, y @ M) / sy) @ H @ (np.eye(n) - np.outer(y, s @ M) / sy) + np.outer(s, s @ M) / sy
    assert np.allclose(_quasi_newton(memory, M, t), H @ t, rtol=1e-10, atol=1e-12)
    if memory:
        s, y = memory[-1]
        assert np.allclose(_quasi_newton(memory, M, y), s, rtol=1e-10, atol=1e-12)


def test_pairs_that_bend_the_wrong_way_are_left_out():
    s = np.array([1.0, 0.0])
    t = np.array([0.3, 0.4])
    assert np.array_equal(_quasi_newton([(s, -s)], np.eye(2), t), t)
