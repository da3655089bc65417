"""Motions of models with contacts: the simulator, and what a simulation leaves behind."""

from .contact_problem import ContactProblem
from .simulator import Simulator
from .step_result import StepResult
from .trajectory import Contacts, Trajectory

__all__ = ["ContactProblem", "Contacts", "Simulator", "StepResult", "Trajectory"]
