"""Constrained dynamics on complex numbers of extended precision: M(q), h(q, ν), J(q) and J̇ν from the definition, both equations solved densely, and their derivatives by complex steps.

f(x + iε)'s imaginary part over ε has no cancellation, so a derivative is as exact as the solution of the equations. Nothing here calls the compiled core, nor does it share code with the other
oracles; of constraints it reads what they were made of. Arrays have an axis of copies first: states, or velocities of one.
"""

import numpy as np

STEP = np.longdouble(1e-30)
COMPLEX = np.clongdouble
FRAME, DISTANCE, JOINT, COUPLING, CENTER, LINKS, _, CONTACT = range(8)


# ---- vectors and rotations, (copies, 3) and (copies, 3, 3) --------------------------------------------------------------------


def cross(a, b):
    a, b = np.broadcast_arrays(a, b)
    return np.stack([a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1], a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2], a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]], axis=-1)  # fmt: skip


def hat(a):
    """Matrix [a]× of a cross product."""
    x, y, z = np.moveaxis(a, -1, 0)
    o = 0 * x
    return np.moveaxis(np.array([[o, -z, y], [z, o, -x], [-y, x, o]]), (0, 1), (-2, -1))


def turn(R, a):
    """R a."""
    return (R * np.asarray(a)[..., None, :]).sum(-1)


def back(R, a):
    """Rᵀ a."""
    return (R * np.asarray(a)[..., :, None]).sum(-2)


def product(A, B):
    return (A[..., :, :, None] * B[..., None, :, :]).sum(-2)


def transposed(A):
    return A.swapaxes(-1, -2)


def rotation(c):
    """Rotation of a quaternion (…, 4) of any length."""
    w, u = c[..., :1], c[..., 1:]
    one = np.eye(3)
    squares = (w * w - (u * u).sum(-1, keepdims=True))[..., None]
    return (squares * one + 2 * u[..., :, None] * u[..., None, :] + 2 * w[..., None] * hat(u)) / (c * c).sum(-1)[..., None, None]


def rotation_vector(R):
    """log(R) of a rotation by less than a half turn: its axis times its angle."""
    v = np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], axis=-1)  # 2 sin(angle) axis
    sine, cosine = np.sqrt((v * v).sum(-1)), np.trace(R, axis1=-2, axis2=-1) - 1
    return v * (angle(sine, cosine) / sine)[..., None]


def angle(sine, cosine):
    """Angle from 0 to π of its sine and cosine, which may both be scaled."""
    # half of it by a tangent that is never infinite: tan(x / 2) = sin / (1 + cos)
    return 2 * np.arctan(sine / (np.sqrt(sine * sine + cosine * cosine) + cosine))


# ---- motion -------------------------------------------------------------------------------------------------------------------


class Body:
    """Placement R, x of a body, its velocity w, u and acceleration alpha, b: angular, and of its origin; world axes."""

    def __init__(self, R, x, w, u, alpha, b):
        self.R, self.x, self.w, self.u, self.alpha, self.b = R, x, w, u, alpha, b

    def at(self, r):
        """Velocity and acceleration of a point that is r from the origin."""
        return self.u + cross(self.w, r), self.b + cross(self.alpha, r) + cross(self.w, cross(self.w, r))

    def moved(self, r, R=None):
        """A frame of this body at r from its origin."""
        u, b = self.at(r)
        return Body(self.R if R is None else R, self.x + r, self.w, u, self.alpha, b)


def joint(model, j, body, q, v, a):
    """The frame behind a joint, and its motion subspace: an anchor and axes, (copies, k, 3) each, of rotations and of shifts."""
    kind = model.joint_type[j]
    if kind == "free":
        R = rotation(q[:, 3:7])
        shifts = np.broadcast_to(np.eye(3), R.shape)
        return Body(R, q[:, :3], turn(R, v[:, 3:]), v[:, :3], turn(R, a[:, 3:]), a[:, :3]), (q[:, :3], shifts, transposed(R))
    axis = np.asarray(model.joint_axis[j], dtype=np.longdouble)
    axis = axis / np.sqrt((axis * axis).sum())
    if kind == "slide":
        d = turn(body.R, axis)
        s = body.moved(d * (q - model.joint_reference[j]))
        s.u, s.b = s.u + d * v, s.b + 2 * cross(body.w, d) * v + d * a
        return s, (s.x, d[:, None], np.zeros((len(q), 0, 3)))
    anchor = np.asarray(model.joint_position[j], dtype=np.longdouble)
    hung = body.moved(turn(body.R, anchor))
    if kind == "hinge":
        half = (q - model.joint_reference[j]) / 2
        R = product(body.R, rotation(np.concatenate([np.cos(half), np.sin(half) * axis], axis=1)))
        axes = turn(body.R, axis)[:, None]
    else:
        R = product(body.R, rotation(q))
        axes = transposed(R)
    spin = (axes * v[:, :, None]).sum(1)
    turned = Body(R, hung.x, hung.w + spin, hung.u, hung.alpha + cross(hung.w, spin) + (axes * a[:, :, None]).sum(1), hung.b)
    return turned.moved(-turn(R, anchor)), (hung.x, np.zeros((len(q), 0, 3)), axes)


WIDTH = {"hinge": (1, 1), "slide": (1, 1), "ball": (4, 3), "free": (7, 6)}


class Motion:
    """All bodies of a model at (q, ν, ν̇), (copies, n) each."""

    def __init__(self, model, q, v, a):
        self.model, self.q, self.v, self.a = model, q, v, a
        copies = len(q)
        zero = np.zeros((copies, 3), dtype=COMPLEX)
        self.bodies, self.joints = [Body(np.zeros((copies, 3, 3), dtype=COMPLEX) + np.eye(3), zero, zero, zero, zero, zero)], {}
        for b in range(1, model.nbody):
            parent = self.bodies[max(int(model.body_parent[b]), 0)]
            quaternion = np.asarray(model.body_quaternion[b], dtype=np.longdouble)
            body = parent.moved(turn(parent.R, model.body_position[b]), product(parent.R, rotation(quaternion)[None]))
            for j in np.flatnonzero(model.joint_body == b):
                nq, nv = WIDTH[model.joint_type[j]]
                at, first = model.joint_qadr[j], model.joint_vadr[j]
                body, self.joints[j] = joint(model, j, body, q[:, at : at + nq], v[:, first : first + nv], a[:, first : first + nv])
            self.bodies.append(body)

    def joint_forces(self, forces, torques):
        """Σ Jᵀ f of forces at the origins of bodies and of torques, {body: (copies, 3)}."""
        model = self.model
        out = np.zeros_like(self.v)
        F, N = ([np.zeros_like(self.bodies[0].x) for _ in self.bodies] for _ in range(2))
        for b, f in forces.items():
            F[b], N[b] = F[b] + f, N[b] + cross(self.bodies[b].x, f)
        for b, n in torques.items():
            N[b] = N[b] + n
        for b in reversed(range(1, model.nbody)):
            for j in np.flatnonzero(model.joint_body == b):
                anchor, shifts, turns = self.joints[j]
                moment = N[b] - cross(anchor, F[b])
                parts = (shifts * F[b][:, None]).sum(-1), (turns * moment[:, None]).sum(-1)
                first = model.joint_vadr[j]
                out[:, first : first + WIDTH[model.joint_type[j]][1]] = np.concatenate(parts, axis=1)
            if "free" not in [model.joint_type[j] for j in np.flatnonzero(model.joint_body == b)]:
                p = max(int(model.body_parent[b]), 0)
                F[p], N[p] = F[p] + F[b], N[p] + N[b]
        return out

    def inertial_forces(self, gravity, external):
        """M ν̇ + h − Σ Jᵀ f by Newton and Euler; gravity (copies, 3), external (nbody, 6) at the centres of mass."""
        model, forces, torques = self.model, {}, {}
        for b in range(1, model.nbody):
            body = self.bodies[b]
            r = turn(body.R, model.body_com[b])
            inertia = product(product(body.R, np.asarray(model.body_inertia[b])[None]), transposed(body.R))
            forces[b] = model.body_mass[b] * (body.at(r)[1] - gravity) - external[b, :3]
            torques[b] = turn(inertia, body.alpha) + cross(body.w, turn(inertia, body.w)) - external[b, 3:] + cross(r, forces[b])
        return self.joint_forces(forces, torques) + model.dof_armature * self.a


# ---- rows: Σ P (velocity of a body's origin) + Q (angular velocity) + c ν, with the rates of P, Q and c ---------------------------


class Rows:
    """Rows of a constraint in a motion: their velocity, their acceleration, their error, and what forces of theirs do."""

    def __init__(self, motion, constraint):
        self.motion, self.model = motion, motion.model
        kind, self.count, self.data = constraint._recipe
        self.bodies, self.dofs = [], []  # (body, P, Q, rates of both), (velocity, c, its rate)
        self.error = np.zeros((len(motion.q), self.count), dtype=COMPLEX)
        {
            FRAME: self.frame,
            DISTANCE: self.distance,
            JOINT: self.joint,
            COUPLING: self.coupling,
            CENTER: self.center,
            LINKS: self.links,
            CONTACT: self.contact,
        }[kind]()

    def velocity(self):
        m = self.motion
        return sum((turn(P, m.bodies[b].u) + turn(Q, m.bodies[b].w) for b, P, Q, _, _ in self.bodies), 0 * self.error) + sum(
            c * m.v[:, [k]] for k, c, _ in self.dofs
        )

    def acceleration(self):
        """Rate of the velocity: J ν̇ + J̇ ν."""
        m = self.motion
        return sum(
            (turn(P, m.bodies[b].b) + turn(Q, m.bodies[b].alpha) + turn(dP, m.bodies[b].u) + turn(dQ, m.bodies[b].w) for b, P, Q, dP, dQ in self.bodies), 0 * self.error
        ) + sum(c * m.a[:, [k]] + dc * m.v[:, [k]] for k, c, dc in self.dofs)  # fmt: skip

    def add(self, body, selects, r, abouts, sign=1.0):
        """Rows along ``selects`` of the point at r from a body's origin, then about ``abouts``; all with their rates."""
        (A, dA), (r, dr), (B, dB) = selects, r, abouts
        P, dP = (np.concatenate([x, np.zeros((*y.shape[:-1], 3))], axis=-2) for x, y in ((A, B), (dA, dB)))
        Q, dQ = np.concatenate([-product(A, hat(r)), B], axis=-2), np.concatenate([-product(dA, hat(r)) - product(A, hat(dr)), dB], axis=-2)
        self.bodies.append((body, sign * P, sign * Q, sign * dP, sign * dQ))

    def carried(self, body, x):
        """A vector (3,) or rows of them (k, 3) of a body in the world, and the rate."""
        one = self.motion.bodies[body]
        now = product(np.broadcast_to(np.atleast_2d(x), (len(one.x), *np.atleast_2d(x).shape)), transposed(one.R))
        rate = cross(one.w[:, None], now)
        return (now[:, 0], rate[:, 0]) if np.ndim(x) == 1 else (now, rate)

    def points(self):
        """Both points: bodies, what leads there from their origins, and the difference of their places; with rates."""
        data, (one, two) = self.data, self.data["bodies"]
        r1, r2 = self.carried(one, np.array(data["points"][:3])), self.carried(two, np.array(data["points"][3:6]))
        B1, B2 = self.motion.bodies[one], self.motion.bodies[two]
        apart = B1.x + r1[0] - B2.x - r2[0], B1.u + r1[1] - B2.u - r2[1]
        return one, two, r1, r2, apart

    def still(self, x):
        """Numbers that do not change."""
        x = np.zeros((len(self.motion.q), *np.shape(x)), dtype=COMPLEX) + x
        return x, 0 * x

    def frame(self):
        data = self.data
        one, two, r1, r2, (d, dd) = self.points()
        A = np.reshape(data["matrix"], (3, 3))
        axes = self.carried(data["bodies"][data["axes_on"]], A) if data["axes_on"] >= 0 else self.still(A)
        pushes = data["point_rows"]
        first, turns, target = pushes - 1 if pushes < 3 else 0, self.count - pushes, np.array(data["target"])
        along = tuple(x[:, first : first + pushes] for x in axes)
        about = tuple(x[:, 3 - turns :] for x in axes)
        if len(target) == 6:  # two axes across each other
            (a, da), (b, db) = self.carried(one, target[:3]), self.carried(two, target[3:])
            about = cross(a, b)[:, None], (cross(da, b) + cross(a, db))[:, None]
            self.error[:, -1] = (a * b).sum(-1)
        elif len(target) == 9:  # two frames
            off = rotation_vector(
                product(product(self.motion.bodies[one].R, target.reshape(1, 3, 3)), transposed(self.motion.bodies[two].R))
            )
            self.error[:, pushes:] = turn(about[0], off)
        elif len(target) == 3:  # two axes along each other
            a, b = self.carried(one, A[0])[0], self.carried(two, target)[0]
            across = cross(b, a)
            sine = np.sqrt((across * across).sum(-1))
            self.error[:, pushes:] = turn(about[0], across * (angle(sine, (a * b).sum(-1)) / sine)[:, None])
        if pushes < 3:  # the second point slides on the first body
            r1 = r1[0] - d, r1[1] - dd
        self.error[:, : data["measured"]] = turn(along[0], d)[:, : data["measured"]]
        self.add(one, along, r1, about)
        self.add(two, along, r2, about, -1.0)

    def contact(self):
        one, two, r1, r2, (d, _) = self.points()
        A, scales = np.reshape(self.data["matrix"], (3, 3)), np.array(self.data["numbers"])
        along = self.still(A * np.array([1.0, scales[0], scales[0]])[:, None])
        about = self.still(A[: self.count - 3] * scales[1 : self.count - 2, None])
        self.error[:, : self.data["measured"]] = turn(along[0], d)[:, : self.data["measured"]]
        self.add(one, along, r1, about)
        self.add(two, along, r2, about, -1.0)

    def distance(self):
        one, two, r1, r2, (d, dd) = self.points()
        length = np.sqrt((d * d).sum(-1, keepdims=True))
        n = d / length
        dn = (dd - n * (n * dd).sum(-1, keepdims=True)) / length
        none = self.still(np.zeros((0, 3)))
        if self.data["target"]:
            self.error = length - self.data["target"][0]
        self.add(one, (n[:, None], dn[:, None]), r1, none)
        self.add(two, (n[:, None], dn[:, None]), r2, none, -1.0)

    def coordinate(self, dof):
        j = list(self.model.joint_vadr).index(dof)
        return self.motion.q[:, self.model.joint_qadr[j]]

    def joint(self):
        for row, (dof, number) in enumerate(zip(self.data["joints"], self.data["numbers"], strict=True)):
            self.dofs.append((dof, *self.still(number * np.eye(self.count)[row])))
            if self.data["target"]:
                self.error[:, row] = number * (self.coordinate(dof) - self.data["target"][0])

    def coupling(self):
        one, two = self.data["joints"]
        model = self.model
        x = self.motion.q[:, model.joint_qadr[two]] - model.joint_reference[two]
        p = np.polynomial.Polynomial(self.data["numbers"])
        power = lambda p: sum(c * x**k for k, c in enumerate(p.coef))  # noqa: E731
        self.dofs.append((model.joint_vadr[one], *self.still(np.ones(1))))
        other = model.joint_vadr[two]
        self.dofs.append((other, -power(p.deriv())[:, None], -(power(p.deriv(2)) * self.motion.v[:, other])[:, None]))
        self.error[:, 0] = self.motion.q[:, model.joint_qadr[one]] - model.joint_reference[one] - power(p)

    def center(self):
        model = self.model
        mass = model.body_mass * model.body_moves
        place, none = 0, self.still(np.zeros((0, 3)))
        for b in np.flatnonzero(mass):
            r, part = self.carried(b, model.body_com[b]), mass[b] / mass.sum()
            place = place + part * (self.motion.bodies[b].x + r[0])
            self.add(b, self.still(part * np.eye(3)), r, none)
        if self.data["target"]:
            self.error = place - np.array(self.data["target"])

    def links(self):
        for b, K in zip(self.data["bodies"], np.reshape(self.data["matrix"], (-1, self.count, 6)), strict=True):
            self.bodies.append((b, self.still(K[:, :3])[0], self.still(K[:, 3:])[0], *(self.still(np.zeros((self.count, 3)))[0],) * 2))


# ---- both equations -----------------------------------------------------------------------------------------------------------


class Equations:
    """M ν̇ + h = τ + Jᵀ λ + external and J ν̇ + γ + C λ = 0 at complex q and ν: dense."""

    def __init__(self, model, q, v, constraints, external):
        n = model.nv
        # ν̇ = e_k at rest and without gravity gives the columns of M and J; the last copy gives h and γ
        a = np.vstack([np.eye(n), np.zeros(n)]).astype(COMPLEX)
        still = np.zeros(n + 1)
        still[n] = 1
        velocity = still[:, None] * np.asarray(v, dtype=COMPLEX)
        motion = Motion(model, np.broadcast_to(np.asarray(q, dtype=COMPLEX), (n + 1, model.nq)), velocity, a)
        none = np.zeros((model.nbody, 6))
        forces = motion.inertial_forces(still[:, None] * model.gravity, none)
        self.M, self.h = forces[:n].T, forces[n]
        if external is not None:
            self.h = (
                self.h
                - motion.joint_forces(
                    {b: external[b, :3] + np.zeros((n + 1, 3)) for b in range(1, model.nbody)},
                    {
                        b: external[b, 3:] + cross(turn(motion.bodies[b].R, model.body_com[b]), external[b, :3])
                        for b in range(1, model.nbody)
                    },
                )[n]
            )
        rows = [Rows(motion, c) for c in constraints]
        empty = np.zeros((n + 1, 0), dtype=COMPLEX)
        acceleration = np.concatenate([empty, *(r.acceleration() for r in rows)], axis=1)
        bias = [c.baumgarte[1] * r.velocity()[n] + c.baumgarte[0] * r.error[n] for c, r in zip(constraints, rows, strict=True)]
        self.J, self.gamma = acceleration[:n].T, acceleration[n] + np.concatenate([empty[0], *bias])

    def solve(self, tau, compliance=0.0, metric=None):
        """ν̇ and λ; where rows depend on each other, of all λ the one of least λᵀ diag(metric) λ."""
        J, m = self.J, len(self.gamma)
        keep = independent(J.real.astype(float), None if metric is None else np.asarray(metric))
        z = solved(self.M, J[keep], compliance, self.gamma[keep], tau - self.h)
        acceleration, forces = z[: len(self.h)], z[len(self.h) :]
        if len(keep) < m:
            # Ĵ = Z Ĵ_keep with Ĵ = metric^(−½) J; of all λ̂ with Zᵀ λ̂ = λ̂_keep the least is Z (Zᵀ Z)⁻¹ λ̂_keep
            weights = np.sqrt(np.asarray(metric, dtype=np.longdouble))
            scaled = J / weights[:, None]
            some = scaled[keep]
            Z = refined(some @ some.T, some @ scaled.T).T
            forces = Z @ refined(Z.T @ Z, (forces * weights[keep])[:, None])[:, 0] / weights
        return acceleration, forces


def independent(J, metric):
    """Rows that depend on none before them, by pivots."""
    if metric is None:
        return np.arange(len(J))
    A, kept = J / np.sqrt(metric)[:, None], []
    size, largest = np.linalg.norm(A, axis=1), np.linalg.norm(A, axis=1).max(initial=0.0)
    while len(kept) < len(J) and size.max() > 1e-9 * largest:
        k = int(np.argmax(size))
        kept.append(k)
        direction = A[k] / size[k]
        A = A - np.outer(A @ direction, direction)
        size = np.linalg.norm(A, axis=1)
        size[kept] = 0.0
    return np.array(sorted(kept), dtype=int)


def refined(K, b):
    """K⁻¹ b (n, k): solved in double precision, corrected by residuals in extended precision until these are as small as they get."""
    scale = 1 / np.sqrt(np.abs(K.diagonal()) + np.abs(K).max(1) * 1e-6)
    A, b = scale[:, None] * K * scale, scale[:, None] * b
    inverse = np.linalg.inv(A.astype(np.complex128))
    x = np.zeros_like(b)
    for _ in range(12):
        x = x + (inverse @ (b - A @ x).astype(np.complex128))
    return scale[:, None] * x


def solved(M, J, compliance, gamma, force):
    """ν̇ and λ of independent rows, by both equations at once."""
    n, m = len(force), len(gamma)
    K = np.zeros((n + m, n + m), dtype=COMPLEX)
    K[:n, :n], K[:n, n:], K[n:, :n] = M, -J.T, -J
    K[n:, n:] = -np.diag(np.broadcast_to(np.asarray(compliance, dtype=COMPLEX), m))
    return refined(K, np.concatenate([force, gamma])[:, None])[:, 0]


def rate(model, q, dq):
    """Rate of q when it moves along dq in the tangent space."""
    out = np.zeros(model.nq)
    for kind, at, first in zip(model.joint_type, model.joint_qadr, model.joint_vadr, strict=True):
        same = {"hinge": 1, "slide": 1, "free": 3, "ball": 0}[kind]
        out[at : at + same] = dq[first : first + same]
        if kind in ("free", "ball"):
            w, u = q[at + same], q[at + same + 1 : at + same + 4]
            omega = dq[first + same : first + same + 3]
            out[at + same : at + same + 4] = np.concatenate([[-(u @ omega)], w * omega + np.cross(u, omega)]) / 2
    return out


def constrained_dynamics(model, q, v, tau, constraints, dq, dv, dtau, *, external=None, compliance=0.0, metric=None):
    """ν̇ and λ in a state, and their changes along a direction: four arrays of float64."""
    i = COMPLEX(1j) * STEP
    q, v = np.asarray(q, dtype=np.longdouble), np.asarray(v, dtype=np.longdouble)
    equations = Equations(model, q + i * rate(model, np.asarray(q, dtype=float), dq), v + i * dv, constraints, external)
    found = equations.solve(np.asarray(tau) + i * dtau, compliance, metric)
    return (*(x.real.astype(float) for x in found), *((x.imag / STEP).astype(float) for x in found))
