"""The command ``delassus bench``: a simulation by stage, then every method on the constraints of the step with the most contacts."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import mujoco
import numpy as np
from numpy.typing import NDArray
from rich.markup import escape

from .. import scenes
from .._terminal import console
from ..constraints import Constraint, PointContact, Weld, from_loop
from ..demo import Progress, compiled_source, fullest_frame, numbers_of, show_motion, show_stages, start_of
from ..errors import ArgumentError, LoadError, SingularError, UnstableError
from ..model import Model
from ..model.from_mujoco import from_compiled
from ..simulator import Simulator
from ..types import SimulatorSolver
from .counts import with_operations
from .methods import Problem, check_names, measure_methods
from .motion import constraints_of, run, run_mujoco
from .peers import Peers
from .table import as_data, show_sections
from .trial import Section

__all__ = ["Settings", "report"]

Array = NDArray[Any]
_BUDGET = 0.1  # time of one measurement [s]


@dataclass(frozen=True)
class Settings:
    """Options, see ``delassus bench --help``."""

    contact: Sequence[str] = ()
    weld: Sequence[str] = ()
    loops: bool = True
    methods: Sequence[str] = ()
    peers: bool = False
    simulation: bool = True
    seconds: float = 0.5
    timestep: float = 1e-3
    solver: str = "auto"
    keyframe: str | None = None
    control: str | None = None
    counting: float = 6.0
    floating_base: bool = False
    floor: bool = False
    package_dirs: Sequence[Path] | None = None


@dataclass(frozen=True)
class _Moment:
    """A state with its constraints, and its origin."""

    q: Array
    v: Array
    constraints: list[Constraint]
    source: str
    found: bool = True  # found by collision detection, not requested


def report(source: str, settings: Settings) -> tuple[dict[str, Any], bool]:
    """Measure, and print tables.

    Returns:
        All results, as plain data, and whether every method of ours that gave a result gave a correct one.
    """
    check_names(settings.methods)
    compiled, pose = compiled_source(source, settings.floating_base, settings.floor, settings.package_dirs)
    scene = scenes.load(source) if source in scenes.names else None
    model = scene.model if scene else from_compiled(compiled)
    if model.nv == 0:
        raise ArgumentError(f"source: {model.name!r} has no joints, so nothing moves and there is nothing to measure.")
    start, default = start_of(model, compiled.model, settings.keyframe, pose)
    q, control = model.neutral() if start is None else np.array(start), numbers_of(settings.control, default)
    loops: list[Constraint] = [from_loop(model, loop) for loop in model.loops if loop.active and settings.loops]
    asked = [*(PointContact(model, body) for body in settings.contact), *(Weld(model, body) for body in settings.weld)]
    own = list(scene.constraints) if scene and settings.keyframe is None and settings.loops else loops
    moment = _Moment(
        q, model.zero_velocity(), [*loops, *asked] if asked else own, "in the pose it starts from", found=bool(scene) and not asked
    )

    facts: dict[str, Any] = {"model": model.name, "nv": model.nv, "bodies": model.nbody - 1}
    if settings.simulation:
        moment = _simulated(model, compiled.model, moment, control, settings, facts, loops=loops if not asked else None)
    facts["peers"] = {"MuJoCo": mujoco.__version__}
    try:
        problem = Problem(model, moment.q, moment.v, moment.constraints, settings.timestep)
    except SingularError as error:
        console.print(f"no methods: {escape(str(error))}", highlight=False)
        return facts | {"methods": {"reason": str(error)}}, True
    with Progress() as progress:
        beside = Peers(problem, compiled.model, simulated=moment.found) if settings.peers else None
        sections = [beside.tree(_BUDGET, progress.part("trees"))] if beside else []
        sections += measure_methods(
            problem, only=settings.methods, peers=beside.methods if beside else None, budget=_BUDGET, progress=progress.part("methods")
        )
        uncounted = ""
        if settings.counting > 0:
            sections, uncounted = with_operations(problem, sections, settings.counting, progress.part("operations"))
    _show(problem, moment, sections, uncounted)
    facts["methods"] = {
        "q": problem.q.tolist(), "v": problem.v.tolist(), "state": moment.source, "rows": problem.rows, "contacts": problem.contacts,
        "constraints": [repr(c) for c in problem.constraints], "damping": problem.definition.damping, "uncounted": uncounted, "sections": as_data(sections),
    }  # fmt: skip
    facts["peers"] |= beside.versions() if beside else {}
    return facts, not any(m.wrong for s in sections for m in s.measurements if m.kind != "peer")


def _simulated(
    model: Model,
    peer: Any,
    start: _Moment,
    control: Array | None,
    settings: Settings,
    facts: dict[str, Any],
    *,
    loops: list[Constraint] | None,
) -> _Moment:
    """Simulate, here and with MuJoCo, and show a summary; returns the state with the most contacts, or the initial one."""
    try:
        with warnings.catch_warnings(), Progress() as progress:
            warnings.simplefilter("ignore")  # ignored elements are printed below
            sim = Simulator(peer, timestep=settings.timestep, solver=cast(SimulatorSolver, settings.solver))
            sim.reset(start.q)
            every = max(1, round(0.01 / settings.timestep))
            motion = run(sim, settings.seconds, control=control, every=every, progress=progress.part("delassus"))
            beside = run_mujoco(
                peer, start.q, start.v, settings.timestep, settings.seconds, control=control, progress=progress.part("MuJoCo")
            )
    except (UnstableError, SingularError, LoadError) as error:
        console.print(f"no simulation: {escape(str(error))}", highlight=False)
        facts["simulation"] = str(error)
        return start
    title = f"{model.name}: n_v = {model.nv}, {settings.seconds:g} s in steps of {1e3 * settings.timestep:g} ms"
    facts |= show_motion(sim, motion, beside, title)
    show_stages(motion)
    if model.ignored:
        console.print(f"ignored by the model: {escape('; '.join(model.ignored))}", highlight=False)
    frame, frames = fullest_frame(motion), motion.trajectory
    if loops is None or not len(frames.contacts(frame)):
        return start
    q, v, when = frames.q[frame], frames.v[frame], frames.times[frame]
    touching = [c for c in constraints_of(model, q, frames.contacts(frame)) if isinstance(c, PointContact)]
    return _Moment(q, v, [*loops, *touching], f"at t = {when:.2f} s of the simulation, contacts about to close included")


def _show(problem: Problem, moment: _Moment, sections: Sequence[Section], uncounted: str) -> None:
    kinds = Counter(type(c).__name__ for c in problem.constraints)
    listed = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    console.print(f"\n[bold]Methods[/] {escape(moment.source)}: {problem.rows} rows of {listed or 'no constraints'}", highlight=False)
    show_sections(console, sections)
    console.print(
        "\nµs: best time of a call from Python, symbolic work excluded; kB: memory of the method;\n"
        "error: against the dense matrices M and J; operations: counted as in the papers, with a free base\n"
        "at the world frame, for matrix-free methods from the plan of the elimination",
        highlight=False,
    )
    if uncounted:
        console.print(escape(uncounted), highlight=False)
    if problem.rows == 0:
        model = problem.model
        ends = [model.body_names[b] for b in range(1, model.nbody) if b not in model.body_parent and model.body_moves[b]]
        told = f"; last links are {', '.join(ends[:6])}{' …' if len(ends) > 6 else ''}" if ends else ""
        console.print(
            f"there are no loops and there were no contacts: hold a body with --contact BODY or --weld BODY{escape(told)}",
            highlight=False,
        )
