"""Explicit Delassus matrices, damped inverses and matrix-free products against J M⁻¹ Jᵀ and against the core."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import delassus as dl
from delassus import textbook as tb
from oracles.cases import MODELS, RANDOM, case
from oracles.compare import agree

NAMES = [*MODELS, *RANDOM]
MATRICES = {"ltl": tb.ltl_osim, "kjr": tb.kjr, "efpa": tb.efpa, "pv-osim": tb.pv_osim, "pv-osimr": tb.pv_osimr}
ANY_INVERSES = {"ltl": tb.ltl_inverse, "lcaba-osim": tb.lcaba_osim}
INVERSES = ANY_INVERSES | {"caba-osim": tb.caba_osim, "caba-osimf": tb.caba_osimf, "pv-osimf": tb.pv_osimf}


def posed(c):
    pose = tb.Robot(c.model).at(c.oracle.q)
    return pose, tb.Rows(pose, c.constraints)


def core(c, **options):
    G = dl.DelassusOperator(c.model, c.constraints, **options)
    G.update(c.oracle.q)
    return G


@pytest.mark.parametrize("kinds", ["none", "contacts", "redundant"])
@pytest.mark.parametrize("name", NAMES)
def test_matrices_are_the_definition_and_the_core(name, kinds):
    c = case(name, kinds)
    pose, rows = posed(c)
    want = core(c).to_matrix()
    agree(want, c.G, 1e-10)
    for method in MATRICES.values():
        G = method(pose, rows)
        agree(G, want, 1e-10)
        assert np.array_equal(G, G.T)


@pytest.mark.parametrize("name", NAMES)
def test_loops_and_any_rows_by_all(name):
    c = case(name, "loops")
    pose, rows = posed(c)
    for method in MATRICES.values():
        G = method(pose, rows)
        agree(G, c.G, 1e-10)
        assert np.array_equal(G, G.T)


@pytest.mark.parametrize("kinds", ["none", "contacts", "redundant", "loops"])
@pytest.mark.parametrize("name", NAMES)
def test_damped_inverses_are_the_definition(name, kinds):
    c = case(name, kinds)
    pose, rows = posed(c)
    for damping in (0.5 * np.abs(c.G).max(initial=1.0), c.rng.uniform(0.2, 1.0, c.m) * np.abs(c.G).max(initial=1.0)):
        want = np.linalg.inv(c.G + np.diag(np.broadcast_to(damping, c.m)))
        x = c.numbers(c.m, 2)
        for method in (ANY_INVERSES if kinds == "loops" else INVERSES).values():
            got = method(pose, rows, damping)
            if isinstance(got, tb.BranchedInverse):
                agree(got @ x, want @ x, 1e-10)
                got = got.matrix()
            agree(got, want, 1e-10)
        if c.m:
            agree(core(c, damping=damping).solve(np.eye(c.m)), want, 1e-10)


@pytest.mark.parametrize("kinds", ["none", "contacts", "redundant", "loops"])
@pytest.mark.parametrize("name", NAMES)
def test_matrix_free_products_and_inverses(name, kinds):
    c = case(name, kinds)
    pose, rows = posed(c)
    M, J = c.oracle.mass_matrix, c.J
    x, y = c.numbers(c.m, 2), c.numbers(c.model.nv, 2)
    eps = c.rng.uniform(0.2, 1.0, c.m) * np.abs(c.G).max(initial=1.0)
    agree(tb.jacobian_transpose_apply(pose, rows, x), J.T @ x, 1e-10)
    agree(tb.mass_inverse_apply(pose, y), np.linalg.solve(M, y), 1e-10)
    agree(tb.jacobian_apply(pose, rows, y), J @ y, 1e-10)
    agree(tb.delassus_apply(pose, rows, x), c.G @ x, 1e-10)
    agree(tb.loop_inverse_apply(pose, rows, eps, y), np.linalg.solve(M + J.T @ (J / eps[:, None]), y), 1e-10)
    agree(tb.damped_inverse_apply(pose, rows, eps, x), np.linalg.solve(c.G + np.diag(eps), x), 1e-10)


@pytest.mark.parametrize("kinds", ["none", "contacts", "redundant", "loops"])
@pytest.mark.parametrize("name", NAMES)
def test_blocks_that_are_not_symmetric(name, kinds):
    """x of (G + D) x = y by elimination is the dense one, and the core's."""
    c = case(name, kinds)
    pose, rows = posed(c)
    y = c.numbers(c.m, 2)
    size = np.abs(c.G).max(initial=1.0)
    on_joint = [bool(block.joints) for block in rows.blocks]
    drawn = [(c.numbers(b.rows, b.rows), c.rng.uniform(0.5, 1.5, b.rows)) for b in rows.blocks]
    # ½ A Aᵀ and a diagonal are positive, A − Aᵀ is skew: what is added to G has a positive symmetric part
    D = [size * (np.diag(d) + (0 if joint else A @ A.T / len(d) + A - A.T)) for (A, d), joint in zip(drawn, on_joint, strict=True)]
    A = c.G + (block_diag(*D) if D else 0.0)
    want = np.linalg.solve(A, y)
    agree(tb.block_damped_inverse_apply(pose, rows, D, y), want, 1e-10)
    agree(core(c, damping=D).solve(y), want, 1e-10)


def test_rows_in_link_axes_are_turned_rows():
    c = case("talos", "none")
    model = c.model
    constraints = [dl.Weld(model, "leg_left_6_link"), dl.PointContact(model, "arm_right_7_link", point=(0.1, 0.2, 0.3), normal=(1, 2, 3))]
    pose = tb.Robot(model).at(c.oracle.q)
    world, link = (tb.pv_osimr(pose, tb.Rows(pose, constraints, axes)) for axes in ("world", "link"))
    assert np.abs(world - link).max() > 0.01 * np.abs(world).max()
    for at in (slice(0, 3), slice(3, 6), slice(6, 9)):
        agree(np.linalg.eigvalsh(link[at, at]), np.linalg.eigvalsh(world[at, at]), 1e-10)
    agree(np.linalg.eigvalsh(link), np.linalg.eigvalsh(world), 1e-10)


def test_branching_links_of_the_tree_of_figure_1_of_pv_osimr():
    """Links 1-2, 2-3, 3-4, 4-5, 2-6; rows on 6, 3 and 5: N = {2, 3} besides ends and ground, D and A as the text prints them."""
    from delassus.textbook.osim import branching

    b = dl.ModelBuilder("figure")
    for name, parent in (("1", "world"), ("2", "1"), ("3", "2"), ("4", "3"), ("5", "4"), ("6", "2")):
        b.add_body(name, parent, position=(0.1, 0.0, 0.2), mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.add_joint(name, "hinge", name=f"joint{name}")
    model = b.build()
    pose = tb.Robot(model).at(np.zeros(6))
    rows = tb.Rows(pose, [dl.Weld(model, name) for name in ("6", "3", "5")])
    found = branching(pose, rows.single("this", "others"))
    # our links count from 0 and ends from 6; the ground is −1
    assert found.nodes == [1, 2, 6, 7, 8]
    assert found.descendant == {0: 1, 1: 1, 2: 2, 3: 8, 4: 8, 5: 6}
    assert found.above == {1: -1, 2: 1, 6: 1, 7: 2, 8: 2}
