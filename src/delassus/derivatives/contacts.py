"""Derivatives of contact forces: implicit differentiation of Signorini's and Coulomb's laws at a solution, or on the central path near it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import columns_of, number, numbers
from ..constraints import Constraint
from ..errors import ArgumentError, ArgumentTypeError, InaccurateError, StaleError
from ..model import Loop
from ..operators import DelassusOperator
from ..solvers import ContactResult
from ..solvers.contacts import _sets
from .linearized import OperatorDerivatives

__all__ = ["ContactAdjoint", "ContactDerivatives", "ContactTangent"]

Array = NDArray[np.float64]
Mode = Literal["open", "sticking", "sliding", "free", "bound"]
_MODES: tuple[Mode, ...] = ("open", "sticking", "sliding", "free", "bound")
_MATRIX_ROWS = 64  # maximum number of rows for which the matrix of an operator is formed


class ContactTangent(NamedTuple):
    """Change along a direction: ``forces`` and ``velocities``, (m,) each, or (m, k) for k directions."""

    forces: Array
    velocities: Array


class ContactAdjoint(NamedTuple):
    """Derivatives of a scalar with respect to ``g`` (m,), ``friction`` (contacts,), bounds of the other rows, ``lower`` and ``upper`` (rows,), and ``q`` (nv,), or None.

    The derivative with respect to G is ``g`` λᵀ with λ the ``forces`` of the :class:`ContactDerivatives`. For k scalars every array has a last axis of length k.
    """

    g: Array
    friction: Array
    lower: Array
    upper: Array
    q: Array | None = None


class ContactDerivatives:
    """Forces λ and velocities σ = G λ + g of :func:`~delassus.solve_contacts` differentiated with respect to G, g, friction and bounds.

    At a solution every contact is open, sticks or slides, and as long as it does the laws are equations:

        open: λ = 0;   sticking: σ = 0;   sliding: σ_n = 0, λ_T = −µ λ_n h, h = σ_T / |σ_T|

    Active limits, dry friction within its bounds and equalities have σ = 0 like sticking contacts; others stay at their bound. A product takes O(n + m) with the factor of
    an operator, O(m²) with a matrix, after a factorization. Where forces are not unique (redundant contacts) their change minimises Σ d dλ² with d the
    inverse effective mass of a constraint. The effect of sticking contacts on joints is still unique; that of sliding ones depends on how they share the load, which
    the solver may choose differently next time.

    Where a contact is about to change its mode there are only one-sided derivatives: this one is that of the current mode, sticking if it is about
    to slide. ``kinks`` marks these contacts. With ``smoothing`` there are no modes: forces are those on the central path near the solution, which is smooth,

        λ · σ̃ = κ,   µ² λ_n σ_T + σ̃_n λ_T = 0,   σ̃ = σ + µ Γ n,   Γ = √(|σ_T|² + ε²) − ε,   ε = 0.3 √(κ d)

    for contacts and (λ − lower) σ = κ for limits, and the derivatives are exact for these forces, with d fixed. They are not zero where a contact is open or sticks, and tend to those of the modes as κ → 0.

    Args:
        G: (m, m) the matrix or the operator of the problem, unchanged. With up to 64 rows the matrix of an operator is formed; with more the operator itself is used, and must stay at its q.
        solution: result of :func:`~delassus.solve_contacts`; use a small tolerance, which limits the accuracy of the derivative.
        constraints: constraints of the solved problem. Default: those of G.
        timestep: time step of the solved problem [s].
        smoothing: κ > 0 [J where λ are impulses, W where they are forces]. Default: none.
        operator: an :class:`OperatorDerivatives` of G at the same q: with it :meth:`jvp` takes ``dq``, and :meth:`vjp` returns ``q``.

    Attributes:
        modes: "open", "sticking" or "sliding" per contact, then per row of all other constraints "free" (σ = 0) or "bound" (λ at its bound, or zero).
        kinks: (modes,) True if a mode is within 1e-6 of another one, relative to its forces.
        redundant: True if forces are not unique.
        forces, velocities: (m,) the point where the derivative is taken: the solution, or a point on the central path.

    Raises:
        InaccurateError: the solution is not "solved", or the central path was not reached.
        StaleError: the operator has no numbers; in :meth:`jvp` and :meth:`vjp`, it was updated since then.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> G = np.eye(3) / 2.0  # a 2 kg point that slides
        >>> r = dl.solve_contacts(G, [-1.0, 2.0, 0.0], [0.5], tolerance=1e-11)
        >>> d = dl.ContactDerivatives(G, r, [0.5])
        >>> d.modes, round(float(d.jvp(dfriction=[1.0]).forces[1]), 6)  # more friction means more force against the motion
        (('sliding',), -2.0)
    """

    def __init__(
        self,
        G: Any,
        solution: ContactResult,
        constraints: Sequence[Constraint | Loop] | ArrayLike | None = None,
        *,
        timestep: float = 1.0,
        smoothing: float | None = None,
        operator: OperatorDerivatives | None = None,
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
                raise ArgumentError("constraints: the rows of a matrix are not known. Give the constraints or the friction of the problem.")
            constraints = G.constraints
        if operator is not None and not isinstance(operator, OperatorDerivatives):
            raise ArgumentTypeError(f"operator: expected an OperatorDerivatives, got {type(operator).__name__}.")
        if operator is not None and operator.shape != (m, m):
            raise ArgumentError(f"operator: it has {operator.shape[0]} rows, but the solution has {m}.")
        self._operator = operator
        if own and G.shape != (m, m):
            raise ArgumentError(f"G: it has {G.shape[0]} rows, but the solution has {m}.")
        if own and not G._fresh:
            raise StaleError("G: the operator has no numbers yet: call update(q) first.")
        # blocks of an operator's factor do not include compliance
        matrix_free = own and m > _MATRIX_ROWS and G.dtype == np.float64 and not G.compliance.any()
        native: Any = G._native if matrix_free else numbers(G.to_matrix() if own else G, "G", (m, m))
        cones, intervals, _ = _sets(m, constraints, G.model if own else None, timestep)
        self._contacts, self._others = len(cones), len(intervals)
        self.forces: Array = np.array(solution.forces, dtype=float)
        self.velocities: Array = np.array(solution.velocities, dtype=float)
        found = _core.ContactModes64(m, cones, intervals)
        found.find(native, self.forces, self.velocities)
        self.modes: tuple[Mode, ...] = tuple(_MODES[k] for k in found.modes)
        self.kinks: NDArray[np.bool_] = np.array(found.kinks, dtype=bool)
        self.redundant: bool = found.redundant
        self.smoothing = None if smoothing is None else number(smoothing, "smoothing")
        self._modes: _core.ContactModes64 = found
        self._smoothed: _core.SmoothedContacts64 | None = None
        # the bound closer to the force
        at = self.forces[intervals[:, 0].astype(int)]
        self._at_lower = np.abs(at - np.nan_to_num(intervals[:, 1], nan=-np.inf)) <= np.abs(at - np.nan_to_num(intervals[:, 2], nan=np.inf))
        if self.smoothing is not None:
            if self.smoothing <= 0:
                raise ArgumentError(f"smoothing: expected a positive number, got {self.smoothing:g}. Leave it out for none.")
            self._smoothed = _core.SmoothedContacts64(m, cones, intervals)
            g = self.velocities - (G @ self.forces if own else native @ self.forces)
            if not self._smoothed.find(native, g, self.smoothing, self.forces):
                raise InaccurateError(f"smoothing: Newton's method did not reach the central path at {self.smoothing:g}. Try a larger one.")
            self.forces, self.velocities = self._smoothed.forces, self._smoothed.velocities

    def jvp(
        self,
        dG_forces: ArrayLike | None = None,
        dg: ArrayLike | None = None,
        dfriction: ArrayLike | None = None,
        dlower: ArrayLike | None = None,
        dupper: ArrayLike | None = None,
        dq: ArrayLike | None = None,
    ) -> ContactTangent:
        """Change of forces and velocities along a direction of the problem, or along k of them: then every argument has a last axis of length k.

        Args:
            dG_forces: (m,) d(G) λ, which :meth:`OperatorDerivatives.apply_jvp` gives for a change of q, or dG @ λ of a matrix, with λ the ``forces`` here.
            dg: (m,) change of g.
            dfriction: (contacts,) change of µ.
            dlower, dupper: change of the bounds of all other rows, one number per row: for dry friction ∓ and ± the change of the loss times ``timestep``.
            dq: (nv,) change of q, for its effect on G only; its effect on g is ``dg``. Needs ``operator``. None: no change.
        """
        m = self.forces.size
        sizes = {"dG_forces": (dG_forces, m), "dg": (dg, m), "dfriction": (dfriction, self._contacts)}
        sizes |= {"dlower": (dlower, self._others), "dupper": (dupper, self._others)}
        if dq is not None:
            sizes["dq"] = (dq, self._derivatives_of_G("dq").model.nv)
        columns, vector = columns_of(sizes)
        axis: tuple[int, ...] = () if vector else (columns,)
        s = np.zeros((m, *axis))
        for value, name in ((dG_forces, "dG_forces"), (dg, "dg")):
            if value is not None:
                s += numbers(value, name, (m, *axis))
        if dq is not None:
            s += self._derivatives_of_G("dq").apply_jvp(self.forces, dq)
        lower, upper = (
            None if value is None else numbers(value, name, (self._others, *axis))
            for value, name in ((dlower, "dlower"), (dupper, "dupper"))
        )
        if self._smoothed is not None:
            return ContactTangent(*self._smoothed.tangents(s, dfriction, lower, upper, columns, vector))
        # a bound's change affects only the rows at that bound
        none = np.zeros((self._others, *axis))
        here = self._at_lower.reshape(-1, *(1,) * len(axis))
        chosen = np.where(here, none if lower is None else lower, none if upper is None else upper)
        return ContactTangent(*self._modes.tangents(s, dfriction, chosen, columns, vector))

    def vjp(self, forces_bar: ArrayLike | None = None, velocities_bar: ArrayLike | None = None) -> ContactAdjoint:
        """Differentiate forces_bar · λ + velocities_bar · σ with respect to g, friction, bounds and, if ``operator`` was given, q through G only.

        Args:
            forces_bar, velocities_bar: (m,) or (m, k) weights. None: zero.
        """
        m = self.forces.size
        columns, vector = columns_of({"forces_bar": (forces_bar, m), "velocities_bar": (velocities_bar, m)})
        if self._smoothed is not None:
            g, friction, lower, upper = self._smoothed.adjoints(forces_bar, velocities_bar, columns, vector)
        else:
            g, friction, bounds = self._modes.adjoints(forces_bar, velocities_bar, columns, vector)
            here = self._at_lower.reshape(-1, *(() if vector else (1,)))
            lower, upper = np.where(here, bounds, 0.0), np.where(here, 0.0, bounds)
        q = None if self._operator is None else self._operator.apply_vjp(self.forces, g)[0]
        return ContactAdjoint(g, friction, lower, upper, q)

    def _derivatives_of_G(self, name: str) -> OperatorDerivatives:
        if self._operator is None:
            raise ArgumentError(f"{name}: how G depends on q is not known here. Give operator=, an OperatorDerivatives at the same q.")
        return self._operator

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.modes.count(mode)} {mode}" for mode in dict.fromkeys(self.modes))
        return f"<ContactDerivatives: {self.forces.size} rows, {counts}>"
