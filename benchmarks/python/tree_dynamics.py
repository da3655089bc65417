"""What a Python user sees: one call with a workspace and `out=`, beside Pinocchio's and MuJoCo's Python, results compared first.

python benchmarks/python/tree_dynamics.py [--json FILE]
"""

import argparse
import json

import mujoco
import numpy as np
import pinocchio as pin

import delassus as dl
from delassus.check import full_mass_matrix
from delassus.model.load import compile_source
from delassus.reproduce.timing import best

ROBOTS = ("go2", "g1", "talos")
TOLERANCE = 1e-9


def pinocchio_model(model):
    """The same tree in Pinocchio, with its own free flyer."""
    m = pin.Model()
    m.gravity.linear = model.gravity
    kinds = {"hinge": pin.JointModelRevoluteUnaligned, "free": lambda axis: pin.JointModelFreeFlyer()}
    joint_of = np.zeros(model.nbody, int)
    for b in range(1, model.nbody):
        place = pin.SE3(pin.Quaternion(model.body_quaternion[b][[1, 2, 3, 0]]), model.body_position[b])
        parent = int(joint_of[model.body_parent[b]])
        (j,) = np.flatnonzero(model.joint_body == b)
        at_rest = place if model.joint_type[j] != "free" else pin.SE3.Identity()
        joint_of[b] = m.addJoint(parent, kinds[model.joint_type[j]](model.joint_axis[j]), at_rest, model.joint_names[j])
        m.appendBodyToJoint(int(joint_of[b]), pin.Inertia(model.body_mass[b], model.body_com[b], model.body_inertia[b]), pin.SE3.Identity())
    m.armature = model.dof_armature
    return m


def measure(name):
    model, peer = dl.load(name), compile_source(name).model
    rng = np.random.default_rng(0)
    q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
    work, a, M, Minv = dl.Workspace(model), np.empty(model.nv), np.empty((model.nv, model.nv)), np.empty((model.nv, model.nv))

    m = pinocchio_model(model)
    d = m.createData()
    R = pin.Quaternion(q[[4, 5, 6, 3]]).matrix()
    turn = np.eye(model.nv)
    turn[:3, :3] = R.T
    pq, pv, pt = q.copy(), turn @ v, turn @ tau
    pq[3:7] = q[[4, 5, 6, 3]]

    mjd = mujoco.MjData(peer)
    mjd.qpos[:] = q
    mujoco.mj_forward(peer, mjd)

    errors = {
        "M against MuJoCo": np.abs(dl.mass_matrix(work, q, out=M) - full_mass_matrix(peer, mjd)).max() / np.abs(M).max(),
        "M⁻¹ against Pinocchio": np.abs(dl.mass_matrix_inverse(work, q, out=Minv) - turn.T @ pin.computeMinverse(m, d, pq) @ turn).max()
        / np.abs(Minv).max(),
    }
    if max(errors.values()) > TOLERANCE:
        raise SystemExit(f"{name}: {errors}: the times mean nothing")

    def mujoco_mass_matrix():
        mujoco.mj_kinematics(peer, mjd)
        mujoco.mj_comPos(peer, mjd)
        (mujoco.mj_makeM if hasattr(mujoco, "mj_makeM") else mujoco.mj_crb)(peer, mjd)

    times = best({
        "RNEA": lambda: dl.inverse_dynamics(work, q, v, tau, out=a),
        "RNEA, pin": lambda: pin.rnea(m, d, pq, pv, pt),
        "CRBA": lambda: dl.mass_matrix(work, q, out=M),
        "CRBA, pin": lambda: pin.crba(m, d, pq),
        "CRBA, MuJoCo": mujoco_mass_matrix,
        "ABA": lambda: dl.forward_dynamics(work, q, v, tau, out=a),
        "ABA, pin": lambda: pin.aba(m, d, pq, pv, pt),
        "M⁻¹": lambda: dl.mass_matrix_inverse(work, q, out=Minv),
        "M⁻¹, pin": lambda: pin.computeMinverse(m, d, pq),
    })  # fmt: skip
    return {"robot": name, "error": max(errors.values()), "microseconds": times}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = [measure(name) for name in ROBOTS]
    print(f"delassus {dl.__version__}, pin {pin.__version__}, mujoco {mujoco.__version__}; µs a call, best of 60 × 100")
    print("| robot | error | " + " | ".join(rows[0]["microseconds"]) + " |")
    print("|---" * (2 + len(rows[0]["microseconds"])) + "|")
    for row in rows:
        print(f"| {row['robot']} | {row['error']:.0e} | " + " | ".join(f"{t:.2f}" for t in row["microseconds"].values()) + " |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=2)
