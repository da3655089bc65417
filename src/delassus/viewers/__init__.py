"""Viewers draw states in a browser or as a film; all but ``Play``, which steps a simulator, compute no motion."""

from .play import Play
from .recording import record
from .view import View

__all__ = ["Play", "View", "record"]
