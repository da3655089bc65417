"""A block on a slope just below and just above the limit of friction: it stays, or slides as Coulomb says."""

import numpy as np

import delassus as dl

MU, SECONDS, DT, G = 0.5, 1.0, 1e-3, 9.81


def slide(angle):
    """How far the block goes down the slope [m]."""
    text = f"""<mujoco><option gravity="{G * np.sin(angle)} 0 {-G * np.cos(angle)}"/><worldbody>
      <geom type="plane" size="50 5 1" friction="{MU}"/>
      <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.2 0.2 0.1" mass="3" friction="{MU}"/></body>
    </worldbody></mujoco>"""
    sim = dl.Simulator(text, timestep=DT)
    motion = sim.run(SECONDS, progress=False)
    force = motion.contacts(-1).force.sum(axis=0)
    print(f"{np.degrees(angle):5.2f}°: moved {1e3 * motion.q[-1, 0]:8.3f} mm, ground pushes {force[2]:.3f} N and holds {-force[0]:.3f} N")
    assert np.isclose(force[2], 3 * G * np.cos(angle), rtol=1e-3)
    assert -force[0] <= MU * force[2] * (1 + 1e-6)
    return motion.q[-1, 0]


limit = np.arctan(MU)
steep = 1.1 * limit
creep, distance = slide(0.9 * limit), slide(steep)

# below the limit it stays, to some micrometres; above it s = ½ a t²
assert abs(creep) < 1e-5
expected = 0.5 * G * (np.sin(steep) - MU * np.cos(steep)) * SECONDS**2
print(f"½ g (sin α − µ cos α) t² = {1e3 * expected:.3f} mm")
assert abs(distance - expected) < 2 * DT * distance / SECONDS + 1e-3  # first order in the timestep
