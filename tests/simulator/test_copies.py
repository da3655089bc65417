"""Simulators that are copied and pickled go on bit for bit; keyframes by name; wrenches in runs and rollouts; what a contact says of its shapes."""

import copy
import pickle
import subprocess
import sys

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, NotFiniteError, UnknownNameError
from oracles.compare import agree
from oracles.linkages import crank_biped, rod_biped


def walked(source, steps=150, **options):
    sim = dl.Simulator(source, **options)
    rng = np.random.default_rng(2)
    for _ in range(steps):
        sim.step(0.1 * rng.standard_normal(sim.model.nv))
    return sim


CASES = {
    "robot on the floor": lambda: walked(dl.scenes.on_floor("go2"), timestep=2e-3, solver="admm"),
    "loops and contacts": lambda: walked(rod_biped(), restitution=0.3, integrator="euler"),
    "balls and limits": lambda: walked(crank_biped(), threads=2, tolerance=1e-7, max_iterations=500),
    "what sleeps": lambda: walked(dl.scenes.box_stack(3), steps=0, sleep_after=0.02, sleep_speed=1e-3, slop=2e-5),
    "python loops": lambda: walked(
        "iiwa", loops=[{"kind": "distance", "body": "link7", "other_point": (0, 0, 0), "length": 0.9, "active": False}], bounce_speed=0.1, time_limit=1.0
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", ["pickle", "deepcopy", "copy"])
def test_a_copy_goes_on_bit_for_bit(case, way):
    sim = CASES[case]()
    for _ in range(60):
        sim.step()
    other = {"pickle": lambda s: pickle.loads(pickle.dumps(s)), "deepcopy": copy.deepcopy, "copy": copy.copy}[way](sim)
    assert other._settings == sim._settings
    assert (other.time, other.loop_active) == (sim.time, sim.loop_active)
    for _ in range(40):
        a, b = sim.step(), other.step()
        assert (a.q == b.q).all()
        assert (a.v == b.v).all()
        assert (a.contacts.force == b.contacts.force).all()
        assert (a.status, a.iterations, a.sleeping) == (b.status, b.iterations, b.sleeping)
    # two worlds: one may go elsewhere
    other.reset()
    assert sim.time != other.time


def test_another_process_goes_on_bit_for_bit(tmp_path):
    sim = CASES["loops and contacts"]()
    (tmp_path / "sim.pickle").write_bytes(pickle.dumps(sim))
    script = "import pickle, sys; sim = pickle.load(open(sys.argv[1], 'rb')); [sim.step() for _ in range(25)]; sys.stdout.write(sim.q.tobytes().hex())"
    there = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, tmp_path / "sim.pickle"], capture_output=True, text=True, check=True
    ).stdout
    for _ in range(25):
        sim.step()
    assert there == sim.q.tobytes().hex()


def test_what_is_shown_stays_behind():
    sim = walked("iiwa", steps=3)
    sim.mujoco_model.geom_rgba[:] = 1
    other = copy.deepcopy(sim)
    assert not (other.mujoco_model.geom_rgba == 1).all()


# ---- keyframes ------------------------------------------------------------------------------------------------------------


def test_reset_by_name_is_the_keyframe():
    text = (
        '<mujoco><option timestep=".001"/><worldbody><body><joint axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body></worldbody>'
        '<keyframe><key name="home" qpos=".4"/><key name="thrown" qpos=".1" qvel="2"/></keyframe></mujoco>'
    )
    sim = dl.Simulator(text)
    m = mujoco.MjModel.from_xml_string(text)
    for name in ("home", "thrown"):
        d = mujoco.MjData(m)
        mujoco.mj_resetDataKeyframe(m, d, m.key(name).id)
        sim.step()
        sim.reset(name)
        assert (sim.q == d.qpos).all()
        assert (sim.v == d.qvel).all()
        assert sim.time == 0
    sim.reset("thrown", v=[5.0], time=3.0)
    assert (sim.v[0], sim.time) == (5.0, 3.0)
    with pytest.raises(UnknownNameError, match=r"keyframe 'hom' does not exist. Did you mean 'home'"):
        sim.reset("hom")
    assert sim.v[0] == 5.0


# ---- wrenches -------------------------------------------------------------------------------------------------------------


def pushed(nbody):
    push = np.zeros((nbody, 6))
    push[2] = (3.0, -2.0, 15.0, 0.1, 0.2, -0.3)
    return push


def test_wrenches_in_a_run_and_a_rollout_are_those_of_steps():
    model = dl.scenes.box_stack(2)
    push = pushed(model.nbody)
    sims = [dl.Simulator(model) for _ in range(3)]
    by_step = [sims[0].step(external_forces=push).q for _ in range(60)]
    still = sims[1].run(0.06, external_forces=push, progress=False)
    moving = sims[2].run(0.06, external_forces=lambda t, q, v: push, progress=False)
    rolled = dl.rollout(model, [model.neutral()], external_forces=np.broadcast_to(push, (1, 60, *push.shape)))
    for q in (still.q[1:], moving.q[1:], rolled.q[0]):
        assert (q == by_step).all()
    assert by_step[-1][9] > model.neutral()[9] + 1e-3  # it flies


def test_a_wrench_that_changes_is_that_of_its_step():
    model = dl.scenes.box_stack(1)
    high = model.neutral()
    high[2] += 1
    force = np.zeros((1, 100, 2, 6))
    force[0, :, 1, 2] = model.mass * 9.81 + np.sin(0.1 * np.arange(100))
    rolled = dl.rollout(model, [high], external_forces=force)
    # dt Σ F / m of what is not weight
    agree(rolled.v[0, :, 2], np.cumsum(np.sin(0.1 * np.arange(100))) * 1e-3 / model.mass, 1e-12, 0.1)
    sim = dl.Simulator(model)
    sim.reset(high)
    motion = sim.run(0.1, external_forces=lambda t, q, v: force[0, round(t / 1e-3)], progress=False)
    assert (motion.q[1:] == rolled.q[0]).all()


@pytest.mark.parametrize(
    ("bad", "error"), [(np.zeros((2, 6)), ArgumentError), (np.zeros(6), ArgumentError), (np.full((3, 6), np.nan), NotFiniteError)]
)
def test_bad_wrenches_are_named(bad, error):
    model = dl.scenes.box_stack(2)
    with pytest.raises(error, match="external_forces: "):
        dl.Simulator(model).run(0.01, external_forces=bad, progress=False)
    with pytest.raises(ArgumentError, match="external_forces: expected shape"):
        dl.rollout(model, [model.neutral()], external_forces=bad)


# ---- contacts -------------------------------------------------------------------------------------------------------------


def test_contacts_tell_their_shapes_distances_and_frames(tmp_path):
    sim = dl.Simulator(dl.scenes.on_floor("go2"))
    sim.reset("home")
    motion = sim.run(0.3, progress=False)
    m = sim.mujoco_model
    step = sim.step()
    contacts = step.contacts
    assert len(contacts) >= 4
    for geoms, bodies in zip(contacts.geoms, contacts.bodies, strict=True):
        assert m.geom_bodyid[geoms].tolist() == bodies.tolist()
    # MuJoCo finds the same pairs at the same place; what is about to touch is a contact too
    d = mujoco.MjData(m)
    d.qpos[:] = motion.q[-1]
    mujoco.mj_forward(m, d)
    theirs = {tuple(sorted(c.geom.tolist())): c.dist for c in d.contact if c.dist < 0}
    ours = {tuple(sorted(g)): x for g, x in zip(contacts.geoms.tolist(), contacts.distance, strict=True)}
    assert theirs.keys() <= ours.keys()
    for pair, distance in theirs.items():
        assert ours[pair] == pytest.approx(distance, abs=2e-5)  # the slop, and points that stay from step to step
    # axes: orthonormal, right-handed, the normal first; forces in the cone of their friction
    frames = contacts.frame
    agree(frames @ frames.transpose(0, 2, 1), np.tile(np.eye(3), (len(contacts), 1, 1)), 1e-14, 1.0)
    agree(np.linalg.det(frames), np.ones(len(contacts)), 1e-14)
    agree(frames[:, 0], contacts.normal, 1e-15)
    local = np.einsum("kij,kj->ki", frames, contacts.force)
    assert (np.hypot(local[:, 1], local[:, 2]) <= contacts.friction * local[:, 0] + 1e-6).all()
    # a problem of the next step has the same axes
    problem = sim.contact_problem()
    again = sim.step().contacts
    agree(problem.frames, again.frame, 1e-14, 1.0)
    # and they stay in files
    kept = dl.Trajectory.load(motion.save(tmp_path / "motion"))
    assert (kept.contact_geoms == motion.contact_geoms).all()
    assert (kept.contact_distance == motion.contact_distance).all()
    assert (kept.contacts(-1).geoms == motion.contacts(-1).geoms).all()
    assert (kept.contacts(-1).distance < 1e-3).all()
    assert motion.contact_geoms.min() >= 0


def test_loop_forces_stay_in_files_and_slices(tmp_path):
    sim = dl.Simulator(
        dl.scenes.four_bar(), loops=[{"kind": "distance", "name": "strut", "body": "coupler", "other_point": (5, 0, 0), "active": False}]
    )
    motion = sim.run(0.1, every=5, progress=False)
    kept = dl.Trajectory.load(motion.save(tmp_path / "motion"))
    assert kept.model.loops == motion.model.loops
    assert (kept.loop_forces == motion.loop_forces).all()
    assert (motion[3:9].loop_force("pin") == motion.loop_force("pin")[3:9]).all()
    assert motion.loop_force("strut").shape == (21, 1)
    assert not motion.loop_force("strut").any()
    # each frame has what its own step bore
    other = dl.Simulator(dl.scenes.four_bar())
    steps = [other.step() for _ in range(100)]
    for frame, step in zip(motion.loop_force("pin")[1:], steps[4::5], strict=True):
        assert (frame == step.loop_forces["pin"]).all()


def test_files_without_the_new_arrays_are_read(tmp_path):
    motion = dl.Simulator(dl.scenes.four_bar()).run(0.01, progress=False)
    path = motion.save(tmp_path / "motion")
    with np.load(path) as file:
        old = {name: file[name] for name in file.files if name not in ("loop_forces", "contact_geoms", "contact_distance", "sleeping")}
    np.savez(tmp_path / "old.npz", **old)
    kept = dl.Trajectory.load(tmp_path / "old.npz")
    assert kept.loop_forces.shape == (11, 3)
    assert not kept.loop_forces.any()


def test_contacts_made_by_hand_may_leave_shapes_out():
    made = dl.Contacts(np.zeros((2, 3)), np.tile((0.0, 0, 1), (2, 1)), np.zeros((2, 3)), np.ones(2), np.zeros((2, 2), dtype=int))
    assert made.geoms.tolist() == [[-1, -1]] * 2
    assert made.distance.tolist() == [0, 0]
    with pytest.raises(ArgumentError, match=r"distance: expected shape \(2,\)"):
        dl.Contacts(made.position, made.normal, made.force, made.friction, made.bodies, distance=np.zeros(3))
