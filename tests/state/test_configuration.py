"""Configurations move along velocities as rotations compose, and differences lead back."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.spatial.transform import Rotation

import delassus as dl
from oracles.compare import agree
from oracles.trees import mechanisms

CLOSE = 1e-12


def parts(model):
    """(start in q, start in v) of every hinge or slide coordinate or free position; and of every quaternion."""
    straight, turning = [], []
    for kind, q, v in zip(model.joint_type, model.joint_qadr, model.joint_vadr, strict=True):
        if kind in ("hinge", "slide"):
            straight.append((q, v))
        elif kind == "free":
            straight += [(q + k, v + k) for k in range(3)]
            turning.append((q + 3, v + 3))
        else:
            turning.append((q, v))
    return straight, turning


def turn(quaternion):
    return Rotation.from_quat(np.roll(quaternion, -1))


@settings(max_examples=200)
@given(mechanisms())
def test_integrate_adds_displacements_and_composes_rotations(oracle):
    model, q, v, dt = oracle.model, oracle.q, oracle.v, 0.7
    moved = dl.integrate(model, q, v, dt)
    straight, turning = parts(model)
    for iq, iv in straight:
        assert moved[iq] == pytest.approx(q[iq] + dt * v[iv], rel=CLOSE, abs=CLOSE)
    for iq, iv in turning:
        # angular velocity in body axes: it multiplies from the right
        want = turn(q[iq : iq + 4]) * Rotation.from_rotvec(dt * v[iv : iv + 3])
        agree(turn(moved[iq : iq + 4]).as_matrix(), want.as_matrix(), CLOSE)
        assert np.linalg.norm(moved[iq : iq + 4]) == pytest.approx(1.0, abs=1e-15)


@settings(max_examples=200)
@given(mechanisms())
def test_difference_inverts_integrate(oracle):
    model, q = oracle.model, oracle.q
    # shorter than half a turn
    v = oracle.v / max(1.0, np.abs(oracle.v).max(initial=0.0))
    agree(dl.difference(model, q, dl.integrate(model, q, v)), v, CLOSE, 1.0)
    other = model.random(3)
    back = dl.integrate(model, q, dl.difference(model, q, other))
    # a quaternion and its negative are one rotation
    agree(dl.body_placements(model, back), dl.body_placements(model, other), CLOSE, 1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_time_and_no_velocity_move_nothing(dtype):
    model = dl.load("go2")
    q, v = model.random(1).astype(dtype), np.ones(model.nv, dtype)
    ulp = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(dl.integrate(model, q, v, 0.0), q, rtol=0, atol=ulp)
    np.testing.assert_allclose(dl.integrate(model, q, 0 * v), q, rtol=0, atol=ulp)
    np.testing.assert_allclose(dl.difference(model, q, q), 0 * v, rtol=0, atol=ulp)


def test_time_is_one_by_default():
    model = dl.load("go2")
    q, v = model.random(1), np.random.default_rng(2).standard_normal(model.nv)
    assert np.array_equal(dl.integrate(model, q, v), dl.integrate(model, q, v, 1.0))
    agree(dl.integrate(model, q, v), dl.integrate(model, q, 4 * v, 0.25), 1e-15)


def test_quaternions_within_rounding_of_unit_length_are_taken_and_their_length_divided_out():
    model = dl.load("go2")
    q = model.random(1)
    nearly = q.copy()
    nearly[3:7] *= 1 + 5e-7
    agree(dl.mass_matrix(model, nearly), dl.mass_matrix(model, q), 1e-14)
    agree(dl.integrate(model, nearly, np.zeros(model.nv)), q, 1e-14)
