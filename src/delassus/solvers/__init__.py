"""What stands on the operator: dynamics with constraints, forward and inverse, impacts, assembly, operational space."""

from .assembly import AssemblyResult, close_loops
from .contacts import ContactResiduals, ContactResult, solve_contacts
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
from .operational import OperationalSpace

__all__ = [
    "AssemblyResult",
    "BatchConstrainedDynamics",
    "BatchDynamicsResult",
    "ConstrainedDynamics",
    "ContactResiduals",
    "ContactResult",
    "DynamicsResiduals",
    "DynamicsResult",
    "ImpactResult",
    "InverseDynamicsResult",
    "OperationalSpace",
    "close_loops",
    "constrained_dynamics",
    "constrained_inverse_dynamics",
    "impact",
    "solve_contacts",
]
