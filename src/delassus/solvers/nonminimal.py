"""Links as separate bodies, V = [velocity of the origin; angular velocity] of every link, world axes; joints as equations on them.

A link is a body with joints, and everything fused to it. With E the Jacobian of all links, V = E v, everything about the joints is in E: for link i and its parent p

    V_i − X V_p = S v_i,   X V_p the motion of the parent at the origin of i,   S the columns of E of the joints of i

so with ``[Q Q'] [R; 0] = S`` the joints hold where Q'ᵀ (V_i − X V_p) = 0, which is 6 − (number of velocities) rows, and v_i = R⁻¹ Qᵀ (V_i − X V_p) =: (P V)_i.
A link with one joint has a constant S in its own axes, and so constant Q' and R⁻¹ Qᵀ, which only turn with it.
"""

from __future__ import annotations

import math
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


# [x]× = x · _CROSS and [1 −[r]×; 0 1] = 1 + r · _SHIFT: one product for any number of vectors
_CROSS = np.zeros((3, 3, 3))
_CROSS[(0, 1, 2), (2, 0, 1), (1, 2, 0)], _CROSS[(0, 1, 2), (1, 2, 0), (2, 0, 1)] = 1.0, -1.0
_SHIFT = np.zeros((3, 6, 6))
_SHIFT[:, :3, 3:] = -_CROSS
_ONE = np.eye(6)


def cross(x: Array) -> Array:
    """Make [x]× of vectors (…, 3)."""
    return np.asarray((x @ _CROSS.reshape(3, 9)).reshape(*x.shape, 3))


def shift(r: Array) -> Array:
    """Make [1 −[r]×; 0 1] of vectors (n, 3), a motion at a point displaced by r."""
    return np.asarray((r @ _SHIFT.reshape(3, 36)).reshape(-1, 6, 6) + _ONE)


def turned(A: Array, R: Array) -> Array:
    """Multiply matrices (…, n, 6, 6) by [R 0; 0 R], R (n, 3, 3)."""
    return np.asarray((A.reshape(*A.shape[:-2], 12, 3) @ R).reshape(A.shape))


def split(S: Array) -> tuple[Array, Array]:
    """[R⁻¹ Qᵀ; Q'ᵀ] (n, 6, 6) of columns S (n, 6, k), and the smallest number on a diagonal of R."""
    k = S.shape[2]
    Q, R = np.linalg.qr(S, mode="complete")
    least = np.abs(np.diagonal(R, axis1=1, axis2=2)).min(initial=np.inf)
    out = Q.transpose(0, 2, 1).copy()
    if least > 0:
        out[:, :k] = np.linalg.inv(R[:, :k]) @ out[:, :k]
    return out, least


class Links:
    """A mechanism in velocities of its links, and constraints on them; ``at`` moves it to a state.

    Attributes:
        count: number of links n.
        joint_rows: number of rows of all joints, 6 n − nv.
        inertia: (6 n, 6 n).
        rates: (nv, 6 n) P with v = P V; jacobian: (joint_rows + m, 6 n) J of the joints, then of the constraints. At the last state.
        massive: True if every link has its own inertia.
    """

    def __init__(self, model: Model, constraints: Sequence[Constraint]) -> None:
        self.model, self.constraints = model, tuple(constraints)
        bodies = sorted({int(b) for b in model.joint_body})
        self.bodies, self.count = np.array(bodies, dtype=int), len(bodies)
        self.joint_rows = 6 * self.count - model.nv
        # link of every body, −1 where nothing moves
        link = np.full(model.nbody, -1)
        for b in range(1, model.nbody):
            link[b] = bodies.index(b) if b in bodies else link[model.body_parent[b]]
        parent = link[model.body_parent[self.bodies]]
        self._hung = np.flatnonzero(parent >= 0)
        self._over = parent[self._hung]
        self._ends = self.bodies[self._hung], self.bodies[self._over]
        self._geared = bool(model.dof_armature.any())
        welds = [Weld(model, b) for b in bodies]
        self._motion, self._drift = DelassusOperator(model, welds), ConstraintRows(model, welds)
        # rates, joints, constraints: one matrix, whose zeros stay
        self._all = np.zeros((6 * self.count + sum(c.rows for c in constraints), 6 * self.count))
        self.rates, self.jacobian = self._all[: model.nv], self._all[model.nv :]
        X = body_placements(model, model.neutral())
        self._mass_of_links(link, X)
        self._place_joints(X)
        self._place_constraints(link)

    def _numbers(self, row: Array, link: Array) -> Array:
        """Find the indices in ``_all`` of six numbers per row (…) on a link."""
        return np.asarray(row[..., None] * 6 * self.count + 6 * link[..., None] + np.arange(6))

    def _mass_of_links(self, link: Array, X: Array) -> None:
        """Inertia of every link about its origin, and its inverse, in its axes."""
        model, moving, out = self.model, np.flatnonzero(link >= 0), np.zeros((self.count, 6, 6))
        F = np.linalg.inv(X[self.bodies[link[moving]]]) @ X[moving]
        R, m = F[:, :3, :3], model.body_mass[moving, None, None]
        c = cross((R @ model.body_com[moving, :, None])[:, :, 0] + F[:, :3, 3])
        mass = np.concatenate([m * np.eye(3), -m * c], axis=2)
        turn = np.concatenate([m * c, R @ model.body_inertia[moving] @ R.transpose(0, 2, 1) - m * c @ c], axis=2)
        np.add.at(out, link[moving], np.concatenate([mass, turn], axis=1))
        self.massive = bool((np.linalg.eigvalsh(out)[:, 0] > 1e-12 * np.trace(out, axis1=1, axis2=2)).all())
        self._inertias = np.stack([out, np.linalg.inv(out)]) if self.massive else out[None]

    def _place_joints(self, X: Array) -> None:
        """Rows of rates and joints of every link; for links with one joint also their values, in the axes of the link."""
        model, n = self.model, self.count
        ends = np.append(model.joint_vadr, model.nv)
        joints = [np.flatnonzero(model.joint_body == b) for b in self.bodies]
        owned = [[v for j in own for v in range(ends[j], ends[j + 1])] for own in joints]
        rows, start = np.zeros((n, 6), dtype=int), model.nv
        for i in sorted(range(n), key=lambda i: len(owned[i])):
            k = len(owned[i])
            rows[i] = [*owned[i], *range(start, start + 6 - k)]
            start += 6 - k
        self._own_at = self._numbers(rows, np.arange(n)[:, None])
        self._parent_at = self._numbers(rows[self._hung], self._over[:, None])
        self._splits, self._moving = np.zeros((n, 6, 6)), []
        self._motion.update(model.neutral())
        for k in sorted({len(own) for own in owned}):
            alike = [i for i in range(n) if len(owned[i]) == k]
            steady = [i for i in alike if len(joints[i]) == 1 and model.joint_type[joints[i][0]] != "free"]
            moving = [i for i in alike if i not in steady]
            if steady:
                S = self._columns(np.array(steady), np.array([owned[i] for i in steady]))
                self._splits[steady] = turned(split(S)[0], X[self.bodies[steady], :3, :3])
            if moving:
                self._moving.append((np.array(moving), np.array([owned[i] for i in moving])))

    def _columns(self, links: Array, own: Array) -> Array:
        """S (links, 6, k), world axes."""
        E = self._motion.jacobian.matmat(np.eye(self.model.nv)).reshape(self.count, 6, -1)
        return np.asarray(E[links[:, None, None], np.arange(6)[:, None], own[:, None, :]])

    def _place_constraints(self, link: Array) -> None:
        """Bodies, points and axes of constraints that hold frames; all others are written in joint velocities."""
        first = 6 * self.count + np.cumsum([0, *(c.rows for c in self.constraints)])
        framed = [k for k, c in enumerate(self.constraints) if isinstance(c, PointContact | Connect | Weld | Hinge)]
        data = [self.constraints[k]._recipe[2] for k in framed]
        self._carrier = np.array([d["bodies"][0] for d in data], dtype=int)
        self._axes = np.array([d["matrix"] for d in data]).reshape(-1, 3, 3)
        self._carried = np.array([d["axes_on"] == 0 for d in data], dtype=bool)[:, None, None]
        # moving sides: constraint, sign, body, point, link
        sides = [
            (i, sign, body, d["points"][3 * k : 3 * k + 3])
            for i, d in enumerate(data)
            for k, (sign, body) in enumerate(zip((1.0, -1.0), d["bodies"], strict=True))
            if link[body] >= 0
        ]
        self._side = np.array([side[0] for side in sides], dtype=int)
        self._sign = np.array([side[1] for side in sides])[:, None, None]
        self._body = np.array([side[2] for side in sides], dtype=int)
        self._point = np.array([side[3] for side in sides]).reshape(-1, 3)
        self._link = link[self._body]
        # two sides on one link are merged
        self._same = [k for k in range(1, len(sides)) if self._side[k] == self._side[k - 1] and self._link[k] == self._link[k - 1]]
        rows = [(k, r, first[framed[i]] + n) for k, (i, *_) in enumerate(sides) if k not in self._same for n, r in enumerate(_ROWS[self.constraints[framed[i]].rows])]  # fmt: skip
        taken = np.array(rows, dtype=int).reshape(-1, 3)
        self._taken = (taken[:, 0], taken[:, 1])
        self._side_at = self._numbers(taken[:, 2], self._link[taken[:, 0]])
        loose = [k for k in range(len(self.constraints)) if k not in framed]
        self._other_rows = np.array([r for k in loose for r in range(first[k], first[k + 1])], dtype=int)
        self._others = DelassusOperator(self.model, [self.constraints[k] for k in loose]) if loose else None

    def at(self, q: Array) -> None:
        """Inertia, joints and rows at a configuration."""
        X = body_placements(self.model, q)
        self._motion.update(q)
        x, R = X[:, :3, 3], X[:, :3, :3]
        own = self.bodies
        RT = R[own].transpose(0, 2, 1)
        self._here = turned(turned(self._inertias, RT).swapaxes(-1, -2), RT)

        # B (V_i − X V_p), B = [R⁻¹ Qᵀ; Q'ᵀ]
        B, numbers = turned(self._splits, RT), self._all.reshape(-1)
        for links, velocities in self._moving:
            B[links], least = split(self._columns(links, velocities))
            if not least > 1e-9:
                raise ArgumentError(
                    "model: in this configuration several joints of one body have the same motion, so the velocities of its links are not unique. Use 'os'."
                )
        numbers[self._own_at] = B
        hung, over = self._ends
        numbers[self._parent_at] = -B[self._hung] @ shift(x[hung] - x[over])

        # rows of frames where they act, all others through P
        if len(self._side):
            axes = np.where(self._carried, self._axes @ R[self._carrier].transpose(0, 2, 1), self._axes)
            twice = np.zeros((len(axes), 6, 6))
            twice[:, :3, :3] = twice[:, 3:, 3:] = axes
            arm = (R[self._body] @ self._point[:, :, None])[:, :, 0] + x[self._body] - x[own[self._link]]
            sides = (self._sign * twice[self._side]) @ shift(arm)
            for k in self._same:
                sides[k - 1] += sides[k]
            numbers[self._side_at] = sides[self._taken]
        if self._others is not None:
            self._others.update(q)
            self._all[self._other_rows] = self._others.jacobian.matmat(np.eye(self.model.nv)) @ self.rates

    def velocities(self, v: Array) -> Array:
        """V (6 n,) of joint velocities."""
        return self._motion.jacobian.matvec(v) if self.count else np.zeros(0)

    @property
    def inertia(self) -> Array:
        """Blocks of the links, and the armature term Pᵀ armature P."""
        n = self.count
        out = np.zeros((n, 6, n, 6))
        out[range(n), :, range(n), :] = self._here[0]
        drives = self.rates.T @ (self.model.dof_armature[:, None] * self.rates) if self._geared else 0.0
        return np.asarray(out.reshape(6 * n, 6 * n) + drives)

    def solve(self, Y: Array) -> Array:
        """Multiply by the inverse of the inertia, (6 n, k): block by block where there is no armature."""
        if self._geared:
            return np.linalg.solve(self.inertia, Y)
        return np.asarray((self._here[1] @ Y.reshape(self.count, 6, math.prod(Y.shape[1:]))).reshape(Y.shape))

    def forces(self, q: Array, v: Array, V: Array, tau: Array) -> Array:
        """Find the force on the links while joints do not accelerate, (6 n,): Pᵀ τ − H a − ω × (H [0; ω]), a without gravity.

        H is the inertia at the origin of a link; ω × turns forces and moments alike, H [0; ω] = [ω × h; I ω] being momenta.
        """
        omega = V.reshape(-1, 6)[:, 3:]
        both = np.zeros((self.count, 6, 2))
        both[:, :, 0], both[:, 3:, 1] = self._drift.drift(q, v).reshape(-1, 6), omega
        both[:, :3, 0] -= self.model.gravity
        both = self._here[0] @ both
        # ω × x = −xᵀ [ω]×
        turning = both[:, :, 1].reshape(-1, 2, 3) @ cross(omega)
        return np.asarray(self.rates.T @ tau - (both[:, :, 0] - turning.reshape(-1, 6)).ravel())
