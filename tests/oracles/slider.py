"""A task small enough to know by heart: a mass on a slide is to stay near zero."""

import numpy as np

import delassus as dl
from delassus.gym import Start, Task

XML = """<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size="0.1" mass="2"/></body></worldbody>
<actuator><motor joint="x" ctrlrange="-10 10"/></actuator></mujoco>"""


class Slider(Task):
    """Actions are forces of up to 2 N on 2 kg; it fails beyond 0.5 m."""

    timestep, frame_skip, max_episode_steps = 0.01, 5, 20
    draws, goals, observations = 2, 1, 4

    def __init__(self, *, width=0.2, speed=1.0):
        self.model, self.nominal, self.reach, self.width, self.speed = dl.load(XML), np.zeros(1), 2.0, width, speed

    def start(self, draws):
        return Start(self.width * draws[:, :1], self.speed * draws[:, 1:], 0.1 * draws[:, :1])

    def observe(self, batch):
        return np.concatenate([batch.q, batch.v, batch.goal, batch.action], axis=1)

    def reward(self, batch):
        return 1 - batch.q[:, 0] ** 2 - 0.01 * batch.action_cost()

    def terminated(self, batch):
        return np.abs(batch.q[:, 0]) > 0.5
