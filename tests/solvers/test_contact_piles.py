"""Random piles that never saw the simulator: every problem ends in a status, and ``solved`` is said only where Coulomb's law holds by rows made in SciPy.

DELASSUS_PILES=10000 pytest -m exhaustive tests/solvers/test_contact_piles.py   # that many problems
"""

import os
from typing import get_args

import numpy as np
import pytest

import delassus as dl
from delassus.types import ContactStatus
from oracles.contacts import residuals
from oracles.piles import random_pile

MANY = int(os.environ.get("DELASSUS_PILES", "200"))


def contacts_of(seed):
    """50 to 2,000, evenly by their logarithm."""
    return int(50 * 40 ** np.random.default_rng(seed).random())


def verdict(seed, contacts, *, matrix=False):
    """Status of a random pile, after it was compared with the residuals by their definition."""
    pile = random_pile(np.random.default_rng(seed), contacts)
    r = dl.solve_contacts(pile.matrix, pile.g, pile.friction) if matrix else dl.solve_contacts(pile.operator(), pile.g)
    assert r.status in get_args(ContactStatus), seed
    assert np.isfinite(r.forces).all(), seed
    assert r.iterations <= 2000, seed
    primal, dual, _, natural = residuals(pile, pile.g, pile.cones, (), r.forces, d=pile.felt)
    # σ from products in another order: rounding of forces and of positions, metres from the origin
    noise = 1e-12 * (1 + np.abs(pile.felt * r.forces).max())
    assert natural == pytest.approx(r.residuals.natural, rel=1e-6, abs=noise), seed
    assert max(primal, dual) == pytest.approx(max(r.residuals.primal, r.residuals.dual), rel=1e-6, abs=noise), seed
    if r.status == "solved":
        assert max(primal, dual, natural / 10) <= r.tolerance + noise, seed
        assert r.tolerance <= 1e-6, seed
    return r.status


def test_rows_of_the_oracle_are_those_of_the_operator():
    pile = random_pile(np.random.default_rng(3), 80)
    G = pile.operator()
    assert G.shape == (240, 240)
    # numbers of some hundreds, a metre from the origin
    assert np.abs(G.to_matrix() - pile.matrix).max() < 1e-10 * np.abs(pile.matrix).max()
    assert np.linalg.matrix_rank(pile.matrix, tol=1e-9 * np.abs(pile.matrix).max()) < 240


@pytest.mark.parametrize("seed", range(12))
def test_solved_is_true_of_piles_given_as_a_matrix(seed):
    verdict(seed, 50 + 10 * seed, matrix=True)


@pytest.mark.parametrize("seed", range(12, 36))
def test_solved_is_true_of_piles_given_as_an_operator(seed):
    verdict(seed, min(contacts_of(seed), 600))


def test_piles_of_fifty_to_two_hundred_contacts_are_solved():
    """They have a solution, by how they are made."""
    ends = {seed: verdict(seed, 50 + 5 * seed) for seed in range(30)}
    assert set(ends.values()) == {"solved"}, ends


@pytest.mark.exhaustive
@pytest.mark.parametrize("group", range(10))
def test_solved_is_true_of_many_piles(group):
    for seed in range(1000 + group, 1000 + MANY, 10):
        verdict(seed, contacts_of(seed))


@pytest.mark.exhaustive
def test_piles_of_up_to_two_thousand_contacts_are_solved():
    ends = {seed: verdict(seed, contacts_of(seed)) for seed in range(500, 540)}
    assert set(ends.values()) <= {"solved", "approximate"}, ends
    assert list(ends.values()).count("solved") >= 36, ends
