"""Delassus operators and constrained dynamics of robots with loops and contacts.

A name is imported when it is first used: ``import delassus`` alone loads neither NumPy nor the compiled core, and computing never loads the viewer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # for type checkers, editors and the docs; at run time the tables below have the same content
    from . import errors, scenes, spatial, studies, textbook, types
    from .constraints import (
        CenterOfMass,
        Connect,
        Constraint,
        ConstraintRows,
        Cylindrical,
        Distance,
        Hinge,
        JointCoupling,
        JointFriction,
        JointLimit,
        LinkConstraint,
        Planar,
        PointContact,
        Prismatic,
        Universal,
        Weld,
        constraint_bias,
        constraint_drift,
        constraint_error,
        constraint_velocity,
        constraint_wrenches,
    )
    from .cpp import get_cmake_dir, get_include, save_model
    from .derivatives import (
        BatchLinearizedDynamics,
        BodyGradient,
        CenterOfMassDerivatives,
        ConstrainedDynamicsDerivatives,
        ContactAdjoint,
        ContactDerivatives,
        ContactTangent,
        DynamicsAdjoint,
        DynamicsParameterAdjoint,
        DynamicsTangent,
        EnergyDerivatives,
        ForwardDynamicsDerivatives,
        FrameDerivatives,
        InverseDynamicsDerivatives,
        LinearizedDynamics,
        OperatorDerivatives,
        body_gradient,
        center_of_mass_derivatives,
        constrained_dynamics_derivatives,
        energy_derivatives,
        forward_dynamics_derivatives,
        frame_derivatives,
        inertial_parameters,
        inverse_dynamics_derivatives,
        jacobian_product_derivative,
        jacobian_transpose_product_derivative,
        linearize,
        point_derivatives,
        torque_regressor,
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
    from .model import Frame, Model, ModelBuilder, embedded_names
    from .model.load import load
    from .operators import (
        BatchDelassusOperator,
        CholeskyDelassus,
        DelassusOperator,
        DenseDelassus,
        Explanation,
        ExplicitDelassus,
        MethodCosts,
        damped_delassus_inverse,
        delassus_matrix,
    )
    from .simulator import (
        ContactProblem,
        Contacts,
        LinearizedStep,
        ParameterAdjoint,
        RolloutAdjoint,
        Simulator,
        StepAdjoint,
        StepResult,
        StepTangent,
        Trajectory,
        rollout_vjp,
    )
    from .solvers import (
        AssemblyResult,
        BatchConstrainedDynamics,
        BatchDynamicsResult,
        ConstrainedDynamics,
        ContactResiduals,
        ContactResult,
        ContactSolver,
        DynamicsResult,
        ImpactResult,
        InverseDynamicsResult,
        LcpResult,
        OperationalSpace,
        close_loops,
        complementarity,
        constrained_dynamics,
        constrained_inverse_dynamics,
        impact,
        solve_contacts,
        solve_lcp,
    )
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
    from .studies import Study, StudyResult
    from .viewers import Play, View, record
    from .worlds import Rollout, Worlds, WorldsAdjoint, WorldsLinearization, rollout

    __version__: str

__all__ = [
    "AssemblyResult",
    "BatchConstrainedDynamics",
    "BatchDelassusOperator",
    "BatchDynamicsResult",
    "BatchLinearizedDynamics",
    "BodyGradient",
    "CenterOfMass",
    "CenterOfMassDerivatives",
    "CholeskyDelassus",
    "Connect",
    "ConstrainedDynamics",
    "ConstrainedDynamicsDerivatives",
    "Constraint",
    "ConstraintRows",
    "ContactAdjoint",
    "ContactDerivatives",
    "ContactProblem",
    "ContactResiduals",
    "ContactResult",
    "ContactSolver",
    "ContactTangent",
    "Contacts",
    "Cylindrical",
    "DelassusOperator",
    "DenseDelassus",
    "Distance",
    "DynamicsAdjoint",
    "DynamicsParameterAdjoint",
    "DynamicsResult",
    "DynamicsTangent",
    "EnergyDerivatives",
    "Explanation",
    "ExplicitDelassus",
    "ForwardDynamicsDerivatives",
    "Frame",
    "FrameDerivatives",
    "Hinge",
    "ImpactResult",
    "InverseDynamicsDerivatives",
    "InverseDynamicsResult",
    "JointCoupling",
    "JointFriction",
    "JointLimit",
    "LcpResult",
    "LinearizedDynamics",
    "LinearizedStep",
    "LinkConstraint",
    "MethodCosts",
    "Model",
    "ModelBuilder",
    "OperationalSpace",
    "OperatorDerivatives",
    "ParameterAdjoint",
    "Planar",
    "Play",
    "PointContact",
    "Prismatic",
    "Rollout",
    "RolloutAdjoint",
    "Simulator",
    "StepAdjoint",
    "StepResult",
    "StepTangent",
    "Study",
    "StudyResult",
    "Trajectory",
    "Universal",
    "View",
    "Weld",
    "Workspace",
    "Worlds",
    "WorldsAdjoint",
    "WorldsLinearization",
    "__version__",
    "bias_forces",
    "body_gradient",
    "body_placement",
    "body_placements",
    "center_of_mass",
    "center_of_mass_derivatives",
    "close_loops",
    "complementarity",
    "constrained_dynamics",
    "constrained_dynamics_derivatives",
    "constrained_inverse_dynamics",
    "constraint_bias",
    "constraint_drift",
    "constraint_error",
    "constraint_velocity",
    "constraint_wrenches",
    "damped_delassus_inverse",
    "delassus_matrix",
    "difference",
    "embedded_names",
    "energy_derivatives",
    "errors",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "frame_bias_acceleration",
    "frame_derivatives",
    "frame_jacobian",
    "frame_velocity",
    "get_cmake_dir",
    "get_include",
    "impact",
    "inertial_parameters",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "jacobian_product_derivative",
    "jacobian_transpose_product_derivative",
    "kinetic_energy",
    "linearize",
    "load",
    "mass_matrix",
    "mass_matrix_inverse",
    "normalize",
    "point_bias_acceleration",
    "point_derivatives",
    "point_jacobian",
    "point_position",
    "point_velocity",
    "potential_energy",
    "record",
    "rollout",
    "rollout_vjp",
    "save_model",
    "scenes",
    "solve_contacts",
    "solve_lcp",
    "solve_mass_matrix",
    "spatial",
    "studies",
    "textbook",
    "torque_regressor",
    "types",
]

# The module that has each public name.
_HOMES = {
    "constraints": "CenterOfMass Connect Constraint ConstraintRows Cylindrical Distance Hinge JointCoupling JointFriction JointLimit LinkConstraint Planar PointContact "
    "Prismatic Universal Weld "
    "constraint_bias constraint_drift constraint_error constraint_velocity constraint_wrenches",
    "cpp": "get_cmake_dir get_include save_model",
    "derivatives": "BatchLinearizedDynamics BodyGradient CenterOfMassDerivatives ConstrainedDynamicsDerivatives ContactAdjoint ContactDerivatives ContactTangent DynamicsAdjoint DynamicsParameterAdjoint DynamicsTangent "
    "EnergyDerivatives ForwardDynamicsDerivatives FrameDerivatives InverseDynamicsDerivatives LinearizedDynamics OperatorDerivatives "
    "body_gradient center_of_mass_derivatives constrained_dynamics_derivatives energy_derivatives forward_dynamics_derivatives frame_derivatives "
    "inertial_parameters inverse_dynamics_derivatives jacobian_product_derivative jacobian_transpose_product_derivative linearize "
    "point_derivatives torque_regressor",
    "dynamics": "Workspace bias_forces forward_dynamics inverse_dynamics mass_matrix mass_matrix_inverse solve_mass_matrix",
    "model": "Frame Model ModelBuilder embedded_names load",
    "operators": "BatchDelassusOperator CholeskyDelassus DelassusOperator DenseDelassus Explanation ExplicitDelassus MethodCosts damped_delassus_inverse "
    "delassus_matrix",
    "simulator": "ContactProblem Contacts LinearizedStep ParameterAdjoint RolloutAdjoint Simulator StepAdjoint StepResult StepTangent Trajectory rollout_vjp",
    "solvers": "AssemblyResult BatchConstrainedDynamics BatchDynamicsResult ConstrainedDynamics ContactResiduals ContactResult ContactSolver DynamicsResult ImpactResult "
    "InverseDynamicsResult LcpResult OperationalSpace close_loops complementarity constrained_dynamics constrained_inverse_dynamics impact solve_contacts "
    "solve_lcp",
    "state": "body_placement body_placements center_of_mass difference frame_bias_acceleration frame_jacobian frame_velocity integrate kinetic_energy normalize "
    "point_bias_acceleration point_jacobian point_position point_velocity potential_energy",
    "studies": "Study StudyResult",
    "viewers": "Play View record",
    "worlds": "Rollout Worlds WorldsAdjoint WorldsLinearization rollout",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
_MODULES = {*_HOMES, "_core", "_door", "errors", "scenes", "spatial", "textbook", "types"}


def _imported(name: str) -> Any:
    """Import a name at its first use; from then on it is an ordinary attribute."""
    value: Any
    if name in _HOME_OF:
        value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{name}", __name__)
    elif name == "__version__":
        value = import_module("importlib.metadata").version("delassus")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # threads that get here at the same time set the same object: modules are imported once, under the interpreter's own locks
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # a type checker would conclude that every name exists
    __getattr__ = _imported

    from ._builds import chosen as _chosen

    _chosen()  # if this CPU can run no build of the core, fail here, not by an illegal instruction later


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
