"""Places, velocities, Jacobians, J̇v, centre of mass and energies of random trees are those of the dense definitions."""

import numpy as np
import pytest
from hypothesis import given, settings

import delassus as dl
from oracles.compare import agree
from oracles.trees import mechanisms

# Ten digits; lengths, masses and rates are near one, so one is the unit of error. Single precision keeps four.
CLOSE = {np.float64: 1e-10, np.float32: 1e-4}


def check(oracle, dtype):
    model = oracle.model
    q, v = oracle.q.astype(dtype), oracle.v.astype(dtype)
    tolerance = CLOSE[dtype]
    agree(dl.body_placements(model, q), oracle.placement, tolerance)
    points = np.random.default_rng(model.nbody).uniform(-1, 1, (model.nbody, 3)).astype(dtype)
    J, bias = oracle.frames(points)
    velocity = J @ oracle.v
    for b, point in enumerate(points):
        agree(dl.point_position(model, q, b, point), oracle.positions(points)[b], tolerance, 1.0)
        agree(dl.frame_jacobian(model, q, b, point), J[b], tolerance, 1.0)
        agree(dl.frame_velocity(model, q, v, b, point), velocity[b], tolerance, max(1.0, np.abs(velocity).max()))
        agree(dl.frame_bias_acceleration(model, q, v, b, point), bias[b], tolerance, max(1.0, np.abs(bias).max()))
    agree(dl.kinetic_energy(model, q, v), oracle.kinetic_energy, tolerance)
    weight = model.mass * np.linalg.norm(model.gravity)
    agree(dl.potential_energy(model, q), oracle.gravitational_energy, tolerance, weight)
    if model.nv:
        agree(dl.center_of_mass(model, q), oracle.center_of_mass, tolerance, 1.0)


@settings(max_examples=2000)
@given(mechanisms())
def test_state_functions_are_the_dense_definitions(oracle):
    check(oracle, np.float64)


@settings(max_examples=300)
@given(mechanisms())
def test_state_functions_keep_four_digits_in_single_precision(oracle):
    check(oracle, np.float32)


@pytest.mark.parametrize("name", dl.embedded_names())
def test_short_forms_are_parts_of_the_long_ones(name):
    model = dl.load(name)
    q, v = model.random(2), np.random.default_rng(3).standard_normal(model.nv)
    body, point = model.body_names[-1], np.array([0.1, -0.2, 0.3])
    assert np.array_equal(dl.body_placement(model, q, body), dl.body_placements(model, q)[-1])
    assert np.array_equal(dl.point_jacobian(model, q, body, point), dl.frame_jacobian(model, q, body, point)[:3])
    assert np.array_equal(dl.point_velocity(model, q, v, body, point), dl.frame_velocity(model, q, v, body, point)[:3])
    assert np.array_equal(dl.point_bias_acceleration(model, q, v, body, point), dl.frame_bias_acceleration(model, q, v, body, point)[:3])
    # the default point is the body's origin
    assert np.array_equal(dl.frame_jacobian(model, q, body), dl.frame_jacobian(model, q, body, np.zeros(3)))
    assert np.array_equal(dl.point_position(model, q, body), dl.body_placement(model, q, body)[:3, 3])


@settings(max_examples=200)
@given(mechanisms(max_bodies=5))
def test_bias_acceleration_is_the_rate_of_the_velocity_along_integrate(oracle):
    model, v, body = oracle.model, oracle.v, oracle.model.nbody - 1
    point, h = np.array([0.2, -0.1, 0.3]), 1e-4

    def velocity(t):
        return dl.frame_velocity(model, dl.integrate(model, oracle.q, v, t), v, body, point)

    # fourth-order central difference: truncation h⁴ ‖v‖⁵, rounding 1e-16 / h
    rate = (8 * (velocity(h) - velocity(-h)) - (velocity(2 * h) - velocity(-2 * h))) / (12 * h)
    bias = dl.frame_bias_acceleration(model, oracle.q, v, body, point)
    agree(bias, rate, 1e-8, max(1.0, np.abs(bias).max()))
