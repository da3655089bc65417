"""The output of an item, and its files."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from ..errors import WriteError
from ..simulator.files import whole_file

__all__ = ["Claim", "Output", "cell", "check_index", "read", "stamp", "write", "write_index"]

Cell = str | int | float | None
TITLE = "# Reproduced: "  # title of the index
_PACKAGES = ("delassus", "numpy", "scipy", "mujoco", "matplotlib", "casadi", "pin")


@dataclass(frozen=True)
class Claim:
    """A paper's statement about its data, whether ours agree, and the numbers that decide."""

    sentence: str
    holds: bool
    numbers: dict[str, float]


@dataclass(frozen=True)
class Output:
    """A table, a figure, or both.

    Attributes:
        title: one-line title.
        columns: names with units; if the paper gives a number, three: paper, ours, ratio.
        rows: cells; None if empty.
        note: agreements and differences, derived from the data.
        claims: claims of the paper, checked.
        data: JSON data beyond the table.
        figure: draws into an empty matplotlib figure.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str
    claims: tuple[Claim, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    figure: Callable[[Any], None] | None = None


# ---- environment ------------------------------------------------------------------------------------------------------------


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    told = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = told.get("model name", platform.processor() or "unknown")
    where = f", family {told['cpu family']}, model {told['model']}" if {"cpu family", "model"} <= told.keys() else ""
    return f"{name}{where}"


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def stamp(quick: bool) -> dict[str, Any]:
    """Return machine, cores, compiler, flags, versions, date, and whether it was a quick run."""
    return {
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}",
        "cores": os.cpu_count(),
        "compiler": _core.compiler,
        "flags": _core.flags,
        "versions": _versions(),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "quick": quick,
    }


def _stamp_line(made: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
    return f"{made['machine']}, {made['cores']} cores; {made['compiler']} {made['flags']}; {versions}; {made['date']}" + (
        "; quick" if made["quick"] else ""
    )


# ---- text -------------------------------------------------------------------------------------------------------------------


def cell(value: Cell) -> str:
    """Return a number with three digits, an integer with all digits, None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if value != 0 and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _markdown_table(columns: Iterable[str], rows: Iterable[Iterable[Cell]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |\n"

    names, table = list(columns), [list(row) for row in rows]
    numeric = [all(not isinstance(row[k], str) for row in table) for k in range(len(names))]
    return line(names) + "|" + "|".join("---:" if n else "---" for n in numeric) + "|\n" + "".join(line(map(cell, row)) for row in table)


def _markdown(record: dict[str, Any], level: int, beside: str) -> str:
    """One item under a heading of this level; ``beside`` is the folder of its picture."""
    name = record["name"].partition("/")[2]
    parts = [f"{'#' * level} {record['name']}: {record['title']}\n", record["note"] + "\n"]
    if record["claims"]:
        claims = (
            f"- {'holds' if c['holds'] else '**does not hold**'}: {c['sentence']} ("
            + ", ".join(f"{k} {cell(v)}" for k, v in c["numbers"].items())
            + ")\n"
            for c in record["claims"]
        )
        parts.append("".join(claims))
    if record["figure"]:
        parts.append(f"![{record['title']}]({beside}{name}.png)\n")
    if record["rows"]:
        parts.append(_markdown_table(record["columns"], record["rows"]))
    parts.append(f"{record['paper']}. {_stamp_line(record['stamp'])}.\n")
    return "\n".join(parts)


def _csv(record: dict[str, Any]) -> str:
    text = io.StringIO()
    text.write(f"# {record['name']}: {record['title']}\n# {_stamp_line(record['stamp'])}\n")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(record["columns"])
    table.writerows(["" if value is None else value for value in row] for row in record["rows"])
    return text.getvalue()


# ---- files ------------------------------------------------------------------------------------------------------------------


def _plain(value: np.generic | np.ndarray) -> Any:
    """NumPy's numbers and arrays as JSON's."""
    return value.tolist()


def _put(path: Path, what: str, content: bytes) -> Path:
    with whole_file(path, what) as file:
        file.write(content)
    return path


def _pictures(path: Path, draw: Callable[[Any], None], foot: str) -> list[Path]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": path.stem,
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with rc_context(settings):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        draw(figure)
        width, height = figure.get_size_inches()
        lines = textwrap.wrap(foot, int(30 * width))
        figure.get_layout_engine().set(rect=(0, (low := 0.07 * (len(lines) + 1) / height), 1, 1 - low))  # type: ignore[call-arg, union-attr]
        figure.text(0.005, 0.03 / height, "\n".join(lines), fontsize=4, color="0.4", va="bottom")
        files = []
        for kind, options in (("png", {"dpi": 120}), ("svg", {"metadata": {"Date": None}})):
            picture = io.BytesIO()
            figure.savefig(picture, format=kind, **options)
            files.append(_put(path.with_suffix(f".{kind}"), "figure", picture.getvalue()))
    return files


def write(path: Path, name: str, paper: str, output: Output, made: dict[str, Any], seconds: float) -> tuple[Path, ...]:
    """Write the files of an output beside ``path``, its JSON, which is written last: if it exists, the others are complete.

    Raises:
        WriteError: a folder or file cannot be written.
    """
    record = {"name": name, "paper": paper, "stamp": made, "seconds": seconds, "figure": output.figure is not None} | {
        key: getattr(output, key) for key in ("title", "columns", "rows", "note", "data")
    }
    text = json.dumps(
        record | {"claims": [asdict(c) for c in output.claims]}, indent=1, ensure_ascii=False, allow_nan=False, default=_plain
    )
    record = json.loads(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"reproduce: no folder {str(path.parent)!r}: {error.strerror or error}.") from error
    path.unlink(missing_ok=True)  # until the new one is complete
    files = [] if output.figure is None else _pictures(path, output.figure, _stamp_line(made))
    files.append(_put(path.with_suffix(".csv"), "table", _csv(record).encode()))
    files.append(_put(path.with_suffix(".md"), "table", _markdown(record, 1, "").encode()))
    files.append(_put(path, "record", text.encode()))
    return tuple(sorted(files))


def read(path: Path) -> dict[str, Any] | None:
    """Return the JSON content of an item: name, paper, stamp, seconds, figure, title, columns, rows, note, claims, data; None if there is none."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record


def check_index(folder: Path) -> None:
    """Check before the computation that ``README.md`` of a folder can be written; an unrelated one is not overwritten.

    Raises:
        WriteError: an unrelated one exists.
    """
    path = folder / "README.md"
    if path.exists() and not path.read_bytes().startswith(TITLE.encode()):
        raise WriteError(f"reproduce: {str(path)!r} is there already, and is not one of ours. Give another folder, with --out.")


def write_index(folder: Path, papers: Iterable[str]) -> Path:
    """Write ``README.md``: every existing item of these papers, in their order, with table and figure."""
    found = [read(path) for paper in papers for path in sorted((folder / paper).glob("*.json"))]
    records = [record for record in found if record is not None]
    claims = [c for record in records for c in record["claims"]]
    parts = [f"{TITLE}{len(records)} tables and figures, {sum(c['holds'] for c in claims)} of {len(claims)} claims hold\n"]
    parts.append("".join(f"- [{r['name']}]({r['name']}.md): {r['title']}\n" for r in records))
    parts += [_markdown(record, 2, record["name"].partition("/")[0] + "/") for record in records]
    return _put(folder / "README.md", "index", "\n".join(parts).encode())
