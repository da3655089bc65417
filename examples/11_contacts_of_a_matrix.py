"""The contact solver on matrices that come from elsewhere: a point by hand, then a random problem by four methods."""

import numpy as np

import delassus as dl

# a point of 2 kg, friction 0.5, comes down at 1 m/s while it moves sideways: slowly it sticks, fast it slides
mass, mu = 2.0, 0.5
for speed in (0.4, 2.0):
    r = dl.solve_contacts(np.eye(3) / mass, [-1.0, speed, 0.0], [mu])
    held = min(mass * speed, mu * mass)
    print(f"{speed} m/s: impulse {r.forces.round(6)} N s, then {r.velocities.round(6)} m/s, {r.status}")
    assert np.allclose(r.forces, [mass, -held, 0.0], atol=1e-6)
    assert np.allclose(r.velocities, [0.0, speed - held / mass, 0.0], atol=1e-6)

# twelve contacts of six bodies, more rows than motions: G is singular
rng = np.random.default_rng(3)
J = rng.standard_normal((36, 20))
G = J @ J.T / 20
g = J @ rng.standard_normal(20)
g[::3] -= 0.5
friction = rng.uniform(0.2, 0.9, 12)
answers = {}
for method in ("admm", "newton", "pgs", "lcp"):
    r = answers[method] = dl.solve_contacts(G, g, friction, method=method, **({"directions": 64} if method == "lcp" else {}))
    print(f"{method:7} {r.status:16} {r.iterations:5} iterations, natural residual {r.residuals.natural:.1e} m/s")

# forces need not be unique, but the laws hold: no pulling, friction in its cone, no going in, power is lost
for method in ("admm", "newton", "pgs"):
    r = answers[method]
    assert r.status == "solved"
    n, t = r.forces[::3], np.hypot(r.forces[1::3], r.forces[2::3])
    assert (n > -1e-6).all()
    assert (t <= friction * n + 1e-6).all()
    assert (r.velocities[::3] > -1e-5).all()
    assert np.abs(n * r.velocities[::3]).max() < 1e-5
    assert (r.forces.reshape(-1, 3)[:, 1:] * r.velocities.reshape(-1, 3)[:, 1:]).sum(axis=1).max() < 1e-5
    assert np.allclose(G @ r.forces + g, r.velocities, atol=1e-9)
