"""Files that are either complete or absent, and never overwrite a file that was not named."""

from __future__ import annotations

import io
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import ArgumentError, WriteError

__all__ = ["named_path", "new_figure", "private_file", "save_figure", "whole_file"]


def named_path(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return a valid path, or raise an error that names the argument."""
    target = Path(os.fsdecode(path))
    if not target.name:
        raise ArgumentError(f"{name}: expected the name of a file, got {str(target)!r}, which is a folder.")
    try:
        if b"\0" not in os.fsencode(target):
            return target
    except UnicodeEncodeError:
        pass
    raise ArgumentError(f"{name}: {str(target)!r} cannot be the name of a file: it has characters that this system cannot write.")


def private_file(target: Path, ending: str) -> Path:
    """Make an empty hidden file beside ``target`` with a new name: ``.NAME.xxxxxxxx.ENDING``.

    Raises:
        OSError: the folder is missing, or cannot be written to.
    """
    while True:
        path = target.with_name(f".{target.name[:180]}.{secrets.token_hex(4)}.{ending}")
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            return path


@contextmanager
def whole_file(path: str | os.PathLike[str], what: str) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name only when it is complete; until then, and after an error, an existing file is unchanged.

    Args:
        path: path of the file.
        what: description of its content, for error messages.

    Raises:
        WriteError: the folder is missing, the disk is full, …
    """
    target = named_path(path)
    part: Path | None = None
    try:
        part = private_file(target, "part")
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        state = "is as it was before" if target.exists() else "was not written"
        raise WriteError(f"{what}: {str(target)!r} {state}: {error.strerror or error}.") from error
    finally:
        if part is not None:
            with suppress(OSError):
                part.unlink()


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a matplotlib figure; the suffix of the path gives the format (.png, .svg, .pdf).

    Raises:
        ArgumentError: matplotlib does not support this format.
        WriteError: the folder is missing, the disk is full, …
    """
    kind = Path(path).suffix[1:] or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise ArgumentError(f"path: expected a picture such as .png, .svg or .pdf, got {os.fspath(path)!r}.")
    with whole_file(path, "figure") as file:
        figure.savefig(file, dpi=130, format=kind)


def new_figure(**options: Any) -> Any:
    """Return an empty matplotlib figure.

    Where the caller works with pyplot, it is one of pyplot's, in the caller's backend: ``plt.show()`` shows it. Otherwise notebooks show it as a
    picture, and its ``show`` loads pyplot and opens a window; a figure that is only saved needs no backend.
    """
    from matplotlib.figure import Figure

    if loaded := sys.modules.get("matplotlib.pyplot"):
        return loaded.figure(**options)

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            drawn = io.BytesIO()
            self.savefig(drawn, format="png", dpi=90)
            return drawn.getvalue()

        def show(self, warn: bool = True) -> None:
            """Open a window."""
            if self.canvas.manager is None:
                from matplotlib import pyplot

                window = pyplot.figure()
                pyplot.close(window)
                type(window.canvas).new_manager(self, window.number)
            super().show(warn)

    return Picture(**options)
