"""Newton's method with contacts of which some are open: their blocks are zero and an elimination leaves them out. Its steps are those with the dense matrix, whatever was open before."""

import numpy as np
import pytest

import delassus as dl
from oracles.allocation import requests

# arms of three hinges that reach for two boxes; nothing touches a link of its own tree, of which G tells an estimate of the diagonal only
ARM = """<body name="{n}1" pos="{x} 0 1"><joint name="{n}a" axis="0 1 0" armature="0.01"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04"/>
<body name="{n}2" pos="0.3 0 0"><joint axis="0 0 1"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04"/>
<body name="{n}3" pos="0.3 0 0"><joint axis="1 1 0" type="{last}"/><geom type="box" size="0.1 0.05 0.04"/></body></body></body>"""
BOX = '<body name="{n}" pos="0.5 0.3 1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>'
ARMS = f"<mujoco><worldbody>{ARM.format(n='l', x=0, last='ball')}{ARM.format(n='r', x=1, last='hinge')}{BOX.format(n='b')}{BOX.format(n='c')}</worldbody></mujoco>"


def arms(rng):
    """Contacts one, two and five at a time between arms, boxes and ground, and a joint with friction."""
    model = dl.load(ARMS)
    pairs = [("l3", "b", 5), ("l3", "r3", 1), ("r2", "b", 2), ("b", "c", 4), ("c", None, 3), ("l2", "c", 1), ("r3", None, 2)]
    made = []
    for body, other, count in pairs:
        for _ in range(count):
            normal, mu = rng.standard_normal(3), rng.uniform(0.3, 0.9)
            points = {"point": rng.uniform(-0.1, 0.1, 3)} | ({"other": other, "other_point": rng.uniform(-0.1, 0.1, 3)} if other else {})
            made.append(dl.PointContact(model, body, normal=normal, friction=mu, **points))
    return model, [*made, dl.JointFriction(model, "la", 0.1)]


def pyramid(_):
    scene = dl.scenes.load("box-pyramid")
    return scene.model, scene.constraints[::7]


def heap(rng):
    """A robot and boxes, drawn at random who touches whom, so that the elimination is a large one."""
    model = dl.scenes.robot_heap(1, 55, robot="go2")
    tree, made = {}, []
    for body in model.bodies[1:]:
        tree[body.name] = tree.get(body.parent, body.name)
    names = list(tree)
    while len(made) < 4 * len(names):
        a, b = rng.choice(names, 2, replace=False)
        if tree[a] != tree[b]:
            points = {"point": rng.uniform(-0.1, 0.1, 3), "other_point": rng.uniform(-0.1, 0.1, 3)}
            made.append(dl.PointContact(model, a, other=b, normal=rng.standard_normal(3), friction=0.5, **points))
    assert products(dl.DelassusOperator(model, made)) > 1e4
    return model, made


def products(G):
    """Of blocks that the elimination takes."""
    return (np.unique(np.array(G._native.couplings)[:, 0], return_counts=True)[1].astype(float) ** 2).sum()


def velocities(G, rng, share):
    """Contacts that come together, but for a share that moves apart."""
    g = 0.1 * rng.standard_normal(G.shape[0])
    row = 0
    for c in G.constraints:
        if c.rows == 3:
            g[row] = 100.0 if rng.random() < share else -0.1 * rng.random()
        row += c.rows
    return g


def check_steps(made, share, rounds):
    rng = np.random.default_rng(5)
    model, constraints = made(rng)
    G = dl.DelassusOperator(model, constraints)
    for k in range(rounds):
        # others are open every time, and every other time the configuration is new
        if k % 2 == 0:
            q = model.random(k)
            G.update(q)
        g = velocities(G, rng, share)
        found, dense = (dl.solve_contacts(A, g, constraints, max_iterations=6) for A in (G, G.to_matrix()))
        n = min(len(found.history), len(dense.history), 4)
        # rounding, by the condition of the proximal matrix; below a hundredth of the tolerance it is all there is
        assert found.history[:n] == pytest.approx(dense.history[:n], rel=1e-6, abs=1e-8)

        fresh = dl.DelassusOperator(model, constraints)
        fresh.update(q)
        again = dl.solve_contacts(fresh, g, constraints, max_iterations=6)
        assert np.array_equal(found.forces, again.forces)
        assert np.array_equal(found.history, again.history)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("made", [arms, pyramid])
def test_steps_are_those_with_the_matrix(made, share):
    check_steps(made, share, 6)


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_steps_of_a_large_elimination_are_those_with_the_matrix(share):
    """Couplings of open contacts are not planned for there: another order, and others at every iteration."""
    check_steps(heap, share, 3)


def test_the_diagonal_is_that_of_the_configuration():
    """Found once for each: contact forces after a change of q, of compliance, and of both, are those of an operator that never was elsewhere."""
    rng = np.random.default_rng(6)
    model, constraints = arms(rng)
    G = dl.DelassusOperator(model, constraints)
    g = velocities(G, rng, 0.2)
    for k in range(4):
        G.update(model.random(k))
        compliance = np.full(G.shape[0], 1e-3 * k)
        G.compliance = compliance
        fresh = dl.DelassusOperator(model, constraints)
        fresh.update(model.random(k))
        fresh.compliance = compliance
        assert np.array_equal(dl.solve_contacts(G, g, constraints).forces, dl.solve_contacts(fresh, g, constraints).forces)


# more rows than NumPy keeps memory for: two requests are those of the result
SCRIPT = """
sys.path.insert(0, sys.argv[1] + "/solvers")
from test_open_contacts import heap, velocities

model, constraints = heap(np.random.default_rng(5))
G = dl.DelassusOperator(model, constraints)
G.update(model.random(0))
gs = [velocities(G, np.random.default_rng(k), 0.5) for k in range(3)]
solver, options = dl.ContactSolver(G, constraints), dl._core.ContactOptions(tolerance=1e-6, max_iterations=300)
for k in range(9):
    before = count()
    solver._native.solve(G._native, gs[k % 3], options, None)
    print("solve", k, count() - before, sep=",")
"""


def test_plans_of_a_large_elimination_are_made_in_the_same_memory(tmp_path):
    asked = requests(tmp_path, SCRIPT)
    assert asked["solve", "0"] > 100
    assert [asked["solve", str(k)] for k in range(6, 9)] == [2, 2, 2]
