"""The contact problem of a simulation step: to study, to solve by other methods, or to attach to a report."""

from __future__ import annotations

import os
import zipfile
import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._door import as_array, count, number, text, unknown
from .._html import table
from ..errors import ArgumentError, DelassusError, LoadError
from ..solvers.contacts import _METHODS, ContactResult, solve_sets
from .files import whole_file
from .trajectory import Floats, Ints, _floats, _ints, _setter, _words

__all__ = ["ContactProblem"]

FORMAT = 1  # of the files; another number means another layout
KINDS = ("loop", "friction", "limit", "contact")


@dataclass(frozen=True, eq=False)
class ContactProblem:
    """The contact problem of a step of a :class:`~delassus.Simulator`: λ in its sets with σ = G λ + g, m rows, c contacts. Arrays are copied and read-only.

    It has the rows of all awake islands, one after the other; G has no entries between islands. Restitution and position correction come later and are not included.

    Attributes:
        G: (m, m) J M̂⁻¹ Jᵀ, symmetric positive semidefinite.
        g: (m,) velocities of the rows without their forces, and gaps over the timestep [m/s or rad/s].
        cones: (c, 2) first row and friction of every contact; its rows are the normal and two tangents, see ``frames``, and with torsional or rolling friction those of the
            rotation about the normal and the tangents, scaled by their coefficients divided by the sliding coefficient.
        intervals: (k, 3) row, lower and upper bound of all other rows [N s or N m s]; ±inf where there is none.
        warm_start: (m,) initial impulses of the step [N s or N m s].
        island: (m,) island of each row.
        kinds: (m,) "loop", "friction" (dry, of joints), "limit" or "contact".
        positions: (c, 3) [m], world; gaps: (c,) [m], negative for penetration.
        frames: (c, 3, 3) normal, from the second to the first body, and two tangents, one in each row; world.
        bodies: (c, 2) indices of the two bodies in ``body_names``.
        body_names: (nbody,) names.
        q, v, time: state at the start of the step.
        timestep: time step [s]; tolerance [m/s], max_iterations, method ("auto", "admm" or "newton"): options of the step's solver.
        model: name of the model.
        sizes: (c,) rows of every contact: 3, 4 or 6; default: 3 each.
    """

    G: Floats
    g: Floats
    cones: Floats
    intervals: Floats
    warm_start: Floats
    island: Ints
    kinds: NDArray[np.str_]
    positions: Floats
    gaps: Floats
    frames: Floats
    bodies: Ints
    body_names: NDArray[np.str_]
    q: Floats
    v: Floats
    time: float
    timestep: float
    tolerance: float
    max_iterations: int
    method: str
    model: str
    sizes: Ints = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        put = _setter(self)
        m, c = as_array(self.g, "g").size, len(np.atleast_1d(as_array(self.cones, "cones")))
        shapes: dict[str, tuple[int, ...]] = {
            "G": (m, m), "g": (m,), "cones": (c, 2), "warm_start": (m,), "positions": (c, 3), "gaps": (c,), "frames": (c, 3, 3),
            "q": (np.size(self.q),), "v": (np.size(self.v),),
        }  # fmt: skip
        for name, shape in shapes.items():
            put(name, _floats(getattr(self, name), name, shape))
        if self.sizes is None:
            put("sizes", np.full(c, 3))
        for name, shape in (("island", (m,)), ("bodies", (c, 2)), ("sizes", (c,))):
            put(name, _ints(getattr(self, name), name, shape))
        put("kinds", _words(self.kinds, "kinds", (m,)))
        put("body_names", _words(self.body_names, "body_names", (np.size(self.body_names),)))
        for name, least in (("time", None), ("timestep", 0.0), ("tolerance", 0.0)):
            put(name, number(getattr(self, name), name, minimum=least))
        put("max_iterations", count(self.max_iterations, "max_iterations"))
        put("model", text(self.model, "model"))
        if self.method not in _METHODS:
            raise unknown("method", self.method, _METHODS)
        self._check_sets(m, c)

    def _check_sets(self, m: int, c: int) -> None:
        """Check that every row is in exactly one set, that the sets are valid, and that indices are in range."""
        intervals = np.array(as_array(self.intervals, "intervals"), dtype=float)
        if not np.isin(self.sizes, (3, 4, 6)).all():
            raise ArgumentError(f"sizes: expected 3, 4 or 6 rows of every contact, got {np.unique(self.sizes).tolist()}.")
        free = m - int(self.sizes.sum())
        if intervals.shape != (free, 3):
            raise ArgumentError(f"intervals: expected shape {(free, 3)}, one for each row that is no contact's, got {intervals.shape}.")
        if np.isnan(intervals).any() or (intervals[:, 1] > intervals[:, 2]).any():
            raise ArgumentError("intervals: expected a row, a lower end and an upper end that is not below it.")
        intervals.setflags(write=False)
        object.__setattr__(self, "intervals", intervals)
        rows = np.concatenate([intervals[:, 0], *(first + np.arange(n) for first, n in zip(self.cones[:, 0], self.sizes, strict=True))])
        if not np.array_equal(np.sort(rows), np.arange(m)):
            raise ArgumentError(f"cones, intervals: expected every row from 0 to {m - 1} in one of them.")
        if (self.cones[:, 1] < 0).any():
            raise ArgumentError(f"cones: friction must not be negative, got {self.cones[:, 1].min():g}.")
        if np.abs(self.G - self.G.T).max(initial=0.0) > 1e-8 * np.abs(self.G).max(initial=0.0) or (self.G.diagonal() < 0).any():
            raise ArgumentError("G: expected a symmetric positive semidefinite matrix.")
        if not np.isin(self.kinds, KINDS).all():
            raise ArgumentError(f"kinds: expected {', '.join(KINDS)}.")
        if c and not ((self.bodies >= 0) & (self.bodies < len(self.body_names))).all():
            raise ArgumentError(f"bodies: expected indices from 0 to {len(self.body_names) - 1}.")

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.g)

    def __repr__(self) -> str:
        return f"<ContactProblem of {self.model!r} at t = {self.time:g} s: {len(self)} rows, {len(self.cones)} contacts, {len(np.unique(self.island))} islands>"

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        rows = [("time", f"{self.time:g} s"), ("rows", len(self)), ("contacts", len(self.cones)), ("islands", len(np.unique(self.island)))]
        return table(f"ContactProblem of {self.model}", rows)

    def solve(
        self, method: str | None = None, *, tolerance: float | None = None, max_iterations: int | None = None, warm: bool = True
    ) -> ContactResult:
        """Solve the problem by any method of :func:`~delassus.solve_contacts`, all islands together.

        With the defaults it has the warm start of the step and finds the same velocities, within the tolerance; forces may differ where they are not unique. The step itself solves
        island by island, and uses ``interior`` for small ones on which its own method does not converge.

        Args:
            method: any of :func:`~delassus.solve_contacts`; default: that of the step.
            tolerance: see :func:`~delassus.solve_contacts`; default: that of the step.
            max_iterations: default: that of the step, or of the method if another one is given.
            warm: start from ``warm_start``.
        """
        method = self.method if method is None else method
        if method not in _METHODS:
            raise unknown("method", method, _METHODS)
        limit = self.max_iterations if method == self.method else _METHODS[method][0]
        ends = self.intervals.copy()
        ends[np.isinf(ends)] = np.nan
        sizes = np.ones(len(self), dtype=int)
        starts = self.cones[:, 0].astype(int)
        sizes[starts] = self.sizes
        inner = [first + k for first, n in zip(starts, self.sizes, strict=True) for k in range(1, n)]
        sizes = np.delete(sizes, np.array(inner, dtype=int))
        return solve_sets(
            self.G, self.g, np.column_stack([self.cones, self.sizes]), ends, sizes.tolist(), method,
            self.tolerance if tolerance is None else number(tolerance, "tolerance", minimum=0.0),
            limit if max_iterations is None else count(max_iterations, "max_iterations"), self.warm_start if warm else None,
        )  # fmt: skip

    # ---- files ----------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to a file of plain arrays and return its path; ``.npz`` is appended if missing. The file is either complete or absent.

        Raises:
            WriteError: it cannot be written there.
        """
        given = Path(path)
        target = given if given.suffix == ".npz" else given.with_name(f"{given.name}.npz")
        with whole_file(target, f"contact problem of {len(self)} rows") as file:
            np.savez_compressed(file, contact_problem=np.int64(FORMAT), **{f.name: getattr(self, f.name) for f in fields(self)})
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ContactProblem:
        """Read what :meth:`save` wrote, and check it. Nothing in the file is run or opened.

        Raises:
            LoadError: no such file, or not a complete contact problem of this format.
        """
        where = repr(os.fspath(path))
        parts: dict[str, Any] = {}
        try:
            with open(path, "rb") as file, zipfile.ZipFile(file):
                file.seek(0)
                with np.load(file, allow_pickle=False) as arrays:
                    parts = {name: arrays[name] for name in arrays}
        except FileNotFoundError:
            raise LoadError(f"path: the file {where} does not exist.") from None
        except (OSError, ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
            raise LoadError(f"path: {where} cannot be read as a contact problem: it is no .npz file of plain arrays ({error}).") from None
        needed = {field.name for field in fields(cls)} - {"sizes"}
        if missing := sorted({"contact_problem", *needed} - parts.keys()):
            raise LoadError(f"path: {where} is no contact problem: it lacks {', '.join(missing)}. ContactProblem.save writes them.")
        if parts["contact_problem"].shape != () or parts["contact_problem"] != FORMAT:
            raise LoadError(f"path: {where} has format {parts['contact_problem']}; this version reads {FORMAT}.")
        for name in ("max_iterations", "method", "model"):
            if parts[name].shape == () and parts[name].dtype.kind in "iuU":
                parts[name] = parts[name].item()
        try:
            return cls(**{name: parts[name] for name in needed | ({"sizes"} & parts.keys())})
        except DelassusError as error:
            raise LoadError(f"path: {where} is damaged: {error}") from None


def problem_of_step(islands: list[_core.IslandProblem], **context: Any) -> ContactProblem:
    """Join the problems of a step's islands into one."""
    rows = [len(island.g) for island in islands]
    first = np.concatenate([[0], np.cumsum(rows)]).astype(int)
    G = np.zeros((first[-1], first[-1]))
    kinds: list[str] = []
    for start, island in zip(first, islands, strict=False):
        # the operator is symmetric up to rounding
        block = slice(start, start + len(island.g))
        G[block, block] = (island.matrix + island.matrix.T) / 2
        counts = (
            island.loop_rows,
            island.friction_rows,
            island.limit_rows,
            len(island.g) - island.loop_rows - island.friction_rows - island.limit_rows,
        )
        for kind, n in zip(KINDS, counts, strict=True):
            kinds += [kind] * n

    def joined(name: str, shape: tuple[int, ...], dtype: type = float) -> NDArray[Any]:
        parts: list[NDArray[Any]] = [np.reshape(np.array(getattr(island, name), dtype=dtype), shape) for island in islands]
        return np.concatenate([np.zeros((0, *shape[1:]), dtype=dtype), *parts])

    # row numbers of sets start at the first row of their island
    cones, intervals = joined("cones", (-1, 3)), joined("intervals", (-1, 3))
    cones[:, 0] += np.repeat(first[:-1], [len(island.cones) for island in islands])
    intervals[:, 0] += np.repeat(first[:-1], [len(island.intervals) for island in islands])
    return ContactProblem(
        G=G, g=joined("g", (-1,)), cones=cones[:, :2], sizes=cones[:, 2].astype(int), intervals=intervals, warm_start=joined("warm_start", (-1,)),
        island=np.repeat(np.arange(len(islands)), rows), kinds=np.array(kinds, dtype=np.str_), positions=joined("positions", (-1, 3)),
        gaps=joined("gaps", (-1,)), frames=joined("frames", (-1, 3, 3)), bodies=joined("bodies", (-1, 2), int), **context,
    )  # fmt: skip
