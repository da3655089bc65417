"""Functions for PyTorch: values, derivatives in both modes, batches, in two precisions, from several threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import delassus as dl

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

import delassus.torch as dt  # noqa: E402


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
    rows = [dl.PointContact(model, 3), dl.Distance(model, 5, other_point=(0.0, 0.0, 2.0))]
    y = torch.linspace(0.5, 1.5, 4, dtype=torch.float64, requires_grad=True)
    e = torch.full((4,), 0.1, dtype=torch.float64, requires_grad=True)
    check = {"check_forward_ad": True, "atol": 1e-5, "rtol": 1e-4, "eps": 1e-6}
    assert torch.autograd.gradcheck(lambda *a: dt.inverse_dynamics(model, *a), (q, v, x), **check)
    assert torch.autograd.gradcheck(lambda *a: dt.forward_dynamics(model, *a), (q, v, x), **check)
    assert torch.autograd.gradcheck(lambda *a: dt.constrained_dynamics(model, *a, rows), (q, v, x), **check)
    assert torch.autograd.gradcheck(lambda *a: dt.delassus_apply(model, *a, rows), (q, y), **check)
    assert torch.autograd.gradcheck(lambda *a: dt.delassus_solve(model, *a, rows), (q, y, e), **check)


def test_batches_are_their_states():
    model = dl.load("go2")
    states = [drawn(model, seed) for seed in range(3)]
    q, v, x = (torch.stack(s).requires_grad_() for s in zip(*states, strict=True))
    (dt.forward_dynamics(model, q, v, x) ** 2).sum().backward()
    for k, state in enumerate(states):
        single = [s.clone().requires_grad_() for s in state]
        (dt.forward_dynamics(model, *single) ** 2).sum().backward()
        for batch, one in zip((q, v, x), single, strict=True):
            assert torch.equal(batch.grad[k], one.grad)
    shared = x[0].detach().requires_grad_()
    dt.forward_dynamics(model, q.detach(), v.detach(), shared).sum().backward()  # one τ for all states
    wanted = sum(dl.mass_matrix_inverse(model, s[0].numpy()).sum(0) for s in states)
    assert np.allclose(shared.grad.numpy(), wanted, rtol=1e-9)


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
