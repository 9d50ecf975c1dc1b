"""A server on loopback that treats each connection as a test says."""

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from loadstone.plan.load import Load
from loadstone.plan.model import Limits, Origin, Plan
from loadstone.plan.script import Step, text

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GET = Step("get", "GET", text("/"))
POST = Step("post", "POST", text("/"), body=text("{}"))


@dataclass
class Connection:
    """One accepted connection, as a server's behaviour sees it."""

    socket: socket.socket
    number: int  # 0 for the first that the server accepted
    pending: bytes = b""

    def request(self) -> bytes | None:
        """Read one request, head and body; None when the client has closed."""
        while b"\r\n\r\n" not in self.pending:
            if not self._more():
                return None
        head = self.pending.partition(b"\r\n\r\n")[0]
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        end = len(head) + 4 + length
        while len(self.pending) < end:
            if not self._more():
                return None
        request, self.pending = self.pending[:end], self.pending[end:]
        return request

    def _more(self) -> bool:
        received = self.socket.recv(1 << 20)
        self.pending += received
        return bool(received)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()


Behaviour = Callable[[Connection], None]


@dataclass
class Server:
    """A server on loopback that treats each connection as its behaviour says."""

    behaviour: Behaviour
    listener: socket.socket = field(
        default_factory=lambda: socket.create_server(("127.0.0.1", 0), backlog=512)
    )
    accepted: list[Connection] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    @property
    def origin(self) -> Origin:
        return Origin("http", "127.0.0.1", self.port)

    def plan(self, load: Load, *steps: Step, limits: Limits | None = None) -> Plan:
        return Plan(self.origin, steps or (GET,), load, limits=limits or Limits(drain_s=5.0))

    def start(self) -> None:
        self._thread(self._accept)

    def _thread(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        self.threads.append(thread)

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self.listener.accept()
            except OSError:
                return
            connection = Connection(accepted, len(self.accepted))
            self.accepted.append(connection)
            self._thread(lambda connection=connection: self._serve(connection))

    def _serve(self, connection: Connection) -> None:
        # The client may close at any moment: that is no failure of the server.
        with contextlib.suppress(OSError):
            self.behaviour(connection)
        connection.socket.close()

    def stop(self) -> None:
        self.stopping.set()
        # Closing alone would leave the accepting thread where it is.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.threads[0].join(10)
        for connection in self.accepted:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)


Serve = Callable[[Behaviour], Server]


def answering(answer: bytes) -> Behaviour:
    """Give the behaviour that answers each request with the same bytes and keeps the connection."""

    def behave(connection: Connection) -> None:
        while connection.request() is not None:
            connection.send(answer)

    return behave
