"""With a Workspace and ``out`` no call asks the system for memory."""

import pytest

from oracles.allocation import requests
from oracles.calls import WITH_OUT

SCRIPT = """
from oracles.calls import CALLS, WITH_OUT, values

for dtype in (np.float64, np.float32):
    model = dl.load("g1")
    given = values(model, 1, dtype)
    workspace = dl.Workspace(model, dtype)
    for name in WITH_OUT:
        call = CALLS[name]
        arguments = [given[k] for k in call.arguments]
        keywords = {k: given[k] for k in call.keywords} | {"out": np.empty(call.out_shape(model), dtype)}
        report(name, dtype, lambda: call.function(workspace, *arguments, **keywords), 1000)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", WITH_OUT)
def test_thousand_calls_in_a_workspace_allocate_nothing(counts, name, dtype):
    assert counts[name, dtype] == 0
