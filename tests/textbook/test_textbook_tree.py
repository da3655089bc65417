"""Newton–Euler, composite and articulated bodies and the direct inverse against sums over bodies and against the core."""

import numpy as np
import pytest

import delassus as dl
from delassus import textbook as tb
from oracles.cases import MODELS, RANDOM, state
from oracles.compare import agree

NAMES = [*MODELS, *RANDOM]


def column(x):
    return x[:, None]


@pytest.fixture(params=NAMES)
def oracle(request):
    return state(request.param)


def test_composite_bodies_are_the_mass_matrix(oracle):
    M = tb.crba(tb.Robot(oracle.model).at(oracle.q))
    agree(M, oracle.mass_matrix, 1e-10)
    agree(M, dl.mass_matrix(oracle.model, oracle.q), 1e-10)


def test_newton_euler_is_mass_matrix_times_acceleration_plus_bias(oracle):
    a = np.random.default_rng(1).standard_normal(oracle.model.nv)
    tau = tb.rnea(tb.Robot(oracle.model).at(oracle.q), column(oracle.v), column(a))[:, 0]
    scale = oracle.bias_scale + np.abs(oracle.mass_matrix @ a).max()
    agree(tau, oracle.mass_matrix @ a + oracle.bias_forces, 1e-10, scale)
    agree(tau, dl.inverse_dynamics(oracle.model, oracle.q, oracle.v, a), 1e-10, scale)


def test_articulated_bodies_solve_the_equation_of_motion(oracle):
    tau = np.random.default_rng(2).standard_normal(oracle.model.nv)
    a = tb.aba(tb.Robot(oracle.model).at(oracle.q), column(oracle.v), column(tau))[:, 0]
    agree(a, np.linalg.solve(oracle.mass_matrix, tau - oracle.bias_forces), 1e-10)
    agree(a, dl.forward_dynamics(oracle.model, oracle.q, oracle.v, tau), 1e-10)


@pytest.mark.parametrize("form", ["printed", "replaced"])
def test_direct_inverse_in_both_forms(oracle, form):
    Minv = tb.mass_matrix_inverse(tb.Robot(oracle.model).at(oracle.q), form)
    agree(Minv, np.linalg.inv(oracle.mass_matrix), 1e-10)
    agree(Minv, dl.mass_matrix_inverse(oracle.model, oracle.q), 1e-10)


def test_line_14_as_printed_is_wrong_in_link_frames():
    """What a link hands down includes what its subtree handed to it; without that three links in a row are wrong and two are right."""
    for n, right in ((2, True), (3, False)):
        pose = tb.Robot(dl.scenes.chain(n)).at(np.linspace(0.3, 0.9, n))
        M = tb.crba(pose)
        F = np.zeros((n, 6, n))
        D = [None] * n
        H = [h.copy() for h in pose.H]
        Minv = np.zeros((n, n))
        for i in reversed(range(n)):
            U = H[i] @ pose.S[i]
            D[i] = (pose.S[i].T @ U).item(), U
            Minv[i, i] = 1 / D[i][0]
            Minv[i, i + 1 :] -= (pose.S[i].T @ F[i][:, i + 1 :])[0] / D[i][0]
            if i:
                F[i - 1][:, i:] += pose.X[i].T @ U @ Minv[i : i + 1, i:]
                H[i - 1] += pose.X[i].T @ (H[i] - U @ U.T / D[i][0]) @ pose.X[i]
        # the first row is final after the backward sweep
        assert np.allclose(Minv[0], np.linalg.inv(M)[0], rtol=1e-9) == right
