"""Every explicit algorithm on the benchmark set, checked against the dense definition, beside the one that "auto" chooses.

python benchmarks/python/explicit.py [--json FILE] [--fit]

Fails if a result is off by more than TOLERANCE or a choice is more than SLOWER times slower than the best. --fit prints the coefficients of core/operators/explicit/cost.cpp.
"""

import argparse
import json
import sys

import numpy as np
from scipy.optimize import nnls
from timing import best

import delassus as dl

DAMPING, TOLERANCE, SLOWER = 1e-3, 1e-9, 1.3
FEET = {"solo": "LOWER_LEG", "go2": "calf", "g1": "ankle_roll", "talos": ("leg_left_6", "leg_right_6"), "atlas_hands": "_foot"}


def named(model, words):
    words = (words,) if isinstance(words, str) else words
    return [name for name in model.body_names if any(word in name for word in words)]


def tips(model):
    return [b for b in range(1, model.nbody) if b not in model.body_parent]


def cases():
    """The mechanisms and constraints: H hand, F foot, T fingertip; 3 or 6 rows each."""
    iiwa, talos, atlas = dl.load("iiwa"), dl.load("talos"), dl.load("atlas_hands")
    yield "iiwa H3", iiwa, [dl.Connect(iiwa, iiwa.nbody - 1)]
    yield "iiwa H6", iiwa, [dl.Weld(iiwa, iiwa.nbody - 1)]
    for name in ("solo", "go2"):
        model = dl.load(name)
        legs = tips(model)
        if name == "solo":
            yield "solo F3×2", model, [dl.Connect(model, b) for b in legs[:2]]
        yield f"{name} F3×4", model, [dl.Connect(model, b) for b in legs]
    g1 = dl.load("g1")
    yield "g1 F6×2", g1, [dl.Weld(g1, b) for b in named(g1, FEET["g1"])]
    feet, hands = named(talos, FEET["talos"]), named(talos, ("arm_left_7", "arm_right_7"))
    yield "talos F6×2", talos, [dl.Weld(talos, b) for b in feet]
    yield "talos F6×2 H6×2", talos, [dl.Weld(talos, b) for b in feet + hands]
    welds, fingers = [dl.Weld(atlas, b) for b in named(atlas, FEET["atlas_hands"])], named(atlas, "distal")
    yield "atlas_hands F6×2", atlas, welds
    yield "atlas_hands F6×2 T3×5", atlas, welds + [dl.Connect(atlas, b) for b in fingers[:5]]
    yield "atlas_hands F6×2 T3×10", atlas, welds + [dl.Connect(atlas, b) for b in fingers]


def measure(name, model, constraints):
    explicit = dl.ExplicitDelassus(model, constraints)
    costs = explicit.explain()
    q = model.random(0)
    m = explicit.shape[0]
    out = np.empty((m, m))
    operator = dl.DelassusOperator(model, constraints)
    operator.update(q)
    J = operator.jacobian @ np.eye(model.nv)
    G = J @ np.linalg.solve(dl.mass_matrix(model, q), J.T)
    X = np.linalg.inv(G + DAMPING * np.eye(m))
    damping = np.full(m, DAMPING)
    results = {"case": name, "rows": m}
    calls = {("matrix", k): lambda k=k: explicit.matrix(q, method=k, out=out) for k in costs.matrix}
    calls |= {("inverse", k): lambda k=k: explicit.inverse(q, damping, method=k, out=out) for k in costs.inverse}
    times = best(calls, inner=20)
    for what, want in (("matrix", G), ("inverse", X)):
        errors = {k: float(np.abs(call() - want).max() / np.abs(want).max()) for (kind, k), call in calls.items() if kind == what}
        results[what] = {k: {"µs": times[what, k], "error": error} for k, error in errors.items()}
    results["choice"] = {"matrix": costs.matrix_choice, "inverse": costs.inverse_choice}
    results["counts"] = {"matrix": dict(explicit._native.matrix_costs), "inverse": dict(explicit._native.inverse_costs)}
    return results


def report(results):
    """Print times, return what is wrong."""
    wrong = []
    for what in ("matrix", "inverse"):
        print(f"\n{what} [µs], the choice of auto starred")
        for r in results:
            times = {k: v["µs"] for k, v in r[what].items()}
            choice, least = r["choice"][what], min(times.values())
            print(
                f"{r['case']:24}",
                *(f"{k} {t:.2f}{'*' if k == choice else ''}" for k, t in times.items()),
                f" {times[choice] / least:.2f}×",
                sep="  ",
            )
            if times[choice] > SLOWER * least:
                wrong.append(f"{r['case']}, {what}: {choice} takes {times[choice] / least:.2f} times what the best does")
            wrong += [f"{r['case']}, {what}: {k} is off by {v['error']:.2g}" for k, v in r[what].items() if v["error"] > TOLERANCE]
    return wrong


def fit(results):
    """Print start, common, own of every method: least squares of relative errors, nothing negative."""
    for what in ("matrix", "inverse"):
        print(f"\n{what}: start, common, own [µs]")
        for method in results[0][what]:
            times = np.array([r[what][method]["µs"] for r in results])
            counts = np.array([[1.0, *r["counts"][what][method][1:]] for r in results])
            coefficients, _ = nnls(counts / times[:, None], np.ones(len(times)))
            off = np.abs(counts @ coefficients / times - 1).max()
            print(f"  {method:12} {{{', '.join(f'{c:.3g}' for c in coefficients)}}},  // within {off:.0%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", help="file to write")
    parser.add_argument("--fit", action="store_true", help="print the coefficients of the cost model")
    arguments = parser.parse_args()
    results = [measure(*case) for case in cases()]
    wrong = report(results)
    if arguments.fit:
        fit(results)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1, ensure_ascii=False)
    sys.exit("\n".join(wrong) if wrong else 0)
