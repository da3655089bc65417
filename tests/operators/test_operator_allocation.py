"""Once warm, update, products and solves of an operator ask the system for no memory."""

import pytest

from oracles.allocation import requests

CALLS = ["update", "matvec", "matmat", "solve", "solve columns", "batch update", "batch matvec", "batch solve"]
CALLS += [f"{name} with blocks" for name in ("update", "solve", "solve columns", "solve transposed", "batch update", "batch solve")]

# 200 contacts and a loop: rows beyond what NumPy keeps in its cache of small blocks
SCRIPT = """
for dtype in (np.float64, np.float32):
    model = dl.load("g1")
    contacts = [dl.PointContact(model, 1 + k % (model.nbody - 1), point=(0.01 * k, 0, 0)) for k in range(200)]
    G = dl.DelassusOperator(model, [*contacts, dl.Connect(model, 5, 12)], damping=1e-2, dtype=dtype)
    q = model.random(1).astype(dtype)
    G.update(q)
    rng = np.random.default_rng(1)
    y, Y = (rng.standard_normal(s).astype(dtype) for s in (G.shape[0], (G.shape[0], 7)))
    x, X = np.empty_like(y), np.empty_like(Y)
    report("update", dtype, lambda: G.update(q), 100)
    report("matvec", dtype, lambda: G.matvec(y, out=x), 100)
    report("matmat", dtype, lambda: G.matmat(Y, out=X), 100)
    report("solve", dtype, lambda: G.solve(y, out=x), 100)
    report("solve columns", dtype, lambda: G.solve(Y, out=X), 100)
    B = dl.BatchDelassusOperator(model, G.constraints, 3, damping=1e-2, dtype=dtype)
    Q, Z = np.tile(q, (3, 1)), np.tile(y, (3, 1))
    out = np.empty_like(Z)
    report("batch update", dtype, lambda: B.update(Q), 100)
    report("batch matvec", dtype, lambda: B.matvec(Z, out=out), 100)
    report("batch solve", dtype, lambda: B.solve(Z, out=out), 100)
    G.damping = B.damping = np.eye(3) + 0.1 * rng.standard_normal((201, 3, 3))
    report("update with blocks", dtype, lambda: G.update(q), 100)
    report("solve with blocks", dtype, lambda: G.solve(y, out=x), 100)
    report("solve columns with blocks", dtype, lambda: G.solve(Y, out=X), 100)
    report("solve transposed with blocks", dtype, lambda: G.solve_transposed(y, out=x), 100)
    report("batch update with blocks", dtype, lambda: B.update(Q), 100)
    report("batch solve with blocks", dtype, lambda: B.solve(Z, out=out), 100)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CALLS)
def test_hundred_calls_allocate_nothing(counts, name, dtype):
    assert counts[name, dtype] == 0
