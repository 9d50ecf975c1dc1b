"""Signals that interrupt a command, and a context in which they are counted instead of raised."""

import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BY_SIGNAL = 128  # exit codes in shells: 128 and the number of the signal
_REPEATED_AFTER_S = 0.01
_received: list[int] = []


def exit_code() -> int:
    """Return the exit code of an interrupted command: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP."""
    return _BY_SIGNAL + (_received[0] if _received else signal.SIGINT)


def interrupt_on_signals() -> None:
    """Let SIGTERM and SIGHUP interrupt as Ctrl-C does, unless the parent ignores them (nohup)."""
    _received.clear()
    for number, handler in (
        (signal.SIGTERM, terminate),
        (signal.SIGHUP, hang_up),
    ):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, handler)
    if sys.unraisablehook is not _repeat:
        _repeat.others = sys.unraisablehook
        sys.unraisablehook = _repeat


class _Repeat:
    """Sends a signal again whose KeyboardInterrupt Python has dropped.

    Python does so where the signal comes while a destructor or a callback of a weak reference runs:
    nobody can catch what these raise (`Exception ignored in`), and the command would go on.
    """

    others: Callable[["sys.UnraisableHookArgs"], Any] = staticmethod(sys.__unraisablehook__)

    def __call__(self, dropped: "sys.UnraisableHookArgs") -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            self.others(dropped)
            return
        number = _received.pop() if _received else signal.SIGINT
        if number == signal.SIGHUP:
            signal.signal(number, hang_up)
        # Later, when the callback has returned; a thread could need a lock that is held here.
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), number))
        signal.setitimer(signal.ITIMER_REAL, _REPEATED_AFTER_S)


_repeat = _Repeat()


def terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """Interrupt as Ctrl-C does."""
    _received.append(number)
    raise KeyboardInterrupt


def hang_up(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """Interrupt at the first SIGHUP only.

    A terminal that closes sends it twice, from the kernel and from the shell, and a second
    interrupt would end the removal of what the run created.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _received.append(number)
    raise KeyboardInterrupt


_HANDLERS = (signal.default_int_handler, terminate, hang_up)


@contextmanager
def kept_from_children() -> Iterator[None]:
    """Block Ctrl-C and hang-ups for the threads and processes that are started in the context.

    A terminal sends both to all processes of a command, and only the command decides what to end.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Interrupts:
    """Counts signals that would raise KeyboardInterrupt, while the context is active.

    `tolerated`: after so many, the next one raises it.
    """

    def __init__(self, tolerated: float = math.inf) -> None:
        self.count = 0
        self._tolerated = tolerated
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _NUMBERS:
                if signal.getsignal(number) in _HANDLERS:
                    self._before[number] = signal.signal(number, self._counted)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _counted(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if number == signal.SIGHUP:  # as in hang_up
            del self._before[number]
            signal.signal(number, signal.SIG_IGN)
        _received.append(number)
        self.count += 1
        if self.count > self._tolerated:
            raise KeyboardInterrupt
