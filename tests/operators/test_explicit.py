"""Every explicit algorithm gives the dense definition: G = J M⁻¹ Jᵀ, and (G + ε)⁻¹."""

import copy
import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
import pytest
from test_operator import CLOSE, CLOSE_SINGLE, Case, listed, loops, plan, standing

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, BusyError, NotFiniteError, QuaternionError, SingularError, UnknownNameError
from oracles import rows, trees
from oracles.compare import agree
from oracles.dense import Mechanism

MATRIX = ["ltl", "kjr", "efpa", "pv-osim", "pv-osimr", "oscm", "columns"]
INVERSE = ["caba-osim", "caba-osimf", "pv-osimf", "ltl", "lcaba-osim", "lcaba"]
# those that take any rows
ANY_INVERSE = ["ltl", "lcaba-osim", "lcaba"]
# of ‖G‖. An inverse magnifies what G is off by as much as G + ε is conditioned: G has twelve digits or more, four may go
DAMPING = [1e3, 1.0, 1e-2, 1e-4]
# whatever the damping: ‖(G + ε) X − 1‖ / (‖G + ε‖ ‖X‖ + 1)
TINY, BACKWARD = [1e-6, 1e-9, 1e-12], 1e-9

# ---- cases ---------------------------------------------------------------------------------------------------------------


def tips(model):
    """Bodies that no other hangs on."""
    return [b for b in range(1, model.nbody) if b not in model.body_parent]


def grounded(rng, model, kinds, bodies):
    return [rows.random_constraint(rng, model, str(kind), (int(b), None)) for kind, b in zip(kinds, bodies, strict=True)]


def some(rng, model, kinds, count):
    return grounded(rng, model, rng.choice(kinds, count), rng.integers(1, model.nbody, count))


def patch(rng, model):
    """Four points on each of two bodies: twelve rows on a link that six would do for."""
    bodies = [b for b in rng.choice(tips(model), 2) for _ in range(4)]
    return grounded(rng, model, 8 * ["contact"], bodies)


def shuffled(rng, made):
    return [made[k] for k in rng.permutation(len(made))]


LISTS = {
    "3-D": lambda rng, model: grounded(rng, model, len(t := tips(model)) * ["connect"], t),
    "6-D": lambda rng, model: grounded(rng, model, len(t := tips(model)[:6]) * ["weld"], t),
    "mixed": lambda rng, model: some(rng, model, ["contact", "connect", "weld", "hinge", "distance", "links"], 8),
    "one": lambda rng, model: some(rng, model, ["contact", "weld", "distance"], 1),
    "repeated": lambda rng, model: 2 * some(rng, model, ["contact", "weld"], 4),
    "interleaved": lambda rng, model: shuffled(rng, 3 * some(rng, model, ["contact", "weld"], 4)),
    "patch": patch,
    "every body": lambda rng, model: grounded(rng, model, (model.nbody - 1) * ["contact"], range(1, model.nbody)),
    "nothing among them": lambda rng, model: [
        rows.weld(model, 0, None, point=np.ones(3), other_point=np.zeros(3)), *some(rng, model, ["weld"], 2), rows.connect(model, 0, None, point=np.ones(3), other_point=np.zeros(3)),
    ],
    "itself": lambda rng, model: [rows.random_constraint(rng, model, "weld", (b, b)) for b in rng.integers(1, model.nbody, 2)],
    "none": lambda rng, model: [],
}  # fmt: skip

GENERATED = {
    "chain": lambda: dl.scenes.chain(20), "binary_tree": lambda: dl.scenes.binary_tree(4), "stem_with_branches": lambda: dl.scenes.stem_with_branches(5, 3, 2),
    "long stem": lambda: dl.scenes.stem_with_branches(12, 2, 7), "swimmer": lambda: dl.scenes.swimmer(8), "box_stack": lambda: dl.scenes.box_stack(5),
    "one body": lambda: dl.scenes.box_stack(1),
}  # fmt: skip


@lru_cache(maxsize=8)
def mechanism(name):
    if name not in GENERATED:
        return standing(name)
    model = GENERATED[name]()
    return Mechanism(model, model.random(3))


def on_ground(name, which):
    oracle = mechanism(name)
    return Case(oracle, LISTS[which](np.random.default_rng([len(name), len(which)]), oracle.model))


def tree(seed):
    """A random tree of any joints, with rows on the ground."""
    rng = np.random.default_rng([seed, 21])
    oracle = trees.mechanism(plan(rng, 1 + int(rng.integers(14)), rng.random()), [seed, 22])
    return Case(oracle, some(rng, oracle.model, ["contact", "weld", "hinge", "links"], 1 + int(rng.integers(8))))


CASES = {f"{name}-{which}": lambda n=name, w=which: on_ground(n, w) for name in (*dl.embedded_names(), *GENERATED) for which in LISTS}
CASES |= {f"tree-{seed}": lambda s=seed: tree(s) for seed in range(150)}
LOOPED = {f"{name}-{which}": lambda n=name, w=which: listed(n, w) for name in ("cassie", "talos", "hand", "four_bar", "n_four_bar", "box_pyramid")
          for which in ("mixture", "mixture shuffled", "repeated", "ancestor", "one pair", "friction")}  # fmt: skip
LOOPED |= {"cassie loops": lambda: Case(standing("cassie"), list(loops(standing("cassie").model)))}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]()


@pytest.fixture(scope="module", params=LOOPED)
def looped(request):
    return LOOPED[request.param]()


def backward(case, X, damping):
    A = case.G + damping * np.eye(case.m)
    residual = np.linalg.norm(A @ X - np.eye(case.m), axis=0).max(initial=0.0)
    return residual / (np.linalg.norm(A, 2) * np.linalg.norm(X, 2) + 1) if case.m else 0.0


# ---- what holds for all --------------------------------------------------------------------------------------------------


def check_matrices(case, methods):
    explicit = dl.ExplicitDelassus(case.model, case.constraints)
    compliance = np.random.default_rng(1).uniform(0, 1, case.m)
    compliant = dl.ExplicitDelassus(case.model, case.constraints, compliance=compliance)
    for method in (*methods, "auto"):
        G = explicit.matrix(case.q, method=method)
        assert G.shape == (case.m, case.m)
        agree(G, case.G, CLOSE, case.scale)
        assert np.array_equal(G, G.T)
        agree(compliant.matrix(case.q, method=method), case.G + np.diag(compliance), CLOSE, case.scale + 1)


def check_inverses(case, methods):
    explicit = dl.ExplicitDelassus(case.model, case.constraints)
    norm = case.norm or 1.0
    for method in (*methods, "auto"):
        for share in DAMPING:
            damping = share * norm
            want = np.linalg.inv(case.G + damping * np.eye(case.m))
            X = explicit.inverse(case.q, damping, method=method)
            agree(X, want, CLOSE, np.abs(want).max(initial=0.0))
            assert np.array_equal(X, X.T)
        for share in TINY:
            error = backward(case, explicit.inverse(case.q, share * norm, method=method), share * norm)
            assert error <= BACKWARD, f"{method}: backward error {error:.2g} at damping {share:g} ‖G‖"
    # one number a row, part of it compliance
    rng = np.random.default_rng(2)
    damping, compliance = norm * 10 ** rng.uniform(-3, 0, (2, case.m))
    want = np.linalg.inv(case.G + np.diag(damping + compliance))
    explicit = dl.ExplicitDelassus(case.model, case.constraints, compliance=compliance)
    for method in (*methods, "auto"):
        agree(explicit.inverse(case.q, damping, method=method), want, CLOSE, np.abs(want).max(initial=0.0))


@pytest.mark.sampled
def test_all_methods_give_the_dense_matrix(case):
    check_matrices(case, MATRIX)


@pytest.mark.sampled
def test_all_methods_give_the_dense_inverse(case):
    check_inverses(case, INVERSE)


def test_methods_for_any_rows_give_the_dense_matrix(looped):
    check_matrices(looped, MATRIX)


def test_methods_for_any_rows_give_the_dense_inverse(looped):
    check_inverses(looped, ANY_INVERSE)


@pytest.mark.sampled
def test_single_precision_keeps_its_digits(case):
    explicit = dl.ExplicitDelassus(case.model, case.constraints, dtype=np.float32)
    # single precision rounds at 6e-8
    tolerance = max(CLOSE_SINGLE, 1.2e-7 * case.condition)
    for method in (*MATRIX, "auto"):
        G = explicit.matrix(case.q, method=method)
        assert G.dtype == np.float32
        agree(G, case.G, tolerance, case.scale)
    damping = 1e-2 * (case.norm or 1.0)
    want = np.linalg.inv(case.G + damping * np.eye(case.m))
    for method in (*INVERSE, "auto"):
        X = explicit.inverse(case.q, damping, method=method)
        assert X.dtype == np.float32
        agree(X, want, 100 * tolerance, np.abs(want).max(initial=0.0))


@pytest.mark.sampled
def test_what_ran_before_changes_no_bit(case):
    calls = [*(("matrix", m) for m in MATRIX), *(("inverse", m) for m in INVERSE)]

    def run(explicit, what, method, q):
        return explicit.matrix(q, method=method) if what == "matrix" else explicit.inverse(q, 1e-2, method=method)

    alone = {call: run(dl.ExplicitDelassus(case.model, case.constraints), *call, case.q) for call in calls}
    shared, rng = dl.ExplicitDelassus(case.model, case.constraints), np.random.default_rng(3)
    for _ in range(2):
        for k in rng.permutation(len(calls)):
            run(shared, *calls[rng.integers(len(calls))], case.model.random(rng))
            assert np.array_equal(run(shared, *calls[k], case.q), alone[calls[k]]), calls[k]


@pytest.mark.parametrize("links", [1, 3, 40])
def test_chain_with_every_link_held(links):
    model = dl.scenes.chain(links)
    rng = np.random.default_rng(links)
    case = Case(Mechanism(model, model.random(1)), grounded(rng, model, links * ["weld"], range(1, links + 1)))
    check_matrices(case, MATRIX)
    check_inverses(case, INVERSE)


# ---- how it is used ------------------------------------------------------------------------------------------------------

MODEL = dl.load("go2")
Q = MODEL.random(2)
FEET = [dl.PointContact(MODEL, b) for b in tips(MODEL)]
LOOP = [dl.Connect(MODEL, 3, 7)]
M = 12


def test_functions_and_objects_agree_to_the_bit():
    explicit = dl.ExplicitDelassus(MODEL, FEET)
    for method in (*MATRIX, "auto"):
        G = dl.delassus_matrix(MODEL, Q, FEET, method=method)
        assert np.array_equal(G, explicit.matrix(Q, method=method))
        assert dl.delassus_matrix(MODEL, Q, FEET, method=method, out=(out := np.empty((M, M)))) is out
        assert np.array_equal(out, G)
    for method in (*INVERSE, "auto"):
        X = dl.damped_delassus_inverse(MODEL, Q, FEET, 1e-3, method=method)
        assert np.array_equal(X, explicit.inverse(Q, np.full(M, 1e-3), method=method))
        assert dl.damped_delassus_inverse(MODEL, Q, FEET, 1e-3, method=method, out=(out := np.empty((M, M)))) is out
        assert np.array_equal(out, X)
    assert dl.delassus_matrix(MODEL, Q.astype(np.float32), FEET).dtype == np.float32
    assert dl.damped_delassus_inverse(MODEL, Q.astype(np.float32), FEET, 1e-2).dtype == np.float32


def test_choice_is_the_least_expected_cost_and_is_told():
    for constraints, matrix, inverse in ((FEET, MATRIX, INVERSE), (FEET + LOOP, MATRIX, ANY_INVERSE)):
        explicit = dl.ExplicitDelassus(MODEL, constraints)
        costs = explicit.explain()
        assert (set(costs.matrix), set(costs.inverse)) == (set(matrix), set(inverse))
        assert set(costs.refused) == {*MATRIX, *INVERSE} - {*matrix, *inverse}
        assert costs.matrix[costs.matrix_choice] == min(costs.matrix.values()) > 0
        assert costs.inverse[costs.inverse_choice] == min(costs.inverse.values()) > 0
        assert np.array_equal(explicit.matrix(Q), explicit.matrix(Q, method=costs.matrix_choice))
        assert np.array_equal(explicit.inverse(Q, 1e-2), explicit.inverse(Q, 1e-2, method=costs.inverse_choice))
        told = str(costs)
        assert all(method in told for method in (*matrix, *inverse))
        assert re.search(rf"{costs.matrix_choice} .*auto", told)
        assert re.search(rf"{costs.inverse_choice} .*auto", told)


@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_a_copy_has_memory_of_its_own(again):
    explicit = dl.ExplicitDelassus(MODEL, FEET, compliance=0.5, dtype=np.float32)
    explicit.matrix(Q, method="ltl")
    other = again(explicit)
    assert other is not explicit
    assert other._native is not explicit._native
    assert other.nbytes < explicit.nbytes  # memory of methods that ran is not handed on
    assert (other.dtype, other.shape, len(other.constraints)) == (np.float32, (M, M), len(FEET))
    assert np.array_equal(other.compliance, explicit.compliance)
    assert np.array_equal(other.matrix(Q), explicit.matrix(Q))


def test_memory_is_told_and_grows_with_what_has_run():
    explicit = dl.ExplicitDelassus(MODEL, FEET)
    sizes = [explicit.nbytes]
    for method in ("efpa", "kjr", "ltl"):
        explicit.matrix(Q, method=method)
        sizes.append(explicit.nbytes)
    assert sizes == sorted(set(sizes))


# ---- what it refuses -----------------------------------------------------------------------------------------------------


def refused(error, start, work):
    with pytest.raises(error) as caught:
        work()
    assert type(caught.value) is error, f"{type(caught.value).__name__}: {caught.value}"
    assert str(caught.value).startswith(start), str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("method", ["", "pv", "PV-OSIM", "lcaba", None, 3])
def test_unknown_matrix_method_is_told_which_there_are(method):
    message = refused(UnknownNameError, "method", lambda: dl.delassus_matrix(MODEL, Q, FEET, method=method))
    assert all(known in message for known in (*MATRIX, "auto"))


@pytest.mark.parametrize("method", ["", "caba", "pv-osim", "columns", None, 3])
def test_unknown_inverse_method_is_told_which_there_are(method):
    message = refused(UnknownNameError, "method", lambda: dl.damped_delassus_inverse(MODEL, Q, FEET, 1e-3, method=method))
    assert all(known in message for known in (*INVERSE, "auto"))


COUPLED = {
    "loop": LOOP,
    "joint": [dl.JointFriction(MODEL, 3)],
    "center": [dl.CenterOfMass(MODEL)],
    "two links": [dl.LinkConstraint(MODEL, [(3, np.ones((1, 6))), (4, np.ones((1, 6)))])],
}


@pytest.mark.parametrize("which", COUPLED)
def test_a_method_that_cannot_do_these_rows_names_those_that_can(which):
    constraints = FEET + COUPLED[which]
    for method in set(INVERSE) - set(ANY_INVERSE):
        message = refused(ArgumentError, "method:", lambda m=method: dl.damped_delassus_inverse(MODEL, Q, constraints, 1e-3, method=m))
        assert all(repr(can) in message for can in ANY_INVERSE)


BAD = {
    "one entry too few": (lambda a: a[:-1], ArgumentError),
    "an axis too many": (lambda a: a[None], ArgumentError),
    "nan": (lambda a: np.where(np.arange(len(a)) == 1, np.nan, a), NotFiniteError),
    "inf": (lambda a: np.where(np.arange(len(a)) == 1, np.inf, a), NotFiniteError),
    "complex": (lambda a: a.astype(complex), ArgumentTypeError),
    "text": (lambda a: a.astype(str), ArgumentTypeError),
    "none": (lambda a: None, ArgumentTypeError),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_array_is_refused_by_name(bad):
    spoil, error = BAD[bad]
    refused(error, "q:", lambda: dl.delassus_matrix(MODEL, spoil(Q), FEET))
    refused(error, "q:", lambda: dl.damped_delassus_inverse(MODEL, spoil(Q), FEET, 1e-3))
    refused(error, "damping:", lambda: dl.damped_delassus_inverse(MODEL, Q, FEET, spoil(np.ones(M))))
    refused(error, "compliance:", lambda: dl.ExplicitDelassus(MODEL, FEET, compliance=spoil(np.ones(M))))


@pytest.mark.parametrize(
    "damping", [0.0, -1e-9, np.array([1.0] * 11 + [0.0]), np.array([1.0] * 11 + [-1.0])], ids=["zero", "negative", "a zero", "a negative"]
)
def test_damping_that_is_not_positive_is_refused(damping):
    for method in (*INVERSE, "auto"):
        refused(ArgumentError, "damping:", lambda m=method: dl.damped_delassus_inverse(MODEL, Q, FEET, damping, method=m))
    if np.min(damping) == 0:
        compliant = dl.ExplicitDelassus(MODEL, FEET, compliance=1e-2)
        want = np.linalg.inv(dl.delassus_matrix(MODEL, Q, FEET) + np.diag(np.broadcast_to(damping, M) + 1e-2))
        for method in (*INVERSE, "auto"):
            agree(compliant.inverse(Q, damping, method=method), want, CLOSE)


def test_blocks_of_damping_are_refused_and_the_way_out_is_right():
    model = dl.scenes.ladder(2)
    explicit, blocks = dl.ExplicitDelassus(model, model.loops), [(k + 1) * np.array([[2.0, 1, 0], [1, 2, 0], [0, 0, 1]]) for k in range(2)]
    for given in (blocks, np.array(blocks)):
        with pytest.raises(
            dl.errors.ArgumentError, match=r"damping: expected a scalar or shape \(6,\), got blocks\. DelassusOperator takes"
        ):
            explicit.inverse(model.neutral(), given)
    G = dl.DelassusOperator(model, model.loops, damping=blocks)
    G.update(model.neutral())
    A = explicit.matrix(model.neutral())
    for k, block in enumerate(blocks):
        A[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] += block
    np.testing.assert_allclose(A @ G.solve(np.eye(6)), np.eye(6), atol=1e-12)


def test_negative_compliance_is_refused():
    refused(ArgumentError, "compliance:", lambda: dl.ExplicitDelassus(MODEL, FEET, compliance=-1.0))


def test_quaternion_without_unit_length_is_refused():
    q = Q.copy()
    q[3:7] *= 1.5
    refused(QuaternionError, "q:", lambda: dl.delassus_matrix(MODEL, q, FEET))
    refused(QuaternionError, "q:", lambda: dl.damped_delassus_inverse(MODEL, q, FEET, 1e-3))


@pytest.mark.parametrize("model", [None, "go2", 3])
def test_what_is_no_model_is_refused(model):
    refused(ArgumentTypeError, "model:", lambda: dl.ExplicitDelassus(model, []))
    refused(ArgumentTypeError, "model:", lambda: dl.delassus_matrix(model, Q, []))


@pytest.mark.parametrize("dtype", [np.float16, np.int64, complex, "nothing"])
def test_dtype_is_double_or_single(dtype):
    refused(ArgumentTypeError, "dtype:", lambda: dl.ExplicitDelassus(MODEL, [], dtype=dtype))


@pytest.mark.parametrize("constraints", [None, 3, "weld", FEET[0]], ids=["none", "number", "text", "constraint"])
def test_what_is_no_list_of_constraints_is_refused(constraints):
    refused(ArgumentTypeError, "constraints:", lambda: dl.delassus_matrix(MODEL, Q, constraints))


BAD_OUT = {
    "short": (lambda: np.empty((M, M - 1)), ArgumentError),
    "flat": (lambda: np.empty(M * M), ArgumentError),
    "single": (lambda: np.empty((M, M), np.float32), ArgumentTypeError),
    "list": (lambda: [[0.0] * M] * M, ArgumentTypeError),
    "strided": (lambda: np.empty((2 * M, M))[::2], ArgumentError),
    "read-only": (lambda: np.broadcast_to(0.0, (M, M)), ArgumentError),
}


@pytest.mark.parametrize("bad", BAD_OUT)
def test_wrong_out_is_refused(bad):
    make, error = BAD_OUT[bad]
    refused(error, "out:", lambda: dl.delassus_matrix(MODEL, Q, FEET, out=make()))
    refused(error, "out:", lambda: dl.damped_delassus_inverse(MODEL, Q, FEET, 1e-3, out=make()))


def collinear():
    """Two hinges on one axis: the mass matrix is singular, and whoever divides by it is told."""
    builder = dl.ModelBuilder("collinear")
    builder.add_body("a", mass=1.0, inertia=(1.0, 1.0, 1.0))
    builder.add_joint("a", "hinge", axis=(0, 0, 1))
    builder.add_body("b", "a", position=(0, 0, 0.3))
    builder.add_joint("b", "hinge", axis=(0, 0, 1))
    builder.add_body("c", "b", position=(0, 0, 0.1))
    builder.add_joint("c", "hinge", axis=(0, 0, 1))
    builder.add_body("d", "c", position=(0.2, 0, 0.1), mass=1.0, inertia=(1.0, 1.0, 1.0))
    return builder.build()


def test_singular_mass_matrix_is_told():
    model = collinear()
    held = [dl.Weld(model, "d")]
    for method in MATRIX:
        refused(SingularError, "delassus_matrix", lambda m=method: dl.delassus_matrix(model, np.zeros(3), held, method=m))
    for method in INVERSE:
        for damping in (1e-6, 1.0):
            refused(
                SingularError,
                "damped_delassus_inverse",
                lambda m=method, d=damping: dl.damped_delassus_inverse(model, np.zeros(3), held, d, method=m),
            )


def test_threads_on_one_object_are_told_or_served_but_never_mixed_up():
    model = dl.scenes.chain(200)
    explicit = dl.ExplicitDelassus(model, [dl.Connect(model, b) for b in range(1, 201, 2)])
    threads, rounds = 4, 20
    q = [model.random(k) for k in range(threads)]
    expected = [explicit.matrix(x, method="pv-osim") for x in q]
    gate = threading.Barrier(threads)

    def run(k):
        served = told = 0
        gate.wait()
        for _ in range(rounds):
            try:
                assert np.array_equal(explicit.matrix(q[k], method="pv-osim"), expected[k])
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
        pytest.fail("no two threads ever met")
