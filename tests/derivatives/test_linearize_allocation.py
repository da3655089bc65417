"""Once warm, products with derivatives ask the system for no memory."""

import pytest

from oracles.allocation import requests

# small enough for NumPy's cache of blocks, with loops, contacts that repeat, and rows of joints
SCRIPT = """
model = dl.load("cassie")
rows = [*model.loops, dl.JointFriction(model, 1, 0.1), *(dl.PointContact(model, 3, point=(0.1 * k, 0, 0)) for k in range(4))]
q, v, tau = model.random(1), model.zero_velocity(), np.ones(model.nv)
L = dl.LinearizedDynamics(model, rows)
r = L.update(q, v, tau)
assert L.redundant
x, a, f = np.ones(model.nv), np.ones(model.nv), np.ones(r.forces.size)
n, C, d = L._native, L._compliance, L._damping
report("update", float, lambda: n.update(q, v, r.acceleration, r.forces, None, C, d), 100)
report("jvp", float, lambda: n.tangents(x, x, x, 1, True), 100)
report("vjp", float, lambda: n.adjoints(a, f, 1, True), 100)
# matrices: of these rows, which depend on each other, and of some that do not
for name, some in (("redundant matrices", rows), ("matrices", rows[:-3])):
    K = dl.LinearizedDynamics(model, some)
    out = K.derivatives_at(q, v, tau)
    native, matrices = K._native_matrices(1), tuple(vars(out).values())[2:]
    settings = None, K._compliance, K._damping, K._dynamics._damping, 20, 1e-12
    report(name, float, lambda: native.solve(q, v, tau, *settings, out.acceleration, out.forces, matrices, 0), 100)
    K.update(q, v, tau)
    assert K.redundant == (some is rows)
B = dl.BatchLinearizedDynamics(model, rows, 2)
two = [np.stack([x, x]) for x in (q, v, tau)]
s = B.update(*two)
report("batch update", float, lambda: B._native.update(*two[:2], s.acceleration, s.forces, None, C, d), 100)
report("batch vjp", float, lambda: B._native.adjoints(two[2], s.forces, 1, True), 100)
D = dl.OperatorDerivatives(model, rows)
D.update(q, 1e-3)
report("apply", float, lambda: D._native.apply_tangents(f, x, f, 1, True), 100)
report("solve", float, lambda: D._native.solve_adjoints(f, f, 1, True), 100)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("name", ["update", "jvp", "vjp", "matrices", "redundant matrices", "batch update", "batch vjp", "apply", "solve"])
def test_hundred_calls_allocate_nothing(counts, name):
    assert counts[name, "float64"] == 0
