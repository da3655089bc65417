"""Operation counts of the textbook algorithms beside what the PV-OSIMr and constrained-dynamics papers state: growth on chains, atlas, atlas_hands, a quadruped, M⁻¹.

python benchmarks/python/counts.py [--json FILE]        some minutes
"""

import argparse
import json
import math
import warnings
from pathlib import Path

import numpy as np

import delassus as dl
from delassus import textbook as tb
from delassus.reproduce.osim import atlas_constraints, full_chain, k2_chain, stem

MATRICES = ("ltl", "kjr", "efpa", "pv-osim", "pv-osimr")
INVERSES = ("ltl-inverse", "caba-osim", "caba-osimf", "pv-osimf")
DYNAMICS = ("prox-ltl", "prox-ltls", "prox-pv", "caba", "lcaba", "pv", "pv-soft", "pv-early")


def total(name, model, constraints=()):
    return tb.count(name, model, constraints).total


def growth(name, make, sizes, degree):
    """Counts at equal steps; the polynomial of this degree through the last ones, its error at the one before, and its slope far out."""
    counts = [total(name, *make(k)) for k in sizes]
    sizes = np.array(sizes, dtype=float)
    p = np.polyfit(sizes[-degree - 1 :], counts[-degree - 1 :], degree)
    step = sizes[1] - sizes[0]
    leading = float(np.diff(counts, degree)[-1] / (math.factorial(degree) * step**degree))
    far = np.array([100.0, 1000.0])
    return {
        "sizes": sizes.astype(int).tolist(),
        "counts": counts,
        "slope": float(np.polyfit(np.log(sizes[-3:]), np.log(counts[-3:]), 1)[0]),
        "leading": leading,
        "miss": float(abs(np.polyval(p, sizes[-degree - 2]) / counts[-degree - 2] - 1)),
        "slope_100_to_1000": float(np.diff(np.log(np.polyval(p, far)))[0] / np.diff(np.log(far))[0]),
    }


def robots():
    """Robots with constraints: (label, model, constraints)."""
    atlas, hands, hand, talos, solo, go2, iiwa = (dl.load(n) for n in ("atlas", "atlas_hands", "hand", "talos", "solo", "go2", "iiwa"))

    def welds(model, *bodies):
        return [dl.Weld(model, b) for b in bodies]

    def points(model, z, *bodies):
        return [dl.PointContact(model, b, point=(0.0, 0.0, z)) for b in bodies]

    legs = ("leg_left_6_link", "leg_right_6_link")
    arms = ("arm_left_7_link", "arm_right_7_link")
    both = ("left_", "right_")
    yield "atlas F6x2", atlas, atlas_constraints(atlas, feet="welds")
    yield "atlas F3x4 a foot", atlas, atlas_constraints(atlas, feet="corners")
    yield "atlas F6x2 H6x2", atlas, atlas_constraints(atlas, feet="welds", wrists=True)
    yield "hand T3x5", hand, atlas_constraints(hand, hands=("",))
    yield "atlas_hands T3x5", hands, atlas_constraints(hands, hands=("left_",))
    yield "atlas_hands T3x10", hands, atlas_constraints(hands, hands=both)
    yield "atlas_hands F6x2 T3x10", hands, atlas_constraints(hands, feet="welds", hands=both)
    yield "iiwa H3", iiwa, points(iiwa, 0.1, "link7")
    yield "iiwa H6", iiwa, welds(iiwa, "link7")
    yield "solo F3x4", solo, points(solo, -0.16, *(f"{leg}_LOWER_LEG" for leg in ("FL", "FR", "HL", "HR")))
    yield "go2 F3x4", go2, points(go2, -0.213, *(f"{leg}_calf" for leg in ("FL", "FR", "RL", "RR")))
    yield "talos F6x2", talos, welds(talos, *legs)
    yield "talos F6x2 H6x2", talos, welds(talos, *legs, *arms)


def table(title, names, lines):
    print(f"\n### {title}\n\n| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for label, values in lines:
        print(f"| {label} | " + " | ".join(values) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="smaller chains")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    result = {"growth": {}, "robots": {}, "stem": {}, "minv": {}}

    ks = range(6, 16 if options.quick else 22, 3)
    for title, make, wanted in (
        ("k² links, a weld on every k-th", k2_chain, {"pv-osimr": 2, "efpa": 3, "pv-osim": 4}),
        ("a weld on every link", full_chain, {"pv-osimr": 2, "efpa": 2, "pv-osim": 3}),
    ):
        found = {name: growth(name, make, ks, degree) for name, degree in wanted.items() if len(ks) > degree + 1}
        result["growth"][title] = found
        lines = [
            (name, [f"{g['counts'][-1]:,}", f"{g['slope']:.2f}", f"{g['leading']:.2f}", f"{g['miss']:.0e}", f"{g['slope_100_to_1000']:.2f}", str(wanted[name])])
            for name, g in found.items()
        ]  # fmt: skip
        table(f"Growth: {title}, k = {ks[0]} … {ks[-1]}", (f"k = {ks[-1]}", "slope of the last three", "leading coefficient", "polynomial misses by", "slope from 100 to 1000", "order"), lines)  # fmt: skip

    for label, model, constraints in robots():
        result["robots"][label] = {name: total(name, model, constraints) for name in (*MATRICES, *INVERSES, *DYNAMICS)}
    for title, names in (("Delassus matrix", MATRICES), ("Damped inverse", INVERSES), ("Constrained dynamics, three iterations", DYNAMICS)):
        lines = [(label, [f"{counts[n]:,}" if n in counts else "" for n in names]) for label, counts in result["robots"].items()]
        table(title, names, lines)

    for branches in (1, 2, 4):
        for links in (5, 20):
            model, ends = stem(links, branches)
            result["stem"][f"{branches} a side, stem of {links}"] = {n: total(n, model, ends) for n in ("efpa", "pv-osim", "pv-osimr")}
    table(
        "Stem with branches of seven links (PV-OSIMr paper, fig. 3)",
        ("efpa", "pv-osim", "pv-osimr"),
        [(k, [f"{x:,}" for x in v.values()]) for k, v in result["stem"].items()],
    )

    for name in ("iiwa", "hand", "solo", "go2", "g1", "talos", "atlas", "atlas_hands"):
        model = dl.load(name)
        result["minv"][name] = {n: total(n, model) for n in ("minv-printed", "minv-replaced", "aba", "crba")}
    table(
        "M⁻¹: line 14 as printed (one frame) and replaced (link frames)",
        ("printed", "replaced", "ABA", "CRBA"),
        [(k, [f"{x:,}" for x in v.values()]) for k, v in result["minv"].items()],
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
