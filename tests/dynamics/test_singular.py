"""A mass matrix that is singular to working precision is an error, never a number; a mass matrix that is merely small or large is not."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, SingularError
from oracles.dense import Mechanism

CALLS = {
    "forward_dynamics": lambda m, q: dl.forward_dynamics(m, q, m.zero_velocity().astype(q.dtype)),
    "mass_matrix_inverse": dl.mass_matrix_inverse,
    "solve_mass_matrix": lambda m, q: dl.solve_mass_matrix(m, q, np.ones(m.nv, q.dtype)),
}


def twice(kind, axes, bodies=1, armature=0.0):
    """Joints of one kind along these axes, on one body or on a chain of them, of which only the last has mass."""
    b = dl.ModelBuilder("twice")
    names = [f"b{k}" for k in range(bodies)]
    for k, name in enumerate(names):
        last = k == bodies - 1
        b.add_body(name, names[k - 1] if k else "world", mass=float(last), com=(0.1, 0.2, 0.3), inertia=(0.1 * last,) * 3)
    for k, axis in enumerate(axes):
        b.add_joint(names[min(k, bodies - 1)], kind, axis=axis, armature=armature)
    return b.build()


SINGULAR = {
    "hinges on one axis": twice("hinge", [(1, 2, 3)] * 2),
    "hinges on one axis, two bodies": twice("hinge", [(1, 2, 3)] * 2, bodies=2),
    "slides in one plane": twice("slide", [(1, 1, 0), (0, 1, 1), (1, 2, 1)]),
    "coordinate axes": twice("hinge", [(0, 0, 1)] * 2),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("model", SINGULAR.values(), ids=SINGULAR)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])
def test_joints_that_move_the_same_are_singular(model, call, dtype):
    with pytest.raises(SingularError, match="singular"):
        call(model, np.full(model.nq, 0.3, dtype))
    call(twice("hinge", [(1, 2, 3)] * 2, armature=0.1), np.array([0.3, 0.4], dtype))


def test_a_pose_can_make_the_mass_matrix_singular():
    # a ball joint made of three hinges loses an axis when the middle one is straight
    b = dl.ModelBuilder("gimbal")
    b.add_body("ball", mass=1.0, inertia=(0.1, 0.2, 0.25))
    for axis in ((0, 0, 1), (0, 1, 0), (1, 0, 0)):
        b.add_joint("ball", "hinge", axis=axis)
    model = b.build()
    assert np.isfinite(dl.mass_matrix_inverse(model, [0.1, 0.2, 0.3])).all()
    with pytest.raises(SingularError):
        dl.mass_matrix_inverse(model, [0.1, np.pi / 2, 0.3])


@pytest.mark.parametrize(("scale", "dtype"), [(1e100, np.float64), (1e-100, np.float64), (1e12, np.float32), (1e-12, np.float32)])
def test_the_size_of_the_masses_does_not_matter(scale, dtype):
    b = dl.ModelBuilder("scaled")
    b.add_body("base", mass=2.0 * scale, com=(0.1, 0.0, 0.2), inertia=(0.3 * scale, 0.4 * scale, 0.5 * scale))
    b.add_joint("base", "free")
    b.add_body("arm", "base", position=(0, 0, 1), mass=scale, com=(0.3, 0, 0), inertia=(0.1 * scale,) * 3)
    b.add_joint("arm", "hinge", axis=(0, 1, 0))
    model = b.build()
    q = model.random(1)
    expected = np.linalg.inv(Mechanism(model, q).mass_matrix / scale) / scale
    got = dl.mass_matrix_inverse(model, q.astype(dtype))
    assert np.abs(got - expected).max() <= (1e-12 if dtype is np.float64 else 1e-4) * np.abs(expected).max()


def test_an_axis_of_any_length_is_a_direction():
    models = [twice("hinge", [np.array([1.0, 2.0, 3.0]) * s]) for s in (1.0, 1e-200, 1e-160, 1e200)]
    for model in models[1:]:
        assert np.abs(model.joint_axis - models[0].joint_axis).max() <= 1e-15


def test_out_across_an_argument_is_refused():
    model = dl.load("iiwa")
    buffer = np.zeros(model.nv + 1)
    q, v = model.neutral(), model.zero_velocity()
    calls = [
        lambda: dl.inverse_dynamics(model, q, v, buffer[1:], out=buffer[:-1]),
        lambda: dl.forward_dynamics(model, q, v, buffer[1:], out=buffer[:-1]),
        lambda: dl.solve_mass_matrix(model, q, buffer[1:], out=buffer[:-1]),
        lambda: dl.integrate(model, buffer[1:], v, out=buffer[:-1]),
        lambda: dl.difference(model, buffer[1:], q, out=buffer[:-1]),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match="out: it shares"):
            call()


def test_many_slides_in_a_row_keep_their_places():
    b = dl.ModelBuilder("slides")
    for k in range(40):
        b.add_body(f"b{k}", f"b{k - 1}" if k else "world", position=(0.1, 0, 0), mass=1.0, com=(0, 0.1, 0), inertia=(0.1,) * 3)
        b.add_joint(f"b{k}", "slide" if k < 30 else "hinge", axis=np.eye(3)[k % 3])
    model = b.build()
    rng = np.random.default_rng(0)
    q, v = model.random(rng), rng.standard_normal(model.nv)
    assert np.allclose(dl.body_placements(model, q), Mechanism(model, q).placement, atol=1e-12)
    assert np.allclose(dl.mass_matrix(model, q), Mechanism(model, q).mass_matrix, rtol=1e-11)
    assert np.isclose(dl.kinetic_energy(model, q, v), 0.5 * v @ Mechanism(model, q).mass_matrix @ v)
