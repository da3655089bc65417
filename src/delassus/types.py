"""Literal types of arguments and results: methods, solvers, statuses."""

from __future__ import annotations

from typing import Literal

__all__ = [
    "AssemblyStatus",
    "ContactMethod",
    "ContactMode",
    "ContactStatus",
    "DynamicsMethod",
    "DynamicsStatus",
    "Integrator",
    "InverseDynamicsStatus",
    "InverseMethod",
    "LcpStatus",
    "MatrixMethod",
    "SimulatorSolver",
    "StepStatus",
    "WorldStatus",
]

MatrixMethod = Literal["ltl", "kjr", "efpa", "pv-osim", "pv-osimr", "oscm", "columns", "auto"]
"""Methods of :func:`delassus.delassus_matrix`."""

InverseMethod = Literal["caba-osim", "caba-osimf", "pv-osimf", "ltl", "lcaba-osim", "lcaba", "auto"]
"""Methods of :func:`delassus.damped_delassus_inverse`."""

DynamicsMethod = Literal["auto", "lcaba", "caba", "pv-soft", "soft-gauss", "kkt", "prox-ltl", "prox-ltls", "pv", "prox-pv", "pv-early"]
"""Methods of :func:`delassus.constrained_dynamics`."""

ContactMethod = Literal["auto", "admm", "newton", "apgd", "pgs", "interior", "lcp"]
"""Methods of :func:`delassus.solve_contacts`."""

ContactMode = Literal["open", "sticking", "sliding"]
"""What a contact does, for the derivatives of its force."""

SimulatorSolver = Literal["auto", "admm", "newton"]
"""Contact solvers of :class:`delassus.Simulator`."""

Integrator = Literal["midpoint", "euler"]
"""Integrators of :class:`delassus.Simulator`."""

AssemblyStatus = Literal["solved", "redundant", "not_closable", "iteration_limit"]
"""Statuses of :func:`delassus.close_loops`."""

ContactStatus = Literal["solved", "approximate", "iteration_limit", "stalled", "infeasible"]
"""Statuses of :func:`delassus.solve_contacts`."""

DynamicsStatus = Literal["solved", "redundant", "infeasible_least_squares", "iteration_limit", "stalled", "relaxed"]
"""Statuses of :func:`delassus.constrained_dynamics`."""

InverseDynamicsStatus = Literal["solved", "singular", "underactuated", "violates_constraints"]
"""Statuses of :func:`delassus.constrained_inverse_dynamics`."""

LcpStatus = Literal["solved", "inaccurate", "ray", "pivot_limit"]
"""Statuses of :func:`delassus.solve_lcp`."""

StepStatus = Literal[
    "solved", "approximate", "iteration_limit", "stalled", "infeasible", "penetrating", "limit_violated", "open_loops", "tunnelling"
]
"""Statuses of a step of :class:`delassus.Simulator`."""

WorldStatus = Literal[
    "solved", "iteration_limit", "stalled", "infeasible", "approximate", "penetrating", "limit_violated", "open_loops", "tunnelling", "unstable", "singular", "failed", "not_stepped"
]  # fmt: skip
"""Statuses of :class:`delassus.Worlds`, in the order of their numbers."""
