"""A window in the browser on a mechanism: it moves, and shows contacts, loops, plots and the order of elimination."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Mapping, Sequence
from html import escape
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import as_array, finite, numbers
from ..constraints import Constraint, PointContact
from ..errors import ArgumentError, StaleError
from ..model import Loop, Model
from ..simulator import Contacts, Trajectory
from ..simulator.loop_rows import loop_slices
from .looks import check_look
from .stage import elimination_shares
from .subject import serve, stop, subject

__all__ = ["View"]

Floats = NDArray[np.float64]
RATE = 30.0  # frames per second while playing
PLOTTED = 400  # number of points in a plot
BLUE, ORANGE, GREEN, PURPLE, TEAL, PINK = "#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#268b94", "#d62782"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, TEAL, PINK)
SPEEDS = {"0.1 ×": 0.1, "0.25 ×": 0.25, "0.5 ×": 0.5, "1 ×": 1.0, "2 ×": 2.0, "4 ×": 4.0}
BY_ROBOT, BY_BODY, AS_DESCRIBED, BY_ELIMINATION = "by robot", "by body", "as described", "elimination order"
LEGEND = (
    '<div style="margin:0 1em 0.6em;font-size:0.8em;color:#666"><div style="height:0.6em;border-radius:0.3em;background:linear-gradient(90deg,'
    '#440154,#3b528b,#21918c,#5ec962,#fde725)"></div><div style="display:flex;justify-content:space-between"><span>eliminated first</span>'
    "<span>last</span></div>grey: no constraint reaches it</div>"
)


def _short(moment: float) -> float:
    """Round a time to the resolution of a slider [s]."""
    return round(float(moment), 6)


def _own_plots(plots: Mapping[str, ArrayLike] | None, trajectory: Trajectory | None) -> dict[str, Floats]:
    """Check curves that a user gave: title → (T, k)."""
    if plots and trajectory is None:
        raise ArgumentError("plots: expected a trajectory to plot beside, got a model.")
    frames = 0 if trajectory is None else len(trajectory)
    checked = {}
    for title, values in (plots or {}).items():
        array = finite(as_array(values, f"plots[{title!r}]"), f"plots[{title!r}]").astype(float)
        if array.ndim not in (1, 2) or len(array) != frames:
            raise ArgumentError(f"plots[{title!r}]: expected shape ({frames},) or ({frames}, k), got {array.shape}.")
        checked[title] = array.reshape(frames, -1)
    return checked


class View:
    """Show a model, or play a trajectory, in a browser window at ``url``.

    A trajectory has a time slider, play and pause, speed, plots of energies and residuals. Contacts are points with force arrows (green where
    they stick, orange where they slide) and friction cones; the ends of a loop are a ball and a ring. Bodies can be coloured by their position in
    the elimination of the Delassus operator. Also a context manager, which closes it.

    Args:
        source: a :class:`~delassus.Model` or a :class:`~delassus.Trajectory`.
        q: (nq,) pose of a model. Default: its first keyframe, or neutral.
        constraints: models only: their contacts are shown, and they determine the elimination order. Default: its loops.
        geometry: a ``mujoco.MjModel`` with the same bodies, to show its shapes instead of those of the model; a saved motion only has collision shapes.
        pose: sliders for the joints of a model.
        look: "light" or "dark".
        plots: further curves for a trajectory, such as sensors: title → (T,) or (T, k) numbers.
        host, port: address to listen on; by default only this machine; port 0 picks any free one.

    Raises:
        MissingExtraError: viser is not installed.
        ArgumentError: the port is taken, an empty trajectory, …
    """

    def __init__(
        self,
        source: Model | Trajectory,
        *,
        q: ArrayLike | None = None,
        constraints: Sequence[Constraint | Loop] | None = None,
        geometry: Any = None,
        pose: bool = False,
        look: str = "light",
        plots: Mapping[str, ArrayLike] | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> None:
        check_look(look)
        self._subject = subject(source, q, constraints, geometry)
        self._model, self._trajectory = self._subject.model, self._subject.trajectory
        self._own_plots = _own_plots(plots, self._trajectory)
        self._server = serve(host, port, self._model.name, look)
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._playing = False
        self._frame = 0
        self._q: Floats = self._subject.states[0]
        self._contacts: Contacts | None = self._subject.contacts(0)
        self._pairs: Any = None  # pairs in contact for which the elimination colours were computed
        self._painted = BY_ROBOT
        self._controls: dict[str, Any] = {}
        atexit.register(self.close)
        self._stage = self._subject.stage(self._server, look)
        self._panel(pose)
        self._draw()
        if self._trajectory is not None and len(self._trajectory) > 1:
            threading.Thread(target=self._run, name="delassus view", daemon=True).start()

    # ---- public methods -----------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Address of the page."""
        host = self._server.get_host()
        return f"http://{'localhost' if host in ('0.0.0.0', '127.0.0.1') else host}:{self._server.get_port()}"

    @property
    def frame(self) -> int:
        """Frame of the trajectory that is shown."""
        return self._frame

    def show(self, frame: int) -> None:
        """Show a frame of the trajectory: from 0 on, or from the end if negative."""
        n = 0 if self._trajectory is None else len(self._trajectory)
        if self._trajectory is None or not -n <= frame < n:
            raise ArgumentError(
                f"frame: expected a number from {-n} to {n - 1}, got {frame}." if n else "frame: a model has no frames. Use update(q)."
            )
        with self._lock:
            self._open()
            self._frame = range(n)[frame]
            self._q, self._contacts = self._trajectory.q[self._frame], self._trajectory.contacts(self._frame)
            if "time" in self._controls:
                self._controls["time"].value = _short(self._trajectory.times[self._frame])
            self._draw()

    def update(self, q: ArrayLike, contacts: Contacts | None = None) -> None:
        """Show a state immediately, for live use.

        Args:
            q: (nq,) configuration.
            contacts: contacts in this state.
        """
        pose = numbers(q, "q", (self._model.nq,))
        with self._lock:
            self._open()
            self._playing = False
            self._q, self._contacts = pose, contacts
            self._draw()

    def play(self) -> None:
        """Play the trajectory in a loop, from the current frame on."""
        self._set_playing(True)

    def pause(self) -> None:
        """Stop playing."""
        self._set_playing(False)

    def wait(self) -> None:
        """Wait until the view is closed, or the user interrupts."""
        while not self._closed.wait(0.5):
            pass

    def close(self) -> None:
        """Stop serving the page; further calls do nothing."""
        with self._lock:
            if not self._closed.is_set():
                self._closed.set()
                atexit.unregister(self.close)
                stop(self._server)

    def __enter__(self) -> View:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<View of {self._model.name!r}: {'closed' if self._closed.is_set() else self.url}>"

    def _repr_html_(self) -> str:
        """Return the page, embedded in a notebook."""
        if self._closed.is_set():
            return f"<p>{escape(repr(self))}</p>"
        return f'<iframe src="{self.url}" width="100%" height="520" style="border:1px solid #ccc;border-radius:4px"></iframe>'

    # ---- drawing ------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._closed.is_set():
            raise StaleError("this view is closed. Make another one.")

    def _draw(self) -> None:
        self._stage.draw(self._q, self._contacts)
        self._recolor()
        if "told" in self._controls:
            self._controls["told"].content = self._told()

    def _told(self) -> str:
        n = 0 if self._contacts is None else len(self._contacts)
        told = f"{n} contact{'' if n == 1 else 's'}"
        if self._trajectory is not None:
            k, t = self._frame, self._trajectory
            told = f"frame {k + 1} of {len(t)} · {told} · {t.status[k]}, {t.iterations[k]} iteration{'' if t.iterations[k] == 1 else 's'}"
        return f"<small>{told}</small>"

    def _recolor(self) -> None:
        """Colour bodies as the user chose; the elimination order changes only with the pairs of bodies in contact."""
        chosen = self._controls["colors"].value
        if chosen != BY_ELIMINATION:
            if chosen != self._painted:
                self._pairs, self._painted = None, chosen
                {BY_ROBOT: self._stage.color_by_robot, BY_BODY: self._stage.color_by_body, AS_DESCRIBED: self._stage.color_as_described}[
                    chosen
                ]()
            return
        self._painted = chosen
        touching = np.empty((0, 2), int) if self._contacts is None else self._contacts.bodies
        pairs = frozenset(map(tuple, touching.tolist()))
        if pairs == self._pairs:
            return
        self._pairs = pairs
        held: list[Constraint | Loop] = list(self._subject.constraints)
        if self._trajectory is not None or not held:
            held = [*self._model.loops, *(PointContact(self._model, a, other=b) for a, b in sorted(pairs))]
        self._stage.color_by_share(elimination_shares(self._model, held))

    # ---- the panel ----------------------------------------------------------------------------------------------------

    def _panel(self, pose: bool) -> None:
        gui = self._server.gui
        gui.set_panel_label(self._model.name)
        gui.main_panel.dock_right()
        if self._trajectory is not None and len(self._trajectory) > 1:
            self._time_controls(gui, self._trajectory)
        if self._trajectory is not None or self._subject.constraints:
            self._controls["told"] = gui.add_markdown(self._told())
        tabs = gui.add_tab_group()
        with tabs.add_tab("Show"):
            self._show_controls(gui)
        if self._trajectory is not None and len(self._trajectory) > 1:
            with tabs.add_tab("Plots"):
                self._plots(gui, self._trajectory)
        if pose and self._trajectory is None:
            with tabs.add_tab("Pose"):
                self._pose_controls(gui)

    def _time_controls(self, gui: Any, trajectory: Trajectory) -> None:
        t = trajectory.times
        step = float(f"{np.diff(t).min():.3g}")
        slider = gui.add_slider("Time [s]", min=_short(t[0]), max=_short(t[-1]), step=step, initial_value=_short(t[0]))
        button = gui.add_button("Play")
        speed = gui.add_dropdown("Speed", tuple(SPEEDS), initial_value="1 ×")
        self._controls |= {"time": slider, "button": button, "speed": speed}

        def moved(event: Any) -> None:
            if event.client is not None:  # moved by the user, not by our own code
                self.pause()
                self.show(int(np.abs(t - slider.value).argmin()))

        slider.on_update(moved)

        def pressed(_: Any) -> None:
            self._set_playing(not self._playing)

        button.on_click(pressed)

    def _show_controls(self, gui: Any) -> None:
        groups, stage = self._stage.groups, self._stage

        def toggle(label: str, group: str, on: bool, *, known: bool = True) -> None:
            hint = None if known else "No forces are known here."
            box = gui.add_checkbox(label, on and known, disabled=not known, hint=hint)
            groups[group].visible = on and known

            def switched(_: Any) -> None:
                groups[group].visible = box.value

            box.on_update(switched)

        toggle("Contact points", "contact points", True)
        forces = self._trajectory.contact_force if self._trajectory is not None else self._subject.contacts(0).force
        toggle("Contact forces", "contact forces", True, known=bool(np.any(forces)))
        if "force scale" in groups:
            toggle("Scale of forces", "force scale", True)
        toggle("Friction cones", "friction cones", False)
        if stage.has_loops:
            toggle("Loops", "loops", True)
        if np.any(forces):
            length = gui.add_slider("Arrow length", min=0.1, max=5.0, step=0.1, initial_value=1.0)
            newton = stage.newton

            def stretched(_: Any) -> None:
                with self._lock:
                    stage.scale_forces(newton * length.value)

            length.on_update(stretched)

        see_through = gui.add_checkbox("See through bodies", False)

        def seen_through(_: Any) -> None:
            stage.set_opacity(0.35 if see_through.value else None)

        see_through.on_update(seen_through)

        names = gui.add_checkbox("Names of bodies", False)

        def named(_: Any) -> None:
            with self._lock:
                stage.show_names(names.value)

        names.on_update(named)

        colors = gui.add_dropdown("Colours", (BY_ROBOT, BY_BODY, AS_DESCRIBED, BY_ELIMINATION))
        legend = gui.add_html(LEGEND, visible=False)
        self._controls["colors"] = colors

        def colored(_: Any) -> None:
            legend.visible = colors.value == BY_ELIMINATION
            with self._lock:
                self._recolor()

        colors.on_update(colored)

    def _plots(self, gui: Any, trajectory: Trajectory) -> None:
        kept = np.unique(np.linspace(0, len(trajectory) - 1, PLOTTED).astype(int))
        t = trajectory.times[kept]

        def chart(title: str, curves: dict[str, tuple[Floats, str]]) -> None:
            lines = [{"label": name, "stroke": color, "width": 1.5} for name, (_, color) in curves.items()]
            gui.add_uplot(
                data=(t, *(np.ascontiguousarray(values) for values, _ in curves.values())),
                series=({"label": "t [s]"}, *lines),
                title=title,
                scales={"x": {"time": False}},
                legend={"show": True},
                height=170,
            )

        def exponent(values: Floats) -> Floats:
            return np.log10(np.where(values[kept] > 0, values[kept], np.nan))

        kinetic, potential = trajectory.kinetic_energy[kept], trajectory.potential_energy[kept]
        chart("Energy [J]", {"kinetic": (kinetic, BLUE), "potential": (potential, ORANGE), "sum": (kinetic + potential, GREEN)})
        chart("Contact residual, log₁₀ [m/s]", {"residual": (exponent(trajectory.residual), PURPLE)})
        depths = {"penetration": (exponent(trajectory.penetration), TEAL)}
        if self._stage.has_loops:
            depths["loop error"] = (exponent(trajectory.loop_error), PINK)
        chart("Depths, log₁₀ [m]", depths)
        totals = np.array([np.linalg.norm(trajectory.contacts(k).force, axis=1).sum() for k in kept])
        chart("Sum of contact forces [N]", {"contacts": (totals, GREEN)})
        for name, rows in loop_slices(self._model).items():
            if trajectory.loop_forces[:, rows].any():
                chart(f"Force of loop {name} [N]", {"size": (np.linalg.norm(trajectory.loop_forces[kept, rows], axis=1), PINK)})
        for title, values in self._own_plots.items():
            curves = {
                f"{k}" if values.shape[1] > 1 else title: (values[kept, k], PALETTE[k % len(PALETTE)]) for k in range(values.shape[1])
            }
            chart(title, curves)

    def _pose_controls(self, gui: Any) -> None:
        """Sliders of hinges and slides; unbounded ones extend half a turn, or half a metre, either way."""

        def control(joint: int) -> None:
            at = int(self._model.joint_qadr[joint])
            reach = np.pi if self._model.joint_type[joint] == "hinge" else 0.5
            now = float(self._q[at])
            low, high = (
                float(bound) if np.isfinite(bound) else now + side * reach
                for bound, side in zip(self._model.joint_range[joint], (-1, 1), strict=True)
            )
            low, high = np.floor(100 * min(low, now)) / 100, np.ceil(100 * max(high, now)) / 100
            slider = gui.add_slider(self._model.joint_names[joint], min=low, max=high, step=0.001, initial_value=round(now, 3))

            def turned(_: Any) -> None:
                with self._lock:
                    pose = np.array(self._q)
                    pose[at] = slider.value
                    self.update(pose)

            slider.on_update(turned)

        for joint, kind in enumerate(self._model.joint_type):
            if kind in ("hinge", "slide"):
                control(joint)

    # ---- playing ------------------------------------------------------------------------------------------------------

    def _set_playing(self, playing: bool) -> None:
        with self._lock:
            self._open()
            if "button" in self._controls and playing != self._playing:
                self._playing = playing
                self._controls["button"].label = "Pause" if playing else "Play"

    def _run(self) -> None:
        """Show frames in real time, skipping those there is no time for."""
        t = self._trajectory.times if self._trajectory is not None else np.zeros(1)
        before = time.monotonic()
        now = float(t[0])
        while not self._closed.wait(1 / RATE):
            elapsed, before = time.monotonic() - before, time.monotonic()
            with self._lock:
                if not self._playing or self._closed.is_set():
                    now = float(t[self._frame])
                    continue
                now += elapsed * SPEEDS[self._controls["speed"].value]
                if now > t[-1] + 0.5 * SPEEDS[self._controls["speed"].value]:
                    now = float(t[0])  # restart after a short pause at the end
                frame = int(np.searchsorted(t, now + 1e-9, side="right")) - 1
                if frame != self._frame:
                    self.show(frame)
