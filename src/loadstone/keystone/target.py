"""Targets: Keystones to measure, and how one is chosen."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never
from urllib.parse import quote

from loadstone.cloud import (
    Access,
    Cloud,
    connect,
    from_clouds_yaml,
    from_environment,
    require_permission,
)
from loadstone.cloud.cloud import Endpoint, TlsFiles
from loadstone.cloud.permission import is_loopback
from loadstone.diagnosis.demand import Setup
from loadstone.diagnosis.resources import Watch
from loadstone.errors import InvalidInput
from loadstone.keystone.contexts.existing import directory_users
from loadstone.keystone.contexts.users_file import existing_users, read_users
from loadstone.keystone.local_service import lab_at, members_at
from loadstone.keystone.resources import User
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.monitor.identity_requests import AccessLogs
from loadstone.monitor.sampler import Monitor
from loadstone.monitor.service import Members, ServiceProcess
from loadstone.monitor.source import Source
from loadstone.monitor.sources.open import open_source, open_sources
from loadstone.oidc import target as oidc
from loadstone.oidc.client import Client
from loadstone.oidc.provider import Provider
from loadstone.oidc.target import OidcIssuer
from loadstone.result.model import LAB, LAB_HOST, Measurement
from loadstone.system import paths
from loadstone.system.redaction import is_secret

if TYPE_CHECKING:
    from loadstone.lab.deployment import Deployment
    from loadstone.lab.keystone.settings import LabSettings
    from loadstone.lab.lab_host import RemoteDeployment
    from loadstone.lab.measurement import ActiveMeasurement
    from loadstone.lab.remote_lab import ConnectedHost, LabPlace

Say = Callable[[str], None]
Explain = Callable[[Measurement], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """--lab NAME, --cloud NAME, else OS_* variables."""

    lab: str | None = None
    cloud: str | None = None
    beyond_loopback: bool = False  # the user permits load on another machine
    # Measure a target that another measurement is at work on, or with a fault in force.
    anyway: bool = False
    users_file: Path | None = None  # users that exist already
    watched: tuple[str, ...] = ()  # more to watch: --monitor


@dataclass(frozen=True, slots=True)
class OwnLab:
    """A lab that is started for one run and stopped at its end."""

    name: str
    settings: "LabSettings"
    is_purged: bool = False  # before and after, so that every run begins with nothing
    anyway: bool = False  # measure it although a fault is still in force


@dataclass(frozen=True, slots=True)
class LabOnHost:
    """A lab that is started on a lab host of a fleet for one run, and removed at its end."""

    name: str
    pairs: tuple[tuple[str, str], ...]  # settings; others have that host's defaults
    place: "LabPlace"
    beyond_loopback: bool = False  # the user permits load on that host


@dataclass(frozen=True, slots=True)
class ReferenceService:
    """`loadstone serve` in a separate process."""


@dataclass(frozen=True, slots=True)
class WebService:
    """Any HTTP service, known by a URL: nothing is logged in to, and nothing created."""

    url: str  # without user, query and fragment
    beyond_loopback: bool = False  # the user permits load on another machine
    anyway: bool = False  # measure it although another measurement is at work
    verify: bool = True  # its certificate
    watched: tuple[str, ...] = ()

    @property
    def cloud(self) -> Cloud:
        """The service in the form of a cloud without credentials."""
        from keystoneauth1.noauth import NoAuth

        endpoint = Endpoint.parse(self.url)
        tls = TlsFiles(self.verify)
        return Cloud(self.url, self.url, endpoint, "nobody", NoAuth(), tls)


TargetChoice = NamedTarget | OwnLab | LabOnHost | ReferenceService | WebService | OidcIssuer


@dataclass(frozen=True, slots=True)
class Target:
    """A measured target, and its observable parts on this machine."""

    access: Access
    facts: tuple[tuple[str, str], ...] = ()
    # Its processes; None: they are not on this machine.
    members: Members = field(default=lambda: None)
    # Those of the service that is loaded in turns with this one; None: there is none, or elsewhere.
    other_side: Members = field(default=lambda: None)
    # One line with the log that explains it, once a part of the service has died.
    failure: Callable[[], str | None] = field(default=lambda: None)
    # Sentences about the service for the report, besides the trials.
    explain: Explain = field(default=lambda _: ())
    # Reads resources while load runs; None: nothing is read.
    watch: Watch | None = None
    # Counts requests to Keystone; None: it writes no access log.
    access_log: AccessLogs | None = None
    # The record of this measurement on it, and of others at the same time.
    reservation: "ActiveMeasurement | None" = None
    # Existing users, for targets on which no users are created: from LDAP or from a file.
    users: Callable[[], tuple[User, ...]] = field(default=tuple)
    # The folder of its lab deployment; None: it is none.
    lab: Path | None = None
    # It, if it is an OpenID provider.
    provider: Provider | None = None

    @property
    def secrets(self) -> frozenset[str]:
        """The secret values of its login."""
        from keystoneauth1.identity.base import BaseIdentityPlugin

        auth = self.access.session.auth
        known = auth.get_cache_id_elements() if isinstance(auth, BaseIdentityPlugin) else {}
        return frozenset(str(value) for name, value in known.items() if value and is_secret(name))

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of other measurements that ran on it at the same time."""
        return self.reservation.beside if self.reservation else ()


def secrets_of(choice: TargetChoice) -> frozenset[str]:
    """Return the passwords in the choice of a target."""
    if isinstance(choice, OidcIssuer):
        return choice.secrets
    if not isinstance(choice, NamedTarget) or choice.users_file is None:
        return frozenset()
    return frozenset(str(user["password"]) for user in read_users(choice.users_file))


@contextmanager
def measured_target(choice: TargetChoice, say: Say) -> Iterator[Target]:
    """Connect to a target for a measurement.

    It is reserved, so that no other measurement falsifies this one. A lab of the run's own is
    started before and stopped afterwards.
    """
    # Imported here: only a lab on this machine needs them.
    match choice:
        case NamedTarget(lab=str(name), cloud=None) if (place := place_of(choice)) is not None:
            from loadstone.lab import remote_lab

            with remote_lab.connected(place, is_alone=not choice.anyway) as host:
                deployment = host.measure(name, anyway=choice.anyway)
                with remote_target(host, deployment, say, choice) as target:
                    yield _with_users(target, choice.users_file)
        case LabOnHost():
            from loadstone.lab import remote_lab

            with remote_lab.connected(choice.place, is_alone=True) as host:
                host.up(choice.name, choice.pairs, say, owned=True, purged=True)
                with remote_target(host, host.measure(choice.name), say, choice) as target:
                    yield target
        case NamedTarget(lab=str(name), cloud=None):
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
                _watching_service(target.access.endpoint, say, choice.watched) as (members, watch),
            ):
                yield replace(target, members=members, watch=watch, reservation=reservation)
        case OwnLab():
            from loadstone.lab.measurement import measuring

            with (
                own_lab(choice, say) as started,
                measuring(started.folder, started.place) as reservation,
                connected_lab(started, say) as target,
                watching(started, say) as watch,
            ):
                yield replace(
                    target, reservation=reservation, watch=watch, access_log=_logs(started, say)
                )
        case WebService():
            endpoint = choice.cloud.endpoint
            with (
                _web_service(choice, say) as target,
                reserved(endpoint, anyway=choice.anyway) as reservation,
                _watching_service(endpoint, say, choice.watched) as (members, watch),
            ):
                yield replace(target, members=members, watch=watch, reservation=reservation)
        case OidcIssuer():
            with _measured_provider(choice, say) as target:
                yield target
        case ReferenceService():
            with (
                reference_target(say) as target,
                _watching(open_sources(target.members, (), ()), Setup(), say) as watch,
            ):
                yield replace(target, watch=watch)
        case _:
            assert_never(choice)


@contextmanager
def _measured_provider(choice: OidcIssuer, say: Say) -> Iterator[Target]:
    """Connect to a provider: a lab, or one that is known by its issuer."""
    if choice.lab is None:
        endpoint = choice.cloud.endpoint
        with (
            _oidc_target(choice, say) as target,
            reserved(endpoint, anyway=choice.anyway) as reservation,
            _watching_service(endpoint, say, choice.watched) as (members, watch),
        ):
            yield replace(target, members=members, watch=watch, reservation=reservation)
        return
    from loadstone.lab.deployment import find
    from loadstone.lab.measurement import measuring

    lab = find(choice.lab)
    with (
        measuring(lab.folder, lab.place, anyway=choice.anyway) as reservation,
        _oidc_target(choice, say) as target,
        watching(lab, say, choice.watched) as watch,
    ):
        yield replace(of_lab(target, lab), reservation=reservation, watch=watch)


@contextmanager
def reserved(endpoint: Endpoint, *, anyway: bool) -> "Iterator[ActiveMeasurement]":
    """Reserve a target that was not chosen as a lab, by its host and port."""
    from loadstone.lab.measurement import measuring

    folder = _reservations(endpoint)
    with measuring(folder, endpoint.place, anyway=anyway, shares=True) as reservation:
        yield reservation


def measured_by(endpoint: Endpoint) -> tuple[str, ...]:
    """Return who measures the service at an endpoint now, from this machine."""
    from loadstone.lab import measurement

    return measurement.measured_by(_reservations(endpoint), endpoint.place)


def _reservations(endpoint: Endpoint) -> Path:
    """Return the folder of the lab at an endpoint, else the one that stands for host and port."""
    lab = lab_at(endpoint)
    return paths.targets() / quote(endpoint.place, safe="") if lab is None else lab.folder


def _logs(lab: "Deployment", say: Say) -> AccessLogs | None:
    paths = lab.access_logs()
    return AccessLogs.opened(paths, say) if paths else None


@contextmanager
def watching(lab: "Deployment | None", say: Say, more: tuple[str, ...] = ()) -> Iterator[Watch]:
    """Read resources of this machine and of a lab until the end; say what cannot be read."""
    if lab is None:
        sources, setup = open_sources(lambda: None, (), more), Setup()
    else:
        from loadstone.lab import deployment

        # Read each time: parts may have been restarted.
        name = lab.name
        sources, setup = (
            open_sources(lambda: deployment.load(name).members(), lab.statistics(), more),
            lab.setup(),
        )
    with _watching(sources, setup, say) as watch:
        yield watch


@contextmanager
def _watching_service(
    endpoint: Endpoint, say: Say, more: tuple[str, ...]
) -> Iterator[tuple[Members, Watch]]:
    """Read resources of this machine and of a service that was not chosen as a lab."""
    members = members_at(endpoint)
    setup = Setup(is_elsewhere=not is_loopback(endpoint.host, endpoint.port))
    with _watching(open_sources(members, (), more), setup, say) as watch:
        yield members, watch


@contextmanager
def _watching(sources: Sequence[Source], setup: Setup, say: Say) -> Iterator[Watch]:
    with Monitor(sources) as monitor:
        monitor.sample()
        for source in monitor.missing:
            say(str(source))
        yield Watch(monitor, setup)


@contextmanager
def connected(choice: NamedTarget, say: Say) -> Iterator[Target]:
    """Connect to the chosen target; one that is not loopback needs the user's permission."""
    if choice.lab is not None and choice.cloud is not None:
        raise InvalidInput("give --lab or --cloud, not both")
    if choice.lab is not None:
        from loadstone.lab.deployment import find

        with connected_lab(find(choice.lab), say, beyond_loopback=choice.beyond_loopback) as target:
            yield _with_users(target, choice.users_file)
        return
    cloud = cloud_of(choice)
    require_permission(cloud, choice.beyond_loopback)
    with connect(cloud, say, beyond_loopback=choice.beyond_loopback) as access:
        yield _with_users(Target(access), choice.users_file)


@contextmanager
def _web_service(choice: WebService, say: Say) -> Iterator[Target]:
    """Permit a service; no connection is made."""
    from loadstone.cloud.session import open_session

    cloud, beyond = choice.cloud, choice.beyond_loopback
    require_permission(cloud, beyond)
    session = open_session(cloud, say, loopback_only=not beyond)
    with Access(cloud, cloud.endpoint, session, beyond) as access:
        yield Target(access)


@contextmanager
def _oidc_target(choice: OidcIssuer, say: Say) -> Iterator[Target]:
    from loadstone.cloud.session import open_session

    cloud, beyond = choice.cloud, choice.beyond_loopback
    with oidc.connected(choice) as provider:
        session = open_session(cloud, say, loopback_only=not beyond)
        with Access(cloud, cloud.endpoint, session, beyond) as access:
            facts = (("service", "OpenID Connect"), ("client", choice.client.id))
            yield Target(access, facts, provider=provider)


def issuer_of_lab(name: str) -> OidcIssuer | None:
    """Return the provider that a lab of this machine is; None if it is a Keystone, or no lab."""
    from loadstone.lab import deployment, state
    from loadstone.lab.provider import node

    known = state.read(deployment.folder_of(name))
    if known is None or not deployment.Deployment(deployment.folder_of(name), known).is_provider:
        return None
    lab = deployment.find(name)
    secret = lab.environment_variables()["LOADSTONE_OIDC_CLIENT_SECRET"]
    client = Client(node.CLIENT_ID, secret, node.REDIRECT_URI)
    return OidcIssuer(lab.url, client, node.users_file(lab.folder), lab=name)


def of_lab(target: Target, lab: "Deployment") -> Target:
    """Return a target with what is known of its deployment on this machine."""
    from loadstone.lab import deployment

    # Read each time: parts may have been restarted.
    return replace(
        target,
        facts=((LAB, lab.name), *lab.facts()),
        members=lambda: deployment.load(lab.name).identity_members(),
        failure=lambda: deployment.load(lab.name).failure(),
        lab=lab.folder,
    )


def cloud_of(choice: NamedTarget) -> Cloud:
    """Return the chosen entry of clouds.yaml, or the cloud of the OS_* variables."""
    return from_environment(os.environ) if choice.cloud is None else from_clouds_yaml(choice.cloud)


def place_of(choice: TargetChoice) -> "LabPlace | None":
    """Return the lab host of a lab that is on another machine."""
    if isinstance(choice, LabOnHost):
        return choice.place
    if not isinstance(choice, NamedTarget) or choice.lab is None or choice.cloud is not None:
        return None
    from loadstone.lab import remote_lab

    record = remote_lab.recorded(choice.lab)
    return None if record is None else record.place


def _of_logins(explain: Explain) -> Explain:
    """Return `explain` for the scenario that checks a password; the others get no sentence."""
    scenario = SCENARIOS["issue"].name
    return lambda measured: explain(measured) if measured.scenario == scenario else ()


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
    with (
        connect(cloud, say, beyond_loopback=choice.beyond_loopback) as access,
        _watching(
            (HostSource(host, say), *(open_source(one) for one in watched)), deployment.setup, say
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
            explain=_of_logins(host.explain),
            watch=watch,
        )
        yield (
            replace(target, users=partial(directory_users, access, entries)) if entries else target
        )


@contextmanager
def connected_lab(
    lab: "Deployment", say: Say, *, beyond_loopback: bool = False
) -> Iterator[Target]:
    """Connect to a lab, whose processes can be monitored."""
    from loadstone.lab.hashing import DEFAULT_ROUNDS, explain

    if lab.is_provider:
        raise InvalidInput(
            f"lab {lab.name} is an OpenID provider, which capacity, compare and fault measure"
        )
    rounds = int(dict(lab.state.settings).get("hash-rounds", DEFAULT_ROUNDS))
    cloud = from_environment(lab.environment_variables(), f"--lab {lab.name}")
    entries = lab.directory_users()
    with connect(cloud, say, beyond_loopback=beyond_loopback) as access:
        target = replace(
            of_lab(Target(access), lab), explain=_of_logins(partial(explain, lab.python, rounds))
        )
        yield (
            replace(target, users=partial(directory_users, access, entries)) if entries else target
        )


@contextmanager
def own_lab(choice: OwnLab, say: Say) -> "Iterator[Deployment]":
    """Start a lab, and stop it at the end."""
    from loadstone.lab import deployment

    with ExitStack() as stack:
        if choice.is_purged:
            _purge(choice.name)  # left by a killed run
            stack.callback(_purge, choice.name)
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


def _with_users(target: Target, file: Path | None) -> Target:
    if file is None:
        return target
    users = existing_users(target.access, read_users(file))
    return replace(target, users=lambda: users)


def _purge(name: str) -> None:
    from loadstone.lab import deployment

    if any(one.name == name for one in deployment.every()):
        deployment.down(name, purge=True)
