"""Make the stored scenes of ``delassus.scenes``: drop each model in MuJoCo, stop at a chosen moment, read pose and contacts.

    python tools/make_scenes.py [FOLDER]

Seeds and moments were chosen so that the contacts are as many as in Table I of the matrix-free paper. No clock and no thread takes part: one version
of MuJoCo on one machine writes the same bytes every time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

from delassus import Model, scenes

POINTS_A_PAIR = 4
# [N m] where the robot's maker publishes none
JOINT_FRICTION = 0.1


class Drop(NamedTuple):
    """Where a model starts, when its fall is stopped [s], and stiffness [N m/rad] and damping [N m s/rad] of its motors; None: they are off."""

    start: Callable[[Model], Any]
    seconds: float
    motors: tuple[float, float] | None = None


def lifted(model: Model) -> Any:
    """Return the keyframe ``home``, 5 mm higher."""
    q = model.keyframes["home"].copy()
    q[2] += 0.005
    return q


def tumbling(model: Model, seed: int) -> Any:
    """Return a robot half a metre up, turned anyhow, its joints within 0.5 rad of ``home``."""
    rng = np.random.default_rng(seed)
    q = model.keyframes["home"].copy()
    q[2] = 0.5
    q[3:7] = any_turn(rng)
    low, high = model.joint_range[1:].T
    q[7:] = np.clip(q[7:] + rng.uniform(-0.5, 0.5, model.nq - 7), low, high)
    return q


def robots_turned(model: Model, seed: int) -> Any:
    """Return the boxes in their places and each robot above them, turned anyhow."""
    rng = np.random.default_rng(seed)
    q = model.neutral()
    for joint, first in zip(model.joints, model.joint_qadr, strict=True):
        if joint.type == "free" and joint.name.startswith("robot"):
            q[first + 3 : first + 7] = any_turn(rng)
    return q


def any_turn(rng: np.random.Generator) -> Any:
    """Return a unit quaternion, uniform on all rotations."""
    turn = rng.standard_normal(4)
    return turn / np.linalg.norm(turn)


GO2, CASSIE, G1 = (100.0, 2.0), (1500.0, 20.0), (200.0, 5.0)
DROPS = {
    "go2-standing": Drop(lifted, 3.0, GO2),
    "go2-standing-friction": Drop(lifted, 3.0, GO2),
    "go2-fallen": Drop(partial(tumbling, seed=6), 3.0),
    "go2-fallen-friction": Drop(partial(tumbling, seed=6), 4.0),
    "cassie-standing": Drop(lifted, 0.5, CASSIE),
    "cassie-standing-friction": Drop(lifted, 0.5, CASSIE),
    "g1-standing": Drop(lifted, 3.0, G1),
    "g1-standing-friction": Drop(lifted, 3.0, G1),
    "g1-fallen": Drop(partial(tumbling, seed=420), 4.0),
    "g1-fallen-friction": Drop(partial(tumbling, seed=420), 5.0),
    "box-stack": Drop(Model.neutral, 1.5),
    "box-pyramid": Drop(Model.neutral, 0.5),
    "pyramid-with-robots": Drop(partial(robots_turned, seed=8), 0.737),
}


def fall(model: Model, drop: Drop) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Let the model fall, joints without friction, loops as stiff as Cassie's maker has them; contacts are those of the last pose."""
    m = mujoco.MjModel.from_xml_string(model.to_mjcf())
    m.opt.timestep = 1e-3
    m.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    m.dof_frictionloss[:] = 0.0
    m.eq_solref[:] = 0.005, 1.0
    m.eq_solimp[:, :3] = 0.95, 0.9999, 0.001
    d = mujoco.MjData(m)
    d.qpos[:] = start = drop.start(model)
    joint, gear = m.actuator_trnid[:, 0], m.actuator_gear[:, 0]
    position, velocity = m.jnt_qposadr[joint], m.jnt_dofadr[joint]
    for _ in range(round(drop.seconds / m.opt.timestep)):
        if drop.motors:
            stiffness, damping = drop.motors
            d.ctrl[:] = (stiffness * (start[position] - d.qpos[position]) - damping * d.qvel[velocity]) / gear
        mujoco.mj_step(m, d)
    mujoco.mj_normalizeQuat(m, d.qpos)
    mujoco.mj_forward(m, d)
    return m, d


def spanning(points: Any, normal: Any) -> list[int]:
    """Return which points, four at most, span the patch: the outermost, the one farthest from it, and the farthest on both sides of their line."""
    if len(points) <= POINTS_A_PAIR:
        return list(range(len(points)))
    a = np.linalg.norm(points - points.mean(axis=0), axis=1).argmax()
    b = np.linalg.norm(points - points[a], axis=1).argmax()
    side = np.cross(points[b] - points[a], points - points[a]) @ normal
    return sorted({int(k) for k in (a, b, side.argmax(), side.argmin())})


def contacts(m: mujoco.MjModel, d: mujoco.MjData) -> list[dict[str, Any]]:
    """Return MuJoCo's contacts, four at most a pair of shapes. Its normal goes from the first shape to the second, and a plane is always first."""
    pairs: dict[tuple[int, int], list[Any]] = {}
    for contact in d.contact:
        pairs.setdefault((int(contact.geom[0]), int(contact.geom[1])), []).append(contact)

    def on(body: int, position: Any) -> list[float]:
        return (d.xmat[body].reshape(3, 3).T @ (position - d.xpos[body])).tolist()

    found = []
    for geoms, touching in pairs.items():
        other, body = (int(m.geom_bodyid[g]) for g in geoms)
        kept = spanning(np.array([c.pos for c in touching]), touching[0].frame[:3])
        for c in (touching[k] for k in kept):
            found.append({
                "body": m.body(body).name, "other": m.body(other).name if other else None, "point": on(body, c.pos), "other_point": on(other, c.pos),
                "normal": c.frame[:3].tolist(), "friction": float(c.friction[0]),
            })  # fmt: skip
    return found


def joint_friction(model: Model) -> dict[str, float]:
    """Return the friction of every joint but the root's [N m]."""
    loss = model.dof_friction_loss[model.joint_vadr]
    return {j.name: float(x) or JOINT_FRICTION for j, x in zip(model.joints, loss, strict=True) if j.type != "free"}


def as_text(data: dict[str, Any]) -> str:
    """Write JSON with one contact a line, every number to its last digit."""
    lines = ",\n".join(f"    {json.dumps(contact)}" for contact in data["contacts"])
    return f'{{\n  "q": {json.dumps(data["q"])},\n  "joint_friction": {json.dumps(data["joint_friction"])},\n  "contacts": [\n{lines}\n  ]\n}}\n'


def make(name: str) -> str:
    """Return the text of one scene's file."""
    model = scenes.model_of(name)
    m, d = fall(model, DROPS[name])
    friction = joint_friction(model) if name.endswith("-friction") else {}
    return as_text({"q": d.qpos.tolist(), "joint_friction": friction, "contacts": contacts(m, d)})


def main() -> None:
    """Write every scene and say how many contacts each has."""
    home = Path(__file__).parents[1] / "src" / "delassus" / "assets" / "scenes"
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=home)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in scenes.names:
        text = make(name)
        (folder / f"{name}.json").write_text(text)
        print(f"{name:24} {len(json.loads(text)['contacts']):4} contacts")


if __name__ == "__main__":
    main()
