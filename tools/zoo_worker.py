"""Examine one model for tools/zoo, in a process of its own: what we represent of it, and how it moves beside MuJoCo.

    python tools/zoo_worker.py SOURCE FILE [--seconds S] [--budget S]

SOURCE is a Source as JSON. Into FILE goes a line of JSON after every stage, all results so far, so that of a model that crashes or runs out of time the earlier stages remain.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import mujoco
import numpy as np
from numpy.typing import NDArray
from zoo_sources import Source, model_of

import delassus as dl

Array = NDArray[Any]
Result = dict[str, Any]

STATES = 5  # random ones, of every comparison with MuJoCo
HOLD = 0.1  # time for which a random control stays [s]
NOT_AVAILABLE = "not available"

# Lines of `ignored` that leave a model complete, by how they begin. Every other line makes it incomplete.
HARMLESS = (
    "softness of constraints",  # solref, solimp: constraints are rigid here
    "settings of MuJoCo's solver and integrator",  # how MuJoCo solves; the timestep is passed on by the zoo
    "as MuJoCo says",  # its warnings about what it compiled: ours is made of the same
    "camera",  # what is seen, not what moves
    "light",
    "visual",
    "rendering",
)


def blocking(ignored: list[str]) -> list[str]:
    """Return the lines that make a model incomplete."""
    return [line for line in ignored if not line.startswith(HARMLESS)]


# ---- states and controls ----------------------------------------------------------------------------------------------------


def joints(m: mujoco.MjModel) -> Iterator[tuple[mujoco.mjtJoint, int, Array, bool]]:
    """Type, place in q, range and whether it is limited, of every joint."""
    for j in range(m.njnt):
        yield mujoco.mjtJoint(int(m.jnt_type[j])), int(m.jnt_qposadr[j]), m.jnt_range[j], bool(m.jnt_limited[j])


def random_state(m: mujoco.MjModel, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return (nq,) within limits where there are any, free bodies within a metre and turned anyhow, and (nv,) standard normal."""
    q = m.qpos0.copy()
    for kind, at, (low, high), limited in joints(m):
        if kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            turn = at + 3 if kind == mujoco.mjtJoint.mjJNT_FREE else at
            q[at:turn] += rng.uniform(-1, 1, turn - at)
            q[turn : turn + 4] = rng.normal(size=4)
            q[turn : turn + 4] /= np.linalg.norm(q[turn : turn + 4])
        else:
            q[at] = rng.uniform(low, high) if limited else q[at] + rng.uniform(-1, 1)
    return q, rng.normal(size=m.nv)


def random_control(m: mujoco.MjModel, rng: np.random.Generator) -> Array:
    """Return (nu,) within the controls' ranges; from −1 to 1 where there are none."""
    limited = m.actuator_ctrllimited.astype(bool)
    low, high = np.where(limited, m.actuator_ctrlrange.T, np.array([[-1.0], [1.0]]))
    return np.asarray(rng.uniform(low, high))


def random_activation(m: mujoco.MjModel, rng: np.random.Generator) -> Array:
    """Return (na,) from 0 to 1, which is in the range of every muscle and filter."""
    return np.asarray(rng.uniform(0, 1, m.na))


def start_of(m: mujoco.MjModel) -> Array:
    """Return (nq,) the first keyframe, else the reference configuration; hinges and slides are moved into their limits."""
    q = np.array(m.key_qpos[0] if m.nkey else m.qpos0)
    for kind, at, (low, high), limited in joints(m):
        if limited and kind in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            q[at] = np.clip(q[at], low, high)
    return q


def close_welds(m: mujoco.MjModel, q: Array) -> mujoco.MjModel:
    """Return a copy whose mocap bodies are where the welds that they lead are closed at q, as packages put them there when they reset."""
    m = copy.copy(m)
    d = mujoco.MjData(m)
    d.qpos[:] = q
    mujoco.mj_kinematics(m, d)
    for e in np.flatnonzero(m.eq_type == int(mujoco.mjtEq.mjEQ_WELD)):
        if m.eq_objtype[e] != int(mujoco.mjtObj.mjOBJ_BODY):
            continue
        first, second = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        anchor, place, turn = m.eq_data[e, :3], m.eq_data[e, 3:6], m.eq_data[e, 6:10]
        # R₁ relpose = R₂, x₁ + R₁ place = x₂ + R₂ anchor
        mocap, other = (second, first) if m.body_mocapid[second] >= 0 else (first, second)
        if m.body_mocapid[mocap] < 0:
            continue
        x, R, quat, back = np.zeros(3), d.xmat[other].reshape(3, 3), np.zeros(4), np.zeros(4)
        mujoco.mju_negQuat(back, turn)
        mujoco.mju_mulQuat(quat, d.xquat[other], turn if mocap == second else back)
        mujoco.mju_rotVecQuat(x, anchor if mocap == second else place, quat)
        m.body_pos[mocap], m.body_quat[mocap] = d.xpos[other] + R @ (place if mocap == second else anchor) - x, quat
    return m


def relative(ours: Array, theirs: Array, scale: Any = None) -> float:
    """Return the largest difference over the largest of their numbers, or over ``scale``; zero where nothing is compared."""
    if not theirs.size:
        return 0.0
    scale = np.abs(theirs).max() if scale is None else scale
    return float((np.abs(ours - theirs) / np.maximum(scale, 1e-300)).max())


# ---- variants of a model ----------------------------------------------------------------------------------------------------


def without_motors(m: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy whose actuators have no effect: what is left can only lose energy."""
    m = copy.copy(m)
    m.actuator_gear[:] = 0.0
    return m


def without_constraints(m: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy without contacts, limits, equalities and friction loss: all its forces are smooth."""
    m = copy.copy(m)
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    for array in (m.jnt_limited, m.tendon_limited, m.eq_active0, m.dof_frictionloss, m.tendon_frictionloss):
        array[:] = 0
    return m


def simulator(m: mujoco.MjModel, timestep: float, integrator: Literal["midpoint", "euler"] = "midpoint") -> dl.Simulator:
    """Return our simulator of MuJoCo's model."""
    return dl.Simulator(dl.load(m), timestep=timestep, integrator=integrator)


def controls_taken(sim: dl.Simulator, m: mujoco.MjModel) -> Array:
    """Return which of MuJoCo's controls the simulator takes: all, or those of the actuators that it has."""
    try:
        sim.contact_problem(control=np.zeros(m.nu))
        return np.arange(m.nu)
    except dl.errors.ArgumentError:
        first = getattr(m, "actuator_ctrladr", np.arange(m.nu))  # later MuJoCo versions have actuators of several controls
        names = {mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_ACTUATOR, a) or f"actuator_{a}": int(u) for a, u in enumerate(first)}
        return np.array([names[a.name] for a in sim.model.actuators], dtype=int)


# ---- stages -----------------------------------------------------------------------------------------------------------------


def sizes(m: mujoco.MjModel) -> Result:
    """Count what there is in the model."""
    names = ("nq", "nv", "nu", "na", "nbody", "ngeom", "neq", "ntendon", "nsensor", "nmocap", "nkey")
    return {name: int(getattr(m, name)) for name in names} | {"timestep": float(m.opt.timestep)}


def tree_dynamics(m: mujoco.MjModel, model: dl.Model, rng: np.random.Generator) -> Result:
    """Mass matrix and bias forces beside MuJoCo's, relative to its largest entry."""
    d, mass, bias = mujoco.MjData(m), 0.0, 0.0
    M = np.empty((m.nv, m.nv))
    for _ in range(STATES):
        d.qpos[:], d.qvel[:] = q, v = random_state(m, rng)
        mujoco.mj_forward(m, d)
        for row, e in zip(M, np.eye(m.nv), strict=True):
            mujoco.mj_mulM(m, d, row, e)
        mass = max(mass, relative(dl.mass_matrix(model, q), M))
        # entries of h may all be small: rest on the forces that gravity and velocities of order one make
        bias = max(bias, relative(dl.bias_forces(model, q, v), d.qfrc_bias, max(np.abs(d.qfrc_bias).max(), np.abs(M).max())))
    return {"mass_matrix": mass, "bias": bias}


def smooth(m: mujoco.MjModel, model: dl.Model, rng: np.random.Generator) -> Result | str:
    """Accelerations by smooth forces beside MuJoCo's ``qacc_smooth``, at random states, controls and activations.

    ``acceleration`` is relative to the largest acceleration. ``force`` compares the forces themselves, each degree of freedom relative to the largest passive, actuator
    and bias force that it meets, so that an error in a heavy joint does not hide behind the accelerations of a light one; ``dof`` is the worst.
    """
    free = without_constraints(m)  # for both: adhesion acts through contacts
    sim = dl.Simulator(free, timestep=float(m.opt.timestep))
    if not hasattr(sim, "smooth_forces"):
        return NOT_AVAILABLE
    taken = controls_taken(sim, m)
    d, error, off, scale = mujoco.MjData(free), 0.0, np.zeros(m.nv), np.zeros(m.nv)
    for _ in range(STATES):
        mujoco.mj_resetData(free, d)
        d.qpos[:], d.qvel[:] = q, v = random_state(m, rng)
        d.ctrl[:], d.act[:] = control, activation = random_control(m, rng), random_activation(m, rng)
        mujoco.mj_forward(free, d)
        sim.reset(q, v)
        if m.na:
            sim.activation = activation  # type: ignore[attr-defined]
        forces = sim.smooth_forces(control[taken])
        theirs = d.qfrc_passive + d.qfrc_actuator
        off = np.maximum(off, np.abs(forces - theirs))
        scale = np.maximum(scale, np.abs(d.qfrc_passive) + np.abs(d.qfrc_actuator) + np.abs(d.qfrc_bias))
        error = max(error, relative(dl.forward_dynamics(model, q, v, forces), d.qacc_smooth))
    worst = off / np.maximum(scale, max(1e-6 * scale.max(), 1e-300))
    return {"acceleration": error, "force": float(worst.max()), "dof": int(worst.argmax())}


def sensors(m: mujoco.MjModel, rng: np.random.Generator) -> Result | str | None:
    """Sensors after a step beside MuJoCo's at the same state, without constraints: relative to one, or to MuJoCo's number where that is larger.

    Those of positions and velocities, and those of accelerations and forces, which also depend on how the step was integrated.
    """
    if not m.nsensor:
        return None
    free = without_constraints(m)
    sim, d = simulator(free, float(m.opt.timestep)), mujoco.MjData(free)
    taken, worst = controls_taken(sim, m), {"state": 0.0, "acceleration": 0.0}
    for _ in range(STATES):
        q, v = random_state(m, rng)
        control = random_control(m, rng)
        sim.reset(q, v)
        step = sim.step(control=control[taken])
        if not hasattr(step, "sensors"):
            return NOT_AVAILABLE
        mujoco.mj_resetData(free, d)
        d.time, d.qpos[:], d.qvel[:], d.ctrl[:] = step.time, step.q, step.v, control
        if m.na:
            d.act[:] = sim.activation  # type: ignore[attr-defined]
        mujoco.mj_forward(free, d)
        for at, n, stage in zip(m.sensor_adr, m.sensor_dim, m.sensor_needstage, strict=True):
            ours, theirs = step.sensors.data[at : at + n], d.sensordata[at : at + n]
            kind = "acceleration" if stage == int(mujoco.mjtStage.mjSTAGE_ACC) else "state"
            worst[kind] = max(worst[kind], relative(ours, theirs, np.maximum(np.abs(theirs), 1.0)))
    return worst


def divergence(m: mujoco.MjModel, rng: np.random.Generator, budget: float) -> Result:
    """How far we are from MuJoCo after 0.1 s with random controls, without constraints on both sides, by steps a tenth of the model's.

    ``relative`` is to how far MuJoCo moved, in tangent coordinates. Integrators are the same, MuJoCo's "implicitfast" and our "euler", but for springs and servos, which act at the
    end of our steps: that makes a difference of the order of the step, more is another force.
    """
    free = without_constraints(m)
    step = min(float(m.opt.timestep), 1e-3) / 10
    free.opt.timestep, free.opt.integrator = step, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    sim, d = simulator(free, step, "euler"), mujoco.MjData(free)
    control = random_control(m, rng)
    q = start_of(m)
    sim.reset(q)
    d.qpos[:], d.ctrl[:] = q, control
    taken, stop = control[controls_taken(sim, m)], time.perf_counter() + budget
    for _ in range(round(0.1 / step)):
        sim.step(control=taken)
        mujoco.mj_step(free, d)
        if time.perf_counter() > stop:
            break
    way, apart = np.zeros(m.nv), np.zeros(m.nv)
    mujoco.mj_differentiatePos(free, way, 1.0, q, d.qpos)
    mujoco.mj_differentiatePos(free, apart, 1.0, d.qpos, sim.q)
    moved, off = float(np.abs(way).max()), float(np.abs(apart).max())
    return {"reached": sim.time, "moved": moved, "absolute": off, "relative": off / max(moved, 1e-9)}


class Energy:
    """Mechanical energy of states [J] as MuJoCo has it, springs included; the growth over the first, relative to kinetic energy and a centimetre's lift of everything."""

    def __init__(self, m: mujoco.MjModel) -> None:
        self.m, self.d = m, mujoco.MjData(m)
        self.weight_lift = 0.01 * float(np.linalg.norm(m.opt.gravity)) * float(m.body_mass.sum())
        self.first: float | None = None
        self.growth, self.kinetic = 0.0, 0.0

    def look(self, q: Array, v: Array) -> None:
        """Take note of a state."""
        self.d.qpos[:], self.d.qvel[:] = q, v
        for stage in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_tendon, mujoco.mj_makeM, mujoco.mj_energyPos, mujoco.mj_energyVel):
            stage(self.m, self.d)
        total = float(self.d.energy.sum())
        self.first = total if self.first is None else self.first
        self.growth, self.kinetic = max(self.growth, total - self.first), max(self.kinetic, float(self.d.energy[1]))

    @property
    def relative(self) -> float:
        """Growth over its scale."""
        return self.growth / max(self.kinetic + self.weight_lift, 1e-12)


def keeps_energy(m: mujoco.MjModel) -> bool:
    """Whether nothing in a model without motors does work that MuJoCo's energy does not count."""
    return not (np.any(m.body_gravcomp) or np.any(m.opt.wind) or m.nmocap or m.nplugin)


def times(seconds: list[float]) -> Result:
    """Mean, median and largest time of a step [µs], of the processor, so that other programs do not count; nor does the first step, which finds everything cold."""
    kept = np.array(seconds[1:] or seconds) * 1e6
    return {"mean": float(kept.mean()), "median": float(np.median(kept)), "largest": float(kept.max())} if len(kept) else {}


def motion(m: mujoco.MjModel, controls: list[Array], seconds: float, budget: float, energy: Energy | None) -> Result:
    """Go on for some time in our simulator, and in MuJoCo, from the same state with the same controls, each of which stays for a while."""
    step, start = float(m.opt.timestep), start_of(m)
    m = close_welds(m, start)
    steps, held = max(1, round(seconds / step)), max(1, round(HOLD / step))
    result: Result = {"steps": 0}

    # ours
    sim = simulator(m, step)
    sim.reset(start)
    taken = controls_taken(sim, m)
    own, statuses, deepest, contacts = [], Counter[str](), 0.0, 0
    stop = time.perf_counter() + budget
    try:
        for k in range(steps):
            control = controls[k // held % len(controls)][taken]
            if energy and k % max(1, steps // 50) == 0:
                energy.look(sim.q, sim.v)
            before = time.thread_time()
            done = sim.step(control=control)
            own.append(time.thread_time() - before)
            statuses[done.status] += 1
            deepest, contacts = max(deepest, done.penetration), max(contacts, len(done.contacts))
            if k == 0:
                result["penetration_at_start"] = done.penetration
            if time.perf_counter() > stop:
                break
    except dl.errors.DelassusError as error:
        result["error"] = f"{type(error).__name__}: {error}"
    solved = statuses.pop("solved", 0)
    result |= {
        "steps": len(own),
        "reached": sim.time,
        "solved": solved,
        "unsolved": dict(statuses),
        "penetration": deepest,
        "contacts": contacts,
        "microseconds": times(own),
    }
    if energy:
        result |= {"energy_growth": energy.growth, "energy_growth_relative": energy.relative}

    # MuJoCo's, for as many steps
    d, theirs, deepest = mujoco.MjData(m), [], 0.0
    d.qpos[:] = start
    stop = time.perf_counter() + budget
    for k in range(len(own)):
        d.ctrl[:] = controls[k // held % len(controls)]
        before = time.thread_time()
        mujoco.mj_step(m, d)
        theirs.append(time.thread_time() - before)
        deepest = max(deepest, -float(np.min(d.contact.dist, initial=0.0)))
        if time.perf_counter() > stop:
            break
    bad = (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
    unstable = sum(int(d.warning[int(w)].number) for w in bad)
    return result | {"mujoco": {"microseconds": times(theirs), "penetration": deepest, "unstable": unstable}}


# ---- all of it --------------------------------------------------------------------------------------------------------------


def examine(source: Source, write: Callable[[Result], None], seconds: float, budget: float) -> None:
    """Go through the stages; ``write`` gets all results so far after each, with the name of the stage that comes next."""
    result: Result = {"package": source.package, "name": source.name, "status": "skipped", "stage": "compile"}
    write(result)
    try:
        m = model_of(source)
    except Exception as error:
        write(result | {"reason": str(error) if isinstance(error, ValueError) else f"does not compile: {type(error).__name__}: {error}"})
        return
    if not m.nv:
        write(result | {"reason": "nothing moves"})
        return

    result |= {"status": "examined", "stage": "load", "sizes": sizes(m)}
    write(result)
    try:
        model = dl.load(source.file or m)
    except Exception as error:
        write(result | {"status": "error", "reason": f"{type(error).__name__}: {error}"})
        return
    ignored = list(model.ignored)
    result |= {"ignored": ignored, "blocking": blocking(ignored), "complete": not blocking(ignored)}

    still = [np.zeros(m.nu)]
    rng = np.random.default_rng(0)
    random = [random_control(m, rng) for _ in range(max(1, round(seconds / HOLD)))]
    off = without_motors(m)
    stages: dict[str, Callable[[], Any]] = {
        "dynamics": lambda: tree_dynamics(m, model, rng),
        "smooth": lambda: smooth(m, model, rng),
        "sensors": lambda: sensors(m, rng),
        "divergence": lambda: divergence(m, rng, budget),
        "passive": lambda: motion(off, still, seconds, budget, Energy(off) if keeps_energy(off) else None),
        "steered": lambda: motion(m, random, seconds, budget, None),
    }
    for name, stage in stages.items():
        write(result | {"stage": name})
        try:
            result[name] = stage()
        except Exception as error:
            result[name] = {"error": f"{type(error).__name__}: {error}"}
    write(result | {"stage": "done"})


def main() -> None:
    """Examine the model that the command names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0, help="simulated time of a motion [s]")
    parser.add_argument("--budget", type=float, default=30.0, help="time that a motion may take [s]")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # what is not represented is in the results
    with options.file.open("w", encoding="utf-8") as out:
        examine(
            Source(*json.loads(options.source)),
            lambda result: print(json.dumps(result), file=out, flush=True),
            options.seconds,
            options.budget,
        )


if __name__ == "__main__":
    main()
