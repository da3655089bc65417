"""The problem of a step, taken out: the state stays, the step's own velocities and forces follow from it, and files hold it whole."""

import zipfile

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, DelassusError, LoadError, UnknownNameError
from oracles.contacts import residuals

STACKS = """<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="5 5 0.1"/>{}</worldbody></mujoco>"""
BOX = '<body name="{0}" pos="{1}"><freejoint/><geom type="box" size="0.1 0.1 0.1" friction="0.6"/></body>'
ROBOT = """<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="5 5 0.1"/>
<body name="trunk" pos="0 0 0.2505"><freejoint/><geom type="box" size="0.2 0.1 0.05"/>
<body name="left" pos="0.2 0 0"><joint name="hip" axis="0 1 0" range="-20 20" frictionloss="0.3"/><geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.22"/></body>
<body name="right" pos="-0.2 0 0"><joint axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.22"/></body></body></worldbody>
<actuator><motor joint="hip"/></actuator></mujoco>"""


def stacks():
    boxes = [BOX.format(f"a{k}", f"0 {0.01 * k} {0.1 + 0.2 * k}") for k in range(3)] + [BOX.format("b", "2 0 0.1")]
    return dl.Simulator(STACKS.format("".join(boxes)))


def moving(steps):
    sim = dl.Simulator(ROBOT)
    v = np.zeros(sim.model.nv)
    v[:3] = 1.0, 0.3, -0.5
    sim.reset(v=v)
    for _ in range(steps):
        sim.step(control=[0.2])
    return sim


def test_taking_the_problem_leaves_the_next_steps_as_they_are_bit_for_bit():
    plain, asked = moving(0), moving(0)
    for _ in range(150):
        before = asked.save()
        asked.contact_problem(control=[0.5], external_forces=np.ones((asked.model.nbody, 6)))
        assert np.array_equal(asked.save(), before)
        a, b = plain.step(control=[0.2]), asked.step(control=[0.2])
        assert np.array_equal(a.q, b.q)
        assert np.array_equal(a.v, b.v)
        assert np.array_equal(a.contacts.force, b.contacts.force)
        assert (a.iterations, a.status) == (b.iterations, b.status)


@pytest.mark.parametrize("steps", [5, 80, 200])
def test_its_solution_is_what_the_step_does(steps):
    """v⁺ = v_f + M̂⁻¹ Jᵀ λ: the velocities of the solution are those of the points that touch, by the step's own v⁺."""
    sim = moving(steps)
    tau = 0.05 * np.random.default_rng(steps).standard_normal(sim.model.nv)
    problem = sim.contact_problem(tau, control=[0.2])
    r = problem.solve(tolerance=1e-9, max_iterations=3000)
    step = sim.step(tau, control=[0.2])
    assert step.status == r.status == "solved"
    assert len(step.contacts) == len(problem.cones) > 0
    assert np.array_equal(step.contacts.position, problem.positions)
    assert np.array_equal(step.contacts.bodies, problem.bodies)
    assert np.array_equal(step.contacts.friction, problem.cones[:, 1])
    # σ of the step from its own velocity: points of a body against the ground
    rows = problem.kinds == "contact"
    speeds = []
    for k, (first, second) in enumerate(problem.bodies):
        assert second == 0
        name = str(problem.body_names[first])
        local = np.linalg.inv(dl.body_placement(sim.model, problem.q, name)) @ [*problem.positions[k], 1.0]
        speeds.append(problem.frames[k] @ (dl.point_jacobian(sim.model, problem.q, name, local[:3]) @ step.v))
    gaps = np.zeros((len(problem.cones), 3))
    # what bore in the step before touches up to twice the slop
    bears = (problem.warm_start[rows].reshape(-1, 3)[:, 0] > 0) & (problem.gaps < 2e-5)
    gaps[:, 0] = np.where(bears, 0.0, np.maximum(problem.gaps - 1e-5, 0) / problem.timestep)
    # the step's tolerance is 1e-6 m/s for each row
    assert np.abs(np.array(speeds) + gaps - r.velocities[rows].reshape(-1, 3)).max(initial=0.0) < 1e-4


def test_the_start_is_the_end_of_the_step_before():
    sim = stacks()
    for _ in range(20):
        step = sim.step()
    problem = sim.contact_problem()
    forces = np.einsum("ki,kij->kj", problem.warm_start.reshape(-1, 3), problem.frames) / problem.timestep
    # the problem goes island by island: the stack, then the single box
    single = np.isin(step.contacts.bodies, [0, sim.model.body_index("b")]).all(axis=1)
    assert np.allclose(forces, np.concatenate([step.contacts.force[~single], step.contacts.force[single]]), atol=1e-9)
    # every floor bears what is above
    assert problem.warm_start[::3].sum() / problem.timestep == pytest.approx((3 + 2 + 1 + 1) * 8.0 * 9.81, rel=1e-3)
    assert problem.solve().iterations <= problem.solve(warm=False).iterations


def test_islands_kinds_and_gaps_are_told():
    problem = stacks().contact_problem()
    assert sorted(np.bincount(problem.island).tolist()) == [12, 36]
    across = problem.island[:, None] != problem.island[None, :]
    assert not problem.G[across].any()
    assert set(problem.kinds) == {"contact"}
    assert np.allclose(problem.frames @ problem.frames.transpose(0, 2, 1), np.eye(3), atol=1e-12)
    assert np.abs(problem.gaps).max() < 1e-6
    sim = moving(0)
    q = sim.q.copy()
    q[7] = np.radians(19.99)
    sim.reset(q)
    problem = sim.contact_problem()
    assert list(problem.kinds[:2]) == ["friction", "limit"]
    assert np.allclose(problem.intervals[0], [0, -0.3e-3, 0.3e-3])
    assert np.array_equal(problem.intervals[1], [1, 0, np.inf])
    assert "ContactProblem" in repr(problem)
    assert len(problem) == len(problem.g)


def test_every_method_solves_what_it_can_and_the_definition_agrees():
    problem = moving(120).contact_problem()
    assert len(problem.cones)
    cones = tuple((int(r), mu) for r, mu in problem.cones)
    intervals = tuple((int(r), low, high) for r, low, high in problem.intervals)
    for method in ("admm", "newton", "interior", "pgs", "lcp", "apgd"):
        r = problem.solve(method)
        found = residuals(problem.G, problem.g, cones, intervals, r.forces)
        assert found[3] == pytest.approx(r.residuals.natural, rel=1e-6, abs=1e-12)
        assert (r.status == "solved") == (max(*found[:2], found[3] / 10) <= r.tolerance)
        assert len(r.constraint_forces) == len(cones) + len(intervals)
    with pytest.raises(UnknownNameError, match="admm"):
        problem.solve("simplex")


def test_an_empty_world_has_an_empty_problem():
    problem = dl.Simulator("<mujoco/>").contact_problem()
    assert len(problem) == 0
    assert problem.solve().status == "solved"


def test_a_file_holds_all_of_it(tmp_path):
    problem = moving(60).contact_problem(control=[0.1])
    path = problem.save(tmp_path / "step")
    assert path.name == "step.npz"
    with zipfile.ZipFile(path) as archive:
        assert all(b"pickle" not in archive.read(name)[:200] for name in archive.namelist())
    same = dl.ContactProblem.load(path)
    for name in ContactFields:
        a, b = getattr(problem, name), getattr(same, name)
        assert type(a) is type(b)
        assert np.array_equal(a, b), name
    assert np.array_equal(same.solve().forces, problem.solve().forces)


ContactFields = list(dl.ContactProblem.__dataclass_fields__)


def test_a_file_that_is_damaged_or_another_is_refused(tmp_path):
    problem = moving(60).contact_problem()
    arrays = {name: getattr(problem, name) for name in ContactFields}
    m = len(problem)

    def refused(match, **changes):
        path = tmp_path / "bad.npz"
        parts = {"contact_problem": np.int64(1), **arrays, **changes}
        np.savez(path, **{k: v for k, v in parts.items() if v is not None})
        with pytest.raises(LoadError, match=match):
            dl.ContactProblem.load(path)

    cones, intervals, bodies = problem.cones.copy(), problem.intervals.copy(), problem.bodies.copy()
    refused("format 2", contact_problem=np.int64(2))
    refused("lacks g", g=None)
    refused("G: expected shape", G=np.eye(m + 1))
    refused("finite", g=np.full(m, np.nan))
    refused("symmetric", G=problem.G + np.eye(m, k=1))
    refused("symmetric", G=-problem.G)
    refused("every row", cones=cones + np.array([[1.0, 0.0]]))
    refused("negative", cones=cones * np.array([[1.0, -1.0]]))
    refused("upper end", intervals=intervals * np.array([[1.0, -1.0, -1.0]]))
    refused("intervals: expected shape", intervals=intervals[:-1])
    refused("indices", bodies=bodies + 100)
    refused("kinds", kinds=np.array(["<script>"] * m))
    refused("method", method=np.str_("simplex"))
    refused("plain arrays", body_names=np.array([{}], dtype=object))
    refused("max_iterations", max_iterations=np.int64(0))
    refused("max_iterations", max_iterations=np.arange(3))
    refused("timestep", timestep=-1.0)
    for name, content in (("text.npz", b"hello"), ("empty.npz", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(LoadError, match=r"no \.npz file"):
            dl.ContactProblem.load(tmp_path / name)
    np.save(tmp_path / "one.npy", np.eye(2))
    with pytest.raises(LoadError, match=r"no \.npz file"):
        dl.ContactProblem.load(tmp_path / "one.npy")
    with pytest.raises(LoadError, match="does not exist"):
        dl.ContactProblem.load(tmp_path / "none.npz")
    whole = problem.save(tmp_path / "whole.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LoadError):
        dl.ContactProblem.load(tmp_path / "cut.npz")


def test_wrong_forces_are_refused():
    sim = moving(0)
    for call, match in [
        (lambda: sim.contact_problem(np.zeros(3)), "tau"),
        (lambda: sim.contact_problem(control=[1.0, 2.0]), "control"),
        (lambda: sim.contact_problem(external_forces=np.zeros((2, 6))), "external_forces"),
    ]:
        with pytest.raises(DelassusError, match=match):
            call()
    with pytest.raises(ArgumentError):
        sim.contact_problem().solve(max_iterations=0)


def test_bodies_of_a_million_tons_stand_as_solved_as_those_of_grams():
    """All masses times h: the same motion; |λ · σ| alone would grow with h."""
    ends = []
    for density in (1e-3, 1e3, 1e12):
        boxes = [
            BOX.format(f"a{k}", f"0 {0.01 * k} {0.1 + 0.2 * k}").replace("friction", f'density="{density}" friction') for k in range(3)
        ]
        sim = dl.Simulator(STACKS.format("".join(boxes)))
        assert {sim.step().status for _ in range(40)} == {"solved"}
        ends.append(sim.q)
    assert np.abs(ends[0] - ends[1]).max() < 1e-6
    assert np.abs(ends[2] - ends[1]).max() < 1e-6
