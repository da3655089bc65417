"""Small contact problems with every mode, in matrices: for derivatives of their forces."""

import numpy as np

import delassus as dl


def mixed_problem(seed=0):
    """G (9, 9), g and friction of three contacts of which one is open, one sticks and one slides, none of them near another mode."""
    for k in range(1000):
        rng = np.random.default_rng([seed, k, 23])
        A = rng.standard_normal((9, 12))
        G, g, friction = A @ A.T / 12 + 0.3 * np.eye(9), rng.standard_normal(9), rng.uniform(0.2, 1.0, 3)
        d = dl.ContactDerivatives(G, dl.solve_contacts(G, g, friction, tolerance=1e-11), friction)
        if sorted(d.modes) == ["open", "sliding", "sticking"]:
            return G, g, friction
    raise AssertionError("no problem with every mode")
