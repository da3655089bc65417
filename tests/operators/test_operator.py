"""One suite that every operator passes: it is J M⁻¹ Jᵀ of the dense oracle, and its solve inverts it."""

import copy
import json
import pickle
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator, cg, eigsh

import delassus as dl
from delassus.operators import BatchDelassusOperator, CholeskyDelassus, DelassusOperator, DenseDelassus
from oracles import rows, trees
from oracles.compare import agree, relative_error
from oracles.dense import Mechanism

# sums of numbers of one size round at 1e-14; M with a condition up to 1e5
CLOSE = 1e-9
CLOSE_SINGLE = 1e-3
# the same operations in another order of instructions
SAME = 3e-12
# normwise backward error of a solve
BACKWARD, BACKWARD_SINGLE = 1e-12, 3e-5
DAMPING = [1e-10, 1e-8, 1e-6, 1e-3, 1.0, 1e3]
COLUMNS = [1, 2, 7, 64]


@lru_cache(maxsize=8)
def half_inverse(oracle):
    """H with HᵀH = M⁻¹."""
    M = oracle.mass_matrix
    d = np.sqrt(M.diagonal())
    return np.linalg.inv(np.linalg.cholesky(M / np.outer(d, d))) / d


class Case:
    """A mechanism in a state and constraints on it, seen by the dense oracle."""

    kind = DelassusOperator  # which operator is tested on it

    def __init__(self, oracle, made):
        self.oracle, self.model, self.q, self.made = oracle, oracle.model, oracle.q, made
        self.constraints = [m.constraint for m in made]
        self.rng = np.random.default_rng(7)
        self.half = half_inverse(oracle)
        terms = [m.terms(oracle) for m in made]
        empty = np.zeros((0, self.model.nv))
        self.J = np.vstack([empty, *(sum(t) for t in terms)])
        # largest that a row can be: the sum of what its terms are
        self.row_size = np.concatenate([[], *(sum(np.abs(t).max(axis=1, initial=0.0) for t in ts) for ts in terms)])
        self.size = np.concatenate([[], *(sum(np.linalg.norm(t @ self.half.T, axis=1) for t in ts) for ts in terms)])
        HJ = self.half @ self.J.T
        self.G, self.m = HJ.T @ HJ, len(self.J)

    @property
    def scale(self):
        return self.size.max(initial=0.0) ** 2

    @cached_property
    def norm(self):
        """‖G‖."""
        return np.linalg.eigvalsh(self.G)[-1] if self.m else 0.0

    @property
    def condition(self):
        """That of M, its diagonal scaled to one."""
        M = self.oracle.mass_matrix
        d = np.sqrt(M.diagonal())
        return np.linalg.cond(M / np.outer(d, d)) if self.model.nv else 1.0

    def operator(self, q=None, **options):
        G = self.kind(self.model, self.constraints, **options)
        G.update(self.q if q is None else q)
        return G

    def backward(self, x, y, damping, G=None):
        """‖(G + ε) x − y‖ / (‖G + ε‖ ‖x‖ + ‖y‖), the worst of the columns; of ‖G + ε‖ what it is at least."""
        x, y = (np.asarray(a, float).reshape(self.m, a.shape[1] if a.ndim == 2 else 1) for a in (x, y))
        norm = max(self.norm + np.min(damping, initial=np.inf), np.max(damping, initial=0.0)) if self.m else 0.0
        residual = np.linalg.norm((self.G if G is None else G) @ x + np.multiply(np.reshape(damping, (-1, 1)), x) - y, axis=0)
        return relative_error(residual, np.zeros_like(residual), norm * np.linalg.norm(x, axis=0) + np.linalg.norm(y, axis=0))


# ---- cases ---------------------------------------------------------------------------------------------------------------

MODELS = {name: lambda name=name: dl.load(name) for name in dl.embedded_names()} | {
    "chain": lambda: dl.scenes.chain(20), "binary_tree": lambda: dl.scenes.binary_tree(4), "swimmer": lambda: dl.scenes.swimmer(8),
    "four_bar": lambda: dl.scenes.four_bar(), "n_four_bar": lambda: dl.scenes.n_four_bar(5), "box_stack": lambda: dl.scenes.box_stack(5),
    "box_pyramid": lambda: dl.scenes.box_pyramid(2),
}  # fmt: skip


@lru_cache(maxsize=8)
def standing(name):
    if name in dl.scenes.names:
        scene = dl.scenes.load(name)
        return Mechanism(scene.model, scene.q)
    model = MODELS[name]()
    return Mechanism(model, model.random(3))


def ancestors(model, body):
    while body:
        body = int(model.body_parent[body])
        yield body


def jointless(model):
    return [b for b in range(1, model.nbody) if b not in model.joint_body]


def loops(model):
    """The loops that the model's file declares."""
    for loop in model.loops:
        if isinstance(loop, dl.model.JointLoop):
            yield rows.joint_coupling(model, loop.joint, loop.other, polynomial=loop.polynomial)
        else:
            make = rows.connect if isinstance(loop, dl.model.ConnectLoop) else rows.weld
            yield make(model, loop.body, loop.other, point=np.array(loop.point), other_point=np.array(loop.other_point))


def stored(name):
    """The constraints of a scene as it is loaded; their rows by the definition of what its file holds."""
    scene, model = dl.scenes.load(name), standing(name).model
    file = json.loads((Path(dl.__file__).parent / "assets" / "scenes" / f"{name}.json").read_text())
    made = [*loops(model), *(rows.point_contact(model, **contact) for contact in file["contacts"])]
    made += [rows.joint_friction(model, joint, friction) for joint, friction in file["joint_friction"].items()]
    return [rows.Made(c, m.terms) for c, m in zip(scene.constraints, made, strict=True)]


def between(rng, model, pairs, kinds=tuple(rows.BETWEEN)):
    return [rows.random_constraint(rng, model, kind, pair) for pair in pairs for kind in kinds]


def descent(rng, model):
    """A deep body and bodies above it."""
    body = max(range(model.nbody), key=lambda b: len(list(ancestors(model, b))))
    return [(body, a) for a in list(ancestors(model, body))[:3]] + [(a, body) for a in list(ancestors(model, body))[-3:]]


def any_body(rng, model):
    return int(rng.integers(model.nbody))


def mixture(rng, model, repeats=1):
    return [rows.random_constraint(rng, model, kind) for kind in rows.possible(model) for _ in range(repeats)]


def itself(rng, model):
    """A point of a body and the same point: rows of zero, among others that are not."""
    body, point = any_body(rng, model), rng.uniform(-0.5, 0.5, 3)
    same = {"point": point, "other_point": point}
    return [
        rows.weld(model, body, body, **same),
        rows.connect(model, model.nbody - 1, **same),
        rows.hinge(model, body, body, axis=point, **same),
    ]


LISTS = {kind: lambda rng, model, kind=kind: [rows.random_constraint(rng, model, kind)] for kind in (*rows.BETWEEN, *rows.OF_MODEL)} | {
    "mixture": lambda rng, model: [*loops(model), *mixture(rng, model)],
    "mixture shuffled": lambda rng, model: list(rng.permutation(np.array(mixture(rng, model, 2), dtype=object))),
    "repeated": lambda rng, model: 2 * [*loops(model), *mixture(rng, model)],
    "ancestor": lambda rng, model: between(rng, model, descent(rng, model)),
    "same body": lambda rng, model: between(rng, model, [(b := any_body(rng, model), b), (model.nbody - 1, model.nbody - 1)]),
    "one pair": lambda rng, model: between(rng, model, 3 * [(model.nbody - 1, model.nbody // 2)]),
    "fused": lambda rng, model: between(rng, model, [*((b, int(model.body_parent[b])) for b in jointless(model)[:4]), (jointless(model)[-1], None)]),
    "itself": itself,
    "world": lambda rng, model: between(rng, model, [(0, 0), (0, None)]),
    "world and body": lambda rng, model: between(rng, model, [(0, model.nbody - 1)]),
    "none": lambda rng, model: [],
}  # fmt: skip


def listed(name, which):
    """A list of constraints on a mechanism; on a scene, beside what touches there."""
    oracle = standing(name)
    rng = np.random.default_rng([len(name), len(which), oracle.model.nv])
    there = stored(name) if name in dl.scenes.names else []
    return Case(oracle, there + LISTS[which](rng, oracle.model))


def fits(model, which):
    return jointless(model) if which == "fused" else which in rows.possible(model) or which not in rows.OF_MODEL


def plan(rng, bodies, chain):
    """Random (parent, joints, massless); parents near for chains."""
    out = []
    for k in range(bodies):
        parent = k - 1 if rng.random() < chain else int(rng.integers(-1, k))
        kinds = [j for j in trees.JOINTS if parent < 0 or "free" not in j]
        out.append((parent, kinds[rng.integers(len(kinds))], rng.random() < 0.25))
    return out


def tree(seed):
    """A random tree with random loops and constraints on many bodies."""
    rng = np.random.default_rng([seed, 1])
    oracle = trees.mechanism(plan(rng, 1 + int(rng.integers(14)), rng.random()), [seed, 2])
    kinds = rows.possible(oracle.model)
    return Case(oracle, [rows.random_constraint(rng, oracle.model, kinds[k]) for k in rng.integers(len(kinds), size=1 + rng.integers(10))])


def web(seed):
    """Loops within loops: bodies closed end to end from outside in, each to the next but two, and all to one."""
    rng = np.random.default_rng([seed, 3])
    n = 4 + int(rng.integers(10))
    oracle = trees.mechanism(plan(rng, n, [1.0, 0.7, 0.0][seed % 3]), [seed, 4])
    nested = [(k, n + 1 - k) for k in range(1, 1 + n // 2)]
    crossed = [(k, k + 3) for k in range(1, n - 2)]
    star = [(1 + n // 2, k) for k in range(0, n + 1, 2)]
    closing = [nested, crossed, star, nested + crossed, nested + star, nested + crossed + star][seed % 6]
    kinds = ["connect", "weld", "hinge", "distance", "links"]
    return Case(oracle, [rows.random_constraint(rng, oracle.model, str(rng.choice(kinds)), pair) for pair in closing])


def far():
    """Two free robots and an arm a kilometre away."""
    builder = dl.ModelBuilder("far")
    for name, prefix in (("go2", "a_"), ("g1", "b_"), ("iiwa", "c_")):
        builder.add_model(dl.load(name), prefix=prefix, position=(1e3, -700.0, 300.0))
    model = builder.build()
    q = model.random(4)
    for j in np.flatnonzero(np.array(model.joint_type) == "free"):
        q[model.joint_qadr[j] :][:3] += (1e3, -700.0, 300.0)
    rng = np.random.default_rng(5)
    return Case(Mechanism(model, q), [made for made in mixture(rng, model, 2)])


def rigid():
    """Nothing moves."""
    builder = dl.ModelBuilder("rigid")
    builder.add_body("a", position=(0.1, 0.2, 0.3), mass=1.0, inertia=(1.0, 1.0, 1.0))
    builder.add_body("b", "a", position=(0.1, 0.2, 0.3))
    model = builder.build()
    return Case(Mechanism(model, model.neutral()), between(np.random.default_rng(6), model, [(1, 2), (2, None), (1, 1)]))


MECHANISMS = {name: make() for name, make in MODELS.items()} | {name: dl.scenes.model_of(name) for name in dl.scenes.names}
CASES = {
    f"{name}-{which}": lambda n=name, w=which: listed(n, w) for name, model in MECHANISMS.items() for which in LISTS if fits(model, which)
}
CASES |= {f"tree-{seed}": lambda s=seed: tree(s) for seed in range(500)} | {f"web-{seed}": lambda s=seed: web(s) for seed in range(200)}
CASES |= {"far": far, "rigid": rigid}


# every operator: the matrix-free one on all cases, those that keep matrices on every eighth with few enough rows to keep
KINDS = {"": DelassusOperator, "dense": DenseDelassus, "cholesky": CholeskyDelassus}
MANY_ROWS = 300


@pytest.fixture(
    scope="module",
    params=[*((name, "") for name in CASES), *((name, kind) for kind in list(KINDS)[1:] for name in list(CASES)[::8])],
    ids=lambda p: "-".join(filter(None, p)),
)
def one_of_all(request):
    name, kind = request.param
    case = CASES[name]()
    case.kind = KINDS[kind]
    if kind and case.m > MANY_ROWS:
        pytest.skip("more rows than one would keep a matrix for")
    return case


@pytest.fixture
def case(one_of_all):
    one_of_all.rng = np.random.default_rng(7)  # whatever ran before
    return one_of_all


# ---- what holds for all --------------------------------------------------------------------------------------------------


@pytest.mark.sampled
def test_operator_is_the_dense_product_for_any_number_of_columns(case):
    G = case.operator()
    assert G.shape == (case.m, case.m)
    agree(G.to_matrix(), case.G, CLOSE, case.scale)
    agree(G @ (x := case.rng.standard_normal(case.m)), case.G @ x, CLOSE, case.scale * np.abs(x).sum())
    for k in COLUMNS:
        X = case.rng.standard_normal((case.m, k))
        agree(G @ X, case.G @ X, CLOSE, case.scale * np.abs(X).sum(axis=0))
        # symmetric: ⟨Y, G X⟩ = ⟨G Y, X⟩
        Y = case.rng.standard_normal((case.m, k))
        agree(np.sum(Y * (G @ X)), np.sum((G @ Y) * X), CLOSE, case.scale * np.sum(np.abs(X).sum(axis=0) * np.abs(Y).sum(axis=0)))
    C = case.rng.uniform(0, 1, case.m)
    agree(case.operator(compliance=C).to_matrix(), case.G + np.diag(C), CLOSE, case.scale + 1)


@pytest.mark.sampled
def test_jacobian_is_the_dense_one_and_adjoint_and_mass_inverse_inverts(case):
    G, nv = case.operator(), case.model.nv
    J, M_inverse = G.jacobian, G.mass_inverse
    assert (J.shape, M_inverse.shape) == ((case.m, nv), (nv, nv))
    size = np.maximum(case.row_size[:, None], case.row_size.max(initial=0.0) * 1e-3)
    agree(J @ np.eye(nv), case.J, CLOSE, size)
    agree((J.H @ np.eye(case.m)).T, case.J, CLOSE, size)
    v, f = case.rng.standard_normal(nv), case.rng.standard_normal(case.m)
    agree(f @ (J @ v), (J.H @ f) @ v, CLOSE, case.row_size @ np.abs(f) * np.abs(v).sum())
    want = case.half.T @ case.half
    d = np.sqrt(want.diagonal())
    agree(M_inverse @ np.eye(nv), want, CLOSE, np.outer(d, d))


@pytest.mark.sampled
def test_solve_inverts_whatever_the_damping(case):
    G = case.operator(damping=1.0)
    scattered = 10 ** case.rng.uniform(-6, 1, case.m)
    for damping in (*DAMPING, scattered):
        G.damping = damping
        for k in COLUMNS if np.ndim(damping) or damping == 1e-6 else [1]:
            y = case.rng.standard_normal((case.m, k))
            x = G.solve(y)
            assert x.shape == y.shape
            error = case.backward(x, y, damping)
            assert error <= BACKWARD, f"backward error {error:.2g} of {k} columns at damping {damping}"
        y = case.J @ case.rng.standard_normal(case.model.nv)  # in the range of G
        assert case.backward(G.solve(y), y, damping) <= BACKWARD


@pytest.mark.sampled
def test_a_change_equals_a_fresh_operator_to_the_bit(case):
    y = case.rng.standard_normal((case.m, 3))
    C = case.rng.uniform(0, 1e-2, case.m)
    G = case.operator(damping=1e-3)
    first = G.solve(y), G @ y
    assert all(map(np.array_equal, first, (G.solve(y), G @ y)))
    elsewhere = case.model.random(9)
    G.update(elsewhere)
    G.damping, G.compliance = 1e-5, C
    fresh = case.operator(elsewhere, damping=1e-5, compliance=C)
    assert np.array_equal(G @ y, fresh @ y)
    assert np.array_equal(G.solve(y), fresh.solve(y))
    G.update(case.q)
    G.damping, G.compliance = 1e-3, 0.0
    assert all(map(np.array_equal, first, (G.solve(y), G @ y)))


@pytest.mark.sampled
def test_a_batch_equals_single_states(case):
    q = np.stack([case.q, case.model.random(10), case.model.random(11)])
    damping = 10 ** case.rng.uniform(-6, 1, (len(q), case.m))
    B = BatchDelassusOperator(case.model, case.constraints, len(q), damping=damping, threads=2)
    B.update(q)
    for k in (1, 2, 7):
        X = case.rng.standard_normal((len(q), case.m, k))
        product, solution = B @ X, B.solve(X)
        assert np.array_equal(product, B @ X)
        assert np.array_equal(solution, B.solve(X))
        error = case.backward(solution[0], X[0], damping[0])
        assert error <= BACKWARD, f"backward error {error:.2g} of {k} columns"
        for x, y, state in zip(X, product, q, strict=True):
            # two orders of elimination: what M is conditioned to, they may differ by; a matrix is made another way altogether
            same = SAME if case.kind is DelassusOperator else CLOSE
            agree(y, case.operator(state) @ x, max(same, 2e-16 * case.condition), np.abs(y).max(initial=0.0))


@pytest.mark.sampled
def test_single_precision_keeps_its_digits(case):
    # no less than 1e5 below ‖G‖: the lemma squares what single precision has
    damping = max(1e-2, 1e-5 * case.norm)
    G = case.operator(damping=damping, dtype=np.float32)
    assert G.to_matrix().dtype == np.float32
    # single precision rounds at 6e-8
    agree(G.to_matrix(), case.G, max(CLOSE_SINGLE, 6e-8 * case.condition), case.scale)
    for k in (1, 9):
        y = case.rng.standard_normal((case.m, k))
        x = G.solve(y)
        assert x.dtype == np.float32
        error = case.backward(x, y, damping, G.to_matrix().astype(float))
        assert error <= BACKWARD_SINGLE, f"backward error {error:.2g}"


# ---- how it is used ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=KINDS.values(), ids=lambda kind: kind.__name__)
def robot(request):
    case = listed("cassie", "mixture")
    case.kind = request.param
    return case


def test_scipy_solves_with_it(robot):
    G = robot.operator(damping=1e-2)
    y = robot.rng.standard_normal(robot.m)
    damped = G + aslinearoperator(1e-2 * np.eye(robot.m))
    x, info = cg(damped, y, rtol=1e-12, maxiter=10000)
    assert info == 0
    agree(x, G.solve(y), 1e-6)
    x, info = cg(damped, y, rtol=1e-10, M=G.inverse, maxiter=5)
    assert info == 0
    agree(x, G.solve(y), 1e-8)
    values = np.linalg.eigvalsh(robot.G)
    agree(np.sort(eigsh(G, k=3, return_eigenvectors=False)), values[-3:], CLOSE)
    # the smallest, by way of the inverse
    agree(1 / eigsh(G.inverse, k=1, return_eigenvectors=False)[0] - 1e-2, values[0], CLOSE, values[-1])


def test_scipy_algebra_holds(robot):
    G = robot.operator(damping=1e-2)
    x, X = robot.rng.standard_normal(robot.m), robot.rng.standard_normal((robot.m, 3))
    for same in (G * x, G.dot(x), G.matvec(x), G.rmatvec(x), G.H @ x, G.T @ x, G @ x.tolist()):
        assert np.array_equal(same, G @ x)
    for same in (G * X, G.dot(X), G.matmat(X), G.rmatmat(X), G.T @ X, G @ np.asfortranarray(X), G @ np.repeat(X, 2, axis=1)[:, ::2]):
        assert np.array_equal(same, G @ X)
    assert np.array_equal(G.inverse @ X, G.solve(X))
    agree((2 * G - G) @ x, G @ x, 1e-14)
    agree(G.jacobian @ (G.mass_inverse @ (G.jacobian.H @ x)), G @ x, 1e-12)


def test_results_go_where_told(robot):
    G = robot.operator(damping=1e-2)
    for y in (robot.rng.standard_normal(robot.m), robot.rng.standard_normal((robot.m, 9))):
        product, solution = np.empty_like(y), np.empty_like(y)
        assert (G.matvec if y.ndim == 1 else G.matmat)(y, out=product) is product
        assert G.solve(y, out=solution) is solution
        assert np.array_equal(product, G @ y)
        assert np.array_equal(solution, G.solve(y))


def test_no_columns_give_no_columns(robot):
    G = robot.operator(damping=1e-2)
    assert (G @ np.empty((robot.m, 0))).shape == (robot.m, 0)
    assert G.solve(np.empty((robot.m, 0))).shape == (robot.m, 0)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.__name__)
def test_no_constraints_make_an_empty_operator(kind):
    case = listed("go2", "none")
    case.kind = kind
    G = case.operator(damping=1e-6)
    assert G.shape == (0, 0)
    assert (G @ np.empty(0)).shape == G.solve(np.empty(0)).shape == (0,)
    assert (G @ np.empty((0, 5))).shape == G.solve(np.empty((0, 5))).shape == (0, 5)
    assert (G.jacobian @ np.ones(case.model.nv)).shape == (0,)
    assert not (G.jacobian.H @ np.empty(0)).any()
    assert (G.fill, G.to_matrix().shape) == (0, (0, 0))


def test_an_unrefined_solve_is_right_where_damping_is_large(robot):
    G = robot.operator(damping=1.0)
    y = robot.rng.standard_normal(robot.m)
    agree(G.solve(y, refine=False), G.solve(y), 1e-9)


@pytest.mark.parametrize("again", [lambda G: pickle.loads(pickle.dumps(G)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_a_pickled_or_copied_operator_is_the_same_after_update(robot, again):
    G = robot.operator(damping=robot.rng.uniform(0.1, 1, robot.m), compliance=0.5)
    other = again(G)
    y = robot.rng.standard_normal(robot.m)
    with pytest.raises(dl.errors.StaleError):
        other @ y
    other.update(robot.q)
    assert np.array_equal(other @ y, G @ y)
    assert np.array_equal(other.solve(y), G.solve(y))
    assert np.array_equal(other.damping, G.damping)
    # G itself is untouched by the other
    other.update(robot.model.random(1))
    assert not np.array_equal(other @ y, G @ y)


def test_every_joint_is_eliminated_once(robot):
    G = robot.operator()
    assert sorted(G.order) == sorted(robot.model.joint_names)
    assert G.fill > 0
    assert G.nbytes > 8 * robot.model.nv


def test_ground_contacts_need_no_couplings():
    model = dl.load("go2")
    G = DelassusOperator(model, [dl.constraints.PointContact(model, b) for b in range(1, model.nbody)])
    assert G.fill == 0


def test_loops_of_the_model_are_constraints():
    case = Case(standing("cassie"), list(loops(standing("cassie").model)))
    G = DelassusOperator(case.model, case.model.loops)
    G.update(case.q)
    assert np.array_equal(G.to_matrix(), case.operator().to_matrix())
