"""Once warm, constrained dynamics asks the system for no memory."""

import pytest

from oracles.allocation import requests

# 200 contacts and a loop: rows beyond what NumPy keeps in its cache of small blocks
SCRIPT = """
for dtype in (np.float64, np.float32):
    model = dl.load("g1")
    contacts = [dl.PointContact(model, 1 + k % (model.nbody - 1), point=(0.01 * k, 0, 0)) for k in range(200)]
    constraints = [*contacts, dl.Connect(model, 5, 12)]
    q, v, tau = model.random(1).astype(dtype), np.zeros(model.nv, dtype), np.ones(model.nv, dtype)
    dynamics = dl.ConstrainedDynamics(model, constraints, mu=1e3, max_iterations=5, dtype=dtype)
    a, f = np.empty(model.nv, dtype), np.empty(603, dtype)
    native = dynamics._native
    report("solve", dtype, lambda: native.solve(q, v, tau, None, None, dynamics._damping, 5, 1e-10, None, a, f, dynamics._history), 100)
    B = dl.BatchConstrainedDynamics(model, constraints, 3, mu=1e3, max_iterations=5, dtype=dtype)
    Q, V, T = (np.tile(x, (3, 1)) for x in (q, v, tau))
    A, F, N = np.empty((3, model.nv), dtype), np.empty((3, 603), dtype), np.empty((8, 3), dtype)
    report("batch solve", dtype, lambda: B._native.solve(Q, V, T, None, None, B._damping, B._compliance, 5, 1e-10, None, A, F, N), 100)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["solve", "batch solve"])
def test_hundred_calls_allocate_nothing(counts, name, dtype):
    assert counts[name, dtype] == 0
