"""What workers need of a study besides the values of its rows: everything that is the same in all of them."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any

from numpy.typing import NDArray

from ..errors import ArgumentTypeError
from ..model import Model
from .metrics import Metric

__all__ = ["Job", "Target", "function_digest", "packed"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Target:
    """What a column is of: a parameter, q, v or control; all of it, or one number of it.

    Attributes:
        array: its name.
        index: of the number; empty for all.
    """

    array: str
    index: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Job:
    """A study without its table.

    Attributes:
        model: of all rows.
        targets: name of a column → what it is of.
        metrics: name → function of a run.
        keyframe: that worlds are reset to before they are put where they start, for its activations and mocap bodies.
        initial: (q, v) that rows start from, or a function of a row.
        controls: (nu,), (steps, nu), a function of (time, q, v), or none.
        steps: of every run; every: steps from one frame to the next.
        options: of the simulator.
        seed: of random numbers that ``initial`` may draw.
    """

    model: Model
    targets: Mapping[str, Target]
    metrics: Mapping[str, Metric]
    keyframe: str | None
    initial: tuple[Array, Array] | Callable[[Any], Any]
    controls: Array | Callable[[float, Array, Array], Any] | None
    steps: int
    every: int
    options: Mapping[str, Any]
    seed: int


def packed(job: Any) -> bytes:
    """Return a job as bytes, by cloudpickle where that is installed: it also takes functions of a notebook, or inside of others.

    Raises:
        ArgumentTypeError: a function cannot be sent to another process.
    """
    try:
        packer: Any = import_module("cloudpickle")
    except ImportError:
        packer = pickle
    try:
        return bytes(packer.dumps(job))
    except Exception as error:
        raise ArgumentTypeError(
            f"metrics, initial, controls: a function cannot be sent to another process: {error}. Define it at the top level of a module, or install cloudpickle."
        ) from None


def function_digest(function: Any) -> str:
    """Return a digest of a function: name, code, defaults and closure; of other callables their pickle."""
    code = getattr(function, "__code__", None)
    if code is None:
        return hashlib.sha256(packed(function)).hexdigest()[:32]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    content = (function.__qualname__, *_code(code), *map(_value, (function.__defaults__, function.__kwdefaults__, *cells)))
    return hashlib.sha256(repr(content).encode()).hexdigest()[:32]


def _code(code: CodeType) -> tuple[Any, ...]:
    return (code.co_code, code.co_names, *(_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts))


def _value(value: Any) -> str:
    """Return what stands for a default, or for a value that a function closes over."""
    if callable(value) and hasattr(value, "__code__"):
        return function_digest(value)
    if isinstance(value, ModuleType) or value is None:
        return repr(value)
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except Exception:
        return re.sub(" at 0x[0-9a-f]+", "", repr(value))
