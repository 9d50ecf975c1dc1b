"""Virtual time, and threads that wait in it.

One thread runs at a time. A thread that waits is continued when the time has come, or when its
event is set and somebody looks; whoever lets the time pass waits until it waits again or ends.
"""

from collections.abc import Callable
from math import inf
from threading import Event, Semaphore, Thread, current_thread

from loadstone.system.clock import Clock

EPOCH_S = 1_800_000_000.0  # of the virtual clock, in Unix time


class VirtualThread(Thread):
    """A thread that waits in virtual time."""

    def __init__(self, time: "VirtualTime", work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._time = time
        self._work = work
        self._goes_on = Semaphore(0)
        self._rests = Semaphore(0)
        self._until_s = -inf
        self._event: Event | None = None
        self.is_over = False

    def start(self) -> None:
        """Start it, and return when it waits or has ended."""
        super().start()
        self._time.threads.append(self)
        self._rests.acquire()

    def run(self) -> None:
        """Work."""
        try:
            self._work()
        finally:
            self.is_over = True
            self._rests.release()

    def wait(self, event: Event | None, until_s: float) -> None:
        """Let others go on until the event is set or it is `until_s`."""
        self._event, self._until_s = event, until_s
        self._rests.release()
        self._goes_on.acquire()

    @property
    def is_due(self) -> bool:
        """Whether it can go on."""
        is_set = self._event is not None and self._event.is_set()
        return not self.is_over and (is_set or self._until_s <= self._time.now_s)

    def continue_(self) -> None:
        """Let it go on, and return when it waits again or has ended."""
        self._goes_on.release()
        self._rests.acquire()

    def join(self, timeout: float | None = None) -> None:
        """Let time pass until it has ended."""
        self._time.wake()
        while not self.is_over:
            self._time.pass_to(self._until_s)
        super().join(timeout)


class VirtualTime:
    """The time since the start of a test."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.threads: list[VirtualThread] = []

    def pass_to(self, at_s: float) -> None:
        """Let time pass until then; threads whose wait ended meanwhile go on then."""
        self.now_s = max(self.now_s, at_s)
        self.wake()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.wait(Event(), seconds)

    def wait(self, event: Event, seconds: float) -> bool:
        """Let time pass until the event is set, at most so many seconds."""
        thread = current_thread()
        if isinstance(thread, VirtualThread):
            thread.wait(event, self.now_s + seconds)
        elif not event.is_set():
            self.pass_to(self.now_s + seconds)
        return event.is_set()

    def wake(self) -> None:
        """Continue the threads whose wait is over."""
        while due := [one for one in self._left() if one.is_due]:
            due[0].continue_()

    def _left(self) -> list[VirtualThread]:
        return [one for one in self.threads if not one.is_over]

    @property
    def clock(self) -> Clock:
        """The clock that shows this time."""
        return Clock(
            lambda: self.now_s,
            lambda: EPOCH_S + self.now_s,
            self.sleep,
            self.wait,
            lambda work: VirtualThread(self, work),
        )
