"""Operation counts: an algorithm run on CasADi symbols, its operations counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from .arithmetic import casadi

__all__ = ["OperationCount", "count_function"]


@dataclass(frozen=True)
class OperationCount:
    """Scalar operations of an algorithm.

    Attributes:
        additions: and subtractions; a doubling is one.
        multiplications: a square is one.
        divisions: a reciprocal is one.
        roots: square roots.
        trigonometric: sines and cosines.
        other: comparisons and choices; sign changes are not counted.
    """

    additions: int = 0
    multiplications: int = 0
    divisions: int = 0
    roots: int = 0
    trigonometric: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.additions + self.multiplications + self.divisions + self.roots + self.trigonometric + self.other

    def __str__(self) -> str:
        return (
            f"{self.total} operations: {self.additions} additions, {self.multiplications} multiplications, {self.divisions} divisions, "
            f"{self.roots} roots, {self.trigonometric} sines and cosines"
        )


def count_function(function: Any) -> OperationCount:
    """Count the operations of a CasADi function of ``SX``.

    Args:
        function: a ``casadi.Function``.

    Returns:
        the count; inputs, outputs, constants and sign changes are no operations.
    """
    ca = casadi()
    kinds = {
        ca.OP_ADD: "additions", ca.OP_SUB: "additions", ca.OP_TWICE: "additions", ca.OP_MUL: "multiplications", ca.OP_SQ: "multiplications",
        ca.OP_DIV: "divisions", ca.OP_INV: "divisions", ca.OP_SQRT: "roots", ca.OP_SIN: "trigonometric", ca.OP_COS: "trigonometric",
    }  # fmt: skip
    free = {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_PARAMETER, ca.OP_NEG, ca.OP_ASSIGN}
    found: Counter[str] = Counter()
    for k in range(function.n_instructions()):
        op = function.instruction_id(k)
        if op not in free:
            found[kinds.get(op, "other")] += 1
    return OperationCount(**found)
