"""Options that choose the target of a command: --lab NAME, --cloud NAME, else OS_*."""

import re
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from loadstone.cli import defaults as defaults_

if TYPE_CHECKING:
    from loadstone.faults.model import FaultCommands
    from loadstone.run.backend import Backend

Command = Callable[..., object]


def backend_of(ctx: click.Context) -> "Backend":
    """Return the backend given to `cli.main`; the default connects and loads for real."""
    from loadstone.run.backend import REAL, Backend

    return ctx.find_object(Backend) or REAL


def refuse_given(ctx: click.Context, names: Collection[str], why: str) -> None:
    """Raise a usage error for the first of these parameters that the command line gives."""
    for one in ctx.command.params:
        is_given = ctx.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
        if one.name in names and is_given:
            raise click.UsageError(f"{one.opts[0]} {why}")


def added(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds options in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def option_table(*rows: tuple[str, str, Any, Any, str]) -> Callable[[Command], Command]:
    """Return a decorator that adds options, each a flag, a name, a type, a default and a help."""
    return added(
        *(
            click.option(flag, name, type=kind, default=default, help=text)
            for flag, name, kind, default, text in rows
        )
    )


class _Whole(click.types.StringParamType):
    """A text that is one value in an environment variable, too, with the spaces in it."""

    def split_envvar_value(self, rv: str) -> tuple[str, ...]:
        """Return the only value."""
        return (rv,)


def once(
    *names: str,
    default: str | None = None,
    show_default: str | bool = True,
    instead_of: str | None = None,
    **more: Any,
) -> Callable[[Command], Command]:
    """Return a decorator that adds an option whose second use is refused.

    It names what is measured: the last one would win over the others without a word. `instead_of`
    is the option that names a target in another way.
    """
    defaults = () if default is None else (default,)
    shown = show_default and default is not None and show_default
    callback = _only if instead_of is None else partial(_target, other=instead_of)
    return click.option(
        *names,
        type=_Whole(),
        multiple=True,
        default=defaults,
        callback=callback,
        show_default=shown,
        **more,
    )


def _target(
    ctx: click.Context, option: click.Parameter, values: tuple[str, ...], other: str
) -> str | None:
    return defaults_.nearest_target(ctx, option, _only(ctx, option, values), other)


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
    text = "Target: an entry of clouds.yaml."
    cloud = once("--cloud", metavar="NAME", instead_of="lab", help=text)
    text = "Target: a deployment started by `loadstone lab up NAME`."
    lab = once("--lab", metavar="NAME", instead_of="cloud", help=text)
    return lab(cloud(command))


ARGUMENT = click.option(
    "--arg",
    "given",
    metavar="NAME=VALUE",
    multiple=True,
    help="Argument of the scenario, with its value in YAML or JSON; may be repeated.",
)
FEDERATION = click.option(
    "--federation",
    "federation_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Identity provider of the cloud, and its users, who log in to Keystone: a YAML file "
    "(docs/identity.md).",
)
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


def fault_commands(options: Any) -> "FaultCommands | None":
    """Return the fault commands of a file, which need --yes-break-this-target."""
    file: Path | None = options["faults_file"]
    if file is None:
        return None
    from loadstone.faults.commands import read_commands

    commands = read_commands(file)
    if not options["may_break"]:
        raise click.UsageError(
            f"the commands of {file} break the target on purpose; if that is meant, add "
            "--yes-break-this-target"
        )
    return commands


class TagParam(click.ParamType[tuple[str, str]]):
    """KEY=VALUE that a run is found again by."""

    name = "KEY=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return name and value."""
        from loadstone.system.redaction import is_secret

        key, equals, text = str(value).partition("=")
        if not equals or not TAG_NAME.fullmatch(key):
            self.fail(f"{value!r}: write KEY=VALUE, with letters, digits . _ - in KEY", param, ctx)
        if len(text) > TAG_CHARACTERS or not text.isprintable():
            self.fail(f"{key}: at most {TAG_CHARACTERS} printable characters", param, ctx)
        if is_secret(key):
            self.fail(f"{key}: a tag is stored and shown: no secrets in it", param, ctx)
        return key, text


def _distinct(
    _: click.Context, option: click.Parameter, pairs: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    keys = [key for key, _ in pairs]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise click.UsageError(
            f"{option.opts[0]} {twice} is given twice; a run has one value of each tag"
        )
    return pairs


TAG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
TAG_CHARACTERS = 200
TAG = click.option(
    "--tag",
    "tags",
    type=TagParam(),
    multiple=True,
    callback=_distinct,
    help="Name the run by this, for `results list --tag` and `results trends --tag`; may be "
    "repeated.",
)


PROFILE = click.option(
    "--profile",
    "profiles",
    is_flag=True,
    help="Profile the Keystone workers of a --lab with py-spy: where they spend their time.",
)


ANYWAY = click.option(
    "--anyway",
    is_flag=True,
    help="Measure the target even if another measurement is using it (the results say so), or if "
    "a fault is still in force.",
)


UNDONE_ANYWAY = click.option(
    "--anyway", is_flag=True, help="Continue even if a fault is still in force."
)
