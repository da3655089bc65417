"""MuJoCo's data at our state: positions, velocities and actuator forces as MuJoCo finds them, contacts and their forces as our step found them, and the sensors that read all this.

q, v, a, u of the step's end        kinematics, tendons, transmissions, passive and actuator forces: MuJoCo's
contacts of the step                ours: points, distances, forces; no other contact is there
qacc = M⁻¹ (smooth + Jᵀ λ / dt)     smooth forces at the state, Jᵀ λ of all rows of the step
sensors                             MuJoCo's functions on these
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._door import unknown
from ..constraints import constraint_wrenches
from ..model import Model
from ..model.from_mujoco import body_names
from ..model.geometry import flags
from ..model.records import JointLoop
from .loop_rows import LoopRows
from .mujoco_library import layout
from .smooth_model import hidden_state, mocap_state

__all__ = ["Applied", "Sensing", "SensorValues"]

Array = NDArray[Any]


class Applied(NamedTuple):
    """What acted during a step, as the user gave it; None for none."""

    tau: Array | None
    control: Array | None
    external: Array | None


class SensorValues(Mapping[str, Array]):
    """Values of a model's sensors by their names; ``data`` has all of them as MuJoCo's sensordata has."""

    def __init__(self, places: Mapping[str, slice], data: Array) -> None:
        self.data = data
        self._places = places

    def __getitem__(self, name: str) -> Array:
        if name not in self._places:
            raise unknown("sensor", str(name), self._places)
        return self.data[self._places[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"<SensorValues: {', '.join(f'{name} {np.array2string(self[name], precision=4)}' for name in self._places)}>"


def sensor_places(m: mujoco.MjModel) -> dict[str, slice]:
    """Return where each sensor's values are; one without a name is called sensor_ and its number."""
    places = {}
    for s in range(m.nsensor):
        name = mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_SENSOR, s) or f"sensor_{s}"
        places[name] = slice(int(m.sensor_adr[s]), int(m.sensor_adr[s] + m.sensor_dim[s]))
    return places


def _frame(normal: Array) -> Array:
    """(9,) a contact's normal and two tangents at right angles to it and to each other."""
    aside = np.eye(3)[np.argmin(np.abs(normal))]
    tangent = np.cross(normal, aside)
    tangent /= np.linalg.norm(tangent)
    return np.concatenate([normal, tangent, np.cross(normal, tangent)])


class Sensing:
    """Fills data of MuJoCo's.

    Args:
        m: MuJoCo's model; it is not written to.
        model: the same, ours.
        loops: returns which rows of loops are whose now.
    """

    def __init__(self, m: mujoco.MjModel, model: Model, loops: Callable[[], LoopRows]) -> None:
        self._m, self._model, self._loops = m, model, loops
        self._bodies = [model.body_index(name) for name in body_names(m)]
        self._signature, _ = hidden_state(m)
        self._mocap_signature, _ = mocap_state(m)
        self.places = sensor_places(m)
        self._data: mujoco.MjData | None = None
        # flags of what MuJoCo finds once for a state, when it is first asked for
        self._found = [place for name, place in layout("mjData")[0].items() if name.startswith("flg_")]
        # one that finds no contacts: ours are the only ones
        self._quiet = copy.copy(m)
        self._quiet.opt.disableflags |= flags()["contact"][1]

    def change(self, write: Callable[[mujoco.MjModel], None]) -> None:
        """Change the model, which is this object's own then: the function writes to one of MuJoCo's."""
        for m in (self._m, self._quiet):
            write(m)

    def values(self, record: _core.StepRecord, applied: Applied) -> SensorValues:
        """Return the values of all sensors after a step."""
        if self._data is None:
            self._data = mujoco.MjData(self._m)
        self.fill(self._data, record, applied)
        return SensorValues(self.places, np.array(self._data.sensordata))

    def fill(self, d: mujoco.MjData, record: _core.StepRecord, applied: Applied) -> None:
        """Write the state, contacts and forces of a step, and all that follows from them, into data of this model."""
        m = self._m
        for offset in self._found:
            ctypes.c_uint8.from_address(d._address + offset).value = 0
        self._write_state(d, record, applied)
        for stage in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_camlight, mujoco.mj_flex, mujoco.mj_tendon, getattr(mujoco, "mj_makeM", mujoco.mj_crb), mujoco.mj_factorM):  # fmt: skip
            stage(m, d)
        self._write_contacts(d, record)
        mujoco.mj_makeConstraint(m, d)
        mujoco.mj_transmission(m, d)
        self._write_forces(d, record)
        for stage in (
            mujoco.mj_energyPos,
            mujoco.mj_sensorPos,
            mujoco.mj_fwdVelocity,
            mujoco.mj_energyVel,
            mujoco.mj_subtreeVel,
            mujoco.mj_sensorVel,
        ):
            stage(m, d)
        mujoco.mj_fwdActuation(m, d)
        mujoco.mj_fwdAcceleration(m, d)
        # qacc = M⁻¹ (smooth forces + those of rows)
        d.qfrc_constraint[:] = record.row_forces
        solution = np.empty((1, m.nv))
        mujoco.mj_solveM(m, d, solution, (d.qfrc_smooth + d.qfrc_constraint)[None])
        d.qacc[:] = solution[0]
        # forces between bodies feel those of loops, as wrenches on both
        applied_by_user = np.array(d.xfrc_applied)
        d.xfrc_applied[:] += self._loop_wrenches(record)[self._bodies]
        mujoco.mj_rnePostConstraint(m, d)
        mujoco.mj_sensorAcc(m, d)
        d.xfrc_applied[:] = applied_by_user

    def _loop_wrenches(self, record: _core.StepRecord) -> Array:
        """(nbody, 6) of loops between bodies in the step, by our numbers."""
        total, loops = np.zeros((self._model.nbody, 6)), self._loops()
        if not len(record.loop_forces):
            return total
        forces = loops.spread(record.loop_forces)
        for loop in self._model.loops:
            rows = forces[loops.slices[loop.name]]
            if rows.any() and not isinstance(loop, JointLoop):
                total += constraint_wrenches(self._model, record.q, loop, rows)
        return total

    def _write_state(self, d: mujoco.MjData, record: _core.StepRecord, applied: Applied) -> None:
        d.time = record.time
        d.qpos[:], d.qvel[:] = record.q, record.v
        if self._mocap_signature:
            mujoco.mj_setState(self._m, d, record.mocap, self._mocap_signature)
        if len(record.hidden):
            mujoco.mj_setState(self._m, d, record.hidden, self._signature)
        for to, values in ((d.ctrl, applied.control), (d.qfrc_applied, applied.tau)):
            to[:] = 0.0 if values is None else values
        d.xfrc_applied[:] = 0.0 if applied.external is None else applied.external[self._bodies]

    def _write_contacts(self, d: mujoco.MjData, record: _core.StepRecord) -> None:
        """Our contacts in place of those that MuJoCo would find."""
        m = self._m
        mujoco.mj_collision(self._quiet, d)
        contact = mujoco.MjContact()
        rows = zip(
            record.contact_position, record.contact_normal, record.contact_friction, record.contact_distance, record.contact_geoms, record.contact_rows, strict=True
        )  # fmt: skip
        for position, normal, friction, distance, geoms, dim in rows:
            one, two = int(geoms[1]), int(geoms[0])  # MuJoCo's normal goes from its first geom to its second
            contact.pos, contact.dist, contact.dim = position, distance, dim if friction > 0 else 1
            contact.frame = _frame(normal)
            contact.friction = [friction, friction, *m.geom_friction[one][1:], m.geom_friction[one][2]]
            contact.includemargin = distance + 1.0  # it counts, however far apart it is
            contact.solref, contact.solimp, contact.solreffriction = m.geom_solref[one], m.geom_solimp[one], np.zeros(2)
            contact.geom = contact.geom1, contact.geom2 = one, two
            contact.flex = contact.elem = contact.vert = [-1, -1]
            contact.exclude, contact.efc_address = 0, -1
            mujoco.mj_addContact(m, d, contact)

    def _write_forces(self, d: mujoco.MjData, record: _core.StepRecord) -> None:
        """Write forces of contacts into MuJoCo's rows: normal and tangents, or edges of its pyramids; other rows have none."""
        d.efc_force[:] = 0.0
        pyramids = self._m.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
        for k in range(d.ncon):
            contact = d.contact[k]
            at, n = int(contact.efc_address), int(contact.dim)
            if at < 0:
                continue
            frame = contact.frame.reshape(3, 3)
            local = np.concatenate([frame @ record.contact_force[k], frame @ record.contact_torque[k]])
            if n == 1 or not pyramids:
                d.efc_force[at : at + n] = local[:n]
            else:
                # edges p ± of each direction, with f_n = Σ p and f_k = µ_k (p₊ − p₋): not negative only inside of the pyramid, but read as these forces everywhere
                half, share = local[1:n] / (2 * np.asarray(contact.friction)[: n - 1]), local[0] / (2 * (n - 1))
                d.efc_force[at : at + 2 * (n - 1)] = np.column_stack([share + half, share - half]).ravel()
