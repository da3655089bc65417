"""What a Python user of the Delassus operator sees, results compared with the dense definition first.

python benchmarks/python/operators.py [--json FILE]
"""

import argparse
import json

import numpy as np

import delassus as dl
from delassus.reproduce.timing import best

SCENES = ("go2-standing", "g1-standing", "g1-fallen-friction", "box-stack")
COLUMNS, BATCH, DAMPING, TOLERANCE = 64, 128, 1e-4, 1e-9


def measure(name):
    scene = dl.scenes.load(name)
    G = dl.DelassusOperator(scene.model, scene.constraints, damping=DAMPING)
    G.update(scene.q)
    rng = np.random.default_rng(0)
    m = G.shape[0]
    x, y = rng.standard_normal(m), np.empty(m)
    X, Y = rng.standard_normal((m, COLUMNS)), np.empty((m, COLUMNS))

    # J M⁻¹ Jᵀ from the columns of J and the mass matrix
    J = G.jacobian.matmat(np.eye(scene.model.nv))
    dense = J @ np.linalg.solve(dl.mass_matrix(scene.model, scene.q), J.T)
    error = max(np.abs(G @ X - dense @ X).max() / np.abs(dense @ X).max(), np.abs(G @ x - dense @ x).max() / np.abs(dense @ x).max())
    if not error < TOLERANCE:
        raise SystemExit(f"{name}: G X differs from the dense definition by {error:.1e}")

    B = dl.BatchDelassusOperator(scene.model, scene.constraints, BATCH)
    Q, XB, YB = np.tile(scene.q, (BATCH, 1)), rng.standard_normal((BATCH, m)), np.empty((BATCH, m))
    B.update(Q)
    calls = {
        "update": lambda: G.update(scene.q),
        "matvec": lambda: G.matvec(x, out=y),
        "solve, unrefined": lambda: G.solve(x, refine=False, out=y),
        "solve": lambda: G.solve(x, out=y),
        f"{COLUMNS} columns": lambda: G.matmat(X, out=Y),
    }
    times = best(calls)
    batch = best({"batch update": lambda: B.update(Q), "batch matvec": lambda: B.matvec(XB, out=YB)}, inner=4)
    times |= {call: time / BATCH for call, time in batch.items()}
    times[f"{COLUMNS} columns / {COLUMNS} matvec"] = times[f"{COLUMNS} columns"] / (COLUMNS * times["matvec"])
    return {"scene": name, "rows": m, "error": float(error), **times}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = [measure(name) for name in SCENES]
    print("| " + " | ".join(rows[0]) + " |\n" + "|---" * len(rows[0]) + "|")
    for row in rows:
        print(
            "| " + " | ".join(f"{v:.0e}" if k == "error" else f"{v:.3g}" if isinstance(v, float) else str(v) for k, v in row.items()) + " |"
        )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=2)


if __name__ == "__main__":
    main()
