"""Mass matrix, bias forces, forward dynamics and M⁻¹ of random trees are those of the dense definitions."""

import numpy as np
import pytest
from hypothesis import given, settings

import delassus as dl
from oracles.compare import agree
from oracles.trees import mechanism, mechanisms

# Ten digits: sums over at most 12 bodies of numbers near one round at 1e-14, and oracle and core round differently.
CLOSE = 1e-10
# M⁻¹ of matrices with a condition up to 1e5
CLOSE_INVERSE = 1e-9
# single precision: 6e-8 a rounding, some hundred of them in a row
CLOSE_SINGLE = 1e-4


def magnitudes(M):
    """√(Mᵢᵢ Mⱼⱼ), the largest that Mᵢⱼ can be."""
    return np.sqrt(np.outer(M.diagonal(), M.diagonal()))


def loads(oracle):
    """Random joint forces and wrenches on the bodies."""
    rng = np.random.default_rng(oracle.model.nv)
    return rng.standard_normal(oracle.model.nv), rng.standard_normal((oracle.model.nbody, 6))


def check_mass_matrix_and_bias_forces(oracle):
    """They are sums over bodies."""
    model, q, v = oracle.model, oracle.q, oracle.v
    M = dl.mass_matrix(model, q)
    agree(M, oracle.mass_matrix, CLOSE, magnitudes(oracle.mass_matrix))
    agree(dl.bias_forces(model, q, v), oracle.bias_forces, CLOSE, oracle.bias_scale)
    tau, wrenches = loads(oracle)
    expected = oracle.mass_matrix @ tau + oracle.bias_forces - oracle.joint_forces(wrenches)
    agree(
        dl.inverse_dynamics(model, q, v, tau, external_forces=wrenches),
        expected,
        CLOSE,
        oracle.bias_scale + np.abs(oracle.mass_matrix).max(initial=0),
    )


def check_forward_dynamics_and_inverse(oracle):
    """They solve the dense equations."""
    model, q = oracle.model, oracle.q
    M, one = oracle.mass_matrix, np.eye(model.nv)
    tau, wrenches = loads(oracle)

    # M a + c = τ + Jᵀ f, judged by the size of what is summed
    a = dl.forward_dynamics(model, q, oracle.v, tau, external_forces=wrenches)
    force = tau + oracle.joint_forces(wrenches)
    agree(M @ a + oracle.bias_forces, force, CLOSE, oracle.bias_scale + np.abs(M).max(initial=0) * np.abs(a).max(initial=0))

    inverse = dl.mass_matrix_inverse(model, q)
    assert np.array_equal(inverse, inverse.T)
    d = np.sqrt(M.diagonal())
    agree((inverse * d[:, None] * d) @ (M / np.outer(d, d)), one, CLOSE_INVERSE, 1.0)
    for columns in ((), (1,), (2,), (7,), (64,)):
        y = np.random.default_rng(len(columns)).standard_normal((model.nv, *columns))
        agree(dl.solve_mass_matrix(model, q, y), inverse @ y, CLOSE_INVERSE)


@settings(max_examples=2000)
@given(mechanisms())
def test_dynamics_of_random_trees_are_the_dense_definitions(oracle):
    # one test: to grow a tree takes five times as long as to check it
    check_mass_matrix_and_bias_forces(oracle)
    check_forward_dynamics_and_inverse(oracle)


def limbs_on(root, lengths):
    """Plan of a body held by the joints of ``root``, with limbs of these lengths on it and, once more, on a hinge that it carries."""
    plan = [(-1, root, False), (0, ("hinge",), False)]
    for base, lengths_here in ((0, lengths), (1, lengths[::-1])):
        for k, length in enumerate(lengths_here):
            for link in range(length):
                plan.append((base if link == 0 else len(plan) - 1, ("ball",) if (k, link) == (1, 2) else ("hinge",), False))
    return plan


# The inverse's rows come limb by limb, side by side and in blocks of columns: wherever these begin, and however long a limb is.
@pytest.mark.parametrize("lengths", [(1,), (1, 1), (2, 5, 1), (3, 3, 3, 3), (6, 6, 2), (7, 4, 7, 1, 1), (13, 3), (20,)], ids=str)
@pytest.mark.parametrize("root", [(), ("free",), ("hinge",), ("slide", "hinge"), ("ball",), ("hinge",) * 5], ids=str)
def test_limbs_of_any_length_on_any_trunk_are_the_dense_definitions(root, lengths):
    oracle = mechanism(limbs_on(root, lengths), [len(root), *lengths])
    check_mass_matrix_and_bias_forces(oracle)
    check_forward_dynamics_and_inverse(oracle)


@settings(max_examples=400)
@given(mechanisms(every_armature=True))
def test_single_precision_keeps_four_digits(oracle):
    model = oracle.model
    q, v = oracle.q.astype(np.float32), oracle.v.astype(np.float32)
    M, magnitude = oracle.mass_matrix, np.abs(oracle.mass_matrix).max(initial=0)
    tau, wrenches = (x.astype(np.float32) for x in loads(oracle))

    results = {
        "M": dl.mass_matrix(model, q),
        "c": dl.bias_forces(model, q, v),
        "a": dl.forward_dynamics(model, q, v, tau, external_forces=wrenches),
        "M⁻¹": dl.mass_matrix_inverse(model, q),
        "x": dl.solve_mass_matrix(model, q, tau),
    }
    assert {x.dtype for x in results.values()} == {np.dtype(np.float32)}
    agree(results["M"], M, CLOSE_SINGLE, magnitudes(M))
    agree(results["c"], oracle.bias_forces, CLOSE_SINGLE, oracle.bias_scale)
    a = results["a"].astype(np.float64)
    agree(
        M @ a + oracle.bias_forces,
        tau + oracle.joint_forces(wrenches),
        CLOSE_SINGLE,
        oracle.bias_scale + magnitude * np.abs(a).max(initial=0),
    )
    inverse = np.linalg.inv(M)
    agree(results["M⁻¹"], inverse, CLOSE_SINGLE)
    agree(results["x"], inverse @ tau, CLOSE_SINGLE, np.abs(inverse).max(initial=0) * np.abs(tau).sum())


def shallow_or_deep(name):
    """A robot, whose limbs hang a dozen velocities deep, or a chain far beyond that; both kinds have a recipe of their own for many columns."""
    kind, _, links = name.partition("-")
    return dl.scenes.chain(int(links)) if kind == "chain" else dl.load(name)


@pytest.mark.parametrize("columns", [0, 1, 7, 8, 9, 31, 64, 77])
@pytest.mark.parametrize("name", ["g1", "chain-3", "chain-25", "chain-26", "chain-60"])
def test_every_column_of_a_solve_solves_its_equations(name, columns):
    model = shallow_or_deep(name)
    q = model.random(5)
    y = np.random.default_rng(6).standard_normal((model.nv, columns))
    x, M = dl.solve_mass_matrix(model, q, y), dl.mass_matrix(model, q)
    assert x.shape == y.shape
    # backward error of each column by itself: a few hundred roundings
    scale = np.linalg.norm(M) * np.linalg.norm(x, axis=0) + np.linalg.norm(y, axis=0)
    assert np.all(np.linalg.norm(M @ x - y, axis=0) <= 1e-13 * scale)


@pytest.mark.parametrize("name", ["g1", "talos", "chain-1", "chain-7", "chain-25", "chain-26", "chain-60"])
def test_the_inverse_of_shallow_and_deep_trees_is_that_of_the_mass_matrix(name):
    model = shallow_or_deep(name)
    q = model.random(5)
    M, inverse = dl.mass_matrix(model, q), dl.mass_matrix_inverse(model, q)
    assert np.array_equal(inverse, inverse.T)
    condition = np.linalg.cond(M)
    assert np.linalg.norm(inverse @ M - np.eye(model.nv)) <= 1e-14 * condition
