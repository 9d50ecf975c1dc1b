"""Connects to the hosts of a fleet: each gets a `Member`, a Dask actor."""

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from loadstone.engine.fleet import certificates, ssh
from loadstone.engine.fleet.address import (
    CA,
    CERTIFICATE,
    KEY,
    LOAD,
    FleetAddress,
    LocalFleet,
    SchedulerAddress,
    require_installed,
)
from loadstone.engine.fleet.clock import SkewedClock
from loadstone.engine.fleet.fleet import ANSWER_S, Fleet, FleetHost, RemoteMember
from loadstone.engine.fleet.hosts_file import SshFleet
from loadstone.engine.fleet.member import LEASE_S, Member, MemberFacts
from loadstone.engine.version import version
from loadstone.errors import EnvironmentUnusable, LoadstoneError

if TYPE_CHECKING:
    from distributed import Client, Security

CONNECT_S = 10.0
POLL_S = 0.1
MEMBER_S = 30.0  # a worker imports Loadstone first
RENEW_S = LEASE_S / 4


@contextmanager
def opened(address: FleetAddress, clocks: Sequence[SkewedClock] = ()) -> Iterator[Fleet]:
    """Connect to a fleet, which is this client's alone until the end.

    `clocks` are false clocks of its hosts, for tests. Raises EnvironmentUnusable where a host has
    another version, is used by another client, or does not answer.
    """
    with _client(address) as client:
        fleet = Fleet(_hosts(client, address, clocks), lambda: client.status == "running")
        over = threading.Event()
        renewing = threading.Thread(target=_renew, args=(fleet, over), daemon=True)
        renewing.start()
        try:
            yield fleet
        finally:
            over.set()
            renewing.join()
            _release(fleet)


def _renew(fleet: Fleet, over: threading.Event) -> None:
    """Renew the leases between two loads; during one, looking at it does."""
    while not over.wait(RENEW_S):
        for host in fleet.hosts:
            if not host.lost:
                host.ask("now_ns")


def _release(fleet: Fleet) -> None:
    for host in fleet.hosts:
        if not host.lost:
            with suppress(Exception):
                host.ask("release").result(timeout=ANSWER_S)


@contextmanager
def _client(address: FleetAddress) -> "Iterator[Client]":
    require_installed()
    from distributed import Client

    # Lost connections are told by name, as what they mean for the load. Dask gives each of its
    # loggers a level of its own.
    for name in [one for one in logging.root.manager.loggerDict if one.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if isinstance(address, LocalFleet):
        with _processes(address.count) as cluster, Client(cluster, timeout=CONNECT_S) as client:
            yield client
        return
    if isinstance(address, SshFleet):
        with _by_ssh(address) as client:
            yield client
        return
    try:
        client = Client(
            address.url,
            security=_security(address),
            timeout=CONNECT_S,
            direct_to_workers=True,
        )
    except (OSError, TimeoutError, ValueError) as error:
        cause = " ".join(str(error).split()) or type(error).__name__
        raise EnvironmentUnusable(f"no Dask scheduler answers at {address.url}: {cause}") from None
    with client:
        yield client


@contextmanager
def _by_ssh(fleet: SshFleet) -> "Iterator[Client]":
    """Start a scheduler in this process, and workers on the hosts; they end with us."""
    from distributed import Client, LocalCluster, Security

    pem = certificates.create()
    roles = {
        f"tls_{role}_{part}": value
        for role in ("client", "scheduler", "worker")
        for part, value in (("cert", pem.certificate), ("key", pem.key))
    }
    try:
        cluster = LocalCluster(
            n_workers=0,
            host=fleet.address,
            protocol="tls",
            security=Security(tls_ca_file=pem.ca, require_encryption=True, **roles),
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    except OSError as error:
        raise EnvironmentUnusable(
            f"{fleet}: address: {fleet.address} is none of this machine's ({error})"
        ) from None
    with (
        cluster,
        Client(cluster, timeout=CONNECT_S, direct_to_workers=True) as client,
        ssh.started(fleet, cluster.scheduler_address, pem) as hosts,
    ):
        _await_workers(client, hosts, cluster.scheduler_address)
        yield client


def _await_workers(client: "Client", hosts: Sequence[ssh.StartedHost], scheduler: str) -> None:
    until_s = time.monotonic() + ssh.START_S
    while True:
        told = client.scheduler_info(n_workers=-1)["workers"].values()
        names = {info["name"] for info in told}
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
    """Start workers on this machine; they end with this process."""
    from distributed import LocalCluster, Security

    with LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        protocol="tls",
        security=Security.temporary(),
        dashboard_address="127.0.0.1:0",  # not on all addresses of this machine
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster


def _security(address: SchedulerAddress) -> "Security | None":
    from distributed import Security

    folder = address.certificates
    if folder is None:
        return None
    return Security(
        tls_ca_file=str(folder / CA),
        tls_client_cert=str(folder / CERTIFICATE),
        tls_client_key=str(folder / KEY),
        require_encryption=True,
    )


def joined(address: SchedulerAddress) -> set[str]:
    """Return the names of all workers of a scheduler."""
    with _client(address) as client:
        told = client.scheduler_info(n_workers=-1)["workers"]
        return {str(info.get("name")) for info in told.values()}


@dataclass(frozen=True, slots=True)
class _Worker:
    address: str
    name: str


def _workers(client: "Client", address: FleetAddress) -> list[_Worker]:
    """Return the workers that send load: those with the resource `load`, or all."""
    told: Mapping[str, Mapping[str, Any]] = client.scheduler_info(n_workers=-1)["workers"]
    marked = {one: info for one, info in told.items() if LOAD in info.get("resources", {})}
    workers = marked or told
    if not workers:
        raise EnvironmentUnusable(
            f"the fleet {address} has no workers; `loadstone fleet up` on each host starts some"
        )
    return [_Worker(one, str(info.get("name", one))) for one, info in sorted(workers.items())]


def _hosts(
    client: "Client", address: FleetAddress, clocks: Sequence[SkewedClock]
) -> tuple[FleetHost, ...]:
    name = f"{socket.gethostname()}, process {os.getpid()}"
    workers = _workers(client, address)
    futures = [
        client.submit(
            Member,
            name,
            clocks[number] if clocks else None,
            workers=[worker.address],
            key=f"loadstone-{secrets.token_hex(8)}",
            actor=True,
            pure=False,
        )
        for number, worker in enumerate(workers)
    ]
    hosts = []
    for worker, future in zip(workers, futures, strict=True):
        try:
            member = cast("RemoteMember", future.result(timeout=MEMBER_S))
            facts: MemberFacts = member.facts().result(timeout=ANSWER_S)
        except LoadstoneError as error:
            raise EnvironmentUnusable(f"{worker.address}: {error}") from None
        except ModuleNotFoundError:
            raise EnvironmentUnusable(
                f"{worker.address}: Loadstone is not installed there; install {version()}"
            ) from None
        except Exception as error:
            cause = str(error) or type(error).__name__
            raise EnvironmentUnusable(f"{worker.address} of the fleet: {cause}") from error
        if facts.loadstone != version():
            raise EnvironmentUnusable(
                f"{facts.host} has Loadstone {facts.loadstone}, this machine {version()}; "
                "install the same version on both"
            )
        hosts.append(
            FleetHost(member, facts, f"{facts.host} ({worker.address.rpartition('/')[2]})")
        )
    return tuple(hosts)
