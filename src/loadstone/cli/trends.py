"""`loadstone results trends`: N and the same workloads of tasks over time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone.cli.stored import (
    JSON,
    STORE,
    OutputFile,
    is_stdout_free,
    open_to_read,
    show_notices,
    write,
    write_json,
)

if TYPE_CHECKING:
    from loadstone.report.history import CapacityTrend
    from loadstone.report.trends import Trend
    from loadstone.store.location import StoreLocation
    from loadstone.store.store import Store

NOTHING = (
    "No run has an N or a workload yet: measure with loadstone capacity or loadstone run TASK, or "
    "import with loadstone results import FILE."
)


@click.command()
@STORE
@JSON
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    metavar="FILE",
    help="Write an HTML page with curves to this file, and print its path.",
)
@click.option(
    "--tag",
    "wanted",
    metavar="KEY[=VALUE]",
    multiple=True,
    help="Show only runs with this tag. KEY alone makes one group for each value, named after it; "
    "may be repeated.",
)
def trends(
    location: "StoreLocation", to: Path | None, output: Path | None, wanted: tuple[str, ...]
) -> None:
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
        searches, workloads = store.past_searches(), store.history()
        unread: list[str] = []
        searched: list[CapacityTrend] = []
        found: list[Trend] = []
        for name, runs in _groups(store, wanted):
            of_group = [one for one in searches if runs is None or one.run_id in runs]
            performed = [one for one in workloads if runs is None or one.run_id in runs]
            searched += (
                replace(one, title=f"{one.title}{name}")
                for one in history.capacity_trends(of_group)
            )
            found += (
                replace(one, scenario=f"{one.scenario}{name}")
                for one in grouped(performed, store.get, unread.append)
            )
        show_notices(dict.fromkeys((*store.notices, *unread)))
    if to is not None:
        write_json([*map(history.as_data, searched), *map(as_data, found)], to)
        if output is None:
            return
    if not searched and not found:
        tag = " and ".join(wanted)
        nothing = f"No run with the tag {tag} has an N or a workload." if wanted else NOTHING
        click.echo(nothing, err=not is_stdout_free(to, output))
        return
    report = report_of(searched, found)
    if output is not None:
        write(html.render(report), output)
        if is_stdout_free(to, output):
            click.echo(output)
    else:
        terminal.show(report, console())


def has_tags(tags: Mapping[str, str], wanted: Sequence[str]) -> bool:
    """Return whether a run has all wanted tags, each KEY or KEY=VALUE."""
    for one in wanted:
        key, equals, value = one.partition("=")
        if key not in tags or (equals and tags[key] != value):
            return False
    return True


def _groups(store: "Store", wanted: Sequence[str]) -> "Iterator[tuple[str, set[str] | None]]":
    """Yield the name of each group, to follow a title, and its runs; None: all runs."""
    if not wanted:
        yield "", None
        return
    keys = [one.partition("=")[0] for one in wanted]
    groups: dict[str, set[str]] = {}
    for entry in store.every():
        tags = dict(entry.tags)
        if has_tags(tags, wanted):
            name = "".join(f", {key}={tags[key]}" for key in keys)
            groups.setdefault(name, set()).add(entry.run_id)
    yield from groups.items()
