"""Many motions in parallel, open loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import as_array, count
from .._html import result_table
from ..errors import ArgumentError
from ..simulator.simulator import Simulator
from .worlds import Worlds

__all__ = ["Rollout", "rollout"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rollout:
    """Many motions, see :func:`rollout`.

    Attributes:
        q, v: (worlds, steps, nq), (worlds, steps, nv) states after every step.
        unsolved: (worlds,) number of steps that were not "solved".
        unstable: (worlds,) the first step at which velocities were not finite, or −1; from there on states are repeated.
    """

    q: Array
    v: Array
    unsolved: Array
    unstable: Array

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        return result_table(self)


def rollout(
    model: Any,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    control: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    steps: int | None = None,
    threads: int = 1,
    parameters: Mapping[str, ArrayLike] | None = None,
    **options: Any,
) -> Rollout:
    """Step many independent worlds in native threads, open loop. Each behaves, bit for bit, like a :class:`Simulator` after a reset to its state.

    Prepared :class:`Worlds` start without set-up and are left unchanged.

    Args:
        model: anything that :class:`Simulator` takes; or a simulator, whose settings are used; or :class:`Worlds`, whose settings, threads and parameters are used.
        q: (worlds, nq) initial configurations; default for :class:`Worlds`: their current states; v: (worlds, nv), default: at rest.
        control: (worlds, steps, nu) actuator commands; tau: (worlds, steps, nv) joint forces.
        external_forces: (worlds, steps, nbody, 6) [force; torque] in world axes at each body's centre of mass.
        steps: number of steps, required if none of these arrays gives it.
        threads: number of threads.
        parameters: parameters of each world, by name, see :attr:`Worlds.parameters`; arrays that broadcast to (worlds, …).
        **options: passed to :class:`Simulator`.
    """
    prepared = model if isinstance(model, Worlds) else None
    if prepared is not None and (parameters or options or threads != 1):
        raise ArgumentError("parameters, threads, options: prepared Worlds have their own. Write to worlds.parameters, or give a model.")
    if q is None:
        if prepared is None:
            raise ArgumentError("q: expected (worlds, nq) initial states, got None; only prepared Worlds have a default.")
        q, v = prepared.q, prepared.v if v is None else v
    starts = np.atleast_2d(as_array(q, "q"))
    n = len(starts)
    for name, value, form in (("control", control, "n"), ("tau", tau, "n"), ("external_forces", external_forces, "nbody, 6")):
        if value is not None and steps is None:
            shape = np.shape(value)
            if len(shape) != 3 + form.count(","):
                raise ArgumentError(f"{name}: expected shape (worlds, steps, {form}), got {shape}.")
            steps = shape[1]
    length = count(steps, "steps")
    worlds = prepared
    if worlds is None:
        sim = model if isinstance(model, Simulator) else Simulator(model, **options)
        worlds = Worlds(sim, n if parameters else 1, threads=threads)
        for name, values in (parameters or {}).items():
            worlds.parameters[name] = values
    if worlds.parameters.opened and n != len(worlds):
        raise ArgumentError(f"q: expected a row for each of {len(worlds)} worlds, which have their own parameters, got {n}.")
    worlds.parameters.accept()
    worlds._sim._check_untouched()
    speeds = np.zeros((n, worlds.model.nv)) if v is None else v
    found = worlds._core.roll(starts, speeds, tau, control, external_forces, n, length)
    return Rollout(found.q, found.v, found.unsolved, found.unstable)
