"""Piles: steps of many bodies in contact, solved or not, their time beside MuJoCo's, and how time, memory and fill grow with the number of contacts.

Scenes: both engines step 1 ms from the same start, in turns, ten steps each, so that a slow moment of the machine hits both. MuJoCo: Newton, elliptic cones, implicitfast, its default solref and
solimp. A time is that of one call of `step()` or `mj_step` from Python. On every twentieth step the residual of Coulomb's and Signorini's laws is computed again, in NumPy, from `sim.contact_problem()`
and the forces of the step; where rows other than contacts take part (limits, dry friction), whose forces a step does not tell, from a solution of the same problem, island by island.

Growth: boxes in a wide, shallow bin, the same with Go2s among them, and boxes in deep bins, a process for every size. Here G would not fit as a
matrix: residuals are computed from the velocities and forces of the step, with rows of free bodies, velocities and inertias of robots by MuJoCo, and the gaps of its collision detection. Momentum is
checked for every box, and for the base of every robot, on which no limit or friction of a joint acts.

Where a step or a solution is called solved and its residual is above the tolerance, the exit code is 1.

python benchmarks/python/piles.py [--scenes NAME …] [--sizes BOXES:LAYERS[:ROBOTS] …] [--quick] [--json FILE] [--plot FILE]
"""

import argparse
import copy
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import mujoco
import numpy as np
from scipy.spatial import cKDTree

import delassus as dl
from delassus.bench import constraints_of

STEP, CHUNK, SAMPLE, TOLERANCE, SLOP, REACH = 1e-3, 10, 20, 1e-6, 1e-5, 1e-3
SIZES = ["1000:3", "3000:3", "10000:3", "870:3:10", "2610:3:30", "8700:3:100", "100:12", "300:18", "600:22"]  # boxes : layers : robots


# ---- scenes -------------------------------------------------------------------------------------------------------------------


def thrown(model, index, speed):
    v = np.zeros(model.nv)
    v[index] = speed
    return v


def demo():
    return dl.scenes.pyramid_with_robots(), None


def pyramid():
    model = dl.scenes.box_pyramid(5)
    return model, 0.3 * np.random.default_rng(0).standard_normal(model.nv)


def box_bin():
    return dl.scenes.box_bin(100, friction=(0.3, 0.8)), None


def wall():
    model = dl.scenes.brick_wall()
    return model, thrown(model, -6, 8.0)


def heap():
    return dl.scenes.robot_heap(3), None


SCENES = {
    "demo": (demo, 1200),
    "pyramid of 55, pushed": (pyramid, 300),
    "100 boxes in a bin": (box_bin, 800),
    "wall hit by a ball": (wall, 600),
    "three G1 in a heap": (heap, 1200),
}


def compiled(model):
    """MuJoCo's model, for us and, with the settings that it is compared with, for MuJoCo."""
    spec = mujoco.MjSpec.from_string(model.to_mjcf())
    spec.memory = 4 << 30 if model.nv > 6000 else 1 << 30  # more than it needs; only what is written to is taken
    ours = spec.compile()
    m = copy.copy(ours)
    m.opt.timestep, m.opt.solver, m.opt.cone = STEP, mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtCone.mjCONE_ELLIPTIC
    m.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return ours, m


# ---- residuals, from the definition: nothing here is the library's ------------------------------------------------------------------


def project(x, mu):
    """Nearest points of cones ‖t‖ ≤ µ n; x (K, 3), normal first."""
    n, t = x[:, 0], np.hypot(x[:, 1], x[:, 2])
    along = np.column_stack([np.ones(len(x)), mu[:, None] * x[:, 1:] / np.maximum(t, 1e-300)[:, None]]) / np.sqrt(1 + mu * mu)[:, None]
    on_cone = along * np.einsum("ij,ij->i", along, x)[:, None]
    return np.where((t <= mu * n)[:, None], x, np.where((mu * t <= -n)[:, None], 0.0, on_cone))


def cone_residual(force, sigma, mu, d, share):
    """Largest of primal, dual and a share of the natural residual [m/s]: what a tolerance is held against. λ and σ (K, 3), d (K,) the mean diagonal of G.

    The simulator holds all of the natural residual against its tolerance, solve_contacts a tenth.
    """
    if not len(force):
        return 0.0
    shifted = sigma + np.column_stack([mu * np.hypot(sigma[:, 1], sigma[:, 2]), np.zeros((len(mu), 2))])
    primal = d * np.linalg.norm(force - project(force, mu), axis=1)
    natural = d * np.linalg.norm(force - project(force - shifted / d[:, None], mu), axis=1)
    return float(max(primal.max(), np.maximum(-sigma[:, 0], 0).max(), share * natural.max()))


def interval_residual(force, sigma, lower, upper, d, share):
    """The same of rows with λ between two ends."""
    if not len(force):
        return 0.0
    primal = d * np.abs(force - np.clip(force, lower, upper))
    dual = np.where(np.isinf(np.where(sigma > 0, lower, upper)), np.abs(sigma), 0.0)
    natural = d * np.abs(force - np.clip(force - sigma / d, lower, upper))
    return float(max(primal.max(), dual.max(), share * natural.max()))


def held(tolerance, g):
    """The tolerance that docs/contacts.md promises for a problem with these velocities."""
    largest = np.abs(g).max(initial=0.0)
    return max(min(tolerance, max(1e-4 * largest, 1e-6 * tolerance)), 1e-11 * largest)


def residual_of_problem(problem, rows, forces, *, of_step):
    """Residual of forces on some rows of a contact problem over the tolerance: that of a step, or that of a solution."""
    share = 1.0 if of_step else 0.1
    G, g = problem.G[np.ix_(rows, rows)], problem.g[rows]
    sigma, d = G @ forces + g, np.diag(G).copy()
    place = {int(r): k for k, r in enumerate(rows)}
    cones = [(place[int(r)], mu) for r, mu in problem.cones if int(r) in place]
    ends = np.array([(place[int(r)], low, high) for r, low, high in problem.intervals if int(r) in place]).reshape(-1, 3)
    first, mu = np.array([r for r, _ in cones], dtype=int), np.array([x for _, x in cones])
    triples = first[:, None] + np.arange(3)
    mean = d[triples].mean(axis=1)
    largest = d.max(initial=0.0)
    mean, d = (np.where(x <= 1e-12 * largest, largest, x) for x in (mean, d))
    k = ends[:, 0].astype(int)
    worst = max(
        cone_residual(forces[triples], sigma[triples], mu, mean, share),
        interval_residual(forces[k], sigma[k], ends[:, 1], ends[:, 2], d[k], share),
    )
    return worst / (problem.tolerance if of_step else held(problem.tolerance, g))


def checked(problem, step):
    """Residuals of a step's islands over what is held, by whether the islands were called solved; and how many were computed from a solution of their own."""
    places = {(*x, *b): k for k, (x, b) in enumerate(zip(step.contacts.position.tolist(), step.contacts.bodies.tolist(), strict=True))}
    order = [places[(*x, *b)] for x, b in zip(problem.positions.tolist(), problem.bodies.tolist(), strict=True)]
    local = np.einsum("kij,kj->ki", problem.frames, step.contacts.force[order]) * problem.timestep
    contact_of = np.full(len(problem.g), -1)
    for k, (row, _) in enumerate(problem.cones):
        contact_of[int(row) : int(row) + 3] = k
    worst = {"claimed": 0.0, "other": 0.0}
    solutions = 0
    solved_forces = step.status not in ("iteration_limit", "stalled", "infeasible")
    for island in np.unique(problem.island):
        rows = np.flatnonzero(problem.island == island)
        if (problem.kinds[rows] == "contact").all():
            claimed = solved_forces
            residual = residual_of_problem(problem, rows, local[contact_of[rows[::3]]].ravel(), of_step=True)
        else:
            result = island_of(problem, rows).solve()
            claimed, solutions = result.status == "solved", solutions + 1
            residual = residual_of_problem(problem, rows, result.forces, of_step=False)
        kind = "claimed" if claimed else "other"
        worst[kind] = max(worst[kind], residual)
    return worst, solutions


def island_of(problem, rows):
    """The problem of one island."""
    place = {int(r): k for k, r in enumerate(rows)}
    keep = np.array([int(r) in place for r, _ in problem.cones], dtype=bool)

    def moved(sets):
        mine = sets[[int(r) in place for r in sets[:, 0]]] if len(sets) else sets
        return np.array([(place[int(r)], *rest) for r, *rest in mine]).reshape(-1, sets.shape[1])

    return dl.ContactProblem(
        G=problem.G[np.ix_(rows, rows)], g=problem.g[rows], cones=moved(problem.cones), intervals=moved(problem.intervals), warm_start=problem.warm_start[rows],
        island=np.zeros(len(rows), dtype=int), kinds=problem.kinds[rows], positions=problem.positions[keep], gaps=problem.gaps[keep], frames=problem.frames[keep],
        bodies=problem.bodies[keep], body_names=problem.body_names, q=problem.q, v=problem.v, time=problem.time, timestep=problem.timestep, tolerance=problem.tolerance,
        max_iterations=problem.max_iterations, method=problem.method, model=problem.model,
    )  # fmt: skip


class Bodies:
    """Residuals of a step of free boxes, each with its frame in its centre of mass, and robots: σ = J v⁺ + max(φ − slop, 0) / dt, with v⁺ before boxes turn; rows and gaps by themselves.

    Boxes: v⁺ = v + dt g + M⁻¹ Jᵀ λ from the forces. Robots: v⁺ as the step tells it, velocities of points by MuJoCo; d, the diagonal of G, with its M̂ = M + dt D + dt² K.
    """

    def __init__(self, m):
        self.m, self.d = m, mujoco.MjData(m)
        self.mass = np.where(np.arange(m.nbody) > 0, m.body_mass, np.inf)
        self.inertia = np.where(np.arange(m.nbody)[:, None] > 0, m.body_inertia, np.inf)
        self.margins = (m.geom_margin.copy(), m.body_margin.copy())
        # a box is a body with a free joint that nothing hangs on; q and v of it begin at
        free = m.jnt_type == mujoco.mjtJoint.mjJNT_FREE
        self.q_at, self.v_at = np.full(m.nbody, -1), np.full(m.nbody, -1)
        self.q_at[m.jnt_bodyid[free]], self.v_at[m.jnt_bodyid[free]] = m.jnt_qposadr[free], m.jnt_dofadr[free]
        parents = np.zeros(m.nbody, dtype=bool)
        parents[m.body_parentid[1:]] = True
        self.box = (self.q_at >= 0) & ~parents
        self.base = (self.q_at >= 0) & parents
        self.robot = ~self.box & (np.arange(m.nbody) > 0)

    def collide(self, q):
        m, d = self.m, self.d
        m.geom_margin[:], m.body_margin[:] = np.maximum(self.margins[0], REACH), self.margins[1] + REACH
        armature = m.dof_armature.copy()
        m.dof_armature[:] += STEP * m.dof_damping
        for j in np.flatnonzero(m.jnt_stiffness):
            m.dof_armature[m.jnt_dofadr[j]] += STEP**2 * m.jnt_stiffness[j]
        d.qpos[:] = q
        mujoco.mj_fwdPosition(m, d)
        m.geom_margin[:], m.body_margin[:] = self.margins
        m.dof_armature[:] = armature

    def gaps(self, contacts):
        """Of contacts by MuJoCo, NaN where it has none at that place."""
        m, d = self.m, self.d
        found = np.full(len(contacts.position), np.nan)
        if d.ncon and len(found):
            # nearest of the same two bodies, which are metres away from others in the coordinates used here
            pairs = np.sort(m.geom_bodyid[d.contact.geom], axis=1), np.sort(contacts.bodies, axis=1)
            near, index = cKDTree(np.hstack([d.contact.pos, pairs[0]])).query(np.hstack([contacts.position, pairs[1]]))
            # points of a face are moved along its normal, by a tenth of a millimetre or so
            found = np.where(near < 3e-4, d.contact.dist[index], np.nan)
        return found

    def residual(self, before, v_before, step):
        """Residual over tolerance; relative error of momentum, of boxes and of robots; share of contacts whose gap is not known (kept from the step before, or between one slop and two)."""
        c, m, d = step.contacts, self.m, self.d
        K, boxes = len(c.position), np.flatnonzero(self.box)
        self.collide(before)
        R, centres = d.xmat.reshape(-1, 3, 3), d.xpos.copy()
        at = self.v_at[boxes][:, None]
        after, start = step.v[at + np.arange(6)], v_before[at + np.arange(6)]
        # velocities that impulses leave, before boxes turn; of robots by MuJoCo
        linear, angular = np.zeros((m.nbody, 3)), np.zeros((m.nbody, 3))
        torque = np.zeros((m.nbody, 3))
        for side, sign in ((0, 1.0), (1, -1.0)):
            np.add.at(torque, c.bodies[:, side], sign * STEP * np.cross(c.position - centres[c.bodies[:, side]], c.force))
        turning = start[:, 3:] + np.einsum("bji,bj->bi", R[boxes], torque[boxes]) / self.inertia[boxes]
        linear[boxes], angular[boxes] = after[:, :3], np.einsum("bij,bj->bi", R[boxes], turning)
        d.qvel[:] = step.v
        mujoco.mj_fwdVelocity(m, d)
        six = np.empty(6)
        for b in np.flatnonzero(self.robot):
            mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_XBODY, b, six, 0)
            angular[b], linear[b] = six[:3], six[3:]
        t1 = np.cross(c.normal, np.where(np.abs(c.normal[:, :1]) < 0.7, [[1.0, 0, 0]], [[0, 1.0, 0]]))
        t1 /= np.linalg.norm(t1, axis=1, keepdims=True)
        axes = np.stack([c.normal, t1, np.cross(c.normal, t1)], axis=1)
        speed, diagonal = np.zeros((K, 3)), np.zeros((K, 3))
        for side, sign in ((0, 1.0), (1, -1.0)):
            body = c.bodies[:, side]
            arm = c.position - centres[body]
            speed += sign * (linear[body] + np.cross(angular[body], arm))
            lever = np.einsum("kji,kaj->kai", R[body], np.cross(arm[:, None, :], axes))  # r × axis, body frame
            diagonal += (1 / self.mass[body])[:, None] + (lever**2 / self.inertia[body][:, None, :]).sum(axis=2)
        for k in np.flatnonzero(self.robot[c.bodies].any(axis=1)):
            J = axes[k] @ (self.jacobian(c.bodies[k, 0], c.position[k]) - self.jacobian(c.bodies[k, 1], c.position[k]))
            x = np.empty_like(J)
            mujoco.mj_solveM(m, d, x, J)
            diagonal[k] = (J * x).sum(axis=1)
        sigma = np.einsum("kai,ki->ka", axes, speed)
        gap = self.gaps(c)
        known = ~np.isnan(gap)
        # what bore in the step before touches up to twice the slop: between one and two of them a gap may count or not
        known &= ~((np.nan_to_num(gap) > SLOP) & (np.nan_to_num(gap) < 2 * SLOP))
        sigma[:, 0] += np.where(known, np.maximum(np.nan_to_num(gap) - SLOP, 0.0), 0.0) / STEP
        force = np.einsum("kai,ki->ka", axes, c.force) * STEP
        # m (v⁺ − v) = dt (m g + f)
        total = step.body_forces(m.nbody)
        mass = self.mass[boxes, None]
        balance = np.abs(mass * (after[:, :3] - start[:, :3]) - STEP * (mass * m.opt.gravity + total[boxes]))
        size = STEP * (mass * 9.81 + np.abs(total[boxes])).max(axis=1, keepdims=True)
        worst = cone_residual(force[known], sigma[known], c.friction[known], diagonal.mean(axis=1)[known], 1.0)
        return (
            worst / TOLERANCE,
            float((balance / size).max()),
            self.robot_balance(v_before, step, total),
            float(1 - known.mean()) if K else 0.0,
        )

    def jacobian(self, body, point):
        J = np.zeros((3, self.m.nv))
        if body:
            mujoco.mj_jac(self.m, self.d, J, None, point, body)
        return J

    def robot_balance(self, v_before, step, total):
        """Linear momentum of every robot: rows of its base of M (v⁺ − v) = dt (f − h(v½)), v½ = v + ½ dt M̂⁻¹ (τ − h(v)); relative to its weight and the forces on it."""
        m, d = self.m, self.d
        bases = np.flatnonzero(self.base)
        if not len(bases):
            return 0.0
        d.qvel[:] = v_before
        mujoco.mj_fwdVelocity(m, d)
        half = np.empty((1, m.nv))
        mujoco.mj_solveM(m, d, half, (d.qfrc_passive - d.qfrc_bias)[None])
        d.qvel[:] += STEP / 2 * half[0]
        mujoco.mj_fwdVelocity(m, d)
        change = np.empty(m.nv)
        mujoco.mj_mulM(m, d, change, step.v - v_before)
        rows = self.v_at[bases][:, None] + np.arange(3)
        forces, sizes = np.zeros((m.nbody, 3)), np.zeros((m.nbody, 1))
        np.add.at(forces, m.body_rootid, total)
        np.add.at(sizes, m.body_rootid, np.abs(total).max(axis=1, keepdims=True))
        error = np.abs(change[rows] - STEP * (forces[bases] - d.qfrc_bias[rows]))
        return float((error / (STEP * (9.81 * m.body_subtreemass[bases, None] + sizes[bases]))).max())


# ---- scenes beside MuJoCo ----------------------------------------------------------------------------------------------------------


def spread(values, *shares):
    values = np.asarray(values, dtype=float)
    told = {"mean": float(values.mean()), "median": float(np.median(values)), "max": float(values.max())}
    return told | {f"p{share}": float(np.percentile(values, share)) for share in shares}


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def measure(name, quick=False):
    """One scene: both engines in turns."""
    make, steps = SCENES[name]
    model, v = make()
    steps = steps // 10 if quick else steps
    ours, m = compiled(model)
    sim, d = dl.Simulator(ours, timestep=STEP, tolerance=TOLERANCE), mujoco.MjData(m)
    if v is not None:
        sim.reset(v=v)
        d.qvel[:] = v
    spent, other, contacts, theirs, iterations, factors, residuals = [], [], [], [], [], [], []
    status, stages = Counter(), Counter()
    worst, solutions, samples = {"claimed": 0.0, "other": 0.0}, 0, 0
    for k in range(steps):
        problem = sim.contact_problem() if k % SAMPLE == SAMPLE - 1 else None
        clock = time.perf_counter()
        step = sim.step()
        spent.append(time.perf_counter() - clock)
        status[step.status] += 1
        stages.update(step.timings)
        contacts.append(len(step.contacts))
        iterations.append(step.iterations)
        factors.append(step.factorizations)
        residuals.append(step.residual)
        if problem is not None and len(problem.g):
            found, own = checked(problem, step)
            worst = {kind: max(worst[kind], found[kind]) for kind in worst}
            solutions, samples = solutions + own, samples + 1
        if k % CHUNK == CHUNK - 1:
            progress(f"{name}: step {k + 1} of {steps}, {status['solved']} solved")
            for _ in range(CHUNK):
                clock = time.perf_counter()
                mujoco.mj_step(m, d)
                other.append(time.perf_counter() - clock)
                theirs.append(d.ncon)
    progress("")
    mine, peer = spread(1e3 * np.array(spent), 95, 99), spread(1e3 * np.array(other), 95, 99)
    return {
        "scene": name, "nv": int(m.nv), "steps": steps, "status": dict(status), "unsolved": steps - status["solved"],
        "largest residual told [m/s]": float(max(residuals)), "samples": samples, "islands by a solution of their own": solutions,
        "largest residual of solved, over the tolerance": worst["claimed"], "of the others, over the tolerance": worst["other"],
        "contacts": spread(contacts), "MuJoCo's contacts": spread(theirs), "iterations": spread(iterations, 95, 99), "factorizations": spread(factors, 95, 99),
        "step [ms]": mine, "mj_step [ms]": peer, "ratio of means": mine["mean"] / peer["mean"], "ratio of medians": mine["median"] / peer["median"],
        "p99 over median": mine["p99"] / mine["median"], "mj p99 over median": peer["p99"] / peer["median"],
        "stages [ms]": {stage: 1e3 * total / steps for stage, total in stages.items()}, "finite": bool(np.isfinite(sim.q).all()),
    }  # fmt: skip


def row_of(r):
    t, o = r["step [ms]"], r["mj_step [ms]"]
    f, i, c = r["factorizations"], r["iterations"], r["contacts"]
    words = ", ".join(f"{n} {word}" for word, n in sorted(r["status"].items(), key=lambda x: -x[1]))
    return (
        f"| {r['scene']} | {r['nv']} | {words} | {r['largest residual of solved, over the tolerance']:.2g}, {r['of the others, over the tolerance']:.2g} | {c['mean']:.0f}, {c['max']:.0f} "
        f"| {i['mean']:.0f}, {i['max']:.0f} | {f['mean']:.1f}, {f['p95']:.0f}, {f['p99']:.0f}, {f['max']:.0f} | {t['mean']:.2f}, {t['median']:.2f}, {t['p99']:.2f} "
        f"| {o['mean']:.2f}, {o['median']:.2f}, {o['p99']:.2f} | {r['ratio of means']:.2f} | {r['p99 over median']:.1f}, {r['mj p99 over median']:.1f} |"
    )


# ---- growth ------------------------------------------------------------------------------------------------------------------------


def peak_memory():
    """Largest resident memory of this process so far [MB]; getrusage would count the parent's, from which it was forked."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def fill_of(model, q, contacts):
    """Couplings that the elimination keeps, those of contacts and fill-in."""
    return dl.DelassusOperator(model, constraints_of(model, q, contacts)).fill if len(contacts.position) else 0


def within_ranges(m):
    """Coordinates as built, with hinges and slides that would be beyond their ranges in the middle of these: a Go2's knees."""
    q = m.qpos0.copy()
    for j in np.flatnonzero(m.jnt_limited):
        k, (low, high) = m.jnt_qposadr[j], m.jnt_range[j]
        if not low < q[k] < high:
            q[k] = (low + high) / 2
    return q


def grow(n, layers, robots, seconds, timed):
    """One size, in a process of its own: boxes fall for a while, then both engines are timed."""
    clock = time.perf_counter()
    model = dl.scenes.box_bin(n, layers, robots=robots)
    building = time.perf_counter() - clock
    clock = time.perf_counter()
    ours, m = compiled(model)
    compiling = time.perf_counter() - clock
    clock = time.perf_counter()
    sim = dl.Simulator(ours, timestep=STEP, tolerance=TOLERANCE)
    making = time.perf_counter() - clock
    sim.reset(within_ranges(m))
    before = peak_memory()
    status, falling = Counter(), round(seconds / STEP)
    for k in range(falling):
        status[sim.step().status] += 1
        progress(f"{n} boxes: falling, step {k + 1} of {falling}")
    q, v = sim.q, sim.v
    spent, contacts, iterations, factors, stages, late = [], [], [], [], Counter(), Counter()
    for k in range(timed):
        clock = time.perf_counter()
        step = sim.step()
        spent.append(time.perf_counter() - clock)
        late[step.status] += 1
        contacts.append(len(step.contacts))
        iterations.append(step.iterations)
        factors.append(step.factorizations)
        stages.update(step.timings)
        progress(f"{n} boxes: timed step {k + 1} of {timed}")
    peak = peak_memory()
    # the last step, by its definition; and what MuJoCo takes from where the timed steps began
    before_q, before_v = sim.q, sim.v
    step = sim.step()
    residual, balance, robot_balance, unknown = Bodies(m).residual(before_q, before_v, step)
    solved = step.status == "solved"
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = q, v
    other, theirs = [], []
    for _ in range(timed):
        clock = time.perf_counter()
        mujoco.mj_step(m, d)
        other.append(time.perf_counter() - clock)
        theirs.append(d.ncon)
    progress("")
    return {
        "boxes": n, "layers": layers, "robots": robots, "bodies": int(m.nbody) - 1, "model [s]": building, "compiler [s]": compiling, "simulator [s]": making, "status, falling": dict(status), "status": dict(late),
        "contacts": spread(contacts), "iterations": spread(iterations), "factorizations": spread(factors), "islands": int(step.islands),
        "fill": fill_of(sim.model, before_q, step.contacts), "step [ms]": spread(1e3 * np.array(spent), 99), "mj_step [ms]": spread(1e3 * np.array(other), 99),
        "MuJoCo's contacts": spread(theirs), "ratio of means": float(np.mean(spent) / np.mean(other)), "µs a contact": float(1e6 * np.mean(spent) / max(np.mean(contacts), 1)),
        "stages [ms]": {stage: 1e3 * total / timed for stage, total in stages.items()}, "peak memory [MB]": peak, "of it before the first step [MB]": before,
        "residual of the last step, over the tolerance": residual, "it is called solved": solved, "its error of momentum": balance, "that of robots": robot_balance, "its contacts without a gap": unknown,
    }  # fmt: skip


def growth(sizes, quick):
    """Every size in a process of its own, which has its own peak of memory."""
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "size.json"
            command = [sys.executable, __file__, "--one-size", size, "--json", str(out), *(["--quick"] if quick else [])]
            if subprocess.run(command, check=False).returncode not in (0, 1) or not out.exists():
                print(f"| {size} | did not finish |", flush=True)
                continue
            rows.append(json.loads(out.read_text()))
        r = rows[-1]
        words = ", ".join(f"{n} {word}" for word, n in r["status"].items())
        print(
            f"| {r['boxes']}, {r['layers']}, {r['robots']} | {r['contacts']['mean']:.0f} | {words} | {r['iterations']['mean']:.0f} | {r['step [ms]']['mean']:.1f} | {r['mj_step [ms]']['mean']:.1f} | {r['ratio of means']:.2f} "
            f"| {r['µs a contact']:.1f} | {r['peak memory [MB]']:.0f}, {r['of it before the first step [MB]']:.0f} | {r['fill']} | {r['residual of the last step, over the tolerance']:.2g} "
            f"| {r['model [s]']:.1f}, {r['compiler [s]']:.1f}, {r['simulator [s]']:.1f} |",
            flush=True,
        )
    return rows


def plot(rows, path):
    """Time of a step, peak memory and fill against contacts, wide bins and deep ones."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.4), layout="constrained")
    ours, theirs = "#1f5fa8", "#e08a1e"
    kinds = {
        "wide bin": [r for r in rows if r["layers"] < 10 and not r["robots"]],
        "with robots": [r for r in rows if r["layers"] < 10 and r["robots"]],
        "deep bin": [r for r in rows if r["layers"] >= 10],
    }
    panels = (
        ("A step [ms]", lambda r: r["step [ms]"]["mean"], lambda r: r["mj_step [ms]"]["mean"]),
        ("Peak memory [MB], of steps alone", lambda r: max(r["peak memory [MB]"] - r["of it before the first step [MB]"], 1.0), None),
        ("Fill: couplings of the factor", lambda r: max(r["fill"], 1), None),
    )
    for ax, (title, mine, peer) in zip(figure.subplots(1, 3), panels, strict=True):
        for (kind, some), line in zip(kinds.items(), ("-", ":", "--"), strict=True):
            some = sorted(some, key=lambda r: r["contacts"]["mean"])
            x = [max(r["contacts"]["mean"], 1) for r in some]
            if not x:
                continue
            ax.loglog(x, [mine(r) for r in some], line, marker="o", markersize=4, color=ours, linewidth=1.1, label=f"delassus, {kind}")
            if peer is not None:
                ax.loglog(x, [peer(r) for r in some], line, marker="s", markersize=4, color=theirs, linewidth=1.1, label=f"MuJoCo, {kind}")
        ax.set(title=title, xlabel="contacts")
        ax.title.set_fontsize(10)
        ax.tick_params(which="both", labelsize=8)
        ax.yaxis.set_minor_formatter("")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
        ax.set_ylim(bottom=ax.get_ylim()[0] / 4)  # room for the legend
        ax.legend(frameon=False, fontsize=7, loc="lower right")
    figure.savefig(path, dpi=100)


# ---- command -------------------------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", nargs="*", default=list(SCENES), help="names of scenes, none for growth alone")
    parser.add_argument("--sizes", nargs="*", default=SIZES, help="boxes:layers or boxes:layers:robots of the bins, none for scenes alone")
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps, and no bin of more than 1,000 boxes")
    parser.add_argument("--json", help="write all figures to this file")
    parser.add_argument("--plot", help="draw growth into this PNG")
    parser.add_argument("--one-size", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.scenes) - SCENES.keys():
        parser.error(f"no scene {sorted(unknown)}; there are {list(SCENES)}")
    if options.one_size:
        n, layers, robots = map(int, f"{options.one_size}:0".split(":")[:3])
        fall = 0.08 * np.sqrt(layers) + 0.3 if layers >= 5 else 0.4 if robots else 0.2  # [s]; boxes above robots begin higher
        row = grow(n, layers, robots, fall / 2 if options.quick else fall, 5 if options.quick else 50)
        Path(options.json).write_text(json.dumps(row))
        return 0

    rows, sizes = [], []
    if options.scenes:
        print(
            "| scene | nv | steps by status | largest residual over the tolerance: solved, others | contacts: mean, max | iterations: mean, max | factorizations: mean, p95, p99, max "
            "| step, ms: mean, median, p99 | mj_step, ms | ratio of means | p99 over median: ours, MuJoCo's |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in options.scenes:
        rows.append(measure(name, options.quick))
        print(row_of(rows[-1]), flush=True)
    if rows:
        names = list(rows[0]["stages [ms]"])
        print(f"\n| stages, ms a step | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
        for r in rows:
            times = [format(r["stages [ms]"][name], ".3f") for name in names]
            print(f"| {r['scene']} | {' | '.join(times)} |")
    wanted = [size for size in options.sizes if not options.quick or int(size.split(":")[0]) <= 1000]
    if wanted:
        print(
            "\n| boxes, layers, robots | contacts | steps by status | iterations | step, ms | mj_step, ms | ratio | µs a contact | peak memory, MB: all, before the first step | fill "
            "| residual of the last step over the tolerance | s: model, MuJoCo's compiler, simulator |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
        sizes = growth(wanted, options.quick)
    if options.json:
        Path(options.json).write_text(json.dumps({"scenes": rows, "growth": sizes, "mujoco": mujoco.__version__}, indent=1))
    if options.plot:
        plot(sizes, options.plot)

    wrong = [r["scene"] for r in rows if r["largest residual of solved, over the tolerance"] > 1 + 1e-6 or not r["finite"]]
    wrong += [
        f"{r['boxes']} boxes"
        for r in sizes
        if r["its error of momentum"] > 1e-9
        or r["that of robots"] > 1e-9
        or (r["it is called solved"] and r["residual of the last step, over the tolerance"] > 1.01)
    ]
    if wrong:
        print(
            f"\nCalled solved with a residual above the tolerance, or not finite, or momentum not balanced: {', '.join(wrong)}.",
            file=sys.stderr,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
