"""Once warm, explicit matrices and the operators that keep them ask the system for no memory."""

import pytest

from oracles.allocation import requests

MATRIX = ["ltl", "kjr", "efpa", "pv-osim", "pv-osimr", "oscm", "columns", "auto"]
INVERSE = ["caba-osim", "caba-osimf", "pv-osimf", "ltl", "lcaba-osim", "lcaba", "auto"]
OPERATORS = ["DenseDelassus", "CholeskyDelassus"]
VERBS = ["update", "matvec", "matmat", "solve", "damping"]

SCRIPT = f"""
for dtype in (np.float64, np.float32):
    model = dl.load("g1")
    contacts = [dl.PointContact(model, 1 + k % (model.nbody - 1), point=(0.01 * k, 0, 0)) for k in range(40)]
    q = model.random(1).astype(dtype)
    explicit = dl.ExplicitDelassus(model, contacts, dtype=dtype)
    m = explicit.shape[0]
    out, damping = np.empty((m, m), dtype), np.full(m, 1e-2, dtype)
    for method in {MATRIX}:
        report("matrix " + method, dtype, lambda: explicit.matrix(q, method=method, out=out), 20)
    for method in {INVERSE}:
        report("inverse " + method, dtype, lambda: explicit.inverse(q, damping, method=method, out=out), 20)
    y, Y = np.ones(m, dtype), np.ones((m, 7), dtype)
    x, X = np.empty_like(y), np.empty_like(Y)
    for name in {OPERATORS}:
        G = getattr(dl, name)(model, contacts, damping=damping, dtype=dtype)
        G.update(q)
        report(name + " update", dtype, lambda: G.update(q), 20)
        report(name + " matvec", dtype, lambda: G.matvec(y, out=x), 20)
        report(name + " matmat", dtype, lambda: G.matmat(Y, out=X), 20)
        report(name + " solve", dtype, lambda: G.solve(Y, out=X), 20)
        report(name + " damping", dtype, lambda: G._native.set_damping(damping), 20)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


CALLS = [*(f"matrix {m}" for m in MATRIX), *(f"inverse {m}" for m in INVERSE), *(f"{name} {verb}" for name in OPERATORS for verb in VERBS)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_allocate_nothing(counts, name, dtype):
    assert counts[name, dtype] == 0
