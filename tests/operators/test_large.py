"""Mechanisms of 10⁴ links and more: their products and solutions are right, memory is linear in the links, nothing is recursive."""

import math
import runpy
import threading
from functools import lru_cache
from pathlib import Path

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.model import Body, Joint, Model

FAMILIES = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "python" / "large.py"))["FAMILIES"]
LINEAR = [name for name in FAMILIES if name != "net, square"]
SMALL_STACK = 256 * 1024  # bytes: a call a link of 100,000 would not fit


@lru_cache
def ready(family, links):
    model, q, constraints = FAMILIES[family](links)
    G = dl.DelassusOperator(model, constraints, damping=1e-6)
    G.update(q)
    return model, q, constraints, G


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (2, 7), (5, 3), (6, 6), (1 + 8, 4)])
def test_net_has_a_rod_an_edge_and_a_loop_a_mesh(rows, columns):
    model = dl.scenes.net(rows, columns)
    assert model.nv == rows * (columns - 1) + columns * (rows - 1)
    assert len(model.loops) == (rows - 1) * (columns - 1)
    # at neutral, rods are the edges of the lattice and loops are closed
    X = dl.body_placements(model, model.neutral())[1:]
    ends = np.stack([X[:, :3, 3], X[:, :3, 3] + 0.2 * X[:, :3, 0]], axis=1)[:, :, [0, 2]] / 0.2
    edges = {frozenset((-round(z), round(x)) for x, z in rod) for rod in ends}
    lattice = {
        frozenset([(i, j), (i + di, j + dj)])
        for i in range(rows)
        for j in range(columns)
        for di, dj in ((0, 1), (1, 0))
        if i + di < rows and j + dj < columns
    }
    assert edges == lattice
    assert abs(ends - np.rint(ends)).max() < 1e-12
    assert abs(dl.constraint_error(model, model.neutral(), model.loops)).max() < 1e-12


def test_net_has_the_rows_that_mujoco_finds():
    model = dl.scenes.net(4, 5)
    q = model.neutral() + 0.3 * np.random.default_rng(0).standard_normal(model.nq)
    m = model.to_mujoco()
    m.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    d = mujoco.MjData(m)
    d.qpos[:] = q
    mujoco.mj_forward(m, d)
    J, M = d.efc_J.reshape(-1, m.nv), np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    G = dl.DelassusOperator(model, model.loops)
    G.update(q)
    np.testing.assert_allclose(G.to_matrix(), J @ np.linalg.solve(M, J.T), rtol=1e-9, atol=1e-9 * abs(G.to_matrix()).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_products_and_solutions_of_10000_links(family):
    """G x beside J M⁻¹ Jᵀ x by tree dynamics and rows, (G + ε) x beside y."""
    model, q, constraints, G = ready(family, 10_000)
    assert abs(dl.ConstraintRows(model, [c for c in constraints if isinstance(c, dl.Connect)]).error(q)).max(initial=0.0) < 1e-9
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal(G.shape[0]), rng.standard_normal(model.nv)
    back = G.jacobian.T @ x
    Jv = dl.constraint_velocity(model, q, v, constraints)
    assert abs(v @ back - Jv @ x) < 1e-10 * np.linalg.norm(Jv) * np.linalg.norm(x)
    expected = dl.constraint_velocity(model, q, dl.solve_mass_matrix(model, q, back), constraints)
    assert np.linalg.norm(G @ x - expected) < 1e-9 * np.linalg.norm(expected)
    y = G.solve(x)
    scale = np.linalg.norm(expected) / np.linalg.norm(x) * np.linalg.norm(y) + np.linalg.norm(x)
    assert np.linalg.norm(G @ y + 1e-6 * y - x) < 1e-9 * scale


@pytest.mark.parametrize("family", LINEAR)
def test_memory_is_linear_in_the_links(family):
    sizes, per_link = [], []
    for links in (1_000, 10_000):
        model, _, _, G = ready(family, links)
        sizes.append(model.nbody - 1)
        per_link.append(G.nbytes / sizes[-1])
    assert sizes[1] > 6 * sizes[0]
    # of nets of more than 8,192 links the order of least fill is not tried
    assert per_link[1] < 1.1 * per_link[0]


def test_a_narrow_net_has_fronts_that_do_not_grow():
    for columns in (100, 800):
        model = dl.scenes.net(6, columns)
        assert dl.DelassusOperator(model, model.loops).explain().widest <= 4 * 6


def test_fill_of_a_square_net_is_that_of_nested_dissection():
    """At most 31/8 couplings a knot for each halving of a side (George's nested dissection, of a lattice with diagonals: 31/4). A tree of columns side by side has more."""
    for side in (16, 32, 64):
        model = dl.scenes.net(side, side)
        told = dl.DelassusOperator(model, model.loops).explain()
        assert told.given + told.arising < 31 / 8 * side**2 * math.log2(side)
        assert told.widest < 1.5 * side


def test_a_chain_of_100000_links_needs_no_recursion():
    """Model, operator, factors, product and solution in a thread whose stack does not hold a call a link."""
    n = 100_000
    inertia = (1e-3, 1e-3, 1e-4, 0.0, 0.0, 0.0)
    bodies = [
        Body(f"b{k}", f"b{k - 1}" if k else "world", (0.0, 0.0, -0.2 if k else 0.0), mass=0.5, com=(0.0, 0.0, -0.1), inertia=inertia)
        for k in range(n)
    ]
    joints = [Joint(f"j{k}", "hinge", f"b{k}", axis=(0.0, 1.0, 0.0)) for k in range(n)]
    found = {}

    def work():
        model = Model("chain", bodies, joints)
        G = dl.DelassusOperator(model, [dl.Connect(model, n, point=(0.0, 0.0, -0.2))], damping=1e-3)
        q = np.full(n, 2 * np.pi / 24)
        G.update(q)
        tau = G.jacobian.T @ np.ones(3)
        found.update(depth=model.depth, y=G @ np.ones(3), x=G.solve(np.ones(3)), G=G.to_matrix())
        found["expected"] = G.jacobian @ dl.solve_mass_matrix(model, q, tau)

    before = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found["depth"] == n
    np.testing.assert_allclose(found["y"], found["expected"], rtol=1e-8, atol=1e-8 * abs(found["y"]).max())
    np.testing.assert_allclose(found["G"] @ found["x"] + 1e-3 * found["x"], np.ones(3), rtol=1e-9)
