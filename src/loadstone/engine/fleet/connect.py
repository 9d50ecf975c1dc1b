"""Connects to the hosts of a fleet that send load, and starts a `Member` (Dask actor) on each."""

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from loadstone.engine.fleet.address import FleetAddress, SchedulerAddress
from loadstone.engine.fleet.client import (
    FleetWorker,
    lab_hosts,
    require_version,
    senders,
    start_actor,
    unusable,
    watch_hosts,
    workers,
)
from loadstone.engine.fleet.client import (
    opened as opened_client,
)
from loadstone.engine.fleet.clock import HostClock
from loadstone.engine.fleet.fleet import ANSWER_S, Fleet, FleetHost
from loadstone.engine.fleet.member import LEASE_S, Member, MemberFacts
from loadstone.errors import EnvironmentUnusable

if TYPE_CHECKING:
    from distributed import Client

RENEW_S = LEASE_S / 4


@contextmanager
def opened(address: FleetAddress, clocks: Sequence[HostClock] = ()) -> Iterator[Fleet]:
    """Connect to a fleet and reserve it for this client.

    `clocks` replace the hosts' clocks in tests. Raises EnvironmentUnusable where a host has another
    version, is used by another client, or does not answer.
    """
    with opened_client(address) as client:
        labs = tuple(one.host for one in lab_hosts(client))
        watched = tuple(one.host for one in watch_hosts(client))
        hosts = _hosts(client, address, clocks)
        fleet = Fleet(hosts, lambda: client.status == "running", labs, watched)
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
    """Renew the leases between loads; during a load, polling renews them."""
    while not over.wait(RENEW_S):
        for host in fleet.hosts:
            if not host.lost:
                host.call("now_ns")


def _release(fleet: Fleet) -> None:
    for host in fleet.hosts:
        if not host.lost:
            with suppress(Exception):
                host.call("release").result(timeout=ANSWER_S)


def _chosen(client: "Client", address: FleetAddress) -> tuple[FleetWorker, ...]:
    chosen = senders(workers(client))
    if isinstance(address, SchedulerAddress) and address.workers:
        chosen = tuple(one for one in chosen if one.address in address.workers)
        if missing := sorted(address.workers - {one.address for one in chosen}):
            raise EnvironmentUnusable(f"{missing[0]} has left the fleet {address}")
    if not chosen:
        raise EnvironmentUnusable(
            f"the fleet {address} has no workers that send load; `loadstone fleet up` on each "
            "host starts some"
        )
    return chosen


def _hosts(
    client: "Client", address: FleetAddress, clocks: Sequence[HostClock]
) -> tuple[FleetHost, ...]:
    name = f"{socket.gethostname()}, process {os.getpid()}"
    started = [
        start_actor(client, worker, Member, name, clocks[number] if clocks else None)
        for number, worker in enumerate(_chosen(client, address))
    ]
    hosts = []
    for one in started:
        member = one.member()
        try:
            facts: MemberFacts = member.facts().result(timeout=ANSWER_S)
        except Exception as error:
            raise unusable(one.worker, error) from error
        require_version(facts.host, facts.loadstone)
        hosts.append(
            FleetHost(member, facts, f"{facts.host} ({one.worker.address.rpartition('/')[2]})")
        )
    return tuple(hosts)
