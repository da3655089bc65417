"""Motions of models with contacts: the simulator, and what a simulation leaves behind."""

from .contact_problem import ContactProblem
from .rollouts import Rollout, rollout
from .simulator import Simulator
from .step_result import StepResult
from .trajectory import Contacts, Trajectory

__all__ = ["ContactProblem", "Contacts", "Rollout", "Simulator", "StepResult", "Trajectory", "rollout"]
