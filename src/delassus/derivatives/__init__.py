"""Derivatives of kinematics and dynamics, analytic, on the tangent space of q: the coordinates of v, q ⊕ dq as in :func:`~delassus.integrate`."""

from __future__ import annotations

from .contacts import ContactAdjoint, ContactDerivatives, ContactTangent
from .dynamics import (
    ForwardDynamicsDerivatives,
    InverseDynamicsDerivatives,
    forward_dynamics_derivatives,
    inverse_dynamics_derivatives,
)
from .frames import (
    FrameDerivatives,
    frame_derivatives,
    jacobian_product_derivative,
    jacobian_transpose_product_derivative,
    point_derivatives,
)
from .linearized import (
    BatchLinearizedDynamics,
    ConstrainedDynamicsDerivatives,
    DynamicsAdjoint,
    DynamicsParameterAdjoint,
    DynamicsTangent,
    LinearizedDynamics,
    OperatorDerivatives,
    constrained_dynamics_derivatives,
    linearize,
)
from .masses import (
    BodyGradient,
    CenterOfMassDerivatives,
    EnergyDerivatives,
    body_gradient,
    center_of_mass_derivatives,
    energy_derivatives,
    inertial_parameters,
    torque_regressor,
)

__all__ = [
    "BatchLinearizedDynamics",
    "BodyGradient",
    "CenterOfMassDerivatives",
    "ConstrainedDynamicsDerivatives",
    "ContactAdjoint",
    "ContactDerivatives",
    "ContactTangent",
    "DynamicsAdjoint",
    "DynamicsParameterAdjoint",
    "DynamicsTangent",
    "EnergyDerivatives",
    "ForwardDynamicsDerivatives",
    "FrameDerivatives",
    "InverseDynamicsDerivatives",
    "LinearizedDynamics",
    "OperatorDerivatives",
    "body_gradient",
    "center_of_mass_derivatives",
    "constrained_dynamics_derivatives",
    "energy_derivatives",
    "forward_dynamics_derivatives",
    "frame_derivatives",
    "inertial_parameters",
    "inverse_dynamics_derivatives",
    "jacobian_product_derivative",
    "jacobian_transpose_product_derivative",
    "linearize",
    "point_derivatives",
    "torque_regressor",
]
