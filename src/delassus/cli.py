"""The command ``delassus``."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import warnings
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import mujoco
import numpy as np
import typer
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from . import __version__, _core, scenes
from ._door import unknown
from .bench import Costs, Motion, PeerMotion, constraints_of, operator_costs, run, run_mujoco
from .check import compare_with_mujoco
from .constraints import Constraint, PointContact, Weld, from_loop
from .errors import ArgumentError, DelassusError, MissingExtraError, UnknownNameError
from .model import Model, embedded_names, load
from .model.from_mujoco import from_mujoco
from .model.load import compile_source
from .operators import DelassusOperator
from .simulator import Simulator, Trajectory
from .textbook import ALGORITHMS
from .textbook import count as count_operations
from .viewers import View, record

app = typer.Typer(
    help="Delassus operators and constrained dynamics of robots with loops and contacts.", no_args_is_help=True, add_completion=False
)
console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120)

Robot = Annotated[str, typer.Argument(help="Name of an embedded robot, or a path to an MJCF or URDF file.")]
RobotOrScene = Annotated[str, typer.Argument(help="Name of an embedded robot or of a scene, or a path to an MJCF or URDF file.")]
Floating = Annotated[bool, typer.Option("--floating-base", help="Let the root of a URDF float.")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the table to this file.")]


def _save(path: Path | None, data: Any) -> None:
    if path is not None:
        path.write_text(json.dumps(data, indent=2) + "\n")
        console.print(f"wrote {escape(str(path))}")


def _bounds(low: float, high: float) -> str:
    return f"{low:.3g} … {high:.3g}" if np.isfinite((low, high)).all() else "–"


def _robot_or_scene(source: str, floating_base: bool) -> tuple[Model, scenes.Scene | None]:
    scene = scenes.load(source) if source in scenes.names else None
    try:
        return load(scene.model if scene else source, floating_base=floating_base), scene
    except UnknownNameError:
        raise unknown("robot or scene", source, (*embedded_names(), *scenes.names)) from None


def _scene_info(scene: scenes.Scene) -> dict[str, Any]:
    """Show the constraints of a scene, a line a kind, and what its operator does and costs; returns the same."""
    kinds: dict[str, dict[str, Any]] = {}
    for c in scene.constraints:
        kind = kinds.setdefault(type(c).__name__, {"count": 0, "rows": 0, "force_set": c.force_set})
        kind["count"] += 1
        kind["rows"] += c.rows
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("constraint")
    for column in ("how many", "rows"):
        table.add_column(column, justify="right")
    table.add_column("force set")
    for name, kind in kinds.items():
        table.add_row(name, *(str(x) for x in kind.values()))
    console.print(f"{'scene':10} {scene.name}: {len(scene.constraints)} constraints, {scene.rows} rows")
    console.print(table)
    explanation = DelassusOperator(scene.model, scene.constraints).explain()
    console.print(escape(str(explanation)), highlight=False)
    cost = asdict(explanation) | {"forming": explanation.forming, "break_even": explanation.break_even}
    return {"scene": scene.name, "contacts": scene.contacts, "rows": scene.rows, "constraints": kinds, "operator": cost}


@app.command()
def info(robot: RobotOrScene, floating_base: Floating = False, json_file: Json = None) -> None:
    """Show joints, masses, sizes, loops and ignored elements of a robot; of a scene, its constraints and what their operator costs too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table below lists them
        model, scene = _robot_or_scene(robot, floating_base)
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
def check(
    robot: Robot,
    states: Annotated[int, typer.Option(min=1, help="How many random states.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the random states.")] = 0,
    floating_base: Floating = False,
    json_file: Json = None,
) -> None:
    """Compare our numbers for a robot with MuJoCo's on random states; exit 1 if any differ."""
    compiled = compile_source(robot, floating_base=floating_base)
    model, peer = from_mujoco(*compiled), compiled.model
    rows = compare_with_mujoco(model, peer, states=states, seed=seed)
    table = Table(title=f"{escape(model.name)}: largest relative error against MuJoCo, {states} random states")
    table.add_column("quantity")
    for column in ("error", "allowed"):
        table.add_column(column, justify="right")
    table.add_column("")
    for row in rows:
        table.add_row(row.quantity, f"{row.error:.1e}", f"{row.tolerance:.0e}", "ok" if row.passed else "[bold red]differs")
    console.print(table)
    _save(json_file, [{"quantity": r.quantity, "error": r.error, "tolerance": r.tolerance, "passed": r.passed} for r in rows])
    if model.ignored:
        console.print(f"left out of the model: {escape('; '.join(model.ignored))}")
    if not all(row.passed for row in rows):
        raise typer.Exit(1)


@app.command()
def count(
    algorithm: Annotated[str, typer.Argument(help="Name of a textbook algorithm, several with commas, or all.")],
    robot: RobotOrScene,
    contact: Annotated[
        list[str] | None, typer.Option(help="A point of this body touches the ground, 3 rows at its origin; may be repeated.")
    ] = None,
    weld: Annotated[list[str] | None, typer.Option(help="This body is welded to the ground, 6 rows; may be repeated.")] = None,
    loops: Annotated[bool, typer.Option("--loops", help="Close the loops of the model.")] = False,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations of the proximal algorithms.")] = 3,
    floating_base: Floating = False,
    json_file: Json = None,
) -> None:
    """Count additions, multiplications, divisions, roots, sines and cosines of textbook algorithms on a robot or a scene (needs CasADi)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, scene = _robot_or_scene(robot, floating_base)
    constraints = [
        *(scene.constraints if scene else ()),
        *(model.loops if loops and not scene else ()),
        *(PointContact(model, body) for body in contact or ()),
        *(Weld(model, body) for body in weld or ()),
    ]
    names = list(ALGORITHMS) if algorithm == "all" else algorithm.split(",")
    counts = {}
    for name in names:
        try:
            counts[name] = count_operations(name, model, constraints, iterations=iterations)
        except ArgumentError:
            if algorithm != "all":
                raise  # of all, those that take these constraints are shown
    rows = sum(c.rows if isinstance(c, Constraint) else from_loop(model, c).rows for c in constraints)
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


Seconds = Annotated[float, typer.Option(min=0.0, help="Simulated time [s].")]
Timestep = Annotated[float, typer.Option(help="Of the simulation [s].")]


class _Progress:
    """A bar for several parts of some work; nothing where there is no terminal."""

    def __enter__(self) -> _Progress:
        self.bar = Progress(TextColumn("{task.description:24}"), BarColumn(), TimeElapsedColumn(), console=console, transient=True)
        self.bar.start()
        return self

    def part(self, title: str) -> Callable[[float], None]:
        task = self.bar.add_task(title, total=1.0)
        return lambda share: self.bar.update(task, completed=share)

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


def _simulator(
    source: str, timestep: float, solver: str, keyframe: str | None, floating_base: bool
) -> tuple[Simulator, NDArray[np.float64] | None]:
    """Make a simulator of a name or a file, at its keyframe, and the controls of that; robots that come with us get a floor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q: Any = None
        if source in scenes.names:
            model, q, _ = scenes.load(source)
            sim = Simulator(model, timestep=timestep, solver=solver)
        elif source in embedded_names():
            sim = Simulator(scenes.on_floor(source), timestep=timestep, solver=solver)
        else:
            try:
                compiled = compile_source(source, floating_base=floating_base)
            except UnknownNameError:
                raise unknown("robot or scene", source, (*embedded_names(), *scenes.names)) from None
            sim = Simulator(compiled.model, timestep=timestep, solver=solver)
    keys = list(sim.model.keyframes)
    if keyframe is not None and keyframe not in keys:
        raise unknown("keyframe", keyframe, keys)
    chosen = keyframe or ("home" if "home" in keys else None)
    control = None
    if chosen is not None and (keyframe is not None or q is None):
        q, mj = sim.model.keyframes[chosen], sim.mujoco_model
        named = mujoco.mj_name2id(mj, mujoco.mjtObj.mjOBJ_KEY, chosen)
        if named >= 0 and mj.nu == len(sim.model.actuators) > 0:
            control = np.array(mj.key_ctrl[named])
    sim.reset(q)
    return sim, control


def _can_record(path: Path | None) -> None:
    """Say before the work whether its result could be written."""
    if path is None:
        return
    if path.suffix not in (".html", ".viser", ".npz"):
        raise ArgumentError(f"--record: expected a file that ends in .html, .viser or .npz, got {str(path)!r}.")
    if not path.parent.is_dir():
        raise ArgumentError(f"--record: expected a file in an existing folder, got {str(path)!r}.")
    if path.suffix != ".npz" and importlib.util.find_spec("viser") is None:
        raise MissingExtraError(f'--record: {path.suffix} needs viser: pip install "delassus[viewer]", or record an .npz.')


def _numbers(text: str | None, default: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    if text is None:
        return default
    try:
        return np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise ArgumentError(f"--control: expected numbers with commas between them, got {text!r}.") from None


def _deepest(motion: Motion | PeerMotion) -> str:
    return f"{1e3 * np.median(motion.penetration):.2g} / {1e3 * motion.penetration.max():.2g}"


def _show_motion(sim: Simulator, motion: Motion, peer: PeerMotion | None, title: str) -> dict[str, Any]:
    """Show how a simulation went, MuJoCo's beside it where its numbers are sound; returns the same."""
    n, dt = len(motion.seconds), sim.timestep
    sound = peer is not None and peer.finite
    table = Table(title=escape(title), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("delassus", justify="right")
    if peer is not None:
        table.add_column("MuJoCo", justify="right")

    def row(what: str, ours: str, theirs: Callable[[PeerMotion], str] | None = None) -> None:
        beside = [] if peer is None else [theirs(peer) if theirs and sound else "–" if sound or not theirs else "unstable"]
        table.add_row(escape(what), ours, *beside)

    row("contacts, most at once", str(motion.contacts.max()), lambda p: str(p.contacts.max()))
    row("penetration, median / deepest [mm]", _deepest(motion), _deepest)
    if sim.model.loops:
        row("loops open by at most [m]", f"{motion.loop_error.max():.1e}")
    row("time a step, mean [ms]", f"{1e3 * motion.stages['step']:.3g}", lambda p: f"{1e3 * p.seconds.mean():.3g}")
    row("real-time factor", f"{dt / motion.stages['step']:.3g}", lambda p: f"{dt / p.seconds.mean():.3g}")
    row("iterations of the contact solver, mean", f"{motion.iterations.mean():.1f}")
    row("contact residual, median / largest [m/s]", f"{np.median(motion.residual):.0e} / {motion.residual.max():.0e}")
    row("steps within the tolerance of 1e-6", f"{n - motion.unsolved} of {n}")
    console.print(table)
    facts: dict[str, Any] = {
        "model": sim.model.name, "nv": sim.model.nv, "bodies": sim.model.nbody - 1, "steps": n, "timestep": dt, "solver": sim.solver,
        "contacts": int(motion.contacts.max()), "penetration_median": float(np.median(motion.penetration)),
        "penetration": float(motion.penetration.max()), "loop_error": float(motion.loop_error.max()),
        "seconds_per_step": motion.stages["step"], "seconds_per_step_from_python": float(motion.seconds.mean()), "real_time_factor": dt / motion.stages["step"], "stages": motion.stages,
        "iterations": float(motion.iterations.mean()), "residual_median": float(np.median(motion.residual)),
        "residual": float(motion.residual.max()), "unsolved": motion.unsolved,
    }  # fmt: skip
    if peer is not None:
        facts["mujoco"] = {"version": mujoco.__version__, "finite": peer.finite} | (
            {
                "contacts": int(peer.contacts.max()), "penetration_median": float(np.median(peer.penetration)),
                "penetration": float(peer.penetration.max()), "seconds_per_step": float(peer.seconds.mean()),
                "real_time_factor": float(dt / peer.seconds.mean()),
            } if peer.finite else {}
        )  # fmt: skip
    return facts


def _show_stages(motion: Motion) -> None:
    table = Table(title="A step by stage, mean", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("stage")
    table.add_column("µs", justify="right")
    table.add_column("share", justify="right")
    whole = motion.stages["step"]
    for name, part in (*motion.stages.items(), ("from Python", float(motion.seconds.mean()))):
        table.add_row(name, f"{1e6 * part:.1f}", f"{part / whole:.0%}")
    console.print(table)


def _show_costs(costs: Costs, moment: float) -> dict[str, Any]:
    """Show what the operator costs against a matrix, if they agree; returns the same."""
    if not costs.agree:
        raise DelassusError(
            f"the operator and the matrix differ by {costs.product_error:.1e} in G x and {costs.solve_error:.1e} in its inverse: no times are shown."
        )
    table = Table(
        title=f"The operator at t = {moment:.2f} s: {costs.contacts} contacts, {costs.rows} rows", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.add_column("")
    for column in ("matrix-free", f"explicit ({costs.method}, LAPACK)", "ratio", "they differ by"):
        table.add_column(column, justify="right")
    for name, (ours, theirs), error in (
        ("new numbers and factors [µs]", costs.update, ""),
        ("G x [µs]", costs.product, f"{costs.product_error:.0e}"),
        ("(G + ρ)⁻¹ y [µs]", costs.solve, f"{costs.solve_error:.0e}"),
        ("memory [kB]", (costs.nbytes[0] / 1e3, costs.nbytes[1] / 1e3), ""),
    ):
        table.add_row(escape(name), f"{ours:,.1f}", f"{theirs:,.1f}", f"{theirs / ours:,.1f}", error)
    console.print(table)
    console.print(
        f"its contact problem, from nothing: {costs.status} in {costs.iterations} iterations, {costs.problem / 1e3:.2f} ms; residual "
        f"{costs.residual:.0e} m/s, found with the dense matrix",
        highlight=False,
    )
    return {"time": moment} | asdict(costs)


def _film(motion: Motion, folder: Path, stem: str, geometry: Any = None) -> Path:
    """Write the motion as a page, or as numbers where there is no viewer."""
    try:
        path = record(motion.trajectory, folder / f"{stem}.html", geometry=geometry)
        console.print(f"wrote {escape(str(path))}: the motion, in any browser")
    except MissingExtraError:
        path = motion.trajectory.save(folder / f"{stem}.npz")
        console.print(f'wrote {escape(str(path))}: the motion as numbers; for one that plays in a browser pip install "delassus\\[viewer]"')
    return path


def _most_contacts(motion: Motion) -> int:
    """Return the frame that has most contacts."""
    return int(np.argmax(np.diff(motion.trajectory.contact_start)))


def _costs(sim: Simulator, motion: Motion, frame: int) -> Costs | None:
    tr = motion.trajectory
    constraints = constraints_of(sim.model, tr.q[frame], tr.contacts(frame))
    return operator_costs(sim.model, tr.q[frame], tr.v[frame], constraints, sim.timestep) if constraints else None


@app.command()
def demo(
    seconds: Seconds = 1.2,
    folder: Annotated[Path, typer.Option(help="Where to write the figure and the recording.")] = Path(),
    json_file: Json = None,
) -> None:
    """Drop three humanoids on a pyramid of boxes, MuJoCo beside; write a figure and a recording. No downloads, well under a minute."""
    if not folder.is_dir():
        raise ArgumentError(f"--folder: expected an existing folder, got {str(folder)!r}.")
    from .figures import simulation_figure

    with _Progress() as progress:
        checking, errors = progress.part("robots against MuJoCo"), {}
        for k, name in enumerate(embedded_names()):
            errors[name] = max(row.error for row in compare_with_mujoco(load(name), compile_source(name).model, states=5))
            checking((k + 1) / len(embedded_names()))
        sim = Simulator(scenes.pyramid_with_robots())
        q, v = sim.q, sim.v
        motion = run(sim, seconds, every=10, progress=progress.part("delassus"))
        peer = run_mujoco(sim.mujoco_model, q, v, sim.timestep, seconds, progress=progress.part("MuJoCo"))
        frame = _most_contacts(motion)
        measuring = progress.part("operator and figure")
        costs = _costs(sim, motion, frame)
        measuring(0.4)
        simulation_figure(folder / "delassus_demo.png", motion, peer, costs)
        measuring(1.0)
    console.print(f"{len(errors)} robots: their dynamics and MuJoCo's differ by {max(errors.values()):.0e} at most", highlight=False)
    facts = _show_motion(
        sim,
        motion,
        peer,
        f"Three humanoids fall on a pyramid: {sim.model.nbody - 1} bodies, n_v = {sim.model.nv}, {seconds:g} s in steps of 1 ms",
    )
    if costs is not None:
        facts["operator"] = _show_costs(costs, float(motion.trajectory.times[frame]))
    console.print(f"wrote {escape(str(folder / 'delassus_demo.png'))}: the figure")
    _film(motion, folder, "delassus_demo")
    console.print(
        "next: [bold]delassus view g1-fallen[/], [bold]delassus simulate your_robot.xml[/], [bold]delassus bench cassie[/], examples/01_operator_of_a_urdf.py"
    )
    _save(json_file, {"version": __version__, "robots": errors} | facts)
    if max(errors.values()) > 1e-9 or motion.residual.max() > 1e-2:
        raise typer.Exit(1)


@app.command()
def simulate(
    source: RobotOrScene,
    seconds: Seconds = 2.0,
    timestep: Timestep = 1e-3,
    solver: Annotated[str, typer.Option(help="admm or newton.")] = "admm",
    keyframe: Annotated[str | None, typer.Option(help="Where to start; default home, or the file's own pose.")] = None,
    control: Annotated[str | None, typer.Option(help="Of the actuators, numbers with commas between; default the keyframe's.")] = None,
    record_file: Annotated[
        Path | None,
        typer.Option("--record", help="Write the motion: .html or .viser plays in a browser (extra viewer), .npz has the numbers."),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Write a picture (.png) of how it went.")] = None,
    floating_base: Floating = False,
    json_file: Json = None,
) -> None:
    """Simulate a robot or a scene with rigid contacts, and tell how it went. Robots that come with delassus stand on a floor."""
    _can_record(record_file)
    sim, default = _simulator(source, timestep, solver, keyframe, floating_base)
    steer = _numbers(control, default)
    with _Progress() as progress:
        motion = run(sim, seconds, control=steer, every=max(1, round(0.01 / timestep)), progress=progress.part(sim.model.name))
    facts = _show_motion(sim, motion, None, f"{sim.model.name}: n_v = {sim.model.nv}, {seconds:g} s in steps of {1e3 * timestep:g} ms")
    if motion.contacts.max() == 0:
        console.print("nothing touched anything: if it should, give the file a floor, or shapes that collide")
    if sim.model.ignored:
        console.print(f"left out of the model: {escape('; '.join(sim.model.ignored))}")
    if record_file is not None:
        if record_file.suffix == ".npz":
            motion.trajectory.save(record_file)
        else:
            record(motion.trajectory, record_file, geometry=sim.mujoco_model)
        console.print(f"wrote {escape(str(record_file))}")
    if figure is not None:
        from .figures import simulation_figure

        simulation_figure(figure, motion, None, _costs(sim, motion, _most_contacts(motion)))
        console.print(f"wrote {escape(str(figure))}")
    _save(json_file, {"version": __version__} | facts)


@app.command()
def bench(
    source: RobotOrScene,
    seconds: Seconds = 0.5,
    timestep: Timestep = 1e-3,
    solver: Annotated[str, typer.Option(help="admm or newton.")] = "admm",
    keyframe: Annotated[str | None, typer.Option(help="Where to start; default home, or the file's own pose.")] = None,
    control: Annotated[str | None, typer.Option(help="Of the actuators, numbers with commas between; default the keyframe's.")] = None,
    floating_base: Floating = False,
    json_file: Json = None,
) -> None:
    """Measure a simulation of a robot or a scene by stage, MuJoCo beside, and its operator against a matrix; only what was checked is shown."""
    sim, default = _simulator(source, timestep, solver, keyframe, floating_base)
    steer = _numbers(control, default)
    q, v = sim.q, sim.v
    with _Progress() as progress:
        motion = run(sim, seconds, control=steer, every=max(1, round(0.01 / timestep)), progress=progress.part("delassus"))
        peer = run_mujoco(sim.mujoco_model, q, v, timestep, seconds, control=steer, progress=progress.part("MuJoCo"))
        measuring = progress.part("operator")
        frame = _most_contacts(motion)
        costs = _costs(sim, motion, frame)
        measuring(1.0)
    facts = _show_motion(sim, motion, peer, f"{sim.model.name}: n_v = {sim.model.nv}, {seconds:g} s in steps of {1e3 * timestep:g} ms")
    _show_stages(motion)
    if costs is None:
        console.print("there are no loops, and nothing touched anything: no operator to measure")
    else:
        facts["operator"] = _show_costs(costs, float(motion.trajectory.times[frame]))
    console.print(f"delassus {__version__}, {_core.compiler}, {_core.flags}; MuJoCo {mujoco.__version__}", highlight=False)
    _save(json_file, {"version": __version__, "compiler": _core.compiler, "flags": _core.flags} | facts)


@app.command()
def view(
    source: Annotated[
        str, typer.Argument(help="Name of an embedded robot or of a scene, a path to an MJCF or URDF file, or a saved trajectory (.npz).")
    ],
    record_file: Annotated[
        Path | None,
        typer.Option("--record", help="Write a file that plays in a browser by itself (.html or .viser) instead of serving one."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to serve the page; 0 is any port that is free.")] = 8080,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    floating_base: Floating = False,
) -> None:
    """Show a robot, a scene or a trajectory in the browser (needs the extra viewer)."""
    shown: dict[str, Any] = {}
    what: Model | Trajectory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if source.endswith(".npz"):
            what = Trajectory.load(source)
        elif source in scenes.names:
            scene = scenes.load(source)
            what, shown = scene.model, {"q": scene.q, "constraints": scene.constraints}
        else:
            try:
                compiled = compile_source(source, floating_base=floating_base)
            except UnknownNameError:
                raise unknown("robot or scene", source, (*embedded_names(), *scenes.names)) from None
            what, shown = from_mujoco(*compiled), {"geometry": compiled.model}
    if record_file is not None:
        record(what, record_file, **shown)
        console.print(f"wrote {escape(str(record_file))}, which any browser opens")
        return
    with View(what, port=port, pose=True, **shown) as window:
        window.play()
        console.print(
            f"{escape(str(what if isinstance(what, Trajectory) else repr(what)))} at [bold]{window.url}[/], Ctrl-C ends", soft_wrap=True
        )
        if open_page:
            webbrowser.open(window.url)
        with suppress(KeyboardInterrupt):
            window.wait()


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        console.print(f"delassus {__version__}, {_core.compiler}, {_core.flags}", highlight=False)
        raise typer.Exit


def main() -> None:
    """Run the command; a mistake of the user's is one line on stderr and exit code 2."""
    try:
        app()
    except (DelassusError, OSError) as error:
        Console(stderr=True).print(f"[bold red]{type(error).__name__}[/]: {escape(str(error))}", highlight=False)
        sys.exit(2)
