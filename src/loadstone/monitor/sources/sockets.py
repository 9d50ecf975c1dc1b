"""Connections to services that return their statistics as text."""

import http.client
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.address import TIMEOUT_S, MonitorAddress
from loadstone.monitor.sources.service_source import KeptSource

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

MOST_BYTES = 16 * 2**20  # of one answer


class Link(socket.socket):
    """A connection that raises TimeoutError if a whole answer takes longer than TIMEOUT_S.

    A socket's own time-out is for each read: a server that sends a byte a second would hold the
    monitor as long as it likes.
    """

    _until_s = 0.0

    def begin(self) -> None:
        """Allow TIMEOUT_S for the next request and its whole answer."""
        self._until_s = time.monotonic() + TIMEOUT_S

    def sendall(self, data: "ReadableBuffer", flags: int = 0, /) -> None:
        """Send all within the time that is left."""
        self._limit()
        super().sendall(data, flags)

    def recv(self, count: int, flags: int = 0, /) -> bytes:
        """Receive some bytes within the time that is left."""
        self._limit()
        return super().recv(count, flags)

    def recv_into(self, buffer: "WriteableBuffer", nbytes: int = 0, flags: int = 0) -> int:
        """Receive some bytes within the time that is left, as http.client does."""
        self._limit()
        return super().recv_into(buffer, nbytes, flags)

    def _limit(self) -> None:
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:  # which settimeout() takes for: do not wait
            raise TimeoutError("timed out")
        self.settimeout(left_s)


def connect(address: MonitorAddress) -> Link:
    """Connect to the Unix socket or to the port, and allow TIMEOUT_S for the first answer."""
    try:
        if address.host:
            end = (address.host, address.port)
            opened = socket.create_connection(end, timeout=TIMEOUT_S)
            link = Link(fileno=opened.detach())
        else:
            link = Link(socket.AF_UNIX, socket.SOCK_STREAM)
            link.settimeout(TIMEOUT_S)
            link.connect(address.path)
    except OSError as problem:
        where = f"{address.host}:{address.port}" if address.host else address.path
        raise Unreadable(f"{where}: {problem.strerror or problem}") from None
    link.begin()
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


class _Http(http.client.HTTPConnection):
    """HTTP over a link."""

    sock: Link | None

    def __init__(self, address: MonitorAddress) -> None:
        super().__init__(address.host or "localhost", address.port or None)
        self._address = address

    def connect(self) -> None:
        """Connect to the Unix socket or to the port."""
        self.sock = connect(self._address)

    def begin(self) -> None:
        """Allow TIMEOUT_S for the next answer; a connection that is opened for it begins anew."""
        if self.sock is not None:
            self.sock.begin()


@dataclass(slots=True)
class StatusPage(KeptSource[_Http]):
    """A service that is read by a page of its web server."""

    default_path: ClassVar[str]  # of an address without a path

    @property
    def path(self) -> str:
        """The page, with its query."""
        return self.address.path or self.default_path

    def text(self) -> str:
        """Return the page; Unreadable if the answer is not 200."""
        try:
            return self._text()
        except (http.client.HTTPException, ConnectionError):
            self.close()  # the server has closed the kept connection
            return self._text()

    def _text(self) -> str:
        if self._link is None:
            self._link = _Http(self.address)
        self._link.begin()
        self._link.request("GET", self.path)
        answer = self._link.getresponse()
        text = answer.read(MOST_BYTES).decode("utf-8", "replace")
        if not answer.isclosed():
            self.close()
            raise Unreadable(f"its answer is longer than {MOST_BYTES} bytes")
        if answer.status != 200:
            raise Unreadable(f"GET {self.path} answered {answer.status}")
        return text


def number(values: Mapping[str, str], name: str) -> float | None:
    """Return a value as a number, or None if it is absent or is none."""
    try:
        return float(values[name])
    except (KeyError, ValueError):
        return None
