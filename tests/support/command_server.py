"""Commands in forked processes: what takes a second to import is imported once.

`run` is given the arguments of `loadstone` and returns what `subprocess.run` would. The server is a
process of its own without threads, from which each command is forked: it has its own environment,
folder and output, and ends as a Python process ends. No trial is invalid because the machine is
busy, unless a test measures (the marker `verify`).
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# Not openstack.config, which keeps the folder in which it is imported.
IMPORTED = (
    "alembic.command",
    "keystoneauth1.loading",
    "psycopg",
    "rich.live",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "loadstone.cli.capacity",
    "loadstone.cli.compare",
    "loadstone.cli.fault",
    "loadstone.cli.results",
    "loadstone.cli.run",
    "loadstone.cli.study",
    "loadstone.run.flow",
    "loadstone.store.store",
)
LOCK = threading.Lock()  # one command at a time
# Whether the generator's health counts. tests/conftest.py says False for tests that assert form
# only; what measures by itself (verification/) keeps it.
measures = True


def run(
    words: Sequence[str], environment: Mapping[str, str], folder: Path, timeout_s: float = 110.0
) -> "subprocess.CompletedProcess[str]":
    """Run a command; its standard input is empty."""
    with (
        LOCK,
        tempfile.NamedTemporaryFile() as stdout,
        tempfile.NamedTemporaryFile() as stderr,
    ):
        code = _server().carry_out(
            {
                "words": list(words),
                "environment": dict(environment),
                "folder": str(folder),
                "files": [os.devnull, stdout.name, stderr.name],
                "measures": measures,
            },
            timeout_s,
        )
        printed = [Path(one.name).read_text("utf-8") for one in (stdout, stderr)]
    return subprocess.CompletedProcess(list(words), code, *printed)


class _Server:
    """The process that forks, and the pipes to it."""

    def __init__(self) -> None:
        # Unbuffered: `select` does not see a line that a buffer has read already.
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        atexit.register(self.end)

    def end(self) -> None:
        """End the server, which ends when its input does."""
        with suppress(OSError):
            self.process.communicate(timeout=10)

    def carry_out(self, command: Mapping[str, Any], timeout_s: float) -> int:
        """Run a command and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()
        pid = self._answer()
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], timeout_s)[0]:
            os.kill(pid, signal.SIGKILL)
            self._answer()
            raise subprocess.TimeoutExpired(str(command["words"]), timeout_s)
        return self._answer()

    def _answer(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())


_SERVERS: dict[int, _Server] = {}


def _server() -> _Server:
    """Return the server of this process, which the first command starts."""
    if os.getpid() not in _SERVERS:
        _SERVERS[os.getpid()] = _Server()
    return _SERVERS[os.getpid()]


def _become(command: Mapping[str, Any]) -> None:
    """Let this process be as one that was started for the command."""
    for number, file in enumerate(command["files"]):
        opened = os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    os.closerange(3, 1024)
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["folder"])
    sys.argv = ["loadstone", *command["words"]]
    if not command["measures"]:
        import quiet_machine

        quiet_machine.assume()


def _carry_out() -> None:
    """Run the command, and end this process as Python does, but leave its memory to the kernel."""
    from loadstone.__main__ import main as loadstone

    code: object = 0
    try:
        loadstone()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


def main() -> None:
    """Serve until the input ends."""
    for name in IMPORTED:
        with suppress(ImportError):  # what is not installed
            importlib.import_module(name)
    gc.freeze()
    while line := sys.stdin.buffer.readline():
        command = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(command)
            _carry_out()
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
