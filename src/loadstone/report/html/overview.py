"""The overview table of a page: a row for each measurement, with a link to its section."""

import math
from dataclasses import dataclass

from loadstone.report import figures, names, prediction, words
from loadstone.report.generator import generator_of
from loadstone.report.html.charts import Tone
from loadstone.report.steps import Curve
from loadstone.report.workload import load_in_words
from loadstone.result.model import Measurement


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """The outcome of a measurement. The shape of the mark shows the tone without colour."""

    tone: Tone
    text: str


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """One measurement."""

    anchor: str
    name: str
    about: str
    load: str
    throughput: str
    p95: str
    failures: str
    verdict: RowVerdict


def of_finding(anchor: str, measurement: Measurement) -> MeasurementRow:
    """Return the row of a search or of a fixed load."""
    due = sum(trial.stats.due for trial in measurement.trials)
    failed = sum(trial.stats.failed for trial in measurement.trials)
    trial = words.last_sustained(measurement)
    if measurement.policy != "search":
        trial = next(reversed(measurement.trials), None)
    return MeasurementRow(
        anchor=anchor,
        name=names.of_measurement(measurement),
        about=measurement.scenario,
        load=_load(measurement),
        throughput=_throughput(measurement),
        p95=_seconds(trial.stats.total.p95_s) if trial else figures.MISSING,
        failures=_of(failed, due),
        verdict=_of_search(measurement)
        if measurement.policy == "search"
        else _of_prediction(measurement)
        if measurement.policy == "prediction"
        else _of_fixed_load(measurement),
    )


def _load(measurement: Measurement) -> str:
    if measurement.policy == "search":
        return "search for N"
    return "low load" if measurement.policy == "prediction" else _fixed_load(measurement)


def _throughput(measurement: Measurement) -> str:
    if measurement.policy == "prediction":
        predicted = measurement.prediction
        return f"N = {prediction.rate(predicted)} per s" if predicted else figures.MISSING
    if measurement.policy == "search":
        found = figures.n(measurement.capacity)
        return found if found == figures.NOT_FOUND else f"N = {found} per s"
    if not measurement.trials:
        return figures.MISSING
    return f"{figures.rate(measurement.trials[0].stats.throughput_rps)} per s"


def _fixed_load(measurement: Measurement) -> str:
    parameters = dict(measurement.parameters)
    if "iterations" in parameters and "at once" in parameters:
        return f"{int(parameters['iterations']):,} iterations, {parameters['at once']} at a time"
    rate_rps = measurement.trials[0].rate_rps if measurement.trials else None
    return "fixed load" if rate_rps is None else f"{figures.rate(rate_rps)} per s"


def _of_search(measurement: Measurement) -> RowVerdict:
    generator = generator_of(measurement)
    if generator is not None and not generator.is_valid:
        return RowVerdict("invalid", "load generator was the limit")
    if words.has_interval(measurement.capacity):
        return RowVerdict("sustained", "N found")
    known = (
        measurement.capacity is not None and figures.n(measurement.capacity) != figures.NOT_FOUND
    )
    return RowVerdict("undecided", "N not bounded on both sides" if known else "N not found")


def _of_prediction(measurement: Measurement) -> RowVerdict:
    if measurement.prediction is None:
        return RowVerdict("undecided", "not predicted")
    return RowVerdict("sustained", "predicted")


def _of_fixed_load(measurement: Measurement) -> RowVerdict:
    if not measurement.trials:
        return RowVerdict("undecided", "not completed")
    trial = measurement.trials[0]
    if not trial.is_valid:
        return RowVerdict("invalid", "load generator was the limit")
    return (
        RowVerdict("degraded", "failed") if trial.stats.failed else RowVerdict("sustained", "done")
    )


def of_workload(anchor: str, measurement: Measurement) -> MeasurementRow:
    """Return the row of a workload."""
    stats = measurement.stats
    total = stats.total if stats else None
    return MeasurementRow(
        anchor=anchor,
        name=measurement.scenario,
        about=measurement.subtask,
        load=load_in_words(measurement),
        throughput=f"{figures.rate(stats.throughput_rps)} per s" if stats else figures.MISSING,
        p95=_as_in_table(total.p95_s) if total else figures.MISSING,
        failures=_of(total.count - total.ok, total.count) if total else figures.MISSING,
        verdict=of_sla(measurement),
    )


def of_curve(anchor: str, curve: Curve) -> MeasurementRow:
    """Return the row of a workload that was repeated at rising load."""
    shown = [(step, step.measurement.stats) for step in curve.steps if step.measurement.stats]
    totals = [stats.total for _, stats in shown if stats]
    peak = max((stats.throughput_rps for _, stats in shown if stats), default=math.nan)
    p95s = [total.p95_s for total in totals if math.isfinite(total.p95_s)]
    broken = [step for step in curve.steps if not step.measurement.checks_passed]
    count = sum(total.count for total in totals)
    first, last = curve.steps[0].value, curve.steps[-1].value
    return MeasurementRow(
        anchor=anchor,
        name=curve.scenario,
        about=curve.steps[0].measurement.subtask,
        load=f"{curve.setting} {first:g} to {last:g}, {len(curve.steps)} steps",
        throughput=f"at most {figures.rate(peak)} per s",
        p95=f"{figures.plain_s(min(p95s))} to {_as_in_table(max(p95s))}"
        if p95s
        else figures.MISSING,
        failures=_of(count - sum(total.ok for total in totals), count),
        verdict=(
            RowVerdict("degraded", f"broken from {curve.setting} {broken[0].value:g} on")
            if broken
            else RowVerdict("sustained", "held")
        ),
    )


def of_sla(measurement: Measurement) -> RowVerdict:
    """Return whether a workload met its SLA, or why that is unknown."""
    if measurement.failure:
        return RowVerdict("degraded", "failed")
    if not measurement.checks_passed:
        broken = ", ".join(row.criterion for row in measurement.checks if not row.success)
        return RowVerdict("degraded", f"broken: {broken}")
    if measurement.health is not None and not measurement.health.is_valid:
        return RowVerdict("invalid", "held, but the load generator was the limit")
    return RowVerdict("sustained", "held")


def _of(failed: int, count: int) -> str:
    return f"{failed:,} of {count:,}"


def _as_in_table(time_s: float) -> str:
    """Return a time of a workload in the unit and digits of its table."""
    return f"{figures.plain_s(time_s)} s" if math.isfinite(time_s) else figures.MISSING


def _seconds(time_s: float) -> str:
    return figures.milliseconds(time_s * 1000)
