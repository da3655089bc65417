"""Motions of models with contacts: the simulator, and what a simulation leaves behind."""

from .contact_problem import ContactProblem
from .simulator import Rollout, Simulator, StepResult, rollout
from .trajectory import Contacts, Trajectory

__all__ = ["ContactProblem", "Contacts", "Rollout", "Simulator", "StepResult", "Trajectory", "rollout"]
