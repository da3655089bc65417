"""Derivatives of frames, of J w and Jᵀ f, of the centre of mass and of energies, against complex steps."""

import numpy as np
import pytest
from hypothesis import given, settings

import delassus as dl
from oracles import complex_frames as frames
from oracles import complex_step
from oracles.cases import RANDOM, state
from oracles.compare import agree
from oracles.trees import mechanisms

CLOSE = 1e-11
NAMES = [*RANDOM, "go2", "iiwa", "one link", "boxes"]


def size(*arrays):
    return max(1.0, *(np.abs(x).max(initial=0.0) for x in arrays))


def check_frame(oracle, body, seed=0):
    model, q, v = oracle.model, oracle.q, oracle.v
    rng = np.random.default_rng([seed, 5])
    a, point, force = rng.standard_normal(model.nv), rng.uniform(-0.5, 0.5, 3), rng.standard_normal(6)

    def motion(q, v, a):
        return np.concatenate(frames.frame_motion(complex_step.complex_pose(model, q), v, a, body, point))

    d = dl.frame_derivatives(model, q, v, a, body, point)
    value = motion(q, v, a).real
    agree(d.velocity, value[3:9], CLOSE, size(d.velocity))
    agree(d.acceleration, value[9:], CLOSE, size(d.acceleration))
    by_q, by_v, by_a = complex_step.derivative(model, motion, q, v, a)
    agree(d.jacobian[:3], by_q[:3], CLOSE, size(by_q[:3]))
    agree(d.jacobian, by_v[3:9], CLOSE, size(by_v[3:9]))
    agree(d.jacobian, by_a[9:], CLOSE, size(by_a[9:]))
    agree(d.velocity_q, by_q[3:9], CLOSE, size(by_q[3:9]))
    agree(d.acceleration_q, by_q[9:], CLOSE, size(by_q[9:]))
    agree(d.acceleration_v, by_v[9:], CLOSE, size(by_v[9:]))
    agree(dl.jacobian_product_derivative(model, q, a, body, point), dl.frame_derivatives(model, q, a, None, body, point).velocity_q, 0)
    for part, whole in zip(vars(dl.point_derivatives(model, q, v, a, body, point)).values(), vars(d).values(), strict=True):
        assert (part == whole[:3]).all()

    (want,) = complex_step.derivative(
        model, lambda q: complex_step.wrench_torque(complex_step.complex_pose(model, q), body, point, force), q
    )
    agree(dl.jacobian_transpose_product_derivative(model, q, force, body, point), want, CLOSE, size(want))


def check_masses(oracle, seed=0):
    model, q, v = oracle.model, oracle.q, oracle.v
    a = np.random.default_rng([seed, 6]).standard_normal(model.nv)

    def center(q, v, a):
        return np.concatenate(frames.center_motion(complex_step.complex_pose(model, q), v, a))

    d = dl.center_of_mass_derivatives(model, q, v, a)
    value = center(q, v, a).real
    agree(d.velocity, value[3:6], CLOSE, size(value[3:6]))
    agree(d.acceleration, value[6:], CLOSE, size(value[6:]))
    by_q, by_v, by_a = complex_step.derivative(model, center, q, v, a)
    for got, want in (
        (d.jacobian, by_q[:3]), (d.jacobian, by_v[3:6]), (d.jacobian, by_a[6:]), (d.velocity_q, by_q[3:6]), (d.acceleration_q, by_q[6:]), (d.acceleration_v, by_v[6:]),
    ):  # fmt: skip
        agree(got, want, CLOSE, size(want))

    e = dl.energy_derivatives(model, q, v)
    by_q, by_v = complex_step.derivative(model, lambda q, v: frames.kinetic_energy(complex_step.complex_pose(model, q), v), q, v)
    agree(e.kinetic_q, by_q, CLOSE, size(by_q))
    agree(e.kinetic_v, by_v, CLOSE, size(by_v))


@pytest.mark.parametrize("name", NAMES)
def test_frames_have_the_derivatives_of_complex_steps(name):
    oracle = state(name, 3)
    for body in {0, 1, oracle.model.nbody // 2, oracle.model.nbody - 1}:
        check_frame(oracle, body)


@pytest.mark.parametrize("name", NAMES)
def test_centre_of_mass_and_kinetic_energy_have_the_derivatives_of_complex_steps(name):
    check_masses(state(name, 3))


@settings(max_examples=10)
@given(mechanisms(max_bodies=5))
def test_random_trees(oracle):
    check_frame(oracle, oracle.model.nbody - 1)
    if oracle.model.nv:
        check_masses(oracle)


@pytest.mark.exhaustive
@settings(max_examples=200)
@given(mechanisms())
def test_many_random_trees(oracle):
    check_frame(oracle, oracle.model.nbody - 1)
    if oracle.model.nv:
        check_masses(oracle)


def spring_model():
    b = dl.ModelBuilder("springs")
    for k, kind in enumerate(("free", "ball", "hinge", "slide")):
        name = f"b{k}"
        b.add_body(name, f"b{k - 1}" if k else "world", position=(0.1, 0.2, 0.3), mass=1.0 + k, com=(0.1, 0, 0.05), inertia=(0.2, 0.3, 0.4))
        b.add_joint(name, kind, name=f"j{k}", stiffness=3.0 + k, **({"axis": (0, 0.6, 0.8)} if k > 1 else {}))
    return b.build()


@pytest.mark.parametrize("make", [spring_model, lambda: dl.load("cassie"), lambda: dl.load("go2")], ids=["springs", "cassie", "go2"])
def test_potential_energy_has_the_gradient_of_central_differences(make):
    model = make()
    rng = np.random.default_rng(4)
    q, h = model.random(rng), 1e-5
    got = dl.energy_derivatives(model, q, np.zeros(model.nv)).potential_q
    want = [
        (dl.potential_energy(model, dl.integrate(model, q, e, h)) - dl.potential_energy(model, dl.integrate(model, q, e, -h))) / (2 * h)
        for e in np.eye(model.nv)
    ]
    agree(got, want, 1e-8)


def test_energy_is_kept_by_forward_dynamics():
    """Ė = 0 without forces: ∂T/∂q v + ∂T/∂v ν̇ + ∂V/∂q v."""
    model = dl.load("g1")
    rng = np.random.default_rng(5)
    q, v = model.random(rng), rng.standard_normal(model.nv)
    e = dl.energy_derivatives(model, q, v)
    parts = [e.kinetic_q @ v, e.kinetic_v @ dl.forward_dynamics(model, q, v), e.potential_q @ v]
    assert abs(sum(parts)) < 1e-10 * max(map(abs, parts))


def test_bad_arguments_raise_errors_that_name_them():
    model = dl.load("go2")
    q, v = model.neutral(), np.zeros(18)
    with pytest.raises(dl.errors.UnknownNameError, match="body"):
        dl.frame_derivatives(model, q, v, v, "nobody")
    with pytest.raises(dl.errors.ArgumentError, match="point: expected shape"):
        dl.point_derivatives(model, q, v, v, "base", (0, 0))
    with pytest.raises(dl.errors.NotFiniteError, match="point"):
        dl.frame_derivatives(model, q, v, v, "base", (0, 0, np.nan))
    with pytest.raises(dl.errors.ArgumentError, match="force: expected shape"):
        dl.jacobian_transpose_product_derivative(model, q, np.zeros(3), "base")
    with pytest.raises(dl.errors.ArgumentTypeError, match="force"):
        dl.jacobian_transpose_product_derivative(model, q, None, "base")
    with pytest.raises(dl.errors.ArgumentError, match="acceleration: expected shape"):
        dl.center_of_mass_derivatives(model, q, v, np.zeros(3))
    with pytest.raises(dl.errors.ArgumentTypeError, match="model"):
        dl.energy_derivatives("go2", q, v)
    empty = dl.ModelBuilder("nothing").build()
    with pytest.raises(dl.errors.SingularError, match="no centre of mass"):
        dl.center_of_mass_derivatives(empty, np.zeros(0), np.zeros(0))
    assert dl.energy_derivatives(empty, np.zeros(0), np.zeros(0)).kinetic_q.shape == (0,)


def test_float32_stays_float32():
    model = dl.load("go2")
    q, v = model.neutral().astype(np.float32), np.ones(18, dtype=np.float32)
    for result in (
        dl.frame_derivatives(model, q, v, v, "base"),
        dl.center_of_mass_derivatives(model, q, v, v),
        dl.energy_derivatives(model, q, v),
    ):
        assert {x.dtype for x in vars(result).values()} == {np.dtype(np.float32)}
