"""The subject of a viewer: a model in a pose, or a trajectory; and the viser server it is drawn on."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import numbers
from ..constraints import Constraint, collect
from ..errors import ArgumentError, ArgumentTypeError, MissingExtraError
from ..model import Loop, Model
from ..simulator import Contacts, Trajectory
from ..state import normalize
from .guard import guarded
from .looks import LOOKS
from .solids import Solid, of_model, of_mujoco
from .stage import Stage, crowd, outline, radius, touching

__all__ = ["Subject", "force_scale", "serve", "stop", "subject"]

Floats = NDArray[np.float64]
ARROW = 0.4  # length of the arrow of a large force (90th percentile), as a fraction of the scene's radius
GLANCES = 40  # number of frames from which the camera's box is made


@dataclass(frozen=True, eq=False)
class Subject:
    """A model, its drawn shapes, its states (K, nq), and their trajectory if there is one."""

    model: Model
    solids: list[Solid]
    states: Floats
    constraints: list[Constraint]
    trajectory: Trajectory | None

    def contacts(self, frame: int) -> Contacts:
        """Contacts of a frame; for a single pose those of its constraints."""
        if self.trajectory is not None:
            return self.trajectory.contacts(frame)
        return self._held

    @cached_property
    def _held(self) -> Contacts:
        """Contacts of a single pose, with the forces that act on it at rest."""
        return touching(self.model, self.states[0], self.constraints)

    def stage(self, server: Any, look: str) -> Stage:
        """Set it up on a server, with sizes and camera that fit all its frames."""
        looks = self.states[np.unique(np.linspace(0, len(self.states) - 1, GLANCES).astype(int))]
        points = outline(self.model, self.solids, looks)
        room = len(self.contacts(0)) if self.trajectory is None else int(np.diff(self.trajectory.contact_start).max())
        newton, example = force_scale(self, radius(points))
        return Stage(server, self.model, self.solids, points, contacts=room, newton=newton, example=example, look=look)


def force_scale(what: Subject, reach: float) -> tuple[float, float]:
    """Return the length of an arrow for 1 N [m] in a scene of this radius, and a round force whose arrow suits a legend [N]; zero if there are no forces."""
    if what.trajectory is not None:
        forces, most = np.linalg.norm(what.trajectory.contact_force, axis=1), int(np.diff(what.trajectory.contact_start).max())
    else:
        forces, most = np.linalg.norm(what.contacts(0).force, axis=1), len(what.contacts(0))
    pressed = forces[forces > 1e-6 * max(forces.max(initial=0.0), 1e-12)]
    if not len(pressed):
        return ARROW * reach / max(9.81 * what.model.mass, 1e-9), 0.0
    newton = ARROW * crowd(most) * reach / float(np.quantile(pressed, 0.9))
    wanted = 0.3 * reach / newton
    size = 10.0 ** np.floor(np.log10(wanted))
    return newton, float(max(step * size for step in (1, 2, 5) if step * size <= wanted * (1 + 1e-9)))


def subject(source: Model | Trajectory, q: ArrayLike | None, constraints: Sequence[Constraint | Loop] | None, geometry: Any) -> Subject:
    """Check the arguments of a viewer."""
    if isinstance(source, Trajectory):
        if q is not None or constraints is not None:
            raise ArgumentError("q, constraints: a trajectory has its own states and contacts. Give them with a model only.")
        if len(source) == 0:
            raise ArgumentError("source: expected a trajectory with frames, got an empty one.")
        model, states, trajectory, held = source.model, source.q, source, []
    elif isinstance(source, Model):
        model, trajectory = source, None
        first = next(iter(model.keyframes.values()), None)
        pose = normalize(model, numbers(q, "q", (model.nq,))) if q is not None else model.neutral() if first is None else first
        states, held = np.array([pose]), collect(model, constraints or ())
    else:
        raise ArgumentTypeError(f"source: expected a delassus.Model or a Trajectory, got {type(source).__name__}. Use delassus.load.")
    return Subject(model, _solids(model, geometry), states, held, trajectory)


def _solids(model: Model, geometry: Any) -> list[Solid]:
    """Shapes to draw: those of MuJoCo's model if one is given, or if the model has one with meshes or shapes that are only drawn; else the model's primitives."""
    own = model._compiled
    if geometry is None and own is not None and (own.nmesh or ((own.geom_contype | own.geom_conaffinity) == 0).any()):
        geometry = own
    return of_model(model) if geometry is None else of_mujoco(geometry, model)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep viser, which uses rich's console, from printing."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def stop(server: Any) -> None:
    """Stop a server that :func:`serve` started."""
    with _quietly():
        server.stop()


def find_viser() -> Any:
    """Return the module of the viewer's server.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module("viser")
    except ImportError:
        raise MissingExtraError('viser is not installed, and the viewer needs it: pip install "delassus[viewer]".') from None


def serve(host: str, port: int, label: str, look: str = "light") -> Any:
    """Start a viser server that prints nothing and refuses pages of other sites; port 0 picks any free one.

    Raises:
        MissingExtraError: viser is not installed.
        ArgumentError: the port is taken or invalid.
    """
    viser = find_viser()
    try:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
            port = trial.getsockname()[1]
    except (OSError, OverflowError) as error:
        raise ArgumentError(f"port: {host}:{port} cannot be opened: {error}. Use port=0 for any that is free.") from None
    with _quietly(), guarded():
        server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
    server.gui.configure_theme(dark_mode=LOOKS[look].dark, show_logo=False, show_share_button=False, brand_color=(38, 139, 148))
    return server
