"""A motion as one file: a page that plays in a browser, without Python and without a network, or a video."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._door import count, number
from ..constraints import Constraint
from ..errors import ArgumentError
from ..model import Loop, Model
from ..simulator import Trajectory
from ..simulator.files import named_path, whole_file
from .looks import check_look
from .subject import Subject, find_viser, serve, stop, subject
from .video import VIDEOS, check_video, write_video

__all__ = ["record"]

RECORDINGS = (".html", ".viser", *VIDEOS)


def record(
    source: Model | Trajectory,
    path: str | os.PathLike[str],
    *,
    fps: float | None = None,
    q: ArrayLike | None = None,
    constraints: Sequence[Constraint | Loop] | None = None,
    geometry: Any = None,
    cones: bool = False,
    labels: bool = False,
    look: str = "light",
    size: tuple[int, int] = (640, 480),
    progress: Callable[[float], object] | None = None,
) -> Path:
    """Write a motion, or a model in a pose, to a file: a page that plays in a browser, or a video.

    ``.html`` contains viser's player (MIT licence) and opens from disk, without a network. ``.viser`` contains the motion only, for a
    player elsewhere. ``.gif``, ``.webp`` and ``.mp4`` (extra ``video``) are drawn without a graphics card, a browser or viser. The file is either complete or absent.

    Args:
        source: a trajectory, or a model.
        path: path that ends in ``.html``, ``.viser``, ``.gif``, ``.webp`` or ``.mp4``.
        fps: frames per second; frames of the trajectory between them are left out. Default: 30, for videos 25.
        q, constraints: models only: pose (nq,), and constraints whose contacts are shown.
        geometry: a ``mujoco.MjModel`` with the same bodies, to show its shapes instead of those of the model; a saved motion only has collision shapes.
        cones: show friction cones, in pages.
        labels: show the names of bodies, in pages.
        look: "light" or "dark".
        size: width and height of a video [pixels].
        progress: called with the fraction of a video that is drawn, from 0 to 1.

    Returns:
        The path written.

    Raises:
        ArgumentError: unknown suffix, empty trajectory, …
        MissingExtraError: viser is not installed, or for an ``.mp4`` ffmpeg.
        WriteError: the folder is missing, the disk is full, …
    """
    target = named_path(path)
    if target.suffix not in RECORDINGS:
        raise ArgumentError(f"path: expected a file that ends in {', '.join(RECORDINGS)}, got {os.fspath(path)!r}.")
    film = target.suffix in VIDEOS
    rate = (25.0 if film else 30.0) if fps is None else number(fps, "fps")
    if rate <= 0:
        raise ArgumentError(f"fps: expected a number above 0, got {rate:g}.")
    width, height = (count(n, "size", 16) for n in size)
    check_look(look)
    what = subject(source, q, constraints, geometry)
    schedule = _schedule(what.trajectory, rate)
    if film:
        check_video(target.suffix)
        with whole_file(target, f"film of {len(schedule) + 1} frames") as file:
            write_video(file, target.suffix, what, schedule, fps=rate, size=(width, height), look=look, progress=progress)
    else:
        _write_page(target, what, schedule, rate, cones=cones, labels=labels, look=look)
    return target


def check_recording(suffix: str) -> None:
    """Check that the packages that write files with this suffix are installed.

    Raises:
        MissingExtraError: viser is not installed, or for an ``.mp4`` ffmpeg.
    """
    if suffix in VIDEOS:
        check_video(suffix)
    else:
        find_viser()


def _write_page(
    target: Path, what: Subject, schedule: list[tuple[int, float]], fps: float, *, cones: bool, labels: bool, look: str
) -> None:
    """Write a motion in viser's format."""
    server = serve("127.0.0.1", 0, what.model.name, look)
    try:
        with whole_file(target, f"recording of {len(what.states)} frames") as file:
            stage = what.stage(server, look)
            stage.groups["friction cones"].visible = cones
            stage.show_names(labels)
            stage.draw(what.states[0], what.contacts(0))
            # the recording begins with the current scene, where a looping player restarts
            film = server.get_scene_serializer()
            _freeze(film)
            for k, wait in schedule:
                film.insert_sleep(wait)
                stage.draw(what.states[k], what.contacts(k))
            if what.trajectory is not None and len(what.trajectory) > 1:
                film.insert_sleep(1.0 / fps)
            if target.suffix == ".viser":
                file.write(film.serialize())
            else:
                page = film.as_html(dark_mode=check_look(look).dark)
                file.write(page.replace("<title>Viser</title>", f"<title>{escape(what.model.name)}</title>", 1).encode())
    finally:
        stop(server)


def _freeze(film: Any) -> None:
    """Copy the arrays recorded so far: viser writes later values of a property into the same memory, so the recording would begin with its last frame."""
    film._binary_buffers[:] = [memoryview(bytes(buffer)) for buffer in film._binary_buffers]


def _schedule(trajectory: Trajectory | None, fps: float) -> list[tuple[int, float]]:
    """Frames to show after the first, and the delay before each [s]."""
    if trajectory is None or len(trajectory) == 1:
        return []
    t = trajectory.times - trajectory.times[0]
    moments = np.arange(1, int(np.floor(t[-1] * fps + 1e-9)) + 1) / fps
    frames = np.unique([*(np.searchsorted(t, moments + 1e-9, side="right") - 1), len(t) - 1])
    frames = frames[frames > 0]
    return list(zip(frames.tolist(), np.diff(t[[0, *frames]]).tolist(), strict=True))
