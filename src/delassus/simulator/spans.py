"""Scalar functions of q with limits, dry friction, inertia or an equality: tendon lengths and rotation angles of ball joints."""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np

from .. import _core
from ..model import Model
from ..model.geometry import set_flags
from ..model.spans import tendon_equalities, tendon_velocities

__all__ = ["spans"]

_BALL, _TENDON, _RELATION = range(3)


class _Tendon(NamedTuple):
    """Velocities that change a tendon's length, and the places of their numbers in MuJoCo's Jacobian."""

    velocities: list[int]
    places: list[int]


def _tendon(m: mujoco.MjModel, t: int) -> _Tendon:
    velocities, places = tendon_velocities(m, t)
    return _Tendon(velocities, places)


def _span(kind: int, velocities: list[int], **what: Any) -> _core.Span:
    usual: dict[str, Any] = {
        "coordinate": 0, "tendons": (-1, -1), "rest": (0.0, 0.0), "polynomial": (0.0,) * 5, "places": ([], []), "lower": -np.inf, "upper": np.inf, "friction_loss": 0.0,
        "armature": 0.0,
    }  # fmt: skip
    return _core.Span(kind=kind, velocities=velocities, **(usual | what))


def _ball_limits(model: Model) -> list[_core.Span]:
    """Angles of ball joints, which have an upper limit only."""
    found = []
    for j, joint in enumerate(model.joints):
        if joint.type == "ball" and np.isfinite(joint.range).any():
            v = int(model.joint_vadr[j])
            found.append(_span(_BALL, [v, v + 1, v + 2], coordinate=int(model.joint_qadr[j]), upper=float(max(joint.range))))
    return found


def _tendons(m: mujoco.MjModel, has_limits: bool, has_friction: bool) -> list[_core.Span]:
    """Tendons with a range, dry friction or inertia."""
    found = []
    for t in range(m.ntendon):
        limited = has_limits and bool(m.tendon_limited[t])
        loss = float(m.tendon_frictionloss[t]) if has_friction else 0.0
        armature = float(m.tendon_armature[t])
        tendon = _tendon(m, t)
        if not (limited or loss > 0 or armature > 0) or not tendon.velocities:
            continue
        margin = float(m.tendon_margin[t])
        lower, upper = (m.tendon_range[t] + [margin, -margin]).tolist() if limited else (-np.inf, np.inf)
        places = (tendon.places, [-1] * len(tendon.places))
        found.append(
            _span(
                _TENDON, tendon.velocities, tendons=(t, -1), places=places, lower=lower, upper=upper, friction_loss=loss, armature=armature
            )
        )
    return found


def _equalities(m: mujoco.MjModel) -> list[_core.Span]:
    """Equalities: one tendon's length is a polynomial of another's, or a constant."""
    found = []
    for e in tendon_equalities(m):
        one, two = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        tendons = [_tendon(m, t) for t in (one, two) if t >= 0]
        velocities = sorted({v for t in tendons for v in t.velocities})
        if not m.eq_active0[e] or not velocities:
            continue
        places = [[t.places[t.velocities.index(v)] if v in t.velocities else -1 for v in velocities] for t in tendons]
        if two < 0:
            places.append([-1] * len(velocities))
        rest = tuple(float(m.tendon_length0[t]) if t >= 0 else 0.0 for t in (one, two))
        polynomial = [float(x) for x in m.eq_data[e, :5]]
        if two < 0:
            polynomial[1:] = [0.0] * 4
        found.append(_span(_RELATION, velocities, tendons=(one, two), rest=rest, polynomial=polynomial, places=places))
    return found


def spans(model: Model, m: mujoco.MjModel) -> list[_core.Span]:
    """Return all spans that have a row."""
    off = set_flags(m)
    has_limits, has_friction, has_equalities = ({"constraint", name}.isdisjoint(off) for name in ("limit", "frictionloss", "equality"))
    found = _ball_limits(model) if has_limits else []
    if m.ntendon:
        found += _tendons(m, has_limits, has_friction)
        found += _equalities(m) if has_equalities else []
    return found
