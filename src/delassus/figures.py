"""Pictures for the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .dynamics import mass_matrix, mass_matrix_inverse
from .model import Model, load
from .state import body_placements

__all__ = ["demo_figure"]


def demo_figure(path: Path, model: Model, times: Any, states: Any, energy: Any) -> Path:
    """Draw a swinging chain, its energy, and the mass matrix of a humanoid with its inverse; returns the path written."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    colors = plt.get_cmap("viridis")

    ax = axes[0, 0]
    tip = np.array([0.0, 0.0, -0.2, 1.0])
    for k in np.linspace(0, len(times) - 1, 40).astype(int):
        X = body_placements(model, states[k])
        line = np.vstack([X[1:, :3, 3], (X[-1] @ tip)[:3]])
        ax.plot(line[:, 0], line[:, 2], "-o", color=colors(k / len(times)), markersize=2.5, linewidth=1)
    ax.set(
        title=f"{model.nv} rods swing freely for {times[-1]:.0f} s (early dark, late light)",
        xlabel="x [m]",
        ylabel="z [m]",
        aspect="equal",
        adjustable="datalim",
    )

    ax = axes[0, 1]
    total = energy.sum(axis=1)
    drift = np.abs(total - total[0]).max() / energy[:, 0].max()
    for values, name in ((energy[:, 0], "kinetic"), (energy[:, 1], "potential"), (total, "sum")):
        ax.plot(times, values, label=name, linewidth=1.3)
    ax.legend()
    ax.set(title=f"Energy, kept to {drift:.0e} of the largest kinetic", xlabel="t [s]", ylabel="[J]")
    ax.grid(alpha=0.3)

    robot = load("g1")
    q = robot.keyframes["home"]
    for ax, name, matrix in ((axes[1, 0], "M", mass_matrix(robot, q)), (axes[1, 1], "M⁻¹", mass_matrix_inverse(robot, q))):
        size = np.log10(np.abs(matrix) + 1e-300)
        image = ax.imshow(np.where(matrix == 0, np.nan, size), vmin=size.max() - 8, cmap="viridis")
        ax.set(title=f"G1: log₁₀ |{name}|, {np.count_nonzero(matrix)} of {matrix.size} numbers")
        figure.colorbar(image, ax=ax, shrink=0.85)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
