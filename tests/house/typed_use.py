"""What a type checker sees of the library: mypy reads this file (see ``files`` in pyproject.toml), test_types.py runs it.

Lines that must be refused say ``type: ignore``; where one is not refused any more, mypy calls the comment unused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

import delassus as dl
from delassus.types import ContactMethod, ContactStatus, DynamicsStatus, StepStatus

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value, kind):
        return value


Array = NDArray[Any]


def products_are_arrays(G: dl.DelassusOperator, B: dl.BatchDelassusOperator, x: NDArray[np.float64]) -> None:
    assert_type(G @ x, Array)
    assert_type(G @ [1.0 for _ in x], Array)
    assert_type(G.matvec(x), Array)
    assert_type(G.solve(x), Array)
    assert_type(G.inverse @ x, Array)
    assert_type(G.jacobian.rmatvec(x), Array)
    assert_type(G.to_matrix(), Array)
    assert_type(G.damping, Array | tuple[Array, ...] | None)
    assert_type(G.solve_transposed(x), Array)
    assert_type(B @ np.stack([x, x]), Array)
    assert_type(dl.OperationalSpace(G).inertia @ x, Array)
    assert_type((G @ G) @ x, Any)  # SciPy's operators have no types


def methods_are_words(model: dl.Model, G: dl.DelassusOperator, x: NDArray[np.float64]) -> None:
    q, v = model.neutral(), model.zero_velocity()
    feet = list(G.constraints)
    assert_type(dl.delassus_matrix(model, q, feet, method="ltl"), Array)
    assert_type(dl.damped_delassus_inverse(model, q, feet, 1e-3, method="lcaba"), Array)
    assert_type(dl.constrained_dynamics(model, q, v, v, feet, method="prox-ltl").status, DynamicsStatus)
    method: ContactMethod = "pgs"
    assert_type(dl.solve_contacts(G, x, feet, method=method).status, ContactStatus)


def steps_have_a_status(simulator: dl.Simulator) -> Literal["solved", "other"]:
    step = simulator.step()
    assert_type(step.status, StepStatus)
    return "solved" if step.status == "solved" else "other"


def wrong_words_are_refused(model: dl.Model, G: dl.DelassusOperator, x: NDArray[np.float64]) -> None:
    q, v = model.neutral(), model.zero_velocity()
    feet = list(G.constraints)
    dl.delassus_matrix(model, q, feet, method="lcaba")  # type: ignore[arg-type]
    dl.damped_delassus_inverse(model, q, feet, 1e-3, method="kjr")  # type: ignore[arg-type]
    dl.constrained_dynamics(model, q, v, v, feet, method="admm")  # type: ignore[arg-type]
    dl.solve_contacts(G, x, feet, method="lcaba")  # type: ignore[arg-type]
    dl.Simulator(model, solver="pgs")  # type: ignore[arg-type]
    dl.Simulator(model, integrator="runge-kutta")  # type: ignore[arg-type]
    assert_type(dl.nothing, Any)  # type: ignore[attr-defined]
