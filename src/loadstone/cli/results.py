"""`loadstone results`: stored results."""

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from loadstone.cli.choose import UNDONE_ANYWAY
from loadstone.cli.clean import clean, require_run_undone
from loadstone.cli.sla_check import sla_check
from loadstone.cli.stored import JSON, STORE, existing, open_store, open_to_read, write_json
from loadstone.cli.trends import trends

if TYPE_CHECKING:
    from loadstone.store.location import StoreLocation


@click.group()
def results() -> None:
    """Manage stored results. RUN is an id, the beginning of one, or "latest"."""


@results.command("list")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Show only the newest N runs."
)
@STORE
@JSON
def list_(location: "StoreLocation", to: TextIO | None, limit: int | None) -> None:
    """List runs, newest first: target, configuration, duration, origin, results."""
    from dataclasses import asdict

    from loadstone.report.console import console
    from loadstone.report.listing import listing
    from loadstone.store.listing import read

    entries = read(existing(location), limit)
    if to is not None:
        write_json(
            [asdict(entry) | {"configuration": dict(entry.configuration)} for entry in entries], to
        )
    elif entries:
        listing(entries, console())
    else:
        click.echo("No results yet: loadstone demo makes the first ones.")


@results.command()
@click.argument("run")
@STORE
@JSON
def show(run: str, location: "StoreLocation", to: TextIO | None) -> None:
    """Show one run."""
    from loadstone.report import terminal
    from loadstone.report.console import console
    from loadstone.report.data import as_data

    with open_to_read(location) as store:
        result = store.get(run)
    if to is not None:
        write_json(as_data(result), to)
        return
    terminal.show(result, console())
    terminal.show_environment(result, console())


@results.command()
@click.argument("run")
@click.option(
    "--force",
    "is_forced",
    is_flag=True,
    help="Also delete a run of another machine, whose files are not here or which may still be "
    "running.",
)
@UNDONE_ANYWAY
@STORE
def delete(run: str, location: "StoreLocation", *, is_forced: bool, anyway: bool) -> None:
    """Delete one run with all its files."""
    from loadstone.errors import InvalidInput
    from loadstone.exit_code import leftovers

    with open_to_read(location) as store:
        result = store.get(run)
        run_id = result.run_id
        require_run_undone(result, anyway=anyway)
        if not is_forced:
            store.require_files(run_id)
        if left := leftovers(store, run_id):
            raise InvalidInput(
                f"run {run_id} has left {len(left)} things in its cloud, and only its files say "
                f"which; first: loadstone results clean {run_id}"
            )
        click.echo(f"deleted {store.delete(run_id, is_forced=is_forced)}")


@results.command("export")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@STORE
def export(run: str, file: Path, location: "StoreLocation") -> None:
    """Write one run with its samples to FILE, for another store to import."""
    from loadstone.store import bundle

    with open_to_read(location) as store:
        click.echo(f"exported {bundle.export(store, run, file)} to {file}")


@results.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@STORE
def import_(file: Path, location: "StoreLocation") -> None:
    """Import a run that another store exported, or Rally's results (either JSON format)."""
    from loadstone.rally import import_run

    with open_store(location) as store:
        for run_id in import_run.import_file(store, file):
            click.echo(f"imported {run_id}")


for command in (clean, sla_check, trends):
    results.add_command(command)
