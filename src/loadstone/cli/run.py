"""`loadstone run`: a task file, carried out."""

from pathlib import Path
from typing import TextIO, TypedDict, Unpack

import click

from loadstone.cli.capacity import command_line
from loadstone.cli.choose import PERMISSION, chosen, target_options
from loadstone.cli.duration import Duration
from loadstone.cli.stored import JSON, STORE, open_store
from loadstone.cli.task import template_options
from loadstone.cli.terms import HIGHEST_RPS


class Options(TypedDict):
    """What the command line says."""

    file: str
    raw: str | None
    args_file: str | None
    lab: str | None
    cloud: str | None
    yes: bool
    aborts: bool
    max_rate_rps: float
    budget_s: float
    junit: TextIO | None
    style: str
    folder: Path | None
    to: TextIO | None


@click.command()
@click.argument("file", metavar="TASK")
@template_options
@target_options
@PERMISSION
@click.option(
    "--abort-on-sla-failure", "aborts", is_flag=True, help="End the task when a rule breaks."
)
@click.option(
    "--max-rate",
    "max_rate_rps",
    type=click.FloatRange(0.1, HIGHEST_RPS),
    default=5000.0,
    show_default=True,
    help="Iterations per second that an rps runner may ask for.",
)
@click.option(
    "--budget",
    "budget_s",
    type=Duration(),
    default="50m",
    show_default=True,
    help="Load time at most, over all workloads.",
)
@click.option("--junit", type=click.File("w", lazy=True), help="Write JUnit XML, too.")
@click.option(
    "--exit-code-style",
    "style",
    type=click.Choice(["loadstone", "rally"]),
    default="loadstone",
    show_default=True,
    help="rally: 2 where an SLA failed, 1 where the task could not be carried out.",
)
@STORE
@JSON
@click.pass_context
def run(ctx: click.Context, **options: Unpack[Options]) -> None:
    """Carry out TASK, one of Rally's task files for identity (-: stdin).

    Ends with 0 when every SLA held, with 1 when one failed or something is left in the cloud, with
    3 when a workload could not be carried out, with 4 when the load generator could not keep the
    rate that was asked for.
    """
    from loadstone.cli import performed
    from loadstone.cli.screen import Screen
    from loadstone.perform.flow import perform
    from loadstone.task.read import read

    with performed.in_style(options["style"]):
        checked = read(options["file"], options["raw"], options["args_file"])
        order = performed.order(checked.task, options)
        with (
            open_store(options["folder"]) as store,
            Screen() as screen,
            chosen(options["lab"], options["cloud"], options["yes"]) as subject,
        ):
            for warning in checked.warnings:
                screen.say(f"{warning.file}:{warning.line}: warning: {warning.words}")
            result = perform(order, subject, store, screen, command_line())
            code = performed.exit_code(store, result)
        performed.show(result, options)
        ctx.exit(performed.styled(code, options["style"]))
