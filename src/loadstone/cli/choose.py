"""How a target is chosen, the same way everywhere: --lab NAME, --cloud NAME, else OS_*."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from loadstone.keystone.deployment import Deployment
    from loadstone.run import Subject

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


@contextmanager
def chosen(lab: str | None, cloud: str | None, yes: bool) -> "Iterator[Subject]":
    """Connect to the chosen target; one that is not loopback needs `yes`."""
    from loadstone.errors import InvalidInput
    from loadstone.run import Subject
    from loadstone.target import connect, from_clouds_yaml, from_environment, require_permission

    if lab is not None and cloud is not None:
        raise InvalidInput("give --lab or --cloud, not both")
    if lab is not None:
        from loadstone.keystone.deployment import find

        with of_deployment(find(lab)) as subject:
            yield subject
        return
    named = from_environment(os.environ) if cloud is None else from_clouds_yaml(cloud)
    require_permission(named, yes)
    with connect(named) as access:
        yield Subject(access, facts=())


@contextmanager
def of_deployment(deployment: "Deployment") -> "Iterator[Subject]":
    """Connect to a Keystone of the lab, whose processes can be watched."""
    from loadstone.keystone.contexts.existing import directory_users
    from loadstone.keystone.hashing import DEFAULT_ROUNDS, explain
    from loadstone.run import Subject
    from loadstone.target import connect, from_environment

    rounds = int(dict(deployment.state.settings).get("hash-rounds", DEFAULT_ROUNDS))
    variables = deployment.environment_variables()
    given = deployment.directory_users()
    with connect(from_environment(variables, f"--lab {deployment.name}")) as access:
        yield Subject(
            access,
            facts=deployment.facts(),
            pids=deployment.pids,
            failure=deployment.failure,
            explain=partial(explain, deployment.python, rounds),
            people=partial(directory_users, access, given) if given else None,
        )
