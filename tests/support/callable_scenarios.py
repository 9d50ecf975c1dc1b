"""Functions that tests run in worker processes."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path


def good(context, note=None):
    with context.action("first"):
        pass
    with context.action("second"), context.action("inner"):
        pass
    if note:
        with Path(note).open("a") as file:
            file.write(f"{context.iteration} {context.user.get('name')} {os.getpid()}\n")


def slow(context, seconds):
    with context.action("slow"):
        time.sleep(seconds)


def waiting(context, until, pids):
    """Note the process and wait until a file appears."""
    (Path(pids) / str(os.getpid())).touch()
    with context.action("wait"):
        while not Path(until).exists():
            time.sleep(0.01)


def waiting_after_a_failure(context, until, pids):
    with suppress(ValueError), context.action("tried"):
        raise ValueError("no matter")
    waiting(context, until, pids)


def stuck(context, pids):
    """Ignore what can be ignored, for good."""
    (Path(pids) / str(os.getpid())).touch()
    with context.action("stuck"):
        while True:
            time.sleep(3600)


def sometimes_stuck(context):
    with context.action("good"):
        pass
    with context.action("work"):
        if context.iteration % 3 == 0:
            time.sleep(3600)


def telling(context):
    with context.action("log_in"):
        raise PermissionError(
            f"user {context.user['name']} with {context.user['password']} in "
            f"{context.settings['secret_key']}: token=abcdef gAAAAABn{'x' * 40}\nsecond line"
        )


def catching(context):
    with suppress(ValueError), context.action("tried"):
        raise ValueError("no matter")
    raise RuntimeError(f"request {context.iteration:08x} of server {context.iteration}")


def dying(context):
    with context.action("crash"):
        if context.iteration == 2:
            os.kill(os.getpid(), signal.SIGSEGV)


class Conflict(Exception):
    status_code = 409


def conflicting(context):
    with context.action("nova.boot_server"):
        raise Conflict("Quota exceeded")


def paused(context):
    context.pause(0.01, 0.02)


def forgiving(context):
    with suppress(ValueError), context.action("tried"):
        raise ValueError("no matter")
