"""A solver that keeps its memory: the same bits as a fresh one, no allocations, and an operator that comes out as it went in."""

import re
import signal
from pathlib import Path

import numpy as np
import pytest

import delassus as dl
from delassus import _core
from delassus.errors import ArgumentError, ArgumentTypeError, StaleError, UnknownNameError
from delassus.solvers.contacts import _METHODS
from oracles.allocation import requests

METHODS = list(_METHODS)
SOLVES = ["admm", "newton"]  # those that ask G for its inverse


def scene(name="go2-standing", dt=1e-3, **options):
    s = dl.scenes.load(name)
    G = dl.DelassusOperator(s.model, s.constraints, **options)
    G.update(s.q.astype(G.dtype))
    return s, G, [right_hand_side(s, G, dt, seed) for seed in range(3)]


def right_hand_side(s, G, dt, seed):
    v = 0.3 * np.random.default_rng(seed).standard_normal(s.model.nv)
    free = v + dt * dl.forward_dynamics(s.model, s.q, v, np.zeros(s.model.nv))
    return np.asarray(G.jacobian @ free.astype(G.dtype), dtype=float)


def same(a, b):
    """Every number of two results."""
    arrays = ("forces", "velocities", "history")
    plain = ("status", "iterations", "factorizations", "residuals", "own_residual", "tolerance", "_rho")
    return all(np.array_equal(getattr(a, k), getattr(b, k)) for k in arrays) and all(getattr(a, k) == getattr(b, k) for k in plain)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ["operator", "matrix"])
def test_repeated_solves_give_the_bits_of_fresh_ones(form, method):
    _, G, gs = scene("go2-standing")
    given = G if form == "operator" else G.to_matrix()
    solver = dl.ContactSolver(given, G.constraints, method=method)
    assert solver.method == method
    fresh = [dl.solve_contacts(given, g, G.constraints, method=method) for g in gs]
    for g, want in [*zip(gs, fresh, strict=True), *zip(gs[::-1], fresh[::-1], strict=True)]:
        assert same(solver.solve(g), want)


@pytest.mark.parametrize("method", METHODS)
def test_results_are_arrays_of_their_own(method):
    _, G, gs = scene("go2-standing")
    solver = dl.ContactSolver(G, method=method)
    first = solver.solve(gs[0])
    kept = first.forces.copy(), first.velocities.copy(), first.history.copy()
    solver.solve(gs[1])
    assert all(np.array_equal(a, b) for a, b in zip(kept, (first.forces, first.velocities, first.history), strict=True))


@pytest.mark.parametrize("method", ["admm", "interior"])
def test_a_warm_start_is_that_of_a_fresh_solver(method):
    _, G, gs = scene("go2-standing")
    solver = dl.ContactSolver(G, method=method)
    before = solver.solve(gs[0])
    assert same(solver.solve(gs[1], warm_start=before), dl.solve_contacts(G, gs[1], method=method, warm_start=before))


@pytest.mark.parametrize("method", METHODS)
def test_a_solver_follows_the_updates_of_its_operator(method):
    s, G, gs = scene("go2-standing")
    solver = dl.ContactSolver(G, method=method)
    solver.solve(gs[0])
    moved = s.q.copy()
    moved[7:] += 0.05
    G.update(moved)
    other = dl.DelassusOperator(s.model, s.constraints)
    other.update(moved)
    assert same(solver.solve(gs[0]), dl.solve_contacts(other, gs[0], method=method))


@pytest.mark.parametrize("kind", [dl.DelassusOperator, dl.CholeskyDelassus, dl.DenseDelassus])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["go2-standing", "cassie-standing"])
def test_an_operator_comes_out_as_it_went_in(name, method, kind):
    """Damping, factor to the last bit, freshness: also where the factor is one that refinement has to help."""
    s = dl.scenes.load(name)
    rows = np.arange(sum(c.rows for c in s.constraints))
    for damping in (None, 1e-3, 10.0 ** -(2 + rows % 9)):
        G = kind(s.model, s.constraints, damping=damping)
        G.update(s.q)
        g = right_hand_side(s, G, 1e-3, 0)
        before = None if damping is None else (G.solve(g), G.solve(g, refine=False), G.damping)
        told = repr(G)
        dl.solve_contacts(G, g, method=method, max_iterations=30)
        assert repr(G) == told
        if before is None:
            assert G.damping is None
            with pytest.raises(ArgumentError, match="damping"):
                G.solve(g)
        else:
            assert np.array_equal(G.damping, before[2])
            assert np.array_equal(G.solve(g, refine=False), before[1])
            assert np.array_equal(G.solve(g), before[0])


@pytest.mark.parametrize("method", SOLVES)
def test_the_factor_of_an_operator_is_put_back_to_the_bit(method):
    _, G, gs = scene("go2-standing", damping=1e-4)
    solver, before = dl.ContactSolver(G, method=method), G.solve(gs[0])
    solver.solve(gs[0])
    assert G._native.factored
    np.testing.assert_array_equal(G.solve(gs[0]), before)


@pytest.mark.parametrize("damping", [None, 1e-2])
def test_an_operator_in_single_precision_comes_out_as_it_went_in(damping):
    s, G, gs = scene("go2-standing", damping=damping, dtype=np.float32)
    before = None if damping is None else G.solve(gs[0].astype(np.float32))
    dl.solve_contacts(G, gs[0], s.constraints, tolerance=1e-4)
    if damping is None:
        assert G.damping is None
        with pytest.raises(ArgumentError, match="damping"):
            G.solve(gs[0].astype(np.float32))
    else:
        assert np.array_equal(G.damping, np.full(len(gs[0]), damping, dtype=np.float32))
        assert np.array_equal(G.solve(gs[0].astype(np.float32)), before)


def solve_for_ever(solver, g):
    while True:
        solver.solve(g, tolerance=0.0, max_iterations=100_000)


def test_an_operator_comes_out_as_it_went_in_when_a_solve_is_interrupted():
    def ring(*_):
        raise TimeoutError

    _, G, gs = scene("g1-fallen", damping=1e-3)
    before = G.solve(gs[0])
    solver = dl.ContactSolver(G, method="newton")
    previous = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError):
            solve_for_ever(solver, gs[0])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
    assert np.array_equal(G.solve(gs[0]), before)
    assert solver.solve(gs[0]).status == "solved"


def test_memory_of_an_operator_grows_once():
    _, G, gs = scene("go2-standing", damping=1e-3)
    solver = dl.ContactSolver(G)
    for g in gs:
        solver.solve(g)
    nbytes = G.nbytes
    for g in gs:
        solver.solve(g)
    assert G.nbytes == nbytes


# few rows: NumPy keeps the memory of small results itself, and what the solver asks for is what is counted
SCRIPT = """
s = dl.scenes.load("go2-standing")
G = dl.DelassusOperator(s.model, s.constraints, damping=1e-3)
G.update(s.q)
g = G.jacobian @ (1e-3 * dl.forward_dynamics(s.model, s.q, np.zeros(s.model.nv), np.zeros(s.model.nv)))
for method in ("admm", "newton", "apgd", "pgs", "interior"):
    for form, given in (("operator", G._native), ("matrix", G.to_matrix())):
        solver = dl.ContactSolver(G if form == "operator" else given, s.constraints, method=method)
        if form == "operator" and method in ("pgs", "interior"):
            continue
        options = dl._core.ContactOptions(tolerance=1e-6, max_iterations=30)
        solver._native.solve(given, g, options, None)
        report(f"{form} {method}", np.float64, lambda: solver._native.solve(given, g, options, None), 20)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize(
    "name", ["operator admm", "operator newton", "operator apgd", *(f"matrix {m}" for m in ("admm", "newton", "apgd", "pgs", "interior"))]
)
def test_a_repeated_solve_allocates_nothing(counts, name):
    assert counts[name, "float64"] == 0


def test_methods_that_do_not_exist_are_refused_everywhere():
    with pytest.raises(UnknownNameError, match="gauss"):
        dl.ContactSolver(np.eye(3), [0.5], method="gauss")
    with pytest.raises(UnknownNameError, match="gauss"):
        dl.solve_contacts(np.eye(3), np.zeros(3), [0.5], method="gauss")
    with pytest.raises(UnknownNameError, match="'pgs'"):
        _core.ContactSolver("gauss", 3, np.zeros((0, 2)), np.zeros((0, 3)))


def test_rows_beyond_those_of_g_are_refused_by_the_core():
    for cones, intervals in ((np.array([[1.0, 0.5]]), np.zeros((0, 3))), (np.zeros((0, 2)), np.array([[3.0, 0.0, 1.0]]))):
        with pytest.raises(ArgumentError, match="row"):
            _core.ContactSolver("admm", 3, cones, intervals)


def test_a_stale_operator_is_refused_when_solving():
    s = dl.scenes.load("go2-standing")
    solver = dl.ContactSolver(dl.DelassusOperator(s.model, s.constraints))
    with pytest.raises(StaleError):
        solver.solve(np.zeros(12))


def test_constraints_are_asked_for_where_a_matrix_has_none():
    with pytest.raises(ArgumentTypeError, match="constraints"):
        dl.ContactSolver(np.eye(3))


def test_no_rows_are_a_solved_problem():
    solver = dl.ContactSolver(np.zeros((0, 0)), np.zeros(0))
    r = solver.solve(np.zeros(0))
    assert r.status == "solved"
    assert r.forces.shape == (0,)


def test_iterations_that_the_docs_tell_of_a_stack_are_those_that_happen():
    told = re.search(
        r"A stack of (\d+) boxes, (\d+) rows, takes (\d+) iterations", (Path(__file__).parents[2] / "docs/contacts.md").read_text()
    )
    boxes, rows, iterations = map(int, told.groups())
    scene = dl.scenes.load("box-stack")
    model, dt = scene.model, 1e-3
    G = dl.DelassusOperator(model, scene.constraints)
    G.update(scene.q)
    g = G.jacobian @ (dt * dl.forward_dynamics(model, scene.q, model.zero_velocity(), np.zeros(model.nv)))
    result = dl.solve_contacts(G, g, scene.constraints, method="admm", timestep=dt)
    assert result.status == "solved"
    assert (model.nbody - 1, G.shape[0], result.iterations) == (boxes, rows, iterations)
