"""Text that comes from anywhere: encodings, lone surrogates, control characters. What cannot be read is a typed error that says why."""

import os

import mujoco
import pytest

import delassus as dl
from delassus.errors import ArgumentError, DelassusError, LoadError, UnknownNameError
from delassus.model import Body, ConnectLoop, Joint, Model, ModelBuilder, Shape

GOOD = '<mujoco><worldbody><body name="ball"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
SURROGATE = "ba\ud800ll"


@pytest.mark.parametrize(
    "text", [GOOD.replace("ball", SURROGATE), f'<robot name="{SURROGATE}"><link name="a"/></robot>', GOOD.replace("ball", "ba\0ll")]
)
@pytest.mark.parametrize("takes", [dl.load, dl.Simulator])
def test_text_that_no_encoding_has_is_no_model(takes, text):
    with pytest.raises(LoadError, match=r"the text (is not well-formed|cannot be read as text)"):
        takes(text)


@pytest.mark.parametrize("encoding", ["klingon", "utf-7", "rot13", "hex"])
def test_encodings_that_do_not_exist_are_told(tmp_path, encoding):
    path = tmp_path / "robot.xml"
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>{GOOD}'.encode())
    with pytest.raises(LoadError, match=r"robot\.xml' cannot be read as text: .* Save it as UTF-8"):
        dl.load(path)


def test_names_in_another_encoding_than_mujoco_reads_are_told(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_bytes(b'<?xml version="1.0" encoding="latin-1"?>' + GOOD.replace("ball", "balé").encode("latin-1"))
    with pytest.raises(LoadError, match="names that are not UTF-8"):
        dl.load(path)
    path.write_bytes(GOOD.replace("ball", "balé").encode())
    assert dl.load(path).body_names == ("world", "balé")


def test_a_urdf_may_be_in_any_encoding(tmp_path):
    path = tmp_path / "robot.urdf"
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    path.write_bytes(
        f'<?xml version="1.0" encoding="latin-1"?><robot name="r"><link name="balé">{inertial}</link></robot>'.encode("latin-1")
    )
    assert dl.load(path, floating_base=True).body_names == ("world", "balé")


@pytest.mark.parametrize("path", ["/tmp/\ud800.xml", "/tmp/a\0b.xml", "\ud800", "x" * 100_000 + ".xml"])
def test_paths_that_cannot_be_are_told(path):
    with pytest.raises((LoadError, UnknownNameError), match="does not exist"):
        dl.load(path)
    with pytest.raises(DelassusError):
        dl.Trajectory.load(path)


def test_a_file_whose_name_is_not_utf8_is_told(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.xml"
    try:
        with open(path, "w") as file:
            file.write(GOOD)
    except OSError:
        pytest.skip("this file system has no such names")
    with pytest.raises(LoadError, match="expects file names in UTF-8"):
        dl.load(os.fsdecode(path))


@pytest.mark.parametrize("name", ["a\ud800", "a\0b", "\x1b[31m", "\uffff"])
def test_names_that_xml_cannot_hold_are_refused_everywhere(name):
    with pytest.raises(ArgumentError, match="text that XML can hold"):
        ModelBuilder("robot").add_body(name)
    with pytest.raises(ArgumentError, match="text that XML can hold"):
        ModelBuilder(name)
    body = Body("b", "world", mass=1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    joint = Joint("j", "hinge", "b")
    for parts in (
        {"loops": [ConnectLoop(name, "b", "world", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))]}, {"shapes": [Shape(name, "b", "sphere", (0.1,))]}, {"keyframes": {name: [0.0]}},
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match="text that XML can hold"):
            Model("robot", [body], [joint], **parts)


def test_names_with_the_characters_of_markup_come_back_as_they_were():
    name = "<img src=x onerror=alert(1)> & 'quoted' \"twice\" ünïcödé 🤖"
    model = dl.load(GOOD.replace('"ball"', '"' + name.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;") + '"'))
    assert model.body_names[1] == name
    assert mujoco.MjModel.from_xml_string(model.to_mjcf()).body(name).id == 1
