"""The page as a person sees it, in a headless Chromium: it loads, it is not empty, the slider moves bodies, a recording plays by itself."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from browser import CHROMIUM, Browser, offline_url

import delassus as dl
from oracles.motions import dropped

pytest.importorskip("viser", reason="the extra viewer is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
COMMAND = [sys.executable, "-c", "from delassus.cli import main; main()", "view"]


@pytest.fixture(scope="module")
def motion():
    return dropped(dl.scenes.on_floor("go2"), dl.load("go2").keyframes["home"], height=0.3, seconds=1.0)


@pytest.fixture
def browser(request):
    window = Browser(getattr(request, "param", (900, 600)))
    yield window
    window.close()


small = pytest.mark.parametrize("browser", [(420, 300)], indirect=True, ids=["small window"])  # it draws without a graphics card


def canvas(picture):
    """Part of the picture with no panel, notice or bar on it."""
    return picture[60:-60, : 560 if picture.shape[1] > 600 else None]


def is_drawn(picture):
    """Whether a robot stands there. A floor is nearly grey and has few shades; a robot is blue, as robots without colours of their own are."""
    part = canvas(picture)
    shades = len(np.unique(part.reshape(-1, 3) // 8, axis=0))
    return shades > 50 and (part[..., 2] > part[..., 0] + 50).sum() > 100


def moved(one, two):
    """How many pixels of the canvas differ clearly."""
    return int((np.abs(canvas(one) - canvas(two)).max(axis=-1) > 30).sum())


def test_page_shows_the_robot_and_the_slider_moves_it(browser, motion):
    with dl.View(motion, port=0) as window:
        browser.open(window.url)
        browser.dismiss()
        first = browser.still_picture()
        assert is_drawn(first)
        assert browser.evaluate("document.body.innerText.includes('go2_on_floor')")
        browser.evaluate("document.querySelector('[role=slider]').focus()")
        browser.key("End")
        browser.until(f"document.body.innerText.includes('frame {len(motion)} of {len(motion)}')")
        assert window.frame == len(motion) - 1
        last = browser.still_picture()
        assert is_drawn(last)
        assert moved(first, last) > 2000
        # back at the start it looks as it did, whenever one comes there: the first picture may have been taken before everything was loaded
        starts = []
        for _ in range(2):
            browser.key("Home")
            browser.until("document.body.innerText.includes('frame 1 of')")
            starts.append(browser.still_picture())
            assert moved(starts[-1], last) > 2000
            if len(starts) == 2:
                break
            browser.key("End")
            browser.until(f"document.body.innerText.includes('frame {len(motion)} of {len(motion)}')")
            browser.still_picture()
        assert min(moved(first, starts[0]), moved(*starts)) < 200
        # and the button plays
        browser.click("Play")
        browser.until("[...document.querySelectorAll('button')].some(b => b.innerText.trim() === 'Pause')")
        browser.until("!document.body.innerText.includes('frame 1 of')")
        assert window.frame != 0
        # plots have lines in them
        browser.click("Pause")
        browser.click("Plots")
        browser.until("document.querySelectorAll('.uplot canvas').length >= 3")
        browser.until(
            "[...document.querySelectorAll('.uplot canvas')].every(c => c.width > 0 && "
            "c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(x => x > 0))"
        )
    assert browser.errors == []


def purple(picture):
    """Pixels that have blue and hardly any green."""
    return (picture[..., 2] > 40) & (picture[..., 1] < 0.35 * picture[..., 2])


def test_colours_of_the_elimination_reach_the_page(browser):
    model, q, constraints = dl.scenes.load("box-stack")
    with dl.View(model, q=q, constraints=constraints, port=0) as window:
        browser.open(window.url)
        browser.dismiss()
        before = browser.still_picture()
        window._controls["colors"].value = "elimination order"
        browser.until("document.body.innerText.includes('eliminated first')")
        after = browser.still_picture()
        assert moved(before, after) > 1000
        # viridis begins with a purple that has hardly any green; colours of bodies have at least half as much of each part as of the largest
        assert purple(canvas(after)).sum() > 300
        assert not purple(canvas(before)).any()
    assert browser.errors == []


@small
def test_recording_plays_from_the_disk_alone(browser, motion, tmp_path):
    path = dl.record(motion, tmp_path / "fall.html")
    browser.open(offline_url(path))
    browser.dismiss()
    end = time.monotonic() + 90
    while not is_drawn(first := browser.picture()):
        assert time.monotonic() < end
    while moved(first, browser.picture()) < 1000:
        assert time.monotonic() < end
    assert [url for url in browser.requests if url.startswith(("http", "ws"))] == []
    assert browser.errors == []


def test_recording_shows_its_start_middle_and_end_where_they_are(browser, motion, tmp_path):
    """The first frame has no contact: no arrow of the fall is in its picture, however often one comes back to it."""
    assert len(motion.contacts(0)) == 0
    browser.open(offline_url(dl.record(motion, tmp_path / "fall.html")))
    browser.dismiss()

    def at(moment):
        shows = f"Math.abs(parseFloat(document.querySelector('[role=slider]').getAttribute('aria-valuenow')) - {moment}) < 0.01"
        for _ in range(18):
            browser.seek(moment)  # what is typed while the page is still loading is lost
            with contextlib.suppress(TimeoutError):
                browser.until(shows, 5)
                return browser.still_picture()
        raise AssertionError(f"the recording never shows {moment} s")

    def coarse(picture):
        """Mean colours of squares of 8 pixels: a busy page draws edges and shadows at a lower resolution, or returns to a higher one."""
        part = canvas(picture)[:480, :560].astype(float)
        return part.reshape(60, 8, 70, 8, 3).mean(axis=(1, 3))

    def changed(one, two):
        """How many of these squares differ clearly."""
        return int((np.abs(coarse(one) - coarse(two)).max(axis=-1) > 25).sum())

    def arrows(picture):
        """Pixels as green as an arrow that sticks, or as orange as one that slides."""
        r, g, b = (canvas(picture)[..., k] for k in range(3))
        return int(((g > r + 50) & (g > b + 30)).sum() + ((r > g + 90) & (r > b + 110)).sum())

    # parts of the scene are still being loaded while the first pictures are taken
    for _ in range(6):
        end, start, middle = at(1.0), at(0.0), at(0.5)
        if changed(at(1.0), end) == changed(at(0.0), start) == 0:
            break
    assert arrows(end) > 40
    assert arrows(start) == 0
    assert min(changed(start, end), changed(start, middle)) > 200
    assert changed(middle, end) > 40
    assert changed(at(0.0), start) == 0
    assert changed(at(1.0), end) == 0
    assert browser.errors == []


def test_command_serves_a_page_until_interrupted(browser, motion, tmp_path):
    motion.save(tmp_path / "fall.npz")
    server = subprocess.Popen(
        [*COMMAND, "fall.npz", "--port", "0", "--no-open"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what a shell started in the background ignores, it does not
    )
    try:
        line = server.stdout.readline()
        assert "101 frames" in line
        browser.open(next(word for word in line.split() if word.startswith("http://")).rstrip(","))
        browser.dismiss()
        end = time.monotonic() + 90
        while not is_drawn(browser.picture()):
            assert time.monotonic() < end
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0
    assert server.stdout.read() == ""
