"""Once warm, update, products and solves of an operator ask the system for no memory."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CALLS = ["update", "matvec", "matmat", "solve", "solve columns"]

# 200 contacts and a loop: rows beyond what NumPy keeps in its cache of small blocks
SCRIPT = """
import ctypes, gc
import numpy as np
import delassus as dl
from delassus.constraints import Connect, PointContact
from delassus.operators import DelassusOperator

count = ctypes.CDLL(None).request_count
count.restype = ctypes.c_long
gc.disable()
before = count()
np.empty(100_000)
assert count() > before, "the counter does not count"

for dtype in (np.float64, np.float32):
    model = dl.load("g1")
    contacts = [PointContact(model, 1 + k % (model.nbody - 1), point=(0.01 * k, 0, 0)) for k in range(200)]
    G = DelassusOperator(model, [*contacts, Connect(model, 5, 12)], damping=1e-2, dtype=dtype)
    q = model.random(1).astype(dtype)
    G.update(q)
    rng = np.random.default_rng(1)
    y, Y = (rng.standard_normal(s).astype(dtype) for s in (G.shape[0], (G.shape[0], 7)))
    x, X = np.empty_like(y), np.empty_like(Y)
    calls = {
        "update": lambda: G.update(q),
        "matvec": lambda: G.matvec(y, out=x),
        "matmat": lambda: G.matmat(Y, out=X),
        "solve": lambda: G.solve(y, out=x),
        "solve columns": lambda: G.solve(Y, out=X),
    }
    for name, call in calls.items():
        for _ in range(100):
            call()
        before = count()
        for _ in range(100):
            call()
        print(name, np.dtype(dtype).name, count() - before, sep=",")
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """Requests in 100 calls: {(name, dtype): count}."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and LD_PRELOAD")
    folder = tmp_path_factory.mktemp("counter")
    (folder / "counter.c").write_text(runpy.run_path(str(TESTS / "dynamics" / "test_allocation.py"))["COUNTER"])
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "counter.c", "-o", "counter.so"], cwd=folder, check=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONMALLOC"} | {"LD_PRELOAD": str(folder / "counter.so")}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {(name, dtype): int(n) for name, dtype, n in (line.split(",") for line in done.stdout.splitlines())}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CALLS)
def test_hundred_calls_allocate_nothing(counts, name, dtype):
    assert counts[name, dtype] == 0
