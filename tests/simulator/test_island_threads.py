"""Islands on several threads: the same bits for any number of them, and errors that arrive."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import delassus as dl
from delassus.bench import constraints_of
from delassus.errors import ArgumentError, ArgumentTypeError

FIELDS = (
    "status", "islands", "iterations", "factorizations", "corrections", "residual", "penetration", "penetration_after", "loop_error", "loop_error_after",
    "limit_error", "tunnelled",
)  # fmt: skip


def box(x, y, z, turn=0.0):
    return f'<body pos="{x} {y} {z}" euler="0 {turn} {turn}"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'


def arm(k, x, y):
    return (
        f'<body pos="{x} {y} 0.3"><joint name="a{k}" axis="0 1 0" stiffness="2" damping="0.1" range="-60 60" limited="true"/>'
        '<geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.03" mass="1"/>'
        f'<body pos="0.25 0 0"><joint name="e{k}" axis="0 1 0" frictionloss="0.2"/><geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.03" mass="0.5"/></body></body>'
    )


def crowd():
    """Stacks of one to four boxes, arms with servos, a four-bar loop and tied boxes, all far from each other."""
    stacks = "".join(box(2 * k, 0, 0.11 + 0.22 * j, 5.0 * j) for k in range(6) for j in range(1 + k % 4))
    arms = "".join(arm(k, 2 * k, 3) for k in range(3))
    bar = (
        '<body pos="0 6 1"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" contype="0"/><body name="coupler" pos="0 0 -.3"><joint axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 .5 0 0" size=".02" contype="0"/></body></body><body name="rocker" pos=".5 6 1"><joint axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" contype="0"/></body>'
    )
    tied = '<body name="l" pos="4 6 .2"><freejoint/><geom type="box" size=".1 .1 .1"/></body><body name="r" pos="4.3 6 .2"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    ties = '<equality><connect body1="coupler" body2="rocker" anchor=".5 0 0"/><connect body1="l" body2="r" anchor=".15 0 .1"/></equality>'
    servos = "".join(f'<position joint="e{k}" kp="20" kv="1"/>' for k in range(3))
    return f'<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="40 40 1"/>{stacks}{arms}{bar}{tied}</worldbody>{ties}<actuator>{servos}</actuator></mujoco>'


def steps(threads, n=300, **options):
    sim = dl.Simulator(crowd(), threads=threads, **options)
    v = np.random.default_rng(2).standard_normal(sim.model.nv)
    sim.reset(v=np.where(np.arange(sim.model.nv) < 60, v, 0.0))
    taken = [sim.step(control=[0.3, -0.2, 0.5]) for _ in range(n)]
    return sim, taken


@pytest.mark.parametrize(
    "options", [{}, {"solver": "newton"}, {"restitution": 0.5}, {"max_iterations": 3}, {"sleep_after": 0.02, "sleep_speed": 0.01}], ids=str
)
def test_the_same_bits_for_any_number_of_threads(options):
    sim, alone = steps(1, **options)
    assert max(s.islands for s in alone) >= 11
    for threads in (2, 3):
        other, several = steps(threads, **options)
        for a, b in zip(alone, several, strict=True):
            assert np.array_equal(a.q, b.q)
            assert np.array_equal(a.v, b.v)
            for name in ("position", "force", "normal", "bodies"):
                assert np.array_equal(getattr(a.contacts, name), getattr(b.contacts, name))
            assert [getattr(a, name) for name in FIELDS] == [getattr(b, name) for name in FIELDS]
        assert np.array_equal(sim.save(), other.save())


def hinged_bricks():
    """Seven layers of bricks, every other one turned by a quarter. A brick is two halves with a hinge between them."""
    made = []
    for layer in range(7):
        for k in range(18):
            along, across = 0.204 * (k % 3 - 1), 0.102 * (k // 3 - 2.5)
            x, y, turn = (-across, along, 90) if layer % 2 else (along, across, 0)
            half = '<geom type="box" pos="{} 0 0" size="0.049 0.05 0.05" mass="1"/>'
            hinged = f'<body pos="0.05 0 0"><joint axis="0 0 1" damping="1"/>{half.format(0)}</body>'
            made.append(f'<body pos="{x} {y} {0.05 + 0.1 * layer}" euler="0 0 {turn}"><freejoint/>{half.format(-0.05)}{hinged}</body>')
    return f'<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="4 4 1"/>{"".join(made)}</worldbody></mujoco>'


@pytest.mark.parametrize("make", [lambda: dl.scenes.box_pyramid(8), hinged_bricks], ids=["boxes", "hinged bricks"])
def test_threads_share_a_large_island_to_the_same_bits(make):
    model = make()
    sims = [dl.Simulator(model, threads=threads, max_iterations=20) for threads in (1, 2, 3)]
    for sim in sims:
        sim.reset(v=0.2 * np.random.default_rng(0).standard_normal(sim.model.nv))
    for _ in range(2):
        one, *others = [sim.step() for sim in sims]
        for other in others:
            assert np.array_equal(one.q, other.q)
            assert np.array_equal(one.v, other.v)
            assert np.array_equal(one.contacts.force, other.contacts.force)
            assert [getattr(one, name) for name in FIELDS] == [getattr(other, name) for name in FIELDS]
    # so large that the elimination was shared: its products of blocks
    operator = dl.DelassusOperator(sims[0].model, constraints_of(sims[0].model, sims[0].q, one.contacts))
    neighbours = np.unique(np.array(operator._native.couplings)[:, 0], return_counts=True)[1]
    assert (neighbours.astype(float) ** 2).sum() > 1e4


def test_snapshots_go_from_one_number_of_threads_to_another():
    one, two = (dl.Simulator(crowd(), threads=n) for n in (1, 2))
    one.run(0.1, progress=False)
    two.restore(one.save())
    assert np.array_equal(one.run(0.1, progress=False).q, two.run(0.1, progress=False).q)


def test_stages_of_all_islands_are_added_up():
    _, taken = steps(2, 50)
    parts = ("collide", "constrain", "operate", "solve", "correct")
    assert all(s.timings[name] > 0 for s in taken for name in parts)
    # two threads spend at most twice the time of the whole
    assert sum(s.timings[name] for s in taken for name in parts) < 2 * sum(s.timings["step"] for s in taken)


def test_ctrl_c_is_answered_and_leaves_a_whole_step():
    tower = "".join(box(3 * k, 0, 0.1 + 0.19 * j) for k in range(4) for j in range(25))
    sim = dl.Simulator(
        f'<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="40 40 1"/>{tower}</worldbody></mujoco>',
        threads=2,
        max_iterations=10**6,
        tolerance=0.0,
    )
    timer = threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sim.run(1e3, progress=False)
    assert time.monotonic() - before < 8
    timer.join()
    assert np.isfinite(sim.q).all()
    assert round(sim.time / sim.timestep) == pytest.approx(sim.time / sim.timestep)


@pytest.mark.parametrize(
    ("threads", "error"), [(0, ArgumentError), (-2, ArgumentError), (1.5, ArgumentTypeError), ("two", ArgumentTypeError)]
)
def test_threads_are_a_number(threads, error):
    with pytest.raises(error, match="threads"):
        dl.Simulator(dl.scenes.box_stack(1), threads=threads)
