"""Targets for a measurement: connected, reserved, watched."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

from loadstone.cloud import connect, from_environment, require_permission
from loadstone.diagnosis.demand import Setup
from loadstone.diagnosis.service import KEYSTONE, PROVIDER, WEB_SERVICE, MeasuredService
from loadstone.keystone.contexts.existing import directory_users
from loadstone.keystone.rust import UNSERVED
from loadstone.monitor.identity_requests import AccessLogs
from loadstone.monitor.sources.open import open_source, open_sources
from loadstone.oidc.target import OidcIssuer
from loadstone.result.model import LAB, LAB_HOST
from loadstone.system.say import Say
from loadstone.target.choice import (
    LabOnHost,
    NamedTarget,
    OwnLab,
    ReferenceService,
    TargetChoice,
    WebService,
    place_of,
)
from loadstone.target.connect import (
    connected,
    connected_lab,
    issuer_of_lab,
    of_lab,
    of_logins,
    oidc_target,
    own_lab,
    reference_target,
    web_service,
    with_users,
)
from loadstone.target.reservation import reserved
from loadstone.target.target import Target
from loadstone.target.watch import watching, watching_service, watching_sources

if TYPE_CHECKING:
    from loadstone.lab.deployment import Deployment
    from loadstone.lab.lab_host import RemoteDeployment
    from loadstone.lab.remote_lab import ConnectedHost


@contextmanager
def measured_target(choice: TargetChoice, say: Say) -> Iterator[Target]:
    """Connect to a target for a measurement.

    It is reserved, so that no other measurement falsifies this one. A lab of the run's own is
    started before and stopped afterwards.
    """
    # Imported here: only a lab on this machine needs them.
    match choice:
        case NamedTarget(lab=str(name)) if (place := place_of(choice)) is not None:
            from loadstone.lab import remote_lab

            with remote_lab.connected(place, is_alone=not choice.anyway) as host:
                deployment = host.measure(name, anyway=choice.anyway)
                with remote_target(host, deployment, say, choice) as target:
                    yield with_users(target, choice.users_file)
        case LabOnHost():
            from loadstone.lab import remote_lab

            with remote_lab.connected(choice.place, is_alone=True) as host:
                host.up(choice.name, choice.pairs, say, owned=True, purged=True)
                with remote_target(host, host.measure(choice.name), say, choice) as target:
                    yield target
        case NamedTarget(lab=str(name)) | OidcIssuer(lab=str(name)):
            from loadstone.lab.deployment import find

            lab = find(name)
            if isinstance(choice, OidcIssuer):
                way = _provider_lab(choice, lab, say)
            else:
                way = connected(choice, say)
            with _on_lab(lab, way, say, choice.watched, anyway=choice.anyway) as target:
                yield target
        case NamedTarget():
            with _on_service(connected(choice, say), choice, say, KEYSTONE) as target:
                yield target
        case OwnLab():
            with own_lab(choice, say) as lab, _on_lab(lab, _connected_own(lab, say), say) as target:
                yield target
        case WebService():
            with _on_service(web_service(choice, say), choice, say, WEB_SERVICE) as target:
                yield target
        case OidcIssuer():
            with _on_service(oidc_target(choice, say), choice, say, PROVIDER) as target:
                yield target
        case ReferenceService():
            with (
                reference_target(say) as target,
                watching_sources(open_sources(target.members, (), ()), Setup(), say) as watch,
            ):
                yield replace(target, watch=watch)
        case _:
            assert_never(choice)


@contextmanager
def _on_lab(
    lab: "Deployment",
    way: AbstractContextManager[Target],
    say: Say,
    watched: tuple[str, ...] = (),
    *,
    anyway: bool = False,
) -> Iterator[Target]:
    """Reserve a lab of this machine, connect to it in a `way`, and watch it."""
    from loadstone.lab.measurement import measuring

    with (
        measuring(lab.folder, lab.place, anyway=anyway) as reservation,
        way as target,
        watching(lab, say, watched) as watch,
    ):
        logs = lab.access_logs()
        access_log = AccessLogs.opened(logs, say) if logs else None
        yield replace(target, reservation=reservation, watch=watch, access_log=access_log)


@contextmanager
def _on_service(
    way: AbstractContextManager[Target],
    choice: NamedTarget | WebService | OidcIssuer,
    say: Say,
    service: MeasuredService,
) -> Iterator[Target]:
    """Connect in a `way` to a service that was not chosen as a lab; reserve and watch it."""
    with way as target:
        endpoint = target.access.endpoint
        with (
            reserved(endpoint, anyway=choice.anyway) as reservation,
            watching_service(endpoint, say, choice.watched, service) as (members, watch),
        ):
            yield replace(target, members=members, watch=watch, reservation=reservation)


def _connected_own(lab: "Deployment", say: Say) -> AbstractContextManager[Target]:
    """Connect to a lab that this process has started."""
    provider = issuer_of_lab(lab.name)
    return connected_lab(lab, say) if provider is None else _provider_lab(provider, lab, say)


@contextmanager
def _provider_lab(choice: OidcIssuer, lab: "Deployment", say: Say) -> Iterator[Target]:
    """Connect to a lab that is a provider."""
    with oidc_target(choice, say) as target:
        yield of_lab(target, lab)


@contextmanager
def remote_target(
    host: "ConnectedHost", deployment: "RemoteDeployment", say: Say, choice: NamedTarget | LabOnHost
) -> Iterator[Target]:
    """Connect to a lab on another host, whose monitors read there."""
    from loadstone.lab.remote_lab import HostSource

    cloud = from_environment(deployment.variables, f"--lab {deployment.name}")
    require_permission(cloud, choice.beyond_loopback)
    watched = choice.watched if isinstance(choice, NamedTarget) else ()
    taken = set(deployment.sources)
    with (
        connect(cloud, say, beyond_loopback=choice.beyond_loopback) as access,
        watching_sources(
            (HostSource(host, say), *(open_source(one, taken) for one in watched)),
            deployment.setup,
            say,
        ) as watch,
    ):
        yield Target(
            access,
            facts=(
                (LAB, deployment.name),
                (LAB_HOST, host.name),
                *host.facts.rows,
                *deployment.facts,
            ),
            failure=host.failure,
            explain=of_logins(host.explain),
            watch=watch,
            users=partial(directory_users, access, deployment.directory_users),
            unserved=UNSERVED if deployment.is_in_rust else (),
        )
