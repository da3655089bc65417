"""Steps ask for no memory once every set of touching links was seen; the first step with a new set does."""

import pytest

from oracles.allocation import requests

SCRIPT = """
import warnings
warnings.simplefilter("ignore")

BALL = '<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.3"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'


def of_run(world, steps):
    before = count()
    world.run(steps, steps + 1, None, None, None)
    return count() - before


def measure(name, sim, steps=300):
    world = sim._world
    first = of_run(world, 1)
    world.run(3000, 3001, None, None, None)
    systems = world.systems
    # what a call takes by itself, and many steps
    call, many = of_run(world, 1), of_run(world, steps)
    assert world.systems == systems and systems > 0, "a new set of links touched: take another scene"
    print(name, "first", first - call, sep=",")
    print(name, "later", many - call, sep=",")


robot = dl.Simulator(dl.scenes.on_floor("go2"))
robot.reset(robot.model.keyframes["home"])
measure("robot", robot)
for solver in ("admm", "newton"):
    measure(f"stack by {solver}", dl.Simulator(dl.scenes.box_stack(3), solver=solver))
measure("bouncing ball", dl.Simulator(BALL, restitution=1.0))
measure("loops", dl.Simulator(dl.scenes.four_bar()))
"""
SCENES = ["robot", "stack by admm", "stack by newton", "bouncing ball", "loops"]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("scene", SCENES)
def test_a_step_allocates_nothing_after_warm_up(asked, scene):
    assert asked[scene, "first"] > 0  # the counter sees the core
    assert asked[scene, "later"] == 0
