"""A report as Markdown, for a merge request or the summary of a CI job."""

import re
from collections.abc import Iterator

from loadstone.report.section import Report, Section, Table, text_of
from loadstone.system.printable import visible

_MARKS = re.compile(r"[\\|\[\]`*]")


def render(report: Report) -> str:
    """Return the answer, the overview, and the tables and statements of each section."""
    return "\n\n".join(_blocks(report)) + "\n"


def _blocks(report: Report) -> Iterator[str]:
    yield f"### {_text(report.title)}"
    about = " · ".join(part for part in (report.subject, report.about) if part)
    if about:
        yield _text(about)
    if report.overview is not None and report.overview.rows:
        yield _table(report.overview)
    for table in report.tables:
        yield _table(table)
    for table in report.settings if report.is_compact else ():
        yield f"**{_text(table.title)}**"
        yield _table(table)
    lines = [*(one.text for one in report.statements), *report.notes]
    steps = [f"{one.rule}: {one.text}" if one.rule else one.text for one in report.steps]
    yield from _list([*lines, *steps])
    for section in report.sections if not report.is_compact else ():
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    # Most sentences begin with the title, with a capital.
    title, sentence = section.title, section.answer.sentence
    is_named = sentence[: len(title) + 1].lower() == f"{title}:".lower()
    if is_named:
        sentence = sentence[len(title) + 1 :].lstrip()
    yield f"**{_text(title)}**: {_text(sentence)}"
    if section.certainty.line:
        yield f"**{_text(section.certainty.line)}**"
    yield from _list([f"{one.label}: {one.text}" for one in section.facts if one.is_line])
    for table in section.tables:
        if table.is_primary:
            yield _table(table)
            yield from _list(
                [f"{text_of(row.cells[0])}: {row.note}" for row in table.rows if row.note]
            )


def _list(lines: list[str]) -> Iterator[str]:
    if lines:
        yield "\n".join(f"- {_text(line)}" for line in lines)


def _table(table: Table) -> str:
    rules = ["---:" if one.is_number else "---" for one in table.columns]
    rows = [[_text(text_of(cell)) for cell in row.cells] for row in table.rows]
    lines = ([_text(one.name) for one in table.columns], rules, *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(text: str) -> str:
    """Return the text in one line, without what Markdown reads as a border, a tag or a link."""
    return _MARKS.sub(r"\\\g<0>", " ".join(visible(text).split())).replace("<", "&lt;")
