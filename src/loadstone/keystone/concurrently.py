"""Many small API calls at once."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def each(call: Callable[[T], R], items: Iterable[T], workers: int) -> tuple[R, ...]:
    """Call for each item, `workers` at a time; results in the order of the items.

    The first failure, or Ctrl-C, starts no further call, waits for those on their way, and is
    raised: when this returns or raises, nothing is being made or removed any more.
    """
    with ThreadPoolExecutor(workers, thread_name_prefix="loadstone") as pool:
        futures = [pool.submit(call, item) for item in items]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            for future in futures:
                future.cancel()
    failures = [f.exception() for f in futures if not f.cancelled() and f.exception()]
    for failure in failures:
        if failure is not None:
            raise failure
    return tuple(future.result() for future in futures)
