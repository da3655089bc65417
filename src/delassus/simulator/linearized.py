"""A simulator's step to first order: products with its Jacobian and with the transposed, and both as matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from ..derivatives.linearized import _columns as columns_of
from ..errors import StaleError
from ..types import ContactMode

if TYPE_CHECKING:
    from .step_result import StepResult

__all__ = ["LinearizedStep", "StepAdjoint", "StepTangent"]

Array = NDArray[Any]
_MODES: tuple[ContactMode, ...] = ("open", "sticking", "sliding")

# What a derivative may leave out, by the core's names.
_GAPS = {
    "contradiction": "positions were corrected as far as rows that contradict each other allow: how far is taken as fixed",
    "open_loops": "a loop was far open: how it is closed is taken as fixed",
    "tendons": "rows of tendons and of turned ball joints keep their direction",
    "moved_bodies": "velocities of mocap bodies and of moving surfaces at contacts are taken as fixed",
    "bounce": "contacts bounced: restitution is not differentiated, impulses are those of contacts without it",
    "contacts": "a contact was not found again when its bodies were displaced: it is taken for a corner on a face",
    "singular": "the linear equation of the contact forces could not be solved",
}


class StepTangent(NamedTuple):
    """Change of the state after a step: ``q`` (tangent space) and ``v``, (nv,) each, or (nv, k) for k directions."""

    q: Array
    v: Array


class StepAdjoint(NamedTuple):
    """Derivatives of a number by ``q`` (tangent space), ``v``, ``tau`` (nv,), ``control`` (nu,) and the ``friction`` of each contact (contacts,); with k numbers (…, k)."""

    q: Array
    v: Array
    tau: Array
    control: Array
    friction: Array


class LinearizedStep:
    """A step of a :class:`~delassus.Simulator` to first order, from :meth:`Simulator.linearize`.

        (q⁺, v⁺) = step(q, v, control, τ)        d(q⁺, v⁺) = A d(q, v) + B dcontrol

    Directions of q are in its tangent space, in the coordinates of v: q ⊕ dq as :func:`~delassus.integrate` has it. Derivatives hold while every contact stays open, sticks or slides as it does,
    and every limit stays as it is. :attr:`kinks` names contacts that are about to change; there the derivative is that of one side.

    :meth:`jvp` and :meth:`vjp` take O(n + m) and use the simulator's memory: they work until it steps again or is set to another state. :attr:`A` and :attr:`B` stay once they were read.

    Attributes:
        q, v: (nq,), (nv,) state after the step.
        step: the :class:`~delassus.StepResult`.
        modes: per contact of the step: "open", "sticking" or "sliding".
        kinks: (contacts,) bool: it is about to change its mode.
        row_kinks: whether a limit or dry friction is.
        left_out: what these derivatives leave out, in words; empty where they are complete.
    """

    def __init__(self, world: _core.World, steps: list[int], step: StepResult, q: Array, v: Array, controls: int) -> None:
        self._world, self._steps, self._when, self._controls = world, steps, steps[0], controls
        self.step, self.q, self.v = step, q, v
        modes, kinks, self.row_kinks, gaps = world.linearized_modes()
        self.modes: tuple[ContactMode, ...] = tuple(_MODES[k] for k in modes)
        self.kinks = np.array(kinks, dtype=bool)
        self.left_out: tuple[str, ...] = tuple(_GAPS[name] for name in gaps)
        self._A: Array | None = None
        self._B: Array | None = None

    @property
    def status(self) -> str:
        """Of the step, see :attr:`StepResult.status`."""
        return str(self.step.status)

    def _fresh(self) -> _core.World:
        if self._steps[0] != self._when:
            raise StaleError(
                "LinearizedStep: its simulator has moved on. Call jvp and vjp before the next step, read A and B before it, or linearize again from a saved state."
            )
        return self._world

    def jvp(
        self,
        dq: ArrayLike | None = None,
        dv: ArrayLike | None = None,
        dcontrol: ArrayLike | None = None,
        dtau: ArrayLike | None = None,
        dfriction: ArrayLike | None = None,
    ) -> StepTangent:
        """Change of q⁺ and v⁺ along directions.

        Args:
            dq, dv, dtau: (nv,) or (nv, k).
            dcontrol: (nu,) or (nu, k).
            dfriction: (contacts,) or (contacts, k): of the friction coefficient of each contact. What is None does not change.
        """
        world, n = self._fresh(), self.v.size
        k, vector = columns_of(
            {"dq": (dq, n), "dv": (dv, n), "dcontrol": (dcontrol, self._controls), "dtau": (dtau, n), "dfriction": (dfriction, self.kinks.size)}
        )
        return StepTangent(*world.tangents(dq, dv, dtau, dcontrol, dfriction, k, vector))

    def vjp(self, q_bar: ArrayLike | None = None, v_bar: ArrayLike | None = None) -> StepAdjoint:
        """Differentiate q_bar · q⁺ + v_bar · v⁺ by all that the step depends on.

        Args:
            q_bar, v_bar: (nv,) or (nv, k) weights; those of q⁺ in its tangent space. What is None has no weight.
        """
        world, n = self._fresh(), self.v.size
        k, vector = columns_of({"q_bar": (q_bar, n), "v_bar": (v_bar, n)})
        return StepAdjoint(*world.adjoints(q_bar, v_bar, k, vector))

    @property
    def A(self) -> Array:
        """(2 nv, 2 nv): of (q⁺, v⁺) by (q, v), both stacked, in tangent coordinates."""
        if self._A is None:
            n = self.v.size
            one, zero = np.eye(n), np.zeros((n, n))
            self._A = np.vstack(self.jvp(dq=np.hstack([one, zero]), dv=np.hstack([zero, one])))
        return self._A

    @property
    def B(self) -> Array:
        """(2 nv, nu): of (q⁺, v⁺) by the controls of actuators."""
        if self._B is None:
            self._B = np.vstack(self.jvp(dcontrol=np.eye(self._controls))) if self._controls else np.zeros((2 * self.v.size, 0))
        return self._B

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.modes.count(mode)} {mode}" for mode in dict.fromkeys(self.modes))
        return f"<LinearizedStep: {self.status}, contacts: {counts or 'none'}{', something left out' if self.left_out else ''}>"
