"""Loops of every kind as parts of a model: built, given as lists and files, written, read back and refused."""

import copy
import json
import pickle
import sys
import warnings

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.constraints import from_loop
from delassus.errors import ArgumentError, ArgumentTypeError, LoadError, ModelError, NotFiniteError, UnknownNameError
from delassus.model import HingeLoop, JointLoop, UniversalLoop
from oracles.compare import agree
from oracles.dense import Mechanism, rotation

KINDS = ("connect", "ball", "weld", "hinge", "universal", "prismatic", "cylindrical", "planar", "distance", "gear", "coupling")
ROWS = {
    "connect": 3,
    "ball": 3,
    "weld": 6,
    "hinge": 5,
    "universal": 4,
    "prismatic": 5,
    "cylindrical": 4,
    "planar": 3,
    "distance": 1,
    "gear": 1,
    "coupling": 1,
}
SAID = {"distance": {"other_point": (0.1, 0.2, 0.3)}, "gear": {"ratio": -2.5}, "coupling": {"polynomial": (0.1, 2.0, 0.0, 0.3, 0.0)}}


def tree():
    """Two arms of two turned bodies, a mast without joints, and keyframes of none."""
    b, rng = dl.ModelBuilder("tree"), np.random.default_rng(6)
    for name, parent in (("a", "world"), ("b", "a"), ("c", "world"), ("d", "c"), ("mast", "world")):
        turn = rng.standard_normal(4)
        b.add_body(
            name, parent, position=rng.uniform(-0.5, 0.5, 3), quaternion=turn / np.linalg.norm(turn), mass=1.0, inertia=(0.1, 0.12, 0.15)
        )
        if name != "mast":
            b.add_joint(
                name,
                "hinge",
                name=f"turn_{name}",
                axis=rng.standard_normal(3),
                position=rng.uniform(-0.1, 0.1, 3),
                reference=rng.uniform(-1, 1),
            )
    return b


def ends(kind):
    return ("turn_b", "turn_d") if kind in ("gear", "coupling") else ("b", "d")


def given(kind, **more):
    """What an entry of a kind says of its first side."""
    sides = {"point": (0.3, -0.2, 0.1), **SAID.get(kind, {})} if kind not in ("gear", "coupling") else SAID[kind]
    if kind in ("hinge", "universal", "prismatic", "cylindrical", "planar"):
        sides["axis"] = (0.5, -1.0, 0.2)
    if kind in ("weld", "prismatic"):
        sides["quaternion"] = (0.5, -0.5, 0.5, 0.5)
    return sides | more


def entry(kind, **more):
    first, second = ends(kind)
    return {"kind": kind, "joint" if kind in ("gear", "coupling") else "body": first, "other": second, **given(kind, **more)}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_said_of_the_other_side_holds_as_described(kind):
    b = tree()
    name = b.add_loop(kind, *ends(kind), **given(kind))
    model = b.build()
    (loop,) = model.loops
    assert (loop.name, loop.active) == (name, True)
    c = from_loop(model, loop)
    assert c.rows == ROWS[kind]
    if kind != "coupling":  # whose polynomial has a constant
        agree(dl.constraint_error(model, model.neutral(), [loop]), np.zeros(c.rows), 1e-14, 1.0)
    # the same as a list
    assert dl.ModelBuilder.build(tree()).with_loops([entry(kind, name=name)]) == model
    # and it is no empty error: elsewhere it is open
    assert np.abs(dl.constraint_error(model, model.random(1), [loop])).max() > 0.01


@pytest.mark.parametrize("kind", ["connect", "weld", "hinge", "universal", "prismatic", "cylindrical", "planar"])
def test_a_loop_to_the_world_holds_where_the_body_stands(kind):
    b = tree()
    b.add_loop(kind, "b")
    model = b.build()
    assert model.loops[0].other == "world"
    agree(dl.constraint_error(model, model.neutral(), model.loops), np.zeros(ROWS[kind]), 1e-14, 1.0)


@pytest.mark.parametrize("kind", ["connect", "weld", "hinge", "prismatic", "cylindrical", "planar"])
def test_where_nothing_is_said_frame_is_put_on_frame(kind):
    model = tree().build().with_loops([{"kind": kind, "body": "b", "other": "d"}])
    (loop,) = model.loops
    assert loop.point == loop.other_point == (0, 0, 0)
    if hasattr(loop, "quaternion"):
        assert loop.quaternion == loop.other_quaternion == (1, 0, 0, 0)
    if hasattr(loop, "other_axis"):
        assert loop.axis == loop.other_axis == (0, 0, 1)


def test_a_joint_names_its_anchor_and_its_axis():
    model = tree().build()
    o = Mechanism(model, model.neutral())
    made = model.with_loops(
        [{"kind": "hinge", "body": "turn_b", "other": "c"}, {"kind": "connect", "body": "turn_b", "other": "turn_d", "point": (1, 2, 3)}]
    )
    hinge, pin = made.loops
    agree(hinge.point, model.joint_position[1], 1e-15)
    agree(hinge.axis, model.joint_axis[1], 1e-15)
    # on the other body the axis is that of the joint, where the model stands as described
    agree(o.placement[3, :3, :3] @ hinge.other_axis, o.placement[2, :3, :3] @ model.joint_axis[1], 1e-14)
    agree(pin.point, model.joint_position[1] + [1, 2, 3], 1e-15)
    X = o.placement
    agree(X[4] @ [*pin.other_point, 1], X[2] @ [*pin.point, 1], 1e-14)


def test_sites_of_a_file_are_frames():
    text = (
        '<mujoco><worldbody><body name="a" pos="0 0 1" euler="10 20 30"><joint/><geom size=".1"/><site name="s" pos=".1 .2 .3" euler="40 50 60"/></body>'
        '<site name="t" pos="1 2 3" euler="70 80 90"/></worldbody></mujoco>'
    )
    m = mujoco.MjModel.from_xml_string(text)
    model = dl.load(
        text,
        loops=[
            {"kind": "weld", "body": "s", "other": "t"},
            {"kind": "hinge", "body": "s", "other": "t", "point": (1, 0, 0), "axis": (0, 1, 0)},
        ],
    )
    weld, hinge = model.loops
    s, t = m.site("s"), m.site("t")
    assert (weld.body, weld.other) == ("a", "world")
    agree(weld.point, s.pos, 1e-15)
    agree(rotation(weld.quaternion), rotation(s.quat), 1e-14)
    agree(rotation(weld.other_quaternion), rotation(t.quat), 1e-14)
    agree(hinge.point, s.pos + rotation(s.quat)[:, 0], 1e-14)
    agree(hinge.axis, rotation(s.quat)[:, 1], 1e-14)


# ---- files ---------------------------------------------------------------------------------------------------------------


def test_frames_of_a_builder_and_frames_of_ones_own_end_loops():
    b = dl.ModelBuilder("pair")
    for name in ("one", "two"):
        b.add_body(name, mass=1.0, inertia=(1, 1, 1))
        b.add_joint(name, "free")
    b.add_frame("tool", "one", position=(0.1, 0.2, 0.3), quaternion=(0.6, 0, 0, 0.8))
    b.add_loop("weld", "tool", dl.Frame("grip", "two", position=(0, 0, 0.5)))
    (loop,) = b.build().loops
    assert (loop.body, loop.other) == ("one", "two")
    np.testing.assert_allclose([loop.point, loop.other_point], [(0.1, 0.2, 0.3), (0, 0, 0.5)])
    np.testing.assert_allclose([loop.quaternion, loop.other_quaternion], [(0.6, 0, 0, 0.8), (1, 0, 0, 0)])


def test_a_json_file_of_loops_is_the_list(tmp_path):
    entries = [entry(kind, name=f"{k}") for k, kind in enumerate(KINDS)]
    model = tree().build()
    want = model.with_loops(entries)
    assert len(want.loops) == len(KINDS)
    for k, content in enumerate((entries, {"loops": entries})):
        path = tmp_path / f"loops{k}.json"
        path.write_text(json.dumps(content))
        assert model.with_loops(path) == model.with_loops(str(path)) == want
        assert dl.load(model, loops=path) == want
        assert dl.Simulator(model, loops=path).model == want


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the standard library reads TOML from 3.11 on")
def test_a_toml_file_of_loops_is_the_list(tmp_path):
    path = tmp_path / "loops.toml"
    path.write_text(
        '[[loops]]\nkind = "hinge"\nbody = "b"\nother = "d"\npoint = [0.3, -0.2, 0.1]\naxis = [0.5, -1, 0.2]\n[[loops]]\nkind = "gear"\njoint = "turn_b"\nother = "turn_d"\nratio = -2.5\n'
    )
    model = tree().build()
    assert model.with_loops(path) == model.with_loops([entry("hinge"), entry("gear")])


# ---- identity and text -----------------------------------------------------------------------------------------------------


def everything():
    b = tree()
    for k, kind in enumerate(KINDS):
        b.add_loop(kind, *ends(kind), **given(kind, active=k % 3 != 1))
    return b.build()


def test_models_with_loops_of_every_kind_are_equal_after_pickling_and_copying():
    model = everything()
    assert {loop.kind for loop in model.loops} == set(KINDS) - {"ball", "gear"}
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), everything()):
        assert other == model
        assert hash(other) == hash(model)
        assert other.loops == model.loops
    assert len({hash(tree().build().with_loops([entry(kind, name="x")])) for kind in KINDS}) == len(KINDS) - 1  # a ball is a connect


def test_loops_of_every_kind_come_back_from_mjcf():
    model = everything()
    with pytest.warns(
        UserWarning,
        match=r"MuJoCo has no element for.*universal_4, prismatic_5, cylindrical_6, planar_7, distance_8: it moves without them",
    ):
        text = model.to_mjcf()
    assert dl.load(text).loops == model.loops
    # a trajectory holds them too, without a word
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim = dl.Simulator(model)
    assert sim.model.loops == model.loops


def test_mjcf_that_says_no_more_than_mujoco_knows_is_as_it_was():
    model = tree().build().with_loops([entry("connect"), entry("weld"), entry("gear")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "<custom>" not in model.to_mjcf()
        assert model.to_mujoco().neq == 3


def test_a_hinge_is_two_points_to_mujoco():
    """The same motions are free: rows of two connects of MuJoCo's, along and off the axis."""
    model = tree().build().with_loops([entry("hinge")])
    m = mujoco.MjModel.from_xml_string(model.to_mjcf())
    d = mujoco.MjData(m)
    d.qpos[:] = model.neutral()
    mujoco.mj_forward(m, d)
    assert np.abs(d.efc_pos[:6]).max() < 1e-14
    theirs = d.efc_J[: 6 * m.nv].reshape(6, m.nv)
    ours = np.array([dl.constraint_velocity(model, model.neutral(), e, model.loops) for e in np.eye(m.nv)]).T
    rank = np.linalg.matrix_rank(ours, tol=1e-9)
    assert rank == np.linalg.matrix_rank(theirs, tol=1e-9) == np.linalg.matrix_rank(np.vstack([ours, theirs]), tol=1e-9)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "[",
        "{}",
        "3",
        "[3]",
        '[{"kind": "hinge"}]',
        '[{"kind": "door", "written_as": []}]',
        '[{"kind": "hinge", "name": "x", "written_as": []}]',
        "[" * 4000,
    ],
)
def test_a_text_that_holds_no_loops_is_refused(data):
    text = f"<mujoco><worldbody><body name='a'><joint/><geom size='1'/></body></worldbody><custom><text name='delassus_loops' data='{data or ' '}'/></custom></mujoco>"
    with pytest.raises(LoadError, match="loops"):
        dl.load(text)


def test_a_loaded_model_that_got_loops_tells_mujoco_nothing_of_them():
    model = dl.load("iiwa", loops=[{"kind": "distance", "body": "link7", "length": 0.5, "other_point": (0, 0, 0)}])
    with pytest.warns(UserWarning, match="distance_0: it moves without them"):
        m = model.to_mujoco()
    assert m.neq == 0
    assert pickle.loads(pickle.dumps(model)) == model


def test_models_added_to_others_bring_their_loops_turned_with_the_world():
    part = tree()
    for kind in ("hinge", "universal", "prismatic", "cylindrical", "planar", "weld", "distance"):
        part.add_loop(kind, "b", **given(kind))
        part.add_loop(kind, "b", "d", **given(kind))
    part = part.build()
    b = dl.ModelBuilder("two")
    turn = np.array([0.5, 0.5, -0.5, 0.5])
    b.add_model(part, prefix="x/", position=(1, 2, 3), quaternion=turn)
    two = b.build()
    q = part.random(3)
    want, got = (dl.constraint_error(m, q, m.loops) for m in (part, two))
    # vectors in world axes turn, numbers stay
    sizes = [from_loop(part, loop).rows for loop in part.loops]
    for loop, a, c in zip(part.loops, np.split(want, np.cumsum(sizes)), np.split(got, np.cumsum(sizes)), strict=False):
        agree(
            np.linalg.norm(a[:3]) if loop.kind in ("weld", "universal") else a,
            np.linalg.norm(c[:3]) if loop.kind in ("weld", "universal") else c,
            1e-13,
            1.0,
        )


# ---- what cannot be ------------------------------------------------------------------------------------------------------


def listed(*entries):
    return lambda: tree().build().with_loops(list(entries))


BAD = {
    "no kind": (listed({"body": "a"}), UnknownNameError, r"loops\[0\]: kind None does not exist.*Available: connect"),
    "unknown kind": (listed(entry("hinge"), {"kind": "henge", "body": "a"}), UnknownNameError, r"loops\[1\]: kind 'henge'.*Did you mean 'hinge'"),
    "no body": (listed({"kind": "connect"}), ArgumentError, "loop 'connect_0': body: expected the name"),
    "unknown body": (listed({"kind": "connect", "body": "arm"}), UnknownNameError, "loop 'connect_0': body: body, joint or site 'arm'"),
    "unknown other": (listed({"kind": "connect", "body": "a", "other": "bb"}), UnknownNameError, "other: body, joint or site 'bb'.*Did you mean 'b'"),
    "number for a body": (listed({"kind": "connect", "body": 3}), ArgumentTypeError, "body: expected a string, got int"),
    "unknown argument": (listed(entry("connect", axis=(0, 0, 1))), UnknownNameError, r"loops\[0\]: a connect loop has no argument 'axis'"),
    "NaN": (listed(entry("connect", point=(0, np.nan, 0))), NotFiniteError, "loop 'connect_0': point"),
    "two numbers": (listed(entry("connect", point=(0, 1))), ArgumentError, r"loop 'connect_0': point: expected shape \(3,\)"),
    "zero axis": (listed(entry("hinge", axis=(0, 0, 0))), ArgumentError, "loop 'hinge_0': axis: expected a direction"),
    "long quaternion": (listed(entry("weld", quaternion=(2, 0, 0, 0))), ArgumentError, "loop 'weld_0': quaternion: .*length 1"),
    "zero length": (listed(entry("distance", length=0.0)), ModelError, "loop 'distance_0': length: expected a positive.*connect"),
    "points that coincide": (listed({"kind": "distance", "body": "a"}), ModelError, "length: expected a positive"),
    "gear without ratio": (listed({"kind": "gear", "joint": "turn_a", "other": "turn_b"}), ArgumentError, "'ratio'"),
    "gear without leader": (listed({"kind": "gear", "joint": "turn_a", "ratio": 2.0}), ArgumentError, "joint 'other'"),
    "gear of nothing": (listed({"kind": "gear", "ratio": 2.0}), ArgumentError, "joint: expected the name of the joint"),
    "gear of a body": (listed({"kind": "gear", "joint": "a", "other": "turn_b", "ratio": 2.0}), UnknownNameError, "loop 'gear_0': joint 'a'"),
    "word for active": (listed(entry("hinge", active="no")), ArgumentTypeError, "active: expected true or false, got 'no'"),
    "two of one name": (listed(entry("hinge", name="x"), entry("weld", name="x")), ModelError, "loop 'x': two loops have this name"),
    "no list": (lambda: tree().build().with_loops({"kind": "hinge"}), ArgumentTypeError, "loops: expected a list.*got dict"),
    "no dictionary": (listed("hinge"), ArgumentTypeError, r"loops\[0\]: expected a dictionary"),
    "missing file": (lambda: tree().build().with_loops("none.json"), LoadError, "'none.json' cannot be read"),
    "other file": (lambda: tree().build().with_loops("loops.yaml"), LoadError, "ends in .json or .toml, got 'loops.yaml'"),
    "record": (lambda: dl.Model("m", [], [], loops=[HingeLoop("h", "world", "world", (0.0,) * 3, (0.0,) * 3, (0.0,) * 3, (0.0, 0.0, 1.0))]), ModelError, "loop 'h': axis"),
    "record of two": (lambda: dl.Model("m", [], [], loops=[UniversalLoop("h", "world", "world", (0.0,) * 3, (0.0, 1.0), (0.0,) * 3, (0.0, 0.0, 1.0))]), ArgumentTypeError, "loop 'h': axis: expected a tuple of 3"),
    "builder kind": (lambda: tree().add_loop(3, "a"), ArgumentTypeError, "kind: expected a string"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_loop_is_refused(case):
    work, error, said = BAD[case]
    with pytest.raises(error, match=said) as caught:
        work()
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.json", "[1"), ("b.toml", "kind ="), ("c.json", '{"loops": {}}'), ("d.json", '{"joints": []}'), ("e.json", b"\xff")],
)
def test_damaged_files_are_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(LoadError, match="loops: "):
        tree().build().with_loops(path)


def test_records_may_stand_among_dictionaries():
    loop = JointLoop("g", "turn_a", "turn_b", (0.0, 2.0, 0.0, 0.0, 0.0))
    assert tree().build().with_loops([loop, entry("hinge")]).loops[0] is loop
