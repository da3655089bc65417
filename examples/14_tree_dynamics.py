"""Load a robot with loops, look at it, and check the laws its dynamics must obey."""

import numpy as np

import delassus as dl

model = dl.load("cassie")
print(model)
print("loops:", ", ".join(loop.name for loop in model.loops))

# a state: the standing pose, pushed
q = model.keyframes["home"]
v = 0.1 * np.random.default_rng(0).standard_normal(model.nv)

# forward and inverse dynamics undo each other
tau = np.linspace(-1.0, 1.0, model.nv)
acceleration = dl.forward_dynamics(model, q, v, tau)
error = np.abs(dl.inverse_dynamics(model, q, v, acceleration) - tau).max()
print(f"inverse dynamics of forward dynamics: {error:.1e} N m off")
assert error < 1e-9

# M⁻¹ in three ways
M = dl.mass_matrix(model, q)
direct = dl.mass_matrix_inverse(model, q)
columns = dl.solve_mass_matrix(model, q, np.eye(model.nv))
print(f"M⁻¹ M − 1: {np.abs(direct @ M - np.eye(model.nv)).max():.1e}, direct against columns: {np.abs(direct - columns).max():.1e}")
assert np.allclose(direct @ M, np.eye(model.nv), atol=1e-9)

# the kinetic energy needs no M, and the loops' ends stand together
assert np.isclose(dl.kinetic_energy(model, q, v), 0.5 * v @ M @ v, rtol=1e-12)
for loop in model.loops:
    gap = dl.point_position(model, q, loop.body, loop.point) - dl.point_position(model, q, loop.other, loop.other_point)
    assert np.linalg.norm(gap) < 1e-9, loop.name
print("all good")
