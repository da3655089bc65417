"""Shared parts of the simulating commands: a simulator for a name or file, progress bars, tables, recordings."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import mujoco
import numpy as np
from numpy.typing import NDArray
from rich import progress as bars
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from . import scenes
from ._door import unknown
from ._terminal import console
from .bench import Costs, Motion, PeerMotion, constraints_of, operator_costs
from .errors import ArgumentError, DelassusError, MissingExtraError, UnknownNameError
from .model import Model, embedded_names
from .model.compiled import Compiled
from .model.floor import with_floor
from .model.from_mujoco import from_compiled
from .model.load import compile_source
from .model.urdf import UrdfOptions
from .simulator import Simulator
from .types import SimulatorSolver
from .viewers import record
from .viewers.video import VIDEOS, check_video

__all__ = [
    "Progress",
    "check_film",
    "check_record",
    "compiled_source",
    "costs_at",
    "film",
    "fullest_frame",
    "next_commands",
    "numbers_of",
    "prepare",
    "show_costs",
    "show_motion",
    "show_stages",
    "show_verdict",
    "start_of",
]


class Progress:
    """A progress bar for work in several parts; nothing without a terminal."""

    def __enter__(self) -> Progress:
        self.bar = bars.Progress(
            bars.TextColumn("{task.description:24}"), bars.BarColumn(), bars.TimeElapsedColumn(), console=console, transient=True
        )
        self.bar.start()
        return self

    def part(self, title: str) -> Callable[[float], None]:
        """Begin a part; returns its progress callback, which takes the completed fraction."""
        task = self.bar.add_task(title, total=1.0)
        return lambda share: self.bar.update(task, completed=share)

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


def compiled_source(
    source: str, floating_base: bool, floor: bool = False, package_dirs: Sequence[Path] | None = None
) -> tuple[Compiled, NDArray[np.float64] | None]:
    """Compile a name or a file, and the pose that belongs to it, if any. Embedded robots get a floor, others on request."""
    options = UrdfOptions(floating_base, package_dirs=package_dirs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if source in (*scenes.names, *embedded_names()):
            options.refuse("MJCF")
        if source in scenes.names:
            scene = scenes.load(source)
            return Compiled(mujoco.MjModel.from_xml_string(scene.model.to_mjcf())), scene.q
        if source in embedded_names():
            return Compiled(mujoco.MjModel.from_xml_string(scenes.on_floor(source).to_mjcf())), None
        try:
            compiled = compile_source(source, floating_base=floating_base, package_dirs=package_dirs)
            if not floor:
                return compiled, None
            model = with_floor(from_compiled(compiled))
            return Compiled(model._in_mujoco(), model.name, model.ignored), None
        except UnknownNameError:
            raise unknown("robot or scene", source, (*embedded_names(), *scenes.names)) from None


def start_of(
    model: Model, peer: Any, keyframe: str | None, q: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Choose the initial pose and controls: those of the keyframe, else q, else those of the keyframe home."""
    keys = list(model.keyframes)
    if keyframe is not None and keyframe not in keys:
        raise unknown("keyframe", keyframe, keys)
    chosen = keyframe or ("home" if "home" in keys else None)
    control = None
    if chosen is not None and (keyframe is not None or q is None):
        q, named = model.keyframes[chosen], mujoco.mj_name2id(peer, mujoco.mjtObj.mjOBJ_KEY, chosen)
        if named >= 0 and peer.nu == len(model.actuators) > 0:
            control = np.array(peer.key_ctrl[named])
    return q, control


def prepare(
    source: str,
    timestep: float | None,
    solver: str,
    keyframe: str | None,
    floating_base: bool,
    floor: bool = False,
    package_dirs: Sequence[Path] | None = None,
) -> tuple[Simulator, Any, NDArray[np.float64] | None, tuple[str, ...]]:
    """Make a simulator for a name or file, at its keyframe. Also return MuJoCo's model of it, the controls of the keyframe, and the ignored elements."""
    compiled, q = compiled_source(source, floating_base, floor, package_dirs)
    peer = compiled.model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = Simulator(peer, timestep=timestep, solver=cast(SimulatorSolver, solver))  # checks the name itself
        left_out = from_compiled(compiled).ignored
    q, control = start_of(sim.model, peer, keyframe, q)
    sim.reset(q)
    return sim, peer, control, left_out


def check_record(path: Path | None) -> None:
    """Check before the simulation that its recording can be written."""
    if path is None:
        return
    if path.suffix not in (".html", ".viser", ".npz"):
        raise ArgumentError(f"--record: expected a file that ends in .html, .viser or .npz, got {str(path)!r}.")
    if not path.parent.is_dir():
        raise ArgumentError(f"--record: expected a file in an existing folder, got {str(path)!r}.")
    if path.suffix != ".npz" and importlib.util.find_spec("viser") is None:
        raise MissingExtraError(f'--record: {path.suffix} needs viser: pip install "delassus[viewer]", or record an .npz.')


def check_film(path: Path | None) -> None:
    """Check before the simulation that its video can be written."""
    if path is None:
        return
    if path.suffix not in VIDEOS or not path.parent.is_dir():
        raise ArgumentError(f"--video: expected a file that ends in {', '.join(VIDEOS)} in an existing folder, got {str(path)!r}.")
    check_video(path.suffix)


def numbers_of(text: str | None, default: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Read comma-separated numbers; without text the default."""
    if text is None:
        return default
    try:
        return np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise ArgumentError(f"--control: expected comma-separated numbers, got {text!r}.") from None


def _deepest(motion: Motion | PeerMotion) -> str:
    return f"{1e3 * np.median(motion.penetration):.2g} / {1e3 * motion.penetration.max():.2g}"


def show_motion(sim: Simulator, motion: Motion, peer: PeerMotion | None, title: str) -> dict[str, Any]:
    """Show a summary of a simulation, beside MuJoCo's if its numbers are valid; returns the same."""
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

    row("maximum number of active contacts", str(motion.contacts.max()), lambda p: str(p.contacts.max()))
    row("penetration, median / maximum [mm]", _deepest(motion), _deepest)
    if sim.model.loops:
        row("largest loop error [m]", f"{motion.loop_error.max():.1e}")
    row("mean time per step [ms]", f"{1e3 * motion.stages['step']:.3g}", lambda p: f"{1e3 * p.seconds.mean():.3g}")
    row("real-time factor", f"{dt / motion.stages['step']:.3g}", lambda p: f"{dt / p.seconds.mean():.3g}")
    row("mean iterations of the contact solver", f"{motion.iterations.mean():.1f}")
    row("contact residual, median / maximum [m/s]", f"{np.median(motion.residual):.0e} / {motion.residual.max():.0e}")
    row("steps solved", f"{n - motion.unsolved} of {n}")
    console.print(table)
    facts: dict[str, Any] = {
        "model": sim.model.name, "nv": sim.model.nv, "bodies": sim.model.nbody - 1, "steps": n, "timestep": dt, "solver": sim.solver,
        "contacts": int(motion.contacts.max()), "penetration_median": float(np.median(motion.penetration)),
        "penetration": float(motion.penetration.max()), "loop_error": float(motion.loop_error.max()),
        "seconds_per_step": motion.stages["step"], "seconds_per_step_from_python": float(motion.seconds.mean()), "real_time_factor": dt / motion.stages["step"], "stages": motion.stages,
        "iterations": float(motion.iterations.mean()), "residual_median": float(np.median(motion.residual)),
        "residual": float(motion.residual.max()), "unsolved": motion.unsolved,
        "statuses": {str(word): int((motion.status == word).sum()) for word in np.unique(motion.status)},
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


def show_stages(motion: Motion) -> None:
    """Show the time of each stage of a step."""
    table = Table(title="Mean time by stage", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("stage")
    table.add_column("µs", justify="right")
    table.add_column("share", justify="right")
    whole = motion.stages["step"]
    for name, part in (*motion.stages.items(), ("from Python", float(motion.seconds.mean()))):
        table.add_row(name, f"{1e6 * part:.1f}", f"{part / whole:.0%}")
    console.print(table)


def show_costs(costs: Costs, moment: float) -> dict[str, Any]:
    """Show the costs of the operator and of a matrix, if their results agree; returns the same."""
    if not costs.agree:
        raise DelassusError(
            f"the operator and the matrix differ by {costs.product_error:.1e} in G x and {costs.solve_error:.1e} in its inverse: no times are shown."
        )
    table = Table(
        title=f"The operator at t = {moment:.2f} s: {costs.contacts} contacts, some about to touch, {costs.rows} rows",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("")
    for column in ("matrix-free", f"explicit ({costs.method}, LAPACK)", "ratio", "difference"):
        table.add_column(column, justify="right")
    for name, (ours, theirs), error in (
        ("update: numbers and factors [µs]", costs.update, ""),
        ("G x [µs]", costs.product, f"{costs.product_error:.0e}"),
        ("(G + ρ)⁻¹ y [µs]", costs.solve, f"{costs.solve_error:.0e}"),
        ("memory [kB]", (costs.nbytes[0] / 1e3, costs.nbytes[1] / 1e3), ""),
    ):
        table.add_row(escape(name), f"{ours:,.1f}", f"{theirs:,.1f}", f"{theirs / ours:,.1f}", error)
    console.print(table)
    console.print(
        f"its contact problem, cold start: {costs.status} in {costs.iterations} iterations, {costs.problem / 1e3:.2f} ms; residual "
        f"{costs.residual:.0e} m/s, computed with the dense matrix",
        highlight=False,
    )
    return {"time": moment} | asdict(costs)


# what a step's status says, in a few words; docs/statuses.md has the exact ones
_MEANINGS = {
    "approximate": "forces hold nearly, see the residual", "iteration_limit": "forces hold nearly, see the residual", "stalled": "forces hold nearly, see the residual",
    "infeasible": "loops or limits contradict each other", "tunnelling": "a shape passed through another", "open_loops": "a loop was open, and is being closed",
    "limit_violated": "a joint was outside its range, and returns into it", "penetrating": "a contact became deeper",
}  # fmt: skip


def unsolved_in_words(motion: Motion) -> str:
    """Return the steps that ended otherwise than solved, by status and with its meaning; empty where there are none."""
    words, counts = np.unique(motion.status[motion.status != "solved"], return_counts=True)
    return ", ".join(f"{count} {word} ({_MEANINGS.get(word, 'see docs/statuses.md')})" for word, count in zip(words, counts, strict=True))


def show_verdict(motion: Motion, peer: PeerMotion | None, costs: Costs | None) -> None:
    """Summarize the tables in words."""
    n = len(motion.status)
    if motion.unsolved == 0:
        told = f"every one of {n:,} steps is solved: Coulomb friction and rigid contact hold to {motion.residual.max():.0e} m/s"
    else:
        told = f"{n - motion.unsolved:,} of {n:,} steps are solved; the others: {unsolved_in_words(motion)}"
    console.print(f"• {told}", highlight=False)
    if peer is not None and peer.finite:
        ratio = peer.penetration.max() / max(float(motion.penetration.max()), 1e-12)
        speed = peer.seconds.mean() / motion.stages["step"]
        console.print(
            f"• the deepest penetration is {ratio:,.0f} times smaller than with MuJoCo's soft contacts; a step takes {1 / speed:.2g} times as long as MuJoCo's",
            highlight=False,
        )
    if costs is not None:
        console.print(
            f"• the Delassus operator of {costs.rows} rows is updated and factored {costs.update[1] / costs.update[0]:,.0f} times as fast as its matrix, "
            f"and is {costs.nbytes[1] / costs.nbytes[0]:.0f} times smaller",
            highlight=False,
        )


def next_commands() -> list[tuple[str, str]]:
    """Three commands to try, with descriptions, that run with the installed packages."""
    has = {name: importlib.util.find_spec(name) is not None for name in ("viser", "pinocchio", "imageio_ffmpeg")}
    video = "fall.mp4" if has["imageio_ffmpeg"] else "fall.gif"
    return [
        ("delassus play go2", "a robot in your browser, to push and to steer")
        if has["viser"]
        else ('pip install "delassus[viewer]"', "then delassus play go2: a robot in your browser, to push and to steer"),
        (f"delassus simulate your_robot.xml --video {video}", "your own MJCF or URDF file as a video"),
        ("delassus bench cassie --peers", "every method beside Pinocchio and MuJoCo")
        if has["pinocchio"]
        else ("delassus bench cassie", "every method on a robot with loops, timed and checked"),
    ]


def film(motion: Motion, folder: Path, stem: str, geometry: Any = None) -> Path:
    """Write the motion as a page, or as arrays if there is no viewer."""
    try:
        path = record(motion.trajectory, folder / f"{stem}.html", geometry=geometry)
        console.print(f"wrote {escape(str(path))}: the motion, to open in any browser")
    except MissingExtraError:
        path = motion.trajectory.save(folder / f"{stem}.npz")
        console.print(f'wrote {escape(str(path))}: the motion as arrays; for one that plays in a browser pip install "delassus\\[viewer]"')
    return path


def fullest_frame(motion: Motion) -> int:
    """Return the frame with the largest number of contacts."""
    return int(np.argmax(np.diff(motion.trajectory.contact_start)))


def costs_at(sim: Simulator, motion: Motion, frame: int) -> Costs | None:
    """Measure the operator in a frame of a motion; None without any constraint or contact."""
    tr = motion.trajectory
    constraints = constraints_of(sim.model, tr.q[frame], tr.contacts(frame))
    return operator_costs(sim.model, tr.q[frame], tr.v[frame], constraints, sim.timestep) if constraints else None
