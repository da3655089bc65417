"""Changes of contact forces and velocities while modes last, as one dense system of both, in NumPy."""

import numpy as np


def inverse_masses(G, cones, intervals):
    """(m,) what rows of a set feel: the mean over the normal and two tangents, or what torques feel if that is more."""
    d = np.array(np.diagonal(G), dtype=float)
    for row, _, rows in cones:
        each = slice(int(row), int(row + rows))
        d[each] = max(d[each][:3].mean(), *d[each][3:], 0.0)
    return d


def tangents(G, cones, intervals, forces, velocities, ds, dfriction=None, dbound=None):
    """
    dλ, dσ of modes that are read off forces and velocities by plain comparisons, not by a projection: the laws, then dσ − G dλ = s, in units in which both are √J. cones: (row, friction, rows);
    intervals: (row, lower, upper), NaN without bound.
    """
    m = len(forces)
    scale = np.sqrt(inverse_masses(G, cones, intervals))
    A, S, b = np.zeros((m, m)), np.zeros((m, m)), np.zeros(m)
    speed = np.abs(velocities).max() + np.abs(G @ forces).max() + 1e-300
    push = np.abs(forces).max() + 1e-300
    for k, (row, mu, rows) in enumerate(cones):
        n, T = int(row), slice(int(row) + 1, int(row + rows))
        sliding = np.linalg.norm(velocities[T])
        if forces[n] <= 1e-9 * push:
            A[n : T.stop, n : T.stop] = np.eye(int(rows))
        elif mu > 0 and sliding <= 1e-9 * speed:
            S[n : T.stop, n : T.stop] = np.eye(int(rows))
        else:
            h = velocities[T] / sliding if sliding > 0 else np.zeros(int(rows) - 1)
            across = np.eye(int(rows) - 1) - np.outer(h, h)
            S[n, n] = 1
            A[T, T] = np.eye(int(rows) - 1)
            A[T, n] = mu * h
            if mu > 0:
                S[T, T] = mu * forces[n] / sliding * across
            b[T] = -h * forces[n] * (0 if dfriction is None else dfriction[k])
    for k, (row, lower, upper) in enumerate(intervals):
        r = int(row)
        at_bound = any(abs(forces[r] - x) <= 1e-9 * push for x in (lower, upper) if not np.isnan(x))
        if at_bound:
            A[r, r], b[r] = 1, 0 if dbound is None else dbound[k]
        else:
            S[r, r] = 1
    # x = √d dλ, ς = dσ / √d; rows of about one
    A, S = A / scale, S * scale
    K = np.block([[A, S], [-G / scale / scale[:, None], np.eye(m)]])
    rhs = np.concatenate([b, ds / scale])
    size = np.abs(K).max(axis=1)
    z = np.linalg.lstsq(K / size[:, None], rhs / size, rcond=1e-12)[0]
    return z[:m] / scale, z[m:] * scale
