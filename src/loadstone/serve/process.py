"""`loadstone serve` in a separate process."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from loadstone.errors import EnvironmentUnusable

COMMAND = (sys.executable, "-P", "-m", "loadstone", "serve", "--until-stdin-closes")
PREFIX = "LOADSTONE_"
PASSWORD = f"{PREFIX}SERVE_PASSWORD"
LAST = "OS_REGION_NAME"  # of the variables that it prints once it serves


@contextmanager
def reference_process() -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Start the reference service, return it with its OS_* variables, and end it."""
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:
            raise AssertionError("both are pipes")
        try:
            with stdin:  # the kernel closes it when this process is killed, which ends the service
                variables = _variables(stdout)
                if LAST not in variables:
                    raise EnvironmentUnusable("loadstone serve did not start")
                yield process, variables
        finally:
            process.wait()  # after Ctrl-C, Popen waits only 0.25 s


def _environment() -> dict[str, str]:
    """Return the environment without a user's defaults for `serve`, which are not meant here."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(f"{PREFIX}SERVE_") or name == PASSWORD
    }
    return kept | {f"{PREFIX}CONFIG": "-"}


def _variables(lines: Iterable[str]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for line in lines:
        name, _, value = line.removeprefix("export ").partition("=")
        variables[name] = "".join(shlex.split(value))
        if name == LAST:
            break
    return variables
