"""Commands on hosts: by ssh, or on this machine."""

import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO, Self

from loadstone.errors import EnvironmentUnusable
from loadstone.system.redaction import is_secret, masked

HERE = "here"  # this machine, without ssh
PATIENCE_S = 120.0  # of one command
MOST_BYTES = 4096  # of the end of its output, for the message when it fails
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--")
# Kept with every undo command: what shells, ssh and most programs read.
_ALWAYS = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "SSH_AUTH_SOCK")
_AGENT = "SSH_AUTH_SOCK"  # of a later login: the one of an earlier login has ended
_REFERENCE = re.compile(r"\$\{?([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class HostCommand:
    """A command with the working directory and the variables that it needs.

    Secret variables are kept by name only, because this is written to disk: their values come from
    the environment of the process that runs the command.
    """

    host: str
    command: str
    directory: str
    variables: Mapping[str, str]
    secrets: tuple[str, ...] = ()  # names of variables

    @classmethod
    def here_and_now(cls, host: str, command: str, needed: tuple[str, ...] = ()) -> Self:
        """Return a command with this process's directory and the variables that it needs.

        These are the usual ones, those that the command's text refers to, and `needed`.
        """
        names = dict.fromkeys((*_ALWAYS, *_REFERENCE.findall(command), *needed))
        known = {name: os.environ[name] for name in names if name in os.environ}
        secret = tuple(name for name, value in known.items() if _is_secret(name, value))
        kept = {name: value for name, value in known.items() if name not in secret}
        try:
            directory = os.getcwd()
        except FileNotFoundError:
            raise EnvironmentUnusable(
                f"{host}: {masked(command)}: the working directory was removed, so that it could "
                "not be run there later; change to another one"
            ) from None
        return cls(host, command, directory, kept, secret)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a command from an undo journal."""
        row = json.loads(text)
        return cls(
            str(row["host"]),
            str(row["command"]),
            str(row["directory"]),
            {str(name): str(value) for name, value in row["variables"].items()},
            tuple(str(name) for name in row["secrets"]),
        )

    def as_json(self) -> str:
        """Return the command as it is kept in an undo journal."""
        return json.dumps(asdict(self))

    @property
    def by_hand(self) -> str:
        """The line that a user can paste into a shell, without secrets."""
        command = str(masked(self.command))
        if self.host == HERE:
            # One command, so that nothing of it runs where the folder is gone.
            return f"cd {shlex.quote(self.directory)} && sh -c {shlex.quote(command)}"
        return f"ssh {shlex.quote(self.host)} {shlex.quote(command)}"

    def run(self) -> None:
        """Run the command; raise EnvironmentUnusable if it fails."""
        missing = [name for name in self.secrets if name not in os.environ]
        if missing:
            raise EnvironmentUnusable(
                f"{self.host}: {masked(self.command)}: needs {', '.join(missing)}, which is not "
                "kept on disk: set it and repeat"
            )
        environment = {**os.environ, **self.variables}
        if _AGENT in os.environ:
            environment[_AGENT] = os.environ[_AGENT]
        carry_out(self.host, self.command, environment, self.directory)


def carry_out(
    host: str,
    command: str,
    environment: Mapping[str, str] | None = None,
    directory: str | None = None,
    interrupted: Callable[[], None] | None = None,
) -> None:
    """Run a shell command over ssh, or here; raise EnvironmentUnusable if it fails.

    `interrupted` is called on Ctrl-C, while the command may still run.
    """
    argv = ("sh", "-c", command) if host == HERE else (*SSH, host, command)
    # A file, not a pipe: what the command leaves in the background may keep its output open.
    process: subprocess.Popen[bytes] | None = None
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=directory if host == HERE else None,
                start_new_session=True,  # Ctrl-C must not end what undoes a fault
            )
            code = _exit_code(process, f"{host}: {masked(command)}")
        except OSError as problem:
            raise EnvironmentUnusable(f"{host}: {masked(command)}: {problem}") from None
        except (KeyboardInterrupt, SystemExit):
            # Also if it had just started, before Popen returned.
            if interrupted is not None:
                interrupted()
            if process is not None:
                process.poll()  # it has ended: no zombie stays
            raise
        if code != 0:
            why = _last_line(output) or "nothing was said"
            raise EnvironmentUnusable(f"{host}: {masked(command)} ended with {code}: {why}")


def _exit_code(process: subprocess.Popen[bytes], words: str) -> int:
    """Wait for a process; one that takes too long is killed."""
    with process:
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise EnvironmentUnusable(
                f"{words}: did not end within {PATIENCE_S:.0f} s and was killed"
            ) from None


def _last_line(output: IO[bytes]) -> str:
    output.seek(max(0, output.seek(0, os.SEEK_END) - MOST_BYTES))
    lines = output.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _is_secret(name: str, value: str) -> bool:
    return is_secret(name) or masked(value) != value
