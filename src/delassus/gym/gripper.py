"""A gripper whose fingers are parallelograms, closed by loops, lifts a box."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import load as load_model
from .servos import with_servos
from .task import Batch, Start, Task

__all__ = ["GripperLift"]

Array = NDArray[Any]

_CRANK, _ROOT, _OPEN, _HALF = (
    0.08,
    0.015,
    0.6,
    0.02,
)  # length of the cranks, their distance from the middle [m]; angle at the start [rad]; half edge of the box [m]


class GripperLift(Task):
    """A gripper on two slides closes around a box and lifts it. Its fingers stay upright by parallelograms, closed by loops, and mirror each other by a joint coupling.

    - Action (3): targets of the hand sideways (±8 cm) and up (±10 cm), and of the crank's angle (0.35 ± 0.4 rad; below 0.14 rad the fingers press on the box).
    - Observation (16): sideways, up, crank angle and their velocities, the box minus the middle of the fingers (3), its height, its linear velocity (3) and the last action (3).
    - Reward: (0.3 + 0.3 if both fingers are pressed apart + min(lift / 10 cm, 1)) · exp(−10 · distance from the middle of the fingers to the box) − 0.1 · speed² of the box − 0.02 · action cost; in m and m/s. So throwing the box
      up earns less than holding it.
    - Start: open, above a box up to 4 cm off-centre. Never terminated. Truncated after 150 actions of 20 ms.
    """

    max_episode_steps = 150
    frame_skip = 10
    timestep = 2e-3
    draws = 1
    observations = 16

    def __init__(self) -> None:
        self.model = model = with_servos(load_model(_xml()), [2000.0, 2000.0, 10.0], [100.0, 100.0, 0.5])
        self.nominal, self.reach = np.array([0.0, 0.0, 0.35]), np.array([0.08, 0.1, 0.4])
        self.at = [int(model.joint_qadr[model.joint_index(name)]) for name in ("x", "z", "left_crank")]
        self.rate = [int(model.joint_vadr[model.joint_index(name)]) for name in ("x", "z", "left_crank")]
        box = model.joint_index("box")
        self.box, self.box_rate = int(model.joint_qadr[box]), int(model.joint_vadr[box])
        self.fingers = [model.body_index(f"{side}_finger") for side in ("left", "right")]
        self._open = np.array(model.neutral())
        for side, sign in (("left", 1.0), ("right", -1.0)):
            for part, turn in (("crank", 1.0), ("finger", -1.0), ("follower", 1.0)):
                self._open[model.joint_qadr[model.joint_index(f"{side}_{part}")]] = sign * turn * _OPEN

    def start(self, draws: Array) -> Start:
        """Return open grippers above boxes."""
        q = np.tile(self._open, (len(draws), 1))
        q[:, self.box] = 0.04 * draws[:, 0]
        return Start(q, np.zeros((len(draws), self.model.nv)), np.zeros((len(draws), 0)))

    def observe(self, batch: Batch) -> Array:
        """Return the observations listed above, scaled to about one."""
        q, v = batch.q, batch.v
        return np.concatenate(
            [
                (q.take(self.at, axis=1) - self.nominal) / self.reach,
                v.take(self.rate, axis=1),
                10.0 * self._missing(batch),
                10.0 * q[:, self.box + 2 : self.box + 3],
                v[:, self.box_rate : self.box_rate + 3],
                batch.action,
            ],
            axis=1,
        )

    def reward(self, batch: Batch) -> Array:
        """Return the reward above."""
        lift = np.clip((batch.q[:, self.box + 2] - _HALF) / 0.1, 0.0, 1.0)
        distance = np.sqrt((self._missing(batch) ** 2).sum(axis=1))
        left, right = (batch.contact_forces[:, k, 0] for k in self.fingers)
        pressed = (left < -0.1) & (right > 0.1)  # [N]
        speed = (batch.v[:, self.box_rate : self.box_rate + 3] ** 2).sum(axis=1)
        return np.asarray((0.3 + 0.3 * pressed + lift) * np.exp(-10.0 * distance) - 0.1 * speed - 0.02 * batch.action_cost())

    def _missing(self, batch: Batch) -> Array:
        """(n, 3) box minus the middle between the fingers [m]."""
        across, up, angle = (batch.q[:, k] for k in self.at)
        middle = np.stack([across, np.zeros_like(across), 0.25 + up - _ROOT - _CRANK * np.cos(angle) - 0.025], axis=1)
        return np.asarray(batch.q[:, self.box : self.box + 3] - middle)


def _finger(side: str, s: int) -> str:
    """MJCF of a finger: crank, follower, and the finger they carry, to the left (s = −1) or right of the middle."""
    rod = f'<geom type="capsule" fromto="0 0 0 0 0 {-_CRANK}" size="0.005" mass="0.02" contype="0" conaffinity="0"/>'
    return f"""
    <body name="{side}_crank" pos="{s * _ROOT} 0 {-_ROOT}"><joint name="{side}_crank" axis="0 1 0"/>{rod}
      <body name="{side}_finger" pos="0 0 {-_CRANK}"><joint name="{side}_finger" axis="0 1 0"/><geom type="box" size="0.006 0.015 0.025" pos="0 0 -0.025" mass="0.02"/></body>
    </body>
    <body name="{side}_follower" pos="{s * (_ROOT + 0.02)} 0 {-_ROOT}"><joint name="{side}_follower" axis="0 1 0"/>{rod}</body>"""


def _xml() -> str:
    """MJCF of the gripper above a floor with a box; at zero the cranks point down."""
    return f"""<mujoco model="gripper"><default><joint damping="0.005"/><geom friction="1"/></default>
  <worldbody><geom name="floor" type="plane" size="0 0 0.05" friction="0.5"/>
    <body name="hand" pos="0 0 0.25"><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide"/>
    <geom type="box" size="0.05 0.03 0.015" mass="0.5" contype="0" conaffinity="0"/>{_finger("left", -1)}{_finger("right", 1)}
    </body>
    <body name="box" pos="0 0 {_HALF}"><freejoint name="box"/><geom type="box" size="{_HALF} {_HALF} {_HALF}" mass="0.1"/></body>
  </worldbody>
  <equality>
    <connect body1="left_follower" body2="left_finger" anchor="0 0 {-_CRANK}"/><connect body1="right_follower" body2="right_finger" anchor="0 0 {-_CRANK}"/>
    <joint joint1="right_crank" joint2="left_crank" polycoef="0 -1 0 0 0"/>
  </equality>
  <actuator><motor joint="x" ctrlrange="-50 50"/><motor joint="z" ctrlrange="-50 50"/><motor joint="left_crank" ctrlrange="-2 2"/></actuator></mujoco>"""
