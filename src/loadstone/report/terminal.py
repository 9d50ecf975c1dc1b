"""A report on a terminal, readable at 80 columns and without colour."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from loadstone.diagnosis.finding import Severity
from loadstone.report.chart import Tone
from loadstone.report.console import wide
from loadstone.report.section import (
    Cell,
    Fact,
    NextStep,
    Report,
    Section,
    Table,
    ToneCell,
    text_of,
)

STYLES: dict[Tone | None, str] = {
    "sustained": "green",
    "degraded": "red",
    "invalid": "magenta",
    "undecided": "yellow",
    "metered": "dim",
}
SEVERITIES = {Severity.CRITICAL: "red", Severity.WARNING: "yellow", Severity.INFO: ""}
MOST_LINES = 12  # of one measurement's summary
LABEL = 11  # columns of the labels


def show(report: Report, to: Console) -> None:
    """Print the summary of a report: at most twelve lines for each measurement."""
    if report.is_compact:
        to.print(Text(report.title, "bold"), soft_wrap=True)
    for number, section in enumerate(() if report.is_compact else report.sections):
        if number:
            to.print()
        _print_all(_block(section, report, to.width), to)
    _print_all(_shared(report, to.width, is_separate=len(report.sections) != 1), to)


def show_in_full(report: Report, to: Console) -> None:
    """Print a report with all its tables, statements and settings."""
    for section in report.sections:
        _print_all(_in_full(section, report, to.width), to)
    _print_all(_shared(report, to.width, is_separate=True), to)
    for table in report.settings:
        line = ", ".join(" ".join(map(text_of, row.cells)) for row in table.rows)
        to.print(Text.assemble((f"{table.title}: ", "dim"), line))


def _print_all(parts: Iterable[RenderableType], to: Console) -> None:
    for part in parts:
        if isinstance(part, Text):
            to.print(part, soft_wrap=True)
        else:
            wide(to).print(part)


def _shared(report: Report, width: int, *, is_separate: bool) -> Iterator[RenderableType]:
    """Yield what belongs to no single measurement."""
    overview = (report.overview,) if report.is_compact and report.overview else ()
    settings = report.settings if report.is_compact else ()
    for table in (*overview, *report.tables, *settings):
        yield from _titled(table)
    for statement in report.statements:
        yield Text(statement.text, SEVERITIES[statement.severity])
    yield from map(Text, report.notes)
    if not report.sections:
        yield Text(f"Run {report.id}, {report.status}.")
    elif report.page:
        if is_separate:
            yield Text("")
        if report.is_compact and report.about:
            yield Text(report.about, "dim")
        yield from _lines((Fact("page", report.page),), width)


def _block(section: Section, report: Report, width: int) -> Iterator[RenderableType]:
    """Yield the summary of a measurement: its answer, what limits it, what to do next."""
    yield _heading(section, report)
    yield Text("")
    yield _answer(section)
    yield Text("")
    kept = _kept(section, report)
    yield from _lines([one for one in kept if one not in section.commands], width)
    for table in section.tables:
        if table.is_primary:
            yield from _titled(table)
    if commands := [one for one in kept if one in section.commands]:
        if len(commands) < len(kept):
            yield Text("")
        yield from _lines(commands, width)


def _kept(section: Section, report: Report) -> Sequence[Fact]:
    """Return the lines under the answer; of too many, the least important ones are left out."""
    lines = [one for one in section.facts if one.is_line]
    if section.certainty.line:
        lines.insert(0, Fact("", section.certainty.line, rank=0, tone="degraded"))
    if (step := _first_step(section, report)) is not None:
        lines.append(Fact("try first", _advice(step), rank=2))
    lines += section.commands
    # The heading, the answer and the line of the page stand beside them.
    by_rank = sorted(lines, key=lambda one: one.rank)[: MOST_LINES - 3]
    return [one for one in lines if one in by_rank]


def _first_step(section: Section, report: Report) -> NextStep | None:
    shared = next(iter(report.steps), None)
    if shared is not None and shared.severity is Severity.CRITICAL:
        return shared
    return next(iter(section.steps), None)


def _advice(step: NextStep) -> str:
    text = f"{step.rule} {step.severity}: {step.text}" if step.rule else step.text
    short = text.partition(". ")[0].rstrip(".")
    more = [part for part in (step.worth, step.command) if part]
    return f"{short}  ({'; '.join(more)})" if more else short


def _in_full(section: Section, report: Report, width: int) -> Iterator[RenderableType]:
    yield _heading(section, report)
    yield _answer(section)
    if section.certainty.line:
        yield from _lines((Fact("", section.certainty.line, tone="degraded"),), width)
    yield from _lines([one for one in section.facts if one.is_line], width)
    for table in section.tables:
        yield from _titled(table)
        for row in table.rows:
            if row.note:
                yield _wrapped(f"  {text_of(row.cells[0]):>4} ", " " * 7, row.note, width, "")
    for listing in section.listings:
        yield Text(f"\n  {listing.title}\n{listing.text}")
    for text, style in (
        (section.answer.sentence, ""),
        *((one.text, SEVERITIES[one.severity]) for one in section.statements),
        *((one, "dim") for one in section.method),
        *((f"{one.detail} Try: {one.text}", "") for one in section.steps),
    ):
        yield _wrapped("  - ", "    ", text, width, style)
    yield Text("")
    for part in section.parts:
        yield from _in_full(part, report, width)


def _heading(section: Section, report: Report) -> Text:
    about = ", ".join(part.rstrip(".") for part in (section.subtitle, report.subject) if part)
    return Text.assemble((section.title, "bold"), (f"   {about}", "dim"))


def _answer(section: Section) -> Text:
    answer = section.answer
    within = f"   ({answer.within})" if answer.within else ""
    return Text.assemble(("  " + answer.line, "bold cyan"), within)


def _lines(facts: Sequence[Fact], width: int) -> Iterator[Text]:
    """Yield each fact with its label before it, its further lines under its text."""
    labels = max([LABEL, *(len(one.label) + 1 for one in facts)])
    for one in facts:
        head = f"  {one.label:{labels}} " if one.label else "  "
        yield _wrapped(head, " " * len(head), one.text, width, STYLES.get(one.tone, ""))


def _wrapped(head: str, indent: str, text: str, width: int, style: str) -> Text:
    lines = wrap(text, max(width - len(indent), 20), break_on_hyphens=False) or [""]
    return Text.assemble((head, "dim"), (f"\n{indent}".join(lines), style))


def _titled(table: Table) -> Iterator[RenderableType]:
    yield Text(f"\n  {table.title}", "bold")
    yield Padding(drawn(table), (0, 0, 0, 2))


def drawn(table: Table) -> Grid:
    """Return a table for a console."""
    grid = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(table.columns):
        justify: JustifyMethod = "right" if column.is_number else "left"
        # rich would break a name in the middle, to make a column of sentences wider.
        has_names = not any(" " in text_of(row.cells[index]) for row in table.rows)
        no_wrap = column.is_number or has_names
        grid.add_column(column.name, justify=justify, overflow="fold", no_wrap=no_wrap)
    for row in table.rows:
        grid.add_row(*(Text(text_of(cell), _style(cell)) for cell in row.cells))
    return grid


def _style(cell: Cell) -> str:
    return STYLES[cell.tone] if isinstance(cell, ToneCell) else ""
