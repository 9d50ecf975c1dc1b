"""An OpenTelemetry collector that keeps what it is sent."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

Series = tuple[str, tuple[tuple[str, str], ...]]  # name and attributes


@dataclass
class Receiver:
    """What a collector has got, and how it answers."""

    port: int = 0
    status: int = 200
    location: str = ""  # of a redirect
    wait_s: float = 0.0  # before it answers
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def pushes(self) -> list[dict[Series, Any]]:
        """Return the value, or the whole data point of a histogram, of each series in each push."""
        return [values(body) for body in list(self.bodies)]


def values(body: bytes) -> dict[Series, Any]:
    found: dict[Series, Any] = {}
    for metric in metrics(body):
        kind = metric.WhichOneof("data")
        for point in getattr(metric, kind).data_points:
            labels = tuple(sorted((one.key, one.value.string_value) for one in point.attributes))
            name = metric.name.removeprefix("loadstone_live_")
            value = point if kind == "histogram" else getattr(point, point.WhichOneof("value"))
            found[name, labels] = value
    return found


def metrics(body: bytes) -> list[Any]:
    """Return the metrics of a push."""
    [resource] = ExportMetricsServiceRequest.FromString(body).resource_metrics
    [scope] = resource.scope_metrics
    return list(scope.metrics)


def resource(body: bytes) -> dict[str, str]:
    """Return the attributes of who has pushed."""
    [found] = ExportMetricsServiceRequest.FromString(body).resource_metrics
    return {one.key: one.value.string_value for one in found.resource.attributes}


@contextlib.contextmanager
def receiving(**how: Any) -> Iterator[Receiver]:
    """Receive metrics on a free port of loopback."""
    receiver = Receiver(**how)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.paths.append(self.path)
            receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
            receiver.bodies.append(body)
            receiver.over.wait(receiver.wait_s)
            with contextlib.suppress(OSError):  # the sender is gone
                self.send_response(receiver.status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield receiver
        finally:
            receiver.over.set()
            server.shutdown()
            thread.join()


def until(claim: Any, most_s: float = 20.0) -> None:
    """Wait until a claim holds."""
    end_s = time.monotonic() + most_s
    while not claim():
        assert time.monotonic() < end_s
        time.sleep(0.01)
