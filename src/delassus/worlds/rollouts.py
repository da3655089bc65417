"""Many worlds at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import count
from ..errors import ArgumentError
from ..simulator.simulator import Simulator

__all__ = ["Rollout", "rollout"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rollout:
    """Many motions, see :func:`rollout`.

    Attributes:
        q: (worlds, steps, nq) after every step; v: (worlds, steps, nv).
        unsolved: (worlds,) steps that ended otherwise than "solved".
        unstable: (worlds,) the step at which velocities ceased to be finite, −1 where they did not; from there on states stay as they are.
    """

    q: Array
    v: Array
    unsolved: Array
    unstable: Array


def rollout(
    model: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    control: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    steps: int | None = None,
    threads: int = 1,
    **options: Any,
) -> Rollout:
    """Step many worlds that know nothing of each other, without the interpreter's lock. Each is, bit for bit, what a :class:`Simulator` would do.

    Args:
        model: what a :class:`Simulator` takes, or one, whose settings are then used.
        q: (worlds, nq) states to start from; v: (worlds, nv), default at rest.
        control: (worlds, steps, nu) of the actuators; tau: (worlds, steps, nv) forces on joints.
        external_forces: (worlds, steps, nbody, 6) [force; torque] in world axes at each body's centre of mass.
        steps: how many, where none of these says so.
        threads: that work at once.
        **options: of the :class:`Simulator`.
    """
    sim = model if isinstance(model, Simulator) else Simulator(model, **options)
    sim._check_untouched()
    starts = np.atleast_2d(np.asarray(q, dtype=float))
    worlds = len(starts)
    for name, value, form in (("control", control, "n"), ("tau", tau, "n"), ("external_forces", external_forces, "nbody, 6")):
        if value is not None and steps is None:
            shape = np.shape(value)
            if len(shape) != 3 + form.count(","):
                raise ArgumentError(f"{name}: expected shape (worlds, steps, {form}), got {shape}.")
            steps = shape[1]
    n = count(steps, "steps")
    speeds = np.zeros((worlds, sim.model.nv)) if v is None else v
    core = _core.Worlds(sim._plan, 1, threads=count(threads, "threads"))
    found = core.roll(starts, speeds, tau, control, external_forces, worlds, n)
    return Rollout(found.q, found.v, found.unsolved, found.unstable)
