"""How far two results are apart, and whether that is acceptable."""

import numpy as np


def relative_error(got, want, scale=None):
    """Largest difference, relative to the largest wanted number or to ``scale``; zero for empty arrays."""
    got, want = np.asarray(got, dtype=np.float64), np.asarray(want, dtype=np.float64)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    if want.size == 0:
        return 0.0
    scale = np.abs(want).max() if scale is None else np.asarray(scale)
    error = np.abs(got - want)
    # 0/0 is agreement
    return float(np.max(np.where(error == 0, 0.0, error / np.where(scale == 0, np.finfo(float).tiny, scale))))


def agree(got, want, tolerance, scale=None):
    """Assert that the relative error is at most ``tolerance``."""
    error = relative_error(got, want, scale)
    assert error <= tolerance, f"relative error {error:.3g}, allowed {tolerance:.3g}\ngot\n{got}\nwant\n{want}"
