"""Results of a study as a figure: every metric against every varied number."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from ..simulator.files import new_figure, save_figure
from .metrics import METRICS

if TYPE_CHECKING:
    from .result import StudyResult

__all__ = ["picture"]

Array = NDArray[Any]
MAX_ACROSS, MAX_DOWN = 4, 5
MAX_POINTS = 20_000  # drawn per panel
_COLOURS = {"solved": "tab:blue", "unsolved": "tab:orange"}


def _numbers(result: StudyResult, names: tuple[str, ...], *, varied: bool) -> dict[str, Array]:
    """Columns with one number per row; with ``varied``, only those that vary."""
    found = {name: result.column(name) for name in names}
    return {name: column for name, column in found.items() if column.ndim == 1 and not (varied and np.ptp(column) == 0)}


def picture(result: StudyResult, path: str | os.PathLike[str] | None = None) -> Any:
    """Draw a panel for each metric and each varied number, runs as points by status, with the median of equal or neighbouring values as a line.

    Args:
        result: result of a study.
        path: also write the figure there; its suffix gives the format (.png, .svg, .pdf).

    Returns:
        A ``matplotlib.figure.Figure``.

    Raises:
        ArgumentError: there is no metric, or nothing varies.
    """
    across = dict(list(_numbers(result, result.study.names, varied=True).items())[:MAX_ACROSS])
    down = dict(list(_numbers(result, result.study.metrics, varied=False).items())[:MAX_DOWN])
    if not down:
        raise ArgumentError("plot: expected a metric that is one number, got none.")
    across = across or {"row": result.column("row")}
    status = result.column("status").astype(str)
    drawn = np.unique(np.linspace(0, len(status) - 1, min(len(status), MAX_POINTS)).astype(int))

    figure = new_figure(figsize=(1.2 + 3.6 * len(across), 0.9 + 2.5 * len(down)), layout="constrained")
    panels = figure.subplots(len(down), len(across), squeeze=False, sharex="col", sharey="row")
    size = float(np.clip(4000 / len(drawn), 3, 30))
    for i, (metric, y) in enumerate(down.items()):
        for j, (name, x) in enumerate(across.items()):
            panel = panels[i, j]
            for word, colour in _COLOURS.items():
                chosen = drawn[status[drawn] == word]
                panel.scatter(x[chosen], y[chosen], s=size, c=colour, alpha=0.5 if len(drawn) > 50 else 0.8, linewidths=0, label=word)
            panel.plot(*_medians(x, y), color="black", linewidth=1.4, label="median")
            panel.grid(alpha=0.3)
            panel.spines[["top", "right"]].set_visible(False)
            if i == len(down) - 1:
                panel.set_xlabel(name)
            if j == 0:
                panel.set_ylabel(_with_unit(metric))
    ended = int((~np.isin(status, list(_COLOURS))).sum())
    title = f"{result.study.model.name}: {len(status):,} runs of {result.study.seconds:g} s"
    figure.suptitle(title + (f", {ended:,} of them ended early and are not shown" if ended else ""), fontsize=11)
    marks, words = panels[0, 0].get_legend_handles_labels()
    shown = [k for k, word in enumerate(words) if word == "median" or (status == word).any()]
    figure.legend([marks[k] for k in shown], [words[k] for k in shown], loc="outside lower center", ncols=3, frameon=False)
    if path is not None:
        save_figure(figure, path)
    return figure


def _with_unit(metric: str) -> str:
    """Return the name of a metric, with its unit if it is built in."""
    unit = re.search(r"\[.*\]$", METRICS[metric][1]) if metric in METRICS else None
    return f"{metric} {unit.group()}" if unit else metric


def _medians(x: Array, y: Array) -> tuple[Array, Array]:
    """Median of y at every value of x, or in 20 groups of neighbours where there are many values."""
    valid = np.isfinite(y)
    x, y = x[valid], y[valid]
    values, which = np.unique(x, return_inverse=True)
    groups = min(20, len(values))
    if not groups:
        return x, y
    group = which * groups // len(values)
    parts = [group == g for g in range(groups)]
    return np.array([np.median(x[part]) for part in parts]), np.array([np.median(y[part]) for part in parts])
