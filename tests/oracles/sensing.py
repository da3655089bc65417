"""Sensors after a step, by MuJoCo's Python module: MuJoCo's data is filled with our state, contacts and forces, call by call, and read.

q, v, a, u of the step's end        kinematics, tendons, transmissions, passive and actuator forces: MuJoCo's
contacts of the step                ours: points, distances, forces; no other contact is there
qacc = M⁻¹ (smooth + Jᵀ λ / dt)     smooth forces at the state, Jᵀ λ of all rows of the step
"""

import copy

import mujoco
import numpy as np

import delassus as dl

HIDDEN = ("mjSTATE_ACT", "mjSTATE_HISTORY", "mjSTATE_PLUGIN", "mjSTATE_PLASTIC")
LIMITS = {
    mujoco.mjtSensor.mjSENS_JOINTLIMITFRC: mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT,
    mujoco.mjtSensor.mjSENS_TENDONLIMITFRC: mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON,
}


def sensed(sim, step, tau=None, control=None, external=None):
    """(nsensordata,) values after the last step of a simulator."""
    m, record = sim.mujoco_model, step._record
    d = mujoco.MjData(m)
    bodies = [sim.model.body_index(m.body(b).name or "world") for b in range(m.nbody)]
    d.time, d.qpos[:], d.qvel[:] = record.time, record.q, record.v
    if m.nmocap:
        mujoco.mj_setState(m, d, record.mocap, mujoco.mjtState.mjSTATE_MOCAP_POS | mujoco.mjtState.mjSTATE_MOCAP_QUAT)
    if len(record.hidden):
        mujoco.mj_setState(m, d, record.hidden, sum(int(getattr(mujoco.mjtState, name, 0)) for name in HIDDEN))
    d.ctrl[:], d.qfrc_applied[:] = 0.0 if control is None else control, 0.0 if tau is None else tau
    applied = np.zeros((m.nbody, 6)) if external is None else external[bodies]
    d.xfrc_applied[:] = applied
    for stage in (
        mujoco.mj_kinematics,
        mujoco.mj_comPos,
        mujoco.mj_camlight,
        mujoco.mj_flex,
        mujoco.mj_tendon,
        mujoco.mj_makeM,
        mujoco.mj_factorM,
    ):
        stage(m, d)
    add_contacts(m, d, record)
    mujoco.mj_makeConstraint(m, d)
    mujoco.mj_transmission(m, d)
    limits = limit_forces(m, record)
    write_forces(m, d, record, limits)
    for stage in (
        mujoco.mj_energyPos,
        mujoco.mj_sensorPos,
        mujoco.mj_fwdVelocity,
        mujoco.mj_energyVel,
        mujoco.mj_subtreeVel,
        mujoco.mj_sensorVel,
    ):
        stage(m, d)
    mujoco.mj_fwdActuation(m, d)
    mujoco.mj_fwdAcceleration(m, d)
    d.qfrc_constraint[:] = record.row_forces
    solution = np.empty((1, m.nv))
    mujoco.mj_solveM(m, d, solution, (d.qfrc_smooth + d.qfrc_constraint)[None])
    d.qacc[:] = solution[0]
    # loops push on both of their bodies
    for loop in sim.model.loops:
        if hasattr(loop, "body"):  # not one of joints
            d.xfrc_applied[:] += dl.constraint_wrenches(sim.model, record.q, loop, step.loop_forces[loop.name])[bodies]
    mujoco.mj_rnePostConstraint(m, d)
    mujoco.mj_sensorAcc(m, d)
    values = np.array(d.sensordata)
    for s in range(m.nsensor):
        if (row := LIMITS.get(m.sensor_type[s])) is not None:
            force, cutoff = limits[row][m.sensor_objid[s]], m.sensor_cutoff[s]
            values[m.sensor_adr[s]] = min(force, cutoff) if cutoff > 0 else force
    return values


def limit_forces(m, record):
    """{kind of row: forces of the ends of ranges in the step, by MuJoCo's numbers of joints or tendons}."""
    joints, tendons = np.zeros(m.njnt), np.zeros(m.ntendon)
    if len(record.joint_limit_forces):
        joints[:] = record.joint_limit_forces[m.jnt_qposadr]
    tendons[: len(record.tendon_limit_forces)] = record.tendon_limit_forces
    return dict(zip(LIMITS.values(), (joints, tendons), strict=True))


def frame(normal):
    """(9,) a contact's normal and two tangents at right angles to it and to each other."""
    aside = np.eye(3)[np.argmin(np.abs(normal))]
    tangent = np.cross(normal, aside)
    tangent /= np.linalg.norm(tangent)
    return np.concatenate([normal, tangent, np.cross(normal, tangent)])


def add_contacts(m, d, record):
    """Our contacts in place of those that MuJoCo would find."""
    quiet = copy.copy(m)
    quiet.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    mujoco.mj_collision(quiet, d)
    for k, geoms in enumerate(record.contact_geoms):
        friction, distance = record.contact_friction[k], record.contact_distance[k]
        one, two = int(geoms[1]), int(geoms[0])  # MuJoCo's normal goes from its first geom to its second
        contact = mujoco.MjContact()
        contact.pos, contact.dist, contact.dim = record.contact_position[k], distance, record.contact_rows[k] if friction > 0 else 1
        contact.frame = frame(record.contact_normal[k])
        contact.friction = [friction, friction, *m.geom_friction[one][1:], m.geom_friction[one][2]]
        contact.includemargin = distance + 1.0  # it counts, however far apart it is
        contact.solref, contact.solimp, contact.solreffriction = m.geom_solref[one], m.geom_solimp[one], np.zeros(2)
        contact.geom = contact.geom1, contact.geom2 = one, two
        contact.flex = contact.elem = contact.vert = [-1, -1]
        contact.exclude, contact.efc_address = 0, -1
        mujoco.mj_addContact(m, d, contact)


def write_forces(m, d, record, limits):
    """Write forces into MuJoCo's rows: of limits, of contacts normal and tangents, or edges of its pyramids; other rows have none."""
    d.efc_force[:] = 0.0
    for kind, forces in limits.items():
        rows = np.flatnonzero(d.efc_type == kind)
        d.efc_force[rows] = forces[d.efc_id[rows]]
    for k in range(d.ncon):
        contact = d.contact[k]
        at, n = int(contact.efc_address), int(contact.dim)
        if at < 0:
            continue
        axes = contact.frame.reshape(3, 3)
        local = np.concatenate([axes @ record.contact_force[k], axes @ record.contact_torque[k]])
        if n == 1 or m.opt.cone != mujoco.mjtCone.mjCONE_PYRAMIDAL:
            d.efc_force[at : at + n] = local[:n]
        else:
            # edges p ± of each direction, with f_n = Σ p and f_k = µ_k (p₊ − p₋)
            half, share = local[1:n] / (2 * np.asarray(contact.friction)[: n - 1]), local[0] / (2 * (n - 1))
            d.efc_force[at : at + 2 * (n - 1)] = np.column_stack([share + half, share - half]).ravel()
