"""What a simulation costs on a model: our steps by stage, MuJoCo's beside them, and the operator against a matrix. Every time stands beside a check of its result."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from .constraints import Constraint, PointContact, from_loop
from .dynamics import forward_dynamics
from .errors import ArgumentError
from .model import Model
from .operators import DelassusOperator, ExplicitDelassus
from .simulator import Contacts, Simulator, Trajectory
from .solvers import solve_contacts
from .state import body_placements, kinetic_energy, potential_energy

__all__ = ["Costs", "Motion", "PeerMotion", "constraints_of", "operator_costs", "run", "run_mujoco"]

Array = NDArray[Any]
Progress = Callable[[float], object]
_RESETS = tuple(getattr(mujoco.mjtWarning, f"mjWARN_BADQ{what}") for what in ("POS", "VEL", "ACC"))  # where MuJoCo starts again by itself


def _quiet(_: float) -> None:
    """Show nothing."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Our simulation, T steps.

    Attributes:
        trajectory: kept frames.
        seconds: (T,) a step takes, seen from Python.
        stages: seconds of a stage, a step in the mean.
        status: (T,) of the contact solver.
        contacts: (T,) that bear a force; iterations: (T,).
        residual: (T,) natural [m/s]; penetration, loop_error: (T,) [m].
    """

    trajectory: Trajectory
    seconds: Array
    stages: dict[str, float]
    status: Array
    contacts: Array
    iterations: Array
    residual: Array
    penetration: Array
    loop_error: Array

    @property
    def unsolved(self) -> int:
        """Steps that ended otherwise than solved."""
        return int((self.status != "solved").sum())


@dataclass(frozen=True, eq=False)
class PeerMotion:
    """MuJoCo's simulation of the same model, T steps.

    Attributes:
        seconds: (T,) a step takes; contacts: (T,) that it found.
        penetration: (T,) deepest before the step [m].
        finite: whether all numbers stayed finite, and nothing was reset.
    """

    seconds: Array
    contacts: Array
    penetration: Array
    finite: bool


@dataclass(frozen=True)
class Costs:
    """The operator without a matrix against a dense G, by the explicit algorithm that suits best, with LAPACK's Cholesky factor; in one pose, on one thread.

    Attributes:
        rows: of all constraints; contacts: among them.
        update, product, solve: µs of (matrix-free, explicit): new numbers and factors at q; G x; (G + ρ)⁻¹ y.
        nbytes: of the two.
        method: by which the explicit matrix is found.
        product_error, solve_error: largest difference of the two, over the largest number.
        problem: µs of a whole contact problem, matrix-free.
        iterations, status: of it.
        residual: of it, the natural one found anew from the dense matrix [m/s].
    """

    rows: int
    contacts: int
    update: tuple[float, float]
    product: tuple[float, float]
    solve: tuple[float, float]
    nbytes: tuple[int, int]
    method: str
    product_error: float
    solve_error: float
    problem: float
    iterations: int
    status: str
    residual: float

    @property
    def agree(self) -> bool:
        """Whether both give the same numbers, but for rounding."""
        return self.product_error < 1e-9 and self.solve_error < 1e-6


def run(sim: Simulator, seconds: float, *, control: ArrayLike | None = None, every: int = 1, progress: Progress = _quiet) -> Motion:
    """Simulate step by step, and keep what each of them tells.

    Args:
        sim: goes on from where it is.
        seconds: of simulated time.
        control: of the actuators.
        every: steps from one kept frame to the next.
        progress: called with the share that is done.
    """
    model, steps = sim.model, round(seconds / sim.timestep)
    if steps < 1:
        raise ArgumentError(f"seconds: expected at least one timestep of {sim.timestep:g} s, got {seconds:g} s.")
    times, q, v = [sim.time], [sim.q], [sim.v]
    touching: list[Contacts | None] = [None]
    kept = [-1]
    rows, took, status = [], np.empty(steps), []
    stages: dict[str, float] = {}
    for k in range(steps):
        start = time.perf_counter()
        step = sim.step(control=control)
        took[k] = time.perf_counter() - start
        for name, part in step.timings.items():
            stages[name] = stages.get(name, 0.0) + part / steps
        status.append(step.status)
        rows.append((np.count_nonzero(step.contacts.force.any(axis=1)), step.iterations, step.residual, step.penetration, step.loop_error))
        if (k + 1) % every == 0 or k + 1 == steps:
            times.append(step.time)
            q.append(step.q)
            v.append(step.v)
            touching.append(step.contacts)
            kept.append(k)
        if k % 20 == 0:
            progress((k + 1) / steps)
    progress(1.0)
    told = np.array(rows, dtype=float)
    frames = np.vstack([np.zeros(5), told[kept[1:]]])
    present = [c for c in touching if c is not None]
    words = np.array(status)
    trajectory = Trajectory(
        model=model, times=np.array(times), q=np.array(q), v=np.array(v),
        contact_start=np.concatenate([[0], np.cumsum([0 if c is None else len(c) for c in touching])]).astype(np.int64),
        contact_position=np.concatenate([c.position for c in present]), contact_normal=np.concatenate([c.normal for c in present]),
        contact_force=np.concatenate([c.force for c in present]), contact_friction=np.concatenate([c.friction for c in present]),
        contact_bodies=np.concatenate([c.bodies for c in present]), status=np.array(["solved", *words[kept[1:]]]),
        iterations=frames[:, 1].astype(np.int64), residual=frames[:, 2],
        kinetic_energy=np.array([kinetic_energy(model, a, b) for a, b in zip(q, v, strict=True)]),
        potential_energy=np.array([potential_energy(model, a) for a in q]), loop_error=frames[:, 4], penetration=frames[:, 3],
    )  # fmt: skip
    return Motion(trajectory, took, stages, words, told[:, 0].astype(int), told[:, 1].astype(int), told[:, 2], told[:, 3], told[:, 4])


def run_mujoco(
    m: Any, q: ArrayLike, v: ArrayLike, timestep: float, seconds: float, *, control: ArrayLike | None = None, progress: Progress = _quiet
) -> PeerMotion:
    """Simulate the same with MuJoCo, its settings as the model has them but for the timestep.

    Args:
        m: a ``mujoco.MjModel``; it is as before afterwards.
        q, v: where to start.
        timestep: [s].
        seconds: of simulated time.
        control: of the actuators.
        progress: called with the share that is done.
    """
    before, steps = m.opt.timestep, max(1, round(seconds / timestep))
    took, contacts, depth = np.empty(steps), np.empty(steps, dtype=int), np.zeros(steps)
    m.opt.timestep, sound = timestep, True
    try:
        d = mujoco.MjData(m)
        d.qpos[:], d.qvel[:] = q, v
        if control is not None:
            d.ctrl[:] = control
        for k in range(steps):
            start = time.perf_counter()
            mujoco.mj_step(m, d)
            took[k] = time.perf_counter() - start
            sound = sound and not any(d.warning[kind].number for kind in _RESETS)
            contacts[k] = d.ncon
            depth[k] = max(0.0, -d.contact.dist.min(initial=0.0))
            if k % 20 == 0:
                progress((k + 1) / steps)
        progress(1.0)
        steady = sound and bool(np.isfinite(d.qpos).all())
    finally:
        m.opt.timestep = before
    return PeerMotion(took, contacts, depth, steady)


def constraints_of(model: Model, q: ArrayLike, contacts: Contacts) -> list[Constraint]:
    """Make constraints of the loops of a model and of contacts at q."""
    placements = body_placements(model, q)

    def inside(body: int, x: Array) -> Array:
        return np.asarray(placements[body, :3, :3].T @ (x - placements[body, :3, 3]))

    made: list[Constraint] = [from_loop(model, loop) for loop in model.loops if loop.active]
    for x, normal, friction, (first, second) in zip(contacts.position, contacts.normal, contacts.friction, contacts.bodies, strict=True):
        body, other, sign = (first, second, 1.0) if first else (second, first, -1.0)
        made.append(
            PointContact(
                model,
                int(body),
                point=inside(body, x),
                other=int(other) or None,
                other_point=inside(other, x),
                normal=sign * normal,
                friction=friction,
            )
        )
    return made


def _best(call: Callable[[], object], budget: float) -> float:
    """Best time of a call [µs], on the processor, of as many as a budget [s] holds and five samples at least, after one to warm up."""
    start = time.perf_counter()
    call()
    inner = max(1, round(3e-4 / max(time.perf_counter() - start, 1e-9)))
    best, end, samples = np.inf, time.perf_counter() + budget, 0
    while samples < 5 or time.perf_counter() < end:
        start = time.thread_time()  # what others do on the machine meanwhile does not count
        for _ in range(inner):
            call()
        best = min(best, (time.thread_time() - start) / inner)
        samples += 1
    return best * 1e6


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep OpenBLAS, where NumPy and SciPy use it, on one thread, as the operator is: two that wait for each other on a busy machine measure the machine."""
    before = []
    maps = Path("/proc/self/maps")
    files = {line.split()[-1] for line in maps.read_text().splitlines() if "openblas" in line} if maps.exists() else set()
    for library in map(ctypes.CDLL, sorted(files)):
        for name in (
            "scipy_openblas_{}_num_threads64_",
            "scipy_openblas_{}_num_threads",
            "openblas_{}_num_threads64_",
            "openblas_{}_num_threads",
        ):
            if hasattr(library, name.format("set")):
                put = getattr(library, name.format("set"))
                before.append((put, getattr(library, name.format("get"))()))
                put(1)
                break
    try:
        yield
    finally:
        for put, threads in before:
            put(threads)


def _relative(a: Array, b: Array) -> float:
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300))


def operator_costs(
    model: Model, q: ArrayLike, v: ArrayLike, constraints: list[Constraint], timestep: float, *, budget: float = 0.2
) -> Costs:
    """Time the operator without a matrix against a dense one, and check them against each other.

    Args:
        model: the mechanism.
        q, v: its state.
        constraints: at least one.
        timestep: of the contact problem, whose rows move with J (v + dt M⁻¹ (τ − h)) [s].
        budget: for each measurement [s].
    """
    G, explicit = DelassusOperator(model, constraints), ExplicitDelassus(model, constraints)
    rows = G.shape[0]
    G.update(q)
    A = explicit.matrix(q)
    G.damping = rho = 1e-3 * float(A.diagonal().mean())
    damped, x = A.copy(), np.random.default_rng(0).standard_normal(rows)

    def factor() -> Any:
        explicit.matrix(q, out=A)
        damped[:] = A
        damped[np.diag_indices(rows)] += rho
        return cho_factor(damped, lower=True, check_finite=False)

    L = factor()
    with _one_thread():
        update = _best(lambda: G.update(q), budget), _best(factor, budget)
        product = _best(lambda: G @ x, budget), _best(lambda: A @ x, budget)
        solve = _best(lambda: G.solve(x), budget), _best(lambda: cho_solve(L, x, check_finite=False), budget)
    free = np.asarray(v, dtype=float) + timestep * forward_dynamics(model, q, v, np.zeros(model.nv))
    g = G.jacobian @ free
    problem = _best(lambda: solve_contacts(G, g, timestep=timestep), budget)
    result = solve_contacts(G, g, timestep=timestep)
    return Costs(
        rows, sum(isinstance(c, PointContact) for c in constraints), update, product, solve, (G.nbytes, A.nbytes + L[0].nbytes),
        explicit.explain().matrix_choice, _relative(G @ x, A @ x), _relative(G.solve(x), cho_solve(L, x)), problem, result.iterations, result.status,
        _residual(A, g, result.forces, constraints, timestep),
    )  # fmt: skip


def _residual(A: Array, g: Array, forces: Array, constraints: list[Constraint], timestep: float) -> float:
    """Natural residual of contact forces: the largest d ‖λ − P(λ − σ̃ / d)‖, σ̃ = A λ + g + Γ, with d the mean diagonal of a constraint's rows [m/s]."""
    sigma, worst, first = A @ forces + g, 0.0, 0
    for c in constraints:
        at = slice(first, first + c.rows)
        first += c.rows
        s, y, d = sigma[at].copy(), forces[at], float(A.diagonal()[at].mean())
        if not isinstance(c, PointContact):
            worst = max(worst, float(np.abs(s).max()))  # loops do not move
            continue
        s[0] += c.friction * np.hypot(s[1], s[2])
        z = y - s / d
        worst = max(worst, d * float(np.linalg.norm(y - _into_cone(z, c.friction))))
    return worst


def _into_cone(z: Array, friction: float) -> Array:
    """Nearest point of the cone ‖z_T‖ ≤ µ z_n."""
    n, t = float(z[0]), float(np.hypot(z[1], z[2]))
    if t <= friction * n:
        return z
    if friction * t <= -n:
        return np.zeros(3)
    height = (n + friction * t) / (1 + friction**2)
    return np.array([height, *(friction * height / t * z[1:])])
