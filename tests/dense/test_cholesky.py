"""Cholesky factors against NumPy, and their backward errors against Higham's bounds."""

import numpy as np
import pytest
import scipy.linalg

from delassus import _core
from delassus.dense import Cholesky
from delassus.errors import ArgumentError, SingularError

SIZES = [0, 1, 2, 5, 7, 8, 9, 17, 24, 25, 31, 63, 64, 65, 129, 200, 500]
DTYPES = [np.float64, np.float32]


def positive(n, condition=10.0, seed=0, dtype=np.float64):
    """A symmetric matrix with eigenvalues from 1 / condition to 1."""
    rng = np.random.default_rng(seed + n)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0] if n else np.zeros((0, 0))
    A = (Q * np.geomspace(1.0, 1.0 / condition, n)) @ Q.T
    return ((A + A.T) / 2).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_factor_is_that_of_scipy(n, dtype):
    A = positive(n, dtype=dtype)
    U = Cholesky(A).upper
    assert U.dtype == dtype
    want = scipy.linalg.cholesky(A.astype(float)) if n else np.zeros((0, 0))
    # relative change of U for a backward error of n ε, times the condition, 10: Higham, theorem 10.8
    assert np.abs(U - want).max(initial=0.0) <= 10 * max(n, 1) * np.finfo(dtype).eps


# a condition beyond 1 / ε is not positive definite to working precision
@pytest.mark.parametrize(
    ("condition", "dtype"), [(1.0, np.float64), (1e4, np.float64), (1e12, np.float64), (1.0, np.float32), (1e4, np.float32)]
)
@pytest.mark.parametrize("n", SIZES)
def test_backward_error_is_within_the_bound_whatever_the_condition(n, condition, dtype):
    A = positive(n, condition, dtype=dtype)
    U = np.triu(Cholesky(A).upper).astype(float)
    # |A − Uᵀ U| ≤ (n + 1) ε |U|ᵀ |U|, and one ε for the reciprocal on the diagonal
    error = np.abs(A.astype(float) - U.T @ U)
    assert (error <= (n + 2) * np.finfo(dtype).eps * (np.abs(U).T @ np.abs(U))).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [None, 0, 1, 3, 24, 65])
@pytest.mark.parametrize("n", SIZES)
def test_solutions_have_small_residuals(n, columns, dtype):
    A, rng = positive(n, 1e3, dtype=dtype), np.random.default_rng(1)
    Y = rng.standard_normal((n,) if columns is None else (n, columns)).astype(dtype)
    before = Y.copy()
    X = Cholesky(A).solve(Y)
    assert X.shape == Y.shape
    assert X.dtype == dtype
    assert (before == Y).all()
    # residual of a solution by Cholesky: 3 n ε ‖A‖ ‖x‖ n (theorem 10.4), ‖A‖ = 1
    bound = 4 * max(n, 1) ** 1.5 * np.finfo(dtype).eps * np.abs(X).max(initial=0.0)
    assert np.abs(A.astype(float) @ X - Y).max(initial=0.0) <= bound


def test_many_right_hand_sides_are_solved_as_one_by_one():
    A, Y = positive(70, 100.0), np.random.default_rng(2).standard_normal((70, 30))
    factor = Cholesky(A)
    one_by_one = np.stack([factor.solve(y) for y in Y.T], axis=1)
    np.testing.assert_allclose(factor.solve(Y), one_by_one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_inverse_is_symmetric_and_inverts(n, dtype):
    A = positive(n, 100.0, dtype=dtype)
    X = Cholesky(A).inverse()
    assert (X == X.T).all()
    want = np.linalg.inv(A.astype(float))
    # 8 n ε times the condition, in units of ‖A⁻¹‖ = 100
    assert np.abs(X - want).max(initial=0.0) <= 8 * max(n, 1) * np.finfo(dtype).eps * 100 * 100


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 64, 65, 200])
def test_first_pivot_that_is_not_positive_is_named(n):
    A = positive(n)
    for row in {0, n // 2, n - 1}:
        B = A.copy()
        B[row, row] -= 5.0  # eigenvalues are at most one
        minors = [np.linalg.eigvalsh(B[: k + 1, : k + 1])[0] > 0 for k in range(n)]
        with pytest.raises(SingularError, match=rf"row {minors.index(False)} "):
            Cholesky(B)


def test_zero_and_singular_matrices_are_not_positive_definite():
    for A in (np.zeros((3, 3)), np.ones((9, 9)) - np.eye(9) * 1e-3, -np.eye(1)):
        with pytest.raises(SingularError):
            Cholesky(A)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 8, 65, 150])
def test_numbers_that_are_not_finite_are_refused(n, bad):
    A = positive(n)
    A[n // 2, n // 2] = bad
    with pytest.raises(SingularError, match=f"row {n // 2} "):
        Cholesky(A)
    A = positive(n)
    A[0, n - 1] = A[n - 1, 0] = bad
    with pytest.raises(SingularError):
        Cholesky(A)


@pytest.mark.parametrize("n", [3, 8, 65, 130])
def test_floors_keep_a_semidefinite_matrix_going(n):
    B = np.random.default_rng(n).standard_normal((n, max(n // 2, 1)))
    A, floors = B @ B.T, np.full(n, 1e-6)
    U = A.copy()
    assert _core.factor_cholesky(U, floors) == n
    # u² is no smaller than its floor, and the diagonal holds reciprocals
    assert (U.diagonal() <= 1e3 * (1 + 1e-12)).all()
    U = np.triu(U)
    np.fill_diagonal(U, 1 / U.diagonal())
    # raising a pivot by at most its floor changes A by as much, and rounding by n ε times what the small pivots divide
    assert np.abs(U.T @ U - A).max() <= 1e-6 + n * 1e-15 * np.abs(A).max() / 1e-6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [5, 8, 64, 100])
def test_works_in_place_beside_other_numbers(n, dtype):
    """Rows further apart than they are long: what lies between them stays, and the numbers are those of a matrix by itself."""
    wide = np.full((n, n + 13), 7.0, dtype=dtype)
    wide[:, :n] = A = positive(n, dtype=dtype)
    assert _core.factor_cholesky(wide[:, :n], None) == n
    assert (wide[:, n:] == 7).all()
    assert (np.triu(wide[:, :n]) == np.triu(Cholesky(A)._factor)).all()
    X = np.full((n, 9), 7.0, dtype=dtype)
    X[:, :5] = Y = np.random.default_rng(3).standard_normal((n, 5)).astype(dtype)
    _core.solve_cholesky(wide[:, :n], X[:, :5])
    assert (X[:, 5:] == 7).all()
    assert (X[:, :5] == Cholesky(A).solve(Y)).all()


def test_only_the_upper_triangle_is_read():
    A = positive(90)
    B = np.triu(A) + np.tril(np.full_like(A, np.nan), -1)
    assert (Cholesky(A).upper == Cholesky(B).upper).all()
    assert (Cholesky(A).inverse() == Cholesky(B).inverse()).all()


def test_results_are_the_same_bits_wherever_arrays_lie():
    A, y = positive(101), np.arange(101.0)
    first = Cholesky(A).solve(y)
    for shift in range(1, 9):
        room = np.empty(101 * 101 + shift)
        shifted = room[shift:].reshape(101, 101)
        shifted[:] = A
        assert _core.factor_cholesky(shifted, None) == 101
        x = y.copy()
        _core.solve_cholesky(shifted, x[:, None])
        assert (x == first).all()


def test_shapes_that_do_not_match_are_refused():
    with pytest.raises(ArgumentError, match="square"):
        Cholesky(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="expected shape"):
        Cholesky(np.eye(3)).solve(np.ones(4))
    with pytest.raises(ArgumentError, match="each row in one piece"):
        _core.factor_cholesky(np.asfortranarray(np.ones((3, 3))), None)
    with pytest.raises(ArgumentError, match="floors"):
        _core.factor_cholesky(np.eye(3), np.ones(2))
