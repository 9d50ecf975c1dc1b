"""Results of a study as Markdown."""

from collections.abc import Iterator, Sequence

from loadstone.study.counted import count_lines
from loadstone.study.disturbance import disturbance_lines
from loadstone.study.faulted import fault_lines
from loadstone.study.first_failure import first_failures
from loadstone.study.journal import StudyJournal
from loadstone.study.table import TurnOutcome, rows
from loadstone.study.wording import (
    cells,
    comparison_lines,
    heads,
    overview,
    published,
    reasons,
    when_and_where,
)


def render(journal: StudyJournal, outcomes: Sequence[TurnOutcome]) -> str:
    """Return the table with its source, its notes and the lines below it."""
    study = journal.begun.study()
    lines = rows(study, outcomes)
    after = [f"After: {study.source}."] if study.source else []
    quick = [f"Quick form: {study.quick}"] if study.quick else []
    blocks = (
        f"## {study.title}",
        "\n".join(_text(line) for line in (*after, *quick)),
        "\n".join(f"- {_text(note)}" for note in study.notes),
        "\n".join(_table(heads(study), [cells(row) for row in lines])),
        *(
            "\n".join(f"- {_text(line)}" for line in part)
            for part in (
                reasons(lines),
                published(lines),
                overview(study, lines),
                comparison_lines(study, outcomes),
                count_lines(study, outcomes),
                first_failures(study, outcomes),
                fault_lines(study, outcomes),
            )
        ),
        *(_text(line) for line in disturbance_lines(outcomes)),
        _text(when_and_where(journal, outcomes)),
    )
    return "\n\n".join(block for block in blocks if block) + "\n"


def _table(
    columns: tuple[Sequence[str], Sequence[str]], lines: Sequence[Sequence[str]]
) -> Iterator[str]:
    words, numbers = columns
    yield _line([*words, *numbers])
    yield _line([*["---"] * len(words), *["---:"] * len(numbers)])
    for line in lines:
        yield _line(line)


def _line(line: Sequence[str]) -> str:
    return f"| {' | '.join(_text(cell) for cell in line)} |"


def _text(text: str) -> str:
    """Escape characters that Markdown reads as a cell's border or as a tag."""
    return text.replace("|", "\\|").replace("<", "&lt;")
