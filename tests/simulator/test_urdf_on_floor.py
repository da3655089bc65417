"""Robots of others on a floor: every URDF of example-robot-data loads with all its meshes and stands or falls for a second. A share of them here, the rest exhaustive."""

import warnings
import xml.etree.ElementTree as ElementTree
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

import delassus as dl
from delassus.errors import LoadError

# files that are no robots: what they say
REFUSED = {"ur3.urdf": "at least one <link>"}
# meshes that the package does not ship, named by files: shapes that are lost, and said so
MISSING = {"romeo_laas_small.urdf": 20}
HERE = (
    "a1.urdf",
    "double_pendulum_simple.urdf",
    "iris.urdf",
    "quadruped.urdf",
    "solo.urdf",
    "ur3.urdf",
    "xarm7.urdf",
    "human.urdf",
    "romeo_laas_small.urdf",
)


def robots():
    try:
        folder = Path(str(distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")))
    except PackageNotFoundError:
        return [pytest.param(None, marks=pytest.mark.skip("example-robot-data is not installed"))]
    return [pytest.param(p, id=p.name, marks=() if p.name in HERE else pytest.mark.exhaustive) for p in sorted(folder.rglob("*.urdf"))]


@pytest.mark.parametrize("path", robots())
def test_every_example_robot_stands_or_falls_on_a_floor(path):
    root = ElementTree.parse(path).getroot()
    links = {link.get("name") for link in root.findall("link")}
    base = links - {child.get("link") for child in root.findall("joint/child")}
    floats = "world" not in base
    if path.name in REFUSED:
        with pytest.raises(LoadError, match=REFUSED[path.name]):
            dl.load(path)
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        sim = dl.Simulator(path, floating_base=floats, floor=True)

    # every shape of the file is there, or listed
    m = sim.mujoco_model
    ignored = " ".join(sim.model.ignored)
    wanted = {role: len(root.findall(f"link/{role}")) for role in ("collision", "visual")}
    assert int((m.geom_contype > 0).sum()) == wanted["collision"] + 1  # the floor
    assert int((m.geom_contype == 0).sum()) >= wanted["visual"] - MISSING.get(path.name, 0)
    assert ("visual mesh" in ignored) == (path.name in MISSING)
    assert "collision mesh" not in ignored
    assert any("does not touch the floor" in str(w.message) for w in said) == (wanted["collision"] == 0)

    # on the floor, not in it, at the start; and a second later
    lowest, statuses = [], set()
    heights = [sim.q[2]] if floats else []
    for _ in range(round(1 / sim.timestep)):
        step = sim.step()
        assert step.status in ("solved", "approximate", "limit_violated"), (step.time, step.status)
        lowest.append(step.penetration)
        statuses.add(step.status)
    assert np.isfinite(sim.q).all()
    assert np.isfinite(sim.v).all()
    if wanted["collision"] == 0 and floats:
        assert sim.q[2] - heights[0] == pytest.approx(-9.81 / 2, rel=1e-2)
    elif floats and "limit_violated" not in statuses:  # what starts outside its limits is moved into them, also through others
        # a fast impact may be found a few millimetres deep, and is out again
        assert max(lowest) < 2e-2
        assert lowest[-1] < 1e-3
        assert abs(sim.q[2] - heights[0]) < 2.0


def test_a_floating_robot_is_lifted_and_the_floor_of_a_fixed_one_is_as_deep_as_it_reaches():
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    shapes = {
        '<box size="0.2 0.2 0.6"/>': 0.3, '<sphere radius="0.4"/>': 0.4, '<capsule radius="0.1" length="0.6"/>': 0.4, '<cylinder radius="0.1" length="0.6"/>': 0.3,
    }  # fmt: skip
    for geometry, half in shapes.items():
        for rpy, height in (("0 0 0", half), ("0.5 0 0", None)):
            body = f'<collision><origin rpy="{rpy}"/><geometry>{geometry}</geometry></collision>'
            text = f'<robot name="r"><link name="a">{inertial}{body}</link></robot>'
            sim = dl.Simulator(text, floating_base=True, floor=True)
            if height is not None:
                assert sim.q[2] == pytest.approx(height)
            # the step finds it touching, and not inside
            step = sim.step()
            assert len(step.contacts) > 0, geometry
            assert step.penetration < 1e-5
    text = f'<robot name="r"><link name="base"/><link name="a">{inertial}<collision><geometry><box size="1 1 1"/></geometry></collision></link><joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint></robot>'
    assert dl.scenes.on_floor(text).shapes[0].position == (0.0, 0.0, -0.5)


def test_a_model_that_has_a_floor_stays_as_it_is_and_keyframes_stay():
    model = dl.scenes.on_floor("go2")
    assert dl.scenes.on_floor(model) is model
    assert dl.Simulator(model, floor=True).model is model
    assert set(model.keyframes) == set(dl.load("go2").keyframes)
    np.testing.assert_array_equal(model.neutral(), dl.load("go2").neutral())
