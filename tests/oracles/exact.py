"""Both equations of constrained dynamics in extended precision, from the definition: dense M, h, J and J̇ν of a model in a state, in NumPy's longdouble.

Nothing here calls the compiled core, nor does it share code with the other oracles.
"""

from dataclasses import dataclass

import numpy as np

REAL = np.longdouble
_WIDTH = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}


@dataclass(frozen=True)
class Rows:
    """What a constraint says, in words the equations need.

    ``kind``: "point" (three rows along ``axes``, fixed in the world), "weld" (the same and three of rotation), "distance" (one row) or "coupling"
    (joint ``body`` follows joint ``other`` times ``slope``). ``other`` may be None: the world.
    """

    kind: str
    body: int
    other: int | None = None
    point: tuple = (0.0, 0.0, 0.0)
    other_point: tuple = (0.0, 0.0, 0.0)
    axes: tuple = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    slope: float = 0.0


def _real(x):
    return np.asarray(x, dtype=REAL)


def _cross(a, b):
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _turn(quaternion):
    w, x, y, z = _real(quaternion) / np.sqrt((_real(quaternion) ** 2).sum())
    return _real([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def _about(axis, angle):
    axis = _real(axis) / np.sqrt((_real(axis) ** 2).sum())
    return _turn(np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis]))


@dataclass
class Frame:
    """Rotation R and origin x of a body in the world, their Jacobians, and what velocities alone make of them: ω, ẋ, α, ẍ at ν̇ = 0."""

    R: np.ndarray
    x: np.ndarray
    Jx: np.ndarray
    Jw: np.ndarray
    w: np.ndarray
    xd: np.ndarray
    alpha: np.ndarray
    xdd: np.ndarray

    def carry(self, r):
        """Of a point that is r from the origin, in world axes: Jacobian, velocity, acceleration."""
        J = self.Jx + _cross(self.Jw, r[:, None] * np.ones(self.Jw.shape[1], REAL))
        return J, self.xd + _cross(self.w, r), self.xdd + _cross(self.alpha, r) + _cross(self.w, _cross(self.w, r))


def _ground(nv):
    zero, flat = np.zeros(3, REAL), np.zeros((3, nv), REAL)
    return Frame(np.eye(3, dtype=REAL), zero, flat, flat.copy(), zero, zero, zero, zero)


def _move(frame, model, j, q, v, at):
    """A frame behind joint j, whose coordinates and velocities are q and v, the latter from column ``at`` on."""
    kind, nv = model.joint_type[j], frame.Jx.shape[1]
    if kind == "free":
        out = _ground(nv)
        out.R, out.x, out.xd = _turn(q[3:7]), q[:3], v[:3]
        out.Jx[:, at : at + 3], out.Jw[:, at + 3 : at + 6] = np.eye(3), out.R
        out.w = out.R @ v[3:]
        return out
    axis, anchor = _real(model.joint_axis[j]), _real(model.joint_position[j])
    if kind == "slide":
        d = frame.R @ (axis / np.sqrt((axis**2).sum()))
        s = d * (q[0] - REAL(model.joint_reference[j]))
        J, xd, xdd = frame.carry(s)
        J = J.copy()
        J[:, at] += d
        return Frame(frame.R, frame.x + s, J, frame.Jw, frame.w, xd + d * v[0], frame.alpha, xdd + 2 * _cross(frame.w, d) * v[0])
    # turn about the anchor
    to = frame.R @ anchor
    J, xd, xdd = frame.carry(to)
    R = frame.R @ (_about(axis, q[0] - REAL(model.joint_reference[j])) if kind == "hinge" else _turn(q))
    columns = (frame.R @ (axis / np.sqrt((axis**2).sum())))[:, None] if kind == "hinge" else R
    Jw = frame.Jw.copy()
    Jw[:, at : at + columns.shape[1]] += columns
    spin = columns @ v
    hung = Frame(R, frame.x + to, J, Jw, frame.w + spin, xd, frame.alpha + _cross(frame.w, spin), xdd)
    back = -(R @ anchor)
    Jx, xd, xdd = hung.carry(back)
    return Frame(R, hung.x + back, Jx, Jw, hung.w, xd, hung.alpha, xdd)


class Exact:
    """M ν̇ + h = τ + Jᵀ λ and J ν̇ + γ = 0 in a state."""

    def __init__(self, model, q, v, tau, rows):
        nv = model.nv
        q, v = _real(q), _real(v)
        self.tau = np.zeros(nv, REAL) if tau is None else _real(tau)
        self.model, self.q = model, q
        self.columns = np.concatenate([[0], np.cumsum([_WIDTH[kind] for kind in model.joint_type])]).astype(int)
        self.frames = [_ground(nv)]
        for b in range(1, model.nbody):
            parent = self.frames[max(int(model.body_parent[b]), 0)]
            to = parent.R @ _real(model.body_position[b])
            J, xd, xdd = parent.carry(to)
            frame = Frame(parent.R @ _turn(model.body_quaternion[b]), parent.x + to, J, parent.Jw, parent.w, xd, parent.alpha, xdd)
            for j, owner in enumerate(model.joint_body):
                if owner == b:
                    at, end = self.columns[j], self.columns[j + 1]
                    first = model.joint_qadr[j]
                    frame = _move(frame, model, j, q[first : first + {"ball": 4, "free": 7}.get(model.joint_type[j], 1)], v[at:end], at)
            self.frames.append(frame)

        # Newton and Euler for every body, about its centre of mass
        parts = [self.tau]
        self.M, self.h, self.h_size = np.diag(_real(model.dof_armature)), np.zeros(nv, REAL), np.zeros(nv, REAL)
        for b in range(1, model.nbody):
            frame, mass = self.frames[b], REAL(model.body_mass[b])
            inertia = frame.R @ _real(model.body_inertia[b]) @ frame.R.T
            J, _, xdd = frame.carry(frame.R @ _real(model.body_com[b]))
            self.M = self.M + mass * J.T @ J + frame.Jw.T @ inertia @ frame.Jw
            force, moment = mass * (xdd - _real(model.gravity)), inertia @ frame.alpha + _cross(frame.w, inertia @ frame.w)
            own = J.T @ force + frame.Jw.T @ moment
            self.h = self.h + own
            self.h_size = self.h_size + np.abs(J.T) @ np.abs(force) + np.abs(frame.Jw.T) @ np.abs(moment)
            parts.append(-own)
        made = [self._rows(r, v) for r in rows]
        self.J = np.concatenate([np.zeros((0, nv), REAL), *(J for J, _, _, _ in made)])
        self.J_size = np.concatenate([np.zeros((0, nv), REAL), *(S for _, S, _, _ in made)])
        self.gamma = np.concatenate([np.zeros(0, REAL), *(g for _, _, g, _ in made)])
        self.gamma_size = np.concatenate([np.zeros(0, REAL), *(s for _, _, _, s in made)])
        self.turns = np.concatenate([np.zeros(0, bool), *(self._turns(r) for r in rows)])
        self.length = REAL(np.abs(model.body_position).sum() + np.abs(model.body_com).sum())
        # what τ and the forces on each body would do alone, if there were no constraints
        self.free_size = sum((np.abs(_solve(self.M, part)) for part in parts), np.zeros(nv, REAL))

    def _turns(self, r):
        """Of each row, whether it is an angle."""
        if r.kind == "coupling":
            return np.array([self.model.joint_type[r.body] == "hinge"])
        return np.arange({"point": 3, "weld": 6, "distance": 1}[r.kind]) >= 3

    def _rows(self, r, v):
        """Rows of J, the magnitudes they are sums of; J̇ν, its magnitudes."""
        if r.kind == "coupling":
            J = np.zeros((1, len(v)), REAL)
            J[0, self.columns[r.body]] = 1
            if r.other is not None:
                J[0, self.columns[r.other]] -= REAL(r.slope)
            return J, np.abs(J), np.zeros(1, REAL), np.zeros(1, REAL)
        one, two = self.frames[r.body], self.frames[r.other or 0]
        J1, v1, a1 = one.carry(one.R @ _real(r.point))
        J2, v2, a2 = two.carry(two.R @ _real(r.other_point)) if r.other else (np.zeros_like(J1), 0 * v1, 0 * a1)
        if r.kind == "distance":
            line = one.x + one.R @ _real(r.point) - (two.x + two.R @ _real(r.other_point))
            length = np.sqrt((line**2).sum())
            n, apart = line / length, v1 - v2
            swing = (apart - n * (n @ apart)) / length
            gamma = n @ (a1 - a2) + swing @ apart
            size = np.abs(n) @ (np.abs(a1) + np.abs(a2)) + np.abs(swing) @ np.abs(apart)
            return (n @ (J1 - J2))[None], (np.abs(n) @ (np.abs(J1) + np.abs(J2)))[None], gamma[None], size[None]
        # the three rows of a point are one vector, and so are those of a rotation: axes are any
        A, whole = _real(r.axes), np.ones((3, 3), REAL)
        J, J_size = A @ (J1 - J2), whole @ (np.abs(J1) + np.abs(J2))
        gamma, size = A @ (a1 - a2), whole @ (np.abs(a1) + np.abs(a2))
        if r.kind == "weld":
            Jw, alpha = (two.Jw, two.alpha) if r.other else (0 * one.Jw, 0 * one.alpha)
            J, J_size = np.concatenate([J, one.Jw - Jw]), np.concatenate([J_size, whole @ (np.abs(one.Jw) + np.abs(Jw))])
            gamma = np.concatenate([gamma, one.alpha - alpha])
            size = np.concatenate([size, whole @ (np.abs(one.alpha) + np.abs(alpha))])
        return J, J_size, gamma, size

    def residuals(self, acceleration, forces):
        """Largest |M ν̇ + h − τ − Jᵀ λ| and |J ν̇ + γ|, each against the magnitudes of the terms of its own equation.

        Terms of a joint: M_kj ν̇_j, each body's part of h, τ, J_rk λ_r. Terms of a row: γ, J_rk ν̇_k on either side. With ν̇ count the accelerations that τ and
        the forces on each body would give without constraints: these are what constraint forces take away, and a mechanism held at rest, whose ν̇ is rounding,
        is judged by them. What is one vector, whose axes are any, is judged as one: the rows of a point, of a rotation, a ball joint, force and moment on a free
        body. Forces of a loop pass through joints below both its ends, where they cancel: 1e-6 of them count, so that 1e-9 of that is a few roundings. So does
        1e-6 of the largest scale of all rows in each.
        """
        a, f = _real(acceleration), _real(forces)
        moved = np.abs(a) + self.free_size
        scale = np.abs(self.M) @ moved + self.h_size + np.abs(self.tau) + (np.abs(self.J) + REAL(1e-6) * self.J_size).T @ np.abs(f)
        for at, kind in zip(self.columns, self.model.joint_type, strict=False):
            for first in range(at, at + _WIDTH[kind], 3) if kind in ("ball", "free") else ():
                scale[first : first + 3] = scale[first : first + 3].sum()
        size = self.J_size @ moved + self.gamma_size
        if len(size):
            # in one unit, lengths; then a millionth of the largest
            arm = np.where(self.turns, self.length, REAL(1))
            size = size + REAL(1e-6) * (size * arm).max() / arm
        left = np.abs(self.M @ a + self.h - self.tau - self.J.T @ f)
        apart = np.abs(self.J @ a + self.gamma)
        tiny = np.finfo(float).tiny
        return float((left / (scale + tiny)).max(initial=0.0)), float((apart / (size + tiny)).max(initial=0.0))


def _solve(M, b):
    """M⁻¹ b by Cholesky of M with a unit diagonal."""
    d = 1 / np.sqrt(M.diagonal())
    A, n = M * d * d[:, None], len(M)
    L = np.zeros_like(A)
    for k in range(n):
        L[k, k] = np.sqrt(np.maximum(A[k, k] - L[k, :k] @ L[k, :k], np.finfo(REAL).eps))
        L[k + 1 :, k] = (A[k + 1 :, k] - L[k + 1 :, :k] @ L[k, :k]) / L[k, k]
    x = b * d
    for k in range(n):
        x[k] = (x[k] - L[k, :k] @ x[:k]) / L[k, k]
    for k in reversed(range(n)):
        x[k] = (x[k] - L[k + 1 :, k] @ x[k + 1 :]) / L[k, k]
    return x * d
