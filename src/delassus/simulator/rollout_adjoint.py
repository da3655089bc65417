"""Derivatives through a motion of many steps, backwards from its end, with checkpoints."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import conform, count, finite
from ..errors import ArgumentError
from .linearized import ParameterAdjoint
from .simulator import Simulator

__all__ = ["RolloutAdjoint", "rollout_vjp"]

Array = NDArray[Any]
_ALL_KEPT = 256  # steps up to which the start of every step is kept by default


class RolloutAdjoint(NamedTuple):
    """Derivatives of a scalar that depends on the states of a motion.

    Attributes:
        q, v: (nv,) with respect to the initial state, that of q in its tangent space.
        control: (steps, nu) with respect to the controls of every step.
        tau: (steps, nv) with respect to the joint forces of every step.
        parameters: with respect to model parameters, summed over steps; ``friction`` and ``restitution`` are for a common change of all contacts, (1,). None if not requested.
    """

    q: Array
    v: Array
    control: Array
    tau: Array
    parameters: ParameterAdjoint | None


def rollout_vjp(
    sim: Simulator,
    controls: ArrayLike,
    q_bar: ArrayLike,
    v_bar: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
    checkpoint_every: int | None = None,
    parameters: bool = False,
) -> RolloutAdjoint:
    """Differentiate a scalar that depends on the states of a motion: the adjoint of ``steps`` steps from the current state.

    Steps are taken once, keeping the start of every ``checkpoint_every``-th. Then, segment by segment from the end, they are taken again and each is differentiated (:meth:`Simulator.linearize`). That costs
    two steps and one derivative per step, and memory for √steps states by default. The simulator is unchanged afterwards.

    Args:
        sim: the simulator, in the state where the motion starts.
        controls: (steps, nu) actuator commands; (steps, 0) without actuators.
        q_bar: (steps, nv) weights of the states after every step, in the tangent space of q, or (nv,) of the last one.
        v_bar: the same for velocities. Default: none.
        tau: (steps, nv) joint forces added to the actuators'. Default: none.
        checkpoint_every: number of steps between checkpoints. Default: every state up to 256 steps, then √steps.
        parameters: also differentiate with respect to model parameters.

    Examples:
        >>> import delassus as dl, numpy as np
        >>> sim = dl.Simulator(dl.scenes.box_stack(1), tolerance=1e-10)
        >>> dl.rollout_vjp(sim, np.zeros((10, 0)), q_bar=np.ones(6)).v.shape
        (6,)
    """
    m = sim.model
    given = conform(controls, "controls", np.shape(controls), "float64")
    if given.ndim != 2 or given.shape[1] != m.nu or not len(given):
        raise ArgumentError(f"controls: expected shape (steps, {m.nu}) with at least one step, got {given.shape}.")
    u, steps = finite(given, "controls"), len(given)
    forces = None if tau is None else finite(conform(tau, "tau", (steps, m.nv), "float64"), "tau")
    bars = [_weights(q_bar, "q_bar", steps, m.nv), np.zeros((steps, m.nv)) if v_bar is None else _weights(v_bar, "v_bar", steps, m.nv)]
    every = (
        (steps if steps <= _ALL_KEPT else math.isqrt(steps - 1) + 1)
        if checkpoint_every is None
        else count(checkpoint_every, "checkpoint_every")
    )

    def inputs(t: int) -> dict[str, Any]:
        return {"tau": None if forces is None else forces[t], "control": u[t] if m.nu else None}

    start, kept = sim.save(), {}
    try:
        last = (steps - 1) // every * every  # where the last segment begins
        for t in range(last):
            if t % every == 0:
                kept[t] = sim.save()
            sim.step(**inputs(t))
        kept[last] = sim.save()

        # segment by segment from the end
        q, v = np.zeros(m.nv), np.zeros(m.nv)
        by_control, by_tau = np.zeros((steps, m.nu)), np.zeros((steps, m.nv))
        total: list[Array] | None = None
        for first in sorted(kept, reverse=True):
            sim.restore(kept.pop(first))
            states = []
            past = min(first + every, steps)
            for t in range(first, past):
                states.append(sim.save())
                if t + 1 < past:
                    sim.step(**inputs(t))
            for t in range(past - 1, first - 1, -1):
                if t + 1 < past:
                    sim.restore(states[t - first])
                S = sim.linearize(**inputs(t))
                q, v = q + bars[0][t], v + bars[1][t]
                if parameters:
                    total = _added(total, S.parameter_vjp(q, v))
                b = S.vjp(q, v)
                q, v, by_tau[t], by_control[t] = b.q, b.v, b.tau, b.control
    finally:
        sim.restore(start)
    return RolloutAdjoint(q, v, by_control, by_tau, None if total is None else ParameterAdjoint(*total))


def _weights(given: ArrayLike, name: str, steps: int, n: int) -> Array:
    """Return weights of the states after every step; weights of the last state alone are zero before it."""
    if np.shape(given) == (n,):
        weights = np.zeros((steps, n))
        weights[-1] = conform(given, name, (n,), "float64")
        return finite(weights, name)
    return finite(conform(given, name, (steps, n), "float64"), name)


def _added(total: list[Array] | None, new: ParameterAdjoint) -> list[Array]:
    """Add the adjoint of a step; contacts, which differ from step to step, as their sum."""
    parts = [*new[:-2], np.array([new.friction.sum()]), np.array([new.restitution.sum()])]
    return parts if total is None else [a + b for a, b in zip(total, parts, strict=True)]
