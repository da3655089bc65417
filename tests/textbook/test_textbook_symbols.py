"""The same algorithms on CasADi expressions and on objects: equal to numbers; C code; operation counts."""

import math
import shutil
import subprocess
from fractions import Fraction

import numpy as np
import pytest

import delassus as dl
from delassus import textbook as tb
from delassus.textbook.catalogue import results
from oracles import rows
from oracles.cases import Case, case
from oracles.compare import agree

casadi = pytest.importorskip("casadi")


def evaluated(algorithm, c, **options):
    """An algorithm by numbers and by its expression, on the same random input."""
    found = tb.ALGORITHMS[algorithm]
    pose = tb.Robot(c.model).at(c.oracle.q)
    posed = tb.Rows(pose, c.constraints)
    sizes = dict.fromkeys(("v", "tau", "acceleration"), c.model.nv) | dict.fromkeys(("k", "x"), posed.m)
    given = {name: 0.7 if name in ("damping", "mu") else c.numbers(sizes[name], 1) for name in found.arguments}
    numbers = results(found(pose, posed, given))
    function = tb.function(algorithm, c.model, c.constraints, **options)
    out = function(c.oracle.q, *given.values())
    return numbers, [np.array(x) for x in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.parametrize("algorithm", tb.ALGORITHMS)
@pytest.mark.parametrize("name", ["go2", "mixed", "four-bar"])
def test_expression_has_the_numbers_value(name, algorithm):
    c = case(name, "contacts")
    if tb.ALGORITHMS[algorithm].any_rows:
        made = [
            rows.random_constraint(c.rng, c.model, kind, (c.model.nbody - 1, 1))
            for kind in ("distance", "hinge", "coupling", "center", "friction")
        ]
        c = Case(c.oracle, (*c.made[:1], *made), c.rng)
    if algorithm in ("pv", "pv-early"):
        # one row: these want independent rows, and expressions cannot be asked whether a row still moves
        c = Case(c.oracle, (rows.distance(c.model, c.model.nbody - 1, **rows.points(c.rng)),), c.rng)
    numbers, values = evaluated(algorithm, c)
    for want, got in zip(numbers, values, strict=True):
        agree(got, want, 1e-9)


def test_common_subexpressions_change_no_value_and_save_operations():
    c = case("go2", "contacts")
    numbers, values = evaluated("pv-osimr", c, cse=True)
    agree(values[0], numbers[0], 1e-10)
    assert tb.count("kjr", c.model, c.constraints, cse=True).total < tb.count("kjr", c.model, c.constraints).total


def test_objects_run_too():
    """Exact fractions, on a model of slides, where nothing is irrational."""
    b = dl.ModelBuilder("gantry")
    for k, axis in enumerate(np.eye(3)):
        b.add_body(f"b{k}", f"b{k - 1}" if k else "world", position=(0.5, 0.25, 1.0), mass=2.0 + k, inertia=(0.5, 0.25, 0.5))
        b.add_joint(f"b{k}", "slide", name=f"j{k}", axis=axis)
    model = b.build()
    q = np.array([Fraction(1, 3), Fraction(2, 7), Fraction(-1, 5)], dtype=object)
    pose = tb.Robot(model).at(q)
    Minv = tb.mass_matrix_inverse(pose)
    assert [Minv[k, k] for k in range(3)] == [1 / 9, 1 / 7, 1 / 4]
    end = tb.Rows(pose, [dl.Connect(model, "b2")])
    for method in (tb.kjr, tb.efpa, tb.pv_osim, tb.pv_osimr):
        assert (method(pose, end) == np.diag([1 / 9, 1 / 7, 1 / 4])).all()


def test_expression_compiles_to_c(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    c = case("iiwa", "contacts")
    function = tb.function("pv-osimr", c.model, c.constraints)
    generated = casadi.CodeGenerator("delassus.c")
    generated.add(function)
    generated.generate(f"{tmp_path}/")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "delassus.c", "-o", "delassus.so"], cwd=tmp_path, check=True)
    compiled = casadi.external("pv_osimr", str(tmp_path / "delassus.so"))
    agree(np.array(compiled(c.oracle.q)), c.G, 1e-10)


# ---- counts ----------------------------------------------------------------------------------------------------------------


def pendulum(joint, com=(0.0, 0.0, 0.0)):
    b = dl.ModelBuilder("one")
    b.add_body("body", mass=3.0, com=com, inertia=(0.5, 0.6, 0.7))
    b.add_joint("body", joint, name="joint", axis=(0.0, 0.0, 1.0))
    return b.build()


def test_counts_by_hand():
    # one mass on one axis: M is a number that needs no operation, M⁻¹ is folded too
    assert tb.count("crba", pendulum("hinge")).total == 0
    assert tb.count("minv-replaced", pendulum("hinge", (0.3, 0.0, 0.0))).total == 0
    # M⁻¹ τ: one multiplication
    assert tb.count("mass-inverse", pendulum("slide")) == tb.OperationCount(multiplications=1)
    # τ = 3 (a + 9.81): one multiplication, one addition
    assert tb.count("rnea", pendulum("slide")) == tb.OperationCount(additions=1, multiplications=1)
    # a second mass on the first along the same axis: M = [[6, 3], [3, 3]] without any operation, ABA's pivot 6 − 3·3/3 too
    b = dl.ModelBuilder("two")
    for name, parent in (("first", "world"), ("second", "first")):
        b.add_body(name, parent, mass=3.0, inertia=(0.5, 0.6, 0.7))
        b.add_joint(name, "slide", name=name)
    assert tb.count("crba", b.build()).total == 0
    # ν̇: u₁ = τ₁ + (τ₂ − 3 τ₂/3), each step two operations or less
    assert tb.count("mass-inverse", b.build()).total <= 8


def test_count_reads_the_operations_of_a_function():
    x, y = casadi.SX.sym("x"), casadi.SX.sym("y")
    f = casadi.Function("f", [x, y], [casadi.sqrt(x * x + y) / casadi.sin(y) - 2 * x + (-y), 1 / (x + x), casadi.fmax(x, y)])
    counted = tb.count_function(f)
    assert counted == tb.OperationCount(additions=5, multiplications=1, divisions=2, roots=1, trigonometric=1, other=1)
    assert counted.total == 11
    assert "11 operations" in str(counted)


def corners(model, body):
    return [dl.PointContact(model, body, point=(x, y, -0.08)) for x in (-0.1, 0.18) for y in (-0.06, 0.06)]


def totals(model, constraints, *names, **options):
    return [tb.count(name, model, constraints, **options).total for name in names]


def test_atlas_on_its_feet_and_hands_counts_as_in_pv_osimr():
    """The PV-OSIMr paper, section IV-C and IV-E: no difference with a weld a foot, 19.9 % with four points a foot, −1.5 % with hands welded too."""
    model = dl.load("atlas")
    feet, hands = ("l_foot", "r_foot"), ("l_hand", "r_hand")
    pv, reduced = totals(model, [dl.Weld(model, b) for b in feet], "pv-osim", "pv-osimr")
    assert pv == reduced
    pv, reduced, efpa, ltl = totals(model, [c for b in feet for c in corners(model, b)], "pv-osim", "pv-osimr", "efpa", "ltl")
    assert 0.15 < pv / reduced - 1 < 0.25
    assert reduced < pv < efpa < ltl
    pv, reduced = totals(model, [dl.Weld(model, b) for b in (*feet, *hands)], "pv-osim", "pv-osimr")
    assert abs(pv / reduced - 1) < 0.05
    assert pv < reduced


def test_atlas_with_hands_counts():
    """The PV-OSIMr paper, section IV-D: fewer operations by branching links. By how much ours differ from the text is in docs/textbook.md."""
    model = dl.load("atlas_hands")
    fingers = [f"{side}_rh_{finger}distal" for side in ("left", "right") for finger in ("ff", "mf", "rf", "lf", "th")]
    tips = [dl.PointContact(model, b, point=(0.0, 0.0, 0.02)) for b in fingers]
    standing = [dl.Weld(model, "l_foot"), dl.Weld(model, "r_foot")]
    pv, reduced, efpa = totals(model, [*standing, *tips], "pv-osim", "pv-osimr", "efpa")
    assert 0.12 < 1 - reduced / pv < 0.20
    assert pv < efpa
    pv, reduced = totals(model, tips, "pv-osim", "pv-osimr")
    assert 0.20 < 1 - reduced / pv < 0.28


def test_quadruped_counts_as_in_constrained_aba():
    """The constrained-dynamics paper, section VIII-B: constrainedABA about 20 % below proxLTL, three iterations, four points."""
    model = dl.load("go2")
    feet = [dl.PointContact(model, f"{leg}_calf", point=(0.0, 0.0, -0.213)) for leg in ("FL", "FR", "RL", "RR")]
    caba, ltl, ltls = totals(model, feet, "caba", "prox-ltl", "prox-ltls")
    assert 0.13 < 1 - caba / ltl < 0.27
    assert caba < ltls < ltl
    inverse, branched = totals(model, feet, "caba-osim", "caba-osimf")
    assert branched < inverse


def differences(counts, order):
    return np.diff(np.array(counts), order)


def chain_counts(name, ks, every_link=False):
    for k in ks:
        n = k if every_link else k * k
        model = dl.scenes.chain(n)
        ends = range(1, n + 1) if every_link else range(k, n + 1, k)
        yield tb.count(name, model, [dl.Weld(model, i) for i in ends]).total


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "degree", "leading"), [("pv-osimr", 2, 2344 / 3), ("efpa", 3, 538 / 3), ("pv-osim", 4, 12.0)])
def test_growth_on_the_k2_chain(name, degree, leading):
    """The PV-OSIMr paper, figure 4a. In steps of three (axes y, x, z) counts are polynomials in k but for the first links.

    PV-OSIM's leading term by hand: Σ over links of rows²/2 multiplications and additions, k Σ_j (6 j)² → 12 k⁴.
    """
    ks = [3 * j for j in range(1, degree + 2)]
    top = differences(list(chain_counts(name, ks)), degree)[-1] / (math.factorial(degree) * 3**degree)
    assert top == pytest.approx(leading, rel=0.03)


@pytest.mark.parametrize(("name", "degree"), [("pv-osimr", 2), ("efpa", 2), ("pv-osim", 3)])
def test_growth_with_rows_on_every_link(name, degree):
    """The PV-OSIMr paper, figure 4b: from six links on, exactly a polynomial of this degree."""
    counts = list(chain_counts(name, [3 * j for j in range(2, degree + 4)], every_link=True))
    assert (differences(counts, degree) > 0).all()
    assert not differences(counts, degree + 1).any()


@pytest.mark.parametrize("name", ["go2", "iiwa", "atlas", "hand"])
def test_both_forms_of_line_14_are_counted(name):
    model = dl.load(name)
    printed, replaced = totals(model, [], "minv-printed", "minv-replaced")
    # a tree with a deep or floating root gains from one frame, a shallow one loses
    assert (printed < replaced) == (name in ("go2", "atlas"))
