"""Contact forces against closed forms, against each other, and against the definition: residuals are found anew from the forces, never taken from the solver."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, NotFiniteError, StaleError, UnknownNameError
from oracles.contacts import Stepper, random_problem, residuals, sets_of

COULOMB = ["admm", "newton", "pgs", "interior"]
METHODS = [*COULOMB, "apgd"]
HAND = [*COULOMB, "lcp"]
G0 = 9.81


def block(slope, friction, *, mass=2.0, half=(0.3, 0.2, 0.1)):
    """A box on a plane with a contact under each corner; gravity leans downhill, along x."""
    x, y, z = half
    b = dl.ModelBuilder("block", gravity=(G0 * np.sin(slope), 0.0, -G0 * np.cos(slope)))
    b.add_body(
        "box",
        position=(0.0, 0.0, z),
        mass=mass,
        inertia=(mass * (y * y + z * z) / 3, mass * (x * x + z * z) / 3, mass * (x * x + y * y) / 3),
    )
    b.add_joint("box", "free")
    model = b.build()
    return model, [dl.PointContact(model, "box", point=(i * x, j * y, -z), friction=friction) for i in (-1, 1) for j in (-1, 1)]


def sphere(slope, friction, mass=1.5, radius=0.2):
    """A solid ball on a plane; gravity leans along x."""
    b = dl.ModelBuilder("ball", gravity=(G0 * np.sin(slope), 0.0, -G0 * np.cos(slope)))
    b.add_body("ball", position=(0.0, 0.0, radius), mass=mass, inertia=(0.4 * mass * radius**2,) * 3)
    b.add_joint("ball", "free")
    model = b.build()
    return model, [dl.PointContact(model, "ball", point=(0.0, 0.0, -radius), friction=friction)]


def one_step(model, contacts, q, v, dt, method, tau=None, **options):
    G = dl.DelassusOperator(model, contacts)
    G.update(q)
    free = v + dt * dl.forward_dynamics(model, q, v, np.zeros(model.nv) if tau is None else tau)
    r = dl.solve_contacts(G, G.jacobian @ free, method=method, timestep=dt, **options)
    return r, free + G.mass_inverse @ (G.jacobian.T @ r.forces)


def scene_problem(name, dt=1e-3, speed=0.0, seed=0):
    s = dl.scenes.load(name)
    G = dl.DelassusOperator(s.model, s.constraints)
    G.update(s.q)
    v = speed * np.random.default_rng(seed).standard_normal(s.model.nv)
    g = G.jacobian @ (v + dt * dl.forward_dynamics(s.model, s.q, v, np.zeros(s.model.nv)))
    return G, g, s.constraints


def check(r, G, g, cones, intervals, tolerance):
    """The solver may say solved only if that is so by Coulomb's law, and says what the residuals are."""
    found = residuals(np.asarray(G), np.asarray(g), cones, intervals, r.forces)
    said = (r.residuals.primal, r.residuals.dual, r.residuals.complementarity, r.residuals.natural)
    scale = 1e-9 * (1 + np.abs(r.forces).max(initial=0) * (1 + np.abs(G).max(initial=0)))
    assert np.allclose(found, said, rtol=1e-6, atol=scale)
    if r.status == "solved":
        assert max(*found[:2], found[3] / 10) <= tolerance * 1.01 + 1e-15
        assert r.advice == ""
    else:
        assert r.advice
    return found


# ---- closed forms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*METHODS, "lcp"])
def test_a_block_below_its_friction_limit_stands_still_and_weighs_what_it_weighs(method):
    mu, dt = 0.6, 1e-3
    slope = np.arctan(0.9 * mu)
    model, contacts = block(slope, mu)
    r, v = one_step(model, contacts, model.neutral(), np.zeros(6), dt, method, tolerance=1e-11)
    assert r.status == "solved"
    total = r.forces.reshape(4, 3).sum(axis=0)
    assert np.allclose(v, 0, atol=1e-8)
    assert abs(total[0] - 2.0 * G0 * np.cos(slope) * dt) < 1e-8
    assert abs(np.hypot(total[1], total[2]) - 2.0 * G0 * np.sin(slope) * dt) < 1e-8


@pytest.mark.parametrize("method", HAND)
def test_a_block_above_its_friction_limit_slides_with_the_rest_of_gravity(method):
    mu, dt = 0.6, 1e-3
    slope = np.arctan(1.1 * mu)
    model, contacts = block(slope, mu)
    r, v = one_step(model, contacts, model.neutral(), np.zeros(6), dt, method, tolerance=1e-11)
    assert r.status == "solved"
    assert np.allclose(v, [G0 * (np.sin(slope) - mu * np.cos(slope)) * dt, 0, 0, 0, 0, 0], atol=1e-8)


def test_the_convex_relaxation_opens_what_slides():
    """Without de Saxcé's term the velocity is in the dual cone: σ_n = µ ‖σ_T‖."""
    model, contacts = sphere(0.0, 0.3)
    v = np.array([1.0, 0, 0, 0, 0, 0])
    r, _ = one_step(model, contacts, model.neutral(), v, 1e-3, "apgd", tolerance=1e-10)
    assert r.status == "approximate"
    assert r.own_residual <= 1e-9 < 0.1 < r.residuals.natural
    assert abs(r.velocities[0] - 0.3 * np.hypot(*r.velocities[1:])) < 1e-8
    assert r.velocities[0] > 0.1


@pytest.mark.parametrize("method", [*METHODS, "lcp"])
def test_a_point_in_a_groove_leans_on_both_walls(method):
    """Walls at ±45°, no friction: each bears m g / (2 cos 45°)."""
    b = dl.ModelBuilder("bead")
    b.add_body("bead", mass=3.0, inertia=(0.01,) * 3)
    b.add_joint("bead", "free")
    model = b.build()
    walls = [dl.PointContact(model, "bead", normal=(s, 0.0, 1.0), friction=0.0) for s in (-1.0, 1.0)]
    r, v = one_step(model, walls, model.neutral(), np.zeros(6), 1e-2, method, tolerance=1e-11)
    assert np.allclose(r.forces.reshape(2, 3)[:, 0], 3.0 * G0 * 1e-2 / (2 * np.cos(np.pi / 4)), atol=1e-8)
    assert np.allclose(v, 0, atol=1e-8)


@pytest.mark.parametrize("method", HAND)
@pytest.mark.parametrize("grip", [0.5, 2.0])
def test_a_ball_rolls_with_five_sevenths_or_slides(method, grip):
    slope, dt = 0.3, 1e-3
    mu = grip * 2 / 7 * np.tan(slope)
    model, contacts = sphere(slope, mu)
    r, v = one_step(model, contacts, model.neutral(), np.zeros(6), dt, method, tolerance=1e-11)
    rolls = 5 / 7 * G0 * np.sin(slope) * dt
    slides = G0 * (np.sin(slope) - mu * np.cos(slope)) * dt
    assert r.status == "solved"
    assert abs(v[0] - (rolls if grip > 1 else slides)) < 1e-8
    assert abs(v[2]) < 1e-8


@pytest.mark.parametrize("method", COULOMB)
def test_painleves_rod_jams(method):
    """A rod dragged at an angle where no sliding force is consistent: µ G_nt > G_nn. Time stepping finds an impulse that stops the tip."""
    mass, half, angle, mu, dt = 1.0, 0.5, np.radians(60), 2.0, 1e-3
    b = dl.ModelBuilder("rod")
    b.add_body("rod", mass=mass, inertia=(1e-3, mass * half**2 / 3, mass * half**2 / 3))
    b.add_joint("rod", "free")
    model = b.build()
    q = model.neutral()
    q[3:7] = np.cos(angle / 2), 0, np.sin(angle / 2), 0
    tip = [dl.PointContact(model, "rod", point=(half, 0.0, 0.0), friction=mu)]
    G = dl.DelassusOperator(model, tip)
    G.update(q)
    A = G.to_matrix()
    u = np.array([0.0, *(A[0, 1:] / np.linalg.norm(A[0, 1:]))])
    assert A[0, 0] - mu * A[0] @ u < 0  # sliding against u pushes the tip into the ground
    v = np.linalg.lstsq((G.jacobian @ np.eye(6)), u, rcond=None)[0]
    r, after = one_step(model, tip, q, v, dt, method, tolerance=1e-9)
    assert r.status == "solved"
    check(r, A, G.jacobian @ (v + dt * dl.forward_dynamics(model, q, v, np.zeros(6))), ((0, mu),), (), 1e-9)
    assert np.abs(G.jacobian @ after).max() < 1e-7  # it has stopped
    assert dl.kinetic_energy(model, q, after) < dl.kinetic_energy(model, q, v)


@pytest.mark.parametrize("method", ["admm", "newton"])
@pytest.mark.parametrize("n", [1, 5, 20])
def test_every_floor_of_a_stack_bears_what_is_above(method, n):
    model = dl.scenes.box_stack(n)
    q = model.neutral()
    half = model.shapes[1].size if hasattr(model.shapes[1], "size") else (0.1, 0.1, 0.1)
    names = [b for b in model.body_names if b != "world"]
    contacts = []
    for k, name in enumerate(names):
        for i in (-1, 1):
            for j in (-1, 1):
                below = {} if k == 0 else {"other": names[k - 1], "other_point": (i * half[0], j * half[1], half[2])}
                contacts.append(dl.PointContact(model, name, point=(i * half[0], j * half[1], -half[2]), **below))
    dt = 1e-3
    r, v = one_step(model, contacts, q, np.zeros(model.nv), dt, method, tolerance=1e-10)
    assert r.status == "solved"
    mass = dl.mass_matrix(model, q)[0, 0]
    floors = r.forces.reshape(n, 4, 3)[:, :, 0].sum(axis=1)
    assert np.allclose(floors, mass * G0 * dt * np.arange(n, 0, -1), atol=1e-8)
    assert np.abs(v).max() < 1e-8


@pytest.mark.parametrize("method", ["admm", "newton"])
@pytest.mark.parametrize("ratio", [1e3, 1e6, 1e-6])
def test_mass_ratios_of_a_million_do_not_matter(method, ratio):
    """A box of mass `ratio` on one of 1 kg."""
    b = dl.ModelBuilder("tower")
    for k, mass in enumerate((1.0, ratio)):
        b.add_body(f"box{k}", position=(0, 0, 0.1 + 0.2 * k), mass=mass, inertia=(mass * 0.02 / 3,) * 3)
        b.add_joint(f"box{k}", "free")
    model = b.build()
    corners = [(i * 0.1, j * 0.1) for i in (-1, 1) for j in (-1, 1)]
    contacts = [dl.PointContact(model, "box0", point=(x, y, -0.1)) for x, y in corners]
    contacts += [dl.PointContact(model, "box1", point=(x, y, -0.1), other="box0", other_point=(x, y, 0.1)) for x, y in corners]
    r, v = one_step(model, contacts, model.neutral(), np.zeros(12), 1e-3, method, tolerance=1e-8)
    assert r.status == "solved"
    assert np.abs(v).max() < 1e-7
    floors = r.forces.reshape(2, 4, 3)[:, :, 0].sum(axis=1)
    assert np.allclose(floors, [(1 + ratio) * G0 * 1e-3, ratio * G0 * 1e-3], rtol=1e-6)


@pytest.mark.parametrize("method", [*METHODS, "lcp"])
def test_nine_points_under_a_box_share_its_weight(method):
    """More rows than the box has velocities: forces are not unique, their sum is."""
    model, _ = block(0.0, 0.5)
    points = [(x, y, -0.1) for x in (-0.3, 0.0, 0.3) for y in (-0.2, 0.0, 0.2)]
    contacts = [dl.PointContact(model, "box", point=p, friction=0.5) for p in points]
    r, v = one_step(model, contacts, model.neutral(), np.zeros(6), 1e-3, method, tolerance=1e-10)
    assert r.status == "solved"
    assert abs(r.forces.reshape(9, 3)[:, 0].sum() - 2.0 * G0 * 1e-3) < 1e-8
    assert np.abs(v).max() < 1e-8


@pytest.mark.parametrize("method", COULOMB)
def test_dry_friction_limits_and_loops_go_with_contacts(method):
    """Cassie: loops, feet on the ground, friction in every joint, and a limit, all in one."""
    s = dl.scenes.load("cassie-standing-friction")
    hinge = next(j.name for j in s.model.joints if j.type == "hinge")
    constraints = [*s.constraints, dl.JointLimit(s.model, hinge, "lower")]
    G = dl.DelassusOperator(s.model, constraints)
    G.update(s.q)
    v = 0.1 * np.random.default_rng(5).standard_normal(s.model.nv)
    g = G.jacobian @ (v + 1e-3 * dl.forward_dynamics(s.model, s.q, v, np.zeros(s.model.nv)))
    tolerance = 1e-4 if method == "pgs" else 1e-6  # Gauss and Seidel are slow where loops are nearly redundant
    r = dl.solve_contacts(G, g, method=method, timestep=1e-3, tolerance=tolerance)
    assert r.status == "solved"
    left = residuals(G.to_matrix(), g, *sets_of(constraints, 1e-3), r.forces)
    assert max(left[:2]) <= tolerance
    assert left[3] <= 30 * tolerance  # measured with the exact diagonal of G
    assert len(r.constraint_forces) == len(constraints)
    assert np.array_equal(np.concatenate(r.constraint_forces), r.forces)


@pytest.mark.parametrize("name", ["g1-fallen", "g1-fallen-friction", "cassie-standing-friction", "box-stack"])
def test_interior_ends_where_everything_slides(name):
    """Random velocities of 0.3 m/s: other methods stall on some of these."""
    for seed in range(3 if name == "box-stack" else 8):
        G, g, constraints = scene_problem(name, speed=0.3, seed=seed)
        r = dl.solve_contacts(G, g, method="interior", timestep=1e-3)
        assert r.status == "solved", seed
        assert r.iterations <= 120
        left = residuals(G.to_matrix(), g, *sets_of(constraints, 1e-3), r.forces)
        assert max(left[:2]) <= 1e-6, seed
        assert left[3] <= 1.1e-5, seed


def test_interior_takes_forces_that_are_right_and_says_how_few_iterations_it_had():
    G, g, _ = scene_problem("g1-fallen", speed=0.3, seed=9)
    r = dl.solve_contacts(G, g, method="interior", timestep=1e-3)
    assert dl.solve_contacts(G, g, method="interior", timestep=1e-3, warm_start=r).iterations == 0
    short = dl.solve_contacts(G, g, method="interior", timestep=1e-3, max_iterations=3)
    assert (short.status, short.iterations) == ("iteration_limit", 3)
    assert "interior" in short.advice


def test_a_motor_that_is_too_weak_slips_and_one_that_is_strong_holds():
    b = dl.ModelBuilder("arm")
    b.add_body("arm", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.01, 0.01))
    b.add_joint("arm", "hinge", axis=(0.0, 1.0, 0.0))
    model = b.build()
    dt, inertia = 1e-3, 0.26
    for most, speed in ((10.0, 0.0), (2.0, (0.5 * G0 - 2.0) / inertia * dt)):
        r, v = one_step(model, [dl.JointFriction(model, 0, most)], model.neutral(), np.zeros(1), dt, "admm", tolerance=1e-12)
        assert r.status == "solved"
        assert abs(v[0] - speed) < 1e-10


# ---- against each other ----------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(300))
def test_coulomb_methods_agree_on_velocities_of_random_problems(seed):
    p, _, _ = random_problem(np.random.default_rng(seed))
    tolerance = 1e-9
    found = {}
    for method in COULOMB:
        r = dl.solve_contacts(p.G, p.g, p.friction, method=method, tolerance=tolerance)
        assert r.status == "solved", method
        check(r, p.G, p.g, p.cones, p.intervals, tolerance)
        assert np.allclose(r.velocities, p.G @ r.forces + p.g, atol=1e-12)
        found[method] = r.velocities
    # a residual of the tolerance is a velocity of the tolerance times the spread of G's eigenvalues
    w = np.linalg.eigvalsh(p.G)
    for method in COULOMB[1:]:
        assert np.abs(found[method] - found["admm"]).max() <= 100 * tolerance * w[-1] / w[0]


@pytest.mark.parametrize("seed", range(40))
def test_a_matrix_of_less_than_full_rank_is_solved_too(seed):
    rng = np.random.default_rng(1000 + seed)
    n = int(rng.integers(2, 8))
    p, _, _ = random_problem(rng, contacts=n, rank=int(rng.integers(1, 2 * n)), friction=0.3)
    for method in ("admm", "pgs"):
        r = dl.solve_contacts(p.G, p.g, p.friction, method=method, tolerance=1e-6)
        check(r, p.G, p.g, p.cones, p.intervals, 1e-6)
    assert dl.solve_contacts(p.G, p.g, p.friction).status == "solved"


@pytest.mark.parametrize("name", dl.scenes.names)
@pytest.mark.parametrize("speed", [0.0, 0.3])
def test_scenes_are_solved_without_a_matrix(name, speed):
    G, g, constraints = scene_problem(name, speed=speed)
    r = dl.solve_contacts(G, g, timestep=1e-3)
    cones, intervals = sets_of(constraints, 1e-3)
    left = residuals(G.to_matrix(), g, cones, intervals, r.forces)
    if (name, speed) == ("box-pyramid", 0.3) and r.status == "approximate":
        # thirty boxes that all tumble and slide on each other, from nothing
        assert max(left) < 1e-2
        return
    assert r.status == "solved"
    assert max(left[:2]) <= 1.01e-6
    assert left[3] <= 3e-5  # measured with the exact diagonal of G


@pytest.mark.parametrize("name", ["go2-standing-friction", "g1-fallen", "go2-fallen-friction", "box-stack"])
def test_an_operator_a_matrix_and_a_foreign_operator_give_the_same_velocities(name):
    G, g, constraints = scene_problem(name, speed=0.0 if name == "box-stack" else 0.1)
    A = G.to_matrix()

    class Foreign(LinearOperator):
        damping = 0.0

        def __init__(self):
            super().__init__(float, A.shape)

        def _matvec(self, x):
            return A @ x.ravel()

        def solve(self, y):
            return np.linalg.solve(A + np.diag(np.broadcast_to(self.damping, len(A))), y)

    foreign = Foreign()
    kinds = [G, A, foreign, dl.CholeskyDelassus(G.model, constraints), dl.DenseDelassus(G.model, constraints)]
    s = dl.scenes.load(name)
    for operator in kinds[3:]:
        operator.update(s.q)
    first = dl.solve_contacts(G, g, timestep=1e-3, tolerance=1e-7)
    for kind in kinds[1:]:
        r = dl.solve_contacts(kind, g, constraints, timestep=1e-3, tolerance=1e-7)
        assert r.status == first.status == "solved"
        assert np.abs(r.velocities - first.velocities).max() < 1e-4
    assert foreign.damping == 0.0


def test_a_single_precision_operator_is_taken():
    s = dl.scenes.load("go2-standing")
    G = dl.DelassusOperator(s.model, s.constraints, dtype=np.float32)
    G.update(s.q.astype(np.float32))
    _, g, _ = scene_problem("go2-standing")
    r = dl.solve_contacts(G, g, tolerance=1e-5)
    assert r.status == "solved"


def test_damping_of_the_operator_is_as_before():
    G, g, _ = scene_problem("go2-standing")
    dl.solve_contacts(G, g)
    assert G.damping is None
    with pytest.raises(ArgumentError, match="damping"):
        G.solve(g)
    G.damping = 1e-3
    before = G.solve(g)
    dl.solve_contacts(G, g)
    assert np.array_equal(G.damping, np.full(len(g), 1e-3))
    assert np.array_equal(G.solve(g), before)


def test_the_diagonal_estimate_is_exact_without_loops_in_a_tree():
    """The native estimate scales the residual: with contacts on the ground it is that of the matrix."""
    G, g, constraints = scene_problem("g1-fallen")
    r = dl.solve_contacts(G, g, timestep=1e-3, max_iterations=3, tolerance=1e-12)
    cones, intervals = sets_of(constraints, 1e-3)
    left = residuals(G.to_matrix(), g, cones, intervals, r.forces)
    assert left[3] > 1e-6
    assert np.isclose(left[3], r.residuals.natural, rtol=1e-8)


def polygon_residuals(G, g, friction, forces, directions):
    """Primal and dual as of Coulomb; complementarity with the polygon's support in place of ‖σ_T‖."""
    sigma = G @ forces + g
    angles = 2 * np.pi * np.arange(directions) / directions
    D = np.stack([np.cos(angles), np.sin(angles)])
    primal = dual = complementarity = 0.0
    for k, mu in enumerate(friction):
        f, s = forces[3 * k : 3 * k + 3], sigma[3 * k : 3 * k + 3]
        support = max((-s[1:] @ D).max(), 0.0)
        primal = max(primal, np.hypot(f[1], f[2]) - mu * f[0], -f[0])
        dual = max(dual, -s[0])
        complementarity = max(complementarity, abs(f @ s + mu * f[0] * support))
    return primal, dual, complementarity


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("directions", [4, 8, 32])
def test_polygons_are_solved_by_pivots(seed, directions):
    p, _, _ = random_problem(np.random.default_rng(seed))
    r = dl.solve_contacts(p.G, p.g, p.friction, method="lcp", directions=directions, tolerance=1e-8)
    check(r, p.G, p.g, p.cones, p.intervals, 1e-8)
    assert r.status in ("solved", "approximate")
    assert r.own_residual <= 1e-7
    assert max(polygon_residuals(p.G, p.g, p.friction, r.forces, directions)) < 1e-8
    assert np.allclose(r.velocities, p.G @ r.forces + p.g, atol=1e-12)


def test_more_directions_come_nearer_to_the_cone():
    rng = np.random.default_rng(3)
    problems = [random_problem(rng, contacts=4)[0] for _ in range(20)]
    errors = []
    for directions in (4, 8, 16, 64):
        off = [dl.solve_contacts(p.G, p.g, p.friction, method="lcp", directions=directions).velocities
               - dl.solve_contacts(p.G, p.g, p.friction, tolerance=1e-9).velocities for p in problems]  # fmt: skip
        errors.append(np.median([np.abs(x).max() for x in off]))
    assert errors[3] < 0.1 * errors[0]  # the corner nearest to the way it slides is π / directions off at most
    assert errors[0] > errors[1] > errors[2] > errors[3]


def test_pivots_take_limits_dry_friction_and_loops():
    s = dl.scenes.load("go2-standing-friction")
    hinge = next(j.name for j in s.model.joints if j.type == "hinge")
    constraints = [*s.constraints, dl.JointLimit(s.model, hinge, "lower")]
    G = dl.DelassusOperator(s.model, constraints)
    G.update(s.q)
    v = 0.1 * np.random.default_rng(5).standard_normal(s.model.nv)
    g = G.jacobian @ v
    r = dl.solve_contacts(G, g, method="lcp", timestep=1e-3, directions=64)
    exact = dl.solve_contacts(G, g, timestep=1e-3, tolerance=1e-8)
    assert r.status == "approximate"
    assert r.own_residual <= 1e-5
    assert np.abs(r.velocities - exact.velocities).max() < 3e-2 * np.abs(g).max()


# ---- many steps ------------------------------------------------------------------------------------------------------------


def test_a_block_at_nine_tenths_of_its_limit_does_not_creep_in_a_minute():
    mu = 0.5
    model, contacts = block(np.arctan(0.9 * mu), mu)
    sim = Stepper(model, contacts, model.neutral(), 1e-3, tolerance=1e-11)
    fastest = 0.0
    for _ in range(60_000):
        assert sim.step().status == "solved"
        fastest = max(fastest, np.abs(sim.v).max())
    assert fastest < 1e-9
    assert np.linalg.norm(sim.q[:3] - model.neutral()[:3]) < 1e-9


def test_a_block_at_eleven_tenths_slides_with_the_analytic_acceleration():
    mu = 0.5
    slope = np.arctan(1.1 * mu)
    model, contacts = block(slope, mu)
    sim = Stepper(model, contacts, model.neutral(), 1e-3, tolerance=1e-11)
    for _ in range(1000):
        assert sim.step().status == "solved"
    assert abs(sim.v[0] / 1.0 - G0 * (np.sin(slope) - mu * np.cos(slope))) < 1e-6


def test_warm_starts_take_a_third():
    """Falling and tumbling g1: with the forces of the step before, iterations shrink."""
    G, g, _ = scene_problem("g1-fallen", speed=0.2)
    rng = np.random.default_rng(0)
    cold, warm, last = [], [], None
    for _ in range(20):
        g = g + 0.002 * np.abs(g).max() * rng.standard_normal(len(g))
        cold.append(dl.solve_contacts(G, g, method="admm").iterations)
        last = dl.solve_contacts(G, g, method="admm", warm_start=last)
        warm.append(last.iterations)
    assert np.median(warm[1:]) <= np.median(cold) / 2
    again = dl.solve_contacts(G, g, method="admm", warm_start=last)
    assert again.status == "solved"
    assert again.iterations == 0
    assert np.allclose(again.forces, last.forces, rtol=1e-12, atol=1e-15)


def test_same_input_same_bits():
    G, g, _ = scene_problem("g1-fallen-friction", speed=0.3)
    a, b = (dl.solve_contacts(G, g, timestep=1e-3) for _ in range(2))
    assert np.array_equal(a.forces, b.forces)
    assert np.array_equal(a.history, b.history)


# ---- trouble ---------------------------------------------------------------------------------------------------------------


def degenerate(rng):
    """A small problem with whatever can go wrong: no rank, no mass, wild scales, rows that repeat or contradict each other, no friction or a lot."""
    n = int(rng.integers(1, 5))
    m = 3 * n
    kind = rng.integers(8)
    A = rng.standard_normal((m, int(rng.integers(1, m + 1))))
    if kind == 1:
        A[rng.integers(m)] = 0
    if kind == 2:
        A[3:] = A[:3][rng.integers(0, 3, m - 3)] if m > 3 else A[3:]
    if kind == 3:
        A = A * 10.0 ** rng.uniform(-4, 4, (m, 1))
    if kind == 4:
        A = np.zeros_like(A)
    if kind == 5:
        A = np.outer(rng.standard_normal(m), rng.standard_normal(A.shape[1]))
    G = A @ A.T * 10.0 ** rng.uniform(-6, 6)
    g = rng.standard_normal(m) * 10.0 ** rng.uniform(-6, 3)
    if kind == 6:
        g[::3] = -np.abs(g[::3])
    if kind == 7:
        g[:] = 0
    return G, g, rng.choice([0.0, 0.1, 1.0, 50.0], n)


@pytest.mark.parametrize("method", [*METHODS, "lcp"])
def test_ten_thousand_degenerate_problems_end_in_a_true_status(method):
    rng = np.random.default_rng(7)
    said = dict.fromkeys(("solved", "approximate", "iteration_limit", "stalled", "infeasible"), 0)
    for _ in range(2500):
        G, g, mu = degenerate(rng)
        r = dl.solve_contacts(G, g, mu, method=method, max_iterations=150)
        said[r.status] += 1
        assert np.isfinite(r.forces).all()
        assert method == "lcp" or r.iterations <= 150
        assert r.tolerance <= max(1e-6, 1e-11 * np.abs(g).max())
        cones = tuple((3 * k, float(x)) for k, x in enumerate(mu))
        # the same numbers in another order: rounding of G λ is all that may differ
        slack = 1e-13 * np.abs(G).max() * np.abs(r.forces).sum()
        found = residuals(G, g, cones, (), r.forces)
        if r.status == "solved":
            assert max(*found[:2], found[3] / 10) <= 1.001 * r.tolerance + slack
            assert found[2] <= 3.001 * found[3] + slack  # complementarity needs no tolerance of its own
        if r.status == "approximate":
            # forces in their cones and nothing goes in, but not Coulomb's law
            assert method in ("lcp", "apgd")
            assert max(found[:2]) <= 1.001 * r.tolerance + slack
            assert found[3] > 9.99 * r.tolerance - slack
            assert r.own_residual <= 10 * r.tolerance
    assert said["solved"] > 500
    assert said["approximate"] > 100 or method in COULOMB
    assert sum(said.values()) == 2500


@pytest.mark.parametrize("method", COULOMB)
def test_points_that_one_joint_moves_apart_stop(method):
    """The block of the contact has rank one, and twice the diagonal that its two links have by themselves."""
    seesaw = (
        '<mujoco><worldbody><body name="a"><joint axis="0 1 0"/><geom size="0.1" mass="1" pos="0.2 0 0"/><geom size="0.1" mass="1" pos="-0.2 0 0"/>'
        '<body name="b"><joint axis="0 1 0" armature="1e6"/><geom size="0.01" mass="1e-3"/></body></body></worldbody></mujoco>'
    )
    model = dl.load(seesaw)
    contact = dl.PointContact(model, "a", point=(1, 0, 0), other="b", other_point=(-1, 0, 0), friction=0.5)
    G = dl.DelassusOperator(model, [contact])
    G.update(model.neutral())
    A, g = G.to_matrix(), G.jacobian @ np.array([1.0, 0.0])
    assert g[0] < 0
    result = dl.solve_contacts(G, g, method=method)
    assert result.status == "solved"
    assert result.forces[0] == pytest.approx(-g[0] / A[0, 0], rel=1e-5)


def test_contradictory_loops_are_infeasible():
    """Two rows of one point that must move with different velocities."""
    G = np.ones((2, 2))
    b = dl.ModelBuilder("slider")
    b.add_body("cart", mass=1.0, inertia=(0.1,) * 3)
    b.add_joint("cart", "slide", axis=(1.0, 0.0, 0.0))
    model = b.build()
    rows = [dl.LinkConstraint(model, [("cart", [[1.0, 0, 0, 0, 0, 0]])]) for _ in range(2)]
    for method in ("admm", "newton"):
        r = dl.solve_contacts(G, [1.0, -1.0], rows, method=method, max_iterations=2000)
        assert r.status == "infeasible"
        assert "No forces" in r.advice
        assert r.residuals.dual > 0.5


@pytest.mark.parametrize("method", [*METHODS, "lcp"])
def test_nothing_to_do_is_solved(method):
    r = dl.solve_contacts(np.zeros((0, 0)), [], [], method=method)
    assert r.status == "solved"
    assert r.forces.shape == (0,)
    r = dl.solve_contacts(np.eye(3), [1.0, 0.0, 0.0], [0.5], method=method)
    assert r.status == "solved"
    assert not r.forces.any()


@pytest.mark.parametrize("method", COULOMB)
def test_a_limit_of_iterations_is_a_status_with_advice(method):
    p, _, _ = random_problem(np.random.default_rng(1), contacts=8)
    r = dl.solve_contacts(p.G, p.g, p.friction, method=method, max_iterations=1, tolerance=1e-12)
    assert r.status == "iteration_limit"
    assert "max_iterations" in r.advice
    assert r.history.shape == (r.iterations,) == (1,)
    check(r, p.G, p.g, p.cones, p.intervals, 1e-12)


def test_bad_input_is_refused():
    G, g = np.eye(3), np.array([-1.0, 0.0, 0.0])
    lopsided = np.eye(3)
    lopsided[0, 1] = 0.5
    broken = np.eye(3)
    broken[1, 1] = np.nan
    for call, error, words in [
        (lambda: dl.solve_contacts(G, g, [-0.1]), ArgumentError, "negative"),
        (lambda: dl.solve_contacts(G, g[:2], [0.5]), ArgumentError, "g: expected shape"),
        (lambda: dl.solve_contacts(G, g, [0.5, 0.5]), ArgumentError, "constraints"),
        (lambda: dl.solve_contacts(np.eye(4), np.ones(4), [0.5]), ArgumentError, "three rows"),
        (lambda: dl.solve_contacts(lopsided, g, [0.5]), ArgumentError, "symmetric"),
        (lambda: dl.solve_contacts(-G, g, [0.5]), ArgumentError, "semidefinite"),
        (lambda: dl.solve_contacts(broken, g, [0.5]), NotFiniteError, "G"),
        (lambda: dl.solve_contacts(G, g * np.nan, [0.5]), NotFiniteError, "g"),
        (lambda: dl.solve_contacts(G, g, [np.inf]), NotFiniteError, "constraints"),
        (lambda: dl.solve_contacts(G[:2], g, [0.5]), ArgumentError, "square"),
        (lambda: dl.solve_contacts(G, g, [0.5], method="simplex"), UnknownNameError, "admm"),
        (lambda: dl.solve_contacts(G, g, [0.5], tolerance=-1), ArgumentError, "tolerance"),
        (lambda: dl.solve_contacts(G, g, [0.5], max_iterations=0), ArgumentError, "max_iterations"),
        (lambda: dl.solve_contacts(G, g, [0.5], method="lcp", directions=5), ArgumentError, "directions"),
        (lambda: dl.solve_contacts(G, g, [0.5], warm_start=[1.0]), ArgumentError, "warm_start"),
        (lambda: dl.solve_contacts(G, g), ArgumentTypeError, "constraints"),
        (lambda: dl.solve_contacts("G", g, [0.5]), ArgumentTypeError, "G"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_an_operator_without_numbers_or_without_an_inverse_says_so():
    model = dl.load("go2")
    G = dl.DelassusOperator(model, [dl.PointContact(model, 1)])
    with pytest.raises(StaleError, match="update"):
        dl.solve_contacts(G, np.zeros(3))

    class Plain(LinearOperator):
        def __init__(self):
            super().__init__(float, (3, 3))

        def _matvec(self, x):
            return 2.0 * x

    with pytest.raises(ArgumentTypeError, match="apgd"):
        dl.solve_contacts(Plain(), np.zeros(3), [0.5])
    r = dl.solve_contacts(Plain(), [-1.0, 0.1, 0.0], [0.5], method="apgd")
    assert r.status == "solved"
    assert np.allclose(r.forces, [0.5, -0.05, 0.0])
    G.update(model.neutral())
    with pytest.raises(ArgumentError, match="rows"):
        dl.solve_contacts(G, np.zeros(3), [dl.PointContact(model, 1), dl.PointContact(model, 2)])
