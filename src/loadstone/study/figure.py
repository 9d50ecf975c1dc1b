"""One figure with its interval, from a search or a phase of load."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, isfinite, log, sqrt
from statistics import fmean, stdev
from typing import assert_never

from loadstone.analysis.fault_effect import summarize
from loadstone.analysis.interval import CONFIDENCE, student_t
from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.diagnosis.demand import KINDS
from loadstone.report.generator import generator_of
from loadstone.report.sections.trials import representative
from loadstone.result.model import Measurement as Measured
from loadstone.result.model import Run
from loadstone.result.outcome import unmeasured_faults
from loadstone.study.model import (
    ClosedLoopStep,
    FaultMeasurement,
    FaultRow,
    Figure,
    Measurement,
    SearchMeasurement,
    StepsMeasurement,
    Tasks,
)

# Number of batches of ticks: neighbouring ticks are correlated, batch means hardly are.
BATCHES = 10
LEAST_BATCHES = 5
LEAST_LOAD_S = 1.0  # the throughput of a shorter load is mostly its start
NOT_COUNTED = (
    "no statements were counted: MariaDB counts them, with pymysql installed, in loads of half a "
    "second or longer"
)


# Why a workload has no figure although iterations ended.
_NOT_KNOWN = {
    Figure.STATEMENTS: NOT_COUNTED,
    Figure.KEYSTONE: "requests to Keystone were not counted: no compute cloud",
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval in the study's unit; None: unknown."""

    value: float | None
    low: float | None
    high: float | None
    confidence: float
    is_range: bool = False  # too wide for a number: the value is only the middle of the interval

    @property
    def is_at_least(self) -> bool:
        """Whether the value is only a lower bound."""
        return self.value is not None and self.low is not None and self.high is None


@dataclass(frozen=True, slots=True)
class Costs:
    """What a service needs to bear its load; None: not known."""

    p99_ms: float | None  # of the fastest sustained trial of a search, or of the step
    cpu_ms: float | None  # of the whole service, per request
    memory_mb: float | None  # of the service's own processes, without its database


@dataclass(frozen=True, slots=True)
class TurnFigure:
    """Result of one turn in one row of the table."""

    estimate: Estimate | None
    is_valid: bool | None  # whether the generator was not the limit; None: nothing was measured
    shortcoming: str | None = None  # why there is no figure, or why it is doubtful
    limit: str | None = None  # ids of the findings that name the limit
    costs: Costs | None = None


def of_turn(
    run: Run, measurement: Measurement, *, is_reference: bool = False
) -> dict[str | None, TurnFigure]:
    """Return the figures of one turn by step; steps after a kill are missing."""
    match measurement:
        case SearchMeasurement():
            of_one = _of_reference if is_reference else _of_search
            return dict(of_one(one) for one in _searches(run)[:1])
        case StepsMeasurement(figure=figure, steps=steps):
            pairs = zip(steps, run.measurements, strict=False)
            return {
                step.name: _of_step(step, one.trials[0], one, figure)
                for step, one in pairs
                if step.timed and one.trials
            }
        case Tasks(figure=figure, names=names, warm_ups=warm_ups):
            performed = zip(names, run.measurements[warm_ups:], strict=False)
            return {name: _of_workload(one, figure) for name, one in performed}
        case FaultMeasurement(rows=rows):
            return dict(_of_every_fault(rows, run))
        case _:
            assert_never(measurement)


def timed(run: Run, measurement: Measurement) -> tuple[Measured, ...]:
    """Return the measurements of a turn without those that only prepare."""
    if isinstance(measurement, Tasks):
        return run.measurements[measurement.warm_ups :]
    if isinstance(measurement, SearchMeasurement):
        return _searches(run)
    if not isinstance(measurement, StepsMeasurement):
        return run.measurements
    pairs = zip(measurement.steps, run.measurements, strict=False)
    return tuple(one for step, one in pairs if step.timed)


def _searches(run: Run) -> tuple[Measured, ...]:
    """Return the measurements without warm-ups."""
    return tuple(one for one in run.measurements if one.policy == "search")


def unsteady(run: Run, measurement: Measurement) -> dict[str, str]:
    """Return problems in steps that are not timed, which may explain others."""
    if not isinstance(measurement, StepsMeasurement):
        return {}
    pairs = zip(measurement.steps, run.measurements, strict=False)
    problems = {
        step.name: _shortcoming(step, one.trials[0], may_be_cut=False)
        for step, one in pairs
        if not step.timed and one.trials
    }
    return {name: why for name, why in problems.items() if why}


def is_valid(run: Run, measurement: Measurement, *, is_reference: bool) -> bool:
    """Return whether a turn need not be repeated because the load generator was the limit."""
    found = of_turn(run, measurement, is_reference=is_reference)
    return all(one.is_valid is not False for one in found.values())


def most_completed_rps(one: Measured) -> float | None:
    """Return the most that was completed without failures, if the generator limited the search.

    That is a lower bound of N. None if something else was the reason for no N, or if the load
    generator was the limit in every trial: then something is wrong with this machine.
    """
    if one.capacity is None or Cause.GENERATOR not in one.capacity.causes:
        return None
    held = [
        trial
        for trial in one.trials
        if not trial.stats.failed and trial.stats.load_s >= LEAST_LOAD_S
    ]
    if not any(trial.health is not None and trial.health.is_valid for trial in held):
        return None
    return max(trial.stats.throughput_rps for trial in held) or None


def _of_reference(one: Measured) -> tuple[None, TurnFigure]:
    """Return the figure of `loadstone serve`: the load generator may be the limit before it is."""
    bound = most_completed_rps(one)
    if bound is None:
        return _of_search(one)
    why = one.capacity.words[:1] if one.capacity else ()
    return None, TurnFigure(Estimate(bound, bound, None, 0.0), True, "; ".join(why) or None)


def _of_search(one: Measured) -> tuple[None, TurnFigure]:
    found = one.capacity
    if found is None:
        return None, _found(None, one, None)
    middle = found.as_repeat.rate_rps
    is_range = found.rate_rps is None and middle is not None
    estimate = Estimate(middle, found.low_rps, found.high_rps, found.confidence, is_range)
    why = "; ".join(found.words) if middle is None else None
    return None, _found(estimate, one, why or None)


def _of_step(step: ClosedLoopStep, trial: Trial, one: Measured, figure: Figure) -> TurnFigure:
    is_counted = figure is Figure.STATEMENTS  # a request costs the same in a load that is cut short
    why = _shortcoming(step, trial, may_be_cut=is_counted)
    estimate = None if why else of_trial(trial, figure)
    if estimate is not None and estimate.value is None:
        estimate, why = None, _NOT_KNOWN.get(figure, "no iteration succeeded")
    return _found(estimate, one, why)


def _found(estimate: Estimate | None, one: Measured, why: str | None) -> TurnFigure:
    generator, gave_way = generator_of(one), _gave_way(one)
    if generator is None or generator.is_valid:
        is_valid = None if generator is None else True
        return TurnFigure(estimate, is_valid, why, gave_way, _costs(one))
    return TurnFigure(estimate, False, why or _limit(generator.reasons), gave_way, _costs(one))


def _costs(one: Measured) -> Costs:
    trial, watched, cpu_s = representative(one), one.resources, one.cpu_per_request_s
    memory = watched.observation.figure("service_memory_bytes") if watched else None
    return Costs(
        p99_ms=_value(trial, Figure.P99) if trial else None,
        cpu_ms=None if cpu_s is None else 1000.0 * cpu_s,
        memory_mb=None if memory is None else memory / 1e6,
    )


def _gave_way(one: Measured) -> str | None:
    """Return the id of the first finding; if that is about other programs, the second id, too."""
    ids = [found.id for found in one.resources.findings] if one.resources else []
    return ", ".join(ids[:2] if ids[0] == "other-work" else ids[:1]) if ids else None


def _of_workload(one: Measured, figure: Figure) -> TurnFigure:
    valid = one.health.is_valid if one.health else None
    broken = "; ".join(f"{row.criterion}: {row.detail}" for row in one.checks if not row.success)
    why = one.failure or broken or (None if one.stats else "no iteration ended")
    value = None
    if figure is Figure.SUCCESS and one.failure is None and one.trial is not None:
        value = _value(one.trial, figure)
        valid = True  # late iterations count, too
        why = broken or (why if value is None else None)
    elif not why and one.trial is not None:
        value = _value(one.trial, figure)
        if value is None:
            why = _NOT_KNOWN.get(figure, "no iteration succeeded")
        elif figure is Figure.KEYSTONE:
            valid = True  # late iterations send the same requests
        elif figure is not Figure.STATEMENTS and one.health and not valid:
            why = _limit(one.health.limits)
    estimate = None if value is None else Estimate(value, None, None, 0.0)
    return TurnFigure(estimate, valid, why or None, _gave_way(one), _costs(one))


def _of_every_fault(rows: Sequence[FaultRow], run: Run) -> Iterator[tuple[str, TurnFigure]]:
    reported: set[str | None] = {None}
    for row in rows:
        found = _of_faults(row, run)
        # One load gives all rows of a fault: its shortcoming is reported once.
        is_reported = found.estimate is not None and found.shortcoming in reported
        reported.add(found.shortcoming)
        yield row.name, replace(found, shortcoming=None) if is_reported else found


def _of_faults(row: FaultRow, run: Run) -> TurnFigure:
    unmeasured = [
        sentence
        for one in run.measurements
        for action, sentence in unmeasured_faults(one)
        if action == row.sentence
    ]
    found = [
        (one, trial)
        for one in run.measurements
        for trial in one.trials
        if any(effect.action == row.sentence for effect in trial.faults)
    ]
    if not found:
        failures = [one.failure for one in run.measurements if one.failure]
        return TurnFigure(None, None, (failures or unmeasured or ["no figures"])[0])
    if unmeasured:  # their figures would differ if the service was still down
        return TurnFigure(None, True, "; ".join(unmeasured))
    measurement = found[0][0]
    effects = [one for _, trial in found for one in trial.faults if one.action == row.sentence]
    [summary] = summarize(effects)
    estimate = summary.figure(row.figure)
    if estimate is None:
        return TurnFigure(None, True, "not reached in any repeat")
    if row.figure == "mttr_s" and summary.not_shown:
        why = f"recovery is not shown in {summary.not_shown} of {summary.repeats} repeats"
        return TurnFigure(None, True, why)
    if missing := summary.repeats - estimate.count:  # a mean of the others would be too short
        why = f"not reached in {missing} of {summary.repeats} repeats"
        return TurnFigure(None, True, why)
    confidence = CONFIDENCE if estimate.low is not None else 0.0
    scale = 100.0 if row.label.endswith("%") else 1.0
    low, high = (None if side is None else scale * side for side in (estimate.low, estimate.high))
    return _found(Estimate(scale * estimate.mean, low, high, confidence), measurement, None)


def _limit(reasons: Sequence[str]) -> str:
    return f"the load generator was the limit ({'; '.join(reasons[:1])})"


def _value(trial: Trial, figure: Figure) -> float | None:
    """Return the figure of a trial; None if it was not counted."""
    stats = trial.stats
    total = stats.total
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
            return stats.completed_rps
        case Figure.TOTAL:
            return stats.load_s
        case Figure.SUCCESS:
            ended = stats.ok + stats.failed
            return 100.0 * stats.ok / ended if ended else None
        case Figure.KEYSTONE:
            return trial.identity.total_per_iteration if trial.identity else None
        case Figure.STATEMENTS:
            return statements(trial)
        case _:  # without a success there is none
            return 1000.0 * seconds[figure] if isfinite(seconds[figure]) else None


def _shortcoming(step: ClosedLoopStep, trial: Trial, *, may_be_cut: bool) -> str | None:
    """Describe why a phase does not measure the service's speed."""
    if trial.verdict.state is TrialState.DEGRADED:
        return "; ".join(trial.verdict.reasons)
    ended = trial.stats.ok + trial.stats.failed
    if ended < step.iterations and not may_be_cut:
        return (
            f"only {ended:,} of {step.iterations:,} iterations ended in {step.at_most_s:g} s; "
            "a higher at_most_s gives them time"
        )
    return None


def of_trial(trial: Trial, figure: Figure) -> Estimate:
    """Return the figure of a trial; rate, mean and total have an interval.

    Batch means: the completions of whole ticks, in up to BATCHES batches, Student's t on the
    logarithm of their rate. In a closed loop without think time mean = concurrency / rate
    (Little's law), so all three scatter in the same proportion.
    """
    value = _value(trial, figure)
    half = _half_width(trial) if figure in (Figure.RATE, Figure.TOTAL, Figure.MEAN) else None
    if half is None or value is None:
        return Estimate(value, None, None, 0.0)
    return Estimate(value, value * exp(-half), value * exp(half), CONFIDENCE)


def statements(trial: Trial) -> float | None:
    """Return SQL statements that read or write rows, per iteration; None if not counted."""
    observation = trial.resources.observation if trial.resources else None
    counts = [observation.figure(f"{kind}_per_request") for kind in KINDS] if observation else []
    known = [count for count in counts if count is not None]
    return sum(known) if known else None  # what a cache answers needs none


def _half_width(trial: Trial) -> float | None:
    """Return the half-width of the interval of the rate's logarithm; None if it is too short."""
    ok = trial.timeline.ok[1:-1]  # without the ticks of start and end
    each = max(1, -(-len(ok) // BATCHES))
    count = len(ok) // each
    sums = [int(ok[i * each : (i + 1) * each].sum()) for i in range(count)]
    if count < LEAST_BATCHES or not all(sums):
        return None
    logs = [log(one / fmean(sums)) for one in sums]
    return student_t(count - 1) * stdev(logs) / sqrt(count)
