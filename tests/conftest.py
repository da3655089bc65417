"""What every test shares: the oracles are importable, Hypothesis repeats itself exactly."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("seeded", derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
settings.load_profile("seeded")
