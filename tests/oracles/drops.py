"""Random things that fall: boxes, balls, capsules and small figures above a floor, all passive."""

import mujoco
import numpy as np


def _shape(rng):
    kind = rng.choice(["box", "sphere", "capsule"])
    size = rng.uniform(0.04, 0.15, {"box": 3, "sphere": 1, "capsule": 2}[kind])
    return f'<geom type="{kind}" size="{" ".join(f"{x:.4f}" for x in size)}" density="{rng.uniform(200, 2000):.1f}" friction="{rng.uniform(0, 1.2):.3f}"/>'


def _pose(rng, place):
    quaternion = rng.standard_normal(4)
    return f'pos="{" ".join(f"{x:.4f}" for x in place)}" quat="{" ".join(f"{x:.4f}" for x in quaternion)}"'


def _limb(rng, depth):
    place = rng.uniform(-0.25, 0.25, 3)
    axis = rng.standard_normal(3)
    kind = rng.choice(["hinge", "hinge", "slide", "ball"])
    joint = f'<joint type="{kind}" axis="{axis[0]:.3f} {axis[1]:.3f} {axis[2]:.3f}" damping="{rng.choice([0, 0.1])}" armature="{rng.choice([0, 0.01])}" frictionloss="{rng.choice([0, 0, 0.1])}"'
    if kind in ("hinge", "slide"):
        joint += f' limited="true" range="{"-40 60" if kind == "hinge" else "-.1 .1"}"'
    inner = _limb(rng, depth - 1) if depth and rng.random() < 0.6 else ""
    return f"<body {_pose(rng, place)}>{joint}/>{_shape(rng)}{inner}</body>"


def drop(seed):
    """MJCF of a random scene: up to five things in the air, the lower ones soon on the floor, the upper ones on them."""
    rng = np.random.default_rng(seed)
    while True:
        text = _scene(rng)
        m = mujoco.MjModel.from_xml_string(text)
        d = mujoco.MjData(m)
        mujoco.mj_forward(m, d)
        if d.ncon == 0:  # nothing is in each other
            return text


def _scene(rng):
    things = []
    for k in range(rng.integers(1, 6)):
        place = (*rng.uniform(-0.15, 0.15, 2), 0.3 + 0.4 * k)
        limbs = "".join(_limb(rng, 2) for _ in range(rng.integers(1, 3))) if rng.random() < 0.3 else ""
        things.append(f"<body {_pose(rng, place)}><freejoint/>{_shape(rng)}{limbs}</body>")
    return f'<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="5 5 1" friction="{rng.uniform(0, 1.2):.3f}"/>{"".join(things)}</worldbody></mujoco>'


def energy(motion):
    """Total over time [J]; drops have no springs."""
    return motion.kinetic_energy + motion.potential_energy
