"""Ways in which a command ends early, and the output that it is given for them."""

import os
import pty
import select
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

READ_S = 0.05
PIECE = 1 << 16
BY_SIGNAL = 128


class Ending(StrEnum):
    """How a command is ended, or what it loses."""

    KILL = "SIGKILL"
    TERM = "SIGTERM"
    INT = "SIGINT"  # to the process group, as a terminal sends it
    HUP = "SIGHUP"
    TERMINAL = "terminal lost"  # a pseudo-terminal that is closed
    NOHUP = "terminal lost, SIGHUP ignored"
    READER = "reader of stderr lost"

    @property
    def code(self) -> int | None:
        """The exit code of a command that it interrupts; None: the command goes on."""
        match self:
            case Ending.KILL:
                return -signal.SIGKILL
            case Ending.NOHUP | Ending.READER:
                return None
            case _:
                return BY_SIGNAL + _NUMBERS[self]


_NUMBERS = {
    Ending.KILL: signal.SIGKILL,
    Ending.TERM: signal.SIGTERM,
    Ending.INT: signal.SIGINT,
    Ending.HUP: signal.SIGHUP,
    Ending.TERMINAL: signal.SIGHUP,
}
_ON_TERMINAL = (Ending.TERMINAL, Ending.NOHUP)
_ON_ITS_TERMINAL = ("setsid", "--ctty")
_WITHOUT_HUP = ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")


@dataclass(slots=True)
class Running:
    """A command whose stderr goes to a file, directly or through a terminal or a pipe."""

    ending: Ending
    process: "subprocess.Popen[bytes]"
    stderr: Path
    _copy: "_Copy | None" = field(default=None)

    @classmethod
    def begun(
        cls, words: Sequence[str], ending: Ending, folder: Path, environment: Mapping[str, str]
    ) -> "Running":
        """Start a command in a session of its own."""
        stderr = folder / "stderr"
        stderr.touch()
        if ending in _ON_TERMINAL:
            master, slave = pty.openpty()
            words = (*_WITHOUT_HUP, *words) if ending is Ending.NOHUP else words
            process = subprocess.Popen(
                (*_ON_ITS_TERMINAL, *words),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=environment,
                cwd=folder,
            )
            os.close(slave)
            return cls(ending, process, stderr, _Copy.begun(master, stderr))
        with (folder / "stdout").open("wb") as stdout, stderr.open("wb") as log:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE if ending is Ending.READER else log,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
        if process.stderr is None:
            return cls(ending, process, stderr)
        return cls(ending, process, stderr, _Copy.begun(os.dup(process.stderr.fileno()), stderr))

    @property
    def has_ended(self) -> bool:
        """Whether the command ended by itself."""
        return self.process.poll() is not None

    def printed(self) -> str:
        """Return what it printed on stderr so far."""
        return self.stderr.read_text(errors="replace")

    def end(self) -> None:
        """Send the signal, or take the terminal or the reader away."""
        if self._copy is not None:
            if self.process.stderr is not None:
                self.process.stderr.close()
            self._copy.close()
        elif self.ending is Ending.INT:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGINT)
        else:
            self.process.send_signal(_NUMBERS[self.ending])


@dataclass(slots=True)
class _Copy:
    """Copies a descriptor to a file in a thread, until it is closed."""

    thread: threading.Thread
    is_closed: threading.Event

    @classmethod
    def begun(cls, descriptor: int, path: Path) -> "_Copy":
        is_closed = threading.Event()

        def copy() -> None:
            with path.open("ab", buffering=0) as file:
                while not is_closed.is_set():
                    if not select.select([descriptor], [], [], READ_S)[0]:
                        continue
                    try:
                        piece = os.read(descriptor, PIECE)
                    except OSError:  # EIO: all that had the terminal have ended
                        break
                    if not piece:
                        break
                    file.write(piece)
            os.close(descriptor)

        thread = threading.Thread(target=copy, daemon=True)
        thread.start()
        return cls(thread, is_closed)

    def close(self) -> None:
        self.is_closed.set()
        self.thread.join()
