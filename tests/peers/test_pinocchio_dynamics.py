"""Pinocchio computes the same dynamics on the robots it reads itself, coordinates converted."""

import warnings

import numpy as np
import pytest

import delassus as dl
from oracles.compare import agree
from oracles.dense import rotation
from oracles.pinocchio_robots import ROBOTS, Coordinates, robot, states, urdf

pin = pytest.importorskip("pinocchio")

CLOSE = 1e-10


def one_of_each():
    """Return a chain of every joint that is understood."""
    kinds = [
        pin.JointModelFreeFlyer(), pin.JointModelRX(), pin.JointModelPY(), pin.JointModelSpherical(), pin.JointModelRevoluteUnaligned(0.6, 0.0, 0.8),
        pin.JointModelPrismaticUnaligned(0.0, 0.6, 0.8), pin.JointModelRUBZ(), pin.JointModelSphericalZYX(), pin.JointModelTranslation(),
        pin.JointModelPlanar(), pin.JointModelRZ(),
    ]  # fmt: skip
    peer, rng = pin.Model(), np.random.default_rng(2)
    for k, kind in enumerate(kinds):
        # a free joint's coordinates are the world's, here and there
        placement = pin.SE3(rotation(rng.standard_normal(4)), rng.uniform(-0.5, 0.5, 3)) if k else pin.SE3.Identity()
        # a branch at joint 3
        joint = peer.addJoint(k if k != 7 else 3, kind, placement, f"joint{k}")
        peer.appendBodyToJoint(
            joint, pin.Inertia(rng.uniform(0.5, 2), rng.uniform(-0.2, 0.2, 3), np.diag([0.3, 0.4, 0.5])), pin.SE3.Identity()
        )
    return peer


@pytest.fixture(scope="module", params=[*ROBOTS, "one of each"])
def both(request):
    peer = one_of_each() if request.param == "one of each" else robot(request.param)
    return dl.load(peer), peer


def test_a_pinocchio_model_is_taken_without_a_warning(both):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dl.load(both[1]) == both[0]


def symmetric(upper):
    return np.triu(upper) + np.triu(upper, 1).T


def test_mass_matrix_and_its_inverse_are_pinocchios(both):
    model, peer = both
    assert model.nv == peer.nv
    data = peer.createData()
    for q, c, *_ in states(model, peer):
        M = symmetric(pin.crba(peer, data, c.q))
        agree(c.T.T @ dl.mass_matrix(model, q) @ c.T, M, CLOSE)
        inverse = symmetric(pin.computeMinverse(peer, peer.createData(), c.q))
        # T is orthogonal
        agree(c.T.T @ dl.mass_matrix_inverse(model, q) @ c.T, inverse, CLOSE)


def test_inverse_and_forward_dynamics_are_pinocchios(both):
    model, peer = both
    data = peer.createData()
    for q, c, v, a, tau in states(model, peer):
        ours_v, drift = c.T @ v, c.drift(v)
        agree(c.T.T @ dl.inverse_dynamics(model, q, ours_v, c.T @ a + drift), pin.rnea(peer, data, c.q, v, a), CLOSE)
        got = dl.forward_dynamics(model, q, ours_v, c.T @ tau)
        agree(c.T.T @ (got - drift), pin.aba(peer, data, c.q, v, tau), CLOSE)


def test_jacobians_velocities_and_bias_accelerations_are_pinocchios(both):
    model, peer = both
    data, world = peer.createData(), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for q, c, v, *_ in states(model, peer):
        pin.forwardKinematics(peer, data, c.q, v, np.zeros(peer.nv))
        pin.computeJointJacobians(peer, data, c.q)
        for j in range(1, peer.njoints):
            body = peer.names[j]
            agree(dl.body_placement(model, q, body), data.oMi[j].homogeneous, CLOSE)
            agree(dl.frame_jacobian(model, q, body) @ c.T, pin.getJointJacobian(peer, data, j, world), CLOSE)
            agree(dl.frame_velocity(model, q, c.T @ v, body), pin.getVelocity(peer, data, j, world).vector, CLOSE, 1.0)
            # J v̇ + J̇ v with v̇ the drift of our coordinates when theirs are constant
            ours = dl.frame_jacobian(model, q, body) @ c.drift(v) + dl.frame_bias_acceleration(model, q, c.T @ v, body)
            theirs = pin.getClassicalAcceleration(peer, data, j, world).vector
            agree(ours, theirs, CLOSE, max(1.0, np.abs(theirs).max()))


def test_energies_and_centre_of_mass_are_pinocchios(both):
    # versions differ in whether the energy counts armature
    peer = both[1].copy()
    peer.armature = np.zeros(peer.nv)
    model = dl.load(peer)
    data, still = peer.createData(), float(peer.inertias[0].mass)
    for q, c, v, *_ in states(model, peer):
        agree(dl.kinetic_energy(model, q, c.T @ v), pin.computeKineticEnergy(peer, data, c.q, v), CLOSE)
        if not still:
            agree(dl.potential_energy(model, q), pin.computePotentialEnergy(peer, data, c.q), CLOSE, 9.81 * model.mass)
            agree(dl.center_of_mass(model, q), pin.centerOfMass(peer, data, c.q), CLOSE, 1.0)


@pytest.mark.parametrize("name", ROBOTS)
def test_urdf_is_the_robot_pinocchio_reads(name):
    peer = pin.buildModelFromUrdf(str(urdf(name)), *([pin.JointModelFreeFlyer()] if ROBOTS[name][1] else []))
    with warnings.catch_warnings():
        # links that overlap are listed
        warnings.simplefilter("ignore")
        model = dl.load(urdf(name), floating_base=ROBOTS[name][1])
    assert model.nv == peer.nv
    assert not any("mesh" in line for line in model.ignored)
    whole = sum(Y.mass for Y in peer.inertias)
    assert model.mass == pytest.approx(whole, rel=CLOSE)
    for seed in range(5):
        q = model.random(seed)
        c = Coordinates(model, peer, q, {"root_joint": "root"})
        M = symmetric(pin.crba(peer, peer.createData(), c.q))
        scale = np.sqrt(np.outer(M.diagonal(), M.diagonal()))
        agree(c.T.T @ (dl.mass_matrix(model, q) - np.diag(model.dof_armature)) @ c.T, M, CLOSE, scale)
