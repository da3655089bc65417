"""Random mechanisms of many families, with light parts and in any units, each with the rows that its constraints stand for (exact.py)."""

from dataclasses import dataclass, field, replace

import numpy as np

import delassus as dl

from .exact import Exact, Rows

FAMILIES = ("arm", "tree", "loop", "free", "plane", "delta", "coupled", "redundant", "singular", "held")
_SCALES = (-9, -6, -3, 0, 3, 6, 9)


@dataclass
class Drawing:
    """A mechanism as it is drawn: parts in units of one, then in those asked for."""

    rng: np.random.Generator
    mass: float = 1.0
    length: float = 1.0
    time: float = 1.0
    light: float = 1.0  # inertia of light parts against others
    names: list = field(default_factory=list)

    def __post_init__(self):
        gravity = np.array([0, 0, -9.81]) * self.length / self.time**2 * (self.rng.random() < 0.85)
        self.builder = dl.ModelBuilder("drawn", gravity=gravity)

    def body(self, parent, position=(0, 0, 0), joint="hinge", axis=None, light=None, turned=True, heavy=1.0):
        """Add a body with one joint at its frame; returns its name."""
        rng, name = self.rng, f"b{len(self.names)}"
        light = rng.random() < 0.35 if light is None else light
        part = (self.light if light else 10.0 ** rng.uniform(-1, 0)) * heavy * self.mass
        inertia = np.sort(rng.uniform(0.05, 0.15, 3))
        inertia[2] = min(inertia[2], 0.9 * (inertia[0] + inertia[1]))
        turn = rng.standard_normal(4) if turned else np.array([1.0, 0, 0, 0])
        com = rng.uniform(-0.2, 0.2, 3) * (1 if turned else (1, 0, 1))
        self.builder.add_body(
            name, parent, position=np.asarray(position) * self.length, quaternion=turn / np.linalg.norm(turn), mass=part,
            com=com * self.length, inertia=inertia * part * self.length**2,
        )  # fmt: skip
        armature = part * self.length**2 * rng.uniform(0, 0.1) * (rng.random() < 0.1) if joint == "hinge" else 0.0
        self.builder.add_joint(name, joint, axis=rng.standard_normal(3) if axis is None else axis, armature=armature)
        self.names.append(name)
        return name


@dataclass(frozen=True)
class Case:
    """A mechanism in a state, its constraints, and the same in words of the equations."""

    family: str
    model: dl.Model
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    constraints: list
    rows: list
    units: tuple

    def with_torques(self, tau):
        return replace(self, tau=tau)

    def exact(self):
        return Exact(self.model, self.q, self.v, self.tau, self.rows)


class Ties:
    """Constraints that hold at a configuration."""

    def __init__(self, model, q):
        self.model, self.places, self.constraints, self.rows = model, dl.body_placements(model, q), [], []

    def where(self, body, point):
        return self.places[body, :3, :3] @ point + self.places[body, :3, 3]

    def local(self, body, place):
        return self.places[body, :3, :3].T @ (place - self.places[body, :3, 3])

    def contact(self, body, point):
        c = dl.PointContact(self.model, body, point=point)
        self.constraints.append(c)
        self.rows.append(Rows("point", body, None, tuple(point), axes=tuple(map(tuple, np.reshape(c._recipe[2]["matrix"], (3, 3))))))

    def connect(self, body, other, point):
        far = self.where(body, point) if other is None else self.local(other, self.where(body, point))
        self.constraints.append(dl.Connect(self.model, body, other, point=point, other_point=far))
        self.rows.append(Rows("point", body, other, tuple(point), tuple(far)))

    def weld(self, body, other, point):
        far = self.where(body, point) if other is None else self.local(other, self.where(body, point))
        self.constraints.append(dl.Weld(self.model, body, other, point=point, other_point=far))
        self.rows.append(Rows("weld", body, other, tuple(point), tuple(far)))

    def distance(self, body, other, point, far):
        self.constraints.append(dl.Distance(self.model, body, other, point=point, other_point=far))
        self.rows.append(Rows("distance", body, other, tuple(point), tuple(far)))

    def coupling(self, joint, other, slope):
        names = self.model.joint_names
        self.constraints.append(dl.JointCoupling(self.model, names[joint], names[other], polynomial=(0, slope, 0, 0, 0)))
        self.rows.append(Rows("coupling", joint, other, slope=slope))


def _grow(d, bodies, *, fork, joints=("hinge", "hinge", "hinge", "slide", "ball"), base=None):
    parent = "world"
    for i in range(bodies):
        kind = base if i == 0 and base else str(d.rng.choice(joints))
        name = d.body(parent, d.rng.uniform(-0.6, 0.6, 3), kind)
        parent = name if not fork or d.rng.random() < 0.6 else str(d.rng.choice(d.names))


def _delta(d):
    """Three driven arms, each with two rods on ball joints that hold a platform; rods are light."""
    light = []
    for k in range(3):
        angle = 2 * np.pi * k / 3
        out, side = np.array([np.cos(angle), np.sin(angle), 0]), np.array([-np.sin(angle), np.cos(angle), 0])
        arm = d.body("world", 0.2 * out, axis=side, light=False, turned=False)
        for s in (-0.05, 0.05):
            light.append((d.body(arm, 0.3 * out + s * side, "ball", light=True, turned=False), 0.05 * out + s * side))
    d.body("world", (0, 0, 0), "free", light=False, turned=False)
    return light


def _delta_pose(d, model):
    """Arms a little up or down, the platform below."""
    q = model.neutral()
    place = np.array([*d.rng.uniform(-0.05, 0.05, 2), -0.5])
    for j, kind in enumerate(model.joint_type):
        at = model.joint_qadr[j]
        if kind == "hinge":
            q[at] = d.rng.uniform(-0.3, 0.3)
        elif kind == "free":
            q[at : at + 3] = place * d.length
    return q


def _tie_randomly(d, ties, family, count):
    rng, model = d.rng, ties.model
    for _ in range(count):
        body, other = (int(x) for x in rng.integers(1, model.nbody, 2))
        point = rng.uniform(-0.5, 0.5, 3) * d.length * ((1, 0, 1) if family == "plane" else 1) * (rng.random() < 0.8)
        if family in ("arm", "tree") or body == other:
            kind = rng.choice(["contact", "connect", "weld"]) if family == "arm" else "contact"
            getattr(ties, kind)(body, *([point] if kind == "contact" else [None, point]))
        elif family == "plane" or rng.random() < 0.7:
            ties.connect(body, other, point)
        elif rng.random() < 0.5:
            ties.weld(body, other, point)
        else:
            ties.distance(body, other, point, rng.uniform(-0.5, 0.5, 3) * d.length)


def random_case(seed, *, units=None, light=None):
    """Make the mechanism of a seed: its family goes round."""
    rng = np.random.default_rng([seed, 4711])
    family = FAMILIES[seed % len(FAMILIES)]
    if units is None:
        units = (1.0, 1.0, 1.0) if rng.random() < 0.4 else tuple(10.0 ** rng.choice(_SCALES, 3))
    light = 10.0 ** rng.uniform(-12, 0) if light is None else light
    d = Drawing(rng, *units, light)
    rods = None
    if family == "delta":
        rods = _delta(d)
    elif family == "plane":
        parent = "world"
        for i in range(int(rng.integers(3, 8))):
            parent = "world" if i and rng.random() < 0.2 else parent
            parent = d.body(parent, rng.uniform(-0.6, 0.6, 3) * (1, 0, 1), axis=(0, 1, 0), turned=False)
    elif family == "singular":
        parent = "world"
        for _ in range(int(rng.integers(2, 7))):
            parent = d.body(parent, (0.4, 0, 0), axis=np.eye(3)[rng.integers(1, 3)], turned=False)
    elif family == "free":
        for _ in range(int(rng.integers(1, 5))):
            place, alone = rng.uniform(-0.6, 0.6, 3), not d.names or rng.random() < 0.6
            d.body("world", place, "free") if alone else d.body(str(rng.choice(d.names)), place)
    else:
        _grow(d, int(rng.integers(2, 9)), fork=family != "arm", base="free" if rng.random() < 0.2 else None,
              joints=("hinge", "slide") if family == "coupled" else ("hinge", "hinge", "hinge", "slide", "ball"))  # fmt: skip
    model = d.builder.build()

    # configuration
    if family == "delta":
        q = _delta_pose(d, model)
    elif family == "singular":
        q = np.zeros(model.nq)
    else:
        q = model.random(rng)
        for at, kind in zip(model.joint_qadr, model.joint_type, strict=True):
            if kind == "slide":
                q[at] *= d.length
            elif kind == "free":
                q[at : at + 3] = model.neutral()[at : at + 3] + rng.uniform(-1, 1, 3) * d.length

    # constraints
    ties = Ties(model, q)
    if family == "delta":
        platform = model.nbody - 1
        for name, place in rods:
            rod = model.body_names.index(name)
            world = ties.places[platform, :3, :3] @ (place * d.length) + ties.places[platform, :3, 3]
            ties.connect(rod, platform, ties.local(rod, world))
    elif family == "singular":
        ties.connect(model.nbody - 1, None, np.array([0.4, 0, 0]) * d.length)
    elif family == "held":
        ties.weld(int(rng.integers(1, model.nbody)), None, np.zeros(3))
        _tie_randomly(d, ties, "loop", int(rng.integers(0, 3)))
    else:
        _tie_randomly(d, ties, family, int(rng.integers(0 if family in ("loop", "tree") else 1, 4)))
    if family == "redundant" and ties.rows:
        k = int(rng.integers(len(ties.rows)))
        ties.constraints.append(ties.constraints[k])
        ties.rows.append(ties.rows[k])
    if family == "coupled":
        one_number = [j for j, kind in enumerate(model.joint_type) if kind in ("hinge", "slide")]
        if len(one_number) > 1:
            a, b = rng.choice(one_number, 2, replace=False)
            size = {"hinge": 1.0, "slide": d.length}
            ties.coupling(int(a), int(b), rng.uniform(-2, 2) * size[model.joint_type[a]] / size[model.joint_type[b]])

    # velocities that the rows leave alone; at rest now and then; torques, or those that hold against gravity
    width = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}
    size = np.concatenate([np.where(np.arange(width[t]) < {"slide": 1, "free": 3}.get(t, 0), d.length, 1.0) for t in model.joint_type])
    v = rng.standard_normal(model.nv) * (rng.random() < 0.6 and family != "held")
    still = Exact(model, q, np.zeros(model.nv), None, ties.rows)
    if ties.rows and v.any():
        J = (still.J * size).astype(float)
        J = J / np.maximum(np.abs(J).max(axis=1, initial=0.0), 1e-300)[:, None]
        for _ in range(2):
            v = v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v)
        v[np.abs(v) < 1e-12 * np.abs(v).max()] = 0.0  # at rest is at rest
    v = v * size / d.time
    kind = rng.random()
    tau = rng.standard_normal(model.nv) * still.M.diagonal().astype(float) * size / d.time**2
    tau = tau if kind < 0.6 else np.zeros(model.nv) if kind < 0.8 else still.h.astype(float)
    return Case(family, model, q, v, tau, ties.constraints, ties.rows, units)
