"""Derivatives of constrained dynamics as matrices: against products with the Jacobian, one state and batches, and what bad input gets."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, InaccurateError, NotFiniteError, SingularError, StaleError
from oracles.compare import agree
from oracles.row_kinds import KINDS, tree

NAMES = ("acceleration_q", "acceleration_v", "acceleration_tau", "forces_q", "forces_v", "forces_tau")


def products(L):
    """The six matrices by columns of products."""
    one = np.eye(L.model.nv)
    along = L.jvp(dq=one), L.jvp(dv=one), L.jvp(dtau=one)
    return [*(t.acceleration for t in along), *(t.forces for t in along)]


def agree_with_products(L, tolerance=1e-10):
    """L.derivatives() are products with unit vectors; the larger of two matrices that are solved for together is the scale."""
    d, wanted = L.derivatives(), products(L)
    assert np.array_equal(d.acceleration, L.result.acceleration)
    assert np.array_equal(d.forces, L.result.forces)
    for name, want in zip(NAMES, wanted, strict=True):
        if want.any():  # at rest nothing depends on v to first order
            agree(getattr(d, name), want, tolerance)
        else:
            assert not getattr(d, name).any()
    return d


def states(model, count, seed, speed=1.0):
    rng = np.random.default_rng([seed, 3])
    q = np.stack([model.random(rng) for _ in range(count)])
    return q, *(speed * rng.standard_normal((2, count, model.nv))), rng.standard_normal((count, model.nbody, 6))


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_are_products_for_every_kind_of_row(kind):
    model = tree()
    q, v, tau, external = (x[0] for x in states(model, 1, 1))
    L = dl.linearize(model, q, v, tau, [KINDS[kind](model)], external_forces=external)
    agree_with_products(L)
    # and those that the dense matrices solve for by themselves
    d, e = L.derivatives(), L.derivatives_at(q, v, tau, external_forces=external)
    for name, want in vars(d).items():
        agree(getattr(e, name), want, 1e-9)


def test_many_kinds_at_once_with_compliance():
    model = tree()
    q, v, tau, external = (x[0] for x in states(model, 1, 2))
    rows = [KINDS[k](model) for k in ("contact on the world", "universal", "coupling", "distance", "limit")]
    compliance = np.linspace(0.01, 0.1, sum(c.rows for c in rows))
    agree_with_products(dl.linearize(model, q, v, tau, rows, external_forces=external, compliance=compliance))


@pytest.mark.parametrize("robot", ["go2", "g1", "cassie", "talos", "atlas", "atlas_hands", "iiwa", "solo", "hand"])
def test_matrices_are_products_on_robots_with_loops_and_contacts(robot):
    model = dl.load(robot)
    q, v, tau, _ = (x[0] for x in states(model, 1, 3))
    leaves = [b for b in range(1, model.nbody) if b not in set(model.body_parent)][-2:]
    for rows in ([], [*model.loops, *(dl.PointContact(model, b) for b in leaves[: 2 if model.nv > 12 else 1])]):
        agree_with_products(dl.linearize(model, q, v, tau, rows))


@pytest.mark.parametrize("robot", ["go2", "g1"])
def test_matrices_of_redundant_contacts(robot):
    model = dl.load(robot)
    q, _, tau, _ = (x[0] for x in states(model, 1, 5))
    corners = [(0.1, 0.05, 0), (0.1, -0.05, 0), (-0.1, 0.05, 0), (-0.1, -0.05, 0), (0.1, 0.05, 0)]
    rows = [dl.PointContact(model, model.nbody - 1, point=p) for p in corners]
    L = dl.linearize(model, q, model.zero_velocity(), tau, rows)
    assert L.redundant
    d = agree_with_products(L, 1e-9)  # as products with the Jacobian and with its transpose do: rounding over the damping
    e = L.derivatives_at(q, model.zero_velocity(), tau)
    for name in NAMES:
        agree(getattr(e, name), getattr(d, name), 1e-9)


@pytest.mark.parametrize("links", [10, 40, 100])
def test_matrices_of_chains(links):
    """Of long chains M⁻¹ as a matrix would lose digits: products take over."""
    model = dl.scenes.chain(links)
    q, v, tau, _ = (x[0] for x in states(model, 1, 7, speed=0.1))
    q = 0.4 * np.sin(0.7 * np.arange(model.nq) + 0.4)
    rows = [dl.Weld(model, model.nbody - 1, point=(0.0, 0.0, -0.2), baumgarte=(0.0, 7.0))]
    L = dl.linearize(model, q, v, tau, rows)
    agree_with_products(L)
    e = L.derivatives_at(q, v, tau)
    for name in NAMES:
        agree(getattr(e, name), getattr(L.derivatives(), name), 1e-9)


def test_more_rows_than_the_small_inverse_takes():
    scene = dl.scenes.contact_set("atlas_hands-F6x2-T3x10")
    _, v, tau, _ = (x[0] for x in states(scene.model, 1, 8, speed=0.0))
    L = dl.linearize(scene.model, scene.q, v, tau, scene.constraints)
    assert L.result.forces.size == 42
    agree_with_products(L, 1e-9)  # nearly redundant


# ---- batches ------------------------------------------------------------------------------------------------------------------


def batch_of(robot, count=9):
    model = dl.load(robot)
    q, v, tau, external = states(model, count, 9)
    leaves = [b for b in range(1, model.nbody) if b not in set(model.body_parent)][:2]
    return model, [*model.loops, *(dl.PointContact(model, b, baumgarte=(0.0, 7.0)) for b in leaves)], q, v, tau, external


@pytest.mark.parametrize("robot", ["go2", "cassie"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_is_its_states_one_by_one(robot, threads):
    model, rows, q, v, tau, external = batch_of(robot)
    D = dl.constrained_dynamics_derivatives(model, q, v, tau, rows, external_forces=external, threads=threads)
    L = dl.LinearizedDynamics(model, rows)
    for k in range(len(q)):
        one = L.derivatives_at(q[k], v[k], tau[k], external_forces=external[k])
        for name, want in vars(one).items():
            assert np.array_equal(getattr(D, name)[k], want), name
    assert D.forces_q.shape == (len(q), D.forces.shape[1], model.nv)


@pytest.mark.parametrize("threads", [1, 2])
def test_products_and_matrices_of_batches(threads):
    model, rows, q, v, tau, external = batch_of("go2")
    B = dl.linearize(model, q, v, tau, rows, external_forces=external, threads=threads)
    assert isinstance(B, dl.BatchLinearizedDynamics)
    assert not B.redundant.any()
    rng = np.random.default_rng(10)
    m, n, count = B.result.forces.shape[1], model.nv, len(q)
    dq, dv, dtau, a = rng.standard_normal((4, count, n, 3))
    f = rng.standard_normal((count, m, 3))
    along, back, D = B.jvp(dq, dv, dtau), B.vjp(a, f), B.derivatives()
    vector = B.vjp(a[:, :, 0])
    for k in range(count):
        L = dl.linearize(model, q[k], v[k], tau[k], rows, external_forces=external[k])
        # states side by side are rounded otherwise: ν̇ and λ differ in the last digits
        agree(along.acceleration[k], L.jvp(dq[k], dv[k], dtau[k]).acceleration, 1e-11)
        agree(along.forces[k], L.jvp(dq[k], dv[k], dtau[k]).forces, 1e-11)
        agree(back.q[k], L.vjp(a[k], f[k]).q, 1e-11)
        agree(back.tau[k], L.vjp(a[k], f[k]).tau, 1e-11)
        agree(vector.v[k], L.vjp(a[k, :, 0]).v, 1e-11)
        for name in NAMES:
            agree(getattr(D, name)[k], getattr(L.derivatives(), name), 1e-11)
    total = (along.acceleration * a).sum() + (along.forces * f).sum()
    assert total == pytest.approx((back.q * dq).sum() + (back.v * dv).sum() + (back.tau * dtau).sum(), rel=1e-10)


def test_a_batch_with_one_redundant_state():
    """Two points of one foot hold it in all directions but one, about the line between them; a third on that line adds nothing."""
    model = dl.load("go2")
    rows = [dl.PointContact(model, model.nbody - 1, point=p) for p in ((0.1, 0, 0), (-0.1, 0, 0), (0.0, 0, 0))]
    q, v, tau, _ = states(model, 3, 11, speed=0.0)
    B = dl.linearize(model, q, v, tau, rows)
    assert B.redundant.all()
    D = dl.constrained_dynamics_derivatives(model, q, v, tau, rows, threads=2)
    for name in NAMES:
        agree(getattr(D, name), getattr(B.derivatives(), name), 1e-8)


def test_an_earlier_result_is_filled():
    model, rows, q, v, tau, _ = batch_of("go2", 3)
    L = dl.LinearizedDynamics(model, rows)
    first = L.derivatives_at(q, v, tau)
    again = L.derivatives_at(q[::-1].copy(), v[::-1].copy(), tau[::-1].copy(), out=first)
    assert all(getattr(again, name) is getattr(first, name) for name in vars(first))
    one = L.derivatives_at(q[0], v[0], tau[0])
    assert np.array_equal(again.acceleration_q[-1], one.acceleration_q)
    L.update(q[1], v[1], tau[1])
    filled = L.derivatives(out=one)
    assert filled.forces_tau is one.forces_tau
    assert np.array_equal(one.acceleration, L.result.acceleration)
    agree(filled.acceleration_q, L.derivatives_at(q[1], v[1], tau[1]).acceleration_q, 1e-10)


# ---- bad input ----------------------------------------------------------------------------------------------------------------


def test_bad_input():
    model, rows, q, v, tau, _ = batch_of("go2", 3)
    L = dl.LinearizedDynamics(model, rows)
    with pytest.raises(StaleError, match="update"):
        L.derivatives()
    with pytest.raises(ArgumentError, match="v: expected shape"):
        L.derivatives_at(q, v[0], tau)
    with pytest.raises(ArgumentError, match="at least one state"):
        L.derivatives_at(q[:0], v[:0], tau[:0])
    with pytest.raises(NotFiniteError, match="tau"):
        L.derivatives_at(q, v, np.full_like(tau, np.nan))
    with pytest.raises(ArgumentError, match="threads"):
        L.derivatives_at(q, v, tau, threads=0)
    with pytest.raises(ArgumentTypeError, match="out"):
        L.derivatives_at(q, v, tau, out=v)
    earlier = L.derivatives_at(q, v, tau)
    with pytest.raises(ArgumentError, match="out"):
        L.derivatives_at(q[0], v[0], tau[0], out=earlier)
    single = L.derivatives_at(q[0], v[0], tau[0])
    with pytest.raises(ArgumentError, match="shares memory with v"):
        L.derivatives_at(q[0], single.acceleration_q[0], tau[0], out=single)
    B = dl.BatchLinearizedDynamics(model, rows, 3)
    for call in (lambda: B.jvp(dq=v), lambda: B.vjp(v), B.derivatives, lambda: B.redundant):
        with pytest.raises(StaleError, match="update"):
            call()
    B.update(q, v, tau)
    with pytest.raises(ArgumentError, match=r"dq: expected shape \(3, 18\) or \(3, 18, k\)"):
        B.jvp(dq=v[:2])
    with pytest.raises(NotFiniteError, match="v"):
        B.update(q, np.full_like(v, np.inf))
    with pytest.raises(StaleError):  # what failed left no states behind
        B.derivatives()


def test_the_state_that_cannot_be_solved_is_named():
    model = dl.load("iiwa")
    body = model.nbody - 1
    rows = [dl.Weld(model, body), dl.Weld(model, body, point=(0.3, 0, 0))]
    q, v, _, _ = states(model, 3, 12)
    v[:2] = 0
    with pytest.raises(InaccurateError, match="state 2"):
        dl.constrained_dynamics_derivatives(model, q, v, None, rows, threads=2)
    with pytest.raises(InaccurateError, match="state 2"):
        dl.linearize(model, q, v, None, rows)


def test_the_state_whose_mass_matrix_is_singular_is_named():
    """A ball's three axes and a hinge on the same body: one motion is there twice."""
    text = """<mujoco><worldbody><body><joint type="hinge" axis="0 0 1"/><joint type="hinge" axis="0 0 1" pos="0 0 0"/>
    <geom size="0.1" pos="0.2 0 0"/></body></worldbody></mujoco>"""
    model = dl.load(text)
    with pytest.raises(SingularError, match="state 0"):
        dl.constrained_dynamics_derivatives(model, np.zeros((2, 2)), np.zeros((2, 2)), None, [])
