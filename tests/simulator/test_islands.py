"""Islands: bodies that neither touch nor are tied to each other do not change a bit of each other's motion."""

import numpy as np
import pytest

import delassus as dl

FLOOR = '<geom type="plane" size="40 40 1"/>'
ACROSS = '<equality><connect body1="{0}" body2="{1}" anchor="0 0 0.2"/></equality>'


def scene(bodies, more="", *, floor=FLOOR):
    return f"<mujoco><option timestep='.001'/><worldbody>{floor}{bodies}</worldbody>{more}</mujoco>"


def box(x, z, name="", turn=0.0):
    return f'<body name="{name or f"b{x}{z}"}" pos="{x} 0 {z}" euler="0 {turn} 0"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'


def arm(x, name):
    """Two links on a floor, with a spring, dry friction, a limit and a servo."""
    return (
        f'<body name="{name}" pos="{x} 0 0.3"><joint name="{name}1" axis="0 1 0" stiffness="2" damping="0.1" range="-60 60" limited="true"/>'
        '<geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.03" mass="1"/>'
        f'<body pos="0.25 0 0"><joint name="{name}2" axis="0 1 0" frictionloss="0.2"/><geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.03" mass="0.5"/></body></body>'
    )


def servo(name):
    return f'<position joint="{name}2" kp="20" kv="1"/>'


def motion(source, steps, control=None, **options):
    sim = dl.Simulator(source, **options)
    taken = [sim.step(control=control) for _ in range(steps)]
    return sim, np.array([s.q for s in taken]), np.array([s.v for s in taken]), taken


PARTS = {
    "falling box": (box(0, 0.5, turn=20), ""),
    "stack": (box(2, 0.1, "low") + box(2, 0.3, "high"), ""),
    "arm": (arm(5, "a"), f"<actuator>{servo('a')}</actuator>"),
    "tied boxes": (box(8, 0.2, "left", 10) + box(8.3, 0.2, "right"), ACROSS.format("left", "right")),
}


@pytest.mark.parametrize("options", [{}, {"solver": "newton"}, {"restitution": 0.6}, {"integrator": "euler"}], ids=str)
def test_parts_move_together_as_they_do_alone_bit_for_bit(options):
    bodies, more = ("".join(texts) for texts in zip(*PARTS.values(), strict=True))
    sim, q, v, taken = motion(scene(bodies, more), 400, [0.3], **options)
    at_q, at_v, contacts = 0, 0, 0
    for name, (body, extra) in PARTS.items():
        alone, q1, v1, taken1 = motion(scene(body, extra), 400, [0.3] if "actuator" in extra else None, **options)
        assert np.array_equal(q[:, at_q : at_q + alone.model.nq], q1), name
        assert np.array_equal(v[:, at_v : at_v + alone.model.nv], v1), name
        at_q, at_v = at_q + alone.model.nq, at_v + alone.model.nv
        contacts += len(taken1[-1].contacts)
    assert at_q == sim.model.nq
    assert contacts == len(taken[-1].contacts) >= 10
    assert taken[-1].islands == 4


def test_islands_are_counted_as_bodies_meet():
    sim = dl.Simulator(scene(box(0, 0.1) + box(0, 0.6) + box(3, 0.1)))
    assert sim.step().islands == 3
    for _ in range(800):
        step = sim.step()
    assert step.islands == 2
    assert step.status == "solved"


def test_floor_and_fixed_bodies_tie_nothing_together():
    table = '<body pos="0 0 0.5"><geom type="box" size="3 3 0.1"/></body>'
    sim = dl.Simulator(scene(table + box(0, 0.7) + box(1, 0.7), floor=""))
    for _ in range(20):
        step = sim.step()
    assert (step.islands, len(step.contacts)) == (2, 8)


def test_external_forces_and_torques_find_their_bodies():
    sim = dl.Simulator(scene(box(0, 5) + arm(3, "a") + box(6, 5), floor=""))
    push = np.zeros((sim.model.nbody, 6))
    push[-1, 1] = 3.0
    tau = np.zeros(sim.model.nv)
    tau[6] = 1.0
    before = sim.v
    step = sim.step(tau, external_forces=push)
    free = dl.Simulator(sim.model).step()
    assert np.isclose((step.v - before)[-5], 3.0 * 1e-3)
    changed = np.flatnonzero(step.v != free.v)
    assert set(changed) <= {6, 7, sim.model.nv - 5}
    assert {6, sim.model.nv - 5} <= set(changed)


def test_bodies_that_met_and_parted_leave_few_islands_behind():
    rng = np.random.default_rng(0)
    sim = dl.Simulator(scene("".join(box(0.25 * k, 0.11) for k in range(12))))
    for _ in range(60):
        v = np.zeros(sim.model.nv)
        v[::6] = rng.uniform(-4, 4, 12)
        sim.reset(v=v)
        for _ in range(40):
            step = sim.step()
        assert 1 <= step.islands <= 12
    assert sim._world.systems <= 24 * (2 * 12 + 32)


def test_an_island_that_is_not_solved_is_told_and_the_others_are():
    tower = "".join(box(0, 0.1 + 0.2 * k) for k in range(20))
    both, alone = (dl.Simulator(scene(text + box(7, 0.1)), max_iterations=4, solver="admm") for text in (tower, ""))
    told, sound = both.step(), alone.step()
    assert (told.status, sound.status) == ("iteration_limit", "solved")
    assert np.array_equal(told.v[-6:], sound.v)
