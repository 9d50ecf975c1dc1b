"""The overview of a report: a row for each section, with its answer, its interval and its facts."""

from collections import Counter
from collections.abc import Iterator, Sequence

from loadstone.report import figures, names
from loadstone.report.section import (
    SEPARATOR,
    Cell,
    IntervalCell,
    Row,
    Section,
    Table,
    ToneCell,
)
from loadstone.report.sections.tables import columns


def overview(sections: Sequence[Section]) -> Table:
    """Return the table; a column is left out if no section has anything for it."""
    answers = {(one.answer.label, one.answer.unit) for one in sections}
    is_shared = len(answers) == 1
    [head] = answers if is_shared else {("result", "")}
    labels = dict.fromkeys(f.label for one in sections for f in one.facts if f.is_column)
    has_interval = any(one.answer.interval for one in sections)
    heads = (
        *columns("measurement", numbers=(" ".join(head).strip(),)),
        *columns(numbers=("interval",) if has_interval else ()),
        *columns(*labels, "valid"),
    )
    rows = tuple(
        Row(
            (
                name,
                *_cells(one, tuple(labels), is_shared=is_shared, has_interval=has_interval),
            ),
            target=one.id,
        )
        for one, name in zip(sections, _names(sections), strict=True)
    )
    return Table("Overview", heads, rows)


def _names(sections: Sequence[Section]) -> Iterator[str]:
    """Yield the title of each section; equal ones with their subtasks, or else with numbers."""
    titles = Counter(one.title for one in sections)
    subtasks = (one.subtitle.partition(SEPARATOR)[0] for one in sections)
    return names.unique(
        ("", f"{one.title}: {subtask}" if subtask and titles[one.title] > 1 else one.title)
        for one, subtask in zip(sections, subtasks, strict=True)
    )


def _cells(
    section: Section, labels: Sequence[str], *, is_shared: bool, has_interval: bool
) -> list[Cell]:
    answer = section.answer
    cells: list[Cell] = [answer.text if is_shared else answer.line]
    if has_interval:
        text = answer.interval or figures.MISSING
        cells.append(IntervalCell(text, answer.low, answer.value, answer.high))
    known = {one.label: one.short or one.text for one in section.facts if one.is_column}
    cells += [known.get(label, figures.MISSING) for label in labels]
    return [*cells, ToneCell(section.certainty.text, section.certainty.tone)]
