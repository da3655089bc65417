"""Small contact problems whose derivatives exist: in matrices, with every mode, and of a simulator."""

import numpy as np

import delassus as dl


def mixed_problem(seed=0):
    """G (9, 9), g and friction of three contacts of which one is open, one sticks and one slides, none of them near another mode."""
    for k in range(1000):
        rng = np.random.default_rng([seed, k, 23])
        A = rng.standard_normal((9, 12))
        G, g, friction = A @ A.T / 12 + 0.3 * np.eye(9), rng.standard_normal(9), rng.uniform(0.2, 1.0, 3)
        d = dl.ContactDerivatives(G, dl.solve_contacts(G, g, friction, tolerance=1e-11), friction)
        if sorted(d.modes) == ["open", "sliding", "sticking"]:
            return G, g, friction
    raise AssertionError("no problem with every mode")


def pushed_tripod():
    """Make a simulator of a tripod on a floor, pushed by two motors, and a state in which its three feet slide: with four, how they share their load would be anybody's choice."""
    feet = "".join(
        f'<geom type="sphere" size=".02" pos="{x} {y} -.08" mass=".1" friction=".4"/>' for x, y in ((0.2, 0), (-0.1, 0.15), (-0.1, -0.15))
    )
    scene = f"""<mujoco><option timestep=".01"/><worldbody><geom type="plane" size="5 5 1" friction=".4"/><body pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/><joint type="ball"/><geom type="box" size=".1 .1 .02" mass="2" contype="0" conaffinity="0"/>{feet}</body></worldbody>
      <actuator><motor joint="x"/><motor joint="y"/></actuator></mujoco>"""
    sim = dl.Simulator(scene, tolerance=1e-11)
    for _ in range(20):
        sim.step()
    v = np.zeros(sim.model.nv)
    v[:2], v[5] = (0.7, 0.4), 0.5
    return sim, sim.q.copy(), v
