"""Many worlds of one model, stepped together."""

from .linearized import WorldsAdjoint, WorldsLinearization
from .rollouts import Rollout, rollout
from .worlds import Worlds

__all__ = ["Rollout", "Worlds", "WorldsAdjoint", "WorldsLinearization", "rollout"]
