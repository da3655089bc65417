"""Pages of other sites, and names that others let point here, get nothing from the viewer; and names of a model are never a page."""

import asyncio
import base64
import re
import socket

import pytest

import delassus as dl
from delassus.viewers.guard import refusal

pytest.importorskip("viser")

EVIL = '<mujoco model="&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;"><option timestep=".001"/><worldbody><body name="&lt;img src=x onerror=alert(1)&gt;"><joint name="{{alert(1)}}"/><geom size=".1"/></body></worldbody></mujoco>'


@pytest.fixture(scope="module")
def view():
    with dl.View(dl.load("iiwa"), port=0) as opened:
        yield opened


def ask(port, *headers, upgrade=False):
    """Return the first line and the body of an answer to a request by hand."""
    lines = ["GET / HTTP/1.1", *headers]
    if upgrade:
        key = base64.b64encode(b"0123456789abcdef").decode()
        lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        s.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer and (more := s.recv(4096)):
            answer += more
    return answer.decode(errors="replace").partition("\r\n")[0]


def port_of(view):
    return int(view.url.rpartition(":")[2])


@pytest.mark.parametrize("upgrade", [False, True])
@pytest.mark.parametrize(
    "headers",
    [
        ["Host: evil.example"], ["Host: evil.example:{port}"], ["Host: 192.168.0.7:{port}"], ["Host: localhost.evil.example:{port}"], ["Host: localhost@evil.example"],
        ["Host: localhost:{port}", "Origin: http://evil.example"], ["Host: localhost:{port}", "Origin: null"], ["Host: localhost:{port}", "Origin: http://localhost:1"],
        ["Host: localhost:{port}", "Origin: http://localhost:{port}.evil.example"], ["Host: localhost:{port}", "Host: evil.example"], ["Host: "], ["Host: localhost:port"],
        ["Host: localhost:{port}", "Origin: http://localhost:{port}", "Origin: http://evil.example"],
    ],
)  # fmt: skip
def test_foreign_hosts_and_origins_are_refused(view, headers, upgrade):
    said = ask(port_of(view), *(h.replace("{port}", str(port_of(view))) for h in headers), upgrade=upgrade)
    assert said == "HTTP/1.1 403 Forbidden"


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "LOCALHOST:{port}", "localhost:9000"])
def test_the_page_and_its_own_socket_are_served(view, host):
    """A port of another number is one that was forwarded."""
    host = host.replace("{port}", str(port_of(view)))
    assert ask(port_of(view), f"Host: {host}") == "HTTP/1.1 200 OK"
    assert ask(port_of(view), f"Host: {host}", f"Origin: http://{host}", upgrade=True) == "HTTP/1.1 101 Switching Protocols"


def test_a_client_of_websockets_is_served_by_its_origin(view):
    websockets = pytest.importorskip("websockets.asyncio.client")
    from websockets.exceptions import InvalidStatus

    async def talk(origin):
        async with websockets.connect(view.url.replace("http", "ws"), origin=origin) as connection:
            return connection.response.status_code

    assert asyncio.run(talk(view.url)) == 101
    with pytest.raises(InvalidStatus, match="403"):
        asyncio.run(talk("http://evil.example"))


def test_servers_for_others_answer_to_addresses_and_to_the_name_of_the_machine():
    for host in ("10.0.0.3:8080", "localhost:8080", f"{socket.gethostname()}:8080", "[fe80::1]:8080"):
        assert refusal("0.0.0.0", [host], []) is None
        assert refusal("0.0.0.0", [host], [f"http://{host}"]) is None
        assert refusal("0.0.0.0", [host], ["http://evil.example"]) is not None
    assert refusal("0.0.0.0", ["evil.example:8080"], []) is not None
    assert refusal("robot.lab", ["robot.lab:8080"], []) is None
    assert refusal("127.0.0.1", ["10.0.0.3:8080"], []) is not None


def test_viser_servers_of_others_stay_as_they_are():
    import viser
    from websockets.asyncio import server

    plain = server.serve
    with dl.View(dl.load("iiwa"), port=0):
        assert server.serve is plain
    other = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    try:
        assert ask(other.get_port(), "Host: anything.example") == "HTTP/1.1 200 OK"
    finally:
        other.stop()


def test_names_of_a_model_are_text_in_a_recording(tmp_path):
    model = dl.load(EVIL)
    assert model.name == "</title><script>alert(1)</script>"
    page = dl.record(model, tmp_path / "evil.html").read_text(encoding="utf-8")
    assert "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;</title>" in page
    assert "alert(1)" not in page.replace("&lt;script&gt;alert(1)", "")
    assert re.search(r'__VISER_EMBED_DATA__="[A-Za-z0-9+/=]*"', page)


def test_names_of_a_model_reach_the_panel_as_labels_and_never_as_markup():
    motion = dl.Simulator(EVIL).run(0.01, progress=False)
    for source, pose in ((motion, False), (motion.model, True)):
        with dl.View(source, port=0, pose=pose) as opened:
            sent = list(opened._server._websock_server._broadcast_buffer.message_from_id.values())
        kinds = {type(m).__name__ for m in sent if "alert" in repr(m)}
        assert "SetGuiPanelLabelMessage" in kinds  # it is sent, as text
        assert not kinds & {"GuiMarkdownMessage", "GuiHtmlMessage"}
        assert {"GuiHtmlMessage"} <= {type(m).__name__ for m in sent}
