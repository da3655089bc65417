"""A Pinocchio model, joint by joint, moves here as it does there; what has no counterpart is refused by name."""

import warnings

import numpy as np
import pytest

import delassus as dl
from oracles.compare import agree

pin = pytest.importorskip("pinocchio")

# A dozen roundings of numbers near one, in two libraries that round differently.
CLOSE = 1e-12


def quietly(source):
    """Load with every warning an error: nothing was left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return dl.load(source)


def pinocchio_joints():
    # Python cannot give an unbounded joint an axis, a URDF can
    arm = '<link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0.48 0.6 0.64"/></joint>'
    unbounded = pin.buildModelFromXML(f'<robot name="r">{arm}</robot>').joints[1]
    skew = np.array([0.48, 0.6, 0.64])
    return {
        **{k: getattr(pin, f"JointModel{k}")() for k in ("RX", "RY", "RZ", "PX", "PY", "PZ", "RUBX", "RUBY", "RUBZ")},
        "RevoluteUnaligned": pin.JointModelRevoluteUnaligned(skew),
        "PrismaticUnaligned": pin.JointModelPrismaticUnaligned(skew),
        "RevoluteUnboundedUnaligned": unbounded,
        **{k: getattr(pin, f"JointModel{k}")() for k in ("Spherical", "SphericalZYX", "Planar", "Translation", "FreeFlyer")},
    }


OUR_JOINTS = {
    "Spherical": ("ball",), "SphericalZYX": ("hinge",) * 3, "Planar": ("slide", "slide", "hinge"), "Translation": ("slide",) * 3, "FreeFlyer": ("free",),
}  # fmt: skip


def in_pinocchio(kind, q):
    """Configuration of Pinocchio's joint, and T with v_pinocchio = T v."""
    if "U" in kind and kind.startswith("R") and kind != "RevoluteUnaligned":
        return np.array([np.cos(q[0]), np.sin(q[0])]), np.eye(1)
    if kind == "Spherical":
        return q[[1, 2, 3, 0]], np.eye(3)
    if kind == "Planar":
        c, s = np.cos(q[2]), np.sin(q[2])
        return np.array([q[0], q[1], c, s]), np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    if kind == "FreeFlyer":
        T = np.eye(6)
        T[:3, :3] = dl.spatial.rotation_matrix(q[3:]).T
        return np.array([*q[:3], *q[[4, 5, 6, 3]]]), T
    return q, np.eye(len(q))


def pinocchio_model(joint_model):
    """A joint, a hinge that hangs on it, and a frame; turned and shifted."""
    pin.seed(1)
    m = pin.Model()
    m.name = "pair"
    m.gravity.linear = np.array([0.1, 0.2, -9.0])
    placement = pin.SE3.Identity() if isinstance(joint_model, pin.JointModelFreeFlyer) else pin.SE3.Random()
    one = m.addJoint(0, joint_model, placement, "one")
    m.appendBodyToJoint(one, pin.Inertia.FromBox(1.5, 0.2, 0.3, 0.4), pin.SE3.Random())
    two = m.addJoint(one, pin.JointModelRY(), pin.SE3.Random(), "two")
    m.appendBodyToJoint(two, pin.Inertia.FromBox(1.5, 0.2, 0.3, 0.4), pin.SE3.Random())
    m.addBodyFrame("tool", two, pin.SE3.Random(), 0)
    return m


@pytest.mark.parametrize("kind", pinocchio_joints())
def test_pinocchio_joint_moves_as_in_pinocchio(kind):
    m = pinocchio_model(pinocchio_joints()[kind])
    m.armature = np.full(m.nv, 0.25)
    model = quietly(m)
    assert model.joint_type == (*OUR_JOINTS.get(kind, ("slide",) if kind.startswith("P") else ("hinge",)), "hinge")
    assert model.gravity.tolist() == [0.1, 0.2, -9.0]
    q = model.random(2)
    q_one, T_one = in_pinocchio(kind, q[:-1])
    q_pin = np.array([*q_one, q[-1]])
    T = np.eye(model.nv)
    T[:-1, :-1] = T_one
    data = m.createData()
    M = np.triu(pin.crba(m, data, q_pin))
    M += np.triu(M, 1).T - 0.25 * np.eye(model.nv)
    agree(dl.mass_matrix(model, q), T.T @ M @ T + 0.25 * np.eye(model.nv), CLOSE)
    pin.framesForwardKinematics(m, data, q_pin)
    agree(dl.body_placement(model, q, "one"), data.oMi[1].homogeneous, CLOSE)
    agree(dl.body_placement(model, q, "tool"), data.oMf[m.getFrameId("tool")].homogeneous, CLOSE)


def test_pinocchio_order_becomes_depth_first_and_numbers_follow_their_joint():
    pin.seed(2)
    m = pin.Model()
    m.appendBodyToJoint(0, pin.Inertia.FromBox(1.5, 0.2, 0.3, 0.4), pin.SE3.Random())
    for name, parent in (("a", 0), ("b", 0), ("c", 1), ("d", 2)):
        k = m.addJoint(parent, pin.JointModelRX(), pin.SE3.Random(), name)
        m.appendBodyToJoint(k, pin.Inertia.FromBox(1.5, 0.2, 0.3, 0.4), pin.SE3.Random())
    m.armature, m.damping = np.arange(1.0, 5.0), np.arange(5.0, 9.0)
    m.lowerPositionLimit[:] = [-1, -2, -np.inf, -4]
    m.upperPositionLimit[:] = [1, 2, 3, np.finfo(float).max]
    model = quietly(m)
    assert model.joint_names == ("a", "c", "b", "d")
    to_pin = [0, 2, 1, 3]
    assert model.dof_armature.tolist() == m.armature[to_pin].tolist()
    assert model.dof_damping.tolist() == m.damping[to_pin].tolist()
    assert model.joint_range.tolist() == [[-1, 1], [-np.inf, 3], [-2, 2], [-4, np.inf]]
    q = model.random(1)
    # Pinocchio's crba is right for depth-first models only
    rest = np.zeros(4)
    g = pin.rnea(m, m.createData(), q[to_pin], rest, rest)
    M = np.array([pin.rnea(m, m.createData(), q[to_pin], rest, e) - g for e in np.eye(4)])
    agree(dl.mass_matrix(model, q), M[np.ix_(to_pin, to_pin)], CLOSE)
    assert model.mass == pytest.approx(sum(Y.mass for Y in m.inertias))


def test_pinocchio_ranges_of_joints_with_several_coordinates_are_kept():
    m = pinocchio_model(pin.JointModelPlanar())
    m.lowerPositionLimit[:2] = [-1, -2]
    m.upperPositionLimit[:2] = [3, 4]
    assert quietly(m).joint_range[:3].tolist() == [[-1, 3], [-2, 4], [-np.inf, np.inf]]


def test_pinocchio_armature_that_differs_within_a_ball_is_listed():
    m = pinocchio_model(pin.JointModelSpherical())
    m.armature = np.array([1.0, 2.0, 3.0, 4.0])
    with pytest.warns(UserWarning, match="armature of joint 'one' that differs"):
        model = dl.load(m)
    assert model.dof_armature.tolist() == [0, 0, 0, 4]


def unsupported():
    composite = pin.JointModelComposite()
    composite.addJoint(pin.JointModelRX(), pin.SE3.Identity())
    below = pinocchio_model(pin.JointModelRX())
    below.addJoint(2, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "below")
    return {
        "'one'.*HX": pinocchio_model(pin.JointModelHX(0.1)),
        "'one'.*Universal": pinocchio_model(pin.JointModelUniversal(1.0, 0.0, 0.0, 0.0, 1.0, 0.0)),
        "'one'.*Composite": pinocchio_model(composite),
        "'below' is a free flyer that does not hang on the world": below,
    }


@pytest.mark.parametrize("message", unsupported())
def test_pinocchio_joint_that_is_not_supported_is_named(message):
    with pytest.raises(dl.errors.ArgumentTypeError, match=message + ".*Supported: revolute"):
        dl.load(unsupported()[message])
