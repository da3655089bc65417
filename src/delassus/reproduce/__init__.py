"""The papers' tables and figures, reproduced on this machine: ``delassus reproduce`` and the code it runs.

Each paper is a file with its ``ITEMS``; an item makes an :class:`Output`, which :func:`make` writes as Markdown, CSV, JSON, PNG and SVG.
"""

from .items import PAPERS, Item, Made, all_items, find, make
from .outputs import Claim, Output, check_index, read, write_index

__all__ = ["PAPERS", "Claim", "Item", "Made", "Output", "all_items", "check_index", "find", "make", "read", "write_index"]
