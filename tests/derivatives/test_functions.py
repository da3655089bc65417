"""Functions on plain arrays: what they keep, and axes that are states or directions."""

import threading

import numpy as np
import pytest

import delassus as dl
from delassus.derivatives import functions
from delassus.derivatives.functions import ConstrainedFunction, RolloutFunction, TreeFunction, evaluate, made, multiply
from oracles.compare import agree
from oracles.contact_problems import pushed_tripod


def drawn(model, *batch, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([model.random(rng) for _ in range(int(np.prod(batch)))]).reshape(*batch, model.nq)
    return q, *rng.standard_normal((2, *batch, model.nv))


def test_threads_that_come_and_go_find_what_others_left(monkeypatch):
    """Threads of a framework are new to Python at every call: nothing may be made anew for each of them, and nothing be destroyed with them."""
    model = dl.load("iiwa")
    made_here = []
    original = functions.LinearizedDynamics
    monkeypatch.setattr(functions, "LinearizedDynamics", lambda *a: made_here.append(a) or original(*a))
    f = ConstrainedFunction(model, [dl.Connect(model, model.nbody - 1)])
    x, found = [a[None] for a in drawn(model)], []
    y_bar = [np.ones((1, 1, n)) for n in f.outputs]
    for _ in range(5):
        thread = threading.Thread(target=lambda: found.append(f.vjp(x, y_bar)))
        thread.start()
        thread.join()
    assert len(made_here) == 1
    assert all(np.array_equal(a, b) for one in found for a, b in zip(one, found[0], strict=True))


def test_no_more_is_kept_than_a_few():
    model = dl.load("iiwa")
    f = TreeFunction(model, False)
    for states in range(2, 20):
        f.value(drawn(model, states))
    assert len(f._idle) == 8


def test_axes_of_states_and_of_directions():
    """Axes along which the arguments change are states, all others directions of one state; in any order, and none at all."""
    model = dl.load("solo")
    f = TreeFunction(model, True)
    x = [a.reshape(2, 1, 3, -1) for a in drawn(model, 6)]
    d = [np.random.default_rng(1).standard_normal((2, 4, 3, n)) for n in f.inputs]
    (found,) = multiply(f, x, d, False)
    (values,) = evaluate(f, x)
    assert found.shape == (2, 4, 3, model.nv)
    for i, j, k in np.ndindex(2, 4, 3):
        one = [a[i, 0, k] for a in x]
        agree(found[i, j, k], multiply(f, one, [a[i, j, k] for a in d], False)[0], 1e-12)
        agree(values[i, 0, k], dl.inverse_dynamics(model, *one), 1e-12)
    (empty,) = multiply(f, [a[:0] for a in x], [a[:0] for a in d], False)
    assert empty.shape == (0, 4, 3, model.nv)
    assert evaluate(f, [a[:0] for a in x])[0].shape == (0, 1, 3, model.nv)


def test_no_rows_and_no_controls():
    model = dl.load("iiwa")
    f = ConstrainedFunction(model, [])
    x = drawn(model, 3)
    acceleration, forces = evaluate(f, x)
    agree(acceleration[1], dl.forward_dynamics(model, *(a[1] for a in x)), 1e-10)
    assert forces.shape == (3, 0)
    back = multiply(f, x, [np.ones((3, n)) for n in f.outputs], True)
    assert [b.shape for b in back] == [(3, n) for n in f.inputs]


def test_the_same_is_made_once():
    model = dl.load("iiwa")
    assert made(TreeFunction, model, True) is made(TreeFunction, model, True)
    assert made(TreeFunction, dl.load("iiwa"), True) is made(TreeFunction, model, True)
    assert made(TreeFunction, dl.load("solo"), True) is not made(TreeFunction, model, True)


def test_a_quaternion_of_length_zero_is_named():
    model = dl.load("solo")
    q, v, x = (a[None] for a in drawn(model))
    q[:, 3:7] = 0
    with pytest.raises(dl.errors.QuaternionError, match="zero"):
        TreeFunction(model, True).value([q, v, x])


def test_checkpoints_change_nothing():
    sim, q, v = pushed_tripod()
    f = RolloutFunction(sim, 11)
    rng = np.random.default_rng(5)
    x = [q[None], v[None], rng.standard_normal((1, f.inputs[2]))]
    y_bar = [rng.standard_normal((1, 2, n)) for n in f.outputs]
    every_step = f.vjp(x, y_bar)
    f._every = 4
    for found, wanted in zip(f.vjp(x, y_bar), every_step, strict=True):
        assert np.array_equal(found, wanted)
    dx = [rng.standard_normal((1, 2, n)) for n in f.inputs]
    there, back = (sum((a * b).sum((0, 2)) for a, b in zip(*pair, strict=True)) for pair in ((y_bar, f.jvp(x, dx)), (every_step, dx)))
    agree(there, back, 1e-10)
    assert RolloutFunction(sim, 400)._every == 20
