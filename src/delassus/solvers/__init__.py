"""What stands on the operator: inverse dynamics with constraints, impacts, assembly, operational space."""

from .assembly import AssemblyResult, close_loops
from .impulses import ImpactResult, impact
from .inverse import InverseDynamicsResult, constrained_inverse_dynamics
from .operational import OperationalSpace

__all__ = [
    "AssemblyResult",
    "ImpactResult",
    "InverseDynamicsResult",
    "OperationalSpace",
    "close_loops",
    "constrained_inverse_dynamics",
    "impact",
]
