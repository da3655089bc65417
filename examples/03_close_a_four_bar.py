"""Assemble a four-bar from loose angles, turn its crank once around, and watch the loop stay closed."""

import numpy as np

import delassus as dl

model = dl.scenes.four_bar()
loose = np.array([0.5, -0.2, 0.3])
print(f"pin open by {np.linalg.norm(dl.constraint_error(model, loose, model.loops)) * 1e3:.1f} mm")

# the nearest configuration that closes it
closed = dl.close_loops(model, loose)
print(f"{closed.status} in {closed.iterations} steps, open by {closed.residual:.1e} m, {closed.distance:.3f} √kg m away")
assert closed.status == "solved"
assert closed.residual < 1e-10

# turn the crank: hold it at an angle, close the rest
q, rocker = closed.configuration, []
for angle in q[0] + np.linspace(0.0, 2 * np.pi, 73):
    crank = dl.JointCoupling(model, "crank_hinge", polynomial=(angle, 0, 0, 0, 0))
    step = dl.close_loops(model, q, [*model.loops, crank])
    assert step.status == "solved"
    q = step.configuration
    rocker.append(q[2])
print(f"one turn of the crank swings the rocker by {np.degrees(np.ptp(rocker)):.1f}°")
# it comes back to where it was, and swung by what the lengths say: dead centres where crank and coupler are in line
assert abs(rocker[-1] - rocker[0]) < 1e-8
crank, coupler, rod, ground = 0.2, 0.5, 0.4, 0.5
inner, outer = (np.arccos((ground**2 + rod**2 - reach**2) / (2 * ground * rod)) for reach in (coupler - crank, coupler + crank))
assert abs(np.ptp(rocker) - (outer - inner)) < 5e-3

# bars that are too short to meet: the answer is the least gap, 0.5 m of ground less what they reach, and says so
short = dl.Connect(model, "coupler", "rocker", point=(0.1, 0, 0), other_point=(0.05, 0, 0))
best = dl.close_loops(model, q, [short])
print(f"{best.status}: {np.linalg.norm(best.errors) * 1e3:.1f} mm are missing. {best.advice}")
assert best.status == "not_closable"
assert abs(np.linalg.norm(best.errors) - 0.15) < 1e-9
