"""Motions beside closed forms: falls, swings, slides, bounces, spins, drives and rests. Errors may be of the order of the timestep, written dt, and no more."""

import math

import mujoco
import numpy as np
import pytest

import delassus as dl
from oracles.drops import drop, energy

G, dt, SLOP = 9.81, 1e-3, 1e-5
NEAR = 3e-5  # velocities at rest [m/s or rad/s]: the solver's tolerance, 1e-6, on bodies of 0.1 m and with what it takes for near


def world(bodies, *, gravity=(0.0, 0.0, -G), floor=True, more=""):
    plane = '<geom type="plane" size="9 9 1" friction="1"/>' if floor else ""
    return f'<mujoco><option timestep=".001" gravity="{gravity[0]} {gravity[1]} {gravity[2]}"/><worldbody>{plane}{bodies}</worldbody>{more}</mujoco>'


def ball(z, friction=1.0, radius=0.1):
    return f'<body pos="0 0 {z}"><freejoint/><geom type="sphere" size="{radius}" mass="1" friction="{friction}"/></body>'


def quiet(sim, seconds, **options):
    return sim.run(seconds, progress=False, **options)


# ---- falls and swings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1e-2, 1e-3])
def test_free_fall_is_half_g_t_squared(step):
    sim = dl.Simulator(world(ball(50), floor=False), timestep=step)
    motion = quiet(sim, 1.0)
    t = motion.times
    assert np.allclose(motion.v[:, 2], -G * t, rtol=0, atol=1e-12)
    # each step falls g dt² / 2 too far
    assert np.allclose(motion.q[:, 2], 50 - G * t**2 / 2 - G * step * t / 2, rtol=0, atol=1e-11)


@pytest.mark.parametrize("amplitude", [0.05, 0.8])
def test_pendulum_swings_with_the_period_of_the_elliptic_integral(amplitude):
    mass, length, inertia = 2.0, 0.7, 0.03
    rod = f'<body><joint axis="0 1 0"/><inertial pos="0 0 {-length}" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/></body>'
    sim = dl.Simulator(world(rod, floor=False))
    sim.reset([amplitude])
    motion = quiet(sim, 10.0)
    x, t = motion.q[:, 0], motion.times
    up = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))
    crossings = t[up] - x[up] * dt / (x[up + 1] - x[up])
    # arithmetic–geometric mean
    a, b = 1.0, math.cos(amplitude / 2)
    for _ in range(6):
        a, b = (a + b) / 2, math.sqrt(a * b)
    omega = math.sqrt(mass * G * length / (inertia + mass * length**2)) * a
    assert len(crossings) >= 4
    # symplectic Euler: (ω dt)² / 24
    assert np.diff(crossings).mean() == pytest.approx(2 * math.pi / omega, rel=(omega * dt) ** 2)
    assert motion.q[:, 0].max() == pytest.approx(amplitude, rel=2 * omega * dt)


# ---- friction -----------------------------------------------------------------------------------------------------------------

BOX = '<body pos="0 0 .1"><freejoint/><geom type="box" size=".15 .1 .1" mass="1" friction=".5"/></body>'


def on_slope(share):
    """Gravity leans by the angle at which ``share`` of the friction limit is used; the floor stays level."""
    angle = math.atan(0.5 * share)
    text = world(BOX, gravity=(G * math.sin(angle), 0, -G * math.cos(angle))).replace('friction="1"', 'friction=".5"')
    return dl.Simulator(text), angle


def test_box_on_a_slope_below_the_friction_limit_does_not_creep_for_ten_seconds():
    sim, _ = on_slope(0.9)
    motion = quiet(sim, 10.0, every=500)
    # it may settle by the slop, and then moves by a tenth of what the contact solver tolerates, 1e-6 m/s, at most
    assert np.abs(motion.q - motion.q[0]).max() < 2 * SLOP
    late = motion.q[motion.times >= 5]
    assert np.abs(late - late[0]).max() < 5e-7


def test_box_on_a_slope_above_the_friction_limit_slides_with_what_friction_leaves():
    sim, angle = on_slope(1.1)
    motion = quiet(sim, 1.0, every=100)
    acceleration = G * (math.sin(angle) - 0.5 * math.cos(angle))
    # friction may come a step late
    assert np.allclose(motion.v[1:, 0], acceleration * motion.times[1:], rtol=0, atol=2 * G * dt)
    assert np.abs(motion.v[1:, 1:]).max() < NEAR
    forces = motion.contacts(-1).force.sum(axis=0)
    assert forces == pytest.approx([-0.5 * G * math.cos(angle), 0, G * math.cos(angle)], abs=NEAR / dt)


def test_sphere_rolls_down_with_five_sevenths_of_the_slope():
    angle = 0.3
    sim = dl.Simulator(world(ball(0.1), gravity=(G * math.sin(angle), 0, -G * math.cos(angle))))
    motion = quiet(sim, 1.0, every=100)
    assert np.allclose(motion.v[1:, 0], 5 / 7 * G * math.sin(angle) * motion.times[1:], rtol=0, atol=2 * G * dt)
    # no slip but for what the sphere sinks in: v = ω r; angular velocity in the body, about y
    assert np.allclose(motion.v[1:, 0], 0.1 * motion.v[1:, 4], rtol=1e-4, atol=1e-5)


def test_sliding_sphere_ends_rolling_with_five_sevenths_of_its_speed():
    sim = dl.Simulator(world(ball(0.1, friction=0.2)).replace('friction="1"', 'friction=".2"'))
    sim.reset(v=[2.0, 0, 0, 0, 0, 0])
    motion = quiet(sim, 1.0)
    end = 2 / 7 * 2.0 / (0.2 * G)
    sliding = (motion.times > 0.01) & (motion.times < end - 0.01)
    assert np.allclose(motion.v[sliding, 0], 2 - 0.2 * G * motion.times[sliding], rtol=0, atol=2 * G * dt)
    rolling = motion.times > end + 0.01
    assert np.allclose(motion.v[rolling, 0], 5 / 7 * 2.0, rtol=0, atol=2 * G * dt)
    assert np.ptp(motion.v[rolling, 0]) < 1e-5


# ---- bounces ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_ball_bounces_to_the_square_of_the_restitution(restitution):
    height = 0.5
    sim = dl.Simulator(world(ball(0.1 + height)), restitution=restitution)
    fall = math.sqrt(2 * height / G)
    motion = quiet(sim, fall + max(2 * restitution * fall, 0.2))
    after = motion.times > fall + 0.01
    top = motion.q[after, 2].max() - 0.1
    # the impact is up to a step off, at v = √(2 g h)
    assert top == pytest.approx(restitution**2 * height, abs=G * fall * dt)
    if restitution == 0:
        assert np.abs(motion.v[after]).max() < NEAR


def test_elastic_ball_bounces_for_long_without_rising_higher():
    height = 0.3
    sim = dl.Simulator(world(ball(0.1 + height)), restitution=1.0)
    motion = quiet(sim, 5.0)
    # symplectic Euler and a reversed velocity keep v²/2 + g z − g dt v/2
    assert motion.q[:, 2].max() <= 0.1 + height + 1e-9
    assert motion.q[2500:, 2].max() >= 0.1 + height - G * dt**2
    assert len(np.flatnonzero(np.diff(np.sign(motion.v[:, 2])) > 0)) >= 9


def test_flat_box_lands_without_turning():
    sim = dl.Simulator(world('<body pos="0 0 .4"><freejoint/><geom type="box" size=".2 .1 .1" mass="1"/></body>'), restitution=0.5)
    motion = quiet(sim, 1.5)
    assert np.abs(motion.v[:, 3:]).max() < 1e-6
    fall = math.sqrt(2 * 0.3 / G)
    assert motion.q[motion.times > fall + 0.01, 2].max() - 0.1 == pytest.approx(0.25 * 0.3, abs=2 * G * fall * dt)


def test_cradle_hands_the_speed_on():
    """Two equal balls, elastic: the first stops, the second takes all."""
    text = world("".join(f'<body pos="{x} 0 0"><freejoint/><geom type="sphere" size=".1" mass="1" friction="0"/></body>' for x in (0, 0.5)),
                 gravity=(0, 0, 0), floor=False)  # fmt: skip
    sim = dl.Simulator(text, restitution=1.0)
    sim.reset(v=[1.0, *[0.0] * 11])
    quiet(sim, 1.0, every=1000)
    assert sim.v[[0, 6]] == pytest.approx([0, 1], abs=1e-6)


def test_contacts_are_mujocos_with_its_friction():
    """Points, normals and the greater of two frictions; a contact of one dimension has none."""
    seen = 0
    for seed in range(40):
        sim = dl.Simulator(drop(seed))
        quiet(sim, 0.5, every=500)
        m = mujoco.MjModel.from_xml_string(drop(seed))
        d = mujoco.MjData(m)
        d.qpos[:] = sim.q
        mujoco.mj_kinematics(m, d)
        mujoco.mj_collision(m, d)
        step = sim.step()
        for c in d.contact:
            pair = (m.geom_bodyid[c.geom[1]], m.geom_bodyid[c.geom[0]])
            same = [tuple(sorted(b)) == tuple(sorted(pair)) for b in step.contacts.bodies]
            # points of a face are in one plane here: moved along the normal by a tenth of a millimetre or so
            apart = step.contacts.position[same] - c.pos
            height = apart @ c.frame[:3]
            away = np.linalg.norm(apart - np.outer(height, c.frame[:3]), axis=1)
            if sum(same) > 3 and away.min() > 1e-9:
                continue  # more points than four: some are left out
            k = away.argmin()
            assert away[k] < 1e-9
            assert abs(height[k]) < 2e-4
            assert abs(step.contacts.normal[same][k] @ c.frame[:3]) == pytest.approx(1, abs=1e-12)
            assert step.contacts.friction[same][k] == c.friction[0]
            seen += 1
    assert seen > 30


def test_contact_of_one_dimension_slides_without_friction():
    text = world(BOX, gravity=(1.0, 0, -G)).replace("/></body>", ' condim="1"/></body>').replace('size="9 9 1"', 'size="9 9 1" condim="1"')
    motion = quiet(dl.Simulator(text), 1.0)
    assert motion.v[-1, 0] == pytest.approx(1.0, rel=1e-6)


# ---- spins --------------------------------------------------------------------------------------------------------------------


def rotation(quaternion):
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, quaternion)
    return R.reshape(3, 3)


def test_tumbling_body_keeps_momentum_and_energy():
    inertia = np.array([0.01, 0.02, 0.025])
    body = f'<body><freejoint/><inertial pos="0.1 0.05 0" mass="1" diaginertia="{inertia[0]} {inertia[1]} {inertia[2]}"/></body>'
    sim = dl.Simulator(world(body, gravity=(0, 0, 0), floor=False))
    sim.reset(v=[0, 0, 0, 0.1, 8.0, 0.1])  # about the middle axis: it flips over
    motion = quiet(sim, 10.0, every=10)
    w = motion.v[:, 3:]
    L = np.array([rotation(q[3:]) @ (inertia * x) for q, x in zip(motion.q, w, strict=True)])
    assert w[:, 1].min() < -7
    assert np.abs(L - L[0]).max() < 1e-10 * np.linalg.norm(L[0])
    assert np.ptp(motion.kinetic_energy) < 1e-10 * motion.kinetic_energy[0]
    centre = np.array([q[:3] + rotation(q[3:]) @ (0.1, 0.05, 0) for q in motion.q])
    straight = centre[0] + np.outer(motion.times / motion.times[-1], centre[-1] - centre[0])
    assert np.abs(centre - straight).max() < 1e-10 * np.abs(centre[-1] - centre[0]).max()


def test_top_on_its_tip_neither_gains_energy_nor_falls():
    lean = 0.4
    body = (
        '<body pos="0 0 .1"><freejoint/><geom type="sphere" size=".005" pos="0 0 -.1" friction="0"/>'
        '<inertial pos="0 0 0" mass=".5" diaginertia=".002 .002 .001"/></body>'
    )
    sim = dl.Simulator(world(body).replace('friction="1"', 'friction="0"'))  # its tip slides, so its centre only sinks and rises
    sim.reset([0, 0, 0.005 + 0.1 * math.cos(lean), math.cos(lean / 2), 0, math.sin(lean / 2), 0], [0, 0, 0, 0, 0, 200.0])
    motion = quiet(sim, 2.0)
    total = energy(motion)
    # of first order in the spin, 0.2 rad a step, on what is exchanged: m g l
    assert total.max() <= total[0] + 1e-9
    assert total.min() >= total[0] - 200 * dt * 0.5 * G * 0.1
    axis = np.array([rotation(q[3:])[:, 2] for q in motion.q])
    heading = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    # torque over spin, a fast top on average: Ω = m g l / (I₃ ω₃), to first order in I Ω / (I₃ ω₃) = 0.03
    assert np.polyfit(motion.times, heading, 1)[0] == pytest.approx(0.5 * G * 0.1 / (1e-3 * 200), rel=0.1)
    # let go at rest it nutates between its lean and 2 I m g l sin θ / (I₃ ω₃)² more, to first order in that; it does so at the end as at the start
    leans, more = np.arccos(axis[:, 2]), 2 * 2e-3 * 0.5 * G * 0.1 * math.sin(lean) / (1e-3 * 200) ** 2
    for part in (leans[:200], leans[-200:]):
        assert part.min() == pytest.approx(lean, abs=0.15 * more)
        assert part.max() == pytest.approx(lean + more, abs=0.15 * more)


def test_top_on_a_ball_joint_precesses_steadily():
    mass, length, spin, step = 0.5, 0.1, 200.0, 2e-4
    across, along = 2e-3, 1e-3
    top = f'<body><joint type="ball"/><inertial pos="0 0 {length}" mass="{mass}" diaginertia="{across} {across} {along}"/></body>'
    sim = dl.Simulator(world(top, floor=False), timestep=step)
    lean, about, slow = 0.4, across + mass * length**2, 0.0
    # steady: Ω (I₃ ω₃ − I Ω cos θ) = m g l with ω₃ the whole spin about its axis
    for _ in range(50):
        slow = mass * G * length / (along * spin - about * slow * math.cos(lean))
    q = np.array([math.cos(lean / 2), 0, math.sin(lean / 2), 0])
    w = rotation(q).T @ np.array([0, 0, slow])
    w[2] = spin
    sim.reset(q, w)
    motion = quiet(sim, 2.0, every=20)
    axis = np.array([rotation(x)[:, 2] for x in motion.q])
    heading = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    turn = spin * step
    assert np.polyfit(motion.times, heading, 1)[0] == pytest.approx(slow, rel=turn)
    assert np.abs(np.arccos(axis[:, 2]) - lean).max() < turn * lean
    L = np.array([rotation(x) @ (np.array([about, about, along]) * y) for x, y in zip(motion.q, motion.v, strict=True)])
    assert np.ptp(L[:, 2]) < turn * abs(L[0, 2])
    # of second order: the turn of a step, squared, of what can be exchanged
    assert np.abs(energy(motion) - energy(motion)[0]).max() < turn**2 * mass * G * length


def test_tumbling_figure_keeps_its_energy():
    text = (
        '<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody><body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia=".01 .02 .025"/><body pos=".1 0 0">'
        '<joint axis="1 0 0"/><inertial pos="0 .05 0" mass=".2" diaginertia=".001 .001 .001"/></body></body></worldbody></mujoco>'
    )
    for step in (2e-3, 1e-3):
        sim = dl.Simulator(text, timestep=step)
        sim.reset(v=[0, 0, 0, 0.1, 8.0, 0.1, 3.0])
        motion = quiet(sim, 5.0, every=10)
        # it wavers by a share of the turn of a step, and does not drift
        for part in (motion[:100], motion[-100:]):
            assert np.abs(part.kinetic_energy - motion.kinetic_energy[0]).max() < 0.1 * 8 * step * motion.kinetic_energy[0]


# ---- drives, springs, limits --------------------------------------------------------------------------------------------------

ARM = '<body><joint name="a" axis="0 1 0" {joint}/><inertial pos="0 0 0" mass="1" diaginertia=".2 .2 .2"/></body>'


def arm(joint="", actuator="", gravity=(0, 0, 0)):
    return world(ARM.format(joint=joint), gravity=gravity, floor=False, more=f"<actuator>{actuator}</actuator>")


def test_motor_turns_by_its_gear_within_its_range():
    sim = dl.Simulator(arm('armature=".05"', '<motor joint="a" gear="3" ctrlrange="-2 2"/>'))
    assert sim.step(control=[1.0]).v[0] == pytest.approx(3 * 1.0 / 0.25 * dt, rel=1e-12)
    sim.reset()
    assert sim.step(control=[50.0]).v[0] == pytest.approx(3 * 2.0 / 0.25 * dt, rel=1e-12)
    sim.reset()
    assert sim.step([0.5], control=[-1.0]).v[0] == pytest.approx((0.5 - 3.0) / 0.25 * dt, rel=1e-12)


@pytest.mark.parametrize("damping", [0.4, 2.0])
def test_servo_answers_a_step_like_a_damped_oscillator(damping):
    stiffness, inertia, target = 20.0, 0.2, 0.7
    sim = dl.Simulator(arm("", f'<position joint="a" kp="{stiffness}" kv="{damping}"/>'))
    motion = quiet(sim, 2.0, control=[target])
    s = damping / (2 * inertia)
    omega = math.sqrt(stiffness / inertia - s * s)
    t = motion.times
    exact = target - target * np.exp(-s * t) * (np.cos(omega * t) + s / omega * np.sin(omega * t))
    # implicit Euler: of first order, errors of some ω₀² dt over a time of decay
    assert np.abs(motion.q[:, 0] - exact).max() < 2 * stiffness / inertia * dt / s * target
    assert motion.q[-1, 0] == pytest.approx(target, abs=2 * target * math.exp(-s * 2.0) + 1e-9)


def test_servo_gives_no_more_than_its_force():
    sim = dl.Simulator(arm("", '<position joint="a" kp="1000" kv="5" forcerange="-1 1"/>'))
    motion = quiet(sim, 0.5, control=[1e3])
    # a bounded drive: α = 1 / Î, where the servo's own dt k_v + dt² k_p stays in Î also while it is at its bound (docs/limitations)
    assert motion.v[-1, 0] == pytest.approx(0.5 / (0.2 + 1e-3 * 5 + 1e-6 * 1000), rel=1e-9)
    assert motion.v[-1, 0] < 0.5 / 0.2


DRIVEN = (
    '<mujoco><option timestep=".001"/><worldbody><body><freejoint/><geom size=".1"/><body pos=".2 0 0"><joint name="a" axis="0 1 0" stiffness="3" springref="20" damping=".3"/>'
    '<geom size=".08" pos=".1 0 0"/><body pos=".2 0 0"><joint name="b" type="slide" axis="1 1 0" stiffness="40" damping="2" armature=".1"/><geom size=".05"/>'
    '<body pos=".1 .1 0"><joint name="c" axis="1 0 0" ref="10"/><geom size=".05" pos="0 .1 0"/></body></body></body></body></worldbody><actuator>'
    '<position joint="a" kp="7" kv=".5" gear="2"/><velocity joint="b" kv="3"/><motor joint="c" gear="5" ctrlrange="-1 1"/>'
    '<general joint="c" gainprm="2" biastype="affine" biasprm=".3 -4 -.2" forcerange="-50 50"/></actuator></mujoco>'
)


@pytest.mark.parametrize("name", ["go2", "g1", "cassie", "driven"])
def test_mechanism_in_the_air_accelerates_as_in_mujoco(name):
    m = mujoco.MjModel.from_xml_string(DRIVEN if name == "driven" else dl.load(name).to_mjcf())
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    m.dof_frictionloss[:] = 0
    m.eq_active0[:] = 0
    rng = np.random.default_rng(5)
    d = mujoco.MjData(m)
    step = 1e-8
    sim = dl.Simulator(m, timestep=step)
    start = sim.model.neutral() if name == "driven" else sim.model.keyframes["home"]
    for _ in range(5):
        q = dl.integrate(sim.model, start, 0.1 * rng.standard_normal(m.nv), 1.0)
        v, u = rng.standard_normal(m.nv), rng.uniform(-3, 3, m.nu)
        tau, wrench = rng.standard_normal(m.nv), rng.standard_normal((m.nbody, 6))
        wrench[0] = 0
        for j in range(m.njnt):
            if m.jnt_limited[j] and m.jnt_type[j] >= 2:
                q[m.jnt_qposadr[j]] = np.clip(q[m.jnt_qposadr[j]], *(m.jnt_range[j] + (0.01, -0.01)))
        d.qpos[:], d.qvel[:], d.ctrl[:], d.qfrc_applied[:], d.xfrc_applied[:] = q, v, u, tau, wrench
        mujoco.mj_forward(m, d)
        sim.reset(q, v)
        got = (sim.step(tau, control=u, external_forces=wrench).v - v) / step
        assert d.nefc == 0
        # rates of M⁻¹ and of the forces over dt; Cassie's rods are of some grams and turn with 1e5 rad/s²
        assert np.abs(got - d.qacc).max() < 1e-4 * (1 + np.abs(d.qacc).max())


def test_spring_swings_at_its_frequency_and_only_loses():
    k, inertia = 5.0, 0.2
    sim = dl.Simulator(arm(f'stiffness="{k}" springref="20"'))
    rest, omega = math.radians(20), math.sqrt(k / inertia)
    motion = quiet(sim, 4.0)
    t = motion.times
    exact = rest - rest * np.cos(omega * t)
    # implicit Euler: amplitude falls with ω² dt / 2, phase with (ω dt)² / 3
    assert np.abs(motion.q[:, 0] - exact).max() < rest * (omega**2 * dt / 2 * 4 + omega * dt)
    total = inertia * motion.v[:, 0] ** 2 / 2 + k * (motion.q[:, 0] - rest) ** 2 / 2
    assert np.diff(total).max() <= 1e-15


def test_spring_of_any_stiffness_is_stable():
    sim = dl.Simulator(arm('stiffness="1e9" damping="1"'), timestep=1e-2)
    sim.reset([0.3], [50.0])
    assert np.abs(quiet(sim, 1.0).q[1:]).max() < 1e-2


def test_damper_slows_by_the_exponential():
    sim = dl.Simulator(arm('damping=".4"'))
    sim.reset(v=[3.0])
    motion = quiet(sim, 1.0)
    rate = 0.4 / 0.2
    assert np.allclose(motion.v[:, 0], 3 * (1 + rate * dt) ** -np.arange(len(motion)), rtol=1e-12)
    assert np.allclose(motion.v[:, 0], 3 * np.exp(-rate * motion.times), rtol=0, atol=3 * rate * dt)


@pytest.mark.parametrize("side", [-1, 1])
def test_joint_stops_at_its_limit_and_stays(side):
    sim = dl.Simulator(arm('limited="true" range="-30 30"'))
    motion = quiet(sim, 2.0, tau=[side * 1.0])
    x = side * motion.q[:, 0]
    # tolerance of the contact solver, relative to the speed of the impact
    assert x.max() < math.radians(30) + 1e-4 * dt
    assert x[-1] == pytest.approx(math.radians(30), abs=2 * SLOP)
    assert np.abs(motion.v[-1000:]).max() < NEAR


def test_joint_leaves_its_limit_freely():
    sim = dl.Simulator(arm('limited="true" range="-30 30"'))
    sim.reset([math.radians(30)])
    motion = quiet(sim, 0.2, tau=[-1.0])
    assert np.allclose(motion.v[:, 0], -motion.times / 0.2, rtol=0, atol=1e-9)


def test_dry_friction_of_a_joint_holds_below_its_loss_and_slips_above():
    sim = dl.Simulator(arm('frictionloss="1"'))
    still = quiet(sim, 5.0, tau=[0.9])
    assert np.abs(still.q).max() < 1e-9
    slipping = quiet(sim, 1.0, tau=[1.1])
    assert slipping.v[-1, 0] == pytest.approx(0.1 / 0.2 * 1.0, rel=1e-6)
    stopping = quiet(sim, 2.0, tau=[0.9])
    # it loses 0.1 / 0.2 rad/s² and then stays
    assert np.abs(stopping.v[1010:]).max() < NEAR
    assert stopping.v[500, 0] == pytest.approx(0.25, rel=1e-3)


def test_external_force_and_torque_act_at_the_centre_of_mass():
    body = '<body><freejoint/><inertial pos=".3 0 0" mass="2" diaginertia=".1 .1 .1"/></body>'
    sim = dl.Simulator(world(body, gravity=(0, 0, 0), floor=False))
    wrench = np.zeros((2, 6))
    wrench[1] = (4.0, 0, 0, 0, 0, 0)
    for _ in range(1000):
        step = sim.step(external_forces=wrench)
    assert step.v == pytest.approx([2.0, 0, 0, 0, 0, 0], abs=1e-12)
    sim.reset()
    wrench[1] = (0, 0, 0, 0.1, 0, 0)
    for _ in range(1000):
        step = sim.step(external_forces=wrench)
    assert step.v == pytest.approx([0, 0, 0, 1.0, 0, 0], abs=1e-12)


# ---- rests --------------------------------------------------------------------------------------------------------------------


def test_contact_forces_of_a_stack_carry_what_is_above():
    sim = dl.Simulator(dl.scenes.box_stack(5))
    for _ in range(200):
        step = sim.step()
    forces = step.body_forces(sim.model.nbody)
    solved = NEAR / dt  # of 1 kg in one step [N]
    for k in range(5):
        assert forces[k + 1] == pytest.approx([0, 0, G], abs=solved)
    assert forces[0] == pytest.approx([0, 0, -5 * G], abs=5 * solved)
    assert step.status == "solved"


@pytest.mark.parametrize("name", ["go2", "g1"])
def test_robot_at_rest_stands_on_its_weight(name):
    model = dl.scenes.on_floor(name)
    sim = dl.Simulator(model)
    sim.reset(dl.scenes.load(f"{name}-fallen").q)
    home = sim.q[7:]

    def hold(_, q, v):
        return np.concatenate([np.zeros(6), 30 * (home - q[7:]) - 3 * v[6:]])

    motion = quiet(sim, 3.0, tau=hold, every=100)
    weight = model.mass * G
    # what it still moves: m dv / dt
    assert motion.kinetic_energy[-1] < 1e-6
    late = [at.force[at.bodies[:, 1] == 0].sum(axis=0) for at in map(motion.contacts, range(-5, 0))]
    assert np.allclose(late, (0, 0, weight), rtol=0, atol=1e-3 * weight)


def test_flat_pyramid_of_ten_rows_stands():
    sim = dl.Simulator(dl.scenes.flat_pyramid(10))
    start = sim.q[-7:]
    motion = quiet(sim, 10.0, every=10)
    assert np.linalg.norm(motion.q[:, -7:-4] - start[:3], axis=1).max() <= 1e-4
    assert motion.penetration.max() <= 1e-4


def held(text, *, stiffness, damping, pinned=False):
    """MuJoCo's model of a robot whose motors are servos of joint stiffness [N m/rad] and damping, its base pinned to the world or free."""
    spec = mujoco.MjSpec.from_string(text)
    for joint in list(spec.joints):
        if pinned and joint.type == mujoco.mjtJoint.mjJNT_FREE:
            spec.delete(joint)
    for key in list(spec.keys):
        spec.delete(key)
    for motor in spec.actuators:
        k, d = stiffness / motor.gear[0] ** 2, damping / motor.gear[0] ** 2
        motor.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0], motor.biasprm[1], motor.biasprm[2] = k, -k, -d
        motor.ctrllimited = False
    return spec.compile()


def pose(m, q):
    """Control that holds servos at q."""
    return m.actuator_gear[:, 0] * q[m.jnt_qposadr[m.actuator_trnid[:, 0]]]


def test_penetration_after_a_step_is_what_the_next_one_finds():
    sim = dl.Simulator(world(ball(0.07)))  # 3 cm in the floor, which it leaves with 1 m/s
    steps = [sim.step() for _ in range(20)]
    after, found = np.array([s.penetration_after for s in steps[:-1]]), np.array([s.penetration for s in steps[1:]])
    assert np.allclose(after, found, rtol=0, atol=1e-12)
    assert np.allclose(np.diff(found), -dt, rtol=0, atol=1e-9)
    assert {s.status for s in steps} == {"solved"}


def test_cassie_held_by_its_loops_for_a_minute():
    m = held(dl.load("cassie").to_mjcf(), stiffness=800, damping=20, pinned=True)
    sim = dl.Simulator(m)
    q = dl.close_loops(sim.model, dl.scenes.load("cassie-standing").q[7:]).configuration
    sim.reset(q)
    jolt = quiet(sim, 1.0, control=pose(m, q))
    assert np.ptp(jolt.q, axis=0).max() > 0.1  # it sags and swings in its springs first
    assert jolt.loop_error.max() <= 1e-8
    motion = quiet(sim, 59.0, control=pose(m, q), every=20)
    assert motion.loop_error.max() <= 1e-9
    assert np.abs(motion.v[-1]).max() < 1e-5


def test_swinging_legs_keep_loops_closed_to_second_order():
    sim = dl.Simulator(held(dl.load("cassie").to_mjcf(), stiffness=0, damping=0, pinned=True))
    q = dl.close_loops(sim.model, dl.scenes.load("cassie-standing").q[7:]).configuration
    sim.reset(q)
    motion = quiet(sim, 5.0)
    speed = np.abs(motion.v).max()
    assert speed > 3
    # what a step of straight velocities leaves of arcs: l (ω dt)², with bars of half a metre
    assert motion.loop_error.max() < 0.5 * (speed * dt) ** 2
    assert speed < 50


@pytest.mark.parametrize(("name", "stiffness", "damping"), [("go2", 100, 5), ("g1", 300, 10)])
def test_robot_stands_still_on_its_servos(name, stiffness, damping):
    scene = dl.scenes.load(f"{name}-standing")
    m = held(scene.model.to_mjcf(), stiffness=stiffness, damping=damping)
    sim = dl.Simulator(m)
    sim.reset(scene.q)
    quiet(sim, 9.0, control=pose(m, scene.q), every=1000)
    motion = quiet(sim, 1.0, control=pose(m, scene.q))
    # kinetic energy at the solver's tolerance, 1e-6 m/s, would be 1e-11 J
    assert motion.kinetic_energy.max() < 1e-6
    assert np.abs(motion.q[-1] - motion.q[0]).max() < 1e-4
    assert motion.penetration.max() < 2 * SLOP
    forces = motion.contacts(-1).force.sum(axis=0)
    assert forces == pytest.approx([0, 0, scene.model.mass * G], abs=1e-3 * scene.model.mass * G)


# ---- energy -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", range(10))
def test_energy_never_grows_in_passive_drops(group):
    for seed in range(20 * group, 20 * group + 20):
        sim = dl.Simulator(drop(seed))
        motion = quiet(sim, 0.8)
        total = energy(motion)
        # of first order: lifted by a step at 2 m/s
        allowed = sim.model.mass * G * 2.0 * dt
        assert (total - np.minimum.accumulate(total) <= allowed).all(), seed
        assert total.max() <= total[0] + 1e-9, seed
        assert total[-1] < total[0], seed


@pytest.mark.parametrize("restitution", [0.5, 1.0])
def test_energy_never_grows_in_drops_that_bounce(restitution):
    for seed in range(60):
        sim = dl.Simulator(drop(seed), restitution=restitution)
        motion = quiet(sim, 0.8)
        total, speed = energy(motion), np.abs(motion.v).max(axis=1)
        # reversing a fall at v moves symplectic Euler's energy by m g v dt; the rest as above
        allowed = dt * (sim.model.mass * G * (1.0 + speed.max()) + motion.kinetic_energy * speed)
        assert (total - np.minimum.accumulate(total) <= allowed).all(), seed
