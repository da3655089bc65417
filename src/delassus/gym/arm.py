"""The iiwa arm pushes a box across the floor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import Model, ModelBuilder
from ..model import load as load_model
from .rotations import compose, from_rotation_vectors, rotate
from .servos import actuated, with_servos
from .task import Batch, Start, Task

__all__ = ["ArmPush"]

Array = NDArray[Any]

_POSE = np.array([0.0, 0.7671, 0.0, -1.8262, 0.0, 0.5483, 0.0])  # the rod points down, its tip is 4 cm above the floor at x = 0.5 m
_TIP = np.array([0.0, 0.0, 0.2])  # tip of the rod, in axes of link7 [m]
_HALF, _MASS = 0.06, 0.5  # half edge and mass of the box [m, kg]


class ArmPush(Task):
    """An iiwa with a rod on its flange pushes a box on the floor to a goal.

    - Action (7): joint targets, up to 0.6 rad from a pose behind the box.
    - Observation (29): joint angles minus those of the pose and joint velocities (7 each), rod tip minus box (3), box minus goal (2), the box's linear velocity (3), the last
      action (7).
    - Reward: exp(−5 · distance of the box to the goal) + 0.2 · exp(−5 · distance of the tip to the box) − 0.02 · action cost; distances in m.
    - Start: box 12 cm in front of the rod, up to 5 cm sideways; goal 10 to 25 cm farther, up to 10 cm sideways. Terminated: the box is more than 50 cm from the goal. Truncated after 200 actions of
      20 ms.
    """

    max_episode_steps = 200
    goals = 2
    draws = 4
    observations = 29

    def __init__(self) -> None:
        self.model = model = with_servos(_scene(), [2000, 2000, 1000, 1000, 500, 200, 200], [200, 200, 100, 100, 50, 20, 20])
        self.nominal, self.reach = _POSE, 0.6
        self.at, self.rate = actuated(model)
        box = model.joint_index("box_free")
        self.box, self.box_rate = int(model.joint_qadr[box]), int(model.joint_vadr[box])

        # the chain from the base to the flange: position and quaternion of each body, axis and column of its hinge
        bodies, hinges = {b.name: b for b in model.bodies}, {j.body: k for k, j in enumerate(model.joints)}
        names = ["base", *(f"link{k}" for k in range(1, 8))]
        self._chain = [
            (
                np.array([bodies[name].position]),
                np.array([bodies[name].quaternion]),
                np.array([model.joints[hinges[name]].axis]) if name in hinges else np.zeros((1, 3)),
                int(model.joint_qadr[hinges[name]]) if name in hinges else 0,
            )
            for name in names
        ]

    def tip(self, q: Array) -> Array:
        """(n, 3) position of the rod's tip [m]: forward kinematics along the chain, for all rows together."""
        at, turn = np.zeros((len(q), 3)), np.tile([1.0, 0.0, 0.0, 0.0], (len(q), 1))
        for position, quaternion, axis, column in self._chain:
            at = at + rotate(turn, position)
            turn = compose(compose(turn, quaternion), from_rotation_vectors(q[:, [column]] * axis))
        return np.asarray(at + rotate(turn, _TIP[None]))

    def start(self, draws: Array) -> Start:
        """Return arms behind their boxes."""
        q = np.tile(self.model.neutral(), (len(draws), 1))
        q[:, self.at] = _POSE
        place = np.array([0.62, 0.0]) + np.array([0.0, 0.05]) * draws[:, :2]
        q[:, self.box : self.box + 2] = place
        goal = place + [0.175, 0.0] + np.array([0.075, 0.1]) * draws[:, 2:]
        return Start(q, np.zeros((len(draws), self.model.nv)), goal)

    def observe(self, batch: Batch) -> Array:
        """Return the observations listed above, with velocities scaled to about one."""
        q, v, box = batch.q, batch.v, batch.q[:, self.box : self.box + 3]
        return np.concatenate(
            [
                q.take(self.at, axis=1) - _POSE,
                0.5 * v.take(self.rate, axis=1),
                5.0 * (self.tip(q) - box),
                5.0 * (box[:, :2] - batch.goal),
                v[:, self.box_rate : self.box_rate + 3],
                batch.action,
            ],
            axis=1,
        )

    def reward(self, batch: Batch) -> Array:
        """Return the reward above."""
        reach = np.sqrt(((self.tip(batch.q) - batch.q[:, self.box : self.box + 3]) ** 2).sum(axis=1))
        return np.asarray(np.exp(-5.0 * self._missing(batch)) + 0.2 * np.exp(-5.0 * reach) - 0.02 * batch.action_cost())

    def terminated(self, batch: Batch) -> Array:
        """Return where the box is out of reach."""
        return self._missing(batch) > 0.5

    def _missing(self, batch: Batch) -> Array:
        """(n,) distance of the box to the goal [m]."""
        return np.asarray(np.sqrt(((batch.q[:, self.box : self.box + 2] - batch.goal) ** 2).sum(axis=1)))


def _scene() -> Model:
    b = ModelBuilder("arm_and_box")
    b.add_shape("world", "plane", (0.0, 0.0, 0.05), name="floor", friction=0.5, rgba=(0.8, 0.8, 0.8, 1.0))
    b.add_model(load_model("iiwa"), prefix="")
    b.add_shape("link7", "capsule", (0.015, 0.055), position=(0.0, 0.0, _TIP[2] - 0.055), friction=0.5)
    b.add_body("box", mass=_MASS, position=(0.62, 0.0, _HALF), inertia=(2 * _MASS * _HALF**2 / 3,) * 3)
    b.add_joint("box", "free", name="box_free")
    b.add_shape("box", "box", (_HALF,) * 3, friction=0.5, rgba=(0.72, 0.53, 0.32, 1.0))
    return b.build()
