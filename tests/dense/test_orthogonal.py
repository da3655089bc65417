"""Pseudo-inverses by complete orthogonal factors, against NumPy's by singular values."""

import numpy as np
import pytest

from delassus.dense import Orthogonal
from delassus.errors import ArgumentError, NotFiniteError


def of_rank(n, rank, seed=0):
    rng = np.random.default_rng([n, rank, seed])
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n))


@pytest.mark.parametrize(
    ("n", "rank"), [(0, 0), (1, 0), (1, 1), (2, 1), (5, 5), (8, 3), (30, 30), (31, 29), (64, 1), (100, 60), (200, 200)]
)
def test_it_is_the_pseudo_inverse(n, rank):
    A = of_rank(n, rank)
    factor = Orthogonal(A, threshold=1e-10)
    assert factor.rank == rank
    inverse = np.linalg.pinv(A, rcond=1e-10)
    y = np.random.default_rng(n).standard_normal(n)
    size = np.abs(inverse).max(initial=0.0) * n
    assert np.abs(factor.solve(y) - inverse @ y).max(initial=0.0) <= 1e-10 * size
    assert np.abs(factor.solve_transposed(y) - inverse.T @ y).max(initial=0.0) <= 1e-10 * size


def test_columns_that_shrink_by_many_orders_are_measured_anew():
    """Lengths that are only ever subtracted from would lose all digits here."""
    n = 40
    rng = np.random.default_rng(5)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    A = Q @ np.diag(10.0 ** -np.linspace(0, 8, n)) @ np.linalg.qr(rng.standard_normal((n, n)))[0]
    factor = Orthogonal(A, threshold=1e-12)
    assert factor.rank == n
    x = rng.standard_normal(n)
    assert np.abs(A @ factor.solve(A @ x) - A @ x).max() <= 1e-14 * np.abs(x).max() * n


def test_solution_is_the_least_and_the_residual_is_orthogonal():
    A = of_rank(20, 12)
    y = np.random.default_rng(1).standard_normal(20)
    x = Orthogonal(A, threshold=1e-10).solve(y)
    assert np.abs(A.T @ (A @ x - y)).max() <= 1e-11 * np.abs(A).max() * 20
    assert np.abs(np.linalg.svd(A)[2][12:] @ x).max() <= 1e-12 * np.abs(x).max() * 20


def test_bad_input():
    with pytest.raises(NotFiniteError):
        Orthogonal([[1.0, np.nan], [0.0, 1.0]])
    with pytest.raises(ArgumentError):
        Orthogonal(np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match="y"):
        Orthogonal(np.eye(2)).solve([1.0])
