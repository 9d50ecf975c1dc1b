"""A worker process: receives iterations to run, and sends their results."""

import fcntl
import importlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from loadstone.engine.callables.causes import ended, without
from loadstone.engine.callables.context import Context, whole
from loadstone.engine.callables.model import Function
from loadstone.engine.callables.module import module_of
from loadstone.engine.callables.outbound import Guard, ignore_proxies

STDOUT, STDERR = 1, 2
_HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# To a worker: (iteration, row), or None: end. From it: ("ready",), ("refused", why), then for each
# iteration ("took", at_ns), ("begin", path, at_ns), ("end", path, began_ns, ended_ns, how),
# ("output", form, chart) and ("over", at_ns, how). ("beyond", address) in place of "over": it tried
# to connect beyond loopback.


def main(
    pipe: Connection,
    function: Function,
    arguments: Mapping[str, Any],
    settings: Mapping[str, str],
    loopback_only: bool = False,
) -> None:
    """Run iterations until the pipe delivers None or is closed."""
    _live_no_longer_than_the_parent()
    with suppress(OSError):  # stderr is closed
        os.dup2(STDERR, STDOUT)  # what functions print is no part of the results
    ignore_proxies()
    guard = Guard()
    if loopback_only:
        guard.install()
    try:
        call = load(function)
    except BaseException as error:
        pipe.send(("refused", without((), ended(error).cause)))
        return
    pipe.send(("ready",))
    while (order := _next(pipe)) is not None:
        number, row = order
        pipe.send(("took", time.monotonic_ns()))
        context = Context(number, row, settings, pipe.send)
        how = whole(context, call, arguments)
        context.close()
        if guard.refused is not None:
            pipe.send(("beyond", guard.refused))
            return
        pipe.send(("over", time.monotonic_ns(), how))


def load(function: Function) -> Callable[..., object]:
    """Import the function."""
    module = (
        module_of(Path(function.place))
        if function.place.endswith(".py")
        else importlib.import_module(function.place)
    )
    found: Callable[..., object] = getattr(module, function.name)
    return found


def _next(pipe: Connection) -> tuple[int, Mapping[str, str]] | None:
    try:
        order: tuple[int, Mapping[str, str]] | None = pipe.recv()
    except (EOFError, OSError):
        return None
    return order


def _live_no_longer_than_the_parent() -> None:
    # The main process handles Ctrl-C and similar signals.
    for number in _HELD_BACK:
        signal.signal(number, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return
    # The main process holds the other end of this pipe. When it dies, the kernel signals the pipe's
    # owner, even a worker that hangs. (PR_SET_PDEATHSIG would watch the fork server, which workers
    # keep alive.)
    fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(parent.sentinel, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
    fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)
    if not parent.is_alive():
        os._exit(1)
