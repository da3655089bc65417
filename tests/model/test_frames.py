"""Frames by name: sites, joints and fixed joints wherever a body is named, against MuJoCo's and Pinocchio's, and against the same constraint in body coordinates."""

import pickle
import warnings

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, QuaternionError, UnknownNameError
from delassus.spatial import rotation_matrix

MJCF = """<mujoco><worldbody><site name="mark" pos="0.3 -0.2 0.1" quat="0.8 0.6 0 0"/>
<body name="a"><joint name="turn" axis="0 1 0" pos="0 0.1 0.2"/><geom size="0.1" pos="0.1 0 0"/>
<body name="b" pos="0.4 0 0.1" quat="0.8 0 0.6 0"><joint name="twist" axis="1 0 0"/><joint name="yaw"/><geom size="0.1" pos="0 0.2 0"/><site name="tool" pos="0.1 0.2 0.3" quat="0.6 0 0 0.8"/></body>
</body><body name="c" pos="1 0 0"><freejoint name="base"/><geom size="0.1"/><site name="grip" pos="0 0 -0.1" quat="0.5 0.5 -0.5 0.5"/></body></worldbody></mujoco>"""
M = mujoco.MjModel.from_xml_string(MJCF)
MODEL = dl.load(M)
RNG = np.random.default_rng(0)
Q, V = MODEL.random(RNG), RNG.standard_normal(MODEL.nv)


def data():
    d = mujoco.MjData(M)
    d.qpos[:], d.qvel[:] = Q, V
    mujoco.mj_forward(M, d)
    return d


@pytest.mark.parametrize("site", ["tool", "grip", "mark"])
def test_a_site_is_where_mujoco_has_it_and_moves_as_there(site):
    d, s = data(), M.site(site).id
    X = dl.body_placement(MODEL, Q, site)
    np.testing.assert_allclose(X[:3, 3], d.site_xpos[s], atol=1e-13)
    np.testing.assert_allclose(X[:3, :3].ravel(), d.site_xmat[s], atol=1e-13)
    np.testing.assert_allclose(dl.point_position(MODEL, Q, site), d.site_xpos[s], atol=1e-13)
    J = np.zeros((6, MODEL.nv))
    mujoco.mj_jacSite(M, d, J[:3], J[3:], s)
    np.testing.assert_allclose(dl.frame_jacobian(MODEL, Q, site), J, atol=1e-13)
    np.testing.assert_allclose(dl.frame_velocity(MODEL, Q, V, site), J @ V, atol=1e-12)
    np.testing.assert_allclose(dl.frame_derivatives(MODEL, Q, V, None, site).jacobian, J, atol=1e-13)
    # a point of the frame, in its coordinates
    p = np.array([0.2, -0.1, 0.4])
    place = d.site_xpos[s] + d.site_xmat[s].reshape(3, 3) @ p
    np.testing.assert_allclose(dl.point_position(MODEL, Q, site, p), place, atol=1e-13)
    J = np.zeros((3, MODEL.nv))
    mujoco.mj_jac(M, d, J, None, place, M.site_bodyid[s])
    np.testing.assert_allclose(dl.point_jacobian(MODEL, Q, dl.Frame("f", site), p), J, atol=1e-13)


def test_a_joint_is_a_frame_at_its_anchor():
    d = data()
    np.testing.assert_allclose(dl.point_position(MODEL, Q, "turn"), d.xanchor[M.joint("turn").id], atol=1e-13)
    single = dl.point_position(MODEL, Q.astype(np.float32), "turn")
    assert single.dtype == np.float32


def constraints(body, other, R, p, R2, p2, on_frames):
    """The same constraints, given in frames, or in the bodies that carry them."""

    def point(x, R, p):
        return x if on_frames else R @ x + p

    def axis(x, R):
        return x if on_frames else R @ x

    def turn(quaternion, frame):
        return quaternion if on_frames else dl.spatial.compose(frame.quaternion, quaternion)

    one, two = MODEL.frame("tool"), MODEL.frame("grip")
    x, y, n, k = np.array([0.1, 0.2, 0.3]), np.array([-0.3, 0.1, 0.2]), np.array([0.0, 0.6, 0.8]), np.array([1.0, 0.0, 0.0])
    f, g = (0.8, 0.0, 0.0, 0.6), (0.6, 0.8, 0.0, 0.0)
    points = {"point": point(x, R, p), "other_point": point(y, R2, p2)}
    axes = {"axis": axis(n, R), "other_axis": axis(k, R2)}
    turns = {"quaternion": turn(f, one), "other_quaternion": turn(g, two)}
    return [
        dl.PointContact(MODEL, body, other=other, **points), dl.Connect(MODEL, body, other, **points), dl.Weld(MODEL, body, other, **points, **turns),
        dl.Distance(MODEL, body, other, **points), dl.Universal(MODEL, body, other, **points, **axes),
    ], [
        dl.Hinge(MODEL, body, other, **points, **axes), dl.Prismatic(MODEL, body, other, **points, axis=axes["axis"], **turns),
        dl.Cylindrical(MODEL, body, other, **points, **axes), dl.Planar(MODEL, body, other, **points, **axes),
    ]  # fmt: skip


def test_constraints_on_frames_are_those_on_their_bodies():
    tool, grip = MODEL.frame("tool"), MODEL.frame("grip")
    R, R2, p, p2 = rotation_matrix(tool.quaternion), rotation_matrix(grip.quaternion), np.array(tool.position), np.array(grip.position)
    ours, turned = constraints("tool", "grip", R, p, R2, p2, True)
    theirs, straight = constraints("b", "c", R, p, R2, p2, False)
    for what in (dl.constraint_error, lambda m, q, c: dl.constraint_velocity(m, q, V, c), lambda m, q, c: dl.constraint_drift(m, q, V, c)):
        np.testing.assert_allclose(what(MODEL, Q, ours), what(MODEL, Q, theirs), atol=1e-12)
    # axes across may be chosen otherwise: lengths of each constraint's rows stay
    for one, two in zip(turned, straight, strict=True):
        e, f = (dl.constraint_velocity(MODEL, Q, V, [c]) for c in (one, two))
        assert np.linalg.norm(e) == pytest.approx(np.linalg.norm(f), abs=1e-12)
        e, f = (dl.constraint_error(MODEL, Q, [c]) for c in (one, two))
        assert np.linalg.norm(e) == pytest.approx(np.linalg.norm(f), abs=1e-12)


def test_frames_without_points_are_put_on_each_other():
    d = data()
    error = dl.constraint_error(MODEL, Q, [dl.Weld(MODEL, "tool", "mark")])
    np.testing.assert_allclose(error[:3], d.site("tool").xpos - d.site("mark").xpos, atol=1e-13)
    turn = dl.spatial.exponential(error[3:])
    np.testing.assert_allclose(rotation_matrix(turn) @ d.site("mark").xmat.reshape(3, 3), d.site("tool").xmat.reshape(3, 3), atol=1e-12)
    K = RNG.standard_normal((2, 6))
    rows = dl.constraint_velocity(MODEL, Q, V, [dl.LinkConstraint(MODEL, [("tool", K)])])
    np.testing.assert_allclose(rows, K @ dl.frame_velocity(MODEL, Q, V, "tool"), atol=1e-12)


def test_operational_space_of_a_frame_is_that_of_its_jacobian():
    model = dl.load("iiwa")
    tip = dl.Frame("tip", "link7", position=(0.05, 0.0, 0.1), quaternion=(0.6, 0.8, 0.0, 0.0))
    q = model.random(1)
    G = dl.DelassusOperator(model, [dl.Weld(model, tip)], damping=1e-9)
    G.update(q)
    J = dl.frame_jacobian(model, q, tip)
    inertia = np.linalg.inv(J @ np.linalg.solve(dl.mass_matrix(model, q), J.T) + 1e-9 * np.eye(6))
    np.testing.assert_allclose(dl.OperationalSpace(G).inertia @ np.eye(6), inertia, rtol=1e-7, atol=1e-7 * abs(inertia).max())


def test_frames_stay_through_files_pickles_and_composition():
    for again in (dl.load(MODEL.to_mjcf()), pickle.loads(pickle.dumps(MODEL)), dl.scenes.on_floor(MODEL)):
        assert set(again.frames) == {"tool", "grip", "mark"}
        np.testing.assert_allclose(dl.body_placement(again, Q, "tool"), dl.body_placement(MODEL, Q, "tool"), atol=1e-12)
    b = dl.ModelBuilder("two")
    b.add_model(MODEL, prefix="x_", position=(1.0, 0.0, 0.0))
    b.add_frame("tip", "x_tool", position=(0.0, 0.0, 0.5))
    built = b.build()
    assert built.frames["tip"].body == "x_b"
    np.testing.assert_allclose(dl.point_position(built, Q, "x_mark"), dl.point_position(MODEL, Q, "mark") + np.eye(3)[0], atol=1e-13)
    np.testing.assert_allclose(dl.point_position(built, built.neutral(), "tip"), dl.point_position(built, built.neutral(), "x_tool", (0, 0, 0.5)), atol=1e-13)  # fmt: skip


def test_fixed_joints_of_a_urdf_and_frames_of_pinocchio_are_frames():
    pin = pytest.importorskip("pinocchio")
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = f"""<robot name="r"><link name="base"/><link name="arm">{inertial}</link><link name="tool"/>
    <joint name="swing" type="revolute"><limit lower="-1" upper="1" effort="1" velocity="1"/><parent link="base"/><child link="arm"/><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><axis xyz="0 0 1"/></joint>
    <joint name="flange" type="fixed"><parent link="arm"/><child link="tool"/><origin xyz="0.3 0.2 0.1" rpy="0.3 0.2 0.1"/></joint></robot>"""
    p = pin.buildModelFromXML(text)
    model, q = dl.load(text), np.array([0.7])
    d = p.createData()
    pin.framesForwardKinematics(p, d, q)
    for name in ("swing", "flange", "tool", "arm"):
        there = d.oMf[p.getFrameId(name)].homogeneous
        np.testing.assert_allclose(dl.body_placement(model, q, name), there, atol=1e-13)
    p.addFrame(pin.Frame("own", 1, 0, pin.SE3(np.eye(3), np.array([0.1, 0.0, 0.0])), pin.FrameType.OP_FRAME))
    taken = dl.load(p)
    np.testing.assert_allclose(dl.point_position(taken, q, "own"), dl.point_position(taken, q, "swing", (0.1, 0, 0)), atol=1e-13)
    np.testing.assert_allclose(dl.body_placement(taken, q, "flange"), d.oMf[p.getFrameId("flange")].homogeneous, atol=1e-13)


def test_wrong_frames_get_errors_that_give_the_answer():
    with pytest.raises(UnknownNameError, match=r"body, joint or frame.*'tol'.*tool"):
        dl.body_placement(MODEL, Q, "tol")
    with pytest.raises(UnknownNameError, match=r"'tool' is a frame on body 'b'.*model.frame\('tool'\)"):
        MODEL.body_index("tool")
    with pytest.raises(QuaternionError, match="frame 'f': quaternion"):
        dl.Frame("f", "a", quaternion=(1, 1, 0, 0))
    with pytest.raises(ArgumentTypeError, match="frame 'f': position"):
        dl.Frame("f", "a", position="here")
    with pytest.raises(ArgumentError, match="point: expected shape"):
        dl.point_position(MODEL, Q, "tool", (1, 2))
    b = dl.ModelBuilder("r")
    b.add_frame("x", "y")
    b.add_frame("y", "x")
    with pytest.raises(ArgumentError, match="frames that carry each other"):
        b.build()


def test_the_world_may_be_named_and_bodies_come_first():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = dl.load(
            '<mujoco><worldbody><body name="x"><joint name="x"/><geom size="1"/><site name="x" pos="1 0 0"/></body></worldbody></mujoco>'
        )
    assert model.frame("x").is_body
    np.testing.assert_array_equal(dl.body_placement(model, [0.3], "world"), np.eye(4))
