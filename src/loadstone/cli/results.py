"""`loadstone results`: stored results."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone.cli.choose import UNDONE_ANYWAY
from loadstone.cli.clean import clean, require_run_undone
from loadstone.cli.sla_check import sla_check
from loadstone.cli.stored import (
    JSON,
    STDOUT,
    STORE,
    OutputFile,
    open_store,
    open_to_read,
    show_notices,
    write,
    write_json,
)
from loadstone.cli.trends import has_tags, trends
from loadstone.errors import FELL_SHORT, InvalidInput

if TYPE_CHECKING:
    from loadstone.store.location import StoreLocation


@click.group()
def results() -> None:
    """Manage stored results. RUN is an id, the beginning of one, or "latest"."""


@results.command("list")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Show only the newest N runs."
)
@click.option(
    "--tag",
    "wanted",
    metavar="KEY[=VALUE]",
    multiple=True,
    help="Show only runs with this tag; may be repeated; a run must have all of them.",
)
@STORE
@JSON
def list_(
    location: "StoreLocation", to: Path | None, limit: int | None, wanted: tuple[str, ...]
) -> None:
    """List runs, newest first: target, configuration, duration, origin, results."""
    from dataclasses import asdict

    from loadstone.report.console import console
    from loadstone.report.listing import listing

    with open_to_read(location) as store:
        found = store.every(None if wanted else limit)
        show_notices(store.notices)
    entries = tuple(one for one in found if has_tags(dict(one.tags), wanted))[:limit]
    if to is not None:
        write_json(
            [
                asdict(entry)
                | {"configuration": dict(entry.configuration), "tags": dict(entry.tags)}
                for entry in entries
            ],
            to,
        )
    elif entries:
        listing(entries, console())
    elif wanted:
        click.echo(f"No run has the tag {' and '.join(wanted)}.")
    else:
        click.echo("No results yet: loadstone demo makes the first ones.")


@results.command()
@click.argument("run")
@click.option(
    "--trials",
    "in_full",
    is_flag=True,
    help="Also show each trial with its verdict, resources, all statements and settings.",
)
@STORE
@JSON
def show(run: str, location: "StoreLocation", to: Path | None, *, in_full: bool) -> None:
    """Show the result of one run."""
    from loadstone.cli.output import print_report, report_of_stored, write_formats

    with open_to_read(location) as store:
        report = report_of_stored(store, store.get(run))
    write_formats(report, to)
    if to is None:
        print_report(report, in_full=in_full)


@results.command()
@click.argument("run")
@click.option(
    "--force",
    "is_forced",
    is_flag=True,
    help="Also delete a run of another machine, whose files are not here or which may still be "
    "running, and one that has left something in a cloud that is gone.",
)
@UNDONE_ANYWAY
@STORE
def delete(run: str, location: "StoreLocation", *, is_forced: bool, anyway: bool) -> None:
    """Delete one run with all its files."""
    from loadstone.run.exit_code import leftovers
    from loadstone.store.run_id import is_run_id

    with open_to_read(location) as store:
        run_id = store.resolve(run)
        require_run_undone(store, run_id, anyway=anyway)
        if not is_forced:
            store.require_files(run_id)
        if not is_forced and is_run_id(run_id) and (left := leftovers(store, run_id)):
            raise InvalidInput(
                f"run {run_id} has left {len(left)} things in its cloud, and only its files say "
                f"which; first: loadstone results clean {run_id}{location.option} (if that cloud "
                "is gone: --force)"
            )
        click.echo(f"deleted {store.delete(run_id, is_forced=is_forced)}")


@results.command("export")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@STORE
def export(run: str, file: Path, location: "StoreLocation") -> None:
    """Write one run with its samples to FILE, for another store to import."""
    from loadstone.run.exit_code import with_leftovers
    from loadstone.store import bundle

    if file == STDOUT:
        raise InvalidInput("an export is a ZIP file, which is not written to stdout; name a file")
    with open_to_read(location) as store:
        found = with_leftovers(store, store.get(run))
        bundle.export(store, found, file)
        click.echo(f"exported {found.run_id} to {file}")


@results.command()
@click.argument("run", default="latest")
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    default="-",
    show_default=False,
    help="File to write. Default: stdout.",
)
@STORE
def badge(run: str, output: Path, location: "StoreLocation") -> None:
    """Write RUN as a badge (SVG): its figures, green, red or grey by its exit code."""
    from loadstone.cli.output import report_of_stored
    from loadstone.report import badge as drawn

    with open_to_read(location) as store:
        picture = drawn.render(report_of_stored(store, store.get(run)))
    write(picture, output)
    if output != STDOUT:
        click.echo(output)


@results.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@STORE
@click.pass_context
def import_(ctx: click.Context, file: Path, location: "StoreLocation") -> None:
    """Import a run that another store exported, or Rally's results (either JSON format).

    Parts that are damaged, and tasks that are in the store already, are left out and named; the
    exit code is then 2. 70 after an internal error.
    """
    from loadstone.rally import import_run

    left_out: list[str] = []
    with open_store(location) as store:
        for run_id in import_run.import_file(store, file, left_out.append):
            click.echo(f"imported {run_id}")
    show_notices(f"{file}: left out: {line}" for line in left_out)
    ctx.exit(InvalidInput.exit_code if left_out else 0)


@results.command()
@STORE
@JSON
@click.pass_context
def recover(ctx: click.Context, location: "StoreLocation", to: Path | None) -> None:
    """Add results to the database that exist only in files.

    A run keeps its results in files while the database is locked, full or unreachable. Every
    command that opens the store adds them; this one also checks all other runs and prints what it
    finds.
    Exit code 1 if a file cannot be read, 70 after an internal error.
    """
    with open_store(location) as store:
        found = store.recover()
    news = [one for one in found if one.is_news]
    problems = [line for one in found for line in one.problems]
    show_notices(problems)
    if to is not None:
        write_json([{"run_id": one.run_id, "trials": one.trials} for one in news], to)
    else:
        for one in news:
            click.echo(str(one))
        if not news and not problems:
            click.echo("Nothing to recover: the database has all results.")
    ctx.exit(FELL_SHORT if problems else 0)


for command in (clean, sla_check, trends):
    results.add_command(command)
