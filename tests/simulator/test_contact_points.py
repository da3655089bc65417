"""Which points of a patch are contacts, and what a step keeps of the one before: points, impulses, and a bound on how fast bodies leave each other."""

import copy

import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull

import delassus as dl
from delassus.simulator.collision_model import collision_model

WORLD = "<mujoco><option timestep='.001'/><worldbody>{}</worldbody></mujoco>"
FLOOR = '<geom type="plane" size="5 5 0.1"/>'
CUBE = '<body pos="{} 0 {}" euler="0 0 {}"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>'


def listed(sim, q):
    """Positions of all contacts that MuJoCo lists at q, by pair of geoms."""
    data = mujoco.MjData(sim.mujoco_model)
    data.qpos[:] = q
    mujoco.mj_kinematics(sim.mujoco_model, data)
    mujoco.mj_collision(sim.mujoco_model, data)
    pairs = {}
    for c in data.contact[: data.ncon]:
        pairs.setdefault(tuple(c.geom), []).append(np.array(c.pos))
    return pairs


def tower(shift, turn, count):
    return dl.Simulator(WORLD.format(FLOOR + "".join(CUBE.format(shift * k, 0.1 + 0.2 * k, turn * k) for k in range(count))))


@pytest.mark.parametrize("turn", [10.0, 30.0, 45.0, 80.0])
def test_the_points_of_a_contact_span_the_patch(turn):
    """Two turned faces meet in an octagon: four of its corners that follow each other leave the middle, and with it the weight, at their border."""
    sim = dl.Simulator(WORLD.format('<geom type="box" size="0.1 0.1 0.1" pos="0 0 0.1"/>' + CUBE.format(0, 0.3, turn)))
    points = np.array(next(iter(listed(sim, sim.q).values())))[:, :2]
    assert len(points) == 8
    step = sim.step()
    kept = step.contacts.position[:, :2]
    assert len(kept) == 4
    # of the area four of eight corners can have, 1/√2 of a regular octagon, most; four that follow each other have half of it
    assert ConvexHull(kept).volume > 0.65 * ConvexHull(points).volume
    assert ConvexHull(np.vstack([kept, [[0.0, 0.0]]])).volume == pytest.approx(ConvexHull(kept).volume, rel=1e-9)
    # no point bears more than half of the weight of 8 kg, and nothing turns
    for _ in range(100):
        step = sim.step()
    assert step.contacts.force[:, 2].sum() == pytest.approx(8.0 * 9.81, rel=1e-9)
    assert step.contacts.force[:, 2].max() < 0.5 * 8.0 * 9.81 + 1e-6
    assert np.abs(sim.q[4:6]).max() < 1e-9


def test_points_of_the_step_before_stay_while_faces_rest_on_each_other():
    """MuJoCo lists four points of two faces in one step and one in the next, by a rounding. What stands on four must not rock about one."""
    flickers = 0
    for shift, turn, count in ((0.013, 20, 2), (0.013, 45, 2), (0.013, 60, 2), (0.013, 20, 4), (0.05, 60, 4)):
        sim = tower(shift, turn, count)
        for _ in range(150):
            flickers += min(map(len, listed(sim, sim.q).values())) < 4
            assert len(sim.step().contacts) == 4 * count
        # what is within the slop, 1e-5 m, touches: a face of 0.2 m may lean by 5e-5 rad, half of which is in the quaternion
        assert np.abs(sim.q.reshape(-1, 7)[:, 4:6]).max() < 2.5e-5
    assert flickers > 0  # else this asks nothing


def test_points_that_have_left_are_not_kept():
    """A cube that is turned over its edge stands on the edge alone, and one that slides has points where it is."""
    sim = tower(0.0, 0.0, 1)
    for _ in range(5):
        assert len(sim.step().contacts) == 4
    turning = np.zeros((2, 6))
    turning[1, 4] = 1.5 * 8.0 * 9.81 * 0.1  # half as much again as its weight can hold
    for _ in range(60):
        lifted = abs(sim.q[5]) > 0.01  # 4 mm at the far edge
        assert len(sim.step(external_forces=turning).contacts) == 2 or not lifted
    assert lifted
    sliding = dl.Simulator(WORLD.format(FLOOR + CUBE.format(0, 0.1, 0)))
    sliding.reset(v=[2.0, 0, 0, 0, 0, 0])
    for _ in range(100):
        step = sliding.step()
        corners = np.sort(step.contacts.position[:, 0] - sliding.q[0])
        assert np.allclose(corners, [-0.1, -0.1, 0.1, 0.1], atol=2.5e-3)  # q is that after the step


def iterations(sim, steps):
    return [sim.step().iterations for _ in range(steps)]


def test_what_rests_needs_no_iterations():
    """Impulses of the step before solve the next one: none are iterated for. Without them each step starts from nothing."""
    sim = tower(0.0, 0.0, 1)
    iterations(sim, 20)
    assert iterations(sim, 30) == [0] * 30
    sim.reset(sim.q, sim.v)
    assert sim.step().iterations > 0
    stack = dl.Simulator(dl.scenes.box_stack(6))
    cold = stack.step().iterations
    iterations(stack, 30)
    assert np.mean(iterations(stack, 100)) < 0.5 * cold


def test_loops_limits_and_dry_friction_start_from_the_step_before():
    """A pendulum pushed on its limit, one that friction holds, and a hanging loop: each at rest from the start."""
    hinge = '<body pos="0 0 0"><joint type="hinge" axis="0 1 0" {}/><geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" contype="0" conaffinity="0"/>'
    limited = WORLD.format(hinge.format('limited="true" range="-90 0"') + "</body>")
    rubbing = WORLD.format(hinge.format('frictionloss="5"') + "</body>")
    held = WORLD.format(hinge.format("").replace("<body ", '<body name="a" ') + "</body>").replace(
        "</mujoco>", '<equality><connect body1="a" anchor="0.3 0 0"/></equality></mujoco>'
    )
    for text in (limited, rubbing, held):
        sim = dl.Simulator(text)
        assert sim.step().iterations > 0
        iterations(sim, 10)
        # loops alone are solved anew, at once: impulses that redundant rows do not feel are not carried on
        # what is within the tolerance already may be made better by an iteration
        assert max(iterations(sim, 20)) <= 1
        assert np.abs(sim.v).max() < 1e-6


@pytest.mark.parametrize("timestep", [5e-4, 2e-3])
def test_what_is_deep_inside_leaves_with_a_metre_a_second_and_ends_at_rest(timestep):
    """A cube 5 cm in the floor: not thrown out within a step, and no velocity is left of it."""
    sim = dl.Simulator(WORLD.format(FLOOR + CUBE.format(0, 0.05, 0)), timestep=timestep)
    last = sim.q[2]
    for _ in range(round(0.04 / timestep)):
        step = sim.step()
        assert sim.q[2] - last == pytest.approx(timestep, rel=1e-3)  # 1 m/s
        assert np.abs(step.v).max() < 1e-6
        last = sim.q[2]
    for _ in range(round(0.02 / timestep)):
        sim.step()
    assert sim.q[2] == pytest.approx(0.1, abs=2e-5)  # the slop is 1e-5
    assert np.abs(sim.v).max() < 1e-6


def test_a_joint_far_beyond_its_limit_comes_back_with_a_radian_a_second():
    sim = dl.Simulator(
        WORLD.format('<body><joint type="hinge" axis="0 0 1" limited="true" range="-10 10"/><geom type="box" size="0.2 0.1 0.1"/></body>')
    )
    sim.reset([np.radians(10) + 0.3])
    for k in range(1, 250):
        step = sim.step()
        assert sim.q[0] == pytest.approx(np.radians(10) + 0.3 - 1e-3 * k, abs=1e-5)
        assert abs(step.v[0]) < 1e-6
    for _ in range(100):
        sim.step()
    assert sim.q[0] == pytest.approx(np.radians(10), abs=2e-5)


def test_every_point_starts_from_its_own_impulse_also_where_points_are_near():
    """A cube of 8 mm whose mass is in one corner: four forces that differ by far, at points nearer to each other than those of other bodies are to themselves."""
    body = '<body pos="0 0 0.004"><freejoint/><inertial pos="0.002 0.001 0" mass="1" diaginertia="1e-4 1e-4 1e-4"/><geom type="box" size="0.004 0.004 0.004"/></body>'
    sim = dl.Simulator(WORLD.format(FLOOR + body))
    iterations(sim, 20)
    step = sim.step()
    bears = step.contacts.force[:, 2]
    assert len(bears) == 4
    assert bears.max() > 3 * bears.min()
    problem = sim.contact_problem()
    starts = np.einsum("ki,kij->kj", problem.warm_start.reshape(-1, 3), problem.frames) / problem.timestep
    assert np.allclose(starts, step.contacts.force, rtol=1e-9, atol=1e-12)
    assert iterations(sim, 20) == [0] * 20


def test_what_slides_starts_with_the_penalty_of_the_step_before():
    """Boxes that slide on each other: the first step has to look for its penalty and factors some times; from then on one factor a step is enough."""
    cube = CUBE.replace('type="box"', 'type="box" friction="0.3"')
    sim = dl.Simulator(WORLD.format(FLOOR + "".join(cube.format(0.02 * k, 0.1 + 0.2 * k, 17 * k) for k in range(3))), solver="admm")
    v = np.zeros(18)
    v[[0, 6, 12, 5]] = 1.0, 1.5, 0.5, 1.0
    sim.reset(v=v)
    first, *rest = [sim.step() for _ in range(15)]
    assert first.factorizations > 1
    assert [step.factorizations for step in rest] == [1] * 14
    assert min(step.iterations for step in rest) > 0


def test_the_deepest_point_of_a_patch_is_a_contact():
    """Of two faces that are almost parallel one or two corners bear. Points apart by a tenth of a millimetre span more, and cannot hold the weight in their place."""
    text = WORLD.format(
        '<geom type="box" size="0.1 0.1 0.1" pos="0 0 0.1"/><body pos="0 0 0.3"><freejoint/><geom type="box" size="0.08 0.06 0.1"/></body>'
    )
    m = mujoco.MjModel.from_xml_string(text)
    m.geom_margin[:], m.body_margin[:] = 1e-3, m.body_margin + 1e-3
    sim, data, rng, many = dl.Simulator(text), mujoco.MjData(m), np.random.default_rng(0), 0
    for _ in range(400):
        angles = 10 ** rng.uniform(-4, -2) * rng.standard_normal(3)
        angles[2] = rng.uniform(0, np.pi)
        mujoco.mju_euler2Quat(data.qpos[3:], angles, "xyz")
        data.qpos[:3] = *rng.uniform(-0.05, 0.05, 2), 0.3
        mujoco.mj_fwdPosition(m, data)
        if not data.ncon:
            continue
        # down to a depth of 10 µm
        data.qpos[2] -= data.contact.dist.min() + 1e-5
        mujoco.mj_fwdPosition(m, data)
        many += data.ncon > 4
        sim.reset(data.qpos)
        assert sim.contact_problem().gaps.min() == pytest.approx(data.contact.dist.min(), abs=1e-12)
    assert many > 100


COUPLED = '<equality><joint joint1="a" joint2="b"/></equality>'


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize(("limited", "equality"), [("a", ""), ("b", COUPLED)])
def test_a_joint_that_a_blow_drives_to_its_limit_stops_there(side, restitution, limited, equality):
    """A slider at rest 3 mm before its end, or before that of one it is coupled to, is struck so that it would go 3.3 mm or more in the step: its limit is not near by the velocity that it had."""
    ball, span = '<geom type="sphere" size="0.1" mass="{}"/>', {1: "-1 0.003", -1: "-0.003 1"}[side]
    ranges = {name: f'range="{span}"' if name == limited else "" for name in "ab"}
    bodies = (
        f'<body><joint name="a" type="slide" axis="1 0 0" {ranges["a"]}/>{ball.format(1)}</body>'
        f'<body pos="0 1 0"><joint name="b" type="slide" axis="1 0 0" {ranges["b"]}/>{ball.format(1)}</body>'
        f'<body pos="{-0.2005 * side} 0 0"><freejoint/>{ball.format(1)}</body>'
    )
    sim = dl.Simulator(
        f'<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody>{bodies}</worldbody>{equality}</mujoco>', restitution=restitution
    )
    v = sim.v.copy()
    v[2] = 10.0 * side
    sim.reset(v=v)
    reached = 0
    for _ in range(5):
        step = sim.step()
        assert step.limit_error < 3e-5
        # what is in loops goes half of its step before the blow, what strikes it does not: they may end in each other
        assert step.status == "solved" or (equality and step.status == "penetrating")
        reached = max(reached, side * step.q["ab".index(limited)])
    assert reached == pytest.approx(0.003, abs=3e-5)


@pytest.mark.parametrize("robot", ["go2", "g1", "cassie", "talos", "atlas_hands"])
def test_contacts_are_the_same_without_trees_of_boxes(robot):
    """Where bodies have few shapes, MuJoCo looks at all pairs by their spheres: the same contacts in another order."""
    model = dl.scenes.on_floor(robot)
    without = collision_model(model.to_mujoco())
    trees = int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    assert without.opt.disableflags & trees
    having = copy.copy(without)
    having.opt.disableflags &= ~trees
    rng, found = np.random.default_rng(0), 0
    for _ in range(40):
        q = model.random(rng)
        q[:3] = 0, 0, 0.3
        a, b = (mujoco.MjData(m) for m in (without, having))
        for m, d in ((without, a), (having, b)):
            d.qpos[:] = q
            mujoco.mj_kinematics(m, d)
            mujoco.mj_collision(m, d)
        rows = [sorted(np.column_stack((d.contact.geom, d.contact.dist, d.contact.pos)).tolist()) for d in (a, b)]
        assert rows[0] == rows[1]
        found += a.ncon
    assert found > 100
