"""Instructions of every verb of the core, by callgrind: measured, kept in benchmarks/counts.json, and compared with what is kept there.

Counts repeat to a few instructions in a million on a given compiler, flags and C library, whatever else the machine does. They are not times: a cache miss or a
division counts like an addition. valgrind does not know AVX-512, so the core is built for ARCHITECTURE here and not for the machine.
"""

import json
import platform
import re
import subprocess
import tempfile
from pathlib import Path

ARCHITECTURE = "x86-64-v3"  # AVX2 and FMA; other processors: what the compiler takes for plain
KEPT = Path(__file__).resolve().parents[1] / "counts.json"
GROWTH = 0.03  # more is a warning
SAME = ("machine", "compiler", "flags", "libc")  # without which counts cannot be compared


def architecture():
    return ARCHITECTURE if platform.machine() == "x86_64" else ""


def instructions_of(dump):
    """Number of instructions that a file of callgrind's has in all."""
    found = re.search(r"^totals: (\d+)$", dump, re.MULTILINE)
    if not found:
        raise ValueError("callgrind wrote no totals")
    return int(found[1])


def measure(program, scenes):
    """Run the program under callgrind: what it was made with, and instructions per call, by scene and task."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind",
            "--tool=callgrind",
            "--toggle-collect=counted",
            "--dump-after=counted",
            f"--callgrind-out-file={folder}/out",
            str(program),
            str(scenes),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            raise SystemExit("counting needs valgrind (Debian: apt install valgrind)") from None
        if done.returncode:
            raise SystemExit(f"{program} under valgrind failed:\n{done.stderr}")
        return read(done.stdout, [instructions_of(Path(f"{folder}/out.{k + 1}").read_text()) for k in range(done.stdout.count("count\t"))])


def read(said, totals):
    """Make one table of what the program said, a line a count, and of callgrind's totals in the same order."""
    facts, counts = {"machine": platform.machine()}, {}
    totals = iter(totals)
    for word, *rest in (line.split("\t") for line in said.splitlines()):
        if word == "fact":
            facts[rest[0]] = rest[1]
        else:
            scene, task, calls = rest
            counts.setdefault(scene, {})[task] = next(totals) // int(calls)
    return {**facts, "valgrind": valgrind_version(), "unit": "instructions per call", "counts": counts}


def valgrind_version():
    return subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout.strip().removeprefix("valgrind-")


def compare(measured, kept, growth=GROWTH):
    """Lines that say how counts differ from those kept, and whether all is well: comparable, none missing, none grown by more than ``growth``."""
    other = [key for key in SAME if measured[key] != kept[key]]
    if other:
        lines = [f"{key}: {measured[key]!r} here, {kept[key]!r} where the counts were kept" for key in other]
        return ["The counts cannot be compared with those kept.", *lines], False
    lines, well = [], True
    for scene, tasks in kept["counts"].items():
        for task, before in tasks.items():
            now = measured["counts"].get(scene, {}).get(task)
            if now is None:
                lines.append(f"MISSING  {scene}, {task}: no longer counted")
                well = False
            elif now > before * (1 + growth):
                lines.append(f"WARNING  {scene}, {task}: {before:,} instructions became {now:,}, {now / before - 1:+.1%}")
                well = False
            elif now < before * (1 - growth):
                lines.append(f"better   {scene}, {task}: {before:,} instructions became {now:,}, {now / before - 1:+.1%}")
    for scene, tasks in measured["counts"].items():
        lines += [
            f"new      {scene}, {task}: {now:,} instructions" for task, now in tasks.items() if task not in kept["counts"].get(scene, {})
        ]
    return [*lines, f"No count grew by more than {growth:.0%}."] if well else lines, well


def table(measured):
    """Markdown: a row a task, a column a scene."""
    counts = measured["counts"]
    tasks = list(dict.fromkeys(task for scene in counts.values() for task in scene))
    lines = [f"| instructions per call | {' | '.join(counts)} |", "|---" * (len(counts) + 1) + "|"]
    lines += [f"| {task} | {' | '.join(f'{scene[task]:,}' if task in scene else '' for scene in counts.values())} |" for task in tasks]
    return "\n".join(lines)


def keep(measured, path=KEPT):
    Path(path).write_text(json.dumps(measured, indent=1) + "\n")


def kept(path=KEPT):
    return json.loads(Path(path).read_text())
