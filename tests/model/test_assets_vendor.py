"""The embedded robots carry the numbers their makers published."""

from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files

import mujoco
import numpy as np
import pytest

ASSETS = files("delassus") / "assets"

DEGREES_OF_FREEDOM = {
    "go2": 18, "g1": 35, "cassie": 32, "talos": 50, "iiwa": 7, "atlas": 36, "hand": 24, "atlas_hands": 84, "solo": 18,
}  # fmt: skip
FLOATING = sorted(set(DEGREES_OF_FREEDOM) - {"iiwa", "hand"})

# URDF of example-robot-data whose numbers the asset repeats
URDF = {
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
    "solo": "solo_description/robots/solo12.urdf",
}

# Total mass [kg] and trace of the inertia of the whole robot about its centre of mass [kg m²], joints at zero, computed from
# the descriptions themselves: MuJoCo Menagerie unitree_go2, agility_cassie, kuka_iiwa_14 and shadow_hand (right_hand.xml),
# with MuJoCo; RobotLocomotion's Atlas URDF, with Pinocchio.
PUBLISHED = {
    "go2": (15.206408, 1.31189195319),
    "cassie": (33.312, 5.43521846203),
    "iiwa": (30.61, 9.08401104427),
    "hand": (3.794, 0.10553988758),
    "atlas": (175.117964, 90.1665151846),
}

SHAPES = {mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_BOX}


def load(robot):
    return mujoco.MjModel.from_xml_path(str(ASSETS / f"{robot}.xml"))


def at_home(model):
    """Data at the keyframe `home`, or at qpos0 where there is none."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    mujoco.mj_forward(model, data)
    return data


def link_inertia(model, body):
    """Inertia of a body about its centre of mass, in body axes, 3×3."""
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, model.body_iquat[body])
    R = R.reshape(3, 3)
    return R @ np.diag(model.body_inertia[body]) @ R.T


def load_urdf(path):
    pin = pytest.importorskip("pinocchio")
    try:
        robots = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return pin, pin.buildModelFromUrdf(str(robots / path), pin.JointModelFreeFlyer())


@pytest.mark.parametrize("robot", DEGREES_OF_FREEDOM)
def test_asset_loads_and_has_the_stated_degrees_of_freedom(robot):
    assert load(robot).nv == DEGREES_OF_FREEDOM[robot]


@pytest.mark.parametrize("robot", DEGREES_OF_FREEDOM)
def test_asset_is_made_of_primitive_shapes_only(robot):
    model = load(robot)
    assert model.nmesh == model.ntex == model.nhfield == 0
    assert set(model.geom_type.tolist()) <= {int(shape) for shape in SHAPES}


@pytest.mark.parametrize("robot", FLOATING)
def test_floating_base_is_a_free_joint_named_root(robot):
    joint = load(robot).joint("root")
    assert joint.id == 0
    assert joint.type[0] == mujoco.mjtJoint.mjJNT_FREE


@pytest.mark.parametrize("robot", URDF)
def test_every_link_has_the_mass_centre_and_inertia_of_its_urdf(robot):
    _, urdf = load_urdf(URDF[robot])
    model = load(robot)
    assert [model.joint(j).name for j in range(1, model.njnt)] == list(urdf.names)[2:]
    for joint, Y in enumerate(urdf.inertias[1:]):
        body = model.jnt_bodyid[joint]
        # the files keep twelve digits
        np.testing.assert_allclose(model.body_mass[body], Y.mass, rtol=1e-10)
        np.testing.assert_allclose(model.body_ipos[body], Y.lever, rtol=0, atol=1e-10)
        np.testing.assert_allclose(link_inertia(model, body), Y.inertia, rtol=0, atol=1e-9 * np.abs(Y.inertia).max())


@pytest.mark.parametrize("robot", URDF)
def test_mass_matrix_matches_pinocchio_on_the_urdf(robot):
    pin, urdf = load_urdf(URDF[robot])
    model, rng = load(robot), np.random.default_rng(3)
    data = mujoco.MjData(model)
    for _ in range(3):
        q = model.qpos0.copy()
        mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 1.0)
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        for column, unit in zip(M, np.eye(model.nv), strict=True):
            mujoco.mj_mulM(model, data, column, unit)

        # Pinocchio: quaternion (x, y, z, w), linear velocity of the base in its own axes, upper triangle, no armature
        upper = np.triu(pin.crba(urdf, urdf.createData(), np.r_[q[:3], q[4:7], q[3], q[7:]]))
        T = np.eye(model.nv)
        T[:3, :3] = pin.Quaternion(*q[3:7]).matrix().T
        expected = T.T @ (upper + np.triu(upper, 1).T) @ T + np.diag(model.dof_armature)

        scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
        np.testing.assert_allclose(M / scale, expected / scale, rtol=0, atol=1e-9)


def test_go2_joints_sit_where_the_urdf_puts_them():
    # example-robot-data carries an older Go2 with other masses; the kinematics are the same
    _, urdf = load_urdf("go2_description/urdf/go2.urdf")
    model = load("go2")
    for j in range(1, model.njnt):
        joint = model.joint(j)
        body = model.body(joint.bodyid[0])
        placement = urdf.jointPlacements[urdf.getJointId(joint.name)]
        np.testing.assert_allclose(body.pos, placement.translation, rtol=0, atol=1e-12)
        np.testing.assert_allclose(body.quat, [1, 0, 0, 0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(placement.rotation, np.eye(3), rtol=0, atol=1e-12)


@pytest.mark.parametrize("robot", PUBLISHED)
def test_total_mass_and_inertia_are_the_published_ones(robot):
    model = load(robot)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mass = model.body_mass.sum()
    offsets = data.xipos - model.body_mass @ data.xipos / mass
    trace = model.body_inertia.sum() + 2 * model.body_mass @ (offsets**2).sum(axis=1)
    np.testing.assert_allclose([mass, trace], PUBLISHED[robot], rtol=1e-9)


def test_atlas_with_hands_is_atlas_and_two_hands():
    whole, atlas, hand = load("atlas_hands"), load("atlas"), load("hand")
    parts = [(atlas, ""), (hand, "left_"), (hand, "right_")]
    assert whole.nbody - 1 == sum(part.nbody - 1 for part, _ in parts)
    for part, prefix in parts:
        for b in range(1, part.nbody):
            body = whole.body(prefix + part.body(b).name).id
            assert whole.body_mass[body] == part.body_mass[b]
            np.testing.assert_array_equal(whole.body_ipos[body], part.body_ipos[b])
            np.testing.assert_array_equal(whole.body_inertia[body], part.body_inertia[b])
        for j in range(part.njnt):
            joint = whole.joint(prefix + part.joint(j).name)
            np.testing.assert_array_equal(joint.axis, part.joint(j).axis)
            np.testing.assert_array_equal(joint.range, part.joint(j).range)
    for side, wrist in (("left_", "l_hand"), ("right_", "r_hand")):
        assert whole.body(side + "rh_forearm").parentid[0] == whole.body(wrist).id


@pytest.mark.parametrize("robot", DEGREES_OF_FREEDOM)
def test_no_two_links_touch_at_home(robot):
    assert at_home(load(robot)).ncon == 0


@pytest.mark.parametrize("robot", FLOATING)
def test_home_stands_on_the_ground_within_a_millimetre(robot):
    spec = mujoco.MjSpec.from_file(str(ASSETS / f"{robot}.xml"))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 1])
    model = spec.compile()
    data = at_home(model)
    assert data.ncon == 0
    data.qpos[2] -= 1e-3
    mujoco.mj_forward(model, data)
    feet = {int(model.geom_bodyid[geom]) for contact in data.contact for geom in contact.geom} - {0}
    assert len(feet) == (4 if robot in ("go2", "solo") else 2)


@pytest.mark.parametrize("robot", DEGREES_OF_FREEDOM)
def test_home_respects_the_joint_limits(robot):
    model = load(robot)
    data = at_home(model)
    for j in np.flatnonzero(model.jnt_limited):
        low, high = model.jnt_range[j]
        assert low <= data.qpos[model.jnt_qposadr[j]] <= high, model.joint(j).name


def test_cassie_has_four_loops_closed_at_home():
    model = load("cassie")
    data = at_home(model)
    assert model.neq == 4
    assert set(model.eq_type.tolist()) == {int(mujoco.mjtEq.mjEQ_CONNECT)}
    gaps = data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
    assert gaps.shape == (12,)
    # the keyframe keeps thirteen digits
    np.testing.assert_allclose(gaps, 0, atol=1e-11)
