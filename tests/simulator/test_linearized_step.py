"""A step to first order against central differences of the simulator itself, at a tolerance of 1e-11, and in both senses against each other."""

from __future__ import annotations

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, NotFiniteError, StaleError

TOLERANCE = 1e-11

FLOOR = '<geom type="plane" size="9 9 1" friction="0.5"/>'
TRIPOD = f"""<mujoco><option timestep="0.002"/><worldbody>{FLOOR}
<body name="table" pos="0 0 .1"><freejoint/><geom type="box" size=".2 .2 .02" pos=".03 .02 .05" mass="2" contype="0" conaffinity="0"/>
<geom name="leg" size=".03" pos=".2 0 -.07" mass=".2"/><geom size=".03" pos="-.15 .15 -.07" mass=".2"/><geom size=".03" pos="-.15 -.2 -.07" mass=".2"/></body></worldbody></mujoco>"""
BALLS = f"""<mujoco><worldbody>{FLOOR}<body pos="0 0 .1"><freejoint/><geom size=".1" friction="0.3"/></body>
<body pos="0.05 0.02 .292"><freejoint/><geom size=".1" friction="0.3"/></body></worldbody></mujoco>"""
SHAPES = """<mujoco><worldbody><geom type="box" size="1 1 .1" pos="0 0 -.1" euler="5 3 0" friction="0.5"/>
<body pos="0 0 .1"><freejoint/><geom type="capsule" size=".05 .2" euler="90 10 0" friction="0.3"/></body>
<body pos="0.05 0.02 .25"><freejoint/><geom type="box" size=".1 .05 .03" euler="20 30 10" friction="0.3"/></body></worldbody></mujoco>"""
ARM = """<mujoco><option timestep=".002"/><worldbody><body><joint name="a" axis="0 1 0" range="-60 20" limited="true" frictionloss=".2" damping=".1" stiffness="2"/>
<geom name="upper" type="capsule" size=".03" fromto="0 0 0 .4 0 0"/><body pos=".4 0 0"><joint name="b" axis="0 1 0" range="-50 10" limited="true" armature=".01"/>
<geom type="capsule" size=".03" fromto="0 0 0 .4 0 0"/><body pos=".4 0 0"><joint type="ball" damping=".01"/><geom type="box" size=".05 .02 .03" pos=".1 .02 0"/></body></body></body></worldbody>
<actuator><position joint="a" kp="20" kv="1"/><motor joint="b" ctrllimited="true" ctrlrange="-3 3"/></actuator></mujoco>"""
ROLLING = """<mujoco><worldbody><geom type="plane" size="9 9 1" friction="0.5 .02 .01" condim="6"/><body pos="0 0 .1"><freejoint/><geom size=".1" condim="6" friction=".4 .02 .01"/></body>
<body pos="1 0 .1"><freejoint/><geom size=".1" condim="4" friction=".4 .02 .01"/></body></worldbody></mujoco>"""
TENDON = """<mujoco><worldbody><site name="s0" pos="0 0 .5"/><body><joint axis="0 1 0" damping=".1"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/><site name="s1" pos=".2 0 .02"/>
<body pos=".3 0 0"><joint axis="0 1 0" damping=".1"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/></body></body></worldbody>
<tendon><spatial name="t" stiffness="30" damping="1" springlength=".3"><site site="s0"/><site site="s1"/></spatial></tendon>
<actuator><general tendon="t" gainprm="5" biastype="affine" biasprm="0 -3 -1"/></actuator></mujoco>"""


class Perturbed:
    """Steps of a simulator from states near the present one, with its memory of contacts."""

    def __init__(self, sim: dl.Simulator, control: np.ndarray | None = None) -> None:
        self.sim, self.control = sim, control
        self.state = sim._world.save()
        nq, n = sim.model.nq, sim.model.nv
        self.q, self.v = slice(3, 3 + nq), slice(4 + nq, 4 + nq + n)
        assert np.array_equal(self.state[self.q], sim.q)
        assert np.array_equal(self.state[self.v], sim.v)

    def put_back(self) -> None:
        self.sim._world.restore(self.state, len(self.state))

    def step(self, dq, dv, dcontrol, dtau):
        s, m = self.state.copy(), self.sim.model
        s[self.q] = dl.integrate(m, s[self.q], dq)
        s[self.v] += dv
        self.sim._world.restore(s, len(s))
        result = self.sim.step(dtau, control=(np.zeros(m.nu) if self.control is None else self.control) + dcontrol)
        assert result.status == "solved"
        return self.sim.q, self.sim.v

    def difference(self, h, dq, dv, dcontrol, dtau):
        """Central difference along a direction, in the tangent space of q⁺."""
        (qa, va), (qb, vb) = (self.step(s * dq, s * dv, s * dcontrol, s * dtau) for s in (h, -h))
        return dl.difference(self.sim.model, qb, qa) / (2 * h), (va - vb) / (2 * h)


def loop_directions(model, q, n):
    """Velocities that keep loops closed."""
    if not model.loops:
        return np.eye(n)
    J = dl.DelassusOperator(model, model.loops)
    J.update(q)
    rows = np.asarray(J.jacobian @ np.eye(n))
    _, s, Vt = np.linalg.svd(rows)
    return Vt[(s > 1e-9 * s[0]).sum() :].T


def check(sim, control=None, *, h=3e-7, rtol=1e-5, directions=6, seed=0):
    """Products along random directions against differences, and both senses against each other."""
    m, n = sim.model, sim.model.nv
    rng = np.random.default_rng(seed)
    near, S = Perturbed(sim, control), sim.linearize(control=control)
    assert not S.left_out, S.left_out
    assert not S.kinks.any()
    assert not S.row_kinks
    free = loop_directions(m, sim.q, n)
    largest = 0.0
    for _ in range(directions):
        dq, dv = (free @ rng.normal(size=free.shape[1]) for _ in range(2))
        dc, dtau = rng.normal(size=m.nu), 0.1 * rng.normal(size=n)
        S = sim.linearize(control=control)
        found = S.jvp(dq, dv, dc if m.nu else None, dtau)
        q_bar, v_bar = rng.normal(size=(2, n))
        b = S.vjp(q_bar, v_bar)
        there, back = q_bar @ found.q + v_bar @ found.v, b.q @ dq + b.v @ dv + b.control @ dc + b.tau @ dtau
        assert there == pytest.approx(back, rel=1e-12, abs=1e-12 * (1 + np.abs(found.v).max()))
        wanted = near.difference(h, dq, dv, dc, dtau)
        near.put_back()
        for x, y in zip(found, wanted, strict=True):
            largest = max(largest, np.abs(x - y).max() / np.abs(y).max())
    assert largest < rtol
    return S


def simulator(xml, **options):
    return dl.Simulator(xml, tolerance=TOLERANCE, **options)


def test_free_flight():
    rng = np.random.default_rng(1)
    sim = simulator(dl.scenes.on_floor("go2"))
    q = sim.model.keyframes["home"].copy()
    q[2] += 1
    sim.reset(q, rng.normal(size=sim.model.nv))
    assert len(check(sim, np.ones(sim.model.nu)).modes) == 0


def test_a_free_body_turns():
    sim = simulator(dl.scenes.box_stack(1))
    q = sim.q.copy()
    q[2] += 1
    sim.reset(q, np.random.default_rng(2).normal(size=6) * 3)
    check(sim)


@pytest.mark.parametrize(
    ("lift", "velocity", "steps", "modes"),
    [
        (0.0, [0.5, 0.3, 0, 0, 0, 0.4], 3, {"sliding"}),
        (0.0, [0.5, 0.3, -0.5, 0.3, 0.1, 0.4], 1, {"sticking", "open"}),
        (5e-4, [0.5, 0.3, -0.3, 0.1, 0.1, 0.4], 0, {"sliding", "open"}),
        (-5e-4, [0.5, 0.3, -0.3, 0.1, 0.1, 0.4], 0, {"sliding"}),
        (0.0, [0, 0, 0, 0, 0, 0], 3, {"sticking"}),
    ],
    ids=["slides", "hits the floor", "comes near", "is inside", "rests"],
)
def test_a_table_of_three_legs(lift, velocity, steps, modes):
    """Legs that slide, stick, open, close their gap within the step, and come out of the floor."""
    sim = simulator(TRIPOD)
    q = sim.q.copy()
    q[2] += lift
    sim.reset(q, velocity)
    for _ in range(steps):
        sim.step()
    if modes == {"sticking"}:  # all derivatives of v⁺ are zero: nothing to divide by
        S = sim.linearize()
        assert set(S.modes) == modes
        assert np.abs(S.A[6:]).max() < 1e-6
        return
    S = check(sim)
    assert modes <= set(S.modes)


def test_balls_on_each_other():
    sim = simulator(BALLS)
    sim.reset(None, np.random.default_rng(0).normal(size=12) * 0.3)
    seen = set()
    for _ in range(12):
        S = sim.linearize()
        if set(S.modes) - {"open"} and not (S.kinks.any() or S.correction_kink):
            seen |= set(check(sim).modes)
        sim.step()
    assert "sliding" in seen


def test_shapes_without_a_closed_form():
    """A capsule and a box on a tilted box: contacts that move by differences of their collisions."""
    sim = simulator(SHAPES)
    sim.reset(None, np.random.default_rng(3).normal(size=12) * 0.3)
    checked = 0
    for k in range(60):
        sim.step()
        S = sim.linearize()
        if k % 3 == 0 and set(S.modes) - {"open"} and not (S.kinks.any() or S.row_kinks or S.redundant or S.left_out):
            check(sim, h=1e-7, directions=2, rtol=3e-5)
            checked += 1
    assert checked >= 3


@pytest.mark.parametrize("steps", [1, 20, 47])
def test_limits_dry_friction_springs_and_servos(steps):
    sim, control = simulator(ARM), np.array([0.3, 0.5])
    sim.reset(None, np.random.default_rng(4).normal(size=sim.model.nv))
    for _ in range(steps):
        sim.step(control=control)
    check(sim, control)


def test_a_joint_that_hits_its_limit():
    sim = simulator(ARM)
    q = sim.q.copy()
    q[1] = np.deg2rad(10) - 0.004
    sim.reset(q, [0.1, 5.0, 0.2, 0.1, 0.3])
    check(sim)
    sim.step()
    assert sim.v[1] < 4


def test_torsional_and_rolling_friction():
    sim = simulator(ROLLING)
    sim.reset(None, np.random.default_rng(5).normal(size=12))
    for _ in range(3):
        sim.step()
    assert "sliding" in check(sim).modes


@pytest.mark.parametrize("name", ["four_bar", "cassie"])
def test_loops(name):
    """Along motions that keep loops closed. A step closes them to 1e-9, which differences of 1e-5 see as 1e-4."""
    model = dl.scenes.four_bar() if name == "four_bar" else dl.load("cassie")
    sim = simulator(model)
    if name == "cassie":
        sim.reset("home")
    for _ in range(20):
        assert sim.step().status == "solved"
    check(sim, np.zeros(model.nu) if model.nu else None, h=1e-5 if name == "four_bar" else 3e-6, rtol=2e-4 if name == "four_bar" else 2e-5)


def test_forces_that_mujoco_computes():
    sim = simulator(TENDON)
    sim.reset([0.3, -0.4], [0.5, 1.0])
    check(sim, np.array([0.4]), rtol=1e-5)


@pytest.mark.parametrize(
    ("xml", "velocity", "mode"),
    [
        (BALLS, [0.1, 0.2, -1.0, 3.0, 1.0, 2.0, 0.1, 0, -1.5, 0, 1.0, 0], "sticking"),
        (ROLLING, [0.02, 0.01, -1.0, 0.1, 0.2, 0.3, 0.5, 1.0, -2.0, 0, 1.0, 4.0], "sticking"),
        (TRIPOD, [0, 0, -1.0, 0.3, 0.2, 0], "sticking"),
    ],
    ids=["balls", "rolling", "table"],
)
def test_bounces(xml, velocity, mode):
    sim = simulator(xml, restitution=0.6)
    sim.reset(None, velocity)
    S = check(sim)
    assert mode in S.modes
    speed = sim.v[2]
    sim.step()
    assert sim.v[2] > -0.3 * speed


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
def test_a_falling_robot(integrator):
    rng = np.random.default_rng(7)
    sim = dl.Simulator(dl.scenes.on_floor("go2"), tolerance=TOLERANCE, integrator=integrator)
    m = sim.model
    q = dl.integrate(m, m.keyframes["home"], 0.05 * rng.normal(size=m.nv))
    q[2] += 0.08
    sim.reset(q, 0.2 * rng.normal(size=m.nv))
    control, checked, modes = rng.normal(size=m.nu), 0, set()
    for k in range(120):
        sim.step(control=control)
        if k % 5:
            continue
        S = sim.linearize(control=control)
        if (
            S.status == "solved"
            and set(S.modes) - {"open"}
            and not (S.kinks.any() or S.row_kinks or S.redundant or S.left_out or S.correction_kink)
        ):
            modes |= set(check(sim, control, h=1e-7, directions=2, rtol=1e-5).modes)
            checked += 1
    assert checked >= 4
    assert "sticking" in modes


def test_matrices_are_the_products():
    sim = simulator(ARM)
    sim.reset(None, [0.1, -0.2, 0.3, 0.4, 0.5])
    S, n = sim.linearize(control=[0.1, 0.2]), sim.model.nv
    rng = np.random.default_rng(0)
    dq, dv, dc = rng.normal(size=n), rng.normal(size=n), rng.normal(size=2)
    t = S.jvp(dq, dv, dc)
    assert np.allclose(S.A @ np.r_[dq, dv] + S.B @ dc, np.r_[t.q, t.v], rtol=0, atol=1e-12)
    b = S.vjp(np.eye(n), np.zeros((n, n)))
    assert np.allclose(b.q.T, S.A[:n, :n], atol=1e-12)
    assert np.allclose(b.control.T, S.B[:n], atol=1e-12)


def test_the_state_stays_as_it_was_bit_for_bit():
    sim = dl.Simulator(dl.scenes.box_stack(3), restitution=0.3)
    for _ in range(5):
        sim.step()
    before = sim.save()
    S = sim.linearize()
    S.vjp(np.ones(sim.model.nv))
    assert np.array_equal(sim.save(), before)
    sim.step()
    after = sim.save()
    assert np.array_equal(S.q, sim.q)
    assert np.array_equal(S.v, sim.v)
    sim.restore(before)
    moved = sim.linearize(advance=True)
    assert np.array_equal(sim.save(), after)
    assert np.array_equal(moved.q, sim.q)
    assert np.array_equal(moved.v, sim.v)


def test_products_of_a_step_that_is_gone_raise():
    sim = simulator(ARM)
    S = sim.linearize()
    A = S.A
    sim.step()
    assert S.A is A
    with pytest.raises(StaleError, match="moved on"):
        S.vjp(np.ones(sim.model.nv))
    with pytest.raises(StaleError):
        _ = S.B
    for change in (lambda: sim.reset(), lambda: sim.restore(sim.save()), lambda: sim.run(0.01, progress=False), lambda: sim.linearize()):
        S = sim.linearize()
        change()
        with pytest.raises(StaleError):
            S.jvp(dq=np.ones(sim.model.nv))


def test_bad_directions_are_refused():
    sim = simulator(ARM)
    S, n = sim.linearize(), sim.model.nv
    with pytest.raises(ArgumentError, match="dq"):
        S.jvp(dq=np.ones(n + 1))
    with pytest.raises(ArgumentError, match="expected at least one"):
        S.jvp()
    with pytest.raises(ArgumentError, match="v_bar"):
        S.vjp(np.ones(n), np.ones((n, 2)))
    with pytest.raises(NotFiniteError):
        S.jvp(dq=np.full(n, np.nan))
    with pytest.raises(ArgumentError, match="control"):
        sim.linearize(control=np.ones(7))


# ---- by parameters: differences between simulators of changed models


def ends(xml, state, control=None, **options):
    sim = simulator(xml, **options)
    sim.reset(*state)
    sim.step(control=control)
    return sim


def parameter_check(make, state, adjoint, h, control=None, rtol=1e-5, **options):
    """make(x): the model with a parameter changed by x; adjoint(p): its derivative among those of ParameterAdjoint."""
    sim = simulator(make(0.0), **options)
    sim.reset(*state)
    n = sim.model.nv
    q_bar, v_bar = np.random.default_rng(0).normal(size=(2, n))
    S = sim.linearize(control=control)
    found = adjoint(S.parameter_vjp(q_bar, v_bar))
    a, b = (ends(make(x), state, control, **options) for x in (h, -h))
    wanted = (q_bar @ dl.difference(sim.model, b.q, a.q) + v_bar @ (a.v - b.v)) / (2 * h)
    assert found == pytest.approx(wanted, rel=rtol, abs=1e-9)
    return wanted


SLIDING = (None, [0.5, 0.3, -0.1, 0.2, 0.1, 0.4])


def test_by_friction():
    parameter_check(lambda x: TRIPOD.replace('friction="0.5"', f'friction="{0.5 + x!r}"').replace('size=".03"', f'size=".03" friction="{0.5 + x!r}"'), SLIDING,
                    lambda p: p.friction.sum(), 1e-6)  # fmt: skip


def test_by_restitution():
    sim = simulator(TRIPOD, restitution=0.5)
    state = (None, [0.0, 0.0, -1.0, 0.3, 0.2, 0.0])
    sim.reset(*state)
    S = sim.linearize()
    assert not S.left_out
    q_bar, v_bar = np.random.default_rng(0).normal(size=(2, 6))
    found = S.parameter_vjp(q_bar, v_bar).restitution.sum()
    a, b = (ends(TRIPOD, state, restitution=0.5 + x) for x in (1e-6, -1e-6))
    wanted = (q_bar @ dl.difference(sim.model, b.q, a.q) + v_bar @ (a.v - b.v)) / 2e-6
    assert found == pytest.approx(wanted, rel=1e-5)
    along = S.jvp(drestitution=np.ones(S.kinks.size))
    assert q_bar @ along.q + v_bar @ along.v == pytest.approx(found, rel=1e-10)


def about_origin(mass, center):
    """Inertia of a point mass about the origin: (xx, xy, yy, xz, yz, zz)."""
    x, y, z = center
    return mass * np.array([y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y])


@pytest.mark.parametrize("joint", ["<freejoint/>", '<joint type="ball"/>'])
@pytest.mark.parametrize("which", range(10))
def test_by_inertial_parameters(which, joint):
    """Of a body on a ball joint, and of a free one, whose rotation follows a rule of its own."""

    def make(x):
        mass, center = 1.3, np.array([0.05, -0.02, 0.03])
        theta = np.r_[mass, mass * center, np.array([0.05, 0.004, 0.06, -0.003, 0.002, 0.07]) + about_origin(mass, center)]
        theta[which] += x
        mass, center = theta[0], theta[1:4] / theta[0]
        xx, xy, yy, xz, yz, zz = theta[4:] - about_origin(mass, center)
        place, inertia = (" ".join(f"{float(v)!r}" for v in numbers) for numbers in (center, (xx, yy, zz, xy, xz, yz)))
        inertial = f'<inertial pos="{place}" mass="{float(mass)!r}" fullinertia="{inertia}"/>'
        return f'<mujoco><option gravity="1 2 -9"/><worldbody><body pos="0 0 1">{joint}{inertial}</body></worldbody></mujoco>'

    state = (None, np.random.default_rng(1).normal(size=6 if "free" in joint else 3) * 4)
    wanted = parameter_check(make, state, lambda p: p.inertial[10 + which], 1e-4, rtol=1e-4)
    assert abs(wanted) > 1e-6 or (which == 0 and "ball" in joint)  # a mass at the joint moves nothing


@pytest.mark.parametrize(
    ("old", "new", "adjoint"),
    [
        ('damping=".1"', 'damping="{}"', lambda p: p.damping[0]),
        ('stiffness="2"', 'stiffness="{}"', lambda p: p.stiffness[0]),
        ('armature=".01"', 'armature="{}"', lambda p: p.armature[1]),
        ('kp="20"', 'kp="{}"', lambda p: p.gain[0] - p.bias[0, 1]),
        ('kv="1"', 'kv="{}"', lambda p: -p.bias[0, 2]),
    ],
)
def test_by_joint_and_actuator_parameters(old, new, adjoint):
    base = float(old.split('"')[1])
    parameter_check(
        lambda x: ARM.replace(old, new.format(repr(base + x))),
        (None, [0.4, -0.3, 0.5, 0.2, 0.1]),
        adjoint,
        1e-5,
        control=np.array([0.3, 0.5]),
    )


# ---- through a motion


@pytest.mark.parametrize("every", [None, 1, 4, 12, 40])
def test_a_motion_backwards(every):
    """A table that is thrown, falls, hits the floor and slides: derivatives by its start and by joint forces of every step."""
    sim = simulator(TRIPOD)
    q = sim.q.copy()
    q[2] += 0.003
    sim.reset(q, [0.8, 0.3, 0, 0.1, 0.2, 0.5])
    steps, n = 12, 6
    rng = np.random.default_rng(0)
    q_bar, v_bar, tau = rng.normal(size=(3, steps, n))
    before = sim.save()
    d = dl.rollout_vjp(sim, np.zeros((steps, 0)), q_bar, v_bar, tau=tau, checkpoint_every=every)
    assert np.array_equal(sim.save(), before)

    def number(dv, dtau):
        sim.restore(before)
        sim.reset(sim.q, sim.v + dv)
        states = []
        for t in range(steps):
            sim.step(tau[t] + dtau[t])
            states.append((sim.q, sim.v))
        return states

    dv, dtau, h = rng.normal(size=n), rng.normal(size=(steps, n)), 1e-7
    there, back = number(h * dv, h * dtau), number(-h * dv, -h * dtau)
    wanted = sum(
        q_bar[t] @ dl.difference(sim.model, back[t][0], there[t][0]) + v_bar[t] @ (there[t][1] - back[t][1]) for t in range(steps)
    ) / (2 * h)  # fmt: skip
    assert d.v @ dv + (d.tau * dtau).sum() == pytest.approx(wanted, rel=1e-5)


def test_parameters_through_a_motion():
    """The damping of an arm's first joint, from where its motion ends."""
    control, state, steps = np.array([0.3, 0.5]), (None, [0.4, -0.3, 0.5, 0.2, 0.1]), 30

    def end(damping):
        sim = simulator(ARM.replace('damping=".1"', f'damping="{damping!r}"'))
        sim.reset(*state)
        for _ in range(steps):
            sim.step(control=control)
        return sim

    sim = simulator(ARM)
    sim.reset(*state)
    q_bar = np.random.default_rng(1).normal(size=5)
    d = dl.rollout_vjp(sim, np.tile(control, (steps, 1)), q_bar, parameters=True)
    a, b = end(0.1 + 1e-5), end(0.1 - 1e-5)
    assert d.parameters.damping[0] == pytest.approx(q_bar @ dl.difference(sim.model, b.q, a.q) / 2e-5, rel=1e-5)


def test_bad_weights_of_a_motion_are_refused():
    sim = simulator(ARM)
    with pytest.raises(ArgumentError, match="controls"):
        dl.rollout_vjp(sim, np.zeros((3, 1)), np.ones(5))
    with pytest.raises(ArgumentError, match="q_bar"):
        dl.rollout_vjp(sim, np.zeros((3, 2)), np.ones((4, 5)))
    with pytest.raises(ArgumentError, match="checkpoint_every"):
        dl.rollout_vjp(sim, np.zeros((3, 2)), np.ones(5), checkpoint_every=0)


# ---- smoothed contacts

BALL = """<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="9 9 1" friction="0.5"/><body pos="0 0 {}"><freejoint/><geom size=".1" mass="2" friction=".5"/></body></worldbody></mujoco>"""


def smoothed_velocity(sim, kappa):
    """v⁺ of a ball on the floor with impulses on the central path, from the step's own contact problem: v_f + M⁻¹ Jᵀ λ."""
    problem = sim.contact_problem()
    r = dl.solve_contacts(problem.G, problem.g, [0.5], tolerance=1e-12)
    force = problem.frames[0].T @ dl.ContactDerivatives(problem.G, r, [0.5], smoothing=kappa).forces
    M = dl.mass_matrix(sim.model, sim.q)
    v = sim.v + sim.timestep * np.r_[0, 0, -9.81, 0, 0, 0]
    R = dl.body_placement(sim.model, sim.q, 1)[:3, :3]
    arm = problem.positions[0] - sim.q[:3]
    return v + np.linalg.solve(M, np.r_[force, R.T @ np.cross(arm, force)])


@pytest.mark.parametrize(
    ("height", "velocity"), [(0.1, [0, 0, 0, 0, 0, 0]), (0.1002, [0.1, 0, -0.1, 0, 0, 0]), (0.1, [0.3, 0.1, 0, 0, 0, 0])]
)
def test_smoothed_derivatives_are_those_of_the_smoothed_step(height, velocity):
    sim, kappa, h = simulator(BALL.format(height)), 1e-4, 1e-6
    sim.reset(None, velocity)
    S = sim.linearize(smoothing=kappa)
    assert not S.left_out
    A, q, v = S.A, sim.q, sim.v
    for k in range(3):  # translations: the rotation rule of a free body is another equation
        ends = []
        for x in (h, -h):
            sim.reset(q, v + x * np.eye(6)[k])
            ends.append(smoothed_velocity(sim, kappa))
        assert np.allclose(A[6:9, 6 + k], ((ends[0] - ends[1]) / (2 * h))[:3], rtol=0, atol=1e-5)
        sim.reset(q, v)


def test_smoothing_points_out_of_open_and_sticking_contacts():
    sim = simulator(BALL.format(0.1005))
    sim.reset(None, [0, 0, -0.1, 0, 0, 0])  # does not reach the floor within the step
    hard, soft = sim.linearize().A[8, 2], sim.linearize(smoothing=1e-3).A[8, 2]
    assert hard == 0
    assert soft < -1e-3  # higher up the floor pushes less
    sim = simulator(BALL.format(0.1))
    for _ in range(3):
        sim.step()
    hard, soft = (sim.linearize(np.eye(6)[0] * 1e-3, smoothing=k).jvp(dtau=np.eye(6)[0]).v[0] for k in (None, 1e-3))
    assert abs(soft) > abs(hard)


def test_smoothing_vanishes_with_its_parameter():
    sim = simulator(TRIPOD)
    sim.reset(None, [0.5, 0.3, 0, 0, 0, 0.4])
    for _ in range(3):
        sim.step()
    exact = sim.linearize().A
    errors = [np.abs(sim.linearize(smoothing=k).A - exact).max() for k in (1e-6, 1e-8, 1e-10)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-4
    with pytest.raises(ArgumentError, match="smoothing"):
        sim.linearize(smoothing=-1.0)


SHAPES_ON_A_PLANE = {
    "capsule": 'type="capsule" size=".05 .2" euler="70 10 0"',
    "box": 'type="box" size=".1 .07 .05" euler="20 30 10"',
    "mesh": 'type="mesh" mesh="m" euler="20 30 10"',
    "cylinder": 'type="cylinder" size=".1 .05" euler="20 30 10"',
}


@pytest.mark.parametrize("shape", SHAPES_ON_A_PLANE)
def test_shapes_that_fall_on_a_plane(shape):
    """The end of a capsule and corners of a box and of a mesh move in closed form, the rim of a cylinder by differences of its collision."""
    sim = simulator(
        f"""<mujoco><asset><mesh name="m" vertex="0 0 0 .2 0 0 0 .2 0 0 0 .2 .15 .15 .1"/></asset><worldbody>{FLOOR}
        <body pos="0 0 .3"><freejoint/><geom {SHAPES_ON_A_PLANE[shape]} friction=".3"/></body></worldbody></mujoco>"""
    )
    sim.reset(None, [0.3, 0.1, 0, 0.2, 0.1, 0.3])
    checked = 0
    for _ in range(115):
        sim.step()
        S = sim.linearize()
        if set(S.modes) - {"open"} and not (S.kinks.any() or S.correction_kink or S.redundant or S.left_out):
            check(sim, h=2e-7, directions=3)
            checked += 1
            if checked == 2:
                return
    raise AssertionError("it never touched the plane away from a kink")


def test_redundancy_of_one_configuration_is_named():
    """Legs that stand symmetrically with stuck hips: beside that configuration all that sticks cannot stick on, and one hip or the other gives way."""
    sim = dl.Simulator(dl.scenes.on_floor("go2"), tolerance=TOLERANCE)
    sim.reset("home")
    home, hip = sim.q[7:].copy(), 12
    named = 0
    for k in range(345):
        control = 60 * (home - sim.q[7:]) - 2 * sim.v[6:]
        if k >= 300 and k % 5 == 0:
            S = sim.linearize(control=control)
            near = Perturbed(sim, control)
            zero = np.zeros(sim.model.nv)
            here = near.step(zero, zero, 0, zero)[1]
            sides = [(near.step(h * np.eye(18)[hip], zero, 0, zero)[1] - here) / h for h in (1e-6, -1e-6)]
            near.put_back()
            if any("in this configuration only" in words for words in S.left_out):
                named += 1
                assert np.abs(sides[0] - sides[1]).max() > 1e-3
            elif not (S.kinks.any() or S.row_kinks or S.correction_kink):
                for side in sides:
                    assert np.abs(side - S.A[18:, hip]).max() < 1e-4 * np.abs(side).max()
        sim.step(control=control)
    assert named > 2
