"""Connections to services that return their statistics as text."""

import http.client
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.address import TIMEOUT_S, MonitorAddress
from loadstone.monitor.sources.service_source import ServiceSource

MOST_BYTES = 16 * 2**20  # of one answer


def connect(address: MonitorAddress) -> socket.socket:
    """Connect to the Unix socket or to the port."""
    try:
        if address.host:
            return socket.create_connection((address.host, address.port), timeout=TIMEOUT_S)
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(TIMEOUT_S)
        link.connect(address.path)
    except OSError as problem:
        where = f"{address.host}:{address.port}" if address.host else address.path
        raise Unreadable(f"{where}: {problem.strerror or problem}") from None
    return link


def exchange(address: MonitorAddress, request: bytes) -> bytes:
    """Send a request on a new connection; return the response up to its close."""
    with connect(address) as link:
        if request:
            link.sendall(request)
        answer = bytearray()
        while chunk := link.recv(65536):
            answer += chunk
            if len(answer) > MOST_BYTES:
                raise Unreadable(f"its answer is longer than {MOST_BYTES} bytes")
        return bytes(answer)


@dataclass(slots=True)
class SocketSource(ServiceSource):
    """A service that is read on a kept connection."""

    _link: socket.socket | None = field(default=None, init=False)

    def close(self) -> None:
        """Close the connection."""
        if self._link is not None:
            with suppress(OSError):
                self._link.close()
        self._link = None


class _UnixHttp(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, address: MonitorAddress) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._address = address

    def connect(self) -> None:
        """Connect to the Unix socket."""
        self.sock = connect(self._address)


@dataclass(slots=True)
class StatusPage:
    """A page of a web server, read on a kept connection."""

    address: MonitorAddress
    path: str
    _link: http.client.HTTPConnection | None = field(default=None, init=False)

    def text(self) -> str:
        """Return the page; Unreadable if the answer is not 200."""
        try:
            return self._text()
        except (http.client.HTTPException, ConnectionError):
            self.close()  # the server has closed the kept connection
            return self._text()

    def _text(self) -> str:
        if self._link is None:
            address = self.address
            self._link = (
                http.client.HTTPConnection(address.host, address.port, timeout=TIMEOUT_S)
                if address.host
                else _UnixHttp(address)
            )
        self._link.request("GET", self.path)
        answer = self._link.getresponse()
        text = answer.read(MOST_BYTES).decode("utf-8", "replace")
        if not answer.isclosed():
            self.close()
            raise Unreadable(f"its answer is longer than {MOST_BYTES} bytes")
        if answer.status != 200:
            raise Unreadable(f"GET {self.path} answered {answer.status}")
        return text

    def close(self) -> None:
        """Close the connection."""
        if self._link is not None:
            with suppress(OSError):
                self._link.close()
        self._link = None


def number(values: Mapping[str, str], name: str) -> float | None:
    """Return a value as a number, or None if it is absent or is none."""
    try:
        return float(values[name])
    except (KeyError, ValueError):
        return None
