"""`loadstone capacity`: N, the highest rate that a service sustains."""

import sys
from pathlib import Path
from typing import TextIO, Unpack

import click

from loadstone.cli.choose import PERMISSION, chosen, target_options
from loadstone.cli.stored import JSON, STORE, open_store
from loadstone.cli.terms import Terms, search_options
from loadstone.keystone.scenarios import SCENARIOS


class Options(Terms):
    """What the command line says."""

    lab: str | None
    cloud: str | None
    yes: bool
    scenario: str
    folder: Path | None
    to: TextIO | None


@click.command()
@target_options
@PERMISSION
@click.option(
    "--scenario",
    metavar="NAME",
    default="issue",
    show_default=True,
    help=f"{', '.join(sorted(SCENARIOS))}, or a mix by weight, such as mix:issue=1,validate=9.",
)
@search_options
@STORE
@JSON
@click.pass_context
def capacity(ctx: click.Context, **options: Unpack[Options]) -> None:
    """Find N: the highest request rate that the target sustains without degradation.

    Ends with 0 when N was found, with 1 when the target fell short before there could be a number
    (it answered with errors only), with 4 when the measurement is invalid: the load generator was
    the limit, or the target changed underneath.
    """
    from loadstone.cli.outcome import exit_code, show
    from loadstone.cli.screen import Screen
    from loadstone.cli.terms import order
    from loadstone.run import run

    wanted = order("capacity", (options["scenario"],), options)
    with (
        open_store(options["folder"]) as store,
        Screen() as screen,
        chosen(options["lab"], options["cloud"], options["yes"]) as subject,
    ):
        result = run(wanted, subject, store, screen, command_line())
        code = exit_code(store, result)
    show(result, options["to"])
    ctx.exit(code)


def command_line() -> str:
    """Give the command for the record; no option of ours takes a secret."""
    return " ".join(["loadstone", *sys.argv[1:]])
