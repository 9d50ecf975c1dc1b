"""Runs many small API calls at once."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from loadstone.system.say import Say

PROGRESS_S = 5.0  # interval between progress messages

T = TypeVar("T")
R = TypeVar("R")


def each(
    call: Callable[[T], R],
    items: Iterable[T],
    workers: int,
    say: Say = lambda _: None,
    *,
    waits: bool = True,
) -> tuple[R, ...]:
    """Call the function for each item with `workers` threads; return results in the items' order.

    `say` is called in this thread with a progress line every PROGRESS_S.

    After the first failure or Ctrl-C no further call starts; running calls are waited for, and the
    error is raised. So no call is running when this returns or raises. With `waits=False`, and
    after a second Ctrl-C, an interrupt does not wait.
    """
    todo = deque(enumerate(items))
    count = len(todo)
    done: dict[int, R] = {}
    failures: list[Exception] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set() and (job := _next_job(todo)) is not None:
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
        _join(threads, lambda: say(_progress_line(len(done), count, time.monotonic() - began_s)))
    except BaseException:
        stop.set()
        if waits:
            _join(threads, lambda: None)
        raise
    if failures:
        raise failures[0]
    return tuple(done[number] for number in range(count))


def _progress_line(done: int, count: int, elapsed_s: float) -> str:
    text = f"  {done} of {count}"
    if not done:
        return text
    return f"{text}, {done / elapsed_s:.1f}/s, {(count - done) * elapsed_s / done:.0f} s left"


def _join(threads: list[threading.Thread], on_wait: Callable[[], None]) -> None:
    # Calls that were never started because of an interrupt need no waiting.
    for thread in [thread for thread in threads if thread.ident is not None]:
        thread.join(PROGRESS_S)
        while thread.is_alive():
            on_wait()
            thread.join(PROGRESS_S)


def _next_job(todo: deque[tuple[int, T]]) -> tuple[int, T] | None:
    try:
        return todo.popleft()
    except IndexError:
        return None
