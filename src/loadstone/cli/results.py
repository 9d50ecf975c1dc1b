"""`loadstone results`: what the store keeps."""

from pathlib import Path
from typing import TextIO

import click

from loadstone.cli.clean import clean
from loadstone.cli.sla_check import sla_check
from loadstone.cli.stored import JSON, STORE, open_store, write_json
from loadstone.cli.trends import trends


@click.group()
def results() -> None:
    """List, show, delete, export, import results. RUN is an id, its beginning, or "latest"."""


@results.command("list")
@STORE
@JSON
def list_(folder: Path | None, to: TextIO | None) -> None:
    """List the runs, newest first."""
    from dataclasses import asdict

    from loadstone.report import terminal

    with open_store(folder) as store:
        entries = store.every()
    if to is not None:
        write_json([asdict(entry) for entry in entries], to)
    elif entries:
        terminal.listing(entries, terminal.console())
    else:
        click.echo("No results yet: loadstone demo makes the first ones.")


@results.command()
@click.argument("run")
@STORE
@JSON
def show(run: str, folder: Path | None, to: TextIO | None) -> None:
    """Show one run."""
    from loadstone.report import terminal
    from loadstone.report.data import as_data

    with open_store(folder) as store:
        result = store.get(run)
    if to is not None:
        write_json(as_data(result), to)
        return
    console = terminal.console()
    terminal.show(result, console)
    terminal.show_environment(result, console)


@results.command()
@click.argument("run")
@STORE
def delete(run: str, folder: Path | None) -> None:
    """Delete one run with all its files."""
    from loadstone.cli.outcome import leftovers
    from loadstone.errors import InvalidInput

    with open_store(folder) as store:
        run_id = store.get(run).run_id
        if left := leftovers(store, run_id):
            raise InvalidInput(
                f"run {run_id} has left {len(left)} things in its cloud, and only its files say "
                f"which; first: loadstone results clean {run_id}"
            )
        click.echo(f"deleted {store.delete(run_id)}")


@results.command("export")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@STORE
def export(run: str, file: Path, folder: Path | None) -> None:
    """Write one run with its samples to FILE, for another store to import."""
    from loadstone.store import bundle

    with open_store(folder) as store:
        click.echo(f"exported {bundle.export(store, run, file)} to {file}")


@results.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@STORE
def import_(file: Path, folder: Path | None) -> None:
    """Take in a run that another store exported, or results of Rally's (either JSON form)."""
    from loadstone.store import taking

    with open_store(folder) as store:
        for run_id in taking.take_in(store, file):
            click.echo(f"imported {run_id}")


for command in (clean, sla_check, trends):
    results.add_command(command)
