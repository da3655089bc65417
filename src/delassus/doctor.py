"""Report on a model file: what was read, what is missing and what to do about it, in plain words."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import mujoco
import numpy as np

from .constraints import ConstraintRows
from .errors import DelassusError
from .model import Model
from .model.floor import with_floor
from .model.from_mujoco import from_compiled
from .model.geometry import counted, geom_kind, touching
from .model.load import compile_source
from .model.urdf import NO_RANGE, UrdfDetails
from .model.urdf_shapes import MOST_CORNERS
from .simulator import Simulator
from .solvers import close_loops
from .state import body_placements

__all__ = ["Finding", "Report", "examine"]

_STEPS = 100
_JOINTS = {"free": "free joint", "ball": "ball joint", "slide": "slide", "hinge": "hinge"}
_LARGE, _SMALL = 10.0, 5e-3  # a larger shape, or a smaller robot, suggests a wrong unit [m]


@dataclass(frozen=True)
class Finding:
    """One finding: "read" is fine, "note" is worth knowing, "missing" is left out; with advice, if any."""

    kind: Literal["read", "note", "missing"]
    text: str
    advice: str = ""


@dataclass
class Report:
    """All findings on a file, in reading order, and commands to try next."""

    name: str
    findings: list[Finding] = field(default_factory=list)
    next_steps: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return all(finding.kind != "missing" for finding in self.findings)

    def add(self, kind: Literal["read", "note", "missing"], text: str, advice: str = "") -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, text, advice))


def examine(source: str, *, floating_base: bool = False, package_dirs: Sequence[Path] = ()) -> Report:
    """Examine a model file: read it, look for missing or suspicious parts, and step it on a floor.

    Args:
        source: name of a robot, or path to an MJCF or URDF file.
        floating_base: URDF only: let the root float.
        package_dirs: folders of the packages named in a URDF.

    Raises:
        LoadError: the file is not a model; the message says why.
    """
    made = compile_source(source, floating_base=floating_base, package_dirs=package_dirs or None)
    model = from_compiled(made)
    report = Report(model.name)
    details: UrdfDetails | None = made.details
    _tree(report, model, details)
    if details is not None:
        _files(report, details)
    _shapes(report, model, details)
    _sizes(report, model)
    _masses(report, model, details)
    _joints(report, model, details)
    shown = {id(line) for line in model.ignored if details is not None and _told(line)}
    for line in model.ignored:
        if id(line) not in shown:
            limits = details is not None and line.endswith(NO_RANGE)
            report.add("missing", f"{line}.", "Correct its <limit>, or make it continuous, or fixed." if limits else
                       "It takes no part in the motion; see docs/model.md for what is kept.")  # fmt: skip
    if details is not None and details.unread:
        listed = ", ".join(f"{n} <{tag}>" for tag, n in sorted(details.unread.items()))
        report.add("note", f"Elements for other programs are not read: {listed}.")
    if details is not None and not model.actuators:
        report.add("note", "A URDF has no actuators.", "Apply joint forces: sim.step(tau), with tau of shape (nv,).")
    _trial(report, model)
    _advise(report, source, model, details, floating_base, package_dirs)
    return report


def _told(line: str) -> bool:
    """Whether a line of ``ignored`` is reported separately."""
    return any(part in line for part in (" collision mesh", " visual mesh", " collision shape", " visual shape", "corners of the hull", "that overlap in the reference", "links without mass", "beyond what is physical"))  # fmt: skip


def _tree(report: Report, model: Model, details: UrdfDetails | None) -> None:
    kind = "MJCF" if details is None else "URDF"
    moving = ", ".join(counted(n, _JOINTS[word]) for word, n in sorted(_counts(model.joint_type).items())) or "none"
    bodies = counted(model.nbody - 1, "body", "bodies")
    report.add("read", f"{kind} of {model.name!r}: {bodies}, joints: {moving}; nq = {model.nq}, nv = {model.nv}, {model.mass:.4g} kg.")
    if model.loops:
        report.add("read", f"{counted(len(model.loops), 'loop or coupling', 'loops and couplings')}, held exactly.")
    if model.frames:
        names = list(model.frames)
        report.add("read", f"{counted(len(names), 'named frame')}: {', '.join(names[:4])}{' …' if len(names) > 4 else ''}.")


def _counts(words: Sequence[str]) -> dict[str, int]:
    return {word: words.count(word) for word in set(words)}


def _files(report: Report, details: UrdfDetails) -> None:
    for name, folder in sorted(details.packages.items()):
        if folder is not None:
            report.add("read", f"Package {name!r} is in {str(folder)!r}.")
    by_reason: dict[str, list[Any]] = {}
    for lost in details.lost:
        by_reason.setdefault(lost.reason, []).append(lost)
    for reason, group in by_reason.items():
        roles = " and ".join(counted(n, f"{role} shape") for role, n in _counts([lost.role for lost in group]).items())
        links = ", ".join(dict.fromkeys(repr(lost.link) for lost in group))
        advice = ""
        if "is not found" in reason:
            advice = (
                "Add --package-dir FOLDER (package_dirs=[FOLDER]) with the folder that holds the package, or source your ROS workspace."
            )
        elif "does not exist" in reason or "no such file" in reason:
            advice = "Put the file there, or correct its name in the URDF."
        report.add("missing", f"{roles} (link {_short(links)}; {group[0].what}): {reason}.", advice)
    for name, corners in details.thinned.items():
        report.add("note", f"The hull of {name!r} has {corners:,} corners; it touches with its {MOST_CORNERS:,} outermost, within 0.03 % of its size.",
                   "Simplify the mesh: loading and collisions become faster.")  # fmt: skip
    if details.flat:
        report.add("note", f"Flat collision meshes touch as plates of 1 mm: {', '.join(sorted(set(details.flat)))}.")


def _short(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most - 2]} …"


def _shapes(report: Report, model: Model, details: UrdfDetails | None) -> None:
    m = model._in_mujoco()
    moving = [g for g in touching(m) if model.body_moves[m.geom_bodyid[g]]]
    if details is not None:
        for role, kinds in details.shapes.items():
            listed = ", ".join(
                counted(n, kind, "boxes" if kind == "box" else "meshes" if kind == "mesh" else None) for kind, n in sorted(kinds.items())
            )
            tail = "; meshes touch with their convex hulls" if role == "collision" and "mesh" in kinds else ""
            report.add("read", f"{role.capitalize()} shapes: {listed or 'none'}{tail}.")
    else:
        report.add("read", f"{counted(len(touching(m)), 'shape')} that can touch, of {m.ngeom} in all.")
    if not moving and "free" in model.joint_type:
        report.add("missing", "Nothing that moves can touch: it has no collision shapes, and falls through any floor.", "Give its links <collision> elements.")  # fmt: skip
    elif not moving and model.nv:
        report.add(
            "note", "Nothing that moves has a collision shape, so it touches nothing.", "Give its links <collision> elements if it should."
        )
    if details is not None and details.overlaps:
        some = ", ".join(f"{a} and {b}" for a, b in details.overlaps[:6]) + (" …" if len(details.overlaps) > 6 else "")
        one = len(details.overlaps) == 1
        pairs = counted(len(details.overlaps), "pair of links overlaps", "pairs of links overlap")
        report.add("note", f"{pairs} at the reference configuration and {'does' if one else 'do'} not collide: {some}.",
                   "dl.load(..., exclude_overlaps=False) lets them collide.")  # fmt: skip


def _extent(model: Model, geoms: Sequence[int]) -> float:
    """Return the diagonal [m] of the bounding box of shapes at the reference configuration."""
    m = model._in_mujoco()
    d = mujoco.MjData(m)
    d.qpos[:] = model.neutral()
    mujoco.mj_kinematics(m, d)
    corners = [d.geom_xpos[g] + d.geom_xmat[g].reshape(3, 3) @ m.geom_aabb[g, :3] + s * m.geom_rbound[g] for g in geoms for s in (-1, 1)]
    return float(np.linalg.norm(np.ptp(corners, axis=0))) if corners else 0.0


def _bounded(model: Model) -> list[int]:
    """Return the shapes of bodies: not those of the world, nor planes and height fields, which have no size."""
    m = model._in_mujoco()
    return [g for g in range(m.ngeom) if m.geom_bodyid[g] and geom_kind(m, g) not in ("plane", "hfield")]


def _sizes(report: Report, model: Model) -> None:
    """Report sizes that suggest a unit other than the metre."""
    m, geoms = model._in_mujoco(), _bounded(model)
    longest = {g: 2 * float(m.geom_aabb[g, 3:].max()) for g in geoms}
    large = [g for g in geoms if longest[g] > _LARGE]
    advice = 'Lengths are in metres. For meshes in millimetres write <mesh filename="…" scale="0.001 0.001 0.001"/>.'
    if large:
        g = max(large, key=longest.__getitem__)
        named = model.body_names[m.geom_bodyid[g]]
        report.add(
            "note",
            f"{counted(len(large), 'shape is', 'shapes are')} longer than {_LARGE:g} m, up to {longest[g]:.4g} m (link {named!r}).",
            advice,
        )
    elif geoms and (size := _extent(model, geoms)) < _SMALL:
        report.add("note", f"The whole robot is {1e3 * size:.2g} mm large.", "Lengths are in metres. Check the scale of its meshes.")


def _masses(report: Report, model: Model, details: UrdfDetails | None) -> None:
    for line in model.ignored:
        if "links without mass" in line or "beyond what is physical" in line:
            held = "without mass" in line
            report.add("missing", f"{line}." if not held else f"{line}: the joints are held fixed.",
                       "Give these links mass and inertia." if held else "Correct it, about the centre of mass.")  # fmt: skip
    # no body is larger than the robot, so neither is a radius of gyration
    if model.nbody < 2:
        return
    places = body_placements(model, model.neutral())[1:, :3, 3]
    size = max(_extent(model, _bounded(model)), float(np.linalg.norm(np.ptp(places, axis=0))))
    radius = np.sqrt(np.linalg.eigvalsh(model.body_inertia).max(axis=-1, initial=0.0) / np.maximum(model.body_mass, 1e-9))
    wide = [b for b in range(1, model.nbody) if model.body_mass[b] > 1e-9 and radius[b] > 2 * size > 0]
    if wide:
        b = max(wide, key=radius.__getitem__)
        report.add(
            "note",
            f"{counted(len(wide), 'link has', 'links have')} more inertia than a mass within the robot can have: {model.body_names[b]!r} has that of {model.body_mass[b]:.3g} kg at {radius[b]:.3g} m from its centre.",
            "Inertias are in kg m². Those in kg mm² are 1e6 times too large, those in g mm² 1e9 times.",
        )
    if details is not None and details.massless:
        report.add("note", f"{counted(len(details.massless), 'link has', 'links have')} no mass: {_short(', '.join(details.massless))}.")


def _joints(report: Report, model: Model, details: UrdfDetails | None) -> None:
    if details is not None and len(details.roots) > 1:
        report.add("note", f"There are {len(details.roots)} root links, each fixed to the world: {_short(', '.join(details.roots))}.",
                   "A robot has one root: join the others to it, with fixed joints if they do not move.")  # fmt: skip
    if details is not None and details.unlimited:
        report.add("note", f"{counted(len(details.unlimited), 'revolute or prismatic joint has', 'revolute or prismatic joints have')} no <limit>, so no range: {_short(', '.join(details.unlimited))}.",
                   'Add <limit lower="…" upper="…"/>, or make the joint continuous.')  # fmt: skip
    q = model.neutral()
    out = [
        name
        for name, kind, adr, (low, high) in zip(model.joint_names, model.joint_type, model.joint_qadr, model.joint_range, strict=True)
        if kind in ("hinge", "slide") and not low - 1e-9 <= q[adr] <= high + 1e-9
    ]
    if out:
        report.add("note", f"The reference configuration is outside the range of {counted(len(out), 'joint')}: {_short(', '.join(out))}.",
                   "Start from a configuration within it: sim.reset(q). Until then steps end 'limit_violated'.")  # fmt: skip

    if model.loops:
        error = float(np.abs(ConstraintRows(model, model.loops).error(model.neutral())).max(initial=0.0))
        if error > 1e-6:
            report.add("note", f"The reference configuration does not close the loops and couplings: they are off by {error:.2g} (m or rad).",
                       "Start from one that does: sim.reset(dl.close_loops(model, model.neutral()).configuration).")  # fmt: skip


def _within(model: Model) -> np.ndarray[Any, Any]:
    """Return a configuration near the reference in which hinges and slides are within their ranges and loops are closed, as far as that is possible."""
    q = model.neutral()
    for kind, adr, (low, high) in zip(model.joint_type, model.joint_qadr, model.joint_range, strict=True):
        if kind in ("hinge", "slide"):
            q[adr] = np.clip(q[adr], low, high)
    return close_loops(model, q).configuration if model.loops else q


def _trial(report: Report, model: Model) -> None:
    """Simulate it on a floor."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sim = Simulator(with_floor(model))
            sim.reset("home" if "home" in model.keyframes else _within(sim.model))
            statuses = [sim.step().status for _ in range(_STEPS)]
    except DelassusError as error:
        report.add("missing", f"It cannot be simulated: {error}")
        return
    solved = statuses.count("solved")
    others = ", ".join(f"{n} {word}" for word, n in sorted(_counts([s for s in statuses if s != "solved"]).items()))
    speed = float(np.abs(sim.v).max(initial=0.0))
    report.add("read" if solved == _STEPS else "note", f"{_STEPS} steps of {1e3 * sim.timestep:g} ms on a floor: {solved} solved{', ' + others if others else ''}; "
               f"fastest joint or base velocity {speed:.3g} (m/s or rad/s).")  # fmt: skip


def _advise(
    report: Report, source: str, model: Model, details: UrdfDetails | None, floating_base: bool, package_dirs: Sequence[Path]
) -> None:
    if details is not None and not floating_base and "free" not in model.joint_type:
        still = "" if model.nv else " It has no joint either, so nothing can move."
        report.add("note", f"Its base is fixed to the world.{still}", "For a robot that walks, flies or falls add --floating-base (floating_base=True).")  # fmt: skip
    words = [
        source,
        *(["--floating-base"] if floating_base else []),
        *(w for folder in package_dirs for w in ("--package-dir", str(folder))),
    ]
    what = " ".join(shlex.quote(word) for word in words)
    report.next_steps = [f"delassus simulate {what} --floor --record motion.html", f"delassus play {what} --floor", f"delassus view {what}"]
