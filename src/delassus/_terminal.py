"""Console of the commands."""

from __future__ import annotations

import os
import sys

from rich.console import Console

__all__ = ["console"]

console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120)
