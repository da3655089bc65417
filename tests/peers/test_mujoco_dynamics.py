"""MuJoCo computes the same dynamics for every embedded robot, every scene and random trees."""

import numpy as np
import pytest

import delassus as dl
from oracles import trees
from oracles.calls import values
from oracles.compare import agree
from oracles.engines import MuJoCo

# ten digits: both sides work in double precision; the worst condition here is that of the long chain
CLOSE = 1e-10
STATES = 20

SCENES = {
    "chain": dl.scenes.chain(30), "binary_tree": dl.scenes.binary_tree(3), "stem_with_branches": dl.scenes.stem_with_branches(4, 3),
    "swimmer": dl.scenes.swimmer(8), "pendulum": dl.scenes.pendulum(5), "four_bar": dl.scenes.four_bar(), "ring": dl.scenes.ring(12), "ladder": dl.scenes.ladder(5), "net": dl.scenes.net(2, 2), "stewart_platforms": dl.scenes.stewart_platforms(2), "n_four_bar": dl.scenes.n_four_bar(4),
    "box_stack": dl.scenes.box_stack(5), "box_pyramid": dl.scenes.box_pyramid(4), "flat_pyramid": dl.scenes.flat_pyramid(4), "pyramid_with_robots": dl.scenes.pyramid_with_robots(),
    "fork": dl.scenes.fork(4, 3), "dual_arm": dl.scenes.dual_arm(), "on_floor": dl.scenes.on_floor("g1"), "box_bin": dl.scenes.box_bin(8), "brick_wall": dl.scenes.brick_wall(2, 3), "robot_heap": dl.scenes.robot_heap(2), "model_of": dl.scenes.model_of("cassie-standing"),
}  # fmt: skip


def random_tree(seed):
    """Return a tree that MuJoCo can express: every body has mass, nothing follows a ball on its body."""
    rng = np.random.default_rng(seed)
    plan = []
    for k in range(rng.integers(2, 10)):
        parent = int(rng.integers(-1, k))
        allowed = [j for j in trees.JOINTS if "ball" not in j[:-1] and (parent < 0 or "free" not in j)]
        plan.append((parent, allowed[rng.integers(len(allowed))], False))
    return trees.mechanism(plan, [seed]).model


def test_every_scene_is_compared():
    makers = {k for k in dl.scenes.__all__ if getattr(getattr(dl.scenes, k), "__annotations__", {}).get("return") == "Model"}
    assert set(SCENES) == makers


@pytest.fixture(scope="module", params=[*dl.embedded_names(), *SCENES, *(f"tree {seed}" for seed in range(20))])
def both(request):
    name = request.param
    if name in dl.embedded_names():
        return dl.load(name), MuJoCo.of_asset(name)
    model = SCENES[name] if name in SCENES else random_tree(int(name.split()[1]))
    return model, MuJoCo.of_model(model)


def states(model):
    return (values(model, seed) for seed in range(STATES))


def test_mass_matrix_is_mujocos(both):
    model, peer = both
    assert (model.nq, model.nv, model.nbody) == (peer.m.nq, peer.m.nv, peer.m.nbody)
    for s in states(model):
        peer.set(s["q"], s["v"])
        agree(dl.mass_matrix(model, s["q"]), peer.mass_matrix, CLOSE)
        agree(dl.mass_matrix_inverse(model, s["q"]) @ peer.mass_matrix, np.eye(model.nv), CLOSE, 1.0)


def test_bias_forces_and_accelerations_are_mujocos(both):
    model, peer = both
    for s in states(model):
        q, v, tau, wrenches = (s[k] for k in ("q", "v", "tau", "external_forces"))
        d = peer.set(q, v, tau, wrenches)
        agree(dl.bias_forces(model, q, v), d.qfrc_bias, CLOSE)
        agree(dl.forward_dynamics(model, q, v, tau, external_forces=wrenches), d.qacc, CLOSE)
        agree(dl.inverse_dynamics(model, q, v, d.qacc, external_forces=wrenches), tau, CLOSE, np.abs(d.qfrc_bias).max() + np.abs(tau).max())


def test_places_and_jacobians_are_mujocos(both):
    model, peer = both
    for s in states(model):
        d = peer.set(s["q"], s["v"])
        X = dl.body_placements(model, s["q"])
        agree(X[:, :3, 3], d.xpos, CLOSE)
        agree(X[:, :3, :3].reshape(-1, 9), d.xmat, CLOSE)
        for body in np.random.default_rng(model.nbody).permutation(model.nbody)[:5]:
            agree(dl.frame_jacobian(model, s["q"], body, s["point"]), peer.jacobian(body, s["point"]), CLOSE, 1.0)


def test_energies_are_mujocos(both):
    model, peer = both
    for s in states(model):
        peer.set(s["q"], s["v"])
        agree(dl.kinetic_energy(model, s["q"], s["v"]), peer.kinetic, CLOSE)
        # zero height is arbitrary, so the weight lifted by a metre is the measure
        agree(dl.potential_energy(model, s["q"]), peer.potential, CLOSE, abs(peer.potential) + 9.81 * model.mass)


def test_configurations_move_as_in_mujoco(both):
    model, peer = both
    for s in states(model):
        agree(dl.integrate(model, s["q"], s["v"], s["dt"]), peer.integrate(s["q"], s["v"], s["dt"]), CLOSE)
        agree(dl.difference(model, s["q_from"], s["q_to"]), peer.difference(s["q_from"], s["q_to"]), CLOSE)
