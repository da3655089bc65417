"""Functions for JAX: values, derivatives in both modes, compiled, mapped, in two precisions, from several threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import delassus as dl
from delassus.derivatives.functions import ConstrainedFunction, TreeFunction

jax = pytest.importorskip("jax", reason="the extra jax is not installed")
from jax.test_util import check_grads  # noqa: E402

import delassus.jax as dj  # noqa: E402
from oracles.contact_problems import mixed_problem, pushed_tripod  # noqa: E402


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
    q[3:7] *= 1.3  # a quaternion on its way through an optimizer
    rows = [dl.PointContact(model, 3), dl.Distance(model, 5, other_point=(0.0, 0.0, 2.0))]
    y = np.linspace(0.5, 1.5, 4)
    check = {"order": 1, "modes": modes, "atol": 1e-5, "rtol": 1e-5, "eps": 1e-6}
    check_grads(lambda *a: dj.inverse_dynamics(model, *a), (q, v, x), **check)
    check_grads(lambda *a: dj.forward_dynamics(model, *a), (q, v, x), **check)
    check_grads(lambda *a: dj.constrained_dynamics(model, *a, rows), (q, v, x), **check)
    check_grads(lambda *a: dj.delassus_apply(model, *a, rows), (q, y), **check)
    check_grads(lambda *a: dj.delassus_solve(model, *a, rows), (q, y, 0.1 * y), **check)
    check_grads(dj.solve_contacts, mixed_problem(), **check)


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


def functions_of(model):
    """Every function, with arguments (states, n) each."""
    rng = np.random.default_rng(3)
    rows = loops_of(model)
    m = sum(c.rows for c in dl.DelassusOperator(model, rows).constraints)
    q, (v, x) = np.stack([model.random(rng) for _ in range(3)]), rng.standard_normal((2, 3, model.nv))
    y, e = rng.standard_normal((3, m)), rng.uniform(0.1, 1, (3, m))
    contacts = [np.stack(a) for a in zip(*(mixed_problem(k) for k in range(3)), strict=True)]
    return {
        "inverse_dynamics": (lambda *a: dj.inverse_dynamics(model, *a), (q, v, x)),
        "forward_dynamics": (lambda *a: dj.forward_dynamics(model, *a), (q, v, x)),
        "constrained_dynamics": (lambda *a: dj.constrained_dynamics(model, *a, rows), (q, v, x)),
        "delassus_apply": (lambda *a: dj.delassus_apply(model, *a, rows), (q, y)),
        "delassus_solve": (lambda *a: dj.delassus_solve(model, *a, rows), (q, y, e)),
        "solve_contacts": (dj.solve_contacts, contacts),
    }


def agreed(found, wanted):
    found, wanted = (jax.tree_util.tree_leaves(x) for x in (found, wanted))
    return len(found) == len(wanted) and all(close(np.asarray(a), np.asarray(b)) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize(
    "name", ["inverse_dynamics", "forward_dynamics", "constrained_dynamics", "delassus_apply", "delassus_solve", "solve_contacts"]
)
def test_batches_and_matrices_are_those_of_their_states(name):
    """Values, and Jacobians by rows and by columns, mapped over states in any order, are those of each state."""
    f, x = functions_of(dl.load("cassie"))[name]
    every = tuple(range(len(x)))
    states = [tuple(a[k] for a in x) for k in range(3)]
    stacked = lambda each: jax.tree_util.tree_map(lambda *a: np.stack(a), *each)  # noqa: E731
    assert agreed(jax.vmap(f)(*x), stacked([f(*s) for s in states]))
    by_rows = stacked([jax.jacrev(f, every)(*s) for s in states])
    assert agreed(jax.vmap(jax.jacfwd(f, every))(*x), by_rows)
    assert agreed(jax.jit(jax.vmap(jax.jacrev(f, every)))(*x), by_rows)
    # derivatives of all states by what one of the arguments has in common
    shared = lambda last: jax.vmap(lambda *a: f(*a, last))(*x[:-1])  # noqa: E731
    last = x[-1][0]
    wanted = stacked([jax.jacfwd(lambda last, s=s: f(*s[:-1], last))(last) for s in states])
    assert agreed(jax.jacfwd(shared)(last), wanted)
    assert agreed(jax.jacrev(shared)(last), wanted)


def test_maps_go_through_the_native_batch(monkeypatch):
    """One callback gets all states, and one state with all its directions."""
    model = dl.load("go2")
    (f, x), (g, y) = (functions_of(model)[name] for name in ("forward_dynamics", "constrained_dynamics"))
    seen = []
    for kind, method in ((TreeFunction, "value"), (TreeFunction, "vjp"), (ConstrainedFunction, "vjp")):
        original = getattr(kind, method)
        monkeypatch.setattr(
            kind, method, lambda self, x, *d, o=original: seen.append([a.shape for a in (x[0], *(d[0] if d else ()))]) or o(self, x, *d)
        )
    jax.vmap(f)(*x)
    assert seen == [[(3, model.nq)]]
    del seen[:]
    jax.vmap(jax.grad(lambda *a: f(*a).sum()))(*x)
    assert [(3, model.nq), (3, 1, model.nv)] in seen
    del seen[:]
    jax.jacrev(lambda a: g(a, y[1][0], y[2][0])[0])(y[0][0])
    assert [(1, model.nq), (1, model.nv, model.nv), (1, model.nv, 3)] in seen


def test_second_derivatives_raise():
    model = dl.load("go2")
    q, v, x = drawn(model)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        jax.hessian(lambda q: dj.forward_dynamics(model, q, v, x).sum())(q)


def test_adjoints_by_a_matrix_are_symmetric():
    G, g, friction = mixed_problem()
    by_G = jax.grad(lambda G: (dj.solve_contacts(G, g, friction) ** 2).sum())(G)
    assert np.array_equal(by_G, by_G.T)
    skewed = G + np.triu(np.ones_like(G), 1) - np.tril(np.ones_like(G), -1)
    assert close(dj.solve_contacts(skewed, g, friction), dl.solve_contacts(G, g, friction, tolerance=1e-11).forces)


def test_values_of_steps():
    """Those of the simulator, which stays as it was."""
    sim, q, v = pushed_tripod()
    before = sim.q.copy(), sim.v.copy(), sim.time
    controls = np.array([[3.0, -1.0], [2.0, 0.5], [0.0, 1.0]])
    found = [dj.step(sim, q, v, controls[0]), [x[0] for x in dj.rollout(sim, q, v, controls)]]
    all_q, all_v = dj.rollout(sim, q, v, controls)
    assert (np.array_equal(sim.q, before[0]), np.array_equal(sim.v, before[1]), sim.time == before[2]) == (True,) * 3
    sim.reset(q, v)
    for k, control in enumerate(controls):
        step = sim.step(control=control)
        assert step.contacts
        assert close(all_q[k], sim.q)
        assert close(all_v[k], sim.v)
        if k == 0:
            assert all(close(a[0], sim.q) and close(a[1], sim.v) for a in found)


@pytest.mark.parametrize("modes", [["fwd"], ["rev"]])
def test_derivatives_of_steps(modes):
    sim, q, v = pushed_tripod()
    rng = np.random.default_rng(4)
    control, tau, controls = rng.standard_normal(2), 0.1 * rng.standard_normal(sim.model.nv), rng.standard_normal((4, 2))
    check = {"order": 1, "modes": modes, "atol": 1e-5, "rtol": 1e-5, "eps": 1e-6}  # a gap of 1e-5 m is a kink
    check_grads(lambda *a: dj.step(sim, *a), (q, v, control, tau), **check)
    check_grads(lambda *a: dj.rollout(sim, *a), (q, v, controls), **check)
    states = jax.vmap(jax.jit(jax.grad(lambda c: dj.rollout(sim, q, v, c)[0].sum())))(np.stack([controls, -controls]))
    assert close(states[1], jax.grad(lambda c: dj.rollout(sim, q, v, c)[0].sum())(-controls))


def test_single_precision():
    model = dl.load("go2")
    q, v, x = (np.asarray(a, np.float32) for a in drawn(model))
    value, gradient = jax.value_and_grad(lambda x: dj.inverse_dynamics(model, q, v, x).sum())(x)
    assert jax.jacfwd(lambda x: dj.inverse_dynamics(model, q, v, x))(x).dtype == np.float32
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
    for wrong in (dl.Connect(model, 1), [3]):
        with pytest.raises(dl.errors.ArgumentTypeError, match="constraints"):
            dj.constrained_dynamics(model, q, v, x, wrong)
    G, g, friction = mixed_problem()
    with pytest.raises(dl.errors.ArgumentError, match="G"):
        dj.solve_contacts(G[:6], g, friction)
    with pytest.raises(dl.errors.ArgumentError, match="friction"):
        dj.solve_contacts(G, g, 0.5)
    sim, q, v = pushed_tripod()
    with pytest.raises(dl.errors.ArgumentError, match="controls"):
        dj.rollout(sim, q, v, np.zeros(2))
    with pytest.raises(dl.errors.ArgumentError, match="control"):
        dj.step(sim, q, v, np.zeros(3))
    model = dl.load("go2")
    q, v, x = drawn(model)
    with pytest.raises(dl.errors.ArgumentError, match="threads"):
        dj.forward_dynamics(model, q, v, x, threads=0)
