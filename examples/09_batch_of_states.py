"""G of 4,096 states of a quadruped at once, several to a vector register: products and damped inverses, the same as one by one."""

import time

import numpy as np

import delassus as dl

n, rng = 4096, np.random.default_rng(0)
model = dl.load("go2")
feet = [dl.PointContact(model, f"{leg}_calf", point=(-0.002, 0, -0.213)) for leg in ("FL", "FR", "RL", "RR")]
Q = np.array([model.random(rng) for _ in range(n)])
Y = rng.standard_normal((n, 12))

many = dl.BatchDelassusOperator(model, feet, n, damping=1e-6)
start = time.perf_counter()
many.update(Q)
X = many.solve(Y)
batch = time.perf_counter() - start

one = dl.DelassusOperator(model, feet, damping=1e-6)
start = time.perf_counter()
alone = np.empty_like(Y)
for k in range(n):
    one.update(Q[k])
    one.solve(Y[k], out=alone[k])
single = time.perf_counter() - start
print(f"(G + ε)⁻¹ y of {n} states: {1e6 * batch / n:.2f} µs each in a batch, {1e6 * single / n:.2f} µs one by one from Python")

assert np.abs(X - alone).max() <= 1e-6 * np.abs(alone).max()
assert np.abs(many @ X + 1e-6 * X - Y).max() < 1e-6

# the same for motions: eight quadrupeds fall from different heights, each as if it were alone
world = dl.scenes.on_floor(model)
starts = np.tile(world.keyframes["home"], (8, 1))
starts[:, 2] += np.linspace(0.0, 0.35, 8)
falls = dl.rollout(world, starts, steps=200, threads=2)
sim = dl.Simulator(world)
sim.reset(starts[3])
sim.run(0.2, progress=False)
print("heights after 0.2 s:", np.round(falls.q[:, -1, 2], 3))
assert (falls.q[3, -1] == sim.q).all()
assert (falls.unstable == -1).all()
