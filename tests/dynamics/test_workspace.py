"""Workspaces, ``out``, precision and threads change where results are put, never what they are."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import delassus as dl
from delassus.errors import BusyError
from oracles.calls import CALLS, WITH_OUT, values

MODELS = {name: dl.load(name) for name in ("go2", "cassie", "iiwa")}
ALL_BUT_NORMALIZE = [name for name in CALLS if name != "normalize"]
RETURN_ARRAYS = [name for name in CALLS if not name.endswith("energy")]


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.fixture(params=[np.float64, np.float32], ids=["double", "single"])
def dtype(request):
    return request.param


@pytest.mark.parametrize("name", CALLS)
def test_results_repeat_to_the_bit(name, model, dtype):
    call, given = CALLS[name], values(model, 1, dtype)
    first = call(model, given)
    # other work in between leaves no trace
    CALLS["mass_matrix_inverse"](model, values(model, 2, dtype))
    assert np.array_equal(first, call(model, given))


@pytest.mark.parametrize("name", ALL_BUT_NORMALIZE)
def test_workspace_gives_the_bits_of_the_model(name, model, dtype):
    call, given = CALLS[name], values(model, 1, dtype)
    workspace = dl.Workspace(model, dtype)
    assert workspace.model is model
    assert workspace.dtype == dtype
    for seed in (1, 2, 1):
        given = values(model, seed, dtype)
        assert np.array_equal(call(workspace, given), call(model, given))


@pytest.mark.parametrize("name", WITH_OUT)
def test_out_is_filled_and_returned(name, model, dtype):
    call, given = CALLS[name], values(model, 1, dtype)
    out = np.full(call.out_shape(model), np.nan, dtype)
    for where in (model, dl.Workspace(model, dtype)):
        out.fill(np.nan)
        assert call(where, given, out=out) is out
        assert np.array_equal(out, call(model, given))


@pytest.mark.parametrize("name", RETURN_ARRAYS)
def test_single_precision_in_gives_single_precision_out(name, model):
    assert CALLS[name](model, values(model, 1, np.float32)).dtype == np.float32
    assert CALLS[name](model, values(model, 1, np.float64)).dtype == np.float64


@pytest.mark.parametrize("name", [name for name in WITH_OUT if len(CALLS[name].arrays) > 1])
def test_one_double_argument_makes_double_work(name, model):
    call, single = CALLS[name], values(model, 1, np.float32)
    last = call.arrays[-1]
    mixed = single | {last: single[last].astype(np.float64)}
    widened = {k: a.astype(np.float64) if isinstance(a, np.ndarray) else a for k, a in single.items()}
    result = call(model, mixed)
    assert result.dtype == np.float64
    assert np.array_equal(result, call(model, widened))


@pytest.mark.parametrize(("name", "argument"), [
    ("inverse_dynamics", "v"), ("inverse_dynamics", "acceleration"), ("bias_forces", "v"), ("forward_dynamics", "v"), ("forward_dynamics", "tau"),
    ("solve_mass_matrix", "y"), ("integrate", "q"),
])  # fmt: skip
def test_out_may_be_an_argument_of_its_shape(name, argument, model, dtype):
    call, given = CALLS[name], values(model, 1, dtype)
    expected = call(model, given)
    own = given | {argument: given[argument].copy()}
    call(model, own, out=own[argument])
    assert np.array_equal(own[argument], expected)


@pytest.mark.parametrize("name", CALLS)
def test_arguments_are_left_as_they_were(name, model):
    given, before = values(model, 1), values(model, 1)
    for a in given.values():
        if isinstance(a, np.ndarray):
            a.setflags(write=False)
    CALLS[name](model, given)
    assert all(np.array_equal(given[k], before[k]) for k in before)


THREADS, ROUNDS = 8, 40


def in_threads(work):
    """Run ``work(k)`` in many threads at once; return their results."""
    gate = threading.Barrier(THREADS)

    def run(k):
        gate.wait()
        return work(k)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


@pytest.mark.parametrize(
    "name", ["mass_matrix_inverse", "forward_dynamics", "inverse_dynamics", "solve_mass_matrix", "frame_jacobian", "body_placements"]
)
def test_threads_share_a_model(name):
    call, model = CALLS[name], dl.load("atlas_hands")
    given = [values(model, k) for k in range(THREADS)]
    expected = [call(model, g) for g in given]

    def work(k):
        return all(np.array_equal(call(model, given[k]), expected[k]) for _ in range(ROUNDS))

    assert all(in_threads(work))


def test_threads_on_one_workspace_are_told_or_served_but_never_mixed_up():
    # M⁻¹ of 300 links takes long enough without the interpreter's lock for threads to meet
    model = dl.scenes.chain(300)
    workspace, call = dl.Workspace(model), CALLS["mass_matrix_inverse"]
    given = [values(model, k) for k in range(THREADS)]
    expected = [call(model, g) for g in given]

    def work(k):
        served = refused = 0
        for _ in range(ROUNDS):
            try:
                assert np.array_equal(call(workspace, given[k]), expected[k])
                served += 1
            except BusyError:
                refused += 1
        return served, refused

    # until threads have met
    for _ in range(20):
        served, refused = np.sum(in_threads(work), axis=0)
        assert served > 0
        if refused:
            break
    else:
        pytest.fail("no two threads ever met in the workspace")
    # and it is free again
    assert np.array_equal(call(workspace, given[0]), expected[0])


def test_an_error_leaves_the_workspace_free():
    model = MODELS["go2"]
    workspace, given = dl.Workspace(model), values(model, 1)
    with pytest.raises(dl.errors.SingularError):
        dl.bias_forces(workspace, given["q"], given["v"] * 1e200)
    assert np.array_equal(dl.bias_forces(workspace, given["q"], given["v"]), dl.bias_forces(model, given["q"], given["v"]))
