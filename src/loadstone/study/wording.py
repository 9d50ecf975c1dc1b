"""Texts and table cells shared by terminal and Markdown."""

from collections import Counter
from collections.abc import Iterator, Sequence

from loadstone.compare.answer import Answer
from loadstone.report import figures
from loadstone.result import OF_LAB_HOST
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


def comparison_lines(study: Study, outcomes: Sequence[TurnOutcome]) -> Iterator[str]:
    """Describe the requested ratios, each with its test."""
    if any(1 < row.found < LEAST_REPEATS for row in rows(study, outcomes)):
        yield "Two repeats are too few for an interval; three give one."
    for comparison, differ in settings_that_differ(study, outcomes):
        if differ:
            listed = "; ".join(
                f"{s.name} {s.values[0] or 'none'} -> {s.values[1] or 'none'}" for s in differ
            )
            yield f"{comparison.base} and {comparison.other} differ in: {listed}"
    found = differences(study, outcomes)
    for one in found:
        yield f"{one}{_conclusion(one, study)}"
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
        within = "of one pair, whose interval is that within the measurements"
        return f": {word}; {within}" if study.is_counted else f": no test {within}"
    return f": {word}, p = {one.p_holm:.2g}"
