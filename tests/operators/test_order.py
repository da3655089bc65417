"""The order of elimination is that of minimum degree, or of minimum fill where that is cheaper for a large plan, as a plain search over sets finds it, and so are the couplings that fill adds."""

import numpy as np
import pytest

import delassus as dl

LANES = 4  # of strips, in double precision


LARGE = 1e4  # products of blocks from which on minimum fill is tried


def products(couplings):
    counts = np.unique([i for i, _ in couplings], return_counts=True)[1] if couplings else np.zeros(1)
    return float((counts.astype(float) ** 2).sum())


def reference(plan):
    """Order and couplings by minimum degree, or by minimum fill if that takes fewer products of blocks, which is tried where they are many."""
    by_degree = order_by(plan, lambda adjacent, i: len(adjacent[i]))
    if products(by_degree[1]) < LARGE:
        return by_degree

    def missing(adjacent, i):
        near = sorted(adjacent[i])
        return (sum(len(set(near) - adjacent[j]) - 1 for j in near) // 2, bool(near))

    by_fill = order_by(plan, missing)
    return by_fill if products(by_fill[1]) < products(by_degree[1]) else by_degree


def order_by(plan, weight, kept_out=frozenset()):
    """Order and couplings by a rule, from the tree and the groups of coupled links that a plan tells.

    Idle links first. Of the links whose children are gone one with the least weight, such as the fewest neighbours, the last of these; those
    without neighbours and with one velocity go side by side, up to four at a time, then their parents; free links without neighbours likewise.
    """
    tree = {link: (parent, nv, free) for link, parent, nv, free, _, _ in plan["steps"]}
    groups = [{link, other} for link, other, _ in plan["points"] if other >= 0] + [set(of) for _, of in plan["terms"]]
    held = {link for link, _, _ in plan["points"]}.union(*groups)
    active = set()
    for link in held:
        while link >= 0:
            active.add(link)
            link = tree[link][0]
    adjacent = {i: set().union(*(g for g in groups if i in g)) - {i} for i in tree}
    children = {i: {j for j in tree if tree[j][0] == i} for i in tree}
    order, couplings, strips, strip = [], [], [], []

    def eliminate(i):
        near, parent = adjacent.pop(i), tree[i][0]
        order.append(i)
        couplings.extend((i, j) for j in sorted(near))
        meeting = near | ({parent} if parent >= 0 and near else set())
        for j in meeting:
            adjacent[j] = (adjacent[j] | meeting) - {i, j}
        if parent >= 0:
            children[parent].remove(i)

    while adjacent:
        ready = sorted((i for i in adjacent if not children[i]), key=lambda i: (i in active, weight(adjacent, i), -i))
        same = [i for i in ready if (i in active) == (ready[0] in active) and not adjacent[i]]
        plain = [i for i in same if tree[i][1] == 1 and i not in kept_out]
        after = [p for p in dict.fromkeys(tree[i][0] for i in strip) if p in plain]
        if not strip or len(after) != len(strip):
            after = (after + [i for i in plain if i not in after])[:LANES]
        strip = after if len(after) > 1 else []
        free = [i for i in same if tree[i][2]][:LANES]
        strips.extend([strip] if strip else [])
        for i in strip or (free if len(free) > 1 else ready[:1]):
            eliminate(i)

    # short runs of narrow strips do not pay
    position = {i: k for k, i in enumerate(order)}

    def follows(now, after):
        together = (now[0] in active) == (after[0] in active) and position[after[0]] == position[now[-1]] + 1
        return together and [tree[i][0] for i in now] == after

    more, run = set(), 0
    for k, now in enumerate(strips):
        run += 1
        if k + 1 < len(strips) and len(now) == len(strips[k + 1]) and follows(now, strips[k + 1]):
            continue
        if 8 * run * len(now) < 10 * run + 24:
            more.update(i for s in strips[k + 1 - run : k + 1] for i in s)
        run = 0
    return order_by(plan, weight, kept_out | more) if more else (order, couplings)


def check(model, constraints):
    native = dl.DelassusOperator(model, constraints)._native
    order, couplings = reference(native.plan)
    assert native.order == order
    assert [tuple(pair) for pair in native.couplings] == couplings


def boxes(n):
    builder = dl.ModelBuilder("boxes")
    for k in range(n):
        builder.add_body(f"b{k}", "world", mass=1.0, inertia=(1.0, 1.0, 1.0))
        builder.add_joint(f"b{k}", "free", name=f"b{k}")
    return builder.build()


def touching(model, pairs):
    point, normal = (0.1, 0.2, 0.3), (0.0, 0.0, 1.0)
    return [dl.PointContact(model, a, point=point, normal=normal, other=b, other_point=point, friction=0.5) for a, b in pairs]


@pytest.mark.parametrize("seed", range(12))
def test_free_bodies_that_touch_at_random(seed):
    rng = np.random.default_rng([seed, 71])
    n = int(rng.integers(2, 40))
    count = int(rng.integers(0, 3 * n))
    pairs = [rng.choice(n, 2, replace=False) for _ in range(count)]
    model = boxes(n)
    check(model, touching(model, [(f"b{a}", f"b{b}") for a, b in pairs]))


@pytest.mark.parametrize("chain", [False, True])
def test_a_body_that_touches_all_others(chain):
    n = 90
    model = boxes(n)
    pairs = [(f"b{k}", "b17") for k in range(n) if k != 17]
    if chain:
        pairs += [(f"b{k}", f"b{k + 1}") for k in range(20, n - 1, 3)]
    check(model, touching(model, pairs))


@pytest.mark.parametrize("seed", range(12))
def test_trees_that_touch_each_other_and_themselves(seed):
    rng = np.random.default_rng([seed, 72])
    builder, n = dl.ModelBuilder("trees"), int(rng.integers(4, 36))
    for k in range(n):
        parent = "world" if k == 0 or rng.random() < 0.2 else f"b{max(0, k - 1 - int(3 * rng.random()))}"
        builder.add_body(f"b{k}", parent, mass=1.0, inertia=(1.0, 1.0, 1.0))
        builder.add_joint(
            f"b{k}",
            "free" if parent == "world" and rng.random() < 0.5 else str(rng.choice(["hinge", "slide", "hinge", "ball"])),
            name=f"b{k}",
        )
    model = builder.build()
    names = [f"b{k}" for k in range(n)]
    pairs = [rng.choice(names, 2, replace=False) for _ in range(int(rng.integers(0, 12)))]
    ground = [dl.PointContact(model, str(b), point=(0, 0, 0), normal=(0, 0, 1), friction=0.5) for b in rng.choice(names, 3)]
    welds = [dl.Weld(model, str(a), str(b)) for a, b in (rng.choice(names, 2, replace=False) for _ in range(seed % 3))]
    check(model, [*touching(model, [(str(a), str(b)) for a, b in pairs]), *ground, *welds])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("chains", [False, True])
def test_many_that_touch_go_by_minimum_fill_if_that_is_cheaper(seed, chains):
    rng = np.random.default_rng([seed, 73])
    builder, n = dl.ModelBuilder("many"), 140
    for k in range(n):
        parent = f"b{k - 1}" if chains and k % 5 in (2, 3) else "world"
        builder.add_body(f"b{k}", parent, mass=1.0, inertia=(1.0, 1.0, 1.0))
        builder.add_joint(f"b{k}", "free" if parent == "world" else "hinge", name=f"b{k}")
    model = builder.build()
    # who is close in a cube touches, and some that are not
    place = rng.random((n, 3))
    distance = np.linalg.norm(place[:, None] - place, axis=2)
    pairs = [(a, b) for a in range(n) for b in range(a) if distance[a, b] < 0.27 or rng.random() < 0.01]
    constraints = touching(model, [(f"b{a}", f"b{b}") for a, b in pairs])
    check(model, constraints)
    plan = dl.DelassusOperator(model, constraints)._native.plan
    by_degree = products(order_by(plan, lambda adjacent, i: len(adjacent[i]))[1])
    assert by_degree > LARGE
    assert products(reference(plan)[1]) < by_degree
