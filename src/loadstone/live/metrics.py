"""Metrics of a command while it measures, to be scraped by Prometheus or pushed by `live.push`.

They count from the command's begin and never fall. A trial's own figures replace what was counted
while it ran as soon as it has ended, so that sums are those of the stored trials.

Format: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Self

from loadstone.engine.histogram import Histogram
from loadstone.engine.progress import BUCKETS, bucket_end_ms
from loadstone.live.feed import Viewer
from loadstone.live.site import NOT_FOUND, ListenAddress, Request, Response, Routes, SiteServer
from loadstone.live.state import HostPoint, LiveState
from loadstone.plan.load import OpenLoad
from loadstone.report import exposition
from loadstone.report.openmetrics import estimate_rps

if TYPE_CHECKING:
    from prometheus_client import Metric

PREFIX = "loadstone_live_"
KIND = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PATH = "/metrics"
# Bounds of the latency histogram: buckets of the engine that end between 0.5 ms and 67 s, two per
# octave, which keeps it to 35 series.
BOUNDS = tuple(
    index for index in range(3, BUCKETS - 1, 4) if 0.5 <= bucket_end_ms(index) <= 2**26 / 1000
)
LAG_BOUNDS_NS = tuple((1 << bits) - 1 for bits in range(13, 34))  # 8 us to 8.6 s
# How long the command waits for the scrape of its last figures: as long as between the last two.
LEAST_LAST_SCRAPE_S, MOST_LAST_SCRAPE_S = 1.0, 30.0


class MetricsEndpoint(Viewer, Routes):
    """Serves the metrics of a command. A scrape renders the state by reference, in its thread."""

    needs_latencies = True

    def __init__(self, where: ListenAddress, *, is_open: bool) -> None:
        self._state = LiveState(0.0, 0.0)  # counters exist from the start, at 0
        self._scraped = Event()
        self._last_s: float | None = None  # when it was scraped
        self._every_s: float | None = None  # between the last two scrapes
        self._site = SiteServer(where, self, "--metrics", checks_host=not is_open)

    @property
    def url(self) -> str:
        """The address to scrape."""
        return f"{self._site.url}{PATH}"

    def show(self, state: LiveState) -> None:
        """Take the present state."""
        self._state = state

    def respond(self, request: Request, origin: str) -> Response:  # noqa: ARG002
        """Answer a scrape."""
        if (request.method, request.path) != ("GET", PATH):
            return NOT_FOUND
        text = render(self._state).encode()
        now_s = monotonic()
        if self._last_s is not None:
            self._every_s = now_s - self._last_s
        self._last_s = now_s
        self._scraped.set()
        return Response(200, KIND, text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop serving; after success, wait for a scrape of the last figures if there were some."""
        try:
            self._scraped.clear()
            if kind is None and self._every_s is not None:
                patience_s = max(1.5 * self._every_s, LEAST_LAST_SCRAPE_S)
                self._scraped.wait(min(patience_s, MOST_LAST_SCRAPE_S))
        finally:
            self._site.close()


def render(state: LiveState) -> str:
    """Return the metrics of a state as OpenMetrics."""
    return exposition.text_of(families(state))


def families(state: LiveState) -> "Iterator[Metric]":
    """Yield all metrics of a state, without their format."""
    from prometheus_client.metrics_core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        InfoMetricFamily,
    )

    sums = state.sums
    counts = (
        ("due_iterations", "Iterations that were due.", sums.due),
        ("completed_iterations", "Iterations that ended well.", sums.ok),
        ("failed_iterations", "Iterations that failed.", sums.failed),
    )
    for name, meaning, count in counts:
        yield CounterMetricFamily(PREFIX + name, meaning, value=count)
    errors = CounterMetricFamily(
        f"{PREFIX}errors",
        "Iterations that failed, by kind, in the loads that have ended.",
        labels=("kind",),
    )
    for kind, count in sums.errors:
        errors.add_metric((kind,), count)
    yield errors
    trials = CounterMetricFamily(
        f"{PREFIX}trials", "Trials that have ended, by verdict.", labels=("verdict",)
    )
    for verdict, count in sums.verdicts:
        trials.add_metric((verdict,), count)
    yield trials
    yield HistogramMetricFamily(
        f"{PREFIX}latency_seconds",
        "Latency since the due time, without pauses, of iterations that ended well.",
        buckets=_latencies(sums.latencies),
        unit="seconds",
    )
    yield HistogramMetricFamily(
        f"{PREFIX}send_lag_seconds",
        "Time from the due time until the generator took it up, in the loads that have ended.",
        buckets=_lags(sums.lag),
        unit="seconds",
    )
    gauges = (
        ("backlog_iterations", "Iterations that were due and have not ended.", _backlog(state)),
        ("offered_iterations_per_second", "Rate of the present load.", _offered(state)),
        (
            "faults_in_force",
            "Faults in force.",
            sum(one.until_s is None for one in state.faults),
        ),
    )
    for name, meaning, value in gauges:
        if value is not None:
            yield GaugeMetricFamily(PREFIX + name, meaning, value=value)
    yield _capacity(state)
    yield from _hosts(state)
    if state.run_ids:
        run = {"run_id": state.run_ids[-1], "kind": state.kind}
        yield InfoMetricFamily(f"{PREFIX}run", "The run that is measured.", value=run)


def _capacity(state: LiveState) -> "Metric":
    from prometheus_client.metrics_core import GaugeMetricFamily

    gauge = GaugeMetricFamily(
        f"{PREFIX}capacity_iterations_per_second",
        "N so far, the highest rate that the service sustains, and its interval.",
        labels=("bound",),
    )
    if state.so_far:
        found = state.so_far[-1]
        n_rps = estimate_rps(found)
        bounds = (("estimate", n_rps), ("low", found.low_rps), ("high", found.high_rps))
        for bound, rate_rps in bounds:
            if rate_rps is not None:
                gauge.add_metric((bound,), rate_rps)
    return gauge


def _hosts(state: LiveState) -> "Iterator[Metric]":
    """Yield what each host of a fleet does in the present load; nothing without a fleet."""
    from prometheus_client.metrics_core import GaugeMetricFamily

    hosts = [host for load in state.loads for host in load.hosts]
    figures: tuple[tuple[str, str, Callable[[HostPoint], float | None]], ...] = (
        ("up", "1 while the host can send load, else 0.", lambda host: not host.lost),
        (
            "offered_iterations_per_second",
            "Rate that the host offers.",
            lambda host: host.offered_rps,
        ),
        (
            "completed_iterations_per_second",
            "Iterations of the host that end well.",
            lambda host: host.completed_rps,
        ),
        ("cpu_cores", "CPU that the host's load generator uses.", lambda host: host.cpu_cores),
        (
            "send_lag_p99_seconds",
            "Time within which 99 % of the host's iterations were taken up, in this load.",
            lambda host: None if host.lag_p99_ms is None else host.lag_p99_ms / 1000,
        ),
    )
    for name, meaning, figure in figures if hosts else ():
        gauge = GaugeMetricFamily(f"{PREFIX}host_{name}", meaning, labels=("host",))
        for host in hosts:
            value = figure(host)
            if value is not None:
                gauge.add_metric((host.name,), value)
        yield gauge


def _offered(state: LiveState) -> float | None:
    rates = [
        one.request.load.rate_rps for one in state.loads if isinstance(one.request.load, OpenLoad)
    ]
    return sum(rates) if rates else None


def _backlog(state: LiveState) -> int:
    return sum(one.progress.in_flight for one in state.loads)


_Buckets = list[tuple[str, float]]


def _latencies(counts: Sequence[int]) -> _Buckets:
    """Return the cumulative counts of the engine's buckets at some of their ends."""
    sums = list(accumulate(counts)) or [0] * BUCKETS
    bounds = [(f"{bucket_end_ms(index) / 1000:.6f}", float(sums[index])) for index in BOUNDS]
    return [*bounds, ("+Inf", float(sums[-1]))]


def _lags(lag: Histogram) -> _Buckets:
    bounds = [
        (f"{(bound + 1) / 1e9:.9f}", float(sum(n for end, n in lag.buckets if end <= bound)))
        for bound in LAG_BOUNDS_NS
    ]
    return [*bounds, ("+Inf", float(lag.total))]
