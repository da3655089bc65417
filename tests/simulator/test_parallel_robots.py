"""Parallel robots from a URDF and a list of loops: closed over ten seconds, with the loop forces of a dense KKT system made of MuJoCo's mass matrix and Jacobians."""

import json
from functools import lru_cache

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, LoadError, UnknownNameError
from oracles import parallel
from oracles.compare import agree
from oracles.parallel import ROBOTS

dt = 1e-3
CLOSED = 1e-8  # [m or rad] over ten seconds
CLOSE = 1e-8  # relative: forces beside those of a KKT system that is solved by a pseudoinverse


@lru_cache
def loaded(name):
    robot = ROBOTS[name]()
    model = dl.load(robot.urdf, loops=robot.loops, joints=robot.joints)
    assert model.ignored == ()
    # MuJoCo's model knows none of these loops
    with pytest.warns(UserWarning, match="moves without them"):
        return robot, model, model.to_mujoco()


def driven(robot, model):
    """Where it starts, with loops closed, and torques of its motors as a function of (time, q, v)."""
    q = model.neutral()
    at = [(int(model.joint_qadr[j]), int(model.joint_vadr[j])) for j in map(model.joint_index, robot.motors)]
    for (iq, _), (mean, _, _) in zip(at, robot.motors.values(), strict=True):
        q[iq] = mean
    q = dl.close_loops(model, q).configuration
    start, (stiffness, damping) = q.copy(), robot.gains

    def torques(t, q, v):
        tau = np.zeros(model.nv)
        for (iq, iv), (_, size, rate) in zip(at, robot.motors.values(), strict=True):
            tau[iv] = stiffness * (start[iq] + size * np.sin(rate * t) - q[iq]) + damping * (size * rate * np.cos(rate * t) - v[iv])
        return tau

    v = np.zeros(model.nv)
    if not robot.motors:
        # the crank turns at 6 rad/s
        J = parallel.rows(loaded(robot.name)[2], q, model.loops)
        _, sizes, motions = np.linalg.svd(J)
        free = motions[np.count_nonzero(sizes > 1e-9)]
        v = 6.0 * free / free[0]
    return q, v, torques


def forces(model, step):
    return np.concatenate([step.loop_forces[loop.name] for loop in model.loops])


@pytest.mark.parametrize("name", ROBOTS)
def test_loops_stay_closed_for_ten_seconds_and_bear_what_a_dense_kkt_says(name):
    robot, model, m = loaded(name)
    q, v, torques = driven(robot, model)
    sim = dl.Simulator(model, timestep=dt, integrator="euler")
    sim.reset(q, v)
    lowest = highest = q
    largest = 0.0
    for k in range(round(10 / dt)):
        q, v, tau = sim.q, sim.v, torques(sim.time, sim.q, sim.v)
        step = sim.step(tau)
        assert step.status == "solved"
        assert step.loop_error_after < CLOSED
        lowest, highest = np.minimum(lowest, step.q), np.maximum(highest, step.q)
        if k % 250:
            continue
        # M (v⁺ − v) = dt (τ − h) + Jᵀ λ in the middle of the step, with the velocities of rows that it reached
        middle = parallel.advanced(m, q, v, dt / 2)
        M, h = parallel.mass_and_bias(m, middle, v)
        J = parallel.rows(m, middle, model.loops)
        after, impulses = parallel.kkt(M, J, M @ v + dt * (tau - h), J @ step.v)
        found = forces(model, step)
        largest = max(largest, np.abs(found).max())
        agree(found, impulses / dt, CLOSE, np.abs(found).max())
        agree(step.v, after, CLOSE, 1 + np.abs(step.v).max())
        assert parallel.gaps(m, step.q, model.loops) < CLOSED
    assert largest > 1.0  # [N]
    assert (highest - lowest).max() > 0.3  # [rad] it moved


@pytest.mark.parametrize("name", ROBOTS)
def test_from_rest_the_first_step_is_the_kkt_system_itself(name):
    robot, model, m = loaded(name)
    q, _, torques = driven(robot, model)
    v = np.zeros(model.nv)
    tau = torques(0.0, q, v)
    sim = dl.Simulator(model, timestep=dt, integrator="euler")
    sim.reset(q)
    step = sim.step(tau)
    M, h = parallel.mass_and_bias(m, q, v)
    J = parallel.rows(m, q, model.loops)
    a, want = parallel.kkt(M, J, tau - h, np.zeros(len(J)))
    agree(forces(model, step), want, CLOSE, np.abs(want).max())
    agree(step.v / dt, a, CLOSE, np.abs(a).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_constrained_dynamics_has_the_forces_of_a_moving_kkt_system(name):
    robot, model, m = loaded(name)
    q, v, torques = driven(robot, model)
    sim = dl.Simulator(model, timestep=dt)
    sim.reset(q, v)
    for _ in range(3):
        sim.run(0.7, tau=torques, progress=False)
        q, v = sim.q.copy(), sim.v.copy()
        # velocities that the rows allow exactly
        J = parallel.rows(m, q, model.loops)
        v = v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v)
        tau = torques(sim.time, q, v)
        # J̇v by central differences of fourth order
        h = 1e-3
        rates = [parallel.rows(m, parallel.advanced(m, q, v, k * h), model.loops) @ v for k in (-2, -1, 1, 2)]
        drift = (rates[0] - 8 * rates[1] + 8 * rates[2] - rates[3]) / (12 * h)
        M, bias = parallel.mass_and_bias(m, q, v)
        a, want = parallel.kkt(M, J, tau - bias, -drift)
        got = dl.constrained_dynamics(model, q, v, tau, model.loops)
        assert got.status in ("solved", "redundant")
        agree(got.forces, want, CLOSE, np.abs(want).max())
        agree(got.acceleration, a, CLOSE, np.abs(a).max())


def test_midpoint_steps_bear_the_same_to_second_order():
    """Their velocity of the middle is found with the forces of first order: v½ is off by dt²."""
    robot, model, m = loaded("delta")
    q, v, torques = driven(robot, model)
    sim = dl.Simulator(model, timestep=dt)
    sim.reset(q, v)
    sim.run(1.0, tau=torques, progress=False)
    q, v, tau = sim.q, sim.v, torques(sim.time, sim.q, sim.v)
    step = sim.step(tau)
    middle = parallel.advanced(m, q, v, dt / 2)
    M, h = parallel.mass_and_bias(m, middle, (v + step.v) / 2)
    J = parallel.rows(m, middle, model.loops)
    _, impulses = parallel.kkt(M, J, M @ v + dt * (tau - h), J @ step.v)
    agree(forces(model, step), impulses / dt, 1e-6, np.abs(impulses).max() / dt)


# ---- the list and the joints -----------------------------------------------------------------------------------------------


def test_a_file_holds_loops_and_joints(tmp_path):
    robot, model, _ = loaded("delta")
    path, urdf = tmp_path / "delta.json", tmp_path / "delta.urdf"
    path.write_text(json.dumps({"loops": robot.loops, "joints": robot.joints}, default=list))
    urdf.write_text(robot.urdf)
    assert dl.load(urdf, loops=path) == model
    sim = dl.Simulator(urdf, loops=path)
    assert sim.model == model


def test_substituted_joints_turn_as_they_should():
    _, delta, _ = loaded("delta")
    _, platform, _ = loaded("stewart")
    j = delta.joint_index("rod1_joint")
    assert delta.joint_names[j : j + 2] == ("rod1_joint", "rod1_joint_2")
    assert delta.joint_type[j : j + 2] == ("hinge", "hinge")
    agree(delta.joint_axis[j : j + 2], [(0, 1, 0), (1, 0, 0)], 1e-15)
    assert platform.joint_type[platform.joint_index("platform_joint")] == "ball"
    # without axes: that of the URDF, and a coordinate axis across it
    k = platform.joint_index("lower3_joint")
    agree(platform.joint_axis[k : k + 2], [(1, 0, 0), (0, 1, 0)], 1e-15)
    assert (platform.nv, sum(3 for _ in platform.loops)) == (21, 15)


def test_a_fixed_joint_may_become_a_ball():
    robot = parallel.slider_crank()
    robot.link("bob", "rod", at=(0.1, 0, 0), kind="fixed", joint="glue")
    model = dl.load(robot.urdf, joints={"glue": "ball"})
    assert model.joint_type[model.joint_index("glue")] == "ball"
    assert model.nv == 6


BAD = {
    "unknown joint": ({"joints": {"rod9_joint": "ball"}}, UnknownNameError, "joints: joint 'rod9_joint'.*Did you mean"),
    "unknown type": ({"joints": {"rod_joint": "helix"}}, UnknownNameError, r"joints\['rod_joint'\]: type 'helix'.*ball, spherical, universal"),
    "unknown argument": ({"joints": {"rod_joint": {"type": "ball", "radius": 1}}}, UnknownNameError, "argument 'radius'"),
    "parallel axes": ({"joints": {"rod_joint": {"type": "universal", "axis": (1, 0, 0), "other_axis": (-2, 0, 0)}}}, ArgumentError, "other_axis: expected a direction other than"),
    "zero axis": ({"joints": {"rod_joint": {"type": "universal", "axis": (0, 0, 0)}}}, ArgumentError, "axis: expected a direction other than zero"),
    "no table": ({"joints": ["rod_joint"]}, ArgumentTypeError, "joints: expected a dictionary"),
    "unknown frame": ({"loops": [{"kind": "connect", "body": "rod_end", "other": "rail"}]}, UnknownNameError, "other: body, joint or site 'rail'"),
    "missing list": ({"loops": "none.json"}, LoadError, "'none.json' cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_a_urdf_cannot_be_told_is_refused(case):
    options, error, said = BAD[case]
    with pytest.raises(error, match=said):
        dl.load(parallel.slider_crank().urdf, **options)


def test_only_a_urdf_is_told_of_joints():
    with pytest.raises(ArgumentError, match="joints: only those of a URDF"):
        dl.load("go2", joints={"FL_hip_joint": "ball"})
