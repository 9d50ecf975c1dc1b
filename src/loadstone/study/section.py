"""A study as a report: what makes a difference, a row for each cell, its runs."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from loadstone.compare import disturbance
from loadstone.diagnosis.finding import Severity
from loadstone.errors import InvalidInput
from loadstone.report import figures
from loadstone.report.chart import Chart, ChartSeries, Tone, Xy
from loadstone.report.section import (
    Answer,
    Certainty,
    Report,
    Row,
    Section,
    Statement,
    Table,
    TableColumn,
)
from loadstone.report.sections.left import with_left
from loadstone.report.sections.tables import columns
from loadstone.study.counted import count_lines
from loadstone.study.disturbance import disturbance_lines
from loadstone.study.duet import FLEET
from loadstone.study.faulted import fault_lines
from loadstone.study.first_failure import first_failures
from loadstone.study.journal import StudyJournal
from loadstone.study.model import Cell, Study
from loadstone.study.outcomes import exit_code
from loadstone.study.scaling import LAW_POINTS, Scaling, fit, scalings
from loadstone.study.software import change_lines, machine_lines
from loadstone.study.table import (
    RATES,
    Difference,
    RatioOutcome,
    TableRow,
    TurnOutcome,
    differences,
    figure_of,
    rows,
    settings_that_differ,
)
from loadstone.study.wording import (
    as_capacity,
    beside_reference,
    cells,
    comparison_notes,
    conclusion,
    doubts,
    heads,
    missing_ratios,
    overview,
    published,
    reasons,
    when_and_where,
)

MOST_TIMES = 2.0  # of the largest value: the chart clips intervals beyond


@dataclass(frozen=True, slots=True)
class _Shown:
    """A study, and what is made of its results."""

    journal: StudyJournal
    study: Study
    outcomes: Sequence[TurnOutcome]
    in_turns: Sequence[RatioOutcome]
    rows: tuple[TableRow, ...]
    differences: tuple[Difference, ...]

    @property
    def store(self) -> str:
        """The option of the study's store, for commands."""
        return self.journal.store.option


def report_of(
    journal: StudyJournal,
    outcomes: Sequence[TurnOutcome],
    in_turns: Sequence[RatioOutcome] = (),
) -> Report:
    """Return a study as a report, complete or not."""
    study = journal.begun.study()
    lines, compared = rows(study, outcomes), differences(study, outcomes, in_turns)
    shown = _Shown(journal, study, outcomes, in_turns, lines, compared)
    charts = [chart for step in study.steps if (chart := _chart(study, step, lines)) is not None]
    if study.figure[0] in RATES:
        charts += [_scaling(number, one) for number, one in enumerate(scalings(lines), 1)]
    sections = tuple(_section(shown, row) for row in lines)
    report = Report(
        title=study.title,
        subject=f"After: {study.source}" if study.source else "",
        about=when_and_where(journal, outcomes),
        sections=sections,
        overview=_overview(study, lines, sections),
        is_compact=True,
        name=f"loadstone study {study.name}",
        id=journal.study_id,
        started_at=journal.begun.started_at,
        exit_code=exit_code(outcomes, in_turns),
        statements=tuple(_statements(shown)),
        notes=tuple(_notes(shown)),
        tables=tuple(_compared(shown)),
        charts=tuple(charts),
        settings=tuple(_differing(study, outcomes)),
        page=f"loadstone study show {journal.study_id} --html FILE{shown.store}",
        data=_data(shown),
    )
    left = [one.result.run_id for one in outcomes if one.result is not None and not one.is_clean]
    left += [run_id for one in in_turns for run_id in one.left]
    return with_left(report, left, shown.store)


def _fleet(outcomes: Sequence[TurnOutcome]) -> str:
    """Return the fleet that sent the load; empty if this machine did."""
    runs = [one.result for one in outcomes if one.result is not None]
    known = [dict(run.environment.machine).get("fleet", "") for run in runs]
    return next(filter(None, known), "")


def _statements(shown: _Shown) -> Iterator[Statement]:
    """Yield what shows no difference first, then what is missing, then what was wrong."""
    study, outcomes, in_turns = shown.study, shown.outcomes, shown.in_turns
    yield from map(Statement, overview(study, shown.rows, shown.differences))
    yield from map(Statement, beside_reference(study, shown.rows))
    fleet = _fleet(outcomes)
    senders = f" --fleet {shlex.quote(fleet)}" if fleet else ""
    resume = f"loadstone study run --resume {shown.journal.study_id}{senders}{shown.store}"
    missing = sum(one.result is None for one in outcomes)
    if missing:
        text = f"{missing} of {len(outcomes)} measurements are missing; go on: {resume}"
        yield Statement(text, Severity.CRITICAL)
    alone = sum(one.ratio is None for one in in_turns)
    if alone and (fleet or any(one.host for one in outcomes)):
        yield Statement(FLEET)
    elif alone and not missing:
        text = f"{alone} of {len(in_turns)} ratios were not measured in turns; go on: {resume}"
        yield Statement(text, Severity.WARNING)
    for pair in in_turns:
        failed = pair.failure.splitlines()[:1] if pair.failure else []
        for text in (*failed, *disturbance.notes(pair.runs)):
            yield Statement(f"{pair.cells}, in turns: {text}", Severity.WARNING)
    warnings = chain(
        doubts(shown.differences),
        missing_ratios(study, outcomes),
        reasons(shown.rows),
        change_lines(outcomes, in_turns),
        () if study.is_counted else machine_lines(outcomes, in_turns),
    )
    yield from (Statement(one, Severity.WARNING) for one in warnings)
    yield from map(Statement, disturbance_lines(outcomes))


def _notes(shown: _Shown) -> Iterator[str]:
    """Yield how to read the table: the study's own notes, footnotes, and what was counted."""
    study, outcomes = shown.study, shown.outcomes
    if study.quick:
        yield f"Quick form: {study.quick}"
    yield from study.notes
    yield from published(shown.rows)
    yield from comparison_notes(study, shown.rows, shown.differences)
    yield from count_lines(study, outcomes)
    yield from first_failures(study, outcomes)
    yield from fault_lines(study, outcomes)


def _overview(study: Study, lines: Sequence[TableRow], sections: Sequence[Section]) -> Table:
    texts, numbers = heads(study)
    found = tuple(
        Row(cells(row), target=section.id) for row, section in zip(lines, sections, strict=True)
    )
    return Table("Cells of the study", columns(*texts, numbers=numbers), found)


def _compared(shown: _Shown) -> Iterator[Table]:
    """Yield the requested ratios, each with its interval and its answer."""
    found = shown.differences
    if not found:
        return
    has_report = any(one.run_ids for one in found)
    figured = columns("compared", "where", numbers=("ratio", "interval", "of"))
    last = columns("answer", *(["report"] if has_report else []))
    yield Table(
        "Compared",
        (*figured, *last),
        tuple(
            Row(
                (
                    f"{one.comparison.other} / {one.comparison.base}",
                    one.where or figures.MISSING,
                    f"{one.ratio.mean:.3g}",
                    one.interval or figures.MISSING,
                    one.count,
                    conclusion(one, shown.study),
                    *((_report(shown, one.run_ids),) if has_report else ()),
                )
            )
            for one in found
        ),
    )


def _report(shown: _Shown, run_ids: Sequence[str]) -> str:
    """Return the command that shows a run or a comparison in turns in full."""
    return f"loadstone report {run_ids[0]}{shown.store}" if run_ids else ""


def _differing(study: Study, outcomes: Sequence[TurnOutcome]) -> Iterator[Table]:
    """Yield the settings in which two compared levels differ."""
    for comparison, differ in settings_that_differ(study, outcomes):
        if differ:
            title = f"Settings in which {comparison.base} and {comparison.other} differ"
            heads_ = columns("setting", comparison.base, comparison.other)
            values = (
                Row((one.name, *(value or figures.MISSING for value in one.values)))
                for one in differ
            )
            yield Table(title, heads_, tuple(values))


def _section(shown: _Shown, row: TableRow) -> Section:
    study, outcomes = shown.study, shown.outcomes
    found, (label, unit) = row.estimate, study.figure
    number = study.cells.index(row.cell) * len(study.steps) + study.steps.index(row.step) + 1
    title = f"{row.cell}, {row.step}" if row.step else str(row.cell)
    capacity = None if found is None else as_capacity(found)
    text = figures.n(capacity)
    is_known = text != figures.NOT_FOUND
    why = "; ".join(row.failures)
    said = f"{title}: {label} {text}{f' {unit}' if is_known else ''}"
    within = figures.interval(capacity)
    return Section(
        id=f"cell-{number}",
        title=title,
        subtitle=" ".join(f"{key}={value}" for key, value in row.cell.settings),
        scenario=row.cell.scenario or "",
        answer=Answer(
            label=label,
            text=text,
            unit=unit if is_known else "",
            sentence=said + (f" ({why})" if why else ""),
            value=figure_of(found) if found else None,
            low=found.low if found else None,
            high=found.high if found else None,
            interval="" if within == figures.MISSING else within,
            confidence=found.confidence if found else 0.0,
        ),
        certainty=_certainty(row, outcomes),
        statements=tuple(Statement(one, Severity.WARNING) for one in row.failures),
        tables=(_runs(shown, row.cell),),
        data=_row(row),
    )


def _certainty(row: TableRow, outcomes: Sequence[TurnOutcome]) -> Certainty:
    tones: dict[bool | None, tuple[Tone, str]] = {
        True: ("sustained", "valid"),
        False: ("invalid", "load generator was the limit"),
        None: ("undecided", "not measured"),
    }
    is_short = row.is_valid is not True or bool(row.failures) or row.estimate is None
    if row.is_valid is None and row.estimate is not None:
        tones[None] = ("undecided", "load generator's health not known")
    codes = [one.exit_code for one in outcomes if one.turn.cell == row.cell]
    tone, text = tones[row.is_valid]
    if not is_short or not any(codes):
        return Certainty(tone, text)
    return Certainty(tone, text, max(codes), "; ".join(row.failures) or text, "not measured well")


def _runs(shown: _Shown, cell: Cell) -> Table:
    """Return the runs of a cell with the command that shows each in full."""
    study = shown.study
    own = sorted((o for o in shown.outcomes if o.turn.cell == cell), key=lambda o: o.turn.repeat)
    steps = [step or " ".join(study.figure).strip() for step in study.steps]
    found = []
    for outcome in own:
        by_step = outcome.found(study)
        values = (one.estimate if (one := by_step.get(s)) else None for s in study.steps)
        run_ids = (outcome.result.run_id,) if outcome.result else ()
        command = _report(shown, run_ids) or "not measured"
        texts = tuple(figures.n(as_capacity(one)) if one else figures.MISSING for one in values)
        note = "; ".join(outcome.failures(study, study.steps))
        found.append(Row((str(outcome.turn.repeat), *texts, command), note))
    numbers = columns(numbers=("repeat", *steps))
    return Table("Runs", (*numbers, TableColumn("report")), tuple(found))


def _data(shown: _Shown) -> dict[str, Any]:
    journal, study = shown.journal, shown.study
    return {
        "document": "study",
        "study_id": journal.study_id,
        "study": study.name,
        "title": study.title,
        "source": study.source,
        "notes": list(study.notes),
        "quick": study.quick,
        "seed": journal.begun.seed,
        "started_at": journal.begun.started_at,
        "missing": sum(one.result is None for one in shown.outcomes),
        "figure": {"name": study.figure[0], "unit": study.figure[1]},
        "differences": [
            {
                "factor": one.comparison.factor,
                "base": one.comparison.base,
                "other": one.comparison.other,
                "step": one.step,
                "where": dict(one.others),
                "ratio": one.ratio.mean,
                "low": one.ratio.low,
                "high": one.ratio.high,
                "count": one.ratio.count,
                "unit": one.unit,
                "p": one.p,
                "p_holm": one.p_holm,
                "answer": one.answer.value,
                "words": str(one),
                "run_ids": list(one.run_ids),
            }
            for one in shown.differences
        ],
    }


def _row(row: TableRow) -> dict[str, Any]:
    found = row.estimate
    return {
        "levels": dict(row.cell.levels),
        "step": row.step,
        "scenario": row.cell.scenario or None,
        "title": str(row.cell),
        "settings": dict(row.cell.settings),
        "value": figure_of(found) if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "confidence": found.confidence if found else None,
        "values": list(row.figures),
        "repeats": row.repeats,
        "generator_valid": row.is_valid,
        "published": row.published.value if row.published else None,
        "published_words": row.published.words if row.published else None,
        "failures": list(row.failures),
        "run_ids": list(row.run_ids),
        "saturates": None if row.limits is None else [one for one in row.limits if one],
        "p99_ms": row.costs.p99_ms if row.costs else None,
        "cpu_ms": row.costs.cpu_ms if row.costs else None,
        "memory_mb": row.costs.memory_mb if row.costs else None,
    }


def _chart(study: Study, step: str | None, lines: Sequence[TableRow]) -> Chart | None:
    """Return the figure of each cell with its interval, a row for each; None without a figure."""
    own = [row for row in lines if row.step == step]
    named = [(float(len(own) - number), row) for number, row in enumerate(own)]
    values = tuple(
        (row.estimate.value, y) for y, row in named if row.estimate and row.estimate.value
    )
    if not values:
        return None
    limit = MOST_TIMES * max(x for x, _ in values)
    # The middle of a range is no figure, and neither is a bound.
    points = tuple(
        (row.estimate.value, y)
        for y, row in named
        if row.estimate and row.estimate.value and figure_of(row.estimate) is not None
    )
    name, unit = study.figure
    shown = "N" if name == "N" else name
    cut = any(((row.estimate and row.estimate.high) or 0.0) > limit for row in own)
    note = " Intervals that end at the edge reach further." if cut else ""
    series = [
        ChartSeries("interval", "intervals", "p50", _intervals(named, limit)),
        ChartSeries(shown, "points", "p50", points),
    ]
    return Chart(
        id=f"chart-{study.steps.index(step) + 1}",
        title=f"{step}: {shown}" if step else f"{shown} of each cell",
        summary=f"{shown} ({unit}), with its interval where one is known.{note}",
        x_label=f"{shown} {unit}",
        y_label="",
        series=tuple(one for one in series if one.data),
        from_zero_x=min(x for x, _ in values) < max(x for x, _ in values) / 2,
        rows=tuple(str(row.cell) for row in own),
    )


def _scaling(number: int, one: Scaling) -> Chart:
    """Return the capacities over the count, the fitted law and the ideal line."""
    most = max(count for count, _ in one.points)
    try:
        law = fit(one.points)
    except InvalidInput as refused:
        curve: tuple[Xy, ...] = ()
        ideal: tuple[Xy, ...] = ()
        summary = f"{refused}."
    else:
        counts = [1 + (most - 1) * step / (LAW_POINTS - 1) for step in range(LAW_POINTS)]
        curve = tuple((count, law.at(count)) for count in counts)
        # Limited to twice the law, as a longer ideal line would flatten the curve.
        top = 2 * max(rate for _, rate in one.points)
        reach = min(most, top / law.rate_rps.value)
        ideal = ((0.0, 0.0), (reach, reach * law.rate_rps.value))
        summary = (
            "The points are the repeats, the line is the Universal Scalability Law fitted to them, "
            "the dashed line what each one more would bring if nothing were shared."
        )
    series = (
        ChartSeries("measured", "points", "metered", one.points),
        ChartSeries("fitted law", "line", "p50", curve),
        ChartSeries("ideal", "dashed", "even", ideal),
    )
    return Chart(
        id=f"scaling-{number}",
        title=f"Scaling over {one.title}",
        summary=summary,
        x_label=one.factor,
        y_label="per second",
        series=tuple(line for line in series if line.data),
        from_zero_x=True,
        from_zero_y=True,
    )


def _intervals(named: Sequence[tuple[float, TableRow]], limit: float) -> tuple[Xy, ...]:
    return tuple(
        (min(end, limit), y)
        for y, row in named
        if row.estimate and row.estimate.low is not None and row.estimate.high is not None
        for end in (row.estimate.low, row.estimate.high)
    )
