"""Gymnasium environments for reinforcement learning with rigid contacts (extra ``gym``).

:class:`WorldsEnv` steps many worlds of a :class:`Task` together, :class:`WorldEnv` one of them; six tasks are included and registered when this module is imported.
:class:`SimulatorEnv` makes an environment from any model. :mod:`delassus.gym.ppo` trains policies.
"""

from __future__ import annotations

from ..errors import MissingExtraError

try:
    import gymnasium
except ImportError:
    raise MissingExtraError('gymnasium is not installed, and delassus.gym needs it: pip install "delassus[gym]".') from None

from .arm import ArmPush
from .cassie import CassieHop
from .environments import TASKS, WorldEnv, WorldsEnv
from .g1 import G1Balance
from .go2 import Go2StandUp, Go2Walk
from .gripper import GripperLift
from .simulators import Go2Env, Moment, SimulatorEnv
from .task import Batch, Start, Task

__all__ = [
    "TASKS",
    "ArmPush",
    "Batch",
    "CassieHop",
    "G1Balance",
    "Go2Env",
    "Go2StandUp",
    "Go2Walk",
    "GripperLift",
    "Moment",
    "SimulatorEnv",
    "Start",
    "Task",
    "WorldEnv",
    "WorldsEnv",
    "register",
]


def register() -> None:
    """Register the tasks with ``gymnasium.make`` and ``gymnasium.make_vec``, as "delassus/Go2Walk-v0" and so on. Importing this module does this; further calls do nothing.

    It is also the entry point of the group ``gymnasium.envs``. Gymnasium has not loaded entry points since 1.0: ``gymnasium.make("delassus.gym:delassus/Go2Walk-v0")`` imports this module.
    """
    if "delassus/Go2-v0" in gymnasium.registry:
        return
    gymnasium.register("delassus/Go2-v0", entry_point="delassus.gym:Go2Env")
    for name, task in TASKS.items():
        gymnasium.register(
            f"delassus/{name}-v0",
            entry_point="delassus.gym:WorldEnv",
            vector_entry_point="delassus.gym:WorldsEnv",
            max_episode_steps=task.max_episode_steps,
            kwargs={"task": name},
        )


register()
