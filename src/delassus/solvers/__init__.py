"""Solvers built on the operator: dynamics with constraints, forward and inverse, impacts, complementarity, assembly, operational space."""

from . import complementarity
from .assembly import AssemblyResult, close_loops
from .contacts import ContactResiduals, ContactResult, ContactSolver, solve_contacts
from .dynamics import (
    BatchConstrainedDynamics,
    BatchDynamicsResult,
    ConstrainedDynamics,
    DynamicsResiduals,
    DynamicsResult,
    constrained_dynamics,
)
from .impulses import ImpactResult, impact
from .inverse import InverseDynamicsResult, constrained_inverse_dynamics
from .lcp import LcpResult, solve_lcp
from .operational import OperationalSpace

__all__ = [
    "AssemblyResult",
    "BatchConstrainedDynamics",
    "BatchDynamicsResult",
    "ConstrainedDynamics",
    "ContactResiduals",
    "ContactResult",
    "ContactSolver",
    "DynamicsResiduals",
    "DynamicsResult",
    "ImpactResult",
    "InverseDynamicsResult",
    "LcpResult",
    "OperationalSpace",
    "close_loops",
    "complementarity",
    "constrained_dynamics",
    "constrained_inverse_dynamics",
    "impact",
    "solve_contacts",
    "solve_lcp",
]
