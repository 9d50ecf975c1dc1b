"""An HTTP/1.1 server that stops for a while again and again, and tells when it answered what.

One thread, one loop: while it sleeps nothing is read and nothing answered. When its
standard input is closed it prints for each request what stood in its path, when it was read and
when its answer was sent, in nanoseconds of CLOCK_MONOTONIC.

    python tests/stalling_service.py EVERY_S STALL_S
"""

import contextlib
import json
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Stalling:
    """The server's state."""

    every_s: float
    stall_s: float
    listener: socket.socket = field(
        default_factory=lambda: socket.create_server(("127.0.0.1", 0), backlog=1024)
    )
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    # What stood in the path, read_ns, answered_ns.
    log: list[tuple[int, int, int]] = field(default_factory=list)

    def serve(self) -> None:
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.selector.register(sys.stdin, selectors.EVENT_READ)
        stall_at = time.monotonic() + self.every_s / 2
        while True:
            if time.monotonic() >= stall_at:
                time.sleep(self.stall_s)
                stall_at += self.every_s
            for key, _ in self.selector.select(max(0.0, stall_at - time.monotonic())):
                if key.fileobj is sys.stdin:
                    return
                key.data(key.fileobj)

    def accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(connection, selectors.EVENT_READ, self.answer)

    def answer(self, connection: socket.socket) -> None:
        # A GET is short and comes in one piece; there is at most one at a time on a connection.
        request = connection.recv(65536)
        read_ns = time.monotonic_ns()
        if not request:
            self.selector.unregister(connection)
            connection.close()
            return
        connection.sendall(ANSWER)
        self.log.append((int(request.split(b" ", 2)[1][1:]), read_ns, time.monotonic_ns()))


@dataclass(frozen=True)
class Running:
    """A server in a process of its own."""

    port: int
    process: subprocess.Popen[bytes]

    def end(self) -> list[tuple[int, int, int]]:
        """End it, and give its log."""
        log, _ = self.process.communicate()
        return [tuple(row) for row in json.loads(log)]


@contextlib.contextmanager
def stalling_service(every_s: float, stall_s: float) -> Iterator[Running]:
    """Start a server; it ends with the block, or with us."""
    command = [sys.executable, __file__, str(every_s), str(stall_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Running(int(process.stdout.readline()), process)
        finally:
            process.stdin.close()


if __name__ == "__main__":
    server = Stalling(float(sys.argv[1]), float(sys.argv[2]))
    print(server.listener.getsockname()[1], flush=True)
    server.serve()
    print(json.dumps(server.log))
