"""Opens a Dask client to the scheduler of a fleet, and starts the scheduler if needed."""

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from loadstone.engine.fleet import certificates, dask_settings, ssh
from loadstone.engine.fleet.address import (
    CA,
    CERTIFICATE,
    KEY,
    Certificates,
    FleetAddress,
    LocalFleet,
    SchedulerAddress,
    require_installed,
    require_own,
)
from loadstone.engine.fleet.hosts_file import LAB, LOAD, ROLES, WATCH, SshFleet
from loadstone.engine.fleet.remote import RemoteMember
from loadstone.engine.version import version
from loadstone.errors import EnvironmentUnusable, LoadstoneError
from loadstone.system.interrupts import Interrupts, kept_from_children

if TYPE_CHECKING:
    from distributed import Client, Security

CONNECT_S = 10.0
POLL_S = 0.1
MEMBER_S = 30.0  # a worker imports Loadstone first


@contextmanager
def opened(address: FleetAddress) -> "Iterator[Client]":
    """Connect to the scheduler of a fleet; raise EnvironmentUnusable if it does not answer."""
    require_installed()
    from distributed import Client

    _configure_dask()
    # Lost hosts are reported by name elsewhere. Dask sets a level on each of its loggers.
    for name in [one for one in logging.root.manager.loggerDict if one.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if isinstance(address, LocalFleet):
        with (
            _processes(address.count) as cluster,
            # Otherwise all samples pass through the scheduler.
            Client(cluster, timeout=CONNECT_S, direct_to_workers=True) as client,
        ):
            yield client
        return
    with located(address) as scheduler:
        try:
            client = Client(
                scheduler.url,
                security=_security(scheduler),
                timeout=CONNECT_S,
                direct_to_workers=True,
            )
        except (OSError, TimeoutError, ValueError) as error:
            cause = " ".join(str(error).split()) or type(error).__name__
            raise EnvironmentUnusable(
                f"no Dask scheduler answers at {scheduler.url}: {cause}"
            ) from None
        with client:
            yield client


def _configure_dask() -> None:
    """Apply our settings to Dask in this process and in the processes that it starts."""
    import dask.config

    dask.config.set(dask_settings.SETTINGS)


@contextmanager
def located(address: SchedulerAddress | SshFleet) -> Iterator[SchedulerAddress]:
    """Yield the scheduler of a fleet.

    That of ssh hosts is in this process; it and their workers run until the context exits.
    """
    if isinstance(address, SchedulerAddress):
        yield address
        return
    require_installed()
    from distributed import Client

    _configure_dask()
    pem = certificates.create()
    require_own(address.address, f"{address}: address: {address.address}")
    with (
        _cluster(address.address, _of_pem(pem), n_workers=0) as cluster,
        Client(cluster, timeout=CONNECT_S) as client,
        ssh.started(address, cluster.scheduler_address, pem) as hosts,
    ):
        _await_workers(client, hosts, cluster.scheduler_address)
        yield SchedulerAddress(cluster.scheduler_address, pem, title=str(address))


def _await_workers(client: "Client", hosts: Sequence[ssh.StartedHost], scheduler: str) -> None:
    until_s = time.monotonic() + ssh.START_S
    while True:
        names = {one.name for one in workers(client)}
        missing = [host for host in hosts if not names.issuperset(host.workers)]
        if not missing:
            return
        for host in missing:
            host.require_running()
        if time.monotonic() > until_s:
            raise EnvironmentUnusable(
                f"{missing[0].name}: its workers did not reach {scheduler} within "
                f"{ssh.START_S:g} s; is it an address that this host reaches?"
            )
        time.sleep(POLL_S)


@contextmanager
def _processes(count: int) -> Iterator[Any]:
    """Start workers on this machine, until the context exits."""
    from distributed import Security

    # Dask ends the workers; their own traceback after Ctrl-C would say nothing. The tracker, which
    # starts before the first process, unblocks signals of the thread that starts it.
    resource_tracker.ensure_running()
    security = Security.temporary()
    workers = {"n_workers": count, "threads_per_worker": 1, "processes": True}
    with _cluster("127.0.0.1", security, **workers) as cluster:
        yield cluster


@contextmanager
def _cluster(host: str, security: "Security", **workers: object) -> Iterator[Any]:
    """Start a scheduler in this process, and its workers, until the context exits.

    Dask cannot close a cluster whose start was interrupted. So an interrupt takes effect
    once the cluster has started, and a second one at once.
    """
    from distributed import LocalCluster

    with Interrupts(tolerated=1) as interrupts, kept_from_children():
        cluster = LocalCluster(
            host=f"[{host}]" if ":" in host else host,
            protocol="tls",
            security=security,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": dask_settings.HTTP_ADDRESS},
            silence_logs=logging.CRITICAL,
            **workers,
        )
    with cluster:
        if interrupts.count:
            raise KeyboardInterrupt
        yield cluster


def _security(address: SchedulerAddress) -> "Security | None":
    from distributed import Security

    credentials = address.certificates
    if credentials is None:
        return None
    if isinstance(credentials, Certificates):
        return _of_pem(credentials)
    return Security(
        tls_ca_file=str(credentials / CA),
        tls_client_cert=str(credentials / CERTIFICATE),
        tls_client_key=str(credentials / KEY),
        require_encryption=True,
    )


def _of_pem(pem: Certificates) -> "Security":
    from distributed import Security

    roles = {
        f"tls_{role}_{part}": value
        for role in ("client", "scheduler", "worker")
        for part, value in (("cert", pem.certificate), ("key", pem.key))
    }
    return Security(tls_ca_file=pem.ca, require_encryption=True, **roles)


def joined(address: SchedulerAddress) -> set[str]:
    """Return the names of all workers of a scheduler."""
    with opened(address) as client:
        return {one.name for one in workers(client)}


@dataclass(frozen=True, slots=True)
class FleetWorker:
    """A process that has joined a scheduler."""

    address: str  # tls://HOST:PORT
    name: str
    roles: frozenset[str]  # of `ROLES`; none: it sends load

    @property
    def host(self) -> str:
        """The address of its host."""
        return urlsplit(self.address).hostname or self.address


def workers(client: "Client") -> tuple[FleetWorker, ...]:
    """Return all workers of a scheduler, in the order of their addresses."""
    infos: Mapping[str, Mapping[str, Any]] = client.scheduler_info(n_workers=-1)["workers"]
    return tuple(
        FleetWorker(
            address,
            str(info.get("name", address)),
            frozenset(role for role in ROLES if role in info.get("resources", {})),
        )
        for address, info in sorted(infos.items())
    )


def senders(every: Sequence[FleetWorker]) -> tuple[FleetWorker, ...]:
    """Return the workers that send load: those with the role `load`, else those without a role."""
    marked = tuple(one for one in every if LOAD in one.roles)
    return marked or tuple(one for one in every if not one.roles)


def lab_hosts(client: "Client") -> tuple[FleetWorker, ...]:
    """Return one worker for each lab host of a fleet."""
    return _hosts_with(LAB, client)


def watch_hosts(client: "Client") -> tuple[FleetWorker, ...]:
    """Return one worker for each host that is only watched; lab hosts watch themselves."""
    labs = {one.host for one in lab_hosts(client)}
    return tuple(one for one in _hosts_with(WATCH, client) if one.host not in labs)


def _hosts_with(role: str, client: "Client") -> tuple[FleetWorker, ...]:
    found: dict[str, FleetWorker] = {}
    for one in workers(client):
        if role in one.roles:
            found.setdefault(one.host, one)
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class StartingActor:
    """An actor that a worker is creating."""

    worker: FleetWorker
    future: Any

    def member(self) -> RemoteMember:
        """Wait for the actor; EnvironmentUnusable names the worker that cannot create it."""
        try:
            return cast("RemoteMember", self.future.result(timeout=MEMBER_S))
        except Exception as error:
            raise unusable(self.worker, error) from error


def start_actor(
    client: "Client", worker: FleetWorker, kind: Callable[..., object], *arguments: object
) -> StartingActor:
    """Create an object in a worker (a Dask actor); its methods are called from here."""
    future = client.submit(
        kind,
        *arguments,
        workers=[worker.address],
        key=f"loadstone-{secrets.token_hex(8)}",
        actor=True,
        pure=False,
    )
    return StartingActor(worker, future)


def unusable(worker: FleetWorker, error: Exception) -> EnvironmentUnusable:
    """Return a one-line error that says why a worker cannot be used."""
    if isinstance(error, LoadstoneError):
        return EnvironmentUnusable(f"{worker.address}: {error}")
    if isinstance(error, ModuleNotFoundError):
        return EnvironmentUnusable(
            f"{worker.address}: Loadstone is not installed there; install {version()}"
        )
    cause = str(error) or type(error).__name__
    return EnvironmentUnusable(f"{worker.address} of the fleet: {cause}")


def require_version(host: str, theirs: str) -> None:
    """Refuse a host that has another version of Loadstone."""
    if theirs != version():
        raise EnvironmentUnusable(
            f"{host} has Loadstone {theirs}, this machine {version()}; "
            "install the same version on both"
        )
