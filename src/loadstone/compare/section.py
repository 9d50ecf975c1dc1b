"""A comparison as a report: a section for each scenario."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.analysis import decimals
from loadstone.compare.answer import ComparisonAnswer, Criteria, Metric, MetricComparison, leading
from loadstone.compare.metrics import REQUEST_TIME, THROUGHPUT
from loadstone.compare.pairs import GuardOutcome, deciding, guard
from loadstone.compare.where import (
    LEAST_STATEMENTS,
    MOST,
    FrameTime,
    Where,
    sentence,
    statement_sentence,
)
from loadstone.diagnosis.finding import Severity
from loadstone.errors import FELL_SHORT, MeasurementInvalid
from loadstone.report import figures
from loadstone.report.chart import Tone
from loadstone.report.section import (
    Answer,
    Certainty,
    Fact,
    Flame,
    NamedFigure,
    Report,
    Row,
    Section,
    Statement,
    Table,
    TableColumn,
)
from loadstone.report.sections.left import with_left
from loadstone.report.sections.overview import overview
from loadstone.report.sections.tables import columns
from loadstone.report.settings import SettingDifference

SHARES = (0.01, 0.02, 0.05, 0.1)  # differences for which an unknown answer lists the needed pairs
APART = (
    "A and B were measured at different times: a machine that drifts makes differences of its own. "
    "`loadstone compare --lab A --lab B` measures them in pairs."
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison with everything that its views show."""

    names: tuple[str, str]
    settings: tuple[SettingDifference, ...]
    metrics: tuple[tuple[str, tuple[MetricComparison, ...]], ...]  # by scenario
    criteria: Criteria
    is_paired: bool
    is_in_turns: bool = False  # each side rests until the bucket of a limiter is full again
    run_ids: tuple[str, ...] = ()
    most_slower: float | None = None  # limit of --fail-if-slower; None: no limit
    statements: tuple[str, ...] = ()  # on the way in which it was measured
    where: Where | None = None  # where the difference lies
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()  # the runs that left something in their clouds
    broken_off: str = ""  # why its measurement ended early, so that no answer holds


TONES: dict[ComparisonAnswer, Tone] = {
    ComparisonAnswer.FASTER: "sustained",
    ComparisonAnswer.SAME: "sustained",
    ComparisonAnswer.SLOWER: "degraded",
    ComparisonAnswer.UNKNOWN: "undecided",
}
NOTHING = "nothing was measured"
# What a difference means.
MEANINGS: dict[Metric, str] = {
    THROUGHPUT: "At this load, B completes {}: N differs by the same factor if both are "
    "full and no limiter of requests comes first",
    REQUEST_TIME: "A request that waits for no other takes {} time on B",
}
MANY_TIMES = 2.0  # from this ratio on, or its inverse, a factor is easier to read than a percentage


def report_of(compared: Compared, store: str = "") -> Report:
    """Return the comparison as a report; `store` is the option that chooses its runs' store."""
    a, b = compared.names
    sections = tuple(
        _section(number, title, rows, compared)
        for number, (title, rows) in enumerate(compared.metrics, 1)
    )
    apart = () if compared.is_paired else (APART,)
    names = compared.run_ids[:1] if compared.is_paired else compared.run_ids
    output = "" if compared.is_paired else " -o FILE"
    same = "A and B do not differ in any setting that is known."
    is_measured = any(rows for _, rows in compared.metrics)
    known_same = (same,) if is_measured and not compared.settings else ()
    notes = (*apart, *compared.notes, *known_same)
    report = Report(
        title=_title(compared),
        subject=f"A: {a}, B: {b}",
        sections=sections,
        overview=overview(sections),
        anchor="comparison",
        name="loadstone compare",
        exit_code=answer_code(compared),
        statements=(
            *(Statement(one, Severity.WARNING) for one in notes),
            *((Statement(sentence(compared.where)),) if compared.where else ()),
            *(
                (Statement(statement_sentence(compared.where)),)
                if compared.where and compared.where.statements
                else ()
            ),
            *map(Statement, compared.statements),
        ),
        tables=(
            *((_functions(compared.where),) if compared.where else ()),
            *((_sql(compared.where),) if compared.where and compared.where.statements else ()),
            *((_settings(compared),) if compared.settings else ()),
        ),
        page=f"loadstone report {' '.join(names)}{store}{output}" if names else "",
        data=_data(compared),
    )
    return with_left(report, compared.left, store)


def answer_code(compared: Compared) -> int:
    """Return 0 if the answer is known, and B is not too slow with --fail-if-slower."""
    return worst_code([_code(rows, compared)[0] for _, rows in compared.metrics])


def worst_code(codes: Sequence[int]) -> int:
    """Return the exit code of several scenarios or comparisons."""
    if FELL_SHORT in codes:
        return FELL_SHORT
    return max(codes, default=MeasurementInvalid.exit_code)


def _code(rows: tuple[MetricComparison, ...], compared: Compared) -> tuple[int, str]:
    """Return the exit code of one scenario, and why it is not 0."""
    if compared.broken_off or not rows:
        return MeasurementInvalid.exit_code, compared.broken_off or NOTHING
    if compared.most_slower is None:
        row = deciding(rows)
        is_known = row.answer is not ComparisonAnswer.UNKNOWN
        return (0, "") if is_known else (MeasurementInvalid.exit_code, _sentence(row, compared))
    outcome, row = guard(rows, compared.most_slower)
    code = {
        GuardOutcome.PASSED: 0,
        GuardOutcome.FAILED: FELL_SHORT,
        GuardOutcome.UNDECIDED: MeasurementInvalid.exit_code,
    }[outcome]
    return code, "" if code == 0 else _guard(row, outcome, compared)


def _title(compared: Compared) -> str:
    a, b = compared.names
    found = [
        f"{title} {row.metric.name} {row.ratio:.3f} times ({interval(row)}), {row.answer.value}"
        for title, rows in compared.metrics
        for row in _headlines(rows)
    ]
    return f"{b} compared with {a}: {'; '.join(found) or NOTHING}"


def _headlines(rows: Sequence[MetricComparison]) -> list[MetricComparison]:
    """Return the metric that decides, and those that have another answer."""
    if not rows:
        return []
    first = deciding(rows)
    known = (row for row in leading(rows) if row.answer is not ComparisonAnswer.UNKNOWN)
    return [first, *(row for row in known if row.answer is not first.answer)]


def _section(
    number: int, title: str, rows: tuple[MetricComparison, ...], compared: Compared
) -> Section:
    code, reason = _code(rows, compared)
    first = deciding(rows) if rows else None
    is_known = first is not None and math.isfinite(first.high)
    kind = "fell short" if code == FELL_SHORT else "not decided"
    said = f"{title}: {_sentence(first, compared)}" if first else f"{title}: {NOTHING}."
    return Section(
        id=f"compared-{number}",
        title=title,
        answer=Answer(
            label="B / A",
            text=f"{first.ratio:.3f}" if first else figures.NOT_FOUND,
            unit="",
            sentence=said,
            value=first.ratio if first else None,
            low=first.low if first and is_known else None,
            high=first.high if first and is_known else None,
            interval=interval(first) if first and is_known else "",
            confidence=1 - compared.criteria.alpha if is_known else 0.0,
        ),
        certainty=Certainty(
            TONES[first.answer] if first else "undecided",
            first.answer.value if first else NOTHING,
            code,
            reason,
            kind if code else "",
        ),
        facts=tuple(_facts(first, rows, compared)) if first else (),
        figures=tuple(
            NamedFigure(f"{row.metric.name} B / A", row.metric.name, row.ratio) for row in rows
        ),
        statements=tuple(Statement(_meaning(row)) for row in leading(rows) if _has_meaning(row)),
        tables=(_metrics(rows),) if rows else (),
        flame=_flame(compared.where) if compared.where and number == 1 else None,
        data={
            "scenario": title,
            "title": title,
            "metrics": {row.metric.name: _row_data(row) for row in rows},
        },
    )


def _has_meaning(row: MetricComparison) -> bool:
    """Return whether a ratio can be said in words: a difference is shown."""
    return row.metric in MEANINGS and row.answer in (
        ComparisonAnswer.FASTER,
        ComparisonAnswer.SLOWER,
    )


def _meaning(row: MetricComparison) -> str:
    change = f"{figures.percent(abs(row.ratio - 1))} {'more' if row.ratio > 1 else 'less'}"
    if _is_many_times(row.ratio):
        change = f"{figures.rate(row.ratio)} times as much"
    return f"{MEANINGS[row.metric].format(change)} ({interval(row)} times)."


def _is_many_times(ratio: float) -> bool:
    return not 1 / MANY_TIMES < ratio < MANY_TIMES


def _facts(
    first: MetricComparison, rows: tuple[MetricComparison, ...], compared: Compared
) -> Iterator[Fact]:
    a, b = value_of(first, first.a), value_of(first, first.b)
    answer = _sentence(first, compared).replace(f" (95 %: {interval(first)} times)", "")
    yield Fact("answer", answer, rank=1)
    yield Fact("metric", first.metric.name, is_line=False, is_column=True)
    yield Fact("A", a, is_line=False, is_column=True)
    yield Fact("B", b, is_line=False, is_column=True)
    if compared.most_slower is not None:
        outcome, row = guard(rows, compared.most_slower)
        if compared.broken_off:
            outcome = GuardOutcome.UNDECIDED
        yield Fact("guard", _guard(row, outcome, compared), rank=2)
    for other in leading(rows):
        if other is not first:
            yield Fact(other.metric.name, _sentence(other, compared), rank=3)


def _guard(row: MetricComparison, outcome: GuardOutcome, compared: Compared) -> str:
    """Say whether B is too slow, with the interval of the difference."""
    share = figures.percent(compared.most_slower or 0.0)
    within = f"{interval(row)} times" if math.isfinite(row.high) else "no interval"
    ratio = f"{row.metric.name} B / A {row.ratio:.3f} ({within})"
    if outcome is GuardOutcome.UNDECIDED:
        needed = row.pairs_to_decide(compared.most_slower or 0.0)
        more = f"; if the ratio is as seen, {needed:,} pairs decide" if needed else ""
        return f"undecided: {ratio}, {share} slower allowed{more}"
    text = f"{outcome.value} by more than {share}: {ratio}"
    if outcome is GuardOutcome.PASSED and compared.is_in_turns:
        return f"{text}, in turns, where a limiter of requests may not show"
    return text


def _metrics(rows: tuple[MetricComparison, ...]) -> Table:
    heads = (*columns("metric", numbers=("A", "B", "B / A", "95 %")), TableColumn("B is"))
    return Table("Metrics", heads, tuple(map(_row, rows)), is_primary=True)


def _row(row: MetricComparison) -> Row:
    values = (value_of(row, row.a), value_of(row, row.b), f"{row.ratio:.3f}", interval(row))
    return Row((row.metric.name, *values, row.answer.value))


def _flame(found: Where) -> Flame:
    caption = (
        "A box is a function; its width is its time per request in A and B together, callers stand "
        "below what they call. Red: it takes longer in B. Blue: it takes longer in A. Grey: no "
        "difference beyond chance."
    )
    return Flame("comparison-flame", _tree(found.root), caption)


def _tree(frame: FrameTime) -> dict[str, Any]:
    """Return a differential flame graph's tree; widths add up because they are of both sides."""
    time = frame.time
    return {
        "name": time.name,
        "value": round(time.a_ms + time.b_ms, 4),
        "a": round(time.a_ms, 4),
        "b": round(time.b_ms, 4),
        "differs": time.is_sure,
        "children": [_tree(one) for one in frame.children],
    }


def _functions(found: Where) -> Table:
    rows = [found.whole, *found.functions[:MOST]]
    return Table(
        "Time of a worker per request, by function",
        columns("function", numbers=("A, ms", "B, ms", "B - A, ms")),
        tuple(
            Row((one.name, f"{one.a_ms:.2f}", f"{one.b_ms:.2f}", f"{one.difference_ms:+.2f}"))
            for one in rows
        ),
        "Functions that differ by more than chance, with what they call and wait for.",
    )


def _sql(found: Where) -> Table:
    differ = [one for one in found.statements if abs(one.difference) >= LEAST_STATEMENTS]
    return Table(
        "SQL statements of a request, by shape",
        columns("statement", numbers=("A", "B", "B - A")),
        tuple(
            Row((one.text, f"{one.a:.1f}", f"{one.b:.1f}", f"{one.difference:+.1f}"))
            for one in differ[:MOST]
        ),
        "Statements that differ, without their values and columns.",
    )


def _settings(compared: Compared) -> Table:
    heads = (
        "setting that differs",
        *(f"{x}: {n}" for x, n in zip("AB", compared.names, strict=True)),
    )
    rows = (
        Row((one.name, *(value or figures.MISSING for value in one.values)))
        for one in compared.settings
    )
    return Table("Settings that differ", tuple(map(TableColumn, heads)), tuple(rows))


def _data(compared: Compared) -> dict[str, Any]:
    return {
        "document": "comparison",
        "runs": list(compared.run_ids),
        "a": compared.names[0],
        "b": compared.names[1],
        "interleaved": compared.is_paired,
        "settings": [
            {"name": one.name, "a": one.values[0], "b": one.values[1]} for one in compared.settings
        ],
        "same_within": compared.criteria.same_within,
        "notes": list(compared.notes),
        "where": None if compared.where is None else _where_data(compared.where),
        "guard": guard_data((compared,)),
    }


def guard_data(found: Sequence[Compared]) -> dict[str, Any] | None:
    """Return the worst result of --fail-if-slower of comparisons; None without a limit."""
    most_slower = found[0].most_slower
    if most_slower is None:
        return None
    outcomes = [
        guard(rows, most_slower)[0] if rows and not one.broken_off else GuardOutcome.UNDECIDED
        for one in found
        for _, rows in one.metrics
    ]
    return {"most_slower": most_slower, "outcome": _worst(outcomes).value}


def _where_data(found: Where) -> dict[str, Any]:
    return {
        "sentence": sentence(found),
        "functions": [
            {"name": one.name, "a_ms": one.a_ms, "b_ms": one.b_ms, "error_ms": one.error_ms}
            for one in (found.whole, *found.functions)
        ],
        "statements": [{"text": one.text, "a": one.a, "b": one.b} for one in found.statements],
    }


def _worst(outcomes: list[GuardOutcome]) -> GuardOutcome:
    if GuardOutcome.FAILED in outcomes:
        return GuardOutcome.FAILED
    is_known = outcomes and GuardOutcome.UNDECIDED not in outcomes
    return GuardOutcome.PASSED if is_known else GuardOutcome.UNDECIDED


def interval(row: MetricComparison) -> str:
    """Return the ends of the ratio's interval, with the digits that tell them from 1."""
    if not math.isfinite(row.high):
        return figures.MISSING
    ends = (f"{end:.{decimals.needed(end, 1.0, 3)}f}" for end in (row.low, row.high))
    return " to ".join(ends)


def value_of(row: MetricComparison, value: float) -> str:
    """Return a value of a metric with its unit."""
    if row.metric.unit == "s":
        return figures.milliseconds(value * 1e3)
    return f"{figures.rate(value)}{row.metric.unit}"


def _sentence(row: MetricComparison, compared: Compared) -> str:
    """Return the answer of one metric in words."""
    names = dict(zip("ab", compared.names, strict=True))
    if names["a"] == names["b"]:
        names = {"a": "A", "b": "B"}
    differs = figures.percent(abs(row.ratio - 1))
    is_, equals, that = (
        ("are", "equal", "those") if row.metric.is_plural else ("is", "equals", "that")
    )
    than = f"{is_} {differs} {'higher' if row.ratio > 1 else 'lower'} than"
    if differs == figures.percent(0.0):
        than = equals
    elif _is_many_times(row.ratio):
        than = f"{is_} {figures.rate(row.ratio)} times"
    about = f"{row.metric.name} of {names['b']} {than} {that} of {names['a']}"
    within = f"(95 %: {interval(row)} times)" if math.isfinite(row.high) else "(no interval)"
    match row.answer:
        case ComparisonAnswer.FASTER | ComparisonAnswer.SLOWER:
            return f"{row.answer.value}: {about} {within}"
        case ComparisonAnswer.SAME:
            margin = figures.percent(compared.criteria.same_within)
            return f"the same within {margin}: {about} {within}"
        case ComparisonAnswer.UNKNOWN:
            return f"not enough evidence: {about} {within}{_needed(row)}"


def _needed(row: MetricComparison) -> str:
    needs = [(share, row.pairs_to_find(share)) for share in SHARES]
    known = [f"{figures.percent(share)} takes {count} pairs" for share, count in needs if count]
    return f"; to find a difference of {', '.join(known)}" if known else ""


def _row_data(row: MetricComparison) -> dict[str, object]:
    return {
        "unit": row.metric.unit,
        "a": row.a,
        "b": row.b,
        "ratio": row.ratio,
        "low": row.low if math.isfinite(row.high) else None,
        "high": row.high if math.isfinite(row.high) else None,
        "pairs": row.pairs,
        "answer": row.answer.value,
    }
