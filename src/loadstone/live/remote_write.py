"""Writes metrics to a Prometheus, or to what takes its remote write: Mimir, Thanos.

Protocol: https://prometheus.io/docs/specs/prw/remote_write_spec/ (1.0)
"""

from importlib.metadata import version
from uuid import uuid4

import requests

from loadstone.errors import EnvironmentUnusable
from loadstone.live.metrics import families
from loadstone.live.push import Destination, ReceiverSession, receiver_url
from loadstone.live.state import LiveState

OPTION = "--remote-write"
PATH = "/api/v1/write"  # of a Prometheus, where the URL names no path
ANSWER_S = 10.0
HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",  # what receivers of 1.0 expect
    "User-Agent": f"loadstone/{version('loadstone')}",
}


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
            "pip install opentelemetry-exporter-prometheus-remote-write"
        ) from None


class RemoteWrite:
    """A receiver of Prometheus' remote write."""

    option = OPTION

    def __init__(self, to: Destination) -> None:
        require_messages()
        self.url = to.url
        self._session = ReceiverSession()
        self._session.headers.update({**HEADERS, **to.headers})
        # Two commands at a time are two series each.
        self._own = {"job": "loadstone", "instance": str(uuid4())}

    @property
    def problem(self) -> str:
        """What became of the last request; empty if it was taken."""
        return self._session.problem

    def send(self, state: LiveState, began_ns: int, now_ns: int) -> bool:  # noqa: ARG002
        """Send the metrics of a state, and return whether they were taken."""
        import snappy

        body = snappy.compress(self.message(state, now_ns))
        try:
            self._session.post(self.url, data=body, timeout=ANSWER_S)
        except requests.RequestException:
            return False
        return not self.problem

    def message(self, state: LiveState, now_ns: int) -> bytes:
        """Return the metrics of a state as a WriteRequest: a sample of each series."""
        from opentelemetry.exporter.prometheus_remote_write.gen import remote_pb2

        request = remote_pb2.WriteRequest()  # type: ignore[attr-defined]  # is made at import
        for sample in (one for family in families(state) for one in family.samples):
            series = request.timeseries.add()
            labels = {"__name__": sample.name, **self._own, **sample.labels}
            for name, value in sorted(labels.items()):  # as the protocol demands
                series.labels.add(name=name, value=value)
            series.samples.add(value=float(sample.value), timestamp=now_ns // 1_000_000)
        message: bytes = request.SerializeToString()
        return message

    def end(self) -> None:
        """Nothing is sent again."""
