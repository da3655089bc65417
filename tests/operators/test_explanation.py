"""What `explain` counts is what the rule says, added up by hand for mechanisms small enough, and read from the same plan as the sweeps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import delassus as dl
from delassus.operators.explanation import Phase


def explain(model, constraints, **options):
    return dl.DelassusOperator(model, constraints, **options).explain()


def costs(e):
    phases = (e.kinematics, e.mass_factor, e.product, e.damped_factor, e.solve)
    return [p.multiply_adds for p in phases], [p.bytes for p in phases]


def boxes(n):
    return dl.scenes.box_stack(n)


def test_a_chain_with_one_contact_costs_what_is_added_up_by_hand():
    # five hinges, a contact on the third: the last two are idle; the first hangs on the ground and merges with nothing
    model = dl.scenes.chain(5)
    e = explain(model, [dl.PointContact(model, "link2")])
    assert e.order == ("link4_joint", "link3_joint", "link2_joint", "link1_joint", "link0_joint")
    assert (e.idle, e.widest, e.given, e.arising) == (2, 0, 0, 0)
    assert (e.velocities, e.constraints, e.rows) == (5, 1, 3)
    sweeps, rows = 3 * 26 + 2 * 6, 2 * (9 + 6)
    arithmetic, numbers = costs(e)
    assert arithmetic == [
        5 * (27 + 12 + 9 + 6 + 63) + 9,
        5 * (36 + 6 + 27) + 4 * 21,
        sweeps + rows + 3,
        13 + 21 + 3 * (36 + 6 + 27) + 2 * 21,
        sweeps + rows + 2 * 3,
    ]
    factor, passage = 3 * (6 + 6 + 1), 3 * 6 + 3 + (9 + 3) + 3 * 3
    assert numbers == [8 * n for n in (5 + 5 * 44 + 5 * 6 + 6, 5 * (10 + 13), factor + passage, 3 * 10 + factor + 3 + 3, factor + passage)]


def test_two_boxes_with_a_contact_cost_what_is_added_up_by_hand():
    model = boxes(2)
    e = explain(model, [dl.PointContact(model, "box1", other="box0")])
    assert (e.idle, e.widest, e.given, e.arising) == (0, 1, 1, 0)
    rows = 2 * (9 + 2 * 6)
    arithmetic, numbers = costs(e)
    assert arithmetic == [
        2 * 117 + 2 * 9,
        2 * 50,
        2 * 36 + rows + 3,
        (2 * 13 + 9) + (2 * 21 + 36) + 2 * 50 + (90 + 36 + 126),
        2 * 36 + (6 + 72) + rows + 2 * 3,
    ]
    passage = 2 * 6 + 12 + (9 + 2 * 3) + 3 * 3
    coupled = 2 * 21 + 6 * 6
    assert numbers == [
        8 * n for n in (14 + 2 * 44 + 12 * 6 + 12, 2 * (10 + 21), 2 * 21 + passage, 20 + coupled + 36 + 6 + 3, coupled + passage)
    ]


def test_a_loop_costs_its_couplings():
    # two limbs of two hinges, their tips welded: a point, and three rows with two terms
    builder = dl.ModelBuilder("limbs")
    for limb in "ab":
        for k, parent in enumerate(("world", f"{limb}0")):
            builder.add_body(f"{limb}{k}", parent, mass=1.0, inertia=(1.0, 1.0, 1.0))
            builder.add_joint(f"{limb}{k}", "hinge", name=f"{limb}{k}")
    model = builder.build()
    e = explain(model, [dl.Weld(model, "a1", "b1")])
    # b1 goes with the neighbour a1, which becomes b0's; then no couplings are left
    assert e.order == ("b1", "b0", "a1", "a0")
    assert (e.idle, e.widest, e.given, e.arising) == (0, 1, 1, 1)
    stiffness = (2 * 13 + 9) + (2 * 21 + 36) + 3 * (2 * 27 + 42)
    assert e.damped_factor.multiply_adds == stiffness + (69 + 99 + 21 + 36) + (69 + 99) + (69 + 21) + 69
    rows = 2 * ((9 + 2 * 6) + 3 * 2 * 6)
    assert e.product.multiply_adds == 4 * 26 + 2 * 6 + rows + 6
    assert e.solve.multiply_adds == 4 * 26 + 2 * 6 + 2 * 12 + rows + 2 * 6


def test_joint_rows_turn_a_free_link_into_its_axes():
    model = boxes(1)
    one = explain(model, [dl.PointContact(model, "box0")])
    more = explain(model, [dl.PointContact(model, "box0"), dl.JointFriction(model, "box0_free", 1.0)])
    # six joint rows both ways, their compliance, and the turn
    assert more.product.multiply_adds - one.product.multiply_adds == 2 * 6 + 6 + 18
    assert more.damped_factor.multiply_adds - one.damped_factor.multiply_adds == 6


def test_costs_are_linear_in_the_length_of_a_swimmer():
    counted = []
    for links in (10, 20, 40):
        scene = dl.scenes.swimmer_scene(links)
        e = explain(scene.model, scene.constraints)
        assert (e.rows, len(e.order)) == (6 * links, links + 2)
        counted.append(np.array(costs(e)))
    assert np.array_equal(counted[2] - counted[1], 2 * (counted[1] - counted[0]))
    assert (counted[0] > 0).all()


@pytest.mark.parametrize("name", dl.scenes.names)
def test_counts_of_scenes_hang_together(name):
    scene = dl.scenes.load(name)
    G = dl.DelassusOperator(scene.model, scene.constraints)
    e = G.explain()
    assert (e.order, e.given + e.arising, e.rows) == (G.order, G.fill, G.shape[0])
    assert min(e.given, e.arising, e.widest) >= 0
    assert e.damped_factor.multiply_adds > e.solve.multiply_adds >= e.product.multiply_adds + e.rows
    assert all(phase < G.nbytes for phase in costs(e)[1][1:])
    # no constraint reaches the idle joints: none of the rows moves with them
    G.update(scene.q)
    J = G.jacobian.H @ np.eye(G.shape[0])
    still = np.isin(scene.model.joint_names, e.order[: e.idle])
    first = [int(scene.model.joint_vadr[j]) for j in np.flatnonzero(still)]
    assert not J[first].any()


@pytest.mark.parametrize(("rows", "product"), [(24, 684), (3, 10), (3, 1000), (10, 101)])
def test_break_even_is_the_first_number_of_products_for_which_a_matrix_is_cheaper(rows, product):
    e = replace(explain(boxes(1), []), rows=rows, product=Phase(product, 0))
    k = e.break_even
    explicit = [e.forming + n * rows**2 < n * product for n in (k - 1, k)]
    assert explicit == [False, True]
    assert f"pays off from {k:,} products" in str(e)


@pytest.mark.parametrize(("rows", "product"), [(10, 100), (10, 99), (864, 13272)])
def test_a_matrix_never_pays_where_its_product_costs_as_much(rows, product):
    e = replace(explain(boxes(1), []), rows=rows, product=Phase(product, 0))
    assert e.break_even is None
    assert "never pays" in str(e)


def test_without_constraints_only_the_tree_costs():
    e = explain(dl.load("go2"), [])
    assert (e.idle, e.rows, e.constraints, e.given, e.arising, e.widest) == (13, 0, 0, 0, 0, 0)
    assert e.product == e.damped_factor == e.solve == Phase(0, 0)
    assert (e.forming, e.break_even) == (0, None)
    assert min(e.kinematics.multiply_adds, e.mass_factor.multiply_adds) > 0
    assert "13 joints that no constraint reaches\n" in str(e)
    assert "no rows" in str(e)


def test_a_model_without_joints_is_explained():
    builder = dl.ModelBuilder("rigid")
    builder.add_body("a", mass=1.0, inertia=(1.0, 1.0, 1.0))
    model = builder.build()
    e = explain(model, [dl.PointContact(model, "a")])
    assert (e.order, e.rows, e.break_even) == ((), 3, None)
    assert "0 joints" in str(e)


def test_precision_halves_bytes_and_a_batch_costs_the_same_a_state():
    scene = dl.scenes.load("go2-standing")
    wide = explain(scene.model, scene.constraints)
    narrow = explain(scene.model, scene.constraints, dtype=np.float32)
    assert costs(narrow)[0] == costs(wide)[0]
    assert [2 * b for b in costs(narrow)[1]] == costs(wide)[1]
    assert dl.BatchDelassusOperator(scene.model, scene.constraints, 3).explain() == wide


def test_the_report_says_what_the_numbers_are():
    scene = dl.scenes.load("g1-fallen")
    e = explain(scene.model, scene.constraints)
    told = str(e)
    for number in (*costs(e)[0], *costs(e)[1]):
        assert f" {number:,}" in told
    assert f"{e.given} from constraints, {e.arising} from fill-in" in told
    assert f"{e.order[e.idle]} … {e.order[-1]}" in told


def test_the_page_shows_a_report_as_it_is():
    scene = dl.scenes.load("g1-standing")
    page = Path(__file__).parents[2] / "docs" / "operators.md"
    assert f"```text\n{explain(scene.model, scene.constraints)}\n```" in page.read_text()
