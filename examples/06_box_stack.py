"""Twenty boxes on top of each other stand for a second: what each carries, and how little they sink."""

import numpy as np

import delassus as dl

n = 20
sim = dl.Simulator(dl.scenes.box_stack(n), tolerance=1e-8)
start = sim.q
motion = sim.run(1.0, every=50, progress=False)
print(motion)

# what the contacts between two boxes carry is the weight above them
contacts = motion.contacts(-1)
for k in (0, n // 2, n - 1):
    box = sim.model.body_index(f"box{k}")
    below = (contacts.bodies.max(axis=1) == box) & (contacts.bodies.min(axis=1) == box - 1)
    up = np.where(contacts.bodies[below, 0] == box, 1.0, -1.0)
    carried = float(up @ contacts.force[below, 2])
    print(f"box {k:2}: {below.sum()} contacts carry {carried:7.3f} N, {n - k} boxes weigh {(n - k) * 9.81:7.3f} N")
    assert abs(carried - (n - k) * 9.81) < 1e-3 * carried

moved = np.abs(motion.q[-1] - start).reshape(n, 7)[:, :3].max()
print(f"deepest penetration {motion.penetration.max():.1e} m, largest movement {moved:.1e} m")
assert motion.penetration.max() < 1e-5
assert moved < 1e-4
assert (motion.status == "solved").all()
