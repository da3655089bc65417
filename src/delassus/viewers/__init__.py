"""Viewers draw states in a browser or as a video; none computes motion, except ``Play``, which steps a simulator."""

from .play import Play
from .recording import record
from .view import View

__all__ = ["Play", "View", "record"]
