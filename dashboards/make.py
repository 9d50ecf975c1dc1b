"""Write dashboards/loadstone.json, a Grafana dashboard of the metrics of `--metrics` and `--otlp`.

    .venv/bin/python dashboards/make.py

Rows below the first show the service's machines, by the metrics of Prometheus' node_exporter and
mysqld_exporter and of HAProxy's own exporter.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BigValueTextMode,
    LegendDisplayMode,
    LegendPlacement,
    ScaleDistribution,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardCursorSync,
    DataSourceRef,
    VariableOption,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from loadstone.live.metrics import PREFIX

FILE = Path(__file__).with_name("loadstone.json")
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
WIDTH, HEIGHT = 24, 8  # of a row of panels, in Grafana's units
PER_SECOND, SECONDS, SHARE = "reqps", "s", "percentunit"
HOST = 'instance=~"$host"'
OVER = "[$__rate_interval]"


@dataclass(frozen=True, slots=True)
class Query:
    """A query and the name of its lines."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over time."""

    title: str
    queries: Sequence[Query]
    unit: str = ""
    description: str = ""
    most: float | None = None  # the axis ends there


def _own(name: str) -> str:
    return f'{PREFIX}{name}{{instance=~"$generator"}}'


def _capacity(bound: str) -> str:
    labels = f'instance=~"$generator", bound="{bound}"'
    return f"max({PREFIX}capacity_iterations_per_second{{{labels}}})"


def _rate(name: str) -> str:
    return f"sum(rate({_own(name)}{OVER}))"


def _latency(share: float) -> str:
    buckets = f"sum by (le) (rate({_own('latency_seconds_bucket')}{OVER}))"
    return f"histogram_quantile({share}, {buckets})"


LOAD = (
    Chart(
        "Offered, completed, failed",
        (
            Query(f"sum({_own('offered_iterations_per_second')})", "offered"),
            Query(_rate("due_iterations_total"), "due"),
            Query(_rate("completed_iterations_total"), "completed"),
            Query(_rate("failed_iterations_total"), "failed"),
        ),
        PER_SECOND,
        "Offered: the rate of the present load, if it has one. Due: iterations that were due.",
    ),
    Chart(
        "Latency since the due time",
        tuple(
            Query(_latency(share), name)
            for share, name in ((0.5, "median"), (0.95, "95 %"), (0.99, "99 %"))
        ),
        SECONDS,
        "Of iterations that ended well.",
    ),
    Chart(
        "N so far",
        tuple(Query(_capacity(bound), bound) for bound in ("high", "estimate", "low")),
        PER_SECOND,
        "The interval that a search would report if it ended now.",
    ),
    Chart(
        "Backlog",
        (Query(f"sum({_own('backlog_iterations')})", "iterations"),),
        description="Iterations that were due and have not ended.",
    ),
    Chart(
        "Errors by kind",
        (Query(f"sum by (kind) ({_own('errors_total')})", "{{kind}}"),),
        description="In the loads that have ended, since the command began.",
    ),
    Chart(
        "Lateness of the load generator",
        tuple(
            Query(
                f"histogram_quantile({share}, sum by (le) ({_own('send_lag_seconds_bucket')}))",
                name,
            )
            for share, name in ((0.5, "median"), (0.99, "99 %"))
        ),
        SECONDS,
        "From the due time until the generator took it up, in the loads that have ended, since "
        "the command began.",
    ),
    Chart(
        "Rates of each host of a fleet",
        tuple(
            Query(
                f"sum by (host) ({_own(f'host_{name}_iterations_per_second')})",
                f"{{{{host}}}} {name}",
            )
            for name in ("offered", "completed")
        ),
        PER_SECOND,
    ),
    Chart(
        "Lateness of each host of a fleet",
        (Query(f"max by (host) ({_own('host_send_lag_p99_seconds')})", "{{host}}"),),
        SECONDS,
        "99 % of the iterations of the present load were taken up within this time.",
    ),
    Chart(
        "CPU of the load generator on each host of a fleet",
        (Query(f"max by (host) ({_own('host_cpu_cores')})", "{{host}}"),),
        description="In cores.",
    ),
    Chart(
        "Hosts of a fleet that can send load",
        (Query(f"sum({_own('host_up')})", "hosts"),),
    ),
)
HOSTS = (
    Chart(
        "CPU busy",
        (
            Query(
                "1 - avg by (instance) "
                f'(rate(node_cpu_seconds_total{{mode="idle", {HOST}}}{OVER}))',
                "{{instance}}",
            ),
        ),
        SHARE,
        most=1,
    ),
    Chart(
        "Disk busy",
        (
            Query(
                f"max by (instance) (rate(node_disk_io_time_seconds_total{{{HOST}}}{OVER}))",
                "{{instance}}",
            ),
        ),
        SHARE,
        "The busiest disk of each host.",
        most=1,
    ),
    Chart(
        "Network",
        (
            Query(
                "sum by (instance) (rate("
                f'node_network_transmit_bytes_total{{device!="lo", {HOST}}}{OVER}))',
                "{{instance}} sent",
            ),
            Query(
                "sum by (instance) (rate("
                f'node_network_receive_bytes_total{{device!="lo", {HOST}}}{OVER}))',
                "{{instance}} received",
            ),
        ),
        "Bps",
    ),
    Chart(
        "Memory available",
        (
            Query(
                f"node_memory_MemAvailable_bytes{{{HOST}}} / node_memory_MemTotal_bytes{{{HOST}}}",
                "{{instance}}",
            ),
        ),
        SHARE,
        most=1,
    ),
)
DATABASE = (
    Chart(
        "Threads",
        (
            Query("mysql_global_status_threads_running", "{{instance}} running"),
            Query("mysql_global_status_threads_connected", "{{instance}} connected"),
            Query("mysql_global_variables_max_connections", "{{instance}} most"),
        ),
    ),
    Chart(
        "Statements",
        (Query(f"rate(mysql_global_status_queries{OVER})", "{{instance}}"),),
        PER_SECOND,
    ),
    Chart(
        "Waits for locks of rows",
        (Query(f"rate(mysql_global_status_innodb_row_lock_waits{OVER})", "{{instance}}"),),
        PER_SECOND,
    ),
)
BALANCER = (
    Chart(
        "Requests",
        (
            Query(
                f"sum by (proxy) (rate(haproxy_backend_http_requests_total{OVER}))",
                "{{proxy}}",
            ),
        ),
        PER_SECOND,
    ),
    Chart(
        "Requests that wait for a server",
        (Query("sum by (proxy) (haproxy_backend_current_queue)", "{{proxy}}"),),
    ),
    Chart(
        "Sessions per server",
        (
            Query(
                "sum by (proxy, server) (haproxy_server_current_sessions)",
                "{{proxy}} {{server}}",
            ),
        ),
    ),
)


def build() -> Dashboard:
    """Return the dashboard."""
    made = (
        dashboard.Dashboard("Loadstone")
        .uid("loadstone-live")
        .description("A load generator's figures beside those of the service that it loads.")
        .tags(["loadstone"])
        .refresh("5s")
        .time("now-15m", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .variables(list(_variables()))
        .annotation(
            dashboard.AnnotationQuery()
            .name("Faults")
            .datasource(SOURCE)
            .enable(True)
            .icon_color("orange")
            .expr(f"sum({_own('faults_in_force')}) > 0")
        )
    )
    for figure in _figures():
        made = made.with_panel(figure)
    for chart in LOAD:
        made = made.with_panel(_lines(chart, 2))
    made = made.with_panel(_latencies())
    rows = (("Hosts of the service", HOSTS), ("Database", DATABASE), ("HAProxy", BALANCER))
    for title, charts in rows:
        made = made.with_row(dashboard.Row(title))
        for chart in charts:
            made = made.with_panel(_lines(chart, len(charts)))
    built = made.build()
    for number, panel in enumerate(built.panels or (), 1):
        panel.id_val = number
    return built


def _figures() -> Iterator[stat.Panel]:
    run = _query(Query(_own("run_info"), "{{kind}} {{run_id}}")).instant()
    yield _stat("Run", run, 0.5, BigValueTextMode.NAME).no_value("nothing is measured")
    capacity = _query(Query(_capacity("estimate")))
    yield _stat("N", capacity, 0.25, BigValueTextMode.VALUE).unit(PER_SECOND)
    trials = _query(Query(f"sum by (verdict) ({_own('trials_total')})", "{{verdict}}"))
    yield _stat("Trials", trials, 0.25, BigValueTextMode.VALUE_AND_NAME)


def _variables() -> Iterator[dashboard.DatasourceVariable | dashboard.QueryVariable]:
    yield dashboard.DatasourceVariable("source").label("Prometheus").type("prometheus")
    everything = VariableOption(selected=True, text="All", value="$__all")
    for name, label, metric in (
        ("generator", "Load generator", f"{PREFIX}due_iterations_total"),
        ("host", "Hosts of the service", "node_cpu_seconds_total"),
    ):
        yield (
            dashboard.QueryVariable(name)
            .label(label)
            .datasource(SOURCE)
            .query(f"label_values({metric}, instance)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(VariableSort.ALPHABETICAL_ASC)
            .multi(True)
            .include_all(True)
            .current(everything)
        )


def _query(query: Query, ref: str = "A") -> prometheus.Dataquery:
    return prometheus.Dataquery().ref_id(ref).expr(query.expression).legend_format(query.legend)


def _lines(chart: Chart, in_row: int) -> timeseries.Panel:
    panel = (
        timeseries.Panel()
        .title(chart.title)
        .description(chart.description)
        .datasource(SOURCE)
        .span(WIDTH // in_row)
        .height(HEIGHT)
        .min(0)
        .unit(chart.unit)
        .show_points(VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
        )
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    )
    if chart.most is not None:
        panel = panel.max(chart.most)
    for ref, query in zip(ascii_uppercase, chart.queries, strict=False):
        panel = panel.with_target(_query(query, ref))
    return panel


def _latencies() -> heatmap.Panel:
    """Return the distribution of latencies over time."""
    buckets = f"sum by (le) (increase({_own('latency_seconds_bucket')}{OVER}))"
    return (
        heatmap.Panel()
        .title("Latencies")
        .datasource(SOURCE)
        .span(WIDTH)
        .height(HEIGHT)
        .y_axis(heatmap.YAxisConfig().unit(SECONDS))
        .show_tooltip()
        .scale_distribution(common.ScaleDistributionConfig().type(ScaleDistribution.LINEAR))
        .with_target(_query(Query(buckets, "{{le}}")).format(PromQueryFormat.HEATMAP))
    )


def _stat(
    title: str, query: prometheus.Dataquery, share: float, shown: BigValueTextMode
) -> stat.Panel:
    """Return the last value of each series, in a share of the row."""
    return (
        stat.Panel()
        .title(title)
        .datasource(SOURCE)
        .span(int(WIDTH * share))
        .height(HEIGHT // 2)
        .text_mode(shown)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(query)
    )


def text() -> str:
    """Return the dashboard as the file has it."""
    return json.dumps(build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
