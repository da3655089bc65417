"""A row does what a Simulator does, bit for bit; metrics are what they say; runs that end early are a status."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, FunctionError, NotFiniteError, QuaternionError, UnknownNameError

pytest.importorskip("pyarrow")

BOX = """<mujoco model="box"><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="box" pos="0 0 0.1"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="2"/></body></worldbody></mujoco>"""
ARM = """<mujoco model="arm"><option timestep="0.002"/><worldbody><body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/><body name="lower" pos="0.4 0 0"><joint name="elbow" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/></body></body></worldbody>
<actuator><motor name="lift" joint="shoulder"/><general name="bend" joint="elbow" dyntype="filter" dynprm="0.1" gainprm="1"/></actuator>
<keyframe><key name="bent" qpos="0.3 -0.5" qvel="0.1 0.2" ctrl="0.5 -0.25" act="0.7"/></keyframe></mujoco>"""


def alone(model, q=None, v=None, steps=20, control=None, key=None):
    """Final q and v of a plain simulator."""
    sim = dl.Simulator(model)
    sim.reset(key if q is None else q, v)
    for k in range(steps):
        given = control(sim.time, sim.q, sim.v) if callable(control) else control[k] if np.ndim(control) == 2 else control
        sim.step(control=given)
    return sim.q, sim.v


def ran(model, **given):
    """Result of a study with final states as metrics."""
    given = {"metrics": {"end_q": "q", "end_v": "v"}, "seconds": 0.04} | given
    return dl.Study(model, **given).run(path=None, progress=False, chunk=50)


def same(result, row, state):
    return result.column("end_q")[row].tobytes() == state[0].tobytes() and result.column("end_v")[row].tobytes() == state[1].tobytes()


def test_rows_are_simulators_bit_for_bit():
    rng = np.random.default_rng(0)
    v = rng.standard_normal((70, 6))
    result = ran(BOX, parameters={"v": v})
    neutral = dl.load(BOX).neutral()
    assert all(same(result, k, alone(BOX, neutral, v[k])) for k in range(70))
    assert len({row.tobytes() for row in result.column("end_q")}) == 70


def test_single_numbers_come_on_top_of_the_start():
    model = dl.load(ARM)
    result = ran(model, parameters={"q[elbow]": [0.1, 0.2, 0.3], "v[0]": [1.0, 2.0, 3.0]}, initial="bent", controls="bent")
    sim = dl.Simulator(model)
    for k in range(3):
        sim.reset("bent")
        act = sim.activation
        sim.reset([0.3, 0.1 * (k + 1)], [k + 1.0, 0.2])
        sim.activation = act
        for _ in range(20):
            sim.step(control=[0.5, -0.25])
        # 0.1 · 3 is not the number 0.3 of the table: compare with that
        if k < 2:
            assert same(result, k, (sim.q, sim.v))
    np.testing.assert_array_equal(result.column("q[elbow]"), [0.1, 0.2, 0.3])


def changed(source, change):
    """A model of MuJoCo's that a function has written to."""
    m = dl.load(source).to_mujoco()
    change(m)
    return m


def set_friction(m, value):
    m.geom_friction[:, 0] = value


def scale_masses(m, factor):
    m.body_mass[:] *= factor
    m.body_inertia[:] *= factor


PARAMETERS = {
    "friction": (BOX, "friction", [0.1, 0.9], set_friction),
    "mass_scale": (ARM, "mass_scale", [0.5, 2.0], scale_masses),
    "gravity": (BOX, "gravity", [[0, 0, -1.62], [1.0, 2.0, -9.0]], lambda m, g: m.opt.gravity.__setitem__(slice(None), g)),
    "one friction": (BOX, "geom_friction[box,0]", [1.5, 3.0], lambda m, x: m.geom_friction.__setitem__((1, 0), x)),
    "damping of a joint": (ARM, "joint_damping[elbow]", [0.2, 0.5], lambda m, x: m.dof_damping.__setitem__(1, x)),
    "gain of an actuator": (ARM, "actuator_gain[lift]", [0.2, 5.0], lambda m, x: m.actuator_gainprm.__setitem__((0, 0), x)),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters_are_those_of_a_model_that_has_them(case):
    source, column, values, write = PARAMETERS[case]
    model = dl.load(source)
    v = np.array([0.5, 0.2, -0.3, 0.1, 0.2, 0.3])[: model.nv]
    control = np.full(model.nu, 0.4)
    result = ran(source, parameters={column: values}, initial={"v": v}, controls=control, seconds=0.08)
    for k, value in enumerate(values):
        m = changed(source, lambda m, value=value: write(m, value))
        q_end, v_end = alone(m, model.neutral(), v, steps=40, control=control)
        np.testing.assert_allclose(result.column("end_q")[k], q_end, rtol=0, atol=1e-9)
        np.testing.assert_allclose(result.column("end_v")[k], v_end, rtol=0, atol=1e-7)
    assert result.column("end_v")[0].tobytes() != result.column("end_v")[1].tobytes()


def test_parameters_are_those_of_worlds_bit_for_bit():
    rng = np.random.default_rng(4)
    rows = 40
    columns = {
        "friction": rng.uniform(0.2, 1, rows), "mass_scale": rng.uniform(0.5, 2, rows), "body_com[box,0]": rng.uniform(-0.02, 0.02, rows), "v": rng.standard_normal((rows, 6))
    }  # fmt: skip
    result = ran(BOX, parameters=columns)
    worlds = dl.Worlds(BOX, rows)
    worlds.parameters["friction"] = columns["friction"][:, None]
    worlds.parameters["body_mass"] *= columns["mass_scale"][:, None]
    worlds.parameters["body_inertia"] *= columns["mass_scale"][:, None, None, None]
    worlds.parameters["body_com"][:, 1, 0] = columns["body_com[box,0]"]
    worlds.reset(v=columns["v"])
    worlds.step(20)
    assert result.column("end_q").tobytes() == worlds.q.tobytes()
    # a row by itself, on a runner that had others before, and last of a batch
    for k in (0, 31, 39):
        single = ran(BOX, parameters={name: column[k : k + 1] for name, column in columns.items()})
        assert single.column("end_q")[0].tobytes() == worlds.q[k].tobytes()


def test_single_numbers_come_on_top_of_arrays_and_factors_first():
    columns = {"body_mass[box]": [3.0, 4.0], "mass_scale": [2.0, 2.0], "v[0]": [1.0, 1.0]}
    result = ran(BOX, parameters=columns)
    worlds = dl.Worlds(BOX, 2)
    worlds.parameters["body_inertia"] *= 2
    worlds.parameters["body_mass"][:, 1] = [3.0, 4.0]
    worlds.reset(v=[1, 0, 0, 0, 0, 0])
    worlds.step(20)
    assert result.column("end_q").tobytes() == worlds.q.tobytes()


def test_parameters_that_cannot_be_name_the_rows():
    with pytest.raises(ArgumentError, match=r"restitution.*numbers from 0 to 1, got 1.5 in world 2\. World k is row 0 \+ k"):
        ran(BOX, parameters={"restitution": [0.1, 0.2, 1.5]})


@pytest.mark.parametrize("kind", ["constant", "steps", "function"])
def test_controls_are_those_of_a_simulator(kind):
    rng = np.random.default_rng(1)
    control = {
        "constant": np.array([0.3, -0.2]), "steps": rng.standard_normal((20, 2)), "function": lambda time, q, v: [np.sin(50 * time) - q[0], -v[1]]
    }[kind]  # fmt: skip
    q = rng.uniform(-1, 1, (3, 2))
    result = ran(ARM, initial={"q": q, "v": [0.5, -0.5]}, controls=control)
    for k in range(3):
        assert same(result, k, alone(ARM, q[k], [0.5, -0.5], control=control))


def test_controls_may_be_columns():
    result = ran(ARM, parameters={"control": [[0.3, 0.1], [0.0, -0.4]]})
    single = ran(ARM, parameters={"control[lift]": [0.3, 0.0], "control[bend]": [0.1, -0.4]})
    for k, control in enumerate(([0.3, 0.1], [0.0, -0.4])):
        state = alone(ARM, [0, 0], control=np.array(control))
        assert same(result, k, state)
        assert same(single, k, state)


def test_a_function_gives_the_start_of_each_row():
    def start(row):
        q = row.rng.uniform(-1, 1, row.model.nq)
        return q, np.array([row.parameters["v[shoulder]"], row.number])

    result = ran(ARM, parameters={"v[shoulder]": [0.1, 0.2, 0.3]}, initial=start, seed=11)
    for k in range(3):
        q = np.random.default_rng([11, k]).uniform(-1, 1, 2)
        assert same(result, k, alone(ARM, q, [0.1 * (k + 1) if k < 2 else 0.3, k]))


def test_metrics_are_what_they_say():
    """A box that slides: v² / (2 μ g) far; what falls: height h − g t² / 2, energy as before; forces of the weight with friction."""
    g, mass, mu = 9.81, 2.0, 1.0
    speed = np.array([0.5, 1.0])
    result = dl.Study(
        BOX,
        parameters={"v[0]": speed},
        metrics=["distance", "height", "max_contact_force", "max_penetration", "max_speed", "energy"],
        seconds=0.4,
    ).run(path=None, progress=False)
    np.testing.assert_allclose(result.column("distance"), speed**2 / (2 * mu * g), rtol=0.05)
    np.testing.assert_allclose(result.column("height"), 0.1, atol=3e-5)
    np.testing.assert_allclose(result.column("max_contact_force"), mass * g * np.sqrt(1 + mu**2), rtol=1e-3)
    np.testing.assert_array_equal(result.column("max_speed"), speed)
    np.testing.assert_allclose(result.column("energy"), mass * g * 0.1, rtol=1e-3)
    assert (result.column("max_penetration") < 1e-4).all()
    falling = dl.Study(
        BOX, parameters={"q[2]": [5.0, 9.0]}, metrics=["height", "energy", "max_contact_force", "distance"], seconds=0.2
    ).run(path=None, progress=False)
    np.testing.assert_allclose(falling.column("height"), np.array([5, 9]) - g * 0.2**2 / 2, atol=g * 0.2 * 0.002)
    np.testing.assert_allclose(falling.column("energy"), mass * g * np.array([5, 9]), rtol=1e-3)
    np.testing.assert_array_equal(falling.column("max_contact_force"), 0)
    np.testing.assert_array_equal(falling.column("distance"), 0)


@pytest.mark.parametrize("every", [1, 7, 20, 100])
def test_functions_see_the_frames_of_the_run(every):
    seen = []

    def look(run):
        seen.append(run)
        return run.q[-1, 2]

    study = dl.Study(
        BOX, parameters={"q[2]": [0.2, 0.3]}, metrics={"z": look, "count": lambda run: len(run.time)}, seconds=0.04, every=every
    )
    result = study.run(path=None, progress=False)
    trajectory = dl.Simulator(BOX)
    trajectory.reset([0, 0, 0.3, 1, 0, 0, 0])
    kept = [0, *range(every, 20, every), 20]
    wanted = trajectory.run(0.04, progress=False)
    (run,) = [run for run in seen if run.row == 1]
    np.testing.assert_array_equal(run.q, wanted.q[kept])
    np.testing.assert_array_equal(run.v, wanted.v[kept])
    np.testing.assert_allclose(run.time, wanted.times[kept], rtol=1e-14)
    assert run.parameters == {"q[2]": 0.3}
    np.testing.assert_array_equal(result.column("count"), len(kept))
    assert result.column("z")[1] == wanted.q[-1, 2]


def test_a_run_that_ends_early_is_a_status_and_others_go_on():
    result = ran(ARM, parameters={"v[0]": [0.0, 1e200, 1.0], "v[1]": [1.0, 1e200, 1.0]}, metrics=["height", "q"])
    assert result.column("status").tolist() == ["solved", "unstable", "solved"]
    assert result.counts() == {"solved": 2, "unstable": 1}
    assert result.column("unstable").tolist() == [-1, 0, -1]
    assert np.isnan(result.column("height")).tolist() == [False, True, False]
    assert np.isnan(result.column("q")).all(axis=1).tolist() == [False, True, False]
    assert result.table.column("height").null_count == 1
    calm = ran(ARM, parameters={"v[0]": [0.0, 1.0], "v[1]": [1.0, 1.0]}, metrics=["height", "q"])
    assert result.column("q")[[0, 2]].tobytes() == calm.column("q").tobytes()


def test_steps_that_are_not_solved_are_counted():
    result = dl.Study(
        BOX, parameters={"v[0]": [0.0, 1.0]}, metrics=["height"], seconds=0.02, tolerance=0.0, max_iterations=1, solver="admm"
    ).run(path=None, progress=False)
    sim = dl.Simulator(BOX, tolerance=0.0, max_iterations=1, solver="admm")
    for k, speed in enumerate((0.0, 1.0)):
        sim.reset(v=[speed, 0, 0, 0, 0, 0])
        wanted = sum(sim.step().status != "solved" for _ in range(10))
        assert result.column("unsolved")[k] == wanted > 0
    assert result.column("status").tolist() == ["unsolved", "unsolved"]


def bad_metric(run):
    return [1, 2] if run.row == 3 else 0.0


def test_functions_that_fail_name_the_row():
    rows = {"v[0]": np.arange(5.0)}
    with pytest.raises(FunctionError, match=r"metrics: 'bad' failed in row 3: TypeError"):
        ran(BOX, parameters=rows, metrics={"bad": bad_metric})
    with pytest.raises(FunctionError, match=r"metrics: 'wrong' failed in row 0: ZeroDivisionError"):
        ran(BOX, parameters=rows, metrics={"wrong": lambda run: 1 / run.row})
    with pytest.raises(FunctionError, match=r"initial: the function failed in row 2: ArgumentError: q: expected shape \(7,\)"):
        ran(BOX, parameters=rows, initial=lambda row: [0, 0, 1, 1, 0, 0, *[0] * (row.number != 2)])
    with pytest.raises(FunctionError, match="controls: the function failed at step 4"):
        ran(ARM, controls=lambda time, q, v: [0.0] * (2 if time < 0.007 else 3))
    with pytest.raises(QuaternionError, match=r"q\[3:7\] must have length 1, got 0.5 in rows 1, 2"):
        ran(BOX, parameters={"q[3]": [1.0, 0.5, 0.5]})


def test_what_is_wrong_is_said_before_anything_runs():
    for parameters, error, words in (
        ({"frictio": [1]}, UnknownNameError, "Did you mean 'friction'"),
        ({"friction": [1, -2]}, ArgumentError, "friction: expected numbers that are not negative, got -2 in row 1"),
        ({"mass_scale": [0.0]}, ArgumentError, "mass_scale: expected positive numbers, got 0 in row 0"),
        ({"body_mass": [[0, 1.0], [0, 0.0]]}, ArgumentError, "body_mass: expected positive numbers, got 0 in row 1"),
        ({"body_mass[box]": [1, -1, 0]}, ArgumentError, "got -1 in rows 1, 2"),
        ({"body_mass": [[1.0, 2.0, 3.0]]}, ArgumentError, r"body_mass: expected shape \(rows, 2\), got \(1, 3\)"),
        ({"body_mass[bo]": [1]}, UnknownNameError, "Available: world, box"),
        ({"body_mass[7]": [1]}, ArgumentError, "index 0 from 0 to 1, got 7"),
        ({"geom_friction[box]": [1]}, ArgumentError, "expected 2 indices, got 1"),
        ({"gravity": [1.0, 2.0]}, ArgumentError, r"gravity: expected shape \(rows, 3\)"),
        ({"q": np.zeros((2, 6))}, ArgumentError, r"q: expected shape \(rows, 7\)"),
        (
            dl.studies.random(5, {"friction": (-1, 1)}),
            ArgumentError,
            "friction: expected numbers that are not negative, got -1 in its range",
        ),
        ({"v": np.full((3, 6), np.nan)}, NotFiniteError, "v: .* rows 0, 1, 2"),
    ):
        with pytest.raises(error, match=words):
            dl.Study(BOX, parameters=parameters, seconds=0.1)
    for given, error, words in (
        ({"metrics": ["hight"]}, UnknownNameError, "Did you mean 'height'"),
        ({"metrics": ["q"], "parameters": {"q": np.tile([0, 0, 1, 1, 0, 0, 0.0], (2, 1))}}, ArgumentError, "final_q"),
        ({"metrics": {"row": len}}, ArgumentError, "has a column 'row' already"),
        ({"controls": [1.0]}, ArgumentError, r"controls: expected shape \(0,\) or \(50, 0\)"),
        ({"initial": "home"}, UnknownNameError, "keyframe 'home'"),
        ({"initial": np.zeros(3)}, ArgumentError, r"q: expected shape \(7,\)"),
        ({"initial": {"x": np.zeros((2, 3))}}, UnknownNameError, "parameter 'x'"),
        ({"threads": 2}, ArgumentError, "threads: "),
        ({"every": 0}, ArgumentError, "every: expected at least 1"),
        ({"rows": 3, "parameters": {"v[0]": [1, 2]}}, ArgumentError, "expected 3 rows"),
        ({"rows": 3, "parameters": dl.studies.grid({"v[0]": [1, 2]})}, ArgumentError, "rows: the table has 2, got 3"),
    ):
        with pytest.raises(error, match=words):
            dl.Study(BOX, **({"seconds": 0.1} | given))
