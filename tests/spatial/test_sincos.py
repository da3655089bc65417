"""Sine and cosine of the sweeps are right to the last bits, for every angle a joint may reach."""

import numpy as np
import pytest

import delassus as dl
from delassus import _core

# Two units in the last place of numbers below one: the core rounds a few times more than libm, which is right to half a unit.
TWO_ULP = 3e-16


@pytest.mark.parametrize("reach", [1e-300, 1e-9, 1e-3, 0.8, np.pi, 100.0, 1e5, 0.999e6, 1e6, 1.001e6, 1e9, 1e15, 1e300])
def test_sine_and_cosine_match_libm(reach):
    x = np.random.default_rng(4).uniform(-reach, reach, 100_003)
    s, c = _core.sincos(x)
    assert np.abs(s - np.sin(x)).max() <= TWO_ULP
    assert np.abs(c - np.cos(x)).max() <= TWO_ULP
    # small sines are right relatively, not only absolutely
    assert np.all(np.abs(s - np.sin(x)) <= 4e-16 * np.abs(np.sin(x)))


def test_zeros_of_sine_and_cosine_keep_their_digits():
    # the doubles nearest to kπ/2: what is left of the angle is all that libm returns
    k = np.unique(np.r_[np.arange(-2000, 2001), np.random.default_rng(5).integers(-636_000, 636_001, 50_000)])
    x = k * (np.pi / 2)
    s, c = _core.sincos(x)
    even = k % 2 == 0
    left, right = np.where(even, s, c), np.where(even, np.sin(x), np.cos(x))
    assert np.all(np.abs(left - right) <= 4e-16 * np.abs(right))
    top, one = np.where(even, c, s), np.where(even, np.cos(x), np.sin(x))
    assert np.abs(top - one).max() <= TWO_ULP


def test_exact_values():
    s, c = _core.sincos(np.array([0.0, -0.0]))
    assert (s == 0).all()
    assert (c == 1).all()


@pytest.mark.parametrize("n", range(18))
def test_every_length_is_served_whole(n):
    # eight at a time inside
    x = np.random.default_rng(n).uniform(-9, 9, n)
    s, c = _core.sincos(x)
    np.testing.assert_allclose(s, np.sin(x), rtol=0, atol=TWO_ULP)
    np.testing.assert_allclose(c, np.cos(x), rtol=0, atol=TWO_ULP)


# single precision rounds at 6e-8; a product of two rotations and the angle's own rounding add up
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-15), (np.float32, 5e-7)])
@pytest.mark.parametrize("reach", [1.0, 999.0, 1001.0, 1e5, 1e7])
def test_a_hinge_turns_by_the_angle_it_is_given(reach, dtype, tolerance):
    builder = dl.ModelBuilder()
    builder.add_body("arm", mass=1.0, inertia=(1.0, 1.0, 1.0))
    builder.add_joint("arm", "hinge", axis=(0, 0, 1))
    model = builder.build()
    for angle in np.random.default_rng(6).uniform(-reach, reach, 200).astype(dtype):
        R = dl.body_placement(model, np.array([angle], dtype), "arm")[:2, :2]
        s, c = np.sin(np.float64(angle)), np.cos(np.float64(angle))
        np.testing.assert_allclose(R, [[c, -s], [s, c]], rtol=0, atol=tolerance)
