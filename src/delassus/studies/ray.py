"""Ray as an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from importlib import import_module
from typing import Any

from ..errors import MissingExtraError

__all__ = ["RayExecutor"]


class RayExecutor(Executor):
    """Tasks of Ray behind the interface of ``concurrent.futures.Executor``.

    Args:
        address: address of a cluster, as for ``ray.init``; default: the connected cluster, else a new one on this machine.
        **options: options of each task, as for ``ray.remote``: ``num_cpus``, ``resources``, ``runtime_env``, …

    Examples:
        >>> import delassus as dl
        >>> study.run(dl.studies.RayExecutor("auto"))  # doctest: +SKIP
    """

    def __init__(self, address: str | None = None, **options: Any) -> None:
        try:
            ray: Any = import_module("ray")
        except ImportError:
            raise MissingExtraError('ray is not installed: pip install "delassus[ray]".') from None
        self._ray = ray
        if not ray.is_initialized():
            ray.init(address, **({"log_to_driver": False, "include_dashboard": False} if address is None else {}))
        # a lost task is sent again by the study, which counts the losses
        self._options = {"max_retries": 0, **options}
        self._remote = ray.remote(_called).options(**self._options)

    @property
    def workers(self) -> int:
        """Number of tasks that the cluster runs in parallel: its CPUs divided by those of a task."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1) / (self._options.get("num_cpus") or 1)))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a task; returns a future of its result."""
        future: Future[Any] = self._remote.remote(fn, args, kwargs).future()
        return future


def _called(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)
