"""The reference service as something to measure: `loadstone serve` in a process of its own."""

import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadstone.run import Subject

COMMAND = (sys.executable, "-m", "loadstone", "serve", "--until-stdin-closes")
LAST = "OS_REGION_NAME"  # of the variables that it prints once it serves


@contextmanager
def of_reference() -> "Iterator[Subject]":
    """Start it, connect to it, and end it."""
    from loadstone.errors import EnvironmentUnusable
    from loadstone.run import Subject
    from loadstone.target import connect, from_environment

    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as served:
        stdin, stdout = served.stdin, served.stdout
        if stdin is None or stdout is None:
            raise AssertionError("both are pipes")
        try:
            with stdin:  # the kernel closes it, too, when we are killed: it ends with us
                variables = _variables(stdout)
                if LAST not in variables:
                    raise EnvironmentUnusable("loadstone serve did not start")
                with connect(from_environment(variables, "loadstone serve")) as access:
                    yield Subject(
                        access,
                        facts=(("service", "loadstone serve: tokens in memory"),),
                        pids=lambda: (served.pid,),
                        failure=lambda: (
                            "loadstone serve died" if served.poll() is not None else None
                        ),
                    )
        finally:
            served.wait()  # after Ctrl-C, Popen itself waits no longer than 0.25 s


def _variables(lines: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        name, _, value = line.removeprefix("export ").partition("=")
        found[name] = "".join(shlex.split(value))
        if name == LAST:
            break
    return found
