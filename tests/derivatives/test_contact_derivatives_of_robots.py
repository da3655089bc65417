"""Contact forces of robots to first order in q, v, friction and bounds, against differences of the solver at a tolerance of 1e-11, where no contact changes its mode."""

from collections import Counter

import numpy as np
import pytest

import delassus as dl
from delassus import _core
from delassus.solvers.contacts import _sets
from oracles.contact_robots import MovingProblem

TIGHT = {"tolerance": 1e-11}
STEPS = (
    1e-4,
    1e-3,
    3e-3,
    1e-5,
)  # what a tolerance of 1e-11 leaves open, over the step, is in the difference too: small steps do not tell more


def differences(problem, of, h):
    """Of fourth order."""
    f = {k: of(k * h) for k in (1, -1, 2, -2)}
    return [(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in zip(f[1], f[-1], f[2], f[-2], strict=True)]


def compared(seed):
    """Why a problem is left out, or the modes and kinds that were compared."""
    problem = MovingProblem(seed)
    G, g, rows = problem.at(0.0)
    r = dl.solve_contacts(G, g, **TIGHT)
    if r.status != "solved":
        return r.status
    operator = dl.OperatorDerivatives(problem.model, rows)
    operator.update(problem.q)
    d = dl.ContactDerivatives(G, r, operator=operator)
    if d.kinks.any():
        return "kink"
    if d.redundant and "sliding" in d.modes:
        return "shared"  # redundant contacts that slide may share their load otherwise

    # along the direction, through the matrix and through the factor of the operator
    (dg,) = differences(problem, lambda s: (problem.at(s)[1],), 1e-4)
    lower, upper = problem.bounds()
    found = d.jvp(dg=dg, dfriction=problem.dfriction, dlower=lower, dupper=upper, dq=problem.dq)
    m = len(g)
    native = _core.ContactModes64(m, *_sets(m, rows, problem.model, 1.0)[:2])
    native.find(G._native, r.forces, r.velocities, 0, d._modes.inverse_masses)
    s = operator.apply_jvp(r.forces, dq=problem.dq) + dg
    by_operator = native.tangents(s, problem.dfriction, np.where(d._at_lower, lower, upper), 1, True)
    for a, b in zip(found, by_operator, strict=True):
        assert np.abs(a - b).max() <= 1e-8 * max(np.abs(a).max(), 1.0), (seed, native.dense)

    # adjoint
    a, b = problem.rng.standard_normal((2, m))
    back = d.vjp(a, b)
    total = back.g @ dg + back.q @ problem.dq + back.friction @ problem.dfriction + back.lower @ lower + back.upper @ upper
    size = sum(np.abs(x * y).sum() for x, y in ((a, found.forces), (b, found.velocities), (back.g, s)))  # of what is added up
    assert abs(total - a @ found.forces - b @ found.velocities) <= 1e-12 * max(size, 1.0), seed

    # differences: velocities of rows and of joints, and forces if they are unique
    G.update(problem.q)
    pushed = np.linalg.solve(dl.mass_matrix(problem.model, problem.q), G.jacobian.T @ found.forces)
    least = np.inf
    for h in STEPS:
        kept = True

        def moved(s):
            nonlocal kept
            Gs, gs, _ = problem.at(s)
            x = dl.solve_contacts(Gs, gs, warm_start=r, **TIGHT)
            kept = kept and x.status == "solved" and dl.ContactDerivatives(Gs, x).modes == d.modes
            return x.velocities, problem.response(s, x.forces), problem.response(s, r.forces), x.forces

        velocities, joints, frozen, forces = differences(problem, moved, h)
        if not kept:
            continue
        pairs = [(found.velocities, velocities), (pushed + frozen, joints)] + ([] if d.redundant else [(found.forces, forces)])
        least = min(least, max(np.abs(x - y).max() / max(np.abs(y).max(), 1.0) for x, y in pairs))
        if least <= 1e-5:
            break
    if least == np.inf:
        return "changed"
    assert least <= 1e-5, (seed, d)
    return {*d.modes, *(c.rows for c in rows if isinstance(c, dl.PointContact)), "redundant" if d.redundant else "unique"}


def count(seeds):
    seen = [compared(seed) for seed in seeds]
    return Counter(kind for s in seen if isinstance(s, set) for kind in s), Counter(s for s in seen if isinstance(s, str)), len(seen)


def test_forty_problems():
    kinds, left_out, n = count(range(40))
    assert sum(left_out.values()) <= n / 3, left_out
    assert all(kinds[k] > 0 for k in ("open", "sticking", "sliding", "free", "bound", "redundant", "unique", 3, 4, 6)), kinds


@pytest.mark.exhaustive
def test_three_hundred_problems():
    kinds, left_out, n = count(range(100, 520))
    assert n - sum(left_out.values()) >= 300, left_out
    assert all(kinds[k] >= 20 for k in ("open", "sticking", "sliding", "free", "bound", "redundant", "unique", 3, 4, 6)), kinds
