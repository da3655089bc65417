"""Operational space: inertia, pseudo-inverse and null space are those of the dense definitions, at singularities too."""

import pickle

import numpy as np
import pytest

import delassus as dl
from oracles import cases, closed
from oracles.compare import agree

NAMES = [*cases.MODELS, *cases.RANDOM]


def seen(name, kinds, damping, iterations=1):
    case = cases.case(name, kinds)
    case = closed.Closed(case.oracle, case.made, case.rng)
    G = dl.DelassusOperator(case.model, case.constraints, damping=damping)
    G.update(case.q)
    return case, G, dl.OperationalSpace(G, iterations=iterations)


def dense(case, damping, iterations):
    """Λ of some proximal iterations, J̄ and N."""
    m = len(case.J)
    inverse = np.linalg.inv(case.G + damping * np.eye(m))
    inertia = inverse
    for _ in range(iterations - 1):
        inertia = inertia + inverse @ (np.eye(m) - case.G @ inertia)
    bar = np.linalg.solve(case.M, case.J.T @ inertia)
    return inertia, bar, np.eye(case.model.nv) - bar @ case.J


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("kinds", ["contacts", "redundant"])
@pytest.mark.parametrize("name", NAMES)
def test_operators_are_the_dense_ones(name, kinds, iterations):
    case, _, space = seen(name, kinds, 1e-2, iterations)
    n, m = case.model.nv, len(case.J)
    inertia, bar, null = dense(case, 1e-2, iterations)
    assert (space.inertia.shape, space.pseudo_inverse.shape, space.null_space.shape) == ((m, m), (n, m), (n, n))
    for got, want, size in ((space.inertia, inertia, 0.0), (space.pseudo_inverse, bar, 0.0), (space.null_space, null, 1.0)):
        x, y = case.rng.standard_normal((want.shape[1], 3)), case.rng.standard_normal((want.shape[0], 3))
        # N is one minus something of its size
        scale = max(np.abs(want).max(), size)
        agree(got @ x, want @ x, 1e-7, scale)
        agree(got @ x[:, 0], want @ x[:, 0], 1e-7, scale)
        agree(got.H @ y, want.T @ y, 1e-7, scale)
        agree(got.H @ y[:, 0], want.T @ y[:, 0], 1e-7, scale)


@pytest.mark.parametrize("name", NAMES)
def test_projector_projects_as_damping_vanishes(name):
    """N N = N and J N = 0; what N leaves moves with the rest by no inertia: J̄ᵀ M N = 0."""
    case, G, space = seen(name, "redundant", 1.0, 4)
    G.damping = 1e-9 * np.linalg.eigvalsh(case.G)[-1]
    v = case.rng.standard_normal((case.model.nv, 2))
    N = space.null_space
    once = N @ v
    size = np.abs(v).max() * max(1.0, np.abs(case.J).max())
    agree(case.J @ once, 0 * (case.J @ v), 1e-7, size)
    agree(N @ once, once, 1e-6, np.abs(v).max())
    agree(once, case.projector @ v, 1e-6, np.abs(v).max())
    # the parts are orthogonal in the metric of M
    agree((v - once).T @ case.M @ once, np.zeros((2, 2)), 1e-7, np.abs(np.diag(v.T @ case.M @ v)).max())
    # forces that do not accelerate the rows
    tau = case.rng.standard_normal(case.model.nv)
    agree(
        case.J @ np.linalg.solve(case.M, N.H @ tau),
        0 * (case.J @ tau),
        1e-6,
        np.abs(np.linalg.solve(case.M, tau)).max() * max(1.0, np.abs(case.J).max()),
    )


@pytest.mark.parametrize("damping", [1e-2, 1e-4])
def test_damping_shows_as_it_should(damping):
    """‖J N‖ falls like (ε / (σ + ε))^iterations on each eigenvector of G."""
    case, G, _ = seen("g1", "contacts", damping)
    sigma, vectors = np.linalg.eigh(case.G)
    for iterations in (1, 2, 5):
        space = dl.OperationalSpace(G, iterations=iterations)
        for k in (0, len(sigma) // 2, -1):
            left = vectors[:, k] @ (G @ (space.inertia @ vectors[:, k]))
            agree(1 - left, (damping / (max(sigma[k], 0.0) + damping)) ** iterations, 1e-6, 1.0)


@pytest.mark.parametrize("name", closed.NAMED)
def test_loops_at_singular_positions_have_their_projector(name):
    case = closed.named(name, 1)
    G = dl.DelassusOperator(case.model, case.model.loops, damping=1e-9)
    G.update(case.q)
    space = dl.OperationalSpace(G, iterations=3)
    agree(space.null_space @ np.eye(case.model.nv), case.projector, 1e-6, 1.0)
    # bounded where G is not invertible
    assert np.linalg.norm(space.inertia @ np.eye(G.shape[0]), 2) <= 3 * (1 + 1e-6) / 1e-9


def test_pseudo_inverse_gives_the_velocity_of_least_energy():
    case, G, _ = seen("iiwa", "contacts", 1e-9)
    G = dl.DelassusOperator(case.model, [dl.Weld(case.model, case.model.nbody - 1)], damping=1e-10)
    G.update(case.q)
    space = dl.OperationalSpace(G, iterations=2)
    wanted = case.rng.standard_normal(6)
    v = space.pseudo_inverse @ wanted
    agree(G.jacobian @ v, wanted, 1e-8)
    other = v + space.null_space @ case.rng.standard_normal(case.model.nv)
    agree(G.jacobian @ other, wanted, 1e-8)
    assert v @ case.M @ v < other @ case.M @ other


def test_it_follows_its_operator():
    model = dl.load("iiwa")
    G = dl.DelassusOperator(model, [dl.Connect(model, model.nbody - 1)])
    space = dl.OperationalSpace(G)
    inertia = space.inertia
    assert space.operator is G
    with pytest.raises(dl.errors.StaleError):
        inertia @ np.ones(3)
    G.damping = 1e-3
    for seed in (1, 2):
        G.update(model.random(seed))
        assert np.array_equal(inertia @ np.ones(3), G.solve(np.ones(3)))
        for _ in range(5):  # without a matrix, then with one
            np.testing.assert_allclose(inertia @ np.ones(3), G.inverse @ np.ones(3), rtol=1e-10)
    for damping in (1e-2, 1e-3):
        G.damping = damping
        np.testing.assert_allclose(inertia @ np.ones(3), G.solve(np.ones(3)), rtol=1e-10)
    G.compliance = 0.5
    np.testing.assert_allclose(inertia @ np.ones(3), G.solve(np.ones(3)), rtol=1e-10)


@pytest.mark.parametrize("columns", [None, 1, 3, 8, 19, 64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["iiwa", "go2", "g1"])
def test_products_are_those_of_dense_matrices_however_many_are_asked_for(name, dtype, columns):
    """The first products are made without a matrix, later ones with one: all agree, and with NumPy on our own matrices."""
    model = dl.load(name)
    q = np.asarray(model.random(3), dtype)
    tips = [dl.PointContact(model, b) for b in range(1, model.nbody) if b not in model.body_parent[1:]]
    G = dl.DelassusOperator(model, tips, damping=1e-2, dtype=dtype)
    G.update(q)
    n, m = model.nv, G.shape[0]
    J, minv = G.jacobian @ np.eye(n), dl.mass_matrix_inverse(model, q.astype(float))
    inertia = np.linalg.inv(J @ minv @ J.T + 1e-2 * np.eye(m))
    bar = minv @ J.T @ inertia
    space = dl.OperationalSpace(G)
    rng = np.random.default_rng(0)
    tolerance = 1e-10 if dtype == np.float64 else 2e-3
    maps = ((space.inertia, inertia), (space.pseudo_inverse, bar), (space.null_space, np.eye(n) - bar @ J))
    for got, want in maps:
        for operator, matrix in ((got, want), (got.H, want.T)):
            x = rng.standard_normal((matrix.shape[1], columns) if columns else matrix.shape[1]).astype(dtype)
            for _ in range(m if columns is None else 3):
                assert (operator @ x).dtype == dtype
                agree(operator @ x, matrix @ x, tolerance, np.abs(matrix @ x).max())


def test_it_can_be_copied_and_refuses_what_does_not_fit():
    model = dl.load("iiwa")
    G = dl.DelassusOperator(model, [dl.Connect(model, model.nbody - 1)], damping=1e-3)
    space = pickle.loads(pickle.dumps(dl.OperationalSpace(G, iterations=2)))
    with pytest.raises(dl.errors.StaleError):
        space.null_space @ np.ones(7)
    space.operator.update(model.random(1))
    for operator in (space.inertia, space.null_space, space.pseudo_inverse, space.pseudo_inverse.H):
        for bad in (np.ones(operator.shape[1] + 1), np.ones((2, 2, 2)), np.full(operator.shape[1], np.nan), ["a"] * operator.shape[1]):
            with pytest.raises(dl.errors.DelassusError, match=r"^x: "):
                operator @ bad
    undamped = dl.DelassusOperator(model, [dl.Connect(model, model.nbody - 1)])
    undamped.update(model.random(1))
    with pytest.raises(dl.errors.ArgumentError, match="damping"):
        dl.OperationalSpace(undamped).inertia @ np.ones(3)


def test_no_rows_leave_everything_in_the_null_space():
    model = dl.scenes.chain(1)
    G = dl.DelassusOperator(model, [], damping=1.0)
    G.update([0.3])
    space = dl.OperationalSpace(G)
    assert np.array_equal(space.null_space @ np.array([2.0]), [2.0])
    assert (space.inertia @ np.zeros(0)).shape == (0,)
    assert np.array_equal(space.pseudo_inverse @ np.zeros(0), [0.0])
