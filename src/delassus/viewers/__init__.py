"""Viewers draw states in a browser; they compute nothing."""

from .recording import record
from .view import View

__all__ = ["View", "record"]
