"""Rows of constraints in link frames: velocity of the rows = Σ K_i v_i over links + rows of joints.

The papers' end-effectors, 𝓔, are rows that touch one link. A row that touches several counts here as several of them, summed in G; a row of a joint
touches its link and, with the opposite sign, the parent. Algorithms not extended to this take only rows that touch one link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from ..constraints import Constraint, collect
from ..errors import ArgumentError
from ..model import Loop
from .arithmetic import Matrix
from .robot import Pose, hat

__all__ = ["Block", "End", "Rows"]

_FRAME, _DISTANCE, _JOINT, _COUPLING, _CENTER, _LINKS, _, _CONTACT = range(8)


@dataclass
class Block:
    """Rows of one constraint.

    Attributes:
        first, rows: index of the first row, and number of rows.
        K: (rows, 6) per link that they touch.
        joints: (row, velocity, coefficient) for rows of joints.
    """

    first: int
    rows: int
    K: dict[int, Matrix] = field(default_factory=dict)
    joints: list[tuple[int, int, float]] = field(default_factory=list)

    @property
    def at(self) -> slice:
        """Slice of its rows among all rows."""
        return slice(self.first, self.first + self.rows)


class End(NamedTuple):
    """An end-effector: rows that touch one link."""

    link: int
    K: Matrix
    block: int


class Rows:
    """All rows of some constraints in a pose.

    Args:
        pose: robot pose.
        constraints: constraints of its model, or its loops.
        axes: "world" as in the library; "link" keeps points and welds on one link in the axes of that link, which makes their K constant and rotates
            each block of G. The papers count operations in these axes.

    Attributes:
        blocks: one :class:`Block` per constraint; m: number of rows.
    """

    def __init__(self, pose: Pose, constraints: Sequence[Constraint | Loop], axes: Literal["world", "link"] = "world") -> None:
        if axes not in ("world", "link"):
            raise ArgumentError(f"axes: expected 'world' or 'link', got {axes!r}.")
        self.pose, self.m, self.blocks = pose, 0, []
        for constraint in collect(pose.robot.model, constraints):
            kind, rows, data = constraint._recipe
            block = Block(self.m, rows)
            {
                _FRAME: _frame,
                _DISTANCE: _distance,
                _JOINT: _joint,
                _COUPLING: _coupling,
                _CENTER: _center,
                _LINKS: _links,
                _CONTACT: _contact,
            }[kind](pose, block, data, axes)
            self.blocks.append(block)
            self.m += rows

    @property
    def sizes(self) -> list[int]:
        """Number of rows of each block."""
        return [block.rows for block in self.blocks]

    def ends(self) -> list[End]:
        """List the end-effectors of all rows, one for each link that a block touches; blocks on the ground are left out."""
        out: list[End] = []
        for k, block in enumerate(self.blocks):
            K = dict(block.K)
            for r, v, c in block.joints:  # ν_v = Sᵀ (v_i − X v_π)
                i = next(i for i, link in enumerate(self.pose.robot.links) if link.v <= v < link.v + link.nv)
                row = self.pose.ops.zeros(block.rows, 6)
                at = v - self.pose.robot.links[i].v
                row[r : r + 1, :] = self.pose.S[i][:, at : at + 1].T * c
                K[i] = K[i] + row if i in K else row
                p = self.pose.parent[i]
                if p >= 0:
                    K[p] = K[p] - row @ self.pose.X[i] if p in K else -(row @ self.pose.X[i])
            out.extend(End(i, K_i, k) for i, K_i in K.items())
        return out

    def single(self, algorithm: str, others: str) -> list[End]:
        """List the end-effectors: blocks that touch a link; blocks on the ground are left out.

        Raises:
            ArgumentError: some rows touch two links or a joint.
        """
        out: list[End] = []
        for k, block in enumerate(self.blocks):
            if len(block.K) > 1 or block.joints:
                what = "a joint" if block.joints else f"{len(block.K)} links"
                raise ArgumentError(
                    f"constraints[{k}]: {algorithm} takes rows that touch one link, got rows that touch {what}. Use {others}, which take any rows."
                )
            out.extend(End(i, K, k) for i, K in block.K.items())
        return out


def _add(block: Block, link: int, K: Matrix) -> None:
    if link >= 0:
        block.K[link] = block.K[link] + K if link in block.K else K


def _point(pose: Pose, body: int, point: Any) -> tuple[int, Matrix, Matrix]:
    """Link of a body's point, the point (3, 1) in the link's frame, and J (3, 6): its velocity in link axes."""
    ops, robot = pose.ops, pose.robot
    p = ops.matrix((robot.body_origin[body] + robot.body_axes[body] @ np.asarray(point))[:, None] + 0.0)
    return robot.body_link[body], p, ops.beside([ops.identity(3), -hat(ops, p)])


def _contact(pose: Pose, block: Block, data: dict[str, Any], axes: str) -> None:
    """Rows of a contact with torsional or rolling friction: the point along the axes of the world, then the rotation about them, each with its scale."""
    ops = pose.ops
    A = np.reshape(data["matrix"], (3, 3))
    turns = block.rows - 3
    scales = np.array([1.0, *data["numbers"][: block.rows - 2]])
    for k, body in enumerate(data["bodies"]):
        link, _, J = _point(pose, body, data["points"][3 * k : 3 * k + 3])
        if link < 0:
            continue
        R = pose.placements[link][0]
        along = ops.matrix(np.vstack([[A[0]], scales[:2, None] * A[1:]])) @ R @ J
        about = ops.matrix(scales[2:, None] * A[:turns]) @ R
        K = ops.stack([along, ops.beside([ops.zeros(turns, 3), about])])
        _add(block, link, K if k == 0 else -K)


def _frame(pose: Pose, block: Block, data: dict[str, Any], axes: str) -> None:
    """Rows A (v₁ + ω₁ × p₁ − v₂ − ω₂ × p₂), then ω₁ − ω₂ about the last axes.

    Rows of a sliding point take both velocities at the second point; a universal joint's last row is about a × b.
    """
    ops, robot = pose.ops, pose.robot
    A = ops.matrix(np.reshape(data["matrix"], (3, 3)))
    pushes, crosses = data["point_rows"], block.rows == 4 and data["point_rows"] == 3
    moving = [b for b in data["bodies"] if robot.body_link[b] >= 0]
    links = {robot.body_link[b] for b in moving}
    carrier = None  # link in whose axes the rows are; None: world axes
    if data["axes_on"] >= 0:
        body = data["bodies"][data["axes_on"]]
        A = A @ ops.matrix(robot.body_axes[body].T)
        carrier = robot.body_link[body] if robot.body_link[body] >= 0 else None
    elif axes == "link" and len(links) == 1:
        A, carrier = ops.identity(3), links.pop()
    for k, body in enumerate(data["bodies"]):
        link, _, J = _point(pose, body, data["points"][3 * k : 3 * k + 3])
        if link < 0:
            continue
        if k == 0 and pushes < 3:
            J = _slid(pose, link, data)
        # axes of the rows in this link
        if carrier == link:
            B = A
        else:
            B = A if carrier is None else A @ pose.placements[carrier][0].T
            B = B @ pose.placements[link][0]
        turns, first = block.rows - pushes, pushes - 1 if pushes < 3 else 0
        about = _crossed(pose, data) @ pose.placements[link][0] if crosses else B[3 - turns : 3, :]
        along = B[first : first + pushes, :] @ J
        K = ops.stack([along, ops.beside([ops.zeros(turns, 3), about])]) if turns else along
        _add(block, link, K if k == 0 else -K)


def _slid(pose: Pose, link: int, data: dict[str, Any]) -> Matrix:
    """J (3, 6) of a link at the second body's point, in link axes."""
    ops = pose.ops
    other, p, _ = _point(pose, data["bodies"][1], data["points"][3:6])
    x = p if other < 0 else pose.placements[other][1] + pose.placements[other][0] @ p
    R, origin = pose.placements[link]
    return ops.beside([ops.identity(3), -hat(ops, R.T @ (x - origin))])


def _crossed(pose: Pose, data: dict[str, Any]) -> Matrix:
    """Return a × b (1, 3) in world axes, a on the first body and b on the second."""
    ops, robot = pose.ops, pose.robot
    axes = []
    for body, axis in zip(data["bodies"], (data["target"][:3], data["target"][3:]), strict=True):
        n, link = ops.matrix((robot.body_axes[body] @ np.asarray(axis))[:, None] + 0.0), robot.body_link[body]
        axes.append(n if link < 0 else pose.placements[link][0] @ n)
    return (hat(ops, axes[0]) @ axes[1]).T


def _distance(pose: Pose, block: Block, data: dict[str, Any], axes: str) -> None:
    """Row n · (v₁ + ω₁ × p₁ − v₂ − ω₂ × p₂), n along the line between the points."""
    ops = pose.ops
    spots = [_point(pose, body, data["points"][3 * k : 3 * k + 3]) for k, body in enumerate(data["bodies"])]
    x1, x2 = (p if i < 0 else pose.placements[i][1] + pose.placements[i][0] @ p for i, p, _ in spots)
    d = x1 - x2
    n = d.T * (1.0 / ops.root((d.T @ d)[0, 0]))
    for k, (i, _, J) in enumerate(spots):
        if i >= 0:
            K = n @ pose.placements[i][0] @ J
            _add(block, i, K if k == 0 else -K)


def _joint(pose: Pose, block: Block, data: dict[str, Any], axes: str) -> None:
    """Coefficient × velocity of a joint."""
    block.joints = [(r, v, c) for r, (v, c) in enumerate(zip(data["joints"], data["numbers"], strict=True))]


def _coupling(pose: Pose, block: Block, data: dict[str, Any], axes: str) -> None:
    """ν₁ − p'(q₂) ν₂ with ν = Sᵀ (v_i − X v_π(i)), where S is one column of the identity."""
    slope: Any = -1.0
    for k, j in enumerate(data["joints"]):
        link = pose.robot.links[j]
        if k == 1:
            c, x = data["numbers"], pose.q[link.q] - link.reference
            slope = ((x * (4 * c[4]) + 3 * c[3]) * x + 2 * c[2]) * x + c[1]
        K = pose.S[j].T * (-1.0 * slope)
        _add(block, j, K)
        _add(block, link.parent, -(K @ pose.X[j]))


def _center(pose: Pose, block: Block, data: dict[str, Any], axes: str) -> None:
    """Σ m (v + ω × c) / Σ m over the links, world axes."""
    for i, link in enumerate(pose.robot.links):
        if link.H[0, 0] > 0:
            # the first three rows of H are m [1, −[c]×]
            _add(block, i, pose.placements[i][0] @ (pose.H[i][0:3, :] * data["numbers"][0]))


def _links(pose: Pose, block: Block, data: dict[str, Any], axes: str) -> None:
    """K [velocity of the body's origin; angular velocity], world axes."""
    ops, robot = pose.ops, pose.robot
    given = np.reshape(data["matrix"], (len(data["bodies"]), block.rows, 6))
    for k, body in enumerate(data["bodies"]):
        link, _, J = _point(pose, body, (0.0, 0.0, 0.0))
        if robot.body_link[body] >= 0:
            R = pose.placements[link][0]
            full = ops.stack([R @ J, ops.beside([ops.zeros(3, 3), R])])
            _add(block, link, ops.matrix(given[k]) @ full)
