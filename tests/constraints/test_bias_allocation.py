"""Once warm, rows that fill arrays ask the system for no memory."""

import pytest

from oracles.allocation import requests

CALLS = ["error", "velocity", "drift", "bias"]

# every kind, and rows beyond what NumPy keeps in its cache of small blocks
SCRIPT = """
for dtype in (np.float64, np.float32):
    model = dl.load("g1")
    contacts = [dl.PointContact(model, 1 + k % (model.nbody - 1), point=(0.01 * k, 0, 0), other_point=(0, 0, 0), baumgarte=(9, 6)) for k in range(200)]
    others = [dl.Weld(model, 5, 12), dl.Hinge(model, 5, 12), dl.Distance(model, 5, 12, length=1.0), dl.CenterOfMass(model, target=(0, 0, 0)),
              dl.JointCoupling(model, 3, 4), dl.JointLimit(model, 5), dl.JointFriction(model, 0), dl.LinkConstraint(model, [(3, np.ones((2, 6)))])]
    rows = dl.ConstraintRows(model, [*contacts, *others], dtype)
    q, v = model.random(1).astype(dtype), np.random.default_rng(1).standard_normal(model.nv).astype(dtype)
    out = np.empty_like(rows.error(q))
    report("error", dtype, lambda: rows.error(q, out=out), 100)
    report("velocity", dtype, lambda: rows.velocity(q, v, out=out), 100)
    report("drift", dtype, lambda: rows.drift(q, v, out=out), 100)
    report("bias", dtype, lambda: rows.bias(q, v, out=out), 100)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CALLS)
def test_hundred_calls_allocate_nothing(counts, name, dtype):
    assert counts[name, dtype] == 0
