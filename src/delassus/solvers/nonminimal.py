"""Links as bodies of their own, V = [velocity of the origin; angular velocity] of every link, world axes; joints as equations on them.

A link is a body with joints, and what is fused to it. With E the Jacobian of all links, V = E v, everything about the joints is in E: of link i and its parent p

    V_i − X V_p = S v_i,   X V_p the motion of the parent at the origin of i,   S the columns of E of the joints of i

so with ``[Q Q'] [R; 0] = S`` the joints hold where Q'ᵀ (V_i − X V_p) = 0, which is 6 − (number of velocities) rows, and v_i = R⁻¹ Qᵀ (V_i − X V_p) =: (P V)_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraints import Connect, Constraint, ConstraintRows, Hinge, PointContact, Weld
from ..errors import ArgumentError
from ..model import Model
from ..operators import DelassusOperator
from ..state import body_placements

__all__ = ["Links"]

Array = NDArray[Any]
_ROWS = {3: (0, 1, 2), 5: (0, 1, 2, 4, 5), 6: (0, 1, 2, 3, 4, 5)}


def cross(x: Array) -> Array:
    """Make [x]× of vectors (…, 3)."""
    out = np.zeros((*x.shape, 3))
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -x[..., 2], x[..., 1], -x[..., 0]
    return np.asarray(out - np.swapaxes(out, -1, -2))


def shift(r: Array) -> Array:
    """Make [1 −[r]×; 0 1], a motion at a point r further on."""
    out = np.zeros((*r.shape[:-1], 6, 6))
    out[..., range(6), range(6)] = 1.0
    out[..., :3, 3:] = -cross(r)
    return out


def _times(A: Array, x: Array) -> Array:
    """Multiply matrices (n, 3, 3) by vectors (n, 3)."""
    return np.asarray((A @ x[:, :, None])[:, :, 0])


class Links:
    """A mechanism in velocities of its links, and constraints on them; ``at`` moves it to a state.

    Attributes:
        count: links n.
        joint_rows: rows of all joints, 6 n − nv.
        inertia: (6 n, 6 n).
        joints: (joint_rows, 6 n) J of the joints; rates: (nv, 6 n) P with v = P V; jacobian: (m, 6 n) J of the constraints; E: (6 n, nv) with V = E v.
    """

    _inverse: Array | None  # of the blocks, once asked for

    def __init__(self, model: Model, constraints: Sequence[Constraint]) -> None:
        self.model, self.constraints = model, tuple(constraints)
        bodies = sorted({int(b) for b in model.joint_body})
        self.bodies, self.count = np.array(bodies, dtype=int), len(bodies)
        self.joint_rows = 6 * self.count - model.nv
        # link of every body, −1 where nothing moves
        link = np.full(model.nbody, -1)
        for b in range(1, model.nbody):
            link[b] = bodies.index(b) if b in bodies else link[model.body_parent[b]]
        self.parent = link[model.body_parent[self.bodies]]
        velocities = np.append(model.joint_vadr, model.nv)
        owned = [[v for j in np.flatnonzero(model.joint_body == b) for v in range(velocities[j], velocities[j + 1])] for b in bodies]
        # links with as many velocities: their numbers, and those of the velocities
        self._alike = [
            (np.array(links), np.array([owned[i] for i in links]))
            for k in sorted({len(o) for o in owned})
            if (links := [i for i in range(self.count) if len(owned[i]) == k])
        ]
        self._geared = bool(model.dof_armature.any())
        self._mass_of_links(link)
        self._welds = [Weld(model, b) for b in bodies]
        self._motion, self._drift = DelassusOperator(model, self._welds), ConstraintRows(model, self._welds)
        self._place_constraints(link)

    def _mass_of_links(self, link: Array) -> None:
        """Mass, first moment and inertia about the origin of every link, in its axes."""
        model, X = self.model, body_placements(self.model, self.model.neutral())
        self.mass, self.moment, self.turning = np.zeros(self.count), np.zeros((self.count, 3)), np.zeros((self.count, 3, 3))
        for b in np.flatnonzero(link >= 0):
            i = link[b]
            F = np.linalg.inv(X[self.bodies[i]]) @ X[b]
            c, m = F[:3, :3] @ model.body_com[b] + F[:3, 3], model.body_mass[b]
            self.mass[i] += m
            self.moment[i] += m * c
            self.turning[i] += F[:3, :3] @ model.body_inertia[b] @ F[:3, :3].T - m * cross(c) @ cross(c)
        blocks = self._blocks(self.moment, self.turning)
        self.massive = not self.count or bool((np.linalg.eigvalsh(blocks)[:, 0] > 1e-12 * np.trace(blocks, axis1=1, axis2=2)).all())

    def _blocks(self, moment: Array, turning: Array) -> Array:
        out = np.zeros((self.count, 6, 6))
        out[:, range(3), range(3)] = self.mass[:, None]
        out[:, :3, 3:], out[:, 3:, :3], out[:, 3:, 3:] = -cross(moment), cross(moment), turning
        return out

    def _place_constraints(self, link: Array) -> None:
        """Bodies, points and axes of constraints that hold frames; all others are written on joint velocities."""
        sizes = np.cumsum([0, *(c.rows for c in self.constraints)])
        framed = [k for k, c in enumerate(self.constraints) if isinstance(c, PointContact | Connect | Weld | Hinge)]
        data = [self.constraints[k]._recipe[2] for k in framed]
        self._sides = np.array([d["bodies"] for d in data], dtype=int).reshape(-1, 2)
        self._side_links = link[self._sides]
        self._points = np.array([d["points"] for d in data]).reshape(-1, 2, 3)
        self._axes = np.array([d["matrix"] for d in data]).reshape(-1, 3, 3)
        self._carried = np.array([d["axes_on"] == 0 for d in data], dtype=bool)
        self._take = np.array([6 * i + r for i, k in enumerate(framed) for r in _ROWS[self.constraints[k].rows]], dtype=int)
        self._frame_rows = np.array([r for k in framed for r in range(sizes[k], sizes[k + 1])], dtype=int)
        loose = [k for k in range(len(self.constraints)) if k not in framed]
        self._other_rows = np.array([r for k in loose for r in range(sizes[k], sizes[k + 1])], dtype=int)
        self._others = DelassusOperator(self.model, [self.constraints[k] for k in loose]) if loose else None
        self.rows = int(sizes[-1])

    def at(self, q: Array) -> None:
        """Inertia, joints and rows at a configuration."""
        n, model = self.count, self.model
        X = body_placements(model, q)
        R, x = X[self.bodies, :3, :3], X[self.bodies, :3, 3]
        self._h, self._turned = _times(R, self.moment), R @ self.turning @ R.transpose(0, 2, 1)
        self._here, self._inverse = self._blocks(self._h, self._turned), None

        # V_i − X V_p, and S
        self._motion.update(q)
        self.E = self._motion.jacobian.matmat(np.eye(model.nv)) if n else np.zeros((0, model.nv))
        relative = np.zeros((n, 6, n, 6))
        relative[range(n), :, range(n), :] = np.eye(6)
        hung = np.flatnonzero(self.parent >= 0)
        relative[hung, :, self.parent[hung], :] = -shift(x[hung] - x[self.parent[hung]])
        self.joints, self.rates, start = np.zeros((self.joint_rows, 6 * n)), np.zeros((model.nv, 6 * n)), 0
        for links, own in self._alike:
            k = own.shape[1]
            S = self.E.reshape(n, 6, -1)[links[:, None, None], np.arange(6)[:, None], own[:, None, :]]
            Q, T = np.linalg.qr(S, mode="complete")
            if not (np.abs(np.diagonal(T, axis1=1, axis2=2)) > 1e-9).all():
                raise ArgumentError(
                    "model: joints of one body move the same here, so that links have no velocities of their own. Use 'os'."
                )
            turned = Q.transpose(0, 2, 1) @ relative[links].reshape(len(links), 6, 6 * n)
            self.rates[own.ravel()] = (np.linalg.inv(T[:, :k]) @ turned[:, :k]).reshape(-1, 6 * n)
            end = start + len(links) * (6 - k)
            self.joints[start:end] = turned[:, k:].reshape(-1, 6 * n)
            start = end

        # rows of frames where they act, all others through P
        self.jacobian = np.zeros((self.rows, 6 * n))
        local = np.zeros((len(self._sides), 6, n, 6))
        axes = np.where(self._carried[:, None, None], self._axes @ X[self._sides[:, 0], :3, :3].transpose(0, 2, 1), self._axes)
        twice = np.zeros((len(axes), 6, 6))
        twice[:, :3, :3] = twice[:, 3:, 3:] = axes
        for side, sign in ((0, 1.0), (1, -1.0)):
            at = np.flatnonzero(self._side_links[:, side] >= 0)
            body, to = self._sides[at, side], self._side_links[at, side]
            point = _times(X[body, :3, :3], self._points[at, side]) + X[body, :3, 3]
            local[at, :, to, :] += sign * twice[at] @ shift(point - x[to])
        self.jacobian[self._frame_rows] = local.reshape(-1, 6 * n)[self._take]
        if self._others is not None:
            self._others.update(q)
            self.jacobian[self._other_rows] = self._others.jacobian.matmat(np.eye(model.nv)) @ self.rates

    @property
    def inertia(self) -> Array:
        """Blocks of the links; and of the drives, Pᵀ armature P."""
        n = self.count
        out = np.zeros((n, 6, n, 6))
        out[range(n), :, range(n), :] = self._here
        drives = self.rates.T @ (self.model.dof_armature[:, None] * self.rates) if self._geared else 0.0
        return np.asarray(out.reshape(6 * n, 6 * n) + drives)

    def solve(self, Y: Array) -> Array:
        """Multiply by the inverse of the inertia, (6 n, k): block by block where there is no armature."""
        if self._geared:
            return np.linalg.solve(self.inertia, Y)
        if self._inverse is None:
            self._inverse = np.linalg.inv(self._here)
        return (self._inverse @ Y.reshape(self.count, 6, -1)).reshape(Y.shape)

    def forces(self, q: Array, v: Array, tau: Array) -> Array:
        """Find what is left for the links where joints do not accelerate, (6 n,): Pᵀ τ − [F; T].

        F = m a + α × h + ω × (ω × h), T = I α + ω × I ω + h × a; a and α of the origin, a without gravity.
        """
        drift, omega = self._drift.drift(q, v).reshape(-1, 6), (self.E @ v).reshape(-1, 6)[:, 3:]
        a, alpha = drift[:, :3] - self.model.gravity, drift[:, 3:]
        h, turn = cross(self._h), cross(omega)
        out = np.empty((self.count, 6))
        out[:, :3] = self.mass[:, None] * a + _times(turn @ turn, self._h) - _times(h, alpha)
        out[:, 3:] = _times(self._turned, alpha) + _times(turn, _times(self._turned, omega)) + _times(h, a)
        return np.asarray(self.rates.T @ tau - out.ravel())
