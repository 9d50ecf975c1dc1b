"""Targets for a measurement: connected, reserved, watched."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

from loadstone.cloud import connect, from_environment, require_permission
from loadstone.diagnosis.demand import Setup
from loadstone.diagnosis.service import KEYSTONE, PROVIDER, WEB_SERVICE
from loadstone.keystone.contexts.existing import directory_users
from loadstone.keystone.rust import UNSERVED
from loadstone.monitor.identity_requests import AccessLogs
from loadstone.monitor.sources.open import open_source, open_sources
from loadstone.oidc.target import OidcIssuer
from loadstone.result.model import LAB, LAB_HOST
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

Say = Callable[[str], None]


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
        case NamedTarget(lab=str(name)):
            from loadstone.lab.deployment import find
            from loadstone.lab.measurement import measuring

            with (
                measuring(find(name).folder, find(name).place, anyway=choice.anyway) as reservation,
                connected(choice, say) as target,
                watching(find(name), say, choice.watched) as watch,
            ):
                yield replace(
                    target, reservation=reservation, watch=watch, access_log=_logs(find(name), say)
                )
        case NamedTarget():
            with (
                connected(choice, say) as target,
                reserved(target.access.endpoint, anyway=choice.anyway) as reservation,
                watching_service(target.access.endpoint, say, choice.watched, KEYSTONE) as (
                    members,
                    watch,
                ),
            ):
                yield replace(target, members=members, watch=watch, reservation=reservation)
        case OwnLab():
            from loadstone.lab.measurement import measuring

            with (
                own_lab(choice, say) as started,
                measuring(started.folder, started.place) as reservation,
                _connected_own(started, say) as target,
                watching(started, say) as watch,
            ):
                yield replace(
                    target, reservation=reservation, watch=watch, access_log=_logs(started, say)
                )
        case WebService():
            endpoint = choice.cloud.endpoint
            with (
                web_service(choice, say) as target,
                reserved(endpoint, anyway=choice.anyway) as reservation,
                watching_service(endpoint, say, choice.watched, WEB_SERVICE) as (members, watch),
            ):
                yield replace(target, members=members, watch=watch, reservation=reservation)
        case OidcIssuer():
            with _measured_provider(choice, say) as target:
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
def _connected_own(lab: "Deployment", say: Say) -> Iterator[Target]:
    """Connect to a lab that this process has started."""
    provider = issuer_of_lab(lab.name)
    if provider is None:
        with connected_lab(lab, say) as target:
            yield target
        return
    with oidc_target(provider, say) as target:
        yield of_lab(target, lab)


@contextmanager
def _measured_provider(choice: OidcIssuer, say: Say) -> Iterator[Target]:
    """Connect to a provider: a lab, or one that is known by its issuer."""
    if choice.lab is None:
        endpoint = choice.cloud.endpoint
        with (
            oidc_target(choice, say) as target,
            reserved(endpoint, anyway=choice.anyway) as reservation,
            watching_service(endpoint, say, choice.watched, PROVIDER) as (members, watch),
        ):
            yield replace(target, members=members, watch=watch, reservation=reservation)
        return
    from loadstone.lab.deployment import find
    from loadstone.lab.measurement import measuring

    lab = find(choice.lab)
    with (
        measuring(lab.folder, lab.place, anyway=choice.anyway) as reservation,
        oidc_target(choice, say) as target,
        watching(lab, say, choice.watched) as watch,
    ):
        yield replace(of_lab(target, lab), reservation=reservation, watch=watch)


@contextmanager
def remote_target(
    host: "ConnectedHost", deployment: "RemoteDeployment", say: Say, choice: NamedTarget | LabOnHost
) -> Iterator[Target]:
    """Connect to a lab on another host, whose monitors read there."""
    from loadstone.lab.remote_lab import HostSource

    cloud = from_environment(deployment.variables, f"--lab {deployment.name}")
    require_permission(cloud, choice.beyond_loopback)
    entries = deployment.directory_users
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
        target = Target(
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
            unserved=UNSERVED if deployment.is_in_rust else (),
        )
        yield (
            replace(target, users=partial(directory_users, access, entries)) if entries else target
        )


def _logs(lab: "Deployment", say: Say) -> AccessLogs | None:
    paths = lab.access_logs()
    return AccessLogs.opened(paths, say) if paths else None
