"""Equality is by content, however it was written, and nobody can change a model through what it hands out."""

import copy
import pickle
import threading

import numpy as np
import pytest

import delassus as dl
from delassus.model import Body, Joint


def ball(mass=1.0, position=(0.0, 0.0, 1.0), **more):
    return dl.Model("ball", [Body("b", "world", position, mass=mass, inertia=(0.1,) * 3 + (0.0,) * 3)], [Joint("j", "hinge", "b")], **more)


@pytest.mark.parametrize("other", [ball(mass=1), ball(mass=np.float64(1.0)), ball(position=(-0.0, 0, 1))], ids=["int", "numpy", "zeros"])
def test_equal_numbers_are_equal_models(other):
    assert other == ball()
    assert hash(other) == hash(ball())
    assert pickle.loads(pickle.dumps(other)) == ball()


def test_other_numbers_are_other_models():
    assert ball(mass=1.0000000000000002) != ball()
    assert ball(ignored=["a tendon"]) != ball()


def test_arrays_cannot_be_made_writeable():
    model = ball(keyframes={"k": [0.5]})
    for array in (model.body_mass, model.joint_axis, model.gravity, model.keyframes["k"]):
        with pytest.raises(ValueError, match=r"WRITEABLE|writeable"):
            array.setflags(write=True)


def test_lists_given_to_a_model_are_copied():
    pair = ["b", "world"]
    model = ball(collision_excludes=[pair], ignored="one line")
    pair[0] = "world"
    assert model.collision_excludes == (("b", "world"),)
    assert model.ignored == ("one line",)


def test_a_copied_workspace_has_memory_of_its_own():
    work = dl.Workspace(ball(), np.float32)
    for other in (copy.copy(work), copy.deepcopy(work), pickle.loads(pickle.dumps(work))):
        assert other.model == work.model
        assert other.dtype == work.dtype
        assert other._native is not work._native


def test_loading_in_threads_leaves_mujocos_warnings_alone():
    import mujoco

    before = mujoco.get_mju_user_warning()
    threads = [threading.Thread(target=lambda: [dl.load("iiwa") for _ in range(5)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mujoco.get_mju_user_warning() == before


def test_mocap_bodies_do_not_disturb_the_check():
    import mujoco

    from delassus.check import compare_with_mujoco

    text = "<mujoco><worldbody><body mocap='true' pos='1 2 3'><geom size='.1'/></body><body pos='0 0 1'><freejoint/><geom size='.2'/></body></worldbody></mujoco>"
    model = dl.load(text)
    assert all(row.passed for row in compare_with_mujoco(model, mujoco.MjModel.from_xml_string(text)))
