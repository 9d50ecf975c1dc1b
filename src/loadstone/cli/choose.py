"""Options that choose the target of a command: --lab NAME, --cloud NAME, else OS_*."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from loadstone.backend import Backend
    from loadstone.faults.model import FaultCommands
    from loadstone.keystone.target import Target

Command = Callable[..., object]


def backend_of(ctx: click.Context) -> "Backend":
    """Return the backend given to `cli.main`; the default connects and loads for real."""
    from loadstone.backend import REAL, Backend

    return ctx.find_object(Backend) or REAL


def target_options(command: Command) -> Command:
    """Add the options that choose a target."""
    cloud = click.option("--cloud", metavar="NAME", help="Target: an entry of clouds.yaml.")
    lab = click.option(
        "--lab", metavar="NAME", help="Target: a deployment started by `loadstone lab up NAME`."
    )
    return lab(cloud(command))


PERMISSION = click.option(
    "--yes-load-this-target",
    "yes",
    is_flag=True,
    help="Permit load on a target that is not this machine.",
)


MONITOR = click.option(
    "--monitor",
    "watched",
    metavar="WHAT",
    multiple=True,
    help="Monitor another source: prometheus=URL[,queries=FILE][,user=NAME,password-file=FILE], "
    "ssh=HOST, or a service's URL such as memcached://HOST:11211; may be repeated.",
)


def fault_options(command: Command) -> Command:
    """Add the options for injecting faults by commands of a file."""
    file = click.Path(path_type=Path, exists=True, dir_okay=False)
    text = "File with commands that inject faults into a target that is not a lab (docs/faults.md)."
    command = click.option("--faults", "faults_file", type=file, help=text)(command)
    text = "Permit the commands of --faults to break this target."
    return click.option("--yes-break-this-target", "may_break", is_flag=True, help=text)(command)


def fault_commands(file: Path | None, *, may_break: bool) -> "FaultCommands | None":
    """Return the fault commands of a file, which need --yes-break-this-target."""
    if file is None:
        return None
    from loadstone.faults.commands import read_commands

    commands = read_commands(file)
    if not may_break:
        raise click.UsageError(
            f"the commands of {file} break the target on purpose; if that is meant, add "
            "--yes-break-this-target"
        )
    return commands


PROFILE = click.option(
    "--profile",
    "profiles",
    is_flag=True,
    help="Profile the Keystone workers of a --lab with py-spy: where they spend their time.",
)


ANYWAY = click.option(
    "--anyway",
    is_flag=True,
    help="Measure a target although another measurement is using it, which the results say, or "
    "although a fault is still in force.",
)


UNDONE_ANYWAY = click.option(
    "--anyway", is_flag=True, help="Go on although a fault is still in force."
)


@contextmanager
def connected_target(lab: str | None, cloud: str | None, yes: bool) -> "Iterator[Target]":
    """Connect to the chosen target; one that is not loopback needs `yes`."""
    from loadstone.keystone.target import NamedTarget, connected

    with connected(NamedTarget(lab, cloud, yes), lambda line: click.echo(line, err=True)) as target:
        yield target
