"""A small web server for a few browsers or scrapers, which nothing in the command waits for.

Each connection has a thread, which waits in the operating system and ends after a time without
progress. Requests with another Host than the server's own are refused, so that no page of another
site reaches it by a name that it lets point here (DNS rebinding).
"""

import ipaddress
import re
import socket
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import BoundedSemaphore, Thread
from typing import Any, Protocol

from loadstone.cloud.permission import is_loopback
from loadstone.errors import EnvironmentUnusable, InvalidInput

PATIENCE_S = 10.0  # for a request, and for a reader that takes nothing
MOST_CONNECTIONS = 48
HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
# No page of another site may embed, read or be told of what is served here.
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where a server listens."""

    host: str
    port: int  # 0: a free one

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it; EnvironmentUnusable if the host has no address."""
        try:
            return is_loopback(self.host, self.port)
        except EnvironmentUnusable:
            raise EnvironmentUnusable(
                f"cannot listen on {self}: the host has no address; write an address of this "
                "machine, or only the port for 127.0.0.1"
            ) from None


LOOPBACK = ListenAddress("127.0.0.1", 0)
_ADDRESS = re.compile(
    r"(?:(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):)?(?P<port>\d{1,5})"
)

_HOST = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+))(?::(?P<port>\d{1,5}))?"
)


def address(text: str) -> ListenAddress:
    """Read HOST:PORT, or PORT of 127.0.0.1; InvalidInput if it is neither."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise InvalidInput(f"{text!r} is not an address; write HOST:PORT, or a PORT of 127.0.0.1")
    return ListenAddress(match["v6"] or match["host"] or LOOPBACK.host, int(match["port"]))


@dataclass(frozen=True, slots=True)
class Request:
    """A request that came to the right host."""

    method: str
    path: str
    origin: str  # header Origin; empty without one
    fetch_site: str  # header Sec-Fetch-Site; empty without one


@dataclass(frozen=True, slots=True)
class Response:
    """A response; a body of several pieces is sent as they come."""

    status: int = 200
    kind: str = TEXT
    body: bytes | Iterable[bytes] = b""
    headers: Mapping[str, str] = field(default_factory=dict)


NOT_FOUND = Response(404, TEXT, b"not found\n")
FORBIDDEN = Response(403, TEXT, b"forbidden\n")


class Routes(Protocol):
    """Answers requests, in any thread."""

    def respond(self, request: Request, origin: str) -> Response:
        """Answer a request; `origin` is the server's own, as a browser writes it."""


class SiteServer(ThreadingHTTPServer):
    """Serves routes in threads from its creation to `close`."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        where: ListenAddress,
        routes: Routes,
        option: str,
        tls: ssl.SSLContext | None = None,
        *,
        checks_host: bool = True,
    ) -> None:
        self.routes = routes
        self.is_secure = tls is not None
        self._checks_host = checks_host
        self._free = BoundedSemaphore(MOST_CONNECTIONS)
        self._asked_for = where
        self._is_loopback = where.is_loopback
        self.address_family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
        try:
            super().__init__((where.host, where.port), _Handler)
        except OSError as problem:
            why = problem.strerror or str(problem)
            raise EnvironmentUnusable(
                f"{option} {where}: cannot listen there ({why}); choose another address or port"
            ) from None
        self.address = ListenAddress(where.host, int(self.server_address[1]))
        if tls is not None:
            # The handshake is made by the thread of the connection.
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = Thread(target=self.serve_forever, name="site", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The server's address as a URL; names this machine if it listens on all addresses."""
        host = self.address.host
        with suppress(ValueError):
            if ipaddress.ip_address(host).is_unspecified:
                host = socket.gethostname()
        return f"{'https' if self.is_secure else 'http'}://{ListenAddress(host, self.address.port)}"

    def is_own(self, host: str) -> bool:
        """Return whether a Host header names this server; all do, unless that is checked."""
        if not self._checks_host:
            return True
        match = _HOST.fullmatch(host)
        usual = 443 if self.is_secure else 80  # browsers leave it out
        if match is None or int(match["port"] or usual) != self.address.port:
            return False
        name = (match["v6"] or match["host"]).lower()
        if self._is_loopback:
            return name in ("127.0.0.1", "localhost", "::1", self.address.host.lower())
        # An address is no name that another site could let point here.
        with suppress(ValueError):
            ipaddress.ip_address(name)
            return True
        return name in (self.address.host.lower(), socket.gethostname().lower())

    def close(self) -> None:
        """Stop listening; connections end by themselves."""
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without looking up the host's name, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self._asked_for.host, int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless there are too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that goes away is no error of the command."""


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE_S
    server_version = "loadstone"
    sys_version = ""
    server: SiteServer

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        site, headers = self.server, self.headers
        if site.is_own(headers.get("Host", "")):
            request = Request(
                self.command,
                self.path.partition("?")[0],
                headers.get("Origin", ""),
                headers.get("Sec-Fetch-Site", ""),
            )
            scheme = "https" if site.is_secure else "http"
            response = site.routes.respond(request, f"{scheme}://{headers['Host']}")
        else:
            response = FORBIDDEN
        with suppress(OSError):  # the reader is gone, or takes nothing
            self._send(response)

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.kind)
        for name, value in {**HEADERS, **response.headers}.items():
            self.send_header(name, value)
        if isinstance(response.body, bytes):
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)
            return
        self.end_headers()
        for piece in response.body:
            self.wfile.write(piece)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (of the base class)
        """Log nothing: the path has the token."""
