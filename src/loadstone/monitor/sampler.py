"""Reads sources once a second in threads of their own."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Self

from loadstone.errors import LoadstoneError
from loadstone.monitor.metrics import Metrics, Reading, Recorder
from loadstone.monitor.source import Source, Unreadable

EVERY_S = 1.0
MOST_FAILURES = 3  # in a row; a service under overload may miss one time-out
PATIENCE_S = 5.0  # for a first read, and for one that is under way when the monitor ends


@dataclass(frozen=True, slots=True)
class Missing:
    """A source that could not be read."""

    source: str
    why: str

    @classmethod
    def of(cls, source: Source, problem: Exception) -> Self:
        """Return why the read of a source failed: in its own words, or with the error's name."""
        text = str(problem).strip().partition("\n")[0]
        if not isinstance(problem, Unreadable | LoadstoneError):
            name = type(problem).__name__
            text = f"{name}: {text}" if text else name
        return cls(source.name, text)

    def __str__(self) -> str:
        return f"{self.source} is not watched: {self.why}"


@dataclass(slots=True)
class _Watched:
    source: Source
    has_answered: bool = False
    failures: int = 0  # in a row
    began_s: float | None = None  # of the read that is under way
    lost: "Missing | None" = None  # why it is not read, although it answered before


@dataclass(slots=True)
class _SourceGroup:
    """Sources that one thread reads one after the other."""

    watched: list[_Watched]
    lost: list[_Watched] = field(default_factory=list)  # that answered before
    busy: threading.Lock = field(default_factory=threading.Lock)


class Monitor:
    """Reads its sources from its creation to `close`.

    A failing source never ends the run: it is listed once in `missing` and no longer read, or, if
    it has answered before, not until the next `sample`.
    """

    def __init__(self, sources: Sequence[Source], every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._recorder = Recorder()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._missing: list[Missing] = []
        self._cpu_s = 0.0
        self._groups: list[_SourceGroup] = []
        self._threads: list[threading.Thread] = []
        near = [one for one in sources if not one.is_remote]
        far = [[one] for one in sources if one.is_remote]
        for group in filter(None, (near, *far)):
            self._begin(group)

    def _begin(self, sources: Sequence[Source]) -> _SourceGroup:
        """Read sources one after the other in a thread of their own."""
        group = _SourceGroup([_Watched(one) for one in sources])
        thread = threading.Thread(target=self._loop, args=(group,), daemon=True, name="monitor")
        self._groups.append(group)
        self._threads.append(thread)
        thread.start()
        return group

    @property
    def missing(self) -> tuple[Missing, ...]:
        """The sources that could not be read, in the order of their failures.

        Also those whose first read has no end yet: a server may send a byte now and then.
        """
        now_s = time.monotonic()
        unanswered = (
            Missing(one.source.name, f"no complete answer within {PATIENCE_S:g} s")
            for group in self._groups
            for one in tuple(group.watched)
            if not one.has_answered
            and (began_s := one.began_s) is not None
            and now_s - began_s >= PATIENCE_S
        )
        lost = (
            one.lost
            for group in self._groups
            for one in (*group.watched, *group.lost)
            if one.lost is not None
        )
        return (*self._missing, *lost, *unanswered)

    @contextmanager
    def reading(self, sources: Sequence[Source]) -> Iterator[None]:
        """Read further sources within the context, each in a separate thread."""
        groups = [self._begin([one]) for one in sources]
        try:
            yield
        finally:
            for group in groups:
                with group.busy:
                    for one in group.watched:
                        _close(one.source)
                    group.watched.clear()  # which ends its thread
                    group.lost.clear()

    def sample(self) -> float:
        """Read all local sources at this instant; return it for `metrics`.

        Sources that answered once and then did not, as during a fault, get another chance.
        """
        now_s = time.monotonic()
        for group in self._groups:
            if group.lost:  # else a read on another machine may be under way for long
                with group.busy:
                    group.watched += group.lost
                    group.lost.clear()
            if not any(one.source.is_remote for one in group.watched):
                self._read(group)
        return now_s

    def metrics(self, since_s: float = 0.0) -> Metrics:
        """Return the readings since an instant that `sample` returned."""
        with self._lock:
            metrics = self._recorder.metrics(since_s)
        # Readings have monotonic times: a clock that is set back would put them out of order, and
        # a counter that seems to fall is taken for one that began anew.
        return replace(metrics, time_s=metrics.time_s + (time.time() - time.monotonic()))

    def newest(self, over_s: float) -> Metrics:
        """Return the readings of the last seconds."""
        return self.metrics(time.monotonic() - over_s)

    def close(self) -> None:
        """End the threads and close the sources."""
        self._over.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for group in self._groups:
            for one in group.watched:
                _close(one.source)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _loop(self, group: _SourceGroup) -> None:
        due_s = time.monotonic()
        while (group.watched or group.lost) and not self._over.is_set():
            self._read(group)
            # Skip instants that have passed meanwhile.
            due_s = max(due_s + self._every_s, time.monotonic())
            self._over.wait(max(due_s - time.monotonic(), 0.0))

    def _read(self, group: _SourceGroup) -> None:
        with group.busy:
            began_s = time.thread_time()
            now_s = time.monotonic()
            readings: list[Reading] = []
            for one in tuple(group.watched):
                readings += self._read_one(group, one)
                if one.source.is_remote:  # it answers late, with what holds when it answers
                    now_s = time.monotonic()
            with self._lock:
                self._cpu_s += time.thread_time() - began_s
                readings.append(Reading("monitor", "cpu_seconds_total", self._cpu_s, "s"))
                self._recorder.add(now_s, readings)

    def _read_one(self, group: _SourceGroup, watched: _Watched) -> list[Reading]:
        watched.began_s = time.monotonic()
        try:
            readings = list(watched.source.read())
        except Exception as problem:  # a monitor never ends a run
            watched.failures += 1
            if not watched.has_answered or watched.failures >= MOST_FAILURES:
                missing = Missing.of(watched.source, problem)
                group.watched.remove(watched)
                if watched.has_answered:
                    watched.failures = MOST_FAILURES - 1  # of another chance, one is enough
                    watched.lost = missing
                    group.lost.append(watched)
                else:
                    self._missing.append(missing)
                _close(watched.source)
            return []
        finally:
            watched.began_s = None
        if readings:  # a Prometheus gives none between two queries
            watched.has_answered, watched.failures, watched.lost = True, 0, None
        return readings


def _close(source: Source) -> None:
    try:
        source.close()
    except Exception:  # a monitor never ends a run
        return
