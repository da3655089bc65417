"""What every test shares: the oracles are importable, Hypothesis repeats itself exactly, NumPy's matrices keep to one core."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# before NumPy is imported: threads of several test processes would wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("seeded", derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
settings.load_profile("seeded")
