"""Many worlds: their states in one block of memory, stepped by native threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import as_array, count, finite, sealed, unknown
from .._html import table
from ..errors import ArgumentError, ArgumentTypeError
from ..model import Model
from ..model.from_mujoco import geom_names
from ..simulator.sensing import sensing_source
from ..simulator.simulator import Simulator
from ..simulator.smooth_model import keyframe_state
from ..simulator.snapshot import seal, unseal
from ..types import WorldStatus
from .linearized import WorldsAdjoint, WorldsLinearization, of_steps
from .parameters import FIELDS, Parameters, parameter_source
from .selection import Where, chosen

__all__ = ["Worlds"]

Array = NDArray[Any]

_FIXED = frozenset({"threads", "parameters", "status", "residual", "penetration", "contact_forces", "contact_counts", "unsolved"})
_WAY_OUT = "Options are arguments of delassus.Worlds; parameters that differ between worlds are written to worlds.parameters, states and inputs to worlds.q, v, control and tau."


class Worlds:
    """Many independent worlds of one model, stepped in native threads without the interpreter lock.

    States, inputs and results of all worlds are live arrays ``(count, …)`` in C order: views of the core's memory that stay valid for the lifetime of the worlds. They are shared without a copy by ``torch.from_dlpack(worlds.q)`` and ``jax.dlpack.from_dlpack``. Do not access them while another thread steps.

    ==================================================  ==============================================================================================================
    written by you, read at the next step                ``q, v, time, control, tau, external_forces, activation, mocap_position, mocap_quaternion``
    written by every step, read by you                   ``q, v, time, activation, status, residual, penetration, contact_forces, contact_counts, unsolved, sensors``
    ==================================================  ==============================================================================================================

    Inputs stay until you change them. Writing ``q`` or ``v`` between steps keeps the warm start of the contact solver; :meth:`reset` discards it.

    Every world behaves, bit for bit, like a :class:`Simulator` with its state and inputs, for any number of threads and any order. A world whose velocities are no longer finite, or
    whose mass matrix becomes singular, keeps its state from before that step, reports it in its status and stops in that call; the others continue.

    Args:
        model: anything that :class:`Simulator` takes, or a simulator, whose settings and active loops are used.
        count: number of worlds.
        threads: number of threads.
        timestep: time step [s]. Default: the model's own.
        **options: passed to :class:`Simulator`.

    Examples:
        >>> import delassus as dl
        >>> worlds = dl.Worlds(dl.scenes.box_stack(3), 64)
        >>> worlds.v[7, 0] = 0.5
        >>> worlds.step(10)
        >>> worlds.q.shape, worlds.statuses[7]
        ((64, 21), 'solved')
    """

    def __init__(self, model: Any, count: int, *, threads: int = 1, timestep: float | None = None, **options: Any) -> None:
        if timestep is not None:
            options["timestep"] = timestep
        if isinstance(model, Simulator) and options:
            raise ArgumentError(f"{', '.join(options)}: the Simulator that was given has its own. Give its model instead.")
        self._sim = model if isinstance(model, Simulator) else Simulator(model, **options)
        self._sim._check_untouched()
        self.threads = _count(threads, "threads")
        self._core = core = _core.Worlds(
            self._sim._plan,
            parameter_source(self._sim),
            sensor_values=self._sim._source.nsensordata,
            count=_count(count, "count"),
            threads=self.threads,
        )
        self.parameters = Parameters(self._sim, core)
        """Parameters that may differ between worlds, by name, see :class:`~delassus.worlds.parameters.Parameters`."""
        self._q, self._v, self._time, self._hidden = core.q, core.v, core.time, core.hidden
        self._control, self._tau, self._external = core.control, core.tau, core.external_forces
        self._mocap, self._mocap_goal = core.mocap, core.mocap_goal
        self.status: Array = core.status
        """(count,) int32: status of the last step of each world, an index into :attr:`STATUSES`; zero is "solved"."""
        self.residual: Array = core.residual
        """(count,) natural residual of the last step [m/s]."""
        self.penetration: Array = core.penetration
        """(count,) maximum penetration at contact detection in the last step [m]."""
        self.contact_forces: Array = core.contact_forces
        """(count, nbody, 3) total contact force on each body over the last step, in world axes [N]."""
        self.contact_counts: Array = core.contacts
        """(count,) int32: number of contacts in the last step."""
        self.unsolved: Array = core.unsolved
        """(count,) int32: number of steps since the last reset that did not end "solved"."""
        self._all = list(range(len(self)))
        self._sensors = core.sensors
        self._sensed = np.zeros(len(self), dtype=bool)
        self._sensing: Any = None
        self.reset()
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_" and "_made" in self.__dict__:
            sealed(self, name, _FIXED, _WAY_OUT)
        object.__setattr__(self, name, value)

    STATUSES: tuple[WorldStatus, ...] = get_args(WorldStatus)

    def __len__(self) -> int:
        return len(self._time)

    def __repr__(self) -> str:
        return f"<Worlds: {len(self)} of {self.model.name!r}, timestep {self.timestep:g} s, threads {self.threads}>"

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        rows = [("worlds", len(self)), ("time step", f"{self.timestep:g} s"), ("threads", self.threads), ("nq, nv, nu", f"{self.model.nq}, {self.model.nv}, {self.model.nu}"), ("q", self.q)]  # fmt: skip
        return table(f"Worlds of {self.model.name}", rows)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what rebuilds worlds that continue as these do, bit for bit."""
        return _resumed, (self._sim, len(self), self.threads, self.save())

    @property
    def model(self) -> Model:
        """The model of all worlds."""
        return self._sim.model

    @property
    def timestep(self) -> float:
        """[s]."""
        return self._sim.timestep

    @property
    def statuses(self) -> list[WorldStatus]:
        """Names of :attr:`status`: those of a step, see :class:`StepResult`, and "unstable", "singular", "failed", "not_stepped"."""
        return [self.STATUSES[k] for k in self.status.tolist()]

    # ---- live arrays ----------------------------------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """(count, nq) configurations. Quaternions must have length 1 when a step begins."""
        return self._q

    @q.setter
    def q(self, values: ArrayLike) -> None:
        _write(self._q, values, "q")

    @property
    def v(self) -> Array:
        """(count, nv) velocities."""
        return self._v

    @v.setter
    def v(self, values: ArrayLike) -> None:
        _write(self._v, values, "v")

    @property
    def time(self) -> Array:
        """(count,) [s]."""
        return self._time

    @time.setter
    def time(self, values: ArrayLike) -> None:
        _write(self._time, values, "time")

    @property
    def control(self) -> Array:
        """(count, nu) actuator commands, in the model's order; their ranges apply."""
        return self._control

    @control.setter
    def control(self, values: ArrayLike) -> None:
        _write(self._control, values, "control")

    @property
    def tau(self) -> Array:
        """(count, nv) joint forces, added to those of actuators [N or N m]."""
        return self._tau

    @tau.setter
    def tau(self, values: ArrayLike) -> None:
        _write(self._tau, values, "tau")

    @property
    def external_forces(self) -> Array:
        """(count, nbody, 6) [force; torque] in world axes at each body's centre of mass [N, N m]."""
        return self._external

    @external_forces.setter
    def external_forces(self, values: ArrayLike) -> None:
        _write(self._external, values, "external_forces")

    @property
    def activation(self) -> Array:
        """(count, na) activations of actuators, MuJoCo's act."""
        return self._hidden[:, : self._sim._source.na]

    @activation.setter
    def activation(self, values: ArrayLike) -> None:
        _write(self.activation, values, "activation")

    @property
    def mocap_position(self) -> Array:
        """(count, nmocap, 3) target positions of mocap bodies for the next step [m], see :meth:`Simulator.set_mocap`."""
        n = self._sim._source.nmocap
        return self._mocap_goal[:, : 3 * n].reshape(len(self), n, 3)

    @mocap_position.setter
    def mocap_position(self, values: ArrayLike) -> None:
        _write(self.mocap_position, values, "mocap_position")

    @property
    def mocap_quaternion(self) -> Array:
        """(count, nmocap, 4) (w, x, y, z) likewise; nonzero, normalized when a step begins."""
        n = self._sim._source.nmocap
        return self._mocap_goal[:, 3 * n :].reshape(len(self), n, 4)

    @mocap_quaternion.setter
    def mocap_quaternion(self, values: ArrayLike) -> None:
        _write(self.mocap_quaternion, values, "mocap_quaternion")

    def place_mocap(self, where: Where = None) -> None:
        """Move mocap bodies to their targets immediately, without a motion."""
        self._make_unit()
        which = chosen(where, len(self))
        self._mocap[which] = self._mocap_goal[which]

    @property
    def sensors(self) -> Array:
        """(count, nsensordata) values of the model's sensors after the last step, as in :attr:`StepResult.sensors`.

        They are computed when read, for worlds that were stepped or reset since, by MuJoCo's functions with the current inputs: read them before you write the inputs for the next
        step. The first read creates MuJoCo's data for every thread. :attr:`sensor_slices` gives the columns of each sensor.

        Raises:
            NotFiniteError: inputs or states of some worlds are not finite; the message names them.
            MujocoError: MuJoCo failed for a world.
        """
        stale = np.flatnonzero(~self._sensed).tolist()
        if stale and self._sensors.size:
            if self._sensing is None:
                self._sensing = sensing_source(self._sim._source, self.model, FIELDS)
                self._core.start_sensing(self._sensing)
            self._core.check()
            self.parameters.write_sensor_models()
            self._core.sense(stale)
            self._sensed[:] = True
        return self._sensors

    @property
    def sensor_slices(self) -> dict[str, slice]:
        """Columns of each sensor in :attr:`sensors`, by name."""
        return dict(self._sim._sensing.places)

    # ---- motion ---------------------------------------------------------------------------------------------------------------

    def step(self, n: int = 1, where: Where = None) -> None:
        """Advance by n time steps with the current inputs.

        Args:
            n: number of steps. After Ctrl-C, or an error below, some worlds may be ahead of others; each is valid.
            where: worlds: a mask (count,), indices or a slice; default: all.

        Raises:
            NotFiniteError: an input, a state or a parameter of some worlds is not finite; the message names them, and no world was stepped.
            ArgumentError: a parameter is invalid, and no world was stepped: a mass that is not positive, a negative friction …
            QuaternionError: a quaternion does not have unit length, and no world was stepped.
            MujocoError: MuJoCo failed for a world, or it has more than 200,000 contacts. Its state does not change and its status is "failed"; all others are stepped.
        """
        steps = _count(n, "n")
        which = self._ready(where)
        self._sensed[slice(None) if where is None else which] = False
        self._core.step(which, steps)

    def _ready(self, where: Where) -> list[int]:
        """Return the indices of the chosen worlds, after checking everything that their steps read."""
        which = self._all if where is None else chosen(where, len(self)).tolist()
        self._make_unit()
        self._sim._check_untouched()
        self.parameters.accept()
        return which

    def linearize(
        self,
        where: Where = None,
        *,
        control: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        advance: bool = False,
    ) -> WorldsLinearization:
        """Differentiate the next step of worlds: q⁺ and v⁺ with respect to q, v and controls, in native threads. Each result is, bit for bit, that of :meth:`Simulator.linearize` from the same state.

        Exact as long as no contact, limit or dry friction changes its mode, see there. For accurate derivatives use a small ``tolerance``, such as 1e-10.

        Args:
            where: worlds: a mask (count,), indices or a slice; default: all. The result has one row per world, in their order.
            control: (nu,) for all of them, or (k, nu) for the k chosen ones, for this step only. Default: :attr:`control`.
            tau: (nv,) or (k, nv) joint forces, likewise. Default: :attr:`tau`.
            advance: also take the step, as :meth:`step` does. Otherwise the worlds do not change.

        Raises:
            NotFiniteError, ArgumentError, QuaternionError, MujocoError: see :meth:`step`.

        Examples:
            >>> import delassus as dl
            >>> worlds = dl.Worlds(dl.scenes.on_floor("go2"), 4, tolerance=1e-10)
            >>> steps = worlds.linearize()
            >>> steps.A.shape, steps.B.shape
            ((4, 36, 36), (4, 36, 12))
        """
        which, inputs = self._derived(where, control, tau, advance)
        found = self._core.linearize(which, **inputs)
        return WorldsLinearization(q=found.q, v=found.v, A=found.A, B=found.B, **of_steps(found))

    def step_vjp(
        self,
        q_bar: ArrayLike | None = None,
        v_bar: ArrayLike | None = None,
        where: Where = None,
        *,
        control: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        advance: bool = False,
    ) -> WorldsAdjoint:
        """Differentiate q_bar · q⁺ + v_bar · v⁺ of every world with respect to its q, v, controls and joint forces, matrix-free.

        Args:
            q_bar, v_bar: weights, (nv,) for all worlds or (k, nv); those of q⁺ in its tangent space. None: zero.
            where, control, tau, advance: see :meth:`linearize`.
        """
        which, inputs = self._derived(where, control, tau, advance)
        n = self.model.nv
        weights = (None if x is None else _rows(x, name, len(which), n) for x, name in ((q_bar, "q_bar"), (v_bar, "v_bar")))
        found = self._core.step_adjoints(which, *weights, **inputs)
        return WorldsAdjoint(
            q=found.by_q, v=found.by_v, tau=found.by_tau, control=found.by_control, next_q=found.q, next_v=found.v, **of_steps(found)
        )

    def _derived(self, where: Where, control: ArrayLike | None, tau: ArrayLike | None, advance: bool) -> tuple[list[int], dict[str, Any]]:
        """Return the indices of the chosen worlds, and the inputs of their steps with one row per world."""
        if not isinstance(advance, bool | np.bool_):
            raise ArgumentTypeError(f"advance: expected True or False, got {type(advance).__name__}.")
        which = self._ready(where)
        inputs = {
            "control": None if control is None else _rows(control, "control", len(which), self.model.nu),
            "tau": None if tau is None else _rows(tau, "tau", len(which), self.model.nv),
        }
        if advance:
            self._sensed[which] = False
        return which, {**inputs, "advance": bool(advance)}

    def reset(
        self, where: Where = None, q: ArrayLike | str | None = None, v: ArrayLike | None = None, time: ArrayLike | None = None
    ) -> None:
        """Set the states of some worlds and discard their contact memory. Inputs do not change.

        Args:
            where: worlds: a mask (count,), indices or a slice; default: all.
            q: (nq,) for all of them, or (k, nq) for the k chosen ones in their order, or the name of a keyframe, see :meth:`Simulator.reset`. Default: the model's neutral configuration.
            v: (nv,) or (k, nv). Default: at rest, or the keyframe's.
            time: one for all of them, or (k,) [s]. Default: zero, or the keyframe's.
        """
        if isinstance(where, str):
            raise ArgumentTypeError(f"where: expected worlds, got {where!r}. The name of a keyframe is given as q={where!r}.")
        which = chosen(where, len(self))
        model, source = self.model, self._sim._source
        key = source.nkey
        if isinstance(q, str):
            if q not in model.keyframes:
                raise unknown("keyframe", q, model.keyframes)
            key = list(model.keyframes).index(q)
            v = model.keyframe_velocities.get(q) if v is None else v
            time = float(source.key_time[key]) if time is None and key < source.nkey else time
            q = model.keyframes[q]
        starts = _rows(model.neutral() if q is None else q, "q", len(which), model.nq)
        speeds = _rows(np.zeros(model.nv) if v is None else v, "v", len(which), model.nv)
        times = _rows(np.atleast_1d(as_array(0.0 if time is None else time, "time"))[..., None], "time", len(which), 1)
        self._core.reset(which.tolist(), starts, speeds, times)
        if key < source.nkey:
            self._hidden[which] = keyframe_state(source, key)
            self._mocap_goal[which] = np.concatenate([source.key_mpos[key], source.key_mquat[key]])
            self.place_mocap(which)
        self._sensed[which] = False

    def randomize(
        self,
        seed: int,
        *,
        friction: tuple[float, float] | None = None,
        mass_scale: tuple[float, float] | None = None,
        com_offset: tuple[float, float] | None = None,
        damping_scale: tuple[float, float] | None = None,
        stiffness_scale: tuple[float, float] | None = None,
        armature_scale: tuple[float, float] | None = None,
        friction_loss_scale: tuple[float, float] | None = None,
        gain_scale: tuple[float, float] | None = None,
        gravity_scale: tuple[float, float] | None = None,
        restitution: tuple[float, float] | None = None,
        size_scale: tuple[float, float] | None = None,
    ) -> None:
        """Draw :attr:`parameters` of all worlds, uniformly in the given ranges. The values of world k depend only on the seed and k.

        Args:
            seed: an integer.
            friction: sliding friction, one value for all shapes of a world.
            mass_scale: factors on the model's masses and inertias, one per body.
            com_offset: added to centres of mass, three per body [m].
            damping_scale, stiffness_scale, armature_scale, friction_loss_scale: factors on the model's, one per joint.
            gain_scale: factors on gain and bias, one per actuator.
            gravity_scale: one factor per world.
            restitution: one value for all shapes of a world.
            size_scale: factors on sizes, one per sphere, capsule, ellipsoid, cylinder and box; masses stay.
        """
        ranges = {
            "friction": friction, "mass_scale": mass_scale, "com_offset": com_offset, "damping_scale": damping_scale, "stiffness_scale": stiffness_scale,
            "armature_scale": armature_scale, "friction_loss_scale": friction_loss_scale, "gain_scale": gain_scale, "gravity_scale": gravity_scale, "restitution": restitution, "size_scale": size_scale,
        }  # fmt: skip
        self.parameters.randomize(seed, ranges)

    def chunks(self, size: int) -> Iterator[slice]:
        """Iterate over parts of at most ``size`` worlds, as slices: ``for part in worlds.chunks(64): worlds.step(10, part)``."""
        size = _count(size, "size")
        for first in range(0, len(self), size):
            yield slice(first, min(first + size, len(self)))

    # ---- moments --------------------------------------------------------------------------------------------------------------

    def save(self) -> Array:
        """Return a snapshot of everything that later steps depend on, and the last results, as an array. It may be stored in a file."""
        states = [self._core.save(k) for k in self._all]
        self.parameters.accept()
        blocks = [np.ravel(block).astype(float) for block in (*self._blocks(), *self.parameters.opened.values())]
        head = [float(len(self)), self.parameters.mask, *(float(len(state)) for state in states)]
        return seal(self._sim._identity, np.concatenate([self._switches(), head, *states, *blocks]))

    def restore(self, snapshot: ArrayLike) -> None:
        """Return to a snapshot of :meth:`save`, bit for bit, in these worlds or in the same number of others with the same model and options.

        Raises:
            ArgumentError: the snapshot is for another model, other options or another number of worlds, or was modified. The worlds are then unchanged.
        """
        numbers, n = unseal(self._sim._identity, snapshot), len(self)
        switches = self._switches()
        at = len(switches)
        if not np.array_equal(numbers[:at], switches):
            raise ArgumentError(
                "snapshot: other loops were switched on when it was saved. Switch the same loops on and off before you make Worlds."
            )
        if at + 1 >= len(numbers) or numbers[at] != n:
            raise ArgumentError(f"snapshot: expected one of {n} worlds, got one of {numbers[at] if at + 1 < len(numbers) else 0:g}.")
        written, at = self.parameters.named(numbers[at + 1]), at + 2
        ends = at + n + np.cumsum(numbers[at : at + n]).astype(int)
        sizes = [block.size for block in self._blocks()] + [n * self.parameters.size(name) for name in written]
        if len(ends) != n or len(numbers) != ends[-1] + sum(sizes):
            raise ArgumentError("snapshot: its sizes do not match these worlds. Give what save() returned, unchanged.")
        parts = np.split(numbers[at + n :], ends - (at + n))
        before = [self._core.save(k) for k in self._all]
        try:
            for k in self._all:
                self._core.restore(k, parts[k], len(parts[k]))
        except BaseException:
            for k in self._all:
                self._core.restore(k, before[k], len(before[k]))
            raise
        self.parameters.clear()
        blocks = (*self._blocks(), *(self.parameters[name] for name in written))
        for block, values in zip(blocks, np.split(parts[n], np.cumsum(sizes)[:-1]), strict=True):
            block[...] = values.reshape(block.shape)
        self.parameters.accept()
        self._sensed[:] = False

    def simulator(self, world: int) -> Simulator:
        """Return a :class:`Simulator` in the state of a world: with the same inputs it continues as that world does, bit for bit."""
        k = _count(world, "world", 0)
        if k >= len(self):
            raise ArgumentError(f"world: expected less than {len(self)}, got {k}.")
        self.parameters.accept()
        settings: dict[str, Any] = dict(self._sim._settings)
        model = self.model
        if opened := self.parameters.opened:
            model = self.parameters.model_of(k)
            if "restitution" in opened:
                settings["restitution"] = dict(zip(geom_names(self._sim._source), opened["restitution"][k].tolist(), strict=True))
        sim = Simulator(model, **settings)
        sim.restore(seal(sim._identity, np.concatenate([self._switches(), self._core.save(k)])))
        return sim

    def _switches(self) -> Array:
        return np.array(self._sim._active, dtype=float)

    def _blocks(self) -> tuple[Array, ...]:
        """Return inputs and results, without states."""
        core = self._core
        return (
            self._control, self._tau, self._external, self.status, self.residual, self.penetration, self.contact_forces, self.contact_counts, self.unsolved, core.row_forces
        )  # fmt: skip

    def _make_unit(self) -> None:
        """Scale the quaternions of mocap targets to length 1."""
        if not self._sim._source.nmocap:
            return
        turns = self.mocap_quaternion
        lengths = np.linalg.norm(turns, axis=-1, keepdims=True)
        if (wrong := np.flatnonzero((lengths == 0).any(axis=(1, 2)))).size:
            raise ArgumentError(f"mocap_quaternion: expected lengths other than zero, got zeros in worlds {wrong[:8].tolist()}.")
        np.divide(turns, lengths, out=turns, where=np.abs(lengths - 1) > 1e-12)


_count = count  # the name of an argument hides it


def _resumed(sim: Simulator, n: int, threads: int, snapshot: Array) -> Worlds:
    """Rebuild worlds at the state in which others were saved."""
    worlds = Worlds(sim, n, threads=threads)
    worlds.restore(snapshot)
    return worlds


def _write(block: Array, values: ArrayLike, name: str) -> None:
    """Write numbers into a live array, broadcast to its shape."""
    array = finite(as_array(values, name), name)
    try:
        block[...] = array
    except ValueError:
        raise ArgumentError(f"{name}: expected shape {block.shape}, or one that broadcasts to it, got {array.shape}.") from None


def _rows(values: ArrayLike, name: str, rows: int, width: int) -> Array:
    """Return finite numbers, one row per world."""
    array = finite(as_array(values, name).astype(float), name)
    if array.shape not in ((width,), (1, width), (rows, width)):
        shape = f"({width},) or ({rows}, {width})" if width > 1 or name != "time" else f"() or ({rows},)"
        raise ArgumentError(f"{name}: expected shape {shape}, got {np.shape(values)}.")
    return np.ascontiguousarray(np.broadcast_to(array, (rows, width)))
