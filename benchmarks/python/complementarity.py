"""Contact steps of the swinging pendulum of 004, table 2: operational space beside links as bodies of their own, velocities compared first.

The pendulum starts at π/4 with 1 rad/s, falls on the floor, hits the wall and itself; friction 0.5, restitution 0.7, four friction directions. It is simulated with the
operational-space formulation; then steps from some of its states in contact, each with the four nearest contacts, are timed in both formulations.

python benchmarks/python/complementarity.py [--links N …] [--json FILE]
"""

import argparse
import json

import numpy as np
from timing import best

import delassus as dl

PAPER = {3: 3.6, 6: 6.5, 12: 16.1, 15: 25.6, 24: 49.7, 30: 55.6}
FRICTION, RESTITUTION, CONTACTS = 0.5, 0.7, 4
SECONDS, STRIDE, STEP, STATES, TOLERANCE = 2.0, 1e-3, 1e-4, 8, 1e-8


def nearest(model, q, most):
    """Gaps and contacts of balls with floor, wall and each other, the nearest first."""
    n, radius = model.nv, 6.0 / model.nv
    X = dl.body_placements(model, q)[1:]
    centers = X[:, :3, 3] - radius * X[:, :3, 2]
    found = []
    for k, c in enumerate(centers):
        found.append((c[2] - radius, k, None, (0.0, 0.0, 1.0)))
        found.append((4.0 - c[0] - radius, k, None, (-1.0, 0.0, 0.0)))
        for j in range(k + 2, n):
            apart = c - centers[j]
            far = np.linalg.norm(apart)
            found.append((far - 2 * radius, k, j, tuple(apart / far)))
    found.sort(key=lambda f: f[0])

    def place(k, towards):
        return X[k, :3, :3].T @ (centers[k] + radius * np.array(towards) - X[k, :3, 3])

    contacts = []
    for _, k, j, normal in found[:most]:
        other = {} if j is None else {"other": f"ball{j}", "other_point": place(j, normal)}
        contacts.append(dl.PointContact(model, f"ball{k}", point=place(k, -np.array(normal)), normal=normal, friction=FRICTION, **other))
    return np.array([f[0] for f in found[:most]]), contacts


def swing(model):
    """States in contact along the way."""
    q, v = model.neutral(), model.zero_velocity()
    q[0], v[0] = np.pi / 4, -1.0
    states = []
    for _ in range(round(SECONDS / STRIDE)):
        gaps, contacts = nearest(model, q, 2 * CONTACTS)
        touching = [c for gap, c in zip(gaps, contacts, strict=True) if gap < 1e-3]
        if touching:
            states.append((q.copy(), v.copy()))
            steps = dl.complementarity.Formulation(model, touching)
            hit = steps.collide(q, v, RESTITUTION)
            v = hit.velocity
            step = steps.build(q, v, None, STRIDE).solve()
            if (hit.status, step.status) != ("solved", "solved"):
                raise SystemExit(f"{model.name}: {hit.status}, {step.status}")
            v = step.velocity
        else:
            v = v + STRIDE * dl.forward_dynamics(model, q, v)
        q = dl.integrate(model, q, v, STRIDE)
    return states


def measure(links):
    model = dl.scenes.pendulum(links)
    states = swing(model)
    chosen = [states[k] for k in np.linspace(0, len(states) - 1, STATES).astype(int)]
    calls: dict[str, list] = {name: [] for name in ("os", "nmc-os", "os, pivots", "nmc-os, pivots")}
    worst, sizes = 0.0, {}
    for q, v in chosen:
        contacts = nearest(model, q, CONTACTS)[1]
        made = {f: dl.complementarity.Formulation(model, contacts, f) for f in ("os", "nmc-os", "nmc")}
        sizes = {f: m.size for f, m in made.items()}
        problems = {f: m.build(q, v, None, STEP) for f, m in made.items()}
        steps = {f: problem.solve() for f, problem in problems.items()}
        for f, step in steps.items():
            if step.status != "solved":
                raise SystemExit(f"{model.name}: {f} ends with {step.status}")
            worst = max(worst, np.abs(step.velocity - steps["os"].velocity).max() / (1 + np.abs(v).max()))
        for f in ("os", "nmc-os"):
            calls[f].append(lambda made=made[f], q=q, v=v: made.build(q, v, None, STEP).solve())
            calls[f"{f}, pivots"].append(lambda p=problems[f]: dl.solve_lcp(p.matrix, p.vector, free=p.free))
    if not worst < TOLERANCE:
        raise SystemExit(f"{model.name}: velocities differ by {worst:.1e}")

    def run(listed):
        for call in listed:
            call()

    times = best({f: lambda listed=listed: run(listed) for f, listed in calls.items()}, repeats=60, inner=2)
    times = {f: t / STATES for f, t in times.items()}
    row = {"links": links, **{f"size {f}": n for f, n in sizes.items()}, "difference": worst, "paper": PAPER.get(links)}
    ratios = {"ratio": times["nmc-os"] / times["os"], "ratio, pivots": times["nmc-os, pivots"] / times["os, pivots"]}
    return row | times | ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, nargs="*", default=list(PAPER))
    parser.add_argument("--json")
    options = parser.parse_args()
    print("| links | sizes OS, NMC/OS, NMC | difference | OS, µs | NMC/OS, µs | ratio | of it pivots, µs | ratio | paper's ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for links in options.links:
        row = measure(links)
        rows.append(row)
        print(
            f"| {links} | {row['size os']}, {row['size nmc-os']}, {row['size nmc']} | {row['difference']:.0e} | {row['os']:.0f} | {row['nmc-os']:.0f} | {row['ratio']:.1f} "
            f"| {row['os, pivots']:.0f}, {row['nmc-os, pivots']:.0f} | {row['ratio, pivots']:.1f} | {row['paper'] or ''} |",
            flush=True,
        )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
