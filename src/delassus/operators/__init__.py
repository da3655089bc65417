"""The Delassus operator G = J M⁻¹ Jᵀ and its damped inverse, without a matrix, in O(n + m)."""

from .delassus import BatchDelassusOperator, DelassusOperator
from .explanation import Explanation

__all__ = ["BatchDelassusOperator", "DelassusOperator", "Explanation"]
