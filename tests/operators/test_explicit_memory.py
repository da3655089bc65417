"""Dense matrices that the machine has no memory for are refused by an error that says what needs none."""

import numpy as np
import pytest

import delassus as dl
from delassus import _door
from delassus.errors import DelassusError, MatrixSizeError
from delassus.operators import BatchDelassusOperator, CholeskyDelassus, DenseDelassus, explicit

SCENE = dl.scenes.load("box-stack")  # 360 rows: 1.04 MB a matrix


@pytest.fixture
def small_machine(monkeypatch):
    monkeypatch.setattr(_door, "physical_memory", lambda: 1e6)
    monkeypatch.setattr(explicit, "_MANY_ROWS", 100)


CALLS = {
    "to_matrix": lambda: dl.DelassusOperator(SCENE.model, SCENE.constraints).to_matrix(),
    "batch": lambda: BatchDelassusOperator(SCENE.model, SCENE.constraints, 2).to_matrix(),
    "dense": lambda: DenseDelassus(SCENE.model, SCENE.constraints),
    "cholesky": lambda: CholeskyDelassus(SCENE.model, SCENE.constraints),
    "matrix": lambda: dl.delassus_matrix(SCENE.model, SCENE.q, SCENE.constraints),
    "inverse": lambda: dl.damped_delassus_inverse(SCENE.model, SCENE.q, SCENE.constraints, 1e-3),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_does_not_fit_is_refused_with_its_size_and_a_way_out(name, small_machine):
    with pytest.raises(MatrixSizeError, match=r"constraints: 360 rows.* 0\.0 GB.*no matrix") as caught:
        CALLS[name]()
    assert isinstance(caught.value, DelassusError)
    assert isinstance(caught.value, MemoryError)


def test_products_and_solutions_need_no_matrix(small_machine):
    G = dl.DelassusOperator(SCENE.model, SCENE.constraints, damping=1e-3)
    G.update(SCENE.q)
    x = np.ones(G.shape[0])
    assert G.backward_error(G.solve(x), x) < 1e-12


def test_what_fits_is_made():
    assert _door.physical_memory() > 5e8
    assert dl.delassus_matrix(SCENE.model, SCENE.q, SCENE.constraints).shape == (360, 360)
