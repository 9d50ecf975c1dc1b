"""Writes metrics to a Prometheus, or to what takes its remote write: Mimir, Thanos.

Protocol: https://prometheus.io/docs/specs/prw/remote_write_spec/ (1.0)
"""

import struct
from collections.abc import Mapping
from importlib.metadata import version
from uuid import uuid4

import requests

from loadstone.errors import EnvironmentUnusable
from loadstone.live.metrics import families
from loadstone.live.push import Destination, Receiver, receiver_url
from loadstone.live.state import LiveState
from loadstone.system.installation import pip_install

OPTION = "--remote-write"
PATH = "/api/v1/write"  # of a Prometheus, where the URL names no path
ANSWER_S = 10.0
# The value that ends a series; without it, queries find its last value for five minutes.
STALE: float = struct.unpack("<d", (0x7FF0000000000002).to_bytes(8, "little"))[0]
HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",  # what receivers of 1.0 expect
    "User-Agent": f"loadstone/{version('loadstone')}",
}


Labels = tuple[tuple[str, str], ...]


def write_url(text: str) -> str:
    """Return the URL to write to; InvalidInput if it is none, or holds a secret."""
    return receiver_url(text, OPTION, PATH, "http://HOST:9090")


def require_messages() -> None:
    """Raise EnvironmentUnusable if the messages of the protocol are not installed."""
    try:
        import snappy  # type: ignore[import-untyped]  # noqa: F401
        from opentelemetry.exporter.prometheus_remote_write.gen import remote_pb2  # noqa: F401
    except ImportError:
        raise EnvironmentUnusable(
            f"{OPTION} needs OpenTelemetry's exporter for it, which is not installed: "
            f"{pip_install('opentelemetry-exporter-prometheus-remote-write')}"
        ) from None


class RemoteWrite(Receiver):
    """A receiver of Prometheus' remote write."""

    option = OPTION

    def __init__(self, to: Destination) -> None:
        require_messages()
        super().__init__(to.url)
        self._session.headers.update({**HEADERS, **to.headers})
        # Two commands at a time are two series each.
        self._own = {"job": "loadstone", "instance": str(uuid4())}
        self._written: set[Labels] = set()  # series that the receiver may have, and not ended

    def send(self, state: LiveState, began_ns: int, now_ns: int) -> bool:  # noqa: ARG002
        """Send the metrics of a state, and return whether they were taken."""
        import snappy

        values = self._values(state)
        ended = dict.fromkeys(self._written - values.keys(), STALE)
        self._written |= values.keys()
        body = snappy.compress(_message({**values, **ended}, now_ns))
        try:
            self._session.post(self.url, data=body, timeout=ANSWER_S)
        except requests.RequestException:
            return False
        if not self.problem:
            self._written = set(values)
        return not self.problem

    def _values(self, state: LiveState) -> dict[Labels, float]:
        """Return the value of each series, its labels sorted as the protocol demands."""
        return {
            tuple(sorted({"__name__": one.name, **self._own, **one.labels}.items())): one.value
            for family in families(state)
            for one in family.samples
        }


def _message(values: Mapping[Labels, float], now_ns: int) -> bytes:
    """Return a WriteRequest with a sample of each series."""
    from opentelemetry.exporter.prometheus_remote_write.gen import remote_pb2

    request = remote_pb2.WriteRequest()  # type: ignore[attr-defined]  # is made at import
    for labels, value in values.items():
        series = request.timeseries.add()
        for name, text in labels:
            series.labels.add(name=name, value=text)
        series.samples.add(value=float(value), timestamp=now_ns // 1_000_000)
    message: bytes = request.SerializeToString()
    return message
