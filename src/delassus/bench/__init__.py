"""What a model costs: our steps by stage, MuJoCo's beside them, and every method on its constraints. Every time stands beside a check of its result."""

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
