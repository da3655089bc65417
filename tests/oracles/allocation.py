"""How often a script asks the C library for memory: a counter preloaded into a Python of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Counts every request that reaches the C library; Python's own small objects come from its arenas and do not.
COUNTER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static _Atomic long requests;
long request_count(void) { return requests; }
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { ++requests; return __libc_malloc(n); }
void *calloc(size_t k, size_t n) { ++requests; return __libc_calloc(k, n); }
void *realloc(void *p, size_t n) { ++requests; return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { ++requests; return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { ++requests; return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { ++requests; *p = __libc_memalign(a, n); return *p ? 0 : 12; }
"""

# before the script: the counter, seen to count, and the tests on the path
OPENING = """
import ctypes, gc, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import delassus as dl

count = ctypes.CDLL(None).request_count
count.restype = ctypes.c_long
gc.disable()
before = count()
np.empty(100_000)
assert count() > before, "the counter does not count"


def report(name, dtype, call, times):
    for _ in range(100):
        call()
    before = count()
    for _ in range(times):
        call()
    print(name, np.dtype(dtype).name, count() - before, sep=",")
"""


def requests(folder, script):
    """Run a script that calls ``report(name, dtype, call, times)``: {(name, dtype): requests in that many calls}."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and LD_PRELOAD")
    (folder / "counter.c").write_text(COUNTER)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "counter.c", "-o", "counter.so"], cwd=folder, check=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONMALLOC"} | {"LD_PRELOAD": str(folder / "counter.so")}
    tests = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", OPENING + script, str(tests)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {(name, dtype): int(n) for name, dtype, n in (line.split(",") for line in done.stdout.splitlines())}
