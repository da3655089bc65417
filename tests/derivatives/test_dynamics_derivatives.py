"""Derivatives of inverse and forward dynamics against complex steps of another implementation, and against central differences."""

import numpy as np
import pytest
from hypothesis import given, settings

import delassus as dl
from delassus import textbook as tb
from oracles import complex_step
from oracles.cases import RANDOM, state
from oracles.compare import agree
from oracles.trees import mechanisms

CLOSE = 1e-10  # complex steps are exact to rounding; trees have up to forty velocities


def drawn(model, seed):
    rng = np.random.default_rng([seed, 3])
    return *rng.standard_normal((2, model.nv)), 3 * rng.standard_normal((model.nbody, 6))


def size(*arrays):
    """Largest number of all: derivatives of a body by itself are zero, sums of what cancels."""
    return max(np.abs(x).max(initial=0.0) for x in arrays)


def check_inverse(model, q, v, seed, forces=True):
    a, _, external = drawn(model, seed)
    external = external if forces else None
    d = dl.inverse_dynamics_derivatives(model, q, v, a, external_forces=external)
    agree(d.tau, dl.inverse_dynamics(model, q, v, a, external_forces=external), 1e-12)
    by_q, by_v = complex_step.derivative(model, lambda q, v: complex_step.inverse_dynamics(model, q, v, a, external), q, v)
    M = dl.mass_matrix(model, q)
    agree(d.tau_q, by_q, CLOSE, size(by_q, d.tau))
    agree(d.tau_v, by_v, CLOSE, size(by_v, M))
    agree(d.tau_a, M, 1e-13)


def check_forward(model, q, v, seed, forces=True):
    """−M⁻¹ ∂τ at the acceleration, everything else taken from complex steps and dense algebra."""
    _, tau, external = drawn(model, seed)
    external = external if forces else None
    d = dl.forward_dynamics_derivatives(model, q, v, tau, external_forces=external)
    agree(d.acceleration, dl.forward_dynamics(model, q, v, tau, external_forces=external), 1e-10)
    by_q, by_v = complex_step.derivative(model, lambda q, v: complex_step.inverse_dynamics(model, q, v, d.acceleration, external), q, v)
    M = dl.mass_matrix(model, q)
    want_q, want_v = -np.linalg.solve(M, by_q), -np.linalg.solve(M, by_v)
    agree(d.acceleration_q, want_q, 1e-9, size(want_q, d.acceleration))
    agree(d.acceleration_v, want_v, 1e-9, size(want_v, d.acceleration))
    agree(d.acceleration_tau, dl.mass_matrix_inverse(model, q), 1e-10)


@pytest.mark.parametrize("forces", [True, False], ids=["pushed", "free"])
@pytest.mark.parametrize("name", [*RANDOM, "go2", "iiwa", "boxes", "one link", "tree", pytest.param("g1", marks=pytest.mark.exhaustive)])
def test_derivatives_are_those_of_complex_steps(name, forces):
    oracle = state(name, 3)
    check_inverse(oracle.model, oracle.q, oracle.v, 3, forces)
    check_forward(oracle.model, oracle.q, oracle.v, 4, forces)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", dl.embedded_names())
def test_derivatives_of_embedded_robots_are_those_of_complex_steps(name):
    oracle = state(name, 5)
    check_inverse(oracle.model, oracle.q, oracle.v, 5)
    check_forward(oracle.model, oracle.q, oracle.v, 6)


@settings(max_examples=25)
@given(mechanisms(max_bodies=7))
def test_derivatives_of_random_trees(oracle):
    check_inverse(oracle.model, oracle.q, oracle.v, 1)
    check_forward(oracle.model, oracle.q, oracle.v, 2)


@pytest.mark.exhaustive
@settings(max_examples=500)
@given(mechanisms())
def test_derivatives_of_five_hundred_random_trees(oracle):
    check_inverse(oracle.model, oracle.q, oracle.v, 1)
    check_forward(oracle.model, oracle.q, oracle.v, 2)


@pytest.mark.parametrize("name", dl.embedded_names())
def test_derivatives_are_central_differences_of_the_functions(name):
    model = state(name, 1).model
    rng = np.random.default_rng(8)
    q, h = model.random(rng), 1e-5
    v, x, d = rng.standard_normal((3, model.nv))
    external = rng.standard_normal((model.nbody, 6))
    for result, function in (
        (dl.inverse_dynamics_derivatives(model, q, v, x, external_forces=external), dl.inverse_dynamics),
        (dl.forward_dynamics_derivatives(model, q, v, x, external_forces=external), dl.forward_dynamics),
    ):

        def f(q, v, x, function=function):
            return function(model, q, v, x, external_forces=external)

        value, by_q, by_v, by_x = vars(result).values()
        agree(value, f(q, v, x), 1e-10)
        ahead, behind = (dl.integrate(model, q, d, sign * h) for sign in (1, -1))
        changes = (
            (by_q, f(ahead, v, x) - f(behind, v, x)),
            (by_v, f(q, v + h * d, x) - f(q, v - h * d, x)),
            (by_x, f(q, v, x + h * d) - f(q, v, x - h * d)),
        )
        for matrix, change in changes:
            agree(matrix @ d, change / (2 * h), 1e-6)


@pytest.mark.parametrize("name", ["go2", "mixed", "two trees", "iiwa"])
def test_textbook_has_the_same_derivatives(name):
    oracle = state(name, 2)
    model, (a, tau, _) = oracle.model, drawn(oracle.model, 7)
    pose = tb.Robot(model).at(oracle.q)
    for got, want in (
        (tb.rnea_derivatives(pose, oracle.v[:, None], a[:, None]), dl.inverse_dynamics_derivatives(model, oracle.q, oracle.v, a)),
        (tb.aba_derivatives(pose, oracle.v[:, None], tau[:, None]), dl.forward_dynamics_derivatives(model, oracle.q, oracle.v, tau)),
    ):
        value, *matrices = vars(want).values()
        for x, y in zip(vars(got).values(), (value[:, None], *matrices), strict=True):
            agree(x, y, 1e-10)


def test_far_from_the_origin_no_digit_is_lost():
    model = dl.load("g1")
    rng = np.random.default_rng(1)
    q = model.random(rng)
    v, a, tau = rng.standard_normal((3, model.nv))
    external = rng.standard_normal((model.nbody, 6))
    far = q.copy()
    far[:3] = np.array([1000.0, -2000.0, 500.0])
    for function, x in ((dl.inverse_dynamics_derivatives, a), (dl.forward_dynamics_derivatives, tau)):
        near_by, away = (function(model, place, v, x, external_forces=external) for place in (q, far))
        for one, other in zip(vars(near_by).values(), vars(away).values(), strict=True):
            agree(other, one, 1e-13)


def test_what_the_tree_separates_is_exactly_zero():
    model = dl.load("go2")
    rng = np.random.default_rng(2)
    d = dl.inverse_dynamics_derivatives(model, model.random(rng), *rng.standard_normal((2, model.nv)))
    for matrix in (d.tau_q, d.tau_v, d.tau_a):
        assert (matrix[6:9, 9:12] == 0).all()
        assert (matrix[15:, 6:15] == 0).all()
    # nothing depends on where the base stands
    assert (d.tau_q[:, :3] == 0).all()


@pytest.mark.parametrize("batch", [1, 3, 8, 13])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("threads", [1, 2])
def test_batch_has_the_derivatives_of_its_states(batch, dtype, threads):
    oracle = state("mixed", 4)
    model, rng = oracle.model, np.random.default_rng(batch)
    Q = np.array([model.random(rng) for _ in range(batch)], dtype=dtype)
    V, X = (rng.standard_normal((batch, model.nv)).astype(dtype) for _ in range(2))
    E = rng.standard_normal((batch, model.nbody, 6)).astype(dtype)
    close = 1e-11 if dtype == np.float64 else 5e-3
    for function in (dl.inverse_dynamics_derivatives, dl.forward_dynamics_derivatives):
        for external in (None, E):
            all_states = function(model, Q, V, X, external_forces=external, threads=threads)
            for s in range(batch):
                one = function(model, Q[s], V[s], X[s], external_forces=None if external is None else external[s])
                for key, got in vars(all_states).items():
                    assert got.dtype == dtype
                    agree(got[s], getattr(one, key), close)
    still = dl.forward_dynamics_derivatives(model, Q, V, threads=threads)
    assert (still.acceleration == dl.forward_dynamics_derivatives(model, Q, V, 0 * V, threads=threads).acceleration).all()


def test_out_is_filled_and_a_workspace_gives_the_same():
    model = dl.load("go2")
    workspace = dl.Workspace(model)
    rng = np.random.default_rng(0)
    for function in (dl.inverse_dynamics_derivatives, dl.forward_dynamics_derivatives):
        kept = function(workspace, model.random(rng), *rng.standard_normal((2, model.nv)))
        arguments = model.random(rng), *rng.standard_normal((2, model.nv))
        want = function(model, *arguments)
        got = function(workspace, *arguments, out=kept)
        for key, array in vars(got).items():
            assert array is getattr(kept, key)
            assert (array == getattr(want, key)).all()


def nothing_moves():
    b = dl.ModelBuilder("rock")
    b.add_body("rock", "world", mass=1.0, inertia=(1.0, 1.0, 1.0))
    return b.build()


def test_a_model_without_joints_has_empty_derivatives():
    model = nothing_moves()
    none = np.zeros(0)
    for function in (dl.inverse_dynamics_derivatives, dl.forward_dynamics_derivatives):
        shapes = [x.shape for x in vars(function(model, none, none, none)).values()]
        assert shapes == [(0,), (0, 0), (0, 0), (0, 0)]
        shapes = [x.shape for x in vars(function(model, np.zeros((2, 0)), np.zeros((2, 0)), np.zeros((2, 0)))).values()]
        assert shapes == [(2, 0), (2, 0, 0), (2, 0, 0), (2, 0, 0)]


BAD = {
    "wrong q": ({"q": np.zeros(3)}, dl.errors.ArgumentError, "q: expected shape"),
    "wrong v": ({"v": np.zeros((18, 1))}, dl.errors.ArgumentError, "v: expected shape"),
    "NaN": ({"v": np.full(18, np.nan)}, dl.errors.NotFiniteError, "v: every number"),
    "infinite": ({"x": np.full(18, np.inf)}, dl.errors.NotFiniteError, "every number"),
    "no v": ({"v": None}, dl.errors.ArgumentTypeError, "v: expected"),
    "complex": ({"v": np.zeros(18, dtype=complex)}, dl.errors.ArgumentTypeError, "v: expected real"),
    "quaternion": ({"q": np.zeros(19)}, dl.errors.QuaternionError, "length 1"),
    "forces": ({"external_forces": np.zeros((2, 6))}, dl.errors.ArgumentError, "external_forces: expected shape"),
    "batch of none": ({"q": np.zeros((0, 19))}, dl.errors.ArgumentError, "at least one state"),
    "batch of two, v of one": ({"q": np.tile(dl.load("go2").neutral(), (2, 1))}, dl.errors.ArgumentError, "v: expected shape"),
    "three axes": ({"q": np.zeros((1, 1, 19))}, dl.errors.ArgumentError, "q: expected shape"),
    "out": ({"out": np.zeros((18, 18))}, dl.errors.ArgumentTypeError, "out: expected a"),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("function", [dl.inverse_dynamics_derivatives, dl.forward_dynamics_derivatives])
def test_bad_arguments_raise_errors_that_name_them(function, what):
    model = dl.load("go2")
    wrong, kind, says = BAD[what]
    given = {"q": model.neutral(), "v": np.zeros(18), "x": np.zeros(18)} | wrong
    with pytest.raises(kind, match=says):
        function(model, given.pop("q"), given.pop("v"), given.pop("x"), **given)


def test_further_bad_arguments():
    model = dl.load("go2")
    q, v = model.neutral(), np.zeros(18)
    with pytest.raises(dl.errors.ArgumentTypeError, match="acceleration"):
        dl.inverse_dynamics_derivatives(model, q, v, None)
    with pytest.raises(dl.errors.ArgumentTypeError, match="model"):
        dl.inverse_dynamics_derivatives("go2", q, v, v)
    with pytest.raises(dl.errors.ArgumentError, match="threads"):
        dl.inverse_dynamics_derivatives(model, q[None], v[None], v[None], threads=0)
    # a result may not lie in an argument
    d = dl.inverse_dynamics_derivatives(model, q, v, v)
    with pytest.raises(dl.errors.ArgumentError, match="shares memory with v"):
        dl.inverse_dynamics_derivatives(model, q, d.tau, v, out=d)


def test_a_singular_mass_matrix_raises():
    b = dl.ModelBuilder("two hinges on one axis")
    b.add_body("b", "world", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.add_joint("b", "hinge", name="one", axis=(0, 0, 1))
    b.add_joint("b", "hinge", name="two", axis=(0, 0, 1))
    model = b.build()
    with pytest.raises(dl.errors.SingularError, match="forward_dynamics_derivatives"):
        dl.forward_dynamics_derivatives(model, np.zeros(2), np.zeros(2))
    with pytest.raises(dl.errors.SingularError, match="state 0"):
        dl.forward_dynamics_derivatives(model, np.zeros((1, 2)), np.zeros((1, 2)))
    assert dl.inverse_dynamics_derivatives(model, np.zeros(2), np.zeros(2), np.ones(2)).tau_a.shape == (2, 2)
