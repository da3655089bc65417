"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import WriteError

__all__ = ["whole_file"]


@contextmanager
def whole_file(path: str | os.PathLike[str], what: str) -> Iterator[BinaryIO]:
    """Open a file to write that takes its name only when it is complete; until then, and after an error, what had the name before stays.

    Args:
        path: where the file shall be.
        what: it holds, for the error.

    Raises:
        WriteError: the folder is missing, the disk is full, …
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        state = "is as it was before" if target.exists() else "was not written"
        raise WriteError(f"{what}: {str(target)!r} {state}: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            part.unlink()
