"""Linearized steps of many worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .. import _core
from ..simulator.linearized import _GAPS

__all__ = ["WorldsAdjoint", "WorldsLinearization", "of_steps"]

Array = NDArray[Any]

_GAPS_OF_WORLDS = _GAPS | {
    "all": "there are no derivatives: the step ended unstable, singular or failed, or they are not finite; all are NaN"
}


@dataclass(frozen=True, eq=False)
class _Steps:
    q: Array
    v: Array
    status: Array
    kinks: Array
    redundant: Array
    left_out: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class WorldsLinearization(_Steps):
    """Linearized steps of worlds, from :meth:`Worlds.linearize`, one row per world; see :class:`~delassus.LinearizedStep`.

        (q⁺, v⁺) = step(q, v, control, τ)        d(q⁺, v⁺) = A d(q, v) + B dcontrol

    Attributes:
        q, v: (count, nq), (count, nv) states after the step.
        status: (count,) status of the step, an index into :attr:`Worlds.STATUSES`; zero is "solved".
        kinks: (count,) bool: a contact, a limit or dry friction is about to change its mode, or positions are about to be corrected. The derivative is then one-sided.
        redundant: (count,) bool: contact forces are not unique.
        left_out: per world, description of what is not differentiated; empty if nothing is left out.
        A: (count, 2 nv, 2 nv) derivatives of (q⁺, v⁺) with respect to (q, v), both stacked, in the tangent space of q. NaN where the step failed.
        B: (count, 2 nv, nu) derivatives of (q⁺, v⁺) with respect to the actuator controls, likewise.
    """

    A: Array
    B: Array


@dataclass(frozen=True, eq=False)
class WorldsAdjoint(_Steps):
    """Gradients of one scalar per world with respect to the inputs of its step, from :meth:`Worlds.step_vjp`.

    Attributes:
        q, v: (count, nv) derivatives with respect to q (tangent space) and v at the start of the step. NaN where the step failed.
        status, kinks, redundant, left_out: see :class:`WorldsLinearization`.
        next_q, next_v: (count, nq), (count, nv) states after the step.
        control: (count, nu) derivatives with respect to the actuator controls.
        tau: (count, nv) derivatives with respect to joint forces.
    """

    next_q: Array
    next_v: Array
    control: Array
    tau: Array


def of_steps(record: _core.StepsRecord) -> dict[str, Any]:
    """Return the attributes that all step results share."""
    words = (tuple(_GAPS_OF_WORLDS[name] for name in names) for names in record.left_out)
    return {
        "status": record.status,
        "kinks": record.kinks.astype(bool),
        "redundant": record.redundant.astype(bool),
        "left_out": tuple(words),
    }
