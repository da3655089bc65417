"""Every algorithm by name, with its arguments, so that all can be run, turned into expressions and counted in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from .._door import unknown
from ..constraints import Constraint
from ..errors import ArgumentError
from ..model import Loop, Model
from .arithmetic import Matrix, Symbols
from .derivatives import ForwardDerivatives, InverseDerivatives, aba_derivatives, rnea_derivatives
from .dynamics import Motion, constrained_aba, lcaba, prox_ltl, prox_ltls, prox_pv, pv, pv_early, pv_soft
from .inverse import BranchedInverse, caba_osim, caba_osimf, ltl_inverse, pv_osimf
from .loops import lcaba_osim
from .matrix_free import (
    damped_inverse_apply,
    delassus_apply,
    jacobian_apply,
    jacobian_transpose_apply,
    loop_inverse_apply,
    mass_inverse_apply,
)
from .osim import efpa, kjr, ltl_osim, pv_osim, pv_osimr
from .robot import Pose, Robot
from .rows import Rows
from .tree import aba, crba, mass_matrix_inverse, rnea

__all__ = ["ALGORITHMS", "Algorithm", "function"]


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of the textbook.

    Attributes:
        run: the function: pose, then rows if ``constrained``, then ``arguments``.
        arguments: names of its further arguments: velocities ``v``, joint forces ``tau``, ``acceleration``, wanted row accelerations ``k``, rows ``x``,
            ``damping``, ``mu``.
        constrained: True if it takes rows; any_rows: True if these may touch several links or joints.
        iterative: True if it takes ``iterations``.
        does: the quantity that it computes.
        source: publication.
    """

    run: Callable[..., Any]
    arguments: tuple[str, ...] = ()
    constrained: bool = True
    any_rows: bool = False
    iterative: bool = False
    does: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    def __call__(self, pose: Pose, rows: Rows | None, given: dict[str, Any], **options: Any) -> Any:
        """Run it with its arguments by name."""
        values = [given[name] for name in self.arguments if name != "mu"]
        named = {"mu": given["mu"]} if "mu" in self.arguments else {}
        return self.run(pose, *([rows] if self.constrained else []), *values, **named, **options)


_TREE = partial(Algorithm, constrained=False)
_PROXIMAL = partial(Algorithm, arguments=("v", "tau", "k", "mu"), iterative=True, does="ν̇, λ")

ALGORITHMS: dict[str, Algorithm] = {
    "rnea": _TREE(rnea, ("v", "acceleration"), does="τ", source="Featherstone (2008), table 5.1"),
    "crba": _TREE(crba, does="M", source="Featherstone (2008), table 6.2"),
    "aba": _TREE(aba, ("v", "tau"), does="ν̇", source="Featherstone (2008), table 7.1"),
    "minv-printed": _TREE(
        partial(mass_matrix_inverse, form="printed"), does="M⁻¹", source="Carpentier (2018), line 14 as printed, one frame"
    ),
    "minv-replaced": _TREE(
        partial(mass_matrix_inverse, form="replaced"), does="M⁻¹", source="Carpentier (2018), line 14 replaced, link frames"
    ),
    "rnea-derivatives": _TREE(rnea_derivatives, ("v", "acceleration"), does="τ, ∂τ/∂(q, v, ν̇)", source="Carpentier, Mansard (2018)"),
    "aba-derivatives": _TREE(aba_derivatives, ("v", "tau"), does="ν̇, ∂ν̇/∂(q, v, τ)", source="Carpentier, Mansard (2018)"),
    "ltl": Algorithm(ltl_osim, any_rows=True, does="G", source="PV-OSIMr paper, eqs. 4 to 6"),
    "kjr": Algorithm(kjr, any_rows=True, does="G", source="PV-OSIMr paper, eqs. 11 and 13"),
    "efpa": Algorithm(efpa, any_rows=True, does="G", source="PV-OSIMr paper, algorithm 2"),
    "pv-osim": Algorithm(pv_osim, any_rows=True, does="G", source="PV-OSIMr paper, algorithm 1"),
    "pv-osimr": Algorithm(pv_osimr, any_rows=True, does="G", source="PV-OSIMr paper, algorithm 3"),
    "ltl-inverse": Algorithm(
        ltl_inverse, ("damping",), any_rows=True, does="(G + ε)⁻¹", source="constrained-dynamics paper, section VIII-C"
    ),
    "lcaba-osim": Algorithm(
        lcaba_osim, ("damping",), any_rows=True, does="(G + ε)⁻¹", source="textbook/loops.py, from the matrix-free paper, algorithm 4"
    ),
    "caba-osim": Algorithm(caba_osim, ("damping",), does="(G + ε)⁻¹", source="constrained-dynamics paper, algorithm 5"),
    "caba-osimf": Algorithm(caba_osimf, ("damping",), does="(G + ε)⁻¹, factored", source="constrained-dynamics paper, eq. 41"),
    "pv-osimf": Algorithm(pv_osimf, ("damping",), does="(G + ε)⁻¹, factored", source="constrained-dynamics paper, section VIII-C"),
    "jacobian-transpose": Algorithm(jacobian_transpose_apply, ("x",), any_rows=True, does="Jᵀ x", source="matrix-free paper, algorithm 1"),
    "mass-inverse": _TREE(mass_inverse_apply, ("tau",), does="M⁻¹ τ", source="matrix-free paper, algorithm 2"),
    "jacobian": Algorithm(jacobian_apply, ("v",), any_rows=True, does="J ν", source="matrix-free paper, algorithm 3"),
    "delassus": Algorithm(delassus_apply, ("x",), any_rows=True, does="G x", source="matrix-free paper, section IV-D"),
    "loop-inverse": Algorithm(
        loop_inverse_apply, ("damping", "tau"), any_rows=True, does="(M + Jᵀ R J)⁻¹ τ", source="matrix-free paper, algorithm 4"
    ),
    "damped-inverse": Algorithm(
        damped_inverse_apply, ("damping", "x"), any_rows=True, does="(G + ε)⁻¹ x", source="matrix-free paper, section V-D"
    ),
    "prox-ltl": _PROXIMAL(prox_ltl, any_rows=True, source="constrained-dynamics paper, eq. 13"),
    "prox-ltls": _PROXIMAL(prox_ltls, source="constrained-dynamics paper, eq. 16"),
    "pv": Algorithm(pv, ("v", "tau", "k"), does="ν̇, λ", source="constrained-dynamics paper, section II-G"),
    "prox-pv": _PROXIMAL(prox_pv, source="constrained-dynamics paper, algorithm 4"),
    "pv-soft": Algorithm(pv_soft, ("v", "tau", "k", "mu"), does="ν̇, λ", source="constrained-dynamics paper, section VII-A"),
    "pv-early": Algorithm(pv_early, ("v", "tau", "k"), does="ν̇, λ", source="constrained-dynamics paper, section VII-B"),
    "caba": _PROXIMAL(constrained_aba, source="constrained-dynamics paper, algorithms 1 to 3"),
    "lcaba": _PROXIMAL(lcaba, any_rows=True, source="matrix-free paper, section III-B"),
}


def find(name: str) -> Algorithm:
    """Find the algorithm with this name."""
    if name not in ALGORITHMS:
        raise unknown("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]


def results(value: Any) -> list[Matrix]:
    """Matrices of a result."""
    if isinstance(value, Motion):
        return [value.acceleration, value.forces]
    if isinstance(value, (InverseDerivatives, ForwardDerivatives)):
        return list(vars(value).values())
    if isinstance(value, BranchedInverse):
        return [value.B, *(part for base in value.base for part in base)]
    return [value]


def function(
    algorithm: str,
    model: Model,
    constraints: Sequence[Constraint | Loop] = (),
    *,
    coordinates: Literal["mujoco", "papers"] = "mujoco",
    axes: Literal["world", "link"] = "world",
    iterations: int = 3,
    cse: bool = False,
) -> Any:
    """Make a CasADi function of an algorithm on a model and constraints, to evaluate, differentiate, or generate C code.

    Args:
        algorithm: a name of ``ALGORITHMS``.
        model: the mechanism.
        constraints: constraints of the model, or its loops.
        coordinates: "mujoco": its first argument is q (nq); "papers": a floating base coincides with the world, S = 1, and the arguments are the other
            coordinates, and gravity in the base's axes if it floats.
        axes: axes of the rows, see :class:`Rows`.
        iterations: number of iterations of proximal algorithms.
        cse: let CasADi eliminate common subexpressions.

    Returns:
        ``casadi.Function``; after the coordinates, arguments are the algorithm's ``arguments``, ``damping`` and ``mu`` being scalars.

    Raises:
        MissingExtraError: CasADi is not installed.
        UnknownNameError: no algorithm has this name.
        ArgumentError: the algorithm does not take these constraints.
    """
    chosen = find(algorithm)
    ops = Symbols()
    ca = ops.casadi
    robot = Robot(model)
    if coordinates == "papers":
        pose = robot.symbols()
        inputs = pose.arguments
        names = ["q", "gravity"][: len(inputs)]
    elif coordinates == "mujoco":
        inputs, names = [ca.SX.sym("q", model.nq)], ["q"]
        pose = robot.at(inputs[0])
    else:
        raise ArgumentError(f"coordinates: expected 'mujoco' or 'papers', got {coordinates!r}.")
    rows = Rows(pose, constraints, axes) if chosen.constrained else None
    sizes = dict.fromkeys(("v", "tau", "acceleration"), model.nv) | {
        "k": rows.m if rows else 0,
        "x": rows.m if rows else 0,
        "damping": 1,
        "mu": 1,
    }
    given = {name: ca.SX.sym(name, sizes[name]) for name in chosen.arguments}
    options = {"iterations": iterations} if chosen.iterative else {}
    outputs = results(chosen(pose, rows, given, **options))
    return ca.Function(
        algorithm.replace("-", "_"),
        [*inputs, *given.values()],
        outputs,
        [*names, *given],
        [f"out{k}" for k in range(len(outputs))],
        {"cse": cse},
    )
