"""URDF as it lies on disks: packages, meshes, scales, names and mistakes. Each is read, refused with a way out, or listed."""

import struct
import warnings

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, DelassusError, LoadError

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
BOX = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], dtype=float)
FACES = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]


def stl(path, corners=BOX, faces=FACES):
    path.parent.mkdir(parents=True, exist_ok=True)
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[list(f)].ravel(), 0) for f in faces)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(faces)) + body)
    return path


def shape(geometry, role="collision", extra=""):
    return f"<{role}>{extra}<geometry>{geometry}</geometry></{role}>"


def robot(*parts, more=""):
    return f'<robot name="r"><link name="base">{INERTIAL}{"".join(parts)}</link>{more}</robot>'


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def quietly(source, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dl.load(source, floating_base=True, **options)


def corners_of(model):
    """Lowest and highest corner of everything that touches, in the base's frame."""
    m = model.to_mujoco()
    points = []
    for g in np.flatnonzero(m.geom_contype):
        assert m.geom_type[g] == mujoco.mjtGeom.mjGEOM_MESH
        k = m.geom_dataid[g]
        v = m.mesh_vert[m.mesh_vertadr[k] :][: m.mesh_vertnum[k]]
        points.append(v @ dl.spatial.rotation_matrix(m.geom_quat[g]).T + m.geom_pos[g])
    points = np.concatenate(points)
    return np.array([points.min(axis=0), points.max(axis=0)])


MESH = shape('<mesh filename="package://my_robot/meshes/box.stl"/>')


@pytest.mark.parametrize(
    "way",
    [
        "package_dirs",
        "package itself",
        "ROS_PACKAGE_PATH",
        "AMENT_PREFIX_PATH",
        "walking up",
        "package.xml",
        "repository in a workspace",
        "workspace of ROS_PACKAGE_PATH",
        "three slashes",
        "two slashes inside",
        "capitals",
        "percent",
        "file",
        "file with one slash",
        "file on localhost",
        "relative",
        "separators of Windows",
        "link",
        "link into a package",
    ],
)
def test_every_way_to_name_a_mesh_finds_it(tmp_path, monkeypatch, way):
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(variable, raising=False)
    text, options, package = MESH, {}, tmp_path / "elsewhere" / "my_robot"
    path = tmp_path / "here" / "robot.urdf"
    if way == "package_dirs":
        options = {"package_dirs": [tmp_path / "elsewhere"]}
    elif way == "package itself":
        options = {"package_dirs": str(package)}
    elif way == "ROS_PACKAGE_PATH":
        monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{tmp_path / 'elsewhere'}")
    elif way == "AMENT_PREFIX_PATH":
        package = tmp_path / "install" / "share" / "my_robot"
        monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "install"))
    elif way == "walking up":
        package, path = tmp_path / "share" / "my_robot", tmp_path / "share" / "my_robot" / "urdf" / "deep" / "robot.urdf"
    elif way == "package.xml":
        package, path = tmp_path / "a-git-clone", tmp_path / "a-git-clone" / "urdf" / "robot.urdf"
        written(package / "package.xml", "<package><name> my_robot </name></package>")
    elif "workspace" in way:
        package = tmp_path / "ws" / "src" / "some_repository" / ("my-robot" if way.startswith("repository") else "my_robot")
        written(package / "package.xml", "<package><name>my_robot</name></package>")
        if way.startswith("repository"):
            options = {"package_dirs": [tmp_path / "ws"]}
        else:
            monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ws" / "src"))
    elif way == "three slashes":
        text, options = MESH.replace("package://", "package:///"), {"package_dirs": [tmp_path / "elsewhere"]}
    elif way == "two slashes inside":
        text, options = MESH.replace("my_robot/", "my_robot//"), {"package_dirs": [tmp_path / "elsewhere"]}
    elif way == "capitals":
        text, options = MESH.replace("package", "Package"), {"package_dirs": [tmp_path / "elsewhere"]}
    elif way == "percent":
        package = tmp_path / "elsewhere" / "my_robot"
        stl(package / "meshes" / "big box.stl")
        text, options = MESH.replace("box.stl", "big%20box.stl"), {"package_dirs": [tmp_path / "elsewhere"]}
    elif way.startswith("file"):
        start = {"file": "file://", "file with one slash": "file:", "file on localhost": "file://localhost"}[way]
        text = shape(f'<mesh filename="{start}{package}/meshes/box.stl"/>')
    elif way == "separators of Windows":
        text = shape('<mesh filename="..\\elsewhere\\my_robot\\meshes\\box.stl"/>')
    elif way.startswith("link"):
        if way == "link":
            text = shape('<mesh filename="../meshes/box.stl"/>')
        target = written(package / "urdf" / "robot.urdf", robot(text))
        path.parent.mkdir(parents=True)
        path.symlink_to(target)
    else:
        text = shape('<mesh filename="../elsewhere/my_robot/meshes/box.stl"/>')
    stl(package / "meshes" / "box.stl")
    model = quietly(written(path, robot(text)), **options)
    assert model.ignored == ()
    np.testing.assert_allclose(corners_of(model), [(0, 0, 0), (1, 2, 3)], atol=1e-6)


@pytest.mark.parametrize(
    ("scale", "low", "high"),
    [("0.001 0.001 0.001", (0, 0, 0), (0.001, 0.002, 0.003)), ("-1 1 1", (-1, 0, 0), (0, 2, 3)), ("-1 -2 -1", (-1, -4, -3), (0, 0, 0))],
)
def test_scales_also_negative_ones_are_taken_by_both_roles(tmp_path, scale, low, high):
    stl(tmp_path / "box.stl")
    mesh = f'<mesh filename="box.stl" scale="{scale}"/>'
    model = quietly(written(tmp_path / "r.urdf", robot(shape(mesh), shape(mesh, "visual"))))
    np.testing.assert_allclose(corners_of(model), [low, high], atol=1e-6)
    m = model.to_mujoco()
    (g,) = np.flatnonzero(m.geom_contype == 0)
    k = m.geom_dataid[g]
    v, f = m.mesh_vert[m.mesh_vertadr[k] :][: m.mesh_vertnum[k]], m.mesh_face[m.mesh_faceadr[k] :][: m.mesh_facenum[k]]
    # still seen from outside
    assert np.linalg.det(v[f].astype(float)).sum() / 6 == pytest.approx(6 * abs(np.prod([float(x) for x in scale.split()])), rel=1e-4)


def test_the_same_file_name_in_two_folders_is_two_meshes(tmp_path):
    stl(tmp_path / "a" / "part.stl")
    stl(tmp_path / "b" / "part.stl", 2 * BOX)
    text = robot(
        shape('<mesh filename="a/part.stl"/>', "visual"), shape('<mesh filename="b/part.stl"/>'), shape('<mesh filename="b/part.stl"/>')
    )
    model = quietly(written(tmp_path / "my robot.urdf", text.replace('name="base"', 'name="the base link"')))
    np.testing.assert_allclose(corners_of(model), [(0, 0, 0), (2, 4, 6)], atol=1e-6)
    m = model.to_mujoco()
    assert (m.nmesh, m.ngeom) == (2, 3)
    assert model.body_names == ("world", "the base link")


def test_visual_and_collision_shapes_are_kept_apart():
    red = '<material name="red"><color rgba="1 0 0 1"/></material>'
    text = robot(
        shape('<box size="1 2 3"/>'), f'<visual><geometry><sphere radius="2"/></geometry>{red}</visual>', more='<material name="unused"/>'
    )
    model = quietly(text)
    assert [(s.kind, s.size) for s in model.shapes] == [("box", (0.5, 1.0, 1.5))]
    m = model.to_mujoco()
    drawn = int(np.flatnonzero(m.geom_contype == 0)[0])
    np.testing.assert_array_equal(m.geom_rgba[drawn], (1, 0, 0, 1))
    assert m.geom_group.tolist() == [3, 2]  # MuJoCo's viewers draw the visual one
    floor = dl.scenes.on_floor(model).to_mujoco()
    assert floor.ngeom == 3
    assert int((floor.geom_contype == 0).sum()) == 1


def test_primitive_shapes_have_the_sizes_of_urdf():
    text = robot(shape('<cylinder radius="0.1" length="0.6"/>'), shape('<capsule radius="0.1" length="0.6"/>'), shape('<sphere radius="0.2"/>', extra='<origin xyz="1 2 3"/>'))  # fmt: skip
    assert [(s.kind, s.size, s.position) for s in quietly(text).shapes] == [
        ("cylinder", (0.1, 0.3), (0, 0, 0)), ("capsule", (0.1, 0.3), (0, 0, 0)), ("sphere", (0.2,), (1, 2, 3))
    ]  # fmt: skip


LISTED = {
    "missing package": ('<mesh filename="package://nowhere/a.stl"/>', "package 'nowhere' is not found; give its parent folder in package_dirs"),
    "missing mesh": ('<mesh filename="a.stl"/>', "the file does not exist"), "no name": ("<mesh/>", "no file is named"), "web": ('<mesh filename="https://x.org/a.stl"/>', "is not fetched"),
    "no faces": ('<mesh filename="empty.obj"/>', "'empty.obj' has no faces"), "a line": ('<mesh filename="line.stl"/>', "'line.stl' has no width"),
    "zero scale": ('<mesh filename="box.stl" scale="1 0 1"/>', "leaves no volume"), "scale of words": ('<mesh filename="box.stl" scale="s"/>', "scale must be three numbers"),
    "no size": ("<box/>", "size of <box> must be 3 positive numbers"), "negative": ('<sphere radius="-1"/>', "radius of <sphere> must be 1 positive number"),
    "unknown": ('<cone radius="1"/>', "<cone> is no shape of URDF"), "nothing": ("", "it has no geometry"), "kind": ('<mesh filename="a.ply"/>', "does not exist"), "capitals": ('<mesh filename="Box.STL"/>', "(capitals count: there is 'box.stl')"),
    "two geometries": ('<box size="1 1 1"/><sphere radius="1"/>', "has one geometry, and this is another"), "two elements": ('<box size="1 1 1"/></geometry><geometry><mesh filename="box.stl"/>', "has one geometry"),
    "thin lines": ('<mesh filename="lines.stl"/>', "'lines.stl' has no"),
}  # fmt: skip


@pytest.mark.parametrize("case", LISTED)
@pytest.mark.parametrize("role", ["collision", "visual"])
def test_a_shape_that_cannot_be_read_is_listed_and_the_rest_stays(tmp_path, case, role):
    geometry, said = LISTED[case]
    stl(tmp_path / "box.stl")
    stl(tmp_path / "line.stl", np.outer(np.arange(8), (1.0, 2.0, 3.0)))
    stl(tmp_path / "lines.stl", np.outer(np.arange(600), (1.0, 2.0, 3.0)), [(3 * k, 3 * k + 1, 3 * k + 2) for k in range(200)])
    (tmp_path / "empty.obj").write_text("v 0 0 0\n")
    with pytest.warns(UserWarning, match="See model.ignored"):
        model = dl.load(written(tmp_path / "r.urdf", robot(shape('<box size="1 1 1"/>'), shape(geometry, role))))
    if case == "a line" and role == "visual":
        said = "'line.stl' has no surface"
    (line,) = model.ignored
    assert line.startswith(f"1 {role} ")
    assert "of link 'base'" in line
    assert said in line
    assert {s.kind for s in model.shapes} == {"box"}


def test_a_flat_mesh_touches_as_a_plate(tmp_path):
    stl(tmp_path / "flat.stl", BOX * (1, 1, 0))
    model = quietly(written(tmp_path / "r.urdf", robot(shape('<mesh filename="flat.stl"/>'))))
    np.testing.assert_allclose(corners_of(model), [(0, 0, -0.0005), (1, 2, 0.0005)], atol=1e-6)


def test_a_huge_mesh_touches_with_its_hull(tmp_path):
    rng = np.random.default_rng(0)
    ball = rng.standard_normal((3 * 250_000, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True) * 10
    facets = np.zeros(250_000, dtype=[("n", "<f4", 3), ("c", "<f4", (3, 3)), ("a", "<u2")])
    facets["c"] = np.round(ball, 2).reshape(-1, 3, 3)
    (tmp_path / "ball.stl").write_bytes(b"\0" * 80 + struct.pack("<I", len(facets)) + facets.tobytes())
    model = quietly(written(tmp_path / "r.urdf", robot(shape('<mesh filename="ball.stl"/>'))))
    np.testing.assert_allclose(corners_of(model), [(-0.1,) * 3, (0.1,) * 3], atol=2e-3)


def test_a_hull_of_very_many_corners_keeps_its_outermost_and_says_so(tmp_path):
    rng = np.random.default_rng(1)
    ball = rng.standard_normal((3 * 8_000, 3))
    ball *= (0.1, 0.2, 0.3) / np.linalg.norm(ball, axis=1, keepdims=True)
    model = quietly(
        written(
            tmp_path / "r.urdf",
            robot(shape(f'<mesh filename="{stl(tmp_path / "ball.stl", ball, np.arange(24_000).reshape(-1, 3)).name}"/>')),
        )
    )
    assert model.ignored == ("corners of the hull of 'ball.stl' beyond the 10,000 outermost of 24,000",)
    m = model.to_mujoco()
    assert m.nmeshvert <= 10_000
    # as far as any point in any direction, within 3e-4 of the size 0.6
    directions = rng.standard_normal((200, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    kept = m.mesh_vert @ dl.spatial.rotation_matrix(m.geom_quat[0]).T + m.geom_pos[0]
    assert np.abs((ball @ directions.T).max(axis=0) - (kept @ directions.T).max(axis=0)).max() < 3e-4 * 0.6


def test_a_mesh_of_micrometres_stands_on_a_floor(tmp_path):
    stl(tmp_path / "dust.stl", 1e-6 * BOX)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = dl.Simulator(written(tmp_path / "r.urdf", robot(shape('<mesh filename="dust.stl"/>'))), floating_base=True, floor=True)
    assert sim.step().status == "solved"


def test_a_joint_that_mimics_itself_is_free_and_listed():
    model = quietly(robot(more=linked("a") + joint("j", "base", "a", extra='<mimic joint="j"/>')))
    assert (model.loops, model.ignored) == ((), ("mimic of joint 'j': it follows itself",))


def test_a_path_may_start_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    written(tmp_path / "r.urdf", robot())
    assert quietly("~/r.urdf").nbody == 2


def joint(name, parent, child, kind="continuous", extra=""):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{extra}</joint>'


def linked(name):
    return f'<link name="{name}">{INERTIAL}</link>'


REFUSED = {
    "xacro namespace": ('<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="x"/><link name="a"/></robot>', "is xacro.*<xacro:include>.*xacro .* > .*urdf"),
    "xacro without it": ('<robot name="r"><xacro:macro name="m"/></robot>', "is xacro.*Expand it first: xacro"),
    "xacro expression": ('<robot name="r"><link name="a"><inertial><mass value="${2 * m}"/></inertial></link></robot>', r"is xacro.*value='\$\{2 \* m\}' in link 'a'.*Expand it first: xacro"),
    "no parent": ('<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="fixed"><child link="b"/></joint></robot>', "joint 'j' needs <parent link"),
    "no root": (robot(more=linked("a") + joint("j", "base", "a") + joint("k", "a", "base")), "every link is the child of a joint.*argument loops"),
    "SRDF": ('<robot name="r"><group name="arm"/></robot>', "at least one <link>, got none. It is an SRDF"),
    "SDF": ('<sdf version="1.6"><model name="m"/></sdf>', "root element <sdf>.*SDF is not read: export the robot as URDF or MJCF"),
    "web page": ("<html><body/></html>", "root element <html>.*download the raw file"), "cut off": ('<robot name="r"><link name="a">', "incomplete: it ends at line 1"),
    "no link": ('<robot name="r"/>', "at least one <link>"), "two links of one name": (robot(more=linked("base")), "link names must differ, got 2 of name 'base'"),
    "two joints of one name": (robot(more=linked("a") + linked("b") + joint("j", "base", "a") + joint("j", "base", "b")), "joint names must differ"),
    "unknown joint type": (robot(more=linked("a") + joint("j", "base", "a", "screw")), "joint 'j': type.*'screw'.*revolute"),
    "unknown link": (robot(more=linked("a") + joint("j", "base", "b")), "joint 'j': its child is link 'b', which does not exist"),
    "two parents": (robot(more=linked("a") + linked("b") + joint("j", "base", "a") + joint("k", "base", "b") + joint("l", "b", "a")), "link 'a' is the child of 2 joints.*loops"),
    "floating below": (robot(more=linked("a") + linked("b") + joint("j", "base", "a") + joint("k", "a", "b", "floating")), "joint 'k' is floating below link 'a'"),
    "floating below the root": (robot(more=linked("a") + joint("j", "base", "a", "floating")), "joint 'j' is floating below link 'base'.*name 'base' 'world', or remove it and load with floating_base=True"),
    "world below": (robot(more=linked("world") + joint("j", "base", "world")), "link 'world' is the child of joint 'j', but 'world' is the ground"),
    "a capital": ('<robot name="r"><Link name="a"/></robot>', "URDF has no <Link>: write <link>"), "a capital inside": (robot("<Collision/>"), "URDF has no <Collision>: write <collision>"),
    "SRDF without groups": ('<robot name="r"><disable_collisions link1="a" link2="b"/></robot>', "It is an SRDF"),
    "axis": (robot(more=linked("a") + joint("j", "base", "a", extra='<axis xyz="0 1"/>')), "joint 'j': <axis> expects 3 finite numbers in xyz, got '0 1'"),
    "no axis": (robot(more=linked("a") + joint("j", "base", "a", extra='<axis xyz="0 0 0"/>')), "joint 'j': <axis> expects a direction"),
    "origin of a joint": (robot(more=linked("a") + joint("j", "base", "a", extra='<origin rpy="0,0,1"/>')), "joint 'j': <origin> expects 3 finite numbers in rpy"),
    "limit": (robot(more=linked("a") + joint("j", "base", "a", "revolute", '<limit lower="nan" upper="1"/>')), "joint 'j': <limit> expects 1 number in lower, got 'nan'"),
    "mimic": (robot(more=linked("a") + joint("j", "base", "a", extra='<mimic joint="k" multiplier="x"/>')), "joint 'j': <mimic> expects 1 finite number in multiplier"),
    "no name": (robot(more="<link/>"), "every <link> needs a name"), "origin": (robot(shape('<box size="1 1 1"/>', extra='<origin xyz="1 2"/>')), "collision of link 'base': <origin> expects 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_urdf_is_refused_with_a_way_out(case):
    text, said = REFUSED[case]
    with pytest.raises(DelassusError, match=said):
        dl.load(text)


def test_a_xacro_file_is_named_in_the_command_that_expands_it(tmp_path):
    path = written(tmp_path / "go.urdf.xacro", REFUSED["xacro namespace"][0])
    with pytest.raises(LoadError, match=rf"xacro {path} > {tmp_path}/go_expanded.urdf"):
        dl.load(path)
    path = written(tmp_path / "my robot.urdf.xacro", REFUSED["xacro namespace"][0])
    with pytest.raises(LoadError, match=rf"xacro '{path}' > '{tmp_path}/my robot_expanded.urdf'"):
        dl.load(path)


NO_XML = {
    "robot.yaml": (b"robot:\n  name: r\n", "is not XML: it does not start with '<'"), "robot.urdf": (b" \n", "is empty"), "part.stl": (b"solid x\nendsolid x\n", "is a mesh, not a robot"),
    "latin.urdf": ('<robot name="r">\n<link name="b\u00e4r"/></robot>'.encode("latin-1"), r"is not UTF-8 \(line 2\)\. Save it as UTF-8, or declare its encoding"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_XML)
def test_a_file_of_another_kind_is_named_as_what_it_is(tmp_path, name):
    content, said = NO_XML[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LoadError, match=said):
        dl.load(tmp_path / name)


def test_encodings_that_a_file_declares_and_a_default_namespace_are_read(tmp_path):
    text = '<?xml version="1.0" encoding="iso-8859-1"?><robot xmlns="http://www.ros.org" name="b\u00e4r"><link name="base"/></robot>'
    path = tmp_path / "r.urdf"
    path.write_bytes(text.replace('<link name="base"/>', f'<link name="base">{INERTIAL}</link>').encode("latin-1"))
    model = quietly(path)
    assert (model.name, model.body_names, model.mass) == ("b\u00e4r", ("world", "base"), 1.0)


def test_a_folder_says_which_files_it_holds(tmp_path):
    written(tmp_path / "pkg" / "urdf" / "robot.urdf", robot())
    with pytest.raises(LoadError, match=r"is a folder with urdf/robot.urdf"):
        dl.load(tmp_path / "pkg")


def test_joints_of_every_type_move_as_they_are_named():
    planar = robot(more=linked("a") + joint("j", "base", "a", "planar", '<axis xyz="0 0 1"/>'))
    assert quietly(planar).joint_type[1:] == ("slide", "slide", "hinge")
    text = robot(
        more=linked("a") + linked("b") + joint("c", "base", "a") + joint("p", "a", "b", "prismatic", '<limit lower="-1" upper="2"/>')
    )
    model = quietly(text)
    assert model.joint_type == ("free", "hinge", "slide")
    assert not np.isfinite(model.joint_range[1]).any()
    np.testing.assert_array_equal(model.joint_range[2], (-1, 2))


def test_a_joint_that_moves_nothing_with_mass_is_held_and_listed():
    text = robot(
        more=linked("a") + '<link name="b"/><link name="c"/>' + joint("j", "base", "a") + joint("k", "a", "b") + joint("l", "b", "c")
    )
    model = quietly(text)
    assert model.joint_names[1:] == ("j",)
    assert model.ignored == ("motion of 2 joints that move links without mass (k, l)",)
    assert model.frame("l").body == "c"


def test_links_that_overlap_do_not_push_each_other_apart_unless_asked():
    ball = shape('<sphere radius="0.2"/>')
    chain = "".join(
        f'<link name="{name}">{INERTIAL}{ball}</link>'
        + joint(f"{name}_j", above, name, extra='<origin xyz="0.15 0 0"/><axis xyz="0 0 1"/>')
        for name, above in (("a", "base"), ("b", "a"))
    )
    model = quietly(robot(ball, more=chain))
    assert model.collision_excludes == (("base", "b"),)
    assert "1 pair of links that overlap" in model.ignored[0]
    free = quietly(robot(ball, more=chain), exclude_overlaps=False)
    assert (free.collision_excludes, free.ignored) == ((), ())


def test_package_dirs_are_checked(tmp_path):
    with pytest.raises(ArgumentError, match=r"package_dirs: the folder .* does not exist"):
        dl.load(robot(), package_dirs=[tmp_path / "none"])
    with pytest.raises(ArgumentTypeError, match="package_dirs: expected a list of folders, got int"):
        dl.load(robot(), package_dirs=3)
    with pytest.raises(ArgumentError, match="package_dirs: only a URDF names packages"):
        dl.load("go2", package_dirs=[tmp_path])
    with pytest.raises(ArgumentTypeError, match="floor: expected True or False"):
        dl.Simulator("go2", floor=1)
