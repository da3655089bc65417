"""Every way to G and (G + ε)⁻¹ side by side on a humanoid, and every contact solver on a fallen one: times, and what they differ by."""

import time

import numpy as np

import delassus as dl

model, q, constraints = dl.scenes.contact_set("g1-F6x2-H6x2")
m, damping = sum(c.rows for c in constraints), 1e-4


def best(call, repeats=20):
    """Return a result and the best time [µs]."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return result, 1e6 * min(times)


G = dl.DelassusOperator(model, constraints, damping=damping)
x = np.random.default_rng(0).standard_normal(m)
_, update = best(lambda: G.update(q))
product, apply = best(lambda: G @ x)
solution, solve = best(lambda: G.solve(x))
print(f"{model.name}, {m} rows. Matrix-free: update {update:.1f} µs, G x {apply:.1f} µs, (G + ε)⁻¹ y {solve:.1f} µs")

explicit = dl.ExplicitDelassus(model, constraints)
costs = explicit.explain()
print(f"\n{'explicit G by':18} µs   differs in G x by")
for method in costs.matrix:
    A, took = best(lambda method=method: explicit.matrix(q, method=method))
    error = np.abs(A @ x - product).max() / np.abs(product).max()
    print(f"{method:12} {took:8.1f}   {error:.0e}{'   auto' if method == costs.matrix_choice else ''}")
    assert error < 1e-9
print(f"\n{'explicit inverse by':20} µs   differs in x by")
for method in costs.inverse:
    B, took = best(lambda method=method: explicit.inverse(q, damping, method=method))
    error = np.abs(B @ x - solution).max() / np.abs(solution).max()
    print(f"{method:12} {took:8.1f}   {error:.0e}{'   auto' if method == costs.inverse_choice else ''}")
    assert error < 1e-6

# contact solvers, one step of a fall
model, q, constraints = dl.scenes.load("g1-fallen")
G = dl.DelassusOperator(model, constraints)
G.update(q)
v = model.zero_velocity()
g = G.jacobian @ (v + 1e-3 * dl.forward_dynamics(model, q, v, np.zeros(model.nv)))
print()
for method in ("admm", "newton", "pgs", "apgd"):
    r, took = best(lambda method=method: dl.solve_contacts(G, g, method=method, timestep=1e-3), repeats=3)
    print(f"{method:7} {took:10.0f} µs, {r.iterations:5} iterations, {r.status}, natural residual {r.residuals.natural:.0e} m/s")
    assert method == "apgd" or r.residuals.natural < 1e-5
