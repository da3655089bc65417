"""Gauss' principle by singular values: of all accelerations that meet the rows best, the nearest to the free one in the metric of M."""

import numpy as np


class Gauss:
    """minimise ‖ν̇ − M⁻¹ rest‖²_M among those that minimise ‖J ν̇ + γ‖²; with compliance C, J ν̇ + C λ + γ = 0."""

    def __init__(self, M, J, rest, gamma, compliance=None):
        self.M, self.J, self.rest, self.gamma = M, J, rest, gamma
        d = np.sqrt(M.diagonal())
        half = np.linalg.inv(np.linalg.cholesky(M / np.outer(d, d))) / d  # halfᵀ half = M⁻¹
        self.free = half.T @ half @ rest
        Y = J @ half.T
        self.G, self.b = Y @ Y.T, -gamma - J @ self.free
        u, s, vt = np.linalg.svd(Y, full_matrices=False)
        keep = s > 1e-9 * s.max(initial=0.0)
        self.rank, self.least = int(keep.sum()), (s[keep] ** 2).min(initial=np.inf)
        if compliance is None:
            self.acceleration = self.free + half.T @ (vt[keep].T @ ((u[:, keep].T @ self.b) / s[keep]))
        else:
            self.acceleration = self.free + half.T @ Y.T @ np.linalg.solve(self.G + np.diag(compliance), self.b)
        self.scale = max(np.abs(self.acceleration).max(initial=0.0), np.abs(self.free).max(initial=0.0), 1.0)

    def acceleration_error(self, acceleration):
        """Relative to the largest acceleration, free or not."""
        return np.abs(acceleration - self.acceleration).max(initial=0.0) / self.scale

    def balance_error(self, acceleration, forces):
        """Largest |M ν̇ − rest − Jᵀ λ|, relative to what it is added up of."""
        left = self.M @ acceleration - self.rest - self.J.T @ forces
        size = np.abs(self.M) @ np.abs(acceleration) + np.abs(self.rest) + np.abs(self.J.T) @ np.abs(forces)
        return np.abs(left).max(initial=0.0) / max(size.max(initial=0.0), 1.0)
