"""Studies: many runs of a model with their own parameters, on threads, processes or a cluster; results in a Parquet dataset."""

from .designs import Design, grid, latin_hypercube, random
from .metrics import METRICS, Run
from .ray import RayExecutor
from .result import StudyResult
from .rows import RowStart
from .study import Study

__all__ = ["METRICS", "Design", "RayExecutor", "RowStart", "Run", "Study", "StudyResult", "grid", "latin_hypercube", "random"]
