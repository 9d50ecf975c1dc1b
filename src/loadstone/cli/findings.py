"""What a study has found so far, on its way to whoever asked."""

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from loadstone.cli.stored import write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.study.journal import Journal
    from loadstone.study.table import Outcome


def of(name: str, store: Path) -> "Journal | None":
    """Give the study that has begun under this id, or the beginning of it.

    None: it is the name or the file of one that is not looked up here.
    """
    from loadstone.study import journal, read

    is_plan = name in read.builtin() or Path(name).exists()
    is_id = any(one.startswith(name) for one in journal.ids(store))
    return journal.find(store, name) if is_id and not is_plan else None


def show(
    journal: "Journal",
    outcomes: "Sequence[Outcome]",
    to: TextIO | None = None,
    *,
    markdown: bool = False,
) -> None:
    """Give the table as data to `to`, and printed unless that is stdout."""
    from loadstone.report.terminal import wide
    from loadstone.study import markdown as as_markdown
    from loadstone.study.show import as_data, found

    if to is not None:
        write_json(as_data(journal, outcomes), to)
    if to is not None and to.name == "-":
        return
    if markdown:
        click.echo(as_markdown.found(journal, outcomes), nl=False)
    else:
        found(journal, outcomes, wide())
