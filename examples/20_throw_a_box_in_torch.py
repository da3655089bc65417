"""Throw a box so that it comes to rest at a target: gradient descent in PyTorch through flight, bounces and sliding (needs the extra torch).

`delassus.torch.rollout` gives the states after every step; `backward` goes back through them, contacts included, to the velocity of the throw. The derivative is that of the contacts which this throw has. It
helps as long as a slightly different throw has similar ones: a flat box with little restitution lands, tips, bounces a little and slides. With a restitution of 0.5 the box tumbles, and small
changes of the throw grow with every bounce: the same descent then reaches none of six random targets, with 0.3 all six.
"""

import sys

import numpy as np

import delassus as dl

try:
    import delassus.torch as dt
except ImportError as missing:
    print(missing)
    sys.exit()
import torch

BOX = """
<mujoco><option timestep="0.005"/><default><geom friction="0.4"/></default>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body pos="0 0 0.5"><freejoint/><geom type="box" size="0.1 0.1 0.05" mass="1"/></body>
  </worldbody>
</mujoco>"""
sim = dl.Simulator(BOX, restitution=0.3, tolerance=1e-9)  # derivatives are as exact as contact forces
start, target, steps = torch.tensor(sim.q), torch.tensor([1.5, 0.6], dtype=torch.float64), 400


def thrown(velocity):
    """Return q and v after every step, of a throw without spin; the box has no motors, so controls have no columns."""
    return dt.rollout(sim, start, torch.cat([velocity, velocity.new_zeros(3)]), velocity.new_zeros(steps, 0))


# First the derivative of where the box comes to rest along x, beside central differences of the simulation. They agree to some thousandths: in one step a
# contact is about to change its mode, in another some corners slide and others stick, and how they share the load is not unique.
velocity = torch.tensor([1.0, 0.2, 0.5], dtype=torch.float64, requires_grad=True)
(slope,) = torch.autograd.grad(thrown(velocity)[0][-1, 0], velocity)
with torch.no_grad():
    ends = [[thrown(velocity + s * axis)[0][-1, 0] for s in (1e-7, -1e-7)] for axis in torch.eye(3, dtype=torch.float64)]
differences = torch.tensor([(ahead - behind) / 2e-7 for ahead, behind in ends])
print("derivatives of x at rest by the velocity [s]:", slope.numpy().round(4), "by differences:", differences.numpy().round(4))
assert torch.allclose(slope, differences, atol=0.01)

# Then descent on half the squared distance from the target.
optimizer, distances = torch.optim.SGD([velocity], lr=1.0), []
while not distances or (distances[-1] > 1e-3 and len(distances) < 60):
    optimizer.step()  # without a gradient at first: it does nothing
    q, v = thrown(velocity)
    off = q[-1, :2] - target
    distances.append(off.detach().norm().item())
    optimizer.zero_grad()
    (0.5 * off @ off).backward()

q, v = q.detach().numpy(), v.detach().numpy()
bounces = int((np.diff(v[:, 2]) > 0.2).sum())
landed = np.argmax(np.diff(v[:, 2]) > 0.2)  # only the floor makes it faster upwards
print(f"distance {distances[0]:.2f} m, {distances[5]:.3f} m after 5 changes of the throw, {distances[-1]:.4f} m after {len(distances) - 1}")
print(
    f"thrown with {velocity.detach().numpy().round(2)} m/s: lands at {q[landed, :2].round(2)}, {bounces} bounces, rests at {q[-1, :2].round(3)} m"
)
assert distances[-1] < 0.005
assert np.abs(v[-1]).max() < 1e-6
assert np.linalg.norm(q[-1, :2] - q[landed, :2]) > 0.1
