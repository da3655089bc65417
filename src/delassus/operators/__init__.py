"""The Delassus operator G = J M⁻¹ Jᵀ and its damped inverse: without a matrix, in O(n + m), and as dense matrices."""

from .delassus import BatchDelassusOperator, DelassusOperator
from .explanation import Explanation
from .explicit import CholeskyDelassus, DenseDelassus, ExplicitDelassus, MethodCosts, damped_delassus_inverse, delassus_matrix

__all__ = [
    "BatchDelassusOperator",
    "CholeskyDelassus",
    "DelassusOperator",
    "DenseDelassus",
    "Explanation",
    "ExplicitDelassus",
    "MethodCosts",
    "damped_delassus_inverse",
    "delassus_matrix",
]
