"""Mesh files: volumes, boxes and colours that are known in closed form; all meshes of example-robot-data beside Coal's reader."""

import struct
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

from delassus.errors import MeshError
from delassus.model.mesh_part import welded
from delassus.model.meshes import box_of, read_mesh

CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], dtype=float)
# outward quads of a box of 1 × 2 × 3
QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
TRIANGLES = [t for a, b, c, d in QUADS for t in ((a, b, c), (a, c, d))]


def volume(parts):
    """By the divergence theorem: negative where faces look inwards."""
    return sum(np.linalg.det(part.vertices[part.faces]).sum() / 6 for part in parts)


def stl_binary():
    facets = b"".join(struct.pack("<12fH", 0, 0, 0, *CORNERS[list(t)].ravel(), 0) for t in TRIANGLES)
    return b"solid but binary".ljust(80) + struct.pack("<I", len(TRIANGLES)) + facets


def stl_ascii():
    lines = ["solid a name with spaces"]
    for t in TRIANGLES:
        lines += ["facet normal 0 0 0", "outer loop", *(f"vertex {x:e} {y:e} {z:e}" for x, y, z in CORNERS[list(t)]), "endloop", "endfacet"]
    return "\n".join([*lines, "endsolid"]).encode()


def obj(corner=lambda k: str(k + 1)):
    lines = ["mtllib colours.mtl", *(f"v {x} {y} {z}" for x, y, z in CORNERS), "vn 0 0 1", "usemtl red"]
    return "\n".join([*lines, *("f " + " ".join(corner(k) for k in quad) for quad in QUADS)]).encode()


def dae(primitive="polylist", meter="1", nodes='<node><instance_geometry url="#box"/></node>', up="Z_UP"):
    places = " ".join(str(x) for x in CORNERS.ravel())
    # normals between the corners, so that a stride is needed
    faces = {"polylist": QUADS, "polygons": QUADS}.get(primitive, TRIANGLES)
    listed = [" ".join(f"{k} 0" for k in face) for face in faces]
    body = {
        "polylist": f"<vcount>{'4 ' * 6}</vcount><p>{' '.join(listed)}</p>",
        "triangles": f"<p>{' '.join(listed)}</p>",
    }.get(primitive, "".join(f"<p>{p}</p>" for p in listed))
    return f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="u" meter="{meter}"/><up_axis>{up}</up_axis></asset>
<library_effects><effect id="e"><profile_COMMON><technique><phong><diffuse><color>0.2 0.4 0.6 1</color></diffuse></phong></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="box"><mesh>
<source id="p"><float_array id="pa" count="24">{places}</float_array><technique_common><accessor source="#pa" count="8" stride="3"/></technique_common></source>
<source id="n"><float_array id="na" count="3">0 0 1</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<{primitive} material="m" count="6"><input semantic="VERTEX" source="#v" offset="0"/><input semantic="NORMAL" source="#n" offset="1"/>{body}</{primitive}>
</mesh></geometry></library_geometries>
<library_nodes><node id="twice"><scale>2 2 2</scale><instance_geometry url="#box"/></node></library_nodes>
<library_visual_scenes><visual_scene id="s">{nodes}</visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>""".encode()


def read(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    return read_mesh(path)


FILES = {
    "a.stl": stl_binary(), "ascii.STL": stl_ascii(), "capitals.stl": stl_ascii().upper(), "bom.stl": b"\xef\xbb\xbf" + stl_ascii(), "a.obj": obj(), "slashes.obj": obj(lambda k: f"{k + 1}//1"), "backwards.obj": obj(lambda k: str(k - 8)),
    "a.dae": dae(), "triangles.dae": dae("triangles"), "polygons.DAE": dae("polygons"), "fans.dae": dae("trifans"), "strips.dae": dae("tristrips"), "up.dae": dae(up="Y_UP"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_box_is_a_box_in_every_format(tmp_path, name):
    parts = read(tmp_path, name, FILES[name])
    assert volume(parts) == pytest.approx(6.0, rel=1e-6)
    np.testing.assert_allclose(box_of(parts), [(0, 0, 0), (1, 2, 3)], atol=1e-6)
    assert sum(len(part.faces) for part in parts) == 12


def test_dae_units_nodes_and_reflections(tmp_path):
    nodes = (
        '<node><translate>10 0 0</translate><rotate>0 0 1 90</rotate><instance_node url="#twice"/></node>'
        '<node><matrix>-1 0 0 0 0 1 0 0 0 0 1 100 0 0 0 1</matrix><instance_geometry url="#box"/></node>'
    )
    parts = read(tmp_path, "a.dae", dae(meter="0.001", nodes=nodes))
    # x' = 10 − 2y, y' = 2x; the reflected one still looks outwards
    np.testing.assert_allclose(box_of(parts[:1]), np.array([(6, 0, 0), (10, 2, 6)]) / 1000, atol=1e-12)
    np.testing.assert_allclose(box_of(parts[1:]), np.array([(-1, 0, 100), (0, 2, 103)]) / 1000, atol=1e-12)
    assert volume(parts[:1]) == pytest.approx(48e-9)
    assert volume(parts[1:]) == pytest.approx(6e-9)


def test_colours_are_those_of_the_file(tmp_path):
    assert read(tmp_path, "a.dae", dae(nodes='<node><instance_geometry url="#box"><bind_material><technique_common><instance_material symbol="m" target="#m"/></technique_common></bind_material></instance_geometry></node>'))[0].rgba == (0.2, 0.4, 0.6, 1.0)  # fmt: skip
    assert read(tmp_path, "a.obj", obj())[0].rgba is None
    (tmp_path / "colours.mtl").write_text("newmtl red\nKd 1 0 0.5\nd 0.25\n")
    assert read(tmp_path, "a.obj", obj())[0].rgba == (1.0, 0.0, 0.5, 0.25)


BAD = {
    "no faces": ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\n", "has no faces"), "no facets": ("a.stl", b"solid nothing\nendsolid\n", "has no faces"), "empty": ("a.stl", b"", "is empty"),
    "cut off": ("a.stl", stl_binary()[:200], "is damaged: it says 12 facets"), "lies": ("a.stl", b"\0" * 80 + b"\xff\xff\xff\xff" + b"\0" * 50, "says 4294967295 facets"),
    "words": ("a.stl", b"solid a\nfacet\nvertex 1 two 3\n", "three numbers"), "vertex too many": ("a.obj", b"v 0 0 0\nf 1 2 3\n", "a face names vertex 3 of 1"),
    "vertex zero": ("a.obj", b"v 0 0 0\nv 0 0 1\nv 0 1 0\nf 1 2 -9\n", "a face names vertex"), "infinite": ("a.obj", b"v 0 0 inf\nv 0 0 1\nv 0 1 0\nf 1 2 3\n", "not finite"),
    "not XML": ("a.dae", b"<COLLADA", "not well-formed"), "another XML": ("a.dae", b"<robot/>", "root element <robot>"), "empty scene": ("a.dae", dae(nodes=""), "has no faces"),
    "dangling": ("a.dae", dae(nodes='<node><instance_geometry url="#none"/></node>'), "nothing has the id 'none'"),
    "endless": ("a.dae", dae(nodes='<node id="n"><instance_node url="#n"/></node>'), "nested more than"), "kind": ("a.ply", b"ply", "convert it to STL, OBJ or DAE"), "no ending": ("a", stl_binary(), "give its name the ending .stl"),
    "pointer": ("a.stl", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_mesh_says_what_is_wrong(tmp_path, case):
    name, content, said = BAD[case]
    with pytest.raises(MeshError, match=said):
        read(tmp_path, name, content)


def test_welding_keeps_every_triangle_where_it_is():
    rng = np.random.default_rng(3)
    places = rng.integers(-3, 3, (50, 3)).astype(float)
    faces = rng.integers(0, 50, (400, 3)).astype(np.int32)
    vertices, made = welded(places, faces)
    assert len(np.unique(vertices, axis=0)) == len(vertices)
    a, b, c = np.moveaxis(places[faces], 1, 0)
    kept = (a != b).any(1) & (b != c).any(1) & (c != a).any(1)
    np.testing.assert_array_equal(vertices[made], places[faces][kept])


def example_meshes():
    try:
        folder = Path(str(distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")))
    except PackageNotFoundError:
        return []
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".stl", ".obj", ".dae"))


@pytest.mark.parametrize("share", [pytest.param(k, marks=() if k == 0 else pytest.mark.exhaustive) for k in range(8)])
def test_all_example_meshes_are_where_coal_has_them(share):
    coal = pytest.importorskip("coal")
    meshes = example_meshes()[share::40] if share == 0 else example_meshes()[share::8]
    if not meshes:
        pytest.skip("example-robot-data is not installed")
    for path in meshes:
        there = np.asarray(coal.MeshLoader().load(str(path), np.ones(3)).vertices())
        theirs = np.array([there.min(axis=0), there.max(axis=0)])
        np.testing.assert_allclose(box_of(read_mesh(path)), theirs, atol=1e-4 * float(np.ptp(theirs)), err_msg=str(path))
