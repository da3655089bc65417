"""Open-loop motions from prepared worlds, and with parameters."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError


def test_a_rollout_from_prepared_worlds_is_that_of_a_model_and_leaves_them():
    model = dl.load(dl.scenes.on_floor("go2"))
    rng = np.random.default_rng(0)
    q, v, control = np.tile(model.keyframes["home"], (3, 1)), 0.2 * rng.normal(size=(3, 18)), rng.normal(size=(3, 25, 12))
    plain = dl.rollout(model, q, v, control=control)
    worlds = dl.Worlds(model, 3, threads=2)
    worlds.reset(q=q, v=v)
    worlds.step(4)
    before = worlds.save()
    for _ in range(2):
        again = dl.rollout(worlds, q, v, control=control)
        assert np.array_equal(again.q, plain.q)
        assert np.array_equal(again.v, plain.v)
    assert np.array_equal(worlds.save(), before)
    here = dl.rollout(worlds, steps=2)
    assert np.array_equal(here.q, dl.rollout(model, worlds.q, worlds.v, steps=2).q)


def test_rollouts_have_parameters():
    model = dl.scenes.box_stack(1)
    v = np.zeros((3, 6))
    v[:, 0] = 1.0
    found = dl.rollout(model, np.tile(model.neutral(), (3, 1)), v, steps=50, parameters={"friction": [[0.0], [0.3], [0.6]]})
    lost = 1 - found.v[:, -1, 0]
    np.testing.assert_allclose(lost, np.array([0, 0.3, 0.6]) * 9.81 * 0.05, atol=0.02)
    worlds = dl.Worlds(model, 3)
    worlds.parameters["friction"] = [[0.0], [0.3], [0.6]]
    worlds.reset(v=v)
    assert np.array_equal(dl.rollout(worlds, worlds.q, v, steps=50).v, found.v)
    worlds.step(50)
    assert np.array_equal(worlds.v, found.v[:, -1])


def test_bad_arguments_are_refused():
    model = dl.scenes.box_stack(1)
    worlds = dl.Worlds(model, 2)
    q = np.tile(model.neutral(), (3, 1))
    with pytest.raises(ArgumentError, match="prepared Worlds"):
        dl.rollout(worlds, q, steps=2, threads=2)
    with pytest.raises(ArgumentError, match="q: expected \\(worlds, nq\\)"):
        dl.rollout(model, steps=2)
    assert dl.rollout(worlds, q, steps=2).q.shape == (3, 2, 7)
    worlds.parameters["body_mass"]
    with pytest.raises(ArgumentError, match="a row for each of 2 worlds"):
        dl.rollout(worlds, q, steps=2)
    with pytest.raises(ArgumentError, match="body_mass"):
        dl.rollout(model, q, steps=2, parameters={"body_mass": -1.0})
