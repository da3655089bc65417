"""Core operations with reproducible cost: two robots, one state each, no branch on random numbers.

Each verb is repeated by the core itself (`repeats` of a native object), so the cost of calling it from Python can be subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import scenes
from ..dynamics import Workspace
from ..operators import BatchDelassusOperator, DelassusOperator, ExplicitDelassus
from ..solvers import ConstrainedDynamics
from .definition import Definition, relative

__all__ = ["Verb", "verbs"]

Array = NDArray[Any]
_STATES = 8  # batch size: one AVX-512 register, two of AVX2, four of SSE
_ALLOWED = 1e-8  # allowed error of a result
_SHORT = ("apply", "solve", "batch of 8: apply")


@dataclass(frozen=True)
class Verb:
    """One operation of the core, in a fixed state.

    Attributes:
        name: "ROBOT: operation".
        native: native object that performs it; its ``repeats`` is the number of repetitions per call.
        call: function that performs it.
        error: error of the last result, checked independently.
        more: difference in repeats of two counts, larger for short work.
    """

    name: str
    native: Any
    call: Callable[[], object]
    error: Callable[[], float]
    more: int = 1

    @property
    def right(self) -> bool:
        """Whether the result is correct; performs the operation."""
        self.call()
        return bool(self.error() <= _ALLOWED)

    def repeated(self, times: int) -> None:
        """Perform the operation ``times`` times in one call."""
        self.native.repeats = times
        try:
            self.call()
        finally:
            self.native.repeats = 1


def verbs() -> list[Verb]:
    """Verbs of a standing quadruped, and those of an operator with loops."""
    return [*_tree(), *_contacts(), *_loops()]


def _named(robot: str, found: Sequence[tuple[str, Any, Callable[[], object], Callable[[], float]]]) -> list[Verb]:
    return [Verb(f"{robot}: {name}", native, call, error, 4 if name in _SHORT else 1) for name, native, call, error in found]


def _tree() -> list[Verb]:
    """Verify each by another: ABA inverts RNEA, and M ν̇ is the difference of two RNEA results."""
    model, q, _ = scenes.load("go2-standing")
    rng = np.random.default_rng(7)
    v, a = rng.uniform(-1, 1, (2, model.nv))
    tau, found, M, bias = np.empty(model.nv), np.empty(model.nv), np.empty((model.nv, model.nv)), np.empty(model.nv)
    rnea, aba, crba, other = (Workspace(model)._native for _ in range(4))
    motion = partial(rnea.inverse_dynamics, q, v, a, None, tau)

    def rnea_error() -> float:
        other.forward_dynamics(q, v, tau, None, found)
        return relative(found, a)

    def aba_error() -> float:
        return relative(found, a)

    def crba_error() -> float:
        other.inverse_dynamics(q, v, a, None, tau)
        other.inverse_dynamics(q, v, None, None, bias)
        return relative(M @ a + bias, tau)

    motion()
    return _named(
        "go2",
        [
            ("rnea", rnea, motion, rnea_error),
            ("aba", aba, partial(aba.forward_dynamics, q, v, tau, None, found), aba_error),
            ("crba", crba, partial(crba.mass_matrix, q, M), crba_error),
        ],
    )


def _operator(robot: str, scene: str) -> tuple[list[Verb], Definition, Array]:
    """Return the verbs of the operator of a scene, against J M⁻¹ Jᵀ and its damped inverse by LAPACK."""
    model, q, constraints = scenes.load(scene)
    truth = Definition(model, q, model.zero_velocity(), constraints)
    m = len(truth.G)
    G = DelassusOperator(model, constraints, damping=truth.damping)
    G.update(q)
    native, x, y, z = G._native, np.linspace(-1, 1, m), np.empty(m), np.empty(m)
    damping = np.full(m, truth.damping)
    apply, solve = partial(native.apply, x, 1, True, y), partial(native.solve, x, 1, True, False, 0, 0.0, 1.0, z)

    def apply_error() -> float:
        apply()
        return relative(y, truth.G @ x)

    def solve_error() -> float:
        solve()
        return relative(truth.G @ z + truth.damping * z, x)

    found = [
        ("update", native, partial(native.update, q), apply_error),
        ("apply", native, apply, lambda: relative(y, truth.G @ x)),
        ("new damping", native, partial(native.set_damping, damping), solve_error),
        ("solve", native, solve, lambda: relative(truth.G @ z + truth.damping * z, x)),
    ]
    return _named(robot, found), truth, q


def _contacts() -> list[Verb]:
    single, truth, q = _operator("go2", "go2-standing")
    model, _, constraints = scenes.load("go2-standing")
    m = len(truth.G)
    explicit = ExplicitDelassus(model, constraints)._native
    matrix, inverse, damping = np.empty((m, m)), np.empty((m, m)), np.full(m, truth.damping)

    batch = BatchDelassusOperator(model, constraints, _STATES, threads=1)
    states, X, Y = np.tile(q, (_STATES, 1)), np.linspace(-1, 1, _STATES * m).reshape(_STATES, m), np.empty((_STATES, m))
    batch.update(states)
    apply = partial(batch._native.apply, X, 1, True, Y)

    def batch_error() -> float:
        apply()
        return relative(Y, X @ truth.G)

    dynamics = ConstrainedDynamics(model, constraints, method="lcaba")
    at_rest, tau = model.zero_velocity(), np.zeros(model.nv)
    acceleration, forces = np.empty(model.nv), np.empty(m)
    solve = partial(dynamics.solve, q, at_rest, tau, acceleration=acceleration, forces=forces)
    found = [
        ("matrix: pv-osim", explicit, partial(explicit.matrix, "pv-osim", q, matrix), lambda: relative(matrix, truth.G)),
        ("inverse: caba-osim", explicit, partial(explicit.inverse, "caba-osim", q, damping, inverse), lambda: relative(inverse, truth.inverse)),
        ("batch of 8: update", batch._native, partial(batch._native.update, states), batch_error),
        ("batch of 8: apply", batch._native, apply, batch_error),
        ("dynamics: lcaba", dynamics._native, solve, lambda: truth.dynamics_error(acceleration, forces)),
    ]  # fmt: skip
    return single + _named("go2", found)


def _loops() -> list[Verb]:
    found, _, _ = _operator("cassie", "cassie-standing")
    return found
