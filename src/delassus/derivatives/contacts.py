"""Contact forces to first order: implicit differentiation of Signorini's and Coulomb's laws at a solution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import numbers
from ..constraints import Constraint
from ..errors import ArgumentError, ArgumentTypeError, InaccurateError
from ..model import Loop
from ..operators import DelassusOperator
from ..solvers import ContactResult
from ..solvers.contacts import _sets

__all__ = ["ContactAdjoint", "ContactDerivatives", "ContactTangent"]

Array = NDArray[np.float64]
Mode = Literal["open", "sticking", "sliding", "free", "bound"]


class ContactTangent(NamedTuple):
    """What a direction of the problem changes: ``forces`` and ``velocities``, (m,) each."""

    forces: Array
    velocities: Array


class ContactAdjoint(NamedTuple):
    """Derivatives of a number by ``g`` (m,), by ``friction`` (contacts,), and by G, which is ``g`` λᵀ: for G(q) take ``apply_vjp(forces, g)`` of :class:`OperatorDerivatives`."""

    g: Array
    friction: Array


class ContactDerivatives:
    """Forces λ and velocities σ = G λ + g of :func:`~delassus.solve_contacts` to first order in G, g and friction.

    At a solution every contact is open, sticks or slides, and while it stays so the laws are equations:

        open: λ = 0;   sticking: σ = 0;   sliding: σ_n = 0, λ_T = −µ λ_n h, h = σ_T / |σ_T|

    Limits that push and dry friction within its bounds are as what sticks, others as what is open. The linear equations are solved densely, O(m³) once. Where forces are not unique
    (redundant contacts) their change is the least that fits. What sticking ones do to joints is unique all the same; what sliding ones do depends on how they share their load, and the solver may
    share it otherwise next time.

    Where a contact is about to change its mode there is no derivative but one to either side: this one is that of the mode that the numbers are in, and ``kinks`` tells which contacts.

    Args:
        G: (m, m) the matrix or the operator of the problem, at the same numbers.
        solution: of :func:`~delassus.solve_contacts`; the derivative is as exact as that, so ask for a small tolerance.
        constraints: as they were given to it. Default those of G.
        timestep: as it was given.

    Attributes:
        modes: a word per contact, "open", "sticking" or "sliding", then one per row of all other constraints, "free" (σ = 0) or "bound" (λ at its bound, or zero).
        kinks: (contacts,) whether a contact is within 1e-6 of another mode, relative to its forces. Limits and dry friction are not looked at.

    Raises:
        InaccurateError: the solution is not "solved".

    Examples:
        >>> import delassus as dl, numpy as np
        >>> G = np.eye(3) / 2.0  # a point of 2 kg that slides
        >>> r = dl.solve_contacts(G, [-1.0, 2.0, 0.0], [0.5], tolerance=1e-11)
        >>> d = dl.ContactDerivatives(G, r, [0.5])
        >>> d.modes, d.jvp(dfriction=[1.0]).forces.round(6).tolist()
        (('sliding',), [0.0, -2.0, 0.0])
    """

    def __init__(
        self, G: Any, solution: ContactResult, constraints: Sequence[Constraint | Loop] | ArrayLike | None = None, *, timestep: float = 1.0
    ) -> None:
        if not isinstance(solution, ContactResult):
            raise ArgumentTypeError(f"solution: expected a ContactResult, as solve_contacts returns it, got {type(solution).__name__}.")
        if solution.status != "solved":
            raise InaccurateError(
                f"solution: solve_contacts ended with {solution.status!r}, so there is nothing to differentiate. {solution.advice}"
            )
        m = solution.forces.size
        own = isinstance(G, DelassusOperator)
        if constraints is None:
            if not own:
                raise ArgumentError(
                    "constraints: a matrix does not say what its rows are. Give the constraints or the friction of the problem."
                )
            constraints = G.constraints
        self._matrix = numbers(G.to_matrix() if own else G, "G", (m, m))
        cones, intervals, _ = _sets(m, constraints, G.model if own else None, timestep)
        self._forces, self._velocities = np.asarray(solution.forces, float), np.asarray(solution.velocities, float)
        self._rows = [slice(int(first), int(first + count)) for first, _, count in cones]
        # A dλ = −B s − E dµ with s = d(G) λ + dg
        identity, shift = np.zeros((m, m)), np.zeros((m, m))
        self._by_friction = np.zeros((m, len(cones)))
        self.modes: tuple[Mode, ...] = ()
        self.kinks = np.zeros(len(cones), dtype=bool)
        weights = 1 / np.maximum(np.diagonal(self._matrix), np.finfo(float).tiny)
        for k, (rows, (_, friction, _)) in enumerate(zip(self._rows, cones, strict=True)):
            self._add_cone(k, rows, friction, weights, identity, shift)
        for row, lower, upper in intervals:
            r = int(row)
            y = self._forces[r] - weights[r] * self._velocities[r]
            inside = not (y <= lower or y >= upper)  # NaN: no bound
            self.modes += ("free" if inside else "bound",)
            (shift if inside else identity)[r, r] = 1.0
        self._shift = shift
        # equations of velocities in units of forces, so that a threshold of rank means something
        scale = np.where(np.abs(shift).sum(1) > 0, weights, 1.0)
        self._scale = scale
        self._inverse = np.linalg.pinv(scale[:, None] * (identity + shift @ self._matrix), rcond=1e-11)

    def _add_cone(self, k: int, rows: slice, friction: float, weights: Array, identity: Array, shift: Array) -> None:
        """Decide the mode of a contact and add its equations."""
        force, velocity = self._forces[rows], self._velocities[rows]
        beta = weights[rows].mean()
        y = force - beta * velocity
        across, limit = float(np.linalg.norm(y[1:])), friction * y[0]
        size = np.abs(force).max() + beta * np.abs(velocity).max() + np.finfo(float).tiny
        first = rows.start
        each = range(rows.start, rows.stop)
        if y[0] <= 0:
            self.modes += ("open",)
            self.kinks[k] = -y[0] <= 1e-6 * size
            identity[each, each] = 1.0
            return
        self.kinks[k] = min(y[0], abs(across - limit)) <= 1e-6 * size
        speed = float(np.linalg.norm(velocity[1:]))
        # without friction a contact slides, also where it does not move yet: then friction to come has no direction
        if friction > 0 and (across <= limit or speed == 0):
            self.modes += ("sticking",)
            shift[each, each] = 1.0
            return
        self.modes += ("sliding",)
        h = velocity[1:] / speed if speed > 0 else np.zeros(velocity.size - 1)
        tangents = slice(first + 1, rows.stop)
        shift[first, first] = 1.0
        identity[tangents, tangents] = np.eye(h.size)
        identity[tangents, first] = friction * h
        if friction > 0:
            shift[tangents, tangents] = friction * force[0] / speed * (np.eye(h.size) - np.outer(h, h))
        self._by_friction[tangents, k] = h * force[0]

    def jvp(self, dG_forces: ArrayLike | None = None, dg: ArrayLike | None = None, dfriction: ArrayLike | None = None) -> ContactTangent:
        """Change of forces and velocities along a direction of the problem.

        Args:
            dG_forces: (m,) d(G) λ, which :meth:`OperatorDerivatives.apply_jvp` gives for a change of q, or dG @ λ of a matrix.
            dg: (m,) change of g.
            dfriction: (contacts,) change of µ. What is None does not change.
        """
        m = self._forces.size
        s = np.zeros(m)
        if dG_forces is not None:
            s = s + numbers(dG_forces, "dG_forces", (m,))
        if dg is not None:
            s = s + numbers(dg, "dg", (m,))
        b = -self._shift @ s
        if dfriction is not None:
            b -= self._by_friction @ numbers(dfriction, "dfriction", (len(self._rows),))
        forces = self._inverse @ (self._scale * b)
        return ContactTangent(forces, self._matrix @ forces + s)

    def vjp(self, forces_bar: ArrayLike | None = None, velocities_bar: ArrayLike | None = None) -> ContactAdjoint:
        """Differentiate forces_bar · λ + velocities_bar · σ by g and friction.

        Args:
            forces_bar, velocities_bar: (m,) weights. What is None has no weight.
        """
        m = self._forces.size
        weights, direct = np.zeros(m), np.zeros(m)
        if forces_bar is not None:
            weights = weights + numbers(forces_bar, "forces_bar", (m,))
        if velocities_bar is not None:
            direct = numbers(velocities_bar, "velocities_bar", (m,))
            weights = weights + self._matrix.T @ direct
        x = self._scale * (self._inverse.T @ weights)
        return ContactAdjoint(direct - self._shift.T @ x, -self._by_friction.T @ x)

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.modes.count(mode)} {mode}" for mode in dict.fromkeys(self.modes))
        return f"<ContactDerivatives: {self._forces.size} rows, {counts}>"
