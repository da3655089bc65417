"""Many bodies in one place: a step ends, solved or with an error that says the way out, and nothing is lost."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import CapacityError

BALL = '<body pos="0 0 .15"><freejoint/><geom size=".1"/></body>'


def crowd(n):
    return f'<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="50 50 1"/>{n * BALL}</worldbody></mujoco>'


@pytest.fixture(scope="module")
def thousand():
    return dl.Simulator(crowd(1000))


def test_a_thousand_bodies_at_one_point_are_refused_before_any_work_on_them(thousand):
    q = thousand.q
    with pytest.raises(CapacityError, match=r"499500 contacts at once; one step takes 200000 at most\. Move bodies .* apart"):
        thousand.step()
    assert thousand.time == 0
    np.testing.assert_array_equal(thousand.q, q)


def test_apart_again_they_step(thousand):
    q = thousand.model.neutral().reshape(-1, 7)
    q[:, 0], q[:, 1] = np.arange(1000) % 40, np.arange(1000) // 40
    thousand.reset(q.ravel())
    step = thousand.step()
    assert step.status == "solved"
    # a free fall: nothing of the crowd is left
    assert np.allclose(step.v.reshape(-1, 6)[:, 2], -9.81e-3, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_rollout_of_a_crowd_is_refused_by_whichever_thread_meets_it(thousand, threads):
    q = np.tile(thousand.model.neutral(), (2, 1)).reshape(2, -1, 7)
    q[0, :, 0], q[0, :, 1] = np.arange(1000) % 40, np.arange(1000) // 40
    with pytest.raises(CapacityError, match="contacts at once"):
        dl.rollout(thousand, q.reshape(2, -1), steps=2, threads=threads)


def test_sixty_bodies_at_one_point_step():
    sim = dl.Simulator(crowd(60))
    for _ in range(3):
        step = sim.step()
        assert len(step.contacts) >= 60 * 59 // 2
        assert np.isfinite(step.q).all()
