"""Functions for CasADi: values and derivatives against the textbook's expressions, sparsity, and optimal control problems that are solved with them."""

import gc

import numpy as np
import pytest

import delassus as dl
from delassus import textbook as tb
from oracles.compare import agree
from oracles.contact_problems import mixed_problem, pushed_tripod

casadi = pytest.importorskip("casadi", reason="the extra symbolic is not installed")

import delassus.casadi as dc  # noqa: E402


def arms():
    """Two arms of two hinges on a slide, and a third that stands alone: branches, and trees."""
    b = dl.ModelBuilder("arms")
    solid = {"mass": 1.0, "com": (0.1, 0.05, -0.2), "inertia": (0.03, 0.04, 0.02)}
    for name, parent, joint, axis in (
        ("base", "world", "slide", (1, 0, 0)), ("a0", "base", "hinge", (0, 1, 0)), ("a1", "a0", "hinge", (1, 1, 0)), ("b0", "base", "hinge", (0, 1, 1)),
        ("b1", "b0", "ball", None), ("c0", "world", "hinge", (0, 1, 0)),
    ):  # fmt: skip
        b.add_body(name, parent, position=(0.1, 0.2, -0.4), **solid)
        b.add_joint(name, joint, **({} if axis is None else {"axis": axis}))
    return b.build()


def drawn(model, seed=0):
    rng = np.random.default_rng(seed)
    return model.random(rng), *rng.standard_normal((2, model.nv))


def expressed(f, *x):
    """Value, Jacobian by all arguments, gradient of a weighted sum and product along a direction, of an expression in MX and of one in SX: ``f(*symbols)``, at x."""
    kind = casadi.MX if getattr(f, "native", False) else casadi.SX
    symbols = [kind.sym(f"x{k}", len(a)) for k, a in enumerate(x)]
    y = f(*symbols)
    every = casadi.vertcat(*symbols)
    rng = np.random.default_rng(1)
    weights, along = rng.standard_normal(y.shape[0]), rng.standard_normal(every.shape[0])
    found = casadi.Function(
        "found",
        symbols,
        [y, casadi.jacobian(y, every), casadi.gradient(casadi.dot(weights, y), every), casadi.jtimes(y, every, casadi.DM(along))],
    )
    return [np.array(a.full()) for a in found(*x)]


def native(f):
    f.native = True
    return f


def unit(model, q):
    """Quaternions of an expression normalized, so that the textbook's functions are those of the library."""
    q = casadi.vertsplit(q)
    for kind, at in zip(model.joint_type, model.joint_qadr, strict=True):
        if kind in ("free", "ball"):
            first = at + 3 * (kind == "free")
            length = casadi.sqrt(sum(x * x for x in q[first : first + 4]))
            q[first : first + 4] = [x / length for x in q[first : first + 4]]
    return casadi.vertcat(*q)


def compared(model, f, textbook, *x):
    wanted = expressed(lambda q, *others: textbook(tb.Robot(model).at(unit(model, q)), *others), *x)
    found = expressed(native(f), *x)
    for a, b in zip(found, wanted, strict=True):
        agree(a, b, 1e-9)


@pytest.mark.parametrize("name", ["arms", "iiwa", "solo"])
def test_derivatives_are_those_of_the_textbook(name):
    model = arms() if name == "arms" else dl.load(name)
    q, v, x = drawn(model)
    compared(model, lambda *a: dc.inverse_dynamics(model, *a), tb.rnea, q, v, x)
    compared(model, lambda *a: dc.forward_dynamics(model, *a), tb.aba, q, v, x)
    body = model.nbody - 1
    rows = [dl.Connect(model, body), dl.Distance(model, body - 1, other_point=(0.0, 0.0, 2.0))]
    x, e = np.linspace(0.5, 1.5, 4), np.linspace(0.1, 0.4, 4)
    compared(model, lambda *a: dc.delassus_apply(model, *a, rows), lambda pose, x: tb.delassus_apply(pose, tb.Rows(pose, rows), x), q, x)

    def damped(pose, y, damping):
        G = tb.delassus_apply(pose, tb.Rows(pose, rows), casadi.SX.eye(4))
        return casadi.solve(G + casadi.diag(damping), y)

    compared(model, lambda *a: dc.delassus_solve(model, *a, rows), damped, q, x, e)


def test_constrained_dynamics_are_those_of_the_textbook():
    """ν̇ and λ of rows whose drift is that of a point, by the equations in expressions: M, h and J of the textbook, and J̇ν as a derivative along the motion."""
    model = dl.load("iiwa")
    q, v, x = drawn(model)
    rows = [dl.Connect(model, model.nbody - 1), dl.Distance(model, 4, other_point=(0.0, 0.0, 2.0))]

    def textbook(pose, v, tau):
        symbols = casadi.symvar(casadi.vertcat(*pose.q))
        J = casadi.horzcat(*(tb.jacobian_apply(pose, tb.Rows(pose, rows), casadi.SX.eye(model.nv)[:, k]) for k in range(model.nv)))
        drift = casadi.jtimes(J @ v, casadi.vertcat(*symbols), v)  # hinges alone: q̇ = ν
        K = casadi.blockcat([[tb.crba(pose), -J.T], [J, casadi.SX(4, 4)]])
        return casadi.solve(K, casadi.vertcat(tau - tb.rnea(pose, v, casadi.SX.zeros(model.nv, 1)), -drift))

    compared(model, lambda *a: casadi.vertcat(*dc.constrained_dynamics(model, *a, rows)), textbook, q, v, x)


def test_sparsity_is_that_of_branches():
    model = arms()
    x = drawn(model)
    symbols = [casadi.MX.sym(f"x{k}", len(a)) for k, a in enumerate(x)]
    d, f = dl.inverse_dynamics_derivatives(model, *x), dl.forward_dynamics_derivatives(model, *x)
    for y, by_q, by_v, by_given in (
        (dc.inverse_dynamics(model, *symbols), d.tau_q, d.tau_v, d.tau_a),
        (dc.forward_dynamics(model, *symbols), f.acceleration_q, f.acceleration_v, f.acceleration_tau),
    ):
        for symbol, wanted in zip(symbols[1:], (by_v, by_given), strict=True):
            pattern = np.array(casadi.DM(casadi.jacobian(y, symbol).sparsity(), 1).full()) > 0
            assert not pattern.all()
            assert (pattern | (wanted == 0)).all()
        along = casadi.jacobian(y, symbols[0])
        assert along.nnz() < along.numel()
        everything = casadi.Function("J", symbols, [casadi.jacobian(y, symbols[0])])(*x).full()
        T = dl.derivatives.functions.TreeFunction(model, True)._coordinates.matrix(x[0][None])[0]
        agree(everything, by_q @ T, 1e-12)


def test_contact_forces():
    """By G, g and friction: against the library's own derivatives along a direction, and adjoints that agree with it."""
    G, g, friction = mixed_problem()
    rng = np.random.default_rng(2)
    dG, dg, dmu, weights = rng.standard_normal((9, 9)), rng.standard_normal(9), 0.1 * rng.standard_normal(3), rng.standard_normal(9)
    S = casadi.MX.sym("G", 9, 9), casadi.MX.sym("g", 9), casadi.MX.sym("friction", 3)
    y = dc.solve_contacts(*S)
    along = casadi.jtimes(y, casadi.vertcat(casadi.vec(S[0]), *S[1:]), casadi.vertcat(casadi.vec(casadi.DM(dG)), dg, dmu))
    value, forward, *back = (
        a.full() for a in casadi.Function("f", S, [y, along, *(casadi.gradient(casadi.dot(weights, y), s) for s in S)])(G, g, friction)
    )
    r = dl.solve_contacts(G, g, friction, tolerance=1e-11)
    agree(value[:, 0], r.forces, 1e-10)
    wanted = dl.ContactDerivatives(G, r, friction).jvp((dG + dG.T) / 2 @ r.forces, dg, dmu).forces
    agree(forward[:, 0], wanted, 1e-9)
    assert sum((b.reshape(d.shape) * d).sum() for b, d in zip(back, (dG, dg, dmu), strict=True)) == pytest.approx(
        weights @ wanted, rel=1e-9
    )
    assert np.array_equal(back[0], back[0].T)


def test_steps():
    """Value and Jacobian of a step: the simulator's own."""
    sim, q, v = pushed_tripod()
    n, control = sim.model.nv, np.array([3.0, -1.0])
    S = [casadi.MX.sym(name, k) for name, k in (("q", sim.model.nq), ("v", n), ("control", 2))]
    after, velocity = dc.step(sim, *S)
    f = casadi.Function(
        "f",
        S,
        [after, velocity, casadi.jacobian(velocity, S[1]), casadi.jacobian(velocity, S[2]), casadi.gradient(casadi.sum1(after), S[2])],
    )
    found = [a.full() for a in f(q, v, control)]
    sim.reset(q, v)
    step = sim.linearize(control=control)
    agree(found[0][:, 0], step.q, 1e-10)
    agree(found[1][:, 0], step.v, 1e-10)
    agree(found[2], step.A[n:, n:], 1e-9)
    agree(found[3], step.B[n:], 1e-9)
    x, dx = casadi.Function("a", S, [after]), 1e-6
    difference = [(x(q, v, control + dx * e).full().sum() - x(q, v, control - dx * e).full().sum()) / (2 * dx) for e in np.eye(2)]
    agree(found[4][:, 0], difference, 1e-5)


def test_columns_are_states_and_functions_outlive_their_makers():
    def make():
        model = dl.load("iiwa")
        q, v, x = (casadi.MX.sym(name, 7, 3) for name in "qvx")
        return casadi.Function("f", [q, v, x], [dc.forward_dynamics(model, q, v, x)])

    f = make()
    gc.collect()
    model = dl.load("iiwa")
    states = [drawn(model, seed) for seed in range(3)]
    found = f(*(np.stack(a, axis=1) for a in zip(*states, strict=True))).full()
    for k, state in enumerate(states):
        agree(found[:, k], dl.forward_dynamics(model, *state), 1e-12)
    f.jacobian()
    gc.collect()
    f.jacobian()(*(np.stack(a, axis=1) for a in zip(*states, strict=True)), found)


def reach(dynamics, model, goal, steps=12, seconds=0.6, bound=200.0):
    """Bring a robot from rest to rest at another configuration with the least torque, by trapezoidal collocation: the problem and its variables."""
    opti, n, h = casadi.Opti(), model.nv, seconds / steps
    Q, V, U = opti.variable(n, steps + 1), opti.variable(n, steps + 1), opti.variable(n, steps + 1)
    opti.minimize(h * casadi.sumsqr(U) / 100 + 1e-3 * casadi.sumsqr(V))
    A = [dynamics(Q[:, k], V[:, k], U[:, k]) for k in range(steps + 1)]
    for k in range(steps):
        opti.subject_to(Q[:, k + 1] == Q[:, k] + h / 2 * (V[:, k] + V[:, k + 1]))
        opti.subject_to(V[:, k + 1] == V[:, k] + h / 2 * (A[k] + A[k + 1]))
    start = np.zeros(n)
    for variable, at, value in ((Q, 0, start), (Q, steps, goal), (V, 0, 0), (V, steps, 0)):
        opti.subject_to(variable[:, at] == value)
    opti.subject_to(opti.bounded(-bound, casadi.vec(U), bound))
    opti.set_initial(Q, np.linspace(start, goal, steps + 1).T)
    opti.solver(
        "ipopt",
        {"print_time": False},
        {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "max_iter": 500, "tol": 1e-6},
    )
    return opti, Q, V, U


def test_an_arm_reaches_a_pose():
    """A plan for the iiwa, with derivatives that are those of the same problem in the textbook's expressions, and that holds when it is played back."""
    model = dl.load("iiwa")
    goal = np.array([0.5, 0.6, -0.4, -0.8, 0.3, 0.5, 0.2])
    opti, Q, V, U = reach(lambda *x: dc.forward_dynamics(model, *x), model, goal)
    aba = tb.function("aba", model, [])
    other = reach(lambda q, v, u: aba(q, v, u), model, goal)[0]
    at = np.random.default_rng(0).uniform(-1, 1, opti.nx)
    for found, wanted in zip(
        *([f(at).full() for f in (casadi.Function("d", [o.x], [casadi.gradient(o.f, o.x)]), casadi.Function("d", [o.x], [casadi.jacobian(o.g, o.x)]))] for o in (opti, other)),
        strict=True,
    ):  # fmt: skip
        agree(found, wanted, 1e-9)
    solution = opti.solve()
    assert solution.stats()["success"]
    q, v, u = (solution.value(x) for x in (Q, V, U))
    assert np.allclose(q[:, -1], goal, atol=1e-7)
    assert np.abs(v[:, -1]).max() < 1e-7
    h = 0.6 / 12
    a = np.stack([dl.forward_dynamics(model, q[:, k], v[:, k], u[:, k]) for k in range(13)], axis=1)
    agree(v[:, 1:], v[:, :-1] + h / 2 * (a[:, :-1] + a[:, 1:]), 1e-6)
    # no better than the plan of the textbook's problem, and no worse
    assert float(solution.value(opti.f)) == pytest.approx(float(other.solve().value(other.f)), rel=1e-4)


def test_a_mechanism_with_a_loop_is_driven():
    """A four-bar linkage turns its crank by a given angle in a given time: multiple shooting through constrained dynamics."""
    model = dl.scenes.four_bar()
    from oracles.closed import four_bar_pose

    start, end = four_bar_pose(model, 0.0), four_bar_pose(model, 0.6)
    loops = [dl.constraints.from_loop(model, loop, baumgarte=(400.0, 40.0)) for loop in model.loops]
    crank = int(model.joint_vadr[model.joint_names.index("crank_hinge")])
    steps, h = 25, 0.02
    opti = casadi.Opti()
    u = opti.variable(steps)
    Q, V = opti.variable(3, steps + 1), opti.variable(3, steps + 1)
    for k in range(steps):
        tau = casadi.vertcat(*(u[k] if j == crank else 0 for j in range(3)))
        a, _ = dc.constrained_dynamics(model, Q[:, k], V[:, k], tau, loops)
        opti.subject_to(V[:, k + 1] == V[:, k] + h * a)
        opti.subject_to(Q[:, k + 1] == Q[:, k] + h * V[:, k + 1])
    opti.subject_to(Q[:, 0] == start)
    opti.subject_to(V[:, 0] == 0)
    opti.subject_to(Q[crank, steps] == end[crank])
    opti.subject_to(V[crank, steps] == 0)
    opti.minimize(casadi.sumsqr(u))
    opti.set_initial(Q, np.linspace(start, end, steps + 1).T)
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "max_iter": 500})
    solution = opti.solve()
    q = solution.value(Q)
    agree(q[:, -1], end, 5e-3)  # steps of Euler's leave the loop open by a little
    assert max(np.abs(dl.constraint_error(model, q[:, k], loops)).max() for k in range(steps + 1)) < 1e-3


def test_bad_input_is_named():
    model = dl.load("iiwa")
    q, v, x = drawn(model)
    with pytest.raises(dl.errors.ArgumentError, match="tau"):
        dc.forward_dynamics(model, q, v, x[:3])
    with pytest.raises(dl.errors.ArgumentTypeError, match="textbook"):
        dc.forward_dynamics(model, casadi.SX.sym("q", 7), v, x)
    for wrong in (dl.Connect(model, 1), [3]):
        with pytest.raises(dl.errors.ArgumentTypeError, match="constraints"):
            dc.constrained_dynamics(model, q, v, x, wrong)
    G, g, friction = mixed_problem()
    with pytest.raises(dl.errors.ArgumentError, match="G"):
        dc.solve_contacts(G[:6, :6], g, friction)
    with pytest.raises(RuntimeError, match="v: every number"):
        dc.forward_dynamics(model, q, v * np.nan, x)
