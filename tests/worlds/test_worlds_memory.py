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


def of_sensors(worlds):
    worlds._sensed[:] = False
    before = count()
    worlds.sensors
    return count() - before


worlds = dl.Worlds(dl.scenes.box_stack(2), 4)
measure("stacks", worlds)
touched = "<mujoco><worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 .1'><freejoint/><geom type='box' size='.1 .1 .1'/><site name='s' size='.2'/></body></worldbody><sensor><touch site='s'/><accelerometer site='s'/></sensor></mujoco>"
few, many = (dl.Worlds(touched, n) for n in (2, 60))
firsts = []
for sensed in (few, many):
    sensed.step(5)
    firsts.append(of_sensors(sensed))
    of_sensors(sensed)
print("sensors", "first", firsts[0], sep=",")
print("sensors", "later", of_sensors(many) - of_sensors(few), sep=",")
measure("stacks with parameters", dl.Worlds(dl.scenes.box_stack(2), 4), tune=True)
measure("loops", dl.Worlds(dl.scenes.four_bar(), 3))


def of_derivatives(worlds):
    before = count()
    worlds._core.linearize(worlds._all, control=None, tau=None, advance=False)
    worlds._core.step_adjoints(worlds._all, worlds.tau, None, control=None, tau=None, advance=False)
    return count() - before


# of balls, whose contacts move as their shapes say; each with its own parameters
rolling = "<mujoco><worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 .1'><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
firsts, laters = [], []
for n in (150, 300):  # results of both are beyond what NumPy keeps
    derived = dl.Worlds(rolling, n)
    derived.randomize(0, friction=(0.5, 1.0), mass_scale=(0.9, 1.1))
    derived.step(20)
    firsts.append(of_derivatives(derived))
    for _ in range(3):
        of_derivatives(derived)
    laters.append(of_derivatives(derived))
print("derivatives", "first", firsts[0] - laters[0], sep=",")
print("derivatives", "later", laters[1] - laters[0], sep=",")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(2000):
    worlds.step(2)
    worlds.reset([0])
print("memory", "grown", int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 1.01 * before), sep=",")
"""
SCENES = ["stacks", "sensors", "stacks with parameters", "loops", "derivatives"]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    return requests(tmp_path_factory.mktemp("counter"), SCRIPT)


@pytest.mark.parametrize("scene", SCENES)
def test_steps_allocate_nothing_after_warm_up(asked, scene):
    assert asked[scene, "first"] > 0  # the counter sees the core
    assert asked[scene, "later"] == 0


def test_memory_does_not_grow(asked):
    assert asked["memory", "grown"] == 0
