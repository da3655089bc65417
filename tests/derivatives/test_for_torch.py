"""Functions for PyTorch: values, derivatives in both modes, batches, in two precisions, from several threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import delassus as dl
from delassus.derivatives.functions import ConstrainedFunction, TreeFunction

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

import delassus.torch as dt  # noqa: E402
from oracles.contact_problems import mixed_problem, pushed_tripod  # noqa: E402


def drawn(model, seed=0, **options):
    rng = np.random.default_rng(seed)
    return tuple(torch.tensor(x, **options) for x in (model.random(rng), *rng.standard_normal((2, model.nv))))


def close(found, wanted):
    """Up to rounding: quaternions are normalized first."""
    return np.abs(found - wanted).max() <= 1e-10 * np.abs(wanted).max()


def test_values():
    model = dl.load("cassie")
    q, v, x = drawn(model)
    r = dl.constrained_dynamics(model, q.numpy(), v.numpy(), x.numpy(), model.loops)
    a, f = dt.constrained_dynamics(model, q, v, x, model.loops)
    assert close(a.numpy(), r.acceleration)
    assert close(f.numpy(), r.forces)
    assert close(dt.inverse_dynamics(model, q, v, x).numpy(), dl.inverse_dynamics(model, q.numpy(), v.numpy(), x.numpy()))


def test_derivatives_of_every_function():
    model = dl.load("solo")
    q, v, x = drawn(model, requires_grad=True)
    q.data[3:7] *= 1.3  # a quaternion on its way through an optimizer
    rows = [dl.PointContact(model, 3), dl.Distance(model, 5, other_point=(0.0, 0.0, 2.0))]
    y = torch.linspace(0.5, 1.5, 4, dtype=torch.float64, requires_grad=True)
    e = torch.full((4,), 0.1, dtype=torch.float64, requires_grad=True)
    check = {"check_forward_ad": True, "atol": 1e-5, "rtol": 1e-4, "eps": 1e-6}
    assert torch.autograd.gradcheck(lambda *a: dt.inverse_dynamics(model, *a), (q, v, x), **check)
    assert torch.autograd.gradcheck(lambda *a: dt.forward_dynamics(model, *a), (q, v, x), **check)
    assert torch.autograd.gradcheck(lambda *a: dt.constrained_dynamics(model, *a, rows), (q, v, x), **check)
    assert torch.autograd.gradcheck(lambda *a: dt.delassus_apply(model, *a, rows), (q, y), **check)
    assert torch.autograd.gradcheck(lambda *a: dt.delassus_solve(model, *a, rows), (q, y, e), **check)
    assert torch.autograd.gradcheck(dt.solve_contacts, [torch.tensor(a, requires_grad=True) for a in mixed_problem()], **check)


def test_batches_are_their_states():
    model = dl.load("go2")
    states = [drawn(model, seed) for seed in range(3)]
    q, v, x = (torch.stack(s).requires_grad_() for s in zip(*states, strict=True))
    (dt.forward_dynamics(model, q, v, x) ** 2).sum().backward()
    for k, state in enumerate(states):
        single = [s.clone().requires_grad_() for s in state]
        (dt.forward_dynamics(model, *single) ** 2).sum().backward()
        for batch, one in zip((q, v, x), single, strict=True):
            assert close(batch.grad[k].numpy(), one.grad.numpy())
    shared = x[0].detach().requires_grad_()
    dt.forward_dynamics(model, q.detach(), v.detach(), shared).sum().backward()  # one τ for all states
    wanted = sum(dl.mass_matrix_inverse(model, s[0].numpy()).sum(0) for s in states)
    assert np.allclose(shared.grad.numpy(), wanted, rtol=1e-9)


def functions_of(model):
    """Every function, with arguments (states, n) each."""
    rng = np.random.default_rng(3)
    rows = [*model.loops, dl.Connect(model, model.nbody - 1)]
    m = sum(c.rows for c in dl.DelassusOperator(model, rows).constraints)
    q, v, x, y, e = (
        torch.tensor(a)
        for a in (np.stack([model.random(rng) for _ in range(3)]), *rng.standard_normal((2, 3, model.nv)), rng.standard_normal((3, m)), rng.uniform(0.1, 1, (3, m)))
    )  # fmt: skip
    contacts = [torch.tensor(np.stack(a)) for a in zip(*(mixed_problem(k) for k in range(3)), strict=True)]
    return {
        "inverse_dynamics": (lambda *a: dt.inverse_dynamics(model, *a), (q, v, x)),
        "forward_dynamics": (lambda *a: dt.forward_dynamics(model, *a), (q, v, x)),
        "constrained_dynamics": (lambda *a: dt.constrained_dynamics(model, *a, rows), (q, v, x)),
        "delassus_apply": (lambda *a: dt.delassus_apply(model, *a, rows), (q, y)),
        "delassus_solve": (lambda *a: dt.delassus_solve(model, *a, rows), (q, y, e)),
        "solve_contacts": (dt.solve_contacts, contacts),
    }


def agreed(found, wanted):
    found, wanted = (torch.utils._pytree.tree_leaves(x) for x in (found, wanted))
    return len(found) == len(wanted) and all(close(a.detach().numpy(), b.detach().numpy()) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize(
    "name", ["inverse_dynamics", "forward_dynamics", "constrained_dynamics", "delassus_apply", "delassus_solve", "solve_contacts"]
)
def test_batches_and_matrices_are_those_of_their_states(name):
    """Values, and Jacobians by rows and by columns, as batches and mapped over states in any order, are those of each state."""
    from torch.func import jacfwd, jacrev, vmap

    f, x = functions_of(dl.load("cassie"))[name]
    every = tuple(range(len(x)))
    states = [tuple(a[k] for a in x) for k in range(3)]
    stacked = lambda each: torch.utils._pytree.tree_map(lambda *a: torch.stack(a), *each)  # noqa: E731
    wanted = stacked([f(*s) for s in states])
    assert agreed(f(*x), wanted)
    assert agreed(vmap(f)(*x), wanted)
    by_rows = stacked([jacrev(f, every)(*s) for s in states])
    assert agreed(vmap(jacfwd(f, every))(*x), by_rows)
    assert agreed(vmap(jacrev(f, every))(*x), by_rows)
    # derivatives of all states by what one of the arguments has in common
    shared = lambda last: vmap(lambda *a: f(*a, last))(*x[:-1])  # noqa: E731
    last = x[-1][0]
    wanted = stacked([jacfwd(lambda last, s=s: f(*s[:-1], last))(last) for s in states])
    assert agreed(jacfwd(shared)(last), wanted)
    assert agreed(jacrev(shared)(last), wanted)


def test_batches_go_through_the_native_batch(monkeypatch):
    """One call gets all states, and one state with all its directions."""
    model = dl.load("go2")
    seen = []
    for kind, method in ((TreeFunction, "value"), (TreeFunction, "vjp"), (ConstrainedFunction, "vjp")):
        original = getattr(kind, method)
        monkeypatch.setattr(
            kind, method, lambda self, x, *d, o=original: seen.append([a.shape for a in (x[0], *(d[0] if d else ()))]) or o(self, x, *d)
        )
    (f, x), (g, y) = (functions_of(model)[name] for name in ("forward_dynamics", "constrained_dynamics"))
    torch.func.vmap(torch.func.grad(lambda *a: f(*a).sum()))(*x)
    assert seen == [[(3, model.nq)], [(3, model.nq), (3, 1, model.nv)]]
    del seen[:]
    torch.func.jacrev(lambda a: g(a, y[1][0], y[2][0])[0])(y[0][0])
    assert seen == [[(1, model.nq), (1, model.nv, model.nv), (1, model.nv, 3)]]


def test_second_derivatives_raise():
    model = dl.load("go2")
    q, v, x = drawn(model, requires_grad=True)
    (gradient,) = torch.autograd.grad(dt.forward_dynamics(model, q, v, x).sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        gradient.sum().backward()
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.func.hessian(lambda q: dt.forward_dynamics(model, q, v, x).sum())(q)


def test_values_of_steps():
    """Those of the simulator, which stays as it was, as batches too."""
    sim, q, v = pushed_tripod()
    before = sim.q.copy(), sim.v.copy(), sim.time
    controls = np.array([[3.0, -1.0], [2.0, 0.5], [0.0, 1.0]])
    all_q, all_v = dt.rollout(sim, q, v, np.stack([controls, -controls]))
    once = dt.step(sim, q, v, -controls[0])
    assert (np.array_equal(sim.q, before[0]), np.array_equal(sim.v, before[1]), sim.time == before[2]) == (True,) * 3
    sim.reset(q, v)
    for k, control in enumerate(-controls):
        sim.step(control=control)
        assert close(all_q[1, k].numpy(), sim.q)
        assert close(all_v[1, k].numpy(), sim.v)
        if k == 0:
            assert close(once[1].numpy(), sim.v)


def test_steps_begin_with_the_activations_and_mocap_bodies_of_the_simulator():
    scene = """<mujoco><worldbody><body name="hand" mocap="true"/><body name="cart"><joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="1" contype="0"/></body></worldbody>
      <equality><connect body1="cart" body2="hand" anchor="0 0 0" active="{}"/></equality><actuator><general joint="x" dyntype="filter" dynprm=".1" gainprm="1"/></actuator></mujoco>"""
    sim = dl.Simulator(scene.format("false"))
    sim.activation = [0.5]
    q, v, control = np.zeros((3, 1)), np.zeros((3, 1)), np.ones((3, 1))
    _, after = dt.step(sim, q, v, control)
    assert after[0] != 0
    assert (after == after[0]).all()
    assert sim.activation == [0.5]
    sim.step(control=[1.0])
    assert close(after[0].numpy(), sim.v)
    sim = dl.Simulator(scene.format("true"))
    sim.set_mocap("hand", (0.001, 0.0, 0.0), at_once=True)
    places, _ = dt.step(sim, q, v, control)
    assert np.allclose(places, 0.001, atol=2e-5)  # the loop holds the cart at the hand


def test_derivatives_of_steps():
    sim, q, v = pushed_tripod()
    rng = np.random.default_rng(4)
    x = q, v, rng.standard_normal(2), 0.1 * rng.standard_normal(sim.model.nv)
    check = {"check_forward_ad": True, "atol": 1e-5, "rtol": 1e-4, "eps": 1e-6}  # a gap of 1e-5 m is a kink
    assert torch.autograd.gradcheck(lambda *a: dt.step(sim, *a), [torch.tensor(a, requires_grad=True) for a in x], **check)
    x = q, v, rng.standard_normal((3, 2))
    assert torch.autograd.gradcheck(lambda *a: dt.rollout(sim, *a), [torch.tensor(a, requires_grad=True) for a in x], **check)


def test_single_precision_and_threads():
    model = dl.load("cassie")

    def gradient(seed):
        q, v, x = (a.float() for a in drawn(model, seed))
        x.requires_grad_()
        dt.constrained_dynamics(model, q, v, x, model.loops)[0].sum().backward()
        return x.grad

    wanted = [gradient(seed) for seed in range(6)]
    assert wanted[0].dtype == torch.float32
    with ThreadPoolExecutor(3) as pool:
        assert all(torch.equal(a, b) for a, b in zip(pool.map(gradient, range(6)), wanted, strict=True))


def test_bad_input_is_named():
    model = dl.load("go2")
    q, v, x = drawn(model)
    with pytest.raises(dl.errors.ArgumentError, match="tau"):
        dt.forward_dynamics(model, q, v, x[:3])
    with pytest.raises(dl.errors.ArgumentError, match="batch"):
        dt.forward_dynamics(model, q.expand(2, -1), v.expand(3, -1), x)
    with pytest.raises(dl.errors.NotFiniteError, match="v"):
        dt.forward_dynamics(model, q, v * float("nan"), x)
    for wrong in (dl.Connect(model, 1), [3]):
        with pytest.raises(dl.errors.ArgumentTypeError, match="constraints"):
            dt.constrained_dynamics(model, q, v, x, wrong)
    G, g, friction = mixed_problem()
    with pytest.raises(dl.errors.ArgumentError, match="G"):
        dt.solve_contacts(G[:6], g, friction)
    with pytest.raises(dl.errors.ArgumentError, match="friction"):
        dt.solve_contacts(G, g, 0.5)
    with pytest.raises(dl.errors.ArgumentError, match="negative"):
        dt.solve_contacts(G, g, -friction)
    sim, here, speed = pushed_tripod()
    with pytest.raises(dl.errors.ArgumentError, match="controls"):
        dt.rollout(sim, here, speed, np.zeros(2))
    with pytest.raises(dl.errors.ArgumentError, match="control"):
        dt.step(sim, here, speed, np.zeros(3))
    with pytest.raises(dl.errors.ArgumentError, match="threads"):
        dt.forward_dynamics(model, q, v, x, threads=0)
