"""A robot in link frames: the tree of links, its constants, and their poses in a configuration.

One link per joint, in the order of the model's joints, so a parent comes before its children; a body with k joints is k links, k − 1 of them
massless; a body without joints is part of the link that carries its parent. A link's frame is at its joint's anchor and moves with the link; the axis of a hinge or
slide is its z axis. Spatial vectors are ``[linear; angular]`` in the frame of their link.

    X_i    (6, 6) maps a motion from the parent's frame to link i's; its transpose maps a force from link i's to the parent's
    S_i    (6, n_i) motion subspace of joint i
    H_i    (6, 6) inertia of link i
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._door import numbers
from ..errors import ArgumentError
from ..model import Model
from ..model.model import as_model
from ..model.records import COORDINATES, VELOCITIES
from ..spatial import rotation_matrix, spatial_inertia
from .arithmetic import Arithmetic, Matrix, Symbols, arithmetic_of

__all__ = ["Link", "Pose", "Robot"]

Floats = NDArray[np.float64]


# ---- spatial algebra -------------------------------------------------------------------------------------------------------


def hat(ops: Arithmetic, a: Matrix) -> Matrix:
    """Matrix [a]× of a column: [a]× b = a × b."""
    x, y, z = a[0, 0], a[1, 0], a[2, 0]
    return ops.matrix([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def motion_transform(ops: Arithmetic, E: Matrix, r: Matrix) -> Matrix:
    """Motion to a frame at r whose axes are the rows of E: [[E, −E [r]×], [0, E]]."""
    return ops.stack([ops.beside([E, -(E @ hat(ops, r))]), ops.beside([ops.zeros(3, 3), E])])


def cross(ops: Arithmetic, a: Matrix, b: Matrix) -> Matrix:
    """Cross product a × b of columns."""
    (x, y, z), (u, v, w) = ((c[0, 0], c[1, 0], c[2, 0]) for c in (a, b))
    return ops.matrix([[y * w - z * v], [z * u - x * w], [x * v - y * u]])


def motion_cross(ops: Arithmetic, v: Matrix, m: Matrix) -> Matrix:
    """Cross product of motions: [v; ω] × [m; w] = [ω × m + v × w; ω × w]."""
    return ops.stack([cross(ops, v[3:6, :], m[0:3, :]) + cross(ops, v[0:3, :], m[3:6, :]), cross(ops, v[3:6, :], m[3:6, :])])


def force_cross(ops: Arithmetic, v: Matrix, f: Matrix) -> Matrix:
    """Cross product of a motion and a force: [v; ω] ×* [f; n] = [ω × f; v × f + ω × n]."""
    return ops.stack([cross(ops, v[3:6, :], f[0:3, :]), cross(ops, v[0:3, :], f[0:3, :]) + cross(ops, v[3:6, :], f[3:6, :])])


def rotation(ops: Arithmetic, quaternion: Sequence[Any]) -> Matrix:
    """Rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    return ops.matrix(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


# ---- constants -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Link:
    """The body moved by one joint.

    Attributes:
        name: joint name.
        parent: parent link, −1 for the ground.
        type: joint type: hinge, slide, ball or free.
        q, v: index of its first coordinate and velocity; nv: number of velocities.
        E, r: (3, 3) axes as rows and (3,) origin of its frame in the parent link's, at zero displacement.
        reference: coordinate of a hinge or slide at zero displacement.
        H: (6, 6) inertia.
        armature: (nv,) armature.
    """

    name: str
    parent: int
    type: str
    q: int
    v: int
    nv: int
    E: Floats
    r: Floats
    reference: float
    H: Floats
    armature: Floats


def _clean(A: Floats) -> Floats:
    """Make zeros and ones exact that are so up to rounding, so that they fold in expressions."""
    rounded = np.round(A)
    return np.where(np.abs(A - rounded) < 1e-14, rounded, A) + 0.0


def _axes_along(axis: Floats) -> Floats:
    """Rotation whose third column is the axis; a signed permutation if the axis is along a coordinate axis."""
    k = int(np.argmax(np.abs(axis)))
    first = np.eye(3)[(k + 1) % 3]
    first = first - (first @ axis) * axis
    first = first / np.linalg.norm(first)
    return _clean(np.column_stack([first, np.cross(axis, first), axis]))


class Robot:
    """The links of a model, constants only.

    Args:
        model: the mechanism.

    Attributes:
        model: the mechanism.
        links: (:class:`Link`, …), a parent before its children.
        body_link, body_axes, body_origin: a body's link (−1: ground), its axes (3, 3) as columns and origin (3,) in that link's frame.
        children: child links of each link.
        nq, nv: sizes.
    """

    def __init__(self, model: Model) -> None:
        self.model, self.nq, self.nv = as_model(model), model.nq, model.nv
        nb = model.nbody
        self.body_link, self.body_axes, self.body_origin = [-1] * nb, [np.eye(3)] * nb, [np.zeros(3)] * nb
        frames: list[tuple[int, Floats, Floats]] = []  # parent link, axes and origin of each link in it
        for b in range(1, nb):
            p = int(model.body_parent[b])
            # frame of the body in the last link, advanced by its joints
            link, Rb = self.body_link[p], self.body_axes[p]
            axes, origin = Rb @ _clean(rotation_matrix(model.body_quaternion[b])), self.body_origin[p] + Rb @ model.body_position[b]
            for j in np.flatnonzero(model.joint_body == b):
                kind = model.joint_type[j]
                A = _axes_along(model.joint_axis[j]) if kind in ("hinge", "slide") else np.eye(3)
                a = np.zeros(3) if kind == "free" else model.joint_position[j]
                frames.append((-1, np.eye(3), np.zeros(3)) if kind == "free" else (link, axes @ A, origin + axes @ a))
                link, axes, origin = int(j), A.T, -A.T @ a
            self.body_link[b], self.body_axes[b], self.body_origin[b] = link, _clean(axes), origin + 0.0
        inertias = np.zeros((model.njoint, 6, 6))
        for b in range(1, nb):
            i, R = self.body_link[b], self.body_axes[b]
            if i >= 0 and (model.body_mass[b] > 0 or model.body_inertia[b].any()):
                com = self.body_origin[b] + R @ model.body_com[b]
                inertias[i] += spatial_inertia(model.body_mass[b], com, R @ model.body_inertia[b] @ R.T)
        self.links = tuple(
            Link(
                name=model.joint_names[j],
                parent=parent,
                type=model.joint_type[j],
                q=int(model.joint_qadr[j]),
                v=int(model.joint_vadr[j]),
                nv=VELOCITIES[model.joint_type[j]],
                E=_clean(axes.T),
                r=origin + 0.0,
                reference=float(model.joint_reference[j]),
                H=np.where(np.abs(inertias[j]) < 1e-15 * np.abs(inertias[j]).max(initial=0.0), 0.0, inertias[j]),
                armature=model.dof_armature[model.joint_vadr[j] :][: VELOCITIES[model.joint_type[j]]],
            )
            for j, (parent, axes, origin) in enumerate(frames)
        )
        self.children: list[list[int]] = [[] for _ in self.links]
        for i, link_ in enumerate(self.links):
            if link_.parent >= 0:
                self.children[link_.parent].append(i)

    def at(self, q: Any) -> Pose:
        """Compute the pose of the links in a configuration.

        Args:
            q: (nq,) MuJoCo's coordinates: an array of numbers or objects, or CasADi ``SX``.

        Returns:
            the pose, in the arithmetic of q.
        """
        ops = arithmetic_of(q)
        if not ops.symbolic and ops.matrix(np.zeros((0, 0))).dtype != object:
            q = numbers(q, "q", (self.nq,))
        if q.shape not in ((self.nq,), (self.nq, 1)):
            raise ArgumentError(f"q: expected shape ({self.nq},), got {tuple(q.shape)}.")
        return Pose(self, ops, [q[k] for k in range(self.nq)], floating="world")

    def symbols(self) -> Pose:
        """Compute the pose of the links for symbols, as papers count: hinges, slides and balls move by symbols ``q``.

        A floating base has S = 1, its velocity in its own frame, which coincides with the world's: only gravity depends on its pose,
        so the direction of gravity in the base is three symbols.
        """
        ops = Symbols()
        ca = ops.casadi
        used = [k for i in self.links if i.type != "free" for k in range(i.q, i.q + COORDINATES[i.type])]
        symbol = ca.SX.sym("q", len(used))
        q: list[Any] = [0.0] * self.nq
        for n, k in enumerate(used):
            q[k] = symbol[n]
        pose = Pose(self, ops, q, floating="body")
        pose.arguments = [symbol]
        if any(i.type == "free" for i in self.links):
            gravity = ca.SX.sym("gravity", 3)
            pose.arguments.append(gravity)
            pose.a0 = ops.stack([-gravity, ops.zeros(3, 1)])
        return pose


# ---- in a configuration ----------------------------------------------------------------------------------------------------


class Pose:
    """A robot in a configuration. Made by :meth:`Robot.at` and :meth:`Robot.symbols`.

    Attributes:
        robot: the constants; ops: the arithmetic.
        X, S, H: matrices of every link, see the top of the file; Ic: (n_i, n_i) armature of its joint.
        a0: (6, 1) acceleration of the ground that stands for gravity, −g.
        arguments: symbols, if made of symbols.
    """

    def __init__(self, robot: Robot, ops: Arithmetic, q: list[Any], floating: str) -> None:
        self.robot, self.ops, self.q = robot, ops, q
        self.parent = [link.parent for link in robot.links]
        self.children = robot.children
        self.nv = robot.nv
        self.E: list[Matrix] = []
        self.r: list[Matrix] = []
        self.S: list[Matrix] = []
        self.X: list[Matrix] = []
        self.H: list[Matrix] = []
        self.Ic: list[Matrix] = []
        self.arguments: list[Any] = []
        self.a0 = ops.matrix(np.concatenate([-robot.model.gravity, np.zeros(3)])[:, None])
        for link in robot.links:
            E, r, S = self._joint(link, q, floating)
            self.E.append(E)
            self.r.append(r)
            self.S.append(S)
            self.X.append(motion_transform(ops, E, r))
            self.H.append(ops.matrix(link.H))
            self.Ic.append(ops.matrix(np.diag(link.armature)))
        self.floating = floating

    def _joint(self, link: Link, q: list[Any], floating: str) -> tuple[Matrix, Matrix, Matrix]:
        """Axes, origin and motion subspace of a link."""
        ops = self.ops
        E0, r0, one = ops.matrix(link.E), ops.matrix(link.r[:, None]), np.eye(6)
        if link.type == "hinge":
            s, c = ops.sine_cosine(q[link.q] - link.reference)
            return ops.matrix([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ E0, r0, ops.matrix(one[:, 5:6])
        if link.type == "slide":
            along = ops.matrix([[0.0], [0.0], [q[link.q] - link.reference]])
            return E0, r0 + E0.T @ along, ops.matrix(one[:, 2:3])
        if link.type == "ball":
            return rotation(ops, q[link.q : link.q + 4]).T @ E0, r0, ops.matrix(one[:, 3:6])
        if floating == "body":
            return ops.identity(3), ops.zeros(3, 1), ops.identity(6)
        E = rotation(ops, q[link.q + 3 : link.q + 7]).T
        return E, ops.matrix([[x] for x in q[link.q : link.q + 3]]), ops.block_diagonal(E, ops.identity(3))

    def check(self, rows: int, **columns: Matrix) -> None:
        """Raise an error for anything that is not a matrix with this many rows."""
        for name, x in columns.items():
            shape = tuple(getattr(x, "shape", ()))
            if len(shape) != 2 or shape[0] != rows:
                raise ArgumentError(f"{name}: expected columns of {rows} numbers, shape ({rows}, k), got {shape or type(x).__name__}.")

    def velocities(self, i: int, v: Matrix) -> Matrix:
        """Return the part (n_i, 1) of joint i."""
        link = self.robot.links[i]
        return v[link.v : link.v + link.nv, :]

    def bias(self, i: int, velocity: Matrix, nu: Matrix) -> Matrix:
        """Acceleration (6, 1) of link i relative to its parent at constant joint velocities: v × S ν + Ṡ ν."""
        ops, link = self.ops, self.robot.links[i]
        m = self.S[i] @ nu
        if link.type == "free":
            # S rotates world axes into body axes: Ṡ ν = −ω × (Rᵀ v); v = S ν, so v × S ν = 0
            return ops.stack([cross(ops, m[0:3, :], m[3:6, :]), ops.zeros(3, 1)]) if self.floating == "world" else ops.zeros(6, 1)
        return motion_cross(ops, velocity, m)

    def ancestors(self, i: int) -> list[int]:
        """Links from i up to its root, i first."""
        path = []
        while i >= 0:
            path.append(i)
            i = self.parent[i]
        return path

    @cached_property
    def placements(self) -> list[tuple[Matrix, Matrix]]:
        """Axes (3, 3) as columns and origin (3, 1) of every link in the world."""
        out: list[tuple[Matrix, Matrix]] = []
        for E, r, p in zip(self.E, self.r, self.parent, strict=True):
            out.append((E.T, r) if p < 0 else (out[p][0] @ E.T, out[p][1] + out[p][0] @ r))
        return out
