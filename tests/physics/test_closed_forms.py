"""Mechanisms whose equations every textbook prints."""

import numpy as np
import pytest

import delassus as dl
from oracles import dense
from oracles.compare import agree

G = 9.81
RNG = np.random.default_rng(8)
# closed forms of a few terms
CLOSE = 1e-13


def rod(builder, name, parent, *, mass, center, inertia, at=0.0):
    """Add a rod that hangs down −z and swings about y."""
    builder.add_body(name, parent, position=(0, 0, -at), mass=mass, com=(0, 0, -center), inertia=(inertia, inertia, 0.0))
    builder.add_joint(name, "hinge", axis=(0, 1, 0))


def test_pendulum():
    m, l, I = 1.3, 0.7, 0.2  # noqa: E741
    builder = dl.ModelBuilder(gravity=(0, 0, -G))
    rod(builder, "rod", "world", mass=m, center=l, inertia=I)
    model = builder.build()
    for q, v, tau in RNG.standard_normal((10, 3)):
        whole, weight = I + m * l**2, m * G * l * np.sin(q)
        agree(dl.mass_matrix(model, [q]), [[whole]], CLOSE)
        agree(dl.bias_forces(model, [q], [v]), [weight], CLOSE)
        agree(dl.forward_dynamics(model, [q], [v], [tau]), [(tau - weight) / whole], CLOSE)
        agree(dl.kinetic_energy(model, [q], [v]), 0.5 * whole * v**2, CLOSE)
        agree(dl.potential_energy(model, [q]), -m * G * l * np.cos(q), CLOSE)


def test_double_pendulum():
    m1, m2, c1, c2, L, I1, I2 = 1.3, 0.8, 0.4, 0.3, 0.9, 0.11, 0.07
    builder = dl.ModelBuilder(gravity=(0, 0, -G))
    rod(builder, "upper", "world", mass=m1, center=c1, inertia=I1)
    rod(builder, "lower", "upper", mass=m2, center=c2, inertia=I2, at=L)
    model = builder.build()
    for a, b, u, w in RNG.standard_normal((10, 4)):
        k, s = m2 * L * c2 * np.cos(b), m2 * L * c2 * np.sin(b)
        low = I2 + m2 * c2**2
        M = [[I1 + m1 * c1**2 + m2 * L**2 + low + 2 * k, low + k], [low + k, low]]
        swing = m2 * G * c2 * np.sin(a + b)
        c = [-s * (2 * u * w + w**2) + (m1 * c1 + m2 * L) * G * np.sin(a) + swing, s * u**2 + swing]
        agree(dl.mass_matrix(model, [a, b]), M, CLOSE)
        agree(dl.bias_forces(model, [a, b], [u, w]), c, CLOSE, 20.0)


def test_cart_pole():
    M, m, l, I = 2.0, 0.5, 0.6, 0.03  # noqa: E741
    builder = dl.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("cart", mass=M)
    builder.add_joint("cart", "slide", axis=(1, 0, 0))
    rod(builder, "pole", "cart", mass=m, center=l, inertia=I)
    model = builder.build()
    for x, θ, u, w in RNG.standard_normal((10, 4)):
        # a positive turn about +y carries the hanging pole towards −x
        coupling = -m * l * np.cos(θ)
        agree(dl.mass_matrix(model, [x, θ]), [[M + m, coupling], [coupling, I + m * l**2]], CLOSE)
        agree(dl.bias_forces(model, [x, θ], [u, w]), [m * l * w**2 * np.sin(θ), m * G * l * np.sin(θ)], CLOSE, 5.0)


def test_free_body_obeys_newton_and_euler():
    m, gravity = 2.5, np.array([0.5, -1.0, -G])
    R0 = dense.rotation(RNG.standard_normal(4))
    I = R0 @ np.diag([0.3, 0.5, 0.6]) @ R0.T  # noqa: E741
    builder = dl.ModelBuilder(gravity=gravity)
    builder.add_body("body", mass=m, inertia=I)
    builder.add_joint("body", "free")
    model = builder.build()
    for seed in range(10):
        q, v, tau = model.random(seed), *RNG.standard_normal((2, 6))
        wrench = np.vstack([np.zeros(6), RNG.standard_normal(6)])
        R, ω = dense.rotation(q[3:7]), v[3:]
        # force and linear velocity in world axes, torque and angular velocity in body axes
        turning = np.linalg.solve(I, tau[3:] + R.T @ wrench[1, 3:] - np.cross(ω, I @ ω))
        want = np.r_[gravity + (tau[:3] + wrench[1, :3]) / m, turning]
        agree(dl.forward_dynamics(model, q, v, tau, external_forces=wrench), want, CLOSE)
        agree(dl.center_of_mass(model, q), q[:3], CLOSE)


def test_free_bodies_do_not_feel_each_other():
    alone, many = dl.scenes.box_stack(1), dl.scenes.box_stack(4)
    inverse, one = dl.mass_matrix_inverse(many, many.random(1)), dl.mass_matrix(alone, alone.random(2))
    assert many.nv == 24
    for k in range(4):
        block = inverse[6 * k : 6 * k + 6]
        assert np.count_nonzero(block) == np.count_nonzero(block[:, 6 * k : 6 * k + 6])
        # the first box is like the others, its linear inertia its mass
        np.testing.assert_allclose(np.diag(block[:3, 6 * k : 6 * k + 3]), 1 / one[0, 0], rtol=CLOSE)


@pytest.mark.parametrize("name", ["go2", "g1", "talos"])
def test_a_force_through_the_centre_of_mass_moves_the_whole(name):
    # base rows of M ν̇ + c are the rate of the total momentum, m (c̈ − g)
    model = dl.load(name)
    q, v, a = model.random(3), RNG.standard_normal(model.nv), RNG.standard_normal(model.nv)
    h = 1e-3

    def center(t):
        return dl.center_of_mass(model, dl.integrate(model, q, v + 0.5 * t * a, t))

    # fourth-order second difference: truncation 1e-12 · (rates)⁶, rounding 1e-16 / h²
    bend = (16 * (center(h) + center(-h)) - center(2 * h) - center(-2 * h) - 30 * center(0.0)) / (12 * h**2)
    force = dl.inverse_dynamics(model, q, v, a)[:3]
    agree(force / model.mass + model.gravity, bend, 1e-7, 10.0)
