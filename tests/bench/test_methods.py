"""A time stands only beside a result that is right: every method is held against dense definitions of its own, and a wrong number takes its time away."""

import dataclasses
import io
import itertools
import time

import numpy as np
import pytest
from rich.console import Console

import delassus as dl
from delassus import bench
from delassus.bench import counts, definition, methods, table, trial
from delassus.bench.clock import in_turn
from delassus.solvers import contacts, dynamics
from oracles.dense import Mechanism

BUDGET = 0.002


def problem(name, v=0.1):
    model, q, constraints = dl.scenes.load(name)
    return bench.Problem(model, q, v * np.random.default_rng(0).standard_normal(model.nv), constraints)


def of(sections, name):
    return {m.method: m for m in next(s for s in sections if s.name == name).measurements}


def printed(sections):
    out = io.StringIO()
    table.show_sections(Console(file=out, width=100), sections)
    return out.getvalue()


# ---- the definition -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["go2-standing", "cassie-standing-friction"])
def test_definition_is_the_sum_over_bodies(name):
    p = problem(name)
    D, oracle = p.definition, Mechanism(p.model, p.q, p.v)
    np.testing.assert_allclose(D.M, oracle.mass_matrix, atol=1e-10 * np.abs(D.M).max())
    np.testing.assert_allclose(D.h, oracle.bias_forces, atol=1e-9 * oracle.bias_scale)
    np.testing.assert_allclose(D.J @ p.v, dl.constraint_velocity(p.model, p.q, p.v, p.constraints), atol=1e-10)
    np.testing.assert_allclose(D.G, D.J @ np.linalg.solve(oracle.mass_matrix, D.J.T), atol=1e-8 * np.abs(D.G).max())
    np.testing.assert_allclose(D.inverse @ (D.G + D.damping * np.eye(p.rows)), np.eye(p.rows), atol=1e-6)


def test_dynamics_error_sees_wrong_accelerations_and_forces():
    p = problem("go2-standing")
    D, m = p.definition, p.rows
    forces = np.linalg.solve(D.G, -D.gamma - D.J @ D.free)
    right = D.free + np.linalg.solve(D.M, D.J.T @ forces)
    assert D.dynamics_error(right, forces) < 1e-9
    assert D.acceleration_error(right) < 1e-9
    assert D.dynamics_error(right + 1e-4, forces) > 1e-6
    assert D.acceleration_error(right + 1e-4) > 1e-7
    assert D.dynamics_error(right, forces + 1e-2 * np.arange(m)) > 1e-6
    # springs: what rigid rows forbid is what they do
    softness = np.full(m, 0.3)
    soft = np.linalg.solve(D.G + np.diag(softness), -D.gamma - D.J @ D.free)
    given = D.free + np.linalg.solve(D.M, D.J.T @ soft)
    assert D.dynamics_error(given, soft, softness) < 1e-9
    assert D.dynamics_error(given, soft) > 1e-3


@pytest.mark.filterwarnings("ignore")
def test_a_singular_mass_matrix_says_that_nothing_can_be_checked():
    # the last two hinges move the same
    model = dl.load(
        '<mujoco><worldbody><body><joint axis="0 1 0"/><geom size="0.1" pos="0 0 1"/>'
        '<body pos="0 0 2"><joint axis="0 1 0"/><joint axis="0 1 0"/><geom size="0.1" pos="0 0 1"/></body></body></worldbody></mujoco>'
    )
    with pytest.raises(dl.errors.SingularError, match="no result can be checked"):
        bench.Problem(model, model.neutral(), model.zero_velocity(), [])


@pytest.fixture
def sliding():
    """A point of 2 kg pressed on the ground and pushed along its first tangent, faster than friction holds."""
    model = dl.scenes.box_stack(1)
    return np.eye(3) / 2.0, np.array([-1.0, 2.0, 0.0]), [dl.PointContact(model, "box0", friction=0.5)]


def test_polygon_residual_knows_corners_from_circles(sliding):
    A, g, contact = sliding
    right = np.array([2.0, -1.0, 0.0])
    assert definition.polygon_residual(A, g, right, contact, 1e-3) < 1e-12
    assert definition.polygon_residual(A, g, right + np.array([0.0, 0.1, 0.0]), contact, 1e-3) > 0.04
    assert definition.polygon_residual(A, g, right + np.array([0.1, 0.0, 0.0]), contact, 1e-3) > 0.04
    # between corners a circle reaches further than its polygon
    aside = np.array([2.0, -np.cos(np.pi / 8), -np.sin(np.pi / 8)])
    assert definition.polygon_residual(A, np.array([-1.0, *(-2.0 * aside[1:])]), aside, contact, 1e-3) > 0.03


def test_residuals_know_boxes_half_lines_and_loops():
    model = dl.load("go2")
    rub, limit = dl.JointFriction(model, "FL_hip_joint", 3.0), dl.JointLimit(model, "FL_hip_joint", bound=0.1)
    A = np.eye(1)
    residual = definition.contact_residual
    assert residual(A, np.array([-0.002]), np.array([0.002]), [rub], 1e-3) < 1e-12  # sticks within 3 N m for 1 ms
    assert residual(A, np.array([-1.0]), np.array([0.003]), [rub], 1e-3) < 1e-12  # slips at the bound
    assert residual(A, np.array([-1.0]), np.array([0.004]), [rub], 1e-3) > 9e-4
    assert residual(A, np.array([0.5]), np.array([0.0]), [limit], 1e-3) < 1e-12
    assert residual(A, np.array([-0.5]), np.array([0.0]), [limit], 1e-3) > 0.4
    assert residual(A, np.array([0.5]), np.array([-0.5]), [limit], 1e-3) > 0.4


def test_forces_that_are_no_numbers_have_no_residual(sliding):
    A, g, contact = sliding
    bad = np.array([2.0, np.nan, 0.0])
    assert not definition.contact_residual(A, g, bad, contact, 1e-3) < 1.0
    assert not definition.polygon_residual(A, g, bad, contact, 1e-3) < 1.0
    p = problem("go2-standing")
    assert not p.definition.dynamics_error(p.definition.free, np.full(p.rows, np.nan)) < 1.0
    assert not p.definition.acceleration_error(np.full(p.model.nv, np.nan)) < 1.0
    assert not definition.relative(np.array([np.nan]), np.array([1.0])) < 1.0


# ---- measurements -------------------------------------------------------------------------------------------------------------


def test_methods_are_those_of_the_library():
    assert {*methods.DYNAMICS_METHODS, "auto"} == set(dynamics._METHODS)
    assert set(methods.CONTACT_METHODS) == set(contacts._METHODS)


@pytest.mark.parametrize("name", ["go2-standing", "g1-fallen", "cassie-standing-friction"])
def test_every_method_has_a_checked_time_or_a_reason(name):
    p = problem(name)
    sections = bench.measure_methods(p, budget=BUDGET)
    assert [s.name for s in sections] == ["matrix", "inverse", "dynamics", "contacts"]
    assert set(of(sections, "matrix")) == {*methods.MATRIX_METHODS, *methods.MATRIX_FREE[:3]}
    assert set(of(sections, "inverse")) == {*methods.INVERSE_METHODS, *methods.MATRIX_FREE[3:]}
    assert set(of(sections, "dynamics")) == set(methods.DYNAMICS_METHODS)
    assert set(of(sections, "contacts")) == set(methods.CONTACT_METHODS)
    for s in sections:
        for m in s.measurements:
            assert not m.wrong
            assert (m.microseconds is None) == bool(m.reason)
            if m.microseconds is not None:
                assert 0 < m.microseconds <= m.median
                assert 0 <= m.error <= m.allowed
                assert m.nbytes > 0
    explain = dl.ExplicitDelassus(p.model, p.constraints).explain()
    assert [s.choice for s in sections] == [explain.matrix_choice, explain.inverse_choice, "lcaba", "auto"]
    told = printed(sections)
    assert max(map(len, told.splitlines())) <= 100
    refused = explain.refused
    assert all(
        of(sections, "matrix")[k].reason.startswith("takes rows that act on one link") for k in refused if k in methods.MATRIX_METHODS
    )
    assert ("one link each" in told) == bool(refused)


def test_springs_say_how_far_they_give_way_and_contradictions_are_named():
    told = printed(bench.measure_methods(problem("g1-fallen"), budget=BUDGET))
    assert "gives way by" in told
    assert "inconsistent rows" in told


def wrong_matrix(monkeypatch):
    right = dl.ExplicitDelassus.matrix
    monkeypatch.setattr(
        methods.ExplicitDelassus,
        "matrix",
        lambda self, q, *, method="auto", out=None: right(self, q, method=method, out=out) * (1 + 1e-6 * (method == "efpa")),
    )
    return "matrix", "efpa"


def wrong_inverse(monkeypatch):
    right = dl.ExplicitDelassus.inverse

    def inverse(self, q, damping, *, method="auto", out=None):
        return right(self, q, np.asarray(damping) * (1 + 1e-6 * (method == "caba-osimf")), method=method, out=out)

    monkeypatch.setattr(methods.ExplicitDelassus, "inverse", inverse)
    return "inverse", "caba-osimf"


def wrong_product(monkeypatch):
    right = dl.DelassusOperator.matvec

    def matvec(self, x, out=None):
        y = right(self, x, out)
        y[0] *= 1 + 1e-6
        return y

    monkeypatch.setattr(methods.DelassusOperator, "matvec", matvec)
    return "matrix", "G x again"


def wrong_solve(monkeypatch):
    right = dl.DelassusOperator.solve
    monkeypatch.setattr(methods.DelassusOperator, "solve", lambda self, y, *, refine=True, out=None: right(self, y, out=out) * (1 + 1e-5))
    return "inverse", "solve again"


def wrong_acceleration(monkeypatch):
    right = dl.ConstrainedDynamics.solve

    def solve(self, *args, **named):
        r = right(self, *args, **named)
        return dataclasses.replace(r, acceleration=r.acceleration * (1 + 1e-6)) if self.method == "prox-pv" else r

    monkeypatch.setattr(methods.ConstrainedDynamics, "solve", solve)
    return "dynamics", "prox-pv"


def wrong_contact(monkeypatch):
    def solve(G, g, **named):
        r = dl.solve_contacts(G, g, **named)
        return dataclasses.replace(r, forces=0.9 * r.forces) if named["method"] == "pgs" else r

    monkeypatch.setattr(methods, "solve_contacts", solve)
    return "contacts", "pgs"


@pytest.mark.parametrize("break_one", [wrong_matrix, wrong_inverse, wrong_product, wrong_solve, wrong_acceleration, wrong_contact])
def test_a_wrong_number_has_no_time(monkeypatch, break_one):
    section, method = break_one(monkeypatch)
    sections = bench.measure_methods(problem("go2-standing", v=0.0), budget=BUDGET)
    found = of(sections, section)[method]
    assert found.wrong
    assert found.microseconds is None
    assert found.median is None
    assert found.error > found.allowed
    assert "off by" in found.reason
    same = {wrong_product: "G x", wrong_solve: "solve"}.get(break_one, method)
    assert not any(m.wrong for s in sections for m in s.measurements if same not in m.method)
    told = printed(sections)
    assert "its result is off by" in told
    assert not [line for line in told.splitlines() if line.lstrip().removeprefix("matrix-free: ").startswith(f"{method} ")]


def test_a_number_that_goes_wrong_later_has_no_time_either():
    calls = itertools.count()
    late = trial.Trial(lambda: next(calls), lambda n: 0.0 if n < 3 else 1.0, 1e-9)
    (found,) = trial.measured([("late", "explicit", lambda: late)], BUDGET, lambda share: None)
    assert found.wrong
    assert found.microseconds is None


def test_a_number_that_is_wrong_at_first_is_not_even_timed():
    calls = itertools.count()
    early = trial.Trial(lambda: next(calls), lambda n: 1.0 if n == 0 else 0.0, 1e-9)
    (found,) = trial.measured([("early", "explicit", lambda: early)], BUDGET, lambda share: None)
    assert found.wrong
    assert found.microseconds is None
    assert next(calls) == 1


def test_nan_is_wrong():
    nan = trial.Trial(lambda: np.nan, lambda x: x, 1e-9)
    (found,) = trial.measured([("nan", "explicit", lambda: nan)], BUDGET, lambda share: None)
    assert found.wrong
    assert found.microseconds is None


def test_a_bug_of_ours_is_no_reason_but_a_peers_is():
    def broken():
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError):
        trial.measured([("ours", "explicit", broken)], BUDGET, lambda share: None)
    (found,) = trial.measured([("theirs", "peer", broken)], BUDGET, lambda share: None)
    assert found.reason == "out of luck"


def test_unsolved_dynamics_have_a_reason(monkeypatch):
    monkeypatch.setattr(methods, "_MAX_ITERATIONS", 1)
    found = of(bench.measure_methods(problem("go2-standing"), only=["lcaba"], budget=BUDGET), "dynamics")["lcaba"]
    assert found.microseconds is None
    assert found.reason.startswith("iteration_limit after 1 iteration")
    assert not found.wrong


def test_only_some_methods_and_unknown_ones():
    sections = bench.measure_methods(problem("go2-standing"), only=["lcaba", "matrix-free"], budget=BUDGET)
    assert [list(of(sections, s.name)) for s in sections] == [[*methods.MATRIX_FREE[:3]], ["lcaba", *methods.MATRIX_FREE[3:]], ["lcaba"]]
    with pytest.raises(dl.errors.UnknownNameError, match="lcaba"):
        bench.measure_methods(problem("go2-standing"), only=["lcba"])


def test_no_constraints_leave_the_dynamics():
    model = dl.load("iiwa")
    sections = bench.measure_methods(bench.Problem(model, model.random(0), np.ones(model.nv), []), budget=BUDGET)
    assert [(s.name, s.reason) for s in sections if s.reason] == [
        ("matrix", "no rows"),
        ("inverse", "no rows"),
        ("contacts", "no contacts"),
    ]
    assert all(m.microseconds for m in of(sections, "dynamics").values())


def test_rows_that_nothing_moves_have_no_inverse():
    model = dl.load("iiwa")
    sections = bench.measure_methods(
        bench.Problem(model, model.random(0), np.ones(model.nv), [dl.PointContact(model, "base")]), budget=BUDGET
    )
    assert next(s for s in sections if s.name == "inverse").reason == "nothing moves the rows: G is zero"


def test_what_would_take_minutes_is_left_out(monkeypatch):
    monkeypatch.setattr(methods, "_PATIENCE", 1e-6)
    found = of(bench.measure_methods(problem("go2-standing"), budget=BUDGET), "matrix")["kjr"]
    assert "would take" in found.reason


# ---- clocks, choices, counts --------------------------------------------------------------------------------------------------


def test_times_are_those_of_the_calls():
    def busy(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    short, long = in_turn([lambda: busy(2e-4), lambda: busy(2e-3)], 0.02, lambda share: None)
    assert 200 <= short.best <= short.median
    assert 2000 <= long.best <= long.median
    assert short.median < long.best


def section(choice, **times):
    return bench.Section("matrix", "G", tuple(bench.Measurement(k, microseconds=t) for k, t in times.items()), choice)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (section("a", a=1.0, b=2.0), "auto chooses a: the fastest here"),
        (section("b", a=1.0, b=2.0), "auto chooses b: 2.00 times the time of a, the fastest here"),
        (section("b", a=1.0, b=1.04), "auto chooses b: within 5 % of the fastest here, a"),
        (section("b", a=1.0), "auto chooses b, which was not timed"),
    ],
)
def test_verdict_is_that_of_the_times(given, said):
    assert table.verdict(given) == said


def test_operations_are_the_textbooks_and_the_plans():
    pytest.importorskip("casadi")
    p = problem("go2-standing")
    sections, missing = counts.with_operations(
        p, bench.measure_methods(p, only=["pv-osimr", "caba", "columns", "matrix-free"], budget=BUDGET), 60.0
    )
    assert missing == ""
    assert of(sections, "matrix")["pv-osimr"].operations == dl.textbook.count("pv-osimr", p.model, p.constraints).total
    found = of(sections, "dynamics")["caba"]
    assert found.operations == dl.textbook.count("caba", p.model, p.constraints, iterations=found.iterations).total
    assert of(sections, "matrix")["columns"].operations is None
    plan = dl.DelassusOperator(p.model, p.constraints).explain()
    assert of(sections, "matrix")["G x again"].operations == 2 * plan.product.multiply_adds
    assert of(sections, "inverse")["solve again"].operations == 2 * plan.solve.multiply_adds


def test_counting_ends_at_its_budget_and_says_what_is_missing():
    pytest.importorskip("casadi")
    p = problem("g1-fallen")
    sections, missing = counts.with_operations(p, bench.measure_methods(p, only=["ltl", "lcaba"], budget=BUDGET), 1e-3)
    assert missing.startswith("not counted within 0.001 s: ltl, lcaba, ltl of the inverse")
    assert of(sections, "matrix")["ltl"].operations is None


def test_without_casadi_a_line_names_the_extra(monkeypatch):
    def absent(*_, **__):
        raise dl.errors.MissingExtraError("no casadi")

    monkeypatch.setattr(counts, "count", absent)
    p = problem("go2-standing")
    sections, missing = counts.with_operations(p, bench.measure_methods(p, only=["ltl", "matrix-free"], budget=BUDGET), 9.0)
    assert "delassus[symbolic]" in missing
    assert of(sections, "matrix")["ltl"].operations is None
    assert of(sections, "matrix")["update"].operations > 0
