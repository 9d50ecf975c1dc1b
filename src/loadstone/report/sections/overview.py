"""The overview of a report: a row for each section, with its answer, its interval and its facts."""

from collections.abc import Sequence

from loadstone.report import figures
from loadstone.report.section import Cell, IntervalCell, Row, Section, Table, TableColumn, ToneCell


def overview(sections: Sequence[Section]) -> Table:
    """Return the table; a column is left out if no section has anything for it."""
    answers = {(one.answer.label, one.answer.unit) for one in sections}
    is_shared = len(answers) == 1
    [head] = answers if is_shared else {("result", "")}
    labels = dict.fromkeys(f.label for one in sections for f in one.facts if f.is_column)
    has_interval = any(one.answer.interval for one in sections)
    interval = (TableColumn("interval", is_number=True),) if has_interval else ()
    columns = (
        TableColumn("measurement"),
        TableColumn(*head, is_number=True),
        *interval,
        *(TableColumn(label, is_number=False) for label in labels),
        TableColumn("valid"),
    )
    rows = tuple(
        Row(
            tuple(_cells(one, tuple(labels), is_shared=is_shared, has_interval=has_interval)),
            target=one.id,
        )
        for one in sections
    )
    return Table("Overview", columns, rows)


def _cells(
    section: Section, labels: Sequence[str], *, is_shared: bool, has_interval: bool
) -> list[Cell]:
    answer = section.answer
    cells: list[Cell] = [section.title, answer.text if is_shared else answer.line]
    if has_interval:
        text = answer.interval or figures.MISSING
        cells.append(IntervalCell(text, answer.low, answer.value, answer.high))
    known = {one.label: one.short or one.text for one in section.facts if one.is_column}
    cells += [known.get(label, figures.MISSING) for label in labels]
    return [*cells, ToneCell(section.certainty.text, section.certainty.tone)]
