"""Dense factorizations of the core beside LAPACK's: one factor and one solution, both checked, one thread.

    python benchmarks/python/dense.py [--rows 50,100,360,864,2000] [--seconds 3]

LAPACK is that of SciPy. Both work on a copy made beforehand, in turns; the best of many repetitions counts. Exits with an error where a solution is wrong.
"""

import argparse
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from scipy.linalg import lapack

from delassus import _core


def ours_cholesky(A, y):
    _core.factor_cholesky(A, None)
    _core.solve_cholesky(A, y)


def lapack_cholesky(A, y):
    factor, _ = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
    lapack.dpotrs(factor, y, lower=1, overwrite_b=1)


def ours_lu(A, y):
    pivots = np.empty(len(A), dtype=np.int32)
    _core.factor_lu(A, pivots, 0.0)
    _core.solve_lu(A, pivots, y)


def lapack_lu(A, y):
    factor, pivots, _ = lapack.dgetrf(A, overwrite_a=1)
    lapack.dgetrs(factor, pivots, y, overwrite_b=1)


def ours_inverse(A, y):
    _core.factor_cholesky(A, None)
    _core.add_inverse_cholesky(A, np.empty_like(A), y)


def lapack_inverse(A, y):
    factor, _ = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
    y[:] = lapack.dpotri(factor, lower=1, overwrite_c=1)[0].T


def measure(n, seconds, kind):
    """Best times of both, and the larger of their errors, in units of n ε."""
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n))
    if kind != "lu":
        A = A @ A.T / n + np.eye(n)
    y = np.zeros((n, n)) if kind == "inverse" else rng.standard_normal((n, 1))
    ours, theirs = {"cholesky": (ours_cholesky, lapack_cholesky), "lu": (ours_lu, lapack_lu), "inverse": (ours_inverse, lapack_inverse)}[
        kind
    ]
    # a symmetric matrix is its own transpose: column-major for LAPACK
    copies = np.empty((n, n)), np.empty((n, n), order="F")
    best, errors = [np.inf, np.inf], [0.0, 0.0]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or best[0] == np.inf:
        for k, (solve, copy) in enumerate(zip((ours, theirs), copies, strict=True)):
            copy[:] = A
            x = y.copy()
            start = time.perf_counter()
            solve(copy, x)
            best[k] = min(best[k], time.perf_counter() - start)
            if kind == "inverse":
                X = np.triu(x) + np.triu(x, 1).T
                errors[k] = np.abs(A @ X - np.eye(n)).max() / (np.abs(A).sum(axis=1).max() * np.abs(X).max())
            else:
                errors[k] = np.abs(A @ x - y).max() / (np.abs(A).sum(axis=1).max() * np.abs(x).max())
    return best, max(errors) / (max(n, 1) * np.finfo(float).eps)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="50,100,360,864,2000")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each size and factorization")
    options = parser.parse_args()
    wrong = False
    print(f"{'rows':>5} {'':10} {'delassus':>12} {'LAPACK':>12} {'ratio':>6} {'error / (n ε)':>14}")
    for n in map(int, options.rows.split(",")):
        for kind in ("cholesky", "lu", "inverse"):
            (ours, theirs), error = measure(n, options.seconds, kind)
            wrong = wrong or not error < 1.0
            print(f"{n:5} {kind:10} {ours * 1e6:9.1f} µs {theirs * 1e6:9.1f} µs {ours / theirs:6.2f} {error:14.3f}")
    if wrong:
        sys.exit("a solution has a backward error above n ε")


if __name__ == "__main__":
    main()
