"""An HTTP/1.1 service of exactly known capacity, to be run as a process of its own.

C workers behind one queue are kept in virtual time: a request that arrives at `a` is answered at
max(a, when a worker is free) + its service time, where the worker's free time is what was reckoned,
not what the clock says at the answer. So late wake-ups delay answers but cost no capacity: it is
C / S whatever the machine does.

    python tests/known_service.py --workers 2 --service-s 0.1 --law exponential
"""

import argparse
import asyncio
import contextlib
import heapq
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOKEN = "gAAAAAB" + "k" * 180
DOMAIN = {"id": "default", "name": "Default"}
ISSUED = json.dumps(
    {
        "token": {
            "methods": ["password"],
            "user": {"id": "u1", "name": "known", "domain": DOMAIN},
            "project": {"id": "p1", "name": "known", "domain": DOMAIN},
            "roles": [{"id": "r1", "name": "admin"}],
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "catalog": [],
            "pad": "x" * 400,
        }
    }
).encode()
# Enough of the Identity API's discovery for a client to find v3; the links' host is not looked at.
VERSION = {
    "id": "v3.14",
    "status": "stable",
    "links": [{"rel": "self", "href": "http://127.0.0.1/v3/"}],
}
DISCOVERY = json.dumps({"version": VERSION}).encode()


def answer(status: str, body: bytes, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


POST_ANSWER = answer("201 Created", ISSUED, f"X-Subject-Token: {TOKEN}\r\n")
GET_ANSWER = answer("200 OK", ISSUED)
VERSION_ANSWER = answer("200 OK", DISCOVERY)
ERROR_ANSWER = answer("500 Internal Server Error", b'{"error": {"code": 500}}')


class Workers:
    """The queue in virtual time."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._free = [0.0] * options.workers
        self._random = random.Random(options.seed)
        self._began = time.monotonic()

    def ready_at(self, arrived: float) -> float:
        begins = self._awake(max(arrived, self._free[0]))
        done = begins + self._service_s(begins)
        heapq.heapreplace(self._free, done)
        return done

    def _service_s(self, at: float) -> float:
        seconds: float = self._options.service_s
        if self._options.law == "exponential":
            seconds = self._random.expovariate(1 / seconds)
        halved = self._options.halve_at_s
        if halved is not None and at - self._began >= halved:
            seconds *= 2
        return seconds

    def _awake(self, at: float) -> float:
        """Nothing begins during a stall."""
        every, lasts = self._options.stall_every_s, self._options.stall_s
        if not every:
            return at
        into = (at - self._began) % every
        return at + lasts - into if into < lasts and at - self._began >= every else at


class Connection(asyncio.Protocol):
    def __init__(self, workers: Workers, only_errors: bool) -> None:
        self._workers = workers
        self._only_errors = only_errors
        self._buffer = b""
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (request := self._take()) is not None:
            if b"/auth/tokens " not in request.split(b"\r\n", 1)[0]:
                self._transport.write(VERSION_ANSWER)
                continue
            reply = POST_ANSWER if request.startswith(b"POST") else GET_ANSWER
            if self._only_errors:
                self._transport.write(ERROR_ANSWER)
                continue
            at = self._workers.ready_at(time.monotonic())
            self._loop.call_at(at, self._reply, reply)

    def _take(self) -> bytes | None:
        """One whole request from the buffer; a connection has at most one at a time in flight."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self._buffer[:end].lower()
        length = 0
        found = head.find(b"content-length:")
        if found >= 0:
            length = int(head[found + 15 :].split(b"\r\n", 1)[0])
        whole = end + 4 + length
        if len(self._buffer) < whole:
            return None
        request, self._buffer = self._buffer[:whole], self._buffer[whole:]
        return request

    def _reply(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)


async def serve(options: argparse.Namespace) -> None:
    workers = Workers(options)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(workers, options.only_errors), "127.0.0.1", options.port, backlog=1024
    )
    port = server.sockets[0].getsockname()[1]
    if options.port_file:
        unfinished = Path(f"{options.port_file}.new")
        unfinished.write_text(str(port))
        unfinished.rename(options.port_file)
    else:
        print(port, flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    threading.Thread(target=end_with_parent, args=(loop, ended), daemon=True).start()
    await ended.wait()
    server.close()


def end_with_parent(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """The parent holds our stdin open; when it closes or dies, there is nothing left to read."""
    while os.read(0, 4096):
        pass
    loop.call_soon_threadsafe(ended.set)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--service-s", type=float, default=0.1)
    parser.add_argument("--law", choices=["fixed", "exponential"], default="fixed")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", help="where the port is written; else on stdout")
    parser.add_argument("--stall-every-s", type=float, default=0.0)
    parser.add_argument("--stall-s", type=float, default=0.0)
    parser.add_argument(
        "--halve-at-s", type=float, help="seconds after which it takes twice as long"
    )
    parser.add_argument("--only-errors", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


@dataclass(frozen=True)
class Known:
    """A running service: where it is and what it bears."""

    port: int
    capacity_rps: float
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v3"


@contextlib.contextmanager
def known_service(workers: int = 2, service_s: float = 0.1, *more: str) -> Iterator[Known]:
    """Start a service of capacity workers / service_s; it ends with the block, or with us."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, __file__, f"--workers={workers}", f"--service-s={service_s}", *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                errors.seek(0)
                raise RuntimeError(f"the known service did not start: {errors.read().decode()}")
            yield Known(int(line), workers / service_s, process)
        finally:
            process.stdin.close()
            process.wait(timeout=10)
            process.stdout.close()


if __name__ == "__main__":
    asyncio.run(serve(options()))
