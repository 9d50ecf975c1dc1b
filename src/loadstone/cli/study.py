"""`loadstone study`: one measurement over many deployments, in one table."""

from pathlib import Path
from typing import TextIO, TypedDict, Unpack

import click

from loadstone.cli.stored import JSON, STORE, open_store

QUICK = click.option("--quick", is_flag=True, help="The study's shorter form, where it has one.")
SEED = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=1, show_default=True, help="Of the order."
)


@click.group()
def study() -> None:
    """Measure many configurations of a Keystone on this machine, one after the other."""


@study.command("list")
@STORE
def list_(folder: Path | None) -> None:
    """List the studies that are built in, and those that have begun."""
    from loadstone import places
    from loadstone.study import journal, read
    from loadstone.study.show import begun

    for name in read.builtin():
        click.echo(f"{name}: {read.find(name).study(quick=False).title}")
    store = folder or places.store()
    for study_id in journal.ids(store):
        click.echo(begun(store, study_id))


@study.command()
@click.argument("name", metavar="NAME|FILE")
@QUICK
@SEED
def show(name: str, quick: bool, seed: int) -> None:
    """Print a study's cells, their order, and how long it takes."""
    from loadstone.report.terminal import console
    from loadstone.study import read
    from loadstone.study.show import plan

    plan(read.find(name).study(quick=quick), seed, console())


class Options(TypedDict):
    """What the command line says of a study that is to be run."""

    name: str | None
    quick: bool
    seed: int
    resume: str | None
    folder: Path | None
    to: TextIO | None


@study.command()
@click.argument("name", metavar="NAME|FILE", required=False)
@QUICK
@SEED
@click.option("--resume", metavar="ID", help="Go on with a study that has begun.")
@STORE
@JSON
@click.pass_context
def run(ctx: click.Context, **options: Unpack[Options]) -> None:
    """Measure each cell of a study and print the table; Ctrl-C keeps what was measured.

    Ends with 0 when N was found in every cell, else as the worst of its measurements.
    """
    from loadstone.cli import studied
    from loadstone.cli.screen import Screen
    from loadstone.study.outcomes import outcomes
    from loadstone.study.run import carry_out

    if (options["name"] is None) == (options["resume"] is None):
        raise click.UsageError("give NAME|FILE, or --resume ID")
    with open_store(options["folder"]) as store:
        kept = studied.journal(options)
        try:
            with Screen() as screen:
                screen.say(f"study {kept.study_id}")
                carry_out(kept, studied.bench(kept, store, screen).measure, screen.say)
        finally:
            ended = tuple(outcomes(kept, store))
            studied.show(kept, ended, options["to"])
        ctx.exit(studied.exit_code(kept, store, ended))
