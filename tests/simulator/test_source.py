"""A model keeps what it was compiled from: Simulator(load(x)) is Simulator(x), and what is written to MuJoCo's model is refused."""

import copy
import pickle
import tracemalloc
import warnings

import mujoco
import numpy as np
import pytest

import delassus as dl

RNG = np.random.default_rng(7)


def numbers(array):
    return " ".join(repr(float(x)) for x in np.ravel(array))


ROCK = f'<mesh name="rock" vertex="{numbers(RNG.normal(size=(25, 3)) * 0.1)}"/>'
FOOT = f'<mesh name="foot" vertex="{numbers(np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.05, 0.05) for z in (0, 0.03)]))}"/>'
HILL = f'<hfield name="hill" nrow="6" ncol="9" size="2 3 .2 .1" elevation="{numbers(RNG.uniform(size=54))}"/>'
FLOOR = '<geom name="floor" type="plane" size="0 0 .05" friction=".8"/>'
ROBOT = """<body name="trunk" pos="0 0 .5"><freejoint/><geom name="trunk" type="box" size=".1 .1 .1" mass="2"/>
<body name="leg" pos="0 0 -.1"><joint name="knee" axis="0 1 0" damping=".5" stiffness="50"/><geom name="leg" type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".2"/>
<body name="foot" pos="0 0 -.23"><geom name="foot" type="mesh" mesh="foot" mass=".3"/></body></body></body>"""


def mjcf(world, assets="", rest=""):
    return f'<mujoco model="m"><option timestep=".001"/><asset>{assets}</asset><worldbody>{world}</worldbody>{rest}</mujoco>'


def rock(x, **attributes):
    return f'<body pos="{x} 0 1"><freejoint/><geom type="mesh" mesh="rock" {" ".join(f"{k}={v!r}" for k, v in attributes.items())}/></body>'


SOURCES = {
    "mesh feet": mjcf(FLOOR + ROBOT, FOOT),
    "rocks": mjcf(FLOOR + rock(0) + rock(0.1, friction=".1", priority="1"), ROCK),
    "height field": mjcf(f'<geom name="hill" type="hfield" hfield="hill" pos=".1 .2 .3" euler="10 20 30"/>{rock(0)}', ROCK + HILL),
    "pairs": mjcf(
        FLOOR + '<body pos="0 0 .2"><freejoint/><geom name="a" size=".1" contype="0" conaffinity="0"/></body>'
        '<body pos="1 0 .2"><freejoint/><geom name="b" type="box" size=".1 .1 .1" contype="0" conaffinity="0"/></body>',
        rest='<contact><pair geom1="floor" geom2="a" condim="1"/><pair geom1="floor" geom2="b" friction=".2 .2"/></contact>',
    ),
    "parents collide": mjcf(
        FLOOR + '<body pos="0 0 1"><joint type="slide" axis="0 0 1"/><geom size=".1"/><body pos="0 0 .5"><joint type="slide" axis="0 0 1"/><geom size=".1"/></body></body>',
        rest='<option><flag filterparent="disable"/></option>',
    ),
    "primitive": mjcf(FLOOR + '<body pos=".1 .2 .3" euler="10 20 30"><freejoint/><geom type="cylinder" size=".1 .1"/></body>'),
}  # fmt: skip


def motion(source, steps=500):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = dl.Simulator(source)
    return np.array([sim.step().q for _ in range(steps)])


@pytest.mark.parametrize("case", SOURCES)
def test_loaded_copied_and_pickled_models_move_bit_for_bit_as_their_source(case, tmp_path):
    text = SOURCES[case]
    path = tmp_path / "robot.xml"
    path.write_text(text)
    model = dl.load(text)
    want = motion(text)
    others = (
        model,
        dl.load(path),
        mujoco.MjModel.from_xml_string(text),
        dl.load(mujoco.MjModel.from_xml_path(str(path))),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    )
    for source in others:
        np.testing.assert_array_equal(motion(source), want)


def lowest(model, q):
    """Height of the lowest corner of the robot's foot, by its own vertices."""
    X = dl.body_placement(model, q, "foot")
    corners = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.05, 0.05) for z in (0, 0.03)])
    return float((corners @ X[2, :3] + X[2, 3]).min())


@pytest.mark.parametrize("way", ["text", "load", "on_floor", "pickled", "mjcf"])
def test_robot_with_mesh_feet_stands_on_the_floor(way):
    text, bare = SOURCES["mesh feet"], mjcf(ROBOT, FOOT)
    model = {
        "text": lambda: dl.load(text), "load": lambda: dl.load(text), "on_floor": lambda: dl.scenes.on_floor(bare), "pickled": lambda: pickle.loads(pickle.dumps(dl.scenes.on_floor(bare))),
        "mjcf": lambda: dl.load(dl.scenes.on_floor(bare).to_mjcf()),
    }[way]()  # fmt: skip
    heights = [lowest(model, q) for q in motion(text if way == "text" else model, 700)]
    # where MuJoCo sees a mesh only once it touches, it enters by one step's way at 1.8 m/s; it rests on the slop, with corners in float32
    assert min(heights) > -2e-3
    assert -2e-5 < heights[-1] < 0.01


def test_robot_put_on_a_floor_moves_as_one_whose_file_has_it():
    a, b = motion(dl.scenes.on_floor(mjcf(ROBOT, FOOT))), motion(SOURCES["mesh feet"])
    # vertices are written and read again in float32: 1e-8 m, which contacts magnify
    assert np.abs(a - b)[:300].max() < 1e-5


@pytest.mark.parametrize("case", ["mesh feet", "rocks", "height field", "pairs", "parents collide"])
def test_text_of_a_model_holds_its_surfaces_and_pairs(case):
    model = dl.load(SOURCES[case])
    text = model.to_mjcf()
    assert dl.load(text).ignored == ()
    a, b = motion(model, 330), motion(text, 330)
    assert np.abs(a - b).max() < 1e-5


def test_height_field_written_to_is_written_out_as_it_is():
    m = mujoco.MjModel.from_xml_string(SOURCES["height field"])
    m.hfield_data[:] = 0.3 + 0.2 * m.hfield_data  # MuJoCo's reader would scale it to 0 … 1
    model = dl.load(m)
    assert np.abs(motion(model, 330) - motion(model.to_mjcf(), 330)).max() < 1e-5


# ---- identity -----------------------------------------------------------------------------------------------------------------


def test_models_are_equal_where_what_they_touch_with_is():
    model = dl.load(SOURCES["rocks"])
    same = dl.load(SOURCES["rocks"])
    assert model == same == pickle.loads(pickle.dumps(model))
    assert hash(model) == hash(same)
    other = SOURCES["rocks"].replace(ROCK, ROCK.replace('vertex="', 'vertex="0.5 0.5 0.5 '))
    ranked = SOURCES["rocks"].replace("priority='1'", "priority='2'")
    assert len({model, dl.load(other), dl.load(ranked)}) == 3


def test_what_is_only_drawn_makes_no_difference():
    text = SOURCES["primitive"]
    assert dl.load(text) == dl.load(text.replace("<asset>", f"<asset>{ROCK}").replace("<worldbody>", "<worldbody><light/><camera/>"))
    assert dl.load(text) == dl.Model(**vars_of(dl.load(text)))


def vars_of(model):
    names = ("name", "bodies", "joints", "gravity", "loops", "shapes", "actuators", "keyframes", "collision_excludes", "ignored")
    return {name: getattr(model, name) for name in names}


def test_model_pickled_by_another_mujoco_is_refused_where_it_needs_its_surfaces(monkeypatch):
    rocks, plain = (pickle.dumps(dl.load(SOURCES[case])) for case in ("rocks", "primitive"))
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: "0.0.0")
    assert pickle.loads(plain).name == "m"
    with pytest.raises(dl.errors.LoadError, match="2 collision shapes that are mesh"):
        pickle.loads(rocks)


def test_to_mujoco_returns_a_copy():
    model = dl.load(SOURCES["rocks"])
    model.to_mujoco().geom_friction[:] = 0.0
    assert model.to_mujoco().geom_friction.min() > 0


def test_model_built_by_hand_compiles_to_mujoco():
    m = dl.scenes.box_stack(2).to_mujoco()
    assert isinstance(m, mujoco.MjModel)
    assert m.nbody == 3


# ---- MuJoCo's model of a simulator ----------------------------------------------------------------------------------------------


def write_friction(m):
    m.geom_friction[1, 0] = 0.1


def write_mass(m):
    m.body_mass[1] = 7.0


def write_by_name(m):
    m.geom("floor").friction[0] = 0.1


def write_gravity(m):
    m.opt.gravity[2] = 0.0


def write_timestep(m):
    m.opt.timestep = 1.0


def write_pair(m):
    m.pair_friction[:] = 3.0


WRITES = {
    "geom_friction": write_friction, "body_mass": write_mass, "geom_friction by name": write_by_name, "opt.gravity": write_gravity, "opt.timestep": write_timestep,
    "pair_friction": write_pair,
}  # fmt: skip


@pytest.mark.parametrize("field", WRITES)
def test_what_is_written_to_mujocos_model_is_refused_by_name(field):
    sim = dl.Simulator(SOURCES["pairs"])
    sim.step()
    WRITES[field](sim.mujoco_model)
    for ask in (sim.step, sim.reset, lambda: sim.run(0.01, progress=False), lambda: dl.rollout(sim, sim.q[None], steps=2)):
        with pytest.raises(dl.errors.StaleError, match=field.split()[0]):
            ask()


def test_height_field_written_to_is_refused():
    sim = dl.Simulator(SOURCES["height field"])
    sim.mujoco_model.hfield_data[:] = 0.0
    with pytest.raises(dl.errors.StaleError, match="hfield_data"):
        sim.step()


def test_reading_and_painting_mujocos_model_is_welcome():
    sim, plain = dl.Simulator(SOURCES["primitive"]), dl.Simulator(SOURCES["primitive"])
    m = sim.mujoco_model
    assert m.geom("floor").friction[0] == 0.8
    assert m is sim.mujoco_model
    m.geom_rgba[:] = 0.5
    m.vis.map.znear = 0.1
    for _ in range(50):
        np.testing.assert_array_equal(sim.step().q, plain.step().q)


def test_a_step_after_mujocos_model_was_read_does_not_look_at_its_meshes():
    corners = np.random.default_rng(0).standard_normal((20_000, 3))
    spec = mujoco.MjSpec.from_string("<mujoco><worldbody><body name='b'><freejoint/><geom size='0.1'/></body></worldbody></mujoco>")
    spec.add_mesh(name="drawn", uservert=corners.ravel(), userface=np.arange(20_000 // 3 * 3))
    spec.body("b").add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="drawn", contype=0, conaffinity=0, mass=0)
    sim = dl.Simulator(spec)
    assert sim.mujoco_model.nbuffer > 1_500_000
    sim.step()
    tracemalloc.start()
    try:
        sim.step()
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_writing_to_the_model_a_simulator_was_made_of_does_not_reach_it():
    m = mujoco.MjModel.from_xml_string(SOURCES["rocks"])
    sim, plain = dl.Simulator(m), dl.Simulator(SOURCES["rocks"])
    m.geom_friction[:], m.body_mass[:], m.opt.gravity[:] = 0.0, 9.0, 1.0
    for _ in range(400):
        np.testing.assert_array_equal(sim.step().q, plain.step().q)


def test_shown_model_is_the_source_without_the_simulators_own_margins():
    sim = dl.Simulator(SOURCES["rocks"])
    assert not sim.mujoco_model.geom_margin.any()
