"""Sentences and table cells of a study."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from statistics import fmean

from loadstone.compare.answer import ComparisonAnswer
from loadstone.report import figures
from loadstone.result.model import OF_LAB_HOST
from loadstone.search.model import Capacity
from loadstone.study.duet import ERROR_RATE
from loadstone.study.figure import Estimate
from loadstone.study.journal import StudyJournal
from loadstone.study.model import Cell, Study
from loadstone.study.scaling import sentences
from loadstone.study.table import (
    LEAST_REPEATS,
    RATES,
    SAME_WITHIN,
    Difference,
    TableRow,
    TurnOutcome,
    level_of_tests,
    reference_ratio,
    without_ratio,
)

FEWEST_ALIKE = 3  # cells; of two, their ratio says it
MOST_APART = 0.1  # share of the mean; wide intervals overlap although figures are far apart
UNTESTED = "(*)"  # of a ratio without a test; a line below says why

_WORDS = {
    ComparisonAnswer.FASTER: "faster",
    ComparisonAnswer.SLOWER: "slower",
    ComparisonAnswer.SAME: f"the same within {figures.percent(SAME_WITHIN)}",
    ComparisonAnswer.UNKNOWN: "no difference shown",
}

_OF_COUNTS = {**_WORDS, ComparisonAnswer.FASTER: "fewer", ComparisonAnswer.SLOWER: "more"}
# Of shares that succeed, and of what faults do: no figure of speed.
_OF_OTHERS = {**_WORDS, ComparisonAnswer.FASTER: "better", ComparisonAnswer.SLOWER: "worse"}


def heads(study: Study) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the headers of the text columns and of the figure columns."""
    step = ("step",) if study.steps != (None,) else ()
    factors = tuple(factor.name for factor in study.factors)
    limit = ("which saturates?",) if study.names_limits else ()
    costs = ("p99 ms", "CPU ms", "memory MB") if study.shows_costs else ()
    return (*factors, *step, *limit), (
        " ".join(study.figure).strip(),
        "interval",
        *costs,
        "found",
        "published",
        "valid",
    )


def cells(row: TableRow) -> tuple[str, ...]:
    """Return a row's cells, in the order of the headers."""
    step = (row.step,) if row.step is not None else ()
    limit = () if row.limits is None else (_limits(row.limits),)
    valid = {None: figures.MISSING, True: "yes", False: "no"}[row.is_valid]
    failed = "failed" if row.failures and row.estimate is None else None
    failed = figures.MISSING if row.is_left_out else failed
    shown = None if row.estimate is None else as_capacity(row.estimate)
    interval = figures.interval(shown)
    if 1 < row.found < LEAST_REPEATS and not (row.estimate and row.estimate.is_range):
        interval = "too few repeats"
    return (
        *(level for _, level in row.cell.levels),
        *step,
        *limit,
        failed or (figures.n(shown) if row.run_ids else figures.MISSING),
        interval,
        *(map(figures.rate, astuple(row.costs)) if row.costs else ()),
        f"{row.found}/{row.repeats}",
        _published(row),
        valid,
    )


def as_capacity(found: Estimate) -> Capacity:
    """Return a figure in the form that words are made of; the middle of a range is no figure."""
    return Capacity(None if found.is_range else found.value, found.low, found.high, 0.0)


def _published(row: TableRow) -> str:
    """Return the published figure, and what was measured as a multiple of it."""
    if row.published is None:
        return ""
    found, value = row.estimate, row.published.value
    if found is None or not found.value or not value:
        return f"{value:g}"
    if found.is_range:
        return (
            f"{value:g} (x {(found.low or 0.0) / value:.2g} to {(found.high or 0.0) / value:.2g})"
        )
    least = "at least " if found.is_at_least else ""
    return f"{value:g} ({least}x {found.value / value:.2g})"


def _limits(limits: Sequence[str]) -> str:
    """Return the most frequent limit and its number of repeats."""
    named = [limit for limit in limits if limit]
    if not named:
        return figures.MISSING
    name, count = Counter(named).most_common(1)[0]
    return name if len(limits) == 1 else f"{name} {count}/{len(limits)}"


def reasons(lines: Sequence[TableRow]) -> tuple[str, ...]:
    """Describe why cells have no figure, without duplicates."""
    failures = (f"{row.cell}: {one.splitlines()[0]}" for row in lines for one in row.failures)
    return tuple(dict.fromkeys(failures))


def published(lines: Sequence[TableRow]) -> Iterator[str]:
    """Describe the source of the published figures."""
    for one in dict.fromkeys(row.published for row in lines):
        if one is not None and one.words:
            yield f"Published {one.value:g}: {one.words}"


def beside_reference(study: Study, lines: Sequence[TableRow]) -> Iterator[str]:
    """Say how many times the fastest cell's N the reference has."""
    found = reference_ratio(lines) if study.figure[0] == RATES[0] else None
    if found is None:
        return
    reference, fastest, ratio = found
    is_least = reference.estimate is not None and reference.estimate.is_at_least
    is_most = fastest.estimate is not None and fastest.estimate.is_at_least
    if is_least and is_most:
        return  # two lower bounds have no ratio
    within = f" ({ratio.low:.3g} to {ratio.high:.3g})" if ratio.low and ratio.high else ""
    least = "at least " if is_least else "at most " if is_most else ""
    yield (
        f"{_name(reference.cell)}: {least}{ratio.mean:.3g} times N of the fastest other cell, "
        f"{fastest.cell}{within}."
    )


def _name(cell: Cell) -> str:
    """Return "reference" for a cell of that name in each factor."""
    return next((level for _, level in cell.levels), str(cell))


def overview(
    study: Study, lines: Sequence[TableRow], compared: Sequence[Difference] = ()
) -> Iterator[str]:
    """Say which factors show no difference: figures are close, and all intervals overlap.

    The ratio of two levels may show a difference that the intervals of their cells do not.
    """
    for step in study.steps:
        own = [row for row in lines if row.step == step and not row.cell.is_reference]
        # Times and rates that the load generator limited may be alike whatever the service.
        is_limited = not study.is_counted and any(row.is_valid is False for row in own)
        if len(own) < FEWEST_ALIKE or is_limited:
            continue
        names = [factor.name for factor in study.factors]
        differ = {
            one.comparison.factor
            for one in compared
            if one.step == step and one.answer.is_difference
        }
        within = {name: _within(own, name) for name in names if name not in differ}
        alike = {
            name: share
            for name, share in within.items()
            if share is not None and share <= MOST_APART
        }
        if not alike or (len(alike) == len(names) and not _overlap(own)):
            continue
        values = [one for row in own if row.estimate for one in _values(row.estimate)]
        unit = f" {study.figure[1]}" if study.figure[1] else ""
        listed = _listed(list(alike))
        verb = "shows" if len(alike) == 1 else "show"
        within_all = figures.percent(max(alike.values()))
        text = (
            f"{listed} {verb} no difference here (each within {within_all}): "
            f"{figures.rate(min(values))} to {figures.rate(max(values))}{unit} in {len(own)} "
            f"cells{_common_limit(own)}."
        )
        yield f"{step}: {text}" if step else text[:1].upper() + text[1:]


def _within(lines: Sequence[TableRow], factor: str) -> float | None:
    """Return how far cells that differ in this factor only are from their mean, as a share.

    None if a figure or interval is missing, or if the intervals of such cells do not overlap.
    """
    groups: dict[tuple[tuple[str, str], ...], list[TableRow]] = {}
    for row in lines:
        groups.setdefault(row.cell.others(factor), []).append(row)
    shares = [_share(group) for group in groups.values() if len(group) > 1]
    known = [share for share in shares if share is not None]
    return max(known) if known and len(known) == len(shares) else None


def _share(group: Sequence[TableRow]) -> float | None:
    known = [row.estimate for row in group if row.estimate and row.estimate.value]
    if len(known) < len(group) or not _overlap(group):
        return None
    values = [value for one in known for value in _values(one)]
    mean = fmean(one.value or 0.0 for one in known)
    return max(abs(value - mean) for value in values) / mean


def _values(found: Estimate) -> tuple[float, ...]:
    """Return what a figure may be at most and at least: of a range only its ends are known."""
    every = (found.low, found.high) if found.is_range else (found.value,)
    return tuple(one for one in every if one is not None)


def _overlap(group: Sequence[TableRow]) -> bool:
    """Return whether all intervals share a value; False if one is not known."""
    found = [row.estimate for row in group if row.estimate is not None]
    lows = [one.low for one in found if one.low is not None]
    highs = [one.high for one in found if one.high is not None]
    return len(lows) == len(highs) == len(group) and max(lows) <= min(highs)


def _common_limit(lines: Sequence[TableRow]) -> str:
    """Name the limit that was found in every measurement of these rows."""
    found = {limit for row in lines for limit in row.limits or ("",)}
    one = found.pop()
    return f"; the limit was {one} in all of them" if not found and one else ""


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def comparison_notes(
    study: Study, lines: Sequence[TableRow], compared: Sequence[Difference]
) -> Iterator[str]:
    """Yield the footnotes of the ratios, and the law of scaling."""
    if any(1 < row.found < LEAST_REPEATS for row in lines):
        yield "Two repeats are too few for an interval; three give one."
    if any(one.is_in_turns for one in compared):
        yield (
            "In turns: the ratio of the throughput of both cells, each on a lab of its own, in "
            "pairs of trials that share the same seconds; the chance that any of them shows a "
            f"difference where there is none is {figures.percent(ERROR_RATE)}."
        )
    found = [one for one in compared if not one.is_in_turns]
    if any(one.ratio.low is not None and one.p_holm is None and one.is_valid for one in found):
        within = "its interval is that within the measurements"
        yield f"{UNTESTED} of one pair there is no test; {within}"
    tests = sum(one.p is not None for one in found)
    if tests > 1:
        yield (
            f"p is adjusted for {tests} tests (Holm): the chance that any of them shows a "
            f"difference where there is none is {figures.percent(level_of_tests(study))}."
        )
    if study.figure[0] in RATES:
        yield from sentences(lines)


def doubts(compared: Sequence[Difference]) -> Iterator[str]:
    """Say why ratios of loads in turns are no answer."""
    for one in compared:
        if one.doubted is None:
            continue
        levels = (one.comparison.base, one.comparison.other)
        where = f" ({one.where})" if one.where else ""
        row, idle = one.doubted.throughput, one.doubted.not_full
        if idle is not None:
            why = idle.fact(levels)
        else:
            why = (
                f"the ratio is {row.ratio:.3g} ({row.low:.3g} to {row.high:.3g}), and that of N is "
                f"{one.ratio.mean:.3g} ({one.interval}). Either load in turns did not reach what "
                "limits N, such as a limiter of requests, or something changed between the searches"
            )
        counts = "the ratio has no answer" if one.is_in_turns else "the ratio of N counts"
        yield f"{levels[1]} / {levels[0]}{where}, in turns: {why}; {counts}."


def missing_ratios(study: Study, outcomes: Sequence[TurnOutcome]) -> Iterator[str]:
    """Say which compared cells have a figure of which there is no ratio."""
    for one in without_ratio(study, outcomes):
        places = [*([one.step] if one.step else []), *(f"{name} {at}" for name, at in one.others)]
        where = f" ({', '.join(places)})" if places else ""
        zero = f"a figure is 0 in {one.zero}" if one.zero else ""
        bounded = f"only a lower bound is known in {one.bounded}" if one.bounded else ""
        why = " and ".join(part for part in (zero, bounded) if part)
        times = "repeat" if one.repeats == 1 else "repeats"
        yield (
            f"{one.comparison.other} / {one.comparison.base}{where}: {why} of {one.repeats} "
            f"{times}, so that the repeats have no ratio."
        )


def when_and_where(journal: StudyJournal, outcomes: Sequence[TurnOutcome]) -> str:
    """Return the study's id and, if it has results, their time and machine."""
    results = [one.result for one in outcomes if one.result is not None]
    text = f"Study {journal.study_id}, seed {journal.begun.seed}"
    if len(results) < len(outcomes):
        text += f", {len(results)} of {len(outcomes)} measurements"
    if not results:
        return f"{text}."
    first = min(one.started_at for one in results)
    last = max(one.ended_at or one.started_at for one in results)
    hosts = sorted({one.host for one in outcomes if one.host})
    if hosts:
        text += f", lab hosts {', '.join(hosts)}, each ratio within one of them"
    environment = results[0].environment
    facts = of_lab_host(environment.target) if hosts else environment.machine
    machine = ", ".join(f"{name} {value}" for name, value in facts)
    when = f"{_minute(first)} to {_minute(last)} UTC"
    return f"{text}, {when}{f' on: {machine}' if machine else ''}."


def of_lab_host(target: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the facts of a lab host's machine from a target's facts."""
    return tuple(
        (name.removeprefix(OF_LAB_HOST), value)
        for name, value in target
        if name.startswith(OF_LAB_HOST)
    )


def _minute(instant: str) -> str:
    return instant[:16].replace("T", " ")


def conclusion(one: Difference, study: Study) -> str:
    """Return whether the other level is better, with the p-value."""
    words = _OF_COUNTS if study.is_counted else _WORDS if study.is_of_speed else _OF_OTHERS
    if one.is_in_turns:
        return words[one.answer]
    if not one.is_valid:
        return "no test: the load generator was the limit"
    if one.ratio.low is None:
        return "no test of one alone"
    if one.p_holm is None:
        return f"no test {UNTESTED}"
    return f"{words[one.answer]}, p = {one.p_holm:.2g}"
