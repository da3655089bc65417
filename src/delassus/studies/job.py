"""What workers need of a study besides the values of its rows: everything that all rows share."""

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
    """Target of a column: a parameter, q, v or control; the whole array, or one number of it.

    Attributes:
        array: name of the array.
        index: index of the number; empty for the whole array.
    """

    array: str
    index: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Job:
    """A study without its table.

    Attributes:
        model: model of all rows.
        targets: name of a column → its target.
        metrics: name → function of a run.
        keyframe: keyframe to which worlds are reset before their initial states are set, for its activations and mocap bodies.
        initial: initial (q, v) of all rows, or a function of a row.
        controls: (nu,), (steps, nu), a function of (time, q, v), or None.
        steps: number of steps of each run; every: number of steps between frames.
        options: simulator options.
        seed: seed of the random numbers that ``initial`` may draw.
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
    """Return a job as bytes, by cloudpickle if installed, which also takes functions defined in notebooks or other functions.

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
    """Return a digest of a function: name, code, defaults and closure; for other callables of their pickle."""
    code = getattr(function, "__code__", None)
    if code is None:
        return hashlib.sha256(packed(function)).hexdigest()[:32]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    content = (function.__qualname__, *_code(code), *map(_value, (function.__defaults__, function.__kwdefaults__, *cells)))
    return hashlib.sha256(repr(content).encode()).hexdigest()[:32]


def _code(code: CodeType) -> tuple[Any, ...]:
    return (code.co_code, code.co_names, *(_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts))


def _value(value: Any) -> str:
    """Return a text for a default, or for a value in a function's closure."""
    if callable(value) and hasattr(value, "__code__"):
        return function_digest(value)
    if isinstance(value, ModuleType) or value is None:
        return repr(value)
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except Exception:
        return re.sub(" at 0x[0-9a-f]+", "", repr(value))
