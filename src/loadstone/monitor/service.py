"""CPU time of a service's processes during a phase of load, including processes that end meanwhile.

When a parent waits for a child, the kernel adds the child's CPU time, and that of all children it
waited for, to the parent's cutime and cstime (man 5 proc). So CPU time moves up the tree and is
lost only if no parent waits. A process and its ended descendants have used

    own + max(growth of waited-for CPU, sum of the last values of its ended descendants)

which counts each process once: alive, waited for, or ended without being waited for.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """One process of the service."""

    pid: int
    part: str  # of the deployment: "uwsgi", "postgres"
    # Its processes vary with the load (connections of a database), so their end is not reported.
    is_elastic: bool = False


Members = Callable[[], Iterable[ServiceProcess] | None]  # None: the service is on another machine


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """A process of the service that ended under load."""

    part: str
    pid: int
    at_s: float  # since the start of the load, when its end was noticed
    is_elastic: bool = False


@dataclass(slots=True)
class _Account:
    """CPU time of one process in seconds, while it lives."""

    member: ServiceProcess
    parent: int  # pid
    own_s: float
    waited_s: float  # of children that it waited for
    waited_before_s: float  # the part from before the first sample
    gone_s: float = 0.0  # last values of ended descendants
    foreign_s: float = 0.0  # the same of other parts, which the kernel adds to `waited_s`, too
    least_s: float = 0.0  # of descendants, so far: a counter does not fall
    has_ended: bool = False  # a zombie that its parent has not waited for

    def settle(self) -> None:
        """Update what its descendants have used, after a sample."""
        # A foreign child may not be in `waited_s` yet.
        waited_s = self.waited_s - self.waited_before_s - self.foreign_s
        self.least_s = max(self.least_s, waited_s, self.gone_s)

    @property
    def total_s(self) -> float:
        """CPU time of the process and its ended descendants."""
        return self.own_s + self.waited_before_s + self.least_s


class ServiceCpu:
    """Sums the CPU time of a service's processes from sample to sample."""

    def __init__(self, members: Callable[[], Iterable[ServiceProcess]]) -> None:
        self._members = members
        self._living: dict[psutil.Process, _Account] = {}
        self._orphans_s: dict[str, float] = {}  # by part; of processes that outlived their parents
        self._ended: list[EndedProcess] = []
        self._before_s = 0.0
        self.sample(0.0, is_first=True)
        self._before_s = self._total_s()
        self._ended.clear()  # zombies from before

    @property
    def cpu_s(self) -> float:
        """User and system CPU time since the first sample."""
        return max(self._total_s() - self._before_s, 0.0)

    @property
    def parts_s(self) -> dict[str, float]:
        """CPU time by part, including what was used before the first sample."""
        total_s = dict(self._orphans_s)
        for account in self._living.values():
            part = account.member.part
            total_s[part] = total_s.get(part, 0.0) + account.total_s
        return total_s

    @property
    def living(self) -> "tuple[tuple[psutil.Process, ServiceProcess], ...]":
        """The processes that were alive at the last sample."""
        return tuple((one, account.member) for one, account in self._living.items())

    @property
    def ended(self) -> tuple[EndedProcess, ...]:
        """The processes that have ended, in the order of their ends."""
        return tuple(self._ended)

    def sample(self, at_s: float, *, is_first: bool = False) -> None:
        """Sample the CPU time of each living process; `at_s` is the time since the first sample."""
        import psutil

        present = dict(_find_processes(self._members()))
        # Zombies are no longer listed, but the kernel still has their CPU time.
        left = {one: account.member for one, account in self._living.items() if one not in present}
        reading = {one: member for one, member in left.items() if one.is_running()} | present
        gone = {one for one in left if one not in reading}
        # Parents are older and come first: a child that a parent waits for later is then counted as
        # a process or not at all, never twice.
        for process in sorted(reading, key=_age):
            try:
                self._read(process, reading[process], at_s, is_first=is_first)
            except psutil.Error:
                gone.add(process)
        self._close(gone & self._living.keys(), at_s)
        for account in self._living.values():
            account.settle()

    def _read(
        self, process: "psutil.Process", member: ServiceProcess, at_s: float, *, is_first: bool
    ) -> None:
        with process.oneshot():
            times, parent, status = process.cpu_times(), process.ppid(), process.status()
        own_s = times.user + times.system
        waited_s = times.children_user + times.children_system
        account = self._living.get(process)
        if account is None:
            # It started after the first sample, so all of its CPU time belongs to this load.
            before_s = waited_s if is_first else 0.0
            account = _Account(member, parent, own_s, waited_s, before_s)
            self._living[process] = account
        else:
            account.parent, account.own_s, account.waited_s = parent, own_s, waited_s
        if status == "zombie":
            self._note_end(account, at_s)

    def _close(self, gone: "set[psutil.Process]", at_s: float) -> None:
        """Add the CPU time of ended processes to their nearest known ancestor of the same part.

        The kernel adds it to the parent's, whatever part that is of.
        """
        by_pid = {process.pid: account for process, account in self._living.items()}
        # Children are younger and come first.
        for process in sorted(gone, key=_age, reverse=True):
            account = self._living.pop(process)
            account.settle()
            self._note_end(account, at_s)
            heir, part = by_pid.get(account.parent), account.member.part
            if heir is not None and heir.member.part == part:
                heir.gone_s += account.total_s
                heir.foreign_s += account.foreign_s
                continue
            self._orphans_s[part] = self._orphans_s.get(part, 0.0) + account.total_s
            if heir is not None:
                heir.foreign_s += account.total_s + account.foreign_s

    def _note_end(self, account: _Account, at_s: float) -> None:
        if not account.has_ended:
            account.has_ended = True
            member = account.member
            self._ended.append(EndedProcess(member.part, member.pid, at_s, member.is_elastic))

    def _total_s(self) -> float:
        return sum(self.parts_s.values())


def _find_processes(
    members: Iterable[ServiceProcess],
) -> "Iterator[tuple[psutil.Process, ServiceProcess]]":
    import psutil

    for member in members:
        with suppress(psutil.Error):  # ended in the meantime
            yield psutil.Process(member.pid), member


def _age(process: "psutil.Process") -> tuple[float, int]:
    return process.create_time(), process.pid
