"""`loadstone results trends`: how the same workloads of tasks fared over time."""

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from loadstone.cli.stored import JSON, STORE, open_to_read, write_json

if TYPE_CHECKING:
    from loadstone.store.location import StoreLocation


@click.command()
@STORE
@JSON
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write one HTML page with curves there, and print its path.",
)
def trends(location: "StoreLocation", to: TextIO | None, output: Path | None) -> None:
    """Show the workloads of tasks over time, grouped by what is loaded, and how hard.

    Durations are those of the iterations that ended well, in seconds, oldest run first. Workloads
    that differ in their SLA alone are one group.
    """
    from loadstone.report import terminal
    from loadstone.report.trends import as_data, parts
    from loadstone.report.trends import trends as grouped

    with open_to_read(location) as store:
        found = grouped(store.history(), lambda one: store.get(one.run_id).workloads[one.position])
    if to is not None:
        write_json([as_data(trend) for trend in found], to)
        return
    if found and output is not None:
        from loadstone.report.html.trends import write_trends

        write_trends(found, output)
        click.echo(output)
        return
    if not found:
        click.echo("No task was run yet: loadstone run TASK, or loadstone results import FILE.")
    wide = terminal.wide()
    for trend in found:
        for part in parts(trend):
            wide.print(part)
