"""Pictures of environments, drawn without a graphics card."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from ..model import Model
from ..viewers.render import picture

__all__ = ["check_mode", "drawn"]


def check_mode(render_mode: str | None) -> str | None:
    """Return the render mode if it is supported."""
    if render_mode not in (None, "rgb_array"):
        raise ArgumentError(f"render_mode: expected 'rgb_array' or None, got {render_mode!r}.")
    return render_mode


def drawn(model: Model, q: NDArray[Any]) -> NDArray[np.uint8]:
    """Draw a mechanism: (240, 320, 3) numbers from 0 to 255."""
    return np.round(255 * picture(model, q, width=320, height=240, samples=1)).astype(np.uint8)
