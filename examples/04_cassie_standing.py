"""Torques and rod forces of Cassie standing on its feet, and what a landing does to its velocity."""

import numpy as np

import delassus as dl

model = dl.load("cassie")
q, still = model.keyframes["home"], model.zero_velocity()
toes = [dl.PointContact(model, foot, point=p) for foot in ("left-foot", "right-foot") for p in ((-0.05, 0, 0), (0.05, 0, 0))]
constraints = [*model.loops, *toes]
G = dl.DelassusOperator(model, constraints)

# stand still: ten motors and four leaf springs push, rods and feet carry the rest
springs = [f"{side}-{spring}" for side in ("left", "right") for spring in ("shin", "heel-spring")]
motors = [*(a.joint for a in model.actuators), *springs]
stand = dl.constrained_inverse_dynamics(model, q, still, still, G, actuated=motors)
carried = sum(force[0] for force in stand.constraint_forces[-4:])
print(f"{stand.status}: feet carry {carried:.1f} N of {model.mass * 9.81:.1f} N, largest torque {np.abs(stand.torques).max():.1f} N m")
assert stand.status == "solved"
assert abs(carried + model.mass * model.gravity[2]) < 1e-6

# in the air they are not: the residual says what is missing
air = dl.constrained_inverse_dynamics(model, q, still, still, model.loops, actuated=motors)
print(f"{air.status}: {air.advice}")
assert air.status == "underactuated"

# the equation of motion holds: M 0 + c = τ + Jᵀ λ
G.update(q)
missing = dl.bias_forces(model, q, still) - stand.torques - G.jacobian.H @ stand.forces
assert np.abs(missing).max() < 1e-8

# land: everything moves down at 1 m/s, then the feet stop
v = still.copy()
v[2] = -1.0
landed = dl.impact(model, q, v, G)
print(f"{landed.status} after {landed.iterations} iterations: {-landed.energy_change:.2f} J of {dl.kinetic_energy(model, q, v):.2f} J lost")
assert landed.status == "solved"
assert landed.energy_change < 0
assert np.abs(dl.constraint_velocity(model, q, landed.velocity, constraints)).max() < 1e-8
lost = landed.velocity - v
assert np.isclose(-landed.energy_change, dl.kinetic_energy(model, q, lost), rtol=1e-8)  # Carnot's theorem

# in the null space of all rows: motions that neither bend the rods nor move the feet
free = dl.OperationalSpace(G, iterations=4).null_space @ np.ones(model.nv)
assert np.abs(dl.constraint_velocity(model, q, free, constraints)).max() < 1e-8
print("all good")
