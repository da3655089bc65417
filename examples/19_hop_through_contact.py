"""Trajectory optimisation through contact: iLQR finds joint torques with which a leg that stands hops to a given height, lands and stands again.

Nobody tells it when the foot leaves the floor or lands: `sim.linearize` differentiates every step with the contacts it has, d(q⁺, v⁺) = A d(q, v) + B dcontrol. The problem is chosen so that this tells
something. The leg starts on its foot, where torques lift the trunk at once; a foot in the air would feel no floor. And its joints have no dry friction: while that holds a joint, the derivative by
its torque is zero. Where a contact is about to open or to close (`S.kinks`), the derivative is that of one side, so a step is shortened until the cost really falls.
"""

import numpy as np

import delassus as dl

# A leg with the lengths and about the masses of Go2's, and a quarter of its trunk on a vertical rail.
LEG = """
<mujoco><option timestep="0.004"/><default><joint axis="0 1 0" damping="0.5" armature="0.01"/><geom contype="0" conaffinity="0"/></default>
  <worldbody><geom type="plane" size="2 2 0.1" friction="0.8" contype="1"/>
    <body><joint name="height" type="slide" axis="0 0 1" damping="0" armature="0"/><geom type="box" size="0.09 0.05 0.05" mass="2.4"/>
      <body><joint name="hip"/><geom type="capsule" fromto="0 0 0 0 0 -0.213" size="0.02" mass="1.15"/>
        <body pos="0 0 -0.213"><joint name="knee"/><geom type="capsule" fromto="0 0 0 0 0 -0.213" size="0.012" mass="0.24"/>
          <geom type="sphere" size="0.022" pos="0 0 -0.213" mass="0.06" conaffinity="1"/></body></body></body></worldbody>
  <actuator><motor joint="hip"/><motor joint="knee"/></actuator></mujoco>"""
sim = dl.Simulator(LEG, tolerance=1e-9)
steps, apex, height = 200, 90, 0.5  # 0.8 s; after 0.36 s the trunk is to be at 0.5 m, 5 cm more than the straight leg has
limit = np.array([23.7, 45.4])  # torques of Go2's motors [N m]
stand = np.array([0.426 * np.cos(0.9) + 0.022, 0.9, -1.8, 0, 0, 0])  # q and v

# The plan at first: torques that hold the leg. Without torque a step ends with some v⁺; B torque is to undo it.
sim.reset(stand[:3])
S = sim.linearize(control=[0, 0])
hold = np.linalg.lstsq(S.B[3:], -S.v, rcond=None)[0]

# Cost: squares of x − goal with these weights, and of torques. All but the apex and the end weigh little.
goal, weight, effort = np.tile(stand, (steps + 1, 1)), np.tile([0, 1e-3, 1e-3, 0, 1e-5, 1e-5], (steps + 1, 1)), 1e-5
goal[apex, 0], weight[apex, [0, 3]], weight[-1] = height, [500, 1], [100, 10, 10, 0.1, 0.1, 0.1]


def rollout(policy):
    """Return cost, states, torques, and A, B and whether a contact is at a kink of every step, for torques policy(step, state)."""
    sim.reset(stand[:3])
    x, u, linear = [stand], [], []
    for k in range(steps):
        u.append(np.clip(policy(k, x[-1]), -limit, limit))
        S = sim.linearize(control=u[-1], advance=True)
        x.append(np.concatenate([S.q, S.v]))
        linear.append((S.A, S.B, S.kinks.any()))
    cost = (weight * (np.array(x) - goal) ** 2).sum() + effort * ((np.array(u) - hold) ** 2).sum()
    return cost / 2, x, u, linear


def improved(cost, x, u, linear, damping):
    """Return a rollout that costs less, if there is one: a sweep back for the gradient g and Hessian V of the cost to go and the best control law, then rollouts with it, by shorter and shorter changes."""
    V, g, change, K = np.diag(weight[-1]), weight[-1] * (x[-1] - goal[-1]), [None] * steps, [None] * steps
    for k in reversed(range(steps)):
        A, B, _ = linear[k]
        H, slope, mixed = B.T @ V @ B + effort * np.eye(2), B.T @ g + effort * (u[k] - hold), B.T @ V @ A
        law = -np.linalg.solve(H + damping * np.eye(2), np.column_stack([slope, mixed]))
        change[k], K[k] = law[:, 0], law[:, 1:]
        g = A.T @ g + weight[k] * (x[k] - goal[k]) + K[k].T @ (H @ change[k] + slope) + mixed.T @ change[k]
        V = A.T @ V @ A + np.diag(weight[k]) + K[k].T @ H @ K[k] + K[k].T @ mixed + mixed.T @ K[k]
    tried = (rollout(lambda k, now, part=part: u[k] + part * change[k] + K[k] @ (now - x[k])) for part in 0.5 ** np.arange(7))
    return next((found for found in tried if found[0] < cost), None)


damping, iterations = 1e-5, 0
first = best = rollout(lambda k, now: hold)
while damping < 10 and iterations < 60:
    found = improved(*best, damping) or best
    damping *= 0.3 if found[0] < 0.99 * best[0] else 10  # smaller changes where these gain little
    best, iterations = found, iterations + 1

# Played once more, torques alone.
sim.reset(stand[:3])
q = np.array([sim.step(control=u) and sim.q for u in best[2]])
foot = q[:, 0] - 0.213 * (np.cos(q[:, 1]) + np.cos(q[:, 1] + q[:, 2])) - 0.022
kinks, error = sum(kink for *_, kink in best[3]), np.abs(q[-1] - stand[:3]).max()
print(f"{iterations} iterations: cost from {first[0]:.2f} to {best[0]:.3f}; {kinks} of {steps} steps at a kink")
print(f"trunk at {q[apex - 1, 0]:.3f} m, foot at most {foot.max():.3f} m above the floor, {error:.3f} m or rad off at the end")
assert best[0] < first[0] / 30
assert abs(q[apex - 1, 0] - height) < 0.02 < 0.05 < foot.max()
assert error < 0.03
