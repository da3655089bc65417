"""Summary figure of a simulation: three moments, its accuracy beside MuJoCo's, and the time of its stages."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bench import Costs, Motion, PeerMotion
from .simulator.files import whole_file
from .viewers.looks import SLIDES, STICKS
from .viewers.render import Studio
from .viewers.subject import force_scale, subject

__all__ = ["simulation_figure"]

Array = NDArray[Any]


def _log(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)


def _hex(color: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)


def simulation_figure(
    path: str | os.PathLike[str], motion: Motion, peer: PeerMotion | None, costs: Costs | None, geometry: Any = None, *, samples: int = 2
) -> None:
    """Draw three moments of a simulation, its contacts and forces, its penetration beside MuJoCo's, the time of its stages, and the cost of a dense matrix.

    Args:
        path: path of the PNG file.
        motion: our motion.
        peer: MuJoCo's motion, if there is one.
        costs: costs of the operator in one pose, if there are constraints.
        geometry: the ``mujoco.MjModel`` that the model came from, for its meshes.
        samples: rays per pixel, in each direction; one is faster, with rough edges.
    """
    from matplotlib.figure import Figure

    tr = motion.trajectory
    # all axes are placed explicitly: automatic layout takes matplotlib seconds
    figure = Figure(figsize=(14, 8))
    upper = figure.add_gridspec(1, 3, left=0.008, right=0.992, top=0.955, bottom=0.46, wspace=0.03)
    lower = figure.add_gridspec(1, 4, left=0.05, right=0.988, top=0.395, bottom=0.085, wspace=0.36)
    moments = [round(share * (len(tr) - 1)) for share in (0.0, 0.5, 1.0)]
    what = subject(tr, None, None, geometry)
    studio = Studio(tr.model, tr.q[moments], solids=what.solids, size=(500, 430), samples=samples)
    studio.newton, example = force_scale(what, studio.reach)
    views: Any = upper.subplots()
    for ax, k in zip(views, moments, strict=True):
        touching = tr.contacts(k)
        ax.imshow(studio.picture(tr.q[k], touching))
        ax.set_title(f"t = {tr.times[k]:.2f} s" + (f", {len(touching)} contacts" if k else ""), fontsize=12)
        ax.axis("off")
        if ax.get_subplotspec().is_first_col() and example > 0:
            length = example * studio.newton * studio.camera.scale / studio.camera.distance
            ax.annotate(
                "",
                (15 + length, 413),
                (15, 413),
                arrowprops={"arrowstyle": "-|>", "color": "#2d343e", "lw": 1.5, "shrinkA": 0, "shrinkB": 0},
            )
            x = 25 + length
            for word, color in ((f"{example:g} N", "#2d343e"), ("sticks", _hex(STICKS)), ("slides", _hex(SLIDES))):
                ax.text(x, 413, word, color=color, fontsize=10, va="center")
                x += 22 + 7.2 * len(word)

    plots: Any = lower.subplots()
    depth, work, stages, bars = plots
    t = tr.times[0] + (np.arange(len(motion.seconds)) + 1) * (tr.times[-1] - tr.times[0]) / len(motion.seconds)
    ours, theirs = "#1f5fa8", "#e08a1e"
    if peer is not None and peer.finite:
        depth.semilogy(t, _log(1e3 * peer.penetration), color=theirs, linewidth=1.4, label="MuJoCo")
    if motion.penetration.any():
        depth.semilogy(t, _log(1e3 * motion.penetration), color=ours, linewidth=1.4, label="delassus")
        depth.set_ylim(bottom=3e-4, top=20 * depth.get_ylim()[1])  # room for the legend above the curves
        depth.legend(frameon=False, fontsize=10, loc="upper left", ncols=2, columnspacing=1.0)
    else:
        depth.text(0.5, 0.5, "no penetration", ha="center", transform=depth.transAxes)
    depth.set(title="Deepest penetration [mm]", xlabel="t [s]")

    # residuals jump by decades from step to step: plot the maximum in each of 150 time intervals
    parts = np.array_split(np.arange(len(t)), min(150, len(t)))
    work.semilogy(
        [t[part[-1]] for part in parts], _log(np.array([motion.residual[part].max() for part in parts])), color="#7b3fa0", linewidth=1.2
    )
    work.set_ylim(bottom=1e-10)
    work.set(title="Contact residual, largest [m/s]", xlabel="t [s]")

    for ax in (depth, work):
        ax.set_xlim(tr.times[0], tr.times[-1])

    names = [name for name in motion.stages if name != "step"]
    stages.barh(names, [1e6 * motion.stages[name] for name in names], color=ours)
    stages.locator_params(axis="x", nbins=4)
    stages.invert_yaxis()
    stages.set(title=f"Mean step: {1e3 * motion.stages['step']:.2g} ms", xlabel="[µs]")

    if costs is None:
        bars.axis("off")
    else:
        what_for = ("update,\nfactor", "G x", "(G + ρ)⁻¹ y")
        pairs = (costs.update, costs.product, costs.solve)
        for k, (name, color) in enumerate((("matrix-free", ours), ("explicit", theirs))):
            drawn = bars.bar(np.arange(3) + 0.42 * k - 0.21, [pair[k] for pair in pairs], 0.4, color=color, label=name)
            bars.bar_label(drawn, labels=[f"{pair[k]:,.0f}" if pair[k] >= 10 else f"{pair[k]:.1f}" for pair in pairs], fontsize=9)
        bars.set_yscale("log")
        bars.set_xticks(range(3), what_for)
        bars.set_ylim(top=12 * max(max(pair) for pair in pairs))
        bars.set(title=f"Operator of {costs.rows} rows [µs]")
        bars.legend(frameon=False, fontsize=10)
    for ax in (depth, work, stages, bars):
        ax.minorticks_off()
        ax.title.set_fontsize(12)
        ax.tick_params(labelsize=10)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
    with whole_file(path, "figure") as file:
        figure.savefig(file, dpi=100, format="png")
