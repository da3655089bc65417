"""Random mechanisms: trees of mixed joints with everything a description may hold."""

import numpy as np
from hypothesis import strategies as st

import delassus as dl

from .dense import Mechanism, rotation

# joints of one body, in order; none: the body is fixed to its parent
JOINTS = [
    ("hinge",), ("hinge",), ("hinge",), ("slide",), ("ball",), (), ("free",), ("hinge", "hinge"), ("slide", "hinge"), ("hinge", "slide", "hinge"),
    ("slide", "ball"), ("ball", "hinge"), ("slide", "slide", "slide", "ball"), ("hinge", "hinge", "hinge"),
]  # fmt: skip

# Above this a tree gets armature on every joint: 1e-16 · 1e5 leaves an inverse its ten digits.
WORST_CONDITION = 1e5


def unit(rng, n):
    x = rng.standard_normal(n)
    return x / np.linalg.norm(x)


def solid(rng):
    """Mass, centre and inertia of a random turned ellipsoid."""
    mass = np.exp(rng.uniform(np.log(0.2), np.log(10.0)))
    a, b, c = rng.uniform(0.05, 0.5, 3) ** 2
    R = rotation(unit(rng, 4))
    return {"mass": mass, "com": rng.uniform(-0.5, 0.5, 3), "inertia": R @ np.diag([b + c, a + c, a + b]) @ R.T * mass / 5}


def grow(plan, seed, every_armature=False):
    """Build a model of ``plan``, a list of (parent in the list or −1, joints, massless); numbers come from ``seed``, some integers."""
    rng = np.random.default_rng(seed)
    builder = dl.ModelBuilder("tree", gravity=rng.uniform(-10, 10, 3))
    # nothing may end in a massless body: no force would move it
    massless = [False] * len(plan)
    for k in reversed(range(len(plan))):
        massless[k] = plan[k][2] and (not plan[k][1] or any(p == k and not massless[i] for i, (p, *_) in enumerate(plan)))
    bodies, joints = [], []
    for k, (parent, kinds, _) in enumerate(plan):
        inertial = {} if massless[k] else solid(rng)
        frame = {"position": rng.uniform(-0.5, 0.5, 3), "quaternion": unit(rng, 4)}
        bodies.append((f"b{k}", "world" if parent < 0 else f"b{parent}", {**frame, **inertial}))
        joints.append([])
        for kind in kinds:
            place = {} if kind == "free" else {"position": rng.uniform(-0.3, 0.3, 3)}
            line = {"axis": 3 * unit(rng, 3), "reference": rng.uniform(-1, 1)} if kind in ("hinge", "slide") else {}
            armature = rng.uniform(0.2, 2.0) if every_armature or rng.random() < 0.2 else 0.0
            joints[-1].append((f"b{k}", kind, {**place, **line, "armature": armature}))
    # the order of adding bodies, and of joints on different bodies, is free
    for k in rng.permutation(len(plan)):
        name, parent, body = bodies[k]
        builder.add_body(name, parent, **body)
    for k in rng.permutation(len(plan)):
        for name, kind, joint in joints[k]:
            builder.add_joint(name, kind, **joint)
    return builder.build()


def mechanism(plan, seed, every_armature=False):
    """Build a random tree in a random state, seen by the dense oracle; armature everywhere if it is badly conditioned without."""
    model = grow(plan, seed, every_armature)
    rng = np.random.default_rng([*seed, 1])
    oracle = Mechanism(model, model.random(rng), rng.standard_normal(model.nv))
    d = np.sqrt(oracle.mass_matrix.diagonal())
    eigenvalues = np.linalg.eigvalsh(oracle.mass_matrix / np.outer(d, d)) if (d > 0).all() else np.zeros(1)
    if every_armature or model.nv == 0 or eigenvalues[0] * WORST_CONDITION > eigenvalues[-1]:
        return oracle
    return mechanism(plan, seed, every_armature=True)


@st.composite
def mechanisms(draw, max_bodies=12, every_armature=False):
    """Strategy of :func:`mechanism`; what is drawn also seeds the numbers, so no two draws are the same mechanism."""
    plan, drawn = [], [draw(st.integers(0, 2**32 - 1))]

    def pick(choices):
        drawn.append(draw(st.integers(0, len(choices) - 1)))
        return choices[drawn[-1]]

    for k in range(pick(range(max_bodies)) + 1):
        # children of the body before, or of any: long chains and bushes
        parent = k - 1 if pick([True, False]) else pick(range(-1, k))
        kinds = pick([joints for joints in JOINTS if parent < 0 or "free" not in joints])
        plan.append((parent, kinds, pick([False, False, False, True])))
    return mechanism(plan, drawn, every_armature)
