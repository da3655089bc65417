"""Pinocchio and MuJoCo beside us: the same mechanism and the same rows, or a sentence why not."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus import bench
from delassus.bench import definition, peers
from oracles.compare import agree

pin = pytest.importorskip("pinocchio")

from delassus.bench.pinocchio import PinocchioModel  # noqa: E402

BUDGET = 0.002
EVERYTHING = """<mujoco><worldbody><body name="base" pos="0 0 1"><freejoint name="root"/><inertial pos=".1 .2 .3" mass="2" fullinertia=".2 .3 .4 .01 .02 .03"/>
  <body name="arm" pos=".3 0 .1" quat=".8 .6 0 0"><joint name="a" axis="1 2 3" pos=".1 -.2 .1" ref=".4" armature=".05"/>
    <joint name="b" type="slide" axis="0 1 1" ref=".1"/><inertial pos="0 .1 0" mass="1" diaginertia=".02 .03 .04"/>
    <body name="fist" pos="0 .2 .3"><joint name="c" type="ball" pos=".05 0 0" armature=".02"/><inertial pos=".1 0 0" mass=".7" diaginertia=".01 .01 .01"/>
      <body name="ring" pos=".2 .1 0" quat=".6 0 .8 0"><inertial pos="0 0 .1" mass=".3" diaginertia=".001 .002 .002"/></body></body></body>
  <body name="leg" pos="-.3 0 0"><joint name="d" axis="0 1 0"/><inertial pos="0 0 -.2" mass="1" diaginertia=".02 .02 .01"/></body></body></worldbody></mujoco>"""


@pytest.fixture
def everything():
    model = dl.load(EVERYTHING)
    q = model.random(np.random.default_rng(3))
    constraints = [
        dl.PointContact(model, "ring", point=(0.1, 0.0, 0.2), normal=(1, 2, 2)), dl.Weld(model, "leg", point=(0, 0, -0.4)), dl.Connect(model, "fist", point=(0, 0.1, 0)),
    ]  # fmt: skip
    return model, q, constraints


def test_pinocchio_has_our_joints_inertias_and_drives(everything):
    model, q, _ = everything
    P = PinocchioModel(pin, model, q)
    upper = pin.crba(P.model, P.data, P.q)
    agree(P.T @ (np.triu(upper) + np.triu(upper, 1).T) @ P.T.T, dl.mass_matrix(model, q), 1e-12)
    agree(P.T @ P.T.T, np.eye(model.nv), 1e-12)
    still = np.zeros(model.nv)
    agree(P.T @ pin.aba(P.model, P.data, P.q, still, still), dl.forward_dynamics(model, q, still), 1e-10)


def test_pinocchio_has_our_rows(everything):
    model, q, constraints = everything
    P = PinocchioModel(pin, model, q)
    models, datas = P.constraints(constraints, q)
    agree(pin.computeDelassusMatrix(P.model, P.model.createData(), P.q, models, datas), dl.delassus_matrix(model, q, constraints), 1e-11)


def test_a_point_mass_is_no_obstacle():
    model = dl.ModelBuilder("pendulum")
    model.add_body("bob", mass=2.0, com=(0, 0, -1.5))
    model.add_joint("bob", "hinge", axis=(0, 1, 0))
    made = model.build()
    P = PinocchioModel(pin, made, made.neutral())
    assert pin.crba(P.model, P.data, P.q)[0, 0] == pytest.approx(2.0 * 1.5**2)


def measured(problem, compiled=None, *, simulated=True):
    m = compiled or mujoco.MjModel.from_xml_string(problem.model.to_mjcf())
    beside = peers.Peers(problem, m, simulated=simulated)
    sections = [beside.tree(BUDGET, lambda share: None), *bench.measure_methods(problem, peers=beside.methods, budget=BUDGET)]
    return {(s.name, m.method): m for s in sections for m in s.measurements if m.kind == "peer"}


def scene(name):
    model, q, constraints = dl.scenes.load(name)
    return bench.Problem(model, q, model.zero_velocity(), constraints)


def test_peers_are_timed_where_they_agree():
    found = measured(scene("go2-standing"))
    timed = {k for k, m in found.items() if m.microseconds}
    assert timed >= {
        ("tree", "Pinocchio crba"), ("tree", "Pinocchio aba"), ("tree", "MuJoCo makeM"), ("matrix", "Pinocchio"), ("matrix", "Pinocchio Cholesky"), ("matrix", "MuJoCo"),
        ("inverse", "Pinocchio Cholesky"), ("dynamics", "Pinocchio"), ("contacts", "Pinocchio admm"),
    }  # fmt: skip
    assert all(found[k].error <= found[k].allowed for k in timed)
    assert found["matrix", "MuJoCo"].note == "its own 12 rows, plus R"
    assert found["dynamics", "MuJoCo"].reason.startswith("not comparable: it softens")


def test_what_peers_cannot_represent_is_said():
    found = measured(scene("cassie-standing"), simulated=False)
    assert found["matrix", "Pinocchio"].reason.startswith("not comparable: its computeDelassusMatrix is for rows on one body")
    assert found["matrix", "MuJoCo"].reason.startswith("not comparable: its rows come from its own")
    assert found["dynamics", "Pinocchio"].microseconds
    assert found["contacts", "Pinocchio admm"].microseconds
    found = measured(scene("go2-standing-friction"))
    for key in (("matrix", "Pinocchio"), ("inverse", "Pinocchio Cholesky"), ("dynamics", "Pinocchio"), ("contacts", "Pinocchio admm")):
        assert found[key].reason.startswith("not comparable")
        assert "JointFriction" in found[key].reason


def test_peers_of_a_robot_without_rows():
    model = dl.load("iiwa")
    found = measured(bench.Problem(model, model.random(0), model.zero_velocity(), []))
    assert found["tree", "Pinocchio crba"].microseconds
    assert found["dynamics", "Pinocchio"].reason == "not comparable: without rows it is its aba"


def test_a_peer_that_differs_has_no_time(monkeypatch):
    right = PinocchioModel._coordinates

    def off(self, q):
        right(self, q)
        self.q[-1] += 1e-5

    monkeypatch.setattr(PinocchioModel, "_coordinates", off)
    found = measured(scene("go2-standing"))
    for key in (
        ("tree", "Pinocchio crba"),
        ("tree", "Pinocchio aba"),
        ("matrix", "Pinocchio"),
        ("inverse", "Pinocchio Cholesky"),
        ("dynamics", "Pinocchio"),
    ):
        assert found[key].microseconds is None
        assert found[key].wrong


def test_another_robot_of_mujocos_has_no_time():
    problem = scene("go2-standing")
    m = mujoco.MjModel.from_xml_string(problem.model.to_mjcf())
    m.body_mass[1] *= 1 + 1e-6
    found = measured(problem, m)
    assert found["tree", "MuJoCo makeM"].wrong
    assert found["matrix", "MuJoCo"].wrong


def test_without_pinocchio_a_line_names_the_extra(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    found = measured(scene("go2-standing"))
    assert found["matrix", "Pinocchio"].reason == 'not installed: pip install "delassus[peers]"'
    assert found["matrix", "MuJoCo"].microseconds
    assert "Pinocchio" not in peers.Peers(scene("go2-standing"), mujoco.MjModel.from_xml_string("<mujoco/>"), simulated=True).versions()


def test_definition_at_rest_has_no_drift():
    problem = scene("go2-standing")
    moving = definition.Definition(problem.model, problem.q, np.ones(problem.model.nv), problem.constraints)
    rest = peers.Peers(problem, mujoco.MjModel.from_xml_string("<mujoco/>"), simulated=True)._rest
    assert np.abs(rest.gamma).max() == 0
    assert np.abs(moving.gamma).max() > 0.1
