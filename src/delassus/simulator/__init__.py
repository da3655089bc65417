"""Motions of models with contacts: the simulator, and what a simulation leaves behind."""

from .simulator import Rollout, Simulator, StepResult, rollout
from .trajectory import Contacts, Trajectory

__all__ = ["Contacts", "Rollout", "Simulator", "StepResult", "Trajectory", "rollout"]
