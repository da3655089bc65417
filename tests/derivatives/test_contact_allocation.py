"""Once warm, derivatives of contact forces ask the system for no memory."""

import pytest

from oracles.allocation import requests

# contacts of a robot, by a matrix and by the factor of an operator, redundant ones too; and on the central path
SCRIPT = """
from delassus import _core
from delassus.solvers.contacts import _sets
scene = dl.scenes.load("g1-standing-friction")
model, rows = scene.model, scene.constraints
G = dl.DelassusOperator(model, rows)
G.update(scene.q)
g = G.jacobian @ (0.01 * dl.forward_dynamics(model, scene.q, model.zero_velocity(), None))
r = dl.solve_contacts(G, g, tolerance=1e-11)
m, sets, A = g.size, _sets(g.size, rows, model, 1.0)[:2], G.to_matrix()
x = np.ones(m)
for name, native, dense in (("matrix", A, 1000), ("blocks", G._native, 0)):
    c = _core.ContactModes64(m, *sets)
    c.find(native, r.forces, r.velocities, dense)
    assert c.redundant and c.dense == (name == "matrix")
    report(name + " find", float, lambda: c.find(native, r.forces, r.velocities, dense), 100)
    report(name + " jvp", float, lambda: c.tangents(x, None, None, 1, True), 100)
    report(name + " vjp", float, lambda: c.adjoints(x, x, 1, True), 100)
    s = _core.SmoothedContacts64(m, *sets)
    assert s.find(native, g, 1e-3, r.forces, dense)
    report(name + " smoothed", float, lambda: s.find(native, g, 1e-3, r.forces, dense), 100)
    report(name + " smoothed vjp", float, lambda: s.adjoints(x, x, 1, True), 100)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("map_", ["matrix", "blocks"])
@pytest.mark.parametrize("name", ["find", "jvp", "vjp", "smoothed", "smoothed vjp"])
def test_hundred_calls_allocate_nothing(counts, map_, name):
    assert counts[f"{map_} {name}", "float64"] == 0
