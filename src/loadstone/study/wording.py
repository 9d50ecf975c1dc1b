"""Texts and table cells shared by terminal and Markdown."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean

from loadstone.compare.answer import Answer
from loadstone.report import figures
from loadstone.result.model import OF_LAB_HOST
from loadstone.search.model import Capacity
from loadstone.study.journal import StudyJournal
from loadstone.study.model import Study
from loadstone.study.scaling import sentences
from loadstone.study.table import (
    LEAST_REPEATS,
    LEVEL,
    RATES,
    SAME_WITHIN,
    Difference,
    TableRow,
    TurnOutcome,
    differences,
    rows,
    settings_that_differ,
)

FEWEST_ALIKE = 3  # cells; of two, their ratio says it
UNTESTED = "(*)"  # of a ratio without a test; a line below says why

_WORDS = {
    Answer.FASTER: "faster",
    Answer.SLOWER: "slower",
    Answer.SAME: f"the same within {figures.percent(SAME_WITHIN)}",
    Answer.UNKNOWN: "no difference shown",
}

_OF_COUNTS = {**_WORDS, Answer.FASTER: "fewer", Answer.SLOWER: "more"}


def heads(study: Study) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the headers of the text columns and of the figure columns."""
    step = ("step",) if study.steps != (None,) else ()
    factors = tuple(factor.name for factor in study.factors)
    limit = ("which saturates?",) if study.names_limits else ()
    return (*factors, *step, *limit), (
        " ".join(study.figure).strip(),
        "interval",
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
    found = row.estimate
    shown = None if found is None else Capacity(found.value, found.low, found.high, 0.0)
    interval = figures.interval(shown)
    if 1 < row.found < LEAST_REPEATS:
        interval = "too few repeats"
    return (
        *(level for _, level in row.cell.levels),
        *step,
        *limit,
        failed or (figures.n(shown) if row.run_ids else figures.MISSING),
        interval,
        f"{row.found}/{row.repeats}",
        f"{row.published.value:g}" if row.published else "",
        valid,
    )


def _limits(limits: Sequence[str]) -> str:
    """Return the most frequent limit and its number of repeats."""
    if not limits:
        return figures.MISSING
    name, count = Counter(limits).most_common(1)[0]
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


def overview(study: Study, lines: Sequence[TableRow]) -> Iterator[str]:
    """Say of which cells no difference was shown, because all their intervals overlap."""
    for step in study.steps:
        own = [row for row in lines if row.step == step]
        found = [row.estimate for row in own if row.estimate is not None]
        lows = [one.low for one in found if one.low is not None]
        highs = [one.high for one in found if one.high is not None]
        values = [one.value for one in found if one.value is not None]
        is_whole = len(values) == len(own) == len(lows) == len(highs)
        if not is_whole or len(own) < FEWEST_ALIKE or max(lows) > min(highs):
            continue
        mean = fmean(values)
        within = figures.percent(max(abs(value - mean) for value in values) / mean)
        unit = f" {study.figure[1]}" if study.figure[1] else ""
        factors = _listed([factor.name for factor in study.factors])
        what = f"{step}: " if step else ""
        yield (
            f"{what}No difference was shown between the {len(own)} cells ({factors}): "
            f"{figures.rate(min(values))} to {figures.rate(max(values))}{unit}, each within "
            f"{within} of their mean, and all intervals overlap{_common_limit(own)}."
        )


def _common_limit(lines: Sequence[TableRow]) -> str:
    """Name the limit that was found in every measurement of these rows."""
    found = {limit for row in lines for limit in row.limits or ("",)}
    one = found.pop()
    return f"; the limit was {one} in all of them" if not found and one else ""


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def comparison_lines(study: Study, outcomes: Sequence[TurnOutcome]) -> Iterator[str]:
    """Describe the requested ratios, each with its test."""
    if any(1 < row.found < LEAST_REPEATS for row in rows(study, outcomes)):
        yield "Two repeats are too few for an interval; three give one."
    for comparison, differ in settings_that_differ(study, outcomes):
        if differ:
            both = [one for one in differ if None not in one.values]
            listed = [f"{one.name} {one.values[0]} -> {one.values[1]}" for one in both]
            if alone := len(differ) - len(both):
                count = "1 setting" if alone == 1 else f"{alone} settings"
                listed.append(f"{count} that only one of them has")
            yield f"{comparison.base} and {comparison.other} differ in: {'; '.join(listed)}"
    found = differences(study, outcomes)
    for one in found:
        yield f"{one}{_conclusion(one, study)}"
    if any(one.ratio.low is not None and one.p_holm is None for one in found):
        within = "its interval is that within the measurements"
        yield f"{UNTESTED} of one pair there is no test; {within}"
    tests = sum(one.p is not None for one in found)
    if tests > 1:
        yield (
            f"p is adjusted for {tests} tests (Holm): the chance that any of them shows a "
            f"difference where there is none is {figures.percent(LEVEL)}."
        )
    if study.figure[0] in RATES:
        yield from sentences(rows(study, outcomes))


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
    rows = of_lab_host(environment.target) if hosts else environment.machine
    machine = ", ".join(f"{name} {value}" for name, value in rows)
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


def _conclusion(one: Difference, study: Study) -> str:
    """Return whether the other level is better, with the p-value."""
    if one.ratio.low is None:
        return ": of one alone there is no test"
    word = (_OF_COUNTS if study.is_counted else _WORDS)[one.answer]
    if one.p_holm is None:
        return f": {word} {UNTESTED}" if study.is_counted else f": no test {UNTESTED}"
    return f": {word}, p = {one.p_holm:.2g}"
