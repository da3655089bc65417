"""Table I and figure 2 of "Matrix-Free Delassus Operations".

Matrix-free is :class:`~delassus.DelassusOperator`; explicit is our own LTL matrix, followed by the faster of our Cholesky factor and LAPACK's, on one thread.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from .. import _core, scenes
from ..dynamics import mass_matrix
from ..operators import CholeskyDelassus, DelassusOperator, DenseDelassus, ExplicitDelassus
from ..scenes import Scene
from .items import Item
from .outputs import Claim, Output
from .timing import best_native, in_turns, slope

__all__ = ["ITEMS"]

Array = NDArray[np.float64]
Progress = Callable[[float], object]
PAPER = "Sathya, Montaut, de Mont-Marin, Carpentier: Matrix-Free Delassus Operations: Scalable and Memory-Efficient Algorithms"
DAMPING, TOLERANCE = 1e-4, 1e-9
OPERATIONS = ("first application", "first inverse", "re-application", "re-inverse", "new damping")
_MEMORY = ("cache lines, operator [k]", "memory, operator [kB]", "cache lines, inverse [k]", "memory, inverse [kB]")

# Table I, a scene: contacts (Cassie's four loops among them) and rows; then time [µs], cache lines [k] and memory [kB] of the operator, matrix-free and explicit, and of the inverse, matrix-free and explicit; then
# the time [µs] of re-application, re-inverse and new damping, matrix-free and explicit.
TABLE_1: dict[str, tuple[float, ...]] = {
    "go2-standing": (4, 12, 1.55, 0.7, 26, 3.11, 1.9, 33, 1.64, 1.5, 29, 3.65, 1.2, 32, 0.369, 0.389, 1.112, 0.027, 0.135, 0.402),
    "go2-standing-friction": (4, 24, 1.61, 0.7, 28, 4.64, 2.7, 47, 1.63, 1.6, 32, 5.95, 1.6, 43, 0.399, 0.421, 1.171, 0.052, 0.305, 1.3),
    "go2-fallen": (9, 27, 1.74, 0.7, 38, 5.89, 3.0, 62, 2.42, 2.2, 42, 7.63, 1.9, 56, 0.515, 0.591, 1.911, 0.083, 0.371, 1.671),
    "go2-fallen-friction": (10, 42, 1.77, 0.7, 45, 8.10, 4.3, 97, 2.44, 2.3, 49, 12.00, 2.6, 81, 0.567, 0.62, 1.88, 0.147, 0.601, 3.791),
    "cassie-standing": (8, 24, 2.94, 1.0, 53, 9.27, 2.9, 84, 4.26, 2.3, 69, 10.40, 4.6, 88, 0.77, 0.854, 3.444, 0.052, 0.30, 1.34),
    "cassie-standing-friction": (8, 50, 3.07, 1.3, 57, 16.00, 4.5, 121, 4.51, 2.4, 72, 21.72, 7.8, 143, 0.805, 0.894, 3.604, 0.20, 0.718, 5.798),
    "g1-standing": (8, 24, 3.66, 1.3, 91, 9.37, 5.9, 195, 3.58, 3.1, 110, 10.60, 11.0, 235, 0.919, 0.906, 2.426, 0.051, 0.297, 1.327),
    "g1-standing-friction": (8, 53, 3.96, 1.3, 94, 18.53, 8.0, 254, 3.83, 3.1, 117, 25.00, 16.1, 334, 1.01, 1.00, 2.7, 0.226, 0.796, 6.486),
    "g1-fallen": (23, 69, 4.27, 1.0, 47, 25.98, 2.0, 75, 6.22, 2.4, 62, 37.88, 3.0, 80, 1.43, 1.46, 5.1, 0.379, 1.08, 11.48),
    "g1-fallen-friction": (25, 101, 4.41, 1.0, 50, 42.09, 3.3, 107, 7.33, 2.4, 65, 70.40, 5.5, 127, 1.45, 1.62, 6.06, 0.89, 1.80, 29),
    "box-stack": (120, 360, 9.47, 1.9, 241, 1214, 52.6, 1400, 31.38, 6.7, 269, 2482, 110.7, 1850, 5.22, 7.58, 30.58, 9.51, 14.1, 1257.1),
    "box-pyramid": (288, 864, 14.88, 3.4, 755, 5925, 347.5, 9694, 65.20, 15.9, 826, 23092, 941.6, 15530, 10.7, 15.5, 64.7, 94.9, 87.4, 16822.4),
    "pyramid-with-robots": (108, 324, 20.34, 6.3, 473, 1511, 210.9, 4533, 37.12, 17.9, 730, 2430, 530.7, 5630, 6.84, 8.72, 32.02, 7.36, 12.6, 906.6),
}  # fmt: skip


def printed(scene: str) -> dict[str, tuple[float, float]]:
    """Return the paper's numbers for a scene: matrix-free and explicit, for every quantity."""
    numbers = TABLE_1[scene][2:]
    operator, inverse, again = numbers[:6], numbers[6:12], numbers[12:]
    times = {"first application": (operator[0], operator[3]), "first inverse": (inverse[0], inverse[3])}
    times |= {name: (again[k], again[k + 3]) for k, name in enumerate(OPERATIONS[2:])}
    memory = ((operator[1], operator[4]), (operator[2], operator[5]), (inverse[1], inverse[4]), (inverse[2], inverse[5]))
    return times | dict(zip(_MEMORY, memory, strict=True))


# ---- times ------------------------------------------------------------------------------------------------------------------


def _errors(G: DelassusOperator, scene: Scene, matrix: Array, x: Array) -> tuple[float, float, float]:
    """Relative error of G x and of the explicit matrix against J M⁻¹ Jᵀ, and the backward error of the timed inverse."""
    J = G.jacobian.matmat(np.eye(scene.model.nv))
    dense = J @ np.linalg.solve(mass_matrix(scene.model, scene.q), J.T)
    largest = np.abs(dense).max()
    y = G.solve(x, refine=False)
    residual = dense @ y + DAMPING * y - x
    norm = np.linalg.norm(dense, 2) * np.linalg.norm(y) + np.linalg.norm(x)
    return (
        float(np.abs(G @ x - dense @ x).max() / np.abs(dense @ x).max()),
        float(np.abs(matrix - dense).max() / largest),
        float(np.linalg.norm(residual) / norm),
    )


def _repeat(call: Callable[[], object], times: int) -> None:
    for _ in range(times):
        call()


def measure(scene: Scene, budget: float, *, explicit: bool = True) -> dict[str, Any]:
    """Return times [µs] of the five operations, matrix-free and explicit, without the kinematics and rows common to both; memory [B]; errors."""
    model, q, constraints = scene
    G = DelassusOperator(model, constraints, damping=DAMPING)
    G.update(q)
    m = G.shape[0]
    rng = np.random.default_rng(0)
    x, y, damping = rng.standard_normal(m), np.empty(m), np.full(m, DAMPING)
    native = G._native
    calls: dict[str, tuple[Any, Callable[[], object]]] = {
        "place": (native, lambda: native.place(q)),
        "update": (native, lambda: native.update(q)),
        "damp": (native, lambda: native.set_damping(damping)),
        "apply": (native, lambda: native.apply(x, 1, True, y)),
        "solve": (native, lambda: native.solve(x, 1, True, False, 0, 0.0, 1.0, y)),
    }
    result: dict[str, Any] = {"rows": m, "velocities": model.nv, "contacts": scene.contacts, "memory": [G.nbytes, None]}
    if not explicit:
        t = best_native(calls, budget)
        first = t["update"] - t["place"]
        seen = (first + t["apply"], first + t["damp"] + t["solve"], t["apply"], t["solve"], t["damp"] + t["solve"])
        z = G.solve(x, refine=False)
        w = x
        for _ in range(10):  # lower bound of ‖G‖
            w = G @ (w / np.linalg.norm(w))
        residual = G @ z + DAMPING * z - x
        result["errors"] = {"inverse": float(np.linalg.norm(residual) / (np.linalg.norm(w) * np.linalg.norm(z) + np.linalg.norm(x)))}
        return result | {"times": {name: [ours, None] for name, ours in zip(OPERATIONS, seen, strict=True)}}

    E, P, C = ExplicitDelassus(model, constraints), DenseDelassus(model, constraints), CholeskyDelassus(model, constraints, damping=DAMPING)
    for operator in (P, C):
        operator.update(q)
    matrix = np.empty((m, m))
    calls |= {
        "form": (E._native, lambda: E._native.matrix("ltl", q, matrix)),
        "product": (P._native, lambda: P._native.apply(x, 1, True, y)),
        "factor": (C._native, lambda: C._native.set_damping(damping)),
        "substitute": (C._native, lambda: C._native.solve(x, 1, True, False, 0, 0.0, 1.0, y)),
    }
    E.matrix(q, method="ltl", out=matrix)
    result["memory"][1] = E.nbytes - G.nbytes + matrix.nbytes  # working memory of LTL, and its result
    shifted = np.asfortranarray(matrix + DAMPING * np.eye(m))
    factor, failed = lapack.dpotrf(shifted)
    assert failed == 0, "the explicit matrix is not positive definite"
    t = best_native(calls, budget)
    result["errors"] = dict(zip(("application", "explicit", "inverse"), _errors(G, scene, matrix, x), strict=True))
    library: dict[str, Callable[[], object]] = {
        "product": partial(blas.dsymv, 1.0, shifted, x),
        "factor": partial(lapack.dpotrf, shifted),
        "substitute": partial(lapack.dpotrs, factor, x),
    }
    inner = 1 if m > 100 else 100
    u = in_turns({name: partial(_repeat, call, inner) for name, call in library.items()}, 15 if m > 100 else 60)
    u = {name: 1e6 * seconds / inner for name, seconds in u.items()}
    product, factoring, substitution = (min(t[k], u[k]) for k in ("product", "factor", "substitute"))
    ours, theirs = t["update"] - t["place"], t["form"] - t["place"]
    times = {
        "first application": (ours + t["apply"], theirs + product),
        "first inverse": (ours + t["damp"] + t["solve"], theirs + factoring + substitution),
        "re-application": (t["apply"], product),
        "re-inverse": (t["solve"], substitution),
        "new damping": (t["damp"] + t["solve"], factoring + substitution),
    }
    parts = {"native": t, "LAPACK": u}
    return result | {"times": {name: list(pair) for name, pair in times.items()}, "parts": parts}


# ---- cache lines ------------------------------------------------------------------------------------------------------------


def _operate(native: Any, q: Array, x: Array, y: Array) -> None:
    native.update(q)
    native.apply(x, 1, True, y)


def _invert(native: Any, q: Array, damping: Array, x: Array, y: Array) -> None:
    native.update(q)
    native.set_damping(damping)
    native.solve(x, 1, True, False, 0, 0.0, 1.0, y)


def trace(names: list[str], most: int) -> None:
    """Run the work that callgrind counts: for every scene the operator and the inverse, and up to ``most`` rows also the explicit ones; one dump each."""
    for name in names:
        model, q, constraints = scenes.load(name)
        G = DelassusOperator(model, constraints, damping=DAMPING)
        G.update(q)
        native, m = G._native, G.shape[0]
        x, y, damping = np.ones(m), np.empty(m), np.full(m, DAMPING)
        ways = [(native, partial(_operate, native, q, x, y)), (native, partial(_invert, native, q, damping, x, y))]
        if m <= most:
            explicit, X = ExplicitDelassus(model, constraints)._native, np.empty((m, m))
            ways += [(explicit, partial(explicit.matrix, "ltl", q, X)), (explicit, partial(explicit.inverse, "ltl", q, damping, X))]
        for owner, work in ways:
            work()  # allocate memory
            owner.traced = True
            _core.callgrind(4)
            work()
            _core.callgrind(5)
            _core.callgrind(0)
            owner.traced = False


def cache_lines(names: list[str], most: int) -> tuple[dict[str, list[float | None]], str]:
    """Count 64-byte lines that are read or written, starting from an empty cache large enough for all, as in the paper: callgrind with 32 MB.

    Returns:
        for every scene, in thousands: operator and inverse, matrix-free, then both explicit; and the reason if there are none.
    """
    if shutil.which("valgrind") is None:
        return {}, "valgrind is not installed"
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no", "--cache-sim=yes", "--D1=33554432,8,64", "--smc-check=all-non-file",
                   f"--callgrind-out-file={folder}/count", sys.executable, "-c",
                   f"from delassus.reproduce.matrix_free import trace; trace({json.dumps(names)}, {most})"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, check=False)
        if done.returncode != 0:
            unknown = "valgrind met an instruction that it does not know (of AVX-512, most likely): build with -C cmake.define.DELASSUS_ARCH=x86-64-v3"
            return {}, unknown if done.returncode == -signal.SIGILL else f"valgrind ended with {done.returncode}"
        counts = iter(_missed(Path(folder) / f"count.{k}") for k in range(1, 1 + len(list(Path(folder).glob("count.*")))))
        lines: dict[str, list[float | None]] = {}
        for name in names:
            lines[name] = [next(counts), next(counts)]
            lines[name] += [next(counts), next(counts)] if scenes.load(name).rows <= most else [None, None]
    return lines, ""


def _missed(path: Path) -> float:
    """Thousands of cold misses in a callgrind dump."""
    text = path.read_text().splitlines()
    events = next(line for line in text if line.startswith("events:")).split()[1:]
    totals = next(line for line in text if line.startswith("totals:")).split()[1:]
    numbers = dict(zip(events, map(int, totals), strict=False))
    return (numbers.get("D1mr", 0) + numbers.get("D1mw", 0)) / 1000


# ---- table I ----------------------------------------------------------------------------------------------------------------


def _table_1(quick: bool, progress: Progress) -> Output:
    measured: dict[str, dict[str, Any]] = {}
    for k, name in enumerate(scenes.names):
        measured[name] = measure(scenes.load(name), 0.3 if quick else 2.0)
        progress(0.6 * (k + 1) / len(scenes.names))
    lines, absent = cache_lines(list(scenes.names), 110 if quick else 1000)
    rows = []
    for name, found in measured.items():
        memory, counts = found["memory"], lines.get(name, [None] * 4)
        ours = dict(found["times"])
        ours |= {
            _MEMORY[0]: (counts[0], counts[2]),
            _MEMORY[1]: (memory[0] / 1000, memory[1] / 1000),
            _MEMORY[2]: (counts[1], counts[3]),
            _MEMORY[3]: (memory[0] / 1000, (memory[1] + 8 * found["rows"] ** 2) / 1000),
        }
        for quantity, paper in printed(name).items():
            pairs = [(p, o, None if o is None else o / p) for p, o in zip(paper, ours[quantity], strict=True)]
            mine = ours[quantity]
            speed = paper[1] / paper[0], None if mine[0] is None or mine[1] is None else mine[1] / mine[0]
            rows.append(
                (name, found["contacts"], found["rows"], quantity if "[" in quantity else f"{quantity} [µs]", *pairs[0], *pairs[1], *speed)
            )
    return _judged_table(measured, tuple(rows), lines, absent)


def _judged_table(measured: dict[str, dict[str, Any]], rows: tuple[Any, ...], lines: dict[str, Any], absent: str) -> Output:
    gains = {name: {k: b / a for k, (a, b) in found["times"].items()} for name, found in measured.items()}
    pyramid, parts = gains["box-pyramid"], measured["box-pyramid"]["parts"]["native"]
    ours, form = measured["box-pyramid"]["times"], parts["form"] - parts["place"]
    from_q = (parts["form"] + measured["box-pyramid"]["times"]["re-application"][1]) / (parts["update"] + parts["apply"])
    large = [name for name in measured if measured[name]["rows"] > 300]
    worst = {k: max(found["errors"][k] for found in measured.values()) for k in ("application", "explicit", "inverse")}
    linear = [found["memory"][0] / (found["rows"] + found["velocities"]) for found in measured.values()]
    claims = (
        Claim("On the pyramid of boxes the first application is at least 400 times as fast as forming the matrix by LTL and multiplying", pyramid["first application"] >= 400,
              {"paper": 5925 / 14.88, "ours": pyramid["first application"], "ours, matrix without its product": form / ours["first application"][0], "ours from q, kinematics on both sides": from_q}),
        Claim("There the first inverse is at least 350 times as fast", pyramid["first inverse"] >= 350, {"paper": 23092 / 65.2, "ours": pyramid["first inverse"]}),
        Claim("First application and first inverse are faster without a matrix in all scenes",
              all(g[k] > 1 for g in gains.values() for k in OPERATIONS[:2]), {f"least, {k}": min(g[k] for g in gains.values()) for k in OPERATIONS[:2]}),
        Claim("Re-application is faster with the matrix where there are few rows", gains["go2-standing"]["re-application"] < 1,
              {"go2-standing": gains["go2-standing"]["re-application"]}),
        Claim("Without a matrix it is faster on the stack and the pyramid of boxes", min(gains[n]["re-application"] for n in ("box-stack", "box-pyramid")) > 1,
              {n: gains[n]["re-application"] for n in ("box-stack", "box-pyramid")}),
        Claim("A new damping is cheaper without a matrix wherever rows are more than 300", min(gains[n]["new damping"] for n in large) > 1,
              {n: gains[n]["new damping"] for n in large}),
        Claim("Memory without a matrix grows with rows and velocities, not with their square", max(linear) / min(linear) < 4,
              {"least bytes per row and velocity": min(linear), "most": max(linear), "explicit over matrix-free, pyramid": measured["box-pyramid"]["memory"][1] / measured["box-pyramid"]["memory"][0]}),
        Claim("Every timed result is correct: G x and the explicit matrix to 1e-9, the inverse to a backward error of 1e-9", max(worst.values()) < TOLERANCE, worst),
    )  # fmt: skip
    told = "" if lines else f" Cache lines: {absent}."
    note = (
        f"On the pyramid of boxes the first application is {pyramid['first application']:.0f} times as fast without a matrix (paper 398) and the first inverse "
        f"{pyramid['first inverse']:.0f} times (paper 354). Both sides are faster than the paper's: our LTL forms its matrix in {form / 1000:.2f} ms (paper 5.9 ms with the product), our operator takes "
        f"{ours['first application'][0]:.1f} µs (paper 14.9 µs). Products and substitutions with the matrix are slower, {ours['re-application'][1]:.0f} and {ours['re-inverse'][1]:.0f} µs (paper 95 and 87 µs): its 6 MB do not stay in the "
        f"caches here; the matrix alone takes {form / ours['first application'][0]:.0f} times as long as our first application. "
        "Times leave out kinematics and rows, which are the same on both sides; ours of the first inverse have the factor of M in them, which a product needs. Cache lines "
        "are counted from q on, explicit ones of the inverse matrix itself; our memory is that of operator and inverse together." + told
    )

    def draw(figure: Any) -> None:
        figure.set_size_inches(7.2, 5.0)
        axes = figure.subplots(1, 2, sharey=True)
        names = list(measured)
        place = np.arange(len(names))[::-1]
        for ax, operation in zip(axes, OPERATIONS[:2], strict=True):
            ax.barh(place + 0.2, [gains[n][operation] for n in names], 0.38, color="C0", label="ours")
            ax.barh(place - 0.2, [printed(n)[operation][1] / printed(n)[operation][0] for n in names], 0.38, color="0.7", label="paper")
            ax.set_xscale("log")
            ax.set_xlim(0.8, None)
            ax.axvline(1, color="k", lw=0.6)
            ax.set_xlabel(f"explicit / matrix-free time,\n{operation}")
            ax.grid(axis="x", alpha=0.3)
        axes[0].set_yticks(place, [f"{n} ({measured[n]['rows']} rows)" for n in names])
        axes[1].legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 0.45))

    columns = ("scene", "contacts", "rows", "quantity", "matrix-free, paper", "matrix-free, ours", "ratio", "explicit, paper", "explicit, ours", "ratio", "explicit / matrix-free, paper", "ours")  # fmt: skip
    return Output(
        "times, cache lines and memory of the operator and its inverse",
        columns,
        rows,
        note,
        claims,
        {"scenes": measured, "cache_lines": lines},
        draw,
    )


# ---- figure 2 ---------------------------------------------------------------------------------------------------------------


def _fig_2(quick: bool, progress: Progress) -> Output:
    both = (3, 10, 30, 60, 100) if quick else (3, 10, 20, 30, 60, 100, 150, 200)
    matrix_free_only = (300, 1000) if quick else (300, 600, 1000, 2000)
    sizes = (*both, *matrix_free_only)
    found: dict[int, dict[str, Any]] = {}
    for k, links in enumerate(sizes):
        found[links] = measure(scenes.swimmer_scene(links), 0.2 if quick else 2.0, explicit=links in both)
        progress((k + 1) / len(sizes))
    velocities = {links: found[links]["velocities"] for links in sizes}
    # asymptotic growth: from 30 links on, where the work outweighs the overhead of a call
    far = [n for n in sizes if n >= 30]
    slopes = {f"matrix-free, {op}": slope([velocities[n] for n in far], [found[n]["times"][op][0] for n in far]) for op in OPERATIONS}
    dense = [n for n in both if n >= 30]
    slopes |= {f"explicit, {op}": slope([velocities[n] for n in dense], [found[n]["times"][op][1] for n in dense]) for op in OPERATIONS}
    rows = tuple(
        (
            links,
            f["velocities"],
            f["contacts"],
            f["rows"],
            *(value for op in OPERATIONS for value in f["times"][op]),
            max(f["errors"].values()),
        )
        for links, f in found.items()
    )
    columns = (
        "links",
        "velocities",
        "contacts",
        "rows",
        *(f"{op}, {way} [µs]" for op in OPERATIONS for way in ("matrix-free", "explicit")),
        "largest error",
    )
    free = [slopes[f"matrix-free, {op}"] for op in OPERATIONS]
    firsts = [slopes[f"explicit, {op}"] for op in ("first application", "first inverse", "new damping")]
    claims = (
        Claim("Matrix-free operations grow linearly with the number of velocities", min(free) > 0.85 and max(free) < 1.15, {op: slopes[f"matrix-free, {op}"] for op in OPERATIONS}),
        Claim("Explicit ones grow faster than linearly", min(slopes[f"explicit, {op}"] for op in OPERATIONS) > 1.3, {op: slopes[f"explicit, {op}"] for op in OPERATIONS}),
        Claim("A swimmer of three links has 5 velocities, 6 contacts and 18 rows", rows[0][1:4] == (5, 6, 18), dict(zip(("velocities", "contacts", "rows"), map(float, rows[0][1:4]), strict=True))),
        Claim("Timed results are correct to 1e-6", max(r[-1] for r in rows) < 1e-6, {"largest error": max(r[-1] for r in rows)}),
    )  # fmt: skip
    note = (
        f"From 30 links on, matrix-free times grow as n to the power {min(free):.2f} to {max(free):.2f}; explicit ones, up to {both[-1]} links, to the power {min(firsts):.2f} to "
        f"{max(firsts):.2f} where a matrix is formed or factored. The paper prints no numbers for its figure 2b, only the two shapes, and both are found."
    )

    def draw(figure: Any) -> None:
        figure.set_size_inches(7.2, 3.8)
        axes = figure.subplots(1, 2, sharey=True)
        for ax, operations, title in ((axes[0], OPERATIONS[:2], "first"), (axes[1], OPERATIONS[2:], "again")):
            for c, op in enumerate(operations):
                for way, style in ((0, "o-"), (1, "s--")):
                    points = [(velocities[n], found[n]["times"][op][way]) for n in sizes if found[n]["times"][op][way] is not None]
                    name = f"{'explicit' if way else 'matrix-free'}, {op}"
                    ax.loglog(
                        *zip(*points, strict=True),
                        style,
                        ms=3,
                        lw=1,
                        color=f"C{c}",
                        mfc="w" if way else None,
                        label=f"{name}: $n^{{{slopes[name]:.2f}}}$",
                    )
            ax.set_xlabel("velocities n")
            ax.grid(alpha=0.3)
            ax.set_title(title, fontsize=9)
            ax.legend(frameon=False, fontsize=6.5, loc="upper left")
        axes[0].set_ylabel("time [µs]")
        axes[0].set_ylim(None, 3000 * max(v for f in found.values() for pair in f["times"].values() for v in pair if v is not None))

    data = {"slopes": slopes, "fitted from": 30, "sizes": {str(n): f for n, f in found.items()}}
    return Output("time against the length of a swimmer, with fitted exponents", columns, rows, note, claims, data, draw)


ITEMS = (
    Item("matrix-free/table-1", PAPER, "times, cache lines and memory of the operator and its inverse in 13 scenes", _table_1),
    Item("matrix-free/fig-2", PAPER, "time against the length of a swimmer", _fig_2),
)
