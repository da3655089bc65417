"""Mass matrix, bias forces, forward dynamics and M⁻¹ of random trees are those of the dense definitions."""

import numpy as np
import pytest
from hypothesis import given, settings

import delassus as dl
from oracles.compare import agree
from oracles.trees import mechanisms

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


@pytest.mark.parametrize("columns", [0, 1, 7, 8, 9, 64])
def test_every_column_of_a_solve_is_the_solve_of_that_column(columns):
    model = dl.load("g1")
    q = model.random(5)
    y = np.random.default_rng(6).standard_normal((model.nv, columns))
    x = dl.solve_mass_matrix(model, q, y)
    assert x.shape == y.shape
    if columns != 9:  # whose last is left over, alone
        # columns that are solved together take the same operations: not a bit depends on a column's place
        assert np.array_equal(dl.solve_mass_matrix(model, q, np.roll(y, 1, axis=1)), np.roll(x, 1, axis=1))
    for k in range(columns):
        # a column alone takes U and D⁻¹ in place of U D⁻¹
        agree(x[:, k], dl.solve_mass_matrix(model, q, y[:, k]), CLOSE_INVERSE, np.abs(x[:, k]).max())
