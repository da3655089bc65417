"""A live simulation in a browser window, in real time: drag bodies, move controls, change friction and time step."""

from __future__ import annotations

import atexit
import copy
import threading
import time
from collections import deque
from html import escape
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._door import numbers
from ..dynamics import solve_mass_matrix
from ..errors import ArgumentError, StaleError, UnstableError
from ..model import Frame, Model
from ..simulator import Simulator, StepResult
from ..state import body_placements, on_body, point_jacobian
from .looks import check_look
from .solids import of_mujoco
from .stage import Stage, outline, radius
from .subject import ARROW, serve, stop

__all__ = ["Play"]

Floats = NDArray[np.float64]
RATE = 30.0  # frames per second
BEHIND = 0.1  # beyond this lag simulated time runs slower than real time instead of catching up [s]
KEPT = 300  # number of points in a plot
PLOT_EVERY = 6  # frames between updates of the plots
STIFFNESS = 90.0  # stiffness of the dragging spring per mass it pulls, ω² [1/s²]
SPEEDS = {"0.1 ×": 0.1, "0.25 ×": 0.25, "0.5 ×": 0.5, "1 ×": 1.0, "2 ×": 2.0}
FEW_SENSORS = 6
COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#268b94", "#d62782")


class Play:
    """Simulate in a browser window at ``url``, in real time.

    Drag a body to pull it with a spring: its mass times 90 /s² times the distance to the pointer. The panel has pause, single step, reset to a keyframe, speed, sliders for the
    actuators' controls, for friction and the time step, and plots of residual, contact forces, sensors and loop forces in real time. Also a context manager, which closes it.

    Args:
        simulator: a simulator, continued from its state, or anything that :class:`~delassus.Simulator` takes. New friction or time step: a new one, see :attr:`simulator`.
        control: (nu,) initial actuator commands; default: those of the keyframe "home", else zero.
        paused: start paused, until *Run*.
        look: "light" or "dark".
        host, port: address to listen on; by default only this machine; port 0 picks any free one.

    Raises:
        MissingExtraError: viser is not installed.
        ArgumentError: the port is taken, …
    """

    def __init__(
        self,
        simulator: Any,
        *,
        control: Any = None,
        paused: bool = False,
        look: str = "light",
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> None:
        check_look(look)
        made = not isinstance(simulator, Simulator)
        self._sim = Simulator(simulator) if made else simulator
        keys = self._sim.model.keyframes
        if made and "home" in keys:
            self._sim.reset("home")
        self._source = copy.copy(self._sim._source)
        self._model: Model = self._sim.model
        named = self._model.keyframe_controls.get("home") if control is None else control
        self._control: Floats = np.zeros(self._model.nu) if named is None else np.array(named, dtype=float)
        self._friction, self._timestep = 1.0, self._sim.timestep
        self._lock, self._closed = threading.RLock(), threading.Event()
        self._running, self._trouble = not paused, ""
        self._pull: tuple[int, Floats, Floats] | None = None
        self._step: StepResult | None = None
        self._factor = 0.0
        self._start = (self._sim.q, self._sim.v, self._sim.time, self._control.copy())
        self._controls: dict[str, Any] = {}
        self._history: dict[str, deque[Any]] = {}
        self._charts: list[tuple[Any, list[str]]] = []

        self._server = serve(host, port, self._model.name, look)
        atexit.register(self.close)
        self._stage = self._make_stage(look)
        self._panel()
        self._watch_drags()
        self._draw()
        threading.Thread(target=self._run, name="delassus play", daemon=True).start()

    def _make_stage(self, look: str) -> Stage:
        solids = of_mujoco(self._source, self._model)
        points = outline(self._model, [s for s in solids if s.body] or solids, self._sim.q[None])
        # space to move in: around its middle, not below its lowest point
        middle, reach = (points.min(axis=0) + points.max(axis=0)) / 2, radius(points)
        around = middle + 0.75 * reach * np.array([[1, 1, 0], [-1, -1, 0], [1, -1, 0], [-1, 1, 0]])
        weight = max(9.81 * self._model.mass, 1e-9)
        newton = ARROW * reach / (0.5 * weight)
        size = 10.0 ** np.floor(np.log10(weight))
        example = max(k * size for k in (1, 2, 5) if k * size <= weight * (1 + 1e-9))
        return Stage(self._server, self._model, solids, np.vstack([points, around]), contacts=16, newton=newton, example=example, look=look)

    # ---- public methods -----------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Address of the page."""
        host = self._server.get_host()
        return f"http://{'localhost' if host in ('0.0.0.0', '127.0.0.1') else host}:{self._server.get_port()}"

    @property
    def simulator(self) -> Simulator:
        """The running simulator; a new one after a change of friction or time step. Do not step it while this runs."""
        return self._sim

    @property
    def running(self) -> bool:
        """Whether the simulation runs; assign to change it."""
        return self._running

    @running.setter
    def running(self, running: bool) -> None:
        with self._lock:
            self._open()
            self._running = bool(running)
            self._controls["run"].label = "Pause" if running else "Run"

    def step(self) -> StepResult:
        """Pause, and advance by one time step."""
        with self._lock:
            self.running = False
            self._advance(1)
            self._draw()
            assert self._step is not None
            return self._step

    def reset(self, keyframe: str | None = None) -> None:
        """Return to the initial state, or to a keyframe and its controls."""
        with self._lock:
            self._open()
            if keyframe is None:
                q, v, begun, control = self._start
                self._sim.reset(q, v, begun)
            else:
                self._sim.reset(keyframe)
                control = self._model.keyframe_controls.get(keyframe, self._control)
            for k, value in enumerate(control):
                self._set_control(k, float(value))
            self._trouble, self._step = "", None
            for values in self._history.values():
                values.clear()
            self._draw()

    def pull(self, body: str | int | Frame, point: Any, target: Any) -> None:
        """Pull a body with a spring, as by dragging, until :meth:`release`.

        Args:
            body: name of a body, joint or frame, or a :class:`~delassus.Frame`.
            point: (3,) point on it, in its frame [m].
            target: (3,) point that the spring pulls towards, world [m].
        """
        frame = self._model.frame(body)
        if not self._model.body_moves[index := self._model.body_index(frame.body)]:
            raise ArgumentError(f"body: expected one that moves, got {frame.body!r}.")
        at, to = on_body(frame, numbers(point, "point", (3,))), numbers(target, "target", (3,))
        with self._lock:
            self._pull = (index, at, to)

    def release(self) -> None:
        """Release the pulled body."""
        with self._lock:
            self._pull = None

    def wait(self) -> None:
        """Wait until the window is closed by the program, or the user interrupts."""
        while not self._closed.wait(0.5):
            pass

    def close(self) -> None:
        """Stop the simulation and the page; further calls do nothing."""
        with self._lock:
            if not self._closed.is_set():
                self._closed.set()
                atexit.unregister(self.close)
                stop(self._server)

    def __enter__(self) -> Play:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Play of {self._model.name!r}: {'closed' if self._closed.is_set() else self.url}>"

    def _repr_html_(self) -> str:
        """Return the page, embedded in a notebook."""
        if self._closed.is_set():
            return f"<p>{escape(repr(self))}</p>"
        return f'<iframe src="{self.url}" width="100%" height="520" style="border:1px solid #ccc;border-radius:4px"></iframe>'

    def _open(self) -> None:
        if self._closed.is_set():
            raise StaleError("this window is closed. Make another one.")

    # ---- motion -------------------------------------------------------------------------------------------------------

    def _advance(self, steps: int) -> None:
        """Take some steps, with the spring of the pointer; an error is shown and pauses the simulation."""
        try:
            for _ in range(steps):
                self._step = self._sim.step(control=self._control if self._model.nu else None, external_forces=self._spring())
        except UnstableError as error:
            self._trouble = str(error)
            self.running = False

    def _spring(self) -> Floats | None:
        """Wrenches on bodies (nbody, 6) of the spring that pulls a body at the grabbed point: f = m k (target − x) − d ẋ, m the mass of its whole tree.

        Critical damping is d = 2 m √k; with it the light hand of a heavy robot, of effective mass m̂ = 1 / max eig J M⁻¹ Jᵀ, would oscillate from step to step, so d ≤ m̂ / (2 dt).
        """
        if self._pull is None:
            return None
        body, point, target = self._pull
        q, v = self._sim.q, self._sim.v
        X = body_placements(self._model, q)[body]
        x = X[:3, :3] @ point + X[:3, 3]
        mass = self._pulled_mass(body)
        J = point_jacobian(self._model, q, body, point)
        light = 1 / max(float(np.linalg.eigvalsh(J @ solve_mass_matrix(self._model, q, J.T))[-1]), 1e-9)
        damping = min(2 * mass * np.sqrt(STIFFNESS), 0.5 * light / self._sim.timestep)
        force = mass * STIFFNESS * (target - x) - damping * (J @ v)
        center = X[:3, :3] @ np.array(self._model.body_com[body]) + X[:3, 3]
        wrenches = np.zeros((self._model.nbody, 6))
        wrenches[body] = np.concatenate([force, np.cross(x - center, force)])
        return wrenches

    def _pulled_mass(self, body: int) -> float:
        """Mass of the whole tree of a body: its topmost ancestor below the world, and all descendants of that [kg]."""
        parent = self._model.body_parent
        top = body
        while parent[top]:
            top = int(parent[top])
        members = [top]
        for k in range(top + 1, self._model.nbody):
            if parent[k] in members:
                members.append(k)
        return float(sum(self._model.body_mass[k] for k in members))

    def _run(self) -> None:
        """Keep simulated time in step with real time, and draw."""
        before, owed, pictures = time.monotonic(), 0.0, 0
        while not self._closed.wait(max(0.0, 1 / RATE - (time.monotonic() - before))):
            now = time.monotonic()
            elapsed, before = now - before, now
            with self._lock:
                if self._closed.is_set():
                    return
                if not self._running:
                    owed = 0.0
                    continue
                owed = min(owed + elapsed * SPEEDS[self._controls["speed"].value], BEHIND)
                begun = self._sim.time
                while owed >= self._sim.timestep and self._running and time.monotonic() - now < BEHIND:
                    self._advance(1)
                    owed -= self._sim.timestep
                self._factor += 0.1 * ((self._sim.time - begun) / max(elapsed, 1e-6) - self._factor)
                self._remember()
                pictures += 1
                self._draw(plots=pictures % PLOT_EVERY == 0)

    def _change(self, *, friction: float | None = None, timestep: float | None = None) -> None:
        """Continue with another friction, a multiple of the model's, or another time step [s]."""
        with self._lock:
            self._friction = self._friction if friction is None else friction
            self._timestep = self._timestep if timestep is None else timestep
            m = copy.copy(self._source)
            m.geom_friction[:, 0] *= self._friction
            m.pair_friction[:, :2] *= self._friction
            old = self._sim
            fresh = Simulator(m, **old._settings | {"timestep": self._timestep})
            fresh.reset(old.q, old.v, old.time)
            fresh.activation = old.activation
            for name, position, turn in zip(old.mocap_names, *old.mocap_poses, strict=True):
                fresh.set_mocap(name, position, turn, at_once=True)
            for loop, active in old.loop_active.items():
                if fresh.loop_active.get(loop) is not active:
                    fresh.set_loop_active(loop, active)
            self._sim = fresh

    # ---- drawing ------------------------------------------------------------------------------------------------------

    def _draw(self, plots: bool = False) -> None:
        step = self._step
        self._stage.draw(self._sim.q, None if step is None else step.contacts)
        if self._pull is not None:
            body, point, target = self._pull
            X = body_placements(self._model, self._sim.q)[body]
            self._stage.draw_pull(X[:3, :3] @ point + X[:3, 3], target)
        else:
            self._stage.draw_pull(None, None)
        self._controls["told"].content = self._told()
        if plots:
            self._draw_plots()

    def _told(self) -> str:
        told = f"t = {self._sim.time:.2f} s"
        if self._step is not None:
            n = len(self._step.contacts)
            told += f" · {self._factor:.2f} × real time · {n} contact{'' if n == 1 else 's'} · {self._step.status} · residual {self._step.residual:.0e} m/s"
        if self._trouble:
            told += f"<br><b>{escape(self._trouble)}</b>"
        return f"<small>{told}</small>"

    def _remember(self) -> None:
        """Record the values for the plots."""
        if self._step is None:
            return
        step = self._step
        values = {
            "t": self._sim.time,
            "residual": np.log10(max(step.residual, 1e-16)),
            "penetration": np.log10(max(step.penetration, 1e-9)),
            "force": float(np.linalg.norm(step.contacts.force, axis=1).sum()),
        }
        values |= {f"loop {name}": float(np.linalg.norm(forces)) for name, forces in step.loop_forces.items()}
        for name in self._sensors:
            reading = np.ravel(step.sensors[name])
            values[f"sensor {name}"] = float(reading[0] if len(reading) == 1 else np.linalg.norm(reading))
        for name, value in values.items():
            self._history.setdefault(name, deque(maxlen=KEPT)).append(value)

    def _draw_plots(self) -> None:
        t = np.array(self._history.get("t", ()))
        if len(t) > 1:
            for chart, names in self._charts:
                chart.data = (t, *(np.array(self._history[name]) for name in names))

    # ---- the panel ----------------------------------------------------------------------------------------------------

    def _panel(self) -> None:
        gui = self._server.gui
        gui.set_panel_label(self._model.name)
        gui.main_panel.dock_right()
        run = gui.add_button("Pause" if self._running else "Run")
        one = gui.add_button("Single step")
        self._controls["run"] = run

        def pressed(_: Any) -> None:
            self.running = not self._running

        def stepped(_: Any) -> None:
            self.step()

        run.on_click(pressed)
        one.on_click(stepped)
        keys = ("start", *self._model.keyframes)
        chosen = gui.add_dropdown("Keyframe", keys)
        back = gui.add_button("Reset")

        def again(_: Any) -> None:
            self.reset(None if chosen.value == "start" else chosen.value)

        back.on_click(again)
        self._controls["speed"] = gui.add_dropdown("Speed", tuple(SPEEDS), initial_value="1 ×")
        self._controls["told"] = gui.add_markdown(self._told())
        tabs = gui.add_tab_group()
        if self._model.nu:
            with tabs.add_tab("Controls"):
                for k in range(self._model.nu):
                    self._control_slider(gui, k)
        with tabs.add_tab("Physics"):
            self._physics(gui)
        with tabs.add_tab("Plots"):
            self._plots(gui)
        gui.add_markdown("<small>Drag a body to pull it.</small>")

    def _control_slider(self, gui: Any, k: int) -> None:
        m = self._source
        low, high = (float(x) for x in m.actuator_ctrlrange[k]) if m.actuator_ctrllimited[k] else (-1.0, 1.0)
        now = float(self._control[k])
        low, high = np.floor(100 * min(low, now)) / 100, np.ceil(100 * max(high, now)) / 100
        name = self._model.actuators[k].name if k < len(self._model.actuators) else f"control {k}"
        slider = gui.add_slider(name, min=low, max=high, step=float(f"{(high - low) / 400:.1g}"), initial_value=now)
        self._controls[f"control {k}"] = slider

        def moved(_: Any) -> None:
            with self._lock:
                self._control[k] = slider.value

        slider.on_update(moved)

    def _set_control(self, k: int, value: float) -> None:
        self._control[k] = value
        self._controls[f"control {k}"].value = value

    def _physics(self, gui: Any) -> None:
        friction = gui.add_slider("Friction ×", min=0.0, max=2.0, step=0.05, initial_value=1.0)
        step = gui.add_slider(
            "Time step [ms]", min=0.25, max=10.0, step=0.25, initial_value=float(np.clip(round(4e3 * self._timestep) / 4, 0.25, 10))
        )
        forces = gui.add_checkbox("Contact forces", True)
        cones = gui.add_checkbox("Friction cones", False)
        self._stage.groups["friction cones"].visible = False

        def rubbed(_: Any) -> None:
            self._change(friction=friction.value)

        def timed(_: Any) -> None:
            self._change(timestep=1e-3 * step.value)

        def shown(_: Any) -> None:
            self._stage.groups["contact forces"].visible = forces.value
            self._stage.groups["friction cones"].visible = cones.value

        friction.on_update(rubbed)
        step.on_update(timed)
        forces.on_update(shown)
        cones.on_update(shown)

    def _plots(self, gui: Any) -> None:
        m = self._source
        self._sensors: list[str] = []
        if m.nsensor:
            self._sensors = [m.sensor(k).name for k in range(min(m.nsensor, FEW_SENSORS)) if m.sensor(k).name]

        def chart(title: str, names: list[str]) -> None:
            lines = [{"label": name, "stroke": COLORS[k % len(COLORS)], "width": 1.5} for k, name in enumerate(names)]
            empty = np.zeros(2)
            handle = gui.add_uplot(
                data=(empty, *(empty for _ in names)),
                series=({"label": "t [s]"}, *lines),
                title=title,
                scales={"x": {"time": False}},
                legend={"show": True},
                height=150,
            )
            self._charts.append((handle, names))

        chart("Contact residual, log₁₀ [m/s]", ["residual"])
        chart("Sum of contact forces [N]", ["force"])
        chart("Penetration, log₁₀ [m]", ["penetration"])
        if self._model.loops:
            chart("Loop forces [N]", [f"loop {loop.name}" for loop in self._model.loops][:FEW_SENSORS])
        if self._sensors:
            chart("Sensors", [f"sensor {name}" for name in self._sensors])

    def _watch_drags(self) -> None:
        def watch(body: int, handle: Any) -> None:
            # asynchronous, so that the phases of a drag arrive in order
            async def dragged(event: Any) -> None:
                with self._lock:
                    if event.phase == "end":
                        self._pull = None
                        return
                    if event.phase == "start" or self._pull is None:
                        X = body_placements(self._model, self._sim.q)[body]
                        point = X[:3, :3].T @ (np.array(event.start_position) - X[:3, 3])
                    else:
                        point = self._pull[1]
                    self._pull = (body, point, np.array(event.end_position, dtype=float))

            handle.on_drag(dragged)

        for solid, handle in self._stage._handles:
            if self._model.body_moves[solid.body]:
                watch(solid.body, handle)
