"""Charts of a search and of a load that was not a task's."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Literal

import numpy as np

from loadstone.analysis import series
from loadstone.analysis.arrays import Floats, Ints
from loadstone.analysis.model import TICK_S, Trial, TrialState
from loadstone.diagnosis.resources import Timeline
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable
from loadstone.monitor.roles import Role
from loadstone.report import figures, prediction, trial_figures
from loadstone.report.chart import Band, Chart, ChartSeries, MarkedSpan, Tone, Xy, with_data
from loadstone.report.section import Answer
from loadstone.report.sections.tables import TONES, tone_of
from loadstone.report.sections.trials import NEAR, first_degraded, last_sustained, paced
from loadstone.result.model import Measurement
from loadstone.search.curve import of_curve
from loadstone.search.low_load import is_low_load
from loadstone.search.model import Capacity

SamplesOf = Callable[[Trial], Samples]
MOST_POINTS = 1200  # of one trial in one chart
MOST_BINS = 80
LEAST_WATCHED_S = 2.0  # of load in a trial; in shorter ones utilisation is too coarse
LEAST_IN_BIN = 30  # completions
# Distinct colours for the busiest resources.
RESOURCE_TONES: tuple[Tone, ...] = (
    "degraded",
    "p50",
    "sustained",
    "undecided",
    "invalid",
    "even",
)


def of(measurement: Measurement, prefix: str, samples_of: SamplesOf) -> tuple[Chart, ...]:
    """Return the charts for which a measurement has data."""
    around = _around(measurement)
    if measurement.policy != "search":
        charts = [
            _latency_over_time(around, prefix, samples_of, ""),
            resources_over_time(around, prefix),
            _backlog(around, prefix, ""),
        ]
        return with_data(charts)
    curve = of_curve(measurement.trials)
    # Above N latency grows with a trial's length, so only those of one length make a curve.
    level = curve or paced(measurement)
    next_to = ", next to N" if measurement.capacity and measurement.capacity.rate_rps else ""
    charts = [
        _throughput(paced(measurement), curve, measurement, prefix),
        _latency(level, measurement, prefix),
        _latency_over_time(around, prefix, samples_of, next_to),
        resources_over_time(around, prefix),
        _resources_by_rate(measurement, prefix),
        _backlog(around, prefix, next_to),
        _saturated(measurement, prefix),
        _shares(measurement, prefix, samples_of),
    ]
    return with_data(charts)


def _around(measurement: Measurement) -> tuple[Trial, ...]:
    """Return the trials next to N: the last sustained, the first degraded, else the longest."""
    found = [t for t in (last_sustained(measurement), first_degraded(measurement)) if t]
    if not found and measurement.trials:
        under_load = [t for t in measurement.trials if not is_low_load(t)] or measurement.trials
        found = [max(under_load, key=lambda t: t.stats.load_s)]
    return tuple(found)


def _throughput(
    level: list[Trial], curve: list[Trial], measurement: Measurement, prefix: str
) -> Chart:
    rates = [t.rate_rps or 0.0 for t in (*level, *curve)]
    lines = [ChartSeries("all completed", "dashed", "even", tuple((r, r) for r in _ends(rates)))]
    if len(curve) > 1:
        data = tuple((t.rate_rps or 0.0, t.stats.throughput_rps) for t in curve)
        lines.append(ChartSeries("curve", "line", "metered", data))
    for state, tone in TONES.items():
        data = tuple(
            (t.rate_rps or 0.0, t.stats.throughput_rps) for t in level if t.verdict.state is state
        )
        if data:
            lines.append(ChartSeries(state.value, "points", tone, data))
    return Chart(
        id=f"{prefix}-throughput",
        title="Completed against offered",
        summary=(
            "On the dashed line all that is offered is completed; where a point falls below it, "
            "the service no longer keeps up."
        ),
        x_label="offered per second",
        y_label="completed per second",
        series=tuple(lines) if rates else (),
        band=_band(measurement.capacity),
        from_zero_x=False,
        from_zero_y=False,
    )


def _latency(level: list[Trial], measurement: Measurement, prefix: str) -> Chart:
    valid = [t for t in level if t.verdict.state is not TrialState.INVALID and t.stats.ok]
    lines: tuple[tuple[Tone, str, Callable[[Trial], float]], ...] = (
        ("p50", "half within", lambda t: 1000 * t.stats.total.median_s),
        ("p95", "95 % within", lambda t: 1000 * t.stats.total.p95_s),
        ("p99", "99 % within", lambda t: 1000 * t.stats.total.p99_s),
    )
    return Chart(
        id=f"{prefix}-latency",
        title="Latency against offered",
        summary=(
            "Below N the latency is nearly that of the work itself; above N it is mostly waiting, "
            "and grows as long as the trial lasts."
        ),
        x_label="offered per second",
        y_label="latency, ms",
        series=tuple(
            ChartSeries(name, "line", tone, tuple((t.rate_rps or 0.0, figure(t)) for t in valid))
            for tone, name, figure in lines
            if len(valid) > 1
        ),
        band=_band(measurement.capacity),
        from_zero_x=False,
    )


def _saturated(measurement: Measurement, prefix: str) -> Chart:
    """Show the basis of a metered N: completions per second of a saturated service."""
    band = _band(measurement.capacity, "y")
    near = band.low * NEAR if band else 0.0
    busy = [
        t
        for t in measurement.trials
        if trial_figures.is_metered(t) and t.is_valid and t.stats.throughput_rps >= near
    ]
    ok = [int(n) for t in busy for n in t.timeline.ok]
    # Bins wide enough that a single completion does not look like a wave.
    per_tick = sum(ok) / len(ok) if ok else 0.0
    wide = max(-(-len(ok) // MOST_POINTS), round(LEAST_IN_BIN / per_tick)) if per_tick else 1
    data = tuple(
        ((start + wide / 2) * TICK_S, sum(ok[start : start + wide]) / (wide * TICK_S))
        for start in range(0, len(ok) - wide + 1, wide)
    )
    return Chart(
        id=f"{prefix}-saturated",
        title="Completed per second, kept busy",
        summary=(
            "What the service completed while it was never without work, "
            f"averaged over {wide * TICK_S:g} s each: the level is its capacity, the waves are why "
            "N has an interval."
        ),
        x_label="seconds of saturation",
        y_label="completed per second",
        series=(ChartSeries("completed", "line", "metered", data),) if len(data) > 3 else (),
        band=band,
    )


def _latency_over_time(
    trials: tuple[Trial, ...], prefix: str, samples_of: SamplesOf, next_to: str
) -> Chart:
    clouds: list[ChartSeries] = []
    lines: list[ChartSeries] = []
    missing: list[str] = []
    for trial in trials:
        name, tone = _name(trial), tone_of(trial)
        try:
            points = series.points(samples_of(trial), trial.actions)
        except EnvironmentUnusable:
            # Old samples may have been deleted; their statistics remain.
            missing.append(name)
            continue
        few = series.thinned(points, MOST_POINTS)
        bins = series.bins(points, MOST_BINS)
        clouds.append(ChartSeries(f"{name}, each", "cloud", tone, pairs(few.due_s, few.latency_ms)))
        lines.append(
            ChartSeries(f"{name}, median", "line", tone, pairs(bins.middle_s, bins.p50_ms))
        )
    note = f" The samples of {' and '.join(missing)} are not there any more." if missing else ""
    return Chart(
        id=f"{prefix}-time",
        title=f"Latency over time{next_to}",
        summary=(
            "Each dot is one request, at the moment at which it was due. A level band is a service "
            f"that keeps up; a rising one is a waiting line that grows.{note}"
        ),
        x_label="seconds since the trial began",
        y_label="latency, ms",
        series=(*clouds, *lines),
    )


def resources_over_time(trials: Sequence[Trial], prefix: str) -> Chart:
    """Return the utilisation of the busiest resources in the last trial that was watched."""
    watched = [one for one in trials if one.resources is not None]
    timelines = watched[-1].resources.timelines if watched and watched[-1].resources else ()
    is_paced = bool(watched) and watched[-1].rate_rps is not None
    of = f" at {_name(watched[-1])}" if is_paced else ""
    return Chart(
        id=f"{prefix}-resources",
        title=f"Resources over time{of}",
        summary=(
            "The share of each resource that was in use. What stays at the top while the backlog "
            "grows is what gives way."
        ),
        x_label="seconds since the trial began",
        y_label="utilisation, %",
        series=utilisations(timelines),
    )


def utilisations(timelines: Sequence[Timeline]) -> tuple[ChartSeries, ...]:
    """Return a line for each of the busiest resources, in percent."""
    return tuple(
        ChartSeries(
            one.name, "line", tone, tuple((at_s, 100 * share) for at_s, share in one.points)
        )
        for one, tone in zip(timelines, RESOURCE_TONES, strict=False)
    )


def _resources_by_rate(measurement: Measurement, prefix: str) -> Chart:
    """Return utilisation over the rate, for the resources with the highest peaks."""
    found: dict[str, list[Xy]] = {}
    for trial in measurement.trials:
        if trial.resources is None or trial.stats.load_s < LEAST_WATCHED_S or not trial.is_valid:
            continue
        rate_rps = trial.stats.throughput_rps if trial.rate_rps is None else trial.rate_rps
        for use in trial.resources.observation.uses:
            if use.is_time_shared and use.role != Role.GENERATOR:
                found.setdefault(use.name, []).append((rate_rps, 100 * use.utilisation))
    busiest = sorted(found, key=lambda name: -max(share for _, share in found[name]))
    predicted = measurement.prediction
    marked = (
        (MarkedSpan(predicted.low_rps, predicted.high_rps, "predicted N", "undecided"),)
        if predicted and not prediction.unwatched(measurement)
        else ()
    )
    rates = {rate_rps for points in found.values() for rate_rps, _ in points}
    return Chart(
        id=f"{prefix}-resources-by-rate",
        title="Resources against offered",
        summary=(
            "The share of each resource that was in use, by what was offered (in closed loops, by "
            "what was completed). What reaches the top first limits N."
        ),
        x_label="requests per second",
        y_label="utilisation, %",
        series=tuple(
            ChartSeries(name, "points", tone, tuple(sorted(found[name])))
            for name, tone in zip(busiest, RESOURCE_TONES, strict=False)
        )
        if len(rates) > 1
        else (),
        band=_band(measurement.capacity),
        spans=marked,
    )


def _backlog(trials: tuple[Trial, ...], prefix: str, next_to: str) -> Chart:
    return Chart(
        id=f"{prefix}-backlog",
        title=f"Backlog over time{next_to}",
        summary="Requests that were due and had not ended. Sustained means that it does not grow.",
        x_label="seconds since the trial began",
        y_label="requests waiting or in work",
        series=tuple(
            ChartSeries(
                _name(t),
                "area",
                tone_of(t),
                tuple(_peaks(t.timeline.in_flight)),
            )
            for t in trials
        ),
    )


def _peaks(counts: Ints) -> Iterator[Xy]:
    """Yield a count per tick; of long loads the highest of each stretch, MOST_POINTS at most."""
    wide = -(-len(counts) // MOST_POINTS) or 1
    for start in range(0, len(counts), wide):
        at = start + int(np.argmax(counts[start : start + wide]))
        yield (at + 1) * TICK_S, float(counts[at])


def _shares(measurement: Measurement, prefix: str, samples_of: SamplesOf) -> Chart:
    trial = last_sustained(measurement)
    data: tuple[Xy, ...] = ()
    if trial is not None:
        # Without samples there is no curve; the page says so beside the chart over time.
        with suppress(EnvironmentUnusable):
            data = pairs(*series.shares(series.points(samples_of(trial), trial.actions)))
    return Chart(
        id=f"{prefix}-shares",
        title="Answered within, below N",
        summary=(
            "How many percent of the requests were answered within which time, at the highest "
            "rate that was sustained."
        ),
        x_label="latency, ms",
        y_label="% of the requests",
        series=(ChartSeries(_name(trial), "line", "sustained", data),) if trial and data else (),
    )


def _band(capacity: Capacity | None, axis: Literal["x", "y"] = "x") -> Band | None:
    if capacity is None:
        return None
    sides = (capacity.low_rps, capacity.rate_rps, capacity.high_rps)
    known = [side for side in sides if side is not None]
    if not known:
        return None
    label = Answer("N", figures.n(capacity), "", "").line
    return Band(low=known[0], high=known[-1], at=capacity.rate_rps, label=label, axis=axis)


def _name(trial: Trial) -> str:
    if trial.rate_rps is None:
        return trial_figures.verdict(trial)
    return f"{figures.rate(trial.rate_rps)}/s {trial_figures.verdict(trial)}"


def _ends(values: list[float]) -> tuple[float, ...]:
    return (min(values) * 0.96, max(values) * 1.02) if values else ()


def pairs(x: Floats, y: Floats) -> tuple[Xy, ...]:
    """Return points with at most six decimals."""
    return tuple(zip(x.round(6).tolist(), y.round(6).tolist(), strict=True))
