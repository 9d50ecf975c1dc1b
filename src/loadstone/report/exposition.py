"""Prometheus metrics as text.

Format: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import Metric


def text_of(metrics: "Iterable[Metric]") -> str:
    """Return metrics as OpenMetrics text."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.openmetrics.exposition import generate_latest

    class Collector:
        def collect(self) -> "Iterable[Metric]":
            return metrics

    registry = CollectorRegistry()
    registry.register(Collector())
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]  # it has no types
    return text.decode()
