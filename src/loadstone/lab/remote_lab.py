"""Client of the lab hosts of a fleet: starts and measures their deployments."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from loadstone.engine.fleet import client
from loadstone.engine.fleet.address import FleetAddress, read
from loadstone.engine.fleet.client import FleetWorker
from loadstone.engine.fleet.hosts_file import LAB, SshFleet
from loadstone.engine.fleet.remote import RemoteMember
from loadstone.errors import EnvironmentUnusable, InvalidInput, LoadstoneError
from loadstone.lab.deployment import elsewhere
from loadstone.lab.lab_host import LEASE_S, LabHost, LabHostFacts, Pairs, RemoteDeployment
from loadstone.monitor.metrics import Reading
from loadstone.system import files
from loadstone.system.say import Say

if TYPE_CHECKING:
    from distributed import Client

    from loadstone.lab.keystone.deployment import DeploymentSummary
    from loadstone.result.model import Measurement


ANSWER_S = 10.0
EXPLAIN_S = 60.0
POLL_S = 0.3
RELEASE_S = 120.0  # a start in progress completes first
RENEW_S = LEASE_S / 8
NOTHING_THERE = "the fleet {fleet} has no lab hosts; `loadstone fleet up --role lab` makes one"


@dataclass(frozen=True, slots=True)
class LabPlace:
    """A lab host of a fleet: the name or address of a host that has a worker with role `lab`."""

    fleet: FleetAddress
    host: str

    def __str__(self) -> str:
        return self.host


@dataclass(slots=True)
class ConnectedHost:
    """A lab host that this program talks to; others cannot use it meanwhile if `is_alone`."""

    name: str
    address: str  # of its Keystones
    member: RemoteMember
    facts: LabHostFacts
    lost: str = ""

    def call(self, method: str, *arguments: Any, timeout_s: float = ANSWER_S, **named: Any) -> Any:
        """Call a method of the actor; errors and time-outs name the host."""
        if self.lost:
            raise EnvironmentUnusable(self.lost)
        try:
            return getattr(self.member, method)(*arguments, **named).result(timeout=timeout_s)
        except LoadstoneError as refused:
            raise type(refused)(f"{self.name}: {refused}") from None
        except Exception as error:
            is_late = isinstance(error, TimeoutError)
            why = f"no answer within {timeout_s:g} s" if is_late else "its worker is gone"
            self.lost = f"lab host {self.name} was lost: {why}"
            raise EnvironmentUnusable(self.lost) from error

    def carry_out(self, say: Say, method: str, *arguments: Any, **named: Any) -> None:
        """Run a long operation to its end, and print its progress."""
        self.call(method, *arguments, **named)
        while True:
            progress = self.call("progress")
            for line in progress.lines:
                say(f"{self.name}: {line}")
            if progress.failure is not None:
                raise type(progress.failure)(f"{self.name}: {progress.failure}")
            if progress.is_over:
                return
            time.sleep(POLL_S)

    def up(self, name: str, pairs: Pairs, say: Say, *, owned: bool, purged: bool) -> None:
        """Start a deployment that the other hosts of the fleet can reach."""
        usual = (("address", self.address),)
        self.carry_out(say, "start", name, pairs, owned=owned, purged=purged, usual=usual)

    def down(self, name: str, say: Say, *, purge: bool) -> None:
        """End a deployment."""
        self.carry_out(say, "end", name, purge=purge)

    def measure(self, name: str, *, anyway: bool = False) -> RemoteDeployment:
        """Reserve a deployment for a measurement."""
        deployment: RemoteDeployment = self.call("measure", name, anyway=anyway)
        return deployment

    def find(self, name: str) -> RemoteDeployment:
        """Return a running deployment."""
        deployment: RemoteDeployment = self.call("find", name)
        return deployment

    def failure(self) -> str | None:
        """Describe a part of the measured deployment that died, or say that the host is lost."""
        try:
            why = self.call("failure")
        except EnvironmentUnusable as lost:
            return str(lost)
        return None if why is None else f"{self.name}: {why}"

    def explain(self, measurement: "Measurement") -> tuple[str, ...]:
        """Return sentences about the deployment for the report."""
        try:
            sentences: tuple[str, ...] = self.call("explain", measurement, timeout_s=EXPLAIN_S)
        except EnvironmentUnusable:  # the measurement is complete without them
            return ()
        return sentences

    def summaries(self) -> "tuple[DeploymentSummary, ...]":
        """Return the rows of the host's deployments."""
        rows: tuple[DeploymentSummary, ...] = self.call("summaries")
        return rows


@dataclass(slots=True)
class HostSource:
    """The monitors of a lab host, read on that host."""

    host: ConnectedHost
    say: Say
    is_remote: ClassVar[bool] = False  # a trial is read at its begin and its end, too

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"lab host {self.host.name}"

    def read(self) -> tuple[Reading, ...]:
        """Return the host's readings."""
        readings: tuple[Reading, ...]
        readings, missing = self.host.call("read")
        for line in missing:
            self.say(f"{self.host.name}: {line}")
        return readings

    def close(self) -> None:
        """Do nothing: the sources are open on the host."""


@contextmanager
def connected(place: LabPlace, *, is_alone: bool) -> Iterator[ConnectedHost]:
    """Connect to a lab host; raise EnvironmentUnusable if it is missing or in use."""
    with client.opened(_alone(place)) as dask:
        worker = _worker(dask, place)
        name = f"{socket.gethostname()}, process {os.getpid()}"
        started = client.start_actor(dask, worker, LabHost, name, "others" if is_alone else "none")
        member = started.member()
        try:
            facts: LabHostFacts = member.facts().result(timeout=ANSWER_S)
        except Exception as error:
            raise client.unusable(worker, error) from error
        client.require_version(place.host, facts.loadstone)
        host = ConnectedHost(place.host, worker.host, member, facts)
        over = threading.Event()
        renewing = threading.Thread(target=_renew, args=(host, over), daemon=True)
        renewing.start()
        try:
            yield host
        finally:
            over.set()
            renewing.join()
            if not host.lost:
                with suppress(LoadstoneError):
                    host.call("release", timeout_s=RELEASE_S)


def _renew(host: ConnectedHost, over: threading.Event) -> None:
    while not over.wait(RENEW_S):
        with suppress(LoadstoneError):
            host.call("renew")


def _worker(dask: "Client", place: LabPlace) -> FleetWorker:
    hosts = client.lab_hosts(dask)
    if not hosts:
        raise EnvironmentUnusable(NOTHING_THERE.format(fleet=place.fleet))
    names = ", ".join(one.host for one in hosts)
    matches = [one for one in hosts if place.host in (one.host, _ssh_name(one), _host_name(one))]
    if not matches:
        raise InvalidInput(
            f"no lab host {place.host!r} in the fleet {place.fleet}; choose from {names}"
        )
    if len(matches) > 1:
        raise InvalidInput(f"{place.host!r} names several lab hosts; give its address: {names}")
    return matches[0]


def _ssh_name(worker: FleetWorker) -> str:
    """Return the host's name in the file of hosts: `host_process` appends a number."""
    return worker.name.rpartition("-")[0]


def _host_name(worker: FleetWorker) -> str:
    """Return the host's own name: `fleet up` appends a number and a random word."""
    return worker.name.rsplit("-", 2)[0]


def _alone(place: LabPlace) -> FleetAddress:
    """Return the fleet; a fleet over ssh is reduced to the place's host."""
    fleet = place.fleet
    if not isinstance(fleet, SshFleet):
        return fleet
    matches = tuple(one for one in fleet.hosts if one.role == LAB and one.name == place.host)
    if not matches:
        names = ", ".join(one.name for one in fleet.hosts if one.role == LAB)
        raise InvalidInput(
            f"{fleet}: no host {place.host!r} with role: lab; "
            + (f"choose from {names}" if names else "it has none")
        )
    return replace(fleet, hosts=matches)


@dataclass(frozen=True, slots=True)
class RemoteRecord:
    """A deployment that `lab up NAME --on HOST` has started, as this machine remembers it."""

    name: str
    host: str
    fleet: str
    certificates: str | None
    without_tls: bool

    @property
    def place(self) -> LabPlace:
        """The host."""
        folder = None if self.certificates is None else Path(self.certificates)
        return LabPlace(read(self.fleet, folder, without_tls=self.without_tls), self.host)


def keep(record: RemoteRecord) -> None:
    """Remember a deployment on another host."""
    elsewhere().mkdir(mode=0o700, parents=True, exist_ok=True)
    files.write(elsewhere() / f"{record.name}.json", json.dumps(asdict(record)), files.PRIVATE)


def forget(name: str) -> None:
    """Forget a deployment on another host."""
    (elsewhere() / f"{name}.json").unlink(missing_ok=True)


def recorded(name: str) -> RemoteRecord | None:
    """Return a deployment on another host by its name."""
    path = elsewhere() / f"{name}.json"
    try:
        return RemoteRecord(**json.loads(path.read_text("utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:  # of root after `sudo loadstone`
        raise EnvironmentUnusable(f"{path} cannot be read ({problem.strerror})") from None
    except (ValueError, TypeError):
        raise EnvironmentUnusable(
            f"{path} cannot be read; remove it, and end the lab on its host"
        ) from None


def every(say: Say) -> tuple[RemoteRecord, ...]:
    """Return all deployments on other hosts that this machine remembers; report unreadable ones."""
    found = []
    for path in sorted(elsewhere().glob("*.json")):
        try:
            found.append(recorded(path.stem))
        except EnvironmentUnusable as unreadable:
            say(str(unreadable))
    return tuple(one for one in found if one is not None)
