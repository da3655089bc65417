"""Many worlds beside MuJoCo's: steps per second of one core, and how deep bodies sink meanwhile.

256 worlds of the same scene, each with joints and velocities of its own, step 1 ms as in ``simulator.py``: Newton, elliptic cones, implicitfast. Falling robots from the air to the floor, standing ones under
servos. :class:`delassus.Worlds`, ``mujoco.rollout`` and ``mjbatch`` take turns of ten steps each; processor time counts, which other programs on the machine disturb least. mjbatch
needs a MuJoCo of its own version, so it runs in a process of its own, by the interpreter that is given.

python benchmarks/python/worlds.py [--cases NAME …] [--worlds N] [--seconds S] [--threads N …] [--mjbatch PYTHON] [--json FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mujoco
import numpy as np

CHUNK = 10
CASES = ("go2 falling", "go2 standing", "g1 falling", "g1 standing")
FULL = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)


def states(m, q, worlds):
    """Starts of all worlds: joints and velocities of their own."""
    rng = np.random.default_rng(0)
    starts, speeds = np.tile(q, (worlds, 1)), 0.2 * rng.normal(size=(worlds, m.nv))
    starts[:, 7:] += 0.03 * rng.normal(size=(worlds, len(q) - 7))
    return starts, speeds


class Ours:
    """Our worlds."""

    def __init__(self, case, starts, speeds, threads=1):
        import delassus as dl

        self.worlds = dl.Worlds(case.model, len(starts), timestep=case.model.opt.timestep, threads=threads)
        self.worlds.reset(q=starts, v=speeds)
        if case.control is not None:
            self.worlds.control = case.control

    def step(self):
        self.worlds.step(CHUNK)

    def deepest(self):
        return float(self.worlds.penetration.max())


class Rollout:
    """MuJoCo's rollout, chunk after chunk."""

    def __init__(self, case, starts, speeds):
        from mujoco import rollout

        self.rollout, self.m, self.data = rollout.rollout, case.model, [mujoco.MjData(case.model)]
        self.state = np.zeros((len(starts), mujoco.mj_stateSize(self.m, FULL)))
        for state, q, v in zip(self.state, starts, speeds, strict=True):
            mujoco.mj_resetData(self.m, self.data[0])
            self.data[0].qpos[:], self.data[0].qvel[:] = q, v
            mujoco.mj_getState(self.m, self.data[0], state, FULL)
        control = np.zeros(self.m.nu) if case.control is None else case.control
        self.control = np.tile(control, (len(starts), CHUNK, 1))

    def step(self):
        states, _ = self.rollout(self.m, self.data, self.state, self.control, nstep=CHUNK)
        self.state = states[:, -1].copy()

    def deepest(self):
        """Of a few worlds."""
        deep = 0.0
        for state in self.state[:8]:
            mujoco.mj_setState(self.m, self.data[0], state, FULL)
            mujoco.mj_forward(self.m, self.data[0])
            deep = max(deep, *(-c.dist for c in self.data[0].contact), 0.0)
        return deep


class Batch:
    """mjbatch, in a process of its own."""

    def __init__(self, case, starts, speeds, python):
        folder = Path(tempfile.mkdtemp())
        (folder / "scene.xml").write_text(case.text)
        np.savez(folder / "start.npz", q=starts, v=speeds, control=np.zeros(case.model.nu) if case.control is None else case.control)
        command = [python, __file__, "--worker", str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.process.stdout.readline().strip()

    def spent(self):
        """Processor time of a chunk [s]."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def worker(folder):
    """Step an mjbatch whenever a line comes in, and tell the processor time."""
    import mjbatch

    start = np.load(Path(folder) / "start.npz")
    m = mujoco.MjModel.from_xml_path(str(Path(folder) / "scene.xml"))
    m.opt.timestep, m.opt.solver, m.opt.cone, m.opt.integrator = (
        1e-3,
        mujoco.mjtSolver.mjSOL_NEWTON,
        mujoco.mjtCone.mjCONE_ELLIPTIC,
        mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    )
    batch = mjbatch.Batch(m, num_sims=len(start["q"]), num_threads=1)
    batch.bind("qpos")[:], batch.bind("qvel")[:], batch.bind("ctrl")[:] = start["q"], start["v"], start["control"]
    print(f"mjbatch {getattr(mjbatch, '__version__', '')} with MuJoCo {mujoco.mj_versionString()}", flush=True)
    for _ in sys.stdin:
        before = time.process_time()
        for _ in range(CHUNK):
            batch.step()
        print(time.process_time() - before, flush=True)


def spent(engine):
    """Processor time of a chunk of all worlds [s]."""
    if isinstance(engine, Batch):
        return engine.spent()
    before = time.process_time()
    engine.step()
    return time.process_time() - before


def measure(name, arguments):
    """Steps per second of processor time of each engine, in turns."""
    import delassus as dl
    from simulator import CASES as SCENES

    case = SCENES[name]()
    case.text = dl.load(case.model).to_mjcf()
    starts, speeds = states(case.model, case.q, arguments.worlds)
    engines = {"delassus": Ours(case, starts, speeds), "mujoco.rollout": Rollout(case, starts, speeds)}
    engines |= {f"delassus, {t} threads": Ours(case, starts, speeds, t) for t in arguments.threads}
    if arguments.mjbatch:
        engines["mjbatch"] = Batch(case, starts, speeds, arguments.mjbatch)
    times, deepest, walls = {engine: [] for engine in engines}, {e: 0.0 for e in engines if e != "mjbatch"}, dict.fromkeys(engines, 0.0)
    turns = round(arguments.seconds / case.model.opt.timestep / CHUNK)
    for turn in range(turns):
        for engine, stepped in engines.items():
            before = time.perf_counter()
            times[engine].append(spent(stepped))
            walls[engine] += time.perf_counter() - before
            # joints of their own may put feet into the floor at first
            if engine in deepest and turn >= turns // 2:
                deepest[engine] = max(deepest[engine], stepped.deepest())
    rows = {}
    for engine, seconds in times.items():
        total = CHUNK * arguments.worlds * len(seconds)
        rows[engine] = {
            "steps per second": total / sum(seconds),
            "wall steps per second": total / walls[engine],
            "deepest [m]": deepest.get(engine),
        }
    rows["delassus"]["unsolved"] = int(engines["delassus"].worlds.unsolved.sum())
    rows["delassus"]["contacts"] = float(engines["delassus"].worlds.contact_counts.mean())
    if arguments.mjbatch:
        rows["mjbatch"]["version"] = engines["mjbatch"].version
        engines["mjbatch"].close()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=1.5, help="of simulated time")
    parser.add_argument("--threads", type=int, nargs="*", default=[])
    parser.add_argument("--mjbatch", help="a Python that has mjbatch")
    parser.add_argument("--json")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments.worker)
        return
    results = {}
    for name in arguments.cases:
        results[name] = measure(name, arguments)
        own = results[name]["delassus"]["steps per second"]
        for engine, row in results[name].items():
            deep = "" if row["deepest [m]"] is None else f", deepest in the second half {1e3 * row['deepest [m]']:.3f} mm"
            rest = ", ".join(f"{k} {row[k]}" for k in ("unsolved", "contacts", "version") if k in row)
            print(
                f"{name:14} {engine:22} {row['steps per second']:9.0f} steps per second of processor time, ours {own / row['steps per second']:4.2f} times as many{deep} {rest}"
            )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
