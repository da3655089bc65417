"""The command ``delassus``."""

from __future__ import annotations

import io
import json
import math
import sys
import warnings
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import delassus as dl

from ._terminal import console
from .errors import ArgumentError, DelassusError, MissingExtraError, UnknownNameError

# each command imports what it needs, so that `--help` is fast

app = typer.Typer(
    help="Delassus operators and constrained dynamics of robots with loops and contacts.", no_args_is_help=True, add_completion=False
)

Robot = Annotated[str, typer.Argument(help="Name of an embedded robot, or path to an MJCF or URDF file.")]
RobotOrScene = Annotated[str, typer.Argument(help="Name of an embedded robot or a scene, or path to an MJCF or URDF file.")]
Floating = Annotated[bool, typer.Option("--floating-base", help="Give the root link of a URDF a free joint.")]
Floor = Annotated[bool, typer.Option("--floor", help="Add a floor below the robot.")]
Packages = Annotated[
    list[Path] | None,
    typer.Option(
        "--package-dir",
        help="Folder with the packages named in a URDF (package://); may be repeated. ROS_PACKAGE_PATH and AMENT_PREFIX_PATH are searched too.",
    ),
]
Contact = Annotated[
    list[str] | None,
    typer.Option(help="Add a point contact with the ground at the origin of this body or frame (3 rows); may be repeated."),
]
Welded = Annotated[list[str] | None, typer.Option("--weld", help="Weld this body or frame to the ground (6 rows); may be repeated.")]


def _writable(path: Path | None) -> Path | None:
    """Check before the computation that its result can be written."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise ArgumentError(f"--json: expected a file in an existing folder, got {str(path)!r}.")
    return path


Json = Annotated[Path | None, typer.Option("--json", help="Also write the results to this JSON file.", callback=_writable)]


def _save(path: Path | None, data: Any) -> None:
    if path is not None:
        from .simulator.files import whole_file

        with whole_file(path, "table") as file:
            file.write((json.dumps(data, indent=2) + "\n").encode())
        console.print(f"wrote {escape(str(path))}")


def _bounds(low: float, high: float) -> str:
    return f"{low:.3g} … {high:.3g}" if math.isfinite(low) and math.isfinite(high) else "–"


def _robot_or_scene(source: str, floating_base: bool, packages: list[Path] | None = None) -> tuple[dl.Model, dl.scenes.Scene | None]:
    from ._door import unknown

    scene = dl.scenes.load(source) if source in dl.scenes.names else None
    try:
        return dl.load(scene.model if scene else source, floating_base=floating_base, package_dirs=packages), scene
    except UnknownNameError:
        raise unknown("robot or scene", source, (*dl.embedded_names(), *dl.scenes.names)) from None


def _scene_info(scene: dl.scenes.Scene) -> dict[str, Any]:
    """Show the constraints of a scene, one line per kind, and the cost of its operator; return the same."""
    kinds: dict[str, dict[str, Any]] = {}
    for c in scene.constraints:
        kind = kinds.setdefault(type(c).__name__, {"count": 0, "rows": 0, "force_set": c.force_set})
        kind["count"] += 1
        kind["rows"] += c.rows
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("constraint")
    for column in ("count", "rows"):
        table.add_column(column, justify="right")
    table.add_column("force set")
    for name, kind in kinds.items():
        table.add_row(name, *(str(x) for x in kind.values()))
    console.print(f"{'scene':10} {scene.name}: {len(scene.constraints)} constraints, {scene.rows} rows")
    console.print(table)
    explanation = dl.DelassusOperator(scene.model, scene.constraints).explain()
    console.print(escape(str(explanation)), highlight=False)
    cost = asdict(explanation) | {"forming": explanation.forming, "break_even": explanation.break_even}
    return {"scene": scene.name, "contacts": scene.contacts, "rows": scene.rows, "constraints": kinds, "operator": cost}


def _build_info() -> dict[str, Any]:
    """Show the installed builds of the core, their requirements, the features of the CPU, and which build is used and why; return the same."""
    import platform

    from . import _builds, _core, _cpu

    cpu, choice = _builds.cpu_features(), _builds.chosen()
    console.print(f"delassus {dl.__version__}, Python {platform.python_version()}, {platform.machine()}", highlight=False)
    console.print(f"CPU ({_cpu.kind}): {' '.join(sorted(cpu)) or 'no features known'}", highlight=False)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("build", "runs here", "uses of the CPU, beyond the builds above it"):
        table.add_column(column)
    builds, above = [], frozenset[str]()
    for build in _builds.installed():
        lacking = sorted(build.features - cpu)
        state = "used" if build == choice.build else f"no: {' '.join(lacking)}" if lacking else "yes"
        table.add_row(build.arch, state, " ".join(sorted(build.features - above)))
        builds.append({"name": build.arch, "features": sorted(build.features), "lacking": lacking, "used": build == choice.build})
        above |= build.features
    console.print(table)
    console.print(f"{choice.build.arch} is used: {choice.reason}", highlight=False)
    console.print(f"compiled by {_core.compiler}, {_core.flags}", highlight=False)
    return {
        "version": dl.__version__, "python": platform.python_version(), "machine": platform.machine(), "cpu": sorted(cpu), "builds": builds,
        "used": choice.build.arch, "reason": choice.reason, "file": _core.__file__, "compiler": _core.compiler, "flags": _core.flags,
    }  # fmt: skip


@app.command()
def info(
    robot: Annotated[str | None, typer.Argument(help="Name of an embedded robot or a scene, or path to an MJCF or URDF file.")] = None,
    build: Annotated[
        bool, typer.Option("--build", help="Show the compiled builds of this installation, and which one this CPU uses.")
    ] = False,
    floating_base: Floating = False,
    package_dir: Packages = None,
    json_file: Json = None,
) -> None:
    """Show the joints, masses, sizes, loops and ignored elements of a robot; for a scene also its constraints and the cost of their operator."""
    if build == (robot is not None):
        raise ArgumentError(f"delassus info: expected a robot, a scene or --build, got {'both' if build else 'none'}.")
    if robot is None:
        _save(json_file, _build_info())
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table below lists them
        model, scene = _robot_or_scene(robot, floating_base, package_dir)
    facts: dict[str, Any] = {
        "name": model.name, "nq": model.nq, "nv": model.nv, "bodies": model.nbody - 1, "joints": model.njoint, "trees": model.ntree, "depth": model.depth,
        "mass": model.mass, "loops": [f"{type(loop).__name__} {loop.name}" for loop in model.loops], "shapes": len(model.shapes),
        "actuators": len(model.actuators), "keyframes": list(model.keyframes), "ignored": list(model.ignored),
    }  # fmt: skip
    joints = [
        {
            "joint": j.name, "type": j.type, "body": j.body, "parent": model.bodies[model.joint_body[k] - 1].parent, "q": int(model.joint_qadr[k]),
            "v": int(model.joint_vadr[k]), "range": _bounds(*j.range), "armature": j.armature, "mass": float(model.body_mass[model.joint_body[k]]),
        }
        for k, j in enumerate(model.joints)
    ]  # fmt: skip
    table = Table(title=escape(f"{model.name}: n_q = {model.nq}, n_v = {model.nv}"), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("joint", "type", "body", "parent"):
        table.add_column(column, overflow="fold")
    for column in ("q", "v", "range", "armature", "kg"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in joints:
        table.add_row(*(f"{x:.4g}" if isinstance(x, float) else escape(str(x)) for x in row.values()))
    console.print(table)
    for key in ("bodies", "trees", "depth", "shapes", "actuators"):
        console.print(f"{key:10} {facts[key]}")
    console.print(f"{'mass':10} {model.mass:.6g} kg")
    for key in ("loops", "keyframes", "ignored"):
        console.print(f"{key:10} {escape(', '.join(facts[key])) or 'none'}")
    if scene:
        facts |= _scene_info(scene)
    _save(json_file, facts | {"joint_table": joints})


@app.command()
def doctor(robot: Robot, floating_base: Floating = False, package_dir: Packages = None, json_file: Json = None) -> None:
    """Report what was read from a robot's file, what is missing and what to do. Exit 1 if something is missing."""
    from .doctor import examine

    report = examine(robot, floating_base=floating_base, package_dirs=package_dir or ())
    marks = {"read": "[green]read   [/]", "note": "[yellow]note   [/]", "missing": "[bold red]missing[/]"}
    for finding in report.findings:
        console.print(f"{marks[finding.kind]} {escape(finding.text)}", highlight=False, soft_wrap=True)
        if finding.advice:
            console.print(f"        → {escape(finding.advice)}", highlight=False, soft_wrap=True)
    missing = sum(finding.kind == "missing" for finding in report.findings)
    console.print("nothing is missing" if not missing else f"{missing} {'thing is' if missing == 1 else 'things are'} missing, see above")
    for step in report.next_steps:
        console.print(f"next: [bold]{escape(step)}[/]", highlight=False, soft_wrap=True)
    _save(json_file, asdict(report) | {"complete": report.complete})
    if not report.complete:
        raise typer.Exit(1)


@app.command()
def check(
    robot: Robot,
    states: Annotated[int, typer.Option(min=1, help="Number of random states.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed for the random states.")] = 0,
    floating_base: Floating = False,
    package_dir: Packages = None,
    json_file: Json = None,
) -> None:
    """Compare our dynamics of a robot with MuJoCo's at random states; exit 1 if any quantity differs."""
    from .check import compare_with_mujoco
    from .model.from_mujoco import from_compiled
    from .model.load import compile_source

    compiled = compile_source(robot, floating_base=floating_base, package_dirs=package_dir)
    model, peer = from_compiled(compiled), compiled.model
    rows = compare_with_mujoco(model, peer, states=states, seed=seed)
    table = Table(title=f"{escape(model.name)}: largest relative error against MuJoCo at {states} random states")
    table.add_column("quantity")
    for column in ("error", "tolerance"):
        table.add_column(column, justify="right")
    table.add_column("")
    for row in rows:
        table.add_row(row.quantity, f"{row.error:.1e}", f"{row.tolerance:.0e}", "ok" if row.passed else "[bold red]differs")
    console.print(table)
    _save(json_file, [{"quantity": r.quantity, "error": r.error, "tolerance": r.tolerance, "passed": r.passed} for r in rows])
    if model.ignored:
        console.print(f"ignored by the model: {escape('; '.join(model.ignored))}")
    if not all(row.passed for row in rows):
        raise typer.Exit(1)


@app.command()
def count(
    algorithm: Annotated[str, typer.Argument(help="Name of a textbook algorithm, a comma-separated list of them, or all.")],
    robot: RobotOrScene,
    contact: Contact = None,
    weld: Welded = None,
    loops: Annotated[bool, typer.Option("--loops", help="Include the model's loop constraints.")] = False,
    iterations: Annotated[int, typer.Option(min=1, help="Number of iterations of the proximal algorithms.")] = 3,
    floating_base: Floating = False,
    json_file: Json = None,
) -> None:
    """Count the arithmetic operations of textbook algorithms on a robot or a scene (needs CasADi)."""
    from .constraints import from_loop
    from .textbook import ALGORITHMS
    from .textbook import count as count_operations

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, scene = _robot_or_scene(robot, floating_base)
    constraints = [
        *(scene.constraints if scene else ()),
        *(model.loops if loops and not scene else ()),
        *(dl.PointContact(model, body) for body in contact or ()),
        *(dl.Weld(model, body) for body in weld or ()),
    ]
    names = list(ALGORITHMS) if algorithm == "all" else algorithm.split(",")
    counts = {}
    for name in names:
        try:
            counts[name] = count_operations(name, model, constraints, iterations=iterations)
        except ArgumentError:
            if algorithm != "all":
                raise  # with "all", those that take these constraints are shown
    rows = sum(c.rows if isinstance(c, dl.Constraint) else from_loop(model, c).rows for c in constraints)
    table = Table(title=escape(f"{model.name}: n_v = {model.nv}, {rows} rows, scalar operations"), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("algorithm")
    table.add_column("computes")
    for column in ("total", "additions", "multiplications", "divisions", "roots", "sin, cos"):
        table.add_column(column, justify="right")
    for name, c in counts.items():
        numbers = (c.total, c.additions, c.multiplications, c.divisions, c.roots, c.trigonometric)
        table.add_row(name, ALGORITHMS[name].does, *(f"{x:,}" for x in numbers))
    console.print(table)
    facts = {name: asdict(c) | {"total": c.total} for name, c in counts.items()}
    _save(json_file, {"model": model.name, "nv": model.nv, "rows": rows, "iterations": iterations, "counts": facts})


Seconds = Annotated[float, typer.Option(min=0.0, help="Simulated time in seconds.")]
Timestep = Annotated[float | None, typer.Option(help="Simulation time step in seconds. Default: that of the file.")]


@app.command()
def demo(
    seconds: Annotated[float | None, typer.Option(min=0.0, help="Simulated time in seconds; default 1.2, with --quick 0.6.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Simulate half as long and check three robots instead of all.")] = False,
    folder: Annotated[Path, typer.Option(help="Folder for the figure and the recording.")] = Path(),
    json_file: Json = None,
) -> None:
    """Drop three humanoids on a pyramid of boxes, compare with MuJoCo, and write a figure and a recording. No downloads; takes less than 20 seconds, with --quick 5."""
    if not folder.is_dir():
        raise ArgumentError(f"--folder: expected an existing folder, got {str(folder)!r}.")
    import time

    import mujoco
    import numpy as np

    from .bench import run, run_mujoco
    from .check import compare_with_mujoco
    from .demo import Progress, costs_at, film, fullest_frame, next_commands, show_costs, show_motion, show_verdict
    from .figures import simulation_figure
    from .model.load import compile_source

    begun, span = time.perf_counter(), seconds if seconds is not None else 0.6 if quick else 1.2
    robots = ("go2", "g1", "cassie") if quick else dl.embedded_names()
    with Progress() as progress:
        checking, errors = progress.part("robots against MuJoCo"), {}
        for k, name in enumerate(robots):
            errors[name] = max(
                row.error for row in compare_with_mujoco(dl.load(name), compile_source(name).model, states=2 if quick else 5)
            )
            checking((k + 1) / len(robots))
        sim = dl.Simulator(model := dl.scenes.pyramid_with_robots())
        q, v = sim.q, sim.v
        motion = run(sim, span, every=20 if quick else 10, progress=progress.part("delassus"))
        peer = run_mujoco(mujoco.MjModel.from_xml_string(model.to_mjcf()), q, v, sim.timestep, span, progress=progress.part("MuJoCo"))
        frame = fullest_frame(motion)
        measuring = progress.part("operator and figure")
        costs = costs_at(sim, motion, frame)
        measuring(0.4)
        simulation_figure(folder / "delassus_demo.png", motion, peer, costs, samples=1 if quick else 2)
        measuring(1.0)
    console.print(f"{len(errors)} robots: dynamics equal MuJoCo's to {max(errors.values()):.0e}, relative", highlight=False)
    facts = show_motion(
        sim,
        motion,
        peer,
        f"Three humanoids fall on a pyramid: {sim.model.nbody - 1} bodies, n_v = {sim.model.nv}, {span:g} s in steps of 1 ms",
    )
    if costs is not None:
        facts["operator"] = show_costs(costs, float(motion.trajectory.times[frame]))
    show_verdict(motion, peer, costs)
    console.print(f"wrote {escape(str(folder / 'delassus_demo.png'))}: the figure")
    film(motion, folder, "delassus_demo")
    facts["seconds"] = time.perf_counter() - begun
    console.print(f"all of it in {facts['seconds']:.1f} s; try next:", highlight=False)
    for command, what in next_commands():
        console.print(f"  [bold]{escape(command)}[/]  {escape(what)}", highlight=False)
    _save(json_file, {"version": dl.__version__, "robots": errors} | facts)
    if max(errors.values()) > 1e-9 or np.median(motion.penetration) > 1e-4:
        raise typer.Exit(1)


@app.command()
def simulate(
    source: RobotOrScene,
    seconds: Seconds = 2.0,
    timestep: Timestep = None,
    solver: Annotated[str, typer.Option(help="Contact solver: auto, admm or newton.")] = "auto",
    keyframe: Annotated[str | None, typer.Option(help="Keyframe to start from; default: home, or the file's own pose.")] = None,
    control: Annotated[str | None, typer.Option(help="Actuator controls, comma-separated; default: those of the keyframe.")] = None,
    record_file: Annotated[
        Path | None,
        typer.Option(
            "--record",
            help="Write the motion to this file: .html or .viser to play in a browser (needs the extra viewer), .npz for the arrays.",
        ),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Write a summary figure (.png).")] = None,
    video: Annotated[
        Path | None, typer.Option(help="Write a video: .gif or .webp, or .mp4 (needs the extra video). Drawn without a graphics card.")
    ] = None,
    floating_base: Floating = False,
    floor: Floor = False,
    package_dir: Packages = None,
    json_file: Json = None,
) -> None:
    """Simulate a robot or a scene with rigid contacts and print a summary. Embedded robots are placed on a floor."""
    from .bench import run
    from .demo import Progress, check_film, check_record, costs_at, fullest_frame, numbers_of, prepare, show_motion, unsolved_in_words

    check_record(record_file)
    check_film(video)
    if figure is not None and (figure.suffix != ".png" or not figure.parent.is_dir()):
        raise ArgumentError(f"--figure: expected a file that ends in .png in an existing folder, got {str(figure)!r}.")
    sim, compiled, default, left_out = prepare(source, timestep, solver, keyframe, floating_base, floor, package_dir)
    steer = numbers_of(control, default)
    with Progress() as progress:
        motion = run(sim, seconds, control=steer, every=max(1, round(0.01 / sim.timestep)), progress=progress.part(sim.model.name))
    facts = show_motion(sim, motion, None, f"{sim.model.name}: n_v = {sim.model.nv}, {seconds:g} s in steps of {1e3 * sim.timestep:g} ms")
    if motion.unsolved:
        console.print(f"steps not solved: {unsolved_in_words(motion)}", highlight=False, soft_wrap=True)
    if motion.contacts.max() == 0:
        way_out = "give the file shapes that collide" if floor else "add --floor, or give the file shapes that collide"
        console.print(f"there were no contacts: if there should be, {way_out}; delassus doctor lists those it has")
    if left_out:
        console.print(f"ignored by the model: {escape('; '.join(left_out))}")
    if record_file is not None:
        if record_file.suffix == ".npz":
            motion.trajectory.save(record_file)
        else:
            dl.record(motion.trajectory, record_file, geometry=compiled)
        console.print(f"wrote {escape(str(record_file))}")
    if figure is not None:
        from .figures import simulation_figure

        simulation_figure(figure, motion, None, costs_at(sim, motion, fullest_frame(motion)), compiled)
        console.print(f"wrote {escape(str(figure))}")
    if video is not None:
        with Progress() as progress:
            dl.record(motion.trajectory, video, geometry=compiled, progress=progress.part(video.name))
        console.print(f"wrote {escape(str(video))}")
    _save(json_file, {"version": dl.__version__} | facts)


@app.command()
def bench(
    source: Annotated[
        str | None, typer.Argument(help="Name of an embedded robot or a scene, or path to an MJCF or URDF file; not with --self.")
    ] = None,
    own: Annotated[
        bool, typer.Option("--self", help="Measure this installation instead: is it as fast as it should be? Ten to thirty seconds.")
    ] = False,
    contact: Contact = None,
    weld: Welded = None,
    loops: Annotated[
        bool, typer.Option("--loops/--no-loops", help="Include the model's loop constraints, or leave the loops open.")
    ] = True,
    methods: Annotated[str | None, typer.Option(help="Measure only these methods, comma-separated; matrix-free is one of them.")] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Also measure Pinocchio and MuJoCo where they can represent the problem.")] = False,
    simulation: Annotated[
        bool, typer.Option("--simulation/--no-simulation", help="Simulate first, and use the contacts of the step with the most contacts.")
    ] = True,
    seconds: Seconds = 0.5,
    timestep: Annotated[float | None, typer.Option(help="Simulation time step in seconds.")] = 1e-3,
    solver: Annotated[str, typer.Option(help="Contact solver: auto, admm or newton.")] = "auto",
    keyframe: Annotated[str | None, typer.Option(help="Keyframe to start from; default: home, or the file's own pose.")] = None,
    control: Annotated[str | None, typer.Option(help="Actuator controls, comma-separated; default: those of the keyframe.")] = None,
    counting: Annotated[float, typer.Option(min=0.0, help="Time limit in seconds for counting operations (needs CasADi).")] = 6.0,
    floating_base: Floating = False,
    floor: Floor = False,
    package_dir: Packages = None,
    json_file: Json = None,
) -> None:
    """Measure every method on your robot and its constraints: time, memory, error, operations, and which method auto chooses.

    The constraints are the model's loops and the contacts of the simulation step with the most contacts. The simulation is timed too, by stage and
    against MuJoCo. --contact and --weld replace the contacts. Only checked results are shown. Exit 1 if one of our methods was wrong.

    With --self no robot is given: instructions of the core are counted and compared with those of a good build. Exit 1 if it is not healthy.
    """
    if own == (source is not None):
        raise ArgumentError(f"delassus bench: expected a robot, a scene or --self, got {'both' if own else 'none'}.")
    from . import _core

    if source is None:
        from . import _builds
        from .bench import health
        from .demo import Progress

        build = _builds.chosen().build.arch
        console.print(f"delassus {dl.__version__}, build for {build}, {_core.compiler}, {_core.flags}", highlight=False, markup=False)
        with Progress() as progress:
            found = health.measure(progress.part("counting"))
        health.show(found)
        _save(
            json_file,
            {"version": dl.__version__, "compiler": _core.compiler, "flags": _core.flags, "build": build, "health": found.as_data()},
        )
        if not found.healthy:
            raise typer.Exit(1)
        return
    from .bench.report import Settings, report

    settings = Settings(
        contact or (), weld or (), loops, methods.split(",") if methods else (), peers, simulation, seconds, timestep or 1e-3, solver, keyframe, control, counting,
        floating_base, floor, package_dir,
    )  # fmt: skip
    facts, right = report(source, settings)
    stamp = f"delassus {dl.__version__}, {_core.compiler}, {_core.flags}"
    console.print("; ".join([stamp, *(f"{name} {version}" for name, version in facts["peers"].items())]), highlight=False)
    _save(json_file, {"version": dl.__version__, "compiler": _core.compiler, "flags": _core.flags} | facts)
    if not right:
        raise typer.Exit(1)


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="Name of a table or figure (osim/fig-3) or of a paper (osim); --list shows all names.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Reproduce every table and figure of every paper.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repeats and smaller sizes.")] = False,
    out: Annotated[Path, typer.Option(help="Output folder; created if missing.")] = Path("delassus_reproduced"),
    force: Annotated[bool, typer.Option("--force", help="Recompute items that already exist.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List all tables and figures, and exit.")] = False,
) -> None:
    """Reproduce tables and figures of the papers, with the published numbers beside ours. Finished items are kept and reused by the next run."""
    from .demo import Progress
    from .reproduce import PAPERS, Item, Made, all_items, check_index, find, make, write_index

    if listing:
        for item in all_items():
            console.print(f"{item.name:26} {escape(item.title)}" + (f" (extra {', '.join(item.needs)})" if item.needs else ""))
        return
    if everything == (name is not None):
        raise ArgumentError("reproduce: expected a name or --all, and not both. --list shows the names.")
    items = all_items() if name is None else find(name)
    check_index(out)
    made: dict[Item, Made] = {}
    left_out: dict[str, str] = {}
    with Progress() as progress, suppress(KeyboardInterrupt):  # finished items are kept and shown
        for item in items:
            try:
                made[item] = make(item, out, quick=quick, force=force, progress=progress.part(item.name))
            except MissingExtraError as error:
                if name is not None and name not in PAPERS:
                    raise
                left_out[item.name] = str(error)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("item")
    for column in ("seconds", "claims"):
        table.add_column(column, justify="right")
    table.add_column("files")
    for item, done in made.items():
        claims = done.record["claims"]
        took = "kept" if done.before else f"{done.record['seconds']:.1f}"
        kinds = ",".join(file.suffix[1:] for file in done.files)
        table.add_row(item.name, took, f"{sum(c['holds'] for c in claims)}/{len(claims)}", f"{item.name}.{{{kinds}}}")
    console.print(table)
    for item_name, reason in left_out.items():
        console.print(f"skipped {item_name}: {escape(reason)}", highlight=False)
    if made:
        console.print(f"wrote {escape(str(write_index(out, PAPERS)))}, an overview of all of them")
    if missing := [item.name for item in items if item not in made and item.name not in left_out]:
        console.print(f"stopped before {', '.join(missing)}; the same command continues from there")
        raise typer.Exit(130)
    if left_out:
        raise typer.Exit(1)


@app.command()
def study(
    source: Annotated[Path, typer.Argument(help="File that describes the study, .toml or .json.")],
    on: Annotated[
        str, typer.Option(help="Where to run: threads, processes:N, dask, dask://host:port, ray or ray://host:port.")
    ] = "threads",
    path: Annotated[Path | None, typer.Option(help="Folder for the results. Default: the name of the file, ending in .parquet.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Number of runs, instead of the one in the file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot metrics against parameters (.png, .svg or .pdf).")] = None,
    json_file: Json = None,
) -> None:
    """Run a study: many runs of a model with their own parameters, in parallel. Finished rows are kept; the same command continues with the missing ones."""
    from .studies.file import executor_of, read_study, summary

    asked = read_study(source, rows)
    target = path or Path(source.with_suffix(".parquet").name)
    with executor_of(on) as executor:
        try:
            result = asked.run(executor, target)
        except KeyboardInterrupt:
            console.print(f"stopped; finished rows are in {escape(str(target))}, and the same command continues from there")
            raise typer.Exit(130) from None
    facts = summary(result)
    table = Table(title=escape(f"{asked.model.name}: {len(result):,} runs of {asked.seconds:g} s"), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("column")
    for column in ("minimum", "median", "maximum"):
        table.add_column(column, justify="right")
    for name, numbers in facts["columns"].items():
        table.add_row(escape(name), *(f"{x:.4g}" for x in numbers))
    console.print(table)
    console.print(", ".join(f"{count:,} {word}" for word, count in facts["statuses"].items()))
    console.print(f"wrote {escape(str(target))}")
    if plot is not None:
        result.plot(plot)
        console.print(f"wrote {escape(str(plot))}")
    _save(json_file, {"version": dl.__version__, "model": asked.model.name, "seconds": asked.seconds, "path": str(target)} | facts)


@app.command()
def view(
    source: Annotated[
        str, typer.Argument(help="Name of an embedded robot or a scene, path to an MJCF or URDF file, or a saved trajectory (.npz).")
    ],
    record_file: Annotated[
        Path | None,
        typer.Option(
            "--record", help="Write a file instead of serving a page: .html or .viser to play in a browser, or .gif, .webp or .mp4."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 for any free port.")] = 8080,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    model_file: Annotated[
        str | None, typer.Option("--model", help="MJCF or URDF file of a saved trajectory's model, to draw its meshes.")
    ] = None,
    floating_base: Floating = False,
    package_dir: Packages = None,
) -> None:
    """Show a robot, a scene or a trajectory in the browser (needs the extra viewer)."""
    from ._door import unknown
    from .model.from_mujoco import from_compiled
    from .model.load import compile_source

    shown: dict[str, Any] = {}
    what: dl.Model | dl.Trajectory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if source.endswith(".npz"):
            what = dl.Trajectory.load(source)
            if model_file is not None:
                shown = {"geometry": compile_source(model_file, floating_base=floating_base, package_dirs=package_dir).model}
        elif model_file is not None:
            raise ArgumentError(f"--model: goes with a saved trajectory (.npz), got {source!r}. Leave it out.")
        elif source in dl.scenes.names:
            scene = dl.scenes.load(source)
            what, shown = scene.model, {"q": scene.q, "constraints": scene.constraints}
        else:
            try:
                compiled = compile_source(source, floating_base=floating_base, package_dirs=package_dir)
            except UnknownNameError:
                raise unknown("robot or scene", source, (*dl.embedded_names(), *dl.scenes.names)) from None
            what, shown = from_compiled(compiled), {"geometry": compiled.model}
    if record_file is not None:
        dl.record(what, record_file, **shown)
        console.print(f"wrote {escape(str(record_file))}, which any browser opens")
        return
    with dl.View(what, port=port, pose=True, **shown) as window:
        window.play()
        console.print(
            f"{escape(str(what if isinstance(what, dl.Trajectory) else repr(what)))} at [bold]{window.url}[/], Ctrl-C ends", soft_wrap=True
        )
        if open_page:
            import webbrowser

            webbrowser.open(window.url)
        with suppress(KeyboardInterrupt):
            window.wait()


@app.command()
def play(
    source: RobotOrScene,
    timestep: Timestep = None,
    keyframe: Annotated[str | None, typer.Option(help="Keyframe to start from; default: home, or the file's own pose.")] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Start paused, until the button Run.")] = False,
    dark: Annotated[bool, typer.Option("--dark", help="Dark background.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 for any free port.")] = 8080,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    floating_base: Floating = False,
    floor: Floor = False,
    package_dir: Packages = None,
) -> None:
    """Simulate live in the browser: drag bodies, move controls, change friction and time step (needs the extra viewer). Embedded robots are placed on a floor."""
    from .demo import prepare

    sim, _, control, left_out = prepare(source, timestep, "auto", keyframe, floating_base, floor, package_dir)
    with dl.Play(sim, control=control, paused=paused, look="dark" if dark else "light", port=port) as window:
        if left_out:
            console.print(f"ignored by the model: {escape('; '.join(left_out))}")
        console.print(f"{escape(sim.model.name)} at [bold]{window.url}[/], Ctrl-C ends", soft_wrap=True)
        if open_page:
            import webbrowser

            webbrowser.open(window.url)
        with suppress(KeyboardInterrupt):
            window.wait()


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from . import _core

        console.print(f"delassus {dl.__version__}, {_core.compiler}, {_core.flags}", highlight=False)
        raise typer.Exit


def main() -> None:
    """Run the command; a user error gives one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # characters that a terminal cannot show must not cause a failure
    try:
        app()
    except (DelassusError, OSError) as error:
        Console(stderr=True).print(f"[bold red]{type(error).__name__}[/]: {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
