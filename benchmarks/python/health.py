"""Records what the verbs of `delassus bench --self` take in the installed build, as those of a good build for one kind of processor.

python benchmarks/python/health.py x86-64-v3        install with -C cmake.define.DELASSUS_ARCH=x86-64-v3 first; half a minute

Times are of this machine. Writes src/delassus/bench/healthy.json, which is part of the package.
"""

import argparse
from pathlib import Path

from delassus import _core
from delassus.bench import health

RECORD = Path(__file__).resolve().parents[2] / "src" / "delassus" / "bench" / "healthy.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="what the build is for: x86-64, x86-64-v2, x86-64-v3, x86-64-v4")
    options = parser.parse_args()
    if f"-march={options.name} " not in f"{_core.flags} ":
        parser.error(f"the installed build has the flags {_core.flags}")
    health.keep(RECORD, options.name)
    print(f"wrote {options.name} into {RECORD}")


if __name__ == "__main__":
    main()
