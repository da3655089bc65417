"""Result of a step."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NoReturn

import mujoco
import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._door import count
from .._html import table
from ..errors import ArgumentError
from ..model import Model
from ..types import StepStatus
from .loop_rows import LoopRows
from .sensing import Applied, Sensing, SensorValues
from .trajectory import Contacts

__all__ = ["LimitNames", "StepResult", "contacts_of"]

Array = NDArray[Any]


class LimitNames:
    """Names of joints and tendons with limits."""

    def __init__(self, model: Model, m: mujoco.MjModel) -> None:
        self._model, self._m = model, m

    def worst(self, record: _core.StepRecord) -> str:
        """Return the name of the joint or tendon with the largest limit violation after a step, or empty."""
        if record.worst_tendon >= 0:
            return self._tendon(record.worst_tendon)
        if record.worst_coordinate >= 0:
            return self._joint(record.worst_coordinate)
        return ""

    def forces(self, record: _core.StepRecord) -> dict[str, float]:
        """Return the forces of limits that acted over a step, by the names of their joints and tendons."""
        joints, tendons = record.joint_limit_forces, record.tendon_limit_forces
        return {self._joint(int(k)): float(joints[k]) for k in np.flatnonzero(joints)} | {
            self._tendon(int(k)): float(tendons[k]) for k in np.flatnonzero(tendons)
        }

    def _joint(self, coordinate: int) -> str:
        return self._model.joint_names[int(np.flatnonzero(self._model.joint_qadr == coordinate)[0])]

    def _tendon(self, number: int) -> str:
        return mujoco.mj_id2name(self._m, mujoco.mjtObj.mjOBJ_TENDON, number) or f"tendon_{number}"


class StepResult:
    """Result of a step. Attributes are computed when first read, and stay valid after further steps.

    Attributes:
        time: time at its end [s].
        q, v: (nq,), (nv,) state at its end.
        contacts: contact points, with mean forces over the step [N].
        loop_forces: name of a loop → (rows,) its forces over the step [N, for rotation rows N m], in the axes of its rows, see the constraint class of its kind: on the first body,
            the opposite on the other. Rows are those of the middle of the step, q ⊕ ½ dt v. Zero where a loop is switched off. For wrenches on bodies see
            :func:`~delassus.constraint_wrenches`.
        status: "solved" certifies the whole step: contact forces within the tolerance on all islands, and then loops closed (to 1e-5 of the mechanism's size, at most 1e-5 m),
            limits kept (within 1e-5 plus twice the slop), no penetration deeper than before (by twice the slop), and no shape on the other side of another. Otherwise the status of the contact
            solver, see :class:`~delassus.ContactResult`, or, if the forces are right, the first check that fails: "tunnelling", "open_loops", "limit_violated", "penetrating".
        islands: number of awake groups of bodies connected by contacts or loops; each is solved separately.
        sleeping: number of kinematic trees (free bodies, robots) asleep after the step. Their contacts are listed with the forces of their last solve; residuals and errors, except
            penetration, are for awake bodies.
        iterations, factorizations: of the contact solver: maximum over the islands, and total.
        corrections: number of position-correction iterations; zero if nothing was open.
        residual: natural residual [m/s].
        penetration: maximum penetration before the step [m].
        penetration_after: maximum penetration of the same contacts after the step, from their velocities [m].
        loop_error, loop_error_after: largest loop error before and after the step [m or rad].
        limit_error: largest limit violation after the step [m or rad].
        limit_name: the joint or tendon with that violation, or empty.
        limit_forces: name of a joint or tendon held at a limit of its range → force of that limit over the step [N or N m], positive.
        tunnelled: number of pairs of shapes that passed through each other during the step.
        sensors: values of the model's sensors by name, and all of them as ``sensors.data``, at the end of the step: by MuJoCo's functions, from our state, contacts and forces.
        timings: time of each stage [s], "step" for the whole. Times of islands are added up, so with several threads they may exceed the whole.
    """

    time: float
    q: Array
    v: Array
    contacts: Contacts
    loop_forces: dict[str, Array]
    status: StepStatus
    islands: int
    sleeping: int
    iterations: int
    factorizations: int
    corrections: int
    residual: float
    penetration: float
    penetration_after: float
    loop_error: float
    loop_error_after: float
    limit_error: float
    limit_name: str
    limit_forces: dict[str, float]
    tunnelled: int
    timings: dict[str, float]
    sensors: SensorValues

    def __init__(
        self, record: _core.StepRecord, loops: LoopRows, limits: LimitNames, sensing: Sensing | None = None, applied: Applied | None = None
    ) -> None:
        self.__dict__.update(_record=record, _loops=loops, _limits=limits, _sensed=(sensing, applied))

    def __getattr__(self, name: str) -> Any:
        """Compute an attribute at its first use, and keep it."""
        if name not in StepResult.__annotations__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        record = self.__dict__["_record"]
        made = {
            "contacts": contacts_of,
            "loop_forces": self._forces_by_loop,
            "sensors": self._sensor_values,
            "limit_name": self.__dict__["_limits"].worst,
            "limit_forces": self.__dict__["_limits"].forces,
        }.get(name, attrgetter(name))
        value = made(record)
        self.__dict__[name] = value
        return value

    def _sensor_values(self, record: _core.StepRecord) -> SensorValues:
        sensing, applied = self.__dict__["_sensed"]
        return SensorValues({}, np.zeros(0)) if sensing is None else sensing.values(record, applied)

    def _forces_by_loop(self, record: _core.StepRecord) -> dict[str, Array]:
        loops: LoopRows = self.__dict__["_loops"]
        forces = loops.spread(record.loop_forces)
        return {loop: forces[rows] for loop, rows in loops.slices.items()}

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"cannot assign to {name!r}: a StepResult does not change.")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *StepResult.__annotations__]

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        rows: list[tuple[str, Any]] = [
            ("status", self.status), ("time", f"{self.time:g} s"), ("contacts", len(self.contacts)), ("iterations", self.iterations), ("residual", f"{self.residual:.1e} m/s"),
            ("penetration", f"{self.penetration:.1e} m"), ("loop error", f"{self.loop_error_after:.1e}"), ("time taken", f"{1e6 * self.timings['step']:.0f} µs"),
        ]  # fmt: skip
        return table("StepResult", rows)

    def __repr__(self) -> str:
        whose = f" ({self.limit_name})" if self.status == "limit_violated" else ""
        return f"<StepResult at t = {self.time:g} s: {self.status}{whose}, {len(self.contacts)} contacts>"

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes, for copying and pickling."""
        return {name: getattr(self, name) for name in StepResult.__annotations__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def body_forces(self, nbody: int) -> Array:
        """Total contact force on every body, (nbody, 3) [N], world axes.

        Row 0 is the world, which gets the reactions to the forces on all others: the sum of all rows is zero.

        Args:
            nbody: number of bodies, ``model.nbody``.
        """
        last = int(self.contacts.bodies.max(initial=0))
        if count(nbody, "nbody") <= last:
            raise ArgumentError(f"nbody: expected the model's number of bodies, at least {last + 1}, got {nbody}.")
        total = np.zeros((nbody, 3))
        np.add.at(total, self.contacts.bodies[:, 0], self.contacts.force)
        np.add.at(total, self.contacts.bodies[:, 1], -self.contacts.force)
        return total


def contacts_of(record: _core.StepRecord) -> Contacts:
    """Return the contacts recorded by the core; their arrays are read-only views."""
    contacts = object.__new__(Contacts)
    contacts.__dict__.update(
        position=record.contact_position, normal=record.contact_normal, force=record.contact_force, friction=record.contact_friction,
        bodies=record.contact_bodies, distance=record.contact_distance, geoms=record.contact_geoms,
    )  # fmt: skip
    return contacts
