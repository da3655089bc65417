"""`solve` keeps its promise: its normwise backward error is within the tolerance in every column and state, or it raises."""

import re

import numpy as np
import pytest

import delassus as dl

# what the docs promise; a test sees G with another rounding, a few units of which may differ
PROMISE = {"float64": 1e-12, "float32": 5e-4}


def arm(lengths, masses, axes):
    """A chain of hinges, each link a rod along x, and a connect at its tip."""
    bodies = ""
    for k, (length, mass, axis) in enumerate(zip(lengths, masses, axes, strict=True)):
        inertia = mass * length**2 / 12
        bodies += (
            f'<body name="b{k}" pos="{lengths[k - 1] if k else 0} 0 0"><joint axis="{axis[0]} {axis[1]} {axis[2]}"/>'
            f'<inertial pos="{length / 2} 0 0" mass="{mass}" diaginertia="{0.1 * inertia} {inertia} {inertia}"/>'
        )
    model = dl.load(f"<mujoco><worldbody>{bodies}{'</body>' * len(lengths)}</worldbody></mujoco>")
    return model, [dl.Connect(model, f"b{len(lengths) - 1}", point=(lengths[-1], 0, 0))]


def short_hand(short):
    """Five links of a metre, two short ones, a kilogram each."""
    return arm([1.0] * 5 + [short] * 2, [1.0] * 7, np.eye(3)[[2, 1, 1, 0, 1, 0, 1]])


def random_arm(seed):
    """Links from a millimetre to ten metres, a gram to a tonne; contacts, connects and repeated ones."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    lengths = 10.0 ** rng.uniform(-3, 1, n)
    model, constraints = arm(lengths, 10.0 ** rng.uniform(-3, 3, n), rng.normal(size=(n, 3)))
    for _ in range(int(rng.integers(0, 4))):
        k = int(rng.integers(n))
        constraints.append(dl.PointContact(model, f"b{k}", point=(lengths[k], 0, 0), friction=0.5))
    if seed % 3 == 0:
        constraints.append(constraints[0])
    if seed % 4 == 0 and n > 3:
        constraints.append(dl.Connect(model, "b1", other=f"b{n - 1}"))
    return model, constraints, rng


def backward_errors(product, matrix, damping, x, y):
    """‖(G + ε) x − y‖ / (‖G + ε‖ ‖x‖ + ‖y‖) of columns; `product` is G x as somebody else computes it."""
    rows = (slice(None),) + (None,) * (x.ndim - 1)
    residual = np.linalg.norm(product + damping[rows] * x - y, axis=0)
    size = np.linalg.norm(matrix + np.diag(damping), 2)
    return residual / (size * np.linalg.norm(x, axis=0) + np.linalg.norm(y, axis=0))


@pytest.mark.parametrize("share", [1e-16, 1e-14, 1e-12, 1e-11, 1e-10, 1e-8, 1e-4])
@pytest.mark.parametrize("short", [0.1, 0.03, 0.01])
def test_short_last_links_cost_no_digits_however_small_the_damping(short, share):
    model, constraints = short_hand(short)
    G, rng = dl.DelassusOperator(model, constraints), np.random.default_rng(0)
    for _ in range(5):
        G.update(model.random(rng))
        A = G.to_matrix()
        damping = np.full(3, share * np.linalg.norm(A, 2))
        G.damping = damping
        for y in (rng.normal(size=3), rng.normal(size=(3, 5))):
            x = G.solve(y)
            assert (backward_errors(A @ x, A, damping, x, y) <= PROMISE["float64"]).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_mechanisms_are_solved_within_the_promise_or_raise(dtype):
    states = raised = 0
    for seed in range(120):
        model, constraints, rng = random_arm(seed)
        G = dl.DelassusOperator(model, constraints, dtype=dtype)
        try:
            G.update(model.random(rng).astype(dtype))
        except dl.errors.SingularError:
            continue
        A = G.to_matrix().astype(float)
        damping = (10.0 ** rng.uniform(-16, 0) * np.linalg.norm(A, 2) * np.ones(len(A))).astype(dtype)
        y = rng.normal(size=(len(A), 3)).astype(dtype)
        y = (A @ y).astype(dtype) if seed % 2 else y
        G.damping = damping
        states += 1
        try:
            x = G.solve(y)
        except dl.errors.InaccurateError:
            raised += 1
            continue
        errors = backward_errors((G @ x).astype(float), A, damping.astype(float), x.astype(float), y.astype(float))
        assert (errors <= 1.2 * PROMISE[dtype]).all(), seed
    # an error is for the rare case that not even G itself has that many digits
    assert states > 100
    assert raised <= 0.05 * states


def test_every_state_of_a_batch_is_solved_whatever_its_neighbours_are():
    model, constraints = short_hand(0.02)
    rng, states = np.random.default_rng(3), 11
    q = np.stack([model.random(rng) for _ in range(states)])
    B = dl.BatchDelassusOperator(model, constraints, states)
    B.update(q)
    A = B.to_matrix()
    sizes = np.linalg.norm(A, 2, axis=(1, 2))
    damping = (sizes * 10.0 ** np.linspace(-16, 0, states))[:, None] * np.ones((states, 3))
    y = rng.normal(size=(states, 3))
    B.damping = damping
    x = B.solve(y)
    for k in range(states):
        assert backward_errors(A[k] @ x[k], A[k], damping[k], x[k], y[k]) <= PROMISE["float64"]
    # the next right-hand side finds what the first one needed
    again = B.solve(2 * y)
    for k in range(states):
        assert backward_errors(A[k] @ again[k], A[k], damping[k], again[k], 2 * y[k]) <= PROMISE["float64"]


@pytest.mark.parametrize("share", [1e-16, 1e-13, 1e-10, 1e-6])
def test_every_column_is_solved_whatever_its_neighbours_are(share):
    model, constraints = random_arm(12)[:2]
    rng = np.random.default_rng(7)
    G = dl.DelassusOperator(model, constraints)
    G.update(model.random(rng))
    A = G.to_matrix()
    m = len(A)
    damping = np.full(m, share * np.linalg.norm(A, 2))
    G.damping = damping
    # beside random columns: nothing, one of G's image, which is easy, and squares that are no numbers
    y = rng.normal(size=(m, 11))
    y[:, [1, 6]], y[:, 2], y[:, 4], y[:, 7] = 0.0, A @ y[:, 2], 1e-200 * y[:, 4], 1e200 * y[:, 7]
    x = G.solve(y)
    assert np.all(x[:, [1, 6]] == 0)
    kept = [0, 2, 3, 4, 5, 7, 8, 9, 10]
    sizes = np.abs(y).max(axis=0)[kept]
    X, Y = x[:, kept] / sizes, y[:, kept] / sizes
    assert backward_errors(A @ X, A, damping, X, Y).max() <= PROMISE["float64"]


def test_a_column_that_is_good_enough_does_not_change_with_its_neighbours():
    model, constraints = short_hand(0.02)
    rng = np.random.default_rng(8)
    G = dl.DelassusOperator(model, constraints)
    G.update(model.random(rng))
    G.damping = 1e-9 * np.linalg.norm(G.to_matrix(), 2)
    y = rng.normal(size=(3, 1))
    # four columns are a pack: beside zeros, which need nothing, and beside others, which are refined
    beside = [np.hstack([y, np.zeros((3, 3))]), np.hstack([y, rng.normal(size=(3, 3))]), np.hstack([y, 1e6 * rng.normal(size=(3, 3))])]
    first = [G.solve(Y)[:, 0] for Y in beside]
    assert np.array_equal(first[0], first[1])
    assert np.array_equal(first[0], first[2])


@pytest.mark.parametrize("kind", [dl.DelassusOperator, dl.DenseDelassus, dl.CholeskyDelassus])
def test_backward_error_is_that_of_the_definition(kind):
    model, constraints = short_hand(0.05)
    G, rng = kind(model, constraints, damping=1e-3), np.random.default_rng(4)
    G.update(model.random(rng))
    A, y = G.to_matrix(), rng.normal(size=(3, 4))
    for x in (rng.normal(size=(3, 4)), G.solve(y) + 1e-7, np.zeros((3, 4))):
        want = backward_errors(A @ x, A, np.full(3, 1e-3), x, y)
        got = G.backward_error(x, y)
        assert got.shape == (4,)
        # the norm of G is estimated from below: four power iterations of a matrix of three rows, or its longest column
        assert (got >= want * (1 - 1e-9)).all()
        assert (got <= want * 1.8).all()
        assert G.backward_error(x[:, 0], y[:, 0]).shape == ()


def test_backward_error_of_a_batch_has_a_number_per_state_and_column():
    model, constraints = short_hand(0.05)
    rng, states = np.random.default_rng(5), 5
    B = dl.BatchDelassusOperator(model, constraints, states, damping=1e-3)
    q = np.stack([model.random(rng) for _ in range(states)])
    B.update(q)
    x, y = rng.normal(size=(2, states, 3, 2))
    errors = B.backward_error(x, y)
    assert errors.shape == (states, 2)
    assert B.backward_error(x[:, :, 0], y[:, :, 0]).shape == (states,)
    for k in range(states):
        G = dl.DelassusOperator(model, constraints, damping=1e-3)
        G.update(q[k])
        assert np.allclose(errors[k], G.backward_error(x[k], y[k]), rtol=1e-9)


def test_an_unrefined_solution_is_told_from_a_refined_one():
    model, constraints = short_hand(0.01)
    G = dl.DelassusOperator(model, constraints)
    G.update(model.random(1))
    G.damping = 1e-12 * np.linalg.norm(G.to_matrix(), 2)
    y = np.ones(3)
    assert G.backward_error(G.solve(y, refine=False), y) > 1e-6
    assert G.backward_error(G.solve(y), y) <= PROMISE["float64"]


@pytest.mark.parametrize("kind", [dl.DelassusOperator, dl.DenseDelassus, dl.CholeskyDelassus])
def test_what_cannot_be_reached_is_an_error_that_has_the_error_reached(kind):
    model, constraints = short_hand(0.01)
    G = kind(model, constraints)
    G.update(model.random(2))
    G.damping = 1e-9
    with pytest.raises(dl.errors.InaccurateError, match="tolerance") as caught:
        G.solve(np.array([1.0, 2.0, 3.0]), tolerance=1e-20)
    reached = float(re.search(r"backward error of (\S+) was", str(caught.value))[1])
    assert 1e-20 < reached < PROMISE["float64"]
    B = dl.BatchDelassusOperator(model, constraints, 3, damping=1e-9)
    B.update(np.stack([model.random(k) for k in range(3)]))
    with pytest.raises(dl.errors.InaccurateError, match="state"):
        B.solve(np.ones((3, 3)), tolerance=1e-20)


@pytest.mark.parametrize(("dtype", "scale"), [("float64", 1e-200), ("float64", 1e200), ("float32", 1e-25), ("float32", 1e25)])
def test_the_size_of_the_right_hand_side_does_not_matter(dtype, scale):
    model, constraints = short_hand(0.05)
    G = dl.DelassusOperator(model, constraints, dtype=dtype)
    G.update(model.random(6).astype(dtype))
    A = G.to_matrix().astype(float)
    damping = np.full(3, 1e-10 * np.linalg.norm(A, 2))
    G.damping = damping
    y = np.array([[1.0, -2.0], [0.5, 0.0], [3.0, 1.0]])
    for part in (y, y[:, 0]):
        x = G.solve((part * scale).astype(dtype)).astype(float) / scale
        assert (backward_errors(A @ x, A, damping, x, part) <= 10 * PROMISE[dtype]).all()


def test_nothing_is_the_solution_for_nothing():
    model, constraints = short_hand(0.01)
    G = dl.DelassusOperator(model, constraints)
    G.update(model.random(7))
    G.damping = 1e-14
    y = np.zeros((3, 5))
    y[:, 2] = 1.0
    x = G.solve(y)
    assert (x[:, [0, 1, 3, 4]] == 0).all()
    assert G.backward_error(x, y).max() <= PROMISE["float64"]
    assert (G.solve(np.zeros(3)) == 0).all()


def test_rows_that_repeat_and_damping_at_rounding_still_solve():
    model, constraints = short_hand(0.02)
    G = dl.DelassusOperator(model, constraints * 3)
    G.update(model.random(8))
    A = G.to_matrix()
    damping = np.full(9, 1e-15 * np.linalg.norm(A, 2))
    G.damping = damping
    y = np.random.default_rng(9).normal(size=9)
    x = G.solve(y)
    assert backward_errors(A @ x, A, damping, x, y) <= PROMISE["float64"]


@pytest.mark.parametrize("seed", range(12))
def test_an_explicit_inverse_by_columns_solves_its_equation_however_small_the_damping(seed):
    model, constraints, rng = random_arm(4 * seed + 3)
    G = dl.DelassusOperator(model, constraints * 2)
    q = model.random(rng)
    G.update(q)
    A = G.to_matrix()
    size = np.linalg.norm(A, 2)
    damping = 10.0 ** rng.uniform(-16, -8) * size
    X = dl.damped_delassus_inverse(model, q, constraints * 2, damping, method="lcaba")
    error = np.linalg.norm(A @ X + damping * X - np.eye(len(A)), 2) / (size * np.linalg.norm(X, 2) + 1)
    # ten times the promise of a column: A is G with another rounding
    assert error <= 10 * PROMISE["float64"]


@pytest.mark.parametrize("method", ["ltl", "pv-osimf", "caba-osim", "auto"])
@pytest.mark.parametrize("share", [1e-18, 1e-16, 1e-15, 1e-14])
def test_explicit_inverses_survive_pivots_that_rounding_takes(method, share):
    model, _ = short_hand(0.5)
    rng = np.random.default_rng(11)
    contacts = [dl.PointContact(model, f"b{k}", point=(0.5, 0, 0), friction=0.5) for k in (2, 4, 6, 6, 6)]
    for _ in range(10):
        q = model.random(rng)
        A = dl.delassus_matrix(model, q, contacts)
        size = np.linalg.norm(A, 2)
        X = dl.damped_delassus_inverse(model, q, contacts, share * size, method=method)
        # the rows of the last body repeat: a factor of that matrix has pivots of rounding, of any sign
        assert np.linalg.norm(A @ X + share * size * X - np.eye(len(A)), 2) <= 1e-8 * size * np.linalg.norm(X, 2)
        sizes = np.linalg.eigvalsh(X)
        assert sizes.min() > -1e-12 * sizes.max()
