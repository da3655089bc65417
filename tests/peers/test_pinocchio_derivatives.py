"""Pinocchio's derivatives of inverse and forward dynamics and its regressor, coordinates converted.

With v = T v_pin and τ_pin = Tᵀ τ, T orthogonal and dependent on q where a free joint has mixed axes, at constant v_pin and ν̇_pin

    ∂τ_pin/∂q_pin = Tᵀ (∂τ/∂q + ∂τ/∂v ∂v/∂q + ∂τ/∂ν̇ ∂ν̇/∂q) T + (∂Tᵀ/∂q τ) T

where ν̇ = T ν̇_pin + Ṫ v_pin. The partial derivatives of T are those of R, whose tangent turns in body axes.
"""

import numpy as np
import pytest

import delassus as dl
from oracles.compare import agree
from oracles.dense import hat
from oracles.pinocchio_robots import ROBOTS, robot, states

pin = pytest.importorskip("pinocchio")

CLOSE = 1e-10
FAR = 1e-9  # with constraints: two solutions more


@pytest.fixture(scope="module", params=ROBOTS)
def both(request):
    peer = robot(request.param)
    return dl.load(peer), peer


class Turned:
    """What changes with q in the conversion, as matrices (nv, nv) on a tangent dq: of a robot whose first joint may be free."""

    def __init__(self, c, v_pin, a_pin, tau):
        n = len(c.T)
        self.v_q, self.a_q, self.a_v, self.tau_q = np.zeros((4, n, n))
        for kind, ours, theirs, block in c._parts:
            if kind != "FreeFlyer":
                continue
            R, v, a = block[:3, :3], v_pin[theirs], a_pin[theirs]
            lin, turn = slice(ours.start, ours.start + 3), slice(ours.start + 3, ours.start + 6)
            # T v_pin has R v, so its change by dφ (body axes) is R (dφ × v) = −R [v]× dφ
            self.v_q[lin, turn] = -R @ hat(v[:3])
            # ν̇ has R a + R (ω × v)
            self.a_q[lin, turn] = -R @ hat(a[:3] + np.cross(v[3:], v[:3]))
            # its change by v_pin at constant ν̇_pin
            self.a_v[lin, theirs.start : theirs.start + 3] = R @ hat(v[3:])
            self.a_v[lin, theirs.start + 3 : theirs.start + 6] = -R @ hat(v[:3])
            # Tᵀ τ has Rᵀ τ, so its change is −[dφ]× Rᵀ τ = [Rᵀ τ]× dφ; here rows are Pinocchio's
            self.tau_q[theirs.start : theirs.start + 3, turn] = hat(R.T @ tau[lin])


def test_derivatives_of_inverse_dynamics_are_pinocchios(both):
    model, peer = both
    data = peer.createData()
    for q, c, v, a, _ in states(model, peer):
        ours = dl.inverse_dynamics_derivatives(model, q, c.T @ v, c.T @ a + c.drift(v))
        x = Turned(c, v, a, ours.tau)
        want_q, want_v, M = (np.array(m) for m in pin.computeRNEADerivatives(peer, data, c.q, v, a))
        got_q = c.T.T @ (ours.tau_q + ours.tau_v @ x.v_q + ours.tau_a @ x.a_q) @ c.T + x.tau_q @ c.T
        got_v = c.T.T @ (ours.tau_v @ c.T + ours.tau_a @ x.a_v)
        agree(got_q, want_q, CLOSE)
        agree(got_v, want_v, CLOSE)
        agree(c.T.T @ ours.tau_a @ c.T, np.triu(M) + np.triu(M, 1).T, CLOSE)


def test_derivatives_of_forward_dynamics_are_pinocchios(both):
    model, peer = both
    data = peer.createData()
    for q, c, v, _, tau in states(model, peer):
        ours = dl.forward_dynamics_derivatives(model, q, c.T @ v, c.T @ tau)
        want_q, want_v, Minv = (np.array(m) for m in pin.computeABADerivatives(peer, data, c.q, v, tau))
        a = c.T.T @ (ours.acceleration - c.drift(v))
        x = Turned(c, v, a, c.T @ tau)
        # ν̇ = T ν̇_pin + Ṫ v_pin and τ = T τ_pin, whose change with q at constant τ_pin is −T (∂Tᵀ/∂q τ)
        got_q = c.T.T @ (ours.acceleration_q + ours.acceleration_v @ x.v_q - ours.acceleration_tau @ c.T @ x.tau_q - x.a_q) @ c.T
        got_v = c.T.T @ (ours.acceleration_v @ c.T - x.a_v)
        agree(got_q, want_q, CLOSE)
        agree(got_v, want_v, CLOSE)
        agree(c.T.T @ ours.acceleration_tau @ c.T, np.triu(Minv) + np.triu(Minv, 1).T, CLOSE)


def test_regressor_is_pinocchios(both):
    model, peer = both
    data = peer.createData()
    # Pinocchio's bodies are its joints', in their frames; ours have their names
    bodies = [model.body_index(name) for name in list(peer.names)[1:]]
    columns = np.concatenate([np.arange(10 * b, 10 * b + 10) for b in bodies])
    for q, c, v, a, _ in states(model, peer):
        ours = dl.torque_regressor(model, q, c.T @ v, c.T @ a + c.drift(v))
        agree(c.T.T @ ours[:, columns], pin.computeJointTorqueRegressor(peer, data, c.q, v, a), CLOSE)


@pytest.mark.parametrize("weld", [False, True])
def test_derivatives_of_constrained_dynamics_are_pinocchios(both, weld):
    """Two points held by three rows each at any velocity; or one weld at rest, since Pinocchio's rows of a weld are the spatial acceleration, ours that of the point."""
    model, peer = both
    data = peer.createData()
    leaves = [j for j in range(1, peer.njoints) if j not in set(peer.parents)]
    joints = leaves[:1] if weld or model.nv < 12 else [leaves[0], leaves[-1]]
    rng = np.random.default_rng(5)
    points = 0.1 * rng.standard_normal((len(joints), 3))
    kind, ours_kind = (pin.ContactType.CONTACT_6D, dl.Weld) if weld else (pin.ContactType.CONTACT_3D, dl.Connect)
    held = [
        pin.RigidConstraintModel(kind, peer, j, pin.SE3(np.eye(3), p), pin.LOCAL_WORLD_ALIGNED) for j, p in zip(joints, points, strict=True)
    ]
    held_data = [c.createData() for c in held]
    rows = [ours_kind(model, peer.names[j], point=p) for j, p in zip(joints, points, strict=True)]
    L = dl.LinearizedDynamics(model, rows)
    settings = pin.ProximalSettings(1e-14, 0.0, 1)
    pin.initConstraintDynamics(peer, data, held, held_data)
    for q, c, v, _, tau in states(model, peer):
        v = 0 * v if weld else v
        a = np.array(pin.constraintDynamics(peer, data, c.q, v, tau, held, held_data, settings))
        pin.computeConstraintDynamicsDerivatives(peer, data, held, held_data, settings)
        ours = L.derivatives_at(q, c.T @ v, c.T @ tau)
        agree(c.T.T @ (ours.acceleration - c.drift(v)), a, FAR)
        x = Turned(c, v, a, c.T @ tau)
        a_q = c.T.T @ (ours.acceleration_q + ours.acceleration_v @ x.v_q - ours.acceleration_tau @ c.T @ x.tau_q - x.a_q) @ c.T
        f_q = (ours.forces_q + ours.forces_v @ x.v_q - ours.forces_tau @ c.T @ x.tau_q) @ c.T
        agree(a_q, data.ddq_dq, FAR)
        agree(c.T.T @ (ours.acceleration_v @ c.T - x.a_v), data.ddq_dv, FAR)
        agree(c.T.T @ ours.acceleration_tau @ c.T, data.ddq_dtau, FAR)
        agree(f_q, data.dlambda_dq, FAR)
        agree(ours.forces_v @ c.T, data.dlambda_dv, FAR, max(np.abs(data.dlambda_dv).max(), 1e-3 * np.abs(data.dlambda_dq).max()))
        agree(ours.forces_tau @ c.T, data.dlambda_dtau, FAR)
