"""Every explicit algorithm on the benchmark set, checked against the dense definition, beside the one that "auto" chooses.

python benchmarks/python/explicit.py [--json FILE] [--fit]

Fails if a result is off by more than TOLERANCE or a choice is more than SLOWER times slower than the best. --fit prints the coefficients of core/operators/explicit/cost.cpp.
"""

import argparse
import json
import sys

import numpy as np
from scipy.optimize import nnls

import delassus as dl
from delassus.reproduce.timing import best

DAMPING, TOLERANCE, SLOWER = 1e-3, 1e-9, 1.3


def measure(scene):
    name, model, constraints = scene.name, scene.model, scene.constraints
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
    results = [measure(dl.scenes.contact_set(name)) for name in dl.scenes.contact_sets]
    wrong = report(results)
    if arguments.fit:
        fit(results)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1, ensure_ascii=False)
    sys.exit("\n".join(wrong) if wrong else 0)
