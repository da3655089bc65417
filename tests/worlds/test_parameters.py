"""A world with its own numbers does, bit for bit, what a simulator of a model with these numbers does."""

import copy
import pickle

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, NotFiniteError, UnknownNameError

LIGHT = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="arm" pos="0 0 1" gravcomp="0.7"><inertial pos=".21 .01 0" mass="1.3" diaginertia=".01 .02 .02"/><joint name="a" axis="0 1 0" frictionloss="0.05" stiffness="1"/>
<geom type="capsule" size="0.03" fromto="0 0 0 .4 0 0"/>
<body name="end" pos=".4 0 0" gravcomp="1"><inertial pos=".1 0 .02" mass=".8" diaginertia=".002 .01 .01"/><joint name="b" axis="0 1 0" damping="0.1"/>
<geom type="capsule" size="0.03" fromto="0 0 0 .3 0 0"/></body></body>
<body name="ball" pos="1 0 .3"><freejoint/><inertial pos=".01 0 0" mass="2" diaginertia=".01 .012 .014"/><geom name="ball" size=".1"/></body></worldbody>
<actuator><position joint="a" kp="5"/><motor joint="b" gear="2"/></actuator></mujoco>"""


def edited(base, rng):
    """MuJoCo's model with other numbers in all its fields that can differ."""
    m = copy.copy(base)
    scale = rng.uniform(0.7, 1.4, m.nbody)
    m.body_mass[:] *= scale
    m.body_inertia[:] *= (scale * rng.uniform(0.9, 1.1, m.nbody))[:, None]
    m.body_ipos[1:] += 0.01 * rng.normal(size=(m.nbody - 1, 3))
    m.opt.gravity[:] += 0.3 * rng.normal(size=3)
    single = m.jnt_type >= 2
    dofs = single[m.dof_jntid]
    damping, stiffness = (np.reshape(x, (n, -1))[:, 0] for x, n in ((m.dof_damping, m.nv), (m.jnt_stiffness, m.njnt)))
    damping[dofs], stiffness[single] = rng.uniform(0, 1, dofs.sum()), rng.uniform(0, 3, single.sum())
    m.dof_armature[dofs] += rng.uniform(0, 0.1, dofs.sum())
    m.dof_frictionloss[:] *= rng.uniform(0.5, 1.5)
    m.geom_friction[:, 0] *= rng.uniform(0.5, 1.3, m.ngeom)
    m.actuator_gainprm[:, 0] *= rng.uniform(0.9, 1.1, m.nu)
    m.actuator_biasprm[:, 1:3] *= rng.uniform(0.9, 1.1)
    mujoco.mj_setConst(m, mujoco.MjData(m))
    return m


def write(worlds, k, sim):
    """The numbers of a simulator's model, by their public names."""
    model, p = sim.model, worlds.parameters
    for name in ("body_mass", "body_com", "body_inertia", "gravity"):
        p[name][k] = getattr(model, name)
    for what in ("damping", "stiffness", "armature", "friction_loss"):
        p[f"joint_{what}"][k] = [getattr(joint, what) for joint in model.joints]
    p["actuator_gain"][k], p["actuator_bias"][k] = [a.gain for a in model.actuators], np.reshape([a.bias for a in model.actuators], (-1, 3))
    p["geom_friction"][k], p["restitution"][k] = sim.mujoco_model.geom_friction, sim.restitution


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("scene", ["go2", "light"])
def test_worlds_with_parameters_are_simulators_of_edited_models(scene, threads):
    base = mujoco.MjModel.from_xml_string(LIGHT if scene == "light" else dl.load(dl.scenes.on_floor("go2")).to_mjcf())
    rng = np.random.default_rng(7)
    sims = [dl.Simulator(edited(base, rng), restitution=e) for e in (0.0, 0.5, 0.8, 0.0, 1.0)]
    model = sims[0].model
    worlds = dl.Worlds(base, 5, threads=threads)
    v = 0.5 * rng.normal(size=(5, model.nv))
    worlds.reset(v=v)
    for k, sim in enumerate(sims):
        write(worlds, k, sim)
        sim.reset(v=v[k])
    for turn in range(30):
        worlds.control = rng.normal(size=worlds.control.shape)
        worlds.step(5, rng.permutation(5) if turn % 2 else None)
        for k, sim in enumerate(sims):
            for _ in range(5):
                step = sim.step(control=worlds.control[k])
            assert np.array_equal(sim.q, worlds.q[k]), (turn, k)
            assert np.array_equal(sim.v, worlds.v[k])
            assert step.status == worlds.statuses[k]
    assert worlds.contact_counts.any()
    one = worlds.simulator(3)
    one.step(control=worlds.control[3])
    worlds.step()
    assert np.array_equal(one.q, worlds.q[3])


def test_a_write_counts_from_the_next_step_on_and_in_its_world_alone():
    worlds = dl.Worlds(dl.scenes.box_stack(1), 4)
    worlds.v[:, 0] = 1.0
    worlds.step(20)
    worlds.parameters["friction"][2] = 0.0
    assert (worlds.parameters["geom_friction"][2, :, 0] == 0).all()
    speed = worlds.v[:, 0].copy()
    worlds.step(20)
    assert worlds.v[2, 0] == pytest.approx(speed[2], abs=1e-5)
    assert (worlds.v[[0, 1, 3], 0] < speed[0] - 0.05).all()
    worlds.parameters["gravity"][1] = 0
    worlds.parameters["gravity"][3] *= 2
    worlds.step()
    weight = worlds.model.mass * 9.81
    np.testing.assert_allclose(worlds.contact_forces[:, 1, 2], [weight, 0, weight, 2 * weight], rtol=1e-5, atol=1e-4 * weight)


def test_parameters_go_back_to_those_of_the_model():
    worlds = dl.Worlds(LIGHT, 2)
    worlds.parameters["body_mass"][:] *= 2
    worlds.step()
    worlds.parameters["body_mass"] = worlds.model.body_mass
    worlds.reset()
    worlds.step(20)
    sim = dl.Simulator(LIGHT)
    for _ in range(20):
        sim.step()
    assert np.array_equal(worlds.q[1], sim.q)


def test_save_and_pickle_bring_parameters():
    worlds = dl.Worlds(LIGHT, 3)
    worlds.randomize(1, friction=(0.2, 0.9), mass_scale=(0.5, 2.0))
    worlds.step(30)
    moment, copied = worlds.save(), pickle.loads(pickle.dumps(worlds))
    worlds.step(30)
    copied.step(30)
    assert np.array_equal(copied.q, worlds.q)
    q = worlds.q.copy()
    worlds.parameters["body_mass"][:] *= 3
    worlds.parameters["gravity"][:] = 0  # was not asked for then
    worlds.step()
    worlds.restore(moment)
    assert (worlds.parameters["gravity"][:, 2] == -9.81).all()
    worlds.step(30)
    assert np.array_equal(worlds.q, q)


def test_random_worlds_depend_on_seed_and_number_alone():
    few, many = dl.Worlds(LIGHT, 2), dl.Worlds(LIGHT, 5)
    few.randomize(3, mass_scale=(0.8, 1.2))
    many.randomize(3, friction=(0.5, 1.2), mass_scale=(0.8, 1.2), restitution=(0, 1), com_offset=(-0.01, 0.01), gain_scale=(0.9, 1.1))
    assert np.array_equal(few.parameters["body_mass"], many.parameters["body_mass"][:2])
    scale = many.parameters["body_mass"][:, 1:] / many.model.body_mass[1:]
    assert (scale >= 0.8).all()
    assert (scale <= 1.2).all()
    assert len(np.unique(scale)) == scale.size
    np.testing.assert_allclose(many.parameters["body_inertia"][:, 1:], scale[..., None, None] * many.model.body_inertia[1:], rtol=1e-14)
    friction = many.parameters["friction"]
    assert (friction == friction[:, :1]).all()
    assert (friction >= 0.5).all()
    assert len(np.unique(friction)) == 5
    assert np.array_equal(many.parameters["geom_friction"][:, :, 1:], np.broadcast_to(many._sim._source.geom_friction[:, 1:], (5, 4, 2)))
    first = many.parameters["body_mass"].copy()
    many.randomize(3, mass_scale=(0.8, 1.2))
    assert np.array_equal(many.parameters["body_mass"], first)
    many.randomize(4, mass_scale=(0.8, 1.2))
    assert not np.array_equal(many.parameters["body_mass"], first)
    many.step(5)
    with pytest.raises(ArgumentError, match="mass_scale: expected \\(minimum, maximum\\)"):
        many.randomize(3, mass_scale=(1.2, 0.8))
    with pytest.raises(ArgumentError, match="seed"):
        many.randomize(-1, mass_scale=(1, 1))


WRONG = {
    "body_mass": [0.0, -1.0], "joint_damping": [-1.0], "joint_armature": [-1.0], "joint_stiffness": [-1.0], "joint_friction_loss": [-0.1, 0.0], "geom_friction": [-1.0],
    "restitution": [-0.1, 1.1], "body_inertia": [-1.0, 0.0],
}  # fmt: skip


@pytest.mark.parametrize("name", ["body_mass", "body_com", "body_inertia", "gravity", "joint_damping", "joint_stiffness", "joint_armature", "joint_friction_loss", "actuator_gain", "actuator_bias", "geom_friction", "restitution"])  # fmt: skip
def test_numbers_that_cannot_be_are_refused_before_any_world_steps(name):
    worlds = dl.Worlds(LIGHT, 4)
    array = worlds.parameters[name]
    kept = array.copy()
    for value in (np.nan, np.inf, *WRONG.get(name, ())):
        array[2] = value
        with pytest.raises(ArgumentError if np.isfinite(value) else NotFiniteError, match=f"(?s)parameters\\['{name}'\\].*world 2"):
            worlds.step()
        array[:] = kept
    worlds.step()
    assert worlds.time.tolist() == [0.002] * 4
    with pytest.raises(ArgumentError, match=f"{name}: expected numbers that broadcast"):
        worlds.parameters[name] = np.zeros((7, 7, 7))


def test_what_has_no_place_in_the_symbolic_work_is_refused():
    worlds = dl.Worlds(LIGHT, 2)
    for name, joint, value in (("joint_damping", 2, 1.0), ("joint_stiffness", 2, 1.0), ("joint_friction_loss", 1, 1.0)):
        worlds.parameters[name][1, joint] = value
        with pytest.raises(ArgumentError, match=f"{name}.*world 1"):
            worlds.step()
        worlds.parameters[name][1, joint] = 0
    worlds.parameters["body_inertia"][0, 1, 0, 1] += 1e-3
    with pytest.raises(ArgumentError, match="symmetric"):
        worlds.step()
    with pytest.raises(UnknownNameError, match="body_mass"):
        worlds.parameters["body_masses"]
    fluid = dl.Worlds(LIGHT.replace("<option ", '<option density="1.2" '), 2)
    fluid.parameters["body_mass"][0, 1] += 0.1
    with pytest.raises(ArgumentError, match="fluid"):
        fluid.step()


def test_a_moved_centre_of_mass_moves_no_shape():
    """MuJoCo places a single shape by the frame of inertia: its model of the world must not."""
    text = '<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 .11"><freejoint/><geom type="box" pos=".05 0 0" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>'
    worlds = dl.Worlds(text, 2)
    worlds.parameters["body_com"][1, 1] += [0.03, 0, 0.02]
    worlds.step(100)
    sim = worlds.simulator(1)
    worlds.step(100)
    for _ in range(100):
        sim.step()
    np.testing.assert_allclose(sim.q, worlds.q[1], atol=1e-12)
    np.testing.assert_allclose(worlds.q[:, 2], 0.1, atol=1e-4)


def test_sensors_feel_the_masses_of_their_world():
    text = LIGHT.replace("</mujoco>", '<sensor><jointactuatorfrc joint="a"/><subtreecom body="arm"/></sensor></mujoco>')
    worlds = dl.Worlds(text, 3)
    worlds.parameters["body_com"][1, 1, 0] += 0.1
    worlds.step(3)
    one = worlds.simulator(1)
    worlds.step()
    step = one.step(control=worlds.control[1])
    np.testing.assert_allclose(worlds.sensors[1], step.sensors.data, rtol=1e-12)
    assert np.abs(worlds.sensors[1] - worlds.sensors[0]).max() > 0.01
