"""Every way to load a model gives the mechanism that its own library sees."""

import struct
import sys
import warnings
import zipfile
from pathlib import Path

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, LoadError
from delassus.model.load import compile_source
from oracles.compare import agree
from oracles.engines import MuJoCo

# A dozen roundings of numbers near one, in two libraries that round differently.
CLOSE = 1e-12

MJCF = """<mujoco model="mixed"><worldbody>
<body name="a" pos="0 0 1"><freejoint name="f"/><geom size=".1 .2 .3" type="box"/>
 <body name="b" pos=".3 0 0" quat=".6 .8 0 0"><joint name="h" axis="1 2 3" pos=".1 0 0"/><joint name="s" type="slide" axis="0 1 0"/>
  <geom name="rod" type="capsule" fromto="0 0 0 .2 .1 0" size=".02"/>
  <body name="c" pos="0 .4 0"><joint name="l" type="ball" pos="0 .1 0"/><geom size=".1"/>
   <body name="fixed" pos=".1 .1 0"><geom size=".05"/></body></body></body></body></worldbody></mujoco>"""

EMBEDDED = ("atlas", "atlas_hands", "cassie", "g1", "go2", "hand", "iiwa", "solo", "talos")


def quietly(source, **options):
    """Load with every warning an error: nothing was left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return dl.load(source, **options)


def moves_as_in_mujoco(model, m):
    q = model.random(3)
    peer = MuJoCo(m)
    d = peer.set(q, 0.0)
    X = dl.body_placements(model, q)
    agree(X[:, :3, 3], d.xpos, CLOSE)
    agree(X[:, :3, :3], d.xmat.reshape(-1, 3, 3), CLOSE)
    agree(dl.mass_matrix(model, q), peer.mass_matrix, CLOSE)


def test_embedded_names_are_the_nine_robots():
    assert dl.embedded_names() == EMBEDDED


@pytest.mark.parametrize("robot", EMBEDDED)
def test_embedded_robot_loads_whole_and_moves_as_in_mujoco(robot):
    path = Path(dl.__file__).parent / "assets" / f"{robot}.xml"
    model = quietly(robot)
    assert (model.name, model.ignored) == (robot, ())
    moves_as_in_mujoco(model, mujoco.MjModel.from_xml_path(str(path)))
    assert quietly(path) == quietly(str(path)) == model


def test_path_text_compiled_model_and_model_give_equal_models(tmp_path):
    path = tmp_path / "mixed.xml"
    path.write_text(MJCF)
    m = mujoco.MjModel.from_xml_string(MJCF)
    model = quietly(path)
    assert model == quietly(str(path)) == quietly(MJCF) == quietly("\n  " + MJCF) == quietly(m)
    assert quietly(model) is model
    assert model.name == "mixed"
    moves_as_in_mujoco(model, m)


def test_mjcf_beside_the_file_is_included_and_its_encoding_honoured(tmp_path):
    (tmp_path / "ball.xml").write_text('<mujocoinclude><body name="ball"><freejoint/><geom size="1"/></body></mujocoinclude>')
    path = tmp_path / "scene.xml"
    path.write_bytes(
        '<?xml version="1.0" encoding="latin-1"?><!-- é --><mujoco><worldbody><include file="ball.xml"/></worldbody></mujoco>'.encode(
            "latin-1"
        )
    )
    assert quietly(path).body_names == ("world", "ball")


def test_unnamed_elements_get_names_that_no_other_has():
    text = '<body name="body_2"><joint name="joint_1"/><geom size="1"/><body><joint/><geom size="1" name="geom_0"/></body></body>'
    model = quietly(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
    assert model.body_names == ("world", "body_2", "body_2_")
    assert model.joint_names == ("joint_1", "joint_1_")
    assert [s.name for s in model.shapes] == ["geom_0_", "geom_0"]


# ---- URDF ------------------------------------------------------------------------------------------------------------------


def link(name, mass=1.0, inertia=(0.1, 0.2, 0.15), extra="", off=(0.01, -0.02), xyz="0.1 -0.2 0.05", rpy="0.3 -0.4 0.5"):
    xx, yy, zz = inertia
    body = f'<inertial><origin xyz="{xyz}" rpy="{rpy}"/><mass value="{mass}"/>' if mass is not None else ""
    body += f'<inertia ixx="{xx}" ixy="{off[0]}" ixz="0" iyy="{yy}" iyz="{off[1]}" izz="{zz}"/></inertial>' if mass is not None else ""
    return f'<link name="{name}">{body}{extra}</link>'


def joint(name, parent, child, kind="revolute", axis="0.6 0 0.8", extra=""):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="0.2 0.1 -0.3" rpy="0.1 0.2 0.3"/>'
        f'<axis xyz="{axis}"/><limit lower="-1" upper="2" effort="5" velocity="6"/><dynamics damping="0.5" friction="0.25"/>{extra}</joint>'
    )


def collision(shape):
    return f"<collision><geometry>{shape}</geometry></collision><visual><geometry>{shape}</geometry></visual>"


def urdf(*parts):
    return f'<robot name="arm">{"".join(parts)}</robot>'


ARM = (
    link("base"), link("upper", extra=collision('<cylinder radius="0.1" length="0.4"/>')), link("lower"), link("tool", mass=0.2),
    joint("shoulder", "base", "upper"), joint("elbow", "upper", "lower", "prismatic", "0 1 0"), joint("glue", "lower", "tool", "fixed"),
)  # fmt: skip


def moves_as_in_pinocchio(model, text, floating=False):
    pin = pytest.importorskip("pinocchio")
    p = pin.buildModelFromXML(text, pin.JointModelFreeFlyer()) if floating else pin.buildModelFromXML(text)
    q = model.random(5)
    q_pin, T = q.copy(), np.eye(model.nv)
    if floating:
        q_pin[3:7] = q[[4, 5, 6, 3]]
        T[:3, :3] = dl.spatial.rotation_matrix(q[3:7]).T
    M = np.triu(pin.crba(p, p.createData(), q_pin))
    agree(dl.mass_matrix(model, q), T.T @ (M + np.triu(M, 1).T) @ T, CLOSE)
    assert model.mass == pytest.approx(sum(Y.mass for Y in p.inertias), rel=1e-14)


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("as_path", [False, True])
def test_urdf_moves_as_in_pinocchio(tmp_path, floating, as_path):
    source = text = urdf(*ARM)
    if as_path:
        source = tmp_path / "arm.urdf"
        source.write_text(text)
    model = quietly(source, floating_base=floating)
    assert model.name == "arm"
    assert model.body_names == ("world", "base", "upper", "lower", "tool")
    assert model.joint_type == (("free",) if floating else ()) + ("hinge", "slide")
    moves_as_in_pinocchio(model, text, floating)
    peer = compile_source(source, floating_base=floating).model
    moves_as_in_mujoco(model, peer)
    assert peer.body_subtreemass[0] == pytest.approx(model.mass)
    elbow = model.joints[model.joint_index("elbow")]
    assert (elbow.range, elbow.damping, elbow.friction_loss) == ((-1.0, 2.0), 0.5, 0.25)


def test_urdf_keeps_primitive_collisions_and_drops_what_is_only_drawn():
    (shape,) = quietly(urdf(*ARM)).shapes
    assert (shape.body, shape.kind, shape.size) == ("upper", "cylinder", (0.1, 0.2))


@pytest.mark.parametrize("filename", ["package://nowhere/a.stl", "meshes/missing.stl", "there.dae", "file:///no/such.obj", ""])
def test_mesh_that_cannot_be_read_does_not_stop_a_urdf(tmp_path, filename):
    (tmp_path / "there.dae").write_text("<COLLADA/>")
    text = urdf(
        link("base"),
        link("upper", extra=collision(f'<mesh filename="{filename}"/>') + collision('<sphere radius="0.1"/>')),
        joint("j", "base", "upper"),
    )
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    for source in (path, text):
        with pytest.warns(UserWarning, match="1 collision mesh") as caught:
            model = dl.load(source)
        assert len(caught) == len(model.ignored) == 1
        assert [s.kind for s in model.shapes] == ["sphere"]
        moves_as_in_pinocchio(model, text)


def test_mesh_beside_a_urdf_compiles_and_takes_part(tmp_path):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
    faces = b"".join(struct.pack("<12fH", *([0.0] * 3), *corners[list(f)].ravel(), 0) for f in [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
    (tmp_path / "tetra.stl").write_bytes(b"\0" * 80 + struct.pack("<I", 4) + faces)
    path = tmp_path / "arm.urdf"
    path.write_text(urdf(link("base"), link("upper", extra=collision('<mesh filename="tetra.stl"/>')), joint("j", "base", "upper")))
    model = quietly(path)
    assert model.ignored == ()
    # one hull that touches, one surface that is drawn
    m = model.to_mujoco()
    assert m.nmesh == 2
    assert sorted(zip(m.geom_contype.tolist(), m.geom_group.tolist(), strict=True)) == [(0, 2), (1, 3)]


# What MuJoCo alone refuses, and Pinocchio takes.
ROUNDED = {
    "massless moving link": (link("hip", None), joint("hip_x", "base", "hip"), link("leg"), joint("hip_y", "hip", "leg", axis="0 1 0")),
    "link without inertial": (link("leg"), joint("hip_y", "base", "leg"), link("frame", None), joint("glue", "leg", "frame", "fixed")),
    "collision without inertial has no mass": (
        link("leg"), joint("hip_y", "base", "leg"), link("frame", None, extra=collision('<box size="1 1 1"/>')), joint("glue", "leg", "frame", "fixed"),
    ),
    "triangle inequality broken by rounding": (link("leg", inertia=(0.1, 0.2, 0.30001), off=(0, 0)), joint("hip_y", "base", "leg")),
    "point mass": (
        '<link name="leg"><inertial><origin xyz="0.3 0 0"/><mass value="2"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>',
        joint("hip_y", "base", "leg", axis="0 1 0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ROUNDED)
def test_urdf_keeps_inertias_that_mujoco_would_refuse(case):
    text = urdf(link("base"), *ROUNDED[case])
    moves_as_in_pinocchio(quietly(text), text)


def test_urdf_lowers_made_up_inertia_of_a_fixed_link_and_says_so():
    text = urdf(
        link("base"), link("leg"), joint("hip", "base", "leg"), link("imu", 0.1, (0.001, 0.001, 9.0)), joint("glue", "leg", "imu", "fixed")
    )
    with pytest.warns(UserWarning, match="inertia of link 'imu' beyond what is physical"):
        model = dl.load(text)
    a, b, c = np.linalg.eigvalsh(model.body_inertia[model.body_index("imu")])
    assert a + b >= c * (1 - 1e-12)
    assert model.mass == pytest.approx(2.1)


def test_urdf_lowers_made_up_inertia_of_a_moving_link_too():
    text = urdf(link("base"), link("leg", inertia=(1.0, 1.0, 5.0), off=(0, 0)), joint("hip", "base", "leg"))
    with pytest.warns(UserWarning, match="inertia of link 'leg' beyond what is physical"):
        model = dl.load(text)
    np.testing.assert_allclose(np.linalg.eigvalsh(model.body_inertia[model.body_index("leg")]), (1.0, 1.0, 2.0), rtol=1e-12)


def test_urdf_equal_limits_are_listed_not_printed(capfd):
    with pytest.warns(UserWarning, match="joint 'j' has equal lower and upper limits, so it has none"):
        dl.load(urdf(link("base"), link("leg"), joint("j", "base", "leg").replace('lower="-1" upper="2"', 'lower="0" upper="0"')))
    assert capfd.readouterr() == ("", "")


def test_urdf_limits_the_wrong_way_round_are_listed_as_such():
    with pytest.warns(UserWarning, match="joint 'j' has a lower limit 3 above its upper limit 2, so it has none"):
        model = dl.load(urdf(link("base"), link("leg"), joint("j", "base", "leg").replace('lower="-1" upper="2"', 'lower="3" upper="2"')))
    assert not np.isfinite(model.joint_range).any()


def test_urdf_mimic_of_nothing_is_listed_with_both_names():
    parts = (joint("one", "base", "upper"), joint("two", "upper", "lower", extra='<mimic joint="none"/>'))
    with pytest.warns(UserWarning, match="mimic of joint 'two': it follows joint 'none', which does not exist or does not move"):
        model = dl.load(urdf(*ARM[:3], *parts))
    assert not model.loops


def test_urdf_mimic_becomes_a_coupling_or_is_listed():
    parts = (joint("one", "base", "upper"), joint("two", "upper", "lower", extra='<mimic joint="one" multiplier="2" offset="0.1"/>'))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = dl.load(urdf(*ARM[:3], *parts))
    if not model.loops:
        # early versions of MuJoCo do not read it
        assert model.ignored == ("1 mimic joint",)
        return
    (loop,) = model.loops
    assert (loop.joint, loop.other, loop.polynomial) == ("two", "one", (0.1, 2.0, 0.0, 0.0, 0.0))


# ---- MuJoCo's own forms ------------------------------------------------------------------------------------------------------

MESHED = """<mujoco model="meshed"><compiler meshdir="meshes"/><asset><mesh name="t" file="t.obj"/></asset><worldbody><geom type="plane" size="3 3 1"/>
<body name="a" pos="0 0 1"><freejoint/><geom type="mesh" mesh="t"/></body></worldbody><include file="more.xml"/></mujoco>"""
MORE = '<mujoco><worldbody><body name="b"><joint/><geom size=".1"/></body></worldbody></mujoco>'
TETRA = "v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def meshed(folder):
    (folder / "meshes").mkdir(parents=True)
    (folder / "robot.xml").write_text(MESHED)
    (folder / "more.xml").write_text(MORE)
    (folder / "meshes" / "t.obj").write_text(TETRA)
    return folder / "robot.xml"


def packed(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("way", ["spec", "mjb", "zip", "zip of a folder"])
def test_mujocos_own_forms_give_the_model_of_the_file(tmp_path, way):
    path = meshed(tmp_path / "plain")
    want = dl.load(path)
    assert want.body_names == ("world", "a", "b")
    prefix = "deep/" if way == "zip of a folder" else ""
    if way == "spec":
        source = mujoco.MjSpec.from_file(str(path))
    elif way == "mjb":
        source = tmp_path / "robot.mjb"
        mujoco.mj_saveModel(mujoco.MjModel.from_xml_path(str(path)), str(source))
    else:
        # <include> is beside the model, and a second model deeper is none of ours
        more = {
            f"{prefix}robot.xml": MESHED.replace('<include file="more.xml"/>', "").replace(
                "</worldbody>", '<body name="b"><joint/><geom size=".1"/></body></worldbody>'
            )
        }
        source = packed(tmp_path / "robot.zip", more | {f"{prefix}meshes/t.obj": TETRA, f"{prefix}other/robot2.xml": MORE})
    assert dl.load(source) == want
    moved = [dl.Simulator(model).run(0.1, progress=False).q[-1] for model in (source, path)]
    assert (moved[0] == moved[1]).all()


def test_a_spec_may_be_used_again():
    spec = mujoco.MjSpec.from_string(MORE)
    assert dl.load(spec) == dl.load(spec)
    spec.worldbody.add_body(name="c").add_geom(size=[0.1, 0, 0])
    assert dl.load(spec).body_names == ("world", "b", "c")


def test_a_zipped_urdf_has_its_meshes(tmp_path):
    urdf = (
        '<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<collision><geometry><mesh filename="t.obj"/></geometry></collision></link><joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint></robot>'
    )
    model = dl.load(packed(tmp_path / "r.zip", {"r.urdf": urdf, "t.obj": TETRA}), floating_base=True)
    assert (model.ignored, model.nv) == ((), 7)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.zip", b"PK no", "cannot be unpacked"), ("b.zip", {}, "expected one .xml or .urdf file"), ("c.zip", {"a.xml": MORE, "b.xml": MORE}, r"got \['a.xml', 'b.xml'\]"),
        ("d.zip", {"a.xml": "<mujoco"}, "not well-formed"), ("e.mjb", b"mjb?", "MuJoCo cannot compile"), ("f.zip", {"a.xml": MESHED}, "MuJoCo cannot compile"),
    ],
)  # fmt: skip
def test_damaged_archives_and_binaries_are_refused(tmp_path, name, content, said):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        packed(path, content)
    with pytest.raises(LoadError, match=said):
        dl.load(path)


def test_a_spec_that_cannot_be_compiled_is_refused():
    spec = mujoco.MjSpec()
    spec.worldbody.add_body(name="a").add_joint()
    with pytest.raises(LoadError, match="MuJoCo cannot compile the MjSpec"):
        dl.load(spec)
    with pytest.raises(ArgumentError, match=r"floating_base: only a URDF.*MjSpec"):
        dl.load(mujoco.MjSpec.from_string(MORE), floating_base=True)


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["delassus.model.load"], "_MAX_UNPACKED", 1000)
    with pytest.raises(LoadError, match=r"holds .* GB, more than"):
        dl.load(packed(tmp_path / "a.zip", {"a.xml": MORE, "b.bin": b"\0" * 2000}))
