"""The table of a study."""

from __future__ import annotations

import os
from collections import Counter
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._door import unknown
from .._html import table
from ..errors import MissingExtraError
from .dataset import Dataset, sorted_rows
from .picture import picture

if TYPE_CHECKING:
    from pathlib import Path

    from .study import Study

__all__ = ["StudyResult"]

Array = NDArray[Any]


class StudyResult:
    """Rows of a study, read when first used. Read tables larger than memory with ``pyarrow.dataset`` from :attr:`path`.

    Columns: ``row``; those of the study's table; metrics, null if a run failed; ``status``: "solved" if all steps were, "unsolved" if some were not, "unstable", "singular" or
    "failed" (MuJoCo failed, or there were too many contacts) if the run ended early; ``unsolved``: number of steps that were not solved; ``unstable``: the step at which
    the run ended early, else −1.
    """

    def __init__(self, study: Study, dataset: Dataset | None, tables: list[Any]) -> None:
        self.study = study
        self._dataset, self._tables = dataset, tables

    @property
    def path(self) -> Path | None:
        """Folder of the results; None if they are only in memory."""
        return None if self._dataset is None else self._dataset.path

    @cached_property
    def table(self) -> Any:
        """All rows as a ``pyarrow.Table``."""
        return sorted_rows(self._tables) if self._dataset is None else self._dataset.read()

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.study.rows

    def column(self, name: str) -> Array:
        """Return a column: (rows,) or (rows, k); NaN where a run failed.

        Args:
            name: column name.
        """
        if name not in self.table.column_names:
            raise unknown("column", name, self.table.column_names)
        column = self.table.column(name).combine_chunks()
        width = getattr(column.type, "list_size", None)
        if width is None:
            return np.asarray(column.to_numpy(zero_copy_only=False))
        values = column.values.to_numpy(zero_copy_only=False)
        return np.asarray(values).reshape(len(column), width)

    def to_pandas(self) -> Any:
        """Return all rows as a ``pandas.DataFrame``.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import_module("pandas")
        except ImportError:
            raise MissingExtraError("pandas is not installed: pip install pandas. column(name) gives NumPy arrays without it.") from None
        return self.table.to_pandas()

    def counts(self) -> dict[str, int]:
        """Return the number of runs per status."""
        return dict(sorted(Counter(map(str, self.column("status").tolist())).items()))

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw every metric against every varied number: at most five metrics and four numbers.

        Args:
            path: also write the figure there; its suffix gives the format (.png, .svg, .pdf).

        Returns:
            A ``matplotlib.figure.Figure``.
        """
        return picture(self, path)

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        metrics = [(name, self.column(name)) for name in self.study.metrics if len(self)]
        where = [] if self.path is None else [("folder", str(self.path))]
        counts = ", ".join(f"{n} {word}" for word, n in self.counts().items())
        return table(f"StudyResult of {self.study.model.name}", [("rows", len(self)), ("statuses", counts), *metrics, *where])

    def __repr__(self) -> str:
        return f"<StudyResult of {self.study.model.name!r}: {len(self)} rows{'' if self.path is None else f' in {str(self.path)!r}'}>"
