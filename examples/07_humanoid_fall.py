"""A humanoid without torques falls from standing: forces on its bodies, and energy that only goes down."""

import sys

import numpy as np

import delassus as dl

model = dl.scenes.on_floor("g1")
sim = dl.Simulator(model)
sim.reset(model.keyframes["home"])

energy, peak = [dl.potential_energy(model, sim.q)], np.zeros(model.nbody)
for _ in range(1500):
    step = sim.step()
    energy.append(dl.kinetic_energy(model, step.q, step.v) + dl.potential_energy(model, step.q))
    peak = np.maximum(peak, np.linalg.norm(step.body_forces(model.nbody), axis=1))
    assert step.residual < 1e-3
print(f"{sim}: {len(step.contacts)} contacts, {step.status} in {step.iterations} iterations")
for body in np.argsort(peak[1:])[:-4:-1] + 1:
    print(f"{model.body_names[body]:28} struck with {peak[body] / (model.mass * 9.81):.1f} times its weight")

# nothing drives it: energy falls, but for what a step of a fall adds, m (g dt)² / 2
gained = np.diff(energy).max()
print(f"pelvis at {step.q[2]:.2f} m, energy from {energy[0]:.1f} J to {energy[-1]:.1f} J, largest gain of a step {gained:.1e} J")
assert step.q[2] < 0.4
assert energy[-1] < energy[0] - 50
assert gained < 0.05

# the same again, bit for bit
first = sim.q
sim.reset(model.keyframes["home"])
motion = sim.run(1.5, every=10, progress=False)
assert (sim.q == first).all()

# python examples/07_humanoid_fall.py fall.html writes a page that plays it (needs the extra viewer)
if len(sys.argv) > 1:
    print("wrote", dl.record(motion, sys.argv[1]))
