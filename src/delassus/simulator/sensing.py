"""MuJoCo's data at our state, and the sensors that read it; the core fills it (core/simulator/sensing.h)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._door import unknown
from ..model import Model
from ..model.from_mujoco import body_names
from ..model.geometry import flags
from .mujoco_library import layout, library
from .smooth_model import hidden_state, mocap_state

__all__ = ["Applied", "Sensing", "SensorValues", "sensing_source"]

Array = NDArray[Any]

# kinds of sensors that read forces of limits
_JOINT_LIMIT, _TENDON_LIMIT = int(mujoco.mjtSensor.mjSENS_JOINTLIMITFRC), int(mujoco.mjtSensor.mjSENS_TENDONLIMITFRC)


class Applied(NamedTuple):
    """Inputs of a step as given by the user; None for none."""

    tau: Array | None
    control: Array | None
    external: Array | None


class SensorValues(Mapping[str, Array]):
    """Values of a model's sensors by name; ``data`` is MuJoCo's sensordata."""

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
    """Return the slice of each sensor's values; a sensor without a name is called sensor_ and its index."""
    places = {}
    for s in range(m.nsensor):
        name = mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_SENSOR, s) or f"sensor_{s}"
        places[name] = slice(int(m.sensor_adr[s]), int(m.sensor_adr[s] + m.sensor_dim[s]))
    return places


def sensing_source(m: mujoco.MjModel, model: Model, fields: Sequence[str] = ()) -> _core.SensingSource:
    """Return what the core needs to fill MuJoCo's data.

    Args:
        m: MuJoCo's model; it is not written to.
        model: the same model, as ours.
        fields: arrays of MuJoCo's model that may differ between worlds.
    """
    kinds = np.asarray(m.sensor_type)
    limit_sensors = [
        _core.LimitSensor(
            of_tendon=bool(kinds[s] == _TENDON_LIMIT), object=int(m.sensor_objid[s]), address=int(m.sensor_adr[s]), cutoff=float(m.sensor_cutoff[s])
        )
        for s in np.flatnonzero(np.isin(kinds, (_JOINT_LIMIT, _TENDON_LIMIT)))
    ]  # fmt: skip
    in_model = layout("mjModel")[0]
    return _core.SensingSource(
        library(), m, address=int(m._address), nq=m.nq, nv=m.nv, nu=m.nu, values=m.nsensordata, signature=hidden_state(m)[0], mocap_signature=mocap_state(m)[0],
        pyramids=bool(m.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL), contact_bit=flags()["contact"][1],
        joint_limit=int(mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT), tendon_limit=int(mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON),
        bodies=[model.body_index(name) for name in body_names(m)], joint_coordinates=np.asarray(m.jnt_qposadr).tolist(), tendons=m.ntendon,
        found=[place for name, place in layout("mjData")[0].items() if name.startswith("flg_")], limit_sensors=limit_sensors,
        fields=[_core.ModelField(offset=in_model[name], bytes=getattr(m, name).nbytes) for name in fields],
    )  # fmt: skip


class Sensing:
    """Fills MuJoCo's data and reads its sensors.

    Args:
        m: MuJoCo's model; it is not written to.
        model: the same model, as ours.
    """

    def __init__(self, m: mujoco.MjModel, model: Model) -> None:
        self._core = _core.Sensing(sensing_source(m, model))
        self.places = sensor_places(m)

    def values(self, record: _core.StepRecord, applied: Applied) -> SensorValues:
        """Return the values of all sensors after a step."""
        return SensorValues(self.places, self._core.values(record, *applied))

    def fill(self, d: mujoco.MjData, record: _core.StepRecord, applied: Applied) -> None:
        """Write the state, contacts and forces of a step, and everything derived from them, into MuJoCo's data."""
        self._core.fill(int(d._address), record, *applied)
