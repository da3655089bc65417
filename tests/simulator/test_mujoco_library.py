"""MuJoCo's library is called safely: its structures are read where they are, its errors raise, no contact is dropped."""

import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mujoco.introspect.structs import STRUCTS

import delassus as dl
from delassus.simulator import mujoco_library

FLOOR = '<geom name="floor" type="plane" size="9 9 1"/>'
BOX = '<body name="box{0}" pos="{1} 0 .1"><freejoint/><geom name="box{0}" type="box" size=".1 .1 .1"/><site name="site{0}"/></body>'


def mjcf(*, head="", world="", tail="", boxes=1):
    bodies = "".join(BOX.format(k, 0.3 * k) for k in range(boxes))
    return f"<mujoco>{head}<worldbody>{FLOOR}{bodies}{world}</worldbody>{tail}</mujoco>"


def motion(source, steps=50, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = dl.Simulator(source, **options)
    return [sim.step() for _ in range(steps)]


# ---- structures ---------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("struct", ["mjData", "mjModel", "mjContact", "mjOption", "mjWarningStat", "mjLogMessage"])
def test_offsets_are_those_of_a_c_compiler(struct, tmp_path):
    if struct not in STRUCTS:
        pytest.skip(f"MuJoCo {mujoco.mj_versionString()} has no {struct}")
    offsets, size, _ = mujoco_library.layout(struct)
    lines = "".join(f'printf("{name} %zu\\n", offsetof({struct}, {name}));' for name in offsets)
    source = tmp_path / "offsets.c"
    source.write_text(
        f'#include <stddef.h>\n#include <stdio.h>\n#include <mujoco/mujoco.h>\nint main(void) {{{lines} printf("size %zu\\n", sizeof({struct})); return 0;}}'
    )
    include = Path(mujoco.__file__).parent / "include"
    subprocess.run(["cc", "-I", str(include), str(source), "-o", str(tmp_path / "offsets")], check=True, capture_output=True)
    said = dict(
        line.split() for line in subprocess.run([tmp_path / "offsets"], check=True, capture_output=True, text=True).stdout.splitlines()
    )
    assert {name: int(value) for name, value in said.items()} == offsets | {"size": size}


@pytest.mark.parametrize("struct", ["mjData", "mjModel", "mjContact"])
def test_layout_that_does_not_agree_with_what_mujoco_shows_is_refused(struct, monkeypatch):
    true = mujoco_library.layout

    def shifted(name):
        offsets, size, alignment = true(name)
        return ({k: v + 8 for k, v in offsets.items()} if name == struct else offsets), size, alignment

    mujoco_library._check()
    monkeypatch.setattr(mujoco_library, "layout", shifted)
    with pytest.raises(dl.errors.LoadError, match="Use a version"):
        mujoco_library._check()


def extension(plugin):
    return f'<extension><plugin plugin="{plugin}"/></extension>'


SLIDER = '<body pos="5 5 5"><joint name="j" type="slide"/><geom size=".1"/></body>'
TOUCH = '<config key="size" value="7 7"/><config key="fov" value="10 10"/><config key="gamma" value="0"/><config key="nchannel" value="3"/>'
GRID = '<flexcomp name="f" type="grid" count="{}" spacing=".1 .1 .1" pos="0 0 .4" radius=".02" dim="{}" mass=".5"/>'
ADDED = {
    "plugin of a sensor": {
        "head": extension("mujoco.sensor.touch_grid"),
        "tail": f'<sensor><plugin name="t" plugin="mujoco.sensor.touch_grid" objtype="site" objname="site0">{TOUCH}</plugin></sensor>',
    },
    "plugin of an actuator": {
        "head": '<extension><plugin plugin="mujoco.pid"><instance name="i"><config key="kp" value="1"/></instance></plugin></extension>',
        "world": SLIDER, "tail": '<actuator><plugin joint="j" plugin="mujoco.pid" instance="i"/></actuator>',
    },
    "three plugins": {
        "head": '<extension><plugin plugin="mujoco.pid">' + "".join(f'<instance name="{k}"><config key="kp" value="1"/></instance>' for k in "abc") + "</plugin></extension>",
        "world": SLIDER, "tail": "<actuator>" + "".join(f'<plugin joint="j" plugin="mujoco.pid" instance="{k}"/>' for k in "abc") + "</actuator>",
    },
    "mocap body": {"world": '<body name="held" mocap="true" pos="0 0 3"><geom size=".1"/></body>'},
    "sensors": {"tail": '<sensor><framepos objtype="body" objname="box0"/><touch site="site0"/><accelerometer site="site0"/></sensor>'},
    "flexible line": {"world": GRID.format("6 1 1", 1)},
    "flexible sheet": {"world": GRID.format("4 4 1", 2)},
    "flexible solid": {"world": GRID.format("3 3 3", 3)},
}  # fmt: skip


@pytest.mark.parametrize("added", ADDED)
def test_box_rests_whatever_else_is_in_the_model(added):
    plain, other = motion(mjcf(), 200)[-1], motion(mjcf(**ADDED[added]), 200)[-1]
    assert other.status == "solved"
    np.testing.assert_array_equal(other.q[:7], plain.q)
    assert abs(other.q[2] - 0.1) < 1e-9
    np.testing.assert_array_equal(other.contacts.position[:4], plain.contacts.position)


def test_body_with_a_signed_distance_rests_on_the_floor():
    # a torus of radii 0.35 and 0.15, lying flat, touches from its lowest circle
    torus = '<asset><mesh name="torus"><plugin plugin="mujoco.sdf.torus"><config key="radius1" value=".35"/><config key="radius2" value=".15"/></plugin></mesh></asset>'
    ring = (
        '<body pos="0 3 .3"><freejoint/><geom type="sdf" mesh="torus" name="ring"><plugin plugin="mujoco.sdf.torus"><config key="radius1" value=".35"/>'
        '<config key="radius2" value=".15"/></plugin></geom></body>'
    )
    text = mjcf(head=extension("mujoco.sdf.torus") + torus, world=ring)
    steps = motion(text, 800)
    assert abs(steps[-1].q[9] - 0.15) < 5e-3
    assert abs(steps[-1].q[2] - 0.1) < 1e-8
    assert len(steps[-1].contacts) > 4


# ---- errors -------------------------------------------------------------------------------------------------------------------

STOPPED = f"""
import mujoco, numpy, delassus as dl
text = {mjcf()!r}
sim = dl.Simulator(text)
start = sim.step().q
def refuse(*arguments):
    raise ValueError("no")
mujoco.set_mjcb_contactfilter(refuse)
for ask in (sim.step, lambda: sim.run(0.01, progress=False), lambda: dl.rollout(sim, numpy.tile(start, (4, 1)), steps=3, threads=2)):
    try:
        ask()
    except dl.errors.MujocoError as error:
        print("raised", "Python exception" in str(error), error.__cause__ is not None)
    assert (sim.q == start).all()
mujoco.set_mjcb_contactfilter(None)
print(len(sim.step().contacts))
"""


def test_error_inside_mujoco_raises_and_the_simulator_lives_on():
    run = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=120)
    lines = run.stdout.splitlines()
    assert run.returncode == 0, run.stderr
    # the exception of a callback is the cause, where it was raised on this thread
    assert lines[:2] == ["raised True True"] * 2
    assert lines[2].startswith("raised True")
    assert lines[3:] == ["4"]
    assert "ERROR" not in run.stderr


def test_mujocos_own_handlers_are_put_back():
    motion(mjcf(), 2)
    m = mujoco.MjModel.from_xml_string(mjcf())
    d = mujoco.MjData(m)
    said = []

    def refuse(*_):
        raise ValueError("from the callback")

    before = mujoco.get_mju_user_warning()
    mujoco.set_mjcb_control(refuse)
    mujoco.set_mju_user_warning(said.append)
    try:
        # an exception in a callback goes through MuJoCo as one of its errors
        with pytest.raises(ValueError, match="from the callback"):
            mujoco.mj_step(m, d)
        mujoco.set_mjcb_control(None)
        mujoco.mj_resetData(m, d)
        d.qpos[0] = np.nan
        mujoco.mj_step(m, d)
    finally:
        mujoco.set_mjcb_control(None)
        mujoco.set_mju_user_warning(before)
    assert len(said) == 1


# ---- arenas -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ['memory="40K"', 'memory="60K"', 'memory="200K"', 'nconmax="5" njmax="7"'])
def test_no_contact_is_dropped_for_lack_of_room(size, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    large, small = (motion(mjcf(head=f"<size {s}/>", boxes=30), 20) for s in ('memory="50M"', size))
    assert len(small[-1].contacts) == len(large[-1].contacts) == 4 * 30
    np.testing.assert_array_equal(small[-1].q, large[-1].q)
    assert small[-1].q[2::7].min() > 0.1 - 1e-9
    # MuJoCo warns on stderr and in a file
    assert capfd.readouterr().err == ""
    assert list(tmp_path.iterdir()) == []


def test_worlds_of_a_rollout_grow_their_arenas_too():
    text = mjcf(head='<size memory="40K"/>', boxes=30)
    steps = motion(text, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = dl.load(text).neutral()
    many = dl.rollout(text, np.tile(q, (3, 1)), steps=10, threads=2)
    for world in range(3):
        np.testing.assert_array_equal(many.q[world, -1], steps[-1].q)


@pytest.mark.parametrize("gap", [1e-4, 9e-4])
def test_what_comes_near_is_found_before_bodies_overlap(gap):
    # twelve bodies of three boxes each, one above the other: MuJoCo looks at the bounds of bodies first
    boxes = "".join(f'<geom type="box" size=".1 .1 .1" pos="{x} 0 0" mass="1"/>' for x in (0, 0.25, 0.5))
    bodies = "".join(f'<body pos="0 0 {1 + k * (0.2 + gap)}"><freejoint/>{boxes}</body>' for k in range(12))
    sim = dl.Simulator(f'<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody>{bodies}</worldbody></mujoco>')
    assert len(sim.step().contacts) == 11 * 3 * 4
