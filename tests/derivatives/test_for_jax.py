"""Functions for JAX: values, derivatives in both modes, compiled, mapped, in two precisions, from several threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import delassus as dl

jax = pytest.importorskip("jax", reason="the extra jax is not installed")
from jax.test_util import check_grads  # noqa: E402

import delassus.jax as dj  # noqa: E402


@pytest.fixture(autouse=True)
def wide():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def drawn(model, seed=0):
    rng = np.random.default_rng(seed)
    return model.random(rng), *rng.standard_normal((2, model.nv))


def loops_of(model):
    return [*model.loops, dl.Connect(model, model.nbody - 1)]


def close(found, wanted):
    """Up to rounding: quaternions are normalized first."""
    return np.abs(found - wanted).max() <= 1e-10 * np.abs(wanted).max()


def test_values():
    model = dl.load("cassie")
    q, v, x = drawn(model)
    rows = loops_of(model)
    assert close(dj.inverse_dynamics(model, q, v, x), dl.inverse_dynamics(model, q, v, x))
    assert close(dj.forward_dynamics(model, q, v, x), dl.forward_dynamics(model, q, v, x))
    r = dl.constrained_dynamics(model, q, v, x, rows)
    a, f = dj.constrained_dynamics(model, q, v, x, rows)
    assert close(a, r.acceleration)
    assert close(f, r.forces)
    G = dl.DelassusOperator(model, rows)
    G.update(q)
    G.damping = 0.1
    y = np.ones(G.shape[0])
    assert close(dj.delassus_apply(model, q, y, rows), G @ y)
    assert close(dj.delassus_solve(model, q, y, 0.1, rows), G.solve(y))


@pytest.mark.parametrize("modes", [["fwd"], ["rev"]])
def test_derivatives_of_every_function(modes):
    model = dl.load("solo")
    q, v, x = drawn(model)
    rows = [dl.PointContact(model, 3), dl.Distance(model, 5, other_point=(0.0, 0.0, 2.0))]
    y = np.linspace(0.5, 1.5, 4)
    check = {"order": 1, "modes": modes, "atol": 1e-5, "rtol": 1e-5, "eps": 1e-6}
    check_grads(lambda *a: dj.inverse_dynamics(model, *a), (q, v, x), **check)
    check_grads(lambda *a: dj.forward_dynamics(model, *a), (q, v, x), **check)
    check_grads(lambda *a: dj.constrained_dynamics(model, *a, rows), (q, v, x), **check)
    check_grads(lambda *a: dj.delassus_apply(model, *a, rows), (q, y), **check)
    check_grads(lambda *a: dj.delassus_solve(model, *a, rows), (q, y, 0.1 * y), **check)


def test_compiled_and_mapped():
    model = dl.load("go2")
    states = [drawn(model, seed) for seed in range(3)]
    q, v, x = (np.stack(s) for s in zip(*states, strict=True))
    loss = jax.jit(lambda q, v, x: (dj.forward_dynamics(model, q, v, x) ** 2).sum())
    gradient = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
    many = jax.vmap(gradient)(q, v, x)
    for k, state in enumerate(states):
        for batch, single in zip(many, gradient(*state), strict=True):
            assert np.allclose(batch[k], single, rtol=1e-12)
    by_tau = jax.jacrev(lambda x: dj.forward_dynamics(model, q[0], v[0], x))(x[0])
    assert np.allclose(by_tau, dl.mass_matrix_inverse(model, q[0]), rtol=1e-9, atol=1e-12)


def test_single_precision():
    model = dl.load("go2")
    q, v, x = (np.asarray(a, np.float32) for a in drawn(model))
    value, gradient = jax.value_and_grad(lambda x: dj.inverse_dynamics(model, q, v, x).sum())(x)
    assert value.dtype == gradient.dtype == np.float32
    assert np.allclose(gradient, dl.mass_matrix(model, dl.normalize(model, q.astype(float))).sum(0), rtol=1e-4, atol=1e-4)


def test_several_threads_at_once():
    model = dl.load("cassie")
    rows = loops_of(model)
    states = [drawn(model, seed) for seed in range(8)]
    gradient = jax.jit(jax.grad(lambda q, v, x: dj.constrained_dynamics(model, q, v, x, rows)[0].sum(), argnums=2))
    wanted = [np.asarray(gradient(*s)) for s in states]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda s: np.asarray(gradient(*s)), states))
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_bad_shapes_are_named():
    model = dl.load("go2")
    q, v, x = drawn(model)
    with pytest.raises(dl.errors.ArgumentError, match="tau"):
        dj.forward_dynamics(model, q, v, x[:3])
