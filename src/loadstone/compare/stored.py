"""Compares two stored runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist, fmean

from loadstone.analysis.goal import NO_OBJECTIVES, Goal, goal
from loadstone.analysis.interval import CONFIDENCE, of_ratio
from loadstone.analysis.model import Trial
from loadstone.compare import disturbance
from loadstone.compare.answer import ComparisonAnswer, Criteria, Metric, MetricComparison, answer_of
from loadstone.compare.measure import (
    ERROR_RATE,
    METRIC,
    MOST_PAIRS,
    MOST_SLOWER,
    PAIRED,
    ROLE,
    SAME_WITHIN,
    SIDE,
    STARTS,
)
from loadstone.compare.metrics import CAPACITY, CPU, MEDIAN, P95, P99, THROUGHPUT
from loadstone.compare.pairs import (
    MOST_FAILED,
    PairComparison,
    is_usable,
    of_trials,
    of_turns,
)
from loadstone.compare.section import Compared
from loadstone.compare.turns import duet
from loadstone.compare.where import COUNTED, PROFILED, Where, where
from loadstone.engine.samples import Samples
from loadstone.errors import InvalidInput, MeasurementInvalid
from loadstone.report import figures
from loadstone.report.history import EFFORT, base_title
from loadstone.report.settings import SettingDifference, differences
from loadstone.result.model import WARM_UP, Measurement, Run
from loadstone.search.model import Capacity
from loadstone.store.store import Store


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value with its interval, if known."""

    value: float
    low: float | None = None
    high: float | None = None


OBJECTIVES = "objectives"  # parameter
ENDS = (PROFILED, COUNTED)  # trials at the end, which say where a difference lies
# Parameters that explain no difference.
HIDDEN = {*EFFORT, PAIRED, ROLE, SIDE, ERROR_RATE, MOST_PAIRS, STARTS} - {"method"}
ReadSamples = Callable[[str, Trial], Samples]  # by run id


def compare_runs(
    a: Run, b: Run, criteria: Criteria, samples: ReadSamples, most_slower: float | None = None
) -> Compared:
    """Compare two runs; InvalidInput if they have no scenario in common.

    Raises MeasurementInvalid for the two runs of one comparison without a complete pair.

    The two runs of one comparison are compared in pairs, as during the measurement.
    """
    if a.run_id == b.run_id:
        raise InvalidInput(f"A and B are the same run, {a.run_id}; name two runs")
    pairs = tuple(_matched(a, b))
    is_paired = bool(pairs) and all(_label(one) and _label(one) == _label(x) for one, x in pairs)
    statements: list[str] = []
    notes: list[str] = []
    place: Where | None = None
    metrics: list[tuple[str, tuple[MetricComparison, ...]]] = []
    for one, other in pairs:
        if not is_paired:
            rows = _apart(one, other, criteria, len(pairs))
            if why := _other_objectives(one, other):
                notes.append(why)
                rows = tuple(row for row in rows if row.metric != CAPACITY)
            notes += _without_number(one, other)
            notes += _failed(one, other)
            notes += _other_rates(one, other) if rows else ()
            metrics.append((one.title, rows))
            continue
        found = _in_pairs(one, other, criteria, partial(_read, samples, (a.run_id, b.run_id)))
        metrics.append((one.title, found.metrics if found else ()))
        statements += found.statements if found else ()
        profiled, sent = (_last_trials(one, other, purpose) for purpose in ENDS)
        place = where(profiled, sent) or place
    failures = [
        side.failure or f"its measurement is {side.status}"
        for both in pairs
        for side in both
        if is_paired and (side.failure or not side.has_ended)
    ]
    broken_off = failures[0] if failures else ""
    ended = (f"The comparison was broken off, so that nothing is decided: {broken_off}",)
    of_pairs = (*(ended if broken_off else ()), *disturbance.notes((a, b)))
    if not any(rows for _, rows in metrics):
        if notes:
            raise InvalidInput(notes[0])
        if broken_off:
            raise MeasurementInvalid(
                f"the comparison of {a.run_id} and {b.run_id} ended before its first pair: "
                f"{broken_off}"
            )
        if is_paired:
            raise MeasurementInvalid(
                f"the comparison of {a.run_id} and {b.run_id} has no complete pair of trials"
            )
        if not is_paired and any(one.policy == "turns" for one in a.measurements):
            raise InvalidInput(
                f"{a.run_id} and {b.run_id} are sides of two comparisons: loads that took turns "
                "can be compared with their own other side only"
            )
        raise InvalidInput(
            f"{a.run_id} and {b.run_id} have no measured scenario in common: "
            f"{_measured(a)} and {_measured(b)}"
        )
    return Compared(
        names=_names(a, b) if is_paired else (a.run_id, b.run_id),
        settings=_settings(a, b, () if is_paired else pairs),
        metrics=tuple(metrics),
        criteria=criteria,
        is_paired=is_paired,
        is_in_turns=any(one.policy == "turns" for one, _ in pairs),
        run_ids=(a.run_id, b.run_id),
        most_slower=most_slower,
        statements=tuple(statements),
        where=place,
        notes=of_pairs if is_paired else tuple(notes),
        broken_off=broken_off,
    )


def _settings(
    a: Run, b: Run, pairs: Sequence[tuple[Measurement, Measurement]]
) -> tuple[SettingDifference, ...]:
    """Return the settings that differ, and the parameters of these loads that do."""
    sides = zip(*pairs, strict=True) if pairs else ((), ())
    loads = ([load for one in side for load in _loads(one)] for side in sides)
    both = zip((a, b), loads, strict=True)
    return differences([(*run.environment.settings, *own) for run, own in both])


def recorded(
    a: Run,
    b: Run,
    samples: ReadSamples,
    *,
    same_within: float | None = None,
    most_slower: float | None = None,
) -> Compared:
    """Compare two runs by the criteria with which they were measured, if in pairs.

    `same_within` and `most_slower` are other criteria than those.
    """
    known = _parameters(a)
    criteria = Criteria()
    if same_within is None and SAME_WITHIN in known:
        same_within = float(known[SAME_WITHIN])
    if same_within is not None:
        criteria = replace(criteria, same_within=same_within)
    is_one = known.get(PAIRED) == _parameters(b).get(PAIRED)
    if most_slower is None and MOST_SLOWER in known and is_one:
        most_slower = float(known[MOST_SLOWER])
    return compare_runs(a, b, criteria, samples, most_slower)


def other_side(run: Run, store: Store) -> tuple[Run, Run] | None:
    """Return both runs of the comparison that a run is a side of, A first; None without one."""
    label = _parameters(run).get(PAIRED)
    if label is None:
        return None
    for run_id, known in store.with_parameter(PAIRED):
        if known[PAIRED] == label and run_id != run.run_id:
            other = store.get(run_id)
            return (other, run) if _order(other) < _order(run) else (run, other)
    return None


def _order(run: Run) -> tuple[str, str]:
    return _parameters(run).get(ROLE, ""), run.run_id


def _parameters(run: Run) -> dict[str, str]:
    return dict(run.measurements[0].parameters) if run.measurements else {}


def _last_trials(a: Measurement, b: Measurement, purpose: str) -> tuple[Trial, ...]:
    """Return the usable trial of each side that was made for this purpose; empty without one."""
    others = {trial.number: trial for trial in b.trials}
    both = ((one, others[one.number]) for one in a.trials if one.number in others)
    made = (two for two in both if two[0].purpose == purpose and all(map(is_usable, two)))
    return next(made, ())


def _names(a: Run, b: Run) -> tuple[str, str]:
    """Return the names of the sides; the ids if both have the same name."""
    one, other = (_parameters(run)[SIDE] for run in (a, b))
    return (one, other) if one != other else (a.run_id, b.run_id)


def _label(measured: Measurement) -> str | None:
    return dict(measured.parameters).get(PAIRED)


def _measured(run: Run) -> str:
    """Return what a run measured, and how: two runs of one scenario may differ in that."""
    kinds = {"search": "a search for N", "turns": "loads in turns", "fixed": "a fixed load"}
    each = (f"{one.title} ({kinds.get(one.policy, one.policy)})" for one in run.measurements)
    return ", ".join(dict.fromkeys(each)) or "nothing"


def _matched(a: Run, b: Run) -> Iterator[tuple[Measurement, Measurement]]:
    """Pair measurements of the same title and policy, in their order.

    A search and the combined result of several are of the same title.
    """
    remaining = list(_results(b))
    for one in _results(a):
        for other in remaining:
            if _kind(one) == _kind(other):
                remaining.remove(other)
                yield one, other
                break


def _kind(measured: Measurement) -> tuple[str, str, str]:
    return measured.scenario, base_title(measured.title), measured.policy


def _results(run: Run) -> Sequence[Measurement]:
    """Return the measurements; of repeated searches the combined result, once there is one."""
    return [one for one in run.measurements if not one.is_repeat] or run.measurements


def _read(samples: ReadSamples, run_ids: tuple[str, str], trials: Sequence[Trial]) -> list[Samples]:
    """Return the samples of a trial of each run."""
    return [samples(run_id, trial) for run_id, trial in zip(run_ids, trials, strict=True)]


def _in_pairs(
    a: Measurement,
    b: Measurement,
    criteria: Criteria,
    read: Callable[[Sequence[Trial]], list[Samples]],
) -> PairComparison | None:
    known = dict(a.parameters)
    alpha = float(known.get(ERROR_RATE, criteria.alpha))
    original = replace(criteria, most_pairs=int(known[MOST_PAIRS]), alpha=alpha)
    if a.policy == "turns":
        others = {trial.number: trial for trial in b.trials}
        both = [(trial, others[trial.number]) for trial in a.trials if trial.number in others]
        starts = _starts([one for one, _ in both]) if STARTS in known else {}
        usable = [
            two
            for two in both
            if all(map(is_usable, two)) and two[0].purpose not in (WARM_UP, PROFILED, COUNTED)
        ]
        if not usable:
            return None
        duets = [duet(two, read(two), starts.get(two[0].number)) for two in usable]
        return of_turns(duets, original, known.get(METRIC))
    ours, theirs = (
        [trial for trial in one.trials if is_usable(trial) and trial.purpose != WARM_UP]
        for one in (a, b)
    )
    if not ours or not theirs:
        return None
    is_paced = ours[0].rate_rps is not None
    return of_trials(ours, theirs, original, is_paced=is_paced)


def _starts(trials: Sequence[Trial]) -> dict[int, int]:
    """Return the number of the start that each trial is of: a warm-up comes after each."""
    found: dict[int, int] = {}
    count, before = 0, ""
    for one in trials:
        count += one.purpose == WARM_UP and before != WARM_UP
        found[one.number], before = count, one.purpose
    return found


def _apart(
    a: Measurement, b: Measurement, criteria: Criteria, count: int
) -> tuple[MetricComparison, ...]:
    ours, theirs = dict(_estimates(a)), dict(_estimates(b))
    shared = [metric for metric in ours if metric in theirs]
    return tuple(_ratio(metric, ours[metric], theirs[metric], criteria, count) for metric in shared)


def _estimates(measured: Measurement) -> Iterator[tuple[Metric, StoredValue]]:
    """Yield the metrics with values greater than 0; of several loads, their means."""
    capacity = measured.capacity
    if capacity is not None and capacity.rate_rps and _is_number(capacity):
        # The intervals of some methods hold N less often than an answer needs.
        is_sure = capacity.confidence >= CONFIDENCE
        ends = (capacity.low_rps, capacity.high_rps) if is_sure else (None, None)
        yield CAPACITY, StoredValue(capacity.rate_rps, *ends)
    # A load with a fault is made several times, and so are those of a comparison in blocks.
    loads = measured.trials if measured.policy == "fixed" else ()
    made = [one for one in loads if one.stats.ok and one.purpose != WARM_UP]
    every = [one.stats for one in made if one.is_valid] or [one.stats for one in made]
    if every:
        if _rate_rps(measured) is None:  # else it is that of the schedule
            yield THROUGHPUT, StoredValue(fmean(one.completed_rps for one in every))
        yield MEDIAN, StoredValue(fmean(one.total.median_s for one in every))
        yield P95, StoredValue(fmean(one.total.p95_s for one in every))
        yield P99, StoredValue(fmean(one.total.p99_s for one in every))
    if measured.cpu_per_request_s:
        yield CPU, StoredValue(measured.cpu_per_request_s)


def _is_number(capacity: Capacity | None) -> bool:
    """Return whether N is a number: not a range, and not "at least 50"."""
    if capacity is None or not capacity.rate_rps:
        return False
    return capacity.low_rps is None or capacity.high_rps is not None


def _without_number(a: Measurement, b: Measurement) -> Iterator[str]:
    """Say which side's search found no number, or no sure one, so that N is not compared."""
    for side, one in (("A", a), ("B", b)):
        if one.policy == "search" and not _is_number(one.capacity):
            known = figures.n(one.capacity)
            found = f"{known}/s" if known != figures.NOT_FOUND else "not found"
            yield f"{one.title}: N of {side} is no number ({found}), so that it is not compared"
        elif one.capacity is not None and 0 < one.capacity.confidence < CONFIDENCE:
            holds = figures.percent(one.capacity.confidence)
            yield (
                f"{one.title}: the interval of N of {side} holds N in {holds} of searches only, "
                "too few to decide"
            )


def _failed(a: Measurement, b: Measurement) -> Iterator[str]:
    """Say of which side's fixed load so many iterations failed that its times say little."""
    for side, one in (("A", a), ("B", b)):
        if one.policy != "fixed":
            continue
        every = [trial.stats for trial in one.trials]
        failed, ended = sum(each.failed for each in every), sum(each.ended for each in every)
        if failed == ended > 0:
            yield f"{one.title}: all {ended:,} iterations of {side} failed, so nothing is compared"
        elif failed > MOST_FAILED * ended:
            yield (
                f"{one.title}: {failed:,} of {ended:,} iterations of {side} failed; its latencies "
                "are those of the others"
            )


def _rate_rps(measured: Measurement) -> float | None:
    """Return the rate at which a fixed load was due; None of a closed loop."""
    rates = [trial.rate_rps for trial in measured.trials if measured.policy == "fixed"]
    return next((rate for rate in rates if rate is not None), None)


def _other_rates(a: Measurement, b: Measurement) -> Iterator[str]:
    """Say that two fixed loads were due at different rates."""
    rates = [_rate_rps(one) for one in (a, b)]
    if rates[0] != rates[1]:
        ours, theirs = ("a closed loop" if one is None else f"{one:g}/s" for one in rates)
        yield (
            f"{a.title}: the load of A was {ours} and that of B {theirs}, so that the latencies "
            "differ by the load, too"
        )


def _ratio(
    metric: Metric, a: StoredValue, b: StoredValue, criteria: Criteria, count: int
) -> MetricComparison:
    """Return b / a, with an interval that holds for all of `count` such comparisons together."""
    found = of_ratio(b, a, _quantile(count) / _quantile(1))
    low, high, answer = 0.0, float("inf"), ComparisonAnswer.UNKNOWN
    if found.low is not None and found.high is not None:
        low, high = found.low, found.high
        answer = answer_of(metric, low, high, criteria.same_within)
    return MetricComparison(
        metric, a.value, b.value, found.mean, low, high, 0, answer, float("nan")
    )


def _quantile(count: int) -> float:
    """Return the normal quantile of one of `count` intervals that hold together (Bonferroni)."""
    return NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / (2 * count))


def _other_objectives(a: Measurement, b: Measurement) -> str:
    """Say that N of two searches has different objectives; empty if it has not."""
    texts = [dict(one.parameters).get(OBJECTIVES) for one in (a, b)]
    if None in texts or a.capacity is None or b.capacity is None:
        return ""
    goals = [_goal(text or "") for text in texts]
    if goals[0] == goals[1]:
        return ""
    return (
        f"{a.title}: N of the two runs has different objectives ({texts[0]}; {texts[1]}), so that "
        "it cannot be compared; measure one of them with those of the other"
    )


def _goal(text: str) -> Goal | str:
    """Return the goal that a parameter describes; the text itself if it is no goal's."""
    if text == NO_OBJECTIVES:
        return Goal()
    try:
        found = goal(tuple(text.replace("<=", "<").split(", ")))
    except InvalidInput:
        return text
    return replace(found, objectives=tuple(sorted(found.objectives, key=str)))


def _loads(measured: Measurement) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a load that may explain a difference, as settings."""
    for name, value in measured.parameters:
        if name not in HIDDEN:
            yield f"{measured.title}: {name}", value
