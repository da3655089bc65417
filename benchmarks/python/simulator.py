"""Steps of the simulator beside MuJoCo's on the same models: how long, how deep bodies sink, how far they creep, how far loops open.

Both step 1 ms. MuJoCo: Newton, elliptic cones, implicitfast, its default solref and solimp. Robots that stand have servos that hold the pose of the stored scene. Errors are measured first,
in a run of their own; then both step the same stretch of it in turns, several times, and of every ten steps the best time counts: same input, same bits, same work.

python benchmarks/python/simulator.py [--scenes NAME …] [--repeats N] [--json FILE]
"""

import argparse
import json
import time
from dataclasses import dataclass

import mujoco
import numpy as np

import delassus as dl

STEP, CHUNK = 1e-3, 10
SERVOS = {"go2": (100.0, 5.0), "g1": (300.0, 10.0), "cassie": (800.0, 20.0)}  # stiffness [N m/rad], damping


@dataclass
class Case:
    """A model, where it starts, its control, and how long it runs. Timed: from when, how long. Rest is the last tenth of it, creep is from 1 s on."""

    model: mujoco.MjModel
    q: np.ndarray
    control: np.ndarray | None = None
    seconds: float = 3.0
    timed: tuple[float, float] = (2.0, 0.5)
    watched: tuple[int, int] = (0, 0)  # coordinates whose creep is told


def compiled(text, stiffness=None, damping=0.0, pinned=False):
    """MuJoCo's model; its motors become servos if they have a stiffness, its base is pinned if asked."""
    spec = mujoco.MjSpec.from_string(text)
    for joint in list(spec.joints):
        if pinned and joint.type == mujoco.mjtJoint.mjJNT_FREE:
            spec.delete(joint)
    for key in list(spec.keys):
        spec.delete(key)
    for motor in spec.actuators if stiffness else ():
        k, d = stiffness / motor.gear[0] ** 2, damping / motor.gear[0] ** 2
        motor.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0], motor.biasprm[1], motor.biasprm[2] = k, -k, -d
        motor.ctrllimited = False
    m = spec.compile()
    m.opt.timestep, m.opt.solver, m.opt.cone = STEP, mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtCone.mjCONE_ELLIPTIC
    m.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return m


def pile(model, **options):
    m = compiled(model.to_mjcf())
    return Case(m, np.array(model.neutral()), watched=(-7, -4), **options)


def standing(name):
    scene = dl.scenes.load(f"{name}-standing")
    m = compiled(scene.model.to_mjcf(), *SERVOS[name])
    hold = m.actuator_gear[:, 0] * scene.q[m.jnt_qposadr[m.actuator_trnid[:, 0]]]
    return Case(m, np.array(scene.q), hold, seconds=6.0, timed=(4.0, 0.5), watched=(0, 3))


def falling(name):
    model = dl.scenes.on_floor(name)
    q = np.array(model.keyframes["home"])
    q[2] += 0.2
    q[3:7] = np.array([0.9, 0.3, 0.3, 0.1])
    q[3:7] /= np.linalg.norm(q[3:7])
    return Case(compiled(model.to_mjcf()), q, seconds=4.0, timed=(0.0, 1.5))


def hanging():
    m = compiled(dl.load("cassie").to_mjcf(), *SERVOS["cassie"], pinned=True)
    q = dl.close_loops(dl.load(m), dl.scenes.load("cassie-standing").q[7:]).configuration
    return Case(m, q, m.actuator_gear[:, 0] * q[m.jnt_qposadr[m.actuator_trnid[:, 0]]], seconds=10.0, timed=(0.0, 2.0))


def pinched():
    """A box of 0.2 kg between two pads that push with 1 / 0.8 of what its weight needs at friction 0.8."""
    push = 0.2 * 9.81 / (2 * 0.8) / 0.8
    pads = "".join(
        f'<body pos="0 {side * 0.07} 1"><joint name="{name}" type="slide" axis="0 {-side} 0"/><geom type="box" size=".03 .02 .03" mass=".1" friction=".8"/></body>'
        for side, name in ((-1, "left"), (1, "right"))
    )
    box = '<body pos="0 0 1"><freejoint/><geom type="box" size=".05 .05 .05" mass=".2" friction=".8"/></body>'
    motors = '<actuator><motor joint="left"/><motor joint="right"/></actuator>'
    m = compiled(f"<mujoco><worldbody>{pads}{box}</worldbody>{motors}</mujoco>")
    return Case(m, np.array(m.qpos0), np.full(2, push), seconds=11.0, timed=(5.0, 1.0), watched=(2, 5))


CASES = {
    "pinched box": pinched,
    "stack of 30": lambda: pile(dl.scenes.box_stack(30)),
    "flat pyramid, 7 rows": lambda: pile(dl.scenes.flat_pyramid(7)),
    "flat pyramid, 14 rows": lambda: pile(dl.scenes.flat_pyramid(14)),
    "go2 standing": lambda: standing("go2"),
    "go2 falling": lambda: falling("go2"),
    "g1 standing": lambda: standing("g1"),
    "g1 falling": lambda: falling("g1"),
    "cassie hanging": hanging,
    "cassie falling": lambda: falling("cassie"),
}


def told(case, times, q, deep, loops, contacts):
    """What both engines are asked."""
    rest = times >= 0.9 * case.seconds
    crept = q[times >= 1.0][:, slice(*case.watched)]
    return {
        "contacts": int(contacts[-1]),
        "deepest [m]": float(deep.max()),
        "penetration at rest [m]": float(deep[rest].max()),
        "creep [m]": float(np.linalg.norm(crept[-1] - crept[0])) if crept.size else None,
        "loop error [m]": float(loops[rest].max()) if loops.any() else None,
        "deepest loop error [m]": float(loops.max()) if loops.any() else None,
    }


def ours(case):
    """Errors of a run, and the state from which steps are timed."""
    sim = dl.Simulator(case.model, timestep=STEP)
    sim.reset(case.q)
    first = sim.run(case.timed[0], control=case.control, progress=False)
    start = sim.save()
    motion = sim.run(case.seconds - case.timed[0], control=case.control, progress=False)
    parts = [first, motion[1:]] if len(first) > 1 else [motion]
    times, q, deep, loops = (np.concatenate([getattr(p, n) for p in parts]) for n in ("times", "q", "penetration", "loop_error"))
    status = np.concatenate([p.status for p in parts])
    steps = round(case.timed[1] / STEP)
    stretch = motion[1 : steps + 1]
    result = told(case, times, q, deep, loops, np.diff(motion.contact_start))
    result |= {"unsolved": int((status != "solved").sum()), "iterations": float(stretch.iterations.mean())}
    return result, sim, start


def theirs(case):
    m, d = case.model, mujoco.MjData(case.model)
    d.qpos[:] = case.q
    if case.control is not None:
        d.ctrl[:] = case.control
    size = mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_INTEGRATION)
    start, frames = np.empty(size), []
    for k in range(round(case.seconds / STEP)):
        if k == round(case.timed[0] / STEP):
            mujoco.mj_getState(m, d, start, mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_step(m, d)
        deep = max(0.0, -min(d.contact.dist, default=0.0))
        loops = np.abs(d.efc_pos[: d.ne]).max(initial=0.0)
        frames.append((d.time, d.qpos.copy(), deep, loops, d.ncon))
    times, q, deep, loops, contacts = (np.array(x) for x in zip(*frames, strict=True))
    return told(case, times, q, deep, loops, contacts), d, start


def timed(case, sim, begin, d, start, repeats):
    """µs a step, both in turns: native and MuJoCo's, of every ten steps the best of the repeats; and run() as a user calls it, processor time, the best."""
    steps = round(case.timed[1] / STEP)
    native, other, run = (np.full(n, np.inf) for n in (steps // CHUNK, steps // CHUNK, 1))
    for _ in range(repeats):
        sim.restore(begin)
        spent = np.array([sim.step(control=case.control).timings["step"] for _ in range(steps)])
        native = np.minimum(native, spent.reshape(-1, CHUNK).sum(axis=1))

        sim.restore(begin)
        clock = time.process_time()
        sim.run(case.timed[1], control=case.control, every=steps, progress=False)
        run = np.minimum(run, time.process_time() - clock)

        mujoco.mj_setState(case.model, d, start, mujoco.mjtState.mjSTATE_INTEGRATION)
        for k in range(steps // CHUNK):
            clock = time.perf_counter()
            mujoco.mj_step(case.model, d, nstep=CHUNK)
            other[k] = min(other[k], time.perf_counter() - clock)
    return {name: float(x.sum() / steps * 1e6) for name, x in (("native", native), ("run", run), ("mujoco", other))}


def measure(name, repeats):
    case = CASES[name]()
    mine, sim, begin = ours(case)
    other, d, start = theirs(case)
    times = timed(case, sim, begin, d, start, repeats)
    return {
        "scene": name, "nv": int(case.model.nv), "ours": mine, "mujoco": other, "µs a step": times,
        "ratio, native": times["native"] / times["mujoco"], "ratio, run": times["run"] / times["mujoco"],
    }  # fmt: skip


def pair(row, name):
    values = [row[who][name] for who in ("ours", "mujoco")]
    return "" if values[0] is None else ", ".join(f"{x:.0e}" if x else "0" for x in values)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", nargs="*", default=list(CASES))
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json")
    options = parser.parse_args()
    print(
        "| scene | nv | contacts | ours, native, µs | run(), µs | MuJoCo, µs | ratio | ratio of run() | penetration at rest, m: ours, MuJoCo | deepest, m | creep, m | loop error, m | iterations | unsolved |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    for name in options.scenes:
        row = measure(name, options.repeats)
        rows.append(row)
        t = row["µs a step"]
        print(
            f"| {name} | {row['nv']} | {row['ours']['contacts']}, {row['mujoco']['contacts']} | {t['native']:.1f} | {t['run']:.1f} | {t['mujoco']:.1f} | {row['ratio, native']:.2f} | {row['ratio, run']:.2f} "
            f"| {pair(row, 'penetration at rest [m]')} | {pair(row, 'deepest [m]')} | {pair(row, 'creep [m]')} | {pair(row, 'loop error [m]')} | {row['ours']['iterations']:.1f} | {row['ours']['unsolved']} |",
            flush=True,
        )
    print(
        f"\nRatio in geometric mean: {np.exp(np.mean([np.log(r['ratio, native']) for r in rows])):.2f}, at most {max(r['ratio, native'] for r in rows):.2f}."
    )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
