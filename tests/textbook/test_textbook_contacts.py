"""The readable derivative of contact forces against the fast one, and against a point that slides."""

import numpy as np

import delassus as dl
from delassus import textbook


def test_a_point_that_slides():
    G = np.eye(3) / 2.0
    forces, velocities = textbook.contact_tangents(G, [0.5], np.array([2.0, -1.0, 0.0]), np.array([0.0, 1.5, 0.0]), np.zeros(3), [1.0])
    assert np.allclose(forces, [0, -2, 0])
    assert np.allclose(velocities, [0, -1, 0])


def test_random_problems_against_the_core():
    modes = set()
    for seed in range(20):
        rng = np.random.default_rng([seed, 3])
        n = int(rng.integers(1, 6))
        J = rng.standard_normal((3 * n, 3 * n + 4))
        G, g, friction = J @ J.T / n, rng.standard_normal(3 * n), rng.uniform(0.1, 1.0, n)
        r = dl.solve_contacts(G, g, friction, tolerance=1e-11)
        d = dl.ContactDerivatives(G, r, friction)
        if d.kinks.any():
            continue
        modes |= set(d.modes)
        s, dfriction = rng.standard_normal(3 * n), rng.standard_normal(n)
        for x, y in zip(
            textbook.contact_tangents(G, friction, r.forces, r.velocities, s, dfriction), d.jvp(dg=s, dfriction=dfriction), strict=True
        ):
            assert np.abs(x - y).max() <= 1e-7 * max(np.abs(y).max(), 1.0)
    assert modes == {"open", "sticking", "sliding"}
