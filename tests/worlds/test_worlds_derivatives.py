"""Derivatives of steps of many worlds are those of simulators, bit for bit, and leave the worlds as they are."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, NotFiniteError

BOUNCING = """<mujoco model="bouncing"><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body pos="0 0 0.102"><freejoint/><geom name="ball" size="0.1" mass="1"/></body></worldbody></mujoco>"""
TENDON = """<mujoco><worldbody><site name="s0" pos="0 0 .5"/><body><joint axis="0 1 0" damping=".1"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/><site name="s1" pos=".2 0 .02"/>
</body></worldbody><tendon><spatial name="t" stiffness="30" damping="1" springlength=".3"><site site="s0"/><site site="s1"/></spatial></tendon>
<actuator><general tendon="t" gainprm="5"/></actuator></mujoco>"""
SCENES = {
    "go2": lambda: dl.load(dl.scenes.on_floor("go2")),
    "stack": lambda: dl.load(dl.scenes.box_stack(2)),
    "four_bar": lambda: dl.load(dl.scenes.four_bar()),
    "bouncing": lambda: dl.load(BOUNCING),
    "tendon": lambda: dl.load(TENDON),
}


def moving(model, count=5, threads=1, **options):
    """Worlds on their way, each with inputs and velocities of its own."""
    worlds, rng = dl.Worlds(model, count, threads=threads, **options), np.random.default_rng(3)
    worlds.reset(q=worlds.model.keyframes.get("home", worlds.model.neutral()), v=0.2 * rng.normal(size=(count, worlds.model.nv)))
    worlds.control = 0.5 * rng.normal(size=worlds.control.shape)
    worlds.tau = 0.1 * rng.normal(size=worlds.tau.shape)
    worlds.external_forces[::2, -1, :3] = rng.normal(size=worlds.external_forces[::2, -1, :3].shape)
    worlds.step(30)
    if model.name == "bouncing":
        worlds.reset(
            q=[0.0, 0, 0.1, 1, 0, 0, 0],
            v=np.column_stack([0.2 * rng.normal(size=(count, 2)), np.full((count, 1), -0.5), rng.normal(size=(count, 3))]),
        )
    return worlds


def randomize(worlds):
    worlds.randomize(
        4, friction=(0.4, 1.0), mass_scale=(0.8, 1.2), com_offset=(-0.01, 0.01), armature_scale=(0.8, 1.2), restitution=(0.0, 0.5)
    )


def inputs_of(worlds, k):
    return {"tau": worlds.tau[k], "control": worlds.control[k], "external_forces": worlds.external_forces[k]}


def numbers(result):
    return {name: value for name, value in vars(result).items() if name != "left_out"}


def assert_same(a, b):
    assert a.left_out == b.left_out
    for name, value in numbers(a).items():
        assert np.array_equal(value, numbers(b)[name]), name


@pytest.mark.parametrize("parameters", [False, True])
@pytest.mark.parametrize("scene", SCENES)
def test_derivatives_are_those_of_simulators_for_any_number_of_threads(scene, parameters):
    model = SCENES[scene]()
    every, rng = [], np.random.default_rng(1)
    bars = rng.normal(size=(2, 5, model.nv))
    for threads in (1, 2, 3):
        worlds = moving(model, threads=threads)
        if parameters:
            randomize(worlds)
        every.append((worlds.linearize(), worlds.step_vjp(*bars), worlds.linearize()))
    for found in every:
        for mine, first in zip(found, every[0], strict=True):
            assert_same(mine, first)
        assert_same(found[0], found[2])
    steps, adjoint, _ = every[0]
    for k in range(5):
        sim = worlds.simulator(k)
        single = sim.linearize(**inputs_of(worlds, k))
        assert np.array_equal(steps.A[k], single.A)
        assert np.array_equal(steps.B[k], single.B)
        for q, v in ((steps.q, steps.v), (adjoint.next_q, adjoint.next_v)):
            assert np.array_equal(q[k], single.q)
            assert np.array_equal(v[k], single.v)
        assert worlds.STATUSES[steps.status[k]] == worlds.STATUSES[adjoint.status[k]] == single.status
        kinks = single.kinks.any() or single.row_kinks or single.correction_kink
        assert (steps.kinks[k], steps.redundant[k], steps.left_out[k]) == (kinks, single.redundant, single.left_out)
        back = single.vjp(*bars[:, k])
        for name in ("q", "v", "tau", "control"):
            assert np.array_equal(getattr(adjoint, name)[k], getattr(back, name)), name
        # the two senses, through the matrix
        np.testing.assert_allclose(bars[:, k].ravel() @ steps.A[k], np.concatenate([adjoint.q[k], adjoint.v[k]]), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(bars[:, k].ravel() @ steps.B[k], adjoint.control[k], rtol=1e-9, atol=1e-9)
    if scene == "bouncing" and parameters:
        assert (steps.v[:, 2] > 0).any()


def test_derivatives_are_differences_of_steps():
    worlds = moving(SCENES["go2"](), 3, tolerance=1e-11)
    randomize(worlds)
    worlds.step(5)
    steps, moment, n = worlds.linearize(), worlds.save(), worlds.model.nv
    assert not steps.kinks.all()
    assert not any(steps.left_out)
    rng = np.random.default_rng(0)
    dq, dv, du = (rng.normal(size=(3, width)) for width in (n, n, worlds.model.nu))
    after = []
    for h in (1e-6, -1e-6):
        worlds.restore(moment)
        worlds.q = [dl.integrate(worlds.model, q, h * d) for q, d in zip(worlds.q, dq, strict=True)]
        worlds.v += h * dv
        worlds.control += h * du
        worlds.step()
        after.append((worlds.q.copy(), worlds.v.copy()))
    for k in np.flatnonzero(~steps.kinks):
        (qa, va), (qb, vb) = ((q[k], v[k]) for q, v in after)
        found = steps.A[k] @ np.concatenate([dq[k], dv[k]]) + steps.B[k] @ du[k]
        wanted = np.concatenate([dl.difference(worlds.model, qb, qa), va - vb]) / 2e-6
        assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("scene", SCENES)
def test_worlds_stay_as_they_are_unless_they_advance(scene):
    worlds, other = (moving(SCENES[scene](), 4, threads=2) for _ in range(2))
    before = worlds.save()
    plain = worlds.linearize()
    worlds.step_vjp(np.ones(worlds.model.nv))
    assert np.array_equal(worlds.save(), before)
    other.step()
    taken = worlds.linearize(advance=True)
    assert_same(taken, plain)
    assert np.array_equal(worlds.save(), other.save())
    assert np.array_equal(worlds.q, taken.q)
    other.step()
    worlds.step_vjp(v_bar=np.ones(worlds.model.nv), advance=True)
    assert np.array_equal(worlds.save(), other.save())
    worlds.step(5), other.step(5)
    assert np.array_equal(worlds.save(), other.save())


def test_sleeping_worlds_stay_asleep():
    worlds = dl.Worlds(dl.scenes.box_stack(2), 3, sleep_after=0.05)
    worlds.step(150)
    worlds.tau[1, 0] = 5.0  # wakes it
    before = worlds.save()
    steps = worlds.linearize()
    assert np.array_equal(worlds.save(), before)
    n = worlds.model.nv
    assert np.array_equal(steps.A[0], np.diag([1.0] * n + [0.0] * n))
    assert not np.array_equal(steps.A[1], steps.A[0])


def test_given_inputs_act_in_this_step_alone_and_in_the_chosen_worlds():
    worlds = moving(SCENES["go2"](), 4)
    rng = np.random.default_rng(6)
    control, tau = rng.normal(size=(2, worlds.model.nu)), rng.normal(size=worlds.model.nv)
    before, own = worlds.save(), worlds.linearize()
    given = worlds.linearize([3, 1], control=control, tau=tau)
    assert np.array_equal(worlds.save(), before)
    worlds.control[[3, 1]], worlds.tau[[3, 1]] = control, tau
    assert_same(worlds.linearize([3, 1]), given)
    assert not np.array_equal(given.v, own.v[[3, 1]])
    assert_same(worlds.linearize(np.array([False, True, False, True])), worlds.linearize([1, 3]))
    assert worlds.linearize([]).A.shape == (0, 36, 36)
    moment = worlds.q.copy()
    worlds.linearize(slice(1), advance=True)
    assert not np.array_equal(worlds.q[0], moment[0])
    assert np.array_equal(worlds.q[1:], moment[1:])


def test_a_world_that_cannot_step_has_no_derivatives_and_the_others_have():
    worlds = moving(SCENES["go2"](), 3)
    plain = worlds.linearize()
    worlds.v[1] = 1e300
    before = worlds.save()
    steps, adjoint = worlds.linearize(), worlds.step_vjp(np.ones(worlds.model.nv))
    assert np.array_equal(worlds.save(), before)
    assert [worlds.STATUSES[k] for k in steps.status] == ["solved", "unstable", "solved"]
    assert np.isnan(steps.A[1]).all()
    assert np.isnan(steps.B[1]).all()
    assert np.isnan(adjoint.control[1]).all()
    assert "no derivatives" in steps.left_out[1][0]
    assert np.array_equal(steps.v[1], worlds.v[1])
    for k in (0, 2):
        assert np.array_equal(steps.A[k], plain.A[k])
        assert not steps.left_out[k]
    worlds.linearize(advance=True)
    assert worlds.statuses == ["solved", "unstable", "solved"]
    assert worlds.unsolved[1] == 1


@pytest.mark.parametrize(
    ("error", "word", "arguments"),
    [
        (ArgumentError, "control", {"control": np.zeros((3, 12))}),
        (ArgumentError, "tau", {"tau": np.zeros(4)}),
        (NotFiniteError, "control", {"control": np.full(12, np.nan)}),
        (ArgumentError, "where", {"where": [7]}),
        (ArgumentTypeError, "advance", {"advance": 1}),
        (ArgumentError, "q_bar", {"q_bar": np.zeros(3)}),
        (NotFiniteError, "v_bar", {"v_bar": np.full((2, 18), np.inf)}),
    ],
)
def test_wrong_arguments_are_named(error, word, arguments):
    worlds = dl.Worlds(dl.scenes.on_floor("go2"), 2)
    before = worlds.save()
    with pytest.raises(error, match=word):
        (worlds.step_vjp if "bar" in word else worlds.linearize)(**arguments)
    assert np.array_equal(worlds.save(), before)


def test_states_that_are_not_finite_are_named():
    worlds = dl.Worlds(dl.scenes.on_floor("go2"), 2)
    worlds.v[1, 0] = np.nan
    with pytest.raises(NotFiniteError, match="world 1"):
        worlds.linearize()
