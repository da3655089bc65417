"""Export, build and run the native benchmarks: our core and Pinocchio's headers in one binary; or count instructions of our core alone.

Contenders take turns within a program. A row has the best, the median, the 10th and the 90th percentile of its samples, and the error of its result.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = {
    "tree": "tree_dynamics",
    "operator": "delassus_operator",
    "explicit": "explicit_matrices",
    "loops": "explicit_loops",
    "dynamics": "constrained_dynamics",
    "derivatives": "tree_derivatives",
    "constrained-derivatives": "constrained_derivatives",
}
TOGETHER = {"derivatives": ("derivatives", "constrained-derivatives")}


def build(folder, target, **settings):
    """Build one program in a folder of its own kind and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"DELASSUS_BENCHMARKS": "ON", "Python_EXECUTABLE": sys.executable, "CMAKE_BUILD_TYPE": "Release", **settings}
    steps = (
        ["cmake", "-S", str(ROOT), "-B", str(folder), *(f"-D{key}={value}" for key, value in settings.items())],
        ["cmake", "--build", str(folder), "--target", target],
    )
    for command in steps:
        if subprocess.run(command, stdout=sys.stderr).returncode:
            sys.exit(f"{' '.join(command)} failed")
    return folder / "benchmarks" / "native" / target


def names_of(kinds):
    """Names of all that some benchmarks are run on."""
    import export  # needs delassus, which --help does not

    return [name for kind in kinds for group in export.groups(kind) for name in group]


def export(kind, folder, only=None):
    """Write the robots of a benchmark into the folder, a file a group."""
    import export

    groups = export.groups(kind)
    print(f"exporting {kind}", file=sys.stderr)
    paths = []
    for group in [[only]] if only else groups:
        paths.append(folder / f"{kind}-{len(paths)}.txt")
        export.write(kind, paths[-1], group)
    return paths


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def ratios(rows):
    """By task, for every robot that both sides have: Pinocchio's fastest over our fastest, of bests and of medians, and (p90 - p10) / median of both."""
    fastest = {}
    for row in rows:
        key = row["task"], row["name"], row["side"]
        if key not in fastest or row["best"] < fastest[key]["best"]:
            fastest[key] = row
    tasks = {}
    for (task, name, side), ours in fastest.items():
        theirs = fastest.get((task, name, "Pinocchio"))
        if side == "delassus" and theirs:
            spread = [(r["p90"] - r["p10"]) / r["median"] for r in (ours, theirs)]
            tasks.setdefault(task, []).append((theirs["best"] / ours["best"], theirs["median"] / ours["median"], *spread))
    return tasks


def summary(rows):
    """Markdown: a row a task, geometric means of ratios with the least, and the spread."""
    lines = [
        "| task | robots | ratio of bests: mean | least | of medians: mean | least | spread of ours | of Pinocchio's |",
        "|---" * 8 + "|",
    ]
    tasks = ratios(rows)
    if len(tasks) > 1:
        tasks["all"] = [entry for entries in tasks.values() for entry in entries]
    for task, entries in tasks.items():
        bests, medians, ours, theirs = zip(*entries, strict=True)
        cells = [f"{x:.2f}" for values in (bests, medians) for x in (math.exp(statistics.fmean(map(math.log, values))), min(values))]
        cells += [f"{statistics.median(x):.0%}" for x in (ours, theirs)]
        lines.append(f"| {task} | {len(entries)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def run(kind, arguments, folder):
    """Run one benchmark: its exit code, what it wrote as JSON, its tables."""
    program = build(folder, PROGRAMS[kind])
    worst, result, text = 0, {"rows": []}, ""
    for robots in export(kind, folder, arguments.only):
        with tempfile.TemporaryDirectory() as place:
            out, tables = Path(place) / "json", Path(place) / "markdown"
            code = subprocess.run([program, robots, "--json", out, "--markdown", tables, "--repeats", str(arguments.repeats)]).returncode
            if not out.exists():
                sys.exit(code or 2)
            worst = max(worst, code)
            made = json.loads(out.read_text())
            result = {**made, "rows": result["rows"] + made["rows"]}
            text += tables.read_text()
    return worst, result, text


def benchmarks(arguments):
    """Run what was asked for, print it, write it."""
    made = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": commit(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
    }
    made |= {"python": platform.python_version(), "programs": {}}
    texts, worst = [], 0
    kinds = list(PROGRAMS) if arguments.what == "all" else list(TOGETHER.get(arguments.what, [arguments.what]))
    if arguments.only and arguments.only not in names_of(kinds):
        sys.exit(f"--only: {arguments.only!r} is none of {', '.join(names_of(kinds))}")
    for kind in kinds:
        if arguments.only and arguments.only not in names_of([kind]):
            continue
        code, result, tables = run(kind, arguments, arguments.build)
        worst = max(worst, code)
        made |= {key: result.pop(key) for key in ("cpu", "compiler", "flags", "pinocchio", "eigen")}
        made["programs"][kind] = result
        text = f"## {kind}\n\n{summary(result['rows'])}\n\n{tables}"
        print(f"\n{summary(result['rows'])}", flush=True)
        texts.append(text)
    facts = "\n".join(f"- {key}: {value}" for key, value in made.items() if key != "programs")
    return worst, made, f"{facts}\n\n" + "\n".join(texts)


def counts(arguments):
    """Count instructions; keep them or compare them with those kept."""
    import instructions

    arch = instructions.architecture()
    folder = arguments.build / "counts"
    print(f"built for {arch or 'any processor'}: valgrind does not know AVX-512", file=sys.stderr)
    measured = instructions.measure(build(folder, "instructions", DELASSUS_ARCH=arch), *export("counts", folder))
    text, well = instructions.table(measured), True
    print(text)
    if arguments.keep:
        instructions.keep(measured)
    elif arguments.check:
        lines, well = instructions.compare(measured, instructions.kept())
        print("\n" + "\n".join(lines))
    return int(arguments.strict and not well), {"commit": commit(), **measured}, text


def main():
    parser = argparse.ArgumentParser(prog="benchmarks/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=[*PROGRAMS, "all"], default="all", help="which benchmark (all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write machine, compiler, flags, versions, commit and every row")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    parser.add_argument("--repeats", type=int, default=300, metavar="N", help="samples of a contender at most (300)")
    parser.add_argument("--only", metavar="NAME", help="one robot, scene or contact set")
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build" / "benchmarks", metavar="FOLDER", help="where to build (build/benchmarks)"
    )
    parser.add_argument("--counts", action="store_true", help="count instructions of our core by callgrind instead of timing")
    parser.add_argument("--keep", action="store_true", help="count, and keep the result in benchmarks/counts.json")
    parser.add_argument("--check", action="store_true", help="count, and warn of counts that grew by more than 3 %% against those kept")
    parser.add_argument("--strict", action="store_true", help="with --check: exit 1 on a warning, or where counts cannot be compared")
    arguments = parser.parse_args()
    if arguments.strict and not arguments.check:
        parser.error("--strict goes with --check")
    if arguments.keep and arguments.check:
        parser.error("--keep or --check, not both")
    work = counts if arguments.counts or arguments.keep or arguments.check else benchmarks
    code, made, text = work(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(made, indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(text + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
