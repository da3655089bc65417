"""Move Cassie's pelvis by its motors while loops stay closed and feet stay put: operational space of the constrained mechanism."""

import numpy as np

import delassus as dl

model = dl.load("cassie")
q, v, dt = np.array(model.keyframes["home"]), model.zero_velocity(), 1e-3
springs = [f"{side}-{spring}" for side in ("left", "right") for spring in ("shin", "heel-spring")]
motors = [*(a.joint for a in model.actuators), *springs]

# what holds, pinned where it is now, and called back gently
gains = (400.0, 40.0)
pins = [
    dl.Connect(model, foot, point=p, other_point=dl.point_position(model, q, foot, p), baumgarte=gains)
    for foot in ("left-foot", "right-foot")
    for p in ((-0.05, 0, 0), (0.05, 0, 0))
]
held = [*(dl.constraints.from_loop(model, loop, baumgarte=gains) for loop in model.loops), *pins]
dynamics = dl.ConstrainedDynamics(model, held)
G = dl.DelassusOperator(model, held, damping=1e-6)
start = dl.point_position(model, q, "cassie-pelvis")
goal = start + np.array([0.02, 0.0, -0.03])

for _ in range(1000):
    # accelerations wanted of the pelvis, and the nearest ones that loops and feet allow: N of the constraints, then the task within it
    G.update(q)
    space = dl.OperationalSpace(G, iterations=3)
    J = np.vstack([dl.point_jacobian(model, q, "cassie-pelvis"), dl.frame_jacobian(model, q, "cassie-pelvis")[3:]])
    tilt = np.concatenate([dl.point_position(model, q, "cassie-pelvis") - goal, 2 * q[4:7] * np.sign(q[3])])
    wanted = -100.0 * tilt - 20.0 * (J @ v)
    N = space.null_space @ np.eye(model.nv)
    acceleration = N @ np.linalg.lstsq(J @ N, wanted, rcond=1e-8)[0]
    # torques of motors that give them, loops and feet carrying the rest
    torques = dl.constrained_inverse_dynamics(model, q, v, acceleration, G, actuated=motors).torques
    v = v + dt * dynamics.solve(q, v, torques).acceleration
    q = dl.integrate(model, q, v, dt)

missed = np.linalg.norm(dl.point_position(model, q, "cassie-pelvis") - goal)
open_by = np.abs(dl.constraint_error(model, q, held)).max()
print(
    f"pelvis moved by {np.round(1e3 * (goal - start)).astype(int)} mm, missed by {1e3 * missed:.2f} mm; loops and feet off by {1e3 * open_by:.4f} mm"
)
assert missed < 2e-3
assert open_by < 1e-4
