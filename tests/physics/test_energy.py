"""Energy is conserved when nothing drives, and changes by the power when something does."""

import numpy as np
import pytest
from hypothesis import given, settings

import delassus as dl
from oracles.compare import agree
from oracles.trees import mechanisms


def energy(model, q, v):
    return dl.kinetic_energy(model, q, v) + dl.potential_energy(model, q)


@pytest.mark.parametrize("model", [dl.scenes.pendulum(4), dl.scenes.chain(6), dl.scenes.binary_tree(2)], ids=lambda m: m.name)
def test_swinging_links_keep_their_energy(model):
    workspace, h = dl.Workspace(model), 1e-3
    rng = np.random.default_rng(9)
    q, v = model.random(rng), rng.standard_normal(model.nv)

    def rate(q, v):
        return v, dl.forward_dynamics(workspace, q, v)

    start, turned = energy(model, q, v), q
    for _ in range(1000):
        v1, a1 = rate(q, v)
        v2, a2 = rate(q + h / 2 * v1, v + h / 2 * a1)
        v3, a3 = rate(q + h / 2 * v2, v + h / 2 * a2)
        v4, a4 = rate(q + h * v3, v + h * a3)
        q = q + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    assert np.abs(q - turned).max() > 0.5, "it must swing"
    # Runge–Kutta of fourth order, rates up to some 10 rad/s: (10 h)⁴ a second, times the energy that was exchanged
    assert energy(model, q, v) == pytest.approx(start, abs=1e-6 * (abs(start) + dl.kinetic_energy(model, q, v)))


@settings(max_examples=300)
@given(mechanisms())
def test_energy_changes_by_the_power_of_the_joint_forces(oracle):
    model, q, v = oracle.model, oracle.q, oracle.v
    tau = np.random.default_rng(1).standard_normal(model.nv)
    a, h = dl.forward_dynamics(model, q, v, tau), 1e-4
    speed = 1.0 + np.abs(a).max(initial=0.0) + np.abs(v).max(initial=0.0)
    h = 1e-3 / speed

    def at(t):
        # to second order in t the path of the motion, so the rate of the energy is exact
        return energy(model, dl.integrate(model, q, v + 0.5 * t * a, t), v + t * a)

    rate = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    size = abs(at(0.0)) + abs(oracle.kinetic_energy) + model.mass * np.linalg.norm(model.gravity)
    agree(rate, tau @ v, 1e-8, size * speed)


def test_springs_hold_the_energy_of_their_stretch():
    builder = dl.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("arm", mass=1.0, inertia=(1, 1, 1))
    builder.add_joint("arm", "hinge", stiffness=3.0, spring_reference=0.4)
    builder.add_body("ball", "arm", mass=1.0, inertia=(1, 1, 1))
    builder.add_joint("ball", "ball", stiffness=5.0)
    model = builder.build()
    angle, axis = 0.8, np.array([0.6, 0.0, 0.8])
    q = np.r_[1.0, np.cos(angle / 2), np.sin(angle / 2) * axis]
    assert dl.potential_energy(model, q) == pytest.approx(0.5 * 3.0 * 0.6**2 + 0.5 * 5.0 * angle**2, rel=1e-14)
