"""What the equations of motion imply, whatever the mechanism."""

import numpy as np
import pytest

import delassus as dl
from oracles import dense
from oracles.calls import CALLS, values
from oracles.compare import agree

CLOSE = 1e-12
MODELS = {name: dl.load(name) for name in dl.embedded_names()} | {
    m.name: m
    for m in (dl.scenes.chain(20), dl.scenes.binary_tree(3), dl.scenes.swimmer(6), dl.scenes.n_four_bar(2), dl.scenes.box_stack(3))
}
SOLID = {"mass": 1.7, "com": (0.1, -0.2, 0.3), "inertia": (0.3, 0.4, 0.5, 0.02, -0.03, 0.04)}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def test_mass_matrix_is_symmetric_to_the_bit_and_positive_definite(model):
    q = model.random(1)
    M, inverse = dl.mass_matrix(model, q), dl.mass_matrix_inverse(model, q)
    for A in (M, inverse):
        assert np.array_equal(A, A.T)
        assert np.linalg.eigvalsh(A)[0] > 0
    # two algorithms that share no number, judged by the condition of M
    agree(inverse @ M, np.eye(model.nv), 1e-15 * np.linalg.cond(M), 1.0)


def test_forward_dynamics_inverts_inverse_dynamics(model):
    given = values(model, 2)
    q, v, a, wrenches = (given[k] for k in ("q", "v", "acceleration", "external_forces"))
    tau = dl.inverse_dynamics(model, q, v, a, external_forces=wrenches)
    back = dl.forward_dynamics(model, q, v, tau, external_forces=wrenches)
    # τ is rounded relative to its size, and M⁻¹ carries that over
    rounding = np.abs(dl.mass_matrix_inverse(model, q)).max() * np.abs(tau).max()
    agree(back, a, 1e-14, np.abs(a).max() + rounding)


def test_inverse_dynamics_is_affine_in_accelerations_and_forces(model):
    given = values(model, 3)
    q, v, a, b, wrenches = (given[k] for k in ("q", "v", "acceleration", "tau", "external_forces"))
    c = dl.bias_forces(model, q, v)
    both = dl.inverse_dynamics(model, q, v, 2 * a - b)
    agree(both - c, 2 * (dl.inverse_dynamics(model, q, v, a) - c) - (dl.inverse_dynamics(model, q, v, b) - c), CLOSE)
    pushed = dl.bias_forces(model, q, v, external_forces=wrenches) - c
    agree(dl.bias_forces(model, q, v, external_forces=-3 * wrenches) - c, -3 * pushed, CLOSE)
    agree(both - c, dl.mass_matrix(model, q) @ (2 * a - b), CLOSE)


def test_quadratic_forces_grow_with_the_square_of_the_speed(model):
    given = values(model, 4)
    q, v = given["q"], given["v"]
    rest = dl.bias_forces(model, q, np.zeros(model.nv))
    agree(
        dl.bias_forces(model, q, 3 * v) - rest,
        9 * (dl.bias_forces(model, q, v) - rest),
        CLOSE,
        np.abs(rest).max() + np.abs(dl.bias_forces(model, q, 3 * v)).max(),
    )


def test_kinetic_energy_is_half_v_m_v(model):
    given = values(model, 5)
    q, v = given["q"], given["v"]
    agree(dl.kinetic_energy(model, q, v), 0.5 * v @ dl.mass_matrix(model, q) @ v, CLOSE)


def test_forces_of_gravity_and_springs_are_the_gradient_of_the_potential(model):
    q, h = model.random(6), 1e-3
    # all springs here are on hinges and slides
    push = dl.bias_forces(model, q, np.zeros(model.nv)) + model.dof_stiffness * dl.difference(model, model.spring_reference, q)

    def energy(direction, t):
        return dl.potential_energy(model, dl.integrate(model, q, direction, t))

    for k in np.random.default_rng(7).permutation(model.nv)[:6]:
        e = np.eye(model.nv)[k]
        slope = (8 * (energy(e, h) - energy(e, -h)) - (energy(e, 2 * h) - energy(e, -2 * h))) / (12 * h)
        # fourth order: truncation h⁴ = 1e-12, rounding 1e-16 / h of the whole energy
        assert slope == pytest.approx(push[k], abs=1e-9 * (model.mass * 9.81 + dl.potential_energy(model, q)))


def test_solve_is_linear_and_undoes_the_mass_matrix(model):
    q, rng = model.random(8), np.random.default_rng(8)
    M, x = dl.mass_matrix(model, q), rng.standard_normal((model.nv, 5))
    condition = np.linalg.cond(M)
    agree(dl.solve_mass_matrix(model, q, M @ x), x, 1e-14 * condition)
    a, b = x[:, 0], x[:, 1]
    both = dl.solve_mass_matrix(model, q, a - 2 * b)
    agree(both, dl.solve_mass_matrix(model, q, a) - 2 * dl.solve_mass_matrix(model, q, b), CLOSE * condition)


def arm(parts, name="arm"):
    """Build a hinge, then a ball, that carry ``parts``: (parent, name, frame, inertial)."""
    builder = dl.ModelBuilder(name, gravity=(1.0, 2.0, -9.81))
    builder.add_body("upper", position=(0.1, 0.2, 0.3), quaternion=(0.9, 0.1, -0.3, 0.3), **SOLID)
    builder.add_joint("upper", "hinge", axis=(1, 2, 3), position=(0.0, 0.1, 0.0), armature=0.01)
    builder.add_body("lower", "upper", position=(0.3, 0.0, -0.4), **SOLID)
    builder.add_joint("lower", "ball", position=(0.05, 0.0, 0.1))
    for parent, part, frame, inertial in parts:
        builder.add_body(part, parent, **frame, **inertial)
    return builder.build()


def test_bodies_fixed_to_another_act_as_one():
    frame = {"position": (0.2, -0.1, 0.4), "quaternion": (0.5, 0.5, -0.5, 0.5)}
    far = {"position": (-0.3, 0.2, 0.1), "quaternion": (0.8, 0.0, 0.6, 0.0)}
    fused = arm([("lower", "tool", frame, SOLID), ("tool", "tip", far, {"mass": 0.4, "com": (0.0, 0.0, 0.2)}), ("upper", "lamp", far, {})])

    # the same inertia on one body: sum of mass, centre and Steiner terms
    xx, yy, zz, xy, xz, yz = SOLID["inertia"]
    own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    A = dense.rigid(dense.rotation(frame["quaternion"]), frame["position"])
    B = A @ dense.rigid(dense.rotation(far["quaternion"]), far["position"])
    pieces = [
        (SOLID["mass"], np.array(SOLID["com"]), own),
        (SOLID["mass"], (A @ [*SOLID["com"], 1])[:3], A[:3, :3] @ own @ A[:3, :3].T),
        (0.4, (B @ [0, 0, 0.2, 1])[:3], np.zeros((3, 3))),
    ]
    mass = sum(m for m, _, _ in pieces)
    com = sum(m * c for m, c, _ in pieces) / mass
    inertia = sum(part + m * dense.hat(c - com).T @ dense.hat(c - com) for m, c, part in pieces)
    builder = dl.ModelBuilder("merged", gravity=(1.0, 2.0, -9.81))
    first, second = fused.bodies[0], next(b for b in fused.bodies if b.name == "lower")
    builder.add_body("upper", position=first.position, quaternion=first.quaternion, **SOLID)
    builder.add_body("lower", "upper", position=second.position, mass=mass, com=com, inertia=inertia)
    for joint in fused.joints:
        builder.add_joint(joint.body, joint.type, axis=joint.axis, position=joint.position, armature=joint.armature)
    merged = builder.build()

    given = values(fused, 9)
    for name in (
        "mass_matrix",
        "mass_matrix_inverse",
        "forward_dynamics",
        "inverse_dynamics",
        "kinetic_energy",
        "potential_energy",
        "center_of_mass",
    ):
        quiet = given | {"external_forces": None}
        agree(CALLS[name](fused, quiet), CALLS[name](merged, quiet), CLOSE)
    # a place on a fixed body is a place on what carries it
    q, v = given["q"], given["v"]
    for point in np.eye(3):
        agree(dl.frame_jacobian(fused, q, "tip", point), dl.frame_jacobian(merged, q, "lower", (B @ [*point, 1])[:3]), CLOSE)
        agree(
            dl.frame_bias_acceleration(fused, q, v, "tip", point),
            dl.frame_bias_acceleration(merged, q, v, "lower", (B @ [*point, 1])[:3]),
            CLOSE,
        )


def test_joints_of_one_body_are_joints_of_massless_bodies_in_between():
    kinds = [("slide", (1, 2, 0), 0.3), ("hinge", (0, 1, 1), -0.2), ("ball", (0, 0, 1), 0.0)]
    one, several = dl.ModelBuilder("one"), dl.ModelBuilder("several")
    frame = {"position": (0.1, 0.2, 0.3), "quaternion": (0.6, 0.0, 0.8, 0.0)}
    one.add_body("body", **frame, **SOLID)
    for k, (kind, axis, reference) in enumerate(kinds):
        last = k == len(kinds) - 1
        several.add_body(
            "body" if last else f"part{k}", f"part{k - 1}" if k else "world", **(frame if k == 0 else {}), **(SOLID if last else {})
        )
        for builder, body in ((one, "body"), (several, "body" if last else f"part{k}")):
            builder.add_joint(body, kind, axis=axis, reference=reference, position=(0.1 * k, 0.0, -0.2))
    one, several = one.build(), several.build()
    given = values(one, 10)
    for name in (
        "mass_matrix",
        "mass_matrix_inverse",
        "forward_dynamics",
        "inverse_dynamics",
        "frame_jacobian",
        "frame_bias_acceleration",
        "frame_velocity",
    ):
        a, b = (CALLS[name](m, given | {"external_forces": None, "body": "body"}) for m in (one, several))
        assert np.array_equal(a, b), name


def empty_model(fixed):
    builder = dl.ModelBuilder("empty")
    for k in range(fixed):
        builder.add_body(f"stone{k}", "world", position=(1, 2, 3), **SOLID)
    return builder.build()


@pytest.mark.parametrize("fixed", [0, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nothing_that_moves_gives_empty_arrays(fixed, dtype):
    model = empty_model(fixed)
    given = values(model, 0, dtype) | {"body": fixed}
    assert (model.nq, model.nv, model.nbody) == (0, 0, fixed + 1)
    for name, call in CALLS.items():
        if name == "center_of_mass":
            continue
        result = np.asarray(call(model, given))
        if call.out_shape:
            assert result.shape == call.out_shape(model)
        # the ground stands still and holds no energy
        if "velocity" in name or "acceleration" in name or "energy" in name:
            assert not result.any()
    want = np.eye(4)
    want[:3, 3] = (1, 2, 3)
    for X in dl.body_placements(model, given["q"])[1:]:
        assert np.array_equal(X, want)


def test_centre_of_nothing_is_refused():
    with pytest.raises(dl.errors.DelassusError, match="center_of_mass"):
        dl.center_of_mass(empty_model(0), [])


@pytest.mark.parametrize("kind", ["hinge", "slide", "ball", "free"])
def test_one_body_is_a_mechanism(kind):
    builder = dl.ModelBuilder("one")
    builder.add_body("body", position=(0.1, 0.2, 0.3), **SOLID)
    builder.add_joint("body", kind, **({} if kind == "free" else {"position": (0.3, 0.1, 0.2)}))
    model = builder.build()
    given = values(model, 11)
    oracle = dense.Mechanism(model, given["q"], given["v"])
    agree(dl.mass_matrix(model, given["q"]), oracle.mass_matrix, CLOSE)
    agree(dl.bias_forces(model, given["q"], given["v"]), oracle.bias_forces, CLOSE, oracle.bias_scale)
    agree(dl.mass_matrix_inverse(model, given["q"]), np.linalg.inv(oracle.mass_matrix), CLOSE)
