"""Results of a study as a self-contained HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import InvalidInput
from loadstone.report import figures
from loadstone.report.html.charts import Chart, ChartSeries, Xy
from loadstone.report.html.page import rendered
from loadstone.study.counted import count_lines
from loadstone.study.disturbance import disturbance_lines
from loadstone.study.first_failure import first_failures
from loadstone.study.journal import StudyJournal
from loadstone.study.model import Cell, Study
from loadstone.study.scaling import LAW_POINTS, Scaling, fit, scalings
from loadstone.study.show import elsewhere
from loadstone.study.table import RATES, TableRow, TurnOutcome, rows
from loadstone.study.wording import (
    cells,
    comparison_lines,
    heads,
    overview,
    published,
    reasons,
    when_and_where,
)
from loadstone.system import files

MOST_TIMES = 2.0  # of the largest value: the chart clips intervals beyond


@dataclass(frozen=True, slots=True)
class CellRow:
    """One row of the table; `anchor` is that of its cell."""

    anchor: str
    words: tuple[str, ...]
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunRow:
    """One measurement of a cell; without an id it is missing or failed."""

    repeat: int
    run_id: str | None
    values: tuple[str, ...]  # by step
    command: str  # that shows the run in full
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CellSection:
    """One cell with its runs."""

    anchor: str
    title: str
    settings: str
    runs: tuple[RunRow, ...]


def write(journal: StudyJournal, outcomes: Sequence[TurnOutcome], path: Path) -> None:
    """Write the page, also of a study that has not ended."""
    files.write(path, render(journal, outcomes))


def render(journal: StudyJournal, outcomes: Sequence[TurnOutcome]) -> str:
    """Return the page as text."""
    study = journal.begun.study()
    lines = rows(study, outcomes)
    texts, numbers = heads(study)
    charts = [chart for step in study.steps if (chart := _chart(study, step, lines)) is not None]
    if study.figure[0] in RATES:
        charts += [_scaling(number, one) for number, one in enumerate(scalings(lines), 1)]
    return rendered(
        "study.html.j2",
        charts,
        title=study.title,
        study=study,
        drawn_charts=charts,
        word_heads=texts,
        number_heads=numbers,
        rows=[_row(study, row, len(texts)) for row in lines],
        cells=[_section(journal, study, cell, outcomes) for cell in study.cells],
        reasons=reasons(lines),
        published=list(published(lines)),
        answers=list(overview(study, lines)),
        compared=[
            *comparison_lines(study, outcomes),
            *count_lines(study, outcomes),
            *first_failures(study, outcomes),
            *disturbance_lines(outcomes),
        ],
        missing=sum(one.result is None for one in outcomes),
        count=len(outcomes),
        resume=f"loadstone study run --resume {journal.study_id}{elsewhere(journal)}",
        when=when_and_where(journal, outcomes),
    )


def _anchor(study: Study, cell: Cell) -> str:
    return f"cell-{study.cells.index(cell) + 1}"


def _row(study: Study, row: TableRow, text_count: int) -> CellRow:
    texts = cells(row)
    return CellRow(_anchor(study, row.cell), texts[:text_count], texts[text_count:])


def _section(
    journal: StudyJournal, study: Study, cell: Cell, outcomes: Sequence[TurnOutcome]
) -> CellSection:
    own = sorted((o for o in outcomes if o.turn.cell == cell), key=lambda o: o.turn.repeat)
    return CellSection(
        anchor=_anchor(study, cell),
        title=str(cell),
        settings=" ".join(f"{key}={value}" for key, value in cell.settings),
        runs=tuple(_run(journal, study, outcome) for outcome in own),
    )


def _run(journal: StudyJournal, study: Study, outcome: TurnOutcome) -> RunRow:
    run_id = outcome.result.run_id if outcome.result else None
    found = outcome.found(study)
    values = (one.estimate if (one := found.get(step)) else None for step in study.steps)
    return RunRow(
        repeat=outcome.turn.repeat,
        run_id=run_id,
        values=tuple(figures.rate(one.value if one else None) for one in values),
        command=f"loadstone report {run_id}{elsewhere(journal)}" if run_id else "",
        failures=outcome.failures(study),
    )


def _chart(study: Study, step: str | None, lines: Sequence[TableRow]) -> Chart | None:
    """Return the figure of each cell with its interval, a row for each; None without a figure."""
    own = [row for row in lines if row.step == step]
    named = [(float(len(own) - number), row) for number, row in enumerate(own)]
    values = tuple(
        (row.estimate.value, y) for y, row in named if row.estimate and row.estimate.value
    )
    if not values:
        return None
    others = tuple((row.published.value, y) for y, row in named if row.published)
    most = max(x for x, _ in values)
    # A published value of another machine may be so far away that all cells look the same.
    far = tuple(one for one in others if one[0] > MOST_TIMES * most)
    others = tuple(one for one in others if one not in far)
    limit = MOST_TIMES * max(x for x, _ in (*values, *others))
    name, unit = study.figure
    shown = "N" if name == "N" else name
    cut = any(((row.estimate and row.estimate.high) or 0.0) > limit for row in own)
    note = " Intervals that end at the edge reach further." if cut else ""
    note += " Published values far beyond are in the table only." if far else ""
    series = [
        ChartSeries("interval", "intervals", "p50", _intervals(named, limit)),
        ChartSeries(shown, "points", "p50", values),
        ChartSeries("published", "points", "undecided", others),
    ]
    return Chart(
        id=f"chart-{study.steps.index(step) + 1}",
        title=f"{step}: {shown}" if step else f"{shown} of each cell",
        summary=f"{shown} ({unit}), with its interval where one is known.{note}",
        x_label=f"{shown} {unit}",
        y_label="",
        series=tuple(one for one in series if one.data),
        from_zero_x=True,
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
