"""What stands on the operator: constrained dynamics."""

from .dynamics import BatchConstrainedDynamics, BatchDynamicsResult, ConstrainedDynamics, DynamicsResiduals, DynamicsResult, constrained_dynamics

__all__ = [
    "BatchConstrainedDynamics",
    "BatchDynamicsResult",
    "ConstrainedDynamics",
    "DynamicsResiduals",
    "DynamicsResult",
    "constrained_dynamics",
]
