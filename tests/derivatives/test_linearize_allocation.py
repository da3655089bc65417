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
D = dl.OperatorDerivatives(model, rows)
D.update(q, 1e-3)
report("apply", float, lambda: D._native.apply_tangents(f, x, f, 1, True), 100)
report("solve", float, lambda: D._native.solve_adjoints(f, f, 1, True), 100)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("name", ["update", "jvp", "vjp", "apply", "solve"])
def test_hundred_calls_allocate_nothing(counts, name):
    assert counts[name, "float64"] == 0
