"""Constrained dynamics by explicit rows: in joint space and by Popov and Vereshchagin's recursion, against singular values."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError
from oracles import cases, closed, rows
from oracles.allocation import requests
from oracles.gauss import Gauss

PROXIMAL = ["prox-ltl", "prox-ltls", "prox-pv"]
EXACT = [*PROXIMAL, "pv-early"]
ALL = [*EXACT, "pv"]
SINGLE_LINKS = ["prox-ltls", "prox-pv", "pv-early", "pv"]
NAMES = ["go2", "g1", "talos", "atlas_hands", "iiwa", "chain", "tree", "stem", "one link", "one box", "boxes", "mixed", "two trees"]
CLOSE, CLOSE_SINGLE = 1e-8, 2e-3
# smallest eigenvalue of G that is not zero, relative to none: below this 1 / mu shows, and iterations are many
REGULAR = 1e-3


class State:
    """A case with forces on joints and bodies, and a bias: one that can be met, or any."""

    def __init__(self, case, feasible=True, compliance=None):
        self.case, self.model, oracle = case, case.model, case.oracle
        self.q, self.v = oracle.q, oracle.v
        rng = np.random.default_rng([case.m, case.model.nv])
        self.tau, self.external = rng.standard_normal(case.model.nv), rng.standard_normal((case.model.nbody, 6))
        self.gamma = -case.J @ rng.standard_normal(case.model.nv) if feasible else rng.standard_normal(case.m)
        self.want = Gauss(
            oracle.mass_matrix, case.J, self.tau - oracle.bias_forces + oracle.joint_forces(self.external), self.gamma, compliance
        )

    def solve(self, method, *, warm_start=None, **options):
        solver = dl.ConstrainedDynamics(self.model, self.case.constraints, method=method, **options)
        return solver.solve(self.q, self.v, self.tau, external_forces=self.external, bias=self.gamma, warm_start=warm_start)

    def check(self, method, status="solved", close=CLOSE, **options):
        r = self.solve(method, **options)
        assert self.want.acceleration_error(r.acceleration) <= close
        assert self.want.balance_error(r.acceleration, r.forces) <= min(close, 1e-9 if r.acceleration.dtype == np.float64 else 1e-4)
        assert r.status == status
        assert len(r.history) == r.iterations
        return r


@pytest.mark.sampled
@pytest.mark.parametrize("kinds", ["none", "contacts", "redundant"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", EXACT)
def test_accelerations_are_those_of_singular_values(name, kinds, method):
    state = State(cases.case(name, kinds))
    r = state.check(method, max_iterations=100)
    assert r.iterations <= (10 if state.want.least > REGULAR else 100)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", EXACT)
def test_contradictory_rows_end_in_least_squares(name, method):
    state = State(cases.case(name, "redundant"), feasible=False)
    # one mu for all rows: least squares as singular values see them
    r = state.check(method, "infeasible_least_squares", max_iterations=200, mu=1e6)
    left = state.case.J @ r.acceleration + state.gamma
    assert abs(r.residuals.primal - np.abs(left).max()) <= 1e-7 * state.want.scale


@pytest.mark.parametrize("name", NAMES)
def test_pv_is_pulled_towards_zero_by_its_damping(name):
    state, mu = State(cases.case(name, "redundant")), 1e4
    r = state.solve("pv", mu=mu, warm_start=np.ones(state.case.m))
    want = np.linalg.solve(state.want.G + np.eye(state.case.m) / mu, state.want.b)
    size = np.abs(want).max()
    assert np.abs(r.forces - want).max() <= 1e-8 * size
    assert state.want.balance_error(r.acceleration, r.forces) <= 1e-9
    assert r.status == "relaxed"
    assert r.iterations == 1
    assert abs(r.residuals.primal - size / mu) <= 1e-7 * max(size / mu, 1)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("name", ["go2", "mixed", "two trees", "boxes"])
def test_compliant_rows_give_way(name, method):
    case = cases.case(name, "redundant")
    compliance = np.random.default_rng(5).uniform(0.1, 1.0, case.m)
    state = State(case, compliance=compliance)
    state.check(method, "relaxed" if method == "pv" else "solved", compliance=compliance, mu=1e12 if method == "pv" else 1e6)


def test_rows_may_be_compliant_or_not():
    case = cases.case("g1", "contacts")
    compliance = np.where(np.arange(case.m) % 2, 0.3, 0.0)
    state = State(case, compliance=compliance)
    for method in EXACT:
        state.check(method, compliance=compliance)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", closed.NAMED)
def test_prox_ltl_closes_loops(name, seed):
    case = closed.named(name, seed)
    v, tau = case.projector @ case.rng.standard_normal(case.model.nv), case.rng.standard_normal(case.model.nv)
    oracle = type(case.oracle)(case.model, case.q, v)
    want = Gauss(oracle.mass_matrix, case.J, tau - oracle.bias_forces, dl.constraint_bias(case.model, case.q, v, case.constraints))
    r = dl.constrained_dynamics(case.model, case.q, v, tau, case.constraints, method="prox-ltl", max_iterations=100)
    assert want.acceleration_error(r.acceleration) <= CLOSE
    assert want.balance_error(r.acceleration, r.forces) <= 1e-9
    # where the rods lie flat, what the velocity asks for cannot be had
    left = np.abs(case.J @ want.acceleration + want.gamma).max()
    assert r.status == ("solved" if left < 1e-8 * want.scale else "infeasible_least_squares")


@pytest.mark.parametrize("name", ["go2", "mixed", "two trees", "cassie"])
def test_prox_ltl_takes_any_rows(name):
    State(cases.case(name, "loops")).check("prox-ltl", max_iterations=200)


@pytest.mark.parametrize("method", SINGLE_LINKS)
def test_rows_between_bodies_are_refused_elsewhere(method):
    case = closed.named("four_bar")
    with pytest.raises(ArgumentError, match=r"'prox-ltl'"):
        dl.ConstrainedDynamics(case.model, case.constraints, method=method)


def test_prox_ltls_takes_rows_of_joints():
    case = cases.case("go2", "contacts")
    made = (*case.made, rows.joint_friction(case.model, 3), rows.joint_limit(case.model, 5, "upper"))
    State(cases.Case(case.oracle, made, case.rng)).check("prox-ltls")
    for method in ("prox-pv", "pv-early", "pv"):
        with pytest.raises(ArgumentError):
            dl.ConstrainedDynamics(case.model, [m.constraint for m in made], method=method)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("name", ["go2", "iiwa", "one box", "mixed"])
def test_single_precision_has_its_digits(name, method):
    State(cases.case(name, "contacts")).check(method, close=CLOSE_SINGLE, dtype=np.float32, mu=1e3, tolerance=1e-4)


def test_pv_is_exact_as_its_damping_vanishes_if_rows_are_independent():
    model = dl.load("go2")
    case = cases.case("go2", "none")
    tips = [b for b in range(1, model.nbody) if b not in model.body_parent]
    made = tuple(rows.connect(model, b, **rows.points(case.rng)) for b in tips)
    state = State(cases.Case(case.oracle, made, case.rng))
    assert state.want.rank == state.case.m
    state.check("pv", "relaxed", mu=1e12)


@pytest.mark.parametrize("method", EXACT)
def test_bias_and_gravity_come_from_model_and_constraints(method):
    case = cases.case("g1", "contacts")
    oracle = case.oracle
    gamma = dl.constraint_bias(case.model, oracle.q, oracle.v, case.constraints)
    want = Gauss(oracle.mass_matrix, case.J, -oracle.bias_forces, gamma)
    r = dl.constrained_dynamics(case.model, oracle.q, oracle.v, None, case.constraints, method=method, mu=1e6)
    assert want.acceleration_error(r.acceleration) <= CLOSE


@pytest.mark.parametrize("method", PROXIMAL)
def test_iterations_go_on_from_where_they_ended(method):
    state = State(cases.case("talos", "redundant"))
    whole = state.solve(method, mu=1e2, tolerance=0.0, max_iterations=6)
    half = state.solve(method, mu=1e2, tolerance=0.0, max_iterations=3)
    rest = state.solve(method, mu=1e2, tolerance=0.0, max_iterations=3, warm_start=half.forces)
    assert half.iterations == 3
    assert half.status == "iteration_limit"
    assert np.abs(rest.forces - whole.forces).max() <= 1e-7 * np.abs(whole.forces).max()
    # the same iterations as the elimination of all joints
    other = state.solve("lcaba", mu=1e2, tolerance=0.0, max_iterations=6)
    assert np.abs(other.forces - whole.forces).max() <= 1e-7 * np.abs(whole.forces).max()


@pytest.mark.parametrize("method", EXACT)
def test_far_from_the_origin_no_digit_is_lost(method):
    case = cases.case("go2", "contacts")
    model, q = case.model, case.oracle.q.copy()
    here = dl.ConstrainedDynamics(model, case.constraints, method=method).solve(q, case.oracle.v, bias=np.ones(case.m))
    q[:3] += 1e4
    there = dl.ConstrainedDynamics(model, case.constraints, method=method).solve(q, case.oracle.v, bias=np.ones(case.m))
    assert np.abs(there.acceleration - here.acceleration).max() <= 1e-9 * np.abs(here.acceleration).max()


SCRIPT = f"""
for dtype in (np.float64, np.float32):
    model = dl.load("g1")
    contacts = [dl.PointContact(model, 1 + k % (model.nbody - 1), point=(0.01 * k, 0, 0)) for k in range(20)]
    q, v = model.random(1).astype(dtype), np.ones(model.nv, dtype)
    for method in {ALL}:
        solver = dl.ConstrainedDynamics(model, contacts, method=method, dtype=dtype, max_iterations=3)
        m = 3 * len(contacts)
        a, f, damping = np.empty(model.nv, dtype), np.empty(m, dtype), np.full(m, 1e-2, dtype)
        report(method, dtype, lambda: solver._native.solve(q, v, v, None, None, damping, solver.max_iterations, 1e-6, None, a, f, solver._history), 20)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", ALL)
def test_solving_allocates_nothing(counts, method, dtype):
    assert counts[method, dtype] == 0
