"""What an operator cannot take it refuses by a typed error that names the argument; what it does not know yet it does not guess."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import delassus as dl
from delassus.constraints import Connect, PointContact, Weld
from delassus.errors import ArgumentError, ArgumentTypeError, BusyError, NotFiniteError, QuaternionError, StaleError
from delassus.operators import CholeskyDelassus, DelassusOperator, DenseDelassus

MODEL = dl.load("go2")
Q = MODEL.random(2)
CONSTRAINTS = [PointContact(MODEL, MODEL.nbody - 1), Weld(MODEL, 3, 7)]
M = 9


Operator = DelassusOperator


@pytest.fixture(autouse=True, params=[DelassusOperator, DenseDelassus, CholeskyDelassus], ids=lambda kind: kind.__name__)
def operator(request, monkeypatch):
    """Every operator is asked the same."""
    monkeypatch.setattr(sys.modules[__name__], "Operator", request.param)


def fresh(**options):
    G = Operator(MODEL, CONSTRAINTS, **({"damping": 1e-3} | options))
    G.update(Q)
    return G


def refused(error, argument, work):
    with pytest.raises(error) as caught:
        work()
    assert type(caught.value) is error, f"{type(caught.value).__name__}: {caught.value}"
    assert str(caught.value).startswith(f"{argument}:"), str(caught.value)


def spoiled(a, value):
    a = a.copy()
    a.flat[-1] = value
    return a


def set_damping(G, a):
    G.damping = a


def set_compliance(G, a):
    G.compliance = a


TAKES = {
    "q": (lambda G, a: G.update(a), Q, "q"),
    "matvec": (lambda G, a: G.matvec(a), np.ones(M), "x"),
    "matmat": (lambda G, a: G.matmat(a), np.ones((M, 3)), "x"),
    "@": (lambda G, a: G @ np.asarray(a), np.ones(M), "x"),
    "solve": (lambda G, a: G.solve(a), np.ones(M), "y"),
    "solve columns": (lambda G, a: G.solve(a), np.ones((M, 3)), "y"),
    "damping": (set_damping, np.ones(M), "damping"),
    "compliance": (set_compliance, np.ones(M), "compliance"),
    "damping at first": (lambda G, a: fresh(damping=a), np.ones(M), "damping"),
    "compliance at first": (lambda G, a: fresh(compliance=a), np.ones(M), "compliance"),
}
BAD = {
    "one entry too few": (lambda a: a[:-1], ArgumentError),
    "one entry too many": (lambda a: np.concatenate([a, a[:1]]), ArgumentError),
    "two axes too many": (lambda a: a[None, None], ArgumentError),
    "nan": (lambda a: spoiled(a, np.nan), NotFiniteError),
    "inf": (lambda a: spoiled(a, np.inf), NotFiniteError),
    "complex": (lambda a: a.astype(complex), ArgumentTypeError),
    "text": (lambda a: a.astype(str), ArgumentTypeError),
    "object": (lambda a: a.astype(object), ArgumentTypeError),
    "bool": (lambda a: a.astype(bool), ArgumentTypeError),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("take", TAKES)
def test_bad_array_is_refused_by_name(take, bad):
    work, good, name = TAKES[take]
    spoil, error = BAD[bad]
    G = fresh()
    refused(error, name, lambda: work(G, spoil(good)))
    # and the operator goes on
    G.update(Q)
    assert np.array_equal(G @ np.ones(M), fresh() @ np.ones(M))
    assert np.array_equal(G.solve(np.ones(M)), fresh().solve(np.ones(M)))


@pytest.mark.parametrize("take", [t for t in TAKES if t not in ("@", "damping at first")])
def test_none_is_refused_by_name(take):
    work, _, name = TAKES[take]
    refused(ArgumentTypeError, name, lambda: work(fresh(), None))


@pytest.mark.parametrize("name", ["damping", "compliance"])
def test_negative_diagonal_is_refused(name):
    for value in (-1e-9, np.array([1.0] * (M - 1) + [-1.0])):
        refused(ArgumentError, name, lambda value=value: fresh(**{name: value}))
        refused(ArgumentError, name, lambda value=value: setattr(fresh(), name, value))


def test_quaternion_without_unit_length_is_refused():
    q = Q.copy()
    q[3:7] *= 1.5
    refused(QuaternionError, "q", lambda: fresh().update(q))


@pytest.mark.parametrize(
    "damping", [None, 0.0, np.array([1.0] * (M - 1) + [0.0])], ids=["no damping", "zero damping", "one row without damping"]
)
def test_solve_without_damping_is_refused_and_compliance_helps(damping):
    G = fresh(damping=damping)
    refused(ArgumentError, "damping", lambda: G.solve(np.ones(M)))
    refused(ArgumentError, "damping", lambda: G.inverse @ np.ones(M))
    assert (G @ np.ones(M)).shape == (M,)
    G.damping = 1e-3
    assert np.array_equal(G.solve(np.ones(M)), fresh().solve(np.ones(M)))
    G.damping = 0.0
    refused(ArgumentError, "damping", lambda: G.solve(np.ones(M)))
    G.compliance = 1e-3
    x = G.solve(np.ones(M))
    assert np.allclose(G @ x, 1.0, atol=1e-9)


STALE = {
    "@": lambda G: G @ np.ones(M),
    "matvec": lambda G: G.matvec(np.ones(M)),
    "matmat": lambda G: G.matmat(np.ones((M, 2))),
    "solve": lambda G: G.solve(np.ones(M)),
    "inverse": lambda G: G.inverse @ np.ones(M),
    "jacobian": lambda G: G.jacobian @ np.ones(MODEL.nv),
    "jacobian transpose": lambda G: G.jacobian.H @ np.ones(M),
    "mass_inverse": lambda G: G.mass_inverse @ np.ones(MODEL.nv),
    "to_matrix": lambda G: G.to_matrix(),
}


@pytest.mark.parametrize("use", STALE)
@pytest.mark.parametrize("damping", [None, 1e-3])
def test_use_before_update_is_refused(use, damping):
    G = Operator(MODEL, CONSTRAINTS, damping=damping)
    G.damping = 1e-2
    G.compliance = 1e-2
    with pytest.raises(StaleError, match="update"):
        STALE[use](G)


OTHER = dl.load("g1")
REFUSED_LISTS = {
    "constraint of another model": ([CONSTRAINTS[0], PointContact(OTHER, 1)], ArgumentError, "constraints[1]"),
    "a constraint": (CONSTRAINTS[0], ArgumentTypeError, "constraints"),
    "none": (None, ArgumentTypeError, "constraints"),
    "a number": (3, ArgumentTypeError, "constraints"),
    "numbers": ([CONSTRAINTS[0], 1.0], ArgumentTypeError, "constraints[1]"),
    "a class": ([Connect], ArgumentTypeError, "constraints[0]"),
    "text": ("weld", ArgumentTypeError, "constraints"),
}


@pytest.mark.parametrize("which", REFUSED_LISTS)
def test_what_is_no_list_of_its_constraints_is_refused(which):
    constraints, error, name = REFUSED_LISTS[which]
    refused(error, name, lambda: Operator(MODEL, constraints))


def test_constraints_of_an_equal_model_are_taken():
    twin = dl.load("go2")
    assert Operator(twin, CONSTRAINTS).shape == (M, M)


@pytest.mark.parametrize("model", [None, "go2", 3])
def test_what_is_no_model_is_refused(model):
    refused(ArgumentTypeError, "model", lambda: Operator(model, []))


@pytest.mark.parametrize("dtype", [np.float16, np.int64, complex, "nothing", np.longdouble])
def test_dtype_is_double_or_single(dtype):
    refused(ArgumentTypeError, "dtype", lambda: Operator(MODEL, [], dtype=dtype))


BAD_OUT = {
    "short": (lambda x: np.empty(M - 1), ArgumentError),
    "columns": (lambda x: np.empty((M, 1)), ArgumentError),
    "single": (lambda x: np.empty(M, np.float32), ArgumentTypeError),
    "list": (lambda x: [0.0] * M, ArgumentTypeError),
    "strided": (lambda x: np.empty(2 * M)[::2], ArgumentError),
    "read-only": (lambda x: np.broadcast_to(0.0, (M,)), ArgumentError),
}


@pytest.mark.parametrize("bad", BAD_OUT)
@pytest.mark.parametrize("method", ["matvec", "solve"])
def test_wrong_out_is_refused(method, bad):
    make, error = BAD_OUT[bad]
    x = np.ones(M)
    refused(error, "out", lambda: getattr(fresh(), method)(x, out=make(x)))


@pytest.mark.parametrize("method", ["matvec", "solve"])
def test_arguments_are_not_written_to(method):
    x = np.ones((M, 3))
    x.setflags(write=False)
    getattr(fresh(), method)(x)
    G = fresh()
    # nor does the operator keep what the user can change
    damping, compliance = np.ones(M), np.ones(M)
    G.damping, G.compliance = damping, compliance
    before = G.solve(x)
    damping[:], compliance[:] = 7.0, 7.0
    G.damping[:] = 7.0
    G.compliance[:] = 7.0
    G.update(Q)
    assert np.array_equal(G.solve(x), before)


def test_threads_on_one_operator_are_told_or_served_but_never_mixed_up():
    model = dl.scenes.chain(300)
    threads, rounds = 4, 30
    G = Operator(model, [Connect(model, b) for b in range(1, 301, 3)], damping=1e-3)
    G.update(model.random(1))
    y = [np.random.default_rng(k).standard_normal((G.shape[0], 16)) for k in range(threads)]
    expected = [(G @ a, G.solve(a)) for a in y]
    gate = threading.Barrier(threads)

    def run(k):
        served = told = 0
        gate.wait()
        for r in range(rounds):
            try:
                assert np.array_equal((G.matmat, G.solve)[r % 2](y[k]), expected[k][r % 2])
                served += 1
            except BusyError:
                told += 1
        return served, told

    for _ in range(20):
        with ThreadPoolExecutor(threads) as pool:
            served, told = np.sum(list(pool.map(run, range(threads))), axis=0)
        assert served > 0
        if told:
            break
    else:
        pytest.fail("no two threads ever met in the operator")
    # and it is free again
    assert np.array_equal(G @ y[0], expected[0][0])


class Derived(np.ndarray):
    """An array of a class of the user's own."""


def unaligned(x):
    memory = bytearray(x.nbytes + 1)
    array = np.frombuffer(memory, x.dtype, len(x), offset=1)
    array[:] = x
    return array


UNUSUAL = {
    "list": list,
    "tuple": tuple,
    "single": lambda x: x.astype(np.float32),
    "integers": lambda x: x.astype(np.int32),
    "strided": lambda x: np.repeat(x, 2)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "other byte order": lambda x: x.astype(">f8"),
    "unaligned": unaligned,
    "derived": lambda x: x.view(Derived),
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "one column": lambda x: x[:, None],
    "columns in Fortran order": lambda x: np.asfortranarray(np.stack([x, x], axis=1)),
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_numbers_however_they_are_stored_give_the_same(kind):
    x = np.arange(-3.0, M - 3.0)  # also as float32 and as integers
    G, given = fresh(), UNUSUAL[kind](x)
    for got, want in ((G @ given, G @ x), (G.matvec(given), G @ x), (G.solve(given), G.solve(x))):
        assert type(got) is np.ndarray
        assert got.dtype == np.float64
        for column in got.reshape(M, -1).T:
            np.testing.assert_allclose(column, want, rtol=1e-12, atol=1e-12 * np.abs(want).max())


def test_every_result_is_an_array_of_its_own():
    G, x = fresh(), np.ones(M)
    first, second = G @ x, G @ x
    assert first is not second
    assert not np.shares_memory(first, second)
    assert first.flags.owndata
    assert first.flags.writeable
    first[:] = 7.0
    assert np.array_equal(G @ x, second)


def test_operators_times_operators_are_operators_of_scipy():
    from scipy.sparse.linalg import LinearOperator

    G, x = fresh(), np.arange(float(M))
    for product in (G @ G, G @ G.inverse, G + G, 2.0 * G):
        assert isinstance(product, LinearOperator)
    np.testing.assert_allclose((G @ G) @ x, G @ (G @ x), rtol=1e-14)
    np.testing.assert_allclose((2.0 * G) @ x, 2.0 * (G @ x), rtol=1e-14)


def test_damping_and_compliance_are_what_was_set():
    G = Operator(MODEL, CONSTRAINTS)
    assert G.damping is None
    assert np.array_equal(G.compliance, np.zeros(M))
    rows = np.arange(1.0, M + 1)
    G.damping, G.compliance = rows, 0.25
    assert np.array_equal(G.damping, rows)
    assert np.array_equal(G.compliance, np.full(M, 0.25))
    G.update(Q)
    G.damping = 2e-3
    assert np.array_equal(G.damping, np.full(M, 2e-3))
    # what is refused changes nothing, neither the numbers nor the factor
    before = G.solve(np.ones(M))
    for name, bad in (("damping", -1.0), ("compliance", np.nan), ("damping", np.ones(M + 1))):
        with pytest.raises(ArgumentError):
            setattr(G, name, bad)
    assert np.array_equal(G.damping, np.full(M, 2e-3))
    assert np.array_equal(G.compliance, np.full(M, 0.25))
    assert np.array_equal(G.solve(np.ones(M)), before)
    # and they outlive a change of the configuration, and a configuration that is refused
    with pytest.raises(ArgumentError):
        G.update(Q[:-1])
    with pytest.raises(StaleError):
        G.solve(np.ones(M))
    G.update(Q)
    assert np.array_equal(G.solve(np.ones(M)), before)


def test_contact_solvers_leave_damping_as_it_was():
    G = fresh(damping=5e-3)
    before = G.solve(np.ones(M))
    dl.solve_contacts(G, np.arange(float(M)), [dl.PointContact(MODEL, 1, friction=0.5)] * 3, method="admm")
    assert np.array_equal(G.damping, np.full(M, 5e-3))
    assert np.array_equal(G.solve(np.ones(M)), before)
