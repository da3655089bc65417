"""Viewers draw states in a browser; they compute nothing."""

from ..simulator.simulator import shown_by
from .recording import record
from .view import View

__all__ = ["View", "record"]

shown_by(record=record, view=View)
