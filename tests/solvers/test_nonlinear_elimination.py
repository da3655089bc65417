"""A Newton step of contacts whose few worst ones get their exact law: against all equations of the step, dense in NumPy."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import delassus as dl

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which(os.environ.get("CXX", "g++"))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")
    made = tmp_path_factory.mktemp("elimination") / "nonlinear_elimination"
    core = ROOT / "core"
    sources = [
        Path(__file__).with_suffix(".cpp").with_name("nonlinear_elimination.cpp"),
        core / "solvers/contacts/nonlinear_elimination.cpp",
    ]
    sources += [core / "dense/lu.cpp", core / "dense/triangular.cpp", core / "dense/product.cpp"]
    subprocess.run([COMPILER, "-std=c++20", "-O1", "-mavx2", "-mfma", "-Wno-psabi", f"-I{core}", *sources, "-o", made], check=True)
    return made


def law(y, mu):
    """P(y) of one contact and its derivative."""
    n, P, C = len(y), np.zeros(len(y)), np.zeros((len(y), len(y)))
    if y[0] > 0:
        P[0], C[0, 0], t = y[0], 1.0, np.linalg.norm(y[1:])
        if t <= mu * y[0]:
            return y.copy(), np.eye(n)
        h = y[1:] / t
        P[1:], C[1:, 0] = mu * y[0] * h, mu * h
        C[1:, 1:] = mu * y[0] / t * (np.eye(n - 1) - np.outer(h, h))
    return P, C


class Step:
    """A linear Newton step of random contacts, from forces near a solution."""

    def __init__(self, sizes, seed, spread):
        rng = np.random.default_rng(seed)
        self.first, self.sizes = np.concatenate([[0], np.cumsum(sizes)]), sizes
        m = self.first[-1]
        J = rng.standard_normal((m, max(6, m // 2)))
        self.G = J @ J.T / m
        self.mu, self.d = rng.uniform(0.2, 1.0, len(sizes)), np.array([np.diag(self.G)[s].mean() for s in self.slices()])
        self.beta, self.delta = 3 / self.d, rng.uniform(0.01, 0.1, len(sizes))
        g = rng.standard_normal(m)
        r = rng.uniform(0, 1, m)
        largest = np.linalg.norm(self.G, 2)
        for _ in range(100):  # nearer to a solution
            sigma = self.G @ r + g
            for k, s in enumerate(self.slices()):
                r[s] += 0.2 * (law(r[s] - sigma[s] / largest, self.mu[k])[0] - r[s])
        self.r = r + spread * rng.standard_normal(m)
        self.sigma = self.G @ self.r + g
        f, C = self.map(self.r, self.sigma)
        beta, delta = np.repeat(self.beta, sizes), np.repeat(self.delta, sizes)
        self.E, self.C = np.diag(1 + delta) - C, C
        self.N = self.E + beta[:, None] * C @ self.G
        self.B = np.linalg.solve(self.E, beta[:, None] * C)
        self.A = np.linalg.solve(np.eye(m) + self.G @ self.B, self.G)
        self.f, self.dr = f, np.linalg.solve(self.N, -f)
        self.after = self.map(self.r + self.dr, self.sigma + self.G @ self.dr)[0]

    def slices(self):
        return [slice(a, b) for a, b in zip(self.first[:-1], self.first[1:], strict=True)]

    def map(self, r, sigma):
        f, C = np.empty(len(r)), np.zeros((len(r), len(r)))
        for k, s in enumerate(self.slices()):
            P, C[s, s] = law(r[s] - self.beta[k] * sigma[s], self.mu[k])
            f[s] = r[s] - P
        return f, C

    def text(self):
        blocks = np.concatenate([self.B[s, s].ravel() for s in self.slices()])
        parts = [[len(self.r), len(self.sizes)], self.sizes, self.after, self.mu, self.beta, self.delta, self.d]
        parts += [self.r + self.dr, self.sigma + self.G @ self.dr, self.dr, blocks, self.A.ravel()]
        return "\n".join(format(float(x), ".17g") for part in parts for x in part)


def run(program, step):
    out = subprocess.run([program], input=step.text(), capture_output=True, text=True, check=True).stdout.splitlines()
    count = int(out[0])
    chosen, better = [int(x) for x in out[1 : 1 + count]], out[1 + count] == "1"
    z = np.zeros(len(step.r))
    for line in out[2 + count :]:
        row, value = line.split()
        z[int(row)] = float(value)
    return chosen, better, z


@pytest.mark.parametrize("sizes", [[3] * 12, [3, 4, 6] * 4, [3, 3], [6]], ids=["points", "all kinds", "two", "one"])
def test_chosen_contacts_meet_their_law_and_all_others_their_linear_equation(program, sizes):
    met = corrected = 0
    for seed in range(30):
        step = Step(sizes, seed, 0.3)
        chosen, better, z = run(program, step)
        # those with the largest d ‖f‖, as few as hold 99 % of it, four at most
        weight = np.array([step.d[k] * np.linalg.norm(step.after[s]) for k, s in enumerate(step.slices())])
        order = [k for k in np.argsort(-weight) if weight[k] > 0]
        held = np.sqrt(np.concatenate([[0], np.cumsum(weight[order] ** 2)]))
        enough = int(np.argmax(held >= 0.99 * np.linalg.norm(weight))) if len(order) else 0
        assert chosen == order[: min(enough, 4)]
        before = step.after + np.repeat(step.delta, sizes) * step.dr
        if not better or np.abs(before).max() < 1e-10:  # the linear step met all laws already
            continue
        corrected += 1
        dr = step.dr + z - step.B @ (step.A @ z)
        f = step.map(step.r + dr, step.sigma + step.G @ dr)[0]
        phi = f + np.repeat(step.delta, sizes) * dr
        linear = step.N @ dr + step.f
        rows = np.concatenate([np.arange(*step.first[[k, k + 1]]) for k in chosen])
        others = np.setdiff1d(np.arange(len(z)), rows)
        assert np.abs(linear[others]).max(initial=0.0) <= 1e-9 * np.abs(step.f).max()
        weights = np.repeat(step.d, sizes)[rows]
        nearer = np.linalg.norm(weights * phi[rows]) / np.linalg.norm(weights * before[rows])
        assert nearer < 1
        met += nearer <= 1e-3
    assert corrected >= 5
    assert met >= 0.6 * corrected


def test_an_operator_and_its_matrix_correct_the_same_steps():
    """The operator condenses by sweeps over the links that are reached, the matrix by its LU factor: their Newton steps agree until rounding has grown."""
    scene = dl.scenes.load("box-pyramid")
    G = dl.DelassusOperator(scene.model, scene.constraints)
    G.update(scene.q)
    for seed in range(2):
        v = 0.3 * np.random.default_rng(seed).standard_normal(scene.model.nv)
        free = v + 1e-3 * dl.forward_dynamics(scene.model, scene.q, v, np.zeros(scene.model.nv))
        g = G.jacobian @ free
        one = dl.solve_contacts(G, g, timestep=1e-3, max_iterations=8)
        other = dl.solve_contacts(G.to_matrix(), g, G.constraints, timestep=1e-3, max_iterations=8)
        np.testing.assert_allclose(one.history[:8], other.history[:8], rtol=1e-5)
