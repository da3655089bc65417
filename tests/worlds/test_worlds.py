"""Worlds do what simulators do, bit for bit, and their arrays are what the core works on."""

import pickle

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, NotFiniteError, QuaternionError, UnknownNameError

SENSED = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1"/>
<body name="ball" pos="0 0 0.3"><freejoint/><geom size="0.1" mass="1"/><site name="s" size="0.2"/></body></worldbody>
<sensor><accelerometer site="s"/><touch site="s"/><framepos objtype="body" objname="ball"/></sensor></mujoco>"""
DRIVEN = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1"/><body name="hand" mocap="true" pos="0 0 1"><geom size="0.05"/></body>
<body pos="0 0 0.3"><joint name="j" type="slide" axis="0 0 1" damping="0.1"/><geom size="0.1" mass="1"/></body></worldbody>
<actuator><general joint="j" dyntype="filter" dynprm="0.1" gainprm="20"/></actuator>
<keyframe><key name="up" qpos="0.5" qvel="0.1" time="2" act="0.3" ctrl="0.4" mpos="1 0 1"/></keyframe></mujoco>"""


def robot(name):
    return dl.load(dl.scenes.on_floor(name))


def started(model, count, **options):
    """Worlds that move, each otherwise, and their first velocities."""
    worlds = dl.Worlds(model, count, **options)
    q = worlds.model.keyframes.get("home", worlds.model.neutral())
    v = 0.3 * np.random.default_rng(5).normal(size=(count, worlds.model.nv))
    worlds.reset(q=q, v=v)
    return worlds, q, v


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("scene", ["go2", "stack", "four_bar"])
def test_worlds_are_simulators_bit_for_bit(scene, threads):
    model = {"go2": lambda: robot("go2"), "stack": lambda: dl.scenes.box_stack(3), "four_bar": dl.scenes.four_bar}[scene]()
    worlds, q, v = started(model, 5, threads=threads)
    sims, rng = [dl.Simulator(model) for _ in v], np.random.default_rng(2)
    for sim, speed in zip(sims, v, strict=True):
        sim.reset(q, speed)
    for turn in range(20):
        worlds.control = rng.normal(size=worlds.control.shape)
        worlds.external_forces[:, -1, :3] = rng.normal(size=(5, 3)) * (turn % 3 == 0)
        order = rng.permutation(5) if turn % 2 else None
        worlds.step(5, order)
        for k, sim in enumerate(sims):
            for _ in range(5):
                step = sim.step(control=worlds.control[k], external_forces=worlds.external_forces[k])
            assert np.array_equal(sim.q, worlds.q[k])
            assert np.array_equal(sim.v, worlds.v[k])
            assert (sim.time, step.status, step.residual, step.penetration) == (
                worlds.time[k],
                worlds.statuses[k],
                worlds.residual[k],
                worlds.penetration[k],
            )
            assert len(step.contacts) == worlds.contact_counts[k]
            np.testing.assert_allclose(worlds.contact_forces[k], step.body_forces(model.nbody), rtol=1e-12, atol=1e-9)
    assert worlds.contact_counts.any() or scene == "four_bar"


def test_worlds_sleep_as_simulators_do():
    model = dl.scenes.box_stack(2)
    worlds, sim = dl.Worlds(model, 2, sleep_after=0.05), dl.Simulator(model, sleep_after=0.05)
    worlds.step(150)
    for _ in range(150):
        step = sim.step()
    assert step.sleeping == 2
    assert not worlds.v.any()
    assert np.array_equal(worlds.q[1], sim.q)


def test_a_write_acts_on_one_world_alone():
    worlds, *_ = started(robot("go2"), 8)
    worlds.step(10)
    moment, before = worlds.save(), worlds.v.copy()
    worlds.step()
    plain = worlds.q.copy()
    worlds.restore(moment)
    assert np.array_equal(worlds.v, before)
    worlds.v[7, 0] += 0.5
    worlds.control[2] = 3.0
    worlds.step()
    changed = (worlds.q != plain).any(axis=1)
    assert changed.tolist() == [k in (2, 7) for k in range(8)]
    assert worlds.q[7, 0] - plain[7, 0] == pytest.approx(0.5e-3, rel=0.2)


def test_arrays_are_views_of_one_block_that_stay():
    worlds = dl.Worlds(robot("go2"), 3)
    for name in (
        "q",
        "v",
        "time",
        "control",
        "tau",
        "external_forces",
        "status",
        "residual",
        "penetration",
        "contact_forces",
        "contact_counts",
        "unsolved",
    ):
        array = getattr(worlds, name)
        assert len(array) == 3
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert getattr(worlds, name).ctypes.data == array.ctypes.data, name
    q = worlds.q
    worlds.step(3)
    worlds.q = q + 0.0  # copies into it
    assert worlds.q is q
    assert q[0, 2] != worlds.model.neutral()[2]
    kept = dl.Worlds(robot("go2"), 2).q  # outlives its worlds
    assert np.array_equal(kept[1], worlds.model.neutral())


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_arrays_are_shared_by_dlpack(library):
    worlds = dl.Worlds(dl.scenes.box_stack(1), 4)
    if library == "torch":
        shared = pytest.importorskip("torch").from_dlpack(worlds.v)
        shared[2, 0] = 3.5
        assert worlds.v[2, 0] == 3.5
        worlds.step()
        assert float(shared[2, 2]) == worlds.v[2, 2]
        assert float(pytest.importorskip("torch").from_dlpack(worlds.status)[0]) == 0
    else:
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        worlds.v[2, 0] = 3.5
        assert float(jax.dlpack.from_dlpack(worlds.v)[2, 0]) == 3.5
    again = np.from_dlpack(worlds.q)
    assert again.ctypes.data == worlds.q.ctypes.data


def test_reset_of_some_worlds():
    model = robot("go2")
    worlds, q, _ = started(model, 6)
    worlds.step(20)
    before = worlds.q.copy()
    mask = np.array([0, 1, 0, 0, 1, 0], dtype=bool)
    starts = np.stack([q, q])
    starts[1, 0] = 2.0
    worlds.reset(mask, q=starts, time=[1.0, 2.0])
    assert np.array_equal(worlds.q[mask], starts)
    assert not worlds.v[mask].any()
    assert worlds.time[mask].tolist() == [1.0, 2.0]
    assert np.array_equal(worlds.q[~mask], before[~mask])
    assert worlds.v[~mask].all()
    assert [worlds.statuses[k] == "not_stepped" for k in range(6)] == mask.tolist()
    worlds.step()
    sim = dl.Simulator(model)
    sim.reset(starts[1], time=2.0)
    sim.step()
    assert np.array_equal(sim.q, worlds.q[4])  # contacts were forgotten
    worlds.reset([-1, 0], q="home", v=np.ones(model.nv))
    assert (worlds.v[[0, 5]] == 1).all()
    assert worlds.v[1, 0] != 1
    worlds.reset(slice(2, 4))
    assert np.array_equal(worlds.q[3], model.neutral())
    worlds.reset([])
    worlds.step(where=[])


def test_keyframes_bring_activations_and_mocap_bodies():
    worlds, sim = dl.Worlds(DRIVEN, 3), dl.Simulator(DRIVEN)
    worlds.reset([1], q="up")
    sim.reset("up")
    assert worlds.time.tolist() == [0, 2, 0]
    assert worlds.activation[:, 0].tolist() == [0, 0.3, 0]
    assert worlds.mocap_position[1, 0, 0] == 1
    worlds.control = 0.4
    worlds.mocap_position[1, 0] = [1.001, 0, 1]
    worlds.mocap_quaternion[1, 0] = [2, 0, 0, 0.1]
    sim.set_mocap("hand", [1.001, 0, 1], [2, 0, 0, 0.1])
    for _ in range(5):
        sim.step(control=[0.4])
    worlds.step(5)
    assert np.array_equal(sim.q, worlds.q[1])
    assert np.array_equal(sim.activation, worlds.activation[1])
    assert worlds.activation[1, 0] != 0.3
    worlds.mocap_quaternion[0] = 0
    with pytest.raises(ArgumentError, match=r"mocap_quaternion.*worlds \[0\]"):
        worlds.step()


def test_save_restore_pickle_and_a_simulator_of_one_world():
    model = robot("go2")
    worlds, *_ = started(model, 4, threads=2)
    worlds.control = 1.0
    worlds.step(30)
    moment, copied, sim = worlds.save(), pickle.loads(pickle.dumps(worlds)), worlds.simulator(2)
    forces = worlds.contact_forces.copy()
    worlds.step(10)
    q = worlds.q.copy()
    copied.step(10)
    for _ in range(10):
        sim.step(control=worlds.control[2])
    assert np.array_equal(copied.q, q)
    assert np.array_equal(sim.q, q[2])
    worlds.control = 0.0
    worlds.restore(moment)
    assert np.array_equal(worlds.contact_forces, forces)
    assert (worlds.control == 1).all()
    worlds.step(10)
    assert np.array_equal(worlds.q, q)
    for wrong, what in (
        (moment[:-1], "changed or cut"),
        (dl.Worlds(model, 3).save(), "of 4 worlds"),
        (dl.Worlds(robot("g1"), 4).save(), "another model"),
    ):
        with pytest.raises(ArgumentError, match=what):
            worlds.restore(wrong)
    assert np.array_equal(worlds.q, q)


def test_an_unstable_world_stays_and_the_others_go_on():
    worlds, *_ = started(robot("go2"), 3)
    worlds.step(2)
    before, time = worlds.q[1].copy(), worlds.time[1]
    worlds.tau[1] = 1e300
    worlds.step(3)
    assert worlds.statuses[1] == "unstable"
    assert worlds.statuses[0] == worlds.statuses[2] == "solved"
    assert np.array_equal(worlds.q[1], before)
    assert worlds.time[1] == time
    assert worlds.time[0] == pytest.approx(time + 3e-3)
    assert worlds.unsolved.tolist() == [0, 1, 0]
    assert np.isfinite(worlds.v).all()
    worlds.tau[1] = 0
    worlds.step()
    assert worlds.statuses[1] == "solved"


def test_bad_input_is_refused_before_any_world_steps():
    worlds, *_ = started(robot("go2"), 12)
    before = worlds.q.copy()
    for name in ("q", "v", "time", "control", "tau", "external_forces"):
        array = getattr(worlds, name)
        kept = array[[3, 5]].copy()
        array[[3, 5]] = np.nan
        with pytest.raises(NotFiniteError, match=f"{name}: .*worlds 3, 5 are not"):
            worlds.step()
        array[[3, 5]] = kept
    worlds.q[:10, 3:7] *= 1.1
    with pytest.raises(QuaternionError, match=r"worlds 0, 1, 2, 3, 4, 5, 6, 7, … \(10 in all\)"):
        worlds.step()
    worlds.q[:] = before
    assert not worlds.time.any()
    for where, kind in (
        ([0, 0], ArgumentError),
        ([12], ArgumentError),
        (np.ones(3, bool), ArgumentError),
        ([0.5], ArgumentTypeError),
        ("home", ArgumentTypeError),
        ([[1]], ArgumentTypeError),
    ):
        with pytest.raises(kind, match="where"):
            worlds.step(where=where)
    for n, kind in ((0, ArgumentError), (1.5, ArgumentTypeError), (True, ArgumentTypeError)):
        with pytest.raises(kind, match="n: "):
            worlds.step(n)
    with pytest.raises(ArgumentError, match="v: expected shape"):
        worlds.v = np.zeros((3, 4))
    with pytest.raises(NotFiniteError, match="control"):
        worlds.control = np.inf
    with pytest.raises(ArgumentTypeError, match=r"given as q='home'"):
        worlds.reset("home")
    for arguments, kind in (({"q": np.zeros(3)}, ArgumentError), ({"q": np.zeros(19)}, QuaternionError), ({"v": np.full(18, np.nan)}, NotFiniteError), ({"q": "nowhere"}, UnknownNameError), ({"time": np.zeros(5)}, ArgumentError), ({"q": np.zeros((5, 19))}, ArgumentError)):  # fmt: skip
        with pytest.raises(kind):
            worlds.reset([1, 2], **arguments)
    assert np.array_equal(worlds.q, before)
    with pytest.raises(ArgumentError, match="count"):
        dl.Worlds(worlds.model, 0)
    with pytest.raises(ArgumentError, match="timestep: the Simulator"):
        dl.Worlds(dl.Simulator(worlds.model), 2, timestep=0.1)
    with pytest.raises(ArgumentError, match="world: expected less than 12"):
        worlds.simulator(12)


def test_sensors_are_those_of_steps():
    worlds, sim = dl.Worlds(SENSED, 3), dl.Simulator(SENSED)
    v = np.zeros((3, 6))
    v[:, 0] = [0, 1, 2]
    worlds.reset(v=v)
    sim.reset(v=v[2])
    worlds.step(150)
    for _ in range(150):
        step = sim.step()
    assert worlds.sensors.shape == (3, 7)
    assert np.array_equal(worlds.sensors[2], step.sensors.data)
    assert worlds.sensors[0, worlds.sensor_slices["sensor_1"]] > 9  # N: it lies on the floor
    kept = worlds.sensors
    worlds.step(10)
    assert worlds.sensors is kept
    assert kept[2, 4] > step.sensors.data[4]


def test_chunks_cover_all_worlds_once():
    worlds = dl.Worlds(dl.scenes.box_stack(1), 7)
    parts = list(worlds.chunks(3))
    assert [len(worlds.q[part]) for part in parts] == [3, 3, 1]
    for part in parts:
        worlds.step(2, part)
    assert (worlds.time == 2e-3).all()


def test_switched_loops_of_a_simulator_hold_in_its_worlds():
    sim = dl.Simulator(dl.scenes.four_bar())
    name = next(iter(sim.loop_active))
    sim.set_loop_active(name, False)
    worlds = dl.Worlds(sim, 2)
    worlds.step(50)
    for _ in range(50):
        sim.step()
    assert np.array_equal(worlds.q[0], sim.q)
    closed = dl.Worlds(dl.scenes.four_bar(), 2)
    with pytest.raises(ArgumentError, match="other loops"):
        closed.restore(worlds.save())
    assert np.array_equal(worlds.simulator(1).q, sim.q)


def test_what_nothing_would_read_cannot_be_assigned():
    worlds = dl.Worlds(dl.scenes.box_stack(1), 2)
    for name in ("timestep", "status", "parameters", "gravity", "nonsense"):
        with pytest.raises(AttributeError, match=rf"Worlds\.{name} (cannot be assigned|does not exist)"):
            setattr(worlds, name, 1.0)
    worlds.v = 0.5
    assert (worlds.v == 0.5).all()
