"""`loadstone results trends`: N and the same workloads of tasks over time."""

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from loadstone.cli.stored import JSON, STORE, open_to_read, show_notices, write_json

if TYPE_CHECKING:
    from loadstone.store.location import StoreLocation


@click.command()
@STORE
@JSON
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write an HTML page with curves to this file, and print its path.",
)
def trends(location: "StoreLocation", to: TextIO | None, output: Path | None) -> None:
    """Show N of capacity runs and the workloads of tasks over time, oldest run first.

    Capacity runs are grouped by target, scenario and load; workloads by scenario and load, so
    workloads that differ only in their SLA are in one group. Durations are those of successful
    iterations, in seconds.

    With eight or more runs, change points are detected in N and in the median duration: between
    which runs the level changed, by how much, and which settings changed there.
    """
    from loadstone.report import history, html, terminal
    from loadstone.report.console import console
    from loadstone.report.sections.trends import report_of
    from loadstone.report.trends import as_data
    from loadstone.report.trends import trends as grouped

    with open_to_read(location) as store:
        searched = history.capacity_trends(store.past_searches())
        unread: list[str] = []
        found = grouped(store.history(), store.get, unread.append)
        show_notices(dict.fromkeys((*store.notices, *unread)))
    if to is not None:
        write_json([*map(history.as_data, searched), *map(as_data, found)], to)
        return
    if not searched and not found:
        click.echo(
            "Nothing was measured yet: loadstone capacity, loadstone run TASK, or loadstone "
            "results import FILE."
        )
        return
    report = report_of(searched, found)
    if output is not None:
        html.write((report,), output)
        click.echo(output)
    else:
        terminal.show(report, console())
