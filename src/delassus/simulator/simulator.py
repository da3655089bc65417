"""Rigid-contact simulation of MuJoCo models.

The stages of a step are collide, constrain, operate, solve and integrate. Contacts are rigid, with Coulomb friction.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, get_args

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import conform, count, finite, number, sealed, unknown
from .._html import table
from ..dynamics import forward_dynamics, solve_mass_matrix
from ..errors import ArgumentError, ArgumentTypeError, UnstableError
from ..model import Model
from ..model.floor import with_floor
from ..model.from_mujoco import body_names
from ..model.geometry import set_flags
from ..model.load import model_of, tell_ignored
from ..model.loops import LoopList
from ..model.urdf import UrdfOptions
from ..types import Integrator, SimulatorSolver
from .collision_model import ShownModel, collision_model
from .contact_problem import ContactProblem, problem_of_step
from .linearized import LinearizedStep, StepStart
from .loop_rows import LoopRows
from .recording import Bar, Frames, Keeper
from .restitution import geom_restitution
from .sensing import Applied, Sensing
from .smooth_model import keyframe_state, mirror_source
from .snapshot import identity, seal, unseal
from .step_result import LimitNames, StepResult
from .trajectory import Trajectory
from .world_plan import world_plan

__all__ = ["Simulator"]

Array = NDArray[Any]


def _viewers() -> Any:
    """Find the viewers by name when a motion is to be shown or recorded: nothing else here imports them, so that pure computation does not load them."""
    return import_module("delassus.viewers")


Control = Callable[[float, Array, Array], ArrayLike]

_FIXED = frozenset({"model", "solver", "integrator", "timestep", "tolerance", "max_iterations", "restitution", "threads"})
_WAY_OUT = (
    "Options are arguments of delassus.Simulator; reset(q, v, time) sets the state; masses, friction and gravity come from the model: "
    "change the mujoco.MjModel of model.to_mujoco() and make a simulator from it, or use delassus.Worlds, whose parameters can be written."
)


class Simulator:
    """Simulator with rigid contacts, loops, limits, dry friction, springs, dampers and motors.

    Every step solves for impulses λ in their sets with σ = G λ + J v_f + max(φ − slop, 0) / dt, G = J M̂⁻¹ Jᵀ matrix-free (see :func:`~delassus.solve_contacts`), and then corrects
    positions where bodies penetrate or loops are open, without changing velocities. Springs, dampers and servos act at the end of the step, M̂ = M + dt D + dt² K, so
    stiff ones are stable. Mechanisms with loops are integrated to second order. Collision detection and friction combination are MuJoCo's, with at most four points per pair.

    Results are bitwise reproducible on the same machine; :meth:`save` and :meth:`restore` return to a state bit for bit.

    Args:
        model: a name, a path to MJCF, URDF or MJB or to a zip file of one, MJCF text, a ``mujoco.MjModel`` or ``mujoco.MjSpec``, or a :class:`~delassus.Model`.
            A robot alone has no floor unless ``floor`` asks for one, and starts in its neutral configuration: see :meth:`reset`.
        timestep: time step [s]. Default: the model's own, see :attr:`Model.timestep`: that of the file (MuJoCo's 2 ms if it has none), 1 ms for models built by hand and scenes, also with ``floor``.
        solver: "auto": Newton's method, a smooth path where that fails, and more, see :func:`~delassus.solve_contacts`; "admm"; "newton", on the fixed point of ADMM.
        integrator: both are semi-implicit, q with the new velocity; "midpoint" takes Coriolis and centrifugal forces at half of the step's velocity, so that fast rotation gains no
            energy, "euler" at its start, which is a little faster.
        restitution: e from 0 to 1 of all contacts, by the two-phase law, or a mapping of names of shapes: a contact has the larger of its two. Contacts slower than ``bounce_speed``
            do not bounce. Default: the values of the file in ``<custom><tuple name="restitution"><element objtype="geom" objname="ball" prm="0.8"/></tuple></custom>``, else no contact bounces.
        bounce_speed: approach speed above which contacts bounce [m/s].
        tolerance: contact-solver tolerance, applied to each of its residuals.
        max_iterations: maximum number of contact-solver iterations; for "auto", of factorizations. If Coulomb's law is not met by then, the step ends "approximate".
        time_limit: time limit of the contact solver for each island [s], with the same consequence; results then depend on the speed of the machine. Default: none.
        slop: gap or penetration up to which bodies count as touching [m].
        threads: number of threads that solve islands in parallel. Results are bitwise the same for any number; collision detection stays on the calling thread. If there is one island,
            or all are small, no other thread is woken. For many worlds see :class:`~delassus.Worlds`.
        sleep_after: time at rest after which an island sleeps [s], e.g. 0.5; None: never. Its velocity is then zero and it is not solved again, until something that is awake comes
            within reach, forces on its joints or wrenches on its bodies change, or the state is set. Off by default: motion slower than ``sleep_speed`` is lost.
        sleep_speed: speed below which a body is at rest: that of every point of it, both by its velocity and by its displacement in the step [m/s].
        loops: loops to close in addition to those of the model: a list, or a file with one, see :func:`~delassus.load`.
        floating_base: URDF only: let the root float.
        floor: add a floor if the model has none, see :func:`~delassus.scenes.on_floor`.
        package_dirs: folders of the packages named in a URDF, see :func:`~delassus.load`.

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
        timestep: float | None = None,
        solver: SimulatorSolver = "auto",
        integrator: Integrator = "midpoint",
        restitution: float | Mapping[str, float] | None = None,
        bounce_speed: float = 0.05,
        tolerance: float = 1e-6,
        max_iterations: int = 2000,
        time_limit: float | None = None,
        slop: float = 1e-5,
        threads: int = 1,
        sleep_after: float | None = None,
        sleep_speed: float = 1e-4,
        loops: LoopList | None = None,
        floating_base: bool = False,
        floor: bool = False,
        package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    ) -> None:
        if solver not in get_args(SimulatorSolver):
            raise unknown("solver", solver, get_args(SimulatorSolver))
        if integrator not in get_args(Integrator):
            raise unknown("integrator", integrator, get_args(Integrator))
        self.solver, self.integrator = solver, integrator
        if not isinstance(floor, bool | np.bool_):
            raise ArgumentTypeError(f"floor: expected True or False, got {type(floor).__name__}.")
        self.model = model_of(model, UrdfOptions(floating_base, package_dirs=package_dirs), loops, "model")
        if floor:
            self.model = with_floor(self.model)
        if not isinstance(model, Model):
            tell_ignored(self.model)
        self.timestep = self.model.timestep if timestep is None else number(timestep, "timestep")
        if not self.timestep > 0:
            raise ArgumentError(f"timestep: expected a positive time, got {timestep}.")
        self.tolerance, self.max_iterations = number(tolerance, "tolerance", minimum=0.0), count(max_iterations, "max_iterations")
        self._source = self.model._in_mujoco()
        self.restitution = geom_restitution(self._source, restitution)
        self._shown: ShownModel | None = None
        self._options = _core.StepOptions(
            timestep=self.timestep, restitution=float(self.restitution.max(initial=0.0)), bounce_speed=number(bounce_speed, "bounce_speed", minimum=0.0), tolerance=self.tolerance,
            max_iterations=self.max_iterations, solver=get_args(SimulatorSolver).index(solver), time_limit=0.0 if time_limit is None else number(time_limit, "time_limit", minimum=0.0), slop=number(slop, "slop", minimum=0.0), midpoint=integrator == "midpoint",
            sleep_steps=0 if sleep_after is None else _steps_in(number(sleep_after, "sleep_after", minimum=0.0), self.timestep),
            sleep_speed=number(sleep_speed, "sleep_speed", minimum=0.0),
        )  # fmt: skip
        self.view: Any = None
        self.threads = count(threads, "threads")
        self._settings = {
            "timestep": self.timestep, "solver": solver, "integrator": integrator, "restitution": restitution, "bounce_speed": bounce_speed, "tolerance": tolerance,
            "max_iterations": max_iterations, "time_limit": time_limit, "slop": slop, "threads": threads, "sleep_after": sleep_after, "sleep_speed": sleep_speed,
        }  # fmt: skip
        self._collisions, self._mirror = collision_model(self._source), mirror_source(self.model, self._source, self.timestep)
        self._plans: dict[tuple[bool, ...], tuple[_core.WorldPlan, LoopRows]] = {}
        equalities = {"constraint", "equality"}.isdisjoint(set_flags(self._source))
        self._hold(tuple(loop.active and equalities for loop in self.model.loops))
        self._applied: tuple[Any, Any, Any] = (None, None, None)
        self._changes = [0]  # number of changes of the world, for objects that depend on its state
        self._has_sensors = self._source.nsensor > 0
        self._control_shape, self._tau_shape = (self.model.nu,), (self.model.nv,)
        self.reset()
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_" and name != "view" and "_made" in self.__dict__:
            sealed(self, name, _FIXED, _WAY_OUT)
        object.__setattr__(self, name, value)

    def _hold(self, active: tuple[bool, ...], *, state: Array | None = None, before: _core.World | None = None) -> None:
        """Continue with these active loops, from a state that was saved with them, or from that of a world with others."""
        if active not in self._plans:
            self._plans[active] = (
                world_plan(self.model, self._collisions, self.restitution, self._mirror, self._options, active),
                LoopRows(self.model, active),
            )
        plan, rows = self._plans[active]
        world = _core.World(plan, threads=self.threads)
        if state is not None:
            world.restore(state, len(state))
        elif before is not None:
            world.take_over(before)
        self._world, self._plan, self._loop_rows, self._active = world, plan, rows, active

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what rebuilds a simulator that continues as this one does, bit for bit; open viewers are not included."""
        return _resumed, (self.model, self._settings, self.save())

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        rows: list[tuple[str, Any]] = [
            ("time", f"{self.time:g} s"), ("time step", f"{self.timestep:g} s"), ("solver", self.solver), ("integrator", self.integrator), ("nq, nv, nu", f"{self.model.nq}, {self.model.nv}, {self.model.nu}"),
        ]  # fmt: skip
        return table(f"Simulator of {self.model.name}", rows)

    def __repr__(self) -> str:
        return f"<Simulator of {self.model.name!r}: t = {self.time:g} s, timestep {self.timestep:g} s>"

    @property
    def mujoco_model(self) -> Any:
        """MuJoCo's model of this world, a copy for reading. Colours and other fields that are only drawn may be written; after writing any other, steps and resets raise a ``StaleError``."""
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
        """(nq,) configuration, a read-only copy: :meth:`reset` sets it."""
        return _read_only(self._world.q)

    @property
    def v(self) -> Array:
        """(nv,) velocity, a read-only copy: :meth:`reset` sets it."""
        return _read_only(self._world.v)

    @property
    def loop_active(self) -> dict[str, bool]:
        """Which loops are closed: name → bool, a copy. :meth:`set_loop_active` changes it."""
        return {loop.name: on for loop, on in zip(self.model.loops, self._active, strict=True)}

    def set_loop_active(self, loop: str, active: bool = True) -> None:
        """Switch a loop on or off from the next step on, such as a gripper's grasp or a coupling. State and contacts stay; sleeping bodies wake.

        A loop that is open when it is switched on is closed within a few steps by position correction; where that matters, close it first (:func:`~delassus.close_loops`).

        Args:
            loop: loop name.
            active: True to close it.
        """
        names = [record.name for record in self.model.loops]
        if loop not in names:
            raise unknown("loop", loop, names)
        if not isinstance(active, bool | np.bool_):
            raise ArgumentTypeError(f"active: expected True or False, got {type(active).__name__}.")
        wanted = tuple(bool(active) if name == loop else on for name, on in zip(names, self._active, strict=True))
        self._changes[0] += 1
        if wanted != self._active:
            self._hold(wanted, before=self._world)

    def reset(self, q: ArrayLike | str | None = None, v: ArrayLike | None = None, time: float | None = None) -> None:
        """Set the state and discard contact memory. Active loops stay active.

        Args:
            q: (nq,) configuration, or the name of a keyframe, whose velocity and time are then the defaults of ``v`` and ``time``, and whose activations and poses of mocap bodies are
                taken too; its controls are in ``model.keyframe_controls``. Default: the model's neutral configuration.
            v: (nv,) velocity. Default: at rest.
            time: time [s]. Default: zero.
        """
        self._check_untouched()
        if isinstance(q, str):
            if q not in self.model.keyframes:
                raise unknown("keyframe", q, self.model.keyframes)
            key = list(self.model.keyframes).index(q)
            v = self.model.keyframe_velocities.get(q) if v is None else v
            time = float(self._source.key_time[key]) if time is None and key < self._source.nkey else time
            q = self.model.keyframes[q]
        else:
            key = self._source.nkey
        self._changes[0] += 1
        start = 0.0 if time is None else number(time, "time")
        self._world.set_state(self.model.neutral() if q is None else q, np.zeros(self.model.nv) if v is None else v, start)
        self._applied = (None, None, None)
        if key < self._source.nkey:
            self._take_keyframe(key)

    def _take_keyframe(self, key: int) -> None:
        """Take the activations, MuJoCo's other hidden state and the mocap poses of a keyframe of the file."""
        m = self._source
        self._world.hidden = keyframe_state(m, key)
        for k in range(m.nmocap):
            self.set_mocap(k, m.key_mpos[key][3 * k : 3 * k + 3], m.key_mquat[key][4 * k : 4 * k + 4], at_once=True)

    @property
    def activation(self) -> Array:
        """(na,) activations of actuators, MuJoCo's act, a copy; assign to change them."""
        return self._world.hidden[: self._source.na]

    @activation.setter
    def activation(self, values: ArrayLike) -> None:
        hidden = self._world.hidden
        hidden[: self._source.na] = finite(conform(values, "activation", (self._source.na,), "float64"), "activation")
        self._world.hidden = hidden

    def set_mocap(
        self, body: str | int, position: ArrayLike | None = None, quaternion: ArrayLike | None = None, *, at_once: bool = False
    ) -> None:
        """Set the target pose of a mocap body for the next step. It moves there at no more than 10 m/s and 50 rad/s, pushing contacts and loops; longer motions take several steps.

        Args:
            body: name of the mocap body, or its number among mocap bodies.
            position: (3,) position of its frame in the world [m]; default: the current target.
            quaternion: (4,) (w, x, y, z), of any nonzero length, likewise.
            at_once: jump there immediately, without a motion.
        """
        names = self.mocap_names
        if body not in names and body not in range(len(names)):
            raise unknown("mocap body", str(body), names)
        k, n, goal = names.index(body) if isinstance(body, str) else int(body), len(names), self._world.mocap_goal
        if position is not None:
            goal[3 * k : 3 * k + 3] = finite(conform(position, "position", (3,), "float64"), "position")
        if quaternion is not None:
            turn = finite(conform(quaternion, "quaternion", (4,), "float64"), "quaternion")
            if not np.any(turn):
                raise ArgumentError("quaternion: expected a length other than zero, got zeros.")
            goal[3 * n + 4 * k : 3 * n + 4 * k + 4] = turn / np.linalg.norm(turn)
        self._world.mocap_goal = goal
        if at_once:
            self._world.place_mocap()

    @cached_property
    def mocap_names(self) -> tuple[str, ...]:
        """Names of the bodies that :meth:`set_mocap` moves."""
        m, names = self._source, body_names(self._source)
        return tuple(names[int(np.flatnonzero(m.body_mocapid == k)[0])] for k in range(m.nmocap))

    @property
    def mocap_poses(self) -> tuple[Array, Array]:
        """Current positions (n, 3) and quaternions (n, 4) of mocap bodies, copies."""
        poses, n = self._world.mocap, self._source.nmocap
        return poses[: 3 * n].reshape(n, 3), poses[3 * n :].reshape(n, 4)

    @cached_property
    def _limit_names(self) -> LimitNames:
        return LimitNames(self.model, self._source)

    @cached_property
    def _sensing(self) -> Sensing:
        return Sensing(self._source, self.model)

    def to_mujoco(self, data: Any = None) -> Any:
        """Return MuJoCo's data at the current state: for its renderer, its viewers, and code that reads an ``MjData``.

        Positions, velocities, tendons, actuator and passive forces are computed by MuJoCo at the state. Contacts are those of the last step, with their forces in ``efc_force`` (read them with
        ``mujoco.mj_contactForce``), ``qacc`` is the acceleration with all constraint forces of that step, and sensors read these. Its model is :attr:`mujoco_model`.

        Args:
            data: an ``MjData`` of :attr:`mujoco_model` to fill; default: a new one.
        """
        if data is None:
            data = mujoco.MjData(self._source)
        elif not isinstance(data, mujoco.MjData) or data.qpos.shape != (self._source.nq,) or data.xpos.shape != (self._source.nbody, 3):
            raise ArgumentTypeError(f"data: expected a mujoco.MjData of this simulator's mujoco_model, got {type(data).__name__}.")
        self._sensing.fill(data, self._world.record(), _kept(*self._applied))
        return data

    def save(self) -> Array:
        """Return a snapshot of everything the next step depends on, as an array. It may be stored in a file."""
        return seal(self._identity, np.concatenate([np.array(self._active, dtype=float), self._world.save()]))

    def restore(self, snapshot: ArrayLike) -> None:
        """Return to a snapshot of :meth:`save`, bit for bit, in this simulator or another one with the same model and options.

        Raises:
            ArgumentError: the snapshot is for another model or other options, or was modified. The simulator is then unchanged.
        """
        switches, state = np.split(unseal(self._identity, snapshot), [len(self.model.loops)])
        active = tuple((switches == 1).tolist())
        if len(active) != len(self.model.loops) or not np.isin(switches, (0, 1)).all():
            raise ArgumentError("snapshot: its active loops do not match this model. Give what save() returned, unchanged.")
        self._changes[0] += 1
        if active == self._active:
            self._world.restore(state, len(state))
        else:
            self._hold(active, state=state)

    @cached_property
    def _identity(self) -> Array:
        return identity(self.model, self._source, self._options, self.restitution)

    def contact_problem(
        self, tau: ArrayLike | None = None, *, control: ArrayLike | None = None, external_forces: ArrayLike | None = None
    ) -> ContactProblem:
        """Return the problem that the next :meth:`step` with these arguments would solve first. The state does not change.

        Raises:
            SingularError: the mass matrix is singular.
        """
        islands = self._world.contact_problem(*self._inputs(tau, control), external_forces)
        return problem_of_step(
            islands, body_names=np.array(self.model.body_names, dtype=np.str_), q=self.q, v=self.v, time=self.time, timestep=self.timestep, tolerance=self.tolerance,
            max_iterations=self.max_iterations, method=self.solver, model=self.model.name,
        )  # fmt: skip

    def smooth_forces(self, control: ArrayLike | None = None) -> Array:
        """Return the forces of springs, dampers, tendons and their inertia, fluids, gravity compensation and actuators at the current state, (nv,) [N or N m].

        ``dl.forward_dynamics(model, sim.q, sim.v, sim.smooth_forces(control))`` is the acceleration without contacts, limits, dry friction and loops.

        Args:
            control: (nu,) actuator commands; their ranges apply. Default: zero.
        """
        forces: Array = self._world.smooth_forces(self._inputs(None, control)[1])
        armatures, rates = self._world.tendon_inertia()
        if not len(armatures):
            return forces
        # J a + λ / armature = 0 with a = M⁻¹ (… + Jᵀ λ): the forces Jᵀ λ of tendon inertia
        J, q = rates.reshape(len(armatures), -1), self.q
        G = J @ solve_mass_matrix(self.model, q, J.T) + np.diag(1 / armatures)
        forces -= J.T @ np.linalg.solve(G, J @ forward_dynamics(self.model, q, self.v, forces))
        return forces

    # ---- motion ---------------------------------------------------------------------------------------------------------------

    def step(
        self, tau: ArrayLike | None = None, *, control: ArrayLike | None = None, external_forces: ArrayLike | None = None
    ) -> StepResult:
        """Advance by one time step.

        Args:
            tau: (nv,) joint forces, added to those of actuators [N or N m].
            control: (nu,) actuator commands, in the model's order; their ranges apply.
            external_forces: (nbody, 6) [force; torque] in world axes at each body's centre of mass.

        Raises:
            UnstableError: velocities are no longer finite.
            SingularError: the mass matrix is singular.
            MujocoError: MuJoCo's collision detection failed.
            StaleError: :attr:`mujoco_model` was written to.
            CapacityError: more than 200,000 contacts in the step. The state does not change.
        """
        if self._shown is not None:
            self._shown.check()
        if tau is not None or control is not None:
            tau, control = self._inputs(tau, control)
        self._changes[0] += 1
        record = self._world.step(tau, control, external_forces)
        if record is None:
            raise self._unstable()
        self._applied = (tau, control, external_forces)
        return self._result(record, self._applied)

    def _result(self, record: _core.StepRecord, applied: tuple[Any, Any, Any]) -> StepResult:
        if not self._has_sensors:
            return StepResult(record, self._loop_rows, self._limit_names)
        return StepResult(record, self._loop_rows, self._limit_names, self._sensing, _kept(*applied))

    def linearize(
        self,
        tau: ArrayLike | None = None,
        *,
        control: ArrayLike | None = None,
        external_forces: ArrayLike | None = None,
        smoothing: float | None = None,
        advance: bool = False,
    ) -> LinearizedStep:
        """Differentiate the next :meth:`step` with these arguments: q⁺ and v⁺ with respect to q, v, controls, forces and friction.

        Exact, by implicit differentiation of the equations of the step, as long as no contact, limit or dry friction changes its mode; :attr:`LinearizedStep.kinks` marks where that is about to happen,
        :attr:`LinearizedStep.left_out` lists what is not differentiated. For accurate derivatives use a small ``tolerance``, such as 1e-10.

        Args:
            tau, control, external_forces: see :meth:`step`.
            smoothing: κ > 0 [J]: contact impulses, limits and dry friction are those on the central path near the solution (see :class:`~delassus.ContactDerivatives`), a smooth law, so that
                derivatives are not zero where a contact is open or sticks. The step itself and position corrections are not smoothed. A good value is 1e-4 of the work of a typical
                contact impulse, its size times the speed it removes.
            advance: also take the step. Otherwise the state does not change.

        Returns:
            ``A``, ``B``, ``jvp`` and ``vjp`` of the step.

        Examples:
            >>> import delassus as dl
            >>> sim = dl.Simulator(dl.scenes.on_floor("go2"), tolerance=1e-10)
            >>> S = sim.linearize(control=[0.0] * sim.model.nu)
            >>> S.A.shape, S.B.shape
            ((36, 36), (36, 12))
        """
        self._check_untouched()
        tau, control = self._inputs(tau, control)
        self._changes[0] += 1
        start = StepStart(self.model, self.timestep, self.q, self.v, np.zeros(self.model.nu) if control is None else np.array(control))
        kappa = 0.0 if smoothing is None else number(smoothing, "smoothing", minimum=0.0)
        record = self._world.linearize(tau, control, external_forces, kappa, bool(advance))
        if record is None:
            raise self._unstable()
        applied = (tau, control, external_forces)
        if advance:
            self._applied = applied
        return LinearizedStep(self._world, self._changes, self._result(record, applied), start, record.q, record.v)

    def run(
        self,
        seconds: float,
        *,
        control: ArrayLike | Control | None = None,
        tau: ArrayLike | Control | None = None,
        external_forces: ArrayLike | Control | None = None,
        every: int = 1,
        progress: bool = True,
        record: str | os.PathLike[str] | None = None,
        view: bool = False,
    ) -> Trajectory:
        """Simulate for a given time.

        Args:
            seconds: simulated time [s].
            control: actuator commands: a constant array, or a function of (time, q, v) that is called before every step.
            tau: joint forces, likewise.
            external_forces: (nbody, 6) wrenches on bodies as in :meth:`step`, likewise.
            every: number of steps between recorded frames.
            progress: show a progress bar in a terminal.
            record: also write a page that plays in a browser, ``.html`` or ``.viser`` (extra ``viewer``), a video, ``.gif``, ``.webp`` or ``.mp4`` (extra ``video``), or a trajectory, ``.npz``. Every few seconds the frames so far are
                saved, so that little is lost if the process is killed: in that ``.npz``; for a page in a hidden file beside it, ``.NAME.xxxxxxxx.npz``, which
                :meth:`Trajectory.load` reads and which is removed when the page is complete. No other file is written or removed.
            view: also show it in a browser when done (extra ``viewer``).

        Returns:
            A :class:`~delassus.Trajectory`, starting with the current state.
        """
        steps = round(number(seconds, "seconds", minimum=0.0) / self.timestep)
        every = count(every, "every")
        inputs = (tau, control, external_forces)
        steered = any(callable(given) for given in inputs)
        for given, name in zip(inputs, ("tau", "control", "external_forces"), strict=True):
            _check_call(given, name)
        chunk = every if steered else max(every, 200 // every * every)
        frames = Frames(self)
        keeper = Keeper(record)
        if keeper.target is not None and keeper.target.suffix != ".npz":
            _viewers().recording.check_recording(keeper.target.suffix)
        if view:
            _viewers().recording.check_recording(".html")
        with keeper, Bar(progress, f"{self.model.name}: {seconds:g} s") as advance:
            done = 0
            while done < steps:
                n = min(chunk, steps - done)
                if steered:
                    for _ in range(n):
                        part = self._run(1, 1, *(given(self.time, self.q, self.v) if callable(given) else given for given in inputs))
                        done += 1
                        if done % every == 0:
                            frames.take(part, every)
                else:
                    part = self._run(n, every, *inputs)
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
            # kept alive with this simulator: deleting it would close the page
            self.view = _viewers().View(trajectory, geometry=geometry)
            self.view.play()
        return trajectory

    def _check_untouched(self) -> None:
        if self._shown is not None:
            self._shown.check()

    def _run(self, steps: int, every: int, tau: Any, control: Any, external_forces: Any) -> _core.RunRecord:
        self._check_untouched()
        inputs = (*self._inputs(tau, control), external_forces)
        self._changes[0] += 1
        record = self._world.run(steps, every, *inputs)
        self._applied = inputs
        if not record.finite:
            raise self._unstable()
        return record

    def _unstable(self) -> UnstableError:
        return UnstableError(
            f"{self.model.name}: velocities are no longer finite at t = {self.time + self.timestep:g} s. Use a smaller timestep than {self.timestep:g} s, "
            "give light joints some armature or damping, or look at the forces you apply. The state is that of the step before; reset() starts again."
        )

    def _inputs(self, tau: Any, control: Any) -> tuple[Any, Any]:
        """Check joint forces and actuator commands."""
        return _forces(tau, "tau", self._tau_shape, "velocities"), _forces(control, "control", self._control_shape, "controls")


def _check_call(given: Any, name: str) -> None:
    """Raise an error if a function cannot be called with (time, q, v)."""
    if not callable(given):
        return
    try:
        inspect.signature(given).bind(0.0, None, None)
    except TypeError as error:
        raise ArgumentTypeError(f"{name}: expected a function of (time, q, v), got one with other arguments: {error}.") from None
    except ValueError:  # built in, without a signature
        return


def _kept(tau: Any, control: Any, external: Any) -> Applied:
    """Return copies of the applied inputs."""
    return Applied(*(None if x is None else np.array(x, dtype=float) for x in (tau, control, external)))


def _resumed(model: Model, settings: dict[str, Any], snapshot: Array) -> Simulator:
    """Rebuild a simulator at the state in which another one was saved."""
    sim = Simulator(model, **settings)
    sim.restore(snapshot)
    return sim


def _read_only(array: Array) -> Array:
    """Return the array as read-only: anything written to a copy would be lost silently."""
    array.flags.writeable = False
    return array


def _steps_in(seconds: float, timestep: float) -> int:
    """Return the number of steps in a time span, at least one."""
    return int(np.clip(np.ceil(seconds / timestep - 1e-6), 1, 10**9))


def _forces(value: Any, name: str, shape: tuple[int], what: str) -> Any:
    """Return an argument of a step in the required shape; arrays that have it go to the core as they are, and the core checks their numbers."""
    if value is None or (type(value) is np.ndarray and value.shape == shape and value.dtype == np.float64):
        return value
    array = conform(value, name, np.shape(value), "float64")
    if array.shape != shape:
        raise ArgumentError(f"{name}: expected {shape[0]} numbers, one for each of the model's {what}, got shape {array.shape}.")
    return finite(array, name)
