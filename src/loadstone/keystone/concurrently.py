"""Runs many small API calls at once."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

TELL_S = 5.0  # interval between progress messages

Tell = Callable[[str], None]
T = TypeVar("T")
R = TypeVar("R")


def each(
    call: Callable[[T], R],
    items: Iterable[T],
    workers: int,
    tell: Tell = lambda _: None,
    *,
    waits: bool = True,
) -> tuple[R, ...]:
    """Call the function for each item with `workers` threads; return results in the items' order.

    `tell` is called in this thread from time to time with the number of finished calls.

    The first failure or Ctrl-C starts no further call, waits for running ones, and is raised: once
    this returns or raises, nothing is being created any more. With `waits=False`, and after a
    second Ctrl-C, an interrupt does not wait.
    """
    todo = deque(enumerate(items))
    count = len(todo)
    done: dict[int, R] = {}
    failures: list[Exception] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set() and (job := _taken(todo)) is not None:
            number, item = job
            try:
                done[number] = call(item)
            except Exception as error:
                failures.append(error)
                stop.set()

    # Daemon threads: an executor's threads would delay the end of the program after Ctrl-C.
    began_s = time.monotonic()
    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(workers, count))]
    try:
        for thread in threads:
            thread.start()
        _join(threads, lambda: tell(_how_far(len(done), count, time.monotonic() - began_s)))
    except BaseException:
        stop.set()
        if waits:
            _join(threads, lambda: None)
        raise
    if failures:
        raise failures[0]
    return tuple(done[number] for number in range(count))


def _how_far(done: int, count: int, elapsed_s: float) -> str:
    words = f"  {done} of {count}"
    if not done:
        return words
    return f"{words}, {done / elapsed_s:.1f}/s, {(count - done) * elapsed_s / done:.0f} s left"


def _join(threads: list[threading.Thread], look: Callable[[], None]) -> None:
    # Calls that were never started because of an interrupt need no waiting.
    for thread in [thread for thread in threads if thread.ident is not None]:
        thread.join(TELL_S)
        while thread.is_alive():
            look()
            thread.join(TELL_S)


def _taken(todo: deque[tuple[int, T]]) -> tuple[int, T] | None:
    try:
        return todo.popleft()
    except IndexError:
        return None
