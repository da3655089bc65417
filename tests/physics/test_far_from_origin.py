"""A robot far from the world's origin is the same robot: at most one digit is lost."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from oracles.calls import CALLS, values
from oracles.compare import relative_error
from oracles.dense import Mechanism

OFFSETS = {"1 km": np.array([1e3, -700.0, 300.0]), "100 km": np.array([1e5, -7e4, 3e4])}
ONE_DIGIT = 10


def standing(model, offset):
    """Return the same model, its base set elsewhere."""
    roots = [replace(b, position=tuple(np.add(b.position, offset))) if b.parent == "world" else b for b in model.bodies]
    return dl.Model(model.name, roots, model.joints, gravity=model.gravity)


def floated(name):
    model = dl.load(name)
    q = model.random(11)

    def moved(offset):
        far = q.copy()
        far[:3] = q[:3] + offset
        return model, far

    return model, q, moved


def mounted(model):
    q = model.random(11)
    return model, q, lambda offset: (standing(model, offset), q)


def rolled():
    """Return a planar base on two slides and a hinge that rolled away, an arm on it."""
    model = dl.scenes.swimmer(5)
    q = model.random(11)

    def moved(offset):
        far = q.copy()
        far[:2] = q[:2] + offset[:2]
        return model, far

    return model, q, moved


CASES = {
    "free go2": lambda: floated("go2"),
    "free g1": lambda: floated("g1"),
    "mounted iiwa": lambda: mounted(dl.load("iiwa")),
    "mounted tree": lambda: mounted(dl.scenes.binary_tree(3)),
    "rolled swimmer": rolled,
}


def expected(oracle, given):
    """What does not depend on where the robot stands, by the dense oracle: {function: (result, its size)}."""
    nbody, v, body = oracle.model.nbody, oracle.v, given["body"]
    J, bias = oracle.frames(np.tile(given["point"], (nbody, 1)))
    inverse = np.linalg.inv(oracle.mass_matrix)
    force = oracle.joint_forces(given["external_forces"])
    push = given["tau"] + force - oracle.bias_forces
    wanted = {
        "mass_matrix": oracle.mass_matrix,
        "mass_matrix_inverse": inverse,
        "solve_mass_matrix": inverse @ given["y"],
        "bias_forces": oracle.bias_forces - force,
        "forward_dynamics": inverse @ push,
        "frame_jacobian": J[body],
        "frame_velocity": J[body] @ v,
        "frame_bias_acceleration": bias[body],
        "kinetic_energy": oracle.kinetic_energy,
    }
    return {name: (x, np.abs(x).max()) for name, x in wanted.items()}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("case", CASES)
def test_distance_costs_at_most_one_digit(case, offset, dtype):
    model, q, moved = CASES[case]()
    far_model, far_q = moved(OFFSETS[offset])
    given = values(model, 12, dtype)
    oracle = Mechanism(model, q, given["v"])
    for name, (want, size) in expected(oracle, given).items():
        near = relative_error(CALLS[name](model, given | {"q": q.astype(dtype)}), want, size)
        far = relative_error(CALLS[name](far_model, given | {"q": far_q.astype(dtype)}), want, size)
        # an error may be zero by luck: a few roundings are always granted
        allowed = ONE_DIGIT * max(near, 4 * np.finfo(dtype).eps)
        assert far <= allowed, f"{name}: relative error {far:.3g} far away, {near:.3g} at the origin"


@pytest.mark.parametrize("offset", OFFSETS)
def test_places_far_away_are_places_here_moved(offset):
    model, q, moved = CASES["free g1"]()
    far = dl.body_placements(*moved(OFFSETS[offset]))[1:]
    here = dl.body_placements(model, q)[1:]
    assert np.array_equal(far[:, :3, :3], here[:, :3, :3])
    # one rounding of a number of this size
    rounding = np.spacing(np.abs(OFFSETS[offset]).max())
    np.testing.assert_allclose(far[:, :3, 3] - OFFSETS[offset], here[:, :3, 3], rtol=0, atol=2 * rounding)
