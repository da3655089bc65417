"""Simulation of models with contacts: the simulator and its results."""

from .contact_problem import ContactProblem
from .linearized import LinearizedStep, ParameterAdjoint, StepAdjoint, StepTangent
from .rollout_adjoint import RolloutAdjoint, rollout_vjp
from .simulator import Simulator
from .step_result import StepResult
from .trajectory import Contacts, Trajectory

__all__ = [
    "ContactProblem",
    "Contacts",
    "LinearizedStep",
    "ParameterAdjoint",
    "RolloutAdjoint",
    "Simulator",
    "StepAdjoint",
    "StepResult",
    "StepTangent",
    "Trajectory",
    "rollout_vjp",
]
