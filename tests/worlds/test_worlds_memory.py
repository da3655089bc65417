"""Steps of many worlds ask for no memory once every set of touching links was seen, and hold no more and more of it."""

import pytest

from oracles.allocation import requests

SCRIPT = """
import resource
import warnings
warnings.simplefilter("ignore")


def of_steps(worlds, steps):
    before = count()
    worlds.step(steps)
    return count() - before


def measure(name, worlds, tune=False):
    if tune:
        worlds.randomize(0, friction=(0.5, 1.0), mass_scale=(0.9, 1.1))
    first = of_steps(worlds, 1)
    for _ in range(300):
        worlds.step(10)
    # what a call takes by itself, and many steps
    call, many = of_steps(worlds, 1), of_steps(worlds, 100)
    print(name, "first", first - call, sep=",")
    print(name, "later", many - call, sep=",")


worlds = dl.Worlds(dl.scenes.box_stack(2), 4)
measure("stacks", worlds)
measure("stacks with parameters", dl.Worlds(dl.scenes.box_stack(2), 4), tune=True)
measure("loops", dl.Worlds(dl.scenes.four_bar(), 3))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(2000):
    worlds.step(2)
    worlds.reset([0])
print("memory", "grown", int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 1.01 * before), sep=",")
"""
SCENES = ["stacks", "stacks with parameters", "loops"]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("scene", SCENES)
def test_steps_allocate_nothing_after_warm_up(asked, scene):
    assert asked[scene, "first"] > 0  # the counter sees the core
    assert asked[scene, "later"] == 0


def test_memory_does_not_grow(asked):
    assert asked["memory", "grown"] == 0
