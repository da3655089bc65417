"""Products with a step's derivatives ask for no memory, and finding these for none beyond the record of the step."""

import pytest

from oracles.allocation import requests

SCRIPT = """
import warnings
warnings.simplefilter("ignore")


def measure(name, sim, steps):
    world, x = sim._world, np.ones(sim.model.nv)
    world.run(steps, steps + 1, None, None, None)
    state = world.save()

    def step():
        world.restore(state, len(state))
        world.step(None, None, None)

    def linearize():
        world.restore(state, len(state))
        world.linearize(None, None, None, 0.0, True)

    report(name + " step", float, step, 100)
    report(name + " linearize", float, linearize, 100)
    report(name + " jvp", float, lambda: world.tangents(x, x, x, None, None, None, 1, True), 100)
    report(name + " vjp", float, lambda: world.adjoints(x, x, 1, True, False), 100)


robot = dl.Simulator(dl.scenes.on_floor("go2"))
robot.reset(robot.model.keyframes["home"])
measure("robot", robot, 200)
measure("stack", dl.Simulator(dl.scenes.box_stack(3)), 50)
measure("loops", dl.Simulator(dl.scenes.four_bar()), 50)
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("scene", ["robot", "stack", "loops"])
def test_hundred_calls_allocate_nothing(counts, scene):
    assert counts[f"{scene} linearize", "float64"] <= counts[f"{scene} step", "float64"]
    assert counts[f"{scene} jvp", "float64"] == 0
    assert counts[f"{scene} vjp", "float64"] == 0
