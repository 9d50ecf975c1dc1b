"""The part of a fleet that runs on a lab host: starts a Keystone there, and watches it."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from loadstone.diagnosis.demand import Setup
from loadstone.engine.fleet.member import network
from loadstone.engine.version import version
from loadstone.errors import EnvironmentUnusable, LoadstoneError
from loadstone.lab import deployment
from loadstone.lab.hashing import FACT, explain
from loadstone.lab.keystone.deployment import Deployment, DeploymentSummary
from loadstone.lab.measurement import measuring
from loadstone.monitor import machine
from loadstone.monitor.metrics import Reading
from loadstone.monitor.roles import Role
from loadstone.monitor.sampler import MOST_FAILURES, Missing
from loadstone.monitor.service import ServiceProcess
from loadstone.monitor.sources.open import open_sources
from loadstone.result.model import OF_LAB_HOST, Measurement
from loadstone.system.say import Say

if TYPE_CHECKING:
    from loadstone.monitor.source import Source

# After this time without contact a client counts as dead, and what it started is ended. Longer
# than a load's lease, because a deployment harms nobody.
LEASE_S = 20.0
POLL_S = 0.5

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LabHostFacts:
    """Address, version and machine of a lab host."""

    host: str
    pid: int
    loadstone: str  # its version
    network: str  # as `MemberFacts.network`
    machine: Pairs

    @property
    def rows(self) -> Pairs:
        """The machine, as rows of a report on a target."""
        return tuple((f"{OF_LAB_HOST}{name}", value) for name, value in self.kind)

    @property
    def kind(self) -> Pairs:
        """The rows that must agree for measurements on two hosts to be comparable."""
        same = {"cores", "processor", "memory", "system", "python"}
        return tuple(one for one in self.machine if one[0] in same)


@dataclass(frozen=True, slots=True)
class RemoteDeployment:
    """A deployment on a lab host, as its client sees it."""

    name: str
    url: str
    facts: Pairs
    setup: Setup
    variables: dict[str, str] = field(repr=False)  # OS_*, with the password
    directory_users: tuple[dict[str, str], ...] = field(default=(), repr=False)
    is_in_rust: bool = False
    sources: tuple[str, ...] = ()  # names of its monitors


@dataclass(frozen=True, slots=True)
class JobProgress:
    """Progress of a long operation."""

    lines: tuple[str, ...]  # new since the last call
    is_over: bool
    failure: LoadstoneError | None = None


class LabHost:
    """Starts and watches deployments on one host, for one client.

    Runs as a Dask actor. A worker runs one method at a time, so long operations run in a thread,
    and `progress` returns their state.
    """

    def __init__(self, client: str, excludes: Literal["others", "none"]) -> None:
        self.client, self.excludes = client, excludes
        self._last_contact_s = time.monotonic()
        self._job: _Job | None = None
        self._owned: str | None = None  # a deployment that ends with the client
        self._measured: Deployment | None = None
        self._sources: list[Source] = []
        self._failures: dict[str, int] = {}  # in a row, by name, of sources that have answered
        self._held = ExitStack()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        _reserve(self)
        threading.Thread(target=self._await_client, daemon=True).start()

    @property
    def is_held(self) -> bool:
        """Whether the client renewed its lease in time."""
        return not self._is_over.is_set() and time.monotonic() - self._last_contact_s < LEASE_S

    def renew(self) -> None:
        """Renew the lease."""
        self._last_contact_s = time.monotonic()

    def facts(self) -> LabHostFacts:
        """Return the facts of this host."""
        return LabHostFacts(
            socket.gethostname(), os.getpid(), version(), network(), machine.facts()
        )

    def start(
        self, name: str, pairs: Pairs, *, owned: bool, purged: bool, usual: Pairs = ()
    ) -> None:
        """Begin to start a deployment; `purged`: remove an earlier one first.

        `usual`: settings of one that neither has them nor is given them.
        """
        self.renew()
        start = partial(self._start, name, pairs, usual, owned=owned, purged=purged)
        self._job = _Job(start)

    def end(self, name: str, *, purge: bool) -> None:
        """Begin to end a deployment."""
        self.renew()
        self._job = _Job(lambda _: self._end(name, purge=purge))

    def progress(self) -> JobProgress:
        """Return the progress of the current operation."""
        self.renew()
        if self._job is None:
            raise AssertionError("nothing was begun")
        return self._job.progress()

    def measure(self, name: str, *, anyway: bool) -> RemoteDeployment:
        """Reserve a running deployment for one measurement, and open its monitors."""
        self.renew()
        running = deployment.find(name)
        self._held.enter_context(measuring(running.folder, running.place, anyway=anyway))
        self._measured = running
        members = partial(_members, name)
        self._sources = list(open_sources(members, running.statistics()))
        self._held.callback(self._close_sources)
        return replace(_snapshot(running), sources=tuple(one.name for one in self._sources))

    def find(self, name: str) -> RemoteDeployment:
        """Return a running deployment."""
        return _snapshot(deployment.find(name))

    def read(self) -> tuple[tuple[Reading, ...], tuple[str, ...]]:
        """Read the monitors; return the readings, and which source cannot be read."""
        self.renew()
        readings: list[Reading] = []
        missing = []
        for source in tuple(self._sources):
            try:
                # This process sends no load.
                found = list(source.read())
                readings += [one for one in found if one.source.partition("/")[0] != Role.GENERATOR]
                self._failures[source.name] = 0
            except Exception as problem:  # a monitor never ends a run
                # Under overload a source that has answered may miss one time-out.
                count = self._failures.get(source.name, MOST_FAILURES) + 1
                if count < MOST_FAILURES:
                    self._failures[source.name] = count
                    continue
                self._sources.remove(source)
                with suppress(Exception):
                    source.close()
                missing.append(str(Missing.of(source, problem)))
        return tuple(readings), tuple(missing)

    def failure(self) -> str | None:
        """Say why the measured deployment is no longer what it was."""
        self.renew()
        return None if self._measured is None else deployment.loss(self._measured)

    def explain(self, measurement: Measurement) -> tuple[str, ...]:
        """Return sentences about the measured deployment for the report."""
        self.renew()
        if self._measured is None:
            return ()
        measured = deployment.load(self._measured.name)
        # How long the hash takes is measured in Python.
        stored = "" if measured.is_in_rust else dict(measured.facts()).get(FACT, "")
        return explain(measured.python, stored, measurement)

    def summaries(self) -> tuple[DeploymentSummary, ...]:
        """Return the rows of all deployments of this host."""
        return tuple(one.summary() for one in deployment.every())

    def release(self) -> None:
        """End what the client owns, and free this host for other clients."""
        with self._lock:
            if self._is_over.is_set():
                return
            self._is_over.set()
            if self._job is not None:
                self._job.wait()  # a start in progress cannot be ended
            self._held.close()
            if self._owned is not None:
                self._end(self._owned, purge=True)
            _release(self)

    def _start(
        self, name: str, pairs: Pairs, usual: Pairs, say: Say, *, owned: bool, purged: bool
    ) -> None:
        if purged and deployment.is_here(name):
            deployment.down(name, purge=True)
        chosen = deployment.requested(name, pairs, usual)
        if owned:
            self._owned = name
        deployment.up(name, chosen, say, owned=owned)

    def _end(self, name: str, *, purge: bool) -> None:
        if deployment.is_here(name):
            deployment.down(name, purge=purge)
        if self._owned == name:
            self._owned = None

    def _close_sources(self) -> None:
        for source in self._sources:
            source.close()
        self._sources = []

    def _await_client(self) -> None:
        """Release the host when the client's lease has expired."""
        while not self._is_over.wait(POLL_S):
            is_busy = self._job is not None and not self._job.is_over
            if not self.is_held and not is_busy:
                self.release()


class _Job:
    """A long operation in a thread."""

    def __init__(self, work: Callable[[Say], object]) -> None:
        self._lines: list[str] = []
        self._sent_lines = 0  # how many of the lines `progress` has returned
        self._failure: LoadstoneError | None = None
        self._thread = threading.Thread(target=self._carry_out, args=(work,), daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> None:
        self._thread.join()

    def progress(self) -> JobProgress:
        is_over = self.is_over
        lines = tuple(self._lines[self._sent_lines :])
        self._sent_lines += len(lines)
        return JobProgress(lines, is_over, self._failure)

    def _say(self, line: str) -> None:
        self._lines.append(line)

    def _carry_out(self, work: Callable[[Say], object]) -> None:
        try:
            work(self._say)
        except LoadstoneError as failed:
            self._failure = failed
        except Exception as failed:
            self._failure = EnvironmentUnusable(f"{type(failed).__name__}: {failed}")


def _snapshot(running: Deployment) -> RemoteDeployment:
    return RemoteDeployment(
        running.name,
        running.url,
        running.facts(),
        running.setup(),
        running.environment_variables(),
        running.directory_users(),
        running.is_in_rust,
    )


def _members(name: str) -> Iterable[ServiceProcess]:
    # Read each time: parts may have been restarted.
    return deployment.load(name).members()


_holders: list[LabHost] = []  # of this process: at most one client measures here at a time
_holder_lock = threading.Lock()


def _reserve(host: LabHost) -> None:
    with _holder_lock:
        if host.excludes == "none":
            return
        _holders[:] = [one for one in _holders if one.is_held]
        for other in _holders:
            if other.client != host.client:  # one client may compare two deployments
                raise EnvironmentUnusable(f"another client is at work there ({other.client})")
        _holders.append(host)


def _release(host: LabHost) -> None:
    with _holder_lock:
        if host in _holders:
            _holders.remove(host)
