"""Identify masses and friction of an arm from a motion: joint torques are linear in inertial parameters, so least squares with the torque regressor finds them.

Not every parameter shows in the torques of an arm that is bolted down; the rest stay as near to the drawing as can be. What is checked is what they are for: torques of another motion.
"""

import numpy as np

import delassus as dl

rng = np.random.default_rng(0)
drawn = dl.load("iiwa")
n, theta = drawn.nv, dl.inertial_parameters(drawn)

# The arm as it is: heavier and lighter links than drawn, a tool at its end, and joints that rub.
changed = drawn.to_mujoco()
scale = rng.uniform(0.7, 1.4, changed.nbody)
changed.body_mass[:] *= scale
changed.body_inertia[:] *= scale[:, None]
changed.body_mass[-1] += 2.0
real = dl.load(changed)
viscous, dry = rng.uniform(0.2, 1.0, n), rng.uniform(0.1, 0.5, n)


def motion(seed, seconds=10.0, steps=300):
    """Return q, v, ν̇ of some sines per joint."""
    r = np.random.default_rng(seed)
    t = np.linspace(0, seconds, steps)[:, None, None]
    size, rate, phase = r.uniform(0.1, 0.5, (n, 4)), r.uniform(0.3, 3.0, (n, 4)), r.uniform(0, 2 * np.pi, (n, 4))
    s, c = np.sin(rate * t + phase), np.cos(rate * t + phase)
    return (size * s).sum(-1), (size * rate * c).sum(-1), -(size * rate**2 * s).sum(-1)


def torques(q, v, a):
    """Return what the real arm needs: rigid bodies and friction."""
    rigid = np.array([dl.inverse_dynamics(real, *x) for x in zip(q, v, a, strict=True)])
    return rigid + viscous * v + dry * np.tanh(v / 0.01)


def regressor(q, v, a):
    """Return A (samples × n, parameters): columns of θ, then of viscous and of dry friction."""
    Y = [dl.torque_regressor(drawn, *x) for x in zip(q, v, a, strict=True)]
    return np.concatenate([np.hstack([y, np.diag(w), np.diag(np.tanh(w / 0.01))]) for y, w in zip(Y, v, strict=True)])


trained = motion(1)
measured = torques(*trained) + 0.02 * rng.standard_normal(trained[0].shape)
armature = drawn.dof_armature * trained[2]
A, start = regressor(*trained), np.concatenate([theta, np.zeros(2 * n)])
change = np.linalg.lstsq(A, (measured - armature).ravel() - A @ start, rcond=1e-6)[0]
found = start + change

tested = motion(2)
wanted, B = torques(*tested), regressor(*tested)
errors = {
    name: np.abs((B @ x).reshape(-1, n) + drawn.dof_armature * tested[2] - wanted).max()
    for name, x in (("drawn", start), ("identified", found))
}
print(
    f"largest torque {np.abs(wanted).max():.1f} N m; largest error as drawn {errors['drawn']:.2f}, identified {errors['identified']:.3f} N m"
)
print("viscous friction, real and found:", viscous.round(3), found[-2 * n : -n].round(3))
assert errors["identified"] < 0.05 < 2 < errors["drawn"]
assert np.abs(found[-2 * n : -n] - viscous).max() < 0.02
assert np.abs(found[-n:] - dry).max() < 0.02
