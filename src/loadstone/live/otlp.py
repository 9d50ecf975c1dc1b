"""Pushes metrics to an OpenTelemetry collector.

Protocol: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import logging
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING
from uuid import uuid4

from loadstone.errors import EnvironmentUnusable
from loadstone.live.metrics import families
from loadstone.live.push import Destination, Receiver, receiver_url
from loadstone.live.state import LiveState
from loadstone.system.installation import pip_install

if TYPE_CHECKING:
    from collections.abc import Iterator

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
PATH = "/v1/metrics"  # of a collector, where the URL names no path
_LOGGER = "opentelemetry"


def collector_url(text: str) -> str:
    """Return the URL of a collector's metrics; InvalidInput if it is none, or holds a secret."""
    return receiver_url(text, OPTION, PATH, "http://HOST:4318")


def require_opentelemetry() -> None:
    """Raise EnvironmentUnusable if OpenTelemetry's exporter is not installed."""
    try:
        import opentelemetry.exporter.otlp.proto.http.metric_exporter
        import opentelemetry.sdk.metrics.export  # noqa: F401
    except ImportError:
        raise EnvironmentUnusable(
            f"{OPTION} needs OpenTelemetry's exporter, which is not installed: "
            f"{pip_install('opentelemetry-sdk', 'opentelemetry-exporter-otlp-proto-http')}"
        ) from None


class Collector(Receiver):
    """An OpenTelemetry collector."""

    option = OPTION

    def __init__(self, to: Destination) -> None:
        require_opentelemetry()
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        # Its messages would disturb the terminal; MetricsPush says the one that matters.
        logging.getLogger(_LOGGER).addHandler(logging.NullHandler())
        logging.getLogger(_LOGGER).propagate = False
        super().__init__(to.url)
        self._exporter = OTLPMetricExporter(to.url, headers=dict(to.headers), session=self._session)
        self._resource = _resource()

    def send(self, state: LiveState, began_ns: int, now_ns: int) -> bool:
        """Send the metrics of a state, and return whether they were taken."""
        from opentelemetry.sdk.metrics.export import MetricExportResult

        data = metrics_data(state, self._resource, began_ns, now_ns)
        return self._exporter.export(data) is MetricExportResult.SUCCESS

    def end(self) -> None:
        """End the wait between its attempts."""
        self._exporter.shutdown()


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
