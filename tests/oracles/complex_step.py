"""Derivatives by complex steps: f(x + iε)'s imaginary part over ε has no cancellation, so it is exact to rounding.

The functions are the textbook's Newton–Euler algorithm and composite bodies, on complex numbers, and sums of Jᵀ f over bodies written here.
"""

from functools import lru_cache

import numpy as np

from delassus import textbook as tb

STEP = 1e-30


def along(model, k, q):
    """Rate of q when it moves along velocity k: dq of q ⊕ e_k t at t = 0."""
    rate = np.zeros(model.nq)
    for kind, at, first in zip(model.joint_type, model.joint_qadr, model.joint_vadr, strict=True):
        n = k - first
        if kind in ("hinge", "slide") and n == 0:
            rate[at] = 1.0
        elif kind == "free" and 0 <= n < 3:
            rate[at + n] = 1.0
        elif kind in ("free", "ball") and 0 <= n - 3 * (kind == "free") < 3:
            start = at + 3 * (kind == "free")
            w, x, y, z = q[start : start + 4]
            # half of quaternion ∘ (0, e)
            rate[start : start + 4] = 0.5 * np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])[n - 3 * (kind == "free")]
    return rate


links_of = lru_cache(maxsize=8)(tb.Robot)


def complex_pose(model, q):
    """Links of a robot at complex coordinates."""
    return tb.Pose(links_of(model), tb.Numbers(complex), list(q), floating="world")


def wrench_torque(pose, body, point, wrench):
    """Jᵀ f of a wrench (6,) in world axes at a point of a body."""
    robot, out = pose.robot, np.zeros(pose.nv, dtype=complex)
    i = robot.body_link[body]
    if i < 0:
        return out
    R, p = pose.placements[i]
    at = p[:, 0] + R @ (robot.body_origin[body] + robot.body_axes[body] @ point)
    for j in pose.ancestors(i):
        R, p = pose.placements[j]
        turn = R @ pose.S[j][3:]
        moves = R @ pose.S[j][:3] + np.cross(turn, at - p[:, 0], axisa=0, axisc=0)
        link = robot.links[j]
        out[link.v : link.v + link.nv] = moves.T @ wrench[:3] + turn.T @ wrench[3:]
    return out


def inverse_dynamics(model, q, v, a, external=None):
    """τ, for complex numbers."""
    pose = complex_pose(model, q)
    tau = tb.rnea(pose, np.array(v, dtype=complex)[:, None], np.array(a, dtype=complex)[:, None])[:, 0]
    if external is not None:
        tau = tau - sum(wrench_torque(pose, b, model.body_com[b], external[b]) for b in range(model.nbody))
    return tau


def derivative(model, function, q, *others):
    """Derivatives of function(q, *others) by q, in the tangent space, and by each of the others: arrays (…, nv)."""
    shape = np.shape(function(q, *others))
    by_q = [np.imag(function(q + 1j * STEP * along(model, k, q), *others)) / STEP for k in range(model.nv)]
    rest = []
    for n, x in enumerate(others):
        steps = 1j * STEP * np.eye(len(x))
        rest.append([np.imag(function(q, *others[:n], x + step, *others[n + 1 :])) / STEP for step in steps])
    return [np.stack(columns, axis=-1) if columns else np.zeros((*shape, 0)) for columns in (by_q, *rest)]
