"""Connects to the chosen target, without reserving or watching it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.cloud import (
    Access,
    Cloud,
    connect,
    from_environment,
    require_permission,
)
from loadstone.errors import InvalidInput
from loadstone.keystone.contexts.existing import directory_users
from loadstone.keystone.contexts.users_file import existing_users, read_users
from loadstone.keystone.federation import Federation
from loadstone.keystone.rust import UNSERVED
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.monitor.service import ServiceProcess
from loadstone.oidc import target as oidc
from loadstone.oidc.client import Client
from loadstone.oidc.target import OidcIssuer
from loadstone.result.model import LAB
from loadstone.system.say import Say
from loadstone.target.choice import NamedTarget, OwnLab, WebService, cloud_of, place_of
from loadstone.target.target import Explain, Target

if TYPE_CHECKING:
    from loadstone.lab.deployment import Deployment
    from loadstone.lab.remote_lab import LabPlace


@contextmanager
def connected(choice: NamedTarget, say: Say) -> Iterator[Target]:
    """Connect to the chosen target; one that is not loopback needs the user's permission."""
    place = place_of(choice)
    if choice.lab is None:
        cloud = cloud_of(choice)
    elif place is not None:
        cloud = _cloud_of_lab(choice.lab, place)
    else:
        from loadstone.lab.deployment import find

        with connected_lab(find(choice.lab), say, beyond_loopback=choice.beyond_loopback) as target:
            yield with_users(target, choice.users_file)
        return
    require_permission(cloud, choice.beyond_loopback)
    with connect(cloud, say, beyond_loopback=choice.beyond_loopback) as access:
        yield with_users(Target(access, federation=choice.federation), choice.users_file)


def _cloud_of_lab(name: str, place: "LabPlace") -> Cloud:
    """Return a lab on another host, which tells its credentials."""
    from loadstone.lab import remote_lab

    with remote_lab.connected(place, is_alone=False) as host:
        return from_environment(host.find(name).variables, f"--lab {name}")


@contextmanager
def web_service(choice: WebService, say: Say) -> Iterator[Target]:
    """Permit a service; no connection is made."""
    from loadstone.cloud.session import open_session

    cloud, beyond = choice.cloud, choice.beyond_loopback
    require_permission(cloud, beyond)
    session = open_session(cloud, say, loopback_only=not beyond)
    with Access(cloud, cloud.endpoint, session, beyond) as access:
        yield Target(access)


@contextmanager
def oidc_target(choice: OidcIssuer, say: Say) -> Iterator[Target]:
    """Read the metadata of a provider."""
    from loadstone.cloud.session import open_session

    cloud, beyond = choice.cloud, choice.beyond_loopback
    with oidc.connected(choice, say) as provider:
        session = open_session(cloud, say, loopback_only=not beyond)
        with Access(cloud, cloud.endpoint, session, beyond) as access:
            facts = (("service", "OpenID Connect"), ("client", choice.client.id))
            yield Target(access, facts, provider=provider)


def issuer_of_lab(name: str) -> OidcIssuer | None:
    """Return the provider that a lab of this machine is; None if it is a Keystone, or no lab."""
    from loadstone.lab import deployment
    from loadstone.lab.provider import credentials

    if not deployment.is_here(name) or not deployment.load(name).is_provider:
        return None
    lab = deployment.find(name)
    secret = lab.environment_variables()["LOADSTONE_OIDC_CLIENT_SECRET"]
    client = Client(credentials.CLIENT_ID, secret, credentials.REDIRECT_URI)
    return OidcIssuer(lab.url, client, credentials.users_file(lab.folder), lab=name)


def federation_of_lab(lab: "Deployment") -> Federation | None:
    """Return the identity provider beside a lab's Keystone; None if it has none."""
    from loadstone.lab.keystone import federation
    from loadstone.lab.keystone.conf import PROTOCOL
    from loadstone.lab.provider import credentials

    port = lab.state.port(federation.PORT)
    if not lab.has_federation or port is None:
        return None
    secret = credentials.client_secret_file(lab.folder).read_text()
    client = Client(credentials.CLIENT_ID, secret, credentials.REDIRECT_URI)
    issuer = OidcIssuer(federation.issuer(port), client, credentials.users_file(lab.folder))
    return Federation(federation.IDENTITY_PROVIDER, PROTOCOL, federation.PROJECT, issuer)


def of_lab(target: Target, lab: "Deployment") -> Target:
    """Return a target with what is known of its deployment on this machine."""
    from loadstone.lab import deployment

    # Read each time: parts may have been restarted.
    return replace(
        target,
        facts=((LAB, lab.name), *lab.facts()),
        members=lambda: deployment.load(lab.name).identity_members(),
        failure=lambda: deployment.loss(lab),
        lab=lab.folder,
    )


@contextmanager
def connected_lab(
    lab: "Deployment", say: Say, *, beyond_loopback: bool = False
) -> Iterator[Target]:
    """Connect to a lab, whose processes can be monitored."""
    from loadstone.lab.hashing import FACT, explain

    if lab.is_provider:
        raise InvalidInput(
            f"lab {lab.name} is an OpenID provider, which capacity, compare and fault measure"
        )
    stored = dict(lab.facts()).get(FACT, "")
    cloud = from_environment(lab.environment_variables(), f"--lab {lab.name}")
    entries = lab.directory_users()
    with connect(cloud, say, beyond_loopback=beyond_loopback) as access:
        yield replace(
            of_lab(Target(access, federation=federation_of_lab(lab)), lab),
            # How long the hash takes is measured in Python.
            explain=of_logins(partial(explain, lab.python, "" if lab.is_in_rust else stored)),
            users=partial(directory_users, access, entries),
            unserved=UNSERVED if lab.is_in_rust else (),
        )


@contextmanager
def own_lab(choice: OwnLab, say: Say) -> "Iterator[Deployment]":
    """Start a lab, and stop it at the end."""
    from loadstone.lab import deployment

    with ExitStack() as stack:
        if choice.is_purged:
            _purge(choice.name)  # left by a killed run
            stack.callback(_purge, choice.name)
        else:
            deployment.require_same(choice.name, choice.settings)  # it may be the user's own
        lab = deployment.up(choice.name, choice.settings, say, owned=True)
        if not choice.is_purged:
            stack.callback(deployment.down, choice.name)
        yield lab


@contextmanager
def reference_target(say: Say) -> Iterator[Target]:
    """Start `loadstone serve`, connect to it, and end it."""
    from loadstone.serve.process import reference_process

    with (
        reference_process() as (process, variables),
        connect(from_environment(variables, "loadstone serve"), say) as access,
    ):
        yield Target(
            access,
            facts=(("service", "loadstone serve: tokens in memory"),),
            members=lambda: (ServiceProcess(process.pid, "loadstone serve"),),
            failure=lambda: "loadstone serve died" if process.poll() is not None else None,
        )


def of_logins(explain: Explain) -> Explain:
    """Return `explain` for the scenario that checks a password; the others get no sentence."""
    scenario = SCENARIOS["issue"].name
    return lambda measured: explain(measured) if measured.scenario == scenario else ()


def with_users(target: Target, file: Path | None) -> Target:
    """Return a target with the existing users of a file."""
    if file is None:
        return target
    users = existing_users(target.access, read_users(file))
    return replace(target, users=lambda: users)


def _purge(name: str) -> None:
    from loadstone.lab import deployment

    if deployment.is_here(name):
        deployment.down(name, purge=True)
