"""Rigid-contact simulation of MuJoCo models.

One step is a sentence: collide, constrain, operate, solve, integrate. Contacts are rigid and friction is Coulomb's: nothing creeps, nothing sinks, loops stay closed.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import conform, count, finite, number, unknown
from ..constraints import JointFriction, from_loop
from ..errors import ArgumentError, ArgumentTypeError, UnstableError, WriteError
from ..model import Model
from ..model.from_mujoco import body_names, from_mujoco
from ..model.load import compile_source, tell_ignored
from ..state import kinetic_energy, potential_energy
from ..types import Integrator, SimulatorSolver, StepStatus
from .collision_model import REACH, ShownModel, collision_model
from .contact_problem import ContactProblem, problem_of_step
from .files import named_path, private_file
from .mujoco_library import library
from .snapshot import identity, seal, unseal
from .trajectory import Contacts, Trajectory

__all__ = ["Rollout", "Simulator", "StepResult", "rollout"]

Array = NDArray[Any]
_STATUS: tuple[StepStatus, ...] = ("solved", "iteration_limit", "stalled", "infeasible")
_FLAWS: tuple[StepStatus, ...] = ("solved", "penetrating", "limit_violated", "open_loops", "tunnelling")
_STAGES = ("collide", "constrain", "operate", "solve", "correct", "step")
_SOLVERS = ("admm", "newton")
_INTEGRATORS = ("midpoint", "euler")
RECORDINGS = (".html", ".viser", ".npz")


def _viewers() -> Any:
    """Find the viewers by name when a motion is to be shown or recorded: nothing else here knows them, and who only computes does not load them."""
    return import_module("delassus.viewers")


Control = Callable[[float, Array, Array], ArrayLike]


@dataclass(frozen=True, eq=False)
class StepResult:
    """What a step leaves.

    Attributes:
        time: at its end [s].
        q, v: (nq,), (nv,) at its end.
        contacts: where bodies touched, with forces [N] over the step.
        status: "solved" certifies the whole step: contact forces within the tolerance on all islands, and after the step loops closed (1e-5 of the mechanism's size, a metre at most),
            limits kept (1e-5 and twice the slop), no penetration deeper than before (by twice the slop), and no shape on the other side of another. Otherwise the status of the contact
            solver, see :class:`~delassus.ContactResult`, or, where forces are right, the worst of what is not: "tunnelling", "open_loops", "limit_violated", "penetrating".
        islands: groups of bodies that touch or are tied to each other; each is solved by itself.
        iterations, factorizations: of the contact solver: the most of any island; of all of them.
        corrections: iterations that closed loops and gaps; zero where nothing was open.
        residual: natural residual [m/s].
        penetration: deepest, where contacts were looked for [m].
        penetration_after: deepest of the same contacts after the step, by their velocities [m].
        loop_error, loop_error_after: largest, before and after the step [m or rad].
        limit_error: how far the worst joint is beyond its limit after the step [m or rad].
        tunnelled: pairs of shapes that went through each other within the step.
        timings: seconds of the stages.
    """

    time: float
    q: Array
    v: Array
    contacts: Contacts
    status: StepStatus
    islands: int
    iterations: int
    factorizations: int
    corrections: int
    residual: float
    penetration: float
    penetration_after: float
    loop_error: float
    loop_error_after: float
    limit_error: float
    tunnelled: int
    timings: dict[str, float]

    def body_forces(self, nbody: int) -> Array:
        """Sum of contact forces on every body, (nbody, 3) [N], world axes."""
        total = np.zeros((nbody, 3))
        np.add.at(total, self.contacts.bodies[:, 0], self.contacts.force)
        np.add.at(total, self.contacts.bodies[:, 1], -self.contacts.force)
        return total


def _loaded(source: Any) -> Model:
    """Return a model of what a Simulator takes."""
    if isinstance(source, Model):
        return source
    if isinstance(source, mujoco.MjModel):
        return from_mujoco(source)
    if isinstance(source, str | os.PathLike):
        return from_mujoco(*compile_source(source))
    raise ArgumentTypeError(f"model: expected a name, a path, MJCF text, mujoco.MjModel or delassus.Model, got {type(source).__name__}.")


class Simulator:
    """A world that steps: rigid contacts, loops, limits, dry friction, springs, dampers and motors.

    Every step solves for impulses λ in their sets with σ = G λ + J v_f + max(φ − slop, 0) / dt, G = J M̂⁻¹ Jᵀ matrix-free (see :func:`~delassus.solve_contacts`), and then corrects
    positions where bodies are in each other or loops are open, without touching velocities. Springs, dampers and servos act at the end of the step, M̂ = M + dt D + dt² K, so
    stiff ones are stable. Mechanisms with loops step to second order. Collisions are MuJoCo's, on its own model, four points a pair at most; friction is combined by its rule.

    The same machine and input give the same bits; :meth:`save` and :meth:`restore` go back to a moment bit for bit.

    Args:
        model: a name, a path to MJCF or URDF, MJCF text, a ``mujoco.MjModel`` or a :class:`~delassus.Model`.
        timestep: [s].
        solver: "admm" or "newton".
        integrator: both are semi-implicit, q with the new velocity; "midpoint" takes Coriolis and centrifugal forces at half of the step's velocity, so that what whirls gains no
            energy, "euler" at its start, which is a little faster.
        restitution: e from 0 to 1 of all contacts, by the two-phase law; contacts slower than ``bounce_speed`` do not bounce.
        bounce_speed: [m/s].
        tolerance: of the contact solver, for each of its residuals.
        max_iterations: of the contact solver.
        slop: gap, and penetration, that is taken for touching [m].

    Examples:
        >>> import delassus as dl
        >>> sim = dl.Simulator(dl.scenes.box_stack(3))
        >>> for _ in range(10):
        ...     step = sim.step()
        >>> step.status, len(step.contacts)
        ('solved', 12)
    """

    def __init__(
        self,
        model: Any,
        *,
        timestep: float = 1e-3,
        solver: SimulatorSolver = "admm",
        integrator: Integrator = "midpoint",
        restitution: float = 0.0,
        bounce_speed: float = 0.05,
        tolerance: float = 1e-6,
        max_iterations: int = 300,
        slop: float = 1e-5,
    ) -> None:
        self.timestep = number(timestep, "timestep")
        if not self.timestep > 0:
            raise ArgumentError(f"timestep: expected a positive time, got {timestep}.")
        if solver not in _SOLVERS:
            raise unknown("solver", solver, _SOLVERS)
        if integrator not in _INTEGRATORS:
            raise unknown("integrator", integrator, _INTEGRATORS)
        self.restitution = number(restitution, "restitution", minimum=0.0)
        if self.restitution > 1:
            raise ArgumentError(f"restitution: expected a number from 0 to 1, got {restitution}.")
        self.solver, self.integrator = solver, integrator
        self.model = _loaded(model)
        if not isinstance(model, Model):
            tell_ignored(self.model, stacklevel=3)
        self.tolerance, self.max_iterations = number(tolerance, "tolerance", minimum=0.0), count(max_iterations, "max_iterations")
        self._source = self.model._compiled if self.model._compiled is not None else self.model.to_mujoco()
        self._shown: ShownModel | None = None
        self._options = (
            self.timestep, self.restitution, number(bounce_speed, "bounce_speed", minimum=0.0), self.tolerance, float(self.max_iterations),
            float(solver == "newton"), number(slop, "slop", minimum=0.0), float(integrator == "midpoint"),
        )  # fmt: skip
        self.view: Any = None
        self._plan = _plan(self.model, collision_model(self._source), self._options)
        self._world = _core.World(self._plan)
        self.reset()

    def __repr__(self) -> str:
        return f"<Simulator of {self.model.name!r}: t = {self.time:g} s, timestep {self.timestep:g} s>"

    @property
    def mujoco_model(self) -> Any:
        """MuJoCo's model of this world, a copy to read. Colours and other things that are only drawn may be written; once anything else is, steps and resets raise a ``StaleError``."""
        if self._shown is None:
            self._shown = ShownModel(self._source)
        return self._shown.model

    # ---- state ----------------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """[s]."""
        return float(self._world.time)

    @property
    def q(self) -> Array:
        """(nq,) configuration, a copy."""
        return self._world.q  # type: ignore[no-any-return]

    @property
    def v(self) -> Array:
        """(nv,) velocity, a copy."""
        return self._world.v  # type: ignore[no-any-return]

    def reset(self, q: ArrayLike | None = None, v: ArrayLike | None = None, time: float = 0.0) -> None:
        """Start from a state, without memory of contacts. Default: the model's neutral configuration at rest."""
        self._check_untouched()
        self._world.set_state(self.model.neutral() if q is None else q, np.zeros(self.model.nv) if v is None else v, number(time, "time"))

    def save(self) -> Array:
        """Return all that the next step depends on, as numbers, and what they are of. They may be kept in a file."""
        return seal(self._identity, self._world.save())

    def restore(self, snapshot: ArrayLike) -> None:
        """Go back to what :meth:`save` returned, bit for bit; in this simulator or in another one of the same model with the same options.

        Raises:
            ArgumentError: it is of another model, of other options, or not as it was saved. Nothing changes then.
        """
        state = unseal(self._identity, snapshot)
        self._world.restore(state, len(state))

    @cached_property
    def _identity(self) -> Array:
        return identity(self.model, self._source, self._options)

    def contact_problem(
        self, tau: ArrayLike | None = None, *, control: ArrayLike | None = None, external_forces: ArrayLike | None = None
    ) -> ContactProblem:
        """Return the problem that the next :meth:`step` with these arguments would solve first. The state stays as it is, bit for bit.

        Raises:
            SingularError: the mass matrix is singular.
        """
        islands = self._world.contact_problem(*self._inputs(tau, control), external_forces)
        return problem_of_step(
            islands, body_names=np.array(self.model.body_names, dtype=np.str_), q=self.q, v=self.v, time=self.time, timestep=self.timestep, tolerance=self.tolerance,
            max_iterations=self.max_iterations, method=self.solver, model=self.model.name,
        )  # fmt: skip

    # ---- motion ---------------------------------------------------------------------------------------------------------------

    def step(
        self, tau: ArrayLike | None = None, *, control: ArrayLike | None = None, external_forces: ArrayLike | None = None
    ) -> StepResult:
        """Go one timestep on.

        Args:
            tau: (nv,) forces on joints [N or N m].
            control: of the model's actuators, in their order; their ranges apply.
            external_forces: (nbody, 6) [force; torque] in world axes at each body's centre of mass.

        Raises:
            UnstableError: velocities grew beyond numbers.
            SingularError: the mass matrix is singular.
            MujocoError: MuJoCo could not find contacts.
            StaleError: somebody wrote to :attr:`mujoco_model`.
            CapacityError: more than 50,000 contacts at once. The state stays as it was.
        """
        q, v, numbers, contacts, _, times = self._run(1, 1, tau, control, external_forces, False)
        x = numbers[0]
        return StepResult(
            self.time, q[0], v[0], _contacts(contacts), _status(x), int(x[9]), int(x[1]), int(x[2]), int(x[7]), float(x[3]), float(x[5]), float(x[12]), float(x[6]), float(x[11]),
            float(x[13]), int(x[14]), dict(zip(_STAGES, times[0].tolist(), strict=True)),
        )  # fmt: skip

    def run(
        self,
        seconds: float,
        *,
        control: ArrayLike | Control | None = None,
        tau: ArrayLike | Control | None = None,
        every: int = 1,
        progress: bool = True,
        record: str | os.PathLike[str] | None = None,
        view: bool = False,
    ) -> Trajectory:
        """Go on for some time.

        Args:
            seconds: how long, in simulated time.
            control: of the actuators: numbers that stay, or a function of (time, q, v), called before every step.
            tau: forces on joints, likewise.
            every: steps from one kept frame to the next.
            progress: show a bar in a terminal.
            record: also write a page that plays in a browser, ``.html`` or ``.viser`` (extra ``viewer``), or a trajectory, ``.npz``. Every few seconds the frames so far are
                saved, so that little is lost if the process ends before its time: in that ``.npz``; for a page in a hidden file beside it, ``.NAME.xxxxxxxx.npz``, which
                :meth:`Trajectory.load` reads and which goes when the page is complete. No other file is written or removed.
            view: also show it in a browser when done (extra ``viewer``).

        Returns:
            A :class:`~delassus.Trajectory`, the present state first.
        """
        steps = round(number(seconds, "seconds", minimum=0.0) / self.timestep)
        every = count(every, "every")
        steered = callable(control) or callable(tau)
        chunk = every if steered else max(every, 200 // every * every)
        frames = _Frames(self)
        keeper = _Keeper(record)
        with keeper, _Bar(progress, f"{self.model.name}: {seconds:g} s") as advance:
            done = 0
            while done < steps:
                n = min(chunk, steps - done)
                if steered:
                    for _ in range(n):
                        u = control(self.time, self.q, self.v) if callable(control) else control
                        t = tau(self.time, self.q, self.v) if callable(tau) else tau
                        part = self._run(1, 1, t, u, None, False)
                        done += 1
                        if done % every == 0:
                            frames.take(part, every)
                else:
                    part = self._run(n, every, tau, control, None, False)
                    done += n
                    frames.take(part, every)
                advance(done / steps)
                keeper.keep(frames)
        trajectory = frames.trajectory()
        geometry = self._shown.model if self._shown else self._source
        with keeper:
            if keeper.target is not None and keeper.target.suffix == ".npz":
                trajectory.save(keeper.target)
            elif keeper.target is not None:
                _viewers().record(trajectory, keeper.target, geometry=geometry)
        keeper.clear()
        if view:
            # kept for as long as this simulator: who lets it go closes the page
            self.view = _viewers().View(trajectory, geometry=geometry)
            self.view.play()
        return trajectory

    def _check_untouched(self) -> None:
        if self._shown is not None:
            self._shown.check()

    def _run(self, steps: int, every: int, tau: Any, control: Any, external: Any, rows: bool) -> tuple[Array, ...]:
        self._check_untouched()
        q, v, numbers, contacts, counts, times, fine = self._world.run(steps, every, *self._inputs(tau, control), external, rows)
        if not fine:
            raise UnstableError(
                f"{self.model.name}: velocities are no longer finite at t = {self.time:g} s. Use a smaller timestep than {self.timestep:g} s, "
                "give light joints some armature or damping, or look at the forces you apply; reset() starts again."
            )
        return q, v, numbers, contacts, counts, times

    def _inputs(self, tau: Any, control: Any) -> tuple[Array | None, Array | None]:
        """Check forces on joints and values of actuators."""
        return (
            None if tau is None else _forces(tau, "tau", self.model.nv, "velocities"),
            None if control is None else _forces(control, "control", len(self.model.actuators), "actuators"),
        )


def _forces(value: Any, name: str, n: int, what: str) -> Array:
    array = conform(value, name, np.shape(value), "float64")
    if array.shape != (n,):
        raise ArgumentError(f"{name}: expected {n} numbers, one for each of the model's {what}, got shape {array.shape}.")
    return finite(array, name)


def _status(numbers: Array) -> StepStatus:
    """Return the status of a step: of its contact solver, or what is wrong although that was solved."""
    return _FLAWS[int(numbers[10])] if numbers[0] == 0 and numbers[10] else _STATUS[int(numbers[0])]


def _contacts(rows: Array) -> Contacts:
    """Contacts of the core, which need no check."""
    made = object.__new__(Contacts)
    parts = {
        "position": rows[:, :3],
        "normal": rows[:, 3:6],
        "force": rows[:, 6:9],
        "friction": rows[:, 9],
        "bodies": rows[:, 10:12].astype(np.int64),
    }
    for name, part in parts.items():
        part.setflags(write=False)
        object.__setattr__(made, name, part)
    return made


class _Frames:
    """Frames of a run, as they come."""

    def __init__(self, sim: Simulator) -> None:
        self.sim, self.model = sim, sim.model
        self.q, self.v, self.times = [sim.q[None]], [sim.v[None]], [np.array([sim.time])]
        self.numbers, self.contacts, self.counts = [np.zeros((1, 15))], [np.zeros((0, 12))], [np.zeros(1)]
        self.steps = 0

    def take(self, part: tuple[Array, ...], every: int) -> None:
        """Keep the last of every so many steps."""
        q, v, numbers, contacts, counts, _ = part
        n = len(q)
        self.q.append(q)
        self.v.append(v)
        self.times.append(self.times[0] + self.sim.timestep * (self.steps + every * np.arange(1, n + 1)))
        self.steps += every * n
        self.numbers.append(numbers if len(numbers) == n else numbers[every - 1 :: every][:n])
        self.contacts.append(contacts)
        self.counts.append(counts)

    def trajectory(self) -> Trajectory:
        q, v, numbers, contacts = (np.concatenate(x) for x in (self.q, self.v, self.numbers, self.contacts))
        rows = _contacts(contacts)
        return Trajectory(
            model=self.model, times=np.concatenate(self.times), q=q, v=v,
            contact_start=np.concatenate([[0], np.cumsum(np.concatenate(self.counts))]).astype(np.int64),
            contact_position=rows.position, contact_normal=rows.normal, contact_force=rows.force, contact_friction=rows.friction, contact_bodies=rows.bodies,
            status=np.array([_status(x) for x in numbers]), iterations=numbers[:, 1].astype(np.int64), residual=numbers[:, 3],
            kinetic_energy=np.array([kinetic_energy(self.model, a, b) for a, b in zip(q, v, strict=True)]),
            potential_energy=np.array([potential_energy(self.model, a) for a in q]), loop_error=numbers[:, 6], penetration=numbers[:, 5],
        )  # fmt: skip


class _Keeper:
    """Saves the frames of a run now and then: under the name of the recording if that holds numbers, else beside it, under a name that nothing had before."""

    seconds = 3.0

    def __init__(self, record: str | os.PathLike[str] | None) -> None:
        self.target = None if record is None else named_path(record, "record")
        if self.target is not None and self.target.suffix not in RECORDINGS:
            raise ArgumentError(f"record: expected a file that ends in {', '.join(RECORDINGS)}, got {str(self.target)!r}.")
        self.path = self.target if self.target is not None and self.target.suffix == ".npz" else None
        self.last = time.monotonic()

    def __enter__(self) -> _Keeper:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None and self.path is not None and self.path != self.target:
            warnings.warn(f"{str(self.target)!r} was not written; frames of the run until then are in {str(self.path)!r}.", stacklevel=3)

    def keep(self, frames: _Frames) -> None:
        if self.target is None or time.monotonic() < self.last + self.seconds:
            return
        # what fails now fails again at the end, and is told then
        with suppress(WriteError, OSError):
            self.path = self.path or private_file(self.target, "npz")
            frames.trajectory().save(self.path)
        # a long motion takes long to save: at most a tenth of the time goes there
        self.last = time.monotonic() + 9 * (time.monotonic() - self.last - self.seconds)

    def clear(self) -> None:
        if self.path is not None and self.path != self.target:
            self.path.unlink(missing_ok=True)


class _Bar:
    """A progress bar, or nothing where it is not wanted."""

    def __init__(self, shown: bool, title: str) -> None:
        self.shown, self.title = shown, title

    def __enter__(self) -> Callable[[float], None]:
        if not self.shown:
            return lambda _: None
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.progress = Progress(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), transient=True)
        self.progress.start()
        task = self.progress.add_task(self.title, total=1.0)
        return lambda share: self.progress.update(task, completed=share)

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.progress.stop()


def _plan(model: Model, mj: Any, options: tuple[float, ...]) -> _core.WorldPlan:
    """Everything the core needs of a model: implicit parts of M̂, loops, friction, limits, motors, and the way to MuJoCo's collisions."""
    dt = options[0]
    stiffness, damping = np.array(model.dof_stiffness, dtype=float), np.array(model.dof_damping, dtype=float)
    armature = model.dof_armature + dt * damping + dt * dt * stiffness
    sprung = np.full(model.nv, -1)
    limits, motors = [], []
    single = {"hinge", "slide"}
    for j, joint in enumerate(model.joints):
        if joint.type not in single:
            continue
        k, i = int(model.joint_vadr[j]), int(model.joint_qadr[j])
        sprung[k] = i
        low, high = model.joint_range[j]
        if np.isfinite(low) or np.isfinite(high):
            limits.append([float(i), float(k), float(low) if np.isfinite(low) else -1e300, float(high) if np.isfinite(high) else 1e300])
    stiffness[sprung < 0] = 0.0
    large = 1e300
    for a in model.actuators:
        j = model.joint_index(a.joint)
        k, i = int(model.joint_vadr[j]), int(model.joint_qadr[j]) if model.joint_type[j] in single else -1
        armature[k] -= a.gear**2 * (dt * min(a.bias[2], 0.0) + dt * dt * min(a.bias[1], 0.0))
        motors.append([float(i), float(k), a.gear, a.gain, *a.bias, *np.clip([*a.control_range, *a.force_range], -large, large).tolist()])
    rubbing = [j for j in range(model.njoint) if model.dof_friction_loss[model.joint_vadr[j]] > 0]
    friction = [JointFriction(model, j) for j in rubbing]
    loops = [from_loop(model, loop) for loop in model.loops if loop.active]
    names = body_names(mj)
    ours = [model.body_index(name) for name in names]
    parts = np.asarray(mj.geom_bodyid).tolist()
    return _core.WorldPlan(
        model._native, armature.tolist(), [c._native() for c in loops], [c._native() for c in friction],
        [c.friction for c in friction for _ in range(c.rows)], stiffness.tolist(), damping.tolist(), np.asarray(model.spring_reference).tolist(), sprung.tolist(),
        limits, motors, list(options), library(), int(mj._address), [ours[b] for b in parts], parts, _shapes(mj, ours), REACH, mj,
    )  # fmt: skip


def _shapes(mj: Any, ours: list[int]) -> list[list[float]]:
    """Of every shape that may touch others, but planes: body, half of its least extent, radius of a ball around it, how far from its centre turning moves points, centre in its body."""
    kind = mujoco.mjtGeom
    shapes = []
    for g in range(mj.ngeom):
        type_ = mj.geom_type[g]
        apart = mj.npair == 0 and mj.geom_contype[g] == 0 and mj.geom_conaffinity[g] == 0
        if apart or type_ == kind.mjGEOM_PLANE:
            continue
        half = mj.geom_aabb[g, 3:]
        radius = float(mj.geom_rbound[g])
        # a height field moves nothing: it is in the way only
        width = np.inf if type_ == kind.mjGEOM_HFIELD else float(half.min())
        shapes.append(
            [float(ours[mj.geom_bodyid[g]]), width, radius, 0.0 if type_ == kind.mjGEOM_SPHERE else radius, *mj.geom_pos[g].tolist()]
        )
    return shapes


@dataclass(frozen=True, eq=False)
class Rollout:
    """Many motions, see :func:`rollout`.

    Attributes:
        q: (worlds, steps, nq) after every step; v: (worlds, steps, nv).
        unsolved: (worlds,) steps that ended otherwise than "solved".
        unstable: (worlds,) the step at which velocities ceased to be finite, −1 where they did not; from there on states stay as they are.
    """

    q: Array
    v: Array
    unsolved: Array
    unstable: Array


def rollout(
    model: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    control: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    steps: int | None = None,
    threads: int = 1,
    **options: Any,
) -> Rollout:
    """Step many worlds that know nothing of each other, without the interpreter's lock. Each is, bit for bit, what a :class:`Simulator` would do.

    Args:
        model: what a :class:`Simulator` takes, or one, whose settings are then used.
        q: (worlds, nq) states to start from; v: (worlds, nv), default at rest.
        control: (worlds, steps, nu) of the actuators; tau: (worlds, steps, nv) forces on joints.
        steps: how many, where neither says so.
        threads: that work at once.
        **options: of the :class:`Simulator`.
    """
    sim = model if isinstance(model, Simulator) else Simulator(model, **options)
    sim._check_untouched()
    starts = np.atleast_2d(np.asarray(q, dtype=float))
    worlds = len(starts)
    for name, value in (("control", control), ("tau", tau)):
        if value is not None and steps is None:
            shape = np.shape(value)
            if len(shape) != 3:
                raise ArgumentError(f"{name}: expected shape (worlds, steps, n), got {shape}.")
            steps = shape[1]
    n = count(steps, "steps")
    speeds = np.zeros((worlds, sim.model.nv)) if v is None else v
    Q, V, unsolved, unstable = _core.rollout(sim._plan, starts, speeds, tau, control, worlds, n, count(threads, "threads"))
    return Rollout(Q, V, unsolved.astype(np.int64), unstable.astype(np.int64))
