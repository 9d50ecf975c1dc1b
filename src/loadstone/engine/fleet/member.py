"""The part of a fleet that runs on each of its hosts: an engine that sends its part of a load."""

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadstone.engine import local
from loadstone.engine.fleet.clock import HostClock
from loadstone.engine.health import Health
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.engine.version import version
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.model import Plan

LEASE_S = 2.0  # without a call for this long the client counts as dead and its load is ended


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """Properties of a host that a client checks before it sends load from there."""

    host: str
    pid: int
    loadstone: str  # its version
    cores: int
    # Two hosts with the same value share their loopback interface.
    network: str


@dataclass(frozen=True, slots=True)
class PartUpdate:
    """State of one part of a load, with what was measured since the last poll."""

    progress: Progress | None  # None: none since the start
    latency_sum_ms: float  # over the iterations that have ended
    rows: Samples | None  # measured since the last poll
    ended: NDArray[np.uint32]  # iterations that have ended since the last poll
    is_over: bool  # the load has ended, and this update has its last rows
    cpu_s: float = 0.0  # user + system CPU of this process since the part was prepared
    failure: str = ""


NONE_ENDED = np.zeros(0, np.uint32)


class Member:
    """An engine on one host, for one client: its load ends when the client's lease expires.

    Runs as a Dask actor. A worker runs one method at a time, so no method waits for the load.
    """

    def __init__(self, client: str, clock: HostClock | None = None) -> None:
        self.client = client
        self.clock = clock or HostClock()
        self._last_call_s = time.monotonic()
        self._part: _LoadPart | None = None
        _reserve(self)

    @property
    def is_held(self) -> bool:
        """Whether the client has made a call within its lease."""
        return time.monotonic() - self._last_call_s < LEASE_S

    def facts(self) -> MemberFacts:
        """Return the properties of this host."""
        cores = len(os.sched_getaffinity(0))
        return MemberFacts(socket.gethostname(), os.getpid(), version(), cores, network())

    def now_ns(self) -> int:
        """Return this host's time and renew the lease."""
        self._last_call_s = time.monotonic()
        return self.clock.now_ns()

    def prepare(self, plan: Plan) -> None:
        """Prepare a part of a load."""
        self.abandon()
        self._part = _LoadPart(plan, lambda: self.is_held)
        self._last_call_s = time.monotonic()  # preparing may have taken long

    def start(self, at_ns: int) -> None:
        """Start the load at an instant of this host's clock."""
        self._current().start(self.clock.real_ns(at_ns))

    def poll(self) -> PartUpdate:
        """Return counts and fresh rows, and renew the lease."""
        self._last_call_s = time.monotonic()
        return self._current().poll()

    def stop(self) -> None:
        """End the schedule; outstanding iterations may still end."""
        self._current().is_stopped = True

    def give_up(self) -> None:
        """Abandon outstanding iterations; `poll` still returns what was measured."""
        self._current().give_up()

    def health(self) -> Health:
        """Return the engine's health; call it once `poll` says that the load is over."""
        self._last_call_s = time.monotonic()
        return self._current().health()

    def abandon(self) -> None:
        """Abandon the current load, if there is one."""
        if self._part is not None:
            self._part.give_up()
            self._part = None

    def release(self) -> None:
        """Abandon the load and let another client use this host."""
        self.abandon()
        _release(self)

    def _current(self) -> "_LoadPart":
        if self._part is None:
            raise AssertionError("nothing is prepared")
        return self._part


def network() -> str:
    """Return an id of the network namespace: equal ids share a loopback interface."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return f"{boot}/{Path('/proc/self/ns/net').stat().st_ino}"


class _LoadPart:
    """One part of a load; a separate thread waits for its end.

    Rows are kept in memory until the client polls, which it does several times a second.
    """

    def __init__(self, plan: Plan, is_held: Callable[[], bool]) -> None:
        self.is_stopped = False
        self._is_held = is_held
        self._lock = threading.Lock()
        self._rows: list[Samples] = []
        self._ended: list[NDArray[np.uint32]] = []
        self._progress: Progress | None = None
        self._latency_sum_ms = 0.0
        self._cpu_before_s = time.process_time()
        self._count = 0  # of iterations that have ended
        self._failure = ""
        self._health: Health | None = None
        self._thread = threading.Thread(target=self._finish, daemon=True)
        self._run = local.prepare_streamed(plan, self._add)

    def start(self, at_ns: int) -> None:
        self._run.start(at_ns)
        self._thread.start()

    def poll(self) -> PartUpdate:
        is_over = not self._thread.is_alive()
        with self._lock:
            rows, ended = self._rows, self._ended
            self._rows, self._ended = [], []
            return PartUpdate(
                self._progress,
                self._latency_sum_ms,
                Samples.joined(rows) if rows else None,
                np.concatenate(ended) if ended else NONE_ENDED,
                is_over,
                time.process_time() - self._cpu_before_s,
                self._failure,
            )

    def health(self) -> Health:
        self._thread.join()
        if self._health is None:
            raise EnvironmentUnusable(self._failure)
        return self._health

    def give_up(self) -> None:
        self._run.__exit__()

    def _finish(self) -> None:
        try:
            self._health = self._run.finish(self._on_progress).health
        except Exception as error:
            self._failure = str(error)

    def _add(self, rows: Samples, ended: NDArray[np.uint32]) -> None:
        with self._lock:
            self._rows.append(rows)
            self._ended.append(ended)

    def _on_progress(self, progress: Progress) -> bool:
        with self._lock:
            count = progress.ok + progress.failed
            self._latency_sum_ms += progress.latency_ms * (count - self._count)
            self._count, self._progress = count, progress
        if not self._is_held():
            self._failure = f"its client was not heard of for {LEASE_S:g} s"
            return False
        return not self.is_stopped


_holder: list[Member] = []  # of this process: at most one member loads at a time
_holder_lock = threading.Lock()


def _reserve(member: Member) -> None:
    with _holder_lock:
        if _holder and _holder[0].is_held:
            raise EnvironmentUnusable(f"another client is at work there ({_holder[0].client})")
        for one in _holder:
            one.abandon()
        _holder[:] = [member]


def _release(member: Member) -> None:
    with _holder_lock:
        if _holder == [member]:
            _holder.clear()
