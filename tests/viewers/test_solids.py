"""Shapes that are drawn: closed, of the right size, where MuJoCo has them."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError
from delassus.viewers import solids, stage
from delassus.viewers.subject import subject

TETRAHEDRON = """<mujoco><asset><mesh name="corner" vertex="0 0 0  0.3 0 0  0 0.2 0  0 0 0.4"/><material name="red" rgba="1 0 0 1"/></asset>
<worldbody><geom type="plane" size="0 0 1" group="3"/><body pos="0 0 1" euler="20 30 40"><freejoint/>
<geom name="seen" type="mesh" mesh="corner" pos="0.1 0.2 0.3" euler="0 0 50" material="red"/>
<geom name="felt" type="sphere" size="0.2" group="3"/><geom name="clear" type="box" size="1 1 1" rgba="0 0 0 0"/></body></worldbody></mujoco>"""


def volume(mesh):
    """Volume inside a closed mesh whose faces turn left as seen from outside: Σ a·(b × c) / 6."""
    a, b, c = mesh.vertices[mesh.faces].transpose(1, 0, 2)
    return np.einsum("fi,fi->", a, np.cross(b, c)) / 6


@pytest.mark.parametrize(
    ("mesh", "wanted"),
    [
        (solids.sphere(200), 4 / 3 * np.pi),
        (solids.capsule(0.3, 0.5, 200), np.pi * 0.3**2 * 1.0 + 4 / 3 * np.pi * 0.3**3),
        (solids.cylinder(200), np.pi),
        (solids.cone(200, point_up=True), np.pi / 3),
        (solids.torus(0.2, 200), 2 * np.pi**2 * 0.2**2),
    ],
    ids=["sphere", "capsule", "cylinder", "cone", "torus"],
)
def test_mesh_is_closed_and_holds_its_volume(mesh, wanted):
    # 200 sides lose less than 0.1 %; the torus's tube has 10, sin(36°) / 36° of its area
    coarse = np.sin(np.pi / 5) / (np.pi / 5) if wanted == pytest.approx(2 * np.pi**2 * 0.04) else 1.0
    assert volume(mesh) == pytest.approx(wanted * coarse, rel=2e-3)


def test_friction_cone_opens_upward_from_its_point():
    mesh = solids.cone()
    radius = np.linalg.norm(mesh.vertices[:, :2], axis=1)
    assert np.allclose(radius, mesh.vertices[:, 2])
    assert mesh.vertices[:, 2].max() == 1


def test_turns_bring_z_to_any_direction():
    directions = np.vstack([np.random.default_rng(3).standard_normal((50, 3)), np.eye(3), -np.eye(3)])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    turns = solids.along(directions)
    assert np.allclose(np.linalg.norm(turns, axis=1), 1)
    assert np.allclose([dl.spatial.rotation_matrix(t)[:, 2] for t in turns], directions, atol=1e-12)


def test_quaternions_are_of_the_placements():
    model = dl.load("g1")
    X = dl.body_placements(model, model.random(5))
    assert np.allclose([dl.spatial.rotation_matrix(t) for t in solids.quaternions(X)], X[:, :3, :3], atol=1e-12)


def test_meshes_of_mujoco_lie_where_it_puts_them():
    m = mujoco.MjModel.from_xml_string(TETRAHEDRON)
    model = dl.load(m)
    drawn = solids.of_mujoco(m, model)
    assert [(s.name, s.kind) for s in drawn] == [("geom_0", "plane"), ("seen", "mesh")]
    seen = drawn[1]
    assert np.allclose(seen.rgba, (1, 0, 0, 1))
    d = mujoco.MjData(m)
    mujoco.mj_kinematics(m, d)
    X = dl.body_placements(model, model.neutral())[seen.body]
    at = dl.spatial.rotation_matrix(seen.quaternion) @ seen.mesh.vertices.T + np.array(seen.position)[:, None]
    here = (X[:3, :3] @ at).T + X[:3, 3]
    # the corners of the file, by the placement of the body and of the shape in it
    turn = np.array([[np.cos(t := np.deg2rad(50)), -np.sin(t), 0], [np.sin(t), np.cos(t), 0], [0, 0, 1]])
    corners = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.4]]) @ turn.T + (0.1, 0.2, 0.3)
    wanted = corners @ d.xmat[1].reshape(3, 3).T + d.xpos[1]
    assert np.allclose(np.sort(here, axis=0), np.sort(wanted, axis=0), atol=1e-6)
    assert volume(seen.mesh) == pytest.approx(0.3 * 0.2 * 0.4 / 6, rel=1e-5)


def test_a_loaded_model_and_a_saved_motion_are_drawn_with_their_meshes(tmp_path):
    model = dl.load(TETRAHEDRON)
    dl.Simulator(model).run(0.01, progress=False).save(tmp_path / "run.npz")
    for what in (model, dl.Trajectory.load(tmp_path / "run.npz")):
        assert [s.kind for s in subject(what, None, None, None).solids if s.name == "seen"] == ["mesh"]


def test_geometry_of_another_model_is_refused():
    with pytest.raises(ArgumentError, match=r"geometry: expected the mujoco.MjModel that 'go2' came from"):
        solids.of_mujoco(mujoco.MjModel.from_xml_string(TETRAHEDRON), dl.load("go2"))


def test_model_without_visible_groups_shows_its_collision_shapes():
    m = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><freejoint/><geom type="box" size="1 1 1" group="3"/></body></worldbody></mujoco>'
    )
    assert [s.kind for s in solids.of_mujoco(m, dl.load(m))] == ["box"]


@pytest.mark.parametrize("name", ["atlas_hands", "cassie", "iiwa"])
def test_outline_holds_all_that_is_drawn_and_the_camera_sees_it(name):
    model = dl.load(name)
    drawn = solids.of_model(model)
    q = model.random(1)
    points = stage.outline(model, drawn, np.array([q]))
    X = dl.body_placements(model, q)
    rng = np.random.default_rng(0)
    for s in drawn:
        # how far the shape reaches in some direction u
        R = X[s.body][:3, :3] @ dl.spatial.rotation_matrix(s.quaternion)
        center = X[s.body][:3, :3] @ s.position + X[s.body][:3, 3]
        u = rng.standard_normal(3)
        u /= np.linalg.norm(u)
        local, size = R.T @ u, s.size
        x, y, z = np.abs(local)
        if s.kind == "box":
            reach = np.abs(local) @ size
        elif s.kind == "cylinder":
            reach = size[0] * np.hypot(x, y) + size[1] * z
        else:
            reach = size[0] + (size[1] * z if s.kind == "capsule" else 0.0)
        own = stage.outline(model, [s], np.array([q]))
        assert u @ center + reach <= (own @ u).max() + 1e-9
        assert (own @ u).max() <= (points @ u).max()
    eye, target = stage.viewpoint(points)
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, (0, 0, 1))
    right /= np.linalg.norm(right)
    depth = (points - eye) @ forward
    half = np.tan(stage.FIELD / 2)
    assert depth.min() > 0
    across, up = np.abs((points - eye) @ right) / depth, np.abs((points - eye) @ np.cross(right, forward)) / depth
    assert across.max() <= half * stage.ASPECT
    assert up.max() <= half
    # and it is no farther than it need be
    assert max(across.max() / stage.ASPECT, up.max()) > 0.6 * half
