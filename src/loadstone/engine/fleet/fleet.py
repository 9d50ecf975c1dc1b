"""One load from several hosts.

Part p of k sends exactly its iterations of one schedule (`Placement.part`). All parts start at one
instant, which is converted to the clock of each host. A host that cannot start in time, does not
answer, or whose clock was set makes the trial invalid and is named; the load is never silently
smaller.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from loadstone.cloud.permission import is_loopback
from loadstone.engine.fleet import clock
from loadstone.engine.fleet.clock import ClockReading
from loadstone.engine.fleet.member import LEASE_S, NONE_ENDED, MemberFacts, PartUpdate, network
from loadstone.engine.fleet.remote import RemoteAnswer, RemoteMember
from loadstone.engine.health import Health, PartHealth
from loadstone.engine.iteration_buffer import IterationBuffer
from loadstone.engine.limits import merged
from loadstone.engine.local import LoadResult, Spilled
from loadstone.engine.parquet import GrowingFile
from loadstone.engine.progress import HostProgress, OnProgress, Progress, added
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput, LoadstoneError
from loadstone.plan.load import BandLoad, ClosedLoad, Load
from loadstone.plan.model import Plan
from loadstone.system.clock import SYSTEM, Clock
from loadstone.system.interrupts import Interrupts

TICK_S = 0.2  # interval of polling the parts
ANSWER_S = LEASE_S  # a host that does not answer within this time counts as lost
PREPARE_S = 60.0
SCHEDULER_S = 0.5  # within which the loss of a scheduler is noticed
LEAD_S = 0.15  # from the call of `start` to the start of the load, besides the way to the hosts
ROUNDS = 5  # round trips per clock reading
CLOCKS_AT_ONCE = 8  # more waiting threads make the readings worse


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    """The answer of a worker that is gone: raises the reason."""

    why: Exception

    def result(self, timeout: float | None = None) -> Any:  # noqa: ARG002 (nothing is waited for)
        raise self.why


@dataclass(slots=True)
class FleetHost:
    """A host of the fleet; `lost` says why it can no longer send load."""

    member: RemoteMember
    facts: MemberFacts
    name: str
    lost: str = ""

    def call(self, method: str, *arguments: object) -> RemoteAnswer:
        """Call a method of the member; errors are raised by the answer's `result`."""
        try:
            answer: RemoteAnswer = getattr(self.member, method)(*arguments)
            return answer
        except RuntimeError as error:  # Dask's, of an actor whose worker is gone
            return _NoAnswer(error)


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A host as `fleet status` shows it."""

    name: str
    loadstone: str  # its version
    cores: int
    clock_offset_ms: float  # its clock minus ours
    clock_error_ms: float


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """A fleet as `fleet status` shows it."""

    hosts: tuple[HostStatus, ...]  # that send load
    lab_hosts: tuple[str, ...]  # addresses
    watch_hosts: tuple[str, ...]  # addresses


NO_UPDATE = PartUpdate(None, 0.0, None, NONE_ENDED, is_over=False)
# Health of a load whose hosts were all lost.
NO_HEALTH = Health(0.0, 0.0, 0.0, cpu_s=0.0, wall_s=0.0, runqueue_wait_s=0.0, threads=0)


@dataclass(slots=True)
class _SentPart:
    """The part of the current load that one host sends."""

    number: int
    host: FleetHost
    before: ClockReading
    update: PartUpdate = NO_UPDATE
    buffer: IterationBuffer = field(default_factory=IterationBuffer)


@dataclass(frozen=True, slots=True)
class _Receiver:
    """Callbacks for rows and progress during the load."""

    keep: Callable[[Samples], None]
    on_progress: OnProgress | None
    on_samples: Callable[[Samples], None] | None = None


@dataclass(slots=True)
class Fleet:
    """Sends each load from all hosts; `run` and `run_to_file` work as in `engine.local`."""

    hosts: tuple[FleetHost, ...]
    has_scheduler: Callable[[], bool] = lambda: True
    lab_hosts: tuple[str, ...] = ()  # addresses of hosts that start Keystones, and send nothing
    watch_hosts: tuple[str, ...] = ()  # addresses of hosts that are only watched
    clock: Clock = SYSTEM

    def run(self, plan: Plan, on_progress: OnProgress | None = None) -> LoadResult:
        """Run a plan from all hosts to its end, or until `on_progress` or Ctrl-C stops it."""
        tables: list[Samples] = []
        health, is_interrupted = self._send(plan, _Receiver(tables.append, on_progress))
        if not tables:
            self._require_all()
        return LoadResult(Samples.joined(tables).by_completion(), health, is_interrupted)

    def run_to_file(
        self,
        plan: Plan,
        path: Path,
        on_progress: OnProgress | None = None,
        on_samples: Callable[[Samples], None] | None = None,
    ) -> Spilled:
        """Run a plan as `run` does; samples go to a file as they arrive."""
        file = GrowingFile(path)
        try:
            health, is_interrupted = self._send(plan, _Receiver(file.add, on_progress, on_samples))
        except BaseException:
            file.break_off()
            raise
        return Spilled(file.finish(), health, is_interrupted)

    def failure(self) -> str | None:
        """Return which hosts were lost and why; None if all are available."""
        lost = [f"{host.name} of the fleet {host.lost}" for host in self.hosts if host.lost]
        return "; ".join(lost) or None

    def status(self) -> FleetStatus:
        """Return versions, cores and clock offsets of all hosts."""
        found = zip(self.hosts, self._clocks(self.hosts), strict=True)
        hosts = tuple(_status(host, reading) for host, reading in found)
        return FleetStatus(hosts, self.lab_hosts, self.watch_hosts)

    def _clocks(self, hosts: Sequence[FleetHost]) -> list[ClockReading]:
        """Read the clocks of several hosts in parallel: round trips take most of the time."""
        with ThreadPoolExecutor(CLOCKS_AT_ONCE) as pool:
            return list(pool.map(self._clock, hosts))

    def require_reach(self, host: str, port: int) -> None:
        """Refuse a loopback target if a host of the fleet has another loopback interface."""
        if not is_loopback(host, port):
            return
        here = network()
        for one in self.hosts:
            if one.facts.network != here:
                raise InvalidInput(
                    f"{host} is this machine's loopback address, and {one.name} has its own; "
                    "give the target an address that all hosts of the fleet reach"
                )

    def _send(self, plan: Plan, receiver: _Receiver) -> tuple[Health, bool]:
        self._require_all()
        self.require_reach(plan.origin.host, plan.origin.port)
        most = most_parts(plan.load, len(self.hosts), plan.limits.max_connections)
        hosts = self.hosts[:most]
        try:
            parts = self._prepare(plan, hosts)
            # Count Ctrl-C, because a KeyboardInterrupt inside a call of Dask could be lost.
            with Interrupts() as interrupts:
                self._start(parts)
                self._watch(parts, receiver, interrupts)
                return self._health(plan, parts), interrupts.count > 0
        finally:
            for host in hosts:
                if not host.lost:
                    host.call("abandon")

    def _require_all(self) -> None:
        if why := self.failure():
            raise EnvironmentUnusable(why)

    def _prepare(self, plan: Plan, hosts: Sequence[FleetHost]) -> list[_SentPart]:
        # Detect a hanging host first, because `prepare` may take long.
        for host, answer in [(host, host.call("now_ns")) for host in hosts]:
            self._get(host, answer, ANSWER_S)
        count = len(hosts)
        answers = [
            host.call("prepare", _part_of(plan, number, count)) for number, host in enumerate(hosts)
        ]
        for host, answer in zip(hosts, answers, strict=True):
            self._get(host, answer, PREPARE_S)
        clocks = self._clocks(hosts)
        return [_SentPart(number, host, clocks[number]) for number, host in enumerate(hosts)]

    def _start(self, parts: Sequence[_SentPart]) -> None:
        at_ns = time.time_ns() + lead_ns([part.before for part in parts])
        answers = [part.host.call("start", at_ns + part.before.offset_ns) for part in parts]
        for part, answer in zip(parts, answers, strict=True):
            self._get(part.host, answer, ANSWER_S)

    def _watch(
        self,
        parts: Sequence[_SentPart],
        receiver: _Receiver,
        interrupts: Interrupts,
    ) -> None:
        """Poll all parts until they end; the first Ctrl-C stops them, the second abandons them."""
        sums = _Sums()
        handled = 0
        while True:
            time.sleep(TICK_S)
            if interrupts.count > handled:
                handled = interrupts.count
                self._call_all(parts, "stop" if handled == 1 else "give_up")
            self._poll(parts, receiver)
            going = [part for part in parts if not (part.host.lost or part.update.is_over)]
            if not going:
                return
            if any(part.host.lost for part in parts):
                self._call_all(going, "stop")
            progress = sums.progress(parts)
            on_progress = receiver.on_progress
            if on_progress is not None and progress is not None and not on_progress(progress):
                self._call_all(going, "stop")

    def _poll(self, parts: Sequence[_SentPart], receiver: _Receiver) -> None:
        answers = [
            (part, part.host.call("poll"))
            for part in parts
            if not (part.host.lost or part.update.is_over)
        ]
        until_s = time.monotonic() + ANSWER_S
        ended = []
        for part, answer in answers:
            try:
                part.update = answer.result(timeout=max(0.01, until_s - time.monotonic()))
            except Exception as error:
                part.host.lost = f"was lost under load: {self._reason(error, ANSWER_S)}"
                continue
            if part.update.failure:
                part.host.lost = f"ended its part of the load: {part.update.failure}"
            if (rows := part.update.rows) is not None:
                receiver.keep(rows)
                if receiver.on_samples is not None:
                    ended.append(part.buffer.add(rows, part.update.ended))
        if receiver.on_samples is not None and ended:
            receiver.on_samples(Samples.joined(ended))

    def _call_all(self, parts: Sequence[_SentPart], method: str) -> None:
        for part in parts:
            if not part.host.lost:
                part.host.call(method)

    def _health(self, plan: Plan, parts: Sequence[_SentPart]) -> Health:
        """Return the merged health of all engines, with failed hosts and clocks as limits."""
        answers = [(part, part.host.call("health")) for part in parts if not part.host.lost]
        found: list[tuple[_SentPart, Health]] = []
        for part, answer in answers:
            try:
                found.append((part, answer.result(timeout=PREPARE_S)))
            except Exception as error:
                why = self._reason(error, PREPARE_S)
                part.host.lost = f"was lost at the end of the load: {why}"
        with ThreadPoolExecutor(CLOCKS_AT_ONCE) as pool:
            kept = list(pool.map(lambda one: self._part_health(*one), found))
        limits = [f"{part.host.name} {part.host.lost}" for part in parts if part.host.lost]
        limits += [limit for _, jump in kept for limit in jump]
        health = NO_HEALTH
        if found:
            health = merged(
                [health for _, health in found],
                plan.load,
                plan.limits.max_rate_rps,
                [part.host.name for part, _ in found],
                _cores([part.host.facts for part, _ in found], len(plan.placement.cores)),
            )
        return replace(
            health,
            limits=(*limits, *health.limits),
            parts=tuple(one for one, _ in kept),
        )

    def _part_health(self, part: _SentPart, health: Health) -> tuple[PartHealth, list[str]]:
        """Return the stored figures of a part, and why its clock makes the trial invalid."""
        try:
            after = self._clock(part.host)
        except EnvironmentUnusable:
            after, jump_ns = part.before, 0  # the host is lost, which is reported already
        else:
            jump_ns = part.before.jump_ns(after)
        part_health = PartHealth(
            part.host.name,
            part.before.offset_ns / 1e6,
            max(part.before.error_ns, after.error_ns) / 1e6,
            health.lag_p99_ms,
            health.cpu_s,
            part.number,
        )
        why = f"the clock of {part.host.name} was set by {jump_ns / 1e9:+.3f} s under load"
        return part_health, [why] if jump_ns else []

    def _reason(self, error: Exception, timeout_s: float) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {timeout_s:g} s"
        # Workers end with their scheduler, and their loss may be noticed first.
        until_s = time.monotonic() + SCHEDULER_S
        while time.monotonic() < until_s:
            if not self.has_scheduler():
                return "the scheduler of the fleet ended or was cut off"
            time.sleep(SCHEDULER_S / 10)
        if isinstance(error, OSError | RuntimeError):  # Dask's, of a worker that is gone
            return "its worker process ended"
        return str(error) or type(error).__name__

    def _clock(self, host: FleetHost) -> ClockReading:
        return clock.read(lambda: int(self._get(host, host.call("now_ns"), ANSWER_S)), ROUNDS)

    def _get(self, host: FleetHost, answer: RemoteAnswer, timeout_s: float) -> Any:
        """Return a host's answer; errors name the host, and without an answer it is lost."""
        try:
            return answer.result(timeout=timeout_s)
        except LoadstoneError as error:
            raise type(error)(f"{host.name}: {error}") from None
        except Exception as error:
            host.lost = f"was lost: {self._reason(error, timeout_s)}"
            raise EnvironmentUnusable(f"{host.name} of the fleet {host.lost}") from error


def lead_ns(clocks: Sequence[ClockReading]) -> int:
    """Return the time from the call of `start` to the start, of hosts with these clocks.

    The error of a reading is half a round trip; the lead holds a whole one to the farthest host.
    """
    return round(LEAD_S * 1e9) + 2 * max(one.error_ns for one in clocks)


def _cores(hosts: Sequence[MemberFacts], pinned: int) -> int:
    """Return the cores of all machines; several hosts of a fleet may be on one of them."""
    machines = {one.network: min(one.cores, pinned or one.cores) for one in hosts}
    return sum(machines.values())


def _part_of(plan: Plan, part: int, parts: int) -> Plan:
    """Return one host's part of a plan; it has no more connections than values of a chain."""
    placement, limits = replace(plan.placement, part=part, parts=parts), plan.limits
    if not isinstance(plan.load, ClosedLoad):  # each of its workers needs one
        own = len(range(part, limits.max_connections, parts))
        limits = replace(limits, max_connections=own)
        placement = replace(placement, threads=min(placement.threads, own))
    return replace(plan, limits=limits, placement=placement)


def _status(host: FleetHost, reading: ClockReading) -> HostStatus:
    facts = host.facts
    offset_ms, error_ms = reading.offset_ns / 1e6, reading.error_ns / 1e6
    return HostStatus(host.name, facts.loadstone, facts.cores, offset_ms, error_ms)


@dataclass(slots=True)
class _Sums:
    """Sums the counts of all parts."""

    ended: int = 0
    latency_sum_ms: float = 0.0

    def progress(self, parts: Sequence[_SentPart]) -> Progress | None:
        """Return the progress of the whole load; None before any part reports progress."""
        each = [one.update.progress for one in parts if one.update.progress is not None]
        if not each:
            return None
        ok, failed = sum(one.ok for one in each), sum(one.failed for one in each)
        latency_sum_ms = sum(one.update.latency_sum_ms for one in parts)
        fresh, fresh_ms = ok + failed - self.ended, latency_sum_ms - self.latency_sum_ms
        self.ended, self.latency_sum_ms = ok + failed, latency_sum_ms
        return Progress(
            elapsed_s=max(one.elapsed_s for one in each),
            due=sum(one.due for one in each),
            sent=sum(one.sent for one in each),
            ok=ok,
            failed=failed,
            latency_ms=fresh_ms / fresh if fresh else 0.0,
            latencies=reduce(added, (one.latencies for one in each)),
            lag_p99_ms=max(one.lag_p99_ms or 0.0 for one in each),
            hosts=tuple(map(_host_progress, parts)),
            cut_off=sum(one.cut_off for one in each),
        )


def _host_progress(part: _SentPart) -> HostProgress:
    name, lost, progress = part.host.name, part.host.lost, part.update.progress
    if progress is None:
        return HostProgress(name, lost=lost)
    return HostProgress(
        name,
        progress.due,
        progress.ok,
        progress.failed,
        part.update.cpu_s,
        progress.lag_p99_ms,
        lost,
        progress.cut_off,
    )


def most_parts(load: Load, hosts: int, connections: int) -> int:
    """Return the number of hosts that a load is divided among; each has a connection at least.

    A band holds one total number in flight, which cannot be divided: one host sends it.
    """
    match load:
        case BandLoad():
            return 1
        case ClosedLoad(workers=workers):
            return min(hosts, workers)
        case _:
            return min(hosts, connections)
