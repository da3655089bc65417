"""Stored scenes are what their page says, and MuJoCo, put in their pose, finds the same contacts with the same rows."""

import json
import runpy
from functools import lru_cache
from pathlib import Path

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentTypeError, UnknownNameError

ROOT = Path(__file__).parents[2]
# name: n_v, three-row constraints n_c, rows n_con
TABLE = {
    "go2-standing": (18, 4, 12),
    "go2-standing-friction": (18, 4, 24),
    "go2-fallen": (18, 9, 27),
    "go2-fallen-friction": (18, 10, 42),
    "cassie-standing": (32, 8, 24),
    "cassie-standing-friction": (32, 8, 50),
    "g1-standing": (35, 8, 24),
    "g1-standing-friction": (35, 8, 53),
    "g1-fallen": (35, 23, 69),
    "g1-fallen-friction": (35, 24, 101),
    "box-stack": (180, 120, 360),
    "box-pyramid": (180, 288, 864),
    "pyramid-with-robots": (285, 108, 324),
}
every_scene = pytest.mark.parametrize("name", TABLE)
load = lru_cache(dl.scenes.load)


def stored_contacts(name):
    return json.loads((Path(dl.__file__).parent / "assets" / "scenes" / f"{name}.json").read_text())["contacts"]


@lru_cache
def in_mujoco(name):
    """MuJoCo in the pose of a scene, its constraint rows dense and normal first."""
    model, q, _ = load(name)
    m = mujoco.MjModel.from_xml_string(model.to_mjcf())
    m.opt.cone, m.opt.jacobian = mujoco.mjtCone.mjCONE_ELLIPTIC, mujoco.mjtJacobian.mjJAC_DENSE
    d = mujoco.MjData(m)
    d.qpos[:] = q
    mujoco.mj_forward(m, d)
    return m, d


def test_names_are_the_table_in_its_order():
    assert dl.scenes.names == tuple(TABLE)


@every_scene
def test_sizes_are_those_of_the_page(name):
    model, _, constraints = load(name)
    three_rows = sum(isinstance(c, dl.PointContact | dl.Connect) for c in constraints)
    assert (model.nv, three_rows, sum(c.rows for c in constraints)) == TABLE[name]
    nv, n_c, n_con = TABLE[name]
    assert f"| `{name}` | {nv} | {n_c} / {n_con} |" in (ROOT / "docs/scenes.md").read_text()


@every_scene
def test_scene_unpacks_and_knows_its_name(name):
    scene = load(name)
    model, q, constraints = scene
    assert (scene.name, scene.model, scene.contacts, scene.rows) == (
        name,
        model,
        len(stored_contacts(name)),
        sum(c.rows for c in constraints),
    )
    assert scene.q is q
    kinds = [type(c) for c in constraints]
    assert kinds == sorted(kinds, key=[dl.Connect, dl.PointContact, dl.JointFriction].index)
    with pytest.raises(AttributeError):
        scene.q = q


@every_scene
def test_pose_is_a_configuration_nobody_can_change(name):
    model, q, _ = load(name)
    assert q.shape == (model.nq,)
    assert np.isfinite(q).all()
    assert np.abs(dl.normalize(model, q) - q).max() < 1e-12
    with pytest.raises(ValueError, match="read-only"):
        q[0] = 1.0


@every_scene
def test_both_points_of_a_contact_are_one_place(name):
    model, q, _ = load(name)
    for c in stored_contacts(name):
        here = dl.point_position(model, q, c["body"], c["point"])
        there = dl.point_position(model, q, c["other"] or "world", c["other_point"])
        # rounding of placements a few metres from the origin
        assert np.abs(here - there).max() < 1e-12
        assert abs(np.linalg.norm(c["normal"]) - 1) < 1e-12
        assert c["body"] != c["other"]


@every_scene
def test_mujoco_finds_these_contacts_and_no_others(name):
    m, d = in_mujoco(name)
    pairs = {}
    for c in d.contact:
        pairs.setdefault(tuple(c.geom), []).append(c)
    found = {}
    for geoms, touching in pairs.items():
        other, body = (m.body(m.geom_bodyid[g]).name for g in geoms)
        several = found.setdefault((body, other), [0, []])
        several[0] += min(4, len(touching))
        several[1] += touching
    stored = {}
    for c in stored_contacts(name):
        stored.setdefault((c["body"], c["other"] or "world"), []).append(c)
    assert {pair: len(cs) for pair, cs in stored.items()} == {pair: n for pair, (n, _) in found.items()}
    for pair, cs in stored.items():
        for c in cs:
            at = dl.point_position(load(name).model, load(name).q, c["body"], c["point"])
            # the narrow phase's own iterations stop near 1e-6 m
            near = min(found[pair][1], key=lambda theirs: np.linalg.norm(theirs.pos - at))
            assert np.linalg.norm(near.pos - at) < 1e-6
            assert np.abs(near.frame[:3] - c["normal"]).max() < 1e-6
            assert near.friction[0] == c["friction"]
    assert max(c.dist for c in d.contact) < 0


@every_scene
def test_normal_rows_are_mujocos(name):
    model, q, constraints = load(name)
    _, d = in_mujoco(name)
    G = dl.DelassusOperator(model, constraints)
    G.update(q)
    J = G.jacobian @ np.eye(model.nv)
    theirs = d.efc_J.reshape(-1, model.nv)[[c.efc_address for c in d.contact]]
    first = np.cumsum([0, *(c.rows for c in constraints)])
    ours = J[[row for row, c in zip(first, constraints, strict=False) if isinstance(c, dl.PointContact)]]
    assert len(ours) == load(name).contacts
    for row in ours:
        # points within 1e-6 m, metres from joints
        assert np.abs(theirs - row).max(axis=1).min() < 1e-5


@pytest.mark.parametrize(("name", "low", "high"), [("standing", 0.99, 1.0), ("fallen", -1.0, 0.3)])
def test_robots_stand_or_lie(name, low, high):
    for scene in (load(n) for n in TABLE if name in n):
        up = dl.body_placement(scene.model, scene.q, 1)[2, 2]
        assert low < up < high + 1e-9


@pytest.mark.parametrize("name", [n for n in TABLE if n.endswith("-friction")])
def test_friction_rubs_in_every_joint_but_the_root(name):
    model, _, constraints = load(name)
    rubbing = [c for c in constraints if isinstance(c, dl.JointFriction)]
    assert sum(c.rows for c in rubbing) == model.nv - 6
    assert all(c.friction > 0 for c in rubbing)


def test_unknown_scene_names_the_known():
    with pytest.raises(UnknownNameError) as caught:
        dl.scenes.load("go2-standin")
    assert "Did you mean 'go2-standing'" in str(caught.value)
    assert all(name in str(caught.value) for name in TABLE)
    with pytest.raises(ArgumentTypeError, match="name: expected a string"):
        dl.scenes.load(3)


def test_robot_on_floor_keeps_its_keyframes_and_gains_a_floor():
    robot, model = dl.load("g1"), dl.scenes.on_floor("g1")
    assert [s.name for s in model.shapes[:1]] == ["floor"]
    assert len(model.shapes) == len(robot.shapes) + 1
    assert np.array_equal(model.keyframes["home"], robot.keyframes["home"])
    q = robot.random(3)
    assert np.array_equal(dl.mass_matrix(model, q), dl.mass_matrix(robot, q))


@pytest.mark.parametrize("links", [3, 10_000])
def test_swimmer_touches_the_floor_at_both_ends_of_every_link(links):
    scene = dl.scenes.swimmer_scene(links)
    model, q, constraints = scene
    assert (model.nv, scene.contacts, scene.rows) == (links + 2, 2 * links, 6 * links)
    assert np.abs(q[2:]).min() > 0
    assert np.abs(np.cumsum(q[2:])).max() < 0.3
    for k in (0, 1, 2 * links - 1):
        _, _, recipe = constraints[k]._recipe
        body, point, on_floor = recipe["bodies"][0], recipe["points"][:3], recipe["points"][3:]
        assert body == 1 + k // 2
        # two kilometres of rods lose four digits
        assert np.abs(dl.point_position(model, q, body, point) - on_floor).max() < 1e-9
        assert abs(on_floor[2]) < 1e-9


def test_points_kept_of_a_patch_span_it():
    spanning = runpy.run_path(str(ROOT / "tools/make_scenes.py"))["spanning"]
    corners = np.array([[1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 0.0]])
    rng = np.random.default_rng(0)
    for _ in range(20):
        patch = np.vstack([corners, rng.uniform(-0.4, 0.4, (4, 3)) * (1, 1, 0)])
        order = rng.permutation(8)
        assert sorted(order[spanning(patch[order], np.array([0.0, 0.0, 1.0]))]) == [0, 1, 2, 3]
    assert spanning(corners[:3], np.array([0.0, 0.0, 1.0])) == [0, 1, 2]


# robot, feet, hands or fingertips: n_v, constraints, rows; height of a held foot [m]: its sole is on the floor, the centre of a round one above it
CONTACT_SETS = {
    "iiwa-H3": (7, 1, 3, None),
    "iiwa-H6": (7, 1, 6, None),
    "solo-F3x2": (18, 2, 6, 0.016),
    "solo-F3x4": (18, 4, 12, 0.016),
    "go2-F3x4": (18, 4, 12, 0.022),
    "g1-F6x2": (35, 2, 12, 0.0),
    "g1-F6x2-H6x2": (35, 4, 24, 0.0),
    "talos-F6x2": (50, 2, 12, 0.0),
    "talos-F6x2-H6x2": (50, 4, 24, 0.0),
    "atlas_hands-F6x2": (84, 2, 12, 0.0),
    "atlas_hands-F6x2-T3x5": (84, 7, 27, 0.0),
    "atlas_hands-F6x2-T3x10": (84, 12, 42, 0.0),
}


@pytest.mark.parametrize("name", CONTACT_SETS)
def test_contact_sets_have_the_rows_their_names_say_on_different_links_and_feet_on_the_floor(name):
    assert dl.scenes.contact_sets == tuple(CONTACT_SETS)
    nv, count, rows, height = CONTACT_SETS[name]
    scene = dl.scenes.contact_set(name)
    model, q, constraints = scene
    assert (scene.name, model.nv, len(constraints), scene.rows) == (name, nv, count, rows)
    assert f"| `{name}` | {nv} | {count} | {rows} |" in (ROOT / "docs/scenes.md").read_text()
    assert {c.rows: type(c) for c in constraints}.items() <= {3: dl.Connect, 6: dl.Weld}.items()
    held = [(c._recipe[2]["bodies"][0], c._recipe[2]["points"][:3]) for c in constraints]
    assert len({body for body, _ in held}) == count
    feet = held[: 0 if height is None else 4 if "F3x4" in name else 2]
    # robots stand at home to a micrometre
    assert all(abs(dl.point_position(model, q, body, point)[2] - height) < 1e-6 for body, point in feet)


def test_an_unknown_contact_set_lists_those_there_are():
    with pytest.raises(UnknownNameError, match="talos-F6x2-H6x2"):
        dl.scenes.contact_set("talos-F3")
