"""Points, centres of mass and energies of a textbook pose, whose numbers may be complex: functions to take complex steps of."""

import numpy as np


def link_motions(pose, v, a):
    """Velocity and acceleration (6,) of every link in its own frame, gravity left out."""
    velocity, acceleration = [], []
    for i, p in enumerate(pose.parent):
        nu, rate = pose.velocities(i, v[:, None]), pose.velocities(i, a[:, None])
        velocity.append(pose.S[i] @ nu + (pose.X[i] @ velocity[p] if p >= 0 else 0))
        acceleration.append(pose.S[i] @ rate + pose.bias(i, velocity[i], nu) + (pose.X[i] @ acceleration[p] if p >= 0 else 0))
    return [x[:, 0] for x in velocity], [x[:, 0] for x in acceleration]


def frame_motion(pose, v, a, body, point):
    """Position (3,), velocity (6,) and acceleration (6,) of a frame at a point of a body, world axes."""
    robot = pose.robot
    i = robot.body_link[body]
    x = robot.body_origin[body] + robot.body_axes[body] @ point
    if i < 0:
        return x, np.zeros(6), np.zeros(6)
    (R, p), velocities, accelerations = pose.placements[i], *link_motions(pose, v, a)
    V, A = velocities[i], accelerations[i]
    moves = V[:3] + np.cross(V[3:], x)
    bends = A[:3] + np.cross(A[3:], x) + np.cross(V[3:], moves)
    return p[:, 0] + R @ x, np.concatenate([R @ moves, R @ V[3:]]), np.concatenate([R @ bends, R @ A[3:]])


def center_motion(pose, v, a):
    """Position, velocity and acceleration (3,) of the centre of mass of what moves."""
    model = pose.robot.model
    moving = [b for b in range(1, model.nbody) if pose.robot.body_link[b] >= 0]
    parts = [[x[:3] * model.body_mass[b] for x in frame_motion(pose, v, a, b, model.body_com[b])] for b in moving]
    return [sum(part) / model.body_mass[moving].sum() for part in zip(*parts, strict=True)]


def kinetic_energy(pose, v):
    """½ Σ vᵀ H v of all links, and of armature."""
    links = pose.robot.links
    velocities, _ = link_motions(pose, v, 0 * v)
    return (
        sum(x @ H @ x for x, H in zip(velocities, pose.H, strict=True)) / 2
        + sum((link.armature * v[link.v : link.v + link.nv] ** 2).sum() for link in links) / 2
    )
