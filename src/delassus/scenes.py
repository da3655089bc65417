"""Generated mechanisms: chains, trees, loops, stacks; and scenes: mechanisms in a pose, with their contacts.

A mechanism is a :class:`~delassus.Model` with collision shapes. Rods and boxes have uniform density; the parameters that a paper fixes are the paper's.
Scenes are stored, not simulated: ``tools/make_scenes.py`` made them, docs/scenes.md lists them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._door import count, number, numbers, text, unknown
from .constraints import Connect, Constraint, JointFriction, PointContact, Weld, from_loop
from .errors import ArgumentError
from .model import Model, ModelBuilder
from .model import load as load_model
from .model.floor import with_floor
from .model.records import IDENTITY, Quaternion, Vector
from .spatial import rotation_matrix
from .state import body_placements

__all__ = [
    "Scene",
    "binary_tree",
    "box_bin",
    "box_pyramid",
    "box_stack",
    "brick_wall",
    "chain",
    "contact_set",
    "contact_sets",
    "dual_arm",
    "flat_pyramid",
    "fork",
    "four_bar",
    "ladder",
    "load",
    "model_of",
    "n_four_bar",
    "names",
    "net",
    "on_floor",
    "pendulum",
    "pyramid_with_robots",
    "ring",
    "robot_heap",
    "stem_with_branches",
    "stewart_platforms",
    "swimmer",
    "swimmer_scene",
]

_ROD_LENGTH, _ROD_RADIUS, _ROD_MASS = 0.2, 0.02, 0.5
_AXES: tuple[Vector, ...] = ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
_FRICTION = 0.8


def _cylinder_inertia(mass: float, length: float, radius: float, along: int) -> Vector:
    across = mass * (3 * radius**2 + length**2) / 12
    moments = [across, across, across]
    moments[along] = mass * radius**2 / 2
    return moments[0], moments[1], moments[2]


def _box_inertia(mass: float, half: Vector) -> Vector:
    x, y, z = (h * h for h in half)
    return mass * (y + z) / 3, mass * (x + z) / 3, mass * (x + y) / 3


def _floor(b: ModelBuilder) -> None:
    b.add_shape("world", "plane", (0.0, 0.0, 0.05), name="floor", friction=_FRICTION, rgba=(0.8, 0.8, 0.8, 1.0))


def _rod(
    b: ModelBuilder,
    name: str,
    parent: str,
    position: Vector,
    along: int,
    *,
    length: float = _ROD_LENGTH,
    mass: float = _ROD_MASS,
    radius: float = _ROD_RADIUS,
) -> None:
    """Add a rod from its body origin along +x (along=0), or along −z (along=2)."""
    sign = -1.0 if along == 2 else 1.0
    middle: Vector = (sign * length / 2 if along == 0 else 0.0, 0.0, sign * length / 2 if along == 2 else 0.0)
    b.add_body(name, parent, position=position, mass=mass, com=middle, inertia=_cylinder_inertia(mass, length, radius, along))
    half = max(length / 2 - radius, radius / 2)
    turn = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0) if along == 0 else (1.0, 0.0, 0.0, 0.0)
    b.add_shape(name, "capsule", (radius, half), position=middle, quaternion=turn, friction=_FRICTION)


def _limb(b: ModelBuilder, stem: str, parent: str, links: int, first: Vector) -> str:
    """Attach a serial limb of hinged rods to a body; returns the last one."""
    for k in range(links):
        name = f"{stem}{k}"
        _rod(b, name, parent, first if k == 0 else (0.0, 0.0, -_ROD_LENGTH), 2)
        b.add_joint(name, "hinge", name=f"{name}_joint", axis=_AXES[k % 3])
        parent = name
    return parent


def chain(n: int) -> Model:
    """Make a serial chain of ``n`` rods on hinges about y, x, z in turn, hanging from the world: nv = n."""
    n = count(n, "n")
    b = ModelBuilder(f"chain_{n}")
    _limb(b, "link", "world", n, (0.0, 0.0, 0.0))
    return b.build()


def binary_tree(levels: int, links_per_branch: int = 3) -> Model:
    """Balanced binary tree: branches of ``links_per_branch`` hinged rods, each splitting in two: nv = links_per_branch (2^levels − 1)."""
    levels, links = count(levels, "levels"), count(links_per_branch, "links_per_branch")
    b = ModelBuilder(f"binary_tree_{levels}")
    ends = {"b": _limb(b, "b_", "world", links, (0.0, 0.0, 0.0))}
    for level in range(1, levels):
        spread = 0.3 / 2**level
        nexts = {}
        for path, end in ends.items():
            for side, sign in (("0", -1.0), ("1", 1.0)):
                nexts[path + side] = _limb(b, f"{path}{side}_", end, links, (sign * spread, 0.0, -_ROD_LENGTH))
        ends = nexts
    return b.build()


def stem_with_branches(stem: int, branches: int, links: int = 7) -> Model:
    """Floating stem of hinged rods with ``branches`` limbs of ``links`` rods at each of its two ends (fig. 3a of PV-OSIMr).

    nv = 6 + (stem − 1) + 2 branches · links.
    """
    stem, branches, links = count(stem, "stem"), count(branches, "branches"), count(links, "links")
    b = ModelBuilder(f"stem_{stem}_branches_{branches}")
    for k in range(stem):
        _rod(b, f"stem{k}", f"stem{k - 1}" if k else "world", (_ROD_LENGTH if k else 0.0, 0.0, 0.0), 0)
        b.add_joint(f"stem{k}", "hinge" if k else "free", name=f"stem{k}_joint", axis=_AXES[k % 3])
    for side, body, x in (("left", "stem0", 0.0), ("right", f"stem{stem - 1}", _ROD_LENGTH)):
        for k in range(branches):
            _limb(b, f"{side}{k}_", body, links, (x, 0.1 * (k - (branches - 1) / 2), 0.0))
    return b.build()


def fork(limbs: int, links: int) -> Model:
    """Trunk on a hinge with ``limbs`` limbs of ``links`` hinged rods: nv = 1 + limbs · links."""
    limbs, links = count(limbs, "limbs"), count(links, "links")
    b = ModelBuilder(f"fork_{limbs}_{links}")
    _rod(b, "trunk", "world", (0.0, 0.0, 0.0), 0)
    b.add_joint("trunk", "hinge", name="trunk_joint", axis=(0.0, 0.0, 1.0))
    for k in range(limbs):
        _limb(b, f"limb{k}_", "trunk", links, (_ROD_LENGTH * (k + 1) / limbs, 0.0, 0.0))
    return b.build()


def dual_arm() -> Model:
    """Robot of 26 links on hinges: a head of 4, two arms of 7 with hands of three fingers that have 4 links (the example of Jain's paper, section 3): nv = 26."""
    b = ModelBuilder("dual_arm")
    _limb(b, "head", "world", 4, (0.0, 0.0, 1.0))
    for side, y in (("left", 0.3), ("right", -0.3)):
        wrist = _limb(b, f"{side}_arm", "world", 7, (0.0, y, 0.8))
        for k, links in enumerate((2, 1, 1)):
            _limb(b, f"{side}_finger{k}_", wrist, links, (0.05 * (k - 1), 0.0, -_ROD_LENGTH))
    return b.build()


def swimmer(links: int) -> Model:
    """Planar swimmer: rods in a row, hinged about z, the first one free in the plane (fig. 2 of the matrix-free paper): nv = links + 2."""
    links = count(links, "links")
    b = ModelBuilder(f"swimmer_{links}")
    _floor(b)
    for k in range(links):
        name = f"link{k}"
        _rod(b, name, f"link{k - 1}" if k else "world", (_ROD_LENGTH, 0.0, 0.0) if k else (0.0, 0.0, _ROD_RADIUS), 0)
        if k == 0:
            b.add_joint(name, "slide", name="x", axis=(1.0, 0.0, 0.0))
            b.add_joint(name, "slide", name="y", axis=(0.0, 1.0, 0.0))
        b.add_joint(name, "hinge", name=f"hinge{k}")
    return b.build()


def pendulum(links: int) -> Model:
    """Pendulum of 1 kg balls on hinges about y, 12 m long, hung 10 m above a floor, a wall 4 m away (the collision example of Jain's paper): nv = links."""
    links = count(links, "links")
    radius = 12.0 / (2 * links)
    b = ModelBuilder(f"pendulum_{links}", gravity=(0.0, 0.0, -9.8))
    b.add_shape("world", "plane", (0.0, 0.0, 0.05), name="floor", friction=0.5)
    b.add_shape(
        "world",
        "plane",
        (0.0, 0.0, 0.05),
        name="wall",
        position=(4.0, 0.0, 0.0),
        quaternion=(math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0),
        friction=0.5,
    )
    for k in range(links):
        name = f"ball{k}"
        b.add_body(
            name,
            f"ball{k - 1}" if k else "world",
            position=(0.0, 0.0, -2 * radius) if k else (0.0, 0.0, 10.0),
            mass=1.0,
            com=(0.0, 0.0, -radius),
            inertia=(0.4 * radius**2,) * 3,
        )
        b.add_joint(name, "hinge", name=f"hinge{k}", axis=(0.0, 1.0, 0.0))
        b.add_shape(name, "sphere", (radius,), position=(0.0, 0.0, -radius), friction=0.5)
    return b.build()


def four_bar(crank: float = 0.2, coupler: float = 0.5, rocker: float = 0.4, ground: float = 0.5) -> Model:
    """Crank-rocker in the xz plane, closed by one connect at its neutral pose: nv = 3, one degree of freedom.

    Args:
        crank, coupler, rocker, ground: lengths of the bars [m]; the crank points up at neutral and the others must reach.
    """
    lengths = [
        number(x, name, minimum=1e-6) for x, name in ((crank, "crank"), (coupler, "coupler"), (rocker, "rocker"), (ground, "ground"))
    ]
    crank, coupler, rocker, ground = lengths
    # the coupler's far end: on circles about the crank's tip (0, crank) and the rocker's foot (ground, 0)
    d = math.hypot(ground, crank)
    if not abs(coupler - rocker) < d < coupler + rocker:
        raise ArgumentError(
            f"four_bar: bars of lengths {lengths} do not meet with the crank upright. Make coupler + rocker longer than {d:.4g}."
        )
    a = (coupler**2 - rocker**2 + d**2) / (2 * d)
    h = math.sqrt(coupler**2 - a**2)
    ux, uz = ground / d, -crank / d
    tip = (a * ux - h * uz, crank + a * uz + h * ux)

    b = ModelBuilder("four_bar")
    _bar(b, "crank", "world", (0.0, 0.0, 0.0), crank, math.pi / 2)
    _bar(b, "coupler", "crank", (crank, 0.0, 0.0), coupler, math.atan2(tip[1] - crank, tip[0]) - math.pi / 2)
    _bar(b, "rocker", "world", (ground, 0.0, 0.0), rocker, math.atan2(tip[1], tip[0] - ground))
    b.add_connect("coupler", "rocker", point=(coupler, 0.0, 0.0), other_point=(rocker, 0.0, 0.0), name="pin")
    return b.build()


def n_four_bar(n: int) -> Model:
    """``n`` four-bars in a row: n + 1 upright rods of 1 m and 1 kg, tops joined by n couplers; singular when the rods lie flat.

    nv = 2n + 1, n connects, one degree of freedom.
    """
    n = count(n, "n")
    b = ModelBuilder(f"n_four_bar_{n}")
    for k in range(n + 1):
        _bar(b, f"rod{k}", "world", (float(k), 0.0, 0.0), 1.0, math.pi / 2, mass=1.0)
        if k < n:
            _bar(b, f"coupler{k}", f"rod{k}", (1.0, 0.0, 0.0), 1.0, -math.pi / 2, mass=1.0)
    for k in range(n):
        b.add_connect(f"coupler{k}", f"rod{k + 1}", point=(1.0, 0.0, 0.0), other_point=(1.0, 0.0, 0.0), name=f"pin{k}")
    return b.build()


def ring(n: int) -> Model:
    """Chain of ``n`` rods of 0.2 m, closed, in the xz plane, a regular polygon at neutral, the first hinged to the world: nv = n, one connect.

    One loop for any number of links: fixed m, growing n.
    """
    n = count(n, "n", minimum=3)
    b = ModelBuilder(f"ring_{n}")
    turn = 2 * math.pi / n
    for k in range(n):
        place = (_ROD_LENGTH if k else 0.0, 0.0, 0.0)
        _bar(b, f"rod{k}", f"rod{k - 1}" if k else "world", place, _ROD_LENGTH, turn if k else 0.0, mass=_ROD_MASS)
    b.add_connect(f"rod{n - 1}", "rod0", point=(_ROD_LENGTH, 0.0, 0.0), other_point=(0.0, 0.0, 0.0), name="pin")
    return b.build()


def ladder(rungs: int) -> Model:
    """Two upright chains of ``rungs`` rods each, joined by a rung at every hinge, in the xz plane: nv = 3 rungs, as many connects.

    Loops that touch: each closes over the one below it. n and m grow together.
    """
    rungs = count(rungs, "rungs")
    b = ModelBuilder(f"ladder_{rungs}")
    for side, x in (("left", 0.0), ("right", _ROD_LENGTH)):
        for k in range(rungs):
            place = (_ROD_LENGTH, 0.0, 0.0) if k else (x, 0.0, 0.0)
            _bar(b, f"{side}{k}", f"{side}{k - 1}" if k else "world", place, _ROD_LENGTH, 0.0 if k else math.pi / 2, mass=_ROD_MASS)
    end = (_ROD_LENGTH, 0.0, 0.0)
    for k in range(rungs):
        _bar(b, f"rung{k}", f"left{k}", end, _ROD_LENGTH, -math.pi / 2, mass=_ROD_MASS)
        b.add_connect(f"rung{k}", f"right{k}", point=end, other_point=end, name=f"pin{k}")
    return b.build()


def net(rows: int, columns: int) -> Model:
    """Square meshes of rods in the xz plane, ``rows`` × ``columns`` knots, hung at the middle of its top row.

    nv = rows (columns − 1) + columns (rows − 1), one degree of freedom per rod; (rows − 1)(columns − 1) connects, one per mesh. The spanning tree
    follows nested separators: a line of knots that halves the net, attached lines that halve the halves, and so on. Links are eliminated from leaves to
    root, so this tree allows an order of nested dissection. A tree of parallel columns does not, and its fronts are as wide as the net.
    """
    rows, columns = count(rows, "rows", minimum=2), count(columns, "columns", minimum=2)
    b = ModelBuilder(f"net_{rows}x{columns}")
    carrier: dict[tuple[int, int], tuple[str, float]] = {}  # a knot: the rod that ends there, and its heading
    joined: set[tuple[tuple[int, int], tuple[int, int]]] = set()

    def rod(name: str, start: tuple[int, int], end: tuple[int, int]) -> float:
        joined.update(((start, end), (end, start)))
        heading = math.atan2(start[0] - end[0], end[1] - start[1])  # rows go down
        on, turned = carrier[start]
        place = (_ROD_LENGTH * start[1], 0.0, -_ROD_LENGTH * start[0]) if on == "world" else (_ROD_LENGTH, 0.0, 0.0)
        _bar(b, name, on, place, _ROD_LENGTH, heading - turned, mass=_ROD_MASS)
        return heading

    for knot, above in _nested_lines(rows, columns):
        if above is None:
            carrier[knot] = ("world", 0.0)
        else:
            name = f"rod{knot[0]}_{knot[1]}"
            carrier[knot] = (name, rod(name, above, knot))
    tip = (_ROD_LENGTH, 0.0, 0.0)
    for i in range(rows):
        for j in range(columns):
            for end, side in (((i, j + 1), "right"), ((i + 1, j), "down")):
                if end in carrier and ((i, j), end) not in joined:
                    tie = f"tie{i}_{j}_{side}"
                    rod(tie, (i, j), end)
                    on = carrier[end][0]
                    there = (_ROD_LENGTH * end[1], 0.0, -_ROD_LENGTH * end[0]) if on == "world" else tip
                    b.add_connect(tie, on, point=tip, other_point=there, name=f"pin{i}_{j}_{side}")
    return b.build()


def _nested_lines(rows: int, columns: int) -> Iterator[tuple[tuple[int, int], tuple[int, int] | None]]:
    """Knots of a net with the parent of each, parents first: lines that halve the remaining regions, across their longer side, starting where an end of the line meets an earlier one."""
    hung: set[tuple[int, int]] = set()
    regions = [(0, rows, 0, columns)]
    while regions:
        top, bottom, left, right = regions.pop()
        if top == bottom or left == right:
            continue
        i, j = (top + bottom) // 2, (left + right) // 2
        lines = {
            "down": ([(k, j) for k in range(top, bottom)], (top - 1, j), (bottom, j)),
            "across": ([(i, k) for k in range(left, right)], (i, left - 1), (i, right)),
        }
        longer = "down" if right - left >= bottom - top else "across"
        for way in (longer, "across" if longer == "down" else "down"):
            line, before, after = lines[way]
            if not hung or before in hung:
                above = before if hung else None
            elif after in hung:
                line, above = line[::-1], after
            else:
                continue
            for knot in line:
                hung.add(knot)
                yield knot, above
                above = knot
            regions += (
                [(top, bottom, left, j), (top, bottom, j + 1, right)]
                if way == "down"
                else [(top, i, left, right), (i + 1, bottom, left, right)]
            )
            break


def stewart_platforms(n: int) -> Model:
    """``n`` Stewart platforms side by side: a free plate each, on six legs that turn about two axes and lengthen: nv = 24 n, 6 n connects.

    The loops of one platform do not touch those of the next.
    """
    n = count(n, "n")
    b = ModelBuilder(f"stewart_platforms_{n}")
    height, mass = 0.8, 2.0
    for k in range(n):
        x = 1.5 * k
        b.add_body(f"plate{k}", position=(x, 0.0, height), mass=mass, inertia=_cylinder_inertia(mass, 0.05, 0.35, 2))
        b.add_joint(f"plate{k}", "free", name=f"plate{k}_free")
        b.add_shape(f"plate{k}", "cylinder", (0.35, 0.025), contype=0)
        for leg in range(6):
            # feet and heads in pairs, turned against each other
            side = -1 if leg % 2 else 1
            foot, head = 2 * math.pi / 3 * (leg // 2) + 0.2 * side, 2 * math.pi / 3 * (leg // 2) + 0.85 * side
            bottom = np.array([x + 0.5 * math.cos(foot), 0.5 * math.sin(foot), 0.0])
            on_plate = (0.3 * math.cos(head), 0.3 * math.sin(head), 0.0)
            d = np.array([x, 0.0, height]) + on_plate - bottom
            length = float(np.linalg.norm(d))
            # from the z axis to the leg
            axis = np.array([-d[1], d[0], 0.0])
            half = math.acos(d[2] / length) / 2
            turn = (math.cos(half), *(math.sin(half) * axis / np.linalg.norm(axis)))
            for name, parent, position, quaternion in (
                (f"lower{k}_{leg}", "world", tuple(bottom), turn),
                (f"upper{k}_{leg}", f"lower{k}_{leg}", (0.0, 0.0, length / 2), IDENTITY),
            ):
                b.add_body(
                    name,
                    parent,
                    position=position,
                    quaternion=quaternion,
                    mass=_ROD_MASS,
                    com=(0.0, 0.0, length / 4),
                    inertia=_cylinder_inertia(_ROD_MASS, length / 2, _ROD_RADIUS, 2),
                )
                b.add_shape(name, "capsule", (_ROD_RADIUS, length / 4), position=(0.0, 0.0, length / 4), contype=0)
            for about in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)):
                b.add_joint(f"lower{k}_{leg}", "hinge", name=f"foot{k}_{leg}_{'x' if about[0] else 'y'}", axis=about)
            b.add_joint(f"upper{k}_{leg}", "slide", name=f"leg{k}_{leg}", axis=(0.0, 0.0, 1.0))
            b.add_connect(f"upper{k}_{leg}", f"plate{k}", point=(0.0, 0.0, length / 2), other_point=on_plate, name=f"head{k}_{leg}")
    return b.build()


def _bar(b: ModelBuilder, name: str, parent: str, position: Vector, length: float, angle: float, *, mass: float | None = None) -> None:
    """Add a bar along its x axis, rotated upwards by ``angle`` in the xz plane, hinged about y; bars pass through each other."""
    mass = length if mass is None else mass
    turn = (math.cos(angle / 2), 0.0, -math.sin(angle / 2), 0.0)
    b.add_body(
        name,
        parent,
        position=position,
        quaternion=turn,
        mass=mass,
        com=(length / 2, 0.0, 0.0),
        inertia=_cylinder_inertia(mass, length, 0.01, 0),
    )
    b.add_joint(name, "hinge", name=f"{name}_hinge", axis=(0.0, 1.0, 0.0))
    b.add_shape(
        name, "capsule", (0.01, length / 2), position=(length / 2, 0.0, 0.0), quaternion=(math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0), contype=0
    )  # fmt: skip


def _box(
    b: ModelBuilder,
    name: str,
    position: Vector,
    half: Vector,
    mass: float,
    *,
    quaternion: Quaternion = IDENTITY,
    friction: float = _FRICTION,
    rgba: tuple[float, float, float, float] = (0.72, 0.53, 0.32, 1.0),
) -> None:
    b.add_body(name, position=position, quaternion=quaternion, mass=mass, inertia=_box_inertia(mass, half))
    b.add_joint(name, "free", name=f"{name}_free")
    b.add_shape(name, "box", half, friction=friction, rgba=rgba)


def box_stack(n: int) -> Model:
    """``n`` free boxes of 20 cm on top of each other on a floor: nv = 6n."""
    n = count(n, "n")
    b = ModelBuilder(f"box_stack_{n}")
    _floor(b)
    for k in range(n):
        _box(b, f"box{k}", (0.0, 0.0, 0.1 + 0.2 * k), (0.1, 0.1, 0.1), 1.0)
    return b.build()


def box_pyramid(rows: int) -> Model:
    """Square pyramid of free boxes, rows × rows at the bottom, one on top, each resting on four: nv = rows (rows + 1)(2 rows + 1).

    Four rows are 30 boxes; with four points per pair of surfaces they touch in 288.
    """
    rows = count(rows, "rows")
    b = ModelBuilder(f"box_pyramid_{rows}")
    _floor(b)
    _pyramid(b, rows)
    return b.build()


def _pyramid(b: ModelBuilder, rows: int) -> None:
    side, gap = 0.2, 0.02
    for layer in range(rows):
        width = rows - layer
        for i in range(width):
            for j in range(width):
                x, y = ((k - (width - 1) / 2) * (side + gap) for k in (i, j))
                _box(b, f"box{layer}_{i}_{j}", (x, y, side * (layer + 0.5)), (side / 2,) * 3, 1.0)


def flat_pyramid(rows: int) -> Model:
    """Pyramid of free boxes in one plane, rows at the bottom, one on top, each resting on two: nv = 3 rows (rows + 1)."""
    rows = count(rows, "rows")
    side, gap = 0.2, 0.02
    b = ModelBuilder(f"flat_pyramid_{rows}")
    _floor(b)
    for layer in range(rows):
        for i in range(rows - layer):
            x = (i - (rows - layer - 1) / 2) * (side + gap)
            _box(b, f"box{layer}_{i}", (x, 0.0, side * (layer + 0.5)), (side / 2,) * 3, 1.0)
    return b.build()


def pyramid_with_robots(rows: int = 4, robots: int = 3) -> Model:
    """Humanoids G1 in the air above a square pyramid of boxes: with four rows and three robots nv = 285."""
    rows, robots = count(rows, "rows"), count(robots, "robots", 0)
    b = ModelBuilder(f"pyramid_{rows}_robots_{robots}")
    _floor(b)
    _pyramid(b, rows)
    humanoid = load_model("g1")
    for k in range(robots):
        angle = 2 * math.pi * k / max(robots, 1)
        b.add_model(
            humanoid,
            prefix=f"robot{k}_",
            position=(0.6 * math.cos(angle), 0.6 * math.sin(angle), 0.2 * rows + 0.3),
            quaternion=(math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)),
        )
    return b.build()


def on_floor(
    robot: Any, *, floating_base: bool = False, package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None
) -> Model:
    """Put a robot on a floor at z = 0; its keyframes stay, and so do its meshes, height fields and explicit pairs. A model that has a floor already is returned unchanged.

    A floating robot without keyframes that reaches below the floor is lifted until its lowest shape is on it. Where a robot that is fixed to the world reaches below z = 0, the floor
    is as deep as its lowest shape.

    Args:
        robot: any source that :func:`delassus.load` takes.
        floating_base: URDF only: let the root float.
        package_dirs: folders of the packages named in a URDF, see :func:`delassus.load`.

    Examples:
        >>> import delassus as dl
        >>> dl.scenes.on_floor("go2").shapes[0].name
        'floor'
    """
    return with_floor(load_model(robot, floating_base=floating_base, package_dirs=package_dirs))


# ---- piles: things that fall onto each other ----------------------------------------------------------------------------------

_BOX_HALF = (0.03, 0.05)  # half edges of loose boxes [m]
_BOX_DENSITY = (200.0, 1000.0)  # [kg/m³]
_CELL = 2 * math.sqrt(3) * _BOX_HALF[1] + 0.002  # width of a column of boxes in any orientation [m]
_CLEARANCE = 0.005  # between boxes of a column at the start [m]


def _friction_range(friction: tuple[float, float]) -> tuple[float, float]:
    low, high = numbers(friction, "friction", (2,)).tolist()
    if not 0 <= low <= high:
        raise ArgumentError(f"friction: expected (minimum, maximum) with 0 ≤ minimum ≤ maximum, got {(low, high)}.")
    return low, high


def _turn(rng: np.random.Generator) -> Quaternion:
    """Draw an orientation, uniformly distributed."""
    w, x, y, z = rng.standard_normal(4)
    size = math.sqrt(w * w + x * x + y * y + z * z)
    return float(w / size), float(x / size), float(y / size), float(z / size)


def _loose_boxes(b: ModelBuilder, n: int, side: int, bottom: ArrayLike, rng: np.random.Generator, friction: tuple[float, float]) -> float:
    """Add boxes of random size, mass, friction and orientation in side × side columns above ``bottom``, none touching another; returns the height of their top [m].

    ``bottom`` is one height, or one per column. A column is as wide as the longest box is in any direction. In a column each box takes the height of its rotated extent.
    """
    tops = np.zeros(side * side) + np.asarray(bottom, dtype=float)
    for k in range(n):
        half, turn = rng.uniform(*_BOX_HALF, 3), _turn(rng)
        reach = float(np.abs(rotation_matrix(turn)[2]) @ half)
        column = k % (side * side)
        x, y = ((i - (side - 1) / 2) * _CELL for i in (column % side, column // side))
        z = tops[column] + _CLEARANCE + reach
        tops[column] = z + reach
        mass = float(8 * half.prod() * rng.uniform(*_BOX_DENSITY))
        shade = float(rng.uniform(0.6, 1.1))
        _box(
            b,
            f"box{k}",
            (x, y, float(z)),
            (float(half[0]), float(half[1]), float(half[2])),
            mass,
            quaternion=turn,
            friction=float(rng.uniform(*friction)),
            rgba=(0.72 * shade, 0.53 * shade, 0.32 * shade, 1.0),
        )
    return float(tops.max())


def _walls(b: ModelBuilder, inside: float, height: float, friction: float) -> None:
    """Add four walls about a square of ``inside`` × ``inside`` on the floor."""
    thick = 0.1
    along, out = inside / 2 + 2 * thick, inside / 2 + thick
    for name, x, y, half in (
        ("east", out, 0.0, (thick, along, height / 2)),
        ("west", -out, 0.0, (thick, along, height / 2)),
        ("north", 0.0, out, (along, thick, height / 2)),
        ("south", 0.0, -out, (along, thick, height / 2)),
    ):
        b.add_shape("world", "box", half, name=f"wall_{name}", position=(x, y, height / 2), friction=friction, rgba=(0.6, 0.7, 0.8, 0.25))


def box_bin(
    n: int, layers: int | None = None, *, robots: int = 0, robot: Any = "go2", seed: int = 0, friction: tuple[float, float] = (0.3, 0.8)
) -> Model:
    """``n`` boxes of different size, mass and friction above each other in a square bin, randomly oriented, none touching another: nv = 6n, plus that of robots.

    Let go, they fall into a pile of about a quarter of their initial height. Edges are 6 to 10 cm, densities 200 to 1,000 kg/m³.

    Args:
        n: number of boxes.
        layers: boxes above each other at the start. Few make a wide, shallow bin, many a narrow, deep one. Default: a pile about two thirds as high as wide.
        robots: number of robots on the floor of the bin, upright with random headings; columns of boxes above them start higher. The bin is at least as wide as they need.
        robot: any source that :func:`delassus.load` takes; it stands in its neutral configuration, without servos.
        seed: the same seed makes the same boxes.
        friction: range of the coefficients of boxes; floor and walls have the minimum, so that the coefficient of the box applies there.

    Examples:
        >>> import delassus as dl
        >>> sim = dl.Simulator(dl.scenes.box_bin(20, seed=1))
        >>> len(sim.run(0.5, progress=False).times)
        501
    """
    n, low_high, robots = count(n, "n"), _friction_range(friction), count(robots, "robots", 0)
    side = math.ceil((n / 4) ** (1 / 3)) if layers is None else math.ceil(math.sqrt(n / count(layers, "layers")))
    rng = np.random.default_rng(count(seed, "seed", 0))
    b = ModelBuilder(f"box_bin_{n}_{robots}" if robots else f"box_bin_{n}")
    b.add_shape("world", "plane", (0.0, 0.0, 0.05), name="floor", friction=low_high[0], rgba=(0.8, 0.8, 0.8, 1.0))
    bottoms: ArrayLike = 0.0
    if robots:
        # robots in squares as wide as a circle about one, and the height of each column's lowest box above them
        model = load_model(robot)
        centres, radii = _spheres(model)
        middle = (centres.max(axis=0) + centres.min(axis=0)) / 2
        width = 2 * float((np.linalg.norm((centres - middle)[:, :2], axis=1) + radii).max()) + 0.02
        squares = math.ceil(math.sqrt(robots))
        side = max(side, math.ceil(squares * width / _CELL))
        pitch, low = side * _CELL / squares, float((centres[:, 2] - radii).min())
        top = 0.01 + float((centres[:, 2] + radii).max()) - low
        places = (np.arange(side) - (side - 1) / 2) * _CELL
        above = np.zeros((side, side), dtype=bool)  # y, x
        for k in range(robots):
            x, y = ((i - (squares - 1) / 2) * pitch for i in (k % squares, k // squares))
            yaw = float(rng.uniform(-math.pi, math.pi))
            turn = (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
            dx, dy, _ = rotation_matrix(turn) @ middle
            b.add_model(model, prefix=f"robot{k}_", position=(x - dx, y - dy, 0.01 - low), quaternion=turn)
            above |= np.hypot(places[:, None] - y, places - x) < (width + math.sqrt(2) * _CELL) / 2
        bottoms = np.where(above, top, 0.0).ravel()
    top = _loose_boxes(b, n, side, bottoms, rng, low_high)
    _walls(b, side * _CELL, top, low_high[0])
    return b.build()


def brick_wall(rows: int = 8, columns: int = 6) -> Model:
    """Wall of bricks in running bond, and a heavy ball in front of its middle: the last body, so ``v[-6]`` is its speed towards the wall.

    Bricks are 20 × 10 × 10 cm and weigh 2 kg; every second row ends in halves, so that both ends of the wall are straight. The ball weighs 10 kg, and touches nothing at the start.
    nv = 6 (rows · columns + rows // 2 + 1).

    Examples:
        >>> import delassus as dl
        >>> sim = dl.Simulator(dl.scenes.brick_wall())
        >>> v = sim.v.copy()
        >>> v[-6] = 8.0
        >>> sim.reset(v=v)
        >>> sim.step().status
        'solved'
    """
    rows, columns = count(rows, "rows"), count(columns, "columns")
    length, height, gap, radius = 0.2, 0.1, 0.004, 0.12
    pitch = length + gap
    b = ModelBuilder(f"brick_wall_{rows}_{columns}")
    _floor(b)
    for row in range(rows):
        whole, half = (length / 2, 2.0), ((length - gap) / 4, 1.0)  # half a length, and a mass; two halves and a gap are as long as a brick
        bricks = [half, *[whole] * (columns - 1), half] if row % 2 else [whole] * columns
        start = -columns * pitch / 2
        for k, (reach, mass) in enumerate(bricks):
            y = start + gap / 2 + reach
            start += 2 * reach + gap
            _box(b, f"brick{row}_{k}", (0.0, y, height * (row + 0.5)), (height / 2, reach, height / 2), mass, rgba=(0.70, 0.33, 0.24, 1.0))
    b.add_body("ball", position=(-0.25, 0.0, max(radius + 0.01, 0.6 * rows * height)), mass=10.0, inertia=(0.4 * 10.0 * radius**2,) * 3)
    b.add_joint("ball", "free", name="ball_free")
    b.add_shape("ball", "sphere", (radius,), friction=_FRICTION, rgba=(0.25, 0.25, 0.3, 1.0))
    return b.build()


def robot_heap(robots: int = 3, boxes: int = 0, *, robot: Any = "g1", seed: int = 0) -> Model:
    """Robots above each other in the air with random orientations, optionally above loose boxes, which fall into a heap. Initially nothing touches.

    Three G1 have nv = 105; a box adds 6.

    Args:
        robots: number of robots.
        boxes: number of loose boxes below them, in columns on a square as wide as the robot is high.
        robot: any source that :func:`delassus.load` takes; it falls in its neutral configuration.
        seed: the same seed makes the same heap.
    """
    robots, boxes = count(robots, "robots", 0), count(boxes, "boxes", 0)
    rng = np.random.default_rng(count(seed, "seed", 0))
    model = load_model(robot)
    b = ModelBuilder(f"{model.name}_heap_{robots}_{boxes}")
    _floor(b)
    centres, radii = _spheres(model)
    width = float(np.linalg.norm(centres.max(axis=0) - centres.min(axis=0)))
    top = _loose_boxes(b, boxes, max(1, int(width / _CELL)), 0.0, rng, (0.3, 0.8)) if boxes else 0.0
    for k in range(robots):
        turn, (x, y) = _turn(rng), rng.uniform(-0.1, 0.1, 2).tolist()
        heights = centres @ rotation_matrix(turn)[2]
        middle = rotation_matrix(turn) @ (centres.max(axis=0) + centres.min(axis=0)) / 2
        z = top + 0.02 - float((heights - radii).min(initial=0.0))
        top = z + float((heights + radii).max(initial=0.0))
        b.add_model(model, prefix=f"robot{k}_", position=(x - middle[0], y - middle[1], z), quaternion=turn)
    return b.build()


def _spheres(model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return centres (K, 3) and radii (K,) of spheres about the shapes of a robot at its neutral configuration; without shapes a point."""
    placements = body_placements(model, model.neutral())
    index = {name: k for k, name in enumerate(model.body_names)}
    shapes = [shape for shape in model.shapes if shape.kind != "plane"]
    if not shapes:
        return np.zeros((1, 3)), np.zeros(1)
    centres = np.array([placements[index[s.body], :3, :3] @ s.position + placements[index[s.body], :3, 3] for s in shapes])
    return centres, np.array([_around(s.kind, s.size) for s in shapes])


def _around(kind: str, size: tuple[float, ...]) -> float:
    """Return the radius of a sphere about a shape [m]."""
    if kind == "sphere":
        return size[0]
    if kind == "capsule":
        return size[0] + size[1]
    return max(size) if kind == "ellipsoid" else math.hypot(*size)


# ---- scenes -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scene:
    """A mechanism in a pose, with its constraints and contacts; ``model, q, constraints = scene``.

    Attributes:
        name: scene name.
        model: the mechanism, its floor included.
        q: (nq,) the pose, read-only.
        constraints: the model's loops, then contacts, then joint friction.
    """

    name: str
    model: Model
    q: NDArray[np.float64]
    constraints: tuple[Constraint, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.model, self.q, self.constraints))

    @property
    def contacts(self) -> int:
        """Number of point contacts."""
        return sum(isinstance(c, PointContact) for c in self.constraints)

    @property
    def rows(self) -> int:
        """Number of rows of all constraints."""
        return sum(c.rows for c in self.constraints)


# Table I of the matrix-free paper, in its order; each robot also with joint friction
_MODELS: dict[str, Callable[[], Model]] = {
    "go2-standing": partial(on_floor, "go2"),
    "go2-standing-friction": partial(on_floor, "go2"),
    "go2-fallen": partial(on_floor, "go2"),
    "go2-fallen-friction": partial(on_floor, "go2"),
    "cassie-standing": partial(on_floor, "cassie"),
    "cassie-standing-friction": partial(on_floor, "cassie"),
    "g1-standing": partial(on_floor, "g1"),
    "g1-standing-friction": partial(on_floor, "g1"),
    "g1-fallen": partial(on_floor, "g1"),
    "g1-fallen-friction": partial(on_floor, "g1"),
    "box-stack": partial(box_stack, 30),
    "box-pyramid": partial(box_pyramid, 4),
    "pyramid-with-robots": partial(pyramid_with_robots, 4, 3),
}

names: tuple[str, ...] = tuple(_MODELS)


def model_of(name: str) -> Model:
    """Make the model of a stored scene.

    Args:
        name: one of ``names``.

    Raises:
        UnknownNameError: no scene has this name; the message lists them.
    """
    if text(name, "name") not in _MODELS:
        raise unknown("scene", name, names)
    return _MODELS[name]()


def load(name: str) -> Scene:
    """Load a stored scene: a model at rest or in a fall, with MuJoCo's contacts, at most four per pair of shapes.

    Seeds and times were chosen to match the numbers of rows in Table I of the matrix-free paper; the poses are not the paper's. "g1-fallen-friction"
    has 24 contacts where the paper prints 25, which its 101 rows do not allow. In "pyramid-with-robots" the robots hit the pyramid and many boxes have lost contact.

    Args:
        name: one of ``names``; those ending in "-friction" have joint friction too.

    Raises:
        UnknownNameError: no scene has this name; the message lists them.
    """
    model = model_of(name)
    stored = json.loads((resources.files("delassus") / "assets" / "scenes" / f"{name}.json").read_text(encoding="utf-8"))
    loops = (from_loop(model, loop) for loop in model.loops if loop.active)
    contacts = (PointContact(model, **contact) for contact in stored["contacts"])
    rubbing = (JointFriction(model, joint, friction) for joint, friction in stored["joint_friction"].items())
    return _scene(name, model, np.array(stored["q"]), [*loops, *contacts, *rubbing])


def _scene(name: str, model: Model, q: NDArray[np.float64], constraints: list[Constraint]) -> Scene:
    q.setflags(write=False)
    return Scene(name, model, q, tuple(constraints))


def swimmer_scene(links: int) -> Scene:
    """Make a swimmer that snakes gently on the floor, each rod touching at its two ends: nv = links + 2, 6 rows per link (fig. 2 of the matrix-free paper)."""
    model = swimmer(links)
    q = model.neutral()
    q[2:] = 0.1 * np.sin(0.7 * np.arange(links) + 0.4)  # a wave without symmetry, headings within 0.3 rad
    placements = body_placements(model, q)
    ends = [(x, 0.0, -_ROD_RADIUS) for x in (_ROD_RADIUS, _ROD_LENGTH - _ROD_RADIUS)]
    contacts: list[Constraint] = [
        PointContact(model, k, point=p, other_point=placements[k, :3, :3] @ p + placements[k, :3, 3], friction=_FRICTION)
        for k in range(1, model.nbody)
        for p in ends
    ]
    return _scene(f"swimmer-{links}", model, q, contacts)


# ---- robots held by feet, hands and fingertips --------------------------------------------------------------------------------

# feet F, hands H, fingertips T: body, and point on it [m]. A quadruped's first two feet are a diagonal.
_FINGERS: tuple[tuple[str, Vector], ...] = (
    ("ffdistal", (0.0, 0.0, 0.027)),
    ("mfdistal", (0.0, 0.0, 0.027)),
    ("rfdistal", (0.0, 0.0, 0.027)),
    ("lfdistal", (0.0, 0.0, 0.027)),
    ("thdistal", (0.0, 0.0, 0.031)),
)
_ENDS: dict[str, dict[str, tuple[tuple[str, Vector], ...]]] = {
    "iiwa": {"H": (("link7", (0.0, 0.0, 0.045)),)},
    "solo": {
        "F": (
            ("FL_LOWER_LEG", (0.0, 0.008, -0.16)),
            ("HR_LOWER_LEG", (0.0, -0.008, -0.16)),
            ("FR_LOWER_LEG", (0.0, -0.008, -0.16)),
            ("HL_LOWER_LEG", (0.0, 0.008, -0.16)),
        )
    },
    "go2": {"F": tuple((f"{leg}_calf", (-0.002, 0.0, -0.213)) for leg in ("FL", "RR", "FR", "RL"))},
    "g1": {
        "F": tuple((f"{side}_ankle_roll_link", (0.035, 0.0, -0.035)) for side in ("left", "right")),
        "H": (("left_wrist_yaw_link", (0.14, -0.006, 0.005)), ("right_wrist_yaw_link", (0.14, 0.006, 0.005))),
    },
    "talos": {
        "F": tuple((f"leg_{side}_6_link", (0.0, 0.0, -0.107)) for side in ("left", "right")),
        "H": tuple((f"arm_{side}_7_link", (0.0, 0.0, -0.145)) for side in ("left", "right")),
    },
    "atlas_hands": {
        "F": tuple((f"{side}_foot", (0.0426, 0.0017, -0.07645)) for side in ("l", "r")),
        "T": tuple((f"{side}_rh_{finger}", tip) for side in ("left", "right") for finger, tip in _FINGERS),
    },
}

contact_sets: tuple[str, ...] = (
    "iiwa-H3",
    "iiwa-H6",
    "solo-F3x2",
    "solo-F3x4",
    "go2-F3x4",
    "g1-F6x2",
    "g1-F6x2-H6x2",
    "talos-F6x2",
    "talos-F6x2-H6x2",
    "atlas_hands-F6x2",
    "atlas_hands-F6x2-T3x5",
    "atlas_hands-F6x2-T3x10",
)


def contact_set(name: str) -> Scene:
    """Load a robot at its keyframe ``home``, held to the world: rows of Table III of the constrained ABA paper, and similar sets for Go2 and G1.

    "talos-F6x2-H6x2" is Talos with six rows (a :class:`Weld`) on two feet F and two hands H; 3 stands for three rows (a :class:`Connect`), T for fingertips.
    Points are the middle of a sole, the centre of a round foot, the flange of a hand or the end of G1's, the end of a finger.

    Args:
        name: one of ``contact_sets``.

    Raises:
        UnknownNameError: no set has this name; the message lists them.
    """
    if text(name, "name") not in contact_sets:
        raise unknown("contact set", name, contact_sets)
    robot, *parts = name.split("-")
    model = load_model(robot)
    constraints: list[Constraint] = []
    for part in parts:
        kind, dimension, number_of = part[0], part[1], part[3:] or "1"
        held = Weld if dimension == "6" else Connect
        constraints += [held(model, body, point=point) for body, point in _ENDS[robot][kind][: int(number_of)]]
    return _scene(name, model, np.array(model.keyframes["home"]), constraints)
