"""Progress of a study."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["RowBar"]


class RowBar:
    """A progress bar with rows, rows per second and remaining time; nothing without a terminal.

    Args:
        shown: show the bar.
        title: text before the bar.
        rows: number of rows of the study.
        finished: number of rows finished earlier.
    """

    def __init__(self, shown: bool, title: str, rows: int, finished: int) -> None:
        self.shown, self.title, self.rows, self.finished = shown, title, rows, finished
        self.progress: Any = None

    def __enter__(self) -> Callable[[int], None]:
        if not self.shown:
            return lambda _: None
        from rich import progress as bars

        class Rate(bars.ProgressColumn):
            def render(self, task: Any) -> str:
                return f"{task.speed:,.0f} rows/s" if task.speed else ""

        progress = bars.Progress(
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            Rate(),
            bars.TimeRemainingColumn(),
            transient=True,
        )
        if not progress.console.is_terminal:
            return lambda _: None
        progress.start()
        self.progress, task = progress, progress.add_task(self.title, total=self.rows, completed=self.finished)
        return lambda rows: progress.advance(task, rows)

    def __exit__(self, *_: object) -> None:
        if self.progress is not None:
            self.progress.stop()
