"""Contact steps as complementarity problems in operational space: sizes, and the swinging pendulum with its pictures and curves.

Jain's paper. The pendulum is 12 m of balls hung 10 m above a floor and 4 m from a wall; it starts at π/4 with 1 rad/s. Friction 0.5,
restitution 0.7, four friction directions. The paper's NMC/OS treats links as separate bodies with equations; so does ours, but it integrates joints, so that hinges never drift.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraints import PointContact
from ..model import Model
from ..scenes import dual_arm, pendulum
from ..solvers import complementarity, solve_lcp
from ..state import body_placements, integrate, kinetic_energy, point_velocity, potential_energy
from .items import Item
from .outputs import Cell, Claim, Output
from .timing import in_turns, one_thread

__all__ = ["ITEMS", "TABLE_2", "Pendulum", "Swing", "contact_steps", "states_in_contact", "swing"]

Array = NDArray[Any]
Progress = Callable[[float], object]

PAPER = "contact and collision dynamics of multi-link robots in operational space, a complementarity formulation with minimal coordinates"
FRICTION, RESTITUTION, CONTACTS, TOUCHING = 0.5, 0.7, 4, 1e-3
FORMULATIONS = ("os", "nmc-os", "nmc")
NAMES = {"os": "OS", "nmc-os": "NMC/OS", "nmc": "NMC", "mc": "MC", "rmc": "RMC"}
# table 2: links: sizes of OS, NMC/OS, NMC; computation times of OS, NMC/OS [s]; speed-up
TABLE_2 = {
    3: ((24, 39, 57), (13.33, 47.79), 3.6),
    6: ((24, 54, 90), (10.50, 68.71), 6.5),
    12: ((24, 84, 156), (19.06, 305.28), 16.1),
    15: ((24, 99, 189), (21.76, 558.10), 25.6),
    24: ((24, 144, 288), (38.20, 1899.86), 49.7),
    30: ((24, 174, 354), (73.74, 4100.51), 55.6),
}
RED, BLUE = "#c0311a", "#1f5fa8"


# ---- the pendulum -----------------------------------------------------------------------------------------------------------


class Pendulum:
    """The pendulum; its balls may touch the floor, the wall, and each other except for neighbours.

    Attributes:
        model: the mechanism; radius: radius of a ball [m].
    """

    def __init__(self, links: int) -> None:
        self.model: Model = pendulum(links)
        self.links, self.radius = links, 6.0 / links
        self._one, self._two = np.triu_indices(links, 2)
        # candidates: ball, other ball or −1 for the floor, −2 for the wall
        self.ball = np.concatenate([np.arange(links), np.arange(links), self._one])
        self.other = np.concatenate([np.full(links, -1), np.full(links, -2), self._two])

    @property
    def start(self) -> tuple[Array, Array]:
        """Initial state: left of the base, moving to the right."""
        q, v = self.model.neutral(), self.model.zero_velocity()
        q[0], v[0] = np.pi / 4, -1.0
        return q, v

    def centers(self, q: Array) -> tuple[Array, Array]:
        """Centres (n, 3) of the balls, and placements (n, 4, 4) of the links [m]."""
        X = body_placements(self.model, q)[1:]
        return X[:, :3, 3] - self.radius * X[:, :3, 2], X

    def gaps(self, centers: Array) -> Array:
        """Distances of all candidates [m]."""
        r = self.radius
        apart = centers[self._one] - centers[self._two]
        return np.concatenate([centers[:, 2] - r, 4.0 - r - centers[:, 0], np.sqrt(np.einsum("ij,ij->i", apart, apart)) - 2 * r])

    def contact(self, candidate: int, centers: Array, X: Array) -> PointContact:
        """Contact of a candidate at its closest points."""
        k, j = int(self.ball[candidate]), int(self.other[candidate])
        normal = np.array([0.0, 0.0, 1.0] if j == -1 else [-1.0, 0.0, 0.0])
        if j >= 0:
            normal = centers[k] - centers[j]
            normal /= np.sqrt(normal @ normal)

        def place(i: int, towards: Array) -> Array:
            return np.asarray(X[i, :3, :3].T @ (centers[i] + self.radius * towards - X[i, :3, 3]))

        other: dict[str, Any] = {} if j < 0 else {"other": f"ball{j}", "other_point": place(j, normal)}
        return PointContact(self.model, f"ball{k}", point=place(k, -normal), normal=normal, friction=FRICTION, **other)

    def nearest(self, q: Array, limit: int) -> list[PointContact]:
        """Contacts of the closest candidates."""
        centers, X = self.centers(q)
        order = np.argsort(self.gaps(centers), kind="stable")
        return [self.contact(int(k), centers, X) for k in order[:limit]]


@dataclass(frozen=True, eq=False)
class Swing:
    """A simulation of T steps.

    Attributes:
        times: (T + 1,) [s]; q, v: (T + 1, nv) states.
        contacts: (step, ball, other) of all contacts; other is a ball, −1 for the floor, −2 for the wall.
        seconds: processor time of blocks of steps [s]; unsolved: number of complementarity problems without a solution.
    """

    times: Array
    q: Array
    v: Array
    contacts: list[tuple[int, int, int]]
    seconds: Array
    unsolved: int

    def first(self, other: int) -> float | None:
        """Time of the first contact with the floor (−1), the wall (−2) or a ball (0) [s]."""
        steps = [step for step, _, j in self.contacts if (j >= 0 if other >= 0 else j == other)]
        return float(self.times[min(steps)]) if steps else None


def swing(p: Pendulum, formulation: str, timestep: float, duration: float, progress: Progress = lambda share: None) -> Swing:
    """Simulate: resolve collisions, step, integrate.

    Every step is a problem of the formulation: without contacts that of OS is empty, and NMC/OS still has the equations of all hinges.
    """
    model, steps = p.model, round(duration / timestep)
    q, v = p.start
    qs, vs, found, unsolved = np.zeros((steps + 1, model.nq)), np.zeros((steps + 1, model.nv)), [], 0
    qs[0], vs[0] = q, v
    flying = complementarity.Formulation(model, (), formulation)
    block, clock = max(1, steps // 100), []
    with one_thread():
        for k in range(steps):
            if k % block == 0:
                clock.append(time.thread_time())
                progress(k / steps)
            centers, X = p.centers(q)
            touching = np.flatnonzero(p.gaps(centers) < TOUCHING)
            steps_of = flying
            if len(touching):
                found += [(k, int(p.ball[c]), int(p.other[c])) for c in touching]
                steps_of = complementarity.Formulation(model, [p.contact(int(c), centers, X) for c in touching], formulation)
                hit = steps_of.collide(q, v, RESTITUTION)
                unsolved += hit.status != "solved"
                v = hit.velocity
            step = steps_of.build(q, v, None, timestep).solve()
            unsolved += step.status != "solved"
            v = step.velocity
            q = integrate(model, q, v, timestep)
            qs[k + 1], vs[k + 1] = q, v
        clock.append(time.thread_time())
    return Swing(timestep * np.arange(steps + 1), qs, vs, found, np.diff(clock), unsolved)


def contact_steps(p: Pendulum, states: list[tuple[Array, Array]], turns: int) -> dict[str, Any]:
    """Time one step of 0.1 ms with the four nearest contacts in OS and NMC/OS, and the solution of its problem only; velocities are compared first.

    Returns:
        sizes of the formulations, the largest difference of velocities relative to 1 + the largest |v|, means of the best times [µs].
    """
    calls: dict[tuple[str, int], Callable[[], object]] = {}
    worst, sizes = 0.0, {}
    for k, (q, v) in enumerate(states):
        contacts = p.nearest(q, CONTACTS)
        made = {f: complementarity.Formulation(p.model, contacts, f) for f in FORMULATIONS}
        sizes = {f: m.size for f, m in made.items()}
        problems = {f: m.build(q, v, None, 1e-4) for f, m in made.items()}
        steps = {f: problem.solve() for f, problem in problems.items()}
        for step in steps.values():
            apart = np.abs(step.velocity - steps["os"].velocity).max() / (1 + np.abs(v).max())
            worst = max(worst, float(apart) if step.status == "solved" else np.inf)
        for f in ("os", "nmc-os"):
            calls[f, k] = lambda made=made[f], q=q, v=v: made.build(q, v, None, 1e-4).solve()  # type: ignore[misc]
            calls[f"{f}, solve", k] = lambda p=problems[f]: solve_lcp(p.matrix, p.vector, free=p.free)  # type: ignore[misc]
    best = in_turns(calls, turns)
    return {"sizes": sizes, "difference": worst} | {
        what: 1e6 * float(np.mean([best[what, k] for k in range(len(states))])) for what in ("os", "nmc-os", "os, solve", "nmc-os, solve")
    }


def states_in_contact(motion: Swing, limit: int) -> list[tuple[Array, Array]]:
    """Return states with contacts, evenly spaced among all of them."""
    steps = sorted({step for step, _, _ in motion.contacts})
    chosen = sorted({round(k) for k in np.linspace(0, len(steps) - 1, limit)}) if steps else []
    return [(motion.q[steps[k]], motion.v[steps[k]]) for k in chosen]


# ---- tables -----------------------------------------------------------------------------------------------------------------


def table_1(quick: bool, progress: Progress) -> Output:
    """Sizes for the arm robot, from the formulations themselves; and the formulas, for pendulums."""
    model = dual_arm()
    contacts = [PointContact(model, f"{side}_finger{k}_0", friction=FRICTION) for side in ("left", "right") for k in (0, 1)]
    n, nv, nu, nf = model.nbody - 1, model.nv, len(contacts), 4
    pairs = nu * (nf + 2)
    paper = {
        "nmc": ("O(n)", "6n + n_b + n_u (n_f + 2)", 310, 6 * n + (6 * n - nv) + pairs),
        "mc": ("O(N²)", "N + n_b + n_u (n_f + 2)", 50, nv + pairs),
        "rmc": ("O(N³)", "n_u (n_f + 2)", 24, pairs),
        "os": ("O(N) + O(n_c²)", "n_b + n_u (n_f + 2)", 24, pairs),
    }
    q, v = model.random(0), np.random.default_rng(0).standard_normal(nv)
    rows: list[tuple[Cell, ...]] = []
    steps = {}
    for k, (f, (assembly, formula, stated, counted)) in enumerate(paper.items()):
        problem = complementarity.build(model, q, v, None, 1e-3, contacts, formulation=f)
        steps[f] = problem.solve()
        apart = float(np.abs(steps[f].velocity - steps["nmc"].velocity).max() / (1 + np.abs(v).max()))
        kind = "links" if f == "nmc" else "joints"
        rows.append((NAMES[f], kind, assembly, formula, counted, stated, problem.size, problem.size / stated, apart))
        progress((k + 1) / 4)
    exact = all(row[4] == row[5] == row[6] for row in rows)
    return Output(
        title="Sizes of the complementarity problem of a robot with two arms, 26 links and 4 contacts",
        columns=("formulation", "velocities of", "assembly, paper", "size, formula", "formula", "paper", "ours", "ratio", "velocity differs by"),
        rows=tuple(rows),
        note=f"{'All four sizes are' if exact else 'Not all sizes are'} the paper's. All formulations were solved; their velocities agree within "
        f"{max(float(row[8] or 0) for row in rows):.0e} relative to NMC's.",
        claims=(
            Claim(
                "The sizes of NMC, MC, RMC and OS are 310, 50, 24 and 24.", exact, {str(row[0]): float(row[6] or 0) for row in rows}
            ),
        ),
        data={"links": n, "degrees_of_freedom": nv, "contacts": nu, "directions": nf, "status": {f: s.status for f, s in steps.items()}},
    )  # fmt: skip


def table_2(quick: bool, progress: Progress) -> Output:
    """Simulate the pendulum in both formulations, alternating; steps from states in contact are timed separately."""
    timestep, duration, rounds, turns = (1e-3, 1.5, 3, 20) if quick else (5e-4, 1.5, 6, 80)
    rows: list[tuple[Cell, ...]] = []
    kept: dict[str, Any] = {"timestep": timestep, "duration": duration}
    total, done = sum(30 + n for n in TABLE_2) * (rounds + 1), 0
    for links, (sizes, seconds, speed_up) in TABLE_2.items():
        p = Pendulum(links)
        runs: dict[str, list[Swing]] = {"os": [], "nmc-os": []}
        for _ in range(rounds):
            for f, each in runs.items():
                each.append(swing(p, f, timestep, duration))
            done += 30 + links
            progress(done / total)
        took = {f: float(np.min([s.seconds for s in each], axis=0).sum()) for f, each in runs.items()}
        one, other = (runs[f][0] for f in ("os", "nmc-os"))
        step = contact_steps(p, states_in_contact(one, 8), turns)
        done += 30 + links
        progress(done / total)
        ours = tuple(step["sizes"][f] for f in FORMULATIONS)
        ratios = took["nmc-os"] / took["os"], step["nmc-os"] / step["os"], step["nmc-os, solve"] / step["os, solve"]
        rows.append((
            links, *(x for a, b in zip(sizes, ours, strict=True) for x in (a, b, b / a)),
            seconds[0], took["os"], seconds[1], took["nmc-os"], speed_up, ratios[0], ratios[0] / speed_up,
            step["os"], step["nmc-os"], *ratios[1:], step["difference"],
        ))  # fmt: skip
        until = min(filter(None, (s.first(o) for s in (one, other) for o in (-1, -2, 0))), default=duration)
        n = int(np.searchsorted(one.times, until))
        kept[str(links)] = {
            "unsolved": sum(s.unsolved for each in runs.values() for s in each),
            "contact_steps": len({c[0] for c in one.contacts}),
            "until_first_contact": float(np.abs(one.q[:n] - other.q[:n]).max()),
        } | {k: step[k] for k in ("os, solve", "nmc-os, solve")}
    column = {name: k for k, name in enumerate(COLUMNS_2)}

    def of(name: str) -> Array:
        return np.array([row[column[name]] for row in rows], dtype=float)

    whole, contact, solve = of("speed-up, ours"), of("step: speed-up"), of("solving alone: speed-up")
    exact = all((of(f"{NAMES[f]} size, ratio") == 1).all() for f in FORMULATIONS)
    worst = float(of("step: velocities differ by").max())
    unsolved = sum(kept[str(n)]["unsolved"] for n in TABLE_2)
    ends = {"3 links": float(whole[0]), "30 links": float(whole[-1])}
    by_links = [str(n) for n in TABLE_2]
    return Output(
        title="Pendulum of 3 to 30 links: sizes, times and speed-up of OS over NMC/OS",
        columns=COLUMNS_2,
        rows=tuple(rows),
        note=f"Sizes are {'exact' if exact else 'not exact'}. The speed-up of a simulation goes from {whole[0]:.1f} to {whole[-1]:.1f}, where the paper's goes from 3.6 to 55.6; "
        f"of a step with four contacts from {contact[0]:.1f} to {contact[-1]:.1f}, of solving its problem alone from {solve[0]:.1f} to {solve[-1]:.1f}. It grows less than the paper's: here Lemke's method "
        f"eliminates all equations by one factorisation and then pivots on the same 24 pairs in both, so that solving takes {kept['30']['nmc-os, solve']:.0f} of the {of('step: NMC/OS [µs]')[-1]:.0f} µs of a step of 30 links in NMC/OS; and both pay "
        f"a fixed part for calls from Python, most of the {of('step: OS [µs]')[0]:.0f} µs of OS with three links. "
        f"Seconds are of {duration} s in steps of {1e3 * timestep:g} ms, collision detection included; the paper does not say how long it simulates. Velocities of the formulations differ by {worst:.0e} at most.",
        claims=(
            Claim("The LCP sizes of OS, NMC/OS and NMC are those of the table.", exact, {f"{n} links, {NAMES[f]}": float(row[column[f"{NAMES[f]} size, ours"]] or 0) for n, row in zip(TABLE_2, rows, strict=True) for f in FORMULATIONS}),
            Claim("The speed-up of simulations grows with the number of links, from 3 to 30.", bool((np.diff(whole) > 0).all()), dict(zip(by_links, whole.tolist(), strict=True))),
            Claim("The speed-up of a step with four contacts grows with the number of links.", bool((np.diff(contact) > 0).all()), dict(zip(by_links, contact.tolist(), strict=True))),
            Claim("The speed-up of solving the problem alone grows with the number of links.", bool((np.diff(solve) > 0).all()), dict(zip(by_links, solve.tolist(), strict=True))),
            Claim("OS is about 3.6 times faster with 3 links.", bool(whole[0] > 3), ends),
            Claim("OS is over 55 times faster with 30 links.", bool(whole[-1] > 55), ends),
            Claim("Timed steps give the same velocities to 1e-8 of their size, and all problems were solved.", worst < 1e-8 and not unsolved, {"largest difference": worst, "unsolved": float(unsolved)}),
        ),
        data=kept,
        figure=partial(_draw_table_2, np.array(list(TABLE_2), dtype=float), of("speed-up, paper"), whole, contact, solve),
    )  # fmt: skip


COLUMNS_2 = (
    "links",
    *(f"{NAMES[f]} size, {what}" for f in FORMULATIONS for what in ("paper", "ours", "ratio")),
    "OS, paper [s]", "OS, ours [s]", "NMC/OS, paper [s]", "NMC/OS, ours [s]", "speed-up, paper", "speed-up, ours", "speed-up, ratio",
    "step: OS [µs]", "step: NMC/OS [µs]", "step: speed-up", "solving alone: speed-up", "step: velocities differ by",
)  # fmt: skip


def _draw_table_2(links: Array, paper: Array, whole: Array, contact: Array, solve: Array, figure: Any) -> None:
    ax = figure.subplots()
    ax.plot(links, paper, "s", color="0.35", markersize=6, label="paper, a simulation")
    ax.plot(links, whole, "o-", color=RED, label="ours, a simulation")
    ax.plot(links, contact, "^-", color=BLUE, label="ours, a step with 4 contacts")
    ax.plot(links, solve, "v--", color="#7b3fa0", label="ours, solving its problem alone")
    ax.set_yscale("log")
    ax.set_xticks(links)
    ax.set_yticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    ax.minorticks_off()
    ax.set(xlabel="links", ylabel="time of NMC/OS / time of OS", ylim=(1, 100))
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, loc="upper left")


# ---- figures ----------------------------------------------------------------------------------------------------------------

_WHO = {-1: "the floor", -2: "the wall", 0: "each other"}


def fig_5(quick: bool, progress: Progress) -> Output:
    """Pictures of the pendulum of 12 links, and the contacts between them."""
    timestep, end, pictures = (1e-3 if quick else 1e-4), 2.1, 8
    p = Pendulum(12)
    motion = swing(p, "os", timestep, end, progress)
    moments = np.round(np.linspace(0, len(motion.times) - 1, pictures)).astype(int)
    rows: list[tuple[Cell, ...]] = []
    shown = []
    start = kinetic_energy(p.model, motion.q[0], motion.v[0]) + potential_energy(p.model, motion.q[0])
    for k, step in enumerate(moments):
        since = moments[k - 1] if k else 0
        between = [c for c in motion.contacts if since <= c[0] < step]
        centers = p.centers(motion.q[step])[0]
        energy = kinetic_energy(p.model, motion.q[step], motion.v[step]) + potential_energy(p.model, motion.q[step])
        hits = [len({c[:1] + c[1:] for c in between if (c[2] >= 0 if other >= 0 else c[2] == other)}) for other in _WHO]
        rows.append((float(motion.times[step]), float(centers[-1, 0]), float(centers[-1, 2]), *hits, float(energy - start)))
        shown.append((float(motion.times[step]), centers, sorted({b for c in between for b in c[1:] if b >= 0})))
    first = {other: motion.first(other) for other in _WHO}
    seen = {_WHO[o]: t for o, t in first.items() if t is not None}
    per_step: dict[int, int] = {}
    for c in motion.contacts:
        per_step[c[0]] = per_step.get(c[0], 0) + 1
    in_order = all(first[o] is not None for o in _WHO) and first[-1] < first[-2]  # type: ignore[operator]
    floor = [c[0] for c in motion.contacts if c[2] == -1]
    deepest = float(min(p.gaps(p.centers(q)[0]).min() for q in motion.q))
    heights = np.array([p.centers(q)[0][-1, 2] for q in motion.q[:: max(1, len(motion.q) // 500)]])
    rose = float(heights.max() - heights[0])
    return Output(
        title="Swinging pendulum of 12 links, pictures",
        columns=("t [s]", "last ball, x [m]", "last ball, z [m]", *(f"contacts with {who} since the last" for who in _WHO.values()), "energy [J]"),
        rows=tuple(rows),
        note="As in the paper the pendulum swings from left to right, hits the floor, bounces, and then hits the wall: "
        + ", ".join(f"{who} first at {t:.2f} s" for who, t in seen.items())
        + f". The paper prints no times or numbers; the deepest penetration is {1e3 * max(0.0, -deepest):.2g} mm at steps of {1e3 * timestep:g} ms, and {motion.unsolved} problems were left unsolved.",
        claims=(
            Claim("It collides with the ground, bounces off, and eventually collides with the wall.", in_order and bool(floor), {f"first contact with {who} [s]": t for who, t in seen.items()} | {"rise of the last ball [m]": rose}),
            Claim("Links are in collision with the ground, the wall and each other.", len(seen) == 3, {f"contacts with {_WHO[o]}": float(sum((c[2] >= 0 if o >= 0 else c[2] == o) for c in motion.contacts)) for o in _WHO}),
            Claim("Several links collide during the motion.", len({b for c in motion.contacts for b in c[1:] if b >= 0}) > 1, {"links that collided": float(len({b for c in motion.contacts for b in c[1:] if b >= 0})), "most contacts in a step": float(max(per_step.values(), default=0))}),
        ),
        data={"timestep": timestep, "q": [motion.q[step].round(6).tolist() for step in moments], "unsolved": motion.unsolved, "deepest": deepest},
        figure=partial(_draw_fig_5, p.radius, shown),
    )  # fmt: skip


def _draw_fig_5(radius: float, shown: list[tuple[float, Array, list[int]]], figure: Any) -> None:
    from matplotlib.patches import Circle

    figure.set_size_inches(7.2, 3.9)
    axes = figure.subplots(2, len(shown) // 2, sharex=True, sharey=True)
    for ax, (t, centers, hit) in zip(axes.ravel(), shown, strict=True):
        ax.fill_between([-10.0, 4.0], -0.5, 0.0, color="0.8", linewidth=0)
        ax.fill_between([4.0, 4.6], -0.5, 10.5, color="0.8", linewidth=0)
        ax.plot([0.0], [10.0], "k^", markersize=4)
        for k, c in enumerate(centers):
            ax.add_patch(Circle((c[0], c[2]), radius, facecolor="#e08a1e" if k in hit else "#7fa8d6", edgecolor="0.2", linewidth=0.5))
        ax.set(xlim=(-10.0, 4.6), ylim=(-0.5, 10.5), aspect="equal", xticks=[-8, -4, 0, 4], yticks=[0, 5, 10])
        ax.set_title(f"t = {t:.2f} s", fontsize=8)
        ax.tick_params(labelsize=6, length=2)
    for ax in axes[:, 0]:
        ax.set_ylabel("z [m]", fontsize=7)
    for ax in axes[-1]:
        ax.set_xlabel("x [m]", fontsize=7)
    figure.suptitle("orange: collided since the picture before", fontsize=8)


def fig_6(quick: bool, progress: Progress) -> Output:
    """Height and normal velocity of the last of 12 balls in both formulations, and in steps of half the size."""
    timestep, end = (1e-3, 1.5) if quick else (2e-4, 2.1)
    p = Pendulum(12)
    sizes = (timestep, timestep / 2)
    curves: dict[tuple[str, float], tuple[Array, Array]] = {}
    runs: dict[tuple[str, float], Swing] = {}
    work, done = {"os": 1.0, "nmc-os": 4.0}, 0.0
    total = sum(w * timestep / h for w in work.values() for h in sizes)
    for h in sizes:
        for f, w in work.items():
            share = w * timestep / h
            motion = swing(p, f, h, end, lambda x, at=done, share=share: progress((at + share * x) / total))  # type: ignore[misc]
            runs[f, h] = motion
            curves[f, h] = _last_ball(p, motion, round(timestep / h))
            done += share
    times = runs["os", timestep].times
    apart = {h: np.abs(curves["os", h][0] - curves["nmc-os", h][0]) for h in sizes}
    coarse = np.abs(curves["os", sizes[0]][0] - curves["os", sizes[1]][0])
    z, u = curves["os", timestep]
    span, fast = float(np.ptp(z)), float(np.abs(u).max())
    jumps = np.abs(np.diff(u))
    hits = np.unique([step for step, _, _ in runs["os", timestep].contacts])
    calm = np.delete(jumps, hits[hits < len(jumps)])
    rows: list[tuple[Cell, ...]] = [
        (float(times[k]), *(float(curves[f, timestep][i][k]) for i in (0, 1) for f in work), float(apart[timestep][: k + 1].max()), float(apart[sizes[1]][: k + 1].max()), float(coarse[: k + 1].max()))
        for k in np.round(np.linspace(0, len(times) - 1, 11)).astype(int)
    ]  # fmt: skip
    largest = float(apart[timestep].max())
    keep = max(1, len(times) // 700)
    return Output(
        title="Height and normal velocity of the last of 12 links, OS and NMC/OS",
        columns=(
            "t [s]", "height, OS [m]", "height, NMC/OS [m]", "normal velocity, OS [m/s]", "normal velocity, NMC/OS [m/s]",
            "largest difference of heights so far [m]", f"the same, steps of {1e3 * sizes[1]:g} ms [m]", f"OS, steps of {1e3 * sizes[0]:g} and {1e3 * sizes[1]:g} ms: largest difference so far [m]",
        ),
        rows=tuple(rows),
        note=f"The two formulations agree as in the paper, and closer: heights differ by {largest:.1e} m at most over {end} s, {largest / span:.0e} of their range, since both solve one problem and integrate the same joints, and only rounding "
        f"differs, which collisions amplify. The difference that the paper sees shrink with the step does not appear: with half the step they differ by {float(apart[sizes[1]].max()):.1e} m, while the curve itself moves by up to {float(coarse.max()):.2g} m. Velocities jump at collisions, by up to {float(jumps.max()):.1f} m/s in a step. The paper prints no numbers.",
        claims=(
            Claim("The simulations of the two methods show good agreement.", largest < 0.01 * span, {"largest difference of heights [m]": largest, "range of heights [m]": span}),
            Claim("Spikes in the velocity are jumps from collisions.", bool(len(hits)) and float(jumps.max()) > 10 * float(calm.max()), {"largest jump [m/s]": float(jumps.max()), "largest change of a step without contacts [m/s]": float(calm.max()), "largest velocity [m/s]": fast}),
        ),
        data={
            "times": times[::keep].round(6).tolist(),
            **{f"{f}, {what}": curves[f, timestep][i][::keep].round(6).tolist() for f in work for i, what in enumerate(("height", "velocity"))},
            "unsolved": sum(run.unsolved for run in runs.values()),
        },
        figure=partial(_draw_fig_6, times, curves["os", timestep], curves["nmc-os", timestep], apart[timestep]),
    )  # fmt: skip


def _last_ball(p: Pendulum, motion: Swing, every: int) -> tuple[Array, Array]:
    """Height [m] and vertical velocity [m/s] of the last ball's centre."""
    last, middle = f"ball{p.links - 1}", (0.0, 0.0, -p.radius)
    z = [p.centers(q)[0][-1, 2] for q in motion.q[::every]]
    u = [point_velocity(p.model, q, v, last, middle)[2] for q, v in zip(motion.q[::every], motion.v[::every], strict=True)]
    return np.array(z), np.array(u)


def _draw_fig_6(times: Array, one: tuple[Array, Array], other: tuple[Array, Array], apart: Array, figure: Any) -> None:
    figure.set_size_inches(7.2, 5.2)
    axes = figure.subplots(3, 1, sharex=True, height_ratios=(1.2, 1.2, 0.8))
    for ax, a, b, label in zip(axes, one, other, ("height [m]", "normal velocity [m/s]"), strict=False):
        ax.plot(times, a, color=RED, linewidth=2.4, alpha=0.55, label="OS")
        ax.plot(times, b, color=BLUE, linewidth=0.9, linestyle="--", label="NMC/OS")
        ax.set_ylabel(label)
    axes[0].legend(frameon=False, loc="upper left", ncols=2)
    axes[2].semilogy(times[::4], np.maximum(apart, 1e-17)[::4], color="0.3", linewidth=0.8)
    axes[2].set(xlabel="t [s]", ylabel="difference\nof heights [m]")
    for ax in axes:
        ax.grid(alpha=0.25)
    figure.align_ylabels(axes)


ITEMS = (
    Item("lcp/table-1", PAPER, "sizes of the problem in four formulations", table_1, short=False),
    Item("lcp/table-2", PAPER, "pendulum of 3 to 30 links: sizes, times, speed-up", table_2, short=False),
    Item("lcp/fig-5", PAPER, "pictures of the swinging pendulum", fig_5),
    Item("lcp/fig-6", PAPER, "height and normal velocity in OS and NMC/OS", fig_6),
)
