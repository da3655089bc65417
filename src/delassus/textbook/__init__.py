"""Every algorithm of the papers in plain Python, to read beside them: link frames, any scalar type.

A :class:`Robot` is a model's tree of links; ``robot.at(q)`` puts it in a configuration, of numbers or of CasADi expressions; :class:`Rows` are
constraints in that pose. Algorithms take both. :func:`function` and :func:`count` do all this for a name of ``ALGORITHMS``.

Each algorithm can be read as a whole, with its arguments and beside its paper: a few lines that several begin or end with are repeated.
"""

from __future__ import annotations

from .arithmetic import Arithmetic, Numbers, Symbols
from .catalogue import ALGORITHMS, Algorithm, function
from .contacts import contact_tangents
from .counting import OperationCount, count, count_function
from .derivatives import ForwardDerivatives, InverseDerivatives, aba_derivatives, rnea_derivatives
from .dynamics import Motion, constrained_aba, lcaba, prox_ltl, prox_ltls, prox_pv, pv, pv_early, pv_soft, wanted
from .inverse import BranchedInverse, caba_osim, caba_osimf, ltl_inverse, pv_osimf
from .loops import lcaba_osim
from .matrix_free import (
    block_damped_inverse_apply,
    damped_inverse_apply,
    delassus_apply,
    jacobian_apply,
    jacobian_transpose_apply,
    loop_inverse_apply,
    mass_inverse_apply,
)
from .osim import efpa, kjr, ltl_osim, pv_osim, pv_osimr
from .robot import Link, Pose, Robot
from .rows import Block, End, Rows
from .tree import aba, crba, mass_matrix_inverse, rnea

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Arithmetic",
    "Block",
    "BranchedInverse",
    "End",
    "ForwardDerivatives",
    "InverseDerivatives",
    "Link",
    "Motion",
    "Numbers",
    "OperationCount",
    "Pose",
    "Robot",
    "Rows",
    "Symbols",
    "aba",
    "aba_derivatives",
    "block_damped_inverse_apply",
    "caba_osim",
    "caba_osimf",
    "constrained_aba",
    "contact_tangents",
    "count",
    "count_function",
    "crba",
    "damped_inverse_apply",
    "delassus_apply",
    "efpa",
    "function",
    "jacobian_apply",
    "jacobian_transpose_apply",
    "kjr",
    "lcaba",
    "lcaba_osim",
    "loop_inverse_apply",
    "ltl_inverse",
    "ltl_osim",
    "mass_inverse_apply",
    "mass_matrix_inverse",
    "prox_ltl",
    "prox_ltls",
    "prox_pv",
    "pv",
    "pv_early",
    "pv_osim",
    "pv_osimf",
    "pv_osimr",
    "pv_soft",
    "rnea",
    "rnea_derivatives",
    "wanted",
]
