"""Rows mean what their classes say, whatever basis they are written in."""

import numpy as np
import pytest

import delassus as dl
from delassus.constraints import CenterOfMass, Distance, Hinge, JointFriction, JointLimit, LinkConstraint, PointContact
from delassus.operators import DelassusOperator
from oracles import rows
from oracles.compare import agree
from oracles.dense import Mechanism

CLOSE = 1e-12
MODEL = dl.scenes.box_stack(2)
# two free boxes: linear velocity in world axes, angular in the body's
FIRST, SECOND = slice(0, 3), slice(6, 9)


def jacobian(constraint, q):
    G = DelassusOperator(constraint.model, [constraint])
    G.update(q)
    return G.jacobian @ np.eye(constraint.model.nv)


@pytest.mark.parametrize("seed", range(20))
def test_contact_rows_are_the_normal_and_two_unit_tangents(seed):
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(3) if seed > 5 else np.eye(3)[seed % 3] * (1, -1)[seed // 3]
    J = jacobian(
        PointContact(MODEL, "box0", other="box1", normal=5 * normal, point=rng.random(3), other_point=rng.random(3)), MODEL.random(rng)
    )
    A = J[:, FIRST]
    agree(A[0], normal / np.linalg.norm(normal), CLOSE)
    agree(A @ A.T, np.eye(3), CLOSE, 1.0)
    agree(J[:, SECOND], -A, CLOSE)


@pytest.mark.parametrize("seed", range(10))
def test_hinge_lets_bodies_turn_about_the_axis_and_do_nothing_else(seed):
    rng = np.random.default_rng(seed)
    axis, point, other_point = rng.standard_normal((3, 3))
    q = MODEL.random(rng)
    J = jacobian(Hinge(MODEL, "box0", "box1", axis=axis, point=point, other_point=other_point), q)
    # body 0 turns about its axis through its point; its angular velocity is in its own coordinates
    R = Mechanism(MODEL, q).placement[1, :3, :3]
    v = np.zeros(12)
    v[3:6] = axis
    v[FIRST] = -R @ np.cross(axis, point)
    agree(J @ v, np.zeros(5), CLOSE, np.linalg.norm(axis) * (1 + np.linalg.norm(point)))
    # and every other motion of body 0 moves the rows: five of them, of unit size
    assert np.linalg.matrix_rank(J[:, :6]) == 5
    agree(J[:3, FIRST] @ J[:3, FIRST].T, np.eye(3), CLOSE, 1.0)
    agree(J[3:, 3:6] @ J[3:, 3:6].T, np.eye(2), CLOSE, 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_distance_row_is_the_rate_of_the_distance(seed):
    rng = np.random.default_rng(seed)
    point, other_point = rng.standard_normal((2, 3))
    q, v, h = MODEL.random(rng), rng.standard_normal(MODEL.nv), 1e-5

    def length(q):
        o = Mechanism(MODEL, q)
        return np.linalg.norm(rows.position(o, 1, point) - rows.position(o, 2, other_point))

    rate = (length(dl.integrate(MODEL, q, v, h)) - length(dl.integrate(MODEL, q, v, -h))) / (2 * h)
    agree(jacobian(Distance(MODEL, 1, 2, point=point, other_point=other_point), q) @ v, [rate], 1e-7, np.linalg.norm(v))


def test_center_of_mass_rows_are_the_rate_of_the_center():
    model = dl.load("talos")
    rng = np.random.default_rng(1)
    q, v, h = model.random(rng), rng.standard_normal(model.nv), 1e-5
    ends = [Mechanism(model, dl.integrate(model, q, v, s)).center_of_mass for s in (h, -h)]
    agree(jacobian(CenterOfMass(model), q) @ v, (ends[0] - ends[1]) / (2 * h), 1e-7)


def test_force_sets_and_rows_are_told():
    model = dl.load("go2")
    K = np.ones((4, 6))
    told = [
        (c.force_set, c.rows)
        for c in (PointContact(model, 1), JointFriction(model, 0), JointLimit(model, 1), LinkConstraint(model, [(1, K)]))
    ]
    assert told == [("cone", 3), ("box", 6), ("half-line", 1), ("free", 4)]
