"""A status of constrained dynamics is a certificate: light parts, units, loops that close up to how they are drawn, springs stiffer than rounding, singular positions."""

import numpy as np
import pytest

import delassus as dl
from oracles import light
from oracles.exact import Exact, Rows
from oracles.light import Dense, Units

EXACT = ["auto", "lcaba", "kkt", "prox-ltl", "caba", "prox-ltls", "prox-pv", "pv-early"]
UNITS = [Units(), Units(mass=1e9), Units(mass=1e-9), Units(length=1e9), Units(length=1e-9), Units(time=1e9), Units(1e-9, 1e9, 1e-9)]


def moving_four_bar(inertia, units=None, crank=0.6, **kind):
    """A four-bar with balls that moves and is driven: model, q, v, tau, and its equations by dense matrices."""
    units = units or Units()
    model = light.four_bar(inertia, units=units, **kind)
    q = light.four_bar_pose(model, crank)
    still = Dense(model, q, np.zeros(model.nv), None, model.loops, units)
    v = light.held_velocity(still.J, np.random.default_rng(0).standard_normal(model.nv)) / units.time
    tau = np.zeros(model.nv)
    tau[0] = units.torque
    return model, q, v, tau, Dense(model, q, v, tau, model.loops, units)


def exact_accelerations(dense, units):
    # lengths as parts of one, so that ranks are seen
    size = np.where(np.arange(len(dense.J)) % 6 < 3, units.length, 1.0)
    return light.accelerations(dense.M, dense.tau - dense.h, dense.J / size[:, None], dense.gamma / size)


@pytest.mark.parametrize("kind", [{"free": False}, {"free": True}, {"free": True, "tilt": 0.7}, {"free": False, "tilt": 0.7}], ids=str)
@pytest.mark.parametrize("digits", range(13))
def test_a_pin_of_welded_balls_is_right_at_every_inertia(digits, kind):
    model, q, v, tau, dense = moving_four_bar(10.0**-digits, **kind)
    want = exact_accelerations(dense, Units())
    result = dl.constrained_dynamics(model, q, v, tau, model.loops)
    assert result.status == "solved"
    assert np.abs(result.acceleration - want).max() <= 1e-8 * np.abs(want).max()
    assert max(dense.residuals(result)) <= 1e-9


@pytest.mark.parametrize("method", ["lcaba", "prox-ltl", "kkt"])
@pytest.mark.parametrize("digits", range(6, 13))
def test_who_says_solved_of_welded_balls_is_right(digits, method):
    model, q, v, tau, dense = moving_four_bar(10.0**-digits)
    want = exact_accelerations(dense, Units())
    result = dl.constrained_dynamics(model, q, v, tau, model.loops, method=method)
    if result.status == "solved":
        assert np.abs(result.acceleration - want).max() <= 1e-8 * np.abs(want).max()
    else:
        assert result.advice
        assert max(result.residuals.dynamics, result.residuals.constraints) > 1e-12


@pytest.mark.parametrize("units", UNITS, ids=str)
@pytest.mark.parametrize("inertia", [1e-2, 1e-9])
def test_units_change_nothing(units, inertia):
    plain, scaled = (moving_four_bar(inertia, u) for u in (Units(), units))
    one, other = (dl.constrained_dynamics(*state[:4], state[0].loops) for state in (plain, scaled))
    assert one.status == other.status == "solved"
    assert np.abs(other.acceleration * units.time**2 - one.acceleration).max() <= 1e-9 * np.abs(one.acceleration).max()


@pytest.mark.parametrize("units", UNITS, ids=str)
def test_lcaba_needs_no_help_in_other_units(units):
    model, q, v, tau, _ = moving_four_bar(1e-2, units)
    result = dl.constrained_dynamics(model, q, v, tau, model.loops, method="lcaba")
    assert result.status == "solved"
    assert result.iterations <= 8  # six or seven, by how the compiler rounds


@pytest.mark.parametrize("seed", range(150))
def test_nobody_says_solved_of_equations_that_do_not_hold(seed):
    model, q, v, tau, constraints, units = light.random_mechanism(seed)
    dense = Dense(model, q, v, tau, constraints, units)
    for method in EXACT:
        try:
            result = dl.constrained_dynamics(model, q, v, tau, constraints, method=method)
        except dl.errors.ArgumentError:
            continue  # rows between bodies are not for this method
        assert result.status in ("solved", "redundant", "infeasible_least_squares", "iteration_limit", "stalled")
        if result.status == "solved":
            assert max(dense.residuals(result)) <= 1e-9
        else:
            assert result.advice


def pinned_tree(links, seed):
    """A random tree of rods on hinges, half of its leaves pinned to the world: many rows, of which some nearly depend on each other."""
    rng = np.random.default_rng(seed)
    b, inner, axes = dl.ModelBuilder("tree"), set(), np.eye(3)[rng.integers(3, size=links)]
    for k in range(links):
        parent = int(rng.integers(k)) if k else None
        inner.add(parent)
        b.add_body(
            f"b{k}",
            f"b{parent}" if k else "world",
            position=(0, 0, -0.2 if k else 0),
            mass=0.5,
            com=(0, 0, -0.1),
            inertia=(1.7e-3, 1.7e-3, 1e-4),
        )
        b.add_joint(f"b{k}", "hinge", axis=axes[k])
    model = b.build()
    leaves = [k for k in range(links) if k not in inner]
    return model, [dl.Connect(model, f"b{k}", point=(0, 0, -0.2)) for k in leaves if rng.random() < 0.5], rng


@pytest.mark.parametrize("method", ["auto", "lcaba", "prox-ltl", "kkt"])
@pytest.mark.parametrize(
    ("links", "seed", "bend"), [(30, 56, 0.03), (60, 4, 0.03), (60, 40, 0.03), (100, 49, 0.6), (100, 90, 0.03), (100, 137, 0.6)]
)
def test_rows_that_a_mechanism_at_rest_meets_do_not_contradict_each_other(links, seed, bend, method):
    """At rest γ = 0, and ν̇ = 0 meets every row, however nearly they depend on each other."""
    model, pins, rng = pinned_tree(links, seed)
    q, tau = bend * rng.standard_normal(links), 0.1 * rng.standard_normal(links)
    result = dl.constrained_dynamics(model, q, model.zero_velocity(), tau, pins, method=method)
    assert result.status != "infeasible_least_squares"
    if method in ("auto", "kkt"):
        assert result.status == "solved"


def caterpillar(links):
    """A spine of rods in a wave, a limb on every rod, every other limb pinned to the world: 0.08 m a link from end to end."""
    b, rod = dl.ModelBuilder("caterpillar"), {"mass": 0.5, "com": (0, 0, -0.1), "inertia": (1.7e-3, 1.7e-3, 1e-4)}
    q = {}
    for k in range(links // 2):
        b.add_body(f"spine{k}", f"spine{k - 1}" if k else "world", position=(0, 0, -0.2 if k else 0), **rod)
        q[b.add_joint(f"spine{k}", "hinge", axis=(0, 1, 0))] = 0.4 * np.sin(0.7 * k + 0.4)
        b.add_body(f"limb{k}", f"spine{k}", position=(0, 0, -0.1), **rod)
        q[b.add_joint(f"limb{k}", "hinge", axis=(1, 0, 0))] = 0.5
    model, pinned = b.build(), [f"limb{k}" for k in range(0, links // 2, 2)]
    return (
        model,
        np.array([q[name] for name in model.joint_names]),
        pinned,
        [dl.Connect(model, name, point=(0, 0, -0.2)) for name in pinned],
    )


@pytest.mark.parametrize("links", [100, 300, 1000])
@pytest.mark.parametrize("seed", range(2))
def test_dynamics_far_from_the_origin_of_a_tree_hold_to_rounding(links, seed):
    """76 m of rods of 0.2 m: moments about the origin of the tree have lost six digits of those about the rods, the certificate and its corrections have not."""
    model, q, pinned, pins = caterpillar(links)
    tau = 0.1 * np.random.default_rng(seed).standard_normal(model.nv)
    result = dl.constrained_dynamics(model, q, model.zero_velocity(), tau, pins, method="lcaba")
    assert result.status == "solved"
    if links == 100:
        rows = [Rows("point", model.body_index(name), None, (0, 0, -0.2)) for name in pinned]
        assert max(Exact(model, q, np.zeros(model.nv), tau, rows).residuals(result.acceleration, result.forces)) < 1e-13


def test_dynamics_of_a_large_binary_tree_hold_to_rounding():
    model = dl.scenes.binary_tree(12)
    inner = set(model.body_parent.tolist())
    pins = [dl.Connect(model, b, point=(0, 0, -0.2)) for b in range(1, model.nbody) if b not in inner]
    q, tau = 0.4 * np.sin(0.7 * np.arange(model.nq) + 0.4), 0.1 * np.random.default_rng(0).standard_normal(model.nv)
    assert dl.constrained_dynamics(model, q, model.zero_velocity(), tau, pins, method="lcaba").status == "solved"


def test_a_batch_repairs_the_states_that_fail_and_no_others():
    model = light.four_bar(1e-12)
    rng = np.random.default_rng(1)
    q = np.stack([light.four_bar_pose(model, a) for a in rng.uniform(0.3, 1.2, 11)])
    v, tau = np.zeros((11, model.nv)), rng.standard_normal((11, model.nv))
    tau[:, [model.joint_index(f"{ball}_hinge") for ball in ("first", "second")]] = 0.0
    many = dl.BatchConstrainedDynamics(model, model.loops, 11).solve(q, v, tau)
    single = dl.ConstrainedDynamics(model, model.loops)
    for k in range(11):
        one = single.solve(q[k], v[k], tau[k])
        assert many.status[k] == one.status == "solved"
        assert np.abs(many.acceleration[k] - one.acceleration).max() <= 1e-8 * np.abs(one.acceleration).max()
    assert many.repaired.any()
    whole = light.four_bar(1e-1)
    assert not dl.BatchConstrainedDynamics(whole, whole.loops, 11).solve(q, v, tau).repaired.any()


@pytest.mark.parametrize("compliance", [1e-4, 1e-8, 1e-11, 1e-14, 1e-18])
def test_stiff_springs_hold_their_own_equations(compliance):
    """J ν̇ + C λ + γ = 0 with one compliance: as 1e-14 of a mechanism of one kilogram goes to zero, what the rigid rows say."""
    model, q, v, tau, dense = moving_four_bar(1e-2, free=False)
    soft = dl.constrained_dynamics(model, q, v, tau, model.loops, method="soft-gauss", compliance=compliance)
    assert soft.status == "relaxed"
    left = dense.M @ soft.acceleration + dense.h - tau - dense.J.T @ soft.forces
    assert np.abs(left).max() <= 1e-9 * np.abs(dense.h).max()
    assert np.abs(dense.J @ soft.acceleration + compliance * soft.forces + dense.gamma).max() <= 1e-9 * np.abs(dense.gamma).max()
    if compliance < 1e-10:
        rigid = exact_accelerations(dense, Units())
        assert np.abs(soft.acceleration - rigid).max() <= 1e-8 * np.abs(rigid).max()


def plane_loop(offset=0.0, tilt=0.0, length=1.0):
    """A plane four-bar in space whose last hinge is off the plane, whose axes are tilted."""
    b = dl.ModelBuilder("plane", gravity=(0, 0, -9.81 * length))
    for name, parent, x, rod, axis in (
        ("crank", "world", 0.0, 0.2, (0, 1, 0)),
        ("coupler", "crank", 0.2, 0.5, (tilt, 1, 0)),
        ("rocker", "world", 0.5, 0.4, (0, 1, tilt)),
    ):
        inertia = np.array([1e-3, rod**2 / 12, rod**2 / 12]) * length**2
        b.add_body(name, parent, position=(x * length, 0, 0), mass=1.0, com=(rod / 2 * length, 0, 0), inertia=inertia)
        b.add_joint(name, "hinge", axis=axis)
    b.add_connect("coupler", "rocker", point=(0.5 * length, offset * length, 0), other_point=(0.4 * length, 0, 0))
    return b.build()


@pytest.mark.parametrize("length", [1.0, 1e6, 1e-6])
@pytest.mark.parametrize(("offset", "tilt"), [(1e-8, 0), (0, 1e-8), (1e-8, 1e-8), (3e-8, -2e-8), (0, 1e-9), (0, 1e-7)])
def test_a_plane_loop_moves_however_it_is_drawn(offset, tilt, length):
    plain, drawn = plane_loop(length=length), plane_loop(offset, tilt, length)
    q = light.four_bar_pose(plain, 0.6)
    want = dl.constrained_dynamics(plain, q, np.zeros(3), None, plain.loops)
    result = dl.constrained_dynamics(drawn, q, np.zeros(3), None, drawn.loops)
    assert want.status == "solved"
    assert result.status == ("redundant" if tilt else "solved")
    assert bool(result.advice) == (result.status == "redundant")
    assert result.residuals.constraints <= 1e-6
    assert np.abs(result.acceleration - want.acceleration).max() <= 1e-6 * np.abs(want.acceleration).max()


@pytest.mark.parametrize("length", [1.0, 1e6])
@pytest.mark.parametrize(("offset", "tilt"), [(1e-8, 0), (0, 1e-8), (1e-8, 1e-8), (3e-8, -2e-8)])
def test_a_plane_loop_closes_as_far_as_it_is_drawn(offset, tilt, length):
    model = plane_loop(offset, tilt, length)
    q = light.four_bar_pose(model, 0.6) + np.array([0.01, 0.02, -0.01])
    closed = dl.close_loops(model, q)
    assert closed.status == "redundant"
    assert closed.advice
    assert closed.iterations < 100
    # in the plane it is closed; across it nothing can be done
    assert np.abs(closed.errors[[0, 2]]).max() <= 1e-11 * length
    assert closed.residual <= 5e-8 * length
    assert np.abs(difference(closed, dl.close_loops(plane_loop(length=length), q))).max() <= 1e-6


def difference(one, other):
    return one.configuration - other.configuration


def test_a_loop_that_misses_by_a_millimetre_is_not_closed():
    model = plane_loop(offset=1e-3)
    assert dl.close_loops(model, light.four_bar_pose(model, 0.6)).status == "not_closable"


def five_bar(gap):
    """Two arms of two links whose last links are in line but for a gap: model and configuration."""
    b = dl.ModelBuilder("five", gravity=(0, 0, -9.81))
    for name, parent, x in (("left", "world", 0.0), ("left tip", "left", 0.5), ("right", "world", 0.6), ("right tip", "right", 0.5)):
        b.add_body(name, parent, position=(x, 0, 0), mass=1.0, com=(0.25, 0, 0), inertia=(1e-3, 0.02, 0.02))
        b.add_joint(name, "hinge", axis=(0, 1, 0))
    b.add_connect("left tip", "right tip", point=(0.5, 0, 0), other_point=(0.5, 0, 0))

    def point(a):
        return 0.5 * np.array([np.cos(a), np.sin(a)])

    first, base, low, high = point(1.8), np.array([0.6, 0.0]), 0.0, 1.5
    for _ in range(200):
        middle = 0.5 * (low + high)
        far = np.linalg.norm(base + point(middle) - first) > 1 - gap
        low, high = (middle, high) if far else (low, middle)
    second = base + point(low)
    apart = second - first
    d = np.linalg.norm(apart)
    pin = (first + second) / 2 + np.sqrt(max(0.25 - d * d / 4, 0.0)) * np.array([-apart[1], apart[0]]) / d
    left, right = np.arctan2(*(pin - first)[::-1]), np.arctan2(*(pin - second)[::-1])
    return b.build(), np.array([-1.8, 1.8 - left, -low, low - right])


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-13, 1e-12, 1e-10, 1e-6, 1e-3])
def test_torques_of_a_singular_five_bar_are_bounded(gap):
    model, q = five_bar(gap)
    assert np.abs(dl.constraint_error(model, q, model.loops)).max() < 1e-14
    drives = ["left_hinge", "right_hinge"]
    result = dl.constrained_inverse_dynamics(model, q, np.zeros(4), np.zeros(4), model.loops, actuated=drives)
    weight = np.abs(dl.bias_forces(model, q, np.zeros(4))).max()
    assert np.abs(result.torques).max() <= 1e5 * weight
    if gap < 1e-11:
        assert result.status in ("singular", "underactuated")
        assert result.advice
        assert np.abs(result.torques).max() <= 10 * weight
    else:
        assert result.status == "solved"


@pytest.mark.parametrize("method", ["prox-ltl", "prox-pv"])
@pytest.mark.parametrize("mu", [1e14, 1e16, 1e18])
def test_a_penalty_beyond_rounding_and_repeated_rows_leave_finite_forces(method, mu):
    """The dense factor of G + 1 / mu has pivots of rounding where rows repeat: they count as that, not as 1 / mu."""
    model = dl.load("go2")
    feet = [dl.PointContact(model, body, point=(0, 0, -0.2)) for body in model.body_names if "calf" in body]
    q, tau = model.keyframes["home"], np.random.default_rng(0).normal(size=model.nv)
    want = dl.constrained_dynamics(model, q, model.zero_velocity(), tau, feet)
    got = dl.constrained_dynamics(model, q, model.zero_velocity(), tau, feet * 2, method=method, mu=mu)
    assert got.status == "solved"
    assert np.allclose(got.acceleration, want.acceleration, rtol=0, atol=1e-9 * np.abs(want.acceleration).max())


@pytest.mark.parametrize("robot", ["go2", "g1", "talos"])
def test_a_robot_on_its_feet_takes_two_iterations(robot):
    """One elimination and one correction, of whose answer both equations hold: more would be work for nothing."""
    model = dl.load(robot)
    ends = {"go2": "calf", "g1": "ankle_roll", "talos": "_6"}[robot]
    feet = [dl.PointContact(model, body) for body in model.body_names if ends in body]
    assert len(feet) >= 2
    rng = np.random.default_rng(1)
    q = model.keyframes.get("home", model.neutral())
    for _ in range(20):
        r = dl.constrained_dynamics(model, q, 0.3 * rng.normal(size=model.nv), rng.normal(size=model.nv), feet)
        assert r.status == "solved"
        assert r.method == "lcaba"
        assert r.iterations <= 2
