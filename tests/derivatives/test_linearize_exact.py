"""Derivatives of constrained dynamics to 1e-8 and better, against complex steps through both equations in extended precision."""

import numpy as np
import pytest

import delassus as dl
from delassus.model.load import embedded_names
from oracles import complex_dynamics
from oracles.closed import random_loop
from oracles.compare import agree
from oracles.row_kinds import KINDS, tree

TOLERANCE = 1e-8
ALONG = {"all": (1.0, 1.0, 1.0), "q": (1.0, 0.0, 0.0), "v": (0.0, 1.0, 0.0), "tau": (0.0, 0.0, 1.0)}


def exact(model, constraints, q, v, seed, *, along="all", compliance=0.0, redundant=False, tolerance=TOLERANCE):
    """Compare ν̇, λ and their derivatives along a random direction, with random forces on joints and bodies."""
    rng = np.random.default_rng([seed, 31])
    constraints = dl.DelassusOperator(model, constraints).constraints  # loops become constraints
    tau = rng.standard_normal(model.nv)
    dq, dv, dtau = np.array(ALONG[along])[:, None] * rng.standard_normal((3, model.nv))
    external = rng.standard_normal((model.nbody, 6))
    L = dl.LinearizedDynamics(model, constraints, compliance=compliance)
    r = L.update(q, v, tau, external_forces=external)
    found = L.jvp(dq, dv, dtau)
    metric = L._dynamics._damping if redundant else None
    wanted = complex_dynamics.constrained_dynamics(
        model, q, v, tau, constraints, dq, dv, dtau, external=external, compliance=compliance, metric=metric
    )
    for got, want in zip((r.acceleration, r.forces, found.acceleration, found.forces), wanted, strict=True):
        agree(got, want, tolerance)
    assert L.redundant == redundant


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_row(kind):
    model = tree()
    rng = np.random.default_rng(1)
    q, v = model.random(rng), rng.standard_normal(model.nv)
    for along in ALONG:
        exact(model, [KINDS[kind](model)], q, v, 1, along=along, tolerance=1e-11)


def test_many_kinds_at_once_with_compliance():
    model = tree()
    rng = np.random.default_rng(2)
    rows = [KINDS[k](model) for k in ("contact on the world", "universal", "coupling", "distance")]
    exact(model, rows, model.random(rng), rng.standard_normal(model.nv), 2, compliance=0.01, tolerance=1e-11)


def leaves(model):
    return [b for b in range(1, model.nbody) if b not in set(model.body_parent)]


@pytest.mark.parametrize("robot", embedded_names())
def test_robots_without_and_with_loops_and_contacts(robot):
    model = dl.load(robot)
    rng = np.random.default_rng(3)
    q, v = model.random(rng), rng.standard_normal(model.nv)
    exact(model, [], q, v, 3)
    contacts = [dl.PointContact(model, b) for b in leaves(model)[-2:][: 2 if model.nv > 12 else 1]]
    for along in ("all", "q"):
        exact(model, [*model.loops, *contacts], q, v, 4, along=along)


@pytest.mark.parametrize("robot", embedded_names())
def test_redundant_contacts_keep_the_least_forces(robot):
    """Four corners of one link on the ground, and one of them twice: ν̇ is unique, λ is the least in the metric of the damping, and stays so."""
    model = dl.load(robot)
    q = model.random(np.random.default_rng(5))
    corners = [(0.1, 0.05, 0), (0.1, -0.05, 0), (-0.1, 0.05, 0), (-0.1, -0.05, 0), (0.1, 0.05, 0)]
    rows = [dl.PointContact(model, leaves(model)[-1], point=p) for p in corners]
    exact(model, rows, q, model.zero_velocity(), 6, along="q", redundant=True)
    exact(model, rows, q, model.zero_velocity(), 6, along="tau", redundant=True)


@pytest.mark.sampled
@pytest.mark.parametrize("group", range(20))
def test_two_hundred_random_loops(group):
    """Ten mechanisms with one to three loops of a kind each that hold in the state; those with more rows than they can move in are left out."""
    done = 0
    for seed in range(group, 1000, 20):
        mechanism = random_loop(seed)
        if len(mechanism.factors[1]) < len(mechanism.J):
            continue
        v = 0.3 * mechanism.rng.standard_normal(mechanism.model.nv)
        exact(mechanism.model, mechanism.constraints, mechanism.q, v, seed)
        done += 1
        if done == 10:
            return
    raise AssertionError(f"only {done} mechanisms")
