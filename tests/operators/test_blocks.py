"""Damping of square blocks, one per constraint, symmetric or not: against the dense G + D, and by identities."""

import copy
import pickle

import numpy as np
import pytest
from scipy.linalg import block_diag

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, NotFiniteError, StaleError
from oracles.cases import MODELS, RANDOM, case

# normwise backward error that solve promises; of float32 what refinement reaches there
BACKWARD = {np.float64: 1e-12, np.float32: 5e-4}
ON_JOINTS = (dl.JointFriction, dl.JointLimit)
NAMES = [*MODELS, *RANDOM]


def blocks(constraints, rng, size=1.0, skew=1.0):
    """Random blocks whose symmetric part is positive; those of rows on joints are diagonal."""
    made = []
    for c in constraints:
        A = rng.standard_normal((c.rows, c.rows))
        D = np.diag(rng.uniform(0.5, 1.5, c.rows))
        made.append(size * (D if isinstance(c, ON_JOINTS) else D + A @ A.T / c.rows + skew * (A - A.T)))
    return made


def dense(G, D):
    """G + D in double precision, as the operator has both."""
    A = G.to_matrix().astype(float)
    return A + block_diag(*(d.astype(G.dtype).astype(float) for d in D)) if D else A


def backward(A, x, y):
    """The worst of the columns."""
    x, y = (np.asarray(a, float).reshape(len(A), a.shape[1] if a.ndim == 2 else 1) for a in (x, y))
    residual = np.linalg.norm(A @ x - y, axis=0)
    scale = (np.linalg.norm(A, 2) if A.size else 0.0) * np.linalg.norm(x, axis=0) + np.linalg.norm(y, axis=0)
    return float(np.max(residual / np.where(scale > 0, scale, 1.0), initial=0.0))


def solves(G, D, rng, tolerance=None, columns=(1, 2, 7, 33)):
    """G.solve and G.solve_transposed are within the promise for vectors and columns; returns the dense matrix."""
    G.damping = D
    A, m = dense(G, D), G.shape[0]
    limit = BACKWARD[G.dtype.type] if tolerance is None else tolerance
    for shape in ((m,), *((m, k) for k in columns)):
        y = rng.standard_normal(shape).astype(G.dtype)
        for found, matrix, transposed in ((G.solve(y), A, False), (G.solve_transposed(y), A.T, True)):
            assert (found.shape, found.dtype) == (y.shape, G.dtype)
            assert backward(matrix, found, y) <= limit
            assert np.all(G.backward_error(found, y, transposed=transposed) <= 2 * limit)
    return A


def scene(name, dtype=np.float64):
    s = dl.scenes.load(name)
    G = dl.DelassusOperator(s.model, s.constraints, dtype=dtype)
    G.update(np.asarray(s.q, dtype))
    return G


# ---- against dense matrices -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0])
@pytest.mark.parametrize("name", dl.scenes.names)
def test_solutions_in_all_scenes(name, size):
    rng = np.random.default_rng(1)
    G = scene(name)
    solves(G, blocks(G.constraints, rng, size), rng, columns=(5,))


@pytest.mark.parametrize("name", ["go2-standing", "cassie-standing", "g1-fallen-friction", "box-stack"])
@pytest.mark.parametrize("size", [1e-4, 1.0])
def test_solutions_in_single_precision(name, size):
    rng = np.random.default_rng(2)
    G = scene(name, np.float32)
    solves(G, blocks(G.constraints, rng, size), rng, columns=(5,))


@pytest.mark.parametrize("kinds", ["none", "contacts", "redundant", "loops"])
@pytest.mark.parametrize("name", NAMES)
def test_solutions_are_the_dense_ones(name, kinds):
    """One link and one box, contacts, welds, loops, joint rows, rows of several bodies and rows twice; G from the dense oracle."""
    c = case(name, kinds)
    G = dl.DelassusOperator(c.model, c.constraints)
    G.update(c.oracle.q)
    D = blocks(c.constraints, c.rng, np.abs(c.G).max(initial=1.0))
    solves(G, D, c.rng, columns=(2, 7))
    A = c.G + (block_diag(*D) if D else 0.0)
    y = c.numbers(c.m, 3)
    for found, matrix in ((G.solve(y), A), (G.solve_transposed(y), A.T)):
        want = np.linalg.solve(matrix, y)
        assert np.abs(found - want).max(initial=0.0) <= 1e-9 * np.abs(want).max(initial=0.0)


def uneven(masses, far=0.0):
    """A chain of links with these masses, closed to its base, a contact on every link."""
    b = dl.ModelBuilder("uneven")
    for k, mass in enumerate(masses):
        b.add_body(
            f"b{k}",
            f"b{k - 1}" if k else "world",
            position=(0.3 + (far if k == 0 else 0.0), 0.1, 0.2),
            mass=mass,
            inertia=3 * (0.01 * mass,),
        )
        b.add_joint(f"b{k}", "hinge" if k else "free", name=f"j{k}", **({"axis": (0.0, 1.0, 0.3 * k)} if k else {}))
    model = b.build()
    q = model.random(3)
    q[:3] += far
    contacts = [dl.PointContact(model, f"b{k}", point=(0.1, 0.2 * k, 0.0), normal=(1, k, 2)) for k in range(len(masses))]
    G = dl.DelassusOperator(model, [*contacts, dl.Weld(model, f"b{len(masses) - 1}", "b0")])
    G.update(q)
    return G


@pytest.mark.parametrize(("robots", "boxes"), [(0, 60), (4, 30), (8, 0)])
@pytest.mark.parametrize("size", [1e-6, 1.0])
def test_large_eliminations_go_by_columns(robots, boxes, size):
    """Who touches whom is drawn at random, so that fill makes the elimination a large one, also between links of robots."""
    rng = np.random.default_rng([robots, 4])
    model = dl.scenes.robot_heap(robots, boxes, robot="go2")
    names = list(model.body_names)
    pairs = [rng.choice(len(names), 2, replace=False) for _ in range(4 * len(names))]
    constraints = [
        dl.PointContact(model, names[a], point=rng.uniform(-0.1, 0.1, 3), normal=rng.standard_normal(3), other=names[b], other_point=rng.uniform(-0.1, 0.1, 3), friction=0.5)
        for a, b in pairs
    ]  # fmt: skip
    constraints += [dl.PointContact(model, names[a], point=(0.05, 0, 0), normal=(0, 0, 1), friction=0.5) for a in rng.choice(len(names), 9)]
    G = dl.DelassusOperator(model, constraints)
    couplings = np.array(G._native.couplings)
    assert (np.unique(couplings[:, 0], return_counts=True)[1].astype(float) ** 2).sum() > 1e4
    G.update(model.random(rng))
    solves(G, blocks(constraints, rng, size), rng, columns=(5,))


@pytest.mark.parametrize("masses", [(1e-3, 1e3, 1.0, 1e-2), (1e3, 1e-3, 1e-3, 10.0), (1e-4,), (1.0,) * 12], ids=str)
def test_light_and_heavy_parts(masses):
    rng = np.random.default_rng(3)
    G = uneven(masses)
    size = np.abs(G.to_matrix()).max()
    for share in (1e-9, 1e-4, 1.0):
        solves(G, blocks(G.constraints, rng, share * size), rng, columns=(3,))


def test_far_from_the_origin():
    rng = np.random.default_rng(4)
    near, far = uneven((1.0, 2.0, 0.5)), uneven((1.0, 2.0, 0.5), far=1e3)
    D = blocks(near.constraints, rng)
    solves(far, D, rng)
    y = rng.standard_normal(near.shape[0])
    near.damping = D
    assert np.abs(near.solve(y) - far.solve(y)).max() <= 1e-8 * np.abs(near.solve(y)).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("share", [1e-16, 1e-14, 1e-11])
@pytest.mark.parametrize("name", ["cassie-standing", "box-stack", "go2-standing-friction"])
def test_damping_of_rounding_with_redundant_rows(name, share, dtype):
    """The lemma alone has no digits there: a factor of larger damping, Krylov iterations or a dense factor make up for it."""
    rng = np.random.default_rng(5)
    s = dl.scenes.load(name)
    G = dl.DelassusOperator(s.model, [*s.constraints, *s.constraints], dtype=dtype)
    G.update(np.asarray(s.q, dtype))
    D = blocks(G.constraints, rng, share * np.linalg.norm(G.to_matrix(), 2))
    solves(G, D, rng, columns=(3,))


@pytest.mark.parametrize("share", [1e-13, 1e-3])
def test_constraints_of_many_rows(share):
    rng = np.random.default_rng(19)
    model = dl.load("go2")
    last = model.nbody - 1
    many = dl.LinkConstraint(model, [(last, rng.standard_normal((13, 6))), (1, rng.standard_normal((13, 6)))])
    G = dl.DelassusOperator(model, [dl.PointContact(model, last), many, dl.Weld(model, 1)])
    G.update(model.random(2))
    solves(G, blocks(G.constraints, rng, share * np.linalg.norm(G.to_matrix(), 2)), rng)


@pytest.mark.parametrize("name", ["go2-standing", "cassie-standing", "g1-fallen"])
def test_blocks_that_are_not_positive(name):
    """Skew ones, and ones beyond −G: any D that is invertible and leaves G + D so."""
    rng = np.random.default_rng(6)
    G = scene(name)
    size = np.linalg.norm(G.to_matrix(), 2)
    solves(G, [-d for d in blocks(G.constraints, rng, 10 * size)], rng, columns=(3,))
    turned = []
    for c in G.constraints:
        Q = np.linalg.qr(rng.standard_normal((c.rows, c.rows)))[0]
        turned.append(3 * size * (np.eye(c.rows) if isinstance(c, ON_JOINTS) else Q))
    solves(G, turned, rng, columns=(3,))


def sliding():
    """A point of mass one that slides along x on a body that slides along y."""
    b = dl.ModelBuilder("slides")
    b.add_body("a", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.add_joint("a", "slide", axis=(0.0, 1.0, 0.0))
    b.add_body("b", "a", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.add_joint("b", "slide", axis=(1.0, 0.0, 0.0))
    model = b.build()
    G = dl.DelassusOperator(model, [dl.Connect(model, "b")])
    G.update(model.neutral())
    return G


def test_a_dense_factor_serves_where_a_pivot_vanishes():
    """B_xx = −1 cancels the mass: the elimination divides by zero, and (G + D)⁻¹ exists all the same."""
    G = sliding()
    B = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    A = solves(G, [np.linalg.inv(B)], np.random.default_rng(6))
    assert np.linalg.cond(A) < 100


def test_where_there_is_no_inverse_the_promise_is_kept_or_an_error_says_so():
    """D = −G in the only two directions that move: a huge x may be a solution of a system that differs by rounding."""
    G = sliding()
    D = np.diag([-1.0, -0.5, 1.0])
    G.damping = [D]
    y = np.array([1.0, 2.0, 3.0])
    try:
        x = G.solve(y)
    except dl.errors.InaccurateError:
        return
    residual = np.linalg.norm((G.to_matrix() + D) @ x - y)
    assert residual <= 1e-12 * (np.linalg.norm(x) * max(np.linalg.norm(G.to_matrix(), 2), 1.0) + np.linalg.norm(y))


# ---- identities ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", dl.scenes.names)
def test_diagonal_blocks_are_damping_per_row(name):
    rng = np.random.default_rng(7)
    G = scene(name)
    damping = 10 ** rng.uniform(-3, 0, G.shape[0])
    y = rng.standard_normal((G.shape[0], 3))
    G.damping = damping
    want = G.solve(y)
    assert np.array_equal(G.solve_transposed(y), want)
    ends = np.cumsum([c.rows for c in G.constraints])
    G.damping = [np.diag(damping[end - c.rows : end]) for c, end in zip(G.constraints, ends, strict=True)]
    # each within the promise: what they differ by is that times the condition of G + D
    limit = 2e-12 * (np.linalg.norm(G.to_matrix(), 2) + 1) / damping.min()
    for found in (G.solve(y), G.solve_transposed(y)):
        assert np.abs(found - want).max() <= max(limit, 1e-9) * np.abs(want).max()
        assert np.abs(found - want).max() <= 1e-8 * np.abs(want).max()


@pytest.mark.parametrize("name", ["go2-standing", "cassie-standing-friction", "g1-fallen"])
def test_the_inverse_of_symmetric_blocks_is_symmetric_and_its_adjoint_the_transposed_of_others(name):
    rng = np.random.default_rng(8)
    G = scene(name)
    unit = np.eye(G.shape[0])
    G.damping = blocks(G.constraints, rng, skew=0.0)
    X = G.solve(unit)
    assert np.abs(X - X.T).max() <= 1e-10 * np.abs(X).max()
    assert np.abs(X - G.solve_transposed(unit)).max() <= 1e-10 * np.abs(X).max()
    G.damping = blocks(G.constraints, rng)
    X = G.solve(unit)
    assert np.abs(X - X.T).max() > 1e-3 * np.abs(X).max()
    assert np.abs(X.T - G.solve_transposed(unit)).max() <= 1e-10 * np.abs(X).max()
    u, v = rng.standard_normal((2, G.shape[0]))
    assert abs(u @ (G.inverse @ v) - (G.inverse.H @ u) @ v) <= 1e-10 * np.abs(X).max() * np.linalg.norm(u) * np.linalg.norm(v)
    assert np.array_equal(G.inverse.T @ v, G.solve_transposed(v))


def test_compliance_is_added_to_the_diagonals_of_blocks():
    rng = np.random.default_rng(9)
    G = scene("cassie-standing")
    C = rng.uniform(0.1, 1.0, G.shape[0])
    D = blocks(G.constraints, rng)
    y = rng.standard_normal(G.shape[0])
    plain = G.to_matrix()
    G.damping = D
    G.compliance = C
    A = plain + np.diag(C) + block_diag(*D)
    assert backward(A, G.solve(y), y) <= 1e-12
    assert backward(A.T, G.solve_transposed(y), y) <= 1e-12
    # blocks of zeros are invertible with it
    G.damping = [np.zeros_like(d) for d in D]
    assert backward(plain + np.diag(C), G.solve(y), y) <= 1e-12
    with pytest.raises(ArgumentError, match=r"compliance: expected blocks of damping .* constraint 0 is singular"):
        G.compliance = 0.0
    assert np.array_equal(G.compliance, C)


def test_a_change_equals_a_fresh_operator_to_the_bit():
    rng = np.random.default_rng(10)
    G = scene("g1-fallen-friction")
    D, y = blocks(G.constraints, rng, 1e-2), rng.standard_normal(G.shape[0])
    G.damping = D
    first = G.solve(y)
    G.damping = 1e-3
    plain = G.solve(y)
    G.damping = D
    assert np.array_equal(G.solve(y), first)
    fresh = scene("g1-fallen-friction")
    fresh.damping = 1e-3
    assert np.array_equal(fresh.solve(y), plain)
    # an update takes them along
    s = dl.scenes.load("g1-fallen-friction")
    G.update(s.model.random(1))
    assert not np.array_equal(G.solve(y), first)
    G.update(s.q)
    assert np.array_equal(G.solve(y), first)


def test_contact_solvers_leave_them_as_they_were():
    rng = np.random.default_rng(11)
    s = dl.scenes.load("go2-standing")
    G = scene("go2-standing")
    G.damping = blocks(G.constraints, rng, 1e-2)
    y = rng.standard_normal(G.shape[0])
    want, kept = G.solve(y), G.damping
    for method in ("admm", "newton", "interior"):
        dl.solve_contacts(G, rng.standard_normal(G.shape[0]), s.constraints, method=method)
        assert np.array_equal(G.solve(y), want)
        assert all(np.array_equal(a, b) for a, b in zip(G.damping, kept, strict=True))


# ---- batches ---------------------------------------------------------------------------------------------------------------


def batch(dtype=np.float64, states=11, threads=1):
    model = dl.load("cassie")
    joint = next(n for n, kind in zip(model.joint_names, model.joint_type, strict=True) if kind == "hinge")
    feet = [dl.PointContact(model, foot, normal=(1, 2, 3)) for foot in ("left-foot", "right-foot")]
    constraints = [*dl.DelassusOperator(model, model.loops).constraints, *feet, dl.Weld(model, "left-foot"), dl.JointFriction(model, joint)]
    B = dl.BatchDelassusOperator(model, constraints, states, dtype=dtype, threads=threads)
    Q = np.stack([model.random(k) for k in range(states)]).astype(dtype)
    B.update(Q)
    return B, Q


@pytest.mark.parametrize("columns", [None, 1, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_batch_equals_single_states(dtype, columns):
    rng = np.random.default_rng(12)
    B, Q = batch(dtype)
    n, m = B.batch_size, B.shape[1]
    size = 1e-3 if dtype is np.float64 else 1.0
    each = [blocks(B.constraints, rng, size) for _ in range(n)]
    B.damping = [np.stack(state) for state in zip(*each, strict=True)]
    y = rng.standard_normal((n, m) if columns is None else (n, m, columns)).astype(dtype)
    x, z = B.solve(y), B.solve_transposed(y)
    errors, transposed = B.backward_error(x, y), B.backward_error(z, y, transposed=True)
    G = dl.DelassusOperator(B.model, B.constraints, dtype=dtype)
    for k in range(n):
        G.update(Q[k])
        G.damping = each[k]
        A = dense(G, each[k])
        assert max(backward(A, x[k], y[k]), np.max(errors[k])) <= BACKWARD[dtype]
        assert max(backward(A.T, z[k], y[k]), np.max(transposed[k])) <= BACKWARD[dtype]


@pytest.mark.parametrize("share", [1e-15, 1e-12])
def test_a_batch_with_damping_of_rounding(share):
    rng = np.random.default_rng(13)
    B, _ = batch(states=5)
    size = share * np.linalg.norm(B.to_matrix(), 2, axis=(1, 2)).max()
    D = blocks(B.constraints, rng, size)
    B.damping = D
    y = rng.standard_normal((5, B.shape[1]))
    for A, x, z, b in zip(B.to_matrix(), B.solve(y), B.solve_transposed(y), y, strict=True):
        assert backward(A + block_diag(*D), x, b) <= 1e-12
        assert backward((A + block_diag(*D)).T, z, b) <= 1e-12


def test_blocks_of_a_batch_in_every_form():
    rng = np.random.default_rng(14)
    model = dl.load("go2")
    feet = [dl.PointContact(model, b) for b in range(1, model.nbody) if "calf" in model.body_names[b]]
    B = dl.BatchDelassusOperator(model, feet, 3, threads=2)
    B.update(np.stack([model.random(k) for k in range(3)]))
    y = rng.standard_normal((3, 12))
    D = np.array(blocks(feet, rng))
    found = []
    for value in (D, list(D), np.stack(3 * [D]), [np.stack(3 * [d]) for d in D], [D[0], np.stack(3 * [D[1]]), *D[2:]]):
        B.damping = value
        found.append(B.solve(y))
        assert [d.shape for d in B.damping] == 4 * [(3, 3, 3)]
        assert all(np.array_equal(got, np.stack(3 * [d])) for got, d in zip(B.damping, D, strict=True))
    assert all(np.array_equal(x, found[0]) for x in found)
    again = pickle.loads(pickle.dumps(B))
    assert all(np.array_equal(a, b) for a, b in zip(again.damping, B.damping, strict=True))


# ---- the door --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def feet():
    model = dl.load("go2")
    G = dl.DelassusOperator(model, [dl.PointContact(model, b) for b in range(1, model.nbody) if "calf" in model.body_names[b]])
    G.update(model.neutral())
    return G


def test_damping_is_read_as_it_was_set(feet):
    rng = np.random.default_rng(15)
    D = blocks(feet.constraints, rng)
    for value in (D, tuple(D), np.array(D), [d.tolist() for d in D], np.array(D)[:, ::-1][:, ::-1]):
        feet.damping = value
        assert isinstance(feet.damping, tuple)
        assert all(np.array_equal(got, d) for got, d in zip(feet.damping, D, strict=True))
    feet.damping[0][:] = 0  # a copy
    assert np.array_equal(feet.damping[0], D[0])
    x = feet.solve(np.ones(12))
    for other in (copy.copy(feet), pickle.loads(pickle.dumps(feet)), dl.DelassusOperator(feet.model, feet.constraints, damping=D)):
        assert all(np.array_equal(got, d) for got, d in zip(other.damping, D, strict=True))
        with pytest.raises(StaleError):
            other.solve(np.ones(12))
        other.update(feet.model.neutral())
        assert np.array_equal(other.solve(np.ones(12)), x)
    feet.damping = 1e-3
    assert np.array_equal(feet.damping, np.full(12, 1e-3))
    feet.damping = np.full(12, 1.0)
    assert feet.damping.shape == (12,)


def test_memory_and_words(feet):
    before = feet.nbytes
    feet.damping = np.stack(4 * [np.eye(3)])
    assert feet.nbytes > before
    assert "damped inverse ready" in repr(feet)
    later = feet.nbytes
    feet.solve(np.ones(12))
    feet.damping = np.stack(4 * [2 * np.eye(3)])
    assert feet.nbytes == later


WRONG = {
    "too few": (lambda D: D[:3], ArgumentError, "damping: expected 4 blocks, one per constraint, got 3"),
    "too many": (lambda D: [*D, D[0]], ArgumentError, "damping: expected 4 blocks, one per constraint, got 5"),
    "one array of too many": (lambda D: np.array([*D, D[0]]), ArgumentError, "damping: expected 4 blocks"),
    "shape": (lambda D: [*D[:2], np.eye(2), D[3]], ArgumentError, r"damping\[2\]: expected shape \(3, 3\), .* 3 rows .*, got \(2, 2\)"),
    "not square": (lambda D: [*D[:3], np.ones((3, 2))], ArgumentError, r"damping\[3\]: expected shape \(3, 3\)"),
    "a diagonal among blocks": (lambda D: [D[0], np.ones(3), *D[2:]], ArgumentError, r"damping\[1\]: expected shape \(3, 3\).*got \(3,\)"),
    "one array of other blocks": (lambda D: np.ones((4, 2, 2)), ArgumentError, r"damping\[0\]: expected shape"),
    "four axes": (lambda D: np.ones((1, 4, 3, 3)), ArgumentError, "damping: expected 4 blocks"),
    "a matrix": (lambda D: np.eye(12), ArgumentError, r"damping: expected a scalar or shape \(12,\), got \(12, 12\)"),
    "NaN": (lambda D: [*D[:3], np.full((3, 3), np.nan)], NotFiniteError, r"damping\[3\]: every number must be finite"),
    "infinite": (lambda D: np.array([*D[:3], np.diag([1, 1, np.inf])]), NotFiniteError, "damping: every number must be finite"),
    "complex": (lambda D: [*D[:3], 1j * D[3]], ArgumentTypeError, r"damping\[3\]: expected real numbers"),
    "nothing": (lambda D: [*D[:3], None], ArgumentTypeError, r"damping\[3\]: expected an array, got None"),
    "text": (lambda D: "1e-6", ArgumentTypeError, "damping: expected real numbers"),
    "singular": (
        lambda D: [*D[:1], np.ones((3, 3)), *D[2:]],
        ArgumentError,
        "damping: .* that of constraint 1 is singular .* Add to its diagonal",
    ),
    "zeros": (lambda D: 0 * np.array(D), ArgumentError, "damping: .* that of constraint 0 is singular"),
}


@pytest.mark.parametrize("which", WRONG)
def test_wrong_blocks_are_refused_and_change_nothing(feet, which):
    rng = np.random.default_rng(16)
    D = blocks(feet.constraints, rng)
    feet.damping = D
    want = feet.solve(np.ones(12))
    make, kind, message = WRONG[which]
    with pytest.raises(kind, match=message):
        feet.damping = make(D)
    with pytest.raises(kind, match=message):
        dl.DelassusOperator(feet.model, feet.constraints, damping=make(D))
    assert np.array_equal(feet.solve(np.ones(12)), want)


def test_blocks_of_different_units_are_no_less_invertible(feet):
    feet.damping = np.stack(4 * [np.diag([1e-9, 1.0, 1e9]) @ (np.eye(3) + 0.3 * np.ones((3, 3)))])
    y = np.arange(12.0)
    assert feet.backward_error(feet.solve(y), y) <= 1e-12


def test_rows_on_joints_take_a_diagonal_block():
    b = dl.ModelBuilder("ball")
    b.add_body("a", mass=1.0, inertia=(1.0, 2.0, 3.0))
    b.add_joint("a", "ball", name="ball")
    model = b.build()
    G = dl.DelassusOperator(model, [dl.Connect(model, "a", point=(1, 0, 0)), dl.JointFriction(model, "ball")])
    G.update(model.random(1))
    rng = np.random.default_rng(17)
    D = [*blocks(G.constraints[:1], rng), np.diag([1.0, 2.0, 3.0])]
    solves(G, D, rng)
    D[1][0, 2] = 0.25
    with pytest.raises(
        ArgumentError,
        match=r"damping: rows that act on joints alone take a diagonal block, but that of constraint 1 has 0\.25.* at \[0, 2\]",
    ):
        G.damping = D


def test_who_takes_no_blocks_says_so(feet):
    D = np.stack(4 * [np.eye(3)])
    for kind in (dl.DenseDelassus, dl.CholeskyDelassus):
        with pytest.raises(
            ArgumentError, match=f"damping: {kind.__name__} takes a scalar or shape .12,., got blocks. Use DelassusOperator"
        ):
            kind(feet.model, feet.constraints, damping=D)
        G = kind(feet.model, feet.constraints, damping=1e-3)
        G.update(feet.model.neutral())
        y = np.arange(12.0)
        assert np.array_equal(G.solve_transposed(y), G.solve(y))
    feet.damping = D
    with pytest.raises(ArgumentError, match=r"G: an operational space .* has blocks"):
        dl.OperationalSpace(feet).inertia @ np.ones(12)
    with pytest.raises(ArgumentError, match="G: expected an operator with damping of a number per row, got one with blocks"):
        dl.impact(feet.model, feet.model.neutral(), np.ones(feet.model.nv), feet)


def test_no_constraints():
    model = dl.load("go2")
    G = dl.DelassusOperator(model, [], damping=[])
    G.update(model.neutral())
    assert G.solve(np.zeros(0)).shape == G.solve_transposed(np.zeros(0)).shape == (0,)
    G.damping = np.zeros((0, 3, 3))
    assert G.solve(np.zeros((0, 2))).shape == (0, 2)
    assert G.damping == ()


def test_solve_transposed_takes_what_solve_takes(feet):
    rng = np.random.default_rng(18)
    feet.damping = blocks(feet.constraints, rng)
    y, out = rng.standard_normal((12, 3)), np.empty((12, 3))
    assert feet.solve_transposed(y, out=out) is out
    assert np.array_equal(out, feet.solve_transposed(y))
    assert np.abs(feet.solve_transposed(y, refine=False) - out).max() <= 1e-9 * np.abs(out).max()
    with pytest.raises(dl.errors.InaccurateError):
        feet.solve_transposed(y, tolerance=1e-30)
    with pytest.raises(NotFiniteError, match="y: every number must be finite"):
        feet.solve_transposed(np.full(12, np.nan))
    with pytest.raises(ArgumentError, match=r"y: expected shape \(12,\)"):
        feet.solve_transposed(np.ones(11))
