"""Results on disk: a folder of Parquet files, each complete and with some of the rows, and the identity of their study.

    study.parquet/
        _study.json                      identity of the study, and its columns
        part-000000000000-1a2b3c4d.parquet   rows of some chunks, listed in its metadata

A part gets its name only when it is complete, so a killed process leaves no partial file. Readers of Parquet datasets ignore names that begin with ``_`` or ``.``.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BusyError, DatasetError, MissingExtraError, WriteError
from ..simulator.files import named_path, whole_file

__all__ = ["Dataset", "Ranges", "arrow", "table_of"]

Array = NDArray[Any]
Ranges = list[tuple[int, int]]  # of rows, from first to one beyond the last, in order, separated by gaps

_IDENTITY, _ROWS = b"delassus.study", b"delassus.rows"


def arrow() -> tuple[Any, Any]:
    """Return ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError(
            'pyarrow is not installed, and studies keep their tables with it: pip install "delassus[studies]".'
        ) from None


def table_of(columns: Mapping[str, Array]) -> Any:
    """Return columns as a ``pyarrow.Table``: one number per row as it is, arrays as lists of fixed length, NaN as null."""
    pa, _ = arrow()

    def column(values: Array) -> Any:
        if values.dtype.kind == "U":
            return pa.array(values.tolist(), pa.string())
        flat = pa.array(np.ascontiguousarray(values).reshape(-1), from_pandas=True)
        return flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, int(np.prod(values.shape[1:])))

    return pa.table({name: column(values) for name, values in columns.items()})


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return sorted ranges, merging those that touch or overlap."""
    found: Ranges = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        elif start < stop:
            found.append((start, stop))
    return found


def complement(ranges: Ranges, rows: int) -> Ranges:
    """Return the rows from 0 to ``rows`` that are in none of the ranges."""
    ends = [0, *(end for pair in ranges for end in pair), rows]
    return [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=True) if a < b]


class Dataset:
    """A folder of parts of one study.

    Args:
        path: path of the folder, created if missing.
        identity: identity of the study: name → digest. A folder with another one is refused.
        rows: number of rows of the whole study.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, str], rows: int) -> None:
        self.path, self.identity, self.rows = named_path(path), dict(identity), rows
        self.label = json.dumps(self.identity, sort_keys=True).encode()
        self._token = secrets.token_hex(4)

    @contextmanager
    def opened(self, *, resume: bool) -> Iterator[Dataset]:
        """Create the folder, or check that it belongs to this study, and lock out other processes.

        Raises:
            DatasetError: it belongs to another study; or it has rows already, and ``resume`` is False.
            BusyError: another process runs this study.
            WriteError: the folder cannot be written to.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / "_lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise WriteError(f"path: {str(self.path)!r} cannot be written to: {error.strerror or error}.") from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BusyError(f"path: another process writes to {str(self.path)!r}. Wait for it, or give another path.") from None
            self._check_folder()
            if not resume and self.parts():
                raise DatasetError(
                    f"path: {str(self.path)!r} has rows already. Remove it, give another path, or continue with resume=True."
                )
            with whole_file(self.path / "_study.json", "identity of the study") as file:
                file.write(json.dumps({"identity": self.identity, "rows": self.rows}, indent=2).encode())
            yield self
        finally:
            os.close(lock)

    def _check_folder(self) -> None:
        """Refuse a folder with unrelated files, or of another study."""
        names = {entry.name for entry in self.path.iterdir() if not entry.name.startswith(".")} - {"_lock"}
        if "_study.json" not in names:
            if names:
                raise DatasetError(f"path: {str(self.path)!r} is not a study: it has {', '.join(sorted(names)[:5])}. Give another path.")
            return
        try:
            found = json.loads((self.path / "_study.json").read_bytes())["identity"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"path: {str(self.path / '_study.json')!r} cannot be read: {error}.") from None
        if found != self.identity:
            differ = sorted(key for key in {*found, *self.identity} if found.get(key) != self.identity.get(key))
            raise DatasetError(
                f"path: {str(self.path)!r} belongs to another study: its {', '.join(differ)} differ{'s' if len(differ) == 1 else ''}. Give another path."
            )

    def parts(self) -> list[Path]:
        """Return the files of all parts, in the order of their first rows."""
        return sorted(self.path.glob("part-*.parquet"))

    def _part_rows(self, path: Path) -> list[tuple[int, int]]:
        """Rows of a part, from its metadata."""
        pa, parquet = arrow()
        try:
            meta = parquet.read_schema(path).metadata or {}
            if meta.get(_IDENTITY) != self.label:
                raise DatasetError(f"path: {str(path)!r} belongs to another study. Move it away.")
            return [(int(a), int(b)) for a, b in json.loads(meta[_ROWS])]
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            if isinstance(error, DatasetError):
                raise
            raise DatasetError(f"path: {str(path)!r} cannot be read: {error}. Move it away; its rows are then run again.") from None

    def finished(self) -> Ranges:
        """Return the rows that are finished.

        Raises:
            DatasetError: a part cannot be read, belongs to another study, or repeats rows of another part.
        """
        every = [(pair, path) for path in self.parts() for pair in self._part_rows(path)]
        every.sort()
        for ((_, stop), first), ((start, _), second) in pairwise(every):
            if start < stop:
                raise DatasetError(f"path: row {start} is in {first.name!r} and in {second.name!r}. Move one of them away.")
        return union(pair for pair, _ in every)

    def write(self, chunks: list[tuple[tuple[int, int], Any]]) -> None:
        """Write a part.

        Args:
            chunks: (first, one beyond the last) row and the table of each chunk.

        Raises:
            WriteError: the disk is full, …; parts written earlier are kept.
        """
        pa, parquet = arrow()
        chunks = sorted(chunks, key=lambda chunk: chunk[0])
        table = pa.concat_tables(table for _, table in chunks).combine_chunks()
        ranges = json.dumps(union(pair for pair, _ in chunks)).encode()
        target = self.path / f"part-{chunks[0][0][0]:012d}-{self._token}.parquet"
        with whole_file(target, f"{table.num_rows} rows of a study") as file:
            parquet.write_table(table.replace_schema_metadata({_IDENTITY: self.label, _ROWS: ranges}), file)

    def read(self) -> Any:
        """Return all finished rows as one ``pyarrow.Table``, sorted by row number."""
        _, parquet = arrow()
        tables = [parquet.read_table(path).replace_schema_metadata(None) for path in self.parts()]
        return sorted_rows(tables) if tables else None


def sorted_rows(tables: list[Any]) -> Any:
    """Return tables joined into one, sorted by row number."""
    pa, _ = arrow()
    table = pa.concat_tables(tables)
    order = np.argsort(table.column("row").to_numpy(), kind="stable")
    return table.take(pa.array(order)).combine_chunks()
