"""A motion as one file that plays in a browser, without Python and without a network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._door import number
from ..constraints import Constraint
from ..errors import ArgumentError
from ..model import Loop, Model
from ..simulator import Trajectory
from ..simulator.files import named_path, whole_file
from .subject import serve, stop, subject

__all__ = ["record"]


def record(
    source: Model | Trajectory,
    path: str | os.PathLike[str],
    *,
    fps: float = 30.0,
    q: ArrayLike | None = None,
    constraints: Sequence[Constraint | Loop] | None = None,
    geometry: Any = None,
    cones: bool = False,
) -> Path:
    """Write a motion, or a model in a pose, to a file that plays in a browser.

    ``.html`` holds viser's player (MIT licence) and opens by itself, from a disk, without a network. ``.viser`` holds the motion alone, for a
    player elsewhere. The file appears whole or not at all.

    Args:
        source: a trajectory, or a model.
        path: ends in ``.html`` or ``.viser``.
        fps: frames per second; frames of the trajectory between them are left out.
        q, constraints: of a model: its pose (nq,), and constraints whose contacts are shown.
        geometry: the ``mujoco.MjModel`` the model came from, to show its meshes.
        cones: show friction cones.

    Returns:
        The path written.

    Raises:
        ArgumentError: another ending, an empty trajectory, …
        MissingExtraError: viser is not installed.
        WriteError: the folder is missing, the disk is full, …
    """
    target = named_path(path)
    if target.suffix not in (".html", ".viser"):
        raise ArgumentError(f"path: expected a file that ends in .html or .viser, got {os.fspath(path)!r}.")
    if number(fps, "fps") <= 0:
        raise ArgumentError(f"fps: expected a number above 0, got {fps:g}.")
    what = subject(source, q, constraints, geometry)
    server = serve("127.0.0.1", 0, what.model.name)
    try:
        with whole_file(target, f"recording of {len(what.states)} frames") as file:
            stage = what.stage(server)
            stage.groups["friction cones"].visible = cones
            stage.draw(what.states[0], what.contacts(0))
            film = server.get_scene_serializer()
            # the film's own first frame: a player that starts again puts back only what is sent in it, and what has not changed is not sent
            for k in (len(what.states) - 1, 0):
                stage.draw(what.states[k], what.contacts(k))
            for k, wait in _schedule(what.trajectory, fps):
                film.insert_sleep(wait)
                stage.draw(what.states[k], what.contacts(k))
            if what.trajectory is not None and len(what.trajectory) > 1:
                film.insert_sleep(1.0 / fps)
            if target.suffix == ".viser":
                file.write(film.serialize())
            else:
                page = film.as_html().replace("<title>Viser</title>", f"<title>{escape(what.model.name)}</title>", 1)
                file.write(page.encode())
    finally:
        stop(server)
    return target


def _schedule(trajectory: Trajectory | None, fps: float) -> list[tuple[int, float]]:
    """Frames after the first to show, and how long to wait before each [s]."""
    if trajectory is None or len(trajectory) == 1:
        return []
    t = trajectory.times - trajectory.times[0]
    moments = np.arange(1, int(np.floor(t[-1] * fps + 1e-9)) + 1) / fps
    frames = np.unique([*(np.searchsorted(t, moments + 1e-9, side="right") - 1), len(t) - 1])
    frames = frames[frames > 0]
    return list(zip(frames.tolist(), np.diff(t[[0, *frames]]).tolist(), strict=True))
