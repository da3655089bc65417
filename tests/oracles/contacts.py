"""Contact problems, what is left of them by their definition, and a time stepper with nothing but the solver in it."""

from dataclasses import dataclass

import numpy as np

import delassus as dl


@dataclass(frozen=True, eq=False)
class Problem:
    """λ in its sets, σ = G λ + g; cones are (first row, friction), intervals (row, lower, upper)."""

    G: np.ndarray
    g: np.ndarray
    cones: tuple
    intervals: tuple = ()

    @property
    def friction(self):
        return [mu for _, mu in self.cones]


def project_cone(x, mu):
    """Nearest point of {‖t‖ ≤ µ n}, from its geometry: inside, in the polar cone, or on the nearest ray."""
    n, t = x[0], np.linalg.norm(x[1:])
    if n >= 0 and t <= mu * n:
        return x.copy()
    if mu * t <= -n:
        return np.zeros(3)
    ray = np.concatenate([[1.0], mu * x[1:] / t]) / np.sqrt(1 + mu * mu)
    return ray * (ray @ x)


def felt(G, cones, intervals):
    """Inverse mass that the rows feel: mean diagonal over a cone; the largest of all where nothing moves."""
    d = np.diag(G).astype(float).copy()
    largest = d.max(initial=0.0)
    largest = largest if largest > 0 else 1.0
    for r, _ in cones:
        d[r : r + 3] = d[r : r + 3].mean()
    d[d <= 1e-12 * largest] = largest
    return d


def residuals(G, g, cones, intervals, forces, *, coulomb=True, d=None):
    """Primal, dual, complementarity and natural residual, from the forces alone, all velocities."""
    sigma = G @ forces + g
    d = felt(G, cones, intervals) if d is None else d
    primal = dual = complementarity = natural = 0.0
    for r, mu in cones:
        f, s = forces[r : r + 3], sigma[r : r + 3].copy()
        into = max(-s[0], 0.0) if coulomb else max(mu * np.hypot(s[1], s[2]) - s[0], 0.0)
        s[0] += mu * np.hypot(s[1], s[2]) if coulomb else 0.0
        primal = max(primal, d[r] * np.linalg.norm(f - project_cone(f, mu)))
        dual = max(dual, into)
        size = max(np.linalg.norm(f), np.linalg.norm(s) / d[r])
        complementarity = max(complementarity, abs(f @ s) / size if size > 0 else 0.0)
        natural = max(natural, d[r] * np.linalg.norm(f - project_cone(f - s / d[r], mu)))
    for r, lower, upper in intervals:
        f, s = forces[r], sigma[r]
        primal = max(primal, d[r] * abs(f - np.clip(f, lower, upper)))
        end = lower if s > 0 else upper
        if np.isinf(end):
            dual = max(dual, abs(s))
        else:
            complementarity = max(complementarity, min(abs(s), d[r] * abs(f - end)))
        natural = max(natural, d[r] * abs(f - np.clip(f - s / d[r], lower, upper)))
    return primal, dual, complementarity, natural


def sets_of(constraints, timestep=1.0):
    """Cones and intervals of constraints, read off their kind."""
    cones, intervals, row = [], [], 0
    for c in constraints:
        if c.force_set == "cone":
            cones.append((row, c.friction))
        else:
            low, high = {"free": (-np.inf, np.inf), "half-line": (0.0, np.inf), "box": (-1.0, 1.0)}[c.force_set]
            scale = c.friction * timestep if c.force_set == "box" else 1.0
            intervals += [(row + k, low * scale, high * scale) for k in range(c.rows)]
        row += c.rows
    return tuple(cones), tuple(intervals)


def random_problem(rng, contacts=None, rank=None, friction=None):
    """A feasible problem of contacts: some stick, some slide, some are open, and g is made so that they do."""
    n = int(rng.integers(1, 9)) if contacts is None else contacts
    m = 3 * n
    A = rng.standard_normal((m, m if rank is None else rank))
    G = A @ A.T / m + (0.2 * np.eye(m) if rank is None else 0.0)
    mu = rng.uniform(0.05, 0.6, n) if friction is None else np.broadcast_to(friction, n).astype(float)
    forces, sigma = np.zeros(m), np.zeros(m)
    for k in range(n):
        kind, angle = rng.integers(3), rng.uniform(0, 2 * np.pi)
        u = np.array([np.cos(angle), np.sin(angle)])
        press = rng.uniform(0.2, 2.0)
        if kind == 0:
            forces[3 * k : 3 * k + 3] = press, *(rng.uniform(0, 0.95) * mu[k] * press * u)
        elif kind == 1:
            forces[3 * k : 3 * k + 3] = press, *(-mu[k] * press * u)
            sigma[3 * k + 1 : 3 * k + 3] = rng.uniform(0.1, 1.0) * u
        else:
            sigma[3 * k : 3 * k + 3] = rng.uniform(0.1, 1.0), *(rng.standard_normal(2))
    return Problem(G, sigma - G @ forces, tuple((3 * k, float(mu[k])) for k in range(n))), forces, sigma


class Stepper:
    """Semi-implicit steps of a mechanism that touches at fixed contacts: v ← v + dt M⁻¹ (τ − h) + M⁻¹ Jᵀ λ, q ← q ⊕ dt v."""

    def __init__(self, model, contacts, q, timestep, **options):
        self.model, self.contacts, self.dt, self.options = model, contacts, timestep, options
        self.q, self.v = np.array(q, dtype=float), np.zeros(model.nv)
        self.G = dl.DelassusOperator(model, contacts)
        self.result = None

    def step(self, tau=None):
        G, model = self.G, self.model
        G.update(self.q)
        free = self.v + self.dt * dl.forward_dynamics(model, self.q, self.v, np.zeros(model.nv) if tau is None else tau)
        self.result = dl.solve_contacts(G, G.jacobian @ free, warm_start=self.result, timestep=self.dt, **self.options)
        self.v = free + G.mass_inverse @ (G.jacobian.T @ self.result.forces)
        self.q = dl.integrate(model, self.q, self.v, self.dt)
        return self.result
