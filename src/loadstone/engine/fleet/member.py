"""The part of a fleet that runs on each of its hosts: an engine that sends its part of a load."""

import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadstone.engine import local
from loadstone.engine.fleet.clock import SkewedClock
from loadstone.engine.health import Health
from loadstone.engine.local import LoadResult, PreparedRun, Spilled
from loadstone.engine.parquet import read
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.engine.version import version
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.model import Plan

LEASE_S = 2.0  # a client that was not heard of for so long is taken for dead, and its load is ended


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a client must know of a host before it loads from there."""

    host: str
    pid: int
    loadstone: str  # its version
    cores: int
    # Two hosts with the same value share their loopback interface.
    network: str


@dataclass(frozen=True, slots=True)
class Glance:
    """A look at one part of a load."""

    progress: Progress | None  # None: it has not been looked at since the start
    latency_sum_ms: float  # over the iterations that have ended
    rows: Samples | None  # of the iterations that have ended since the last look
    is_over: bool
    failure: str = ""


class Member:
    """An engine on one host, for one client: it loads as long as that client is heard of.

    Runs as a Dask actor. A worker carries out one method at a time, so none waits for the load.
    """

    def __init__(self, client: str, clock: SkewedClock | None = None) -> None:
        self.client = client
        self.clock = clock or SkewedClock()
        self._heard_s = time.monotonic()
        self._part: _Part | None = None
        _reserve(self)

    @property
    def is_held(self) -> bool:
        """Whether the client was heard of within its lease."""
        return time.monotonic() - self._heard_s < LEASE_S

    def facts(self) -> HostFacts:
        """Return what is known of this host."""
        cores = len(os.sched_getaffinity(0))
        return HostFacts(socket.gethostname(), os.getpid(), version(), cores, network())

    def now_ns(self) -> int:
        """Return this host's time and renew the lease."""
        self._heard_s = time.monotonic()
        return self.clock.now_ns()

    def prepare(self, plan: Plan, *, shown: bool) -> None:
        """Prepare a part of a load; with `shown`, rows are given as iterations end."""
        self.abandon()
        self._part = _Part.prepared(plan, shown=shown, is_held=lambda: self.is_held)
        self._heard_s = time.monotonic()  # preparing may have taken long

    def start(self, at_ns: int) -> None:
        """Start the load at an instant of this host's clock."""
        self._present().start(self.clock.real_ns(at_ns))

    def look(self) -> Glance:
        """Return the counts so far and renew the lease."""
        self._heard_s = time.monotonic()
        return self._present().look()

    def stop(self) -> None:
        """End the schedule; what is outstanding may still end."""
        self._present().is_stopped = True

    def give_up(self) -> None:
        """Give up what is outstanding; what was measured can be collected."""
        self._present().give_up()

    def collect(self) -> tuple[Samples, Health]:
        """Return what was measured, once `look` says that the load is over."""
        self._heard_s = time.monotonic()
        return self._present().collect()

    def abandon(self) -> None:
        """Give up the present load, if there is one."""
        if self._part is not None:
            self._part.abandon()
            self._part = None

    def release(self) -> None:
        """Give up the load and let another client use this host."""
        self.abandon()
        _release(self)

    def _present(self) -> "_Part":
        if self._part is None:
            raise AssertionError("nothing is prepared")
        return self._part


def network() -> str:
    """Return what tells apart the loopback interfaces of hosts and network namespaces."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return f"{boot}/{Path('/proc/self/ns/net').stat().st_ino}"


class _Part:
    """One part of a load; a thread of its own waits for its end."""

    def __init__(self, run: "PreparedRun[LoadResult] | PreparedRun[Spilled]") -> None:
        self.is_stopped = False
        self._run = run
        self._is_held: Callable[[], bool] = lambda: True
        self._folder: Path | None = None
        self._lock = threading.Lock()
        self._rows: list[Samples] = []
        self._progress: Progress | None = None
        self._latency_sum_ms = 0.0
        self._ended = 0
        self._failure = ""
        self._thread = threading.Thread(target=self._finish, daemon=True)
        self._result: tuple[Samples, Health] | None = None

    @classmethod
    def prepared(cls, plan: Plan, *, shown: bool, is_held: Callable[[], bool]) -> "_Part":
        """Prepare the engine; samples go to a file only where rows are shown."""
        if not shown:
            part = cls(local.prepare(plan))
        else:
            folder = Path(tempfile.mkdtemp(prefix="loadstone-"))
            shown_rows: list[Samples] = []
            part = cls(local.prepare_to_file(plan, folder / "samples.parquet", shown_rows.append))
            part._folder, part._rows = folder, shown_rows
        part._is_held = is_held
        return part

    def start(self, at_ns: int) -> None:
        self._run.start(at_ns)
        self._thread.start()

    def look(self) -> Glance:
        is_over = not self._thread.is_alive()
        with self._lock:
            rows = [self._rows.pop(0) for _ in range(len(self._rows))]
            return Glance(
                self._progress,
                self._latency_sum_ms,
                Samples.joined(rows) if rows else None,
                is_over,
                self._failure,
            )

    def collect(self) -> tuple[Samples, Health]:
        self._thread.join()
        if self._result is None:
            raise EnvironmentUnusable(self._failure)
        self._clean()
        return self._result

    def give_up(self) -> None:
        self._run.__exit__()

    def abandon(self) -> None:
        self.give_up()
        self._clean()

    def _clean(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _finish(self) -> None:
        try:
            done = self._run.finish(self._watch)
            samples = done.samples if isinstance(done, LoadResult) else read(done.file.path)
            self._result = samples, done.health
        except Exception as error:
            self._failure = str(error)

    def _watch(self, progress: Progress) -> bool:
        with self._lock:
            ended = progress.ok + progress.failed
            self._latency_sum_ms += progress.latency_ms * (ended - self._ended)
            self._ended, self._progress = ended, progress
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
