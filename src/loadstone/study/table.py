"""Results of a study: a row per cell, and the requested ratios."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, isfinite, log, sqrt
from statistics import fmean, stdev

from loadstone.analysis import student
from loadstone.analysis.holm import adjusted
from loadstone.analysis.interval import CONFIDENCE, Interval, of_logs, of_ratio
from loadstone.compare.answer import ComparisonAnswer, Metric, MetricComparison, answer_of
from loadstone.report.settings import SettingDifference
from loadstone.report.settings import differences as differences_of
from loadstone.result.model import LAB_HOST, Run
from loadstone.study.duet import ERROR_RATE, CellPair, cell_pairs
from loadstone.study.figure import Costs, Estimate, TurnFigure, of_turn, unsteady
from loadstone.study.journal import ThroughputRatio
from loadstone.study.model import (
    Cell,
    FaultMeasurement,
    Figure,
    LevelComparison,
    Pairs,
    Published,
    Study,
)
from loadstone.study.order import Turn

# With two values, Student's t has one degree of freedom and intervals span powers of ten.
LEAST_REPEATS = 3
LEVEL = 0.05  # chance of any false "faster" or "slower" in a study
SAME_WITHIN = 0.03  # ratios within this of 1 count as equal, as in `loadstone compare`
RATES = ("N", Figure.RATE.value)
MORE_IS_BETTER = (*RATES, Figure.SUCCESS.value, "goodput_rps")
IN_TURNS = "pairs in turns"
# Two starts of one lab may differ by a quarter in N (docs/compare.md, "Two starts").
OF_STARTS = 0.25
MOST = 1000  # limit of a ratio's interval, as Student's t of two pairs spans powers of ten


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """One turn with its result or failure; with neither, it has not been measured."""

    turn: Turn
    result: Run | None
    failure: str | None = None
    exit_code: int = 0  # as that of a command which measured this turn alone
    is_clean: bool = True  # whether all that it created is removed

    @property
    def host(self) -> str:
        """The lab host that measured it; empty: this machine, or not measured."""
        target = () if self.result is None else self.result.environment.target
        return dict(target).get(LAB_HOST, "")

    def found(self, study: Study) -> dict[str | None, TurnFigure]:
        """Return the figures by step."""
        if self.result is None:
            return {}
        is_reference = self.turn.cell.is_reference
        return of_turn(self.result, study.measurement, is_reference=is_reference)

    def failures(self, study: Study, steps: Collection[str | None]) -> tuple[str, ...]:
        """Describe failures of the whole turn, of steps that are not timed, and of these steps."""
        if self.failure:
            return (self.failure,)
        untimed = unsteady(self.result, study.measurement) if self.result else {}
        return tuple(f"{step} (not timed): {why}" for step, why in untimed.items()) + tuple(
            f"{step}: {one.shortcoming}" if step else one.shortcoming
            for step, one in self.found(study).items()
            if one.shortcoming and step in steps
        )


@dataclass(frozen=True, slots=True)
class RatioOutcome:
    """A pair of cells with its ratio or failure; with neither, it has not been loaded in turns."""

    cells: CellPair
    ratio: ThroughputRatio | None
    failure: str | None = None
    exit_code: int = 0
    runs: tuple[Run, ...] = ()  # of the base and of the other
    left: tuple[str, ...] = ()  # the runs that left something in their clouds


@dataclass(frozen=True, slots=True)
class TableRow:
    """One cell, or one step of it, over all repeats."""

    cell: Cell
    step: str | None  # None: of a search
    estimate: Estimate | None  # over the repeats; with one repeat, its own
    found: int  # repeats with a figure
    repeats: int  # requested
    is_valid: bool | None  # the generator was valid in every repeat; None: nothing was measured
    published: Published | None
    failures: tuple[str, ...]
    run_ids: tuple[str, ...]
    # The limit in each repeat, empty where none was found; None: not requested.
    limits: tuple[str, ...] | None = None
    is_left_out: bool = False  # its turns ended before this step
    costs: Costs | None = None  # means over the repeats; None: not requested
    figures: tuple[float | None, ...] = ()  # of each repeat; None also of a range and of a bound


@dataclass(frozen=True, slots=True)
class Difference:
    """The ratio of two levels, other / base, with all other factors equal."""

    comparison: LevelComparison
    step: str | None
    others: Pairs  # levels of the other factors; for several combinations, the common ones
    ratio: Interval  # for one pair, from the scatter within both measurements if known
    p: float | None  # p-value of the null hypothesis of no difference
    unit: str  # of the sample size: "pairs", "configurations" or IN_TURNS
    p_holm: float | None = None  # adjusted for all tests of the study
    answer: ComparisonAnswer = (
        ComparisonAnswer.UNKNOWN
    )  # whether the other level is better than the base
    is_valid: bool = True  # False: the load generator was the limit in some pair, so no test
    run_ids: tuple[str, ...] = ()  # of the two that were loaded in turns
    # What loads in turns gave, where it is no answer: `wording.doubts` says why.
    doubted: ThroughputRatio | None = None

    @property
    def is_in_turns(self) -> bool:
        """Whether it is the ratio of loads in turns, whose answer needs no p-value."""
        return self.unit == IN_TURNS

    @property
    def interval(self) -> str:
        """The interval of the ratio; empty if it is not known."""
        return " to ".join(
            _side(one) for one in (self.ratio.low, self.ratio.high) if one is not None
        )

    @property
    def count(self) -> str:
        """The sample size with its unit."""
        unit = self.unit.replace("s", "", 1) if self.ratio.count == 1 else self.unit
        return f"{self.ratio.count} {unit}"

    @property
    def where(self) -> str:
        """The step, and the levels of the other factors."""
        places = [f"{factor} {level}" for factor, level in self.others]
        return ", ".join(([self.step] if self.step else []) + places)

    def __str__(self) -> str:
        interval = f" [{self.interval.replace(' to ', ', ')}]" if self.interval else ""
        one = self.comparison
        text = f"{one.other}/{one.base} = {self.ratio.mean:.3g}{interval}, {self.count}"
        return f"{text} ({self.where})" if self.where else text


def _side(ratio: float) -> str:
    """Return one end of a ratio's interval, limited to a factor of a thousand."""
    if ratio > MOST:
        return f"over {MOST:,}"
    return f"under {1 / MOST:g}" if ratio < 1 / MOST else f"{ratio:.3g}"


def figure_of(found: Estimate) -> float | None:
    """Return the figure itself; None of a range and of a lower bound."""
    return None if found.is_range or found.is_at_least else found.value


def rows(study: Study, outcomes: Sequence[TurnOutcome]) -> tuple[TableRow, ...]:
    """Return a row for each cell, in the order of the file."""
    of_cell: dict[Cell, list[TurnOutcome]] = defaultdict(list)
    for outcome in outcomes:
        of_cell[outcome.turn.cell].append(outcome)
    return tuple(
        _row(study, cell, step, of_cell[cell]) for cell in study.cells for step in study.steps
    )


def _row(study: Study, cell: Cell, step: str | None, outcomes: list[TurnOutcome]) -> TableRow:
    measured = sorted((o for o in outcomes if o.result), key=lambda o: o.turn.repeat)
    found = [o.found(study).get(step) for o in measured]
    valid = [one.is_valid for one in found if one is not None and one.is_valid is not None]
    estimates = [one.estimate if one else None for one in found]
    return TableRow(
        cell=cell,
        step=step,
        estimate=_over_repeats([one for one in estimates if one is not None]),
        found=sum(one is not None and one.value is not None for one in estimates),
        figures=tuple(figure_of(one) if one else None for one in estimates),
        repeats=study.repeats,
        is_valid=all(valid) if valid else None,
        published=next((one for one in study.published if one.is_of(cell, step)), None),
        failures=tuple(dict.fromkeys(why for o in outcomes for why in o.failures(study, (step,)))),
        run_ids=tuple(o.result.run_id for o in measured if o.result),
        limits=tuple(one.limit or "" for one in found if one) if study.names_limits else None,
        is_left_out=bool(measured) and all(one is None for one in found),
        costs=_costs([one.costs for one in found if one and one.costs])
        if study.shows_costs
        else None,
    )


def _costs(found: Sequence[Costs]) -> Costs:
    """Return the means over the repeats in which they are known."""

    def mean(values: Iterable[float | None]) -> float | None:
        known = [one for one in values if one is not None]
        return fmean(known) if known else None

    return Costs(
        p99_ms=mean(one.p99_ms for one in found),
        cpu_ms=mean(one.cpu_ms for one in found),
        memory_mb=mean(one.memory_mb for one in found),
    )


def _over_repeats(estimates: list[Estimate]) -> Estimate | None:
    """Return the mean with a t interval over repeats, or the only estimate unchanged.

    If some are lower bounds, the result is the lowest, as a lower bound. Of too few repeats for an
    interval, of which one has a range only, it is the range of all. The interval of more repeats is
    at least as wide as their ranges leave it.
    """
    values = [one.value for one in estimates if one.value is not None]
    if any(one.is_at_least for one in estimates):
        known = [one for one in estimates if one.value is not None]
        least = min((one.low if one.is_range else one.value) or 0.0 for one in known)
        return Estimate(least, least, None, 0.0)
    if len(values) > 1 and min(values) <= 0:  # zero failures or downtime: no logarithms
        return Estimate(fmean(values), None, None, 0.0)
    found = [one for one in estimates if one.value]
    if len(found) < 2:
        return next(iter(found or estimates), None)
    over = of_logs([log(one.value) for one in found if one.value])
    if len(found) < LEAST_REPEATS:
        if any(one.is_range for one in found):
            low = min(one.low for one in found if one.low is not None)
            high = max(one.high for one in found if one.high is not None)
            return Estimate(over.mean, low, high, 0.0, is_range=True)
        return Estimate(over.mean, None, None, 0.0)
    if any(one.is_range for one in found):
        over = _widened(over, found)
    return Estimate(over.mean, over.low, over.high, CONFIDENCE)


def differences(
    study: Study, outcomes: Sequence[TurnOutcome], in_turns: Sequence[RatioOutcome] = ()
) -> tuple[Difference, ...]:
    """Return the requested ratios: those of loads in turns, and the others paired by repeat.

    Each combination of the other factors' levels has its own ratio, over the pairs of its repeats.
    Three or more combinations of one scenario also have a common ratio, in which each counts once,
    as repeats say nothing about the scatter over configurations. The interval over two would be
    hundreds of times as wide as their difference.
    """
    every = [
        found
        for one in study.comparisons
        for step in study.steps
        for found in _differences(study, one, step, outcomes, in_turns)
    ]
    ps = adjusted([one.p for one in every])
    level = level_of_tests(study)
    return tuple(
        one
        if one.is_in_turns
        else replace(one, p_holm=p, answer=_answer(_metric(study, one.step), one.ratio, p, level))
        for one, p in zip(every, ps, strict=True)
    )


def level_of_tests(study: Study) -> float:
    """Return the chance of a false answer in any test over repeats."""
    return LEVEL - ERROR_RATE if cell_pairs(study) else LEVEL


def _metric(study: Study, step: str | None) -> Metric:
    measurement = study.measurement
    if isinstance(measurement, FaultMeasurement):
        of_row = {row.name: row.figure for row in measurement.rows}
        return Metric(*study.figure, is_higher_better=of_row.get(step or "") in MORE_IS_BETTER)
    return Metric(*study.figure, is_higher_better=study.figure[0] in MORE_IS_BETTER)


def _answer(
    metric: Metric, ratio: Interval, p_holm: float | None, level: float
) -> ComparisonAnswer:
    """Combine interval and test to an answer, UNKNOWN without one of them.

    The interval of one pair covers the scatter within its measurements, but not changes between
    them, such as the speed of the machine.
    """
    if ratio.low is None or ratio.high is None or p_holm is None:
        return ComparisonAnswer.UNKNOWN
    found = answer_of(metric, ratio.low, ratio.high, SAME_WITHIN)
    is_unsure = p_holm >= level
    return ComparisonAnswer.UNKNOWN if is_unsure and found is not ComparisonAnswer.SAME else found


def reference_ratio(lines: Sequence[TableRow]) -> tuple[TableRow, TableRow, Interval] | None:
    """Return the reference, the fastest other cell, and their ratio; None without both.

    Both have the same scenario, and the load generator was the limit of neither.
    """
    valid = (row for row in lines if row.is_valid is not False)
    known = [row for row in valid if row.estimate and row.estimate.value]
    reference = next((row for row in known if row.cell.is_reference), None)
    if reference is None:
        return None
    scenario = reference.cell.scenario
    others = [r for r in known if not r.cell.is_reference and r.cell.scenario == scenario]
    if not others:
        return None
    fastest = max(others, key=lambda row: (row.estimate and row.estimate.value) or 0.0)
    if reference.estimate is None or fastest.estimate is None:
        return None
    return reference, fastest, of_ratio(reference.estimate, fastest.estimate)


def settings_that_differ(
    study: Study, outcomes: Sequence[TurnOutcome]
) -> tuple[tuple[LevelComparison, tuple[SettingDifference, ...]], ...]:
    """Return the settings that differ in the first complete pair of runs of each comparison."""
    found = []
    for one in study.comparisons:
        sides: dict[tuple[Pairs, int], dict[str, Run]] = defaultdict(dict)
        for outcome in outcomes:
            if outcome.result is not None:
                level = outcome.turn.cell.level(one.factor)
                others = outcome.turn.cell.others(one.factor)
                sides[others, outcome.turn.repeat][level] = outcome.result
        pair = next((s for s in sides.values() if {one.base, one.other} <= s.keys()), None)
        if pair is not None:
            runs = (pair[one.base], pair[one.other])
            found.append((one, differences_of([run.environment.settings for run in runs])))
    return tuple(found)


def _differences(
    study: Study,
    comparison: LevelComparison,
    step: str | None,
    outcomes: Sequence[TurnOutcome],
    in_turns: Sequence[RatioOutcome],
) -> Iterator[Difference]:
    repeats = _paired(study, comparison, step, outcomes)
    ratios_in_turns = {
        one.cells.base.others(comparison.factor): one.ratio
        for one in in_turns
        if one.ratio is not None and one.cells.comparison == comparison
    }
    over: dict[str, list[tuple[Pairs, _Ratio]]] = defaultdict(list)
    for cell in study.cells:
        others = cell.others(comparison.factor)
        own = repeats.pop(others, None)
        of_repeats = _over(comparison, step, others, own, "pairs") if own else None
        found_in_turns = ratios_in_turns.pop(others, None)
        if found_in_turns is not None and not _is_doubtful(found_in_turns, of_repeats):
            found = _of_turns(comparison, others, found_in_turns)
            yield found
            if found.doubted is None:
                over[cell.scenario].append((others, _Ratio(found.ratio, False, True)))
        elif own and of_repeats is not None:
            yield replace(of_repeats, doubted=found_in_turns)
            over[cell.scenario].append((others, _configuration(own)))
    for each in over.values():
        if len(each) >= LEAST_REPEATS:
            (first, _), *more = each
            shared = tuple(pair for pair in first if all(pair in others for others, _ in more))
            ratios_of_each = [ratio for _, ratio in each]
            yield _over(comparison, step, shared, ratios_of_each, "configurations")


def _over(
    comparison: LevelComparison,
    step: str | None,
    others: Pairs,
    each: Sequence["_Ratio"],
    unit: str,
) -> Difference:
    """Return the mean of ratios, with their test."""
    ratios = [one.ratio for one in each]
    logs = [log(one.mean) for one in ratios]
    is_valid = all(one.is_valid for one in each)
    # Figures that the load generator limited may differ, or not, whatever the service.
    p = _p(logs) if is_valid else None
    ratio = of_logs(logs)
    if len(each) == 1:
        ratio = ratios[0]
    elif any(one.is_of_range for one in each):
        ratio = _widened(ratio, ratios)
    return Difference(comparison, step, others, ratio, p, unit, is_valid=is_valid)


def _is_doubtful(in_turns: ThroughputRatio, of_repeats: Difference | None) -> bool:
    """Return whether the ratio of the repeats says more about N than that of loads in turns.

    A load in turns does not show what limits N apart from the workers, such as a limiter, which
    recovers while the other side is loaded.
    """
    if of_repeats is None:
        return False
    if in_turns.not_full is not None:
        return True
    return of_repeats.is_valid and _are_apart(in_turns.throughput, of_repeats.ratio)


def _are_apart(in_turns: MetricComparison, of_repeats: Interval) -> bool:
    """Return whether two ratios differ by more than their intervals and what starts may make."""
    if of_repeats.low is None or of_repeats.high is None:
        return False
    # The interval of fewer repeats does not hold the difference between starts.
    margin = 1 + (SAME_WITHIN if of_repeats.count >= LEAST_REPEATS else OF_STARTS)
    return in_turns.high * margin < of_repeats.low or of_repeats.high * margin < in_turns.low


def _of_turns(comparison: LevelComparison, others: Pairs, found: ThroughputRatio) -> Difference:
    row = found.throughput
    # Below four pairs, as where the load time was used up, there is no interval.
    low, high = (row.low, row.high) if isfinite(row.high) else (None, None)
    ratio = Interval(row.ratio, low, high, row.pairs)
    is_full = found.not_full is None
    return Difference(
        comparison,
        None,
        others,
        ratio,
        None,
        IN_TURNS,
        answer=row.answer if is_full else ComparisonAnswer.UNKNOWN,
        run_ids=found.run_ids,
        doubted=None if is_full else found,
    )


@dataclass(frozen=True, slots=True)
class _Ratio:
    """The ratio of one repeat, or of one combination of the other factors' levels."""

    ratio: Interval
    is_of_range: bool  # whether one of its figures is a range
    is_valid: bool  # whether the load generator was the limit in none of its measurements


def _configuration(own: Sequence[_Ratio]) -> _Ratio:
    """Return the ratio of a combination, from the intervals of its measurements alone."""
    ratios = [one.ratio for one in own]
    mean = Interval(exp(fmean(log(one.mean) for one in ratios)), None, None, len(own))
    is_of_range = any(one.is_of_range for one in own)
    return _Ratio(_widened(mean, ratios), is_of_range, all(one.is_valid for one in own))


def _widened(found: Interval, of: Sequence[Interval] | Sequence[Estimate]) -> Interval:
    """Return the interval of a mean, at least as wide as the intervals of its values leave it.

    The middle of a range is no measurement: middles may agree by chance where nothing is known to
    that precision.
    """
    halves = [log(one.high / one.low) / 2 for one in of if one.low and one.high]
    half = sqrt(sum(one * one for one in halves)) / len(of)
    low, high = found.mean * exp(-half), found.mean * exp(half)
    return replace(found, low=min(found.low or low, low), high=max(found.high or high, high))


def _p(logs: Sequence[float]) -> float | None:
    """Return the p of a two-sided t test that the logarithms' mean is 0; None below two values."""
    if len(logs) < 2:
        return None
    if min(logs) == max(logs):
        return 1.0 if logs[0] == 0 else 0.0
    t = fmean(logs) / stdev(logs) * sqrt(len(logs))
    return student.two_sided_p(t, len(logs) - 1)


@dataclass(frozen=True, slots=True)
class WithoutRatio:
    """Two compared cells of which a figure has no ratio: it is 0 or a lower bound."""

    comparison: LevelComparison
    step: str | None
    others: Pairs  # levels of the other factors
    zero: int  # repeats in which a figure of the two is 0,
    bounded: int  # or only a lower bound
    repeats: int  # in which both were measured


def without_ratio(study: Study, outcomes: Sequence[TurnOutcome]) -> Iterator[WithoutRatio]:
    """Yield the compared cells whose ratio would leave out repeats that have a figure."""
    for one in study.comparisons:
        for step in study.steps:
            for others, both in _both(study, one, step, outcomes).items():
                estimates = [(x.estimate, y.estimate) for x, y in both]
                zero = sum(any(_is_zero(e) for e in pair) for pair in estimates)
                bounded = sum(any(e.is_at_least for e in pair) for pair in estimates)
                # Of figures that are 0 throughout, nobody asks for a ratio.
                if bounded or (zero and not all(_is_zero(e) for pair in estimates for e in pair)):
                    yield WithoutRatio(one, step, others, zero, bounded, len(both))


@dataclass(frozen=True, slots=True)
class _RepeatFigure:
    """The figure of one repeat of a cell."""

    estimate: Estimate
    is_valid: bool

    @property
    def has_ratio(self) -> bool:
        return not _is_zero(self.estimate) and not self.estimate.is_at_least


def _is_zero(found: Estimate) -> bool:
    return (found.value or 0.0) <= 0


def _paired(
    study: Study, comparison: LevelComparison, step: str | None, outcomes: Sequence[TurnOutcome]
) -> dict[Pairs, list[_Ratio]]:
    """Return other / base of each repeat on one lab host, by the levels of the other factors.

    Cells with a figure that has no ratio have none: that of their other repeats would say nothing
    of it.
    """
    return {
        others: [
            _Ratio(
                of_ratio(other.estimate, base.estimate),
                other.estimate.is_range or base.estimate.is_range,
                other.is_valid and base.is_valid,
            )
            for other, base in both
        ]
        for others, both in _both(study, comparison, step, outcomes).items()
        if all(one.has_ratio for pair in both for one in pair)
    }


def _both(
    study: Study, comparison: LevelComparison, step: str | None, outcomes: Sequence[TurnOutcome]
) -> dict[Pairs, list[tuple[_RepeatFigure, _RepeatFigure]]]:
    """Return the other's figure and the base's of each repeat on one lab host, as `_paired`."""
    values: dict[tuple[str, Pairs, int, str], _RepeatFigure] = {}
    for outcome in outcomes:
        found = outcome.found(study).get(step)
        estimate = found.estimate if found else None
        if found and estimate and estimate.value is not None:
            is_valid = study.is_counted or found.is_valid is not False
            cell = outcome.turn.cell
            level = cell.level(comparison.factor)
            others = cell.others(comparison.factor)
            place = (level, others, outcome.turn.repeat, outcome.host)
            values[place] = _RepeatFigure(estimate, is_valid)
    both: dict[Pairs, list[tuple[_RepeatFigure, _RepeatFigure]]] = defaultdict(list)
    for (level, others, repeat, host), one in values.items():
        base = values.get((comparison.base, others, repeat, host))
        if level == comparison.other and base is not None:
            both[others].append((one, base))
    return both
