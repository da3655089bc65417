"""Derivatives of steps of many worlds beside MuJoCo's finite differences: A and B per second, of one thread and of more.

128 Go2 that stand under servos or fall, each with joints and velocities of its own, steps of 1 ms as in ``simulator.py``. When they stand, or lie where they fell, derivatives of the next step are found of all of
them: by ``Worlds.linearize`` (A and B) and ``Worlds.step_vjp`` (one adjoint each), and by ``mujoco.mjd_transitionFD`` in the same states, one after the other in a loop in Python, one-sided and centered,
1e-6. First ours are compared with central differences of ``Worlds.step`` along random directions, of worlds that are at no kink, at a tolerance of the contact solver of 1e-12: what it leaves open is
divided by the step of the differences. All take turns, at 1e-10; the best time counts.

python benchmarks/python/worlds_derivatives.py [--cases NAME …] [--worlds N] [--threads N …] [--repeats N] [--json FILE]
"""

import argparse
import json
import time
from pathlib import Path

import mujoco
import numpy as np

import delassus as dl
from simulator import CASES as SCENES
from worlds import states

CASES = {"go2 standing": 0.5, "go2 falling": 0.3}  # seconds before
DIFFERENCE = 1e-6


def prepared(case, worlds, seconds, threads=1, tolerance=1e-10):
    """Worlds on their way."""
    found = dl.Worlds(case.model, worlds, timestep=case.model.opt.timestep, threads=threads, tolerance=tolerance)
    starts, speeds = states(case.model, case.q, worlds)
    found.reset(q=starts, v=speeds)
    if case.control is not None:
        found.control = case.control
    found.step(round(seconds / found.timestep))
    return found


def error(worlds, h=3e-7):
    """Largest difference of A and B times a direction from central differences of steps, per world, relative to the largest number of these; and at which worlds there is none."""
    steps, moment, m = worlds.linearize(), worlds.save(), worlds.model
    rng = np.random.default_rng(1)
    dq, dv, du = (rng.normal(size=(len(worlds), n)) for n in (m.nv, m.nv, m.nu))
    sides = []
    for sign in (h, -h):
        worlds.restore(moment)
        worlds.q = np.array([dl.integrate(m, q, sign * d) for q, d in zip(worlds.q, dq, strict=True)])
        worlds.v += sign * dv
        worlds.control += sign * du
        worlds.step()
        sides.append((worlds.q.copy(), worlds.v.copy()))
    worlds.restore(moment)
    (qa, va), (qb, vb) = sides
    wanted = np.array([np.concatenate([dl.difference(m, b, a), s]) for b, a, s in zip(qb, qa, va - vb, strict=True)]) / (2 * h)
    found = np.einsum("kij,kj->ki", steps.A, np.hstack([dq, dv])) + np.einsum("kij,kj->ki", steps.B, du)
    apart = np.abs(found - wanted).max(axis=1) / np.abs(wanted).max(axis=1)
    return apart, ~steps.kinks & np.array([not words for words in steps.left_out])


class Differences:
    """MuJoCo's, of states one after the other."""

    def __init__(self, case, worlds, centered):
        self.m, self.d, self.centered = case.model, mujoco.MjData(case.model), centered
        self.q, self.v, self.control = worlds.q.copy(), worlds.v.copy(), worlds.control.copy()
        n = 2 * self.m.nv + self.m.na
        self.A, self.B = np.zeros((len(self.q), n, n)), np.zeros((len(self.q), n, self.m.nu))

    def __call__(self):
        for q, v, u, A, B in zip(self.q, self.v, self.control, self.A, self.B, strict=True):
            self.d.qpos[:], self.d.qvel[:], self.d.ctrl[:] = q, v, u
            mujoco.mjd_transitionFD(self.m, self.d, DIFFERENCE, self.centered, A, B, None, None)


def measure(name, arguments):
    """Least wall time and processor time of each per world [s]."""
    case, threads = SCENES[name](), [1, *arguments.threads]
    worlds = {t: prepared(case, arguments.worlds, CASES[name], t) for t in threads}
    apart, smooth = error(prepared(case, arguments.worlds, CASES[name], tolerance=1e-12))
    if not smooth.any() or np.median(apart[smooth]) > 1e-6:
        raise SystemExit(f"{name}: derivatives are not those of differences: {apart[smooth]}")
    weights = np.ones(worlds[1].model.nv)
    runs = {f"linearize, threads {t}": w.linearize for t, w in worlds.items()}
    runs |= {f"step_vjp, threads {t}": (lambda w=w: w.step_vjp(weights, weights)) for t, w in worlds.items()}
    runs |= {f"mjd_transitionFD, {word}": Differences(case, worlds[1], c) for word, c in (("one-sided", 0), ("centered", 1))}
    drawn = prepared(case, arguments.worlds, CASES[name])
    drawn.randomize(0, friction=(0.6, 1.0), mass_scale=(0.95, 1.05))
    runs["linearize, threads 1, parameters of each"] = drawn.linearize
    best = {run: np.full(2, np.inf) for run in runs}
    for _ in range(arguments.repeats):
        for run, work in runs.items():
            wall, spent = time.perf_counter(), time.process_time()
            work()
            best[run] = np.minimum(best[run], [time.perf_counter() - wall, time.process_time() - spent])
    moment, spent = worlds[1].save(), np.inf
    for _ in range(arguments.repeats):
        worlds[1].restore(moment)
        before = time.process_time()
        worlds[1].step()
        spent = min(spent, time.process_time() - before)
    return {
        "contacts": float(worlds[1].contact_counts.mean()),
        "at no kink": int(smooth.sum()),
        "median error": float(np.median(apart[smooth])),
        "worst error": float(apart[smooth].max()),
        "step, threads 1": [None, spent / arguments.worlds],
    } | {run: (seconds / arguments.worlds).tolist() for run, seconds in best.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--worlds", type=int, default=128)
    parser.add_argument("--threads", type=int, nargs="*", default=[2], help="besides one")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    results = {}
    for name in arguments.cases:
        results[name] = row = measure(name, arguments)
        print(
            f"{name}: {row['contacts']:.1f} contacts a world; of {row['at no kink']} worlds at no kink median error {row['median error']:.1e}, worst {row['worst error']:.1e}"
        )
        for run, value in row.items():
            if isinstance(value, list):
                wall = "" if value[0] is None else f", wall {1e6 * value[0]:8.1f} µs, {1 / value[0]:7.0f} worlds per second"
                print(f"  {run:42} processor time {1e6 * value[1]:8.1f} µs a world{wall}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
