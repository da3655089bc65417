"""With a Workspace and an earlier result no call asks the system for memory; batches neither."""

import pytest

from oracles.allocation import requests

SCRIPT = """
model = dl.load("g1")
rng = np.random.default_rng(0)
for dtype in (np.float64, np.float32):
    Q = np.stack([model.random(rng) for _ in range(9)]).astype(dtype)
    V, X = rng.standard_normal((2, 9, model.nv)).astype(dtype)
    workspace = dl.Workspace(model, dtype)
    for function in (dl.inverse_dynamics_derivatives, dl.forward_dynamics_derivatives):
        kept = function(workspace, Q[0], V[0], X[0])
        q, v, x = Q[0], V[0], X[0]
        report(function.__name__, dtype, lambda: function(workspace, q, v, x, out=kept), 300)
        many = function(workspace, Q, V, X)
        report("batch of " + function.__name__, dtype, lambda: function(workspace, Q, V, X, out=many), 50)
    Y = dl.torque_regressor(workspace, q, v, x)
    report("torque_regressor", dtype, lambda: dl.torque_regressor(workspace, q, v, x, out=Y), 300)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "name",
    [
        "inverse_dynamics_derivatives",
        "forward_dynamics_derivatives",
        "batch of inverse_dynamics_derivatives",
        "batch of forward_dynamics_derivatives",
        "torque_regressor",
    ],
)
def test_calls_that_have_their_memory_allocate_nothing(counts, name, dtype):
    assert counts[name, dtype] == 0
