"""What the command line of `loadstone serve` comes to, and what it tells its user."""

import os
import secrets
import shlex

import click
from click.core import ParameterSource

from loadstone import reference
from loadstone.cli.serve_options import Options
from loadstone.errors import InvalidInput

PASSWORD = "LOADSTONE_SERVE_PASSWORD"  # noqa: S105 (the name of a variable)
# What describes the queue of a known capacity: without one there is none.
OF_CAPACITY = (
    "workers",
    "law",
    "even_over",
    "stall_every_s",
    "stall_s",
    "halve_at_s",
    "queue",
    "seed",
)


def settings(options: Options) -> reference.Settings:
    """Make the settings that the options describe; InvalidInput names what cannot be."""
    password = os.environ.get(PASSWORD) or secrets.token_urlsafe(24)
    capacity = None
    if options["capacity_rps"] is not None:
        capacity = reference.Capacity(
            workers=options["workers"],
            service_s=options["workers"] / options["capacity_rps"],
            law=reference.Law(options["law"]),
            even_over=options["even_over"],
            stall_every_s=options["stall_every_s"],
            stall_s=options["stall_s"],
            halve_at_s=options["halve_at_s"],
            queue=options["queue"],
            seed=options["seed"],
        )
    else:
        _refuse_without_capacity(click.get_current_context())
    return reference.Settings(
        admin=reference.Admin(options["user"], password, options["project"]),
        host=options["host"],
        port=options["port"],
        threads=options["threads"],
        token_life_s=options["token_life_s"],
        max_tokens=options["max_tokens"],
        only_errors=options["only_errors"],
        capacity=capacity,
    )


def _refuse_without_capacity(ctx: click.Context) -> None:
    flags = {option.name: option.opts[0] for option in ctx.command.params}
    given = [
        flags[name]
        for name in OF_CAPACITY
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]
    if given:
        verb = "needs" if len(given) == 1 else "need"
        raise InvalidInput(f"{', '.join(given)} {verb} --capacity: without it nothing queues")


def tell(chosen: reference.Settings, port: int) -> None:
    """Print OS_* for a shell; a password that the user gave is named, not shown."""
    for name, value in reference.environment_variables(chosen, port).items():
        if name == "OS_PASSWORD" and os.environ.get(PASSWORD):
            click.echo(f'export {name}="${PASSWORD}"')
        else:
            click.echo(f"export {name}={shlex.quote(value)}")
