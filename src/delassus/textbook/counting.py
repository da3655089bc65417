"""Operation counts: an algorithm run on CasADi symbols, its scalar operations counted.

Counting follows the PV-OSIMr and constrained-dynamics papers: link frames, including sines, cosines and changes of frame; placements, inertias and rows on links are numbers, so
that their zeros and ones fold as the expression is built; only half of a symmetric matrix is computed; a result used twice is
computed once if the algorithm names it, and CasADi does not look for more (unless ``cse=True``). Operations that no result needs are not counted.
CasADi writes x · (1/d) as x / d: there are more divisions than in a program, and correspondingly fewer multiplications.
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
        additions: additions and subtractions; a doubling counts as one.
        multiplications: multiplications; a square counts as one.
        divisions: divisions; a reciprocal counts as one.
        roots: square roots.
        trigonometric: sines and cosines.
        other: comparisons and selections. Sign changes are not counted.
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
        the count; inputs, outputs, constants and sign changes do not count.
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
    """Count the operations of an algorithm on a model and constraints, as the papers do; see the top of the file.

    Args:
        algorithm: a name of ``ALGORITHMS``.
        model: the mechanism.
        constraints: constraints of the model, or its loops.
        axes: axes of the rows; "link" makes the rows of points and welds on one link constant.
        iterations: number of iterations of proximal algorithms.
        cse: let CasADi eliminate common subexpressions first.

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
