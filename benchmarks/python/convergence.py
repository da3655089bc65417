"""How fast proximal iterations converge where rows are redundant: Talos on two soles, four contacts each, 24 rows of which 12 are independent.

python benchmarks/python/convergence.py [--states 1000] [--mu 1e6] [--json FILE]

Velocities keep the contacts (J v = 0), torques are random. Prints quartiles of the largest |J ν̇ + γ| after every iteration, of the method's own report, and of what is recomputed from its last
accelerations; fails if a state needs more than LIMIT iterations to come below GOAL.
"""

import argparse
import json
import sys

import numpy as np

import delassus as dl
from delassus.reproduce.constrained import convergence, whiskers

GOAL, LIMIT = 1e-10, 10
FEET = ("leg_left_6_link", "leg_right_6_link")
CORNERS = [(x, y, -0.107) for x in (-0.1, 0.1) for y in (-0.05, 0.05)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=1000)
    parser.add_argument("--mu", type=float, default=1e6)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    model = dl.load("talos")
    contacts = [dl.PointContact(model, foot, point=p) for foot in FEET for p in CORNERS]
    results = convergence(model, contacts, ["lcaba"], arguments.states, mu=arguments.mu, max_iterations=LIMIT, tolerance=GOAL)["lcaba"]
    histories, found = results["histories"], results["found"]
    iterations = [len(h) if s == "solved" else LIMIT + 1 for h, s in zip(histories, results["status"], strict=True)]
    rows = []
    for n in range(LIMIT):
        reached = [h[n] for h in histories if len(h) > n]
        if reached:
            rows.append({"iteration": n + 1, "states": len(reached)} | whiskers(reached))
    for row in rows:
        print(
            f"iteration {row['iteration']:2}: {row['states']:5} states, "
            + ", ".join(f"{k} {row[k]:.1e}" for k in ("least", "lower", "median", "upper", "most"))
        )
    counts = {int(n): int(c) for n, c in zip(*np.unique(iterations, return_counts=True), strict=True)}
    print("iterations:", counts, "| recomputed residual:", {k: f"{x:.1e}" for k, x in whiskers(found).items()})
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(
                {
                    "mu": arguments.mu,
                    "residual": "relative to the largest |γ| or 1",
                    "iterations": rows,
                    "needed": counts,
                    "recomputed": whiskers(found),
                },
                file,
                indent=1,
            )
    return max(iterations) > LIMIT


if __name__ == "__main__":
    sys.exit(main())
