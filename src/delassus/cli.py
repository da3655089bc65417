"""The command ``delassus``."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import __version__, _core, scenes
from ._door import unknown
from .check import compare_with_mujoco, full_mass_matrix
from .constraints import Constraint, PointContact, Weld, from_loop
from .dynamics import Workspace, forward_dynamics, mass_matrix, mass_matrix_inverse
from .errors import ArgumentError, DelassusError, UnknownNameError
from .model import Model, embedded_names, load
from .model.from_mujoco import from_mujoco
from .model.load import compile_source
from .operators import DelassusOperator
from .simulator import Trajectory
from .state import integrate, kinetic_energy, potential_energy
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


def _best(call: Callable[[], object], repeats: int = 30, inner: int = 20) -> float:
    """Best time of one call in µs."""
    call()
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(inner):
            call()
        best = min(best, (time.perf_counter() - start) / inner)
    return best * 1e6


def _compare_robot(name: str) -> dict[str, Any]:
    import mujoco

    peer = compile_source(name).model
    model = load(name)
    error = max(row.error for row in compare_with_mujoco(model, peer, states=5))
    rng = np.random.default_rng(0)
    q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
    work, M, a = Workspace(model), np.empty((model.nv, model.nv)), np.empty(model.nv)
    d = mujoco.MjData(peer)
    d.qpos[:], d.qvel[:] = q, v
    mujoco.mj_forward(peer, d)

    def theirs() -> Any:
        mujoco.mj_kinematics(peer, d)
        mujoco.mj_comPos(peer, d)
        (mujoco.mj_makeM if hasattr(mujoco, "mj_makeM") else mujoco.mj_crb)(peer, d)
        return full_mass_matrix(peer, d)

    return {
        "robot": name, "nv": model.nv, "loops": len(model.loops), "mass": model.mass, "error": error,
        "forward_dynamics": _best(lambda: forward_dynamics(work, q, v, tau, out=a)),
        "mass_matrix_inverse": _best(lambda: mass_matrix_inverse(work, q, out=M)),
        "mass_matrix": _best(lambda: mass_matrix(work, q, out=M)),
        "mass_matrix_mujoco": _best(theirs),
    }  # fmt: skip


def _swing(model: Model, seconds: float, dt: float) -> tuple[Any, Any, Any]:
    """Let a model fall freely (fourth-order Runge–Kutta): times, configurations, kinetic and potential energies."""
    work = Workspace(model)
    q, v = model.neutral(), model.zero_velocity()
    q[:2] = np.pi / 2, 0.3
    times, path, energy = [0.0], [q], [(0.0, potential_energy(work, q))]
    for k in range(round(seconds / dt)):
        a1 = forward_dynamics(work, q, v)
        v2 = v + dt / 2 * a1
        a2 = forward_dynamics(work, integrate(work, q, v, dt / 2), v2)
        v3 = v + dt / 2 * a2
        a3 = forward_dynamics(work, integrate(work, q, v2, dt / 2), v3)
        v4 = v + dt * a3
        a4 = forward_dynamics(work, integrate(work, q, v3, dt), v4)
        q = integrate(work, q, (v + 2 * v2 + 2 * v3 + v4) / 6, dt)
        v = v + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        times.append((k + 1) * dt)
        path.append(q)
        energy.append((kinetic_energy(work, q, v), potential_energy(work, q)))
    return np.array(times), np.array(path), np.array(energy)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the figure.")] = Path(),
    json_file: Json = None,
) -> None:
    """Load every embedded robot, check it against MuJoCo, time it, and draw a figure: no downloads, a few seconds."""
    from rich.progress import track

    if not folder.is_dir():
        raise ArgumentError(f"--folder: expected an existing folder, got {str(folder)!r}.")
    from .figures import demo_figure

    rows = [_compare_robot(name) for name in track(embedded_names(), "robots", console=console, transient=True)]
    table = Table(title="Tree dynamics from Python, µs a call (best of 30), beside the error")
    table.add_column("robot")
    for column in ("n_v", "loops", "kg", "error vs MuJoCo", "ABA", "M⁻¹", "M", "M, MuJoCo (4 calls)"):
        table.add_column(column, justify="right")
    for r in rows:
        table.add_row(
            r["robot"], str(r["nv"]), str(r["loops"]), f"{r['mass']:.1f}", f"{r['error']:.0e}", f"{r['forward_dynamics']:.1f}",
            f"{r['mass_matrix_inverse']:.1f}", f"{r['mass_matrix']:.1f}", f"{r['mass_matrix_mujoco']:.1f}",
        )  # fmt: skip
    console.print(table)

    model = scenes.chain(6)
    times, path, energy = _swing(model, 2.0, 5e-4)
    drift = float(np.abs(energy.sum(axis=1) - energy[0].sum()).max() / energy[:, 0].max())
    console.print(f"a chain of {model.nv} rods swings freely for {times[-1]:.0f} s: energy kept to {drift:.1e}")
    picture = demo_figure(folder / "delassus_demo.png", model, times, path, energy)
    console.print(f"wrote {picture}")
    console.print("next: [bold]delassus info cassie[/], [bold]delassus check your_robot.xml[/], examples/01_first_steps.py")
    _save(json_file, {"version": __version__, "robots": rows, "energy_drift": drift})
    if max(r["error"] for r in rows) > 1e-9 or drift > 1e-6:
        raise typer.Exit(1)


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
