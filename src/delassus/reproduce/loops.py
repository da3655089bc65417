"""Explicit matrices through loops: operation counts and times as the number of loops grows, compared with the sparse factor of M.

"Matrix-free Delassus operations" leaves optimal explicit algorithms for loops to future work. Ours are PV-OSIMr with rows on several links, and LCABA-OSIM (docs/algorithms/explicit_loops.md).
Operations are counted as in the other papers, on CasADi expressions in link frames, see :mod:`delassus.textbook.counting`; times are those of the compiled algorithms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from ..constraints import Constraint, PointContact, from_loop
from ..model import Model, load
from ..operators import DelassusOperator, ExplicitDelassus
from ..scenes import box_stack, ladder, ring, stewart_platforms
from ..types import InverseMethod, MatrixMethod
from .items import Item
from .osim import operations
from .outputs import Cell, Claim, Output
from .timing import best_native, slope

__all__ = ["FAMILIES", "ITEMS", "explicit_loops", "stacked"]

Progress = Callable[[float], object]
Case = tuple[Model, list[Constraint]]

PAPER = "This library, after the future work of Sathya, Montaut, de Mont-Marin, Carpentier: Matrix-free Delassus operations"
DAMPING = 1e-2
# our method and the sparse factor of M: textbook names, compiled names
PAIRS = {"G": (("pv-osimr", "ltl"), ("pv-osimr", "ltl")), "(G + ε)⁻¹": (("lcaba-osim", "ltl-inverse"), ("lcaba-osim", "ltl"))}
NAMES = {"pv-osimr": "PV-OSIMr", "ltl": "LTL", "lcaba-osim": "LCABA-OSIM", "ltl-inverse": "LTL and Cholesky"}
LOOKS = {
    "pv-osimr": ("#c0311a", "o", "-"),
    "ltl": ("#e8a090", "D", "--"),
    "lcaba-osim": ("#1f5fa8", "^", "-"),
    "ltl-inverse": ("#93b4d6", "s", "--"),
}


def _looped(model: Model) -> Case:
    return model, [from_loop(model, loop) for loop in model.loops]


def stacked(boxes: int) -> Case:
    """Boxes on top of each other, four contact points per pair."""
    model = box_stack(boxes)
    points = [(x, y, -0.1) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    floor: list[Constraint] = [PointContact(model, "box0", point=p) for p in points]
    above = [
        PointContact(model, f"box{k}", point=(x, y, z), other=f"box{k - 1}", other_point=(x, y, -z))
        for k in range(1, boxes)
        for x, y, z in points
    ]
    return model, [*floor, *above]


@dataclass(frozen=True)
class Family:
    """A mechanism of variable size.

    Attributes:
        make: function of the size.
        counted: sizes at which operations are counted; the last three are fitted.
        timed: sizes at which times are measured; all are fitted.
        grows: dimension that grows: "m", and n with it, or "n" with fixed m.
        sparse_until: largest size at which LTL is timed; its time grows with the cube of the depth.
    """

    make: Callable[[int], Case]
    counted: tuple[int, ...]
    timed: tuple[int, ...]
    grows: str = "m"
    sparse_until: int = 1600


FAMILIES = {
    "ladder": Family(lambda k: _looped(ladder(k)), (4, 8, 16, 24), (40, 80, 160)),
    "box stack": Family(stacked, (2, 4, 6, 8), (20, 40, 80)),
    "Stewart platforms": Family(lambda k: _looped(stewart_platforms(k)), (1, 2, 3, 4), (8, 16, 32)),
    "ring": Family(lambda k: _looped(ring(k)), (16, 32, 64, 128), (400, 800, 1600, 3200, 6400), "n"),
}


def _power(sizes: list[int], values: list[int]) -> float | None:
    """Exponent of the last three; None if nothing is counted: free bodies are constant in the papers' coordinates, and so is their G."""
    return slope(sizes[-3:], values[-3:]) if min(values[-3:]) > 0 else None


def _size(family: Family, case: Case) -> int:
    model, constraints = case
    return model.nv if family.grows == "n" else sum(c.rows for c in constraints)


def _time(case: Case, budget: float, sparse: bool) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Best time [µs] and error against the operator of every method by task, LTL only if ``sparse``; for inverses the backward error."""
    model, constraints = case
    q, explicit = model.neutral(), ExplicitDelassus(model, constraints)
    native = explicit._native
    operator = DelassusOperator(model, constraints)
    operator.update(q)
    G, out = operator.to_matrix(), np.empty(operator.shape)
    damping, unit = np.full(len(G), DAMPING), np.eye(len(G))
    A = G + DAMPING * unit
    off: dict[tuple[str, str], float] = {}
    calls: dict[str, tuple[Any, Callable[[], object]]] = {}
    keys: dict[str, tuple[str, str]] = {}
    for task, (_, compiled) in PAIRS.items():
        for name in compiled[: 1 + sparse]:
            if task == "G":
                call, X = partial(native.matrix, name, q, out), explicit.matrix(q, method=cast(MatrixMethod, name))
                off[task, name] = float(np.abs(X - G).max() / np.abs(G).max())
            else:
                call, X = partial(native.inverse, name, q, damping, out), explicit.inverse(q, damping, method=cast(InverseMethod, name))
                off[task, name] = float(np.linalg.norm(A @ X - unit, axis=0).max() / (np.linalg.norm(A) * np.linalg.norm(X) + 1))
            calls[f"{task} {name}"], keys[f"{task} {name}"] = (native, call), (task, name)
    return {keys[key]: t for key, t in best_native(calls, budget).items()}, off


def explicit_loops(quick: bool, progress: Progress) -> Output:
    """Grow mechanisms with loops, and fit exponents to operations and times of both methods for G and its damped inverse."""
    budget = 0.1 if quick else 1.5  # seconds per mechanism
    table: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    exponents: dict[str, float] = {}
    worst = {"ours": 0.0, "LTL": 0.0}
    step = 0
    steps = 2 * len(FAMILIES) + 1
    for label, family in FAMILIES.items():
        counted = family.counted[:-1] if quick else family.counted
        timed = tuple(k // 2 for k in family.timed) if quick else family.timed
        cases, large = [family.make(k) for k in counted], [family.make(k) for k in timed]
        sizes, large_sizes = [_size(family, c) for c in cases], [_size(family, c) for c in large]
        counts = operations({n for pair, _ in PAIRS.values() for n in pair}, cases)
        progress((step := step + 1) / steps)
        measured = [_time(case, budget, k <= family.sparse_until) for k, case in zip(timed, large, strict=True)]
        progress((step := step + 1) / steps)
        data[label] = {"grows": family.grows, "sizes": sizes, "counts": counts, "timed sizes": large_sizes, "times": {}}
        for task, (readable, compiled) in PAIRS.items():
            for name, fast in zip(readable, compiled, strict=True):
                times = [of[task, fast] for of, _ in measured if (task, fast) in of]
                error = max(off[task, fast] for _, off in measured if (task, fast) in off)
                side = "LTL" if fast == "ltl" else "ours"
                worst[side] = max(worst[side], error)
                data[label]["times"][f"{task} {fast}"] = times
                power, time_power = _power(sizes, counts[name]), slope(large_sizes[: len(times)], times)
                if power is not None:
                    exponents[f"{label} {name}"] = power
                exponents[f"{label} {name}, time"] = time_power
                table.append(
                    (
                        label,
                        task,
                        NAMES[name],
                        family.grows,
                        power,
                        counts[name][-1],
                        sizes[-1],
                        time_power,
                        times[-1],
                        large_sizes[len(times) - 1],
                        error,
                    )
                )
    model = load("cassie")
    cassie = operations({n for pair, _ in PAIRS.values() for n in pair}, [_looped(model)])
    data["cassie"] = {name: of[0] for name, of in cassie.items()}
    rows = sum(c.rows for c in _looped(model)[1])
    table += [
        ("cassie", task, NAMES[name], None, None, cassie[name][0], rows, None, None, None, None)
        for task, (names, _) in PAIRS.items()
        for name in names
    ]
    ours = [f"{label} {name}" for label in FAMILIES for name in ("pv-osimr", "lcaba-osim")]
    bound = {key: 1.1 if key.startswith("ring") else 2.1 for key in ours}
    local = {key: exponents[key] for key in ours if key in exponents}
    timed_local = {key: exponents[f"{key}, time"] for key in ours}
    ladder_gain = {
        task: data["ladder"]["times"][f"{task} {fast[1]}"][-1] / data["ladder"]["times"][f"{task} {fast[0]}"][-1]
        for task, (_, fast) in PAIRS.items()
    }
    return Output(
        title="Explicit matrices through loops: operations and times as mechanisms grow",
        columns=("mechanism", "matrix", "algorithm", "what grows", "exponent of operations", "operations", "at size", "exponent of times", "time [µs]", "at size ", "off by"),
        rows=tuple(table),
        note="Exponents of operations are those of the last three sizes, of times those of all: ladders of 40 to 160 rungs, 20 to 80 boxes, 8 to 32 platforms, rings of 400 to 6,400 links (half as many in a quick run). With loops that touch their neighbours only, operations of PV-OSIMr and LCABA-OSIM grow with at most the square of m where n grows with it, and with n where m is fixed; "
        f"LTL grows with the cube of the depth, and its inverse with that of m. On the longest ladder LTL takes {ladder_gain['G']:.1f} times the time of PV-OSIMr for G and {ladder_gain['(G + ε)⁻¹']:.1f} times that of LCABA-OSIM for the inverse. "
        f"All matrices were checked against the operator, inverses by their backward error: ours are at most {worst['ours']:.0e} off, LTL's {worst['LTL']:.0e}, on the longest ladder, whose M has a condition number of 5e9. Times are those of the core alone, on the thread's clock. On cassie, with few rows, LTL needs fewer operations.",
        claims=(
            Claim("Operations of PV-OSIMr and LCABA-OSIM grow with an exponent of at most 2.1 in m where n grows with it, and of 1.1 in n where m is fixed.", all(local[k] <= bound[k] for k in local), local),
            Claim("So do their times.", all(timed_local[k] <= bound[k] for k in timed_local), timed_local),
            Claim("On a ladder LTL grows with the cube.", exponents["ladder ltl-inverse"] > 2.5 and exponents["ladder ltl"] > 2.3, {k: v for k, v in exponents.items() if k.startswith("ladder ltl")}),
            Claim("Every timed matrix of ours is correct to 1e-9.", worst["ours"] < 1e-9, {"largest error": worst["ours"], "of LTL": worst["LTL"]}),
        ),
        data=data,
        figure=partial(_draw, data),
    )  # fmt: skip


def _draw(data: dict[str, Any], figure: Any) -> None:
    """Operations above, times below, one column per family: both matrices by both methods, with the fitted exponents."""
    figure.set_size_inches(10.0, 5.8)
    axes = figure.subplots(2, len(FAMILIES), squeeze=False)
    lines: dict[str, Any] = {}
    for (operations_of, times_of), label in zip(axes.T, FAMILIES, strict=True):
        of = data[label]
        for task, (names, compiled) in PAIRS.items():
            for name, fast in zip(names, compiled, strict=True):
                style = {
                    "color": LOOKS[name][0],
                    "marker": LOOKS[name][1],
                    "markersize": 3.5,
                    "linewidth": 1.2,
                    "linestyle": LOOKS[name][2],
                }
                power, times = _power(of["sizes"], of["counts"][name]), of["times"][f"{task} {fast}"]
                if power is not None:
                    operations_of.loglog(of["sizes"], of["counts"][name], label=f"{power:.2f}", **style)
                sizes = of["timed sizes"][: len(times)]
                (line,) = times_of.loglog(sizes, times, label=f"{slope(sizes, times):.2f}", **style)
                lines.setdefault(f"{task} by {NAMES[name]}", line)
        for ax, sizes in ((operations_of, of["sizes"]), (times_of, of["timed sizes"])):
            ax.set_xticks(sizes, [f"{k:,}" for k in sizes])
            ax.minorticks_off()
            ax.tick_params(labelsize=7)
            ax.grid(alpha=0.25)
            low, high = ax.get_ylim()
            ax.set_ylim(low, high * (high / low) ** 0.45)  # space for the exponents
            ax.legend(frameon=False, fontsize=7, loc="upper left", ncols=2, columnspacing=1.0, title="exponents", title_fontsize=7)
        operations_of.set_title(label, fontsize=9)
        times_of.set_xlabel("rows m" if of["grows"] == "m" else "joints n, with m = 3", fontsize=8)
    axes[0][0].set_ylabel("operations", fontsize=8)
    axes[1][0].set_ylabel("time [µs]", fontsize=8)
    figure.legend(lines.values(), lines, loc="outside upper center", ncols=len(lines), frameon=False, fontsize=8)


ITEMS = (
    Item(
        "loops/explicit-loops",
        paper=PAPER,
        needs=("symbolic",),
        title="explicit matrices through loops: orders of operations and times",
        make=explicit_loops,
    ),
)
