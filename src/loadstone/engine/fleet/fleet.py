"""One load from several hosts.

Part p of k sends exactly its iterations of one schedule (`Placement.part`). All parts start at one
instant, which each host is told in the time of its own clock. A host that cannot start in time, is
not heard of, or whose clock was set makes the trial invalid and is named; the load is never
silently smaller.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loadstone.engine.ending import Ending
from loadstone.engine.fleet import clock
from loadstone.engine.fleet.clock import ClockReading
from loadstone.engine.fleet.member import LEASE_S, NONE_ENDED, Glance, MemberFacts, network
from loadstone.engine.fleet.remote import RemoteAnswer, RemoteMember
from loadstone.engine.health import Health, PartHealth
from loadstone.engine.limits import merged
from loadstone.engine.local import LoadResult, Spilled
from loadstone.engine.parquet import GrowingFile
from loadstone.engine.progress import Progress, Watch
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput, LoadstoneError
from loadstone.interrupts import Interrupts
from loadstone.plan.load import BandLoad, ClosedLoad, Load
from loadstone.plan.model import Plan
from loadstone.target.permission import is_loopback

TICK_S = 0.2  # how often the parts are looked at
ANSWER_S = LEASE_S  # a host that does not answer for so long is taken for lost
PREPARE_S = 60.0
SCHEDULER_S = 0.5  # in which the loss of a scheduler is noticed
LEAD_S = 0.15  # from the order to start to the first instant
ROUNDS = 5  # round trips in a reading of a clock
CLOCKS_AT_ONCE = 8  # more, and the threads that wait for them make the readings worse


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    """The answer of a worker that is known to be gone."""

    why: Exception

    def result(self, timeout: float | None = None) -> Any:  # noqa: ARG002 (nothing is waited for)
        raise self.why


@dataclass(slots=True)
class FleetHost:
    """A host of the fleet; `lost` says why it can send no more."""

    member: RemoteMember
    facts: MemberFacts
    name: str
    lost: str = ""

    def ask(self, method: str, *arguments: object, **named: object) -> RemoteAnswer:
        """Call a method of the member; the answer raises what went wrong."""
        try:
            answer: RemoteAnswer = getattr(self.member, method)(*arguments, **named)
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


NOTHING_SEEN = Glance(None, 0.0, None, NONE_ENDED, is_over=False)
# Of a load whose hosts were all lost.
NOTHING_TOLD = Health(0.0, 0.0, 0.0, cpu_s=0.0, wall_s=0.0, runqueue_wait_s=0.0, threads=0)


@dataclass(slots=True)
class _SentPart:
    """What one host sends of the present load."""

    number: int
    host: FleetHost
    before: ClockReading
    glance: Glance = NOTHING_SEEN
    ending: Ending = field(default_factory=Ending)


@dataclass(frozen=True, slots=True)
class _Receiver:
    """Who gets what the parts measure, while the load goes on."""

    keep: Callable[[Samples], None]
    watch: Watch | None
    look: Callable[[Samples], None] | None = None


@dataclass(slots=True)
class Fleet:
    """Sends each load from all hosts. `run` and `run_to_file` are those of `engine.local`."""

    hosts: tuple[FleetHost, ...]
    has_scheduler: Callable[[], bool] = lambda: True
    lab_hosts: tuple[str, ...] = ()  # addresses of hosts that start Keystones, and send nothing
    watch_hosts: tuple[str, ...] = ()  # addresses of hosts that are only watched

    def run(self, plan: Plan, watch: Watch | None = None) -> LoadResult:
        """Send what the plan says from all hosts, until its end, `watch` or Ctrl-C stops it."""
        tables: list[Samples] = []
        health, is_interrupted = self._send(plan, _Receiver(tables.append, watch))
        if not tables:
            self._require_all()
        return LoadResult(Samples.joined(tables).by_completion(), health, is_interrupted)

    def run_to_file(
        self,
        plan: Plan,
        path: Path,
        watch: Watch | None = None,
        look: Callable[[Samples], None] | None = None,
    ) -> Spilled:
        """Run a plan as `run` does; samples go to a file as they arrive."""
        file = GrowingFile(path)
        health, is_interrupted = self._send(plan, _Receiver(file.add, watch, look))
        return Spilled(file.finish(), health, is_interrupted)

    def failure(self) -> str | None:
        """Return which hosts were lost; None: all are there."""
        lost = [f"{host.name} of the fleet {host.lost}" for host in self.hosts if host.lost]
        return "; ".join(lost) or None

    def status(self) -> FleetStatus:
        """Look at all hosts."""
        found = zip(self.hosts, self._clocks(self.hosts), strict=True)
        hosts = tuple(_status(host, reading) for host, reading in found)
        return FleetStatus(hosts, self.lab_hosts, self.watch_hosts)

    def _clocks(self, hosts: Sequence[FleetHost]) -> list[ClockReading]:
        """Read the clocks of several hosts at once: round trips take most of the time."""
        with ThreadPoolExecutor(CLOCKS_AT_ONCE) as pool:
            return list(pool.map(self._clock, hosts))

    def require_reach(self, host: str, port: int) -> None:
        """Refuse a loopback target that is another one on some host of the fleet."""
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
        hosts = self.hosts[: most_parts(plan.load, len(self.hosts))]
        parts = self._prepare(plan, hosts)
        try:
            # Ctrl-C is counted: raised in the middle of a call of Dask, it could be lost.
            with Interrupts() as interrupts:
                self._start(parts)
                self._watch(parts, receiver, interrupts)
                return self._health(plan, parts), interrupts.count > 0
        finally:
            for part in parts:
                if not part.host.lost:
                    part.host.ask("abandon")

    def _require_all(self) -> None:
        if why := self.failure():
            raise EnvironmentUnusable(why)

    def _prepare(self, plan: Plan, hosts: Sequence[FleetHost]) -> list[_SentPart]:
        # A host that hangs is found at once: to prepare may take long.
        for host, answer in [(host, host.ask("now_ns")) for host in hosts]:
            self._get(host, answer, ANSWER_S)
        count = len(hosts)
        limits = plan.limits
        if not isinstance(plan.load, ClosedLoad):  # each of its workers needs one
            limits = replace(limits, max_connections=-(-limits.max_connections // count))
        answers = [
            host.ask(
                "prepare",
                replace(
                    plan,
                    limits=limits,
                    placement=replace(plan.placement, part=number, parts=count),
                ),
            )
            for number, host in enumerate(hosts)
        ]
        for host, answer in zip(hosts, answers, strict=True):
            self._get(host, answer, PREPARE_S)
        clocks = self._clocks(hosts)
        return [_SentPart(number, host, clocks[number]) for number, host in enumerate(hosts)]

    def _start(self, parts: Sequence[_SentPart]) -> None:
        at_ns = time.time_ns() + round(LEAD_S * 1e9)
        answers = [part.host.ask("start", at_ns + part.before.offset_ns) for part in parts]
        for part, answer in zip(parts, answers, strict=True):
            self._get(part.host, answer, ANSWER_S)

    def _watch(
        self,
        parts: Sequence[_SentPart],
        receiver: _Receiver,
        interrupts: Interrupts,
    ) -> None:
        """Look at all parts until they are over; the first Ctrl-C stops them, a second gives up."""
        sums = _Sums()
        obeyed = 0
        while True:
            time.sleep(TICK_S)
            if interrupts.count > obeyed:
                obeyed = interrupts.count
                self._tell(parts, "stop" if obeyed == 1 else "give_up")
            self._look(parts, receiver)
            going = [part for part in parts if not (part.host.lost or part.glance.is_over)]
            if not going:
                return
            if any(part.host.lost for part in parts):
                self._tell(going, "stop")
            progress = sums.progress([part.glance for part in parts])
            watch = receiver.watch
            if watch is not None and progress is not None and not watch(progress):
                self._tell(going, "stop")

    def _look(self, parts: Sequence[_SentPart], receiver: _Receiver) -> None:
        answers = [
            (part, part.host.ask("look"))
            for part in parts
            if not (part.host.lost or part.glance.is_over)
        ]
        until_s = time.monotonic() + ANSWER_S
        ended = []
        for part, answer in answers:
            try:
                part.glance = answer.result(timeout=max(0.01, until_s - time.monotonic()))
            except Exception as error:
                part.host.lost = f"was lost under load: {self._reason(error)}"
                continue
            if part.glance.failure:
                part.host.lost = f"ended its part of the load: {part.glance.failure}"
            if (rows := part.glance.rows) is not None:
                receiver.keep(rows)
                if receiver.look is not None:
                    ended.append(part.ending.whole(rows, part.glance.ended))
        if receiver.look is not None and ended:
            receiver.look(Samples.joined(ended))

    def _tell(self, parts: Sequence[_SentPart], method: str) -> None:
        for part in parts:
            if not part.host.lost:
                part.host.ask(method)

    def _health(self, plan: Plan, parts: Sequence[_SentPart]) -> Health:
        """Return what all engines say of themselves, and which hosts or clocks failed."""
        answers = [(part, part.host.ask("health")) for part in parts if not part.host.lost]
        found: list[tuple[_SentPart, Health]] = []
        for part, answer in answers:
            try:
                found.append((part, answer.result(timeout=PREPARE_S)))
            except Exception as error:
                part.host.lost = f"was lost at the end of the load: {self._reason(error)}"
        with ThreadPoolExecutor(CLOCKS_AT_ONCE) as pool:
            told = list(pool.map(lambda one: self._told(*one), found))
        limits = [f"{part.host.name} {part.host.lost}" for part in parts if part.host.lost]
        limits += [limit for _, jump in told for limit in jump]
        health = NOTHING_TOLD
        if found:
            health = merged(
                [health for _, health in found],
                plan.load,
                plan.limits.max_rate_rps,
                [part.host.name for part, _ in found],
            )
        return replace(
            health,
            limits=(*limits, *health.limits),
            parts=tuple(one for one, _ in told),
        )

    def _told(self, part: _SentPart, health: Health) -> tuple[PartHealth, list[str]]:
        """Return what is kept of a part, and why its clock makes the trial invalid."""
        try:
            after = self._clock(part.host)
        except EnvironmentUnusable:
            after, jump_ns = part.before, 0  # it is lost, and that is told
        else:
            jump_ns = part.before.jump_ns(after)
        kept = PartHealth(
            part.host.name,
            part.before.offset_ns / 1e6,
            max(part.before.error_ns, after.error_ns) / 1e6,
            health.lag_p99_ms,
            health.cpu_s,
            part.number,
        )
        why = f"the clock of {part.host.name} was set by {jump_ns / 1e9:+.3f} s under load"
        return kept, [why] if jump_ns else []

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {ANSWER_S:g} s"
        # Workers end with their scheduler, and may be missed first.
        until_s = time.monotonic() + SCHEDULER_S
        while time.monotonic() < until_s:
            if not self.has_scheduler():
                return "the scheduler of the fleet ended or was cut off"
            time.sleep(SCHEDULER_S / 10)
        if isinstance(error, OSError | RuntimeError):  # Dask's, of a worker that is gone
            return "its worker process ended"
        return str(error) or type(error).__name__

    def _clock(self, host: FleetHost) -> ClockReading:
        return clock.read(lambda: int(self._get(host, host.ask("now_ns"), ANSWER_S)), ROUNDS)

    def _get(self, host: FleetHost, answer: RemoteAnswer, timeout_s: float) -> Any:
        """Return what a host answers; its refusals name it, silence loses it."""
        try:
            return answer.result(timeout=timeout_s)
        except LoadstoneError as error:
            raise type(error)(f"{host.name}: {error}") from None
        except Exception as error:
            host.lost = f"was lost: {self._reason(error)}"
            raise EnvironmentUnusable(f"{host.name} of the fleet {host.lost}") from error


def _status(host: FleetHost, reading: ClockReading) -> HostStatus:
    facts = host.facts
    offset_ms, error_ms = reading.offset_ns / 1e6, reading.error_ns / 1e6
    return HostStatus(host.name, facts.loadstone, facts.cores, offset_ms, error_ms)


@dataclass(slots=True)
class _Sums:
    """Sums the counts of all parts."""

    ended: int = 0
    latency_sum_ms: float = 0.0

    def progress(self, glances: Sequence[Glance]) -> Progress | None:
        """Return the progress of the whole load; None before any part has some."""
        each = [one.progress for one in glances if one.progress is not None]
        if not each:
            return None
        ok, failed = sum(one.ok for one in each), sum(one.failed for one in each)
        latency_sum_ms = sum(one.latency_sum_ms for one in glances)
        fresh, fresh_ms = ok + failed - self.ended, latency_sum_ms - self.latency_sum_ms
        self.ended, self.latency_sum_ms = ok + failed, latency_sum_ms
        return Progress(
            elapsed_s=max(one.elapsed_s for one in each),
            due=sum(one.due for one in each),
            sent=sum(one.sent for one in each),
            ok=ok,
            failed=failed,
            latency_ms=fresh_ms / fresh if fresh else 0.0,
        )


def most_parts(load: Load, hosts: int) -> int:
    """Return among how many hosts a load is divided.

    A band is one number in flight, which no host could keep a share of: one host sends it.
    """
    match load:
        case BandLoad():
            return 1
        case ClosedLoad(workers=workers):
            return min(hosts, workers)
        case _:
            return hosts
