"""What is told to the browser: bodies where MuJoCo has them, arrows that end where forces say, colours by the elimination's order."""

import subprocess
import sys

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, MissingExtraError, NotFiniteError, StaleError, UnknownNameError, WriteError
from delassus.viewers import looks, solids, stage, subject
from oracles.motions import dropped

pytest.importorskip("viser", reason="the extra viewer is not installed")


@pytest.fixture(scope="module")
def motion():
    return dropped(dl.scenes.on_floor("cassie"), dl.load("cassie").keyframes["home"], height=0.1, seconds=0.4)


@pytest.fixture
def view(motion):
    with dl.View(motion, port=0) as window:
        yield window


def shown(markers):
    """Places, turns, scales of the markers in use."""
    handle = markers._handle
    used = handle.batched_scales.max(axis=1) > 1e-8
    return handle.batched_positions[used], handle.batched_wxyzs[used], handle.batched_scales[used]


def test_bodies_stand_where_mujoco_has_them(view, motion):
    m, qpos, _ = motion.to_mujoco()
    d = mujoco.MjData(m)
    for frame in (0, 17, len(motion) - 1):
        view.show(frame)
        d.qpos[:] = qpos[frame]
        mujoco.mj_kinematics(m, d)
        for body, handle in view._stage._frames.items():
            assert np.allclose(handle.position, d.xpos[body], atol=2e-6)
            assert abs(handle.wxyz @ d.xquat[body]) == pytest.approx(1, abs=1e-6)
        assert view.frame == frame


def test_arrows_start_at_contacts_and_end_where_forces_say(view, motion):
    newton, longest = view._stage.newton, stage.LONGEST * view._stage.radius * view._stage._crowd
    # a frame of steady contact: arrows of blows are cut
    frame = next(
        k for k in range(len(motion)) if len(motion.contacts(k)) >= 2 and (np.abs(motion.contacts(k).force) * newton < longest / 4).all()
    )
    view.show(frame)
    contacts = motion.contacts(frame)
    pressed = np.linalg.norm(contacts.force, axis=1) * newton > 1e-6
    places, turns, scales = shown(view._stage._heads)
    tips = places + [dl.spatial.rotation_matrix(t)[:, 2] * s[2] for t, s in zip(turns, scales, strict=True)]
    assert np.allclose(tips, (contacts.position + contacts.force * newton)[pressed], atol=1e-5)
    assert np.allclose(shown(view._stage._points)[0], contacts.position, atol=1e-6)
    # the mouth of a cone is as wide as friction times its height, around the normal
    places, turns, scales = shown(view._stage._cones)
    assert np.allclose(scales[:, 0], contacts.friction[pressed] * scales[:, 2])
    assert np.allclose([dl.spatial.rotation_matrix(t)[:, 2] for t in turns], contacts.normal[pressed], atol=1e-6)
    view._stage.scale_forces(2 * newton)
    assert np.allclose(
        shown(view._stage._heads)[2][:, 2] + shown(view._stage._shafts)[2][:, 2],
        2 * newton * np.linalg.norm(contacts.force[pressed], axis=1),
    )
    view.show(0)
    assert len(shown(view._stage._points)[0]) == len(shown(view._stage._heads)[0]) == 0


def test_contacts_that_slide_have_another_colour(view, motion):
    flat = {"normal": np.tile((0.0, 0, 1), (3, 1)), "friction": np.full(3, 0.5), "bodies": np.tile((1, 0), (3, 1))}
    forces = np.array([[0, 0, 10.0], [4.99, 0, 10], [2, 0, 10]])
    view.update(motion.q[0], dl.Contacts(np.zeros((3, 3)), force=forces, **flat))
    colors = view._stage._heads._handle.batched_colors[:3]
    assert [tuple(c) for c in colors] == [stage.STICKS, stage.SLIDES, stage.STICKS]


def test_more_contacts_than_there_was_room_for_are_shown(view, motion):
    n = 3 * view._stage._points.capacity
    rng = np.random.default_rng(0)
    many = dl.Contacts(rng.random((n, 3)), np.tile((0.0, 0, 1), (n, 1)), rng.random((n, 3)), np.ones(n), np.tile((1, 0), (n, 1)))
    view.update(motion.q[0], many)
    assert np.allclose(shown(view._stage._points)[0], many.position, atol=1e-6)


def test_ends_of_loops_are_marked_and_a_gap_is_shown(motion):
    model = motion.model
    with dl.View(model, q=motion.q[0], port=0) as window:
        ends = [
            dl.point_position(model, motion.q[0], body, point)
            for loop in model.loops
            for body, point in ((loop.body, loop.point), (loop.other, loop.other_point))
        ]
        assert np.allclose(shown(window._stage._ends)[0], ends[::2], atol=1e-6)
        assert np.allclose(shown(window._stage._rings)[0], ends[1::2], atol=1e-6)
        assert len(shown(window._stage._gaps)[0]) == 0
        q = motion.q[0].copy()
        q[model.joint_qadr[model.joint_index("left-knee")]] += 0.3
        window.update(q)
        # the left achilles rod and tarsus come apart; plantar loops are below the knee and stay
        gaps = np.linalg.norm(shown(window._stage._rings)[0] - shown(window._stage._ends)[0], axis=1)
        lengths = shown(window._stage._gaps)[2][:, 2]
        assert 1 <= len(lengths) < 4
        assert np.allclose(np.sort(lengths), np.sort(gaps[gaps > 1e-3]), rtol=1e-3)


def test_shares_follow_the_operators_order():
    model, _, constraints = dl.scenes.load("cassie-standing")
    G = dl.DelassusOperator(model, constraints)
    idle = G.explain().idle
    shares = stage.elimination_shares(model, constraints)
    order = [model.joint_body[model.joint_index(j)] for j in G.order[idle:]]
    assert np.array_equal(shares[order], np.arange(len(order)) / (len(order) - 1))
    assert np.isnan(shares[0])
    # without constraints nothing is reached
    assert np.isnan(stage.elimination_shares(model, [])).all()


def test_colours_follow_the_elimination_and_go_back(motion):
    with dl.View(motion, port=0) as window:
        window.show(-1)
        window._controls["colors"].value = "elimination order"
        held = [*motion.model.loops, *(dl.PointContact(motion.model, a, other=b) for a, b in motion.contacts(-1).bodies.tolist())]
        shares = stage.elimination_shares(motion.model, held)
        colors = {solid.body: tuple(handle.color) for solid, handle in window._stage._handles}
        first, last = np.nanargmin(shares[list(colors)]), np.nanargmax(shares[list(colors)])
        assert colors[list(colors)[first]] == (68, 1, 84)  # both ends of viridis
        assert colors[list(colors)[last]] == (253, 231, 37)
        window._controls["colors"].value = "as described"
        for solid, handle in window._stage._handles:
            assert np.allclose(np.array(handle.color) / 255, solid.rgba[:3], atol=0.003)


def test_contacts_of_a_pose_are_those_of_its_constraints():
    model = dl.load("g1")
    q = model.random(4)
    bodies, points = ("left_ankle_roll_link", "torso_link"), np.array([[0.1, 0.02, -0.03], [0.0, 0.1, 0.2]])
    normals = np.array([[0.0, 0, 1], [0.6, 0, 0.8]])
    held = [
        dl.PointContact(model, body, point=p, normal=n, friction=f, other=o)
        for body, p, n, f, o in zip(bodies, points, normals, (0.3, 0.7), (None, "pelvis"), strict=True)
    ]
    contacts = stage.touching(model, q, [held[0], dl.Weld(model, "pelvis"), held[1]])
    assert np.allclose(contacts.position, [dl.point_position(model, q, b, p) for b, p in zip(bodies, points, strict=True)])
    assert np.allclose(contacts.normal, normals)
    assert contacts.friction.tolist() == [0.3, 0.7]
    assert contacts.bodies.tolist() == [[model.body_index(bodies[0]), 0], [model.body_index(bodies[1]), model.body_index("pelvis")]]


def test_forces_of_a_pose_carry_its_weight():
    """A box of 3 kg on four points is at rest: the forces sum to its weight, which nothing but gravity needs."""
    model, q, constraints = dl.scenes.load("box-stack")
    contacts = stage.touching(model, q, constraints)
    ground = contacts.bodies[:, 1] == 0
    assert ground.any()
    assert np.allclose(contacts.force[ground].sum(axis=0), [0, 0, 9.81 * model.mass], rtol=1e-3, atol=1e-3 * model.mass)
    with dl.View(model, q=q, constraints=constraints, port=0) as window:
        assert len(shown(window._stage._heads)[0]) > 0
        assert window._stage._example > 0


def test_arrow_on_the_ground_is_as_long_as_its_force(view):
    stage_ = view._stage
    force, (tail, head) = stage_._example, (shown(markers) for markers in stage_._scale)
    assert stage_._scale_label.text == f"{force:g} N"
    assert tail[2][0, 2] + head[2][0, 2] == pytest.approx(force * stage_.newton, rel=1e-5)
    stage_.scale_forces(0.5 * stage_.newton)
    assert sum(shown(markers)[2][0, 2] for markers in stage_._scale) == pytest.approx(force * stage_.newton, rel=1e-5)


def test_robots_have_their_own_colours_and_bodies_too():
    model = dl.scenes.pyramid_with_robots()
    drawn = solids.of_model(model)
    colors = looks.robot_colors(model, drawn)
    tops = {}
    for solid, color in zip(drawn, colors, strict=True):
        top = solid.body
        while model.body_parent[top]:
            top = model.body_parent[top]
        tops.setdefault(int(top), set()).add(tuple(np.round(color, 3)))
    robots = [seen for top, seen in tops.items() if top and (model.body_parent == top).any()]
    assert len(robots) == 3
    assert not robots[0] & robots[1]
    assert not robots[1] & robots[2]
    # what has a colour keeps it: the boxes are brown as described
    assert all(color == solid.rgba[:3] for solid, color in zip(drawn, colors, strict=True) if np.ptp(solid.rgba[:3]) > 0.1)
    assert len(set(looks.body_colors(drawn))) == len({s.body for s in drawn})


TETRAHEDRON = "v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


@pytest.mark.parametrize("second", ["0.2 0.2 0.2 1", "0.7 0.7 0.7 1"])
def test_meshes_of_a_urdf_are_drawn_without_more_words_and_keep_their_materials(tmp_path, second):
    (tmp_path / "t.obj").write_text(TETRAHEDRON)
    visual = '<visual><geometry><mesh filename="t.obj"/></geometry><material name=""><color rgba="{}"/></material></visual>'
    links = [f'<link name="{name}">{INERTIAL}{visual.format(rgba)}<collision><geometry><box size="1 1 1"/></geometry></collision></link>' for name, rgba in (("a", "0.7 0.7 0.7 1"), ("b", second))]  # fmt: skip
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><origin xyz="3 0 0"/></joint>'
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{"".join(links)}{joint}</robot>')
    what = subject.subject(dl.load(tmp_path / "r.urdf", floating_base=True), None, None, None)
    assert [s.kind for s in what.solids] == ["mesh", "mesh"]  # not the boxes that they touch with
    colors, described = looks.robot_colors(what.model, what.solids), [s.rgba[:3] for s in what.solids]
    if second.startswith("0.2"):
        assert colors == described
    else:  # one grey for all is no material
        assert colors != described
        assert np.ptp(colors[0]) > 0.1


def test_a_recording_begins_with_the_pose_of_every_body_also_the_identity():
    """Of a pose that is never said, a page that goes back to the start keeps a later one."""
    text = '<mujoco><worldbody><body name="b"><freejoint/><geom size="0.1"/><body name="c" pos="1 0 0"><joint/><geom size="0.1"/></body></body></worldbody></mujoco>'
    with dl.View(dl.load(text), port=0) as window:
        film = window._server.get_scene_serializer()
        said = {(m["type"], m.get("name")) for _, m in film._messages}
        for body in ("b", "c"):
            name = next(frame.name for frame in window._stage._frames.values() if frame.name.endswith(f"/{body}"))
            assert {("SetOrientationMessage", name), ("SetPositionMessage", name)} <= said
        assert all(np.allclose(frame.wxyz, (1, 0, 0, 0)) for frame in window._stage._frames.values())


def test_arrow_of_the_scale_lies_on_the_ground_also_where_bodies_reach_below_it():
    text = """<mujoco><worldbody><geom type="plane" size="0 0 1" pos="0 0 0.2" quat="0.999 0.0447 0 0"/>
    <body pos="0 0 0.7"><freejoint/><geom size="0.5"/><geom type="box" size="0.1 0.1 1" contype="0" conaffinity="0" group="2"/></body></worldbody></mujoco>"""
    sim = dl.Simulator(text)
    with dl.View(sim.run(0.1, every=10, progress=False), port=0) as window:
        up = dl.spatial.rotation_matrix(np.array((0.999, 0.0447, 0, 0)) / np.hypot(0.999, 0.0447))[:, 2]
        heights = (window._stage._scale_ends - (0, 0, 0.2)) @ up
        assert (heights > 0).all()
        assert (heights < 0.2 * window._stage.radius).all()


def test_names_of_bodies_are_shown_and_go_away(view):
    view._stage.show_names(True)
    assert {label.text for label in view._stage._labels} == {view._model.body_names[b] for b in view._stage._frames}
    view._stage.show_names(False)
    assert view._stage._labels == []


def test_own_plots_are_checked(motion):
    with dl.View(motion, port=0, look="dark", plots={"height [m]": motion.q[:, 2], "feet": motion.q[:, :2]}) as window:
        assert set(window._own_plots) == {"height [m]", "feet"}
    with pytest.raises(ArgumentError, match=r"plots\['x'\]: expected shape \(41,\)"):
        dl.View(motion, port=0, plots={"x": np.zeros(3)})
    with pytest.raises(ArgumentError, match="expected a trajectory"):
        dl.View(motion.model, port=0, plots={"x": np.zeros(3)})
    with pytest.raises(UnknownNameError, match="look 'pink' does not exist"):
        dl.View(motion, port=0, look="pink")


# ---- the window ---------------------------------------------------------------------------------------------------------------


def test_view_plays_pauses_and_starts_again(motion):
    with dl.View(motion, port=0) as window:
        window.play()
        seen = set()
        for _ in range(200):
            window._closed.wait(0.02)
            seen.add(window.frame)
            if len(seen) > 4:
                break
        assert len(seen) > 4
        window.pause()
        assert window._controls["button"].label == "Play"
        window._closed.wait(0.1)
        at = window.frame
        window._closed.wait(0.3)
        assert window.frame == at
    window.close()
    with pytest.raises(StaleError, match="closed"):
        window.show(0)
    assert "closed" in repr(window)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda v: v.show(100), ArgumentError, "frame: expected a number from -41 to 40"),
        (lambda v: v.update(np.zeros(3)), ArgumentError, r"q: expected shape \(35,\)"),
        (lambda v: v.update(np.full(35, np.nan)), NotFiniteError, "finite"),
    ],
)
def test_window_refuses_what_it_cannot_show(view, call, error, said):
    with pytest.raises(error, match=said):
        call(view)


def test_model_has_no_frames():
    with dl.View(dl.scenes.chain(3), port=0) as window, pytest.raises(ArgumentError, match="a model has no frames"):
        window.show(0)


def test_wrong_sources_are_refused(motion, tmp_path):
    with pytest.raises(ArgumentTypeError, match=r"source: expected a delassus.Model or a Trajectory, got str"):
        dl.View("go2")
    with pytest.raises(ArgumentError, match="empty"):
        dl.View(motion[:0])
    with pytest.raises(ArgumentError, match="has its own states"):
        dl.View(motion, q=motion.q[0])
    with pytest.raises(ArgumentError, match=r"expected a file that ends in \.html, \.viser, \.gif, \.webp, \.mp4"):
        dl.record(motion, tmp_path / "fall.avi")
    with pytest.raises(ArgumentError, match="fps"):
        dl.record(motion, tmp_path / "fall.html", fps=0)
    with pytest.raises(WriteError, match="recording of 41 frames"):
        dl.record(motion, tmp_path / "nowhere" / "fall.html")


def test_port_that_is_taken_is_told():
    with dl.View(dl.scenes.chain(2), port=0) as window:
        port = int(window.url.rsplit(":", 1)[1])
        with pytest.raises(ArgumentError, match=f"port: 127.0.0.1:{port} cannot be opened"):
            dl.View(dl.scenes.chain(2), port=port)


def test_missing_viser_says_how_to_get_it(monkeypatch):
    def gone(name):
        raise ImportError(name)

    monkeypatch.setattr(subject.importlib, "import_module", gone)
    with pytest.raises(MissingExtraError, match=r'pip install "delassus\[viewer\]"'):
        dl.View(dl.scenes.chain(2), port=0)


def test_nothing_is_printed(capsys, motion, tmp_path):
    with dl.View(motion, port=0):
        pass
    dl.record(motion[:3], tmp_path / "fall.viser")
    out = capsys.readouterr()
    assert out.out + out.err == ""
    # nor at the end, if nobody closes it
    script = "import delassus as dl; view = dl.View(dl.scenes.chain(2), port=0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "make", [lambda: dl.scenes.chain(1), lambda: dl.scenes.n_four_bar(2), lambda: dl.load("talos"), lambda: dl.ModelBuilder("none").build()]
)
def test_any_model_can_be_shown(make):
    with dl.View(make(), port=0, pose=True) as window:
        window._controls["colors"].value = "elimination order"


# ---- recordings ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fps", "moments"), [(25, np.arange(11) / 25), (7, [0.0, 0.14, 0.28, 0.4])])
def test_recording_lasts_as_long_as_the_motion_and_ends_where_it_ends(motion, tmp_path, fps, moments):
    import msgspec
    import zstandard

    raw = dl.record(motion, tmp_path / "fall.viser", fps=fps).read_bytes()
    data = zstandard.ZstdDecompressor().decompress(raw[8:], max_output_size=int.from_bytes(raw[:8], "little"))
    told = msgspec.msgpack.decode(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert told["durationSeconds"] == pytest.approx(0.4 + 1 / fps)
    moves = [(t, m) for t, m in told["messages"] if m["type"] == "SetPositionMessage" and m["name"] == "/bodies/cassie-pelvis"]
    # at its start there is the first frame and no other one, whether it is played for the first time or again
    assert [t for t, _ in moves] == pytest.approx(moments)
    for (_, move), frame in ((moves[0], 0), (moves[-1], -1)):
        X = dl.body_placements(motion.model, motion.q[frame])[motion.model.body_index("cassie-pelvis")]
        assert np.allclose(move["position"], X[:3, 3], atol=2e-6)
    assert [p.name for p in tmp_path.iterdir()] == ["fall.viser"]


def test_recording_begins_without_the_arrows_of_its_end(motion, tmp_path):
    """What stands on the stage at the start of the film is written as it is then: numbers of later frames must not get into its arrays."""
    import msgspec
    import zstandard

    assert len(motion.contacts(0)) == 0
    assert len(motion.contacts(-1)) > 0
    raw = dl.record(motion, tmp_path / "fall.viser").read_bytes()
    data = zstandard.ZstdDecompressor().decompress(raw[8:], max_output_size=int.from_bytes(raw[:8], "little"))
    end = 8 + int.from_bytes(data[:8], "little")
    told = msgspec.msgpack.decode(data[8:end])
    places = []  # every array begins at a multiple of eight bytes
    for length in told["binaryBufferLengths"]:
        end = -(-end // 8) * 8
        places.append((end, length // 4))
        end += length

    def array(placeholder):
        start, count = places[placeholder["__binary_index"]]
        return np.frombuffer(data, dtype=placeholder["dtype"], count=count, offset=start)

    made = [m for t, m in told["messages"] if t == 0 and m.get("name") == "/contact forces/heads" and "props" in m]
    assert len(made) == 1
    assert array(made[0]["props"]["batched_scales"]).max() < 1e-8
    updates = [m for t, m in told["messages"] if t == 0 and m.get("name") == "/contact forces/heads" and "updates" in m]
    assert all(array(m["updates"]["batched_scales"]).max() < 1e-8 for m in updates if "batched_scales" in m["updates"])


def test_recording_that_fails_leaves_the_one_before(motion, tmp_path, monkeypatch):
    path = dl.record(motion[:2], tmp_path / "fall.html")
    before = path.read_bytes()
    assert b"<title>cassie_on_floor</title>" in before
    monkeypatch.setattr(stage.Stage, "draw", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(WriteError, match="is as it was before: No space left"):
        dl.record(motion, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["fall.html"]
