"""Newton's method with contacts of which some are open: their blocks are zero and an elimination leaves them out. Its steps are those with the dense matrix, whatever was open before."""

import numpy as np
import pytest

import delassus as dl

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


def velocities(G, rng, share):
    """Contacts that come together, but for a share that moves apart."""
    g = 0.1 * rng.standard_normal(G.shape[0])
    row = 0
    for c in G.constraints:
        if c.rows == 3:
            g[row] = 100.0 if rng.random() < share else -0.1 * rng.random()
        row += c.rows
    return g


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("made", [arms, pyramid])
def test_steps_are_those_with_the_matrix(made, share):
    rng = np.random.default_rng(5)
    model, constraints = made(rng)
    G = dl.DelassusOperator(model, constraints)
    for k in range(6):
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
