"""Mechanisms with parts far lighter than others, in any units; and residuals of both equations of constrained dynamics from dense matrices, number by number."""

from dataclasses import dataclass

import numpy as np

import delassus as dl

_WIDTH = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Units:
    """What one kilogram, metre and second are called."""

    mass: float = 1.0
    length: float = 1.0
    time: float = 1.0

    @property
    def torque(self):
        return self.mass * self.length**2 / self.time**2


def velocity_units(model, units, angle=1.0):
    """Of each velocity: a length where it slides, ``angle`` where it turns."""
    kinds = [np.where(np.arange(_WIDTH[t]) < {"slide": 1, "free": 3}.get(t, 0), units.length, angle) for t in model.joint_type]
    return np.concatenate(kinds)


class Dense:
    """Both equations in a state by dense matrices."""

    def __init__(self, model, q, v, tau, constraints, units):
        self.M, self.h, self.tau = dl.mass_matrix(model, q), dl.bias_forces(model, q, v), np.zeros(model.nv) if tau is None else tau
        self.J, self.gamma = np.zeros((0, model.nv)), np.zeros(0)
        if constraints:
            G = dl.DelassusOperator(model, constraints)
            G.update(q)
            self.J, self.gamma = np.asarray(G.jacobian @ np.eye(model.nv)), dl.constraint_bias(model, q, v, constraints)
        # entries of J are sums of places: what rounding leaves of zeros is no equation
        self.rounding = 32 * EPS * np.ones(self.J.shape) * velocity_units(model, Units(), 6 * units.length)

    def residuals(self, result):
        """Largest |M ν̇ + h − τ − Jᵀ λ| and |J ν̇ + γ| against the sums of magnitudes of their terms, and 1e-6 of these sums elsewhere in the metric of M."""
        a, f = result.acceleration, result.forces
        root = np.sqrt(self.M.diagonal())
        scale = np.abs(self.M) @ np.abs(a) + np.abs(self.h) + np.abs(self.tau) + np.abs(self.J).T @ np.abs(f)
        load = (scale / root).max()
        left = np.abs(self.M @ a + self.h - self.tau - self.J.T @ f) - self.rounding.T @ np.abs(f)
        dynamics = (left / (scale + 1e-6 * root * load + np.finfo(float).tiny)).max()
        size = np.abs(self.J) @ np.abs(a) + np.abs(self.gamma) + 1e-6 * (np.abs(self.J) / root).max(axis=1, initial=0.0) * load
        left = np.abs(self.J @ a + self.gamma) - self.rounding @ (np.abs(a) + load / root * 1e-3)
        return max(dynamics, 0.0), max((left / (size + np.finfo(float).tiny)).max(initial=0.0), 0.0)


def accelerations(M, rest, J, gamma):
    """Solve both equations in extended precision: rows combined into independent ones, elimination with the largest pivot."""
    u, s, _ = np.linalg.svd(J)
    kept = u[:, : int((s > 1e-10 * s[0]).sum())].T
    n, m = len(M), len(kept)
    A, b = np.zeros((n + m, n + m), np.longdouble), np.zeros(n + m, np.longdouble)
    A[:n, :n], A[n:, :n], b[:n], b[n:] = M, kept @ J, rest, -kept @ gamma
    A[:n, n:] = A[n:, :n].T
    # rows and columns alike to about one
    scale = np.ones(n + m, np.longdouble)
    for _ in range(12):
        d = 1 / np.sqrt(np.abs(A).max(axis=1))
        A, scale = A * d * d[:, None], scale * d
    b = b * scale
    for k in range(n + m):
        p = k + int(np.abs(A[k:, k]).argmax())
        A[[k, p]], b[[k, p]] = A[[p, k]], b[[p, k]]
        factor = A[k + 1 :, k] / A[k, k]
        A[k + 1 :] -= factor[:, None] * A[k]
        b[k + 1 :] -= factor * b[k]
    x = np.zeros(n + m, np.longdouble)
    for k in reversed(range(n + m)):
        x[k] = (b[k] - A[k, k + 1 :] @ x[k + 1 :]) / A[k, k]
    return (x * scale)[:n].astype(float)


def four_bar(inertia, *, free=True, tilt=0.0, units=None):
    """A four-bar whose pin is two small balls welded together: one on the coupler's end, one on the rocker's, which turns or is part of it."""
    units = units or Units()
    b = dl.ModelBuilder("balls", gravity=np.array([0, 0, -9.81]) * units.length / units.time**2)
    for name, parent, x, length, mass in (
        ("crank", "world", 0.0, 0.2, 1.0),
        ("coupler", "crank", 0.2, 0.5, 2.0),
        ("rocker", "world", 0.5, 0.4, 1.5),
    ):
        rod = np.array([1e-3 * mass, mass * length**2 / 12, mass * length**2 / 12])
        b.add_body(
            name, parent, position=(x * units.length, 0, 0), mass=mass * units.mass, com=(length / 2 * units.length, 0, 0),
            inertia=rod * units.mass * units.length**2,
        )  # fmt: skip
        b.add_joint(name, "hinge", axis=(0, 1, 0))
    for name, parent, x in (("first", "coupler", 0.5), ("second", "rocker", 0.4)):
        ball = np.ones(3) * inertia * units.mass * units.length**2
        b.add_body(name, parent, position=(x * units.length, 0, 0), mass=inertia * units.mass, inertia=ball)
        if name == "first" or free:
            b.add_joint(name, "hinge", axis=(0, 1, 0))
    turn = (np.cos(tilt / 2), 0.6 * np.sin(tilt / 2), 0.8 * np.sin(tilt / 2), 0.0)
    b.add_weld("first", "second", quaternion=turn, other_quaternion=turn)
    return b.build()


def four_bar_pose(model, crank):
    """Configuration at an angle of the crank above the ground, by circles that meet; balls stand upright."""
    tip = 0.2 * np.array([np.cos(crank), np.sin(crank)])
    to = np.array([0.5, 0.0]) - tip
    d = np.linalg.norm(to)
    along = (0.25 - 0.16 + d * d) / (2 * d)
    pin = tip + along * to / d + np.sqrt(0.25 - along**2) * np.array([-to[1], to[0]]) / d
    coupler, rocker = np.arctan2(*(pin - tip)[::-1]), np.arctan2(pin[1], pin[0] - 0.5)
    both = "second_hinge" in model.joint_names
    angles = {
        "crank_hinge": -crank,
        "coupler_hinge": crank - coupler,
        "rocker_hinge": -rocker,
        "first_hinge": coupler if both else coupler - rocker,
        "second_hinge": rocker,
    }
    q = np.zeros(model.nq)
    for name in model.joint_names:
        q[model.joint_qadr[model.joint_names.index(name)]] = angles[name]
    return q


def held_velocity(J, wanted):
    """The part of a velocity that rows, each scaled to one, leave alone."""
    size = np.abs(J).max(axis=1, initial=0.0)
    J = J / np.where(size > 0, size, 1.0)[:, None]
    for _ in range(2):
        wanted = wanted - np.linalg.pinv(J, rcond=1e-9) @ (J @ wanted)
    return wanted


def random_mechanism(seed):
    """Two to eight bodies, inertias of some of them down to 1e-12 of others', one or two rows of constraints or none, in units of their own: model, q, v, tau, constraints, units."""
    rng = np.random.default_rng([seed, 77])
    units = Units() if rng.random() < 0.4 else Units(*(10.0 ** rng.choice([-9, -6, -3, 0, 3, 6, 9], 3)))
    length = units.length
    b = dl.ModelBuilder("random", gravity=np.array([0, 0, -9.81]) * length / units.time**2 * (rng.random() < 0.8))
    planar, contacts = rng.random() < 0.25, rng.random() < 0.3
    light, flat = 10.0 ** rng.uniform(-12, 0), np.array([1, 0, 1]) if planar else np.ones(3)
    for i in range(int(rng.integers(2, 9))):
        parent = "world" if i == 0 or rng.random() < 0.15 else f"b{i - 1 if planar or rng.random() < 0.5 else int(rng.integers(i))}"
        part = (light if rng.random() < 0.4 else 10.0 ** rng.uniform(-1, 0)) * units.mass
        inertia = np.sort(rng.uniform(0.05, 0.15, 3))
        inertia[2] = min(inertia[2], 0.9 * (inertia[0] + inertia[1]))
        turn = np.array([1.0, 0, 0, 0]) if planar else rng.standard_normal(4)
        b.add_body(
            f"b{i}", parent, position=rng.uniform(-0.6, 0.6, 3) * flat * length, quaternion=turn / np.linalg.norm(turn), mass=part,
            com=rng.uniform(-0.2, 0.2, 3) * flat * length, inertia=inertia * part * length**2,
        )  # fmt: skip
        kind = "hinge" if planar else str(rng.choice(["hinge", "hinge", "hinge", "slide", "ball"]))
        kind = "free" if parent == "world" and not planar and rng.random() < 0.3 else kind
        b.add_joint(f"b{i}", kind, axis=(0, 1, 0) if planar else rng.standard_normal(3))
    model = b.build()
    q = model.random(rng)
    for at, kind in zip(model.joint_qadr, model.joint_type, strict=True):
        q[at : at + {"slide": 1, "free": 3}.get(kind, 0)] *= length

    places, constraints = dl.body_placements(model, q), []
    for _ in range(int(rng.integers(0, 3))):
        body, other = (int(x) for x in rng.integers(1, model.nbody, 2))
        point = rng.uniform(-0.5, 0.5, 3) * flat * length * (rng.random() < 0.8)
        if contacts or body == other:
            constraints.append(dl.PointContact(model, body, point=point))
            continue
        world = places[body, :3, :3] @ point + places[body, :3, 3]
        constraints.append(
            dl.Connect(model, body, other, point=point, other_point=places[other, :3, :3].T @ (world - places[other, :3, 3]))
        )
    size = velocity_units(model, units)
    v = rng.standard_normal(model.nv) * (rng.random() < 0.7)
    if constraints:
        G = dl.DelassusOperator(model, constraints)
        G.update(q)
        v = held_velocity(np.asarray(G.jacobian @ np.eye(model.nv)) * size, v)
    tau = rng.standard_normal(model.nv) * dl.mass_matrix(model, q).diagonal() * size / units.time**2 * (rng.random() < 0.8)
    return model, q, v * size / units.time, tau, constraints, units
