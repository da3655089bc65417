"""A constraint of your own: any rows on any bodies. Two arms carry a virtual beam whose midpoint may not move sideways."""

import numpy as np

import delassus as dl

b = dl.ModelBuilder("two_arms")
for side, y in (("left", 0.3), ("right", -0.3)):
    parent = "world"
    for k in range(3):
        name = f"{side}{k}"
        b.add_body(name, parent, position=(0, y, 1.0) if k == 0 else (0, 0, -0.3), mass=1.0, com=(0, 0, -0.15), inertia=(0.01, 0.01, 0.001))
        b.add_joint(name, "hinge", axis=(0, 1, 0) if k % 2 else (1, 0, 0))
        parent = name
model = b.build()
rng = np.random.default_rng(2)
q, v = 0.5 * rng.standard_normal(model.nv), rng.standard_normal(model.nv)


def velocity_rows(body, point, directions):
    """K with K [velocity of the origin; angular velocity] = directions · velocity of a point, world axes."""
    arm = dl.point_position(model, q, body, point) - dl.point_position(model, q, body)
    return np.array([[*d, *np.cross(arm, d)] for d in np.asarray(directions, dtype=float)])


# rows: the mean of both tips' velocities along y, and along z the difference of the tips
tip, y, z = (0, 0, -0.3), [0, 1, 0], [0, 0, 1]
left, right = velocity_rows("left2", tip, [y, z]), velocity_rows("right2", tip, [y, z])
beam = dl.LinkConstraint(model, [("left2", np.diag([0.5, 1.0]) @ left), ("right2", np.diag([0.5, -1.0]) @ right)])

# it is a constraint like any other: rows, operator, dynamics, impacts
tips = [dl.point_velocity(model, q, v, f"{side}2", tip) for side in ("left", "right")]
rows = dl.constraint_velocity(model, q, v, [beam])
assert np.allclose(rows, [(tips[0][1] + tips[1][1]) / 2, tips[0][2] - tips[1][2]])

stopped = dl.impact(model, q, v, [beam])
print(f"before {rows}, after {dl.constraint_velocity(model, q, stopped.velocity, [beam])}, impulse {stopped.impulses} N s")
assert np.abs(dl.constraint_velocity(model, q, stopped.velocity, [beam])).max() < 1e-10

motion = dl.constrained_dynamics(model, q, stopped.velocity, np.zeros(model.nv), [beam])
print(f"{motion.status}, forces {motion.forces} N")
J = np.array([dl.constraint_velocity(model, q, e, [beam]) for e in np.eye(model.nv)]).T
rest = J @ motion.acceleration + dl.constraint_drift(model, q, stopped.velocity, [beam])
assert np.abs(rest).max() < 1e-8
M, h = dl.mass_matrix(model, q), dl.bias_forces(model, q, stopped.velocity)
assert np.abs(M @ motion.acceleration + h - J.T @ motion.forces).max() < 1e-8
