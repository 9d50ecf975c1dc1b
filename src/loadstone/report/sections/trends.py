"""Trends: results of the same load over time, a section for each."""

from collections.abc import Iterable, Sequence
from typing import Literal

from loadstone.analysis.change_points import FEWEST_VALUES
from loadstone.report import figures, history
from loadstone.report.chart import Chart, ChartSeries, MarkedSpan, Tone, with_data
from loadstone.report.history import CapacityTrend, TrendChange
from loadstone.report.section import (
    Answer,
    Certainty,
    Fact,
    Report,
    Row,
    Section,
    Table,
    TableColumn,
    ToneCell,
)
from loadstone.report.sections import statements, workload
from loadstone.report.sections.overview import overview
from loadstone.report.sections.tables import columns, held
from loadstone.report.trends import HEADS, MEDIAN, Trend, cells
from loadstone.result.listing import Performed
from loadstone.search.model import Capacity


def report_of(searched: Sequence[CapacityTrend], trends: Sequence[Trend]) -> Report:
    """Return N of each target and load, then the workloads of tasks."""
    sections = (
        *(_capacity(f"n-{number}", trend) for number, trend in enumerate(searched, 1)),
        *(_workload(f"trend-{number}", trend) for number, trend in enumerate(trends, 1)),
    )
    changes = (*(one.changes for one in searched), *(one.changes for one in trends))
    changed = sum(map(bool, changes))
    level = f"{changed} changed" if changed else "no change point"
    return Report(
        title=f"Trends of {figures.counted(len(sections), 'load')}: {level}",
        subject="",
        about="Oldest run first; durations in seconds, of the successful iterations.",
        sections=sections,
        overview=overview(sections),
        name="loadstone results trends",
    )


def _capacity(anchor: str, trend: CapacityTrend) -> Section:
    found = trend.latest
    text = figures.n(found)
    shown = text if text == figures.NOT_FOUND else f"{text} per second"
    within = figures.interval(found) if statements.has_interval(found) else ""
    charts = (_n(anchor, trend),) if len(trend.runs) > 1 else ()
    rows = tuple(
        Row((str(number), *history.cells(run), history.percent(trend, run)))
        for number, run in enumerate(trend.runs, 1)
    )
    heads = (
        *columns(numbers=("#",)),
        *columns("run", numbers=("N per second", "interval", "change")),
    )
    return Section(
        id=anchor,
        title=f"N of {trend.title}",
        subtitle=trend.subject,
        answer=Answer(
            label="N",
            text=text,
            unit="per second" if text != figures.NOT_FOUND else "",
            sentence=f"N of {trend.title}: {shown}{f' ({within})' if within else ''}, "
            f"{_latest_of(len(trend.runs))}.",
            value=found.rate_rps if found else None,
            low=found.low_rps if found else None,
            high=found.high_rps if found else None,
            interval=within,
        ),
        certainty=_certainty(trend.changes, trend.known),
        facts=(
            Fact("target", trend.subject, is_line=False, is_column=True),
            *_facts(len(trend.runs), history.sentences(trend.changes, trend.known, "N")),
        ),
        tables=(Table("Runs", heads, rows, is_primary=True),),
        charts=with_data(charts),
    )


def _workload(anchor: str, trend: Trend) -> Section:
    last = trend.runs[-1]
    heads = (*columns("run", numbers=HEADS), TableColumn("SLA"))
    rows = tuple(Row((run.run_id, *cells(run), _sla(run))) for run in trend.runs)
    charts = (_durations(anchor, trend), _success(anchor, trend)) if len(trend.runs) > 1 else ()
    is_known = last.median_s is not None
    median = figures.MISSING if last.median_s is None else figures.plain_s(last.median_s)
    said = f"median {median} s" if is_known else "no iteration succeeded"
    load = workload.load_of(trend.workload, paced_as_rally=trend.paced_as_rally)
    if trend.requests_as_rally:
        load += ", Rally's own requests"
    return Section(
        id=anchor,
        title=trend.scenario,
        subtitle=f"{load}, configuration {trend.config_id}",
        answer=Answer(
            label="median",
            text=median,
            unit="s" if is_known else "",
            sentence=f"{trend.scenario}: {said}, {_latest_of(trend.count)}.",
            value=last.median_s,
        ),
        certainty=_certainty(trend.changes, trend.known),
        facts=(
            Fact("load", load, is_line=False, is_column=True),
            *_facts(trend.count, history.sentences(trend.changes, trend.known, MEDIAN)),
        ),
        tables=(Table("Runs", heads, rows, is_primary=True),),
        charts=with_data(charts),
        listings=(workload.listing(trend.workload),),
    )


def _sla(run: Performed) -> str | ToneCell:
    if run.pass_sla is None or (run.pass_sla and not run.has_sla):
        return figures.MISSING
    return held(is_held=run.pass_sla, words=("held", "failed"))


def _latest_of(runs: int) -> str:
    return f"latest of {runs} runs" if runs > 1 else "one run"


def _facts(runs: int, sentences: Iterable[str]) -> tuple[Fact, ...]:
    count = Fact("runs", str(runs), is_line=False, is_column=True)
    return (count, *(Fact("change", line) for line in sentences))


def _certainty(changes: Sequence[TrendChange], known: int) -> Certainty:
    if not changes and known < FEWEST_VALUES:
        return Certainty("undecided", "too few runs")
    if not changes:
        return Certainty("sustained", "no change")
    return Certainty("undecided", figures.counted(len(changes), "change"))


def _n(anchor: str, trend: CapacityTrend) -> Chart:
    found = [run.capacity or Capacity(None, None, None, 0.0) for run in trend.runs]
    return Chart(
        id=f"{anchor}-capacity",
        title="N over the runs",
        summary="N of each run with its interval. Marked: where its level changed.",
        x_label="run, oldest first",
        y_label="iterations per second",
        series=(
            _series("N", "metered", [history.n_rps(run) for run in trend.runs]),
            _series("lower bound", "sustained", [one.low_rps for one in found], "dashed"),
            _series("upper bound", "degraded", [one.high_rps for one in found], "dashed"),
        ),
        spans=_marks(trend.changes, [run.run_id for run in trend.runs]),
    )


def _marks(changes: Sequence[TrendChange], run_ids: Sequence[str]) -> tuple[MarkedSpan, ...]:
    """Mark the span between the last run of a level and the first run of the next."""
    return tuple(
        MarkedSpan(
            1.0 + run_ids.index(change.before),
            1.0 + run_ids.index(change.after),
            f"{100 * (change.ratio - 1):+.1f} %",
            "undecided",
        )
        for change in changes
    )


def _durations(anchor: str, trend: Trend) -> Chart:
    return Chart(
        id=f"{anchor}-durations",
        title="Durations",
        summary="Of the successful iterations, run by run.",
        x_label="run, oldest first",
        y_label="seconds",
        series=(
            _series("median", "p50", [run.median_s for run in trend.runs]),
            _series("95 % within", "p95", [run.p95_s for run in trend.runs]),
            _series("max", "p99", [run.max_s for run in trend.runs]),
        ),
        spans=_marks(trend.changes, [run.run_id for run in trend.runs]),
    )


def _success(anchor: str, trend: Trend) -> Chart:
    shares = [100 * run.ok / run.count if run.count else None for run in trend.runs]
    return Chart(
        id=f"{anchor}-success",
        title="Success rate",
        summary="Share of successful iterations, run by run.",
        x_label="run, oldest first",
        y_label="% of the iterations",
        series=(_series("succeeded", "sustained", shares),),
    )


def _series(
    name: str,
    tone: Tone,
    values: Sequence[float | None],
    kind: Literal["line", "dashed"] = "line",
) -> ChartSeries:
    """Return a figure over the runs that have it."""
    known = [(number, value) for number, value in enumerate(values, 1) if value is not None]
    return ChartSeries(
        name, kind, tone, tuple((float(number), round(value, 6)) for number, value in known)
    )
