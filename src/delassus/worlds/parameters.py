"""Parameters that may differ between worlds of one model: masses, friction, gains."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._door import count, numbers, unknown
from ..errors import ArgumentError, NotFiniteError
from ..model import Model
from ..model.from_mujoco import body_names, geom_names
from ..model.model import _made
from ..model.native import actuator_count, column
from ..simulator.simulator import Simulator

__all__ = ["Parameters", "parameter_source"]

Array = NDArray[Any]

# in the order of the core
NAMES = (
    "body_mass", "body_com", "body_inertia", "gravity", "joint_damping", "joint_stiffness", "joint_armature", "joint_friction_loss", "actuator_gain", "actuator_bias",
    "geom_friction", "restitution", "geom_size",
)  # fmt: skip
# arrays of MuJoCo's model to which they are written, besides gravity
FIELDS = (
    "body_mass", "body_subtreemass", "body_ipos", "body_inertia", "body_iquat", "body_sameframe", "geom_sameframe", "site_sameframe", "geom_friction", "geom_size", "geom_rbound", "geom_aabb", "dof_damping",
    "dof_armature", "dof_frictionloss", "jnt_stiffness", "actuator_gainprm", "actuator_biasprm",
)  # fmt: skip
_SINGLE = ("hinge", "slide")  # joints with one coordinate
# shapes whose size may differ, in the core's order from one on: how many of the three size numbers they use
_GEOM = mujoco.mjtGeom
_SIZED = {
    int(_GEOM.mjGEOM_SPHERE): 1, int(_GEOM.mjGEOM_CAPSULE): 2, int(_GEOM.mjGEOM_ELLIPSOID): 3, int(_GEOM.mjGEOM_CYLINDER): 2, int(_GEOM.mjGEOM_BOX): 3
}  # fmt: skip
_MIDPHASE = int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
# shapes that MuJoCo places relative to the inertial frame of their body
_BY_INERTIA = (int(mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA), int(mujoco.mjtSameFrame.mjSAMEFRAME_INERTIAROT))


def _own(sim: Simulator) -> dict[str, Array]:
    """Return the model's values, in the shapes that users see."""
    model, actuators = sim.model, sim.model.actuators
    per_joint = {f"joint_{what}": np.array([getattr(joint, what) for joint in model.joints], dtype=float) for what in ("damping", "stiffness", "armature", "friction_loss")}  # fmt: skip
    return {
        "body_mass": np.array(model.body_mass), "body_com": np.array(model.body_com), "body_inertia": np.array(model.body_inertia), "gravity": np.array(model.gravity), **per_joint,
        "actuator_gain": np.array([a.gain for a in actuators], dtype=float), "actuator_bias": np.array([a.bias for a in actuators], dtype=float).reshape(-1, 3),
        "geom_friction": np.array(sim._source.geom_friction), "restitution": np.array(sim.restitution), "geom_size": np.array(sim._source.geom_size),
    }  # fmt: skip


def parameter_source(sim: Simulator) -> _core.ParameterSource:
    """Return the parameters of a simulator's model for the core."""
    model, m = sim.model, sim._source
    sizes = np.diff([*model.joint_vadr.tolist(), model.nv])
    own = _own(sim)
    return _core.ParameterSource(
        [own[name].ravel().tolist() for name in NAMES],
        dof_joint=np.repeat(np.arange(model.njoint), sizes).tolist(),
        motor_actuator=[a for a, actuator in enumerate(model.actuators) if actuator.joint is not None],
        mujoco_bodies=[model.body_index(name) for name in body_names(m)],
        mujoco_parents=np.asarray(m.body_parentid).tolist(),
        shapes=_shape_kinds(m),
        radii=np.asarray(m.geom_rbound).tolist(),
        boxes=np.asarray(m.geom_aabb).ravel().tolist(),
    )


def _shape_kinds(m: Any) -> list[int]:
    """Return the core's kind of each shape, zero if its size cannot differ."""
    kinds = list(_SIZED)
    return [kinds.index(kind) + 1 if kind in _SIZED else 0 for kind in np.asarray(m.geom_type).tolist()]


class Parameters(Mapping[str, Array]):
    """Parameters of each world, by name: live arrays ``(count, …)``, initialized from the model. New values apply from the next step on.

    ===================================================================  ==============================================================================================
    ``body_mass`` (count, nbody)                                         [kg]
    ``body_com`` (count, nbody, 3)                                       centres of mass, in body axes [m]
    ``body_inertia`` (count, nbody, 3, 3)                                about the centre of mass, in body axes [kg m²]
    ``gravity`` (count, 3)                                               [m/s²]
    ``joint_damping``, ``joint_stiffness``, ``joint_armature``,          (count, njoint), one number for all velocities of a joint; stiffness only for hinges and slides
    ``joint_friction_loss``
    ``actuator_gain`` (count, nactuator), ``actuator_bias`` (…, 3)       of actuators on single joints, see :class:`Actuator`
    ``geom_friction`` (count, ngeom, 3)                                  MuJoCo's: sliding, torsional, rolling; combined by its rule, by MuJoCo's geom index
    ``friction`` (count, ngeom)                                          the first column of ``geom_friction``
    ``restitution`` (count, ngeom)                                       from 0 to 1; a contact uses the larger of the two
    ``geom_size`` (count, ngeom, 3)                                      MuJoCo's: radius, half lengths [m], of spheres, capsules, ellipsoids, cylinders and boxes; masses stay
    ===================================================================  ==============================================================================================

    An array is created when it is first used. ``name in parameters`` checks whether a name exists.
    """

    def __init__(self, sim: Simulator, core: _core.Worlds) -> None:
        self._sim, self._core = sim, core
        self._own = _own(sim)
        self._arrays: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name == "friction":
            return self["geom_friction"][:, :, 0]
        if name not in NAMES:
            raise unknown("parameter", name, self)
        if name not in self._arrays:
            flat = self._core.parameter(NAMES.index(name))
            self._arrays[name] = flat.reshape(len(flat), *self._own[name].shape)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        yield from NAMES
        yield "friction"

    def __len__(self) -> int:
        return len(NAMES) + 1

    def __contains__(self, name: object) -> bool:
        return name == "friction" or name in NAMES

    def __repr__(self) -> str:
        return f"<Parameters: {', '.join(self)}; in use: {', '.join(self._arrays) or 'none'}>"

    def __setitem__(self, name: str, values: Any) -> None:
        array = self[name]
        try:
            array[...] = values
        except (ValueError, TypeError) as error:
            raise ArgumentError(
                f"{name}: expected numbers that broadcast to shape {array.shape}, got {np.shape(values)}: {error}."
            ) from None

    @property
    def mask(self) -> float:
        """Bit mask of the arrays in use."""
        return float(sum(1 << NAMES.index(name) for name in self._arrays))

    def named(self, mask: float) -> list[str]:
        """Return the names in a mask, in the order of :attr:`opened`."""
        if not (0 <= mask < 1 << len(NAMES) and mask == int(mask)):
            raise ArgumentError("snapshot: its parameters do not match these worlds. Give what save() returned, unchanged.")
        return [name for k, name in enumerate(NAMES) if int(mask) >> k & 1]

    def size(self, name: str) -> int:
        """Return the number of values per world of a parameter."""
        return int(self._own[name].size)

    def clear(self) -> None:
        """Reset all arrays to the model's values."""
        for name, array in self._arrays.items():
            array[...] = self._own[name]

    @property
    def opened(self) -> dict[str, Array]:
        """Arrays in use, which may differ from the model's values."""
        return {name: self._arrays[name] for name in NAMES if name in self._arrays}

    def accept(self) -> None:
        """Check the values written since the last call and apply them.

        Raises:
            NotFiniteError: a value is not finite; the message names the worlds.
            ArgumentError: a value is invalid; likewise.
        """
        if not self._arrays:
            return
        changed = self._core.changed_parameters()
        for which in changed:
            self._check(NAMES[which])
        if changed:
            self._core.accept_parameters()

    def _check(self, name: str) -> None:
        x, own, m = self._arrays[name], self._own[name], self._sim._source
        _refuse(name, "finite numbers", ~np.isfinite(x), x, NotFiniteError)
        if name == "body_mass":
            _refuse(name, "positive numbers, and zero for bodies without mass", ((x <= 0) & (own > 0)) | ((x != 0) & (own == 0)), x)
        elif name == "body_inertia":
            _refuse(name, "symmetric matrices", x != x.swapaxes(-1, -2), x)
            massive = np.linalg.eigvalsh(own)[..., 0] > 0
            _refuse(name, "positive definite matrices where the model's are", (np.linalg.eigvalsh(x)[..., 0] <= 0) & massive, x)
            _refuse(name, "the model's value where its inertia is singular", (x != own) & ~massive[..., None, None], x)
        elif name.startswith("joint_"):
            _refuse(name, "numbers that are not negative", x < 0, x)
            self._check_joints(name, x, own)
        elif name.startswith("actuator_"):
            alien = np.array([a.joint is None for a in self._sim.model.actuators], dtype=bool)
            _refuse(name, "the model's value for actuators that MuJoCo computes", (x != own) & alien.reshape(-1, *[1] * (own.ndim - 1)), x)
        elif name == "geom_friction":
            _refuse(name, "numbers that are not negative", x < 0, x)
        elif name == "geom_size":
            self._check_sizes(x, own)
        elif name == "restitution":
            _refuse(name, "numbers from 0 to 1", (x < 0) | (x > 1), x)
        if name in ("body_inertia", "body_com") and m.nsensor:
            simple = np.zeros(len(own), dtype=bool)
            simple[[self._sim.model.body_index(b) for b in body_names(m)]] = np.asarray(m.body_simple) > 0
            _refuse(
                name,
                "the model's value for bodies that MuJoCo compiled as simple and whose sensors it would get wrong",
                (x != own) & simple.reshape(-1, *[1] * (own.ndim - 1)),
                x,
            )
        if name in ("body_mass", "body_inertia", "body_com") and (m.opt.density or m.opt.viscosity):
            _refuse(name, "the model's value, because fluid forces depend on it", x != own, x)

    def _check_sizes(self, x: Array, own: Array) -> None:
        m, used = self._sim._source, np.arange(3) < np.array([_SIZED.get(int(kind), 0) for kind in self._sim._source.geom_type])[:, None]
        fixed = (x != own) & ~used
        if fixed.any():
            g = int(np.nonzero(fixed)[1][0])
            what = f"geom {geom_names(m)[g]!r}, a {_GEOM(m.geom_type[g]).name.removeprefix('mjGEOM_').lower()},"
            _refuse("geom_size", f"the model's value: {what} has no such size, or one that cannot differ", fixed, x)
        _refuse("geom_size", "positive numbers", (x <= 0) & used, x)
        if m.opt.density or m.opt.viscosity:
            _refuse("geom_size", "the model's value, because fluid forces depend on it", x != own, x)

    def _check_joints(self, name: str, x: Array, own: Array) -> None:
        kinds = np.array(self._sim.model.joint_type)
        if name == "joint_stiffness":
            _refuse(name, "the model's value for joints other than hinges and slides", (x != own) & ~np.isin(kinds, _SINGLE), x)
        elif name == "joint_friction_loss":
            _refuse(name, "positive numbers where the model has dry friction, zero elsewhere", (x > 0) != (own > 0), x)
        elif name in ("joint_damping", "joint_armature"):
            other = self._own["joint_armature" if name == "joint_damping" else "joint_damping"]
            _refuse(
                name,
                "zero for free joints that have neither damping nor armature, and nonzero for others",
                (kinds == "free") & ((x + other > 0) != (own + other > 0)),
                x,
            )

    # ---- random worlds ---------------------------------------------------------------------------------------------------------

    def randomize(self, seed: int, ranges: Mapping[str, tuple[float, float] | None]) -> None:
        """Draw parameters of all worlds, see :meth:`Worlds.randomize`."""
        count(seed, "seed", 0)
        for what, ends in ranges.items():
            if ends is None:
                continue
            low, high = numbers(ends, what, (2,)).tolist()
            if low > high:
                raise ArgumentError(f"{what}: expected (minimum, maximum), got {ends}.")
            for name in _DRAWN[what]:
                array, own = self[name], self._own[name]
                for k in range(len(array)):
                    # the same draw for all arrays of a name, regardless of what else is drawn
                    rng = np.random.default_rng([seed, k, list(_DRAWN).index(what)])
                    array[k] = _drawn(what, own, rng, low, high)
                    if name == "geom_size":  # of shapes whose size may differ
                        fixed = ~np.isin(self._sim._source.geom_type, list(_SIZED))
                        array[k, fixed] = own[fixed]

    # ---- a world's own model ---------------------------------------------------------------------------------------------------

    def of_world(self, k: int) -> dict[str, Array]:
        """Return all current parameters of a world."""
        own = self._own
        accepted = {name: self._core.accepted_parameter(NAMES.index(name))[k].reshape(own[name].shape) for name in self._arrays}
        return {name: accepted.get(name, own[name]) for name in NAMES}

    def write_sensor_models(self) -> None:
        """Give the core MuJoCo models for the sensors of worlds with new parameters."""
        worlds = self._core.unsensed_parameters()
        if worlds:
            source = self._sim._source
            m = copy.copy(source)
            for k in worlds:
                for field in FIELDS:  # clear the values of the previous world
                    getattr(m, field)[...] = getattr(source, field)
                self.write(k, m)
                self._core.set_sensor_model(k, int(m._address))

    def write(self, k: int, m: Any) -> None:
        """Write the parameters of a world into a MuJoCo model."""
        x, model = self.of_world(k), self._sim.model
        bodies = [model.body_index(name) for name in body_names(m)]
        m.opt.gravity, m.geom_friction[:] = x["gravity"], x["geom_friction"]
        self._write_sizes(x["geom_size"], m)
        m.body_mass[:], m.body_ipos[:] = x["body_mass"][bodies], x["body_com"][bodies]
        if "body_inertia" in self._arrays:
            for b, inertia in enumerate(x["body_inertia"][bodies]):
                moments, axes = np.linalg.eigh(inertia)
                axes[:, 0] *= np.linalg.det(axes)
                m.body_inertia[b] = moments
                mujoco.mju_mat2Quat(m.body_iquat[b], np.ascontiguousarray(axes).ravel())
        # shapes that MuJoCo places relative to the inertial frame stay where they are
        moved = (x["body_com"] != self._own["body_com"]).any(axis=-1) | (x["body_inertia"] != self._own["body_inertia"]).any(axis=(-1, -2))
        m.body_sameframe[moved[bodies]] = 0
        for flags, carriers in ((m.geom_sameframe, m.geom_bodyid), (m.site_sameframe, m.site_bodyid)):
            flags[moved[bodies][carriers] & np.isin(flags, _BY_INERTIA)] = 0
        m.body_subtreemass[:] = m.body_mass
        for b in range(m.nbody - 1, 0, -1):
            m.body_subtreemass[m.body_parentid[b]] += m.body_subtreemass[b]
        # of joint parameters only those that were written: a file may have several numbers where a record has one
        dofs = np.asarray(m.dof_jntid)
        for name, rows, joints in (
            ("damping", m.nv, dofs),
            ("armature", m.nv, dofs),
            ("friction_loss", m.nv, dofs),
            ("stiffness", m.njnt, np.arange(m.njnt)),
        ):
            field = f"{'jnt' if name == 'stiffness' else 'dof'}_{name.replace('_', '')}"
            written = (x[f"joint_{name}"] != self._own[f"joint_{name}"])[joints]
            column(m, field, rows)[written, 0] = x[f"joint_{name}"][joints][written]
        for a in range(actuator_count(m)):
            if model.actuators[a].joint is not None:
                m.actuator_gainprm[a, 0], m.actuator_biasprm[a, :3] = x["actuator_gain"][a], x["actuator_bias"][a]

    def _write_sizes(self, sizes: Array, m: Any) -> None:
        """Write sizes of shapes, and the bounds that depend on them; bounding-box trees, which are not updated, are switched off: contacts come in the same order without them."""
        kinds = _shape_kinds(m)
        for g in np.flatnonzero((sizes != self._own["geom_size"]).any(axis=1)).tolist():
            m.geom_size[g] = sizes[g]
            m.geom_rbound[g], m.geom_aabb[g, 3:] = _core.shape_bounds(kinds[g], sizes[g].tolist())
            m.opt.disableflags |= _MIDPHASE

    def model_of(self, k: int) -> Model:
        """Return the model of a world."""
        model, x = self._sim.model, self.of_world(k)
        m = copy.copy(self._sim._source)
        self.write(k, m)
        name, bodies, joints, _, *rest = model._content()
        six = x["body_inertia"].reshape(-1, 9)[:, [0, 4, 8, 1, 2, 5]].tolist()
        masses, centers = x["body_mass"].tolist(), x["body_com"].tolist()
        new_bodies = [replace(b, mass=masses[i], com=tuple(centers[i]), inertia=tuple(six[i])) for i, b in enumerate(bodies, start=1)]
        new_joints = [
            replace(j, **{what: float(x[f"joint_{what}"][i]) for what in ("damping", "stiffness", "armature", "friction_loss")})
            for i, j in enumerate(joints)
        ]
        loops, shapes, actuators, *others = rest
        sizes = dict(zip(geom_names(m), x["geom_size"].tolist(), strict=True))
        new_shapes = [replace(s, size=tuple(sizes[s.name][: len(s.size)])) if s.name in sizes else s for s in shapes]
        new_actuators = [
            a if a.joint is None else replace(a, gain=float(x["actuator_gain"][i]), bias=tuple(x["actuator_bias"][i].tolist()))
            for i, a in enumerate(actuators)
        ]
        return _made((name, new_bodies, new_joints, x["gravity"].tolist(), loops, new_shapes, new_actuators, *others), m)


# name of a draw: the arrays that it changes
_DRAWN = {
    "friction": ("geom_friction",), "mass_scale": ("body_mass", "body_inertia"), "com_offset": ("body_com",), "damping_scale": ("joint_damping",),
    "stiffness_scale": ("joint_stiffness",), "armature_scale": ("joint_armature",), "friction_loss_scale": ("joint_friction_loss",),
    "gain_scale": ("actuator_gain", "actuator_bias"), "gravity_scale": ("gravity",), "restitution": ("restitution",), "size_scale": ("geom_size",),
}  # fmt: skip


def _drawn(what: str, own: Array, rng: np.random.Generator, low: float, high: float) -> Array:
    """Return the values of one world: one draw for the whole world, or one for each body, joint or actuator."""
    if what in ("friction", "restitution"):
        value = rng.uniform(low, high)
        return np.column_stack([np.full(len(own), value), own[:, 1:]]) if what == "friction" else np.full(own.shape, value)
    if what == "com_offset":
        return own + rng.uniform(low, high, size=own.shape) * (np.arange(len(own)) > 0)[:, None]
    size = () if what == "gravity_scale" else (len(own),)
    return own * rng.uniform(low, high, size=size).reshape(*size, *[1] * (own.ndim - len(size)))


def _refuse(name: str, expected: str, wrong: Array, x: Array, kind: type[ArgumentError] = ArgumentError) -> None:
    """Raise an error if any value is wrong, and name the worlds."""
    if not wrong.any():
        return
    worlds = np.unique(np.nonzero(wrong)[0])
    shown = ", ".join(map(str, worlds[:8])) + (f", … ({len(worlds)} in all)" if len(worlds) > 8 else "")
    first = x[tuple(index[0] for index in np.nonzero(wrong))]
    raise kind(
        f"parameters[{name!r}]: expected {expected}, got {np.array2string(np.asarray(first), precision=4)} in {'world' if len(worlds) == 1 else 'worlds'} {shown}."
    )
