"""Operation counts: an algorithm run on CasADi symbols, its scalar operations counted.

What is counted, as in the PV-OSIMr and constrained-dynamics papers: link frames, sines and cosines and the change of frames included; placements, inertias and rows on links are numbers, so
that their zeros and ones fold as the expression is built; matrices known to be symmetric are computed by half; a result used twice is
computed once where the algorithm names it, and CasADi is not asked to look for more (``cse=True`` asks). What no result needs is not counted.
CasADi writes x · (1/d) as x / d: divisions are more than a program would do, multiplications as many fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..constraints import Constraint
from ..model import Loop, Model
from .arithmetic import casadi
from .catalogue import function

__all__ = ["OperationCount", "count", "count_function"]


@dataclass(frozen=True)
class OperationCount:
    """Scalar operations of an algorithm.

    Attributes:
        additions: and subtractions; a doubling is one.
        multiplications: a square is one.
        divisions: a reciprocal is one.
        roots: square roots.
        trigonometric: sines and cosines.
        other: comparisons and choices. Sign changes are not counted.
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


def count(
    algorithm: str,
    model: Model,
    constraints: Sequence[Constraint | Loop] = (),
    *,
    axes: Literal["world", "link"] = "link",
    iterations: int = 3,
    cse: bool = False,
) -> OperationCount:
    """Count the operations of an algorithm on a model and constraints, as the papers do; the top of the file says how.

    Args:
        algorithm: a name of ``ALGORITHMS``.
        model: the mechanism.
        constraints: of the model, or its loops.
        axes: of the rows; "link" makes the rows of points and welds on one link constant.
        iterations: of proximal algorithms.
        cse: let CasADi look for common subexpressions first.

    Returns:
        the count.

    Raises:
        MissingExtraError: CasADi is not installed.
        UnknownNameError: no algorithm has this name.
        ArgumentError: the algorithm does not take these constraints.

    Examples:
        >>> import delassus as dl
        >>> model = dl.load("iiwa")
        >>> dl.textbook.count("pv-osimr", model, [dl.Weld(model, "link7")]).trigonometric
        12
    """
    return count_function(function(algorithm, model, constraints, coordinates="papers", axes=axes, iterations=iterations, cse=cse))
