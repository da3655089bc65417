"""A batch gives, state by state, what the operator of one state gives; the oracle of that one is dense."""

import os
import pickle

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, QuaternionError, SingularError, StaleError


def mixture(model):
    """Contacts, a loop across the robot, a shared body, joint rows, and the centre of mass."""
    rng = np.random.default_rng(5)
    bodies = model.body_names[1:]
    last, middle = bodies[-1], bodies[len(bodies) // 2]
    joints = [name for name, kind in zip(model.joint_names, model.joint_type, strict=True) if kind in ("hinge", "slide")]
    contacts = [dl.PointContact(model, body, point=rng.standard_normal(3), normal=rng.standard_normal(3)) for body in (last, middle, last)]
    loops = [dl.Connect(model, last, middle, point=rng.standard_normal(3)), dl.Distance(model, last, bodies[0], point=(1, 2, 3))]
    rest = [
        dl.JointFriction(model, joints[0]),
        dl.JointCoupling(model, joints[0], joints[-1], polynomial=(0, 2, 1, 0, 0.5)),
        dl.CenterOfMass(model),
    ]
    return [*model.loops, *contacts, *loops, *rest]


def states(model, batch, dtype=np.float64):
    rng = np.random.default_rng(3)
    return np.stack([model.random(rng) for _ in range(batch)]).astype(dtype)


CASES = [(name, batch) for name in ("go2", "cassie", "iiwa") for batch in (1, 3, 8, 17)]


@pytest.mark.parametrize(("name", "batch"), CASES)
@pytest.mark.parametrize("columns", [None, 1, 5])
def test_batch_equals_single_states(name, batch, columns):
    model = dl.load(name)
    constraints, q = mixture(model), states(model, batch)
    B = dl.BatchDelassusOperator(model, constraints, batch)
    m = B.shape[1]
    rng = np.random.default_rng(1)
    damping = 10.0 ** rng.uniform(-6, 0, (batch, m))
    x = rng.standard_normal((batch, m) if columns is None else (batch, m, columns))
    B.damping = damping
    B.update(q)
    y, solved = B @ x, B.solve(x)
    assert y.shape == solved.shape == x.shape
    G = dl.DelassusOperator(model, constraints)
    for s in range(batch):
        G.damping = damping[s]
        G.update(q[s])
        expected = G @ x[s]
        assert np.abs(y[s] - expected).max() <= 1e-12 * np.abs(expected).max()
        # a solution is as good as its condition lets it be: compare what both leave
        dense = G.to_matrix() + np.diag(damping[s])
        size = np.linalg.norm(dense, 2) * np.linalg.norm(solved[s]) + np.linalg.norm(x[s])
        assert np.linalg.norm(dense @ solved[s] - x[s]) <= 1e-12 * size


def test_single_precision_keeps_its_digits():
    model = dl.load("go2")
    constraints, q = mixture(model), states(model, 5, np.float32)
    B = dl.BatchDelassusOperator(model, constraints, 5, damping=1.0, dtype=np.float32)
    B.update(q)
    wide = dl.BatchDelassusOperator(model, constraints, 5, damping=1.0)
    wide.update(np.stack([dl.normalize(model, row) for row in q.astype(np.float64)]))
    x = np.random.default_rng(0).standard_normal((5, B.shape[1])).astype(np.float32)
    assert (B @ x).dtype == np.float32
    assert np.abs(B @ x - wide @ x).max() <= 1e-4 * np.abs(wide @ x).max()
    # judged by what is left, since G is worse conditioned than single precision has digits
    dense, solved = wide.to_matrix() + np.eye(B.shape[1]), B.solve(x).astype(np.float64)
    for A, a, b in zip(dense, solved, x, strict=True):
        assert np.linalg.norm(A @ a - b) <= 1e-4 * (np.linalg.norm(A, 2) * np.linalg.norm(a) + np.linalg.norm(b))


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_threads_change_no_bit(threads):
    model = dl.load("cassie")
    constraints, q = mixture(model), states(model, 37)
    one, many = (dl.BatchDelassusOperator(model, constraints, 37, damping=1e-4, threads=t) for t in (1, threads))
    x = np.random.default_rng(0).standard_normal((37, one.shape[1]))
    for B in (one, many):
        B.update(q)
    assert np.array_equal(one @ x, many @ x)
    assert np.array_equal(one.solve(x), many.solve(x))


def test_matrices_symmetric_and_out_filled():
    model = dl.load("iiwa")
    B = dl.BatchDelassusOperator(model, mixture(model), 3, compliance=0.5)
    B.update(states(model, 3))
    G = B.to_matrix()
    assert np.abs(G - G.swapaxes(1, 2)).max() <= 1e-12 * np.abs(G).max()
    x, out = np.ones((3, B.shape[1])), np.empty((3, B.shape[1]))
    assert B.matvec(x, out=out) is out
    assert np.allclose(out, (G @ x[..., None])[..., 0])


def test_no_constraints_give_empty_results():
    model = dl.load("iiwa")
    B = dl.BatchDelassusOperator(model, [], 4, damping=1.0)
    B.update(states(model, 4))
    assert B.shape == (4, 0, 0)
    assert (B @ np.empty((4, 0))).shape == (4, 0)
    assert B.solve(np.empty((4, 0, 2))).shape == (4, 0, 2)


def test_mistakes_are_named():
    model = dl.load("go2")
    B = dl.BatchDelassusOperator(model, mixture(model), 4)
    m, q = B.shape[1], states(model, 4)
    with pytest.raises(StaleError, match="update"):
        B @ np.ones((4, m))
    with pytest.raises(ArgumentError, match="q: expected shape"):
        B.update(q[:3])
    bad = q.copy()
    bad[2, 3:7] = 0
    with pytest.raises(QuaternionError, match=r"q\[2, 3:7\]"):
        B.update(bad)
    B.update(q)
    with pytest.raises(ArgumentError, match="damping"):
        B.solve(np.ones((4, m)))
    with pytest.raises(ArgumentError, match="damping: expected"):
        B.damping = np.ones(3)
    with pytest.raises(ArgumentError, match="x: expected shape"):
        B @ np.ones((3, m))
    with pytest.raises(ArgumentError, match="batch_size"):
        dl.BatchDelassusOperator(model, [], 0)
    with pytest.raises(ArgumentTypeError, match="threads"):
        dl.BatchDelassusOperator(model, [], 1, threads=1.5)


def test_a_copy_has_no_numbers_until_its_own_update():
    model = dl.load("iiwa")
    B = dl.BatchDelassusOperator(model, mixture(model), 2, damping=0.1)
    B.update(states(model, 2))
    other = pickle.loads(pickle.dumps(B))
    with pytest.raises(StaleError):
        other @ np.ones((2, B.shape[1]))
    other.update(states(model, 2))
    assert np.array_equal(other.solve(np.ones((2, B.shape[1]))), B.solve(np.ones((2, B.shape[1]))))


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])
def test_a_singular_mass_matrix_stops_every_operator(dtype):
    b = dl.ModelBuilder("twice")
    b.add_body("arm", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.1,) * 3)
    for _ in range(2):
        b.add_joint("arm", "hinge", axis=(1, 2, 3))
    model = b.build()
    constraints = [dl.Connect(model, "arm")]
    G = dl.DelassusOperator(model, constraints, damping=1.0, dtype=dtype)
    B = dl.BatchDelassusOperator(model, constraints, 3, damping=1.0, dtype=dtype)
    for operator, q in ((G, np.full(2, 0.3, dtype)), (B, np.full((3, 2), 0.3, dtype))):
        with pytest.raises(SingularError, match="singular"):
            operator.update(q)
        with pytest.raises(StaleError):
            operator @ np.ones(operator._rows, dtype)


def test_a_loop_the_file_switched_off_gives_no_rows():
    text = """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/></body><body name="b" pos="1 0 0"><freejoint/><geom size=".1"/></body></worldbody>
    <equality><connect body1="a" body2="b" anchor="0 0 0" active="false"/><connect body1="a" body2="b" anchor="0 0 .1"/></equality></mujoco>"""
    model = dl.load(text)
    assert [loop.active for loop in model.loops] == [False, True]
    assert dl.DelassusOperator(model, model.loops).shape == (3, 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_process_starts_its_own_threads():
    model = dl.load("cassie")
    B = dl.BatchDelassusOperator(model, model.loops, 33, threads=3)
    B.update(states(model, 33))
    x = np.ones((33, B.shape[1]))
    y = B @ x
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(B @ x, y) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert np.array_equal(B @ x, y)
