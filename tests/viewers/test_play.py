"""A simulation live in the browser: a drag moves the body, a slider moves the joint, buttons do what they say."""

import os
import signal
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest
from browser import CHROMIUM, Browser

import delassus as dl
from delassus.errors import StaleError

pytest.importorskip("viser", reason="the extra viewer is not installed")
ARM = """<mujoco model="arm"><option timestep="0.002"/><worldbody><geom type="plane" size="0 0 1"/>
<body name="link" pos="0 0 1"><joint name="hinge" axis="0 1 0" damping="1"/><geom type="box" size="0.3 0.05 0.05" pos="0.3 0 0" mass="1"/></body></worldbody>
<actuator><position name="servo" joint="hinge" kp="60" ctrlrange="-1 1"/></actuator>
<sensor><jointpos name="angle" joint="hinge"/></sensor></mujoco>"""
BOX = """<mujoco model="box"><option timestep="0.002"/><worldbody><geom type="plane" size="0 0 1"/>
<body name="box" pos="0 0 0.3"><freejoint/><geom type="box" size="0.3 0.3 0.3" mass="2" friction="0.4"/></body></worldbody>
<keyframe><key name="high" qpos="0 0 1 1 0 0 0"/></keyframe></mujoco>"""


@pytest.fixture
def browser():
    window = Browser((700, 460))
    yield window
    window.close()


def until(done, seconds=60):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


# ---- without a browser ---------------------------------------------------------------------------------------------------------


def test_time_passes_as_fast_as_on_the_wall_and_stops_when_paused():
    with dl.Play(BOX, port=0) as window:
        start, begun = window.simulator.time, time.monotonic()
        until(lambda: window.simulator.time - start > 0.5)
        # a machine that is busy may be late, never early
        assert time.monotonic() - begun > 0.4
        window.running = False
        at = window.simulator.time
        time.sleep(0.2)
        assert window.simulator.time == at
        assert window.step().time == pytest.approx(at + 0.002)
        window.reset("high")
        assert window.simulator.q[2] == 1.0
        window.reset()
        assert window.simulator.time == start
    with pytest.raises(StaleError, match="closed"):
        window.running = True


def test_spring_of_the_pointer_pulls_as_a_spring_does():
    """A free box without gravity, pulled at its middle: m ẍ = m k (target − x) − 2 m √k ẋ, in closed form."""
    text = BOX.replace("<option", '<option gravity="0 0 0"').replace('pos="0 0 0.3"', 'pos="0 0 2"')
    with dl.Play(dl.Simulator(text, timestep=2e-4), port=0, paused=True) as window:
        window.simulator.reset([0, 0, 2, 1, 0, 0, 0])
        window.pull("box", [0, 0, 0], [0.4, 0, 2])
        for _ in range(1000):
            window._advance(1)
        w, t = np.sqrt(90.0), 0.2
        assert window.simulator.q[0] == pytest.approx(0.4 * (1 - (1 + w * t) * np.exp(-w * t)), rel=2e-2)
        assert np.allclose(window.simulator.q[1:3], [0, 2], atol=1e-9)
        window.release()
        assert window._spring() is None


def test_a_frame_is_pulled_at_its_place_and_what_cannot_be_pulled_is_refused():
    model = dl.scenes.on_floor("go2")
    tip = dl.Frame("tip", "FL_calf", position=(0.0, 0.0, -0.2))
    ends = []
    for body, point in ((tip, (0, 0, 0.05)), ("FL_calf", (0, 0, -0.15))):
        with dl.Play(dl.Simulator(model), port=0, paused=True) as game:
            game.pull(body, point, (1, 1, 1))
            ends.append(game.step().q)
    np.testing.assert_array_equal(*ends)
    with dl.Play(dl.Simulator(model), port=0, paused=True) as game:
        for body, point, said in (
            ("world", (0, 0, 0), "one that moves, got 'world'"),
            ("base", (0, 0), "point"),
            ("base", (0, 0, np.nan), "point"),
            ("nose", (0, 0, 0), "'nose' does not exist"),
        ):
            with pytest.raises(dl.errors.DelassusError, match=said):
                game.pull(body, point, (0, 0, 1))


def test_pull_off_centre_turns_as_its_moment_says():
    with dl.Play(BOX, port=0, paused=True) as window:
        window.pull("box", [0.1, 0.2, 0.3], [0.5, 0.2, 0.9])
        wrench = window._spring()[1]
        x = window.simulator.q[:3] + np.array([0.1, 0.2, 0.3])
        force = 2 * 90.0 * (np.array([0.5, 0.2, 0.9]) - x)
        assert np.allclose(wrench, [*force, *np.cross([0.1, 0.2, 0.3], force)])


def test_friction_and_timestep_change_what_comes_next_and_keep_the_state():
    with dl.Play(BOX, port=0, paused=True) as window:
        window.simulator.reset(v=[1.0, 0, 0, 0, 0, 0], q=[0, 0, 0.3, 1, 0, 0, 0])
        window.step()
        before = window.simulator
        window._change(friction=0.5, timestep=1e-3)
        sim = window.simulator
        assert sim is not before
        assert sim.timestep == 1e-3
        assert np.array_equal(sim.q, before.q)
        assert np.array_equal(sim.v, before.v)
        assert sim.time == before.time
        speed = sim.v[0]
        for _ in range(100):
            step = window.step()
        # the floor's friction of 1 counts, halved: a = −μ g
        mu = step.contacts.friction[0]
        assert mu == pytest.approx(0.5)
        assert sim.v[0] - speed == pytest.approx(-mu * 9.81 * 0.1, rel=2e-2)


URDF = """<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><mesh filename="package://my_robot/box.obj"/></geometry></collision></link></robot>"""
CORNERS = (
    "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
    + "f 1 2 4 3\nf 5 7 8 6\nf 1 5 6 2\nf 3 4 8 7\nf 1 3 7 5\nf 2 6 8 4\n"
)


def test_command_plays_a_urdf_with_packages_on_a_floor(tmp_path):
    (tmp_path / "packages" / "my_robot").mkdir(parents=True)
    (tmp_path / "packages" / "my_robot" / "box.obj").write_text(CORNERS)
    (tmp_path / "robot.urdf").write_text(URDF)
    command = [sys.executable, "-c", "from delassus.cli import main; main()", "play", "robot.urdf", "--floating-base", "--floor"]
    server = subprocess.Popen(
        [*command, "--package-dir", "packages", "--port", "0", "--no-open"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        line = server.stdout.readline()
        assert "http://" in line, line
        assert "ignored" not in line
        with urllib.request.urlopen(next(word for word in line.split() if word.startswith("http://")).rstrip(","), timeout=30) as page:
            assert b"<html" in page.read()
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(30) in (0, 130)  # 130 where it had not begun to wait


# ---- with one ------------------------------------------------------------------------------------------------------------------

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def pixel(browser, window, point):
    """Where the camera of the page has a point of the world."""
    left, top, width, height = browser.evaluate(
        "(() => { const r = [...document.querySelectorAll('canvas')].sort((a, b) => b.width - a.width)[0].getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()"
    )
    camera = window._server.initial_camera
    eye, target = np.array(camera.position), np.array(camera.look_at)
    back = (eye - target) / np.linalg.norm(eye - target)
    right = np.cross([0, 0, 1], back)
    right /= np.linalg.norm(right)
    x = np.array([right, np.cross(back, right), back]) @ (np.array(point) - eye)
    scale = height / 2 / np.tan(camera.fov / 2) / -x[2]
    return np.array([left + width / 2 + scale * x[0], top + height / 2 - scale * x[1]]), right


@in_browser
def test_dragging_a_body_moves_it(browser):
    with dl.Play(BOX, port=0, paused=True) as window:
        browser.open(window.url)
        browser.dismiss()
        browser.still_picture()
        window.running = True
        at, right = pixel(browser, window, window.simulator.q[:3])
        before = window.simulator.q[:3].copy()
        browser.drag(at, at + np.array([90, 0]), hold=0.3)
        until(lambda: np.linalg.norm(window.simulator.q[:3] - before) > 0.05, 20)
        moved = window.simulator.q[:3] - before
        # along the picture, the way that the mouse went
        assert moved @ right > 0.8 * np.linalg.norm(moved)
        until(lambda: window._pull is None, 20)
    assert browser.errors == []


@in_browser
def test_slider_of_a_control_moves_the_joint_and_buttons_stop_time(browser):
    with dl.Play(ARM, port=0) as window:
        browser.open(window.url)
        browser.dismiss()
        browser.until("document.body.innerText.includes('servo')")
        browser.evaluate("document.querySelector('[role=slider]').focus()")
        browser.key("End")
        until(lambda: window._control[0] == 1.0, 20)
        until(lambda: window.simulator.q[0] > 0.9, 20)
        browser.click("Pause")
        until(lambda: not window.running, 20)
        at = window.simulator.time
        browser.click("Single step")
        until(lambda: window.simulator.time > at, 20)
        assert window.simulator.time == pytest.approx(at + 0.002)
        assert browser.evaluate("document.body.innerText.includes('residual')")
        # sensors, residuals and forces are plotted
        browser.until("[...document.querySelectorAll('button')].some(b => b.innerText.trim() === 'Run')")
        browser.click("Run")
        browser.click("Plots")
        browser.until("document.querySelectorAll('.uplot canvas').length >= 4")
        assert window._history["sensor angle"][-1] == pytest.approx(window.simulator.q[0], abs=0.05)
    assert browser.errors == []
