"""Sleep: what is at rest is left alone, wakes when something happens to it, and goes on as if it had never slept."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, DelassusError
from delassus.simulator import mujoco_library, snapshot

GRAVITY = 9.81
FLOOR = '<geom type="plane" size="40 40 1"/>'


def box(x, z, name="", y=0.0):
    return f'<body name="{name or f"b{x}{z}"}" pos="{x} {y} {z}"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'


def scene(*bodies, more="", option=""):
    return f"<mujoco><option timestep='.001'/>{option}<worldbody>{FLOOR}{''.join(bodies)}</worldbody>{more}</mujoco>"


ARM = (
    '<body pos="{0} 3 0.3"><joint name="s{0}" axis="0 1 0" stiffness="2" damping="1" range="-60 60" limited="true"/><geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.03" mass="1"/>'
    '<body pos="0.25 0 0"><joint name="e{0}" axis="0 1 0" frictionloss="0.2" damping="0.5"/><geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.03" mass="0.5"/></body></body>'
)
TWO_ARMS = scene(
    ARM.format(0), ARM.format(5), more='<actuator><position joint="e0" kp="20" kv="1"/><position joint="e5" kp="20" kv="1"/></actuator>'
)
STACK = [box(0, 0.1 + 0.2 * k) for k in range(3)]


def run(sim, n, **inputs):
    return [sim.step(**inputs) for _ in range(n)]


def until_asleep(sim, trees, n=3000, **inputs):
    for _ in range(n):
        if (step := sim.step(**inputs)).sleeping == trees:
            return step
    raise AssertionError(f"{step.sleeping} of {trees} trees sleep")


def test_a_stack_at_rest_sleeps_when_its_time_has_come_and_stays_as_it_is():
    sim = dl.Simulator(scene(*STACK), sleep_after=0.05)
    steps = run(sim, 120)
    first = next(k for k, s in enumerate(steps) if s.sleeping)
    assert first == 49  # 50 steps of 1 ms at rest
    asleep = steps[first]
    assert (asleep.sleeping, asleep.islands) == (3, 1)
    for s in steps[first + 1 :]:
        assert (s.sleeping, s.islands, s.status, s.iterations) == (3, 0, "solved", 0)
        assert np.array_equal(s.q, asleep.q)
        assert not s.v.any()
        # contacts as they were last solved, and they carry the stack
        for name in ("position", "normal", "force", "friction", "bodies"):
            assert np.array_equal(getattr(s.contacts, name), getattr(asleep.contacts, name))
        assert np.allclose(s.body_forces(4)[1:], [[0, 0, GRAVITY]] * 3, atol=1e-3)
        assert s.penetration == asleep.penetration > 0
    assert asleep.time + 0.07 == pytest.approx(sim.time)


def test_until_something_sleeps_and_where_nothing_may_no_bit_differs():
    text = scene(*STACK, box(3, 0.6), ARM.format(6))
    never, late, slow = (dl.Simulator(text, **options) for options in ({}, {"sleep_after": 0.7}, {"sleep_after": 0.01, "sleep_speed": 0.0}))
    for k in range(900):
        a, b, c = never.step(), late.step(), slow.step()
        assert np.array_equal(a.q, c.q)
        assert a.sleeping == c.sleeping == 0
        if k < 699:
            assert b.sleeping == 0
            assert np.array_equal(a.q, b.q)
            assert np.array_equal(a.contacts.force, b.contacts.force)
    assert b.sleeping > 0
    # what never sleeps is not changed by what does
    assert np.array_equal(a.q[21:28], b.q[21:28])


def test_a_stack_that_a_ball_wakes_goes_on_as_one_that_never_slept():
    ball = '<body pos="0 0 1.5"><freejoint/><geom size="0.05" mass="0.2"/></body>'
    awake, slept = dl.Simulator(scene(*STACK, ball)), dl.Simulator(scene(*STACK, ball), sleep_after=0.1)
    seen, jump = set(), 0.0
    for _ in range(700):
        before = slept.v
        a, b = awake.step(), slept.step()
        seen.add(b.sleeping)
        if b.sleeping == 3 and not before[:18].any():
            assert (b.islands, len(b.contacts)) == (1, 12)
            assert np.allclose(b.contacts.force, a.contacts.force, atol=0.1)
            assert np.allclose(b.body_forces(5)[1:4], [[0, 0, GRAVITY]] * 3, atol=1e-2)
        if b.sleeping == 0 and 3 in seen and not before[:18].any():
            jump = max(jump, abs(b.v[:18]).max())  # the first step after waking
        assert np.allclose(a.q, b.q, atol=2e-6)
        assert np.allclose(a.v, b.v, atol=2e-4)
        assert b.status == "solved"
    assert seen == {0, 3, 4}  # the stack, at the end the ball on it too
    assert jump < 1e-5


def test_waking_needs_no_more_iterations_than_staying_awake():
    sim = dl.Simulator(scene(*STACK), sleep_after=0.1)
    until_asleep(sim, 3)
    push = np.zeros((sim.model.nbody, 6))
    push[1, 0] = 1e-9
    step = sim.step(external_forces=push)
    assert (step.islands, step.sleeping, step.status) == (1, 0, "solved")
    assert step.iterations <= 2  # from the forces it slept with
    assert abs(step.v).max() < 1e-5


def test_a_box_that_slides_into_one_that_sleeps_wakes_it():
    sim = dl.Simulator(scene(box(0, 0.1, "still"), box(1, 0.1, "moving"), box(9, 0.1, "far")), sleep_after=0.05)
    until_asleep(sim, 3)
    v = np.zeros(18)
    v[6] = -4.5
    sim.reset(sim.q, v)  # wakes all
    assert sim.step().sleeping == 0
    counts, woke = [], None
    for k in range(600):
        step = sim.step()
        counts.append((step.sleeping, step.islands))
        if woke is None and (2, 1) in counts and step.sleeping == 1:
            woke = k
    assert (2, 1) in counts  # two sleep while the third comes
    assert counts[woke] == (1, 1)  # one island of two
    assert counts[-1] == (3, 0)
    assert sim.q[0] < -0.05  # it was pushed
    assert np.allclose(sim.q[14:17], [9, 0, 0.1], atol=1e-4)


@pytest.mark.parametrize("what", ["tau", "control", "wrench"])
def test_what_acts_on_a_tree_wakes_it_and_no_other(what):
    sim = dl.Simulator(TWO_ARMS, sleep_after=0.05)
    control, tau, wrench = np.array([0.1, 0.1]), np.zeros(4), np.zeros((sim.model.nbody, 6))
    wrench[2, 2] = 0.1  # what stays the same does not keep anything awake
    inputs = {"control": control, "tau": tau, "external_forces": wrench}
    until_asleep(sim, 2, **inputs)
    assert sim.step(**inputs).sleeping == 2
    {"tau": tau, "control": control, "wrench": wrench[4]}[what][1 if what == "control" else 3] += 0.5
    step = sim.step(**inputs)
    assert (step.sleeping, step.islands) == (1, 1)
    assert not step.v[:2].any()
    assert step.v[2:].any()
    step = until_asleep(sim, 2, **inputs)
    # what goes away is a change too
    assert sim.step(control=control, tau=tau).sleeping == (0 if what == "wrench" else 1)


def test_control_beyond_its_range_changes_nothing_and_wakes_nothing():
    text = TWO_ARMS.replace('<position joint="e0"', '<position ctrllimited="true" ctrlrange="-1 0.1" joint="e0"')
    sim = dl.Simulator(text, sleep_after=0.05)
    until_asleep(sim, 2, control=[0.1, 0.1])
    assert sim.step(control=[0.7, 0.1]).sleeping == 2


def test_limits_friction_and_loops_sleep_and_wake_as_if_they_had_not():
    bar = (
        '<body pos="0 6 1"><joint axis="0 1 0" damping=".3"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" contype="0"/><body name="coupler" pos="0 0 -.3"><joint axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 .5 0 0" size=".02" contype="0"/></body></body><body name="rocker" pos=".5 6 1"><joint axis="0 1 0" damping=".3"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" contype="0"/></body>'
    )
    ball = '<body pos="0 20 400"><freejoint/><geom size="0.1"/></body>'  # falls all the time, so that only a part of the world sleeps
    limited = ARM.format(0).replace("-60 60", "-60 20")
    text = scene(limited, bar, box(9, 0.1), ball, more='<equality><connect body1="coupler" body2="rocker" anchor=".5 0 0"/></equality>')
    awake, slept = dl.Simulator(text), dl.Simulator(text, sleep_after=0.1)
    start = np.zeros(awake.model.nv)
    start[2] = 1.0
    for sim in (awake, slept):
        sim.reset(v=start)
    steps = [(awake.step(), slept.step())]
    while steps[-1][1].sleeping < 4 and len(steps) < 6000:
        steps.append((awake.step(), slept.step()))
    tau = np.full(awake.model.nv, 0.3)
    then = slept.contact_problem(tau)
    steps += [(awake.step(), slept.step()) for _ in range(500)]
    assert steps[-1][1].sleeping == 4
    assert steps[-1][0].limit_error < 1e-4
    # rows of every kind start from what they last bore, however long ago
    now = slept.contact_problem(tau)
    for kind in ("loop", "friction", "limit", "contact"):
        assert np.abs(now.warm_start[now.kinds == kind]).max() > 1e-5
    assert np.array_equal(now.warm_start, then.warm_start)
    first = awake.step(tau), slept.step(tau)
    steps += [(awake.step(tau), slept.step(tau)) for _ in range(200)]
    for a, b in (*steps, first):
        assert np.allclose(a.q, b.q, atol=2e-5)
        assert b.status == a.status == "solved"
    assert first[1].sleeping == 0
    assert np.allclose(first[0].v, first[1].v, atol=2e-4)


def test_nothing_sleeps_that_moves_however_it_moves():
    lift = '<body pos="5 0 0.1"><joint name="lift" type="slide" axis="0 0 1" damping="1"/><geom type="box" size="0.2 0.2 0.02" mass="1"/></body>'
    swing = '<body pos="8 0 2"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -1" size="0.02" mass="1" contype="0"/></body>'
    sunk = box(12, 0.02, "sunk")
    sim = dl.Simulator(scene(lift, swing, sunk, more='<actuator><position joint="lift" kp="2000" kv="50"/></actuator>'), sleep_after=0.03)
    v = np.zeros(sim.model.nv)
    v[1] = 0.01
    sim.reset(v=v)
    # a servo that climbs by 2 mm/s with what it holds, a pendulum of 1 cm/s, and a box that comes out of the floor without a velocity
    for k in range(1500):
        before = sim.q
        step = sim.step(control=[2e-6 * k])
        if step.q[4] < 0.099:
            assert step.sleeping == 0
            assert step.q[4] > before[4]
    assert step.sleeping == 1
    assert step.q[0] == pytest.approx(2e-6 * 1500, abs=6e-3)
    assert step.q[4] == pytest.approx(0.1, abs=1e-4)


def test_what_goes_through_a_sleeper_is_told():
    plate = '<body pos="0 0 0.5"><freejoint/><geom type="box" size="0.005 0.5 0.5" mass="5"/></body>'
    ball = '<body pos="-1.05 0 8"><freejoint/><geom size="0.02" mass="0.01"/></body>'
    sim = dl.Simulator(scene(plate, ball), sleep_after=0.02)
    asleep = until_asleep(sim, 1)
    saved = sim.save()
    q, v = asleep.q, asleep.v
    q[7:10], v[6] = [-1.05, 0, 0.5], 200.0  # 0.2 m in a step: it is seen on neither side
    for _ in range(2):
        sim.reset(q, v)
        assert sum(s.tunnelled for s in run(sim, 10)) == 1  # awake, all of it
    sim.restore(saved)
    state = saved[snapshot.HEADER :].copy()  # the same while the plate sleeps
    state[3:17], state[18:30] = q, v
    sim.restore(snapshot.seal(sim._identity, state))
    steps = run(sim, 10)
    assert sum(s.tunnelled for s in steps) == 1
    assert {s.sleeping for s in steps} == {1}


@pytest.mark.parametrize("pause", [20, 65, 130])
def test_snapshots_before_and_during_sleep_go_on_with_the_same_bits(pause):
    ball = '<body pos="0.02 0 0.72"><freejoint/><geom size="0.05" mass="0.2"/></body>'
    options = {"sleep_after": 0.06}
    text = scene(*STACK, ball, box(3, 0.1), ARM.format(7))
    sim = dl.Simulator(text, **options)
    run(sim, pause)
    saved = sim.save()
    steps = run(sim, 400)
    kinds = {s.sleeping for s in steps}
    assert len(kinds) > 2
    other = dl.Simulator(text, threads=2, **options)
    run(other, 333)
    for again in (sim, other):
        again.restore(saved)
        assert np.array_equal(again.save(), saved)
        for s in steps:
            r = again.step()
            assert np.array_equal(r.q, s.q)
            assert np.array_equal(r.v, s.v)
            assert np.array_equal(r.contacts.force, s.contacts.force)
            assert (r.sleeping, r.islands, r.status, r.iterations) == (s.sleeping, s.islands, s.status, s.iterations)


def test_snapshots_know_how_things_fall_asleep():
    text = scene(*STACK)
    sim = dl.Simulator(text, sleep_after=0.05)
    until_asleep(sim, 3)
    for options in ({}, {"sleep_after": 0.06}, {"sleep_after": 0.05, "sleep_speed": 1e-3}):
        with pytest.raises(ArgumentError, match="options"):
            dl.Simulator(text, **options).restore(sim.save())


def test_snapshots_of_sleepers_that_are_sealed_anew_are_refused_or_step():
    sim = dl.Simulator(scene(*STACK, ARM.format(5)), sleep_after=0.05)
    until_asleep(sim, 4)
    good, rng, outcomes = sim.save(), np.random.default_rng(0), [0, 0]
    state = good[snapshot.HEADER :]
    for k in range(800):
        bad = state.copy()
        bad[rng.integers(2, len(bad))] = rng.choice([-1.0, 0.0, 1.0, 0.5, 3.0, 49.0, 50.0, 51.0, 1e9, float(len(bad))])
        try:
            sim.restore(snapshot.seal(sim._identity, bad[: rng.integers(len(bad))] if k % 9 == 0 else bad))
        except DelassusError:
            outcomes[0] += 1
            continue
        outcomes[1] += 1
        try:
            sim.step()
            sim.step(np.ones(sim.model.nv))
        except DelassusError:
            pass
        sim.restore(good)
    assert min(outcomes) > 50


def test_reset_wakes_everything():
    sim = dl.Simulator(scene(*STACK), sleep_after=0.05)
    until_asleep(sim, 3)
    sim.reset(sim.q)
    assert (sim.step().sleeping, sim.step().islands) == (0, 1)


def test_a_world_that_sleeps_has_no_problem_to_solve():
    sim = dl.Simulator(scene(*STACK, box(3, 1.5)), sleep_after=0.05)
    assert len(sim.contact_problem().g) == 36  # twelve contacts
    until_asleep(sim, 3)
    problem = sim.contact_problem()
    assert len(problem.g) == 0  # the stack sleeps, the box falls
    tau = np.zeros(sim.model.nv)
    tau[0] = 1.0
    assert len(sim.contact_problem(tau).g) == 36
    before = sim.save()
    sim.contact_problem(tau)
    assert np.array_equal(sim.save(), before)


def test_trajectories_tell_what_sleeps_and_files_keep_it(tmp_path):
    sim = dl.Simulator(scene(*STACK, box(3, 1.0)), sleep_after=0.05)
    motion = sim.run(0.3, every=10, progress=False)
    assert motion.sleeping[0] == 0
    assert set(motion.sleeping.tolist()) == {0, 3}
    assert np.array_equal(dl.Trajectory.load(motion.save(tmp_path / "motion.npz")).sleeping, motion.sleeping)
    assert np.array_equal(motion[5:20:3].sleeping, motion.sleeping[5:20:3])
    # as files of earlier versions: without it
    with np.load(tmp_path / "motion.npz") as file:
        arrays = {name: file[name] for name in file.files if name != "sleeping"}
    np.savez(tmp_path / "early.npz", **arrays)
    assert not dl.Trajectory.load(tmp_path / "early.npz").sleeping.any()


def test_worlds_of_a_rollout_sleep_as_a_simulator_does():
    text = scene(*STACK, box(3, 0.5))
    sim = dl.Simulator(text, sleep_after=0.05)
    many = dl.rollout(text, [sim.q, sim.q], steps=500, threads=2, sleep_after=0.05)
    alone = np.array([s.q for s in run(sim, 500)])
    assert sim.step().sleeping == 4
    assert np.array_equal(many.q, [alone, alone])


def test_collisions_that_mujoco_leaves_out_or_not_are_the_same(monkeypatch):
    ball = '<body pos="0.02 0 0.72"><freejoint/><geom size="0.05" mass="0.2"/></body>'
    pair = '<contact><pair geom1="g1" geom2="g2"/></contact>'
    paired = '<body pos="4 0 0.1"><freejoint/><geom name="g1" type="box" size="0.1 0.1 0.1"/></body><body pos="4 0 0.3"><freejoint/><geom name="g2" type="box" size="0.1 0.1 0.1"/></body>'
    text = scene(*STACK, ball, paired, ARM.format(7), more=pair)
    if not mujoco_library._sleep():
        pytest.skip("this version of MuJoCo has no sleep")
    with_help = run(dl.Simulator(text, sleep_after=0.06), 400)
    monkeypatch.setattr(mujoco_library, "_sleep", dict)
    mujoco_library.library.cache_clear()
    try:
        without = run(dl.Simulator(text, sleep_after=0.06), 400)
    finally:
        mujoco_library.library.cache_clear()
    assert {s.sleeping for s in with_help} >= {0, 5}
    for a, b in zip(with_help, without, strict=True):
        assert np.array_equal(a.q, b.q)
        assert np.array_equal(a.contacts.force, b.contacts.force)
        assert a.sleeping == b.sleeping


def test_a_step_asleep_is_differentiated_and_leaves_the_state():
    sim = dl.Simulator(dl.scenes.box_stack(2), sleep_after=0.05)
    run(sim, 150)
    before = sim.save()
    for _ in range(2):
        step = sim.linearize()
        assert step.step.sleeping == 2
        assert np.array_equal(sim.save(), before)
    assert np.array_equal(step.A, np.diag([1.0] * 12 + [0.0] * 12))


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"sleep_after": -1.0}, ArgumentError, "sleep_after"),
        ({"sleep_after": np.nan}, DelassusError, "sleep_after"),
        ({"sleep_after": "soon"}, ArgumentTypeError, "sleep_after"),
        ({"sleep_after": 1.0, "sleep_speed": -1e-3}, ArgumentError, "sleep_speed"),
    ],
    ids=str,
)
def test_options_of_sleep_are_checked(options, error, name):
    with pytest.raises(error, match=name):
        dl.Simulator(dl.scenes.box_stack(1), **options)
