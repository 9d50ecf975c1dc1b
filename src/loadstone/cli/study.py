"""`loadstone study`: one measurement over many deployments, in one table."""

from pathlib import Path
from typing import Unpack

import click

from loadstone.cli.stored import JSON, STORE, open_store
from loadstone.cli.study_options import QUICK, SEED, Options, Shown


@click.group()
def study() -> None:
    """Measure many configurations of a Keystone on this machine, one after the other."""


@study.command("list")
@STORE
def list_(folder: Path | None) -> None:
    """List the studies that are built in, and those that have begun."""
    from loadstone import places
    from loadstone.study import journal, read
    from loadstone.study.show import begun, offered

    for name in read.builtin():
        click.echo(offered(read.find(name)))
    store = folder or places.store()
    for study_id in journal.ids(store):
        click.echo(begun(store, study_id))


@study.command()
@click.argument("name", metavar="NAME|FILE|ID")
@QUICK
@SEED
@STORE
@JSON
@click.option("--markdown", is_flag=True, help="The table as Markdown.")
def show(**options: Unpack[Shown]) -> None:
    """Print a study's cells, their order and how long it takes; of a begun one (ID), its table."""
    from loadstone import places
    from loadstone.cli import findings
    from loadstone.report.terminal import console
    from loadstone.study import read
    from loadstone.study.outcomes import outcomes
    from loadstone.study.show import plan

    begun = findings.of(options["name"], options["folder"] or places.store())
    if begun is not None:
        with open_store(options["folder"]) as store:
            ended = tuple(outcomes(begun, store))
        findings.show(begun, ended, options["to"], markdown=options["markdown"])
        return
    found = read.find(options["name"]).study(quick=options["quick"])
    if options["markdown"] or options["to"] is not None:
        raise click.UsageError("--markdown and --json show what was found: give a study's ID")
    plan(found, options["seed"], console())


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
    from loadstone.cli import findings, studied
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
            findings.show(kept, ended, options["to"])
        ctx.exit(studied.exit_code(kept, store, ended))
