"""Model predictive control by sampling: a cart between two walls swings its pole up; 256 rollouts of 50 steps from the present state, every 40 ms.

The plan is a sequence of forces. Each time, 256 plans with noise are tried in `dl.Worlds`, and the next plan is their mean, weighted by exp(−cost/temperature).
"""

import time

import numpy as np

import delassus as dl

CART = """
<mujoco><option timestep="0.02"/>
  <worldbody>
    <geom name="left" type="box" size="0.05 0.2 0.2" pos="-0.55 0 0"/><geom name="right" type="box" size="0.05 0.2 0.2" pos="0.55 0 0"/>
    <body name="cart"><joint name="x" type="slide" axis="1 0 0" damping="0.1"/><geom type="box" size="0.15 0.08 0.05" mass="1"/>
      <body name="pole"><joint name="angle" axis="0 1 0" damping="0.002"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.6" size="0.02" mass="0.2" contype="0" conaffinity="0"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="x" ctrlrange="-12 12"/></actuator>
</mujoco>"""

rollouts, forces, hold = 256, 25, 2  # plans, forces of each, steps that a force lasts: 50 steps or one second ahead
worlds, plant = dl.Worlds(CART, rollouts, threads=2), dl.Simulator(CART)
rng = np.random.default_rng(0)
plan = np.zeros(forces)


def cost(q, v):
    """Return the cost of states, rows of q and v: the pole is to point up (angle π), the cart to be in the middle, both at rest."""
    return (1 + np.cos(q[:, 1])) ** 2 + 1.0 * q[:, 0] ** 2 + 0.02 * v[:, 0] ** 2 + 0.01 * v[:, 1] ** 2


def improved(plan, q, v):
    """Return the next plan from a state, by one round of sampling."""
    # noise that changes slowly: a value for every third force, lines between them
    knots = 6.0 * rng.standard_normal((rollouts, 9))
    knots[0] = 0.0  # the plan itself is one of the candidates
    tried = np.clip(plan + [np.interp(np.arange(forces), np.arange(0, 27, 3), row) for row in knots], -12, 12)
    worlds.reset(q=q, v=v)
    total = np.zeros(rollouts)
    for k in range(forces):
        worlds.control[:, 0] = tried[:, k]
        worlds.step(hold)
        total += cost(worlds.q, worlds.v)
    weights = np.exp(-(total - total.min()) / (0.1 * total.std() + 1e-9))
    return weights @ tried / weights.sum()


heights, knocks, began, processor = [], 0, time.perf_counter(), time.process_time()
while plant.time < 3.0:
    plan = improved(plan, plant.q, plant.v)
    for _ in range(hold):
        knocks += len(plant.step(control=plan[:1]).contacts) > 0
    plan = np.append(plan[1:], 0.0)
    heights.append(-np.cos(plant.q[1]))

wall, cpu = time.perf_counter() - began, time.process_time() - processor
steps, up = rollouts * forces * hold * len(heights), np.array(heights) > 0.95
print(
    f"{len(heights)} plans of {rollouts} × {forces * hold} steps: {wall / len(heights) * 1e3:.1f} ms each, {steps / cpu:,.0f} steps per second of one processor"
)
print(f"real-time factor {plant.time / wall:.2f} ({plant.time / cpu:.2f} per second of one processor)")
print(
    f"pole up after {0.04 * (1 + np.argmax(up)):.2f} s; {knocks} steps touched a wall; at the end cos {heights[-1]:.4f}, cart at {plant.q[0]:+.2f} m"
)
assert up[-25:].all(), "the pole is to stay up in the last second"
assert abs(plant.q[0]) < 0.3
