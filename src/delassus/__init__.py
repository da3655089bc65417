"""Delassus operators and constrained dynamics of robots with loops and contacts."""

from importlib.metadata import version

from . import errors, scenes, spatial
from .constraints import (
    CenterOfMass,
    Connect,
    Constraint,
    Distance,
    Hinge,
    JointCoupling,
    JointFriction,
    JointLimit,
    LinkConstraint,
    PointContact,
    Weld,
)
from .dynamics import (
    Workspace,
    bias_forces,
    forward_dynamics,
    inverse_dynamics,
    mass_matrix,
    mass_matrix_inverse,
    solve_mass_matrix,
)
from .model import Model, ModelBuilder, embedded_names, load
from .operators import BatchDelassusOperator, DelassusOperator
from .state import (
    body_placement,
    body_placements,
    center_of_mass,
    difference,
    frame_bias_acceleration,
    frame_jacobian,
    frame_velocity,
    integrate,
    kinetic_energy,
    normalize,
    point_bias_acceleration,
    point_jacobian,
    point_position,
    point_velocity,
    potential_energy,
)

__version__ = version("delassus")

__all__ = [
    "BatchDelassusOperator",
    "CenterOfMass",
    "Connect",
    "Constraint",
    "DelassusOperator",
    "Distance",
    "Hinge",
    "JointCoupling",
    "JointFriction",
    "JointLimit",
    "LinkConstraint",
    "Model",
    "ModelBuilder",
    "PointContact",
    "Weld",
    "Workspace",
    "__version__",
    "bias_forces",
    "body_placement",
    "body_placements",
    "center_of_mass",
    "difference",
    "embedded_names",
    "errors",
    "forward_dynamics",
    "frame_bias_acceleration",
    "frame_jacobian",
    "frame_velocity",
    "integrate",
    "inverse_dynamics",
    "kinetic_energy",
    "load",
    "mass_matrix",
    "mass_matrix_inverse",
    "normalize",
    "point_bias_acceleration",
    "point_jacobian",
    "point_position",
    "point_velocity",
    "potential_energy",
    "scenes",
    "solve_mass_matrix",
    "spatial",
]
