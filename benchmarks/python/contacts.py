"""Contact forces beside MuJoCo's, on its own contacts: one solve from a cold start and from the step before.

python benchmarks/python/contacts.py [--states 12] [--repeats 15] [--json FILE] [--only NAME]

Each scene runs in MuJoCo (Newton, elliptic cones, 1 ms). At states along the way all of its contacts become ours, and g is the velocity that they would have without forces. MuJoCo's time is that of
mj_fwdConstraint, which solves its soft problem; ours of ContactSolver's admm to 1e-6 m/s, factorizations included, and the update of the operator apart. Residuals are found anew in NumPy from the forces of
each side, in the rigid problem: of MuJoCo's forces they say how soft its contacts are, not how well it solved. Prints medians; fails if a solve that says solved is not.
"""

import argparse
import json
import sys
import time

import mujoco
import numpy as np

import delassus as dl
from delassus import _core

DT, TOLERANCE = 1e-3, 1e-6
SCENES = {
    "stack of 30": (lambda: dl.scenes.box_stack(30), None, 1.0),
    "flat pyramid of 7": (lambda: dl.scenes.flat_pyramid(7), None, 0.5),
    "flat pyramid of 14": (lambda: dl.scenes.flat_pyramid(14), None, 0.5),
    "flat pyramid of 25": (lambda: dl.scenes.flat_pyramid(25), None, 0.3),
    "g1 fallen": (lambda: dl.scenes.on_floor(dl.load("g1")), "g1-fallen", 1.0),
}


def best(call, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times)


def contacts_of(model, m, d):
    """All of MuJoCo's contacts as ours."""

    def on(body, x):
        return d.xmat[body].reshape(3, 3).T @ (x - d.xpos[body])

    made = []
    for c in d.contact:
        other, body = (int(m.geom_bodyid[g]) for g in c.geom)
        kind = {} if other == 0 else {"other": other, "other_point": on(other, c.pos)}
        made.append(dl.PointContact(model, body, point=on(body, c.pos), normal=c.frame[:3], friction=c.friction[0], **kind))
    return made


def natural(G, g, friction, d, forces):
    """Largest d ‖λ − P(λ − σ̃ / d)‖, by the definition."""
    sigma = (G @ forces + g).reshape(-1, 3)
    f = forces.reshape(-1, 3)
    sigma[:, 0] += friction * np.hypot(sigma[:, 1], sigma[:, 2])
    x = f - sigma / d[:, None]
    n, t = x[:, 0], np.hypot(x[:, 1], x[:, 2])
    height = np.maximum((n + friction * t) / (1 + friction**2), 0)
    inside = t <= friction * n
    p = np.where(inside[:, None], x, np.column_stack([height, x[:, 1:] * (friction * height / np.maximum(t, 1e-300))[:, None]]))
    return float((d * np.linalg.norm(f - p, axis=1)).max(initial=0.0))


def diagonal(G, columns=64):
    """Of G, by unit vectors, some at a time."""
    out = np.zeros(G.shape[0])
    for first in range(0, G.shape[0], columns):
        rows = np.arange(first, min(first + columns, G.shape[0]))
        units = np.zeros((G.shape[0], len(rows)))
        units[rows, rows - first] = 1.0
        out[rows] = (G @ units)[rows, rows - first]
    return out


def mujoco_forces(m, d, contacts):
    """Impulses of MuJoCo's solution in our frames."""
    out = []
    for k, (c, ours) in enumerate(zip(d.contact, contacts, strict=True)):
        wrench = np.zeros(6)
        mujoco.mj_contactForce(m, d, k, wrench)
        world = np.asarray(c.frame).reshape(3, 3).T @ wrench[:3]
        axes = np.asarray(ours._recipe[2]["matrix"]).reshape(3, 3)
        out.append(axes @ world * DT)
    return np.concatenate(out) if out else np.zeros(0)


def measure(name, states, repeats):
    make, start, seconds = SCENES[name]
    model = make()
    m = mujoco.MjModel.from_xml_string(model.to_mjcf())
    m.opt.timestep, m.opt.cone, m.opt.solver = DT, mujoco.mjtCone.mjCONE_ELLIPTIC, mujoco.mjtSolver.mjSOL_NEWTON
    m.dof_frictionloss[:] = 0
    m.jnt_limited[:] = 0
    d = mujoco.MjData(m)
    d.qpos[:] = model.neutral() if start is None else dl.scenes.load(start).q
    steps = int(seconds / DT)
    chosen = set(np.linspace(steps // 4, steps - 2, states).astype(int).tolist())
    rows = []
    before = None
    for k in range(steps):
        if k in chosen or k - 1 in chosen:
            mujoco.mj_forward(m, d)
            contacts = contacts_of(model, m, d)
            q, v = dl.normalize(model, d.qpos.copy()), d.qvel.copy()
            G = dl.DelassusOperator(model, contacts)
            G.update(q)
            g = G.jacobian @ (v + DT * dl.forward_dynamics(model, q, v, np.zeros(model.nv)))
            friction = np.array([c.friction for c in contacts])
            solver = _core.ContactSolver("admm", len(g), np.column_stack([3.0 * np.arange(len(contacts)), friction]), np.zeros((0, 3)))
            if k in chosen:
                before = solver.solve(G._native, g, _core.ContactOptions(tolerance=TOLERANCE, max_iterations=1000), None), len(g)
            elif before is not None and before[1] == len(g):
                rows.append(one(m, d, model, G, g, solver, contacts, friction, before[0], q, repeats))
        mujoco.mj_step(m, d)
    return rows


def one(m, d, model, G, g, solver, contacts, friction, before, q, repeats):
    warmed = d.qacc_warmstart.copy()

    def peer(start):
        d.qacc_warmstart[:] = start
        mujoco.mj_fwdConstraint(m, d)
        return int(d.solver_niter.sum())

    def ours(start, rho):
        return solver.solve(G._native, g, _core.ContactOptions(tolerance=TOLERANCE, max_iterations=1000, rho=rho), start)

    smooth = d.qacc_smooth.copy()
    cold, warm = ours(None, 0.0), ours(before.forces, before.rho)
    row = {"contacts": len(contacts), "peer cold iterations": peer(smooth), "peer warm iterations": peer(warmed)}
    for label, result in (("cold", cold), ("warm", warm)):
        row |= {
            f"{label} iterations": result.iterations,
            f"{label} factorizations": result.factorizations,
            f"{label} solved": result.outcome == 0,
        }
    felt = diagonal(G).reshape(-1, 3).mean(axis=1)
    row["residual"] = natural(G, g, friction, felt, cold.forces)
    row["peer residual"] = natural(G, g, friction, felt, mujoco_forces(m, d, contacts))
    # the natural residual may be ten times the tolerance
    if row["cold solved"] and row["residual"] > 10 * TOLERANCE:
        sys.exit(f"said solved, but the residual is {row['residual']:.1e}")
    # in turn, so that both have the same machine
    row |= {"peer cold": best(lambda: peer(smooth), repeats), "cold": best(lambda: ours(None, 0.0), repeats)}
    row |= {"peer warm": best(lambda: peer(warmed), repeats), "warm": best(lambda: ours(before.forces, before.rho), repeats)}
    row["update"] = best(lambda: G._native.update(q), repeats)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json")
    parser.add_argument("--only", choices=SCENES)
    a = parser.parse_args()
    print(
        "| scene | contacts | MuJoCo cold, µs (iterations) | ours cold, µs (iterations, factorizations) | ratio | MuJoCo warm | ours warm | ratio | update | residual, MuJoCo's |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    tables = {}
    for name in [a.only] if a.only else SCENES:
        rows = measure(name, a.states, a.repeats)
        tables[name] = rows
        if not rows:
            print(f"| {name} | no two states in a row with the same contacts |")
            continue
        mid = {k: float(np.median([r[k] for r in rows])) for k in rows[0]}
        solved = sum(r["cold solved"] and r["warm solved"] for r in rows)
        print(
            f"| {name} ({solved}/{len(rows)} solved) | {mid['contacts']:.0f} | {mid['peer cold']:.0f} ({mid['peer cold iterations']:.0f}) | {mid['cold']:.0f} ({mid['cold iterations']:.0f}, "
            f"{mid['cold factorizations']:.0f}) | {mid['peer cold'] / mid['cold']:.2f} | {mid['peer warm']:.0f} ({mid['peer warm iterations']:.0f}) | {mid['warm']:.0f} ({mid['warm iterations']:.0f}, "
            f"{mid['warm factorizations']:.0f}) | {mid['peer warm'] / mid['warm']:.2f} | {mid['update']:.0f} | {mid['residual']:.0e}, {mid['peer residual']:.0e} |",
            flush=True,
        )
    if a.json:
        with open(a.json, "w") as file:
            json.dump({"mujoco": mujoco.__version__, "compiler": _core.compiler, "flags": _core.flags, "rows": tables}, file, indent=1)


if __name__ == "__main__":
    main()
