"""With a Workspace and ``out`` no call asks the system for memory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oracles.calls import WITH_OUT

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

SCRIPT = """
import ctypes, gc, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import delassus as dl
from oracles.calls import CALLS, WITH_OUT, values

count = ctypes.CDLL(None).request_count
count.restype = ctypes.c_long
gc.disable()
before = count()
np.empty(100_000)
assert count() > before, "the counter does not count"

for dtype in (np.float64, np.float32):
    model = dl.load("g1")
    given = values(model, 1, dtype)
    workspace = dl.Workspace(model, dtype)
    for name in WITH_OUT:
        call = CALLS[name]
        arguments = [given[k] for k in call.arguments]
        keywords = {k: given[k] for k in call.keywords} | {"out": np.empty(call.out_shape(model), dtype)}
        for _ in range(200):
            call.function(workspace, *arguments, **keywords)
        before = count()
        for _ in range(1000):
            call.function(workspace, *arguments, **keywords)
        print(name, np.dtype(dtype).name, count() - before)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """Requests in 1,000 calls of each function: {(name, dtype): count}."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and LD_PRELOAD")
    folder = tmp_path_factory.mktemp("counter")
    (folder / "counter.c").write_text(COUNTER)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "counter.c", "-o", "counter.so"], cwd=folder, check=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONMALLOC"} | {"LD_PRELOAD": str(folder / "counter.so")}
    tests = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tests)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {(name, dtype): int(n) for name, dtype, n in map(str.split, done.stdout.splitlines())}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", WITH_OUT)
def test_thousand_calls_in_a_workspace_allocate_nothing(counts, name, dtype):
    assert counts[name, dtype] == 0
