"""LU factors against SciPy, and their backward errors against Higham's bounds."""

import numpy as np
import pytest
import scipy.linalg

from delassus import _core
from delassus.dense import Lu
from delassus.errors import ArgumentError, SingularError

SIZES = [0, 1, 2, 5, 7, 8, 9, 31, 63, 64, 65, 129, 200, 500]
DTYPES = [np.float64, np.float32]


def matrix(n, seed=0, dtype=np.float64):
    return np.random.default_rng(seed + n).standard_normal((n, n)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_backward_error_is_within_the_bound_and_multipliers_are_at_most_one(n, dtype):
    A = matrix(n, dtype=dtype)
    factor = Lu(A)
    L, U = factor.lower.astype(float), factor.upper.astype(float)
    assert np.abs(L).max(initial=0.0) <= 1 + np.finfo(dtype).eps
    # |P A − L U| ≤ n ε |L| |U|, and one ε each for the reciprocal of a pivot in L and on the diagonal of U
    error = np.abs(A[factor.permutation].astype(float) - L @ U)
    assert (error <= (n + 3) * np.finfo(dtype).eps * (np.abs(L) @ np.abs(U))).all()


@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 31, 64, 65])
def test_rows_are_exchanged_as_scipy_exchanges_them(n):
    A = matrix(n)
    _, pivots = scipy.linalg.lu_factor(A)
    assert (Lu(A)._pivots == pivots).all()


@pytest.mark.parametrize("n", [2, 9, 40, 100])
def test_permuted_triangular_matrix_has_exact_factors(n):
    rng = np.random.default_rng(n)
    U = np.triu(rng.integers(1, 9, (n, n))) * 1.0
    np.fill_diagonal(U, 2.0 ** rng.integers(4, 7, n))  # reciprocals of powers of two are exact, and larger than what is above them
    order = rng.permutation(n)
    factor = Lu(U[order])
    assert (factor.lower == np.eye(n)).all()
    assert (factor.upper == U).all()
    assert (order[factor.permutation] == np.arange(n)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [None, 0, 1, 3, 24, 65])
@pytest.mark.parametrize("n", SIZES)
def test_solutions_have_small_residuals(n, columns, dtype):
    A, rng = matrix(n, dtype=dtype), np.random.default_rng(1)
    Y = rng.standard_normal((n,) if columns is None else (n, columns)).astype(dtype)
    factor = Lu(A)
    X = factor.solve(Y)
    assert X.shape == Y.shape
    assert X.dtype == dtype
    # |A x − y| ≤ 3 n ε |L| |U| |x| row by row (theorem 9.4)
    size = (np.abs(factor.lower) @ np.abs(factor.upper)).sum(axis=1).max(initial=0.0) * np.abs(X).max(initial=0.0)
    assert np.abs(A.astype(float) @ X - Y).max(initial=0.0) <= 3 * (n + 1) * np.finfo(dtype).eps * size


def test_many_right_hand_sides_are_solved_as_one_by_one():
    A, Y = matrix(70) + 20 * np.eye(70), np.random.default_rng(2).standard_normal((70, 30))
    factor = Lu(A)
    one_by_one = np.stack([factor.solve(y) for y in Y.T], axis=1)
    np.testing.assert_allclose(factor.solve(Y), one_by_one, rtol=0, atol=1e-13)


def test_ill_conditioned_system_is_solved_to_its_residual():
    A = scipy.linalg.hilbert(12)  # condition 1e16
    y = A @ np.ones(12)
    assert np.abs(A @ Lu(A).solve(y) - y).max() <= 1e-14


@pytest.mark.parametrize("n", [1, 2, 8, 9, 65, 130])
def test_first_column_without_a_pivot_is_named(n):
    for column in {0, n // 2, n - 1}:
        A = matrix(n)
        A[:, column] = 0
        with pytest.raises(SingularError, match=f"column {column} "):
            Lu(A)


@pytest.mark.parametrize("n", [1, 8, 65])
def test_a_substitute_stands_for_a_pivot_that_is_zero(n):
    A = matrix(n)
    A[:, n // 2] = 0
    pivots = np.zeros(n, dtype=np.int32)
    assert _core.factor_lu(A, pivots, 1e-8) == n
    assert A[n // 2, n // 2] == pytest.approx(1e8)
    assert np.isfinite(A).all()


@pytest.mark.parametrize("n", [1, 8, 65, 150])
def test_numbers_that_are_not_finite_do_not_pass_for_a_factor(n):
    A = matrix(n)
    A[:, n // 2] = np.nan
    with pytest.raises(SingularError, match=f"column {n // 2} "):
        Lu(A)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [5, 8, 64, 100])
def test_works_in_place_beside_other_numbers(n, dtype):
    wide = np.full((n, n + 13), 7.0, dtype=dtype)
    wide[:, :n] = A = matrix(n, dtype=dtype)
    pivots = np.zeros(n, dtype=np.int32)
    assert _core.factor_lu(wide[:, :n], pivots, 0.0) == n
    alone = Lu(A)
    assert (wide[:, n:] == 7).all()
    assert (wide[:, :n] == alone._factor).all()
    assert (pivots == alone._pivots).all()
    X = np.full((n, 9), 7.0, dtype=dtype)
    X[:, :5] = Y = np.random.default_rng(3).standard_normal((n, 5)).astype(dtype)
    _core.solve_lu(wide[:, :n], pivots, X[:, :5])
    assert (X[:, 5:] == 7).all()
    assert (X[:, :5] == alone.solve(Y)).all()


def test_results_are_the_same_bits_wherever_arrays_lie():
    A, y = matrix(101), np.arange(101.0)
    first = Lu(A).solve(y)
    for shift in range(1, 9):
        room = np.empty(101 * 101 + shift)
        shifted, pivots = room[shift:].reshape(101, 101), np.zeros(101, dtype=np.int32)
        shifted[:] = A
        assert _core.factor_lu(shifted, pivots, 0.0) == 101
        x = y.copy()
        _core.solve_lu(shifted, pivots, x[:, None])
        assert (x == first).all()


def test_shapes_that_do_not_match_are_refused():
    with pytest.raises(ArgumentError, match="square"):
        Lu(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="expected shape"):
        Lu(np.eye(3)).solve(np.ones((4, 2)))
    with pytest.raises(ArgumentError, match="pivots"):
        _core.factor_lu(np.eye(3), np.zeros(2, dtype=np.int32), 0.0)
