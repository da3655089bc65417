"""Build a cart-pole by hand, compare it with the textbook, let it swing, and hand it to MuJoCo."""

import numpy as np

import delassus as dl

cart, pole, length = 1.0, 0.2, 0.5
b = dl.ModelBuilder("cart_pole")
b.add_body("cart", mass=cart)
b.add_joint("cart", "slide", name="x", axis=(1, 0, 0))
b.add_shape("cart", "box", (0.1, 0.05, 0.05))
b.add_body("pole", "cart", mass=pole, com=(0, 0, -length), inertia=(1e-9, 1e-9, 1e-9))
b.add_joint("pole", "hinge", name="theta", axis=(0, -1, 0))
b.add_shape("pole", "sphere", (0.03,), position=(0, 0, -length))
model = b.build()

# M = [[M + m, m l cos θ], [m l cos θ, m l²]]
q = np.array([0.3, 0.7])
coupling = pole * length * np.cos(q[1])
expected = np.array([[cart + pole, coupling], [coupling, pole * length**2]])
assert np.allclose(dl.mass_matrix(model, q), expected, atol=1e-8)

# swing for two seconds: symplectic Euler keeps energy and momentum along x to first order in dt
work, v, dt = dl.Workspace(model), np.zeros(2), 1e-4
acceleration = np.empty(2)
start = dl.potential_energy(work, q)
for _ in range(20_000):
    v += dt * dl.forward_dynamics(work, q, v, out=acceleration)
    q = dl.integrate(work, q, v, dt)
energy = dl.kinetic_energy(work, q, v) + dl.potential_energy(work, q)
momentum = (dl.mass_matrix(work, q) @ v)[0]
print(f"energy moved by {energy - start:+.1e} J of {abs(start):.2f} J, momentum {momentum:+.1e} kg m/s")
assert abs(energy - start) < 1e-3
assert abs(momentum) < 1e-3

print(model.to_mjcf())
assert dl.load(model.to_mjcf()).joint_names == ("x", "theta")
