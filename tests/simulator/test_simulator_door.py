"""Mistakes are told: which argument, what was expected, what came."""

import os

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import (
    ArgumentError,
    ArgumentTypeError,
    DelassusError,
    LoadError,
    NotFiniteError,
    QuaternionError,
    UnknownNameError,
    UnstableError,
)

BALL = '<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 1"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'


@pytest.fixture(scope="module")
def go2():
    return dl.Simulator(dl.scenes.on_floor("go2"))


# ---- what is simulated --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        ("<mujoco><option timestep='.001'/><worldbody><geom", LoadError, "source: the text is not well-formed XML"),
        (
            "<mujoco><option timestep='.001'/><worldbody><body><joint/></body></worldbody></mujoco>",
            LoadError,
            "MuJoCo cannot compile the text",
        ),
        (
            '<mujoco><option timestep=".001"/><worldbody><geom type="bax"/></worldbody></mujoco>',
            LoadError,
            "MuJoCo cannot compile the text",
        ),
        ("<scene/>", LoadError, "root element <scene>; expected <mujoco>"),
        ("no/such/scene.xml", LoadError, "the file 'no/such/scene.xml' does not exist"),
        ("go3", UnknownNameError, "robot 'go3' does not exist. Did you mean 'go2'"),
        (3, ArgumentTypeError, "model: expected a name, a path, XML text, .*mujoco.MjSpec.* or delassus.Model, got builtins.int"),
        (None, ArgumentTypeError, "model: expected .* got builtins.NoneType"),
    ],
)
def test_bad_scene_says_what_is_wrong(source, error, said):
    with pytest.raises(error, match=said):
        dl.Simulator(source)


def test_missing_mesh_is_named(tmp_path):
    path = tmp_path / "scene.xml"
    path.write_text(
        '<mujoco><option timestep=".001"/><asset><mesh name="m" file="lost.stl"/></asset><worldbody><body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    with pytest.raises(LoadError, match=r"scene\.xml.*lost\.stl"):
        dl.Simulator(path)


def test_broken_mesh_is_told(tmp_path):
    (tmp_path / "broken.stl").write_bytes(b"solid nothing")
    path = tmp_path / "scene.xml"
    path.write_text(
        '<mujoco><option timestep=".001"/><asset><mesh name="m" file="broken.stl"/></asset><worldbody><body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    with pytest.raises(LoadError, match="MuJoCo cannot compile"):
        dl.Simulator(path)


@pytest.mark.parametrize("kind", ["name", "text", "path", "mujoco", "model"])
def test_every_kind_of_source_gives_the_same_fall(kind, tmp_path):
    (tmp_path / "ball.xml").write_text(BALL)
    sources = {
        "name": "solo", "text": BALL, "path": tmp_path / "ball.xml", "mujoco": mujoco.MjModel.from_xml_string(BALL), "model": dl.load(BALL),
    }  # fmt: skip
    sim = dl.Simulator(sources[kind])
    sim.step()
    if kind == "name":
        assert sim.model.name == "solo"
    else:
        assert sim.v[2] == pytest.approx(-9.81e-3, rel=1e-12)


def test_what_is_left_out_is_told():
    text = (
        '<mujoco><option timestep=".001"/><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody><tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
        '<actuator><motor tendon="t" armature=".1"/><motor joint="j"/></actuator></mujoco>'
    )
    with pytest.warns(UserWarning, match="not simulated as the file has it: .*armature of 1 actuator"):
        sim = dl.Simulator(text)
    assert [a.joint for a in sim.model.actuators] == [None, "j"]


# ---- options ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"timestep": 0.0}, ArgumentError, "timestep: expected a positive time, got 0"),
        ({"timestep": -1e-3}, ArgumentError, "timestep"),
        ({"timestep": np.nan}, NotFiniteError, "timestep"),
        ({"timestep": np.inf}, NotFiniteError, "timestep"),
        ({"timestep": "fast"}, ArgumentTypeError, "timestep"),
        ({"solver": "pgss"}, UnknownNameError, "solver 'pgss' does not exist. .*Available: auto, admm, newton"),
        ({"solver": None}, UnknownNameError, "solver None does not exist"),
        ({"restitution": -0.1}, ArgumentError, "restitution: expected at least 0"),
        ({"restitution": 1.1}, ArgumentError, "restitution: expected a number from 0 to 1, got 1.1"),
        ({"restitution": np.nan}, NotFiniteError, "restitution"),
        ({"bounce_speed": -1}, ArgumentError, "bounce_speed"),
        ({"tolerance": -1e-6}, ArgumentError, "tolerance"),
        ({"tolerance": np.nan}, NotFiniteError, "tolerance"),
        ({"max_iterations": 0}, ArgumentError, "max_iterations: expected at least 1"),
        ({"max_iterations": 2.5}, ArgumentTypeError, "max_iterations: expected a whole number"),
        ({"slop": -1e-6}, ArgumentError, "slop"),
    ],
)
def test_bad_option_is_named(options, error, said):
    with pytest.raises(error, match=said):
        dl.Simulator(BALL, **options)


# ---- states and forces --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda s: s.step(control=np.zeros(11)), ArgumentError, r"control: expected 12 numbers, one for each of the model's controls, got shape \(11,\)"),
        (lambda s: s.step(control=np.zeros((12, 1))), ArgumentError, "control: expected 12 numbers"),
        (lambda s: s.step(control=1.0), ArgumentError, "control: expected 12 numbers"),
        (lambda s: s.step(control=np.full(12, np.nan)), NotFiniteError, "control"),
        (lambda s: s.step(control=["a"] * 12), ArgumentTypeError, "control"),
        (lambda s: s.step(np.zeros(17)), ArgumentError, r"tau: expected 18 numbers, one for each of the model's velocities, got shape \(17,\)"),
        (lambda s: s.step(np.full(18, np.inf)), NotFiniteError, "tau"),
        (lambda s: s.step(external_forces=np.zeros((13, 6))), ArgumentError, "external_forces"),
        (lambda s: s.step(external_forces=np.full((s.model.nbody, 6), np.nan)), NotFiniteError, "external_forces"),
        (lambda s: s.reset(np.zeros(3)), ArgumentError, "q"),
        (lambda s: s.reset(np.zeros(19)), QuaternionError, "quaternion"),
        (lambda s: s.reset(v=np.zeros(19)), ArgumentError, "v"),
        (lambda s: s.reset(v=np.full(18, np.nan)), NotFiniteError, "v"),
        (lambda s: s.reset(time=np.nan), NotFiniteError, "time"),
        (lambda s: s.run(-1.0, progress=False), ArgumentError, "seconds: expected at least 0"),
        (lambda s: s.run(np.nan, progress=False), NotFiniteError, "seconds"),
        (lambda s: s.run(0.01, every=0, progress=False), ArgumentError, "every: expected at least 1"),
        (lambda s: s.run(0.01, control=np.zeros(3), progress=False), ArgumentError, "control: expected 12 numbers"),
        (lambda s: s.run(0.01, control=lambda t, q, v: np.zeros(3), progress=False), ArgumentError, "control: expected 12 numbers"),
        (lambda s: s.run(0.01, tau=lambda t, q, v: np.nan * v, progress=False), NotFiniteError, "tau"),
        (lambda s: s.restore([1.0, 2.0]), ArgumentError, "snapshot: expected an array that save"),
        (lambda s: s.restore([]), ArgumentError, "snapshot: expected an array that save"),
        (lambda s: s.restore(s.save()[:-1]), ArgumentError, "snapshot"),
        (lambda s: s.restore(np.append(s.save(), 0.0)), ArgumentError, "snapshot"),
        (lambda s: s.restore(np.where(np.arange(len(s.save())) == 9, np.nan, s.save())), NotFiniteError, "snapshot"),
        (lambda s: s.restore(dl.Simulator(BALL).save()), ArgumentError, "snapshot: it belongs to another model"),
    ],
)  # fmt: skip
def test_bad_argument_is_named_and_changes_nothing(go2, call, error, said):
    go2.reset(go2.model.keyframes["home"])
    go2.step()
    before = go2.save()
    with pytest.raises(error, match=said):
        call(go2)
    np.testing.assert_array_equal(go2.save(), before)
    assert np.isfinite(go2.step().q).all()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"q": np.zeros((2, 3)), "steps": 2}, ArgumentError, "q"),
        ({"q": np.full((2, 19), np.nan), "steps": 2}, DelassusError, "q"),
        ({"control": np.zeros((2, 5, 11))}, ArgumentError, "control"),
        ({"control": np.zeros((5, 12))}, ArgumentError, r"control: expected shape \(worlds, steps, n\)"),
        ({"control": np.zeros((3, 5, 12))}, ArgumentError, "control"),
        ({"tau": np.full((2, 5, 18), np.nan)}, NotFiniteError, "tau"),
        ({"v": np.zeros(18), "steps": 2}, ArgumentError, "v"),
        ({"steps": 0}, ArgumentError, "steps: expected at least 1"),
        ({}, ArgumentTypeError, "steps"),
        ({"steps": 2, "threads": 0}, ArgumentError, "threads"),
    ],
)
def test_bad_argument_of_a_rollout_is_named(go2, options, error, said):
    q = np.tile(go2.model.keyframes["home"], (2, 1))
    with pytest.raises(error, match=said):
        dl.rollout(go2, **{"q": q} | options)


# ---- instability --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timestep", [0.02, 0.1, 1.0])
def test_long_timestep_raises_or_stays_finite(timestep):
    sim = dl.Simulator(dl.scenes.on_floor("g1"), timestep=timestep)
    sim.reset(sim.model.keyframes["home"])
    many = dl.rollout(sim, sim.q[None], control=np.full((1, 100, 29), 30.0))
    if many.unstable[0] < 0:
        assert np.isfinite(sim.run(100 * timestep, progress=False, control=np.full(29, 30.0)).v).all()
        return
    with pytest.raises(UnstableError, match="Use a smaller timestep"):
        sim.run(100 * timestep, progress=False, control=np.full(29, 30.0))
    sim.reset(sim.model.keyframes["home"])
    assert np.isfinite(sim.step().q).all()


def test_velocities_beyond_numbers_raise_and_a_rollout_says_when():
    sim = dl.Simulator(BALL)
    huge = np.full(6, 1e308)
    with pytest.raises(UnstableError, match=r"no longer finite at t = .* Use a smaller timestep than 0.001 s"):
        sim.run(1.0, tau=huge, progress=False)
    # the state is that of the last good step, from which one may go on
    assert np.abs(sim.v).max() <= 1e100
    assert np.isfinite(sim.q).all()
    q = sim.q
    with pytest.raises(UnstableError, match="no longer finite"):
        sim.step(tau=huge)
    assert np.array_equal(sim.q, q)
    sim.reset()
    assert sim.step().v[2] == pytest.approx(-9.81e-3)
    many = dl.rollout(sim, np.tile(sim.q, (2, 1)), tau=np.stack([np.zeros((50, 6)), np.tile(huge, (50, 1))]))
    assert many.unstable[0] == -1
    assert 0 <= many.unstable[1] < 50


def test_run_of_no_time_is_the_present_state(go2):
    go2.reset(go2.model.keyframes["home"])
    motion = go2.run(0.0, progress=False)
    assert len(motion) == 1
    np.testing.assert_array_equal(motion.q[0], go2.q)


def test_states_are_copies_and_what_is_written_to_them_is_not_lost_in_silence(go2):
    go2.reset(go2.model.keyframes["home"])
    before = go2.q
    for state in (go2.q, go2.v):
        with pytest.raises(ValueError, match="read-only"):
            state[:] = 5.0
    go2.step()
    np.testing.assert_array_equal(before, go2.model.keyframes["home"])


OPTIONS = ("timestep", "solver", "integrator", "restitution", "tolerance", "max_iterations", "threads", "model", "q", "v", "time")


@pytest.mark.parametrize("name", [*OPTIONS, "gravity", "nonsense"])
def test_what_nothing_would_read_cannot_be_assigned(go2, name):
    before = getattr(go2, name, None)
    with pytest.raises(AttributeError, match=rf"Simulator\.{name} (cannot be assigned|does not exist)\. Options are arguments"):
        setattr(go2, name, 0.01)
    assert str(getattr(go2, name, None)) == str(before)


def test_subclasses_have_attributes_of_their_own_but_not_other_options():
    class Mine(dl.Simulator):
        steps = 0

        def __init__(self, model):
            super().__init__(model)
            self.rewards = []

    sim = Mine(dl.scenes.box_stack(1))
    for sim.goal in (2.0, 3.0):
        sim.steps += 1
    sim.rewards = [1.0]
    assert (sim.rewards, sim.goal, sim.steps) == ([1.0], 3.0, 2)
    with pytest.raises(AttributeError, match=r"Mine\.timestep cannot be assigned"):
        sim.timestep = 0.01


def test_functions_of_other_arguments_are_refused_before_the_run(go2):
    go2.reset("home")
    with pytest.raises(ArgumentTypeError, match=r"control: expected a function of \(time, q, v\)"):
        go2.run(0.01, control=lambda time, q: None, progress=False)
    assert go2.time == 0.0
    go2.run(0.002, control=lambda time, q, v, gain=1.0: gain * np.zeros(12), progress=False)


def test_a_joint_at_the_end_of_its_range_tells_the_force_that_holds_it():
    """A rod on a hinge whose range ends 0.1 rad below the horizontal: the limit carries the torque of its weight, m g l cos 0.1."""
    sim = dl.Simulator(
        '<mujoco><compiler angle="radian"/><option timestep=".001"/><worldbody><body><joint name="j" axis="0 1 0" range="-1 0.1" limited="true"/>'
        '<geom type="sphere" size=".05" pos="1 0 0" mass="2"/></body></worldbody></mujoco>'
    )
    step = sim.step()
    assert step.limit_forces == {}
    for _ in range(3000):
        step = sim.step()
    assert list(step.limit_forces) == ["j"]
    assert step.limit_forces["j"] == pytest.approx(2 * 9.81 * np.cos(0.1), rel=1e-3)


def test_recording_that_cannot_be_written_is_told(go2, tmp_path):
    go2.reset(go2.model.keyframes["home"])
    with pytest.raises(DelassusError, match="no_such"):
        go2.run(0.01, progress=False, record=os.path.join(tmp_path, "no_such", "motion.npz"))
    go2.run(0.01, progress=False, record=tmp_path / "motion.npz")
    assert len(dl.Trajectory.load(tmp_path / "motion.npz")) == 11


def test_an_unknown_integrator_is_told():
    with pytest.raises(UnknownNameError, match="midpoint"):
        dl.Simulator(dl.scenes.box_stack(1), integrator="leapfrog")


def test_integrators_differ_where_things_whirl_and_midpoint_keeps_energy():
    """A body that tumbles in a ball joint, without gravity: explicit gyroscopic terms feed it, at half of the step they hardly do."""
    b = dl.ModelBuilder("tumbler", gravity=(0.0, 0.0, 0.0))
    b.add_body("body", mass=1.0, inertia=(0.01, 0.02, 0.03))
    b.add_joint("body", "ball")
    model = b.build()
    gain = {}
    for name in ("midpoint", "euler"):
        sim = dl.Simulator(model, integrator=name)
        sim.reset(v=[1.0, 20.0, 1.0])
        energy = sim.run(1.0, progress=False).kinetic_energy
        gain[name] = energy[-1] / energy[0] - 1
    assert gain["euler"] > 1e-3
    assert abs(gain["midpoint"]) < 0.02 * gain["euler"]
