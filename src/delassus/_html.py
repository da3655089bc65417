"""Short tables for notebooks: a value in a few rows, never a dump of its arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

__all__ = ["result_table", "table"]

_FEW = 6  # maximum size of an array that is written out
_LEFT_OUT = {"history", "constraint_forces", "model"}
_CELL = "text-align:left;padding:0.1em 0.8em 0.1em 0"


def _short(value: Any) -> str:
    """Write a value in at most one line."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        if value.dtype.kind in "US":
            words, counts = _counted(value.ravel().tolist())
            return ", ".join(f"{n} {word}" for word, n in zip(words, counts, strict=True))
        if value.dtype.kind == "b":
            return f"{int(value.sum())} of {value.size}"
        if value.size == 0:
            return f"none, shape {value.shape}"
        if value.size <= _FEW:
            return "[" + ", ".join(f"{x:.4g}" for x in value.ravel().tolist()) + "]"
        return f"shape {value.shape}, from {value.min():.4g} to {value.max():.4g}"
    if is_dataclass(value):
        return ", ".join(f"{part.name} {_short(getattr(value, part.name))}" for part in fields(value) if not part.name.startswith("_"))
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "…"


def _counted(words: list[str]) -> tuple[list[str], list[int]]:
    """Distinct words and their counts, most frequent first."""
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    order = sorted(counts, key=lambda word: -counts[word])
    return order, [counts[word] for word in order]


def table(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """Return a table of names and values in HTML; values are shortened and escaped."""
    body = "".join(
        f'<tr><th style="{_CELL};font-weight:500;opacity:0.7">{escape(name)}</th><td style="{_CELL}">{escape(_short(value))}</td></tr>'
        for name, value in rows
    )
    return f'<table style="border-collapse:collapse"><caption style="text-align:left;font-weight:600;padding-bottom:0.3em">{escape(title)}</caption>{body}</table>'


def result_table(result: Any) -> str:
    """Return a table of the fields of a result: its status first, arrays by their shapes and ranges."""
    names = [part.name for part in fields(result) if not part.name.startswith("_") and part.name not in _LEFT_OUT]
    names.sort(key=lambda name: name != "status")
    shown = [(name, getattr(result, name)) for name in names]
    return table(
        type(result).__name__, [(name, value) for name, value in shown if value is not None and not (isinstance(value, str) and not value)]
    )
