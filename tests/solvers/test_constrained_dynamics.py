"""Accelerations and forces under constraints: against a dense solve by singular values, energy and power, MuJoCo's springs, batches against singles."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus import errors
from oracles import cases, closed

METHODS = ("lcaba", "caba")
FEW = ("go2", "g1", "iiwa", "chain", "tree", "one link", "one box", "mixed", "two trees")


class Wanted:
    """What singular values say: of all accelerations that meet the rows best, the nearest to the free one in the metric of M."""

    def __init__(self, model, q, v, tau, J, M, h, constraints):
        self.J, self.M, self.rest = J, M, tau - h
        self.gamma = dl.constraint_bias(model, q, v, constraints) if constraints else np.zeros(0)
        d = np.sqrt(M.diagonal())
        half = np.linalg.inv(np.linalg.cholesky(M / np.outer(d, d))) / d  # halfᵀ half = M⁻¹
        self.free = half.T @ half @ self.rest
        u, s, vt = np.linalg.svd(J @ half.T, full_matrices=False)
        keep = s > 1e-9 * max(s.max(initial=0.0), 1e-300)
        self.least = (s[keep] ** 2).min(initial=np.inf)
        b = -self.gamma - J @ self.free
        self.acceleration = self.free + half.T @ (vt[keep].T @ ((u[:, keep].T @ b) / s[keep]))
        self.residual = J @ self.acceleration + self.gamma
        self.scale = max(np.abs(self.acceleration).max(), np.abs(self.free).max(), 1.0)

    @property
    def feasible(self):
        return np.abs(self.residual).max(initial=0.0) < 1e-8 * max(np.abs(self.gamma).max(initial=0.0), self.scale)


def wanted_of(case, v, tau):
    oracle = case.oracle if np.array_equal(case.oracle.v, v) else type(case.oracle)(case.model, case.oracle.q, v)
    return Wanted(case.model, case.oracle.q, v, tau, case.J, oracle.mass_matrix, oracle.bias_forces, case.constraints)


def check(result, want, tolerance=1e-8):
    assert np.abs(result.acceleration - want.acceleration).max() <= tolerance * want.scale
    # whatever the status, forces and accelerations belong together
    balance = want.M @ result.acceleration - want.rest - want.J.T @ result.forces
    size = np.abs(want.M).max() * want.scale + np.abs(want.J.T).max(initial=0.0) * np.abs(result.forces).max(initial=0.0)
    assert np.abs(balance).max() <= 1e-9 * size
    if want.feasible:
        assert result.status == "solved"
        assert np.abs(want.J @ result.acceleration + want.gamma).max(initial=0.0) <= 1e-9 * want.scale
    else:
        assert result.status == "infeasible_least_squares"
        assert result.advice


@pytest.mark.parametrize("kinds", ["none", "contacts", "redundant"])
@pytest.mark.parametrize("name", [*cases.MODELS, *cases.RANDOM])
def test_rows_on_single_links(name, kinds):
    case = cases.case(name, kinds)
    tau = case.numbers(case.model.nv)
    want = wanted_of(case, case.oracle.v, tau)
    for method in METHODS:
        # one mu for all rows: contradictory ones are met as singular values meet them
        result = dl.constrained_dynamics(
            case.model, case.oracle.q, case.oracle.v, tau, case.constraints, method=method, mu=1e6, max_iterations=200
        )
        if want.least > 1e-4:
            check(result, want)
        assert [f.shape for f in result.constraint_forces] == [(c.rows,) for c in case.constraints]
        assert len(result.history) == result.iterations
        assert result.history[-1] == result.residuals.primal


@pytest.mark.parametrize("name", closed.NAMED)
@pytest.mark.parametrize("seed", range(5))
def test_closed_mechanisms(name, seed):
    case = closed.named(name, seed)
    v, tau = case.projector @ case.rng.standard_normal(case.model.nv), case.rng.standard_normal(case.model.nv)
    want = wanted_of(case, v, tau)
    result = dl.constrained_dynamics(case.model, case.q, v, tau, case.constraints, mu=1e6, max_iterations=100)
    check(result, want)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(200))
def test_random_loops(seed):
    case = closed.random_loop(seed)
    v, tau = case.projector @ case.rng.standard_normal(case.model.nv), case.rng.standard_normal(case.model.nv)
    want = wanted_of(case, v, tau)
    result = dl.constrained_dynamics(case.model, case.q, v, tau, case.constraints, mu=1e6, max_iterations=500)
    if want.least > 1e-4:
        check(result, want)
    else:
        # a direction that rows hardly feel takes many iterations: what is there is consistent all the same
        assert np.isfinite(result.acceleration).all()
        assert result.residuals.primal < 1e-3 * want.scale


@pytest.mark.parametrize("name", dl.scenes.contact_sets)
def test_few_iterations_are_enough(name):
    scene = dl.scenes.contact_set(name)
    rng = np.random.default_rng(0)
    dynamics = dl.ConstrainedDynamics(scene.model, scene.constraints)
    G = dl.DelassusOperator(scene.model, scene.constraints, damping=1e-9)
    for _ in range(20):
        # fingers are straight at home
        q = dl.integrate(scene.model, scene.q, rng.uniform(0.1, 0.5, scene.model.nv), 1.0)
        G.update(q)
        v = 0.3 * rng.standard_normal(scene.model.nv)
        v = v - G.mass_inverse @ (G.jacobian.H @ G.solve(G.jacobian @ v))
        result = dynamics.solve(q, v, rng.standard_normal(scene.model.nv))
        assert result.status == "solved"
        assert result.iterations <= 10
        bias = dl.constraint_bias(scene.model, q, v, scene.constraints)
        terms = np.abs(G.jacobian @ np.eye(scene.model.nv)) @ np.abs(result.acceleration)  # fingers reach 1e4 rad/s²
        assert result.residuals.primal <= max(1e-10, 1e-10 * np.abs(bias).max(), 1e-12 * terms.max())


def test_redundant_rows_of_talos_converge_in_a_few_iterations():
    model = dl.load("talos")
    feet = ("leg_left_6_link", "leg_right_6_link")
    corners = [(x, y, -0.1) for x in (-0.1, 0.1) for y in (-0.05, 0.05)]
    contacts = [dl.PointContact(model, body, point=p) for body in feet for p in corners]  # 24 rows, 12 of them independent
    dynamics = dl.ConstrainedDynamics(model, contacts)
    rng = np.random.default_rng(3)
    for k in range(50):
        q = model.random(k)
        result = dynamics.solve(q, np.zeros(model.nv), rng.standard_normal(model.nv))
        assert result.status == "solved"
        assert result.iterations <= 10


@pytest.mark.parametrize("name", FEW)
def test_external_forces_and_no_torques(name):
    case = cases.case(name)
    model, q, v = case.model, case.oracle.q, case.oracle.v
    wrench = case.numbers(model.nbody, 6)
    dynamics = dl.ConstrainedDynamics(model, case.constraints, mu=1e6, max_iterations=100)
    pushed = dynamics.solve(q, v, external_forces=wrench)
    # the same as torques
    tau = dl.bias_forces(model, q, v) - dl.inverse_dynamics(model, q, v, np.zeros(model.nv), external_forces=wrench)
    turned = dynamics.solve(q, v, tau)
    assert np.allclose(pushed.acceleration, turned.acceleration, rtol=0, atol=1e-8 * max(1.0, np.abs(turned.acceleration).max()))


@pytest.mark.parametrize("method", ["lcaba", "prox-ltl", "prox-pv", "pv-early"])
@pytest.mark.parametrize("name", ["go2", "solo"])
def test_inverse_dynamics_returns_the_torques(name, method):
    """One foot held as a whole has as many rows as the base has velocities: torques are unique."""
    model = dl.load(name)
    foot = next(b for b in range(1, model.nbody) if b not in model.body_parent)
    constraints = [dl.Weld(model, foot, point=(0.01, 0.02, -0.1))]
    rng = np.random.default_rng(4)
    q, v, tau = model.random(rng), np.zeros(model.nv), rng.standard_normal(model.nv)
    tau[:6] = 0
    forward = dl.constrained_dynamics(model, q, v, tau, constraints, method=method)
    back = dl.constrained_inverse_dynamics(model, q, v, forward.acceleration, constraints)
    assert np.allclose(back.torques, tau, rtol=0, atol=1e-8 * max(1.0, back.condition * 1e-3))
    assert np.allclose(back.forces, forward.forces, rtol=0, atol=1e-7 * np.abs(forward.forces).max())


@pytest.mark.parametrize("name", ["go2", "cassie"])
def test_gauss_principle(name):
    """No acceleration that meets the rows is nearer to the free one."""
    model = dl.load(name)
    q, rng = model.keyframes["home"], np.random.default_rng(1)
    constraints = [*model.loops, dl.Connect(model, model.nbody - 1)]
    tau = rng.standard_normal(model.nv)
    result = dl.constrained_dynamics(model, q, model.zero_velocity(), tau, constraints)
    M, free = dl.mass_matrix(model, q), dl.forward_dynamics(model, q, model.zero_velocity(), tau)
    G = dl.DelassusOperator(model, constraints, damping=1e-9)
    G.update(q)
    N = dl.OperationalSpace(G, iterations=3).null_space
    away = result.acceleration - free
    for _ in range(20):
        d = N @ rng.standard_normal(model.nv)
        assert abs(d @ M @ away) <= 1e-7 * np.sqrt((d @ M @ d) * (away @ M @ away))


def test_constraint_forces_do_no_work_where_rows_hold():
    model = dl.scenes.four_bar()
    q = closed.four_bar_pose(model, 0.4)
    case = closed.of(model, q)
    v = case.projector @ np.ones(model.nv)
    result = dl.constrained_dynamics(model, q, v, None, model.loops)
    power = v @ (dl.mass_matrix(model, q) @ result.acceleration + dl.bias_forces(model, q, v))
    assert abs(power) <= 1e-9 * np.abs(result.forces).max()


def test_energy_of_a_four_bar_drifts_little():
    """Ten seconds of a frictionless four-bar, fourth-order steps that are projected back on the loop."""
    model = dl.scenes.four_bar()
    case = closed.of(model, closed.four_bar_pose(model, 0.4))
    q, v = case.q.copy(), case.projector @ np.array([3.0, 0.0, 0.0])
    dynamics = dl.ConstrainedDynamics(model, model.loops)
    G = dl.DelassusOperator(model, model.loops, damping=1e-10)

    def rate(q, v):
        return dynamics.solve(q, v).acceleration

    def energy():
        return dl.kinetic_energy(model, q, v) + dl.potential_energy(model, q)

    h, start, worst = 2e-3, energy(), 0.0
    scale = max(abs(start), dl.kinetic_energy(model, q, v))
    for _ in range(int(10 / h)):
        a1 = rate(q, v)
        v2 = v + h / 2 * a1
        a2 = rate(dl.integrate(model, q, v, h / 2), v2)
        v3 = v + h / 2 * a2
        a3 = rate(dl.integrate(model, q, v2, h / 2), v3)
        v4 = v + h * a3
        a4 = rate(dl.integrate(model, q, v3, h), v4)
        q = dl.integrate(model, q, (v + 2 * v2 + 2 * v3 + v4) / 6, h)
        v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        for _ in range(2):
            G.update(q)
            e = dl.constraint_error(model, q, model.loops)
            q = dl.integrate(model, q, -(G.mass_inverse @ (G.jacobian.H @ G.solve(e))), 1.0)
        G.update(q)
        v = v - G.mass_inverse @ (G.jacobian.H @ G.solve(G.jacobian @ v))
        worst = max(worst, np.abs(dl.constraint_error(model, q, model.loops)).max())
    assert worst < 1e-9
    assert abs(energy() - start) < 1e-6 * scale


LOOPS = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0"/><geom size=".1 .02" type="capsule" fromto="0 0 0 .3 0 0"/>
    <body name="b" pos=".3 0 0"><joint name="jb" axis="0 1 0"/><geom size=".1 .02" type="capsule" fromto="0 0 0 .3 0 0"/></body></body>
  <body name="c" pos=".6 0 1.02"><freejoint/><geom size=".05 .06 .07" type="box"/></body>
</worldbody><equality>{}</equality></mujoco>"""
SPRINGS = {
    "connect": '<connect body1="b" body2="c" anchor=".3 0 0" solref="0.02 1" solimp="0.9 0.95 0.001"/>',
    "connect to the world": '<connect body1="b" anchor=".3 0.01 0" solref="-500 -20" solimp="0.8 0.9 0.01"/>',
    "coupled joints": '<joint joint1="ja" joint2="jb" polycoef="0.1 0.5 0 0 0" solref="0.05 0.7"/>',
}


@pytest.mark.parametrize("kind", SPRINGS)
def test_soft_gauss_is_mujocos_equality(kind):
    """With MuJoCo's own R and reference acceleration, its own acceleration."""
    mj = mujoco.MjModel.from_xml_string(LOOPS.format(SPRINGS[kind]))
    mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    mj.opt.tolerance, mj.opt.iterations = 0, 200
    data = mujoco.MjData(mj)
    rng = np.random.default_rng(2)
    model = dl.load(mj)
    for _ in range(5):
        data.qpos[:] = model.random(rng)
        data.qvel[:] = rng.standard_normal(mj.nv)
        data.qfrc_applied[:] = rng.standard_normal(mj.nv)
        mujoco.mj_forward(mj, data)
        constraints = list(model.loops)
        # their rows are ours up to sign: fit signs on the velocities
        ours = dl.constraint_velocity(model, data.qpos, data.qvel, constraints)
        sign = np.sign(ours * data.efc_vel)
        assert np.allclose(ours, sign * data.efc_vel, atol=1e-10)
        drift = dl.constraint_drift(model, data.qpos, data.qvel, constraints)
        dynamics = dl.ConstrainedDynamics(model, constraints, method="soft-gauss", compliance=np.array(data.efc_R))
        # MuJoCo's reference acceleration leaves J̇v out: J ν̇ = aref
        result = dynamics.solve(data.qpos, data.qvel, data.qfrc_applied, bias=-sign * data.efc_aref)
        assert drift.shape == result.forces.shape
        assert result.status == "relaxed"
        assert np.allclose(result.acceleration, data.qacc, rtol=0, atol=1e-8 * max(1.0, np.abs(data.qacc).max()))


@pytest.mark.parametrize("name", ["go2", "iiwa"])
def test_pv_soft_is_the_first_iteration(name):
    case = cases.case(name)
    model, q, v = case.model, case.oracle.q, case.oracle.v
    soft = dl.constrained_dynamics(model, q, v, None, case.constraints, method="pv-soft", mu=1e4)
    first = dl.constrained_dynamics(model, q, v, None, case.constraints, method="soft-gauss", compliance=1e-4)
    assert soft.status == "relaxed"
    assert soft.iterations == 1
    assert np.allclose(soft.acceleration, first.acceleration, rtol=1e-12, atol=1e-12)
    want = np.linalg.solve(
        case.oracle.mass_matrix + 1e4 * case.J.T @ case.J,
        -case.oracle.bias_forces - 1e4 * case.J.T @ dl.constraint_bias(model, q, v, case.constraints),
    )
    assert np.allclose(soft.acceleration, want, rtol=0, atol=1e-7 * np.abs(want).max())


def test_compliance_gives_way():
    case = cases.case("go2")
    model, q, v = case.model, case.oracle.q, case.oracle.v
    result = dl.constrained_dynamics(model, q, v, None, case.constraints, compliance=1e-2)
    gamma = dl.constraint_bias(model, q, v, case.constraints)
    assert np.allclose(case.J @ result.acceleration + 1e-2 * result.forces + gamma, 0, atol=1e-9 * np.abs(gamma).max())
    assert result.status == "solved"


def test_a_warm_start_needs_fewer_iterations():
    scene = dl.scenes.contact_set("talos-F6x2-H6x2")
    dynamics = dl.ConstrainedDynamics(scene.model, scene.constraints, mu=1e4)
    cold = dynamics.solve(scene.q, scene.model.zero_velocity())
    warm = dynamics.solve(scene.q, scene.model.zero_velocity(), warm_start=cold.forces)
    assert warm.iterations < cold.iterations
    assert np.allclose(warm.forces, cold.forces, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 7, 40])
def test_batches_are_singles(size, dtype):
    model = dl.load("cassie" if dtype == np.float64 else "go2")
    constraints = [*model.loops, dl.Connect(model, model.nbody - 1)]
    rng = np.random.default_rng(size)
    q = np.stack([dl.integrate(model, model.keyframes["home"], 0.1 * rng.standard_normal(model.nv), 1.0) for _ in range(size)]).astype(
        dtype
    )
    v, tau = rng.standard_normal((2, size, model.nv)).astype(dtype)
    v *= 0
    wrench = rng.standard_normal((size, model.nbody, 6)).astype(dtype)
    settings = {
        "mu": 1e6 if dtype == np.float64 else 1e3,
        "tolerance": 1e-10 if dtype == np.float64 else 1e-3,
        "max_iterations": 100,
        "dtype": dtype,
    }
    single = dl.ConstrainedDynamics(model, constraints, **settings)
    for threads in (1, 2):
        batch = dl.BatchConstrainedDynamics(model, constraints, size, threads=threads, **settings)
        result = batch.solve(q, v, tau, external_forces=wrench)
        close = 1e-7 if dtype == np.float64 else 5e-2
        for k in range(size):
            one = single.solve(q[k], v[k], tau[k], external_forces=wrench[k])
            assert result.status[k] == one.status == "solved"
            assert np.abs(result.acceleration[k] - one.acceleration).max() <= close * np.abs(one.acceleration).max()
            assert result.primal[k] <= (1e-9 if dtype == np.float64 else 1e-3) * max(1.0, np.abs(one.acceleration).max())


@pytest.mark.parametrize("size", [3, 17])
def test_every_state_of_a_batch_has_its_own_numbers(size):
    scene = dl.scenes.contact_set("go2-F3x4")
    model, m = scene.model, 12
    rng = np.random.default_rng(size)
    q = np.stack([dl.integrate(model, scene.q, 0.1 * rng.standard_normal(model.nv), 1.0) for _ in range(size)])
    v, tau = rng.standard_normal((2, size, model.nv))
    start, gamma = rng.standard_normal((2, size, m))
    mu, compliance = 10.0 ** rng.uniform(3, 6, (size, m)), rng.uniform(0.1, 1.0, (size, m))
    many = dl.BatchConstrainedDynamics(model, scene.constraints, size, mu=mu, compliance=compliance).solve(
        q, v, tau, bias=gamma, warm_start=start
    )
    for k in range(size):
        single = dl.ConstrainedDynamics(model, scene.constraints, mu=mu[k], compliance=compliance[k])
        one = single.solve(q[k], v[k], tau[k], bias=gamma[k], warm_start=start[k])
        assert np.abs(many.acceleration[k] - one.acceleration).max() <= 1e-9 * np.abs(one.acceleration).max()
        assert np.abs(many.forces[k] - one.forces).max() <= 1e-9 * np.abs(one.forces).max()


def test_repeatable_to_the_bit():
    case = cases.case("g1")
    dynamics = dl.ConstrainedDynamics(case.model, case.constraints)
    a, b = (dynamics.solve(case.oracle.q, case.oracle.v) for _ in range(2))
    assert np.array_equal(a.acceleration, b.acceleration)
    assert np.array_equal(a.forces, b.forces)


def test_results_go_where_they_are_wanted():
    scene = dl.scenes.contact_set("go2-F3x4")
    dynamics = dl.ConstrainedDynamics(scene.model, scene.constraints)
    a, f = np.empty(scene.model.nv), np.empty(12)
    result = dynamics.solve(scene.q, scene.model.zero_velocity(), acceleration=a, forces=f)
    assert result.acceleration is a
    assert result.forces is f
    assert dynamics.nbytes > 0
    assert "go2" in repr(dynamics)


def test_bad_input_is_told():
    scene = dl.scenes.contact_set("go2-F3x4")
    model, q, v = scene.model, scene.q, scene.model.zero_velocity()
    cassie = dl.load("cassie")
    with pytest.raises(errors.UnknownNameError, match="lcaba"):
        dl.constrained_dynamics(model, q, v, None, scene.constraints, method="lcba")
    with pytest.raises(errors.ArgumentError, match="'lcaba'"):
        dl.ConstrainedDynamics(cassie, cassie.loops, method="caba")
    with pytest.raises(errors.ArgumentError, match="mu"):
        dl.ConstrainedDynamics(model, scene.constraints, mu=0)
    with pytest.raises(errors.ArgumentError, match="compliance"):
        dl.ConstrainedDynamics(model, scene.constraints, method="soft-gauss")
    with pytest.raises(errors.ArgumentError, match="max_iterations"):
        dl.ConstrainedDynamics(model, scene.constraints, max_iterations=0)
    with pytest.raises(errors.NotFiniteError, match="tau"):
        dl.constrained_dynamics(model, q, v, np.full(model.nv, np.nan), scene.constraints)
    with pytest.raises(errors.ArgumentError, match="warm_start"):
        dl.constrained_dynamics(model, q, v, None, scene.constraints, warm_start=np.zeros(5))
    with pytest.raises(errors.ArgumentTypeError, match="dtype"):
        dl.ConstrainedDynamics(model, scene.constraints, dtype=int)
    with pytest.raises(errors.ArgumentError, match="batches"):
        dl.BatchConstrainedDynamics(model, scene.constraints, 3, method="caba")


def test_too_few_iterations_are_a_status():
    scene = dl.scenes.contact_set("go2-F3x4")
    state = (scene.model, scene.q, scene.model.zero_velocity(), None, scene.constraints)
    result = dl.constrained_dynamics(*state, method="lcaba", mu=1.0, max_iterations=2)
    assert result.status == "iteration_limit"
    assert result.advice
    assert result.residuals.primal > 0


def test_a_method_without_iterations_does_not_ask_for_more():
    # rows that all but depend on each other, next to a stretched arm
    model = dl.load("iiwa")
    rng = np.random.default_rng(0)
    q, v, tau = 1e-10 * rng.standard_normal(model.nv), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
    result = dl.constrained_dynamics(model, q, v, tau, [dl.Weld(model, model.nbody - 1)], method="pv-early")
    assert result.status == "stalled"
    assert "'auto'" in result.advice
    assert "max_iterations" not in result.advice
    assert "mu" not in result.advice.split()


def test_single_precision_says_when_rounding_stops_it():
    model = dl.load("cassie")
    q = model.keyframes["home"].astype(np.float32)
    dynamics = dl.ConstrainedDynamics(model, model.loops, method="lcaba", mu=1e7, tolerance=1e-7, max_iterations=100, dtype=np.float32)
    result = dynamics.solve(q, np.zeros(model.nv, np.float32), np.ones(model.nv, np.float32))
    assert np.isfinite(result.acceleration).all()
    assert result.status != "solved"
    assert result.advice
