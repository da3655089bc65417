"""Derivatives of constrained dynamics from Python: batches of 128 states beside Pinocchio's one state at a time, results compared first.

python benchmarks/python/derivatives.py [--threads N] [--json FILE]
"""

import argparse
import json

import numpy as np
import pinocchio as pin

import delassus as dl
from delassus.reproduce.timing import best

SETS = ("go2-F3x4", "g1-F6x2", "talos-F6x2", "atlas_hands-F6x2")
BATCH = 128
TOLERANCE = 1e-8


def pinocchio_side(scene):
    """The same tree in Pinocchio by what a URDF would say, its contacts, and where each of our joints is."""
    model = scene.model
    m = pin.Model()
    m.gravity.linear = model.gravity
    joint_of, place_of = np.zeros(model.nbody, int), [pin.SE3.Identity() for _ in range(model.nbody)]
    kinds = {"hinge": pin.JointModelRevoluteUnaligned, "slide": pin.JointModelPrismaticUnaligned}
    for b in range(1, model.nbody):
        p = model.body_parent[b]
        place = place_of[p] * pin.SE3(pin.Quaternion(model.body_quaternion[b][[1, 2, 3, 0]]), model.body_position[b])
        joint = int(joint_of[p])
        for j in np.flatnonzero(model.joint_body == b):
            if model.joint_type[j] == "free":
                joint = m.addJoint(joint, pin.JointModelFreeFlyer(), pin.SE3.Identity(), model.joint_names[j])
                place = pin.SE3.Identity()
                continue
            anchor = pin.SE3(np.eye(3), model.joint_position[j])
            joint = m.addJoint(joint, kinds[model.joint_type[j]](model.joint_axis[j]), place * anchor, model.joint_names[j])
            place = anchor.inverse()
        joint_of[b], place_of[b] = joint, place
        if joint:
            m.appendBodyToJoint(joint, pin.Inertia(model.body_mass[b], model.body_com[b], model.body_inertia[b]), place)
    m.armature = model.dof_armature
    held = []
    for c in scene.constraints:
        _, rows, data = c._recipe
        body = int(data["bodies"][0])
        kind = pin.ContactType.CONTACT_6D if rows == 6 else pin.ContactType.CONTACT_3D
        at = pin.SE3(np.eye(3), place_of[body].act(np.asarray(data["points"], float).reshape(-1, 3)[0]))
        held.append(pin.RigidConstraintModel(kind, m, int(joint_of[body]), at, pin.LOCAL_WORLD_ALIGNED))
    return m, held


def states(scene):
    """States near the scene's that keep the constraints: J v = 0."""
    model, rng = scene.model, np.random.default_rng(0)
    G = dl.DelassusOperator(model, scene.constraints, damping=1e-9)
    q = np.stack([dl.integrate(model, scene.q, 0.1 * rng.uniform(-1, 1, model.nv)) for _ in range(BATCH)])
    v, tau = rng.uniform(-1, 1, (BATCH, model.nv)), 10 * rng.uniform(-1, 1, (BATCH, model.nv))
    for k in range(BATCH):
        G.update(q[k])
        J = G.jacobian @ np.eye(model.nv)
        v[k] -= np.linalg.pinv(J) @ (J @ v[k])
    return q, v, tau


def measure(name, threads):
    scene = dl.scenes.contact_set(name)
    model = scene.model
    q, v, tau = states(scene)
    m, held = pinocchio_side(scene)
    data, settings = m.createData(), pin.ProximalSettings(1e-12, 0.0, 1)
    held_data = [c.createData() for c in held]
    pin.initConstraintDynamics(m, data, held, held_data)
    free = model.joint_type[0] == "free"
    pq, pv, pt, turns = q.copy(), v.copy(), tau.copy(), np.stack([np.eye(model.nv)] * BATCH)
    for k in range(BATCH if free else 0):
        pq[k, 3:7] = q[k, [4, 5, 6, 3]]
        turns[k, :3, :3] = pin.Quaternion(pq[k, 3:7]).matrix().T
        pv[k], pt[k] = turns[k] @ v[k], turns[k] @ tau[k]

    L = dl.LinearizedDynamics(model, scene.constraints)
    out, one = L.derivatives_at(q, v, tau), L.derivatives_at(q[0], v[0], tau[0])
    error = 0.0
    for k in range(BATCH):
        pin.constraintDynamics(m, data, pq[k], pv[k], pt[k], held, held_data, settings)
        pin.computeConstraintDynamicsDerivatives(m, data, held, held_data, settings)
        T = turns[k]
        for got, want in (
            (out.acceleration_tau[k], T.T @ data.ddq_dtau @ T),
            (out.forces_tau[k], data.dlambda_dtau @ T),
            (out.forces_v[k], data.dlambda_dv @ T),
        ):
            error = max(error, np.abs(got - want).max() / np.abs(want).max())
    if error > TOLERANCE:
        raise SystemExit(f"{name}: differs by {error:g}: the times mean nothing")

    def peer():
        for k in range(BATCH):
            pin.constraintDynamics(m, data, pq[k], pv[k], pt[k], held, held_data, settings)
            pin.computeConstraintDynamicsDerivatives(m, data, held, held_data, settings)

    shared = dl.LinearizedDynamics(model, scene.constraints)
    B = dl.BatchLinearizedDynamics(model, scene.constraints, BATCH)
    weights = np.ones((BATCH, model.nv))
    times = best(
        {
            "Pinocchio": peer,
            "one state": lambda: [L.derivatives_at(q[0], v[0], tau[0], out=one) for _ in range(BATCH)],
            "batch": lambda: L.derivatives_at(q, v, tau, out=out),
            f"batch, {threads} threads": lambda: shared.derivatives_at(q, v, tau, threads=threads, out=out),
            "batch, update and vjp": lambda: (B.update(q, v, tau), B.vjp(weights)),
        },
        repeats=20,
        inner=1,
    )
    return {"set": name, "nv": model.nv, "error": error, "microseconds": {key: t / BATCH for key, t in times.items()}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = [measure(name, options.threads) for name in SETS]
    print(f"delassus {dl.__version__}, pin {pin.__version__}; µs a state, best of 20 batches of {BATCH}")
    print("| set | nv | error | " + " | ".join(rows[0]["microseconds"]) + " | Pinocchio over batch |")
    print("|---" * (4 + len(rows[0]["microseconds"])) + "|")
    for row in rows:
        t = row["microseconds"]
        ratio = t["Pinocchio"] / t["batch"]
        print(f"| {row['set']} | {row['nv']} | {row['error']:.0e} | " + " | ".join(f"{x:.2f}" for x in t.values()) + f" | {ratio:.2f} |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=2)
