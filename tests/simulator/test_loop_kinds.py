"""Loops of every kind in motion: against joints of the same kind, their forces, and switched on and off."""

import copy
import pickle
from dataclasses import replace

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from delassus.simulator.snapshot import seal
from oracles import errors
from oracles.compare import agree

dt = 1e-3
TURN = np.array([0.8, -0.2, 0.4, 0.4])
TURN /= np.linalg.norm(TURN)


def rod(b, name, parent="world", **place):
    b.add_body(name, parent, mass=1.2, com=(0.1, 0.05, -0.15), inertia=(0.03, 0.05, 0.04, 0.002, -0.003, 0.004), **place)


def free_and_looped(kind, **loop):
    """A free body that a loop of a kind ties to the world."""
    b = dl.ModelBuilder(kind)
    rod(b, "rod", position=(0.2, 0.1, 1.0), quaternion=TURN)
    b.add_joint("rod", "free")
    b.add_loop(kind, "rod", name="loop", **loop)
    return b.build()


# joints that do what a loop with the world does: types and axes in the order of a body's joints, all at the origin of the body
AXIS = np.array([0.3, -0.5, 0.8])
ACROSS = np.cross(AXIS, (1.0, 0.0, 0.0))
THIRD = np.cross(AXIS, ACROSS)
JOINTS = {
    "hinge": [("hinge", AXIS)], "prismatic": [("slide", AXIS)], "cylindrical": [("slide", AXIS), ("hinge", AXIS)],
    "planar": [("slide", ACROSS), ("slide", THIRD), ("hinge", AXIS)], "universal": [("hinge", ACROSS), ("hinge", AXIS)], "ball": [("ball", AXIS)],
}  # fmt: skip
LOOPS = {
    "hinge": {"axis": AXIS}, "prismatic": {"axis": AXIS}, "cylindrical": {"axis": AXIS}, "planar": {"axis": AXIS}, "ball": {},
}  # fmt: skip


def jointed(kind):
    b = dl.ModelBuilder(kind)
    rod(b, "rod", position=(0.2, 0.1, 1.0), quaternion=TURN)
    for type_, axis in JOINTS[kind]:
        b.add_joint("rod", type_, axis=axis)
    return b.build()


def looped(kind):
    if kind != "universal":
        return free_and_looped(kind, **LOOPS[kind])
    # the first axis is the world's: where it is as described
    R = dl.spatial.rotation_matrix(TURN)
    return free_and_looped(kind, axis=AXIS, other_axis=R @ ACROSS)


@pytest.mark.parametrize("kind", JOINTS)
def test_a_loop_moves_as_a_joint_of_its_kind(kind):
    """Two ways to say the same; both step to second order only where loops are, so joints go in steps of a twentieth."""
    tree, loop = jointed(kind), looped(kind)
    slow, fast = dl.Simulator(loop, timestep=dt), dl.Simulator(tree, timestep=dt / 50)
    motion, want = slow.run(0.4, progress=False), fast.run(0.4, progress=False, every=50)
    assert set(motion.status) == {"solved"}
    assert motion.loop_error.max() < 1e-9
    places = [np.array([dl.body_placement(m, q, "rod") for q in t.q[::50]]) for m, t in ((loop, motion), (tree, want))]
    assert np.abs(places[1][-1] - places[1][0]).max() > 0.05
    # of first order: g t dt / 50
    agree(places[0], places[1], 1e-4, 1.0)


@pytest.mark.parametrize("kind", JOINTS)
def test_forces_of_a_loop_put_in_its_place_move_the_body_alike(kind):
    """The wrenches of ``constraint_wrenches``, on a body that nothing ties."""
    model = looped(kind)
    sim = dl.Simulator(model, integrator="euler")
    v = np.random.default_rng(5).standard_normal(model.nv)
    rows = np.array([dl.constraint_velocity(model, sim.q, e, model.loops) for e in np.eye(model.nv)]).T
    v -= np.linalg.pinv(rows) @ rows @ v
    sim.reset(v=v)
    for _ in range(300):
        q, v = sim.q, sim.v
        step = sim.step()
    # rows are those of the middle of the step, in which the inertia is taken too
    middle = dl.integrate(model, q, v, dt / 2)
    wrench = dl.constraint_wrenches(model, middle, model.loops[0], step.loop_forces["loop"])
    m = mujoco.MjModel.from_xml_string(dl.ModelBuilder.build(untied(kind)).to_mjcf())
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = middle, v
    d.xfrc_applied[1] = wrench[1]
    mujoco.mj_forward(m, d)
    agree(step.v, v + dt * d.qacc, 1e-9, 1 + np.abs(v).max())
    agree(wrench[0, :3], -wrench[1, :3], 1e-14)
    assert np.abs(wrench[1, :3]).max() > 1


def untied(kind):
    b = dl.ModelBuilder(kind)
    rod(b, "rod", position=(0.2, 0.1, 1.0), quaternion=TURN)
    b.add_joint("rod", "free")
    return b


def test_a_pendulum_on_a_string_bears_its_weight_and_its_centripetal_force():
    b = dl.ModelBuilder("string")
    b.add_body("bob", mass=2.0, position=(1.5, 0, 0), inertia=(0.01, 0.01, 0.01))
    b.add_joint("bob", "free")
    b.add_loop("distance", "bob", other_point=(0, 0, 0), name="string")
    model = b.build()
    assert model.loops[0].length == 1.5
    motion = dl.Simulator(model).run(1.2, progress=False)
    tension = -motion.loop_force("string")[1:, 0]
    x, v = (motion.q[1:, :3] + motion.q[:-1, :3]) / 2, (motion.v[1:, :3] + motion.v[:-1, :3]) / 2
    want = 2.0 * ((v**2).sum(axis=1) / 1.5 + 9.81 * -x[:, 2] / 1.5)
    assert want.max() > 50
    agree(tension, want, 1e-4, want.max())
    assert np.abs(np.linalg.norm(motion.q[:, :3], axis=1) - 1.5).max() < 1e-9


def test_a_gear_turns_its_follower_and_passes_torque_on():
    b = dl.ModelBuilder("gear")
    for name, inertia in (("small", 0.02), ("large", 0.3)):
        b.add_body(name, mass=1.0, inertia=(1.0, 1.0, inertia))
        b.add_joint(name, "hinge", name=name)
    b.add_loop("gear", "large", "small", ratio=-0.25, name="mesh")
    model = b.build()
    sim = dl.Simulator(model)
    for _ in range(100):
        step = sim.step([1.5, 0.0])
    # (I + r² J) ω̇ = τ;  the large wheel is driven by the row's force
    rate = 1.5 / (0.02 + 0.25**2 * 0.3)
    agree(step.v, rate * 0.1 * np.array([1, -0.25]), 1e-12)
    agree(step.loop_forces["mesh"], [0.3 * -0.25 * rate], 1e-12)


# ---- ugly ones ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["connect", "weld", "hinge", "universal", "prismatic", "cylindrical", "planar"])
def test_a_loop_of_a_body_with_itself_holds_nothing(kind):
    alone = dl.ModelBuilder.build(untied(kind))
    model = alone.with_loops([{"kind": kind, "body": "rod", "other": "rod", "name": "self"}])
    if kind == "universal":
        assert abs(np.dot(model.loops[0].axis, model.loops[0].other_axis)) == 0
    a, b = (dl.Simulator(m) for m in (alone, model))
    v = np.random.default_rng(1).standard_normal(6)
    a.reset(v=v), b.reset(v=v)
    for _ in range(200):
        one, two = a.step(), b.step()
    assert two.status == "solved"
    assert not np.any(two.loop_forces["self"])
    # a tree in loops steps to second order, another to first
    assert np.abs(one.q - two.q).max() < 1e-2


@pytest.mark.parametrize("kind", ["hinge", "cylindrical", "planar", "universal"])
def test_redundant_loops_bear_together_what_one_bears(kind):
    one = looped(kind)
    twice = one.with_loops([replace(one.loops[0], name="again")])
    a, b = (dl.Simulator(m) for m in (one, twice))
    for _ in range(300):
        single, double = a.step(), b.step()
        assert double.status == "solved"
    agree(double.q, single.q, 1e-8, 1.0)
    agree(
        double.loop_forces["loop"] + double.loop_forces["again"], single.loop_forces["loop"], 1e-6, np.abs(single.loop_forces["loop"]).max()
    )


# ---- on and off -----------------------------------------------------------------------------------------------------------


def held():
    """A body that hangs on a rope's end until it is let go."""
    b = dl.ModelBuilder("held")
    for k, name in enumerate(("left", "right")):
        b.add_body(name, mass=1.0, position=(k, 0, 1), inertia=(0.1, 0.1, 0.1))
        b.add_joint(name, "free")
        b.add_loop("connect", name, name=f"hold {name}", active=name == "left")
    return b.build()


def test_a_loop_that_is_let_go_lets_its_body_fall():
    sim = dl.Simulator(held())
    assert sim.loop_active == {"hold left": True, "hold right": False}
    step = sim.step()
    agree(step.loop_forces["hold left"], [0, 0, 9.81], 1e-12)
    agree(step.loop_forces["hold right"], np.zeros(3), 0)
    for _ in range(99):
        sim.step()
    sim.set_loop_active("hold left", False)
    agree(sim.time, 0.1, 1e-12)
    first = sim.q[2]
    for _ in range(100):
        step = sim.step()
    assert not np.any(step.loop_forces["hold left"])
    assert first == pytest.approx(1, abs=1e-12)
    agree(step.v[2], -9.81 * 0.1, 1e-12)
    assert step.loop_error == 0


def test_a_loop_that_is_switched_on_holds():
    sim = dl.Simulator(held())
    sim.set_loop_active("hold right")
    motion = sim.run(0.5, progress=False)
    assert np.abs(motion.q[:, [2, 9]] - 1).max() < 1e-12
    agree(motion.loop_force("hold right")[1:], np.tile([0, 0, 9.81], (500, 1)), 1e-10)
    assert not motion.loop_force("hold left")[0].any()  # before the first step nothing is known


def test_switches_are_in_snapshots_and_copies():
    sim = dl.Simulator(held())
    for _ in range(10):
        sim.step()
    before = sim.save()
    sim.set_loop_active("hold left", False)
    sim.set_loop_active("hold right", True)
    after = sim.save()
    others = [pickle.loads(pickle.dumps(sim)), copy.deepcopy(sim)]
    steps = [sim.step() for _ in range(20)]
    for other in others:
        assert other.loop_active == {"hold left": False, "hold right": True}
        for step in steps:
            same = other.step()
            assert (same.q == step.q).all()
            assert (same.v == step.v).all()
    sim.restore(before)
    assert sim.loop_active == {"hold left": True, "hold right": False}
    fresh = dl.Simulator(held())
    for _ in range(10):
        fresh.step()
    assert (fresh.step().q == sim.step().q).all()
    sim.restore(after)
    assert sim.loop_active == {"hold left": False, "hold right": True}
    assert (sim.step().q == steps[0].q).all()


def test_worlds_of_a_rollout_have_the_loops_of_their_simulator():
    sim = dl.Simulator(held())
    sim.set_loop_active("hold left", False)
    falls = dl.rollout(sim, [sim.q], steps=100).q[0, -1, 2]
    assert falls < 0.96
    sim.set_loop_active("hold left", True)
    assert dl.rollout(sim, [sim.q], steps=100).q[0, -1, 2] == pytest.approx(1, abs=1e-12)


def test_contacts_stay_while_loops_are_switched():
    b = dl.ModelBuilder("box")
    b.add_body("box", mass=1.0, position=(0, 0, 0.1), inertia=(0.01, 0.01, 0.01))
    b.add_joint("box", "free")
    b.add_shape("box", "box", (0.1, 0.1, 0.1))
    b.add_shape("world", "plane", (5, 5, 1))
    b.add_loop("weld", "box", name="glue", active=False)
    sim = dl.Simulator(b.build(), sleep_after=0.05)
    for _ in range(200):
        step = sim.step()
    assert step.sleeping == 1
    sim.set_loop_active("glue")
    step = sim.step()
    assert (step.sleeping, step.status, len(step.contacts)) == (0, "solved", 4)
    assert np.abs(step.v).max() < 1e-6


def test_what_is_no_loop_cannot_be_switched():
    sim = dl.Simulator(held())
    with pytest.raises(UnknownNameError, match=r"loop .hold. does not exist. Did you mean .hold"):
        sim.set_loop_active("hold")
    with pytest.raises(ArgumentTypeError, match="active: expected True or False, got str"):
        sim.set_loop_active("hold left", "off")
    with pytest.raises(UnknownNameError, match="loop 'x'"):
        sim.run(0.01, progress=False).loop_force("x")


def test_a_snapshot_with_other_switches_is_refused():
    sim = dl.Simulator(held())
    for switches in ([], [0.5, 1.0]):
        with pytest.raises(ArgumentError, match=r"snapshot: its (active loops|sizes|length)"):
            sim.restore(seal(sim._identity, np.array(switches)))
    assert sim.loop_active == {"hold left": True, "hold right": False}


def test_wrenches_are_those_of_rows_between_bodies():
    model = dl.load("cassie")
    with pytest.raises(ArgumentError, match="acts on joints"):
        dl.constraint_wrenches(
            model, model.neutral(), dl.JointFriction(model, 1), np.zeros(1) if model.joint_type[1] != "ball" else np.zeros(3)
        )
    with pytest.raises(ArgumentError, match=r"forces: expected shape \(3,\)"):
        dl.constraint_wrenches(model, model.neutral(), model.loops[0], np.zeros(2))


def test_rows_and_wrenches_do_the_same_work():
    """λᵀ J v = Σ wrench · velocity of the centres of mass, of every kind between two bodies."""
    model = dl.load("g1")
    rng = np.random.default_rng(8)
    q, v = model.random(rng), rng.standard_normal(model.nv)
    for kind in set(errors.BETWEEN) - {"links"}:
        c = errors.aimed(rng, model, kind, ("left_ankle_roll_link", "right_wrist_yaw_link"), None).constraint
        f = rng.standard_normal(c.rows)
        wrenches = dl.constraint_wrenches(model, q, c, f)
        work = sum(w @ dl.frame_velocity(model, q, v, b, point=model.body_com[b]) for b, w in enumerate(wrenches) if b)
        agree(work, f @ dl.constraint_velocity(model, q, v, [c]), 1e-12, 10.0)
