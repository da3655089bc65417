"""Tables of measurements, and the same as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from .trial import Measurement, Section

__all__ = ["as_data", "show_sections", "verdict"]

_ALIKE = 1.05  # ratio of times that are indistinguishable on a busy machine
_KINDS = {"matrix-free": "matrix-free: ", "explicit": "", "approximate": "", "peer": ""}


def show_sections(console: Console, sections: Sequence[Section]) -> None:
    """Print one table per section, with the methods not timed and why, and whether the choice was the fastest."""
    for section in sections:
        console.print()
        timed = [m for m in section.measurements if m.microseconds is not None]
        if timed:
            console.print(_table(section, timed))
        else:
            console.print(f"[italic]{escape(section.title)}[/]{escape(f': {section.reason}' if section.reason else '')}", highlight=False)
        lines = []
        lines += [verdict(section)] if section.choice and section.measurements else []
        reasons: dict[str, list[str]] = {}
        for m in section.measurements:
            if m.microseconds is None:
                reasons.setdefault(m.reason, []).append(_KINDS[m.kind] + m.method)
        lines += [f"not timed: {', '.join(names)} ({reason})" for reason, names in reasons.items()]
        for line in lines:
            console.print(Padding(escape(line), (0, 0, 0, 2), expand=False), highlight=False)


def _table(section: Section, timed: Sequence[Measurement]) -> Table:
    table = Table(title=escape(section.title), box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
    table.add_column("method", no_wrap=True)
    table.add_column("", no_wrap=True)
    turns, notes = any(m.iterations is not None for m in timed), any(m.note for m in timed)
    for column in ("µs", "median", "kB", "error", "operations", *(["iterations"] if turns else [])):
        table.add_column(column, justify="right", no_wrap=True)
    if notes:
        table.add_column("")
    for m in timed:
        auto = ("default" if section.name == "contacts" else "auto") if m.method == section.choice and m.kind == "explicit" else ""
        table.add_row(
            escape(_KINDS[m.kind] + m.method), auto, _number(m.microseconds), _number(m.median), "–" if m.nbytes is None else f"{m.nbytes / 1e3:,.1f}",
            f"{m.error:.0e}", _count(m.operations), *([_count(m.iterations)] if turns else []),
            *([escape(m.note)] if notes else []),
        )  # fmt: skip
    return table


def _count(n: int | None) -> str:
    return "–" if n is None else f"{n:,}"


def _number(x: float | None) -> str:
    return "–" if x is None else f"{x:,.2f}" if x < 100 else f"{x:,.0f}"


def verdict(section: Section) -> str:
    """State the default method, and whether it was the fastest."""
    word = "the default is" if section.name == "contacts" else "auto chooses"
    chosen, fastest = section.chosen, section.fastest
    if chosen is None or fastest is None or chosen.microseconds is None or fastest.microseconds is None:
        return f"{word} {section.choice}, which was not timed"
    if chosen.method == fastest.method:
        return f"{word} {chosen.method}: the fastest here"
    ratio = chosen.microseconds / fastest.microseconds
    if ratio < _ALIKE:
        return f"{word} {chosen.method}: within 5 % of the fastest here, {fastest.method}"
    return f"{word} {chosen.method}: {ratio:.2f} times the time of {fastest.method}, the fastest here"


def as_data(sections: Sequence[Section]) -> dict[str, Any]:
    """Return sections as JSON data."""
    return {
        s.name: {"title": s.title, "reason": s.reason, "choice": s.choice, "fastest": s.fastest.method if s.choice and s.fastest else None, "verdict": verdict(s) if s.choice and s.measurements else ""}
        | {"methods": [asdict(m) for m in s.measurements]}
        for s in sections
    }  # fmt: skip
