"""A world of many piles: its islands on one and more threads, and what it costs asleep. Bits of all threads are compared first.

python benchmarks/python/crowds.py [--piles N] [--threads N] [--repeats N] [--json FILE]
"""

import argparse
import json

import numpy as np

import delassus as dl

BOXES, STEPS = 8, 25  # in a pile; timed at once
BALL = '<body pos="-3 -3 3"><freejoint/><geom size="0.05" mass="0.2"/></body>'


def piles(n, more=""):
    """Boxes that fall on each other, a little turned, every two metres."""
    rng = np.random.default_rng(0)
    bodies = []
    for k in range(n * BOXES):
        pile, level = divmod(k, BOXES)
        x, y = 2.0 * np.array(divmod(pile, int(np.ceil(np.sqrt(n))))) + rng.uniform(-0.12, 0.12, 2)
        a, b = rng.uniform(-20, 20, 2)
        bodies.append(
            f'<body pos="{x} {y} {0.12 + 0.22 * level}" euler="{a} {b} 0"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'
        )
    return f'<mujoco><worldbody><geom type="plane" size="100 100 1"/>{"".join(bodies)}{more}</worldbody></mujoco>'


def times(sims, states, repeats):
    """Microseconds of a step of each simulator: the best of every step, in turns; and its last step."""
    taken, last = {name: [] for name in sims}, {}
    for _ in range(repeats):
        for name, sim in sims.items():
            sim.restore(states[name])
            steps = [sim.step() for _ in range(STEPS)]
            taken[name].append([step.timings["step"] for step in steps])
            last[name] = steps[-1]
    return {name: 1e6 * np.min(t, axis=0).mean() for name, t in taken.items()}, last


def settled(text, q, v, **options):
    """A simulator of these piles at rest for a while, and where it is."""
    sim = dl.Simulator(text, **options)
    sim.reset(q, v)
    sim.run(0.3, progress=False, every=300)
    return sim, sim.save()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--piles", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--json")
    options = parser.parse_args()
    text = piles(options.piles)

    # while they fall: islands of all sizes, on threads
    sims = {f"falling, {n} thread{'s' * (n > 1)}": dl.Simulator(text, threads=n) for n in range(1, options.threads + 1)}
    first = next(iter(sims.values()))
    first.run(0.3, progress=False, every=300)
    states = dict.fromkeys(sims, first.save())
    found, last = times(sims, states, options.repeats)
    if any(not np.array_equal(step.q, next(iter(last.values())).q) for step in last.values()):
        raise SystemExit("threads differ")

    # at rest: awake, asleep, and asleep but for a ball that falls far away
    first.run(5.0, progress=False, every=5000)
    q, v = first.q, first.v
    both = np.r_[q, -3, -3, 3, 1, 0, 0, 0], np.r_[v, np.zeros(6)]
    made = {
        "at rest, awake": settled(text, q, v),
        "asleep": settled(text, q, v, sleep_after=0.1),
        "asleep but for one ball": settled(piles(options.piles, BALL), *both, sleep_after=0.1),
    }
    resting = times({name: sim for name, (sim, _) in made.items()}, {name: state for name, (_, state) in made.items()}, options.repeats)
    found, last = found | resting[0], last | resting[1]

    rows = [
        {"world": name, "islands": s.islands, "sleeping": s.sleeping, "contacts": len(s.contacts), "step, µs": round(found[name], 1), "residual, m/s": float(s.residual)}
        for name, s in last.items()
    ]  # fmt: skip
    print("| " + " | ".join(rows[0]) + " |\n" + "|---" * len(rows[0]) + "|")
    for row in rows:
        print("| " + " | ".join(f"{v:.0e}" if k == "residual, m/s" else str(v) for k, v in row.items()) + " |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=2)


if __name__ == "__main__":
    main()
