"""Words of methods, solvers and statuses: the types name those that the functions take, and no others."""

import re
from typing import get_args

import numpy as np
import pytest
import typed_use

import delassus as dl
from delassus import types

MODEL = dl.load("go2")
FEET = [dl.PointContact(MODEL, body, friction=0.8) for body in range(1, MODEL.nbody) if body not in MODEL.body_parent[1:]]


def operator():
    G = dl.DelassusOperator(MODEL, FEET, damping=1e-3)
    G.update(MODEL.neutral())
    return G


Q, V = MODEL.neutral(), MODEL.zero_velocity()
ASKED = {
    "MatrixMethod": lambda word: dl.delassus_matrix(MODEL, Q, FEET, method=word),
    "InverseMethod": lambda word: dl.damped_delassus_inverse(MODEL, Q, FEET, 1e-3, method=word),
    "DynamicsMethod": lambda word: dl.constrained_dynamics(MODEL, Q, V, V, FEET, method=word, compliance=1e-3),
    "ContactMethod": lambda word: dl.solve_contacts(operator(), np.ones(3 * len(FEET)), FEET, method=word),
    "SimulatorSolver": lambda word: dl.Simulator(MODEL, solver=word),
    "Integrator": lambda word: dl.Simulator(MODEL, integrator=word),
}


@pytest.mark.parametrize("name", ASKED)
def test_type_names_the_words_that_are_taken(name):
    """Those are the ones that the error for any other word lists; each of them is taken."""
    with pytest.raises(dl.errors.UnknownNameError) as caught:
        ASKED[name]("no such word")
    listed = re.search(r"Available: (.*)\.$", str(caught.value))[1].split(", ")
    assert sorted(listed) == sorted(get_args(getattr(types, name)))
    for word in listed:
        ASKED[name](word)


def test_every_alias_has_words_of_its_own_and_is_listed():
    found = {name for name, value in vars(types).items() if get_args(value)}
    assert found == set(types.__all__)
    for name in found:
        words = get_args(getattr(types, name))
        assert len(set(words)) == len(words)
        assert all(re.fullmatch(r"[a-z_-]+", word) for word in words)


STATUSES = {
    "AssemblyStatus": dl.AssemblyResult,
    "ContactStatus": dl.ContactResult,
    "DynamicsStatus": dl.DynamicsResult,
    "InverseDynamicsStatus": dl.InverseDynamicsResult,
    "LcpStatus": dl.LcpResult,
    "StepStatus": dl.StepResult,
}


@pytest.mark.parametrize("name", STATUSES)
def test_results_have_these_statuses(name):
    assert STATUSES[name].__annotations__["status"] == name


def test_checked_uses_run():
    """What mypy accepts of the file runs; what it must refuse raises."""
    G = operator()
    x = np.ones(G.shape[0])
    batch = dl.BatchDelassusOperator(MODEL, FEET, 2)
    batch.update(np.stack([Q, Q]))
    typed_use.products_are_arrays(G, batch, x)
    typed_use.methods_are_words(MODEL, G, x)
    assert typed_use.steps_have_a_status(dl.Simulator("go2")) in ("solved", "other")
    with pytest.raises(dl.errors.UnknownNameError):
        typed_use.wrong_words_are_refused(MODEL, G, x)
