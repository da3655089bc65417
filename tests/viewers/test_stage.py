"""What is told to the browser: bodies where MuJoCo has them, arrows that end where forces say, colours by the elimination's order."""

import subprocess
import sys

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, MissingExtraError, NotFiniteError, StaleError, WriteError
from delassus.viewers import stage, subject
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
    assert not contacts.force.any()


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
    with pytest.raises(ArgumentError, match=r"expected a file that ends in \.html or \.viser"):
        dl.record(motion, tmp_path / "fall.mp4")
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
    # at the start the scene, and then in the film itself the last pose and the first: who plays it again finds the first sent anew
    assert [t for t, _ in moves] == pytest.approx([0.0, 0.0, *moments])
    assert np.allclose(moves[1][1]["position"], moves[-1][1]["position"])
    assert np.allclose(moves[2][1]["position"], moves[0][1]["position"])
    X = dl.body_placements(motion.model, motion.q[-1])[motion.model.body_index("cassie-pelvis")]
    assert np.allclose(moves[-1][1]["position"], X[:3, 3], atol=2e-6)
    assert [p.name for p in tmp_path.iterdir()] == ["fall.viser"]


def test_recording_that_fails_leaves_the_one_before(motion, tmp_path, monkeypatch):
    path = dl.record(motion[:2], tmp_path / "fall.html")
    before = path.read_bytes()
    assert b"<title>cassie_on_floor</title>" in before
    monkeypatch.setattr(stage.Stage, "draw", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(WriteError, match="is as it was before: No space left"):
        dl.record(motion, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["fall.html"]
