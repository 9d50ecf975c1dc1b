"""One figure with its interval: what a search or a stretch of load showed."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, stdev
from typing import assert_never

from scipy import stats

from loadstone.analysis.interval import CONFIDENCE
from loadstone.analysis.model import State, Trial
from loadstone.analysis.performance import Showing
from loadstone.report.generator import generator_of
from loadstone.result import Finding, Performance, Result
from loadstone.study.model import Figure, Measurement, Search, Step, Steps, Tasks

# Ticks of one stretch are taken together in so many batches: neighbours resemble each other.
BATCHES = 10
LEAST_BATCHES = 5


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure in the study's unit; None: this side is not known."""

    value: float | None
    low: float | None
    high: float | None
    confidence: float


@dataclass(frozen=True, slots=True)
class Found:
    """What one turn showed in one row of the table."""

    estimate: Estimate | None
    is_valid: bool | None  # the generator was not the limit; None: nothing was measured
    shortcoming: str | None = None  # why there is no figure, or why it says little


def of_turn(result: Result, measurement: Measurement) -> dict[str | None, Found]:
    """Give what one turn found, by step; a kill may have cut the steps short."""
    match measurement:
        case Search():
            return dict(_of_search(finding) for finding in result.findings[:1])
        case Steps(figure=figure, steps=steps):
            pairs = zip(steps, result.findings, strict=False)
            return {
                step.name: _of_step(step, finding.trials[0], finding, figure)
                for step, finding in pairs
                if step.timed and finding.trials
            }
        case Tasks(figure=figure, names=names):
            performed = zip(names, result.performances, strict=False)
            return {name: _of_workload(one, figure) for name, one in performed}
        case _:
            assert_never(measurement)


def timed(result: Result, measurement: Measurement) -> tuple[Finding, ...]:
    """Give the findings of a turn without those of steps that only prepare."""
    if not isinstance(measurement, Steps):
        return result.findings
    pairs = zip(measurement.steps, result.findings, strict=False)
    return tuple(finding for step, finding in pairs if step.timed)


def unsteady(result: Result, measurement: Measurement) -> dict[str, str]:
    """Give what went wrong in steps that are not timed: it costs no figure, but may explain one."""
    if not isinstance(measurement, Steps):
        return {}
    pairs = zip(measurement.steps, result.findings, strict=False)
    said = {
        step.name: _shortcoming(step, finding.trials[0])
        for step, finding in pairs
        if not step.timed and finding.trials
    }
    return {name: why for name, why in said.items() if why}


def is_valid(result: Result, measurement: Measurement) -> bool:
    """Say whether the load generator was the limit in nothing of a turn."""
    return all(one.is_valid is not False for one in of_turn(result, measurement).values())


def _of_search(finding: Finding) -> tuple[None, Found]:
    found = finding.capacity
    if found is None:
        return None, _found(None, finding, None)
    estimate = Estimate(found.rate_rps, found.low_rps, found.high_rps, found.confidence)
    why = "; ".join(found.words) if found.rate_rps is None else None
    return None, _found(estimate, finding, why or None)


def _of_step(step: Step, trial: Trial, finding: Finding, figure: Figure) -> Found:
    why = _shortcoming(step, trial)
    return _found(None if why else of_trial(trial, figure), finding, why)


def _found(estimate: Estimate | None, finding: Finding, why: str | None) -> Found:
    generator = generator_of(finding)
    if generator is None or generator.is_valid:
        return Found(estimate, None if generator is None else True, why)
    return Found(estimate, False, why or _limit(generator.reasons))


def _of_workload(one: Performance, figure: Figure) -> Found:
    valid = one.health.is_valid if one.health else None
    broken = "; ".join(f"{row.criterion}: {row.detail}" for row in one.sla if not row.success)
    why = one.failure or broken or (None if one.showing else "no iteration ended")
    if why or one.showing is None:
        return Found(None, valid, why)
    estimate = Estimate(_value(one.showing, figure), None, None, 0.0)
    return Found(estimate, valid, _limit(one.health.limits) if one.health and not valid else None)


def _limit(reasons: Sequence[str]) -> str:
    return f"the load generator was the limit ({'; '.join(reasons[:1])})"


def _value(showing: Showing, figure: Figure) -> float:
    total = showing.total
    seconds = {
        Figure.MEAN: total.mean_s,
        Figure.P50: total.median_s,
        Figure.P90: total.p90_s,
        Figure.P95: total.p95_s,
        Figure.P99: total.p99_s,
        Figure.MAX: total.max_s,
    }
    match figure:
        case Figure.RATE:
            return showing.throughput_rps
        case Figure.TOTAL:
            return showing.load_s
        case _:
            return 1000.0 * seconds[figure]


def _shortcoming(step: Step, trial: Trial) -> str | None:
    """Say why a stretch shows nothing of the service's speed."""
    if trial.verdict.state is State.DEGRADED:
        return "; ".join(trial.verdict.reasons)
    ended = trial.summary.ok + trial.summary.failed
    if ended < step.iterations:
        words = f"only {ended:,} of {step.iterations:,} iterations ended"
        return f"{words} in {step.at_most_s:g} s; a higher at_most_s gives them time"
    return None


def of_trial(trial: Trial, figure: Figure) -> Estimate:
    """Give a stretch's figure; from one stretch, rate, mean and total have an interval.

    Batch means: the completions of whole ticks, in up to BATCHES batches, Student's t on the
    logarithm of their rate. In a closed loop without think time mean = concurrency / rate
    (Little's law), so all three scatter in the same proportion.
    """
    summary = trial.summary
    value = {
        Figure.RATE: summary.completed_rps,
        Figure.TOTAL: summary.load_s,
        Figure.MEAN: summary.latency.mean_ms,
        Figure.P50: summary.latency.p50_ms,
        Figure.P90: summary.latency.p90_ms,
        Figure.P95: summary.latency.p95_ms,
        Figure.P99: summary.latency.p99_ms,
        Figure.MAX: summary.latency.max_ms,
    }[figure]
    half = _half_width(trial) if figure in (Figure.RATE, Figure.TOTAL, Figure.MEAN) else None
    if half is None:
        return Estimate(value, None, None, 0.0)
    return Estimate(value, value * exp(-half), value * exp(half), CONFIDENCE)


def _half_width(trial: Trial) -> float | None:
    """Give the half-width of the interval of the rate's logarithm; None: too short to tell."""
    ok = trial.ticks.ok[1:-1]  # the first and the last tick hold the start and the end
    each = max(1, -(-len(ok) // BATCHES))
    count = len(ok) // each
    sums = [int(ok[i * each : (i + 1) * each].sum()) for i in range(count)]
    if count < LEAST_BATCHES or not all(sums):
        return None
    logs = [log(one / fmean(sums)) for one in sums]
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * stdev(logs) / sqrt(count)
