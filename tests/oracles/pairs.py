"""Complementarity problems by definition: what is left of one, and every solution that a choice of w_i = 0 or z_i = 0 gives."""

import itertools

import numpy as np


def left(M, q, z, free=None):
    """Largest violation of w = M z + q, w_i = 0 where free, else w_i ≥ 0, z_i ≥ 0 and one of them zero."""
    w = M @ z + q
    free = np.zeros(len(q), dtype=bool) if free is None else free
    return max(np.abs(w[free]).max(initial=0.0), np.abs(np.minimum(w, z)[~free]).max(initial=0.0))


def solutions(M, q, free=None, tolerance=1e-9):
    """One z for every choice that has one, by least squares."""
    n, size = len(q), 1 + np.abs(q).max(initial=0.0)
    free = np.zeros(n, dtype=bool) if free is None else free
    pairs, found = np.flatnonzero(~free), []
    for chosen in itertools.product((False, True), repeat=len(pairs)):
        basis = np.concatenate([np.flatnonzero(free), pairs[np.array(chosen, dtype=bool)]]).astype(int)
        z = np.zeros(n)
        z[basis] = np.linalg.lstsq(M[np.ix_(basis, basis)], -q[basis], rcond=None)[0]
        if left(M, q, z, free) <= tolerance * size:
            found.append(z)
    return found
