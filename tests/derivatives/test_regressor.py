"""Joint forces are the regressor times inertial parameters: of the model itself, and of any other on the same joints."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from oracles.cases import RANDOM, state
from oracles.compare import agree


@pytest.mark.parametrize("name", [*RANDOM, *dl.embedded_names(), "boxes", "one link"])
def test_regressor_times_the_models_parameters_is_inverse_dynamics(name):
    oracle = state(name, 3)
    model = oracle.model
    a = np.random.default_rng(1).standard_normal(model.nv)
    Y = dl.torque_regressor(model, oracle.q, oracle.v, a)
    assert Y.shape == (model.nv, 10 * model.nbody)
    tau = dl.inverse_dynamics(model, oracle.q, oracle.v, a)
    agree(Y @ dl.inertial_parameters(model) + model.dof_armature * a, tau, 1e-12)


@pytest.mark.parametrize("name", ["mixed", "go2"])
def test_regressor_does_not_depend_on_the_parameters(name):
    oracle = state(name, 3)
    model, rng = oracle.model, np.random.default_rng(2)
    other = dl.Model(
        "other",
        [
            replace(b, mass=b.mass + 1.0, com=tuple(rng.uniform(-0.1, 0.1, 3)), inertia=(1.0, 1.2, 1.4, *rng.uniform(-0.1, 0.1, 3)))
            for b in model.bodies
        ],
        model.joints,
        gravity=model.gravity,
    )
    a = rng.standard_normal(model.nv)
    Y = dl.torque_regressor(model, oracle.q, oracle.v, a)
    want = dl.inverse_dynamics(other, oracle.q, oracle.v, a)
    agree(Y @ dl.inertial_parameters(other) + model.dof_armature * a, want, 1e-12)
    agree(dl.torque_regressor(other, oracle.q, oracle.v, a), Y, 1e-15)


def test_parameters_are_mass_first_moment_and_inertia_about_the_origin():
    b = dl.ModelBuilder("one")
    b.add_body("b", "world", mass=2.0, com=(1.0, 2.0, 3.0), inertia=(20.0, 30.0, 40.0, 1.0, 2.0, 3.0))
    b.add_joint("b", "free")
    theta = dl.inertial_parameters(b.build()).reshape(2, 10)
    assert (theta[0] == 0).all()
    # I + m (c·c 1 − c cᵀ), entries xx, xy, yy, xz, yz, zz
    assert theta[1].tolist() == [2.0, 2.0, 4.0, 6.0, 20 + 26.0, 1 - 4.0, 30 + 20.0, 2 - 6.0, 3 - 12.0, 40 + 10.0]


def test_bodies_that_do_not_move_have_zero_columns_and_bad_arguments_are_named():
    b = dl.ModelBuilder("fixed and moving")
    b.add_body("fixed", "world", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.add_body("moving", "fixed", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.add_joint("moving", "hinge", axis=(1, 0, 0))
    model = b.build()
    one = np.ones(1)
    out = np.empty((1, 30))
    Y = dl.torque_regressor(model, one, one, one, out=out)
    assert Y is out
    assert (Y[:, :20] == 0).all()
    assert (Y[:, 20:] != 0).any()
    with pytest.raises(dl.errors.ArgumentTypeError, match="acceleration"):
        dl.torque_regressor(model, one, one, None)
    with pytest.raises(dl.errors.ArgumentError, match="v: expected shape"):
        dl.torque_regressor(model, one, np.ones(2), one)
    with pytest.raises(dl.errors.ArgumentError, match="out"):
        dl.torque_regressor(model, one, one, one, out=np.empty((1, 20)))
    with pytest.raises(dl.errors.NotFiniteError, match="acceleration"):
        dl.torque_regressor(model, one, one, np.full(1, np.nan))


@pytest.mark.parametrize("changed", ["mass", "com", "inertia"])
def test_gradient_by_the_mass_the_centre_and_the_inertia_of_bodies(changed):
    """Each alone, the others as they are: against differences of θ, which is quadratic in c, so that central ones are exact."""
    model = dl.load("go2")
    rng = np.random.default_rng(2)
    by_theta = rng.standard_normal((10 * model.nbody, 3))
    gradient = dl.body_gradient(model, by_theta)
    assert gradient.mass.shape == (model.nbody, 3)
    body = 5
    if changed == "inertia":
        step = rng.standard_normal((3, 3))
        step = 1e-3 * (step + step.T)
        entries = step[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        want = np.einsum("ij,ijk->k", step, gradient.inertia[body])
    else:
        step = 0.01 if changed == "mass" else np.array([0.02, -0.01, 0.03])
        want = step * gradient.mass[body] if changed == "mass" else step @ gradient.com[body]

    def theta(sign):
        b = model.bodies[body - 1]  # the world is not among them
        if changed == "inertia":
            new = replace(b, inertia=tuple(np.array([1.0, 1.2, 1.4, 0.0, 0.0, 0.0]) + sign * entries))  # θ is linear in it
        else:
            new = replace(b, **{changed: b.mass + sign * step if changed == "mass" else tuple(np.asarray(b.com) + sign * step)})
        bodies = list(model.bodies)
        bodies[body - 1] = new
        return dl.inertial_parameters(dl.Model("other", tuple(bodies), model.joints))

    agree(by_theta.T @ (theta(1) - theta(-1)) / 2, want, 1e-12)
    single = dl.body_gradient(model, by_theta[:, 1])
    assert all(np.array_equal(one, many[..., 1]) for one, many in zip(single, gradient, strict=True))


def test_gradients_of_another_shape_are_refused():
    with pytest.raises(dl.errors.ArgumentError, match="inertial"):
        dl.body_gradient(dl.load("iiwa"), np.zeros(10))
