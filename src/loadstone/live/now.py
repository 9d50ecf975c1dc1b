"""What is measured at present, as a section of a report."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from loadstone.analysis.model import NOT_JUDGED, Trial
from loadstone.live.state import HostPoint, LiveState, LoadState, Point
from loadstone.plan.load import OpenLoad
from loadstone.report import figures, trial_figures
from loadstone.report.chart import Band, Chart, ChartSeries, MarkedSpan, Tone, with_data
from loadstone.report.generator import cores_of
from loadstone.report.section import (
    Answer,
    Certainty,
    Fact,
    NamedFigure,
    Row,
    Section,
    Table,
    Transcript,
)
from loadstone.report.sections.tables import columns
from loadstone.search.model import Capacity

ROWS = 30  # of the tables behind the charts
LEAST_STEPS = 2  # of N so far, for a chart
TONES: tuple[Tone, ...] = ("p50", "p95")  # of the two sides of a comparison
UNDER_WAY = Certainty("undecided", "under way")


def section(state: LiveState) -> Section:
    """Return the present measurement."""
    return Section(
        id="now",
        title=step(state),
        subtitle=_subtitle(state),
        answer=_answer(state),
        certainty=UNDER_WAY,
        figures=tuple(_figures(state)),
        facts=tuple(_facts(state)),
        charts=with_data(_charts(state)),
        tables=tuple(_tables(state)),
        listings=(Transcript("Messages", "\n".join(state.messages)),) if state.messages else (),
    )


def step(state: LiveState) -> str:
    """Return in a few words what is done at present."""
    if state.is_over:
        return "All is measured"
    if not state.loads:
        return "Between two loads" if state.trials else "Preparing"
    request = state.loads[-1].request
    words = figures.begun(request.purpose)
    if isinstance(request.load, OpenLoad):
        return f"{words}, {figures.rate(request.load.rate_rps)}/s"
    return words


def title(state: LiveState) -> str:
    """Return the title of the browser's tab."""
    if state.so_far:
        return f"N so far {figures.n(state.so_far[-1])}"
    return step(state)


def _subtitle(state: LiveState) -> str:
    took = figures.seconds(max(state.now_s - state.began_s, 0.0))
    parts = [state.heading, f"run {state.run_ids[-1]}" if state.run_ids else "", f"{took} so far"]
    if state.left_s is not None and not state.is_over:
        parts.append(f"at most {figures.seconds(state.left_s)} of load left")
    return " · ".join(filter(None, parts))


def _answer(state: LiveState) -> Answer:
    found = state.so_far[-1] if state.so_far else None
    if found is None:
        number, _, noun = figures.counted(state.sums.ok, "iteration").partition(" ")
        return Answer("completed", number, noun, "")
    interval = figures.interval(found)
    return Answer(
        label="N so far",
        text=figures.n(found),
        unit="per second",
        sentence="",
        value=found.rate_rps,
        low=found.low_rps,
        high=found.high_rps,
        interval="" if interval == figures.MISSING else interval,
        confidence=found.confidence,
    )


def _figures(state: LiveState) -> Iterator[NamedFigure]:
    sides = state.sides
    if len(sides) == 1:
        yield from _of_load(sides[0])
        return
    for side, load in zip("AB", sides, strict=False):
        for one in (_completed(load), *_mean_latency(load), _errors(load)):
            yield replace(one, name=f"{one.name}-{side}", label=f"{side}: {one.label}")


def _of_load(load: LoadState) -> Iterator[NamedFigure]:
    offered = load.points[-1].offered_rps if load.points else None
    paced = "offered" if load.is_paced else "started"
    yield NamedFigure("offered", paced, offered, "/s", figures.rate(offered))
    yield _completed(load)
    latency = load.points[-1].quantiles_ms if load.points else ()
    if latency:
        names = ("latency p50", "latency p95", "latency p99")
        for name, value_ms in zip(names, latency, strict=True):
            yield NamedFigure(name, name, value_ms, "", figures.milliseconds(value_ms))
    else:
        yield from _mean_latency(load)
    in_flight = load.progress.in_flight
    yield NamedFigure("backlog", "backlog", in_flight, "", f"{in_flight:,}")
    yield _errors(load)
    ended = load.progress.ok + load.progress.failed
    if load.count is not None:
        yield NamedFigure("ended", "ended", ended, f"of {load.count:,}", f"{ended:,}")


def _completed(load: LoadState) -> NamedFigure:
    completed = load.points[-1].completed_rps if load.points else None
    return NamedFigure("completed", "completed", completed, "/s", figures.rate(completed))


def _mean_latency(load: LoadState) -> Iterator[NamedFigure]:
    if load.latency_ms is not None:
        shown = figures.milliseconds(load.latency_ms)
        yield NamedFigure("latency", "latency, mean", load.latency_ms, "", shown)


def _errors(load: LoadState) -> NamedFigure:
    failed = load.progress.failed
    return NamedFigure("errors", "errors in this load", failed, "", f"{failed:,}")


def _facts(state: LiveState) -> Iterator[Fact]:
    if state.busiest:
        text = ", ".join(f"{name} {100 * share:.0f} %" for name, share in state.busiest)
        yield Fact("busiest", text)
    for fault in state.faults:
        since = figures.seconds(max(state.now_s - fault.since_s, 0.0))
        if fault.until_s is None:
            yield Fact("fault", f"{fault.sentence}: in force for {since}", tone="degraded")
        else:
            lasted = figures.seconds(fault.until_s - fault.since_s)
            yield Fact("fault", f"{fault.sentence}: undone after {lasted}")
    if state.trial is not None:
        yield from _last_trial(state.trial)
    yield from _present_generator(state.loads)
    sums = state.sums
    if sums.errors:
        text = ", ".join(f"{kind} {count:,}" for kind, count in sums.errors[:3])
        yield Fact("errors so far", f"{sums.failed:,}: {text}", tone="degraded")
    if sums.verdicts:
        text = ", ".join(f"{count} {verdict}" for verdict, count in sums.verdicts)
        yield Fact("trials so far", text)


def _last_trial(trial: Trial) -> Iterator[Fact]:
    """Yield the verdict of a trial, if it was judged, and the health of its load generator."""
    if trial.verdict is not NOT_JUDGED:
        verdict = trial_figures.verdict(trial)
        rate = "" if trial.rate_rps is None else f" at {figures.rate(trial.rate_rps)}/s"
        why = f": {trial.verdict.reasons[0]}" if trial.verdict.reasons else ""
        yield Fact("last trial", f"{verdict}{rate}{why}")
    if trial.health is not None:
        lag = figures.milliseconds(trial.health.lag_p99_ms)
        limits = "; ".join(trial.health.limits)
        cpu = f"{figures.percent(trial.health.cpu_share)} of {cores_of(trial.health.threads)}"
        health = f"send lag p99 {lag}, {cpu}"
        text = f"{health}; it was the limit: {limits}" if limits else health
        yield Fact("generator", text, tone="invalid" if limits else None)


def _present_generator(loads: Sequence[LoadState]) -> Iterator[Fact]:
    """Yield the health of the load generator in the loads under way."""
    for load in loads:
        if (lag_ms := load.progress.lag_p99_ms) is not None:
            lag = figures.milliseconds(lag_ms)
            yield Fact("generator now", f"send lag p99 {lag} in the present load")
        for host in load.hosts:
            if host.lost:
                yield Fact("fleet", f"{host.name} {host.lost}", tone="invalid")


def _charts(state: LiveState) -> Iterator[Chart]:
    loads = state.sides
    if not loads:
        return
    spans = tuple(_spans(state, loads[-1]))
    tones: tuple[Tone, ...] = TONES if len(loads) > 1 else ("sustained",)
    series: list[ChartSeries] = []
    for name, tone, load in zip("AB", tones, loads, strict=False):
        side = f"{name}, " if len(loads) > 1 else ""
        if load.is_paced:
            offered = _line(load, lambda one: one.offered_rps)
            series.append(ChartSeries(f"{side}offered", "dashed", "even", offered))
        completed = _line(load, lambda one: one.completed_rps)
        series.append(ChartSeries(f"{side}completed", "line", tone, completed))
        if load.progress.failed:
            failed = _line(load, lambda one: one.failed_rps)
            series.append(ChartSeries(f"{side}failed", "line", "degraded", failed))
    yield _over_time("now-rate", "Offered and completed", "per second", series, spans)
    yield _over_time("now-latency", "Latency", "ms", list(_latencies(loads)), spans)
    areas: tuple[Tone, ...] = ("metered", "p95")
    backlog = [
        ChartSeries(f"{name}, waiting or in work", "area", tone, _line(load, lambda p: p.backlog))
        for name, tone, load in zip("AB", areas, loads, strict=False)
    ]
    if len(loads) == 1:
        backlog = [replace(backlog[0], name="waiting or in work")]
    yield _over_time("now-backlog", "Backlog", "iterations", backlog, spans)
    yield _narrowing(state.so_far)


def _latencies(loads: Sequence[LoadState]) -> Iterator[ChartSeries]:
    if len(loads) > 1:
        for name, tone, load in zip("AB", TONES, loads, strict=False):
            yield ChartSeries(f"{name}, mean", "line", tone, _line(load, lambda p: p.latency_ms))
        return
    [load] = loads
    if not any(one.quantiles_ms for one in load.points):
        yield ChartSeries("mean", "line", "p50", _line(load, lambda one: one.latency_ms))
        return
    lines: tuple[tuple[Tone, str, int], ...] = (
        ("p99", "99 % within", 2),
        ("p95", "95 % within", 1),
        ("p50", "half within", 0),
    )
    for tone, name, at in lines:
        data = _line(load, partial(_quantile, at))
        yield ChartSeries(name, "line", tone, data)


def _quantile(at: int, point: Point) -> float | None:
    return point.quantiles_ms[at] if point.quantiles_ms else None


def _over_time(
    name: str, heading: str, unit: str, series: list[ChartSeries], spans: tuple[MarkedSpan, ...]
) -> Chart:
    last = [f"{one.name} {figures.rate(one.data[-1][1])}" for one in series if one.data]
    return Chart(
        id=name,
        title=heading,
        summary=f"Last: {', '.join(last)}.",
        x_label="seconds since the load began",
        y_label=unit,
        series=tuple(series),
        spans=spans,
    )


def _narrowing(found: Sequence[Capacity]) -> Chart:
    """Show how the interval of N has narrowed."""
    known = [(float(at), one) for at, one in enumerate(found, 1)]
    ends: tuple[tuple[str, Tone, Callable[[Capacity], float | None]], ...] = (
        ("at most", "even", lambda one: one.high_rps),
        ("N", "p50", lambda one: one.rate_rps),
        ("at least", "even", lambda one: one.low_rps),
    )
    series = tuple(
        ChartSeries(
            name,
            "line" if name == "N" else "dashed",
            tone,
            tuple((at, value) for at, one in known if (value := end(one)) is not None),
        )
        for name, tone, end in ends
    )
    low, high = (found[-1].low_rps, found[-1].high_rps) if found else (None, None)
    band = None
    if low is not None and high is not None:
        band = Band(low, high, found[-1].rate_rps, "", "y")
    return Chart(
        id="now-n",
        title="N so far",
        summary="What the search would report if it ended there: the interval narrows.",
        x_label="steps of the search",
        y_label="per second",
        series=series if len(known) >= LEAST_STEPS else (),
        band=band,
        from_zero_x=False,
        from_zero_y=False,
    )


def _spans(state: LiveState, load: LoadState) -> Iterator[MarkedSpan]:
    for fault in state.faults:
        until_s = fault.until_s if fault.until_s is not None else state.now_s
        low, high = (max(at_s - load.start_s, 0.0) for at_s in (fault.since_s, until_s))
        if high > low:
            yield MarkedSpan(low, high, fault.sentence, "degraded")


def _tables(state: LiveState) -> Iterator[Table]:
    yield from _n_so_far(state.so_far)
    sides = state.sides
    for load in sides:
        if load.hosts:
            yield _hosts(load.hosts)
    for name, load in zip("AB", sides, strict=False):
        if load.points:
            of = "the present load" if len(sides) == 1 else f"the present load of {name}"
            yield _points(f"Figures of {of}, the last first", load.points[-ROWS:])


def _hosts(hosts: Sequence[HostPoint]) -> Table:
    numbers = ("offered /s", "completed /s", "failed", "in flight", "CPU, cores", "late p99 ms")
    rows = tuple(
        Row(
            (
                f"{one.name} (lost)" if one.lost else one.name,
                figures.rate(one.offered_rps),
                figures.rate(one.completed_rps),
                f"{one.failed:,}",
                f"{one.in_flight:,}",
                f"{one.cpu_cores:.2f}",
                _plain_ms(one.lag_p99_ms),
            )
        )
        for one in hosts
    )
    return Table("Hosts of the fleet", columns("host", numbers=numbers), rows, is_primary=True)


def _points(title: str, points: Sequence[Point]) -> Table:
    has_quantiles = any(one.quantiles_ms for one in points)
    latencies = ("p50 ms", "p95 ms", "p99 ms") if has_quantiles else ("mean ms",)
    heads = ("s", "offered /s", "completed /s", "failed /s", "backlog", *latencies)
    rows = tuple(
        Row(
            (
                f"{one.at_s:.1f}",
                figures.rate(one.offered_rps),
                figures.rate(one.completed_rps),
                figures.rate(one.failed_rps),
                f"{one.backlog:,}",
                *(_quantiles(one) if has_quantiles else (_plain_ms(one.latency_ms),)),
            )
        )
        for one in reversed(points)
    )
    return Table(title, columns(numbers=heads), rows)


def _n_so_far(found: Sequence[Capacity]) -> Iterator[Table]:
    if len(found) < LEAST_STEPS:
        return
    heads = (*columns(numbers=("N /s",)), *columns("interval"))
    rows = tuple(Row((figures.n(one), figures.interval(one))) for one in reversed(found[-ROWS:]))
    yield Table("N so far, the last first", heads, rows)


def _quantiles(point: Point) -> tuple[str, ...]:
    found = tuple(map(figures.plain_ms, point.quantiles_ms))
    return found or (figures.MISSING,) * 3


def _plain_ms(value_ms: float | None) -> str:
    return figures.MISSING if value_ms is None else figures.plain_ms(value_ms)


def _line(
    load: LoadState, figure: Callable[[Point], float | None]
) -> tuple[tuple[float, float], ...]:
    return tuple(
        (round(one.at_s, 2), float(value))
        for one in load.points
        if (value := figure(one)) is not None
    )
