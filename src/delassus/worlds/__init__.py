"""Many worlds of one model, stepped together."""

from .rollouts import Rollout, rollout
from .worlds import Worlds

__all__ = ["Rollout", "Worlds", "rollout"]
