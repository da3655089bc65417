"""A headless Chromium, spoken to over its DevTools protocol: pages, keys, clicks, screenshots."""

import base64
import io
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-dev-shm-usage", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--hide-scrollbars",
]  # fmt: skip


class Browser:
    """One window of 1280 × 800 in a browser of its own."""

    def __init__(self, size=(1280, 800)):
        from websockets.sync.client import connect

        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        window = [f"--window-size={size[0]},{size[1]}", f"--user-data-dir={self._home.name}", "--remote-debugging-port=0", "about:blank"]
        self._process = subprocess.Popen([CHROMIUM, *FLAGS, *window], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        told = Path(self._home.name) / "DevToolsActivePort"
        self._until(lambda: told.exists() and len(told.read_text().splitlines()) >= 2, 60, "Chromium does not start")
        port = told.read_text().splitlines()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
            page = next(t for t in json.load(answer) if t["type"] == "page")
        self._socket = connect(page["webSocketDebuggerUrl"], max_size=None, proxy=None)
        self._count = 0
        self.errors = []
        self.requests = []
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)

    @staticmethod
    def _until(done, seconds, else_say):
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(else_say)
            time.sleep(0.1)

    def call(self, method, **params):
        """Ask for something and wait for its answer; what happens meanwhile is kept."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": params}))
        while True:
            said = json.loads(self._socket.recv(timeout=120))
            if said.get("id") == self._count:
                assert "error" not in said, said
                return said["result"]
            if said.get("method") == "Runtime.exceptionThrown":
                self.errors.append(said["params"]["exceptionDetails"].get("exception", {}).get("description", "?"))
            if said.get("method") == "Network.requestWillBeSent":
                self.requests.append(said["params"]["request"]["url"][:200])

    def evaluate(self, script):
        """Value of a script in the page."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)["result"].get("value")

    def until(self, script, seconds=90):
        """Wait until a script is true."""
        self._until(lambda: self.evaluate(script), seconds, f"never true in the page: {script}")

    def open(self, url):
        """Open a page, and wait for its canvas."""
        self.call("Page.navigate", url=url)
        self.until("[...document.querySelectorAll('canvas')].some(canvas => canvas.width > 300)")

    def picture(self, path=None):
        """Screenshot as an array (height, width, 3)."""
        from PIL import Image

        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            Path(path).write_bytes(data)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.int16)

    def frames(self, count):
        """Wait until the page has drawn that many times: on a busy machine without a graphics card a frame may take seconds."""
        self.evaluate(f"new Promise(done => {{ const next = k => k ? requestAnimationFrame(() => next(k - 1)) : done(); next({count}); }})")

    def still_picture(self, path=None, seconds=90):
        """Screenshot when two in a row are the same, with frames drawn before and between them."""
        self.frames(3)
        last, end = self.picture(), time.monotonic() + seconds
        while True:
            time.sleep(0.5)
            self.frames(3)
            now = self.picture(path)
            if now.shape == last.shape and np.abs(now - last).mean() < 0.02:
                return now
            if time.monotonic() > end:
                raise TimeoutError("the page never comes to rest")
            last = now

    def key(self, key, times=1):
        """Press a key."""
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def dismiss(self):
        """Close viser's notice that a headless browser draws without a graphics card."""
        self.until("!!document.querySelector('.mantine-Notification-closeButton')", 20)
        self.evaluate("document.querySelectorAll('.mantine-Notification-closeButton').forEach(b => b.click())")

    def click(self, text):
        """Click what shows this text."""
        box = self.evaluate(
            f"(() => {{ const all = [...document.querySelectorAll('button, label, [role=tab], input')];"
            f"const e = all.find(e => (e.innerText || e.value || '').trim() === {json.dumps(text)}); if (!e) return null;"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        assert box, f"nothing shows {text!r}"
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def drag(self, start, end, steps=12, hold=0.0):
        """Press the mouse at a pixel, move it to another one, stay there for some seconds, and let go."""
        mouse = {"button": "left", "buttons": 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=start[0], y=start[1])
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], **mouse)
        for k in range(1, steps + 1):
            at = [a + (b - a) * k / steps for a, b in zip(start, end, strict=True)]
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1], **mouse)
            time.sleep(0.05)
        time.sleep(hold)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], **mouse | {"buttons": 0})

    def seek(self, seconds):
        """Have a recording show a moment."""
        self.evaluate("(() => { const i = document.querySelector('input[inputmode=decimal]'); i.focus(); i.select(); })()")
        self.call("Input.insertText", text=f"{seconds:.1f}")

    def close(self):
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._home.cleanup()


def offline_url(path):
    """Address of a file on this disk."""
    return Path(os.path.abspath(path)).as_uri()
