"""How a target is chosen, the same way everywhere: --lab NAME, --cloud NAME, else OS_*."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from loadstone.keystone.target import Target

Command = Callable[..., object]


def target_options(command: Command) -> Command:
    """Add the options that choose a target."""
    cloud = click.option("--cloud", metavar="NAME", help="An entry of clouds.yaml.")
    lab = click.option("--lab", metavar="NAME", help="A deployment of `loadstone lab up NAME`.")
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
    help="Watch more: prometheus=URL[,queries=FILE], ssh=HOST, or a service's URL such as "
    "memcached://HOST:11211; may be repeated.",
)


PROFILE = click.option(
    "--profile",
    "profiles",
    is_flag=True,
    help="Profile Keystone's workers with py-spy, of a --lab: where their time goes.",
)


ANYWAY = click.option(
    "--anyway",
    is_flag=True,
    help="Measure a --lab that another measurement is at work on; the results say so.",
)


@contextmanager
def chosen(lab: str | None, cloud: str | None, yes: bool) -> "Iterator[Target]":
    """Connect to the chosen target; one that is not loopback needs `yes`."""
    from loadstone.keystone.target import NamedTarget, connected

    with connected(NamedTarget(lab, cloud, yes), lambda line: click.echo(line, err=True)) as target:
        yield target
