"""Benchmarks of a model: our steps by stage compared with MuJoCo's, and every method on its constraints. Every time is shown with a check of the result."""

from .methods import Problem, measure_methods
from .motion import Motion, PeerMotion, constraints_of, run, run_mujoco
from .operator import Costs, operator_costs
from .trial import Measurement, Section

__all__ = [
    "Costs",
    "Measurement",
    "Motion",
    "PeerMotion",
    "Problem",
    "Section",
    "constraints_of",
    "measure_methods",
    "operator_costs",
    "run",
    "run_mujoco",
]
