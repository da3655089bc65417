"""Contact steps of the swinging pendulum of Jain's paper, table 2: operational space beside links as bodies of their own, velocities compared first.

The pendulum is simulated with the operational-space formulation; then steps from some of its states in contact, each with the four nearest contacts, are timed in both formulations.

python benchmarks/python/complementarity.py [--links N …] [--json FILE]
"""

import argparse
import json

from delassus.reproduce.complementarity import TABLE_2, Pendulum, contact_steps, states_in_contact, swing

SECONDS, STEP, STATES, TURNS, TOLERANCE = 2.0, 1e-3, 8, 120, 1e-8


def measure(links):
    pendulum = Pendulum(links)
    motion = swing(pendulum, "os", STEP, SECONDS)
    row = contact_steps(pendulum, states_in_contact(motion, STATES), TURNS)
    if not row["difference"] < TOLERANCE:
        raise SystemExit(f"{pendulum.model.name}: velocities differ by {row['difference']:.1e}")
    ratios = {"ratio": row["nmc-os"] / row["os"], "ratio, solve": row["nmc-os, solve"] / row["os, solve"]}
    return {"links": links, "paper": TABLE_2[links][2] if links in TABLE_2 else None} | row | ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, nargs="*", default=list(TABLE_2))
    parser.add_argument("--json")
    options = parser.parse_args()
    print("| links | sizes OS, NMC/OS, NMC | difference | OS, µs | NMC/OS, µs | ratio | of it solve_lcp, µs | ratio | paper's ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for links in options.links:
        row = measure(links)
        rows.append(row)
        print(
            f"| {links} | {', '.join(map(str, row['sizes'].values()))} | {row['difference']:.0e} | {row['os']:.0f} | {row['nmc-os']:.0f} | {row['ratio']:.1f} "
            f"| {row['os, solve']:.0f}, {row['nmc-os, solve']:.0f} | {row['ratio, solve']:.1f} | {row['paper'] or ''} |",
            flush=True,
        )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
