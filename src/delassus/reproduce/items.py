"""Reproducible items, by name, and how to make them."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from .._door import unknown
from ..errors import ArgumentError, MissingExtraError
from .outputs import Output, read, stamp, write

__all__ = ["PAPERS", "Item", "Made", "all_items", "find", "make"]

PAPERS = {
    "matrix-free": "matrix_free",
    "osim": "osim",
    "constrained": "constrained",
    "lcp": "complementarity",
    "loops": "loops",
}  # nickname: module
_PACKAGES = {"symbolic": "casadi", "robots": "example_robot_data", "peers": "pinocchio"}  # package that an extra installs


@dataclass(frozen=True)
class Item:
    """A table or a figure of a paper.

    Attributes:
        name: nickname of the paper, a slash, and the table or figure.
        paper: authors, title, venue and year.
        title: one-line title.
        make: function of ``quick`` and a progress callback, which takes the completed fraction.
        needs: extras of this package.
        short: True if the last part of its name identifies it.
    """

    name: str
    paper: str
    title: str
    make: Callable[[bool, Callable[[float], object]], Output]
    needs: tuple[str, ...] = ()
    short: bool = True

    @property
    def missing(self) -> tuple[str, ...]:
        """Required extras that are not installed."""
        return tuple(extra for extra in self.needs if importlib.util.find_spec(_PACKAGES[extra]) is None)


def _of_paper(nickname: str) -> tuple[Item, ...]:
    module = import_module(f".{PAPERS[nickname]}", __package__)
    items: tuple[Item, ...] = module.ITEMS
    return items


def all_items() -> tuple[Item, ...]:
    """Return every item, paper by paper."""
    return tuple(item for nickname in PAPERS for item in _of_paper(nickname))


def find(name: str) -> tuple[Item, ...]:
    """Return the items that a name stands for, importing no more papers than necessary.

    Args:
        name: name of an item ("osim/fig-3", also "osim-fig-3"), name of a paper ("osim": all items), or the last part of an item's name if
            no other item has it; tables of "lcp" need their full name.

    Raises:
        UnknownNameError: nothing has this name; the message lists the available names.
        ArgumentError: several items have this last part.
    """
    if name in PAPERS:
        return _of_paper(name)
    for nickname in PAPERS:
        if name.startswith((f"{nickname}/", f"{nickname}-")):
            items, full = _of_paper(nickname), f"{nickname}/{name[len(nickname) + 1 :]}"
            found = tuple(item for item in items if item.name == full)
            if not found:
                raise unknown("item", name, [item.name for item in items])
            return found
    found = tuple(item for item in all_items() if item.short and item.name.partition("/")[2] == name)
    if len(found) > 1:
        raise ArgumentError(f"item: {name!r} is in several papers: {', '.join(item.name for item in found)}. Give the whole name.")
    if not found:
        raise unknown("item or paper", name, [*PAPERS, *(item.name for item in all_items())])
    return found


class Made(NamedTuple):
    """Result of making an item: its record (see :func:`read`), its files, and whether it existed before."""

    record: dict[str, Any]
    files: tuple[Path, ...]
    before: bool


def make(
    item: Item, folder: Path, *, quick: bool = False, force: bool = False, progress: Callable[[float], object] = lambda share: None
) -> Made:
    """Make an item and write it, or return the existing one written by this version on this machine.

    Args:
        item: one of :func:`find`.
        folder: output folder of all papers; the item's files are ``folder/paper/item.*``.
        quick: fewer repeats and smaller sizes.
        force: make it again if it exists.
        progress: called with the completed fraction.

    Raises:
        MissingExtraError: an extra is not installed.
        WriteError: a file cannot be written.
    """
    if item.missing:
        extras = ",".join(item.missing)
        raise MissingExtraError(f'{item.name}: needs the extra {extras}: pip install "delassus[{extras}]".')
    path = folder / f"{item.name}.json"
    now = stamp(quick)
    record = None if force else read(path)
    if record is not None and {**record["stamp"], "date": None} == {**now, "date": None}:
        files, before = tuple(sorted(path.parent.glob(f"{path.stem}.*"))), True
    else:
        start = time.perf_counter()
        output = item.make(quick, progress)
        files, before = write(path, item.name, item.paper, output, now, time.perf_counter() - start), False
        record = read(path)
        assert record is not None
    progress(1.0)
    return Made(record, files, before)
