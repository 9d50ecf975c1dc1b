"""Options that choose the target of a command: --lab NAME, --cloud NAME, else OS_*."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from loadstone.faults.model import FaultCommands
    from loadstone.keystone.target import Target
    from loadstone.run.backend import Backend

Command = Callable[..., object]


def backend_of(ctx: click.Context) -> "Backend":
    """Return the backend given to `cli.main`; the default connects and loads for real."""
    from loadstone.run.backend import REAL, Backend

    return ctx.find_object(Backend) or REAL


def once(
    *names: str, default: str | None = None, show_default: str | bool = True, **more: Any
) -> Callable[[Command], Command]:
    """Return a decorator that adds an option whose second use is refused.

    It names what is measured: the last one would win over the others without a word.
    """
    defaults = () if default is None else (default,)
    shown = show_default and default is not None and show_default
    return click.option(
        *names, multiple=True, default=defaults, callback=_only, show_default=shown, **more
    )


def _only(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> str | None:
    if len(values) > 1:
        hint = ""
        if option.name == "scenario" and not any(value.startswith("mix:") for value in values):
            hint = f", or their mix: mix:{','.join(f'{one}=1' for one in values)}"
        raise click.UsageError(
            f"{option.opts[0]} takes one value, not {len(values)}: {', '.join(values)}; use a "
            f"command for each{hint}"
        )
    return values[0] if values else None


def target_options(command: Command) -> Command:
    """Add the options that choose a target."""
    cloud = once("--cloud", metavar="NAME", help="Target: an entry of clouds.yaml.")
    lab = once(
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
