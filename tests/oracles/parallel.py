"""Parallel robots as URDF with a list of loops: five-bar, slider-crank, delta, Stewart platform; their rows by MuJoCo's Jacobians, and the forces of a dense KKT system."""

from dataclasses import dataclass, field

import mujoco
import numpy as np

from .rows import axes

Y = (0.0, 1.0, 0.0)


@dataclass
class Robot:
    """A URDF, the loops that close it, joints that URDF does not know, and the motors: joints, where they go (mean, amplitude, rate), stiffness and damping."""

    name: str
    links: str = ""
    loops: list = field(default_factory=list)
    joints: dict = field(default_factory=dict)
    motors: dict = field(default_factory=dict)
    gains: tuple = (0.0, 0.0)

    @property
    def urdf(self):
        return f'<robot name="{self.name}"><link name="base"/>{self.links}</robot>'

    def link(self, name, parent, *, at=(0, 0, 0), rpy=(0, 0, 0), kind="revolute", axis=Y, mass=0.3, com=(0, 0, 0), size=0.1, joint=None):
        """Add a link and the joint that carries it; its moments are those of a ball with this radius of gyration."""
        moment = mass * size**2
        limit = '<limit lower="-9" upper="9" effort="999" velocity="999"/>' if kind in ("revolute", "prismatic") else ""
        self.links += (
            f'<link name="{name}"><inertial><origin xyz="{text(com)}"/><mass value="{mass}"/><inertia ixx="{moment}" iyy="{1.3 * moment}" izz="{0.8 * moment}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="{joint or name + "_joint"}" type="{kind}"><parent link="{parent}"/><child link="{name}"/><origin xyz="{text(at)}" rpy="{text(rpy)}"/><axis xyz="{text(axis)}"/>{limit}</joint>'
        )

    def frame(self, name, parent, at, rpy=(0, 0, 0)):
        """Add a fixed joint, whose name is a frame, and the link it needs."""
        self.links += f'<link name="{name}_link"/><joint name="{name}" type="fixed"><parent link="{parent}"/><child link="{name}_link"/><origin xyz="{text(at)}" rpy="{text(rpy)}"/></joint>'


def text(x):
    return " ".join(f"{value:.17g}" for value in x)


def five_bar():
    """Two cranks 0.3 m apart, two rods that a hinge joins: three of its five rows are redundant in the plane."""
    r = Robot("five_bar", gains=(60.0, 3.0))
    for side, x, angle in (("left", -0.15, -0.6), ("right", 0.15, 0.6)):
        r.link(f"{side}_crank", "base", at=(x, 0, 0), com=(0, 0, 0.125), size=0.07)
        r.link(f"{side}_rod", f"{side}_crank", at=(0, 0, 0.25), com=(0, 0, 0.2), size=0.12)
        r.frame(f"{side}_tip", f"{side}_rod", (0, 0, 0.4))
        r.motors[f"{side}_crank_joint"] = (angle, 0.3, 2.0 if side == "left" else 3.1)
    r.loops = [{"kind": "hinge", "name": "tips", "body": "left_tip", "other": "right_tip", "axis": Y, "other_axis": Y}]
    return r


def slider_crank():
    """A crank of 0.1 m, a rod of 0.3 m and a block on a rail."""
    r = Robot("slider_crank", gains=(0.0, 0.0))
    r.link("crank", "base", com=(0.04, 0, 0), size=0.05, mass=1.0)
    r.link("rod", "crank", at=(0.1, 0, 0), com=(0.15, 0, 0), size=0.1)
    r.link("block", "base", at=(0.4, 0, 0), kind="prismatic", axis=(1, 0, 0), mass=0.5)
    r.frame("rod_end", "rod", (0.3, 0, 0))
    r.loops = [{"kind": "connect", "name": "pin", "body": "rod_end", "other": "block"}]
    return r


def slider_on_a_rail():
    """The same, whose block hangs on the rod and slides along the world: a prismatic pair closes it."""
    r = Robot("slider_on_a_rail", gains=(0.0, 0.0))
    r.link("crank", "base", com=(0.04, 0, 0), size=0.05, mass=1.0)
    r.link("rod", "crank", at=(0.1, 0, 0), com=(0.15, 0, 0), size=0.1)
    r.link("block", "rod", at=(0.3, 0, 0), mass=0.5)
    r.loops = [{"kind": "prismatic", "name": "rail", "body": "block", "other": "world", "axis": (1, 0, 0)}]
    return r


def delta():
    """Three arms, three rods between universal joints, a platform that only translates: two universal pairs close it."""
    r = Robot("delta", gains=(80.0, 4.0))
    lean, rod, end = 0.6, 0.5, 0.4  # of the rods [rad], their length, and where the arms end [m]
    radius = end - rod * np.sin(lean)  # of the platform
    for k in range(3):
        yaw = 2 * np.pi * k / 3
        r.link(f"arm{k}", "base", at=(0.2 * np.cos(yaw), 0.2 * np.sin(yaw), 0), rpy=(0, 0, yaw), com=(0.1, 0, 0), size=0.06)
        r.link(f"rod{k}", f"arm{k}", at=(0.2, 0, 0), rpy=(0, lean, 0), com=(0, 0, -0.25), size=0.15, mass=0.1)
        r.joints[f"rod{k}_joint"] = {"type": "universal", "axis": Y, "other_axis": (1, 0, 0)}
        r.motors[f"arm{k}_joint"] = (0.1, 0.3, 1.5 + 0.4 * k)
    # the platform hangs on the first rod; its frames are where the other rods end
    r.link("platform", "rod0", at=(0, 0, -rod), rpy=(0, -lean, 0), axis=(1, 0, 0), com=(-radius, 0, 0), mass=0.6)
    r.joints["platform_joint"] = {"type": "universal", "axis": (np.cos(lean), 0, np.sin(lean)), "other_axis": Y}
    for k in (1, 2):
        yaw = 2 * np.pi * k / 3
        r.frame(f"end{k}", f"rod{k}", (0, 0, -rod))
        r.frame(f"place{k}", "platform", (radius * (np.cos(yaw) - 1), radius * np.sin(yaw), 0), (0, 0, yaw))
        r.loops.append(
            {"kind": "universal", "name": f"end{k}", "body": f"end{k}", "other": f"place{k}", "axis": (1, 0, 0), "other_axis": Y}
        )
    return r


def stewart():
    """Six legs with universal joints below, slides, and balls above; five of these are loops, the sixth carries the platform in the tree."""
    r = Robot("stewart", gains=(4000.0, 80.0))
    below, above, height = [], [], 0.5
    for k in range(6):
        a, b = 2 * np.pi * (k // 2) / 3 + (0.2 if k % 2 else -0.2), 2 * np.pi * (k // 2) / 3 + (0.8 if k % 2 else -0.8)
        below.append(np.array([0.4 * np.cos(a), 0.4 * np.sin(a), 0.0]))
        above.append(np.array([0.25 * np.cos(b), 0.25 * np.sin(b), height]))
    for k in range(6):
        leg = above[k] - below[k]
        length = np.linalg.norm(leg)
        # z along the leg
        pitch, yaw = np.arctan2(np.hypot(leg[0], leg[1]), leg[2]), np.arctan2(leg[1], leg[0])
        r.link(f"lower{k}", "base", at=below[k], rpy=(0, pitch, yaw), axis=(1, 0, 0), com=(0, 0, 0.15), size=0.08)
        r.joints[f"lower{k}_joint"] = "universal"
        r.link(
            f"upper{k}", f"lower{k}", at=(0, 0, length / 2), kind="prismatic", axis=(0, 0, 1), com=(0, 0, length / 4), size=0.08, mass=0.2
        )
        r.frame(f"head{k}", f"upper{k}", (0, 0, length / 2))
        r.motors[f"upper{k}_joint"] = (0.0, 0.04, 2.0 + 0.3 * k)
        if k == 0:
            turn = [
                [np.cos(yaw) * np.cos(pitch), -np.sin(yaw), np.cos(yaw) * np.sin(pitch)],
                [np.sin(yaw) * np.cos(pitch), np.cos(yaw), np.sin(yaw) * np.sin(pitch)],
                [-np.sin(pitch), 0, np.cos(pitch)],
            ]
            first = np.array(turn)
    # the platform's frame is that of the first head, turned as that leg is
    r.link(
        "platform",
        "upper0",
        at=(0, 0, np.linalg.norm(above[0] - below[0]) / 2),
        axis=(0, 0, 1),
        com=first.T @ (np.array([0, 0, height]) - above[0]),
        mass=3.0,
        size=0.15,
    )
    r.joints["platform_joint"] = "ball"
    for k in range(1, 6):
        r.frame(f"socket{k}", "platform", first.T @ (above[k] - above[0]))
        r.loops.append({"kind": "ball", "name": f"ball{k}", "body": f"head{k}", "other": f"socket{k}"})
    return r


ROBOTS = {make.__name__: make for make in (five_bar, slider_crank, slider_on_a_rail, delta, stewart)}


# ---- rows and forces by MuJoCo's Jacobians ---------------------------------------------------------------------------------


def jacobian(m, d, body, point):
    """(3, nv) of a point of a body and (3, nv) of its rotation, and its place."""
    b = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_BODY, body)
    x = d.xpos[b] + d.xmat[b].reshape(3, 3) @ point
    push, turn = np.zeros((3, m.nv)), np.zeros((3, m.nv))
    mujoco.mj_jac(m, d, push, turn, x, b)
    return push, turn, x


def rotation_of(m, d, body):
    return d.xmat[mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_BODY, body)].reshape(3, 3)


def rows(m, q, loops):
    """J (rows, nv) of loops by their definition."""
    d = mujoco.MjData(m)
    d.qpos[:] = q
    mujoco.mj_kinematics(m, d)
    mujoco.mj_comPos(m, d)
    out = [np.zeros((0, m.nv))]
    for loop in loops:
        push, turn, _ = jacobian(m, d, loop.body, np.array(loop.point))
        push_o, turn_o, x_o = jacobian(m, d, loop.other, np.array(loop.other_point))
        R, R_o = rotation_of(m, d, loop.body), rotation_of(m, d, loop.other)
        if loop.kind == "connect":
            out.append(push - push_o)
        elif loop.kind == "universal":
            a, b = (x / np.linalg.norm(x) for x in (R @ loop.axis, R_o @ loop.other_axis))
            out += [push - push_o, np.cross(a, b)[None] @ (turn - turn_o)]
        elif loop.kind == "hinge":
            A = axes(loop.axis) @ R.T
            out += [A @ (push - push_o), A[1:] @ (turn - turn_o)]
        elif loop.kind == "prismatic":
            A = axes(loop.axis) @ R.T
            push_there = jacobian(m, d, loop.body, R.T @ (x_o - d.xpos[mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_BODY, loop.body)]))[0]
            out += [A[1:] @ (push_there - push_o), A @ (turn - turn_o)]
    return np.vstack(out)


def gaps(m, q, loops):
    """Largest distance between the points of loops that hold points [m]."""
    d = mujoco.MjData(m)
    d.qpos[:] = q
    mujoco.mj_kinematics(m, d)
    ends = [
        [jacobian(m, d, *end)[2] for end in ((p.body, np.array(p.point)), (p.other, np.array(p.other_point)))]
        for p in loops
        if p.kind != "prismatic"
    ]
    return max((np.linalg.norm(a - b) for a, b in ends), default=0.0)


def mass_and_bias(m, q, v):
    """M and h, without constraints."""
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = q, v
    mujoco.mj_forward(m, d)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M) if mujoco.mj_versionString() >= "4" else mujoco.mj_fullM(m, M, d.qM)
    return M, np.array(d.qfrc_bias)


def advanced(m, q, v, t):
    q = np.array(q, dtype=float)
    mujoco.mj_integratePos(m, q, v, t)
    return q


def kkt(M, J, force, wanted):
    """(a, λ) with M a − Jᵀ λ = force, J a = wanted; the shortest λ where rows are redundant."""
    n, r = len(M), len(J)
    K = np.block([[M, -J.T], [J, np.zeros((r, r))]])
    # scaled, so that the cut of redundant rows depends on no unit
    scale = np.concatenate([1 / np.sqrt(M.diagonal()), np.full(r, np.sqrt(M.diagonal().mean()))])
    x = scale * (np.linalg.pinv(scale[:, None] * K * scale, rcond=1e-11) @ (scale * np.concatenate([force, wanted])))
    return x[:n], x[n:]
