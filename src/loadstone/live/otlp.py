"""Pushes the metrics of a command to an OpenTelemetry collector while it measures.

The values are those of `live.metrics`, as cumulative sums since the command began. They are sent in
a thread of their own: a collector that is away or slow costs one line, and delays nothing. Sums
need no sending again: the next push has all that a failed one had.

Protocol: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import pairwise
from math import inf
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

import requests

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.live.feed import Viewer
from loadstone.live.metrics import families
from loadstone.live.state import LiveState

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import (
        Gauge,
        Histogram,
        HistogramDataPoint,
        Metric,
        MetricsData,
        NumberDataPoint,
        Sum,
    )
    from opentelemetry.sdk.resources import Resource
    from prometheus_client import Metric as Family

OPTION = "--otlp"
HEADERS_OPTION = "--otlp-headers"
PATH = "/v1/metrics"  # of a collector, where the URL names no path
EVERY_S = 10.0
INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"  # the SDK's own variable, in milliseconds
# How long the command waits at its end until the last figures have arrived.
LAST_PUSH_S = 5.0
HASTY_LAST_PUSH_S = 1.0  # after Ctrl-C, a failure, or if the collector did not answer before
MOST_HEADERS_BYTES = 1 << 16
_LOGGER = "opentelemetry"
_HEADER = re.compile(r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(?P<value>[\x20-\x7e]+)")


@dataclass(frozen=True, slots=True)
class Collector:
    """An OpenTelemetry collector, with the headers that it asks for."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets


def collector_url(text: str) -> str:
    """Return the URL of a collector's metrics; InvalidInput if it is none, or holds a secret."""
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or not text.isprintable() or " " in text:
        raise InvalidInput("not a URL of a collector; write http://HOST:4318")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidInput(
            "the URL has a user, a query or a fragment, which other users of this machine can see; "
            f"write headers with secrets into a file and name it by {HEADERS_OPTION}"
        )
    return text if parts.path.strip("/") else text.rstrip("/") + PATH


def read_headers(path: Path) -> dict[str, str]:
    """Read a file with a header in each line, as `Name: value`."""
    where = f"{HEADERS_OPTION} {path}"
    try:
        with path.open("rb") as file:
            content = file.read(MOST_HEADERS_BYTES + 1)
        text = content.decode()
    except OSError as problem:
        raise InvalidInput(f"{where}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{where}: not UTF-8") from None
    if len(content) > MOST_HEADERS_BYTES:
        raise InvalidInput(f"{where}: more than {MOST_HEADERS_BYTES:,} bytes")
    headers = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            raise InvalidInput(f"{where}, line {number}: not a header; write NAME: VALUE")
        headers[match["name"]] = match["value"]
    return headers


def require_opentelemetry() -> None:
    """Raise EnvironmentUnusable if OpenTelemetry's exporter is not installed."""
    try:
        import opentelemetry.exporter.otlp.proto.http.metric_exporter
        import opentelemetry.sdk.metrics.export  # noqa: F401
    except ImportError:
        raise EnvironmentUnusable(
            f"{OPTION} needs OpenTelemetry's exporter, which is not installed: "
            "pip install 'loadstone[otlp]'"
        ) from None


class OtlpPush(Viewer):
    """Pushes metrics every few seconds, and the last ones when the command ends."""

    needs_latencies = True

    def __init__(self, collector: Collector, say: Callable[[str], None]) -> None:
        require_opentelemetry()
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        # Its messages would disturb the terminal; `say` has the one that matters.
        logging.getLogger(_LOGGER).addHandler(logging.NullHandler())
        logging.getLogger(_LOGGER).propagate = False
        self._collector = collector
        self._say = say
        self._session = _CollectorSession()
        self._exporter = OTLPMetricExporter(
            collector.url, headers=dict(collector.headers), session=self._session
        )
        self._state = LiveState(0.0, 0.0)  # counters exist from the start, at 0
        self._began_ns = time.time_ns()
        self._resource = _resource()
        self._every_s = _interval_s()
        self._over = Event()
        self._is_said = False
        self._thread = Thread(target=self._push_until_over, name="otlp", daemon=True)

    def show(self, state: LiveState) -> None:
        """Take the present state."""
        self._state = state

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Push the last figures; a collector that does not take them in time is left alone."""
        is_hasty = kind is not None or bool(self._session.problem)
        self._over.set()
        self._thread.join(HASTY_LAST_PUSH_S if is_hasty else LAST_PUSH_S)
        if self._thread.is_alive():
            self._complain(self._session.problem or "it did not take the last figures in time")
            self._exporter.shutdown()  # ends the wait between its attempts

    def _push_until_over(self) -> None:
        self._push()  # at once, so that a wrong URL is known early
        while not self._over.wait(self._every_s):
            self._push()
        self._push()

    def _push(self) -> None:
        from opentelemetry.sdk.metrics.export import MetricExportResult

        try:
            data = metrics_data(self._state, self._resource, self._began_ns, time.time_ns())
            done = self._exporter.export(data)
            problem = self._session.problem
        except Exception as wrong:  # what shows a run never ends it
            done, problem = MetricExportResult.FAILURE, f"cannot be sent ({type(wrong).__name__})"
        if done is not MetricExportResult.SUCCESS:
            self._complain(problem)

    def _complain(self, problem: str) -> None:
        """Say once that metrics do not arrive."""
        if not self._is_said:
            self._is_said = True
            self._say(f"{OPTION} {self._collector.url}: {problem}; the measurement is not affected")


class _CollectorSession(requests.Session):
    """Reads no body, and takes a redirect for a failure."""

    problem = ""  # of the last request

    def request(self, *args: Any, **options: Any) -> requests.Response:
        """Send a request."""
        try:
            # A body may be long, or never end. Its connection is closed instead.
            own = {"stream": True, "allow_redirects": False}
            response = super().request(*args, **{**options, **own})
        except requests.Timeout:
            self.problem = "no answer in time"
            raise
        except requests.exceptions.SSLError:
            self.problem = "its certificate is not trusted, or it does not speak TLS"
            raise
        except requests.RequestException:
            self.problem = "cannot be reached"
            raise
        response.close()
        self.problem = f"HTTP status {response.status_code}" if response.status_code >= 300 else ""
        if 300 <= response.status_code < 400:  # the exporter takes it for a success
            raise requests.TooManyRedirects(self.problem)
        return response


def metrics_data(
    state: LiveState, resource: "Resource", began_ns: int, now_ns: int
) -> "MetricsData":
    """Return the metrics of a state as OpenTelemetry's SDK has them."""
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    converted = _Conversion(began_ns, now_ns)
    scope = InstrumentationScope("loadstone", version("loadstone"))
    metrics = [converted.metric(family) for family in families(state) if family.samples]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, metrics, "")], "")])


@dataclass(frozen=True, slots=True)
class _Conversion:
    """Converts metrics of prometheus_client into those of OpenTelemetry."""

    began_ns: int
    now_ns: int

    def metric(self, family: "Family") -> "Metric":
        from opentelemetry.sdk.metrics.export import Metric

        # Prometheus adds the suffix again when it takes the metric in.
        name = f"{family.name}_info" if family.type == "info" else family.name
        unit = "s" if family.unit == "seconds" else ""
        return Metric(name, family.documentation, unit, self._data(family))

    def _data(self, family: "Family") -> "Sum | Gauge | Histogram":
        from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Histogram, Sum

        cumulative = AggregationTemporality.CUMULATIVE
        if family.type == "histogram":
            return Histogram([self._histogram(family)], cumulative)
        points = list(self._points(family))
        if family.type == "counter":
            return Sum(points, cumulative, is_monotonic=True)
        return Gauge(points)

    def _points(self, family: "Family") -> "Iterator[NumberDataPoint]":
        from opentelemetry.sdk.metrics.export import NumberDataPoint

        for one in family.samples:
            # Counts are whole numbers, of which OTLP has a type of its own.
            value = int(one.value) if family.type == "counter" else float(one.value)
            yield NumberDataPoint(dict(one.labels), self.began_ns, self.now_ns, value)

    def _histogram(self, family: "Family") -> "HistogramDataPoint":
        from opentelemetry.sdk.metrics.export import HistogramDataPoint

        # The samples are cumulative buckets in rising order; the last one has all.
        ends = [float(one.labels["le"]) for one in family.samples]
        sums = [0, *(int(one.value) for one in family.samples)]
        return HistogramDataPoint(
            attributes={},
            start_time_unix_nano=self.began_ns,
            time_unix_nano=self.now_ns,
            count=sums[-1],
            sum=None,  # type: ignore[arg-type]  # absent: it is not known
            bucket_counts=[after - before for before, after in pairwise(sums)],
            explicit_bounds=[end for end in ends if end != inf],
            min=None,  # type: ignore[arg-type]
            max=None,  # type: ignore[arg-type]
        )


def _resource() -> "Resource":
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = {
        "service.name": "loadstone",
        "service.version": version("loadstone"),
        # Two commands at a time are two series each.
        "service.instance.id": str(uuid4()),
    }
    of_environment = OTELResourceDetector().detect().attributes
    return Resource.create({name: own[name] for name in own if name not in of_environment})


def _interval_s() -> float:
    try:
        interval_s = float(os.environ.get(INTERVAL, "")) / 1000
    except ValueError:
        return EVERY_S
    return interval_s if 0 < interval_s < inf else EVERY_S
