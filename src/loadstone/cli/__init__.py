"""The command line: one module per command, imported on use."""

import sys
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli import defaults, stderr, stdout, version
from loadstone.cli.stdout import CLOSED_PIPE, ReaderGone, Stdout
from loadstone.errors import LoadstoneError
from loadstone.system import interrupts
from loadstone.system.printable import printable_stderr

if TYPE_CHECKING:
    from loadstone.run.backend import Backend

# Command -> help. Each is a click command in a module of the same name, which --help does not
# import, to be fast.
COMMANDS = {
    "audit": "Find settings of an identity service that cost performance.",
    "bisect": "Find the first of several versions that is slower.",
    "capacity": "Find N: the highest request rate that the target sustains.",
    "compare": "Test whether B is faster than A, by how much, and how certain that is.",
    "config": "Show the defaults that configuration files and the environment set.",
    "demo": "Install and measure a real Keystone on this machine.",
    "doctor": "Show what is installed, what is missing, and how to get it.",
    "fleet": "Manage hosts that send one load together.",
    "fault": "Measure what a fault does to a service under load, and how it recovers.",
    "hit": "Send requests to any URL at a rate, without a cloud.",
    "lab": "Start, find and stop real Keystones on this machine.",
    "live": "Serve a page with the results of a run that another terminal measures.",
    "monitor": "Monitor the resources of a machine and its services, without load.",
    "prove": "Measure the gain of a change of settings, before and after.",
    "report": "Write the report of a run: one HTML page, JUnit, OpenMetrics.",
    "results": "List, show, track over time, export, import, clean up or delete results.",
    "run": "Run a Rally task file against Keystone.",
    "serve": "Serve Identity v3 from memory: a target of known capacity.",
    "size": "Compute how many cores, workers, nodes and connections a load needs.",
    "study": "Measure many Keystone configurations, one after the other.",
    "task": "Check Rally task files before any load.",
    "tune": "Search for settings that lift a service, and prove the gain.",
}


class Lazy(click.Group):
    """Imports a command's module only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"loadstone.cli.{cmd_name}"), cmd_name)
        defaults.add_variables(command, f"{defaults.PREFIX}_{cmd_name.upper()}")
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; name the place of a wrong value that was not typed."""
        try:
            return super().invoke(ctx)
        except click.BadParameter as refused:
            raise defaults.with_source(refused) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; suggest similar ones for a mistyped name."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand:
            raise click.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the help of each command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=version.show,
    help="Show the version, the commit and the engine's version, and exit.",
)
@click.pass_context
def loadstone(ctx: click.Context) -> None:
    """Find how much load a cloud's identity service sustains.

    \b
    loadstone demo                  measure a real Keystone on this machine, end to end
    loadstone capacity --lab NAME   find N, the highest rate that a service sustains
    loadstone doctor                show what is installed and what is missing

    The target is given by --lab NAME, by --cloud NAME (clouds.yaml), or else by OS_* variables.
    Each option can also be set by a variable, such as LOADSTONE_CAPACITY_MAX_RATE=50 for
    `capacity --max-rate`, or by a configuration file: loadstone config shows what is set.

    \b
    Exit codes:
      0    the measured service met what was asked
      1    the measured service fell short
      2    wrong usage or invalid input
      3    target or machine not usable
      4    the measurement is invalid or inconclusive
      70   internal error of Loadstone; the message names a file with details
      130  interrupted by Ctrl-C (143: by SIGTERM, 129: by SIGHUP); what was
           measured is kept
      141  the reader of the output closed it (loadstone results list | head -1)
    """
    if ctx.invoked_subcommand not in (None, "config"):
        defaults.apply(ctx, str(ctx.invoked_subcommand))
        defaults.warn_without_effect(ctx, str(ctx.invoked_subcommand))


def main(backend: "Backend | None" = None) -> None:
    """Run the command line and end the process with its exit code.

    Tests give a backend whose targets, engine and clock are simulated.
    """
    # SIGHUP and SIGTERM act like Ctrl-C: results are stored, resources removed.
    interrupts.interrupt_on_signals()
    with stderr.guarded(), printable_stderr():
        code = _exit_code(backend)
    sys.exit(code)


def _exit_code(backend: "Backend | None") -> int:
    """Run the command line and return its exit code."""
    try:
        with stdout.guarded():
            return _run(backend)
    except ReaderGone:
        return CLOSED_PIPE
    except LoadstoneError as unwritable:  # by the last flush
        click.echo(f"loadstone: {unwritable}", err=True)
        return unwritable.exit_code


def _run(backend: "Backend | None") -> int:
    try:
        code = loadstone.main(standalone_mode=False, obj=backend)
    except click.ClickException as refused:
        refused.show()
        show_failure(refused.format_message(), refused.exit_code)
        return refused.exit_code
    except LoadstoneError as stopped:
        click.echo(f"loadstone: {stopped}", err=True)
        show_failure(str(stopped), stopped.exit_code)
        return stopped.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("loadstone: interrupted", err=True)
        show_failure("interrupted", interrupts.exit_code())
        return interrupts.exit_code()
    except ReaderGone:
        raise
    except Exception as error:
        return _internal_error(error)
    return code if isinstance(code, int) else 0


def _internal_error(error: Exception) -> int:
    """Write a crash file, name it in one line, and return the exit code."""
    from loadstone.cli.output import command_line
    from loadstone.system import crash

    line, exit_code = crash.report(error, command_line)
    click.echo(f"loadstone: {line}", err=True)
    show_failure(line, exit_code)
    return exit_code


def show_failure(error: str, exit_code: int) -> None:
    """Print the failure as JSON if `--json -` is given and nothing was printed yet."""
    arguments = sys.argv[1:]
    is_requested = any(
        f"--json={name}" in arguments or ("--json", name) in pairwise(arguments)
        for name in ("-", "/dev/stdout")
    )
    if is_requested and not (isinstance(sys.stdout, Stdout) and sys.stdout.has_written):
        import json

        click.echo(json.dumps({"error": error, "exit_code": exit_code}, indent=2))
