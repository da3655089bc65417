"""Trajectories: states over time, contacts of every frame, and solver status."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import as_array, finite, unknown
from .._html import table
from ..errors import ArgumentError, ArgumentTypeError, DelassusError, LoadError
from ..model import Model
from ..model.compiled import compiled
from ..model.enclosed import load_enclosed
from ..model.mjcf import to_mjcf
from ..model.model import as_model
from .files import named_path, new_figure, save_figure, whole_file
from .loop_rows import loop_slices

__all__ = ["Contacts", "Trajectory"]

FORMAT = 1  # version of the file layout
_STATUS = re.compile("[a-z][a-z_ -]{0,60}")  # viewers show it unescaped

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# stand for fields that are not given
_NONE: Ints = np.zeros(0, dtype=np.int64)
_UNSAID: Floats = np.zeros(0)
_LATER = {"sleeping", "contact_distance", "contact_geoms", "loop_forces"}  # fields that files of earlier versions do not have
Scalar = TypeVar("Scalar", bound=np.generic)


def _floats(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Floats:
    array = finite(as_array(value, name, f"an array of shape {shape}"), name)
    return _frozen(np.array(array, dtype=np.float64), name, shape)


def _ints(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Ints:
    array = as_array(value, name, f"whole numbers of shape {shape}")
    if array.dtype.kind not in "iu" and array.size:
        raise ArgumentTypeError(f"{name}: expected whole numbers, got dtype {array.dtype}.")
    return _frozen(np.array(array, dtype=np.int64), name, shape)


def _words(value: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.str_]:
    array = np.asarray(value)
    if array.dtype.kind != "U" and array.size:
        raise ArgumentTypeError(f"{name}: expected strings, got dtype {array.dtype}.")
    return _frozen(np.array(array, dtype=np.str_), name, shape)


def _frozen(array: NDArray[Scalar], name: str, shape: tuple[int, ...]) -> NDArray[Scalar]:
    if array.shape != shape:
        raise ArgumentError(f"{name}: expected shape {shape}, got {array.shape}.")
    array.setflags(write=False)
    return array


def _array(file: Any, name: str) -> NDArray[Any]:
    """Return an array of an ``.npz`` file, if the file is large enough for the shape it declares."""
    inside = file.zip.getinfo(f"{name}.npy")
    with file.zip.open(inside) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(member)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > inside.file_size:
        raise LoadError(f"path: {name}: an array of shape {shape} is longer than its file.")
    array: NDArray[Any] = file[name]
    return array


def _positive(values: Floats) -> Floats:
    """Return the values that a logarithmic axis can show; gaps elsewhere."""
    return np.where(values > 0, values, np.nan)


def _decades(values: Floats) -> tuple[float, float]:
    """Whole decades around the positive ones of some values; about a micrometre where there are none."""
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (positive.min(), positive.max()) if len(positive) else (1e-6, 1e-6)
    return float(10.0 ** np.floor(np.log10(low))), float(10.0 ** (np.floor(np.log10(high)) + 1))


def _setter(value: Any) -> Callable[[str, Any], None]:
    """Return a function that sets the fields of a frozen value during construction."""
    return partial(object.__setattr__, value)


@dataclass(frozen=True, eq=False)
class Contacts:
    """K contacts at one time; read-only arrays.

    Attributes:
        position: (K, 3) [m], world.
        normal: (K, 3) from second to first body, unit length, world.
        force: (K, 3) force on the first body [N], world.
        friction: (K,) sliding coefficients.
        bodies: (K, 2) indices of the two bodies; 0 is the world.
        distance: (K,) gap between the shapes at detection, negative for penetration [m]; zero if unknown.
        geoms: (K, 2) geom indices in MuJoCo's model (``sim.mujoco_model``); −1 if unknown.
    """

    position: Floats
    normal: Floats
    force: Floats
    friction: Floats
    bodies: Ints
    distance: Floats = field(default_factory=lambda: _UNSAID)
    geoms: Ints = field(default_factory=lambda: _NONE)

    def __post_init__(self) -> None:
        n = len(as_array(self.position, "position", "an array of shape (K, 3)"))
        put = _setter(self)
        if self.distance is _UNSAID:
            put("distance", np.zeros(n))
        if self.geoms is _NONE:
            put("geoms", np.full((n, 2), -1))
        for name, shape in (("position", (n, 3)), ("normal", (n, 3)), ("force", (n, 3)), ("friction", (n,)), ("distance", (n,))):
            put(name, _floats(getattr(self, name), name, shape))
        for name in ("bodies", "geoms"):
            put(name, _ints(getattr(self, name), name, (n, 2)))

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        total = self.force.sum(axis=0)
        rows: list[tuple[str, Any]] = [
            ("contacts", len(self)),
            ("sum of forces", f"[{total[0]:.4g}, {total[1]:.4g}, {total[2]:.4g}] N"),
            ("friction", self.friction),
        ]
        return table("Contacts", rows)

    @property
    def frame(self) -> Floats:
        """(K, 3, 3) axes of the contacts as rows: normal n, e × n scaled to unit length, and n × that; e is the coordinate axis most perpendicular to n. World."""
        n = self.normal
        first = np.cross(np.eye(3)[np.abs(n).argmin(axis=1)], n)
        first /= np.linalg.norm(first, axis=1, keepdims=True)
        return np.stack([n, first, np.cross(n, first)], axis=1)

    def __len__(self) -> int:
        """Return the number of contacts."""
        return len(self.position)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Motion of a model: T frames with K contacts in total. Arrays are copied and read-only.

    ``trajectory[10:200:5]`` is a trajectory too; ``len`` is the number of frames.

    Attributes:
        model: the mechanism.
        times: (T,) [s], increasing.
        q: (T, nq) configurations.
        v: (T, nv) velocities.
        contact_start: (T + 1,); the contacts of frame k are ``contact_start[k]:contact_start[k + 1]`` of the next five.
        contact_position: (K, 3) [m], world.
        contact_normal: (K, 3) from second to first body, world.
        contact_force: (K, 3) force on the first body [N], world.
        contact_friction: (K,) sliding coefficients.
        contact_bodies: (K, 2) indices of the two bodies; 0 is the world.
        status: (T,) status of each step, "solved" if successful.
        iterations: (T,) solver iterations.
        residual: (T,) natural residual [m/s].
        kinetic_energy, potential_energy: (T,) [J].
        loop_error: (T,) largest gap of a loop [m].
        penetration: (T,) maximum penetration [m].
        sleeping: (T,) number of sleeping trees; zero if unknown.
        contact_distance: (K,) gap between shapes at detection [m]; zero if unknown.
        contact_geoms: (K, 2) geom indices in MuJoCo's model; −1 if unknown.
        loop_forces: (T, m) forces of all loops' rows over the step that led to the frame, in the order of ``model.loops``, see :class:`StepResult`; zero if unknown.
            :meth:`loop_force` has those of one loop.
    """

    model: Model
    times: Floats
    q: Floats
    v: Floats
    contact_start: Ints
    contact_position: Floats
    contact_normal: Floats
    contact_force: Floats
    contact_friction: Floats
    contact_bodies: Ints
    status: NDArray[np.str_]
    iterations: Ints
    residual: Floats
    kinetic_energy: Floats
    potential_energy: Floats
    loop_error: Floats
    penetration: Floats
    sleeping: Ints = field(default_factory=lambda: _NONE)
    contact_distance: Floats = field(default_factory=lambda: _UNSAID)
    contact_geoms: Ints = field(default_factory=lambda: _NONE)
    loop_forces: Floats = field(default_factory=lambda: _UNSAID)

    def __post_init__(self) -> None:
        as_model(self.model)
        put = _setter(self)
        frames = as_array(self.times, "times").size
        contacts = len(np.atleast_1d(as_array(self.contact_position, "contact_position")))
        T, K = (frames,), (contacts,)
        rows = max((rows.stop for rows in loop_slices(self.model).values()), default=0)
        for name, unsaid, value in (
            ("sleeping", _NONE, np.zeros(T, dtype=np.int64)), ("contact_distance", _UNSAID, np.zeros(K)), ("contact_geoms", _NONE, np.full((*K, 2), -1)),
            ("loop_forces", _UNSAID, np.zeros((*T, rows))),
        ):  # fmt: skip
            if getattr(self, name) is unsaid:
                put(name, value)
        shapes: dict[str, tuple[int, ...]] = {
            "times": T, "q": (*T, self.model.nq), "v": (*T, self.model.nv), "contact_position": (*K, 3), "contact_normal": (*K, 3),
            "contact_force": (*K, 3), "contact_friction": K, "residual": T, "kinetic_energy": T, "potential_energy": T, "loop_error": T,
            "penetration": T, "contact_distance": K, "loop_forces": (*T, rows),
        }  # fmt: skip
        for name, shape in shapes.items():
            put(name, _floats(getattr(self, name), name, shape))
        for name, shape in (
            ("contact_start", (frames + 1,)),
            ("contact_bodies", (contacts, 2)),
            ("contact_geoms", (contacts, 2)),
            ("iterations", T),
            ("sleeping", T),
        ):
            put(name, _ints(getattr(self, name), name, shape))
        put("status", _words(self.status, "status", T))
        if strange := sorted(word for word in set(self.status.tolist()) if not _STATUS.fullmatch(word)):
            raise ArgumentError(f"status: expected lower-case words, got {strange[0][:80]!r}.")
        if (np.diff(self.times) <= 0).any():
            raise ArgumentError("times: expected increasing numbers.")
        steps = np.diff(self.contact_start)
        if self.contact_start[0] != 0 or self.contact_start[-1] != contacts or (steps < 0).any():
            raise ArgumentError(f"contact_start: expected non-decreasing numbers from 0 to {contacts}, the number of contacts.")
        if contacts and not np.isin(self.contact_bodies, range(self.model.nbody)).all():
            raise ArgumentError(f"contact_bodies: expected indices from 0 to {self.model.nbody - 1}.")

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.times)

    def __getitem__(self, which: slice) -> Trajectory:
        """Return the frames of a slice as a trajectory."""
        if not isinstance(which, slice):
            raise ArgumentTypeError(f"which: expected a slice, got {type(which).__name__}. For one frame use trajectory[k : k + 1].")
        frames = np.arange(len(self))[which]
        starts, ends = self.contact_start[frames], self.contact_start[frames + 1]
        kept = np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)]) if len(frames) else frames
        parts: dict[str, Any] = {"model": self.model, "contact_start": np.concatenate([[0], np.cumsum(ends - starts)])}
        for part in fields(self):
            if part.name not in parts:
                parts[part.name] = getattr(self, part.name)[kept if part.name.startswith("contact_") else frames]
        return Trajectory(**parts)

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        unsolved = int((self.status != "solved").sum())
        rows: list[tuple[str, Any]] = [
            ("frames", len(self)), ("time", f"{self.times[0]:g} to {self.times[-1]:g} s" if len(self) else "none"), ("contacts", f"{int(np.diff(self.contact_start).max(initial=0))} at most"),
            ("status", "all solved" if not unsolved else f"{unsolved} frames not solved"), ("residual", f"{self.residual.max(initial=0.0):.1e} m/s at most"),
            ("penetration", f"{self.penetration.max(initial=0.0):.1e} m at most"), ("loop error", f"{self.loop_error.max(initial=0.0):.1e} at most"),
        ]  # fmt: skip
        return table(f"Trajectory of {self.model.name}", rows)

    def __repr__(self) -> str:
        span = f"{self.times[0]:g} … {self.times[-1]:g} s" if len(self) else "no time"
        return f"<Trajectory of {self.model.name!r}: {len(self)} frames, {span}, {len(self.contact_position)} contacts>"

    def contacts(self, frame: int) -> Contacts:
        """Return the contacts of a frame.

        Args:
            frame: frame index, from 0 to T − 1, or from the end if negative.
        """
        if not -len(self) <= frame < len(self):
            raise ArgumentError(f"frame: expected a number from {-len(self)} to {len(self) - 1}, got {frame}.")
        k = range(len(self))[frame]
        at = slice(int(self.contact_start[k]), int(self.contact_start[k + 1]))
        return Contacts(
            self.contact_position[at], self.contact_normal[at], self.contact_force[at], self.contact_friction[at], self.contact_bodies[at],
            self.contact_distance[at], self.contact_geoms[at],
        )  # fmt: skip

    def loop_force(self, loop: str) -> Floats:
        """Return the forces of one loop's rows, (T, rows) [N or N m], see ``loop_forces``.

        Args:
            loop: loop name.
        """
        slices = loop_slices(self.model)
        if loop not in slices:
            raise unknown("loop", loop, slices)
        return self.loop_forces[:, slices[loop]]

    # ---- files and other libraries ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to an ``.npz`` file, with the model as MJCF text; the file is either complete or absent.

        Args:
            path: path of the file; ``.npz`` is added if it is missing.

        Returns:
            The path written.

        Raises:
            WriteError: the folder is missing, the disk is full, …
        """
        target = named_path(path)
        if target.suffix != ".npz":
            target = target.with_name(target.name + ".npz")
        arrays = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "model"}
        with whole_file(target, f"trajectory of {len(self)} frames") as file:
            np.savez_compressed(file, format=np.int64(FORMAT), mjcf=np.str_(to_mjcf(self.model)), **arrays)
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trajectory:
        """Read what :meth:`save` wrote. The model is read from its MJCF text, so ``model.ignored`` of the original is lost.

        Files from others are safe to load: nothing in them is run, and no other file is opened.

        Raises:
            LoadError: no such file, or not a complete trajectory of this format.
        """
        where = repr(os.fspath(path))
        needed = {"format", "mjcf"} | {part.name for part in fields(cls) if part.name != "model" and part.name not in _LATER}
        try:
            file = np.load(path, allow_pickle=False)
            if isinstance(file, np.ndarray):
                raise LoadError(f"path: {where} holds one array, not a trajectory.")
            with file:
                if missing := sorted(needed - set(file.files)):
                    raise LoadError(f"path: {where} is no trajectory: it lacks {', '.join(missing)}. Trajectory.save writes them.")
                needed |= _LATER & set(file.files)
                parts = {name: _array(file, name) for name in needed}
        except DelassusError:
            raise
        except FileNotFoundError:
            raise LoadError(f"path: the file {where} does not exist.") from None
        except Exception as error:  # whatever NumPy's and zip's readers raise for a file that they did not write
            why = (
                "it is no .npz file, or not one of plain arrays"
                if "pickle" in str(error)
                else str(error).rstrip(".") or type(error).__name__
            )
            raise LoadError(f"path: {where} cannot be read as a trajectory: {why}.") from None
        if parts["format"].shape or parts["format"] != FORMAT:
            raise LoadError(f"path: {where} has format {parts['format']}; this version reads {FORMAT}.")
        if parts["mjcf"].shape or parts["mjcf"].dtype.kind != "U":
            raise LoadError(
                f"path: {where} is damaged: mjcf: expected one text, got dtype {parts['mjcf'].dtype} of shape {parts['mjcf'].shape}."
            )
        try:
            model = load_enclosed(str(parts["mjcf"]), "the text")
            return cls(model, **{name: parts[name] for name in needed - {"format", "mjcf"}})
        except (DelassusError, ValueError, OverflowError) as error:
            raise LoadError(f"path: {where} is damaged: {error}") from None

    def to_mujoco(self) -> tuple[Any, Floats, Floats]:
        """Return a ``mujoco.MjModel`` of the model, and the motion in its coordinates: qpos (T, nq), qvel (T, nv), new arrays.

        Raises:
            LoadError: MuJoCo refuses the model, such as chains of more than about 500 bodies.
        """
        made, _ = compiled(lambda: mujoco.MjModel.from_xml_string(self.model.to_mjcf()), "the model's MJCF text")
        return made, self.q.copy(), self.v.copy()

    # ---- pictures -----------------------------------------------------------------------------------------------------

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw energies, residuals, penetration with loop error, and contacts over time.

        Args:
            path: also write the figure there; its suffix gives the format (.png, .svg, .pdf).

        Returns:
            A ``matplotlib.figure.Figure`` of energies, residual, penetration (zero is at its lower edge), contacts and iterations that notebooks show by themselves; elsewhere ``figure.show()`` opens a window with your matplotlib backend.
        """
        figure = new_figure(figsize=(10, 6.5), layout="constrained")
        energies, residuals, depths, contacts = figure.subplots(2, 2, sharex=True).ravel()
        t, total = self.times, self.kinetic_energy + self.potential_energy
        for values, name in ((self.kinetic_energy, "kinetic"), (self.potential_energy, "potential"), (total, "sum")):
            energies.plot(t, values, label=name, linewidth=1.3)
        energies.set(title="Energy", ylabel="[J]")
        energies.legend(frameon=False)

        wrong = self.status != "solved"
        residuals.semilogy(t, _positive(self.residual), linewidth=1.3, color="tab:purple")
        if wrong.any():
            residuals.plot(t[wrong], _positive(self.residual)[wrong], "x", color="tab:red", label=f"{wrong.sum()} not solved")
            residuals.legend(frameon=False)
        residuals.set(title="Contact residual", ylabel="[m/s]")

        shown = {"penetration": self.penetration} | ({"loop error": self.loop_error} if self.model.loops else {})
        low, high = _decades(np.concatenate(list(shown.values())))
        for name, values in shown.items():
            depths.semilogy(t, np.maximum(values, low), label=name, linewidth=1.3)
        depths.set(title=" and ".join(shown).capitalize(), xlabel="t [s]", ylabel="[m]", ylim=(low, high))
        depths.legend(frameon=False)

        contacts.step(t, np.diff(self.contact_start), where="post", linewidth=1.3, color="tab:green", label="contacts")
        contacts.step(t, self.iterations, where="post", linewidth=1.0, color="tab:gray", label="iterations")
        contacts.set(title="Contacts and iterations", xlabel="t [s]")
        contacts.legend(frameon=False)
        contacts.yaxis.get_major_locator().set_params(integer=True)
        for ax in (energies, residuals, depths, contacts):
            ax.grid(alpha=0.3)
            ax.spines[["top", "right"]].set_visible(False)
        if path is not None:
            save_figure(figure, path)
        return figure
