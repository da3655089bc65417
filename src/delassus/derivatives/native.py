"""The native classes behind the functions of this module."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..dynamics import Workspace, not_a_model, run
from ..model import Model

__all__ = ["BATCH", "SINGLE", "model_of", "run_single"]

SINGLE: dict[np.dtype[Any], Any] = {np.dtype(np.float64): _core.Derivatives64, np.dtype(np.float32): _core.Derivatives32}
BATCH: dict[np.dtype[Any], Any] = {np.dtype(np.float64): _core.BatchDerivatives64, np.dtype(np.float32): _core.BatchDerivatives32}


def run_single(where: Model | Workspace, method: str, *arguments: Any) -> Any:
    """Call a method for a single state."""
    return run(where, method, *arguments, natives=SINGLE)


def model_of(where: Model | Workspace) -> Model:
    """Return the model itself, or that of a workspace."""
    model = where.model if isinstance(where, Workspace) else where
    if not isinstance(model, Model):
        raise not_a_model(model)
    return model
