"""Sensors of worlds are those of simulators, bit for bit, and those of both are what MuJoCo's functions find when they are called one by one from Python."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import NotFiniteError
from oracles.sensing import sensed

# a box on legs that may touch the floor, a tendon and joints at the ends of their ranges, a loop, motors, a body that a user moves, sensors that come late
EVERYTHING = """<mujoco><option timestep="0.002" cone="{cone}"/><compiler autolimits="true"/><worldbody><geom name="floor" type="plane" size="5 5 1" condim="{dim}"/>
<body name="hand" mocap="true" pos="0 0 2"><geom size="0.05"/></body>
<body name="box" pos="0 0 0.35"><freejoint/><geom type="box" size="0.2 0.15 0.1" mass="3" condim="{dim}" friction="0.7 0.01 0.002"/><site name="under" pos="0 0 -0.1" size="0.3"/><site name="top" pos="0 0 0.1"/>
<body name="leg" pos="0.2 0 0"><joint name="hip" axis="0 1 0" range="-20 10" damping="0.1"/><geom type="capsule" fromto="0 0 0 0.2 0 -0.2" size="0.03" mass="0.5"/><site name="knee" pos="0.1 0 -0.1"/>
<body name="foot" pos="0.2 0 -0.2"><joint name="ankle" type="ball" range="0 30"/><geom size="0.04" mass="0.3"/><site name="sole" size="0.06"/></body></body>
<body name="tail" pos="-0.2 0 0"><joint name="tail" axis="0 1 0" stiffness="3"/><geom type="capsule" fromto="0 0 0 -0.3 0 0" size="0.02" mass="0.4"/><site name="tip" pos="-0.3 0 0"/></body></body>
<body name="pin" pos="-0.5 0 0.35"><freejoint/><geom size="0.05" mass="0.2" contype="0" conaffinity="0"/><site name="pin"/></body></worldbody>
<tendon><spatial name="rope" range="0 0.3"><site site="top"/><site site="knee"/></spatial></tendon>
<equality><connect body1="tail" body2="pin" anchor="-0.3 0 0"/></equality>
<actuator><motor joint="hip" gear="2"/><position joint="tail" kp="4"/><general joint="tail" dyntype="filter" dynprm="0.1" gainprm="2"/></actuator>
<sensor><touch site="under"/><touch site="sole" cutoff="2"/><accelerometer site="top"/><gyro site="tip"/><force site="tip"/><torque site="tip"/><force site="knee"/><velocimeter site="sole"/>
<jointlimitfrc joint="hip"/><jointlimitfrc joint="hip" cutoff="0.5"/><tendonlimitfrc tendon="rope"/><tendonlimitpos tendon="rope"/><jointactuatorfrc joint="tail"/><actuatorfrc actuator="position"/>
<framepos objtype="body" objname="hand"/><framelinacc objtype="site" objname="pin"/><subtreeangmom body="box"/><e_kinetic/><e_potential/><rangefinder site="top"/>{late}</sensor></mujoco>""".replace(
    '<position joint', '<position name="position" joint'
)  # fmt: skip
LATE = '<jointpos joint="tail" delay="0.01" nsample="8"/><accelerometer site="pin" interval="0.006" nsample="4"/>'
HAS_DELAYS = hasattr(mujoco.MjModel, "sensor_delay")


def everything(cone="pyramidal", dim=3):
    return EVERYTHING.format(cone=cone, dim=dim, late=LATE if HAS_DELAYS else "")


def moved(worlds, rng):
    """Other inputs for each world."""
    worlds.control = rng.normal(size=worlds.control.shape)
    worlds.tau = 0.1 * rng.normal(size=worlds.tau.shape)
    worlds.external_forces[:, 1:] = 0.2 * rng.normal(size=worlds.external_forces[:, 1:].shape)
    if worlds.mocap_position.size:
        worlds.mocap_position = [0, 0, 2] + 0.01 * rng.normal(size=worlds.mocap_position.shape)


def step_alone(sim, worlds, k):
    if worlds.mocap_position.size:
        sim.set_mocap(sim.mocap_names[0], position=worlds.mocap_position[k, 0])
    inputs = {"tau": worlds.tau[k].copy(), "control": worlds.control[k].copy()}
    external = worlds.external_forces[k].copy()
    return sim.step(**inputs, external_forces=external), (*inputs.values(), external)


@pytest.mark.filterwarnings("ignore:MuJoCo Model")
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("cone", "dim"), [("pyramidal", 3), ("elliptic", 6)])
def test_sensors_are_those_of_simulators_bit_for_bit(cone, dim, threads):
    model = dl.load(everything(cone, dim))
    worlds, rng = dl.Worlds(model, 5, threads=threads), np.random.default_rng(3)
    worlds.v = 0.5 * rng.normal(size=worlds.v.shape)
    sims = [worlds.simulator(k) for k in range(5)]
    seen = np.zeros(worlds.sensors.shape[1])
    for turn in range(40):
        moved(worlds, rng)
        worlds.step(3)
        for k, sim in enumerate(sims):
            for _ in range(3):
                step, inputs = step_alone(sim, worlds, k)
            if turn % 4:
                continue
            assert np.array_equal(worlds.sensors[k], step.sensors.data)
            if threads == 1:
                want = sensed(sim, step, *inputs)
                np.testing.assert_allclose(step.sensors.data, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
            seen = np.maximum(seen, np.abs(step.sensors.data))
    # every sensor showed something, and cutoffs cut
    assert (seen > 0).all()
    assert seen[1] == 2
    assert seen[worlds.sensor_slices["sensor_9"]] == 0.5


KINDS = {
    "connect": {}, "weld": {}, "hinge": {"axis": (0, 1, 0.2)}, "universal": {"axis": (0, 1, 0), "other_axis": (1, 0, 0)}, "prismatic": {"axis": (0, 0.3, 1)},
    "cylindrical": {"axis": (0, 0, 1)}, "planar": {"axis": (0.1, 0, 1)}, "distance": {"other_point": (0.1, 0, 0.6)},
}  # fmt: skip
PAIR = """<mujoco><option timestep="0.002"/><worldbody><body name="a" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.05 0.02" pos="0.03 0 0" mass="1" contype="0" conaffinity="0"/>
<body name="b" pos="0.2 0 0"><joint axis="0 1 0"/><geom type="box" size="0.1 0.04 0.03" pos="0.1 0.02 0" mass="0.7" contype="0" conaffinity="0"/><site name="s" pos="0.05 0 0"/></body></body>
<body name="c" pos="0.4 0 1"><freejoint/><geom size="0.1" mass="2" contype="0" conaffinity="0"/><site name="t"/></body></worldbody>
<sensor><force site="s"/><torque site="s"/><force site="t"/><torque site="t"/><accelerometer site="t"/></sensor></mujoco>"""


@pytest.mark.parametrize(("kind", "other"), [(kind, other) for kind in KINDS for other in ("c", None) if other or kind != "distance"])
def test_forces_between_bodies_feel_loops_of_every_kind(kind, other):
    loop = {"kind": kind, "name": "loop", "body": "b", "point": (0.2, 0, 0), **KINDS[kind]} | ({"other": other} if other else {})
    if other is None:
        loop.pop("other_axis", None)
    sim = dl.Simulator(PAIR, loops=[loop])
    rng = np.random.default_rng(1)
    for _ in range(20):
        external = rng.normal(size=(sim.model.nbody, 6))
        step = sim.step(external_forces=external)
    want = sensed(sim, step, external=external)
    np.testing.assert_allclose(step.sensors.data, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
    assert np.abs(step.loop_forces["loop"]).max() > 0.1


def test_sensors_have_the_parameters_of_their_world_and_of_no_other():
    worlds = dl.Worlds(everything(), 6, threads=2)
    p = worlds.parameters
    assert worlds.sensors.any()  # made before
    p["body_mass"][1] *= 1.5
    p["joint_damping"][2] *= 4
    p["gravity"][3] = [0, 0, -3]
    p["friction"][4] = 0.2
    p["actuator_gain"][4, :2] *= 2
    rng = np.random.default_rng(8)
    moved(worlds, rng)
    worlds.step(60)
    sims = [worlds.simulator(k) for k in range(6)]
    moved(worlds, rng)
    worlds.step()
    for k, sim in enumerate(sims):
        assert np.array_equal(worlds.sensors[k], step_alone(sim, worlds, k)[0].sensors.data)
    # what is written after a step counts from the next one on
    worlds.step()
    p["body_mass"][:] *= 3
    for k, sim in enumerate(sims):
        assert np.array_equal(worlds.sensors[k], step_alone(sim, worlds, k)[0].sensors.data)


def test_contacts_beyond_mujocos_memory_are_felt():
    """Forty balls under one site, with less memory than their rows take."""
    text = """<mujoco><option timestep="0.002"/>{}<worldbody><geom type="plane" size="5 5 1"/><body name="plate" pos="0 0 0.25"><freejoint/><geom type="box" size="1 1 0.05" mass="5"/><site name="s" size="2"/></body>
    {}</worldbody><sensor><touch site="s"/></sensor></mujoco>"""
    balls = "".join(
        f'<body pos="{x} {y} 0.1"><freejoint/><geom size="0.1"/></body>'
        for x in np.linspace(-0.9, 0.9, 6)
        for y in np.linspace(-0.9, 0.9, 6)
    )
    values = []
    for size in ('<size memory="60K"/>', '<size memory="50M"/>'):
        worlds = dl.Worlds(text.format(size, balls), 2)
        worlds.step(5)
        values.append(worlds.sensors.copy())
    assert np.array_equal(*values)
    assert values[0].min() > 10


def test_sensors_of_numbers_that_are_none_are_refused():
    worlds = dl.Worlds(PAIR, 3)
    worlds.step()
    worlds.external_forces[1, 2, 0] = np.nan
    with pytest.raises(NotFiniteError, match="external_forces: every number must be finite, which those of world 1 are not"):
        _ = worlds.sensors
    worlds.external_forces = 0.0
    assert np.isfinite(worlds.sensors).all()


def test_worlds_without_sensors_have_none():
    worlds = dl.Worlds(dl.scenes.box_stack(2), 3)
    worlds.step()
    assert worlds.sensors.shape == (3, 0)
