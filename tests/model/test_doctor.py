"""What the doctor says of files that are odd but load: each is noticed, in words and with a way out."""

import shlex
import struct
import warnings

import numpy as np
import pytest

from delassus.doctor import examine

INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
BOX = '<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision>'
LIMIT = '<limit lower="-1" upper="1" effort="9" velocity="9"/>'


def link(name, inside=INERTIAL + BOX):
    return f'<link name="{name}">{inside}</link>'


def joint(name, parent, child, kind="revolute", extra=LIMIT):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>{extra}</joint>'


def examined(folder, *parts, **options):
    path = folder / "robot.urdf"
    path.write_text(f'<robot name="r">{"".join(parts)}</robot>')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return examine(str(path), **options)


def found(report, words):
    """The one finding that has these words."""
    (finding,) = [finding for finding in report.findings if words in finding.text]
    return finding


def test_a_sound_robot_is_complete_and_nothing_odd_is_found(tmp_path):
    report = examined(tmp_path, link("a"), link("b"), joint("j", "a", "b"), floating_base=True)
    assert report.complete
    assert [f.text for f in report.findings if f.kind == "note"] == ["A URDF has no actuators."]
    assert found(report, "URDF of 'r'").text == "URDF of 'r': 2 bodies, joints: 1 free joint, 1 hinge; nq = 8, nv = 7, 2 kg."
    assert "100 solved" in found(report, "100 steps").text


def test_next_commands_can_be_pasted(tmp_path):
    folder = tmp_path / "my packages"
    folder.mkdir()
    report = examined(tmp_path, link("a"), floating_base=True, package_dirs=[folder])
    assert [command.split()[1] for command in report.next_steps] == ["simulate", "play", "view"]
    for command in report.next_steps:
        words = shlex.split(command)
        assert words[2:6] == [str(tmp_path / "robot.urdf"), "--floating-base", "--package-dir", str(folder)]


@pytest.mark.parametrize(("scale", "odd"), [("1 1 1", True), ("0.001 0.001 0.001", False)])
def test_a_mesh_in_millimetres_is_noticed(tmp_path, scale, odd):
    corners = np.array([[x, y, z] for x in (0, 100) for y in (0, 200) for z in (0, 300)], dtype=float)
    faces = [
        (0, 1, 3),
        (0, 3, 2),
        (4, 6, 7),
        (4, 7, 5),
        (0, 4, 5),
        (0, 5, 1),
        (2, 3, 7),
        (2, 7, 6),
        (0, 2, 6),
        (0, 6, 4),
        (1, 5, 7),
        (1, 7, 3),
    ]
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[list(f)].ravel(), 0) for f in faces)
    (tmp_path / "box.stl").write_bytes(b"\0" * 80 + struct.pack("<I", len(faces)) + body)
    mesh = f'<collision><geometry><mesh filename="box.stl" scale="{scale}"/></geometry></collision>'
    report = examined(tmp_path, link("a", INERTIAL + mesh))
    if odd:
        finding = found(report, "longer than 10 m")
        assert "up to 300 m (link 'a')" in finding.text
        assert 'scale="0.001 0.001 0.001"' in finding.advice
    else:
        assert not [f for f in report.findings if "longer than" in f.text]


@pytest.mark.parametrize(("inertia", "odd"), [("1e4", True), ("0.01", False)])
def test_an_inertia_in_another_unit_is_noticed(tmp_path, inertia, odd):
    report = examined(tmp_path, link("a", INERTIAL.replace("0.01", inertia) + BOX))
    words = "more inertia than a mass within the robot can have"
    if odd:
        assert "1 kg at 100 m from its centre" in found(report, words).text
        assert "kg mm²" in found(report, words).advice
    else:
        assert not [f for f in report.findings if words in f.text]


def test_loops_that_the_reference_leaves_open_are_closed_for_the_trial(tmp_path):
    mimic = joint("k", "a", "c", extra=LIMIT + '<mimic joint="j" multiplier="-2" offset="0.1"/>')
    report = examined(tmp_path, link("a"), link("b"), link("c"), joint("j", "a", "b"), mimic)
    if "off by" not in " ".join(f.text for f in report.findings):
        pytest.skip("this MuJoCo does not read mimic joints")
    assert "off by 0.1" in found(report, "does not close").text
    assert "close_loops" in found(report, "does not close").advice
    assert "100 solved" in found(report, "100 steps").text


def test_roots_limits_and_shapes_that_are_not_there_are_named(tmp_path):
    report = examined(tmp_path, link("a"), link("b", INERTIAL), link("c"), joint("j", "a", "b", extra=""))
    assert "2 root links, each fixed to the world: a, c" in found(report, "root links").text
    assert found(report, "no <limit>").text.endswith(": j.")
    # a fixed arm without shapes falls through no floor
    assert found(report, "Nothing that moves has a collision shape").kind == "note"
    report = examined(tmp_path, link("a"))
    assert "nothing can move" in found(report, "base is fixed").text
    assert "--floating-base" in found(report, "base is fixed").advice
    report = examined(tmp_path, link("a", INERTIAL), floating_base=True)
    assert found(report, "falls through any floor").kind == "missing"


def test_a_model_without_bodies_is_examined(tmp_path):
    (tmp_path / "empty.xml").write_text("<mujoco/>")
    report = examine(str(tmp_path / "empty.xml"))
    assert "0 bodies" in found(report, "MJCF of").text
    assert report.complete


def test_a_range_of_nothing_gets_its_own_advice_and_one_pair_its_grammar(tmp_path):
    ends = LIMIT.replace('lower="-1"', 'lower="0"').replace('upper="1"', 'upper="0"')
    large = INERTIAL + BOX.replace("0.2 0.2 0.2", "0.4 0.4 0.4")
    report = examined(tmp_path, link("a", large), link("b", large), joint("j", "a", "b", extra=ends))
    limits = found(report, "joint 'j' has equal lower and upper limits, so it has none")
    assert limits.advice == "Correct its <limit>, or make it continuous, or fixed."
    assert "1 pair of links overlaps at the reference configuration and does not collide: a and b." in found(report, "overlaps").text
