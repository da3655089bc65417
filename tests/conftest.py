"""What every test shares: the oracles are importable, Hypothesis repeats itself exactly, NumPy's matrices keep to one core.

``pytest`` runs every function of the suite, ``pytest -m exhaustive`` what it leaves out: cases that take long, and nine tenths
of the cross products of mechanisms, constraints and operators that are marked ``sampled``.
"""

import os
import signal
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# before NumPy is imported: threads of several test processes would wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# a shell that starts a job in the background has it ignore Ctrl-C, and so its children: tests send it to themselves
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("seeded", derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
settings.load_profile("seeded")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a cross product a tenth is run by default: the same cases everywhere, chosen by their names. What takes longest begins first, so that no worker waits for it at the end."""
    for item in items:
        if item.get_closest_marker("sampled") and zlib.crc32(item.name.encode()) % 10:
            item.add_marker(pytest.mark.exhaustive)
    items.sort(key=lambda item: item.path.name != "test_threads.py")
