"""Contact steps and collisions as complementarity problems: five formulations, one answer, and it is that of the definition."""

import numpy as np
import pytest

import delassus as dl
from oracles import rows
from oracles.compare import agree
from oracles.dense import Mechanism

FORMULATIONS = dl.complementarity.FORMULATIONS
STEP = 1e-2


def mixed():
    """A free base, a ball joint, a body with three joints, one fused to another, drives with armature."""
    b = dl.ModelBuilder("mixed")
    b.add_body("base", position=(0.0, 0.0, 1.0), mass=2.0, com=(0.01, 0.0, 0.02), inertia=(0.02, 0.03, 0.04))
    b.add_joint("base", "free")
    b.add_body("arm", "base", position=(0.3, 0.0, 0.0), mass=1.0, com=(0.0, 0.1, -0.1), inertia=(0.01, 0.01, 0.01))
    b.add_joint("arm", "ball")
    b.add_body(
        "tool",
        "arm",
        position=(0.0, 0.1, -0.2),
        quaternion=(0.8, 0.6, 0.0, 0.0),
        mass=0.3,
        com=(0.05, 0.0, 0.0),
        inertia=(1e-3, 2e-3, 2.5e-3),
    )
    b.add_body("cart", "world", position=(1.0, 0.0, 0.0), mass=1.0, com=(0.0, 0.0, 0.1), inertia=(0.01, 0.02, 0.01))
    b.add_joint("cart", "slide", axis=(1.0, 0.0, 0.0))
    b.add_joint("cart", "slide", axis=(0.0, 0.0, 1.0))
    b.add_joint("cart", "hinge", axis=(0.0, 1.0, 0.0), armature=0.05)
    b.add_body("pole", "cart", position=(0.0, 0.0, 0.2), mass=0.5, com=(0.0, 0.0, 0.3), inertia=(0.02, 0.02, 0.001))
    b.add_joint("pole", "hinge", axis=(1.0, 1.0, 0.0), armature=0.01)
    return b.build()


def contacts_of(model, rng, bodies, friction, pairs=()):
    """Contacts at random points; normals lean."""
    made = []
    for body, other in [*((b, None) for b in bodies), *pairs]:
        normal = np.array([0.0, 0.0, 1.0]) + 0.3 * rng.standard_normal(3)
        points = rng.uniform(-0.1, 0.1, (2, 3))
        made.append(rows.point_contact(model, body, other, normal=normal, point=points[0], other_point=points[1], friction=friction))
    return made


def judge(model, q, v, tau, dt, made, step, directions=4):
    """Hold a step against the dense definition: momentum, no approach, no pull, friction in its polygon and as dissipative as it can be."""
    oracle = Mechanism(model, q, v)
    c = [m.constraint for m in made]
    J = np.concatenate([np.zeros((0, model.nv)), *(sum(m.terms(oracle)) for m in made)])
    jump = oracle.mass_matrix @ (step.velocity - v)
    push = dt * (tau - oracle.bias_forces)
    scale = 1 + max(np.abs(jump).max(), np.abs(push).max(initial=0.0))
    agree(jump, push + J.T @ step.impulses, 1e-9, scale)
    at = 0
    for one in c:
        p, u = step.impulses[at : at + one.rows], J[at : at + one.rows] @ step.velocity
        if isinstance(one, dl.PointContact):
            mu = one.friction
            assert u[0] >= -1e-9
            assert p[0] >= -1e-9
            assert abs(u[0] * p[0]) <= 1e-9 * scale
            angles = 2 * np.pi * np.arange(directions) / directions
            corners, faces = (np.array([np.cos(a), np.sin(a)]) for a in (angles, angles + np.pi / directions))
            assert (p[1:] @ faces).max() <= mu * p[0] * np.cos(np.pi / directions) + 1e-9 * scale
            agree(u[1:] @ p[1:], mu * p[0] * (u[1:] @ corners).min(), 1e-9, scale)
        at += one.rows
    return J


def all_of(model, q, v, tau, dt, constraints, directions=4):
    built = {f: dl.complementarity.build(model, q, v, tau, dt, constraints, formulation=f, directions=directions) for f in FORMULATIONS}
    return built, {f: p.solve() for f, p in built.items()}


SCENES = {
    "dual arm": (dl.scenes.dual_arm, ["left_finger0_1", "left_finger1_0", "right_finger2_0"], [("left_finger2_0", "right_finger0_1")]),
    "pendulum": (lambda: dl.scenes.pendulum(12), ["ball8", "ball9", "ball10", "ball11"], []),
    "mixed": (mixed, ["tool", "base", "pole"], [("tool", "cart")]),
    "go2": (lambda: dl.load("go2"), ["FL_calf", "FR_calf", "RL_calf", "RR_calf"], []),
    "boxes": (lambda: dl.scenes.box_stack(2), [1, 1], [(2, 1), (2, 1)]),
}


@pytest.mark.parametrize("directions", [4, 8])
@pytest.mark.parametrize("name", SCENES)
def test_formulations_agree_with_each_other_and_with_the_definition(name, directions):
    make, bodies, pairs = SCENES[name]
    model = make()
    slid = held = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        q, v, tau = model.random(rng), 0.5 * rng.standard_normal(model.nv), rng.standard_normal(model.nv)
        made = contacts_of(model, rng, bodies, 0.5, pairs)
        _, steps = all_of(model, q, v, tau, STEP, [m.constraint for m in made], directions)
        for f, step in steps.items():
            assert step.status == "solved", (f, seed)
            agree(step.velocity, steps["os"].velocity, 1e-8, 1 + np.abs(v).max())
            J = judge(model, q, v, tau, STEP, made, step, directions)
            agree(step.contact_velocities.ravel(), J @ step.velocity, 1e-9, 1.0)
            agree(step.contact_impulses.ravel(), step.impulses, 0.0, 1.0)
        slid += int((steps["os"].sliding > 1e-6).sum())
        held += int((steps["os"].contact_impulses[:, 0] > 1e-6).sum())
    assert slid > 0
    assert held > 0


@pytest.mark.parametrize("name", ["four bar", "n four bar", "cassie"])
def test_loops_are_equations(name):
    model = {"four bar": dl.scenes.four_bar, "n four bar": lambda: dl.scenes.n_four_bar(3), "cassie": lambda: dl.load("cassie")}[name]()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q = model.neutral() if name != "cassie" else dl.close_loops(model, model.keyframes["home"]).configuration
        v = dl.impact(model, q, rng.standard_normal(model.nv), model.loops).velocity
        tau = rng.standard_normal(model.nv)
        touch = contacts_of(model, rng, [model.nbody - 1], 0.5)[0].constraint
        constraints = [model.loops[0], touch, *model.loops[1:]]
        _, steps = all_of(model, q, v, tau, STEP, constraints)
        for f, step in steps.items():
            assert step.status == "solved", (f, seed)
            agree(step.velocity, steps["os"].velocity, 1e-7, 1 + np.abs(v).max())
            # J (v⁺ − v) + γ Δt = 0, rows that depend on others included
            moved = dl.constraint_velocity(model, q, step.velocity - v, model.loops)
            agree(moved, -STEP * dl.constraint_bias(model, q, v, model.loops), 1e-8, 1 + np.abs(v).max())
            G = dl.DelassusOperator(model, constraints)
            G.update(q)
            momentum = Mechanism(model, q, v).mass_matrix @ (step.velocity - v) - STEP * (tau - Mechanism(model, q, v).bias_forces)
            agree(momentum, G.jacobian.H @ step.impulses, 1e-8, 1 + np.abs(momentum).max())
            u, p = step.contact_velocities[0, 0], step.contact_impulses[0, 0]
            assert u >= -1e-8
            assert p >= -1e-9
            assert abs(u * p) <= 1e-8


def test_rows_that_are_no_frames_go_through_joint_velocities():
    model = mixed()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q, v = model.random(rng), rng.standard_normal(model.nv)
        contact = contacts_of(model, rng, ["pole"], 0.5)[0].constraint
        hinge = [j for j, kind in zip(model.joint_names, model.joint_type, strict=True) if kind == "hinge"]
        slide = [j for j, kind in zip(model.joint_names, model.joint_type, strict=True) if kind == "slide"]
        others = [
            dl.Distance(model, "tool", "pole", point=(0.1, 0.0, 0.0)),
            dl.JointCoupling(model, hinge[1], slide[0], polynomial=(0.0, 0.7, 0.2, 0.0, 0.0)),
            dl.Hinge(model, "tool", axis=(1.0, 2.0, 0.0), point=(0.0, 0.0, 0.1)),
        ]
        _, steps = all_of(model, q, v, None, STEP, [*others, contact])
        for step in steps.values():
            assert step.status == "solved"
            agree(step.velocity, steps["mc"].velocity, 1e-8, 1 + np.abs(v).max())


# ---- sizes of the paper --------------------------------------------------------------------------------------------------------------


def test_sizes_are_those_of_table_1():
    model = dl.scenes.dual_arm()
    assert (model.nbody - 1, model.nv) == (26, 26)
    contacts = [dl.PointContact(model, f"{side}_finger{k}_0") for side in ("left", "right") for k in range(2)]
    size = {f: dl.complementarity.Formulation(model, contacts, f).size for f in FORMULATIONS}
    assert [size[f] for f in ("nmc", "mc", "rmc", "os")] == [310, 50, 24, 24]


@pytest.mark.parametrize(
    ("links", "nmc_os", "nmc"), [(3, 39, 57), (6, 54, 90), (12, 84, 156), (15, 99, 189), (24, 144, 288), (30, 174, 354)]
)
def test_sizes_are_those_of_table_2(links, nmc_os, nmc):
    model = dl.scenes.pendulum(links)
    contacts = [dl.PointContact(model, f"ball{links - 1 - k % links}") for k in range(4)]
    q, v = model.random(1), model.zero_velocity()
    for f, want in (("os", 24), ("nmc-os", nmc_os), ("nmc", nmc)):
        problem = dl.complementarity.build(model, q, v, None, 1e-4, contacts, formulation=f)
        assert problem.size == want
        assert problem.matrix.shape == (want, want)
        assert problem.vector.shape == problem.free.shape == (want,)
        # equations first: all but n_u (n_f + 2)
        assert problem.free.sum() == want - 24


@pytest.mark.parametrize("name", ["os", "rmc"])
def test_matrix_is_the_delassus_matrix_between_the_friction_directions(name):
    model = dl.scenes.dual_arm()
    rng = np.random.default_rng(3)
    q = model.random(rng)
    contact = contacts_of(model, rng, ["left_finger0_1"], 0.7)[0]
    problem = dl.complementarity.build(model, q, np.ones(model.nv), None, 0.0, [contact.constraint], formulation=name)
    oracle = Mechanism(model, q)
    J = sum(contact.terms(oracle))
    D = np.array([[1.0, 0, 0, 0, 0], [0, 1, 0, -1, 0], [0, 0, 1, 0, -1]])
    agree(problem.matrix[:5, :5], D.T @ J @ np.linalg.solve(oracle.mass_matrix, J.T) @ D, 1e-9)
    assert problem.matrix[:5, 5].tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert problem.matrix[5].tolist() == [0.7, -1.0, -1.0, -1.0, -1.0, 0.0]
    agree(problem.vector[:5], D.T @ J @ np.ones(model.nv), 1e-9)


# ---- cases by hand -----------------------------------------------------------------------------------------------------------------


def corners(model, body=1, half=0.1, friction=0.5):
    return [dl.PointContact(model, body, point=(x, y, -half), friction=friction) for x in (-half, half) for y in (-half, half)]


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_block_stays_below_its_friction_limit_and_slides_above(formulation):
    model = dl.scenes.box_stack(1)
    block = dl.complementarity.Formulation(model, corners(model), formulation)
    rest, limit = model.zero_velocity(), 0.5 * 9.81
    # pulled at the floor, so that it does not tip; along a friction direction
    for part, slip in ((0.9, 0.0), (1.1, 0.1 * limit * STEP)):
        pull = np.array([0.0, part * limit, 0.0, 0.1 * part * limit, 0.0, 0.0])
        step = block.build(model.neutral(), rest, pull, STEP).solve()
        assert step.status == "solved"
        agree(step.velocity[:3], [0.0, slip, 0.0], 1e-9, 1.0)
        agree(step.contact_impulses[:, 0].sum(), 9.81 * STEP, 1e-9)
    # nothing holds it back upwards
    step = block.build(model.neutral(), rest, [0.0, 0.0, 20.0, 0.0, 0.0, 0.0], STEP).solve()
    agree(step.velocity[2], (20.0 - 9.81) * STEP, 1e-12)
    assert not step.impulses.any()


def ball(b, name, x, mass, radius=0.1):
    b.add_body(name, position=(x, 0.0, radius), mass=mass, inertia=(0.4 * mass * radius**2,) * 3)
    b.add_joint(name, "free")


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_one_ball_bounces_as_restitution_says(formulation, epsilon):
    b = dl.ModelBuilder("ball")
    ball(b, "ball", 0.0, 2.0)
    model = b.build()
    for mu in (0.0, 0.3):
        floor = [dl.PointContact(model, "ball", point=(0.0, 0.0, -0.1), friction=mu)]
        hit = dl.complementarity.collide(
            model, model.neutral(), [0.0, 5.0, -3.0, 0.0, 0.0, 0.0], floor, restitution=epsilon, formulation=formulation
        )
        assert hit.status == "solved"
        assert (hit.decompression is None) == (epsilon == 0)
        # friction is that of the compression, in which it slides: p = m 3, its moment turns the ball about x
        agree(hit.velocity[:3], [0.0, 5.0 - 3.0 * mu, 3.0 * epsilon], 1e-10, 1.0)
        agree(hit.velocity[3:], [-0.1 * 6.0 * mu / (0.4 * 2.0 * 0.01), 0.0, 0.0], 1e-10, 1.0)
        agree(hit.contact_impulses[0, 0], 6.0 * (1 + epsilon), 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_two_balls_collide_as_momentum_and_restitution_say(formulation, epsilon):
    b = dl.ModelBuilder("balls")
    ball(b, "left", 0.0, 2.0)
    ball(b, "right", 0.2, 0.5)
    model = b.build()
    touch = [dl.PointContact(model, "right", other="left", point=(-0.1, 0.0, 0.0), other_point=(0.1, 0.0, 0.0), normal=(1.0, 0.0, 0.0))]
    v = model.zero_velocity()
    v[0], v[6] = 3.0, -1.0
    hit = dl.complementarity.collide(model, model.neutral(), v, touch, restitution=epsilon, formulation=formulation)
    common = (2.0 * 3.0 - 0.5) / 2.5
    want = np.zeros(12)
    want[0], want[6] = common - epsilon * 0.5 * 4.0 / 2.5, common + epsilon * 2.0 * 4.0 / 2.5
    agree(hit.velocity, want, 1e-10)
    lost = dl.kinetic_energy(model, model.neutral(), v) - dl.kinetic_energy(model, model.neutral(), hit.velocity)
    agree(lost, 0.5 * (1 - epsilon**2) * (2.0 * 0.5 / 2.5) * 16.0, 1e-9, 10.0)
    # apart they do not touch
    free = dl.complementarity.collide(model, model.neutral(), -v, touch, restitution=epsilon, formulation=formulation)
    agree(free.velocity, -v, 1e-15)


def test_every_contact_has_a_restitution_of_its_own():
    b = dl.ModelBuilder("two")
    ball(b, "a", 0.0, 1.0)
    ball(b, "b", 1.0, 3.0)
    model = b.build()
    floor = [dl.PointContact(model, name, point=(0.0, 0.0, -0.1)) for name in "ab"]
    v = model.zero_velocity()
    v[[2, 8]] = -1.0
    hit = dl.complementarity.collide(model, model.neutral(), v, floor, restitution=[0.2, 0.9])
    agree(hit.velocity[[2, 8]], [0.2, 0.9], 1e-12)


def test_decompression_lets_nothing_approach():
    # the upper ball is thrown back on the lower one, which the floor has not thrown up
    b = dl.ModelBuilder("column")
    ball(b, "low", 0.0, 1.0)
    b.add_body("high", position=(0.0, 0.0, 0.3), mass=5.0, inertia=(0.02,) * 3)
    b.add_joint("high", "free")
    model = b.build()
    column = [
        dl.PointContact(model, "low", point=(0.0, 0.0, -0.1)),
        dl.PointContact(model, "high", other="low", point=(0.0, 0.0, -0.1), other_point=(0.0, 0.0, 0.1)),
    ]
    v = model.zero_velocity()
    v[[2, 8]] = -1.0
    for e in ([0.9, 0.0], [0.0, 0.9], [1.0, 1.0]):
        for f in FORMULATIONS:
            hit = dl.complementarity.collide(model, model.neutral(), v, column, restitution=e, formulation=f)
            assert hit.status == "solved"
            assert hit.velocity[2] >= -1e-12
            assert hit.velocity[8] - hit.velocity[2] >= -1e-12
            agree(hit.velocity[[2, 8]] @ [1.0, 5.0] + 6.0, hit.contact_impulses[0, 0], 1e-12, 1.0)
    # compression stops both: impulses 6 and 5; the floor gives 0.9 · 6 back, which carries both
    hit = dl.complementarity.collide(model, model.neutral(), v, column, restitution=[0.9, 0.0])
    agree(hit.velocity[[2, 8]], [0.9, 0.9], 1e-12)


@pytest.mark.parametrize("links", [3, 12])
def test_formulations_agree_on_collisions_of_the_pendulum(links):
    model = dl.scenes.pendulum(links)
    radius = 6.0 / links
    for seed in range(5):
        rng = np.random.default_rng(seed)
        q, v = rng.uniform(-0.5, 0.5, links), rng.standard_normal(links)
        touch = [
            dl.PointContact(
                model,
                f"ball{links - 1 - k % links}",
                point=(0.0, 0.0, -2 * radius),
                normal=(0.0, 0.0, 1.0) if k % 2 else (-1.0, 0.0, 0.0),
                friction=0.5,
            )
            for k in range(4)
        ]
        hits = [dl.complementarity.collide(model, q, v, touch, restitution=0.7, formulation=f) for f in FORMULATIONS]
        for hit in hits:
            assert hit.status == "solved"
            agree(hit.velocity, hits[3].velocity, 1e-8, 1 + np.abs(v).max())
        assert hits[3].decompression is not None or not hits[3].contact_impulses.any()


def test_gains_of_a_contact_push_it_out():
    # u + (k_d J v + k_p e) Δt = 0 where it presses; the spin does not enter
    model = dl.scenes.box_stack(1)
    q, v = model.neutral(), np.array([0.0, 0.0, -1.0, 3.0, 0.5, 0.0])
    q[2] -= 0.01
    corner = dl.PointContact(model, 1, point=(0.1, 0.05, -0.1), other_point=(0.0, 0.0, 0.0), baumgarte=(200.0, 5.0))
    before = dl.constraint_velocity(model, q, v, [corner])[0]
    for f in FORMULATIONS:
        step = dl.complementarity.build(model, q, v, None, STEP, [corner], formulation=f).solve()
        assert step.contact_impulses[0, 0] > 0.1
        agree(step.contact_velocities[0, 0], -STEP * (5.0 * before - 200.0 * 0.01), 1e-12)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_loops_that_contradict_each_other_are_not_called_solved(formulation):
    # the same row twice, with gains that want different velocities
    model = dl.scenes.pendulum(3)
    point = {"point": (0.0, 0.0, -4.0), "other_point": (0.0, 0.0, -2.0)}
    twice = [dl.Connect(model, "ball2", baumgarte=(k, 0.0), **point) for k in (0.0, 10.0)]
    touch = dl.PointContact(model, "ball1", point=(0.0, 0.0, -4.0))
    q, v = np.array([0.3, 0.2, 0.1]), np.array([1.0, 0.0, 0.0])
    step = dl.complementarity.build(model, q, v, None, STEP, [*twice, touch], formulation=formulation).solve()
    assert step.status != "solved"
    assert step.residual > 1e-4
    assert step.advice
    assert np.isfinite(step.velocity).all()
    held = dl.complementarity.build(model, q, v, None, STEP, [twice[1], twice[1], touch], formulation=formulation).solve()
    moved = dl.constraint_velocity(model, q, held.velocity - v, [twice[1]]) + STEP * dl.constraint_bias(model, q, v, [twice[1]])
    assert held.status == "solved"
    # across the plane of the pendulum nothing moves
    assert np.abs(moved[[0, 2]]).max() < 1e-8


# ---- edges and mistakes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_without_contacts_a_step_is_that_of_the_tree(formulation):
    for model in (mixed(), dl.scenes.dual_arm()):
        rng = np.random.default_rng(1)
        q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
        step = dl.complementarity.build(model, q, v, tau, STEP, [], formulation=formulation).solve()
        oracle = Mechanism(model, q, v)
        agree(step.velocity, v + STEP * np.linalg.solve(oracle.mass_matrix, tau - oracle.bias_forces), 1e-9)
        assert step.impulses.shape == (0,)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_nothing_that_moves_is_no_case_of_its_own(formulation):
    b = dl.ModelBuilder("still")
    b.add_body("rock", mass=1.0, inertia=(1.0, 1.0, 1.0))
    model = b.build()
    step = dl.complementarity.build(model, [], [], None, STEP, [dl.PointContact(model, "rock")], formulation=formulation).solve()
    assert step.status == "solved"
    assert step.velocity.shape == (0,)
    assert not step.contact_impulses.any()


def test_two_sides_on_one_link_push_each_other():
    """Bodies fused to one another cannot be pushed apart: their contact changes nothing."""
    b = dl.ModelBuilder("fused")
    b.add_body("one", mass=1.0, inertia=(0.1, 0.2, 0.3))
    b.add_joint("one", "free")
    b.add_body("two", "one", position=(0.2, 0.0, 0.0), mass=1.0, inertia=(0.1, 0.1, 0.1))
    model = b.build()
    q, v = model.random(0), np.arange(6.0) - 3
    floor = dl.PointContact(model, "two", point=(0.0, 0.1, -0.1))
    inner = dl.PointContact(model, "one", point=(0.0, 0.0, -0.1), other="two", other_point=(-0.1, 0.0, 0.0))
    for f in FORMULATIONS:
        with_it, without = (dl.complementarity.build(model, q, v, None, STEP, c, formulation=f).solve() for c in ([inner, floor], [floor]))
        assert with_it.status == "solved"
        agree(with_it.velocity, without.velocity, 1e-9)


def test_links_without_inertia_of_their_own_are_refused_where_it_is_divided_by():
    b = dl.ModelBuilder("point mass")
    b.add_body("a", mass=1.0, com=(0.0, 0.0, -1.0), inertia=(0.0, 0.0, 0.0))
    b.add_joint("a", "hinge", axis=(0.0, 1.0, 0.0))
    model = b.build()
    touch = [dl.PointContact(model, "a", point=(0.0, 0.0, -1.0), normal=(1.0, 0.0, 0.0))]
    with pytest.raises(dl.errors.ArgumentError, match="nmc-os"):
        dl.complementarity.build(model, [0.3], [1.0], None, STEP, touch, formulation="nmc-os")
    for f in ("nmc", "mc", "rmc", "os"):
        step = dl.complementarity.build(model, [0.3], [1.0], None, STEP, touch, formulation=f).solve()
        assert step.status == "solved"
        agree(step.velocity, [0.0], 1e-9, 1.0)


def test_problem_of_a_formulation_that_went_on_is_stale():
    model = dl.scenes.box_stack(1)
    block = dl.complementarity.Formulation(model, corners(model))
    first = block.build(model.neutral(), model.zero_velocity())
    block.build(model.neutral(), model.zero_velocity())
    with pytest.raises(dl.errors.StaleError, match="Formulation"):
        first.solve()


BOX = dl.scenes.box_stack(1)
GOOD = {"model": BOX, "q": BOX.neutral(), "v": BOX.zero_velocity(), "tau": None, "timestep": 1e-3, "constraints": corners(BOX)}


@pytest.mark.parametrize(
    ("change", "kind", "word"),
    [
        ({"model": "box"}, dl.errors.ArgumentTypeError, "model"),
        ({"formulation": "lcp"}, dl.errors.UnknownNameError, "nmc-os"),
        ({"directions": 5}, dl.errors.ArgumentError, "even"),
        ({"directions": 2}, dl.errors.ArgumentError, "directions"),
        ({"q": np.zeros(3)}, dl.errors.ArgumentError, "q"),
        ({"q": np.zeros(7)}, dl.errors.QuaternionError, "q"),
        ({"v": np.full(6, np.nan)}, dl.errors.NotFiniteError, "v"),
        ({"tau": np.zeros(5)}, dl.errors.ArgumentError, "tau"),
        ({"timestep": -1.0}, dl.errors.ArgumentError, "timestep"),
        ({"constraints": corners(BOX)[0]}, dl.errors.ArgumentTypeError, "list"),
        ({"constraints": [dl.JointFriction(BOX, 0)]}, dl.errors.ArgumentError, "JointFriction"),
        ({"constraints": corners(dl.scenes.box_stack(2))}, dl.errors.ArgumentError, "model"),
    ],
)
def test_mistakes_are_named(change, kind, word):
    with pytest.raises(kind, match=word):
        dl.complementarity.build(**(GOOD | change))


@pytest.mark.parametrize(
    ("restitution", "kind"),
    [(1.5, dl.errors.ArgumentError), (-0.1, dl.errors.ArgumentError), ([0.5], dl.errors.ArgumentError), (np.nan, dl.errors.NotFiniteError)],
)
def test_restitution_is_checked(restitution, kind):
    with pytest.raises(kind, match="restitution"):
        dl.complementarity.collide(BOX, BOX.neutral(), BOX.zero_velocity(), corners(BOX), restitution=restitution)
