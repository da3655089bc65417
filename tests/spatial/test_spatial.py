"""Rotations and spatial inertia agree with SciPy's rotations and with the definition by mass points."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from delassus import spatial
from delassus.errors import ArgumentError, ArgumentTypeError, NotFiniteError, QuaternionError
from oracles import dense

RNG = np.random.default_rng(7)
QUATERNIONS = RNG.standard_normal((50, 4))
AXES = [x / np.linalg.norm(x) for x in RNG.standard_normal((5, 3))]
# a handful of roundings of numbers below two
ROUNDING = 2e-15


def scipy_rotation(quaternion):
    return Rotation.from_quat(np.roll(quaternion, -1))


def test_rotation_matrix_is_scipys_and_ignores_the_length():
    for q in QUATERNIONS:
        np.testing.assert_allclose(spatial.rotation_matrix(q), scipy_rotation(q).as_matrix(), rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(spatial.rotation_matrix(100 * q), spatial.rotation_matrix(q), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("length", [1e-200, 1e-160, 1e160, 1e200])
@pytest.mark.parametrize("function", [spatial.rotation_matrix, spatial.logarithm])
def test_no_length_is_too_small_or_too_large(function, length):
    q = np.array([0.5, 0.5, 0.5, -0.5])
    np.testing.assert_allclose(function(length * q), function(q), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-12, 0.9e-4, 1.1e-4, 0.1, 1.0, 3.0, np.pi, 4.0, 2 * np.pi, 100.0])
def test_exponential_is_cosine_and_sine_of_half_the_angle(angle):
    for axis in AXES:
        want = np.r_[np.cos(angle / 2), np.sin(angle / 2) * axis]
        got = spatial.exponential(angle * axis)
        # the angle itself, ‖r‖, is rounded: relative 1e-16 of it
        np.testing.assert_allclose(got, want, rtol=0, atol=ROUNDING + 1e-16 * angle)
        # small rotations keep their digits
        if angle < 1:
            np.testing.assert_allclose(got[1:], want[1:], rtol=ROUNDING, atol=0)


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-12, 0.9e-4, 1.1e-4, 2.1e-4, 0.1, 1.0, 3.0, np.pi - 1e-4, np.pi - 1e-9])
def test_logarithm_inverts_exponential(angle):
    for axis in AXES:
        q = spatial.exponential(angle * axis)
        for same in (q, -q, 3 * q):
            np.testing.assert_allclose(spatial.logarithm(same), angle * axis, rtol=ROUNDING, atol=1e-15 * angle)


def test_logarithm_is_scipys_shortest_rotation_vector():
    for q in QUATERNIONS:
        r = spatial.logarithm(q)
        np.testing.assert_allclose(r, scipy_rotation(q).as_rotvec(), rtol=0, atol=2 * ROUNDING)
        assert np.linalg.norm(r) <= np.pi + ROUNDING


def test_half_a_turn_has_length_pi():
    assert np.linalg.norm(spatial.logarithm([0.0, 0.0, -1.0, 0.0])) == pytest.approx(np.pi, abs=ROUNDING)


def test_spatial_inertia_is_that_of_its_mass_points():
    # kinetic energy ½ Σ m |v + ω × x|² of points, for every pair of unit motions
    points, masses = RNG.uniform(-1, 1, (6, 3)), RNG.uniform(0.1, 1, 6)
    rates = [np.hstack([np.eye(3), -dense.hat(x)]) for x in points]
    want = sum(m * A.T @ A for m, A in zip(masses, rates, strict=True))
    com = masses @ points / masses.sum()
    inertia = sum(m * dense.hat(x - com).T @ dense.hat(x - com) for m, x in zip(masses, points, strict=True))
    np.testing.assert_allclose(spatial.spatial_inertia(masses.sum(), com, inertia), want, rtol=0, atol=10 * ROUNDING)


GOOD = {
    spatial.rotation_matrix: {"quaternion": (1.0, 0, 0, 0)},
    spatial.exponential: {"rotation_vector": (0.1, 0, 0)},
    spatial.logarithm: {"quaternion": (1.0, 0, 0, 0)},
    spatial.spatial_inertia: {"mass": 1.0, "com": (0.0, 0, 0), "inertia": np.eye(3)},
}
BAD = {
    "nan": (lambda a: np.full_like(a, np.nan), NotFiniteError),
    "inf": (lambda a: np.full_like(a, np.inf), NotFiniteError),
    "shape": (lambda a: np.zeros((2, 2)), ArgumentError),
    "None": (lambda a: None, ArgumentTypeError),
    "text": (lambda a: "text", ArgumentTypeError),
    "complex": (lambda a: a.astype(complex), ArgumentTypeError),
    "ragged": (lambda a: [[1.0], [2.0, 3.0]], ArgumentTypeError),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(("function", "argument"), [(f, k) for f, arguments in GOOD.items() for k in arguments])
def test_bad_values_are_refused_by_name(function, argument, bad):
    spoil, error = BAD[bad]
    with pytest.raises(error, match=f"^{argument}: ") as caught:
        function(**GOOD[function] | {argument: spoil(np.asarray(GOOD[function][argument], dtype=float))})
    assert type(caught.value) is error


@pytest.mark.parametrize("function", [spatial.rotation_matrix, spatial.logarithm])
def test_zero_quaternion_is_refused(function):
    with pytest.raises(QuaternionError, match=r"^quaternion: "):
        function(np.zeros(4))


def test_negative_mass_is_refused():
    with pytest.raises(ArgumentError, match=r"^mass: "):
        spatial.spatial_inertia(-1.0, np.zeros(3), np.eye(3))
