"""Piles obey mechanics: energy never grows, rest stays rest, momentum of what is free is kept. Energies and momenta are NumPy's (``oracles.piles``)."""

import numpy as np
import pytest

import delassus as dl
from oracles.piles import G0, FreeBodies, rotation

DT, TOLERANCE, SLOP = 1e-3, 1e-6, 1e-5  # the simulator's defaults


# ---- energy ----------------------------------------------------------------------------------------------------------------------


def largest_rise(model, seconds, *, v=None):
    """Over its fall: the largest rise of the energy above its least value so far, over what the contact solver's residuals allow."""
    bodies, sim = FreeBodies.of(model), dl.Simulator(model)
    if v is not None:
        sim.reset(v=v)
    least = start = sum(bodies.energy(sim.q, sim.v))
    worst = allowed = 0.0
    for _ in range(round(seconds / DT)):
        step = sim.step()
        energy = sum(bodies.energy(step.q, step.v))
        # velocities are wrong by the residual at most: so much power of the contact forces, and of the weight
        impulses = np.linalg.norm(step.contacts.force, axis=1).sum() * DT
        allowed += max(TOLERANCE, step.residual) * (bodies.mass.sum() * G0 * DT + impulses)
        # what is deeper inside than the slop is lifted out
        allowed += bodies.mass.sum() * G0 * max(step.penetration - SLOP, 0.0)
        worst = max(worst, (energy - least) / allowed)
        if energy < least:
            least, allowed = energy, 0.0
    assert energy < start
    return worst


@pytest.mark.parametrize("seed", range(5))
def test_energy_of_boxes_in_a_bin_never_grows(seed):
    assert largest_rise(dl.scenes.box_bin(12, seed=seed), 0.9) <= 1


def test_energy_of_a_wall_hit_by_a_ball_never_grows():
    model = dl.scenes.brick_wall(4, 3)
    v = np.zeros(model.nv)
    v[-6] = 6.0
    assert largest_rise(model, 0.5, v=v) <= 1


def test_energy_of_a_pyramid_that_is_shaken_never_grows():
    model = dl.scenes.box_pyramid(3)
    assert largest_rise(model, 0.4, v=0.5 * np.random.default_rng(2).standard_normal(model.nv)) <= 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100))
def test_energy_of_many_piles_never_grows(seed):
    n = 10 + seed % 40
    assert largest_rise(dl.scenes.box_bin(n, layers=None if seed % 2 else 4, seed=seed), 1.5) <= 1


# ---- rest ------------------------------------------------------------------------------------------------------------------------


def fastest(model, settle, seconds=5.0):
    """Largest speed of a body's centre [m/s] after a pile has settled, and how far any went."""
    sim = dl.Simulator(model)
    sim.run(settle, every=round(settle / DT), progress=False)
    start, speed = sim.q.reshape(-1, 7)[:, :3], 0.0
    for _ in range(round(seconds / DT)):
        speed = max(speed, np.linalg.norm(sim.step().v.reshape(-1, 6)[:, :3], axis=1).max())
    return speed, np.abs(sim.q.reshape(-1, 7)[:, :3] - start).max()


RESTING = {
    "stack": (lambda: dl.scenes.box_stack(6), 1.0),
    "pyramid": (lambda: dl.scenes.box_pyramid(3), 1.0),
    "flat pyramid": (lambda: dl.scenes.flat_pyramid(5), 1.0),
    "wall": (lambda: dl.scenes.brick_wall(4, 4), 1.0),
    "8 boxes in a bin": (lambda: dl.scenes.box_bin(8, seed=1), 2.5),
    "12 boxes in a bin": (lambda: dl.scenes.box_bin(12, seed=4), 2.5),
}


@pytest.mark.parametrize("name", RESTING)
def test_what_rests_stays_at_rest(name):
    make, settle = RESTING[name]
    speed, way = fastest(make(), settle)
    assert speed < 1e-6
    assert way < 5.0 * 1e-6


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(6))
def test_what_rests_in_a_deep_bin_stays_at_rest(seed):
    speed, way = fastest(dl.scenes.box_bin(40, seed=seed), 5.0)
    assert speed < 1e-6
    assert way < 5.0 * 1e-6


# ---- momentum --------------------------------------------------------------------------------------------------------------------


def in_the_void(n, seed, shape="box"):
    """Boxes or balls that fly towards each other and spin, with neither gravity nor ground: a model, and its velocity."""
    rng, b = np.random.default_rng(seed), dl.ModelBuilder("void", gravity=(0, 0, 0))
    side = int(np.ceil(n ** (1 / 3)))
    for k in range(n):
        half = rng.uniform(0.03, 0.05, 3) if shape == "box" else np.full(3, rng.uniform(0.04, 0.07))
        mass = half.prod() * rng.uniform(2000, 8000)
        moments = mass / 3 * ((half**2).sum() - half**2) if shape == "box" else 0.4 * mass * half**2
        turn = rng.standard_normal(4)
        place = 0.18 * (np.array([k % side, k // side % side, k // side**2]) - (side - 1) / 2)
        b.add_body(f"body{k}", position=place, quaternion=turn / np.linalg.norm(turn), mass=mass, inertia=moments)
        b.add_joint(f"body{k}", "free")
        size = half if shape == "box" else half[:1]
        b.add_shape(f"body{k}", "box" if shape == "box" else "sphere", size, friction=rng.uniform(0.3, 0.8))
    model = b.build()
    v = np.zeros((n, 6))
    v[:, :3] = -2.0 * model.neutral().reshape(-1, 7)[:, :3] + 0.2 * rng.standard_normal((n, 3))
    v[:, 3:] = 2.0 * rng.standard_normal((n, 3))
    return model, v.ravel()


def sizes(bodies, q, v):
    """Σ ‖m v‖, and Σ ‖x × m v‖ + ‖I ω‖: momenta that could cancel."""
    q, v = q.reshape(-1, 7), v.reshape(-1, 6)
    linear = bodies.mass[:, None] * v[:, :3]
    turning = np.linalg.norm(np.cross(q[:, :3], linear), axis=1).sum() + np.linalg.norm(bodies.moments * v[:, 3:], axis=1).sum()
    return np.linalg.norm(linear, axis=1).sum(), turning


def flight(model, v, seconds=0.4, **options):
    """Changes of linear and angular momentum since the start, relative, (steps, 2, 3), and the steps."""
    bodies, sim = FreeBodies.of(model), dl.Simulator(model, **options)
    sim.reset(v=v)
    start, size = bodies.momentum(sim.q, sim.v), sizes(bodies, sim.q, sim.v)
    steps = [sim.step() for _ in range(round(seconds / DT))]
    changes = [[(now - then) / s for now, then, s in zip(bodies.momentum(step.q, step.v), start, size, strict=True)] for step in steps]
    assert max(len(step.contacts) for step in steps) >= 3
    return np.array(changes), steps


@pytest.mark.parametrize(("n", "seed", "shape"), [(8, 0, "box"), (27, 1, "box"), (64, 2, "box"), (27, 3, "ball")])
def test_linear_momentum_of_what_collides_in_the_void_is_kept(n, seed, shape):
    changes, _ = flight(*in_the_void(n, seed, shape))
    assert np.abs(changes[:, 0]).max() < 1e-9


@pytest.mark.parametrize(("n", "seed", "shape"), [(8, 0, "box"), (27, 1, "box"), (64, 2, "box"), (27, 3, "ball")])
def test_angular_momentum_of_what_collides_in_the_void_is_kept(n, seed, shape):
    """Correcting positions moves masses with their velocities, and so changes x × m v: here the slop is so large that there is nothing to correct."""
    changes, steps = flight(*in_the_void(n, seed, shape), slop=2e-3)
    assert not any(step.corrections for step in steps)
    assert np.abs(changes[:, 1]).max() < 1e-12


@pytest.mark.parametrize(("n", "seed"), [(8, 0), (27, 1)])
def test_angular_momentum_of_boxes_in_the_void_changes_with_corrections_alone(n, seed):
    changes, steps = flight(*in_the_void(n, seed))
    corrected = np.array([step.corrections > 0 for step in steps])
    in_step = np.abs(np.diff(changes[:, 1], axis=0, prepend=0)).max(axis=1)
    assert 0 < corrected.sum() < len(steps) / 2
    assert in_step[~corrected].max() < 1e-14
    # what is corrected is about a slop, and a thousandth of the bodies' distances
    assert np.abs(changes[:, 1]).max() < 1e-4


@pytest.mark.parametrize(("n", "seed"), [(8, 0), (27, 1)])
def test_impulses_between_boxes_have_neither_sum_nor_moment(n, seed):
    model, v = in_the_void(n, seed)
    bodies, sim = FreeBodies.of(model), dl.Simulator(model)
    sim.reset(v=v)
    _, size = sizes(bodies, sim.q, sim.v)
    seen = 0
    for _ in range(400):
        q, before = sim.q.reshape(-1, 7), sim.v.reshape(-1, 6)
        step = sim.step()
        after = step.v.reshape(-1, 6)
        push = bodies.mass[:, None] * (after[:, :3] - before[:, :3])
        spins = [
            np.einsum("bij,bj->bi", rotation(x[:, 3:]), bodies.moments * w[:, 3:]) for x, w in ((q, before), (step.q.reshape(-1, 7), after))
        ]
        moment = np.cross(q[:, :3], push) + spins[1] - spins[0]
        assert np.abs(moment.sum(axis=0)).max() < 1e-14 * size
        seen += len(step.contacts)
    assert seen > 50
