"""Access control for the page: pages of other sites in the same browser are refused.

A browser lets any site send requests to a server on this machine. Two headers reveal them: the name used (Host), since a site can make its own name point here (DNS
rebinding), and the page that sent it (Origin), since a socket may be opened from any page. Host must be an address, or a name of this machine; Origin, if there is one,
must be the page that this server served. All else is answered with 403, pages and sockets alike.
"""

from __future__ import annotations

import http
import importlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

__all__ = ["guarded", "refusal"]

_ONE_AT_A_TIME = threading.Lock()  # the replaced function is global to the process


def _is_own(name: str, listening: str) -> bool:
    """Whether this name can only mean a server that listens there, not one that an attacker could choose."""
    if name == "localhost" or name.endswith(".localhost") or name == listening.lower():
        return True
    # a server for this machine only is reached by loopback addresses; nobody can make an address point elsewhere
    local_only = listening == "localhost" or _is_loopback(listening) is True
    if (loopback := _is_loopback(name)) is not None:
        return loopback or not local_only
    machine = socket.gethostname().lower()
    return not local_only and name in (machine, f"{machine}.local", socket.getfqdn().lower())


def _is_loopback(name: str) -> bool | None:
    """Whether an address is a loopback address; None if it is not an address."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return None


def refusal(listening: str, hosts: list[str], origins: list[str]) -> str | None:
    """Reason for refusing a request; None if it is accepted.

    Args:
        listening: host that the server was opened with.
        hosts, origins: values of these headers, as received.
    """
    if len(hosts) != 1 or len(origins) > 1:
        return "expected one Host and at most one Origin"
    try:
        asked = urlsplit(f"//{hosts[0]}")
        name, _ = (asked.hostname or "").lower(), asked.port
    except ValueError:
        return "no such Host"
    if asked.netloc != hosts[0] or asked.username is not None or not _is_own(name, listening):
        return f"this is not {name!r}; open the page by localhost or by an address"
    if origins and origins[0].lower() not in (f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}"):
        return f"pages of {origins[0]!r} may not ask here"
    return None


def _guard(listening: str, process: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
    def checked(connection: Any, request: Any) -> Any:
        why = refusal(listening, request.headers.get_all("Host"), request.headers.get_all("Origin"))
        if why is not None:
            return connection.respond(http.HTTPStatus.FORBIDDEN, f"refused: {why}\n")
        return None if process is None else process(connection, request)

    return checked


@contextmanager
def guarded() -> Iterator[None]:
    """Make a viser server that is started in this context check every request with :func:`refusal` first.

    viser has no setting for it, so the function that opens its socket, ``websockets.asyncio.server.serve``, is replaced until the socket is open. A server that was opened in
    another way is an error, not a server without a guard.
    """
    module: Any = importlib.import_module("websockets.asyncio.server")
    opened = []

    def serve(handler: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        opened.append(host)
        options["process_request"] = _guard(str(host), options.get("process_request"))
        return plain(handler, host, port, **options)

    with _ONE_AT_A_TIME:
        plain, module.serve = module.serve, serve
        try:
            yield
        finally:
            module.serve = plain
    assert opened, "this version of viser opens its socket in a way that is not known here"
