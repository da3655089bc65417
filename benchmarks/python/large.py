"""Large mechanisms: construction, factors, products, solutions and memory from 100 links to 100,000, a process for every family and size.

Poses are compact: chains, swimmers, ladders and narrow nets are wound up, since all links of a tree are described about one point and digits go with the square of its extent over the length of a link.
Times are processor times of one thread, the best of several. Memory is what the process grows by from the model to the last solution.

Results are verified, and the exit code is 1 where one fails:

- G x beside J M⁻¹ Jᵀ x, with Jᵀ x checked against J by v · Jᵀ x = x · J v, M⁻¹ by the articulated body algorithm and J v by the rows themselves, none of which is code of the operator,
- (G + ε) x − y of the solution by its normwise backward error,
- forward dynamics by inverse dynamics, as a normwise backward error too,
- constrained accelerations by the residuals of both equations, which are computed from their definition and free of units; "stalled" is a status that they may have above 1e-12.

python benchmarks/python/large.py [--families NAME …] [--sizes N …] [--json FILE] [--plot FILE] [--from FILE]
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import time

import numpy as np

import delassus as dl

SIZES = (100, 1000, 10_000, 100_000)
DAMPING, TOLERANCE = 1e-6, 1e-8
ROD, SIDES, NARROW = 0.2, 24, 8  # m; of a polygon that long mechanisms are wound on; knots across a narrow net


# ---- mechanisms: a model, a compact pose, constraints -----------------------------------------------------------------------------


def loops_of(model):
    return [dl.constraints.from_loop(model, loop) for loop in model.loops]


def chain(n):
    """Wound on a polygon in the xz plane, three rods a side; the last rod is welded to the world."""
    model = dl.scenes.chain(n)
    q = np.zeros(n)
    q[::3] = 2 * np.pi / SIDES
    return model, q, [dl.Weld(model, model.nbody - 1, point=(0.0, 0.0, -ROD))]


def swimmer(n):
    """Wound on a polygon on the floor, every rod touching at both ends."""
    model, _, contacts = dl.scenes.swimmer_scene(n)
    return model, np.r_[0.0, 0.0, np.full(n, 2 * np.pi / SIDES)], contacts


def tree(n):
    """Three rods a branch, in a wave, every leaf pinned to the world."""
    model = dl.scenes.binary_tree(max(1, round(np.log2(n / 3 + 1))))
    inner = set(model.body_parent.tolist())
    leaves = [b for b in range(1, model.nbody) if b not in inner]
    return model, 0.4 * np.sin(0.7 * np.arange(model.nq) + 0.4), [dl.Connect(model, b, point=(0.0, 0.0, -ROD)) for b in leaves]


def wound(model, along):
    """Meshes sheared so that rods along this axis wind up, all of one row or column alike, and rods across it do not turn: loops stay closed."""
    X = dl.body_placements(model, model.neutral())
    start, end = X[:, along, 3], X[:, along, 3] + ROD * X[:, along, 0]
    place = np.rint(np.minimum(start, end) / ROD)
    turn = np.where(abs(X[:, along, 0]) > 0.5, 2 * np.pi / SIDES * place, 0.0)
    turn[0] = 0.0
    return (turn - turn[model.body_parent])[model.joint_body]


def ladder(n):
    model = dl.scenes.ladder(max(1, n // 3))
    return model, wound(model, 2), loops_of(model)


def narrow_net(n):
    model = dl.scenes.net(NARROW, max(2, round((n + NARROW) / (2 * NARROW - 1))))
    return model, wound(model, 0), loops_of(model)


def square_net(n):
    side = max(2, round((1 + np.sqrt(1 + 2 * n)) / 2))
    model = dl.scenes.net(side, side)
    return model, model.neutral(), loops_of(model)


FAMILIES = {"chain": chain, "swimmer": swimmer, "binary tree": tree, "ladder": ladder, "net, 8 wide": narrow_net, "net, square": square_net}


# ---- one of them ----------------------------------------------------------------------------------------------------------------


def best(f, repeats):
    """Processor time of the quickest call [s], and what the last one returned."""
    times, result = [], None
    for _ in range(repeats):
        result = None
        before = time.process_time()
        result = f()
        times.append(time.process_time() - before)
    return min(times), result


def memory():
    """Memory of this process now [B]."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def distance(a, b):
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-300))


def measure(family, size):
    """Times [s], memory [B] and errors of a mechanism."""
    warm, _, rows = ladder(30)  # what the first call of everything loads
    dl.constrained_dynamics(warm, warm.neutral(), warm.zero_velocity(), warm.zero_velocity(), rows, method="lcaba")
    make_time, (model, q, constraints) = best(lambda: FAMILIES[family](size), 1)
    repeats = 20 if size <= 10_000 else 4
    n, rng = model.nbody - 1, np.random.default_rng(0)
    started = memory()
    symbolic, G = best(lambda: dl.DelassusOperator(model, constraints, damping=DAMPING), 2)
    made = memory()
    update, _ = best(lambda: G.update(q), repeats)
    x, v, tau = (rng.standard_normal(k) for k in (G.shape[0], model.nv, model.nv))
    tau *= 0.1  # N m; a rod weighs 0.5 kg
    apply, Gx = best(lambda: G @ x, repeats)
    solve, y = best(lambda: G.solve(x), repeats)
    used = memory()
    row = {"family": family, "links": n, "rows": G.shape[0], "model": make_time, "symbolic": symbolic, "update": update, "apply": apply, "solve": solve,
           "symbolic / update": symbolic / update, "operator, B": used - started, "plan, B": made - started, "numbers, B": G.nbytes}  # fmt: skip

    # tree dynamics and constrained dynamics
    rest = np.zeros(model.nv)
    row["forward dynamics"], a = best(lambda: dl.forward_dynamics(model, q, rest, tau), repeats)
    method = dl.ConstrainedDynamics(model, constraints, method="lcaba")
    row["constrained dynamics"], r = best(lambda: method.solve(q, rest, tau), 3)
    row |= {"iterations": r.iterations, "status": r.status, "error of accelerations": max(r.residuals.constraints, r.residuals.dynamics)}

    # products by other code, with the same Jᵀ x
    Jx = G.jacobian.T @ x
    Jv = dl.constraint_velocity(model, q, v, constraints)
    row["error of Jᵀ x"] = float(abs(v @ Jx - Jv @ x) / (np.linalg.norm(Jv) * np.linalg.norm(x)))
    row["error of G x"] = distance(Gx, dl.constraint_velocity(model, q, dl.solve_mass_matrix(model, q, Jx), constraints))
    row["backward error"] = float(G.backward_error(y, x))
    bias = dl.bias_forces(model, q, rest)
    residual = dl.inverse_dynamics(model, q, rest, a) - tau
    u = rng.standard_normal(model.nv)
    for _ in range(5):  # ‖M‖ by power iterations, from below
        u = dl.inverse_dynamics(model, q, rest, u / np.linalg.norm(u)) - bias
    row["error of M⁻¹"] = float(np.linalg.norm(residual) / (np.linalg.norm(u) * np.linalg.norm(a) + np.linalg.norm(tau)))
    row["peak, B"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return row


def failures(row):
    errors = ("error of Jᵀ x", "error of G x", "backward error", "error of M⁻¹", "error of accelerations")
    return [f"{row['family']}, {row['links']} links: {e} is {row[e]:.1e}" for e in errors if not row[e] <= TOLERANCE]


# ---- all of them ----------------------------------------------------------------------------------------------------------------


def table(rows):
    print(
        "| mechanism | links | rows | model, s | symbolic, ms | update, ms | G x, ms | solve, ms | symbolic / update | operator, B a link | backward error |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        times = " | ".join(f"{1e3 * r[key]:.3g}" for key in ("symbolic", "update", "apply", "solve"))
        print(
            f"| {r['family']} | {r['links']:,} | {r['rows']:,} | {r['model']:.2g} | {times} | {r['symbolic / update']:.1f} | "
            f"{r['operator, B'] / r['links']:,.0f} | {r['backward error']:.0e} |"
        )


def plot(rows, path):
    """Time and memory per link against links."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.4), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True)
    shown = (
        ("symbolic", "construction of the operator, µs a link", 1e6),
        ("update", "update(q), both factors, µs a link", 1e6),
        ("apply", "G x, µs a link", 1e6),
        ("solve", "solve, µs a link", 1e6),
        ("constrained dynamics", "constrained dynamics, µs a link", 1e6),
        ("operator, B", "memory of the operator, kB a link", 1e-3),
    )
    colours = dict(zip(FAMILIES, ("#1f5fa8", "#2a9d8f", "#6a994e", "#e08a1e", "#b5477b", "#8d1f1f"), strict=True))
    for axes, (key, title, scale) in zip(panels.flat, shown, strict=True):
        for family, colour in colours.items():
            own = [r for r in rows if r["family"] == family and r[key] > 0]
            # memory of a small one is that of pages that the process had
            own = [r for r in own if key != "operator, B" or r["links"] > 500]
            if own:
                axes.loglog([r["links"] for r in own], [scale * r[key] / r["links"] for r in own], "o-", ms=4, color=colour, label=family)
        axes.set_title(title, fontsize=10)
        axes.grid(alpha=0.3, which="both", lw=0.4)
    for axes in panels[1]:
        axes.set_xlabel("links")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--json", help="file to write all numbers to")
    parser.add_argument("--plot", help="file to write a figure to")
    parser.add_argument("--from", dest="kept", help="file that --json wrote: show it again and measure nothing")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]))))
        return
    rows = []
    if options.kept:
        with open(options.kept) as file:
            rows = json.load(file)["rows"]
    else:
        for family in options.families:
            for size in options.sizes:
                done = subprocess.run([sys.executable, __file__, "--one", family, str(size)], capture_output=True, text=True)
                if done.returncode:
                    raise SystemExit(f"{family}, {size} links:\n{done.stderr}")
                rows.append(json.loads(done.stdout))
                print(f"{family}, {rows[-1]['links']:,} links", file=sys.stderr)
    table(rows)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": platform.processor() or platform.machine(), "damping": DAMPING, "rows": rows}, file, indent=1)
    if options.plot:
        plot(rows, options.plot)
    if failed := [line for row in rows for line in failures(row)]:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
