"""Records what the verbs of `delassus bench --self` take in the installed build, as those of a good build for one kind of processor.

python benchmarks/python/health.py x86-64-v3        half a minute

Install with -C cmake.define.DELASSUS_ARCH=dispatch first; the variable DELASSUS_ARCH then chooses a build.

Times are of this machine. Writes src/delassus/bench/healthy.json, which is part of the package.
"""

import argparse
import json
from pathlib import Path

from delassus import _builds, _core
from delassus.bench import health
from delassus.bench.verbs import verbs

RECORD = Path(__file__).resolve().parents[2] / "src" / "delassus" / "bench" / "healthy.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="what the build is for: x86-64, x86-64-v2, x86-64-v3, x86-64-v4")
    name = parser.parse_args().name
    if _builds.chosen().build.arch != name:
        parser.error(f"the build in use is for {_builds.chosen().build.arch}")
    known = verbs()
    if wrong := [verb.name for verb in known if not verb.right]:
        parser.error(f"wrong: {', '.join(wrong)}")
    instrument, found, why = health.count(known)
    if instrument == "clock":
        parser.error(f"instructions cannot be counted: {'; '.join(why)}")
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"builds": {}, "instructions": {}, "times": {}}
    record["builds"][name] = {"compiler": _core.compiler, "flags": _core.flags, "instrument": instrument}
    record["instructions"][name] = {k: round(n) for k, n in found.items()}
    record["times"][name] = {k: float(f"{n:.3g}") for k, n in health.times(known).items()}
    RECORD.write_text(json.dumps({part: dict(sorted(record[part].items())) for part in sorted(record)}, indent=1) + "\n")
    print(f"wrote {name} into {RECORD}")


if __name__ == "__main__":
    main()
