"""A StepResult says what it said, whatever the simulator does afterwards, and however it is copied."""

import copy
import pickle

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError

FIELDS = [
    "time", "q", "v", "contacts", "loop_forces", "status", "islands", "sleeping", "iterations", "factorizations", "corrections", "residual", "penetration", "penetration_after",
    "loop_error", "loop_error_after", "limit_error", "limit_name", "limit_forces", "tunnelled", "timings", "sensors",
]  # fmt: skip


def numbers(step):
    """Everything that a step says, as plain values."""
    said = {name: getattr(step, name) for name in FIELDS if name != "contacts"}
    said |= {
        name: getattr(step.contacts, name) for name in ("position", "normal", "force", "friction", "bodies", "distance", "geoms", "frame")
    }
    return {name: np.array(value).tolist() if isinstance(value, np.ndarray) else value for name, value in said.items()}


def falling_stack():
    sim = dl.Simulator(dl.scenes.box_stack(2))
    q = sim.q.copy()
    q[9] += 0.0005
    sim.reset(q)
    return sim


def test_what_is_first_asked_for_after_other_steps_is_what_it_was_then():
    """Attributes are made lazily: two simulators step alike, the results of one are read at once, those of the other in the end."""
    at_once, in_the_end = falling_stack(), falling_stack()
    kept, read = [], []
    for _ in range(30):
        read.append(numbers(at_once.step()))
        kept.append(in_the_end.step())
    in_the_end.reset()
    del in_the_end
    for step, before in zip(kept, read, strict=True):
        now = numbers(step)
        assert now.pop("timings").keys() == before.pop("timings").keys()
        assert now == before
    assert len({tuple(x["q"]) for x in read}) == 30


def test_arrays_outlive_the_result_and_contacts_are_read_only():
    sim = dl.Simulator(dl.scenes.box_stack(2))
    step = sim.step()
    q, force = step.q, step.contacts.force
    expected_q, expected_force = q.copy(), force.copy()
    del step
    for _ in range(5):
        sim.step()
    assert np.array_equal(q, expected_q)
    assert np.array_equal(force, expected_force)
    with pytest.raises(ValueError, match="read-only"):
        force[0, 0] = 1.0
    q[0] = 5.0  # an array of its own
    assert sim.q[0] != 5.0


def test_attributes_are_kept_listed_and_not_written():
    step = dl.Simulator(dl.scenes.box_stack(1)).step()
    assert step.q is step.q
    assert step.contacts is step.contacts
    assert set(FIELDS) <= set(dir(step))
    assert set(FIELDS) == set(dl.StepResult.__annotations__)
    with pytest.raises(AttributeError, match="does not change"):
        step.status = "solved"
    with pytest.raises(AttributeError, match="no attribute 'forces'"):
        _ = step.forces


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_say_the_same(duplicate):
    step = falling_stack().step()
    assert numbers(duplicate(step)) == numbers(step)
    assert "solved" in repr(duplicate(step))


def test_a_world_without_contacts_has_empty_arrays_of_their_shapes():
    step = dl.Simulator(
        "<mujoco><option timestep='.001'/><worldbody><body><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"
    ).step()
    c = step.contacts
    assert [x.shape for x in (c.position, c.normal, c.force, c.friction, c.bodies)] == [(0, 3), (0, 3), (0, 3), (0,), (0, 2)]
    assert c.bodies.dtype == np.int64
    assert np.array_equal(step.body_forces(2), np.zeros((2, 3)))


def test_forces_of_bodies_add_up_to_zero_and_know_how_many_bodies_there_are():
    sim = falling_stack()
    sim.run(0.5, progress=False)
    step = sim.step()
    forces = step.body_forces(sim.model.nbody)
    assert np.abs(forces[1:]).max() > 1
    assert np.abs(forces.sum(axis=0)).max() < 1e-9 * np.abs(forces).max()
    with pytest.raises(ArgumentError, match="nbody: expected the model's number of bodies"):
        step.body_forces(1)
